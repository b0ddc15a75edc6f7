"""Triggers: the conditions under which an implementation is wrong, since it is rarely wrong everywhere.

A rank, an extent around a vector register's, the position of axes, a number of outputs or inputs, an element type, an
opset, the number of a program's run, constants of the program, a tensor that is given twice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from ...cases.elements import Array, element_types
from ...cases.program import element_names, is_tensor
from ...specs.model import Port, Spec, VersionSpec
from ..arithmetic.native import identical
from ..pairings import AXES_NAMES
from ..parameters import has_values, opset_range
from ..variations import ARITIES
from .implementation import Answer, Invocation, Met, Trigger, comes

RANKS = range(7)
EXTENTS = (2, 4, 8, 16, 32, 64, 128, 256, 1000, 1024, 4096, 65536)
WIDTHS = (8, 16, 32, 64)
PARTS: Mapping[str, tuple[int, ...]] = {
    "reduced": (16, 32, 64, 256, 1000, 4096, 65536),
    "inner": (16, 32, 64),
    "outer": (16, 32, 64),
}
ELEMENTS = (64, 300, 1000, 4096)
_FEW = (1, 2, 12)
"""The numbers of tensors at a variadic input next to other inputs: bodies and the like must be written for each."""
_LISTS = frozenset({"starts", "pads", "paddings", "scales", "sizes"})
"""Lists with an entry for each of the axes; the operator does not work along these."""
_TRIPLE = 3

Axes: TypeAlias = tuple[int, ...]


def triggers(spec: Spec, version: VersionSpec) -> Iterator[Trigger]:
    """Yield the triggers of an operator version."""
    signature = version.signature
    yield from _of_shapes()
    types = dict.fromkeys(types_of(version, (*signature.inputs, *signature.outputs)))
    each = {name: Trigger("type", name, f"the type {name}", _of_type(name)) for name in types}
    yield from each.values()
    if _has_axes(version):
        yield from _of_axes(version)
    if any(port.is_variadic for port in signature.inputs):
        for number in ARITIES if len(signature.inputs) == 1 else _FEW:
            yield _when("inputs", str(number), f"{number} inputs", _given, number)
    if signature.inputs:  # the last one needs symbolic dimensions
        yield from RUNS if spec.standard == "onnx" or "dims" in version.parameters else RUNS[:-1]
    span = opset_range(spec, version)
    if span is not None and span[0] < span[1]:
        for level, number in zip(("first", "last"), span, strict=True):
            text = f"the {level} opset with the version"
            yield _when("opset", level, text, lambda met: met.invocation.program.opset, number)
    if spec.standard == "onnx":
        yield from _of_delivery(version)
    for names in version.strength.get(_TRIPLE, ()):
        yield from _of_triples(version, names, each)


def excluded(version: VersionSpec, trigger: Trigger) -> str | None:
    """Return the clause that excludes a trigger, if one does."""
    clauses = version.clauses.values()
    return next((c.id for c in clauses if any(fnmatchcase(trigger.name, glob) for glob in c.excludes)), None)


def types_of(version: VersionSpec, ports: Sequence[Port]) -> list[str]:
    """Return the element types that ports may have."""
    texts: dict[str, None] = {}
    for port in ports:
        letter = version.signature.letter(port.name)
        texts.update(dict.fromkeys(version.signature.types[letter] if letter else (port.type,)))
    return [name for text in texts for name in element_names(text) if name in element_types()]


def _when(group: str, level: str, text: str, of: Callable[[Met], Any], value: object) -> Trigger:
    return Trigger(group, level, text, lambda met: of(met) == value)


def _over(group: str, number: int, text: str, of: Callable[[Met], int]) -> Trigger:
    return Trigger(group, f"over-{number}", text, lambda met: of(met) > number)


# What is given


def _of_shapes() -> Iterator[Trigger]:
    for rank in RANKS:
        yield Trigger("rank", str(rank), f"tensors of rank {rank}", _of_rank(rank))
    for extent in EXTENTS:
        text = f"an extent over {extent}"
        yield _over("extent", extent, text, lambda met: max(_extents(met), default=0))
    yield Trigger("extent", "odd", "an odd extent over 2", lambda met: any(n > 2 and n % 2 for n in _extents(met)))
    yield Trigger("extent", "1", "an extent of 1", lambda met: 1 in _extents(met))
    yield from _about_widths("extent", _extents)
    for number in ELEMENTS:
        yield _over("elements", number, f"more than {number} elements in the first output", _elements)


def _about_widths(group: str, of: Callable[[Met], set[int]]) -> Iterator[Trigger]:
    """Yield triggers for a wrong vector loop: extents that are a multiple of its width, or differ from one by 1."""
    for width, (level, words, rest) in itertools.product(WIDTHS, _MISSED):

        def met(met: Met, width: int = width, rest: int = rest) -> bool:
            return any(n >= width + rest and (n - rest) % width == 0 for n in of(met) if n > 1)

        yield Trigger(group, f"{width}-{level}", f"an extent that is {words} multiple of {width}", met)


_MISSED = (("whole", "a", 0), ("one-more", "one more than a", 1), ("one-less", "one less than a", -1))


def _of_type(name: str) -> Callable[[Met], bool]:
    return lambda met: name in met.invocation.types


def _of_rank(rank: int) -> Callable[[Met], bool]:
    """Return whether the first input, or the output of the highest rank, has a rank; other inputs may be lists."""

    def met(met: Met) -> bool:
        return any(some and max(a.ndim - 1 for a in some) == rank for some in (met.invocation.first, met.right))

    return met


def _extents(met: Met) -> set[int]:
    return {extent for array in (*met.invocation.arrays, *met.right) for extent in array.shape[1:]}


def _elements(met: Met) -> int:
    return met.right[0][0, ...].size if met.right and len(met.right[0]) else 0


def _given(met: Met) -> int:
    """Return the number of tensors at the variadic input."""
    several = (given for given in met.invocation.ports if isinstance(given, tuple))
    return max(map(len, several), default=-1)


# Where axes lie


def _has_axes(version: VersionSpec) -> bool:
    """Return whether the operator works along named axes, rather than broadcasting a smaller input from an axis on."""
    legacy = version.signature.attribute("broadcast") is not None
    return any(a.name in AXES_NAMES and not legacy for a in version.signature.attributes) or bool(_axes_ports(version))


def _axes_ports(version: VersionSpec) -> list[Port]:
    return [port for port in version.signature.inputs if port.name in AXES_NAMES]


def _of_axes(version: VersionSpec) -> Iterator[Trigger]:
    lists = any(a.name in AXES_NAMES and a.kind.endswith("s") for a in version.signature.attributes)
    lists = lists or any(port.name in ("axes", "dims") for port in _axes_ports(version))
    for level in AXES if lists else _AXIS:
        text, when = AXES[level]
        yield Trigger("axes", level, text, _lying(when))
    names = {a.name for a in version.signature.attributes} | {port.name for port in version.signature.inputs}
    for part, extents in PARTS.items() if not names & _LISTS else ():
        yield _when(part, "1", f"one element {_WHERE[part]}", _longest_part(part), 1)
        for extent in extents:
            yield _over(part, extent, f"more than {extent} elements {_WHERE[part]}", _longest_part(part))


def _lying(when: Callable[[Axes, int], bool]) -> Callable[[Met], bool]:
    return lambda met: any(when(*each) for each in _axes(met.invocation))


_WHERE = {"reduced": "along the axes", "inner": "after the last axis", "outer": "before the first axis"}


def _longest_part(part: str) -> Callable[[Met], int]:
    def longest(met: Met) -> int:
        shape = met.invocation.arrays[0].shape[1:] if met.invocation.arrays else ()
        return max((_part(part, axes, shape) for axes, _ in _axes(met.invocation)), default=0)

    return longest


def _part(part: str, axes: Axes, shape: tuple[int, ...]) -> int:
    places = sorted(set(_nonnegative(axes, len(shape)))) or list(range(len(shape)))
    if part == "inner":
        return math.prod(shape[places[-1] + 1 :])
    return math.prod(shape[: places[0]] if part == "outer" else [shape[axis] for axis in places])


def _nonnegative(axes: Axes, rank: int) -> list[int]:
    return [axis % rank for axis in axes]


def _gaps(axes: Axes, rank: int) -> set[int]:
    places = sorted(set(_nonnegative(axes, rank)))
    return {b - a for a, b in pairwise(places)}


AXES: Mapping[str, tuple[str, Callable[[Axes, int], bool]]] = {
    "front": ("only the first axis", lambda axes, rank: rank > 1 and _nonnegative(axes, rank) == [0]),
    "middle": ("only an axis in the middle", lambda axes, rank: len(axes) == 1 and 0 < axes[0] % rank < rank - 1),
    "end": ("only the last axis", lambda axes, rank: rank > 1 and _nonnegative(axes, rank) == [rank - 1]),
    "negative": ("a negative axis", lambda axes, _: min(axes, default=0) < 0),
    "adjacent": ("adjacent axes", lambda axes, rank: 1 < len(axes) < rank and _gaps(axes, rank) == {1}),
    "apart": ("axes with others between them", lambda axes, rank: max(_gaps(axes, rank), default=1) > 1),
    "all": ("all axes", lambda axes, rank: rank > 1 and len(set(_nonnegative(axes, rank))) == rank),
    "unsorted": ("unsorted axes", lambda axes, rank: _nonnegative(axes, rank) != sorted(_nonnegative(axes, rank))),
    "none": ("an empty list of axes", lambda axes, _: not axes),
}
_AXIS = ("front", "middle", "end", "negative")


def _axes(i: Invocation) -> Iterator[tuple[Axes, int]]:
    """Yield the axes in an attribute, given or not, or in an input, with the rank of the first input."""
    rank = i.arrays[0].ndim - 1 if i.arrays else 0
    lists = ((name, i.port(name)) for name in i.names if name in AXES_NAMES)
    ports = {
        name: given[0, ...].reshape(-1).astype(int).tolist() for name, given in lists if isinstance(given, np.ndarray)
    }
    for name, value in {**i.version.signature.defaults, **i.attributes, **ports}.items():
        if name in AXES_NAMES and rank and isinstance(value, int | tuple | list):
            yield (value,) if isinstance(value, int) else tuple(value), rank


# How a program is run


RUNS = (
    Trigger("run", "first", "the first run of a program", lambda met: np.equal(met.runs, 0)),
    Trigger("run", "second", "the second run of a program", lambda met: np.equal(met.runs, 1)),
    Trigger("run", "later", "the third run of a program, and all later ones", lambda met: np.greater(met.runs, 1)),
    Trigger("run", "resized", "a run after one with other shapes", lambda met: np.asarray(met.resized)),
)


def _of_delivery(version: VersionSpec) -> Iterator[Trigger]:
    """Yield triggers for each input as a constant or fed, and for one tensor at two inputs."""
    signature = version.signature
    types: list[str] = []
    for port in signature.inputs:
        letter = signature.letter(port.name)
        types += [] if is_limited(version, port) else [port.type]
        if signature.attribute(port.name) is None and any(
            map(is_tensor, signature.types[letter] if port.type == letter else (port.type,))
        ):
            text = f"the input {port.name} as a constant"
            yield Trigger("from", f"{port.name}-constant", text, delivered([port.name], fed=False))
            text = f"the input {port.name} fed at each run"
            yield Trigger("from", f"{port.name}-fed", text, delivered([port.name], fed=True))
    if len(set(types)) < len(types) or any(port.is_variadic for port in signature.inputs):
        yield Trigger("twice", "input", "one tensor at two inputs", is_twice)


def is_limited(version: VersionSpec, port: Port) -> bool:
    """Return whether levels write an input's elements, because their meaning limits them."""
    return has_values(version, port) or any(port.name in bundle for bundle in version.bundles)


