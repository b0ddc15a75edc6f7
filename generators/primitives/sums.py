"""Sums, means, products of matrices, products, running sums: added up in any order, in the accumulator's format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from ...cases.elements import Array, FloatFormat
from ..arithmetic.errors import (
    INFINITE,
    NAN,
    SIGNED_ZERO,
    SLACK,
    Arithmetic,
    Error,
    Flags,
    Known,
    Size,
    bounded,
    charged,
    exceeds,
    opposed,
    unsigned,
)
from ..arithmetic.formats import NO_BIT, holds
from ..arithmetic.multiprecision import each, summed, widened
from ..arithmetic.ordered import ordered_sum
from .integers import largest, whole_error
from .primitive import Primitive, lane_axes

_ROOM: Final = 1 << 62
_DOUBLE: Final = FloatFormat(53, -1022, 1023)
SHORTEST: Final = 3
"""How many addends a running mean takes to differ: that of two exact addends is exact."""


def _count(shape: Sequence[int], axes: Sequence[int]) -> int:
    return math.prod(shape[a] for a in axes)


def every_order_is_exact(form: FloatFormat, magnitude: Array, lowest: Array, *, flush: bool) -> Array:
    """Return where all partial sums are multiples of the lowest bit that fit the accumulator's format."""
    grid = np.ldexp(1.0, np.minimum(lowest, 1023))
    limit = np.ldexp(1.0, np.maximum(np.minimum(lowest + form.precision, 1023), -1074))
    # a sum of float64 magnitudes that is beyond the limit may have been rounded to it
    fits = (magnitude == 0) | (magnitude < limit) | ((magnitude == limit) & (form.precision < 53))
    floor = form.tiny if flush else form.eta
    return np.asarray(fits & (magnitude <= form.largest) & (grid >= floor))


@dataclass(frozen=True, slots=True)
class Addends:
    """What a sum needs to know of its addends whatever the arithmetic: an array an element of the sum.

    `mean` is that of the magnitudes, which stays finite where their sum does not; `lowest` the exponent of the lowest
    set bit.
    """

    positive: Array
    negative: Array
    mean: Array
    lowest: Array
    finite: Array

    @classmethod
    def of(cls, x: Known, lanes: tuple[int, ...]) -> Addends:
        """Return what is known of addends along some axes of the array."""
        return x.fact(("addends", lanes), lambda: cls._of(x, lanes))

    @classmethod
    def _of(cls, x: Known, lanes: tuple[int, ...]) -> Addends:
        floats, terms = x.f, max(1, _count(x.v.shape, lanes))
        return cls(
            ordered_sum(np.where(floats > 0, floats, 0.0), lanes, keepdims=True),
            ordered_sum(np.where(floats < 0, -floats, 0.0), lanes, keepdims=True),
            ordered_sum(np.abs(floats) / terms, lanes, keepdims=True),
            x.bit.min(axis=lanes, keepdims=True, initial=NO_BIT),
            np.asarray(x.finite.all(axis=lanes, keepdims=True)),
        )


def real_sum(values: Array, lanes: tuple[int, ...], *, wide: bool = False) -> Array:
    """Add up real numbers along axes of the array, which stay with extent 1."""
    if wide or values.dtype == object:
        return summed(values, lanes)
    return np.asarray(values.sum(axis=lanes, keepdims=True))


def _gathered(flags: Flags, shape: tuple[int, ...], lanes: tuple[int, ...]) -> Flags:
    """Return the flags of all addends together; a zero's sign if all have it."""
    if isinstance(flags, int):
        return flags
    flags = np.broadcast_to(flags, shape)
    union: Array = np.bitwise_or.reduce(flags, axis=lanes, keepdims=True)
    every: Array = np.bitwise_and.reduce(flags, axis=lanes, keepdims=True)
    return (union & ~SIGNED_ZERO) | (every & SIGNED_ZERO)


