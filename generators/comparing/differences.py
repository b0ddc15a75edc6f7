"""Finds the smallest inputs on which two operator versions differ, one for each cause."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from ...cases.batch import Bounds, Flag, Labels, Option
from ...cases.elements import content, element_type
from ...cases.errors import CaseIdError, OpconformError
from ...cases.ids import Part, part_size
from ...cases.program import element_names
from ...specs.model import Clause, Silence, Value, Word
from ..fills import FIRST, suits
from .situations import LARGEST, PLAIN, SHAPES, TYPE, Inexpressible, Side, Situation, check_comparable

Cause: TypeAlias = tuple[tuple[str, str], ...]
"""The roles, and classes of their values, that cause a difference: (("axes", "empty"),)."""

ANY = "any"
"""The class of element types in a cause: types differ one by one, and are listed together."""

_PLAIN_SHAPES = "one shape"
_SHAPES_KEPT = 6
_VALUES_A_CLASS = 2
_ALTERNATIVES = 8
CROSSED = 2_000
"""Up to so many combinations of settings on one shape, all are tried."""
NUMERIC = ("ramp", "halves", "maximum", "negative-zero", "nan-among")
"""Kinds of data on which versions are compared; none that is drawn, since each case has its own draw."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The smallest input on which two versions differ for one cause, with each version's answers and rules.

    `types` are the element types for which the difference was found.
    """

    cause: Cause
    situation: Situation
    said: tuple[VersionAnswers, VersionAnswers]
    rules: tuple[tuple[Clause | Silence, ...], tuple[Clause | Silence, ...]]
    types: tuple[str, ...]


def differences(side: Side, other: Side) -> list[Difference]:
    """Return the differences between the versions, the smallest inputs first. Raises OpconformError if incomparable.

    The cause of a difference are the roles for which a single change makes the versions agree. Inputs that differ for
    several reasons at once have no cause, and are left out if other inputs show each reason.
    """
    check_comparable(side, other)
    return _DifferenceSearch((side, other)).differences()


_Key: TypeAlias = tuple[Cause, tuple[bool, bool]]


@dataclass
class _Inputs:
    """The inputs that differ for one cause, and all their element types."""

    situations: list[Situation] = field(default_factory=list)
    types: dict[str, None] = field(default_factory=dict)


@dataclass
class _DifferenceSearch:
    sides: tuple[Side, Side]
    _known: dict[Situation, tuple[VersionAnswers, VersionAnswers] | None] = field(default_factory=dict)

    def differences(self) -> list[Difference]:
        seen = dict.fromkeys(situation for side in self.sides for situation in side.situations())
        levels = _levels(seen)
        causes: dict[_Key, _Inputs] = {}
        for situation in sorted({*seen, *_crossed(levels), *self._typed(levels)}, key=lambda s: s.size):
            self._add(situation, levels, causes)
        for role, kind in [cause[0] for cause, _ in causes if len(cause) == 1 and cause[0][0] not in (SHAPES, TYPE)]:
            for situation in seen:  # other inputs show what this difference hides
                if class_of(role, situation) == kind:
                    for value in levels[role][:_ALTERNATIVES]:
                        self._add(situation.having(role, value), levels, causes)
        simple = {cause for cause, _ in causes}
        listed = [
            self._difference(cause, group)
            for (cause, _), group in causes.items()
            if not any(set(other) < set(cause) for other in simple if other) and (cause or simple == {()})
        ]
        return sorted(listed, key=lambda d: (len(d.cause), d.situation.size))

    def _add(self, situation: Situation, levels: Mapping[str, Sequence[Value]], causes: dict[_Key, _Inputs]) -> None:
        """Add a situation under its cause, if the two versions differ in it."""
        both = self.asked(situation)
        if both is None or both[0].content == both[1].content:
            return
        valid = (bool(both[0].answers), bool(both[1].answers))
        known = next((k for k in causes if k[1] == valid and _is_explained(situation, k[0])), None)
        key = known or (self._cause(situation, levels), valid)
        group = causes.setdefault(key, _Inputs())
        group.types[situation.type] = None
        if known is None or self._openness(situation) < self._openness(group.situations[0]):
            group.situations.append(situation)

    def asked(self, situation: Situation) -> tuple[VersionAnswers, VersionAnswers] | None:
        """Return both versions' answers; None if one of them cannot express the input."""
        if situation not in self._known:
            types = element_names(situation.type) if situation.type else ()
            if not all(suits(situation.fill, element_type(type_)) for type_ in types):
                return None
            try:
                self._known[situation] = said(self.sides, situation)  # type: ignore[assignment]  # two of two
            except Inexpressible:
                self._known[situation] = None
        return self._known[situation]

    def agree(self, situation: Situation) -> bool:
        """Whether both can express the input and admit the same single answer."""
        both = self.asked(situation)
        return both is not None and len(both[0].answers) == 1 and both[0].content == both[1].content

    def _cause(self, situation: Situation, levels: Mapping[str, Sequence[Value]]) -> Cause:
        roles = [role for role, values in levels.items() if self._matters(situation, role, values)]
        return tuple((role, ANY if role == TYPE else class_of(role, situation)) for role in roles)

    def _matters(self, situation: Situation, role: str, values: Sequence[Value]) -> bool:
        """Return whether both agree if the situation has another value for this role."""
        value, kind = situation.get(role), class_of(role, situation)
        if kind == _PLAIN_SHAPES:  # for a scalar, or an empty tensor, different rules often agree anyway
            return False
        changed = (situation.having(role, v) for v in values if v != value)
        others = (s for s in changed if role == TYPE or class_of(role, s) != kind)
        return any(self.agree(s) for s in itertools.islice(others, _ALTERNATIVES))

    def _typed(self, levels: Mapping[str, Sequence[Value]]) -> Iterator[Situation]:
        """Yield plain situations of every type and kind of data."""
        plain = next((s for s in _crossed(levels) if any(map(part_size, s.shapes)) and self.agree(s)), None)
        if plain is None:
            return
        for name in dict.fromkeys(t for side in self.sides for t in side.types):
            for fill in NUMERIC:
                if all(suits(fill, element_type(element)) for element in element_names(name)):
                    yield replace(plain, type=name, fill=fill)

    def _difference(self, cause: Cause, group: _Inputs) -> Difference:
        ordered = sorted(group.situations, key=lambda s: (s.size[0] >= LARGEST, self._openness(s), s.size))
        both = self.asked(ordered[0])
        if both is None:
            raise TypeError("a difference needs answers of both versions")
        here, there = self.sides
        rules, other_rules = rules_of(here, there, cause, both[0]), rules_of(there, here, cause, both[1])
        return Difference(cause, ordered[0], both, (rules, other_rules), tuple(group.types))

    def _openness(self, situation: Situation) -> int:
        """Return the number of admissible answers beyond one per side: a difference is clearest with one each."""
        both = self.asked(situation)
        return sum(max(0, len(side.answers) - 1) for side in both) if both else 0


