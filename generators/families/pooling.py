"""Operators that reduce each window or channel of their input to one number, and operators that combine windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...cases.elements import Array, element_type
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw, Drawing
from .convolution import framing

_ELEMENTS = 2
"""The axis of a window's elements."""
_Pads = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _Grid:
    """The elements of windows: coordinates [elements of a window, outputs..., axes], which may be outside the input.

    `pads`: the padding before and after each axis; a last window may reach beyond it.
    """

    extents: tuple[int, ...]
    pads: _Pads
    coordinates: Array

    @property
    def present(self) -> Array:
        """A mask of the windows' elements that are in the input."""
        return self._within(0)

    @property
    def framed(self) -> Array:
        """A mask of the windows' elements that are in the input or its padding."""
        return self._within(1)

    def _within(self, pads: int) -> Array:
        low = [-pads * before for before, _ in self.pads]
        high = [extent + pads * after for extent, (_, after) in zip(self.extents, self.pads, strict=True)]
        return np.asarray(((self.coordinates >= low) & (self.coordinates < high)).all(-1))

    def flat(self, axes: Sequence[int]) -> Array:
        """The coordinates as flat indices, with the axes in this order, the last one fastest."""
        steps, step = np.zeros(len(self.extents), np.int64), 1
        for axis in reversed(axes):
            steps[axis], step = step, step * self.extents[axis]
        return np.asarray((self.coordinates * steps).sum(-1))

    def seen(self, c: Call, x: Value, outside: float) -> Value:
        """The windows over x: [N, C, elements of a window, outputs...], with `outside` for elements outside x."""
        size, present = math.prod(self.extents), self.present
        line = x.reshape(*x.shape[:2], size)
        if not present.all():
            line = line.concat([c.constant(outside, x.type).broadcast(*x.shape[:2], 1)], 2)
        return line.take(np.where(present, self.flat(range(len(self.extents))), size), 2)


def max_pool(c: Call, x: Value) -> tuple[Value, Value | None]:
    """The largest element of each window, and its index in x: (Y, Indices).

    x: [N, C, spatial...]; both results: [N, C, windows...]; Indices: int64, flat indices into x, without padding.
    Source: ONNX MaxPool-1 to 22.
    """
    grid = _grid(c, x)
    own = element_type(x.type)
    seen = grid.seen(c, x, own.smallest if own.is_integer else -math.inf)
    y, way = _largest(c, seen, (_ELEMENTS,))
    none = c.constant(~grid.present.any(0), "bool")
    if not grid.present.any(0).all():
        y = _of_nothing(c, y, none)
    if not c.wants("Indices"):
        return y, None
    top = y.reshape(*y.shape[:2], 1, *y.shape[2:])
    chosen = (seen.equal(top) | (seen.isnan() & top.isnan()) if x.kind == "real" else seen.equal(top)) & c.constant(
        grid.present, "bool"
    )
    marks = chosen.cast("uint8")
    first, last = (marks.argmax(_ELEMENTS, late=late) for late in (False, True))
    several = ~first.equal(last)
    taken = c.open("ties", several)
    position = {"first": first, "last": last}.get(taken) or first.undefined(several)
    n, channels, axes = *x.shape[:2], range(x.rank - 2)
    images = np.arange(n * channels).reshape(n, channels, *(1,) * (x.rank - 1))
    size = math.prod(grid.extents)
    flat = images * size + grid.flat(axes)
    if c.attr("storage_order") == 1:
        flat = images * size + grid.flat(axes[::-1])
        if n * channels > 1 and c.open("column-major") == "whole":
            flat = images // channels + n * (images % channels + channels * grid.flat(axes[::-1]))
    index = c.constant(flat, "int64").along(position, _ELEMENTS).reshape(*y.shape)
    free = none if way != "any" else none | seen.isnan().cast("uint8").max(_ELEMENTS, keep=False).cast("bool")
    return y, index.undefined(free)


def average_pool(c: Call, x: Value) -> Value:
    """The mean of each window: over its elements, or with count_include_pad including zeros as padding.

    x: [N, C, spatial...]; result: [N, C, windows...]. Source: ONNX AveragePool-1 to 22.
    """
    grid = _grid(c, x)
    seen, most = grid.seen(c, x, 0.0), len(grid.coordinates)
    counts = grid.present.sum(0)
    if c.attr("count_include_pad", 0) == 1:
        counts = grid.framed.sum(0)
        if (counts < most).any() and c.open("overhang") == "counted":
            counts = np.full_like(counts, most)
    if (counts == most).all():
        return seen.mean(_ELEMENTS, keep=False)
    total, divisor = seen.sum(_ELEMENTS, keep=False), c.constant(np.maximum(counts, 1), x.type)
    y = (total / divisor).either(total * (1.0 / divisor))  # the product may be inexact even if the quotient is exact
    return y if counts.all() else y.undefined(c.constant(counts == 0, "bool"), "nothing")


