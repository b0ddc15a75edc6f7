"""A call of one operator version by the rules of another one, to which it is bonded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...cases.batch import CheckName
from ...cases.elements import Array
from ...cases.errors import OpconformError
from ...cases.program import AttributeValue
from ...specs.model import Binding, Port, VersionSpec, Word
from ..arithmetic.binding import Bound
from ..arithmetic.graph import Graph, Value, exact
from ..arithmetic.tape import Asks, Call, Facts, Invalid, Recording, Reference, record
from ..arithmetic.tape import Port as GivenPort
from ..families import families, reference_of
from ..primitives.errors import kind_of
from .bonds import Bond
from .situations import Inexpressible

THEIRS = "="
"""Begins the name of a clause, a silence or a type of the other version; no id has it."""
_FEW = 2  # words of an attribute that tell that it has no others
_NO_ANSWER = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a formula raises for a call that it was not written for: one whose clauses are not required."""


@dataclass(frozen=True)
class TheirCall:
    """A call of theirs that one of ours amounts to: its attributes, and its inputs with lanes first.

    `prepared`: the attributes that the function under `by` sets. `facts`: all that theirs may ask of it.
    """

    attributes: Mapping[str, AttributeValue]
    inputs: Mapping[str, tuple[Array, ...] | None]
    prepared: frozenset[str] = frozenset()
    facts: Facts | None = None


class _Seen(Exception):  # noqa: N818 - no error: their call is known, and its results do not matter
    def __init__(self, call: _Theirs, inputs: Sequence[Any]) -> None:
        super().__init__()
        self.call, self.inputs = call, inputs


def by_their_rules(bond: Bond, *, defaults: bool = False, shown: bool = False) -> Reference:
    """Return the reference that computes our outputs as theirs, by the clauses and silences of their version.

    defaults: an attribute that ours leaves out is left out of theirs, too; shown: the computation ends at their call.
    """
    binding, reference = bond.binding, reference_of(bond.their_spec, bond.theirs)
    prepare = _prepare(binding) if bond.stated else None

    def computed(c: Call, *ports: Any) -> Any:
        named = dict(zip(c.facts.ports, ports, strict=True))

        def formula(*inputs: Any, **attributes: Any) -> Any:
            given = dict(zip(binding.inputs, inputs, strict=False))
            call = _Theirs(c, bond, given, attributes, defaults=defaults)
            values = call.arguments()
            if shown:
                raise _Seen(call, values)
            while values and values[-1] is None:
                values = values[:-1]
            c.graph.asked = call
            try:
                return reference(call, *values)
            finally:
                c.graph.asked = c

        if prepare is not None:
            return prepare(c, formula, *ports)
        for name in bond.only_ours:
            if named.get(name) is not None or _is_unusual(c, bond.ours, name):
                raise Inexpressible(f"{bond.theirs.operator} has no {name}")
        inputs = [None if own is None else named.get(own) for own in binding.inputs.values()]
        outputs = formula(*inputs)
        several = outputs if isinstance(outputs, tuple) else (outputs,)
        results = dict(zip(binding.outputs.values(), several, strict=False))
        return tuple(results.get(name) for name in c.output_types)

    return computed


def _is_unusual(c: Call, version: VersionSpec, name: str) -> bool:
    """Return whether a call gives an attribute that its default, or another type, does not imply."""
    if version.signature.attribute(name) is None or not c.sets(name) or name in version.unused:
        return False
    return name not in version.type_attributes and not _same(c.attr(name), version.signature.defaults.get(name))


def _prepare(binding: Binding) -> Reference | None:
    if binding.by is None:
        return None
    module, _, function = binding.by.partition(".")
    return families()[module].prepares[function]


def facts_for_theirs(bond: Bond, facts: Facts) -> Facts:
    """Return our facts with the options of their silences, and without outputs that theirs lack."""
    bound = set(bond.outputs.values())
    outputs = {name: type_ if name in bound else None for name, type_ in facts.outputs.items()}
    theirs = {f"{THEIRS}{name}": options for name, options in bond.theirs.options.items()}
    return replace(facts, outputs=outputs, silences={**facts.silences, **theirs})


