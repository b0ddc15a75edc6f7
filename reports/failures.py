"""The first failures of a run, one for many that seem to have one cause, so that none hides the others."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from ..cases.results import Outcome, Result
from ..runners.demands import Demands
from ..specs.globs import operator_version_of, split_version
from .figures import group_of


@dataclass(frozen=True)
class Alike:
    """Failures of one backend that seem to have one cause: operator, outcome, and how it showed are the same.

    Errors, crashes and timeouts are alike if their messages are, but for numbers; wrong values if they are of one type,
    break one clause, and a NaN, an infinity, a zero or another number stands in place of such a one; other failures if
    they break one clause. `first` is the one that came first, `count` how many there are, `operator_versions` those
    that fail so.
    """

    first: Result
    count: int
    operator_versions: tuple[str, ...]


_Kind: TypeAlias = tuple[str, ...]
_KINDS = 200


class Failures:
    """Collects failures as they arrive; memory grows with their kinds, of which there are few.

    Where a backend's messages differ every time, those beyond the first `_KINDS` of an operator and outcome are one.
    """

    def __init__(self, demands: Demands | None = None) -> None:
        self.demands = demands or Demands()
        self._first: dict[_Kind, Result] = {}
        self._counts: dict[_Kind, Counter[str]] = {}  # by operator version
        self._widths: Counter[_Kind] = Counter()  # kinds by backend, operator and outcome

    def add(self, result: Result, suspended: str | None = None) -> None:
        """Take in a result if it fails, or our side failed."""
        if result.outcome is Outcome.RUNNER_ERROR or self.demands.fails(result, suspended=suspended is not None):
            kind = self._known(kind_of(result))
            self._first.setdefault(kind, result)
            self._counts.setdefault(kind, Counter())[operator_version_of(result.case)] += 1

    def _known(self, kind: _Kind) -> _Kind:
        """Return the kind, or that of all others where its backend, operator and outcome have too many."""
        if kind in self._first or self._widths[kind[:3]] < _KINDS:
            self._widths[kind[:3]] += kind not in self._first
            return kind
        return kind[:3]

    @property
    def count(self) -> int:
        """How many failures there are."""
        return sum(counts.total() for counts in self._counts.values())

    @property
    def kinds(self) -> int:
        """How many kinds of failures there are."""
        return len(self._counts)

    def first(self, limit: int) -> list[Alike]:
        """Return at most `limit` kinds, of as many backends, operators and outcomes as possible, as they came."""
        chosen = set(islice(self._in_turn(), limit))
        return [
            Alike(first, self._counts[kind].total(), tuple(self._counts[kind]))
            for kind, first in self._first.items()
            if kind in chosen
        ]

    def _in_turn(self) -> Iterator[_Kind]:
        """Yield the first kind of each backend, operator and outcome, then the second ones, and so on."""
        queues: dict[_Kind, list[_Kind]] = {}
        for kind in self._first:
            queues.setdefault(kind[:3], []).append(kind)
        for turn in range(max(map(len, queues.values()), default=0)):
            yield from (queue[turn] for queue in queues.values() if turn < len(queue))


def kind_of(result: Result) -> tuple[str, ...]:
    """Return what failures that seem to have one cause have in common; it begins with backend, operator, outcome."""
    _, operator_version, types = group_of(result)
    operator = split_version(operator_version)[0]
    clause = result.clauses[0] if result.clauses else ""
    detail = (result.detail or "")[:_READ]
    if result.outcome is Outcome.WRONG_VALUE:
        told = _MISMATCH.search(detail)
        shown: tuple[str, ...] = (types, clause, *(map(_sort_of, told.groups()) if told else ()))
    elif result.outcome in (Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.ACCEPTED_INVALID):
        shown = (clause,)
    else:
        shown = (_without_numbers(detail),)
    return (result.backend, operator, str(result.outcome), *shown)


_READ = 2_000  # characters of a message that tell its kind
_MISMATCH = re.compile(r"got (\S+?),? want (\S+)")
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE)
_REPEATED = re.compile(r"([^,;()\[\]]+)(?:,\s*\1)+,?")  # as in a list of shapes or types, of any length
_MESSAGE = 300


@functools.lru_cache(maxsize=1024)  # the draws of a case often fail with the same words
def _without_numbers(message: str) -> str:
    """Return a message that is the same for other shapes, addresses and numbers of inputs."""
    bare = _NUMBER.sub("#", " ".join(message.split()))
    return _REPEATED.sub(r"\1", bare).replace("(#,)", "(#)").replace("()", "(#)")[:_MESSAGE]


def _sort_of(number: str) -> str:
    """Return `nan`, `inf`, `zero` or `number`, for what a mismatch shows."""
    bare = number.strip("-+,").lower()
    if bare in ("nan", "inf"):
        return bare
    return "number" if bare.strip("0.") else "zero"
