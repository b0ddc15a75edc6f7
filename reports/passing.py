"""Passes that are alike, gathered as their lines arrive and counted together: most results of a run are such."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ..cases.results import Outcome, Result, result_from_json
from ..runners.accuracy import Accuracy, Grade
from .grades import Peak

_CASE: Final = b'{"case":"'
_RATIO, _DIGESTS = b',"bound_ratio":', b',"case_digest":'  # a quote inside a text is escaped: they stand there once
_TAIL = re.compile(
    rb',"case_digest":"[0-9a-f]{64}","expectation_digest":"[0-9a-f]{64}","seconds":(\d+\.\d+(?:e-\d+)?)\}\n'
)
_PLAIN = re.compile(r"[\w.^+*,;=/-]+", re.ASCII)
_ACCURACY = re.compile(
    rb'\{"accuracy":\{"grade":"([a-z-]+)","type":"(\w+)","graded":(\d+),"apart":\d+,'
    rb'"ulp":([^,]+),"at":\[[\d,]*\],"share":([^,]+),"tightest":[^,}]+\}\}'
)
_KINDS: Final = 10_000
_DIGITS: Final = "0123456789"

_Key: TypeAlias = tuple[bytes, str, str, bytes, bytes, bytes]


@dataclass(slots=True)
class Passes:
    """Passes of one case's draws that tell the same.

    `result` is any of them, `least` the first case by its id, `count` how many there are. `grade`, `type` and `graded`
    tell of their accuracy; None and empty where they have none. `ulp` and `share` are the largest, with their case.
    """

    result: Result
    least: str
    grade: Grade | None = None
    type: str = ""
    graded: int = 0
    count: int = 0
    ulp: Peak | None = None
    share: Peak | None = None

    @property
    def accuracy(self) -> Accuracy | None:
        """That of any of them, as far as they have it in common, with the largest errors."""
        if self.grade is None:
            return None
        ulp, share = (None if peak is None else peak.number for peak in (self.ulp, self.share))
        return Accuracy(self.grade, self.type, self.graded, 0, ulp, (), share, None)


def common_part(line: bytes) -> tuple[str, bytes] | None:
    """Return the case of a result's line, and what is left of it without case, ratio, digests and seconds.

    None where the line is not as a run writes it.
    """
    end = line.find(b'"', len(_CASE))
    ratio, digests = line.find(_RATIO, end), line.rfind(_DIGESTS)
    after = line.find(b",", ratio + len(_RATIO))
    if not line.startswith(_CASE) or end < 0 or ratio < 0 or not ratio < after <= digests:
        return None
    case = line[len(_CASE) : end]
    return None if b"\\" in case else (case.decode(), line[end:ratio] + line[after:digests])


@dataclass(frozen=True, slots=True)
class Pass:
    """What the line of a pass tells that matters in a list of cases; its names are free of marks."""

    backend: str
    case: str
    clauses: tuple[str, ...]
    seconds: float


@dataclass
class PassReader:
    """Reads lines of passes from a file; a line is read in full where the like of it was not there before."""

    _known: dict[bytes, Result | None] = field(default_factory=dict)

    def read(self, line: bytes) -> Pass | None:
        """Return what the line, with its end, tells; None where it is none of a pass, or not of the usual form."""
        found, tail = common_part(line), _TAIL.fullmatch(line, max(0, line.rfind(_DIGESTS)))
        if found is None or tail is None or not _PLAIN.fullmatch(found[0]):
            return None
        case, common = found
        if common not in self._known:
            if len(self._known) >= _KINDS:
                self._known.clear()
            self._known[common] = _passed(line)
        known = self._known[common]
        return None if known is None else Pass(known.backend, case, known.clauses, float(tail[1]))


def _passed(line: bytes) -> Result | None:
    """Return the result of a line if it is a sound one, and passed; what is wrong with another one, others tell."""
    try:
        result = result_from_json(line)
    except (ValueError, TypeError, RecursionError):
        return None
    return result if result.outcome is Outcome.PASS and _PLAIN.fullmatch(result.backend) else None


@dataclass
class PassingLines:
    """Gathers lines of passes among draws, and of what else is no failure. Memory grows with their kinds."""

    outcomes: frozenset[Outcome] = frozenset({Outcome.PASS})
    gathered: dict[_Key, Passes] = field(default_factory=dict)
    _prototypes: dict[bytes, Result | None] = field(default_factory=dict)

    def take(self, line: bytes, attached: bytes) -> Outcome | None:
        """Take in a result's line and its attachments, and return its outcome.

        None where it is another one than of `outcomes`, or the line not of the usual form.
        """
        found = common_part(line)
        before, draw, after = found[0].partition("draw=") if found else ("", "", "")
        if found is None or not draw:
            return None
        case, common = found
        if common not in self._prototypes:
            result = result_from_json(line)
            self._prototypes[common] = result if result.outcome in self.outcomes else None
        prototype = self._prototypes[common]
        accuracy = _ACCURACY.fullmatch(attached) if attached else None
        if prototype is None or (attached and accuracy is None):
            return None
        grade, kind, graded, ulp, share = accuracy.groups() if accuracy else (b"", b"", b"0", b"null", b"null")
        key = common, before, after.lstrip(_DIGITS), grade, kind, graded
        one = self.gathered.get(key)
        if one is None:
            known = Grade(grade.decode()) if grade else None
            one = self.gathered[key] = Passes(prototype, case, known, kind.decode(), int(graded))
        one.count += 1
        one.least = min(one.least, case)
        one.ulp, one.share = _higher(one.ulp, ulp, case), _higher(one.share, share, case)
        return prototype.outcome

    def drain(self) -> Iterator[Passes]:
        """Yield what was gathered, and forget it."""
        gathered = list(self.gathered.values())
        self.gathered.clear()
        self._prototypes.clear()
        yield from gathered


def _higher(known: Peak | None, text: bytes, case: str) -> Peak | None:
    if text == b"null":
        return known
    number = float(text)
    if known is None or number > known.number or (number == known.number and case < known.case):
        return Peak(number, case)
    return known
