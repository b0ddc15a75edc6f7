"""Operators whose every output element comes from the input elements at its place: Add, Max, Equal, Clip."""

from __future__ import annotations

import math
from functools import reduce

from ...cases.elements import element_type
from ..arithmetic.tape import Call, Value


def aligned(c: Call, a: Value, b: Value) -> tuple[Value, Value]:
    """The operands of a binary operator, with shapes that meet as the version says.

    a: shape D, b: shape E, of one type. Until ONNX's opset 6 `b` is stretched to D where `broadcast` is 1:
    it has one element, or is a contiguous part of D, the end of it unless `axis` says where it starts. From opset 7 on,
    NumPy's rule in both directions.
    Source: ONNX Add-1 to 14, Equal-1 to 19 and their kind; ONNX's Broadcasting page.
    """
    legacy = c.attr("broadcast")
    if legacy is None:
        c.require("broadcast", meet(a.shape, b.shape))
        return a, b
    if not legacy:
        c.require("legacy-same-shape", a.shape == b.shape)
        return a, b
    if math.prod(b.shape) == 1 and b.rank <= a.rank and not c.given("axis"):
        return a, b.reshape(*(1,) * a.rank)
    start = c.attr("axis")
    if start is None:
        start = a.rank - b.rank
    elif start < 0:
        if c.open("legacy-axis-negative") != "from-the-end":
            return a, a
        start += a.rank
    fits = 0 <= start <= a.rank - b.rank and (math.prod(b.shape) == 1 or a.shape[start : start + b.rank] == b.shape)
    c.require("legacy-part", fits)
    return a, b.reshape(*(1,) * start, *b.shape, *(1,) * (a.rank - start - b.rank)) if fits else a


def meet(*shapes: tuple[int, ...]) -> bool:
    """Whether shapes broadcast by NumPy's rule."""
    rank = max(map(len, shapes), default=0)
    columns = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    return all(len({extent for extent in column if extent != 1}) <= 1 for column in columns)


def add(c: Call, a: Value, b: Value) -> Value:
    """The sum, element by element.

    Source: ONNX Add-1 to 14.
    """
    a, b = aligned(c, a, b)
    return a + b


def equal(c: Call, a: Value, b: Value) -> Value:
    """Whether two elements are equal: IEEE 754's comparison for floats, so that NaN equals nothing.

    a, b: numbers, bool or text; result: bool. Source: ONNX Equal-1 to 19.
    """
    a, b = aligned(c, a, b)
    return a.equal(b)


def maximum(c: Call, xs: list[Value]) -> Value:
    """The largest of the inputs' elements. No text says what NaN does.

    xs: one input or more, of one type. Source: ONNX Max-1 to 13.
    """
    c.require("at-least-one", bool(xs))
    c.require("same-type", len({x.type for x in xs}) == 1)
    if "same-shape" in c.clauses:
        c.require("same-shape", len({x.shape for x in xs}) == 1)
    else:
        c.require("broadcast", meet(*(x.shape for x in xs)))
    return reduce(lambda a, b: _larger(c, a, b), xs)


def _larger(c: Call, a: Value, b: Value) -> Value:
    if a.kind != "real":
        return a.maximum(b)
    passed, skipped = a.maximum(b), a.maximum(b, nan="ignore")
    taken = c.open("nan")
    return {"propagates": passed, "ignored": skipped}.get(taken) or passed.either(skipped)


def clip(c: Call, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    """Elements below `min` become min, elements above `max` become max.

    x: any shape; min, max: attributes until version 6, inputs of rank 0 from 11 on; what a missing one means and which
    of two crossed ones counts is open in part. Source: ONNX Clip-1 to 13.
    """
    for bound in (low, high):
        c.require("scalar-bound", bound is None or bound.rank == 0)
    lower, upper = _bound(c, x, "min", low), _bound(c, x, "max", high)
    below, above = x < lower, x > upper
    way = "max" if "crossed-max" in c.clauses else c.open("crossed", lower > upper)
    low_then, high_then = lower.where(below, x), upper.where(above, x)
    y = {
        "max": lambda: upper.where(low_then > upper, low_then),
        "min": lambda: lower.where(high_then < lower, high_then),
        "below-first": lambda: lower.where(below, high_then),
        "above-first": lambda: upper.where(above, low_then),
    }[way]()
    if x.kind != "real":
        return y
    y = y.maximum(y).where(y.equal(lower) | y.equal(upper), y)  # of two equal zeros, which one stands for both is open
    nan = {"propagates": x, "min": lower, "max": upper}[c.open("nan", x.isnan())]
    return nan.where(x.isnan(), y)


def _bound(c: Call, x: Value, name: str, given: Value | None) -> Value:
    """One end of the interval. A number of the largest magnitude that the type holds leaves infinities out."""
    if given is not None:
        return given
    own = element_type(x.type)
    sign = -1 if name == "min" else 1
    if own.is_integer:
        return c.constant(own.smallest if name == "min" else own.largest, x.type)
    if c.given(name):
        return c.constant(c.float32(name), x.type)
    limits = {
        "type-limit": own.float_format.largest,
        "float32-limit": element_type("float32").float_format.largest,
        "unbounded": math.inf,
    }
    taken = c.open("bound-default" if c.attr(name) is not None else "bound-missing")
    return c.constant(sign * limits[taken], x.type)
