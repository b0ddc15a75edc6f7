"""`opconform diff` and `opconform dev page`: what they print, and that the page in docs/ is what they print."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from opconform.cli import main
from opconform.reports.difference import page

ROOT = Path(__file__).parents[2]
TITLE = "The mean in three standards"
OPERATORS = ["onnx/ReduceMean", "openvino/ReduceMean", "onednn/ReduceMean", "onnx/Mean"]


@pytest.mark.slow
def test_the_page_of_the_mean_is_what_the_spec_files_say_today() -> None:
    assert (ROOT / "docs/mean.md").read_text() == page(OPERATORS, TITLE)


def test_diff_prints_signatures_and_the_smallest_inputs_with_answers_and_clauses() -> None:
    ended = CliRunner().invoke(main, ["diff", "onnx/Mean-6", "onnx/Mean-8"])
    assert ended.exit_code == 0, ended.output
    assert "1. different shapes: float32 scalar,2x3" in ended.output
    assert "clause same-shape: all inputs and the output have one shape" in ended.output
    assert "onnx/Mean-8/float32/scalar,2x3/-/ramp" in ended.output


@pytest.mark.slow
def test_diff_as_json_has_both_signatures_and_every_difference() -> None:
    ended = CliRunner().invoke(main, ["diff", "onnx/ReduceMean-11", "onnx/ReduceMean-13", "--json"])
    told = json.loads(ended.output)
    (types,) = [row for row in told["signature"] if not row["same"]]
    assert types["part"] == "types"
    (difference,) = told["behaviour"]
    assert difference["types"] == ["bfloat16"]
    assert difference["onnx/ReduceMean-11"] == {**difference["onnx/ReduceMean-11"], "valid": False, "answers": []}
    assert difference["onnx/ReduceMean-13"]["valid"]


def test_diff_of_what_is_no_operator_version_exits_2_and_names_what_there_is() -> None:
    ended = CliRunner().invoke(main, ["diff", "onnx/ReduceMean-13", "openvino/ReduceMean-7"])
    assert ended.exit_code == 2
    assert "there is openvino/ReduceMean-1" in ended.output


@pytest.mark.slow
def test_a_page_that_cannot_be_written_exits_2(tmp_path: Path) -> None:
    ended = CliRunner().invoke(main, ["dev", "page", "onnx/Mean", "--out", str(tmp_path)])
    assert ended.exit_code == 2
    assert "cannot be written" in ended.output
