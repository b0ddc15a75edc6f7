"""The uses of a recorded formula: expectations, checks of validity, native runs, derivations."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...cases.batch import Expectation
from ...cases.elements import Array, element_type
from ..primitives.machine import Machine, converted
from . import graph as graphs
from . import native, options
from .formula import Formula, Rules


@dataclass(frozen=True)
class Recording(Formula):
    """A formula with its uses."""

    def expectation(self, arrays: Sequence[Array], rules: Rules | None = None, lanes: int | None = None) -> Expectation:
        """Return the expectation of each lane; arrays are the values of the given ports, in order, lanes first.

        `lanes` is needed if there is no port.
        """
        count = lanes if lanes is not None else len(arrays[0]) if arrays else 1
        return options.Maker(self, list(arrays), rules or Rules(), count).expectation()

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
        masks = {}
        for at, every in wanted.items():
            flat = known[at].v.astype(bool).reshape(len(known[at].v), -1)
            masks[at] = np.broadcast_to(flat.all(axis=1) if every else flat.any(axis=1), (lanes,))
        return masks

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
                outputs.append(converted(np.broadcast_to(got[at], (lanes, *node.shape)), dtype))
        return outputs, got

    def _users_of(self, outputs: tuple[int, ...]) -> Mapping[int, list[int]]:
        """Return the users of each node, among the nodes that outputs need."""
        if outputs not in self._users:
            users: dict[int, list[int]] = {}
            for at in self.live_of(outputs):
                for a in dict.fromkeys(self.graph.nodes[at].args):
                    users.setdefault(a, []).append(at)
            self._users[outputs] = users
        return self._users[outputs]

    @functools.cached_property
    def _users(self) -> dict[tuple[int, ...], dict[int, list[int]]]:
        return {}

    def derivation(self, fork: int = 0) -> list[str]:
        """Return the formula of a reading, one line for each node: its operation and its charge."""
        lines = []
        for at in self.live_of(self.forks[fork].outputs):
            node = self.graph.nodes[at]
            template = (
                "port {port}" if node.name == "port" else "{number}" if node.name == "literal" else node.room.text
            )
            words = {"name": node.name} | dict(node.parameters)
            shape = "x".join(map(str, node.shape)) or "scalar"
            lines.append(f"%{at} = {template.format(*(f'%{a}' for a in node.args), **words)}  ({node.type} {shape})")
        return lines
