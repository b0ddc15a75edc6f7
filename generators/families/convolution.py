"""Operators that move a window over their input: Conv, ConvTranspose and quantized Conv."""

from __future__ import annotations

import math

from ...cases.elements import element_type
from ..arithmetic.tape import Call, Value
from .quantization import coded, number


def conv(c: Call, x: Value, w: Value, b: Value | None = None) -> Value:
    """The cross-correlation of x with w, group by group, plus b for each output channel.

    x: [N, C, spatial...]; w: [M, C / group, kernel...]; b: [M]; result: [N, M, spatial...]. Source: ONNX Conv-1 to 22.
    """
    return _correlated(c, x, w, b)


def conv_integer(c: Call, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None) -> Value:
    """Conv of codes in int32, less their zero points, one in all or one per output channel. The padding means 0.

    x: [N, C, spatial...]; w: [M, C / group, kernel...]; x_zero: rank 0; w_zero: rank 0 or [M]; result:
    [N, M, spatial...]. Source: ONNX ConvInteger-10.
    """
    x = x.cast("int32") if x_zero is None else x.cast("int32") - _scalar(c, x_zero).cast("int32")
    w = w.cast("int32") if w_zero is None else w.cast("int32") - _per_output(c, w_zero, w).cast("int32")
    return _correlated(c, x, w, None)


def qlinear_conv(
    c: Call,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    y_scale: Value,
    y_zero: Value,
    b: Value | None = None,
) -> Value:
    """Conv of dequantized codes, as a code; the codes of b have the scale x_scale * w_scale.

    x: [N, C, spatial...]; w: [M, C / group, kernel...]; b: [M]; w_scale and w_zero: rank 0 or [M], other scales and
    zero points: rank 0. Source: ONNX QLinearConv-10.
    """
    pairs = ((x_scale, x_zero), (w_scale, w_zero), (y_scale, y_zero))
    c.require("zero-point-shape", all(scale.shape == zero.shape for scale, zero in pairs))
    x_scale, x_zero, y_scale, y_zero = (_scalar(c, v) for v in (x_scale, x_zero, y_scale, y_zero))
    w_scale, w_zero = (_per_output(c, v, w) for v in (w_scale, w_zero))
    bias = None if b is None else b.cast(x_scale.type) * (x_scale * (w_scale.reshape(-1) if w_scale.rank else w_scale))
    y = _correlated(c, number(x, x_zero, x_scale), number(w, w_zero, w_scale), bias)
    return coded(y / y_scale, y_zero, element_type(str(c.output_types["y"])))


def _scalar(c: Call, v: Value) -> Value:
    """A scale or zero point that must be one number."""
    c.require("per-tensor", v.size == 1)
    if v.rank:
        c.open("one-element")
    return v.reshape()


def _per_output(c: Call, v: Value, w: Value) -> Value:
    """A scale or zero point for all of w, or for each output channel, that broadcasts to w."""
    if v.rank == 0 or (v.shape == (1,) and w.shape[0] != 1):
        return _scalar(c, v)
    c.require("per-output", v.shape == w.shape[:1])
    return v.reshape(-1, *(1,) * (w.rank - 1))


