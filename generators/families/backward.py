"""Backward operations of oneDNN Graph: a gradient times the derivative of the forward formula."""

from __future__ import annotations

import math

import numpy as np

from ...cases.elements import Array
from ..arithmetic.binding import Formula
from ..arithmetic.gradients import gradients, times
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from . import activation
from .onednn_pointwise import channel_axis

_DENSITY_AT_ZERO = 0.3989422804014327
"""1/√(2π), for float32 and narrower types."""


def gelu(c: Call, formula: Formula, src: Value, diff_dst: Value) -> Value:
    """The gradient times the derivative of GELU, from the tape, or as it is usually written; at infinity, any number.

    For gelu_erf that is Φ(x) + x·φ(x), with the normal distribution's function by erfc, and its density. src, diff_dst:
    one shape. Source: oneDNN Graph GELUBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    (diff_src,) = gradients(c, formula(src), diff_dst, [src], smooth=True, pointwise=True)
    if c.attr("mode") == "gelu_erf":
        share = 0.5 * (-src / c.constant(2.0, src.type).sqrt()).erfc()
        density = (-0.5 * src * src).exp() * _DENSITY_AT_ZERO
        diff_src = diff_src.either(diff_dst * (share + src * density))
    return diff_src.undefined(src.isinf(), "infinite")


def relu(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient where src is positive, else zero; at zero, the derivative of either side.

    With use_dst, src is ReLU's result. A zero of it stands for every negative operand, so the gradient is zero there,
    and no result is negative or NaN. Source: oneDNN Graph ReLU and ReLUBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    result = bool(c.attr("use_dst"))
    y = src.where(src > 0.0, c.constant(0.0, src.type))
    (diff_src,) = gradients(c, y, diff_dst, [src], smooth=result, pointwise=True)
    return diff_src.undefined(~(src >= 0.0)) if result else diff_src.undefined(src.isnan(), "nan")


def sigmoid(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient times s (1 - s), s the sigmoid of src, or, with use_dst, src itself, which lies in [0, 1].

    Source: oneDNN Graph Sigmoid and SigmoidBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    if not c.attr("use_dst"):
        s, rest = activation.sigmoid(c, src), activation.sigmoid(c, -src)
        return times(c, diff_dst, (s * rest).either(s * (1.0 - s)))  # 1 - s has no digits where s is near 1
    return times(c, diff_dst, src * (1.0 - src)).undefined(~((src >= 0.0) & (src <= 1.0)))


def tanh(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient times the derivative of the hyperbolic tangent; with use_dst from its result.

    Source: oneDNN Graph TanhBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    if not c.attr("use_dst"):
        return gradients(c, src.tanh(), diff_dst, [src], pointwise=True)[0]
    slope = (1.0 - src * src).either((1.0 - src) * (1.0 + src))
    return times(c, diff_dst, slope).undefined(~(src.abs() <= 1.0))


def abs_(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient with the sign of src, and zero where src is zero. Source: oneDNN Graph AbsBackward."""
    c.require("same-shape", src.shape == diff_dst.shape)
    zero = c.constant(0.0, src.type).any_zero()
    return diff_dst.where(src > 0.0, (-diff_dst).where(src < 0.0, zero)).undefined(src.isnan(), "nan")


