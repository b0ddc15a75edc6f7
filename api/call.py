"""One call of an operator version with a user's values: checked against the signature, and ready for its formula."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from ..cases.elements import Array, element_types, numbered, type_of
from ..cases.errors import OpconformError, did_you_mean
from ..cases.program import Attribute, Input, Output, Program, Structure, Tensor, parse_type
from ..generators.arithmetic.recording import Recording
from ..generators.arithmetic.tape import Asks, Facts, Port, record
from ..generators.families import reference_of
from ..generators.parameters import usual_outputs
from ..generators.source import GeneratedCases
from ..specs.loader import Library
from ..specs.model import AttributeSignature, Spec, VersionSpec, expand, held, holder
from ..specs.model import Port as Signed
from ..specs.native_bodies import results_of
from .values import attribute_value, described, fits, prepared, tensors_of

_LETTER = re.compile(r"[A-Za-z_]\w*")
NO_TYPES: Mapping[str, str] = MappingProxyType({})

Values: TypeAlias = list[tuple[str, list[Array], Structure]]
"""The values of an input, each with its type, tensors and structure; several of a variadic one."""


@functools.cache
def source() -> GeneratedCases:
    """Return the cases of this package's spec files, which are read once in a process."""
    return GeneratedCases()


def library() -> Library:
    """Return this package's spec files."""
    return source().library


def version_of(operator: str) -> tuple[Spec, VersionSpec]:
    """Return the spec and the version of `onnx/Softmax-13`. Raises ValueError, which names similar operators."""
    try:
        spec, key = library().operator_version(operator)
    except OpconformError as error:
        raise ValueError(str(error)) from None
    return spec, spec.version(key)


@dataclass(frozen=True)
class Call:
    """A checked call: `ports` has the values of each input by name, in the signature's order; None for one left out.

    `outputs` has the requested outputs with their types, None for one that is left out. `known` has the types of
    letters.
    """

    spec: Spec
    version: VersionSpec
    ports: Mapping[str, Values | None]
    attributes: tuple[Attribute, ...]
    outputs: Mapping[str, str | None]
    captured: Mapping[str, tuple[list[Array], Structure]]

    @property
    def operator(self) -> str:
        """The operator version's name."""
        return str(self.version.operator)

    @functools.cached_property
    def arrays(self) -> list[Array]:
        """All tensors, in the order of the formula's arguments."""
        tensors = [array for several in self.ports.values() for _, arrays, _ in several or () for array in arrays]
        return tensors + [array for arrays, _ in self.captured.values() for array in arrays]

    @functools.cached_property
    def recording(self) -> Recording:
        """The formula. Raises ValueError for a call that is invalid whatever its values, or has no formula."""
        known: dict[str, Array] = {}
        while True:
            try:
                recording = record(reference_of(self.spec, self.version), self._facts, known)
            except Asks as asks:
                if asks.port in known:
                    raise ValueError(f"{self.operator}: its formula asks for {asks.port} again") from None
                several = self.ports.get(asks.port)
                arrays = self.captured[asks.port][0] if several is None else several[0][1]
                known[asks.port] = arrays[0]
            except (OpconformError, ValueError) as error:
                raise ValueError(f"{self.operator}: {error}") from None
            else:
                if recording.invalid_clause:
                    self.refuse(recording.invalid_clause)
                return recording

    def check_values(self, recording: Recording, arrays: Sequence[Array]) -> None:
        """Raise ValueError if values break a clause."""
        for clause, broken in recording.invalid(arrays, 1).items():
            if broken.any():
                self.refuse(clause)

    def refuse(self, clause: str) -> NoReturn:
        """Raise ValueError for a broken clause."""
        known = self.version.clauses.get(clause)
        words = f"{known.text} ({clause}; {known.source})" if known else clause
        raise ValueError(f"{self.operator}: the inputs are invalid: {words}")

    @property
    def program(self) -> Program:
        """The call as a program, for the names of outputs in texts."""
        inputs = []
        for name, several in self.ports.items():
            for type_, arrays, structure in (several or ())[:1]:
                plain = structure.kind == "tensor"
                shape = arrays[0].shape if plain else ()
                inputs.append(Input(name, type_, shape, structure=None if plain else structure))
        outputs = tuple(None if type_ is None else Output(name, type_, None) for name, type_ in self.outputs.items())
        return Program(self.version.operator, self.attributes, tuple(inputs), outputs)

    @property
    def _facts(self) -> Facts:
        version, signature = self.version, self.version.signature
        given = {attribute.name: attribute.value for attribute in self.attributes}
        variadic = {port.name for port in signature.inputs if port.is_variadic}
        structures: dict[str, Structure | tuple[Structure, ...]] = {}
        for name, several in self.ports.items():
            made = tuple(structure for _, _, structure in several or ())
            if any(structure.kind != "tensor" for structure in made):
                structures[name] = made if name in variadic else made[0]
        structures |= {name: s for name, (_, s) in self.captured.items() if s.kind != "tensor"}
        return Facts(
            operator=self.spec.operator,
            version=version.operator.version,
            ports={
                name: None if several is None else _port([(a, s) for _, a, s in several], name in variadic)
                for name, several in self.ports.items()
            },
            outputs=dict(self.outputs),
            attributes={**signature.defaults, **given},
            given=frozenset(given),
            silences=version.options,
            clauses=version.clause_ids,
            precision=version.budgets([type_of(array) for array in self.arrays]),
            captured={name: _port([value], variadic=False) for name, value in self.captured.items()},
            structures=structures,
        )


