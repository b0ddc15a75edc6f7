"""Operators without inputs, whose attributes give the output: Constant."""

from __future__ import annotations

import numpy as np

from ...cases.program import SparseTensor, Tensor
from ..arithmetic.tape import Call, Value

_LISTS = {
    "value_float": "float32",
    "value_floats": "float32",
    "value_int": "int64",
    "value_ints": "int64",
    "value_string": "string",
    "value_strings": "string",
}


def constant(c: Call) -> Value:
    """The tensor in the one attribute: dense, sparse, a number or text (rank 0), or a list of these (rank 1).

    Source: ONNX Constant-1 to 25.
    """
    given = [name for name in ("value", "sparse_value", *_LISTS) if c.given(name)]
    c.require_if_stated("exactly-one", len(given) == 1)
    value = c.attr(given[0])
    if isinstance(value, SparseTensor):
        return _dense(c, value)
    if isinstance(value, Tensor):
        return c.constant(value.array(), value.type)
    type_ = _LISTS[given[0]]
    with np.errstate(over="ignore"):
        return c.constant(np.array(value, object if type_ == "string" else type_), type_)


def _dense(c: Call, sparse: SparseTensor) -> Value:
    """A sparse tensor with its zeros; indices are linear, or one row for each element."""
    values, places = sparse.values.array(), sparse.indices.array()
    flat = places if places.ndim == 1 else np.ravel_multi_index(tuple(places.T), sparse.dims)
    dense = np.full(int(np.prod(sparse.dims)), "" if values.dtype == object else 0).astype(values.dtype)
    dense[flat] = values
    return c.constant(dense.reshape(sparse.dims), sparse.values.type)
