"""Rounding to whole numbers, and casts between element types: exact, or either result if an error crosses a tie."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

import gmpy2
import numpy as np

from ...cases.elements import Array, FloatFormat, element_type
from .arithmetic import largest, whole_error
from .errors import (
    EXCEPTIONAL,
    FREE,
    INFINITE,
    NAN,
    NEGATIVE,
    POSITIVE,
    ZERO,
    Arithmetic,
    Error,
    Flags,
    Known,
    charged,
    each,
    format_of,
    kind_of,
    limits,
    lowest_of,
    unsigned,
)
from .primitive import Primitive

_LARGEST_EXACT: Final = 1 << 53
"""float64 represents all whole numbers up to this one."""


class Rounding(Primitive):
    """A real number rounded to a whole one: exact; either result if its error crosses a decision point."""

    work = "selects"
    floats: ClassVar[Callable[..., Any]]
    precise: ClassVar[Callable[..., Any]]

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        return value if value.kind == "int" else value.node(cls.name)

    @classmethod
    def exact(cls, *xs: Array, **_: Any) -> Array:
        if xs[0].dtype == object:
            return each(lambda v: cls.precise(v) if gmpy2.is_finite(v) else v, xs[0])
        return np.asarray(cls.floats(xs[0]))

    @classmethod
    def bound(cls, c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        if es[0].quiet:
            return Error(0.0, es[0].flags)
        x, e = xs[0], c.bound(es[0].e)
        low, high = cls.exact(x.f - e), cls.exact(x.f + e)
        far = np.maximum(high - y.f, y.f - low)
        return Error(c.of_bound(np.where(y.finite, far, 0.0)), unsigned(es[0].flags))


class Rint(Rounding):
    """To the nearest whole number, ties to even."""

    name, text, floats, precise = "rint", "{0} rounded, half to even", np.rint, gmpy2.rint


class Floor(Rounding):
    """To the largest whole number up to the operand."""

    name, text, floats, precise = "floor", "the floor of {0}", np.floor, gmpy2.rint_floor


class Ceil(Rounding):
    """To the smallest whole number from the operand on."""

    name, text, floats, precise = "ceil", "the ceiling of {0}", np.ceil, gmpy2.rint_ceil


class Trunc(Rounding):
    """Towards zero."""

    name, text, floats, precise = "trunc", "{0} towards zero", np.trunc, gmpy2.rint_trunc


def _away(values: Array) -> Array:
    truncated = np.trunc(values)
    half = np.abs(values - truncated) >= 0.5
    return np.where(half, truncated + np.copysign(1.0, values), truncated)


class Away(Rounding):
    """To the nearest whole number, ties away from zero."""

    name, text, floats, precise = "rint_away", "{0} rounded, half away from zero", staticmethod(_away), gmpy2.rint_round


def rounded_to(form: FloatFormat, values: Array, *, saturate: bool = False) -> Array:
    """Round to a format, to nearest with ties to even; returns float64 for float64, gmpy2.mpfr or Python's integers.

    Numbers beyond the largest one become infinite, or NaN if the format has no infinities, or with `saturate` the
    largest number. So do infinities if the format has none, or with `saturate`, as in ONNX for 8-bit floats.
    """
    exact = values.dtype == object
    floats = values.astype(np.float64)
    finite = np.isfinite(floats)
    numbers = np.where(finite, floats, 0.0)
    if form.precision >= 53:
        rounded = numbers
    elif exact:
        rounded = _nearest_numbers(form, np.where(finite, values, 0))
    else:
        rounded = _nearest_floats(form, numbers)
    rounded = np.where(finite, rounded, floats)
    over = np.abs(rounded) > form.largest
    if over.any():
        sign = np.copysign(1.0, rounded)
        beyond = (
            sign * form.largest if saturate else sign * np.inf if form.infinities else np.full(rounded.shape, np.nan)
        )
        rounded = np.where(over, beyond, rounded)
    if not form.signed and (rounded < 0).any():
        rounded = np.where(rounded < 0, np.nan, rounded)
    return rounded if form.negative_zero else np.where(rounded == 0, 0.0, rounded)


def _nearest_floats(form: FloatFormat, numbers: Array) -> Array:
    exponent = np.frexp(numbers)[1]
    lowest = lowest_of(form) if form.subnormals else form.emin
    grid = np.maximum(exponent - form.precision, lowest)
    return np.asarray(np.copysign(np.ldexp(np.rint(np.ldexp(numbers, -grid)), grid), numbers))


def _nearest_numbers(form: FloatFormat, numbers: Array) -> Array:
    """Round numbers of any size, each once; float64."""
    with gmpy2.context(precision=form.precision, emin=lowest_of(form) + 1, emax=1 << 30, subnormalize=True):
        rounded = numbers * gmpy2.mpfr(1)  # a product is rounded to any precision; a conversion, not to a single bit
    return np.asarray(rounded).astype(np.float64)


class Cast(Primitive):
    """The same number in another type.

    To a float: rounded to nearest, ties to even (`saturate` as in ONNX). From a float to a whole number: towards zero,
    and free if that does not fit. From a whole number to another: wrapped. Text is parsed. `mode` is for powers of two,
    see `power_of_two`. With `signed`, zeros keep their signs, and numbers that round to zero may have either.
    """

    name, work, text = "cast", "selects", "{0} as {to}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        to = str(others[0] if others else p["to"])
        mode = {"mode": str(p["mode"])} if "mode" in p else {}
        saturate = bool(p.get("saturate"))
        signed = {"signed": True} if p.get("signed") else {}
        if to == value.type:
            return value
        return value.node("cast", of=value.type, to=to, saturate=saturate, **mode, **signed)

    @classmethod
    def type(cls, types: Sequence[str], **p: Any) -> str:
        return str(p["to"])

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        x, to, kind = xs[0], p["to"], kind_of(p["of"])
        wanted = kind_of(to)
        if wanted == "text":
            return _as_text(x, kind)
        if kind == "text":
            x, kind = each(_parsed, x), "real"
        if wanted == "bool":
            return np.asarray(x != 0, bool)
        if wanted == "complex":
            return x.astype(np.complex128)
        if kind == "complex":
            x = np.real(x)
        return _to_real(x, kind, p) if wanted == "real" else _to_whole(x, kind, to)

    @classmethod
    def bound(cls, c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        x, error, kind, to = xs[0], es[0], kind_of(p["of"]), p["to"]
        if kind == "real" and kind_of(to) == "real":
            propagated = _rounded_error(c, y, x, error, p)
            vanished = ((y.f == 0) & (x.f != 0)).astype(np.uint8) * ZERO if "signed" in p else 0
            return replace(propagated, flags=propagated.flags | vanished)
        if kind == "real" and kind_of(to) == "int":
            return _truncated(c, y, x, error, to)
        if kind == "real" and kind_of(to) == "bool":
            reach = c.bound(error.e)
            vague = (np.abs(x.f) <= reach) & np.greater(reach, 0)
            return Error(vague.astype(float), error.flags & FREE)
        if kind == "bool" and not error.quiet:
            return Error(0.0, np.greater(error.e, 0) * FREE | error.flags)
        return Error(0.0, whole_error(y, (), (Error(0.0, error.flags),)).flags)

    @classmethod
    def native(cls, m: Any, *xs: Array, **p: Any) -> Array:
        to, x, of = p["to"], xs[0], kind_of(p["of"])
        x = x.astype(np.float64) if of == "real" else x
        if kind_of(to) == "real":  # rounded once to the type, even if a wider one stores it
            x = x.astype(np.int64) if of == "int" and x.dtype.kind not in "iuO" else x
            return np.asarray(m.rounded(cls.exact(x, **p).astype(np.float64)))
        converted = cls.exact(x, **p)
        return converted if kind_of(to) == "text" else converted.astype(element_type(to).dtype)


class Store(Primitive):
    """The same real number as a value of another type, rounded only if the arithmetic stores that type so.

    A formula uses it where a text mixes types without naming a cast: unlike a cast, it leaves a 16-bit value as it is
    in an arithmetic that computes in float32.
    """

    name, rational, text = "store", True, "{0} as {to}: nothing where the storage holds it"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        to = str(others[0] if others else p["to"])
        return value if to == value.type else value.node("store", to=to)

    @classmethod
    def type(cls, types: Sequence[str], **p: Any) -> str:
        return str(p["to"])

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return xs[0]

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return charged(c, y, es[0].e, es[0].flags, rule="convert")


def _to_real(x: Array, kind: str, p: dict[str, Any]) -> Array:
    form = format_of(p["to"])
    if kind != "real":
        x = x.astype(np.float64) if x.dtype == bool or largest(x) <= _LARGEST_EXACT else x.astype(object)
        return _rounded(form, x, p)
    if kind_of(p["of"]) == "real" and not p["saturate"] and "mode" not in p and _holds(form, format_of(p["of"])):
        return x
    return _rounded(form, x, p)


def _holds(form: FloatFormat, other: FloatFormat) -> bool:
    infinities = form.infinities or not other.infinities
    return form.precision >= other.precision and form.emax >= other.emax and infinities


def _rounded(form: FloatFormat, values: Array, p: dict[str, Any]) -> Array:
    if "mode" in p:
        return power_of_two(form, values, saturate=p["saturate"], mode=p["mode"])
    return rounded_to(form, values, saturate=p["saturate"])


def power_of_two(form: FloatFormat, values: Array, *, saturate: bool, mode: str) -> Array:
    """Round to a format that only has powers of two: `up`, `down`, or to the `nearest` one, with 1.5 times one up.

    Numbers out of the format's range become its nearer end with `saturate`, else NaN, like negative numbers.
    """
    floats = values.astype(np.float64)
    smallest = math.ldexp(1.0, form.emin)
    inside = (floats >= smallest) & (floats <= form.largest)
    fraction, exponent = np.frexp(np.where(inside, floats, 1.0))
    least = {"up": fraction > 0.5, "down": np.zeros(fraction.shape, bool), "nearest": fraction >= 0.75}[mode]
    power = np.ldexp(0.5, exponent + least)
    if not saturate:
        return np.where(inside & (power <= form.largest), power, np.nan)
    outside = np.where(floats > form.largest, form.largest, np.where(floats >= 0, smallest, np.nan))
    return np.where(inside, np.minimum(power, form.largest), outside)


def _to_whole(x: Array, kind: str, to: str) -> Array:
    low, high = limits(to)
    if kind == "bool":
        return x.astype(np.int64)
    if kind == "int":
        if not x.size or (low <= int(x.min()) and int(x.max()) <= high):
            return x
        return (x.astype(object) - low) % (high - low + 1) + low
    if x.dtype == object:
        return each(lambda v: _truncated_mpfr(v, low, high), x)
    truncated = np.trunc(x)
    inside = (truncated >= low) & (truncated < float(high + 1))  # NaN is not
    truncated = np.where(inside, truncated, 0.0)
    if high >= 1 << 62:
        return each(int, truncated.astype(object))
    return truncated.astype(np.int64)


def _truncated_mpfr(value: Any, low: int, high: int) -> int:
    """Return a number without its fraction; gmpy2 itself would round it. 0 for numbers that do not fit."""
    return int(gmpy2.rint_trunc(value)) if low - 1 < value < high + 1 else 0


def _rounded_error(c: Arithmetic, y: Known, x: Known, error: Error, p: dict[str, Any]) -> Error:
    """Return the error of a rounded number: rounding is monotone, so its interval's ends are bounds."""
    form = format_of(p["to"])
    if error.quiet or (form.precision >= 53 and c.storage == form):
        return Error(error.e, error.flags if form.negative_zero else unsigned(error.flags))
    flags = unsigned(error.flags)
    e = c.bound(error.e)
    low, high = (_rounded(form, x.f + s * e, p) for s in (-1.0, 1.0))
    up, down = y.finite & ~(high < np.inf), y.finite & ~(low > -np.inf)  # NaN too
    sure = y.finite & (np.isinf(low) & (low == high))
    ends = np.where(up, form.largest, high) - y.f, y.f - np.where(down, -form.largest, low)
    far = np.where(y.finite, np.where(sure, e, np.maximum(*ends)), 0.0)
    if up.any() or down.any():
        up, down = up & ~(sure & (high < 0)), down & ~(sure & (low > 0))
        flags = flags | np.where(up, POSITIVE if form.infinities else NAN, np.uint8(0))
        flags = flags | np.where(down, NEGATIVE if form.infinities else NAN, np.uint8(0))
        far = np.where(np.isnan(far), np.inf, far)
    return Error(c.of_bound(far), flags)


