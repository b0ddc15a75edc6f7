"""Which cases there are: programs from covering arrays, many fills for each, and every edge; as ids, by program.

Shapes and attributes are crossed for one type. Every other type has a short list of programs, the widest shape among
them, and every fill that suits it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TypeAlias

from ..cases.elements import element_type
from ..cases.errors import OpconformError
from ..cases.ids import CaseId
from ..cases.selection import Selection, matches_numbered, may_match, strength_of
from ..cases.structures import element_names
from ..specs.loader import Library
from ..specs.model import Edge, Port, Spec, Value, VersionSpec, Word
from .covering import Excluded, Row, combinations, every, least, rows
from .families import family_of
from .fills import FIRST, suits
from .ports import free_letters
from .rows import draws, fill_recipe, fill_text, identify

__all__ = ["Expected", "Selection", "counted", "edge_cases", "edges", "expected", "grid", "planned", "strength_of"]

Choice: TypeAlias = "dict[str, str]"
"""Type letters, each with the type that is taken."""

MOST_CASES = 20_000_000
_MOST_COMBINATIONS = 5_000_000  # of levels that a covering array is looked for
_FEW = 2  # fills a program, where nothing else calls for more
_SHORT = 4  # programs of a type that is not the one that everything is crossed for
_USUAL = ("float32", "float16", "int32", "int64")  # which type everything is crossed for: the first of these, or any
_FIRST_DRAW = re.compile(r"(?<=[/;])draw=1(?=[;/])")
_SECONDS_A_CASE, _SECONDS_A_PROGRAM = 0.0006, 0.0008  # of one processor, onnxruntime, small tensors


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
class Expected:
    """What a run is going to take: cases, programs, and the processor time that they cost, without the backend's."""

    cases: int = 0
    programs: int = 0

    @property
    def seconds(self) -> float:
        """Seconds of one processor, roughly: what the suite and a fast backend take on small tensors."""
        return self.cases * _SECONDS_A_CASE + self.programs * _SECONDS_A_PROGRAM


def expected(library: Library, selection: Selection) -> dict[str, Expected]:
    """Return what a selection holds, by standard, before anything is run. Raises OpconformError if that is absurd."""
    found: dict[str, Expected] = {}
    before = None
    for standard, drawn in _drawn(library, selection):
        number, known = drawn.count(selection), found.get(standard, Expected())
        if number:
            found[standard] = Expected(known.cases + number, known.programs + (drawn.program != before))
            before = drawn.program
    return found


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The draws of a case: the id of the first, and what stands around the number in those of the others."""

    first: str
    program: tuple[object, ...]
    before: str = ""
    after: str = ""
    draws: int = 1

    @classmethod
    def of(cls, case: CaseId, draws: int, seed: int) -> _Drawn:
        first, program = str(numbered(case, 0, seed)), (case.operator, case.types, case.shapes, case.settings)
        if draws == 1:
            return cls(first, program)
        second = str(numbered(case, 1, seed))
        place = _FIRST_DRAW.search(second)
        if place is None:
            raise ValueError(f"{second}: no draw in there")
        return cls(first, program, second[: place.end() - 1], second[place.end() :], draws)

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
    wanted = [
        (spec, [version for version in spec.versions.values() if selection.may_admit(str(version.operator))])
        for spec in _specs(library, selection)
    ]
    _refuse_absurd([version for _, versions in wanted for version in versions], selection)
    for spec, versions in wanted:
        yield from ((spec.standard, drawn) for drawn in _of_versions(spec, versions, selection))


def _specs(library: Library, selection: Selection) -> Iterator[Spec]:
    # one operator's versions differ in their numbers alone: try the glob on the part before
    globs = [glob.split("-", 1)[0] + "*" for glob in selection.globs]
    yield from library.usable(
        operator
        for operator in library.operators()
        if (not selection.standards or operator.partition("/")[0] in selection.standards)
        and (not globs or any(may_match(glob, operator) for glob in globs))
    )


def _refuse_absurd(wanted: Sequence[VersionSpec], selection: Selection) -> None:
    """Raise OpconformError for cases that nobody can wait for; how many there are is told from below."""
    strength, cases = selection.strength, 0
    for version in wanted:
        levels, name = _levels(version), str(version.operator)
        size = len(levels) if strength is None else min(strength, len(levels))
        rows_at_least = least(levels, size)
        whole = not selection.globs or any(fnmatchcase(name, glob) for glob in selection.globs)
        cases += rows_at_least * (selection.draws if whole else 1)
        work = 0 if strength is None else combinations(levels, size)
        if cases > MOST_CASES or work > _MOST_COMBINATIONS:
            hours = Expected(cases, cases // max(selection.draws, 1)).seconds / 3600
            drawn = f", {selection.draws:,} draws" if selection.draws > 1 else ""
            raise OpconformError(
                f"strength {'full' if strength is None else strength}{drawn}: {name} has {work or rows_at_least:,} "
                f"combinations of levels; up to there at least {cases:,} cases, {hours:,.1f} hours of a processor"
            )


def _of_versions(spec: Spec, versions: Iterable[VersionSpec], selection: Selection) -> Iterator[_Drawn]:
    """Yield the cases of an operator's versions, in an order in which those that compute the same are neighbours."""
    found: list[tuple[object, VersionSpec, CaseId, bool]] = []
    for place, version in enumerate(versions):
        single = dict.fromkeys(edges(spec, version))
        every = [*single, *dict.fromkeys(grid(spec, version, selection.strength))]
        found += [(_order(case, place), version, case, case in single) for case in every]
    for _, version, case, is_edge in sorted(found, key=lambda one: one[0]):  # type: ignore[arg-type,return-value]
        number = selection.draws if not is_edge and draws(version, case) else 1
        yield _Drawn.of(case, number, selection.seed if draws(version, case) else 0)


