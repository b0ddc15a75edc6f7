"""OpenVINO's operations on boxes, windows and images: NonMaxSuppression, adaptive pooling, GridSample; attention."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from gmpy2 import mpq

from ...cases.elements import Array
from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from . import detection
from .normalization import along

Box: TypeAlias = tuple[mpq, mpq, mpq, mpq]
"""Top, left, bottom and right."""


@dataclass(frozen=True)
class _Limits:
    """What non maximum suppression stops at: the number of boxes, their overlap, their score; sigma softens scores."""

    most: float
    overlap: mpq
    least: float
    sigma: float


def non_max_suppression(
    c: Call,
    boxes: Value,
    scores: Value,
    most: Value | None = None,
    overlap: Value | None = None,
    least: Value | None = None,
    sigma: Value | None = None,
) -> tuple[Value, ...]:
    """The boxes to keep of each batch and class, the best first; from version 5 on with their scores and their number.

    boxes: [N, P, 4]; scores: [N, C, P]; the others: one number each; results: rows of batch, class and box, rows of
    batch, class and score, and [1]. Before version 5 the rows are filled up with -1. Source: OpenVINO
    NonMaxSuppression-1, 3, 4, 5 and 9.
    """
    n, p = boxes.shape[0], boxes.shape[1] if boxes.rank > 1 else 0
    c.require("shapes", boxes.shape == (n, p, 4) and scores.rank == 3 and scores.shape[::2] == (n, p))
    late = "scores" in c.clauses
    numbers = []
    for name, limit in zip(_NUMBERS, (most, overlap, least, sigma), strict=True):
        c.require("one-number", limit is None or limit.rank == 0 or (late and limit.shape == (1,)))
        numbers.append(0.0 if limit is None else float(c.known(name).reshape(())))
    c.require("encoding", c.attr("box_encoding") in ("corner", "center"))
    c.require("threshold-range", 0 <= numbers[1] <= 1)
    limits = _Limits(numbers[0], mpq(numbers[1]), numbers[2], numbers[3])
    corners = [[_corners(c, box) for box in batch] for batch in c.known("boxes")]
    if any(bottom <= top or right <= left for batch in corners for top, left, bottom, right in batch):
        c.open("no-area")
    marks = c.known("scores").astype(np.float64)
    rows: list[tuple[int, int, int, float, float]] = []
    for batch, group in np.ndindex(*marks.shape[:2]):
        rows += [(batch, group, *kept) for kept in _kept(c, corners[batch], marks[batch, group], limits)]
    if c.attr("sort_result_descending"):
        rows.sort(key=lambda row: -row[3] * math.exp(row[4]))
        if len({(row[3], row[4]) for row in rows}) < len(rows):
            c.check("order", ("selected_indices", "selected_scores") if late else (), axis=0, whole=1)
    return _results(c, rows, limits) if late else _filled(c, rows, (n, scores.shape[1], p), limits)


_NUMBERS = ("max_output_boxes_per_class", "iou_threshold", "score_threshold", "soft_nms_sigma")


def _results(
    c: Call, rows: Sequence[tuple[int, int, int, float, float]], limits: _Limits
) -> tuple[Value, Value, Value]:
    """The three outputs; scores that are softened are products with exponentials."""
    kind = str(c.output_types["selected_indices"] or c.output_types["valid_outputs"] or "int64")
    type_ = str(c.output_types["selected_scores"] or c.types["scores"])
    indices = c.constant(np.array([row[:3] for row in rows], np.int64).reshape(-1, 3), kind)
    places = c.constant(np.array([row[:2] for row in rows], np.float64).reshape(-1, 2), type_)
    marks = c.constant(np.array([row[3] for row in rows], np.float64).reshape(-1, 1), c.types["scores"])
    if limits.sigma and any(row[4] for row in rows):
        powers = np.array([row[4] for row in rows], np.float64).reshape(-1, 1)
        marks = marks * c.constant(powers, marks.type).exp()
    return indices, places.concat([marks.cast(type_)], 1), c.constant(np.array([len(rows)]), kind)


def _filled(
    c: Call, rows: Sequence[tuple[int, int, int, float, float]], sizes: tuple[int, int, int], limits: _Limits
) -> tuple[Value]:
    """The rows of the only output before version 5, filled up with -1."""
    n, classes, p = sizes
    most = int(limits.most)
    length = min(p, most) * n * classes if "size-of-all" in c.clauses else min(p, most * classes)
    if len(rows) > length:
        c.open("too-many")
    filled = np.full((length, 3), -1)
    filled[: len(rows)] = np.array([row[:3] for row in rows], np.int64).reshape(-1, 3)[:length]
    return (c.constant(filled, str(c.output_types["selected_indices"])),)


def _kept(c: Call, corners: Sequence[Box], marks: Array, limits: _Limits) -> list[tuple[int, float, float]]:
    """The boxes to keep, their scores, and the logarithms of the factors that soften these; the best first."""
    left = {box: (float(mark), 0.0) for box, mark in enumerate(marks)}
    kept: list[tuple[int, float, float]] = []
    while left and len(kept) < limits.most:
        values = {box: mark * math.exp(power) for box, (mark, power) in left.items()}
        best = max(values.values())
        if best < limits.least:
            break
        tied = [box for box, value in values.items() if value == best]
        taken = tied[-1] if len(tied) > 1 and c.open("score-ties") == "higher-index" else tied[0]
        kept.append((taken, *left.pop(taken)))
        for box in list(left):
            part = _overlap(corners[box], corners[taken])
            if part > limits.overlap and (not limits.sigma or "soft-cut" in c.clauses):
                if not limits.overlap and c.open("threshold-zero") == "keep-all":
                    continue
                del left[box]
                if limits.least <= 0 and "scores" in c.clauses:
                    c.open("suppressed")
            elif limits.sigma:
                mark, power = left[box]
                left[box] = mark, power - 0.5 * float(part) ** 2 / limits.sigma
    return kept


def _corners(c: Call, box: Array) -> Box:
    """The corners of a box given as two opposite ones, or as centre, width and height."""
    a, b, d, e = (mpq(float(v)) for v in box)
    if c.attr("box_encoding") == "center":
        return b - e / 2, a - d / 2, b + e / 2, a + d / 2
    return min(a, d), min(b, e), max(a, d), max(b, e)


def _overlap(first: Box, second: Box) -> mpq:
    """Intersection over union of two boxes, 0 if they have no area."""
    height = min(first[2], second[2]) - max(first[0], second[0])
    width = min(first[3], second[3]) - max(first[1], second[1])
    shared = max(height, mpq(0)) * max(width, mpq(0))
    union = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)) - shared
    return shared / union if union else mpq(0)


def adaptive_avg_pool(c: Call, data: Value, size: Value) -> Value:
    """The mean of each bin, whose bounds follow from the extents of data and of the output.

    data: [N, C, spatial...]; size: the spatial extents of the result. Source: OpenVINO AdaptiveAvgPool-8.
    """
    sizes = _sizes(c, data, size)
    means, order = [], []
    for places, cells in _bins(data.shape[2:], sizes):
        means.append(data.reshape(*data.shape[:2], -1).take(places, 2).mean((3,), keep=False))
        order += cells
    return _arranged(means, order).reshape(*data.shape[:2], *sizes)


def adaptive_max_pool(c: Call, data: Value, size: Value) -> tuple[Value, Value]:
    """The largest element of each bin, and its place if the spatial dimensions were one.

    data: [N, C, spatial...]; size: the spatial extents of both results. Source: OpenVINO AdaptiveMaxPool-8.
    """
    sizes = _sizes(c, data, size)
    maxima, indices, order = [], [], []
    for places, cells in _bins(data.shape[2:], sizes):
        seen = data.reshape(*data.shape[:2], -1).take(places, 2)
        top, lost = seen.max((3,)), seen.isnan().cast("uint8").max((3,)).cast("bool")
        way = c.open("nan", lost)
        if way == "ignored":
            top = seen.max((3,), nan="ignore")
        marks = (seen.equal(top) | (seen.isnan() & top.isnan())).cast("uint8")
        first, last = (marks.argmax(3, late=late) for late in (False, True))
        several = ~first.equal(last)
        taken = c.open("ties", several)
        position = {"first": first, "last": last}.get(taken) or first.undefined(several)
        index = c.constant(np.broadcast_to(places, seen.shape), "int64").along(position, 3)
        if way == "any":
            top, index = top.undefined(lost), index.undefined(lost)
        maxima.append(top.reshape(*top.shape[:3]))
        indices.append(index.reshape(*index.shape[:3]))
        order += cells
    shape = (*data.shape[:2], *sizes)
    kind = str(c.output_types["indices"] or "int64")
    return _arranged(maxima, order).reshape(*shape), _arranged(indices, order).reshape(*shape).cast(kind)


def _sizes(c: Call, data: Value, size: Value) -> tuple[int, ...]:
    """The spatial extents of the output."""
    c.require("rank", data.rank in (3, 4, 5))
    c.require("per-axis", size.shape == (data.rank - 2,))
    sizes = tuple(int(n) for n in c.known(size))
    c.require("sizes-positive", min(sizes) > 0)
    if 0 in data.shape[2:]:
        c.open("nothing")
    return sizes


def _bins(extents: Sequence[int], sizes: Sequence[int]) -> list[tuple[Array, list[int]]]:
    """The elements of bins, shape (bins, elements), and the bins' numbers: one pair for each number of elements."""
    axes = []
    for extent, size in zip(extents, sizes, strict=True):
        axes.append([range(i * extent // size, -((i + 1) * -extent // size)) for i in range(size)])
    strides = [math.prod(extents[axis + 1 :]) for axis in range(len(extents))]
    groups: dict[int, list[tuple[int, list[int]]]] = {}
    for number, ranges in enumerate(itertools.product(*axes)):
        places = [sum(i * s for i, s in zip(at, strides, strict=True)) for at in itertools.product(*ranges)]
        groups.setdefault(len(places), []).append((number, places))
    return [(np.array([at for _, at in group]), [number for number, _ in group]) for group in groups.values()]


def _arranged(parts: Sequence[Value], order: Sequence[int]) -> Value:
    """Bins in their order, from groups of them along the axis 2."""
    joined = parts[0].concat(parts[1:], 2) if len(parts) > 1 else parts[0]
    return joined.take(np.argsort(np.array(order), kind="stable"), 2)


def scaled_dot_product_attention(
    c: Call, q: Value, k: Value, v: Value, mask: Value | None = None, scale: Value | None = None
) -> Value:
    """Weighted sums of values, by the softmax over keys of scaled products of queries and keys, and a mask.

    q: [N..., L, E]; k: [N..., S, E]; v: [N..., S, F]; mask: broadcasts to [N..., L, S], or is the scalar 0; scale: a
    scalar; result: [N..., L, F]. Source: OpenVINO ScaledDotProductAttention-13.
    """
    c.require("ranks", min(q.rank, k.rank, v.rank) >= 3)
    c.require("shapes", q.shape[-1] == k.shape[-1] and k.shape[-2] == v.shape[-2])
    c.require("scale-scalar", scale is None or scale.rank == 0)
    by = scale if scale is not None else c.constant(1.0, q.type) / c.constant(float(q.shape[-1]), q.type).sqrt()
    scores = ((q @ k.mT) * by).either((q * by) @ k.mT)
    causal = c.attr("causal")
    if mask is not None and not causal:
        c.require("mask-shape", not mask.rank or (mask.shape[-1] == k.shape[-2] and mask.shape[-2] in (1, q.shape[-2])))
    low, off = c.constant(-math.inf, q.type), None
    if causal:
        off = c.constant(np.triu(np.ones(scores.shape[-2:], bool), 1), "bool")
    elif mask is not None and mask.kind == "bool":
        off = ~mask
    elif mask is not None:
        scores = scores + mask
    if off is not None:
        shape = np.broadcast_shapes(scores.shape, off.shape)
        scores = low.where(off.broadcast(*shape), scores.broadcast(*shape))
    alone = scores.equal(low).cast("uint8").min((scores.rank - 1,)).cast("bool")
    scores = c.constant(0.0, q.type).where(alone, scores)
    y = along(c, scores, scores.rank - 1) @ v
    return y.undefined(alone.broadcast(*y.shape[:-1], 1), "no-key")


def grid_sample(c: Call, formula: Formula, data: Value, grid: Value) -> Value:
    """The image interpolated at the grid's points; which of -1 and 1's two meanings is whose, the page turns around.

    data: [N, C, H, W]; grid: [N, H', W', 2]; result: [N, C, H', W']. Source: OpenVINO GridSample-9.
    """
    c.require("rank", data.rank == grid.rank == 4)
    centers = bool(c.attr("align_corners"))
    if c.open("corners") == "as-written":
        centers = not centers
    y: Value = formula(data, grid, align_corners=int(centers))
    return y


def einsum(c: Call, formula: Formula, xs: list[Value]) -> Value:
    """Products summed over labels; a dimension of 1 stretches to others of its label, and ellipses broadcast.

    xs: an operand for each term of the equation. Source: OpenVINO Einsum-7.
    """
    left, _, right = c.attr("equation").replace(" ", "").partition("->")
    terms = left.split(",")
    c.require("terms", len(terms) == len(xs))
    names = [term.replace("...", "") for term in terms]
    c.require("characters", all(name.isalpha() or not name for name in (*names, right.replace("...", ""))))
    given = list(zip(xs, terms, names, strict=True))
    c.require("ranks", all(x.rank >= len(name) if "..." in term else x.rank == len(name) for x, term, name in given))
    most = max((x.rank - len(name) for x, term, name in given if "..." in term), default=0)
    operands, extents = [], dict[str, int]()
    for x, term, name in given:
        before = len(term.partition("...")[0]) if "..." in term else x.rank
        missing = most - (x.rank - len(name)) if "..." in term else 0
        operands.append(x.reshape(*x.shape[:before], *(1,) * missing, *x.shape[before:]))
        for label, extent in zip(name, _labelled(x, before, name), strict=True):
            repeated = name.count(label) > 1
            c.require("sizes", repeated or 1 in (extent, extents.get(label, 1)) or extents[label] == extent)
            extents[label] = extent if extents.get(label, 1) == 1 else extents[label]
    stretched = []
    for x, (_, term, name) in zip(operands, given, strict=True):
        before = len(term.partition("...")[0]) if "..." in term else len(name)
        after = len(name) - before
        shape = list(x.shape)
        for position, label in enumerate(name):
            at = position if position < before else x.rank - after + position - before
            if name.count(label) == 1:
                shape[at] = extents[label]
        stretched.append(x.broadcast(*shape))
    result: Value = formula(stretched)
    return result


def _labelled(x: Value, before: int, name: str) -> tuple[int, ...]:
    """The extents of an operand's labelled dimensions."""
    after = len(name) - min(before, len(name))
    return (*x.shape[: len(name) - after], *(x.shape[x.rank - after :] if after else ()))


def nested(drawing: Drawing) -> Array:
    """Boxes that overlap by a half, a quarter, an eighth and so on, or not at all."""
    return detection.nested(_encoded(drawing))


def flipped(drawing: Drawing) -> Array:
    """Like `nested`, with corners in any order."""
    return detection.flipped(_encoded(drawing))


def separate(drawing: Drawing) -> Array:
    """Boxes that do not overlap, with whole numbers as sizes."""
    return detection.separate(_encoded(drawing))


def identical(drawing: Drawing) -> Array:
    """The same box, many times."""
    return detection.identical(_encoded(drawing))


def without_area(drawing: Drawing) -> Array:
    """Boxes without height, some of them equal."""
    return detection.without_area(_encoded(drawing))


def _encoded(drawing: Drawing) -> Drawing:
    """The drawing with box_encoding as ONNX writes it."""
    center = int(drawing.attributes.get("box_encoding") == "center")
    return replace(drawing, attributes={**drawing.attributes, "center_point_box": center})


def distinct(drawing: Drawing) -> Array:
    """Scores below 1 that are distinct as long as there are enough multiples of 1/4096."""
    order = np.argsort(drawing.draw.bits(4096), axis=1, kind="stable")
    return np.take(order, np.arange(drawing.size) % 4096, axis=1) / 4096.0


def ties(drawing: Drawing) -> Array:
    """Scores with two equal ones."""
    return np.broadcast_to(np.arange(drawing.size) // 2 / 8, (1, drawing.size))


def coins(drawing: Drawing) -> Array:
    """True and false, the first of each line true."""
    flags = drawing.draw.below(2, drawing.size).reshape(-1, *drawing.shape)
    flags[..., :1] = 1
    return np.asarray(flags.reshape(len(flags), -1))
