"""An input as no standard in particular writes it: translated from one operator version's cases to another's."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ...cases.errors import CaseIdError, OpconformError
from ...cases.ids import CaseId, Shape, parse_id
from ...cases.model import count
from ...specs.model import Spec, Value, VersionSpec, Word
from ..fills import FIRST
from ..plan import edges, grid
from ..source import GeneratedCases
from ..strategy.registry import family_of, settle
from ..strategy.rows import Row, data_port, free_letters, text_of

SHAPES, TYPE, FILL = "shapes", "type", "fill"
PLAIN = "float32"
_IGNORED = frozenset({"opset", "dims", "draw", "seed"})  # how a program is wrapped, and not what it means
_USUAL_TYPE = "int64"  # of what is no data, where a version leaves it open
LARGEST = 100  # elements


@dataclass(frozen=True, slots=True)
class Situation:
    """An input by roles rather than names: data of one type, shapes, settings and fill.

    `settings` are sorted by role; absent ones do not appear, truth values are 0 and 1.
    """

    type: str
    shapes: tuple[Shape, ...]
    settings: tuple[tuple[str, Value], ...]
    fill: str = FIRST

    def get(self, role: str) -> Value:
        """Return what the situation has by a role: a setting, its absence, or its shapes, type or fill."""
        own: Mapping[str, Value] = {SHAPES: self.shapes, TYPE: self.type, FILL: self.fill}
        return own[role] if role in own else dict(self.settings).get(role, Word.ABSENT)

    def having(self, role: str, value: Value) -> Situation:
        """Return the situation with another value of a role."""
        if role == SHAPES:
            return replace(self, shapes=value)  # type: ignore[arg-type]  # shapes, as another situation has them
        if role in (TYPE, FILL):
            return replace(self, type=str(value)) if role == TYPE else replace(self, fill=str(value))
        settings = {**dict(self.settings), role: value}
        kept = {name: one for name, one in settings.items() if one is not Word.ABSENT}
        return replace(self, settings=tuple(sorted(kept.items())))

    @property
    def size(self) -> tuple[int, int, str]:
        """A measure by which one situation is smaller than another; one of a single element or none shows least."""
        elements = sum(map(count, self.shapes)) if all(map(count, self.shapes)) else 0
        plain = (self.type == PLAIN, self.fill == FIRST)
        return (elements if elements > 1 else LARGEST, len(self.settings), f"{plain.count(False)} {self!r}")


class Inexpressible(Exception):  # noqa: N818 - no error: one standard has no word for what another says
    """An operator version has no way to say this."""


@dataclass(frozen=True)
class Side:
    """One of the two operator versions."""

    source: GeneratedCases
    spec: Spec
    version: VersionSpec

    @property
    def name(self) -> str:
        """The operator version, `onnx/ReduceMean-13`."""
        return str(self.version.operator)

    @functools.cached_property
    def roles(self) -> Mapping[str, str]:
        """What this version calls each role."""
        signature, family = self.version.signature, family_of(self.spec)
        names = [a.name for a in signature.attributes] + [p.name for p in signature.inputs[1:]] + list(family.own)
        return {family.synonyms.get(name, name): name for name in names}

    @property
    def types(self) -> tuple[str, ...]:
        """The element types of the data."""
        letter = self.version.signature.letter(data_port(self.version).name)
        return self.version.signature.types.get(letter or "", ())

    def situations(self) -> Iterator[Situation]:
        """Yield the situations that the version's spec speaks of, small ones only; edges with their type and data."""
        for case in [*edges(self.spec, self.version), *grid(self.spec, self.version, 2)]:
            if sum(map(count, case.shapes)) <= LARGEST:
                row = self.source.row(case)
                if row.get("unknown") is Word.ABSENT:
                    yield self._situation(row) if case.edge else replace(self._situation(row), type=PLAIN, fill=FIRST)

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
        return Situation(row.id.types[0], row.id.shapes, tuple(sorted(settings.items())), row.id.fill)

    def case(self, situation: Situation) -> CaseId:
        """Return the case of this version that a situation is. Raises Inexpressible."""
        settings = {}
        for role, value in situation.settings:
            name = self.roles.get(role)
            if name is None or (value is Word.OMITTED and self.version.signature.input(name) is None):
                raise Inexpressible(f"{self.name} has no {role}")
            text = text_of(self._own(name, value))
            if text is not None:
                settings[name] = text
        types = tuple(self._type(letter, situation) for letter in free_letters(self.version))
        case = CaseId(self.name, types, situation.shapes, tuple(sorted(settings.items())), situation.fill)
        try:
            settled = settle(self.spec, self.version, case)
        except CaseIdError as error:
            raise Inexpressible(str(error)) from error
        if dict(settled.settings).keys() != settings.keys():
            raise Inexpressible(f"{self.name} does not tell {case} from {settled}")
        return settled

    def _own(self, name: str, value: Value) -> Value:
        attribute = self.version.signature.attribute(name)
        if attribute is None or attribute.kind not in ("bool", "boolean") or isinstance(value, Word):
            return value
        if value not in (0, 1):
            raise Inexpressible(f"{self.name}: {name} is true or false")
        return bool(value)

    def _type(self, letter: str, situation: Situation) -> str:
        if letter == self.version.signature.letter(data_port(self.version).name):
            return situation.type
        allowed = self.version.signature.types[letter]
        return _USUAL_TYPE if _USUAL_TYPE in allowed else allowed[0]

    def row(self, case: CaseId) -> Row:
        """Return a case's row, as that of the rejected edge whose content it has where there is one.

        Raises CaseIdError where the version finds the case invalid, Inexpressible where it cannot be written.
        """
        edge = self._rejected.get(str(case))
        if edge is not None:
            return self.source.row(parse_id(edge))
        if case.types[0] not in self.types:
            raise CaseIdError(f"{case.types[0]} is no type of {self.name}")
        try:
            return self.source.row(case)
        except CaseIdError as error:
            raise Inexpressible(str(error)) from error

    @functools.cached_property
    def _rejected(self) -> Mapping[str, str]:
        """The invalid edges by the id that their content has without its edge."""
        cases = [c for c in edges(self.spec, self.version) if c.edge and self.version.edges[c.edge].rejected]
        return {str(replace(c, edge=None)): str(c) for c in cases}


def side(source: GeneratedCases, name: str) -> Side:
    """Return the side called `onnx/ReduceMean-13`. Raises OpconformError."""
    spec, key = source.library.operator_version(name)
    return Side(source, spec, spec.version(key))


def check_comparable(one: Side, other: Side) -> None:
    """Raise OpconformError for operators that are computed by different references."""
    if (one.spec.family, one.spec.function) != (other.spec.family, other.spec.function):
        told = " and ".join(f"{s.name} is {s.spec.family}.{s.spec.function}" for s in (one, other))
        raise OpconformError(f"these cannot be put to the same inputs: {told}")
