"""Runs implementations: the recorded formula of an invocation on a machine, correctly or with deviations."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...cases.elements import Array, content, type_of
from ...cases.program import Input, Program, Structure
from ...specs.loader import Library
from ...specs.model import Port as SignaturePort
from ..arithmetic.formula import Fork
from ..arithmetic.graph import frozen
from ..arithmetic.recording import Recording
from ..arithmetic.tape import Asks, Facts, Port, Recorder
from ..families import reference_of
from ..primitives import ROOMS
from ..primitives.machine import Deviation, Machine
from ..primitives.primitive import Primitive
from .corners import CORNER, corner_deviations
from .implementation import (
    Answer,
    Given,
    Implementation,
    Invocation,
    Memory,
    Met,
    Refused,
    tensors_of,
    usual_machine,
)
from .nodes import LONG, alternatives, deviations


def invocations(
    library: Library, program: Program, inputs: Sequence[Array]
) -> Iterator[tuple[tuple[int, ...], Invocation]]:
    """Yield the lanes that share all values that decide shapes, by number, each with its Invocation.

    `inputs` are the arrays of `program.leaves`, lanes first. Raises UnknownOperator.
    """
    all_lanes = _of_all_lanes(library, program, inputs)
    asked: dict[str, None] = {}
    with contextlib.suppress(Refused):
        _record(all_lanes, asked)
    lanes = len(inputs[0]) if inputs else 1
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for lane in range(lanes):
        decisive = [a[lane, ...] for name in asked for a in tensors_of(all_lanes.port(name))]
        groups.setdefault(tuple(map(content, decisive)), []).append(lane)
    for group in groups.values():
        some = all_lanes if len(group) == lanes else part(all_lanes, group)
        for places in alike(some, len(group)):
            same = len(places) == len(group)
            yield tuple(group[index] for index in places), some if same else part(some, places)


def alike(invocation: Invocation, lanes: int) -> Iterator[list[int]]:
    """Yield groups of lanes in which the same silences are open and the same readings valid."""
    try:
        premises = recorded(invocation).premises(invocation.arrays, lanes)
    except Refused:
        premises = {}
    groups: dict[tuple[bool, ...], list[int]] = {}
    for lane in range(lanes):
        groups.setdefault(tuple(bool(holds[lane]) for holds in premises.values()), []).append(lane)
    yield from groups.values()


def part(invocation: Invocation, lanes: list[int]) -> Invocation:
    """Return an invocation limited to some lanes."""
    return invocation.mapped(lambda array: array[lanes])


def _of_all_lanes(library: Library, program: Program, inputs: Sequence[Array]) -> Invocation:
    spec, key = library.operator_version(str(program.operator))
    version = spec.version(key)
    leaves = iter(inputs)
    lanes = len(inputs[0]) if inputs else 1
    given: list[Given] = []
    fed: dict[str, Given] = {}
    for operand in program.inputs:
        if operand is None or operand.name in fed:
            given.append(None if operand is None else fed[operand.name])
        elif operand.constant is not None:
            held = operand.array()
            given.append(np.broadcast_to(held, (lanes, *held.shape)))
        else:
            fed[operand.name] = _taken(operand, leaves)
            given.append(fed[operand.name])
    attributes = {a.name: a.value for a in program.attributes}
    ports = _by_port(version.signature.inputs, given)
    captured = {operand.name: _taken(operand, leaves) for operand in program.captured}
    return Invocation(spec, version, program, attributes, ports, frozenset(fed), captured)


def _taken(given: Input, arrays: Iterator[Array]) -> Array | tuple[Array, ...]:
    """Return the next tensors, which are the value of an input."""
    several = tuple(next(arrays) for _ in given.leaves)
    return several[0] if given.structure is None else several


def _by_port(ports: Sequence[SignaturePort], given: Sequence[Given]) -> tuple[Given, ...]:
    values: list[Given] = []
    for index, port in enumerate(ports):
        rest = given[index:]
        several = tuple(a for value in rest for a in tensors_of(value))
        values.append(several if port.is_variadic else rest[0] if rest else None)
    return tuple(values)


def recorded(invocation: Invocation) -> Recording:
    """Return the formula of an invocation. Raises Refused if it is invalid."""
    return _record(invocation, {})


def decisive(invocation: Invocation) -> frozenset[str]:
    """Return the names of the ports that decide shapes. Raises Refused if the invocation is invalid."""
    asked: dict[str, None] = {}
    _record(invocation, asked)
    return frozenset(asked)


def _record(invocation: Invocation, asked: dict[str, None]) -> Recording:
    """Return the formula, and add the ports whose values it asks for to `asked`. Raises Refused."""
    while True:
        try:
            return _recorded(invocation, _known(invocation, asked))
        except Asks as question:
            if question.port in asked:  # a mutant has removed it
                raise Refused(f"{question.port} is missing") from None
            asked[question.port] = None


def _known(invocation: Invocation, names: Mapping[str, None]) -> dict[str, Array]:
    return {name: array[0, ...] for name in names for array in tensors_of(invocation.port(name))[:1]}


def _recorded(invocation: Invocation, known: Mapping[str, Array]) -> Recording:
    function = reference_of(invocation.spec, invocation.version)
    recording = _recorder()(function, facts_of(invocation), known)
    if recording.invalid_clause:
        raise Refused(f"invalid by clause {recording.invalid_clause}")
    return recording


@functools.cache
def _recorder() -> Recorder:
    """Return what keeps the recordings of this process."""
    return Recorder()


def facts_of(i: Invocation) -> Facts:
    """Return the facts that a formula depends on besides data. Raises Refused for what the signature excludes."""
    signature = i.version.signature
    if unknown := sorted(name for name in i.attributes if signature.attribute(name) is None):
        raise Refused(f"no attribute is called {', '.join(unknown)}")
    if missing := [a.name for a in signature.attributes if a.required and a.name not in i.attributes]:
        raise Refused(f"attribute {', '.join(missing)} is missing")
    ports: dict[str, Port | tuple[Port, ...] | None] = {}
    for port, given in zip(signature.inputs, (*i.ports, *(None,) * len(signature.inputs)), strict=False):
        if given is None and port.option == "single":
            raise Refused(f"input {port.name} is missing")
        ports[port.name] = _port(given)
    names = [port.name for port in signature.outputs]
    if names and signature.outputs[-1].is_variadic:
        names = [f"{names[-1]}_{number}" for number in range(len(i.program.outputs))]
    named = {name: None if o is None else o.type for name, o in zip(names, i.program.outputs, strict=False)}
    return Facts(
        i.spec.operator,
        i.version.operator.version,
        ports,
        named,
        {**signature.defaults, **i.attributes},
        frozenset(i.attributes),
        i.version.options,
        i.version.clause_ids,
        captured={
            name: captured_port for name, given in i.captured.items() if (captured_port := _port(given)) is not None
        },
        structures=dict(_structures(i)),
        around=i.program.around,
    )


def _structures(i: Invocation) -> Iterator[tuple[str, Structure | tuple[Structure, ...]]]:
    """Yield the structures of ports. Raises Refused if a mistake at a port leaves too few or too many tensors."""
    program, several = i.program, list(i.program.inputs)
    for port, given in zip(i.version.signature.inputs, i.ports, strict=False):
        own, several = (several, []) if port.is_variadic else (several[:1], several[1:])
        made = tuple(operand.layout for operand in own if operand is not None)
        if given is None or not any(operand is not None and operand.structure is not None for operand in own):
            continue
        if sum(len(operand.leaves) for operand in own if operand is not None) != len(tensors_of(given)):
            raise Refused(f"input {port.name} has another number of tensors")
        yield port.name, made if port.is_variadic else made[0]
    yield from ((operand.name, operand.structure) for operand in program.captured if operand.structure is not None)


def _port(given: Given) -> Port | tuple[Port, ...] | None:
    if given is None:
        return None
    if isinstance(given, tuple):
        return tuple(Port(type_of(a), a.shape[1:]) for a in given)
    return Port(type_of(given), given.shape[1:])


class SameFormula(Exception):  # noqa: N818 - it says that a mistake makes no difference
    """A misread call has the same formula."""


class Answering:
    """An invocation prepared for implementations: its formula and the right answer. Raises Refused if invalid.

    All lanes have the same silences open.
    """

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self.recording = recorded(invocation)
        self.fork = _fork(self.recording, invocation.arrays, {})
        self._usual = usual_machine(invocation)
        self.right, self._trace = self.recording.native(invocation.arrays, self._usual, self.fork)
        self._others: dict[tuple[object, ...], Answer] = {}
        self._rounding: dict[int, set[type[Primitive]]] = {}

    @functools.cached_property
    def is_long(self) -> bool:
        """Whether the formula has too many nodes to try each one."""
        return len(self._live) > LONG

    @functools.cached_property
    def _live(self) -> tuple[int, ...]:
        return self.recording.live_of(self.recording.forks[self.fork].outputs)

    @functools.cached_property
    def deviations(self) -> Mapping[str, Mapping[int, Deviation]]:
        """The deviations of the formula's mutants, by name and node."""
        return deviations(self.recording.graph, self.recording.forks[self.fork].outputs)

    @functools.cached_property
    def _alternatives(self) -> Mapping[str, Mapping[int, Deviation]]:
        return alternatives(self.recording.graph, self._live)

    @functools.cached_property
    def corners(self) -> Mapping[str, Mapping[int, Deviation]]:
        """The mistakes at corners of the formula, by name and node."""
        return corner_deviations(self.recording.graph, self._live)

    def depends(self, name: str, ports: frozenset[int]) -> bool:
        """Return whether the nodes of a mutant of the formula depend on any of these ports, given by index."""
        graph, places = self.recording.graph, self._deviations(name)
        args = [a for at in places for a in graph.nodes[at].args]
        live = graph.live(args) if args else self._live  # a literal is combined with them sooner or later
        taken = (graph.nodes[at].parameters["port"] for at in live if graph.nodes[at].name == "port")
        return bool(places) and any(port in ports for port in taken)

    def answer(self, implementation: Implementation, memory: Memory | None = None, met: Met | None = None) -> Answer:
        """Return an implementation's answer: `right` itself if it does not deviate.

        `met` is the input of its trigger, if it has one; all lanes must agree in it. Raises Refused, and SameFormula if
        a misread call computes the same.
        """
        if implementation.under is not None and met is not None and not implementation.under.lanes(met).all():
            return self.right
        answer = self._computed(implementation)
        if implementation.finish is not None:
            answer = implementation.finish(self.invocation, answer)
        if implementation.recall is not None:
            answer = implementation.recall({} if memory is None else memory, answer)
        return answer

    def _computed(self, implementation: Implementation) -> Answer:
        if implementation.nodes:
            by_node = self._deviations(implementation.nodes)
            if not by_node:
                return self.right
            machine = replace(self._usual, deviate=by_node)
            answer, got = self.recording.native(self.invocation.arrays, machine, self.fork, self._trace)
            return self.right if got is self._trace else answer
        invocation = self.invocation if implementation.reading is None else implementation.reading(self.invocation)
        if invocation is self.invocation:
            return self._by_machine(implementation)
        recording = recorded(invocation)
        if implementation.kind == "call" and self._is_same(recording, invocation):
            raise SameFormula
        machine = usual_machine(invocation) if implementation.machine is None else implementation.machine(invocation)
        return recording.native(
            invocation.arrays, machine, _fork(recording, invocation.arrays, implementation.choices)
        )[0]

    def _deviations(self, name: str) -> Mapping[int, Deviation]:
        """Return the deviations by node; `every:MISTAKE` is at all nodes that allow it, `corner:NAME` at corners.

        The name of a variant gives the nodes where it takes another form.
        """
        if name in self._alternatives:
            return self._alternatives[name]
        every, _, mistake = name.partition(":")
        if every == CORNER:
            return self.corners.get(mistake, {})
        if every != "every":
            return self.deviations.get(name, {})
        matching = [by_node for key, by_node in self.deviations.items() if key.endswith(f":{mistake}")]
        return {at: deviate for by_node in matching for at, deviate in by_node.items()}

    def _by_machine(self, implementation: Implementation) -> Answer:
        """Return the answer of a machine that reads the call correctly, with its own choices."""
        fork = (
            _fork(self.recording, self.invocation.arrays, implementation.choices)
            if implementation.choices
            else self.fork
        )
        machine = self._usual if implementation.machine is None else implementation.machine(self.invocation)
        usual, key = (self._of_interest(m, fork) for m in (self._usual, machine))
        if fork == self.fork and key == usual:
            return self.right
        if (fork, key) not in self._others:
            self._others[fork, key] = self.recording.native(self.invocation.arrays, machine, fork)[0]
        return self._others[fork, key]

    def _of_interest(self, machine: Machine, fork: int) -> tuple[object, ...]:
        """Return the properties of a machine that matter for a formula: none if it does not round."""
        if fork not in self._rounding:
            nodes = (
                self.recording.graph.nodes[at] for at in self.recording.live_of(self.recording.forks[fork].outputs)
            )
            rooms = {ROOMS[node.name] for node in nodes if node.args and node.computes}
            self._rounding[fork] = {room for room in rooms if room.work == "rounds"}
        rooms = self._rounding[fork]
        if not rooms:
            return ()
        properties: tuple[object, ...] = (machine.type,)
        if any(room.accumulates for room in rooms):
            properties = (*properties, machine.acc, machine.order)
        return (*properties, machine.division) if any(room.name == "mean" for room in rooms) else properties

    def _is_same(self, recording: Recording, invocation: Invocation) -> bool:
        """Whether another call has exactly this formula, on the same data."""
        fork = _fork(recording, invocation.arrays, {})
        if len(recording.live_of(recording.forks[fork].outputs)) != len(self._live):
            return False
        if _written(recording, fork) != self._formula:
            return False
        used = {n.parameters["port"] for n in (recording.graph.nodes[at] for at in recording.live) if n.name == "port"}
        return len(invocation.arrays) == len(self.invocation.arrays) and all(
            invocation.arrays[index] is self.invocation.arrays[index] for index in used
        )

    @functools.cached_property
    def _formula(self) -> list[object]:
        return _written(self.recording, self.fork)


