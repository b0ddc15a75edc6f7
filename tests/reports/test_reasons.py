"""Why mutants survive: each has a reason, and no reason is left without a mutant."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import pytest

from opconform.cases.errors import OpconformError
from opconform.cases.ids import parse_id
from opconform.generators.selection import suite_cases
from opconform.generators.source import shipped
from opconform.reports.matrix import NO_CASE, Fate, Matrix, VersionMatrix, matrix_html, read_record
from opconform.reports.reasons import Reasons, read_reasons

RECORD = Path(__file__).parents[2] / "docs" / "kill-matrix.jsonl"
LEFT = (
    Fate("axis-zero", "call", "", "unseen"),
    Fate("zeros", "answer", "", "unmet"),
    Fate("ones", "answer", "", "admitted", why="bound"),
)
ONE = VersionMatrix(
    "onnx/Tried-1", "", 1, {}, LEFT, 0, (), {"rank": 2}, {"rank=6": NO_CASE, "rank=5": "zeros (bound)"}, ()
)
MATRIX = Matrix({ONE.version: ONE})
WRITTEN = Reasons({"onnx/Else-* onnx/Tried-*": {"axis-*": "there is one axis", "rank=[567]": "four are enough"}})


@pytest.mark.slow
def test_every_survivor_in_the_record_has_a_reason_and_every_reason_a_survivor() -> None:
    smoke: dict[str, list[str]] = {}
    for case in suite_cases("smoke"):
        smoke.setdefault(parse_id(case).operator, []).append(case)
    record, reasons = read_record(RECORD, smoke), read_reasons()
    assert not reasons.missing(record)
    assert not record.tested or not reasons.idle(record)


def test_reasons_are_of_operator_versions_that_there_are() -> None:
    names = [str(version.operator) for spec in shipped().specs() for version in spec.versions.values()]
    globs = [glob for some in read_reasons().written for glob in some.split()]
    assert not [glob for glob in globs if not fnmatch.filter(names, glob)]


def test_what_is_unseen_unmet_or_without_a_case_needs_a_reason() -> None:
    assert WRITTEN.missing(MATRIX) == ["onnx/Tried-1: zeros"]
    assert Reasons({}).missing(MATRIX) == [f"onnx/Tried-1: {name}" for name in ("axis-zero", "zeros", "rank=6")]


def test_a_reason_for_what_does_not_survive_is_idle() -> None:
    more = Reasons({**WRITTEN.written, "onnx/Tried-1": {"ones": "", "zeros": "", "axis-zero": ""}})
    assert not WRITTEN.idle(MATRIX)
    assert more.idle(MATRIX) == ["onnx/Tried-1: ones", "onnx/Tried-1: axis-zero"], "admitted; told before"


def test_the_html_page_has_the_reasons() -> None:
    page = " ".join(re.sub(r"<.*?>", " ", matrix_html(WRITTEN.explained(MATRIX))).split())
    assert "unseen: there is one axis axis-zero" in page
    assert "admitted: bound ones" in page
    assert "no case: four are enough rank=6" in page


@pytest.mark.parametrize("text", ["[]", "onnx/Add-14: no mapping", "onnx/Add-14: {zeros: 3}"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "reasons.yaml"
    file.write_text(text)
    with pytest.raises(OpconformError, match="expected operator versions"):
        read_reasons(file)
