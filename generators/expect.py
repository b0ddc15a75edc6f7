"""From a reading of a case to its expectation: the reference under every admissible arithmetic, as labelled options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from ..cases.declared import DeclaredType
from ..cases.elements import Array, ElementType
from ..cases.expectation import EXCEPTIONAL, Bounds, Expectation, Flag, Labels, Option, Spread
from .arithmetic import spread
from .arithmetic.bounded import Arithmetic, Bounded
from .arithmetic.integral import OVERFLOWS, IntegerArithmetic
from .arithmetic.numbers import Float64, Multiprecision, Numbers
from .arithmetic.rounding import formats, nearest

Formula: TypeAlias = Callable[[Sequence[Any]], Any]

_VAGUE_FROM = 32  # outputs: a second moment over fewer says too little


@dataclass(frozen=True)
class Reading:
    """One admissible understanding of a case, and the silences that it answers.

    `kind` is that of Option, or `any`: whatever value, in `shape`. `formula` maps the data inputs (number types with a
    lane axis) to the output; `alternatives` are other formulas, by name, that are right where they differ in rounding.
    `copies`: the output is the input, sign of zero included. `terms`: how many elements are added up into one.
    """

    labels: Labels = ()
    kind: Literal["values", "any", "rejected", "anything"] = "values"
    shape: tuple[int, ...] = ()
    formula: Formula | None = None
    alternatives: tuple[tuple[str, Formula], ...] = ()
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


@dataclass(frozen=True)
class _Laned:
    """An option for all lanes at once, and in which of them it applies."""

    option: Option
    applies: Array


def expectations(readings: Sequence[Reading], arrays: Sequence[Array], rules: Rules) -> list[Expectation]:
    """Return the expectation of each lane.

    `arrays` are the data inputs with a leading lane axis. Raises KeyError if an integer reference needs a silence that
    the spec does not declare.
    """
    lanes = arrays[0].shape[0] if arrays else 1
    laned = [option for reading in readings for option in _options(reading, arrays, rules, lanes)]
    return [_in_lane(laned, lane, rules.type.name) for lane in range(lanes)]


def _options(reading: Reading, arrays: Sequence[Array], rules: Rules, lanes: int) -> Iterator[_Laned]:
    everywhere = np.ones(lanes, bool)
    if reading.kind in ("rejected", "anything"):
        yield _Laned(Option(reading.labels, kind=reading.kind), everywhere)
    elif reading.kind == "any":
        free = np.full((lanes, *reading.shape), Flag.FREE, np.uint8)
        zeros = np.zeros(free.shape, np.float64 if rules.type.format else rules.type.dtype)
        yield _Laned(Option(reading.labels, (Bounds(rules.type.name, zeros, zeros, zeros, free),)), everywhere)
    elif rules.type.is_integer:
        yield from _integer_options(reading, arrays, rules)
    elif rules.type.kind == "bool":
        raise KeyError("bool has no arithmetic")
    else:
        yield from _float_options(reading, arrays, rules)


def _integer_options(reading: Reading, arrays: Sequence[Array], rules: Rules) -> Iterator[_Laned]:
    """Cross the roundings with the overflows; each silence applies in the lanes where its options differ."""
    formula = _formula(reading)
    roundings = rules.silences.get("integer-rounding", ("truncate",))
    overflows = rules.silences.get("integer-overflow", OVERFLOWS[:1])
    found = {
        (overflow, rounding): np.asarray(
            formula([IntegerArithmetic(rules.type, rounding, overflow).lift(a) for a in arrays]).value
        ).astype(rules.type.dtype)
        for overflow in overflows
        for rounding in roundings
    }
    rounds = _differ([[found[o, r] for r in roundings] for o in overflows])
    leaves = _differ([[found[o, r] for o in overflows] for r in roundings])
    for (overflow, rounding), value in found.items():
        applies = (rounds | (rounding == roundings[0])) & (leaves | (overflow == overflows[0]))
        labels = (*reading.labels, ("integer-overflow", overflow), ("integer-rounding", rounding))
        yield _Laned(Option(labels, (Bounds(rules.type.name, value, value, value),)), applies)


def _differ(groups: Sequence[Sequence[Array]]) -> Array:
    """Return in which lanes the members of any group differ."""
    lanes = groups[0][0].shape[0]
    differ = np.zeros(lanes, bool)
    for first, *others in groups:
        for other in others:
            differ |= (first != other).reshape(lanes, -1).any(axis=1)
    return differ


def _float_options(reading: Reading, arrays: Sequence[Array], rules: Rules) -> Iterator[_Laned]:
    form = rules.type.float_format
    small = _any_lane([_subnormal(a, form.tiny) for a in arrays])
    everywhere = np.ones(arrays[0].shape[0], bool)
    named = (("sum-first", _formula(reading)), *reading.alternatives)
    for label, arithmetic in strict_arithmetics(rules.type):
        for name, formula in named:
            applies = everywhere if name == "sum-first" else _dividing_underflows(arrays, reading.terms, form.tiny)
            if not applies.any():
                continue
            labels = (*reading.labels, ("accumulator", label), ("algorithm", name))
            branch = _Branch(replace(reading, labels=labels, formula=formula), arithmetic, rules)
            yield from branch.options(arrays, applies, flush_input=False)
            if (applies & small).any():
                flushed = [
                    np.where(np.abs(a.astype(np.float64)) < form.tiny, np.copysign(a.dtype.type(0), a), a)
                    for a in arrays
                ]
                yield from branch.options(flushed, applies & small, flush_input=True)
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

    def options(self, arrays: Sequence[Array], applies: Array, *, flush_input: bool) -> Iterator[_Laned]:
        with self.arithmetic.context():
            result: Bounded = _formula(self.reading)([self.arithmetic.lift(a) for a in arrays])
            bounds = bounds_of(result, self.rules.type)
        bounds = replace(bounds, spread=self._spread(arrays, bounds))
        flags = result.flags
        tiny = self.rules.type.float_format.tiny
        least = np.abs(bounds.value) - result.error  # where it is below zero, zero is within the bounds anyway
        small = (least > 0) & (least < tiny)
        flushes = applies & _any_lane([small])
        flushing = np.where(small, np.uint8(Flag.ZERO), np.uint8(0))
        if flush_input:
            variants = [("input-and-output", flags | flushing, applies)]
        else:
            variants = [("none", flags, applies), ("output", flags | flushing, flushes)]
        for flush, admitted, where in variants:
            yield from self._by_overflow(bounds, admitted, where, flush)

    def _by_overflow(self, bounds: Bounds, flags: Array, applies: Array, flush: str) -> Iterator[_Laned]:
        """Tell a sum that stays finite from one that overflows on the way, where that is possible."""
        possible = _any_lane([((flags & EXCEPTIONAL) > 0) & ~np.isnan(bounds.value)]) & applies
        quiet = flags & ~np.uint8(EXCEPTIONAL) | np.where(np.isnan(bounds.value), np.uint8(Flag.NAN), np.uint8(0))
        yield from self._by_zero(bounds, quiet, applies, (("flush", flush), ("overflow", "avoided")), exceptional=False)
        if possible.any():
            labels = (("flush", flush), ("overflow", "infinite"))
            yield from self._by_zero(bounds, flags | quiet, possible, labels, exceptional=True)

    def _by_zero(
        self, bounds: Bounds, flags: Array, applies: Array, labels: Labels, *, exceptional: bool
    ) -> Iterator[_Laned]:
        """Tell a mean of minus zeros that keeps the sign from one that starts from plus zero."""
        negative = (flags & Flag.NEGATIVE_ZERO) > 0
        signs = [("kept", flags, applies)]
        if not self.reading.copies:
            lost = np.where(negative, flags ^ np.uint8(Flag.NEGATIVE_ZERO | Flag.POSITIVE_ZERO), flags)
            signs.append(("lost", lost, applies & _any_lane([negative])))
        for sign, admitted, where in signs:
            if where.any():
                whole = (*self.reading.labels, *labels, ("zero-sign", sign))
                option = Option(whole, (replace(bounds, flags=admitted),), exceptional=exceptional, level=self.level)
                yield _Laned(option, where)

    def _spread(self, arrays: Sequence[Array], bounds: Bounds) -> Spread | None:
        """Return the bound on the second moment where that on each element is vacuous (tier T2)."""
        form = self.arithmetic.accumulator
        outputs = bounds.value[0].size if len(bounds.value) else 0
        vacuous = self.reading.terms * form.roundoff >= 1 and outputs >= _VAGUE_FROM
        if not (vacuous and self.rules.random and self.arithmetic.numbers.name == "float64"):
            return None
        modelled = _formula(self.reading)([spread.Spread.lift(form, a) for a in arrays])
        return Spread(np.sqrt(modelled.variance + form.eta**2))


def _declared_options(
    reading: Reading, arrays: Sequence[Array], rules: Rules, declared: DeclaredType
) -> Iterator[_Laned]:
    known, own = formats(), rules.type.float_format
    storage = known[declared.compute] if declared.compute else own
    accumulator = known[declared.accumulator] if declared.accumulator else storage
    arithmetic = Arithmetic(accumulator, storage, own, carrier(rules.type), flush="output" in declared.flush)
    everywhere = np.ones(arrays[0].shape[0], bool)
    branch = _Branch(reading, arithmetic, rules, "declared")
    yield from branch.options(arrays, everywhere, flush_input=False)
    if "input" in declared.flush:
        flushed = [
            np.where(np.abs(a.astype(np.float64)) < own.tiny, np.copysign(a.dtype.type(0), a), a) for a in arrays
        ]
        yield from branch.options(flushed, everywhere, flush_input=True)


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
            error = numbers.lift(np.where(np.isfinite(result.error), result.error, np.inf))
            lower, upper = numbers.floats(result.value - error), numbers.floats(result.value + error)
        if result.arithmetic.storage != form:
            lower, upper = nearest(form, lower), nearest(form, upper)
    return Bounds(element.name, value, lower, upper, result.flags)


def _formula(reading: Reading) -> Formula:
    if reading.formula is None:
        raise TypeError("a reading with values needs a formula")
    return reading.formula


def _subnormal(array: Array, tiny: float) -> Array:
    magnitude = np.abs(array.astype(np.float64))
    return (magnitude > 0) & (magnitude < tiny)


def _dividing_underflows(arrays: Sequence[Array], terms: int, tiny: float) -> Array:
    """Return in which lanes an input divided by the number of terms is subnormal."""
    if terms <= 1:
        return np.zeros(arrays[0].shape[0], bool)
    magnitudes = [np.abs(a.astype(np.float64)) for a in arrays]
    with np.errstate(all="ignore"):
        return _any_lane([(m > 0) & (m / terms < tiny) for m in magnitudes])


def _any_lane(masks: Sequence[Array]) -> Array:
    lanes = masks[0].shape[0]
    whole = np.zeros(lanes, bool)
    for mask in masks:
        whole |= mask.reshape(lanes, -1).any(axis=1)
    return whole


def _in_lane(laned: Sequence[_Laned], lane: int, type_name: str) -> Expectation:
    """Return one lane's expectation; a silence with a single option left does not apply there."""
    options = [o.option for o in laned if o.applies[lane]]
    answers: dict[str, set[str]] = {}
    for option in options:
        for silence, answer in option.labels:
            answers.setdefault(silence, set()).add(answer)
    kept = {silence for silence, found in answers.items() if len(found) > 1}
    sliced = [
        replace(
            option,
            labels=tuple(label for label in option.labels if label[0] in kept),
            outputs=tuple(_slice(bounds, lane) for bounds in option.outputs),
        )
        for option in options
    ]
    return Expectation(tuple(sliced), (type_name,))


def _slice(bounds: Bounds, lane: int) -> Bounds:
    flags = None if bounds.flags is None else bounds.flags[lane]
    spread_ = None if bounds.spread is None else replace(bounds.spread, sigma=bounds.spread.sigma[lane])
    return Bounds(
        bounds.type,
        bounds.value[lane],
        bounds.lower[lane],
        bounds.upper[lane],
        flags if flags is not None and flags.any() else None,
        spread_,
    )
