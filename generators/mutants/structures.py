"""Triggers of structure: lists with different entries, options and deliveries together, classes of equations.

A mistake here needs two things at once, or entries that differ, so that a case of each by itself does not show it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import numpy as np

from ...cases.elements import Array, element_types, type_of
from ...cases.program import Tensor
from ...specs.model import AttributeSignature, Port, Spec, VersionSpec, Word
from ..arithmetic.native import identical
from ..pairings import BEYOND, RANKS, RARE, arithmetic, default_axes, first_letter, free_options, others
from ..parameters import has_values, opset_range
from .equations import EQUATIONS, Equation
from .implementation import Implementation, Invocation, Met, Trigger
from .triggers import delivered, is_limited, is_twice

Entries: TypeAlias = tuple[Any, ...]
_LISTS = frozenset({"ints", "floats", "strings", "s64s", "f32s"})
_SEVERAL = 3  # entries that can be in no order


def structures(spec: Spec, version: VersionSpec) -> Iterator[tuple[Trigger, Sequence[Implementation]]]:
    """Yield triggers, each with the defects that only make a difference there."""
    if spec.standard != "onnx":
        return
    yield from _of_entries(version)
    for trigger in (*_of_deliveries(version), *_of_options(version), *_of_ends(spec, version), *_of_equations(version)):
        yield trigger, ()


# Lists with different entries


def _of_entries(version: VersionSpec) -> Iterator[tuple[Trigger, Sequence[Implementation]]]:
    """Yield triggers for each list of attributes or inputs, with the ways to read its entries wrongly."""
    for attribute in version.signature.attributes:
        if attribute.kind in _LISTS:
            yield from _of_list(attribute.name, one_is_a_list=not attribute.name.startswith("pads"))
        if attribute.name.endswith("modes"):
            for mode in _MODES if attribute.kind in _LISTS else range(len(_MODES)):
                met = _listing(attribute.name, functools.partial(_is_one_mode, mode))
                yield Trigger("entries", f"{attribute.name}-all-{mode}", f"{attribute.name} of {mode} alone", met), ()
    for port in version.signature.inputs[1:]:
        if _is_list(version, port):
            yield from _of_list(port.name, one_is_a_list=False)


_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
"""The modes of a tree's nodes; as numbers, the index of each."""


def _is_one_mode(mode: object, entries: Entries) -> bool:
    inner = [entry for entry in entries if entry != "LEAF"]
    return len(inner) > 1 and set(inner) == {mode}


def _is_list(version: VersionSpec, port: Port) -> bool:
    """Return whether an input is numbers that say what to do: integers, or numbers that levels or recipes write."""
    letter = version.signature.letter(port.name)
    types = version.signature.types[letter] if letter else (port.type,)
    integer = all(name in element_types() and element_types()[name].is_integer for name in types)
    operand = version.operands.get(port.name)
    listed = operand is not None and isinstance(operand.shape, tuple) and len(operand.shape) == 1
    written = has_values(version, port) or (listed and operand is not None and bool(operand.draws))
    apart = not port.is_variadic and version.signature.attribute(port.name) is None
    return apart and (integer or written) and _has_several(version, port.name)


def _has_several(version: VersionSpec, name: str) -> bool:
    """Return whether a level, an edge or a recipe makes a list of more than one entry of an input."""
    operand = version.operands.get(name)
    edges = [edge.settings for edge in version.edges.values() if not edge.rejected]
    sets = (*version.bundles, *edges)
    values = [*version.parameters.get(name, {}).values(), *(settings.get(name) for settings in sets)]
    lists = [value for value in values if isinstance(value, tuple)]
    drawn = operand is not None and bool(operand.draws) and isinstance(operand.shape, tuple) and operand.shape != ()
    return drawn or any(len(entries) > 1 or isinstance(entries[0], str) for entries in lists if entries)


def _of_list(name: str, *, one_is_a_list: bool) -> Iterator[tuple[Trigger, Sequence[Implementation]]]:
    for level, (text, when) in ENTRIES.items():
        if level != "one" or one_is_a_list:
            trigger = Trigger("entries", f"{name}-{level}", f"{name} {text}", _listing(name, when))
            yield trigger, [_misread(name, *_MISREADINGS[level])] if level in _MISREADINGS else ()
    if "pads" in name:
        text = f"{name} whose first half differs from the second"
        yield (
            Trigger("entries", f"{name}-halves", text, _listing(name, lambda e: _swapped(e) != e)),
            [_misread(name, "halves-swapped", "exchanges the halves of", _swapped)],
        )


