"""Implementations derived from the references: their calls, their arithmetic, and the compliant variants.

An implementation gets a program and its inputs, runs the recorded reference in a machine's own arithmetic, and returns
an answer. A mutant differs in one of four ways: it misreads its call, it deviates at a node of the formula, it spoils
the answer, or it keeps state between runs; either always, or only under a trigger. A compliant variant differs where
the standards leave a choice, and must not be blamed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from ...cases.elements import Array, type_of
from ...cases.program import Program
from ...specs.model import Spec, VersionSpec
from ..primitives.machine import Division, Machine, Order

Kind: TypeAlias = Literal["call", "formula", "answer", "trigger", "state", "process", "variant"]
Answer: TypeAlias = list[Array]
"""The requested outputs, lanes first."""
Memory: TypeAlias = dict[str, Answer]
"""The state that a prepared program keeps between runs."""
Given: TypeAlias = "Array | tuple[Array, ...] | None"
"""A port's value: tensors, lanes first; a tuple of them for a variadic port, None if it is left out."""


def tensors_of(given: Given) -> tuple[Array, ...]:
    """Return the tensors at a port."""
    return given if isinstance(given, tuple) else () if given is None else (given,)


class Refused(Exception):  # noqa: N818 - a refusal is an answer
    """The implementation refuses: the input is invalid, or it has a defect that looks like this."""


@dataclass(frozen=True, eq=False)
class Invocation:
    """A program with its inputs, lanes first. All lanes share the values that decide shapes.

    `attributes` are the given ones. `ports` are in the signature's order, as many as the program has; `fed` names the
    ports that are fed with each run. `captured` are tensors of the graph that only bodies use.
    """

    spec: Spec
    version: VersionSpec
    program: Program
    attributes: Mapping[str, Any]
    ports: tuple[Given, ...]
    fed: frozenset[str]
    captured: Mapping[str, Array | tuple[Array, ...]] = field(default_factory=dict)

    @functools.cached_property
    def arrays(self) -> tuple[Array, ...]:
        """The tensors at all ports."""
        return tuple(array for given in (*self.ports, *self.captured.values()) for array in tensors_of(given))

    @property
    def first(self) -> tuple[Array, ...]:
        """The tensors of the first input; none if it is left out."""
        return tensors_of(self.ports[0]) if self.ports else ()

    @functools.cached_property
    def types(self) -> frozenset[str]:
        """The element types of inputs and outputs."""
        return frozenset({*map(type_of, self.arrays), *(o.type for o in self.program.outputs if o is not None)})

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the ports."""
        return tuple(port.name for port in self.version.signature.inputs)

    def port(self, name: str) -> Given:
        """Return the value of a port, None if it has none."""
        index = self.names.index(name) if name in self.names else len(self.ports)
        return self.ports[index] if index < len(self.ports) else None

    def with_port(self, name: str, given: Given) -> Invocation:
        """Return the invocation with another value at a port."""
        index = self.names.index(name)
        if self.ports[index] is given:
            return self
        return replace(self, ports=(*self.ports[:index], given, *self.ports[index + 1 :]))

    def with_attribute(self, name: str, value: Any) -> Invocation:
        """Return the invocation with an attribute, or without it if the value is None."""
        kept = {n: v for n, v in self.attributes.items() if n != name}
        return replace(self, attributes=kept if value is None else kept | {name: value})

    def mapped(self, change: Callable[[Array], Array]) -> Invocation:
        """Return the invocation with `change` applied to every tensor."""

        def changed(given: Array | tuple[Array, ...]) -> Array | tuple[Array, ...]:
            return tuple(map(change, given)) if isinstance(given, tuple) else change(given)

        ports = tuple(None if given is None else changed(given) for given in self.ports)
        return replace(self, ports=ports, captured={name: changed(given) for name, given in self.captured.items()})


def comes(i: Invocation, name: str, *, fed: bool) -> bool:
    """Return whether a tensor at a port is fed, or, for `fed=False`, is a constant."""
    index = i.names.index(name)
    several = i.version.signature.inputs[index].is_variadic
    given = i.program.inputs[index:] if several else i.program.inputs[index : index + 1]
    return any(operand is not None and (operand.constant is None) == fed for operand in given)


@dataclass(frozen=True)
class Met:
    """The input of a trigger: a call, the right answer, and the numbers of the runs.

    `runs` has the number of each lane's run of its program, from 0; `resized`, whether the previous run had other
    shapes.
    """

    invocation: Invocation
    right: Answer
    runs: Sequence[int] = (0,)
    resized: Sequence[bool] = (False,)


@dataclass(frozen=True)
class Trigger:
    """A condition for a defect: `when` decides for a call, or for each lane. `group` and `level` name it."""

    group: str
    level: str
    text: str
    when: Callable[[Met], Any]

    @property
    def name(self) -> str:
        """The name, `rank=4`."""
        return f"{self.group}={self.level}"

    def lanes(self, met: Met) -> Array:
        """Return a mask of the lanes that meet it."""
        return np.broadcast_to(np.asarray(self.when(met), bool), (len(met.runs),))


@dataclass(frozen=True)
class Implementation:
    """One way to implement an operator version.

    `text` describes it. `reading` returns the call as it reads it, and may raise Refused; `nodes` names its deviation
    at nodes of the formula, or the forms that a variant takes there; `finish` changes the answer; `recall` changes the
    answers to the runs of one program; `machine` is its arithmetic, None for the usual one; `choices` are its answers
    to silences, by default the first option. `under`: the trigger without which it is right. If it `overwrites`, it
    changes its inputs after reading them; if it `shares`, all answers share one buffer. `about`: the attribute that it
    misreads. An `incidental` mutant does not count if no case exposes it: not every operator has what it needs.
    """

    name: str
    kind: Kind
    text: str
    reading: Callable[[Invocation], Invocation] | None = None
    nodes: str = ""
    finish: Callable[[Invocation, Answer], Answer] | None = None
    recall: Callable[[Memory, Answer], Answer] | None = None
    machine: Callable[[Invocation], Machine] | None = None
    choices: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    under: Trigger | None = None
    overwrites: bool = False
    shares: bool = False
    about: str = ""
    incidental: bool = False


# Compliant variants

ORDERS: tuple[Order, ...] = ("forward", "reverse", "pairwise")
MORE_ORDERS: Mapping[Order, str] = MappingProxyType(
    {
        "lanes": "in eight interleaved sums",
        "blocks": "in blocks of 16, and then over blocks",
        "compensated": "with compensation (Kahan)",
        "by-axis": "one axis after the other",
        "matmul": "by a matrix product with ones",
        "fused": "by fused multiply-add",
    }
)
DIVISIONS: Mapping[Division, str] = MappingProxyType(
    {
        "reciprocal": "multiplies by 1/n for means",
        "before": "divides by n before summing",
        "running": "computes running means (Welford)",
        "corrected": "computes means in two passes",
    }
)
_SMALL = frozenset({"float16", "bfloat16"})


def usual_machine(i: Invocation) -> Machine:
    """Return the arithmetic of an ordinary implementation: each type's own, at least float32."""
    return _machine(i, wide=True, stored=False)


