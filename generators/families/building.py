"""Operators that build a tensor from a few numbers: OneHot, EyeLike, Range, ConstantOfShape."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ...cases.elements import Array, element_type
from ...cases.program import Tensor
from ..arithmetic.tape import Call, Value
from ..fills import Drawing

_LARGEST = 2**21
"""The most elements of an output whose size is set by input values."""

_FIRST_BEYOND = 2.0**63  # for numbers whose cast to int64 is undefined
_STASH = ("float32", "float64", "float16", "bfloat16")


def one_hot(c: Call, indices: Value, depth: Value, values: Value) -> Value:
    """The on-value where the position in the new dimension equals the index, the off-value elsewhere.

    indices: rank r, any number; depth: one number, the new dimension's extent; values: [off, on]; result: rank r + 1,
    the type of values. Numbers that are not whole are cast to int64. Source: ONNX OneHot-9 to 28.
    """
    c.require("values-two", values.shape == (2,))
    c.require("depth-one", depth.rank < 2 and depth.size == 1)
    axis, rank = c.attr("axis"), indices.rank + 1
    c.require("axis-range", -rank <= axis < rank)
    if axis < -1 and "axis-negative" not in c.clauses:
        c.open("axis-negative-early")
    classes = _truncated(c.known(depth))
    c.require("depth-negative", classes >= 0)
    if not classes:
        c.open("depth-zero")
    axis %= rank
    if not indices.rank:
        c.open("rank-0")
    wild = ~(indices.abs() < _FIRST_BEYOND) if indices.kind == "real" else None
    if indices.type != "uint64":  # int64 may not hold their numbers
        indices = indices.cast("int64")
    index_shape = (*indices.shape[:axis], 1, *indices.shape[axis:])
    index = indices.reshape(*index_shape)
    places = np.arange(classes).reshape(-1, *(1,) * (rank - axis - 1))
    on = index.equal(places)
    if indices.type != "uint64":
        from_end = "index-negative" in c.clauses or c.open("index-negative-early", index < 0) == "from-the-end"
        on = on | index.equal(places - classes) if from_end else on
    shape = (*indices.shape[:axis], classes, *indices.shape[axis:])
    off, lit = (values.slice(position).broadcast(*shape) for position in (0, 1))
    y = lit.where(on.broadcast(*shape), off)
    return y if wild is None else y.undefined(wild.reshape(*index_shape).broadcast(*shape))


def _truncated(number: Array) -> int:
    """One number as a whole number, rounded towards zero like a cast. Raises ValueError for infinities and NaN."""
    element = number.reshape(-1)[0]
    if not np.isfinite(element):
        raise ValueError(f"{element} is not an extent")
    return _held(int(element))


def _held(size: int) -> int:
    """Return the number of elements. Raises ValueError if it is more than a case may have."""
    if size > _LARGEST:
        raise ValueError(f"{size} elements are more than a case may have, {_LARGEST}")
    return size


def eye_like(c: Call, x: Value) -> Value:
    """Ones on the k-th diagonal, at [i, i + k], and zeros elsewhere, in the shape of the input.

    x: rank 2, its elements do not matter; result: the type dtype, else x's type. Source: ONNX EyeLike-9 and 22.
    """
    c.require("rank-2", x.rank == 2)
    type_ = c.output_types["output"]
    rows, columns = (np.arange(extent, dtype=object) for extent in x.shape)
    ones = rows[:, None] + c.attr("k") == columns[None, :]
    return c.constant(ones.astype(bool), "bool").cast(str(type_))


def range_(c: Call, start: Value, limit: Value, delta: Value) -> Value:
    """The numbers start + i * delta before limit.

    start, limit, delta: rank 0, of one type; result: rank 1, of this type. The formula multiplies, the function body
    adds; float16 and bfloat16 are computed in the type stash_type. Source: ONNX Range-11 and 27.
    """
    ports = (start, limit, delta)
    c.require("scalars", all(x.size == 1 for x in ports))
    if any(x.rank for x in ports):
        c.open("rank-1")
    type_ = _stash(c, start.type)
    first, end, step = (c.known(x).reshape(()) for x in ports)
    c.require("delta-not-zero", bool(step != 0))
    if all(map(np.isfinite, (first, end, step))):
        count = _held(_count(c, type_, first, end, step))
    else:
        c.require("finite", (float(end) - float(first)) / float(step) <= 0)
        c.open("infinite")
        count = 0
    begin, by = (x.reshape().cast(type_) for x in (start, delta))
    y = begin + by * np.arange(count)
    if count > 2 and start.kind == "real" and c.open("values") == "added-up":
        y = begin.reshape(1).concat([by.broadcast(count - 1)], 0).cumsum(0)
    return y.cast(start.type)


def _stash(c: Call, type_: str) -> str:
    """The type in which the numbers are computed."""
    number = c.attr("stash_type")
    if number is None or type_ not in ("float16", "bfloat16"):
        return type_
    stash = next((name for name in _STASH if element_type(name).onnx == number), "")
    c.require("stash-float", bool(stash))
    return stash if stash in _STASH[:2] or c.open("stash-short") == "in-it" else "float32"


def _count(c: Call, type_: str, *numbers: Any) -> int:
    """The number of elements: exact, or with the difference and the quotient rounded as in implementations."""
    start, limit, delta = (Fraction(int(n)) if n.dtype.kind in "iu" else Fraction(float(n)) for n in numbers)
    own = element_type(type_).dtype
    first, end, step = (n.astype(own) for n in numbers)
    ceilings = {"exact": math.ceil((limit - start) / delta)}
    with np.errstate(all="ignore"):
        difference = end - first
        for option, quotient in (("in-its-type", own), ("in-float64", np.float64), ("in-float32", np.float32)):
            if option != "in-its-type" or element_type(type_).format:
                rounded = difference.astype(quotient) / step.astype(quotient)
                ceilings[option] = math.ceil(float(rounded)) if np.isfinite(rounded) else 0
    counts = {option: max(count, 0) for option, count in ceilings.items()}
    return counts["exact"] if len(set(counts.values())) == 1 else counts.get(c.open("count"), counts["exact"])


def constant_of_shape(c: Call, shape: Value) -> Value:
    """A tensor with the input as its shape, filled with the value, or with float32 zeros.

    shape: int64, rank 1; result: the type of value. Source: ONNX ConstantOfShape-9 to 25.
    """
    c.require("shape-rank", shape.rank == 1)
    dims = c.ints("input") or ()
    c.require("not-negative", all(d >= 0 for d in dims))
    _held(math.prod(dims))
    value = c.attr("value")
    if not isinstance(value, Tensor):
        return c.constant(0, "float32").broadcast(*dims)
    c.require("value-one", math.prod(value.dims) == 1)
    if len(value.dims) != 1:
        c.open("value-rank")
    return c.constant(value.array().reshape(()), value.type).broadcast(*dims)


def around(drawing: Drawing) -> Array:
    """Whole numbers from 0, about half of them `below` or more."""
    return drawing.draw.below(2 * drawing.limit("below", 1), drawing.size)