def _swapped(entries: Entries) -> Entries:
    half = len(entries) // 2
    return (*entries[half:], *entries[:half])


def _is_unordered(entries: Entries) -> bool:
    up = any(a < b for a, b in itertools.pairwise(entries))
    return len(entries) >= _SEVERAL and up and any(a > b for a, b in itertools.pairwise(entries))


ENTRIES: Mapping[str, tuple[str, Callable[[Entries], bool]]] = {
    "differ": ("with different entries", lambda entries: len(set(entries)) > 1),
    "uneven": ("that is another list in reverse", lambda entries: entries != entries[::-1]),
    "unordered": ("with entries in no order", _is_unordered),
    "one": ("with one entry", lambda entries: len(entries) == 1),
}
_MISREADINGS: Mapping[str, tuple[str, str, Callable[[Entries], Entries]]] = {
    "differ": ("first-for-all", "uses the first entry for all of", lambda entries: entries[:1] * len(entries)),
    "uneven": ("reversed", "reverses", lambda entries: entries[::-1]),
    "unordered": ("sorted", "sorts", lambda entries: tuple(sorted(entries))),
}


def _listing(name: str, when: Callable[[Entries], bool]) -> Callable[[Met], bool]:
    return lambda met: any(map(when, _lists(met.invocation, name)))


def _lists(i: Invocation, name: str) -> Iterator[Entries]:
    value = i.attributes.get(name)
    given = i.port(name) if value is None else None
    if isinstance(value, tuple | list):
        yield tuple(value)
    if isinstance(value, Tensor):
        yield tuple(value.array().reshape(-1).tolist())
    if isinstance(given, np.ndarray) and given.ndim == 2:
        yield from (tuple(row.tolist()) for row in given)


def _misread(name: str, mistake: str, text: str, change: Callable[[Entries], Entries]) -> Implementation:
    def reading(i: Invocation) -> Invocation:
        value, given = i.attributes.get(name), i.port(name)
        if isinstance(value, tuple | list):
            wrong = change(tuple(value))
            return i if wrong == tuple(value) else i.with_attribute(name, wrong)
        if value is None and isinstance(given, np.ndarray) and given.ndim == 2 and given.shape[1]:
            rows = np.stack([_row(change, row) for row in given])
            return i if identical(rows, given) else i.with_port(name, rows)
        return i

    return Implementation(f"{name}-{mistake}", "answer", f"{text} {name}", reading=reading)


def _row(change: Callable[[Entries], Entries], row: Array) -> Array:
    return np.array(change(tuple(row.tolist())), object).astype(row.dtype)


# How inputs come


def _of_deliveries(version: VersionSpec) -> Iterator[Trigger]:
    """Yield triggers for all inputs but the first as constants, by type and rank, or fed; for one tensor twice."""
    ports = [port.name for port in others(version)]
    if ports:
        yield Trigger("others", "fed", "all inputs fed", delivered(ports, fed=True))
        constant, text = delivered(ports, fed=False), "all inputs but the first as constants"
        yield Trigger("others", "constant", text, constant)
        for rank in _ranks(version):
            yield Trigger("others", f"constant,rank={rank}", f"{text} and rank {rank}", _both(constant, _ranked(rank)))
        for name in dict.fromkeys(map(arithmetic, _types(version))):
            yield Trigger(
                "others", f"constant,{name}", f"{text} and type {name}", _both(constant, _of_arithmetic(name))
            )
    types = [port.type for port in version.signature.inputs if not is_limited(version, port)]
    if len(set(types)) < len(types):
        text = f"a tensor of more than {BEYOND} elements at two inputs"
        yield Trigger("twice", f"over-{BEYOND}", text, _is_repeated)


def _is_repeated(met: Met) -> bool:
    return is_twice(met) and any(array[:1, ...].size > BEYOND for array in met.invocation.arrays)


def _both(first: Callable[[Met], bool], second: Callable[[Met], bool]) -> Callable[[Met], bool]:
    return lambda met: first(met) and second(met)


def _first(met: Met) -> Array | None:
    """Return the first tensor of the first input."""
    return next(iter(met.invocation.first), None)


