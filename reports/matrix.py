"""The kill matrix: which cases tell which wrong implementation from a right one, and who is blamed without reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..generators.mutants.implementation import Implementation

Status: TypeAlias = Literal["killed", "survived", "not-applicable"]


@dataclass(frozen=True, slots=True)
class Tried:
    """A case as the matrix knows it.

    Its size in input elements, its clauses, whether its input is invalid, and the key of its program.
    """

    id: str
    elements: int
    clauses: tuple[str, ...]
    invalid: bool
    program: str

    @property
    def size(self) -> tuple[int, int, str]:
        """What makes a case small: few elements, then a short id."""
        return self.elements, len(self.id), self.id


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one operator version's cases say of implementations: by name, the cases that do not pass, with the outcome.

    `mutants` and `variants` name those that were put to it; `excused` those mutants that are right there, and why.
    """

    cases: Mapping[str, Tried]
    mutants: tuple[str, ...]
    variants: tuple[str, ...]
    failed: Mapping[str, Mapping[str, str]]
    excused: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cell:
    """One implementation on one operator version.

    `cases` is how many do not pass it, `smallest` the smallest of them, `outcome` what it gets there; `reason` says why
    a mutant does not apply.
    """

    status: Status
    cases: int = 0
    smallest: str | None = None
    outcome: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ClauseKills:
    """How many mutants the cases of one clause kill, and which of them no case of another clause alone kills."""

    clause: str
    cases: int
    killed: int
    only: tuple[str, ...]
    invalid_alone: bool


class Matrix:
    """All evidence, by operator version."""

    def __init__(
        self,
        evidence: Mapping[str, Evidence],
        mutants: Mapping[str, Implementation],
        variants: Mapping[str, Implementation],
        strength: int | None,
    ) -> None:
        self.evidence, self.mutants, self.variants, self.strength = evidence, mutants, variants, strength

    @property
    def versions(self) -> tuple[str, ...]:
        """The operator versions, in order."""
        return tuple(self.evidence)

    def cell(self, mutant: str, version: str) -> Cell:
        """Return what became of a mutant on an operator version."""
        evidence = self.evidence[version]
        if mutant not in evidence.mutants:
            return Cell("not-applicable", reason=f"needs {self.mutants[mutant].needs}")
        failed = evidence.failed.get(mutant, {})
        if not failed:
            excuse = evidence.excused.get(mutant)
            return Cell("not-applicable", reason=excuse) if excuse else Cell("survived")
        return _judged("killed", evidence, failed)

    def blamed(self, variant: str, version: str) -> Cell | None:
        """Return what a compliant variant is blamed for; None if for nothing, or where it was not tried."""
        failed = self.evidence[version].failed.get(variant, {})
        if variant not in self.evidence[version].variants or not failed:
            return None
        return _judged("survived", self.evidence[version], failed)

    def by_status(self, version: str, status: Status) -> list[str]:
        """Return the mutants with this status on an operator version."""
        return [m for m in self.mutants if self.cell(m, version).status == status]

    def survivors(self) -> list[tuple[str, str]]:
        """Return version and mutant of what no case kills."""
        return [(v, m) for v in self.versions for m in self.by_status(v, "survived")]

    def false_alarms(self) -> list[tuple[str, str, Cell]]:
        """Return version and variant of what is blamed though it is right, and where."""
        found = ((v, name, self.blamed(name, v)) for v in self.versions for name in self.variants)
        return [(v, name, cell) for v, name, cell in found if cell is not None]

    def clauses(self) -> list[ClauseKills]:
        """Return what each operator's clauses kill."""
        found: dict[str, list[tuple[str, Evidence]]] = {}
        for version, evidence in self.evidence.items():
            for clause in dict.fromkeys(c for case in evidence.cases.values() for c in case.clauses):
                found.setdefault(clause, []).append((version, evidence))
        return [_clause(clause, found[clause], self.mutants) for clause in sorted(found)]

    def to_dict(self, smoke: Sequence[str] = ()) -> dict[str, Any]:
        """Return all of it for JSON; `smoke` is the smallest set of cases that kills as many."""
        return {
            "format": 1,
            "strength": self.strength,
            "operator_versions": {v: self._version(v) for v in self.versions},
            "mutants": {name: _described(mutant) for name, mutant in self.mutants.items()},
            "variants": {name: variant.text for name, variant in self.variants.items()},
            "survivors": [{"operator_version": v, "mutant": m} for v, m in self.survivors()],
            "false_alarms": [
                {"operator_version": v, "variant": name, "cases": c.cases, "smallest": c.smallest, "outcome": c.outcome}
                for v, name, c in self.false_alarms()
            ],
            "clauses": {
                c.clause: {"cases": c.cases, "killed": c.killed, "only": list(c.only), "invalid_alone": c.invalid_alone}
                for c in self.clauses()
            },
            "smoke": list(smoke),
        }

    def _version(self, version: str) -> dict[str, Any]:
        evidence = self.evidence[version]
        cells = {name: self.cell(name, version) for name in self.mutants}
        kept = {name: {k: getattr(c, k) for k in Cell.__slots__} for name, c in cells.items()}
        return {"cases": len(evidence.cases), "mutants": kept, "variants": list(evidence.variants)}


def _judged(status: Status, evidence: Evidence, failed: Mapping[str, str]) -> Cell:
    smallest = min(failed, key=lambda case: evidence.cases[case].size)
    return Cell(status, len(failed), smallest, failed[smallest])


def _clause(clause: str, places: Iterable[tuple[str, Evidence]], mutants: Mapping[str, Implementation]) -> ClauseKills:
    cases, killed, only, invalid_alone = 0, 0, [], True
    for version, evidence in places:
        own = {case.id for case in evidence.cases.values() if clause in case.clauses}
        cases += len(own)
        invalid_alone &= all(evidence.cases[case].invalid for case in own)
        for name in mutants:
            failed = evidence.failed.get(name, {}).keys()
            killed += bool(failed & own)
            if failed and failed <= own:
                only.append(f"{version} {name}")
    return ClauseKills(clause, cases, killed, tuple(only), invalid_alone)


def _described(mutant: Implementation) -> dict[str, Any]:
    return {"kind": mutant.kind, "text": mutant.text, "needs": mutant.needs, "required": dict(mutant.required)}
