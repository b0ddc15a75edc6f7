"""Certificates: how a case's bounds come about, in numbers that anybody can check without this package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from ..cases.batch import Batch
from ..cases.elements import Array
from ..cases.expectation import Labels
from .arithmetic.bounded import Arithmetic, Bounded, Charge
from .arithmetic.exact import Exact
from .arithmetic.formula import Primitive, Tape
from .arithmetic.integral import IntegerArithmetic
from .expect import Explained, Reading, Rules, declared_arithmetic, explained, flushed_input, strict_arithmetics
from .source import GeneratedCases
from .strategy.reasoning import reasoning as reasoning_of

Number: TypeAlias = Fraction | float
"""An exact value, or one that is no number: NaN or an infinity."""

LARGEST = 1 << 20
"""The elements that inputs may have together for their exact results to be computed as fractions."""


@dataclass(frozen=True)
class Step:
    """What one primitive may err by: one lane's part of a Charge.

    `unit` is the unit roundoff u. `error` has the shape of the primitive's result; of a sum, `terms` is n and
    `magnitude` M = Σ|x|/n.
    """

    rule: str
    unit: float
    error: Array
    terms: int | None
    magnitude: Array | None


@dataclass(frozen=True)
class Derivation:
    """One reading of a case under one arithmetic.

    `labels` name the reading, `name` the arithmetic. `flushed`: subnormal inputs are read as zeros. `formula` is what
    the reading computes, its inputs by their place among the case's. `exact` has the exact result of each output
    element in C order, None where there are too many inputs or where fractions do not do. `error` is what the
    arithmetic may add, before the result is rounded to the output type; None for integers.
    """

    labels: Labels
    name: str
    arithmetic: Arithmetic | IntegerArithmetic
    flushed: bool
    formula: tuple[Primitive, ...]
    exact: tuple[Number, ...] | None
    steps: tuple[Step, ...] = ()
    error: Array | None = None


@dataclass(frozen=True)
class Certificate:
    """A case with what its expectation comes from.

    `of_option` has, for each option of the expectation, the place of its derivation; None where nothing is computed.
    """

    case: Batch
    derivations: tuple[Derivation, ...]
    of_option: tuple[int | None, ...]


def certificate(source: GeneratedCases, case: Batch) -> Certificate:
    """Return a case's certificate."""
    return certificates(source, [case])[0]


def certificates(source: GeneratedCases, cases: Sequence[Batch]) -> list[Certificate]:
    """Return the certificates of cases that differ in their draw alone: together they cost less."""
    found = [Certificate(case, (), ()) for case in cases]
    if cases[0].expectation.invalid:
        return found
    reasoning = reasoning_of(source.library, source.declaration, cases[0].id)
    tensors = [np.stack([case.tensors()[place] for case in cases]) for place in reasoning.places]
    for lanes, options in explained(reasoning.readings, tensors, reasoning.rules):
        deriving = _Deriving([tensor[lanes] for tensor in tensors], reasoning.places, reasoning.rules)
        derivations, of_option = _derived(deriving, options)
        for place, lane in enumerate(lanes):
            case = cases[lane]
            if len(options) != len(case.expectation.options):  # a copy, in which nothing is computed
                found[lane] = Certificate(case, (), (None,) * len(case.expectation.options))
                continue
            found[lane] = Certificate(case, tuple(one.of_lane(place) for one in derivations), of_option)
    return found


def _derived(deriving: _Deriving, options: Sequence[Explained]) -> tuple[list[_Laned], tuple[int | None, ...]]:
    """Return the derivations of options, and of each the place of its own; None where nothing is computed."""
    places: dict[_Key, int] = {}
    derivations: list[_Laned] = []
    of_option: list[int | None] = []
    for option in options:
        if option.reading.formula is None:
            of_option.append(None)
            continue
        key = deriving.key(option)
        if key not in places:
            places[key] = len(derivations)
            derivations.append(deriving.derivation(option))
        of_option.append(places[key])
    return derivations, tuple(of_option)


_Exact: TypeAlias = list[tuple[Number, ...]]
"""The exact results of each lane."""


@dataclass(frozen=True)
class _Laned:
    """A derivation in all lanes at once: what they share, and what each has of its own."""

    shared: Derivation
    exact: _Exact | None
    charges: Sequence[Charge] = ()
    error: Array | None = None

    def of_lane(self, lane: int) -> Derivation:
        return replace(
            self.shared,
            exact=None if self.exact is None else self.exact[lane],
            steps=tuple(_step(charge, lane) for charge in self.charges),
            error=None if self.error is None else np.asarray(self.error[lane]),
        )


_Key: TypeAlias = tuple[Labels, tuple[str, ...], bool]


