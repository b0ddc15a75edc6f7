"""What OpenVINO's elementwise operations of two or three inputs do around the formulas of ONNX's operators."""

from __future__ import annotations

import math

import numpy as np

from ...cases.elements import Array, element_type
from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from .openvino import broadcast, broadcast_rule, stretches
from .pointwise import meet


def squared_difference(c: Call, formula: Formula, a: Value, b: Value) -> Value:
    """The square of the difference, element by element; of unsigned numbers below zero it is that, or 0.

    a: shape D, b: shape E, broadcast by auto_broadcast's rule. Source: OpenVINO SquaredDifference-1.
    """

    def apart(a: Value, b: Value) -> Value:
        c.require("broadcast", meet(a.shape, b.shape))
        difference = a.maximum(b) - a.minimum(b)
        below = a < b
        return difference.where(~below, 0) if c.open("below-zero", below) == "saturated" else difference

    unsigned = a.kind == "int" and not element_type(a.type).smallest
    difference = broadcast(c, apart if unsigned else formula, a, b)
    return difference * difference


def divide(c: Call, formula: Formula, a: Value, b: Value) -> Value:
    """The quotient, element by element; for whole numbers rounded down, if m_pythondiv says so. By zero it is open.

    a: shape D, b: shape E, broadcast by auto_broadcast's rule. Source: OpenVINO Divide-1.
    """
    down = c.attr("m_pythondiv")
    quotient = broadcast(c, formula, a, b)
    if a.kind == "real":
        return quotient.undefined(b.equal(0.0), "zero-divisor")
    if down:
        return a.quotient(b, rounding="floor").undefined(b.equal(0), "zero-divisor")
    if c.open("regular", ~a.mod(b, sign="divisor").equal(0)) == "toward-zero":
        return quotient
    return a.quotient(b, rounding="nearest-even").undefined(b.equal(0), "zero-divisor")


def remainder(c: Call, formula: Formula, a: Value, b: Value) -> Value:
    """The remainder, element by element; by zero it is open, and by infinity if the equation is taken literally.

    a: shape D, b: shape E, broadcast by auto_broadcast's rule. Source: OpenVINO Mod-1 and FloorMod-1.
    """
    result = broadcast(c, formula, a, b)
    if a.kind != "real":
        return result
    endless = b.isinf() & ~a.isinf()
    if c.open("infinite-divisor", endless) == "not-a-number":
        result = c.constant(math.nan, result.type).where(endless, result)
    return result.undefined(b.equal(0.0), "zero-divisor")


def extreme(c: Call, formula: Formula, a: Value, b: Value) -> Value:
    """The larger or the smaller element of two.

    a: shape D, b: shape E, broadcast by auto_broadcast's rule. Source: OpenVINO Maximum-1 and Minimum-1.
    """
    return broadcast(c, lambda *both: formula([*both]), a, b)


def not_equal(c: Call, formula: Formula, a: Value, b: Value) -> Value:
    """Whether two elements differ; NaN differs from everything.

    a: shape D, b: shape E, broadcast by auto_broadcast's rule; result: bool. Source: OpenVINO NotEqual-1.
    """
    return ~broadcast(c, formula, a, b)


def ordered(c: Call, formula: Formula, a: Value, b: Value) -> Value:
    """A comparison of two elements; of truth values, false is less than true.

    a: shape D, b: shape E, broadcast by auto_broadcast's rule; result: bool. Source: OpenVINO Less-1, LessEqual-1,
    Greater-1 and GreaterEqual-1.
    """
    if a.kind == "bool":
        a, b = a.cast("uint8"), b.cast("uint8")
    return broadcast(c, formula, a, b)


def shift_left(c: Call, formula: Formula, x: Value, y: Value) -> Value:
    """The bits moved up. A signed result that does not fit is open.

    x, y: whole numbers, broadcast by auto_broadcast's rule. Source: OpenVINO BitwiseLeftShift-15.
    """
    moved = broadcast(c, formula, x, y)
    own = element_type(x.type)
    if not own.smallest:
        return moved
    near = y.where((y >= 0) & (y < own.bits), 0)
    back = x.shift(near, direction="left").shift(near, direction="right")
    return moved.undefined(~back.equal(x), "signed-overflow")


def select(c: Call, formula: Formula, cond: Value, then: Value, else_: Value) -> Value:
    """The element of `then` where `cond` is true, else the one of `else`.

    cond: bool; then, else: any type, the same for both. With none the three shapes are equal; with numpy, then and else
    broadcast to each other, with pdpd else to then, and cond to the result. Source: OpenVINO Select-1.
    """
    rule = broadcast_rule(c)
    c.require("no-broadcast", rule != "none" or cond.shape == then.shape == else_.shape)
    c.require("pdpd", rule != "pdpd" or stretches(else_.shape, then.shape))
    c.require("broadcast", meet(then.shape, else_.shape))
    c.require("condition", stretches(cond.shape, np.broadcast_shapes(then.shape, else_.shape)))
    result: Value = formula(cond, then, else_)
    return result


def fitting(drawing: Drawing) -> Array:
    """Numbers of bits by which X moves up without losing any."""
    numbers = drawing.values["X"].reshape(-1)
    used = np.array([(n if n >= 0 else ~n).bit_length() for n in map(int, numbers)], np.int64)
    if numbers.size != drawing.size:
        used = np.full(drawing.size, used.max(initial=0))
    return drawing.draw.below(1 << 30, drawing.size) % np.maximum(drawing.type.bits - used, 1)
