"""The history of many runs: what it tells of any of them is what was put in, and a broken `add` leaves no trace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as Done
from fakes.results import case, invalid, result, write_folder
from hypothesis import given, settings
from hypothesis import strategies as st

from opconform.cases.errors import OpconformError
from opconform.cases.results import Result
from opconform.cli import main
from opconform.reports.history.changes import ChangeKind, canonical
from opconform.reports.history.database import SCHEMA, add, prune, reading, writing
from opconform.reports.history.show import changes_of, results, stays, turns
from opconform.reports.runs import Terms
from opconform.reports.tally import Tally
from opconform.runners.judging.terms import Demands, Suspensions

UNIFORM, RAMP, LARGE = (case(fill=fill) for fill in ("uniform", "ramp", "large"))
OTHER = case("onnx/Mean-8", "float16")


def call(*arguments: object) -> Done:
    done = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    assert "Traceback" not in done.output
    return done


def remembered(db: Path, run: int, *backends: str) -> dict[tuple[str, str], tuple[Any, ...]]:
    with reading(db) as history:
        return {
            (row.backend, row.case): (row.state.outcome, row.state.behaviour, *row.state[2:4], *row.asked)
            for row in results(history, run, backends)
        }


def put_in(kept: list[Result]) -> dict[tuple[str, str], tuple[Any, ...]]:
    return {
        (r.backend, r.case): (
            *(r.outcome, canonical(r.behaviour), r.reason, r.level),
            *(r.case_digest, r.expectation_digest),
        )
        for r in kept
    }


def plain(night: int, db: Path, kept: list[Result], **more: Any) -> list[str]:
    folder = Path(tempfile.mkdtemp()) / "results"
    try:
        return add(db, [write_folder(folder, kept, night=night, **more)])
    finally:
        shutil.rmtree(folder.parent)


ANSWERS = st.sampled_from(
    [
        {"outcome": "pass"},
        {"outcome": "pass", "level": "declared"},
        {"outcome": "pass", "behaviour": {"accumulator": ["wide"]}},
        {"outcome": "pass", "behaviour": {"accumulator": ["wide", "narrow"]}},
        {"outcome": "wrong-value", "detail": "element [0]"},
        {"outcome": "error", "reason": "type", "detail": "'; DROP TABLE span; --"},
        {"outcome": "unsupported", "reason": "operator-version"},
        {"outcome": "crash", "detail": "SIGSEGV"},
        {"outcome": "pass", "expectation_digest": "b" * 64},
        {"outcome": "wrong-value", "case_digest": "c" * 64, "expectation_digest": None},
    ]
)
NIGHTS = st.lists(
    st.dictionaries(st.tuples(st.sampled_from(["alpha", "b'e\"ta"]), st.sampled_from([UNIFORM, RAMP, OTHER])), ANSWERS),
    min_size=1,
    max_size=6,
)


def results_of(night: dict[tuple[str, str], dict[str, Any]]) -> list[Result]:
    return [result(case=name, backend=backend, **answer) for (backend, name), answer in night.items()]


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(NIGHTS)
def test_what_a_history_tells_of_a_run_is_what_was_put_in(nights: list[dict[tuple[str, str], Any]]) -> None:
    place = Path(tempfile.mkdtemp())
    try:
        db, kept = place / "h.duckdb", {}
        for number, night in enumerate(nights, 1):
            found = results_of(night)
            versions = {"alpha": "1.0", "b'e\"ta": f"2.{number // 3}"}
            plain(number, db, found, versions=versions)
            if found:
                kept[len(kept) + 1] = found
        for run, found in kept.items():
            assert remembered(db, run, "alpha", "b'e\"ta") == put_in(found)
        with reading(db) as history:
            for turn in turns(history) if kept else []:
                tally = Tally()
                for one in kept[turn.run]:
                    if one.backend == turn.backend:
                        tally.add(one)
                figures = tally.figures()
                assert turn.cases == figures.cases
                assert (turn.figures.strict, turn.figures.judged, turn.figures.failed) == (
                    figures.strict,
                    figures.judged,
                    figures.failed,
                )
    finally:
        shutil.rmtree(place)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(NIGHTS.filter(all), st.integers(1, 3))
def test_what_prune_leaves_is_as_it_was(nights: list[dict[tuple[str, str], Any]], keep: int) -> None:
    place = Path(tempfile.mkdtemp())
    try:
        db = place / "h.duckdb"
        for number, night in enumerate(nights, 1):
            plain(number, db, results_of(night))
        with reading(db) as history:
            before = {(turn.backend, turn.run): turn for turn in turns(history)}
        prune(db, keep=keep)
        with reading(db) as history:
            after = turns(history)
        left = Counter(turn.backend for turn in after)
        assert left == {b: min(keep, n) for b, n in Counter(backend for backend, _ in before).items()}
        for turn in after:
            was = before[turn.backend, turn.run]
            assert turn.figures == was.figures
            assert turn.before is None or turn.changes == was.changes
            found = put_in([one for one in results_of(nights[turn.run - 1]) if one.backend == turn.backend])
            assert remembered(db, turn.run, turn.backend) == found
    finally:
        shutil.rmtree(place)


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four nights of two backends: a regression on the third with a new version, another case mended on the last."""
    db = tmp_path_factory.mktemp("history") / "h.duckdb"
    wrong = {"outcome": "wrong-value", "detail": "element [0]: got 1, want 2"}
    for night in range(1, 5):
        alpha = [
            result(case=UNIFORM, **(wrong if night >= 3 else {})),
            result(case=RAMP, **(wrong if night < 4 else {})),
            result(case=OTHER, behaviour={"accumulator": ["wide" if night < 3 else "narrow"]}),
            invalid("pass"),
        ]
        beta = [result("unsupported", UNIFORM, "beta")] + ([result(case=LARGE, backend="beta")] if night > 1 else [])
        plain(night, db, alpha + beta, versions={"alpha": "1.0" if night < 3 else "2.0", "beta": "5"})
    return db


