"""Cases that pair what else occurs alone: constants with types and ranks, options with ranks, rare types with ends.

Each is a planned case with such a change, and is only made if no planned case has the pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..cases.elements import element_type
from ..cases.errors import CaseIdError
from ..cases.ids import CaseId, part_size
from ..cases.program import element_names
from ..specs.model import AttributeSignature, Port, Spec, Value, VersionSpec, Word
from .choices import is_wide
from .parameters import CONSTANT, FED, FROM, NUMBERS_OF_DRAWS, free_letters, kindest_opset, opset_range, text_of
from .rows import Row, read_row, settle, without_settings
from .variations import STANDARDS, given, is_valid, tensor_twice

AXES_NAMES = frozenset({"axis", "axes", "dim", "dims"})
RANKS = range(1, 7)
BEYOND = 64
"""The same tensor twice is also given with more elements than this."""
_LARGEST = 40_000  # elements in a case, so that constants of programs stay small
_FIRST = "first"  # of the features for which a case is made: the rank and arithmetic of the first input
_MODEST = 1000  # elements in a case of options, if there is one so small
_MOST: Mapping[str, int] = {CONSTANT: 12, FED: 3}  # cases with all inputs but the first delivered in this way
_SCALARS = frozenset({"int", "float", "string"})


def pairings(spec: Spec, version: VersionSpec, planned: Sequence[CaseId]) -> Iterator[CaseId]:
    """Yield cases with the pairs that the planned cases of an operator version lack."""
    if spec.standard not in STANDARDS:
        return
    bases = _bases(spec, version, planned)
    if not bases:
        return
    for how in (CONSTANT, FED):
        yield from _delivered(version, bases, how)
    yield from _together(version, bases)
    yield from _by_default(version, bases)
    large = [row for row in bases if _is_large(row.id)]
    if not any(_repeats(version, case) for case in planned if _is_large(case)):
        yield from tensor_twice(version, large)
    yield from _at_last_opset(spec, version, planned, bases)
    yield from _of_nothing(spec, version, bases)


def _bases(spec: Spec, version: VersionSpec, planned: Sequence[CaseId]) -> list[Row]:
    """Return the valid planned cases that are not too large, with fixed dimensions and without the names of edges."""
    bases: dict[CaseId, None] = {}
    for case in planned:
        plain = without_settings(replace(case, edge=None), "dims")
        names = {name for name, _ in case.settings}
        if not is_valid(version, case) or names & {"around", "unknown", "opset", *NUMBERS_OF_DRAWS}:
            continue
        if len(case.types) != len(free_letters(version)):  # an edge whose variadic input has several types
            continue
        if case.size <= _LARGEST and settle(version, plain) == plain:
            bases[plain] = None
    return [read_row(spec, version, case) for case in bases]


# Delivery


def others(version: VersionSpec) -> list[Port]:
    """Return the inputs besides the first that are single tensors, and no attributes."""
    rest = version.signature.inputs[1:]
    return [p for p in rest if not p.is_variadic and version.signature.attribute(p.name) is None]


def _delivered(version: VersionSpec, bases: Sequence[Row], how: str) -> Iterator[CaseId]:
    """Yield cases with all inputs but the first as constants, or all fed: each type, rank and option so if possible."""
    ports = others(version)
    covered: set[tuple[object, ...]] = set()
    candidates: list[tuple[set[tuple[object, ...]], CaseId]] = []
    for row in bases if ports else ():
        there = [port for port in ports if given(row, port)]
        if not there:
            continue
        if all(row.get(f"{port.name}{FROM}") == how for port in there):
            covered |= _features(version, row)
        elif how == FED or not _is_known_twice(row):
            case = settle(version, row.id.having({f"{port.name}{FROM}": how for port in there}))
            candidates.append((_features(version, row), case))
    for _ in range(_MOST[how]):
        best = max(candidates, key=lambda candidate: (_gain(candidate[0] - covered), -candidate[1].size), default=None)
        if best is None or not best[0] - covered:
            return
        covered |= best[0]
        yield best[1]


def _gain(features: set[tuple[object, ...]]) -> tuple[int, int]:
    return sum(feature[0] == _FIRST for feature in features), len(features)


def _is_known_twice(row: Row) -> bool:
    """Return whether an input is the tensor of another one."""
    return any(name.endswith(FROM) and text not in (CONSTANT, FED) for name, text in row.id.settings)


def _features(version: VersionSpec, row: Row) -> set[tuple[object, ...]]:
    """Return what may matter for a constant: types, ranks, the inputs and attributes that are given."""
    features: set[tuple[object, ...]] = set(enumerate(row.id.types))
    first = row.id.shapes[0] if row.id.shapes else None
    features |= {(_FIRST, len(first))} if isinstance(first, tuple) else set()
    letter = first_letter(version)
    if letter is not None:
        features.add((_FIRST, arithmetic(row.id.types[free_letters(version).index(letter)])))
    features |= {(index, len(part)) for index, part in enumerate(row.id.shapes) if isinstance(part, tuple)}
    for name, text in row.id.settings:
        attribute = version.signature.attribute(name)
        if attribute is not None:
            features.add((name, text if attribute.kind == "string" else ""))
    return features | {(port.name,) for port in version.signature.inputs if given(row, port)}


# Options with ranks


def free_options(version: VersionSpec) -> dict[str, list[tuple[str, Value]]]:
    """Return attributes that the spec crosses with every shape, with the levels, by name, that are not the default."""
    options: dict[str, list[tuple[str, Value]]] = {}
    for attribute in version.signature.attributes:
        levels = version.parameters.get(attribute.name, {})
        some = [(name, value) for name, value in levels.items() if _is_option(attribute, value)]
        bound = any({attribute.name, "shapes"} <= out.keys() for out in version.exclude)
        if some and not (attribute.required or bound or attribute.name in AXES_NAMES | NUMBERS_OF_DRAWS):
            options[attribute.name] = some
    return options


def _is_option(attribute: AttributeSignature, value: Value) -> bool:
    """Return whether a level is another value than the default, and the same number or word for every shape."""
    if attribute.kind not in _SCALARS or isinstance(value, Word) or value == attribute.default:
        return False
    return isinstance(value, int | float) or (isinstance(value, str) and attribute.kind == "string")


def _together(version: VersionSpec, bases: Sequence[Row]) -> Iterator[CaseId]:
    """Yield cases of each rank, and with an extent of 1, with the options that no case has there."""
    usual = _usual(bases)
    usual.sort(key=lambda row: (len(row.id.settings), row.id.size > _MODEST))
    options = {name: some for name, some in free_options(version).items() if _keeps_shapes(name, usual)}
    for rank in (*RANKS, None):
        there = [row for row in usual if _has(row, rank)]
        lacking = [name for name in options if not any(name in row.settings for row in there)]
        for row in there if lacking else ():
            chosen: dict[str, tuple[str, Value]] = {}
            for name in lacking:
                fits = (option for option in options[name] if not _is_excluded(version, row, {**chosen, name: option}))
                option = next(fits, None)
                if option is not None:
                    chosen[name] = option
            if chosen:
                texts = {name: str(text_of(v, version.signature.kind(name), {})) for name, (_, v) in chosen.items()}
                yield settle(version, row.id.having(texts))
                break


def _usual(bases: Sequence[Row]) -> list[Row]:
    """Return the cases of the types that most cases have."""
    types = Counter(row.id.types for row in bases).most_common(1)[0][0]
    return [row for row in bases if row.id.types == types]


def default_axes(version: VersionSpec) -> list[AttributeSignature]:
    """Return the attributes with one axis that may be left out, and have a default."""
    return [a for a in version.signature.attributes if a.name in AXES_NAMES and isinstance(a.default, int)]


def _by_default(version: VersionSpec, bases: Sequence[Row]) -> Iterator[CaseId]:
    """Yield cases of each rank without an axis, if no case has that rank and no axis."""
    usual = _usual(bases)
    for attribute in default_axes(version):
        name, default = attribute.name, attribute.default
        ends = {axis % rank - rank for row in usual for axis, rank in _axis(row, name) if -rank <= axis < rank}
        for rank in RANKS if _keeps_shapes(name, usual) else ():
            there = [row for row in usual if _has(row, rank) and _is_plain(version, row)]
            if not isinstance(default, int) or not -rank <= default < rank:
                continue
            if default % rank - rank in ends and there and all(name in row.settings for row in there):
                row = min(there, key=lambda row: (len(row.id.settings), row.id.size))
                yield settle(version, without_settings(row.id, name))


def _axis(row: Row, name: str) -> Iterator[tuple[int, int]]:
    """Yield the axis that a case gives, and the rank of the first input."""
    axis, first = row.settings.get(name), row.id.shapes[0] if row.id.shapes else None
    if isinstance(axis, int) and isinstance(first, tuple):
        yield axis, len(first)


def _is_plain(version: VersionSpec, row: Row) -> bool:
    """Return whether a case says nothing that depends on extents: no list, and no elements of inputs."""
    return all(version.signature.kind(name) in _SCALARS or name == "outputs" for name, _ in row.id.settings)


def _keeps_shapes(name: str, rows: Sequence[Row]) -> bool:
    """Return whether cases with an attribute have the shapes of cases without it that have the same first one."""
    without: dict[object, set[object]] = {}
    for row in rows:
        if name not in row.settings:
            without.setdefault(row.id.shapes[:1], set()).add(row.id.shapes)
    there = [row.id.shapes for row in rows if name in row.settings and row.id.shapes[:1] in without]
    return bool(there) and all(shapes in without[shapes[:1]] for shapes in there)


def _has(row: Row, rank: int | None) -> bool:
    """Return whether the first input has a rank, or for None an extent of 1."""
    first = row.id.shapes[0] if row.id.shapes else None
    if not isinstance(first, tuple) or 0 in first:
        return False
    return 1 in first if rank is None else len(first) == rank


def _is_excluded(version: VersionSpec, row: Row, chosen: Mapping[str, tuple[str, Value]]) -> bool:
    """Return whether the spec may exclude a case with other levels; what the case says of other names is not known."""
    types = dict(zip(free_letters(version), row.id.types, strict=False))

    def may_have(name: str, banned: Sequence[str]) -> bool:
        if name in types:
            return types[name] in banned
        if name in chosen:
            return chosen[name][0] in banned
        if version.signature.attribute(name) is None:
            return True
        values = [version.parameters.get(name, {}).get(level, Word.ABSENT) for level in banned]
        return row.settings.get(name, Word.ABSENT) in values

    return any(
        any(name in chosen for name in out) and all(may_have(name, banned) for name, banned in out.items())
        for out in version.exclude
    )


# One tensor twice


def _repeats(version: VersionSpec, case: CaseId) -> bool:
    names = {port.name for port in version.signature.inputs}
    return any(name.endswith(FROM) and text in names for name, text in case.settings)


def _is_large(case: CaseId) -> bool:
    return any(part_size(part) > BEYOND for part in case.shapes)


# Rare types


def arithmetic(type_: str) -> str:
    """Return the arithmetic of a type, of which one type is enough here."""
    element = element_type(element_names(type_)[-1])
    small = element.kind == "float" and not is_wide(element.name)
    return "packed" if element.is_packed else "small-float" if small else element.kind


RARE = ("bool", "unsigned", "string")


def first_letter(version: VersionSpec) -> str | None:
    """Return the type letter of the first input, if cases vary it and no other letter depends on it."""
    signature = version.signature
    letter = signature.letter(signature.inputs[0].name) if signature.inputs else None
    bound = {x for group in version.same for x in group} | {source.absent for source in version.types_from.values()}
    return letter if letter in free_letters(version) and letter not in bound else None


def _at_last_opset(
    spec: Spec, version: VersionSpec, planned: Sequence[CaseId], bases: Sequence[Row]
) -> Iterator[CaseId]:
    """Yield a case of each arithmetic in the last opset with the version."""
    span = opset_range(spec, version)
    if span is None or span[1] == kindest_opset(spec, version) or not version.signature.inputs:
        return
    last = str(span[1])
    met = {arithmetic(type_) for case in planned if case.setting("opset") == last for type_ in case.types[:1]}
    for row in bases:
        for type_ in row.id.types[:1]:
            if arithmetic(type_) not in met:
                met.add(arithmetic(type_))
                yield row.id.having({"opset": last})


def _of_nothing(spec: Spec, version: VersionSpec, bases: Sequence[Row]) -> Iterator[CaseId]:
    """Yield a case of each rare type with an empty first input, if cases of another type have one.

    Cases of that type have attributes of the same names, since some attributes are of one type only, and the words that
    all of them have.
    """
    empty = [
        row
        for row in bases
        if row.id.shapes and part_size(row.id.shapes[0]) == 0 and isinstance(row.id.shapes[0], tuple)
    ]
    letter = first_letter(version)
    if not empty or letter is None:
        return
    index = free_letters(version).index(letter)
    empty.sort(key=lambda row: len(row.id.settings))
    met = {arithmetic(row.id.types[index]) for row in empty}
    names: dict[str, set[str]] = {}
    words: dict[str, set[tuple[str, str]]] = {}
    for row in bases:
        type_, own = row.id.types[index], {(n, t) for n, t in row.id.settings if version.signature.kind(n) == "string"}
        names.setdefault(type_, set()).update(name for name, _ in row.id.settings)
        words[type_] = words.get(type_, own) & own
    for row in bases:
        type_ = row.id.types[index]
        if "(" in type_ or arithmetic(type_) not in RARE or arithmetic(type_) in met:
            continue
        for empty_row in empty:
            known = {name for name, _ in empty_row.id.settings} <= names[type_] and words[type_] <= set(
                empty_row.id.settings
            )
            if known and not _is_excluded_type(version, empty_row, letter, type_):
                types = (*empty_row.id.types[:index], type_, *empty_row.id.types[index + 1 :])
                case = settle(version, replace(empty_row.id, types=types, fill=row.id.fill))
                if _is_readable(spec, version, case):
                    met.add(arithmetic(type_))
                    yield case
                    break


def _is_readable(spec: Spec, version: VersionSpec, case: CaseId) -> bool:
    """Return whether the elements that a case writes are of its types."""
    try:
        read_row(spec, version, case)
    except CaseIdError:
        return False
    return True


def _is_excluded_type(version: VersionSpec, row: Row, letter: str, type_: str) -> bool:
    """Return whether the spec excludes anything for a type that the settings of a case may be."""
    named = (out for out in version.exclude if type_ in out.get(letter, ()))
    known = {letter, "shapes", *free_letters(version), *row.settings}
    return any(all(name in known for name in out) for out in named)
