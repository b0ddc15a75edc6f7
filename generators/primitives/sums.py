"""Sums, means and running sums: in any order, in the accumulator's format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from ...cases.elements import Array, FloatFormat
from .arithmetic import largest, whole_error
from .errors import (
    INFINITE,
    NAN,
    NO_BIT,
    SIGNED_ZERO,
    SLACK,
    Arithmetic,
    Error,
    Flags,
    Known,
    Size,
    charged,
    each,
    exceeds,
    holds,
    opposed,
    ordered_sum,
    summed,
    unsigned,
)
from .primitive import Primitive, lane_axes

_ROOM: Final = 1 << 62
_DOUBLE: Final = FloatFormat(53, -1022, 1023)
SHORTEST: Final = 3
"""The fewest addends for which a running mean differs: for two exact addends it is exact."""


def count_along(shape: Sequence[int], axes: Sequence[int]) -> int:
    """Return the number of elements along axes."""
    return math.prod(shape[a] for a in axes)


def every_order_is_exact(form: FloatFormat, magnitude: Array, lowest: Array, *, flush: bool) -> Array:
    """Return a mask: whether all partial sums fit the accumulator's format, as multiples of the lowest bit."""
    grid = np.ldexp(1.0, np.minimum(lowest, 1023))
    limit = np.ldexp(1.0, np.maximum(np.minimum(lowest + form.precision, 1023), -1074))
    # a float64 sum of magnitudes beyond the limit may have been rounded to the limit
    fits = (magnitude == 0) | (magnitude < limit) | ((magnitude == limit) & (form.precision < 53))
    floor = form.tiny if flush else form.eta
    return np.asarray(fits & (magnitude <= form.largest) & (grid >= floor))


@dataclass(frozen=True, slots=True)
class Addends:
    """Facts about the addends of sums, for any arithmetic; each array has an element for each sum.

    `mean` is the mean of the magnitudes, which stays finite even if their sum does not; `lowest` the exponent of the
    lowest set bit.
    """

    positive: Array
    negative: Array
    mean: Array
    lowest: Array
    finite: Array

    @classmethod
    def of(cls, x: Known, lanes: tuple[int, ...]) -> Addends:
        """Return the facts about addends along some axes of the array."""
        return x.fact(("addends", lanes), lambda: cls._of(x, lanes))

    @classmethod
    def _of(cls, x: Known, lanes: tuple[int, ...]) -> Addends:
        floats, terms = x.f, max(1, count_along(x.v.shape, lanes))
        return cls(
            ordered_sum(np.where(floats > 0, floats, 0.0), lanes, keepdims=True),
            ordered_sum(np.where(floats < 0, -floats, 0.0), lanes, keepdims=True),
            ordered_sum(np.abs(floats) / terms, lanes, keepdims=True),
            x.bit.min(axis=lanes, keepdims=True, initial=NO_BIT),
            np.asarray(x.finite.all(axis=lanes, keepdims=True)),
        )


def real_sum(values: Array, lanes: tuple[int, ...], *, wide: bool = False) -> Array:
    """Sum real numbers along axes of the array, which stay with extent 1."""
    if wide or values.dtype == object:
        return summed(values, lanes)
    return np.asarray(values.sum(axis=lanes, keepdims=True))


def gathered(flags: Flags, shape: tuple[int, ...], lanes: tuple[int, ...]) -> Flags:
    """Return the combined flags of all addends; a zero's sign only if all have it."""
    if isinstance(flags, int):
        return flags
    flags = np.broadcast_to(flags, shape)
    union: Array = np.bitwise_or.reduce(flags, axis=lanes, keepdims=True)
    every: Array = np.bitwise_and.reduce(flags, axis=lanes, keepdims=True)
    return (union & ~SIGNED_ZERO) | (every & SIGNED_ZERO)


