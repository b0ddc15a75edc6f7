"""Cases of any element type and structure, with several outputs, as `show`, scripts and the site's pages tell them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence

import ml_dtypes
import numpy as np
import pytest

from opconform.cases.batch import Batch, Bounds, Check, Expectation, Option
from opconform.cases.elements import Array, comparable, type_of
from opconform.cases.program import Attribute, Body, Input, Node, OperatorVersion, Output, Program, Structure, Tensor
from opconform.reports.script import reproduction
from opconform.reports.show import _expectation_lines, node_text
from opconform.reports.site.case_pages import bounds_told, difference_told, tensor_told
from opconform.reports.site.operator_pages import _example


def words(*texts: str) -> Array:
    return np.array(texts, object)


def case(
    operator: str,
    inputs: Mapping[str, Array | Sequence[Array]],
    outputs: Mapping[str, Array],
    attributes: Sequence[Attribute] = (),
    checks: tuple[Check, ...] = (),
) -> Batch:
    """Return a case of ONNX whose outputs have to be these exactly."""
    name, _, version = operator.partition("-")
    given, tensors = [], []
    for key, value in inputs.items():
        if isinstance(value, np.ndarray):
            given.append(Input(key, type_of(value), value.shape))
            tensors.append(value)
        else:
            items = tuple(Structure("tensor", one.shape) for one in value)
            given.append(Input(key, f"seq({type_of(value[0])})", (), structure=Structure("sequence", items=items)))
            tensors += value
    answers = tuple(Output(key, type_of(value), value.ndim) for key, value in outputs.items())
    op = OperatorVersion("onnx", name, int(version))
    program = Program(op, tuple(attributes), tuple(given), answers, int(version))
    bounds = []
    for value in outputs.values():
        lanes = comparable(value)[np.newaxis] if "float" in type_of(value) else value[np.newaxis]
        bounds.append(Bounds(type_of(value), lanes, lanes, lanes))
    expectation = Expectation((Option((), tuple(bounds), checks=checks),), tuple(one.type for one in bounds))
    return Batch.of_case(f"onnx/{operator}/any/any/-/ramp", program, tensors, expectation)


CASES = {
    "text": case("StringConcat-20", {"x": words("a", "b"), "y": words("c", "\u00e9")}, {"z": words("ac", "b\u00e9")}),
    "a sequence": case("SequenceLength-11", {"s": [np.ones(2, "f4"), np.zeros(3, "f4")]}, {"n": np.array(2)}),
    "eight bits": case(
        "Cast-19",
        {"x": np.array([1, 2.5, -3], "f4")},
        {"y": np.array([1, 2.5, -3], ml_dtypes.float8_e4m3fn)},
        [Attribute("to", "int", 17)],
    ),
    "four bits": case(
        "Cast-21",
        {"x": np.array([1, -3, 7], ml_dtypes.int4)},
        {"y": np.array([1, -3, 7], "f4")},
        [Attribute("to", "int", 1)],
    ),
    "several outputs": case(
        "TopK-11",
        {"x": np.array([3, 9, 4], "f4"), "k": np.array([2])},
        {"values": np.array([9, 4], "f4"), "indices": np.array([1, 2])},
        checks=(Check("order", (0, 1), (("axis", 0),)),),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_script_runs_a_case_of_any_type(name: str) -> None:
    pytest.importorskip("onnxruntime")
    script = reproduction(CASES[name])
    done = subprocess.run([sys.executable, "-"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "admitted as the one answer" in done.stdout


def test_outputs_are_told_by_their_names() -> None:
    lines = list(_expectation_lines(CASES["several outputs"]))
    assert "    values: float32 2" in lines
    assert "    indices: int64 2" in lines
    assert "    and the check order of values, indices, axis 0" in lines
    assert [head for head, _ in _example(CASES["several outputs"]).outputs] == [
        "values: float32 2, exactly",
        "indices: int64 2, exactly",
    ]


def test_text_stands_in_quotes_and_tensors_of_a_sequence_have_numbers() -> None:
    assert '    [1] "b\u00e9"' in list(_expectation_lines(CASES["text"]))
    assert dict(_example(CASES["text"]).inputs)["y: string 2"] == '["c", "\u00e9"]'
    assert [name for name, _ in CASES["a sequence"].program.named_leaves] == ["s/0", "s/1"]


def test_a_page_gets_texts_of_elements_that_browsers_have_no_numbers_for() -> None:
    assert tensor_told(words("a", "\u00e9"))["bits"] == ['"a"', '"\u00e9"']
    assert tensor_told(np.array([1, -3], ml_dtypes.int4))["bits"] == ["1", "-3"]
    assert tensor_told(np.array([1 + 2j], "c8"))["bits"] == ["1.0 + 2.0i"]
    assert isinstance(tensor_told(np.array([True]))["bits"], str)
    told = bounds_told(CASES["eight bits"].expectation.options[0].outputs[0], "y")
    assert (told["name"], told["type"], told["in"]) == ("y", "float8e4m3fn", "float64")


@pytest.mark.parametrize("name", ["text", "eight bits", "several outputs"])
def test_differences_are_told_in_any_type_by_output(name: str) -> None:
    tried = CASES[name]
    names = [output.name for output in tried.program.answers]
    answers = {
        "text": [words("ac", "x")],
        "eight bits": [np.array([1, 3, -3], ml_dtypes.float8_e4m3fn)],
        "several outputs": [np.array([9, 5], "f4"), np.array([1, 2])],
    }[name]
    told = difference_told(tried.expectation, answers, names)
    assert told is not None
    assert [one["name"] for one in told["outputs"]] == names
    assert [one["wrong"] for one in told["outputs"]] == [1, 0][: len(names)]


def test_an_operation_shows_tensors_and_bodies_of_its_attributes() -> None:
    body = Body("then", (), (Output("y", "float32", 0),), (Node(OperatorVersion("onnx", "Neg", 13), ("x",), ("y",)),))
    value = Tensor.of(np.array([1, 2], "f4"))
    made = case("If-16", {"c": np.array(True)}, {"z": np.array(1, "f4")}, [Attribute("then_branch", "graph", body)])
    assert "then_branch=then() { y = Neg(x) } -> y" in node_text(made.program)
    constant = case("Constant-13", {}, {"z": np.array([1, 2], "f4")}, [Attribute("value", "tensor", value)])
    assert "value=float32 2 [1.0, 2.0]" in node_text(constant.program)
