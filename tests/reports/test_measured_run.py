"""A run measures: what it leaves in its results folder about accuracy and arithmetic."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from fakes.here import run_here

from opconform.cli import main
from opconform.runners.judging.accuracy import accuracy_from

SELECT = (
    "onnx/ReduceMean-13/float32/*/beside*",
    "onnx/ReduceMean-13/float32/*/upon*",
    "onnx/ReduceMean-13/int32/*/halves/*",
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """run.json and the lines of accuracy.jsonl of a run whose declaration is wrong."""
    tmp_path = tmp_path_factory.mktemp("told")
    (tmp_path / "device.yaml").write_text("float32: {compute: tf32, accumulator: float32}\n")
    globs = [part for glob in SELECT for part in ("--select", glob)]
    out = tmp_path / "out"
    command = ["run", "python:fakes.backends:Right", "--quiet", "--jobs", "1", "--out", str(out), *globs]
    with run_here():
        ended = CliRunner().invoke(main, [*command, "--arithmetic", str(tmp_path / "device.yaml")])
    assert ended.exit_code == 0, ended.output
    lines = (out / "accuracy.jsonl").read_text().splitlines()
    return json.loads((out / "run.json").read_text()), [json.loads(line) for line in lines]


def test_a_run_leaves_grades_a_fingerprint_and_what_bears_out_the_declaration(
    told: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    run, lines = told
    backend = "python:fakes.backends:Right"
    graded = run["accuracy"][backend]["onnx/ReduceMean-13"]
    assert list(graded) == ["float32"]
    assert graded["float32"]["cases"] == {"correctly-rounded": len(lines)}
    behaves = run["behaves_like"][backend]
    assert behaves["probe-accumulator"][0]["behaves_like"] == "float64 or wider"
    assert behaves["integer-rounding"][0]["behaves_like"] == "truncate"
    assert [(e["field"], e["evidence"]) for e in run["declared_arithmetic"][backend]] == [
        ("compute", "contradicted"),
        ("accumulator", "contradicted"),
    ]


def test_each_graded_answer_has_its_line(told: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    _, lines = told
    assert {line["case"].split("/")[2] for line in lines} == {"float32"}
    assert all(accuracy_from(line).ulp == 0.0 for line in lines)
