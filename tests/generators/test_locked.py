"""The plan and its counts from the lock: taken where spec files and code are unchanged, planned elsewhere."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from opconform.cases.lock import CaseDigests, lock_of
from opconform.cli import main
from opconform.generators import locked, plan
from opconform.generators.plan import Selection, by_version, planned
from opconform.generators.source import GeneratedCases
from opconform.specs.loader import default_root

LOCKED, CHANGED = "onnx/Relu", "onnx/Abs"


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the spec files of two operators; its lock has two cases of each version of one of them."""
    folder, locks = tmp_path / "specs", tmp_path / "locks"
    shutil.copytree(default_root() / "families", folder / "families")
    (folder / "onnx").mkdir()
    locks.mkdir()
    for operator in (LOCKED, CHANGED):
        shutil.copy(default_root() / f"{operator}.yaml", folder / "onnx")
    library = GeneratedCases(folder).library
    (locks / locked.PLAN).write_text(locked.plan_text(library))
    for operator in (LOCKED, CHANGED):
        for version in library.spec(operator).versions.values():
            name = str(version.operator)
            ids = itertools.islice(planned(library, Selection((name,))), 2)
            lock = lock_of(name, "0.1.0", [CaseDigests(id_, "0" * 16, "0" * 16) for id_ in ids])
            (locks / lock.file_name).write_text(lock.to_text())
    monkeypatch.setattr(locked, "_LOCKS", locks)
    with (folder / f"{CHANGED}.yaml").open("a") as file:
        file.write("# changed since\n")
    return folder


def listed(specs: Path, *words: str) -> tuple[int, dict[str, int], str]:
    done = CliRunner().invoke(main, ["list", "operators", "--specs", str(specs), *words])
    lines = [line.split() for line in done.output.splitlines() if line.endswith("cases")]
    return done.exit_code, {name: int(count) for name, count, _ in lines}, done.output


def test_unchanged_operators_are_counted_by_the_lock_and_changed_ones_are_planned(specs: Path) -> None:
    code, counts, output = listed(specs)
    assert code == 0, output
    assert {name: n for name, n in counts.items() if n == 2} == dict.fromkeys(
        ("onnx/Relu-1", "onnx/Relu-6", "onnx/Relu-13", "onnx/Relu-14"), 2
    )
    assert list(counts) == ["onnx/Abs-1", "onnx/Abs-6", "onnx/Abs-13", *(n for n in counts if "Relu" in n)]
    assert all(n > 20 for name, n in counts.items() if "Abs" in name)


@pytest.mark.parametrize("words", [("--strength", "1"), ("--seed", "1"), ("--draws", "2")])
def test_a_selection_of_other_cases_is_planned(specs: Path, words: tuple[str, ...]) -> None:
    code, counts, output = listed(specs, *words)
    assert code == 0, output
    assert counts["onnx/Relu-14"] > 2


def test_versions_that_a_glob_names_are_counted_by_the_lock(specs: Path) -> None:
    assert listed(specs, "--select", "onnx/Re*-1*")[1] == dict.fromkeys(
        ("onnx/Relu-1", "onnx/Relu-13", "onnx/Relu-14"), 2
    )


def test_a_changed_file_with_a_mistake_is_reported_after_the_others(specs: Path) -> None:
    (specs / f"{CHANGED}.yaml").write_text("operator: onnx/Abs\n")
    code, counts, output = listed(specs)
    assert code == 2
    assert counts["onnx/Relu-14"] == 2
    assert "onnx/Abs is left out" in output


def test_a_glob_of_cases_selects_of_the_lock(specs: Path) -> None:
    assert listed(specs, "--select", "onnx/Relu-14/*")[1] == {"onnx/Relu-14": 2}
    assert listed(specs, "--select", "*/Relu-1*/*")[1] == dict.fromkeys(
        ("onnx/Relu-1", "onnx/Relu-13", "onnx/Relu-14"), 2
    )


@pytest.mark.parametrize("globs", [(), ("*symbolic*",), ("onnx/Softmax-*", "*/int32/*/axes=1/*"), ("onednn/*",)])
def test_the_lock_has_the_plan_in_its_order(globs: tuple[str, ...], tmp_path: Path, monkeypatch) -> None:
    """Of operators with several versions, with symbolic shapes, and without versions."""
    for operator in ("onnx/Softmax", "onnx/ReduceSum", "onednn/SoftMax"):
        (tmp_path / operator).parent.mkdir(exist_ok=True)
        shutil.copy(default_root() / f"{operator}.yaml", tmp_path / f"{operator}.yaml")
    shutil.copytree(default_root() / "families", tmp_path / "families")
    library = GeneratedCases(tmp_path).library
    (tmp_path / locked.PLAN).write_text(locked.plan_text(library))
    for name, ids in by_version(planned(library, Selection())).items():
        lock = lock_of(name, "0.1.0", [CaseDigests(id_, "0" * 16, "0" * 16) for id_ in ids])
        (tmp_path / lock.file_name).write_text(lock.to_text())
    monkeypatch.setattr(locked, "_LOCKS", tmp_path)
    made = list(planned(library, Selection(globs)))
    monkeypatch.setattr(plan, "_of_versions", None)  # nothing is planned any more
    assert list(planned(GeneratedCases(tmp_path).library, Selection(globs), from_lock=True)) == made != []
