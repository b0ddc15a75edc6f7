"""Operators that run bodies: If, Loop."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from ...cases.elements import Array, type_of
from ...cases.errors import OpconformError
from ...cases.program import Body, Node, Tensor
from ..arithmetic.tape import Call, Value

LONGEST = 10_000
"""How many iterations a loop of a case may have."""

Known: TypeAlias = "Value | Array | list[Any] | None"
"""A tensor of a body: what the data decide, or what is known while the formula is recorded; a sequence; no optional."""


def if_(c: Call, condition: Value) -> tuple[Value, ...]:
    """The outputs of then_branch where the condition holds, else those of else_branch. Bodies see the values around.

    condition: bool, one element. Source: ONNX If-1 to 25.
    """
    c.require("one-element", condition.size == 1)
    if condition.rank:
        c.open("rank")
    branches: list[Body] = [c.attr("then_branch"), c.attr("else_branch")]
    c.require("no-inputs", not any(body.inputs for body in branches))
    types = [[out.type for out in body.outputs] for body in branches]
    c.require("same-outputs", types[0] == types[1] and len(types[0]) >= len(c.output_types))
    found = [[_value(c, one) for one in run(c, body, ())] for body in branches]
    if "same-shape" in c.clauses:
        c.require("same-shape", [one.shape for one in found[0]] == [one.shape for one in found[1]])
    return tuple(found[0] if c.known("cond").reshape(()) else found[1])


def loop(c: Call, most: Value | None, condition: Value | None, carried: list[Value]) -> tuple[Value, ...]:
    """The carried values after the last iteration, then what each iteration gave beside them, stacked on a first axis.

    most: int64, how many iterations at most; condition: bool, whether there is a first one; carried: the initial
    values. The body takes the iteration's number, the condition and the carried values; its first output says whether
    to go on, which counts only where the condition is an input. Source: ONNX Loop-1 to 25.
    """
    body: Body = c.attr("body")
    fed = [one for one in body.inputs if one.constant is None]
    c.require("body-inputs", len(fed) == len(carried) + 2 and len(body.outputs) > len(c.output_types))
    trips = None if most is None else int(c.known("M").reshape(()))
    if trips is not None and trips < 0:
        c.open("trips-negative")
    go = None if condition is None else c.known("cond").reshape(())
    return tuple(_value(c, one) for one in _turns(c, body, (trips, go), carried, c.captured))


def _turns(
    c: Call, body: Body, until: tuple[int | None, Known], carried: Sequence[Known], around: Mapping[str, Known]
) -> list[Known]:
    """The carried values after the last turn, then what is stacked; `until`: the most turns, and a condition."""
    trips, condition = until
    go: Known = np.array(True) if condition is None else condition
    values: list[Known] = list(carried)
    probe = run(c, body, (np.array(0), go, *values), around)[1 + len(carried) :]  # what no turn would have given
    scans: list[list[Value]] = [[] for _ in probe]
    for turn in count() if trips is None else range(trips):
        if turn == LONGEST:
            raise OpconformError(f"a loop of over {LONGEST:,} iterations is no case: it may never end")
        if isinstance(go, Value):
            raise TypeError("the data decide whether the body goes on; a case must decide it by numbers that it knows")
        if condition is not None and not go:
            break
        go, *found = run(c, body, (np.array(turn), go, *values), around)
        values = found[: len(carried)]
        for scan, one in zip(scans, found[len(carried) :], strict=True):
            row = _value(c, one)
            scan.append(row.reshape(1, *row.shape))
    for scan, one in zip(scans, probe, strict=True):
        row = _value(c, one)
        values.append(scan[0].concat(scan[1:], 0) if scan else c.constant(0, row.type).broadcast(0, *row.shape))
    return values


def run(c: Call, body: Body, given: Sequence[Known], around: Mapping[str, Known] | None = None) -> list[Known]:
    """The outputs of a body, whose nodes are run in turn; values around it go by their names."""
    names: dict[str, Known] = dict(c.captured if around is None else around)
    fed = [one for one in body.inputs if one.constant is None]
    names |= {one.name: one.array() for one in body.inputs if one.constant is not None}
    names |= {one.name: value for one, value in zip(fed, given, strict=True)}
    for node in body.nodes:
        found = [names[name] if name else None for name in node.inputs]
        inner = {"Loop": _inner_loop, "If": _inner_if}.get(node.operator.name)
        made = [_made(c, node, found)] if inner is None else inner(c, node, found, names)
        names |= zip(node.outputs, made, strict=False)
    return [names[one.name] for one in body.outputs]


def _inner_if(c: Call, node: Node, given: Sequence[Known], around: Mapping[str, Known]) -> list[Known]:
    if isinstance(given[0], Value):
        raise TypeError("the data decide which body within a body is run; a case must say it by known numbers")
    taken = "then_branch" if given[0] else "else_branch"
    (body,) = (one.value for one in node.attributes if one.name == taken and isinstance(one.value, Body))
    return run(c, body, (), around)


def _inner_loop(c: Call, node: Node, given: Sequence[Known], around: Mapping[str, Known]) -> list[Known]:
    most, condition, *carried = given
    (body,) = (one.value for one in node.attributes if isinstance(one.value, Body))
    if isinstance(most, Value) or isinstance(condition, Value):
        raise TypeError("the data decide how often a body within a body is run; a case must say it by known numbers")
    return _turns(c, body, (None if most is None else int(np.asarray(most)), condition), carried, around)


def _value(c: Call, one: Known) -> Any:
    if isinstance(one, list):
        return [_value(c, item) for item in one]
    return c.constant(one, type_of(np.asarray(one))) if isinstance(one, (np.ndarray, np.generic)) else one


def _made(c: Call, node: Node, given: Sequence[Known]) -> Any:
    """What a node of a body gives, for values and for known arrays alike."""
    name = node.operator.name
    told: dict[str, Any] = {one.name: one.value for one in node.attributes}
    arrays = [np.asarray(one) for one in given if isinstance(one, (np.ndarray, np.generic))]
    match name:
        case "Constant":
            (value,) = told.values()
            return value.array() if isinstance(value, Tensor) else np.array(value)
        case "Unsqueeze" if len(arrays) == len(given):
            axes = told["axes"] if "axes" in told else arrays[1].reshape(-1).tolist()
            return np.expand_dims(arrays[0], tuple(axes))
        case "Slice" if len(arrays) == len(given) == len(("data", "starts", "ends")):
            pairs = zip(arrays[1].tolist(), arrays[2].tolist(), strict=True)
            return arrays[0][tuple(slice(*ends) for ends in pairs)]
    if any(isinstance(one, Value) for one in given):
        given = [_value(c, one) for one in given]
    known: dict[str, Callable[..., Any]] = {
        "SequenceConstruct": lambda *items: list(items),
        "SequenceInsert": lambda items, item: [*items, item],
        "Optional": lambda x=None: x,
        "OptionalGetElement": lambda x: x,
        "OptionalHasElement": lambda x=None: np.array(x is not None),
        "Identity": lambda x: x,
        "Neg": operator.neg,
        "Add": operator.add,
        "Sub": operator.sub,
        "Mul": operator.mul,
        "Less": operator.lt,
        "Greater": operator.gt,
        "Not": operator.invert,
        "And": operator.and_,
    }
    if name not in known:
        raise OpconformError(f"a body with {name}, of which bodies have no formula")
    return known[name](*given)
