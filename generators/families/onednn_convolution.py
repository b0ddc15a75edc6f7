"""oneDNN Graph's transposed convolutions, and the gradients of convolutions, by ONNX's Conv and ConvTranspose.

A convolution takes a wide tensor, [N, W, extents...], to a narrow one, [N, R, places...]; weights are here
[R, W / groups, kernel...]. Its gradients, and the transposed convolution with its own, connect the same three tensors.
"""

from __future__ import annotations

from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value
from . import Shaping
from .onednn import as_told, channels_second, numbers

_WAYS = ("none", "same_upper", "same_lower", "valid")

Numbers = tuple[int, ...]


def conv_transpose(c: Call, formula: Formula, src: Value, weights: Value, bias: Value | None = None) -> Value:
    """The gradient of Convolution for its source, with src as the gradient of its result; plus a bias.

    src: [N, spatial..., R], dst: [N, spatial..., W], or channels second for NCX; weights: one of the layouts of
    `_order`; bias: [W]. Source: oneDNN Graph ConvTranspose.
    """
    x, groups = channels_second(c, src), c.attr("groups")
    w = _arranged(weights, _order(c))
    w = _as_convolution_s(w, groups) if _noted(c, w.shape[:2], x.shape[1], None) else w
    strides, spans, more = _steps(c, w.shape[2:])
    pads = _paddings(c, len(spans))
    if pads is None:
        largest = max(strides, default=1) == 1 or c.open("same-extents") == "largest"
        places = strides if largest else (1,) * len(strides)  # of dst, for the last place of src
        pads = _halves([max(0, span - count) for span, count in zip(spans, places, strict=True)], _upper(c))
    if any(extra >= step for extra, step in zip(more, strides, strict=True)):
        c.open("output-padding-large")
    end = [after - extra for after, extra in zip(pads[1], more, strict=True)]
    y: Value = formula(x, w, bias, pads=(*pads[0], *end))
    return as_told(c, y)


def convolution_backward_data(
    c: Call, formula: Formula, diff_dst: Value, weights: Value, dst_shape: Value | None = None
) -> Value:
    """The gradient of Convolution for its source, of the shape dst_shape, an input or an attribute.

    diff_dst: [N, spatial..., R], diff_src: [N, spatial..., W], or channels second for NCX; weights: as in Convolution.
    Source: oneDNN Graph ConvolutionBackwardData.
    """
    shape = _given_shape(c, "dst_shape", dst_shape, diff_dst.rank)
    g, w, groups = channels_second(c, diff_dst), _arranged(weights, _plain_order(c)), c.attr("groups")
    wide = (shape[0], *shape[2:]) if c.attr("data_format") == "NCX" else shape[:-1]
    channels = shape[1] if c.attr("data_format") == "NCX" else shape[-1]
    strides, spans, more = _steps(c, w.shape[2:])
    pads = _paddings(c, len(spans))
    if pads is None:
        axes = zip(g.shape[2:], strides, spans, wide[1:], more, strict=True)
        pads = _halves([max(0, s * (n - 1) + span - e + extra) for n, s, span, e, extra in axes], not _upper(c, None))
    c.require("channels", channels == w.shape[1] * groups)
    c.require("windows", wide[0] == g.shape[0] and g.shape[2:] == _places(wide[1:], pads, spans, strides))
    axes = zip(g.shape[2:], strides, spans, wide[1:], pads[0], strict=True)
    end = [step * (n - 1) + span - before - extent for n, step, span, extent, before in axes]
    y: Value = formula(g, w, None, pads=(*pads[0], *end))
    return as_told(c, y)


def convolution_backward_weights(
    c: Call, formula: Formula, src: Value, diff_dst: Value, weights_shape: Value | None = None
) -> Value:
    """The gradient of Convolution for its weights, of the shape weights_shape, an input or an attribute.

    src: [N, spatial..., W], diff_dst: [N, spatial..., R], or channels second for NCX. Source: oneDNN Graph
    ConvolutionBackwardWeights.
    """
    shape, order = _given_shape(c, "weights_shape", weights_shape, src.rank), _plain_order(c)
    x, g = channels_second(c, src), channels_second(c, diff_dst)
    return _returned(_of_weights(c, formula, x, g, _picked(shape, order)), order)


