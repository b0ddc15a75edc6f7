"""Operators that shift and scale by statistics, or to a sum of one: BatchNormalization, Softmax."""

from __future__ import annotations

import math

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
