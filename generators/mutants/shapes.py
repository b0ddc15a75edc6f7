"""Triggers of shapes: long extents by position, equal extents, and the ways in which operands broadcast."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from ...cases.elements import Array, type_of
from ...cases.errors import OpconformError
from .formula import recorded
from .implementation import Implementation, Invocation, Met, Refused, Trigger

Shape: TypeAlias = tuple[int, ...]

_REGISTER = 8
_OVER = (16, 64)
_FIRST_OF = (
    ("batch", "a first extent", lambda shape: shape[:1] if len(shape) > 1 else ()),
    ("channels", "a second extent", lambda shape: shape[1:2] if len(shape) > 2 else ()),
    ("middle", "an extent in the middle", lambda shape: shape[1:-1]),
    ("last", "a last extent", lambda shape: shape[-1:]),
)
_SEVERAL = 3  # dimensions that have one in the middle


def position_triggers(ranks: Sequence[int]) -> Iterator[Trigger]:
    """Yield triggers for extents by their position, and for equal extents, of the first input and the outputs.

    `ranks`: those that valid calls may have.
    """
    deep = max(ranks, default=0)
    for group, words, of in _FIRST_OF:
        if deep >= {"batch": 2, "last": 1}.get(group, _SEVERAL):
            for over in _OVER:
                text = f"{words} over {over} that is no multiple of {_REGISTER}"
                yield Trigger(group, f"over-{over}", text, _extent_over(over, of))
    if deep > 1:
        yield Trigger("equal", "neighbours", "two equal extents side by side", lambda met: _pairs(met, _is_beside))
    if deep >= _SEVERAL:
        yield Trigger("equal", "apart", "two equal extents with others between", lambda met: _pairs(met, _is_apart))
        yield Trigger("equal", "none", "three extents or more that all differ", _all_differ)


def _extent_over(over: int, of: Callable[[Shape], Shape]) -> Callable[[Met], bool]:
    return lambda met: any(n > over and n % _REGISTER for shape in _shapes(met) for n in of(shape))


def _shapes(met: Met) -> Iterator[Shape]:
    """Yield the shapes of the first input and of the outputs."""
    yield from (array.shape[1:] for array in (*met.invocation.first, *met.right))


def _is_beside(first: int, second: int) -> bool:
    return second - first == 1


def _is_apart(first: int, second: int) -> bool:
    return second - first > 1


def _equal(shape: Shape, fits: Callable[[int, int], bool]) -> tuple[int, int] | None:
    pairs = itertools.combinations(range(len(shape)), 2)
    return next((pair for pair in pairs if fits(*pair) and shape[pair[0]] == shape[pair[1]] > 1), None)


def _pairs(met: Met, fits: Callable[[int, int], bool]) -> bool:
    return any(_equal(array.shape[1:], fits) for array in met.invocation.first)


def _all_differ(met: Met) -> bool:
    return any(len(shape) >= _SEVERAL and len({*shape}) == len(shape) and min(shape) > 1 for shape in _shapes(met))


def equal_effects(level: str) -> Iterator[Implementation]:
    """Yield the effect that a wrong order of dimensions has if two of them have equal extents."""
    fits = {"neighbours": _is_beside, "apart": _is_apart}.get(level)
    if fits is not None:
        text = "reads the first input with two equal dimensions exchanged"
        yield Implementation("exchanged", "answer", text, reading=_exchanged(fits))


def _exchanged(fits: Callable[[int, int], bool]) -> Callable[[Invocation], Invocation]:
    def reading(i: Invocation) -> Invocation:
        first = i.ports[0] if i.ports else None
        pair = None if first is None or isinstance(first, tuple) else _equal(first.shape[1:], fits)
        if pair is None or not isinstance(first, np.ndarray):
            return i
        other = np.swapaxes(first, pair[0] + 1, pair[1] + 1)
        return i.with_port(i.names[0], np.ascontiguousarray(other))

    return reading


# Broadcasting

_FULL: Shape = (2, 3, 4)
_WAYS: dict[str, tuple[str, tuple[Shape | None, ...]]] = {
    "first": ("only the first operand broadcast", ((1, 3, 4), None, None)),
    "second": ("only the second operand broadcast", (None, (1, 3, 4), None)),
    "third": ("only the third operand broadcast", (None, None, (1, 3, 4))),
    "middle": ("an operand broadcast in the middle alone", (None, (2, 1, 4), None)),
    "both": ("two operands broadcast, each along other dimensions", ((2, 1, 4), (1, 3, 1), None)),
    "left-rank": ("a first operand of lower rank", ((3, 4), None, None)),
    "right-rank": ("another operand of lower rank", (None, (3, 4), None)),
}
"""By level: the shapes of the first three operands in a call of shape 2x3x4, None for this shape."""
_SCALAR: Shape = ()


def broadcast_levels(calls: Iterable[Invocation]) -> set[str]:
    """Return the names of the triggers that a version can meet: its formula accepts the calls with such shapes."""
    levels: set[str] = set()
    bases: dict[tuple[object, ...], Invocation] = {}
    for call in calls:
        operands = _operands(call)
        if len(operands) > 1:
            bases.setdefault((len(operands), call.types, tuple(sorted(call.attributes))), call)
    for call in bases.values():
        number = len(_operands(call))
        for level, (_, shapes) in _WAYS.items():
            wanted = [*shapes, *(None,) * number][:number]
            if f"broadcast={level}" not in levels and any(wanted) and _is_valid(call, [s or _FULL for s in wanted]):
                levels.add(f"broadcast={level}")
        if _is_valid(call, [_FULL, *[_SCALAR] * (number - 1)]):
            levels.update(f"scalar={type_of(array)}" for array in _operands(call)[1:])
    lower = {"broadcast=left-rank", "broadcast=right-rank"}
    return levels if levels & lower else {name for name in levels if not name.startswith("broadcast")}


def broadcast_triggers(types: Iterable[str], names: Collection[str] | None) -> Iterator[Trigger]:
    """Yield triggers for the ways in which operands broadcast; `names` limits them, None is all."""
    for level, (text, _) in _WAYS.items():
        if names is None or f"broadcast={level}" in names:
            yield Trigger("broadcast", level, text, _is_broadcast(level))
    for name in types:
        if names is None or f"scalar={name}" in names:
            yield Trigger("scalar", name, f"an operand of rank 0 beside larger ones, of type {name}", _is_scalar(name))


def _operands(call: Invocation) -> list[Array]:
    """Return the tensors of a call, if it has no sequences and the like."""
    held = any(operand is not None and operand.structure is not None for operand in call.program.inputs)
    return [] if held or call.captured else list(call.arrays)


def _is_valid(call: Invocation, shapes: Sequence[Shape]) -> bool:
    """Return whether a call with other shapes is valid, and its first output has the full one."""
    left = {id(array): np.resize(array[:1], (1, *shape)) for array, shape in zip(call.arrays, shapes, strict=True)}
    try:
        recording = recorded(call.mapped(lambda array: left[id(array)]))
    except (OpconformError, Refused, ValueError, IndexError, TypeError, KeyError):
        return False
    fork = next((reading for reading in recording.forks if reading.kind == "values"), None)
    if fork is None or not fork.outputs or recording.graph.nodes[fork.outputs[0]].shape != _FULL:
        return False
    nodes = [recording.graph.nodes[at] for at in recording.live_of(fork.outputs)]
    used = {node.parameters["port"] for node in nodes if node.name == "port"}
    return len(used) == len(shapes)  # all of them count


def stretched(shape: Shape, full: Shape) -> set[int] | None:
    """Return the axes of the result along which a shape is repeated; None if it does not broadcast to it."""
    if len(shape) > len(full):
        return None
    aligned = (1,) * (len(full) - len(shape)) + shape
    if any(n not in (1, m) for n, m in zip(aligned, full, strict=True)):
        return None
    return {axis for axis, (n, m) in enumerate(zip(aligned, full, strict=True)) if n != m}


def _is_broadcast(level: str) -> Callable[[Met], bool]:
    def met(met: Met) -> bool:
        operands = _operands(met.invocation)
        if len(operands) < 2 or not met.right:
            return False
        full = met.right[0].shape[1:]
        stretches = [stretched(array.shape[1:], full) for array in operands]
        axes = [some or set() for some in stretches]
        if None in stretches or not any(axes):
            return False
        ranks = [array.ndim - 1 for array in operands]
        if level in _PLACES:
            position = _PLACES[level]
            return [bool(some) for some in axes] == [at == position for at in range(len(axes))]
        if level == "middle":
            return any(some and 0 not in some and len(full) - 1 not in some for some in axes)
        if level == "both":
            return any(first - second and second - first for first, second in itertools.combinations(axes, 2))
        lower = ranks[:1] if level == "left-rank" else ranks[1:]
        return any(0 < rank < len(full) for rank in lower)

    return met


_PLACES = {"first": 0, "second": 1, "third": 2}


def _is_scalar(name: str) -> Callable[[Met], bool]:
    def met(met: Met) -> bool:
        operands = _operands(met.invocation)
        large = len(operands) > 1 and bool(met.right) and met.right[0].ndim > 1 and met.right[0][0, ...].size > 1
        return large and any(array.ndim == 1 and type_of(array) == name for array in operands)

    return met


def broadcast_effects() -> Iterator[Implementation]:
    """Yield the effect that a wrong stride has on an operand that is broadcast."""
    text = "reads the elements of a smaller operand one after the other, from the first again after the last"
    yield Implementation("around", "answer", text, reading=_around)


def _around(i: Invocation) -> Invocation:
    operands = _operands(i)
    if len(operands) < 2:
        return i
    try:
        full = np.broadcast_shapes(*(array.shape[1:] for array in operands))
    except ValueError:
        return i
    wrong = {id(array): _repeated(array, full) for array in operands if array.shape[1:] != full and array.ndim > 1}
    return i.mapped(lambda array: wrong.get(id(array), array)) if wrong else i


def _repeated(array: Array, full: Shape) -> Array:
    flat = array.reshape(len(array), -1)
    size = int(np.prod(full))
    if not flat.shape[1]:
        return array
    return flat[:, np.arange(size) % flat.shape[1]].reshape(len(array), *full)
