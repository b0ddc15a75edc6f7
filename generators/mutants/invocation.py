"""What an implementation is told: an operator version, attributes, and arrays at the ports of the signature."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ...cases.elements import Array, type_of
from ...cases.program import Program
from ...specs.model import Spec, VersionSpec

Given: TypeAlias = "Array | tuple[Array, ...] | None"
"""What stands at a port: lanes of tensors, a tuple of those at a variadic one, None where it is left out."""
Change: TypeAlias = "Callable[[Invocation], Invocation]"


class Refused(Exception):  # noqa: N818 - a refusal is an answer
    """The implementation does not answer: the input is invalid, or it has a defect that looks like that."""


@dataclass(frozen=True, eq=False)
class Invocation:
    """A program with its inputs, lanes of them. All lanes have one value where it decides shapes.

    `attributes` are those that are given. `ports` are in the signature's order, as many as the program has; `fed` names
    those that come with each run. `captured` are tensors of the graph that only bodies use.
    """

    spec: Spec
    version: VersionSpec
    program: Program
    attributes: Mapping[str, Any]
    ports: tuple[Given, ...]
    fed: frozenset[str]
    captured: Mapping[str, Array] = field(default_factory=dict)

    @functools.cached_property
    def arrays(self) -> tuple[Array, ...]:
        """The tensors at all ports."""
        found: list[Array] = []
        for given in self.ports:
            found += given if isinstance(given, tuple) else [] if given is None else [given]
        return (*found, *self.captured.values())

    @functools.cached_property
    def types(self) -> frozenset[str]:
        """The element types of inputs and outputs."""
        return frozenset({*map(type_of, self.arrays), *(o.type for o in self.program.outputs if o is not None)})

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the ports."""
        return tuple(port.name for port in self.version.signature.inputs)

    def port(self, name: str) -> Given:
        """Return what stands at a port; None where nothing does."""
        place = self.names.index(name) if name in self.names else len(self.ports)
        return self.ports[place] if place < len(self.ports) else None

    def with_port(self, name: str, given: Given) -> Invocation:
        """Return the invocation with something else at a port."""
        place = self.names.index(name)
        if self.ports[place] is given:
            return self
        return replace(self, ports=(*self.ports[:place], given, *self.ports[place + 1 :]))

    def with_attribute(self, name: str, value: Any) -> Invocation:
        """Return the invocation with an attribute; without it where the value is None."""
        kept = {n: v for n, v in self.attributes.items() if n != name}
        return replace(self, attributes=kept if value is None else kept | {name: value})

    def mapped(self, change: Callable[[Array], Array]) -> Invocation:
        """Return the invocation with every tensor changed."""
        return replace(
            self,
            ports=tuple(
                tuple(map(change, given)) if isinstance(given, tuple) else given if given is None else change(given)
                for given in self.ports
            ),
            captured={name: change(array) for name, array in self.captured.items()},
        )
