"""Covering arrays: few rows in which every combination of t levels occurs (by covertable)."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import itertools
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Levels: TypeAlias = Mapping[str, Sequence[str]]
Excluded: TypeAlias = Sequence[Mapping[str, Sequence[str]]]
Row: TypeAlias = dict[str, str]


def rows(levels: Levels, excluded: Excluded, strength: int | None) -> Iterator[Row]:
    """Yield rows that cover every allowed combination of `strength` parameters; all allowed rows for None.

    `excluded`: a row is left out where each parameter named has one of the levels named. The same arguments give the
    same rows in the same order.
    """
    if strength is None or strength >= len(levels):
        yield from _every(levels, excluded)
    elif strength >= 1 and levels:
        yield from _cached(levels, excluded, strength)


def _every(levels: Levels, excluded: Excluded) -> Iterator[Row]:
    for values in itertools.product(*levels.values()):
        row = dict(zip(levels, values, strict=True))
        if not any(all(row[name] in banned for name, banned in out.items()) for out in excluded):
            yield row


def _cached(levels: Levels, excluded: Excluded, strength: int) -> list[Row]:
    """Return the rows of an earlier run with the same arguments, if they are kept: they cost seconds to find."""
    question = json.dumps([list(levels.items()), [dict(e) for e in excluded], strength], default=list)
    content = f"{importlib.metadata.version('covertable')} {question}"
    file = _folder() / f"{hashlib.sha256(content.encode()).hexdigest()}.json"
    with contextlib.suppress(OSError, ValueError):
        known: Any = json.loads(file.read_text())
        if isinstance(known, list) and all(isinstance(row, dict) and row.keys() == levels.keys() for row in known):
            return known
    found = _covered(levels, excluded, strength)
    with contextlib.suppress(OSError):  # a cache that can't be written costs time alone
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as partial:
            json.dump(found, partial)
        Path(partial.name).replace(file)  # whole, or not at all
    return found


def _folder() -> Path:
    """Return where rows are kept, as the XDG base directory specification has it."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "opconform" / "rows"


def _covered(levels: Levels, excluded: Excluded, strength: int) -> list[Row]:
    import covertable  # noqa: PLC0415 - only where the rows are not kept

    found = covertable.make(
        {name: list(values) for name, values in levels.items()},
        strength=strength,
        constraints=[_constraint(row) for row in excluded],
    )
    return [{name: row[name] for name in levels} for row in found]


def _constraint(excluded: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return an excluded combination as covertable's: at least one parameter has another level."""
    return {
        "operator": "or",
        "conditions": [
            {"operator": "not", "condition": {"operator": "in", "left": name, "values": list(values)}}
            for name, values in excluded.items()
        ],
    }
