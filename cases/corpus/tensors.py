"""Tensor files: named tensors in one npz, or values as ONNX messages, with the same bytes on every machine."""

from __future__ import annotations

import ast
import io
import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..elements import (
    Array,
    bits_of,
    canonical,
    content,
    element_type,
    element_types,
    from_bits,
    from_content,
    from_tensor_proto,
    tensor_proto,
    type_of,
)
from ..program import Structure, TypeExpression, held_by, parse_type
from .files import ArchiveFiles, ArchiveSink, CorpusError

if TYPE_CHECKING:
    from onnx import TensorProto

_MAGIC = b"\x93NUMPY\x01\x00"
_ALIGNED = 64
_HEADER = re.compile(r"\{'descr': '([<|][a-z]\d{1,2})', 'fortran_order': False, 'shape': (\([\d, ]*\)), \}")


def write_npz(tensors: Mapping[str, Array]) -> bytes:
    """Return tensors as an uncompressed npz; see `stored` for types that NumPy lacks."""
    written = io.BytesIO()
    sink = ArchiveSink(written)
    for name, array in tensors.items():
        sink.write(f"{name}.npy", write_npy(array))
    sink.close()
    return written.getvalue()


def read_npz(content: bytes, file: str) -> dict[str, Array]:
    """Read an npz; types that NumPy lacks are returned as `stored`. Raises CorpusError, which names `file`."""
    files = ArchiveFiles(content, file)
    return {path.removesuffix(".npy"): read_npy(files.read(path), f"{file}: {path}") for path in files.entries()}


def write_npy(array: Array) -> bytes:
    """Return an array as an npy of version 1.0, in C order and little-endian."""
    plain = stored(array)
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    # NumPy's own function pads differently in different versions
    preamble = f"{{'descr': '{plain.dtype.str}', 'fortran_order': False, 'shape': {plain.shape!r}, }}"
    room = -(len(_MAGIC) + 2 + len(preamble) + 1) % _ALIGNED
    header = (preamble + " " * room + "\n").encode()
    return _MAGIC + struct.pack("<H", len(header)) + header + plain.tobytes()


def read_npy(content: bytes, file: str) -> Array:
    """Read an npy that `write_npy` wrote. Raises CorpusError, which names `file`."""
    start = len(_MAGIC) + 2
    size = struct.unpack_from("<H", content, len(_MAGIC))[0] if len(content) >= start else 0
    header = _HEADER.fullmatch(content[start : start + size].decode("ascii", "replace").rstrip())
    if content[: len(_MAGIC)] != _MAGIC or header is None:
        raise CorpusError(f"{file}: not an npy of version 1.0 in C order and little-endian")
    try:
        dtype, shape = np.dtype(header[1]), ast.literal_eval(header[2])
    except (TypeError, ValueError, SyntaxError, MemoryError):
        raise CorpusError(f"{file}: its header cannot be read: {header[0]}") from None
    shape = shape if isinstance(shape, tuple) else (shape,)
    return _array(content[start + size :], dtype, shape, file)


def stored(array: Array) -> Array:
    """Return an array in a type that npy supports: the bits of types that NumPy lacks, the content of strings as bytes.

    Strings lose their shape.
    """
    name = type_of(array)
    if name == "string":
        return np.frombuffer(content(array), np.uint8)
    return bits_of(array) if name in element_types() and array.dtype.isbuiltin != 1 else array


def restored(array: Array, name: str, shape: Sequence[int]) -> Array:
    """Return the array that `stored` was given; ValueError if type or shape differ."""
    element = element_type(name)
    if array.dtype == element.dtype:
        typed = array
    elif element.kind == "string" and array.dtype == np.uint8 and array.ndim == 1:
        return from_content(name, shape, array.tobytes())
    elif array.dtype.kind == "u" and array.itemsize == element.dtype.itemsize and element.dtype.isbuiltin != 1:
        if element.is_packed and bool((array >> element.bits).any()):
            raise ValueError(f"bits set above the width of {name}")
        typed = from_bits(name, array)
    else:
        raise ValueError(f"read {array.dtype} {list(array.shape)}")
    if typed.shape != tuple(shape):
        raise ValueError(f"read {typed.dtype} {list(typed.shape)}")
    return typed


def value_file(name: str, type_: str, structure: Structure, arrays: Iterator[Array]) -> bytes:
    """Return a value as the bytes of ONNX's TensorProto, SequenceProto, OptionalProto or MapProto.

    `arrays` yields its tensors; the function takes as many as the value has.
    """
    written: bytes = _value_proto(parse_type(type_), structure, arrays, name).SerializeToString(deterministic=True)
    return written


def read_value_file(content: bytes, type_: str, file: str) -> tuple[list[Array], Structure]:
    """Read a value of a type that `value_file` wrote: its tensors, and its structure with their dimensions.

    Raises CorpusError, which names `file`.
    """
    arrays: list[Array] = []
    expression = parse_type(type_)
    message = parsed(_MESSAGES[expression.kind], content, file)
    return arrays, _read_value(expression, message, arrays, file)


def tensors_file(tensors: Mapping[str, Array]) -> bytes:
    """Return named tensors as the initializers of a GraphProto, ONNX's own list of named tensors."""
    from onnx import GraphProto  # noqa: PLC0415

    graph = GraphProto(initializer=[tensor_proto(array, name) for name, array in tensors.items()])
    written: bytes = graph.SerializeToString(deterministic=True)
    return written


