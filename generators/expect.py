"""From a reading of a case to its expectation: the reference under every admissible arithmetic, as labelled options."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from ..cases.declared import DeclaredType
from ..cases.elements import Array, ElementType
from ..cases.expectation import EXCEPTIONAL, Bounds, Expectation, Flag, Labels, Option, Residue, Spread
from ..cases.results import Level
from .arithmetic import spread
from .arithmetic.bounded import Arithmetic, Bounded
from .arithmetic.integral import OVERFLOWS, IntegerArithmetic
from .arithmetic.numbers import Float64, Multiprecision, Numbers
from .arithmetic.rounding import formats, nearest

Formula: TypeAlias = Callable[[Sequence[Any]], Any]

# Plain numbers: arithmetic with an enumeration's members costs more than that with arrays.
_EXCEPTIONAL = np.uint8(EXCEPTIONAL)
_NAN, _ZERO, _FREE = np.uint8(Flag.NAN), np.uint8(Flag.ZERO), np.uint8(Flag.FREE)
_NEGATIVE_ZERO, _POSITIVE_ZERO = np.uint8(Flag.NEGATIVE_ZERO), np.uint8(Flag.POSITIVE_ZERO)

_VAGUE_FROM = 32  # outputs: a second moment over fewer says too little


@dataclass(frozen=True)
class Reading:
    """One admissible understanding of a case, and the silences that it answers.

    `kind` is that of Option, or `any`: whatever value, in `shape`. `formula` maps the data inputs (number types with a
    lane axis) to the output.
    `copies`: the output is the input, sign of zero included. `terms`: how many elements are added up into one.
    """

    labels: Labels = ()
    kind: Literal["values", "any", "rejected", "anything"] = "values"
    shape: tuple[int, ...] = ()
    formula: Formula | None = None
    copies: bool = False
    terms: int = 1


@dataclass(frozen=True)
class Rules:
    """What expectations depend on beside the reading.

    `silences`: the spec's, with their options in force. `random`: the data are random with mean zero, so that a second
    moment of errors may be judged (tier T2).
    """

    type: ElementType
    silences: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    random: bool = False
    declared: DeclaredType | None = None


def expectations(readings: Sequence[Reading], arrays: Sequence[Array], rules: Rules) -> list[Expectation]:
    """Return the expectation of each lane; see `expectation`."""
    found = expectation(readings, arrays, rules)
    return [found.case(lane) for lane in range(found.lanes)]


def expectation(readings: Sequence[Reading], arrays: Sequence[Array], rules: Rules) -> Expectation:
    """Return the expectations of all lanes, side by side.

    `arrays` are the data inputs with a leading lane axis. Raises KeyError if an integer reference needs a silence that
    the spec does not declare.
    """
    lanes = arrays[0].shape[0] if arrays else 1
    options = tuple(option for reading in readings for option in _options(reading, arrays, rules, lanes))
    return Expectation(options, (rules.type.name,), lanes)


@dataclass(frozen=True)
class Explained:
    """What an option of an expectation comes from: a reading; its labels, those of settled silences too; its level."""

    reading: Reading
    labels: Labels
    level: Level


def explained(
    readings: Sequence[Reading], arrays: Sequence[Array], rules: Rules
) -> list[tuple[list[int], list[Explained]]]:
    """Return where the same options apply, the lanes by number, and what these come from, in their order.

    `arrays` are the data inputs with a leading lane axis. Raises KeyError as `expectations` does.
    """
    lanes = arrays[0].shape[0] if arrays else 1
    told = [(option, reading) for reading in readings for option in _options(reading, arrays, rules, lanes)]
    alike: dict[bytes, list[int]] = {}
    for lane in range(lanes):
        alike.setdefault(bytes(bool(option.applies[lane]) for option, _ in told), []).append(lane)
    return [
        (
            found,
            [
                Explained(reading, option.labels, option.level)
                for applies, (option, reading) in zip(pattern, told, strict=True)
                if applies
            ],
        )
        for pattern, found in alike.items()
    ]


def _options(reading: Reading, arrays: Sequence[Array], rules: Rules, lanes: int) -> Iterator[Option]:
    everywhere = np.ones(lanes, bool)
    if reading.kind in ("rejected", "anything"):
        yield Option(reading.labels, kind=reading.kind, applies=everywhere)
    elif reading.kind == "any":
        free = np.full((lanes, *reading.shape), _FREE, np.uint8)
        zeros = np.zeros(free.shape, np.float64 if rules.type.format else rules.type.dtype)
        yield Option(reading.labels, (Bounds(rules.type.name, zeros, zeros, zeros, free),), applies=everywhere)
    elif rules.type.is_integer:
        yield from _integer_options(reading, arrays, rules)
    elif rules.type.kind == "bool":
        raise KeyError("bool has no arithmetic")
    else:
        yield from _float_options(reading, arrays, rules)


def _integer_options(reading: Reading, arrays: Sequence[Array], rules: Rules) -> Iterator[Option]:
    """Cross the roundings with the overflows; each silence applies in the lanes where its options differ."""
    formula = _formula(reading)
    roundings = rules.silences.get("integer-rounding", ("truncate",))
    overflows = rules.silences.get("integer-overflow", OVERFLOWS[:1])
    inputs = [IntegerArithmetic(rules.type).lift(a) for a in arrays]
    found = {}
    for overflow, rounding in itertools.product(overflows, roundings):
        arithmetic = IntegerArithmetic(rules.type, rounding, overflow)
        result = formula([x.under(arithmetic) for x in inputs]).value
        found[overflow, rounding] = np.asarray(result).astype(rules.type.dtype)
    rounds = _differ([[found[o, r] for r in roundings] for o in overflows])
    leaves = _differ([[found[o, r] for o in overflows] for r in roundings])
    for (overflow, rounding), value in found.items():
        applies = (rounds | (rounding == roundings[0])) & (leaves | (overflow == overflows[0]))
        labels = (*reading.labels, ("integer-overflow", overflow), ("integer-rounding", rounding))
        yield Option(labels, (Bounds(rules.type.name, value, value, value),), applies=applies)


def _differ(groups: Sequence[Sequence[Array]]) -> Array:
    """Return in which lanes the members of any group differ."""
    lanes = groups[0][0].shape[0]
    differ = np.zeros(lanes, bool)
    for first, *others in groups:
        for other in others:
            differ |= (first != other).reshape(lanes, -1).any(axis=1)
    return differ


def _float_options(reading: Reading, arrays: Sequence[Array], rules: Rules) -> Iterator[Option]:
    form = rules.type.float_format
    small = _any_lane([_subnormal(a, form.tiny) for a in arrays])
    everywhere = np.ones(arrays[0].shape[0], bool)
    arithmetics = strict_arithmetics(rules.type)
    inputs = arithmetics[0][1].lift_all(arrays)
    for index, (label, arithmetic) in enumerate(arithmetics):
        labelled = replace(reading, labels=(*reading.labels, ("accumulator", label)))
        branch = _Branch(labelled, arithmetic, rules)
        under = [x.under(arithmetic) for x in inputs]
        yield from branch.options(arrays, under, everywhere, flush_input=False, first=index == 0)
        if small.any():
            flushed = [flushed_input(a, form.tiny) for a in arrays]
            yield from branch.options(flushed, arithmetic.lift_all(flushed), small, flush_input=True)
    if rules.declared is not None:
        yield from _declared_options(reading, arrays, rules, rules.declared)


def strict_arithmetics(element: ElementType) -> tuple[tuple[str, Arithmetic], ...]:
    """Return the arithmetics that the standards leave open for a floating-point type: the silence `accumulator`.

    Three for 16-bit types: wide (float32 inside, one rounding at the end), stepwise (rounded after each primitive),
    narrow (the type itself, inside sums too). One for the others.
    """
    own, single = element.float_format, formats()["float32"]
    if own.precision >= single.precision:
        return (("own", Arithmetic(own, own, own, carrier(element))),)
    return (
        ("wide", Arithmetic(single, single, own)),
        ("stepwise", Arithmetic(single, own, own)),
        ("narrow", Arithmetic(own, own, own)),
    )


def carrier(element: ElementType) -> Numbers:
    """Return what carries exact values for an output type: multiprecision for float64, float64 for the others."""
    return Multiprecision() if element.float_format.precision > 24 else Float64()


@dataclass(frozen=True)
class _Branch:
    """One arithmetic for one reading: its bounds, split by what is silent about them."""

    reading: Reading
    arithmetic: Arithmetic
    rules: Rules
    level: Literal["strict", "declared"] = "strict"

    def options(
        self,
        arrays: Sequence[Array],
        inputs: Sequence[Bounded],
        applies: Array,
        *,
        flush_input: bool,
        first: bool = False,
    ) -> Iterator[Option]:
        exact_means: list[Array] = []
        noting = replace(self.arithmetic, exact_means=exact_means)
        result, bounds = self._evaluated([x.under(noting) for x in inputs])
        residue = self._residue(inputs, result) if first else None
        bounds = replace(bounds, spread=self._spread(arrays, bounds), residue=residue)
        yield from self._by_flush("sums", result, bounds, applies, flush_input)
        if not (exact_means and self._keeps_means):
            return
        differs = applies & _any_lane(exact_means)
        if differs.any():
            updating = replace(self.arithmetic, summation="running-means")
            result, bounds = self._evaluated([x.under(updating) for x in inputs])
            yield from self._by_flush("running-means", result, bounds, differs, flush_input)

    @property
    def _keeps_means(self) -> bool:
        """Whether a mean may be updated addend by addend: done for its accuracy, so not in 16 bits."""
        arithmetic = self.arithmetic
        return arithmetic.storage == arithmetic.accumulator and arithmetic.accumulator.precision >= 24

    def _evaluated(self, inputs: Sequence[Bounded]) -> tuple[Bounded, Bounds]:
        with self.arithmetic.context():
            result: Bounded = _formula(self.reading)(inputs)
            return result, bounds_of(result, self.rules.type)

    def _by_flush(
        self, summation: str, result: Bounded, bounds: Bounds, applies: Array, flush_input: bool
    ) -> Iterator[Option]:
        flags = self._flags(result, flush_input)
        tiny = self.rules.type.float_format.tiny
        least = np.abs(bounds.value) - result.error  # where it is below zero, zero is within the bounds anyway
        small = (least > 0) & (least < tiny)
        flushes = applies & _any_lane([small])
        flushing = small.astype(np.uint8) * _ZERO
        if flush_input:
            variants = [("input-and-output", flags | flushing, applies)]
        else:
            variants = [("none", flags, applies), ("output", flags | flushing, flushes)]
        for flush, admitted, where in variants:
            yield from self._by_overflow(bounds, admitted, where, (("summation", summation), ("flush", flush)))

    def _residue(self, inputs: Sequence[Bounded], result: Bounded) -> Residue:
        """Return what the float64 values leave of the exact ones: the rest itself, or what the carrier may err by."""
        floats, numbers = result.floats(), self.arithmetic.numbers
        zeros = np.zeros(floats.shape)
        if numbers.name == "float64":
            double = formats()["float64"]
            itself = Arithmetic(double, double, self.arithmetic.output, summation="as-written")
            carried: Bounded = _formula(self.reading)([x.under(itself) for x in inputs])
            return Residue(zeros, carried.error)
        finite = np.isfinite(floats)
        with self.arithmetic.context(), np.errstate(all="ignore"):
            rest = numbers.floats(numbers.widen(result.value) - np.where(finite, floats, 0.0).astype(object))
        return Residue(np.where(finite, rest, 0.0), zeros)

    def _flags(self, result: Bounded, flush_input: bool) -> Array:
        if flush_input:  # a flushed zero has either sign
            return np.asarray(result.flags & ~_NEGATIVE_ZERO)
        if not self.reading.copies:
            return result.flags
        plus = (result.floats() == 0) & ((result.flags & _NEGATIVE_ZERO) == 0)
        return np.asarray(result.flags | plus.astype(np.uint8) * _POSITIVE_ZERO)

    def _by_overflow(self, bounds: Bounds, flags: Array, applies: Array, labels: Labels) -> Iterator[Option]:
        """Tell a sum that stays finite from one that overflows on the way, where that is possible."""
        unknown = np.isnan(bounds.value)
        possible = _any_lane([((flags & _EXCEPTIONAL) > 0) & ~unknown]) & applies
        quiet = flags & ~_EXCEPTIONAL | unknown.astype(np.uint8) * _NAN
        yield from self._by_zero(bounds, quiet, applies, (*labels, ("overflow", "avoided")), exceptional=False)
        if possible.any():
            infinite = (*labels, ("overflow", "infinite"))
            yield from self._by_zero(bounds, flags | quiet, possible, infinite, exceptional=True)

    def _by_zero(
        self, bounds: Bounds, flags: Array, applies: Array, labels: Labels, *, exceptional: bool
    ) -> Iterator[Option]:
        """Tell a mean of minus zeros that keeps the sign from one that starts from plus zero."""
        negative = (flags & _NEGATIVE_ZERO) > 0
        signs = [("kept", flags, applies)]
        if not self.reading.copies:
            lost = np.where(negative, flags ^ (_NEGATIVE_ZERO | _POSITIVE_ZERO), flags)
            signs.append(("lost", lost, applies & _any_lane([negative])))
        for sign, admitted, where in signs:
            if where.any():
                whole = (*self.reading.labels, *labels, ("zero-sign", sign))
                outputs = (replace(bounds, flags=admitted),)
                yield Option(whole, outputs, exceptional=exceptional, level=self.level, applies=where)

    def _spread(self, arrays: Sequence[Array], bounds: Bounds) -> Spread | None:
        """Return the bound on the second moment where that on each element is vacuous (tier T2)."""
        if self.level == "declared":  # flushing and narrower formats err in ways that the model leaves out
            return None
        form = self.arithmetic.accumulator
        outputs = bounds.value[0].size if len(bounds.value) else 0
        vacuous = self.reading.terms * form.roundoff >= 1 and outputs >= _VAGUE_FROM
        if not (vacuous and self.rules.random and self.arithmetic.numbers.name == "float64"):
            return None
        modelled = _formula(self.reading)([spread.Spread.lift(form, a) for a in arrays])
        return Spread(np.sqrt(modelled.variance + form.eta**2))


def _declared_options(
    reading: Reading, arrays: Sequence[Array], rules: Rules, declared: DeclaredType
) -> Iterator[Option]:
    arithmetic = declared_arithmetic(rules.type, declared)
    everywhere = np.ones(arrays[0].shape[0], bool)
    branch = _Branch(reading, arithmetic, rules, "declared")
    yield from branch.options(arrays, arithmetic.lift_all(arrays), everywhere, flush_input=False)
    if "input" in declared.flush:
        flushed = [flushed_input(a, arithmetic.output.tiny) for a in arrays]
        yield from branch.options(flushed, arithmetic.lift_all(flushed), everywhere, flush_input=True)


def declared_arithmetic(element: ElementType, declared: DeclaredType) -> Arithmetic:
    """Return the arithmetic that a device declares for a floating-point type."""
    known, own = formats(), element.float_format
    storage = known[declared.compute] if declared.compute else own
    accumulator = known[declared.accumulator] if declared.accumulator else storage
    return Arithmetic(accumulator, storage, own, carrier(element), flush="output" in declared.flush)


def bounds_of(result: Bounded, element: ElementType) -> Bounds:
    """Return the admissible outputs for a result: from fl(v-e) to fl(v+e), fl rounding to the output type.

    Where the storage format is the output's, the implementation's last rounding is already in e: |y-v| <= e.
    """
    numbers, form = result.arithmetic.numbers, result.arithmetic.output
    value = result.floats()
    with np.errstate(all="ignore"):
        if numbers.name == "float64":
            lower, upper = value - result.error, value + result.error
        else:
            error = np.where(np.isfinite(result.error), result.error, np.inf).astype(object)
            exact = numbers.widen(result.value)
            lower, upper = numbers.floats(exact - error), numbers.floats(exact + error)
        if result.arithmetic.storage != form:
            lower, upper = nearest(form, lower), nearest(form, upper)
        unknown = np.isnan(value)
        if unknown.any():  # one NaN for all, whatever its payload: digests depend on the bytes
            value, lower, upper = (np.where(unknown, np.nan, a) for a in (value, lower, upper))
    return Bounds(element.name, value, lower, upper, result.flags)


def _formula(reading: Reading) -> Formula:
    if reading.formula is None:
        raise TypeError("a reading with values needs a formula")
    return reading.formula


def _subnormal(array: Array, tiny: float) -> Array:
    with np.errstate(invalid="ignore"):  # a signalling NaN
        magnitude = np.abs(array.astype(np.float64))
    return (magnitude > 0) & (magnitude < tiny)


def flushed_input(array: Array, tiny: float) -> Array:
    """Return an array with its subnormal numbers read as zeros of their sign."""
    return np.where(_subnormal(array, tiny), np.copysign(array.dtype.type(0), array), array)


def _any_lane(masks: Sequence[Array]) -> Array:
    lanes = masks[0].shape[0]
    whole = np.zeros(lanes, bool)
    for mask in masks:
        whole |= mask.reshape(lanes, -1).any(axis=1)
    return whole
