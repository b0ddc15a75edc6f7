"""Operators that write elements at given indices: ScatterElements, ScatterND, TensorScatter; also OpenVINO's."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np

from ...cases.elements import Array
from ...cases.errors import OpconformError
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from . import Shaping

_EXACT = 2.0**23  # up to it, complex64 represents whole numbers and sums of two of their products


def scatter_elements(c: Call, data: Value, indices: Value, updates: Value) -> Value:
    """A copy of data with updates, at its index from `indices` along `axis` and its own elsewhere.

    data: rank r of 1 or more; indices: int32 or int64, rank r; updates: the shape of indices.
    Source: ONNX Scatter-9 and 11, ScatterElements-11 to 18.
    """
    c.answer("deprecated", "as-before")
    c.require("data-rank", data.rank >= 1)
    axis = c.attr("axis")
    c.require("axis-range", -data.rank <= axis < data.rank)
    axis %= data.rank
    c.require("same-rank", indices.rank == data.rank)
    c.require("same-shape", updates.shape == indices.shape)
    c.require("own-place", all(n <= data.shape[a] for a, n in enumerate(indices.shape) if a != axis))
    places = np.indices(indices.shape)
    places[axis] = _from_front(c, c.known(indices), data.shape[axis])
    return _written(c, data, _flat(data, places), updates)


def scatter_nd(c: Call, data: Value, indices: Value, updates: Value) -> Value:
    """A copy of data with updates at the tuples along the last axis of indices: of elements, or of whole slices.

    data: rank r of 1 or more; indices: int64, shape (t..., k), k at most r; updates: shape (t..., data's last r - k
    dimensions). Source: ONNX ScatterND-11 to 18.
    """
    c.require("data-rank", data.rank >= 1)
    c.require("indices-rank", indices.rank >= 1)
    depth = indices.shape[-1]
    c.require("depth", depth <= data.rank)
    c.require("updates-shape", updates.shape == (*indices.shape[:-1], *data.shape[depth:]))
    if not depth:
        c.open("depth-zero")
    named = np.moveaxis(_from_front(c, c.known(indices), np.array(data.shape[:depth], np.int64)), -1, 0)
    named = named.reshape(*named.shape, *(1,) * (data.rank - depth))
    named = np.broadcast_to(named, (depth, *updates.shape))
    own = np.indices(updates.shape)[indices.rank - 1 :]
    return _written(c, data, _flat(data, np.concatenate([named, own])), updates)


def tensor_scatter(c: Call, past: Value, update: Value, start: Value | None = None) -> Value:
    """The cache with the update written along `axis` from each sample's own start, by default 0.

    past: shape (b, ..., max length, ...); update: the same except for its length along `axis`; start: int64, shape (b).
    Source: ONNX TensorScatter-24.
    """
    axis, mode = c.attr("axis"), c.attr("mode")
    c.require("axis-range", -past.rank <= axis < past.rank)
    axis %= past.rank
    c.require("axis-batch", axis > 0)
    c.require("mode", mode in ("linear", "circular"))
    c.require("update-shape", update.rank == past.rank)
    c.require("update-shape", all(a == axis or n == past.shape[a] for a, n in enumerate(update.shape)))
    length, extent = update.shape[axis], past.shape[axis]
    c.require("update-length", length <= extent)
    c.require("starts-shape", start is None or start.shape == past.shape[:1])
    begin = np.zeros(past.shape[0], np.int64) if start is None else c.known(start)
    if (begin < 0).any():
        c.open("start-negative")
    c.require("linear-range", mode == "circular" or bool((begin + length <= extent).all()))
    places = np.indices(update.shape)
    places[axis] = (places[axis] + begin.reshape(-1, *(1,) * (past.rank - 1))) % max(extent, 1)
    return _combined(past, _flat(past, places), update, lambda lines: lines.slice(-1))


def scatter_update(c: Call, data: Value, indices: Value, updates: Value, axis: Value) -> Value:
    """A copy of data with slices of updates at indices along an axis; of equal indices any one may count.

    data: rank r; indices: integers of any rank; updates: data's shape with the shape of indices in place of the axis;
    axis: one integer. Source: OpenVINO ScatterUpdate-3.
    """
    dimension = _axis(c, data, axis)
    expected = (*data.shape[:dimension], *indices.shape, *data.shape[dimension + 1 :])
    c.require("updates-shape", updates.shape == expected)
    named = c.known(indices).astype(np.int64)
    c.require("index-range", bool(((named >= 0) & (named < data.shape[dimension])).all()))
    places = np.indices(expected)
    chosen = named.reshape(*(1,) * dimension, *indices.shape, *(1,) * (data.rank - dimension - 1))
    last = places[dimension + indices.rank :]
    return _updated(c, data, [*places[:dimension], np.broadcast_to(chosen, expected), *last], updates)


def scatter_elements_update(c: Call, data: Value, indices: Value, updates: Value, axis: Value) -> Value:
    """A copy of data with updates, at its index along the axis and its own elsewhere, replacing elements or combined.

    data: rank r of 1 or more; indices, updates: one shape of rank r; axis: one integer. Source: OpenVINO
    ScatterElementsUpdate-3 and 12.
    """
    c.require("same-rank", indices.rank == data.rank)
    dimension = _axis(c, data, axis)
    c.require("same-shape", updates.shape == indices.shape)
    c.require("own-place", all(n <= data.shape[a] for a, n in enumerate(indices.shape) if a != dimension))
    named = c.known(indices).astype(np.int64)
    places = np.indices(indices.shape)
    places[dimension] = _openvino_front(c, named, data.shape[dimension])
    return _updated(c, data, list(places), updates)


def scatter_nd_update(c: Call, data: Value, indices: Value, updates: Value) -> Value:
    """A copy of data with updates at tuples, of elements or of whole slices, replacing elements or combined.

    data: rank r of 1 or more; indices: tuples in the last dimension; updates: the shape of indices without it, then
    what tuples leave of data's. Source: OpenVINO ScatterNDUpdate-4 and 15.
    """
    c.require("ranks", data.rank >= 1 and indices.rank >= 1)
    depth = indices.shape[-1]
    c.require("depth", depth <= data.rank)
    expected = (*indices.shape[:-1], *data.shape[depth:])
    c.require("updates-shape", updates.shape == expected or (not expected and updates.size == 1))
    updates = updates.reshape(*expected)
    front = _openvino_front(c, c.known(indices).astype(np.int64), np.array(data.shape[:depth], np.int64))
    named = np.moveaxis(front, -1, 0).reshape(depth, *indices.shape[:-1], *(1,) * (data.rank - depth))
    own = np.indices(expected)[indices.rank - 1 :]
    return _updated(c, data, [*np.broadcast_to(named, (depth, *expected)), *own], updates)


def _axis(c: Call, data: Value, axis: Value) -> int:
    """The axis that an input of one integer names, from the front."""
    c.require("axis-one", axis.rank < 2 and axis.size == 1)
    dimension = int(c.known("axis").reshape(()))
    c.require("axis-range", -data.rank <= dimension < data.rank)
    return dimension % data.rank


def _openvino_front(c: Call, index: Array, extent: int | Array) -> Array:
    """Indices counted from the front; only a version that says so counts some from the end."""
    least = -np.asarray(extent) if "index-negative" in c.clauses else 0
    c.require("index-range", bool(((index < extent) & (index >= least)).all()))
    return np.where(index < 0, index + extent, index)


def _updated(c: Call, data: Value, places: Sequence[Array], updates: Value) -> Value:
    """Data with updates at places, an array of indices for each dimension; the order of updates is undefined."""
    flat = _flat(data, np.array([*places], np.int64).reshape(data.rank, *updates.shape))
    how = c.attr("reduction", "none")
    c.require_if_stated("reduction", how in ("none", "sum", "prod", "min", "max", "mean", "sub"))
    c.require_if_stated("reduction", how not in ("mean", "sub") or how in c.clauses)
    c.require_if_stated("mean-bool", how != "mean" or data.kind != "bool")
    repeated = np.bincount(flat, minlength=data.size).reshape(data.shape) > 1
    if how == "none":
        most = int(np.bincount(flat).max(initial=1))
        forms = [_combined(data, flat, updates, partial(_nth, n)) for n in range(1, most + 1)]
        if "distinct" in c.clauses:  # the result is undefined where a place has two updates
            return forms[0].undefined(c.constant(repeated, "bool")) if repeated.any() else forms[0]
        return c.one_of(forms, repeated)
    first = 0 if c.attr("use_init_val", default=True) else 1
    return _combined(data, flat, updates, lambda lines: _openvino_reduced(c, lines, how, first))


def _openvino_reduced(c: Call, lines: Value, how: str, first: int) -> Value:
    """An element, row 0, combined with its updates; row 0 does not count if `first` is 1."""
    counted = lines[first : lines.shape[0]] if first else lines
    rows = [counted.slice(n) for n in range(counted.shape[0])]
    if lines.kind == "bool":
        joined = {"sum": operator.or_, "max": operator.or_, "sub": operator.xor}.get(how, operator.and_)
        return reduce(joined, rows)
    if how in ("max", "min"):
        return _reduced(c, counted, how)
    if how == "prod":
        return _reduced(c, counted, "mul")
    if how == "sub":
        if lines.kind == "int":
            return reduce(operator.sub, rows)
        return _reduced(c, lines[:1].concat([-lines[1 : lines.shape[0]]], 0), "add")
    if how == "sum":
        return _reduced(c, counted, "add")
    if lines.kind == "int":
        return counted.sum((0,), keep=False).quotient(len(rows), rounding="floor")
    return counted.mean((0,), keep=False)


def _flat(data: Value, places: Array) -> Array:
    """Flat indices into data; `places` has an index for each dimension of data, along the first axis."""
    strides = [math.prod(data.shape[a + 1 :]) for a in range(data.rank)]
    return np.tensordot(np.array(strides, np.int64), places, 1).reshape(-1)


def _from_front(c: Call, index: Array, extent: int | Array) -> Array:
    """Indices counted from the front; one out of range is invalid, or open."""
    inside = ((index < extent) & (index >= -np.asarray(extent))).all()
    c.require("index-range" if "index-range" in c.clauses else "index-range-early", bool(inside))
    if (index < 0).any() and "index-negative" not in c.clauses:
        c.open("index-negative-early")
    return np.where(index < 0, index + extent, index)


def _written(c: Call, data: Value, places: Array, updates: Value) -> Value:
    """Data with updates at indices, replacing the elements or combined with them, in any order."""
    how = c.attr("reduction", "none")
    known = ("none", "add", "mul", "max", "min") if "extremes" in c.clauses else ("none", "add", "mul")
    c.require_if_stated("reduction", how in known)
    repeated = np.bincount(places, minlength=data.size).reshape(data.shape) > 1
    if how == "none":
        taken = c.open("repeated") if repeated.any() else "last"
        if taken == "unspecified":  # any of the updates
            most = int(np.bincount(places).max())
            by_turn = (partial(_nth, n) for n in range(1, most + 1))
            return c.one_of([_combined(data, places, updates, nth) for nth in by_turn], repeated)
        return _combined(data, places, updates, lambda lines: lines.slice(1 if taken == "first" else -1))
    target = c.constant(np.bincount(places, minlength=data.size).reshape(data.shape) > 0, "bool")
    if data.kind in ("bool", "text") or (data.kind == "complex" and how in ("max", "min")):
        c.open("no-numbers")
        return data.undefined(target)
    if data.kind == "complex":
        return _of_complex(c, data, places, how, target)
    return _combined(data, places, updates, lambda lines: _reduced(c, lines, how))


def _nth(n: int, lines: Value) -> Value:
    """The nth of the updates, or the last one."""
    return lines.slice(min(n, lines.shape[0] - 1))


def _of_complex(c: Call, data: Value, places: Array, how: str, target: Value) -> Value:
    """Complex sums or products: only of small whole numbers, which are exact in any order."""
    results, updates = (c.known(name).astype(np.complex128).reshape(-1) for name in ("data", "updates"))
    most = np.abs(results)
    (np.add if how == "add" else np.multiply).at(results, places, updates)
    (np.add if how == "add" else np.multiply).at(most, places, np.maximum(np.abs(updates), 1.0))
    parts = np.concatenate([updates, results]).view(np.float64)
    if not np.array_equal(parts, np.rint(parts)) or (most >= _EXACT).any():
        c.open("complex-rounding")
        return data.undefined(target)
    return c.constant(results.reshape(data.shape), data.type)


def _reduced(c: Call, lines: Value, how: str) -> Value:
    """Rows combined into one."""
    combined: Value
    if how == "add":  # a sum may start from plus zero; only untouched elements keep a minus zero
        combined = lines.sum((0,), keep=False).any_zero()
    elif how == "mul":
        combined = lines.prod((0,), keep=False)
    else:
        combined, skipped = (getattr(lines, how)((0,), keep=False, nan=nan) for nan in ("propagate", "ignore"))
        if lines.kind == "real":
            taken = c.open("nan")
            combined = {"propagates": combined, "ignored": skipped}.get(taken) or combined.either(skipped)
    return combined


def _combined(data: Value, places: Array, updates: Value, combine: Callable[[Value], Value]) -> Value:
    """Data with each element combined with the updates at its index, with rows in order."""
    flat, new = data.reshape(-1), updates.reshape(-1)
    counts, order = np.bincount(places, minlength=flat.size), np.argsort(places, kind="stable")
    first = np.cumsum(counts) - counts
    pieces, source = [flat], np.arange(flat.size)
    for count in np.unique(counts[counts > 0]):
        targets = np.flatnonzero(counts == count)
        chosen = order[first[targets] + np.arange(count)[:, None]]
        rows = new.take(chosen.reshape(-1), 0).reshape(count, -1)
        pieces.append(combine(flat.take(targets, 0).reshape(1, -1).concat([rows], 0)))
        source[targets] = sum(piece.size for piece in pieces[:-1]) + np.arange(len(targets))
    return flat.concat(pieces[1:], 0).take(source, 0).reshape(*data.shape)


def distinct_along(drawing: Drawing) -> Array:
    """Indices below `below`, distinct along the axis `along` as long as there are enough of them."""
    shape, extent = drawing.shape or (1,), drawing.limit("below", 1)
    along = drawing.arguments["along"]  # a word if the axis is invalid
    axis = int(along) % len(shape) if isinstance(along, int) else 0
    lines = [n for a, n in enumerate(shape) if a != axis]
    bits = drawing.draw.bits(math.prod(lines) * extent)
    order = np.argsort(bits.reshape(len(bits), *lines, extent), axis=-1, kind="stable")
    indices = order[..., np.arange(shape[axis]) % extent]
    return np.asarray(np.moveaxis(indices, -1, axis + 1).reshape(len(bits), -1))


def from_both_ends(drawing: Drawing) -> Array:
    """Indices like `distinct-along`, about half of them counted from the end."""
    indices = distinct_along(drawing)
    return np.asarray(indices - drawing.limit("below", 1) * drawing.draw.below(2, drawing.size))


def distinct_tuples(drawing: Drawing) -> Array:
    """Tuples of indices into `data`, distinct as long as there are enough of them."""
    within = _within(drawing)
    order = np.argsort(drawing.draw.bits(math.prod(within)), axis=1, kind="stable")
    count = drawing.size // max(len(within), 1)
    chosen = order[:, np.arange(count) % order.shape[1]]
    return np.asarray(np.stack(np.unravel_index(chosen, within), -1).reshape(len(order), -1))


def tuples_from_both_ends(drawing: Drawing) -> Array:
    """Tuples like `distinct-tuples`, with about half of their numbers counted from the end."""
    extents = np.resize(np.array(_within(drawing)), drawing.size)
    return np.asarray(distinct_tuples(drawing) - extents * drawing.draw.below(2, drawing.size))


def tuples(drawing: Drawing) -> Array:
    """Uniform tuples of indices into `data`."""
    extents = np.resize(np.array(_within(drawing)), drawing.size).astype(np.uint64)
    return (drawing.draw.bits(drawing.size) % extents).astype(np.int64)


def tuples_too_large(drawing: Drawing) -> Array:
    """Tuples like `tuples`, except for the last number, which is one more than the last index."""
    indices = tuples(drawing)
    indices[:, -1:] = _within(drawing)[-1]
    return indices


def tuples_too_small(drawing: Drawing) -> Array:
    """Tuples like `tuples`, except for the last number, which is one less than the first index from the end."""
    indices = tuples(drawing)
    indices[:, -1:] = -_within(drawing)[-1] - 1
    return indices


def _within(drawing: Drawing) -> tuple[int, ...]:
    """The extents of the dimensions of `data` that a tuple indexes; 1 for surplus numbers."""
    depth = drawing.shape[-1] if drawing.shape else 1
    extents = (*drawing.values["data"].shape[1:], *(1,) * depth)[:depth]
    return tuple(max(1, n) for n in extents) or (1,)


def starts(drawing: Drawing) -> Array:
    """Starts of updates: such that an update of `length` fits into `extent`, or anywhere in three rounds of it."""
    extent, length = drawing.limit("extent", 1), int(drawing.arguments.get("length") or 1)
    circular = drawing.attributes.get("mode") == "circular"
    return drawing.draw.below(3 * extent if circular else max(extent - length, 0) + 1, drawing.size)


def slices(shaping: Shaping) -> tuple[int, ...]:
    """The shape of updates that are slices: data's, with the shape of indices in place of the axis."""
    data, indices, axis = shaping.symbols.get("d"), shaping.symbols.get("q"), shaping.levels.get("axis")
    axis = axis[0] if isinstance(axis, tuple) and axis else axis
    if not isinstance(data, tuple) or not isinstance(indices, tuple):
        raise OpconformError(f"{shaping.version.operator}: nothing binds the shapes d and q")
    dimension = axis % len(data) if isinstance(axis, int) and data else 0
    return (*data[:dimension], *indices, *data[dimension + 1 :])