def conv_transpose_backward_data(c: Call, formula: Formula, diff_dst: Value, weights: Value) -> Value:
    """The gradient of ConvTranspose for its source: the convolution of diff_dst.

    diff_dst: [N, spatial..., W], diff_src: [N, spatial..., R], or channels second for NCX; weights: as in
    ConvTranspose. Source: oneDNN Graph ConvTransposeBackwardData.
    """
    g, groups = channels_second(c, diff_dst), c.attr("groups")
    w = _arranged(weights, _order(c))
    w = _as_convolution_s(w, groups) if _noted(c, w.shape[:2], None, g.shape[1]) else w
    strides, spans, more = _steps(c, w.shape[2:])
    pads = _paddings(c, len(spans)) or _same(c, g.shape[2:], spans, strides)
    places = _places(g.shape[2:], pads, spans, strides, more)
    c.require("windows", min(places) >= 0)
    _leftover(c, g.shape[2:], w.shape[2:])
    y: Value = formula(g, w, None, pads=(*pads[0], *pads[1]))
    return as_told(c, y[(slice(None), slice(None), *(slice(0, n) for n in places))])


def conv_transpose_backward_weights(
    c: Call, formula: Formula, src: Value, diff_dst: Value, weights_shape: Value | None = None
) -> Value:
    """The gradient of ConvTranspose for its weights, of the shape weights_shape, an input or an attribute.

    src: [N, spatial..., R], diff_dst: [N, spatial..., W], or channels second for NCX. Source: oneDNN Graph
    ConvTransposeBackwardWeights.
    """
    shape, order, groups = _given_shape(c, "weights_shape", weights_shape, src.rank), _order(c), c.attr("groups")
    narrow, wide = channels_second(c, src), channels_second(c, diff_dst)
    inputs, outputs, *kernel = _picked(shape, order)
    _leftover(c, wide.shape[2:], tuple(kernel))
    if not _noted(c, (inputs, outputs), narrow.shape[1], wide.shape[1]):
        return _returned(_of_weights(c, formula, wide, narrow, (inputs, outputs, *kernel)), order)
    gradient = _of_weights(c, formula, wide, narrow, (inputs * groups, outputs // groups, *kernel))
    gradient = gradient.reshape(groups, inputs, outputs // groups, *kernel)
    return _returned(gradient.transpose(1, 0, *range(2, gradient.rank)).reshape(inputs, outputs, *kernel), order)


def _of_weights(c: Call, formula: Formula, wide: Value, narrow: Value, shape: Numbers) -> Value:
    """The gradient for weights, [R, W / groups, kernel...]: sums of products over the batch and the places.

    It is a convolution of the wide tensor with the narrow one, in which batch and channels have changed places, and
    strides and dilations, too.
    """
    groups, (rows, per, *kernel) = c.attr("groups"), shape
    strides, spans, more = _steps(c, tuple(kernel))
    pads = _paddings(c, len(spans)) or _same(c, wide.shape[2:], spans, strides)
    c.require("groups", groups > 0 and rows % groups == 0)
    c.require("channels", wide.shape[1] == per * groups and narrow.shape[1] == rows)
    places = _places(wide.shape[2:], pads, spans, strides, more)
    c.require("windows", wide.shape[0] == narrow.shape[0] and narrow.shape[2:] == places)
    batch, extents = wide.shape[0], wide.shape[2:]
    turned = wide.reshape(batch, groups, per, *extents).transpose(2, 1, 0, *range(3, 3 + len(extents)))
    y: Value = formula(
        turned.reshape(per, groups * batch, *extents),
        narrow.transpose(1, 0, *range(2, narrow.rank)),
        None,
        pads=(*pads[0], *pads[1]),
        strides=c.ints("dilations"),
        dilations=strides,
    )
    y = y[(slice(None), slice(None), *(slice(0, extent) for extent in kernel))]
    return y.transpose(1, 0, *range(2, y.rank))


def _plain_order(c: Call) -> Numbers:
    """The axes of R and of W / groups in the weights of a convolution; the others are the kernel's."""
    orders = {"OIX": (0, 1), "XIO": (-1, -2)}
    c.require("formats", c.attr("weights_format") in orders)
    return orders[c.attr("weights_format")]


def _order(c: Call) -> Numbers:
    """The axes of R and of W / groups in the weights of a transposed convolution; the others are the kernel's.

    The page's table of attributes has OIX and XIO, its note describes IOX and XOI.
    """
    orders, word = {"IOX": (0, 1), "XOI": (-1, -2), "OIX": (1, 0), "XIO": (-2, -1)}, c.attr("weights_format")
    c.require("formats", word in orders)
    if word in ("OIX", "XIO") and c.open("format-order") == "as-noted":
        word = {"OIX": "IOX", "XIO": "XOI"}[word]
    return orders[word]


def _arranged(w: Value, order: Numbers) -> Value:
    """Weights as [R, W / groups, kernel...]."""
    first = tuple(axis % w.rank for axis in order)
    return w.transpose(*first, *(axis for axis in range(w.rank) if axis not in first))


def _picked(shape: Numbers, order: Numbers) -> Numbers:
    """A shape as `_arranged` has it."""
    first = tuple(axis % len(shape) for axis in order)
    return tuple(shape[axis] for axis in (*first, *(axis for axis in range(len(shape)) if axis not in first)))


def _returned(w: Value, order: Numbers) -> Value:
    """Weights [R, W / groups, kernel...] in the layout that `order` means."""
    taken = _picked(tuple(range(w.rank)), order)
    return w.transpose(*(taken.index(axis) for axis in range(w.rank)))


def _noted(c: Call, channels: Numbers, narrow: int | None, wide: int | None) -> bool:
    """Whether weights of several groups are [R / groups, W, ...], as the page's note has them.

    As the gradient of Convolution needs them, they are [R, W / groups, ...]. None: the tensor is the result.
    """
    groups, (inputs, outputs) = c.attr("groups"), channels
    c.require("groups", groups > 0 and (narrow or 0) % groups == 0 and (wide or 0) % groups == 0)
    noted = groups > 1 and c.open("grouped-weights") == "as-noted"
    rows, columns = (inputs * groups, outputs) if noted else (inputs, outputs * groups)
    c.require("channels", narrow in (None, rows) and wide in (None, columns))
    c.require("groups", rows % groups == 0 and columns % groups == 0)
    return noted


def _as_convolution_s(w: Value, groups: int) -> Value:
    """Weights [R / groups, W, kernel...] as [R, W / groups, kernel...]."""
    inputs, outputs, *kernel = w.shape
    w = w.reshape(inputs, groups, outputs // groups, *kernel).transpose(1, 0, *range(2, w.rank + 1))
    return w.reshape(inputs * groups, outputs // groups, *kernel)


def _given_shape(c: Call, name: str, port: Value | None, rank: int) -> Numbers:
    c.require("shape-given", port is not None or c.sets(name))
    shape = c.ints(name) or ()
    c.require("shape-rank", len(shape) == rank)
    return shape


def _steps(c: Call, kernel: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The strides, the extents of the dilated kernel, and output_padding, one for each spatial axis."""
    k = len(kernel)
    strides, dilations = c.ints("strides") or (), c.ints("dilations") or ()
    more = c.ints("output_padding") or (0,) * k
    c.require("per-axis", len(strides) == len(dilations) == len(more) == k)
    c.require_if_stated("output-padding-sign", min(more) >= 0)
    return strides, tuple((size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)), more


def _paddings(c: Call, k: int) -> tuple[Numbers, Numbers] | None:
    """The padding before and behind each axis; None if auto_pad asks for the same extents."""
    way = str(c.attr("auto_pad")).lower()
    c.require("auto-pad", way in _WAYS)
    begin, end = c.ints("pads_begin") or (), c.ints("pads_end") or ()
    c.require("pads-sign", min((*begin, *end), default=0) >= 0)
    c.require("per-axis", len(begin) == len(end) == k)
    if way.startswith("same"):
        return None
    return (begin, end) if way == "none" else ((0,) * k, (0,) * k)


def _upper(c: Call, silence: str | None = "same-side") -> bool:
    """Whether auto_pad is same_upper, or, in the other reading of the words, same_lower."""
    upper = str(c.attr("auto_pad")).lower() == "same_upper"
    return upper if silence is None or c.open(silence) == "upper-at-the-end" else not upper


def _halves(totals: list[int], more_behind: bool) -> tuple[Numbers, Numbers]:
    """Padding on both sides; of an odd one more behind, or more before."""
    low, high = tuple(total // 2 for total in totals), tuple(total - total // 2 for total in totals)
    return (low, high) if more_behind else (high, low)


def _same(c: Call, extents: Numbers, spans: Numbers, strides: Numbers) -> tuple[Numbers, Numbers]:
    """The padding with which a convolution has ceil(extent / stride) places."""
    axes = zip(extents, spans, strides, strict=True)
    return _halves([max(0, (-(-extent // s) - 1) * s + span - extent) for extent, span, s in axes], _upper(c))


def _places(
    extents: Numbers, pads: tuple[Numbers, Numbers], spans: Numbers, strides: Numbers, more: Numbers | None = None
) -> Numbers:
    """The extents of the narrow tensor."""
    axes = zip(extents, *pads, spans, strides, more or (0,) * len(extents), strict=True)
    return tuple((extent + a + b - span - extra) // step + 1 for extent, a, b, span, step, extra in axes)


def _leftover(c: Call, extents: Numbers, kernel: Numbers) -> None:
    """Open a silence if ConvTranspose has no result of these extents."""
    strides, spans, more = _steps(c, kernel)
    pads = _paddings(c, len(kernel)) or _same(c, extents, spans, strides)
    axes = zip(extents, *pads, spans, strides, more, strict=True)
    if any((extent + a + b - span - extra) % step for extent, a, b, span, step, extra in axes):
        c.open("leftover")


def wide(shaping: Shaping) -> Numbers:
    """The source of a convolution, [N, S..., C groups], or [N, C groups, S...] for NCX."""
    return _of_format(shaping, shaping.extent("C") * _groups(shaping), _listed(shaping, "S"))


def narrow(shaping: Shaping) -> Numbers:
    """The result of the convolution of `wide`, with M groups channels, without auto_pad."""
    strides, spans, begin, end, _ = _windows(shaping)
    axes = zip(_listed(shaping, "S"), begin, end, spans, strides, strict=True)
    places = tuple((extent + a + b - span) // step + 1 for extent, a, b, span, step in axes)
    return _of_format(shaping, shaping.extent("M") * _groups(shaping), places)


def weights(shaping: Shaping) -> Numbers:
    """[K..., C, M groups], or [M groups, C, K...] for OIX."""
    m, channels, kernel = shaping.extent("M") * _groups(shaping), shaping.extent("C"), _listed(shaping, "K")
    return (m, channels, *kernel) if shaping.attr("weights_format") == "OIX" else (*kernel, channels, m)


def transposed(shaping: Shaping) -> Numbers:
    """The result of the transposed convolution of `wide`, with M groups channels, without auto_pad."""
    strides, spans, begin, end, more = _windows(shaping)
    axes = zip(_listed(shaping, "S"), begin, end, spans, strides, more, strict=True)
    extents = tuple(step * (n - 1) + span - a - b + extra for n, a, b, span, step, extra in axes)
    return _of_format(shaping, shaping.extent("M") * _groups(shaping), extents)


def transposed_weights(shaping: Shaping) -> Numbers:
    """[K..., M, C groups], or [C groups, M, K...] for IOX and OIX."""
    m, channels, kernel = shaping.extent("M"), shaping.extent("C") * _groups(shaping), _listed(shaping, "K")
    first = shaping.attr("weights_format") in ("IOX", "OIX")
    return (channels, m, *kernel) if first else (*kernel, m, channels)


def _windows(shaping: Shaping) -> tuple[Numbers, Numbers, Numbers, Numbers, Numbers]:
    """Strides, extents of the dilated kernel, padding before and behind, and output_padding."""
    kernel = _listed(shaping, "K")
    names = ("strides", "dilations", "pads_begin", "pads_end")
    strides, dilations, begin, end = (numbers(shaping.levels.get(name), len(kernel)) for name in names)
    more = shaping.levels.get("output_padding")
    extra = numbers(more, len(kernel)) if isinstance(more, tuple) else (0,) * len(kernel)
    return strides, tuple((size - 1) * d + 1 for size, d in zip(kernel, dilations, strict=True)), begin, end, extra


def _of_format(shaping: Shaping, channels: int, extents: Numbers) -> Numbers:
    batch = shaping.extent("N")
    return (batch, channels, *extents) if shaping.attr("data_format") == "NCX" else (batch, *extents, channels)


def _groups(shaping: Shaping) -> int:
    groups = shaping.attr("groups")
    assert isinstance(groups, int)
    return groups


def _listed(shaping: Shaping, symbol: str) -> Numbers:
    dimensions = shaping.symbols[symbol]
    assert isinstance(dimensions, tuple)
    return dimensions
