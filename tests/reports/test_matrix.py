"""The kill matrix: what is killed, what survives, who is blamed, and the suite that is enough."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from opconform.cli import main
from opconform.cli.killing import kills
from opconform.cli.mutation import value_implementations
from opconform.cli.smoke import smoke_cases
from opconform.generators.mutants.catalogue import mutants_of, versions
from opconform.generators.mutants.implementation import Implementation
from opconform.generators.mutants.variants import variants
from opconform.generators.plan import Selection
from opconform.generators.select import selected
from opconform.generators.source import GeneratedCases
from opconform.generators.suite import suite_cases
from opconform.reports.matrix import Evidence, Matrix, Tried, matrix_html, matrix_markdown

SOURCE = GeneratedCases()
VERSIONS = [str(version.operator) for _, version in versions(SOURCE.library)]
A, B, C = ("onnx/Mean-13/float32/3/-/ramp", "onnx/Mean-13/float32/7/-/ramp", "onnx/Mean-13/float32/9/-/ramp")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)


def wrong(name: str, **more: str) -> Implementation:
    return Implementation(name, more.get("kind", "arithmetic"), f"does {name}", "addends")  # type: ignore[arg-type]


def tried(case: str, clauses: tuple[str, ...] = ("o#mean",), invalid: bool = False) -> Tried:
    return Tried(case, int(case.split("/")[3]), clauses, invalid, case)


def matrix(failed: Mapping[str, Mapping[str, str]], excused: Mapping[str, str] | None = None, **cases: Tried) -> Matrix:
    every = cases or {"a": tried(A), "b": tried(B), "c": tried(C, ("o#mean", "o#nine"))}
    mutants = {name: wrong(name) for name in ("one", "two", "three", "nowhere")}
    evidence = Evidence({c.id: c for c in every.values()}, ("one", "two", "three"), ("right",), failed, excused or {})
    return Matrix({"onnx/Mean-13": evidence}, mutants, {"right": wrong("right", kind="variant")}, 2)


FAILED = {
    "one": {A: "wrong-value", B: "wrong-value"},
    "two": {B: "wrong-shape", C: "error"},
    "three": {C: "wrong-value"},
}


# What the suite holds


@pytest.mark.parametrize("version", VERSIONS)
def test_the_smoke_suite_kills_every_mutant_and_blames_no_variant(version: str) -> None:
    ids = list(selected(SOURCE, Selection((version,), suite="smoke")))
    every = list(value_implementations(SOURCE, version))
    found = kills(SOURCE, ids, every)
    spec, key = SOURCE.library.operator_version(version)
    excused = {"ignored-consumed_inputs"} if version == "onnx/Mean-1" else set()
    mutants = {m.name for m in mutants_of(spec, spec.version(key)).values() if m.kind != "process"}
    assert {name for name in mutants if not found[name]} == excused
    assert [v.name for v in every if v.kind == "variant" and found[v.name]] == []


def test_the_smoke_suite_is_small_and_its_cases_are_planned() -> None:
    ids = suite_cases("smoke")
    planned = set(selected(SOURCE, Selection()))
    assert set(ids) <= planned
    assert len(set(ids)) == len(ids) < len(planned) / 5


def test_no_variant_is_blamed_by_any_case_of_a_version() -> None:
    ids = list(selected(SOURCE, Selection(("onnx/Mean-8",))))
    right = [v for v in value_implementations(SOURCE, "onnx/Mean-8") if v.kind == "variant"]
    assert len(right) > 60
    assert {name: cases for name, cases in kills(SOURCE, ids, right).items() if cases} == {}


def test_a_mutant_of_a_claim_is_killed_under_the_requirement_alone() -> None:
    (narrow,) = (m for m in value_implementations(SOURCE, "onnx/Mean-13") if m.name == "narrow-accumulator")
    (same,) = (v for v in variants(SOURCE.library) if v.name == "sequential-own")
    ids = list(selected(SOURCE, Selection(("onnx/Mean-13/bfloat16/*",))))
    found = kills(SOURCE, ids, [narrow, same])
    assert found["narrow-accumulator"]
    assert not found["sequential-own"]


# The matrix


def test_cells_tell_the_smallest_case_that_kills() -> None:
    made = matrix(FAILED)
    assert made.cell("two", "onnx/Mean-13").smallest == B
    assert (made.cell("two", "onnx/Mean-13").cases, made.cell("two", "onnx/Mean-13").outcome) == (2, "wrong-shape")
    assert made.cell("nowhere", "onnx/Mean-13").reason == "needs addends"


def test_a_survivor_is_one_unless_there_is_a_reason() -> None:
    failed = {name: cases for name, cases in FAILED.items() if name != "three"}
    assert matrix(failed).survivors() == [("onnx/Mean-13", "three")]
    excused = matrix(failed, {"three": "it is right"})
    assert excused.survivors() == []
    assert excused.cell("three", "onnx/Mean-13").reason == "it is right"
    assert matrix(FAILED, {"three": "it is right"}).cell("three", "onnx/Mean-13").status == "killed"


def test_a_variant_that_is_blamed_is_a_false_alarm() -> None:
    ((version, name, cell),) = matrix({**FAILED, "right": {B: "wrong-value"}}).false_alarms()
    assert (version, name, cell.smallest) == ("onnx/Mean-13", "right", B)
    assert matrix(FAILED).false_alarms() == []


def test_clauses_tell_what_only_they_kill() -> None:
    clauses = {c.clause: c for c in matrix(FAILED).clauses()}
    assert clauses["o#nine"].only == ("onnx/Mean-13 three",)
    assert (clauses["o#mean"].killed, clauses["o#nine"].killed) == (3, 2)
    refusals = matrix({}, a=tried(A, ("o#range",), invalid=True), b=tried(B))
    assert [c.clause for c in refusals.clauses() if c.invalid_alone] == ["o#range"]


def test_the_cover_is_the_fewest_cases_and_the_smallest_of_equals() -> None:
    assert smoke_cases(SOURCE, matrix(FAILED)) == [A, C]
    assert smoke_cases(SOURCE, matrix({"one": {A: "error", C: "error"}})) == [A]


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.outside += [v for k, v in attrs if k in ("href", "src") and v and not v.startswith("#")]


def test_the_page_needs_nothing_else_and_escapes_every_name() -> None:
    made = matrix(FAILED)
    evil = wrong('"><script>alert(1)</script>')
    page = matrix_html(Matrix(made.evidence, {**made.mutants, evil.name: evil}, made.variants, 2), [A])
    read = Links()
    read.feed(page)
    assert read.outside == []
    assert not {"script", "link", "img", "iframe"} & set(read.tags)
    assert "&lt;script&gt;" in page
    assert "1 survivor" not in page
    assert "0 survivors" in page


def test_pages_name_survivors_and_false_alarms() -> None:
    made = matrix({"one": {A: "error"}, "two": {A: "error"}, "right": {B: "wrong-value"}})
    for page in (matrix_html(made, []), matrix_markdown(made, [])):
        assert "alive" in page
        assert "blamed" in page
        assert "three" in page


# The command


def test_the_command_writes_all_its_pages_and_exits_0(tmp_path: Path) -> None:
    files = {word: tmp_path / word for word in ("json", "html", "markdown", "write-smoke")}
    options = [part for word, file in files.items() for part in (f"--{word}", file)]
    done = call("mutants", "--suite", "smoke", "--select", "onnx/Mean-6", "--jobs", 1, *options)
    assert done.exit_code == 0, done.output
    assert "0 survivors, 0 false alarms" in done.output
    assert "process-hangs" not in done.output, "put to the last version of an operator alone"
    told = json.loads(files["json"].read_text())
    assert told["survivors"] == told["false_alarms"] == []
    cell = told["operator_versions"]["onnx/Mean-6"]["mutants"]["count-plus-one"]
    assert cell["status"] == "killed"
    assert cell["smallest"] in suite_cases("smoke")
    ids = [line for line in files["write-smoke"].read_text().splitlines() if not line.startswith("#")]
    assert ids == told["smoke"]
    assert files["markdown"].read_text().startswith("<!-- Made by")


@pytest.mark.slow
def test_processes_that_end_or_stall_are_outlived() -> None:
    done = call("mutants", "--select", "onnx/Mean-13/float64/3x2/-/uniform", "--jobs", 2)
    assert done.exit_code == 1, "one case does not kill all"
    lines = {line.split()[0]: line.split()[1] for line in done.output.splitlines() if len(line.split()) > 1}
    for name in ("process-aborts", "process-exits", "process-hangs", "memory-grows", "output-floods"):
        assert lines[name] == "1", done.output
    assert "survives  onnx/Mean-13  rank-0-refused" in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mutants", "--select", "onnx/Meen-13"), "selects no case"),
        (("mutants", "--json", "/nowhere/at/all.json"), "is no folder"),
        (("list", "cases", "--suite", "smok"), "did you mean 'smoke'?"),
        (("run", "onnx-reference", "--suite", "smok"), "did you mean 'smoke'?"),
        (("list", "cases", "--suite", "smoke", "--draws", "2"), "leave --draws and --seed out"),
    ],
)
def test_wrong_usage_exits_2_with_one_message(arguments: tuple[str, ...], words: str) -> None:
    done = call(*arguments)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())


def test_a_suite_can_be_listed_and_narrowed() -> None:
    whole = call("list", "cases", "--suite", "smoke").output.splitlines()
    assert tuple(whole) == suite_cases("smoke")
    few = call("list", "cases", "--suite", "smoke", "--select", "onnx/Mean-*").output.splitlines()
    assert few == [case for case in whole if case.startswith("onnx/Mean-")]


def test_a_mutant_runs_as_a_backend(tmp_path: Path) -> None:
    case = "onnx/Mean-13/float64/3x2/-/uniform"
    done = call("run", "mutant:count-plus-one", "--select", case, "--quiet", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "wrong-value" in done.output
    right = call("run", "mutant:right", "--select", case, "--quiet", "--out", tmp_path / "right")
    assert right.exit_code == 0, right.output