def _machine(
    i: Invocation, *, wide: bool, stored: bool, order: Order = "forward", division: Division = "after"
) -> Machine:
    """Return an arithmetic for 16-bit types; wider types have their own.

    `stored`: results are rounded to the small type after each primitive; `wide`: but not inside sums.
    """
    small = next(iter(sorted(_SMALL & i.types)), "float32")
    return Machine(
        np.dtype(small if stored else "float32"), np.dtype("float32" if wide else small), order, division=division
    )


def variants_of(version: VersionSpec) -> Iterator[Implementation]:
    """Yield the compliant variants of an operator version: algorithms, accumulators, each option of each silence."""
    for order in ORDERS:
        yield _variant(f"{order}-wide", f"sums {order}, in float32 or wider", True, False, order)
        yield _variant(f"{order}-stepwise", f"sums {order}, and rounds to the type after each step", True, True, order)
        yield _variant(f"{order}-narrow", f"sums {order} in the type itself", False, True, order)
    for wide, where in ((True, "float32 or wider"), (False, "the type itself")):
        name = "wide" if wide else "narrow"
        for order, how in MORE_ORDERS.items():
            yield _variant(f"{order}-{name}", f"sums {how}, in {where}", wide, not wide, order)
        for division, how in DIVISIONS.items():
            if wide or division not in ("running", "corrected"):  # the others are used for their accuracy
                yield _variant(f"{division}-{name}", f"{how}, in {where}", wide, not wide, division=division)
    text, double = "computes in float64, and rounds once at the end", np.dtype(np.float64)
    yield Implementation("double", "variant", text, machine=lambda _: Machine(double, double))
    text = "takes the second form where a formula has two"
    yield Implementation("other-forms", "variant", text, nodes="other-forms")
    text = "computes exponentials that are divided by their sum as written, without an offset"
    yield Implementation("unshifted", "variant", text, nodes="unshifted")
    for silence in version.silences.values():
        for option in silence.options:
            text = f"answers {silence.id} with {option}"
            yield Implementation(f"{silence.id}={option}", "variant", text, choices={silence.id: option})


def _variant(
    name: str, text: str, wide: bool, stored: bool, order: Order = "forward", *, division: Division = "after"
) -> Implementation:
    machine = functools.partial(_machine, wide=wide, stored=stored, order=order, division=division)
    return Implementation(name, "variant", text, machine=machine)