def lp_pool(c: Call, x: Value) -> Value:
    """The p-norm of each window: (Σ|x|^p)^(1/p).

    x: [N, C, spatial...]; result: [N, C, windows...]. Source: ONNX LpPool-1 to 22.
    """
    seen = _grid(c, x).seen(c, x, 0.0)
    return _norm(c, seen, (_ELEMENTS,)).reshape(*seen.shape[:2], *seen.shape[3:])


def global_max_pool(c: Call, x: Value) -> Value:
    """The largest element of each channel.

    x: [N, C, spatial...]; result: [N, C, 1...]. Source: ONNX GlobalMaxPool-1 and 22.
    """
    axes = _spatial(c, x)
    return _unless_empty(c, x, _largest(c, x, axes)[0].reshape(*x.shape[:2], *(1 for _ in axes)))


def global_average_pool(c: Call, x: Value) -> Value:
    """The mean of each channel.

    x: [N, C, spatial...]; result: [N, C, 1...]. Source: ONNX GlobalAveragePool-1 and 22.
    """
    return _unless_empty(c, x, x.mean(_spatial(c, x)))


def global_lp_pool(c: Call, x: Value) -> Value:
    """The p-norm of each channel.

    x: [N, C, spatial...]; result: [N, C, 1...], which may always have rank 4 in version 1. Source: ONNX GlobalLpPool-1
    to 22.
    """
    y = _unless_empty(c, x, _norm(c, x, _spatial(c, x)))
    return y.reshape(*x.shape[:2], 1, 1) if x.rank != 4 and c.answer("rank-early", "same") == "four" else y


def max_unpool(c: Call, x: Value, indices: Value, *_: Value | None) -> Value:
    """Zeros, with the elements of x at `indices`, in the shape of a tensor from which pooling makes x's shape.

    x, indices: [N, C, spatial...]; result: [N, C, (n - 1) * stride + kernel - pads...], or output_shape. Open are which
    of several elements for one index counts, and to which shape the indices refer if output_shape is another one.
    Source: ONNX MaxUnpool-9 to 22.
    """
    k, kernel, strides = x.rank - 2, c.ints("kernel_shape") or (), c.ints("strides")
    if strides is None:
        c.answer("strides-early", "ones")
    strides, pads = strides or (1,) * k, c.ints("pads") or (0,) * (2 * k)
    c.require("per-axis", k > 0 and len(kernel) == len(strides) == k and len(pads) == 2 * k)
    c.require("same-shape", indices.shape == x.shape)
    usual = tuple(
        (n - 1) * step + size - before - after
        for n, step, size, before, after in zip(x.shape[2:], strides, kernel, pads[:k], pads[k:], strict=True)
    )
    shape = c.ints("output_shape") or (*x.shape[:2], *usual)
    c.require("output-shape", len(shape) == x.rank and shape[:2] == x.shape[:2])
    extents = shape[2:]
    inner = usual if extents != usual and c.open("indices-of") == "usual" else extents
    places = c.known("I").reshape(-1).astype(np.int64)
    size = math.prod((*x.shape[:2], *inner))
    c.require("indices-range", bool(((places >= 0) & (places < size)).all()))
    empty, line = c.constant(0.0, x.type).broadcast(size), x.reshape(x.size)
    y = empty.scatter(c.constant(places, "int64"), line)
    if len(set(places.tolist())) < len(places):
        first = empty.scatter(c.constant(places[::-1].copy(), "int64"), line.flip(0))
        several = ~first.equal(y)
        y = {"last": y, "first": first}.get(c.open("repeated", several)) or y.undefined(several)
    frame = [(0, extent - own) for extent, own in zip(extents, inner, strict=True)]
    return y.reshape(*x.shape[:2], *inner).pad(frame, 0)