def _truncated(c: Arithmetic, y: Known, x: Known, error: Error, to: str) -> Error:
    low, high = limits(to)
    e = c.bound(error.e)
    ends = np.trunc(x.f - e), np.trunc(x.f + e)
    outside = ~((ends[0] >= low) & (ends[1] < float(high + 1)))
    flags: Flags = outside.astype(np.uint8) * FREE if outside.any() else 0
    if not isinstance(error.flags, int):
        flags = flags | np.where(error.flags & (EXCEPTIONAL | INFINITE | FREE), FREE, np.uint8(0))
    vague = ~outside & (ends[0] != ends[1])
    if not vague.any():
        return Error(0.0, flags)
    lower, upper = (np.where(vague, each(int, np.where(vague, end, 0).astype(object)), y.v) for end in ends)
    far = np.maximum(upper - y.v, y.v - lower).astype(np.float64)
    return Error(c.of_bound(far), flags, ends=(lower, upper))


def _parsed(word: str) -> Any:
    """Return the number in a text, with 200 bits; NaN if it is not a number."""
    try:
        return gmpy2.mpfr(word.strip(), 200)
    except ValueError:
        return gmpy2.mpfr("nan")


def _as_text(x: Array, kind: str) -> Array:
    """Return whole numbers and truth values as text; the reference decides the text of other numbers."""
    if kind == "real":
        raise TypeError("numbers that are not whole have several texts")
    return each(lambda v: str(int(v)), x.astype(object))
