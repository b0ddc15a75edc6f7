"""Mutants of a formula: one node of the recording deviates, whatever the operator.

A node is named by its primitive and its number among the live nodes of that primitive, `sub-1`, so that a mutant means
the same in all programs of an operator version that have that node. Long formulas, such as unrolled loops, also have
one mutant for all nodes of a primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...cases.elements import Array, element_type, type_of
from ..arithmetic.graph import NO_LANE, Graph, Node
from ..primitives.errors import kind_of
from ..primitives.machine import Deviation, Machine

Derived: TypeAlias = Iterator[tuple[str, Deviation]]
Room: TypeAlias = Any

LONG = 40  # nodes
_SPECIAL = frozenset({"nan-lost", "infinity-lost"})
_EACH = 4  # nodes of a primitive that are tried one by one
NARROWER: Mapping[str, str] = {
    "float64": "float32",
    "float32": "float16",
    "float16": "bfloat16",
    "bfloat16": "float8e4m3fn",
}
"""By type, a type by whose precision results may be lost."""
_COMMUTES = frozenset({"add", "mul", "maximum", "minimum", "and", "or", "xor", "equal", "either", "matmul"})
_REDUCES = frozenset({"sum", "mean", "prod", "max", "min"})
_HEEDED: Mapping[str, int] = {"free": 1, "either": 1, "between": 1}
"""The number of operands from which a primitive computes its value; the others only affect bounds."""
_MOVES = frozenset({"reshape", "broadcast", "cast", "store", "either", "between", "free", "fit", "within"})


def deviations(graph: Graph, outputs: Sequence[int]) -> Mapping[str, Mapping[int, Deviation]]:
    """Return the mutants of a formula by name, `sub-1:operands-swapped`: deviations by node.

    Long formulas only have mutants of the first node of each primitive, and of all its nodes.
    """
    by_name: dict[str, dict[int, Deviation]] = {}
    live = _computed(graph, outputs)
    each = _EACH if len(live) <= LONG else 1
    places: dict[str, list[int]] = {}
    for at in live:
        if graph.nodes[at].name != "port":
            places.setdefault(graph.nodes[at].name, []).append(at)
    for name, nodes in places.items():
        for number, at in enumerate(nodes, 1):
            derived = *_of_node(graph, at), *(_of_places(graph, at) if name == "transpose" or at in outputs else ())
            for mistake, deviate in derived:
                if len(nodes) == 1 or (number <= each and mistake not in _SPECIAL):
                    by_name.setdefault(f"{name}-{number}:{mistake}", {})[at] = deviate
                if len(nodes) > 1:
                    by_name.setdefault(f"{name}-all:{mistake}", {})[at] = deviate
    return by_name


def alternatives(graph: Graph, live: Sequence[int]) -> Mapping[str, Mapping[int, Deviation]]:
    """Return what compliant variants do otherwise at nodes: `other-forms` and `unshifted`.

    `other-forms`: the second of two admissible algorithms; `unshifted`: exponentials whose offset cancels, without
    subtracting it, while they are far from overflow.
    """
    by_name: dict[str, dict[int, Deviation]] = {"other-forms": {}, "unshifted": {}}
    users: dict[int, list[Node]] = {}
    for at in live:
        node = graph.nodes[at]
        for a in node.args:
            users.setdefault(a, []).append(node)
        if node.name == "either":
            by_name["other-forms"][at] = _instead(lambda xs, p: ([xs[1], xs[0]], p))
    for at in live:
        if graph.nodes[at].name == "sub" and _are_shifted(users.get(at, ())):
            by_name["unshifted"][at] = _unshifted
    return by_name


def _are_shifted(users: Sequence[Node]) -> bool:
    return bool(users) and all(user.parameters.get("shifted") for user in users)


def _unshifted(m: Machine, room: Room, xs: Sequence[Array], p: Mapping[str, Any]) -> Array:
    far = np.log(element_type(str(m.type)).float_format.largest) / 2
    return np.where((xs[1] >= 0) & (xs[1] < far), xs[0], room.native(m, *xs, **p))


def _computed(graph: Graph, outputs: Sequence[int]) -> list[int]:
    """Return the nodes that affect an implementation's answer, in order, without nodes that only affect bounds."""
    needed: set[int] = set()
    todo = list(outputs)
    while todo:
        at = todo.pop()
        if at not in needed:
            needed.add(at)
            node = graph.nodes[at]
            todo += node.args[: _HEEDED.get(node.name)]
    return sorted(needed)


