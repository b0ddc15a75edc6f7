"""The first failures of a run, one for many that are alike, so that none hides the others."""

from __future__ import annotations

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
    """Failures of one backend that have operator, types, fill or edge, and outcome in common.

    `first` is the one that came first, `count` how many there are, `operator_versions` those that fail so.
    """

    first: Result
    count: int
    operator_versions: tuple[str, ...]


_Kind: TypeAlias = tuple[str, ...]


class Failures:
    """Collects failures as they arrive; memory grows with their kinds."""

    def __init__(self, demands: Demands | None = None) -> None:
        self.demands = demands or Demands()
        self._first: dict[_Kind, Result] = {}
        self._counts: dict[_Kind, Counter[str]] = {}  # by operator version

    def add(self, result: Result, suspended: str | None = None) -> None:
        """Take in a result, if it is a failure or our side failed."""
        if result.outcome is Outcome.RUNNER_ERROR or self.demands.fails(result, suspended=suspended is not None):
            kind = _kind(result)
            self._first.setdefault(kind, result)
            self._counts.setdefault(kind, Counter())[operator_version_of(result.case)] += 1

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


def _kind(result: Result) -> _Kind:
    backend, operator_version, types = group_of(result)
    operator = split_version(operator_version)[0]
    fill_and_edge = result.case.split("/")[5:]
    return (backend, operator, str(result.outcome), types, *fill_and_edge)
