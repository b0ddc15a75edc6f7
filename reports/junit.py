"""JUnit XML of a run: a suite for each backend and operator version, a test case for each case."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from ..cases.errors import OpconformError
from ..cases.results import Outcome, Result
from ..runners.demands import Demands
from ..specs.errata import Suspensions
from ..specs.globs import operator_version_of
from .folder import read_run
from .reading import read_results
from .text import reproduce_line, xml_text

Status: TypeAlias = Literal["passed", "failures", "errors", "skipped"]

TAGS: Mapping[Status, str] = {"failures": "failure", "errors": "error", "skipped": "skipped"}
_LONGEST_NAME, _LONGEST_MESSAGE, _LONGEST_BODY = 200, 300, 10_000  # viewers refuse files of some ten megabytes
_BROKEN = frozenset({Outcome.CRASH, Outcome.TIMEOUT, Outcome.RUNNER_ERROR})
_WAITING = 1 << 20  # bytes of test cases that wait to be set aside
_FORMS = 2_000
# texts that stand as they are, as most do: looking for what has to be escaped costs more than all else here
_PLAIN_VALUE = re.compile(r"[ !#-%'-;=?-~]*")
_PLAIN_BODY = re.compile(r"[\t\n\r -%'-;=?-~]*")


@dataclass
class Suite:
    """The test cases of a backend and operator version: what the suite's head says, and where they are set aside."""

    backend: str
    operator_version: str
    started: str | None = None
    verdicts: Counter[Status] = field(default_factory=Counter)
    seconds: float = 0.0
    places: array[int] = field(default_factory=lambda: array("Q"))
    waiting: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        # what viewers tell tests apart by, beside the name; they take what is before its last point for a package
        classname = f"{_cut(self.backend, _LONGEST_NAME)}.{self.operator_version}"
        self.opening = f"<testcase{attributes_text({'classname': classname})} name="


class TestCases:
    """Gathers test cases in `aside`, an empty file without a buffer; memory grows with the suites, not with the cases.

    `demands` says what fails, `suspensions` what does not count. `started` is when the run began that the next results
    are of.
    """

    __test__ = False  # for pytest

    def __init__(self, aside: BinaryIO, demands: Demands, suspensions: Suspensions) -> None:
        self.started: str | None = None
        self._aside, self._size, self._waiting = aside, 0, 0
        self._demands, self._suspensions = demands, suspensions
        self._suites: dict[tuple[str, str], Suite] = {}

    def add(self, result: Result) -> None:
        """Take in a result. Raises OpconformError if the disk does not take it."""
        suite = self._suite(result.backend, operator_version_of(result.case))
        verdict, message = self._judged(result)
        seconds = result.seconds or 0.0
        text = f'{suite.opening}{_quoted(result.case)} time="{seconds:.6f}"{_rest(result, verdict, message)}'
        self._put(suite, text.encode())
        self._count(suite, verdict, 1, seconds)

    def suites(self) -> list[Suite]:
        """Return the suites, in the order in which they came."""
        self._set_aside()
        return list(self._suites.values())

    def texts(self, suite: Suite) -> Iterator[bytes]:
        """Yield the test cases of a suite, in the order in which they came."""
        for place, size in zip(suite.places[::2], suite.places[1::2], strict=True):
            self._aside.seek(place)
            yield self._aside.read(size)

    def _suite(self, backend: str, operator_version: str) -> Suite:
        key = backend, operator_version
        return self._suites.get(key) or self._suites.setdefault(key, Suite(*key, self.started))

    def _count(self, suite: Suite, verdict: Status, times: int, seconds: float) -> None:
        suite.verdicts[verdict] += times
        suite.seconds += seconds

    def _put(self, suite: Suite, text: bytes) -> None:
        suite.waiting.append(text)
        self._waiting += len(text)
        if self._waiting >= _WAITING:
            self._set_aside()

    def _set_aside(self) -> None:
        waiting = [suite for suite in self._suites.values() if suite.waiting]
        texts = [b"".join(suite.waiting) for suite in waiting]
        left = memoryview(b"".join(texts))
        try:
            self._aside.seek(self._size)
            while left:
                left = left[self._aside.write(left) :]
        except OSError as error:
            raise OpconformError(f"{self._aside.name}: cannot be written: {error.strerror}") from None
        for suite, text in zip(waiting, texts, strict=True):
            suite.places.extend((self._size, len(text)))
            suite.waiting.clear()
            self._size += len(text)
        self._waiting = 0

    def _judged(self, result: Result) -> tuple[Status, str]:
        """Return a result's verdict in JUnit's terms and, unless it is `passed`, the message."""
        suspended = self._suspensions.reason(result.case, result.clauses)
        fails = self._demands.fails(result, suspended=suspended is not None)
        first = (result.detail or "").partition("\n")[0]
        told = f"{result.outcome}: {first}" if first else str(result.outcome)
        if result.outcome is Outcome.RUNNER_ERROR or (fails and result.outcome in _BROKEN):
            return "errors", told
        if fails:
            return "failures", told
        if suspended is not None:
            return "skipped", f"suspended ({suspended}): {result.outcome}"
        return ("passed", "") if result.outcome is Outcome.PASS else ("skipped", told)


def attributes_text(attributes: Mapping[str, str]) -> str:
    """Return attributes as they stand in a tag, whatever their values are."""
    return "".join([f" {name}={_quoted(value)}" for name, value in attributes.items()])


