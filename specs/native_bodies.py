"""Bodies of standards other than ONNX, which spec files write in ONNX's text too, with operations of their own."""

from __future__ import annotations

from dataclasses import replace

from ..cases.errors import OpconformError
from ..cases.program import NO_VERSION, UNRANKED, Attribute, Body, Input, Node, OperatorVersion, is_tensor

SET = "opset"
"""Begins the domain of a node that is an operation: `opset1.Add` is Add-1. A node without one is a rule of the body."""


def native(body: Body, standard: str) -> Body:
    """Return a body that was read as ONNX's, with its nodes in another standard.

    A tensor without a shape may have any rank. Raises OpconformError for a node of another domain.
    """
    return Body(
        body.name,
        tuple(map(_input, body.inputs)),
        body.outputs,
        tuple(_node(node, standard) for node in body.nodes),
    )


def version_in(domain: str) -> int | str | None:
    """Return the version that a domain names, `any` for none, or None if it names something else."""
    if not domain:
        return NO_VERSION
    number = domain.removeprefix(SET)
    return int(number) if number != domain and number.isascii() and number.isdigit() else None


def _input(given: Input) -> Input:
    is_open = given.structure is not None and is_tensor(given.type)
    return replace(given, dims=UNRANKED, structure=None) if is_open else given


def _node(node: Node, standard: str) -> Node:
    version = version_in(node.operator.domain)
    if version is None:
        raise OpconformError(f"a body has {node.operator.domain}.{node.operator.name}; write {SET}1.Add and the like")
    attributes = tuple(_attribute(attribute, standard) for attribute in node.attributes)
    return replace(node, operator=OperatorVersion(standard, node.operator.name, version), attributes=attributes)


def _attribute(attribute: Attribute, standard: str) -> Attribute:
    value = attribute.value
    return replace(attribute, value=native(value, standard)) if isinstance(value, Body) else attribute
