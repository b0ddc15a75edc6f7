"""The cases of edges: those that a spec names because they must not be missed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..cases.ids import CaseId
from ..specs.model import Edge, Spec, VersionSpec
from .choices import Choice, type_choices, typical_types
from .parameters import free_letters
from .rows import identify


def edges(spec: Spec, version: VersionSpec) -> Iterator[CaseId]:
    """Yield the edges' cases: one for each type that an edge names; else one, or a few for an edge about values."""
    for edge in version.edges.values():
        yield from _edge_cases(spec, version, edge, _planned_types(version, edge))


def edge_cases(spec: Spec, version: VersionSpec, edge: Edge, only: tuple[str, ...] | None = None) -> Iterator[CaseId]:
    """Yield all cases of an edge: letters that it does not name take each of their types.

    `only` limits the cases to some types.
    """
    letters = free_letters(version)
    every = itertools.product(*(_named(edge, letter) or version.signature.types[letter] for letter in letters))
    some = (dict(zip(letters, types, strict=True)) for types in every if only is None or only == types)
    yield from _edge_cases(spec, version, edge, some)


def _planned_types(version: VersionSpec, edge: Edge) -> Iterator[Choice]:
    """Yield the types for which an edge is planned.

    A letter that it does not name takes its usual type. If the edge has a fill of its own, it is about values, and the
    letter takes one type of each arithmetic.
    """
    letters = free_letters(version)
    named = {letter: types for letter in letters if (types := _named(edge, letter))}
    about_values = "fill" in edge.settings and not edge.rejected
    free = {x: version.signature.types[x] for x in letters if x not in named}
    choices = list(type_choices(version, {x: typical_types(types) for x, types in free.items()}))
    for others in choices if about_values else choices[:1]:
        for types in itertools.product(*named.values()):
            yield {**others, **dict(zip(named, types, strict=True))}


def _edge_cases(spec: Spec, version: VersionSpec, edge: Edge, choices: Iterable[Choice]) -> Iterator[CaseId]:
    """Yield an edge's cases for some types; an edge about the types of a port has its first types alone."""
    if any(name.startswith("type(") for name in edge.settings):
        allowed = version.signature.types
        choices = [{letter: (_named(edge, letter) or allowed[letter])[0] for letter in free_letters(version)}]
    for types in choices:
        yield replace(identify(spec, version, {**version.settings_of(edge), **types}), edge=edge.id)


def _named(edge: Edge, letter: str) -> tuple[str, ...]:
    """Return the types that an edge names for a letter; empty if it names none."""
    value = edge.settings.get(letter, ())
    return tuple(str(v) for v in value) if isinstance(value, tuple) else (str(value),)
