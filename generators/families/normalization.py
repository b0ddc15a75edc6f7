"""Operators that shift and scale by statistics, or to a sum or norm of 1: BatchNormalization, Softmax, LRN."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ...cases.elements import element_type
from ..arithmetic.tape import Call, Value
from . import Shaping


def softmax(c: Call, x: Value) -> Value:
    """exp(x) divided by its sum along `axis`; before version 13 over all dimensions from `axis` on.

    x: floats, rank r of 1 or more; result: the same shape. Source: ONNX Softmax-1 to 13.
    """
    return _lines(c, x, along)


def log_softmax(c: Call, x: Value) -> Value:
    """X less the logarithm of the sum of exp(x), along `axis`; before version 13 over all dimensions from `axis` on.

    x: floats, rank r of 1 or more; result: the same shape. Source: ONNX LogSoftmax-1 to 13.
    """
    return _lines(c, x, logarithm_along)


def hardmax(c: Call, x: Value) -> Value:
    """1 for the first largest element along `axis`, 0 for the others; before version 13 over all dimensions from it on.

    x: floats, rank r of 1 or more; result: the same shape. Source: ONNX Hardmax-1 to 13.
    """
    y = _lines(c, x, _first_largest)
    if c.met.get("nan") == "any":
        c.check("one-of", arrays=[c.constant(number, x.type).broadcast(*x.shape) for number in (0.0, 1.0, math.nan)])
    return y


def _lines(c: Call, x: Value, formula: Callable[[Call, Value, int], Value]) -> Value:
    """A formula applied to the lines along `axis`, or, before version 13, over all dimensions from it on."""
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
        return formula(c, x, axis)
    axis = axis % x.rank if axis < 0 else axis
    flat = x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    return formula(c, flat, 1).reshape(*x.shape)


def logarithm_along(c: Call, x: Value, axis: int) -> Value:
    """The formula with the largest element subtracted first; or, as on the page, the logarithm of the quotients."""
    if math.prod(x.shape) == 0:
        return x
    off = x - x.max(axis)
    e = off.exp(shifted=True)
    total = e.sum(axis)
    y = (e / total).log() if c.open("algorithm") == "of-quotient" else off - total.log()
    infinite = x.isinf(negative=False)
    within = infinite.cast("uint8").max(axis).cast("bool")
    if c.open("infinite", within) == "as-written":
        lost, nan = (c.constant(number, x.type) for number in (-math.inf, math.nan))
        y = nan.where(infinite, lost).where(within & ~x.isnan(), y)
    return y


def _first_largest(c: Call, x: Value, axis: int) -> Value:
    if math.prod(x.shape) == 0:
        return x
    lost = x.isnan().cast("uint8").max(axis).cast("bool")
    places = np.arange(x.shape[axis]).reshape([-1 if i == axis % x.rank else 1 for i in range(x.rank)])
    hit = x.argmax(axis).equal(c.constant(places, "int64"))
    return c.constant(1.0, x.type).where(hit, 0.0).undefined(lost, "nan")


def layer_normalization(c: Call, x: Value, scale: Value, b: Value | None = None) -> tuple[Value, Value, Value]:
    """(x - mean) / sqrt(variance + epsilon) * scale + b, the mean, and 1 / sqrt(variance + epsilon).

    The statistics are over the axes from `axis` on; they and the quotient are computed in the type stash_type. scale,
    b: broadcast to x; the statistics: x's shape with 1 from `axis` on. Source: ONNX LayerNormalization-17.
    """
    axes = _from_axis(c, x)
    c.require("broadcast", all(_stretches(v, x) for v in (scale, b) if v is not None))
    wide = _staged(c, x, ("float32", "bfloat16"))
    mean = wide.mean(axes)
    off = wide - mean
    moments = c.open("algorithm") == "raw-moments"
    variance = (wide * wide).mean(axes) - mean * mean if moments else (off * off).mean(axes)
    inverse = 1.0 / (variance + c.float32("epsilon")).sqrt()
    normal = off * inverse
    y, late = normal.cast(x.type) * scale, normal * scale.cast(wide.type)
    if b is not None:
        y, late = y + b, late + b.cast(wide.type)
    return y if wide.type == x.type else y.either(late.cast(x.type)), mean, inverse


def rms_normalization(c: Call, x: Value, scale: Value) -> Value:
    """X divided by the root of its mean square plus epsilon, in the type stash_type; then times scale.

    The mean is over the axes from `axis` on; scale: broadcast to x; result: scale's type. Source: ONNX
    RMSNormalization-23.
    """
    axes = _from_axis(c, x)
    c.require("broadcast", _stretches(scale, x))
    wide = _staged(c, x, tuple(_STASHES.values()))
    normal = wide / ((wide * wide).mean(axes) + c.float32("epsilon")).sqrt()
    y = normal.cast(scale.type) * scale
    if x.type != scale.type:
        y = y.either(normal.cast(x.type).cast(scale.type) * scale)
    return y if wide.type == scale.type else y.either((normal * scale.cast(wide.type)).cast(scale.type))


_STASHES: Mapping[int, str] = MappingProxyType({1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"})


def _from_axis(c: Call, x: Value) -> range:
    axis = c.attr("axis")
    c.require("axis-range", -x.rank <= axis < x.rank)
    return range(axis % x.rank, x.rank)


def _stretches(v: Value, x: Value) -> bool:
    return v.rank <= x.rank and all(e in (1, d) for e, d in zip(v.shape[::-1], x.shape[::-1], strict=False))


def _staged(c: Call, x: Value, types: tuple[str, ...]) -> Value:
    """X in the type of the first stage; or unchanged, if its own type is more precise and the text allows that."""
    type_ = _STASHES.get(c.attr("stash_type"), "")
    c.require_if_stated("stash-type", type_ in types)
    own, other = (element_type(name).float_format.precision for name in (x.type, type_))
    is_open = own > other and type_ != "float32" and c.silent("stage-one-wider")
    return x if is_open and c.open("stage-one-wider") == "as-input" else x.cast(type_)


def instance_normalization(c: Call, x: Value, scale: Value, b: Value) -> Value:
    """(x - mean) / sqrt(variance + epsilon) * scale + b, with the statistics of each channel of each instance.

    x: [N, C, D...], of rank 4 in version 1; scale, b: [C]. Source: ONNX InstanceNormalization-1 to 22.
    """
    c.require_if_stated("rank-4", x.rank == 4)
    c.require_if_stated("rank", x.rank > 2)
    c.require("per-channel", scale.shape == b.shape == x.shape[1:2])
    shape = (1, -1, *(1,) * (x.rank - 2))
    scale, b, axes = scale.reshape(*shape), b.reshape(*shape), range(2, x.rank)
    mean = x.mean(axes)
    off = x - mean
    raw = c.open("moments") == "raw"
    variance = (x * x).mean(axes) - mean * mean if raw else (off * off).mean(axes)
    return _normal(c, x, mean, variance, scale, b, c.float32("epsilon"))


def along(c: Call, x: Value, axis: int) -> Value:
    """The formula with the largest element subtracted first, so that no exponential overflows; or as it is written.

    If an element is +inf, the formula as written gives 0 for the finite ones, and this one gives NaN everywhere.
    """
    if math.prod(x.shape) == 0:
        return x
    e = (x - x.max(axis)).exp(shifted=True)
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
    """(x - mean) / sqrt(variance + epsilon) * scale + b, for each channel; in training the statistics come from x.

    x: [N, C, D...], or [N] with one channel from version 9 on; the others: [C], or [C, D...] with spatial=0. Training
    also returns running statistics: input * momentum + current * (1 - momentum), with the population variance. If other
    inputs are of a wider type than x, it is open whether they are first converted to x's.
    Source: ONNX BatchNormalization-1 to 15.
    """
    training = _training(c, x)
    batch = x.reshape(-1, 1) if x.rank == 1 and "rank-1" in c.clauses else x
    c.require_if_stated("rank", batch.rank > 1)
    spatial = c.attr("spatial", 1) != 0
    if not spatial and c.silent("spatial-early"):
        spatial = c.open("spatial-early") == "per-channel"
    own = (batch.shape[1],) if spatial else batch.shape[1:]
    c.require("per-channel", all(v.shape == own for v in (scale, b, mean, variance)))
    shape = (1, *own, *(1,) * (batch.rank - 2)) if spatial else (1, *own)
    scale, b = scale.reshape(*shape), b.reshape(*shape)
    epsilon, given = c.float32("epsilon"), (scale.type, mean.type)
    wider = any(element_type(t).float_format.precision > element_type(x.type).float_format.precision for t in given)
    if wider and c.open("wider-statistics") == "as-input":
        scale, b, mean, variance = (v.store(x.type) for v in (scale, b, mean, variance))
    if not training:
        return _normal(c, batch, mean.reshape(*shape), variance.reshape(*shape), scale, b, epsilon).reshape(*x.shape)
    axes = (0, *range(2, batch.rank)) if spatial else (0,)
    wide = (
        batch.cast("float32") if "wide-statistics" in c.clauses and c.types["X"] in ("float16", "bfloat16") else batch
    )
    current = wide.mean(axes)
    off = wide - current
    spread = (off * off).mean(axes)
    y = _normal(c, batch, current, spread, scale, b, epsilon).reshape(*x.shape)
    if "training-mode" not in c.clauses:
        if sum(map(c.wants, c.output_types)) > 1:
            c.open("training-early")
        free = mean.undefined(c.constant(True, "bool").broadcast(*mean.shape))
        return y, free, free, free, free
    keep = c.float32("momentum")
    running = (old * keep + new.reshape(*own) * (1 - keep) for old, new in ((mean, current), (variance, spread)))
    return (y, *(statistic.store(given[1]) for statistic in running))


def _training(c: Call, x: Value) -> bool:
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
    return wanted > 1 or (x.size > 0 and c.open("mode-early") == "batch")


def _normal(c: Call, x: Value, mean: Value, variance: Value, scale: Value, b: Value, epsilon: float) -> Value:
    """The formula, also with scale and mean folded into one factor and one addend, as is usual in inference."""
    inverse = 1.0 / (variance + epsilon).sqrt()
    if c.open("algorithm") == "folded":
        factor = scale * inverse
        return x * factor + (b - mean * factor)
    return (x - mean) * inverse * scale + b


def per_channel(shaping: Shaping) -> tuple[int, ...]:
    """One element for each channel, or, with spatial=0, for each channel and position, from version 7 on."""
    dimensions = shaping.symbols["d"]
    assert isinstance(dimensions, tuple)
    places = shaping.attr("spatial") == 0 and "spatial-early" not in shaping.version.silences
    return dimensions[1:] if places else dimensions[1:2]


def group_normalization(c: Call, x: Value, scale: Value, bias: Value) -> Value:
    """(x - mean) / sqrt(variance + epsilon) for each group of channels, then times scale, plus bias.

    x: [N, C, spatial...]; scale, bias: one for each group in version 18, for each channel from 21 on; from 21 on the
    first stage is computed in the type `stash_type`. Source: ONNX GroupNormalization-18 and 21.
    """
    groups, stash, way = c.attr("num_groups"), c.attr("stash_type"), c.open("algorithm")
    c.require("groups", x.rank > 1 and groups > 0 and x.shape[1] % groups == 0)
    c.require_if_stated("stash-type", stash in (None, *_STASHED))
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
"""Element types by their numbers in ONNX."""


def _moments(x: Value, axes: Sequence[int], *, raw: bool) -> tuple[Value, Value, Value]:
    """Return the mean, the differences from it, and the variance: from these differences, or E[x²] - E[x]²."""
    mean = x.mean(axes)
    off = x - mean
    return mean, off, (x * x).mean(axes) - mean * mean if raw else (off * off).mean(axes)


def mean_variance_normalization(c: Call, x: Value) -> Value:
    """(x - mean) / (standard deviation), along axes. The text adds nothing to the divisor, the function body 1e-9.

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
    """X divided by its 1-norm or 2-norm along an axis; 0 where the norm is 0.

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
    """A quotient, or a product with a reciprocal, which may be inexact even if the quotient is exact."""
    return (x / by).either(x * (1.0 / by))


def lrn(c: Call, x: Value) -> Value:
    """X / (bias + alpha / size * Σ x²)^beta, where the sum is over `size` channels around each.

    x: [N, C, D...]; result: the same shape. Source: ONNX LRN-1 and 13.
    """
    size, alpha = c.attr("size"), c.constant(c.float32("alpha"), x.type)
    channels, squares = x.shape[1], x * x
    first = np.arange(channels) - (size - 1) // 2
    bias = c.constant(c.float32("bias"), x.type)
    if c.open("algorithm") == "sliding":  # channels that enter are added, and channels that leave are subtracted
        sums = bias.broadcast(x.shape[0], 1, *x.shape[2:]).concat([alpha / float(size) * squares], 1).cumsum(1)
        last = (first + size).clip(0, channels)
        within = sums.take(last, 1) - sums.take(first.clip(0, channels), 1) + bias
    else:
        places = first + np.arange(size)[:, None]
        places = np.where((places >= 0) & (places < channels), places, channels)
        framed = squares.concat([c.constant(0.0, x.type).broadcast(x.shape[0], 1, *x.shape[2:])], 1)
        within = bias + alpha / float(size) * framed.take(places, 1).sum(1, keep=False)
    return x / within.pow(c.float32("beta"))
