"""OpenVINO's operations that gather, count and search: Gather, GatherTree, OneHot, SearchSorted, bags of embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...cases.elements import Array, element_type
from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value
from ..fills import Drawing


def gather(c: Call, data: Value, indices: Value, axis: Value) -> Value:
    """The entries along an axis at indices, those of the same batch if there are batches.

    data: rank r of 1 or more; indices: integers, whose first batch_dims dimensions are data's; axis: one integer;
    result: data's dimensions before the axis, those of indices after the batches, data's after the axis. In version 8
    an index may count from the end, and one out of range gives zeros. Source: OpenVINO Gather-1, 7 and 8.
    """
    dimension = _integer(c, "axis", axis, "axis-one")
    c.require("axis-range", -data.rank <= dimension < data.rank)
    dimension %= data.rank
    given = c.attr("batch_dims", 0)
    c.require_if_stated("batch-range", abs(given) <= min(data.rank, indices.rank))
    batch = given + indices.rank if given < 0 else given
    c.require_if_stated("batch-axis", batch <= dimension)
    c.require_if_stated("batch-shape", data.shape[:batch] == indices.shape[:batch])
    extent, index = data.shape[dimension], indices.cast("int64")
    beyond = None
    if "index-zeros" in c.clauses:
        beyond = (index < -extent) | (index >= extent)
        index = (index + extent).where(index < 0, index)
    else:
        c.require("index-range", (index >= 0) & (index < extent))
    y = _batched(data, index, dimension, batch)
    if beyond is None:
        return y
    if data.kind == "text":
        c.open("text-zero", beyond)
    lost = beyond.reshape(
        *indices.shape[:batch], *(1,) * (dimension - batch), *indices.shape[batch:], *_ones(data, dimension)
    )
    return c.constant(_ZEROS.get(data.kind, 0), data.type).broadcast(*y.shape).where(lost.broadcast(*y.shape), y)


_ZEROS = {"text": "", "bool": False}


def _ones(data: Value, axis: int) -> tuple[int, ...]:
    return (1,) * (data.rank - axis - 1)


def _integer(c: Call, name: str, value: Value, clause: str) -> int:
    """The integer of an input that holds one."""
    c.require(clause, value.rank < 2 and value.size == 1)
    return int(c.known(name).reshape(()))


def _batched(data: Value, index: Value, axis: int, batch: int) -> Value:
    """The entries along an axis, found in one axis that batches and the axis share."""
    if not batch:
        return data.gather(index, axis)
    count, extent = math.prod(data.shape[:batch]), data.shape[axis]
    between, after = math.prod(data.shape[batch:axis]), math.prod(data.shape[axis + 1 :])
    lines = data.reshape(count, between, extent, after).transpose(0, 2, 1, 3).reshape(count * extent, between, after)
    each = math.prod(index.shape[batch:])
    flat = index.reshape(count, each) + (np.arange(count) * extent).reshape(count, 1)
    entries = lines.gather(flat, 0).transpose(0, 2, 1, 3)
    return entries.reshape(*data.shape[:axis], *index.shape[batch:], *data.shape[axis + 1 :])


def gather_elements(c: Call, formula: Formula, data: Value, indices: Value) -> Value:
    """The element of data for each position, with the index there as the position along the axis.

    data: rank r; indices: data's extents except along the axis, in [0, extent). Source: OpenVINO GatherElements-6.
    """
    axis = c.attr("axis")
    if data.rank == indices.rank > 0 and -data.rank <= axis < data.rank:
        pairs = zip(data.shape, indices.shape, strict=True)
        c.require("within", all(d == n or position == axis % data.rank for position, (d, n) in enumerate(pairs)))
    c.require("index-range", indices >= 0)
    result: Value = formula(data, indices)
    return result


def gather_nd(c: Call, formula: Formula, data: Value, indices: Value) -> Value:
    """The slices of data at tuples, within batches, of which one of data or indices may be for all of the other.

    data: rank r; indices: rank q, tuples of k numbers; result: the batches, which version 5 makes one dimension, the
    other dimensions of indices except the last, and what a tuple leaves of data. Source: OpenVINO GatherND-5 and 8.
    """
    batch = c.attr("batch_dims", 0)
    c.require("ranks", data.rank >= 1 and indices.rank >= 1)
    c.require("batch-range", 0 <= batch < min(data.rank, indices.rank))
    pairs = list(zip(data.shape[:batch], indices.shape[:batch], strict=True))
    c.require("batch-shape", all(d == n or 1 in (d, n) for d, n in pairs))
    c.require("depth", batch + indices.shape[-1] <= data.rank)
    if "index-negative" not in c.clauses:
        c.require("index-range", indices >= 0)
    shared = tuple(max(d, n) if d and n else 0 for d, n in pairs)
    data = data.broadcast(*shared, *data.shape[batch:])
    indices = indices.cast("int64").broadcast(*shared, *indices.shape[batch:])
    if not indices.shape[-1]:
        left = data.shape[batch:]
        stretched = data.reshape(*shared, *(1,) * (indices.rank - 1 - batch), *left)
        result: Value = stretched.broadcast(*indices.shape[:-1], *left)
    else:
        result = formula(data, indices)
    if batch and "batch-flat" in c.clauses:
        return result.reshape(math.prod(shared), *result.shape[batch:])
    return result


def gather_tree(c: Call, steps: Value, parents: Value, lengths: Value, end: Value) -> Value:
    """The tokens of each beam, found from its last step back by the beam that each step continues.

    steps, parents: [T, N, B]; lengths: [N], the steps of each sample; end: a scalar; result: [T, N, B]. What follows
    the first end token, and the end of a sample, is the end token. Source: OpenVINO GatherTree-1.
    """
    c.require("shapes", steps.rank == 3 and parents.shape == steps.shape and lengths.shape == steps.shape[1:2])
    c.require("end-scalar", end.rank == 0)
    most, batches, beams = steps.shape
    parent, length = c.known("parent_ids").astype(np.int64), c.known("max_seq_len").astype(np.int64)
    places = np.full(steps.shape, -1)
    for n, beam in np.ndindex(batches, beams):
        size = min(most, int(length[n]))
        if size < 1:
            c.open("no-steps")
            continue
        at = beam
        for level in reversed(range(size)):
            places[level, n, beam] = (level * batches + n) * beams + at
            if level:
                at = int(parent[level, n, at])
                c.require("parent-range", 0 <= at < beams)
    followed = steps.reshape(-1).take(places.clip(0), 0)
    y = followed.where(c.constant(places >= 0, "bool"), end.broadcast(*followed.shape))
    if most < 2:
        return y
    rows, over = [y[0]], y[0].equal(end)
    for level in range(1, most):
        rows.append(end.broadcast(batches, beams).where(over, y[level]))
        over = over | y[level].equal(end)
    return rows[0].stack(*rows[1:])


def one_hot(c: Call, indices: Value, depth: Value, on: Value, off: Value) -> Value:
    """on_value where the position along a new axis equals the index, off_value elsewhere.

    indices: rank N; depth, on, off: scalars; result: rank N + 1. In version 1 a negative index is undefined; in 16 it
    is off, or counts from the end. Source: OpenVINO OneHot-1 and 16.
    """
    c.require("scalars", depth.rank == on.rank == off.rank == 0)
    axis, rank, classes = c.attr("axis"), indices.rank + 1, int(c.known("depth"))
    c.require("axis-range", -rank <= axis < rank)
    c.require("depth-positive", classes > 0)
    axis %= rank
    mode = c.attr("negative_indices_mode", "")
    c.require_if_stated("mode-known", mode in ("ignore-negative", "ignore_negative", "normalize"))
    index = indices.reshape(*indices.shape[:axis], 1, *indices.shape[axis:])
    places = np.arange(classes).reshape(-1, *(1,) * (rank - axis - 1))
    lit = index.equal(places)
    if mode == "normalize":
        lit = lit | index.equal(places - classes)
    shape = (*indices.shape[:axis], classes, *indices.shape[axis:])
    y = on.broadcast(*shape).where(lit.broadcast(*shape), off.broadcast(*shape))
    return y if mode else y.undefined((index < 0).broadcast(*shape))


def non_zero(c: Call, formula: Formula, data: Value) -> Value:
    """The places of the elements that are not zero, one column each, in the type of output_type.

    data: rank r; result: [r, n]. Source: OpenVINO NonZero-3.
    """
    result: Value = formula(data)
    return result.cast(str(c.output_types["output"]))


def search_sorted(c: Call, line: Value, values: Value) -> Value:
    """Where each value belongs in its ascending line: before all equal elements, or after them.

    line: [..., n], ascending along the last axis; values: [..., m], with the same other dimensions; result: the shape
    of values. Source: OpenVINO SearchSorted-15.
    """
    c.require("shapes", line.rank >= 1 and line.shape[:-1] == values.shape[:-1] and values.rank >= 1)
    n = line.shape[-1]
    c.require("ascending", line[..., slice(0, max(n - 1, 0))] <= line[..., slice(min(n, 1), n)])
    return _places(c, line, values, after=bool(c.attr("right_mode")))


def bucketize(c: Call, data: Value, buckets: Value) -> Value:
    """The number of the bucket of each element: how many boundaries are below it, or not above it.

    data: any shape; buckets: [n], ascending; result: data's shape. Source: OpenVINO Bucketize-3.
    """
    c.require("one-line", buckets.rank == 1)
    n = buckets.shape[0]
    c.require("ascending", buckets[slice(0, max(n - 1, 0))] < buckets[slice(min(n, 1), n)])
    return _places(c, buckets, data, after=not c.attr("with_right_bound"))


def _places(c: Call, line: Value, values: Value, *, after: bool) -> Value:
    """How many elements of a line are below each value, or, with `after`, not above it."""
    a = values.reshape(*values.shape, 1)
    b = line if line.rank == 1 else line.reshape(*line.shape[:-1], 1, line.shape[-1])
    if a.type != b.type:
        a, b = a.cast("float64"), b.cast("float64")
    below = (b <= a) if after else (b < a)
    shape = (*values.shape, line.shape[-1])
    y = below.broadcast(*shape).cast("int64").sum((len(shape) - 1,), keep=False)
    if values.kind == "real":
        y = y.undefined(values.isnan(), "nan")
    return y.cast(str(c.output_types["output"]))


def bags_of_offsets(
    c: Call, table: Value, indices: Value, offsets: Value, default: Value | None = None, weights: Value | None = None
) -> Value:
    """The sum or mean of the table's rows in each bag, the indices from one offset to before the next.

    table: [V, E...]; indices, weights: [L]; offsets: [B], ascending; default: a scalar, the row for an empty bag, which
    else is zeros; result: [B, E...]. Source: OpenVINO EmbeddingBagOffsets-15, EmbeddingBagOffsetsSum-3.
    """
    c.require("one-line", indices.rank == offsets.rank == 1)
    starts = [int(n) for n in c.known("offsets")]
    ends = [*starts[1:], indices.shape[0]]
    c.require("offsets-range", all(0 <= first <= last for first, last in zip(starts, ends, strict=True)))
    if starts and starts[0] > 0:
        c.open("first-offset")
    bags = [range(first, last) for first, last in zip(starts, ends, strict=True)]
    return _bags(c, table, _rows(c, table, indices, weights), bags, _default(c, table, default, least=-1))


def bags_of_segments(
    c: Call,
    table: Value,
    indices: Value,
    segments: Value,
    count: Value,
    default: Value | None = None,
    weights: Value | None = None,
) -> Value:
    """The sum of the table's rows in each segment, the indices with the segment's number.

    table: [V, E...]; indices, segments, weights: [L], segments ascending; count, default: scalars; result: [count,
    E...]. Source: OpenVINO EmbeddingSegmentsSum-3.
    """
    c.require("one-line", indices.rank == 1 and segments.shape == indices.shape)
    c.require("scalars", count.rank == 0)
    number, own = int(c.known("num_segments")), c.known("segment_ids").astype(np.int64)
    c.require("segments-ascend", bool((np.diff(own) >= 0).all()))
    c.require("segments-range", bool(((own >= 0) & (own < number)).all()))
    bags = [np.flatnonzero(own == n).tolist() for n in range(number)]
    return _bags(c, table, _rows(c, table, indices, weights), bags, _default(c, table, default, least=0))


def bags_packed(c: Call, table: Value, indices: Value, weights: Value | None = None) -> Value:
    """The sum or mean of the table's rows at each row of indices.

    table: [V, E...]; indices, weights: [B, n]; result: [B, E...]. Source: OpenVINO EmbeddingBagPacked-15,
    EmbeddingBagPackedSum-3.
    """
    c.require("one-table", indices.rank == 2)
    rows = _rows(c, table, indices, weights)
    if not indices.shape[1]:
        c.open("empty-bags")
    return rows.sum((1,), keep=False) if _summed(c) else _mean(rows, 1)


def _summed(c: Call) -> bool:
    """Whether rows are added, not averaged."""
    how = c.attr("reduction", "sum")
    c.require_if_stated("reduction", how in ("sum", "mean"))
    return bool(how == "sum")


def _mean(rows: Value, axis: int) -> Value:
    """The mean along an axis; that of whole numbers with an open rounding."""
    return rows.mean((axis,), keep=False)


def _rows(c: Call, table: Value, indices: Value, weights: Value | None) -> Value:
    """The table's rows at indices, each times its weight."""
    c.require("index-range", (indices >= 0) & (indices < table.shape[0]))
    c.require("weights-shape", weights is None or weights.shape == indices.shape)
    c.require_if_stated("weights-of-sum", weights is None or _summed(c))
    rows = table.gather(indices, 0)
    return rows if weights is None else rows * weights.reshape(*weights.shape, *(1,) * (table.rank - 1))