def _ranks(version: VersionSpec) -> list[int]:
    """Return the ranks that the first input may have: no clause excludes them, and the spec fixes no other one."""
    first = next(iter(version.signature.inputs), None)
    operand = None if first is None else version.operands.get(first.name)
    shape = None if operand is None else operand.shape
    if first is None or (isinstance(shape, tuple) and not any("..." in str(part) for part in shape)):
        return [len(shape)] if isinstance(shape, tuple) and len(shape) in RANKS else []
    globs = [glob for clause in version.clauses.values() for glob in clause.excludes]
    return [rank for rank in RANKS if not any(fnmatchcase(f"rank={rank}", glob) for glob in globs)]


def _ranked(rank: int) -> Callable[[Met], bool]:
    return lambda met: (first := _first(met)) is not None and first.ndim - 1 == rank


def _types(version: VersionSpec) -> list[str]:
    """Return the element types of the first input."""
    signature = version.signature
    letter = signature.letter(signature.inputs[0].name) if signature.inputs else None
    return [name for name in signature.types[letter] if name in element_types()] if letter else []


def _of_arithmetic(name: str) -> Callable[[Met], bool]:
    return lambda met: (first := _first(met)) is not None and arithmetic(type_of(first)) == name


# Options together


def _of_options(version: VersionSpec) -> Iterator[Trigger]:
    """Yield triggers for each pair of options, and for options with each rank and with an extent of 1."""
    options = {a.name: _is_set(a) for a in version.signature.attributes if not a.required and _varies(version, a.name)}
    options |= {p.name: _is_given(p) for p in version.signature.inputs if p.option == "optional"}
    for (left, first), (right, second) in itertools.combinations(options.items(), 2):
        yield Trigger("options", f"{left},{right}", f"{left} and {right}", _both(first, second))
    for name in free_options(version):
        for rank in _ranks(version):
            text = f"{name} and rank {rank}"
            yield Trigger("options", f"{name},rank={rank}", text, _both(options[name], _ranked(rank)))
        if len(_ranks(version)) > 1:
            text = f"{name} and an extent of 1"
            yield Trigger("options", f"{name},extent=1", text, _both(options[name], _has_extent(1)))
    for attribute in default_axes(version):
        for rank in _ranks(version):
            met = _both(_is_missing(attribute.name), _ranked(rank))
            yield Trigger("options", f"no-{attribute.name},rank={rank}", f"no {attribute.name} and rank {rank}", met)


def _is_missing(name: str) -> Callable[[Met], bool]:
    return lambda met: name not in met.invocation.attributes


def _varies(version: VersionSpec, name: str) -> bool:
    """Return whether a level of the spec gives an attribute another value than its default."""
    attribute = version.signature.attribute(name)
    own = [value for value in version.parameters.get(name, {}).values() if value is not Word.ABSENT]
    inside = [bundle[name] for bundle in version.bundles if name in bundle]
    return attribute is not None and any(value != attribute.default for value in (*own, *inside))


def _is_set(attribute: AttributeSignature) -> Callable[[Met], bool]:
    def met(met: Met) -> bool:
        value = met.invocation.attributes.get(attribute.name)
        return value is not None and value != attribute.default

    return met


def _is_given(port: Port) -> Callable[[Met], bool]:
    return lambda met: met.invocation.port(port.name) is not None


def _has_extent(extent: int) -> Callable[[Met], bool]:
    return lambda met: (first := _first(met)) is not None and extent in first.shape[1:]


# Rare types at ends


def _of_ends(spec: Spec, version: VersionSpec) -> Iterator[Trigger]:
    """Yield triggers for each arithmetic in the last opset with the version, and for rare types without an element."""
    span = opset_range(spec, version)
    for name in dict.fromkeys(map(arithmetic, _types(version))):
        there = _of_arithmetic(name)
        if span is not None and span[0] < span[1]:
            text = f"type {name} in the last opset with the version"
            yield Trigger("last-opset", name, text, _both(there, _in_opset(span[1])))
        if name in RARE and first_letter(version) is not None:
            yield Trigger("nothing", name, f"an empty first input of type {name}", _both(there, _has_extent(0)))


def _in_opset(number: int) -> Callable[[Met], bool]:
    return lambda met: met.invocation.program.opset == number


# Equations by class


def _of_equations(version: VersionSpec) -> Iterator[Trigger]:
    if version.signature.attribute("equation") is not None:
        for level, (text, when) in EQUATIONS.items():
            yield Trigger("equation", level, text, _says(when))


def _says(when: Callable[[Equation], bool]) -> Callable[[Met], bool]:
    return lambda met: when(Equation.of(str(met.invocation.attributes.get("equation", ""))))
