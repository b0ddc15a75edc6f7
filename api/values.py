"""Users' values as arrays and attributes: NumPy, DLPack, `__array__`, plain Python values, ONNX messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..cases.elements import Array, canonical, element_type, element_types, from_tensor_proto, type_of
from ..cases.errors import OpconformError
from ..cases.program import AttributeValue, Body, SparseTensor, Structure, Tensor, TypeExpression, flatten, held_by
from ..specs.model import AttributeSignature

_INTEGER = frozenset({"int", "s64"})
_REAL = frozenset({"float", "f32"})
_TRUTH = frozenset({"bool", "boolean"})
_TORCH = "torch."


def array_of(value: Any) -> Array:
    """Return a user's tensor as an array on the processor: its own memory where the library lends it.

    Accepts NumPy arrays and scalars, numbers, text, nested lists, and objects with `__array__` or `__dlpack__`. Raises
    ValueError for others, and for tensors that are on a device.
    """
    if not isinstance(value, np.ndarray):
        value = _lent(value)
    try:
        array = canonical(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected a tensor: {error}") from None
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("="))
    if type_of(array) not in element_types():
        raise ValueError(f"expected elements of a type such as float32; read {array.dtype}")
    return array


def _lent(value: Any) -> Any:
    if hasattr(value, "detach"):  # a tensor that a gradient is asked of lends its memory only without it
        value = value.detach()
    kind = str(getattr(value, "dtype", ""))
    name = kind.removeprefix(_TORCH)
    try:
        if kind.startswith(_TORCH) and name.startswith(("bfloat16", "float8")):
            return _of_bits(value, name)
        if hasattr(value, "__array__") or not hasattr(value, "__dlpack__"):
            return np.asarray(value)
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        where = getattr(value, "device", None)
        hint = f"; it is on {where}: copy it to the processor first" if where is not None else ""
        raise ValueError(f"expected a tensor; read {type(value).__name__}, which gives none: {error}{hint}") from None


def _of_bits(value: Any, name: str) -> Array:
    """Return a torch tensor of a type that NumPy lacks, by its bits."""
    import torch  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - the tensor's own library

    short = name.replace("_", "").replace("e8m0fnu", "e8m0")
    if short not in element_types():
        raise ValueError(f"expected elements of a type such as float32; read {name}")
    dtype = element_type(short).dtype
    bits = value.contiguous().view({1: torch.uint8, 2: torch.int16}[dtype.itemsize])
    return np.asarray(bits.numpy()).view(dtype)


def fits(expression: TypeExpression, value: Any) -> bool:
    """Return whether a prepared value (see `prepared`) can be of a type."""
    match expression.kind:
        case "tensor":
            return isinstance(value, np.ndarray) and type_of(value) == expression.element
        case "sequence":
            return isinstance(value, list) and all(fits(held_by(expression), entry) for entry in value)
        case "optional":
            return value is None or fits(held_by(expression), value)
        case "map":
            return isinstance(value, dict) and _entries_fit(expression, value)
    return isinstance(value, tuple)


def _entries_fit(expression: TypeExpression, entries: Mapping[Any, Any]) -> bool:
    keys, values = (_scalars(element_type(name).kind) for name in (expression.key, expression.element))
    return all(isinstance(key, keys) for key in entries) and all(
        isinstance(value, values) for value in entries.values()
    )


def _scalars(kind: str) -> tuple[type, ...]:
    return (str,) if kind == "string" else (float, np.floating) if kind == "float" else (int, np.integer)


def prepared(value: Any) -> Any:
    """Return a value with its tensors as arrays: a list of tensors stays a list, a dict a dict, None stays None.

    A list of numbers or text is one tensor. Raises ValueError.
    """
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)) and not _is_plain(value):
        return [prepared(entry) for entry in value]
    return array_of(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_plain, value))
    return isinstance(value, (bool, int, float, complex, str, bytes, np.generic))


def tensors_of(type_: str, value: Any) -> tuple[list[Array], Structure]:
    """Return the tensors of a value, and its structure. Raises ValueError if it is not of the type."""
    if isinstance(value, np.ndarray) and "(" not in type_:
        return [value], Structure("tensor", value.shape)
    try:
        return flatten(type_, value)
    except TypeError as error:
        raise ValueError(str(error)) from None


def described(value: Any) -> str:
    """Return a prepared value in words: `float32 [2, 3]`."""
    if isinstance(value, np.ndarray):
        return f"{type_of(value)} {list(value.shape)}"
    if isinstance(value, list):
        return f"a sequence of {', '.join(dict.fromkeys(map(described, value))) or 'nothing'}"
    return "nothing" if value is None else type(value).__name__


def attribute_value(signature: AttributeSignature, value: Any) -> AttributeValue:
    """Return a plain value as an attribute's. Raises ValueError that says which kind was expected."""
    converted = _converted(signature.kind, value)
    if converted is None:
        raise ValueError(f"attribute {signature.name}: expected {_words(signature.kind)}; read {value!r:.100}")
    return converted


def _converted(kind: str, value: Any) -> AttributeValue | None:
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and "tensor" not in kind):
        value = value.tolist()
    if kind.endswith("s"):
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            return None
        every = [_converted(kind.removesuffix("s"), entry) for entry in value]
        return None if any(entry is None for entry in every) else cast("AttributeValue", tuple(every))
    if kind == "sparse_tensor":
        return value if isinstance(value, SparseTensor) else None
    if kind == "tensor":
        return _tensor(value)
    if kind == "graph":
        return _body(value)
    return _scalar(kind, value)


def _scalar(kind: str, value: Any) -> AttributeValue | None:
    if kind in _TRUTH:
        return value if isinstance(value, bool) else None
    if kind in _INTEGER:
        return int(value) if isinstance(value, int) else None
    if kind in _REAL:
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    return value.decode() if isinstance(value, bytes) else value if isinstance(value, str) else None


def _tensor(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "raw_data"):
        return Tensor.of(from_tensor_proto(value))
    try:
        return Tensor.of(array_of(value))
    except ValueError:
        return None


def _body(value: Any) -> Body | None:
    from ..generators.operands import attribute_from  # noqa: PLC0415 - few operators have bodies

    if isinstance(value, Body) or not hasattr(value, "node"):
        return value if isinstance(value, Body) else None
    from onnx import helper  # noqa: PLC0415 - it takes long

    try:
        body = attribute_from(helper.make_attribute("body", value)).value
    except OpconformError as error:
        raise ValueError(str(error)) from None
    return body if isinstance(body, Body) else None


def _words(kind: str) -> str:
    words: Mapping[str, str] = {
        "int": "a whole number",
        "s64": "a whole number",
        "float": "a number",
        "f32": "a number",
        "string": "text",
        "bool": "True or False",
        "boolean": "True or False",
        "tensor": "a tensor",
        "graph": "a graph (onnx.GraphProto)",
        "type_proto": "a type, such as 'float32' or 'seq(float32)'",
    }
    entry_kind = kind.removesuffix("s") if kind not in words else kind
    text = words.get(entry_kind, kind)
    return text if entry_kind == kind else f"a list, each entry {text}"