def _default(c: Call, table: Value, default: Value | None, *, least: int) -> int | None:
    """The row for an empty bag; None: zeros."""
    if default is None:
        return None
    c.require("scalars", default.rank == 0)
    row = int(c.known("default_index"))
    if row == -1 and least == 0:
        c.open("default-negative")
        return None
    c.require("default-range", least <= row < table.shape[0])
    return None if row == -1 else row


def _bags(c: Call, table: Value, rows: Value, bags: Sequence[Sequence[int]], default: int | None) -> Value:
    """The sum or mean of the rows of each bag, stacked."""
    summed = _summed(c)
    empty = c.constant(0, table.type).broadcast(*table.shape[1:]) if default is None else table[default]
    pooled = []
    for bag in bags:
        own = rows.take(np.array(bag, np.int64), 0)
        pooled.append(empty if not len(bag) else own.sum((0,), keep=False) if summed else _mean(own, 0))
    if not pooled:
        return c.constant(0, table.type).broadcast(0, *table.shape[1:])
    return pooled[0].stack(*pooled[1:])


def segment_max(c: Call, data: Value, segments: Value, count: Value | None = None) -> Value:
    """The largest of data's rows in each segment, the rows with the segment's number.

    data: [n, E...]; segments: [n], ascending; count: a scalar; result: [segments, E...]. Source: OpenVINO
    SegmentMax-16.
    """
    c.require("one-line", data.rank >= 1 and segments.shape == data.shape[:1])
    c.require("count-scalar", count is None or count.rank == 0)
    own = c.known("segment_ids").astype(np.int64)
    c.require("segments-ascend", bool((np.diff(own) >= 0).all()))
    number, given = int(own.max(initial=-1)) + 1, None if count is None else int(c.known("num_segments"))
    c.require("segments-range", bool((own >= 0).all()) and (given is None or number <= given))
    if given is not None and given > number:
        number = given if c.open("more-segments") == "count" else number
    fill = c.attr("fill_mode")
    c.require("fill-known", fill in ("ZERO", "LOWEST"))
    empty = _lowest(c, data) if fill == "LOWEST" and len(set(own.tolist())) < number else 0
    rows = []
    for segment in range(number):
        mine = data.take(np.flatnonzero(own == segment), 0)
        if not mine.shape[0]:
            rows.append(c.constant(empty, data.type).broadcast(*data.shape[1:]))
            continue
        largest, rest = (mine.max((0,), keep=False, nan=nan) for nan in ("propagate", "ignore"))
        if data.kind == "real":
            lost = mine.isnan().cast("uint8").max((0,), keep=False).cast("bool")
            way = c.open("nan", lost)
            largest = rest if way == "ignored" else largest.undefined(lost) if way == "any" else largest
        rows.append(largest)
    if not rows:
        return c.constant(0, data.type).broadcast(0, *data.shape[1:])
    return rows[0].stack(*rows[1:])


