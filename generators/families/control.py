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
    found = [[as_value(c, one) for one in run(c, body, ())] for body in branches]
    if "same-shape" in c.clauses:
        c.require("same-shape", [one.shape for one in found[0]] == [one.shape for one in found[1]])
    return tuple(found[0] if c.known("cond").reshape(()) else found[1])


def loop(c: Call, most: Value | None, condition: Value | None, carried: list[Value]) -> tuple[Value, ...]:
    """The carried values after the last iteration, then the other outputs of all iterations, stacked on a first axis.

    most: int64, the most iterations; condition: bool, whether there is a first one; carried: the initial values. The
    body takes the iteration's number, the condition and the carried values; its first output says whether to continue,
    which only counts if the condition is an input. Source: ONNX Loop-1 to 25.
    """
    body: Body = c.attr("body")
    fed = [one for one in body.inputs if one.constant is None]
    c.require("body-inputs", len(fed) == len(carried) + 2 and len(body.outputs) > len(c.output_types))
    trips = None if most is None else int(c.known("M").reshape(()))
    if trips is not None and trips < 0:
        c.open("trips-negative")
    go = None if condition is None else c.known("cond").reshape(())
    return tuple(as_value(c, one) for one in _turns(c, body, (trips, go), carried, c.captured))


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
        go, *found = run(c, body, (np.array(turn), go, *values), around)
        values = found[: len(carried)]
        for scan, one in zip(scans, found[len(carried) :], strict=True):
            row = as_value(c, one)
            scan.append(row.reshape(1, *row.shape))
    c.require_if_stated("same-shape", all(len({row.shape for row in scan}) <= 1 for scan in scans))
    for scan, one in zip(scans, probe, strict=True):
        row = as_value(c, one)
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
    fed = [one for one in body.inputs if one.constant is None]
    c.require("body-inputs", held >= 0 and [one.type for one in fed] == [one.type for one in given])
    c.require("body-outputs", len(body.outputs) == len(c.output_types) >= held)
    states, scans, stacked = given[:held], given[held:], len(body.outputs) - held
    if "batch" in c.clauses:
        return tuple(_batches(c, body, inputs[0], states, scans))
    backward = _flags(c, "scan_input_directions", many)
    axes = _axes(c, "scan_input_axes", [one.rank for one in scans])
    c.require("lengths", len({one.shape[axis] for one, axis in zip(scans, axes, strict=True)}) == 1)
    count = scans[0].shape[axes[0]]
    places = [range(count)[:: -1 if turned else 1] for turned in backward]
    final, rows, like = _scanned(c, body, states, list(zip(scans, axes, places, strict=True)))
    prepended = _flags(c, "scan_output_directions", stacked)
    along = _axes(c, "scan_output_axes", [one.rank + 1 for one in like])
    ordered = [row[::-1] if turned else row for row, turned in zip(rows, prepended, strict=True)]
    return *final, *(_stacked(c, *one) for one in zip(ordered, like, along, strict=True))


