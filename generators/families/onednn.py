"""What oneDNN Graph's operations do around a formula of ONNX's: transposed operands, channels last, biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arithmetic.binding import Formula
from ..arithmetic.gradients import gradients
from ..arithmetic.tape import Call, Value
from . import Shaping
from .pointwise import meet


def matmul(c: Call, formula: Formula, src: Value, weights: Value, bias: Value | None = None) -> Value:
    """The product of matrices, transposed as told, plus a bias that broadcasts to it.

    src: [P..., M, K] or [K], weights: [Q..., K, N] or [K]; the result is float32 or of their type. Source: oneDNN Graph
    MatMul.
    """
    c.require("types", c.output_types["dst"] in ("float32", src.type))
    modes = ("strict", "relaxed", "any", "f32", "s32", "f16")
    c.require("accumulation-known", c.attr("accumulation_mode") in modes)
    src = src.mT if c.attr("transpose_a") and src.rank > 1 else src
    weights = weights.mT if c.attr("transpose_b") and weights.rank > 1 else weights
    product: Value = formula(src.cast("float32"), weights.cast("float32"))
    if bias is None:
        return product
    c.require("bias-shape", meet(bias.shape, product.shape) and _spread(bias.shape, product.shape) == product.shape)
    return product + bias.cast("float32")


def _spread(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(len(a), len(b))
    padded = ((1,) * (rank - len(shape)) + shape for shape in (a, b))
    return tuple(e if d == 1 else d for d, e in zip(*padded, strict=True))


_PADDING = {"none": "NOTSET", "same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER", "valid": "VALID"}


def convolution(c: Call, formula: Formula, src: Value, weights: Value, bias: Value | None = None) -> Value:
    """The cross-correlation plus a bias; by default channels come last, and weights are spatial, input, output.

    src, dst: [N, spatial..., C], or [N, C, spatial...] for NCX; weights: [spatial..., C / groups, M], or
    [M, C / groups, spatial...] for OIX; bias: [M]. Source: oneDNN Graph Convolution.
    """
    last, words = c.attr("data_format") != "NCX", (c.attr("data_format"), c.attr("weights_format"))
    c.require("formats", words[0] in ("NCX", "NXC") and words[1] in ("OIX", "XIO"))
    way = _PADDING.get(str(c.attr("auto_pad")).lower())
    c.require("auto-pad", way is not None)
    begin, end = c.ints("pads_begin") or (), c.ints("pads_end") or ()
    c.require("pads-sign", min((*begin, *end), default=0) >= 0)
    x = src.transpose(0, src.rank - 1, *range(1, src.rank - 1)) if last else src
    w = (
        weights.transpose(weights.rank - 1, weights.rank - 2, *range(weights.rank - 2))
        if words[1] == "XIO"
        else weights
    )
    y: Value = formula(x, w, bias, auto_pad=way, pads=(*begin, *end) if way == "NOTSET" else None)
    return y.transpose(0, *range(2, y.rank), 1) if last else y


def channels_second(c: Call, x: Value) -> Value:
    """A tensor of the layout that data_format names, with channels second."""
    c.require("formats", c.attr("data_format") in ("NCX", "NXC"))
    return x if c.attr("data_format") == "NCX" else x.transpose(0, x.rank - 1, *range(1, x.rank - 1))


def as_told(c: Call, y: Value) -> Value:
    """A tensor with channels second in the layout that data_format names."""
    return y if c.attr("data_format") == "NCX" else y.transpose(0, *range(2, y.rank), 1)


def max_pool(c: Call, formula: Formula, src: Value) -> Value:
    """The largest element of each window. The page has zeros as padding; whether these compete is open.

    src, dst: [N, spatial..., C], or [N, C, spatial...] for NCX. Source: oneDNN Graph MaxPool.
    """
    x, framed, dilations = channels_second(c, src), framing(c), c.ints("dilations")
    pads = _sides(c, x.shape[2:], framed, dilations)
    if any(map(any, pads)) and c.open("padding") == "compete":
        for axis, sides in enumerate(pads, 2):
            before, after = (_zeros(c, x, axis, count) for count in sides)
            x = before.concat([x, after], axis)
        framed |= {"auto_pad": "NOTSET", "pads": (0,) * 2 * len(pads)}
    y, _ = formula(x, **framed, dilations=dilations)
    return as_told(c, y)


def _zeros(c: Call, x: Value, axis: int, count: int) -> Value:
    return c.constant(0.0, x.type).broadcast(*x.shape[:axis], count, *x.shape[axis + 1 :])


def _sides(
    c: Call, extents: tuple[int, ...], framed: Mapping[str, Any], dilations: tuple[int, ...] | None
) -> list[tuple[int, int]]:
    """The padding before and after each axis, by pads_begin and pads_end, or by auto_pad; empty if lists do not fit."""
    kernel, strides, pads = c.ints("kernel") or (), c.ints("strides") or (), framed["pads"] or ()
    apart = dilations or (1,) * len(extents)
    if len({len(extents), len(kernel), len(strides), len(apart)}) > 1 or min(pads, default=0) < 0:
        return []
    if framed["auto_pad"] == "NOTSET":
        return list(zip(pads[: len(extents)], pads[len(extents) :], strict=False))
    if framed["auto_pad"] == "VALID":
        return []
    totals = [
        max(0, (-(-extent // step) - 1) * step + (size - 1) * distance + 1 - extent)
        for extent, step, size, distance in zip(extents, strides, kernel, apart, strict=True)
    ]
    halves = [(total // 2, total - total // 2) for total in totals]
    return halves if framed["auto_pad"] == "SAME_UPPER" else [(more, less) for less, more in halves]


def avg_pool(c: Call, formula: Formula, src: Value) -> Value:
    """The mean of each window: of as many elements as the kernel has, or with exclude_pad of those inside src.

    src, dst: [N, spatial..., C], or [N, C, spatial...] for NCX. Source: oneDNN Graph AvgPool.
    """
    c.require("types", src.kind == "real")  # the mean of whole numbers would be rounded
    counted = {"count_include_pad": int(not c.attr("exclude_pad"))}
    y: Value = formula(channels_second(c, src), **framing(c), **counted)
    return as_told(c, y)


def max_pool_backward(c: Call, formula: Formula, src: Value, diff_dst: Value) -> Value:
    """The gradient of MaxPool: each element of diff_dst goes to the largest element of its window, one of several.

    src: as in MaxPool; diff_dst: the shape of its result; diff_src: that of src. Source: oneDNN Graph MaxPoolBackward.
    """
    c.require("types", src.kind == "real")
    y, _ = formula(channels_second(c, src), **framing(c), dilations=c.ints("dilations"))
    y = as_told(c, y)
    c.require("windows", y.shape == diff_dst.shape)
    return gradients(c, y, diff_dst, [src])[0]


def avg_pool_backward(c: Call, formula: Formula, diff_dst: Value, src_shape: Value | None = None) -> Value:
    """The gradient of AvgPool: each element of diff_dst is shared out among its window, as the mean is put together.

    diff_dst: the shape of AvgPool's result; src_shape, also as an attribute: the shape of diff_src. Source: oneDNN
    Graph AvgPoolBackward.
    """
    c.require("shape-given", src_shape is not None or c.sets("src_shape"))
    c.require("types", diff_dst.kind == "real")
    shape = c.ints("src_shape") or ()
    c.require("shape-rank", len(shape) == diff_dst.rank)
    src = c.constant(np.zeros(shape), diff_dst.type)
    counted = {"count_include_pad": int(not c.attr("exclude_pad"))}
    y = as_told(c, formula(channels_second(c, src), **framing(c), **counted))
    c.require("windows", y.shape == diff_dst.shape)
    return gradients(c, y, diff_dst, [src])[0]


def framing(c: Call) -> dict[str, Any]:
    """ONNX's attributes for auto_pad, pads_begin, pads_end and rounding_type, of pooling."""
    way = _PADDING.get(str(c.attr("auto_pad")).lower())
    c.require("auto-pad", way is not None)
    rounding = c.attr("rounding_type", "floor")
    c.require_if_stated("rounding-known", rounding in ("floor", "ceil"))
    begin, end = c.ints("pads_begin") or (), c.ints("pads_end") or ()
    c.require("per-axis", len(begin) == len(end))
    pads = (*begin, *end) if way == "NOTSET" else None
    return {"auto_pad": way, "pads": pads, "ceil_mode": int(rounding == "ceil")}


