"""Arithmetic of two numbers: real numbers, with one rounding unless exact; whole numbers; bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, Final

import gmpy2
import numpy as np

from ...cases.elements import Array
from .errors import (
    EXCEPTIONAL,
    FREE,
    INFINITE,
    NAN,
    NEGATIVE_ZERO,
    NO_BIT,
    SIGNED_ZERO,
    ZERO,
    Arithmetic,
    Error,
    Flags,
    Known,
    charged,
    each,
    flip,
    limits,
    together,
    two_sum,
    unsigned,
    widened,
    wild,
    without_nan,
)
from .primitive import Primitive

_ROOM: Final = 1 << 62


def largest(values: Array) -> int:
    """Return the largest magnitude."""
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))


def exact_integers(operation: Callable[..., Any], *xs: Array) -> Array:
    """Apply an operation of one or two operands in their type, or in 64 bits, if its result certainly fits.

    Otherwise use Python's integers.
    """
    tops = [largest(x) for x in xs]
    top = math.prod(tops) if operation is np.multiply else sum(tops)
    if top >= _ROOM:
        xs = tuple(x.astype(object) for x in xs)
    elif (own := np.result_type(*xs)).itemsize < 8:
        below_zero = own.kind == "u" and operation not in (np.add, np.multiply)
        if below_zero or top > np.iinfo(own).max:
            xs = tuple(x.astype(np.int64) for x in xs)
    return np.asarray(operation(*xs))


def are_whole(values: Array) -> bool:
    """Return whether values are whole numbers of an integer type, in any carrier."""
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


class IntegerPrimitive(Primitive):
    """A primitive of whole numbers: no error; undefined operands give undefined results."""

    work = "selects"

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return whole_error(y, xs, es)


def whole_error(y: Known, xs: Sequence[Known], es: Sequence[Error]) -> Error:
    """Return the error of a whole result: free where an operand is free, or its error leaves the result open."""
    flags: Any = 0
    for error in es:
        if not isinstance(error.flags, int):
            flags = flags | (error.flags & FREE)
        if not error.quiet:
            flags = flags | np.where(np.greater(error.e, 0), FREE, np.uint8(0))
    return Error(0.0, flags)


class Fit(IntegerPrimitive):
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


class Quotient(IntegerPrimitive):
    """A quotient of whole numbers, rounded; free if the divisor is zero."""

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
        elif parameters["rounding"] != "truncate" and total.dtype.itemsize < 8:  # a machine's type lacks twice the rest
            total, n = total.astype(np.int64), n.astype(np.int64)
        return ROUNDINGS[parameters["rounding"]](total, n)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        error = whole_error(y, xs, es)
        zero = np.asarray(xs[1].v == 0, bool)
        if zero.any():
            error.flags = error.flags | np.broadcast_to(zero, y.v.shape).astype(np.uint8) * FREE
        return error


class Mod(Primitive):
    """The remainder of a division, with the divisor's or the dividend's sign; for whole numbers, free by zero."""

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
        if y.is_integer or xs[1].is_integer:
            error = whole_error(y, xs, es)
            zero = np.asarray(xs[1].v == 0, bool)
            if zero.any():
                error.flags = error.flags | np.broadcast_to(zero, y.v.shape).astype(np.uint8) * FREE
            return error
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


class Shift(IntegerPrimitive):
    """Bits shifted to the left (wrapped) or right; free for negative amounts, and for the width or more."""

    name, text = "shift", "{0} shifted by {1} bits to the {direction}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        first, second = value.aligned(others[0])
        bits = limits(value.type)[1].bit_length() + (not value.type.startswith("uint"))
        shifted = first.node("shift", second, direction=p["direction"], bits=bits)
        return shifted.fit("wraps") if p["direction"] == "left" else shifted

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        a, by = xs
        by = np.where((by < 0) | (by >= p["bits"]), 0, by).astype(object if p["bits"] > 32 else np.int64)
        a = a.astype(object) if p["bits"] > 30 else a
        return np.asarray(a << by if p["direction"] == "left" else a >> by)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        error = whole_error(y, xs, es)
        outside = np.asarray((xs[1].v < 0) | (xs[1].v >= p["bits"]), bool)
        if outside.any():
            error.flags = error.flags | np.broadcast_to(outside, y.v.shape).astype(np.uint8) * FREE
        return error


class Power(IntegerPrimitive):
    """A whole number to the power of another; free for a negative power, unless the base is 1 or -1."""

    name, overflows, text = "whole_power", True, "{0} to the power of {1}"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return each(_power, *(x.astype(object) for x in xs))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        error = whole_error(y, xs, es)
        outside = np.asarray((xs[1].v < 0) & (np.abs(xs[0].v) != 1), bool)
        if outside.any():
            error.flags = error.flags | np.broadcast_to(outside, y.v.shape).astype(np.uint8) * FREE
        return error


_LONGEST = 1 << 14
"""The most bits of a power that is computed in full."""


def _power(base: int, power: int) -> int:
    base, power = int(base), int(power)
    if (
        power * base.bit_length() > _LONGEST and abs(base) > 1
    ):  # beyond every type: only its sign and its last 64 bits count
        return (-1 if base < 0 and power % 2 else 1) * (1 << _LONGEST) + pow(base, power, 1 << 64)
    if power >= 0:
        return int(base**power)
    return (int(base) if power % 2 else 1) if abs(base) == 1 else 0


def carried(operation: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """Return an operation's result for exact values: in gmpy2 if an operand is, in Python's integers if they grow."""
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        return exact_integers(operation, a, b)
    if object in (a.dtype, b.dtype) and np.float64 in (a.dtype, b.dtype):
        a, b = widened(a), widened(b)
    return np.asarray(operation(a, b))


class Add(Primitive):
    """The sum of two operands."""

    name, rational, overflows, elementwise = "add", True, True, True
    text = "{0} + {1}: u·|y|, nothing where exact"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return carried(np.add, *xs)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return _added(c, y, xs, es, subtracts=False)


class Sub(Add):
    """The difference of two operands."""

    name = "sub"
    text = "{0} - {1}: u·|y|, nothing where exact"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return carried(np.subtract, *xs)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return _added(c, y, xs, es, subtracts=True)


def _added(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], *, subtracts: bool) -> Error:
    if y.is_integer:
        return whole_error(y, xs, es)
    rule, e = "subtract" if subtracts else "add", es[0].e + es[1].e
    flags = together(es[0].flags, flip(es[1].flags, np.True_) if subtracts else es[1].flags)
    if not isinstance(e, float) and not np.equal(e, 0).any():
        return charged(c, y, e, flags, rule=rule, exact=False)
    exact = y.fact("no rest", lambda: _no_rest(xs[0].f, -xs[1].f if subtracts else xs[1].f))
    return charged(c, y, e, flags, rule=rule, exact=exact if not exact.all() else True)


def _no_rest(a: Array, b: Array) -> Array:
    """Return a mask of the sums that are float64 numbers; infinities and NaN count as such."""
    return np.asarray(two_sum(a, b)[1] == 0)


class Mul(Primitive):
    """The product of two operands."""

    name, rational, overflows, elementwise = "mul", True, True, True
    text = "{0} · {1}: u·|y|, nothing where exact"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return carried(np.multiply, *xs)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        if y.is_integer:
            return whole_error(y, xs, es)
        (a, b), (ea, eb) = xs, es
        exact: Any = True
        if (
            c.storage.precision >= 53 and y.v.dtype != object
        ):  # the carrier itself, which represents its own rounded results
            exact = y.fact("no rest", lambda: _few_bits(a, b))
        if ea.none and eb.none:
            return charged(c, y, 0.0, 0, rule="multiply", exact=exact)
        # zero times any finite number is zero
        parts = [c.spread(eb.e, a.size), c.spread(ea.e, b.size), np.multiply(ea.e, eb.e)]
        e = parts[0] + parts[1] + parts[2]
        if np.isnan(e.max(initial=0.0)):
            e = without_nan(parts[0], 0.0) + without_nan(parts[1], 0.0) + without_nan(parts[2], 0.0)
        flags: Flags = 0
        if not (isinstance(ea.flags, int) and isinstance(eb.flags, int)):
            flags = np.bitwise_or(flip(ea.flags, b.f < 0), flip(eb.flags, a.f < 0))
            eta = c.storage.eta
            endless = [np.bitwise_and(error.flags, INFINITE) > 0 for error in es]
            # by a number that may be zero with either sign because of its error, or that may be infinite
            vague = endless[0] & (np.abs(b.f) <= c.bound(eb.e) + eta) | endless[0] & endless[1]
            vague = vague | endless[1] & (np.abs(a.f) <= c.bound(ea.e) + eta)
            flags = (np.where(vague, flags | EXCEPTIONAL, flags) & ~SIGNED_ZERO).astype(np.uint8)
        if not y.all_finite:  # an infinity, times a number that may be zero, or of the other sign, because of its error
            open_ = ~a.finite & _around_zero(c, b, eb) | ~b.finite & _around_zero(c, a, ea)
            if (open_ := open_ & np.isinf(y.f)).any():
                flags = np.where(open_, flags | np.uint8(EXCEPTIONAL), np.uint8(flags)).astype(np.uint8)
        return charged(c, y, e, flags, rule="multiply", exact=exact)


def _around_zero(c: Arithmetic, x: Known, error: Error) -> Array:
    """Return a mask of the numbers whose errors reach zero."""
    return np.asarray(x.finite & np.greater(error.e, 0) & (x.size <= c.bound(error.e)))


def _few_bits(a: Known, b: Known) -> Array:
    """Return a mask of the products that certainly are float64 numbers, by their highest and lowest set bits."""
    width = np.frexp(a.clean)[1] - a.bit + np.frexp(b.clean)[1] - b.bit
    zero = (a.clean == 0) | (b.clean == 0)
    return np.asarray(zero | ((width <= 53) & (a.bit + b.bit >= -1074)))


class Div(Primitive):
    """The quotient of two operands: two roundings, since an implementation may multiply by a rounded reciprocal.

    A spec's `precision` replaces this: a number of ulp, even if exact, except for zeros and infinities.
    """

    name, rational, elementwise = "div", True, True
    text = "{0} / {1}: 2·u·|y|, u·|y| by a power of two, nothing where exact"

    @classmethod
    def record(cls, value: Any, *others: Any, **_: Any) -> Any:
        if value.kind == "int":
            raise TypeError("whole numbers are divided by quotient(), which has a rounding mode")
        ulp = value.graph.precision.get("div")
        return super().record(value, *others, **({} if ulp is None else {"ulp": ulp}))

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return carried(np.divide, *xs)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        (a, b), (ea, eb) = xs, es
        budget = 2.0 * p["ulp"] * (a.f != 0) if "ulp" in p else None
        if ea.none and eb.none:
            charge = _roundings(c, y, a, b) if budget is None else budget
            return charged(c, y, 0.0, 0, charge, rule="divide", exact=False)
        reach = c.bound(eb.e)
        below = np.abs(b.f) - reach
        e = (ea.e + c.spread(eb.e, y.size)) / (below if c.norm == 1 else below * below)
        infinite = np.isinf(b.f)
        e = np.where(infinite, 0.0, without_nan(e))
        flags = _divided(c, xs, es)
        singular = (below <= 0) & np.greater(reach, 0) & ~infinite
        if singular.any():  # an infinity that is due to a divisor's error may also be any number
            flags = flags | np.where(singular, np.where(y.finite, EXCEPTIONAL, FREE), np.uint8(0))
            e = np.where(singular, np.inf, e)
        if not isinstance(eb.flags, int):  # a divisor that may be infinite, but not NaN, gives zero
            zero = np.bitwise_and(eb.flags, INFINITE) > 0
            e = np.where(zero, np.maximum(e, c.of_bound(y.size)), e)
        exact = np.equal(ea.e, 0) & np.equal(eb.e, 0)
        roundings: Any = 2.0
        if budget is not None:
            roundings = np.where(exact, budget, 2.0 * p["ulp"])
        elif exact.any():
            roundings = np.where(exact, _roundings(c, y, a, b), 2.0)
        return charged(c, y, e, flags, roundings, rule="divide", exact=False)


def _divided(c: Arithmetic, xs: Sequence[Known], es: Sequence[Error]) -> Flags:
    (a, b), (ea, eb) = xs, es
    if isinstance(ea.flags, int) and isinstance(eb.flags, int):
        return np.uint8(0)
    flags = unsigned(flip(ea.flags, b.f < 0))
    endless = np.bitwise_and(eb.flags, INFINITE) > 0
    both = endless & ((np.bitwise_and(ea.flags, EXCEPTIONAL) > 0) | np.isinf(a.f))
    open_sign = (np.bitwise_and(ea.flags, INFINITE) > 0) & (np.abs(b.f) <= c.bound(eb.e))
    flags = np.where(both | open_sign, flags | EXCEPTIONAL, flags)
    return (flags | np.bitwise_and(eb.flags, NAN | 8)).astype(np.uint8)


def _roundings(c: Arithmetic, y: Known, a: Known, b: Known) -> Array:
    """Return the number of roundings of a quotient of operands without error: none if it is exact."""
    key = ("roundings", c.storage)
    return y.fact(key, lambda: _count_roundings(c, y, a, b))


def _count_roundings(c: Arithmetic, y: Known, a: Known, b: Known) -> Array:
    power = np.abs(np.frexp(b.clean)[0]) == 0.5
    held = y.held(c.storage)
    if not held.any():
        return np.where(power, 1.0, 2.0)
    return np.where(held & (power | _no_remainder(y, a, b)), 0.0, np.where(power, 1.0, 2.0))


def _no_remainder(y: Known, a: Known, b: Known) -> Array:
    """Return a mask: whether the quotient, rounded to float64, times the divisor equals the dividend exactly."""
    few = (y.bit + b.bit) > -NO_BIT  # products of at most 53 bits, by their lowest set bits
    width = np.frexp(y.clean)[1] - y.bit + np.frexp(b.clean)[1] - b.bit
    return np.asarray(few & ((width <= 53) | (y.clean == 0)) & (y.clean * b.clean == a.clean))


class Neg(Primitive):
    """The operand with the opposite sign."""

    name, work, rational, overflows, keeps_zeros = "neg", "selects", True, True, True
    text = "-{0}: exact"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return exact_integers(np.negative, *xs) if xs[0].dtype.kind in "iu" else np.asarray(-xs[0])

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        flags, instead = flip(es[0].flags, np.True_), es[0].instead
        if y.is_integer or not es[0].quiet:
            return Error(es[0].e, flags, instead=None if instead is None else -instead)
        minus = y.fact("from plus", lambda: (y.f == 0) & np.signbit(y.f))
        if not isinstance(flags, int):
            minus = minus & (flags & (SIGNED_ZERO | ZERO) == 0)
        return Error(es[0].e, flags | minus.astype(np.uint8) * NEGATIVE_ZERO if minus.any() else flags)


class Abs(Primitive):
    """The operand's magnitude."""

    name, work, rational, overflows = "abs", "selects", True, True
    text = "|{0}|: exact"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        if xs[0].dtype.kind in "iu":
            return exact_integers(np.abs, *xs)
        return np.asarray(np.abs(xs[0]))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        flags = unsigned(es[0].flags)
        if not isinstance(flags, int):
            infinite = flags & INFINITE
            flags = np.where(infinite, (flags & ~INFINITE) | 1, flags).astype(np.uint8)
        return Error(es[0].e, flags)


