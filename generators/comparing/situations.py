"""Inputs in a form that is independent of standards, to translate one operator version's cases to another's."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ...cases.elements import element_type
from ...cases.errors import CaseIdError, OpconformError
from ...cases.ids import CaseId, Part, parse_id, part_size
from ...specs.model import Spec, TensorValue, Value, VersionSpec, Word
from ..edges import edges
from ..fills import FIRST, UNDRAWN
from ..parameters import attribute_name, free_letters, setting_name
from ..plan import grid
from ..rows import Row, setting_text, settle
from ..source import GeneratedCases

SHAPES, TYPE, FILL = "shapes", "type", "fill"
PLAIN = "float32"
_SYNONYMS: Mapping[str, str] = MappingProxyType({"keep_dims": "keepdims"})
"""Names in other standards, and their ONNX equivalents."""
_OWN_FIELDS = frozenset({"shapes", "fill", "dims", "memory", "unknown"})
_IGNORED = frozenset({"opset", "dims", "memory", "draw", "seed"})  # the form of a program, not its meaning
_SCALARS = frozenset({"float", "int", "string", "bool", "boolean"})
_USUAL_TYPE = "int64"  # of inputs other than data, if a version leaves it open
LARGEST = 100  # elements


@dataclass(frozen=True, slots=True)
class Situation:
    """An input by roles rather than names: element type, shapes, settings and fill.

    `type` is the type of the first type letter, empty if there is none. `settings` are sorted by role; absent ones are
    left out, truth values are 0 and 1. They include further type letters with unusual types, each under the first input
    that has the letter.
    """

    type: str
    shapes: tuple[Part, ...]
    settings: tuple[tuple[str, Value], ...]
    fill: str = FIRST

    def get(self, role: str) -> Value:
        """Return the value of a role: a setting, its absence, or the shapes, type or fill."""
        own: dict[str, Any] = {SHAPES: self.shapes, TYPE: self.type, FILL: self.fill}
        return own[role] if role in own else dict(self.settings).get(role, Word.ABSENT)

    def having(self, role: str, value: Value) -> Situation:
        """Return the situation with another value of a role."""
        if role == SHAPES:
            return replace(self, shapes=value)  # type: ignore[arg-type]  # shapes, as another situation has them
        if role in (TYPE, FILL):
            return replace(self, type=str(value)) if role == TYPE else replace(self, fill=str(value))
        settings = {**dict(self.settings), role: value}
        kept = {name: setting for name, setting in settings.items() if setting is not Word.ABSENT}
        return replace(self, settings=tuple(sorted(kept.items())))

    @property
    def size(self) -> tuple[int, int, str]:
        """A sort key for the size of situations; those with a single element or none come last, as they show least."""
        counts = [part_size(shape) for shape in self.shapes]
        elements = sum(counts) if all(counts) else 0
        plain = (self.type == PLAIN, self.fill == FIRST)
        return (elements if elements > 1 else LARGEST, len(self.settings), f"{plain.count(False)} {self!r}")


class Inexpressible(Exception):  # noqa: N818 - no error: one standard has no word for what another says
    """An operator version cannot express an input."""


@dataclass(frozen=True)
class Side:
    """One of the two operator versions."""

    source: GeneratedCases
    spec: Spec
    version: VersionSpec

    @functools.cached_property
    def answers(self) -> dict[Situation, Any]:
        """The version's answers so far, by situation."""
        return {}

    @property
    def name(self) -> str:
        """The operator version, `onnx/ReduceMean-13`."""
        return str(self.version.operator)

    @functools.cached_property
    def roles(self) -> Mapping[str, str]:
        """The name for each role in this version."""
        signature = self.version.signature
        names = [setting_name(self.version, a.name) for a in signature.attributes]
        names += ["outputs", *(p.name for p in signature.inputs)]
        names += [f"{port.name}{about}" for port in signature.inputs for about in ("-rank", "-from")]
        names += [name for name in self.version.parameters if name not in _OWN_FIELDS and name not in signature.types]
        roles = {_SYNONYMS.get(name, name): name for name in names}
        return roles | {f"type({port})": f"type({port})" for port in self._letters}

    @property
    def types(self) -> tuple[str, ...]:
        """The element types of the first type letter."""
        letters = free_letters(self.version)
        return self.version.signature.types[letters[0]] if letters else ()

    @functools.cached_property
    def _letters(self) -> Mapping[str, str]:
        """The further type letters, each under the first input or output that has it."""
        signature, first = self.version.signature, dict[str, str]()
        for port in [*signature.inputs, *signature.outputs]:
            first.setdefault(signature.letter(port.name) or "", port.name)
        return {first[letter]: letter for letter in free_letters(self.version)[1:] if letter in first}

    def situations(self) -> Iterator[Situation]:
        """Yield the small situations in the version's spec; edges with their type and data."""
        for case in [*edges(self.spec, self.version), *grid(self.spec, self.version, 2)]:
            if case.size <= LARGEST:
                row = self.source.row(case)
                if row.get("unknown") is Word.ABSENT and (not case.edge or row.id.fill in UNDRAWN):
                    yield self._situation(row) if case.edge else self._plain(self._situation(row))

    def edge_situations(self) -> Iterator[tuple[str, Situation]]:
        """Yield the situations of the invalid edges, each with the edge's name."""
        for case in map(parse_id, self._rejected.values()):
            row = self.source.row(case)
            if case.edge and row.get("unknown") is Word.ABSENT:
                yield case.edge, self._situation(row)

    def _situation(self, row: Row) -> Situation:
        roles = {name: role for role, name in self.roles.items()}
        settings = {
            roles[name]: int(value) if isinstance(value, bool) else value
            for name, value in row.settings.items()
            if name not in _IGNORED
        }
        bound = dict(zip(free_letters(self.version), row.id.types, strict=False))
        for port, letter in self._letters.items():
            if bound.get(letter, self._usual(letter)) != self._usual(letter):
                settings[f"type({port})"] = bound[letter]
        first = row.id.types[0] if row.id.types else ""
        return Situation(first, row.id.shapes, tuple(sorted(settings.items())), row.id.fill)

    def _plain(self, situation: Situation) -> Situation:
        """Return a situation with a common type and common data."""
        if any(isinstance(value, TensorValue) for _, value in situation.settings):
            return situation  # its elements have this type
        usual = PLAIN if PLAIN in self.types or not self.types else self.types[0]
        return replace(situation, type=usual if self.types else "", fill=FIRST)

    def _usual(self, letter: str) -> str:
        allowed = self.version.signature.types[letter]
        return _USUAL_TYPE if _USUAL_TYPE in allowed else allowed[0]

    def case(self, situation: Situation) -> CaseId:
        """Return a situation's case in this version. Raises Inexpressible."""
        settings = {}
        types = tuple(self._types_of(situation))
        for role, value in situation.settings:
            if role.startswith("type("):
                continue
            name = self.roles.get(role)
            if name is None or (value is Word.OMITTED and self.version.signature.input(name) is None):
                raise Inexpressible(f"{self.name} has no {role}")
            try:
                text = setting_text(self.version, types, name, self._own(name, value, types), {})
            except OverflowError:  # infinity, of an input of whole numbers
                raise Inexpressible(f"{self.name}: {name} has no such number") from None
            if text is not None:
                settings[name] = text
        case = CaseId(self.name, types, situation.shapes, tuple(sorted(settings.items())), situation.fill)
        try:
            settled = settle(self.version, case)
        except CaseIdError as error:
            raise Inexpressible(str(error)) from error
        if dict(settled.settings).keys() != settings.keys():
            raise Inexpressible(f"{self.name} does not distinguish {case} from {settled}")
        return settled

    def _own(self, name: str, value: Value, types: tuple[str, ...]) -> Value:
        """Return a setting's value in this version's form. Raises Inexpressible."""
        if isinstance(value, TensorValue):
            letters = free_letters(self.version)
            letter_or_type = value.type or (letters[0] if letters else "")
            type_ = dict(zip(letters, types, strict=False)).get(letter_or_type, letter_or_type)
            if not _fits(value, type_):
                raise Inexpressible(f"{self.name}: {name} has no elements of {type_}")
        attribute = self.version.signature.attribute(attribute_name(name))
        if attribute is None or isinstance(value, Word):
            return value
        if isinstance(value, tuple) and attribute.kind in _SCALARS:  # a tensor of one element, if it is an input
            if len(value) != 1:
                raise Inexpressible(f"{self.name}: {name} is a single value")
            return self._own(name, value[0], types)
        if attribute.kind not in ("bool", "boolean"):
            return value
        if value not in (0, 1):
            raise Inexpressible(f"{self.name}: {name} is true or false")
        return bool(value)

    def _types_of(self, situation: Situation) -> Iterator[str]:
        """Yield the type of each letter. Raises Inexpressible for an input whose type has no letter in this version."""
        given = dict(situation.settings)
        for role in given:
            if role.startswith("type(") and role[5:-1] not in self._letters:
                raise Inexpressible(f"{self.name} has no {role}")
        ports = {letter: port for port, letter in self._letters.items()}
        for index, letter in enumerate(free_letters(self.version)):
            type_ = situation.type if not index else given.get(f"type({ports.get(letter)})", self._usual(letter))
            if index and type_ not in self.version.signature.types[letter]:
                raise Inexpressible(f"{type_} is not a type of {letter} in {self.name}")
            yield str(type_)

    def named(self, case: CaseId) -> CaseId:
        """Return a case's id, or the id of the rejected edge that has the same content.

        Raises CaseIdError if the case is invalid in this version, Inexpressible if it has no id.
        """
        edge = self._rejected.get(str(case))
        if edge is not None:
            return parse_id(edge)
        if case.types and case.types[0] not in self.types:
            raise CaseIdError(f"{case.types[0]} is not a type of {self.name}")
        try:
            row = self.source.row(case)
        except CaseIdError as error:
            raise Inexpressible(str(error)) from error
        if any(all(self._is(row, name, levels) for name, levels in out.items()) for out in self.version.exclude):
            raise Inexpressible(f"{self.name} excludes {case}")
        return row.id

    def _is(self, row: Row, name: str, levels: Sequence[str]) -> bool:
        """Return whether a row has one of these levels of a parameter; never for a bundle."""
        bound = dict(zip(free_letters(self.version), row.id.types, strict=False))
        chosen = bound[name] if name in bound else row.get(name) if name in self.roles.values() else None
        return chosen is not None and any(self.version.parameters[name].get(level) == chosen for level in levels)

    @functools.cached_property
    def _rejected(self) -> Mapping[str, str]:
        """The invalid edges, by the id of their content without the edge."""
        cases = [c for c in edges(self.spec, self.version) if c.edge and self.version.edges[c.edge].rejected]
        return {str(replace(c, edge=None)): str(c) for c in cases}


def _fits(value: TensorValue, type_: str) -> bool:
    kind = element_type(type_).kind
    classes: Any = {"string": str, "float": (int, float), "complex": (int, float)}.get(kind, int)
    return all(isinstance(number, classes) for number in value.values)


def side(source: GeneratedCases, name: str) -> Side:
    """Return the side called `onnx/ReduceMean-13`. Raises OpconformError."""
    spec, key = source.library.operator_version(name)
    return Side(source, spec, spec.version(key))


def check_comparable(side: Side, other: Side) -> None:
    """Raise OpconformError for operators with different references."""
    if (side.spec.family, side.spec.function) != (other.spec.family, other.spec.function):
        names = " and ".join(f"{s.name} is {s.spec.family}.{s.spec.function}" for s in (side, other))
        raise OpconformError(f"these cannot be compared on the same inputs: {names}")
