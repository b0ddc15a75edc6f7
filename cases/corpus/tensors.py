"""Tensors in files: named ones in one npz, or each a TensorProto of ONNX; the same bytes on every machine."""

from __future__ import annotations

import ast
import io
import math
import re
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..elements import Array, element_type, element_types, type_of
from .files import ArchiveFiles, ArchiveSink, CorpusError

if TYPE_CHECKING:
    from onnx import TensorProto

_MAGIC = b"\x93NUMPY\x01\x00"
_ALIGNED = 64
_HEADER = re.compile(r"\{'descr': '([<|][a-z]\d)', 'fortran_order': False, 'shape': (\([\d, ]*\)), \}")


def write_npz(tensors: Mapping[str, Array]) -> bytes:
    """Return tensors as an uncompressed npz; a bfloat16 is written as the uint16 of its bits."""
    written = io.BytesIO()
    sink = ArchiveSink(written)
    for name, array in tensors.items():
        sink.write(f"{name}.npy", write_npy(array))
    sink.close()
    return written.getvalue()


def read_npz(content: bytes, file: str) -> dict[str, Array]:
    """Read an npz; a bfloat16 comes as uint16. Raises CorpusError that names `file`."""
    files = ArchiveFiles(content, file)
    return {path.removesuffix(".npy"): read_npy(files.read(path), f"{file}: {path}") for path in files.entries()}


def write_npy(array: Array) -> bytes:
    """Return an array as an npy of version 1.0, in C order and little-endian."""
    plain = _plain(array)
    # not by NumPy's own function, whose padding differs between its versions
    told = f"{{'descr': '{plain.dtype.str}', 'fortran_order': False, 'shape': {plain.shape!r}, }}"
    room = -(len(_MAGIC) + 2 + len(told) + 1) % _ALIGNED
    header = (told + " " * room + "\n").encode()
    return _MAGIC + struct.pack("<H", len(header)) + header + plain.tobytes()


def read_npy(content: bytes, file: str) -> Array:
    """Read what `write_npy` writes. Raises CorpusError that names `file`."""
    start = len(_MAGIC) + 2
    size = struct.unpack_from("<H", content, len(_MAGIC))[0] if len(content) >= start else 0
    header = _HEADER.fullmatch(content[start : start + size].decode("ascii", "replace").rstrip())
    if content[: len(_MAGIC)] != _MAGIC or header is None:
        raise CorpusError(f"{file}: no npy of version 1.0 in C order and little-endian")
    try:
        dtype, shape = np.dtype(header[1]), ast.literal_eval(header[2])
    except (TypeError, ValueError, SyntaxError, MemoryError):
        raise CorpusError(f"{file}: its header cannot be read: {header[0]}") from None
    shape = shape if isinstance(shape, tuple) else (shape,)
    return _array(content[start + size :], dtype, shape, file)


def write_tensor(name: str, array: Array) -> TensorProto:
    """Return an array as a TensorProto with raw bytes."""
    from onnx import TensorProto  # noqa: PLC0415 - the npz form does without

    number = element_type(type_of(array)).onnx
    return TensorProto(name=name, data_type=number, dims=array.shape, raw_data=_plain(array).tobytes())


def tensor_file(name: str, array: Array) -> bytes:
    """Return an array as the bytes of a TensorProto."""
    content: bytes = write_tensor(name, array).SerializeToString(deterministic=True)
    return content


def tensors_file(tensors: Mapping[str, Array]) -> bytes:
    """Return named tensors as the initializers of a GraphProto, ONNX's own list of named tensors."""
    from onnx import GraphProto  # noqa: PLC0415

    graph = GraphProto(initializer=[write_tensor(name, array) for name, array in tensors.items()])
    content: bytes = graph.SerializeToString(deterministic=True)
    return content


def read_tensor_file(content: bytes, file: str) -> Array:
    """Read what `tensor_file` writes. Raises CorpusError that names `file`."""
    from onnx import TensorProto  # noqa: PLC0415

    return _tensor(_parsed(TensorProto(), content, file), file)


def read_tensors_file(content: bytes, file: str) -> dict[str, Array]:
    """Read what `tensors_file` writes. Raises CorpusError that names `file`."""
    from onnx import GraphProto  # noqa: PLC0415

    tensors = list(_parsed(GraphProto(), content, file).initializer)
    found = {tensor.name: _tensor(tensor, f"{file}: {tensor.name}") for tensor in tensors}
    if len(found) != len(tensors):
        raise CorpusError(f"{file}: a tensor stands there twice")
    return found


def _parsed(message: Any, content: bytes, file: str) -> Any:
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    try:
        message.ParseFromString(content)
    except (DecodeError, ValueError) as error:
        raise CorpusError(f"{file}: no message of ONNX: {error}") from None
    return message


def _tensor(tensor: TensorProto, file: str) -> Array:
    known = next((t for t in element_types().values() if t.onnx == tensor.data_type), None)
    if known is None:
        raise CorpusError(f"{file}: data_type {tensor.data_type} is none of the types of cases")
    if tensor.external_data:
        raise CorpusError(f"{file}: its content is in another file; expected raw_data")
    return _array(tensor.raw_data, known.dtype, tuple(tensor.dims), file)


def _array(content: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], file: str) -> Array:
    if any(extent < 0 for extent in shape) or math.prod(shape) * dtype.itemsize != len(content):
        told = f"{len(content):,} bytes; expected those of shape {list(shape)} of {dtype}"
        raise CorpusError(f"{file}: {told}")
    try:
        return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
    except ValueError as error:
        raise CorpusError(f"{file}: {error}") from None


def _plain(array: Array) -> Array:
    """Return an array whose type has a name in an npy: bfloat16 as uint16; little-endian."""
    bits = array.view(np.uint16) if type_of(array) == "bfloat16" else array
    return bits.astype(bits.dtype.newbyteorder("<"), copy=False)
