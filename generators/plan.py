"""Which cases there are: the covering array's and the edges, as ids, in an order in which neighbours share programs."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from ..cases.elements import element_type
from ..cases.errors import OpconformError
from ..cases.ids import CaseId
from ..cases.selection import Selection, matches_numbered, may_match, strength_of
from ..specs.loader import Library
from ..specs.model import Edge, Spec, Value, VersionSpec
from .covering import rows
from .fills import UNDRAWN, suits
from .strategy.registry import family_of, settle
from .strategy.rows import data_port, free_letters, identify

__all__ = ["Selection", "counted", "edge_cases", "edges", "grid", "numbered", "planned", "strength_of"]

_FIRST_DRAW = re.compile(r"(?<=[/;])draw=1(?=[;/])")


def planned(library: Library, selection: Selection) -> Iterator[str]:
    """Yield the ids of the selected cases, once each; memory does not grow with draws."""
    for _, drawn in _drawn(library, selection):
        yield from drawn.admitted(selection)


def counted(library: Library, selection: Selection) -> Counter[str]:
    """Return how many ids `planned` yields, by standard; draws are named only where a glob may tell them apart."""
    found: Counter[str] = Counter()
    for standard, drawn in _drawn(library, selection):
        found[standard] += drawn.count(selection)
    return +found


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The draws of a case: the id of the first, and what stands around the number in those of the others."""

    first: str
    before: str = ""
    after: str = ""
    draws: int = 1

    @classmethod
    def of(cls, case: CaseId, draws: int, seed: int) -> _Drawn:
        first = str(numbered(case, 0, seed))
        if draws == 1:
            return cls(first)
        second = str(numbered(case, 1, seed))
        place = _FIRST_DRAW.search(second)
        if place is None:
            raise ValueError(f"{second}: no draw in there")
        return cls(first, second[: place.end() - 1], second[place.end() :], draws)

    def admitted(self, selection: Selection) -> Iterator[str]:
        """Yield the ids that are selected; where a glob tells no draws apart, without a look at each."""
        operator = self._operator
        if selection.admits_text(operator, self.first):
            yield self.first
        alike = self._alike(selection)
        if alike is not False:
            for draw in range(1, self.draws):
                text = f"{self.before}{draw}{self.after}"
                if alike or selection.admits_text(operator, text):
                    yield text

    def count(self, selection: Selection) -> int:
        alike = self._alike(selection)
        if alike is None:
            return sum(1 for _ in self.admitted(selection))
        return int(selection.admits_text(self._operator, self.first)) + (self.draws - 1 if alike else 0)

    def _alike(self, selection: Selection) -> bool | None:
        """Return whether all draws but the first are selected, or none; None if some may be."""
        if not selection.globs or self.draws == 1:
            return True
        found = [matches_numbered(glob, self.before, self.after) for glob in selection.globs]
        if any(found) or any(fnmatchcase(self._operator, glob) for glob in selection.globs):
            return True
        return None if None in found else False

    @property
    def _operator(self) -> str:
        return "/".join(self.first.split("/", 2)[:2])


def _drawn(library: Library, selection: Selection) -> Iterator[tuple[str, _Drawn]]:
    """Yield the cases of the operator versions that the selection may admit, with their standard."""
    for spec in _specs(library, selection):
        for version in spec.versions.values():
            if selection.may_admit(str(version.operator)):
                yield from ((spec.standard, drawn) for drawn in _of_version(spec, version, selection))


def _specs(library: Library, selection: Selection) -> Iterator[Spec]:
    # one operator's versions differ in their numbers alone: try the glob on the part before
    globs = [glob.split("-", 1)[0] + "*" for glob in selection.globs]
    yield from library.usable(
        operator
        for operator in library.operators()
        if (not selection.standards or operator.partition("/")[0] in selection.standards)
        and (not globs or any(may_match(glob, operator) for glob in globs))
    )


def _of_version(spec: Spec, version: VersionSpec, selection: Selection) -> Iterator[_Drawn]:
    crossed = _in_order(set(grid(spec, version, selection.strength)))
    single = dict.fromkeys(edges(spec, version))
    for case in itertools.chain(single, crossed):
        draws = 1 if case.fill in UNDRAWN or case in single else selection.draws
        yield _Drawn.of(case, draws, selection.seed)


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
