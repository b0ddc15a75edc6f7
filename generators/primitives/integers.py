"""Whole numbers: what does not fit its type, quotients and how they round, bits and shifts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, Final

import gmpy2
import numpy as np

from ...cases.elements import Array
from ..arithmetic.errors import FREE, Arithmetic, Error, Known, charged, wild
from ..arithmetic.formats import limits
from ..arithmetic.multiprecision import each, widened
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


def are_whole(values: Array) -> bool:
    """Return whether values are whole numbers of an integer type, in whatever carries them."""
    return values.dtype.kind in "iu" or (
        values.dtype == object and bool(values.size) and isinstance(values.flat[0], int)
    )


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
        first, second = value.aligned(others[0])
        return first.node("quotient", second, rounding=parameters.get("rounding", "truncate"))

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


class Mod(Primitive):
    """The remainder of a division, with the divisor's sign or the dividend's; of whole numbers, whatever by zero."""

    name, text = "mod", "{0} mod {1}, with the sign of the {sign}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        first, second = value.aligned(others[0])
        return first.node("mod", second, sign=p.get("sign", "divisor"))

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        a, b = xs
        if are_whole(a):
            n = np.where(b == 0, 1, b)
            if object in (a.dtype, n.dtype):
                a, n = a.astype(object), n.astype(object)
            floor = a % n
            back = (floor != 0) & ((a < 0) != (n < 0))
            return np.asarray(floor if p["sign"] == "divisor" else np.where(back, floor - n, floor))
        rest = _real_rest(a, b)
        if p["sign"] != "divisor":
            return rest
        other = (rest != 0) & ((rest < 0) != (b < 0))
        return np.asarray(np.where(np.asarray(other, bool), rest + b, rest))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        if y.whole or xs[1].whole:
            found = whole_error(y, xs, es)
            zero = np.asarray(xs[1].v == 0, bool)
            if zero.any():
                found.flags = found.flags | np.broadcast_to(zero, y.v.shape).astype(np.uint8) * FREE
            return found
        if es[0].quiet and es[1].quiet:  # fmod is exact; with the divisor's sign there is one addition
            return charged(c, y, 0.0, wild(es[0].flags | es[1].flags), rule="remainder")
        reach = c.bound(es[0].e) + c.bound(es[1].e) * (np.abs(xs[0].f / xs[1].f) + 1)
        size = np.abs(xs[1].f)
        crossed = (np.abs(y.f) <= reach) | (np.abs(y.f) + reach >= size)
        e = np.where(crossed, np.maximum(size, reach), reach)
        flags = np.bitwise_or(wild(es[0].flags), wild(es[1].flags))
        return charged(c, y, c.of_bound(e), flags, rule="remainder", exact=False)


def _real_rest(a: Array, b: Array) -> Array:
    if object in (a.dtype, b.dtype):
        return each(gmpy2.fmod, widened(a), widened(b))
    return np.asarray(np.fmod(a, b))


class Shift(Whole):
    """Bits shifted to the left (wrapped) or right; whatever by less than zero or all bits and more."""

    name, text = "shift", "{0} shifted by {1} bits to the {direction}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        first, second = value.aligned(others[0])
        bits = limits(value.type)[1].bit_length() + (not value.type.startswith("uint"))
        found = first.node("shift", second, direction=p["direction"], bits=bits)
        return found.fit("wraps") if p["direction"] == "left" else found

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        a, by = xs
        by = np.where((by < 0) | (by >= p["bits"]), 0, by).astype(object if p["bits"] > 32 else np.int64)
        a = a.astype(object) if p["bits"] > 30 else a
        return np.asarray(a << by if p["direction"] == "left" else a >> by)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        found = whole_error(y, xs, es)
        outside = np.asarray((xs[1].v < 0) | (xs[1].v >= p["bits"]), bool)
        if outside.any():
            found.flags = found.flags | np.broadcast_to(outside, y.v.shape).astype(np.uint8) * FREE
        return found


class Power(Whole):
    """A whole number to the power of another; whatever to a negative power, but of one and minus one."""

    name, overflows, text = "whole_power", True, "{0} to the power of {1}"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return each(_power, *(x.astype(object) for x in xs))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        found = whole_error(y, xs, es)
        outside = np.asarray((xs[1].v < 0) & (np.abs(xs[0].v) != 1), bool)
        if outside.any():
            found.flags = found.flags | np.broadcast_to(outside, y.v.shape).astype(np.uint8) * FREE
        return found


def _power(base: int, power: int) -> int:
    if power >= 0:
        return int(int(base) ** int(power))
    return (int(base) if power % 2 else 1) if abs(base) == 1 else 0
