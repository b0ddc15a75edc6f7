"""What OpenVINO's operations do before the formula of ONNX's operator: rules of broadcasting."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...cases.elements import element_type
from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value


def broadcast(c: Call, formula: Formula, a: Value, b: Value) -> Value:
    """Two operands, broadcast by the rule that auto_broadcast names, and then the formula, element by element.

    a: shape D, b: shape E. With none, E equals D; with numpy, both stretch; with pdpd, only b does, to D. Source:
    OpenVINO's page "Broadcast Rules For Elementwise Operations", and Add-1 and similar operations.
    """
    rule = broadcast_rule(c)
    c.require("no-broadcast", rule != "none" or a.shape == b.shape)
    c.require_if_stated("pdpd", rule != "pdpd" or stretches(b.shape, a.shape))
    result: Value = formula(a, b)
    return result


def broadcast_rule(c: Call) -> str:
    """The rule that auto_broadcast names: none, numpy, or pdpd where the page has it."""
    rule: str = c.attr("auto_broadcast")
    c.require("rule-known", rule in ("none", "numpy") or (rule == "pdpd" and "pdpd" in c.clauses))
    return rule


def stretches(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a shape, aligned at the last dimension, stretches to another one without changing that."""
    return len(shape) <= len(to) and all(e in (1, d) for d, e in zip(reversed(to), reversed(shape), strict=False))


def convert(c: Call, formula: Formula, x: Value) -> Value:
    """Each element converted to destination_type; where the page is silent, a range may saturate.

    x: any type; result: the same shape. Source: OpenVINO Convert-1.
    """
    own, to = element_type(x.type), element_type(str(c.output_types["output"]))
    if x.kind == "real" and to.name == "bool":
        small = ~x.equal(x.trunc()) & (x.abs() < 1.0)
        if c.open("small-to-bool", small) == "false":
            x = x.where(~small, 0.0)
        if c.open("nan-to-bool", x.isnan()) == "false":
            x = x.where(~x.isnan(), 0.0)
    elif x.kind == "int" and to.is_integer:
        high = min(own.largest, to.largest)
        low = max(own.smallest, to.smallest) if to.smallest else own.smallest
        if c.open("integer-range", (x > high) | (x < low)) == "saturates":
            x = x.clip(low, high)
    elif own.name != to.name and to.format and to.name not in ("float4e2m1", "float8e8m0"):
        largest = to.format.largest
        if (own.format.largest if own.format else own.largest) > largest:
            beyond = x.cast("float64").abs() > largest
            special = c.open("float-range", beyond) == "special"
            result: Value = formula(x if special else x.clip(-largest, largest), saturate=int(not special))
            return result
    result = formula(x)
    if to.name == "float8e8m0" != own.name:  # the page does not say how numbers other than powers of two round
        wide = x.cast("float64")
        result = result.undefined(~result.cast("float64").equal(wide) & ~wide.isnan())
    return result


def matmul(c: Call, formula: Formula, a: Value, b: Value) -> Value:
    """The product of two matrices, each transposed first if transpose_a or transpose_b says so; vectors never are.

    a: [batch..., M, K] or transposed; b: [batch..., K, N] or transposed. Source: OpenVINO MatMul-1.
    """
    a, b = (v.mT if c.attr(name) and v.rank > 1 else v for name, v in (("transpose_a", a), ("transpose_b", b)))
    result: Value = formula(a, b)
    return result


def top_k(c: Call, formula: Formula, x: Value, k: Value) -> tuple[Value, Value]:
    """The k largest or smallest elements along axis, and their places; unless stable, equal ones are interchangeable.

    x: rank r of 1 or more; k: an integer of rank 0; results: x's shape with k at the axis. Where equal elements may be
    taken for each other, their places are free, and with sort=index the lines with such a choice: any places will do
    that are distinct and lead to the values. Source: OpenVINO TopK-1, 3 and 11.
    """
    axis, mode, sort = c.attr("axis"), c.attr("mode"), c.attr("sort")
    c.require("mode-known", mode in ("max", "min"))
    c.require("sort-known", sort in ("value", "index", "none"))
    c.require("k-scalar", k.rank == 0)
    c.require("axis-range", -x.rank <= axis < x.rank)
    c.require_if_stated("k-range", 1 <= int(c.known("k")) <= x.shape[axis])
    values, places = formula(x, k.reshape(1), largest=int(mode == "max"))
    interchangeable = _repeated(x, axis).along(places, axis)
    if sort == "index":
        order = places.order(axis, largest=False)
        last = interchangeable.take(np.array([values.shape[axis % x.rank] - 1]), axis).broadcast(*values.shape)
        values, places = values.along(order, axis), places.along(order, axis)
    elif sort == "none":
        c.check("order", axis=axis % x.rank)
    if sort == "none" or not c.attr("stable", False):
        if sort == "index":
            interchangeable, values = last, values.undefined(last)
        places = places.undefined(interchangeable)
        if all(c.output_types.values()):
            c.check("follows", ("indices", "values"), [x], axis=axis % x.rank, distinct=1)
    return values, places


