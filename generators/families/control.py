"""Operators that run bodies: If, Loop, Scan, SequenceMap."""

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
"""The most iterations of a case's loop."""

Known: TypeAlias = "Value | Array | list[Any] | None"
"""A value of a body: a tensor that depends on data or is known during recording, a sequence, or an empty optional."""


def if_(c: Call, condition: Value) -> tuple[Value, ...]:
    """The outputs of then_branch if the condition holds, else of else_branch. Bodies see the outer values.

    condition: bool, one element. Source: ONNX If-1 to 25.
    """
    c.require("one-element", condition.size == 1)
    if condition.rank:
        c.open("rank")
    branches: list[Body] = [c.attr("then_branch"), c.attr("else_branch")]
    c.require("captures", not any(body.inputs for body in branches))
    types = [[out.type for out in body.outputs] for body in branches]
    c.require("same-outputs", types[0] == types[1] and len(types[0]) >= len(c.output_types))
    results = [[as_value(c, output) for output in run(c, body, ())] for body in branches]
    if "same-shape" in c.clauses:
        c.require("same-shape", [output.shape for output in results[0]] == [output.shape for output in results[1]])
    return tuple(results[0] if c.known("cond").reshape(()) else results[1])


def loop(c: Call, most: Value | None, condition: Value | None, carried: list[Value]) -> tuple[Value, ...]:
    """The carried values after the last iteration, then the other outputs of all iterations, stacked on a first axis.

    most: int64, the most iterations; condition: bool, whether there is a first one; carried: the initial values. The
    body takes the iteration's number, the condition and the carried values; its first output says whether to continue,
    which only counts if the condition is an input. Source: ONNX Loop-1 to 25.
    """
    body: Body = c.attr("body")
    fed = [port for port in body.inputs if port.constant is None]
    c.require("body-inputs", len(fed) == len(carried) + 2 and len(body.outputs) > len(c.output_types))
    trips = None if most is None else int(c.known("M").reshape(()))
    if trips is not None and trips < 0:
        c.open("trips-negative")
    go = None if condition is None else c.known("cond").reshape(())
    return tuple(as_value(c, value) for value in _turns(c, body, (trips, go), carried, c.captured))


def _turns(
    c: Call, body: Body, until: tuple[int | None, Known], carried: Sequence[Known], around: Mapping[str, Known]
) -> list[Known]:
    """The carried values after the last iteration, then the stacked outputs; `until`: limit and condition."""
    trips, condition = until
    go: Known = np.array(True) if condition is None else condition
    values: list[Known] = list(carried)
    probe = run(c, body, (np.array(0), go, *values), around)[1 + len(carried) :]  # the shapes for no iterations
    scans: list[list[Value]] = [[] for _ in probe]
    for turn in count() if trips is None else range(trips):
        if turn == LONGEST:
            raise OpconformError(f"a loop of over {LONGEST:,} iterations cannot be a case: it may never end")
        if isinstance(go, Value):
            raise TypeError("the data decide whether the loop continues; in a case, known numbers must decide it")
        if condition is not None and not go:
            break
        go, *results = run(c, body, (np.array(turn), go, *values), around)
        values = results[: len(carried)]
        for scan, output in zip(scans, results[len(carried) :], strict=True):
            row = as_value(c, output)
            scan.append(row.reshape(1, *row.shape))
    c.require_if_stated("same-shape", all(len({row.shape for row in scan}) <= 1 for scan in scans))
    for scan, output in zip(scans, probe, strict=True):
        row = as_value(c, output)
        values.append(scan[0].concat(scan[1:], 0) if scan else c.constant(0, row.type).broadcast(0, *row.shape))
    return values


