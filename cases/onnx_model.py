"""Converts programs to ONNX models: one node with its bodies, in the lowest IR version that the opset allows."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    SparseTensorProto,
    TypeProto,
    ValueInfoProto,
)
from onnx.helper import VERSION_TABLE

from .elements import Array, element_type, tensor_proto
from .errors import ProgramError
from .program import (
    NO_VERSION,
    Attribute,
    Body,
    Dims,
    Input,
    ModelProgram,
    Node,
    Output,
    Program,
    SparseTensor,
    Structure,
    Tensor,
    TypeExpression,
    nested,
    parse_type,
)

_IR_COLUMN = 1
_OPSET_COLUMN = {"": 2, "ai.onnx.ml": 3, "ai.onnx.preview.training": 4}
# The IR versions of the opsets from 1 on. They are not read from the installed onnx, because an older onnx does not
# know all of them, and a program must have the same bytes everywhere.
_RELEASED = {
    "": (3, 3, 3, 3, 3, 3, 3, 3, 4, 5, 6, 7, 7, 7, 8, 8, 8, 8, 9, 9, 10, 10, 11, 12, 13, 13, 13, 14),
    "ai.onnx.ml": (3, 6, 8, 9, 10),
    "ai.onnx.preview.training": (7,),
    "ai.onnx.preview": (13,),
}
_FIRST_IR_OF_FREE_INITIALIZERS = 4
"""From this IR version on, an initializer need not also be a graph input."""

_ATTRIBUTE_FIELDS = {"int": "i", "float": "f", "string": "s", "tensor": "t", "type_proto": "tp", "graph": "g"}
"""By kind of attribute, the field of ONNX's message; the field of another kind has the kind's name."""

OutputShapes: TypeAlias = tuple[tuple[int, ...] | None, ...]


def onnx_model(program: Program, shapes: OutputShapes = ()) -> ModelProto:
    """Return `program` as a model of one node; equal programs give equal bytes.

    Constants become initializers, omitted inputs and outputs empty names. Outputs declare `shapes` if given, else the
    shapes that the program fixes. An output without a fixed shape declares its rank with unique dimension names, or no
    shape if its rank is None. Nothing is checked, so that backends can also run invalid programs. Raises ProgramError
    if ONNX cannot express the program, for example one of another standard.
    """
    if program.operator.standard != "onnx":
        raise ProgramError(f"{program.operator} has no ONNX model: it is not an ONNX operator")
    if isinstance(program, ModelProgram):
        model = ModelProto()
        model.ParseFromString(program.model)
        return model
    try:
        return _model(program, shapes or _fixed(program))
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise ProgramError(f"{program.operator} cannot be written as a model: {error}") from error


def _model(program: Program, shapes: OutputShapes) -> ModelProto:
    opset = opset_of(program)
    ir = ir_version(program.operator.domain, opset)
    return ModelProto(
        ir_version=ir,
        producer_name="opconform",
        graph=_graph(program, ir, shapes),
        opset_import=[OperatorSetIdProto(domain=domain, version=n) for domain, n in _opsets(program, opset).items()],
    )


def onnx_bytes(program: Program, shapes: OutputShapes = ()) -> bytes:
    """Return the serialized model of `program`; equal programs give equal bytes."""
    if isinstance(program, ModelProgram):
        return program.model
    return _serialized(program, shapes or _fixed(program))


@functools.lru_cache(maxsize=64)  # a failure is run again on a program of its own
def _serialized(program: Program, shapes: OutputShapes) -> bytes:
    serialized: bytes = onnx_model(program, shapes).SerializeToString(deterministic=True)
    return serialized


def _fixed(program: Program) -> OutputShapes:
    return tuple(output.shape for output in program.answers)


def feed_names(program: Program) -> tuple[str, ...]:
    """Return the names of the graph inputs that each run is given, in the order of `program.feeds`."""
    return tuple(i.name for i in program.feeds)


def output_names(program: Program) -> tuple[str, ...]:
    """Return the names of the graph outputs, in order."""
    return tuple(o.name for o in program.answers)


def feeds(program: Program, inputs: Sequence[Array]) -> dict[str, Any]:
    """Return a case's inputs by the names of the graph inputs: arrays, or values as `program.nested` makes them.

    Raises ValueError if there are too few or too many arrays.
    """
    given = inputs if program.is_plain else nested(program, inputs)
    return dict(zip(feed_names(program), given, strict=True))


def opset_of(program: Program) -> int:
    """Return the opset of the operator's domain that `program` needs: its own, else the operator's version."""
    return int(program.operator.version) if program.opset is None else program.opset


@functools.cache
def ir_version(domain: str, opset: int) -> int:
    """Return the lowest IR version that was released with `opset` of `domain`.

    An opset that the installed onnx does not know gets the newest IR version, an unknown domain the oldest.
    """
    if 0 < opset <= len(_RELEASED.get(domain, ())):
        return _RELEASED[domain][opset - 1]
    releases: list[tuple[Any, ...]] = [tuple(row) for row in VERSION_TABLE]
    column = _OPSET_COLUMN.get(domain)
    if column is None:
        return min(int(row[_IR_COLUMN]) for row in releases)
    carrying = [int(row[_IR_COLUMN]) for row in releases if len(row) > column and row[column] >= opset]
    return min(carrying) if carrying else max(*_RELEASED[""], *(int(row[_IR_COLUMN]) for row in releases))


def _opsets(program: Program, opset: int) -> dict[str, int]:
    """Return the opset of each domain; domains other than the operator's come from the bodies.

    If a body names no version, its domain gets the first opset that came with the program's IR version.
    """
    opsets, ir = {program.operator.domain: opset}, ir_version(program.operator.domain, opset)
    outer = program.around.nodes if program.around else ()
    for node in (*outer, *_inner_nodes(program.attributes)):
        domain = node.operator.domain
        if domain != program.operator.domain:
            named = node.operator.version
            usual = _RELEASED.get(domain, (ir,)).index(ir) + 1 if named == NO_VERSION else int(named)
            opsets[domain] = max(opsets.get(domain, 1), usual)
    return opsets


def _inner_nodes(attributes: Iterable[Attribute]) -> Iterator[Node]:
    for attribute in attributes:
        for value in attribute.value if isinstance(attribute.value, tuple) else (attribute.value,):
            if isinstance(value, Body):
                for node in value.nodes:
                    yield node
                    yield from _inner_nodes(node.attributes)


def _graph(program: Program, ir: int, shapes: OutputShapes) -> GraphProto:
    given = program.given
    declared = given if ir < _FIRST_IR_OF_FREE_INITIALIZERS else [i for i in given if i.constant is None]
    taken = {d for i in given for d in i.dims}
    outputs = program.answers
    node = Node(
        program.operator,
        tuple(i.name if i is not None else "" for i in program.inputs),
        tuple(o.name if o is not None else "" for o in program.outputs),
        program.attributes,
    )
    return GraphProto(
        name=program.operator.name,
        node=[*(map(_node, program.around.nodes) if program.around else ()), _node(node, program.operator.name)],
        input=[_input(i) for i in declared],
        output=[
            _value(o.name, o.type, _fresh_dims(o, taken) if shape is None else shape)
            for o, shape in zip(outputs, shapes, strict=True)
        ],
        initializer=[tensor_proto(i.array(), i.name) for i in given if i.constant is not None],
    )


def _body(body: Body) -> GraphProto:
    taken = {d for i in body.inputs for d in i.dims}
    return GraphProto(
        name=body.name,
        node=[_node(node) for node in body.nodes],
        input=[_input(i) for i in body.inputs if i.constant is None],
        output=[_value(o.name, o.type, _fresh_dims(o, taken) if o.shape is None else o.shape) for o in body.outputs],
        initializer=[tensor_proto(i.array(), i.name) for i in body.inputs if i.constant is not None],
    )


def _node(node: Node, name: str = "") -> NodeProto:
    return NodeProto(
        name=name or None,
        op_type=node.operator.name,
        domain=node.operator.domain,
        input=node.inputs,
        output=node.outputs,
        attribute=[_attribute(a) for a in node.attributes],
    )


def _attribute(attribute: Attribute) -> AttributeProto:
    # helper.make_attribute would guess the type from the value, which an empty list does not show
    # ONNX has no boolean attributes: those of other standards are written as 0 and 1
    kind = "int" if attribute.kind == "boolean" else attribute.kind
    type_ = getattr(AttributeProto, kind.upper(), None)
    if type_ is None:
        raise ValueError(f"attribute {attribute.name}: ONNX has no attributes of kind {attribute.kind}")
    field, value = _ATTRIBUTE_FIELDS.get(kind, kind), attribute.value
    content = [_content(v, attribute) for v in value] if isinstance(value, tuple) else _content(value, attribute)
    written: dict[str, Any] = {"name": attribute.name, "type": type_, field: content}
    return AttributeProto(**written)


def _content(value: object, attribute: Attribute) -> Any:
    match value:
        case Tensor():
            return tensor_proto(value.array())
        case SparseTensor():
            values = tensor_proto(value.values.array(), attribute.name)  # the checker requires a name here
            return SparseTensorProto(values=values, indices=tensor_proto(value.indices.array()), dims=value.dims)
        case Body():
            return _body(value)
        case str():
            is_type = attribute.kind.startswith("type_proto")
            return _type(parse_type(value), None) if is_type else value.encode("utf-8", "surrogateescape")
    if attribute.kind.startswith("float"):
        return value
    if value != int(value):  # type: ignore[call-overload]  # raises if it is not a number
        raise ValueError(f"attribute {attribute.name} of kind {attribute.kind} cannot be {value!r}")
    return int(value)  # type: ignore[call-overload]


def _input(given: Input) -> ValueInfoProto:
    return _value(given.name, given.type, given.dims if given.structure is None else _common_dims(given.structure))


def _common_dims(structure: Structure) -> Dims | None:
    """Return the dimensions that all tensors of a value share, None if they differ or there are none."""
    if not structure.items:
        return structure.dims
    dims = {_common_dims(item) for item in structure.items}
    return dims.pop() if len(dims) == 1 else None


def _value(name: str, type_: str, dims: Dims | None) -> ValueInfoProto:
    return ValueInfoProto(name=name, type=_type_of(type_, dims))


@functools.lru_cache(maxsize=256)  # protobuf copies the message into its parent
def _type_of(type_: str, dims: Dims | None) -> TypeProto:
    return _type(parse_type(type_), dims)


def _type(expression: TypeExpression, dims: Dims | None) -> TypeProto:
    proto = TypeProto()
    match expression:
        case TypeExpression(kind="sequence", of=TypeExpression() as held):
            proto.sequence_type.elem_type.CopyFrom(_type(held, dims))
        case TypeExpression(kind="optional", of=TypeExpression() as held):
            proto.optional_type.elem_type.CopyFrom(_type(held, dims))
        case TypeExpression(kind="map"):
            proto.map_type.key_type = element_type(expression.key).onnx
            proto.map_type.value_type.CopyFrom(_type(TypeExpression("tensor", expression.element), None))
        case _:
            tensor = proto.tensor_type if expression.kind == "tensor" else proto.sparse_tensor_type
            tensor.elem_type = element_type(expression.element).onnx
            if dims is not None:
                # Set even if empty: no shape means any rank, an empty shape means rank 0.
                tensor.shape.SetInParent()
                for size in dims:
                    tensor.shape.dim.add(**{"dim_param" if isinstance(size, str) else "dim_value": size})
    return proto


def _fresh_dims(output: Output, taken: Iterable[int | str]) -> Dims | None:
    if output.rank is None:
        return None
    stem = f"{output.name}_dim"
    while any(str(name).startswith(stem) for name in taken):
        stem += "_"
    return tuple(f"{stem}{axis}" for axis in range(output.rank))
