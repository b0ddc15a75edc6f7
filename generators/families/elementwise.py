"""Operators that combine any number of tensors element by element, with broadcasting: Mean, Sum."""

from __future__ import annotations

from collections.abc import Sequence

from ..arithmetic.tape import Call, Value


def mean(c: Call, data: list[Value]) -> Value:
    """Return the sum of the inputs, broadcast to one shape, divided by their number.

    data: one or more, of one floating-point type; their shapes broadcast from version 8 on, and are equal before.
    Source: ONNX Mean-1 to 13.
    """
    return _stacked(c, data).mean((0,), keep=False)


def sum_(c: Call, data: list[Value]) -> Value:
    """Return the sum of the inputs, in any order, broadcast to one shape.

    data: one or more, of one floating-point type; their shapes broadcast from version 8 on, and are equal before.
    Source: ONNX Sum-1 to 13.
    """
    return _stacked(c, data).sum((0,), keep=False)


def _stacked(c: Call, data: list[Value]) -> Value:
    """Return the inputs, broadcast to one shape, along a new first axis."""
    c.require("at-least-one", len(data) > 0)
    c.require("same-type", len({x.type for x in data}) == 1)
    c.require_if_stated("same-shape", len({x.shape for x in data}) == 1)
    shape = broadcast_shape(c, [x.shape for x in data])
    first, *others = (x if x.shape == shape else x.broadcast(*shape) for x in data)
    if shape:
        return first.concat(others, 0).reshape(len(data), *shape)
    return first.reshape(1).concat([x.reshape(1) for x in others], 0)


def broadcast_shape(c: Call, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to, in all directions; they are aligned at the last dimension."""
    rank = max(map(len, shapes))
    columns = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    extents = [{d for d in column if d != 1} for column in columns]
    c.require_if_stated("broadcast", all(len(extent) < 2 for extent in extents))
    return tuple(next(iter(extent), 1) for extent in extents)
