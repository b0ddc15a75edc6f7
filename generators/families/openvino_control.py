"""OpenVINO's operations with bodies, which only see the values that a port map gives their parameters."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...cases.errors import OpconformError
from ...cases.program import Body, Node
from ..arithmetic.tape import Call, Value
from .control import Known, as_value


def if_(c: Call, condition: Value, inputs: list[Value]) -> tuple[Value, ...]:
    """The results of then_body where the condition holds, else of else_body; parameters have the names of inputs.

    condition: bool, one element, rank 0 or 1. Source: OpenVINO If-8.
    """
    c.require("cond-type", condition.type == "bool")
    c.require("one-element", condition.size == 1)
    c.require("cond-rank", condition.rank <= 1)
    bodies: list[Body] = [c.attr("then_body"), c.attr("else_body")]
    types = [[result.type for result in body.outputs] for body in bodies]
    c.require("same-number", len(types[0]) == len(types[1]) == len(c.output_types))
    c.require("same-types", types[0] == types[1])
    found = [[as_value(c, one) for one in _run(c, body, _named(inputs))] for body in bodies]
    return tuple(found[0] if c.known("cond").reshape(()) else found[1])


def _named(inputs: Sequence[Value]) -> dict[str, Known]:
    """The values of a variadic port by the names that they have in a program."""
    return {f"inputs_{number}": one for number, one in enumerate(inputs)}


def _run(c: Call, body: Body, given: Mapping[str, Known]) -> list[Known]:
    """The results of a body, whose parameters take the values of their names."""
    values: dict[str, Known] = {
        one.name: given[one.name] if one.constant is None else one.array() for one in body.inputs
    }
    for node in body.nodes:
        values |= zip(node.outputs, _made(c, node, [values[name] for name in node.inputs]), strict=True)
    return [values[one.name] for one in body.outputs]


def _made(c: Call, node: Node, given: Sequence[Known]) -> Sequence[Known]:
    """The results of a node of a body, as known arrays if all that it is given is known."""
    told: dict[str, Any] = {one.name: one.value for one in node.attributes}
    if node.operator.name == "If":
        return _inner_if(c, node, given, told)
    if any(isinstance(one, Value) for one in given):
        given = [as_value(c, one) for one in given]
    known: dict[tuple[str, int | str], Callable[..., Known]] = {
        ("Add", 1): operator.add,
        ("Subtract", 1): operator.sub,
        ("Multiply", 1): operator.mul,
        ("Negative", 1): operator.neg,
        ("Less", 1): operator.lt,
        ("Greater", 1): operator.gt,
        ("LogicalNot", 1): operator.invert,
        ("LogicalAnd", 1): operator.and_,
        ("Concat", 1): lambda *several: _joined(several, told["axis"]),
    }
    formula = known.get((node.operator.name, node.operator.version))
    if formula is None:
        raise OpconformError(f"no formula for a body with {node.operator}")
    return [formula(*given)]


def _inner_if(c: Call, node: Node, given: Sequence[Known], told: Mapping[str, Any]) -> Sequence[Known]:
    condition, *_ = given
    if isinstance(condition, Value):
        raise TypeError("the data decide which inner body runs; in a case, known numbers must decide it")
    taken = told["then_body" if np.asarray(condition).reshape(()) else "else_body"]
    return _run(c, taken, dict(zip(node.inputs, given, strict=True)))


def _joined(several: Sequence[Any], axis: int) -> Known:
    first, *others = several
    return np.concatenate(several, axis) if isinstance(first, np.ndarray) else first.concat(others, axis)
