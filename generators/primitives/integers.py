"""Whole numbers: what does not fit its type, quotients and how they round, bits and shifts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ...cases.elements import Array
from ..arithmetic.errors import FREE, Arithmetic, Error, Known
from ..arithmetic.formats import limits
from .primitive import Primitive

_ROOM: Final = 1 << 62


def largest(values: Array) -> int:
    """Return the largest magnitude."""
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))


def whole(operation: Callable[..., Any], *xs: Array) -> Array:
    """Apply an operation of one or two operands in 64 bits where its result surely fits, in Python's integers else."""
    tops = [largest(x) for x in xs]
    within = max(tops, default=0) < 1 << 30 if operation is np.multiply else sum(tops) < _ROOM
    if not within and operation is np.multiply:
        within = tops[0] * tops[1] < _ROOM
    if not within:
        xs = tuple(x.astype(object) for x in xs)
    return np.asarray(operation(*xs))


def compact(values: Array) -> Array:
    """Return whole numbers in 64 bits where they fit."""
    return values.astype(np.int64) if values.dtype == object and largest(values) < _ROOM else values


def _truncate(total: Array, n: Array) -> Array:
    floor = total // n
    return np.asarray(floor + (((total < 0) != (n < 0)) & (floor * n != total)))


def _floor(total: Array, n: Array) -> Array:
    return np.asarray(total // n)


def _nearest(total: Array, n: Array, up_at_half: Callable[[Array], Array]) -> Array:
    total, n = np.where(n < 0, -total, total), np.abs(n)
    floor = total // n
    twice = 2 * (total - floor * n)
    return np.asarray(floor + ((twice > n) | ((twice == n) & up_at_half(floor))))


def _nearest_even(total: Array, n: Array) -> Array:
    return _nearest(total, n, lambda floor: np.asarray(floor % 2 == 1, bool))


def _nearest_away(total: Array, n: Array) -> Array:
    return _nearest(total, n, lambda floor: np.asarray(floor >= 0, bool))


def _euclidean(total: Array, n: Array) -> Array:
    return np.asarray(np.where(n < 0, -(total // -np.where(n < 0, n, -1)), total // np.where(n < 0, 1, n)))


ROUNDINGS: Final = MappingProxyType(
    {
        "truncate": _truncate,
        "floor": _floor,
        "nearest-even": _nearest_even,
        "nearest-away": _nearest_away,
        "euclidean": _euclidean,
    }
)


class Whole(Primitive):
    """A primitive of whole numbers: no error; what is undefined of an operand is undefined of the result."""

    work = "selects"

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return whole_error(y, xs, es)


def whole_error(y: Known, xs: Sequence[Known], es: Sequence[Error]) -> Error:
    """Return the error of a whole result: free where an operand is, or where an operand's error leaves it open."""
    flags: Any = 0
    for error in es:
        if not isinstance(error.flags, int):
            flags = flags | (error.flags & FREE)
        if not error.quiet:
            flags = flags | np.where(np.greater(error.e, 0), FREE, np.uint8(0))
    return Error(0.0, flags)


class Fit(Whole):
    """A whole number that does not fit its type: kept, wrapped or saturated."""

    name = "fit"
    text = "{0}, if it does not fit {type}: {way}"

    @classmethod
    def record(cls, value: Any, *others: Any, **parameters: Any) -> Any:
        way = others[0] if others else parameters.get("way", "exact")
        return value if way == "exact" else value.node("fit", type=parameters.get("type", value.type), way=way)

    @classmethod
    def type(cls, types: Sequence[str], **parameters: Any) -> str:
        return str(parameters["type"])

    @staticmethod
    def exact(*xs: Array, **parameters: Any) -> Array:
        total, (low, high) = xs[0], limits(parameters["type"])
        if not total.size or (low <= int(total.min()) and int(total.max()) <= high):
            return total
        total = total.astype(object)
        if parameters["way"] == "wraps":
            return np.asarray((total - low) % (high - low + 1) + low)
        return np.asarray(np.clip(total, low, high))

    @classmethod
    def native(cls, m: Any, *xs: Array, **parameters: Any) -> Array:
        return cls.exact(xs[0].astype(object), **parameters).astype(parameters["type"])


class Quotient(Whole):
    """A quotient of whole numbers, rounded; whatever where the divisor is zero."""

    name, overflows = "quotient", True
    text = "{0} / {1}, rounded: {rounding}"

    @classmethod
    def record(cls, value: Any, *others: Any, **parameters: Any) -> Any:
        rounding = parameters.get("rounding", "truncate")
        return value.node("quotient", *value.aligned(others[0])[1:], rounding=rounding) if others else value

    @staticmethod
    def exact(*xs: Array, **parameters: Any) -> Array:
        total, n = xs
        n = np.where(n == 0, 1, n)
        if largest(total) >= _ROOM >> 1 or largest(n) >= 1 << 30:
            total, n = total.astype(object), n.astype(object)
        return ROUNDINGS[parameters["rounding"]](total, n)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        found = whole_error(y, xs, es)
        zero = np.asarray(xs[1].v == 0, bool)
        if zero.any():
            found.flags = found.flags | np.broadcast_to(zero, y.v.shape).astype(np.uint8) * FREE
        return found
