"""Records references: runs an operator's formula once for every combination of options of the silences that it meets.

A reference is a function of a `Call` and the operator's ports, as values in the signature's order; it returns the
outputs. Its computation becomes a graph, which every number type interprets.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ...cases.batch import CheckName
from ...cases.elements import Array, content
from ...cases.errors import OpconformError
from ...cases.program import (
    Body,
    Structure,
    TypeExpression,
    held_by,
    nested_all,
    parse_type,
)
from ..primitives.errors import format_of, kind_of
from .formula import Fork, Rules, Tested
from .graph import Graph, Value, frozen
from .options import flushed_input
from .recording import Recording

__all__ = ["Asks", "Call", "Facts", "Fork", "Port", "Recording", "Reference", "Rules", "Value", "record"]

_MOST_KEPT = 1024
ENDS = ("rejected", "anything")
"""The options that end a reading: a refusal, or any answer."""
MOST_FORKS = 512


class Port(NamedTuple):
    """The element type and shape of a reference's argument."""

    type: str
    shape: tuple[int, ...]


Ports: TypeAlias = Mapping[str, Port | tuple[Port, ...] | None]
"""Ports by name, in the signature's order; several for a variadic port or a sequence, None for one left out."""
Reference: TypeAlias = Callable[..., Any]
Question: TypeAlias = tuple[Literal["attribute", "given", "clause", "silence", "version", "around"], str]
Answered: TypeAlias = dict[Question, object]
"""The questions that a reference asked about the facts, with the answers."""


@dataclass(frozen=True)
class Facts:
    """Everything that a formula depends on besides data.

    `attributes`: values by name, including the signature's defaults; `given`: the names of attributes that the program
    sets. `outputs`: the element type of each output by name, None for one left out. `silences`: the admissible options,
    by silence. `clauses`: ids. `precision`: a function's largest error in units in the last place, if the spec has it.
    `captured`: outer values that bodies use; their arrays follow the ports' arrays. `structures`: the structure of a
    port or captured value that is not a tensor: one, or one for each value of a variadic port. `around`: the graph
    before the operator.
    """

    operator: str
    version: int | str
    ports: Ports
    outputs: Mapping[str, str | None]
    attributes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    given: frozenset[str] = frozenset()
    silences: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    clauses: frozenset[str] = frozenset()
    precision: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    captured: Mapping[str, Port | tuple[Port, ...]] = field(default_factory=lambda: MappingProxyType({}))
    structures: Mapping[str, Structure | tuple[Structure, ...]] = field(default_factory=lambda: MappingProxyType({}))
    around: Body | None = None

    @functools.cached_property
    def options(self) -> Mapping[str, tuple[str, ...]]:
        """The options of the version's silences, and of the silence that `Call.read` opens in every version."""
        return {**self.silences, "flush": ("none", "input-and-output")}

    def answer(self, question: Question) -> object:
        """Return the answer to a reference's question."""
        kind, name = question
        match kind:
            case "attribute":
                return self.attributes.get(name)
            case "given":
                return name in self.given
            case "clause":
                return name in self.clauses
            case "silence":
                return self.options.get(name)
        return self.around if kind == "around" else self.version


class Asks(Exception):  # noqa: N818 - no error: the answer is to record anew, with the port's values
    """A reference needs the values of the port `port`: they determine shapes, and so belong to the program."""

    def __init__(self, port: str) -> None:
        super().__init__(port)
        self.port = port


class Invalid(Exception):  # noqa: N818 - likewise no error of ours
    """The program breaks a clause, whatever the data."""


class _Ends(Exception):  # noqa: N818
    pass


