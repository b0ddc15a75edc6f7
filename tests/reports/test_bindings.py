"""`opconform diff` of bound operations of two standards, and the pages of conversions from ONNX."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fakes.sampled import slow

from opconform.cli import main
from opconform.generators.comparing.agreements import agreement
from opconform.generators.comparing.bonds import bond
from opconform.generators.source import GeneratedCases
from opconform.reports.bindings import conversions

ROOT = Path(__file__).parents[2]
PAGES = {"openvino": "from-onnx-to-openvino.md", "onednn": "from-onnx-to-onednn.md"}


def said(*arguments: str) -> dict[str, Any]:
    ended = CliRunner().invoke(main, ["diff", *arguments, "--json"])
    assert ended.exit_code == 0, ended.output
    found: dict[str, Any] = json.loads(ended.output)
    return found


def binding(found: dict[str, Any]) -> dict[str | None, str | None]:
    return {row["theirs"]: row["ours"] for row in found["binding"]}


def test_an_attribute_whose_default_differs_is_compared_where_both_leave_it_out() -> None:
    found = said("onnx/Softmax-13", "onednn/SoftMax")
    assert binding(found)["axis: int = -1"] == "axis: s64 = 1"
    (difference,) = found["behaviour"]
    assert difference["left_out"] == ["axis"]
    assert difference["onednn/SoftMax"]["rules"] == ["axis-default"]
    assert difference["onnx/Softmax-13"]["rules"] == ["axis-default-last"]


def test_an_attribute_that_is_an_input_of_the_other_is_translated() -> None:
    found = said("onnx/Gather-13", "openvino/Gather-8")
    assert binding(found)["axis: int = 0"] == "axis: A"
    beyond = next(d for d in found["behaviour"] if d["openvino/Gather-8"]["rules"][:1] == ["index-zeros"])
    assert beyond["openvino/Gather-8"]["answer"] == "shape 3: [4, 0, 0]"
    assert beyond["onnx/Gather-13"] == {"valid": False, "answer": "invalid", "rules": ["index-range"]}
    assert "axis=0" in beyond["calls"]["onnx/Gather-13"]


@pytest.mark.slow
def test_what_a_function_prepares_is_translated_both_ways() -> None:
    found = said("onnx/TopK-11", "openvino/TopK-11")
    assert found["shared"] > 50
    assert not found["behaviour"]
    assert binding(found)["largest: int = 1"] == "0 or 1, by openvino.top_k"
    from_onnx = found["without_a_counterpart"]["onnx/TopK-11"]
    assert {reason for reason in from_onnx if "sorted" in reason} == {
        "no call of openvino/TopK-11 was found for sorted=0"
    }


def test_two_operations_that_are_bound_to_a_third_are_compared_through_it() -> None:
    found = said("openvino/MatMul-1", "onednn/MatMul")
    assert binding(found)["A: T"] == "src: T"
    assert found["shared"] > 20
    assert not found["behaviour"]
    assert "bias" in found["alone"]["onednn/MatMul"]


def test_two_layouts_are_no_difference() -> None:
    found = said("openvino/BatchNormInference-5", "onednn/BatchNormInference")
    assert not [difference for difference in found["behaviour"] if difference["disjoint"]]


def test_words_are_translated_by_their_table() -> None:
    found = said("onnx/Conv-22", "openvino/Convolution-1")
    assert binding(found)["auto_pad=SAME_UPPER"] == "auto_pad=same_upper"
    assert found["shared"] > 10


@pytest.mark.parametrize("pad", ["onnx/Pad-13", "onnx/Pad-25"])
def test_ports_are_not_paired_by_position_where_one_side_has_others(pad: str) -> None:
    found = said(pad, "openvino/Pad-12")
    assert binding(found)["pads: int64"] is None
    assert not found["behaviour"]


@pytest.mark.slow
def test_the_order_of_the_two_does_not_matter() -> None:
    assert said("openvino/Elu-1", "onnx/Elu-22") == said("onnx/Elu-22", "openvino/Elu-1")


def test_the_report_shows_the_binding_the_difference_and_what_one_side_lacks() -> None:
    ended = CliRunner().invoke(main, ["diff", "onnx/Elu-22", "openvino/Elu-1"])
    assert ended.exit_code == 0, ended.output
    assert "clause alpha-range" in ended.output
    assert "openvino/Elu-1/float32/3/alpha=-1/ramp/alpha-negative" in ended.output
    assert "openvino/Elu-1: input is never int32" in ended.output


def test_operations_without_a_common_formula_or_name_have_no_binding() -> None:
    ended = CliRunner().invoke(main, ["diff", "onnx/Relu-14", "openvino/TopK-11"])
    assert ended.exit_code == 2
    assert "these cannot be compared" in ended.output


def test_a_page_for_another_standard_exits_2() -> None:
    ended = CliRunner().invoke(main, ["dev", "bindings", "onnx"])
    assert ended.exit_code == 2
    assert "there is openvino and onednn" in ended.output


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("onnx/Relu-14", "openvino/Relu-1"),
        ("onnx/Abs-13", "onednn/Abs"),
        ("onnx/Concat-13", "openvino/Concat-1"),
        slow("onnx/Softmax-13", "openvino/Softmax-8"),
        slow("onnx/GatherND-13", "openvino/GatherND-8"),
        slow("onnx/CumSum-14", "openvino/CumSum-3"),
    ],
)
def test_both_plans_contribute_calls_and_each_is_asked_once(one: str, other: str) -> None:
    source = GeneratedCases()
    found = bond(source.library, one, other)
    assert found is not None
    compared = agreement(source, found)
    assert compared.shared > 5
    alone = sum(compared.ours_alone.values()) + sum(compared.theirs_alone.values())
    assert compared.shared + alone > 10


@pytest.mark.slow
@pytest.mark.parametrize("standard", PAGES)
def test_the_page_of_conversions_is_what_the_spec_files_say_today(standard: str) -> None:
    assert (ROOT / "docs/generated" / PAGES[standard]).read_text(encoding="utf-8") == conversions(standard)
