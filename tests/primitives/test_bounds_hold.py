"""Compliant implementations stay within the bounds: every order of summation, every accumulator, functions that err."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pytest
from fakes.recorded import FORMULAS, FUNCTIONS, KINDS, Formula, admitted, drawn, machines, recorded
from fakes.sampled import slow

from opconform.cases.elements import Array, element_type
from opconform.generators.arithmetic.recording import Recording
from opconform.generators.primitives.machine import Machine

FLOATS = ("float32", "float16", "bfloat16", "float64")


def in_each_type(names: Collection[str]) -> pytest.MarkDecorator:
    """Parametrize `name` and `type_`: by default each name with two types, and these with every other name."""
    pairs = [
        (name, type_, (place + other) % 2 == 0)
        for place, name in enumerate(names)
        for other, type_ in enumerate(FLOATS)
    ]
    return pytest.mark.parametrize(("name", "type_"), [(*one,) if usual else slow(*one) for *one, usual in pairs])


LANES = 4


def given(formula: Formula, kind: str, type_: str) -> list[Array | None]:
    rng = np.random.default_rng(KINDS.index(kind))
    return [None if shape is None else drawn(kind, shape, type_, rng, LANES) for shape in formula.shapes]


def outputs(formula: Formula, type_: str) -> list[str]:
    return [type_ if name == "T" else name for name in formula.outputs]


@in_each_type(FORMULAS)
def test_formulas_in_every_order_and_accumulator_are_admitted(name: str, type_: str) -> None:
    formula = FORMULAS[name]
    for kind in KINDS:
        arrays = given(formula, kind, type_)
        recording = recorded(formula.reference, arrays, outputs(formula, type_))
        there = [array for array in arrays if array is not None]
        expectation = recording.expectation(there)
        for accumulator, machine in machines(type_):
            answers, _ = recording.native(there, machine)
            assert admitted(expectation, answers, accumulator).all(), (kind, accumulator, machine.order)


@in_each_type(FUNCTIONS)
def test_functions_that_err_by_their_budget_are_admitted(name: str, type_: str) -> None:
    def reference(c: Any, x: Any, y: Any) -> Any:
        return getattr(x, name)(), getattr(x * y, name)(), getattr(getattr(x + y, name)(), name)()

    for kind in KINDS:
        rng = np.random.default_rng(KINDS.index(kind))
        arrays = [drawn(kind, (24,), type_, rng, LANES) for _ in range(2)]
        recording = recorded(reference, arrays, [type_] * 3)
        expectation = recording.expectation(arrays)
        for accumulator, machine in machines(type_):
            for sign in (-1, 1):
                wrong = erring(recording, machine, sign)
                answers, _ = recording.native(arrays, wrong)
                assert admitted(expectation, answers, accumulator).all(), (kind, accumulator, sign)


def erring(recording: Recording, machine: Machine, sign: int) -> Machine:
    """A machine whose functions err by their budget, but for the two roundings that this test itself takes."""

    def off(m: Machine, room: Any, xs: list[Array], p: Mapping[str, Any]) -> Array:
        right = room.native(m, *xs, **p)
        if m.type == np.float64:  # NumPy's own may err by as much as that already
            return np.asarray(right)
        half = m.type != np.float32
        precision = {"float32": 24, "float16": 11, "bfloat16": 8}[str(m.type)]
        unit = (room.ulp[half] - 1) * 2.0**-precision  # an ulp may be as little as one roundoff
        wide = right.astype(np.float64)
        with np.errstate(all="ignore"):
            tiny = np.abs(wide) < element_type(str(m.type)).float_format.tiny
            x = xs[0].astype(np.float64)
            exact = np.isin(x, (*room.exact_at, 0.0, 1.0, -1.0)) | np.isinf(x)
            exact |= (room.name == "sqrt") & (wide * wide == x)
            known = exact | ~np.isfinite(wide) | tiny
            moved = m.rounded(wide * (1 + sign * unit))
        return np.asarray(np.where(known, right, moved))

    functions = [at for at in recording.live if is_function(recording, at)]
    return Machine(machine.type, machine.acc, machine.order, dict.fromkeys(functions, off))


def is_function(recording: Recording, at: int) -> bool:
    node = recording.graph.nodes[at]
    return bool(node.args) and hasattr(node.room, "ulp")


def test_bounds_are_no_wider_than_they_need_be() -> None:
    """In units of the type's roundoff, at the median: what a formula's bounds were when each was last looked at."""
    most = {"softmax": 60, "layer-normalization": 80, "conv": 60, "attention": 600, "log-sum-exp": 25, "gelu": 70}
    for name, limit in most.items():
        formula = FORMULAS[name]
        arrays = [a for a in given(formula, "uniform", "float32") if a is not None]
        expectation = recorded(formula.reference, arrays, outputs(formula, "float32")).expectation(arrays)
        bounds = expectation.options[0].outputs[0]
        half = (bounds.upper - bounds.lower) / 2 / np.abs(bounds.value)
        assert np.median(half) * 2**24 < limit, name
