"""Sums of float64 in an order of our own: NumPy's differs between its versions where there is much to add."""

from __future__ import annotations

import math

import numpy as np

from ...cases.elements import Array

_ALIKE = 1 << 10
"""The addends up to which every version of NumPy adds in one order: its buffers hold more."""


def ordered_sum(values: Array, axes: tuple[int, ...], *, keepdims: bool) -> Array:
    """Return the sum over `axes`: the second half is added to the first, element by element, until one is left."""
    size = math.prod(values.shape[axis] for axis in axes)
    if size <= _ALIKE:
        return np.asarray(values.sum(axis=axes, keepdims=keepdims))
    reduced = {axis % values.ndim for axis in axes}
    kept = [d for axis, d in enumerate(values.shape) if axis not in reduced]
    parts = np.moveaxis(values, sorted(reduced), range(-len(reduced), 0)).reshape(*kept, size)
    while (half := parts.shape[-1] // 2) > 0:
        added = parts[..., :half] + parts[..., half : 2 * half]
        odd = parts.shape[-1] % 2
        parts = np.concatenate([added, parts[..., -1:]], axis=-1) if odd else added
    shape = [1 if axis in reduced else d for axis, d in enumerate(values.shape)] if keepdims else kept
    return parts.reshape(shape)
