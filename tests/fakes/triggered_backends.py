"""Backends that go wrong on a trigger, of which the smallest case that sets it off is known."""

from __future__ import annotations

import ctypes
import os

import numpy as np

from opconform.cases.elements import Array
from opconform.cases.program import Program

from .backends import Prepared, Right


class Triggered(Right):
    """Goes wrong where it is triggered."""

    def triggered(self, program: Program, arrays: list[Array]) -> bool:
        raise NotImplementedError

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        answer = super().compute(program, arrays)
        return self.wrong(answer) if self.triggered(program, [a for a in arrays if a is not None]) else answer

    def wrong(self, answer: Array) -> Array:
        return np.asarray(answer + np.ones_like(answer))


class RankFour(Triggered):
    """Wrong values from rank 4 on."""

    def triggered(self, program: Program, arrays: list[Array]) -> bool:
        return arrays[0].ndim >= 4


class Beyond64(Triggered):
    """A shape with a dimension more where an extent is more than 64."""

    def triggered(self, program: Program, arrays: list[Array]) -> bool:
        return max(arrays[0].shape, default=0) > 64

    def wrong(self, answer: Array) -> Array:
        return answer[None]


class NoKeepdims(Triggered):
    """An error where keepdims is 0."""

    def triggered(self, program: Program, arrays: list[Array]) -> bool:
        return any(a.name == "keepdims" and a.value == 0 for a in program.attributes)

    def wrong(self, answer: Array) -> Array:
        raise RuntimeError(f"keepdims is not written yet, for {answer.shape}")


class ThirdInput(Triggered):
    """Wrong values where there are three inputs."""

    def triggered(self, program: Program, arrays: list[Array]) -> bool:
        return program.operator.name == "Mean" and len(arrays) >= 3


class DiesOfNan(Triggered):
    """The process dies of a NaN beside an infinity."""

    def triggered(self, program: Program, arrays: list[Array]) -> bool:
        floats = arrays[0].astype(np.float64)
        return bool(np.isnan(floats).any() and np.isinf(floats).any())

    def wrong(self, answer: Array) -> Array:
        os.abort()


class HangsOfNegativeAxes(Triggered):
    """Native code that does not come back, for a negative axis."""

    def triggered(self, program: Program, arrays: list[Array]) -> bool:
        return program.operator.name == "ReduceMean" and len(arrays) > 1 and bool((arrays[1] < 0).any())

    def wrong(self, answer: Array) -> Array:
        return np.asarray(ctypes.PyDLL(None).sleep(3600))


class TwoFaults(Triggered):
    """One error for rank 3, and another one for lower ranks."""

    def triggered(self, program: Program, arrays: list[Array]) -> bool:
        self.rank = arrays[0].ndim
        return True

    def wrong(self, answer: Array) -> Array:
        raise RuntimeError("no volumes here" if self.rank >= 3 else "no planes here")


class Accepting(Right):
    """Takes attributes that there are not."""

    def prepare(self, program: Program) -> Prepared:
        return Prepared(self, program)
