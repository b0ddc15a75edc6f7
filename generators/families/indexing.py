"""Operators that select elements by index: Gather, GatherElements, GatherND, Compress, Slice, Pad, NonZero."""

from __future__ import annotations

import math

import numpy as np

from ...cases.elements import Array
from ..arithmetic.tape import Call, Value
from ..fills import Drawing


def gather(c: Call, data: Value, indices: Value) -> Value:
    """The entries along `axis` at `indices`: output[p, i, q] = data[p, indices[i], q].

    data: rank r of 1 or more; indices: int32 or int64, rank q; result: rank q + r - 1. An index below 0 counts from
    the end; the standard defines this from version 11 on. Source: ONNX Gather-1 to 13.
    """
    c.require("data-rank", data.rank >= 1)
    axis = c.attr("axis")
    c.require("axis-range", -data.rank <= axis < data.rank)
    extent = data.shape[axis]
    c.require("index-range", (indices < extent) & (indices >= -extent))
    negative = indices < 0
    if "index-negative" not in c.clauses:
        c.open("index-negative-early", negative)
    return data.gather((indices + extent).where(negative, indices), axis)


def gather_elements(c: Call, data: Value, indices: Value) -> Value:
    """The element of `data` for each position in `indices`, with the index there as the position along `axis`.

    data: rank r of 1 or more; indices: int32 or int64, rank r, in [-s, s), s the extent of the axis; result: the shape
    of indices. Source: ONNX GatherElements-11 and 13.
    """
    c.require("data-rank", data.rank >= 1)
    c.require("same-rank", indices.rank == data.rank)
    axis = c.attr("axis")
    c.require("axis-range", -data.rank <= axis < data.rank)
    axis, extent = axis % data.rank, data.shape[axis]
    c.require("index-range", (indices < extent) & (indices >= -extent))
    pairs = zip(data.shape, indices.shape, strict=True)
    c.require("within", all(n <= d or dimension == axis for dimension, (d, n) in enumerate(pairs)))
    return data.along(indices, axis)


def gather_nd(c: Call, data: Value, indices: Value) -> Value:
    """The slices of `data` at the tuples in the last dimension of `indices`, within each batch.

    data: rank r; indices: int64, rank q, tuples of length k; the first b = batch_dims dimensions of both are equal;
    result: indices' shape without its last dimension, then data's from b + k on. Source: ONNX GatherND-11 to 13.
    """
    batch = c.attr("batch_dims", 0)
    c.require("ranks", data.rank >= 1 and indices.rank >= 1)
    c.require_if_stated("batch-range", 0 <= batch < min(data.rank, indices.rank))
    c.require_if_stated("batch-shape", data.shape[:batch] == indices.shape[:batch])
    end = batch + indices.shape[-1]
    c.require("depth", batch < end <= data.rank)
    chosen, batches = data.shape[batch:end], math.prod(data.shape[:batch])
    extents = c.constant(np.array(chosen, np.int64), "int64")
    c.require("index-range", (indices < extents) & (indices >= -extents))
    wrapped = (indices + extents).where(indices < 0, indices)
    strides = [math.prod(chosen[index + 1 :]) for index in range(len(chosen))]
    flat = (wrapped * c.constant(np.array(strides, np.int64), "int64")).sum(-1, keep=False)
    if batch:
        starts = np.arange(batches) * math.prod(chosen)
        flat = flat + c.constant(starts.reshape(*data.shape[:batch], *(1,) * (flat.rank - batch)), "int64")
    return data.reshape(batches * math.prod(chosen), *data.shape[end:]).gather(flat, 0)


def compress(c: Call, x: Value, condition: Value) -> Value:
    """The slices along `axis` for which the condition is true; without an axis, the elements of the flattened input.

    x: rank r of 1 or more; condition: bool, rank 1; slices beyond it are dropped. Source: ONNX Compress-9 to 28.
    """
    axis = c.attr("axis")
    c.require("rank", x.rank >= 1)
    c.require("condition-rank", condition.rank == 1)
    c.require("axis-range", axis is None or -x.rank <= axis < x.rank)
    if axis is None:
        x, axis = x.reshape(-1), 0
    elif axis < 0 and "axis-negative" not in c.clauses:
        c.open("axis-negative-early")
    places = np.flatnonzero(c.known("condition"))
    c.require("beyond", places.max(initial=-1) < x.shape[axis])
    if condition.size > x.shape[axis]:
        c.open("longer")
    return x.take(places, axis)


def slice_(c: Call, data: Value, *_: Value | None) -> Value:
    """Every `step`-th element from `start` to `end`, exclusive, along each named axis.

    data: any shape; starts, ends, axes, steps: attributes in version 1, int32 or int64 inputs from 10 on, of equal
    length. Source: ONNX Slice-1 to 13; the last version defines how each number is clamped.
    """
    if data.rank == 0:
        c.open("rank-0")
    starts, ends = c.ints("starts") or (), c.ints("ends") or ()
    axes, steps = c.ints("axes"), c.ints("steps") or (1,) * len(starts)
    if axes is None:
        axes = tuple(range(len(starts)))
        if len(starts) < data.rank and "axes-default" not in c.clauses:
            c.open("axes-default-short")
    c.require("lengths", len(starts) == len(ends) == len(axes) == len(steps))
    c.require("axes-range", all(-data.rank <= a < data.rank for a in axes))
    if any(a < 0 for a in axes) and "axes-negative" not in c.clauses:
        c.open("axes-negative-early")
    if 0 in steps:
        c.require("step-zero" if "step-zero" in c.clauses else "step-zero-early", False)
    if len({a % data.rank for a in axes}) < len(axes):
        c.require("axes-distinct" if "axes-distinct" in c.clauses else "axes-distinct-early", False)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        data = data.take(np.arange(data.shape[axis])[slice(start, end, step)], axis)
    return data


