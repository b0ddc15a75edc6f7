"""JUnit XML of a run: a suite for each backend and operator version, a test case for each case."""

from __future__ import annotations

import datetime as dt
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias
from xml.sax.saxutils import XMLGenerator, quoteattr
from xml.sax.xmlreader import AttributesImpl

from ..cases.errors import OpconformError
from ..cases.results import Outcome, Result, result_from_json
from ..runners.demands import Demands
from ..specs.errata import Suspensions
from ..specs.globs import operator_version_of
from .folder import RESULTS, read_places, read_run
from .passing import Pass, PassReader
from .text import reproduce_line, xml_text

Verdict: TypeAlias = Literal["passed", "failures", "errors", "skipped"]
Usual: TypeAlias = Callable[[bytes], Pass | None]

_LONGEST_NAME, _LONGEST_MESSAGE, _LONGEST_BODY = 200, 300, 10_000  # viewers refuse files of some ten megabytes
_BROKEN = frozenset({Outcome.CRASH, Outcome.TIMEOUT, Outcome.RUNNER_ERROR})
_TAGS: Mapping[Verdict, str] = {"failures": "failure", "errors": "error", "skipped": "skipped"}


@dataclass
class _Suite:
    """Where the results of a suite are in each file, and what its head says."""

    backend: str
    operator_version: str
    started: str | None = None
    offsets: dict[int, array[int]] = field(default_factory=dict)
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def classname(self) -> str:
        """What viewers tell tests apart by, beside the name; they take what is before its last point for a package."""
        return f"{_cut(self.backend, _LONGEST_NAME)}.{self.operator_version}"


def write_junit(
    folders: Sequence[Path] | Path,
    target: Path,
    *,
    demands: Demands | None = None,
    suspensions: Suspensions | None = None,
    versions: Mapping[str, str] | None = None,
) -> None:
    """Write the results of a folder, or of several, as JUnit XML to the file `target`.

    `demands` says what fails, `suspensions` what does not count, `versions` the version of each backend. Holds eight
    bytes a case. Raises OpconformError if the results cannot be read or the file cannot be written.
    """
    judge, usual = _judge(demands or Demands(), suspensions or Suspensions()), _usual(suspensions or Suspensions())
    check_target(target)
    folders = [folders] if isinstance(folders, Path) else folders
    suites = _suites(folders, judge, usual)
    aside = target.with_name(f".{target.name}.part")
    try:
        with ExitStack() as opened, aside.open("wb") as file:
            results = [opened.enter_context((folder / RESULTS).open("rb")) for folder in folders]
            _write(_Xml(file), suites, lambda suite: _results(suite, results, usual), judge, versions or {})
        os.replace(aside, target)  # noqa: PTH105 - as in the results folder
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise OpconformError(f"{target}: cannot be written: {error.strerror}") from None


