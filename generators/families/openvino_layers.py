"""OpenVINO's layers of neural networks: pooling, convolutions, normalizations and quantization."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ...cases.elements import Array
from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from .openvino import AUTO_PAD, WINDOWED, broadcast_rule, convolution, padding, stretches


def avg_pool(c: Call, formula: Formula, data: Value) -> Value:
    """The mean of each window; of its elements in data, or unless exclude-pad with the zeros of the padding.

    data: [N, C, spatial...]; result: [N, C, windows...]. What a window has beyond the padding counts if the silence
    overhang says so. Source: OpenVINO AvgPool-1, 14 and 16.
    """
    c.require("rank", data.rank in WINDOWED)
    begin, end = c.ints("pads_begin") or (), c.ints("pads_end") or ()
    kernel, strides, dilations = c.ints("kernel") or (), c.ints("strides") or (), c.ints("dilations")
    dilations = dilations or (1,) * (data.rank - 2)
    c.require("per-axis", {len(numbers) for numbers in (kernel, strides, dilations, begin, end)} == {data.rank - 2})
    c.require("pads-range", min(*begin, *end) >= 0)
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    frame = [padding(c, *row) for row in zip(data.shape[2:], spans, strides, begin, end, strict=True)]
    real = data.cast("float64") if data.kind == "int" else data
    if not c.attr("exclude-pad"):
        zeros = _zeros(c, frame)
        real = real.pad(((0, 0), (0, 0), *zeros), 0)
        frame = [(before - own, after - more) for (before, after), (own, more) in zip(frame, zeros, strict=True)]
    y: Value = formula(real, pads=(*(before for before, _ in frame), *(after for _, after in frame)))
    if data.kind != "int":
        return y
    way = c.open("integer-rounding", ~y.equal(y.trunc()))
    rounded = {"truncate": y.trunc, "floor": y.floor, "nearest-even": y.rint, "nearest-away": y.rint_away}[way]()
    return rounded.cast(data.type)


def _zeros(c: Call, frame: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """The numbers of zeros around data that count as elements of windows, before and after each axis."""
    way = c.attr("auto_pad")
    if way.startswith("same"):
        return frame
    begin, end = c.ints("pads_begin") or (), c.ints("pads_end") or ()
    stated = [(0, 0)] * len(frame) if way == "valid" else list(zip(begin, end, strict=True))
    if stated == list(frame):
        return frame
    return frame if c.open("overhang") == "counted" else stated


def group_convolution(c: Call, formula: Formula, data: Value, filters: Value) -> Value:
    """The cross-correlation of each group of channels with its own filters.

    data: [N, G C, spatial...]; filters: [G, M, C, kernel...]; result: [N, G M, spatial...]. Source: OpenVINO
    GroupConvolution-1.
    """
    c.require("rank", data.rank in WINDOWED and filters.rank == data.rank + 1)
    groups, m, channels, *kernel = filters.shape
    c.require("channels", data.shape[1] == groups * channels)
    merged = filters.reshape(groups * m, channels, *kernel)
    return convolution(c, functools.partial(formula, group=groups), data, merged)


def convolution_backprop(c: Call, formula: Formula, data: Value, filters: Value, _: Value | None = None) -> Value:
    """The transposed convolution: copies of filters, strides apart, each times an element of data.

    data: [N, C, spatial...]; filters: [C, M, kernel...]; result: [N, M, spatial...]; output_shape may give its spatial
    shape. Source: OpenVINO ConvolutionBackpropData-1.
    """
    c.require("rank", data.rank in WINDOWED and filters.rank == data.rank)
    c.require("channels", data.shape[1] == filters.shape[0])
    return _backward(c, formula, data, filters, 1)


def group_convolution_backprop(c: Call, formula: Formula, data: Value, filters: Value, _: Value | None = None) -> Value:
    """The transposed convolution of each group of channels with its own filters.

    data: [N, G C, spatial...]; filters: [G, C, M, kernel...]; result: [N, G M, spatial...]. Source: OpenVINO
    GroupConvolutionBackpropData-1.
    """
    c.require("rank", data.rank in WINDOWED and filters.rank == data.rank + 1)
    groups, channels, *rest = filters.shape
    c.require("channels", data.shape[1] == groups * channels)
    return _backward(c, formula, data, filters.reshape(groups * channels, *rest), groups)


def _backward(c: Call, formula: Formula, data: Value, filters: Value, groups: int) -> Value:
    """The part of the whole transposed convolution that pads or output_shape leave; beyond it there are zeros."""
    k = data.rank - 2
    way, wanted = c.attr("auto_pad"), c.ints("output_shape")
    c.require("auto-pad", way is None or way in AUTO_PAD)
    names = ("strides", "dilations", "pads_begin", "pads_end")
    strides, dilations, begin, end = (c.ints(name) or () for name in names)
    more = c.ints("output_padding") or (0,) * k
    c.require("per-axis", all(len(numbers) == k for numbers in (strides, dilations, begin, end, more)))
    c.require("per-axis", wanted is None or len(wanted) == k)
    result: Value = formula(data, filters, group=groups)
    if wanted is None and way in ("same_upper", "same_lower") and c.open("same-pads") == "as-data":
        wanted = data.shape[2:]
    for at in range(k):
        extent = result.shape[2 + at]
        first, last = (begin[at], end[at]) if way in (None, "explicit") else (0, 0)
        size = extent - first - last + more[at]
        if wanted is not None:
            size = wanted[at]
            first = _before(c, extent - size + more[at], str(way))
        c.require("extents", size > 0)
        result = _part(result, 2 + at, first, size)
    return result


def _before(c: Call, total: int, way: str) -> int:
    """What is cut off the start of an axis, if that much is cut off in all."""
    less, rest = total // 2, total - total // 2
    if less == rest or way not in ("same_upper", "same_lower"):
        return less
    upper = way == "same_upper"
    return (rest if upper else less) if c.open("odd-padding") == "formula" else (less if upper else rest)


def _part(x: Value, axis: int, first: int, size: int) -> Value:
    """The elements of an axis from `first` on, with zeros for those before its start or after its end."""
    before, after = max(0, -first), max(0, first + size - x.shape[axis])
    framed = x.pad(tuple((before, after) if i == axis else (0, 0) for i in range(x.rank)), 0)
    return framed[(slice(None),) * axis + (slice(first + before, first + before + size),)]


def batch_norm(
    c: Call, formula: Formula, data: Value, gamma: Value, beta: Value, mean: Value, variance: Value
) -> Value:
    """(data - mean) / sqrt(variance + epsilon) * gamma + beta, for each channel.

    data: [N, C, D...]; the others: [C]. Source: OpenVINO BatchNormInference-1 and 5.
    """
    c.require_if_stated("rank", data.rank >= 2)
    c.require_if_stated("channels", data.shape[1] >= 1)
    c.require_if_stated("epsilon-range", c.attr("epsilon") >= 0)
    result: Value = formula(data, gamma, beta, mean, variance)
    return result


def group_norm(c: Call, formula: Formula, data: Value, scale: Value, bias: Value) -> Value:
    """(data - mean) / sqrt(variance + epsilon) for each group of channels, then times scale, plus bias.

    data: [N, C, D...]; scale, bias: [C]. Source: OpenVINO GroupNormalization-12.
    """
    c.require("epsilon-range", c.attr("epsilon") > 0)
    result: Value = formula(data, scale, bias)
    return result


def mvn(c: Call, data: Value, _: Value | None = None) -> Value:
    """Data less its mean over axes; with normalize_variance divided by the standard deviation.

    data: floats; result: the same shape. Source: OpenVINO MVN-1 and 6.
    """
    axes = _mvn_axes(c, data.rank)
    c.require("axes-range", all(-data.rank <= axis < data.rank for axis in axes))
    c.require("eps-range", c.attr("eps") > 0)
    inside = c.attr("eps_mode", "inside_sqrt")
    c.require_if_stated("eps-mode", inside in ("inside_sqrt", "outside_sqrt"))
    if not data.size:
        return data
    mean = data.mean(axes)
    off = data - mean
    if not c.attr("normalize_variance"):
        return off
    if c.open("variance") == "sum":
        spread = (off * off).sum(axes)
    elif c.open("algorithm") == "raw-moments":
        spread = (data * data).mean(axes) - mean * mean
    else:
        spread = (off * off).mean(axes)
    eps = c.float32("eps")
    return _over(off, (spread + eps).sqrt() if inside == "inside_sqrt" else spread.sqrt() + eps)


def _mvn_axes(c: Call, rank: int) -> tuple[int, ...]:
    """The axes of the statistics: an input or an attribute, or those after the batch or the channels."""
    if "one-of-two" not in c.clauses:
        return c.ints("axes") or ()
    across, listed = c.attr("across_channels"), c.ints("reduction_axes")
    c.require("one-of-two", (across is None) != (listed is None))
    return listed if listed is not None else tuple(range(1 if across else 2, rank))


def normalize_l2(c: Call, data: Value, _: Value) -> Value:
    """Data divided by the root of its sum of squares over axes, to which eps is added, or which eps limits.

    data: floats, any shape; result: the same shape. Source: OpenVINO NormalizeL2-1.
    """
    axes, mode = c.ints("axes") or (), c.attr("eps_mode")
    c.require("axes-range", all(-data.rank <= axis < data.rank for axis in axes))
    c.require("axes-unique", len({axis % max(data.rank, 1) for axis in axes}) == len(axes))
    c.require("eps-range", c.attr("eps") > 0)
    c.require("eps-mode", mode in ("add", "max"))
    squares, eps = data * data, c.constant(c.float32("eps"), data.type)
    total = squares.sum(axes) if axes else squares
    if mode == "add":
        within = total + eps
    else:
        within = total.maximum(eps, nan="ignore" if c.open("nan", total.isnan()) == "ignored" else "propagate")
    y = _over(data, within.sqrt())
    if not axes and c.open("no-axes") == "one":
        return y.where(data.equal(0.0), 1.0)
    return y


def _over(x: Value, by: Value) -> Value:
    """A quotient, or a product with a reciprocal, which may be inexact even if the quotient is exact."""
    return (x / by).either(x * (1.0 / by))


def lrn(c: Call, data: Value, _: Value) -> Value:
    """Data / (bias + alpha / size^k * Σ data²)^beta, the sum over a region of `size` along each of k axes.

    data: floats, any shape; result: the same shape. Source: OpenVINO LRN-1.
    """
    size, axes = c.attr("size"), c.ints("axes") or ()
    c.require("axes-range", all(-data.rank <= axis < data.rank for axis in axes))
    c.require("size-range", size > 0)
    c.require("beta-range", c.attr("beta") > 0)
    if min(axes, default=0) < 0:
        c.open("axes-negative")
    before, after = size // 2, size // 2
    if size % 2 == 0:
        way = c.open("even-size")
        before, after = before - (way == "more-after"), after - (way == "more-before")
    seen = data * data
    for at, axis in enumerate(sorted(axis % data.rank for axis in axes)):
        extent, dimension = data.shape[axis], axis + at
        places = np.arange(extent) + np.arange(-before, after + 1)[:, None]
        places = np.where((places >= 0) & (places < extent), places, extent)
        none = tuple((0, 1 if i == dimension else 0) for i in range(seen.rank))
        seen = seen.pad(none, 0).take(places, dimension)
    total = seen.sum([axis + at for at, axis in enumerate(sorted(axis % data.rank for axis in axes))], keep=False)
    alpha, bias = (c.constant(c.float32(name), data.type) for name in ("alpha", "bias"))
    return data / (bias + alpha / float(size ** len(axes)) * total).pow(c.float32("beta"))


def fake_quantize(c: Call, x: Value, low: Value, high: Value, least: Value, most: Value) -> Value:
    """The element rounded to one of `levels` steps of the input range, and mapped to the output range.

    x: floats; low, high: the input range; least, most: the output range; all broadcast to x. Source: OpenVINO
    FakeQuantize-1.
    """
    rule, levels, limits = broadcast_rule(c), c.attr("levels"), (low, high, least, most)
    c.require("levels-range", levels >= 2)
    c.require("no-broadcast", rule != "none" or all(v.shape == x.shape for v in limits))
    c.require("broadcast", all(stretches(v.shape, x.shape) for v in limits))
    steps, width = float(levels - 1), most - least
    shares = ((x - low) / (high - low) * steps).either(x * (steps / (high - low)) - low * (steps / (high - low)))
    half = (shares * 2.0).equal((shares * 2.0).rint()) & ~shares.equal(shares.rint())
    rounded = shares.rint() if c.open("ties", half) == "nearest-even" else shares.rint_away()
    scale = width / steps
    zero = least / scale
    y = (rounded / steps * width + least).either(rounded * scale + least).either((rounded + zero) * scale)
    above, top = x > low.maximum(high), most.either(steps * scale + least).either((steps + zero) * scale)
    below, bottom = x <= low.minimum(high), least.either(zero * scale)
    bottom, top = (v.broadcast(*x.shape) for v in (bottom, top))
    y = bottom.where(below, top.where(above, y))
    return y.undefined(x.isnan(), "nan")


def lows(drawing: Drawing) -> Array:
    """Lower ends of ranges: multiples of 1/8 from -2 to -1/2."""
    return drawing.draw.between(-16, -4, drawing.size) / 8.0


def highs(drawing: Drawing) -> Array:
    """Upper ends of ranges: multiples of 1/8 from 1/2 to 3."""
    return drawing.draw.between(4, 24, drawing.size) / 8.0


def same_as_low(drawing: Drawing) -> Array:
    """The lower ends themselves, of ranges without a width."""
    return np.resize(drawing.values["input_low"].reshape(-1), drawing.size)
