"""oneDNN Graph on the CPU: makes a graph from a program, finds out why it is refused, and runs it."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Any, Final

import numpy as np

from ...cases.elements import Array, content, element_type, from_content
from ...cases.program import Attribute, Input, Output, Program
from ...cases.runner import Executable, Reason, Unsupported
from .base import Refusing
from .onednn_companions import ALONE, Companion, Company, company
from .onednn_library import ATTRIBUTES, CPU, MOST_DIMENSIONS, OPERATIONS, SINCE, LogicalTensor, OneDnn, OneDnnError

_ANY, _STRIDED = 1, 2  # dnnl_graph_layout_type_t
_VARIABLE, _CONSTANT = 1, 2  # dnnl_graph_tensor_property_t
_UNKNOWN_RANK = -1
_FUSION = 1  # dnnl_graph_partition_policy_t; applications use this one
_SETTERS: Final[Mapping[str, tuple[str, Any]]] = {
    "s64": ("s64", ctypes.c_int64),
    "s64s": ("s64", ctypes.c_int64),
    "f32": ("f32", ctypes.c_float),
    "f32s": ("f32", ctypes.c_float),
    "bool": ("bool", ctypes.c_uint8),
}


@dataclass(frozen=True, slots=True)
class Partition:
    """The partition of a graph, and its input and output tensors; outputs have an unknown shape.

    `beside` has the operations of the graph beside the program's own. Their operands are the last inputs.
    """

    handle: ctypes.c_void_p
    inputs: Sequence[LogicalTensor]
    outputs: Sequence[LogicalTensor]
    beside: Company


@dataclass(frozen=True, slots=True)
class _Step:
    """An operation of a graph, with its tensors."""

    name: str
    attributes: Sequence[Attribute]
    inputs: Sequence[LogicalTensor]
    outputs: Sequence[LogicalTensor]


def make_partition(library: OneDnn, handles: ExitStack, program: Program) -> Partition:
    """Return the partition of a program; `handles` destroys the objects made on the way.

    Raises Unsupported for anything that the library's enumerations lack and for an unsupported partition; OneDnnError.
    """
    partition = _supported(library, handles, program)
    if partition is None:
        raise Unsupported(*_refusal(library, program))
    return partition


def _supported(library: OneDnn, handles: ExitStack, program: Program) -> Partition | None:
    """Return the partition of a program, or else that with the companions of its operation; None if none is supported.

    Raises what `make_partition` raises.
    """
    partition = _partition(library, handles, program)
    if _is_supported(library, partition):
        return partition
    beside = company(program)
    if beside == ALONE:
        return None
    try:
        partition = _partition(library, handles, program, beside)
    except (OneDnnError, Unsupported):
        return None
    return partition if _is_supported(library, partition) else None


def _partition(library: OneDnn, handles: ExitStack, program: Program, beside: Company = ALONE) -> Partition:
    own = _given(program)
    inputs = [_input(library, number, i) for number, i in enumerate([*own, *beside.operands])]
    outputs = [_output(library, number, o) for number, o in enumerate(program.answers, len(inputs))]
    operands, free = iter(inputs[len(own) :]), count(len(inputs) + len(outputs))
    heads = [*inputs[:1], *(tensor_of_any_rank(library, next(free), inputs[0].data_type) for _ in beside.before)]
    tails = [*(tensor_of_any_rank(library, next(free), outputs[0].data_type) for _ in beside.after), *outputs[:1]]
    graph = library.create(handles, "graph_graph", CPU)

    def follow(companions: Sequence[Companion], chain: Sequence[LogicalTensor]) -> Iterator[_Step]:
        for companion, (taken, made) in zip(companions, pairwise(chain), strict=True):
            yield _Step(
                companion.name,
                companion.attributes,
                [taken, *([] if companion.operand is None else [next(operands)])],
                [made],
            )

    taken, made = [*heads[-1:], *inputs[1 : len(own)]], [*tails[:1], *outputs[1:]]
    tested = _Step(program.operator.name, program.attributes, taken, made)
    for step in (*follow(beside.before, heads), tested, *follow(beside.after, tails)):
        library.call("graph_add_op", graph, _operation(library, handles, next(free), step))
    library.call("graph_graph_finalize", graph)
    library.call("graph_graph_filter", graph, _FUSION)
    return Partition(_only_partition(library, handles, graph), inputs, outputs, beside)


def _only_partition(library: OneDnn, handles: ExitStack, graph: ctypes.c_void_p) -> ctypes.c_void_p:
    partitions = ctypes.c_size_t()
    library.call("graph_graph_get_partition_num", graph, ctypes.byref(partitions))
    if partitions.value != 1:
        raise Unsupported(f"dnnl_graph_graph_get_partition_num: {partitions.value} partitions of one graph")
    handle = ctypes.c_void_p()
    library.call("graph_graph_get_partitions", graph, 1, ctypes.byref(handle))
    handles.callback(library.call, "graph_partition_destroy", handle)
    return handle


def _operation(library: OneDnn, handles: ExitStack, number: int, step: _Step) -> ctypes.c_void_p:
    name = step.name
    if name not in OPERATIONS or not _is_known(library, name):
        raise Unsupported(f"oneDNN Graph {library.version} has no operation {name}", "operator-version")
    operation = _bare(library, handles, name, number)
    for tensor in step.inputs:
        library.call("graph_op_add_input", operation, ctypes.byref(tensor))
    for tensor in step.outputs:
        library.call("graph_op_add_output", operation, ctypes.byref(tensor))
    for attribute in step.attributes:
        since = SINCE.get((name, attribute.name), (0, 0))
        if library.release < since:
            words = f"{name} has {attribute.name} since oneDNN {since[0]}.{since[1]}"
            raise Unsupported(f"{words}; this is {library.version}", "attribute")
        _set(library, operation, attribute)
    return operation


def _bare(library: OneDnn, handles: ExitStack, name: str, number: int = 0) -> ctypes.c_void_p:
    return library.create(handles, "graph_op", number, OPERATIONS[name], f"{name} {number}".encode())


def _is_known(library: OneDnn, name: str) -> bool:
    """Return whether the library has a schema for the operation; one without inputs violates any schema.

    An operation without a schema is accepted, but the library may crash on it later.
    """
    with ExitStack() as handles:
        graph = library.create(handles, "graph_graph", CPU)
        try:
            library.call("graph_add_op", graph, _bare(library, handles, name))
        except OneDnnError:
            return True
    return False


def _given(program: Program) -> list[Input]:
    """Return the inputs up to the last one that is given."""
    given = [i for i in program.inputs if i is not None]
    if any(i is None for i in program.inputs[: len(given)]):
        raise Unsupported("oneDNN Graph identifies inputs by position, so only the last ones can be omitted")
    return given


def _input(library: OneDnn, number: int, given: Input) -> LogicalTensor:
    if any(isinstance(d, str) for d in given.dims):
        raise Unsupported(
            f"{given.name} has symbolic dimensions, and partitions are compiled for fixed sizes", "dynamic"
        )
    if len(given.dims) > MOST_DIMENSIONS:
        words = f"{given.name} has {len(given.dims)} dimensions, a logical tensor at most {MOST_DIMENSIONS}"
        raise Unsupported(words, "rank")
    dims = (ctypes.c_int64 * MOST_DIMENSIONS)(*map(int, given.dims))
    tensor = LogicalTensor()
    described = (ctypes.byref(tensor), number, _type(library, given.type), len(given.dims), dims)
    kept = _VARIABLE if given.constant is None else _CONSTANT
    if given.strides is None:
        library.call("graph_logical_tensor_init_with_dims", *described, _STRIDED, kept)
    else:
        strides = (ctypes.c_int64 * MOST_DIMENSIONS)(*given.strides)
        library.call("graph_logical_tensor_init_with_strides", *described, strides, kept)
    return tensor


def _output(library: OneDnn, number: int, output: Output) -> LogicalTensor:
    # a known rank would affect what the library infers, as in oneDNN 3.2 for a scalar
    return tensor_of_any_rank(library, number, _type(library, output.type), _ANY if output.free else _STRIDED)


def tensor_of_any_rank(library: OneDnn, number: int, data_type: int, layout: int = _STRIDED) -> LogicalTensor:
    """Return the description of a tensor with this id, of unknown rank."""
    tensor = LogicalTensor()
    described = (number, data_type, _UNKNOWN_RANK, layout, _VARIABLE)
    library.call("graph_logical_tensor_init", ctypes.byref(tensor), *described)
    return tensor


def _type(library: OneDnn, name: str) -> int:
    number = library.type_number(name)
    if number is None:
        raise Unsupported(f"oneDNN {library.version} has no data type for {name}", "type")
    return number


def _set(library: OneDnn, operation: ctypes.c_void_p, attribute: Attribute) -> None:
    if attribute.name not in ATTRIBUTES:
        raise Unsupported(f"oneDNN Graph has no attribute {attribute.name}", "attribute")
    if attribute.kind not in _SETTERS and not isinstance(attribute.value, str):
        raise Unsupported(f"oneDNN Graph has no attributes of kind {attribute.kind}", "attribute")
    set_attribute(library, operation, ATTRIBUTES[attribute.name], attribute.kind, attribute.value)


def set_attribute(library: OneDnn, operation: ctypes.c_void_p, number: int, kind: str, value: object) -> None:
    """Set an attribute of an operation by its number; kinds are f32, s64s, bool and so on, or text.

    Raises OneDnnError.
    """
    if isinstance(value, str):
        text = value.encode()
        library.call("graph_op_set_attr_str", operation, number, text, len(text))
        return
    setter, element = _SETTERS[kind]
    values = value if isinstance(value, tuple) else (value,)
    array = (element * max(1, len(values)))(*values)  # even an empty list must not be a null pointer
    library.call(f"graph_op_set_attr_{setter}", operation, number, array, len(values))


def _is_supported(library: OneDnn, partition: Partition) -> bool:
    supported = ctypes.c_uint8()
    library.call("graph_partition_is_supported", partition.handle, ctypes.byref(supported))
    return bool(supported.value)


def _refusal(library: OneDnn, program: Program) -> tuple[str, Reason]:
    """Return what the library said about an unsupported partition, and why, found by asking about similar programs."""
    said = "dnnl_graph_partition_is_supported: no"
    for reason, change, sibling in _siblings(program):
        if _would_be_supported(library, sibling):
            return f"{said}, but with {change}", reason
    return said, "other"


def _siblings(program: Program) -> Iterator[tuple[Reason, str, Program]]:
    """Yield programs that are easier to support, with the difference."""
    wide, listed = _in_float32(program), _without_empty_lists(program)
    if wide != program:
        yield "type", "float32", wide
    if listed != program:
        yield "attribute", "a list that is not empty", listed
    if wide != program != listed:
        yield "type", "float32 and a list that is not empty", _in_float32(listed)


def _in_float32(program: Program) -> Program:
    def widened(type_: str) -> str:
        return "float32" if element_type(type_).kind == "float" else type_

    inputs = tuple(i and replace(i, type=widened(i.type), constant=None) for i in program.inputs)
    return replace(
        program, inputs=inputs, outputs=tuple(o and replace(o, type=widened(o.type)) for o in program.outputs)
    )


def _without_empty_lists(program: Program) -> Program:
    filled = (replace(a, value=(0,)) if a.value == () else a for a in program.attributes)
    return replace(program, attributes=tuple(filled))


def _would_be_supported(library: OneDnn, program: Program) -> bool:
    with ExitStack() as handles:
        try:
            return _supported(library, handles, program) is not None
        except (OneDnnError, Unsupported):
            return False


REASONS: Final[Mapping[str, Reason]] = {
    "out_of_memory": "memory",
    "invalid_arguments": "invalid",
    "invalid_graph": "invalid",
    "invalid_graph_op": "invalid",
    "invalid_shape": "shape",
    "invalid_data_type": "type",
}
"""The meaning of a refusal's status."""