def check_target(target: Path) -> None:
    """Raise OpconformError if a file cannot be written there; to be asked before a long run."""
    if target.is_dir():
        raise OpconformError(f"{target}: cannot be written: it is a folder; name a file")
    if not target.parent.is_dir():
        raise OpconformError(f"{target}: cannot be written: there is no folder {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise OpconformError(f"{target}: cannot be written: no permission in {target.parent}")


_Judge: TypeAlias = Callable[[Result], tuple[Verdict, str]]


def _judge(demands: Demands, suspensions: Suspensions) -> _Judge:
    """Return what tells a result's verdict in JUnit's terms and, unless it is `passed`, the message."""

    def judge(result: Result) -> tuple[Verdict, str]:
        suspended = suspensions.reason(result.case, result.clauses)
        fails = demands.fails(result, suspended=suspended is not None)
        first = (result.detail or "").partition("\n")[0]
        told = f"{result.outcome}: {first}" if first else str(result.outcome)
        if result.outcome is Outcome.RUNNER_ERROR or (fails and result.outcome in _BROKEN):
            return "errors", told
        if fails:
            return "failures", told
        if suspended is not None:
            return "skipped", f"suspended ({suspended}): {result.outcome}"
        if result.outcome is Outcome.PASS:
            return "passed", ""
        return "skipped", told

    return judge


def _suites(folders: Sequence[Path], judge: _Judge, usual: Usual) -> list[_Suite]:
    found: dict[tuple[str, str], _Suite] = {}
    for index, folder in enumerate(folders):
        started = _started(folder)
        for offset, result in read_places(folder, usual):
            key = (result.backend, operator_version_of(result.case))
            suite = found.setdefault(key, _Suite(*key, started))
            suite.offsets.setdefault(index, array("Q")).append(offset)
            suite.verdicts["passed" if isinstance(result, Pass) else judge(result)[0]] += 1
            suite.seconds += result.seconds or 0.0
    return list(found.values())


def _usual(suspensions: Suspensions) -> Usual:
    """Return what reads the line of a pass that counts; nothing else is told of it, and most lines are such."""
    passes = PassReader()

    def read(line: bytes) -> Pass | None:
        found = None if suspensions.errata.entries else passes.read(line)
        return None if found is None or suspensions.reason(found.case, found.clauses) else found

    return read


def _write(
    out: _Xml,
    suites: list[_Suite],
    results: Callable[[_Suite], Iterable[Result | Pass]],
    judge: _Judge,
    versions: Mapping[str, str],
) -> None:
    whole = _head(suites)
    del whole["skipped"]  # Jenkins' schema has it in suites alone
    out.open("testsuites", {"name": "opconform", **whole})
    for suite in suites:
        head = {"name": f"{suite.backend} {suite.operator_version}", **_head([suite])}
        out.open("testsuite", {**head, **({"timestamp": suite.started} if suite.started else {})})
        if suite.backend in versions:
            out.open("properties")
            out.whole("property", {"name": "backend-version", "value": versions[suite.backend]})
            out.close("properties")
        passed = f'<testcase classname={quoteattr(xml_text(suite.classname))} name="'
        for result in results(suite):
            if isinstance(result, Pass):
                out.plain(f'{passed}{result.case}" time="{result.seconds:.6f}"/>\n')
            else:
                _write_case(out, result, suite, *judge(result))
        out.close("testsuite")
    out.close("testsuites")


def _write_case(out: _Xml, result: Result, suite: _Suite, verdict: Verdict, message: str) -> None:
    attributes = {"classname": suite.classname, "name": result.case, "time": f"{result.seconds or 0:.6f}"}
    if verdict == "passed":
        out.whole("testcase", attributes)
        return
    told, body = {"message": _cut(message, _LONGEST_MESSAGE)}, _cut(result.detail or "", _LONGEST_BODY)
    if verdict != "skipped":
        told["type"] = str(result.outcome)
        body = f"{body}\nreproduce: {reproduce_line(result)}".lstrip("\n")
    out.open("testcase", attributes)
    out.whole(_TAGS[verdict], told, body)
    out.close("testcase")


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def _started(folder: Path) -> str | None:
    """Return when a run began, in UTC and as viewers read it: without a zone; None if `run.json` does not tell."""
    try:
        started = read_run(folder)["started"]
        return dt.datetime.fromisoformat(started).astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (OpconformError, KeyError, TypeError, ValueError):
        return None


def _results(suite: _Suite, results: Sequence[BinaryIO], usual: Usual) -> Iterator[Result | Pass]:
    for index, offsets in suite.offsets.items():
        for offset in offsets:
            results[index].seek(offset)
            line = results[index].readline()
            yield usual(line) or result_from_json(line)


def _head(suites: Iterable[_Suite]) -> dict[str, str]:
    verdicts: Counter[Verdict] = Counter()
    for suite in suites:
        verdicts.update(suite.verdicts)
    counts = {str(name): str(verdicts[name]) for name in _TAGS}
    return {"tests": str(verdicts.total()), **counts, "time": f"{sum(s.seconds for s in suites):.6f}"}


class _Xml:
    """XML written as it comes; whatever text is given, the file is well-formed."""

    def __init__(self, file: BinaryIO) -> None:
        self._generator = XMLGenerator(file, "utf-8", short_empty_elements=True)
        self._generator.startDocument()

    def open(self, tag: str, attributes: Mapping[str, str] | None = None) -> None:
        self._start(tag, attributes or {})
        self._generator.characters("\n")

    def close(self, tag: str) -> None:
        self._generator.endElement(tag)
        self._generator.characters("\n")

    def whole(self, tag: str, attributes: Mapping[str, str], text: str = "") -> None:
        self._start(tag, attributes)
        if text:
            self._generator.characters(xml_text(text))
        self.close(tag)

    def plain(self, text: str) -> None:
        """Write what is well-formed already."""
        self._generator.ignorableWhitespace(text)

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._generator.startElement(tag, AttributesImpl({name: xml_text(v) for name, v in attributes.items()}))
