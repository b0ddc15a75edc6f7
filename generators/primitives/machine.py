"""The arithmetic of an implementation, in its own types: its order of sums, its division, its roundings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from ...cases.elements import Array, element_type
from .errors import format_of, nearest

_WIDE: Final = 24
_LANES: Final = 64
_BLOCK: Final = 16
Order: TypeAlias = Literal[
    "forward", "reverse", "pairwise", "lanes", "blocks", "compensated", "by-axis", "matmul", "fused"
]
"""The order of a sum: `lanes` are interleaved accumulators, `compensated` is Kahan's sum, `by-axis` sums one axis after
the other, `matmul` is a product with ones, `fused` adds unrounded products."""
Division: TypeAlias = Literal["after", "reciprocal", "before", "running", "corrected"]
"""The computation of a mean: a sum divided by n, multiplied by 1/n, a sum of quotients x/n, updated element by element
(Welford), or divided and then corrected by the mean of the residuals (two passes)."""
Deviation: TypeAlias = Callable[["Machine", Any, list[Array], Mapping[str, Any]], Array]
"""A mutant's result at a node, from the machine, the room (None for ports and literals), operands and parameters."""


@dataclass(frozen=True)
class Machine:
    """An implementation: the dtypes of results and inside sums, its order of sums, division, deviations at nodes.

    With float64 in both it computes all types in float64, and rounds outputs and casts.
    """

    type: np.dtype[Any]
    acc: np.dtype[Any]
    order: Order = "forward"
    deviate: Mapping[int, Deviation] = field(default_factory=lambda: MappingProxyType({}))
    division: Division = "after"

    def at(self, type_: str) -> Machine:
        """Return the machine for numbers of a type: 16-bit formats apply only to their own type."""
        if not type_ or self.type == (own := element_type(type_).dtype) or self.type == self.acc == np.float64:
            return self
        if format_of(type_).precision >= _WIDE:
            return Machine(own, own, self.order, division=self.division)
        if own.itemsize == self.type.itemsize:
            return Machine(own, own if self.acc == self.type else self.acc, self.order, division=self.division)
        return self

    def rounded(self, array: Array) -> Array:
        """Return real numbers in the type of results; others unchanged."""
        with np.errstate(all="ignore"):
            real = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
            return converted(array, self.type) if real else array

    def product(self, a: Array, b: Array) -> Array:
        """Return products, in the form that a sum adds."""
        kept = np.promote_types(self.acc, np.float64) if self.order == "fused" else self.acc
        with np.errstate(all="ignore"):
            return np.asarray(a.astype(kept) * b.astype(kept))

    def summed(self, x: Array, axes: Sequence[int]) -> Array:
        """Sum along axes of the array, which stay with extent 1, in this machine's order."""
        return self.combined(np.add, x, axes)

    def combined(self, operation: np.ufunc, x: Array, axes: Sequence[int]) -> Array:
        """Sum or multiply along axes of the array, which stay with extent 1, in this machine's order."""
        if x.dtype.kind in "iub":
            return _combined_integers(operation, x, tuple(axes))
        axes = tuple(a % x.ndim for a in axes)
        if not axes:  # nothing to combine
            return x.astype(self.acc)
        if self.order == "by-axis" and len(axes) > 1:
            for axis in reversed(axes):
                x = self.combined(operation, x, (axis,))
            return x
        kept = [1 if i in axes else d for i, d in enumerate(x.shape)]
        flat = _flat(x, axes)
        if not flat.shape[-1]:
            return np.full(kept, operation.identity, self.acc)
        with np.errstate(all="ignore"):
            if self.order == "fused" and operation is np.add:
                return _fused(flat, self.acc).reshape(kept)
            return np.asarray(_ordered(self.order, operation, flat.astype(self.acc), self.acc).reshape(kept))

    def averaged(self, x: Array, axes: Sequence[int], n: int) -> Array:
        """Return the mean of n > 1 elements along axes of the array, which stay with extent 1."""
        if self.division in ("after", "reciprocal"):
            return self._share(self.rounded(self.summed(x, axes)), n)
        if self.division == "before":
            return self.rounded(self.summed(self._share(x, n), axes))
        kept = [1 if i in {a % x.ndim for a in axes} else d for i, d in enumerate(x.shape)]
        if self.division == "running":
            return self.rounded(_running(_flat(x, axes).astype(self.acc), self.acc).reshape(kept))
        first = self._share(self.rounded(self.summed(x, axes)), n)
        with np.errstate(all="ignore"):
            left = self.rounded(x - first)
            more = self._share(self.rounded(self.summed(left, axes)), n)
            return self.rounded(np.where(np.isfinite(more), first + more, first).astype(first.dtype))

    def _share(self, x: Array, n: int) -> Array:
        wide = np.promote_types(x.dtype, np.float32)  # a 16-bit type cannot represent every count
        with np.errstate(all="ignore"):
            held = x.astype(wide)
            share = held * (wide.type(1) / wide.type(n)) if self.division == "reciprocal" else held / wide.type(n)
            return np.asarray(self.rounded(share.astype(x.dtype)))