def _is_explained(situation: Situation, cause: Cause) -> bool:
    """Return whether a known cause applies to a situation, with or without others; types are matched one by one."""
    return bool(cause) and all(role != TYPE and class_of(role, situation) == kind for role, kind in cause)


def class_of(role: str, situation: Situation) -> str:
    """Return the class of a role's value, which ignores its numbers."""
    value = situation.get(role)
    if role == SHAPES:
        return _class_of_shapes(situation.shapes)
    if isinstance(value, Word):
        return str(value.value)
    if not isinstance(value, tuple) or role not in ("axes", "axis"):
        return str(value)
    rank = len(situation.shapes[0]) if situation.shapes and isinstance(situation.shapes[0], tuple) else 0
    return _class_of_axes([v for v in value if isinstance(v, int)], rank)


def _class_of_axes(numbers: Sequence[int], rank: int) -> str:
    if not numbers:
        return "empty"
    if any(not -rank <= n < rank for n in numbers):
        return "out of range"
    if len({n % rank for n in numbers}) < len(numbers):
        return "twice"
    return "negative" if min(numbers) < 0 else "given"


def _class_of_shapes(shapes: Sequence[Part]) -> str:
    if not shapes:
        return "no input"
    if len(set(shapes)) > 1:
        return "different shapes"
    if not shapes[0]:
        return "scalar"
    return "no elements" if not part_size(shapes[0]) else _PLAIN_SHAPES


