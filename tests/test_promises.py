"""docs/what-a-result-proves.md: each promise names a test that there is, and each command that judges has promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opconform.cli import main

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "what-a-result-proves.md").read_text()
SECTION = PAGE.partition("## What each command promises")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in SECTION.splitlines() if line[:3] == "| `"]
TESTS = {
    name
    for file in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^def (test_\w+)\(", file.read_text(), re.MULTILINE)
}
JUDGING = {"run", "check-runner", "submit", "verify", "rejudge", "report", "history", "compare", "audit-model", "can"}
OPTIONS = {"--memory", "--resume", "--corpus", "--dry-run"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1][:40])
def test_a_promise_is_about_a_command_and_names_a_test_that_there_is(row: list[str]) -> None:
    command, promise, test = row[0].strip("`"), row[1], row[-1].strip("`")
    name, _, option = command.partition(" ")
    assert name in main.commands
    assert not option or any(option in one.opts for one in main.commands[name].params)
    assert promise
    assert test in TESTS


def test_every_command_that_judges_or_keeps_results_has_a_promise() -> None:
    told = [row[0].strip("`").partition(" ") for row in ROWS]
    assert {name for name, _, _ in told} == JUDGING
    assert {option for _, _, option in told if option} == OPTIONS
    assert re.search(r"^\| every command \| exit 1 means .* \| `(test_\w+)` \|$", SECTION, re.MULTILINE)[1] in TESTS  # type: ignore[index]
