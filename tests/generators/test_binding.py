"""A spec bound to another operator's formula has its answers, under its own names; wrong bindings are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opconform.cases.batch import Expectation
from opconform.cases.errors import OpconformError
from opconform.generators.contract import breaches
from opconform.generators.families import vocabularies
from opconform.generators.plan import Selection, by_version, planned
from opconform.generators.source import GeneratedCases
from opconform.specs.loader import Library, default_root

SOFTMAX = (default_root() / "openvino" / "Softmax.yaml").read_text()


def library_with(folder: Path, old: str, new: str) -> Library:
    (folder / "openvino").mkdir()
    (folder / "families").symlink_to(default_root() / "families")
    assert old in SOFTMAX
    (folder / "openvino" / "Softmax.yaml").write_text(SOFTMAX.replace(old, new, 1))
    return Library(folder, vocabularies())


def expectation_of(case: str) -> Expectation:
    return next(GeneratedCases().batches([case])).expectation


@pytest.mark.parametrize("bound", ["openvino/Softmax-8", "onednn/SoftMax"])
def test_a_bound_operation_admits_what_its_formula_admits(bound: str) -> None:
    theirs = expectation_of("onnx/Softmax-13/float32/3x5/axis=1/ramp")
    ours = expectation_of(f"{bound}/float32/3x5/-/ramp")
    assert [option.labels for option in ours.options] == [option.labels for option in theirs.options]
    for mine, other in zip(ours.options, theirs.options, strict=True):
        for a, b in zip(mine.outputs, other.outputs, strict=True):
            np.testing.assert_array_equal(a.value, b.value)
            np.testing.assert_array_equal(a.lower, b.lower)
            np.testing.assert_array_equal(a.upper, b.upper)


def test_a_function_may_prepare_the_inputs_of_the_formula() -> None:
    case = "openvino/Add-1/float32/2x3x4,4/auto_broadcast=pdpd/ramp/pdpd-last"
    batch = next(GeneratedCases().batches([case]))
    a, b = batch.inputs
    np.testing.assert_array_equal(batch.expectation.options[0].outputs[0].value, a + b[:, None, None, :])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{axis: axis}", "{axes: axis}", "onnx/Softmax-13 has no attribute 'axes'; did you mean 'axis'?"),
        ("{axis: axis}", "{axis: axes}", "this version has no attribute 'axes'; did you mean 'axis'?"),
        ("  attributes: {axis: axis}\n  clauses", "  clauses", "bind or settle the attribute axis of onnx/Softmax-13"),
        ("{input: data}", "{input: date}", "this version has no input 'date'; did you mean 'data'?"),
        ("  inputs: {input: data}\n", "", "bind or settle the input input of onnx/Softmax-13"),
        ("{infinite: =infinite}", "{infinite: =finite}", "this version has no silence '=finite'; did you mean '=infin"),
        ("{infinite: =infinite}", "{infinite: zero}", "the silence infinite has no option 'zero'"),
        ("  silences: {infinite: =infinite}\n\nversions", "\nversions", "bind or settle the silence infinite"),
        ("axis-range: axis-range", "axis-range: axis-limit", "this version has no clause 'axis-limit'"),
        ("axis-range: axis-range", "axis-limit: axis-range", "onnx/Softmax-13 has no clause 'axis-limit'"),
        ("onnx/Softmax-13", "onnx/Softmax-12", "no operator version is called 'onnx/Softmax-12'"),
        ("onnx/Softmax-13", "onnx/Softmaxx-13", "did you mean 'onnx/Softmax'"),
        ("onnx/Softmax-13", "openvino/Softmax-8", "openvino/Softmax is bound to its own formula"),
        (
            "family: normalization.softmax",
            "family: normalization.hardmax",
            "expected normalization.softmax, the family",
        ),
    ],
)
def test_a_wrong_binding_is_refused_with_its_place(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(OpconformError) as caught:
        library_with(tmp_path, old, new).spec("openvino/Softmax")
    text = str(caught.value)
    assert words in text
    assert "openvino/Softmax.yaml:" in text


@pytest.mark.slow
def test_a_clause_that_the_formula_asks_for_and_nothing_binds_breaks_the_contract(tmp_path: Path) -> None:
    library_with(tmp_path, "axis-range: axis-range, ", "")
    source = GeneratedCases(tmp_path)
    ids = by_version(planned(source.library, Selection()))
    found = [str(error) for error in breaches(source, source.library.specs(), ids, Library().specs()).errors]
    assert any("asks for its clause 'axis-range'; bind it under `as`, or say that it holds" in words for words in found)
