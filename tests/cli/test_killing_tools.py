"""Wrong inferencers, checkers and converters: exposed by the plan's programs, while compliant ones are not blamed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from fakes.sampled import slow

from opconform.cases.ids import Selection
from opconform.cli import main
from opconform.cli.killing_tools import tools_tested
from opconform.generators.selection import selected, suite_cases
from opconform.generators.source import GeneratedCases
from opconform.reports.matrix import Matrix, VersionMatrix, read_record
from opconform.reports.reasons import TOOL_REASONS, read_reasons
from opconform.reports.tool_matrix import tools_markdown

RECORD = Path(__file__).parents[2] / "docs" / "tool-kills.jsonl"


def matrix(name: str) -> VersionMatrix:
    source = GeneratedCases()
    smoke = {name: [text for text in suite_cases("smoke") if text.startswith(f"{name}/")]}
    return tools_tested(source, name, list(selected(source, Selection((name,)))), smoke)


@pytest.mark.parametrize(
    ("name", "killed"),
    [
        (
            "onnx/Concat-13",
            {
                "infer:last-two-swapped",
                "infer:axis-negative-plus-one",
                "infer:name-of-another",
                "check:everything-accepted",
                "check:forgets-axis-range",
            },
        ),
        ("onnx/Hardmax-11", {"infer:rank-one-less", "convert:relabelled-Hardmax-13", "convert:moved-Hardmax-13"}),
        slow("openvino/Split-1", {"infer:num_splits-plus-one", "check:everything-refused"}),
    ],
)
def test_wrong_tools_are_exposed_and_compliant_ones_are_not_blamed(name: str, killed: set[str]) -> None:
    found = matrix(name)
    names = {fate.name for fate in found.killed}
    assert killed - names == set()
    assert not found.blamed
    assert found.variants > 8
    made, exposed = (sum(pair[place] for pair in found.tried.values()) for place in (0, 1))
    assert exposed / made > 0.9


def test_a_rule_that_no_program_breaks_by_itself_is_none_to_forget() -> None:
    found = matrix("onnx/SequenceAt-11")
    names = {fate.name for fate in (*found.killed, *found.survivors)}
    assert "infer:everything-refused" in names
    assert not {name for name in names if name.startswith("check:forgets-position")}


def test_the_command_writes_a_record_and_a_page_and_has_no_smoke_suite(tmp_path: Path) -> None:
    files = {word: str(tmp_path / word) for word in ("record", "markdown", "json")}
    options = [part for word, file in files.items() for part in (f"--{word}", file)]
    arguments = ["dev", "mutants", "--tools", "--select", "onnx/Neg-13", "--jobs", "1"]
    done = CliRunner().invoke(main, [*arguments, *options])
    assert done.exit_code == 0, done.output
    told = json.loads(Path(files["json"]).read_text())["operator_versions"]["onnx/Neg-13"]
    assert {*told["tried"]} >= {"infer", "check"}
    assert Path(files["markdown"]).read_text().startswith("<!-- Made by")
    assert [*read_record(Path(files["record"]), {}).tested] == ["onnx/Neg-13"]
    wrong = CliRunner().invoke(main, [*arguments, "--html", str(tmp_path / "page")])
    assert (wrong.exit_code, "leave --write-smoke and --html out" in wrong.output) == (2, True)


def test_the_record_exposes_most_tools_blames_none_and_has_a_reason_for_each_survivor() -> None:
    record = read_record(RECORD, {})
    tried = [pair for tested in record.tested.values() for pair in tested.tried.values()]
    assert sum(killed for _, killed in tried) / sum(every for every, _ in tried) > 0.95
    assert not record.blamed
    reasons = read_reasons(TOOL_REASONS)
    assert (reasons.missing(record), reasons.idle(record)) == ([], [])
    page = RECORD.parent / "generated" / "tool-kills.md"
    assert page.read_text() == tools_markdown(reasons.explained(record))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_the_record_is_what_is_made_today(part: int) -> None:
    record = read_record(RECORD, {}).tested
    name, kept = list(record.items())[part * len(record) // 3]  # the gate makes all of it
    made = read_reasons(TOOL_REASONS).explained(Matrix({name: matrix(name)}))
    (line,) = [line for line in made.to_record().splitlines() if '"version"' in line]
    (before,) = [line for line in Matrix({name: kept}).to_record().splitlines() if '"version"' in line]
    assert json.loads(line) == json.loads(before)
