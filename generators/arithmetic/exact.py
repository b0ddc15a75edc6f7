"""Exact rational arithmetic, for certificates and for testing the other number types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ...cases.elements import Array
from .tensors import Axes, lane_axes, lane_stack


class Exact:
    """A tensor of fractions, lanes first."""

    __slots__ = ("value",)

    def __init__(self, value: Array) -> None:
        self.value = value

    @classmethod
    def lift(cls, array: Array) -> Exact:
        """Take finite inputs of shape (lanes, ...); ValueError or OverflowError for NaN and infinities."""
        numbers = array.astype(object) if array.dtype.kind in "iu" else array.astype(np.float64).astype(object)
        return cls(np.asarray(np.frompyfunc(Fraction, 1, 1)(numbers), object).reshape(array.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one lane."""
        return self.value.shape[1:]

    def sum(self, axes: Axes, keepdims: bool) -> Exact:
        """Add up along `axes`, as whole multiples of one fraction: fractions one by one take ten times as long."""
        common = math.lcm(*{fraction.denominator for fraction in self.value.reshape(-1)})
        whole = np.frompyfunc(lambda f: f.numerator * (common // f.denominator), 1, 1)(self.value)
        total = np.asarray(np.asarray(whole, object).sum(axis=lane_axes(axes), keepdims=keepdims), object)
        return Exact(np.asarray(np.frompyfunc(lambda n: Fraction(n, common), 1, 1)(total), object).reshape(total.shape))

    def __truediv__(self, divisor: int) -> Exact:
        """Divide by a whole number."""
        return Exact(self.value / Fraction(divisor))

    def stack(self, others: Sequence[Exact]) -> Exact:
        """Broadcast this tensor and `others` to one shape and stack them along a new first axis."""
        return Exact(lane_stack([t.value for t in (self, *others)]))
