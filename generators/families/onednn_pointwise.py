"""oneDNN Graph's operations on single elements that ONNX does not have, or has with other parameters."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value
from .pointwise import meet


def elu(c: Call, formula: Formula, src: Value) -> Value:
    """ONNX's Elu with an alpha that is not negative. Source: oneDNN Graph Elu."""
    c.require("alpha-range", c.float32("alpha") >= 0.0)
    result: Value = formula(src)
    return result


def softplus(c: Call, formula: Formula, src: Value) -> Value:
    """ln(e^(beta x) + 1) / beta. Source: oneDNN Graph SoftPlus."""
    beta = c.float32("beta")
    if beta == 1.0:
        result: Value = formula(src)
        return result
    scaled: Value = formula(src * beta)
    return (scaled / beta).either(scaled * c.constant(beta, src.type).reciprocal())


def reciprocal(c: Call, src: Value) -> Value:
    """The power of -1; of zero, infinity. The page does not say whether -0 is another case.

    Source: oneDNN Graph Reciprocal.
    """
    y: Value = src.reciprocal()
    below = src.equal(0.0) & y.isinf(positive=False)
    return y if c.open("negative-zero", below) == "minus-infinity" else c.constant(math.inf, src.type).where(below, y)


def round_(c: Call, src: Value) -> Value:
    """The nearest whole number; which of two is open, and so is the sign of a zero. Source: oneDNN Graph Round."""
    nearest, cut, floor = src.rint(), src.trunc(), src.floor()
    tie = (src - cut).abs().equal(0.5)
    ways = {"away": cut + src.sign(), "towards-zero": cut, "up": floor + 1.0, "down": floor}
    taken = c.open("ties", tie)
    return (ways[taken].where(tie, nearest) if taken in ways else nearest).any_zero()


def square(_: Call, src: Value) -> Value:
    """The element times itself. Source: oneDNN Graph Square."""
    return src * src


def power(c: Call, src: Value) -> Value:
    """The element to the power of beta, a number of type f32. Source: oneDNN Graph Pow."""
    beta = c.float32("beta")
    exponent = c.constant(beta, "float32").broadcast(*src.shape)
    y = src.cast("float32").pow(exponent).cast(src.type)
    if not beta.is_integer():
        y = y.undefined(src < 0.0, "no-real")
    if beta == 0.0 and c.open("one", src.isnan()) == "not-a-number":
        return src.where(src.isnan(), y)
    return y


def mixed(c: Call, formula: Formula, a: Value, b: Value) -> Value:
    """Two operands of one type, or one of f32 and the other of 16 bits, broadcast as auto_broadcast says.

    a: shape D, b: shape E; result: the type of the wider one, or bool. Source: oneDNN Graph Add, Subtract, Multiply
    and Divide.
    """
    _broadcast(c, a, b)
    types = {a.type, b.type}
    wide = "float32" in types and types <= {"float32", "bfloat16", "float16"}
    result = c.output_types["dst"]
    c.require("types", result == "float32" if wide else {str(result)} == types)
    if len(types) > 1:
        a, b = a.cast("float32"), b.cast("float32")
    values: Value = formula(a, b)
    return values


def at_least(c: Call, formula: Formula, a: Value, b: Value) -> Value:
    """Whether an element is at least the other, of two operands that broadcast as auto_broadcast says; NaN is open.

    a, b: one type; result: bool. Source: oneDNN Graph GreaterEqual.
    """
    _broadcast(c, a, b)
    result: Value = formula(a, b)
    if a.kind != "real":
        return result
    unordered = a.isnan() | b.isnan()
    return result | unordered if c.open("nan", unordered) == "true" else result


def _broadcast(c: Call, *operands: Value) -> None:
    rule = c.attr("auto_broadcast")
    c.require("rule-known", rule in ("none", "numpy"))
    c.require("no-broadcast", rule != "none" or len({operand.shape for operand in operands}) == 1)


def maximum(c: Call, a: Value, b: Value) -> Value:
    """The larger of two elements; NaN is open. Source: oneDNN Graph Maximum."""
    return _picked(c, a, b, "maximum")


def minimum(c: Call, a: Value, b: Value) -> Value:
    """The smaller of two elements; NaN is open. Source: oneDNN Graph Minimum."""
    return _picked(c, a, b, "minimum")


def _picked(c: Call, a: Value, b: Value, name: str) -> Value:
    _broadcast(c, a, b)
    c.require("broadcast", meet(a.shape, b.shape))
    pick: Callable[..., Value] = getattr(a, name)
    passed, skipped = pick(b), pick(b, nan="ignore")
    taken = c.open("nan")
    return {"propagates": passed, "ignored": skipped}.get(taken) or passed.either(skipped)


def squared_difference(c: Call, a: Value, b: Value) -> Value:
    """The difference, times itself. Source: oneDNN Graph SquaredDifference."""
    _broadcast(c, a, b)
    c.require("broadcast", meet(a.shape, b.shape))
    difference = a - b
    return difference * difference


def select(c: Call, formula: Formula, condition: Value, a: Value, b: Value) -> Value:
    """One of two elements; the condition broadcasts to what both broadcast to, and stretches nothing.

    Source: oneDNN Graph Select.
    """
    _broadcast(c, condition, a, b)
    c.require("broadcast", meet(a.shape, b.shape))
    shape = np.broadcast_shapes(a.shape, b.shape)
    c.require("one-way", meet(condition.shape, shape) and np.broadcast_shapes(condition.shape, shape) == shape)
    result: Value = formula(condition, a, b)
    return result


def channel_axis(c: Call, rank: int) -> int:
    """The channel dimension by data_format: the last one for NXC, the second one for NCX."""
    c.require("format-known", c.attr("data_format") in ("NCX", "NXC"))
    return 1 if c.attr("data_format") == "NCX" else rank - 1


def per_channel(c: Call, x: Value, numbers: Value) -> Value:
    """Numbers for each channel of x, shape [C], in a shape that broadcasts to that of x."""
    axis = channel_axis(c, x.rank)
    c.require("channels", axis < x.rank and numbers.shape == x.shape[axis : axis + 1])
    return numbers.reshape(*(-1 if dimension == axis else 1 for dimension in range(x.rank)))


def slopes(c: Call, src: Value, slope: Value) -> Value:
    """A slope of rank 1 in a shape that broadcasts to that of src: for each channel, or as NumPy aligns it.

    Source: oneDNN Graph PReLU.
    """
    if slope.rank != 1:
        channel_axis(c, src.rank)
        return slope
    by_channel = c.attr("per_channel_broadcast")
    axis = channel_axis(c, src.rank) if by_channel else src.rank - 1
    if slope.shape == (1,) != src.shape[axis : axis + 1]:
        c.open("shared")
        return slope
    if by_channel:
        return per_channel(c, src, slope)
    c.require("rightmost", slope.shape == src.shape[-1:])
    return slope


def prelu(c: Call, formula: Formula, src: Value, slope: Value) -> Value:
    """Elements below zero times their slope. Source: oneDNN Graph PReLU."""
    result: Value = formula(src, slopes(c, src, slope))
    return result


def bias_add(c: Call, src: Value, bias: Value) -> Value:
    """The element plus the number of its channel. Source: oneDNN Graph BiasAdd."""
    return src + per_channel(c, src, bias)
