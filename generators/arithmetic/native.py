"""A formula as an implementation computes it, in its own types: compliant variants, and mutants of single nodes."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from ...cases.elements import Array, element_type
from .errors import format_of, limits
from .graph import Graph

_WIDE: Final = 24
Order: TypeAlias = Literal["forward", "reverse", "pairwise"]
Deviation: TypeAlias = Callable[["Machine", Any, list[Array], Mapping[str, Any]], Array]
"""What a mutant does at a node: the machine, the room (None for ports and literals), operands and parameters."""


@dataclass(frozen=True)
class Machine:
    """An implementation: the dtype of results, that inside sums, the order of these, and deviations at nodes."""

    type: np.dtype[Any]
    acc: np.dtype[Any]
    order: Order = "forward"
    deviate: Mapping[int, Deviation] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, type_: str) -> Machine:
        """Return the machine that computes with numbers of a type: 16-bit formats are no concern of any other."""
        if not type_ or self.type == (own := element_type(type_).dtype):
            return self
        if format_of(type_).precision >= _WIDE:
            return Machine(own, own, self.order)
        if own.itemsize == self.type.itemsize:
            return Machine(own, own if self.acc == self.type else self.acc, self.order)
        return self

    def rounded(self, array: Array) -> Array:
        """Return real numbers in the type of results; others as they are."""
        with np.errstate(all="ignore"):
            real = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
            return array.astype(self.type) if real and array.dtype != self.type else array

    def product(self, a: Array, b: Array) -> Array:
        """Return products as a sum takes them."""
        with np.errstate(all="ignore"):
            return np.asarray(a.astype(self.acc) * b.astype(self.acc))

    def summed(self, x: Array, axes: Sequence[int]) -> Array:
        """Add up along axes of the array, which stay with extent 1, in this machine's order."""
        return self.combined(np.add, x, axes)

    def combined(self, operation: np.ufunc, x: Array, axes: Sequence[int]) -> Array:
        """Add up or multiply along axes of the array, which stay with extent 1, in this machine's order."""
        if x.dtype.kind in "iub":
            return np.asarray(operation.reduce(x, axis=tuple(axes), keepdims=True, dtype=x.dtype))
        axes = tuple(a % x.ndim for a in axes)
        kept = [1 if i in axes else d for i, d in enumerate(x.shape)]
        moved = np.moveaxis(x, axes, range(-len(axes), 0))
        size = int(np.prod([x.shape[a] for a in axes]))
        flat = moved.reshape(*(d for i, d in enumerate(x.shape) if i not in axes), size).astype(self.acc)
        if not size:
            return np.full(kept, operation.identity, self.acc)
        flat = flat[..., ::-1] if self.order == "reverse" else flat
        with np.errstate(all="ignore"):
            if self.order == "pairwise":
                while (n := flat.shape[-1]) > 1:
                    added = operation(flat[..., : n // 2], flat[..., n // 2 : n // 2 * 2]).astype(self.acc)
                    flat = np.concatenate([added, flat[..., n // 2 * 2 :]], -1)
                return flat.reshape(kept)
            return np.asarray(operation.accumulate(flat, -1, dtype=self.acc)[..., -1].reshape(kept))


def interpreted(graph: Graph, live: Sequence[int], arrays: Sequence[Array], machine: Machine) -> dict[int, Array]:
    """Return what a machine gives at every live node."""
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
    """Return what a machine gives otherwise than in another run, `base`, which has none of its deviations.

    `users`: the nodes that take a node, among those that are live. Only what a difference reaches is computed.
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
            found = _computed(graph, at, arrays, machines, got)
            if identical(found, base[at]):
                continue
            changed[at] = found
            for user in users.get(at, ()):
                if user not in queued:
                    queued.add(user)
                    heappush(todo, user)
    return changed


def identical(one: Array, other: Array) -> bool:
    """Return whether two arrays have the same type, shape and bits."""
    if one is other:
        return True
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes()


class _Machines(dict[str, Machine]):
    """A machine as it computes with numbers of each type."""

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
        own = own.astype(here.type) if node.kind == "real" else own
        return own if deviation is None else deviation(here, None, [own], {}).astype(own.dtype)
    xs = [got[a] for a in node.args]
    if node.kind == "int" and all(x.dtype.kind in "iu" for x in xs):
        xs = _alike(xs, node.type)
    if deviation is None:
        return np.asarray(node.room.native(here, *xs, **node.parameters))
    return np.asarray(deviation(here, node.room, xs, node.parameters))


def _literal(node: Any, machine: Machine) -> Array:
    kinds = {
        "real": machine.type,
        "int": np.dtype(object),
        "bool": np.dtype(bool),
        "text": np.dtype(object),
        "complex": np.dtype(complex),
    }
    number = node.parameters["number"]
    if node.kind == "real":  # a fraction becomes no bfloat16 by itself
        number = np.asarray(number, np.float64)
    return np.asarray(number, kinds[node.kind])[None]


def _alike(xs: list[Array], type_: str) -> list[Array]:
    """Return whole numbers in the type that they meet in, where a literal has none of its own."""
    low, high = limits(type_)
    fits = all(x.dtype != object or all(low <= int(n) <= high for n in x.flat) for x in xs)
    return [x.astype(type_) if x.dtype == object and fits else x for x in xs]