def scan(c: Call, *inputs: Any) -> tuple[Value, ...]:
    """The states after the last iteration, then the other outputs of all iterations, stacked along an axis.

    inputs: the states' initial values, then num_scan_inputs tensors; each iteration gets one element of each. In
    version 8 all have a leading batch axis, and int64 lengths before them limit the scan of each batch. The body takes
    the states and the elements, without their axis. Source: ONNX Scan-8 to 25.
    """
    body, given, many = c.attr("body"), inputs[-1], c.attr("num_scan_inputs")
    c.require("one-or-more", many >= 1)
    held = len(given) - many
    fed = [port for port in body.inputs if port.constant is None]
    c.require("body-inputs", held >= 0 and [port.type for port in fed] == [value.type for value in given])
    c.require("body-outputs", len(body.outputs) == len(c.output_types) >= held)
    states, scans, stacked = given[:held], given[held:], len(body.outputs) - held
    if "batch" in c.clauses:
        return tuple(_batches(c, body, inputs[0], states, scans))
    backward = _flags(c, "scan_input_directions", many)
    axes = _axes(c, "scan_input_axes", [value.rank for value in scans])
    c.require("lengths", len({value.shape[axis] for value, axis in zip(scans, axes, strict=True)}) == 1)
    count = scans[0].shape[axes[0]]
    places = [range(count)[:: -1 if turned else 1] for turned in backward]
    final, rows, like = _scanned(c, body, states, list(zip(scans, axes, places, strict=True)))
    prepended = _flags(c, "scan_output_directions", stacked)
    along = _axes(c, "scan_output_axes", [value.rank + 1 for value in like])
    ordered = [row[::-1] if turned else row for row, turned in zip(rows, prepended, strict=True)]
    return *final, *(_stacked(c, *arguments) for arguments in zip(ordered, like, along, strict=True))


def _batches(
    c: Call, body: Body, lengths: Value | None, states: Sequence[Value], scans: Sequence[Value]
) -> list[Value]:
    """The outputs of Scan-8: each batch is scanned separately, and elements beyond its length are free."""
    backward = _flags(c, "directions", len(scans))
    c.require("batched", all(value.rank > 1 for value in scans) and all(value.rank for value in states))
    c.require("batch-sizes", len({value.shape[0] for value in (*states, *scans)}) == 1)
    c.require("lengths", len({value.shape[1] for value in scans}) == 1)
    batches, longest = scans[0].shape[:2]
    c.require("lens-shape", lengths is None or lengths.shape == (batches,))
    counts = [longest] * batches if lengths is None else c.known("sequence_lens").tolist()
    c.require("lens-range", max(counts, default=0) <= longest)
    is_short = any(backward) and min(counts, default=longest) < longest
    from_end = is_short and c.open("reverse-lengths") == "whole-end"
    outputs: list[list[Value]] = [[] for _ in body.outputs]
    for batch, length in enumerate(counts or [0]):  # without batches, the shapes for one
        back = range(longest if from_end else length)[::-1][:length]
        own = [[_element(c, value, 0, batch) for value in several] for several in (states, scans)]
        steps = [(value, 0, back if turned else range(length)) for value, turned in zip(own[1], backward, strict=True)]
        final, rows, like = _scanned(c, body, own[0], steps)
        beyond = c.constant(np.arange(longest) >= length, "bool")
        for row, sample in zip(rows, like, strict=True):
            padded = _stacked(c, [*row, *[sample] * (longest - length)], sample, 0)
            mask = beyond.reshape(longest, *(1 for _ in sample.shape)).broadcast(*padded.shape)
            final.append(padded.undefined(mask) if length < longest else padded)
        for several, output in zip(outputs, final, strict=True):
            several.append(output)
    return [_stacked(c, several if batches else [], several[0], 0) for several in outputs]


def _scanned(
    c: Call,
    body: Body,
    states: Sequence[Value],
    scans: Sequence[tuple[Value, int, range]],
    around: Mapping[str, Known] | None = None,
) -> tuple[list[Value], list[list[Value]], list[Value]]:
    """The last states; the other outputs of each iteration; and one iteration's outputs, for shapes if there is none.

    scans: a tensor, its axis, and the indices along it in the order of the scan.
    """
    held, count = list(states), len(scans[0][2])
    shapes = []
    rows: list[list[Value]] = []
    for turn in range(max(count, 1)):
        elements = [_element(c, x, axis, places[turn] if count else 0) for x, axis, places in scans]
        results = [as_value(c, output) for output in run(c, body, (*held, *elements), around)]
        rows.append(results[len(states) :])
        if count:
            held = results[: len(states)]
            shapes.append([output.shape for output in results])
    c.require("same-shape", all(shape == shapes[0] for shape in shapes))
    if any(last.shape != first.shape for last, first in zip(held, states, strict=True)):
        c.open("initial-shape")
    return held, [list(row) for row in zip(*rows[:count], strict=True)] or [[] for _ in rows[0]], rows[0]


