"""Conversions between element types: Cast, CastLike, BitCast."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np

from ...cases.elements import Array, ElementType, element_type, numbered, type_of
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw

_FUNNY = ("float8e4m3fnuz", "float8e5m2fnuz")


def cast(c: Call, x: Value) -> Value:
    """Each element converted to the type `to`.

    x: any type; result: the same shape. A float is rounded to nearest; out of range it becomes infinite, or, for float8
    with saturate=1, the type's largest number. An integer loses its higher bits. A float loses its fraction as an
    integer, and is undefined out of range. Zeros are false. Text is parsed as a number. Source: ONNX Cast-1 to 28.
    """
    to = element_type(str(c.output_types["output"]))
    source = element_type(x.type)
    if source.name == to.name:
        return _same(c, x)
    if source.name == "string":
        return _read(c, to.name)
    if to.name == "string":
        return _written(c, x)
    if to.name == "bool":
        if x.kind == "real" and "to-bool-early" in c.clauses and c.open("nan-to-bool", x.isnan()) == "false":
            return ~(x.equal(0) | x.isnan())
        return ~x.equal(0)
    if to.is_integer and x.kind == "real":
        rounded = x.trunc()
        taken = c.open("fraction", ~rounded.equal(x))
        rounded = {"truncate": rounded, "nearest-even": x.rint(), "nearest-away": x.rint_away()}[taken]
        inside = (rounded >= float(to.smallest)) & (rounded <= float(to.largest))
        return rounded.cast(to.name).undefined(~inside)
    if to.name == "float8e8m0":
        return _scale(c, x)
    if to.name in ("float4e2m1", "float6e2m3", "float6e3m2"):  # without infinities and NaN: undefined
        largest = to.float_format.largest
        number = x.cast(to.name, saturate=True)
        return (
            number
            if source.kind in ("bool",) or source.bits < 4
            else number.undefined(~(x.cast("float64").abs() <= largest))
        )
    saturate = to.bits == 8 and c.attr("saturate", 1) != 0
    signed = x.kind == "real" and to.name in ("float8e4m3fn", "float8e5m2")  # by the table
    y = x.cast(to.name, saturate=saturate, signed=signed)
    if to.name in _FUNNY and x.kind == "real" and saturate and "infinity-is-nan" in c.clauses:
        y = c.constant(math.nan, to.name).where(x.isinf(), y)
    return y


def cast_like(c: Call, x: Value, _target: Value) -> Value:
    """Each element converted to the type of the second input, as in Cast; the second input has any shape.

    Source: ONNX CastLike-15 to 25.
    """
    return cast(c, x)


def _same(c: Call, x: Value) -> Value:
    """A conversion to the same type: the number itself, except for infinities of float8, as the table says."""
    form = element_type(x.type).format
    if form is None or element_type(x.type).bits != 8 or not form.infinities or c.attr("saturate", 1) == 0:
        return x
    return x.clip(-form.largest, form.largest) if c.open("same-type", x.isinf()) == "by-table" else x


def _scale(c: Call, x: Value) -> Value:
    """To float8e8m0, the powers of two from 2^-127 to 2^127 and NaN, by round_mode and saturate.

    Negative numbers are undefined, and so are numbers out of range for combinations that are not in the standard's
    table.
    """
    mode, saturate = c.attr("round_mode"), c.attr("saturate") != 0
    c.require("round-mode", mode in ("up", "down", "nearest"))
    y = x.cast("float8e8m0", saturate=saturate, mode=mode)
    wide = x.cast("float64")
    in_table = (mode, saturate) in (("up", True), ("nearest", False))
    inside = (wide >= 2.0**-127) & (wide <= 2.0**127)
    return y.undefined((wide < 0.0) if in_table else ~inside & ~x.isnan())


def _read(c: Call, to: str) -> Value:
    """Text as numbers of the type `to`; other text, or a fraction for an integer type, is undefined."""
    texts = c.known("input")
    target = element_type(to)
    special = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "nan": math.nan}
    numbers: list[float]
    undefined: list[bool]
    numbers, undefined = [], []
    for text in texts.flat:
        plain = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text)
        digits = re.fullmatch(r"[+-]?\d+", text)
        if not plain and text.lower() not in special:
            c.open("no-number")
        if target.is_integer or to == "bool":
            number = int(text) if digits and to != "bool" else 0
            fits = bool(digits) and to != "bool" and target.smallest <= number <= target.largest
            numbers.append(number if fits else 0)
            undefined.append(not fits)
        else:
            numbers.append(float(text) if plain else special.get(text.lower(), math.nan))
            undefined.append(False)
    if target.format:
        values = c.constant(np.array(numbers, np.float64).reshape(texts.shape), "float64")
        return values.cast(to, saturate=target.bits <= 8 and c.attr("saturate", 1) != 0)
    values = c.constant(np.array(numbers, target.dtype).reshape(texts.shape), to)
    return values.undefined(c.constant(np.array(undefined, bool).reshape(texts.shape), "bool"))


def _written(c: Call, x: Value) -> Value:
    """Numbers as text: integers by their digits; the number of digits of a float is open."""
    known = c.known("input")
    digits = np.array([str(int(v)) for v in known.flat], object) if element_type(x.type).is_integer else None
    if digits is None:
        free = c.constant(np.full(known.shape, "", object), "string")
        c.check("reads-as", arrays=[c.constant(known.astype(np.float64), "float64")])
        return free.undefined(c.constant(np.ones(known.shape, bool), "bool"))
    return c.constant(digits.reshape(known.shape), "string")


def bit_cast(c: Call, x: Value) -> Value:
    """The same bits as an element of the type `to`.

    x: any type but text; result: the same shape, a type of the same width. Source: ONNX BitCast-26.
    """
    source, to = element_type(x.type), numbered(c.attr("to"))
    c.require("types-known", to is not None)
    to = to or source
    c.require("no-text", to.name != "string")
    c.require("width", source.bits == to.bits)
    if "bool" in (source.name, to.name):
        c.open("bool-bits")
    held = c.known("input")
    if source.name == to.name:
        _bits_are_kept(c, held)
        return x
    unsigned = np.dtype(f"u{held.dtype.itemsize}")
    codes = held.view(unsigned) & unsigned.type((1 << source.bits) - 1)  # NumPy 1 widens a scalar & an int
    if to.name == "bool":
        return c.constant(codes != 0, "bool").undefined(c.constant(codes > 1, "bool"))
    if to.is_packed and to.is_integer:
        elements = np.where(codes > to.largest, codes.astype(np.int64) - (1 << to.bits), codes).astype(to.dtype)
    else:
        elements = codes.view(to.dtype)
    _bits_are_kept(c, elements)
    return c.constant(elements, to.name)


def _bits_are_kept(c: Call, wanted: Array) -> None:
    """Test the bits if equal values may have different bits: NaN has many forms."""
    form = element_type(type_of(wanted)).format
    if form is not None and form.nans:
        c.check(
            "same-bits", arrays=(c.constant(np.ascontiguousarray(wanted)[..., np.newaxis].view(np.uint8), "uint8"),)
        )


def patterns(blank: Blank, draw: Draw) -> Array:
    """Random bits; for a float type, half are infinities, zeros, subnormal numbers and NaN in several forms."""
    element, dtype = blank.type, blank.type.dtype
    words = draw.bits(blank.size) & np.uint64((1 << element.bits) - 1)
    if element.format:
        top = 1 << (element.bits - 1)
        exponent = (top - 1) & ~((1 << (element.format.precision - 1)) - 1)
        quiet = exponent | (exponent & -exponent) >> 1
        kinds = [exponent, exponent | 1, quiet, quiet | 3, top - 1, 0, 1, 1 << (element.bits - 2)]
        pool = np.array([n & (2 * top - 1) for kind in kinds for n in (kind, kind | top)], np.uint64)
        words = np.where(draw.below(2, blank.size) == 0, pool[draw.below(len(pool), blank.size)], words)
    codes = words.astype(f"u{dtype.itemsize}")
    return codes.view(dtype) if element.format else codes


def fits(blank: Blank, draw: Draw, to: str) -> Array:
    """Numbers that both types hold, as text if the type is text; with fractions if both are floats."""
    target = element_type(to)
    if blank.type.format and target.format and target.format.precision > 4:
        return draw.between(-256, 256, blank.size) / (1 << 4)
    low, high = -8, 100
    for type_ in (blank.type, target):
        if type_.kind in ("signed", "unsigned"):
            low, high = max(low, type_.smallest), min(high, type_.largest)
        elif type_.kind == "bool":
            low, high = 0, 1
        elif type_.format:
            low, high = max(low, -4), min(high, 4)
            low = low if type_.format.signed else 1
    return draw.between(low, high, blank.size)


def numerals(blank: Blank, draw: Draw, to: str) -> Array:
    """Text of numbers: whole ones; for a float type also fractions, scientific notation, infinities and NaN."""
    integers = ["0", "1", "7", "+3", "100"] + ([] if to.startswith("uint") else ["-1", "-8"])
    floats = ["0.5", "-1.25", "1e2", "1E-1", "3.", ".5", "INF", "+INF", "-inf", "NaN", "nan", "-0"]
    pool = np.array(integers + (floats if element_type(to).format else []), object)
    return pool[draw.below(len(pool), blank.size)]


def boundary(blank: Blank, draw: Draw, to: str) -> Array:
    """Numbers around the ends of the other type's range, ties between its numbers, and zeros of both signs."""
    target = element_type(to)
    if target.format:
        form = target.format
        step = math.ldexp(1.0, form.emax + 1 - form.precision)
        own = [form.largest, form.largest + step / 2, form.largest + step * 3 / 4, 2 * form.largest]
        own += [1 + k * math.ldexp(1.0, -form.precision) for k in (1, 2, 3)]
        own += [math.ldexp(k, form.emin - form.precision) for k in (1, 2, 3, 7)]
        pool = np.array([*own, *(-n for n in own), 0.0, -0.0])
        if blank.type.format:  # infinities are special
            pool = pool[np.abs(pool) <= blank.type.format.largest]
    elif target.is_integer:
        ends = [target.smallest, target.largest]
        pool = np.array([n + k for n in ends for k in (-1, 0, 1)] + [0, 2 * target.largest + 3], object)
        if blank.type.format:
            fractions = [0.5, 1.5, 2.5, -0.5, -1.5, 0.75, -0.0] + [float(n) for n in ends]
            pool = np.array([f for f in fractions if blank.type.format.signed or f > 0] + [float(n) for n in pool])
    else:
        pool = np.array([0, 1, 2, 3, 36, 64, 255, 256], object)
        if blank.type.format:
            pool = np.array([0.0, -0.0, 0.25, 0.5, 1.0, 2.0, -3.0, math.ldexp(1.0, blank.type.format.emin)])
    if blank.type.kind in ("signed", "unsigned"):
        low, high = blank.type.smallest, blank.type.largest
        integers = (
            [int(n) for n in pool if n == int(n) and low <= n <= high] if target.kind != "string" else [low, high, 0]
        )
        pool = np.array([*integers, low, high, high - 1, 0], object)
    return pool[draw.below(len(pool), blank.size)]