def delivered(names: Sequence[str], *, fed: bool) -> Callable[[Met], bool]:
    """Return whether those of some inputs that are given are fed, or, for `fed=False`, constants; one is given."""

    def met(met: Met) -> bool:
        i = met.invocation
        there = [name for name in names if i.port(name) is not None]
        return bool(there) and all(comes(i, name, fed=fed) for name in there)

    return met


def is_twice(met: Met) -> bool:
    """Return whether one tensor is given at two inputs."""
    names = [operand.name for operand in met.invocation.program.inputs if operand is not None]
    return len(set(names)) < len(names)


# Triples of what interacts


def _of_triples(version: VersionSpec, names: Sequence[str], types: Mapping[str, Trigger]) -> Iterator[Trigger]:
    """Yield all triples of types, positions of axes, and values of other attributes, for interacting parameters."""
    levels = {name: level_triggers for name in names if (level_triggers := _levels_of(version, name, types))}
    for some in itertools.combinations(levels.values(), _TRIPLE):
        for several in itertools.product(*some):
            name, text = (
                ",".join(trigger.name for trigger in several),
                " and ".join(trigger.text for trigger in several),
            )
            yield Trigger("triple", name, text, _together(several))


def _together(several: Sequence[Trigger]) -> Callable[[Met], bool]:
    return lambda met: all(bool(trigger.when(met)) for trigger in several)


