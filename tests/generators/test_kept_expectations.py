"""Expectations kept between runs: the same to the bit, never stale, and none the worse for damage or for company."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opconform.cases.declared import Declaration, DeclaredType
from opconform.cases.lanes import CaseGroup, LanedExpectation
from opconform.generators import kept_expectations, source
from opconform.generators.kept_expectations import Cached, KeptExpectations, usual_cache
from opconform.generators.kept_groups import packed, unpacked
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases

FRESH = GeneratedCases()
FLUSHING = Declaration({"float32": DeclaredType(flush=frozenset({"input", "output"}))})
DRAWS = [f"onnx/ReduceMean-13/float32/3x2x2/axes=1{end}/special" for end in ("", ";draw=1", ";draw=2")]
IDS = [*DRAWS, "onnx/Mean-13/float64/2*3x2/-/cancelling", "onnx/ReduceMean-13/int32/7/-/uniform"]


def told(groups: Iterator[CaseGroup]) -> list[tuple[str, str]]:
    return [both for g in groups for both in zip(g.digests, g.expectation.digests, strict=True)]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many lanes were computed, one entry a group."""
    found: list[int] = []
    compute = source.laned_expectation

    def computing(*arguments: object) -> LanedExpectation:
        made = compute(*arguments)  # type: ignore[arg-type]
        found.append(made.lanes)
        return made

    monkeypatch.setattr(source, "laned_expectation", computing)
    return found


def test_a_second_run_computes_nothing_and_is_the_same(tmp_path: Path, counted: list[int]) -> None:
    wanted = told(FRESH.groups(IDS))
    assert counted == [3, 1, 1]
    for computed in ([3, 1, 1], []):
        counted.clear()
        assert told(GeneratedCases(cache=Cached(tmp_path)).groups(IDS)) == wanted
        assert counted == computed


@pytest.mark.parametrize("declaration", [Declaration(), FLUSHING])
def test_what_is_read_is_what_was_written_to_the_bit(declaration: Declaration) -> None:
    made = GeneratedCases(declaration=declaration)
    ids = [
        text for text in planned(made.library, Selection(("onnx/*-13", "openvino/*"), draws=2)) if hash(text) % 4 == 0
    ]
    for group in made.groups(ids):
        kept = unpacked(np.frombuffer(bytearray(packed(group)), np.uint8), group.ids)
        read = kept.expectation
        told = ("ids", "program", "clauses", "mended", "digests")
        assert [getattr(kept, name) for name in told] == [getattr(group, name) for name in told]
        assert kept.program.key == replace(kept.program).key == group.program.key
        for x, y in zip(kept.inputs, group.inputs, strict=True):
            assert (x.dtype, x.shape, x.tobytes(), x.flags.writeable) == (
                y.dtype,
                y.shape,
                y.tobytes(),
                y.flags.writeable,
            )
        assert read.digests == group.expectation.digests
        assert LanedExpectation(read.options, read.types, read.lanes).digests == read.digests
        for one, other in zip(read.options, group.expectation.options, strict=True):
            assert (one.option.labels, one.option.kind) == (other.option.labels, other.option.kind)
            for a, b in zip(one.option.outputs, other.option.outputs, strict=True):
                pairs = [(a.value, b.value), (a.lower, b.lower)]
                if b.residue is not None and a.residue is not None:
                    pairs += [(a.residue.rest, b.residue.rest), (a.residue.doubt, b.residue.doubt)]
                if b.spread is not None and a.spread is not None:
                    pairs.append((a.spread.sigma, b.spread.sigma))
                assert [(x.dtype, x.shape, x.tobytes()) for x, _ in pairs] == [
                    (y.dtype, y.shape, y.tobytes()) for _, y in pairs
                ]
                assert (a.residue is None, a.spread is None) == (b.residue is None, b.spread is None)


