"""Some elements of a formula's results: the formula with only the elements of its inputs that these depend on.

A cut keeps the results on a grid: some indices along each axis. Going from results to inputs, each primitive says which
elements of its operands it needs; where one has no rule, its operand stays whole, and the grid is taken afterwards.
The reductions stay whole, so the bound of each kept element is the one that it has in the whole formula.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ...cases.elements import Array
from .graph import Graph, Node, Value
from .recording import Recording

Grid: TypeAlias = tuple["Array | None", ...]
"""The kept indices along each axis; None keeps all."""

_WORDS = (
    "fit quotient mod shift whole_power add sub mul div neg abs sign free any_zero or_zero reciprocal "
    "less less_equal equal isnan isinf and or xor not where either between maximum minimum clip rint "
    "floor ceil trunc rint_away cast store exp expm1 log log1p sqrt rsqrt erf erfc probit tanh sin cos "
    "tan asin acos atan sinh cosh asinh acosh atanh within sigmoid pow cos_turns sin_turns join mapped"
)
_POINTWISE = frozenset(_WORDS.split())
_REDUCTIONS = frozenset({"sum", "mean", "prod", "max", "min"})
_ALONG = frozenset({"argmax", "argmin", "order", "cumsum"})


@dataclass(frozen=True)
class Cut:
    """A formula on grids. `ports` has the index of the whole formula's array for each port, and the kept elements."""

    recording: Recording
    ports: tuple[tuple[int, Grid], ...]

    @property
    def weight(self) -> int:
        """The number of elements in all nodes together."""
        return self.recording.weight

    def arrays(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the kept elements of the whole formula's arrays; neither has lanes."""
        return [taken(arrays[index], grid) for index, grid in self.ports]


def taken(array: Array, grid: Sequence[Array | None]) -> Array:
    """Return the elements of an array on a grid."""
    for axis, indices in enumerate(grid):
        if indices is not None:
            array = np.take(array, indices, axis)
    return array


def cut(recording: Recording, grids: Sequence[Grid], conditions: Mapping[int, bool]) -> Cut:
    """Return a formula with each output on its grid; every reading has outputs of the same shapes.

    `conditions`: whether each condition of a silence holds, by its index, as `Recording.premises` finds it of all
    elements. Requirements are left out: they are about all elements, and checked before.
    """
    cutter = _Cutter(recording.graph)
    forks = []
    for fork in recording.forks:
        outputs = tuple(cutter.cut(at, grid).at for at, grid in zip(fork.outputs, grids, strict=False))
        known = tuple((silence, cutter.truth(holds=conditions[at]).at) for silence, at in fork.conditions)
        forks.append(replace(fork, outputs=outputs, requirements=(), conditions=known))
    made = Recording(cutter.graph, tuple(forks), recording.types)
    return Cut(made, tuple(cutter.ports))


class _Cutter:
    """Writes the nodes that grids of another graph's results need into a new graph."""

    def __init__(self, old: Graph) -> None:
        self.graph = Graph(old.precision)
        self.ports: list[tuple[int, Grid]] = []
        self._old = old
        self._made: dict[tuple[object, ...], Value] = {}

    def truth(self, *, holds: bool) -> Value:
        """Return a truth value."""
        return self.graph.literal(np.array(holds), "bool")

    def cut(self, at: int, grid: Grid) -> Value:
        """Return a node's results on a grid."""
        node = self._old.nodes[at]
        grid = tuple(
            None if indices is not None and len(indices) == extent and (indices == np.arange(extent)).all() else indices
            for indices, extent in zip(grid, node.shape, strict=True)
        )
        key = at, *(None if indices is None else indices.tobytes() for indices in grid)
        if key not in self._made:
            self._made[key] = self._node(node, grid)
        return self._made[key]

    def _node(self, node: Node, grid: Grid) -> Value:
        if node.name == "port":
            shape = tuple(d if g is None else len(g) for d, g in zip(node.shape, grid, strict=True))
            self.ports.append((node.parameters["port"], grid))
            return self.graph.port(len(self.ports) - 1, shape, node.type)
        if node.name == "literal":
            number = node.parameters["number"]
            kept = number if all(g is None for g in grid) else taken(np.asarray(number), grid)
            return self.graph.literal(kept, node.type)
        passed, left = self._passed(node, grid)
        parameters, operands = passed
        made = self.graph.node(node.name, [self.cut(a, own) for a, own in operands], parameters)
        for axis, indices in enumerate(left):
            if indices is not None:
                made = self.graph.node("take", [made], {"index": indices, "axis": axis})
        return made

    def _passed(self, node: Node, grid: Grid) -> tuple[tuple[Mapping[str, Any], list[tuple[int, Grid]]], Grid]:
        """Return the parameters and the operands' grids of a node, and the grid that is left to take of its result."""
        shapes = [self._old.nodes[a].shape for a in node.args]
        rule = _rule(node, grid, shapes)
        if rule is None:
            uncut: list[Grid] = [(None,) * len(shape) for shape in shapes]
            return (node.parameters, list(zip(node.args, uncut, strict=True))), grid
        parameters, grids, left = rule
        return (parameters, list(zip(node.args, grids, strict=True))), left


_Rule: TypeAlias = "tuple[Mapping[str, Any], list[Grid], Grid] | None"


def _rule(node: Node, grid: Grid, shapes: Sequence[tuple[int, ...]]) -> _Rule:
    name, rank = node.name, len(node.shape)
    nothing: Grid = (None,) * rank
    if all(indices is None for indices in grid):
        return None
    if name in _POINTWISE and all(len(shape) == rank for shape in shapes):
        return node.parameters, [_aligned(grid, shape, node.shape) for shape in shapes], nothing
    if name in _REDUCTIONS and len(shapes[0]) == rank:
        axes = node.parameters["axes"]
        return node.parameters, [tuple(None if i in axes else g for i, g in enumerate(grid))], nothing
    if name in _ALONG:
        axis = node.parameters["axis"]
        own: Grid = tuple(None if i == axis else g for i, g in enumerate(grid))
        return node.parameters, [own], tuple(g if i == axis and rank > i else None for i, g in enumerate(grid))
    movement = _MOVEMENTS.get(name)
    return None if movement is None else movement(node, grid, shapes)


def _aligned(grid: Grid, shape: tuple[int, ...], full: tuple[int, ...]) -> Grid:
    return tuple(g if d == w else None for g, d, w in zip(grid, shape, full, strict=True))


def _matmul(node: Node, grid: Grid, shapes: Sequence[tuple[int, ...]]) -> _Rule:
    rank = len(node.shape)
    if rank < 2 or any(len(shape) != rank for shape in shapes):
        return None
    ends = ((grid[-2], None), (None, grid[-1]))
    batch = [_aligned(grid[:-2], shape[:-2], node.shape[:-2]) for shape in shapes]
    return node.parameters, [(*own, *end) for own, end in zip(batch, ends, strict=True)], (None,) * rank


def _transpose(node: Node, grid: Grid, _shapes: Sequence[tuple[int, ...]]) -> _Rule:
    own: list[Array | None] = [None] * len(grid)
    for at, axis in enumerate(node.parameters["order"]):
        own[axis] = grid[at]
    return node.parameters, [tuple(own)], (None,) * len(grid)


def _broadcast(node: Node, grid: Grid, shapes: Sequence[tuple[int, ...]]) -> _Rule:
    (shape,) = shapes
    if len(shape) != len(grid):
        return None
    to = tuple(d if g is None else len(g) for d, g in zip(node.shape, grid, strict=True))
    return {"to": to}, [_aligned(grid, shape, node.shape)], (None,) * len(grid)


def _reshape(node: Node, grid: Grid, shapes: Sequence[tuple[int, ...]]) -> _Rule:
    """Pass the axes that stay: the same extent, with as many elements before."""
    (shape,) = shapes
    places = {(math.prod(shape[:axis]), extent): axis for axis, extent in enumerate(shape) if extent > 1}
    own: list[Array | None] = [None] * len(shape)
    left: list[Array | None] = [None] * len(grid)
    to = list(node.shape)
    for axis, indices in enumerate(grid):
        if indices is None:
            continue
        source = places.get((math.prod(node.shape[:axis]), node.shape[axis]))
        if source is None:
            left[axis] = indices
        else:
            own[source], to[axis] = indices, len(indices)
    return {"to": tuple(to)}, [tuple(own)], tuple(left)


def _slice(node: Node, grid: Grid, shapes: Sequence[tuple[int, ...]]) -> _Rule:
    (shape,), own = shapes, []
    key: list[Any] = []
    left: list[Array | None] = [None] * len(grid)
    source = at = 0
    for part in node.parameters["key"]:
        if part is None:
            left[at], at = grid[at], at + 1
            key.append(None)
            continue
        if isinstance(part, tuple):
            indices, at = grid[at], at + 1
            own.append(None if indices is None else np.arange(shape[source])[slice(*part)][indices])
            key.append(part if indices is None else (None, None, None))
        else:
            own.append(None)
            key.append(part)
        source += 1
    own += grid[at:]
    return {"key": tuple(key)}, [tuple(own)], tuple(left)


def _flip(node: Node, grid: Grid, _shapes: Sequence[tuple[int, ...]]) -> _Rule:
    axes = node.parameters["axes"]
    own: Grid = tuple(None if i in axes else g for i, g in enumerate(grid))
    return node.parameters, [own], tuple(g if i in axes else None for i, g in enumerate(grid))


def _pad(node: Node, grid: Grid, _shapes: Sequence[tuple[int, ...]]) -> _Rule:
    frame = [(0, 0)] * (len(grid) - len(node.parameters["frame"])) + list(node.parameters["frame"])
    own: Grid = tuple(None if any(ends) else g for g, ends in zip(grid, frame, strict=True))
    return node.parameters, [own], tuple(g if any(ends) else None for g, ends in zip(grid, frame, strict=True))


def _windows(node: Node, grid: Grid, shapes: Sequence[tuple[int, ...]]) -> _Rule:
    """Pass the axes before the windows'; windows stay whole."""
    before = len(grid) - 2 * len(node.parameters["kernel"])
    own: Grid = (*grid[:before], *(None,) * (len(shapes[0]) - before))
    return node.parameters, [own], (*(None,) * before, *grid[before:])


def _concat(node: Node, grid: Grid, shapes: Sequence[tuple[int, ...]]) -> _Rule:
    axis = node.parameters["axis"]
    own: Grid = tuple(None if i == axis else g for i, g in enumerate(grid))
    return node.parameters, [own for _ in shapes], tuple(g if i == axis else None for i, g in enumerate(grid))


def _take(node: Node, grid: Grid, _shapes: Sequence[tuple[int, ...]]) -> _Rule:
    axis, index = node.parameters["axis"], node.parameters["index"]
    if index.ndim != 1:
        return None
    kept = index if grid[axis] is None else index[grid[axis]]
    own: Grid = tuple(None if i == axis else g for i, g in enumerate(grid))
    return {"index": kept, "axis": axis}, [own], (None,) * len(grid)


_MOVEMENTS = {
    "matmul": _matmul,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "reshape": _reshape,
    "slice": _slice,
    "flip": _flip,
    "pad": _pad,
    "windows": _windows,
    "concat": _concat,
    "take": _take,
}
