"""OpenVINO's operations that move whole blocks: Broadcast, Pad, Slice, Split, Tile, Roll, SpaceToBatch and others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ...cases.elements import Array, element_type
from ..arithmetic.tape import Call, Value


def broadcast(c: Call, data: Value, target_shape: Value, mapping: Value | None = None) -> Value:
    """Data in the shape target_shape, by the rule that mode names.

    data: shape D, any type; target_shape: integers of shape [R]; axes_mapping, for mode explicit: one axis of the
    result for each of D, ascending. Result: rank R, with mode bidirectional the larger of both ranks. Source: OpenVINO
    Broadcast-1 and 3.
    """
    mode, target, axes = c.attr("mode"), c.ints("target_shape") or (), c.ints("axes_mapping")
    c.require("no-pdpd", mode != "pdpd")
    c.require("mode-known", mode in _MODES[: 3 if "bidirectional" in c.clauses else 2])
    c.require("target-vector", target_shape.rank == 1)
    c.require("extents", min(target, default=0) >= 0)
    if mode == "explicit":
        c.require("mapping-given", mapping is not None)
        places = axes or ()
        c.require("mapping-length", len(places) == data.rank)
        c.require("mapping-range", all(0 <= axis < len(target) for axis in places))
        c.require("mapping-sorted", list(places) == sorted(set(places)))
        pairs = [(extent, target[axis]) for extent, axis in zip(data.shape, places, strict=True)]
        c.require("mapping-fits", all(own in (1, wanted) for own, wanted in pairs))
        if any(own != wanted for own, wanted in pairs):
            c.open("explicit-stretch")
        shape = [1] * len(target)
        for axis, extent in zip(places, data.shape, strict=True):
            shape[axis] = extent
        return data.reshape(*shape).broadcast(*target)
    if mapping is not None:
        c.open("mapping-idle")
    rank = max(len(target), data.rank) if mode == "bidirectional" else len(target)
    c.require("fits", data.rank <= rank)
    own, wanted = ((1,) * (rank - len(extents)) + tuple(extents) for extents in (data.shape, target))
    if mode == "bidirectional":
        wanted = tuple(e if w == 1 else w for e, w in zip(own, wanted, strict=True))
    c.require("fits", all(e in (1, w) for e, w in zip(own, wanted, strict=True)))
    return data.broadcast(*wanted)


_MODES = ("numpy", "explicit", "bidirectional")


def depth_to_space(c: Call, data: Value) -> Value:
    """Blocks of block_size places along each spatial axis, from that many channels.

    data: [N, C, D1, ..., DK]; result: [N, C / b^K, D1 b, ..., DK b], b block_size. The channels of a block are the
    outer part of C (blocks_first) or the inner one (depth_first). Source: OpenVINO DepthToSpace-1.
    """
    size, k = _block_size(c, data), data.rank - 2
    n, channels, *spatial = data.shape
    c.require("divides", channels % size**k == 0)
    depth, block = channels // size**k, (size,) * k
    if c.attr("mode") == "blocks_first":
        parts, channel, first = data.reshape(n, *block, depth, *spatial), k + 1, 1
    else:
        parts, channel, first = data.reshape(n, depth, *block, *spatial), 1, 2
    pairs = [axis for i in range(k) for axis in (k + 2 + i, first + i)]
    return parts.transpose(0, channel, *pairs).reshape(n, depth, *(extent * size for extent in spatial))


def space_to_depth(c: Call, data: Value) -> Value:
    """Channels from the places of blocks: the inverse of `depth_to_space`.

    data: [N, C, D1, ..., DK]; result: [N, C b^K, D1 / b, ..., DK / b], b block_size. Source: OpenVINO SpaceToDepth-1.
    """
    size, k = _block_size(c, data), data.rank - 2
    n, depth, *spatial = data.shape
    c.require("divides", all(extent % size == 0 for extent in spatial))
    kept = [extent // size for extent in spatial]
    parts = data.reshape(n, depth, *(part for extent in kept for part in (extent, size)))
    places, blocks = [3 + 2 * i for i in range(k)], [2 + 2 * i for i in range(k)]
    order = (0, *places, 1, *blocks) if c.attr("mode") == "blocks_first" else (0, 1, *places, *blocks)
    return parts.transpose(*order).reshape(n, depth * size**k, *kept)


def _block_size(c: Call, data: Value) -> int:
    size = int(c.attr("block_size"))
    c.require("mode", c.attr("mode") in ("blocks_first", "depth_first"))
    c.require("rank", data.rank >= 3)
    c.require("block-size", size >= 1)
    return size


def batch_to_space(c: Call, data: Value, *_: Value) -> Value:
    """The batch's blocks laid out along the other axes, which are then cropped.

    data: [batch, D1, ...]; block_shape, crops_begin, crops_end: integers of shape [rank]. Result: [batch / product of
    block_shape, D1 B1 - CB1 - CE1, ...]. Source: OpenVINO BatchToSpace-2.
    """
    block, begin, end = _blocks(c, data, "crops_begin", "crops_end")
    batch, *spatial = data.shape
    n, size = data.rank, math.prod(block)
    c.require("divides", batch % size == 0)
    extents = [extent * part for extent, part in zip(spatial, block[1:], strict=True)]
    c.require("crops-fit", all(b + e <= w for b, e, w in zip(begin[1:], end[1:], extents, strict=True)))
    parts = data.reshape(*block[1:], batch // size, *spatial)
    pairs = [axis for i in range(n - 1) for axis in (n + i, i)]
    y = parts.transpose(n - 1, *pairs).reshape(batch // size, *extents)
    return y[(slice(None), *(slice(b, w - e) for b, e, w in zip(begin[1:], end[1:], extents, strict=True)))]


def space_to_batch(c: Call, data: Value, *_: Value) -> Value:
    """Blocks of the axes after the first, which are padded with zeros before, moved into the batch.

    data: [batch, D1, ...]; block_shape, pads_begin, pads_end: integers of shape [rank]. Result: [batch times the
    product of block_shape, (D1 + PB1 + PE1) / B1, ...]. Source: OpenVINO SpaceToBatch-2.
    """
    block, begin, end = _blocks(c, data, "pads_begin", "pads_end")
    batch, *spatial = data.shape
    padded = [extent + b + e for extent, b, e in zip(spatial, begin[1:], end[1:], strict=True)]
    c.require("divides", all(w % part == 0 for w, part in zip(padded, block[1:], strict=True)))
    zero = _zero(c, data.type) if any((*begin, *end)) else None
    for axis, (b, e) in enumerate(zip(begin[1:], end[1:], strict=True), 1):
        if (b or e) and zero is not None:
            sides = [zero.broadcast(*data.shape[:axis], side, *data.shape[axis + 1 :]) for side in (b, e)]
            data = sides[0].concat([data, sides[1]], axis)
    kept = [w // part for w, part in zip(padded, block[1:], strict=True)]
    parts = data.reshape(batch, *(factor for pair in zip(kept, block[1:], strict=True) for factor in pair))
    k = len(kept)
    y = parts.transpose(*(2 + 2 * i for i in range(k)), 0, *(1 + 2 * i for i in range(k)))
    return y.reshape(batch * math.prod(block), *kept)


def _blocks(c: Call, data: Value, before: str, after: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return block_shape and what is cropped or padded before and after each axis."""
    block, begin, end = (c.ints(name) or () for name in ("block_shape", before, after))
    c.require("rank", data.rank >= 2)
    c.require("lengths", len(block) == len(begin) == len(end) == data.rank)
    c.require("block-range", min(block) >= 1)
    c.require("not-negative", min(*begin, *end) >= 0)
    if (block[0], begin[0], end[0]) != (1, 0, 0):
        c.open("batch-entry")
    return block, begin, end


