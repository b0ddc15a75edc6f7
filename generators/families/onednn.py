"""What oneDNN Graph's operations do around a formula of ONNX's: transposed operands, channels last, biases."""

from __future__ import annotations

from ..arithmetic.binding import Formula
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
    whole = ((1,) * (rank - len(one)) + one for one in (a, b))
    return tuple(e if d == 1 else d for d, e in zip(*whole, strict=True))


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
    c.require("per-channel", all(one.shape == src.shape[-1:] for one in (gamma, beta) if one is not None))
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
