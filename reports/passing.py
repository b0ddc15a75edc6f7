"""Passes that are alike, gathered as their lines arrive and counted together: most results of a run are such."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..cases.results import Outcome, Result
from ..runners.accuracy import Accuracy, Grade
from .grades import Peak
from .lines import Kind, Usual

_ACCURACY = re.compile(
    rb'\{"accuracy":(\{"grade":"[a-z-]+","type":"\w+","graded":\d+),"apart":\d+,'
    rb'"ulp":([^,]+),"at":\[[\d,]*\],"share":([^,]+),"tightest":[^,}]+\}\}'
)
_DRAW, _DIGITS = b"draw=", b"0123456789"


@dataclass(slots=True)
class Passes:
    """Passes of one case's draws that tell the same; or refusals in the same words.

    `result` is any of them, `least` the first case by its id, `first` the one that came first, `count` how many there
    are. `grade`, `type` and `graded`
    tell of their accuracy; None and empty where they have none. `ulp` and `share` are the largest, with their case.
    """

    result: Result
    least: str
    first: str
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


@dataclass(slots=True, eq=False)
class _Alike:
    """Passes as they are gathered: `Passes`, with the largest errors and their cases as they stand in the lines."""

    result: Result
    least: bytes
    first: bytes
    accuracy: bytes
    count: int = 0
    ulp: tuple[float, bytes] = (-1.0, b"")
    share: tuple[float, bytes] = (-1.0, b"")

    def passes(self) -> Passes:
        least, first = self.least.decode(), self.first.decode()
        found = Passes(self.result, least, first, count=self.count, ulp=_peak(self.ulp), share=_peak(self.share))
        if self.accuracy:
            told = json.loads(self.accuracy + b"}")
            found.grade, found.type, found.graded = Grade(told["grade"]), told["type"], told["graded"]
        return found


@dataclass(slots=True, eq=False)
class _Draws:
    """The draws of a case, by what stands around their number; what is gathered of them, by their accuracy."""

    before: bytes
    after: bytes
    alike: dict[bytes, _Alike] = field(default_factory=dict)

    def have(self, case: bytes) -> bool:
        before, after = self.before, self.after
        if not (case.startswith(before) and case.endswith(after)):
            return False
        return case[len(before) : len(case) - len(after)].isdigit()


@dataclass
class PassingLines:
    """Gathers lines of passes among draws, and of what else is no failure. Memory grows with their kinds."""

    outcomes: frozenset[Outcome] = frozenset({Outcome.PASS})
    gathered: list[_Alike] = field(default_factory=list)
    _draws: dict[tuple[Kind, bytes, bytes], _Draws] = field(default_factory=dict)
    _last: dict[Kind, _Draws] = field(default_factory=dict)

    def take(self, usual: Usual, attached: bytes) -> bool:
        """Take in what a result's line tells, and its attachments.

        False where it is another one than of `outcomes`, of no draw, or has more attached than its accuracy.
        """
        kind, case, _ = usual
        draws = self._last.get(kind)
        if draws is None or not draws.have(case):
            draws = self._draws_of(kind, case)
            if draws is None:
                return False
        accuracy = _ACCURACY.fullmatch(attached) if attached else None
        if accuracy is None and attached:
            return False
        key, ulp, share = accuracy.groups() if accuracy else (b"", b"null", b"null")
        one = draws.alike.get(key) or self._new(kind, case, draws, key)
        one.count += 1
        one.least = min(one.least, case)
        if ulp != b"null":
            one.ulp = _higher(one.ulp, float(ulp), case)
        if share != b"null":
            one.share = _higher(one.share, float(share), case)
        return True

    def drain(self) -> Iterator[Passes]:
        """Yield what was gathered, and forget it."""
        gathered = list(self.gathered)
        self.gathered.clear()
        self._draws.clear()
        self._last.clear()
        yield from (one.passes() for one in gathered)

    def _draws_of(self, kind: Kind, case: bytes) -> _Draws | None:
        before, draw, after = case.partition(_DRAW)
        if not draw or kind.result.outcome not in self.outcomes:
            return None
        key = kind, before + draw, after.lstrip(_DIGITS)
        found = self._draws.get(key) or self._draws.setdefault(key, _Draws(*key[1:]))
        self._last[kind] = found
        return found

    def _new(self, kind: Kind, case: bytes, draws: _Draws, key: bytes) -> _Alike:
        one = draws.alike[key] = _Alike(kind.result, case, case, key)
        self.gathered.append(one)
        return one


def _higher(known: tuple[float, bytes], number: float, case: bytes) -> tuple[float, bytes]:
    if number < known[0]:
        return known
    return (number, case) if number > known[0] or case < known[1] else known


def _peak(reached: tuple[float, bytes]) -> Peak | None:
    return Peak(reached[0], reached[1].decode()) if reached[1] else None
