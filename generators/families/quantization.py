"""Operators between numbers and their low-precision codes: QuantizeLinear, DequantizeLinear and others."""

from __future__ import annotations

import numpy as np

from ...cases.elements import Array, ElementType, element_type, element_types
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw, Drawing, decimal_scale
from . import Shaping, cast


def quantize_linear(c: Call, x: Value, scale: Value, zero: Value | None = None) -> Value:
    """saturate(round(x / scale) + zero), ties to even; for float8 and float4 the nearest number instead of an integer.

    x: rank r; scale and zero: rank 0, or 1 with the extent of `axis` (from version 13), or x's rank with one element
    for each block of `block_size` along the axis (from 21). Source: ONNX QuantizeLinear-10 to 28.
    """
    c.require("zero-point-shape", zero is None or zero.shape == scale.shape)
    if c.attr("output_dtype", 0) != 0 and zero is not None:
        c.require("output-types-agree", c.types["y_zero_point"] == c.output_types["y"])
    scale, zero = _spread(c, x, scale), None if zero is None else _spread(c, x, zero)
    c.require("scale-not-zero", ~scale.equal(0))
    c.open("scale-negative", scale < 0)
    to = element_type(str(c.output_types["y"]))
    precision = _precision(c)
    if precision == "int32":
        rounding = c.open("integer-division")
        quotient = x.cast(precision).quotient(scale.cast(precision), rounding=rounding)
        quotient = quotient if to.is_integer else quotient.cast("float32")
    else:
        quotient = _quotient(c, x, scale, precision)
    return coded(quotient, zero, to, saturate=to.bits < 8 or bool(c.attr("saturate", 1)))


def coded(quotient: Value, zero: Value | None, to: ElementType, *, saturate: bool = True) -> Value:
    """The code of a quotient: rounded to a whole number, ties to even, plus the zero point; or the nearest float."""
    precision = quotient.type
    if to.is_integer:
        y = quotient if quotient.kind == "int" else quotient.rint()
        if y.kind == "real":  # whole numbers from here on: the sum is exact unless it saturates
            y, precision = y.cast("float32"), "float32"
        y = y if zero is None else y + zero.cast(precision)
        return y.clip(float(to.smallest), float(to.largest)).cast(to.name)
    y = quotient if zero is None else quotient + zero.cast(precision)
    code = y.cast(to.name, saturate=saturate)
    return code if to.bits == 8 else code.undefined(y.isnan())  # narrower types have no NaN


def number(code: Value, zero: Value | None, scale: Value) -> Value:
    """The number of a code, (code - zero) * scale, in the scale's type."""
    if code.kind == "int" and zero is not None:
        code = code.cast("int32") - zero.cast("int32")
    elif zero is not None:
        return (code.cast(scale.type) - zero.cast(scale.type)) * scale
    return code.cast(scale.type) * scale


def dequantize_linear(c: Call, x: Value, scale: Value, zero: Value | None = None) -> Value:
    """(x - zero) * scale, in the output's type.

    x: rank r; scale and zero: rank 0, or 1 with the extent of `axis` (from version 13), or x's rank with one element
    for each block of `block_size` along the axis (from 21). Source: ONNX DequantizeLinear-10 to 28.
    """
    c.require("zero-point-shape", zero is None or zero.shape == scale.shape)
    scale, zero = _spread(c, x, scale), None if zero is None else _spread(c, x, zero)
    if x.type == "int32" and zero is not None and c.open("int32-zero-point", ~zero.equal(0)) == "ignored":
        zero = None
    return _numbers(c, x, scale, zero)


def _numbers(c: Call, x: Value, scale: Value, zero: Value | None) -> Value:
    to = str(c.output_types["y"])
    if scale.type != to and _bits(scale.type) > _bits(to) and c.open("multiplication-narrower") == "product":
        return number(x, zero, scale).cast(to)
    y = number(x, zero, scale.cast(to))
    if x.kind != "int" or _bits(x.type) <= 8:
        return y
    wide = number(x, zero, scale.cast("float32")).cast(to)
    return y.either(wide).either(number(x, zero, scale.cast("float64")).cast(to))