def _repeated(x: Value, axis: int) -> Value:
    """Whether an equal element is in the same line along an axis; NaN counts as 0."""
    number = x.where(~x.isnan(), 0.0) if x.kind == "real" else x
    order = number.order(axis, largest=False)
    sorted_ = number.along(order, axis)
    n, lead = x.shape[axis], (slice(None),) * (axis % x.rank)
    same = sorted_[(*lead, slice(1, n))].equal(sorted_[(*lead, slice(0, n - 1))])
    none = same.graph.literal(False, "bool").broadcast(*(1 if i == axis % x.rank else d for i, d in enumerate(x.shape)))
    beside = none.concat([same], axis) | same.concat([none], axis)
    return beside.along(order.order(axis, largest=False), axis)


def strided_slice(c: Call, data: Value, *_: Value | None) -> Value:
    """The elements that steps take, one dimension each, from begin to before end, stride apart; masks change a step.

    data: rank N; begin, end, stride: integers of shape [M]; result: a dimension for each that is sliced, skipped by the
    ellipsis or inserted. Source: OpenVINO StridedSlice-1.
    """
    begin, end = c.ints("begin") or (), c.ints("end") or ()
    stride, steps = c.ints("stride") or (1,) * len(begin), len(begin)
    c.require("same-length", len(end) == len(stride) == steps)
    c.require("stride-zero", 0 not in stride)
    from_start, to_end, new, shrink, ellipsis = (_mask(c, name, steps) for name in _MASKS)
    c.require("ellipsis-once", sum(ellipsis) <= 1)
    y, axis = data, 0
    shape: list[int] = []
    for i in range(steps):
        if ellipsis[i]:
            skipped = data.rank - (steps - sum(new) - 1)
            shape += data.shape[axis : axis + skipped]
            axis += skipped
        elif new[i]:
            shape.append(1)
        else:
            n = data.shape[axis]
            if shrink[i]:
                if begin[i] != end[i]:
                    c.open("shrink-differs")
                places: Sequence[int] = (begin[i] % n,)
            else:
                step = (begin[i], end[i], stride[i])
                places = _places(c, n, step, from_start=bool(from_start[i]), to_end=bool(to_end[i]))
                shape.append(len(places))
            y = y.take(np.array(places, np.int64), axis)
            axis += 1
    return y.reshape(*shape, *data.shape[axis:])


_MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")


def _mask(c: Call, name: str, steps: int) -> tuple[int, ...]:
    """A mask with one bit for each step: what is missing is 0, and what is more is ignored."""
    bits = (c.ints(name) or ())[:steps]
    return bits + (0,) * (steps - len(bits))


def _places(c: Call, extent: int, step: tuple[int, int, int], *, from_start: bool, to_end: bool) -> list[int]:
    """The indices that a step of StridedSlice, (begin, end, stride), takes from a dimension."""
    begin, end, stride = step
    first, last = (edge + extent if edge < 0 else edge for edge in (begin, end))
    back = stride < 0
    first = min(max(first, 0), extent - 1 if back else extent)
    last = min(max(last, -1 if back else 0), extent)
    if from_start:
        first = extent - 1 if back else 0
    if to_end:
        last = (-1 if c.open("end-mask-reverse") == "whole" else 0) if back else extent
    positions = list(range(first, last, stride))
    if not positions and 0 <= first < extent and c.open("nothing") == "one":
        positions = [first]
    return positions


def convolution(c: Call, formula: Formula, data: Value, filters: Value) -> Value:
    """The cross-correlation, with zeros around the data: pads_begin and pads_end, unless auto_pad is not explicit.

    data: [N, C, spatial...]; filters: [M, C, kernel...]; result: [N, M, spatial...]. Source: OpenVINO Convolution-1.
    """
    c.require("rank", data.rank in WINDOWED and filters.rank in WINDOWED)
    begin, end, way = c.ints("pads_begin") or (), c.ints("pads_end") or (), c.attr("auto_pad")
    c.require("per-axis", len(begin) == len(end) == data.rank - 2)
    c.require("auto-pad", way in AUTO_PAD)
    if way.startswith("same") and any(step != 1 for step in c.ints("strides") or ()):
        c.open("same-strided")
    result: Value = formula(data, filters, pads=(*begin, *end) if way == "explicit" else None)
    return result