def _order(case: CaseId, version: int) -> tuple[object, ...]:
    """Return what orders cases: by what they compute, then by programs; symbolic dimensions make one for all shapes."""
    whole, symbolic = str(case.shapes), ("dims", "symbolic") in case.settings
    alike = str([len(part) if isinstance(part, tuple) else part for part in case.shapes]) if symbolic else whole
    return case.types, case.settings, len(case.shapes), alike, version, whole, case.edge or "", case.fill


def numbered(case: CaseId, draw: int, seed: int) -> CaseId:
    """Return the id with its draw and seed; zeros stay out."""
    more = [(name, str(number)) for name, number in (("draw", draw), ("seed", seed)) if number]
    return replace(case, settings=tuple(sorted([*case.settings, *more]))) if more else case


def _levels(version: VersionSpec) -> dict[str, list[str]]:
    return {name: list(values) for name, values in version.parameters.items()}


def grid(spec: Spec, version: VersionSpec, strength: int | None) -> Iterator[CaseId]:
    """Yield the cases that covering arrays choose; different rows may be one case."""
    for row in _rows(spec, version, strength):
        values = {name: version.parameters[name][level] for name, level in row.items() if name in version.parameters}
        yield identify(spec, version, values)


def _rows(spec: Spec, version: VersionSpec, strength: int | None) -> Iterator[Row]:
    """Yield rows of levels: programs of one type crossed, of each other type a few, each with fills."""
    excluded = [*version.exclude, *_unsuited(spec, version)]
    if strength is None:
        same = [group for group in version.same if all(letter in version.parameters for letter in group)]
        for row in every(_levels(version), excluded):
            if all(len({row[letter] for letter in group}) == 1 for group in same):
                yield row
        return
    for types, crossed in _choices(version):
        programs = _programs(version, types, excluded, strength, crossed)
        empty = [_is_empty(spec, version, {**types, **row}) for row in programs]
        yield from ({**types, **row} for row, nothing in zip(programs, empty, strict=True) if nothing)
        filled = [row for row, nothing in zip(programs, empty, strict=True) if not nothing]
        yield from _filled(version, types, filled, excluded, crossed)


