"""The smallest inputs on which two operator versions differ, one for each thing that makes the difference."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ...cases.elements import element_type
from ...cases.model import count
from ...specs.model import Value, Word
from ..fills import FIRST, suits
from .answers import Said, said
from .situations import FILL, SHAPES, TYPE, Inexpressible, Side, Situation, check_comparable

Cause: TypeAlias = tuple[tuple[str, str], ...]
"""Roles and the classes of their values that make the difference: (("axes", "empty"),)."""

_SHAPES_KEPT = 6
_ALTERNATIVES = 8
_NUMERIC = ("ramp", "halves", "maximum", "negative-zero", "nan", "special")


@dataclass(frozen=True, slots=True)
class Difference:
    """The smallest input on which two versions differ for one cause, and what each says; `types` it holds for."""

    cause: Cause
    situation: Situation
    one: Said
    other: Said
    types: tuple[str, ...]


def differences(one: Side, other: Side) -> list[Difference]:
    """Return how the versions differ, the smallest inputs first. Raises OpconformError if they cannot be compared.

    An input on which they differ has as its cause those of its roles of which a change alone makes them agree; inputs
    that differ for several reasons at once have none, and are left out where others show each reason.
    """
    check_comparable(one, other)
    return _Comparison(one, other).differences()


@dataclass
class _Comparison:
    one: Side
    other: Side
    _known: dict[Situation, tuple[Said, Said] | None] = field(default_factory=dict)

    def differences(self) -> list[Difference]:
        seen = dict.fromkeys([*self.one.situations(), *self.other.situations()])
        levels = _levels(seen)
        causes: dict[tuple[Cause, object], list[Situation]] = {}
        for situation in [*seen, *_crossed(levels), *self._typed(levels)]:
            if (both := self.differ(situation)) is not None:
                cause = self._cause(situation, levels)
                causes.setdefault((cause, _manner(*both)), []).append(situation)
        alone = {key: found for key, found in causes.items() if key[0]} or causes
        found = [self._difference(cause, situations) for (cause, _), situations in alone.items()]
        return sorted(found, key=lambda d: (len(d.cause), d.situation.size))

    def differ(self, situation: Situation) -> tuple[Said, Said] | None:
        """Return what the versions say where they differ; None where they agree or one cannot be asked."""
        if situation not in self._known:
            self._known[situation] = None
            try:
                one, other = said((self.one, self.other), situation)
            except Inexpressible:
                return None
            if one.content != other.content:
                self._known[situation] = one, other
        return self._known[situation]

    def agree(self, situation: Situation) -> bool:
        """Whether both can be asked and say the same, and find it valid."""
        try:
            one, other = said((self.one, self.other), situation)
        except Inexpressible:
            return False
        return bool(one.answers) and one.content == other.content

    def _cause(self, situation: Situation, levels: Mapping[str, Sequence[Value]]) -> Cause:
        relevant = []
        for role, values in levels.items():
            value = situation.get(role)
            others = [v for v in values if class_of(role, v) != class_of(role, value)][:_ALTERNATIVES]
            if any(self.agree(situation.having(role, v)) for v in others):
                relevant.append((role, class_of(role, value)))
        return tuple(relevant)

    def _typed(self, levels: Mapping[str, Sequence[Value]]) -> Iterator[Situation]:
        """Yield plain situations of every type and kind of data."""
        plain = next((s for s in _crossed(levels) if self.agree(s)), None)
        if plain is None:
            return
        for name in dict.fromkeys([*self.one.types, *self.other.types]):
            for fill in _NUMERIC:
                if suits(fill, element_type(name)):
                    yield replace(plain, type=name, fill=fill)

    def _difference(self, cause: Cause, situations: Sequence[Situation]) -> Difference:
        smallest = min(situations, key=lambda s: s.size)
        both = self.differ(smallest)
        if both is None:
            raise TypeError("no difference")
        types = tuple(dict.fromkeys(s.type for s in sorted(situations, key=lambda s: s.size)))
        return Difference(cause, smallest, *both, types)


def class_of(role: str, value: Value) -> str:
    """Return what matters of a role's value where it is not its numbers."""
    if role == TYPE:
        return "type"
    if role == SHAPES:
        return _class_of_shapes(value)
    if isinstance(value, Word):
        return str(value.value)
    if not isinstance(value, tuple):
        return str(value)
    numbers = [v for v in value if isinstance(v, int)]
    if not numbers:
        return "empty"
    return "given" if len(set(numbers)) == len(numbers) else "twice"


def _class_of_shapes(value: Value) -> str:
    shapes = [s for s in value if isinstance(s, tuple)] if isinstance(value, tuple) else []
    same = "one shape" if len(set(shapes)) <= 1 else "different shapes"
    if not shapes:
        return "no input"
    if all(s == () for s in shapes):
        return "scalar"
    return "no elements" if any(0 in s for s in shapes) else same


def _manner(one: Said, other: Said) -> tuple[object, ...]:
    """Return how two differ: what kinds of answers they admit."""
    return tuple(tuple(sorted({a.kind for a in side.answers})) for side in (one, other))


def _levels(seen: Mapping[Situation, None]) -> dict[str, list[Value]]:
    """Return the values of each role that the situations have, those of small situations first."""
    found: dict[str, dict[Value, None]] = {SHAPES: {}, TYPE: {}}
    settings = {role for situation in seen for role, _ in situation.settings}
    for situation in sorted(seen, key=lambda s: s.size):
        for role in (SHAPES, TYPE, *sorted(settings)):
            found.setdefault(role, {})[situation.get(role)] = None
    return {role: list(values) for role, values in found.items()}


def _crossed(levels: Mapping[str, Sequence[Value]]) -> Iterator[Situation]:
    """Yield every combination of settings on a few small shapes, in float32 where there is no other need."""
    shapes = sorted(levels[SHAPES], key=lambda v: _elements(v))
    classes: dict[str, Value] = {}
    for value in shapes:
        if _elements(value) > 1 or class_of(SHAPES, value) != "one shape":
            classes.setdefault(class_of(SHAPES, value) + str(len(value)) * 0, value)
    kinds = [classes[name] for name in classes][:_SHAPES_KEPT]
    element = "float32" if "float32" in levels[TYPE] else str(levels[TYPE][0])
    names = [name for name in levels if name not in (SHAPES, TYPE, FILL)]
    for chosen in itertools.product(kinds, *(levels[name] for name in names)):
        situation = Situation(element, chosen[0], (), FIRST)  # type: ignore[arg-type]  # shapes, as they were read
        for name, value in zip(names, chosen[1:], strict=True):
            situation = situation.having(name, value)
        yield situation


def _elements(shapes: Value) -> int:
    return sum(count(s) for s in shapes if isinstance(s, tuple)) if isinstance(shapes, tuple) else 0  # type: ignore[arg-type]