def _correlated(c: Call, x: Value, w: Value, b: Value | None) -> Value:
    n, kernel, groups = x.shape[0], w.shape[2:], c.attr("group")
    k, m, per = len(kernel), w.shape[0], w.shape[1]
    zero = 0 if x.kind == "int" else 0.0
    c.require("groups", x.rank == w.rank and x.shape[1] == per * groups and m % groups == 0)
    c.require_if_stated("bias-shape", b is None or b.shape == (m,))
    c.require("kernel-shape", c.ints("kernel_shape") in (None, kernel))
    strides, dilations = c.ints("strides"), c.ints("dilations")
    if (strides is None or dilations is None) and "defaults" not in c.clauses:
        c.open("defaults-early")
    strides, dilations = strides or (1,) * k, dilations or (1,) * k
    c.require("per-axis", len(strides) == len(dilations) == k)
    frame = framing(c, x.shape[2:], kernel, strides, dilations)
    spans = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    room = [extent + sum(sides) - span for extent, sides, span in zip(x.shape[2:], frame, spans, strict=True)]
    c.require("window-fits", all(spare // step >= -1 for spare, step in zip(room, strides, strict=True)))
    if min(room, default=0) < 0:
        c.open("no-window")
        extents = (max(0, spare // step + 1) for spare, step in zip(room, strides, strict=True))
        return c.constant(zero, x.type).broadcast(n, m, *extents)
    return _products(c, x.pad(((0, 0), (0, 0), *frame), 0), w, b, strides, dilations)


def _products(
    c: Call, x: Value, w: Value, b: Value | None, strides: tuple[int, ...], dilations: tuple[int, ...]
) -> Value:
    """The sums of each window of x times each filter of its group, plus b for each output channel."""
    n, kernel, groups, m, per = x.shape[0], w.shape[2:], c.attr("group"), w.shape[0], w.shape[1]
    k = len(kernel)
    seen = x.windows(kernel, strides, dilations)
    out = seen.shape[2 : 2 + k]
    columns = seen.reshape(n, groups, per, *out, *kernel)
    columns = columns.transpose(0, 1, *range(3, 3 + k), 2, *range(3 + k, 3 + 2 * k))
    columns = columns.reshape(n, groups, math.prod(out), per * math.prod(kernel))
    weights = w.reshape(1, groups, m // groups, per * math.prod(kernel)).transpose(0, 1, 3, 2)
    if b is not None:  # one more addend, in any order: implementations may start with it
        columns = columns.concat([c.constant(1.0, x.type).broadcast(n, groups, math.prod(out), 1)], 3)
        weights = weights.concat([b.reshape(1, groups, 1, m // groups)], 2)
    return columns.matmul(weights).transpose(0, 1, 3, 2).reshape(n, m, *out)


def conv_transpose(c: Call, x: Value, w: Value, b: Value | None = None) -> Value:
    """The sums of copies of a filter, `strides` apart, each times an element of x; cropped, plus b for each channel.

    x: [N, C, spatial...]; w: [C, M / group, kernel...]; b: [M]; result: [N, M, spatial...]. Computed as
    products of windows of x, spread with zeros, and the flipped filters. Source: ONNX ConvTranspose-1 to 22.
    """
    kernel, groups = w.shape[2:], c.attr("group")
    k, m = len(kernel), w.shape[1] * groups
    c.require("groups", x.rank == w.rank and x.shape[1] == w.shape[0] and w.shape[0] % groups == 0)
    c.require_if_stated("bias-shape", b is None or b.shape == (m,))
    c.require("kernel-shape", c.ints("kernel_shape") in (None, kernel))
    strides, dilations = c.ints("strides"), c.ints("dilations")
    if (strides is None or dilations is None) and "defaults" not in c.clauses:
        c.open("defaults-early")
    strides, dilations, more = strides or (1,) * k, dilations or (1,) * k, c.ints("output_padding") or (0,) * k
    c.require("per-axis", len(strides) == len(dilations) == len(more) == k)
    if "output-padding-range" in c.clauses:
        limits = map(max, strides, dilations)
        c.require("output-padding-range", all(0 <= e < limit for e, limit in zip(more, limits, strict=True)))
    spans = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    axes = list(zip(x.shape[2:], strides, spans, more, strict=True))
    uncropped = [step * (extent - 1) + span + extra for extent, step, span, extra in axes]
    crops = _crops(c, uncropped, x.shape[2:], spans)
    for at, (extent, step, span, extra) in enumerate(axes):
        shape, axis = x.shape, 2 + at
        x = x.reshape(*shape[: axis + 1], 1, *shape[axis + 1 :])
        x = x.pad(tuple((0, step - 1 if i == axis + 1 else 0) for i in range(x.rank)), 0)
        x = x.reshape(*shape[:axis], extent * step, *shape[axis + 1 :])
        more_before, more_after = (max(0, -crop) for crop in crops[at])
        ends = span - 1 + more_before, span - 1 + extra + more_after
        x = x.pad(tuple(ends if i == axis else (0, 0) for i in range(x.rank)), 0)
        start = crops[at][0] + more_before
        stop = more_before + uncropped[at] - crops[at][1] + span - 1
        x = x[(slice(None),) * axis + (slice(start, stop),)]
    w = w.reshape(groups, w.shape[0] // groups, w.shape[1], *kernel).transpose(0, 2, 1, *range(3, 3 + k))
    w = w.reshape(m, x.shape[1] // groups, *kernel).flip(tuple(range(2, 2 + k)))
    return _products(c, x, w, b, (1,) * k, dilations)


def _crops(c: Call, uncropped: list[int], extents: tuple[int, ...], spans: list[int]) -> list[tuple[int, int]]:
    """The numbers of elements to crop before and after each spatial axis: from pads, or from a given output shape.

    A negative one means as many zeros. `uncropped`: the extents without a crop.
    """
    k, way, pads, wanted = len(uncropped), c.attr("auto_pad"), c.ints("pads"), c.ints("output_shape")
    c.require("auto-pad", way in ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    c.require("not-both", pads is None or way == "NOTSET")
    if wanted is None and not way.startswith("SAME"):
        c.require("pads-length", pads is None or len(pads) == 2 * k)
        crops = list(zip(pads[:k], pads[k:], strict=True)) if pads else [(0, 0)] * k
        c.require("something-left", all(extent >= sum(sides) for extent, sides in zip(uncropped, crops, strict=True)))
        return crops
    c.require_if_stated("output-shape-length", wanted is None or len(wanted) == k)
    strides = c.ints("strides") or (1,) * k
    early = wanted is None and "same" not in c.clauses and any(step != 1 for step in strides)
    totals = {
        "times-stride": [a - n * step for a, n, step in zip(uncropped, extents, strides, strict=True)],
        "as-unstrided": [span - 1 for span in spans],
        "as-input": [a - n for a, n in zip(uncropped, extents, strict=True)],
    }[c.open("same-strided-early") if early else "times-stride"]
    if wanted is not None:
        totals = [extent - goal for extent, goal in zip(uncropped, wanted, strict=True)]
    if min(totals) < 0:
        way_out = c.open("larger")
        if way_out == "as-much-as-there-is":
            totals = [max(0, total) for total in totals]
        elif way_out == "zeros-at-end" and max(totals) <= 0:
            return [(0, total) for total in totals]
        elif way_out == "zeros-truncated":
            return [
                (int(t / 2), t - int(t / 2)) if way == "SAME_UPPER" else (t - int(t / 2), int(t / 2)) for t in totals
            ]
    first_more = way != "SAME_UPPER"
    if wanted is not None and any(total % 2 for total in totals) and c.silent("odd-padding-early"):
        first_more = first_more == (c.open("odd-padding-early") == "as-later")
    return [((total + first_more) // 2, (total + (not first_more)) // 2) for total in totals]


def framing(
    c: Call, extents: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    """The numbers of elements to add before and after each spatial axis, by `pads` or `auto_pad`.

    Source: ONNX Conv-1 to 22 and the pooling operators.
    """
    k, way, pads = len(kernel), c.attr("auto_pad"), c.ints("pads")
    c.require("auto-pad", way in ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if way == "NOTSET":
        c.require("pads-length", pads is None or len(pads) == 2 * k)
        return tuple(zip(pads[:k], pads[k:], strict=True)) if pads else ((0, 0),) * k
    c.require("not-both", pads is None)
    if way == "VALID":
        return ((0, 0),) * k
    early = any(step != 1 for step in strides) and "same" not in c.clauses
    size_of = c.open("same-strided-early") if early else "ceil"
    sides = []
    for extent, size, step, dilation in zip(extents, kernel, strides, dilations, strict=True):
        reach = (size - 1) * dilation
        goal = extent if size_of == "as-input" else -(-extent // step)
        total = reach if size_of == "as-unstrided" else max(0, (goal - 1) * step + reach + 1 - extent)
        small, large = total // 2, total - total // 2
        sides.append((small, large) if way == "SAME_UPPER" else (large, small))
    return tuple(sides)
