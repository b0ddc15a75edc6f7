"""What one operator version says to an input: that it is invalid, or which answers it admits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ...cases.elements import content
from ...cases.errors import CaseIdError, OpconformError
from ...cases.expectation import Bounds, Flag, Labels, Option
from ...specs.model import VersionSpec
from .situations import Inexpressible, Side, Situation

Element: TypeAlias = float | int | bool | complex | str

_MINUS = np.uint8(Flag.NEGATIVE_ZERO)


@dataclass(frozen=True, slots=True)
class OutputAnswer:
    """What one output may be: `values` in C order, exact ones rounded to float64; None where any will do."""

    name: str
    shape: tuple[int, ...]
    values: tuple[Element, ...] | None

    @property
    def content(self) -> tuple[object, ...]:
        """What makes two the same, whatever an output is called; NaN is one with NaN, 0 and -0 are two."""
        return self.shape, None if self.values is None else tuple(map(repr, self.values))


@dataclass(frozen=True, slots=True)
class Answer:
    """One admissible answer: `values` of all outputs, `rejected` or `anything`; and of which silences' options."""

    kind: str
    outputs: tuple[OutputAnswer, ...] = ()
    labels: Labels = ()

    @property
    def content(self) -> tuple[object, ...]:
        """What makes two answers the same, whatever a standard calls them."""
        return self.kind, *(output.content for output in self.outputs)


@dataclass(frozen=True, slots=True)
class Said:
    """What an operator version says to an input; no answers: it is invalid, and `why` says in what words it can.

    `data` are the bytes of the first input.
    """

    case: str
    answers: tuple[Answer, ...]
    clauses: tuple[str, ...]
    why: str = ""
    data: bytes = b""

    @property
    def content(self) -> frozenset[tuple[object, ...]]:
        """What makes two versions say the same."""
        return frozenset(answer.content for answer in self.answers)


def said(sides: Sequence[Side], situation: Situation) -> tuple[Said, ...]:
    """Return what each version says to the same tensors. Raises Inexpressible where one cannot be asked so."""
    found = tuple(_told(side, situation) for side in sides)
    if len({one.data for one in found if one.answers}) > 1:  # drawn by the case's id
        raise Inexpressible(f"{situation.fill} is not the same data for {' and '.join(side.name for side in sides)}")
    return found


def _told(side: Side, situation: Situation) -> Said:
    known = side.told.get(situation)
    if known is None:
        known = side.told[situation] = _said(side, situation)
    return known


def _said(side: Side, situation: Situation) -> Said:
    try:
        asked = side.case(situation)
    except (ValueError, OpconformError) as error:  # shapes of sequences are no shapes of tensors, texts no numbers
        raise Inexpressible(str(error)) from error
    try:
        case = side.source.case(str(side.named(asked)))
    except CaseIdError as error:
        return Said(str(asked), (), (), str(error).partition(": ")[2] or str(error))
    except (ValueError, OpconformError) as error:
        raise Inexpressible(str(error)) from error
    clauses = tuple(c for c in case.clauses if c.partition("#")[2] in side.version.clauses)
    names = [output.name if output else "" for output in case.program.outputs]
    answers: dict[tuple[object, ...], Answer] = {}
    for option in case.expectation.options:
        if not option.exceptional:
            answer = _answer(option, side.version, names)
            answers.setdefault(answer.content, answer)
    data = content(case.inputs[0]) if case.inputs and situation.shapes else b""
    return Said(case.id, tuple(answers.values()), clauses, data=data)


def _answer(option: Option, version: VersionSpec, names: Sequence[str]) -> Answer:
    labels = tuple(label for label in option.labels if label[0] in version.silences)
    named = [name for name in names if name] or [""] * len(option.outputs)
    outputs = zip(named, option.outputs, strict=False)  # a sequence has more tensors than outputs
    return Answer(option.kind, tuple(_output(name, bounds) for name, bounds in outputs), labels)


def _output(name: str, bounds: Bounds) -> OutputAnswer:
    values, flags = bounds.value.reshape(-1), None if bounds.flags is None else bounds.flags.reshape(-1)
    if flags is not None and bool((flags & Flag.FREE).any()):
        return OutputAnswer(name, bounds.shape, None)
    if flags is not None and values.dtype.kind == "f":
        values = np.where((flags & _MINUS) > 0, -0.0, values)
    whole = values if values.dtype.kind in "biufcO" else values.astype(np.float64)  # the low-bit types
    return OutputAnswer(name, bounds.shape, tuple(whole.tolist()))
