"""The lock: a changed expectation shows, and is locked only with its reason and a version that says so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from fakes.results import result, write_folder

from opconform.cases.lock import (
    CaseDigests,
    Change,
    LockError,
    difference,
    is_at_least,
    latest_release,
    least_version,
    lock_of,
    read_lock,
    unexplained,
)
from opconform.cli import main
from opconform.cli.generated_suite import suite_digest
from opconform.generators.families import vocabularies
from opconform.generators.selection import suite_cases
from opconform.specs.loader import Library, default_root

ONE, OTHER = "onnx/Mean-13/float32/2/-/ones", "onnx/Mean-8/float32/2/-/ones"
A, B = "a" * 64, "b" * 64


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [*map(str, words)])


# The arithmetic of versions


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ([(ONE, A, A)], [(ONE, A, A)], Change.NONE),
        ([(ONE, A, A)], [(ONE, A, A), (ONE + "/more", A, A)], Change.PATCH),
        ([(ONE, A, A)], [(ONE, A, A), (OTHER, A, A)], Change.MINOR),
        ([(ONE, A, A)], [(ONE, A, B)], Change.MAJOR),
        ([(ONE, A, A)], [(ONE, B, A)], Change.MAJOR),
        ([(ONE, A, A), (OTHER, A, A)], [(OTHER, A, A)], Change.MAJOR),
        ([(ONE, A, A)], [(ONE, A[:16], A[:16])], Change.NONE),
    ],
)
def test_a_difference_is_as_large_as_what_it_means_to_users(
    old: list[tuple[str, str, str]], new: list[tuple[str, str, str]], change: Change
) -> None:
    assert difference([CaseDigests(*one) for one in old], [CaseDigests(*one) for one in new]).change is change


@pytest.mark.parametrize(
    ("released", "change", "least"),
    [
        ("1.2.3", Change.NONE, "1.2.3"),
        ("1.2.3", Change.PATCH, "1.2.4"),
        ("1.2.3", Change.MINOR, "1.3.0"),
        ("1.2.3", Change.MAJOR, "2.0.0"),
        ("0.1.0", Change.PATCH, "0.1.1"),
        ("0.1.0", Change.MINOR, "0.1.1"),
        ("0.1.0", Change.MAJOR, "0.2.0"),
    ],
)
def test_the_version_that_a_change_asks_for(released: str, change: Change, least: str) -> None:
    assert least_version(released, change) == least
    assert is_at_least(least, released)
    assert is_at_least("10.0.0", least)


CHANGES = """# Changes of expectations

## [Unreleased]

- onnx/ReduceMean: zeros keep their sign

## [1.2.0] - 2030-01-01

- onnx/Mean-13: what it expects changed
"""


def test_a_list_of_changes_accounts_for_an_operator_version_by_a_line_under_what_is_not_released() -> None:
    assert latest_release(CHANGES) == "1.2.0"
    assert unexplained(CHANGES, "1.3.0", [ONE]) == ["onnx/Mean-13"]
    assert unexplained(CHANGES, "1.2.0", [ONE]) == []
    assert unexplained(CHANGES, "1.3.0", [OTHER]) == ["onnx/Mean-8"]
    assert unexplained(CHANGES, "1.3.0", ["onnx/ReduceMean-13/a", "onnx/ReduceMean-18/b"]) == []
    assert latest_release("# Changelog\n\n## [Unreleased]\n") is None


# The files


def test_a_lock_is_read_back_and_tells_its_line_when_it_is_damaged(tmp_path: Path) -> None:
    lock = lock_of("onnx/Mean-13", "0.1.0", [CaseDigests(ONE + "/z", A, B), CaseDigests(ONE, B, A)])
    file = tmp_path / lock.file_name
    file.write_text(lock.to_text())
    assert file.name == "onnx-Mean-13.lock"
    assert read_lock(file) == lock
    assert [one.id for one in lock.cases] == [ONE, ONE + "/z"]
    for change, said in (
        (lambda text: text.replace("aaaa", "aaab", 1), "does not match its own digest"),
        (lambda text: text.replace(ONE, "two words", 1), ":2: expected two digests"),
        (lambda text: "", ":1: expected '# opconform lock 1"),
    ):
        file.write_text(change(lock.to_text()))
        with pytest.raises(LockError, match="onnx-Mean-13") as refused:
            read_lock(file)
        assert said in str(refused.value)


# The command, with a suite of one operator


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    folder = tmp_path / "specs" / "onednn"
    folder.mkdir(parents=True)
    shutil.copy(default_root() / "onednn" / "ReduceMean.yaml", folder)
    shutil.copytree(default_root() / "families", folder.parent / "families")
    return folder.parent


@pytest.fixture
def lock(specs: Path, tmp_path: Path) -> Callable[..., Result]:
    (tmp_path / "changes.md").write_text("# Changelog\n\n## [Unreleased]\n")
    known = ("--folder", tmp_path / "locks", "--changes", tmp_path / "changes.md", "--specs", specs)
    return lambda *words: run("dev", "lock", *known, *words)


def changed(tmp_path: Path, place: int) -> str:
    """Change a digest in the lock, as a reference that changes would, and return the case's id."""
    file = tmp_path / "locks" / "onednn-ReduceMean.lock"
    old = read_lock(file)
    one = old.cases[3]
    digests = [one.id, one.case, one.expectation]
    digests[place] = "0" * 16
    file.write_text(replace(old, cases=(*old.cases[:3], CaseDigests(*digests), *old.cases[4:])).to_text())
    return one.id


