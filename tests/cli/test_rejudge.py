"""`opconform rejudge`: what was kept of a run is judged again by today's suite, and the run itself is left alone."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fakes.here import run_here

from opconform.cli import main
from opconform.reports.folder import inflated

Line = dict[str, Any]
V13 = "onnx/ReduceMean-13"
FILES = ("results", "outputs", "certificates", "accuracy")
OLD = "0" * 64


def invoke(*words: object) -> Any:
    return CliRunner().invoke(main, [str(word) for word in words])


def ran(folder: Path, backend: str, *more: object) -> Path:
    with contextlib.nullcontext() if backend == "Crashes" else run_here():
        done = invoke("run", f"python:fakes.backends:{backend}", "--quiet", "--jobs", 1, "--out", folder, *more)
    assert (folder / "run.json").exists(), done.output
    return folder


def lines(file: Path) -> list[Line]:
    found = file.read_bytes().splitlines() if file.exists() else []
    return [json.loads(inflated(line, 1 << 24) or b"") for line in found]


def about(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_text())


@dataclass(frozen=True)
class Again:
    """What a second judgement left behind."""

    code: int
    output: str
    folder: Path

    @property
    def told(self) -> Any:
        return about(self.folder)["rejudged"]

    @property
    def results(self) -> dict[str, Line]:
        return {line["case"]: line for line in lines(self.folder / "results.jsonl")}


@pytest.fixture
def rejudged(tmp_path: Path) -> Callable[..., Again]:
    def judge(folder: Path, *more: object) -> Again:
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        out = tmp_path / "again"
        done = invoke("rejudge", folder, "--out", out, *more)
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before, "the run itself is left alone"
        return Again(done.exit_code, done.output, out)

    return judge


def changed(folder: Path, change: Callable[[Line], object]) -> Path:
    """Change the lines of results as an older suite would have written them."""
    file = folder / "results.jsonl"
    found = lines(file)
    for line in found:
        change(line)
    file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in found))
    return folder


RUNS = {
    "values and refusals": ("Right", "--select", f"{V13}/int32/*"),
    "wrong values": ("WrongOnUint32", "--select", f"{V13}/uint32/2x300/*"),
    "required": ("Narrow", "--require", "accumulator=wide", "--select", "onnx/ReduceMean-13/*16/4096/*"),
    "required refusals": ("AnswersInvalid", "--require", "invalid=rejected", "--select", f"{V13}/float32/3*/axis-*"),
    "crashes": ("Crashes", "--select", f"{V13}/int32/2x2/*"),
    "nothing implemented": ("RefusesTypes", "--select", f"{V13}/*16/3x2x2/*"),
}


@pytest.mark.parametrize("keep", ["all", "failures"])
@pytest.mark.parametrize("arguments", RUNS.values(), ids=RUNS)
def test_where_nothing_has_changed_every_line_and_the_exit_code_stay(
    arguments: tuple[str, ...], keep: str, tmp_path: Path, rejudged: Callable[..., Again]
) -> None:
    folder = ran(tmp_path / "run", *arguments, "--keep-outputs", keep)
    again = rejudged(folder)
    for name in FILES:
        assert lines(again.folder / f"{name}.jsonl") == lines(folder / f"{name}.jsonl"), name
    assert again.code == about(folder)["exit_code"]
    assert about(again.folder)["figures"] == about(folder)["figures"]
    assert again.told["changed"] == again.told["run_again"] == []
    assert again.told["unchanged"] == len(again.results) > 0


def test_a_corrected_expectation_decides_anew_about_a_kept_answer(
    tmp_path: Path, rejudged: Callable[..., Again]
) -> None:
    folder = ran(tmp_path / "run", "Right", "--select", f"{V13}/int32/2x2/*", "--keep-outputs", "all")
    case = lines(folder / "outputs.jsonl")[0]["case"]
    truth = next(line for line in lines(folder / "results.jsonl") if line["case"] == case)

    def blame(line: Line) -> None:
        if line["case"] == case:
            line |= {"outcome": "wrong-value", "level": None, "detail": "element [0]", "expectation_digest": OLD}

    again = rejudged(changed(folder, blame))
    assert again.code == 0
    assert again.results[case] == truth
    (change,) = again.told["changed"]
    assert change["case"] == case
    assert (change["old"], change["new"], change["reason"]) == ("wrong-value", "pass", "changed expectation")
    assert case in again.output
    assert "wrong-value -> pass: 1 result, changed expectation" in again.output
    assert again.told["from"]["results"] == hashlib.sha256((folder / "results.jsonl").read_bytes()).hexdigest()
    (certificate,) = [c for c in lines(again.folder / "certificates.jsonl") if c["case"] == case]
    assert certificate["expectation_digest"] == truth["expectation_digest"]


@pytest.mark.parametrize(
    ("keep", "change", "why"),
    [
        ("none", {"expectation_digest": OLD}, "the expectation has changed, and the answer was not kept"),
        ("all", {"case_digest": OLD}, "its program or its inputs have changed"),
        ("digest", {"expectation_digest": OLD}, "the expectation has changed, and the answer was not kept"),
    ],
)
def test_what_cannot_be_judged_again_keeps_its_outcome_and_is_listed(
    keep: str, change: Line, why: str, tmp_path: Path, rejudged: Callable[..., Again]
) -> None:
    case = f"{V13}/int32/2x2/axes=1/halves/fraction"
    folder = ran(tmp_path / "run", "Right", "--select", f"{V13}/int32/2x2/*", "--keep-outputs", keep)
    changed(folder, lambda line: line.update(change) if line["case"] == case else None)
    again = rejudged(folder)
    assert lines(again.folder / "results.jsonl") == lines(folder / "results.jsonl")
    backend = "python:fakes.backends:Right"
    assert again.told["run_again"] == [{"case": case, "backend": backend, "reason": why}]
    assert f"cannot be judged again, run them: 1 result\n  {why}:\n    {case}  on {backend}\n" in again.output
    assert again.code == 0


@pytest.mark.parametrize("other", ["{case}-gone", "onnx/Relu-6/float32/2/from=a/test_data_set_0", "no id"])
def test_a_case_that_is_no_more_is_to_be_run_again(other: str, tmp_path: Path, rejudged: Callable[..., Again]) -> None:
    folder = ran(tmp_path / "run", "Right", "--select", f"{V13}/int32/2x2/*", "--keep-outputs", "none")
    gone = lines(folder / "results.jsonl")[0]["case"]
    other = other.format(case=gone)
    changed(folder, lambda line: line.update(case=other) if line["case"] == gone else None)
    (listed,) = rejudged(folder).told["run_again"]
    assert (listed["case"], listed["reason"]) == (other, "this case no longer exists")


def test_an_erratum_suspends_cases_that_were_run_before_it(tmp_path: Path, rejudged: Callable[..., Again]) -> None:
    folder = ran(tmp_path / "run", "WrongOnUint32", "--select", f"{V13}/uint32/2x300/*")
    assert about(folder)["exit_code"] == 1
    errata = tmp_path / "errata.yaml"
    errata.write_text(
        f"- id: E9\n  affects: '{V13}/uint32/2x300/*'\n  decision: in doubt\n  link: https://example.com/9\n"
        "  since: '0.1.0'\n"
    )
    again = rejudged(folder, "--errata", errata)
    wrong = [case for case, line in again.results.items() if line["outcome"] == "wrong-value"]
    told = {c["case"]: (c["old"], c["new"], c["reason"]) for c in again.told["changed"]}
    assert wrong
    assert all(told[case] == ("wrong-value", "wrong-value (suspended)", "erratum E9") for case in wrong)
    assert about(again.folder)["figures"]["suspended"] == {"erratum E9": len(again.results)}
    assert about(again.folder)["errata"]["ids"] == ["E9"]


def test_waivers_given_now_take_the_place_of_those_of_the_run(tmp_path: Path, rejudged: Callable[..., Again]) -> None:
    waivers = tmp_path / "waivers.yaml"
    waivers.write_text(
        f"- case: '{V13}/uint32/2x300/*'\n  outcome: wrong-value\n  reason: known\n  link: https://example.com/1\n"
        "  owner: me\n  expires: 2099-01-01\n"
    )
    folder = ran(tmp_path / "run", "WrongOnUint32", "--select", f"{V13}/uint32/2x300/*")
    again = rejudged(folder, "--waivers", waivers)
    assert again.code == 0
    assert {(c["old"], c["new"], c["reason"]) for c in again.told["changed"]} == {("wrong-value", "waived", "waivers")}
    with_them = Again(
        0, "", ran(tmp_path / "waived", "WrongOnUint32", "--select", f"{V13}/uint32/2x300/*", "--waivers", waivers)
    )
    assert {c: line["outcome"] for c, line in again.results.items()} == {
        c: line["outcome"] for c, line in with_them.results.items()
    }


def test_waived_results_are_judged_as_what_they_were(tmp_path: Path, rejudged: Callable[..., Again]) -> None:
    waivers, none = tmp_path / "waivers.yaml", tmp_path / "none.yaml"
    waivers.write_text(
        f"- case: '{V13}/uint32/2x300/*'\n  outcome: wrong-value\n  reason: known\n  link: https://example.com/1\n"
        "  owner: me\n  expires: 2099-01-01\n"
    )
    none.write_text("[]\n")
    folder = ran(tmp_path / "run", "WrongOnUint32", "--select", f"{V13}/uint32/2x300/*", "--waivers", waivers)
    assert {line["outcome"] for line in lines(folder / "results.jsonl")} >= {"waived"}
    again = rejudged(folder, "--waivers", none)
    assert again.code == 1
    assert {(c["old"], c["new"]) for c in again.told["changed"]} == {("waived", "wrong-value")}


def test_what_is_required_now_decides_where_answers_were_kept(tmp_path: Path, rejudged: Callable[..., Again]) -> None:
    select = ("--select", "onnx/ReduceMean-13/*16/4096/*", "--keep-outputs", "all")
    folder = ran(tmp_path / "run", "Narrow", *select)
    again = rejudged(folder, "--require", "accumulator=wide")
    direct = Again(0, "", ran(tmp_path / "direct", "Narrow", "--require", "accumulator=wide", *select))
    assert {c: (line["outcome"], line["detail"]) for c, line in again.results.items()} == {
        c: (line["outcome"], line["detail"]) for c, line in direct.results.items()
    }
    assert again.told["changed"]
    assert again.code == 1


def test_what_is_required_now_cannot_be_told_where_answers_were_not_kept(
    tmp_path: Path, rejudged: Callable[..., Again]
) -> None:
    select = ("--select", "onnx/ReduceMean-13/*16/4096/*", "--keep-outputs", "none")
    again = rejudged(ran(tmp_path / "run", "Narrow", *select), "--require", "accumulator=wide")
    assert {r["reason"] for r in again.told["run_again"]} == {"other options are required, and the answer was not kept"}


def test_a_refusal_is_judged_by_its_words(tmp_path: Path, rejudged: Callable[..., Again]) -> None:
    """An older suite called a refusal an error that the standard now leaves open, and the other way round."""
    select = ("--select", f"{V13}/float32/3*/axis-*", "--select", f"{V13}/int32/2x2/*")
    folder = ran(tmp_path / "run", "Raises", *select, "--keep-outputs", "none")
    truth = {line["case"]: line for line in lines(folder / "results.jsonl")}
    refused = [case for case, line in truth.items() if line["outcome"] == "error"]
    assert refused

    def blame(line: Line) -> None:
        if line["case"] in refused:
            line |= {"outcome": "pass", "level": "strict", "expectation_digest": OLD}

    again = rejudged(changed(folder, blame))
    assert {case: again.results[case] for case in refused} == {case: truth[case] for case in refused}
    assert not again.told["run_again"]


def test_a_rejudged_folder_can_be_reported_and_judged_again(tmp_path: Path, rejudged: Callable[..., Again]) -> None:
    again = rejudged(ran(tmp_path / "run", "WrongOnUint32", "--select", f"{V13}/uint32/2x300/*"))
    assert invoke("report", again.folder).exit_code == 1
    twice = invoke("rejudge", again.folder, "--out", tmp_path / "twice")
    assert twice.exit_code == 1
    assert (tmp_path / "twice" / "results.jsonl").read_bytes() == (again.folder / "results.jsonl").read_bytes()


def test_a_folder_that_is_in_use_is_never_written_to(tmp_path: Path) -> None:
    folder = ran(tmp_path / "run", "Right", "--select", f"{V13}/int32/2x2/*")
    done = invoke("rejudge", folder, "--out", folder)
    assert done.exit_code == 2
    assert "not empty" in done.output


def bomb(line: Line) -> None:
    line["outputs"][0].pop("base64", None)
    line["outputs"][0]["zlib_base64"] = base64.b64encode(zlib.compress(bytes(1 << 24))).decode()


def other_sum(line: Line) -> None:
    line["outputs"][0]["sha256"] = OLD


@pytest.mark.parametrize("damage", [bomb, other_sum, lambda line: line.update(outputs=[{"type": "int32"}])])
def test_damaged_answers_are_refused_with_their_place(damage: Callable[[Line], object], tmp_path: Path) -> None:
    folder = ran(tmp_path / "run", "Right", "--select", f"{V13}/int32/2x2/*", "--keep-outputs", "all")
    file = folder / "outputs.jsonl"
    found = lines(file)
    damage(found[0])
    file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in found))
    done = invoke("rejudge", folder, "--out", tmp_path / "again")
    assert done.exit_code == 2
    assert "outputs.jsonl" in done.output
    assert found[0]["case"] in done.output
