"""Errata and disputed clauses: which cases are suspended from correctness, and why."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from ..cases.ids import Glob
from .model import Spec
from .reading import Document, Problems, read, read_file


@dataclass(frozen=True, slots=True)
class Erratum:
    """A decision about a disputed verdict.

    `affects` is a clause id (`onnx/ReduceMean#mean`) or a glob of case ids; `since` the suite version from which it
    holds.
    """

    id: str
    affects: str
    decision: str
    link: str
    since: str

    def covers(self, case_id: str, clauses: Iterable[str]) -> bool:
        """Whether it suspends a case that tests these clauses."""
        if "#" in self.affects:
            return any(fnmatchcase(clause, self.affects) for clause in clauses)
        return Glob(self.affects).matches(case_id)


@dataclass(frozen=True)
class Errata:
    """The errata of one file."""

    entries: tuple[Erratum, ...] = ()
    digest: str | None = None

    def affecting(self, case_id: str, clauses: Iterable[str]) -> str | None:
        """Return the id of the first erratum that suspends a case."""
        return next((e.id for e in self.entries if e.covers(case_id, clauses)), None)


@dataclass(frozen=True)
class Suspensions:
    """All that suspends cases: errata, and clauses in dispute, by id, with the address of the dispute or nothing."""

    errata: Errata = field(default_factory=Errata)
    disputed: Mapping[str, str] = field(default_factory=dict)

    def reason(self, case_id: str, clauses: Iterable[str]) -> str | None:
        """Return why a case does not count, None if it does."""
        if erratum := self.errata.affecting(case_id, clauses):
            return f"erratum {erratum}"
        for clause in clauses:
            if clause in self.disputed:
                upstream = self.disputed[clause]
                return f"clause {clause} is disputed" + (f": {upstream}" if upstream else "")
        return None


def load_errata(path: Path | str | None = None) -> Errata:
    """Read errata, by default those that come with this package.

    Raises SpecError or SpecErrors for what is wrong in the file, OpconformError if it cannot be read.
    """
    from .schema import ErrataText, parsed  # noqa: PLC0415 - pydantic, which few commands need

    document = _shipped() if path is None else read_file(path)
    text = parsed(ErrataText, document)
    problems = Problems(document)
    for index, one in enumerate(text.root):
        if "/" not in one.affects and "*" not in one.affects:
            message = "affects: expected a clause id such as onnx/ReduceMean#mean, or a GLOB"
            problems.add((index, "affects"), f"{message}; read {one.affects!r}")
        if one.id in {other.id for other in text.root[:index]}:
            problems.add((index, "id"), f"id: {one.id!r} appears twice")
    problems.raise_any()
    return Errata(tuple(Erratum(**one.model_dump()) for one in text.root), document.digest)


def disputed_clauses(specs: Iterable[Spec]) -> dict[str, str]:
    """Return the ids of all clauses in dispute, each with the address of the dispute, empty if there is none yet."""
    return {
        f"{spec.operator}#{clause.id}": clause.upstream or ""
        for spec in specs
        for version in spec.versions.values()
        for clause in version.clauses.values()
        if clause.status == "disputed"
    }


def _shipped() -> Document:
    file = importlib.resources.files(__package__ or "opconform.specs") / "errata.yaml"
    return read(file.read_text(encoding="utf-8"), "specs/errata.yaml")