@pytest.mark.slow
def test_the_lock_of_this_suite_is_checked(lock: Callable[..., Result], tmp_path: Path) -> None:
    assert lock("--check").exit_code == 1
    assert lock().exit_code == 0
    done = lock("--check")
    assert (done.exit_code, "the lock matches the suite" in done.output) == (0, True)
    files = sorted(tmp_path.glob("locks/*.lock"))
    assert [file.name for file in files] == ["onednn-ReduceMean.lock"]
    before = files[0].read_bytes()
    assert lock().exit_code == 0
    assert files[0].read_bytes() == before


@pytest.mark.slow
def test_a_check_makes_again_only_what_runs_of_this_suite_do_not_have(
    lock: Callable[..., Result], tmp_path: Path, specs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock()
    cases = read_lock(tmp_path / "locks" / "onednn-ReduceMean.lock").cases
    results = [result(case=case.id, case_digest=case.case, expectation_digest=case.expectation) for case in cases]
    suite = {"version": "0.1.0", "digest": suite_digest(Library(specs, vocabularies()))}
    same = write_folder(tmp_path / "same", results, suite=suite)
    with monkeypatch.context() as patch:
        patch.setattr("opconform.generators.source.GeneratedCases.batches", None)  # nothing is made
        done = lock("--check", "--results", same)
    assert (done.exit_code, f"the lock matches the suite: {len(cases)} cases" in done.output) == (0, True)
    results[3] = msgspec.structs.replace(results[3], expectation_digest="0" * 64)
    assert lock("--check", "--results", write_folder(tmp_path / "apart", results, suite=suite)).exit_code == 0
    case = changed(tmp_path, 2)
    done = lock("--check", "--results", same)
    assert (done.exit_code, f"1 expectation changed, the first: {case}" in done.output) == (1, True)
    done = lock("--check", "--results", write_folder(tmp_path / "other", results))
    assert (done.exit_code, "a run of another suite" in done.output) == (2, True)
    assert lock("--results", same).exit_code == 2


@pytest.mark.slow
def test_a_plan_of_other_spec_files_or_code_fails_the_check_until_it_is_locked(
    lock: Callable[..., Result], tmp_path: Path, specs: Path
) -> None:
    lock()
    with (specs / "onednn" / "ReduceMean.yaml").open("a") as file:
        file.write("# a remark\n")
    done = lock("--check")
    assert (done.exit_code, "plan.txt: not of these spec files and this code" in done.output) == (1, True)
    assert lock().exit_code == 0
    assert lock("--check").exit_code == 0


@pytest.mark.slow
def test_a_changed_expectation_fails_the_check_and_needs_a_line_in_the_list_of_changes(
    lock: Callable[..., Result], tmp_path: Path
) -> None:
    lock()
    right = (tmp_path / "locks" / "onednn-ReduceMean.lock").read_text()
    case = changed(tmp_path, 2)
    done = lock("--check")
    assert done.exit_code == 1
    assert f"onednn/ReduceMean: 1 expectation changed, the first: {case}" in done.output
    refused = lock()
    assert refused.exit_code == 1
    assert "expected a line under Unreleased" in refused.output
    assert (tmp_path / "locks" / "onednn-ReduceMean.lock").read_text() != right
    (tmp_path / "changes.md").write_text("## [Unreleased]\n- onednn/ReduceMean: why\n")
    assert lock().exit_code == 0
    assert (tmp_path / "locks" / "onednn-ReduceMean.lock").read_text() == right
    assert lock("--check").exit_code == 0


def test_an_installed_package_has_no_lock_to_write_and_says_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opconform.cli.locking.package_root", lambda: tmp_path)  # a package, and no checkout
    done = run("dev", "lock")
    assert done.exit_code == 2
    assert f"lock: {tmp_path} is an installed package, and the lock is kept in a checkout" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_after_a_release_a_change_needs_a_version_that_says_so(lock: Callable[..., Result], tmp_path: Path) -> None:
    lock()
    changed(tmp_path, 2)
    lines = "## [Unreleased]\n- onednn/ReduceMean: why\n## [99.1.0] - 2099-01-01\n"
    (tmp_path / "changes.md").write_text(lines)
    done = lock()
    assert done.exit_code == 1
    assert "expected 100.0.0 or later, since this is a major change after 99.1.0" in done.output


# Corpora and locks side by side


@pytest.mark.slow
def test_corpus_diff_lists_what_was_added_removed_and_changed(
    lock: Callable[..., Result], specs: Path, tmp_path: Path
) -> None:
    lock()
    words = ("--format", "npz", "--specs", specs, "--select", "onednn/*/float32/*")
    assert run("export", *words, "--out", tmp_path / "all").exit_code == 0
    more = ("--select", "onednn/*/float32/3x2x2/*/ramp*", "--pack", tmp_path / "some.zip")
    assert run("export", *words[:4], *more).exit_code == 0
    assert run("corpus-diff", tmp_path / "all", tmp_path / "all").output == "no difference\n"
    done = run("corpus-diff", tmp_path / "some.zip", tmp_path / "all", "--json")
    told = json.loads(done.output)
    assert (done.exit_code, told["change"]) == (1, "patch")
    assert told["added"]
    back = run("corpus-diff", tmp_path / "all", tmp_path / "some.zip")
    assert [line.split()[1] for line in back.output.splitlines() if line.startswith("removed")] == told["added"]
    assert "a major change, which needs version 0.2.0 or later; this is 0.1.0" in back.output
    against = run("corpus-diff", tmp_path / "all", tmp_path / "locks", "--json")
    assert (json.loads(against.output)["changed"], json.loads(against.output)["expectations"]) == ([], [])
    beside = json.loads((tmp_path / "all" / "manifest.json").read_text())["selection"]["siblings"]
    assert beside, "what only invalid cases need is no part of the suite, and not missing from the lock"
    assert json.loads(run("corpus-diff", tmp_path / "all", tmp_path / "locks", "--json").output)["removed"] == []
    changed_id = changed(tmp_path, 1)
    lines = run("corpus-diff", specs.parent / "locks" / "onednn-ReduceMean.lock", tmp_path / "all").output
    assert (f"changed  {changed_id} (input or program)" in lines) == ("/float32/" in changed_id)


def test_what_is_no_corpus_and_no_lock_is_refused(tmp_path: Path) -> None:
    done = run("corpus-diff", tmp_path, tmp_path)
    assert done.exit_code == 2
    assert "manifest.json" in done.output


@pytest.mark.slow
def test_the_smoke_suite_can_be_exported_as_any_other(tmp_path: Path) -> None:
    done = run("export", "--format", "npz", "--suite", "smoke", "--select", "onnx/Mean-*", "--out", tmp_path / "smoke")
    assert done.exit_code == 0
    told = json.loads((tmp_path / "smoke" / "manifest.json").read_text())
    selected = [text for text in told["cases"] if text not in told["selection"]["siblings"]]
    assert selected == [text for text in suite_cases("smoke") if text.startswith("onnx/Mean-")]