@pytest.mark.slow
def test_the_runs_are_shown_with_what_changed_since_the_one_before(year: Path) -> None:
    lines = call("history", "show", "--db", year, "--backend", "alpha").output.splitlines()
    assert lines[0] == "alpha, suite 0.1.0"
    assert [line.split()[0] for line in lines[2:]] == ["1", "2", "3", "4"]
    assert lines[2].rstrip().endswith("first run")
    assert "2.0 *" in lines[4]
    assert "1 regression, 1 silence" in lines[4]
    assert "1 fix" in lines[5]
    found = json.loads(call("history", "show", "--db", year, "--json").output)
    assert [turn["failed"] for turn in found if turn["backend"] == "alpha"] == [1, 1, 2, 1]
    assert [turn["refusal"] for turn in found if turn["backend"] == "alpha"] == [1] * 4
    assert [turn["changes"] and turn["changes"]["new"] for turn in found if turn["backend"] == "beta"] == [
        None,
        1,
        0,
        0,
    ]


def test_figures_and_changes_of_selected_cases_alone(year: Path) -> None:
    asked = (
        "history",
        "show",
        "--db",
        year,
        "--json",
        "--last",
        "2",
        "--select",
        "onnx/ReduceMean-*/float32/*/uniform",
    )
    found = {(turn["backend"], turn["run"]): turn for turn in json.loads(call(*asked).output)}
    assert sorted(found) == [("alpha", 3), ("alpha", 4), ("beta", 3), ("beta", 4)]
    assert [found["alpha", run]["cases"] for run in (3, 4)] == [1, 1]
    assert found["alpha", 3]["correctness"] == 0
    assert found["alpha", 3]["changes"]["regression"] == 1
    assert sum(found["alpha", 4]["changes"].values()) == 0