def _accumulated(c: Arithmetic, x: Known, error: Error, axes: tuple[int, ...]) -> tuple[Addends, Error, Size]:
    """Return the error of a sum in the accumulator's format, before it is rounded to storage; at least two addends.

    The last is the charge for the roundings of the sum's n-th part, even if every order is exact.
    """
    lanes = lane_axes(axes)
    n, parts, form = count_along(x.v.shape, lanes), Addends.of(x, lanes), c.accumulator
    carried = 0.0 if error.quiet else ordered_sum(np.broadcast_to(error.e, x.v.shape), lanes, keepdims=True)
    if c.norm == 2:
        return parts, Error(carried + _variance(form, x, lanes, n)), 0.0
    charge = (n - 1) * n * form.roundoff * (parts.mean + carried / max(n, 1))
    adding: Size = (n - 1) * form.roundoff * parts.mean
    if c.narrow and n > 1:
        few = _of_few_large(form, np.broadcast_to(x.size + error.e, x.v.shape), lanes)
        charge, adding = np.minimum(charge, few), np.minimum(adding, few / n)
    if c.flush:
        charge = charge + n * form.tiny
    magnitude = parts.positive + parts.negative
    exact = np.equal(carried, 0) & every_order_is_exact(form, magnitude, parts.lowest, flush=c.flush)
    charge = np.where(exact | ~parts.finite, 0.0, charge)
    e = np.where(parts.finite, (carried + charge) * SLACK, 0.0)
    flags = _flags_of_sum(form, parts, e, carried, gathered(error.flags, x.v.shape, lanes))
    c.note("sum in any order: (n-1)·u·Σ|x|", form.roundoff, charge, n, parts.mean)
    return parts, Error(e, flags), adding


def _of_few_large(form: FloatFormat, sizes: Array, lanes: tuple[int, ...]) -> Array:
    """Return the charge for a sum whose smallest addends are lost beside the others, with the best choice of them.

    A rounding of a + b is no larger than |b|. So of n addends the t smallest, with the sum of magnitudes W, err by at
    most (t-1)·u·W among each other, and by W' = W·(1 + (t-1)·u) when they meet the others, as each does once. The
    others then are a sum of n-t numbers whose magnitudes have grown by no more than 2·W' in all. Zeros cost nothing.
    """
    terms, unit = count_along(sizes.shape, lanes), form.roundoff
    kept = [1 if i in lanes else d for i, d in enumerate(sizes.shape)]
    last = np.moveaxis(sizes, lanes, range(-len(lanes), 0)).reshape(*kept, terms)
    smallest = np.sort(last, axis=-1)[..., :-1]
    few = np.arange(1, terms)
    lost = np.add.accumulate(smallest, axis=-1)
    meeting = lost * (1 + (few - 1) * unit)
    others = last.sum(axis=-1, keepdims=True) - lost
    charges = (terms - few - 1) * unit * (others + 2 * meeting) + meeting + (few - 1) * unit * lost
    return np.asarray(charges.min(axis=-1))


def _variance(form: FloatFormat, x: Known, lanes: tuple[int, ...], n: int) -> Array:
    """Return the variance of a sum's roundings: the k-th partial sum has mean k·µ and variance k·s²."""
    mean, square = (ordered_sum(part, lanes, keepdims=True) / n for part in (x.clean, x.clean**2))
    moments = n**2 / 2 * np.maximum(square - mean**2, 0.0) + n**3 / 3 * mean**2
    return np.asarray(form.roundoff**2 * moments)


def _flags_of_sum(form: FloatFormat, parts: Addends, error: Array, carried: Size, flags: Flags) -> Flags:
    """Return the flags of a sum in the accumulator's format, whose value has this error."""
    # without negative terms no partial sum is negative, however large its error
    wrong = np.greater(carried, 0)
    up = ((parts.positive > 0) | wrong) & exceeds(form, parts.positive + error)
    down = ((parts.negative > 0) | wrong) & exceeds(form, parts.negative + error)
    if isinstance(flags, int) and not up.any() and not down.any():
        return flags
    flags = flags | (parts.finite & up).astype(np.uint8) | ((parts.finite & down).astype(np.uint8) << 1)
    both = (flags & INFINITE) == INFINITE
    # with an infinity, an overflow to the other side would give NaN
    meets = ~parts.finite & ((up & (parts.negative == np.inf)) | (down & (parts.positive == np.inf)))
    return np.where(both | meets, flags | NAN, flags).astype(np.uint8)


