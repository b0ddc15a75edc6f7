"""Specs against the standards' own schemas and libraries: what differs, and how much of the standards specs cover."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from ...cases.errors import OpconformError, did_you_mean
from ..loader import Library
from ..reading import SpecError
from .findings import Authority, Coverage, Coverages, Exercise, Findings, coverages, gaps
from .library import LibraryReading, library_authority
from .onnx import onnx_authority

__all__ = ["AUDITED", "Audit", "Coverage", "Coverages", "Exercise", "audit", "check_standard"]

AUDITED = ("onnx", "openvino", "onednn")
"""The standards that can be audited; all but ONNX against what their library tells."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The result: what was found, coverage by domain, and what has no case.

    `gaps` names what the specs describe and no case exercises. `authority` is what the specs were held against.
    """

    authority: Authority
    findings: Findings
    domains: Mapping[str, Coverages]
    gaps: tuple[str, ...]

    @property
    def standard(self) -> str:
        """The standard."""
        return self.authority.standard

    @property
    def differences(self) -> tuple[SpecError, ...]:
        """Where a spec differs from the standard."""
        return self.findings.differences

    @property
    def disputed(self) -> tuple[SpecError, ...]:
        """Where a spec differs from the library, and a disputed clause says so."""
        return self.findings.disputed

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What of the specs cannot be checked."""
        return self.findings.unchecked

    @property
    def coverages(self) -> Coverages:
        """Coverage of all domains together."""
        return sum(self.domains.values(), Coverages())

    def to_json(self) -> str:
        """Return the audit as JSON: the four counts together and by domain, the differences, and versions."""
        whole: dict[str, Any] = {"standard": self.standard, **asdict(self.coverages)}
        whole["domains"] = {domain: asdict(counted) for domain, counted in self.domains.items()}
        whole["differences"] = [_difference_json(error) for error in self.differences]
        whole["unchecked"], whole["gaps"] = list(self.unchecked), list(self.gaps)
        whole[self.standard] = self.authority.version
        if self.standard != "onnx":
            whole["disputed"] = [_difference_json(error) for error in self.disputed]
            whole["beyond"], whole["failures"] = list(self.findings.beyond), list(self.findings.failures)
            whole["untold"], whole["uncounted"] = list(self.authority.untold), list(self.authority.uncounted)
        return json.dumps(whole, indent=2)


def check_standard(standard: str) -> None:
    """Raise OpconformError for a standard that cannot be audited."""
    if standard not in AUDITED:
        hint = did_you_mean(standard, AUDITED) or f"; known: {', '.join(AUDITED)}"
        raise OpconformError(f"there is no schema to audit {standard!r} against{hint}")


def audit(
    library: Library,
    standard: str = "onnx",
    touched: Mapping[str, Exercise] = MappingProxyType({}),
    reading: LibraryReading | None = None,
) -> Audit:
    """Hold all specs of a standard against its schemas or library, and count what they cover.

    `touched` says by operator version (`onnx/ReduceMean-13`) what the generated cases touch. `reading` is what the
    library told, for all standards but ONNX. Totals are those of the schemas or the library, over all operators, those
    without a spec too; clauses are those of the specs. Raises OpconformError for a standard that cannot be audited,
    SpecErrors for a broken spec.
    """
    check_standard(standard)
    specs = [library.spec(name) for name in library.operators() if name.startswith(f"{standard}/")]
    authority = onnx_authority() if reading is None else library_authority(reading)
    if authority.standard != standard:
        raise OpconformError(f"{standard} is audited against what its library tells")
    found = sum((authority.compare(spec) for spec in specs), Findings())
    counted = {
        group: coverages(extents, [s for s in specs if authority.group_of(s) == group], touched)
        for group, extents in authority.extents.items()
    }
    return Audit(authority, found, counted, tuple(gap for spec in specs for gap in gaps(spec, touched)))


def _difference_json(error: SpecError) -> dict[str, Any]:
    place = error.position
    return {"file": error.file, "line": place.line, "column": place.column, "message": error.message}
