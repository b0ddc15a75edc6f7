"""Operators that shift and scale by statistics, or to a sum or norm of one: BatchNormalization, Softmax, LRN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from ..arithmetic.tape import Call, Value
from . import Shaping


def softmax(c: Call, x: Value) -> Value:
    """exp(x) over its sum along `axis`; before version 13 over all dimensions from `axis` on, taken as one.

    x: floats, rank r of 1 or more; result: the same shape. Source: ONNX Softmax-1 to 13.
    """
    axis = c.attr("axis")
    if "axis-range" in c.clauses:
        c.require("axis-range", -x.rank <= axis < x.rank)
    else:
        if axis < 0:
            c.open("axis-negative-early")
        if axis >= x.rank:
            c.open("axis-beyond-early")
            axis = x.rank
    if "along-axis" in c.clauses:
        return along(c, x, axis)
    axis = axis % x.rank if axis < 0 else axis
    flat = x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    return along(c, flat, 1).reshape(*x.shape)


def along(c: Call, x: Value, axis: int) -> Value:
    """The formula with the largest element taken off first, so that no exponential overflows.

    Where an element is +inf the formula as it is written gives 0 for the finite ones, and the other NaN everywhere.
    """
    if math.prod(x.shape) == 0:
        return x
    e = (x - x.max(axis)).exp()
    y = e / e.sum(axis)
    infinite = x.isinf(negative=False)
    within = infinite.cast("uint8").max(axis).cast("bool")
    if c.open("infinite", within) == "as-written":
        nan = c.constant(math.nan, x.type)
        y = nan.where(infinite, 0.0).where(within & ~x.isnan(), y)
    return y


def batch_normalization(
    c: Call, x: Value, scale: Value, b: Value, mean: Value, variance: Value
) -> Value | tuple[Value | None, ...]:
    """(x - mean) / sqrt(variance + epsilon) * scale + b, channel by channel; training takes the statistics from x.

    x: [N, C, D...], or [N] with one channel from version 9 on; the others: [C], or [C, D...] with spatial=0. Training
    also gives running statistics: input * momentum + current * (1 - momentum), with the population variance.
    Source: ONNX BatchNormalization-1 to 15.
    """
    training = _training(c)
    whole = x.reshape(-1, 1) if x.rank == 1 and "rank-1" in c.clauses else x
    c.require("rank", whole.rank > 1)
    spatial = c.attr("spatial", 1) != 0
    if not spatial and c.silent("spatial-early"):
        spatial = c.open("spatial-early") == "per-channel"
    own = (whole.shape[1],) if spatial else whole.shape[1:]
    c.require("per-channel", all(v.shape == own for v in (scale, b, mean, variance)))
    shape = (1, *own, *(1,) * (whole.rank - 2)) if spatial else (1, *own)
    scale, b = scale.reshape(*shape), b.reshape(*shape)
    epsilon = c.float32("epsilon")
    if not training:
        return _normal(c, whole, mean.reshape(*shape), variance.reshape(*shape), scale, b, epsilon).reshape(*x.shape)
    axes = (0, *range(2, whole.rank)) if spatial else (0,)
    wide = (
        whole.cast("float32") if "wide-statistics" in c.clauses and c.types["X"] in ("float16", "bfloat16") else whole
    )
    current = wide.mean(axes)
    off = wide - current
    spread = (off * off).mean(axes)
    y = _normal(c, whole, current, spread, scale, b, epsilon).reshape(*x.shape)
    keep = c.float32("momentum")
    running = (old * keep + new.reshape(*own) * (1 - keep) for old, new in ((mean, current), (variance, spread)))
    return (y, *running)


def _training(c: Call) -> bool:
    """Whether the call trains: by training_mode from version 14 on, by the number of outputs and is_test before."""
    wanted = sum(c.wants(port) for port in c.output_types)
    if "training-mode" in c.clauses:
        training = bool(c.attr("training_mode") != 0)
        c.require("inference-one-output", training or wanted == 1)
        if training and wanted < len(("Y", "running_mean", "running_var")):
            c.open("outputs-partial")
        return training
    if c.attr("is_test", 1) != 0 and wanted == 1:
        return False
    c.open("training-early" if wanted > 1 else "mode-early")
    return False


def _normal(c: Call, x: Value, mean: Value, variance: Value, scale: Value, b: Value, epsilon: float) -> Value:
    """The formula, or with scale and mean folded into one factor and one addend, as inference often has it."""
    inverse = 1.0 / (variance + epsilon).sqrt()
    if c.open("algorithm") == "folded":
        factor = scale * inverse
        return x * factor + (b - mean * factor)
    return (x - mean) * inverse * scale + b


def per_channel(shaping: Shaping) -> tuple[int, ...]:
    """One element for each channel, or for each channel and place with spatial=0, from version 7 on."""
    whole = shaping.symbols["d"]
    assert isinstance(whole, tuple)
    places = shaping.attr("spatial") == 0 and "spatial-early" not in shaping.version.silences
    return whole[1:] if places else whole[1:2]


def group_normalization(c: Call, x: Value, scale: Value, bias: Value) -> Value:
    """(x - mean) / sqrt(variance + epsilon) for each group of channels, then times scale, plus bias.

    x: [N, C, spatial...]; scale, bias: one for each group in version 18, for each channel from 21 on, whose first stage
    is computed in the type that `stash_type` names. Source: ONNX GroupNormalization-18 and 21.
    """
    groups, stash, way = c.attr("num_groups"), c.attr("stash_type"), c.open("algorithm")
    c.require("groups", x.rank > 1 and groups > 0 and x.shape[1] % groups == 0)
    c.require("stash-type", stash in (None, *_STASHED))
    n, each = x.shape[0], x.shape[1] // groups
    own = groups if "per-group" in c.clauses else x.shape[1]
    c.require("scale-shape", scale.shape == bias.shape == (own,))
    scale, bias = (v.reshape(1, groups, own // groups, 1) for v in (scale, bias))
    wide = x if stash is None else x.cast(_STASHED[stash])
    wide = wide.reshape(n, groups, each, math.prod(x.shape[2:]))
    mean, off, spread = _moments(wide, (2, 3), raw=way == "raw-moments")
    inverse = 1.0 / (spread + c.float32("epsilon")).sqrt()
    if way == "folded":
        both = {x.type, wide.type}
        most = "float64" if "float64" in both else "float32" if len(both) > 1 else x.type
        x4, mean, inverse, scale, bias = (v.cast(most) for v in (wide, mean, inverse, scale, bias))
        factor = scale * inverse
        return (x4 * factor + (bias - mean * factor)).cast(x.type).reshape(*x.shape)
    return ((off * inverse).cast(x.type) * scale + bias).reshape(*x.shape)


_STASHED = MappingProxyType({1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"})
"""Element types by the numbers that ONNX has for them."""


def _moments(x: Value, axes: Sequence[int], *, raw: bool) -> tuple[Value, Value, Value]:
    """Return the mean, how far elements are off it, and the variance: of these distances, or E[x²] - E[x]²."""
    mean = x.mean(axes)
    off = x - mean
    return mean, off, (x * x).mean(axes) - mean * mean if raw else (off * off).mean(axes)


def mean_variance_normalization(c: Call, x: Value) -> Value:
    """(x - mean) over the standard deviation, along axes. The text adds nothing to the latter, the function body 1e-9.

    x: floats; result: the same shape. Source: ONNX MeanVarianceNormalization-9 and 13.
    """
    axes = c.ints("axes") or ()
    c.require("axes-range", all(-x.rank <= axis < x.rank for axis in axes))
    if min(axes, default=0) < 0:
        c.open("axes-negative")
    if not x.size:
        return x
    _, off, spread = _moments(x, axes, raw=c.open("algorithm") == "raw-moments")
    deviation = spread.sqrt()
    return _over(off, deviation + float(np.float32(1e-9)) if c.open("epsilon") == "added" else deviation)


def lp_normalization(c: Call, x: Value) -> Value:
    """X over its 1-norm or 2-norm along an axis; 0 where that is 0.

    x: floats; result: the same shape. Source: ONNX LpNormalization-1 and 22.
    """
    axis, p = c.attr("axis"), c.attr("p")
    c.require("p-range", p in (1, 2))
    c.require("axis-range", -x.rank <= axis < x.rank)
    if axis < -1:
        c.open("axis-negative")
    norm = x.abs().sum(axis) if p == 1 else (x * x).sum(axis).sqrt()
    return c.constant(0.0, x.type).where(norm.equal(0.0), _over(x, norm))


def _over(x: Value, by: Value) -> Value:
    """A quotient, or a product with a reciprocal, which is not exact where the quotient is."""
    return (x / by).either(x * (1.0 / by))


def lrn(c: Call, x: Value) -> Value:
    """X / (bias + alpha / size * Σ x²)^beta, the sum over as many channels as `size` says around each.

    x: [N, C, D...]; result: the same shape. Source: ONNX LRN-1 and 13.
    """
    size, alpha = c.attr("size"), c.constant(c.float32("alpha"), x.type)
    channels, squares = x.shape[1], x * x
    first = np.arange(channels) - (size - 1) // 2
    bias = c.constant(c.float32("bias"), x.type)
    if c.open("algorithm") == "sliding":  # what enters is added, and what leaves is taken off
        whole = bias.broadcast(x.shape[0], 1, *x.shape[2:]).concat([alpha / float(size) * squares], 1).cumsum(1)
        last = (first + size).clip(0, channels)
        within = whole.take(last, 1) - whole.take(first.clip(0, channels), 1) + bias
    else:
        places = first + np.arange(size)[:, None]
        places = np.where((places >= 0) & (places < channels), places, channels)
        framed = squares.concat([c.constant(0.0, x.type).broadcast(x.shape[0], 1, *x.shape[2:])], 1)
        within = bias + alpha / float(size) * framed.take(places, 1).sum(1, keep=False)
    return x / within.pow(c.float32("beta"))
