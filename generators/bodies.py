"""Bodies of control flow: graphs in ONNX's own text, with the types of a case in place of letters."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..cases.elements import from_tensor_proto, numbered
from ..cases.errors import OpconformError
from ..cases.program import NO_VERSION, Attribute, AttributeKind, Body, Input, Node, OperatorVersion, Output, Tensor
from ..cases.structures import Structure, TypeExpression, is_tensor, parse_type
from ..specs.model import VersionSpec
from .ports import free_letters

if TYPE_CHECKING:
    from onnx import AttributeProto, NodeProto, TypeProto, ValueInfoProto

_LETTER = re.compile(r"\{(\w+)\}")
_NAMES = {"float32": "float", "float64": "double"}

# Types younger than the oldest ONNX that is allowed, whose parser knows no name for them, and types that stand in.
_YOUNG = frozenset({"float4e2m1", "float6e2m3", "float6e3m2", "float8e8m0", "int2", "uint2"})
_STAND_INS = ("complex64", "complex128", "uint16", "int16", "uint32", "uint64")


def body_of(version: VersionSpec, types: tuple[str, ...], name: str) -> Body:
    """Return the body that a spec calls `name`, `{V}` in it replaced by the type that the case has for V.

    Raises OpconformError if there is no such body, or ONNX's parser does not read it.
    """
    return _read(version, types, name)[0]


def captured_by(version: VersionSpec, types: tuple[str, ...], names: Iterable[str]) -> tuple[Input, ...]:
    """Return the values around that bodies use, in the order of their use, as inputs of the program.

    Each has the type and dimensions of the output that a body copies it to. Raises OpconformError where none does.
    """
    found: dict[str, Input] = {}
    for body, outputs in (_read(version, types, name) for name in names):
        inside = {one.name for one in body.inputs} | {name for node in body.nodes for name in node.outputs}
        for node in body.nodes:
            for name in node.inputs:
                if name and name not in inside and name not in found:
                    copy = outputs.get(node.outputs[0]) if node.operator.name == "Identity" else None
                    if copy is None:
                        message = f"nothing says the type of {name}; copy it to an output, by Identity"
                        raise OpconformError(f"{version.operator}, graph {body.name!r}: {message}")
                    found[name] = replace(copy, name=name)
    return tuple(found.values())


def _read(version: VersionSpec, types: tuple[str, ...], name: str) -> tuple[Body, Mapping[str, Input]]:
    if name not in version.graphs:
        raise OpconformError(f"{version.operator} has no graph {name!r}; it has {', '.join(version.graphs)}")
    bound = dict(zip(free_letters(version), types, strict=False))
    return _parsed(_LETTER.sub(lambda found: _onnx_type(bound.get(found[1], found[1])), version.graphs[name]))


def _onnx_type(name: str) -> str:
    return re.sub(r"\w+", lambda word: _NAMES.get(word[0], word[0]), name)


@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[Body, Mapping[str, Input]]:
    """Return a body, and its outputs with their dimensions."""
    import onnx.parser  # noqa: PLC0415 - it takes long, and few operators have bodies

    words = set(re.findall(r"\w+", text))
    young, free = sorted(words & _YOUNG), (name for name in _STAND_INS if name not in words)
    stand_ins = dict(zip(young, free, strict=False))
    try:
        graph = onnx.parser.parse_graph(re.sub(r"\w+", lambda word: stand_ins.get(word[0], word[0]), text))
    except onnx.parser.ParseError as error:
        raise OpconformError(f"{text!r} is no graph: {error}") from None
    named = {name: young for young, name in stand_ins.items()}
    outputs = {one.name: _input(one, named) for one in graph.output}
    body = Body(
        graph.name,
        tuple(_input(one, named) for one in graph.input),
        tuple(Output(one.name, one.type, len(one.dims) if one.structure is None else None) for one in outputs.values()),
        tuple(map(_node, graph.node)),
    )
    return body, outputs


def _input(value: ValueInfoProto, named: Mapping[str, str]) -> Input:
    """Return a value of a graph as an input; `named` has the type that another one stands in for."""
    type_ = _type(value.type, named)
    tensor = value.type.tensor_type
    dims = tuple(d.dim_param or d.dim_value for d in tensor.shape.dim) if value.type.HasField("tensor_type") else ()
    return Input(value.name, type_, dims, structure=None if is_tensor(type_) else _structure(parse_type(type_)))


def _structure(expression: TypeExpression) -> Structure:
    """Return a structure of a type as small as can be: bodies do not say how many items there are."""
    return Structure(expression.kind, () if expression.kind in ("tensor", "sparse") else None)


def _type(type_: TypeProto, named: Mapping[str, str]) -> str:
    if type_.HasField("sequence_type"):
        return f"seq({_type(type_.sequence_type.elem_type, named)})"
    if type_.HasField("optional_type"):
        return f"optional({_type(type_.optional_type.elem_type, named)})"
    found = numbered(type_.tensor_type.elem_type)
    if found is None:
        raise OpconformError(f"a body has a value of type {type_}, which cases have not")
    return named.get(found.name, found.name)


def _node(node: NodeProto) -> Node:
    operator = OperatorVersion("onnx", node.op_type, NO_VERSION, node.domain)
    return Node(operator, tuple(node.input), tuple(node.output), tuple(map(_attribute, node.attribute)))


def _attribute(attribute: AttributeProto) -> Attribute:
    from onnx import AttributeProto, helper  # noqa: PLC0415 - as above

    if attribute.type == AttributeProto.TENSOR:
        return Attribute(attribute.name, "tensor", Tensor.of(from_tensor_proto(attribute.t)))
    kinds: dict[int, AttributeKind] = {
        AttributeProto.INT: "int",
        AttributeProto.FLOAT: "float",
        AttributeProto.STRING: "string",
        AttributeProto.INTS: "ints",
        AttributeProto.FLOATS: "floats",
    }
    if attribute.type not in kinds:
        raise OpconformError(f"attribute {attribute.name} of a body's node: nodes there have numbers, text and tensors")
    value = helper.get_attribute_value(attribute)
    value = value.decode() if isinstance(value, bytes) else value
    value = value if isinstance(value, (int, float, str)) else tuple(value)
    return Attribute(attribute.name, kinds[attribute.type], value)