@dataclass
class _Deriving:
    """The inputs of cases, lanes first, their places among a case's inputs, and the rules that hold."""

    lanes: Sequence[Array]
    places: Sequence[int]
    rules: Rules
    exact: dict[tuple[Labels, bool], _Exact | None] = field(default_factory=dict)

    def key(self, option: Explained) -> _Key:
        """Return what options of one derivation share: the reading, the arithmetic, and how inputs are read."""
        return option.reading.labels, (self._name(option), *self._summation(option)), self._flushes(option)

    def derivation(self, option: Explained) -> _Laned:
        arithmetic, flushed = self._arithmetic(option), self._flushes(option)
        lanes = self.lanes
        if flushed:
            tiny = self.rules.type.float_format.tiny
            lanes = [flushed_input(array, tiny) for array in lanes]
        formula = self._formula(option.reading)
        shared = Derivation(option.reading.labels, self._name(option), arithmetic, flushed, formula, None)
        if isinstance(arithmetic, IntegerArithmetic):
            return _Laned(shared, self._exact(option, formula, lanes, None))
        charges, result = _charged(option.reading, arithmetic, lanes)
        return _Laned(shared, self._exact(option, formula, lanes, result.floats()), charges, result.error)

    def _exact(
        self, option: Explained, formula: Sequence[Primitive], lanes: Sequence[Array], floats: Array | None
    ) -> _Exact | None:
        key = option.reading.labels, self._flushes(option)
        if key not in self.exact:
            self.exact[key] = _exact(option.reading, formula, lanes, floats)
        return self.exact[key]

    @staticmethod
    def _label(option: Explained, silence: str) -> str | None:
        # the innermost label is ours: a reading's own come first
        return dict(option.labels).get(silence)

    def _summation(self, option: Explained) -> tuple[str, ...]:
        return tuple(answer for silence, answer in option.labels if silence == "summation")

    def _flushes(self, option: Explained) -> bool:
        return self._label(option, "flush") == "input-and-output"

    def _name(self, option: Explained) -> str:
        if option.level == "declared":
            return "declared"
        if self.rules.type.is_integer:
            return f"{self._label(option, 'integer-rounding')}, {self._label(option, 'integer-overflow')}"
        return str(self._label(option, "accumulator"))

    def _arithmetic(self, option: Explained) -> Arithmetic | IntegerArithmetic:
        rules, labels = self.rules, dict(option.labels)
        if rules.type.is_integer:
            return IntegerArithmetic(rules.type, labels["integer-rounding"], labels["integer-overflow"])
        if option.level == "declared" and rules.declared is not None:
            arithmetic = declared_arithmetic(rules.type, rules.declared)
        else:
            arithmetic = dict(strict_arithmetics(rules.type))[labels["accumulator"]]
        if labels.get("summation") == "running-means":
            return replace(arithmetic, summation="running-means")
        return arithmetic

    def _formula(self, reading: Reading) -> tuple[Primitive, ...]:
        if reading.formula is None:
            raise TypeError("a derivation needs a formula")
        taped: Tape = reading.formula(Tape.inputs([array.shape[1:] for array in self.lanes]))
        return tuple(
            replace(p, parameters={"input": self.places[p.parameters["input"]]}) if p.name == "input" else p
            for p in taped.primitives
        )


def _exact(
    reading: Reading, formula: Sequence[Primitive], lanes: Sequence[Array], floats: Array | None
) -> _Exact | None:
    """Return the exact results; `floats` are those of one arithmetic, which say where they are no numbers."""
    rational = all(primitive.rational for primitive in formula)
    if reading.formula is None or not rational or sum(array[0, ...].size for array in lanes) > LARGEST:
        return None
    if floats is None:
        return _rows(reading.formula([Exact.lift(array) for array in lanes]).value)
    numbers = [np.where(np.isfinite(array.astype(np.float64)), array, array.dtype.type(0)) for array in lanes]
    results = _rows(reading.formula([Exact.lift(array) for array in numbers]).value)
    return [
        tuple(r if math.isfinite(f) else f for r, f in zip(exact, beside, strict=True))
        for exact, beside in zip(results, _rows(floats), strict=True)
    ]


def _rows(array: Array) -> list[tuple[Any, ...]]:
    """Return the elements of each lane, in C order."""
    return [tuple(row) for row in array.reshape(len(array), -1).tolist()]


def _charged(reading: Reading, arithmetic: Arithmetic, lanes: Sequence[Array]) -> tuple[list[Charge], Bounded]:
    if reading.formula is None:
        raise TypeError("a derivation needs a formula")
    charges: list[Charge] = []
    charged = replace(arithmetic, charges=charges)
    with charged.context():
        result: Bounded = reading.formula(charged.lift_all(lanes))
        result.floats()
    return [charge for charge in charges if charge.error.size], result


def _step(charge: Charge, lane: int) -> Step:
    magnitude = None if charge.magnitude is None else charge.magnitude[lane]
    return Step(charge.rule, charge.unit, charge.error[lane], charge.terms, magnitude)
