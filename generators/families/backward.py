"""Backward operations of oneDNN Graph: a gradient times the derivative of the forward formula."""

from __future__ import annotations

import numpy as np

from ...cases.elements import Array
from ..arithmetic.binding import Formula
from ..arithmetic.gradients import gradients, times
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from . import activation

_DENSITY_AT_ZERO = 0.3989422804014327
"""1/√(2π), for float32 and narrower types."""


def gelu(c: Call, formula: Formula, src: Value, diff_dst: Value) -> Value:
    """The gradient times the derivative of GELU, from the tape, or as it is usually written; at infinity, any number.

    For gelu_erf that is Φ(x) + x·φ(x), with the normal distribution's function by erfc, and its density. src, diff_dst:
    one shape. Source: oneDNN Graph GELUBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    (found,) = gradients(c, formula(src), diff_dst, [src], smooth=True, pointwise=True)
    if c.attr("mode") == "gelu_erf":
        share = 0.5 * (-src / c.constant(2.0, src.type).sqrt()).erfc()
        density = (-0.5 * src * src).exp() * _DENSITY_AT_ZERO
        found = found.either(diff_dst * (share + src * density))
    return found.undefined(src.isinf(), "infinite")


def relu(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient where src is positive, else zero; at zero, the derivative of either side.

    With use_dst, src is ReLU's result. A zero of it stands for every negative operand, so the gradient is zero there,
    and no result is negative or NaN. Source: oneDNN Graph ReLU and ReLUBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    result = bool(c.attr("use_dst"))
    y = src.where(src > 0.0, c.constant(0.0, src.type))
    (found,) = gradients(c, y, diff_dst, [src], smooth=result, pointwise=True)
    return found.undefined(~(src >= 0.0)) if result else found.undefined(src.isnan(), "nan")


def sigmoid(c: Call, src: Value, diff_dst: Value) -> Value:
    """The gradient times s (1 - s), s the sigmoid of src, or, with use_dst, src itself, which lies in [0, 1].

    Source: oneDNN Graph Sigmoid and SigmoidBackward.
    """
    c.require("same-shape", src.shape == diff_dst.shape)
    if not c.attr("use_dst"):
        s, rest = activation.sigmoid(c, src), activation.sigmoid(c, -src)
        return times(c, diff_dst, (s * rest).either(s * (1.0 - s)))  # 1 - s has no digits where s is near 1
    return times(c, diff_dst, src * (1.0 - src)).undefined(~((src >= 0.0) & (src <= 1.0)))


def softmax(c: Call, diff_dst: Value, dst: Value) -> Value:
    """From SoftMax's result s and the gradient g: s (g - Σ g s) along axis.

    diff_dst, dst: one shape. Source: oneDNN Graph Softmax and SoftmaxBackward.
    """
    axis = c.attr("axis")
    c.require("axis-range", -dst.rank <= axis < dst.rank)
    c.require("same-shape", dst.shape == diff_dst.shape)
    c.require("types", c.output_types["diff_src"] in ("float32", dst.type))
    s, g = (one.cast("float32") for one in (dst, diff_dst))
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
    whole = (
        drawing.draw.between(1, 1000, drawing.size).astype(np.float64).reshape(len(drawing.draw.keys), *drawing.shape)
    )
    lines = axis % max(len(drawing.shape), 1) + 1 if drawing.shape else ()
    return np.asarray((whole / whole.sum(axis=lines, keepdims=True)).reshape(len(whole), drawing.size))