class Sign(Primitive):
    """-1, 0 or 1; NaN for NaN."""

    name, work, rational = "sign", "selects", True
    text = "sign of {0}: open where its error reaches zero"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        x = xs[0]
        if x.dtype != object:
            return np.asarray(np.sign(x))
        sign = (x > 0).astype(np.int64) - (x < 0).astype(np.int64)
        return sign if are_whole(x) else np.where(np.asarray(x != x, bool), np.nan, sign)  # noqa: PLR0124 - NaN

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        if es[0].none:
            return Error()
        reach = c.bound(es[0].e)
        crossed = (np.abs(xs[0].f) <= reach) & np.greater(reach, 0)
        e = np.where(crossed, 1 + np.abs(y.f), 0.0)
        flags = es[0].flags
        if isinstance(flags, int):
            return Error(c.of_bound(e), 0)
        e = np.where(flags & INFINITE, 1 + np.abs(y.clean), e)
        return Error(c.of_bound(e), flags & (NAN | 8))


class Undefined(Primitive):
    """The first operand, with any value admitted where the second is true."""

    name, work, keeps_zeros = "free", "moves", True
    text = "{0}, any value where {1}"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        a, mask = xs
        if len(a) == len(mask):
            return a
        return np.broadcast_to(a, (max(len(a), len(mask)) if len(a) and len(mask) else 0, *a.shape[1:]))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        flags = es[0].flags | np.broadcast_to(xs[1].v, y.v.shape).astype(np.uint8) * FREE
        return Error(es[0].e, flags, ends=es[0].ends)

    @classmethod
    def native(cls, m: Any, *xs: Array, **_: Any) -> Array:
        return xs[0]


