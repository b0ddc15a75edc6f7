"""OpenVINO's operations that draw, sample and sort out: Unique, DeformableConvolution, random numbers, anchors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...cases.elements import Array, element_type
from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from . import Shaping
from .activation import sigmoid
from .normalization import along
from .openvino import AUTO_PAD
from .random import TELLING, classes_drawn
from .sampling import Deformation, deformed, weighed


def unique(c: Call, formula: Formula, data: Value, axis: Value | None = None) -> tuple[Value, ...]:
    """The distinct elements, or slices along an axis, their first places, the inverse places, and the counts.

    data: any shape; axis: one integer; results: the first has data's type, the others rank 1. Source: OpenVINO
    Unique-10.
    """
    dimension = None
    if axis is not None:
        c.require("axis-one", axis.rank < 2 and axis.size == 1)
        dimension = int(c.known("axis").reshape(()))
    results: tuple[Value, ...] = formula(data, axis=dimension)
    names = ("indices", "inverse", "counts")
    kinds = [str(c.output_types[name] or "int64") for name in names]
    return results[0], *(part.cast(kind) for part, kind in zip(results[1:], kinds, strict=True))


def deformable_convolution(c: Call, data: Value, offsets: Value, filters: Value, mask: Value | None = None) -> Value:
    """The cross-correlation of filters with data, where each element is read at an offset and weighted by a mask.

    data: [N, C, Y, X]; offsets: [N, deformable_group * kernel * 2, Y', X'], y before x; filters:
    [M, C / group, kernel]; mask: [N, deformable_group * kernel, Y', X']; result: [N, M, Y', X']. Source: OpenVINO
    DeformableConvolution-1 and 8.
    """
    c.require("rank", all(x is None or x.rank == 4 for x in (data, offsets, filters, mask)))
    strides, dilations, begin, end = (c.ints(name) or () for name in _LISTS)
    c.require("per-axis", {len(numbers) for numbers in (strides, dilations, begin, end)} == {2})
    c.require("pads-range", min(*begin, *end) >= 0)
    way, groups, parts = c.attr("auto_pad"), c.attr("group"), c.attr("deformable_group")
    c.require("auto-pad", way in AUTO_PAD)
    c.require("groups", data.shape[1] == filters.shape[1] * groups and filters.shape[0] % groups == 0)
    c.require("deformable-groups", parts > 0 and data.shape[1] % parts == 0)
    if way.startswith("same") and set(strides) != {1}:
        c.open("same-strided")
    kernel = filters.shape[2:]
    before, after, out = _frame(data.shape[2:], kernel, {name: c.ints(name) for name in _LISTS}, way)
    taps = math.prod(kernel)
    c.require("offsets-shape", offsets.shape == (data.shape[0], parts * taps * 2, *out))
    c.require_if_stated("mask-shape", mask is None or mask.shape == (data.shape[0], parts * taps, *out))
    form = Deformation(groups, parts, strides, dilations, (*before, *after))
    given = np.asarray(c.known("offsets")).astype(np.float64)
    moves, given, free = _within(c, data, filters, (offsets, given), form)
    if data.kind != "real":
        moves = moves.cast("float64")
    if parts == 1 or c.open("parts") == "input-channels":
        y = weighed(c, deformed(c, data, moves, given, kernel, form)[0], filters, form, None, mask)
    else:
        y = _by_output(c, (data, filters, moves, mask), given, form)
    return y.undefined(c.constant(np.broadcast_to(free, y.shape), "bool"), "outside") if free.any() else y


def _by_output(c: Call, inputs: tuple[Value, Value, Value, Value | None], given: Array, form: Deformation) -> Value:
    """The i-th part of the output's channels, by the i-th part of the offsets and of the mask."""
    data, filters, moves, mask = inputs
    c.require("deformable-groups", filters.shape[0] % form.parts == 0)
    size, results, ungrouped = filters.shape[0] // form.parts, [], replace(form, parts=1)
    for i in range(form.parts):
        own = np.arange(moves.shape[1]).reshape(form.parts, -1)[i]
        scale = None if mask is None else mask.take(np.arange(mask.shape[1]).reshape(form.parts, -1)[i], 1)
        seen, _ = deformed(c, data, moves.take(own, 1), given[:, own], filters.shape[2:], ungrouped)
        y = weighed(c, seen, filters, ungrouped, None, scale)
        results.append(y.take(np.arange(i * size, (i + 1) * size), 1))
    return results[0].concat(results[1:], 1)


