"""`opconform report`: shards put together tell what the whole run tells; what does not belong together is refused."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result
from fakes.here import run_here

from opconform.cli import main
from opconform.reports.runs import read_results, read_run

V13 = "onnx/ReduceMean-13"
WRONG = "python:fakes.backends:WrongOnUint32"
RIGHT = "python:fakes.backends:Right"
UNSORTED, MIXED = (f"{V13}/uint32/3x2x2/axes={axes}" for axes in ("2,0/ramp/axes-unsorted", "-1,0/ramp/axes-mixed"))
SELECTED = (
    *("--select", f"{V13}/uint32/*", "--select", UNSORTED, "--select", MIXED),
    *("--select", f"{V13}/float16/*axes=1/*", "--jobs", "1"),
)
WAIVERS = (
    f"- case: '{V13}/uint32/*/axes-unsorted'\n  outcome: wrong-value\n  reason: known\n"
    "  link: https://example.org/9\n  owner: me\n  expires: 2999-01-01\n"
    f"- case: '{V13}/uint32/*/axes-mixed'\n  outcome: crash\n  reason: known\n"
    "  link: https://example.org/9\n  owner: me\n  expires: 2999-01-01\n"
)


def call(*arguments: object) -> Result:
    with run_here():
        done = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    assert "Traceback" not in done.output
    return done


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, the same in three shards, and some others."""
    place = tmp_path_factory.mktemp("runs")
    (place / "waivers.yaml").write_text(WAIVERS)
    own = (*SELECTED, "--waivers", place / "waivers.yaml")
    call("run", WRONG, *own, "--out", place / "whole")
    for index in (1, 2, 3):
        call("run", WRONG, *own, "--shard", f"{index}/3", "--out", place / f"shard-{index}")
    call("run", WRONG, *own, "--shard", "1/2", "--out", place / "half")
    call("run", WRONG, *own, "--seed", "4", "--shard", "2/3", "--out", place / "seed-4")
    call("run", RIGHT, *SELECTED, "--out", place / "right")
    call("run", RIGHT, "--select", f"{V13}/float32/*/axes-*", "--jobs", "1", "--out", place / "other")
    return place


@pytest.mark.slow
def test_a_failure_says_that_its_clause_is_inferred(tmp_path: Path) -> None:
    done = call("run", WRONG, "--select", UNSORTED, "--select", f"{V13}/uint32/1x2/*", "--out", tmp_path / "run")
    words = "clause axes-order: inferred from the text: "
    assert words in " ".join(done.output.split())
    assert words in (tmp_path / "run" / "junit.xml").read_text()
    call("report", tmp_path / "run", "--html", tmp_path / "site", "--junit", tmp_path / "junit.xml")
    assert words in (tmp_path / "junit.xml").read_text()
    assert "inferred from the text: " in (tmp_path / "site" / "index.html").read_text()


def shards(runs: Path) -> list[Path]:
    return [runs / f"shard-{index}" for index in (3, 1, 2)]


def told(*arguments: object, into: Path) -> dict[str, Any]:
    """All that a report says, in any order."""
    call("report", *arguments, "--json", into / "r.json", "--junit", into / "r.xml")
    found = json.loads((into / "r.json").read_text())
    del found["runs"], found["failures"]
    cases = sorted(str(c.get("name")) for c in ET.parse(into / "r.xml").getroot().iter("testcase"))
    return {**_sorted(found), "cases": cases}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return sorted(map(_sorted, value), key=json.dumps) if isinstance(value, list) else value


@pytest.mark.slow
def test_the_report_of_a_run_is_its_summary(runs: Path, tmp_path: Path) -> None:
    done = call("report", runs / "whole", "--junit", tmp_path / "j.xml")
    assert done.exit_code == json.loads((runs / "whole" / "run.json").read_text())["exit_code"] == 1
    again = call("run", "--resume", runs / "whole", "--junit", tmp_path / "again.xml").output
    assert done.output == again
    assert "correctness" in done.output
    assert (tmp_path / "j.xml").read_bytes() == (runs / "whole" / "junit.xml").read_bytes()


@pytest.mark.slow
def test_the_shards_of_a_run_tell_together_what_it_tells(runs: Path, tmp_path: Path) -> None:
    whole = told(runs / "whole", into=tmp_path)
    assert told(*shards(runs), into=tmp_path) == whole
    run = json.loads((runs / "whole" / "run.json").read_text())
    assert whole["figures"] == _sorted(run["figures"])
    assert len(whole["waiver_problems"]) == 1
    counts = [json.loads((folder / "run.json").read_text())["planned"][WRONG] for folder in shards(runs)]
    assert sum(counts) == len(whole["cases"])
    assert all(counts)


