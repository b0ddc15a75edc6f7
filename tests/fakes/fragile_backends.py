"""Backends that break their process, or keep something in it, at one case and show it at another."""

from __future__ import annotations

import ctypes
import gc
import os
import sys

from opconform.cases.elements import Array
from opconform.cases.program import Program

from .backends import Right


class BreaksTheNext(Right):
    """After a float16 case the next case of its process falls, as after a write to memory that is not its own."""

    broken = False

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if self.broken:
            print("something is broken here", flush=True)
            ctypes.string_at(0)
        self.broken = program.inputs[0].type == "float16"
        return super().compute(program, arrays)


class TellsItsProcess(Right):
    """Its version is its process."""

    def version(self) -> str:
        return str(os.getpid())


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
        from opconform.cases.batch import Batch
        from opconform.cases.expectation import Bounds, Expectation, Option

        wanted = (Batch, Bounds, Expectation, Option)
        frame, held = sys._getframe(), []
        while frame is not None:
            held += list(frame.f_locals.values())
            frame = frame.f_back  # type: ignore[assignment]
        found = [one for one in (*gc.get_objects(), *held) if isinstance(one, wanted)]
        if found:
            raise ValueError(f"{len(found)} expectations found")
        return super().compute(program, arrays)
