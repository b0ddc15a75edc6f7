"""Programs as ONNX models: one node, in the lowest IR version that the opset allows."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    ValueInfoProto,
)
from onnx.helper import VERSION_TABLE

from .elements import Array, element_type
from .model import Attribute, AttributeKind, Dims, Input, ModelProgram, Output, Program

_IR_COLUMN = 1
_OPSET_COLUMN = {"": 2, "ai.onnx.ml": 3, "ai.onnx.preview.training": 4}
# The IR versions of the opsets from 1 on. Not taken from the installed onnx, of which an older one does not know all:
# a program has the same bytes everywhere.
_RELEASED = {
    "": (3, 3, 3, 3, 3, 3, 3, 3, 4, 5, 6, 7, 7, 7, 8, 8, 8, 8, 9, 9, 10, 10, 11, 12, 13, 13, 13, 14),
    "ai.onnx.ml": (3, 6, 8, 9, 10),
    "ai.onnx.preview.training": (7,),
}
_FIRST_IR_OF_FREE_INITIALIZERS = 4
"""From this IR version on an initializer need not be a graph input as well."""

# ONNX has no boolean attributes: standards that have them write 0 and 1.
_ATTRIBUTE_FIELDS: dict[AttributeKind, tuple[AttributeProto.AttributeType, str]] = {
    "int": (AttributeProto.INT, "i"),
    "boolean": (AttributeProto.INT, "i"),
    "float": (AttributeProto.FLOAT, "f"),
    "string": (AttributeProto.STRING, "s"),
    "ints": (AttributeProto.INTS, "ints"),
    "floats": (AttributeProto.FLOATS, "floats"),
    "strings": (AttributeProto.STRINGS, "strings"),
}


OutputShapes: TypeAlias = tuple[tuple[int, ...] | None, ...]


def onnx_model(program: Program, shapes: OutputShapes = ()) -> ModelProto:
    """Return `program` as a model of one node; equal programs give equal bytes.

    Constants are initializers, omitted inputs empty names. Outputs declare their `shapes`; without them (or with None)
    their rank with dimension names that occur nowhere else, and no shape where `rank` is None. Nothing is checked, so
    that invalid programs can be put to a backend too. ValueError for a program of another standard.
    """
    if program.operator.standard != "onnx":
        raise ValueError(f"{program.operator} has no ONNX model: it is no ONNX operator")
    if isinstance(program, ModelProgram):
        model = ModelProto()
        model.ParseFromString(program.model)
        return model
    opset = opset_of(program)
    ir = ir_version(program.operator.domain, opset)
    return ModelProto(
        ir_version=ir,
        producer_name="opconform",
        graph=_graph(program, ir, shapes or (None,) * len(program.outputs)),
        opset_import=[OperatorSetIdProto(domain=program.operator.domain, version=opset)],
    )


def onnx_bytes(program: Program, shapes: OutputShapes = ()) -> bytes:
    """Return the model of `program` serialized, with the same bytes every time."""
    if isinstance(program, ModelProgram):
        return program.model
    return _serialized(program, shapes)


@functools.lru_cache(maxsize=64)  # a failure is confirmed on a program of its own
def _serialized(program: Program, shapes: OutputShapes) -> bytes:
    serialized: bytes = onnx_model(program, shapes).SerializeToString(deterministic=True)
    return serialized


def feed_names(program: Program) -> tuple[str, ...]:
    """Return the names of the graph inputs that are given at each run, in the order of `program.feeds`."""
    return tuple(i.name for i in program.feeds)


def output_names(program: Program) -> tuple[str, ...]:
    """Return the names of the graph outputs, in order."""
    return tuple(o.name for o in program.outputs)


def feeds(program: Program, inputs: Sequence[Array]) -> dict[str, Array]:
    """Return the arrays of a case by the names of the graph inputs; ValueError if there are too few or too many."""
    return dict(zip(feed_names(program), inputs, strict=True))


def opset_of(program: Program) -> int:
    """Return the opset of the operator's domain that carries `program`: its own, else the operator's version."""
    return int(program.operator.version) if program.opset is None else program.opset


@functools.cache
def ir_version(domain: str, opset: int) -> int:
    """Return the lowest IR version that `opset` of `domain` was released with.

    An opset that the installed onnx does not know yet gets the newest IR version, a domain that it does not know the
    oldest.
    """
    if 0 < opset <= len(_RELEASED.get(domain, ())):
        return _RELEASED[domain][opset - 1]
    releases: list[tuple[Any, ...]] = [tuple(row) for row in VERSION_TABLE]
    column = _OPSET_COLUMN.get(domain)
    if column is None:
        return min(int(row[_IR_COLUMN]) for row in releases)
    carrying = [int(row[_IR_COLUMN]) for row in releases if len(row) > column and row[column] >= opset]
    return min(carrying) if carrying else max(*_RELEASED[""], *(int(row[_IR_COLUMN]) for row in releases))


def _graph(program: Program, ir: int, shapes: OutputShapes) -> GraphProto:
    given = [i for i in program.inputs if i is not None]
    declared = given if ir < _FIRST_IR_OF_FREE_INITIALIZERS else [i for i in given if i.constant is None]
    taken = {d for i in given for d in i.dims}
    return GraphProto(
        name=program.operator.name,
        node=[_node(program)],
        input=[_value(i.name, i.type, i.dims) for i in declared],
        output=[
            _value(o.name, o.type, _fresh_dims(o, taken) if shape is None else shape)
            for o, shape in zip(program.outputs, shapes, strict=True)
        ],
        initializer=[_initializer(i) for i in given if i.constant is not None],
    )


def _node(program: Program) -> NodeProto:
    return NodeProto(
        name=program.operator.name,
        op_type=program.operator.name,
        domain=program.operator.domain,
        input=[i.name if i is not None else "" for i in program.inputs],
        output=output_names(program),
        attribute=[_attribute(a) for a in program.attributes],
    )


def _attribute(attribute: Attribute) -> AttributeProto:
    # helper.make_attribute would guess the type from the value, and an empty list has none.
    type_, field = _ATTRIBUTE_FIELDS[attribute.kind]
    content: Any = attribute.value
    if attribute.kind == "string":
        content = content.encode()
    elif attribute.kind == "strings":
        content = [c.encode() for c in content]
    elif type_ == AttributeProto.INT:
        content = int(content)
    written: dict[str, Any] = {"name": attribute.name, "type": type_, field: content}
    return AttributeProto(**written)


def _value(name: str, type_: str, dims: Dims | None) -> ValueInfoProto:
    value = ValueInfoProto(name=name)
    tensor = value.type.tensor_type
    tensor.elem_type = element_type(type_).onnx
    if dims is not None:
        # Given even if it is empty: a missing shape means any rank, an empty one rank 0.
        tensor.shape.SetInParent()
        for size in dims:
            tensor.shape.dim.add(**{"dim_param" if isinstance(size, str) else "dim_value": size})
    return value


def _fresh_dims(output: Output, taken: Iterable[int | str]) -> Dims | None:
    if output.rank is None:
        return None
    stem = f"{output.name}_dim"
    while any(str(name).startswith(stem) for name in taken):
        stem += "_"
    return tuple(f"{stem}{axis}" for axis in range(output.rank))


def _initializer(given: Input) -> TensorProto:
    # Raw bytes are how every type can be written alike, those that NumPy lacks included.
    return TensorProto(
        name=given.name,
        data_type=element_type(given.type).onnx,
        dims=[int(d) for d in given.dims],
        raw_data=given.constant,
    )