class Call:
    """A reference's view of its case: attributes, version, known values, options of silences, clauses."""

    def __init__(
        self, facts: Facts, graph: Graph, known: Mapping[str, Array], chosen: Mapping[str, str], answers: Answered
    ) -> None:
        self.facts, self.graph, self._answers = facts, graph, answers
        self.conditions: dict[str, int] = {}
        self.requirements: list[tuple[str, int]] = []
        self.checks: list[Tested] = []
        self.met: dict[str, str] = {}
        self._wholly_open: set[str] = set()
        self._known, self._chosen = known, chosen
        self._names: dict[int, str] = {}
        self.captured: dict[str, Any] = {}

    def _ask(self, question: Question) -> Any:
        answer = self._answers[question] = self.facts.answer(question)
        return answer

    @property
    def version(self) -> Any:
        """The operator's version."""
        return self._ask(("version", ""))

    @property
    def around(self) -> Body | None:
        """The graph before the operator, whose nodes use its inputs by name."""
        return self._ask(("around", ""))  # type: ignore[no-any-return]  # a fact

    @property
    def clauses(self) -> Clauses:
        """The ids of the version's clauses; supports `in`."""
        return Clauses(self)

    @property
    def types(self) -> Mapping[str, str]:
        """The element type of each given port."""
        types = {}
        for name, port in self.facts.ports.items():
            if port:
                types[name] = port.type if isinstance(port, Port) else port[0].type
        return types

    @property
    def output_types(self) -> Mapping[str, str | None]:
        """The element type of each output, None for one left out."""
        return self.facts.outputs

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute's value: as given, else the signature's default, else `default`."""
        value = self._ask(("attribute", name))
        return default if value is None else value

    def given(self, name: str) -> bool:
        """Return whether the program sets an attribute, or has a port of this name."""
        return self.sets(name) or self.facts.ports.get(name) is not None

    def sets(self, name: str) -> bool:
        """Return whether the program sets an attribute."""
        return bool(self._ask(("given", name)))

    def silent(self, silence: str) -> bool:
        """Return whether the version has a silence of this name."""
        return self._ask(("silence", silence)) is not None

    def wants(self, output: str) -> bool:
        """Return whether an output is requested."""
        return self.facts.outputs.get(output) is not None

    def require(self, clause: str, condition: bool | Value) -> None:
        """State a condition of validity: on the program, or on its values (all elements must be true).

        The version must have the clause: see `require_if_stated`, and `generators/contract.py`, which checks it.
        """
        if isinstance(condition, Value):
            self.requirements.append((clause, condition.at))
        elif not condition:
            raise Invalid(clause)

    def require_if_stated(self, clause: str, condition: bool | Value) -> None:
        """State a condition of validity that only versions with this clause have."""
        if clause in self.clauses:
            self.require(clause, condition)

    def open(self, silence: str, where: Value | None = None) -> str:
        """Return the chosen option of a silence; with `where`, it is open only in lanes with a true element there.

        `rejected` and `anything` end the reading here. `any`, without `where`, frees all elements of all outputs:
        continue with any one meaning, for the shapes. Raises OpconformError if the version has no such silence.
        """
        if silence not in self.met:
            options = self._ask(("silence", silence))
            if options is None:
                raise OpconformError(f"{self.facts.operator}-{self.facts.version} has no silence {silence!r}")
            self.met[silence] = self._chosen.get(silence, options[0])
            if where is not None:
                self.conditions[silence] = where.at
            elif self.met[silence] == "any":
                self._wholly_open.add(silence)
        if not self.met[silence]:
            raise OpconformError(f"{self.facts.operator}: {silence} is answered by a primitive, before the formula is")
        if self.met[silence] in ENDS:
            raise _Ends(self.met[silence])
        return self.met[silence]

    def deferred(self, silence: str, where: Callable[[], Value] | None = None) -> tuple[str, ...]:
        """Return the options of a silence, which are all chosen in turn once the formula is complete.

        If one is already chosen, return only that one; empty if the version has no such silence. If an option ends the
        reading, the silence is opened now, in lanes with a true element of `where`.
        """
        options = self._ask(("silence", silence)) or ()
        if self.met.get(silence) or any(option in ENDS for option in options):
            return (self.open(silence, where and where()),)
        if options:
            self.met.setdefault(silence, "")
        return tuple(options)

    def answer(self, silence: str, usual: str) -> str:
        """Return the chosen option of a silence, or `usual` if the version has no such silence."""
        return self.open(silence) if self.silent(silence) else usual

    @property
    def frees_all(self) -> bool:
        """Whether an option leaves every element of every output open."""
        return bool(self._wholly_open)

    def known(self, port: str | Value) -> Array:
        """Return the values of a port; all lanes then share them.

        Raises Asks if they are not known yet, ValueError if the port is left out.
        """
        name = port if isinstance(port, str) else self._names[port.at]
        if name not in self._known:
            if self.facts.ports.get(name) is None:
                raise ValueError(f"it needs {name}, which is left out")
            raise Asks(name)
        return self._known[name]

    def read(self, port: str) -> Array:
        """Return the values of a port as an implementation compares them: subnormal ones are zero if it flushes.

        Formulas on values don't need this: there the arithmetic's own silence `flush` applies.
        """
        known, type_ = self.known(port), self.types[port]
        if kind_of(type_) != "real":
            return known
        read = flushed_input(known, format_of(type_).tiny)
        return known if np.array_equal(read, known, equal_nan=True) or self.open("flush") == "none" else read

    def ints(self, name: str) -> tuple[int, ...] | None:
        """Return the whole numbers of an attribute, or of a port with known values; None if there is neither."""
        if self.facts.ports.get(name) is not None:
            return tuple(int(n) for n in self.known(name).reshape(-1))
        value = self.attr(name)
        if value is None:
            return None
        return tuple(int(n) for n in value) if isinstance(value, (list, tuple, np.ndarray)) else (int(value),)

    def float32(self, name: str, default: float | None = None) -> float:
        """Return a float attribute as ONNX stores it, in float32."""
        with np.errstate(over="ignore"):  # a mutant's attribute may be out of range, and then becomes infinite
            return float(np.float32(self.attr(name, default)))

    def constant(self, number: object, type_: str) -> Value:
        """Return a number, or an array of numbers, as a tensor of a type, exactly as written."""
        return self.graph.literal(number, type_)

    def check(
        self, name: CheckName, outputs: Sequence[str] = (), arrays: Sequence[Value] = (), **settings: float | str
    ) -> None:
        """Add a test of whole outputs, by name (none: all of them), to the tests of each element.

        The outputs are compared with `arrays`. See `runners/judging/answers.py` for the tests and their settings.
        """
        wanted = [output for output, type_ in self.facts.outputs.items() if type_ is not None]
        places = tuple(wanted.index(output) for output in outputs or wanted)
        self.checks.append(Tested(name, places, tuple(settings.items()), tuple(a.at for a in arrays)))

    def one_of(self, forms: Sequence[Value], vague: Array) -> Value:
        """Return the first of several forms of the only output; where `vague`, an element may be any form's there.

        vague: bool, broadcasts with the output.
        """
        if len(forms) == 1:
            return forms[0]
        self.check("one-of", arrays=forms)
        return forms[0].undefined(self.constant(vague, "bool"))

    def values(self) -> list[Any]:
        """Return the ports as values, in the signature's order."""
        inputs: list[Any] = []
        index = 0
        for name, port in self.facts.ports.items():
            if port is None:
                inputs.append(None)
                continue
            values = self._values(port, index)
            index += len(values)
            self._names |= {value.at: name for value in values}
            inputs.append(self._nested(name, port, values))
        for name, captured in self.facts.captured.items():
            values = self._values(captured, index)
            index += len(values)
            self.captured[name] = self._nested(name, captured, values)
        return inputs

    def _values(self, port: Port | tuple[Port, ...], index: int) -> list[Value]:
        several = (port,) if isinstance(port, Port) else port
        return [self.graph.port(index + i, port_.shape, port_.type) for i, port_ in enumerate(several)]

    def _nested(self, name: str, port: Port | tuple[Port, ...], values: list[Value]) -> Any:
        structure = self.facts.structures.get(name)
        if structure is None:
            return values[0] if isinstance(port, Port) else values
        return nested_all(structure, values) if isinstance(structure, tuple) else nested_all([structure], values)[0]


