"""oneDNN Graph's normalizations whose statistics come from src: of a batch, of groups of channels, by mean squares."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...cases.elements import Array
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from . import Shaping
from .onednn import as_told, channels_second, pooled_sources
from .pointwise import meet

_ROUNDING_OF_MEANS = 2.0**-22
"""A mean that is off by so small a part of itself is still that of src: it is a number of float32."""


def rms_norm(c: Call, src: Value, gamma: Value | None = None) -> Value:
    """The element over the root of the mean square plus epsilon, times gamma.

    The page's formula has the root of the root mean square, plus epsilon, though its name means the other one.
    src: any shape; gamma: a shape that broadcasts to it. Source: oneDNN Graph RMSNorm.
    """
    axis = c.attr("begin_norm_axis")
    c.require("axis-range", -src.rank <= axis < src.rank)
    c.require("epsilon-range", c.float32("epsilon") > 0.0)
    c.require("types", gamma is None or gamma.type in ("float32", src.type))
    wide = src.cast("float32")
    square = (wide * wide).mean(range(axis % src.rank, src.rank))
    inner = square if c.open("root") == "of-mean-square" else square.sqrt()
    y = wide * (1.0 / (inner + c.float32("epsilon")).sqrt())
    if gamma is None:
        return y
    fits = gamma.rank <= src.rank and meet(src.shape, gamma.shape)
    stretched = any(e not in (1, d) for d, e in zip(src.shape[::-1], gamma.shape[::-1], strict=False))
    c.require("gamma-shape", fits and not stretched)
    return y * gamma.cast("float32")


def _moments(c: Call, x: Value, axes: Sequence[int]) -> tuple[Value, Value, Value]:
    """The mean, the differences from it, and the variance over axes, which stay with extent 1."""
    mean = x.mean(axes)
    off = x - mean
    raw = c.open("algorithm") == "raw-moments"
    return mean, off, (x * x).mean(axes) - mean * mean if raw else (off * off).mean(axes)


def group_norm(
    c: Call, src: Value, gamma: Value | None = None, beta: Value | None = None
) -> tuple[Value, Value, Value]:
    """(src - mean) / sqrt(variance + epsilon) for each group of channels, times gamma, plus beta; mean and variance.

    src, dst: [N, spatial..., C], or [N, C, spatial...] for NCX; gamma, beta: [C]; mean, variance: [N, groups]. Source:
    oneDNN Graph GroupNorm.
    """
    x = channels_second(c, src).cast("float32")
    groups, channels = c.attr("groups"), x.shape[1]
    c.require("groups", groups > 0 and channels % groups == 0)
    c.require("affine", not c.attr("use_affine") or (gamma is not None and beta is not None))
    c.require("statistics", not c.attr("keep_stats") or (c.wants("mean") and c.wants("variance")))
    c.require(
        "per-channel", all(parameter.shape == (channels,) for parameter in (gamma, beta) if parameter is not None)
    )
    grouped = x.reshape(x.shape[0], groups, channels // groups, math.prod(x.shape[2:]))
    mean, off, variance = _moments(c, grouped, (2, 3))
    y = off * (1.0 / (variance + c.float32("epsilon")).sqrt())
    if gamma is not None and beta is not None:
        scale, bias = (
            parameter.cast("float32").reshape(1, groups, channels // groups, 1) for parameter in (gamma, beta)
        )
        y = y * scale + bias
    kept = (x.shape[0], groups)
    return as_told(c, y.reshape(*x.shape)), mean.reshape(*kept), variance.reshape(*kept)


def batch_norm_training(
    c: Call, src: Value, mean: Value, variance: Value, gamma: Value | None = None, beta: Value | None = None
) -> tuple[Value, Value, Value, Value, Value]:
    """dst, running mean and variance, and the batch's own: normalized by the batch's mean and variance.

    How momentum mixes the running statistics with the batch's, the page does not say. src, dst: [N, spatial..., C], or
    [N, C, spatial...] for NCX; the others: [C]. Source: oneDNN Graph BatchNormForwardTraining.
    """
    c.require("types", mean.type in ("float32", *(("bfloat16",) if src.type == "bfloat16" else ())))
    c.require("epsilon-range", c.float32("epsilon") > 0.0)
    c.require("rank", src.rank > 1)
    c.require("together", (gamma is None) == (beta is None))
    x = channels_second(c, src).cast("float32")
    channels, shape = (x.shape[1],), (1, x.shape[1], *(1,) * (x.rank - 2))
    given = (mean, variance, gamma, beta)
    c.require("per-channel", all(parameter.shape == channels for parameter in given if parameter is not None))
    own, off, spread = _moments(c, x, (0, *range(2, x.rank)))
    y = off * (1.0 / (spread + c.float32("epsilon")).sqrt())
    if gamma is not None and beta is not None:
        y = y * gamma.cast("float32").reshape(*shape) + beta.cast("float32").reshape(*shape)
    own, spread = own.reshape(*channels), spread.reshape(*channels)
    count = x.size // max(1, channels[0])
    later = spread
    if count > 1 and c.open("unbiased") == "sample":
        later = spread * (count / (count - 1))
    old = mean.cast("float32"), variance.cast("float32")
    if c.attr("momentum") is None:
        c.open("momentum-absent")
        every = c.constant(True, "bool").broadcast(*channels)
        running = tuple(statistic.undefined(every) for statistic in old)
    else:
        share = c.float32("momentum")
        share = share if c.open("momentum") == "of-the-old" else 1.0 - share
        running = tuple(a * share + b * (1.0 - share) for a, b in zip(old, (own, later), strict=True))
    return as_told(c, y), running[0], running[1], own, spread


def batch_norm_training_backward(
    c: Call, src: Value, diff_dst: Value, mean: Value, variance: Value, gamma: Value | None = None
) -> tuple[Value, Value, Value]:
    """The gradients of src, gamma and beta, whose batch has the mean and variance that are inputs.

    With n the normalized src and g the gradient times gamma: (g - mean(g) - n mean(g n)) / sqrt(variance + epsilon),
    and the sums of the gradient times n, and of the gradient. src, diff_dst: [N, spatial..., C], or [N, C, spatial...]
    for NCX; the others: [C]. Source: oneDNN Graph BatchNormForwardTraining and BatchNormTrainingBackward.
    """
    c.require("types", mean.type in ("float32", *(("bfloat16",) if src.type == "bfloat16" else ())))
    c.require("epsilon-range", c.float32("epsilon") > 0.0)
    c.require("rank", src.rank > 1)
    c.require("same-shape", src.shape == diff_dst.shape)
    c.require("both-outputs", c.wants("diff_gamma") == c.wants("diff_beta"))
    x, g = (channels_second(c, operand).cast("float32") for operand in (src, diff_dst))
    channels, shape = (x.shape[1],), (1, x.shape[1], *(1,) * (x.rank - 2))
    given = (mean, variance, gamma)
    c.require("per-channel", all(parameter.shape == channels for parameter in given if parameter is not None))
    mu, spread = (statistic.cast("float32").reshape(*shape) for statistic in (mean, variance))
    axes = (0, *range(2, x.rank))
    inverse = 1.0 / (spread + c.float32("epsilon")).sqrt()
    normal = (x - mu) * inverse
    scaled = g if gamma is None or not c.wants("diff_gamma") else g * gamma.cast("float32").reshape(*shape)
    own = x.mean(axes)
    apart = (own - mu).abs() > mu.abs() * _ROUNDING_OF_MEANS
    # the variance changes with the mean, too, unless the mean is that of src
    around = normal - normal.mean(axes) if c.open("other-mean", apart) == "the-variance-s-too" else normal
    of_src = (scaled - scaled.mean(axes) - around * (scaled * normal).mean(axes)) * inverse
    return as_told(c, of_src), (g * normal).sum(axes, keep=False), g.sum(axes, keep=False)


def sources(shaping: Shaping) -> tuple[int, ...]:
    """[N, S..., C], or [N, C, S...] for NCX."""
    return pooled_sources(shaping)


def layer_norm_backward(
    c: Call,
    src: Value,
    diff_dst: Value,
    mean: Value,
    variance: Value,
    gamma: Value | None = None,
    beta: Value | None = None,
) -> tuple[Value, Value, Value]:
    """The gradients of src, gamma and beta.

    With n the normalized src and g the gradient times gamma: (g - mean(g) - n mean(g n)) / sqrt(variance + epsilon),
    and the sums of the gradient times n, and of the gradient.

    mean, variance: those of src, with its dimensions before begin_norm_axis; gamma, beta: [C], the last dimension.
    Source: oneDNN Graph LayerNorm and LayerNormBackward.
    """
    axis = c.attr("begin_norm_axis")
    c.require("axis-range", -src.rank <= axis < src.rank)
    c.require("same-shape", src.shape == diff_dst.shape)
    axes = range(axis % src.rank, src.rank)
    kept = src.shape[: axes[0]]
    c.require("statistics", mean.shape == variance.shape == kept)
    c.require("affine", not c.attr("use_affine") or (gamma is not None and beta is not None))
    c.require("affine-outputs", not c.attr("use_affine") or (c.wants("diff_gamma") and c.wants("diff_beta")))
    c.require(
        "per-channel", all(parameter.shape == src.shape[-1:] for parameter in (gamma, beta) if parameter is not None)
    )
    shape = (*kept, *(1 for _ in axes))
    x, g, mu, spread = (operand.cast("float32") for operand in (src, diff_dst, mean, variance))
    inverse = 1.0 / (spread.reshape(*shape) + c.float32("epsilon")).sqrt()
    normal = (x - mu.reshape(*shape)) * inverse
    scaled = g if gamma is None else g * gamma.cast("float32")
    of_src = (scaled - scaled.mean(axes) - normal * (scaled * normal).mean(axes)) * inverse
    outer = range(src.rank - 1)
    return of_src, (g * normal).sum(outer, keep=False), g.sum(outer, keep=False)


def statistics(shaping: Shaping) -> tuple[int, ...]:
    """The dimensions of src before begin_norm_axis."""
    extents, axis = shaping.symbols["d"], shaping.attr("begin_norm_axis")
    assert isinstance(extents, tuple)
    assert isinstance(axis, int)
    return extents[: axis % len(extents)]


def means(drawing: Drawing) -> Array:
    """The means of src from begin_norm_axis on, as LayerNorm has them."""
    x, axes = _lines_of_src(drawing)
    return np.asarray(x.mean(axes).reshape(len(x), -1))


def variances(drawing: Drawing) -> Array:
    """The variances of src from begin_norm_axis on, as LayerNorm has them."""
    x, axes = _lines_of_src(drawing)
    return np.asarray(x.var(axes).reshape(len(x), -1))


def batch_means(drawing: Drawing) -> Array:
    """The means of the channels of src."""
    x, axes = _channels_of_src(drawing)
    return np.asarray(x.mean(axes))


def batch_variances(drawing: Drawing) -> Array:
    """The variances of the channels of src."""
    x, axes = _channels_of_src(drawing)
    return np.asarray(x.var(axes))


def _channels_of_src(drawing: Drawing) -> tuple[Array, tuple[int, ...]]:
    x = np.asarray(drawing.values["src"], np.float64)
    channel = 2 if drawing.attributes.get("data_format") == "NCX" else x.ndim - 1
    return x, tuple(axis for axis in range(1, x.ndim) if axis != channel)


def _lines_of_src(drawing: Drawing) -> tuple[Array, tuple[int, ...]]:
    x = np.asarray(drawing.values["src"], np.float64)
    axis = int(drawing.attributes.get("begin_norm_axis", -1))
    rank = x.ndim - 1
    return x, tuple(range(axis % rank + 1, rank + 1))
