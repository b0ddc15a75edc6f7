"""A recorded formula: its graph, its forks, and facts that follow from these."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from ...cases.batch import CheckName, Labels
from ...cases.elements import Array, DeclaredType
from ...cases.program import Structure
from ..primitives.errors import Context, Known, strict
from .graph import Graph, exact

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
class Work:
    """The properties of a fork's computation.

    `level`: `rounds` if any node rounds, else `selects` if any compares or selects real numbers, else `moves`.
    `copies`: for each output, whether its zeros keep the signs that they have in the inputs. `terms`: the most elements
    that are summed into one. `means` and `rounding`: the indices of means, and of all nodes that round; `inner`: the
    rounding nodes whose results are not outputs. `alone`: whether it sums one number over no axis, perhaps to plus
    zero.
    """

    level: Literal["rounds", "selects", "moves"]
    copies: tuple[bool, ...]
    terms: int
    means: frozenset[int]
    rounding: tuple[int, ...]
    inner: frozenset[int]
    alone: bool


class _Share(NamedTuple):
    """What a node contributes to every computation that needs it; `work` is empty if no real number is computed."""

    terms: int
    keeps_zeros: bool
    work: str
    alone: bool


def _shares(graph: Graph, live: Sequence[int]) -> dict[int, _Share]:
    """Return the share of each of these nodes, except ports and literals."""
    shares: dict[int, _Share] = {}
    for at in live:
        node = graph.nodes[at]
        if node.args:
            room, p = node.room, node.parameters
            none = p.get("axes") == ()
            keeps = node.kind != "real" or room.frees_zeros
            if not keeps and (room.keeps_zeros or p.get("signed", False) or none):
                keeps = all(shares[a].keeps_zeros for a in node.args if a in shares)
            terms = room.terms([graph.nodes[a].shape for a in node.args], **p)
            alone = none and not node.shape and node.name in ("sum", "mean")
            shares[at] = _Share(terms, keeps, room.work if node.computes else "", alone)
    return shares


def _work_of(graph: Graph, outputs: tuple[int, ...], shares: Mapping[int, _Share]) -> Work:
    """Return the properties of the computation of some outputs; `shares` are those of all the nodes that they need."""
    work = {at: share.work for at, share in shares.items()}
    level = next((w for w in ("rounds", "selects") if w in work.values()), "moves")
    rounding = {at for at in shares if work[at] == "rounds"}
    return Work(
        level=level,  # type: ignore[arg-type]  # one of the three
        copies=tuple(shares[at].keeps_zeros if at in shares else True for at in outputs),
        terms=max((share.terms for share in shares.values()), default=1),
        means=frozenset(at for at in shares if work[at] and graph.nodes[at].name == "mean"),
        rounding=tuple(sorted(rounding)),
        inner=frozenset(rounding - _last(graph, outputs)),
        alone=any(share.alone for share in shares.values()),
    )


def _last(graph: Graph, outputs: Sequence[int]) -> set[int]:
    """Return the nodes whose results are outputs unchanged."""
    last: set[int] = set()
    todo = list(outputs)
    while todo:
        at = todo.pop()
        node = graph.nodes[at]
        last.add(at)
        if node.args and node.room.work == "moves":
            todo += node.args
    return last


@dataclass(frozen=True)
class Formula:
    """A reference's formula for one program, whatever the data. `types`: the element types of outputs."""

    graph: Graph
    forks: tuple[Fork, ...]
    types: tuple[str, ...]

    @property
    def content(self) -> tuple[object, ...]:
        """Hashable; formulas with the same content compute the same."""
        return self.graph.content, self.forks, self.types

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
    def whole_ports(self) -> tuple[tuple[int, str], ...]:
        """The indices and types of integer inputs."""
        nodes = (self.graph.nodes[at] for at in self.live)
        return tuple((n.parameters["port"], n.type) for n in nodes if n.name == "port" and n.kind == "int")

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

    @functools.cached_property
    def first_ranks(self) -> tuple[int | None, ...]:
        """The rank of each output in the first reading that gives tensors; as `ranks` if there is none."""
        outputs = next((f.outputs for f in self.forks if f.kind in ("values", "any") and not f.structure), None)
        return self.ranks if outputs is None else tuple(len(self.graph.nodes[at].shape) for at in outputs)

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

    def exact(self, arrays: Sequence[Array]) -> dict[int, Known]:
        """Return every live node's exact values; in the wide carrier also if float64 overflows before an output."""
        known = exact(self.graph, self.live, arrays, wide=self.wide)
        if self.wide or not self._overflows(known):
            return known
        return exact(self.graph, self.live, arrays, wide=True)

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

    @functools.cached_property
    def works(self) -> tuple[Work, ...]:
        """The properties of each fork's computation."""
        shares = _shares(self.graph, self.live)
        made = {
            outputs: _work_of(self.graph, outputs, {at: shares[at] for at in self.live_of(outputs) if at in shares})
            for outputs in dict.fromkeys(fork.outputs for fork in self.forks)
        }
        return tuple(made[fork.outputs] for fork in self.forks)

    @functools.cached_property
    def _lives(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        return {}

    def live_of(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        """Return the nodes that outputs need, in order."""
        if outputs not in self._lives:
            self._lives[outputs] = self.graph.live(outputs)
        return self._lives[outputs]
