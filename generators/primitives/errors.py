"""Formats, exact values, and the largest error of an implementation in an arithmetic: one charge per rounding.

Running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., ch. 3): every primitive
propagates its operands' errors and adds the error of one rounding of its result. It adds nothing if the operands carry
no error and the storage format represents the result.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypeVar

import gmpy2
import numpy as np

from ...cases.batch import EXCEPTIONAL as _EXCEPTIONAL
from ...cases.batch import Flag
from ...cases.elements import Array, DeclaredType, FloatFormat, element_type

NO_BIT = 5000
"""The lowest set bit of zero: above that of every other number."""


_FEW_BITS: Final = 11
"""The significant bits of float16 and TensorFloat-32; bfloat16 has fewer."""


_NUMPYS_OWN: Final = MappingProxyType({(11, 15): np.float16, (24, 127): np.float32})
"""The types of formats by precision and largest exponent, if NumPy itself rounds float64 numbers to them."""


@functools.cache
def format_of(name: str) -> FloatFormat:
    """Return the format of a floating-point element type, or `tf32`. Raises KeyError or TypeError for another name."""
    return FloatFormat(11, -126, 127) if name == "tf32" else element_type(name).float_format


@functools.cache
def kind_of(name: str) -> str:
    """Return the kind of an element type: `real`, `int`, `bool`, `text` or `complex`."""
    if name in ("bool", "string"):
        return "bool" if name == "bool" else "text"
    if "complex" in name:
        return "complex"
    return "int" if name.lstrip("u").startswith("int") else "real"


@functools.cache
def limits(name: str) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer type, from its name."""
    bits = int(name.removeprefix("u").removeprefix("int"))
    return (0, (1 << bits) - 1) if name.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


@functools.cache
def contains(form: FloatFormat, other: FloatFormat) -> bool:
    """Return whether a format represents every number of another."""
    return form.precision >= other.precision and form.emax >= other.emax and lowest_of(form) <= lowest_of(other)


def lowest_of(form: FloatFormat) -> int:
    """Return the exponent of a format's smallest subnormal number."""
    return form.emin - form.precision + 1


def lowest_bit(values: Array) -> Array:
    """Return the exponent of the lowest set bit of each finite float64; a large number for zeros."""
    mantissa, exponent = np.frexp(values)
    significand = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.frexp((significand & -significand).astype(np.float64))[1] - 1
    return np.asarray(np.where(significand == 0, NO_BIT, exponent - 53 + lowest))


def holds(form: FloatFormat, values: Array) -> Array:
    """Return a mask of the float64 values that the format represents exactly; infinities and NaN always count."""
    if form.precision >= 53:
        return np.ones(values.shape, bool)
    return np.asarray((nearest(form, values) == values) | np.isnan(values))


def nearest(form: FloatFormat, values: Array) -> Array:
    """Round float64 values to the format, to nearest and ties to even, overflow to infinity (IEEE 754, clause 4.3.1).

    Computed with integers rather than by a cast, except for NumPy's own formats: casts of float64 to bfloat16 round
    twice in some libraries.
    """
    if form.precision >= 53:
        return values
    if (own := _NUMPYS_OWN.get((form.precision, form.emax))) is not None:  # six times as fast
        with np.errstate(all="ignore"):
            return values.astype(own).astype(np.float64)
    finite = np.isfinite(values)
    numbers = np.where(finite, values, 0.0)
    exponent = np.frexp(numbers)[1]
    grid = np.maximum(exponent - form.precision, lowest_of(form))
    rounded = np.copysign(np.ldexp(np.rint(np.ldexp(numbers, -grid)), grid), values)
    rounded = np.where(np.abs(rounded) > form.largest, np.copysign(np.inf, values), rounded)
    return np.where(finite, rounded, values)


_ALIKE: Final = 1 << 10
"""Up to so many addends, every version of NumPy adds in the same order, as they fit its buffers."""