def col2im(c: Call, x: Value, *_: Value) -> Value:
    """An image assembled from its blocks, which are strides apart; elements of overlapping blocks are added.

    x: [N, C * elements of a block, blocks]; further inputs are image_shape and block_shape; result: [N, C, image...].
    Source: ONNX Col2Im-18.
    """
    image, block = c.ints("image_shape") or (), c.ints("block_shape") or ()
    k = len(block)
    ones = (1,) * k
    strides, dilations, pads = (c.ints(name) for name in ("strides", "dilations", "pads"))
    strides, dilations, pads = strides or ones, dilations or ones, pads or (0, 0) * k
    c.require("lengths", len(image) == k > 1 and len(strides) == len(dilations) == k and len(pads) == 2 * k)
    sides = tuple(zip(pads[:k], pads[k:], strict=True))
    counts = tuple(
        (extent + sum(side) - (size - 1) * dilation - 1) // step + 1
        for extent, side, size, dilation, step in zip(image, sides, block, dilations, strides, strict=True)
    )
    elements = math.prod(block)
    c.require("blocks", x.rank == 3 and min(counts) > 0 and x.shape[2] == math.prod(counts))
    c.require("channels", x.shape[1] % elements == 0)
    grid = _Grid(image, sides, _coordinates(counts, block, strides, dilations, sides))
    size, area = elements * x.shape[2], math.prod(image)
    owners: list[list[int]] = [[] for _ in range(area)]
    for source, (target, inside) in enumerate(zip(grid.flat(range(k)).flat, grid.present.flat, strict=True)):
        if inside:
            owners[target].append(source)
    most = max(1, *map(len, owners)) if owners else 1
    table = np.array([own + [size] * (most - len(own)) for own in owners], np.int64).reshape(area, most).T
    zero = "" if x.type == "string" else False if x.type == "bool" else 0
    n, channels = x.shape[0], x.shape[1] // elements
    line = x.reshape(n, channels, size).concat([c.constant(zero, x.type).broadcast(n, channels, 1)], 2)
    addends = line.take(table, 2)
    if x.kind in ("real", "int"):
        y = addends.sum(2, keep=False)
    else:
        y = addends[:, :, 0].undefined(
            c.constant(np.array([len(own) != 1 for own in owners], bool), "bool"), "no-numbers"
        )
    return y.reshape(n, channels, *image)


def _spatial(c: Call, x: Value) -> tuple[int, ...]:
    """All axes except for batch and channels."""
    c.require("rank", x.rank >= 3)
    return tuple(range(2, x.rank))


def _unless_empty(c: Call, x: Value, y: Value) -> Value:
    """The channels' results, or what a channel without elements gives."""
    return _of_nothing(c, y) if 0 in x.shape[2:] and y.size else y


def _of_nothing(c: Call, y: Value, where: Value | None = None) -> Value:
    """Y, with one of the numbers that no elements may give: everywhere, or under a mask."""
    own, taken = element_type(y.type), c.open("nothing", where)
    numbers: dict[str, float] = {"zero": 0, "lowest": own.smallest} if own.is_integer else {}
    if not numbers:
        numbers = {"zero": 0.0, "lowest": -math.inf, "last-finite": -own.float_format.largest, "not-a-number": math.nan}
    number = c.constant(numbers.get(taken, numbers["zero"]), y.type)
    return number.broadcast(*y.shape) if where is None else number.where(where, y)


def _largest(c: Call, x: Value, axes: tuple[int, ...]) -> tuple[Value, str]:
    """The largest element over axes, which are removed, and the chosen option for NaN."""
    largest = x.max(axes, keep=False)
    if x.kind != "real":
        return largest, "propagates"
    lost = x.isnan().cast("uint8").max(axes, keep=False).cast("bool")
    way = c.open("nan", lost)
    if way == "ignored":
        return x.max(axes, keep=False, nan="ignore"), way
    return (largest.undefined(lost) if way == "any" else largest), way


def _norm(c: Call, x: Value, axes: tuple[int, ...]) -> Value:
    """The p-norm over axes, which stay: by squares and roots if p is 2, by powers, or as a mean times the count."""
    p, size, way = c.float32("p"), x.abs(), c.open("algorithm")
    direct = way != "powers"
    addends = size if p == 1 else x * x if p == 2 and direct else size.pow(p)
    count = math.prod(x.shape[axis] for axis in axes)
    total = addends.mean(axes) * float(count) if way == "mean-times-count" and count else addends.sum(axes)
    if p == 1:
        return total
    return total.sqrt() if p == 2 and direct else total.pow(c.constant(1.0, x.type) / p)


def _grid(c: Call, x: Value) -> _Grid:
    """The windows of kernel_shape, strides, dilations, pads, auto_pad and ceil_mode."""
    extents = x.shape[2:]
    kernel, strides, dilations, k = c.ints("kernel_shape"), c.ints("strides"), c.ints("dilations"), len(extents)
    if kernel is None:
        c.require("kernel-given", False)
    if strides is None:
        c.answer("strides-early", "ones")
    if dilations is None:
        c.answer("dilations-early", "ones")
    kernel, strides, dilations = (given or (1,) * k for given in (kernel, strides, dilations))
    c.require("per-axis", k > 0 and len(kernel) == len(strides) == len(dilations) == k)
    c.require("pads-range", min(c.ints("pads") or (0,)) >= 0)
    pads = framing(c, extents, kernel, strides, dilations)
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    pads, counts = _counts(c, extents, spans, strides, pads)
    if min(counts) <= 0:
        c.require("window-fits", min(counts) == 0)
        c.open("no-window")
    return _Grid(extents, pads, _coordinates(counts, kernel, strides, dilations, pads))


