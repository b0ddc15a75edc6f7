"""Recipes for input tensors, each aimed at a tier of the judge or at a mistake that backends make.

All numbers are built from whole numbers and powers of two, so that the same id gives the same bytes everywhere.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType, MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from ..cases.elements import Array, ElementType, element_type
from ..cases.errors import CaseIdError, did_you_mean


@dataclass
class Draw:
    """Streams of bits, one for each lane, each keyed by a text such as a case id (SHAKE128, FIPS 202).

    A hash rather than a random number generator: a standard defines its output, its only state is a counter, and
    starting a stream takes a microsecond.
    """

    keys: Sequence[str]
    _used: int = field(default=0, init=False)

    def bits(self, size: int) -> Array:
        """Return random 64-bit words, uint64 of shape (lanes, size)."""
        self._used += 1
        suffix = f"#{self._used}"
        streams = [hashlib.shake_128((key + suffix).encode()).digest(8 * size) for key in self.keys]
        words = np.frombuffer(b"".join(streams), "<u8").reshape(len(self.keys), size)
        return words.astype(np.uint64, copy=False)

    def below(self, limit: int, size: int) -> Array:
        """Return whole numbers in [0, limit), int64 of shape (lanes, size); limit at most 2**63.

        By remainder: the bias, at most limit/2**64, does not matter for test inputs. Indices into an empty axis are 0.
        """
        return (self.bits(size) % np.uint64(max(limit, 1))).astype(np.int64)

    def between(self, low: int, high: int, size: int) -> Array:
        """Return whole numbers in [low, high], int64 of shape (lanes, size)."""
        return low + self.below(high - low + 1, size)


# Between the precisions of bfloat16 (8 bits), float16 and TensorFloat-32 (11), float32 (24), float64 (53), and beyond
BESIDE = (10, 16, 26, 60)
UPON = (10, 16, 26)
_HALF_PI = tuple(map(float.fromhex, ("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2e037073p-69")))
_LN_2 = 0.6931471805599453


@dataclass(frozen=True)
class Blank:
    """The tensor to fill: its element type and size, and how many elements are summed into one of the result."""

    type: ElementType
    size: int
    terms: int


_SEEDED = re.compile(r"[/;]seed=[1-9]")

Recipe: TypeAlias = Callable[[Blank, Draw], Array]
"""Returns numbers of shape (lanes, size), or (size,) if all lanes are the same."""


def ramp(blank: Blank, _draw: Draw) -> Array:
    """Distinct whole numbers in order, which expose a wrong axis or stride; they wrap around at the end of the type."""
    limit = 1 << blank.type.format.precision if blank.type.format else blank.type.largest // max(blank.terms, 1)
    period = min(max(limit, 1), 1 << 20)
    numbers = np.arange(blank.size) % period
    return numbers - min(blank.size, period) // 2 if blank.type.kind != "unsigned" else numbers


def turned(elements: Array, keys: Sequence[str]) -> Array:
    """Return ramps, shape (lanes, size), rotated by a drawn number of elements in each lane whose key has a seed.

    So the seed changes also what is not drawn, and each tensor keeps its values. Without a seed nothing changes.
    """
    lanes = [lane for lane, key in enumerate(keys) if _SEEDED.search(key)]
    if not lanes or elements.shape[1] < 2:
        return elements
    rolled = elements.copy()
    shifts = 1 + Draw([f"{keys[lane]} turned" for lane in lanes]).below(elements.shape[1] - 1, 1)[:, 0]
    for lane, shift in zip(lanes, shifts.tolist(), strict=True):
        rolled[lane] = np.roll(elements[lane], shift)
    return rolled


def uniform(blank: Blank, draw: Draw) -> Array:
    """Floats with full significands in [-1, 1); integers up to 1,000 in magnitude whose sums fit the type."""
    if blank.type.format:
        p = blank.type.format.precision
        return np.asarray(np.ldexp(draw.between(-(1 << p), (1 << p) - 1, blank.size).astype(np.float64), -p))
    return _integers(blank, draw, min(1000, blank.type.largest // max(blank.terms, 1)))


def lattice(blank: Blank, draw: Draw) -> Array:
    """Whole numbers small enough for every partial sum to be exact in the type itself (tier T0)."""
    terms = max(blank.terms, 1)
    room = 1 << blank.type.format.precision if blank.type.format else min(blank.type.largest, 1 << 20)
    return _integers(blank, draw, max(1, room // terms))


def lattice_of_products(blank: Blank, draw: Draw) -> Array:
    """Whole numbers small enough for sums of products of two to be exact in the type itself (tier T0)."""
    room = 1 << blank.type.format.precision if blank.type.format else blank.type.largest
    return _integers(blank, draw, max(1, math.isqrt(room // max(blank.terms, 1))))


def peaks(blank: Blank, draw: Draw) -> Array:
    """Zeros and ones, with large odd numbers first, in the middle and last; sums are still exact.

    An accumulator or an input of fewer bits loses more of these than a sum of as many numbers of one size may lose, and
    the last one is a large share of the sum.
    """
    numbers = draw.below(2, blank.size)
    terms = max(blank.terms, 1)
    room = 1 << blank.type.format.precision if blank.type.format else min(blank.type.largest, 1 << 24)
    large = max(1, (room - terms) // 3 - 1 | 1)
    for index in (0, blank.size // 2, blank.size - 1):
        numbers[:, index : index + 1] = large
    return numbers


def cancelling(blank: Blank, draw: Draw) -> Array:
    """Pairs that cancel up to the last bits, in random order; one pair does not if a sum has most of the numbers.

    So the sum of all is a number whose digits can be judged.
    """
    form = blank.type.float_format
    significand = draw.between(1 << (form.precision - 1), (1 << form.precision) - 1, (blank.size + 1) // 2)
    almost = -significand + draw.between(-2, 2, significand.shape[1])
    if 2 * blank.terms > blank.size > 2:
        almost[:, -1] = significand[:, -1]
    pairs = np.concatenate([significand, almost], axis=1).clip(-(1 << form.precision) + 1, (1 << form.precision) - 1)
    order = np.argsort(draw.bits(pairs.shape[1]), axis=1, kind="stable")
    shuffled = np.take_along_axis(pairs, order, axis=1)[:, : blank.size]
    return np.asarray(np.ldexp(shuffled.astype(np.float64), -form.precision))


def mixed(blank: Blank, draw: Draw) -> Array:
    """Full significands over forty powers of two, or fewer if the type has fewer."""
    form = blank.type.float_format
    significand = draw.between(1 << (form.precision - 1), (1 << form.precision) - 1, blank.size)
    exponent = draw.between(max(-20, form.emin + 1), min(20, form.emax - 5), blank.size) - form.precision
    return _signed(np.ldexp(significand.astype(np.float64), exponent), draw)


def large(blank: Blank, draw: Draw) -> Array:
    """Numbers as large as possible without any partial sum leaving the type."""
    terms = max(blank.terms, 1)
    if not blank.type.format:
        return _integers(blank, draw, blank.type.largest // terms)
    form = blank.type.format
    exponent = form.emax - 1 - (terms - 1).bit_length()
    significand = draw.between(1 << (form.precision - 1), (1 << form.precision) - 1, blank.size)
    return _signed(np.ldexp(significand.astype(np.float64), exponent - form.precision + 1), draw)


def overflow(blank: Blank, draw: Draw) -> Array:
    """Numbers of one sign whose sum leaves the type if there are two or more, though the mean fits."""
    form = blank.type.float_format
    top = 1 << form.precision
    significand = draw.between(top * 5 // 8, top * 7 // 8, blank.size)
    return np.ldexp(significand.astype(np.float64), form.emax - form.precision + 1)


def subnormal(blank: Blank, draw: Draw) -> Array:
    """Subnormal numbers of both signs, including zero and the smallest."""
    form = blank.type.float_format
    top = (1 << (form.precision - 1)) - 1
    return np.ldexp(draw.between(-top, top, blank.size).astype(np.float64), form.emin - form.precision + 1)


def nan(blank: Blank, draw: Draw) -> Array:
    """One NaN among uniform numbers."""
    return _placed(blank, draw, np.array([[np.nan]]))


def infinity(blank: Blank, draw: Draw) -> Array:
    """One infinity of either sign among uniform numbers."""
    return _placed(blank, draw, np.where(draw.below(2, 1) == 0, np.inf, -np.inf))


def infinities(blank: Blank, draw: Draw) -> Array:
    """Both infinities among uniform numbers."""
    return _placed(blank, draw, np.array([[np.inf, -np.inf]]))


def special(blank: Blank, draw: Draw) -> Array:
    """Uniform numbers, half of them replaced by zeros of both signs, ones, infinities and NaN."""
    pool = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan])
    rest = np.asarray(uniform(blank, draw), np.float64)
    return np.where(draw.below(2, blank.size) == 0, pool[draw.below(pool.size, blank.size)], rest)


def nan_late(blank: Blank, draw: Draw) -> Array:
    """Uniform numbers, then special ones, so that NaN does not reach every line or channel."""
    late = np.arange(blank.size) >= blank.size // 2
    return np.where(late, special(blank, draw), np.asarray(uniform(blank, draw), np.float64))


def ends(blank: Blank, draw: Draw) -> Array:
    """Uniform numbers, with NaN, an infinity and its opposite first, in the middle and last."""
    numbers = np.asarray(uniform(blank, draw), np.float64)
    for index, value in ((blank.size - 1, -np.inf), (blank.size // 2, np.inf), (0, np.nan)):
        numbers[:, index : index + 1] = value
    return numbers


def nan_among(blank: Blank, draw: Draw) -> Array:
    """One NaN, in the middle of the ramp."""
    numbers = ramp(blank, draw).astype(np.float64)
    numbers[blank.size // 2 : blank.size // 2 + 1] = np.nan
    return numbers


def negative_zero(blank: Blank, _draw: Draw) -> Array:
    """All elements minus zero."""
    return np.full(blank.size, -0.0)


def ones(blank: Blank, _draw: Draw) -> Array:
    """All elements one."""
    return np.ones(blank.size, np.int64)


def zeros(blank: Blank, _draw: Draw) -> Array:
    """All elements zero; false, and the empty text."""
    return np.zeros(blank.size, np.int64)


def few(blank: Blank, draw: Draw) -> Array:
    """Whole numbers from 0 to 3, so that most occur several times and some are zero."""
    return draw.below(4, blank.size)


def codes(blank: Blank, draw: Draw) -> Array:
    """Uniform whole numbers over the whole type, even if sums overflow; floats up to 64, or less."""
    if blank.type.format:
        return np.asarray(uniform(blank, draw) * 2.0 ** min(6, blank.type.format.emax))
    return draw.between(max(blank.type.smallest, -1 << 31), min(blank.type.largest, 1 << 32), blank.size)


def extremes(blank: Blank, draw: Draw) -> Array:
    """Smallest and largest values of an integer type, their neighbours, and numbers around zero."""
    low, high = blank.type.smallest, blank.type.largest
    pool = np.array([low, low + 1, -1 if low else 2, 0, 1, high - 1, high], object)
    return pool[draw.below(pool.size, blank.size)]


def middling(blank: Blank, draw: Draw) -> Array:
    """Numbers just below 2^15, 2^16, ..., 2^53 whose sums fit the type, one such limit for each sum, and small ones.

    So sums of numbers within a narrower type, or with few significant bits, are beyond it.
    """
    return _below_limits(blank, draw, blank.type.largest // max(blank.terms, 2))


def middling_factors(blank: Blank, draw: Draw) -> Array:
    """Numbers just below powers of two such that sums of products of two fit the type, but not a narrower one."""
    return _below_limits(blank, draw, math.isqrt(blank.type.largest // max(blank.terms, 1)))


def _below_limits(blank: Blank, draw: Draw, most: int) -> Array:
    limits = [1 << bits for bits in _LIMITS if 1 << bits <= most] or [most]
    chosen = np.array(limits, object)[np.arange(blank.size) // max(blank.terms, 1) % len(limits)]
    small, near = 1 + draw.below(9, blank.size), chosen - 1 - draw.below(9, blank.size)
    numbers = np.clip(np.where(draw.below(4, blank.size) == 0, small, near), min(1, most), most)
    if blank.type.kind == "unsigned":
        return numbers
    row = np.arange(blank.size) // max(blank.terms, 1) // len(limits)
    return np.where(row % 2 == 0, numbers, -numbers)


_LIMITS = (8, 12, 15, 16, 24, 31, 32, 53)


def ties(blank: Blank, draw: Draw) -> Array:
    """Numbers half-way between two whole ones, of both signs, with odd and even lower neighbours."""
    return draw.between(-9, 9, blank.size) + 0.5


def magnitudes(blank: Blank, draw: Draw) -> Array:
    """Full significands over all powers of two that are normal numbers of the type, of both signs."""
    form = blank.type.float_format
    significand = draw.between(1 << (form.precision - 1), (1 << form.precision) - 1, blank.size)
    exponent = draw.between(form.emin, form.emax, blank.size)
    return _signed(np.ldexp(significand.astype(np.float64), exponent - form.precision + 1), draw)


def near_ties(blank: Blank, draw: Draw) -> Array:
    """Numbers half-way between two whole ones and their neighbours: small ones, and the largest with a half."""
    p = blank.type.float_format.precision
    small = [k + 0.5 for k in range(-5, 5)]
    top = [sign * (2.0 ** (p - 2) + k) for k in (-0.5, 0.5, 1.5) for sign in (1, -1)]
    integers = [sign * (2.0 ** (p - 1) + k) for k in (-0.5, 1.0, 3.0) for sign in (1, -1)]
    return _about([*small, *top, *integers], blank, draw)


def unit_ends(blank: Blank, draw: Draw) -> Array:
    """Numbers next to -1, 0 and 1, and to halves and twos, where domains end or functions are steep or flat."""
    return _about([1.0, -1.0, 1.0, -1.0, 0.0, 0.5, -0.5, 2.0, -2.0], blank, draw)


def quarter_turns(blank: Blank, draw: Draw) -> Array:
    """Numbers next to multiples of pi/2, of both signs: the poles of the tangent, the zeros of the sine."""
    doublings = draw.below(min(blank.type.float_format.precision - 1, 20), blank.size)
    k = np.floor(np.ldexp(draw.between(1 << 20, (1 << 21) - 1, blank.size).astype(np.float64), doublings - 20))
    points = k * _HALF_PI[0] + (k * _HALF_PI[1] + k * _HALF_PI[2])
    return _beside(_signed(points, draw), blank, draw)


def thresholds(blank: Blank, draw: Draw) -> Array:
    """Numbers next to the points where the exponential overflows, gets subnormal or zero, or vanishes beside one."""
    form = blank.type.float_format
    bits = [form.emax + 1, form.emax + 2, form.emin, form.emin - form.precision + 1, form.emin - form.precision]
    bits += [-form.precision, -form.precision - 1]
    points = [sign * scale * n * _LN_2 for n in bits for scale in (1.0, 0.5) for sign in (1, -1)]
    return _about(points, blank, draw)


def maximum(blank: Blank, _draw: Draw) -> Array:
    """All elements the largest value of an integer type: the sum does not fit, the mean does."""
    return np.full(blank.size, blank.type.largest, object)


def halves(blank: Blank, _draw: Draw) -> Array:
    """Pairs of neighbours, below and above zero, even or odd first: their means are half-way between two integers."""
    index = np.arange(blank.size)
    numbers = 3 + index // 2 + index % 2
    return np.where(index // 2 % 2 == 1, 1 - numbers, numbers) if blank.type.kind == "signed" else numbers


def beyond_2_53(blank: Blank, draw: Draw) -> Array:
    """Odd integers just beyond 2**53, which float64 cannot represent."""
    return (1 << 53) + 1 + 2 * draw.below(64, blank.size)


def unsigned_high(blank: Blank, draw: Draw) -> Array:
    """Numbers beyond the signed range, alternating with zeros: the sum fits the unsigned type, not the signed one."""
    high = blank.type.largest - draw.below(min(1000, blank.type.largest // 4), blank.size).astype(object)
    return np.where(np.arange(blank.size) % 2 == 0, high, 0)


def inexact(blank: Blank, draw: Draw) -> Array:
    """Full significands in [1/2, 1): the type cannot represent their sums and quotients, so every rounding shows."""
    form = blank.type.float_format
    significand = draw.between(1 << (form.precision - 1), (1 << form.precision) - 1, blank.size)
    return np.ldexp(significand.astype(np.float64), -form.precision)


def beside(bits: int, blank: Blank, _draw: Draw) -> Array:
    """Return a number, its opposite, and one 2^bits times smaller, which an accumulator of `bits` bits loses.

    Square, and shifted by one from row to row, and so from column to column. If all rows are summed in the same order,
    then in any order some row adds the small number to a large one first: otherwise columns i and i+1 would be added
    before i+1 and i+2, all around the circle. The last row has nothing to lose, so that not every answer passes where
    the others are lost.
    """
    top = min(bits, blank.type.float_format.emax)
    return _shifted(blank, [2.0**top, -(2.0**top), 2.0 ** (top - bits)], last=2.0 ** (top - bits))


def upon(bits: int, blank: Blank, _draw: Draw) -> Array:
    """Return 1 + 2^-bits and -1, which cancel if inputs are rounded to `bits` bits or fewer; the last row can't."""
    return _shifted(blank, [1.0 + 2.0**-bits, -1.0], last=2.0**-bits)


