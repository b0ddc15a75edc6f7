"""Operators on boxes: NonMaxSuppression, RoiAlign, MaxRoiPool, and OpenVINO's ROIAlign."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gmpy2 import mpq

from ...cases.elements import Array
from ..arithmetic.tape import Call, Value
from ..fills import Drawing


def non_max_suppression(
    c: Call,
    boxes: Value,
    scores: Value,
    most: Value | None = None,
    overlap: Value | None = None,
    least: Value | None = None,
) -> Value:
    """The boxes to keep of each batch and class: the best first, and none that overlaps a kept one too much.

    boxes: float32 [N, P, 4]; scores: float32 [N, C, P]; the others: rank 0; result: int64 [n, 3], rows of batch, class
    and box, in an order that is open. A box overlaps too much if intersection over union exceeds the threshold, not
    if it is equal; a score equal to its threshold is kept. Source: ONNX NonMaxSuppression-10 and 11.
    """
    n, p = boxes.shape[:2]
    c.require("shapes", boxes.shape == (n, p, 4) and scores.rank == 3 and (scores.shape[0], scores.shape[2]) == (n, p))
    for scalar in (most, overlap, least):
        c.require("one-number", scalar is None or scalar.size == 1)
        if scalar is not None and scalar.rank:
            c.open("rank")
    limit = 0 if most is None else int(c.known("max_output_boxes_per_class").reshape(()))
    threshold = mpq(0) if overlap is None else mpq(float(c.known("iou_threshold").reshape(())))
    c.require("threshold-range", 0 <= threshold <= 1)
    floor = None if least is None else float(c.known("score_threshold").reshape(()))
    corners, marks = [[_corners(c, box) for box in batch] for batch in c.known("boxes")], c.known("scores")
    flat = mpq(0)
    if any(bottom <= top or right <= left for batch in corners for top, left, bottom, right in batch):
        flat = mpq(2 if c.open("no-area") == "suppressed" else 0)
    rows = []
    for batch, group in np.ndindex(*marks.shape[:2]):
        mine = marks[batch, group]
        wanted = [box for box in range(p) if floor is None or mine[box] >= floor]
        later = -1 if len({mine[box] for box in wanted}) < len(wanted) and c.open("score-ties") == "higher-index" else 1
        kept: list[int] = []
        for box in sorted(wanted, key=lambda box: (-mine[box], later * box)):
            near = (_overlap(corners[batch][box], corners[batch][other], flat) for other in kept)
            if len(kept) < limit and not any(part > threshold for part in near):
                kept.append(box)
        rows += [(batch, group, box) for box in kept]
    c.check("order", axis=0, whole=1)
    return c.constant(np.array(rows, np.int64).reshape(-1, 3), "int64")


def _corners(c: Call, box: Array) -> tuple[mpq, mpq, mpq, mpq]:
    """Top, left, bottom and right of a box given as two opposite corners, or as centre, width and height."""
    a, b, d, e = (mpq(float(v)) for v in box)
    if c.attr("center_point_box") == 1:
        return b - e / 2, a - d / 2, b + e / 2, a + d / 2
    return min(a, d), min(b, e), max(a, d), max(b, e)


def _overlap(first: tuple[mpq, ...], second: tuple[mpq, ...], flat: mpq) -> mpq:
    """Intersection over union; `flat` for two boxes without an area."""
    height = min(first[2], second[2]) - max(first[0], second[0])
    width = min(first[3], second[3]) - max(first[1], second[1])
    shared = max(height, mpq(0)) * max(width, mpq(0))
    union = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)) - shared
    return shared / union if union else flat


def separate(drawing: Drawing) -> Array:
    """Boxes that do not overlap, with whole numbers as sizes."""
    return _boxes(drawing, lambda index, size: (8 * index, 0, 1 + size, 4), flip=False)


def nested(drawing: Drawing) -> Array:
    """Boxes that overlap by a half, a quarter, an eighth and so on, or not at all."""
    return _boxes(drawing, lambda index, size: (index % 4 * 2, 0, 4, 1 + size % 2 * 3), flip=False)


def flipped(drawing: Drawing) -> Array:
    """Like `nested`, with corners in any order."""
    return _boxes(drawing, lambda index, size: (index % 4 * 2, 0, 4, 1 + size % 2 * 3), flip=True)


def identical(drawing: Drawing) -> Array:
    """The same box, many times."""
    return _boxes(drawing, lambda index, size: (index * 0, 0, 4, size * 0 + 4), flip=False)


def without_area(drawing: Drawing) -> Array:
    """Boxes without height, some of them equal."""
    return _boxes(drawing, lambda index, size: (index % 3, 0, 0, 1 + size), flip=False)


def _boxes(drawing: Drawing, box: Callable[[Array, Array], tuple[Any, ...]], *, flip: bool) -> Array:
    """Boxes in the form of center_point_box. `box`: corner, height and width from an index and a drawn number."""
    count = drawing.size // 4
    size = drawing.draw.below(4, count)
    y, x, height, width = (np.broadcast_to(part, size.shape).astype(float) for part in box(np.arange(count), size))
    if drawing.attributes.get("center_point_box") == 1:
        parts = (x + width / 2, y + height / 2, width, height)
    else:
        turn = drawing.draw.below(4, count) if flip else size * 0
        high, left = np.where(turn & 1, y + height, y), np.where(turn & 2, x + width, x)
        parts = (high, left, 2 * y + height - high, 2 * x + width - left)
    return np.stack(parts, -1).reshape(len(size), drawing.size)


def distinct(drawing: Drawing) -> Array:
    """Distinct scores below 1 in each batch and class, multiples of 1/64 or finer; some equal a threshold."""
    count = drawing.shape[-1]
    if not drawing.size:
        return np.zeros((1, 0))
    steps = max(64, 1 << (count - 1).bit_length())
    drawn = drawing.draw.bits(steps * (drawing.size // count)).reshape(-1, steps)
    return (np.argsort(drawn, axis=1, kind="stable")[:, :count] / steps).reshape(-1, drawing.size)


def ties(drawing: Drawing) -> Array:
    """Scores with two equal ones."""
    return np.broadcast_to(np.arange(drawing.size) // 2 / 8, (1, drawing.size))


def max_roi_pool(c: Call, x: Value, rois: Value) -> Value:
    """The largest element in each cell of a grid over each region. The rounding of cells to elements is not defined.

    x: [N, C, H, W]; rois: [R, 5], rows of batch, x1, y1, x2, y2; result: [R, C, cells...]. If all elements of a
    channel are equal, every cell has that number, whatever the rounding. Source: ONNX MaxRoiPool-1 and 22.
    """
    shape = c.ints("pooled_shape") or ()
    c.require("shapes", x.rank == 4 and rois.rank == 2 and rois.shape[1] == 5 and len(shape) == 2)
    images = c.known(rois)[:, 0].astype(np.float64)
    c.require("batch-range", bool(((images >= 0) & (images < x.shape[0])).all()))
    own = x.take(images.astype(np.int64), 0)
    most, least = own.max((2, 3)), own.min((2, 3))
    cells = most.broadcast(rois.shape[0], x.shape[1], *shape)
    return cells.undefined((least < most).broadcast(*cells.shape), "cells")


def roi_align(c: Call, x: Value, rois: Value, batch_indices: Value) -> Value:
    """The mean or the largest of samples in each cell of a grid over each region, interpolated from four neighbours.

    x: [N, C, H, W]; rois: [R, 4], rows of x1, y1, x2, y2; batch_indices: [R]; result: [R, C, output_height,
    output_width]. Samples are equidistant. Samples outside the image, and regions less than 1 wide, are open.
    Source: ONNX RoiAlign-10 to 22.
    """
    c.require("shapes", x.rank == 4 and rois.rank == 2 and rois.shape[1] == 4 and batch_indices.shape == rois.shape[:1])
    c.require("mode", c.attr("mode") in ("avg", "max"))
    way = c.attr("coordinate_transformation_mode") or c.open("coordinates-early")
    c.require_if_stated("coordinates", way in ("half_pixel", "output_half_pixel"))
    images = c.known(batch_indices)
    c.require("batch-range", bool(((images >= 0) & (images < x.shape[0])).all()))
    scale, shift = mpq(c.float32("spatial_scale")), mpq(1, 2) if way == "half_pixel" else mpq(0)
    sizes, ratio = (c.attr("output_height"), c.attr("output_width")), c.attr("sampling_ratio")
    regions = []
    for image, row in zip(images.tolist(), c.known(rois), strict=True):
        x1, y1, x2, y2 = (mpq(float(v)) * scale - shift for v in row)
        small = y2 - y1 < 1 or x2 - x1 < 1
        if small:
            c.open("small")
        regions.append(_pooled(c, x[image], ((y1, y2), (x1, x2)), sizes, ratio, free=small))
    return _regions(c, regions, x, sizes)


def align_regions(c: Call, x: Value, rois: Value, batch_indices: Value) -> Value:
    """The mean or the largest of samples in each cell of a grid over each region, interpolated from four neighbours.

    x: [N, C, H, W]; rois: [R, 4], rows of x1, y1, x2, y2; batch_indices: [R]; result: [R, C, pooled_h, pooled_w]. A
    region less than 1 wide is 1 wide, unless aligned_mode shifts regions. Source: OpenVINO ROIAlign-3 and 9.
    """
    c.require("shapes", x.rank == 4 and rois.rank == 2 and rois.shape[1] == 4 and batch_indices.shape == rois.shape[:1])
    c.require("mode", c.attr("mode") in ("avg", "max"))
    way = c.attr("aligned_mode", "asymmetric")
    c.require_if_stated("aligned", way in ("asymmetric", "half_pixel_for_nn", "half_pixel"))
    images = c.known(batch_indices)
    c.require("batch-range", bool(((images >= 0) & (images < x.shape[0])).all()))
    sizes, ratio = (c.attr("pooled_h"), c.attr("pooled_w")), c.attr("sampling_ratio")
    scale = mpq(c.float32("spatial_scale"))
    c.require("sizes", min(sizes) > 0 and ratio >= 0 and scale > 0)
    half = mpq(1, 2)
    regions = []
    for image, row in zip(images.tolist(), c.known(rois), strict=True):
        points = [mpq(float(v)) for v in row]
        if way == "half_pixel":
            x1, y1, x2, y2 = ((p + half) * scale - half for p in points)
        else:
            x1, y1, x2, y2 = (p * scale - (half if way == "half_pixel_for_nn" else 0) for p in points)
        if way == "asymmetric":
            x2, y2 = max(x2, x1 + 1), max(y2, y1 + 1)
        elif x2 <= x1 or y2 <= y1:
            c.open("turned")
        regions.append(_pooled(c, x[image], ((y1, y2), (x1, x2)), sizes, ratio, free=False))
    return _regions(c, regions, x, sizes)


def _pooled(
    c: Call,
    x: Value,
    spans: Sequence[tuple[mpq, mpq]],
    sizes: Sequence[int],
    ratio: int,
    *,
    free: bool,
) -> Value:
    """The cells of one region of x [C, H, W], from its first to its last row and column."""
    lines: list[list[list[mpq]]] = []
    for (low, high), size, extent in zip(spans, sizes, x.shape[1:], strict=True):
        count = ratio or max(1, int(math.ceil((high - low) / size)))  # noqa: RUF046 - an mpz
        step = (high - low) / (size * count)
        places = [low + step * (i + mpq(1, 2)) for i in range(size * count)]
        if min(places) < 0 or max(places) > extent - 1 or any(p.denominator & (p.denominator - 1) for p in places):
            c.open("outside")
            free = True
        lines.append([places[i * count : (i + 1) * count] for i in range(size)])
    y = _sampled(c, x, lines)
    return y.undefined(c.constant(free, "bool").broadcast(*y.shape)) if free else y


def _regions(c: Call, regions: Sequence[Value], x: Value, sizes: Sequence[int]) -> Value:
    """The cells of all regions, stacked."""
    if not regions:
        return c.constant(0.0, x.type).broadcast(0, x.shape[1], *sizes)
    return regions[0].stack(*regions[1:])


def _sampled(c: Call, x: Value, lines: Sequence[Sequence[Sequence[mpq]]]) -> Value:
    """The mean or maximum of each cell's samples of x [C, H, W], interpolated at the given rows and columns."""
    width = x.shape[2]
    places, weights = [], []
    for rows, columns in itertools.product(*lines):
        for y, z in itertools.product(rows, columns):
            sides = []
            for p, n in zip((y, z), x.shape[1:], strict=True):
                # beyond the image everything is open
                low = min(max(int(math.floor(p)), 0), n - 1)  # noqa: RUF046 - an mpz
                sides.append(((low, 1 - p % 1), (min(low + 1, n - 1), p % 1)))
            for (row, high), (column, wide) in itertools.product(*sides):
                places.append(row * width + column)
                weights.append(float(high * wide))
    samples = len(lines[0][0]) * len(lines[1][0])
    shape = (len(lines[0]), len(lines[1]), samples, 4)
    seen = x.reshape(x.shape[0], -1).take(np.array(places).reshape(shape), 1)
    parts = seen * c.constant(np.array(weights).reshape(1, *shape), x.type)
    if c.attr("mode") == "max":
        if c.answer("max-of", "of-samples") == "of-parts":
            return parts.max((3, 4), keep=False)
        return parts.sum(4, keep=False).max(3, keep=False)
    return parts.sum((3, 4), keep=False) / float(samples)


