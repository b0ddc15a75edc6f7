"""Cases that differ in their data alone, side by side: one program, and arrays whose leading axis counts the cases."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .elements import Array
from .expectation import Bounds, Expectation, Labels, Option, Residue, Spread
from .model import Case, Program


@dataclass(frozen=True, slots=True)
class LanedOption:
    """An option for all lanes at once, its bounds with a leading lane axis; `applies`: in which lanes, bool."""

    option: Option
    applies: Array


@dataclass(frozen=True)
class LanedExpectation:
    """The expectations of all lanes: in each, the options that apply there. None at all: the input is invalid."""

    options: tuple[LanedOption, ...]
    types: tuple[str, ...]
    lanes: int

    @functools.cached_property
    def patterns(self) -> Array:
        """Which options apply, bool of shape (lanes, options); lanes mostly agree."""
        empty = np.zeros((self.lanes, 0), bool)
        return np.stack([one.applies for one in self.options], axis=1) if self.options else empty

    def labels(self, pattern: bytes) -> list[Labels]:
        """Return the labels of the options that apply in a pattern, by its bytes; settled silences are left out."""
        found = self._labels.get(pattern)
        if found is None:
            chosen = np.frombuffer(pattern, bool).nonzero()[0].tolist()
            found = self._labels[pattern] = open_labels([self.options[i].option.labels for i in chosen])
        return found

    @functools.cached_property
    def _labels(self) -> dict[bytes, list[Labels]]:
        return {}

    def of(self, lane: int) -> Expectation:
        """Return one lane's expectation."""
        here = self.patterns[lane]
        chosen, kept = here.nonzero()[0].tolist(), self.labels(here.tobytes())
        options = [
            Option(
                labels,
                tuple(_lane(bounds, lane) for bounds in option.outputs),
                option.kind,
                option.exceptional,
                option.level,
            )
            for labels, option in zip(kept, (self.options[i].option for i in chosen), strict=True)
        ]
        return Expectation(tuple(options), self.types)


@dataclass(frozen=True)
class CaseGroup:
    """Cases of one program, side by side. `inputs` are those of `program.feeds`, each with a leading lane axis."""

    ids: Sequence[str]
    program: Program
    inputs: tuple[Array, ...]
    expectation: LanedExpectation
    clauses: tuple[str, ...]
    mended: str | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def case(self, lane: int) -> Case:
        """Return one of the cases."""
        inputs = tuple(array[lane, ...] for array in self.inputs)
        return Case(self.ids[lane], self.program, inputs, self.expectation.of(lane), self.clauses, self.mended)


def open_labels(every: Sequence[Labels]) -> list[Labels]:
    """Return each option's labels without those of silences that have a single answer left: these do not apply."""
    answers: dict[str, set[str]] = {}
    for labels in every:
        for silence, answer in labels:
            answers.setdefault(silence, set()).add(answer)
    return [tuple(label for label in labels if len(answers[label[0]]) > 1) for labels in every]


def _lane(bounds: Bounds, lane: int) -> Bounds:
    flags = None if bounds.flags is None else bounds.flags[lane, ...]
    spread, residue = bounds.spread, bounds.residue
    return Bounds(
        bounds.type,
        bounds.value[lane, ...],
        bounds.lower[lane, ...],
        bounds.upper[lane, ...],
        flags if flags is not None and flags.any() else None,
        None if spread is None else Spread(spread.sigma[lane, ...], spread.limit),
        None if residue is None else Residue(residue.rest[lane, ...], residue.doubt[lane, ...]),
    )
