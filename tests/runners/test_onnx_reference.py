"""The reference evaluator of onnx as a backend."""

from __future__ import annotations

import re
import warnings

import numpy as np
import onnx
import onnx.reference
import pytest
from fakes.programs import constant, feed, mean, onnx_program, reduce_mean

from opconform.cases.elements import element_type
from opconform.cases.program import Program
from opconform.cases.runner import Classifies, Unsupported
from opconform.runners.backends.onnx_reference import WORDS, OnnxReference

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
ANY = feed("x", "float32", "A", "B")
OTHER = feed("y", "float32", "A", "B")
AXIS_1 = np.array([1], np.int64)


@pytest.fixture
def runner() -> OnnxReference:
    return OnnxReference()


@pytest.mark.parametrize("type_", ["float16", "bfloat16", "float32", "float64", "int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("version", [1, 11, 13, 18])
def test_reduce_mean_of_every_version_and_type(runner, version: int, type_: str) -> None:
    x = (2 * X).astype(element_type(type_).dtype)
    axes = () if version < 18 else (constant("axes", AXIS_1),)
    program = reduce_mean(version, (3, 2), *axes, type_=type_, axes=(1,) if version < 18 else None)
    (y,) = runner.prepare(program).run([x])
    assert (y.dtype, y.tolist()) == (x.dtype, [[3], [7], [11]])


@pytest.mark.parametrize("version", [1, 6, 8, 13])
def test_mean_of_every_version(runner, version: int) -> None:
    (y,) = runner.prepare(mean(version, (3, 2), (3, 2))).run([X, X + 2])
    assert y.tolist() == (X + 1).tolist()


def test_an_initializer_of_the_third_ir_version_need_not_be_fed(runner) -> None:
    shape = constant("shape", np.array([2, 3], np.int64))
    program = onnx_program("Reshape", 5, [feed("x", "float32", 3, 2), shape], rank=2, opset=8)
    (y,) = runner.prepare(program).run([X])
    assert y.tolist() == X.reshape(2, 3).tolist()


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (onnx_program("Multinomial", 7, [feed("x", "float32", 2)], opset=18), "No registered implementation"),
        (onnx_program("NoSuchOperator", 1, [feed("x", "float32", 2)], opset=18), "No registered schema"),
        (onnx_program("NoSuchOperator", 1, [feed("x", "float32", 2)], domain="com.example"), "com.example"),
    ],
)
def test_what_the_evaluator_does_not_implement_is_unsupported_in_its_own_words(runner, program, words) -> None:
    with pytest.raises(Unsupported, match=words) as refusal:
        runner.prepare(program)
    assert refusal.value.reason == "operator-version"
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("program", "inputs", "reason"),
    [
        (reduce_mean(13, (3, 2), axes=(2,)), [X], "invalid"),
        (reduce_mean(13, (3, 2), axes=(1, 1)), [X], "invalid"),
        (onnx_program("ReduceMean", 13, [ANY], attributes=[("no_such", "int", 1)]), [X], "attribute"),
        (onnx_program("Add", 14, [ANY]), [X], "invalid"),
        (mean(13, (3, 2), (2, 3)), [X, X.reshape(2, 3)], "shape"),
        (onnx_program("MaxUnpool", 11, [ANY], opset=18), [X], "attribute"),
        (onnx_program("BitShift", 11, [ANY, OTHER], attributes=[("direction", "string", "LEFT")]), [X, X], "type"),
    ],
)
def test_other_refusals_keep_their_own_error_and_are_told_apart(runner, program: Program, inputs, reason) -> None:
    with pytest.raises(Exception, match=r"\w") as refusal:
        runner.prepare(program).run(inputs)
    assert not isinstance(refusal.value, Unsupported)
    assert runner.reason(refusal.value) == reason


STORED = {
    "This operator is not implemented shape (2, 3, 4).": "rank",
    "No registered schema for operator 'Gelu' and domain ''. Did you recompile the sources": "operator-version",
    "No registered implementation for operator 'Multinomial' and domain '', schema.has_function is": "operator-version",
    "Not registered implementation for operator 'Foo', domain '', and 7 in\nAbs": "operator-version",
    "No default implementation for operator 'Foo' and domain '', found Foo_1.": "operator-version",
    "No implementation for operator 'Foo' domain '' and version 3, found Foo_9.": "operator-version",
    "No implementation was found for node type 'Foo' from domain ''. If this node has": "operator-version",
    "Node type 'Foo' from domain 'my.dom' is unknown, known functions: [].": "operator-version",
    "ufunc 'left_shift' not supported for the input types, and the inputs could not be safely coerced": "type",
    "Invalid integer data type 'f'.": "type",
    "Unable to allocate 1.00 PiB for an array with shape (16777216, 16777216) and data type float32": "memory",
    "non-broadcastable output operand with shape (3,) doesn't match the broadcast shape (2,3)": "shape",
    "operands could not be broadcast together with shapes (3,2) (2,3)": "shape",
    "Attribute 'kernel_shape' is expected based on ONNX specifications for node 'MaxUnpool'.": "attribute",
    "Scan is not implemented for other output axes than 0.": "attribute",
    "Scan with zero scan-input length and scan outputs is not supported.": "attribute",
    "ReduceMean_1._run() got an unexpected keyword argument 'bogus'": "attribute",
    "OpRunBinaryNum.run() missing 1 required positional argument: 'y'": "invalid",
    "axis 4 is out of bounds for array of dimension 2": "invalid",
    "duplicate value in 'axis'": "invalid",
    "Issues with types [<class 'numpy.ndarray'>] and attributes ['axes', 'bogus', 'keepdims']": "invalid",
    "something that nobody has seen": "other",
}


@pytest.mark.parametrize("message", STORED)
def test_messages_that_were_seen_keep_their_meaning(runner, message: str) -> None:
    assert runner.reason(RuntimeError(message)) == STORED[message]


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words.pattern[:30])
def test_every_entry_of_the_table_is_there_for_a_message_that_was_seen(words) -> None:
    assert any(re.search(words.pattern, message) and STORED[message] == words.reason for message in STORED)


def test_numpy_does_not_warn_while_a_program_runs(runner) -> None:
    executable = runner.prepare(reduce_mean(13, (2, 0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (y,) = executable.run([np.zeros((2, 0), np.float32)])
    assert y.shape == (1, 1)


def test_outputs_that_are_no_arrays_are_passed_on_with_the_type_they_have(runner, monkeypatch) -> None:
    monkeypatch.setattr(onnx.reference.ReferenceEvaluator, "run", lambda *_: [np.float16(3), 2.5, 7])
    outputs = runner.prepare(mean(13, (2,))).run([X[0]])
    assert [(y.dtype.name, y.shape) for y in outputs] == [("float16", ()), ("float64", ()), ("int64", ())]


def test_running_out_of_memory_in_python_is_memory(runner) -> None:
    assert runner.reason(MemoryError()) == "memory"


def test_it_says_what_it_is(runner) -> None:
    assert (runner.name, runner.version()) == ("onnx-reference", onnx.__version__)
    assert runner.describe() == {"numpy": np.__version__}
    assert isinstance(runner, Classifies)