def inside(drawing: Drawing) -> Array:
    """Regions well inside an image of eight elements or more; all samples are at multiples of powers of two."""
    count, lanes = drawing.size // 4, len(drawing.draw.keys)
    low = 1 + drawing.draw.below(3, 2 * count).reshape(lanes, count, 2) / 2
    high = low + np.exp2(drawing.draw.below(3, 2 * count).reshape(lanes, count, 2))
    both = np.concatenate([low, high], 2) / np.float32(drawing.attributes.get("spatial_scale", 1.0))
    return both.reshape(lanes, drawing.size).astype(np.float64)


def regions(drawing: Drawing) -> Array:
    """Batch indices and regions, as whole numbers inside the image."""
    count, lanes = drawing.size // 5, len(drawing.draw.keys)
    low = drawing.draw.below(3, 2 * count).reshape(lanes, count, 2)
    high = low + 1 + drawing.draw.below(3, 2 * count).reshape(lanes, count, 2)
    image = drawing.draw.below(drawing.limit("below", 1), count).reshape(lanes, count, 1)
    return np.concatenate([image, low, high], 2).reshape(lanes, drawing.size).astype(np.float64)


def plain(drawing: Drawing) -> Array:
    """The same number throughout each channel of each image."""
    channels, area = math.prod(drawing.shape[:2]), math.prod(drawing.shape[2:])
    return np.repeat(drawing.draw.between(-99, 99, channels), area, axis=1).astype(np.float64)
