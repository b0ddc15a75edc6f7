"""Runs a formula in an implementation's own types: for compliant variants, and for mutants of single nodes."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from ...cases.elements import Array
from ..primitives.errors import limits
from ..primitives.machine import Machine, converted
from .graph import Graph


def interpreted(graph: Graph, live: Sequence[int], arrays: Sequence[Array], machine: Machine) -> dict[int, Array]:
    """Return a machine's results at every live node."""
    got: dict[int, Array] = {}
    machines = _Machines(machine)
    with np.errstate(all="ignore"):
        for at in live:
            got[at] = _computed(graph, at, arrays, machines, got)
    return got


def departing(
    graph: Graph,
    users: Mapping[int, Sequence[int]],
    arrays: Sequence[Array],
    machine: Machine,
    base: MutableMapping[int, Array],
) -> dict[int, Array]:
    """Return a machine's results that differ from another run, `base`, without its deviations.

    `users`: the live nodes that use each node. Only nodes that a difference reaches are computed.
    """
    changed: dict[int, Array] = {}
    got = ChainMap(changed, base)
    machines = _Machines(machine)
    todo = [at for at in machine.deviate if at in base]
    heapify(todo)
    queued = set(todo)
    with np.errstate(all="ignore"):
        while todo:
            at = heappop(todo)
            result = _computed(graph, at, arrays, machines, got)
            if identical(result, base[at]):
                continue
            changed[at] = result
            for user in users.get(at, ()):
                if user not in queued:
                    queued.add(user)
                    heappush(todo, user)
    return changed


def identical(first: Array, second: Array) -> bool:
    """Return whether two arrays have the same type, shape and bits."""
    if first is second:
        return True
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    return first.tolist() == second.tolist() if first.dtype == object else first.tobytes() == second.tobytes()


class _Machines(dict[str, Machine]):
    """A machine for each type of numbers."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.machine = machine

    def __missing__(self, type_: str) -> Machine:
        return self.setdefault(type_, self.machine.at(type_))


def _computed(graph: Graph, at: int, arrays: Sequence[Array], machines: _Machines, got: Mapping[int, Array]) -> Array:
    node, deviation = graph.nodes[at], machines.machine.deviate.get(at)
    here = machines[node.computes]
    if node.name in ("port", "literal"):
        own = arrays[node.parameters["port"]] if node.name == "port" else _literal(node, here)
        own = converted(own, here.type) if node.kind == "real" else own
        return own if deviation is None else deviation(here, None, [own], {}).astype(own.dtype)
    xs = [got[a] for a in node.args]
    if node.kind == "int" and all(x.dtype.kind in "iu" for x in xs):
        xs = _alike(xs, node.type)
    if deviation is None:
        return np.asarray(node.room.native(here, *xs, **node.parameters))
    return np.asarray(deviation(here, node.room, xs, node.parameters))


def _literal(node: Any, machine: Machine) -> Array:
    kinds = {
        "int": np.dtype(object),
        "bool": np.dtype(bool),
        "text": np.dtype(object),
        "complex": np.dtype(node.type if node.kind == "complex" else complex),
    }
    number = node.parameters["number"]
    if node.kind == "real":  # NumPy cannot convert a fraction to bfloat16
        return converted(np.asarray(number, np.float64), machine.type)[None]
    return np.asarray(number, kinds[node.kind])[None]


def _alike(xs: list[Array], type_: str) -> list[Array]:
    """Return whole numbers in their common type; literals have no type of their own."""
    low, high = limits(type_)
    fits = all(x.dtype != object or all(low <= int(n) <= high for n in x.flat) for x in xs)
    return [x.astype(type_) if x.dtype == object and fits else x for x in xs]