class AnyZero(Primitive):
    """The operand, with zeros of either sign."""

    name, work, frees_zeros = "any_zero", "moves", True
    text = "{0}, a zero of either sign"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return xs[0]

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return Error(es[0].e, unsigned(es[0].flags) | (y.f == 0).astype(np.uint8) * ZERO)

    @classmethod
    def native(cls, m: Any, *xs: Array, **_: Any) -> Array:
        return xs[0]


class OrZero(Primitive):
    """The operand or zero, chosen at random."""

    name, work = "or_zero", "moves"
    text = "{0}, or zero"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return xs[0]

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return Error(es[0].e, es[0].flags | np.full(y.v.shape, ZERO, np.uint8))

    @classmethod
    def native(cls, m: Any, *xs: Array, **_: Any) -> Array:
        return xs[0]


class Reciprocal(Primitive):
    """One divided by the operand; the spec may give a budget in ulp, for approximate reciprocals."""

    name, rational, elementwise = "reciprocal", True, True
    text = "1 / {0}: 2·u·|y|, u·|y| by a power of two, nothing where exact; or a budget of the spec's"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        budget = p.get("ulp", value.graph.precision.get("reciprocal"))
        return value.node("reciprocal", **({} if budget is None else {"ulp": budget}))

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return carried(np.divide, np.ones((1,) * xs[0].ndim), xs[0])

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        return Div.bound(c, y, (Known(np.ones((1,) * xs[0].v.ndim)), xs[0]), (Error(), es[0]), **p)
