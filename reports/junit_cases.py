"""Results as JUnit's test cases, set aside by suite as they come, so that each line is read once."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from ..cases.errors import OpconformError
from ..cases.results import Outcome, Result
from ..runners.demands import Demands
from ..specs.errata import Suspensions
from ..specs.globs import operator_version_of
from .text import reproduce_line, xml_text

Verdict: TypeAlias = Literal["passed", "failures", "errors", "skipped"]

TAGS: Mapping[Verdict, str] = {"failures": "failure", "errors": "error", "skipped": "skipped"}
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
    verdicts: Counter[Verdict] = field(default_factory=Counter)
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

    def _count(self, suite: Suite, verdict: Verdict, times: int, seconds: float) -> None:
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

    def _judged(self, result: Result) -> tuple[Verdict, str]:
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


def _rest(result: Result, verdict: Verdict, message: str) -> str:
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
