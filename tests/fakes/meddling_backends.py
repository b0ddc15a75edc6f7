"""Backends whose answers are right when they are given, and which do something else as well."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from fakes.backends import Prepared, Right

from opconform.cases.elements import Array
from opconform.cases.program import Program


class _Meddles(Right):
    """A base: `meddled` is asked for the answer that is handed out."""

    def prepare(self, program: Program) -> Prepared:
        super().prepare(program)
        return _Meddling(self, program)

    def meddled(self, program: _Meddling, inputs: Sequence[Array], answer: Array) -> Array:
        raise NotImplementedError


class _Meddling(Prepared):
    runner: _Meddles

    def __init__(self, runner: _Meddles, program: Program) -> None:
        super().__init__(runner, program)
        self.given: list[Array] = []

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        (answer,) = super().run(inputs)
        answer = self.runner.meddled(self, inputs, np.ascontiguousarray(answer).reshape(answer.shape))
        self.given.append(answer)
        return [answer]


class OverwritesInputs(_Meddles):
    """Uses its first input as a scratch buffer."""

    def meddled(self, program: _Meddling, inputs: Sequence[Array], answer: Array) -> Array:
        inputs[0].reshape(-1)[-1:] += 1
        return answer


class OneBuffer(_Meddles):
    """Each program hands out one buffer again and again."""

    def meddled(self, program: _Meddling, inputs: Sequence[Array], answer: Array) -> Array:
        if not program.given or program.given[0].shape != answer.shape:
            return answer
        program.given[0][...] = answer
        return program.given[0]


class ChangesLater(_Meddles):
    """Clears the answer that it gave before."""

    def meddled(self, program: _Meddling, inputs: Sequence[Array], answer: Array) -> Array:
        if program.given:
            program.given[-1][...] = 0
        return answer


class HandsOutItsInput(Right):
    """Where a mean is its input, hands out that very array, as an honest backend may."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        answer, data = super().compute(program, arrays), arrays[0]
        assert data is not None
        return data if answer.shape == data.shape and answer.tobytes() == data.tobytes() else answer
