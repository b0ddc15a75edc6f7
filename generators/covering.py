"""Covering arrays: few rows in which every combination of t levels occurs (by covertable)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import covertable

Levels: TypeAlias = Mapping[str, Sequence[str]]
Excluded: TypeAlias = Sequence[Mapping[str, Sequence[str]]]
Row: TypeAlias = dict[str, str]


def rows(levels: Levels, excluded: Excluded, strength: int | None) -> Iterator[Row]:
    """Yield rows that cover every allowed combination of `strength` parameters; all allowed rows for None.

    `excluded`: a row is left out where each parameter named has one of the levels named. The same arguments give the
    same rows in the same order.
    """
    names = list(levels)
    if strength is None or strength >= len(names):
        yield from _every(levels, excluded)
    elif strength >= 1 and names:
        found: Iterable[Any] = covertable.make(
            {name: list(values) for name, values in levels.items()},
            strength=strength,
            constraints=[_constraint(row) for row in excluded],
        )
        yield from (dict(row) for row in found)


def _every(levels: Levels, excluded: Excluded) -> Iterator[Row]:
    for values in itertools.product(*levels.values()):
        row = dict(zip(levels, values, strict=True))
        if not any(_matches(row, out) for out in excluded):
            yield row


def _matches(row: Row, excluded: Mapping[str, Sequence[str]]) -> bool:
    return all(row[name] in values for name, values in excluded.items())


def _constraint(excluded: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return an excluded combination as covertable's: at least one parameter has another level."""
    return {
        "operator": "or",
        "conditions": [
            {"operator": "not", "condition": {"operator": "in", "left": name, "values": list(values)}}
            for name, values in excluded.items()
        ],
    }
