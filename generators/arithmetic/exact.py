"""Exact rational arithmetic, for certificates and for testing the other number types."""

from __future__ import annotations

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
        """Add up along `axes`."""
        return Exact(np.asarray(self.value.sum(axis=lane_axes(axes), keepdims=keepdims), object))

    def __truediv__(self, divisor: int) -> Exact:
        """Divide by a whole number."""
        return Exact(self.value / Fraction(divisor))

    def stack(self, others: Sequence[Exact]) -> Exact:
        """Broadcast this tensor and `others` to one shape and stack them along a new first axis."""
        return Exact(lane_stack([t.value for t in (self, *others)]))
