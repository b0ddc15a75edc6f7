"""The plan: all cases, made of programs from covering arrays, fills and edges.

Shapes and attributes are crossed for one type. A type of another arithmetic gets the program of the widest shape with
every fill that suits it. Types that differ only in size get one case each.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from ..cases.elements import element_type
from ..cases.errors import OpconformError
from ..cases.ids import (
    CaseId,
    Selection,
    is_of_versions,
    matches_numbered,
    may_match,
    operator_version_of,
    parse_id,
    part_size,
    split_version,
    strength_of,
)
from ..cases.program import element_names
from ..specs.loader import Library
from ..specs.model import Port, Spec, TensorValue, Value, VersionSpec, Word
from ..specs.reading import SpecError, SpecErrors
from .choices import Choice, is_wide, type_choices, typical_types, usual_type
from .covering import Excluded, Row, combinations, every, is_excluded, least, rows
from .edges import edges
from .families import family_of
from .fills import FIRST, suits
from .locked import locked_files, locked_ids
from .pairings import pairings
from .parameters import free_letters
from .rows import draws, fill_recipe, fill_text, identify, seeds
from .variations import variations

__all__ = [
    "Expected",
    "Selection",
    "counted",
    "expected",
    "grid",
    "planned",
    "strength_of",
]

T = TypeVar("T")

Share: TypeAlias = Literal["all", "two", "fills", "one"]
"""The plan for a choice: everything crossed; two programs, every fill; one program, every fill; one case."""

MOST_CASES = 20_000_000
MOST_DRAWS = 100_000_000
_MOST_COMBINATIONS = 5_000_000  # of levels, for a covering array
_PAIRS = 2  # up to this strength, a few programs are enough for other types
_FULLY_FILLED = 3  # programs of the crossed type that get every fill
_TELLING = ("special", "nan-late", "ends", "extremes", "boundary", "infinities", "nan")  # fills that every type gets
_FIRST_DRAW = re.compile(r"(?<=[/;])draw=1(?=[;/])")
_SECONDS_A_CASE, _SECONDS_A_PROGRAM = 0.0006, 0.0008  # on one processor, with onnxruntime and small tensors


Watched: TypeAlias = Callable[[Iterator[Any]], Iterable[Any]]


def planned(library: Library, selection: Selection, *, from_lock: bool = False) -> Iterator[str]:
    """Yield the ids of the selected cases, once each; memory does not grow with draws.

    `from_lock`: read the default plan of operators whose spec file and code are those of the lock, ten times as fast.
    """
    for _, drawn in _drawn(library, selection, from_lock=from_lock):
        yield from drawn.admitted(selection)


def counted(library: Library, selection: Selection, *, from_lock: bool = False) -> Counter[str]:
    """Return the number of ids of `planned`, by standard; lists draws only if a glob may distinguish them."""
    counts: Counter[str] = Counter()
    for standard, drawn in _drawn(library, selection, from_lock=from_lock):
        counts[standard] += drawn.count(selection)
    return +counts


@dataclass(frozen=True, slots=True)
class Expected:
    """The cost of a run: cases, programs, and processor time without the backend's."""

    cases: int = 0
    programs: int = 0

    @property
    def seconds(self) -> float:
        """An estimate of the seconds on one processor, with a fast backend and small tensors."""
        return self.cases * _SECONDS_A_CASE + self.programs * _SECONDS_A_PROGRAM


