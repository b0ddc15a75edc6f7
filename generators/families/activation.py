"""Activations: functions of one element, defined by cases, exponentials and limits."""

from __future__ import annotations

import math

from ..arithmetic.tape import Call, Value
from .unary import or_number

_TWO_OVER_PI = 0.6366197723675814, -3.935735335036497e-17
"""2/π in 106 bits, as the sum of two numbers."""


def coefficient(c: Call, x: Value, name: str) -> Value:
    """An attribute's number, as float32; a default written in decimals may be meant as float64."""
    exact = x.type == "float64" and not c.given(name) and c.silent("default")
    return c.constant(c.attr(name) if exact and c.open("default") == "decimal" else c.float32(name), x.type)


def cancelling(c: Call, there: Value, accurate: Value, lossy: Value) -> Value:
    """Return two forms of a formula, either admissible; `there` the second loses digits, which is open."""
    both = accurate.either(lossy)
    return accurate.where(there, both) if c.open("cancellation", there) == "avoided" else both


def expm1(c: Call, x: Value) -> Value:
    """Return e^x - 1, by a function of its own, or as written, which loses digits near zero."""
    return cancelling(c, (x < 0.0) & (x > -1.0), x.expm1(), x.exp() - 1.0)


def at_minus_infinity(c: Call, x: Value, y: Value) -> Value:
    """Return y; where minus infinity times zero makes it NaN, the limit, zero, is admissible too."""
    return _or_limit(c, x.isinf(positive=False), c.constant(0.0, x.type), y)


def _or_limit(c: Call, there: Value, limit: Value, y: Value) -> Value:
    return y if c.open("minus-infinity", there) == "not-a-number" else limit.where(there, y)


def sigmoid(c: Call, x: Value) -> Value:
    """1 / (1 + e^-x); or by a hyperbolic tangent, which loses digits below zero. Source: ONNX Sigmoid-1 to 13."""
    by_tanh = 0.5 + 0.5 * (0.5 * x).tanh()
    return cancelling(c, x < 0.0, (1.0 + (-x).exp()).reciprocal(), by_tanh).within(0.0, 1.0)


def leaky_relu(c: Call, x: Value) -> Value:
    """The element; below zero, times alpha. Source: ONNX LeakyRelu-1 to 16."""
    low = coefficient(c, x, "alpha") * x
    if not c.float32("alpha"):
        low = at_minus_infinity(c, x, low)
    return or_number(c, x, x.where(x >= 0.0, low))


def elu(c: Call, x: Value) -> Value:
    """The element; below zero, alpha times its exponential less one. Source: ONNX Elu-1 to 22."""
    return or_number(c, x, x.where(x >= 0.0, coefficient(c, x, "alpha") * expm1(c, x)))


def selu(c: Call, x: Value) -> Value:
    """Gamma times the element; up to zero, gamma times alpha times its exponential less one.

    Source: ONNX Selu-1 to 22.
    """
    alpha, gamma = coefficient(c, x, "alpha"), coefficient(c, x, "gamma")
    less = x.expm1()
    low = cancelling(c, (x < 0.0) & (x > -1.0), alpha * less, (alpha * x.exp() - alpha).either(alpha * (x.exp() - 1.0)))
    return or_number(c, x, gamma * x.where(x > 0.0, low))


def celu(c: Call, x: Value) -> Value:
    """The larger of 0 and x, plus the smaller of 0 and alpha times e^(x/alpha) less one.

    The second term is zero above zero. The function body is alpha times Elu of x/alpha, which differs for a negative
    alpha. Source: ONNX Celu-12 and 28.
    """
    alpha = coefficient(c, x, "alpha")
    low, high = x.minimum(0.0), x.maximum(0.0)
    if c.float32("alpha") < 0 and c.open("negative-alpha") == "body":
        low, high = high, low
    return or_number(c, x, high.either(alpha * (high / alpha)) + alpha * expm1(c, low / alpha))


def thresholded_relu(c: Call, x: Value) -> Value:
    """The element if it is above alpha, else zero, also for NaN. Source: ONNX ThresholdedRelu-10 and 22."""
    return x.where(x > coefficient(c, x, "alpha"), c.constant(0.0, x.type).any_zero())


def hard_sigmoid(c: Call, x: Value) -> Value:
    """Alpha times the element plus beta, clipped to [0, 1]. Source: ONNX HardSigmoid-1 to 22."""
    line = coefficient(c, x, "alpha") * x + coefficient(c, x, "beta")
    return or_number(c, x, line.minimum(1.0).maximum(0.0))


def hard_swish(c: Call, x: Value) -> Value:
    """The element times x/6 + 1/2 clipped to [0, 1]; the function body has 1/6 in float32, even for float64.

    Source: ONNX HardSwish-14 and 22.
    """
    if x.type == "float64" and c.open("constants") == "float32":
        y = x * (c.constant(0.1666666716337204, x.type) * x + 0.5).minimum(1.0).maximum(0.0)
    else:
        y = (x * (x / 6.0 + 0.5).minimum(1.0).maximum(0.0)).either(x * (x + 3.0).minimum(6.0).maximum(0.0) / 6.0)
    return at_minus_infinity(c, x, y)


