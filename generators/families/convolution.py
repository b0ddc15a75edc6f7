"""Operators that move a window over their input: Conv and its kin."""

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
    """The same in int32 of codes, less their zero points: of all, of each output channel. What frames x stands for 0.

    x: [N, C, spatial...]; w: [M, C / group, kernel...]; x_zero: rank 0; w_zero: rank 0 or [M]; result:
    [N, M, spatial...]. Source: ONNX ConvInteger-10.
    """
    x = x.cast("int32") if x_zero is None else x.cast("int32") - _whole(c, x_zero).cast("int32")
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
    """The same of the numbers that codes stand for, as a code; those of b have the scale x_scale * w_scale.

    x: [N, C, spatial...]; w: [M, C / group, kernel...]; b: [M]; w_scale and w_zero: rank 0 or [M], other scales and
    zero points: rank 0. Source: ONNX QLinearConv-10.
    """
    pairs = ((x_scale, x_zero), (w_scale, w_zero), (y_scale, y_zero))
    c.require("zero-point-shape", all(scale.shape == zero.shape for scale, zero in pairs))
    x_scale, x_zero, y_scale, y_zero = (_whole(c, v) for v in (x_scale, x_zero, y_scale, y_zero))
    w_scale, w_zero = (_per_output(c, v, w) for v in (w_scale, w_zero))
    bias = None if b is None else b.cast(x_scale.type) * (x_scale * (w_scale.reshape(-1) if w_scale.rank else w_scale))
    y = _correlated(c, number(x, x_zero, x_scale), number(w, w_zero, w_scale), bias)
    return coded(y / y_scale, y_zero, element_type(str(c.output_types["y"])))


def _whole(c: Call, v: Value) -> Value:
    """A scale or zero point that is one number."""
    c.require("per-tensor", v.size == 1)
    if v.rank:
        c.open("one-element")
    return v.reshape()


def _per_output(c: Call, v: Value, w: Value) -> Value:
    """A scale or zero point for all of w, or for each output channel, to be stretched to w."""
    if v.rank == 0 or (v.shape == (1,) and w.shape[0] != 1):
        return _whole(c, v)
    c.require("per-output", v.shape == w.shape[:1])
    return v.reshape(-1, *(1,) * (w.rank - 1))


def _correlated(c: Call, x: Value, w: Value, b: Value | None) -> Value:
    n, kernel, groups = x.shape[0], w.shape[2:], c.attr("group")
    k, m, per = len(kernel), w.shape[0], w.shape[1]
    zero = 0 if x.kind == "int" else 0.0
    c.require("groups", x.rank == w.rank and x.shape[1] == per * groups and m % groups == 0)
    c.require("bias-shape", b is None or b.shape == (m,))
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
    seen = x.pad(((0, 0), (0, 0), *frame), 0).windows(kernel, strides, dilations)
    out = seen.shape[2 : 2 + k]
    columns = seen.reshape(n, groups, per, *out, *kernel)
    columns = columns.transpose(0, 1, *range(3, 3 + k), 2, *range(3 + k, 3 + 2 * k))
    columns = columns.reshape(n, groups, math.prod(out), per * math.prod(kernel))
    weights = w.reshape(1, groups, m // groups, per * math.prod(kernel)).transpose(0, 1, 3, 2)
    if b is not None:  # one more addend, in any order: sums may well begin with it
        columns = columns.concat([c.constant(1.0, x.type).broadcast(n, groups, math.prod(out), 1)], 3)
        weights = weights.concat([b.reshape(1, groups, 1, m // groups)], 2)
    return columns.matmul(weights).transpose(0, 1, 3, 2).reshape(n, m, *out)


def framing(
    c: Call, extents: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    """How many elements are added before and after each spatial axis, by `pads` or `auto_pad`.

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
    if any(step != 1 for step in strides) and "same" not in c.clauses:
        c.open("same-strided-early")
    sides = []
    for extent, size, step, dilation in zip(extents, kernel, strides, dilations, strict=True):
        whole = max(0, (-(-extent // step) - 1) * step + (size - 1) * dilation + 1 - extent)
        small, large = whole // 2, whole - whole // 2
        sides.append((small, large) if way == "SAME_UPPER" else (large, small))
    return tuple(sides)