def _lowest(c: Call, data: Value) -> float:
    """The lowest value of a type; for floats the finite one, or minus infinity."""
    element = element_type(data.type)
    if element.format is None:
        return element.smallest
    return -element.format.largest if c.open("lowest-float") == "finite" else -math.inf


def ctc_greedy_decoder(c: Call, data: Value, mask: Value) -> Value:
    """The best class of each step, repeated ones merged and blanks left out; the rest is -1.

    data: [T, N, C]; mask: [T, N], ones, then zeros; result: [N, T, 1, 1]. Source: OpenVINO CTCGreedyDecoder-1.
    """
    c.require("shapes", data.rank == 3 and mask.shape == data.shape[:2])
    given = c.known("sequence_mask").astype(np.float64)
    c.require("mask-prefix", bool(np.isin(given, (0, 1)).all() and (np.diff(given, axis=0) <= 0).all()))
    lengths = given.sum(0).astype(int)
    blank = 0 if c.open("blank") == "first" else data.shape[2] - 1
    scores = c.known("data").astype(np.float64).transpose(1, 0, 2)
    classes, _ = _decoded(c, scores, lengths, blank, merge=bool(c.attr("ctc_merge_repeated")))
    return c.constant(classes.reshape(*classes.shape, 1, 1).astype(np.float64), data.type)


