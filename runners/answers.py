"""What a backend answered to the cases of a batch: answers of the same types and shapes lie together, lanes first."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..cases.elements import Array, type_of
from ..cases.program import Program, Structure, flat, is_tensor
from ..cases.runner import Reason
from .comparison import Comparison


@dataclass(frozen=True, slots=True)
class Refusal:
    """A backend that gave no answer: in its own words, whether these say "not implemented", and why."""

    words: str
    unsupported: bool
    reason: Reason


@dataclass(frozen=True, slots=True)
class Answer:
    """What a backend answered to one case: all tensors, and the structure of each answer if some are no tensors."""

    outputs: tuple[Array, ...]
    structure: tuple[Structure, ...] = ()

    def copy(self) -> Answer:
        """Return the same in memory of its own, which a backend cannot use again."""
        return Answer(tuple(output.copy() for output in self.outputs), self.structure)

    @property
    def form(self) -> tuple[object, ...]:
        """Types, shapes and structure."""
        return tuple((output.dtype, output.shape) for output in self.outputs), self.structure


Answered: TypeAlias = Answer | Refusal


def answer_of(program: Program, values: Sequence[Any]) -> Answer:
    """Return what a backend answered, one value for each of `program.answers`. TypeError, ValueError if it is none."""
    if type(values) is list and program.is_plain and all(_is_plain(value) for value in values):  # as most are
        return Answer(tuple(values))
    arrays, structure = flat(program, values)
    plain = all(is_tensor(one.type) for one in program.answers) and all(one.kind == "tensor" for one in structure)
    return Answer(tuple(arrays), () if plain else structure)


def _is_plain(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype.kind not in "OUST"


def same_answer(one: Answered, other: Answered) -> bool:
    """Return whether two answers are the same to the bit; refusals never are."""
    if isinstance(one, Refusal) or isinstance(other, Refusal) or one.form != other.form:
        return False
    return all(map(same_array, one.outputs, other.outputs))


def same_array(one: Array, other: Array) -> bool:
    """Return whether two arrays of one type and shape are the same to the bit."""
    return one.tolist() == other.tolist() if one.dtype.hasobject else one.tobytes() == other.tobytes()


@dataclass(frozen=True)
class Stack:
    """Answers of one form: to which lanes, by number, and the outputs with one row for each of these."""

    lanes: Sequence[int]
    outputs: tuple[Array, ...]
    structure: tuple[Structure, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """The outputs' element types."""
        return tuple(map(type_of, self.outputs))

    @functools.cached_property
    def comparison(self) -> Comparison:
        """The outputs as they are compared."""
        return Comparison(self.outputs)


@dataclass(frozen=True)
class Answers:
    """What a backend answered to the `lanes` cases of a batch; one without an entry has no answer."""

    lanes: int
    stacks: tuple[Stack, ...] = ()
    refusals: Mapping[int, Refusal] = field(default_factory=dict)

    @classmethod
    def of(cls, answers: Sequence[Answered]) -> Answers:
        """Return the answers to all cases of a batch."""
        gathered = GatheredAnswers(len(answers))
        for lane, answer in enumerate(answers):
            gathered.add(lane, answer)
        return gathered.answers()

    @classmethod
    def of_case(cls, *outputs: Array) -> Answers:
        """Return the answer to a single case, `outputs` without lanes."""
        return cls(1, (Stack((0,), tuple(output[np.newaxis] for output in outputs)),))

    def answer(self, lane: int) -> Answered | None:
        """Return one case's answer, None if it has none."""
        return self._by_lane(lane) if lane not in self.refusals else self.refusals[lane]

    def _by_lane(self, lane: int) -> Answer | None:
        for stack in self.stacks:
            if lane in stack.lanes:
                row = stack.lanes.index(lane)
                return Answer(tuple(output[row, ...] for output in stack.outputs), stack.structure)
        return None

    def each(self) -> Iterator[tuple[int, Answer]]:
        """Yield the lanes that were answered, with their answers."""
        for stack in self.stacks:
            for row, lane in enumerate(stack.lanes):
                yield lane, Answer(tuple(output[row, ...] for output in stack.outputs), stack.structure)

    def replaced(self, others: Mapping[int, Answered]) -> Answers:
        """Return the answers with others in some lanes."""
        if not others:
            return self
        known = {**dict(self.each()), **self.refusals, **others}
        gathered = GatheredAnswers(self.lanes)
        for lane in sorted(known):
            gathered.add(lane, known[lane])
        return gathered.answers()


class GatheredAnswers:
    """Takes answers as they come, and copies them: a backend may use its memory again."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._refusals: dict[int, Refusal] = {}
        self._first: list[Array] = []  # room for as many answers in the form of the first as there are lanes
        self._form: list[tuple[tuple[int, ...], np.dtype[Any]]] | None = None
        self._structure: tuple[Structure, ...] = ()
        self._rows: list[int] = []
        self._others: dict[tuple[object, ...], list[tuple[int, Answer]]] = {}

    def add(self, lane: int, answer: Answered) -> None:
        """Take the answer to a lane."""
        if isinstance(answer, Refusal):
            self._refusals[lane] = answer
            return
        if self._form is None:
            self._form, self._structure = [(o.shape, o.dtype) for o in answer.outputs], answer.structure
            self._first = [np.zeros((self._lanes, *shape), dtype) for shape, dtype in self._form]
        if self._is_like_first(answer):
            for room, output in zip(self._first, answer.outputs, strict=True):
                room[len(self._rows)] = output
            self._rows.append(lane)
        else:
            self._others.setdefault(answer.form, []).append((lane, answer.copy()))

    def _is_like_first(self, answer: Answer) -> bool:
        form = self._form or []
        if len(answer.outputs) != len(form) or answer.structure != self._structure:
            return False
        return all(
            output.shape == shape and (output.dtype is dtype or output.dtype == dtype)
            for output, (shape, dtype) in zip(answer.outputs, form, strict=True)
        )

    def answers(self, lanes: int | None = None) -> Answers:
        """Return what was taken, of the first `lanes` cases where these are fewer."""
        stacks = []
        if self._rows:
            stacks.append(Stack(self._rows, tuple(room[: len(self._rows)] for room in self._first), self._structure))
        for alike in self._others.values():
            columns = zip(*(answer.outputs for _, answer in alike), strict=True)
            stacks.append(Stack([n for n, _ in alike], tuple(map(np.stack, columns)), alike[0][1].structure))
        return Answers(self._lanes if lanes is None else lanes, tuple(stacks), self._refusals)