class Clauses:
    """The clauses of a call's version."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def __contains__(self, clause: str) -> bool:
        return bool(self._call._ask(("clause", clause)))


class Recorder:
    """Records formulas, once for all programs that agree in everything that the reference asks about.

    Programs with the same computation share one recording, whatever their ids.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], _Answers | Recording | Asks] = {}
        self._same: dict[tuple[object, ...], Recording] = {}

    def __call__(self, function: Reference, facts: Facts, known: Mapping[str, Array]) -> Recording:
        """Return the recording of `record`. Raises the same errors."""
        values = ((name, content(known[name])) for name in sorted(known))
        ports = (*facts.ports.items(), *facts.captured.items(), *facts.structures.items(), *facts.outputs.items())
        key = (function, ports, tuple(values), tuple(facts.precision.items()))
        recording = self._known.get(key)
        while isinstance(recording, _Answers):
            recording = recording.after.get(_typed(facts.answer(recording.question)))
        if recording is None:
            recording = self._recorded(function, facts, known, key)
        if isinstance(recording, Asks):
            raise Asks(recording.port)
        return recording

    def _recorded(
        self, function: Reference, facts: Facts, known: Mapping[str, Array], key: tuple[object, ...]
    ) -> Recording | Asks:
        answers: Answered = {}
        recording: Recording | Asks
        try:
            made = record(function, facts, known, answers)
            recording = self._same.setdefault(made.content, made)
        except Asks as asks:
            recording = asks
        if len(self._known) >= _MOST_KEPT:
            self._known.clear()
            self._same.clear()
        after: dict[Any, Any] = self._known
        last: object = key
        for question, answer in answers.items():
            after, last = after.setdefault(last, _Answers(question)).after, _typed(answer)
        after[last] = recording
        return recording


