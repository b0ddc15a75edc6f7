"""OpenVINO's operations that draw, sample and sort out: Unique, DeformableConvolution, random numbers, anchors."""

from __future__ import annotations

from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value


def unique(c: Call, formula: Formula, data: Value, axis: Value | None = None) -> tuple[Value, ...]:
    """The distinct elements, or slices along an axis, their first places, the inverse places, and the counts.

    data: any shape; axis: one integer; results: the first has data's type, the others rank 1. Source: OpenVINO
    Unique-10.
    """
    place = None
    if axis is not None:
        c.require("axis-one", axis.rank < 2 and axis.size == 1)
        place = int(c.known("axis").reshape(()))
    found: tuple[Value, ...] = formula(data, axis=place)
    names = ("indices", "inverse", "counts")
    kinds = [str(c.output_types[name] or "int64") for name in names]
    return found[0], *(part.cast(kind) for part, kind in zip(found[1:], kinds, strict=True))
