"""The contract between a spec and its reference: what the spec declares, the reference asks for in some case.

A reference that never reads an attribute takes every case as if it had one value, and blames right backends in silence.
One that requires a clause of another version refuses what its own version allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from ..cases.elements import Array
from ..cases.errors import did_you_mean
from ..cases.ids import parse_id
from ..specs.audit.findings import Differences
from ..specs.model import Spec, VersionSpec
from ..specs.reading import SpecError
from .arithmetic.graph import Graph, Node
from .arithmetic.recording import Recording
from .arithmetic.tape import Answered, Call, Facts, Reference, record
from .plan import by_version
from .selection import suite_cases
from .source import GeneratedCases, Prepared, formula_of

_GENERAL: Final = frozenset({"flush", "integer-overflow", "default"})
"""Silences that the arithmetic and shared helpers ask for in every family."""
_FEW: Final = 40  # cases of an operator version of which the smoke suite has none


@dataclass
class Asked:
    """What a reference asked for, in all cases that were recorded.

    `attributes`, `inputs` and `silences` by name; `clauses` are those that it required, `conditions` those whose
    presence it asked for, `failures` the errors that kept a case from being recorded.
    """

    attributes: set[str] = field(default_factory=set)
    inputs: set[str] = field(default_factory=set)
    silences: set[str] = field(default_factory=set)
    clauses: set[str] = field(default_factory=set)
    conditions: set[str] = field(default_factory=set)
    failures: dict[str, None] = field(default_factory=dict)

    def join(self, other: Asked) -> None:
        """Add what was asked for in other cases."""
        for own in fields(self):
            getattr(self, own.name).update(getattr(other, own.name))


class _Nodes(list[Node]):
    """The nodes of a graph, with the indices of those that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[int] = set()

    def __getitem__(self, index: Any) -> Any:
        self.read.add(index)
        return super().__getitem__(index)


class _Types(dict[str, str]):
    """Element types by port, with the ports whose type was read."""

    def __init__(self, types: Mapping[str, str], read: set[str]) -> None:
        super().__init__(types)
        self._read = read

    def __getitem__(self, name: str) -> str:
        self._read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._read.add(name)
        return super().get(name, default)


class _Several(list[Any]):
    """The values of a variadic port or of a sequence; notes that any of them, or their number, was read."""

    def __init__(self, values: Iterable[Any], name: str, read: set[str]) -> None:
        super().__init__(values)
        self._name, self._inputs = name, read

    def __len__(self) -> int:
        self._inputs.add(self._name)
        return super().__len__()

    def __iter__(self) -> Iterator[Any]:
        self._inputs.add(self._name)
        return super().__iter__()

    def __getitem__(self, index: Any) -> Any:
        self._inputs.add(self._name)
        return super().__getitem__(index)


