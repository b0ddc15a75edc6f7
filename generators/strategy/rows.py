"""Rows of parameters: what a case is, and how levels become a case id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from ...cases.errors import CaseIdError, OpconformError
from ...cases.ids import CaseId, Shape
from ...specs.expressions import numbers
from ...specs.model import Edge, Port, Spec, Value, VersionSpec, Word
from ..envelope import kindest_opset, opset_named
from ..fills import FIRST

Settings: TypeAlias = Mapping[str, Value]
Own: TypeAlias = Mapping[str, tuple[str, ...]]
"""A family's own parameters: the words that each may hold, the one first that an id leaves out."""

TYPE_OF_PORT = re.compile(r"type\((\w+)\)")
_OWN_FIELDS = frozenset({"shapes", "fill", "draw", "seed"})  # have places of their own in an id, or are no parameter


@dataclass(frozen=True)
class Row:
    """A case's content, typed: what the id says, beside the spec that it is about.

    `settings` holds what the id carries, by parameter; what it does not carry is absent, or the first word of the
    family's own parameter.
    """

    spec: Spec
    version: VersionSpec
    id: CaseId
    settings: Settings
    own: Own = field(default_factory=lambda: MappingProxyType({}))

    @property
    def edge(self) -> Edge | None:
        """The edge that the case is, if it is one."""
        return self.version.edges[self.id.edge] if self.id.edge else None

    def get(self, name: str) -> Value:
        """Return a setting, its default, or Word.ABSENT."""
        return self.settings.get(name, self.own[name][0] if name in self.own else Word.ABSENT)

    def number(self, name: str) -> int:
        """Return an attribute's whole number: what is set, else the signature's default."""
        value = self.get(name)
        if value is Word.ABSENT:
            attribute = self.version.signature.attribute(name)
            value = attribute.default if attribute and attribute.default is not None else 0
        if not isinstance(value, (int, bool)):
            raise CaseIdError(f"{self.id}: {name} is a whole number; read {value!r}")
        return int(value)


def data_port(version: VersionSpec) -> Port:
    """Return the input whose tensors the family fills: the first one."""
    return version.signature.inputs[0]


def free_letters(version: VersionSpec) -> tuple[str, ...]:
    """Return the type letters that cases vary, in the signature's order."""
    return tuple(letter for letter in version.signature.types if letter not in version.signature.ties)


def identify(spec: Spec, version: VersionSpec, levels: Settings, own: Own) -> CaseId:
    """Return the id of the case that `levels` (parameter to value) describe, expressions evaluated."""
    shapes = _shapes(version, levels.get("shapes", ()), levels)
    symbols = {"r": len(shapes[0]) if shapes else 0, "n": len(shapes)}
    settings = {}
    for name, value in levels.items():
        if name in _OWN_FIELDS or name in version.signature.types or TYPE_OF_PORT.fullmatch(name):
            continue
        if name == data_port(version).name and data_port(version).is_variadic:
            continue
        if name == "opset":
            value = opset_named(spec, version, str(value)) if isinstance(value, str) else value  # noqa: PLW2901
            if value == kindest_opset(spec, version):
                continue
        text = text_of(value, symbols)
        if text is not None and text != own.get(name, ("",))[0]:
            settings[name] = text
    fill = levels.get("fill", FIRST)
    return CaseId(str(version.operator), _types(version, levels), shapes, tuple(sorted(settings.items())), str(fill))


def _types(version: VersionSpec, levels: Settings) -> tuple[str, ...]:
    for name, value in levels.items():
        if TYPE_OF_PORT.fullmatch(name) and isinstance(value, tuple) and len(set(value)) > 1:
            return tuple(str(t) for t in value)
    types = []
    for letter in free_letters(version):
        value = levels.get(letter, version.signature.types[letter][0])
        for name, of_port in levels.items():
            match = TYPE_OF_PORT.fullmatch(name)
            if match and version.signature.letter(match[1]) == letter and isinstance(of_port, tuple):
                value = of_port
        types.append(str(value[0] if isinstance(value, tuple) else value))
    return tuple(types)


def _shapes(version: VersionSpec, given: Value, levels: Settings) -> tuple[Shape, ...]:
    """Return one shape a data input: `given` is a shape, or a list of shapes taken cyclically."""
    port = data_port(version)
    if not isinstance(given, tuple):
        raise OpconformError(f"{version.operator}: shapes are a list of dimensions, or of lists; read {given!r}")
    many = [s for s in given if isinstance(s, tuple)]
    count = levels.get(port.name, len(many) or 1) if port.is_variadic else 1
    if not isinstance(count, int):
        raise OpconformError(f"{version.operator}: {port.name} is how many inputs there are; read {count!r}")
    cycle = many or [given]
    return tuple(_whole(cycle[i % len(cycle)], {}) for i in range(count))


def text_of(value: Value, symbols: Mapping[str, int] = MappingProxyType({})) -> str | None:
    """Return a setting's value as an id has it; None for an absent one."""
    if value is Word.ABSENT:
        return None
    if isinstance(value, Word):
        return str(value.value)
    if isinstance(value, tuple):
        return ",".join(map(str, _whole(value, symbols))) or "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _whole(parts: Value, symbols: Mapping[str, int]) -> tuple[int, ...]:
    """Evaluate a list of whole numbers and expressions."""
    written = [p for p in parts if isinstance(p, (int, float, str))] if isinstance(parts, tuple) else []
    return tuple(int(n) for n in numbers(written, symbols))


def without_settings(case: CaseId, *names: str) -> CaseId:
    """Return the id without these settings."""
    return replace(case, settings=tuple(s for s in case.settings if s[0] not in names))