def _of_node(graph: Graph, at: int) -> Derived:
    node = graph.nodes[at]
    operands = [graph.nodes[a] for a in node.args]
    yield from _of_literal(node)
    if operands and node.name not in _HEEDED:
        yield from _of_operands(node, operands)
        yield from _of_sums(node, operands)
        yield from _of_parameters(node, operands)
    if operands and node.kind == "real" and node.room.work != "moves" and node.name not in _MOVES:
        yield from _of_numbers(node)
    if node.kind == "bool" and operands:
        yield "inverted", _after(lambda y: ~y)
    if len(node.shape) > 1 and node.shape[-1] == node.shape[-2] > 1 and node.name in ("reshape", "transpose"):
        yield "transposed", _after(lambda y: np.swapaxes(y, -1, -2))
    if node.shape and node.shape[-1] > 1 and operands and node.name not in _MOVES:
        yield "shifted", _after(lambda y: np.roll(y, 1, -1))


def _of_literal(node: Node) -> Derived:
    if node.name == "literal" and node.kind in ("real", "int"):
        step: Callable[[Array], Array] = (lambda y: y * (1 + 2.0**-8)) if node.kind == "real" else (lambda y: y + 1)
        with np.errstate(all="ignore"):
            number = np.asarray(node.parameters["number"], np.float64 if node.kind == "real" else object)
            moved = np.asarray(step(number)) != number  # zero and infinities do not change
            is_other = bool(np.any(number != 0))
        if np.any(moved & (number == number)):  # noqa: PLR0124 - NaN
            yield "off-a-little", lambda _m, _room, xs, _p: np.asarray(step(xs[0])).astype(xs[0].dtype)
        if is_other:
            yield "zero", lambda _m, _room, xs, _p: np.zeros_like(xs[0])


def _of_operands(node: Node, operands: Sequence[Node]) -> Derived:
    alike = [o.type == node.type and _reaches(o.shape, node.shape) for o in operands]
    if len(operands) == 1 and alike[0] and operands[0].shape == node.shape and node.name not in (_MOVES | _REDUCES):
        yield "not-applied", lambda _m, _room, xs, _p: xs[0]
    if len(operands) < 2 or node.args[0] == node.args[1]:
        return
    swapped = [operands[1], operands[0], *operands[2:]]
    if operands[0].type == operands[1].type and node.name not in _COMMUTES and _same(node, swapped, node.parameters):
        yield "operands-swapped", _instead(lambda xs, p: ([xs[1], xs[0], *xs[2:]], p))
    for index in range(2):
        if alike[index] and node.name not in ("gather", "along"):
            yield f"operand-{2 - index}-ignored", _kept(node.shape, _operand(index))
    if node.name == "where" and len(operands) > 2:
        yield "condition-inverted", _instead(lambda xs, p: ([*xs[:-1], ~xs[-1]], p))


def _of_sums(node: Node, operands: Sequence[Node]) -> Derived:
    axes, shape = node.parameters.get("axes"), operands[0].shape
    if node.name in _REDUCES and axes and shape[axes[-1]] > 1:
        axis = axes[-1] + 1
        lost = np.ones if node.name == "prod" else np.zeros
        if node.name in ("sum", "mean", "prod"):
            for mistake, where in (("last-term-lost", -1), ("first-term-lost", 0)):
                yield mistake, _instead(lambda xs, p, w=where: ([_without(xs[0], axis, w, lost), *xs[1:]], p))
        else:
            yield "last-term-lost", _instead(lambda xs, p: ([_repeated(xs[0], axis)], p))
        if node.name == "mean":
            count = int(np.prod([shape[a] for a in axes]))
            yield "count-plus-one", _after(_rescaled(count, count + 1))
            if count > 1:
                yield "count-minus-one", _after(_rescaled(count, count - 1))
        other = next((a for a in range(len(shape)) if a not in axes and shape[a] > 1), None)
        if other is not None:
            changed = {**node.parameters, "axes": tuple(sorted((*axes, other)))}
            yield "axes-one-more", _kept(node.shape, _instead(lambda xs, _p: (xs, changed)))
    if node.name == "matmul" and shape[-1] > 1:
        for mistake, where in (("last-term-lost", -1), ("first-term-lost", 0)):
            yield mistake, _instead(lambda xs, p, w=where: ([_without(xs[0], xs[0].ndim - 1, w, np.zeros), *xs[1:]], p))


def _of_parameters(node: Node, operands: Sequence[Node]) -> Derived:
    """Yield nodes with a changed parameter, if the result has the same shape and type."""
    shape = max((o.shape for o in operands), key=len)
    for name, value in node.parameters.items():
        for mistake, other in _other_parameters(name, value, shape):
            changed = {**node.parameters, name: other}
            if _same(node, operands, changed):
                yield f"{name}-{mistake}", _instead(lambda xs, _p, c=changed: (xs, c))