def _levels_of(version: VersionSpec, name: str, types: Mapping[str, Trigger]) -> list[Trigger]:
    signature = version.signature
    if name in signature.types:
        return [types[type_name] for type_name in signature.types[name] if type_name in types]
    if name in AXES_NAMES:
        return [trigger for trigger in _of_axes(version) if trigger.group == "axes"]
    attribute, levels = signature.attribute(name), version.parameters.get(name, {}).values()
    if attribute is None:
        return []
    values = dict.fromkeys(v for v in (*levels, attribute.default) if isinstance(v, int | float | str))
    return [_when(name, str(v), f"{name}={v}", _valued(name), v) for v in values]


def _valued(name: str) -> Callable[[Met], Any]:
    return lambda met: {**met.invocation.version.signature.defaults, **met.invocation.attributes}.get(name)


# Places of elements


Position: TypeAlias = Callable[[int], int]
"""Returns an index into so many elements; negative or too large if there is no such element."""

PLACES: Mapping[str, tuple[str, Position]] = {
    "first": ("the first element", lambda _: 0),
    "middle": ("the element in the middle", lambda n: n // 2),
    "last": ("the last element", lambda n: n - 1),
    "beyond-64": ("the 65th element", lambda _: 64),
    "beyond-256": ("the 257th element", lambda _: 256),
    "beyond-4096": ("the 4,097th element", lambda _: 4096),
}


def placed(position: Position, change: Callable[[Array], Array], array: Array) -> Array:
    """Return an array, lanes first, with one element of each lane changed; the array itself if nothing changes."""
    flat = array.reshape(len(array), -1)
    index = position(flat.shape[1])
    if not 0 <= index < flat.shape[1]:
        return array
    kept = flat.copy()
    kept[:, index] = change(flat[:, [index]])[:, 0]
    return kept.reshape(array.shape)


def in_outputs(position: Position) -> Callable[[Met], bool]:
    """Return whether some output has an element at this position."""
    return lambda met: _has(position, met.right)


def in_inputs(position: Position) -> Callable[[Met], bool]:
    """Return whether the first input, or any tensor of it, has an element at this position."""
    return lambda met: _has(position, met.invocation.first)


def _has(position: Position, arrays: Sequence[Array]) -> bool:
    sizes = (math.prod(array.shape[1:]) for array in arrays)
    return any(0 <= position(size) < size for size in sizes)


def at_outputs(position: Position, change: Callable[[Array], Array]) -> Callable[[Invocation, Answer], Answer]:
    """Return a function that changes one element of each output."""
    return lambda _i, outs: [placed(position, change, out) for out in outs]


def at_inputs(position: Position, change: Callable[[Array], Array]) -> Callable[[Invocation], Invocation]:
    """Return a function that misreads one element of the first input, or of each of its tensors."""

    def reading(i: Invocation) -> Invocation:
        wrong = tuple(placed(position, change, array) for array in i.first)
        if all(map(identical, wrong, i.first)):
            return i
        return i.with_port(i.names[0], wrong if isinstance(i.ports[0], tuple) else wrong[0])

    return reading