@dataclass(frozen=True)
class _Answers:
    """What a reference asks next, and what follows each answer; its next question depends on nothing else."""

    question: Question
    after: dict[object, _Answers | Recording | Asks] = field(default_factory=dict)


def _typed(answer: object) -> object:
    """Return a key that two answers share only if they are equal to the bit, with their types: 1 is not 1.0."""
    return tuple(map(_typed, answer)) if isinstance(answer, tuple) else frozen(answer)


def record(
    function: Reference,
    facts: Facts,
    known: Mapping[str, Array] | None = None,
    answers: Answered | None = None,
    call_type: Callable[[Facts, Graph, Mapping[str, Array], Mapping[str, str], Answered], Call] = Call,
) -> Recording:
    """Return a reference's formula for a program; `known` are values of ports, by name, that belong to the program.

    `answers` collects the reference's questions about the facts; `call_type` makes its view of them. Raises Asks if the
    reference needs the values of another port, OpconformError if it cannot handle the input, or if it opens a silence
    that the version does not have.
    """
    answers = {} if answers is None else answers
    graph = Graph(facts.precision)
    forks: list[Fork] = []
    chosen: dict[str, str] | None = {}
    while chosen is not None:
        call = call_type(facts, graph, known or {}, chosen, answers)
        graph.asked = call
        forks += _forks(_fork(function, call), graph, facts.options)
        if len(forks) > MOST_FORKS:
            raise ValueError(f"{facts.operator}: more than {MOST_FORKS} combinations of options: {list(call.met)}")
        chosen = _next({silence: option for silence, option in call.met.items() if option}, facts.options)
    forks.sort(key=lambda fork: [facts.options[silence].index(option) for silence, option in fork.labels])
    return Recording(graph, tuple(forks), tuple(t for t in facts.outputs.values() if t is not None))