def _accumulated(c: Arithmetic, x: Known, error: Error, axes: tuple[int, ...]) -> tuple[Addends, Error]:
    """Return the error of a sum in the accumulator's format, not yet rounded to storage; two addends at least."""
    lanes = lane_axes(axes)
    n, parts, form = _count(x.v.shape, lanes), Addends.of(x, lanes), c.accumulator
    carried = 0.0 if error.quiet else ordered_sum(np.broadcast_to(error.e, x.v.shape), lanes, keepdims=True)
    if c.norm == 2:
        return parts, Error(carried + _variance(form, x, lanes, n))
    charge = (n - 1) * n * form.roundoff * (parts.mean + carried / max(n, 1))
    if c.flush:
        charge = charge + n * form.tiny
    whole = parts.positive + parts.negative
    exact = np.equal(carried, 0) & every_order_is_exact(form, whole, parts.lowest, flush=c.flush)
    charge = np.where(exact | ~parts.finite, 0.0, charge)
    e = bounded(np.where(parts.finite, (carried + charge) * SLACK, 0.0))
    flags = _flags_of_sum(form, parts, e, carried, _gathered(error.flags, x.v.shape, lanes))
    c.note("sum in any order: (n-1)·u·Σ|x|", form.roundoff, charge, n, parts.mean)
    return parts, Error(e, flags)


def _variance(form: FloatFormat, x: Known, lanes: tuple[int, ...], n: int) -> Array:
    """Return what roundings add to a sum's variance: the k-th partial sum has mean k·µ and variance k·s²."""
    mean, square = (ordered_sum(part, lanes, keepdims=True) / n for part in (x.clean, x.clean**2))
    moments = n**2 / 2 * np.maximum(square - mean**2, 0.0) + n**3 / 3 * mean**2
    return np.asarray(form.roundoff**2 * moments)


def _flags_of_sum(form: FloatFormat, parts: Addends, error: Array, carried: Size, flags: Flags) -> Flags:
    """Return what a sum in the accumulator's format may be beside its value, which has this error."""
    # without negative terms no partial sum is negative, however large its error
    wrong = np.greater(carried, 0)
    up = ((parts.positive > 0) | wrong) & exceeds(form, parts.positive + error)
    down = ((parts.negative > 0) | wrong) & exceeds(form, parts.negative + error)
    if isinstance(flags, int) and not up.any() and not down.any():
        return flags
    flags = flags | (parts.finite & up).astype(np.uint8) | ((parts.finite & down).astype(np.uint8) << 1)
    both = (flags & INFINITE) == INFINITE
    # beside an infinity, an overflow to the other side would make NaN
    meets = ~parts.finite & ((up & (parts.negative == np.inf)) | (down & (parts.positive == np.inf)))
    return np.where(both | meets, flags | NAN, flags).astype(np.uint8)


def _stored(c: Arithmetic, total: Known, error: Error) -> Error:
    """Round what the accumulator holds to storage."""
    if c.accumulator == c.storage:
        return error
    exact = np.equal(error.e, 0) & total.held(c.storage)
    return charged(
        c, total, error.e, error.flags, np.where(exact, 0.0, 1.0), rule="round the sum to storage", exact=False
    )


class Sum(Primitive):
    """The sum over axes, which stay with extent 1."""

    name, rational, overflows, widens = "sum", True, True, True
    text = "sum of {0} over {axes}: (n-1)·u·Σ|x|, nothing where every order is exact"

    @classmethod
    def record(cls, value: Any, *others: Any, **parameters: Any) -> Any:
        axes = value.axes(others[0] if others else parameters.get("axes"))
        whole = value.node(cls.name, axes=axes)
        return whole if parameters.get("keep", True) else without(whole, axes)

    @staticmethod
    def exact(*xs: Array, **parameters: Any) -> Array:
        x, lanes = xs[0], lane_axes(parameters["axes"])
        if x.dtype.kind in "iu":
            return whole_sum(x, lanes)
        return real_sum(x, lanes, wide=parameters.get("wide", False))

    @classmethod
    def fractions(cls, *xs: Array, **parameters: Any) -> Array:
        return fraction_sum(xs[0], lane_axes(parameters["axes"]))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **parameters: Any) -> Error:
        x, axes = xs[0], parameters["axes"]
        if x.whole:
            return _gathered_whole(x, es[0], lane_axes(axes))
        if _count(x.v.shape, lane_axes(axes)) == 1:
            return Error(es[0].e, es[0].flags)
        _, error = _accumulated(c, x, es[0], axes)
        return _stored(c, y, error)

    @classmethod
    def native(cls, m: Any, *xs: Array, **parameters: Any) -> Array:
        return np.asarray(m.rounded(m.summed(xs[0], lane_axes(parameters["axes"]))))

    @classmethod
    def terms(cls, shapes: Sequence[tuple[int, ...]], **parameters: Any) -> int:
        return _count(shapes[0], parameters["axes"])