def _coordinates(
    counts: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pads: _Pads
) -> Array:
    k = len(kernel)
    coordinates = np.zeros((*kernel, *counts, k), np.int64)
    for axis in range(k):
        starts = np.arange(counts[axis]) * strides[axis] - pads[axis][0]
        coordinates[..., axis] += starts.reshape(-1, *(1,) * (k - axis - 1))
        coordinates[..., axis] += (np.arange(kernel[axis]) * dilations[axis]).reshape(-1, *(1,) * (2 * k - axis - 1))
    return coordinates.reshape(math.prod(kernel), *counts, k)


def _counts(
    c: Call, extents: Sequence[int], spans: Sequence[int], strides: Sequence[int], pads: _Pads
) -> tuple[_Pads, tuple[int, ...]]:
    """The number of windows on each axis, and the padding, which depends on it for SAME."""
    way, up = c.attr("auto_pad"), c.attr("ceil_mode", 0) == 1
    counts = [
        (-(-room // step) if up and way == "NOTSET" else room // step) + 1
        for extent, span, step, sides in zip(extents, spans, strides, pads, strict=True)
        for room in [extent + sum(sides) - span]
    ]
    if way == "NOTSET":
        kept = [
            min(count, -(-(extent + before) // step)) if up else count
            for count, extent, step, (before, _) in zip(counts, extents, strides, pads, strict=True)
        ]
        if kept == counts or "last-window-counts" in c.clauses:
            return pads, tuple(counts)
        ignored = "last-window" in c.clauses or c.open("last-window-early") == "ignored"
        return pads, tuple(kept if ignored else counts)
    beyond = [_overhang(*row) for row in zip(counts, strides, spans, extents, strict=True)]
    if way != "VALID" and min(beyond) < 0:
        crops = c.open("same-negative")
        if crops != "none":
            halves = [int(w / 2) if crops == "crops-truncated" else w // 2 for w in beyond]
            split = zip(halves, beyond, strict=True)
            pads = tuple((half, w - half) if way == "SAME_UPPER" else (w - half, half) for half, w in split)
    if not up and c.silent("auto-pad-floor"):
        steps = zip(extents, spans, strides, strict=True)
        down = [(extent if way != "VALID" else extent - span + 1) // step for extent, span, step in steps]
        if down != counts and c.open("auto-pad-floor") == "floor":
            counts = down
            overhangs = [max(0, _overhang(*row)) for row in zip(counts, strides, spans, extents, strict=True)]
            if way != "VALID":
                pads = tuple((w // 2, w - w // 2) if way == "SAME_UPPER" else (w - w // 2, w // 2) for w in overhangs)
    return pads, tuple(counts)


def _overhang(count: int, step: int, span: int, extent: int) -> int:
    """How far `count` windows reach beyond an axis."""
    return (count - 1) * step + span - extent


def depths(blank: Blank, draw: Draw) -> Array:
    """Minus infinity with probability 3/4, else the type's lowest finite number and its neighbours."""
    form = blank.type.float_format
    lowest = np.ldexp((1 << form.precision) - 1.0 - draw.below(4, blank.size), form.emax - form.precision + 1)
    return np.where(draw.below(4, blank.size) > 0, -np.inf, -lowest)


def places(drawing: Drawing) -> Array:
    """Distinct indices into the tensor before MaxPool, for each channel within its own part."""
    k = len(drawing.shape) - 2
    kernel = drawing.attributes["kernel_shape"]
    steps, pads = drawing.attributes.get("strides") or (1,) * k, drawing.attributes.get("pads") or (0,) * (2 * k)
    extents = [
        (n - 1) * step + size - before - after
        for n, step, size, before, after in zip(drawing.shape[2:], steps, kernel, pads[:k], pads[k:], strict=False)
    ]
    area, most, images = max(0, math.prod(extents)), math.prod(drawing.shape[2:]), math.prod(drawing.shape[:2])
    drawn = drawing.draw.bits(area * images).reshape(len(drawing.draw.keys), images, area)
    positions = np.argsort(drawn, axis=2, kind="stable")[..., :most]
    return np.asarray(positions + area * np.arange(images)[:, None]).reshape(len(drawn), drawing.size)