def _element(c: Call, x: Value, axis: int, index: int) -> Value:
    """The element at an index of an axis, without that axis; any values of its shape if the axis is empty."""
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    if not x.shape[axis]:
        return c.constant("" if x.kind == "text" else 0, x.type).broadcast(*shape)
    return x.take(np.array([index]), axis).reshape(*shape)


def _stacked(c: Call, rows: Sequence[Value], like: Value, axis: int) -> Value:
    """The rows along a new axis; without rows, an empty tensor with the other dimensions of `like`."""
    shape = (*like.shape[:axis], len(rows[:1]), *like.shape[axis:])
    if not rows:
        return c.constant(0, like.type).broadcast(*shape)
    first, *rest = (row.reshape(*shape) for row in rows)
    return first.concat(rest, axis)


def _flags(c: Call, name: str, count: int) -> list[bool]:
    """An attribute with a direction for each of several tensors: whether it is scanned, or built, from the end."""
    directions = c.ints(name)
    c.require("lists", directions is None or len(directions) == count)
    flags = directions or (0,) * count
    if any(flag not in (0, 1) for flag in flags):
        other = c.open("direction-other") == "reverse"
    return [flag == 1 or (flag != 0 and other) for flag in flags]


def _axes(c: Call, name: str, ranks: Sequence[int]) -> list[int]:
    """An attribute with an axis for each of several tensors of these ranks, counted from the front."""
    given = c.ints(name)
    c.require("lists", given is None or len(given) == len(ranks))
    axes = given or (0,) * len(ranks)
    c.require("axes-range", all(-rank <= axis < rank for axis, rank in zip(axes, ranks, strict=True)))
    if min(axes, default=0) < 0 and "axes-negative" not in c.clauses:
        c.open("axis-negative")
    return [axis % rank for axis, rank in zip(axes, ranks, strict=True)]


def sequence_map(c: Call, items: list[Value], others: list[Any]) -> tuple[list[Value], ...]:
    """The body's outputs for each item, as sequences; it also gets other sequences' items, and other tensors.

    others: tensors, and sequences of at least as many items. Source: ONNX SequenceMap-17.
    """
    body: Body = c.attr("body")
    fed = [port.type for port in body.inputs if port.constant is None]
    c.require("body-inputs", len(fed) == 1 + len(others))
    c.require("body-outputs", len(body.outputs) == len(c.output_types))
    lengths = [len(sequence) for sequence in others if isinstance(sequence, list)]
    c.require("too-short", min(lengths, default=len(items)) >= len(items))
    if max(lengths, default=0) > len(items):
        c.open("longer")
    rows = []
    for index, item in enumerate(items):
        given = [item, *(other[index] if isinstance(other, list) else other for other in others)]
        c.require("body-inputs", fed == [value.type for value in given])
        rows.append([as_value(c, output) for output in run(c, body, given)])
    return tuple([row[index] for row in rows] for index in range(len(body.outputs)))


def run(c: Call, body: Body, given: Sequence[Known], around: Mapping[str, Known] | None = None) -> list[Known]:
    """The outputs of a body, whose nodes run in order; it refers to outer values by name."""
    names: dict[str, Known] = dict(c.captured if around is None else around)
    fed = [port for port in body.inputs if port.constant is None]
    names |= {port.name: port.array() for port in body.inputs if port.constant is not None}
    names |= {port.name: value for port, value in zip(fed, given, strict=True)}
    for node in body.nodes:
        operands = [names[name] if name else None for name in node.inputs]
        inner = {"Loop": _inner_loop, "If": _inner_if, "Scan": _inner_scan}.get(node.operator.name)
        made = [_made(c, node, operands)] if inner is None else inner(c, node, operands, names)
        names |= zip(node.outputs, made, strict=False)
    return [names[port.name] for port in body.outputs]


