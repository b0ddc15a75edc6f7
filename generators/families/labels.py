"""Operators that look values up in a table: LabelEncoder, CategoryMapper, OneHotEncoder."""

from __future__ import annotations

import numpy as np

from ...cases.elements import Array, element_type
from ...cases.program import Tensor
from ..arithmetic.tape import Call, Value
from ..fills import Drawing

_LISTS = {"strings": "string", "int64s": "int64", "floats": "float32", "tensor": ""}
_DEFAULTS = {"string": "_Unused"}
_FIRST_BEYOND = 2.0**63


def label_encoder(c: Call, x: Value) -> Value:
    """The value for each element as a key, or the default if it is not a key.

    x: any shape; result: the same shape. In version 1 the values of `classes_strings` are their own indices, or vice
    versa. From 2 on the two lists are parallel. Source: ONNX ai.onnx.ml LabelEncoder-1 to 4.
    """
    if c.version == 1:
        names = np.array(c.attr("classes_strings") or (), object)
        places = np.arange(len(names), dtype=np.int64)
        other = "default_string" if x.type == "string" else "default_int64"
        c.require("one-default", not c.given(other))
        if not c.given("default_int64" if x.type == "string" else "default_string"):
            c.open("no-default")
        if x.type == "string":
            return _looked_up(c, x, names, places, np.array(c.attr("default_int64"), np.int64))
        return _looked_up(c, x, places, names, np.array(c.attr("default_string"), object))
    keys, key_lists = _list(c, "keys")
    values, value_lists = _list(c, "values")
    c.require("one-list", key_lists == value_lists == 1)
    c.require("types", keys is not None and c.types["X"] == _name(keys))
    c.require_if_stated("lengths", keys is not None and values is not None and len(keys) == len(values))
    assert keys is not None
    assert values is not None
    return _looked_up(c, x, keys, values, _default(c, values))


def category_mapper(c: Call, x: Value) -> Value:
    """The integer at a text's index in the list, or vice versa; the default if it is not listed.

    x: string or int64, [C] or [N, C]; result: the other type, the same shape. Source: ONNX ai.onnx.ml CategoryMapper-1.
    """
    own, other = ("default_int64", "default_string")[:: 1 if x.type == "string" else -1]
    c.require("one-default", not c.given(other))
    if not c.given(own):
        c.open("no-default")
    c.require("rank", 1 <= x.rank <= 2)
    texts, numbers = c.attr("cats_strings"), c.attr("cats_int64s")
    if texts is None or numbers is None:
        c.open("no-list")
    c.require_if_stated("lengths", len(texts or ()) == len(numbers or ()))
    lists = np.array(texts or (), object), np.array(numbers or (), np.int64)
    keys, values = lists if x.type == "string" else lists[::-1]
    return _looked_up(c, x, keys, values, np.array(c.attr(own), values.dtype))


def one_hot_encoder(c: Call, x: Value) -> Value:
    """1 at the index of an element's category, 0 elsewhere, along a new last dimension.

    x: strings, or numbers, which are cast to int64, any shape; result: float32, x's shape and the number of categories.
    Source: ONNX ai.onnx.ml OneHotEncoder-1.
    """
    texts, numbers = c.attr("cats_strings"), c.attr("cats_int64s")
    c.require("one-list", bool(texts) != bool(numbers))
    c.require("types", (x.type == "string") == bool(texts))
    categories = np.array(texts, object) if texts else np.array(numbers, np.int64)
    taken = c.open("category-repeated") if len({*categories.tolist()}) < len(categories) else ""
    wild = ~(x.abs() < _FIRST_BEYOND) if x.kind == "real" else None
    x = x if texts else x.cast("int64")
    on = x.reshape(*x.shape, 1).equal(c.constant(categories, x.type))
    if taken in ("first", "last"):
        held = categories.tolist()
        kept = [
            label not in (held[:index] if taken == "first" else held[index + 1 :]) for index, label in enumerate(held)
        ]
        on = on & c.constant(np.array(kept), "bool")
    if not c.attr("zeros"):
        c.require("fails", on.cast("int32").sum(-1) > 0)
    y = c.constant(1, "float32").where(on, c.constant(0, "float32"))
    return y if wild is None else y.undefined(wild.reshape(*wild.shape, 1).broadcast(*y.shape))