def _quoted(text: str) -> str:
    """Return a text as an attribute's value."""
    return f'"{text}"' if _PLAIN_VALUE.fullmatch(text) else quoteattr(xml_text(text))


def _escaped(text: str) -> str:
    """Return a text as an element's."""
    return text if _PLAIN_BODY.fullmatch(text) else escape(xml_text(text))


def _rest(result: Result, verdict: Status, message: str) -> str:
    """Return what follows the attributes of a result's test case."""
    if verdict == "passed":
        return "/>\n"
    told, body = {"message": _cut(message, _LONGEST_MESSAGE)}, _cut(result.detail or "", _LONGEST_BODY)
    if verdict != "skipped":
        told["type"] = str(result.outcome)
        body = f"{body}\nreproduce: {reproduce_line(result)}".lstrip("\n")
    tag = TAGS[verdict]
    end = f">{_escaped(body)}</{tag}>" if body else "/>"
    return f">\n<{tag}{attributes_text(told)}{end}\n</testcase>\n"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def write_junit(
    folders: Sequence[Path] | Path,
    target: Path,
    *more: Path,
    demands: Demands | None = None,
    suspensions: Suspensions | None = None,
    versions: Mapping[str, str] | None = None,
) -> None:
    """Write the results of a folder, or of several, as JUnit XML to the file `target`, and to `more`.

    `demands` says what fails, `suspensions` what does not count, `versions` the version of each backend. Memory does
    not grow with the cases. Raises OpconformError if the results cannot be read or a file cannot be written.
    """
    for one in (target, *more):
        check_target(one)
    with gathering(target.parent, demands or Demands(), suspensions or Suspensions()) as cases:
        for folder in [folders] if isinstance(folders, Path) else folders:
            gather(folder, cases)
        write_cases(cases, [target, *more], versions or {})


@contextlib.contextmanager
def gathering(folder: Path, demands: Demands, suspensions: Suspensions) -> Iterator[TestCases]:
    """Open what gathers test cases: in a file in this folder that has no name, and so is gone in any event.

    Raises OpconformError if there can be none.
    """
    try:
        aside = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed below
    except OSError as error:
        raise OpconformError(f"{folder}: cannot be written to: {error.strerror}") from None
    with aside:
        yield TestCases(aside, demands, suspensions)


def check_target(target: Path) -> None:
    """Raise OpconformError if a file cannot be written there; to be asked before a long run."""
    if target.is_dir():
        raise OpconformError(f"{target}: cannot be written: it is a folder; name a file")
    if not target.parent.is_dir():
        raise OpconformError(f"{target}: cannot be written: there is no folder {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise OpconformError(f"{target}: cannot be written: no permission in {target.parent}")


def gather(folder: Path, cases: TestCases) -> None:
    """Take in the results of a folder. Raises OpconformError if they cannot be read."""
    cases.started = started_of(folder)
    for result in read_results(folder):
        cases.add(result)


def write_cases(cases: TestCases, targets: Iterable[Path], versions: Mapping[str, str]) -> None:
    """Write what was gathered as JUnit XML. Raises OpconformError if a file cannot be written.

    Writes aside and moves, so that a reader never meets half a file.
    """
    for target in targets:
        aside = target.with_name(f".{target.name}.part")
        try:
            with aside.open("wb") as file:
                _write(file, cases, versions)
            os.replace(aside, target)  # noqa: PTH105 - as in the results folder
        except OSError as error:
            aside.unlink(missing_ok=True)
            raise OpconformError(f"{target}: cannot be written: {error.strerror}") from None


def _write(file: BinaryIO, cases: TestCases, versions: Mapping[str, str]) -> None:
    suites = cases.suites()
    whole = _head(suites)
    del whole["skipped"]  # Jenkins' schema has it in suites alone
    opening = f"<testsuites{attributes_text({'name': 'opconform', **whole})}>"
    file.write(f'<?xml version="1.0" encoding="utf-8"?>\n{opening}\n'.encode())
    for suite in suites:
        head = {"name": f"{suite.backend} {suite.operator_version}", **_head([suite])}
        head |= {"timestamp": suite.started} if suite.started else {}
        file.write(f"<testsuite{attributes_text(head)}>\n".encode())
        if suite.backend in versions:
            told = attributes_text({"name": "backend-version", "value": versions[suite.backend]})
            file.write(f"<properties>\n<property{told}/>\n</properties>\n".encode())
        for text in cases.texts(suite):
            file.write(text)
        file.write(b"</testsuite>\n")
    file.write(b"</testsuites>\n")


def started_of(folder: Path) -> str | None:
    """Return when a run began, in UTC and as viewers read it: without a zone; None if `run.json` does not tell."""
    try:
        started = read_run(folder)["started"]
        return dt.datetime.fromisoformat(started).astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (OpconformError, KeyError, TypeError, ValueError):
        return None


def _head(suites: Iterable[Suite]) -> dict[str, str]:
    verdicts: Counter[Status] = Counter()
    for suite in suites:
        verdicts.update(suite.verdicts)
    counts = {str(name): str(verdicts[name]) for name in TAGS}
    return {"tests": str(verdicts.total()), **counts, "time": f"{sum(s.seconds for s in suites):.6f}"}
