"""Operators that move, blank or cut blocks: DepthToSpace, SpaceToDepth, Trilu, ReverseSequence, CenterCropPad."""

from __future__ import annotations

import numpy as np

from ..arithmetic.tape import Call, Value

_ORDERS = {"DCR": "depth-column-row", "CRD": "column-row-depth"}


def depth_to_space(c: Call, x: Value) -> Value:
    """Blocks of b by b elements from b² channels.

    x: [N, C, H, W], C a multiple of b²; result: [N, C / b², H b, W b]. The channels of a block are the outer part of C
    (mode DCR) or the inner one (CRD); version 1 does not define which. Source: ONNX DepthToSpace-1 to 28.
    """
    size = _blocksize(c, x)
    n, channels, height, width = x.shape
    c.require("divides", channels % (size * size) == 0)
    depth = channels // (size * size)
    if _order(c) == "depth-column-row":
        blocks = x.reshape(n, size, size, depth, height, width).transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = x.reshape(n, depth, size, size, height, width).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(n, depth, height * size, width * size)


def space_to_depth(c: Call, x: Value) -> Value:
    """Channels from the elements of blocks: the inverse of `depth_to_space`.

    x: [N, C, H, W], H and W multiples of b; result: [N, C b², H / b, W / b]. Versions 1 and 13 do not define
    which part of the channels is the outer one. Source: ONNX SpaceToDepth-1 to 28.
    """
    size = _blocksize(c, x)
    n, depth, height, width = x.shape
    c.require("divides", height % size == 0 and width % size == 0)
    blocks = x.reshape(n, depth, height // size, size, width // size, size)
    order = (0, 3, 5, 1, 2, 4) if _order(c) == "depth-column-row" else (0, 1, 3, 5, 2, 4)
    return blocks.transpose(*order).reshape(n, depth * size * size, height // size, width // size)


def _blocksize(c: Call, x: Value) -> int:
    size = int(c.attr("blocksize"))
    c.require("rank", x.rank == 4)
    c.require("blocksize", size >= 1)
    return size


def _order(c: Call) -> str:
    mode = c.attr("mode")
    if mode is None:
        return c.open("order")
    c.require("mode", mode in _ORDERS)
    return _ORDERS[mode]


def trilu(c: Call, x: Value, k: Value | None = None) -> Value:
    """The elements of each matrix on and above the k-th diagonal (below, with upper=0), and zeros elsewhere.

    x: shape [..., N, M]; k: int64, rank 0; 0 is the main diagonal, 1 the one above it. Source: ONNX Trilu-14.
    """
    c.require("rank", x.rank >= 2)
    c.require("scalar-k", k is None or k.rank == 0)
    upper = c.attr("upper")
    if upper not in (0, 1):
        upper = {"as-one": 1, "as-zero": 0}[c.open("upper-other")]
    rows, columns = (np.arange(n, dtype=np.int64) for n in x.shape[-2:])
    diagonal = c.constant(columns - rows[:, np.newaxis], "int64")
    k = c.constant(0, "int64") if k is None else k
    return _kept(c, x, diagonal >= k if upper else diagonal <= k)


def _kept(c: Call, x: Value, kept: Value) -> Value:
    """The elements where `kept` is true, zero elsewhere; the standard does not define a zero of text."""
    if x.type != "string":
        return x.where(kept, c.constant(False if x.type == "bool" else 0, x.type))
    masked = x.where(kept, c.constant("", "string"))
    return masked.undefined(~kept) if c.open("text-zero", ~kept) == "other-text" else masked


def reverse_sequence(c: Call, x: Value, lengths: Value) -> Value:
    """The first `lengths` elements along the time axis in reverse order, for each index of the batch axis.

    x: rank 2 or more; lengths: int64, one for each index of the batch axis; the axes are 0 and 1. Source: ONNX
    ReverseSequence-10 and 28.
    """
    batch, time = c.attr("batch_axis"), c.attr("time_axis")
    c.require("rank", x.rank >= 2)
    c.require("axes", batch in (0, 1) and time in (0, 1))
    c.require("axes-differ", batch != time)
    c.require("lengths-shape", lengths.shape == (x.shape[batch],))
    c.require("length-range", (lengths >= 0) & (lengths <= x.shape[time]))
    rest = (1,) * (x.rank - 2)
    length = lengths.reshape(1, -1, *rest) if batch else lengths.reshape(-1, 1, *rest)
    step = np.arange(x.shape[time], dtype=np.int64)
    at = c.constant(step.reshape(-1, 1, *rest) if batch else step.reshape(1, -1, *rest), "int64")
    index = (length - 1 - at).where(at < length, at)
    return x.along(index.broadcast(*x.shape), time)


def center_crop_pad(c: Call, x: Value, *_: Value | None) -> Value:
    """The middle of each axis, or the whole axis padded with zeros on both sides.

    x: rank r; shape: int32 or int64, the extents of the axes that `axes` names, or of all. If an odd
    number of elements is cut off or added, the larger half is at the end. Source: ONNX CenterCropPad-18.
    """
    if x.rank == 0:
        c.open("rank-0")
    sizes, axes = c.ints("shape") or (), c.ints("axes")
    axes = tuple(range(x.rank)) if axes is None else axes
    c.require("shape-rank", len(c.known("shape").shape) == 1)
    c.require("lengths", len(sizes) == len(axes))
    c.require("axes-range", all(-x.rank <= a < x.rank for a in axes))
    c.require("not-negative", min(sizes, default=0) >= 0)
    c.require("axes-distinct", len({a % x.rank for a in axes}) == len(axes))
    kept = np.ones((1,) * x.rank, bool)
    for axis, size in zip(axes, sizes, strict=True):
        extent = x.shape[axis]
        places = np.arange(size) + ((extent - size) // 2 if extent > size else -((size - extent) // 2))
        here = (places >= 0) & (places < extent)
        kept = kept & here.reshape(-1, *(1,) * (x.rank - axis % x.rank - 1))
        if extent:
            x = x.take(places.clip(0, extent - 1), axis)
        elif size:
            shape = [size if dimension == axis % x.rank else n for dimension, n in enumerate(x.shape)]
            x = c.constant({"string": "", "bool": False}.get(x.type, 0), x.type).broadcast(*shape)
    return x if kept.all() else _kept(c, x, c.constant(np.broadcast_to(kept, x.shape), "bool"))
