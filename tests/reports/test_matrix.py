"""The kill matrix as a record, a page and a command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from opconform.cases.errors import OpconformError
from opconform.cli import main
from opconform.generators.selection import suite_cases
from opconform.reports.matrix import (
    TRIGGER_CLASSES,
    Fate,
    Matrix,
    VersionMatrix,
    matrix_html,
    matrix_markdown,
    read_record,
)

ONE = VersionMatrix(
    "onnx/Tried-1",
    "0" * 64,
    12,
    {"call": (5, 3), "formula": (4, 4), "trigger": (9, 8)},
    (
        Fate("axis-plus-one", "call", "takes <axis> | for one more", "unseen"),
        Fate("ones", "answer", "errs a little", "admitted", why="bound, over 2 times the change"),
    ),
    3,
    (),
    {"rank": 6, "type": 3},
    {"rank=6": "no case", "rank=5": "no case", "type=int8": "zeros"},
    ("onnx/Tried-1/float32/3/-/ramp",),
    {"float16": (200, 30), "float32": (1000, 1), "int8": (10, 0)},
    (Fate("zeros", "answer", "answers zeros", "killed", "onnx/Tried-1/float32/3/-/ramp", "wrong-value"),),
)
SMOKE = {ONE.version: ONE.smoke}
LATER = replace(ONE, version="onnx/Tried-13", survivors=ONE.survivors[:1], blind={})
BLAMED = replace(ONE, blamed=(Fate("reverse", "variant", "adds up backwards", "blamed", "a<b>", "wrong-value"),))


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "record"
    file.write_text(Matrix({ONE.version: BLAMED}).to_record())
    (found,) = read_record(file, SMOKE).tested.values()
    assert found == replace(BLAMED, killed=(), survivors=tuple(sorted(ONE.survivors, key=lambda f: f.status)))
    versions = [line for line in file.read_text().splitlines() if '"version"' in line]
    assert len(versions) == 1, "one line an operator version"


def test_a_version_of_another_smoke_suite_is_not_known(tmp_path: Path) -> None:
    file = tmp_path / "record"
    file.write_text(Matrix({ONE.version: ONE}).to_record())
    assert not read_record(file, {}).tested


@pytest.mark.parametrize("text", ["", "{}\n", "no json\n", '{"format": 9, "texts": {}}\n', '{"format": 5}\n{}\n'])
def test_what_is_no_record_is_told_with_its_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "record"
    file.write_text(text)
    with pytest.raises(OpconformError, match="record"):
        read_record(file, {})


def test_a_record_in_an_older_format_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "record"
    file.write_text('{"format": 4}\n{}\n')
    assert not read_record(file, {}).tested


def test_what_survived_before_is_known() -> None:
    known = Matrix({ONE.version: replace(ONE, survivors=ONE.survivors[:1])})
    assert [f.name for _, f in Matrix({ONE.version: ONE}).beyond(known).survivors] == ["ones"]
    assert Matrix({ONE.version: ONE}).beyond(Matrix({})).survivors == Matrix({ONE.version: ONE}).survivors


def test_the_page_of_the_docs_has_a_line_an_operator_and_what_admits_survivors() -> None:
    page = matrix_markdown(Matrix({ONE.version: BLAMED, LATER.version: LATER})).splitlines()
    assert "| operator | cases | mutants | killed | admitted | triggers exposed | open |" in page
    assert "| onnx/Tried | 24 | 18 | 14 | 1 | 12/18 | 3% |" in page
    assert "| all | 2 | 24 | 18 | 14 | 1 | 2 | 0 | 12/18 | 6 | 1 | 3% |" in page
    assert "| bound | 1 | 1 |" in page
    columns = next(line for line in page if line.startswith("| operator | extents")).split(" | ")
    cells = next(line for line in page[page.index("## Triggers") :] if line.startswith("| onnx/Tried ")).split(" | ")
    assert dict(zip(columns, cells, strict=True))["types"] == "4/6"
    assert any(line.startswith("- `reverse` on onnx/Tried-1: wrong-value on `a<b>`") for line in page)
    assert "None." in matrix_markdown(Matrix({ONE.version: ONE}))


def test_every_group_of_triggers_has_a_column_on_the_page() -> None:
    record = (Path(__file__).parents[2] / "docs" / "kill-matrix.jsonl").read_text("utf-8").splitlines()
    groups = {group for line in map(json.loads, record) for group in line.get("triggers", ())}
    columns = [group for groups in TRIGGER_CLASSES.values() for group in groups]
    assert sorted(columns) == sorted(groups)


def test_the_page_counts_a_survivor_under_each_silence_that_admits_it_and_ranks_widths() -> None:
    why = "accumulator=narrow; accumulator=stepwise|narrow flush=output; bound, over 10 times the change"
    admitted = replace(ONE, survivors=(Fate("ones", "answer", "", "admitted", why=why),))
    sizes = {f"onnx/Tried{n}-1": {"float32": (float(n), 9.0), "int8": (0.0, 0.0)} for n in range(11)}
    every = {version: replace(admitted, version=version, tight=tight) for version, tight in sizes.items()}
    page = matrix_markdown(Matrix(every)).splitlines()
    for reason in ("silence `accumulator`", "silence `flush`", "bound"):
        assert f"| {reason} | 11 | 11 |" in page
    assert "| float32 | 11 | 5 | 9 |" in page
    assert not [line for line in page if line.startswith("| int8")]


def test_the_html_page_needs_nothing_else_and_escapes_every_name() -> None:
    page = matrix_html(Matrix({ONE.version: BLAMED}))
    assert "a&lt;b&gt;" in page
    assert "a<b>" not in page
    assert "<code>axis-plus-one</code>" in page
    assert not any(word in page for word in ("<script", "http://", "https://", "src="))


# The command


@pytest.mark.slow
def test_the_command_writes_all_its_pages(tmp_path: Path) -> None:
    files = {word: tmp_path / word for word in ("record", "json", "html", "markdown", "write-smoke")}
    options = [part for word, file in files.items() for part in (f"--{word}", file)]
    arguments = ("dev", "mutants", "--select", "onnx/Mean-6", "--suite", "smoke", "--jobs", 1, *options)
    done = call(*arguments)
    assert done.exit_code in (0, 1), done.output
    assert "0 false alarms" in done.output
    told = json.loads(files["json"].read_text())["operator_versions"]["onnx/Mean-6"]
    ids = [line for line in files["write-smoke"].read_text().splitlines() if not line.startswith("#")]
    assert ids == told["smoke"]
    assert set(ids) <= set(suite_cases("smoke"))
    assert files["markdown"].read_text().startswith("<!-- Made by")
    again = call(*arguments)
    assert again.exit_code == 0, "what survives is in the record"
    assert "0 survivors, 0 false alarms" in again.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("dev", "mutants", "--select", "onnx/Meen-13"), "selects no case"),
        (("dev", "mutants", "--json", "/nowhere/at/all.json"), "is not a folder"),
        (("list", "cases", "--suite", "smok"), "did you mean 'smoke'?"),
        (("run", "onnx-reference", "--suite", "smok"), "did you mean 'smoke'?"),
        (("list", "cases", "--suite", "smoke", "--draws", "2"), "leave --draws and --seed out"),
        (("run", "mutant:nan-lst"), "did you mean 'nan-lost'?"),
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["mean-1:last-term-lost", *(pytest.param(n, marks=pytest.mark.slow) for n in ("negated", "data_0-last-ignored"))],
)
def test_a_mutant_runs_as_a_backend(tmp_path: Path, name: str) -> None:
    case = "onnx/Mean-13/float64/2*3x2/-/uniform" if name.startswith("data") else "onnx/Mean-13/float64/3x2/-/uniform"
    case = "onnx/ReduceMean-13/float64/3x2x2/axes=0/ramp" if name.startswith("mean") else case
    done = call("run", f"mutant:{name}", "--select", case, "--quiet", "--jobs", 1, "--out", tmp_path / "out")
    assert done.exit_code == 1, done.output
    assert "wrong-value" in done.output


@pytest.mark.slow
def test_a_variant_runs_as_a_backend_and_is_right(tmp_path: Path) -> None:
    words = ("run", "mutant:reverse-wide", "--suite", "smoke", "--select", "onnx/Mean-13", "--jobs", 1)
    done = call(*words, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output


@pytest.mark.slow
@pytest.mark.parametrize("name", ["process-aborts", "process-exits", "process-hangs", "memory-grows", "output-floods"])
def test_a_process_that_ends_or_stalls_is_outlived(tmp_path: Path, name: str) -> None:
    case = "onnx/Mean-13/float64/3x2/-/uniform"
    limits = ("--timeout", 1, "--memory", 768) if name != "output-floods" else ("--timeout", 1)
    done = call("run", f"mutant:{name}", "--select", case, *limits, "--quiet", "--out", tmp_path / "out")
    assert done.exit_code == 1, done.output
    assert any(word in done.output for word in ("crash", "timeout"))
