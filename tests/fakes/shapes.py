"""Which elements meet in which result, index by index, as the standards' pages put it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

Shape: TypeAlias = tuple[int, ...]


def kept(shape: Shape, axes: Sequence[int]) -> Shape:
    """The shape of a reduction that keeps its axes, each with extent 1."""
    return tuple(1 if i in axes else extent for i, extent in enumerate(shape))


def reduced(shape: Shape, axes: Sequence[int]) -> Shape:
    """The shape of a reduction that removes its axes."""
    return tuple(extent for i, extent in enumerate(shape) if i not in axes)


def indices(shape: Shape) -> Iterator[Shape]:
    """All indices of a tensor in C order."""
    return itertools.product(*map(range, shape))


def reduction_groups(shape: Shape, axes: Sequence[int]) -> list[list[int]]:
    """For each result in C order, the positions of the inputs that it is the mean of."""
    groups: dict[Shape, list[int]] = {index: [] for index in indices(reduced(shape, axes))}
    for position, index in enumerate(indices(shape)):
        groups[reduced(index, axes)].append(position)
    return list(groups.values())


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Shapes aligned at the right: where they differ one of them has 1, or nothing."""
    rank = max(map(len, shapes))
    whole = []
    for axis in range(-rank, 0):
        extents = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        assert len(extents) <= 1, shapes
        whole.append(extents.pop() if extents else 1)
    return tuple(whole)


def broadcast_groups(shapes: Sequence[Shape]) -> list[list[int]]:
    """For each result in C order, the position in each input of the element that enters it."""
    return [[_position(index, shape) for shape in shapes] for index in indices(broadcast(shapes))]


def _position(index: Shape, shape: Shape) -> int:
    position = 0
    for i, extent in zip(index[len(index) - len(shape) :], shape, strict=True):
        position = position * extent + (i if extent > 1 else 0)
    return position
