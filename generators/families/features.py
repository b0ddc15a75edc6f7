"""Operators of ai.onnx.ml that prepare the features of a row: Binarizer, Imputer, Normalizer, Scaler and others.

A row is the last dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...cases.elements import element_type
from ..arithmetic.tape import Call, Value

_FIRST_BEYOND = 2.0**63


def array_feature_extractor(c: Call, x: Value, y: Value) -> Value:
    """The elements of each row at the indices in `y`.

    x: rank 1 or more; y: int64, any shape, n indices; result: x's shape, with n as its last dimension.
    Source: ONNX ai.onnx.ml ArrayFeatureExtractor-1; the shape comes from its shape inference.
    """
    c.require("rank", x.rank >= 1)
    if not y.size:
        c.open("no-index")
    extent = x.shape[-1]
    c.require("range", (y < extent) & (y >= -extent))
    negative = y < 0
    c.open("index-negative", negative)
    z = x.gather((y + extent).where(negative, y).reshape(-1), x.rank - 1)
    return z.reshape(1, -1) if x.rank == 1 and c.open("vector") == "row" else z


def binarizer(c: Call, x: Value) -> Value:
    """1 where an element is greater than the threshold, 0 elsewhere.

    x: float32, float64, int32 or int64, any shape; result: the same. Source: ONNX ai.onnx.ml Binarizer-1.
    """
    threshold, zero = c.float32("threshold"), c.constant(0, x.type)
    if x.kind == "int":  # an integer is greater than a number if it is greater than the number's floor
        element = element_type(x.type)
        if not threshold < element.largest:
            return zero.broadcast(*x.shape)
        threshold = max(math.floor(max(threshold, -_FIRST_BEYOND)), element.smallest)
        if c.float32("threshold") < element.smallest:
            return c.constant(1, x.type).broadcast(*x.shape)
    return c.constant(1, x.type).where(x > threshold, zero)


def feature_vectorizer(c: Call, inputs: list[Value]) -> Value:
    """The rows of the inputs, one after the other, as float32.

    inputs: [N, C], or [C] for one row; result: [N, the sum of C]. Source: ONNX ai.onnx.ml FeatureVectorizer-1.
    """
    c.require("ranks", all(1 <= x.rank <= 2 for x in inputs))
    rows = [x if x.rank == 2 else x.reshape(1, *x.shape) for x in inputs]
    c.require("rows", len({x.shape[0] for x in rows}) == 1)
    widths, sizes = tuple(x.shape[1] for x in rows), c.ints("inputdimensions")
    if sizes is None:
        c.open("no-sizes")
        sizes = widths
    c.require("sizes-count", len(sizes) == len(rows))
    if sizes != widths and c.open("sizes-differ") == "cut-or-padded":
        zeros = c.constant(0, rows[0].type).broadcast(rows[0].shape[0], max(0, *sizes))
        rows = [x.concat([zeros], 1)[:, :size] for x, size in zip(rows, sizes, strict=True)]
    first, *rest = (x.cast("float32") for x in rows)
    return first.concat(rest, 1) if rest else first


def imputer(c: Call, x: Value) -> Value:
    """The elements, with those that equal replaced_value replaced by the imputed one: one for all or one per column.

    x: float32 or float64 (float attributes), int32 or int64, [C] or [N, C]; result: the same. If the replaced value is
    NaN, every NaN equals it. Source: ONNX ai.onnx.ml Imputer-1.
    """
    real = x.kind == "real"
    floats, ints = c.attr("imputed_value_floats"), c.attr("imputed_value_int64s")
    imputed, other = (floats, ints) if real else (ints, floats)
    c.require("imputed-type", bool(imputed))
    if other:
        c.open("both-imputed")
    if c.given("replaced_value_int64" if real else "replaced_value_float"):
        c.open("replaced-type")
    if x.rank not in (1, 2):
        c.open("rank")
    c.require("length", len(imputed) == 1 or (x.rank > 0 and len(imputed) == x.shape[-1]))
    element = element_type(x.type)
    c.require("fits", real or all(element.smallest <= value <= element.largest for value in imputed))
    replaced = c.float32("replaced_value_float") if real else c.attr("replaced_value_int64")
    if not real and not element.smallest <= replaced <= element.largest:
        return x
    values = np.array(imputed, np.float32 if real else np.int64).reshape((-1,) if len(imputed) > 1 else ())
    missing = x.isnan() if real and math.isnan(replaced) else x.equal(replaced)
    return c.constant(values, x.type).where(missing, x)


def normalizer(c: Call, x: Value) -> Value:
    """Each row divided by its largest element, the sum of its magnitudes, or the root of the sum of its squares.

    x: float32, float64, int32 or int64, [C] or [N, C]; result: float32, the same shape. A row whose divisor is zero
    stays unchanged. The type of the computation is open. Source: ONNX ai.onnx.ml Normalizer-1.
    """
    norm = c.attr("norm")
    c.require("norms", norm in ("MAX", "L1", "L2"))
    c.require("rank", 1 <= x.rank <= 2)
    signed = norm != "MAX" and c.open("signs", x < 0) == "formula"

    def normalized(x: Value) -> Value:
        if norm == "L2":
            squares = x * x
            divisor = squares.sum(-1)
            root = (squares / divisor).sqrt()
            y = root if signed else (x / divisor.sqrt()).either((-root).where(x < 0.0, root))
        else:
            divisor = _largest(c, x) if norm == "MAX" else (x if signed else x.abs()).sum(-1)
            y = (x / divisor).either(x * (1.0 / divisor))
        return x.where(divisor.equal(0.0), y)

    return _in_either(x, normalized)


def _largest(c: Call, x: Value) -> Value:
    """The largest element of each row; with NaN, also results that depend on its position."""
    nans = x.isnan().cast("int32").max(-1) > 0
    taken = c.open("nan", nans)
    largest: Value = x.max(-1, nan="propagate" if taken == "propagates" else "ignore")
    return largest.undefined(nans) if taken == "by-position" else largest


def scaler(c: Call, x: Value) -> Value:
    """(X - offset) * scale, with one number each for all features or one per feature.

    x: float32, float64, int32 or int64, any shape; result: float32, the same shape. The type of the
    computation is open. Source: ONNX ai.onnx.ml Scaler-1.
    """
    offset, scale = c.attr("offset"), c.attr("scale")
    if offset is None or scale is None:
        c.open("missing")
    offset, scale = offset or (0.0,) * len(scale or (0,)), scale or (1.0,) * len(offset or (0,))
    c.require("lengths", len(offset) == len(scale))
    axis = -1
    if len(offset) > 1 and x.rank != 2 and c.open("features-elsewhere") == "second-dimension" and x.rank > 2:
        axis = 1
    c.require("length", len(offset) == 1 or (x.rank > 0 and x.shape[axis] == len(offset)))
    shape = (1,) if len(offset) == 1 and x.rank else (len(offset), *(1,) * (x.rank - 2 if axis == 1 else 0))
    shape = shape if x.rank else ()

    def scaled(x: Value) -> Value:
        less, times = (c.constant(np.array(v, np.float32).reshape(shape), x.type) for v in (offset, scale))
        return (x - less) * times

    return _in_either(x, scaled)


def _in_either(x: Value, formula: Callable[[Value], Value]) -> Value:
    """A formula in float32, or in float64 and then rounded; float32 numbers stay exact."""
    narrow = formula(x.cast("float32"))
    return narrow if x.type == "float32" else narrow.either(formula(x.cast("float64")).cast("float32"))
