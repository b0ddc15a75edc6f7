"""Integer arithmetic with what standards leave open: how a quotient rounds, what a sum that does not fit becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ...cases.elements import Array, ElementType
from .tensors import Axes, extent, lane_axes, lane_stack


def _truncate(total: Array, n: int) -> Array:
    floor = total // n
    return np.asarray(floor + ((total < 0) & (floor * n != total)))


def _floor(total: Array, n: int) -> Array:
    return np.asarray(total // n)


def _nearest(total: Array, n: int, up_at_half: Callable[[Array], Array]) -> Array:
    floor = total // n
    twice = 2 * (total - floor * n)
    return np.asarray(floor + ((twice > n) | ((twice == n) & up_at_half(floor))))


def _nearest_even(total: Array, n: int) -> Array:
    return _nearest(total, n, lambda floor: np.asarray(floor % 2 == 1, bool))


def _nearest_away(total: Array, n: int) -> Array:
    return _nearest(total, n, lambda floor: np.asarray(floor >= 0, bool))


ROUNDINGS = MappingProxyType(
    {"truncate": _truncate, "floor": _floor, "nearest-even": _nearest_even, "nearest-away": _nearest_away}
)
OVERFLOWS = ("exact", "wraps", "saturates")


@dataclass(frozen=True)
class IntegerArithmetic:
    """One choice of rounding and overflow for one integer type."""

    type: ElementType
    rounding: str = "truncate"
    overflow: str = "exact"

    def lift(self, array: Array) -> Integral:
        """Take inputs of shape (lanes, ...), into 64 bits where sums fit and Python's integers where not."""
        largest = max(abs(int(array.max(initial=0))), abs(int(array.min(initial=0))))
        return Integral(self, array.astype(np.int64 if largest * array.size < 1 << 62 else object))


class Integral:
    """A tensor of whole numbers, lanes first, int64 or Python's integers."""

    __slots__ = ("_sums", "arithmetic", "value")

    def __init__(self, arithmetic: IntegerArithmetic, value: Array) -> None:
        self.arithmetic, self.value = arithmetic, value
        self._sums: dict[tuple[Axes, bool], Array] = {}

    def under(self, arithmetic: IntegerArithmetic) -> Integral:
        """Return the same inputs under another arithmetic; the sums that are known of them are shared."""
        same = Integral(arithmetic, self.value)
        same._sums = self._sums
        return same

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one lane."""
        return self.value.shape[1:]

    def sum(self, axes: Axes, keepdims: bool) -> Integral:
        """Add up along `axes`; a sum that does not fit the type is kept, wraps or saturates."""
        if extent(self, axes) == 1 and keepdims:
            return self
        total = self._sums.get((axes, keepdims))
        if total is None:
            total = self._sums[axes, keepdims] = np.asarray(self.value.sum(axis=lane_axes(axes), keepdims=keepdims))
        low, high = self.arithmetic.type.smallest, self.arithmetic.type.largest
        if low <= int(total.min(initial=0)) and int(total.max(initial=0)) <= high:
            return Integral(self.arithmetic, total)
        if self.arithmetic.overflow == "wraps":
            total = (total - low) % (high - low + 1) + low
        elif self.arithmetic.overflow == "saturates":
            total = np.asarray(np.clip(total, low, high))
        return Integral(self.arithmetic, total)

    def __truediv__(self, divisor: int) -> Integral:
        """Divide by a positive whole number and round as the arithmetic says."""
        return Integral(self.arithmetic, ROUNDINGS[self.arithmetic.rounding](self.value, divisor))

    def stack(self, others: Sequence[Integral]) -> Integral:
        """Broadcast this tensor and `others` to one shape and stack them along a new first axis."""
        return Integral(self.arithmetic, lane_stack([t.value for t in (self, *others)]))
