"""How much of a standard has cases, and what cases touch of an operator version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from ..groups import unwrap
from ..model import AttributeSignature, Spec, Value, VersionSpec, Word


@dataclass(frozen=True, slots=True)
class Exercise:
    """What the cases of an operator version touch.

    `types`: pairs of a type letter and a type; `attributes`: names given a value other than the default; `clauses`:
    ids without the operator.
    """

    types: frozenset[tuple[str, str]] = frozenset()
    attributes: frozenset[str] = frozenset()
    clauses: frozenset[str] = frozenset()


def declared_exercise(specs: Iterable[Spec]) -> dict[str, Exercise]:
    """Return what specs declare, by operator version: the levels of their parameters, and their valid edges.

    A version without parameters and edges has no entry.
    """
    versions = [one for spec in specs for one in spec.versions.values()]
    return {str(one.operator): _declared(one) for one in versions if one.parameters or one.edges}


def _declared(one: VersionSpec) -> Exercise:
    edges = [edge for edge in one.edges.values() if not edge.rejected]
    settings = [(name, value) for name, levels in one.parameters.items() for value in levels.values()]
    settings += [(name, value) for edge in edges for name, value in edge.settings.items()]
    types = {(letter, t) for letter in one.signature.types for t in _declared_types(letter, one, settings)}
    attributes = {name for name, value in _flat(settings) if _is_exercised(one.signature.attribute(name), value)}
    tested = {id_ for edge in one.edges.values() for id_ in edge.tests}
    clauses = {
        id_
        for id_, clause in one.clauses.items()
        if id_ in tested or (clause.when is not None and one.parameters and _is_reached(one, clause.when))
    }
    return Exercise(frozenset(types), frozenset(attributes), frozenset(clauses))


def _declared_types(letter: str, one: VersionSpec, settings: Iterable[tuple[str, Value]]) -> set[str]:
    allowed = one.signature.types[letter]
    wrap, base = unwrap(one.signature.ties.get(letter, "")) or ("", letter)
    values = [value for name, value in settings if name in (letter, base)]
    named = {t for value in values for t in (value if isinstance(value, tuple) else (value,)) if isinstance(t, str)}
    return {t for t in allowed if t in named or (wrap and t[len(wrap) + 1 : -1] in named)}


def _flat(settings: Iterable[tuple[str, Value]]) -> Iterator[tuple[str, Value]]:
    """Yield settings, those inside bundles too."""
    for name, value in settings:
        yield name, value
        if isinstance(value, Mapping):
            yield from value.items()


def _is_exercised(attribute: AttributeSignature | None, value: Value) -> bool:
    if attribute is None or value is Word.ABSENT or isinstance(value, Mapping):
        return False
    return attribute.default is None or value != attribute.default


def _is_reached(one: VersionSpec, when: Mapping[str, object]) -> bool:
    """Whether a version has all that a clause's condition is about; whether a case meets it only cases tell."""
    return all(name in one.parameters or name in one.signature.types for name in when)


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