def their_call(bond: Bond, facts: Facts, arrays: Sequence[Array]) -> TheirCall:
    """Return the call of theirs that one of ours amounts to. Raises Inexpressible, OpconformError."""
    known: dict[str, Array] = {}
    facts = facts_for_theirs(bond, facts)
    while True:
        graph = Graph(facts.precision)
        call = Lenient(facts, graph, known, {}, {})
        graph.asked = call
        try:
            by_their_rules(bond, shown=True)(call, *call.values())
        except Asks as asks:
            known[asks.port] = array_of(facts, arrays, asks.port)
        except _Seen as seen:
            try:
                return _evaluated(seen, graph, arrays)
            except _NO_ANSWER as error:
                raise OpconformError(f"{bond.ours.operator}: its inputs are none of the formula: {error}") from error
        except Invalid as clause:
            raise Inexpressible(f"{bond.theirs.operator}: {str(clause).removeprefix(THEIRS)}") from clause
        except _NO_ANSWER as error:
            raise OpconformError(f"{bond.ours.operator}: it does not get to the formula: {error}") from error
        else:
            raise OpconformError(f"{bond.ours.operator} does not use the formula here")


def _evaluated(seen: _Seen, graph: Graph, arrays: Sequence[Array]) -> TheirCall:
    named = {
        port.name: value if isinstance(value, list | tuple) or value is None else [value]
        for port, value in zip(seen.call.version_spec.signature.inputs, seen.inputs, strict=True)
    }
    wanted = [value.at for values in named.values() for value in values or ()]
    live = graph.live(wanted)
    known = exact(graph, live, arrays, wide=False)
    inputs = {
        name: None if values is None else tuple(_plain(known[value.at].v, value.shape) for value in values)
        for name, values in named.items()
    }
    names = [attribute.name for attribute in seen.call.version_spec.signature.attributes]
    attributes = {name: value for name in names if (value := seen.call.value(name)) is not None}
    version = seen.call.version_spec
    facts = replace(
        seen.call.facts,
        attributes=attributes,
        given=frozenset(attributes),
        silences=version.options,
        clauses=version.clause_ids,
    )
    return TheirCall(attributes, inputs, frozenset(attributes.keys() & seen.call.own_attributes), facts)


