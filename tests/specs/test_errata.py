from __future__ import annotations

from pathlib import Path

import pytest

from opconform.cases.errors import OpconformError
from opconform.runners.judging.terms import Errata, Suspensions, disputed_clauses, load_errata
from opconform.specs.loader import spec_of
from opconform.specs.reading import read_file

ENTRY = """
- id: E1
  affects: {affects}
  decision: two readings; suspended
  link: https://tracker.example/1
  since: "0.1.0"
"""
CASE = "onnx/ReduceMean-18/float32/3x2x2/-/nan"


def loaded(path: Path, affects: str) -> Errata:
    file = path / "errata.yaml"
    file.write_text(ENTRY.format(affects=affects))
    return load_errata(file)


@pytest.mark.parametrize(
    "affects", ["onnx/ReduceMean#noop", "onnx/ReduceMean-18", "onnx/ReduceMean-1*/*/nan", f"'{CASE}'"]
)
def test_an_erratum_suspends_the_cases_of_a_clause_or_a_glob(tmp_path: Path, affects: str) -> None:
    errata = loaded(tmp_path, affects)
    assert errata.affecting(CASE, ["onnx/ReduceMean#mean", "onnx/ReduceMean#noop"]) == "E1"
    assert errata.affecting("onnx/Mean-13/float32/3/-/ramp", ["onnx/Mean#noop"]) is None


def test_the_errata_of_this_package_can_be_read() -> None:
    errata = load_errata()
    assert errata.digest is not None
    assert all(e.link for e in errata.entries)


def test_a_disputed_clause_suspends_and_names_the_dispute() -> None:
    suspensions = Suspensions(disputed={"onnx/A#x": "https://tracker.example/2", "onnx/A#y": ""})
    assert suspensions.reason(CASE, ["onnx/A#z"]) is None
    assert suspensions.reason(CASE, ["onnx/A#z", "onnx/A#y"]) == "clause onnx/A#y is disputed"
    assert suspensions.reason(CASE, ["onnx/A#x"]) == "clause onnx/A#x is disputed: https://tracker.example/2"


def test_an_erratum_is_told_before_the_dispute_that_it_decides(tmp_path: Path) -> None:
    suspensions = Suspensions(loaded(tmp_path, "onnx/ReduceMean#noop"), {"onnx/ReduceMean#noop": ""})
    assert suspensions.reason(CASE, ["onnx/ReduceMean#noop"]) == "erratum E1"


def test_disputed_clauses_are_found_in_spec_files(tmp_path: Path) -> None:
    folder = tmp_path / "onnx"
    folder.mkdir()
    (folder / "Neg.yaml").write_text(
        "operator: onnx/Neg\nfamily: elementwise.neg\nsource: https://onnx.ai/onnx\n"
        "versions:\n  13: {inputs: {X: T}, outputs: {Y: T}, types: {T: [float32]}}\n"
        "clauses:\n  sign: {text: the sign changes, status: disputed, upstream: 'https://tracker.example/3'}\n"
        "  type: the type stays\n"
        "parameters:\n  T: all\n  shapes: {one: [1]}\n  fill: [ramp]\n"
    )
    spec = spec_of(read_file(folder / "Neg.yaml"))
    assert disputed_clauses([spec]) == {"onnx/Neg#sign": "https://tracker.example/3"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  link: https://tracker.example/1\n", "", ":2:3: key 'link' is missing"),
        ("affects: x/y#z", "affects: noop", ":3:12: affects: expected a clause id such as onnx/ReduceMean#mean, or a"),
        ('"0.1.0"', "0.1", ":6:10: expected text; read 0.1"),
        ("id: E1", "name: E1", "unknown key 'name'"),
    ],
    ids=["no link", "bare clause", "number", "key"],
)
def test_a_mistake_is_told_at_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = ENTRY.format(affects="x/y#z")
    assert old in text
    file = tmp_path / "errata.yaml"
    file.write_text(text.replace(old, new))
    with pytest.raises(OpconformError) as raised:
        load_errata(file)
    assert message in str(raised.value)


def test_ids_are_unique(tmp_path: Path) -> None:
    file = tmp_path / "errata.yaml"
    file.write_text(ENTRY.format(affects="x/y#z") * 2)
    with pytest.raises(OpconformError, match=":8:7: id: 'E1' appears twice"):
        load_errata(file)