def dynamic_quantize_linear(c: Call, x: Value) -> tuple[Value, Value, Value]:
    """The input as uint8, with a scale and a zero point for its own range: (y, y_scale, y_zero_point).

    x: any shape; y: the same; y_scale, y_zero_point: rank 0. Source: ONNX DynamicQuantizeLinear-11.
    """
    if not x.size:
        c.open("empty")
    high, low = x.max(keep=False).maximum(0.0), x.min(keep=False).minimum(0.0)
    width = high - low
    infinite = width.isnan() | width.isinf()
    scale = width / 255.0
    zero = (-low / scale).clip(0.0, 255.0).rint()
    y = ((x / scale).rint() + zero).clip(0.0, 255.0)
    if c.open("all-zero", high.equal(low)) == "zeros":
        zero, y = (v.where(high > low, 0.0) for v in (zero, y))
    results = y.cast("uint8"), scale, zero.cast("uint8")
    y, scale, zero = (v.undefined(high.equal(low), "all-zero").undefined(infinite, "not-finite") for v in results)
    return y, scale, zero


def _quotient(c: Call, x: Value, scale: Value, precision: str) -> Value:
    """The quotient in the type `precision`; if this is narrower than the operands' type, the conversion is open."""
    wider = [v.type for v in (x, scale) if v.kind == "real" and _bits(v.type) > _bits(precision)]
    taken = c.open("division-narrower") if wider else "operands"
    if taken == "operands":
        return x.cast(precision) / scale.cast(precision)
    quotient = x.cast(wider[0]) / scale.cast(wider[0])
    return quotient.cast(precision) if taken == "quotient" else quotient


def _bits(type_: str) -> int:
    return element_type(type_).bits


def _precision(c: Call) -> str:
    """The type of the division."""
    number = c.attr("precision", 0)
    if number:
        return next(kind.name for kind in element_types().values() if kind.onnx == number)
    return c.types["y_scale"]


def _spread(c: Call, x: Value, v: Value) -> Value:
    """A scale or zero point with one element for each element of x, or that broadcasts to x."""
    if v.rank == 0:
        return v
    axis = c.attr("axis")
    c.require("per-tensor", axis is not None)
    c.require("axis-range", -x.rank <= axis < x.rank)
    axis %= x.rank
    block = c.attr("block_size", 0)
    if v.rank == 1 and not block:
        c.require("per-axis", v.shape[0] == x.shape[axis])
        return v.reshape(*(-1 if a == axis else 1 for a in range(x.rank)))
    c.require("blocked-length", block > 0 and v.rank == x.rank)
    blocks = -(-x.shape[axis] // block)
    c.require("blocked", v.shape == (*x.shape[:axis], blocks, *x.shape[axis + 1 :]))
    return v.take(np.arange(x.shape[axis]) // block, axis)


def middle(drawing: Drawing) -> Array:
    """Neighbouring zero points around the middle of an integer type's range."""
    span = drawing.type.largest - drawing.type.smallest
    return drawing.type.smallest + span // 2 + np.arange(drawing.size) % 3


def zero(drawing: Drawing) -> Array:
    """All elements zero."""
    return np.zeros(drawing.size)


def negative(drawing: Drawing) -> Array:
    """All elements minus one."""
    return np.full(drawing.size, -1)


def negative_scale(drawing: Drawing) -> Array:
    """Numbers below zero, with full significands."""
    return -decimal_scale(drawing)


def by_granularity(shaping: Shaping) -> tuple[int, ...]:
    """The shape of a scale: rank 0, one element for each index of `axis`, or one for each block along it."""
    extents = shaping.symbols["d"]
    assert isinstance(extents, tuple)
    block, axis = shaping.levels.get("block_size"), shaping.levels.get("axis")
    if axis is None or not extents:
        return ()
    dimension = shaping.attr("axis")
    assert isinstance(dimension, int)
    dimension %= len(extents)
    if isinstance(block, int):
        return tuple(-(-extent // block) if i == dimension else extent for i, extent in enumerate(extents))
    return (extents[dimension],)


def corners(blank: Blank, draw: Draw, to: str) -> Array:
    """Numbers that are easily rounded to the output's type in the wrong way, if the scale is 1; finite ones."""
    numbers = cast.corners(blank, draw, to)
    return np.where(np.isnan(numbers), blank.type.dtype.type(1), numbers)