def converted(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return real numbers in a type, rounded once: casts of float64 to bfloat16 go by way of float32."""
    if array.dtype == np.float64 and dtype.name == "bfloat16":
        array = nearest(format_of("bfloat16"), array)
    return array if array.dtype == dtype else array.astype(dtype)


def _combined_integers(operation: np.ufunc, x: Array, axes: tuple[int, ...]) -> Array:
    """Combine whole numbers: exactly if their type may not hold the result, for a later step that makes it fit."""
    sizes = operation.reduce(np.abs(x.astype(np.float64)), axis=axes, keepdims=True)
    fits = x.dtype.kind == "b" or bool((sizes < float(np.iinfo(x.dtype).max)).all())
    held = x if fits else x.astype(object)
    return np.asarray(operation.reduce(held, axis=axes, keepdims=True, dtype=held.dtype))


def _flat(x: Array, axes: Sequence[int]) -> Array:
    """Return the array with `axes` merged into the last axis."""
    axes = tuple(a % x.ndim for a in axes)
    moved = np.moveaxis(x, axes, range(-len(axes), 0))
    return moved.reshape(*(d for i, d in enumerate(x.shape) if i not in axes), math.prod(x.shape[a] for a in axes))


def _ordered(order: Order, operation: np.ufunc, flat: Array, acc: np.dtype[Any]) -> Array:
    """Combine the last axis, which is not empty, in an order."""
    n = flat.shape[-1]
    if order == "reverse":
        flat = flat[..., ::-1]
    elif order == "pairwise":
        while (n := flat.shape[-1]) > 1:
            added = operation(flat[..., : n // 2], flat[..., n // 2 : n // 2 * 2]).astype(acc)
            flat = np.concatenate([added, flat[..., n // 2 * 2 :]], -1)
    elif order in ("lanes", "blocks"):
        slices = [slice(i, None, 8) for i in range(8)] if order == "lanes" else _blocks(n, _BLOCK)
        parts = [_ordered("forward", operation, flat[..., span], acc) for span in slices if flat[..., span].shape[-1]]
        flat = np.stack(parts, -1)
    elif order == "compensated" and operation is np.add:
        lanes = [_compensated(flat[..., i::_LANES]) for i in range(min(n, _LANES))]
        return _compensated(np.stack(lanes, -1))
    elif order == "matmul" and operation is np.add and acc.kind == "f" and acc.itemsize > 2:
        return np.asarray(np.matmul(flat, np.ones((n, 1), acc))[..., 0])
    return np.asarray(operation.accumulate(flat, -1, dtype=acc)[..., -1])


def _blocks(n: int, size: int) -> list[slice]:
    return [slice(i, i + size) for i in range(0, n, size)]


def _compensated(flat: Array) -> Array:
    """Return Kahan's sum of the last axis; infinities and NaN are not compensated."""
    total = flat[..., 0]
    rest = np.zeros_like(total)
    for i in range(1, flat.shape[-1]):
        addend = (flat[..., i] - rest).astype(flat.dtype)
        after = (total + addend).astype(flat.dtype)
        rest = ((after - total).astype(flat.dtype) - addend).astype(flat.dtype)
        rest = np.where(np.isfinite(rest), rest, np.zeros_like(rest))
        total = after
    return np.asarray(total)


def _fused(flat: Array, acc: np.dtype[Any]) -> Array:
    """Return the sum of the last axis, with each element rounded only together with the partial sum."""
    total = converted(flat[..., 0], acc)
    for i in range(1, flat.shape[-1]):
        total = converted(total + flat[..., i], acc)
    return np.asarray(total)


def _running(flat: Array, acc: np.dtype[Any]) -> Array:
    """Return the mean of the last axis, updated by each element in turn; long axes in parts that are then merged."""
    parts = [flat[..., span] for span in _blocks(flat.shape[-1], max(_LANES, -(-flat.shape[-1] // _LANES)))]
    mean, count = _updated(parts[0], acc), parts[0].shape[-1]
    for part in parts[1:]:
        count += part.shape[-1]
        mean = _moved(mean, _updated(part, acc), part.shape[-1], count, acc)
    return mean


def _updated(flat: Array, acc: np.dtype[Any]) -> Array:
    mean = flat[..., 0]
    for k in range(2, flat.shape[-1] + 1):
        mean = _moved(mean, flat[..., k - 1], 1, k, acc)
    return np.asarray(mean)


def _moved(mean: Array, other: Array, weight: int, count: int, acc: np.dtype[Any]) -> Array:
    """Return a mean merged with another one that has `weight` of `count` elements."""
    step = (other - mean).astype(acc)
    wide = np.promote_types(acc, np.float32).type
    moved = (mean + (step.astype(wide) * wide(weight / count)).astype(acc)).astype(acc)
    infinite = ~(np.isfinite(mean) & np.isfinite(other))
    # if they are far apart, their difference may overflow though they do not
    shares = (mean.astype(wide) * wide((count - weight) / count) + other.astype(wide) * wide(weight / count)).astype(
        acc
    )
    return np.asarray(np.where(infinite, mean + other, np.where(np.isfinite(step), moved, shares)).astype(acc))