def corners(blank: Blank, draw: Draw, to: str) -> Array:
    """Numbers that are easily rounded to the other type in the wrong way, each in turn from a random one on.

    For a float: ties between neighbours, normal and subnormal; numbers that round another way by a type in between;
    the last ones that do not overflow; NaN of which only low bits are set. For whole numbers: beside them, and beyond
    31 and 63 bits.
    """
    target, own = element_type(to), blank.type
    pool = _about_floats(own, target) if target.format else _about_wholes(own, target)
    indices = (np.arange(blank.size) + draw.below(len(pool), 1)) % len(pool)
    return pool[indices]


def _about_floats(own: ElementType, target: ElementType) -> Array:
    form = target.float_format
    p, low = form.precision, form.emin - form.precision + 1
    points = []
    for exponent in (0, 1, form.emax - 1):
        for k in ((1 << (p - 1)) + 1, (1 << p) - 2, (1 << p) - 1):  # odd and even ones, and the last before a power
            points += [(2 * k + 1, exponent - p)]
    points += [(2 * k + 1, low - 1) for k in range(3)]  # ties between subnormal numbers
    points += [(k, low) for k in (1, 2, 3)]
    ties = [Fraction(k) * Fraction(2) ** e for k, e in points]
    ends = [Fraction(form.largest)] if math.isinf(form.overflow) else [Fraction(form.largest), Fraction(form.overflow)]
    ends += [(ends[0] + ends[1]) / 2] if len(ends) > 1 else []
    exact = [*ties, *ends]
    if own.is_integer:
        wide = [n for n in exact if n.denominator == 1]
        for bits in (p + 3, 25, 31, 54, 62, 63):  # ties of large numbers, and one beside each
            half = 1 << max(bits - p, 0)
            wide += [Fraction((1 << bits) + half * k + d) for k in (1, 3) for d in (-1, 0, 1)]
        signed = [*wide, *(-n for n in wide)] if own.kind == "signed" else wide
        integers = [int(n) for n in signed if own.smallest <= n <= own.largest and abs(n) < 2**64]
        return np.array([*dict.fromkeys(integers), own.largest, own.smallest], object)
    fine = Fraction(2) ** (own.float_format.emin - own.float_format.precision + 1)
    numbers = [n + d * max(_last_bit(own, n), fine) for n in exact for d in (0, 1, -1)]
    held = [float(s * n) for n in numbers for s in (1, -1) if n <= Fraction(own.float_format.largest)]
    floats = np.array(held).astype(own.dtype)
    return np.concatenate([floats, _nans(own)]) if form.nans else floats


