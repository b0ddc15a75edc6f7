"""Certificates: how a case's bounds come about, in numbers that anybody can check without this package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from ..cases.elements import Array
from ..cases.expectation import Labels
from ..cases.model import Case
from .arithmetic.bounded import Arithmetic, Bounded, Charge
from .arithmetic.exact import Exact
from .arithmetic.integral import IntegerArithmetic
from .arithmetic.tape import Primitive, Tape
from .expect import Explained, Reading, Rules, declared_arithmetic, explained, flushed_input, strict_arithmetics
from .source import GeneratedCases

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

    case: Case
    derivations: tuple[Derivation, ...]
    of_option: tuple[int | None, ...]


def certificate(source: GeneratedCases, case: Case) -> Certificate:
    """Return a case's certificate."""
    if case.expectation.invalid:
        return Certificate(case, (), ())
    reasoning = source.reasoning(case)
    lanes = [tensor[np.newaxis] for tensor in reasoning.tensors]
    options = explained(reasoning.readings, lanes, reasoning.rules)
    if len(options) != len(case.expectation.options):
        raise ValueError(f"{case.id}: its expectation is not that of the source")
    deriving = _Deriving(lanes, reasoning.places, reasoning.rules)
    places: dict[_Key, int] = {}
    derivations: list[Derivation] = []
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
    return Certificate(case, tuple(derivations), tuple(of_option))


_Key: TypeAlias = tuple[Labels, tuple[str, ...], bool]


@dataclass
class _Deriving:
    """The inputs of one case, lanes first, their places among the case's inputs, and the rules that hold."""

    lanes: Sequence[Array]
    places: Sequence[int]
    rules: Rules
    exact: dict[tuple[Labels, bool], tuple[Number, ...] | None] = field(default_factory=dict)

    def key(self, option: Explained) -> _Key:
        """Return what options of one derivation share: the reading, the arithmetic, and how inputs are read."""
        return option.reading.labels, (self._name(option), *self._summation(option)), self._flushes(option)

    def derivation(self, option: Explained) -> Derivation:
        arithmetic, flushed = self._arithmetic(option), self._flushes(option)
        lanes = self.lanes
        if flushed:
            tiny = self.rules.type.float_format.tiny
            lanes = [flushed_input(array, tiny) for array in lanes]
        formula = self._formula(option.reading)
        known = (option.reading.labels, self._name(option), arithmetic, flushed, formula)
        if isinstance(arithmetic, IntegerArithmetic):
            return Derivation(*known, self._exact(option, formula, lanes, None))
        steps, result = _steps(option.reading, arithmetic, lanes)
        exact = self._exact(option, formula, lanes, result.floats()[0])
        return Derivation(*known, exact, steps, np.asarray(result.error[0]))

    def _exact(
        self, option: Explained, formula: Sequence[Primitive], lanes: Sequence[Array], floats: Array | None
    ) -> tuple[Number, ...] | None:
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
        if option.option.level == "declared":
            return "declared"
        if self.rules.type.is_integer:
            return f"{self._label(option, 'integer-rounding')}, {self._label(option, 'integer-overflow')}"
        return str(self._label(option, "accumulator"))

    def _arithmetic(self, option: Explained) -> Arithmetic | IntegerArithmetic:
        rules, labels = self.rules, dict(option.labels)
        if rules.type.is_integer:
            return IntegerArithmetic(rules.type, labels["integer-rounding"], labels["integer-overflow"])
        if option.option.level == "declared" and rules.declared is not None:
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
) -> tuple[Number, ...] | None:
    """Return the exact results; `floats` are those of one arithmetic, which say where they are no numbers."""
    rational = all(primitive.rational for primitive in formula)
    if reading.formula is None or not rational or sum(array.size for array in lanes) > LARGEST:
        return None
    if floats is None:
        return tuple(reading.formula([Exact.lift(array) for array in lanes]).value.reshape(-1))
    numbers = [np.where(np.isfinite(array.astype(np.float64)), array, array.dtype.type(0)) for array in lanes]
    results = reading.formula([Exact.lift(array) for array in numbers]).value.reshape(-1)
    beside = floats.reshape(-1).tolist()
    return tuple(r if np.isfinite(f) else f for r, f in zip(results, beside, strict=True))


def _steps(reading: Reading, arithmetic: Arithmetic, lanes: Sequence[Array]) -> tuple[tuple[Step, ...], Bounded]:
    if reading.formula is None:
        raise TypeError("a derivation needs a formula")
    charges: list[Charge] = []
    charged = replace(arithmetic, charges=charges)
    with charged.context():
        result: Bounded = reading.formula(charged.lift_all(lanes))
        result.floats()
    return tuple(_step(charge) for charge in charges if charge.error.size), result


def _step(charge: Charge) -> Step:
    magnitude = None if charge.magnitude is None else charge.magnitude[0]
    return Step(charge.rule, charge.unit, charge.error[0], charge.terms, magnitude)