def _inner_if(c: Call, node: Node, given: Sequence[Known], around: Mapping[str, Known]) -> list[Known]:
    if isinstance(given[0], Value):
        raise TypeError("the data decide which inner body runs; in a case, known numbers must decide it")
    taken = "then_branch" if given[0] else "else_branch"
    (body,) = (
        attribute.value
        for attribute in node.attributes
        if attribute.name == taken and isinstance(attribute.value, Body)
    )
    return run(c, body, (), around)


def _inner_loop(c: Call, node: Node, given: Sequence[Known], around: Mapping[str, Known]) -> list[Known]:
    most, condition, *carried = given
    (body,) = (attribute.value for attribute in node.attributes if isinstance(attribute.value, Body))
    if isinstance(most, Value) or isinstance(condition, Value):
        raise TypeError("the data decide how often an inner body runs; in a case, known numbers must decide it")
    return _turns(c, body, (None if most is None else int(np.asarray(most)), condition), carried, around)


def _inner_scan(c: Call, node: Node, given: Sequence[Known], around: Mapping[str, Known]) -> list[Known]:
    attributes = {attribute.name: attribute.value for attribute in node.attributes}
    body, many, values = attributes["body"], attributes["num_scan_inputs"], [as_value(c, operand) for operand in given]
    if len(attributes) > len(("body", "num_scan_inputs")) or not isinstance(body, Body) or not isinstance(many, int):
        raise OpconformError("no formula for a Scan with axes or directions in a body")
    scans = [(value, 0, range(value.shape[0])) for value in values[-many:]]
    final, rows, like = _scanned(c, body, values[:-many], scans, around)
    return [*final, *(_stacked(c, row, sample, 0) for row, sample in zip(rows, like, strict=True))]


def as_value(c: Call, value: Known) -> Any:
    """Return a value of a body as a tensor, a known one as a constant; a list item by item."""
    if isinstance(value, list):
        return [as_value(c, item) for item in value]
    return c.constant(value, type_of(np.asarray(value))) if isinstance(value, (np.ndarray, np.generic)) else value


def _made(c: Call, node: Node, given: Sequence[Known]) -> Any:
    """The result of a node of a body, both for values and for known arrays."""
    name = node.operator.name
    attributes: dict[str, Any] = {attribute.name: attribute.value for attribute in node.attributes}
    arrays = [np.asarray(operand) for operand in given if isinstance(operand, (np.ndarray, np.generic))]
    match name:
        case "Constant":
            (value,) = attributes.values()
            return value.array() if isinstance(value, Tensor) else np.array(value)
        case "Unsqueeze" if len(arrays) == len(given):
            axes = attributes["axes"] if "axes" in attributes else arrays[1].reshape(-1).tolist()
            return np.expand_dims(arrays[0], tuple(axes))
        case "Slice" if len(arrays) == len(given) == len(("data", "starts", "ends")):
            pairs = zip(arrays[1].tolist(), arrays[2].tolist(), strict=True)
            return arrays[0][tuple(slice(*ends) for ends in pairs)]
    if any(isinstance(operand, Value) for operand in given):
        given = [as_value(c, operand) for operand in given]
    known: dict[str, Callable[..., Any]] = {
        "SequenceConstruct": lambda *items: list(items),
        "SequenceInsert": lambda items, item: [*items, item],
        "Optional": lambda x=None: x,
        "OptionalGetElement": lambda x: x,
        "OptionalHasElement": lambda x=None: np.array(x is not None),
        "Concat": lambda x, *others: x.concat(others, attributes["axis"]),
        "Identity": lambda x: x,
        "Neg": operator.neg,
        "Add": operator.add,
        "Sub": operator.sub,
        "Mul": operator.mul,
        "Div": operator.truediv,
        "Tanh": lambda x: x.tanh(),
        "Where": lambda condition, x, y: x.where(condition, y),
        "Less": operator.lt,
        "Greater": operator.gt,
        "Not": operator.invert,
        "And": operator.and_,
    }
    if name not in known:
        raise OpconformError(f"no formula for a body with {name}")
    return known[name](*given)
