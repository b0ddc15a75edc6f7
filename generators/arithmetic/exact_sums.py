"""Sums of float64 that are the same everywhere: exact ones, in pieces of 32 bits, and others in an order of our own."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ...cases.elements import Array

_BITS: Final = 32
_PIECES: Final = 16
"""Pieces up to which this is faster than adding up numbers of many bits one by one."""
_MOST: Final = 1 << 28
"""Addends whose pieces, of 33 bits and a sign, surely add up in 64 bits."""
_ALIKE: Final = 1 << 10
"""The addends up to which every version of NumPy adds in one order: its buffers hold more."""


def whole_sums(floats: Array, axes: tuple[int, ...]) -> tuple[Array, int] | None:
    """Return sums along `axes`, which stay with extent 1, as Python's integers, and the power of two of their unit.

    None where the addends lie too far apart, or are too many. They are finite.
    """
    mantissa, exponent = np.frexp(floats)
    whole = np.ldexp(mantissa, 53).astype(np.int64)  # 53 bits and a sign
    there = whole != 0
    unit = int(exponent.min(initial=1 << 20, where=there))
    widest = int(exponent.max(initial=-(1 << 20), where=there)) - unit + 53
    pieces = max(widest, 53) // _BITS + 2
    if pieces > _PIECES or floats.size > _MOST:
        return None
    shift = np.where(there, exponent - unit, 0)
    first, within = np.divmod(shift, _BITS)
    total = np.asarray(0, object)
    for place, piece in enumerate(_pieces(whole, within)):
        for start in range(pieces - place):
            added = np.where(first == start, piece, 0).sum(axis=axes, keepdims=True)
            if added.any():
                total = total + (added.astype(object) << (_BITS * (start + place)))
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(floats.shape))
    return np.broadcast_to(total, shape), (unit if there.any() else 53) - 53


def _pieces(whole: Array, shift: Array) -> tuple[Array, Array, Array]:
    """Return whole numbers of 53 bits, shifted to the left by up to 31, as three pieces with their sign."""
    mask = np.int64((1 << _BITS) - 1)
    magnitude, sign = np.abs(whole), np.sign(whole)
    low = ((magnitude & mask).astype(np.uint64) << shift.astype(np.uint64)).astype(np.uint64)
    high = (magnitude >> _BITS) << shift  # 21 bits, up to 52 when shifted
    second = (low >> np.uint64(_BITS)).astype(np.int64) + (high & mask)
    return sign * (low & np.uint64(mask)).astype(np.int64), sign * second, sign * (high >> _BITS)


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