def pad(c: Call, data: Value, pads_begin: Value, pads_end: Value, pad_value: Value | None = None) -> Value:
    """Data with elements added before and after each axis, or from version 12 on taken away, if a number is negative.

    data: rank r; pads_begin, pads_end: integers of shape [r]; pad_value: a scalar of data's type. What the modes copy,
    they copy from all of data, as an example of the page shows. Source: OpenVINO Pad-1 and 12.
    """
    mode, begin, end = c.attr("pad_mode"), c.ints("pads_begin") or (), c.ints("pads_end") or ()
    c.require("mode", mode in ("constant", "edge", "reflect", "symmetric"))
    c.require("pads-vectors", pads_begin.rank == pads_end.rank == 1)
    c.require("lengths", len(begin) == len(end) == data.rank)
    c.require_if_stated("not-negative", min((*begin, *end), default=0) >= 0)
    c.require_if_stated("text-constant", data.type != "string" or mode == "constant")
    if pad_value is not None and mode != "constant":
        c.open("value-idle")
    number = _pad_value(c, data, pad_value) if mode == "constant" else data
    inside = np.ones((), bool)
    for axis, (before, after) in enumerate(zip(begin, end, strict=True)):
        extent, most = data.shape[axis], max(before, after)
        c.require("reflect-limit", mode != "reflect" or most <= max(extent - 1, 0))
        c.require("symmetric-limit", mode != "symmetric" or most <= extent)
        places = np.arange(-before, extent + after)
        here = (places >= 0) & (places < extent)
        if mode == "constant":
            inside = inside & here.reshape(-1, *(1,) * (data.rank - axis - 1))
        else:
            c.require("something-to-copy", extent > 0 or len(places) == 0)
            places = _mirrored(mode, places, extent)
        if extent:
            data = data.take(places.clip(0, extent - 1), axis)
        else:
            data = number.reshape(*(1,) * data.rank).broadcast(*data.shape[:axis], len(places), *data.shape[axis + 1 :])
    if inside.all():
        return data
    return data.where(c.constant(np.broadcast_to(inside, data.shape), "bool"), number)


