"""A recorded formula and its uses: expectations, checks of validity, native runs, derivations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from ...cases.batch import CheckName, Expectation, Labels
from ...cases.elements import Array, DeclaredType, element_type
from ...cases.program import Structure
from . import graph as graphs
from . import native, options
from .errors import Context, Known, strict
from .graph import Graph
from .native import Machine

T = TypeVar("T")


@dataclass(frozen=True)
class Tested:
    """A test of whole outputs, by their indices; `arrays` are the indices of nodes that they are compared with."""

    name: CheckName
    outputs: tuple[int, ...]
    settings: tuple[tuple[str, float | str], ...] = ()
    arrays: tuple[int, ...] = ()


@dataclass(frozen=True)
class Fork:
    """One combination of options of the silences that a reference met: `labels`, in the order in which it met them.

    `kind`: `values`; `any` (any values of the outputs' shapes); `rejected` or `anything`; or `invalid`, by the clause
    `invalid`. `outputs`, `requirements` (with their clauses) and `conditions` (under which a silence is open) are
    indices of nodes. `structure` is the structure of each output if some are not tensors; `outputs` are then all their
    tensors.
    """

    labels: Labels
    kind: str = "values"
    outputs: tuple[int, ...] = ()
    requirements: tuple[tuple[str, int], ...] = ()
    conditions: tuple[tuple[str, int], ...] = ()
    checks: tuple[Tested, ...] = ()
    structure: tuple[Structure, ...] = ()
    invalid: str = ""


@dataclass(frozen=True)
class Rules:
    """What expectations depend on besides the formula and the data.

    `random`: the data are random with mean zero, so that the second moment of errors may be judged (tier T2).
    `declared`: a device's declared arithmetic, by element type.
    """

    random: bool = False
    declared: Mapping[str, DeclaredType] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Recording:
    """A reference's formula for one program, whatever the data. `types`: the element types of outputs."""

    graph: Graph
    forks: tuple[Fork, ...]
    types: tuple[str, ...]

    @functools.cached_property
    def live(self) -> tuple[int, ...]:
        """The nodes that any result of a case needs."""
        places = [at for f in self.forks for at in f.outputs]
        places += [at for f in self.forks for _, at in (*f.requirements, *f.conditions)]
        places += [at for f in self.forks for check in f.checks for at in check.arrays]
        return self.graph.live(places)

    @functools.cached_property
    def wide(self) -> bool:
        """Whether it computes float64 results, whose exact values need a wider carrier."""
        return "float64" in self._rounding

    @functools.cached_property
    def _rounding(self) -> frozenset[str]:
        nodes = (self.graph.nodes[at] for at in self.live)
        return frozenset(n.computes for n in nodes if n.args and n.computes and n.room.work == "rounds")

    @functools.cached_property
    def real_types(self) -> frozenset[str]:
        """The floating-point types that occur."""
        return frozenset(self.graph.nodes[at].computes for at in self.live) - {""}

    @functools.cached_property
    def real_ports(self) -> tuple[tuple[int, str], ...]:
        """The indices and types of floating-point inputs."""
        nodes = (self.graph.nodes[at] for at in self.live)
        return tuple((n.parameters["port"], n.type) for n in nodes if n.name == "port" and n.kind == "real")

    @functools.cached_property
    def contexts(self) -> tuple[Context, ...]:
        """The arithmetics that the standards leave open."""
        return strict(self.real_types, self._rounding)

    @functools.cached_property
    def shapes(self) -> tuple[tuple[int, ...] | None, ...]:
        """The shape of each output; None if readings differ in it, or none has one."""
        return self._shared(lambda at: self.graph.nodes[at].shape)

    @functools.cached_property
    def ranks(self) -> tuple[int | None, ...]:
        """The rank of each output; None if readings differ in it, or one admits any answer."""
        return self._shared(lambda at: len(self.graph.nodes[at].shape))

    def _shared(self, fact: Callable[[int], T]) -> tuple[T | None, ...]:
        every = {tuple(map(fact, fork.outputs)) for fork in self.forks if fork.kind in ("values", "any")}
        if len({len(facts) for facts in every}) != 1 or any(f.kind == "anything" for f in self.forks):
            return (None,) * len(self.types)
        return tuple(facts[0] if len(set(facts)) == 1 else None for facts in zip(*every, strict=True))

    @functools.cached_property
    def terms(self) -> int:
        """The most elements that are summed into one."""
        return max(work.terms for work in self.works)

    @functools.cached_property
    def weight(self) -> int:
        """The number of elements of one lane in all nodes together, a measure of the memory."""
        return sum(int(np.prod(self.graph.nodes[at].shape)) for at in self.live)

    @property
    def invalid_clause(self) -> str:
        """The clause that every reading of the program breaks, except for refusals, whatever the data; or empty."""
        broken = [f.invalid for f in self.forks if f.kind == "invalid"]
        return broken[0] if broken and all(f.kind in ("invalid", "rejected") for f in self.forks) else ""

    def expectation(self, arrays: Sequence[Array], rules: Rules | None = None, lanes: int | None = None) -> Expectation:
        """Return the expectation of each lane; arrays are the values of the given ports, in order, lanes first.

        `lanes` is needed if there is no port.
        """
        count = lanes if lanes is not None else len(arrays[0]) if arrays else 1
        return options.Maker(self, list(arrays), rules or Rules(), count).expectation()

    def exact(self, arrays: Sequence[Array]) -> dict[int, Known]:
        """Return every live node's exact values; in the wide carrier also if float64 overflows before an output."""
        found = graphs.exact(self.graph, self.live, arrays, wide=self.wide)
        if self.wide or not self._overflows(found):
            return found
        return graphs.exact(self.graph, self.live, arrays, wide=True)

    def _overflows(self, known: Mapping[int, Known]) -> bool:
        """Return whether the first reading has an infinite or NaN output, after an overflow of finite numbers."""
        outputs = set(self.forks[0].outputs)
        if all(self.graph.nodes[at].kind != "real" or known[at].all_finite for at in outputs):
            return False
        nodes = ((self.graph.nodes[at], known[at]) for at in self.live if at not in outputs)
        return any(
            node.args
            and node.kind == "real"
            and node.room.work == "rounds"
            and np.isinf(y.f).any()
            and all(known[a].all_finite for a in node.args if self.graph.nodes[a].kind == "real")
            for node, y in nodes
        )

    def invalid(self, arrays: Sequence[Array], lanes: int | None = None) -> dict[str, Array]:
        """Return, by clause, a mask of the lanes whose input breaks it; only for clauses about values."""
        count = lanes if lanes is not None else len(arrays[0]) if arrays else 1
        if not any(f.requirements for f in self.forks):
            return {}
        return options.Maker(self, list(arrays), Rules(), count).broken(self.forks)

    def premises(self, arrays: Sequence[Array], lanes: int) -> Mapping[int, Array]:
        """Return a mask of lanes for each requirement and each condition of a silence, by its index.

        A requirement holds in a lane if all elements are true, a condition if any element is.
        """
        wanted = {at: False for f in self.forks for _, at in f.conditions}
        wanted |= {at: True for f in self.forks for _, at in f.requirements}
        if not wanted:
            return {}
        known = graphs.exact(self.graph, self.graph.live(wanted), arrays, wide=False)
        found = {}
        for at, every in wanted.items():
            flat = known[at].v.astype(bool).reshape(len(known[at].v), -1)
            found[at] = np.broadcast_to(flat.all(axis=1) if every else flat.any(axis=1), (lanes,))
        return found

    def native(
        self,
        arrays: Sequence[Array],
        machine: Machine,
        fork: int = 0,
        base: dict[int, Array] | None = None,
    ) -> tuple[list[Array], dict[int, Array]]:
        """Return a machine's outputs, and its results at every node.

        `base` has the results without its deviations. Only nodes that these reach are computed again, and `base` itself
        is returned if nothing changes.
        """
        chosen, lanes = self.forks[fork], max((len(a) for a in arrays), default=1)
        live = self.live_of(chosen.outputs)
        if base is None:
            got = native.interpreted(self.graph, live, arrays, machine)
        else:
            changed = native.departing(self.graph, self._users_of(chosen.outputs), arrays, machine, base)
            got = base | changed if changed else base
        outputs = []
        with np.errstate(all="ignore"):
            for at in chosen.outputs:
                node = self.graph.nodes[at]
                dtype = got[at].dtype if node.kind in ("text", "complex") else element_type(node.type).dtype
                outputs.append(native.converted(np.broadcast_to(got[at], (lanes, *node.shape)), dtype))
        return outputs, got

    @functools.cached_property
    def works(self) -> tuple[options.Work, ...]:
        """The properties of each fork's computation."""
        return tuple(options.work_of(self.graph, fork) for fork in self.forks)

    @functools.cached_property
    def _lives(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        return {}

    def _users_of(self, outputs: tuple[int, ...]) -> Mapping[int, list[int]]:
        """Return the users of each node, among the nodes that outputs need."""
        if outputs not in self._users:
            found: dict[int, list[int]] = {}
            for at in self.live_of(outputs):
                for a in dict.fromkeys(self.graph.nodes[at].args):
                    found.setdefault(a, []).append(at)
            self._users[outputs] = found
        return self._users[outputs]

    @functools.cached_property
    def _users(self) -> dict[tuple[int, ...], dict[int, list[int]]]:
        return {}

    def live_of(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        """Return the nodes that outputs need, in order."""
        if outputs not in self._lives:
            self._lives[outputs] = self.graph.live(outputs)
        return self._lives[outputs]

    def derivation(self, fork: int = 0) -> list[str]:
        """Return the formula of a reading, one line for each node: its operation and its charge."""
        lines = []
        for at in self.live_of(self.forks[fork].outputs):
            node = self.graph.nodes[at]
            told = "port {port}" if node.name == "port" else "{number}" if node.name == "literal" else node.room.text
            words = {"name": node.name} | dict(node.parameters)
            shape = "x".join(map(str, node.shape)) or "scalar"
            lines.append(f"%{at} = {told.format(*(f'%{a}' for a in node.args), **words)}  ({node.type} {shape})")
        return lines
