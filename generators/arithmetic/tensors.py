"""What every number type offers to references: tensors with a leading lane axis that the formula does not see.

A lane is one case. The cases of a program are stacked along axis 0, so that one evaluation of a reference serves all
of them; axes and shapes in a reference are those of one lane.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Protocol, Self, TypeAlias

import numpy as np

from ...cases.elements import Array
from ...cases.program import count

Axes: TypeAlias = tuple[int, ...]


class Tensor(Protocol):
    """The primitives that all number types share; those of real numbers alone are in Bounded."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one lane."""

    def sum(self, axes: Axes, keepdims: bool) -> Self:
        """Add up the elements along `axes`, in any order."""

    def __truediv__(self, divisor: int, /) -> Self:
        """Divide by a positive whole number that the formula knows exactly."""

    def stack(self, others: Sequence[Self]) -> Self:
        """Broadcast this tensor and `others` to one shape and stack them along a new first axis."""


def extent(tensor: Tensor, axes: Axes) -> int:
    """Return how many elements are reduced into one along `axes`."""
    return count(tuple(tensor.shape[a] for a in axes))


def lane_axes(axes: Axes) -> Axes:
    """Return `axes` of a lane as axes of the array with its leading lane axis."""
    return tuple(a + 1 for a in axes)


def lane_stack(arrays: Sequence[Array]) -> Array:
    """Broadcast arrays lane by lane, NumPy's rule for the rest of the shape, and stack them along axis 1."""
    shape = broadcast_shape(tuple(a.shape[1:] for a in arrays))
    stacked = np.empty((len(arrays[0]), len(arrays), *shape), arrays[0].dtype)
    for i, array in enumerate(arrays):
        stacked[:, i] = array.reshape(array.shape[:1] + (1,) * (len(shape) + 1 - array.ndim) + array.shape[1:])
    return stacked


@functools.lru_cache(maxsize=1024)
def broadcast_shape(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Broadcast any number of shapes; NumPy takes a limited number at a time. Raises ValueError."""
    whole: tuple[int, ...] = ()
    for shape in dict.fromkeys(shapes):
        whole = np.broadcast_shapes(whole, shape)
    return whole