def ordered_sum(values: Array, axes: tuple[int, ...], *, keepdims: bool) -> Array:
    """Return the sum over `axes`: adds the second half to the first, element by element, until one element is left."""
    size = math.prod(values.shape[axis] for axis in axes)
    if size <= _ALIKE:
        return np.asarray(values.sum(axis=axes, keepdims=keepdims))
    reduced = {axis % values.ndim for axis in axes}
    kept = [d for axis, d in enumerate(values.shape) if axis not in reduced]
    parts = np.moveaxis(values, sorted(reduced), range(-len(reduced), 0)).reshape(*kept, size)
    while (half := parts.shape[-1] // 2) > 0:
        added = parts[..., :half] + parts[..., half : 2 * half]
        odd = parts.shape[-1] % 2
        parts = np.concatenate([added, parts[..., -1:]], axis=-1) if odd else added
    shape = [1 if axis in reduced else d for axis, d in enumerate(values.shape)] if keepdims else kept
    return parts.reshape(shape)


PRECISION = 160
"""In bits: three times float64's, so that the carrier's own error is below 2**-100 of any bound."""


def precise() -> Any:
    """Return a context of 160 bits for this thread."""
    return gmpy2.context(precision=PRECISION)


def each(function: Callable[..., Any], *values: Array) -> Array:
    """Apply a function of numbers to every element (or to elements at the same index); returns an object array."""
    with np.errstate(all="ignore"):  # infinities and NaN pass through
        mapped = np.asarray(np.frompyfunc(function, len(values), 1)(*values), object)
    return mapped.reshape(np.broadcast_shapes(*(v.shape for v in values)))


def widened(values: Array) -> Array:
    """Return values as numbers of the wide carrier."""
    if values.dtype == object:
        return values
    with np.errstate(all="ignore"):
        # six times as fast as converting each number, with the same result
        wide = np.asarray(values.astype(object) * gmpy2.mpfr(1), object)
    return wide.reshape(values.shape)


def rounded(values: Array) -> Array:
    """Return values rounded to nearest float64."""
    return values.astype(np.float64) if values.dtype == object else values


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a sum in float64 and what it lacks (Knuth's TwoSum), 0 for infinities and NaN."""
    total = a + b
    part = total - a
    return total, np.where(np.isfinite(total), (a - (total - part)) + (b - part), 0.0)


def is_float(values: Array) -> Array:
    """Return a mask of the values that float64 represents exactly, including NaN."""
    if values.dtype != object:
        return np.ones(values.shape, bool)
    floats = rounded(values)
    with np.errstate(invalid="ignore"):
        return np.asarray((values == floats.astype(object)) | np.isnan(floats), bool)


def summed(values: Array, axes: tuple[int, ...]) -> Array:
    """Sum along `axes`, which stay with extent 1: float64 numbers exactly, others one by one."""
    if values.dtype != object and values.size:
        return _sum_of_floats(values, axes)
    values = widened(values)
    for axis in axes:
        values = np.add.reduce(values, axis=axis, keepdims=True, initial=gmpy2.mpfr(0) if not values.size else None)
    return values


def _sum_of_floats(floats: Array, axes: tuple[int, ...]) -> Array:
    """Sum as whole multiples of the smallest unit."""
    finite = np.isfinite(floats)
    mantissa, exponent = np.frexp(floats if finite.all() else np.where(finite, floats, 0.0))
    unit = int(exponent.min(initial=1024, where=mantissa != 0)) - 53
    significands = np.ldexp(mantissa, 53).astype(np.int64).astype(object)
    shift = np.maximum(exponent - (unit + 53), 0).astype(object)
    scaled = gmpy2.mul_2exp if unit >= 0 else gmpy2.div_2exp
    total = each(lambda n: scaled(gmpy2.mpfr(n), abs(unit)), np.sum(significands << shift, axis=axes, keepdims=True))
    special = ~finite.all(axis=axes, keepdims=True)
    if special.any():  # infinities of both signs give NaN
        alone = np.where(finite, 0.0, floats).sum(axis=axes, keepdims=True)
        total = np.where(special, each(gmpy2.mpfr, alone.astype(object)), total)
    minus = ((floats == 0) & np.signbit(floats)).all(axis=axes, keepdims=True)
    return np.where(minus, gmpy2.mpfr("-0.0"), total) if minus.any() else total


SLACK = 1 + 2.0**-20
"""Covers the rounding of errors in float64, and the carrier's own error."""

# Plain numbers: arithmetic with an enumeration's members is slower than arithmetic with arrays.
POSITIVE, NEGATIVE = np.uint8(Flag.POSITIVE_INFINITY), np.uint8(Flag.NEGATIVE_INFINITY)
INFINITE = np.uint8(Flag.POSITIVE_INFINITY | Flag.NEGATIVE_INFINITY)
NAN, ZERO, FREE = np.uint8(Flag.NAN), np.uint8(Flag.ZERO), np.uint8(Flag.FREE)
NEGATIVE_ZERO, POSITIVE_ZERO = np.uint8(Flag.NEGATIVE_ZERO), np.uint8(Flag.POSITIVE_ZERO)
SIGNED_ZERO = np.uint8(Flag.NEGATIVE_ZERO | Flag.POSITIVE_ZERO)
EXCEPTIONAL = np.uint8(_EXCEPTIONAL)

T = TypeVar("T")
Size: TypeAlias = Any
"""An error: float64, of the value's shape or one that broadcasts to it, or the number 0.0 for none anywhere."""
Flags: TypeAlias = Any
"""Bits of Flag: uint8 of such a shape, or the number 0."""


class Known:
    """A node's exact values, lanes first, and facts about them, computed once for all contexts."""

    __slots__ = ("_facts", "v")

    def __init__(self, v: Array) -> None:
        self.v = v
        self._facts: dict[Hashable, Any] = {}

    def fact(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of `make`, which is called only once."""
        if key not in self._facts:
            self._facts[key] = make()
        fact: T = self._facts[key]
        return fact

    @property
    def f(self) -> Array:
        """The values rounded to float64."""
        v = self.v
        return v if v.dtype == np.float64 else self.fact("f", lambda: rounded(v).astype(np.float64))

    @property
    def is_integer(self) -> bool:
        """Whether the values are whole numbers of an integer type."""
        v = self.v
        return v.dtype.kind in "iu" or (v.dtype == object and bool(v.size) and isinstance(v.flat[0], int))

    @property
    def finite(self) -> Array:
        """A mask of the finite values."""
        return self.fact("finite", lambda: np.isfinite(self.f))

    @property
    def all_finite(self) -> bool:
        """Whether all values are finite."""
        return self.fact("all", lambda: bool(self.finite.all()))

    @property
    def beyond(self) -> Array | None:
        """A mask of the finite values that float64 cannot represent because they are too large; None if all can be."""
        v = self.v
        if v.dtype != object or not v.size or isinstance(v.flat[0], (int, str)) or self.all_finite:
            return None
        return self.fact("beyond", self._beyond)

    def _beyond(self) -> Array | None:
        beyond = np.asarray(np.isinf(self.f) & (self.v != self.f), bool)
        return beyond if beyond.any() else None

    @property
    def wide(self) -> Array:
        """The values as numbers of the wide carrier."""
        return self.fact("wide", lambda: widened(self.v))

    @property
    def rest(self) -> Array:
        """What float64 rounds off; 0 for infinities and NaN, and if it is below float64's numbers."""
        return self.fact("rest", self._rest)

    def _rest(self) -> Array:
        if self.v.dtype != object:
            return np.zeros(self.v.shape)
        with precise(), np.errstate(all="ignore"):
            rest = rounded(widened(self.v) - np.where(self.finite, self.f, 0.0).astype(object))
        return np.where(self.finite, rest, 0.0)

    @property
    def clean(self) -> Array:
        """The float64 values, with zeros in place of infinities and NaN."""
        return self.f if self.all_finite else self.fact("clean", lambda: np.where(self.finite, self.f, 0.0))

    @property
    def size(self) -> Array:
        """Magnitudes, with zeros in place of infinities and NaN."""
        return self.fact("size", lambda: np.abs(self.clean))

    @property
    def top(self) -> float:
        """The largest magnitude."""
        return self.fact("top", lambda: float(self.size.max(initial=0.0)))

    @property
    def bit(self) -> Array:
        """The exponent of the lowest set bit of each value."""
        return self.fact("bit", lambda: lowest_bit(self.clean))

    @property
    def floats(self) -> Array:
        """A mask of the values that float64 represents exactly."""
        return self.fact("floats", lambda: is_float(self.v))

    def held(self, form: FloatFormat) -> Array:
        """Return a mask of the exact values that the format represents."""
        return self.fact(("held", form), lambda: holds(form, self.f) & self.floats)

    def all_held(self, form: FloatFormat) -> bool:
        """Return whether the format represents all values."""
        return self.fact(("all held", form), lambda: bool(self.held(form).all()))


@dataclass(slots=True)
class Error:
    """The admissible difference of an implementation's numbers from a node's exact values, and other admissible values.

    `e` bounds the difference (under norm 2 its variance; an array of gmpy2's numbers if a value is beyond float64); for
    bool and text it is positive if both results are admissible. `exact_mean` is a mask of means whose sum is exact.
    `instead` has numbers that are admissible, up to the error, where the exact value is NaN or an infinity, else NaN;
    the flags there free everything, for later nodes. `ends` has the smallest and largest admissible whole numbers;
    without it, a whole number with an error is free.
    """

    e: Size = 0.0
    flags: Flags = 0
    exact_mean: Array | None = None
    instead: Array | None = None
    ends: tuple[Array, Array] | None = None

    @property
    def quiet(self) -> bool:
        """Whether no element has an error."""
        return isinstance(self.e, float) and self.e == 0.0

    @property
    def none(self) -> bool:
        """Whether there is no error and no flag."""
        return self.quiet and isinstance(self.flags, int) and self.flags == 0


@dataclass(frozen=True, slots=True)
class Charge:
    """One primitive's line of a certificate: its rule, its unit roundoff, and the error it added.

    `error` has the shape of the primitive's result, lanes first. For a sum, `terms` is the number of addends and
    `magnitude` the mean of their magnitudes.
    """

    rule: str
    unit: float
    error: Array
    terms: int | None = None
    magnitude: Array | None = None


@dataclass(frozen=True)
class Arithmetic:
    """How an implementation computes with numbers of one type: the format inside sums, and the format of results.

    `flush`: results below the normal range may become zero, including partial sums, and if `shares`, the quotients of a
    mean that is divided before summing. `summation` is the algorithm of means: from a sum, divided before or after;
    updated with each addend; or as the formula is written. `norm` 1 bounds errors, 2 sums variances (tier T2).
    `charges`, if given, collects each primitive's charges.
    """

    accumulator: FloatFormat
    storage: FloatFormat
    flush: bool = False
    shares: bool = True
    summation: Literal["sums", "running-means", "as-written"] = "sums"
    norm: Literal[1, 2] = 1
    charges: list[Charge] | None = None

    @property
    def narrow(self) -> bool:
        """Whether all is computed in a format of so few bits that how many numbers are added up matters."""
        return self.accumulator == self.storage and self.accumulator.precision <= _FEW_BITS

    def underflow(self, form: FloatFormat) -> float:
        """Return the absolute error of one rounding in the subnormal range."""
        return form.tiny if self.flush else max(form.eta / 2, 2.0**-1074)

    def spread(self, error: Size, slope: Size) -> Size:
        """Return an error multiplied by a factor."""
        return error * (slope if self.norm == 1 else slope * slope)

    def bound(self, error: Size) -> Size:
        """Return a bound on a single error: under norm 2 its standard deviation."""
        return error if self.norm == 1 else np.sqrt(error)

    def of_bound(self, bound: Size) -> Size:
        """Return the error that has this bound."""
        return bound if self.norm == 1 else bound * bound

    def note(self, rule: str, unit: float, error: Array, terms: int | None = None, mean: Array | None = None) -> None:
        """Record a charge, if `charges` is given."""
        if self.charges is not None:
            self.charges.append(Charge(rule, unit, error, terms, mean))


def charged(
    c: Arithmetic, y: Known, e: Size, flags: Flags = 0, roundings: Size = 1.0, *, rule: str, exact: Any = True
) -> Error:
    """Return an error after `roundings` more roundings to storage, including underflow and overflow.

    `exact`: whether a result that storage represents, from operands without error, costs nothing: True, False, or a
    mask of the elements for which the float64 carrier lost nothing.
    """
    form = c.storage
    quiet = isinstance(e, float) and e == 0.0
    small = (y.size > 0) & (y.size < form.tiny) if c.flush else None
    if exact is True and quiet and y.all_held(form) and not (small is not None and small.any()):
        if c.charges is not None:
            c.note(rule, form.roundoff, np.zeros(y.v.shape))
        return Error(0.0, flags)
    grown = y.size + e if c.norm == 1 else y.size
    charge = c.of_bound(roundings * (form.roundoff * grown + c.underflow(form)))
    if not isinstance(roundings, float):
        charge = np.where(np.equal(roundings, 0), 0.0, charge)
    none = None if exact is False else np.ones(y.v.shape, bool) if quiet else np.equal(e, 0)
    if none is not None and none.any():
        held = none & y.held(form) & exact
        charge = np.where(held if small is None else held & ~small, 0.0, charge)
    error = (e + charge) * SLACK
    if not y.all_finite:
        error, charge = np.where(y.finite, error, 0.0), np.where(y.finite, charge, 0.0)
    flags = flags | overflowing(c, y, error, charge)
    if c.charges is not None:
        c.note(rule, form.roundoff, np.broadcast_to(c.bound(charge), y.v.shape))
    return Error(error, flags)


def without_nan(error: Size, instead: float = np.inf) -> Size:
    """Return an error with `instead` in place of NaN, which says as little as an infinite error."""
    if isinstance(error, float):
        return error
    return np.where(np.isnan(error), instead, error) if np.isnan(error.max(initial=0.0)) else error


def overflowing(c: Arithmetic, y: Known, error: Size, charge: Size) -> Flags:
    """Return flags for the infinities that rounded results may become; 0 if none is in reach."""
    form = c.storage
    reach = c.bound(error)
    if not exceeds(form, y.top + (reach if isinstance(reach, float) else reach.max(initial=0.0))):
        return 0
    where = (charge > 0) & y.finite
    flags: Array = overflows(form, y.f, np.broadcast_to(reach, y.v.shape), where)
    return flags


def exceeds(form: FloatFormat, magnitude: Any) -> Any:
    """Return a mask of the magnitudes that may round to infinity."""
    return magnitude >= form.overflow if np.isfinite(form.overflow) else magnitude > form.largest


def overflows(form: FloatFormat, floats: Array, error: Size, where: Array) -> Array:
    """Return flags for the infinities that numbers with an error may round to, under the mask `where`."""
    up = where & exceeds(form, floats + error)
    down = where & exceeds(form, error - floats)
    return np.where(up, np.uint8(1), np.uint8(0)) | np.where(down, np.uint8(2), np.uint8(0))


def flip(flags: Flags, negative: Any) -> Flags:
    """Swap the flags for plus and minus under the mask `negative`."""
    if isinstance(flags, int):
        return flags
    kept = flags & ~(INFINITE | SIGNED_ZERO)
    swapped = kept | ((flags & 1) << 1) | ((flags & 2) >> 1) | ((flags & 32) << 1) | ((flags & 64) >> 1)
    return np.where(negative, swapped, flags).astype(np.uint8)


def unsigned(flags: Flags) -> Flags:
    """Return the flags without the bits for the sign of a zero."""
    return flags & ~SIGNED_ZERO if not isinstance(flags, int) else flags


def opposed(flags: Flags) -> Flags:
    """Add NaN where infinities of both signs may meet."""
    if isinstance(flags, int):
        return flags
    return np.where((flags & INFINITE) == INFINITE, flags | NAN, flags).astype(np.uint8)


def together(a: Flags, b: Flags) -> Flags:
    """Return the combined flags of two operands of a sum, without zeros' signs."""
    return unsigned(a | b) if isinstance(a, int) and isinstance(b, int) else opposed(unsigned(np.bitwise_or(a, b)))


def wild(flags: Flags) -> Flags:
    """Return the flags with all exceptional outcomes for elements that have one, without signs of zeros."""
    if isinstance(flags, int):
        return flags
    return np.where(flags & EXCEPTIONAL, flags | EXCEPTIONAL, flags & ~SIGNED_ZERO).astype(np.uint8)


@dataclass(frozen=True)
class Context:
    """How an implementation computes with numbers of each floating-point type. `name` is the silence's option.

    `variant` names a change in the arithmetic of every type.
    """

    name: str
    types: Mapping[str, Arithmetic] = field(default_factory=lambda: MappingProxyType({}))
    level: Literal["strict", "declared"] = "strict"
    variant: str = ""

    def at(self, type_: str) -> Arithmetic:
        """Return the arithmetic of a type; float32's for other types than floating-point ones."""
        return self.types.get(type_) or _native("float32")

    def using(self, variant: str, **changes: Any) -> Context:
        """Return this context with changes in the arithmetic of every type."""
        return replace(self, types={t: replace(a, **changes) for t, a in self.types.items()}, variant=variant)

    def charging(self, charges: list[Charge]) -> Context:
        """Return this context, recording every primitive's charges."""
        return self.using("charging", charges=charges)


@functools.cache
def _native(type_: str) -> Arithmetic:
    return Arithmetic(format_of(type_), format_of(type_))


@functools.cache
def carrier(types: frozenset[str]) -> Context:
    """Return the context of the float64 carrier of exact values: for every type, each step as written."""
    double = format_of("float64")
    return Context("carrier", dict.fromkeys(types, Arithmetic(double, double, summation="as-written")))


@functools.cache
def strict(types: frozenset[str], rounding: frozenset[str]) -> tuple[Context, ...]:
    """Return the contexts for a formula with numbers of `types` that rounds results of the types in `rounding`.

    If one of these has 16 bits or less, there are three: wide (float32 inside, one rounding at the end), stepwise
    (rounded after each primitive) and narrow (the type itself, also inside sums). Otherwise there is one.
    """
    single = format_of("float32")
    narrow = {t: _native(t) for t in types}
    if all(format_of(t).precision >= single.precision for t in rounding):
        return (Context("own", narrow),)
    small = {t: form for t in types if (form := format_of(t)).precision < single.precision}
    return (
        Context("wide", narrow | {t: Arithmetic(single, single) for t in small}),
        Context("stepwise", narrow | {t: Arithmetic(single, form) for t, form in small.items()}),
        Context("narrow", narrow),
    )


def declared(types: frozenset[str], declarations: Mapping[str, DeclaredType]) -> Context:
    """Return the context that a device declares; a type that it does not mention computes in itself."""
    return Context("declared", {t: _declared(t, declarations.get(t)) for t in types}, "declared")


def _declared(type_: str, declaration: DeclaredType | None) -> Arithmetic:
    if declaration is None:
        return _native(type_)
    storage = format_of(declaration.compute or type_)
    accumulator = format_of(declaration.accumulator) if declaration.accumulator else storage
    return Arithmetic(accumulator, storage, flush="output" in declaration.flush)
