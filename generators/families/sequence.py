"""Operators on sequences and optionals: SequenceInsert, Optional."""

from __future__ import annotations

from ..arithmetic.tape import Call, Value


def insert(c: Call, items: list[Value], tensor: Value, position: Value | None = None) -> list[Value]:
    """The sequence with the tensor before the item at `position`, or at the end.

    items: tensors of one type; position: int32 or int64, rank 0, in [-n, n]. Source: ONNX SequenceInsert-11.
    """
    n = len(items)
    c.require("same-type", all(item.type == tensor.type for item in items))
    c.require("scalar-position", position is None or position.rank == 0)
    place = n if position is None else int(c.known("position"))
    c.require("range", -n <= place <= n)
    if len({item.shape for item in (*items, tensor)}) > 1:
        c.open("mixed-shapes")
    place = place + n if place < 0 else place
    return [*items[:place], tensor, *items[place:]]


def optional(c: Call, value: Value | list[Value] | None = None) -> Value | list[Value] | None:
    """An optional that holds the input; an empty one of the type that `type` gives where there is no input.

    Source: ONNX Optional-15 and 28.
    """
    c.require("type-needed", value is not None or c.given("type"))
    if value is not None and c.given("type"):
        c.open("both")
    return value
