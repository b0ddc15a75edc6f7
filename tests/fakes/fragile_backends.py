"""Backends that break their process, or keep something in it, at one case and show it at another."""

from __future__ import annotations

import ctypes
import gc
import itertools
import math
import os
import struct
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opconform.cases.elements import Array
from opconform.cases.program import Program
from opconform.runners import host
from opconform.runners.pool import wire
from opconform.runners.pool.wire import Frame

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
            return np.zeros((129 << 20), np.uint8)
        return super().compute(program, arrays)


def local(name: str) -> Any:
    """Return what a function that is under way below has under this name; the process's own things are there."""
    frame = sys._getframe()
    while name not in frame.f_locals:
        frame = frame.f_back  # type: ignore[assignment]
    return frame.f_locals[name]


class ReportsProgress(Right):
    """Hangs at a float16 case, while a thread notes on the board of the process that the work goes on."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if program.inputs[0].type == "float16":
            board = local("board")
            place = board.read()
            for turn in itertools.count():
                board.note(place.batch, place.position, ("run", "prepare")[turn % 2])
                time.sleep(0.01)
        return super().compute(program, arrays)


class WritesMessages(Right):
    """Writes a message of its own to its channel at a float16 case: FAKE_FRAME names it."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if program.inputs[0].type == "float16":
            channel, place = local("channel"), local("board").read()
            frames = {
                "raised-short": Frame(wire.RAISED, place.batch, place.position, 2, b"x"),
                "raised-nan": Frame(wire.RAISED, place.batch, place.position, 77, struct.pack("<d", math.nan)),
                "no-records": Frame(wire.RECORDS, place.batch, place.position, 0),
                "empty-record": Frame(wire.RECORDS, place.batch, place.position, 1, bytes(4)),
                "no-json": Frame(wire.RECORDS, place.batch, place.position, 1, struct.pack("<I", 3) + b"\xff\xfe{"),
                "deep": Frame(wire.RECORDS, place.batch, place.position, 1, struct.pack("<I", 9000) + 9000 * b"\x91"),
                "too-many": Frame(wire.RECORDS, place.batch, place.position, (1 << 32) - 1, b""),
                "ready": Frame(wire.READY),
                "failed": Frame(wire.FAILED, payload=b"X\nY"),
                "unknown": Frame(99, 1, 2, 3, b"z"),
            }
            channel.send(frames[os.environ["FAKE_FRAME"]])
        return super().compute(program, arrays)


class UnspeakableError(Exception):
    """An exception that cannot be told."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def _unspeakable() -> Array:
    raise UnspeakableError


def _long_exception() -> Array:
    raise type("E" * (20 << 20), (Exception,), {})("x" * (20 << 20))


ODD_ANSWERS = {
    "no-words": _unspeakable,
    "long-words": _long_exception,
    "2^40-elements": lambda: np.broadcast_to(np.float16(1), (1 << 40,)),
    "2^40-objects": lambda: np.broadcast_to(np.array(None, object), (1 << 40,)),
    "long-dtype": lambda: np.zeros(1, [("x" * (20 << 20), "f4")]),
    "many-outputs": lambda: [np.zeros(1, np.float16)] * 100_000,  # type: ignore[return-value]
    "a-text": lambda: "x" * (20 << 20),  # type: ignore[return-value]
    "itself": lambda: Right,  # type: ignore[return-value]
}


class AnswersOddly(Right):
    """Answers, or fails to, at a float16 case in the way that FAKE_ANSWER names."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if program.inputs[0].type == "float16":
            return ODD_ANSWERS[os.environ["FAKE_ANSWER"]]()
        return super().compute(program, arrays)


class OpensOnce(Right):
    """Ends its process at a float16 case, and can be opened twice: for the run and its judge."""

    def __init__(self) -> None:
        opened = Path(os.environ["FAKE_OPENED"])
        with opened.open("a") as file:
            file.write("x")
        if len(opened.read_text()) > 1:
            raise OSError("the device is gone")

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if program.inputs[0].type == "float16":
            os.abort()
        return super().compute(program, arrays)


class SpoilsItsProcess(Right):
    """What the host does after the second run fails, as after a run that wrote where it must not."""

    runs = 1

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if self.runs <= 0:
            setattr(host, "_Answer", None)  # noqa: B010 - mypy
        self.runs -= 1
        return super().compute(program, arrays)


class FailsInItsHost(SpoilsItsProcess):
    """The same after the first run."""

    runs = 0
