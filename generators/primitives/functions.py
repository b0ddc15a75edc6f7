"""Elementary functions: a budget in ulp, their slope within an operand's error, and their limits at infinities."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import gmpy2
import numpy as np

from ...cases.elements import Array
from . import elementary
from .arithmetic import are_whole
from .errors import (
    EXCEPTIONAL,
    FREE,
    INFINITE,
    NAN,
    NEGATIVE,
    POSITIVE,
    Arithmetic,
    Error,
    Flags,
    Known,
    Size,
    charged,
    each,
    unsigned,
    widened,
    wild,
    without_nan,
)
from .primitive import Primitive

_PI: Final = 3.1415926535897936
_NUMPY: Final = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}


class Function(Primitive):
    """A function of real numbers.

    `ulp`: the budget in units in the last place, from OpenCL C 3.0's tables of relative error: full profile, and half
    for storage of less than 24 bits; a spec's `precision` replaces it. `domain`: outside it, the result is NaN.
    `at_ends`: the values at plus and at minus infinity. `span`: the range of values, apart from the budget. `exact_at`:
    the operands with exact results.
    """

    elementwise = True
    ulp: ClassVar[tuple[float, float]]
    domain: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    at_ends: ClassVar[tuple[float, float]]
    span: ClassVar[tuple[float, float] | None] = None
    exact_at: ClassVar[tuple[float, ...]] = (0.0,)

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        """Record the function; with `shifted`, even an exact result is charged, where the operand may have an offset.

        The offset cancels later: softmax may subtract the largest element, or another number, or none.
        """
        shifted = {"shifted": True} if p.get("shifted") else {}
        return value.node(cls.name, ulp=p.get("ulp", value.graph.precision.get(cls.name)), **shifted)

    @classmethod
    def exact(cls, *xs: Array, **_: Any) -> Array:
        x = xs[0]
        if x.dtype == object:
            return each(getattr(gmpy2, cls.name), x)
        return np.asarray(getattr(elementary, cls.name)(x))

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        """Return how far the function moves from y = f(x) if its operand has the error e; NaN if that is unknown."""
        raise NotImplementedError

    @classmethod
    def bound(cls, c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        x, error, flags = xs[0], es[0], unsigned(es[0].flags)
        e: Size = 0.0
        if not error.quiet:
            e, flags = cls._carried(c, y, x, error)
        if not isinstance(flags, int):
            e, flags = cls._of_infinities(c, y, e, flags)
        budget = p["ulp"] if p["ulp"] is not None else cls.ulp[c.storage.precision < 24]
        roundings = cls._roundings(c, y, x, e, budget, shifted=p.get("shifted", False))
        total = charged(c, y, e, flags, roundings, rule=cls.name, exact=False)
        if cls.span is not None and not isinstance(e, float):
            most = np.maximum(cls.span[1] - y.clean, y.clean - cls.span[0])
            own = 2 * budget * c.storage.roundoff * max(abs(s) for s in cls.span)
            total.e = np.minimum(total.e, c.of_bound(most + own))
        return total

    @classmethod
    def _roundings(cls, c: Arithmetic, y: Known, x: Known, e: Size, budget: float, *, shifted: bool) -> Size:
        """Return the budget in unit roundoffs: an ulp is at most two of them; zero if the value is exact."""
        exact = y.fact(("exact", cls.name), lambda: cls.is_exact(x, y)) & np.equal(e, 0)
        exact = exact & ~x.finite if shifted else exact
        if not exact.any():
            return 2.0 * budget
        return np.where(exact & y.held(c.storage), 0.0, 2.0 * budget)

    @classmethod
    def roundings(cls, c: Arithmetic, shapes: Sequence[tuple[int, ...]], **p: Any) -> float:
        return 2.0 * float(p["ulp"] if p["ulp"] is not None else cls.ulp[c.storage.precision < 24])

    @classmethod
    def is_exact(cls, x: Known, y: Known) -> Array:
        """Return a mask of the values that are exact in every implementation."""
        return np.asarray(np.isin(x.f, cls.exact_at) | np.isinf(x.f))

    @classmethod
    def _carried(cls, c: Arithmetic, y: Known, x: Known, error: Error) -> tuple[Size, Flags]:
        off = np.broadcast_to(c.bound(error.e), x.v.shape)
        low, high = x.f - off, x.f + off
        infinite = cls.surely_infinite(low)
        e = np.where((off == 0) | infinite, 0.0, cls.reach(x.f, y.f, off))
        outside = (off > 0) & ((low < cls.domain[0]) | (high > cls.domain[1]))
        surely = (high < cls.domain[0]) | (low > cls.domain[1])
        # from an infinity, an error may lead back to any number
        lost = (off > 0) & x.finite & ~y.finite & ~surely & ~infinite
        e = without_nan(e)
        flags, outside = unsigned(error.flags), outside | np.isinf(e)
        if outside.any():
            flags = flags | np.where(outside & ~surely, EXCEPTIONAL, np.uint8(0))
        if lost.any():
            flags = flags | np.where(lost, FREE, np.uint8(0))
        return c.of_bound(e), flags

    @classmethod
    def surely_infinite(cls, low: Array) -> Array:
        """Return a mask: whether the result overflows float64 for every operand that is at least `low`."""
        return np.asarray(np.zeros(low.shape, bool))

    @classmethod
    def _of_infinities(cls, c: Arithmetic, y: Known, e: Size, flags: Flags) -> tuple[Size, Flags]:
        """Return error and flags for operands that may be infinite, from the function's limits."""
        given = np.bitwise_or(flags, np.uint8(0))
        outcomes = given & ~INFINITE
        for bit, limit in zip((POSITIVE, NEGATIVE), cls.at_ends, strict=True):
            maybe = given & bit > 0
            if not np.any(maybe):
                continue
            if math.isfinite(limit):
                e = np.where(maybe, np.maximum(e, c.of_bound(np.abs(y.clean - limit))), e)
                outcomes = np.where(maybe & ~y.finite, outcomes | FREE, outcomes)
            else:
                outcome = NAN if math.isnan(limit) else POSITIVE if limit > 0 else NEGATIVE
                outcomes = np.where(maybe, outcomes | outcome, outcomes)
        return e, outcomes.astype(np.uint8)

    @classmethod
    def native(cls, m: Any, *xs: Array, **p: Any) -> Array:
        wide = xs[0].astype(np.float64)
        with np.errstate(all="ignore"):
            if cls.name in ("erf", "erfc"):
                function = np.vectorize(getattr(math, cls.name), otypes=[float])
                return np.asarray(m.rounded(function(wide) if wide.size else wide))
            return np.asarray(m.rounded(getattr(np, _NUMPY.get(cls.name, cls.name))(wide)))