def _other_parameters(name: str, value: Any, shape: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    rank = len(shape)
    if isinstance(value, bool):
        if name != "shifted":  # that only affects bounds
            yield "flipped", not value
    elif name == "axis" and isinstance(value, int) and rank > 1:
        yield "next", (value + 1) % rank
    elif name == "axes" and isinstance(value, tuple) and 0 < len(value) < rank:
        other = tuple(sorted((a + 1) % rank for a in value))
        if any(shape[a] > 1 for a in (*value, *other)):
            yield "next", other
    elif isinstance(value, float) and np.isfinite(value):
        yield "off-a-little", value * (1 + 2.0**-8) if value else 1.0
    elif isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size > 1:
        for mistake, index in (("shifted", np.roll(value, 1, -1)), ("reversed", np.flip(value, -1))):
            if not np.array_equal(index, value):
                yield mistake, np.ascontiguousarray(index)


def _of_places(graph: Graph, at: int) -> Derived:
    """Yield nodes of the right shape whose elements come from other positions: by the strides of other dimensions.

    A reshape in the middle of a formula may reorder elements in a way that another one undoes.
    """
    node = graph.nodes[at]
    if node.name not in _ELSEWHERE:
        return
    mistake, elsewhere = _ELSEWHERE[node.name]
    shape = graph.nodes[node.args[0]].shape
    places = np.arange(int(np.prod(shape))).reshape(1, *shape)
    if not np.array_equal(elsewhere(places, node.parameters), node.room.exact(places, **node.parameters)):
        yield mistake, lambda _m, _room, xs, p: elsewhere(xs[0], p)


def _turned(array: Array) -> Array:
    return array.transpose(0, *range(array.ndim - 1, 0, -1))


def _column_major(array: Array, parameters: Mapping[str, Any]) -> Array:
    return _turned(_turned(array).reshape(len(array), *reversed(parameters["to"])))


def _strides_of_inverse(array: Array, parameters: Mapping[str, Any]) -> Array:
    order = parameters["order"]
    shape = [array.shape[axis + 1] for axis in order]
    return array.transpose(0, *(int(axis) + 1 for axis in np.argsort(order))).reshape(len(array), *shape)


_ELSEWHERE: Mapping[str, tuple[str, Callable[[Array, Mapping[str, Any]], Array]]] = {
    "reshape": ("column-major", _column_major),
    "transpose": ("strides-of-inverse", _strides_of_inverse),
}


def _same(node: Node, operands: Sequence[Node], parameters: Mapping[str, Any]) -> bool:
    empty: list[Array] = [np.zeros((0, *o.shape), NO_LANE[kind_of(o.type)]) for o in operands]
    try:
        with np.errstate(all="ignore"):
            return bool(np.shape(node.room.exact(*empty, **parameters))[1:] == node.shape)
    except (ValueError, IndexError, TypeError):
        return False


def _of_numbers(node: Node) -> Derived:
    narrower = NARROWER.get(node.type)
    if narrower:
        dtype = element_type(narrower).dtype
        yield f"in-{narrower}", _after(lambda y: y.astype(dtype).astype(y.dtype))
    yield "nan-lost", _after(lambda y: np.where(np.isnan(y), y.dtype.type(0), y))
    yield "infinity-lost", _after(largest_instead)


def largest_instead(y: Array) -> Array:
    """Return the largest finite numbers in place of infinities."""
    most = y.dtype.type(element_type(type_of(y)).float_format.largest)
    return np.where(np.isinf(y), np.where(y > 0, most, -most), y)


def _instead(change: Callable[..., tuple[Sequence[Array], Mapping[str, Any]]]) -> Deviation:
    """Return the deviation that computes the node with changed operands or parameters."""

    def deviate(m: Machine, room: Room, xs: Sequence[Array], p: Mapping[str, Any]) -> Array:
        changed, parameters = change(xs, p)
        return np.asarray(room.native(m, *changed, **parameters))

    return deviate


def _operand(index: int) -> Deviation:
    """Return the deviation that returns one operand unchanged."""
    return lambda _m, _room, xs, _p: xs[index]


def _rescaled(count: int, other: int) -> Callable[[Array], Array]:
    """Return the change from division by `count` to division by `other`."""
    return lambda y: np.asarray(y * y.dtype.type(count) / y.dtype.type(other))


def _after(change: Callable[[Array], Array]) -> Deviation:
    """Return the deviation that changes the node's result."""
    return lambda m, room, xs, p: np.asarray(change(room.native(m, *xs, **p)))


def _kept(shape: tuple[int, ...], deviate: Deviation) -> Deviation:
    """Return the deviation with its result broadcast to the node's shape."""

    def kept(m: Machine, room: Room, xs: list[Array], p: Mapping[str, Any]) -> Array:
        y = deviate(m, room, xs, p)
        return y if y.shape[1:] == shape else np.broadcast_to(y, (len(y), *shape))

    return kept


def _reaches(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another one."""
    return len(shape) == len(other) and all(n in (1, m) for n, m in zip(shape, other, strict=True))


def _without(x: Array, axis: int, where: int, lost: Callable[..., Array]) -> Array:
    y = x.copy()
    key = (slice(None),) * axis + (where,)
    y[key] = lost(y[key].shape, y.dtype)
    return y


def _repeated(x: Array, axis: int) -> Array:
    y = x.copy()
    y[(slice(None),) * axis + (-1,)] = y[(slice(None),) * axis + (-2,)]
    return y
