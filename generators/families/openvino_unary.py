"""What OpenVINO's operations of one tensor, element by element, do besides the formula of ONNX's operator."""

from __future__ import annotations

import math

from ...cases.elements import element_type
from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value
from .activation import cancelling, sigmoid
from .openvino import convert
from .unary import or_number

_LINEAR = 13.815510557964274
"""Beyond the logarithm of a million, ln(1 + e^x) and x differ by less than a millionth."""


def real(c: Call, formula: Formula, x: Value) -> Value:
    """A function of real numbers, of every element; the value at an integer is rounded to one.

    x: a float or integer type; result: the same shape and type. How it rounds is open unless the page says nearest, and
    so is an integer for a value that is none or does not fit. Source: OpenVINO Acos-1 to Tanh-1, with integers.
    """
    if x.kind != "int":
        result: Value = formula(x)
        return result
    y = formula(x.cast("float64")).either(formula(x.cast("float32")).cast("float64"))
    taken = c.answer("integer-rounding", "nearest")
    rounded = {"truncate": y.trunc, "floor": y.floor, "nearest": y.rint}[taken]()
    own = element_type(x.type)
    inside = (rounded >= float(own.smallest)) & (rounded < float(own.largest + 1))
    fits = c.constant(0.0, "float64").where(~inside, rounded).cast(x.type)
    return fits.undefined(~inside, "integer-range" if c.silent("integer-range") else None)


def rounding(_: Call, formula: Formula, x: Value) -> Value:
    """A function that rounds to whole numbers, of every element; the page says nothing about the sign of a zero.

    x: a float or integer type; result: the same shape and type. Source: OpenVINO Ceiling-1, Floor-1.
    """
    return x if x.kind == "int" else formula(x).any_zero()


def atanh(c: Call, formula: Formula, x: Value) -> Value:
    """The inverse hyperbolic tangent; of an integer other than 0 the end of its type.

    x: a float or integer type; result: the same shape and type. Source: OpenVINO Atanh-3.
    """
    if x.kind != "int":
        result: Value = formula(x)
        return result
    own = element_type(x.type)
    low, zero, high = (c.constant(number, x.type) for number in (own.smallest, 0, own.largest))
    return high.where(x > 0, low.where(x < 0, zero) if own.kind == "signed" else zero)


def sqrt(c: Call, formula: Formula, x: Value) -> Value:
    """The square root of every element, of an integer rounded to the nearest one; undefined below zero.

    x: a float or integer type; result: the same shape and type. Source: OpenVINO Sqrt-1.
    """
    below = x < 0 if x.kind == "int" else x < 0.0
    number = c.constant(0 if x.kind == "int" else 0.0, x.type).where(below, x)
    return real(c, formula, number).undefined(below)


def round_(c: Call, x: Value) -> Value:
    """The nearest whole number; of two as near the even one, or the one away from zero, as `mode` says.

    x: a float or integer type; result: the same shape and type. Source: OpenVINO Round-5.
    """
    mode = c.attr("mode")
    c.require("mode-known", mode in ("half_to_even", "half_away_from_zero"))
    if x.kind == "int":
        return x
    return (x.rint() if mode == "half_to_even" else x.rint_away()).any_zero()


def is_finite(_: Call, x: Value) -> Value:
    """Whether an element is neither infinite nor NaN.

    x: a float type; result: bool, of the same shape. Source: OpenVINO IsFinite-10.
    """
    return ~(x.isnan() | x.isinf())


def elu(c: Call, formula: Formula, x: Value) -> Value:
    """The element above zero, else alpha times its exponential less one; alpha is not negative.

    x: a float type; result: the same shape and type. A zero has either sign, since with alpha=0 it is Relu's. Source:
    OpenVINO Elu-1.
    """
    c.require("alpha-range", c.attr("alpha") >= 0)
    result: Value = formula(x).any_zero()
    return result


def selu(c: Call, data: Value, alpha: Value, scale: Value) -> Value:
    """Lambda times the element above zero, else lambda times alpha times its exponential less one.

    data: a float type; alpha, scale (lambda): shape [1]; result: data's shape and type. Source: OpenVINO Selu-1.
    """
    c.require("one-element", alpha.shape == scale.shape == (1,))
    if not data.rank:
        alpha, scale = alpha.reshape(), scale.reshape()
    there = (data < 0.0) & (data > -1.0)
    written = (alpha * (data.exp() - 1.0)).either(alpha * data.exp() - alpha)
    low = cancelling(c, there, alpha * data.expm1(), written)
    return or_number(c, data, scale * data.where(data > 0.0, low))


def hard_sigmoid(c: Call, data: Value, alpha: Value, beta: Value) -> Value:
    """Alpha times the element plus beta, clipped to [0, 1].

    data: a float type; alpha, beta: rank 0; result: data's shape and type. Source: OpenVINO HardSigmoid-1.
    """
    c.require("scalars", alpha.rank == beta.rank == 0)
    return or_number(c, data, (alpha * data + beta).minimum(1.0).maximum(0.0))