def _choices(version: VersionSpec) -> Iterator[tuple[Choice, bool]]:
    """Yield types for the letters: first those for which everything is crossed, then one letter changed at a time."""
    letters = [letter for letter in free_letters(version) if letter in version.parameters]
    usual = {letter: _usual(list(version.parameters[letter])) for letter in letters}
    for group in version.same:
        usual |= {letter: usual[group[0]] for letter in group if letter in usual and group[0] in usual}
    yield usual, True
    seen = {tuple(usual.values())}
    for letter in letters:
        together = next((group for group in version.same if letter in group), (letter,))
        for level in version.parameters[letter]:
            changed = {**usual, **{one: level for one in together if one in usual}}
            if tuple(changed.values()) not in seen:
                seen.add(tuple(changed.values()))
                yield changed, False


def _usual(levels: Sequence[str]) -> str:
    return next((one for one in _USUAL if one in levels), levels[0])


def _programs(version: VersionSpec, types: Choice, excluded: Excluded, strength: int, crossed: bool) -> list[Row]:
    """Return the programs of some types, as rows without a fill."""
    levels = {name: some for name, some in _levels(version).items() if name not in types and name != "fill"}
    left = _within(excluded, types, levels)
    groups = [
        [name for name in group if name not in types]
        for size, several in version.strength.items()
        for group in several
        if strength > 1 and (crossed or any(name in types for name in group)) and size > 1
    ]
    if crossed:
        return rows(levels, left, strength, _subsets(version, groups, types, crossed))
    if strength > 2:
        return rows(levels, left, strength - 1, _subsets(version, groups, types, crossed))
    if groups:
        return rows(levels, left, 1, _subsets(version, groups, types, crossed))
    return _few(version, rows(levels, left, 1), types)


def _subsets(
    version: VersionSpec, groups: Sequence[Sequence[str]], types: Choice, crossed: bool
) -> list[tuple[str, ...]]:
    """Return which parameters the spec wants crossed with each other, for some types."""
    found: list[tuple[str, ...]] = []
    for size, several in version.strength.items():
        for group in several:
            names = [name for name in group if name not in types and name != "fill"]
            lettered = any(name in types for name in group)
            if crossed or lettered:
                found += itertools.combinations(names, min(len(names), size - (lettered and not crossed)))
    return [some for some in found if len(some) > 1] if groups else []


def _within(
    excluded: Excluded, types: Choice, levels: Mapping[str, Sequence[str]]
) -> list[Mapping[str, Sequence[str]]]:
    """Return what is excluded once the types are chosen and the fill is not."""
    found: list[Mapping[str, Sequence[str]]] = []
    for out in excluded:
        if all(types[name] in banned for name, banned in out.items() if name in types):
            rest = {name: banned for name, banned in out.items() if name not in types}
            if all(name in levels for name in rest):
                found.append(rest)
    return found