def ctc_greedy_decoder_seq_len(c: Call, data: Value, lengths: Value, blank: Value | None = None) -> tuple[Value, Value]:
    """The best class of each step, repeated ones merged and blanks left out, with the number of classes.

    data: [N, T, C]; lengths: [N]; blank: one integer; results: [N, T], filled up with -1, and [N]. Source: OpenVINO
    CTCGreedyDecoderSeqLen-6.
    """
    c.require("shapes", data.rank == 3 and lengths.shape == data.shape[:1])
    steps = c.known("sequence_length").astype(int)
    c.require("length-range", bool(((steps >= 0) & (steps <= data.shape[1])).all()))
    empty = data.shape[2] - 1
    if blank is not None:
        c.require("blank-one", blank.rank < 2 and blank.size == 1)
        empty = int(c.known("blank_index").reshape(()))
        c.require("blank-range", 0 <= empty < data.shape[2])
    scores = c.known("data").astype(np.float64)
    classes, counts = _decoded(c, scores, steps, empty, merge=bool(c.attr("merge_repeated")))
    kinds = [str(c.output_types[name] or "int32") for name in ("classes_index", "sequence_lengths")]
    return c.constant(classes, kinds[0]), c.constant(counts, kinds[1])


def _decoded(c: Call, scores: Array, lengths: Array, blank: int, *, merge: bool) -> tuple[Array, Array]:
    """The classes of each sample, filled up with -1, and their number. scores: [N, T, C]; lengths: [N]."""
    classes, counts = np.full(scores.shape[:2], -1), np.zeros(len(scores), np.int64)
    for sample, length in enumerate(lengths):
        last = -1
        for row in scores[sample, :length]:
            if np.isnan(row).any():
                c.open("nan")
            if (row == row.max()).sum() > 1:
                c.open("ties")
            best = int(row.argmax())
            if best != blank and not (merge and best == last):
                classes[sample, counts[sample]] = best
                counts[sample] += 1
            last = best
    return classes, counts