def _within(
    c: Call, data: Value, filters: Value, offsets: tuple[Value, Array], form: Deformation
) -> tuple[Value, Array, Array]:
    """The offsets and their numbers, moved back to the border where they must be, and where the output is free.

    The third: [N, 1, Y', X'].
    """
    (value, numbers), kernel = offsets, filters.shape[2:]
    n, _, *out = numbers.shape
    given = numbers.reshape(n, -1, math.prod(kernel), 2, *out)
    places = _places(kernel, out, form.pads[:2], form.strides, form.dilations)
    at, last = given + places, np.array(data.shape[2:]).reshape(2, 1, 1) - 1
    front, back = (np.array(pads).reshape(2, 1, 1) for pads in (form.pads[:2], form.pads[2:]))
    framed = (at >= -front) & (at <= last + back) & (at == np.floor(at))
    outside = (((at < 0) | (at > last)) & ~framed).any(axis=3, keepdims=True)
    near = ((at > -1 - front) & (at < last + back + 1)).all(axis=3, keepdims=True)
    if "shifts" in c.clauses and not any(form.pads):
        free, moved = outside & ~near, outside & near
    else:
        free, moved = outside, np.zeros(1, bool)
    if c.attr("bilinear_interpolation_pad", False) or not outside.any():
        return value, numbers, np.zeros((n, 1, *out), bool)
    if moved.any():
        low, high = (c.constant(np.broadcast_to(v, given.shape), value.type) for v in (-places, last - places))
        shifts = value.reshape(*given.shape)
        inner = shifts.maximum(low).minimum(high)
        value = inner.where(c.constant(np.broadcast_to(moved, given.shape), "bool"), shifts).reshape(*numbers.shape)
        numbers = np.where(moved, given.clip(-places, last - places), given).reshape(numbers.shape)
    return value, numbers, free.any(axis=(1, 2, 3)).reshape(n, 1, *out)