def stored(c: Arithmetic, total: Known, error: Error) -> Error:
    """Round the accumulator's value to storage."""
    if c.accumulator == c.storage:
        return error
    exact = np.equal(error.e, 0) & total.held(c.storage)
    return charged(
        c, total, error.e, error.flags, np.where(exact, 0.0, 1.0), rule="round the sum to storage", exact=False
    )


def _subnormal_sums(form: FloatFormat, x: Known, lanes: tuple[int, ...]) -> Array:
    """Return a mask of sums of two or more addends that may be below the normal range: small or cancelling ones."""
    parts = Addends.of(x, lanes)
    low = np.asarray((parts.lowest < form.emin) & (count_along(x.v.shape, lanes) > 1))
    if not low.any():
        return low
    least = np.min(np.where(x.size > 0, x.size, np.inf), axis=lanes, keepdims=True, initial=np.inf)
    return np.asarray(low & ((2 * least < form.tiny) | ((parts.positive > 0) & (parts.negative > 0))))


class Sum(Primitive):
    """The sum over axes, which stay with extent 1."""

    name, rational, overflows, widens, accumulates = "sum", True, True, True, True
    text = "sum of {0} over {axes}: (n-1)·u·Σ|x|, nothing where every order is exact"

    @classmethod
    def record(cls, value: Any, *others: Any, **parameters: Any) -> Any:
        axes = value.axes(others[0] if others else parameters.get("axes"))
        reduced = value.node(cls.name, axes=axes)
        return reduced if parameters.get("keep", True) else without(reduced, axes)

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
        if x.is_integer:
            return gathered_whole(x, es[0], lane_axes(axes))
        if count_along(x.v.shape, lane_axes(axes)) == 1:
            return Error(es[0].e, es[0].flags)
        _, error, _ = _accumulated(c, x, es[0], axes)
        return stored(c, y, error)

    @staticmethod
    def underflows(c: Arithmetic, y: Known, xs: Sequence[Known], **parameters: Any) -> Array | None:
        return _subnormal_sums(c.accumulator, xs[0], lane_axes(parameters["axes"]))

    @classmethod
    def native(cls, m: Any, *xs: Array, **parameters: Any) -> Array:
        return np.asarray(m.rounded(m.summed(xs[0], lane_axes(parameters["axes"]))))

    @classmethod
    def terms(cls, shapes: Sequence[tuple[int, ...]], **parameters: Any) -> int:
        return count_along(shapes[0], parameters["axes"])


def whole_sum(x: Array, lanes: tuple[int, ...]) -> Array:
    """Sum whole numbers, in 64 bits if they certainly fit."""
    if x.dtype != object and largest(x) * max(count_along(x.shape, lanes), 1) >= _ROOM:
        x = x.astype(object)
    return np.asarray(x.sum(axis=lanes, keepdims=True))


def fraction_sum(x: Array, lanes: tuple[int, ...]) -> Array:
    """Sum fractions as whole multiples of a common unit: adding Fractions one by one takes ten times as long."""
    multiples, common = of_common_denominator(x)
    total = np.asarray(multiples.sum(axis=lanes, keepdims=True), object)
    return each(lambda number: Fraction(number, common), total)