def test_a_case_tells_since_when_it_fails(year: Path) -> None:
    lines = call("history", "case", UNIFORM, "--db", year).output.splitlines()
    assert lines[:5] == [
        UNIFORM,
        "  alpha",
        "    pass from run 1 (2026-01-01 01:00, version 1.0) to run 2 (2026-01-02 01:00)",
        "    wrong-value from run 3 (2026-01-03 01:00, version 2.0) until now",
        "      element [0]: got 1, want 2",
    ]
    with reading(year) as history:
        assert [stay.lasts for stay in stays(history, UNIFORM, backend="alpha")] == [False, True]


def test_the_changes_of_a_run_are_named(year: Path) -> None:
    with reading(year) as history:
        turn = next(turn for turn in turns(history, backend="alpha") if turn.run == 3)
        changes = changes_of(history, turn)
    assert {(group.first.kind, group.first.record.case) for group in changes.worst_first()} == {
        (ChangeKind.REGRESSION, UNIFORM),
        (ChangeKind.SILENCE, OTHER),
    }
    assert changes.worst_first()[1].first.words == "accumulator: wide to narrow"


def test_the_same_run_is_not_taken_in_twice(tmp_path: Path) -> None:
    db = tmp_path / "h.duckdb"
    kept = [result(case=UNIFORM)]
    assert plain(2, db, kept) == ["alpha 1.0: 1 result added as run 1, the first of its kind"]
    told = "alpha 1.0: the run of 2026-01-02T01:00:00+00:00 is there already, as run 1"
    assert plain(2, db, kept) == [told]
    both = [*kept, result(case=UNIFORM, backend="beta")]
    assert plain(2, db, both) == [told, "beta 1.0: 1 result added as run 2, the first of its kind"]
    with pytest.raises(OpconformError, match="runs are added in the order in which they began"):
        plain(1, db, kept)


def test_runs_of_another_selection_are_no_interruption(tmp_path: Path) -> None:
    db = tmp_path / "h.duckdb"
    for night in (1, 2, 3):
        selection = ["onnx/Mean-*"] if night == 2 else []
        plain(night, db, [result(case=OTHER if night == 2 else UNIFORM)], selection=selection)
    found = json.loads(call("history", "show", "--db", db, "--json").output)
    assert [turn["changes"] and sum(turn["changes"].values()) for turn in found] == [None, 0, None]
    assert "alpha, onnx/Mean-*, suite" in call("history", "show", "--db", db).output


def test_what_fails_is_what_the_terms_of_the_run_make_a_failure(tmp_path: Path) -> None:
    db = tmp_path / "h.duckdb"
    asked = Terms(Demands({"invalid": "rejected"}), Suspensions(disputed={"onnx/ReduceMean#mean": ""}))
    kept = [
        invalid("accepted-invalid"),
        result("wrong-value", UNIFORM, clauses=("onnx/ReduceMean#mean",)),
        result("wrong-value", RAMP),
    ]
    plain(1, db, kept, terms=asked)
    with reading(db) as history:
        figures = turns(history)[0].figures
    assert (figures.failed, figures.suspended, figures.judged, figures.put) == (2, 1, 1, 1)


def test_shards_are_one_run(tmp_path: Path) -> None:
    shards = [
        write_folder(tmp_path / str(i), [result(case=name)], shard=f"{i}/2", versions={"alpha": "1"})
        for i, name in ((1, UNIFORM), (2, RAMP))
    ]
    db = tmp_path / "h.duckdb"
    refused = call("history", "add", shards[0], "--db", db)
    assert refused.exit_code == 2
    assert "1 shard of alpha missing: 2/2" in refused.output
    assert not db.exists(), "what is refused begins no history"
    assert "2 results added as run 1" in call("history", "add", *shards, "--db", db, "--label", "nightly").output
    assert "nightly" in call("history", "show", "--db", db).output


