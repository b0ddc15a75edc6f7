"""What the suite knows of the operator versions that a site is about."""

from __future__ import annotations

from dataclasses import dataclass

from ...cases.errors import OpconformError
from ...generators.comparing.situations import Side, side
from ...generators.source import GeneratedCases
from ...specs.loader import Library


@dataclass(frozen=True)
class Knowledge:
    """The suite's cases and spec files."""

    source: GeneratedCases

    @property
    def library(self) -> Library:
        """The spec files."""
        return self.source.library

    def side(self, operator_version: str) -> Side | None:
        """Return what the suite knows of an operator version; None if it has no spec file of it."""
        try:
            return side(self.source, operator_version)
        except OpconformError:
            return None

    def versions(self, of: Side) -> list[Side]:
        """Return all versions of an operator, the first one first."""
        return [side(self.source, str(version.operator)) for version in of.spec.versions.values()]