def batch_norm_inference(
    c: Call, formula: Formula, src: Value, gamma: Value, beta: Value, mean: Value, variance: Value
) -> Value:
    """(src - mean) / sqrt(variance + epsilon) * gamma + beta, for each channel.

    src, dst: [N, spatial..., C], or [N, C, spatial...] for NCX; the others: [C]. Source: oneDNN Graph
    BatchNormInference.
    """
    c.require("types", gamma.type in ("float32", *(("bfloat16",) if src.type == "bfloat16" else ())))
    c.require("epsilon-range", c.float32("epsilon") > 0.0)
    c.require("rank", src.rank > 1)
    y: Value = formula(channels_second(c, src), gamma, beta, mean, variance)
    return as_told(c, y)


def layer_norm(
    c: Call, src: Value, gamma: Value | None = None, beta: Value | None = None
) -> tuple[Value, Value, Value]:
    """(src - mean) / sqrt(variance + epsilon) * gamma + beta, the mean and the variance, over the last axes.

    gamma, beta: [C], the last dimension of src; mean, variance: the dimensions before begin_norm_axis. Source: oneDNN
    Graph LayerNorm.
    """
    axis = c.attr("begin_norm_axis")
    c.require("axis-range", -src.rank <= axis < src.rank)
    c.require("affine", not c.attr("use_affine") or (gamma is not None and beta is not None))
    c.require("statistics", not c.attr("keep_stats") or (c.wants("mean") and c.wants("variance")))
    c.require(
        "per-channel", all(parameter.shape == src.shape[-1:] for parameter in (gamma, beta) if parameter is not None)
    )
    axes, wide = range(axis % src.rank, src.rank), src.cast("float32")
    mean = wide.mean(axes)
    off = wide - mean
    raw = c.open("algorithm") == "raw-moments"
    variance = (wide * wide).mean(axes) - mean * mean if raw else (off * off).mean(axes)
    inverse = 1.0 / (variance + c.float32("epsilon")).sqrt()
    y = off * inverse
    if gamma is not None and beta is not None:
        scale, bias = gamma.cast("float32"), beta.cast("float32")
        y = (y * scale + bias).either(off * (inverse * scale) + bias)
    kept = src.shape[: axes[0]]
    return y, mean.reshape(*kept), variance.reshape(*kept)


