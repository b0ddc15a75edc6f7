"""From a program and its run-time inputs back to the readings that the specs give it: a row that no plan wrote."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...cases.elements import Array, type_of
from ...cases.errors import CaseIdError, OpconformError
from ...cases.ids import CaseId
from ...cases.program import Program
from ...specs.loader import Library
from ...specs.model import Spec, Value, VersionSpec, Word
from ..expect import Reading
from ..fills import FIRST
from ..strategy.registry import family_of
from ..strategy.rows import Row, data_port, free_letters, text_of


class Refused(Exception):  # noqa: N818 - a refusal is an answer
    """The implementation does not answer: the input is invalid, or it has a defect that looks like that."""


@dataclass(frozen=True)
class Call:
    """A program with all its inputs, as an implementation sees it.

    `data` are the tensors of the first input of the signature; `others` those of the inputs beside it by name, None
    for one that an empty name leaves out; `fed` names those that come with each run.
    """

    spec: Spec
    version: VersionSpec
    attributes: Mapping[str, Value]
    data: tuple[Array, ...]
    others: Mapping[str, Array | None]
    fed: frozenset[str]
    program: Program

    @functools.cached_property
    def readings(self) -> tuple[Reading, ...]:
        """What the call may mean. Raises Refused where it is invalid."""
        return _readings(self)

    def with_attribute(self, name: str, value: Value) -> Call:
        """Return the call with an attribute set, or without it where the value is Word.ABSENT."""
        kept = {n: v for n, v in self.attributes.items() if n != name}
        return replace(self, attributes=kept if value is Word.ABSENT else {**kept, name: value})

    def with_input(self, name: str, array: Array) -> Call:
        """Return the call with another tensor for an input beside the data."""
        return replace(self, others={**self.others, name: array})

    def without_input(self, name: str) -> Call:
        """Return the call without an input beside the data."""
        return replace(self, others={n: a for n, a in self.others.items() if n != name})

    def with_data(self, data: Sequence[Array]) -> Call:
        """Return the call with other data tensors."""
        return replace(self, data=tuple(data))


def call_of(library: Library, program: Program, inputs: Sequence[Array]) -> Call:
    """Return the call that a program with the arrays of `program.feeds` is. Raises UnknownOperator."""
    spec, key = library.operator_version(str(program.operator))
    version = spec.version(key)
    fed = iter(inputs)
    arrays = [None if i is None else next(fed) if i.constant is None else i.array() for i in program.inputs]
    ports = version.signature.inputs
    if ports[0].is_variadic:
        data, others = [a for a in arrays if a is not None], {}
    else:
        data = [a for a in arrays[:1] if a is not None]
        others = {port.name: array for port, array in zip(ports[1:], arrays[1:], strict=False)}
    attributes = MappingProxyType({a.name: a.value for a in program.attributes})
    names = frozenset(i.name for i in program.feeds)
    return Call(spec, version, attributes, tuple(data), MappingProxyType(others), names, program)


def _readings(call: Call) -> tuple[Reading, ...]:
    _check(call)
    settings: dict[str, Value] = dict(call.attributes)
    own = family_of(call.spec).own
    for name, array in call.others.items():
        if array is None:
            settings[name] = Word.OMITTED
            continue
        settings[name] = tuple(int(v) for v in array.reshape(-1))
        rank = str(array.ndim)
        if rank not in own.get(f"{name}-rank", (rank,)):
            raise Refused(f"{name} has rank {rank}")
        if array.ndim != 1:
            settings[f"{name}-rank"] = rank
        if name in call.fed:
            settings[f"{name}-from"] = "graph-input"
    types = tuple(_type_of_letter(call, letter) for letter in free_letters(call.version))
    texts = tuple(sorted((name, str(text_of(value))) for name, value in settings.items()))
    case = CaseId(str(call.version.operator), types, tuple(a.shape for a in call.data), texts, FIRST)
    return _built(_Key(call.spec, call.version, case, tuple(sorted(settings.items(), key=lambda s: s[0]))))


@dataclass(frozen=True, eq=False)
class _Key:
    """A row by its id, which says all of it; the specs of one process are one library's."""

    spec: Spec
    version: VersionSpec
    case: CaseId
    settings: tuple[tuple[str, Value], ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.case == other.case and self.spec is other.spec

    def __hash__(self) -> int:
        return hash(self.case)


@functools.lru_cache(maxsize=4096)
def _built(key: _Key) -> tuple[Reading, ...]:
    family = family_of(key.spec)
    row = Row(key.spec, key.version, key.case, dict(key.settings), family.own)
    try:
        return family.build(row).readings
    except CaseIdError as error:
        raise Refused(str(error)) from None


def _type_of_letter(call: Call, letter: str) -> str:
    signature = call.version.signature
    for port in signature.inputs:
        array = call.data[0] if port is data_port(call.version) else call.others.get(port.name)
        if signature.letter(port.name) == letter and array is not None:
            return type_of(array)
    return signature.types[letter][0]


def _check(call: Call) -> None:
    """Raise Refused for what the signature excludes."""
    signature = call.version.signature
    known = {attribute.name for attribute in signature.attributes}
    if unknown := call.attributes.keys() - known:
        raise Refused(f"{call.version.operator} has no attribute {', '.join(sorted(unknown))}")
    if missing := [a.name for a in signature.attributes if a.required and a.name not in call.attributes]:
        raise Refused(f"{call.version.operator} needs attribute {', '.join(missing)}")
    first = signature.inputs[0]
    if len(call.data) < (first.minimum if first.is_variadic else 1):
        raise Refused(f"{call.version.operator} needs input {first.name}")
    if first.option == "variadic" and len({a.dtype for a in call.data}) > 1:
        raise Refused(f"the inputs of {call.version.operator} have one type")
    _check_type(call, first.name, call.data[0])
    for port in signature.inputs[1:]:
        array = call.others.get(port.name)
        if array is None and port.option == "single":
            raise Refused(f"{call.version.operator} needs input {port.name}")
        if array is not None:
            _check_type(call, port.name, array)
            if port.name in call.attributes:
                raise Refused(f"{port.name} is given twice: as attribute and as input")


def _check_type(call: Call, name: str, array: Array) -> None:
    signature = call.version.signature
    port = signature.input(name)
    if port is None:
        raise OpconformError(f"{call.version.operator} has no input {name!r}")
    letter = signature.letter(name)
    allowed = signature.types[letter] if letter else (port.type,)
    if type_of(array) not in allowed:
        raise Refused(f"{name} is of type {type_of(array)}, not of {', '.join(allowed)}")
