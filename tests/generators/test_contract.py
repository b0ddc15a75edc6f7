"""The contract between a spec and its reference is kept, and each way to break it is reported with file and line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from opconform.cases.errors import OpconformError
from opconform.generators.contract import breaches
from opconform.generators.plan import Selection, by_version, planned
from opconform.generators.source import GeneratedCases
from opconform.specs.loader import Library, default_root
from opconform.specs.model import Spec


def broken(folder: Path, edits: dict[str, tuple[str, str]], others: Iterable[Spec] = ()) -> list[str]:
    """Return the breaches of some operators' spec files with an edit each, as text without the folder."""
    (folder / "onnx").mkdir()
    (folder / "families").symlink_to(default_root() / "families")
    for operator, (old, new) in edits.items():
        text = (default_root() / "onnx" / f"{operator}.yaml").read_text()
        assert old in text
        (folder / "onnx" / f"{operator}.yaml").write_text(text.replace(old, new))
    source = GeneratedCases(folder)
    ids = by_version(planned(source.library, Selection()))
    found = breaches(source, source.library.specs(), ids, others).errors
    return [str(error).removeprefix(f"{folder}/onnx/") for error in found]


@pytest.mark.slow
def test_spec_files_that_keep_the_contract_have_no_breaches(tmp_path: Path) -> None:
    kept = dict.fromkeys(("HardSigmoid", "Flatten", "CastLike", "Neg"), ("operator:", "operator:"))
    assert broken(tmp_path, kept, Library().specs()) == []


def test_an_attribute_that_is_never_read_is_reported_where_it_is_written(tmp_path: Path) -> None:
    found = broken(tmp_path, {"Flatten": ("{axis: int = 1}", "{axis: int = 1, order: int = 0}")})
    assert found[0].startswith("Flatten.yaml:8:")
    assert "attribute order: layout.flatten never reads it; read it, or say under `unused` why not" in found[0]


@pytest.mark.slow
def test_an_input_that_is_never_read_is_reported(tmp_path: Path) -> None:
    found = broken(tmp_path, {"CastLike": ("unused:\n  target_type:", "unused:\n  input:")})
    assert any("input target_type: cast.cast_like never reads it" in words for words in found)
    assert any("input: cast.cast_like reads it, so it is not unused" in words for words in found)


def test_a_silence_that_is_renamed_in_the_spec_alone_is_reported(tmp_path: Path) -> None:
    found = broken(tmp_path, {"Neg": ("  zero: {when", "  nought: {when")})
    assert any("has no silence 'zero'" in words for words in found)


def test_a_required_clause_that_the_version_lacks_is_reported(tmp_path: Path) -> None:
    found = broken(tmp_path, {"Flatten": ("axis-range", "axis-limits")})
    assert any("clause axis-range: layout.flatten requires it, and the version does not have it" in w for w in found)


def test_a_clause_that_decides_a_formula_and_is_in_no_spec_is_reported(tmp_path: Path) -> None:
    found = broken(tmp_path, dict.fromkeys(("Ceil", "Floor", "Round"), ("itself", "own")))
    assert any("the family unary asks for the clause 'itself', which none of its spec files has" in w for w in found)


def test_what_is_unused_must_be_an_attribute_or_an_input(tmp_path: Path) -> None:
    with pytest.raises(
        OpconformError, match=r"CastLike\.yaml:\d+:\d+: 'target_typ' is no attribute or input; did you m"
    ):
        broken(tmp_path, {"CastLike": ("unused:\n  target_type:", "unused:\n  target_typ:")})
