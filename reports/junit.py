"""JUnit XML of a run: a suite for each backend and operator version, a test case for each case."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TextIO, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from ..cases.errors import OpconformError
from ..cases.ids import operator_version_of
from ..cases.results import Outcome, Result
from ..runners.judging.terms import Demands, Suspensions
from .runs import RunRecord, read_results, read_run
from .text import cut, reproduce_line, xml_text

Status: TypeAlias = Literal["passed", "failures", "errors", "skipped"]

TAGS: Mapping[Status, str] = {"failures": "failure", "errors": "error", "skipped": "skipped"}
_LONGEST_NAME, _LONGEST_MESSAGE, _LONGEST_BODY = 200, 300, 10_000  # viewers refuse files of some ten megabytes
_BROKEN = frozenset({Outcome.CRASH, Outcome.TIMEOUT, Outcome.RUNNER_ERROR})
# most texts need no escaping, and looking for it costs more than everything else here
_PLAIN_VALUE = re.compile(r"[ !#-%'-;=?-~]*")
_PLAIN_BODY = re.compile(r"[\t\n\r -%'-;=?-~]*")


@dataclass
class TestSuite:
    """The test cases of a backend and operator version, as in the file, with the numbers for the suite's head."""

    backend: str
    operator_version: str
    started: str | None = None
    name: str = ""
    statuses: Counter[Status] = field(default_factory=Counter)
    seconds: float = 0.0
    texts: list[str] = field(default_factory=list)

    __test__ = False  # for pytest

    def __post_init__(self) -> None:
        # viewers identify tests by it and the name, and take the part before its last dot for a package
        classname = f"{cut(self.name or self.backend, _LONGEST_NAME)}.{self.operator_version}"
        self.opening = f"<testcase{attributes_text({'classname': classname})} name="

    def add(self, result: Result, status: Status, message: str, clause: str = "") -> None:
        """Add a result; `clause` says what its case tests."""
        seconds = result.seconds or 0.0
        text = f'{self.opening}{_quoted(result.case)} time="{seconds:.6f}"{_rest(result, status, message, clause)}'
        self.texts.append(text)
        self.statuses[status] += 1
        self.seconds += seconds


def attributes_text(attributes: Mapping[str, str]) -> str:
    """Return attributes in the form of a tag, safe for any value."""
    return "".join([f" {name}={_quoted(value)}" for name, value in attributes.items()])


def _quoted(text: str) -> str:
    """Return a text as an attribute's value."""
    return f'"{text}"' if _PLAIN_VALUE.fullmatch(text) else quoteattr(xml_text(text))


def _escaped(text: str) -> str:
    """Return a text as an element's."""
    return text if _PLAIN_BODY.fullmatch(text) else escape(xml_text(text))


def _rest(result: Result, status: Status, message: str, clause: str) -> str:
    """Return the part of a result's test case after its attributes."""
    if status == "passed":
        return "/>\n"
    attributes, body = {"message": cut(message, _LONGEST_MESSAGE)}, cut(result.detail or "", _LONGEST_BODY)
    if status == "skipped":
        body = "" if attributes["message"].endswith(body) else body  # a detail of a line is the message
    else:
        attributes["type"] = str(result.outcome)
        body = "\n".join(filter(None, (body, clause, f"reproduce: {reproduce_line(result)}")))
    tag = TAGS[status]
    end = f">{_escaped(body)}</{tag}>" if body else "/>"
    return f">\n<{tag}{attributes_text(attributes)}{end}\n</testcase>\n"


