"""OpenVINO's operations with bodies, which only see the values that a port map gives their parameters."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...cases.elements import element_type
from ...cases.errors import OpconformError
from ...cases.program import Body, Node
from ..arithmetic.tape import Call, Value
from .control import LONGEST, Known, as_value


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
    branches = [[as_value(c, value) for value in _run(c, body, _named(inputs))] for body in bodies]
    return tuple(branches[0] if c.known("cond").reshape(()) else branches[1])


def tensor_iterator(c: Call, inputs: list[Value]) -> tuple[Value, ...]:
    """What the port map makes of the results of the body, which runs once for each piece of the inputs with an axis.

    A back edge gives a parameter the result of the iteration before; in the first one it has the input's value.
    Source: OpenVINO TensorIterator-1.
    """
    rules = _Rules.of(c, _named(inputs))
    c.require("same-count", len({len(pieces) for pieces in rules.pieces.values()}) == 1)
    turns, held = list[dict[str, Known]](), dict(rules.held)
    for pieces in zip(*rules.pieces.values(), strict=True):
        turns.append(rules.turn(c, {**held, **dict(zip(rules.pieces, pieces, strict=True))}))
        held |= rules.next(turns[-1])
    return rules.outputs(c, turns)


def loop(c: Call, trips: Value, condition: Value, inputs: list[Value]) -> tuple[Value, ...]:
    """What the port map makes of the results of the body, which runs while it says so, and at most so many times.

    trips: int32 or int64, -1 for no limit; condition: bool, whether there is a first iteration; one element each, of
    rank 0 or 1. Source: OpenVINO Loop-5.
    """
    for name, operand in (("trips", trips), ("condition", condition)):
        c.require(f"{name}-one-element", operand.size == 1)
        c.require(f"{name}-rank", operand.rank <= 1)
    c.require("trips-type", trips.type in ("int32", "int64"))
    c.require("condition-type", condition.type == "bool")
    most, go = int(c.known("trip_count").reshape(())), bool(c.known("execution_condition").reshape(()))
    if most < -1:
        most = -1 if c.open("trips-negative") == "no-limit" else 0
    rules = _Rules.of(c, _named(inputs))
    turns, held = list[dict[str, Known]](), dict(rules.held)
    while go and len(turns) != most:
        number = len(turns)
        if number == LONGEST:
            raise OpconformError(f"a loop of over {LONGEST:,} iterations cannot be a case: it may never end")
        if any(number >= len(pieces) for pieces in rules.pieces.values()):
            c.open("beyond-pieces")
        now = {name: pieces[number] for name, pieces in rules.pieces.items()}
        turns.append(rules.turn(c, {**held, **now, **rules.numbered(number)}))
        held |= rules.next(turns[-1])
        again = turns[-1][rules.again]
        if isinstance(again, Value):
            raise TypeError("the data decide whether the loop continues; in a case, known numbers must decide it")
        go = bool(np.asarray(again).reshape(()))
    if not turns:
        c.open("no-iteration")
        return rules.untouched(c)
    return rules.outputs(c, turns)


@dataclass(frozen=True)
class _Rules:
    """A body with its port map and its back edges.

    `held`: parameters with the whole value of an input; `pieces`: those that get a piece of one in each iteration.
    `back`: parameters with the names of the results that they get. `made`: outputs with names of results, and the
    attributes of their rules. `number`, `again`: a Loop's parameter for the number of the iteration, and the result
    that says whether to go on.
    """

    body: Body
    held: Mapping[str, Known]
    pieces: Mapping[str, Sequence[Value]]
    back: Mapping[str, str]
    made: Mapping[str, tuple[str, Mapping[str, Any]]]
    number: str
    again: str

    @classmethod
    def of(cls, c: Call, given: Mapping[str, Known]) -> _Rules:
        """Read the attributes body, port_map and back_edges."""
        edges: Body | None = c.attr("back_edges")
        held, pieces = dict[str, Known](), dict[str, Sequence[Value]]()
        made = dict[str, tuple[str, Mapping[str, Any]]]()
        special = {"current_iteration": "", "execution_condition": ""}
        for node in c.attr("port_map").nodes:
            attributes = {attribute.name: attribute.value for attribute in node.attributes}
            source, to = node.inputs[0] if node.inputs else "", node.outputs[0]
            if "purpose" in attributes:
                special[attributes["purpose"]] = source or to
            elif node.operator.name == "output":
                made[to] = source, attributes
            elif "axis" in attributes:
                pieces[to] = _pieces(c, given[source], attributes)
            else:
                held[to] = given[source]
        back = {node.outputs[0]: node.inputs[0] for node in (edges.nodes if edges else ())}
        return cls(c.attr("body"), held, pieces, back, made, *special.values())

    def turn(self, c: Call, given: Mapping[str, Known]) -> dict[str, Known]:
        """The results of one iteration, by name."""
        return dict(zip((output.name for output in self.body.outputs), _run(c, self.body, given), strict=True))

    def next(self, results: Mapping[str, Known]) -> dict[str, Known]:
        """What back edges give the next iteration, after one with these results."""
        return {to: results[source] for to, source in self.back.items()}

    def numbered(self, number: int) -> dict[str, Known]:
        """The parameter that gets the number of the iteration, if there is one."""
        return {
            port.name: np.full(tuple(int(d) for d in port.dims), number, element_type(port.type).dtype)
            for port in self.body.inputs
            if port.name == self.number
        }

    def outputs(self, c: Call, turns: Sequence[Mapping[str, Known]]) -> tuple[Value, ...]:
        """The outputs, after all iterations: the last result, or all of them along an axis."""
        made = []
        for name in c.output_types:
            result, attributes = self.made[name]
            rows = [as_value(c, turn[result]) for turn in turns]
            if "axis" not in attributes:
                made.append(rows[-1])
                continue
            first, *others = rows if attributes.get("stride", 1) > 0 else rows[::-1]
            made.append(first.concat(others, _axis(c, attributes["axis"], first.rank)))
        return tuple(made)

    def untouched(self, c: Call) -> tuple[Value, ...]:
        """The outputs without iterations: what back edges carry, and empty tensors along an axis."""
        shapes = self.turn(c, {**self.held, **{n: parts[0] for n, parts in self.pieces.items()}, **self.numbered(0)})
        made = []
        for name in c.output_types:
            result, attributes = self.made[name]
            if "axis" in attributes:
                row = as_value(c, shapes[result])
                made.append(row.take(np.zeros(0, np.int64), _axis(c, attributes["axis"], row.rank)))
            else:
                made.append(as_value(c, next(self.held[to] for to, source in self.back.items() if source == result)))
        return tuple(made)


def _pieces(c: Call, x: Any, attributes: Mapping[str, Any]) -> Sequence[Value]:
    """The pieces of an input along an axis, as long as the stride, from the end if that is negative."""
    axis = _axis(c, attributes["axis"], x.rank)
    extent, stride = x.shape[axis], attributes.get("stride", 1)
    if not extent:
        c.open("no-iteration")
    ends = attributes.get("start", 0), attributes.get("end", -1)
    c.require_if_stated("index-range", all(-extent <= end < extent for end in ends))
    low, high = (end % extent for end in (ends if stride > 0 else ends[::-1]))
    count, rest = divmod(high - low + 1, abs(stride))
    if rest:
        c.open("remainder")
    places = range(low, high + 1 - rest) if stride > 0 else range(low + rest, high + 1)
    pieces = [places[turn * abs(stride) : (turn + 1) * abs(stride)] for turn in range(count)]
    return [x.take(np.array(piece), axis) for piece in (pieces if stride > 0 else pieces[::-1])]


def _axis(c: Call, axis: int, rank: int) -> int:
    c.require("axis-range", -rank <= axis < rank)
    if axis < 0 and c.silent("axis-negative"):
        c.open("axis-negative")
    return axis % rank


def _named(inputs: Sequence[Value]) -> dict[str, Known]:
    """The values of a variadic port by the names that they have in a program."""
    return {f"inputs_{number}": value for number, value in enumerate(inputs)}


def _run(c: Call, body: Body, given: Mapping[str, Known]) -> list[Known]:
    """The results of a body, whose parameters take the values of their names."""
    values: dict[str, Known] = {
        port.name: given[port.name] if port.constant is None else port.array() for port in body.inputs
    }
    for node in body.nodes:
        values |= zip(node.outputs, _made(c, node, [values[name] for name in node.inputs]), strict=True)
    return [values[output.name] for output in body.outputs]


def _made(c: Call, node: Node, given: Sequence[Known]) -> Sequence[Known]:
    """The results of a node of a body, as known arrays if all that it is given is known."""
    attributes: dict[str, Any] = {attribute.name: attribute.value for attribute in node.attributes}
    if node.operator.name == "If":
        return _inner_if(c, node, given, attributes)
    if any(isinstance(operand, Value) for operand in given):
        given = [as_value(c, operand) for operand in given]
    known: dict[tuple[str, int | str], Callable[..., Known]] = {
        ("Add", 1): operator.add,
        ("Subtract", 1): operator.sub,
        ("Multiply", 1): operator.mul,
        ("Negative", 1): operator.neg,
        ("Less", 1): operator.lt,
        ("Greater", 1): operator.gt,
        ("LogicalNot", 1): operator.invert,
        ("LogicalAnd", 1): operator.and_,
        ("Concat", 1): lambda *several: _joined(several, attributes["axis"]),
    }
    formula = known.get((node.operator.name, node.operator.version))
    if formula is None:
        raise OpconformError(f"no formula for a body with {node.operator}")
    return [formula(*given)]


def _inner_if(c: Call, node: Node, given: Sequence[Known], attributes: Mapping[str, Any]) -> Sequence[Known]:
    condition, *_ = given
    if isinstance(condition, Value):
        raise TypeError("the data decide which inner body runs; in a case, known numbers must decide it")
    taken = attributes["then_body" if np.asarray(condition).reshape(()) else "else_body"]
    return _run(c, taken, dict(zip(node.inputs, given, strict=True)))


def _joined(several: Sequence[Any], axis: int) -> Known:
    first, *others = several
    return np.concatenate(several, axis) if isinstance(first, np.ndarray) else first.concat(others, axis)