def softplus(c: Call, x: Value) -> Value:
    """ln(e^x + 1): as written, so that the exponential may overflow, or in a form that avoids this.

    Below zero the formula as written loses digits: all of them where e^x + 1 rounds to 1.
    Source: ONNX Softplus-1 and 22.
    """
    return cancelling(c, x < 0.0, _softplus(x), (x.exp() + 1.0).log())


def _softplus(x: Value) -> Value:
    return x.maximum(0.0) + (-x.abs()).exp().log1p()


def softsign(c: Call, x: Value) -> Value:
    """The quotient x/(1 + |x|); infinity over infinity is NaN, or the limit 1. Source: ONNX Softsign-1, 22."""
    size = 1.0 + x.abs()
    y = (x / size).either(x * size.reciprocal())  # subnormal for the largest numbers
    return y if c.open("infinite", x.isinf()) == "not-a-number" else x.sign().where(x.isinf(), y)


def mish(c: Call, x: Value) -> Value:
    """The element x times the hyperbolic tangent of ln(1 + e^x), or an equal rational function of e^x.

    Source: ONNX Mish-18 and 22.
    """
    e = x.minimum(5.0 if x.type == "float16" else 20.0).exp()
    grown, rest = 1.0 + e, e * (e + 2.0)
    square = grown * grown
    written = (x * (x.exp() + 1.0).log().tanh()).either(x * ((square - 1.0) / (square + 1.0)))
    y = cancelling(c, x < 0.0, (x * _softplus(x).tanh()).either(x * (rest / (rest + 2.0))), written)
    return at_minus_infinity(c, x, y)


def swish(c: Call, x: Value) -> Value:
    """The element x times the sigmoid of alpha x; NaN for infinity times zero.

    There the limit is zero, or, if alpha is zero, x itself. Source: ONNX Swish-24.
    """
    alpha, y = c.float32("alpha"), x * sigmoid(c, coefficient(c, x, "alpha") * x)
    if not alpha:
        return _or_limit(c, x.isinf(), x, y)
    return _or_limit(c, x.isinf(positive=alpha < 0, negative=alpha > 0), c.constant(0.0, x.type), y)


def swiglu(c: Call, a: Value, b: Value) -> Value:
    """The element a times the sigmoid of alpha a, times b. a, b: floats of one shape. Source: ONNX SwiGLU-28."""
    c.require("same-shape", a.shape == b.shape)
    return swish(c, a) * b


def gelu(c: Call, x: Value) -> Value:
    """Half of x times 1 + erf(x/√2), or, if approximate, times 1 + tanh(√(2/π)·(x + 0.044715·x³)).

    Far below zero the formula as written loses digits. The function body has the constants in float32, even for
    float64. Source: ONNX Gelu-20.
    """
    way = c.attr("approximate")
    c.require("approximate-known", way in ("none", "tanh"))
    if way == "none":
        z = x / c.constant(2.0, x.type).sqrt()
        accurate, share = (-z).erfc(), 1.0 + z.erf()
    else:
        high, low = (c.constant(number, x.type) for number in _TWO_OVER_PI)
        ratio, cubic = (high + low).sqrt(), 0.044715
        if x.type == "float64" and c.open("constants") == "float32":
            ratio, cubic = c.constant(0.6366197466850281, x.type).sqrt(), 0.044714998453855515
        z = ratio * (x + cubic * x**3.0)
        accurate, share = 2.0 / (1.0 + (-2.0 * z).exp()), 1.0 + z.tanh()
    written = (0.5 * x * share).either(0.5 * (x * share))
    low = x < -1.0  # above, next to no digit is lost
    return at_minus_infinity(c, x, cancelling(c, low, (0.5 * x * accurate).where(low, written), written))


def shrink(c: Call, x: Value) -> Value:
    """The element plus bias below -lambd, less bias above lambd, zero between; the rounding of whole numbers is open.

    Source: ONNX Shrink-9.
    """
    bound, bias = c.float32("lambd"), c.float32("bias")
    if x.kind == "int":
        below, above = x < math.ceil(-bound), x > math.floor(bound)
        if bias == int(bias) or c.open("fraction", below | above) == "of-bias":
            low, high = x + int(bias), x - int(bias)
        else:
            low, high = ((x.cast("float64") + b).trunc().cast(x.type) for b in (bias, -bias))
    else:
        limit, shift = (c.constant(number, x.type) for number in (bound, bias))
        below, above, low, high = x < -limit, x > limit, x + shift, x - shift
    zero = c.constant(0, x.type) if x.kind == "int" else c.constant(0.0, x.type).any_zero()
    if c.open("crossed", below & above) == "below-first":
        return low.where(below, high.where(above, zero))
    return high.where(above, low.where(below, zero))
