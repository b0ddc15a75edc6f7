"""Which cases there are: the covering array's and the edges, as ids, in an order in which neighbours share programs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from ..cases.elements import element_type
from ..cases.errors import OpconformError
from ..cases.ids import CaseId
from ..cases.selection import Selection, may_match, strength_of
from ..specs.loader import Library
from ..specs.model import Edge, Spec, Value, VersionSpec
from .covering import rows
from .fills import UNDRAWN, suits
from .strategy.registry import family_of, settle
from .strategy.rows import data_port, free_letters, identify

__all__ = ["Selection", "edge_cases", "edges", "grid", "numbered", "planned", "strength_of"]


def planned(library: Library, selection: Selection) -> Iterator[str]:
    """Yield the ids of the selected cases, once each; memory does not grow with draws."""
    for spec in _specs(library, selection):
        for version in spec.versions.values():
            if selection.may_admit(str(version.operator)):
                yield from _of_version(spec, version, selection)


def _specs(library: Library, selection: Selection) -> Iterator[Spec]:
    for operator in library.operators():
        if selection.standards and operator.partition("/")[0] not in selection.standards:
            continue
        # one operator's versions differ in their numbers alone: try the glob on the part before
        if not selection.globs or any(may_match(g.split("-", 1)[0] + "*", operator) for g in selection.globs):
            yield library.spec(operator)


def _of_version(spec: Spec, version: VersionSpec, selection: Selection) -> Iterator[str]:
    crossed = _in_order(set(grid(spec, version, selection.strength)))
    single = dict.fromkeys(edges(spec, version))
    for case in itertools.chain(single, crossed):
        draws = 1 if case.fill in UNDRAWN or case in single else selection.draws
        for draw in range(draws):
            one = numbered(case, draw, selection.seed)
            text = str(one)
            if selection.admits(one, text):
                yield text


def _in_order(cases: set[CaseId]) -> list[CaseId]:
    return sorted(cases, key=lambda c: (c.types, c.settings, [len(s) for s in c.shapes], c.shapes, c.fill))


def numbered(case: CaseId, draw: int, seed: int) -> CaseId:
    """Return the id with its draw and seed; zeros, and those of fills that draw nothing, stay out."""
    numbers = {"draw": draw, "seed": 0 if case.fill in UNDRAWN else seed}
    more = [(name, str(number)) for name, number in numbers.items() if number]
    return replace(case, settings=tuple(sorted([*case.settings, *more]))) if more else case


def grid(spec: Spec, version: VersionSpec, strength: int | None) -> Iterator[CaseId]:
    """Yield the covering array's cases; different rows may be one case."""
    family = family_of(spec)
    levels = {name: list(values) for name, values in version.parameters.items()}
    for row in rows(levels, version.exclude, strength):
        values = {name: version.parameters[name][level] for name, level in row.items()}
        case = settle(spec, version, identify(spec, version, values, family.own))
        _check_fill(spec, version, case)
        yield case


def edges(spec: Spec, version: VersionSpec) -> Iterator[CaseId]:
    """Yield the edges' cases, one for each type that an edge is for."""
    for edge in version.edges.values():
        yield from edge_cases(spec, version, edge)


def edge_cases(spec: Spec, version: VersionSpec, edge: Edge) -> Iterator[CaseId]:
    """Yield one edge's cases: letters that it does not name stand for each of their types."""
    family = family_of(spec)
    named = any(name.startswith("type(") for name in edge.settings)
    choices = [
        _types(edge.settings[letter])
        if letter in edge.settings
        else version.signature.types[letter][: 1 if named else None]
        for letter in free_letters(version)
    ]
    for types in itertools.product(*choices):
        levels = {**edge.settings, **dict(zip(free_letters(version), types, strict=True))}
        case = settle(spec, version, identify(spec, version, levels, family.own))
        yield replace(case, edge=edge.id)


def _types(value: Value) -> tuple[str, ...]:
    return tuple(str(v) for v in value) if isinstance(value, tuple) else (str(value),)


def _check_fill(spec: Spec, version: VersionSpec, case: CaseId) -> None:
    letters, filled = free_letters(version), version.signature.letter(data_port(version).name)
    for letter, name in zip(letters, case.types, strict=False):
        if letter == filled and not suits(case.fill, element_type(name)):
            raise OpconformError(
                f"{spec.file}: {version.operator}: fill {case.fill!r} makes no sense for {name}; exclude the pair"
            )