def _batches(
    c: Call, body: Body, lengths: Value | None, states: Sequence[Value], scans: Sequence[Value]
) -> list[Value]:
    """The outputs of Scan-8: each batch is scanned separately, and elements beyond its length are free."""
    backward = _flags(c, "directions", len(scans))
    c.require("batched", all(one.rank > 1 for one in scans) and all(one.rank for one in states))
    c.require("batch-sizes", len({one.shape[0] for one in (*states, *scans)}) == 1)
    c.require("lengths", len({one.shape[1] for one in scans}) == 1)
    batches, longest = scans[0].shape[:2]
    c.require("lens-shape", lengths is None or lengths.shape == (batches,))
    counts = [longest] * batches if lengths is None else c.known("sequence_lens").tolist()
    c.require("lens-range", max(counts, default=0) <= longest)
    is_short = any(backward) and min(counts, default=longest) < longest
    whole = is_short and c.open("reverse-lengths") == "whole-end"
    found: list[list[Value]] = [[] for _ in body.outputs]
    for batch, length in enumerate(counts or [0]):  # without batches, the shapes for one
        back = range(longest if whole else length)[::-1][:length]
        own = [[_element(c, one, 0, batch) for one in several] for several in (states, scans)]
        steps = [(one, 0, back if turned else range(length)) for one, turned in zip(own[1], backward, strict=True)]
        final, rows, like = _scanned(c, body, own[0], steps)
        beyond = c.constant(np.arange(longest) >= length, "bool")
        for row, one in zip(rows, like, strict=True):
            padded = _stacked(c, [*row, *[one] * (longest - length)], one, 0)
            mask = beyond.reshape(longest, *(1 for _ in one.shape)).broadcast(*padded.shape)
            final.append(padded.undefined(mask) if length < longest else padded)
        for several, one in zip(found, final, strict=True):
            several.append(one)
    return [_stacked(c, several if batches else [], several[0], 0) for several in found]


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
        found = [as_value(c, one) for one in run(c, body, (*held, *elements), around)]
        rows.append(found[len(states) :])
        if count:
            held = found[: len(states)]
            shapes.append([one.shape for one in found])
    c.require("same-shape", all(one == shapes[0] for one in shapes))
    if any(one.shape != first.shape for one, first in zip(held, states, strict=True)):
        c.open("initial-shape")
    return held, [list(row) for row in zip(*rows[:count], strict=True)] or [[] for _ in rows[0]], rows[0]


def _element(c: Call, x: Value, axis: int, place: int) -> Value:
    """The element at an index of an axis, without that axis; any values of its shape if the axis is empty."""
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    if not x.shape[axis]:
        return c.constant("" if x.kind == "text" else 0, x.type).broadcast(*shape)
    return x.take(np.array([place]), axis).reshape(*shape)


def _stacked(c: Call, rows: Sequence[Value], like: Value, axis: int) -> Value:
    """The rows along a new axis; without rows, an empty tensor with the other dimensions of `like`."""
    shape = (*like.shape[:axis], len(rows[:1]), *like.shape[axis:])
    if not rows:
        return c.constant(0, like.type).broadcast(*shape)
    first, *rest = (one.reshape(*shape) for one in rows)
    return first.concat(rest, axis)


def _flags(c: Call, name: str, count: int) -> list[bool]:
    """An attribute with a direction for each of several tensors: whether it is scanned, or built, from the end."""
    told = c.ints(name)
    c.require("lists", told is None or len(told) == count)
    flags = told or (0,) * count
    if any(one not in (0, 1) for one in flags):
        other = c.open("direction-other") == "reverse"
    return [one == 1 or (one != 0 and other) for one in flags]


def _axes(c: Call, name: str, ranks: Sequence[int]) -> list[int]:
    """An attribute with an axis for each of several tensors of these ranks, counted from the front."""
    told = c.ints(name)
    c.require("lists", told is None or len(told) == len(ranks))
    axes = told or (0,) * len(ranks)
    c.require("axes-range", all(-rank <= axis < rank for axis, rank in zip(axes, ranks, strict=True)))
    if min(axes, default=0) < 0 and "axes-negative" not in c.clauses:
        c.open("axis-negative")
    return [axis % rank for axis, rank in zip(axes, ranks, strict=True)]


def sequence_map(c: Call, items: list[Value], others: list[Any]) -> tuple[list[Value], ...]:
    """The body's outputs for each item, as sequences; it also gets other sequences' items, and other tensors.

    others: tensors, and sequences of at least as many items. Source: ONNX SequenceMap-17.
    """
    body: Body = c.attr("body")
    fed = [one.type for one in body.inputs if one.constant is None]
    c.require("body-inputs", len(fed) == 1 + len(others))
    c.require("body-outputs", len(body.outputs) == len(c.output_types))
    lengths = [len(one) for one in others if isinstance(one, list)]
    c.require("too-short", min(lengths, default=len(items)) >= len(items))
    if max(lengths, default=0) > len(items):
        c.open("longer")
    rows = []
    for place, item in enumerate(items):
        given = [item, *(one[place] if isinstance(one, list) else one for one in others)]
        c.require("body-inputs", fed == [one.type for one in given])
        rows.append([as_value(c, one) for one in run(c, body, given)])
    return tuple([row[place] for row in rows] for place in range(len(body.outputs)))


