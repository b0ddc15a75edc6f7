"""Mutants of recorded formulas: each does something else at a node, and keeps its shape; variants are admitted."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.elements import element_type
from opconform.generators.arithmetic.recording import Recording
from opconform.generators.arithmetic.tape import Call, Facts, Port, Value, record
from opconform.generators.mutants.nodes import alternatives, deviations
from opconform.generators.primitives.errors import nearest
from opconform.generators.primitives.machine import Machine

SINGLE = Machine(np.dtype(np.float32), np.dtype(np.float32))


def softmax(c: Call, x: Value) -> Value:
    e = (x - x.max((1,))).exp()
    return e / e.sum((1,))


def normalized(c: Call, x: Value, scale: Value) -> Value:
    d = x - x.mean((1,))
    return d / ((d * d).mean((1,)) + 0.5).sqrt() * scale


def chosen(c: Call, x: Value) -> Value:
    return x.where(x > 0.0, x * 0.25)


def recorded(reference, *shapes: tuple[int, ...], type_: str = "float32") -> Recording:
    ports = {f"x{i}": Port(type_, shape) for i, shape in enumerate(shapes)}
    return record(reference, Facts("onnx/Tried", 1, ports, {"y": type_}))


FORMULAS = {
    "softmax": (softmax, (3, 5)),
    "normalized": (normalized, (3, 5), (5,)),
    "chosen": (chosen, (3, 5)),
}


def tensors(recording: Recording, *shapes: tuple[int, ...], lanes: int = 4) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.uniform(-2, 2, (lanes, *shape)).astype(np.float32) for shape in shapes]


def mutants(recording: Recording):
    return deviations(recording.graph, recording.forks[0].outputs)


def admitted(recording: Recording, arrays: list[np.ndarray], answer: np.ndarray) -> bool:
    options = [getattr(o, "option", o) for o in recording.expectation(arrays).options]
    return any(
        bool(((bounds.lower <= answer) & (answer <= bounds.upper)).all()) for o in options for bounds in o.outputs
    )


@pytest.mark.parametrize("name", FORMULAS)
def test_every_mutant_answers_in_the_shape_of_the_right_one_and_most_show(name):
    reference, *shapes = FORMULAS[name]
    recording = recorded(reference, *shapes)
    arrays = tensors(recording, *shapes)
    right, trace = recording.native(arrays, SINGLE)
    assert admitted(recording, arrays, right[0])
    killed = set()
    for mutant, deviate in mutants(recording).items():
        (answer,), _ = recording.native(arrays, replace(SINGLE, deviate=deviate), 0, trace)
        assert answer.shape == right[0].shape, mutant
        assert answer.dtype == right[0].dtype, mutant
        if not admitted(recording, arrays, answer):
            killed.add(mutant)
    assert killed


def test_what_is_derived_from_a_formula_is_what_can_go_wrong_there():
    names = set(mutants(recorded(softmax, (3, 5))))
    assert {"sub-1:operands-swapped", "exp-1:not-applied", "sum-1:last-term-lost", "div-1:operand-2-ignored"} <= names
    assert {"max-1:last-term-lost", "exp-1:in-float16", "sum-1:axes-one-more"} <= names
    assert not any(name.startswith(("port", "mul", "exp-2")) for name in names)
    assert not any(
        name.startswith("add-") and "swapped" in name for name in mutants(recorded(normalized, (3, 5), (5,)))
    )


def test_a_sum_over_one_element_loses_no_term():
    assert not any("term" in name or "axes" in name for name in mutants(recorded(softmax, (1, 1))))


def test_a_primitive_that_occurs_often_has_a_mutant_of_all_its_nodes():
    def unrolled(c: Call, x: Value) -> Value:
        for _ in range(8):
            x = x * x + 1.0
        return x

    names = mutants(recorded(unrolled, (2,)))
    assert len(names["mul-all:in-float16"]) == 8
    assert "mul-4:in-float16" in names
    assert "mul-5:in-float16" not in names


def test_what_bounds_alone_heed_has_no_mutant():
    def freed(c: Call, x: Value) -> Value:
        return (x * 2.0).undefined(x.sqrt() > 1.0)

    names = mutants(recorded(freed, (3,)))
    assert any(name.startswith("mul-1") for name in names)
    assert not any(name.startswith(("sqrt", "less")) for name in names)


def test_a_deviation_that_changes_no_number_leaves_the_run_as_it_was():
    recording = recorded(lambda c, x: x.exp().sum((0,)), (3,))
    x = tensors(recording, (3,))
    _, base = recording.native(x, SINGLE)
    deviate = mutants(recording)["exp-1:nan-lost"]
    _, got = recording.native(x, replace(SINGLE, deviate=deviate), 0, base)
    assert got is base
    x[0][0, 0] = np.nan
    right, base = recording.native(x, SINGLE)
    wrong, got = recording.native(x, replace(SINGLE, deviate=deviate), 0, base)
    assert got is not base
    assert np.isnan(right[0][0]).all()
    assert not np.isnan(wrong[0][0]).any()


def test_a_machine_of_any_type_takes_fractions():
    recording = recorded(lambda c, x: x * c.constant(Fraction(1, 4), "bfloat16"), (3,), type_="bfloat16")
    brain = np.dtype(ml_dtypes.bfloat16)
    (answer,), _ = recording.native([np.ones((1, 3), brain)], Machine(brain, brain))
    assert answer.astype(float).tolist() == [[0.25] * 3]


def test_a_mutant_that_swaps_the_operands_of_a_difference_negates_it():
    recording = recorded(lambda c, a, b: a - b, (3,), (3,))
    a, b = tensors(recording, (3,), (3,))
    deviate = mutants(recording)["sub-1:operands-swapped"]
    (answer,), _ = recording.native([a, b], replace(SINGLE, deviate=deviate))
    assert np.array_equal(answer, b - a)


@given(
    which=st.sampled_from(sorted(FORMULAS)),
    order=st.sampled_from(["forward", "reverse", "pairwise"]),
    choice=st.data(),
)
def test_no_order_of_summation_is_blamed(which, order, choice):
    reference, *shapes = FORMULAS[which]
    recording = recorded(reference, *shapes)
    numbers = st.floats(-100, 100, width=32)
    arrays = [
        np.array(choice.draw(st.lists(numbers, min_size=n, max_size=n)), np.float32).reshape(1, *shape)
        for shape in shapes
        for n in [int(np.prod(shape))]
    ]
    (answer,), _ = recording.native(arrays, replace(SINGLE, order=order))
    assert admitted(recording, arrays, answer)


def varied(recording: Recording, arrays: list[np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    """The usual answer, and that of a compliant variant."""
    forms = alternatives(recording.graph, recording.live)[name]
    (usual,), _ = recording.native(arrays, SINGLE)
    (other,), _ = recording.native(arrays, replace(SINGLE, deviate=forms))
    return usual, other


@pytest.mark.parametrize("shifted", [True, False])
def test_softmax_without_its_shift_differs_and_is_admitted_where_the_offset_cancels(shifted: bool) -> None:
    def reference(_: Call, x: Value) -> Value:
        e = (x - x.max((1,))).exp(shifted=shifted)
        return e / e.sum((1,))

    recording = recorded(reference, (2, 7))
    x = np.stack([np.full((2, 7), 0.7 + k, np.float32) for k in range(4)])
    usual, other = varied(recording, [x], "unshifted")
    assert np.array_equal(usual, other) != shifted
    assert admitted(recording, [x], other)
    far = x * np.float32(200)
    assert np.array_equal(*varied(recording, [far], "unshifted"))
    assert np.isfinite(varied(recording, [far], "unshifted")[1]).all()


def test_the_second_form_of_a_formula_is_a_variant() -> None:
    recording = recorded(lambda _, x: x.expm1().either(x.exp() - 1.0), (33,))
    x = [np.linspace(-0.5, 0.5, 33, dtype=np.float32)[np.newaxis]]
    usual, other = varied(recording, x, "other-forms")
    assert not np.array_equal(usual, other)
    assert np.array_equal(other, np.exp(x[0].astype(np.float64)).astype(np.float32) - np.float32(1))
    assert admitted(recording, x, other)


@pytest.mark.parametrize("type_", ["float16", "bfloat16", "float32"])
def test_a_machine_of_float64_rounds_only_its_output(type_: str) -> None:
    recording = recorded(softmax, (3, 50), type_=type_)
    x = np.random.default_rng(1).normal(0, 2, (4, 3, 50)).astype(element_type(type_).dtype)
    double = np.dtype(np.float64)
    (found,), _ = recording.native([x], Machine(double, double))
    e = np.exp(x.astype(double) - x.astype(double).max(-1, keepdims=True))
    exact = e / e.sum(-1, keepdims=True)
    assert np.array_equal(found.astype(double), nearest(element_type(type_).float_format, exact))
    assert admitted(recording, [x], found.astype(double))
