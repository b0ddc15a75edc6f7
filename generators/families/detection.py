"""Operators on boxes: NonMaxSuppression."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

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
    """The boxes of each batch and class that are kept: the best first, and no one that overlaps a kept one too much.

    boxes: float32 [N, P, 4]; scores: float32 [N, C, P]; the others: rank 0; result: int64 [n, 3], rows of batch, class
    and box, in an order that is open. A box overlaps too much if intersection over union exceeds the threshold; equal
    is not too much, and a score equal to its threshold is kept. Source: ONNX NonMaxSuppression-10 and 11.
    """
    n, p = boxes.shape[:2]
    c.require("shapes", boxes.shape == (n, p, 4) and scores.rank == 3 and (scores.shape[0], scores.shape[2]) == (n, p))
    for one in (most, overlap, least):
        c.require("one-number", one is None or one.size == 1)
        if one is not None and one.rank:
            c.open("rank")
    limit = 0 if most is None else int(c.known("max_output_boxes_per_class").reshape(()))
    threshold = Fraction(0) if overlap is None else Fraction(float(c.known("iou_threshold").reshape(())))
    c.require("threshold-range", 0 <= threshold <= 1)
    floor = None if least is None else float(c.known("score_threshold").reshape(()))
    corners, marks = [[_corners(c, box) for box in batch] for batch in c.known("boxes")], c.known("scores")
    if any(bottom <= top or right <= left for batch in corners for top, left, bottom, right in batch):
        c.open("no-area")
    rows = []
    for batch, group in np.ndindex(*marks.shape[:2]):
        mine = marks[batch, group]
        wanted = [box for box in range(p) if floor is None or mine[box] >= floor]
        later = -1 if len({mine[box] for box in wanted}) < len(wanted) and c.open("score-ties") == "higher-index" else 1
        kept: list[int] = []
        for box in sorted(wanted, key=lambda box: (-mine[box], later * box)):
            near = (_overlap(corners[batch][box], corners[batch][one]) for one in kept)
            if len(kept) < limit and not any(part > threshold for part in near):
                kept.append(box)
        rows += [(batch, group, box) for box in kept]
    c.check("order", axis=0, whole=1)
    return c.constant(np.array(rows, np.int64).reshape(-1, 3), "int64")


def _corners(c: Call, box: Array) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Top, left, bottom, right of a box as it is given: two opposite corners, or centre, width and height."""
    a, b, d, e = (Fraction(float(v)) for v in box)
    if c.attr("center_point_box") == 1:
        return b - e / 2, a - d / 2, b + e / 2, a + d / 2
    return min(a, d), min(b, e), max(a, d), max(b, e)


def _overlap(one: tuple[Fraction, ...], other: tuple[Fraction, ...]) -> Fraction:
    """Intersection over union."""
    height = min(one[2], other[2]) - max(one[0], other[0])
    width = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(height, Fraction(0)) * max(width, Fraction(0))
    whole = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)) - shared
    return shared / whole if whole else Fraction(0)


def separate(drawing: Drawing) -> Array:
    """Boxes apart from each other, of sizes that are whole numbers."""
    return _boxes(drawing, lambda place, size: (8 * place, 0, 1 + size, 4), flip=False)


def nested(drawing: Drawing) -> Array:
    """Boxes that overlap by a half, a quarter, an eighth and so on, or not at all."""
    return _boxes(drawing, lambda place, size: (place % 4 * 2, 0, 4, 1 + size % 2 * 3), flip=False)


def flipped(drawing: Drawing) -> Array:
    """The same with corners in any order."""
    return _boxes(drawing, lambda place, size: (place % 4 * 2, 0, 4, 1 + size % 2 * 3), flip=True)


def identical(drawing: Drawing) -> Array:
    """One box, many times."""
    return _boxes(drawing, lambda place, size: (place * 0, 0, 4, size * 0 + 4), flip=False)


def without_area(drawing: Drawing) -> Array:
    """Boxes of no height, some in one place."""
    return _boxes(drawing, lambda place, size: (place % 3, 0, 0, 1 + size), flip=False)


def _boxes(drawing: Drawing, box: Callable[[Array, Array], tuple[Any, ...]], *, flip: bool) -> Array:
    """Boxes as center_point_box says they are written. `box`: corner, height and width by place and a drawn number."""
    count = drawing.size // 4
    size = drawing.draw.below(4, count)
    y, x, height, width = (np.broadcast_to(part, size.shape).astype(float) for part in box(np.arange(count), size))
    if drawing.attributes.get("center_point_box") == 1:
        found = (x + width / 2, y + height / 2, width, height)
    else:
        turn = drawing.draw.below(4, count) if flip else size * 0
        high, left = np.where(turn & 1, y + height, y), np.where(turn & 2, x + width, x)
        found = (high, left, 2 * y + height - high, 2 * x + width - left)
    return np.stack(found, -1).reshape(len(size), drawing.size)


def distinct(drawing: Drawing) -> Array:
    """Scores below 1, multiples of 1/64 or, of more, of less; none twice in a batch and class; some are a threshold."""
    count = drawing.shape[-1]
    if not drawing.size:
        return np.zeros((1, 0))
    steps = max(64, 1 << (count - 1).bit_length())
    drawn = drawing.draw.bits(steps * (drawing.size // count)).reshape(-1, steps)
    return (np.argsort(drawn, axis=1, kind="stable")[:, :count] / steps).reshape(-1, drawing.size)


def ties(drawing: Drawing) -> Array:
    """Scores of which two are one."""
    return np.broadcast_to(np.arange(drawing.size) // 2 / 8, (1, drawing.size))