class Exp(Function):
    """e to the power of the operand."""

    name, ulp, at_ends, text = "exp", (3, 2), (math.inf, 0.0), "exp({0}): 3 ulp (half: 2)"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        grown = np.where(y == 0, 0.0, y) * elementary.expm1(np.minimum(e, 700.0))
        return np.where(e < 700, grown, elementary.exp(x + e))

    @classmethod
    def surely_infinite(cls, low: Array) -> Array:
        return np.asarray(low > 709.79)


class Expm1(Exp):
    """e to the power of the operand, less one."""

    name, ulp, at_ends, text = "expm1", (3, 2), (math.inf, -1.0), "exp({0}) - 1: 3 ulp (half: 2)"
    span = None

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        return np.asarray(np.where(e < 700, (y + 1) * elementary.expm1(np.minimum(e, 700.0)), elementary.exp(x + e)))


class Log(Function):
    """The natural logarithm."""

    name, ulp, at_ends, text = "log", (3, 2), (math.inf, math.nan), "log({0}): 3 ulp (half: 2)"
    domain, exact_at = (0.0, math.inf), (0.0, 1.0)

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        return np.asarray(np.where(e >= x, np.inf, -elementary.log1p(-np.minimum(e / x, 1.0))))

    @classmethod
    def bound(cls, c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        """Return the error; an operand that may be 0 gives minus infinity, or the logarithm of a number of its type."""
        error, x = super().bound(c, y, xs, es, **p), xs[0]
        if cls is not Log or es[0].quiet or c.norm != 1:
            return error
        off = np.broadcast_to(c.bound(es[0].e), x.v.shape)
        open_ = (off > 0) & (x.f >= 0) & (off >= x.f) & np.isfinite(off)
        open_ = open_ & (np.bitwise_and(es[0].flags, INFINITE | FREE) == 0)
        if not open_.any():
            return error
        least, most = math.log(c.storage.eta), elementary.log(np.where(open_, x.f + off, 1.0))
        far = np.where(y.finite, np.maximum(most - y.clean, y.clean - least), (most - least) / 2)
        e = np.where(open_, far - 16 * c.storage.roundoff * least, error.e)
        lost = open_ & ~y.finite
        flags = np.where(open_, np.bitwise_and(error.flags, NAN) | NEGATIVE, error.flags)
        instead = np.where(lost, (most + least) / 2, np.nan) if lost.any() else None
        return Error(e, np.where(lost, flags | FREE, flags).astype(np.uint8), instead=instead)


class Log1p(Log):
    """The natural logarithm of one more than the operand."""

    name, ulp, text = "log1p", (2, 2), "log(1 + {0}): 2 ulp (half: 2)"
    domain, exact_at = (-1.0, math.inf), (0.0, -1.0)

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        return np.asarray(np.where(e >= 1 + x, np.inf, -elementary.log1p(-np.minimum(e / (1 + x), 1.0))))


class Sqrt(Function):
    """The square root."""

    name, ulp, at_ends, domain = "sqrt", (3, 1), (math.inf, math.nan), (0.0, math.inf)
    text = "sqrt({0}): 3 ulp (half: 1), nothing where exact"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        below = e / (y + np.sqrt(np.maximum(x - e, 0.0)))
        return np.asarray(np.where(y == 0, np.sqrt(e), below))

    @classmethod
    def is_exact(cls, x: Known, y: Known) -> Array:
        root = y.clean
        narrow = (y.bit >= np.frexp(root)[1] - 26) | (root == 0)  # its square is a float64 number
        return np.asarray(np.isinf(x.f) | (narrow & x.floats & (root * root == x.clean) & x.finite))

    @classmethod
    def native(cls, m: Any, *xs: Array, **p: Any) -> Array:
        return np.asarray(m.rounded(np.sqrt(xs[0].astype(np.float64))))


class Rsqrt(Primitive):
    """One divided by the square root."""

    name, text = "rsqrt", "1 / sqrt({0})"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        return value.sqrt().reciprocal()


class Erf(Function):
    """The error function."""

    name, ulp, at_ends, span = "erf", (16, 4), (1.0, -1.0), (-1.0, 1.0)
    text = "erf({0}): 16 ulp (half: 4)"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        near = np.maximum(np.abs(x) - e, 0.0)
        return np.asarray(1.1283791670955128 * e * elementary.exp(-near * near))


class Erfc(Erf):
    """The complement of the error function, 1 - erf."""

    name, at_ends, span, text = "erfc", (0.0, 2.0), (0.0, 2.0), "erfc({0}): 16 ulp (half: 4)"


class Probit(Function):
    """The quantile of the normal distribution: the inverse of (1 + erf(x/√2)) / 2."""

    name, ulp, at_ends, domain = "probit", (16, 4), (math.nan, math.nan), (0.0, 1.0)
    exact_at, text = (0.0, 0.5, 1.0), "the normal distribution's quantile of {0}: 16 ulp (half: 4)"

    @classmethod
    def exact(cls, *xs: Array, **_: Any) -> Array:
        wide = xs[0].dtype == object
        with gmpy2.context(precision=160):
            quantiles = each(functools.partial(_quantile, bits=150 if wide else _BITS_FOR_FLOATS), widened(xs[0]))
        return quantiles if wide else quantiles.astype(np.float64)

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        moved = e > 0
        far = np.zeros(x.shape)
        ends = (cls.exact(np.asarray(np.clip(x[moved] + s * e[moved], 0.0, 1.0), float)) for s in (-1, 1))
        far[moved] = np.maximum(*(np.abs(end - y[moved]) for end in ends))
        return far

    @classmethod
    def native(cls, m: Any, *xs: Array, **p: Any) -> Array:
        return np.asarray(m.rounded(cls.exact(xs[0].astype(np.float64))))


_BITS_FOR_FLOATS: Final = 90
"""Correct bits of a quantile that is rounded to float64: the chance that they do not decide it is 2**-36."""


def _quantile(p: Any, bits: int) -> Any:
    """Return the quantile of a probability, correct to so many bits, by Newton's method from Wichura's approximation.

    Source: Wichura, Algorithm AS 241, Applied Statistics 37 (1988), in Python's `statistics`.
    """
    if p != p or not 0 <= p <= 1:  # noqa: PLR0124 - NaN
        return gmpy2.mpfr("nan")
    if p in (0, 1):
        return gmpy2.mpfr("inf" if p else "-inf")
    low = min(p, 1 - p)
    root, scale = gmpy2.sqrt(gmpy2.mpfr(2)), gmpy2.sqrt(2 * gmpy2.const_pi())
    start = float(low)
    x = gmpy2.mpfr(statistics.NormalDist().inv_cdf(start)) if start else -gmpy2.sqrt(-2 * gmpy2.log(2 * low))
    for _ in range(60 if low < 0.5 else 0):
        tail = gmpy2.erfc(-x / root) / 2
        step = gmpy2.log(tail / low) * tail * scale * gmpy2.exp(x * x / 2)
        x = x - step
        # the logarithm of the tail is concave, and its second derivative is at most 0.8 of its first: Newton's method
        # converges from the left, and leaves less than the square of its step
        if step * step <= abs(x) * gmpy2.mpfr(2) ** -bits:
            break
    return x if p <= 0.5 else -x


class Tanh(Function):
    """The hyperbolic tangent."""

    name, ulp, at_ends, span = "tanh", (5, 2), (1.0, -1.0), (-1.0, 1.0)
    text = "tanh({0}): 5 ulp (half: 2)"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        return np.asarray(e / elementary.cosh(np.clip(np.abs(x) - e, 0.0, 350.0)) ** 2)


class Sin(Function):
    """The sine."""

    name, ulp, at_ends, span, text = "sin", (4, 2), (math.nan, math.nan), (-1.0, 1.0), "sin({0}): 4 ulp (half: 2)"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        return np.asarray(e * np.minimum(np.sqrt(np.maximum((1 - y) * (1 + y), 0.0)) + e, 1.0))


class Cos(Sin):
    """The cosine."""

    name, text = "cos", "cos({0}): 4 ulp (half: 2)"


class Tan(Function):
    """The tangent."""

    name, ulp, at_ends, text = "tan", (5, 2), (math.nan, math.nan), "tan({0}): 5 ulp (half: 2)"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        t = np.where(e < 1.5, elementary.tan(np.minimum(e, 1.5)), np.inf)
        left = 1 - np.abs(y) * t
        return np.asarray(np.where(left > 0, (1 + y * y) * t / left, np.inf))


class Asin(Function):
    """The inverse sine."""

    name, ulp, at_ends, domain, span = "asin", (4, 2), (math.nan, math.nan), (-1.0, 1.0), (-_PI / 2, _PI / 2)
    text = "asin({0}): 4 ulp (half: 2)"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        far = np.abs(x) + e
        return np.asarray(np.where(far < 1, e / np.sqrt((1 - np.minimum(far, 1.0)) * (1 + far)), _PI))


class Acos(Asin):
    """The inverse cosine."""

    name, span, exact_at, text = "acos", (0.0, _PI), (1.0,), "acos({0}): 4 ulp (half: 2)"


class Atan(Function):
    """The inverse tangent."""

    name, ulp, at_ends, span = "atan", (5, 2), (_PI / 2, -_PI / 2), (-_PI / 2, _PI / 2)
    text = "atan({0}): 5 ulp (half: 2)"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        near = np.maximum(np.abs(x) - e, 0.0)
        return np.asarray(e / (1 + near * near))

    @classmethod
    def is_exact(cls, x: Known, y: Known) -> Array:
        return np.asarray(x.f == 0)


class Sinh(Function):
    """The hyperbolic sine."""

    name, ulp, at_ends, text = "sinh", (4, 2), (math.inf, -math.inf), "sinh({0}): 4 ulp (half: 2)"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        return np.asarray(e * elementary.cosh(np.abs(x) + e))


class Cosh(Function):
    """The hyperbolic cosine."""

    name, ulp, at_ends, text = "cosh", (4, 2), (math.inf, math.inf), "cosh({0}): 4 ulp (half: 2)"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        return np.asarray(e * elementary.sinh(np.abs(x) + e))


class Asinh(Function):
    """The inverse hyperbolic sine."""

    name, ulp, at_ends, text = "asinh", (4, 2), (math.inf, -math.inf), "asinh({0}): 4 ulp (half: 2)"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        near = np.minimum(np.maximum(np.abs(x) - e, 0.0), 1e150)
        return np.asarray(e / np.sqrt(1 + near * near))


class Acosh(Function):
    """The inverse hyperbolic cosine."""

    name, ulp, at_ends, domain, exact_at = "acosh", (4, 2), (math.inf, math.nan), (1.0, math.inf), (1.0,)
    text = "acosh({0}): 4 ulp (half: 2)"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        low = np.clip(x - e, 1.0, 1e150)
        steep = e / np.sqrt((low - 1) * (low + 1))
        return np.asarray(np.where(x - e > 1, steep, elementary.acosh(np.maximum(x + e, 1.0))))


class Atanh(Function):
    """The inverse hyperbolic tangent."""

    name, ulp, at_ends, domain = "atanh", (5, 2), (math.nan, math.nan), (-1.0, 1.0)
    text = "atanh({0}): 5 ulp (half: 2)"

    @classmethod
    def reach(cls, x: Array, y: Array, e: Array) -> Array:
        far = np.abs(x) + e
        return np.asarray(np.where(far < 1, e / ((1 - np.minimum(far, 1.0)) * (1 + far)), np.inf))

    @classmethod
    def is_exact(cls, x: Known, y: Known) -> Array:
        return np.asarray(np.isin(x.f, (0.0, 1.0, -1.0)))


class Within(Primitive):
    """The operand, with its bounds clamped to limits that no usual formula exceeds; the value is not clamped."""

    name, work, rational, keeps_zeros = "within", "moves", True, True
    text = "{0}, which stays within [{low}, {high}]"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        return value.node("within", low=float(others[0]), high=float(others[1]))

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return xs[0]

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        if es[0].quiet:
            return es[0]
        most = np.maximum(p["high"] - y.clean, y.clean - p["low"])
        return Error(np.minimum(es[0].e, c.of_bound(np.maximum(most, 0.0))), es[0].flags)


class Sigmoid(Primitive):
    """1 / (1 + exp(-x)), or by a hyperbolic tangent; the results of both are admitted, between 0 and 1."""

    name, text = "sigmoid", "sigmoid of {0}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        by_exp = (1.0 + (-value).exp()).reciprocal()
        return by_exp.either(0.5 + 0.5 * (0.5 * value).tanh()).within(0.0, 1.0)


class Pow(Primitive):
    """The first operand to the power of the second, which may be a whole number of any size."""

    name, text = "pow", "{0} to the power of {1}: 16 ulp (half: 4)"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        first, second = value.aligned(others[0])
        if value.kind == "int":
            return first.node("whole_power", second)
        return first.node("pow", second, ulp=p.get("ulp", value.graph.precision.get("pow")))

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        base, power = xs
        counts = are_whole(power)
        wide = base.dtype == object or (power.dtype == object and not counts)
        with gmpy2.context(precision=160 if wide else 53, emin=-(1 << 30), emax=1 << 30):
            if (only := _only_count(power)) is not None:  # without a call for each element
                result = np.asarray(widened(base) ** gmpy2.mpfr(only), object)
            else:
                bases, powers = np.broadcast_arrays(widened(base), power.astype(object) if counts else widened(power))
                special = np.broadcast_to(_is_special(base, power), bases.shape)
                result = np.empty(bases.shape, object)
                result[special] = each(_power, bases[special], powers[special])
                result[~special] = bases[~special] ** powers[~special]
        return result if wide else result.astype(np.float64)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        (a, b), (ea, eb) = xs, es
        budget = p["ulp"] if p["ulp"] is not None else (16, 4)[c.storage.precision < 24]
        flags: Flags = wild(np.bitwise_or(ea.flags, eb.flags))
        exact = np.equal(ea.e, 0) & np.equal(eb.e, 0) & ((b.f == 0) | (a.f == 0) | (a.f == 1))
        e: Size = 0.0
        if not (ea.quiet and eb.quiet):
            off = np.broadcast_to(c.bound(ea.e), y.v.shape), np.broadcast_to(c.bound(eb.e), y.v.shape)
            below = np.abs(a.f) - off[0]
            # |d log y| <= (|b| + e_b)·|log(1 - e_a/|a|)| + e_b·|log a|
            steep = -elementary.log1p(-np.minimum(off[0] / np.abs(a.f), 1.0))
            moved = (np.abs(b.f) + off[1]) * steep + off[1] * np.abs(elementary.log(np.abs(a.f)))
            grown = np.where(moved < 700, y.size * elementary.expm1(np.minimum(moved, 700.0)), np.inf)
            changed = (off[0] > 0) | (off[1] > 0)
            vague = changed & ((below <= 0) | ((off[1] > 0) & (a.f < 0)) | np.isnan(moved) | ~y.finite)
            e = np.where(changed, np.where(vague, np.inf, grown), 0.0)
            flags = np.where(vague, flags | FREE, flags).astype(np.uint8)
        held = np.where(exact & y.held(c.storage), 0.0, 2.0 * budget) if np.any(exact) else 2.0 * budget
        return charged(c, y, c.of_bound(e), flags, held, rule="pow", exact=False)

    @classmethod
    def roundings(cls, c: Arithmetic, shapes: Sequence[tuple[int, ...]], **p: Any) -> float:
        return 2.0 * float(p["ulp"] if p["ulp"] is not None else (16, 4)[c.storage.precision < 24])

    @classmethod
    def native(cls, m: Any, *xs: Array, **_: Any) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(m.rounded(np.power(xs[0].astype(np.float64), xs[1].astype(np.float64))))


def _only_count(powers: Array) -> int | None:
    """Return the positive whole number that all powers are; None if they are different or other numbers."""
    first = powers.flat[0] if powers.size else 0
    if not (0 < first < 1 << 10) or first != int(first) or not np.all(powers == first):
        return None
    return int(first)


def _is_special(base: Array, power: Array) -> Array:
    """Return a mask of the powers that `_power` computes in another way than gmpy2."""
    with np.errstate(all="ignore"):
        return np.asarray((base == 0) | (abs(base) == 1) | (power == 0), bool)


def _power(base: Any, power: Any) -> Any:
    """Return a power like IEEE 754's pow (clause 9.2.1)."""
    if base == 1 or power == 0:
        return gmpy2.mpfr(1)
    if base == 0 and power < 0:
        odd = gmpy2.is_finite(power) and gmpy2.is_integer(power) and power % 2 == 1
        return gmpy2.mpfr("-inf") if odd and gmpy2.is_signed(base) else gmpy2.mpfr("inf")
    if base == -1 and gmpy2.is_infinite(power):
        return gmpy2.mpfr(1)
    if base == 0 and isinstance(power, int):
        return base if power % 2 == 1 else gmpy2.mpfr(0)  # gmpy2 forgets the sign
    return base**power