def _port(several: Sequence[tuple[list[Array], Structure]], variadic: bool) -> Port | tuple[Port, ...]:
    tensors = tuple(Port(type_of(array), array.shape) for arrays, _ in several for array in arrays)
    return tensors[0] if not variadic and several[0][1].kind == "tensor" else tensors


def call(
    operator: str,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, Any],
    *,
    outputs: int | Iterable[str] | None = None,
    types: Mapping[str, str] = NO_TYPES,
    answered: Mapping[str, str] = NO_TYPES,
    captured: Mapping[str, Any] = NO_TYPES,
) -> Call:
    """Return a call that the operator version's signature allows.

    `outputs`: the requested ones, by name, or the number of those of a variadic port. `types`: of letters that neither
    inputs nor attributes show. `answered`: the types of outputs in an answer, for those that nothing else shows.
    Raises ValueError.
    """
    spec, version = version_of(operator)
    return _Reader(spec, version, dict(types)).call(inputs, attributes, outputs, answered, captured)


class _Reader:
    """Reads the values of one call; collects the types of letters."""

    def __init__(self, spec: Spec, version: VersionSpec, types: dict[str, str]) -> None:
        self._spec, self._version, self._signature = spec, version, version.signature
        self._types = types
        for letter in types:
            if letter not in self._signature.types:
                listed = ", ".join(self._signature.types) or "none"
                raise self._error(f"no type letter is called {letter!r}; there is {listed}")

    def call(
        self,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        outputs: int | Iterable[str] | None,
        answered: Mapping[str, str],
        captured: Mapping[str, Any],
    ) -> Call:
        """Return the call. Raises ValueError."""
        ports = self._ports(inputs)
        made = tuple(self._attributes(attributes, ports))
        around: dict[str, tuple[list[Array], Structure]] = {}
        for name, value in captured.items():
            outer = self._prepared(name, value)
            around[name] = tensors_of(type_of(outer) if isinstance(outer, np.ndarray) else "seq(float32)", outer)
        requested = dict(self._outputs(outputs, made, answered))
        return Call(self._spec, self._version, ports, made, requested, around)

    def _error(self, words: str) -> ValueError:
        return ValueError(f"{self._version.operator}: {words}")

    def _prepared(self, name: str, value: Any) -> Any:
        try:
            return prepared(value)
        except ValueError as error:
            raise self._error(f"input {name}: {error}") from None

    def _ports(self, inputs: Mapping[str, Any]) -> dict[str, Values | None]:
        names = [port.name for port in self._signature.inputs]
        for name in inputs:
            if name not in names:
                hint = did_you_mean(name, names) or f"; there is {', '.join(names) or 'none'}"
                raise self._error(f"no input is called {name!r}{hint}")
        values = {port.name: self._given(port, inputs) for port in self._signature.inputs}
        # a value such as an empty sequence has several types: the others show which one is meant
        listed = [(port, *entry) for port in self._signature.inputs for entry in values[port.name] or ()]
        types: dict[str, str] = {}
        for port, name, value in sorted(listed, key=lambda entry: _is_vague(entry[2])):
            types[name] = self._typed(port, name, value)
        return {
            name: None if several is None else [(types[own], *tensors_of(types[own], value)) for own, value in several]
            for name, several in values.items()
        }

    def _given(self, port: Signed, inputs: Mapping[str, Any]) -> list[tuple[str, Any]] | None:
        """Return the prepared values of a port, with names for texts; None if it is left out."""
        value = inputs.get(port.name)
        if port.is_variadic:
            return [(name, self._prepared(name, entry)) for name, entry in self._several(port, value)]
        if value is None and not (port.name in inputs and self._allows_none(port)):
            if port.option == "single" and self._signature.attribute(port.name) is None:
                raise self._error(f"expected the input {port.name} ({self._allowed_text(port)}); it is left out")
            return None
        return [(port.name, self._prepared(port.name, value))]

    def _allows_none(self, port: Signed) -> bool:
        """Return whether None is a value of a required port: an empty optional."""
        return port.option == "single" and any(type_.startswith("optional(") for type_ in self._allowed(port))

    def _several(self, port: Signed, value: Any) -> list[tuple[str, Any]]:
        if value is not None and not isinstance(value, (list, tuple)):
            raise self._error(f"input {port.name}: expected a list of tensors; read {type(value).__name__}")
        entries = list(value or ())
        if len(entries) < port.minimum:
            raise self._error(f"input {port.name}: expected at least {port.minimum} tensors; read {len(entries)}")
        return [(f"{port.name}[{index}]", entry) for index, entry in enumerate(entries)]

    def _typed(self, port: Signed, name: str, value: Any) -> str:
        """Return the type of a prepared value, and take the types of letters from it."""
        fitting = [type_ for type_ in self._allowed(port) if fits(parse_type(type_), value)]
        known = (type_ for type_ in fitting if port.option == "each" or self._bind(port.type, type_, dict(self._types)))
        type_ = next(known, None)
        if type_ is None:
            raise self._error(f"input {name}: expected {self._allowed_text(port)}; read {described(value)}")
        if port.option != "each":
            self._bind(port.type, type_, self._types)
        return type_

    def _allowed(self, port: Signed) -> tuple[str, ...]:
        word = port.type
        if word in self._signature.types:
            return self._signature.types[word]
        wrap, inner, end = word.rpartition("(")[0], word.rpartition("(")[2].rstrip(")"), word.count(")")
        if inner in self._signature.types:
            return tuple(f"{wrap}({type_}{')' * end}" for type_ in self._signature.types[inner])
        try:
            return expand(word)
        except OpconformError:
            return (word,)

    def _allowed_text(self, port: Signed) -> str:
        allowed = self._allowed(port)
        bound = self._types.get(port.type)
        if bound and port.option != "each":
            return f"{bound}, the type of {port.type}"
        return ", ".join(allowed[:12]) + (", …" if len(allowed) > 12 else "")

    def _bind(self, pattern: str, type_: str, types: dict[str, str]) -> bool:
        """Take the type of a letter, and of the letter that it follows from; return whether all agree."""
        signature = self._signature
        if pattern in signature.types:
            if types.setdefault(pattern, type_) != type_:
                return False
            tie = signature.ties.get(pattern)
            return tie is None or self._bind(tie, type_, types)
        outer, inner = re.fullmatch(r"(\w+)\((.+)\)", pattern), re.fullmatch(r"(\w+)\((.+)\)", type_)
        if outer is not None and inner is not None and outer[1] == inner[1]:
            return self._bind(outer[2], inner[2], types)
        return True

    def _attributes(self, attributes: Mapping[str, Any], ports: Mapping[str, object]) -> Iterator[Attribute]:
        signatures = {signature.name: signature for signature in self._signature.attributes}
        for name in attributes:
            if name not in signatures:
                hint = did_you_mean(name, signatures) or f"; there is {', '.join(signatures) or 'none'}"
                raise self._error(f"no attribute is called {name!r}{hint}")
        for name, signature in signatures.items():
            value = attributes.get(name)
            if value is None:
                if signature.required and ports.get(name) is None:
                    raise self._error(f"expected the attribute {name}; it is left out")
                continue
            yield self._attribute(signature, value)

    def _attribute(self, signature: AttributeSignature, value: Any) -> Attribute:
        if signature.kind == "int" and isinstance(value, str) and value in element_types() and self._states(signature):
            value = element_types()[value].onnx
        try:
            made = attribute_value(signature, value)
        except ValueError as error:
            raise self._error(str(error)) from None
        return Attribute(signature.name, signature.kind, made)  # type: ignore[arg-type]  # audited kinds

    def _states(self, signature: AttributeSignature) -> bool:
        return any(stated.attribute == signature.name for stated in self._version.types_from.values())

    def _from_attributes(self, attributes: Sequence[Attribute]) -> None:
        """Take the types that attributes state."""
        given = {attribute.name: attribute.value for attribute in attributes}
        for letter, stated in self._version.types_from.items():
            value = given.get(stated.attribute, self._signature.defaults.get(stated.attribute))
            type_ = stated.usual(self._types) if value is None else _stated(value, stated.names)
            if type_ is None and isinstance(value, str):
                raise self._error(f"attribute {stated.attribute}: expected a type; read {value!r}")
            if type_ is not None:
                self._types.setdefault(letter, type_)

    def _outputs(
        self, requested: int | Iterable[str] | None, attributes: Sequence[Attribute], answered: Mapping[str, str]
    ) -> Iterator[tuple[str, str | None]]:
        self._from_attributes(attributes)
        ports = self._signature.outputs
        (*_, last) = ports or (None,)
        if last is not None and last.is_variadic:
            yield from self._variadic(last, requested, attributes, answered)
            return
        if isinstance(requested, int):
            wanted: Sequence[str] = [port.name for port in ports[:requested]]
        else:
            wanted = tuple(requested) if requested is not None else usual_outputs(self._version)
        for name in wanted:
            if self._signature.output(name) is None:
                raise self._error(f"no output is called {name!r}; there is {', '.join(p.name for p in ports)}")
        last_wanted = max((index for index, port in enumerate(ports) if port.name in wanted), default=-1)
        for port in ports[: last_wanted + 1]:
            yield port.name, self._output_type(port, port.name, answered) if port.name in wanted else None

    def _variadic(
        self,
        last: Signed,
        requested: int | Iterable[str] | None,
        attributes: Sequence[Attribute],
        answered: Mapping[str, str],
    ) -> Iterator[tuple[str, str | None]]:
        before = self._signature.outputs[:-1]
        made = results_of(attributes)
        if requested is None:
            many = len(answered) or len(made) or last.minimum
        else:
            many = requested if isinstance(requested, int) else len(list(requested))
        for port in before:
            yield port.name, self._output_type(port, port.name, answered)
        own = made[-(many - len(before)) :] if made and many <= len(made) else ()
        for index in range(many - len(before)):
            name = f"{last.name}_{index}"
            if own:
                allowed, element = self._allowed(last), own[index].type
                wrapped = f"seq({element})"
                yield name, wrapped if wrapped in allowed and element not in allowed else element
            else:
                yield name, self._output_type(last, name, answered)

    def _output_type(self, port: Signed, name: str, answered: Mapping[str, str]) -> str:
        word = self._signature.ties.get(port.type, port.type)
        resolved = _LETTER.sub(lambda match: self._types.get(match[0], match[0]), word)
        inside = holder(resolved)
        resolved = held(inside) if inside else resolved
        left = [match for match in _LETTER.findall(resolved) if match in self._signature.types]
        allowed = self._allowed(port)
        if not left:
            if resolved not in allowed and port.type in self._signature.types:
                raise self._error(f"output {name}: expected one of {', '.join(allowed[:12])}; it would be {resolved}")
            return resolved
        if name in answered:
            return answered[name]
        if len(allowed) == 1:
            return allowed[0]
        raise self._error(
            f"nothing shows the type of the output {name}; expected types={{{left[0]!r}: …}} with one of "
            f"{', '.join(allowed[:12])}"
        )


def _is_vague(value: Any) -> bool:
    return value is None or (isinstance(value, (list, dict)) and not value)


def _stated(value: Any, names: Mapping[str, str]) -> str | None:
    """Return the type that an attribute's value states: a number or a name, or the type of its own tensor."""
    if isinstance(value, Tensor):
        return value.type
    if isinstance(value, int):
        known = numbered(value)
        return known.name if known else None
    if not isinstance(value, str):
        return None
    by_name = {own: type_ for type_, own in names.items()}
    usual = {"FLOAT": "float32", "DOUBLE": "float64", "f32": "float32", "f16": "float16", "f64": "float64"}
    named = by_name.get(value) or usual.get(value) or value.lower()
    return named if named in element_types() or "(" in named else None
