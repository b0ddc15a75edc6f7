"""Orders in which implementations add up: each takes addends as rows, (n, ...), and returns their sum, (...)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from ...cases.elements import Array

Order: TypeAlias = Callable[[Array], Array]

_LOOP = 512  # addends up to which a loop over them goes one by one; beyond, it keeps 64 lanes
_LANES = 64
_WIDER: Mapping[str, str] = MappingProxyType({"float16": "float32", "float32": "float64", "float64": "longdouble"})


def sequential(x: Array) -> Array:
    """Return the sum, one addend after the other."""
    return np.asarray(np.add.accumulate(x, axis=0)[-1]) if len(x) else np.zeros(x.shape[1:], x.dtype)


def _from_zero(x: Array) -> Array:
    return sequential(np.concatenate([np.zeros_like(x[:1]), x])) if len(x) else sequential(x)


def _numpy(x: Array) -> Array:
    return np.asarray(np.add.reduce(np.ascontiguousarray(np.moveaxis(x, 0, -1)), axis=-1, dtype=x.dtype))


def _pairwise(x: Array) -> Array:
    while len(x) > 1:
        even = len(x) // 2 * 2
        x = np.concatenate([x[0:even:2] + x[1:even:2], x[even:]])
    return sequential(x)


def _lanes(lanes: int, x: Array) -> Array:
    """Add up every lanes-th addend, as vector units do; then the lanes, then what is left over."""
    return sequential(np.concatenate([in_lanes(x, lanes), x[len(x) // lanes * lanes :]]))


def in_lanes(x: Array, lanes: int) -> Array:
    """Return the partial sums of every lanes-th addend, of as many as fill all lanes."""
    whole = len(x) // lanes * lanes
    if not whole:
        return x[:0]
    return np.asarray(np.add.accumulate(x[:whole].reshape(whole // lanes, lanes, *x.shape[1:]), axis=0)[-1])


def _blocks(size: int, x: Array) -> Array:
    starts = np.arange(0, len(x), size)
    parts = [sequential(x[start : start + size]) for start in starts]
    return sequential(np.stack(parts)) if parts else sequential(x)


def _sorted(x: Array) -> Array:
    return sequential(np.take_along_axis(x, np.argsort(np.abs(x), axis=0, kind="stable"), axis=0))


def _rows(x: Array) -> Array:
    """Return long columns as shorter ones, (rows, lanes, ...), the last row filled up with zeros."""
    lanes = 1 if len(x) <= _LOOP else _LANES
    short = -len(x) % lanes
    filled = np.concatenate([x, np.zeros((short, *x.shape[1:]), x.dtype)])
    return filled.reshape(len(filled) // lanes, lanes, *x.shape[1:])


def _compensated(x: Array) -> Array:
    """Add up with Kahan's correction; where it becomes NaN beside infinities, without."""
    rows = _rows(x)
    total = np.zeros_like(rows[0]) if len(rows) else np.zeros((1, *x.shape[1:]), x.dtype)
    lost = np.zeros_like(total)
    for row in rows:
        term = row - lost
        grown = total + term
        lost = (grown - total) - term
        total = grown
    plain = sequential(x)
    whole = sequential(total)
    return np.where(np.isfinite(whole), whole, plain).astype(x.dtype)


def running_mean(x: Array) -> Array:
    """Return the mean, updated addend by addend (Welford), long columns in lanes that are merged by their weights.

    Beside infinities, where the update would become NaN, it is the sum that is divided.
    """
    lanes = 1 if len(x) <= _LOOP else _LANES
    one = x.dtype.type
    whole = len(x) // lanes * lanes
    parts = [(column[0], whole // lanes) for column in _updated(x[:whole].reshape(whole // lanes, lanes, *x.shape[1:]))]
    parts += [(value, 1) for value in x[whole:]]
    mean, seen = parts[0]
    for other, more in parts[1:]:
        seen += more
        mean = mean + (other - mean) * (one(more) / one(seen))
    plain = sequential(x) / one(len(x))
    return np.where(np.isfinite(x).all(axis=0) & np.isfinite(mean), mean, plain).astype(x.dtype)


def _updated(rows: Array) -> list[tuple[Array]]:
    mean = rows[0]
    for k, row in enumerate(rows[1:], 2):
        mean = mean + (row - mean) / rows.dtype.type(k)
    return [(column,) for column in mean]


def fused(x: Array, inverse: np.generic) -> Array:
    """Return Σ x·inverse with each product and addition rounded once together, in lanes where there are many."""
    # The next format holds the product, but for float64, and rounds a second time: close enough to a fused operation.
    wider = np.dtype(_WIDER.get(x.dtype.name, np.promote_types(x.dtype, np.float32)))
    rows = _rows(x)
    total = (rows[0].astype(wider) * inverse).astype(x.dtype)
    for row in rows[1:]:
        total = (row.astype(wider) * inverse + total).astype(x.dtype)
    return sequential(total)


ORDERS: Mapping[str, Order] = MappingProxyType(
    {
        "sequential": sequential,
        "from-zero": _from_zero,
        "reversed": lambda x: sequential(x[::-1]),
        "numpy": _numpy,
        "pairwise": _pairwise,
        "4-lanes": partial(_lanes, 4),
        "8-lanes": partial(_lanes, 8),
        "16-lanes": partial(_lanes, 16),
        "blocks-of-32": partial(_blocks, 32),
        "by-magnitude": _sorted,
        "compensated": _compensated,
    }
)