def expected(
    library: Library, selection: Selection, watched: Watched = iter, *, from_lock: bool = False
) -> dict[str, Expected]:
    """Return the cost of a selection, by standard, before anything runs. Raises OpconformError if it is absurd.

    `watched` wraps the iterator of cases, to show progress.
    """
    sizes: dict[str, Expected] = {}
    before = None
    for standard, drawn in watched(_drawn(library, selection, from_lock=from_lock)):
        number, known = drawn.count(selection), sizes.get(standard, Expected())
        if number:
            sizes[standard] = Expected(known.cases + number, known.programs + (drawn.program != before))
            before = drawn.program
    return sizes


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The draws of a case: the id of the first draw, and the text before and after the number in the other ids."""

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
        match = _FIRST_DRAW.search(second)
        if match is None:
            raise ValueError(f"{second}: expected a draw in this id")
        return cls(first, program, second[: match.end() - 1], second[match.end() :], draws)

    def admitted(self, selection: Selection) -> Iterator[str]:
        """Yield the selected ids; checks each draw only if a glob distinguishes draws."""
        operator = self._operator
        if selection.admits(operator, self.first):
            yield self.first
        alike = self._alike(selection)
        if alike is not False:
            for draw in range(1, self.draws):
                text = f"{self.before}{draw}{self.after}"
                if alike or selection.admits(operator, text):
                    yield text

    def count(self, selection: Selection) -> int:
        alike = self._alike(selection)
        if alike is None:
            return sum(1 for _ in self.admitted(selection))
        return int(selection.admits(self._operator, self.first)) + (self.draws - 1 if alike else 0)

    def _alike(self, selection: Selection) -> bool | None:
        """Return whether all draws after the first are selected, or none of them; None if it depends on the draw."""
        if not selection.globs or self.draws == 1:
            return True
        globs = [glob for glob in selection.globs if not is_of_versions(glob)]
        matched = [matches_numbered(glob, self.before, self.after) for glob in globs]
        if any(matched) or any(fnmatchcase(self._operator, glob) for glob in selection.globs):
            return True
        return None if None in matched else False

    @property
    def _operator(self) -> str:
        return operator_version_of(self.first)


def _drawn(library: Library, selection: Selection, *, from_lock: bool) -> Iterator[tuple[str, _Drawn]]:
    """Yield the cases of the operator versions that the selection may admit, with their standard."""
    names = [operator for operator in library.operators() if may_select(selection, operator)]
    usual = replace(selection, globs=(), standards=(), suite=None) == Selection()
    locked = locked_files(library) if from_lock and usual else {}
    unlocked = [operator for operator in names if operator not in locked]
    specs: dict[str, Spec] = {}
    with contextlib.suppress(SpecError, SpecErrors) if len(unlocked) < len(names) else contextlib.nullcontext():
        specs = {spec.operator: spec for spec in library.usable(unlocked)}  # what is left out is in library.broken
    wanted = {
        operator: [version for version in spec.versions.values() if _may_admit(selection, version)]
        for operator, spec in specs.items()
    }
    _refuse_absurd([version for versions in wanted.values() for version in versions], selection)
    for operator in names:
        standard = operator.partition("/")[0]
        if operator in locked:
            yield from ((standard, drawn) for drawn in _of_locks(locked[operator], selection))
        elif operator in specs:
            yield from ((standard, drawn) for drawn in _of_versions(specs[operator], wanted[operator], selection))


def _of_locks(files: Iterable[Path], selection: Selection) -> Iterator[_Drawn]:
    """Yield the cases of an operator's locks, in the order of the plan."""
    cases = (
        (_order(case, int(version) if version else 0), case)
        for operator_version, ids in locked_ids(files)
        if selection.may_admit(operator_version)
        for _, version in [split_version(operator_version)]
        for case in map(parse_id, ids)
    )
    for _, case in sorted(cases, key=lambda entry: entry[0]):
        yield _Drawn.of(case, 1, 0)


def _may_admit(selection: Selection, version: VersionSpec) -> bool:
    """Return whether a selection may admit a case of a version; true when in doubt."""
    return selection.may_admit(str(version.operator)) and (
        not selection.globs or any(_may_name(glob, version) for glob in selection.globs)
    )


def _may_name(glob: str, version: VersionSpec) -> bool:
    """Return whether a glob that begins with `*/Name` may select a case of a version; true for other globs.

    In an id a capital after a slash begins an operator's name or a setting's, and nothing else.
    """
    word = re.match(r"\*/([A-Z][^*?\[/=]*)", glob)
    if word is None:
        return True
    signature = version.signature
    settings = [*version.parameters, *(i.name for i in signature.inputs), *(a.name for a in signature.attributes)]
    return any(
        name.startswith(word[1]) or re.match(rf"{re.escape(name)}(-|$)", word[1])
        for name in (str(version.operator).partition("/")[2], *settings)
    )


def may_select(selection: Selection, operator: str) -> bool:
    """Return whether a selection may have cases of an operator, whatever its versions; true when in doubt."""
    return (not selection.standards or operator.partition("/")[0] in selection.standards) and (
        not selection.globs or any(_may_match_operator(glob, operator) for glob in selection.globs)
    )


