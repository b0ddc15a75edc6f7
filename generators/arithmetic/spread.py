"""The variance that rounding errors reach on random inputs, for tier T2: where a bound on each element says nothing.

A model of independent roundings, each of standard deviation at most u·|partial sum| (TOSA 1.0, compliance mode
DOT_PRODUCT, bounds the same second moment). The order is sequential, the worst of the usual ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...cases.elements import Array, FloatFormat
from .ordered import ordered_sum
from .tensors import Axes, extent, lane_axes, lane_stack


class Spread:
    """A tensor of (value, variance of its error), lanes first, computed in one format throughout."""

    __slots__ = ("form", "value", "variance")

    def __init__(self, form: FloatFormat, value: Array, variance: Array) -> None:
        self.form, self.value, self.variance = form, value, variance

    @classmethod
    def lift(cls, form: FloatFormat, array: Array) -> Spread:
        """Take finite inputs of shape (lanes, ...)."""
        return cls(form, array.astype(np.float64), np.zeros(array.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one lane."""
        return self.value.shape[1:]

    def sum(self, axes: Axes, keepdims: bool) -> Spread:
        """Add up along `axes`: the k-th partial sum has mean k·µ and variance k·s², each rounded once."""
        n, lanes = extent(self, axes), lane_axes(axes)
        total = ordered_sum(self.value, lanes, keepdims=keepdims)
        mean, square = total / n, ordered_sum(self.value**2, lanes, keepdims=keepdims) / n
        moments = n**2 / 2 * np.maximum(square - mean**2, 0.0) + n**3 / 3 * mean**2
        variance = ordered_sum(self.variance, lanes, keepdims=keepdims) + self.form.roundoff**2 * moments
        return Spread(self.form, total, np.asarray(variance))

    def __truediv__(self, divisor: int) -> Spread:
        """Divide by a whole number, with one rounding."""
        value = self.value / divisor
        return Spread(self.form, value, self.variance / divisor**2 + (self.form.roundoff * value) ** 2)

    def stack(self, others: Sequence[Spread]) -> Spread:
        """Broadcast this tensor and `others` to one shape and stack them along a new first axis."""
        every = [self, *others]
        return Spread(self.form, lane_stack([t.value for t in every]), lane_stack([t.variance for t in every]))
