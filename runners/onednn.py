"""oneDNN Graph's operations on the CPU, each compiled as a graph of its own."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

import numpy as np

from ..cases.elements import Array, content, element_type, from_content
from ..cases.program import Input, Output, Program
from ..cases.runner import Executable, Reason, Unsupported
from .onednn_graph import make_partition
from .onednn_library import LogicalTensor, OneDnn, OneDnnError

REASONS: Final[Mapping[str, Reason]] = {
    "out_of_memory": "memory",
    "invalid_arguments": "invalid",
    "invalid_graph": "invalid",
    "invalid_graph_op": "invalid",
    "invalid_shape": "shape",
    "invalid_data_type": "type",
}
"""What a status tells about a refusal."""

_NOT_IMPLEMENTED = "unimplemented"  # the status that says no more than that
_UNWRITTEN = 0xFF  # NaN, or -1: what the library leaves out must not look like an earlier answer
_ROOM = 64  # bytes behind an array without elements, which the library may touch


class OneDnnGraph:
    """oneDNN Graph on the CPU, one thread."""

    name = "onednn"
    standards: tuple[str, ...] = ("onednn",)

    def __init__(self) -> None:
        self._library = OneDnn()
        weakref.finalize(self, self._library.close)

    def version(self) -> str:
        """Return oneDNN's version."""
        return self._library.version

    def describe(self) -> dict[str, str]:
        """Return which build of the library this is, and what it runs on."""
        return self._library.describe()

    def prepare(self, program: Program, /) -> Executable:
        """Compile `program`. Raises Unsupported, or OneDnnError with what a function returned."""
        try:
            return _Compiled(self, self._library, program)
        except OneDnnError as error:
            if error.status == _NOT_IMPLEMENTED:
                raise Unsupported(str(error)) from error
            raise

    def reason(self, error: BaseException, /) -> Reason:
        """Return why oneDNN refused, as far as its status tells."""
        if isinstance(error, MemoryError):
            return "memory"
        return REASONS.get(error.status, "other") if isinstance(error, OneDnnError) else "other"


class _Compiled:
    """A compiled partition with its tensors, which are destroyed with it."""

    def __init__(self, runner: OneDnnGraph, library: OneDnn, program: Program) -> None:
        self._runner = runner  # its engine outlives what was made on it
        self._library = library
        with ExitStack() as handles:
            partition = make_partition(library, handles, program)
            self._given = [_Given(i) for i in program.inputs if i is not None]
            self._handle = library.create(handles, "graph_compiled_partition", partition.handle)
            library.call(
                "graph_partition_compile",
                *(partition.handle, self._handle),
                *(len(partition.inputs), _pointers(partition.inputs)),
                *(len(partition.outputs), _pointers(partition.outputs)),
                library.engine,
            )
            inferred = [self._inferred(output) for output in partition.outputs]
            self._answers = [_Answer(library, *pair) for pair in zip(inferred, program.answers, strict=True)]
            self._in = _tensors(library, handles, partition.inputs)
            self._out = _tensors(library, handles, inferred)
            weakref.finalize(self, handles.pop_all().close)

    def run(self, inputs: Sequence[Array], /) -> Sequence[Array]:
        """Return the outputs. Raises Unsupported, or OneDnnError with what a function returned."""
        fed = iter(inputs)
        arrays = [given.laid_out(fed) for given in self._given]
        buffers = [answer.buffer() for answer in self._answers]
        try:
            self._execute(arrays, buffers)
        except OneDnnError as error:
            if error.status == _NOT_IMPLEMENTED:
                raise Unsupported(str(error)) from error
            raise
        return [answer.view(buffer) for answer, buffer in zip(self._answers, buffers, strict=True)]

    def _execute(self, arrays: Sequence[Array], buffers: Sequence[Array]) -> None:
        library = self._library
        for tensor, array in zip([*self._in, *self._out], [*arrays, *buffers], strict=True):
            # The attribute `ctypes` of an array says the same three times as slowly.
            library.call("graph_tensor_set_data_handle", tensor, array.__array_interface__["data"][0])
        library.call(
            "graph_compiled_partition_execute",
            *(self._handle, library.stream),
            *(len(arrays), self._in, len(buffers), self._out),
        )
        library.call("stream_wait", library.stream)

    def _inferred(self, output: LogicalTensor) -> LogicalTensor:
        """Return an output as the library compiled it, with its shape and strides."""
        tensor = LogicalTensor()
        by_id = (self._handle, output.id, ctypes.byref(tensor))
        self._library.call("graph_compiled_partition_query_logical_tensor", *by_id)
        return tensor


class _Given:
    """What an input was compiled for."""

    def __init__(self, given: Input) -> None:
        self._name = given.name
        self._dims = given.dims
        self._element = element_type(given.type)
        self._constant = None if given.constant is None else given.array()

    def laid_out(self, fed: Iterator[Array]) -> Array:
        """Return the constant, or else the next array, in C order; ValueError if it is of another type or shape."""
        array = next(fed) if self._constant is None else self._constant
        if array.shape != self._dims or array.dtype != self._element.dtype:
            compiled, is_given = f"{self._element.dtype} {self._dims}", f"{array.dtype} {array.shape}"
            raise ValueError(f"{self._name} was compiled for {compiled} and is given {is_given}")
        if array.size == 0:
            return np.zeros(_ROOM, np.uint8)
        if self._element.is_packed:
            return np.frombuffer(content(array), np.uint8)
        return array if array.flags.c_contiguous else array.copy()


class _Answer:
    """How an output lies in memory."""

    def __init__(self, library: OneDnn, tensor: LogicalTensor, output: Output) -> None:
        self._element = element_type(output.type)
        self._dtype = self._element.dtype
        self._shape = tuple(tensor.dims[: tensor.ndims])
        self._strides = tuple(s * self._dtype.itemsize for s in tensor.strides[: tensor.ndims])
        size = ctypes.c_size_t()
        library.call("graph_logical_tensor_get_mem_size", ctypes.byref(tensor), ctypes.byref(size))
        self._size = max(size.value, _ROOM)

    def buffer(self) -> Array:
        """Return memory that holds nothing yet."""
        empty = np.empty(self._size, np.uint8)
        empty.fill(_UNWRITTEN)
        return empty

    def view(self, buffer: Array) -> Array:
        """Return the tensor in `buffer`."""
        if self._element.is_packed:
            held = buffer[: self._element.size(math.prod(self._shape))]
            return from_content(self._element.name, self._shape, held.tobytes())
        return np.ndarray(self._shape, self._dtype, buffer, 0, self._strides)


def _pointers(tensors: Sequence[LogicalTensor]) -> Any:
    return (ctypes.POINTER(LogicalTensor) * max(1, len(tensors)))(*map(ctypes.pointer, tensors))


def _tensors(library: OneDnn, handles: ExitStack, described: Sequence[LogicalTensor]) -> Any:
    """Return tensors without memory yet, as the array that the library takes."""
    made = [library.create(handles, "graph_tensor", ctypes.byref(t), library.engine, None) for t in described]
    return (ctypes.c_void_p * max(1, len(made)))(*(handle.value for handle in made))
