"""What one operator version says to an input: that it is invalid, or which answers it admits."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...cases.elements import Array, ElementType, element_type
from ...cases.errors import CaseIdError
from ...cases.expectation import Flag, Labels, Option
from ..expect import Reading, Rules, expectations
from ..source import clauses_of, filled_tensors, is_invalid
from ..strategy.families import Build
from ..strategy.registry import family_of
from ..strategy.rows import Row
from .situations import Side, Situation

Numbers: TypeAlias = tuple[float | int, ...]

_MINUS = np.uint8(Flag.NEGATIVE_ZERO)


@dataclass(frozen=True, slots=True)
class Answer:
    """One admissible answer. `values` are exact, rounded to float64, in C order; empty where any will do."""

    kind: str
    shape: tuple[int, ...] | None = None
    values: Numbers = ()
    labels: Labels = ()

    @property
    def content(self) -> tuple[object, ...]:
        """What makes two answers the same, whatever a standard calls them; NaN is one with NaN, 0 and -0 are two."""
        return self.kind, self.shape, tuple(map(repr, self.values))


@dataclass(frozen=True, slots=True)
class Said:
    """What an operator version says to an input; no answers: it is invalid, and `why` says in what words it can."""

    case: str
    answers: tuple[Answer, ...]
    clauses: tuple[str, ...]
    why: str = ""

    @property
    def content(self) -> frozenset[tuple[object, ...]]:
        """What makes two versions say the same."""
        return frozenset(answer.content for answer in self.answers)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One version's case: its row and build where it is valid, else why not."""

    side: Side
    case: str
    row: Row | None = None
    build: Build | None = None
    why: str = ""


def said(sides: Sequence[Side], situation: Situation) -> tuple[Said, ...]:
    """Return what each version says to the same tensors. Raises Inexpressible where one cannot be asked."""
    asked = [_asked(side, situation) for side in sides]
    built = next((one for one in asked if one.build is not None), None)
    tensors = filled_tensors(situation.fill, built.build, [built.case]) if built and built.build else []
    return tuple(_said(one, tensors) for one in asked)


def _asked(side: Side, situation: Situation) -> _Asked:
    case = side.case(situation)
    try:
        row = side.row(case)
        if is_invalid(row):
            return _Asked(side, str(row.id), row)
        return _Asked(side, str(case), row, family_of(side.spec).build(row))
    except CaseIdError as error:
        return _Asked(side, str(case), why=str(error).partition(": ")[2] or str(error))


def _said(asked: _Asked, tensors: Sequence[Array]) -> Said:
    if asked.row is None or asked.build is None:
        clauses = _named(asked.side, asked.row) if asked.row else ()
        return Said(asked.case, (), clauses, asked.why)
    element = element_type(asked.build.program.outputs[0].type)
    version = asked.row.version
    silences = tuple((silence.id, silence.options) for silence in version.silences.values())
    contents = tuple((tensor.dtype, tensor.shape, tensor.tobytes()) for tensor in tensors)
    answers: dict[tuple[object, ...], Answer] = {}
    for option in _admitted(asked.build.readings, contents, element, silences):
        if not option.exceptional:
            answer = _answer(option, version.silences)
            answers.setdefault(answer.content, answer)
    return Said(asked.case, tuple(answers.values()), _named(asked.side, asked.row))


@functools.lru_cache(maxsize=2048)
def _admitted(
    readings: tuple[Reading, ...],
    contents: tuple[tuple[np.dtype[Any], tuple[int, ...], bytes], ...],
    element: ElementType,
    silences: tuple[tuple[str, tuple[str, ...]], ...],
) -> tuple[Option, ...]:
    """Return what readings admit of tensors; versions of an operator mostly read alike."""
    tensors = [np.frombuffer(content, dtype).reshape(shape) for dtype, shape, content in contents]
    (expectation,) = expectations(readings, tensors, Rules(element, dict(silences)))
    return expectation.options


def _named(side: Side, row: Row) -> tuple[str, ...]:
    return tuple(c for c in clauses_of(row) if c.partition("#")[2] in side.version.clauses)


def _answer(option: Option, silences: Mapping[str, object]) -> Answer:
    labels = tuple(label for label in option.labels if label[0] in silences)
    if not option.outputs:
        return Answer(option.kind, labels=labels)
    (bounds,) = option.outputs
    if bounds.flags is not None and bool((bounds.flags & Flag.FREE).any()):
        return Answer("any value", bounds.shape, labels=labels)
    values = bounds.value
    if bounds.flags is not None and values.dtype.kind == "f":
        values = np.where((bounds.flags & _MINUS) > 0, -0.0, values)
    return Answer(option.kind, bounds.shape, tuple(values.reshape(-1).tolist()), labels)