def _list(c: Call, side: str) -> tuple[Array | None, int]:
    """The given list of `keys_…` or `values_…`, and the number of given lists."""
    lists = []
    for suffix, type_ in _LISTS.items():
        value = c.attr(f"{side}_{suffix}")
        if isinstance(value, Tensor):
            lists.append(value.array())
        elif value is not None:
            lists.append(np.array(value, object if type_ == "string" else type_))
    return (lists[0] if lists else None), len(lists)


def _name(array: Array) -> str:
    return "string" if array.dtype == object else array.dtype.name


def _default(c: Call, values: Array) -> Array:
    """The result for an element that is not a key.

    The default that "matches" the values; if one with their type but another name is given, the choice is open.
    """
    type_, tensor = _name(values), c.attr("default_tensor")
    own = {"string": "default_string", "int64": "default_int64", "float32": "default_float"}.get(type_)
    of_tensor = c.given("values_tensor")
    if isinstance(tensor, Tensor):
        c.require("default-type", tensor.type == type_)
        if of_tensor or c.open("default-by-name") == "by-type":
            return tensor.array().reshape(())
    elif of_tensor and own is not None and c.given(own) and c.open("default-by-name") == "by-name":
        own = None
    if own is not None:
        return np.array(c.attr(own), values.dtype)
    return np.array(_DEFAULTS.get(type_, -1 if element_type(type_).is_integer else -0.0), values.dtype)


def _looked_up(c: Call, x: Value, keys: Array, values: Array, default: Array) -> Value:
    """The values of keys; among equal keys the last counts in version 4 of LabelEncoder, elsewhere it is open."""
    later = len({_bits(key) for key in keys}) == len(keys) or "key-repeated" in c.clauses
    silence = "key-repeated-early" if c.silent("key-repeated-early") else "category-repeated"
    order = range(len(keys)) if later or c.open(silence) == "last" else range(len(keys) - 1, -1, -1)
    y = c.constant(default, _name(values)).broadcast(*x.shape)
    for index in order:
        key = keys[index : index + 1].reshape(())
        y = c.constant(values[index : index + 1].reshape(()), _name(values)).where(_matches(c, x, key), y)
    return y


def _matches(c: Call, x: Value, key: Array) -> Value:
    """A mask of the elements equal to the key. All NaN are equal; version 2 distinguishes the zeros."""
    if key.dtype.kind == "f" and np.isnan(key):
        return x.isnan()
    same = x.equal(c.constant(key, x.type))
    if key.dtype.kind == "f" and key == 0:
        positive = _negative(x) if np.signbit(key) else ~_negative(x)
        if "bitwise" in c.clauses or c.open("zero-key", same & ~positive) == "by-sign":
            return same & positive
    return same


def _negative(x: Value) -> Value:
    """A mask of zeros with their sign bit set."""
    return (1.0 / x) < 0.0


def _bits(key: object) -> object:
    return key if isinstance(key, str) else np.asarray(key).tobytes()


def among(drawing: Drawing) -> Array:
    """Keys of the table, in order from a random one, and as many elements that are not keys."""
    keys = _keys(drawing)
    if drawing.type.kind == "string":
        others: list[object] = ["c", "Amy ", "amy", "\u00fc"]
    elif drawing.attributes.get("classes_strings"):
        keys, others = np.arange(len(keys)).astype(object), [-1, len(keys), 100, -100]
    else:
        others = [1, -3, 7, 100, *([-0.0, np.nan, np.inf] if drawing.type.format else [])]
    pool = np.array([*keys.tolist(), *others, 0][: None if drawing.type.kind != "string" else -1], object)
    return pool[drawing.draw.below(len(pool), drawing.size)]


def known(drawing: Drawing) -> Array:
    """Only keys of the table."""
    keys = _keys(drawing)
    return keys[drawing.draw.below(len(keys), drawing.size)]


def _keys(drawing: Drawing) -> Array:
    """The table's keys; if a table is used in both directions, the keys of the drawn type."""
    lists = [
        value
        for name, value in sorted(drawing.attributes.items())
        if name.startswith(("keys_", "classes_", "cats_")) and value
    ]
    text = drawing.type.kind == "string"
    keys = next((values for values in lists if len(lists) == 1 or isinstance(values[0], str) == text), ())
    return np.asarray(keys.array() if isinstance(keys, Tensor) else keys, object)
