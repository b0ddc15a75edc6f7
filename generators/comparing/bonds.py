"""Bonds between two operator versions: what maps to what, and the answers of one by the other's rules.

A bond is stated under `as` in a spec file, or implied: two versions bound to the same formula, with the same reference,
or with the same name have ports and attributes that correspond.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...cases.batch import CheckName
from ...cases.elements import Array, element_type
from ...cases.errors import OpconformError
from ...cases.program import AttributeValue
from ...specs.loader import Library
from ...specs.model import Binding, BoundAttribute, Port, Signature, Spec, VersionSpec, Word
from ..arithmetic.binding import Bound
from ..arithmetic.graph import Graph, Value, exact, lifted
from ..arithmetic.tape import Asks, Call, Facts, Invalid, Recording, Reference, record
from ..arithmetic.tape import Port as GivenPort
from ..primitives.errors import kind_of
from ..families import families, reference_of
from ..parameters import plain_text
from .situations import Inexpressible

THEIRS = "="
"""Begins the name of a clause, a silence or a type of the other version; no id has it."""


@dataclass(frozen=True)
class Bond:
    """Two operator versions, and how a call of ours is one of theirs.

    `binding`: their names with ours; an attribute of theirs may be the value of an input of ours, and the reverse.
    `stated`: under `as`; else it is implied. `why`: its source, in words. `library`: the specs of formulas.
    """

    ours: VersionSpec
    theirs: VersionSpec
    our_spec: Spec
    their_spec: Spec
    binding: Binding
    why: str
    stated: bool = True
    formula: VersionSpec | None = None

    @functools.cached_property
    def outputs(self) -> Mapping[str, str]:
        """Our outputs that theirs are bound to, by their names, in their order."""
        known = {port.name for port in self.theirs.signature.outputs}
        return {name: own for name, own in self.binding.outputs.items() if own is not None and name in known}

    @functools.cached_property
    def inputs(self) -> Mapping[str, str]:
        """Our inputs that theirs are bound to, by their names."""
        known = {port.name for port in self.theirs.signature.inputs}
        return {name: own for name, own in self.binding.inputs.items() if own is not None and name in known}

    @functools.cached_property
    def attributes(self) -> Mapping[str, BoundAttribute]:
        """Their attributes with ours, or constants."""
        signature = self.theirs.signature
        return {name: one for name, one in self.binding.attributes.items() if signature.attribute(name) is not None}

    @functools.cached_property
    def only_ours(self) -> tuple[str, ...]:
        """Our attributes and inputs that no name of theirs is bound to; a function under `by` may read them."""
        bound = {*self.inputs.values(), *(one.source for one in self.binding.attributes.values())}
        return tuple(name for name in _names(self.ours) if name not in bound)

    @functools.cached_property
    def only_theirs(self) -> tuple[str, ...]:
        """Their attributes and inputs that are bound to none of ours."""
        bound = {*self.inputs, *(name for name, one in self.attributes.items() if one.source is not None)}
        return tuple(name for name in _names(self.theirs) if name not in bound)


def _names(version: VersionSpec) -> Iterator[str]:
    yield from dict.fromkeys(
        [*(attribute.name for attribute in version.signature.attributes), *(p.name for p in version.signature.inputs)]
    )


def bond(library: Library, one: str, other: str) -> Bond | None:
    """Return the bond of two operator versions, in whichever direction one is stated, else implied; None without any.

    Raises OpconformError for names of no version.
    """
    (spec, key), (other_spec, other_key) = library.operator_version(one), library.operator_version(other)
    first, second = (spec, spec.version(key)), (other_spec, other_spec.version(other_key))
    for (our_spec, ours), (their_spec, theirs) in ((first, second), (second, first)):
        binding = ours.binding
        if binding is not None and binding.operator == str(their_spec.operator):
            formula = library.spec(binding.operator).version(binding.version)
            return Bond(ours, theirs, our_spec, their_spec, binding, f"`as` of {ours.operator}", formula=formula)
    return _implied(second, first)


def _implied(first: tuple[Spec, VersionSpec], second: tuple[Spec, VersionSpec]) -> Bond | None:
    (our_spec, ours), (their_spec, theirs) = first, second
    a, b = ours.binding, theirs.binding
    named = our_spec.name.lower() == their_spec.name.lower()
    if a is not None and b is not None and a.operator == b.operator and (named or not (a.by or b.by)):
        binding, why = _composed(ours, theirs, a, b), f"both are bound to {a.operator}"
    elif a is None and b is None and _reference(our_spec) == _reference(their_spec):
        binding, why = _by_name(ours, theirs), f"one formula, {'.'.join(_reference(our_spec))}"
    elif named:
        binding, why = _by_name(ours, theirs), "one name, but formulas of their own"
    else:
        return None
    return Bond(ours, theirs, our_spec, their_spec, binding, why, stated=False)


def _reference(spec: Spec) -> tuple[str, str]:
    return spec.family, spec.function


def _composed(ours: VersionSpec, theirs: VersionSpec, a: Binding, b: Binding) -> Binding:
    """Return the binding of two versions through the names of a third one, and by names for what it leaves open."""
    named = _by_name(ours, theirs)
    inputs = {own: a.inputs.get(name) for name, own in b.inputs.items() if own is not None}
    outputs = {own: a.outputs.get(name) for name, own in b.outputs.items() if own is not None}
    attributes: dict[str, BoundAttribute] = {}
    for name, theirs_bound in b.attributes.items():
        ours_bound = a.attributes.get(name)
        if theirs_bound.source is not None and ours_bound is not None and ours_bound.source is not None:
            back = {_text(word): own for own, word in theirs_bound.words.items()}
            through = ours_bound.words or {word: word for word in back}
            words = {own: back.get(_text(word), word) for own, word in through.items()}
            attributes[theirs_bound.source] = BoundAttribute(ours_bound.source, None, words)
    return replace(
        named,
        inputs={**named.inputs, **inputs},
        outputs={**named.outputs, **outputs},
        attributes={**named.attributes, **attributes},
    )


def _by_name(ours: VersionSpec, theirs: VersionSpec) -> Binding:
    """Return a binding of ports by name or position, of attributes by name; some are inputs of the other version."""
    our_attributes = {_role(a.name): a.name for a in ours.signature.attributes}
    our_inputs = {port.name for port in ours.signature.inputs}
    attributes = {}
    for attribute in theirs.signature.attributes:
        name = attribute.name
        own = our_attributes.get(_role(name)) or (name if name in our_inputs else None)
        if own is not None:
            attributes[attribute.name] = BoundAttribute(own)
    taken = {one.source for one in attributes.values()}
    inputs = dict(_positions(theirs.signature.inputs, [p for p in ours.signature.inputs if p.name not in taken]))
    for port in theirs.signature.inputs:
        if inputs[port.name] is None and _role(port.name) in our_attributes:
            inputs[port.name] = our_attributes[_role(port.name)]
    outputs = dict(_positions(theirs.signature.outputs, ours.signature.outputs))
    operator = f"{theirs.operator.standard}/{theirs.operator.name}"
    none: frozenset[str] = frozenset()
    return Binding(operator, theirs.operator.version, inputs, outputs, attributes, {}, {}, none)


def _role(name: str) -> str:
    """Return a name without what standards write differently: `blocksize` and `block_size` are the same."""
    return name.replace("_", "").replace("-", "").lower()


def _positions(theirs: Sequence[Port], ours: Sequence[Port]) -> Iterator[tuple[str, str | None]]:
    """Yield their ports with ours of the same name, else with the next one that has no namesake."""
    names, own_names = {port.name for port in theirs}, {port.name for port in ours}
    free = iter([port.name for port in ours if port.name not in names])
    for port in theirs:
        yield port.name, port.name if port.name in own_names else next(free, None)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# One call by the other's rules


_NO_ANSWER = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a formula raises for a call that it was not written for: one whose clauses are not required."""


