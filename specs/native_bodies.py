"""Bodies of standards other than ONNX, which spec files write in ONNX's text too, with operations of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..cases.errors import OpconformError
from ..cases.program import NO_VERSION, UNRANKED, Attribute, Body, Input, Node, OperatorVersion, Output, is_tensor

SET = "opset"
"""Begins the domain of a node that is an operation: `opset1.Add` is Add-1. A node without one is a rule of the body."""
PORT_MAP = "port_map"
"""The attribute whose rules connect a body with the operation around it."""


def native(body: Body, standard: str) -> Body:
    """Return a body that was read as ONNX's, with its nodes in another standard.

    A tensor without a shape may have any rank. Raises OpconformError for a node of another domain.
    """
    nodes = tuple(_node(node, standard) for node in body.nodes)
    return replace(body, inputs=tuple(map(_input, body.inputs)), nodes=nodes)


def version_in(domain: str) -> int | str | None:
    """Return the version that a domain names, `any` for none, or None if it names something else."""
    if not domain:
        return NO_VERSION
    number = domain.removeprefix(SET)
    return int(number) if number != domain and number.isascii() and number.isdigit() else None


def results_of(attributes: Sequence[Attribute]) -> tuple[Output, ...]:
    """Return the results of the first body, or those that its port map takes to outputs, in its order."""
    bodies = {attribute.name: attribute.value for attribute in attributes if isinstance(attribute.value, Body)}
    first = next(iter(bodies.values()), None)
    if first is None or PORT_MAP not in bodies:
        return () if first is None else first.outputs
    results = {result.name: result for result in first.outputs}
    rules = (rule for rule in bodies[PORT_MAP].nodes if rule.operator.name == "output")
    return tuple(results[rule.inputs[0]] for rule in rules if "purpose" not in {part.name for part in rule.attributes})


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