_NOT_IMPLEMENTED = "unimplemented"  # the status without further information
_UNWRITTEN = 0xFF  # NaN, or -1, so that an element that the library skips does not look like an earlier answer
_ROOM = 64  # bytes behind an array without elements, which the library may touch


class OneDnnGraph(Refusing):
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
        """Return the library's build, and the CPU features that it uses."""
        return self._library.describe()

    def prepare(self, program: Program, /) -> Executable:
        """Compile `program`. Raises Unsupported, or OneDnnError with a function's status."""
        with self.refusing():
            return _Compiled(self, self._library, program)

    def reason(self, error: BaseException, /) -> Reason:
        """Return why oneDNN refused, as far as its status shows."""
        if isinstance(error, MemoryError):
            return "memory"
        return REASONS.get(error.status, "other") if isinstance(error, OneDnnError) else "other"

    def refuse_if_plain(self, error: Exception) -> None:
        """Raise Unsupported if `error` only says "not implemented"."""
        if isinstance(error, OneDnnError) and error.status == _NOT_IMPLEMENTED:
            raise Unsupported(str(error)) from error


class _Compiled:
    """A compiled partition with its tensors, which are destroyed together."""

    def __init__(self, runner: OneDnnGraph, library: OneDnn, program: Program) -> None:
        self._runner = runner  # its engine outlives the objects made with it
        self._library = library
        with ExitStack() as handles:
            partition = make_partition(library, handles, program)
            self._given = [_Given(i) for i in (*_given(program), *partition.beside.operands)]
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
        """Return the outputs. Raises Unsupported, or OneDnnError with a function's status."""
        fed = iter(inputs)
        arrays = [given.laid_out(fed) for given in self._given]
        buffers = [answer.buffer() for answer in self._answers]
        with self._runner.refusing():
            self._execute(arrays, buffers)
        return [answer.view(buffer) for answer, buffer in zip(self._answers, buffers, strict=True)]

    def _execute(self, arrays: Sequence[Array], buffers: Sequence[Array]) -> None:
        library = self._library
        for tensor, array in zip([*self._in, *self._out], [*arrays, *buffers], strict=True):
            # The attribute `ctypes` of an array takes three times as long.
            library.call("graph_tensor_set_data_handle", tensor, array.__array_interface__["data"][0])
        library.call(
            "graph_compiled_partition_execute",
            *(self._handle, library.stream),
            *(len(arrays), self._in, len(buffers), self._out),
        )
        library.call("stream_wait", library.stream)

    def _inferred(self, output: LogicalTensor) -> LogicalTensor:
        """Return an output's description as the library compiled it, with shape and strides."""
        tensor = LogicalTensor()
        by_id = (self._handle, output.id, ctypes.byref(tensor))
        self._library.call("graph_compiled_partition_query_logical_tensor", *by_id)
        if tensor.layout_type != _STRIDED:
            raise Unsupported("the order that oneDNN chose for an output has no strides, so that it cannot be read")
        return tensor