@dataclass(frozen=True)
class TheirCall:
    """A call of theirs that one of ours amounts to: its attributes, and its inputs with lanes first.

    `prepared`: the attributes that the function under `by` sets.
    """

    attributes: Mapping[str, AttributeValue]
    inputs: Mapping[str, tuple[Array, ...] | None]
    prepared: frozenset[str] = frozenset()


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
    stated = {source.attribute for source in version.types_from.values()}
    return name not in stated and not _same(c.attr(name), version.signature.defaults.get(name))


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
    return TheirCall(attributes, inputs, frozenset(attributes.keys() & seen.call.told))


def _plain(array: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(array, (len(array) if array.ndim > len(shape) else 1, *shape))


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
    def told(self) -> frozenset[str]:
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
            if attribute.required and self.value(attribute.name) is None and not self._is_of_type(attribute.name):
                raise Inexpressible(f"{self.version_spec.operator} needs {attribute.name}")
        self.facts = replace(self.facts, ports=ports)
        self._check_types(values)
        return values

    def _counted(self, port: Port, value: Any) -> Any:
        """Return an input of whole numbers in a type that theirs take: a count or index is the same in each of them."""
        signature = self.version_spec.signature
        allowed = signature.types.get(port.type, (port.type,))
        if not isinstance(value, Value) or value.kind != "int" or port.type == signature.inputs[0].type:
            return value
        usual = "int64" if "int64" in allowed else next(iter(allowed), "")
        return value if value.type in allowed or kind_of(usual) != "int" else value.cast(usual)

    def _is_of_type(self, name: str) -> bool:
        return any(source.attribute == name for source in self.version_spec.types_from.values())

    def _constant_of(self, port: Port) -> Any:
        """Return the value of an input that is an attribute elsewhere."""
        if port.name in self._own:
            return self._own[port.name]
        own = self._binding.inputs.get(port.name)
        if own is not None and self.bond.ours.signature.attribute(own) is not None:
            return self._call.attr(own)
        return self._of_ours(port.name)

    def _type_of(self, port: Port) -> str:
        allowed = self.version_spec.signature.types.get(port.type, (port.type,))
        first = next((v for v in self._inputs.values() if isinstance(v, Value)), None)
        if first is not None and first.type in allowed and port.type == self.version_spec.signature.inputs[0].type:
            return first.type
        return "int64" if "int64" in allowed else allowed[0]

    def _check_types(self, values: Sequence[Any]) -> None:
        bound: dict[str, str] = {}
        for port, value in zip(self.version_spec.signature.inputs, values, strict=True):
            for tensor in () if value is None else [value] if isinstance(value, Value) else value:
                allowed = self.version_spec.signature.types.get(port.type, (port.type,))
                if not isinstance(tensor, Value) or any("(" in text for text in allowed):
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
        return self._in_their_words(name, super()._attribute(name))

    def _in_their_words(self, name: str, value: Any) -> Any:
        """Return a value of an attribute of theirs; a word as they write it. Raises Inexpressible if they lack it."""
        words = _words(self.version_spec, name)
        if not isinstance(value, str) or not words or value in words:
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
        found = self._constant_of(next(p for p in self.version_spec.signature.inputs if p.name == port))
        return np.asarray(found)

    def check(
        self, name: CheckName, outputs: Sequence[str] = (), arrays: Sequence[Value] = (), **settings: float | str
    ) -> None:
        """Add a test of whole outputs, under our names."""
        ours = [own for output in outputs if (own := self._binding.outputs.get(output)) is not None]
        if ours or not outputs:
            self._call.check(name, ours, arrays, **settings)


def _words(version: VersionSpec, name: str) -> list[str]:
    """Return the words that a version's plan tests for an attribute, its default among them."""
    attribute = version.signature.attribute(name)
    default = None if attribute is None else attribute.default
    levels = [*version.parameters.get(name, {}).values(), default]
    return [level for level in levels if isinstance(level, str) and not isinstance(level, Word)]


def _same(one: object, other: object) -> bool:
    return bool(np.array_equal(np.asarray(one), np.asarray(other))) if other is not None else False


# Their calls as ours


@dataclass(frozen=True)
class OurCall:
    """A call of ours by its facts and its inputs, lanes first, with the id of the planned case that it is, or means.

    `clauses`: those that the case tests, if it is ours. `mended`: what makes it valid, if it is invalid.
    """

    case: str
    facts: Facts
    arrays: tuple[Array, ...]
    elements: int = 0
    clauses: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()


_MOST_TRIED = 400
_MOST_ASKED = 24
"""Up to so many candidates whose attributes differ are compared by what their formulas record."""
_UNSAID = 1_000
"""The place of a difference of two calls that may mean the same: one says what the other leaves out."""


def as_ours(bond: Bond, case: str, facts: Facts, arrays: Sequence[Array]) -> OurCall:
    """Return the call of ours that amounts to one of theirs. Raises Inexpressible.

    Candidates have the values of the binding the other way round, else values that the spec tests; the first one that
    amounts to the same call of theirs is returned.
    """
    given = _by_port(facts, arrays)
    wanted = TheirCall(
        {name: value for name, value in facts.attributes.items() if value is not None},
        {name: None if several is None else tuple(several) for name, several in _lifted(facts, given).items()},
    )
    inputs = [list(_input_candidates(bond, port, given, facts)) for port in bond.ours.signature.inputs]
    own = set(bond.only_ours)
    names = [attribute.name for attribute in bond.ours.signature.attributes]
    names.sort(key=own.__contains__)  # the last ones are tried in all combinations first
    attributes = [list(_attribute_candidates(bond, name, wanted, facts)) for name in names]
    why, far, asked = "", -1, 0
    for chosen in itertools.islice(itertools.product(*attributes, *inputs), _MOST_TRIED):
        values = dict(zip(names, chosen, strict=False))
        ports = dict(zip((p.name for p in bond.ours.signature.inputs), chosen[len(attributes) :], strict=True))
        try:
            call = _call(bond, case, ports, values, facts)
            found = their_call(bond, call.facts, call.arrays)
            lost = _lost(found, wanted, bond)
        except (Inexpressible, OpconformError) as error:
            why = why or (str(error) if isinstance(error, Inexpressible) else "")
            continue
        if lost is None:
            return call
        if lost[0] >= len(wanted.inputs) and asked < _MOST_ASKED:
            asked += 1
            if _is_implied(bond, facts, arrays, found):
                return call
        if lost[0] > far:  # the nearest call says best what is lacking
            far, why = lost[0], f"{bond.ours.operator} has no word for {lost[1]}"
    if not why:
        raise OpconformError(f"{case} is no call of {bond.ours.operator}")
    raise Inexpressible(why)


def _lifted(facts: Facts, given: Mapping[str, list[Array] | None]) -> dict[str, list[Array] | None]:
    return {
        name: None
        if several is None
        else [lifted(array, kind) for array, kind in zip(several, _kinds(facts.ports[name]), strict=True)]
        for name, several in given.items()
    }


def _kinds(ports: GivenPort | tuple[GivenPort, ...] | None) -> list[str]:
    return [] if ports is None else [ports.type] if isinstance(ports, GivenPort) else [one.type for one in ports]


def _is_implied(bond: Bond, facts: Facts, arrays: Sequence[Array], found: TheirCall) -> bool:
    """Return whether a call of theirs has the same formula as one with what `found` says besides."""
    stated = {source.attribute for source in bond.theirs.types_from.values()}
    kept = {name: value for name, value in facts.attributes.items() if name in stated}
    other = replace(facts, attributes={**found.attributes, **kept}, given=frozenset(found.attributes) | kept.keys())
    reference = reference_of(bond.their_spec, bond.theirs)
    try:
        one, two = (recorded(reference, said, arrays) for said in (facts, other))
    except OpconformError:
        return False
    return one.graph.content == two.graph.content and one.forks == two.forks


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


def _by_port(facts: Facts, arrays: Sequence[Array]) -> dict[str, list[Array] | None]:
    given: dict[str, list[Array] | None] = {}
    left = list(arrays)
    for name, ports in facts.ports.items():
        count = 0 if ports is None else 1 if isinstance(ports, GivenPort) else len(ports)
        given[name], left = None if ports is None else left[:count], left[count:]
    return given


def _input_candidates(
    bond: Bond, port: Port, given: Mapping[str, list[Array] | None], facts: Facts
) -> Iterator[list[tuple[str, Array]] | None]:
    """Yield tensors for an input of ours, each with its type: as theirs has it, or what is an attribute there."""
    theirs = [name for name, own in bond.binding.inputs.items() if own == port.name and name in facts.ports]
    allowed = bond.ours.signature.types.get(port.type, (port.type,))
    if theirs:
        several, ports = given[theirs[0]], facts.ports[theirs[0]]
        if several is None or ports is None:
            yield None
            return
        plain = [
            _counted(bond.ours.signature, port, kind, array)
            for kind, array in zip(_kinds(ports), several, strict=True)
        ]
        yield plain
        if len(several) == 1 and several[0][0, ...].size == 1 and port is not bond.ours.signature.inputs[0]:
            yield [(plain[0][0], plain[0][1].reshape(1))]
        if bond.ours.signature.attribute(port.name) is not None:
            yield None
        return
    number = facts.attributes.get(port.name)
    if number is None:
        number = next(
            (facts.attributes.get(name) for name, one in bond.binding.attributes.items() if one.source == port.name),
            None,
        )
    if isinstance(number, int | float | tuple) and not isinstance(number, bool):
        type_ = "int64" if "int64" in allowed else allowed[0]
        yield [(type_, np.asarray(number, dtype=np.float32 if "float" in type_ else np.int64)[np.newaxis, ...])]
    if port.option != "single" or not isinstance(number, int | float | tuple):
        yield None


def _counted(signature: Signature, port: Port, kind: str, array: Array) -> tuple[str, Array]:
    """Return an input of whole numbers in a type that a signature takes: a count or index is the same in each."""
    allowed = signature.types.get(port.type, (port.type,))
    if kind in allowed or kind_of(kind) != "int" or port.type == signature.inputs[0].type:
        return kind, array
    usual = "int64" if "int64" in allowed else allowed[0]
    if kind_of(usual) != "int":
        return kind, array
    cast = array.astype(element_type(usual).dtype)
    return (usual, cast) if np.array_equal(cast, array) else (kind, array)


def _attribute_candidates(bond: Bond, name: str, wanted: TheirCall, facts: Facts) -> Iterator[Any]:
    """Yield values for an attribute of ours, None for one left out."""
    attribute = bond.ours.signature.attribute(name)
    assert attribute is not None
    seen: list[Any] = []
    for value in _values_for(bond, name, attribute.kind, wanted, facts):
        if value is not None and attribute.kind in ("bool", "boolean") and value in (0, 1):
            value = bool(value)  # noqa: PLW2901 - the kind that this version has
        if any(_text(value) == _text(one) and type(value) is type(one) for one in seen):
            continue
        if value is None and attribute.required:
            continue
        seen.append(value)
        yield value


def _values_for(bond: Bond, name: str, kind: str, wanted: TheirCall, facts: Facts) -> Iterator[Any]:
    for letter, source in bond.ours.types_from.items():
        if source.attribute == name:
            for their_name, own in bond.outputs.items():
                type_ = facts.outputs.get(their_name)
                if type_ is not None and bond.ours.signature.letter(own) == letter:
                    yield source.names.get(type_, type_)
            yield None
            return
    bound = next(((n, one) for n, one in bond.binding.attributes.items() if one.source == name), None)
    if bound is not None:
        their_name, one = bound
        value = wanted.attributes.get(their_name)
        back = {_text(word): own for own, word in one.words.items()}
        if back or not isinstance(value, str):
            yield back.get(_text(value), None if back else value)
    levels = bond.ours.parameters.get(name, {}).values()
    same = next((v for other, v in wanted.attributes.items() if _role(other) == _role(name)), None)
    if isinstance(same, str):
        yield next((word for word in _words(bond.ours, name) if word.lower() == same.lower()), None)
    else:
        yield same
    if (tensors := wanted.inputs.get(name)) is not None and kind in ("ints", "s64s", "int", "s64", "i64s"):
        numbers = tuple(int(n) for n in tensors[0].reshape(-1))
        yield numbers if kind.endswith("s") else next(iter(numbers), None)
    yield None
    if kind.endswith("s"):
        rank = max(0, next((p for p in _first_rank(facts)), 0) - 2)
        for value in wanted.attributes.values():
            if isinstance(value, tuple) and len(value) == 2 * rank:
                yield value[:rank]
                yield value[rank:]
        yield (0,) * rank
        yield (1,) * rank
        return
    for level in levels:
        if isinstance(level, bool | int | float | str):
            yield level


def _first_rank(facts: Facts) -> Iterator[int]:
    for port in facts.ports.values():
        if isinstance(port, GivenPort):
            yield len(port.shape)


def _call(
    bond: Bond,
    case: str,
    ports: Mapping[str, list[tuple[str, Array]] | None],
    values: Mapping[str, Any],
    theirs: Facts,
) -> OurCall:
    """Return a call of ours. Raises Inexpressible for types that it does not take."""
    version, signature = bond.ours, bond.ours.signature
    types: dict[str, str] = {}
    for port in signature.inputs:
        for type_, _ in ports[port.name] or ():
            allowed = signature.types.get(port.type, (port.type,))
            if type_ not in allowed:
                raise Inexpressible(f"{version.operator}: {port.name} is never {type_}")
            if types.setdefault(port.type, type_) != type_ and port.option != "each":
                raise Inexpressible(f"{version.operator}: inputs of type {port.type} have one type")
        if ports[port.name] is None and port.option == "single" and not signature.attribute(port.name):
            raise Inexpressible(f"{version.operator} needs {port.name}")
    given = {name: value for name, value in values.items() if value is not None}
    outputs = {}
    back = {own: name for name, own in bond.outputs.items()}
    for port in signature.outputs:
        wanted = theirs.outputs.get(back.get(port.name, ""))
        source = version.types_from.get(port.type)
        named = {} if source is None else {text: type_ for type_, text in source.names.items()}
        if source is not None and source.attribute in given:
            text = str(given[source.attribute])
            types.setdefault(port.type, named.get(text, text))
        elif source is not None and (usual := source.usual(types)):
            types.setdefault(port.type, usual)
        allowed = signature.types.get(port.type, (port.type,))
        type_ = types.get(port.type) or (wanted if wanted in allowed else allowed[0])
        outputs[port.name] = type_ if wanted is not None else None
    floats = [type_ for several in ports.values() for type_, _ in several or ()]
    variadic = {port.name for port in signature.inputs if port.is_variadic}
    arrays = tuple(array for several in ports.values() for _, array in several or ())
    own = {
        name: None if several is None else _port(several, variadic=name in variadic) for name, several in ports.items()
    }
    facts = Facts(
        operator=f"{version.operator.standard}/{version.operator.name}",
        version=version.operator.version,
        ports=own,
        outputs=outputs,
        attributes={**signature.defaults, **given},
        given=frozenset(given),
        silences=version.options,
        clauses=version.clause_ids,
        precision=version.budgets(floats),
    )
    return OurCall(case, facts, arrays, sum(array.size for array in arrays))


def _port(several: Sequence[tuple[str, Array]], *, variadic: bool) -> GivenPort | tuple[GivenPort, ...]:
    ports = tuple(GivenPort(type_, array.shape[1:]) for type_, array in several)
    return ports if variadic else ports[0]


def _lost(found: TheirCall, wanted: TheirCall, bond: Bond) -> tuple[int, str] | None:
    """Return the first part of a call of theirs that another one lacks, and its index; types that are stated don't count.

    The inputs come first, then the attributes.
    """
    stated = {source.attribute for source in bond.theirs.types_from.values()} | bond.theirs.unused.keys()
    ports = dict.fromkeys([*wanted.inputs, *found.inputs])
    for index, name in enumerate(ports):
        mine, its = found.inputs.get(name), wanted.inputs.get(name)
        if (mine is None) != (its is None) or len(mine or ()) != len(its or ()):
            return index, name if its is not None else f"a missing {name}"
        if any(not _equal(a, b) for a, b in zip(mine or (), its or (), strict=True)):
            return index, f"{name} of shape {', '.join(map(_dims, its or ()))}"
    attributes, unsaid = dict.fromkeys([*wanted.attributes, *found.attributes]), None
    for index, name in enumerate(attributes, len(ports)):
        one, other = found.attributes.get(name), wanted.attributes.get(name)
        if name in stated:
            continue
        if (one is None) != (other is None):
            unsaid = unsaid or (_UNSAID, f"a missing {name}" if other is None else f"{name}={plain_text(other)}")
        elif not _alike(one, other):
            return index, f"{name}={plain_text(other)}"
    return unsaid


def _dims(array: Array) -> str:
    return "x".join(map(str, array.shape[1:])) or "scalar"


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    try:
        return bool(np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True))
    except TypeError:
        return bool(one == other)


def _equal(one: Array, other: Array) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype == object or other.dtype.kind not in "fiub" or one.dtype.kind not in "fiub":
        return list(map(str, one.reshape(-1))) == list(map(str, other.reshape(-1)))
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f" and other.dtype.kind == "f"))
