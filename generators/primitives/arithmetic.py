"""Addition, subtraction, multiplication, division, negation, magnitude: one rounding each, none where exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...cases.elements import Array
from ..arithmetic.errors import (
    EXCEPTIONAL,
    FREE,
    INFINITE,
    NAN,
    SIGNED_ZERO,
    ZERO,
    Arithmetic,
    Error,
    Flags,
    Known,
    charged,
    flip,
    together,
    unsigned,
    without_nan,
)
from ..arithmetic.formats import NO_BIT
from ..arithmetic.multiprecision import widened
from .integers import are_whole, whole
from .primitive import Primitive


def carried(operation: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """Return what an operation makes of exact values: in gmpy2 where one is, in Python's integers where they grow."""
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        return whole(operation, a, b)
    if object in (a.dtype, b.dtype) and np.float64 in (a.dtype, b.dtype):
        a, b = widened(a), widened(b)
    return np.asarray(operation(a, b))


class Add(Primitive):
    """The sum of two operands."""

    name, rational, overflows = "add", True, True
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
    rule, e = "subtract" if subtracts else "add", es[0].e + es[1].e
    flags = together(es[0].flags, flip(es[1].flags, np.True_) if subtracts else es[1].flags)
    if not isinstance(e, float) and not np.equal(e, 0).any():
        return charged(c, y, e, flags, rule=rule, exact=False)
    exact = y.fact("no rest", lambda: _no_rest(xs[0].f, -xs[1].f if subtracts else xs[1].f))
    return charged(c, y, e, flags, rule=rule, exact=exact if not exact.all() else True)


def _no_rest(a: Array, b: Array) -> Array:
    """Return where a sum of float64 numbers is one (Knuth's TwoSum); what is not finite counts as such."""
    s = a + b
    t = s - a
    return np.asarray(((a - (s - t)) + (b - t) == 0) | ~np.isfinite(s))


class Mul(Primitive):
    """The product of two operands."""

    name, rational, overflows = "mul", True, True
    text = "{0} · {1}: u·|y|, nothing where exact"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return carried(np.multiply, *xs)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        (a, b), (ea, eb) = xs, es
        exact: Any = True
        if c.storage.precision >= 53 and y.v.dtype != object:  # the carrier itself, which holds whatever it rounded
            exact = y.fact("no rest", lambda: _few_bits(a, b))
        if ea.none and eb.none:
            return charged(c, y, 0.0, 0, rule="multiply", exact=exact)
        # zero times whatever finite number is zero
        parts = [c.spread(eb.e, a.size), c.spread(ea.e, b.size), np.multiply(ea.e, eb.e)]
        e = parts[0] + parts[1] + parts[2]
        if np.isnan(e.max(initial=0.0)):
            e = without_nan(parts[0], 0.0) + without_nan(parts[1], 0.0) + without_nan(parts[2], 0.0)
        flags: Flags = 0
        if not (isinstance(ea.flags, int) and isinstance(eb.flags, int)):
            flags = np.bitwise_or(flip(ea.flags, b.f < 0), flip(eb.flags, a.f < 0))
            eta = c.storage.eta
            endless = [np.bitwise_and(error.flags, INFINITE) > 0 for error in es]
            # by a number that may be zero, whose sign its error leaves open, or that may be infinite itself
            vague = endless[0] & (np.abs(b.f) <= c.bound(eb.e) + eta) | endless[0] & endless[1]
            vague = vague | endless[1] & (np.abs(a.f) <= c.bound(ea.e) + eta)
            flags = (np.where(vague, flags | EXCEPTIONAL, flags) & ~SIGNED_ZERO).astype(np.uint8)
        return charged(c, y, e, flags, rule="multiply", exact=exact)


def _few_bits(a: Known, b: Known) -> Array:
    """Return where a product of float64 numbers surely is one, by their highest and lowest set bits."""
    width = np.frexp(a.clean)[1] - a.bit + np.frexp(b.clean)[1] - b.bit
    zero = (a.clean == 0) | (b.clean == 0)
    return np.asarray(zero | ((width <= 53) & (a.bit + b.bit >= -1074)))