def write_junit(
    folders: Sequence[Path] | Path,
    target: Path,
    *more: Path,
    demands: Demands | None = None,
    suspensions: Suspensions | None = None,
    versions: Mapping[str, str] | None = None,
    clause_text: Callable[[str, str], str | None] = lambda _operator_version, _clause: None,
    names: Mapping[str, str] | None = None,
) -> None:
    """Write the results of one or more folders as JUnit XML to the file `target`, and to `more`.

    `demands` says what fails, `suspensions` what does not count; `versions` has the version of each backend, `names`
    its name in the file if it has another one there. A file is written under another name and renamed, so that a
    reader never sees half of it. Raises OpconformError if the results cannot be read or a file cannot be written.
    """
    for path in (target, *more):
        check_target(path)
    demands, suspensions = demands or Demands(), suspensions or Suspensions()
    suites: dict[tuple[str, str], TestSuite] = {}
    for folder in [folders] if isinstance(folders, Path) else folders:
        started = started_of(folder)
        for result in read_results(folder):
            key = result.backend, operator_version_of(result.case)
            suite = suites.get(key)
            if suite is None:
                suite = suites[key] = TestSuite(*key, started, (names or {}).get(result.backend, ""))
            status, message = _status_of(result, demands, suspensions)
            clause = _clause(result, clause_text) if status in ("failures", "errors") else ""
            suite.add(result, status, message, clause)
    for path in (target, *more):
        aside = path.with_name(f".{path.name}.part")
        try:
            with aside.open("w", encoding="utf-8") as file:
                _write(file, list(suites.values()), versions or {})
            os.replace(aside, path)  # noqa: PTH105 - as in the results folder
        except OSError as error:
            aside.unlink(missing_ok=True)
            raise OpconformError(f"{path}: cannot be written: {error.strerror}") from None


def _status_of(result: Result, demands: Demands, suspensions: Suspensions) -> tuple[Status, str]:
    """Return a result's status in JUnit and, unless it is `passed`, the message."""
    suspended = suspensions.reason(result.case, result.clauses)
    fails = demands.fails(result, suspended=suspended is not None)
    first = (result.detail or "").partition("\n")[0]
    message = f"{result.outcome}: {first}" if first else str(result.outcome)
    if result.outcome is Outcome.RUNNER_ERROR or (fails and result.outcome in _BROKEN):
        return "errors", message
    if fails:
        return "failures", message
    if suspended is not None:
        return "skipped", f"suspended ({suspended}): {result.outcome}"
    return ("passed", "") if result.outcome is Outcome.PASS else ("skipped", message)


def _clause(result: Result, clause_text: Callable[[str, str], str | None]) -> str:
    """Return a line with the first clause that a case tests, if its words are known."""
    text = clause_text(operator_version_of(result.case), result.clauses[0]) if result.clauses else None
    return f"clause {result.clauses[0].rpartition('#')[2]}: {text}" if text else ""


def check_target(target: Path) -> None:
    """Raise OpconformError if a file cannot be written there; to be called before a long run."""
    if target.is_dir():
        raise OpconformError(f"{target}: cannot be written: it is a folder; name a file")
    if not target.parent.is_dir():
        raise OpconformError(f"{target}: cannot be written: there is no folder {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise OpconformError(f"{target}: cannot be written: no permission in {target.parent}")


def _write(file: TextIO, suites: Sequence[TestSuite], versions: Mapping[str, str]) -> None:
    totals = _head(suites)
    del totals["skipped"]  # Jenkins' schema only has it in suites
    opening = f"<testsuites{attributes_text({'name': 'opconform', **totals})}>"
    file.write(f'<?xml version="1.0" encoding="utf-8"?>\n{opening}\n')
    for suite in suites:
        head = {"name": f"{suite.name or suite.backend} {suite.operator_version}", **_head([suite])}
        head |= {"timestamp": suite.started} if suite.started else {}
        file.write(f"<testsuite{attributes_text(head)}>\n")
        if suite.backend in versions:
            attributes = attributes_text({"name": "backend-version", "value": versions[suite.backend]})
            file.write(f"<properties>\n<property{attributes}/>\n</properties>\n")
        file.writelines(suite.texts)
        file.write("</testsuite>\n")
    file.write("</testsuites>\n")


def started_of(folder: Path) -> str | None:
    """Return when a run began, in UTC and without a zone, as viewers read it; None if `run.json` lacks it."""
    try:
        return RunRecord(folder, read_run(folder)).started.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except OpconformError:
        return None


def _head(suites: Iterable[TestSuite]) -> dict[str, str]:
    statuses: Counter[Status] = Counter()
    for suite in suites:
        statuses.update(suite.statuses)
    counts = {str(name): str(statuses[name]) for name in TAGS}
    return {"tests": str(statuses.total()), **counts, "time": f"{sum(s.seconds for s in suites):.6f}"}
