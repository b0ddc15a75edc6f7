"""Covering arrays: a few rows that contain every wanted combination of levels.

Greedy, one row at a time, as in AETG (Cohen et al., IEEE TSE 23, 1997): a row starts with a combination that no row has
yet. Each further parameter gets the level that adds the most such combinations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

Levels: TypeAlias = Mapping[str, Sequence[str]]
Excluded: TypeAlias = Sequence[Mapping[str, Sequence[str]]]
Row: TypeAlias = dict[str, str]

_MOST_STEPS = 2_000  # a combination without a row after so many steps counts as excluded


def rows(levels: Levels, excluded: Excluded, strength: int | None, groups: Sequence[Sequence[str]] = ()) -> list[Row]:
    """Return rows that cover every allowed combination of `strength` parameters; for None, all allowed rows.

    For each of `groups`, all combinations occur. `excluded`: a row is left out if each named parameter has one of the
    named levels. The same arguments give the same rows in the same order.
    """
    if strength is None or strength >= len(levels):
        return list(every(levels, excluded))
    names = [*itertools.combinations(levels, max(strength, 0))]
    names += [tuple(name for name in levels if name in group) for group in groups]
    return _Array(levels, excluded, names).rows()


def every(levels: Levels, excluded: Excluded) -> Iterator[Row]:
    """Yield all rows that are not excluded."""
    for values in itertools.product(*levels.values()):
        row = dict(zip(levels, values, strict=True))
        if not is_excluded(row, excluded):
            yield row


def is_excluded(row: Row, excluded: Excluded) -> bool:
    """Return whether each parameter that one of the exclusions names has one of its levels."""
    return any(all(row.get(name) in banned for name, banned in out.items()) for out in excluded)


def least(levels: Levels, strength: int | None) -> int:
    """Return a lower bound on the number of rows, exclusions apart: the most combinations of one set of parameters."""
    sizes = sorted((len(some) for some in levels.values()), reverse=True)
    return math.prod(sizes if strength is None else sizes[:strength])


def combinations(levels: Levels, strength: int) -> int:
    """Return the number of combinations of `strength` parameters, a measure of the work."""
    sums = [1] + [0] * strength  # elementary symmetric polynomials of the numbers of levels
    for some in levels.values():
        for k in range(strength, 0, -1):
            sums[k] += sums[k - 1] * len(some)
    return sums[strength]


class _Array:
    """A covering array under construction; parameters and levels are numbers."""

    def __init__(self, levels: Levels, excluded: Excluded, names: Sequence[Sequence[str]]) -> None:
        self._names, self._levels = list(levels), [list(some) for some in levels.values()]
        position = {name: i for i, name in enumerate(self._names)}
        number = [{level: k for k, level in enumerate(some)} for some in self._levels]

        def numbered(name: str, some: Sequence[str]) -> tuple[int, frozenset[int]]:
            at = position[name]
            return at, frozenset(number[at][level] for level in some if level in number[at])

        known = (out for out in excluded if out.keys() <= position.keys())
        self._banned = [[numbered(name, some) for name, some in out.items()] for out in known]
        self._touching: list[list[int]] = [[] for _ in self._names]
        for i, out in enumerate(self._banned):
            for at, _ in out:
                self._touching[at].append(i)
        self._wanted: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for group in dict.fromkeys(tuple(position[name] for name in some) for some in names):
            if group:
                self._wanted[group] = set(itertools.product(*(range(len(self._levels[at])) for at in group)))
        self._groups = [[g for g in self._wanted if at in g] for at in range(len(self._names))]
        self._used = [[0] * len(some) for some in self._levels]
        self._steps = 0

    def rows(self) -> list[Row]:
        rows = []
        for group in list(self._wanted):
            for seed in sorted(self._wanted[group]):
                if seed not in self._wanted[group]:
                    continue
                row = self._row(dict(zip(group, seed, strict=True)))
                if row is None:
                    self._wanted[group].discard(seed)
                    continue
                rows.append(row)
        if not rows and all(self._levels):
            plain = self._row({})
            rows = [plain] if plain is not None else []
        return [{name: self._levels[at][row[at]] for at, name in enumerate(self._names)} for row in rows]

    def _row(self, seed: dict[int, int]) -> dict[int, int] | None:
        """Return a row with the levels of `seed`, and count what it covers; None if no such row is allowed."""
        if any(self._breaks(seed, at) for at in seed):
            return None
        self._steps = 0
        row = dict(seed)
        if not self._completed(row, [at for at in range(len(self._names)) if at not in seed]):
            return None
        for group, wanted in self._wanted.items():
            wanted.discard(tuple(row[at] for at in group))
        for at, level in row.items():
            self._used[at][level] += 1
        return row

    def _completed(self, row: dict[int, int], free: list[int]) -> bool:
        """Assign levels to the free parameters, the most useful first; backtrack if exclusions leave no level."""
        if not free:
            return True
        at, *rest = free
        self._steps += 1
        gains = [(-self._gain(row, at, k), self._used[at][k], k) for k in range(len(self._levels[at]))]
        for _, _, level in sorted(gains):
            row[at] = level
            if not self._breaks(row, at) and self._completed(row, rest):
                return True
            if self._steps > _MOST_STEPS:
                break
        row.pop(at, None)
        return False

    def _gain(self, row: dict[int, int], at: int, level: int) -> int:
        gain = 0
        for group in self._groups[at]:
            if all(other in row or other == at for other in group):
                gain += tuple(level if other == at else row[other] for other in group) in self._wanted[group]
        return gain

    def _breaks(self, row: dict[int, int], at: int) -> bool:
        return any(
            all(other in row and row[other] in banned for other, banned in self._banned[i]) for i in self._touching[at]
        )