def underflow(blank: Blank, _draw: Draw) -> Array:
    """Return normal numbers around the smallest: some partial sums are subnormal, the mean is not.

    Square and shifted like `beside`; some row first adds two of its four addends with a subnormal sum.
    """
    return _shifted(blank, [blank.type.float_format.tiny * share for share in (-1.0, 1.25, 16.0, -1.5)])


def subnormal_among(blank: Blank, _draw: Draw) -> Array:
    """Return alternating normal and subnormal numbers: the mean is normal, and differs if inputs are flushed."""
    return np.asarray(np.where(np.arange(blank.size) % 2 == 0, 4.0, 0.5) * blank.type.float_format.tiny)


def _shifted(blank: Blank, pattern: Sequence[float], last: float | None = None) -> Array:
    """Return rows of the pattern and zeros, each row one sum long and shifted by one from the row before.

    With `last`, the last row and column have this number alone, if there is room beside the pattern.
    """
    width = max(blank.terms, len(pattern))
    round_ = width - (last is not None and width > len(pattern))
    row, column = np.divmod(np.arange(blank.size), width)
    numbers = np.array([*pattern, *[0.0] * (round_ - len(pattern))])[(column - row) % round_]
    alone = [np.maximum(row % width, column) >= round_, np.minimum(row % width, column) >= round_]
    return np.where(alone[1], last or 0.0, np.where(alone[0], 0.0, numbers))