def _pad_value(c: Call, data: Value, given: Value | None) -> Value:
    if given is None:
        return _zero(c, data.type)
    c.require("value-scalar", given.size == 1)
    if given.rank:
        c.open("value-rank")
    return given.reshape()


def _mirrored(mode: str, places: Array, extent: int) -> Array:
    """The index of the element that a place before or after an axis copies."""
    if mode == "reflect":
        return np.where(places < 0, -places, np.where(places >= extent, 2 * (extent - 1) - places, places))
    if mode == "symmetric":
        return np.where(places < 0, -places - 1, np.where(places >= extent, 2 * extent - 1 - places, places))
    return places


def _zero(c: Call, type_: str) -> Value:
    return c.constant("" if type_ == "string" else False if type_ == "bool" else 0, type_)


def reshape(c: Call, data: Value, shape: Value) -> Value:
    """The elements in another shape: one -1 means the rest, and with special_zero a 0 data's extent at that place.

    data: any shape and type; shape: integers of rank 1. Source: OpenVINO Reshape-1.
    """
    wanted, copies = c.ints("shape") or (), bool(c.attr("special_zero"))
    c.require("shape-vector", shape.rank == 1)
    c.require("zero-place", not copies or 0 not in wanted[data.rank :])
    c.require("extents", min(wanted, default=0) >= -1)
    c.require("infer-once", wanted.count(-1) <= 1)
    kept = [i for i, extent in enumerate(wanted) if extent == 0 and copies]
    extents = [data.shape[i] if i in kept else extent for i, extent in enumerate(wanted)]
    if -1 in extents:
        others = math.prod(extent for extent in extents if extent != -1)
        if others:
            rest = data.size // others
        else:
            c.require("elements", data.size == 0)
            free = math.prod(extent for i, extent in enumerate(data.shape) if i not in kept)
            beside = math.prod(extent for i, extent in enumerate(extents) if i not in kept and extent != -1)
            rest = {"one": 1, "left-over": free // beside if beside else 0}.get(c.open("infer-nothing"), 0)
        extents[extents.index(-1)] = rest
    c.require("elements", math.prod(extents) == data.size)
    return data.reshape(*extents)


def squeeze(c: Call, data: Value, axes: Value | None = None) -> Value:
    """Data without the dimensions in axes whose extent is 1, or without axes, without any extent of 1.

    data: rank r, any type; axes: integers of rank 0 or 1. Source: OpenVINO Squeeze-1 and 15.
    """
    given = c.ints("axes")
    c.require("axes-vector", axes is None or axes.rank <= 1)
    if given is not None:
        c.require("axes-range", all(-data.rank <= axis < data.rank for axis in given))
        if len({axis % data.rank for axis in given}) < len(given):
            c.open("axes-repeated")
    if given == () and c.open("axes-none") == "all":
        given = None
    named = range(data.rank) if given is None else [axis % data.rank for axis in given]
    return data.reshape(*(extent for axis, extent in enumerate(data.shape) if extent != 1 or axis not in named))


def unsqueeze(c: Call, data: Value, axes: Value) -> Value:
    """Data with new dimensions of extent 1, which are axes in the result.

    data: rank r, any type; axes: integers of rank 0 or 1. Source: OpenVINO Unsqueeze-1.
    """
    given = c.ints("axes") or ()
    rank = data.rank + len(given)
    c.require("axes-vector", axes.rank <= 1)
    c.require("axes-range", all(-rank <= axis < rank for axis in given))
    if not given:
        c.open("axes-none")
    new = {axis % rank for axis in given}
    if len(new) < len(given):
        c.open("axes-repeated")
    extents = iter(data.shape)
    return data.reshape(*(1 if dimension in new else next(extents) for dimension in range(rank)))


def transpose(c: Call, data: Value, order: Value) -> Value:
    """The dimensions in the order of input_order, in reverse if that is empty.

    data: rank r; input_order: integers of shape [r] or [0]. Source: OpenVINO Transpose-1.
    """
    wanted = c.ints("input_order") or tuple(reversed(range(data.rank)))
    c.require("order-vector", order.rank == 1)
    c.require("permutation", sorted(wanted) == list(range(data.rank)))
    return data.transpose(*wanted)


def tile(c: Call, data: Value, repeats: Value) -> Value:
    """Copies of data along each axis, repeats of them; the shorter of shape and repeats is filled up on the left.

    data: rank r; repeats: integers of shape [n]; result: rank max(r, n). Source: OpenVINO Tile-1.
    """
    times = c.ints("repeats") or ()
    if repeats.rank != 1:
        c.open("repeats-rank")
    if min(times, default=0) < 0:
        c.open("negative")
    rank = max(data.rank, len(times))
    times = (1,) * (rank - len(times)) + times
    data = data.reshape(*(1,) * (rank - data.rank), *data.shape)
    for axis, copies in enumerate(times):
        if copies != 1:
            data = data.take(np.tile(np.arange(data.shape[axis]), copies), axis)
    return data


def split(c: Call, data: Value, axis: Value) -> tuple[Value, ...]:
    """Data in num_splits parts of one length along axis.

    data: rank r of 1 or more; axis: an integer of rank 0. Source: OpenVINO Split-1.
    """
    parts = int(c.attr("num_splits"))
    c.require("axis-scalar", axis.rank == 0)
    dimension = _axis(c, data)
    c.require("splits-range", parts >= 1)
    c.require("divides", data.shape[dimension] % parts == 0)
    if parts > data.shape[dimension]:
        c.open("splits-of-nothing")
    return _parts(data, dimension, (data.shape[dimension] // parts,) * parts)


def variadic_split(c: Call, data: Value, axis: Value, split_lengths: Value) -> tuple[Value, ...]:
    """Data in parts along axis of the lengths in split_lengths; one -1 means the rest.

    data: rank r of 1 or more; axis: one integer, of rank 0 or 1; split_lengths: integers of rank 1. Source: OpenVINO
    VariadicSplit-1.
    """
    c.require("axis-one", axis.rank <= 1 and axis.size == 1)
    dimension, lengths = _axis(c, data), c.ints("split_lengths") or ()
    c.require("lengths-vector", split_lengths.rank == 1)
    c.require("lengths-range", min(lengths, default=0) >= -1)
    c.require("rest-once", lengths.count(-1) <= 1)
    rest = data.shape[dimension] - sum(length for length in lengths if length != -1)
    c.require("sum", rest >= 0 if -1 in lengths else rest == 0)
    return _parts(data, dimension, [rest if length == -1 else length for length in lengths])


def _axis(c: Call, data: Value) -> int:
    dimension = (c.ints("axis") or ())[0]
    c.require("axis-range", -data.rank <= dimension < data.rank)
    return dimension % data.rank


def _parts(data: Value, axis: int, lengths: Sequence[int]) -> tuple[Value, ...]:
    ends = np.cumsum(lengths).tolist()
    return tuple(data.take(np.arange(end - n, end), axis) for end, n in zip(ends, lengths, strict=True))


def slice_(c: Call, data: Value, *_: Value | None) -> Value:
    """Every step-th element from start to stop, exclusive, along each of axes, by Python's rules.

    data: rank r of 1 or more; start, stop, step, axes: integers of shape [n]. Source: OpenVINO Slice-8.
    """
    for axis, places in _sliced(c, data).items():
        data = data.take(places, axis)
    return data


def slice_scatter(c: Call, data: Value, updates: Value, *_: Value | None) -> Value:
    """Data with updates in place of the elements that a slice would take.

    data: rank r of 1 or more; updates: the shape of the slice; start, stop, step, axes: integers of shape [n]. Source:
    OpenVINO SliceScatter-15.
    """
    sliced = _sliced(c, data)
    shape = tuple(len(sliced.get(axis, range(extent))) for axis, extent in enumerate(data.shape))
    if updates.shape != shape:
        stretches = updates.rank <= data.rank and all(
            own in (1, wanted) for own, wanted in zip(reversed(updates.shape), reversed(shape), strict=False)
        )
        c.require("updates-shape", stretches)
        c.open("updates-broadcast")
        updates = updates.broadcast(*shape)
    if 0 in shape:
        return data
    inside = np.ones((), bool)
    for axis, places in sliced.items():
        source = np.full(data.shape[axis], -1)
        source[places] = np.arange(len(places))
        inside = inside & (source >= 0).reshape(-1, *(1,) * (data.rank - axis - 1))
        updates = updates.take(source.clip(0), axis)
    return updates.where(c.constant(np.broadcast_to(inside, data.shape), "bool"), data)


def _sliced(c: Call, data: Value) -> dict[int, Array]:
    """Return the indices that are taken from each axis that is sliced, by axis."""
    start, stop, step = (c.ints(name) or () for name in ("start", "stop", "step"))
    given = c.ints("axes")
    axes = tuple(range(len(start))) if given is None else given
    c.require("rank", data.rank >= 1)
    c.require("vectors", all(len(c.known(name).shape) == 1 for name in ("start", "stop", "step")))
    c.require("lengths", len(start) == len(stop) == len(step) == len(axes))
    c.require("axes-range", all(-data.rank <= axis < data.rank for axis in axes))
    c.require("axes-distinct", len({axis % data.rank for axis in axes}) == len(axes))
    c.require("step-zero", 0 not in step)
    return {
        axis % data.rank: np.arange(data.shape[axis])[slice(*ends)]
        for axis, *ends in zip(axes, start, stop, step, strict=True)
    }


def reverse(c: Call, data: Value, axis: Value) -> Value:
    """Data in reverse along the axes that a list or a mask names.

    data: rank r; axis: integers of shape [n], or with mode mask booleans of shape [r]. Source: OpenVINO Reverse-1.
    """
    mode, given = c.attr("mode"), c.ints("axis") or ()
    c.require("mode", mode in ("index", "mask"))
    c.require("axis-vector", axis.rank == 1)
    c.require("axis-type", (axis.type == "bool") == (mode == "mask"))
    if mode == "mask":
        c.require("mask-length", len(given) == data.rank)
        axes = [dimension for dimension, chosen in enumerate(given) if chosen]
    else:
        c.require("count", len(given) <= data.rank)
        c.require("axes-range", all(-data.rank <= dimension < data.rank for dimension in given))
        if min(given, default=0) < 0:
            c.open("axes-negative")
        axes = [dimension % data.rank for dimension in given]
        if len(set(axes)) < len(axes):
            again = c.open("axes-repeated") == "each-time"
            axes = [dimension for dimension in sorted(set(axes)) if not again or axes.count(dimension) % 2]
    for dimension in axes:
        data = data.take(np.arange(data.shape[dimension])[::-1], dimension)
    return data


def reverse_sequence(c: Call, data: Value, seq_lengths: Value) -> Value:
    """The first elements along seq_axis in reverse order, seq_lengths of them for each index of batch_axis.

    data: rank r of 2 or more; seq_lengths: whole numbers of any type, one for each index of batch_axis. Source:
    OpenVINO ReverseSequence-1.
    """
    batch, time = int(c.attr("batch_axis")), int(c.attr("seq_axis"))
    c.require("rank", data.rank >= 2)
    c.require("axes-range", all(-data.rank <= axis < data.rank for axis in (batch, time)))
    batch, time = batch % data.rank, time % data.rank
    if batch == time:
        c.open("axes-equal")
    c.require("lengths-shape", seq_lengths.shape == (data.shape[batch],))
    if seq_lengths.kind == "real":
        c.require("lengths-whole", seq_lengths.equal(seq_lengths.trunc()))
    lengths = seq_lengths.cast("int64")
    c.require("lengths-range", (lengths >= 1) & (lengths <= data.shape[time]))
    length = lengths.reshape(*(-1 if axis == batch else 1 for axis in range(data.rank)))
    step = np.arange(data.shape[time], dtype=np.int64)
    at = c.constant(step.reshape([-1 if axis == time else 1 for axis in range(data.rank)]), "int64")
    index = (length - 1 - at).where(at < length, at)
    return data.along(index.broadcast(*data.shape), time)


def roll(c: Call, data: Value, shift: Value, axes: Value) -> Value:
    """Data with its elements moved along axes by shift places; what leaves at one end comes in at the other.

    data: rank r; shift: one integer for all of axes, or as many as these; axes: integers of rank 0 or 1, each shift of
    an axis that is named again is added. Source: OpenVINO Roll-7.
    """
    shifts, places = c.ints("shift") or (), c.ints("axes") or ()
    c.require("vectors", shift.rank <= 1 and axes.rank <= 1)
    c.require("axes-range", all(-data.rank <= axis < data.rank for axis in places))
    if shift.rank == 0:
        shifts = shifts * len(places)
    elif len(shifts) == 1 != len(places):
        c.open("shift-of-one")
        shifts = shifts * len(places)
    elif axes.rank == 0:
        c.open("axes-scalar")
    c.require("lengths", len(shifts) == len(places))
    for axis, extent in enumerate(data.shape):
        total = sum(by for by, dimension in zip(shifts, places, strict=True) if dimension % data.rank == axis)
        if extent and total % extent:
            data = data.take(np.roll(np.arange(extent), total % extent), axis)
    return data


def shuffle_channels(c: Call, data: Value) -> Value:
    """Data with the channels of axis interleaved: group rows of them are read in columns.

    data: rank r of 1 or more. Source: OpenVINO ShuffleChannels-1.
    """
    axis, group = int(c.attr("axis")), int(c.attr("group"))
    c.require("axis-range", -data.rank <= axis < data.rank)
    axis %= data.rank
    c.require("group-range", 1 <= group <= max(data.shape[axis], 1))
    c.require("divides", data.shape[axis] % group == 0)
    before, after = math.prod(data.shape[:axis]), math.prod(data.shape[axis + 1 :])
    parts = data.reshape(before, group, data.shape[axis] // group, after)
    return parts.transpose(0, 2, 1, 3).reshape(*data.shape)


def extract_image_patches(c: Call, data: Value) -> Value:
    """The patches of an image, each in the channels of one place: first all channels of a patch's first element.

    data: [N, C, H, W]; sizes, strides, rates: two numbers, for rows and columns; result: [N, rows columns C, patches of
    a column, patches of a row]. Source: OpenVINO ExtractImagePatches-3.
    """
    sizes, strides, rates = (c.ints(name) or () for name in ("sizes", "strides", "rates"))
    way = c.attr("auto_pad")
    c.require("rank", data.rank == 4)
    c.require("auto-pad", way in ("valid", "same_upper", "same_lower"))
    c.require("pairs", len(sizes) == len(strides) == len(rates) == 2)
    c.require("numbers", min(*sizes, *strides, *rates) >= 0)
    n, depth, *image = data.shape
    inside = np.ones((), bool)
    counts = []
    for i, (extent, size, stride, rate) in enumerate(zip(image, sizes, strides, rates, strict=True)):
        span = (size - 1) * rate + 1
        if way == "valid":
            count, before = max(0, (extent - span) // stride + 1), 0
            if span > extent:
                c.open("no-patch")
        else:
            count = -(-extent // stride)
            total = max(0, (count - 1) * stride + span - extent)
            before = total - total // 2 if way == "same_lower" else total // 2
        places = np.arange(size)[:, np.newaxis] * rate + np.arange(count) * stride - before
        inside = inside[..., np.newaxis, np.newaxis] & ((places >= 0) & (places < extent))
        data = data.take(places.clip(0, max(extent - 1, 0)), 2 + 2 * i)
        counts.append(count)
    if not inside.all():  # [size, rows, size, columns], after N and C
        data = data.where(c.constant(np.broadcast_to(inside, data.shape), "bool"), _zero(c, data.type))
    return data.transpose(0, 2, 4, 1, 3, 5).reshape(n, math.prod(sizes) * depth, *counts)


def reorg_yolo(c: Call, data: Value) -> Value:
    """Channels from blocks of stride by stride places; the page leaves open in which order.

    data: [N, C, H, W]; result: [N, C stride^2, H / stride, W / stride]. Source: OpenVINO ReorgYolo-2, whose page gives
    the shape and refers to YOLO's paper.
    """
    stride = c.ints("stride") or ()
    c.require("rank", data.rank == 4)
    c.require("stride-range", len(stride) == 1 and stride[0] >= 1)
    size = stride[0]
    n, depth, height, width = data.shape
    c.require("divides", height % size == 0 and width % size == 0)
    c.require("channels", depth >= size * size)
    result = (n, depth * size * size, height // size, width // size)
    order = c.open("order")
    if order == "darknet":
        if depth % (size * size):
            c.open("channels-left-over")
        inner = depth // (size * size)
        parts = data.reshape(n, inner, height, size, width, size)
        return parts.transpose(0, 3, 5, 1, 2, 4).reshape(*result)
    parts = data.reshape(n, depth, height // size, size, width // size, size)
    ways = {"blocks-first": (0, 3, 5, 1, 2, 4), "depth-first": (0, 1, 3, 5, 2, 4)}
    return parts.transpose(*ways[order]).reshape(*result)


def eye(c: Call, rows: Value, columns: Value, diagonal: Value, batch: Value | None = None) -> Value:
    """Ones at [..., i, i + diagonal_index], and zeros elsewhere: [batch_shape..., num_rows, num_columns].

    rows, columns, diagonal: one integer of rank 0 or 1; batch: integers of rank 1; result: the type output_type.
    Source: OpenVINO Eye-9.
    """
    c.require("one-number", all(x.rank <= 1 and x.size == 1 for x in (rows, columns, diagonal)))
    c.require("batch-vector", batch is None or batch.rank == 1)
    (n,), (m,), (by,) = (c.ints(name) or () for name in ("num_rows", "num_columns", "diagonal_index"))
    shape = c.ints("batch_shape") or ()
    c.require("not-negative", min(n, m, *shape) >= 0)
    ones = np.arange(n, dtype=object)[:, np.newaxis] + by == np.arange(m, dtype=object)
    beyond = by >= n if by > 0 else -by >= m
    if by and beyond and ones.any() and c.open("diagonal-beyond") == "zeros":
        ones = np.zeros_like(ones)
    matrix = c.constant(ones.astype(bool).reshape(n, m), "bool").cast(str(c.output_types["output"]))
    return matrix.broadcast(*shape, n, m)


def range_(c: Call, start: Value, stop: Value, step: Value) -> Value:
    """The numbers from start on, step apart, before stop.

    start, stop, step: rank 0, any numeric type each; result: rank 1, of the type output_type, to which fractions are
    cast towards zero. Source: OpenVINO Range-4.
    """
    ports, type_ = (start, stop, step), str(c.output_types["output"])
    c.require("scalars", all(x.rank == 0 for x in ports))
    given = [c.known(x).reshape(()) for x in ports]
    c.require("finite", all(np.isfinite(float(n)) for n in given))
    exact = [Fraction(int(n)) if n.dtype.kind in "iu" else Fraction(float(n)) for n in given]
    truncated = [Fraction(math.trunc(n)) for n in exact]
    is_integer = element_type(type_).is_integer
    if (truncated if is_integer else exact)[2] == 0:
        c.open("step-zero")
    if is_integer and truncated != exact and c.open("fractions") == "cast-first":
        exact = truncated
    first, end, by = exact
    counts = {"exact": math.ceil((end - first) / by)}
    for option, dtype in (("in-float32", np.float32), ("in-float64", np.float64)):
        rounded = (dtype(end) - dtype(first)) / dtype(by)
        counts[option] = math.ceil(float(rounded)) if np.isfinite(rounded) else 0
    counts = {option: max(count, 0) for option, count in counts.items()}
    count = counts["exact"]
    if len(set(counts.values())) > 1:
        count = counts.get(c.open("count"), count)
    begin, each = (x.cast(type_) for x in (start, step))
    if count > 2 and not is_integer and c.open("values") == "added-up":
        return begin.reshape(1).concat([each.broadcast(count - 1)], 0).cumsum(0)
    return begin + each * np.arange(count)
