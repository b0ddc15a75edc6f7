"""Reasons why mutants survive and triggers stay hidden, read from a file if no computation finds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from ..cases.errors import OpconformError
from ..specs.reading import read_file
from .matrix import NO_CASE, Fate, Matrix, VersionMatrix

FILE = Path(__file__).parents[1] / "specs" / "survivors.yaml"
TOOL_REASONS = FILE.with_name("tool-survivors.yaml")
"""Of wrong inferencers, checkers and converters."""


@dataclass(frozen=True)
class Reasons:
    """Reasons by globs of operator versions, and then of names of mutants and triggers; the first match counts."""

    written: Mapping[str, Mapping[str, str]]

    def of(self, version: str, name: str) -> str:
        """Return why a mutant survives, or a trigger stays hidden; empty if the file has no reason."""
        match = self._match(version, name)
        return match[2] if match else ""

    def explained(self, matrix: Matrix) -> Matrix:
        """Return the matrix with reasons for what is unseen, unmet or without a case."""
        return Matrix({version: self._explained(tested) for version, tested in matrix.tested.items()})

    def missing(self, matrix: Matrix) -> list[str]:
        """Return what has no reason, as `onnx/Add-14: name`."""
        return [f"{v}: {name}" for v, tested in matrix.tested.items() for name in _left(tested) if not self.of(v, name)]

    def idle(self, matrix: Matrix) -> list[str]:
        """Return the unused reasons: for mutants that are killed by now, for triggers that are exposed."""
        names = ((version, name) for version, tested in matrix.tested.items() for name in _left(tested))
        used = {match[:2] for version, name in names if (match := self._match(version, name))}
        return [
            f"{globs}: {glob}" for globs, some in self.written.items() for glob in some if (globs, glob) not in used
        ]

    def _explained(self, tested: VersionMatrix) -> VersionMatrix:
        def explained_fate(fate: Fate) -> Fate:
            return fate if fate.status == "admitted" else replace(fate, why=self.of(tested.version, fate.name))

        hidden = {level: self._of_level(tested.version, level, why) for level, why in tested.hidden.items()}
        return replace(tested, survivors=tuple(map(explained_fate, tested.survivors)), hidden=hidden)

    def _of_level(self, version: str, level: str, why: str) -> str:
        reason = self.of(version, level) if why == NO_CASE else ""
        return f"{why}: {reason}" if reason else why

    def _match(self, version: str, name: str) -> tuple[str, str, str] | None:
        """Return the globs of the first reason that fits, and the reason."""
        for globs, some in self.written.items():
            if any(fnmatchcase(version, glob) for glob in globs.split()):
                for glob, why in some.items():
                    if fnmatchcase(name, glob):
                        return globs, glob, why
        return None


def _left(tested: VersionMatrix) -> Iterator[str]:
    """Yield what needs a reason."""
    yield from (fate.name for fate in tested.survivors if fate.status != "admitted")
    yield from (level for level, why in tested.hidden.items() if why == NO_CASE)


def read_reasons(file: Path = FILE) -> Reasons:
    """Read a file of reasons. Raises OpconformError if it is invalid."""
    value = read_file(file).value
    lines = isinstance(value, dict) and all(isinstance(some, dict) for some in value.values())
    if not lines or not all(isinstance(why, str) for some in value.values() for why in some.values()):
        raise OpconformError(f"{file}: expected operator versions, each with names and reasons")
    return Reasons(value)
