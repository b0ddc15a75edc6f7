"""Error-carrying arithmetic: each primitive returns the exact result and the error that an implementation may make.

Running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., ch. 3), with the k·u form of
the bound on sums, which holds for every order of summation (Lange and Rump, BIT 57, 2017). Errors are charged per
primitive: one rounding for +, - and *, two for / (multiplying by a rounded reciprocal is compliant), the budgets of
OpenCL's table for functions; nothing where operands carry no error and the result is representable.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from ...cases.elements import Array, FloatFormat, element_type, type_of
from ...cases.expectation import Flag
from ...cases.program import count
from . import running_means
from .flags import EXCEPTIONAL, INFINITE, NEGATIVE_ZERO, SIGNED_ZERO, ZERO, flip, overflows
from .numbers import Float64, Numbers
from .ordered import ordered_sum
from .rounding import NO_BIT, contains, holds, lowest_bit
from .sums import Addends, Parts, every_order_is_exact, flags_of_sum
from .tensors import Axes, extent, lane_axes, lane_stack

_SLACK = 1 + 2.0**-20  # covers evaluating the errors in float64, and the carrier's own error

# Units in the last place, from OpenCL C 3.0, tables of relative error: full profile for 32 and 64 bits, and for half.
Budget: TypeAlias = tuple[tuple[str, float], ...]
_WIDE_BUDGET: Budget = (("exp", 3.0), ("log", 3.0), ("sqrt", 3.0))
_HALF_BUDGET: Budget = (("exp", 2.0), ("log", 2.0), ("sqrt", 1.0))


@dataclass(frozen=True, slots=True)
class Charge:
    """One primitive's line of a certificate: its rule, the unit roundoff it is in, and the error it added.

    `error` has the shape of the primitive's result, lanes first. Of a sum, `terms` is how many elements were added up
    and `magnitude` the mean of their magnitudes.
    """

    rule: str
    unit: float
    error: Array
    terms: int | None = None
    magnitude: Array | None = None


@dataclass
class _Known:
    """What has been worked out of a tensor, for every arithmetic that it is put under."""

    floats: Array | None = None
    parts: dict[Axes, Parts] = field(default_factory=dict)
    stacked: dict[tuple[int, ...], tuple[tuple[Array, ...], Bounded]] = field(default_factory=dict)


@dataclass(frozen=True)
class Arithmetic:
    """How an implementation computes: the format inside sums, that of every primitive's result, and of the output.

    `flush`: intermediate results below the normal range may become zero. `summation` is how a mean comes about: from a
    sum, divided before adding up or after; updated addend by addend; or as the formula is written. `charges`, if given,
    collects what each primitive charged; `exact_means` where sums were exact of which a mean was taken.
    """

    accumulator: FloatFormat
    storage: FloatFormat
    output: FloatFormat
    numbers: Numbers = field(default_factory=Float64)
    flush: bool = False
    summation: Literal["sums", "running-means", "as-written"] = "sums"
    charges: list[Charge] | None = None
    exact_means: list[Array] | None = None

    def context(self) -> AbstractContextManager[object]:
        """Return the context in which to evaluate; the carrier's precision holds there alone."""
        return self.numbers.context()

    def lift(self, array: Array) -> Bounded:
        """Take inputs of shape (lanes, ...); what the storage format can't hold is rounded to it."""
        with np.errstate(invalid="ignore"):  # a signalling NaN
            values = self.numbers.lift(array)
            zero = (array == 0) & np.signbit(array)
            floats = array.astype(np.float64)
        exact = Bounded(self, values, np.zeros(array.shape), zero.astype(np.uint8) * NEGATIVE_ZERO)
        exact.remember_floats(floats)
        if contains(self.storage, element_type(type_of(array)).float_format):
            return exact
        held = exact.held_by(self.storage)
        return exact if held.all() else exact.rounded("convert", np.where(held, 0.0, 1.0))

    def lift_all(self, arrays: Sequence[Array]) -> list[Bounded]:
        """Take several inputs; those of one shape in one go."""
        if len(arrays) < 3 or any(a.shape != arrays[0].shape for a in arrays):
            return [self.lift(a) for a in arrays]
        whole = self.lift(np.stack(arrays))
        parts = zip(whole.value, whole.error, whole.flags, strict=True)
        return [Bounded(self, np.asarray(value), error, flags) for value, error, flags in parts]

    def underflow(self, form: FloatFormat) -> float:
        """Return the absolute error of one rounding in the subnormal range."""
        return form.tiny if self.flush else max(form.eta / 2, 2.0**-1074)


