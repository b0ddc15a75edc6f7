"""Backends that break their process, or keep something in it, at one case and show it at another."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opconform.cases.elements import Array
from opconform.cases.program import Program

from .backends import Prepared, Right
from .pool_tasks import FAULTS


class BreaksTheNext(Right):
    """After a float16 case the next case of its process falls, as after a write to memory that is not its own."""

    broken = False

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if self.broken:
            print("something is broken here", flush=True)
            ctypes.string_at(0)
        self.broken = program.inputs[0].type == "float16"
        return super().compute(program, arrays)


class Counts(Right):
    """Every second case of its process is wrong."""

    cases = 0

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        self.cases += 1
        answer = super().compute(program, arrays)
        return answer if self.cases % 2 else answer[None]


class Searches(Right):
    """Answers with the first expected value that it finds anywhere in its process, and refuses where there is none."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        from opconform.cases.batch import Batch, Bounds, Expectation, Option

        wanted = (Batch, Bounds, Expectation, Option)
        frame, held = sys._getframe(), []
        while frame is not None:
            held += list(frame.f_locals.values())
            frame = frame.f_back  # type: ignore[assignment]
        found = [one for one in (*gc.get_objects(), *held) if isinstance(one, wanted)]
        if found:
            raise ValueError(f"{len(found)} expectations found")
        return super().compute(program, arrays)


class FailsInAPhase(Right):
    """Does what `FAKE_FAULT` says in the phase that `FAKE_PHASE` names, at cases of shape (7,) with more than one run.

    In all other phases it is right, but for the second run of a program that is to be confirmed, which is wrong.
    """

    prepared: Counter[str]

    def __init__(self) -> None:
        self.prepared = Counter()
        self.fail_in("opening")

    def version(self) -> str:
        self.fail_in("describing")
        return super().version()

    def prepare(self, program: Program) -> Prepared:
        concerned = program.inputs[0].dims == (7,)
        if concerned:
            self.fail_in("preparing")
            self.prepared[program.key] += 1
        if ("axes", (2,)) in {(a.name, a.value) for a in program.attributes}:
            self.fail_in("sibling")
        return WrongInTheEnd(self, program, self.prepared[program.key]) if concerned else super().prepare(program)

    def fail_in(self, phase: str) -> None:
        if os.environ["FAKE_PHASE"] == phase:
            FAULTS[os.environ["FAKE_FAULT"]]()


@dataclass
class WrongInTheEnd(Prepared):
    """Right at the first run, wrong at the others: what is wrong is confirmed on a program prepared anew."""

    runner: FailsInAPhase
    program: Program
    number: int
    runs: int = 0

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        self.runs += 1
        self.runner.fail_in("running")
        if self.number > 1:
            self.runner.fail_in("confirming")
        (answer,) = super().run(inputs)
        return [answer + (50 if self.runs > 1 else 0)]


class ClaimsMuch(Right):
    """Answers with an array of half a terabyte that takes no memory here, of a type that is none of ours."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if arrays[0] is not None and arrays[0].dtype == np.float16:
            return np.broadcast_to(np.longdouble(1), (1 << 35,))
        return super().compute(program, arrays)


class AnswersTooMuch(Right):
    """Answers with more bytes than a message may have."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if arrays[0] is not None and arrays[0].dtype == np.float16:
            return np.zeros((257 << 20), np.uint8)
        return super().compute(program, arrays)