class Div(Primitive):
    """The quotient of two operands: two roundings, since a rounded reciprocal may be multiplied by."""

    name, rational = "div", True
    text = "{0} / {1}: 2·u·|y|, u·|y| by a power of two, nothing where exact"

    @classmethod
    def record(cls, value: Any, *others: Any, **_: Any) -> Any:
        if value.kind == "int":
            raise TypeError("whole numbers are divided by quotient(), which rounds as it is told")
        return super().record(value, *others)

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return carried(np.divide, *xs)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        (a, b), (ea, eb) = xs, es
        if ea.none and eb.none:
            return charged(c, y, 0.0, 0, _roundings(c, y, a, b), rule="divide", exact=False)
        reach = c.bound(eb.e)
        below = np.abs(b.f) - reach
        e = (ea.e + c.spread(eb.e, y.size)) / (below if c.norm == 1 else below * below)
        infinite = np.isinf(b.f)
        e = np.where(infinite, 0.0, without_nan(e))
        flags = _divided(c, xs, es)
        singular = (below <= 0) & np.greater(reach, 0) & ~infinite
        if singular.any():  # an infinity that comes of a divisor's error may be any number as well
            flags = flags | np.where(singular, np.where(y.finite, EXCEPTIONAL, FREE), np.uint8(0))
            e = np.where(singular, np.inf, e)
        if not isinstance(eb.flags, int):  # by what may be an infinity, and no NaN: zero
            zero = np.bitwise_and(eb.flags, INFINITE) > 0
            e = np.where(zero, np.maximum(e, c.of_bound(y.size)), e)
        exact = np.equal(ea.e, 0) & np.equal(eb.e, 0)
        roundings = np.where(exact, _roundings(c, y, a, b), 2.0) if exact.any() else 2.0
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
    """Return how often a quotient of operands without error is rounded: not at all where it is exact."""
    key = ("roundings", c.storage)
    return y.fact(key, lambda: _count_roundings(c, y, a, b))


def _count_roundings(c: Arithmetic, y: Known, a: Known, b: Known) -> Array:
    power = np.abs(np.frexp(b.clean)[0]) == 0.5
    held = y.held(c.storage)
    if not held.any():
        return np.where(power, 1.0, 2.0)
    return np.where(held & (power | _no_remainder(y, a, b)), 0.0, np.where(power, 1.0, 2.0))


def _no_remainder(y: Known, a: Known, b: Known) -> Array:
    """Return where the quotient, rounded to float64, times the divisor is the dividend, exactly."""
    few = (y.bit + b.bit) > -NO_BIT  # products of 53 bits at most, by their lowest set bits
    width = np.frexp(y.clean)[1] - y.bit + np.frexp(b.clean)[1] - b.bit
    return np.asarray(few & ((width <= 53) | (y.clean == 0)) & (y.clean * b.clean == a.clean))


class Neg(Primitive):
    """The operand with the other sign."""

    name, work, rational, overflows, keeps_zeros = "neg", "selects", True, True, True
    text = "-{0}: exact"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return whole(np.negative, *xs) if xs[0].dtype.kind in "iu" else np.asarray(-xs[0])

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return Error(es[0].e, flip(es[0].flags, np.True_))


class Abs(Primitive):
    """The operand's magnitude."""

    name, work, rational, overflows = "abs", "selects", True, True
    text = "|{0}|: exact"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        if xs[0].dtype.kind in "iu":
            return whole(np.abs, *xs)
        return np.asarray(np.abs(xs[0]))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        flags = unsigned(es[0].flags)
        if not isinstance(flags, int):
            infinite = flags & INFINITE
            flags = np.where(infinite, (flags & ~INFINITE) | 1, flags).astype(np.uint8)
        return Error(es[0].e, flags)


class Sign(Primitive):
    """-1, 0 or 1; NaN of NaN."""

    name, work, rational = "sign", "selects", True
    text = "sign of {0}: open where its error reaches zero"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        x = xs[0]
        if x.dtype != object:
            return np.asarray(np.sign(x))
        found = (x > 0).astype(np.int64) - (x < 0).astype(np.int64)
        return found if are_whole(x) else np.where(np.asarray(x != x, bool), np.nan, found)  # noqa: PLR0124 - NaN

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
    """The first operand, and whatever value where the second one holds."""

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
        return Error(es[0].e, es[0].flags | np.broadcast_to(xs[1].v, y.v.shape).astype(np.uint8) * np.uint8(8))

    @classmethod
    def native(cls, m: Any, *xs: Array, **_: Any) -> Array:
        return xs[0]


class OrZero(Primitive):
    """The operand, or zero: which of them is drawn at random."""

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
    """One divided by the operand."""

    name, rational = "reciprocal", True
    text = "1 / {0}: 2·u·|y|, u·|y| by a power of two, nothing where exact"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return carried(np.divide, np.ones((1,) * xs[0].ndim), xs[0])

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return Div.bound(c, y, (Known(np.ones((1,) * xs[0].v.ndim)), xs[0]), (Error(), es[0]))
