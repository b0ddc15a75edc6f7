"""Backends that go wrong at one case: they break their process, keep something in it, or answer otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import itertools
import math
import os
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opconform.cases.elements import Array
from opconform.cases.errors import CaseIdError, OpconformError, ProgramError
from opconform.cases.program import Program
from opconform.cases.runner import NotInstalled, Unsupported
from opconform.runners.execution import host
from opconform.runners.pool import WorkerStartError, wire
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


class DiesTogether(Right):
    """Dies where it runs a float16 program together with others; at two float32 programs it raises."""

    def run_together(self, runs: Sequence[tuple[Program, Sequence[Array]]]) -> Sequence[Sequence[Array]]:
        types = [program.inputs[0].type for program, _ in runs if program.inputs[0] is not None]
        if "float16" in types:
            os.abort()
        if types.count("float32") > 1:
            raise RuntimeError("two of float32")
        return [self.prepare(program).run(inputs) for program, inputs in runs]


class InfersAlone(Right):
    """Infers what programs mean, and dies if it has to run any, as a subclass of a backend that runs them together."""

    kind = "infer"

    def prepare(self, program: Program) -> InfersAlone:
        return self

    def run(self, inputs: Sequence[Array]) -> list[str]:
        return ["float32[]"]

    def run_together(self, runs: Sequence[tuple[Program, Sequence[Array]]]) -> Sequence[Sequence[Array]]:
        os.abort()


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


class _OddArray(np.ndarray):  # type: ignore[type-arg]
    """An array whose methods do something else."""

    def tobytes(self, *_: object, **__: object) -> bytes:
        return b"odd"

    def copy(self, *_: object, **__: object) -> Any:
        raise RuntimeError


ODD_ANSWERS = {
    "no-words": _unspeakable,
    "long-words": _long_exception,
    "2^40-elements": lambda: np.broadcast_to(np.float16(1), (1 << 40,)),
    "2^40-objects": lambda: np.broadcast_to(np.array(None, object), (1 << 40,)),
    "long-dtype": lambda: np.zeros(1, [("x" * (20 << 20), "f4")]),
    "many-outputs": lambda: [np.zeros(1, np.float16)] * 100_000,  # type: ignore[return-value]
    "a-text": lambda: "x" * (20 << 20),  # type: ignore[return-value]
    "itself": lambda: Right,  # type: ignore[return-value]
    "64-dimensions": lambda: np.zeros((1,) * 64, np.float16),
    "61-dimensions": lambda: np.zeros((1,) * 61, np.float16),
    "60-dimensions": lambda: np.zeros((1,) * 60, np.float16),
    "subclass": lambda: np.zeros((), np.float16).view(_OddArray),
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


class DiesWhenUsedAgain(Right):
    """Dies at every second run, at every `FAKE_PERIOD`-th, or at every second preparation, of its process."""

    runs = 0
    preparations = 0

    def prepare(self, program: Program) -> Prepared:
        self.preparations += 1
        if os.environ["FAKE_PERIOD"] == "prepare" and self.preparations % 2 == 0:
            ctypes.string_at(0)
        return super().prepare(program)

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        self.runs += 1
        period = os.environ["FAKE_PERIOD"]
        if period.isdigit() and self.runs % int(period) == 0:
            ctypes.string_at(0)
        return super().compute(program, arrays)


class WrongTogether(Right):
    """Answers wrong where programs run together; alone, the third run of float32 ends its process."""

    runs = 0

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        self.runs += program.given[0].type == "float32"
        if self.runs == 3:
            ctypes.string_at(0)
        return super().compute(program, arrays)

    def run_together(self, runs: Sequence[tuple[Program, Sequence[Array]]]) -> Sequence[Sequence[Array]]:
        return [[np.full((), 50, inputs[0].dtype)] for _, inputs in runs]


class DiesOnce(Right):
    """Dies at the second run of its first process, and never again."""

    runs = 0

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        self.runs += 1
        if self.runs == 2:
            with contextlib.suppress(FileExistsError), Path(os.environ["FAKE_OPENED"]).open("x"):
                ctypes.string_at(0)
        return super().compute(program, arrays)


class _OwnError(Exception):
    """An exception whose every part is a trap."""


class _OddReason(Unsupported):
    reason = property(lambda self: object())  # type: ignore[assignment]

    def __init__(self) -> None:
        Exception.__init__(self, "odd")


class _RaisingReason(Unsupported):
    reason = property(lambda self: 1 / 0)  # type: ignore[assignment]

    def __init__(self) -> None:
        Exception.__init__(self, "raising")


class _OddText(str):
    def encode(self, *_: object, **__: object) -> bytes:
        raise RuntimeError

    def __getitem__(self, _: object) -> Any:
        return object()


class _OddWords(Exception):  # noqa: N818
    def __str__(self) -> str:
        return _OddText("odd words")


class _Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError


class _OfNoNameError(Exception, metaclass=_Nameless):
    """Its class has no name to tell."""


RAISED: dict[str, Callable[[], BaseException]] = {
    "OpconformError": lambda: OpconformError("mine"),
    "CaseIdError": lambda: CaseIdError("mine"),
    "ProgramError": lambda: ProgramError("mine"),
    "NotInstalled": lambda: NotInstalled("mine"),
    "WorkerStartError": lambda: WorkerStartError("died", "mine"),
    "Unreadable": lambda: host.Unreadable("mine"),
    "Corrupt": lambda: wire.Corrupt("mine"),
    "StopIteration": lambda: StopIteration(3),
    "RecursionError": lambda: RecursionError("mine"),
    "odd-words": _OddWords,
    "no-name": _OfNoNameError,
    "odd-reason": _OddReason,
    "raising-reason": _RaisingReason,
    "unknown-reason": lambda: Unsupported("mine", "because"),  # type: ignore[arg-type]
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": lambda: SystemExit(0),
    "GeneratorExit": GeneratorExit,
    "BaseException": lambda: BaseException("mine"),
    "CancelledError": asyncio.CancelledError,
    "ProcessLost": lambda: wire.ProcessLost(0),
}


class Raises(Right):
    """Raises what FAKE_RAISED names at a float16 case, as it prepares if FAKE_PHASE says so."""

    def prepare(self, program: Program) -> Prepared:
        if program.inputs[0].type == "float16" and os.environ.get("FAKE_PHASE") == "preparing":
            raise RAISED[os.environ["FAKE_RAISED"]]()
        return super().prepare(program)

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if program.inputs[0].type == "float16":
            raise RAISED[os.environ["FAKE_RAISED"]]()
        return super().compute(program, arrays)


class StopsItsJudge(Right):
    """Stops the process that judges it at a float16 case, and `FAKE_OPENED` says whether it has done so before."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if program.inputs[0].type == "float16":
            with contextlib.suppress(FileExistsError), Path(os.environ["FAKE_OPENED"]).open("x"):
                template = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(") ")[2].split()[1])
                os.kill(template, signal.SIGSTOP)
        return super().compute(program, arrays)


class HasChildren(Right):
    """Keeps 300 MiB in a child process at a float16 case."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if program.inputs[0].type == "float16":
            held = "import time; held = bytearray(b'x' * (300 << 20)); time.sleep(60)"
            subprocess.run([sys.executable, "-c", held], check=False)
        return super().compute(program, arrays)


# Backends that go wrong on a trigger, of which the smallest case that sets it off is known


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


# Backends whose answers are right when they are given, and which do something else as well


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