def test_run_json_says_which_shard_it_is(runs: Path) -> None:
    assert json.loads((runs / "shard-2" / "run.json").read_text())["shard"] == "2/3"
    assert json.loads((runs / "whole" / "run.json").read_text())["shard"] is None


def test_backends_are_shown_side_by_side(runs: Path, tmp_path: Path) -> None:
    done = call("report", runs / "whole", runs / "right", "--json", tmp_path / "r.json")
    assert done.exit_code == 1
    read = json.loads((tmp_path / "r.json").read_text())
    assert read["backends"] == {WRONG: "1.0", RIGHT: "1.0"}
    correct = {name: found["correctness"] for name, found in read["figures"]["backends"].items()}
    assert (correct[RIGHT], correct[WRONG] < 0.9) == (1, True)
    assert call("report", runs / "right").exit_code == 0


def test_a_missing_shard_is_named_and_may_be_left_out_on_purpose(runs: Path) -> None:
    done = call("report", runs / "shard-1", runs / "shard-2")
    assert done.exit_code == 2
    assert f"1 shard of {WRONG} missing: 3/3" in done.output
    partly = call("report", runs / "shard-1", runs / "shard-2", "--partial")
    assert partly.exit_code == 1
    assert "1 shard missing: 3/3" in partly.output
    again = f"kinds:   opconform report {runs / 'shard-1'} {runs / 'shard-2'} --partial --kinds"
    assert again in partly.output


@pytest.mark.parametrize("shard", ["1/3", "1/1"])
def test_the_command_that_a_shard_prints_makes_its_site(shard: str, tmp_path: Path) -> None:
    done = call("run", RIGHT, *SELECTED, "--shard", shard, "--out", tmp_path / "run")
    printed = re.search(r"^site: +opconform (.*) --html site$", done.output, re.MULTILINE)
    assert printed
    assert ("--partial" in printed[1]) == (shard != "1/1")
    assert call(*shlex.split(printed[1])).exit_code == done.exit_code == 0


def unfinished(folder: Path) -> Path:
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, "status": "running"}))
    content = (folder / "results.jsonl").read_bytes()
    (folder / "results.jsonl").write_bytes(content[: len(content) // 2])
    return folder


def test_an_unfinished_shard_is_named_and_may_be_left_as_it_is_on_purpose(runs: Path, tmp_path: Path) -> None:
    folder = unfinished(Path(shutil.copytree(runs / "shard-3", tmp_path / "shard")))
    done = call("report", runs / "shard-1", runs / "shard-2", folder)
    assert done.exit_code == 2
    assert f"unfinished; `opconform run --resume {folder}` finishes it" in done.output
    partly = call("report", runs / "shard-1", runs / "shard-2", folder, "--partial")
    assert partly.exit_code == 130
    planned, there = sum(read_run(folder)["planned"].values()), len(list(read_results(folder)))
    assert f"unfinished: {folder} (still running, or killed): {there} of {planned} results" in partly.output
    assert f"finish it: opconform run --resume {folder}\n" in partly.output
    call("run", WRONG, "--resume", folder, "--waivers", runs / "waivers.yaml")
    assert told(runs / "shard-1", runs / "shard-2", folder, into=tmp_path) == told(runs / "whole", into=tmp_path)


def test_an_unfinished_run_tells_what_it_has(runs: Path, tmp_path: Path) -> None:
    folder = unfinished(Path(shutil.copytree(runs / "whole", tmp_path / "run")))
    done = call("report", folder)
    assert done.exit_code == 130
    assert "interrupted" in done.output
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, "planned": {}}))  # killed while cases were still planned
    early = call("report", folder)
    assert early.exit_code == 130
    assert f"{len(list(read_results(folder)))} results, and planning had not ended" in early.output


def test_a_results_folder_is_no_corpus_to_verify(runs: Path) -> None:
    done = call("verify", runs / "whole")
    assert done.exit_code == 2
    assert (
        f"a results folder; verify checks a corpus or a submission: `opconform submit {runs / 'whole'}" in done.output
    )