def hsigmoid(c: Call, x: Value) -> Value:
    """A sixth of the element plus 3, clipped to [0, 6].

    x: a float type; result: the same shape and type. Source: OpenVINO HSigmoid-5.
    """
    clipped = (x + 3.0).maximum(0.0).minimum(6.0)
    return or_number(c, x, (clipped / 6.0).either(clipped * c.constant(1.0 / 6.0, x.type)))


def softplus(c: Call, formula: Formula, x: Value) -> Value:
    """ln(e^x + 1), or x where this differs by at most a millionth.

    x: a float type; result: the same shape and type. Source: OpenVINO SoftPlus-4.
    """
    y: Value = formula(x)
    if x.type != "float64":  # from the page's 20 in float32 and 11 in float16 on, both are the same number
        return y
    taken = c.open("threshold", x >= _LINEAR)
    return y if taken == "none" else x.where(x >= {"at-20": 20.0, "lowest": _LINEAR}[taken], y)


def swish(c: Call, data: Value, beta: Value | None = None) -> Value:
    """The element x times the sigmoid of beta x; NaN for infinity times zero, or the limit.

    data: a float type; beta: rank 0, not negative, 1 if it is missing; result: data's shape and type. Source: OpenVINO
    Swish-4.
    """
    zero = c.constant(0.0, data.type)
    if beta is None:
        y, lost, limit = data * sigmoid(c, data), data.isinf(positive=False), zero
    else:
        c.require("beta-scalar", beta.rank == 0)
        c.require("beta-range", beta >= 0.0)
        y = data * sigmoid(c, beta * data)
        lost = data.isinf(positive=False) | (data.isinf() & beta.equal(0.0))
        limit = data.where(beta.equal(0.0), zero)
    return y if c.open("minus-infinity", lost) == "not-a-number" else limit.where(lost, y)


def gelu(c: Call, formula: Formula, x: Value) -> Value:
    """The element x times the normal distribution's function of it, by the error function or the hyperbolic tangent.

    x: a float type; result: the same shape and type. Version 2 has no attribute, and admits both. Source: OpenVINO
    Gelu-2 and 7.
    """
    way = c.attr("approximation_mode") or c.open("approximation")
    c.require_if_stated("mode-known", way in ("erf", "tanh"))
    result: Value = formula(x, approximate="none" if way == "erf" else way)
    return result


def clamp(c: Call, formula: Formula, x: Value) -> Value:
    """Every element clipped to [min, max]; for integers min is rounded up first, and max down.

    x: a float or integer type; result: the same shape and type. Source: OpenVINO Clamp-1.
    """
    low, high = float(c.attr("min")), float(c.attr("max"))
    if low > high:
        c.open("crossed")
    if x.kind == "int":
        low, high = math.ceil(low), math.floor(high)
    result: Value = formula(x, c.constant(low, x.type), c.constant(high, x.type))
    return result


def prelu(c: Call, formula: Formula, data: Value, slope: Value) -> Value:
    """The element; below zero, times its slope, which a list of as many as dimension 1 has elements gives by channel.

    data: a float type; slope: rank 1 or more, else broadcast to data's shape; result: data's shape and type. Source:
    OpenVINO PReLU-1.
    """
    c.require("slope-rank", slope.rank > 0)
    if slope.rank == 1 and data.rank > 1 and slope.shape[0] == data.shape[1]:
        slope = slope.reshape(slope.shape[0], *(1,) * (data.rank - 2))
    result: Value = formula(data, slope)
    return result


def convert_like(c: Call, formula: Formula, data: Value, _like: Value) -> Value:
    """Each element converted to the type of `like`, as by Convert; a negative integer as an unsigned one is undefined.

    data: any type; like: any type and shape; result: data's shape, like's type. Source: OpenVINO ConvertLike-1.
    """
    result = convert(c, formula, data)
    own, to = element_type(data.type), element_type(result.type)
    if data.kind == "int" and to.is_integer and own.smallest < 0 == to.smallest:
        return result.undefined(data < 0)
    return result


def shape_of(c: Call, formula: Formula, data: Value) -> Value:
    """The extents, in the type that output_type names, or in int64.

    data: any shape and type; result: rank 1. Source: OpenVINO ShapeOf-1 and 3.
    """
    c.require_if_stated("output-type-known", c.attr("output_type", "i64") in ("i32", "i64"))
    result: Value = formula(data)
    return result.cast(str(c.output_types["output"]))


def cum_sum(c: Call, formula: Formula, data: Value, axis: Value | None = None) -> Value:
    """The running sums along an axis, which is 0 if it is missing.

    data: rank 1 or more, numbers; axis: rank 0; result: data's shape and type. Source: OpenVINO CumSum-3.
    """
    c.require("data-rank", data.rank > 0)
    if axis is None:
        return data.cumsum(0, exclusive=bool(c.attr("exclusive")), reverse=bool(c.attr("reverse")))
    result: Value = formula(data, axis)
    return result