AUTO_PAD = ("explicit", "same_upper", "same_lower", "valid")
WINDOWED = (3, 4, 5)
"""The ranks of inputs that windows move over."""


def max_pool(c: Call, formula: Formula, data: Value) -> tuple[Value, Value | None]:
    """The largest element of each window, and its flat index from the dimension `axis` on.

    data: [N, C, spatial...]; results: [N, C, windows...]. Source: OpenVINO MaxPool-1, 8 and 14.
    """
    c.require("rank", data.rank in WINDOWED)
    axis, begin, end = c.attr("axis", 0), c.ints("pads_begin") or (), c.ints("pads_end") or ()
    kernel, strides, dilations = c.ints("kernel") or (), c.ints("strides") or (), c.ints("dilations")
    dilations = dilations or (1,) * (data.rank - 2)
    c.require_if_stated("axis-range", -data.rank <= axis < data.rank)
    lengths = {len(numbers) for numbers in (kernel, strides, dilations, begin, end)}
    c.require("per-axis", lengths == {data.rank - 2})
    c.require("pads-range", min(*begin, *end) >= 0)
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    frame = [padding(c, *row) for row in zip(data.shape[2:], spans, strides, begin, end, strict=True)]
    y, index = formula(data, pads=(*(before for before, _ in frame), *(after for _, after in frame)))
    if index is None:
        return y, None
    inner = math.prod(data.shape[axis % data.rank :])
    return y, index.mod(c.constant(inner, "int64"), sign="divisor").cast(str(c.output_types["indices"]))


def padding(c: Call, extent: int, span: int, stride: int, before: int, after: int) -> tuple[int, int]:
    """The padding before and after an axis with which rounding down gives the number of windows that are wanted.

    span: the extent of a window; before, after: pads_begin and pads_end. Padding is in no window's result, so what is
    left over at the end makes no difference.
    """
    way, rounding = c.attr("auto_pad"), c.attr("rounding_type")
    c.require("auto-pad", way in AUTO_PAD)
    c.require("rounding", rounding in ("floor", "ceil") or (rounding == "ceil_torch" and "ceil-torch" in c.clauses))
    if way.startswith("same"):
        total = (extent - 1) * stride + span - extent
        less, more = total // 2, total - total // 2
        return (less, more) if way == "same_upper" else (more, less)
    if way == "valid":
        before = after = 0
    room = extent + before + after - span
    up = rounding != "floor" and room % stride != 0
    if up and way == "valid" and c.answer("valid-ceil", "ceil") == "formula":
        up = False
    if not up or (rounding == "ceil_torch" and (room // stride + 1) * stride >= extent + before):
        return before, after
    return before, after + stride - room % stride


def gru_cell(c: Call, formula: Formula, x: Value, h: Value, w: Value, r: Value, b: Value | None = None) -> Value:
    """One step of gated recurrent units: a sequence of one element, and biases without parts of their own for R.

    x: [N, I]; h and the result: [N, H]; w: [3 H, I], r: [3 H, H], gates in the order z r h; b: [3 H], or with
    linear_before_reset [4 H], the last part R's bias of the hidden gate. Source: OpenVINO GRUCell-3.
    """
    linear, size, names = bool(c.attr("linear_before_reset")), h.shape[-1], c.attr("activations")
    c.require("shapes", all(v.rank == 2 for v in (x, h, w, r)))
    c.require("shapes", b is None or b.shape == ((3 + linear) * size,))
    if names is not None:
        c.require("activations-known", all(name in ("relu", "sigmoid", "tanh") for name in names))
        names = tuple(name.capitalize() for name in names)
    if b is not None:
        zero = c.constant(0.0, b.type).broadcast(size)
        b = b[: 3 * size].concat([zero, zero, b[3 * size :] if linear else zero], 0).reshape(1, 6 * size)
    x, w, r, h = (v.reshape(1, *v.shape) for v in (x, w, r, h))
    _, last = formula(x, w, r, b, None, h, activations=names, linear_before_reset=int(linear))
    state: Value = last.reshape(*h.shape[1:])
    return state
