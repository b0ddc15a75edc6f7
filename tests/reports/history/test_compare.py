"""`opconform compare`: what changed between two runs, as a dictionary of each would tell it."""

from __future__ import annotations

import json
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
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.results import Outcome, Result
from opconform.cli import main
from opconform.reports.history.changes import ChangeKind
from opconform.reports.history.compare import RunComparison, compared, opened
from opconform.reports.history.database import add
from opconform.reports.tally import Tally

UNIFORM, RAMP, LARGE, NORMAL = (case(fill=fill) for fill in ("uniform", "ramp", "large", "normal"))
OTHER = case("onnx/Mean-8", "float16")


def call(*arguments: object) -> Done:
    done = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    assert "Traceback" not in done.output
    return done


def compare(old: object, new: object) -> RunComparison:
    with opened(str(old)) as one, opened(str(new)) as other:
        return compared(one, other)


SIDES = st.dictionaries(
    st.tuples(st.sampled_from(["alpha", "beta"]), st.sampled_from([UNIFORM, RAMP, LARGE, OTHER, "no id \ud800"])),
    st.tuples(
        st.sampled_from(["pass", "wrong-value", "crash", "unsupported", "waived", "runner-error"]),
        st.sampled_from([{}, {"accumulator": ["wide"]}, {"accumulator": ["narrow"]}]),
        st.sampled_from(["a", "a", "b"]),
    ),
)
FAILING = {"wrong-value", "crash"}


def written(folder: Path, side: dict[tuple[str, str], Any], night: int) -> Path:
    digests = {digest: {"case_digest": "0" * 64, "expectation_digest": digest * 64} for digest in "ab"}
    kept = [
        result(outcome, name, backend, behaviour=behaviour, seconds=0.5, **digests[digest])
        for (backend, name), (outcome, behaviour, digest) in side.items()
    ]
    return write_folder(folder, kept, night=night, versions={"alpha": "1", "beta": "1"})


def naive(old: dict[Any, Any], new: dict[Any, Any]) -> Counter[str]:
    """Count the changes of three kinds, and all."""
    found: Counter[str] = Counter()
    for key in old.keys() | new.keys():
        a, b = old.get(key), new.get(key)
        if a is None or b is None:
            found["gone" if b is None else "new"] += 1
        elif a[:2] != b[:2] and a[2] != b[2]:
            found["expectation changed"] += 1
        elif a[:2] != b[:2]:
            regression, fix = a[0] == "pass" and b[0] in FAILING, b[0] == "pass" and a[0] in FAILING
            found["regression" if regression else "fix" if fix else "rest"] += 1
    return found