def _places(
    kernel: Sequence[int],
    out: Sequence[int],
    before: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Array:
    """The places in data that the elements of a filter have without offsets: [taps, 2, Y', X']."""
    step, spread, front = (np.array(numbers).reshape(2, 1, 1) for numbers in (strides, dilations, before))
    taps = np.stack([index.reshape(-1) for index in np.indices(tuple(kernel))], 1).reshape(-1, 2, 1, 1)
    return np.asarray(np.indices(tuple(out)) * step - front + taps * spread)


def _frame(
    extents: Sequence[int], kernel: Sequence[int], given: Mapping[str, Sequence[int] | None], way: str
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The padding before and after data, and the extents of the output."""
    strides, dilations = given["strides"] or (), given["dilations"] or ()
    before, after = tuple(given["pads_begin"] or ()), tuple(given["pads_end"] or ())
    spans = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=False)]
    if way == "valid":
        before, after = (0,) * len(extents), (0,) * len(extents)
    elif way.startswith("same"):
        sizes = list(zip(extents, spans, strides, strict=False))
        wanted = [max((-(-n // step) - 1) * step + span - n, 0) for n, span, step in sizes]
        less, more = tuple(n // 2 for n in wanted), tuple(n - n // 2 for n in wanted)
        before, after = (less, more) if way == "same_upper" else (more, less)
    rows = zip(extents, before, after, spans, strides, strict=False)
    return before, after, tuple((n + a + b - span) // step + 1 for n, a, b, span, step in rows)


def multinomial(c: Call, probs: Value, samples: Value) -> Value:
    """Classes of each row, drawn with probabilities as its numbers are, or with log_probs as their powers of e are.

    probs: (batch, classes); samples: how many are drawn, one integer; result: (batch, samples), of the type
    convert_type. Source: OpenVINO Multinomial-13.
    """
    c.require("rank-2", probs.rank == 2)
    c.require("one-number", samples.rank < 2 and samples.size == 1)
    size, type_ = int(c.known("num_samples").reshape(())), str(c.output_types["output"])
    logs, again = c.attr("log_probs"), c.attr("with_replacement")
    c.require("samples-range", size >= 0)
    (batch, classes), known = probs.shape, c.known("probs").astype(np.float64)
    likely = np.isfinite(known) if logs else np.isfinite(known) & (known >= 0)
    c.require("distribution", bool(classes and likely.all() and (logs or known.any(axis=1).all())))
    c.require("enough-classes", again or size <= classes)
    if not size:
        c.open("no-samples")
        return c.constant(0, type_).broadcast(batch, size)
    if not again and not logs and (np.count_nonzero(known, axis=1) < size).any():
        c.open("exhausted")
    weights = probs.cast("float64")
    if logs:
        weights = (weights - weights.max(1)).exp()
    if (c.attr("global_seed") or c.attr("op_seed")) and batch * size >= TELLING and again:
        c.check("same-seed", differs=float(c.open("seed") != "repeatable"))
    if again or size == 1:
        rough = 2.0 ** (3 - element_type(probs.type).float_format.precision)
        return classes_drawn(c, weights / weights.sum(1), size, type_, rough)
    alike = [c.constant(np.zeros((batch, n)), "float64") for n in (classes, size)]
    c.check("follows", arrays=alike, axis=1, distinct=1)  # they only have to be distinct
    middle, first, last = (c.constant(n, type_).broadcast(batch, size) for n in (classes // 2, 0, classes - 1))
    return middle.node("between", first, last)


def random_uniform(c: Call, shape: Value, minval: Value, maxval: Value) -> Value:
    """Numbers from minval up to maxval: Philox's stream, or numbers that may come from a uniform distribution.

    shape: the extents of the result; minval, maxval: one number each; result: of the type output_type. Source: OpenVINO
    RandomUniform-8.
    """
    c.require("shape-list", shape.rank == 1)
    c.require("one-number", all(v.rank < 2 and v.size == 1 for v in (minval, maxval)))
    extents, type_ = tuple(int(n) for n in c.known("shape")), str(c.output_types["output"])
    c.require("shape-range", min(extents, default=0) >= 0)
    low, high = (c.known(name).reshape(())[()] for name in ("minval", "maxval"))
    c.require("bounds", bool(low < high))
    c.require("alignment", c.attr("alignment") in ("TENSORFLOW", "PYTORCH"))
    seeds = int(c.attr("global_seed")), int(c.attr("op_seed"))
    kind, size = element_type(type_), math.prod(extents)
    if c.attr("alignment") == "PYTORCH":
        c.open("mersenne")
    elif any(seeds) and kind.is_integer:
        words = philox(*seeds, size * (2 if kind.bits > 32 else 1))
        if kind.bits > 32:
            pairs = [first | second << 32 for first, second in zip(words[::2], words[1::2], strict=True)]
            words = words[:size] if c.open("words") == "one" else pairs
        drawn = [word % (int(high) - int(low)) + int(low) for word in words]
        return c.constant(np.array(drawn, np.int64).reshape(extents), "int64").cast(type_)
    elif any(seeds) and type_ in _FRACTION_BITS:
        x = c.constant(np.array(_fractions(seeds, size, _FRACTION_BITS[type_])).reshape(extents), type_)
        least, most = minval.reshape(), maxval.reshape()
        return x * (most - least) + least
    elif any(seeds):
        c.open("brain")
    return _anywhere(c, extents, type_, (float(low), float(high)))


_FRACTION_BITS = {"float16": 10, "float32": 23, "float64": 52}
"""The bits of a fraction, which are the last ones of a word, or of two."""


def _anywhere(c: Call, extents: Sequence[int], type_: str, ends: tuple[float, float]) -> Value:
    """Numbers between two ends that may come from a uniform distribution."""
    low, high = ends
    kind, half = element_type(type_), (high - low) / 2
    last = high - 1 if kind.is_integer else high
    middle = c.constant(math.floor(low + half) if kind.is_integer else low + half, type_).broadcast(*extents)
    coarse = 1.0 if kind.is_integer else 2.0 ** (2 - kind.float_format.precision) * max(abs(low), abs(high), 2 * half)
    moments = [c.constant(v, "float64").broadcast(*extents) for v in (low + half, half**2 / 3, half**4 / 5)]
    c.check("moments", arrays=moments, reach=half, law="uniform", unit=coarse)
    least, most = (c.constant(v, type_).broadcast(*extents) for v in (low, last))
    return middle.node("between", least, most)


def _fractions(seeds: tuple[int, int], size: int, bits: int) -> list[float]:
    """Numbers in [0, 1) whose binary digits are the last `bits` of a word, or of two, the first one above."""
    if bits < 32:
        return [(word & ((1 << bits) - 1)) / (1 << bits) for word in philox(*seeds, size)]
    words = philox(*seeds, 2 * size)
    pairs = zip(words[::2], words[1::2], strict=True)
    return [((first & ((1 << bits - 32) - 1)) << 32 | second) / (1 << bits) for first, second in pairs]


def philox(key: int, counter: int, count: int) -> list[int]:
    """The first words of 32 bits of Philox 4x32 with ten rounds: four for each number n, with `counter` above it."""
    words: list[int] = []
    for n in range(-(-count // 4)):
        low, high = key & _WORD, key >> 32
        state = [n & _WORD, n >> 32, counter & _WORD, counter >> 32]
        for _ in range(10):
            first, second = 0xD2511F53 * state[0], 0xCD9E8D57 * state[2]
            state = [second >> 32 ^ state[1] ^ low, second & _WORD, first >> 32 ^ state[3] ^ high, first & _WORD]
            low, high = low + 0x9E3779B9 & _WORD, high + 0xBB67AE85 & _WORD
        words += state
    return words[:count]


_WORD = 0xFFFFFFFF


def deformations(shaping: Shaping) -> tuple[int, ...]:
    """A number for each image, deformable group, kernel element, axis, and output element."""
    kernel, out = _windows(shaping)
    return (shaping.extent("N"), shaping.extent("h") * kernel * 2, *out)


def modulations(shaping: Shaping) -> tuple[int, ...]:
    """A number for each image, deformable group, kernel element, and output element."""
    kernel, out = _windows(shaping)
    return (shaping.extent("N"), shaping.extent("h") * kernel, *out)


def _windows(shaping: Shaping) -> tuple[int, tuple[int, ...]]:
    """The number of elements of a kernel, and the extents of the output."""
    extents, kernel = shaping.symbols["S"], shaping.symbols["K"]
    assert isinstance(extents, tuple)
    assert isinstance(kernel, tuple)
    given: dict[str, Any] = {name: shaping.attr(name) for name in _LISTS}
    lists = {name: value if isinstance(value, tuple) else (1, 1) for name, value in given.items()}
    way = shaping.attr("auto_pad")
    return math.prod(kernel), _frame(extents, kernel, lists, way if isinstance(way, str) else "explicit")[2]


_LISTS = ("strides", "dilations", "pads_begin", "pads_end")


def inward(drawing: Drawing) -> Array:
    """Offsets that lead to places inside data: to multiples of 1/4, or of 1 if the type is of whole numbers."""
    extents, kernel = (tuple(drawing.arguments.get(name) or (1, 1)) for name in ("extents", "kernel"))
    lists = {name: tuple(drawing.attributes.get(name) or (1, 1)) for name in _LISTS}
    before, _, out = _frame(extents, kernel, lists, str(drawing.attributes.get("auto_pad") or "explicit"))
    if drawing.shape[2:] != out or any(len(numbers) != 2 for numbers in lists.values()):
        return np.zeros(drawing.size)  # the input is invalid
    places = _places(kernel, out, before, lists["strides"], lists["dilations"])
    unit = 1 if drawing.type.is_integer else 4
    last = (np.array(extents).reshape(2, 1, 1) - 1) * unit
    drawn = drawing.draw.below(1 << 20, drawing.size)
    to = drawn.reshape(len(drawn), -1, *places.shape) % (last + 1)
    offsets = to / unit - places
    least = float(drawing.type.smallest) if unit == 1 else -np.inf
    return np.asarray(np.maximum(offsets, least).reshape(len(drawn), -1))


def still(drawing: Drawing) -> Array:
    """All zeros."""
    return np.zeros(drawing.size)


def nv12_to_rgb(c: Call, y: Value, uv: Value | None = None) -> Value:
    """Red, green and blue of a picture whose colours are one plane of pairs.

    y: [N, H, W, 1], or with uv in the rows below [N, 3 / 2 H, W, 1]; uv: [N, H / 2, W / 2, 2]; result: [N, H, W, 3].
    Source: OpenVINO NV12toRGB-8.
    """
    bright, below = _brightness(c, y, uv is None)
    c.require("rank", uv is None or (uv.rank == 4 and uv.shape[3] == 2))
    pairs = below.reshape(*_half(bright), 2) if uv is None else uv
    c.require("planes-shape", pairs.shape[:3] == _half(bright))
    return _coloured(c, bright, pairs[..., :1], pairs[..., 1:])


def nv12_to_bgr(c: Call, y: Value, uv: Value | None = None) -> Value:
    """Blue, green and red of a picture whose colours are one plane of pairs.

    The inputs are those of `nv12_to_rgb`. Source: OpenVINO NV12toBGR-8.
    """
    return nv12_to_rgb(c, y, uv).take(np.array([2, 1, 0]), 3)


def i420_to_rgb(c: Call, y: Value, u: Value | None = None, v: Value | None = None) -> Value:
    """Red, green and blue of a picture whose colours are two planes.

    y: [N, H, W, 1], or with u and v in the rows below [N, 3 / 2 H, W, 1]; u, v: [N, H / 2, W / 2, 1]; result:
    [N, H, W, 3]. Source: OpenVINO I420toRGB-8.
    """
    c.require("separate", (u is None) == (v is None))
    bright, below = _brightness(c, y, u is None)
    c.require("rank", all(plane is None or (plane.rank == 4 and plane.shape[3] == 1) for plane in (u, v)))
    half = _half(bright)
    if u is None or v is None:
        both = below.reshape(half[0], 2, half[1], half[2], 1)
        u, v = both[:, 0], both[:, 1]
    c.require("planes-shape", u.shape[:3] == v.shape[:3] == half)
    return _coloured(c, bright, u, v)


def i420_to_bgr(c: Call, y: Value, u: Value | None = None, v: Value | None = None) -> Value:
    """Blue, green and red of a picture whose colours are two planes.

    The inputs are those of `i420_to_rgb`. Source: OpenVINO I420toBGR-8.
    """
    return i420_to_rgb(c, y, u, v).take(np.array([2, 1, 0]), 3)


def _brightness(c: Call, y: Value, alone: bool) -> tuple[Value, Value]:
    """The plane Y, [N, H, W, 1], and the rows below it, which hold the colours if they have no inputs of their own."""
    c.require("rank", y.rank == 4 and y.shape[3] == 1)
    rows = y.shape[1] * 2 // 3 if alone else y.shape[1]
    c.require("even", rows % 2 == 0 == y.shape[2] % 2 and (not alone or y.shape[1] % 3 == 0))
    return y[:, :rows], y[:, rows:]


def _half(bright: Value) -> tuple[int, ...]:
    """The extents of a plane of colours, without the last one."""
    n, h, w, _ = bright.shape
    return n, h // 2, w // 2


def _coloured(c: Call, bright: Value, u: Value, v: Value) -> Value:
    """Red, green and blue, from planes whose colours belong to two rows and columns."""
    _, h, w, _ = bright.shape
    integer = bright.kind != "real"
    spread = (plane.take(np.arange(h) // 2, 1).take(np.arange(w) // 2, 2) for plane in (u, v))
    level, blue, red = (plane.cast("float32") if integer else plane for plane in (bright, *spread))
    base, blue, red = (level - 16.0) * 1.164, blue - 128.0, red - 128.0
    parts = (base + red * 1.596, base - red * 0.813 - blue * 0.391, base + blue * 2.018)
    colours = parts[0].concat(parts[1:], 3).clip(0.0, 255.0)
    if not integer:
        return colours
    way = c.open("rounding", ~colours.equal(colours.floor()))
    return (colours.floor() if way == "down" else colours.rint()).cast(bright.type)


def sparse_fill_empty_rows(
    c: Call, values: Value, sizes: Value, indices: Value, default: Value
) -> tuple[Value, Value, Value]:
    """The entries of a sparse matrix in row-major order, with one in the first column of each row that had none.

    values: [M]; sizes: the numbers of rows and columns; indices: [M, 2]; default: a scalar; results: the places, the
    values, and which rows were empty. Source: OpenVINO FillEmptyRows-16.
    """
    c.require("shapes", values.rank == 1 and indices.shape == (values.size, 2) and sizes.shape == (2,))
    c.require("default-scalar", default.rank == 0)
    rows, columns = (int(n) for n in c.known("dense_shape"))
    c.require("sizes", min(rows, columns) >= 0)
    places = [(int(row), int(column)) for row, column in c.known("indices")]
    c.require("range", all(0 <= row < rows and 0 <= column < columns for row, column in places))
    if len(set(places)) < len(places):
        c.open("repeated")
    empty = sorted(set(range(rows)) - {row for row, _ in places})
    if empty and not columns:
        c.open("no-column")
    entries = sorted([*((*pair, n) for n, pair in enumerate(places)), *((row, 0, len(places)) for row in empty)])
    order = np.array([n for _, _, n in entries], np.int64)
    pairs = np.array([entry[:2] for entry in entries], np.int64).reshape(-1, 2)
    filled = np.isin(np.arange(rows), empty)
    return (
        c.constant(pairs, indices.type),
        values.concat([default.reshape(1)], 0).take(order, 0),
        c.constant(filled, "bool"),
    )


def cells(drawing: Drawing) -> Array:
    """Places of a matrix of the extents in dense_shape, all different, in row-major order."""
    return _cells(drawing, ordered=True)


def shuffled_cells(drawing: Drawing) -> Array:
    """Places of a matrix of the extents in dense_shape, all different, in any order."""
    return _cells(drawing, ordered=False)


def _cells(drawing: Drawing, *, ordered: bool) -> Array:
    sizes = np.asarray(drawing.values["dense_shape"]).reshape(len(drawing.values["dense_shape"]), -1)
    rows, columns = (max(1, int(n)) for n in sizes[0, :2])
    area, count = rows * columns, drawing.size // 2
    order = np.argsort(drawing.draw.bits(area), axis=1, kind="stable")[:, :count]
    flat = np.sort(order, axis=1) if ordered else order
    return np.stack([flat // columns, flat % columns], 2).reshape(len(flat), -1)


def region_yolo(c: Call, data: Value) -> Value:
    """Regions with their first two coordinates, confidence and classes between 0 and 1.

    data: [N, C, H, W], whose channels are regions of coordinates, a confidence, and classes; result: its shape, or with
    do_softmax the dimensions from axis to end_axis as one. Source: OpenVINO RegionYolo-1.
    """
    c.require("rank", data.rank == 4)
    coords, classes, soft = int(c.attr("coords")), int(c.attr("classes")), bool(c.attr("do_softmax"))
    regions = int(c.attr("num")) if soft else len(c.ints("mask") or ())
    first, last = int(c.attr("axis")), int(c.attr("end_axis"))
    c.require("axis-range", all(-4 <= axis < 4 for axis in (first, last)))
    c.require("axis-order", first % 4 <= last % 4)
    first, last = first % 4, last % 4
    n, channels, h, w = data.shape
    c.require("channels", channels == regions * (coords + 1 + classes))
    parts = data.reshape(n, regions, coords + 1 + classes, h, w)
    centers, sizes, sure = parts[:, :, :2], parts[:, :, 2:coords], parts[:, :, coords : coords + 1]
    kinds = parts[:, :, coords + 1 :]
    if soft:
        kinds = along(c, kinds, 2)
    elif c.open("classes") == "logistic":
        kinds = sigmoid(c, kinds)
    y = sigmoid(c, centers).concat([sizes, sigmoid(c, sure), kinds], 2)
    if not soft:
        return y.reshape(*data.shape)
    flat = math.prod(data.shape[first : last + 1])
    return y.reshape(*data.shape[:first], flat, *data.shape[last + 1 :])