def _plain(array: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(array, (len(array) if array.ndim > len(shape) else 1, *shape))


def recorded(reference: Reference, facts: Facts, arrays: Sequence[Array], call_type: type[Call] = Call) -> Recording:
    """Return the formula of a call, with the values that it asks for. Raises Inexpressible, OpconformError."""
    known: dict[str, Array] = {}
    while True:
        try:
            return record(reference, facts, known, call_type=call_type)
        except Asks as asks:
            if asks.port in known:
                raise OpconformError(f"{facts.operator}: its formula asks for {asks.port} again") from None
            known[asks.port] = array_of(facts, arrays, asks.port)
        except _NO_ANSWER as error:
            raise OpconformError(f"{facts.operator}: its formula has no answer: {error!r}") from error


def array_of(facts: Facts, arrays: Sequence[Array], port: str) -> Array:
    """Return the first tensor of a port, of the first lane."""
    index = 0
    for name, ports in facts.ports.items():
        if name == port:
            return arrays[index][0, ...]
        index += 0 if ports is None else 1 if isinstance(ports, GivenPort) else len(ports)
    raise OpconformError(f"{facts.operator} has no input {port}")


class Lenient(Call):
    """A call that requires none of our clauses, so that only theirs decide what is invalid."""

    def require(self, clause: str, condition: bool | Value) -> None:
        """State nothing, unless the clause is theirs."""
        if clause.startswith(THEIRS):
            super().require(clause, condition)


class _Theirs(Bound):
    """A call of ours as one of theirs, answered from their spec: attributes, defaults, clauses and silences."""

    def __init__(
        self, call: Call, bond: Bond, inputs: Mapping[str, Any], attributes: Mapping[str, Any], *, defaults: bool
    ) -> None:
        super().__init__(call, bond.binding, inputs, attributes)
        self.bond, self.version_spec, self._defaults = bond, bond.theirs, defaults
        self._inputs = {name: value for name, value in inputs.items() if value is not None}
        self._check_expressible()
        signature = bond.theirs.signature
        ports = {port.name: self.facts.ports.get(port.name) for port in signature.inputs}
        operator = f"{bond.theirs.operator.standard}/{bond.theirs.operator.name}"
        self.facts = replace(self.facts, operator=operator, version=bond.theirs.operator.version, ports=ports)

    @property
    def own_attributes(self) -> frozenset[str]:
        """The attributes of theirs that the call of the formula has."""
        return frozenset(self._own)

    def _check_expressible(self) -> None:
        """Raise Inexpressible if this version of theirs has no word for what the formula's version is told."""
        signature, formula = self.version_spec.signature, self.bond.formula
        names = dict.fromkeys([*self._own, *self._binding.attributes])
        for name in names:
            value = self._own[name] if name in self._own else self._of_ours(name)
            usual = None if formula is None else formula.signature.defaults.get(name)
            known = signature.attribute(name) or signature.input(name)
            if known is None and value is not None and not _same(value, usual):
                raise Inexpressible(f"{self.version_spec.operator} has no {name}")
        for name in self._inputs:
            if signature.input(name) is None and signature.attribute(name) is None:
                raise Inexpressible(f"{self.version_spec.operator} has no {name}")

    def arguments(self) -> list[Any]:
        """Return their inputs, in order; one that is an attribute of ours or of the formula is a constant.

        Raises Invalid for a type that theirs do not take, Inexpressible if an input is missing.
        """
        values: list[Any] = []
        ports: dict[str, Any] = dict(self.facts.ports)
        for port in self.version_spec.signature.inputs:
            value = self._inputs.get(port.name)
            if value is None and (number := self._constant_of(port)) is not None:
                value = self._call.constant(number, self._type_of(port))
                ports[port.name] = GivenPort(value.type, value.shape)
            if value is None and port.option == "single":
                raise Inexpressible(f"{self.version_spec.operator} needs {port.name}")
            values.append(self._counted(port, value))
        for attribute in self.version_spec.signature.attributes:
            is_needed = attribute.required and attribute.name not in self.version_spec.type_attributes
            if is_needed and self.value(attribute.name) is None:
                raise Inexpressible(f"{self.version_spec.operator} needs {attribute.name}")
        self.facts = replace(self.facts, ports=ports)
        self._check_types(values)
        return values

    def _counted(self, port: Port, value: Any) -> Any:
        """Return an input of whole numbers in a type that theirs take: a count or index is the same in each of them."""
        signature = self.version_spec.signature
        allowed = signature.types_of(port)
        if not isinstance(value, Value) or value.kind != "int" or port.type == signature.inputs[0].type:
            return value
        usual = "int64" if "int64" in allowed else next(iter(allowed), "")
        return value if value.type in allowed or kind_of(usual) != "int" else value.cast(usual)

    def _constant_of(self, port: Port) -> Any:
        """Return the value of an input that is an attribute elsewhere."""
        if port.name in self._own:
            return self._own[port.name]
        own = self._binding.inputs.get(port.name)
        if own is not None and self.bond.ours.signature.attribute(own) is not None:
            return self._call.attr(own)
        return self._of_ours(port.name)

    def _type_of(self, port: Port) -> str:
        allowed = self.version_spec.signature.types_of(port)
        first = next((v for v in self._inputs.values() if isinstance(v, Value)), None)
        if first is not None and first.type in allowed and port.type == self.version_spec.signature.inputs[0].type:
            return first.type
        return "int64" if "int64" in allowed else allowed[0]

    def _check_types(self, values: Sequence[Any]) -> None:
        bound: dict[str, str] = {}
        for port, value in zip(self.version_spec.signature.inputs, values, strict=True):
            for tensor in () if value is None else [value] if isinstance(value, Value) else value:
                allowed = self.version_spec.signature.types_of(port)
                if not isinstance(tensor, Value):
                    raise Inexpressible("no tensors")
                if tensor.type not in allowed or bound.setdefault(port.type, tensor.type) != tensor.type:
                    if tensor.type in allowed and port.option == "each":
                        continue
                    raise Invalid(f"{THEIRS}{port.name} is never {tensor.type}")

    def _of_ours(self, name: str) -> Any:
        """Return the value that the binding gives an attribute of theirs, None for none."""
        bound = self._binding.attributes.get(name)
        if bound is None:
            return None
        if bound.source is not None:
            if self.bond.ours.signature.input(bound.source) is not None and not self._call.sets(bound.source):
                return self._elements(bound.source, name)
            if self._defaults and not self._call.sets(bound.source):
                return None
        return self._in_theirwords_of(name, super()._attribute(name))

    def _in_theirwords_of(self, name: str, value: Any) -> Any:
        """Return a value of an attribute of theirs; a word as they write it. Raises Inexpressible if they lack it."""
        if not isinstance(value, str) or (self.bond.stated and self.version_spec is self.bond.formula):
            return value
        words = words_of(self.version_spec, name)
        if value in words or len(words) < _FEW:
            return value
        own = next((word for word in words if word.lower() == value.lower()), None)
        if own is None:
            raise Inexpressible(f"{self.version_spec.operator} has no {name}={value}")
        return own

    def _elements(self, port: str, name: str) -> Any:
        """Return the elements of an input of ours, as an attribute of theirs."""
        if self._call.facts.ports.get(port) is None:
            return None
        numbers = self._call.known(port).reshape(-1).tolist()
        attribute = self.version_spec.signature.attribute(name)
        if attribute is not None and not attribute.kind.endswith("s"):
            if len(numbers) != 1:
                raise Inexpressible(f"{self.version_spec.operator}: {name} is a single value")
            return numbers[0]
        return tuple(numbers)

    def value(self, name: str) -> Any:
        """Return the value of an attribute of theirs, their default if there is none."""
        value = self._own[name] if name in self._own else self._of_ours(name)
        if value is None and name in self._inputs and self.version_spec.signature.attribute(name) is not None:
            value = self._elements(str(self._binding.inputs[name]), name)
        return self.version_spec.signature.defaults.get(name) if value is None else value

    def _ask(self, question: Any) -> Any:
        kind, name = question
        match kind:
            case "attribute":
                return self.value(name)
            case "given":
                return self._own.get(name) is not None or self._of_ours(name) is not None
            case "clause":
                return name in self.version_spec.clause_ids
            case "silence":
                return self.version_spec.options.get(name)
        return self.facts.answer(question)

    def require(self, clause: str, condition: bool | Value) -> None:
        """State a condition of their clause."""
        self._call.require(f"{THEIRS}{clause}", condition)

    def open(self, silence: str, where: Value | None = None) -> str:
        """Return the chosen option of a silence of theirs."""
        return self._call.open(silence if silence == "flush" else f"{THEIRS}{silence}", where)

    def deferred(self, silence: str, where: Any = None) -> tuple[str, ...]:
        """Return the chosen option of a silence of theirs, none if they have no such silence."""
        if silence not in self.version_spec.options:
            return ()
        return (self.open(silence, where and where()),)

    def known(self, port: str | Value) -> Array:
        """Return the values of an input of theirs. Raises Asks."""
        if not isinstance(port, str):
            return self._call.known(port)
        own = self._binding.inputs.get(port)
        if own is not None and self._call.facts.ports.get(own) is not None:
            return self._call.known(own)
        result = self._constant_of(next(p for p in self.version_spec.signature.inputs if p.name == port))
        return np.asarray(result)

    def check(
        self, name: CheckName, outputs: Sequence[str] = (), arrays: Sequence[Value] = (), **settings: float | str
    ) -> None:
        """Add a test of whole outputs, under our names."""
        ours = [own for output in outputs if (own := self._binding.outputs.get(output)) is not None]
        if ours or not outputs:
            self._call.check(name, ours, arrays, **settings)


def words_of(version: VersionSpec, name: str) -> list[str]:
    """Return the words that a version's valid cases have for an attribute, its default among them."""
    bundles = [bundle[name] for bundle in version.bundles if name in bundle]
    edges = [edge.settings[name] for edge in version.edges.values() if name in edge.settings and not edge.rejected]
    values = [version.signature.defaults.get(name), *version.parameters.get(name, {}).values(), *bundles, *edges]
    return list(dict.fromkeys(v for v in values if isinstance(v, str) and not isinstance(v, Word)))


def _same(each: object, other: object) -> bool:
    return bool(np.array_equal(np.asarray(each), np.asarray(other))) if other is not None else False