HOSTILE = ["'; DROP TABLE span; --", '"<script>alert(1)</script>', "a*?[b]", "naïve\x00\x1b[31m", "$.case"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_backend_name_is_text(tmp_path: Path, name: str) -> None:
    db = tmp_path / "h*'?.duckdb"
    folder = write_folder(tmp_path / "a*[b]?'", [result("error", UNIFORM, name, detail=name, reason=name)])
    add(db, [folder])
    add(db, [folder])
    assert remembered(db, 1, name) == put_in([result("error", UNIFORM, name, reason=name)])
    shown = call("history", "show", "--db", db)
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output
    assert call("history", "case", UNIFORM, "--db", db).exit_code == 0


TEXT = result(case=RAMP).to_json().decode()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{}\n", "results.jsonl:2: not a result: "),
        ('{"case": "half\n', "results.jsonl:2: not a result: "),
        (TEXT.replace('"strict"', "7") + "\n", "results.jsonl:2: not a result: "),
        (TEXT.replace("{}", '{"a": 7}') + "\n", "results.jsonl:2: not a result: "),
        (TEXT.replace('"pass"', '"Pass"') + "\n", "results.jsonl:2: not a result: "),
        (TEXT[:-1] + ',"more":1}\n', "results.jsonl:2: not a result: "),
        (result(case=UNIFORM).to_json().decode() + "\n", "appears twice"),
        (
            result(case=RAMP, backend="stranger").to_json().decode() + "\n",
            "results of 'stranger', which run.json does not name",
        ),
    ],
)
def test_a_damaged_folder_is_refused_and_nothing_is_taken_in(tmp_path: Path, line: str, told: str) -> None:
    folder = write_folder(tmp_path / "results", [result(case=UNIFORM)])
    with (folder / "results.jsonl").open("a") as lines:
        lines.write(line)
    done = call("history", "add", folder, "--db", tmp_path / "h.duckdb")
    assert done.exit_code == 2
    assert told in done.output
    assert not (tmp_path / "h.duckdb").exists()


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "results", [result(case=UNIFORM)])
    with (folder / "results.jsonl").open("a") as lines:
        lines.write('{"case": "on')
    add(tmp_path / "h.duckdb", [folder])
    assert remembered(tmp_path / "h.duckdb", 1, "alpha").keys() == {("alpha", UNIFORM)}


