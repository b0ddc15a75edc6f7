"""Operators that sort elements: TopK, Unique."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from ...cases.elements import Array
from ..arithmetic.tape import Call, Value


def top_k(c: Call, x: Value, k: Value | None = None) -> tuple[Value, Value]:
    """The k largest (or smallest) elements along `axis`, in order, and their indices; the first of equal ones counts.

    x: rank r of 1 or more; k: attribute in version 1, then an int64 input of shape [1]; results: x's shape with k at
    the axis. With sorted=0 their order is open. Source: ONNX TopK-1 to 24.
    """
    axis = c.attr("axis")
    c.require("axis-range", -x.rank <= axis < x.rank)
    if axis < -1 and "axis-negative" not in c.clauses:
        c.open("axis-negative-early")
    if k is not None:
        c.require("k-one", k.shape == (1,))
    (wanted,) = c.ints("k") or c.ints("K") or (0,)
    if wanted <= 0:
        if "k-positive" in c.clauses:
            c.require("k-positive", False)
        c.open("k-zero")
        c.require("k-range", wanted == 0)
    c.require("k-fits", wanted <= x.shape[axis])
    largest = c.attr("largest", 1) != 0
    order = x.order(axis, largest=largest)
    taken, nan = "", x.isnan() if x.kind == "real" else None
    if nan is not None:
        taken = c.open("nan", nan)
        rest = c.constant(0, x.type).where(nan, x).order(axis, largest=largest)
        first = (taken == "largest") == largest
        order = rest.along(nan.along(rest, axis).cast("uint8").order(axis, largest=first), axis)
    chosen = order.take(np.arange(wanted), axis)
    if c.attr("sorted", 1) == 0:
        c.check("order", axis=axis % x.rank)
    y = x.along(chosen, axis)
    if nan is None or taken != "any" or not x.shape[axis]:
        return y, chosen
    lost = nan.cast("uint8").max(axis).cast("bool")
    if all(c.output_types.values()):
        values, places = c.output_types
        c.check("follows", (places, values), [x], axis=axis % x.rank, distinct=1)
    return y.undefined(lost), chosen.undefined(lost)


def unique(c: Call, x: Value) -> tuple[Value, ...]:
    """The distinct elements, or slices along `axis`; their first indices, the inverse indices, and the counts.

    x: any shape; results: Y of x's type, then three of int64 and rank 1. In ascending order, slices in lexicographic
    order, or with sorted=0 in the order of their first occurrence. Source: ONNX Unique-11 and 28.
    """
    axis = c.attr("axis")
    c.require("axis-range", axis is None or -x.rank <= axis < x.rank)
    array = c.read("X")
    rows = array.reshape(-1, 1) if axis is None else np.moveaxis(array, axis, 0)
    keys = _keys(rows)
    nan = c.open("nan") if any(_is_nan(part) for key in keys for part in key) else ""
    if nan.startswith("each"):
        keys = [(*key, position) if any(map(_is_nan, key)) else key for position, key in enumerate(keys)]
    first: dict[Any, int] = {}
    names = [tuple(_NAN if _is_nan(part) else part for part in key) for key in keys]
    for position, name in enumerate(names):
        first.setdefault(name, position)
    order = list(first)
    if c.attr("sorted"):
        if x.type.startswith("complex"):
            c.open("complex-order")
        order.sort(key=lambda name: [_rank(part, late=not nan.endswith("first")) for part in name])
    places = np.array([first[name] for name in order], np.int64)
    number, counts = {name: position for position, name in enumerate(order)}, Counter(names)
    values = rows[places] if axis is not None else array.reshape(-1)[places]
    y = c.constant(np.moveaxis(values, 0, axis) if axis is not None else values, x.type)
    if x.kind == "real" and _has_both_zeros(array):
        y = y.any_zero()  # which of two equal zeros is returned is open
    return (
        y,
        c.constant(places, "int64"),
        c.constant(np.array([number[name] for name in names], np.int64), "int64"),
        c.constant(np.array([counts[name] for name in order], np.int64), "int64"),
    )


_NAN = "not a number"
"""The key of every NaN."""


def _has_both_zeros(array: Array) -> bool:
    signs = np.signbit(array.astype(np.float64)[array == 0])
    return bool(signs.any() and not signs.all())


def _rank(part: Any, *, late: bool) -> Any:
    """The sort key of elements: NaN comes last or first, complex numbers are sorted by their real parts first."""
    if isinstance(part, complex):
        return part.real, part.imag
    return (part is _NAN) == late, 0 if part is _NAN else part


def _is_nan(part: Any) -> bool:
    return bool(part != part)  # noqa: PLR0124 - NaN alone is not itself


def _keys(rows: Array) -> list[tuple[Any, ...]]:
    """The elements of each slice as comparable and hashable keys; the two zeros are equal."""
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    if flat.dtype != object and flat.dtype.kind not in "biuc":
        flat = flat.astype(np.float64) + 0.0
    return [tuple(row) for row in flat.tolist()]