def of_common_denominator(x: Array) -> tuple[Array, int]:
    """Return the numerators of fractions that share a denominator, and the denominator."""
    common = math.lcm(*{int(fraction.denominator) for fraction in x.reshape(-1)})
    return each(lambda f: int(f.numerator) * (common // f.denominator), x), common  # padding may be NumPy's


def without(value: Any, axes: tuple[int, ...]) -> Any:
    """Return a value without dimensions of extent 1."""
    return value.reshape(*(d for i, d in enumerate(value.shape) if i not in axes))


def gathered_whole(x: Known, error: Error, lanes: tuple[int, ...]) -> Error:
    """Return the error of combined whole numbers: free if any of them is."""
    combined = whole_error(x, (x,), (error,))
    return Error(0.0, unsigned(gathered(combined.flags, x.v.shape, lanes)))


class Mean(Sum):
    """The mean over axes, which stay with extent 1: the sum divided by n, the sum of quotients, or a running mean."""

    name, overflows = "mean", False
    text = "mean of {0} over {axes}: (n+1)·u·Σ|x|/n, nothing where the sum and its share are exact"

    @classmethod
    def record(cls, value: Any, *others: Any, **parameters: Any) -> Any:
        if value.kind != "int":
            return super().record(value, *others, **parameters)
        axes = value.axes(others[0] if others else parameters.get("axes"))
        total = value.sum(axes, keep=parameters.get("keep", True))
        operands, graph = total.aligned(count_along(value.shape, axes)), value.graph

        def quotient(rounding: str) -> Any:
            return graph.node("quotient", operands, {"rounding": rounding})  # it fits if the sum does

        return graph.choose("integer-rounding", "truncate", quotient)

    @staticmethod
    def exact(*xs: Array, **parameters: Any) -> Array:
        x, axes = xs[0], parameters["axes"]
        n = count_along(x.shape, lane_axes(axes))
        if n == 1 or not x.size:
            return x if n == 1 else np.zeros([1 if i - 1 in axes else d for i, d in enumerate(x.shape)]) + np.nan
        total = real_sum(x, lane_axes(axes), wide=parameters.get("wide", False))
        return np.asarray(total / n)

    @classmethod
    def fractions(cls, *xs: Array, **parameters: Any) -> Array:
        n = count_along(xs[0].shape, lane_axes(parameters["axes"]))
        return np.asarray(fraction_sum(xs[0], lane_axes(parameters["axes"])) / Fraction(max(n, 1)))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **parameters: Any) -> Error:
        x, axes = xs[0], parameters["axes"]
        n = count_along(x.v.shape, lane_axes(axes))
        if n <= 1:
            return Error(es[0].e, es[0].flags)
        parts, error, adding = _accumulated(c, x, es[0], axes)
        if c.norm == 2:
            return Error(error.e / n**2 + (c.accumulator.roundoff * y.clean) ** 2)
        power, lanes, wide = n & (n - 1) == 0, lane_axes(axes), y.v.dtype == object
        if c.accumulator != c.storage or c.summation == "as-written":
            known = x.fact(("sum", lanes), lambda: Known(real_sum(x.v, lanes, wide=wide)))
            error = stored(c, known, error)
            if c.summation == "as-written":
                return _divided(c, y, known, error, n, power=power)
        total = error
        shares = "u·Σ|x|/n where inexact" if power else "2·u·Σ|x|/n, and (n-1)·u·Σ|x|/n for a sum that was exact"
        charge = _shares(c, y, parts, total, adding=adding, n=n, power=power)
        rule = f"divide by n={n}, before or after adding up: {shares}"
        mean = _charged(c, y, Error(total.e / n, total.flags), rule, charge)
        return mean if n < SHORTEST else _running(c, y, x, parts, total=total, mean=mean, n=n, lanes=lanes)

    @staticmethod
    def underflows(c: Arithmetic, y: Known, xs: Sequence[Known], **parameters: Any) -> Array | None:
        lanes = lane_axes(parameters["axes"])
        parts, n = Addends.of(xs[0], lanes), count_along(xs[0].v.shape, lanes)
        # if partial sums were flushed, the mean is below the normal range too, and zero is admitted
        surely = parts.mean * (1 + (n + 1) * c.accumulator.roundoff) < c.storage.tiny
        return _subnormal_sums(c.accumulator, xs[0], lanes) & ~surely

    @classmethod
    def native(cls, m: Any, *xs: Array, **parameters: Any) -> Array:
        n = count_along(xs[0].shape, lane_axes(parameters["axes"]))
        if n <= 1:
            return np.asarray(m.rounded(xs[0] if n else cls.exact(*xs, **parameters)))
        return np.asarray(m.averaged(xs[0], lane_axes(parameters["axes"]), n))


def _charged(c: Arithmetic, y: Known, error: Error, rule: str, charge: Size) -> Error:
    """Add an absolute error that is not from a rounding rule; it does not overflow."""
    charge = np.where(y.finite, charge, 0.0)
    c.note(rule, c.storage.roundoff, charge)
    return Error((error.e + charge) * SLACK, error.flags, error.exact_mean)


def _divided(c: Arithmetic, y: Known, total: Known, error: Error, n: int, *, power: bool) -> Error:
    """Divide by a whole number as the formula is written: one rounding for a power of two, else two."""
    if power:
        exact = y.held(c.storage)
    else:  # the float64 quotient certainly is exact: the product has at most 53 bits
        quotient = total.f / n
        few = FloatFormat(max(1, 53 - n.bit_length()), -1022, 1023)
        exact = holds(few, quotient) & (quotient * n == total.f)
    e = error.e / n
    roundings = np.where(np.equal(e, 0) & exact, 0.0, 1.0 if power else 2.0)
    rule = f"divide by {n}: {1 if power else 2}·u·|y|"
    rounded = charged(c, y, e, 0, roundings, rule=rule, exact=False)
    return Error(rounded.e, error.flags)


def _shares(c: Arithmetic, y: Known, parts: Addends, total: Error, *, adding: Size, n: int, power: bool) -> Size:
    """Return the error of dividing a sum, or its addends first: zero if both are exact.

    `adding` is the charge for adding up the shares.
    """
    storage = c.storage
    smallest = np.ldexp(1.0 / n, np.minimum(parts.lowest, 1023))
    share = parts.mean
    relative = 2 * storage.roundoff * (share + total.e / n)
    underflow = max(2 * n * replace(c, flush=c.flush and c.shares).underflow(storage), c.underflow(storage))
    if not power:  # an exact sum is no longer exact if it adds inexact quotients
        if storage != c.accumulator:
            relative = relative + storage.roundoff * share  # their sum is rounded, unlike an exact one
        adding = np.maximum(adding - total.e / n, 0.0)
        return adding + relative + np.where(smallest >= storage.tiny, c.underflow(storage), underflow)
    shares_exact = smallest >= (storage.tiny if c.flush and c.shares else storage.eta)
    inexact = np.where(shares_exact, 0.0, underflow)
    exact = np.equal(total.e, 0)
    exact = exact & y.held(storage) if exact.any() else exact
    return np.where(exact, inexact, inexact + relative / 2 + c.underflow(storage))


def _running(
    c: Arithmetic, y: Known, x: Known, parts: Addends, *, total: Error, mean: Error, n: int, lanes: tuple[int, ...]
) -> Error:
    """Widen the error of means of exact sums to that of running means, if the arithmetic uses them; record where."""
    exact = np.equal(total.e, 0) & parts.finite
    if c.summation == "sums" and not exact.any():
        return mean
    span = x.fact(("span", lanes), lambda: _span(x.f, lanes))
    mean.exact_mean = np.asarray(exact & (span > 0))
    if c.summation == "sums":
        return mean
    charge = _running_charge(n, parts.mean, span, c.accumulator.roundoff, c.underflow(c.storage))
    rule = f"running mean of n={n}: (n-1)·u·M and 3·u·Σ|x-m|/n, M = Σ|x|/n; what is beyond the above"
    return _charged(c, y, mean, rule, np.where(exact, np.maximum(charge - mean.e, 0.0), 0.0))


def _span(floats: Array, lanes: tuple[int, ...]) -> Array:
    """Return the difference of the largest and the smallest addend."""
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
    grown = (terms + 3 * harmonic + 6) * unit  # the roundings of earlier errors
    if grown >= 0.5:
        return np.where(span == 0, 0.0, np.inf)
    differences = np.minimum((1 + harmonic) * mean, max(1.0, math.log2(terms) / 2) * span)
    first_order = unit * (3 * differences + (terms - 1) * mean) + terms * underflow
    return np.where(span == 0, 0.0, first_order / (1 - grown))


class Cumsum(Primitive):
    """Running sums along an axis, including the element itself unless `exclusive`; `reverse`: from the end."""

    name, rational, overflows, accumulates = "cumsum", True, True, True
    text = "running sums of {0} along {axis}: (k-1)·u·Σ|x|, nothing where every order is exact"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        axis = int(others[0] if others else p["axis"]) % value.rank
        line = value.flip(axis) if p.get("reverse") else value
        if p.get("exclusive") and value.shape[axis]:
            key = tuple(slice(0, -1) if i == axis else slice(None) for i in range(value.rank))
            frame = [(int(i == axis), 0) for i in range(value.rank)]
            cumulative = line.node("cumsum", axis=axis)[key].pad(frame)
        else:
            cumulative = line.node("cumsum", axis=axis)
        return cumulative.flip(axis) if p.get("reverse") else cumulative

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        x, axis = xs[0], p["axis"] + 1
        if x.dtype.kind in "iu" and largest(x) * max(x.shape[axis], 1) >= _ROOM:
            x = x.astype(object)
        return np.add.accumulate(x, axis)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        x, error, axis, form = xs[0], es[0], p["axis"] + 1, c.accumulator
        flags: Flags = 0
        if not isinstance(error.flags, int):
            spread = unsigned(np.broadcast_to(error.flags, x.v.shape))
            flags = opposed(np.bitwise_or.accumulate(spread, axis))
        if x.is_integer:
            return Error(0.0, flags)
        places = np.arange(x.v.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.v.ndim)])
        magnitude = x.fact(("Σ|x| up to", axis), lambda: np.add.accumulate(x.size, axis))
        carried = 0.0 if error.quiet else np.add.accumulate(np.broadcast_to(error.e, x.v.shape), axis)
        charge = c.of_bound(places * (form.roundoff * (magnitude + (carried if c.norm == 1 else 0.0))))
        charge = charge + c.of_bound(places * form.tiny) if c.flush else charge
        low = x.fact(("low up to", axis), lambda: np.minimum.accumulate(x.bit, axis))
        exact = np.equal(carried, 0) & every_order_is_exact(form, magnitude, low, flush=c.flush)
        charge = np.where(exact, 0.0, charge)
        e = np.where(y.finite, (carried + charge) * SLACK, 0.0)
        over = exceeds(form, magnitude + c.bound(e))
        if over.any():
            flags = flags | np.where(over, np.where(y.finite, 7, INFINITE), 0).astype(np.uint8)
        c.note("running sums in any order: (k-1)·u·Σ|x|", form.roundoff, charge)
        return stored(c, y, Error(e, flags))

    @staticmethod
    def underflows(c: Arithmetic, y: Known, xs: Sequence[Known], **parameters: Any) -> Array | None:
        return np.asarray(xs[0].bit < c.accumulator.emin)

    @classmethod
    def roundings(cls, c: Arithmetic, shapes: Sequence[tuple[int, ...]], **p: Any) -> float:
        return 2.0 + float(shapes[0][p["axis"]])

    @classmethod
    def native(cls, m: Any, *xs: Array, **p: Any) -> Array:
        if xs[0].dtype.kind in "iub":
            return np.asarray(np.add.accumulate(xs[0], p["axis"] + 1, dtype=xs[0].dtype))
        return np.asarray(m.rounded(np.add.accumulate(xs[0].astype(m.acc), p["axis"] + 1, dtype=m.acc)))