def _last_bit(own: ElementType, number: Fraction) -> Fraction:
    """Return a unit in the last place of a type at a number."""
    return Fraction(2) ** (math.frexp(float(number))[1] - own.float_format.precision)


def _nans(own: ElementType) -> Array:
    """Return NaN of both signs with only the lowest bit of the significand, and with the highest one too."""
    if own.name not in ("float32", "float64"):
        return np.array([np.nan]).astype(own.dtype)
    bits, top = own.bits, own.float_format.precision - 1
    exponent = ((1 << (bits - 1)) - 1) >> top << top
    codes = [sign | exponent | payload for sign in (0, 1 << (bits - 1)) for payload in (1, 1 << (top - 1) | 1)]
    return np.array(codes, f"u{own.dtype.itemsize}").view(own.dtype)


def _about_wholes(own: ElementType, target: ElementType) -> Array:
    ends = [n for n in (target.smallest, target.largest) if n]
    if own.is_integer:
        numbers = [e + d for e in ends for d in (-1, 0, 1)] + [1 << b for b in (31, 32, 53, 62)]
        numbers += [(1 << b) - 1 for b in (31, 32, 53, 63)]
        return np.array([n for n in dict.fromkeys(numbers) if own.smallest <= n <= own.largest] or [0, 1], object)
    form = own.float_format
    share = 1 - 2.0 ** -(form.precision - 1)
    powers = [2.0**b for b in (15, 16, 23, 24, 31, 32, 52, 53, 62, 63) if b <= form.emax]
    points = [n * k for n in powers for k in (1.0, share, 1.5)] + [n * share for n in (1.0, 2.0, 3.0, 5.0, 100.0)]
    points += [1 - 2.0**-form.precision, 0.5 - 2.0 ** -(form.precision + 1)]
    both = points if target.kind == "unsigned" else [*points, *(-n for n in points)]
    return np.array([n for n in both if target.smallest <= n <= target.largest and abs(n) <= form.largest])