def test_another_declaration_draw_spec_or_program_is_another_question(
    tmp_path: Path, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cached(tmp_path)
    list(GeneratedCases(cache=cache).groups(DRAWS))
    counted.clear()
    list(GeneratedCases(declaration=FLUSHING, cache=cache).groups(DRAWS))
    list(GeneratedCases(cache=cache).groups(DRAWS[:2]))
    monkeypatch.setattr(kept_expectations, "_program_digest", lambda: "another version")
    list(GeneratedCases(cache=cache).groups(DRAWS))
    assert counted == [3, 2, 3]


def test_a_damaged_file_is_made_anew(tmp_path: Path, counted: list[int]) -> None:
    made = GeneratedCases(cache=Cached(tmp_path))
    wanted = told(made.groups(DRAWS))
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[:60] + bytes([whole[60] ^ 1]) + whole[61:], b"x" * len(whole)):
        file.write_bytes(damaged)
        counted.clear()
        assert told(made.groups(DRAWS)) == wanted
        assert counted == [3]
        assert file.read_bytes() == whole


def test_a_folder_that_cannot_be_written_costs_time_alone(tmp_path: Path, counted: list[int]) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    made = GeneratedCases(cache=Cached(blocked / "within"))
    assert told(made.groups(DRAWS)) == told(made.groups(DRAWS)) == told(FRESH.groups(DRAWS))
    assert counted == [3, 3, 3]


def test_the_oldest_files_make_room(tmp_path: Path) -> None:
    for age in range(8):
        file = tmp_path / f"old{age}"
        file.write_bytes(bytes(1 << 20))
        os.utime(file, (time.time() - age * 60,) * 2)
    abandoned = tmp_path / ".partial"
    abandoned.write_bytes(b"")
    os.utime(abandoned, (0, 0))
    kept = KeptExpectations(tmp_path, limit=5 << 20)
    (group,) = FRESH.groups(DRAWS)
    kept.keep(["about"], group)
    found = kept.group(["about"], group.ids)
    assert found is not None
    assert found.digests == group.digests
    assert kept.group(["about"], group.ids[:1]) is None
    assert kept.group(["another"], group.ids) is None
    left = {path.name for path in tmp_path.iterdir()}
    assert {"old0", "old1", "old2", "old3"} <= left
    assert not left & {"old4", "old5", "old6", "old7", ".partial"}
    assert len(left) == 5


GENERATE = """
import sys
from pathlib import Path
from opconform.generators.kept_expectations import Cached
from opconform.generators.source import GeneratedCases
made = GeneratedCases(cache=Cached(Path(sys.argv[1])))
print([both for g in made.groups(sys.argv[2:]) for both in zip(g.digests, g.expectation.digests)])
"""


def test_several_processes_share_a_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", GENERATE, str(tmp_path), *IDS]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path.parent) for _ in range(3)]
    answers = [process.communicate(timeout=120)[0].strip() for process in running]
    assert answers == [str(told(FRESH.groups(IDS)))] * 3
    assert len(list(tmp_path.iterdir())) == 3, "one file a group, and nothing partial"


def test_the_environment_says_where_and_whether(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("OPCONFORM_NO_CACHE", raising=False)
    found = usual_cache()
    assert found is not None
    assert found.folder.parent.parent == tmp_path
    monkeypatch.setenv("OPCONFORM_NO_CACHE", "1")
    assert usual_cache() is None


def test_a_source_takes_its_cache_along_to_other_processes(tmp_path: Path) -> None:
    moved = pickle.loads(pickle.dumps(GeneratedCases(cache=Cached(tmp_path))))
    assert moved.cache == Cached(tmp_path)
    list(moved.groups(DRAWS))
    assert len(list(tmp_path.iterdir())) == 1
    assert np.array_equal(next(moved.groups(DRAWS)).inputs[0], next(FRESH.groups(DRAWS)).inputs[0], equal_nan=True)


def test_a_text_is_made_once_and_anew_where_it_is_damaged_or_about_something_else(tmp_path: Path) -> None:
    made: list[str] = []

    def text(source: GeneratedCases, *question: str) -> str:
        def compute() -> str:
            made.append(question[-1])
            return f"Σ of {question[-1]}\n"

        return source.kept_text("onnx/Mean-13", question, compute)

    first, again = (GeneratedCases(cache=Cached(tmp_path)) for _ in range(2))
    assert text(first, "a") == text(again, "a") == "Σ of a\n"
    assert text(GeneratedCases(cache=Cached(tmp_path), declaration=FLUSHING), "a") == "Σ of a\n"
    assert made == ["a", "a"]
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    assert text(first, "a") == "Σ of a\n"
    assert text(FRESH, "a") == "Σ of a\n"
    assert made == ["a"] * 4