def _may_match_operator(glob: str, operator: str) -> bool:
    # an operator's versions differ only in their number: match the glob against the part before it
    name, dash, _ = glob.partition("-")
    if dash and "[" not in name and is_of_versions(glob):
        return fnmatchcase(operator, name)
    return may_match(f"{name}*/*/*", operator)  # with two slashes: a glob of versions would have to match all of it


def _refuse_absurd(wanted: Sequence[VersionSpec], selection: Selection) -> None:
    """Raise OpconformError for a selection that would take too long, with a lower bound on its number of cases."""
    strength, cases = selection.strength, 0
    if selection.draws > MOST_DRAWS:
        raise OpconformError(f"draws {selection.draws:,}: more than {MOST_DRAWS:,}; choose fewer, or another seed")
    for version in wanted:
        levels, name = _levels(version), str(version.operator)
        size = len(levels) if strength is None else min(strength, len(levels))
        rows_at_least = least(levels, size)
        wholly_selected = not selection.globs or any(fnmatchcase(name, glob) for glob in selection.globs)
        cases += rows_at_least * (selection.draws if wholly_selected else 1)
        work = 0 if strength is None else combinations(levels, size)
        if cases > MOST_CASES or work > _MOST_COMBINATIONS:
            hours = Expected(cases, cases // max(selection.draws, 1)).seconds / 3600
            drawn = f", {selection.draws:,} draws" if selection.draws > 1 else ""
            raise OpconformError(
                f"strength {'full' if strength is None else strength}{drawn}: {name} has {work or rows_at_least:,} "
                f"combinations of levels; up to there at least {cases:,} cases, {hours:,.1f} hours of a processor"
            )


def _of_versions(spec: Spec, versions: Iterable[VersionSpec], selection: Selection) -> Iterator[_Drawn]:
    """Yield the cases of an operator's versions, ordered so that cases with the same computation are neighbours."""
    cases: list[tuple[object, VersionSpec, CaseId, bool]] = []
    for index, version in enumerate(versions):
        single = dict.fromkeys(edges(spec, version))
        every = [*single, *dict.fromkeys(grid(spec, version, selection.strength))]
        # always derived from the pairs, so that --strength adds cases and takes none of these away
        usual = every if selection.strength == _PAIRS else [*single, *grid(spec, version, _PAIRS)]
        beside = [*variations(spec, version, usual), *pairings(spec, version, usual)]
        every += [entry for entry in beside if selection.draws == 1 or entry.setting("draw") is None]
        every = [*dict.fromkeys(every)]
        cases += [(_order(case, index), version, case, case in single) for case in every]
    for _, version, case, is_edge in sorted(cases, key=lambda entry: entry[0]):  # type: ignore[arg-type,return-value]
        number = selection.draws if not is_edge and draws(version, case) else 1
        yield _Drawn.of(case, number, selection.seed if seeds(version, case) else 0)


def _order(case: CaseId, version: int) -> tuple[object, ...]:
    """Return the sort key of a case: its computation, then its program; symbolic dimensions share one program."""
    shapes, symbolic = str(case.shapes), ("dims", "symbolic") in case.settings
    alike = str([len(part) if isinstance(part, tuple) else part for part in case.shapes]) if symbolic else shapes
    return case.types, case.settings, len(case.shapes), alike, version, shapes, case.edge or "", case.fill


def numbered(case: CaseId, draw: int, seed: int) -> CaseId:
    """Return the id with its draw and seed; zeros are left out."""
    more = {name: str(number) for name, number in (("draw", draw), ("seed", seed)) if number}
    return case.having(more) if more else case


def _levels(version: VersionSpec) -> dict[str, list[str]]:
    return {name: list(values) for name, values in version.parameters.items()}


def grid(spec: Spec, version: VersionSpec, strength: int | None) -> Iterator[CaseId]:
    """Yield the cases of the covering arrays; different rows may give the same case."""
    for row in _rows(spec, version, strength):
        values = {name: version.parameters[name][level] for name, level in row.items() if name in version.parameters}
        yield identify(spec, version, values)


def _rows(spec: Spec, version: VersionSpec, strength: int | None) -> Iterator[Row]:
    """Yield rows of levels: crossed programs of one type, a few of each other type, each with fills."""
    excluded = [*version.exclude, *_unsuited(spec, version)]
    if strength is None:
        same = [group for group in version.same if all(letter in version.parameters for letter in group)]
        for row in every(_levels(version), excluded):
            if all(len({row[letter] for letter in group}) == 1 for group in same):
                yield row
        return
    letters = {x: list(version.parameters[x]) for x in free_letters(version) if x in version.parameters}
    typical = {letter: typical_types(types) for letter, types in letters.items()}
    interacting = {name for several in version.strength.values() for group in several for name in group}
    crossed: list[tuple[int, Row]] = []  # the programs of the first types, with their number of elements
    for types in type_choices(version, letters):
        share: Share = _share(types, typical) if crossed else "all"  # usual types may exclude each other
        programs = _programs(version, types, excluded, strength, share)
        if crossed and strength <= _PAIRS and interacting.isdisjoint(types):
            allowed = [(size, row) for size, row in crossed if not is_excluded({**types, **row}, excluded)]
            # more programs of these types would test the same shapes and attributes again
            programs = _few(allowed or [(0, row) for row in programs], programs, types, share)
        sizes, empty = _sizes(spec, version, types, programs)
        crossed = crossed or list(zip(sizes, programs, strict=True))
        yield from ({**types, **row} for row, nothing in zip(programs, empty, strict=True) if nothing)
        filled = [(size, row) for size, row, nothing in zip(sizes, programs, empty, strict=True) if not nothing]
        yield from _filled(version, types, filled, excluded, share)


def _share(types: Choice, typical: Mapping[str, Sequence[str]]) -> Share:
    """Return the plan for types if one of them is not the usual type."""
    if not all(type_ in typical[letter] for letter, type_ in types.items()):
        return "one"
    return "two" if all(is_wide(type_) or type_ == usual_type(typical[x]) for x, type_ in types.items()) else "fills"


def _programs(version: VersionSpec, types: Choice, excluded: Excluded, strength: int, share: Share) -> list[Row]:
    """Return the programs of some types, as rows without a fill."""
    levels = {name: some for name, some in _levels(version).items() if name not in types and name != "fill"}
    left, crossed = _within(excluded, types, levels), share == "all"
    if not all(left):  # the types exclude each other
        return []
    groups = [
        [name for name in group if name not in types]
        for size, several in version.strength.items()
        for group in several
        if strength > 1 and (crossed or any(name in types for name in group)) and size > 1
    ]
    wanted = strength if crossed else max(strength - 1, 1)
    return rows(levels, left, wanted, _subsets(version, groups, types, crossed))


def _subsets(
    version: VersionSpec, groups: Sequence[Sequence[str]], types: Choice, crossed: bool
) -> list[tuple[str, ...]]:
    """Return the sets of parameters that the spec crosses with each other, for some types."""
    subsets: list[tuple[str, ...]] = []
    for size, several in version.strength.items():
        for group in several:
            names = [name for name in group if name not in types and name != "fill"]
            lettered = any(name in types for name in group)
            if crossed or lettered:
                subsets += itertools.combinations(names, min(len(names), size - (lettered and not crossed)))
    return [some for some in subsets if len(some) > 1] if groups else []


def _within(
    excluded: Excluded, types: Choice, levels: Mapping[str, Sequence[str]]
) -> list[Mapping[str, Sequence[str]]]:
    """Return the exclusions that remain once the types are chosen, before the fill is."""
    restricted: list[Mapping[str, Sequence[str]]] = []
    for out in excluded:
        if all(types[name] in banned for name, banned in out.items() if name in types):
            rest = {name: banned for name, banned in out.items() if name not in types}
            if all(name in levels for name in rest):
                restricted.append(rest)
    return restricted


def _few(programs: Sequence[tuple[int, Row]], own: Sequence[Row], types: Choice, share: Share) -> list[Row]:
    """Return a few of the programs: one of the widest shape, another one, and programs of `own` with further levels."""
    if not programs:
        return []
    most = max(size for size, _ in programs)
    widest = _turned([row for size, row in programs if size == most], types)
    others = _turned([row for size, row in programs if size < most], types)
    few = [widest[0], *(others or widest[1:])[: share == "two"]]
    known = {level for _, row in programs for level in row.items()}
    for row in own:
        if not set(row.items()) <= known.union(*(row_.items() for row_ in few)):
            few.append(row)
    return few


def _turned(some: Sequence[T], types: Choice) -> list[T]:
    """Return the list rotated by an amount that depends on the types, so that types start with different elements."""
    start = sum(map(ord, "".join(types.values()))) % max(len(some), 1)
    return [*some[start:], *some[:start]]


def _sizes(spec: Spec, version: VersionSpec, types: Choice, programs: Sequence[Row]) -> tuple[list[int], list[bool]]:
    """Return each program's largest tensor size, and whether it has nothing to fill, so that all fills are the same."""
    other = next((v for v in version.parameters.get("fill", {}).values() if fill_text(v) != FIRST), None)
    fill: dict[str, Value] = {} if other is None else {"fill": other}
    sizes, empty = list[int](), list[bool]()
    for row in programs:
        levels = {name: version.parameters[name][level] for name, level in {**types, **row}.items()}
        case = identify(spec, version, levels | fill)
        written = [len(value.values) for value in levels.values() if isinstance(value, TensorValue)]
        sizes.append(max([*map(part_size, case.shapes), *written], default=0))
        empty.append(other is not None and case.fill == FIRST)
    return sizes, empty


def _filled(
    version: VersionSpec, types: Choice, sized: Sequence[tuple[int, Row]], excluded: Excluded, share: Share
) -> Iterator[Row]:
    """Yield some programs of the widest shape with every fill, and each other program with its most useful fill."""
    fills, crossed, programs = list(version.parameters.get("fill", {})), share == "all", [row for _, row in sized]
    if not fills:
        yield from ({**types, **row} for row in programs)
        return
    order = fills if crossed else sorted(_turned(fills, types), key=lambda fill: not fill.startswith(_TELLING))
    allowed = [
        [fill for fill in order if not is_excluded({**types, **row, "fill": fill}, excluded)] for row in programs
    ]
    all_fills = _spread([size for size, _ in sized]) if crossed else range(share != "one")
    used: Counter[str] = Counter()
    met: set[tuple[str, str, str]] = set()
    taken: list[list[str]] = [[] for _ in programs]

    def gain(fill: str, row: Row) -> tuple[int, int]:
        return sum((fill, *level) not in met for level in row.items()) if crossed else 0, -used[fill]

    def take(at: int, some: Sequence[str]) -> None:
        taken[at] += some
        used.update(some)
        met.update((fill, *level) for fill in some for level in programs[at].items())

    # first the programs that take every fill: what they leave uncovered decides the one fill of each other program
    for at in sorted(range(len(programs)), key=lambda at: at not in all_fills):
        some, row = allowed[at], programs[at]
        take(at, some if at in all_fills else sorted(some, key=lambda fill: gain(fill, row), reverse=True)[:1])
    # a fill that is excluded from the widest shape, and best for no other program, still gets a case
    for fill in fills if share != "one" else ():
        where = next((at for at, some in enumerate(allowed) if fill in some), None)
        if where is not None and not used[fill]:
            take(where, [fill])
    for row, chosen in zip(programs, taken, strict=True):
        yield from ({**types, **row, "fill": fill} for fill in fills if fill in chosen)


def _spread(sizes: Sequence[int]) -> set[int]:
    """Return the indices of some programs of the widest shape, spread evenly."""
    widest = [at for at, size in enumerate(sizes) if size == max(sizes)]
    return {widest[k * (len(widest) - 1) // (_FULLY_FILLED - 1)] for k in range(_FULLY_FILLED)} if widest else set()


def _unsuited(spec: Spec, version: VersionSpec) -> list[Mapping[str, Sequence[str]]]:
    """Return the combinations of types and fills to exclude: the fill suits none of the inputs that it fills."""
    own, excluded = family_of(spec).own_fills, list[Mapping[str, Sequence[str]]]()
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
            if not unsuited:  # one input that it suits is enough
                break
            if letter in version.parameters:
                out[str(letter)] = unsuited
            elif len(unsuited) < len(types):  # no level names this input's type, so none can be excluded
                break
        else:
            excluded += [out] if ports else []
    return excluded


def _is_filled(version: VersionSpec, port: Port) -> bool:
    """Return whether the fill makes an input's elements by default."""
    operand, levels = version.operands.get(port.name), version.parameters.get(port.name, {})
    if operand is not None and (operand.draws or operand.fill is not None):
        return False
    return port.is_variadic or not any(not isinstance(level, Word) for level in levels.values())


def by_version(ids: Iterable[str]) -> dict[str, list[str]]:
    """Return ids by operator version, such as "onnx/Add-14"."""
    groups: dict[str, list[str]] = {}
    for text in ids:
        groups.setdefault(operator_version_of(text), []).append(text)
    return groups