def _few(version: VersionSpec, whole: list[Row], types: Choice) -> list[Row]:
    """Return a few of the programs: that of the widest shape, and others that hang on the types."""
    if len(whole) <= _SHORT:
        return whole
    widest = max(range(len(whole)), key=lambda i: _width(version, whole[i]))
    start = sum(map(ord, "".join(types.values())))
    others = [i for i in range(len(whole)) if i != widest]
    chosen = {widest, *(others[(start + k * len(others) // (_SHORT - 1)) % len(others)] for k in range(_SHORT - 1))}
    return [whole[i] for i in sorted(chosen)]


def _width(version: VersionSpec, row: Row) -> int:
    """Return how many elements a program's first shape has, as far as its level says it in numbers."""

    def size(value: Value) -> int:
        if isinstance(value, Mapping):
            return max(map(size, value.values()), default=0)
        if not isinstance(value, tuple):
            return value if isinstance(value, int) else 1
        nested = [size(one) for one in value if isinstance(one, tuple)]
        return max(nested) if nested else math.prod(size(one) for one in value)

    return max((size(version.parameters[name][row[name]]) for name in ("shapes", "dims") if name in row), default=0)


def _is_empty(spec: Spec, version: VersionSpec, row: Row) -> bool:
    """Return whether a program has nothing to fill, so that all fills are one case."""
    other = next((v for v in version.parameters.get("fill", {}).values() if fill_text(v) != FIRST), None)
    if other is None:
        return False
    levels = {name: version.parameters[name][level] for name, level in row.items()}
    return identify(spec, version, {**levels, "fill": other}).fill == FIRST


def _filled(
    version: VersionSpec, types: Choice, programs: Sequence[Row], excluded: Excluded, crossed: bool
) -> Iterator[Row]:
    """Give programs fills: a few each, and more until each fill met every level, or, of other types, one program."""
    fills = list(version.parameters.get("fill", {}))
    if not fills:
        yield from ({**types, **row} for row in programs)
        return
    allowed = [
        [fill for fill in fills if not _is_excluded({**types, **row, "fill": fill}, excluded)] for row in programs
    ]
    names = [name for row in programs[:1] for name in row] if crossed else []
    missing = {
        (fill, name, row[name]) for row, some in zip(programs, allowed, strict=True) for fill in some for name in names
    }
    missing |= {(fill, "", "") for some in allowed for fill in some}
    used: Counter[str] = Counter()
    taken: list[set[str]] = [set() for _ in programs]

    def gain(at: int, fill: str) -> int:
        row = programs[at]
        return sum((fill, name, row[name]) in missing for name in names) + ((fill, "", "") in missing)

    def take(at: int, fill: str) -> None:
        taken[at].add(fill)
        used[fill] += 1
        missing.difference_update([(fill, "", ""), *((fill, name, programs[at][name]) for name in names)])

    for at, some in enumerate(allowed):
        for _ in range(min(_FEW, len(some))):
            take(at, max((f for f in some if f not in taken[at]), key=lambda f: (gain(at, f), -used[f])))
    while missing:
        at, fill = max(
            ((at, fill) for at, some in enumerate(allowed) for fill in some if fill not in taken[at]),
            key=lambda one: gain(*one),
        )
        take(at, fill)
    for row, chosen in zip(programs, taken, strict=True):
        yield from ({**types, **row, "fill": fill} for fill in fills if fill in chosen)


def _is_excluded(row: Row, excluded: Excluded) -> bool:
    return any(all(row.get(name) in banned for name, banned in out.items()) for out in excluded)


def _unsuited(spec: Spec, version: VersionSpec) -> list[Mapping[str, Sequence[str]]]:
    """Return which types and fills make no sense together: those where a fill suits no input that is filled."""
    own, found = family_of(spec).own_fills, list[Mapping[str, Sequence[str]]]()
    ports = [port for port in version.signature.inputs if _is_filled(version, port)]
    for level, value in version.parameters.get("fill", {}).items():
        name = fill_recipe(fill_text(value)).name
        out: dict[str, Sequence[str]] = {"fill": (level,)}
        for port in ports:
            letter = version.signature.letter(port.name)
            types = (
                [port.type] if letter is None else list(version.parameters.get(letter, version.signature.types[letter]))
            )
            unsuited = [t for t in types if name not in own and not suits(name, element_type(element_names(t)[-1]))]
            if not unsuited:
                break
            if letter in version.parameters:
                out[str(letter)] = unsuited
            elif len(unsuited) < len(types):
                break
        else:
            found += [out] if ports else []
    return found


def _is_filled(version: VersionSpec, port: Port) -> bool:
    """Return whether the fill makes an input's elements, where nothing else is said of it."""
    operand, levels = version.operands.get(port.name), version.parameters.get(port.name, {})
    if operand is not None and (operand.draws or operand.fill is not None):
        return False
    return port.is_variadic or not any(not isinstance(level, Word) for level in levels.values())


def edges(spec: Spec, version: VersionSpec) -> Iterator[CaseId]:
    """Yield the edges' cases, one for each type that an edge is for."""
    for edge in version.edges.values():
        yield from edge_cases(spec, version, edge)


def edge_cases(spec: Spec, version: VersionSpec, edge: Edge) -> Iterator[CaseId]:
    """Yield one edge's cases: letters that it does not name stand for each of their types."""
    named = any(name.startswith("type(") for name in edge.settings)
    choices = [
        _types(edge.settings[letter])
        if letter in edge.settings
        else version.signature.types[letter][: 1 if named else None]
        for letter in free_letters(version)
    ]
    for types in itertools.product(*choices):
        levels = {**edge.settings, **dict(zip(free_letters(version), types, strict=True))}
        yield replace(identify(spec, version, levels), edge=edge.id)


def _types(value: Value) -> tuple[str, ...]:
    return tuple(str(v) for v in value) if isinstance(value, tuple) else (str(value),)