class _Watched(Call):
    """A call that notes what its reference asks for."""

    def __init__(self, asked: Asked, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.asked = asked

    @property
    def types(self) -> Mapping[str, str]:
        return _Types(super().types, self.asked.inputs)

    def require(self, clause: str, condition: Any) -> None:
        self.asked.clauses.add(clause)
        super().require(clause, condition)

    def given(self, name: str) -> bool:
        self.asked.inputs.add(name)
        return super().given(name)

    def known(self, port: Any) -> Array:
        self.asked.inputs.add(port if isinstance(port, str) else self._names[port.at])
        return super().known(port)

    def values(self) -> list[Any]:
        values = super().values()
        names = self.facts.ports
        return [
            _Several(value, name, self.asked.inputs) if isinstance(value, list) else value
            for name, value in zip(names, values, strict=True)
        ]

    def names_of(self, nodes: Iterable[int]) -> set[str]:
        """Return the ports whose nodes are among some."""
        return {self._names[at] for at in nodes if at in self._names}


class _Watch:
    """Records formulas as a `Recorder` does, each anew, and notes what their references ask for."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def __call__(self, function: Reference, facts: Facts, known: Mapping[str, Array]) -> Recording:
        answers: Answered = {}
        calls: list[_Watched] = []

        def call(facts: Facts, graph: Graph, *rest: Any) -> Call:
            if not isinstance(graph.nodes, _Nodes):
                graph.nodes = _Nodes()
            calls.append(_Watched(self.asked, facts, graph, *rest))
            return calls[-1]

        try:
            return record(function, facts, known, answers, call)
        finally:
            for call_ in calls:
                assert isinstance(call_.graph.nodes, _Nodes)
                self.asked.inputs |= call_.names_of(call_.graph.nodes.read)
            for kind, name in answers:
                if kind in ("attribute", "given"):
                    self.asked.attributes.add(name)
                elif kind == "silence":
                    self.asked.silences.add(name)
                elif kind == "clause":
                    self.asked.conditions.add(name)


def asked_by(source: GeneratedCases, version: VersionSpec, some: Sequence[str], every: Iterable[str]) -> Asked:
    """Return what a version's reference asks for in `some` cases; in `every` case, until nothing is missing."""
    asked = Asked()
    record_watched: Any = _Watch(asked)
    seen: set[str] = set()

    def look(text: str) -> None:
        seen.add(text)
        row = source.row(parse_id(text))
        prepared = Prepared(row, record_watched)
        try:
            formula_of(prepared, prepared.filling.tensors([row.id.fill], [text]))
        except Exception as error:
            if not row.rejected:  # an invalid case may be of a type or rank that a formula cannot take
                asked.failures[str(error)] = None

    for text in some:
        look(text)
    for text in every:
        if not (asked.failures or _unopened(version, asked) or any(_unread(version, asked))):
            break
        if text not in seen:
            look(text)
    return asked


def _unopened(version: VersionSpec, asked: Asked) -> list[str]:
    """Return the silences that no case opens and no edge tests, sorted."""
    tested = {silence for edge in version.edges.values() for silence in edge.tests}
    return sorted(version.options.keys() - asked.silences - tested)


def _unread(version: VersionSpec, asked: Asked) -> Iterator[tuple[str, str]]:
    """Yield the attributes and inputs that the reference never asked for, with their sections."""
    signature = version.signature
    read = asked.attributes | asked.inputs | version.unused.keys()
    for attribute in signature.attributes:
        if attribute.name not in read | version.type_attributes:
            yield "attributes", attribute.name
    yield from (("inputs", port.name) for port in signature.inputs if port.name not in read)


@dataclass(frozen=True)
class Breaches:
    """The breaches of the contract, with file and line; `untouched` describes silences that nothing opens."""

    errors: tuple[SpecError, ...]
    untouched: tuple[str, ...]


def breaches(
    source: GeneratedCases,
    specs: Iterable[Spec],
    every: Mapping[str, Sequence[str]],
    others: Iterable[Spec] = (),
) -> Breaches:
    """Return the breaches of the contract of some specs.

    `every` has the planned ids by operator version. The smoke suite's are recorded, and more only until everything was
    asked for. `others` are specs of the same families elsewhere, which also use their clauses and silences.
    """
    smoke = by_version(suite_cases("smoke"))
    errors: list[SpecError] = []
    untouched: list[str] = []
    asked_for: dict[str, Asked] = {}
    for spec in specs:
        problems = Differences(spec)
        for version in spec.versions.values():
            name = str(version.operator)
            ids = every.get(name, ())
            planned = set(ids)
            some = [text for text in smoke.get(name, ()) if text in planned] or ids[:_FEW]
            asked = asked_by(source, version, some, ids)
            for section, part, words in _broken(spec, version, asked):
                problems.add(version.operator.version, words, section, part)
            untouched += (f"{name}: no case opens the silence {silence}" for silence in _unopened(version, asked))
            asked_for.setdefault(spec.family, Asked()).join(asked)
        errors += problems.errors()
    users = [*source.library.specs(), *others]
    for family, asked in asked_for.items():
        errors += _unknown([spec for spec in users if spec.family == family], asked)
    return Breaches(tuple(errors), tuple(untouched))


def _broken(spec: Spec, version: VersionSpec, asked: Asked) -> Iterator[tuple[str, str, str]]:
    """Yield the breaches of one version: a section, a name in it, and a message."""
    reference = f"{spec.family}.{spec.function}"
    for words in asked.failures:
        yield "inputs", "", f"its formula cannot be recorded: {words}"
    for section, part in _unread(version, asked):
        words = f"{reference} never reads it; read it, or say under `unused` why not"
        yield section, part, f"{section[:-1]} {part}: {words}"
    for part in sorted(version.unused.keys() & (asked.attributes | asked.inputs) - version.type_attributes):
        yield "attributes", part, f"{part}: {reference} reads it, so it is not unused"
    for clause in sorted(asked.clauses - version.clause_ids):
        yield "clauses", clause, f"clause {clause}: {reference} requires it, and the version does not have it"


def _unknown(specs: Sequence[Spec], asked: Asked) -> Iterator[SpecError]:
    """Yield an error for each clause or silence that a family's references ask for, and that none of its specs has."""
    versions = [version for spec in specs for version in spec.versions.values()]
    clauses = {id_ for version in versions for id_ in version.clauses}
    silences = {id_ for version in versions for id_ in version.options} | _GENERAL
    for kind, names, known in (("clause", asked.conditions, clauses), ("silence", asked.silences, silences)):
        for name in sorted(names - known):
            words = f"the family {specs[0].family} asks for the {kind} {name!r}, which none of its spec files has"
            yield specs[0].error(("family",), words + (did_you_mean(name, known) or ""))
