"""Texts to file with a backend's maintainers: one for each kind of failure, with the smallest case and its script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cases.errors import OpconformError
from ..cases.ids import operator_version_of, split_version
from ..cases.results import Outcome, Result
from ..cases.short import short_id
from ..generators.meanings import CasesOfEveryKind
from .badge import file_part
from .runs import MergedRun
from .script import script_text
from .tables import CountedRuns, clause_of
from .tally import FailureGroup
from .text import counted, markdown_text, printable, reproduce_line, write_text
from .tool_script import tool_script
from .trackers import tracker_of

_LINES, _LONGEST = 8, 2_000
_HAPPENS: Mapping[Outcome, str] = {
    Outcome.CRASH: "the process dies",
    Outcome.TIMEOUT: "no answer within the time limit",
    Outcome.WRONG_VALUE: "wrong values",
    Outcome.WRONG_SHAPE: "an output of the wrong shape",
    Outcome.WRONG_DTYPE: "an output of the wrong type",
    Outcome.ERROR: "valid input is refused",
    Outcome.ACCEPTED_INVALID: "invalid input is accepted",
    Outcome.UNSUPPORTED: "a case that was promised is unsupported",
}


@dataclass(frozen=True)
class Finding:
    """A kind of failures: the name of its file, title, text, number of cases, and where it can be filed, if known."""

    name: str
    title: str
    text: str
    count: int
    tracker: str | None


def findings_of(wholes: Sequence[MergedRun], counts: CountedRuns, source: CasesOfEveryKind) -> Iterator[Finding]:
    """Yield a finding for each kind of failures of these runs, worst first; our own side's failures are left out."""
    runs = {backend: merged for merged in wholes for backend in merged.versions}
    for alike in counts.tables.failures.worst():
        if alike.first.outcome is not Outcome.RUNNER_ERROR:
            yield _finding(alike, runs[alike.first.backend], source)


def write_findings(findings: Sequence[Finding], out: Path) -> None:
    """Write a file for each finding, and `index.md`. Raises OpconformError if the folder cannot be written to."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OpconformError(f"{out}: cannot be written: {error.strerror}") from None
    lines = ["# Findings", "", "| finding | cases | tracker |", "| --- | ---: | --- |"]
    for finding in findings:
        write_text(out / finding.name, finding.text)
        where = f"<{finding.tracker}>" if finding.tracker else ""
        lines.append(f"| [{markdown_text(finding.title)}]({finding.name}) | {finding.count:,} | {where} |")
    write_text(out / "index.md", "\n".join([*lines, ""]))


def _finding(alike: FailureGroup, merged: MergedRun, source: CasesOfEveryKind) -> Finding:
    result, tracker = alike.first, tracker_of(alike.first.backend)
    operator = split_version(operator_version_of(result.case))[0].partition("/")[2]
    backend = merged.names[result.backend]
    title = f"{operator}: {_HAPPENS.get(result.outcome, str(result.outcome))} ({_versions(alike)})"
    name = f"{file_part(backend)}-{file_part(operator)}-{result.outcome}-{short_id(result.case).rpartition('#')[2]}.md"
    lines = [f"# {markdown_text(title)}", "", *_facts(merged, result, tracker), "", "## What happens", ""]
    lines += [_fenced("text", _beginning(result.detail or "no message")), ""]
    lines += [*_standard(result, source), "## Reproduce", "", *_script(result, merged, source), ""]
    more = f"{counted(alike.count, 'case')} of the suite {'fails' if alike.count == 1 else 'fail'} so"
    lines += [f"{more}, {_versions(alike)}. The shortest of them is `{printable(result.case)}`.", ""]
    return Finding(name, f"{backend}: {title}", "\n".join(lines), alike.count, tracker)


def _versions(alike: FailureGroup) -> str:
    split = [split_version(name) for name in alike.operator_versions]
    operators = {operator for operator, _ in split}
    if len(operators) > 1:
        return f"{len(operators):,} operators"
    return f"version {', '.join(sorted((v for _, v in split), key=lambda v: (len(v), v)))}" if split[0][1] else "all"


def _facts(merged: MergedRun, result: Result, tracker: str | None) -> Iterator[str]:
    run_record = merged.parts[0].run_json
    machine: Mapping[str, Any] = run_record.get("machine") or {}
    yield f"- {markdown_text(merged.names[result.backend])} {markdown_text(merged.versions[result.backend])}"
    where = ", ".join(str(machine[key]) for key in ("platform", "processor") if machine.get(key))
    yield f"- {str(run_record.get('started'))[:10]}, Python {machine.get('python')}, {markdown_text(where)}"
    yield f"- found by opconform {(run_record.get('suite') or {}).get('version')}"
    if tracker:
        yield f"- to file at <{tracker}>; search there first"


def _standard(result: Result, source: CasesOfEveryKind) -> list[str]:
    """Return what the standard says: the clause that the case tests first; nothing of a crash, which breaks none."""
    if not result.clauses or result.outcome in (Outcome.CRASH, Outcome.TIMEOUT):
        return []
    clause = clause_of(source.library, operator_version_of(result.case), result.clauses[0])
    if clause is None:
        return []
    return ["## What the standard says", "", f"{clause.text[:1].upper()}{clause.text[1:]}. {clause.source}", ""]


def _script(result: Result, merged: MergedRun, source: CasesOfEveryKind) -> list[str]:
    """Return the script of the case if it can be made, and the command."""
    command = _fenced("console", f"$ {reproduce_line(result)}")
    runs = merged.parts[0].about(result.backend).facts.get("kind", "run") == "run"
    try:
        script = script_text(source.case(result.case)) if runs else tool_script(source, result.case, result.backend)
    except OpconformError:
        return [command]
    return [_fenced("python", script.rstrip()), "", "With opconform:", "", command]


def _beginning(detail: str) -> str:
    return "\n".join(printable(detail[:_LONGEST]).splitlines()[:_LINES])


def _fenced(language: str, text: str) -> str:
    """Return a block of code whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