def clamp(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient between min and max, zero outside; at a bound, the derivative of either side.

    With use_dst, src is Clamp's result: a bound stands for every operand beyond it, too. Source: oneDNN Graph Clamp,
    ClampBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    low, high = (c.constant(c.float32(name), "float32") for name in ("min", "max"))
    wide = src.cast("float32")
    inside, bound = (wide > low) & (wide < high), wide.equal(low) | wide.equal(high)
    unit = c.constant(1.0, src.type)
    slope = unit.where(inside | bound if c.open("tie", bound) == "gradient" else inside, 0.0)
    diff_src = times(c, diff_dst, slope.broadcast(*src.shape))
    return diff_src.undefined(~(inside | bound)) if c.attr("use_dst") else diff_src.undefined(src.isnan(), "nan")


def elu(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient where src is positive; where it is negative, times alpha e^src, or, with use_dst, times src + alpha.

    At zero both slopes are admissible, which differ unless alpha is 1. Source: oneDNN Graph Elu and EluBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    alpha, result = c.float32("alpha"), bool(c.attr("use_dst"))
    c.require("alpha-range", alpha >= 0.0)
    tie = src.equal(0.0) if alpha != 1.0 else (src > 0.0) & (src < 0.0)
    above = src >= 0.0 if c.open("tie", tie) == "one" else src > 0.0
    low = src + alpha if result else alpha * src.exp()
    diff_src = times(c, diff_dst, c.constant(1.0, src.type).where(above, low))
    return diff_src.undefined(~(src >= -alpha)) if result else diff_src.undefined(src.isnan(), "nan")


def hard_sigmoid(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient times alpha where alpha src + beta lies between 0 and 1, both excluded, else zero.

    Source: oneDNN Graph HardSigmoidBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    alpha, beta = c.float32("alpha"), c.float32("beta")
    line = alpha * src + beta
    zero = c.constant(0.0, src.type).any_zero()
    return (diff_dst * alpha).where((line > 0.0) & (line < 1.0), zero)


def hard_swish(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient times 0 below -3, times 1 above 3, and times src / 3 + 1/2 between; at both ends, either slope.

    Source: oneDNN Graph HardSwish and HardSwishBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    inner = ((2.0 * src + 3.0) / 6.0).either(src / 3.0 + 0.5)
    unit = c.constant(1.0, src.type)
    written = c.open("tie", src.abs().equal(3.0)) == "inner"
    above, below = (src > 3.0, src < -3.0) if written else (src >= 3.0, src <= -3.0)
    slope = unit.where(above, c.constant(0.0, src.type).where(below, inner))
    return times(c, diff_dst, slope).undefined(src.isnan() | src.isinf(), "not-finite")


def mish(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient times e ω / δ², e the exponential of src, ω and δ as the page has them.

    Divided by e⁴ it does not overflow. Source: oneDNN Graph MishBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    e, f = src.minimum(0.0).exp(), (-src.maximum(0.0)).exp()
    omega = e * e * e + 4.0 * (e * e) + e * (4.0 * src + 6.0) + 4.0 * (src + 1.0)
    delta = e * e + 2.0 * e + 2.0
    above = 1.0 + 4.0 * f + f * f * (4.0 * src + 6.0) + 4.0 * (f * f * f) * (src + 1.0)
    below = 1.0 + 2.0 * f + 2.0 * (f * f)
    slope = (above / (below * below)).where(src > 0.0, e * omega / (delta * delta))
    diff_src = times(c, diff_dst, slope).undefined(src.isnan() | src.isinf(), "not-finite")
    far = src > (2.0 if src.type == "float16" else 20.0)
    beyond = {"infinite": diff_dst * math.inf, "not-a-number": diff_dst * math.nan}.get(c.open("far", far))
    return diff_src if beyond is None else beyond.where(far, diff_src)


def softplus(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient times the sigmoid of beta src. Source: oneDNN Graph SoftPlus and SoftPlusBackward."""
    c.require("same-shape", src.shape == diff_dst.shape)
    return times(c, diff_dst, activation.sigmoid(c, src * c.float32("beta")))


def sqrt(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient over twice the root of src, or over twice src, if that is the root.

    Source: oneDNN Graph Sqrt and SqrtBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    if not c.attr("use_dst"):
        return gradients(c, src.sqrt(), diff_dst, [src], pointwise=True)[0]
    return times(c, diff_dst, (2.0 * src).reciprocal()).undefined(~(src >= 0.0))


def log_softmax(c: Call, diff_dst: Value, dst: Value) -> Value:
    """From LogSoftmax's result y and the gradient g: g - e^y Σ g along axis.

    diff_dst, dst: one shape. Source: oneDNN Graph LogSoftmax and LogSoftmaxBackward.
    """
    axis = c.attr("axis")
    c.require("axis-range", -dst.rank <= axis < dst.rank)
    c.require("same-shape", dst.shape == diff_dst.shape)
    y, g = (operand.cast("float32") for operand in (dst, diff_dst))
    return (g - y.exp() * g.sum(axis)).cast(dst.type)


def bias_add(c: Call, diff_dst: Value) -> Value:
    """The sum of the gradient over all dimensions but the channel. Source: oneDNN Graph BiasAddBackward."""
    axis = channel_axis(c, diff_dst.rank)
    c.require("channels", axis < diff_dst.rank)
    return diff_dst.sum([dimension for dimension in range(diff_dst.rank) if dimension != axis], keep=False)


def prelu(c: Call, src: Value, slope: Value, diff_dst: Value) -> tuple[Value, Value]:
    """The gradients of src and slope: (diff_src, diff_slope), the shapes of both.

    src, diff_dst: one shape; slope: [C], [1], or the shape of src without the first dimension. Source: oneDNN Graph
    PReLU and PReLUBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    axis = channel_axis(c, src.rank)
    spread = slope
    if slope.rank == 1 and slope.shape == src.shape[axis : axis + 1]:
        spread = slope.reshape(*(-1 if dimension == axis else 1 for dimension in range(src.rank)))
    else:
        c.require("slope-shape", slope.shape in ((1,), src.shape[1:]))
    unit, negative, lost = c.constant(1.0, src.type), src < 0.0, src.isnan()
    above = src >= 0.0 if c.open("tie", src.equal(0.0)) == "one" else src > 0.0
    of_src = times(c, diff_dst, unit.where(above, spread)).undefined(lost, "nan")
    held = c.open("masked", ~negative & (diff_dst.isinf() | diff_dst.isnan())) == "zero"
    terms = (diff_dst * src).where(negative, 0.0) if held else diff_dst * src.where(negative, 0.0)
    shared = [dimension for dimension, extent in enumerate(spread.to_rank(src.rank).shape) if extent == 1]
    of_slope = terms.sum(shared).reshape(*slope.shape)
    met = lost.cast("float32").sum(shared).reshape(*slope.shape) > 0.0
    return of_src, of_slope.undefined(met, "nan")


def softmax(c: Call, diff_dst: Value, dst: Value) -> Value:
    """From SoftMax's result s and the gradient g: s (g - Σ g s) along axis.

    diff_dst, dst: one shape. Source: oneDNN Graph Softmax and SoftmaxBackward.
    """
    axis = c.attr("axis")
    c.require("axis-range", -dst.rank <= axis < dst.rank)
    c.require("same-shape", dst.shape == diff_dst.shape)
    c.require("types", c.output_types["diff_src"] in ("float32", dst.type))
    s, g = (operand.cast("float32") for operand in (dst, diff_dst))
    total = (g * s).sum(axis)
    return (s * (g - total)).either(g * s - s * total)


def operand(drawing: Drawing) -> Array:
    """Numbers in [-4, 4] in steps of 2^-12; with use_dst, results of the forward operation: from 0 to `most`."""
    steps = 1 << 12
    if not drawing.attributes.get("use_dst", True):
        return drawing.draw.between(-4 * steps, 4 * steps, drawing.size) / steps
    return drawing.draw.between(0, drawing.limit("most", 4) * steps, drawing.size) / steps


def edges(drawing: Drawing) -> Array:
    """Zeros, small and large numbers of both signs, infinities, NaN; with use_dst only results, from 0 to `most`."""
    limits = np.finfo(np.float32 if drawing.type.name != "float16" else np.float16)
    sizes = np.array([0.0, float(limits.tiny), 2.0**-10, 1.0, 8.0, 40.0, float(limits.max) / 4, np.inf])
    if drawing.attributes.get("use_dst", True):
        most = drawing.limit("most", 0)
        pool = sizes[sizes <= most] if "most" in drawing.arguments else sizes
    else:
        pool = np.array([*sizes, *-sizes, np.nan])
    return pool[(np.arange(drawing.size) + drawing.draw.below(len(pool), 1)) % len(pool)]


def shares(drawing: Drawing) -> Array:
    """Positive numbers whose sum along axis is 1, but for rounding: a result of SoftMax."""
    axis = int(drawing.attributes.get("axis", 1))
    numbers = (
        drawing.draw.between(1, 1000, drawing.size).astype(np.float64).reshape(len(drawing.draw.keys), *drawing.shape)
    )
    lines = axis % max(len(drawing.shape), 1) + 1 if drawing.shape else ()
    return np.asarray((numbers / numbers.sum(axis=lines, keepdims=True)).reshape(len(numbers), drawing.size))


def log_shares(drawing: Drawing) -> Array:
    """Logarithms of positive numbers whose sum along axis is 1, but for rounding: a result of LogSoftmax."""
    axis = int(drawing.attributes.get("axis", -1))
    drawn = drawing.draw.between(1, 1000, drawing.size).astype(np.float64)
    numbers = drawn.reshape(len(drawing.draw.keys), *drawing.shape)
    lines = axis % max(len(drawing.shape), 1) + 1 if drawing.shape else ()
    return np.asarray(np.log(numbers / numbers.sum(axis=lines, keepdims=True)).reshape(len(numbers), drawing.size))


def clamped(drawing: Drawing) -> Array:
    """Numbers in [-4, 4] in steps of 1/8, so that many are bounds; with use_dst, in the interval of Clamp's bounds."""
    drawn = drawing.draw.between(-32, 32, drawing.size) / 8.0
    if not drawing.attributes.get("use_dst", True):
        return drawn
    return np.clip(drawn, drawing.attributes["min"], drawing.attributes["max"])


def elus(drawing: Drawing) -> Array:
    """Numbers in [-4, 4] in steps of 2^-12; with use_dst, results of Elu: none below -alpha."""
    drawn = drawing.draw.between(-(1 << 14), 1 << 14, drawing.size) / 4096.0
    if not drawing.attributes.get("use_dst", True):
        return drawn
    alpha = drawing.attributes["alpha"]
    return np.where(drawn < 0, np.floor(-alpha * np.abs(drawn) / 4.0 * -4096.0) / -4096.0, drawn)


def signed(drawing: Drawing) -> Array:
    """Numbers in [-4, 4] in steps of 2^-12 that are not zero."""
    drawn = drawing.draw.between(-(1 << 14), 1 << 14, drawing.size)
    return np.where(drawn == 0, 1, drawn) / 4096.0


def zeros_among(drawing: Drawing) -> Array:
    """Numbers like `signed`, every third one a zero of either sign."""
    drawn = drawing.draw.between(-(1 << 14), 1 << 14, drawing.size) / 4096.0
    every = np.broadcast_to(np.arange(drawing.size) % 3 == 0, drawn.shape)
    return np.where(every, np.copysign(0.0, drawn), drawn)


def roots(drawing: Drawing) -> Array:
    """Positive numbers of many sizes: operands, or results, of a square root."""
    drawn = drawing.draw.between(1 << 12, 1 << 13, drawing.size).astype(np.float64)
    return np.ldexp(drawn, drawing.draw.between(-18, -8, drawing.size))
