"""Programs as JSON, and back: see docs/corpus.md."""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

from ..elements import Array, content, element_type, from_content
from ..program import (
    Attribute,
    AttributeKind,
    Body,
    Input,
    Node,
    OperatorVersion,
    Output,
    Program,
    SparseTensor,
    Tensor,
)
from ..structures import Structure, leaves, parse_type

TakeConstant = Callable[[str, str, Sequence[int]], Array]
"""Returns the tensor of this name, which must have this type and shape."""

_DEEPEST = 8  # bodies within bodies, and items within items


def constants(program: Program) -> dict[str, Array]:
    """Return the tensors of a program's constants by the names that `program_json` gives them."""
    held = [one for one in (*program.inputs, *program.captured) if one is not None and one.constant is not None]
    return {f"constant_{place}": one.array() for place, one in enumerate(held)}


def program_json(program: Program) -> dict[str, Any]:
    """Return a program as JSON; what it does not use of structures, bodies and omitted outputs is not mentioned."""
    names = (f"constant_{place}" for place in itertools.count())
    return {
        **_operator(program.operator),
        "opset": program.opset,
        "attributes": [_attribute(one) for one in program.attributes],
        "inputs": [None if one is None else _input(one, names) for one in program.inputs],
        "outputs": [_output(one) for one in program.outputs],
        **({"captured": [_input(one, names) for one in program.captured]} if program.captured else {}),
    }


def program_from(told: Mapping[str, Any], take: TakeConstant) -> Program:
    """Return the program that `program_json` tells; `take` gives its constants.

    Raises KeyError, TypeError, ValueError or AttributeError for what is no program.
    """
    return Program(
        _operator_from(told),
        tuple(_attribute_from(one, _DEEPEST) for one in told["attributes"]),
        tuple(None if one is None else _input_from(one, take) for one in told["inputs"]),
        tuple(_output_from(one) for one in told["outputs"]),
        told["opset"],
        tuple(_input_from(one, take) for one in told.get("captured", ())),
    )


def structure_json(structure: Structure) -> dict[str, Any]:
    """Return a structure as JSON, without what it has none of."""
    told: dict[str, Any] = {"kind": structure.kind}
    if structure.dims is not None:
        told["dims"] = list(structure.dims)
    if structure.kind in ("sequence", "optional"):
        told["items"] = [structure_json(item) for item in structure.items]
    if structure.kind in ("map", "sparse"):
        told["count"] = structure.count
    return told


def structure_from(told: Mapping[str, Any], depth: int = _DEEPEST) -> Structure:
    """Return the structure that `structure_json` tells; ValueError for what is none."""
    if not depth or told["kind"] not in ("tensor", "sequence", "optional", "map", "sparse"):
        raise ValueError(f"no structure: {told['kind']!r}")
    dims = None if told.get("dims") is None else tuple(told["dims"])
    items = tuple(structure_from(item, depth - 1) for item in told.get("items", ()))
    return Structure(told["kind"], dims, items, int(told.get("count", 0)))


def _operator(operator: OperatorVersion) -> dict[str, Any]:
    return {
        "standard": operator.standard,
        "name": operator.name,
        "version": operator.version,
        "domain": operator.domain,
    }


def _operator_from(told: Mapping[str, Any]) -> OperatorVersion:
    return OperatorVersion(told["standard"], told["name"], told["version"], told["domain"])


def _attribute(attribute: Attribute) -> dict[str, Any]:
    value = attribute.value
    told = [attribute_value(one) for one in value] if isinstance(value, tuple) else attribute_value(value)
    return {"name": attribute.name, "kind": attribute.kind, "value": told}


def attribute_value(value: object) -> Any:
    """Return a value of an attribute, or an item of one, as JSON; infinities and NaN as text."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)  # JSON has no word for it
        case Tensor():
            return _tensor(value)
        case SparseTensor():
            return {"values": _tensor(value.values), "indices": _tensor(value.indices), "dims": list(value.dims)}
        case Body():
            return {
                "name": value.name,
                "inputs": [_input(one, None) for one in value.inputs],
                "outputs": [_output(one) for one in value.outputs],
                "nodes": [
                    {
                        **_operator(node.operator),
                        "inputs": list(node.inputs),
                        "outputs": list(node.outputs),
                        "attributes": [_attribute(one) for one in node.attributes],
                    }
                    for node in value.nodes
                ],
            }
    return value


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {"type": tensor.type, "dims": list(tensor.dims), "content": base64.b64encode(tensor.content).decode()}


def _attribute_from(told: Mapping[str, Any], depth: int) -> Attribute:
    kind, value = told["kind"], told["value"]
    if kind not in get_args(AttributeKind) or not depth:
        raise ValueError(f"no attribute of kind {kind!r}")
    if isinstance(value, list):
        return Attribute(told["name"], kind, tuple(_value_from(kind, one, depth) for one in value))
    return Attribute(told["name"], kind, _value_from(kind, value, depth))


def _value_from(kind: str, value: Any, depth: int) -> Any:
    match kind.removesuffix("s"):
        case "float" | "f32" if isinstance(value, str):
            return float(value)
        case "tensor":
            return _tensor_from(value)
        case "sparse_tensor":
            values, indices = _tensor_from(value["values"]), _tensor_from(value["indices"])
            return SparseTensor(values, indices, tuple(map(int, value["dims"])))
        case "graph":
            return Body(
                value["name"],
                tuple(_input_from(one, None) for one in value["inputs"]),
                tuple(one for one in map(_output_from, value["outputs"]) if one is not None),
                tuple(
                    Node(
                        _operator_from(node),
                        tuple(node["inputs"]),
                        tuple(node["outputs"]),
                        tuple(_attribute_from(one, depth - 1) for one in node["attributes"]),
                    )
                    for node in value["nodes"]
                ),
            )
    if not isinstance(value, int | float | str):
        raise TypeError(f"no value of kind {kind}: {value!r}")
    return value


def _tensor_from(told: Mapping[str, Any]) -> Tensor:
    held = base64.b64decode(told["content"], validate=True)
    return Tensor.of(from_content(told["type"], tuple(told["dims"]), held))


def _input(given: Input, names: Iterator[str] | None) -> dict[str, Any]:
    """Return an input; its constant has the next of `names`, or stands in its place without."""
    told: dict[str, Any] = {"name": given.name, "type": given.type, "dims": list(given.dims), "constant": None}
    if given.constant is not None:
        told["constant"] = base64.b64encode(given.constant).decode() if names is None else next(names)
    return told if given.structure is None else {**told, "structure": structure_json(given.structure)}


def _input_from(told: Mapping[str, Any], take: TakeConstant | None) -> Input:
    name, type_, dims, constant = told["name"], told["type"], tuple(told["dims"]), told["constant"]
    structure = None if told.get("structure") is None else structure_from(told["structure"])
    leaves(type_, Structure("tensor", dims) if structure is None else structure)
    if constant is None:
        return Input(name, type_, dims, None, structure)
    if take is None:
        return Input(name, type_, dims, content(from_content(type_, dims, base64.b64decode(constant, validate=True))))
    return Input(name, type_, dims, content(take(constant, element_type(type_).name, dims)))


def _output(output: Output | None) -> dict[str, Any] | None:
    return None if output is None else {"name": output.name, "type": output.type, "rank": output.rank}


def _output_from(told: Mapping[str, Any] | None) -> Output | None:
    if told is None:
        return None
    parse_type(told["type"])
    return Output(told["name"], told["type"], told["rank"])
