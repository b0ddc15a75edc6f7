"""What a worker does: takes cases from a source, runs them on its backend, and judges what comes back."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias

from ..cases.batch import Batch
from ..cases.elements import Array
from ..cases.results import Outcome, Result
from ..cases.runner import Describes, NotInstalled, Runner
from ..cases.source import CaseSource
from .answers import Answered, Answers, GatheredAnswers, Refusal, same_answer
from .attaching import Attach, attachments, last_lines
from .judge import Verdict, asks_again, judge
from .pool_wire import Phase
from .programs import Prepared, Programs
from .registry import BackendSpec, open_runner

__all__ = ["ABOUT", "Assignment", "Attach", "Isolation", "Worker"]

Isolation: TypeAlias = Literal["program", "case"]
"""What shares a worker process: the cases that come to it, a program's together; or nothing, a case has its own."""

ABOUT = "@about"
"""The key that asks a worker what its backend is, instead of a case."""

_OBJECTS_BETWEEN_COLLECTIONS = 50_000
_SECONDS = 0.05
"""After which what has been answered is judged, so that results keep coming from a slow backend."""
_PROVEN = 3
"""The failures of a program that are confirmed each on a fresh one, before one fresh program is for all others."""
_CONFIRMED = frozenset({Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.ERROR})


@dataclass(frozen=True)
class Assignment:
    """What a worker is for; picklable.

    `required`: silences that the user has answered. `attach`: what makes the attachments of a result, by their names.
    """

    backend: BackendSpec
    source: CaseSource
    required: Mapping[str, str] = field(default_factory=dict)
    attach: Mapping[str, Attach] = field(default_factory=dict)
    isolation: Isolation = "program"

    def warm(self) -> None:
        """Import what a worker needs of the backend and may be forked after, in the process that workers come from."""
        for module in ("numpy.random", *self.backend.preload):  # NumPy imports the former when it is asked for it
            with contextlib.suppress(Exception):  # the worker will tell
                importlib.import_module(module, __package__)

    def __call__(self) -> Worker:
        """Open the backend, in the worker. Raises NotInstalled and whatever importing a user's module raises."""
        runner = open_runner(self.backend)
        gc.freeze()  # what is imported stays: no need to look through it again and again
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
        required = MappingProxyType(dict(self.required))
        return Worker(runner, self.backend.name, self.source, required, self.attach)


Begin: TypeAlias = Callable[[int, Phase], None]


@dataclass
class _Turn:
    """The answers to the first cases of a batch, in so many seconds each; of those that our side failed, what it said.

    `used_from`: the first case that ran on a program that had run before. `mended_ran`: whether the valid sibling of
    invalid cases was answered.
    """

    answers: Answers
    seconds: list[float]
    ours: dict[int, str] = field(default_factory=dict)
    used_from: int = 0
    mended_ran: bool = True


@dataclass
class _Proof:
    """A program that only failures were run on, those of the program `key`; how many showed on a fresh one."""

    key: str
    prepared: Prepared
    shown: int