def string_tensor_unpack(c: Call, data: Value) -> tuple[Value, Value, Value]:
    """The bytes of all strings in UTF-8, and where each string begins and ends.

    data: text of any shape; results: its shape, its shape, and [bytes]. Source: OpenVINO StringTensorUnpack-15.
    """
    texts = c.known(data)
    coded = [str(text).encode() for text in texts.reshape(-1)]
    ends = np.cumsum([len(encoded) for encoded in coded]).astype(np.int64)
    begins = ends - np.array([len(encoded) for encoded in coded], np.int64)
    symbols = np.frombuffer(b"".join(coded), np.uint8).copy()
    places = (c.constant(where.reshape(data.shape), "int32") for where in (begins, ends))
    return (*places, c.constant(symbols, "uint8"))  # type: ignore[return-value]  # three values


def string_tensor_pack(c: Call, begins: Value, ends: Value, symbols: Value) -> Value:
    """The strings whose bytes are from begin to before end.

    begins, ends: one shape; symbols: [bytes], UTF-8; result: text of that shape. Source: OpenVINO StringTensorPack-15.
    """
    c.require("shapes", begins.shape == ends.shape)
    c.require("symbols-line", symbols.rank == 1)
    first, last = c.known("begins").astype(np.int64).reshape(-1), c.known("ends").astype(np.int64).reshape(-1)
    c.require("range", bool(((first >= 0) & (first <= last) & (last <= symbols.size)).all()))
    texts, encoded = np.empty(len(first), object), c.known("symbols").astype(np.uint8).tobytes()
    for position, (start, stop) in enumerate(zip(first, last, strict=True)):
        try:
            texts[position] = encoded[start:stop].decode()
        except UnicodeDecodeError:
            c.open("no-text")
            texts[position] = ""
    return c.constant(texts.reshape(begins.shape), "string")