def sources(shaping: Shaping) -> tuple[int, ...]:
    """[N, S..., C g], or [N, C g, S...] for NCX."""
    n, channels, spatial = shaping.extent("N"), shaping.extent("C") * shaping.extent("g"), shaping.symbols["S"]
    assert isinstance(spatial, tuple)
    return (n, channels, *spatial) if shaping.attr("data_format") == "NCX" else (n, *spatial, channels)


def filters(shaping: Shaping) -> tuple[int, ...]:
    """[K..., C, M g], or [M g, C, K...] for OIX."""
    m, channels, kernel = shaping.extent("M") * shaping.extent("g"), shaping.extent("C"), shaping.symbols["K"]
    assert isinstance(kernel, tuple)
    return (m, channels, *kernel) if shaping.attr("weights_format") == "OIX" else (*kernel, channels, m)


def pooled_sources(shaping: Shaping) -> tuple[int, ...]:
    """[N, S..., C], or [N, C, S...] for NCX."""
    n, channels, spatial = shaping.extent("N"), shaping.extent("C"), shaping.symbols["S"]
    assert isinstance(spatial, tuple)
    return (n, channels, *spatial) if shaping.attr("data_format") == "NCX" else (n, *spatial, channels)


def pooled(shaping: Shaping) -> tuple[int, ...]:
    """The shape of a pooled tensor, without auto_pad."""
    n, channels, spatial = shaping.extent("N"), shaping.extent("C"), shaping.symbols["S"]
    assert isinstance(spatial, tuple)
    names = ("kernel", "strides", "pads_begin", "pads_end", "dilations")
    kernel, strides, begin, end, apart = (numbers(shaping.levels.get(name), len(spatial)) for name in names)
    windows = []
    for extent, size, step, before, after, distance in zip(spatial, kernel, strides, begin, end, apart, strict=True):
        windows.append((extent + before + after - (size - 1) * distance - 1) // step + 1)
    return (n, channels, *windows) if shaping.attr("data_format") == "NCX" else (n, *windows, channels)


def numbers(level: object, count: int) -> tuple[int, ...]:
    """Numbers of a level: as they are, or one number for each axis, `2 x r-2`; without a level, ones."""
    if not isinstance(level, tuple):
        return (1,) * count
    return tuple(
        int(number)
        for entry in level
        for number in ([entry] if isinstance(entry, int) else [str(entry).split()[0]] * count)
    )