def rules_of(side: Side, other: Side, cause: Cause, answers: VersionAnswers) -> tuple[Clause | Silence, ...]:
    """Return the clauses and silences behind a version's answers, as far as they concern the cause.

    Between versions of one operator, rules that the other version lacks come first.
    """
    version, roles = side.version, {side.roles.get(role, role) for role, _ in cause}
    open_ = dict.fromkeys(silence for answer in answers.answers for silence, _ in answer.labels)
    if open_:
        return tuple(version.silences[s] for s in open_ if s in version.silences)
    clauses = [version.clauses[c.partition("#")[2]] for c in answers.clauses]
    if not answers.answers:
        return tuple(clauses) or _broken(side, cause)
    new = [c for c in clauses if c.id not in other.version.clauses] if side.spec is other.spec else []
    return tuple(new) or tuple(c for c in clauses if c.when and roles & set(c.when)) or tuple(clauses[:1])


def _broken(side: Side, cause: Cause) -> tuple[Clause, ...]:
    """Return the clauses of the edges that are invalid for this cause."""
    clauses: dict[str, Clause] = {}
    for edge, situation in side.edge_situations():
        classes = [(role, class_of(role, situation)) for role, _ in cause if role != TYPE]
        wrong_type = any(role == TYPE for role, _ in cause) and situation.type not in side.types
        if (classes and tuple(classes) == cause) or wrong_type:
            tests = side.version.edges[edge].tests
            clauses |= {test: side.version.clauses[test] for test in tests if test in side.version.clauses}
    return tuple(clauses.values())


def _levels(seen: Mapping[Situation, None]) -> dict[str, list[Value]]:
    """Return the values of each role in the situations, from small situations first."""
    ordered = sorted(seen, key=lambda s: s.size)
    roles = [SHAPES, TYPE, *sorted({role for situation in seen for role, _ in situation.settings})]
    return {role: list(dict.fromkeys(situation.get(role) for situation in ordered)) for role in roles}


def _crossed(levels: Mapping[str, Sequence[Value]]) -> Iterator[Situation]:
    """Yield combinations of settings on a few small shapes."""
    names = [name for name in levels if name not in (SHAPES, TYPE)]
    element = PLAIN if PLAIN in levels[TYPE] or not levels[TYPE] else str(levels[TYPE][0])
    for shapes in _few_shapes(levels[SHAPES]):
        bare = Situation(element, shapes, (), FIRST)
        for chosen in _combined([_few(bare, name, levels[name]) for name in names]):
            situation = bare
            for name, value in zip(names, chosen, strict=True):
                situation = situation.having(name, value)
            yield situation


def _combined(levels: Sequence[Sequence[Value]]) -> Iterator[tuple[Value, ...]]:
    """Yield all combinations; if there are too many, only those with at most two roles, or one, changed."""
    sizes, roles = [len(values) for values in levels], range(len(levels))
    if math.prod(sizes) <= CROSSED:
        yield from itertools.product(*levels)
        return
    pairs = list(itertools.combinations(sizes, 2))
    together = 2 if pairs and sum(map(math.prod, pairs)) <= CROSSED else 1
    for chosen in itertools.combinations(roles, together):
        yield from itertools.product(*(levels[role] if role in chosen else levels[role][:1] for role in roles))


def _few(bare: Situation, role: str, values: Sequence[Value]) -> list[Value]:
    """Return a few values of each class."""
    by_class: dict[str, list[Value]] = {}
    for value in values:
        by_class.setdefault(class_of(role, bare.having(role, value)), []).append(value)
    return [value for alike in by_class.values() for value in alike[:_VALUES_A_CLASS]]


def _few_shapes(values: Sequence[Value]) -> list[tuple[Part, ...]]:
    kept: dict[tuple[str, int], tuple[Part, ...]] = {}
    for value in values:
        shapes: tuple[Part, ...] = value  # type: ignore[assignment]  # as the situations have them
        if sum(map(part_size, shapes)) != 1 or not any(shapes):  # one element shows little
            rank = len(shapes[0]) if shapes and isinstance(shapes[0], tuple) else 0
            kept.setdefault((_class_of_shapes(shapes), min(rank, 2)), shapes)
    return list(kept.values())[:_SHAPES_KEPT]


Element: TypeAlias = float | int | bool | complex | str