class _Given:
    """The type and shape that an input was compiled for."""

    def __init__(self, given: Input) -> None:
        self._name = given.name
        self._dims = given.dims
        self._element = element_type(given.type)
        self._strides = given.strides
        self._constant = None if given.constant is None else given.array()

    def laid_out(self, fed: Iterator[Array]) -> Array:
        """Return the constant, or else the next array, in its order in memory; ValueError if type or shape differ."""
        array = next(fed) if self._constant is None else self._constant
        if array.shape != self._dims or array.dtype != self._element.dtype:
            compiled, is_given = f"{self._element.dtype} {self._dims}", f"{array.dtype} {array.shape}"
            raise ValueError(f"{self._name} was compiled for {compiled} and is given {is_given}")
        if array.size == 0:
            return np.zeros(_ROOM, np.uint8)
        if self._strides is not None:
            return _in_order(array, self._strides)
        if self._element.is_packed:
            return np.frombuffer(content(array), np.uint8)
        return array if array.flags.c_contiguous else array.copy()


def _in_order(array: Array, strides: Sequence[int]) -> Array:
    """Return memory with an array at its strides, in elements, and the marker in the gaps."""
    size = max(extent * stride for extent, stride in zip(array.shape, strides, strict=True))
    memory = np.full(size * array.itemsize, _UNWRITTEN, np.uint8)
    np.ndarray(array.shape, array.dtype, memory, 0, tuple(s * array.itemsize for s in strides))[...] = array
    return memory


class _Answer:
    """The memory layout of an output."""

    def __init__(self, library: OneDnn, tensor: LogicalTensor, output: Output) -> None:
        self._element = element_type(output.type)
        self._dtype = self._element.dtype
        self._shape = tuple(tensor.dims[: tensor.ndims])
        self._strides = tuple(s * self._dtype.itemsize for s in tensor.strides[: tensor.ndims])
        size = ctypes.c_size_t()
        library.call("graph_logical_tensor_get_mem_size", ctypes.byref(tensor), ctypes.byref(size))
        self._size = max(size.value, _ROOM)

    def buffer(self) -> Array:
        """Return new memory, filled with the marker."""
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
    """Return tensors without memory yet, as the array that the library expects."""
    made = [library.create(handles, "graph_tensor", ctypes.byref(t), library.engine, None) for t in described]
    return (ctypes.c_void_p * max(1, len(made)))(*(handle.value for handle in made))
