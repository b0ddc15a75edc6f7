"""A oneDNN graph of one operation: how a program becomes one, and why the library would not take it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

from ..cases.elements import element_type
from ..cases.program import Attribute, Input, Output, Program
from ..cases.runner import Reason, Unsupported
from .onednn_enumerations import ATTRIBUTES, OPERATIONS, TYPES
from .onednn_library import CPU, MOST_DIMENSIONS, LogicalTensor, OneDnn, OneDnnError

_STRIDED = 2  # dnnl_graph_layout_type_t
_VARIABLE, _CONSTANT = 1, 2  # dnnl_graph_tensor_property_t
_UNKNOWN_RANK = -1
_FUSION = 1  # dnnl_graph_partition_policy_t, the one that applications use
_SETTERS: Final[Mapping[str, tuple[str, Any]]] = {
    "s64": ("s64", ctypes.c_int64),
    "s64s": ("s64", ctypes.c_int64),
    "f32": ("f32", ctypes.c_float),
    "f32s": ("f32", ctypes.c_float),
    "bool": ("bool", ctypes.c_uint8),
}


@dataclass(frozen=True, slots=True)
class Partition:
    """What a graph of one operation was partitioned into, and the tensors at its ends, outputs of unknown shape."""

    handle: ctypes.c_void_p
    inputs: Sequence[LogicalTensor]
    outputs: Sequence[LogicalTensor]


def make_partition(library: OneDnn, handles: ExitStack, program: Program) -> Partition:
    """Return the partition of a program; `handles` destroys what is made on the way.

    Raises Unsupported for what the library's enumerations lack and for a partition that it does not support;
    OneDnnError.
    """
    partition = _partition(library, handles, program)
    if not _is_supported(library, partition):
        raise Unsupported(*_refusal(library, program))
    return partition


def _partition(library: OneDnn, handles: ExitStack, program: Program) -> Partition:
    inputs = [_input(library, number, i) for number, i in enumerate(_given(program))]
    outputs = [_output(library, number, o) for number, o in enumerate(program.answers, len(inputs))]
    operation = _operation(library, handles, program.operator.name)
    for tensor in inputs:
        library.call("graph_op_add_input", operation, ctypes.byref(tensor))
    for tensor in outputs:
        library.call("graph_op_add_output", operation, ctypes.byref(tensor))
    for attribute in program.attributes:
        _set(library, operation, attribute)
    graph = library.create(handles, "graph_graph", CPU)
    library.call("graph_add_op", graph, operation)
    library.call("graph_graph_finalize", graph)
    library.call("graph_graph_filter", graph, _FUSION)
    return Partition(_only_partition(library, handles, graph), inputs, outputs)


def _only_partition(library: OneDnn, handles: ExitStack, graph: ctypes.c_void_p) -> ctypes.c_void_p:
    count = ctypes.c_size_t()
    library.call("graph_graph_get_partition_num", graph, ctypes.byref(count))
    if count.value != 1:
        raise Unsupported(f"dnnl_graph_graph_get_partition_num: {count.value} partitions of one operation")
    handle = ctypes.c_void_p()
    library.call("graph_graph_get_partitions", graph, 1, ctypes.byref(handle))
    handles.callback(library.call, "graph_partition_destroy", handle)
    return handle


def _operation(library: OneDnn, handles: ExitStack, name: str) -> ctypes.c_void_p:
    if name not in OPERATIONS or not _is_known(library, name):
        raise Unsupported(f"oneDNN Graph {library.version} has no operation {name}", "operator-version")
    return _bare(library, handles, name)


def _bare(library: OneDnn, handles: ExitStack, name: str) -> ctypes.c_void_p:
    return library.create(handles, "graph_op", 0, OPERATIONS[name], name.encode())


def _is_known(library: OneDnn, name: str) -> bool:
    """Return whether the library has a schema of the operation, against which one without inputs offends.

    An operation without a schema is accepted, and the library may crash on it later.
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
        raise Unsupported("oneDNN Graph knows inputs by their place, and none can be left out before another")
    return given


def _input(library: OneDnn, number: int, given: Input) -> LogicalTensor:
    if any(isinstance(d, str) for d in given.dims):
        raise Unsupported(
            f"{given.name} has dimensions without a number, and partitions compile for numbers", "dynamic"
        )
    if len(given.dims) > MOST_DIMENSIONS:
        words = f"{given.name} has {len(given.dims)} dimensions, a logical tensor at most {MOST_DIMENSIONS}"
        raise Unsupported(words, "rank")
    dims = (ctypes.c_int64 * MOST_DIMENSIONS)(*map(int, given.dims))
    tensor = LogicalTensor()
    library.call(
        "graph_logical_tensor_init_with_dims",
        *(ctypes.byref(tensor), number, _type(library, given.type), len(given.dims), dims),
        *(_STRIDED, _VARIABLE if given.constant is None else _CONSTANT),
    )
    return tensor


def _output(library: OneDnn, number: int, output: Output) -> LogicalTensor:
    # a rank that is given would decide what the library infers, as oneDNN 3.2 does for a scalar
    return tensor_of_any_rank(library, number, _type(library, output.type))


def tensor_of_any_rank(library: OneDnn, number: int, data_type: int) -> LogicalTensor:
    """Return the description of a tensor of this number, of unknown rank."""
    tensor = LogicalTensor()
    described = (number, data_type, _UNKNOWN_RANK, _STRIDED, _VARIABLE)
    library.call("graph_logical_tensor_init", ctypes.byref(tensor), *described)
    return tensor


def _type(library: OneDnn, name: str) -> int:
    number = library.type_number(TYPES.get(name, ""))
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
    """Give an operation an attribute by its number, of a kind as f32, s64s or bool, or text. Raises OneDnnError."""
    if isinstance(value, str):
        text = value.encode()
        library.call("graph_op_set_attr_str", operation, number, text, len(text))
        return
    setter, element = _SETTERS[kind]
    values = value if isinstance(value, tuple) else (value,)
    array = (element * max(1, len(values)))(*values)  # a null pointer is refused even for an empty list
    library.call(f"graph_op_set_attr_{setter}", operation, number, array, len(values))


def _is_supported(library: OneDnn, partition: Partition) -> bool:
    supported = ctypes.c_uint8()
    library.call("graph_partition_is_supported", partition.handle, ctypes.byref(supported))
    return bool(supported.value)


def _refusal(library: OneDnn, program: Program) -> tuple[str, Reason]:
    """Return what the library said of a partition that it does not support, and why, found out by asking again."""
    said = "dnnl_graph_partition_is_supported: no"
    for reason, change, sibling in _siblings(program):
        if _would_be_supported(library, sibling):
            return f"{said}, but with {change}", reason
    return said, "other"


def _siblings(program: Program) -> Iterator[tuple[Reason, str, Program]]:
    """Yield programs that are easier to support, with what they differ in."""
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
            return _is_supported(library, _partition(library, handles, program))
        except (OneDnnError, Unsupported):
            return False