_BFLOAT16: Final = 8
"""The significant bits of bfloat16."""


def addable(recipe: Recipe, blank: Blank, draw: Draw) -> Array:
    """Return a recipe's numbers such that the sum of so many in the type itself still says something.

    The error of n numbers of both signs grows with n·sqrt(n)·u. Where it may exceed their sum, most numbers have one
    sign; and where n·u is near 1, most are zero. No operator adds up in types of 8 bits or less.
    """
    numbers, form = np.asarray(recipe(blank, draw)), blank.type.format
    if form is None or form.precision < _BFLOAT16 or blank.terms**3 <= 4**form.precision:
        return numbers
    position = np.arange(blank.size)
    one_signed = np.where((position % 7 == 3) | ~np.isfinite(numbers), numbers, np.abs(numbers))
    most = 1 << (form.precision - 2)
    if blank.terms <= most:
        return one_signed
    kept = ~np.isfinite(one_signed) | (position % (blank.terms // most + 1 | 1) == 0)
    kept |= (position == blank.size // 2) | (position == blank.size - 1)
    return np.where(kept, one_signed, 0.0)


def _named(first: str) -> dict[str, Callable[..., Array]]:
    """Return this module's recipes by name: functions whose first parameter is a `first`, a Blank or a Drawing."""
    functions = [(word, function) for word, function in globals().items() if isinstance(function, FunctionType)]
    recipes = [
        pair for pair in functions if next(iter(pair[1].__annotations__.values()), "") == first and pair[0][0] != "_"
    ]
    return {word.replace("_", "-"): function for word, function in recipes}


RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        **{{"beyond-2-53": "beyond-2^53"}.get(name, name): recipe for name, recipe in _named("Blank").items()},
        **{f"beside-2^{bits}": functools.partial(beside, bits) for bits in BESIDE},
        **{f"upon-2^{bits}": functools.partial(upon, bits) for bits in UPON},
    }
)

FIRST = "ramp"
"""The recipe if none is named, or if there is nothing to fill."""
_BESIDE = {f"beside-2^{bits}": bits for bits in BESIDE}
_UPON = {f"upon-2^{bits}": bits for bits in UPON}
UNDRAWN = frozenset(
    {"ramp", "negative-zero", "ones", "zeros", "maximum", "halves", "underflow", "subnormal-among", "nan-among"}
    | {*_BESIDE, *_UPON}
)
"""Recipes that give the same numbers for every draw."""
_FLOAT_ONLY = frozenset(
    {
        "cancelling",
        "mixed",
        "overflow",
        "subnormal",
        "nan",
        "infinity",
        "infinities",
        "special",
        "nan-late",
        "negative-zero",
    }
    | {"magnitudes", "near-ties", "unit-ends", "quarter-turns", "thresholds"}
    | {"ends", "inexact", "ties", "underflow", "subnormal-among", "nan-among", *_BESIDE, *_UPON}
)
_INTEGER_ONLY = frozenset(
    {"maximum", "extremes", "halves", "beyond-2^53", "unsigned-high", "middling", "middling-factors"}
)
_ADDENDS = frozenset(
    {"ramp", "uniform", "lattice", "lattice-of-products", "peaks", "cancelling", "mixed", "large", "overflow"}
    | {"subnormal", "nan", "infinity", "infinities", "special", "ends"}
)
"""Recipes that most operators that add up have."""
_SUBNORMAL = frozenset({"subnormal", "subnormal-among", "underflow"})
_TEXT = frozenset({"ramp", "uniform", "ones", "zeros", "few"})


def suits(name: str, element: ElementType) -> bool:
    """Return whether a recipe makes sense for an element type."""
    if element.kind == "string":
        return name in _TEXT
    if element.format:
        form = element.format
        bits = _BESIDE.get(name, 0)  # exact values of more than 53 bits are kept only for float64
        fits = form.emax - bits > form.emin and (bits < 53 or form.precision >= 53)
        fits = fits and _UPON.get(name, 0) < form.precision
        fits = fits and (form.infinities or name not in ("infinity", "infinities", "ends"))
        fits = fits and (form.nans or name not in ("nan", "special", "nan-late", "ends", "nan-among"))
        fits = fits and (form.subnormals or name not in _SUBNORMAL)
        fits = fits and (form.negative_zero or name != "negative-zero")
        return name not in _INTEGER_ONLY and fits
    if name == "beyond-2^53":
        return element.bits == 64
    if name == "unsigned-high":
        return element.kind == "unsigned"
    return name not in _FLOAT_ONLY and (element.is_integer or name in _TEXT)


def fill(name: str, blank: Blank, keys: Sequence[str], recipe: Callable[..., Array] | None = None) -> Array:
    """Return elements of the blank's type, shape (lanes, size), with one lane for each key.

    `recipe` is a family's own recipe, which this module does not know. Raises CaseIdError if it doesn't suit the type.
    """
    known = recipe or RECIPES.get(name)
    if known is None:
        near = did_you_mean(name, RECIPES) or f"; there are {', '.join(RECIPES)}"
        raise CaseIdError(f"no fill is called {name!r}{near}")
    if recipe is None and not suits(name, blank.type):
        raise CaseIdError(f"fill {name!r} makes no sense for {blank.type.name}")
    if recipe is None and name in _ADDENDS:
        known = functools.partial(addable, known)
    elements = _elements(known, blank, Draw(keys))
    return elements if elements.ndim == 2 else np.repeat(elements[np.newaxis], len(keys), axis=0)


def _elements(recipe: Callable[..., Array], blank: Blank, draw: Draw) -> Array:
    """Return a recipe's numbers as elements of the type; text, complex numbers and powers of two are derived."""
    element = blank.type
    if element.kind == "string":
        elements = np.asarray(recipe(replace(blank, type=element_type("int64")), draw))
        return (
            elements
            if elements.dtype == object and elements.size and isinstance(elements.flat[0], str)
            else _texts(elements)
        )
    if element.kind == "complex":
        part = element_type("float32" if element.bits == 64 else "float64")
        parts = np.asarray(recipe(replace(blank, type=part, size=2 * blank.size), draw)).astype(part.dtype)
        return np.ascontiguousarray(parts).view(element.dtype)
    if element.format and not element.format.signed:
        with np.errstate(invalid="ignore"):
            powers = np.asarray(recipe(replace(blank, type=element_type("uint8")), draw)).astype(np.int64)
        return np.ldexp(1.0, powers % (2 * element.format.emax + 1) - element.format.emax).astype(element.dtype)
    numbers = recipe(blank, draw)
    if element.kind == "bool":
        numbers = np.asarray(numbers) % 2 == 1
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(numbers).astype(element.dtype)


_AFFIXES = ("", "\u00e4", " ", "longer than what is kept in place of a pointer ")


def _texts(numbers: Array) -> Array:
    """Return a distinct text for each whole number: some short, some long, one empty."""
    texts = np.empty(numbers.shape, object)
    flat = [f"{_AFFIXES[n % len(_AFFIXES)]}{n}" if n else "" for n in numbers.reshape(-1).tolist()]
    texts.reshape(-1)[:] = flat
    return texts


@dataclass(frozen=True)
class Drawing:
    """The input of an operand's recipe: its type and shape, the draw, attributes, and the operands before it.

    `values` are the values of the operands before it, lanes first; `arguments` are the recipe's arguments in the spec.
    """

    type: ElementType
    shape: tuple[int, ...]
    draw: Draw
    attributes: Mapping[str, Any]
    values: Mapping[str, Array]
    arguments: Mapping[str, Any]

    @property
    def size(self) -> int:
        """The number of elements of a lane."""
        return math.prod(self.shape)

    def limit(self, name: str, usual: int) -> int:
        """Return a whole-number argument of the recipe; at least 1, so that there is something to draw."""
        given = self.arguments.get(name, usual)  # an expression without a value, because the input is invalid
        return max(1, int(given if isinstance(given, (int, float)) else usual))


def any_below(drawing: Drawing) -> Array:
    """Uniform whole numbers in [0, below): indices."""
    return drawing.draw.below(drawing.limit("below", drawing.type.largest), drawing.size)


def signed_below(drawing: Drawing) -> Array:
    """Uniform whole numbers in [-below, below): indices that may count from the end."""
    limit = drawing.limit("below", drawing.type.largest)
    return drawing.draw.between(-limit, limit - 1, drawing.size)


def distinct_below(drawing: Drawing) -> Array:
    """Whole numbers in [0, below), distinct as long as there are enough of them."""
    limit = drawing.limit("below", drawing.size)
    order = np.argsort(drawing.draw.bits(max(limit, 1)), axis=1, kind="stable")
    return np.take(order, np.arange(drawing.size) % limit, axis=1)


def last_below(drawing: Drawing) -> Array:
    """All elements `below` - 1: the last index."""
    return np.full(drawing.size, drawing.limit("below", 1) - 1)


def too_large(drawing: Drawing) -> Array:
    """All elements `below`: one more than the last index."""
    return np.full(drawing.size, drawing.limit("below", 1))


def too_small(drawing: Drawing) -> Array:
    """All elements -`below` - 1: one less than the first index from the end."""
    return np.full(drawing.size, -drawing.limit("below", 1) - 1)


def coin(drawing: Drawing) -> Array:
    """Ones and zeros, or true and false, with equal probability."""
    return drawing.draw.below(2, drawing.size)


def binary_scale(drawing: Drawing) -> Array:
    """Small powers of two; with `terms`, such that the scaled sum of so many codes fits 8 bits."""
    power = math.ceil(math.log2(4 * drawing.limit("terms", 1) ** 0.5)) if "terms" in drawing.arguments else -5
    return np.asarray(np.ldexp(1.0, power + drawing.draw.below(2, drawing.size)))


def decimal_scale(drawing: Drawing) -> Array:
    """Powers of two like `binary_scale`, times full significands."""
    half = 1 << (drawing.type.float_format.precision - 1)
    return np.asarray(binary_scale(drawing) * (drawing.draw.between(half + 1, 2 * half - 1, drawing.size) / half))


DRAWS: Mapping[str, Callable[..., Array]] = MappingProxyType(
    {name.removesuffix("-below"): recipe for name, recipe in _named("Drawing").items()}
)


def restricted(name: str, arguments: Sequence[str], array: Array) -> Array:
    """Return an array with its numbers moved into a domain; NaN stays. Raises KeyError if there is no such domain."""
    with np.errstate(all="ignore"):
        mapped = DOMAINS[name](array, *(float(a) for a in arguments))
    return np.asarray(mapped).astype(array.dtype)


def _positive(x: Array) -> Array:
    return np.asarray(np.maximum(np.where(x == 0, x.dtype.type(1), np.abs(x)), np.abs(x)))


def _power_of_two(x: Array) -> Array:
    wide = np.abs(x.astype(np.float64))
    usable = np.isfinite(wide) & (wide > 0)
    return np.asarray(np.ldexp(1.0, np.frexp(np.where(usable, wide, 1.0))[1] - 1))


def _between(x: Array, low: float, high: float) -> Array:
    """Numbers in [low, high] stay; others are folded into it at multiples of 1/16 of its width."""
    wide = x.astype(np.float64)
    folded = low + np.mod(np.where(np.isfinite(wide), wide, 0.0), 16) / 16 * (high - low)
    if x.dtype.kind in "iu":
        folded = np.floor(folded)
    return np.where(np.isnan(wide) | ((wide >= low) & (wide <= high)), wide, folded)


DOMAINS: Mapping[str, Callable[..., Array]] = MappingProxyType(
    {
        "positive": _positive,
        "non-negative": np.abs,
        "non-zero": lambda x: np.where(x == 0, x.dtype.type(1), x),
        "divisor": lambda x: np.where(x == 0, x.dtype.type(1), x) if x.dtype.kind in "iu" else x,
        "power-of-two": _power_of_two,
        "unit": lambda x: _between(x, -1.0, 1.0),
        "between": _between,
        "finite": lambda x: np.where(np.isfinite(x), x, x.dtype.type(1)),
    }
)
"""The domains of an operand's elements; numbers that are already in the domain mostly stay."""


def _about(points: Sequence[float], blank: Blank, draw: Draw) -> Array:
    """Return numbers close to some of the points, as `_beside` does."""
    return _beside(np.asarray(points)[draw.below(len(points), blank.size)], blank, draw)


def _beside(points: Array, blank: Blank, draw: Draw) -> Array:
    """Return points as numbers of the type, each shifted by at most two units in the last place."""
    unit = np.frexp(points)[1] - blank.type.float_format.precision
    return np.asarray(np.ldexp(np.rint(np.ldexp(points, -unit)) + draw.between(-2, 2, blank.size), unit))


def _integers(blank: Blank, draw: Draw, limit: int) -> Array:
    low = 0 if blank.type.kind == "unsigned" else -limit
    if limit < 1 << 62:
        return draw.between(low, limit, blank.size)
    return np.asarray(low + draw.bits(blank.size).astype(object) % (limit - low + 1), object)


def _signed(magnitudes: Array, draw: Draw) -> Array:
    return np.where(draw.below(2, magnitudes.shape[1]) == 0, magnitudes, -magnitudes)


def _placed(blank: Blank, draw: Draw, values: Array) -> Array:
    """Return uniform numbers, up to k of them replaced by values of shape (lanes or 1, k)."""
    numbers = np.asarray(uniform(blank, draw), np.float64)
    places = np.argsort(draw.bits(blank.size), axis=1, kind="stable")[:, : values.shape[1]]
    np.put_along_axis(numbers, places, values[:, : places.shape[1]], axis=1)
    return numbers
