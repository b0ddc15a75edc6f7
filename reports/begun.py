"""A run that has begun, as its `run.json` tells: what it was, what makes two runs different ones, what it has."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cases.errors import OpconformError
from ..runners.running import About
from .reading import RESULTS, RUN, Kept, KeptResults
from .tables import Tables

UNKNOWN = "unknown"
"""The version of a backend that has not told it yet."""

_DECIDING: Mapping[str, tuple[str, ...]] = {
    "suite version": ("suite", "version"),
    "suite digest": ("suite", "digest"),
    "suite": ("suite", "name"),
    "selection": ("selection",),
    "strength": ("strength",),
    "draws": ("draws",),
    "seed": ("seed",),
    "shard": ("shard",),
    "required": ("required",),
    "profile digest": ("profile", "digest"),
    "arithmetic digest": ("arithmetic", "digest"),
    "waivers digest": ("waivers", "digest"),
    "errata digest": ("errata", "digest"),
    "disputed": ("disputed",),
    "corpus digest": ("corpus", "digest"),
    "keep_outputs": ("keep_outputs",),
}
"""What of `run.json` makes a run the one that it is, beside its backends."""


@dataclass(frozen=True)
class Begun:
    """A run that has begun, by its folder and its `run.json`."""

    folder: Path
    told: Mapping[str, Any]

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.told.get("status") == "finished"

    @property
    def command(self) -> list[str]:
        """The command line that began it."""
        return [str(word) for word in self.told.get("command", [])]

    @property
    def started(self) -> dt.datetime:
        """When it began. Raises OpconformError if `run.json` does not tell."""
        try:
            return dt.datetime.fromisoformat(self.told["started"])
        except (KeyError, TypeError, ValueError) as error:
            raise OpconformError(f"{self.folder / RUN}: started: expected a moment: {error!r}") from None

    @property
    def deaths(self) -> list[dict[str, Any]]:
        """The ends of workers that no case explains, as they are known so far."""
        return [told for told in self.told.get("deaths", []) if isinstance(told, dict)]

    @property
    def more_deaths(self) -> int:
        """How many there were beside those."""
        found = self.told.get("more_deaths", 0)
        return found if isinstance(found, int) else 0

    def about(self, backend: str) -> About:
        """Return what `run.json` has of a backend."""
        told = _at(self.told, ("backends", backend))
        found = told if isinstance(told, dict) else {}
        return About(str(found.get("version", UNKNOWN)), (), found.get("facts") or {})


def compared(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[object, object]]:
    """Return what makes two runs different ones, their backends apart: by name, both values."""
    new = json.loads(json.dumps(new))  # as it would be read back
    values = {name: (_at(old, path), _at(new, path)) for name, path in _DECIDING.items()}
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}


def _at(told: Mapping[str, Any], path: tuple[str, ...]) -> object:
    found: Any = told
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def take_kept(folder: Path, tables: Tables, seen: Callable[[Kept], None] | None = None) -> KeptResults:
    """Count all results of a folder, and return the walk over them. Raises OpconformError for what is wrong there.

    `seen` is told each of them.
    """
    kept = KeptResults(folder)
    try:
        for one in kept:
            tables.take_kept(one)
            if seen is not None:
                seen(one)
    except (ValueError, KeyError, TypeError) as error:
        raise OpconformError(f"{folder / RESULTS}: cannot be counted: {error!r}") from None
    return kept
