"""Certificates: how a case's bounds come about, in numbers that anybody can check without this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..cases.elements import Array, ElementType, element_type
from ..cases.model import Case
from .arithmetic.bounded import Charge
from .arithmetic.exact import Exact
from .expect import Reading, strict_arithmetics
from .source import GeneratedCases


@dataclass(frozen=True)
class Step:
    """One primitive under one arithmetic, at one output element (the first that it charges most).

    `unit` is the unit roundoff u; `terms` n and `magnitude` M = Σ|x|/n are those of a sum.
    """

    arithmetic: str
    rule: str
    unit: float
    error: float
    terms: int | None
    magnitude: float | None


@dataclass(frozen=True)
class Certificate:
    """The exact result of a case's first reading, and what each admissible arithmetic may add to it.

    `exact` has a Fraction for each output element, in C order; None where an input is NaN or infinite, or where nothing
    is computed. `roundoff`, `eta` are those of the output's type, None for integers.
    """

    labels: Mapping[str, str]
    exact: tuple[Fraction, ...] | None
    steps: tuple[Step, ...]
    roundoff: float | None
    eta: float | None


def certificate(source: GeneratedCases, case: Case) -> Certificate | None:
    """Return a case's certificate; None for one whose readings compute nothing."""
    readings, tensors = source.readings(case)
    reading = next((r for r in readings if r.formula is not None), None)
    if reading is None or reading.formula is None:
        return None
    element = element_type(case.program.outputs[0].type)
    lanes = [t[np.newaxis] for t in tensors]
    form = element.format
    return Certificate(
        dict(reading.labels),
        _exact(reading, lanes),
        _steps(reading, lanes, element),
        form.roundoff if form else None,
        form.eta if form else None,
    )


def _exact(reading: Reading, lanes: list[Array]) -> tuple[Fraction, ...] | None:
    if reading.formula is None or any(t.dtype.kind not in "iu" and not np.isfinite(t).all() for t in lanes):
        return None
    result: Exact = reading.formula([Exact.lift(t) for t in lanes])
    return tuple(result.value.reshape(-1))


def _steps(reading: Reading, lanes: list[Array], element: ElementType) -> tuple[Step, ...]:
    if element.format is None or reading.formula is None:
        return ()
    steps: list[Step] = []
    for label, arithmetic in strict_arithmetics(element):
        charges: list[Charge] = []
        charged = replace(arithmetic, charges=charges)
        with charged.context():
            reading.formula([charged.lift(t) for t in lanes])
        steps += [_step(label, charge) for charge in charges if charge.error.size]
    return tuple(steps)


def _step(label: str, charge: Charge) -> Step:
    place = int(np.argmax(charge.error))
    magnitude = None
    if charge.magnitude is not None:
        magnitude = float(charge.magnitude.reshape(-1)[place])
    return Step(label, charge.rule, charge.unit, float(charge.error.reshape(-1)[place]), charge.terms, magnitude)