class Bounded:
    """A tensor of (exact value, admissible error, exceptional outcomes), lanes first.

    `value` is float64 or multiprecision, `error` float64 and finite where the value is, `flags` uint8 bits of Flag.
    """

    __slots__ = ("_known", "addends", "arithmetic", "error", "flags", "value")
    __array_ufunc__ = None

    def __init__(
        self, arithmetic: Arithmetic, value: Array, error: Array, flags: Array, addends: Addends | None = None
    ) -> None:
        self.arithmetic, self.value, self.error, self.flags = arithmetic, value, error, flags
        self.addends = addends
        self._known = _Known()

    def under(self, arithmetic: Arithmetic) -> Bounded:
        """Return the same inputs under another arithmetic that holds them; what is known of them is shared."""
        same = Bounded(arithmetic, self.value, self.error, self.flags)
        same._known = self._known
        return same

    def reshaped(self, shape: tuple[int, ...]) -> Bounded:
        """Return the same elements in another shape of a lane."""
        lanes = (len(self.value), *shape)
        addends = self.addends and self.addends._replace(
            mean=self.addends.mean.reshape(lanes), lowest=self.addends.lowest.reshape(lanes)
        )
        parts = (self.value.reshape(lanes), self.error.reshape(lanes), self.flags.reshape(lanes))
        return Bounded(self.arithmetic, *parts, addends)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one lane."""
        return self.value.shape[1:]

    def floats(self) -> Array:
        """Return the exact values rounded to float64."""
        if self._known.floats is None:
            self._known.floats = self.arithmetic.numbers.floats(self.value)
        return self._known.floats

    def remember_floats(self, floats: Array) -> None:
        """Take the float64 values that this tensor is known to have, which saves rounding them again."""
        self._known.floats = floats

    def held_by(self, form: FloatFormat) -> Array:
        """Return which exact values the format represents."""
        return holds(form, self.floats()) & self.arithmetic.numbers.is_float(self.value)

    def rounded(self, rule: str, roundings: Array | float, *, may_overflow: bool = True) -> Bounded:
        """Charge `roundings` unit roundoffs of the storage format, underflow and overflow included."""
        form = self.arithmetic.storage
        floats = self.floats()
        with np.errstate(all="ignore"):
            largest = np.abs(floats) + self.error
            charge = np.where(
                np.equal(roundings, 0), 0.0, roundings * (form.roundoff * largest + self.arithmetic.underflow(form))
            )
            error = (self.error + charge) * _SLACK
            finite = np.isfinite(floats)
            error = np.where(finite, error, 0.0)
            flags = self.flags | overflows(form, floats, error, finite & (charge > 0)) if may_overflow else self.flags
        if self.arithmetic.charges is not None:
            self.arithmetic.charges.append(Charge(rule, form.roundoff, np.where(finite, charge, 0.0)))
        return Bounded(self.arithmetic, self.value, error, flags)

    def charged(self, rule: str, charge: Array) -> Bounded:
        """Add an absolute error that no rounding rule gives; it does not overflow."""
        finite = np.isfinite(self.floats())
        charge = np.where(finite, charge, 0.0)
        if self.arithmetic.charges is not None:
            self.arithmetic.charges.append(Charge(rule, self.arithmetic.storage.roundoff, charge))
        return Bounded(self.arithmetic, self.value, (self.error + charge) * _SLACK, self.flags)

    def sum(self, axes: Axes, keepdims: bool) -> Bounded:
        """Add up along `axes` in the accumulator's format, in any order, then round to storage."""
        total = self._accumulated(axes)
        if not keepdims:
            total = total.reshaped(tuple(d for i, d in enumerate(self.shape) if i not in axes))
        if self.arithmetic.accumulator == self.arithmetic.storage:
            return total
        exact = (total.error == 0) & total.held_by(self.arithmetic.storage)
        stored = total.rounded("round the sum to storage", np.where(exact, 0.0, 1.0))
        stored.addends = total.addends
        return stored

    def _accumulated(self, axes: Axes) -> Bounded:
        n, lanes = extent(self, axes), lane_axes(axes)
        if n == 1:
            return self
        arithmetic, parts = self.arithmetic, self._parts(lanes)
        carried, form = parts.carried, arithmetic.accumulator
        with np.errstate(all="ignore"):
            charge = (n - 1) * n * form.roundoff * (parts.mean + carried / n)
            if arithmetic.flush:
                charge = charge + n * form.tiny
            whole = parts.positive + parts.negative
            exact = (carried == 0) & every_order_is_exact(form, whole, parts.lowest, flush=arithmetic.flush)
            charge = np.where(exact | ~parts.finite, 0.0, charge)
            error = np.where(parts.finite, (carried + charge) * _SLACK, 0.0)
            flags = flags_of_sum(form, parts, error)
        if arithmetic.charges is not None:
            arithmetic.charges.append(Charge("sum in any order: (n-1)·u·Σ|x|", form.roundoff, charge, n, parts.mean))
        addends = Addends(n, parts.mean, parts.lowest, self.floats(), lanes)
        return Bounded(arithmetic, parts.total, error, flags, addends)

    def _parts(self, lanes: Axes) -> Parts:
        """Return what a sum needs to know whatever the arithmetic."""
        known = self._known.parts.get(lanes)
        if known is not None:
            return known
        floats = self.floats()
        terms = max(1, count(tuple(floats.shape[i] for i in lanes)))
        with np.errstate(all="ignore"):
            positive = ordered_sum(np.where(floats > 0, floats, 0.0), lanes, keepdims=True)
            negative = ordered_sum(np.where(floats < 0, -floats, 0.0), lanes, keepdims=True)
            finite = np.isfinite(floats)
            union: Array = np.bitwise_or.reduce(self.flags, axis=lanes, keepdims=True)
            every: Array = np.bitwise_and.reduce(self.flags, axis=lanes, keepdims=True)
            parts = Parts(
                self.arithmetic.numbers.sum(self.value, lanes),
                ordered_sum(self.error, lanes, keepdims=True),
                positive,
                negative,
                ordered_sum(np.abs(floats) / terms, lanes, keepdims=True),
                lowest_bit(np.where(finite, floats, 0.0)).min(axis=lanes, keepdims=True, initial=NO_BIT),
                (union & ~SIGNED_ZERO) | (every & SIGNED_ZERO),
                np.asarray(finite.all(axis=lanes, keepdims=True)),
            )
        self._known.parts[lanes] = parts
        return parts

    def __truediv__(self, divisor: Bounded | int) -> Bounded:
        """Divide; a positive whole number is exact, and by a power of two so is the division, but for underflow."""
        if isinstance(divisor, int):
            return self._divided(divisor)
        numbers = self.arithmetic.numbers
        with np.errstate(all="ignore"):
            value = numbers.widen(self.value) / numbers.widen(divisor.value)
            below = np.abs(divisor.floats()) - divisor.error
            error = (self.error + np.abs(numbers.floats(value)) * divisor.error) / below
            singular = (below <= 0) & (divisor.error > 0)
            flags = flip(self.flags, divisor.floats() < 0) | np.where(singular, EXCEPTIONAL, 0)
            flags = np.where(divisor.flags & EXCEPTIONAL, flags | EXCEPTIONAL | ZERO, flags)
        error = np.where(singular, np.inf, np.nan_to_num(error, nan=0.0, posinf=np.inf))
        return Bounded(self.arithmetic, value, error, flags.astype(np.uint8)).rounded("divide", 2.0)

    def _divided(self, divisor: int) -> Bounded:
        """Divide by a whole number; of a sum, in either order: the sum, or each of its addends before adding up."""
        if divisor == 1 or not self.value.size:  # a result of no element may be that of no addend
            return self
        storage, power = self.arithmetic.storage, divisor & (divisor - 1) == 0
        with np.errstate(all="ignore"):
            value = self.arithmetic.numbers.widen(self.value) / divisor
        quotient = Bounded(self.arithmetic, value, self.error / divisor, self.flags)
        if self.addends is None or self.arithmetic.summation == "as-written":
            whole = quotient.held_by(storage) if power else self._divides(divisor)
            exact = (self.error == 0) & whole
            rule = f"divide by {divisor}: {1 if power else 2}·u·|y|"
            return quotient.rounded(rule, np.where(exact, 0.0, 1.0 if power else 2.0), may_overflow=False)
        shares = "u·Σ|x|/n where inexact" if power else "2·u·Σ|x|/n, and (n-1)·u·Σ|x|/n for a sum that was exact"
        charge = self._division_of_addends(self.addends, divisor, quotient.held_by(storage))
        mean = quotient.charged(f"divide by n={divisor}, before or after adding up: {shares}", charge)
        return mean._by_running_means(self, self.addends) if divisor == self.addends.terms else mean

    def _divides(self, divisor: int) -> Array:
        """Return where the float64 quotient surely is the exact one, of interest where the carrier's errors are."""
        if self.arithmetic.summation != "as-written":  # a rounded reciprocal does not give it
            return np.zeros(self.value.shape, bool)
        quotient = self.floats() / divisor
        few = FloatFormat(max(1, 53 - divisor.bit_length()), -1022, 1023)  # the product has no more than 53 bits
        return np.asarray(holds(few, quotient) & (quotient * divisor == self.floats()))

    def _by_running_means(self, total: Bounded, addends: Addends) -> Bounded:
        """Widen this mean's error to that of a running mean, where the arithmetic says so."""
        arithmetic = self.arithmetic
        if addends.terms < running_means.SHORTEST:
            return self
        if arithmetic.exact_means is not None:
            exact = total.error == 0
            arithmetic.exact_means.append(exact & (addends.span() > 0) if exact.any() else exact)
        if arithmetic.summation == "sums":
            return self
        unit, underflow = arithmetic.accumulator.roundoff, arithmetic.underflow(arithmetic.storage)
        whole = running_means.charge(addends.terms, addends.mean, addends.span(), unit, underflow)
        rule = f"running mean of n={addends.terms}: (n-1)·u·M and 3·u·Σ|x-m|/n, M = Σ|x|/n; what is beyond the above"
        return self.charged(rule, np.maximum(whole - self.error, 0.0))

    def _division_of_addends(self, addends: Addends, divisor: int, held: Array) -> Array:
        """Return what dividing a sum, or its addends first, may add: nothing where both are exact."""
        storage, unit = self.arithmetic.storage, self.arithmetic.accumulator.roundoff
        with np.errstate(all="ignore"):
            smallest = np.ldexp(1.0 / divisor, np.clip(addends.lowest, -1074, 1023))
            share = addends.mean * (addends.terms / divisor)
            relative = 2 * storage.roundoff * (share + self.error / divisor)
            underflow = 2 * addends.terms * self.arithmetic.underflow(storage)
        if divisor & (divisor - 1):  # an exact sum is no longer one if inexact shares are added up
            if storage != self.arithmetic.accumulator:
                relative = relative + storage.roundoff * share  # their sum is rounded, where an exact one was not
            adding = np.maximum((addends.terms - 1) * unit * share - self.error / divisor, 0.0)
            return adding + relative + np.where(smallest >= storage.tiny, self.arithmetic.underflow(storage), underflow)
        shares_exact = smallest >= (storage.tiny if self.arithmetic.flush else storage.eta)
        inexact = np.where(shares_exact, 0.0, underflow)
        exact = (self.error == 0) & held
        return np.where(exact, inexact, inexact + relative / 2 + self.arithmetic.underflow(storage))

    def __neg__(self) -> Bounded:
        return Bounded(self.arithmetic, -self.value, self.error, flip(self.flags, np.True_))

    def __add__(self, other: Bounded) -> Bounded:
        return self.stack([other]).sum((0,), keepdims=False)

    def __sub__(self, other: Bounded) -> Bounded:
        return self + (-other)

    def __mul__(self, other: Bounded) -> Bounded:
        """Multiply, lane by lane, with broadcasting."""
        a, b = (_half(self.stack([other]), i) for i in (0, 1))
        with np.errstate(all="ignore"):
            value = self.arithmetic.numbers.widen(a.value) * self.arithmetic.numbers.widen(b.value)
            x, y = np.abs(a.floats()), np.abs(b.floats())
            error = np.nan_to_num(x * b.error) + np.nan_to_num(y * a.error) + a.error * b.error
            flags: Array = flip(a.flags, b.floats() < 0) | flip(b.flags, a.floats() < 0)
            eta = self.arithmetic.storage.eta
            vague = ((a.flags & INFINITE > 0) & (y <= b.error + eta)) | (
                (b.flags & INFINITE > 0) & (x <= a.error + eta)
            )
            flags = np.where(vague, flags | EXCEPTIONAL, flags) & ~SIGNED_ZERO
        product = Bounded(self.arithmetic, value, error, flags.astype(np.uint8))
        exact = (error == 0) & product.held_by(self.arithmetic.storage)
        return product.rounded("multiply", np.where(exact, 0.0, 1.0))

    def exp(self) -> Bounded:
        """Return e to the power of every element."""
        value = self.arithmetic.numbers.apply("exp", self.value)
        with np.errstate(all="ignore"):
            error = np.where(self.error == 0, 0.0, np.abs(self.arithmetic.numbers.floats(value)) * np.expm1(self.error))
        flags = np.where(self.flags & Flag.NEGATIVE_INFINITY, self.flags | Flag.ZERO, self.flags) & ~np.uint8(2)
        return self._function("exp", value, error, flags)

    def log(self) -> Bounded:
        """Return the natural logarithm of every element; where the error reaches zero, anything."""
        floats = self.floats()
        with np.errstate(all="ignore"):
            outside = (self.error > 0) & (self.error >= floats)
            error = np.where(self.error == 0, 0.0, np.where(outside, np.inf, -np.log1p(-self.error / floats)))
            value = self.arithmetic.numbers.apply("log", self.value)
        flags = np.where(outside, self.flags | Flag.NEGATIVE_INFINITY | Flag.NAN, self.flags)
        return self._function("log", value, error, flags)

    def sqrt(self) -> Bounded:
        """Return the square root of every element."""
        floats = self.floats()
        value = self.arithmetic.numbers.apply("sqrt", self.value)
        root = self.arithmetic.numbers.floats(value)
        with np.errstate(all="ignore"):
            below = np.sqrt(np.maximum(floats - self.error, 0.0))
            above = np.sqrt(floats + self.error)
            error = np.where(self.error == 0, 0.0, np.maximum(root - below, above - root) * _SLACK)
        flags = np.where(self.error > floats, self.flags | Flag.NAN, self.flags)
        return self._function("sqrt", value, error, flags)

    def _function(self, name: str, value: Array, error: Array, flags: Array) -> Bounded:
        budget = dict(_HALF_BUDGET if self.arithmetic.storage.precision < 24 else _WIDE_BUDGET)
        flags = (flags & ~SIGNED_ZERO).astype(np.uint8)
        # an ulp is at most two unit roundoffs of the value
        return Bounded(self.arithmetic, value, error, flags).rounded(name, 2 * budget[name])

    def stack(self, others: Sequence[Bounded]) -> Bounded:
        """Broadcast this tensor and `others` to one shape and stack them along a new first axis."""
        every = [self, *others]
        key = tuple(id(t.value) for t in every)
        values, known = self._known.stacked.get(key, ((), None))
        if known is not None and all(t.value is v for t, v in zip(every, values, strict=True)):
            return known.under(self.arithmetic)
        numbers = [t.value for t in every]
        if any(value.dtype == object for value in numbers):
            numbers = [self.arithmetic.numbers.widen(value) for value in numbers]
        stacked = Bounded(
            self.arithmetic,
            lane_stack(numbers),
            lane_stack([t.error for t in every]),
            lane_stack([t.flags for t in every]),
        )
        self._known.stacked[key] = tuple(t.value for t in every), stacked  # kept, so that their ids stay theirs
        return stacked


def _half(pair: Bounded, index: int) -> Bounded:
    return Bounded(pair.arithmetic, pair.value[:, index], pair.error[:, index], pair.flags[:, index])
