"""Operators that join and split tensors along an axis: Concat, Split."""

from __future__ import annotations

import numpy as np

from ..arithmetic.tape import Call, Value


def concat(c: Call, inputs: list[Value]) -> Value:
    """The inputs one after the other along `axis`.

    inputs: one or more, of one type, rank r of 1 or more, and the same shape except along the axis; result: that shape,
    with the sum of the axis' extents. A missing axis means 1 in version 1. Source: ONNX Concat-1 to 13.
    """
    c.require("at-least-one", len(inputs) > 0)
    c.require("same-type", len({x.type for x in inputs}) == 1)
    c.require_if_stated("axis-required", c.given("axis"))
    axis = _axis(c, inputs[0].rank, c.attr("axis", 1))
    rest = {(*x.shape[:axis], *x.shape[axis + 1 :]) for x in inputs}
    c.require("same-shape", len({x.rank for x in inputs}) == len(rest) == 1)
    return inputs[0].concat(inputs[1:], axis=axis)


def split(c: Call, x: Value, *_: Value | None) -> tuple[Value, ...]:
    """The input in parts along `axis`: of the lengths in `split`, or of equal lengths.

    x: rank r of 1 or more; split: one length for each output, an attribute before version 13 and an int64 input since;
    num_outputs, from version 18 on: the number of equal parts; the last may be shorter. Version 1 does not define a
    missing axis. Source: ONNX Split-1 to 18.
    """
    axis = c.attr("axis")
    if axis is None:
        axis = {"first": 0, "second": 1}[c.open("axis-missing")]
    axis = _axis(c, x.rank, axis)
    wanted, extent = len(c.output_types), x.shape[axis]
    lengths, parts = c.ints("split"), c.attr("num_outputs")
    c.require_if_stated("one-of", (lengths is None) != (parts is None))
    if lengths is None:
        c.require("count", parts in (wanted, None))
        lengths = _equal(c, extent, wanted)
    c.require("count", len(lengths) == wanted)
    c.require("lengths", min(lengths, default=0) >= 0)
    c.require("sum", sum(lengths) == extent)
    ends = np.cumsum(lengths).tolist()
    return tuple(x.take(np.arange(end - n, end), axis) for end, n in zip(ends, lengths, strict=True))


def _equal(c: Call, extent: int, parts: int) -> tuple[int, ...]:
    """The lengths of equal parts; if the last one may be shorter, the others are as short as possible."""
    if "last-smaller" not in c.clauses:
        c.require("divides", extent % parts == 0)
    length = -(-extent // parts)
    if length * (parts - 1) <= extent:
        return (*(length,) * (parts - 1), extent - length * (parts - 1))
    if c.open("too-short") == "spread":
        return tuple(extent // parts + (part < extent % parts) for part in range(parts))
    return tuple(min(length, max(0, extent - part * length)) for part in range(parts))


def _axis(c: Call, rank: int, axis: int) -> int:
    """The axis, counted from the front; the standard defines negative ones from version 11 on."""
    c.require("axis-range", -rank <= axis < rank)
    if axis < 0 and "axis-negative" not in c.clauses:
        c.open("axis-negative-early")
    return axis % rank
