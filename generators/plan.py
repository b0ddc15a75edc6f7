"""Which cases there are: the covering array's and the edges, as ids, in an order in which neighbours share programs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from ..cases.elements import element_type
from ..cases.errors import OpconformError
from ..cases.ids import CaseId
from ..specs.loader import Library
from ..specs.model import Edge, Spec, Value, VersionSpec
from .covering import rows
from .fills import UNDRAWN, suits
from .strategy.registry import family_of, settle
from .strategy.rows import data_port, free_letters, identify


@dataclass(frozen=True)
class Selection:
    """What to generate.

    `globs` are matched, as fnmatchcase does, against case ids and operator versions; none selects all. `strength` of
    the covering array, None for every combination. `draws` of each drawn fill; `seed` varies all of them. `standards`
    are those that a backend implements; none: all. `suite` is a list of cases by its name, in place of the plan.
    """

    globs: tuple[str, ...] = ()
    strength: int | None = 2
    draws: int = 1
    seed: int = 0
    standards: tuple[str, ...] = ()
    suite: str | None = None

    def admits(self, case: CaseId, text: str) -> bool:
        """Return whether a glob selects this case."""
        return not self.globs or any(fnmatchcase(text, g) or fnmatchcase(case.operator, g) for g in self.globs)

    def may_admit(self, operator_version: str) -> bool:
        """Return whether a glob may select a case of this operator version; cheap, and true when in doubt."""
        if self.standards and operator_version.partition("/")[0] not in self.standards:
            return False
        return not self.globs or any(_may_match(glob, operator_version) for glob in self.globs)


def strength_of(text: str) -> int | None:
    """Return a strength as a user writes it: a whole number from 1, or `full`, which is None. Raises OpconformError."""
    if text != "full" and not (text.isascii() and text.isdigit() and int(text)):
        raise OpconformError(f"strength {text}: expected a whole number from 1, or full")
    return None if text == "full" else int(text)


def _may_match(glob: str, operator_version: str) -> bool:
    wild = min((i for i, c in enumerate(glob) if c in "*?["), default=len(glob))
    literal = glob[:wild]
    return literal.startswith(f"{operator_version}/") or (
        f"{operator_version}/".startswith(literal) and (wild < len(glob) or literal == operator_version)
    )


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
        if not selection.globs or any(_may_match(g.split("-", 1)[0] + "*", operator) for g in selection.globs):
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
