"""Operators of ai.onnx.ml on maps: CastMap, DictVectorizer and ZipMap. A map is a pair of keys and values."""

from __future__ import annotations

import numpy as np

from ...cases.elements import Array, element_type
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw, Drawing


def cast_map(c: Call, x: tuple[Value, Value]) -> Value:
    """A map's values, in the order of their keys, or each at its key as index, as numbers or text.

    x: int64 to float32 or string; result: rank 1, with the length of the map (DENSE) or max_map (SPARSE). The text of a
    float is not defined. Source: ONNX ai.onnx.ml CastMap-1.
    """
    keys, values = x
    c.require("forms", c.attr("map_form") in ("DENSE", "SPARSE"))
    c.require("casts", c.attr("cast_to") in ("TO_FLOAT", "TO_STRING", "TO_INT64"))
    values = _cast(c, values, str(c.output_types["Y"]))
    if c.attr("map_form") == "DENSE":
        return values.gather(keys.order(0), 0)
    extent = c.attr("max_map")
    c.require("max-map", extent >= 0)
    c.require("range", (keys >= 0) & (keys < extent))
    return _placed(c, values, keys.reshape(-1, 1).equal(np.arange(extent)))


def _cast(c: Call, values: Value, to: str) -> Value:
    if to == "string" and values.type != "string":
        free = c.constant("", "string").broadcast(*values.shape)
        return free.undefined(c.constant(np.ones(values.shape, bool), "bool"))
    if to == "int64" and values.kind == "real":
        rounded = values.trunc()
        if c.open("fraction", ~rounded.equal(values)) == "nearest-even":
            rounded = values.rint()
        return rounded.cast(to).undefined(~(rounded.abs() < 2.0**63))
    return values.cast(to)


def _placed(c: Call, values: Value, on: Value) -> Value:
    """Each value where its row of `on` is true; elsewhere zero, or, for text, the empty text or any."""
    text = values.type == "string"
    y = c.constant("" if text else 0, values.type).broadcast(on.shape[1])
    for row in range(values.size):
        y = values[row].where(on[row], y)
    if not text:
        return y
    return y.undefined(on.cast("int32").sum(0, keep=False).equal(0), "absent-text")


def dict_vectorizer(c: Call, x: tuple[Value, Value]) -> Value:
    """A map's values, each at the index of its key in the vocabulary; zero if the map lacks the entry.

    x: from int64 or string to int64, float32, float64 or string; result: as long as the vocabulary, of rank 1 or with a
    leading dimension of 1; the standard has both. Source: ONNX ai.onnx.ml DictVectorizer-1.
    """
    keys, values = x
    vocabulary = _labels(c, "one-vocabulary", "string_vocabulary", "int64_vocabulary")
    c.require("types", (keys.type == "string") == (vocabulary.dtype == object))
    on = keys.reshape(-1, 1).equal(c.constant(vocabulary, keys.type))
    c.require("known", on.cast("int32").sum(-1) > 0)
    if len({*vocabulary.tolist()}) < len(vocabulary):
        taken = c.open("entry-repeated")
        on = on & c.constant(_kept(vocabulary, taken), "bool")
    y = _placed(c, values, on)
    return y.reshape(1, -1) if c.open("shape") == "row" else y


def zip_map(c: Call, x: Value) -> list[tuple[Value, Value]]:
    """For each row, a map from the labels to its elements.

    x: float32, [N, C], or [C] for one row; result: N maps of C entries. Source: ONNX ai.onnx.ml ZipMap-1.
    """
    labels = _labels(c, "one-list", "classlabels_strings", "classlabels_int64s")
    c.require("rank", 1 <= x.rank <= 2)
    if x.rank == 1:
        c.open("rank-1")
        x = x.reshape(1, -1)
    c.require("columns", x.shape[1] == len(labels))
    kept = np.ones(len(labels), bool)
    if len({*labels.tolist()}) < len(labels):
        kept = _kept(labels, c.open("label-repeated"))
    order = np.array([column for column in np.argsort(labels, kind="stable") if kept[column]], np.int64)
    keys = c.constant(labels[order], "string" if labels.dtype == object else "int64")
    x = x.take(order, 1)
    return [(keys, x[row]) for row in range(x.shape[0])]


def _labels(c: Call, clause: str, texts: str, numbers: str) -> Array:
    """The one of two lists that is given."""
    words, integers = c.attr(texts), c.attr(numbers)
    c.require(clause, bool(words) != bool(integers))
    return np.array(words, object) if words else np.array(integers, np.int64)


def _kept(labels: Array, taken: str) -> Array:
    """A mask of the labels that count among equal ones: the `first`, the `last` or `each`."""
    held = labels.tolist()
    if taken == "first":
        return np.array([label not in held[:index] for index, label in enumerate(held)])
    return np.array([taken != "last" or label not in held[index + 1 :] for index, label in enumerate(held)])


def numerals(blank: Blank, draw: Draw, to: str) -> Array:
    """Text of numbers: whole ones; for a float type also fractions."""
    integers, fractions = ["0", "1", "7", "-3", "100", "-16777216"], ["0.5", "-1.25", "3.75", "0.1"]
    pool = np.array(integers + (fractions if element_type(to).format else []), object)
    return pool[draw.below(len(pool), blank.size)]


def either_sign(drawing: Drawing) -> Array:
    """Distinct integers of both signs in no order; with enough of them, including the ends of int64."""
    order = _shuffled(drawing)
    keys = 3 * order - 3 * (drawing.size // 2) + 1
    ends = np.iinfo(np.int64)
    return np.where(order == 5, ends.max, np.where(order == 7, ends.min, keys))


def beyond(drawing: Drawing) -> Array:
    """Indices before max_map, and one that equals it."""
    order = _shuffled(drawing)
    return np.where(order == 0, drawing.attributes["max_map"], order - 1)


def below_zero(drawing: Drawing) -> Array:
    """Indices before max_map, and a negative one."""
    return _shuffled(drawing) - 1


def entries(drawing: Drawing) -> Array:
    """Distinct entries of the vocabulary, in no order."""
    vocabulary = _vocabulary(drawing)
    order = np.argsort(drawing.draw.bits(len(vocabulary)), axis=1, kind="stable")
    return vocabulary[order[:, : drawing.size]]


def strangers(drawing: Drawing) -> Array:
    """Entries of the vocabulary, and one other."""
    keys = entries(drawing)
    keys[:, -1:] = "stranger" if drawing.type.kind == "string" else -99
    return keys


def _vocabulary(drawing: Drawing) -> Array:
    """The vocabulary's entries of the keys' type, each once; whole numbers if there are none."""
    name = "string_vocabulary" if drawing.type.kind == "string" else "int64_vocabulary"
    return np.array([*dict.fromkeys(drawing.attributes.get(name) or range(drawing.size))], object)


def _shuffled(drawing: Drawing) -> Array:
    return np.argsort(drawing.draw.bits(drawing.size), axis=1, kind="stable")