def run(c: Call, body: Body, given: Sequence[Known], around: Mapping[str, Known] | None = None) -> list[Known]:
    """The outputs of a body, whose nodes run in order; it refers to outer values by name."""
    names: dict[str, Known] = dict(c.captured if around is None else around)
    fed = [one for one in body.inputs if one.constant is None]
    names |= {one.name: one.array() for one in body.inputs if one.constant is not None}
    names |= {one.name: value for one, value in zip(fed, given, strict=True)}
    for node in body.nodes:
        found = [names[name] if name else None for name in node.inputs]
        inner = {"Loop": _inner_loop, "If": _inner_if, "Scan": _inner_scan}.get(node.operator.name)
        made = [_made(c, node, found)] if inner is None else inner(c, node, found, names)
        names |= zip(node.outputs, made, strict=False)
    return [names[one.name] for one in body.outputs]


def _inner_if(c: Call, node: Node, given: Sequence[Known], around: Mapping[str, Known]) -> list[Known]:
    if isinstance(given[0], Value):
        raise TypeError("the data decide which inner body runs; in a case, known numbers must decide it")
    taken = "then_branch" if given[0] else "else_branch"
    (body,) = (one.value for one in node.attributes if one.name == taken and isinstance(one.value, Body))
    return run(c, body, (), around)


def _inner_loop(c: Call, node: Node, given: Sequence[Known], around: Mapping[str, Known]) -> list[Known]:
    most, condition, *carried = given
    (body,) = (one.value for one in node.attributes if isinstance(one.value, Body))
    if isinstance(most, Value) or isinstance(condition, Value):
        raise TypeError("the data decide how often an inner body runs; in a case, known numbers must decide it")
    return _turns(c, body, (None if most is None else int(np.asarray(most)), condition), carried, around)


def _inner_scan(c: Call, node: Node, given: Sequence[Known], around: Mapping[str, Known]) -> list[Known]:
    told = {one.name: one.value for one in node.attributes}
    body, many, values = told["body"], told["num_scan_inputs"], [as_value(c, one) for one in given]
    if len(told) > len(("body", "num_scan_inputs")) or not isinstance(body, Body) or not isinstance(many, int):
        raise OpconformError("no formula for a Scan with axes or directions in a body")
    scans = [(one, 0, range(one.shape[0])) for one in values[-many:]]
    final, rows, like = _scanned(c, body, values[:-many], scans, around)
    return [*final, *(_stacked(c, row, one, 0) for row, one in zip(rows, like, strict=True))]


def as_value(c: Call, one: Known) -> Any:
    """Return a value of a body as a tensor, a known one as a constant; a list item by item."""
    if isinstance(one, list):
        return [as_value(c, item) for item in one]
    return c.constant(one, type_of(np.asarray(one))) if isinstance(one, (np.ndarray, np.generic)) else one


def _made(c: Call, node: Node, given: Sequence[Known]) -> Any:
    """The result of a node of a body, both for values and for known arrays."""
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
        given = [as_value(c, one) for one in given]
    known: dict[str, Callable[..., Any]] = {
        "SequenceConstruct": lambda *items: list(items),
        "SequenceInsert": lambda items, item: [*items, item],
        "Optional": lambda x=None: x,
        "OptionalGetElement": lambda x: x,
        "OptionalHasElement": lambda x=None: np.array(x is not None),
        "Concat": lambda x, *others: x.concat(others, told["axis"]),
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
