"""Operators on sequences and optionals: SequenceAt, SequenceInsert, SplitToSequence, Optional, OptionalHasElement."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from ..arithmetic.tape import Call, Value


def at(c: Call, items: list[Value], position: Value) -> Value:
    """The tensor at `position`, counted from the end if negative.

    items: tensors of one type; position: int32 or int64, rank 0, in [-n, n-1]. Source: ONNX SequenceAt-11.
    """
    return items[_position(c, len(items), position)]


def erase(c: Call, items: list[Value], position: Value | None = None) -> list[Value]:
    """The sequence without the tensor at `position`, or without the last one.

    position: int32 or int64, rank 0, in [-n, n-1]. Source: ONNX SequenceErase-11.
    """
    index = _position(c, len(items), position) % max(len(items), 1)
    return [*items[:index], *items[index + 1 :]]


def _position(c: Call, n: int, position: Value | None) -> int:
    c.require("scalar-position", position is None or position.rank == 0)
    index = -1 if position is None else int(c.known("position"))
    c.require("range", -n <= index < n)
    return index


def construct(c: Call, items: list[Value]) -> list[Value]:
    """The inputs as a sequence, in order. Source: ONNX SequenceConstruct-11."""
    c.require("at-least-one", bool(items))
    c.require("same-type", len({item.type for item in items}) == 1)
    return items


def empty(_: Call) -> list[Value]:
    """An empty sequence of tensors of the type `dtype`. Source: ONNX SequenceEmpty-11."""
    return []


def length(c: Call, items: list[Value]) -> Value:
    """The number of tensors. result: int64, rank 0. Source: ONNX SequenceLength-11."""
    return c.constant(len(items), "int64")


def split(c: Call, x: Value, lengths: Value | None = None) -> list[Value]:
    """The parts of the input along `axis`: of the listed lengths, or of equal lengths with a shorter last one.

    x: rank 1 or more; lengths: int32 or int64, of rank 0 or 1; without it each part has extent 1, without the axis if
    keepdims is 0. Source: ONNX SplitToSequence-11 and 24.
    """
    axis = c.attr("axis", 0)
    c.require("axis-range", -x.rank <= axis < x.rank)
    axis %= max(x.rank, 1)
    extent, parts = x.shape[axis], (1,) if lengths is None else c.ints("split") or ()
    c.require("split-rank", lengths is None or lengths.rank <= 1)
    c.require("lengths", min(parts, default=0) >= 0)
    if lengths is None or lengths.rank == 0:
        (size,) = parts
        c.require("positive", size > 0)
        if not extent:
            c.open("nothing")
        parts = tuple(min(size, extent - start) for start in range(0, extent, size))
    else:
        c.require("sum", sum(parts) == extent)
        if 0 in parts:
            c.open("zero-length")
    ends = list(accumulate(parts))
    pieces = [x.take(np.arange(end - part, end), axis) for part, end in zip(parts, ends, strict=True)]
    if lengths is None and c.attr("keepdims") == 0:
        return [piece.reshape(*x.shape[:axis], *x.shape[axis + 1 :]) for piece in pieces]
    return pieces


def concat(c: Call, items: list[Value]) -> Value:
    """The tensors one after the other along `axis`, or on a new axis there.

    items: at least one tensor, of the same shape except along axis. Source: ONNX ConcatFromSequence-11.
    """
    c.require("axis-required", c.given("axis"))
    new, axis = c.attr("new_axis") != 0, c.attr("axis")
    c.require("some-items", bool(items))
    rank = items[0].rank + new
    c.require("axis-range", -rank <= axis < rank)
    axis %= rank
    shapes = {tensor.shape if new else (*tensor.shape[:axis], *tensor.shape[axis + 1 :]) for tensor in items}
    c.require("same-shape", len(shapes) == 1 and len({tensor.rank for tensor in items}) == 1)
    rows = [tensor.reshape(*tensor.shape[:axis], 1, *tensor.shape[axis:]) if new else tensor for tensor in items]
    return rows[0].concat(rows[1:], axis)


def get_element(c: Call, value: Value | list[Value] | None) -> Value | list[Value] | None:
    """The content of an optional; a tensor or a sequence stays unchanged. Source: ONNX OptionalGetElement-15 to 28."""
    c.require("not-empty", value is not None)
    return value


def has_element(c: Call, value: Value | list[Value] | None = None) -> Value:
    """Whether an optional has content; true for a tensor or a sequence, false for an input that is left out.

    result: bool, rank 0. Source: ONNX OptionalHasElement-15 to 28.
    """
    return c.constant(value is not None, "bool")


def insert(c: Call, items: list[Value], tensor: Value, position: Value | None = None) -> list[Value]:
    """The sequence with the tensor before the item at `position`, or at the end.

    items: tensors of one type; position: int32 or int64, rank 0, in [-n, n]. Source: ONNX SequenceInsert-11.
    """
    n = len(items)
    c.require("same-type", all(item.type == tensor.type for item in items))
    c.require("scalar-position", position is None or position.rank == 0)
    index = n if position is None else int(c.known("position"))
    c.require("range", -n <= index <= n)
    if len({item.shape for item in (*items, tensor)}) > 1:
        c.open("mixed-shapes")
    index = index + n if index < 0 else index
    return [*items[:index], tensor, *items[index:]]


def optional(c: Call, value: Value | list[Value] | None = None) -> Value | list[Value] | None:
    """An optional with the input as content; without an input, an empty one of the type `type`.

    Source: ONNX Optional-15 and 28.
    """
    c.require("type-needed", value is not None or c.given("type"))
    if value is not None and c.given("type"):
        c.open("both")
    return value
