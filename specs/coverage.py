"""How much of a standard has cases: counts of operator versions, types, attributes and clauses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from .exercise import Exercise
from .model import Spec, VersionSpec


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of `total` things have a case."""

    covered: int = 0
    total: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.covered + other.covered, self.total + other.total)


@dataclass(frozen=True, slots=True)
class Coverages:
    """Four ways to count: operator versions; (version, letter, type); (version, attribute); (version, clause)."""

    operator_versions: Coverage = Coverage()
    type_triples: Coverage = Coverage()
    attributes: Coverage = Coverage()
    clauses: Coverage = Coverage()

    def __add__(self, other: Coverages) -> Coverages:
        return Coverages(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Extent:
    """What there is to cover of an operator version: pairs of a type letter and a type, and names of attributes."""

    types: frozenset[tuple[str, str]] = frozenset()
    attributes: frozenset[str] = frozenset()


def coverages(extents: Mapping[str, Extent], specs: Iterable[Spec], touched: Mapping[str, Exercise]) -> Coverages:
    """Count what cases touch of the operator versions of `extents`, and of the clauses of `specs`."""
    versions, types, attributes, clauses = Coverage(), Coverage(), Coverage(), Coverage()
    for operator, extent in extents.items():
        did = touched.get(operator, Exercise())
        versions += Coverage(int(operator in touched), 1)
        types += Coverage(len(extent.types & did.types), len(extent.types))
        attributes += Coverage(len(extent.attributes & did.attributes), len(extent.attributes))
    for spec in specs:
        for one in spec.versions.values():
            ids = _judged_clauses(one)
            clauses += Coverage(len(ids & touched.get(str(one.operator), Exercise()).clauses), len(ids))
    return Coverages(versions, types, attributes, clauses)


def gaps(spec: Spec, touched: Mapping[str, Exercise]) -> Iterator[str]:
    """Yield what a spec describes and no case exercises."""
    for one in spec.versions.values():
        name = str(one.operator)
        did = touched.get(name, Exercise())
        for letter, allowed in one.signature.types.items():
            yield from (f"{name}: no case with {letter} = {t}" for t in allowed if (letter, t) not in did.types)
        for attribute in one.signature.attributes:
            if attribute.name not in did.attributes:
                yield f"{name}: no case sets {attribute.name} to other than its default"
        for id_ in sorted(_judged_clauses(one) - did.clauses):
            yield f"{name}: no case tests clause {id_}"


def _judged_clauses(one: VersionSpec) -> set[str]:
    return {id_ for id_, clause in one.clauses.items() if clause.status != "withdrawn"}