_MINUS = np.uint8(Flag.NEGATIVE_ZERO)


@dataclass(frozen=True)
class OutputAnswer:
    """The admissible values of one output: `values` in C order, exact ones rounded to float64; None for any value."""

    name: str
    shape: tuple[int, ...]
    values: tuple[Element, ...] | None

    @functools.cached_property
    def content(self) -> tuple[object, ...]:
        """The key for comparison, without the output's name; NaN equals NaN, 0 and -0 differ."""
        return self.shape, None if self.values is None else repr(self.values)


@dataclass(frozen=True)
class Answer:
    """One admissible answer: `values` of all outputs, `rejected` or `anything`; with its options of silences."""

    kind: str
    outputs: tuple[OutputAnswer, ...] = ()
    labels: Labels = ()

    @functools.cached_property
    def content(self) -> tuple[object, ...]:
        """The key for comparison, without a standard's own names."""
        return self.kind, *(output.content for output in self.outputs)


@dataclass(frozen=True, slots=True)
class VersionAnswers:
    """The answers of an operator version for an input; without answers the input is invalid, and `why` has the reason.

    `data` are the bytes of the first input.
    """

    case: str
    answers: tuple[Answer, ...]
    clauses: tuple[str, ...]
    why: str = ""
    data: bytes = b""

    @property
    def content(self) -> frozenset[tuple[object, ...]]:
        """The key by which two versions' answers are compared."""
        return frozenset(answer.content for answer in self.answers)


def said(sides: Sequence[Side], situation: Situation) -> tuple[VersionAnswers, ...]:
    """Return each version's answers for the same tensors. Raises Inexpressible if one cannot express them."""
    for side in sides:
        if situation not in side.answers:
            side.answers[situation] = _said(side, situation)
    answers = tuple(side.answers[situation] for side in sides)
    if len({answer.data for answer in answers if answer.answers}) > 1:  # drawn from the case's id
        raise Inexpressible(f"{situation.fill} is not the same data for {' and '.join(side.name for side in sides)}")
    return answers


def _said(side: Side, situation: Situation) -> VersionAnswers:
    try:
        asked = side.case(situation)
    except (ValueError, OpconformError) as error:  # sequences have no tensor shapes, and text is not a number
        raise Inexpressible(str(error)) from error
    try:
        case = side.source.case(str(side.named(asked)))
    except CaseIdError as error:
        return VersionAnswers(str(asked), (), (), str(error).partition(": ")[2] or str(error))
    except (ValueError, OpconformError) as error:  # tied together by a spec's bundles, but separate here
        raise Inexpressible(str(error)) from error
    clauses = tuple(c for c in case.clauses if c.partition("#")[2] in side.version.clauses)
    answers: dict[tuple[object, ...], Answer] = {}
    for option in case.expectation.options:
        if not option.exceptional:
            labels = tuple(label for label in option.labels if label[0] in side.version.silences)
            names = [output.name for output in case.program.answers] or [""] * len(option.outputs)
            indices = range(min(len(names), len(option.outputs)))  # a sequence has more tensors than outputs
            answer = answer_of(option, names, indices, labels)
            answers.setdefault(answer.content, answer)
    data = content(case.inputs[0]) if case.inputs and situation.shapes else b""
    return VersionAnswers(case.id, tuple(answers.values()), clauses, data=data)


def answer_of(option: Option, names: Sequence[str], places: Sequence[int], labels: Labels) -> Answer:
    """Return an admissible answer in some of the outputs, by their indices; names: of all outputs."""
    shown = tuple(_output(names[at], option.outputs[at]) for at in places) if option.outputs else ()
    return Answer(option.kind, shown, labels)


def _output(name: str, bounds: Bounds) -> OutputAnswer:
    values, flags = bounds.value.reshape(-1), None if bounds.flags is None else bounds.flags.reshape(-1)
    if flags is not None and bool((flags & Flag.FREE).any()):
        return OutputAnswer(name, bounds.shape, None)
    if flags is not None and values.dtype.kind == "f":
        values = np.where((flags & _MINUS) > 0, -0.0, values)
    wide = values if values.dtype.kind in "biufcO" else values.astype(np.float64)  # the low-bit types
    return OutputAnswer(name, bounds.shape, tuple(wide.tolist()))
