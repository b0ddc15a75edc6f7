"""Lines of results told apart by what they have in common: most differ in case, ratio, digests and seconds alone."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ..cases.results import Outcome, Result, result_from_json
from ..runners.demands import Demands
from ..specs.errata import Suspensions

_CASE: Final = b'{"case":"'
# a quote inside a text is escaped: each of these stands in a line once
_BACKEND, _OUTCOME = b'","backend":', b',"outcome":'
_RATIO, _DIGEST = b',"bound_ratio":', b',"case_digest":"'
_TAIL = re.compile(rb'[0-9a-f]{64}","expectation_digest":"[0-9a-f]{64}","seconds":(\d+(?:\.\d+)?(?:e-\d+)?)\}\n?')
_SIZE: Final = 64
_BETWEEN: Final = _SIZE + len(b'","expectation_digest":"')  # bytes from one digest to the other
PLAIN: Final = (string.ascii_letters + string.digits + "_.^+*,;=/-").encode()
_NUMBER: Final = b"0123456789.e-"
_ALIKE: Final = frozenset({Outcome.PASS, Outcome.UNSUPPORTED, Outcome.ERROR, Outcome.ACCEPTED_INVALID})
_NAMES: Final = frozenset(str(outcome).encode() for outcome in _ALIKE)
_KINDS: Final = 2_000


@dataclass(slots=True, eq=False)
class Kind:
    """What lines have in common: all from the case to the ratio, `before`, and from there to the digests, `after`.

    `result` is that of any of them. `told` is how much of `before` tells the backend.
    """

    result: Result
    before: bytes
    after: bytes
    told: int

    def head(self, line: bytes, case: bytes) -> bytes:
        """Return the beginning of a line that tells case and backend; see `reading.head_of`."""
        return line[: len(_CASE) + len(case) + self.told]


Usual: TypeAlias = tuple[Kind, bytes, float]
"""A line's kind, its case, which is free of marks and thus ASCII, and its seconds."""


@dataclass
class UsualLines:
    """Reads lines of the usual form; one is read in full where the like of it was not there before.

    Answers that are wrong have words of their own: their lines are not of the usual form.
    """

    _known: dict[tuple[bytes, bytes], Kind | None] = field(default_factory=dict)
    _last: Kind | None = None

    def read(self, line: bytes) -> Usual | None:
        """Return what a line tells, given with its end or without; None where it is none of the usual form."""
        end = line.find(b'"', len(_CASE))
        kind = self._last
        ratio = end + len(kind.before) if kind else 0
        rest = line.find(b",", ratio)
        if kind is None or not (line.startswith(kind.before, end) and line.startswith(kind.after, rest)):
            kind = self._kind(line, end)
            if kind is None:
                return None
            self._last = kind
            ratio = end + len(kind.before)
            rest = line.find(b",", ratio)
        case, share = line[len(_CASE) : end], line[ratio:rest]
        if case.translate(None, PLAIN) or (share != b"null" and not _is_ratio(share)) or not line.startswith(_CASE):
            return None
        tail = _TAIL.fullmatch(line, rest + len(kind.after))
        return None if tail is None else (kind, case, float(tail[1]))

    def _kind(self, line: bytes, end: int) -> Kind | None:
        found, digest = line.find(_RATIO, end), line.rfind(_DIGEST)
        ratio = found + len(_RATIO)
        rest = line.find(b",", ratio)
        if end < 0 or found < 0 or not ratio < rest <= digest:
            return None
        key = line[end:ratio], line[rest : digest + len(_DIGEST)]
        if key not in self._known:
            if len(self._known) >= _KINDS:
                self._known.clear()
            outcome = key[0].partition(_OUTCOME)[2][1:].partition(b'"')[0]
            if outcome not in _NAMES:
                return None
            self._known[key] = _kind_of(line, *key)
        return self._known[key]


def told_by(usual: Usual) -> tuple[str, str]:
    """Return the backend and the case that a line tells."""
    return usual[0].result.backend, usual[1].decode()


def judged_alike(result: Result, demands: Demands, suspensions: Suspensions) -> bool:
    """Whether results that differ from this one in their case alone fail alike, and are suspended alike.

    An erratum may name cases, and a profile promises operators and types.
    """
    promised = result.outcome is Outcome.UNSUPPORTED and demands.profile is not None
    return not promised and not suspensions.errata.entries


def digests_of(line: bytes) -> tuple[str, str]:
    """Return the digests of case and expectation that a line of the usual form has."""
    start = line.rfind(_DIGEST) + len(_DIGEST)
    second = start + _BETWEEN
    return line[start : start + _SIZE].decode(), line[second : second + _SIZE].decode()


def _kind_of(line: bytes, before: bytes, after: bytes) -> Kind | None:
    """Return the kind of a line if it is a sound one; what is wrong with another one, others tell."""
    try:
        result = sound(result_from_json(line))
    except (ValueError, TypeError, RecursionError):
        return None
    return Kind(result, before, after, before.index(_OUTCOME)) if before.startswith(_BACKEND) else None


def _is_ratio(text: bytes) -> bool:
    """Whether a text is a number as ratios are."""
    try:
        return not text.translate(None, _NUMBER) and float(text) >= 0
    except ValueError:
        return False


def sound(result: Result) -> Result:
    """Return the result if its values are of their kinds, which a file from elsewhere may get wrong.

    Raises ValueError if they are not.
    """
    texts = (result.case, result.backend, result.detail or "", result.reason or "", *result.clauses)
    if not all(isinstance(text, str) for text in texts) or not isinstance(result.seconds, int | float | None):
        raise ValueError("a value is of the wrong kind")
    behaviour = result.behaviour
    if not isinstance(behaviour, dict) or not all(isinstance(options, list) for options in behaviour.values()):
        raise ValueError("behaviour: expected an object of lists")
    return result