@dataclass
class Worker:
    """One backend in one process. Programs are prepared once and shared by the cases that follow each other."""

    runner: Runner
    name: str
    source: CaseSource
    required: Mapping[str, str]
    attach: Mapping[str, Attach] = field(default_factory=dict)
    _ran: dict[str, bool] = field(default_factory=dict)
    _proof: _Proof | None = None

    def run(self, keys: Sequence[str], begin: Begin) -> Iterator[bytes]:
        """Yield a record for each case id: the result's line of JSON and, if there are any, a TAB and its attachments.

        Attachments are a JSON object, by name. `begin` tells the pool what is being done.
        """
        begin(0, "prepare")
        if list(keys) == [ABOUT]:
            yield self._about()
            return
        index, batches = 0, self.source.batches(keys)
        while index < len(keys):
            try:
                batch = next(batches)
            except Exception:  # our side: said as such, and the other cases go on
                batches = self.source.batches(keys[index + 1 :])
                yield self._ours(keys[index], _words()).to_json()
                index += 1
            else:
                yield from self._records(batch, partial(_later, begin, index))
                index += len(batch)

    def _about(self) -> bytes:
        facts = self.runner.describe() if isinstance(self.runner, Describes) else {}
        told = {"version": str(self.runner.version()), "standards": list(self.runner.standards), "facts": dict(facts)}
        return json.dumps(told).encode()

    @functools.cached_property
    def _programs(self) -> Programs:
        return Programs(self.runner, self.name)

    def _records(self, batch: Batch, begin: Begin) -> Iterator[bytes]:
        """Yield the records of a batch's cases, as many at a time as the backend answers quickly."""
        start = 0
        while start < len(batch):
            later = partial(_later, begin, start)
            turn = self._answered(batch.part(start, len(batch)), later)
            stop = start + len(turn.seconds)
            yield from self._judged(batch.part(start, stop), turn, later)
            start = stop

    # Running

    def _answered(self, batch: Batch, begin: Begin) -> _Turn:
        """Run the cases of a batch, until the last or until the time for a turn is over."""
        started, lanes, mended_ran = time.perf_counter(), len(batch), True
        try:
            if batch.expectation.invalid:
                mended_ran = self._mended_ran(batch.mended, begin)
            begin(0, "prepare")
            prepared = self._programs.prepared(batch.program)
        except Exception as error:  # nothing was given to the backend
            return _Turn(Answers(lanes), [0.0] * lanes, dict.fromkeys(range(lanes), _words(error)))
        if prepared.refusal is not None:
            seconds = [time.perf_counter() - started, *[0.0] * (lanes - 1)]
            return _Turn(
                Answers(lanes, (), dict.fromkeys(range(lanes), prepared.refusal)), seconds, {}, lanes, mended_ran
            )
        alone = asks_again(batch.expectation)
        used_from = lanes if alone else 0 if prepared.runs else 1
        gathered, seconds, before = GatheredAnswers(lanes), list[float](), started
        for lane, inputs in enumerate(_rows(batch)):
            if alone:
                self._programs.taken_out(batch.program.key)
                prepared = self._programs.prepared(batch.program)
            begin(lane, "run")
            try:
                gathered.add(lane, self._programs.answer(prepared, inputs))
            except Exception as error:
                if lane:  # what is answered is judged first
                    break
                return _Turn(Answers(1), [0.0], {0: _words(error)})
            now = time.perf_counter()
            seconds.append(now - before)
            before = now
            if now - started > _SECONDS:
                break
        return _Turn(gathered.answers(len(seconds)), seconds, {}, used_from, mended_ran)

    def _mended_ran(self, mended: str | None, begin: Begin) -> bool:
        """Return whether the backend answers the valid case that others are damaged copies of."""
        if mended is None:
            return False
        if mended not in self._ran:
            begin(0, "sibling")
            sibling = self.source.case(mended)
            prepared = self._programs.prepared(sibling.program)
            self._ran[mended] = not isinstance(self._programs.answer(prepared, sibling.tensors()), Refusal)
        return self._ran[mended]

    def _fresh(self, batch: Batch, lane: int, begin: Begin) -> Answered:
        """Return the answer to a case by a program that has run nothing else, which is kept."""
        self._programs.taken_out(batch.program.key)
        begin(lane, "prepare")
        prepared = self._programs.prepared(batch.program)
        begin(lane, "run")
        return self._programs.answer(prepared, batch.tensors(lane))

    # Judging

    def _judged(self, batch: Batch, turn: _Turn, begin: Begin) -> Iterator[bytes]:
        """Yield the records of cases that have been run; failures are proved on a program of their own."""
        lanes = range(len(batch))
        begin(lanes[-1], "prepare")
        attached: list[dict[str, str]] = [{} for _ in lanes]
        verdicts: list[Verdict] = []
        if not turn.ours:
            try:
                verdicts = self._verdicts(batch, turn, begin)
                begin(lanes[-1], "prepare")  # the backend has done its part
                attached = attachments(self.attach, batch, turn.answers, verdicts)
                digests = list(zip(batch.digests, batch.expectation_digests, strict=True))
            except Exception:  # the judge or the source failed, not the backend
                turn.ours = dict.fromkeys(lanes, _words())
        for lane, text in enumerate(batch.ids):
            if lane in turn.ours:
                yield self._ours(text, turn.ours[lane]).to_json()
                continue
            v, seconds = verdicts[lane], round(turn.seconds[lane], 7)
            told = (
                v.outcome,
                v.behaviour,
                v.reason,
                v.detail,
                v.bound_ratio,
                v.level,
                batch.clauses,
                *digests[lane],
                seconds,
            )
            yield _record(Result(text, self.name, *told), attached[lane])

    def _verdicts(self, batch: Batch, turn: _Turn, begin: Begin) -> list[Verdict]:
        """Return the verdicts on the answers of a turn, in which those that fresh programs give take their places."""
        again = None
        if asks_again(batch.expectation):
            again = Answers.of([self._fresh(batch, lane, begin) for lane in range(len(batch))])
        verdicts = judge(batch, turn.answers, self.required, mended_ran=turn.mended_ran, again=again)
        others: dict[int, Answered] = {}
        for lane, verdict in enumerate(verdicts):
            answer = turn.answers.answer(lane)
            if verdict.outcome not in _CONFIRMED or answer is None or lane < turn.used_from:
                continue
            started = time.perf_counter()
            try:
                verdicts[lane], found = self._confirmed(batch.case(lane), verdict, answer, partial(_later, begin, lane))
            except Exception as error:
                turn.ours[lane] = _words(error)
                continue
            if found is not answer:
                others[lane] = found
            turn.seconds[lane] += time.perf_counter() - started
        turn.answers = turn.answers.replaced(others)
        return verdicts

    def _confirmed(self, case: Batch, verdict: Verdict, answer: Answered, begin: Begin) -> tuple[Verdict, Answered]:
        """Run a failure again on a program of its own; what only a used program does wrong is a finding of its own.

        Where the first failures of a program were the same to the bit on fresh ones, one that has run nothing but
        failures is proof enough, unless it answers otherwise.
        """
        key, proof = case.program.key, self._proof
        proof = proof if proof is not None and proof.key == key else None
        if proof is not None and proof.shown >= _PROVEN:
            begin(0, "run")
            if same_answer(self._programs.answer(proof.prepared, case.tensors()), answer):
                return verdict, answer
        used = self._programs.taken_out(key)
        fresh = self._fresh(case, 0, begin)
        if same_answer(fresh, answer) and used is not None and (prepared := self._programs.taken_out(key)):
            self._proof = _Proof(key, prepared, proof.shown + 1 if proof else 1)
            self._programs.put_back(key, used)
            return verdict, answer
        self._proof = None
        mended_ran = case.mended is None or self._ran.get(case.mended, False)
        (found,) = judge(case, Answers.of([fresh]), self.required, mended_ran=mended_ran)
        if found.outcome is Outcome.PASS:
            detail = f"only on a program that ran before, state leaks between runs: {verdict.detail}"
            return replace(verdict, detail=detail), answer
        return found, fresh

    def _ours(self, case: str, words: str) -> Result:
        return Result(case, self.name, Outcome.RUNNER_ERROR, detail=words)


def _words(error: Exception | None = None) -> str:
    """Return what is told of a failure of our side, which is being handled."""
    return str(error) if isinstance(error, NotInstalled) else last_lines(traceback.format_exc())


def _rows(batch: Batch) -> Iterator[Sequence[Array]]:
    """Yield the inputs of each case, without lanes."""
    lanes = range(len(batch))
    columns = (array if array.ndim > 1 else [array[lane, ...] for lane in lanes] for array in batch.inputs)
    return zip(*columns, strict=True) if batch.inputs else iter([()] * len(lanes))


def _record(result: Result, attached: Mapping[str, str]) -> bytes:
    """Return a result's record: its line and, if there are any, a TAB and its attachments, by name as JSON texts."""
    if not attached:
        return result.to_json()
    told = ",".join(f"{json.dumps(name)}:{text}" for name, text in attached.items())
    return b"%b\t{%b}" % (result.to_json(), told.encode())


def _later(begin: Begin, places: int, place: int, phase: Phase) -> None:
    begin(places + place, phase)