REFUSED = {
    "twice": (("shard-1", "shard-1"), "shard-1: named twice"),
    "copies": (("shard-1", "copy"), r"shard 1/3 appears twice: \S+shard-1 and \S+copy"),
    "other seed": (("shard-1", "seed-4", "shard-3"), r"seed: 0 in \S+shard-1, 4 in \S+seed-4"),
    "other number": (("half", "shard-2"), r"number of shards: 2 in \S+half, 3 in \S+shard-2"),
    "whole and shard": (("whole", "shard-2"), r"number of shards: none in \S+whole, 3 in \S+shard-2"),
    "whole runs": (("right", "same"), r"are both complete runs of \S+Right: report one"),
    "other selections": (("whole", "other"), r"selection: \S+uint32.* in \S+whole, \S+axes-\* in \S+other"),
    "other version": (("shard-1", "newer"), r"version of \S+: 1\.0 in \S+shard-1, 2\.0 in \S+newer"),
    "no run": (("nothing",), "expected a results folder"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_belong_together_is_refused_and_named(runs: Path, tmp_path: Path, what: str) -> None:
    for name in ("whole", "half", "right", "other", "seed-4", "shard-1", "shard-2", "shard-3"):
        (tmp_path / name).symlink_to(runs / name)
    shutil.copytree(runs / "shard-1", tmp_path / "copy")
    shutil.copytree(runs / "right", tmp_path / "same")
    newer = Path(shutil.copytree(runs / "shard-2", tmp_path / "newer")) / "run.json"
    newer.write_text(newer.read_text().replace('"version": "1.0"', '"version": "2.0"'))
    names, words = REFUSED[what]
    done = call("report", *(tmp_path / name for name in names))
    assert done.exit_code == 2
    assert re.search(words, done.output), done.output


def test_a_page_shows_the_worst_first(runs: Path, tmp_path: Path) -> None:
    call("report", runs / "right", runs / "whole", "--markdown", tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert page.startswith("## opconform: non-conformant\n")
    assert page.index("WrongOnUint32 1.0 |") < page.index("Right 1.0 |")
    assert re.search(r"\| wrong-value on \S+WrongOnUint32 \| \d+ \| `onnx/ReduceMean-13/uint32/\S+` \| element", page)
    assert "$ opconform run python:fakes.backends:WrongOnUint32 --select" in page
    assert "but " in page, "what is wrong with waivers"


def test_more_shards_than_parts_are_refused_by_each(tmp_path: Path) -> None:
    for index in (1, 5):
        done = call(
            "run", RIGHT, "--select", UNSORTED, "--select", MIXED, "--shard", f"{index}/5", "--out", tmp_path / "out"
        )
        assert done.exit_code == 2
        assert "have 2 parts, one per program; choose at most that many shards" in done.output
        assert not (tmp_path / "out").exists()
    assert "expected I/N" in call("run", RIGHT, "--shard", "3/2").output


@pytest.mark.slow
@pytest.mark.parametrize(("given", "name"), [((), "right"), (("--name", "mine"), "mine")])
def test_reports_call_a_backend_by_its_own_name_or_the_one_given(
    given: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    ran = call("run", WRONG, *SELECTED, *given, "--out", folder)
    targets = ("--html", tmp_path / "site", "--junit", tmp_path / "j.xml", "--badge", tmp_path / "badges")
    told = call("report", folder, *targets, "--markdown", tmp_path / "m.md")
    assert f"  on {name} 1.0\n" in ran.output
    assert f"{name} 1.0: " in told.output
    assert read_run(folder)["backends"][WRONG]["name"] == name
    assert next(read_results(folder)).backend == WRONG  # what the command line takes
    suite = ET.parse(tmp_path / "j.xml").getroot()[0]
    assert suite.get("name") == f"{name} {V13}"
    assert sorted(file.name for file in (tmp_path / "badges").iterdir()) == [f"{name}-onnx.json", f"{name}-onnx.svg"]
    assert f"| {name} 1.0 |" in (tmp_path / "m.md").read_text()
    page = (tmp_path / "site" / "index.html").read_text()
    assert f">{name}</a>" in page
    assert WRONG not in re.sub(r'"[^"]*"', "", page)  # only in links


def test_two_backends_of_one_name_are_called_as_on_the_command_line(tmp_path: Path) -> None:
    call("run", WRONG, RIGHT, *SELECTED, "--out", tmp_path / "run")
    told = read_run(tmp_path / "run")["backends"]
    assert {name: one["name"] for name, one in told.items()} == {WRONG: WRONG, RIGHT: RIGHT}
    done = call("run", WRONG, RIGHT, *SELECTED, "--name", "mine")
    assert done.exit_code == 2
    assert "--name: names one backend" in done.output
