"""Operators that rearrange a tensor's elements, or return its extents: Transpose, Reshape, Squeeze, Expand, Shape."""

from __future__ import annotations

import math

import numpy as np

from ..arithmetic.tape import Call, Value


def transpose(c: Call, data: Value) -> Value:
    """The dimensions in the order of `perm`, reversed without it.

    data: rank r, any type; result: rank r. Source: ONNX Transpose-1 to 25.
    """
    given = c.ints("perm")
    order = tuple(reversed(range(data.rank))) if given is None else given
    c.require("permutation", sorted(order) == list(range(data.rank)))
    return data.transpose(*order)


def reshape(c: Call, data: Value, shape: Value | None = None) -> Value:
    """The elements in another shape: 0 means the input's extent, unless `allowzero` is 1; one -1 means the rest.

    data: any shape and type; shape: an attribute in version 1, int64 of rank 1 from 5 on.
    Source: ONNX Reshape-1 to 25.
    """
    if shape is not None and shape.rank != 1:
        c.open("shape-rank")
    wanted = c.ints("shape")
    if wanted is None:
        c.require("shape-given", False)
    wanted, allow = wanted or (), c.attr("allowzero", 0)
    if allow not in (0, 1):
        allow = c.open("allowzero-other") == "as-one"
    c.require("zero-place", bool(allow) or 0 not in wanted[data.rank :])
    c.require("extents", min(wanted, default=0) >= -1)
    c.require("infer-once", wanted.count(-1) <= 1)
    if allow:
        c.require("zero-or-infer", not {0, -1} <= set(wanted))
    extents = [data.shape[i] if extent == 0 and not allow else extent for i, extent in enumerate(wanted)]
    if -1 in extents:
        others = math.prod(extent for extent in extents if extent != -1)
        c.require("infer-some", others > 0)
        extents[extents.index(-1)] = data.size // others
    c.require("elements", math.prod(extents) == data.size)
    return data.reshape(*extents)


def flatten(c: Call, data: Value) -> Value:
    """A matrix: the dimensions before `axis` become its rows, the others its columns.

    data: rank r, any type. Source: ONNX Flatten-1 to 25.
    """
    axis = c.attr("axis")
    c.require_if_stated("axis-from-front", axis >= 0)
    c.require("axis-range", -data.rank <= axis <= data.rank)
    axis += data.rank if axis < 0 else 0
    return data.reshape(math.prod(data.shape[:axis]), math.prod(data.shape[axis:]))


def squeeze(c: Call, data: Value, axes: Value | None = None) -> Value:
    """The input without the dimensions of extent 1 in `axes`, or, without `axes`, without any.

    data: rank r, any type; axes: an attribute before version 13, then int64 of rank 1. Source: ONNX Squeeze-1 to 25.
    """
    given = _axes(c, axes, data.rank)
    ones = {axis for axis, extent in enumerate(data.shape) if extent == 1}
    if given is None or (not given and c.open("axes-none") == "all"):
        given = ones
    c.require("extent-one", given <= ones)
    return data.reshape(*(extent for axis, extent in enumerate(data.shape) if axis not in given))


def unsqueeze(c: Call, data: Value, axes: Value | None = None) -> Value:
    """The input with new dimensions of extent 1, which are `axes` in the output.

    data: rank r, any type; axes: an attribute before version 13, then int64 of rank 1.
    Source: ONNX Unsqueeze-1 to 25.
    """
    rank = data.rank + len(c.ints("axes") or ())
    new = _axes(c, axes, rank) or set()
    extents = iter(data.shape)
    return data.reshape(*(1 if axis in new else next(extents) for axis in range(rank)))


def _axes(c: Call, port: Value | None, rank: int) -> set[int] | None:
    """The indices in `axes`, counted from the front; None without axes."""
    if port is not None and port.rank != 1:
        c.require("axes-vector", "axes-vector" not in c.clauses)
        c.open("axes-rank")
    axes = c.ints("axes")
    if axes is None:
        return None
    c.require_if_stated("axes-from-front", min(axes, default=0) >= 0)
    c.require("axes-range", all(-rank <= axis < rank for axis in axes))
    places = {axis % rank for axis in axes}
    if len(places) < len(axes):
        for clause in ("axes-distinct", "axes-distinct-early"):
            c.require_if_stated(clause, False)
        c.open("axes-repeated")
    return places


def expand(c: Call, data: Value, shape: Value) -> Value:
    """The input broadcast with `shape`, in both directions: an extent of 1 on either side becomes the other extent.

    data: rank r, any type; shape: int64 of rank 1. Source: ONNX Expand-8 and 13.
    """
    c.require("shape-vector", shape.rank == 1)
    wanted = c.ints("shape") or ()
    rank = max(data.rank, len(wanted))
    pairs = [(1,) * (rank - len(extents)) + extents for extents in (data.shape, wanted)]
    c.require("compatible", all(a == b or 1 in (a, b) for a, b in zip(*pairs, strict=True)))
    c.require("extents", min(wanted, default=0) >= 0)
    return data.broadcast(*(b if a == 1 else a for a, b in zip(*pairs, strict=True)))


def tile(c: Call, data: Value, *numbers: Value) -> Value:
    """Copies of the input, one after the other: `repeats` along each axis, or in version 1 `tiles` along `axis`.

    data: rank r, any type; repeats: int64, shape (r); tiles and axis: one number each, of the input's type.
    Source: ONNX Tile-1 to 13.
    """
    if len(numbers) == 2:
        return _tile_early(c, data, *numbers)
    c.require("repeats-vector", numbers[0].rank == 1)
    repeats = c.ints("repeats") or ()
    c.require("repeats-length", len(repeats) == data.rank)
    c.require("repeats-range", min(repeats, default=0) >= 0)
    for axis, times in enumerate(repeats):
        if times != 1 and data.shape[axis]:
            data = data.take(np.tile(np.arange(data.shape[axis]), times), axis)
    return data


def _tile_early(c: Call, data: Value, tiles: Value, axis: Value) -> Value:
    c.require("one-number", tiles.size == axis.size == 1)
    if tiles.rank or axis.rank:
        c.open("number-rank")
    times, along = (float(c.known(name).reshape(())) for name in ("tiles", "axis"))
    c.require("whole-number", times.is_integer() and along.is_integer())
    if along < 0:
        c.open("axis-negative")
    c.require("axis-range", -data.rank <= along < data.rank)
    c.require("repeats-range", times >= 0)
    if times == 1:
        return data
    again = np.tile if c.open("repeated") == "copies" else np.repeat
    return data.take(again(np.arange(data.shape[int(along)]), int(times)), int(along))


def shape(c: Call, data: Value) -> Value:
    """The input's extents from `start` to `end`, exclusive, both clamped to [0, r], r the rank.

    data: any shape and type; result: int64, rank 1. Source: ONNX Shape-1 to 25.
    """
    kept = data.shape[slice(c.attr("start"), c.attr("end"))]
    return c.constant(np.array(kept, np.int64), "int64")


def size(c: Call, data: Value) -> Value:
    """The number of the input's elements: int64, rank 0.

    Source: ONNX Size-1 to 25.
    """
    return c.constant(data.size, "int64")