def _fork(function: Reference, call: Call) -> Fork:
    leaves: list[Value] = []
    structure: tuple[Structure, ...] = ()
    kind, invalid = "values", ""
    try:
        results = function(call, *call.values())
    except _Ends as end:
        kind = str(end)
    except Invalid as clause:
        kind, invalid = "invalid", str(clause)
    except (ArithmeticError, LookupError, RecursionError, ValueError) as error:
        operator = call.facts.operator
        raise OpconformError(f"{operator}: its formula has no answer for such an input: {error!r}") from error
    else:
        structure = _outputs(results, call, leaves)
    if kind == "values" and call.frees_all:
        kind = "any"
    return Fork(
        labels=tuple(call.met.items()),
        kind=kind,
        outputs=tuple(v.at for v in leaves) if kind in ("values", "any") else (),
        requirements=tuple(call.requirements),
        conditions=tuple(call.conditions.items()),
        checks=tuple(call.checks),
        structure=structure if any(structure_.kind != "tensor" for structure_ in structure) else (),
        invalid=invalid,
    )


def _forks(fork: Fork, graph: Graph, silences: Mapping[str, tuple[str, ...]]) -> Iterator[Fork]:
    """Yield a fork for every combination of deferred options."""
    deferred = [silence for silence, option in fork.labels if not option]
    if not deferred:
        yield fork
        return
    places = [*fork.outputs, *(at for _, at in (*fork.requirements, *fork.conditions))]
    places += [at for check in fork.checks for at in check.arrays]
    for options in itertools.product(*(silences[silence] for silence in deferred)):
        chosen = dict(zip(deferred, options, strict=True))
        resolved = graph.resolved(places, chosen)
        yield replace(
            fork,
            labels=tuple((silence, option or chosen[silence]) for silence, option in fork.labels),
            outputs=tuple(resolved[at] for at in fork.outputs),
            requirements=tuple((clause, resolved[at]) for clause, at in fork.requirements),
            conditions=tuple((silence, resolved[at]) for silence, at in fork.conditions),
            checks=tuple(replace(test, arrays=tuple(resolved[at] for at in test.arrays)) for test in fork.checks),
        )


def _outputs(results: Any, call: Call, leaves: list[Value]) -> tuple[Structure, ...]:
    """Collect the tensors of a reference's outputs, and return the structure of each output."""
    named = results if isinstance(results, tuple) else (results,)
    if len(named) < len(call.output_types):
        raise ValueError(f"{call.facts.operator}: {len(call.output_types)} outputs; its reference has {len(named)}")
    structures = []
    for value, (name, type_) in zip(named, call.output_types.items(), strict=False):
        if type_ is None:
            continue
        try:
            structures.append(_structure(value, parse_type(type_), leaves))
        except TypeError:
            operator = call.facts.operator
            raise ValueError(f"{operator}: output {name} of type {type_} is no {type(value).__name__}") from None
    return tuple(structures)


def _structure(value: Any, type_: TypeExpression, leaves: list[Value]) -> Structure:
    """Collect the tensors of a value: a list is a sequence, None an empty optional, a pair a map or sparse."""
    match type_.kind:
        case "optional":
            items = () if value is None else (_structure(value, held_by(type_), leaves),)
            return Structure("optional", items=items)
        case "sequence":
            return Structure("sequence", items=tuple(_structure(entry, held_by(type_), leaves) for entry in value))
        case "map" | "sparse":
            first, second = (type_.key, type_.element) if type_.kind == "map" else (type_.element, "int64")
            for entry, element in zip(value, (first, second), strict=True):
                leaves.append(entry.cast(element))
            return Structure(type_.kind, count=value[0].shape[0])
    if not isinstance(value, Value):
        raise TypeError
    leaves.append(value.cast(type_.element))
    return Structure("tensor")


def _next(met: Mapping[str, str], silences: Mapping[str, tuple[str, ...]]) -> dict[str, str] | None:
    """Return the next combination of options, the last silence varying first; None after the last one."""
    taken = list(met.items())
    while taken:
        silence, option = taken.pop()
        later = silences[silence][silences[silence].index(option) + 1 :]
        if later:
            return dict(taken) | {silence: later[0]}
    return None