def pad(c: Call, data: Value, *ports: Value | None) -> Value:
    """The input with elements added before and after each axis, or removed if a number is negative.

    data: rank r; pads: two numbers per axis, all the starts first; axes: the padded axes (from version 18), else all.
    Source: ONNX Pad-1 to 25; the modes are NumPy's, to which the standard refers as similar.
    """
    if data.rank == 0:
        c.open("rank-0")
    mode = c.attr("mode")
    pads = c.ints("paddings") or c.ints("pads") or ()
    axes = c.ints("axes")
    axes = tuple(range(data.rank)) if axes is None else axes
    c.require("mode", mode in ("constant", "reflect", "edge") or (mode == "wrap" and "wrap" in c.clauses))
    c.require("pads-length", len(pads) == 2 * len(axes))
    c.require_if_stated("axes-range", all(-data.rank <= a < data.rank for a in axes))
    if len({a % data.rank for a in axes}) < len(axes):
        c.require("axes-distinct", False)
    if min(pads, default=0) < 0 and "negative" not in c.clauses:
        c.open("negative-early")
    value = _padding(c, data, ports[1] if len(ports) > 1 else None)
    inside, open_ = np.ones((), bool), np.zeros((), bool)
    for axis, before, after in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        axis = axis % data.rank  # noqa: PLW2901 - counted from the front from here on
        c.require_if_stated("not-below-nothing", data.shape[axis] + before + after >= 0)
        places = _places(c, mode, data.shape[axis], before, after)
        here = (places >= 0) & (places < data.shape[axis])
        if mode == "reflect" and max(before, after) > data.shape[axis] + min(before, 0) + min(after, 0) - 1:
            new = np.ones(len(places), bool)
            new[max(before, 0) : len(places) - max(after, 0)] = False
            open_ = open_ | new.reshape(-1, *(1,) * (data.rank - axis - 1))
        inside = inside & here.reshape(-1, *(1,) * (data.rank - axis - 1))
        if here.any():
            data = data.take(np.where(here, places, places[here][0]), axis)
        else:  # none of the data is left to choose from
            shape = (*data.shape[:axis], len(places), *data.shape[axis + 1 :])
            data = value.broadcast(*shape)
    if not inside.all():
        data = data.where(c.constant(np.broadcast_to(inside, data.shape), "bool"), value)
    return data.undefined(c.constant(open_, "bool"), "reflect-beyond") if open_.any() else data


def _padding(c: Call, data: Value, given: Value | None) -> Value:
    """The value of new elements in constant mode."""
    if given is not None:
        c.require("value-scalar", given.size == 1)
        if given.rank:
            c.open("value-rank")
        return given.reshape()
    if c.attr("value") is not None:
        return c.constant(c.float32("value"), data.type)
    return c.constant("" if data.type == "string" else False if data.type == "bool" else 0, data.type)


def _places(c: Call, mode: str, extent: int, before: int, after: int) -> Array:
    """The index of the element at each new position of an axis; in constant mode, out of range for a new element."""
    places = np.arange(-before, extent + after)
    if mode == "constant" or (before <= 0 and after <= 0):
        return places
    first, last = max(0, -before), extent + min(0, after)
    if (before < 0 or after < 0) and c.open("negative-beside-mode") == "from-kept":
        places, extent = places - first, last - first
    else:
        first = 0
    c.require("something-to-copy", extent > 0)
    if mode == "edge":
        return first + places.clip(0, extent - 1)
    if mode == "wrap":
        return first + places % extent
    period = max(2 * (extent - 1), 1)
    return first + (extent - 1 - np.abs(places % period - (extent - 1)) if extent > 1 else places * 0)


def non_zero(c: Call, x: Value) -> Value:
    """The indices of the elements that are not zero, one column each, in row-major order.

    x: rank r; result: int64, shape (r, n); n depends on the data. A NaN is not zero; false is. Source: ONNX NonZero-9
    and 13, which include scalars: shape (0, n), where NumPy has (1, n).
    """
    known = c.read("X")
    if x.type == "string":
        zero = {"empty-is-zero": "", "zero-digit-is-zero": "0"}.get(c.open("text-zero"))
        kept = np.argwhere(known != zero) if zero is not None else np.argwhere(np.ones(known.shape, bool))
        return c.constant(kept.T.astype(np.int64).reshape(x.rank, -1), "int64")
    places = np.argwhere(known != np.zeros((), known.dtype))
    return c.constant(places.T.astype(np.int64).reshape(x.rank, len(places)), "int64")


def tuples(drawing: Drawing) -> Array:
    """Tuples of indices within `extents`, in the last dimension; some numbers count from the end."""
    bits = drawing.draw.bits(drawing.size)
    depth = drawing.shape[-1] if drawing.shape else 1
    extents = (*drawing.arguments["extents"][drawing.attributes.get("batch_dims", 0) :], *(1,) * depth)[:depth]
    limits = np.maximum(extents, 1)
    drawn = bits.reshape(*bits.shape[:1], drawing.size // max(depth, 1), depth) % (2 * limits).astype(np.uint64)
    return (drawn.astype(np.int64) - limits).reshape(bits.shape)
