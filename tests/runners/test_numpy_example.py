"""The example that docs/writing-a-runner.md is built on keeps what the page says of it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from fakes.programs import constant, feed, mean, onnx_program, reduce_mean

from opconform.cases.elements import Array, element_type
from opconform.cases.program import Program
from opconform.cases.runner import Runner, Unsupported
from opconform.runners.registry import open_runner

EXAMPLES = Path(__file__).parents[2] / "examples"
X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
AXIS_1 = np.array([1], np.int64)
NO_AXES = np.zeros(0, np.int64)


@pytest.fixture
def runner(monkeypatch) -> Runner:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(EXAMPLES)
    return open_runner("python:numpy_backend:NumpyBackend")


def answer(runner: Runner, program: Program, *inputs: object) -> Array:
    (y,) = runner.prepare(program).run([np.asarray(x) for x in inputs])
    return y


@pytest.mark.parametrize("type_", ["float16", "bfloat16", "float32", "float64", "int32", "uint32"])
@pytest.mark.parametrize("version", [13, 18])
def test_reduce_mean_keeps_the_type(runner, version: int, type_: str) -> None:
    x = (2 * X).astype(element_type(type_).dtype)
    axes = () if version < 18 else (constant("axes", AXIS_1),)
    program = reduce_mean(version, (3, 2), *axes, type_=type_, axes=(1,) if version < 18 else None)
    y = answer(runner, program, x)
    assert (y.dtype, y.tolist()) == (x.dtype, [[3], [7], [11]])


@pytest.mark.parametrize(
    ("program", "inputs", "want"),
    [
        (reduce_mean(1, (3, 2), axes=(0,), keepdims=0), [X], [3, 4]),
        (reduce_mean(11, (3, 2), axes=(-1,)), [X], [[1.5], [3.5], [5.5]]),
        (reduce_mean(13, (3, 2)), [X], [[3.5]]),
        (reduce_mean(13, (3, 2), axes=()), [X], [[3.5]]),
        (reduce_mean(13, ()), [np.float32(3)], 3),
        (reduce_mean(18, ("N", "M"), feed("axes", "int64", "K")), [X, AXIS_1], [[1.5], [3.5], [5.5]]),
        (reduce_mean(18, ("N", "M"), feed("axes", "int64", "K")), [X, NO_AXES], [[3.5]]),
        (reduce_mean(18, (3, 2), None, keepdims=0), [X], 3.5),
        (reduce_mean(18, (3, 2), None, noop=1), [X], X.tolist()),
        (reduce_mean(18, (3, 2), constant("axes", NO_AXES), noop=1), [X], X.tolist()),
        (reduce_mean(13, (2,), type_="int32"), [np.array([-3, -4], np.int32)], [-3]),
        (mean(1, (2,), (2,)), [X[0], X[1]], [2, 3]),
        (mean(13, (), (3, 1), (2,)), [np.float32(0), np.zeros((3, 1), np.float32), 3 * X[0]], [[1, 2]] * 3),
        (mean(8, (2,)), [X[0]], [1, 2]),
    ],
)
def test_every_way_to_give_axes_and_shapes(runner, program: Program, inputs: list[Array], want: object) -> None:
    y = answer(runner, program, *inputs)
    assert (y.dtype.name, y.tolist()) == (program.outputs[0].type, want)


def test_it_accumulates_wider_than_float16(runner) -> None:
    assert answer(runner, reduce_mean(13, (70_000,), type_="float16"), np.ones(70_000, np.float16)).tolist() == [1]


def test_the_mean_of_nothing_is_nan_without_a_warning(runner, recwarn) -> None:
    assert np.isnan(answer(runner, reduce_mean(13, (0,)), np.zeros(0, np.float32))).all()
    assert not recwarn.list


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (reduce_mean(13, (2,), type_="int64"), "type"),
        (onnx_program("Relu", 14, [feed("x", "float32", 2)]), "operator-version"),
    ],
)
def test_what_it_leaves_out_is_unsupported(runner, program: Program, reason: str) -> None:
    with pytest.raises(Unsupported) as refusal:
        runner.prepare(program)
    assert refusal.value.reason == reason


@pytest.mark.parametrize(
    ("program", "inputs", "error"),
    [
        (mean(13), [], TypeError),
        (mean(6, ("A", "B"), ("C", "D")), [X, X[:1]], ValueError),
        (mean(13, (3, 2), (2, 3)), [X, X.reshape(2, 3)], ValueError),
        (mean(8, (2,), type_="bfloat16"), [], TypeError),
        (onnx_program("Mean", 13, [feed("a", "float32", 2), feed("b", "float16", 2)]), [], TypeError),
        (reduce_mean(13, (2,), type_="bool"), [], TypeError),
        (reduce_mean(13, (3, 2), axes=(2,)), [X], ValueError),
        (reduce_mean(13, (), axes=(0,)), [np.float32(1)], ValueError),
        (reduce_mean(18, (3, 2), axes=(1,)), [X], ValueError),
        (onnx_program("Mean", 6, [feed("a", "float32", 2)], attributes=[("no_such", "int", 0)]), [], ValueError),
    ],
)
def test_invalid_programs_and_inputs_are_refused(runner, program: Program, inputs: list[Array], error) -> None:
    with pytest.raises(error):
        answer(runner, program, *inputs)