def read_tensors_file(content: bytes, file: str) -> dict[str, Array]:
    """Read named tensors that `tensors_file` wrote. Raises CorpusError, which names `file`."""
    tensors = list(parsed("GraphProto", content, file).initializer)
    by_name = {tensor.name: _tensor(tensor, f"{file}: {tensor.name}") for tensor in tensors}
    if len(by_name) != len(tensors):
        raise CorpusError(f"{file}: a tensor appears twice")
    return by_name


_MESSAGES = {
    "tensor": "TensorProto",
    "sequence": "SequenceProto",
    "optional": "OptionalProto",
    "map": "MapProto",
    "sparse": "SparseTensorProto",
}
_FIELDS = {
    "tensor": ("tensor_value", 1),
    "sparse": ("sparse_tensor_value", 2),
    "sequence": ("sequence_value", 3),
    "map": ("map_value", 4),
    "optional": ("optional_value", 5),
}
"""By kind, the field of OptionalProto (SequenceProto adds an s), and the number in their elem_type."""


def _value_proto(expression: TypeExpression, structure: Structure, arrays: Iterator[Array], name: str) -> Any:
    import onnx  # noqa: PLC0415

    message = getattr(onnx, _MESSAGES[expression.kind])
    match expression.kind:
        case "tensor":
            return tensor_proto(next(arrays), name)
        case "map":
            keys, values = next(arrays), next(arrays)
            held = onnx.SequenceProto(elem_type=1, tensor_values=[tensor_proto(values)])
            fields = {"name": name, "key_type": element_type(expression.key).onnx, "values": held}
            if expression.key == "string":
                return message(**fields, string_keys=[entry.encode("utf-8", "surrogateescape") for entry in keys])
            return message(**fields, keys=keys.tolist())
        case "sparse":
            values, indices = next(arrays), next(arrays)
            dims = [int(entry) for entry in structure.dims or ()]
            return message(values=tensor_proto(values, name), indices=tensor_proto(indices), dims=dims)
    held_type = held_by(expression)
    field, number = _FIELDS[held_type.kind]
    parts = [_value_proto(held_type, item, arrays, "") for item in structure.items]
    if expression.kind == "sequence":
        return message(name=name, elem_type=number, **{f"{field}s": parts})
    # onnx reads an empty optional whose elem_type is undefined
    return message(name=name, elem_type=number, **{field: parts[0]}) if parts else message(name=name, elem_type=0)


def _read_value(expression: TypeExpression, message: Any, arrays: list[Array], file: str) -> Structure:
    match expression.kind:
        case "tensor":
            arrays.append(_tensor(message, file))
            if type_of(arrays[-1]) != expression.element:
                raise CorpusError(f"{file}: a tensor of {type_of(arrays[-1])}; its type says {expression}")
            return Structure("tensor", arrays[-1].shape)
        case "map":
            return _read_map(expression, message, arrays, file)
        case "sparse":
            values, indices = _tensor(message.values, file), _tensor(message.indices, file)
            arrays += [values, indices]
            if type_of(values) != expression.element or (type_of(indices), indices.shape) != ("int64", values.shape):
                raise CorpusError(f"{file}: not a sparse tensor of {expression.element} with linear indices")
            return Structure("sparse", tuple(message.dims), count=len(values))
    held_type = held_by(expression)
    field, number = _FIELDS[held_type.kind]
    is_sequence = expression.kind == "sequence"
    parts = list(getattr(message, f"{field}s")) if is_sequence else [getattr(message, field)] * message.HasField(field)
    if message.elem_type != number and (parts or message.elem_type):
        raise CorpusError(f"{file}: its elem_type {message.elem_type} is not the type {expression}")
    items = tuple(_read_value(held_type, part, arrays, file) for part in parts)
    return Structure(expression.kind, items=items)


def _read_map(expression: TypeExpression, message: Any, arrays: list[Array], file: str) -> Structure:
    held = list(message.values.tensor_values)
    values = _tensor(held[0], file) if len(held) == 1 else None
    keys = canonical(np.array([*message.string_keys, b""], object)[:-1])
    if expression.key != "string":
        keys = np.array(list(message.keys), np.int64)
        if message.key_type == element_type(expression.key).onnx:
            keys = keys.astype(element_type(expression.key).dtype)
    wanted = (expression.key, expression.element, keys.shape)
    if values is None or (type_of(keys), type_of(values), values.shape) != wanted:
        raise CorpusError(f"{file}: not a {expression} with its values in one tensor")
    arrays += [keys, values]
    return Structure("map", count=len(keys))


def parsed(kind: str, content: bytes, file: str) -> Any:
    """Return the ONNX message of this kind that a file holds. Raises CorpusError, which names `file`."""
    import onnx  # noqa: PLC0415 - the npz form does without
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    message = getattr(onnx, kind)()
    try:
        message.ParseFromString(content)
    except (DecodeError, ValueError) as error:
        raise CorpusError(f"{file}: no {kind} of ONNX: {error}") from None
    return message


def _tensor(tensor: TensorProto, file: str) -> Array:
    try:
        return from_tensor_proto(tensor)
    except ValueError as error:
        raise CorpusError(f"{file}: {error}") from None


def _array(content: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], file: str) -> Array:
    if any(extent < 0 for extent in shape) or math.prod(shape) * dtype.itemsize != len(content):
        problem = f"{len(content):,} bytes; that is not the size of shape {list(shape)} of {dtype}"
        raise CorpusError(f"{file}: {problem}")
    try:
        return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
    except ValueError as error:
        raise CorpusError(f"{file}: {error}") from None
