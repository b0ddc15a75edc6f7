"""What cases touch of an operator version, and what a spec declares that they will."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .groups import unwrap
from .model import AttributeSignature, Spec, Value, VersionSpec, Word


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