@given(SIDES, SIDES)
def test_what_changed_is_what_two_dictionaries_tell(old: dict[Any, Any], new: dict[Any, Any]) -> None:
    with tempfile.TemporaryDirectory() as place:
        one, other = (written(Path(place) / str(night), side, night) for night, side in ((1, old), (2, new)))
        comparison = compare(one, other)
        figures = Tally()
        for outcome, behaviour, _ in (answer for (backend, _), answer in new.items() if backend == "alpha"):
            figures.add(Result(UNIFORM, "alpha", Outcome(outcome), behaviour, level="strict"))
    told = {str(kind): comparison.changes.of(kind) for kind in ChangeKind if comparison.changes.of(kind)}
    named = {"regression", "fix", "new", "gone", "expectation changed"}
    found = Counter({name: told[name] for name in named & told.keys()})
    found["rest"] = sum(count for name, count in told.items() if name not in named)
    assert +found == +naive(old, new)
    assert sum(alike.count for alike in comparison.changes.worst_first()) == comparison.changes.total
    assert comparison.figures("alpha")[1].to_dict() == figures.figures("alpha").to_dict()


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nights in folders, and both in a history."""
    place = tmp_path_factory.mktemp("nights")
    wrong = {"outcome": "wrong-value", "detail": "element [0]: got <b>1</b> | want 2"}
    old = [
        result(case=UNIFORM),
        result(case=RAMP, **wrong),
        result(case=LARGE, behaviour={"accumulator": ["wide"]}),
        result(case=NORMAL, expectation_digest="a"),
        result(case=OTHER),
        result(backend="beta"),
    ]
    new = [
        result(case=UNIFORM, **wrong),
        result(case=case("onnx/ReduceMean-18"), **wrong),
        result(case=RAMP),
        result(case=LARGE, behaviour={"accumulator": ["narrow"]}),
        result("wrong-value", NORMAL, expectation_digest="b"),
        invalid("pass"),
        result(backend="gamma"),
    ]
    write_folder(place / "old", old, versions={"alpha": "1.0", "beta": "1"})
    write_folder(place / "new", new, night=2, versions={"alpha": "2.0", "gamma": "1"}, seed=5)
    add(place / "h.duckdb", [place / "old"])
    add(place / "h.duckdb", [place / "new"])
    return place


@pytest.mark.slow
def test_the_worst_comes_first_and_every_kind_is_told_apart(nights: Path) -> None:
    done = call("compare", nights / "old", nights / "new")
    assert done.exit_code == 0
    output = done.output
    assert output.startswith(f"regression  {UNIFORM}  on alpha 2.0\n  pass to wrong-value\n  element [0]: got <b>1</b>")
    heads = [line.partition("  ")[0] for line in output.splitlines() if "  onnx/" in line]
    assert heads == ["regression", "new, failing", "expectation changed", "silence", "gone", "new", "fix"]
    assert "accumulator: wide to narrow" in output
    assert "seed: none, now 5" in output
    assert f"only in {nights / 'old'}: beta" in output
    assert "alpha 1.0 to 2.0" in " ".join(output.split())
    assert output.splitlines()[-1].startswith("1 regression, 1 fix, 2 new cases, 1 case gone, 1 other answer")


def test_a_history_has_a_run_as_its_folder_has_it(nights: Path, tmp_path: Path) -> None:
    sides = ("old", "new"), ("h.duckdb:1", "h.duckdb:2"), ("h.duckdb:last-1", "new"), ("old", "h.duckdb:last")
    told = []
    for old, new in sides:
        call("compare", nights / old, nights / new, "--json", tmp_path / "c.json")
        found = json.loads((tmp_path / "c.json").read_text())
        told.append({key: value for key, value in found.items() if key not in ("old", "new", "notes")})
    assert told[0]["groups"][0]["cases"] == [UNIFORM]
    assert told[0]["changes"]["regression"] == 1
    assert all(one == told[0] for one in told)


def test_the_page_for_a_nightly_job_tells_what_changed_alone(nights: Path, tmp_path: Path) -> None:
    call("compare", nights / "old", nights / "new", "--markdown", tmp_path / "c.md")
    page = (tmp_path / "c.md").read_text()
    assert page.startswith("## opconform: 1 regression, 1 fix, ")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    first = next(row for row in rows if row.startswith("| regression"))
    assert first == (
        f"| regression | 1 | `{UNIFORM}` | pass to wrong-value: element \\[0\\]: got \\<b\\>1\\</b\\> \\| want 2 |"
    )
    assert f"$ opconform run alpha --select '{UNIFORM}'" in page
    call("compare", nights / "old", nights / "old", "--markdown", tmp_path / "c.md")
    assert (tmp_path / "c.md").read_text().startswith("## opconform: nothing changed in 6 results\n\nFrom ")


@pytest.mark.parametrize(
    ("sides", "fail_on", "code"),
    [
        (("old", "new"), "regression", 1),
        (("new", "old"), "change", 1),
        (("old", "old"), "change", 0),
        (("h.duckdb:1", "h.duckdb:2"), "regression", 1),
        (("failing", "new"), "regression", 0),
    ],
)
def test_it_fails_on_what_it_is_told_to(nights: Path, sides: tuple[str, str], fail_on: str, code: int) -> None:
    if not (nights / "failing").exists():
        write_folder(nights / "failing", [result("wrong-value", UNIFORM)])
    old, new = (nights / side for side in sides)
    assert call("compare", old, new, "--fail-on", fail_on).exit_code == code


def test_shards_and_several_backends_are_named_by_the_folder_they_lie_in(tmp_path: Path) -> None:
    for i, name in ((1, UNIFORM), (2, RAMP)):
        write_folder(tmp_path / "old" / str(i), [result(case=name)], shard=f"{i}/2", versions={"alpha": "1"})
    kept = [result(case=name) for name in (RAMP, UNIFORM)]
    write_folder(tmp_path / "new" / "alpha", kept)
    write_folder(tmp_path / "new" / "beta", [result(case=UNIFORM, backend="beta")])
    output = call("compare", tmp_path / "old", tmp_path / "new").output
    assert output.splitlines()[-1] == "nothing changed in 2 results"
    assert f"only in {tmp_path / 'new'}: beta" in output


def test_what_cannot_be_compared_is_told(nights: Path, tmp_path: Path) -> None:
    write_folder(tmp_path / "delta", [result(backend="delta")])
    done = call("compare", tmp_path / "delta", nights / "new")
    assert done.exit_code == 2
    assert (
        f"no backend is on both sides, so there is nothing to compare: {tmp_path / 'delta'} has delta; " in done.output
    )
    for side, told in (
        ("nowhere", "expected a results folder, a folder of results folders, or HISTORY.duckdb:RUN"),
        ("h.duckdb:7", "has no run 7; it has 1 to 2: `opconform history show` lists them"),
        ("h.duckdb:last-2", "has no run last-2"),
        ("none.duckdb:1", "there is no history"),
    ):
        done = call("compare", nights / side, nights / "new")
        assert done.exit_code == 2
        assert told in done.output
    write_folder(tmp_path / "twice", [result(), result("wrong-value")])
    assert "appears twice" in call("compare", tmp_path / "twice", nights / "new").output
    write_folder(tmp_path / "unfinished", [result()], status="interrupted")
    assert "unfinished; `opconform run --resume" in call("compare", nights / "old", tmp_path / "unfinished").output
    assert call("compare", nights / "old", tmp_path / "unfinished", "--partial").exit_code == 0


def test_folders_are_compared_without_the_database_and_a_history_names_the_extra(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert call("compare", nights / "old", nights / "new").exit_code == 0
    done = call("compare", nights / "h.duckdb:1", nights / "new")
    assert done.exit_code == 2
    assert "pip install duckdb" in done.output


@pytest.mark.parametrize("command", ["compare {0}:1 {1}", "history show --db {0}", "history show --db {2}"])
def test_the_database_is_closed_without_a_word(nights: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "none.duckdb").write_text("no database")
    words = command.format(nights / "h.duckdb", nights / "new", tmp_path / "none.duckdb").split()
    script = "from opconform.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert "leaked" not in ran.stderr
    assert len(ran.stderr.splitlines()) == (ran.returncode == 2)