def whole_sum(x: Array, lanes: tuple[int, ...]) -> Array:
    """Add up whole numbers, in 64 bits where they surely fit."""
    if x.dtype != object and largest(x) * max(_count(x.shape, lanes), 1) >= _ROOM:
        x = x.astype(object)
    return np.asarray(x.sum(axis=lanes, keepdims=True))


def fraction_sum(x: Array, lanes: tuple[int, ...]) -> Array:
    """Add up fractions as whole multiples of one: fractions one by one take ten times as long."""
    common = math.lcm(*{fraction.denominator for fraction in x.reshape(-1)})
    multiples = each(lambda f: f.numerator * (common // f.denominator), x)
    total = np.asarray(multiples.sum(axis=lanes, keepdims=True), object)
    return each(lambda number: Fraction(number, common), total)


def without(value: Any, axes: tuple[int, ...]) -> Any:
    """Return a value without dimensions of extent 1."""
    return value.reshape(*(d for i, d in enumerate(value.shape) if i not in axes))


def _gathered_whole(x: Known, error: Error, lanes: tuple[int, ...]) -> Error:
    found = whole_error(x, (x,), (error,))
    return Error(0.0, unsigned(_gathered(found.flags, x.v.shape, lanes)))


class Mean(Sum):
    """The mean over axes, which stay with extent 1: the sum divided by n, or the sum of shares, or a running mean."""

    name, overflows = "mean", False
    text = "mean of {0} over {axes}: (n+1)·u·Σ|x|/n, nothing where the sum and its share are exact"

    @classmethod
    def record(cls, value: Any, *others: Any, **parameters: Any) -> Any:
        if value.kind != "int":
            return super().record(value, *others, **parameters)
        axes = value.axes(others[0] if others else parameters.get("axes"))
        total = value.sum(axes, keep=parameters.get("keep", True))
        rounding = value.graph.answer("integer-rounding", "truncate")
        operands = total.aligned(_count(value.shape, axes))
        return value.graph.node("quotient", operands, {"rounding": rounding})  # it fits where the sum does

    @staticmethod
    def exact(*xs: Array, **parameters: Any) -> Array:
        x, axes = xs[0], parameters["axes"]
        n = _count(x.shape, lane_axes(axes))
        if n == 1 or not x.size:
            return x if n == 1 else np.zeros([1 if i - 1 in axes else d for i, d in enumerate(x.shape)]) + np.nan
        total = real_sum(x, lane_axes(axes), wide=parameters.get("wide", False))
        return np.asarray(total / n)

    @classmethod
    def fractions(cls, *xs: Array, **parameters: Any) -> Array:
        n = _count(xs[0].shape, lane_axes(parameters["axes"]))
        return np.asarray(fraction_sum(xs[0], lane_axes(parameters["axes"])) / Fraction(max(n, 1)))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **parameters: Any) -> Error:
        x, axes = xs[0], parameters["axes"]
        n = _count(x.v.shape, lane_axes(axes))
        if n <= 1:
            return Error(es[0].e, es[0].flags)
        parts, error = _accumulated(c, x, es[0], axes)
        if c.norm == 2:
            return Error(error.e / n**2 + (c.accumulator.roundoff * y.clean) ** 2)
        power, lanes, wide = n & (n - 1) == 0, lane_axes(axes), y.v.dtype == object
        if c.accumulator != c.storage or c.summation == "as-written":
            known = x.fact(("sum", lanes), lambda: Known(real_sum(x.v, lanes, wide=wide)))
            error = _stored(c, known, error)
            if c.summation == "as-written":
                return _divided(c, y, known, error, n, power=power)
        total = error
        shares = "u·Σ|x|/n where inexact" if power else "2·u·Σ|x|/n, and (n-1)·u·Σ|x|/n for a sum that was exact"
        charge = _shares(c, y, parts, total, n, power=power)
        rule = f"divide by n={n}, before or after adding up: {shares}"
        found = _charged(c, y, Error(total.e / n, total.flags), rule, charge)
        return found if n < SHORTEST else _running(c, y, x, parts, total=total, mean=found, n=n, lanes=lanes)

    @classmethod
    def native(cls, m: Any, *xs: Array, **parameters: Any) -> Array:
        n = _count(xs[0].shape, lane_axes(parameters["axes"]))
        if n <= 1:
            return np.asarray(m.rounded(xs[0] if n else cls.exact(*xs, **parameters)))
        return np.asarray(m.rounded(m.rounded(m.summed(xs[0], lane_axes(parameters["axes"]))) / m.type.type(n)))


def _charged(c: Arithmetic, y: Known, error: Error, rule: str, charge: Size) -> Error:
    """Add an absolute error that no rounding rule gives; it does not overflow."""
    charge = np.where(y.finite, charge, 0.0)
    c.note(rule, c.storage.roundoff, charge)
    return Error(bounded((error.e + charge) * SLACK), error.flags, error.exact_mean)


def _divided(c: Arithmetic, y: Known, total: Known, error: Error, n: int, *, power: bool) -> Error:
    """Divide by a whole number as the formula is written: one rounding by a power of two, else two."""
    if power:
        whole = y.held(c.storage)
    else:  # where the float64 quotient surely is the exact one: the product has no more than 53 bits
        quotient = total.f / n
        few = FloatFormat(max(1, 53 - n.bit_length()), -1022, 1023)
        whole = holds(few, quotient) & (quotient * n == total.f)
    e = error.e / n
    roundings = np.where(np.equal(e, 0) & whole, 0.0, 1.0 if power else 2.0)
    rule = f"divide by {n}: {1 if power else 2}·u·|y|"
    found = charged(c, y, e, 0, roundings, rule=rule, exact=False)
    return Error(found.e, error.flags)


def _shares(c: Arithmetic, y: Known, parts: Addends, total: Error, n: int, *, power: bool) -> Size:
    """Return what dividing a sum, or its addends first, may add: nothing where both are exact."""
    storage, unit = c.storage, c.accumulator.roundoff
    smallest = np.ldexp(1.0 / n, np.minimum(parts.lowest, 1023))
    share = parts.mean
    relative = 2 * storage.roundoff * (share + total.e / n)
    underflow = 2 * n * c.underflow(storage)
    if not power:  # an exact sum is no longer one if inexact shares are added up
        if storage != c.accumulator:
            relative = relative + storage.roundoff * share  # their sum is rounded, where an exact one was not
        adding = np.maximum((n - 1) * unit * share - total.e / n, 0.0)
        return adding + relative + np.where(smallest >= storage.tiny, c.underflow(storage), underflow)
    shares_exact = smallest >= (storage.tiny if c.flush else storage.eta)
    inexact = np.where(shares_exact, 0.0, underflow)
    exact = np.equal(total.e, 0)
    exact = exact & y.held(storage) if exact.any() else exact
    return np.where(exact, inexact, inexact + relative / 2 + c.underflow(storage))


def _running(
    c: Arithmetic, y: Known, x: Known, parts: Addends, *, total: Error, mean: Error, n: int, lanes: tuple[int, ...]
) -> Error:
    """Widen a mean's error to that of a running mean, where the arithmetic says so, and note where it matters."""
    exact = np.equal(total.e, 0)
    span = x.fact(("span", lanes), lambda: _span(x.f, lanes)) if exact.any() or c.summation != "sums" else None
    mean.exact_mean = np.asarray(exact & (span > 0) if exact.any() else exact)
    if c.summation == "sums" or span is None:
        return mean
    whole = _running_charge(n, parts.mean, span, c.accumulator.roundoff, c.underflow(c.storage))
    rule = f"running mean of n={n}: (n-1)·u·M and 3·u·Σ|x-m|/n, M = Σ|x|/n; what is beyond the above"
    return _charged(c, y, mean, rule, np.maximum(whole - mean.e, 0.0))


def _span(floats: Array, lanes: tuple[int, ...]) -> Array:
    """Return the largest addend less the smallest."""
    return np.asarray(floats.max(axis=lanes, keepdims=True) - floats.min(axis=lanes, keepdims=True))


def _running_charge(terms: int, mean: Array, span: Array, unit: float, underflow: float) -> Array:
    """Return the largest error of a running mean, in any order: Welford's algorithm, and Chan's merges.

    The update m_k = m_(k-1) + (x_k - m_(k-1)) / k rounds at most three times in its second term (the difference, 1/k,
    the product) and once at the end, so k·m_k, a partial sum, gains at most 3·u·|x_k - m_(k-1)| + u·|k·m_k|. Over all
    k, and over n, that is the bound: the second terms are at most Σ|x| each; the first ones together at most
    (1 + H)·Σ|x|, H the harmonic number of n-1, and at most n·max(1, log2(n)/2) times the span of the addends. A merge
    of two partial means (Chan, Golub and LeVeque, American Statistician 37, 1983) gains as much, its smaller part for
    1, and there are n-1 of either in all. `mean` is Σ|x|/n. Infinite where n·u is no longer small; equal addends are
    exact.
    """
    n = terms - 1
    harmonic = sum(1 / k for k in range(1, n + 1)) if n < 64 else math.log(n) + 0.5773 + 0.5 / n
    grown = (terms + 3 * harmonic + 6) * unit  # what earlier errors are rounded by
    if grown >= 0.5:
        return np.where(span == 0, 0.0, np.inf)
    differences = np.minimum((1 + harmonic) * mean, max(1.0, math.log2(terms) / 2) * span)
    first_order = unit * (3 * differences + (terms - 1) * mean) + terms * underflow
    return np.where(span == 0, 0.0, first_order / (1 - grown))


class Matmul(Primitive):
    """The product of matrices, of the last two axes; those before broadcast."""

    name, rational, overflows = "matmul", True, True
    text = "{0} @ {1}: n·u·Σ|xy|, nothing where every order is exact"
    _CHUNK: ClassVar[int] = 1 << 20

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        a, b = xs
        if a.dtype.kind in "iu" and b.dtype.kind in "iu":
            return _whole_product(a, b)
        if object in (a.dtype, b.dtype):
            a, b = (widened(x) if x.dtype == np.float64 else x for x in xs)
            return np.asarray(np.matmul(a, b))
        return product(a, b)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        (a, b), (ea, eb), n, form = xs, es, xs[0].v.shape[-1], c.accumulator
        if a.whole:
            return Error(
                0.0, _flags_of_product(a, b, *(whole_error(x, (x,), (e,)) for x, e in zip(xs, es, strict=True)))
            )
        magnitude = y.fact("Σ|xy|", lambda: product(a.size, b.size))
        carried = 0.0 if ea.quiet and eb.quiet else _carried(c, a, b, ea, eb)
        if c.norm == 2:
            square, mean = (product(p, q) / max(n, 1) for p, q in ((a.clean**2, b.clean**2), (a.clean, b.clean)))
            moments = n * square + n**2 / 2 * np.maximum(square - mean**2, 0) + n**3 / 3 * mean**2
            return _stored(c, y, Error(carried + form.roundoff**2 * moments))
        low = y.fact("low", lambda: _lowest_of_products(a, b))
        exact = np.equal(carried, 0) & every_order_is_exact(form, magnitude, low, flush=c.flush)
        charge = n * (form.roundoff * (magnitude + carried) + c.underflow(form))
        charge = np.where(exact, 0.0, charge)
        e = (carried + charge) * SLACK
        flags = _flags_of_product(a, b, ea, eb)
        if exceeds(form, np.max(magnitude + e, initial=0.0)):
            over = exceeds(form, magnitude + e)
            signs = _signs_of_products(a, b, ea, eb)
            flags = flags | np.where(over, signs, np.uint8(0)).astype(np.uint8)
        flags = opposed(flags)
        if not y.all_finite:
            e = np.where(y.finite, e, 0.0)
        e = bounded(e)
        c.note("sum of products in any order: n·u·Σ|xy|", form.roundoff, charge, n, magnitude / max(n, 1))
        return _stored(c, y, Error(e, flags))

    @classmethod
    def native(cls, m: Any, *xs: Array, **_: Any) -> Array:
        x, y = xs
        if x.dtype.kind in "iub":
            return np.asarray(np.matmul(x, y))
        products = m.product(x[..., :, :, None], y[..., None, :, :])
        return np.asarray(m.rounded(m.summed(products, (products.ndim - 2,))[..., 0, :]))

    @classmethod
    def terms(cls, shapes: Sequence[tuple[int, ...]], **_: Any) -> int:
        return shapes[0][-1]


def product(a: Array, b: Array) -> Array:
    """Return the product of float64 matrices in an order of our own: a library's differs between processors."""
    k = a.shape[-1]
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, n = a.shape[-2], b.shape[-1]
    whole = np.zeros((*shape, m, n))
    per = max(1, whole.size)
    chunk = max(1, min(k, Matmul._CHUNK // per))
    for start in range(0, k, chunk):
        parts = a[..., :, start : start + chunk, None] * b[..., None, start : start + chunk, :]
        while (left := parts.shape[-2]) > 1:
            half = left // 2
            added = parts[..., :half, :] + parts[..., half : 2 * half, :]
            parts = np.concatenate([added, parts[..., -1:, :]], axis=-2) if left % 2 else added
        whole = whole + parts[..., 0, :]
    return whole


def _whole_product(a: Array, b: Array) -> Array:
    if largest(a) * largest(b) * max(a.shape[-1], 1) >= _ROOM:
        a, b = a.astype(object), b.astype(object)
    if not a.shape[-1]:
        shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return np.zeros((*shape, a.shape[-2], b.shape[-1]), np.int64)
    return np.asarray(np.matmul(a, b))


def _carried(c: Arithmetic, a: Known, b: Known, ea: Error, eb: Error) -> Array:
    x, y = (np.broadcast_to(e.e, k.v.shape) for e, k in ((ea, a), (eb, b)))
    p, q = (s if c.norm == 1 else s * s for s in (a.size, b.size))
    parts = [product(p, y) if not eb.quiet else 0.0, product(x, q) if not ea.quiet else 0.0]
    both = product(x, y) if not (ea.quiet or eb.quiet) else 0.0
    return np.asarray(np.nan_to_num(parts[0] + parts[1] + both, nan=np.inf, posinf=np.inf))


def _lowest_of_products(a: Known, b: Known) -> Array:
    rows = a.bit.min(-1, initial=NO_BIT)[..., :, None]
    return np.asarray(rows + b.bit.min(-2, initial=NO_BIT)[..., None, :])


def _flags_of_product(a: Known, b: Known, ea: Error, eb: Error) -> Flags:
    if isinstance(ea.flags, int) and isinstance(eb.flags, int):
        return 0
    rows = np.bitwise_or.reduce(np.broadcast_to(ea.flags, a.v.shape).astype(np.uint8), axis=-1)[..., :, None]
    columns = np.bitwise_or.reduce(np.broadcast_to(eb.flags, b.v.shape).astype(np.uint8), axis=-2)[..., None, :]
    union = unsigned(rows | columns)
    return np.where(union & 7, union | 7, union).astype(np.uint8)  # an infinity times whatever sign


def _signs_of_products(a: Known, b: Known, ea: Error, eb: Error) -> Array:
    """Return the infinities that partial sums may overflow to: of one sign where all products have it."""
    vague = not (ea.quiet and eb.quiet)
    positive, negative = (np.maximum(s * a.clean, 0.0) for s in (1, -1))
    up = product(positive, np.maximum(b.clean, 0.0)) + product(negative, np.maximum(-b.clean, 0.0))
    down = product(positive, np.maximum(-b.clean, 0.0)) + product(negative, np.maximum(b.clean, 0.0))
    return np.where(vague | (up > 0), 1, 0).astype(np.uint8) | np.where(vague | (down > 0), 2, 0).astype(np.uint8)
