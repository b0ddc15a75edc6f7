"""A graph, interpreted: exact values once, and what each arithmetic may add to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ...cases.elements import Array
from .contexts import Context
from .errors import NEGATIVE_ZERO, Charge, Error, Flags, Known, charged, without_nan
from .formats import contains, format_of, kind_of
from .graph import NO_LANE, Graph, Node
from .multiprecision import each, precise, widened

Values: TypeAlias = Mapping[int, Known]
"""What is known of each live node."""
Errors: TypeAlias = Mapping[int, Error]


def lifted(array: Array, type_: str) -> Array:
    """Return an input's exact values, in what carries them."""
    kind = kind_of(type_)
    if kind == "real":
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return array.astype(np.float64)
    if kind == "int":
        large = array.dtype == np.uint64 and bool(array.size) and int(array.max()) >= 1 << 62
        return array.astype(object if large else np.int64)
    return array.astype(np.complex128) if kind == "complex" else array


def exact(graph: Graph, live: Sequence[int], arrays: Sequence[Array], *, wide: bool) -> dict[int, Known]:
    """Return every live node's exact values: once, whatever the contexts and forks.

    `wide`: real numbers that are computed are gmpy2's, for float64 results; else they are float64.
    """
    known: dict[int, Known] = {}
    made: dict[tuple[object, ...], Known] = {}  # forks often differ in nothing, such as in how whole numbers round
    with np.errstate(all="ignore"), precise():
        for at in live:
            node = graph.nodes[at]
            same = (node.operation, *[id(known[a]) for a in node.args])
            if not node.args or (found := made.get(same)) is None:
                value = _exact(node, known, arrays, wide=wide)
                found = next((known[a] for a in node.args if known[a].v is value), None) or Known(value)
                if wide and value.dtype == object and node.kind == "real":
                    found = _overflown(found)
                made[same] = found
            known[at] = found
    return known


def _overflown(known: Known) -> Known:
    """Return values that float64 does not reach as infinities: gmpy2's exponents do not run out."""
    if known.all_finite:
        return known
    return Known(np.where(np.isinf(known.f), widened(known.f), known.v))


def _exact(node: Node, known: Values, arrays: Sequence[Array], *, wide: bool) -> Array:
    if node.name == "port":
        return lifted(arrays[node.parameters["port"]], node.type)
    if node.name == "literal":
        return literal(node)
    xs = [known[a].v for a in node.args]
    room = node.room
    if wide and room.work == "rounds" and node.kind == "real":
        if room.widens:
            return np.asarray(room.exact(*xs, wide=True, **node.parameters))
        xs = [widened(x) if x.dtype == np.float64 else x for x in xs]
    return np.asarray(room.exact(*xs, **node.parameters))


def literal(node: Node) -> Array:
    """Return a literal's values, as those of one lane."""
    number = node.parameters["number"]
    if node.kind == "int":
        whole = np.asarray(number, object)
        fits = all(-(1 << 62) < int(n) < 1 << 62 for n in whole.flat)
        return (whole.astype(np.int64) if fits else each(int, whole))[None]
    return np.asarray(number, NO_LANE[node.kind])[None]


def bounded(
    graph: Graph, live: Sequence[int], known: Values, context: Context, outputs: Iterable[int]
) -> dict[int, Error]:
    """Return what an implementation may add to the exact values of `outputs`, and of nodes with exact means."""
    found: dict[int, Error] = {}
    made: dict[tuple[object, ...], tuple[Error, list[Error]]] = {}  # as in `exact`, of what is never rounded
    kept = set(outputs)
    last = {a: at for at in live for a in graph.nodes[at].args}
    with np.errstate(all="ignore"), precise():
        for at in live:
            node, y = graph.nodes[at], known[at]
            xs, es = [known[a] for a in node.args], [found[a] for a in node.args]
            if node.computes:
                error = found[at] = _fitted(_error(node, y, xs, es, context), y.v.shape)
            else:
                same = (node.operation, *map(id, (y, *xs, *es)))
                if not es or same not in made:
                    made[same] = _fitted(_error(node, y, xs, es, context), y.v.shape), es
                error = found[at] = made[same][0]
            if error.exact_mean is not None:
                kept.add(at)
            for a in node.args:
                if last[a] == at and a not in kept:
                    del found[a]
                    last[a] = -1
    return found


def charges(
    graph: Graph, live: Sequence[int], known: Values, context: Context
) -> dict[int, tuple[Error, list[Charge]]]:
    """Return what an implementation may add to the exact values of every node, and what is charged there."""
    found: dict[int, tuple[Error, list[Charge]]] = {}
    with np.errstate(all="ignore"), precise():
        for at in live:
            node, y, noted = graph.nodes[at], known[at], list[Charge]()
            operands = [known[a] for a in node.args]
            error = _error(node, y, operands, [found[a][0] for a in node.args], context.using("charges", charges=noted))
            found[at] = _fitted(error, y.v.shape), noted
    return found


def _error(node: Node, y: Known, xs: Sequence[Known], es: Sequence[Error], context: Context) -> Error:
    c = context.at(node.computes)
    if node.name == "port":
        if node.kind != "real":
            return Error()
        flags: Flags = y.fact("signs", lambda: _signs(y.v))
        if contains(c.storage, format_of(node.type)):
            return Error(0.0, flags)
        return charged(c, y, 0.0, flags, rule="convert")
    if node.name == "literal":
        return charged(c, y, 0.0, _signs(y.v), rule="convert") if node.kind == "real" else Error()
    return node.room.bound(c, y, xs, es, **node.parameters)


def _signs(values: Array) -> Flags:
    zero = (values == 0) & np.signbit(values)
    return zero.astype(np.uint8) * NEGATIVE_ZERO if zero.any() else 0


def _fitted(error: Error, shape: tuple[int, ...]) -> Error:
    """Return an error whose arrays have the value's shape, without NaN: that says as little as an infinite one."""
    e, flags = error.e, error.flags
    if not isinstance(e, float):
        e = without_nan(e)
        e = e if np.shape(e) == shape else np.broadcast_to(e, shape)
    if not isinstance(flags, int) and np.shape(flags) != shape:
        flags = np.broadcast_to(flags, shape)
    error.e, error.flags = e, flags
    return error
