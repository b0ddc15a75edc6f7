"""OpenVINO's emulation of narrow types: FakeConvert."""

from __future__ import annotations

import numpy as np

from ...cases.elements import element_type
from ..arithmetic.tape import Call, Value


def fake_convert(c: Call, data: Value, scale: Value, shift: Value | None = None) -> Value:
    """Data times scale, less shift, rounded to the numbers of an 8-bit type; and back.

    data: floats, shape D; scale and shift: one shape, which broadcasts to D; result: D. What is beyond the largest
    number may become infinity, NaN or that number; a product with a reciprocal is as good as a quotient. Source:
    OpenVINO FakeConvert-13.
    """
    c.require("destination", c.attr("destination_type") in _TYPES)
    c.require("shift-shape", shift is None or shift.shape == scale.shape)
    c.require("broadcasts", _fits(scale.shape, data.shape))
    to = element_type(_TYPES[c.attr("destination_type")])
    moved = data * scale
    x = moved if shift is None else moved - shift
    largest = to.float_format.largest
    saturates = c.open("range", x.abs() > largest) == "saturates"
    y = x.cast(to.name, saturate=saturates).cast(data.type)
    y = y if shift is None else y + shift
    return (y / scale).either(y * (1.0 / scale))


def _fits(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another one."""
    try:
        return np.broadcast_shapes(own, shape) == shape
    except ValueError:
        return False


_TYPES = {"f8e4m3": "float8e4m3fn", "f8e5m2": "float8e5m2"}