def _written(recording: Recording, fork: int) -> list[object]:
    """Return the nodes of a reading in order, for comparison: each operation, with the indices of its operands."""
    live = recording.live_of(recording.forks[fork].outputs)
    places = {at: index for index, at in enumerate(live)}
    nodes = (recording.graph.nodes[at] for at in live)
    return [
        (n.name, n.type, n.shape, [places[a] for a in n.args], [(k, frozen(v)) for k, v in n.parameters.items()])
        for n in nodes
    ]


def formula_mutant(name: str) -> Implementation:
    """Return the mutant of a formula by its name, `sub-1:operands-swapped`."""
    node, _, mistake = name.partition(":")
    primitive, _, number = node.rpartition("-")
    which = f"every {primitive}" if number == "all" else f"{primitive} number {number}"
    text = f"at {which}: {mistake.replace('-', ' ')}"
    rare = mistake.endswith(("nan-lost", "infinity-lost", "flipped"))
    return Implementation(name, "formula", text, nodes=name, incidental=rare)


def _fork(recording: Recording, arrays: Sequence[Array], choices: Mapping[str, str]) -> int:
    """Return the reading with these choices for open silences, by default their first options.

    Raises Refused if the reading is a refusal, or if its requirements do not hold.
    """
    forks = recording.forks
    lanes = len(arrays[0]) if arrays else 1
    holds = {at: bool(there[0]) for at, there in recording.premises(arrays, lanes).items()}
    first: dict[str, str] = {}
    for fork in forks:
        for silence, option in fork.labels:
            first.setdefault(silence, option)

    def fits(fork: Fork) -> bool:
        closed = {silence for silence, at in fork.conditions if not holds[at]}
        answers = ((s, first[s] if s in closed else choices.get(s, option), option) for s, option in fork.labels)
        return all(wanted == option for _, wanted, option in answers)

    valid = [at for at, f in enumerate(forks) if f.kind != "invalid" and all(holds[n] for _, n in f.requirements)]
    fitting = [at for at, fork in enumerate(forks) if fits(fork)]
    if not valid or (choices and fitting and fitting[0] not in valid):
        raise Refused("invalid by this reading")
    chosen = next((at for at in fitting if at in valid), valid[0])
    if forks[chosen].kind == "anything":
        chosen = next((at for at in valid if forks[at].kind in ("values", "any")), chosen)
    if forks[chosen].kind in ("rejected", "anything"):
        raise Refused("refused, which the standard leaves open")
    return chosen