@pytest.mark.parametrize("death", ["raise RuntimeError", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_crash_in_the_middle_of_add_leaves_what_was_there(tmp_path: Path, death: str) -> None:
    db = tmp_path / "h.duckdb"
    plain(1, db, [result(case=UNIFORM)])
    folder = write_folder(tmp_path / "results", [result("wrong-value", UNIFORM), result(case=RAMP)], night=2)
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom opconform.reports.history import adding\n"
        f"def die(*_):\n    {death}\nadding._insert_run = die\nadding.add(Path(sys.argv[1]), [Path(sys.argv[2])])\n"
    )
    done = subprocess.run([sys.executable, "-c", script, db, folder], capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode in (1, -signal.SIGKILL)
    assert remembered(db, 1, "alpha") == put_in([result(case=UNIFORM)])
    with reading(db) as history:
        assert [turn.run for turn in turns(history)] == [1]
        assert history.value("SELECT count(*) FROM cases") == 1
    assert add(db, [folder]) == ["alpha 1.0: 2 results added as run 2, 2 cases changed"]


def test_a_first_add_that_is_killed_leaves_a_file_that_the_next_one_takes(tmp_path: Path) -> None:
    db = tmp_path / "h.duckdb"
    with pytest.raises(KeyboardInterrupt), writing(db):
        raise KeyboardInterrupt
    assert not db.exists()
    import duckdb

    duckdb.connect(str(db)).close()
    plain(1, db, [result(case=UNIFORM)])
    assert len(remembered(db, 1, "alpha")) == 1


def test_what_is_no_history_is_told(tmp_path: Path) -> None:
    import duckdb

    db = tmp_path / "h.duckdb"
    assert "there is no history; `opconform history add DIR" in call("history", "show", "--db", db).output
    db.write_text("something else, long enough to be looked at as a header of a database" * 100)
    assert "is not a history of opconform (not a DuckDB file)" in call("history", "show", "--db", db).output
    db.unlink()
    with duckdb.connect(str(db)) as other:
        other.execute("CREATE TABLE mine (x INTEGER)")
    folder = write_folder(tmp_path / "results", [result(case=UNIFORM)])
    assert "is not a history of opconform" in call("history", "add", folder, "--db", db).output
    assert "is not a history of opconform" in call("history", "show", "--db", db).output


def test_a_history_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    db = tmp_path / "h.duckdb"
    plain(1, db, [result(case=UNIFORM)])
    with writing(db) as history:
        history.run("UPDATE opconform_history SET schema = ?", [SCHEMA + 1])
    for command in ("show", "prune --keep 1"):
        done = call("history", *command.split(), "--db", db)
        assert done.exit_code == 2
        assert f"its tables have version {SCHEMA + 1}, this opconform knows {SCHEMA}" in done.output


def test_a_history_in_use_is_told(tmp_path: Path) -> None:
    db = tmp_path / "h.duckdb"
    plain(1, db, [result(case=UNIFORM)])
    script = "import sys, duckdb\nc = duckdb.connect(sys.argv[1])\nprint('up', flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script, db], stdin=-1, stdout=-1, env={**os.environ}) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert "is in use by another process" in call("history", "show", "--db", db).output
        assert holder.stdin is not None
        holder.stdin.close()


def test_messages_name_what_there_is(year: Path) -> None:
    assert (
        "has no backend 'alfa'; did you mean 'alpha'?"
        in call("history", "show", "--db", year, "--backend", "alfa").output
    )
    assert (
        "no case of this history is named so: onnx/Nope-*"
        in call("history", "show", "--db", year, "--select", "onnx/Nope-*").output
    )
    assert "has no case nowhere" in call("history", "case", "nowhere", "--db", year).output
    assert call("history", "prune", "--db", year).exit_code == 2


@pytest.mark.slow
def test_several_first_adds_at_once_lose_no_run(tmp_path: Path) -> None:
    db = tmp_path / "h.duckdb"
    folders = [
        write_folder(tmp_path / name, [result(case=UNIFORM, backend=name)], versions={name: "1.0"})
        for name in ("alpha", "beta", "gamma")
    ]
    script = "import sys\nfrom opconform.cli import main\nsys.stdin.read(1)\nmain()"
    words = [sys.executable, "-c", script, "history", "add"]
    adding = [subprocess.Popen([*words, folder, "--db", db], stdin=-1, stdout=-1, stderr=-1) for folder in folders]
    for one in adding:
        assert one.stdin is not None
        one.stdin.write(b"x")
        one.stdin.close()
    assert [one.wait() for one in adding] == [0, 0, 0]
    with reading(db) as history:
        assert [backend for (backend,) in history.rows("SELECT backend FROM series ORDER BY 1")] == [
            "alpha", "beta", "gamma"
        ]  # fmt: skip


def test_an_add_that_fails_removes_no_file_that_another_process_has_made(tmp_path: Path) -> None:
    db, folder = tmp_path / "h.duckdb", write_folder(tmp_path / "results", [result(case=UNIFORM)])
    script = "import sys, duckdb\nc = duckdb.connect(sys.argv[1])\nprint('up', flush=True)\nsys.stdin.read()"
    exists = Path.exists
    with (
        subprocess.Popen([sys.executable, "-c", script, db], stdin=-1, stdout=-1) as holder,
        pytest.MonkeyPatch.context() as patch,
    ):
        assert holder.stdout is not None
        holder.stdout.readline()
        patch.setattr(Path, "exists", lambda path, **more: path != db and exists(path, **more))  # it was not there yet
        assert "is in use by another process" in call("history", "add", folder, "--db", db).output
        patch.undo()
        assert db.exists()
        assert holder.stdin is not None
        holder.stdin.close()