def ascending(drawing: Drawing) -> Array:
    """Distinct whole numbers in ascending order along the last axis, small enough for any type."""
    n, size = (drawing.shape[-1], drawing.size) if drawing.size else (1, 1)
    unsigned = drawing.type.is_integer and drawing.type.smallest == 0
    sums = np.cumsum(1 + drawing.draw.below(2, size).reshape(-1, size // n, n), -1) - (0 if unsigned else n)
    return np.asarray(sums.reshape(len(sums), -1)[:, : drawing.size]).astype(np.float64)


def repeating(drawing: Drawing) -> Array:
    """Whole numbers in ascending order along the last axis, each twice."""
    n = drawing.shape[-1] if drawing.shape else 1
    return np.broadcast_to(np.arange(n) // 2 + 1, (1, *drawing.shape)).reshape(1, -1).astype(np.float64)


def forebears(drawing: Drawing) -> Array:
    """The number of a beam for each step, sample and beam: indices below the last dimension."""
    return drawing.draw.below(max(1, drawing.shape[-1] if drawing.shape else 1), drawing.size)


def tokens(drawing: Drawing) -> Array:
    """Whole numbers from 1 to 5."""
    return 1 + drawing.draw.below(5, drawing.size)


def step_counts(drawing: Drawing) -> Array:
    """Lengths from 1 to one more than `steps`."""
    return 1 + drawing.draw.below(drawing.limit("steps", 1) + 1, drawing.size)


def tuples_from_front(drawing: Drawing) -> Array:
    """Tuples of indices within `extents`, in the last dimension."""
    indices = signed_tuples(drawing)
    return np.where(indices < 0, indices + _limits(drawing), indices)


def signed_tuples(drawing: Drawing) -> Array:
    """Tuples of indices within `extents`, in the last dimension; some numbers count from the end."""
    limits = _limits(drawing)
    return (drawing.draw.bits(drawing.size) % (2 * limits).astype(np.uint64)).astype(np.int64) - limits


def _limits(drawing: Drawing) -> Array:
    """The extent that each number of the tuples is below, shape (1, size); 1 for surplus numbers."""
    depth = drawing.shape[-1] if drawing.shape else 1
    extents: Sequence[int] = drawing.arguments["extents"][max(0, drawing.attributes.get("batch_dims") or 0) :]
    within = [max(1, n) for n in (*extents, *(1,) * depth)[:depth]] or [1]
    return np.resize(np.array(within, np.int64), (1, drawing.size))


def gaps(drawing: Drawing) -> Array:
    """Starts of bags of `length` indices in all; some bags are empty, but not the last."""
    length = drawing.limit("length", 1)
    starts = np.array([0, length // 3, length // 3, length // 2, length - 1])[np.arange(drawing.size) % 5]
    return np.sort(starts)


def even(drawing: Drawing) -> Array:
    """Starts of bags of about one size, `length` indices in all."""
    return np.arange(drawing.size) * drawing.limit("length", 1) // max(drawing.size, 1)


def segments(drawing: Drawing) -> Array:
    """Numbers of segments below `count`, ascending, at most every second of them."""
    count = drawing.limit("count", 1)
    return np.sort(drawing.draw.below((count + 1) // 2, drawing.size) * 2, axis=1)


def prefixes(drawing: Drawing) -> Array:
    """Masks of shape [T, N]: ones for the steps of each sample, then zeros."""
    steps, batch = drawing.shape if len(drawing.shape) == 2 else (drawing.size, 1)
    own = drawing.draw.below(steps + 1, batch)
    return (np.arange(steps)[None, :, None] < own[:, None, :]).astype(np.float64).reshape(len(own), -1)


def step_numbers(drawing: Drawing) -> Array:
    """Lengths from 0 to `steps`."""
    return drawing.draw.below(drawing.limit("steps", 1) + 1, drawing.size)


def letters(drawing: Drawing) -> Array:
    """Codes of letters from a to z."""
    return 97 + drawing.draw.below(26, drawing.size)


def scores_of_classes(drawing: Drawing) -> Array:
    """Scores along the last axis that are distinct multiples of 1/8."""
    size, classes = (drawing.size, drawing.shape[-1]) if drawing.size else (1, 1)
    order = np.argsort(drawing.draw.bits(size).reshape(-1, size // classes, classes), 2)
    return np.asarray(order.reshape(len(order), -1)[:, : drawing.size] / 8.0)
