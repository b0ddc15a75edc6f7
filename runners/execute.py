"""What a worker does: takes cases from a source, puts them to its backend, and judges what comes back."""

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

from ..cases.lanes import CaseGroup, Lane, rows_of_bytes
from ..cases.model import Case
from ..cases.results import Outcome, Result
from ..cases.runner import Describes, NotInstalled, Runner
from ..cases.source import CaseSource, GroupSource
from .attaching import NOTHING, Attach, Attached, AttachLanes, attachment, lanes_attached, last_lines, text_of
from .judge import Refusal, Verdict, judge_answer, judge_refusal
from .lanes import LaneVerdicts, judge_lanes
from .pool_wire import Phase
from .programs import Prepared, Programs
from .registry import BackendSpec, open_runner
from .side_by_side import Answer, Block, run_block

__all__ = ["ABOUT", "Assignment", "Attach", "Isolation", "Worker"]

Isolation: TypeAlias = Literal["program", "case"]
"""What shares a worker process: the cases that come to it, a program's together; or nothing, a case has its own."""

ABOUT = "@about"
"""The key that asks a worker what its backend is, instead of a case."""

_OBJECTS_BETWEEN_COLLECTIONS = 50_000
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


@dataclass(frozen=True, slots=True)
class _Judged:
    """A verdict, the answer that it is about, and whether the program had run before."""

    verdict: Verdict
    answer: Answer
    shared: bool


@dataclass
class _Proof:
    """A program that only failures were run on, those of the program `key`; how many showed on a fresh one."""

    key: str
    prepared: Prepared
    shown: int


@dataclass(frozen=True)
class _Known:
    """What is known of a case before its turn: its answer, in so many seconds; the rest where it was found already.

    `verdict` returns what is found at less cost than by judging the answer by itself, or None.
    """

    answer: Answer
    seconds: float
    verdict: Callable[[], Verdict | None] = lambda: None
    digests: tuple[str, str] | None = None
    attached: Mapping[str, str] = field(default_factory=dict)


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

    def run(self, keys: Sequence[str], begin: Callable[[int, Phase], None]) -> Iterator[bytes]:
        """Yield a record for each case id: the result's line of JSON and, if there are any, a TAB and its attachments.

        Attachments are a JSON object, by name. `begin` tells the pool what is being done.
        """
        begin(0, "prepare")
        if list(keys) == [ABOUT]:
            yield self._about()
            return
        index, found = 0, self._groups(keys)
        while index < len(keys):
            try:
                group = next(found)
            except Exception:  # our side: said as such, and the other cases go on
                found = self._groups(keys[index + 1 :])
                yield self._ours(keys[index]).to_json()
                index += 1
                continue
            if isinstance(group, Case):
                yield self._record(group, partial(begin, index))
                index += 1
            else:
                yield from self._records(group, partial(_later, begin, index) if index else begin)
                index += len(group)

    def _groups(self, keys: Sequence[str]) -> Iterator[CaseGroup | Case]:
        """Yield what a source offers: cases side by side, or one by one."""
        return self.source.groups(keys) if isinstance(self.source, GroupSource) else self.source.cases(keys)

    def _records(self, group: CaseGroup, begin: Callable[[int, Phase], None]) -> Iterator[bytes]:
        """Yield the records of a group's cases, run and judged side by side where there are several."""
        start = 0
        while start < len(group):
            block, refusal = Block(start), None
            if len(group) - start > 1 and group.expectation.options:
                block, refusal = self._block(group, start, begin)
            if refusal is not None:
                yield from self._refused(group.part(start, len(group)), refusal)
                return
            if len(block):
                stop = start + len(block)
                yield from self._judged_block(group.part(start, stop), block, partial(_later, begin, start))
                start = stop
            else:
                yield self._record(group.lane(start), partial(begin, start))
                start += 1

    def _block(self, group: CaseGroup, start: int, begin: Callable[[int, Phase], None]) -> tuple[Block, Refusal | None]:
        """Run cases of a group, unless their program is refused; those of no block are for running alone."""
        begin(start, "prepare")
        began = time.perf_counter()
        try:
            prepared = self._programs.prepared(group.program)
        except Exception:  # which the case that runs alone will tell
            return Block(start), None
        if prepared.executable is None:
            return Block(start), prepared.refusal
        preparing = time.perf_counter() - began
        block = run_block(group, start, prepared.executable.run, self._programs.refused, begin)
        prepared.runs += len(block)
        if len(block):
            block.seconds[0] += preparing
        return block, None

    def _refused(self, group: CaseGroup, refusal: Refusal) -> Iterator[bytes]:
        """Yield the records of valid cases whose program is refused; where the same options apply, alike."""
        known: dict[bytes, Verdict] = {}
        patterns = rows_of_bytes(group.expectation.patterns)
        for lane, pattern in enumerate(patterns):
            if pattern not in known:
                expectation = group.expectation.of(lane)
                known[pattern] = judge_refusal(expectation, refusal, mended_ran=True, required=self.required)
        digests = zip(group.digests, group.expectation.digests, strict=True)
        for text, pattern, pair in zip(group.ids, patterns, digests, strict=True):
            yield self._result(text, group.clauses, known[pattern], pair, 0.0).to_json()

    def _judged_block(self, group: CaseGroup, block: Block, begin: Callable[[int, Phase], None]) -> Iterator[bytes]:
        """Judge what was answered side by side; what does not pass is proved by itself."""
        begin(len(group) - 1, "prepare")
        if not block.outputs:
            for place in range(len(group)):
                known = _Known(block.answer(place), block.seconds[place])
                yield self._record(group.lane(place), partial(begin, place), known)
            return
        try:
            verdicts = judge_lanes(group.expectation, block.outputs, self.required)
            attached = {n: t for n, make in self.attach.items() if (t := lanes_attached(make, group, verdicts))}
            digests = list(zip(group.digests, group.expectation.digests, strict=True))
        except Exception:  # the judge failed, not the backend
            yield from (self._ours(text).to_json() for text in group.ids)
            return
        for place, text in enumerate(group.ids):
            if verdicts.passing[place] is None or place in block.odd:
                known = self._known(block, place, verdicts, digests[place], attached)
                yield self._record(group.lane(place), partial(begin, place), known)
                continue
            verdict, seconds = verdicts.verdict(place), block.seconds[place]
            result = self._result(text, group.clauses, verdict, digests[place], seconds)
            beside = {name: text_of(one) for name, every in attached.items() if (one := every[place]) is not None}
            yield _record_of(result, beside)

    def _known(
        self,
        block: Block,
        place: int,
        verdicts: LaneVerdicts,
        digests: tuple[str, str],
        every: Mapping[str, Sequence[Attached | None]],
    ) -> _Known:
        """Return what is known of a lane that does not pass."""
        known = _Known(block.answer(place), block.seconds[place], digests=digests)
        if place in block.odd:
            return known
        found = {name: every[name][place] if name in every else None for name in self._laned}
        attached = {name: NOTHING if one is None else text_of(one) for name, one in found.items()}
        return replace(known, verdict=partial(verdicts.failing, place), attached=attached)

    @functools.cached_property
    def _programs(self) -> Programs:
        return Programs(self.runner, self.name)

    @functools.cached_property
    def _laned(self) -> frozenset[str]:
        """The attachments that are made side by side, whatever the verdict."""
        return frozenset(name for name, make in self.attach.items() if isinstance(make, AttachLanes))

    def _about(self) -> bytes:
        facts = self.runner.describe() if isinstance(self.runner, Describes) else {}
        told = {"version": str(self.runner.version()), "standards": list(self.runner.standards), "facts": dict(facts)}
        return json.dumps(told).encode()

    def _ours(self, key: str) -> Result:
        return Result(key, self.name, Outcome.RUNNER_ERROR, detail=last_lines(traceback.format_exc()))

    def _record(self, case: Case | Lane, begin: Callable[[Phase], None], known: _Known | None = None) -> bytes:
        """Return the record of a case, which is run unless its answer is known."""
        started = time.perf_counter() - (known.seconds if known else 0.0)
        try:
            judged = self._verdict(case, begin) if known is None else self._judged(case, known.answer, known.verdict())
            if judged.shared and judged.verdict.outcome in _CONFIRMED:
                judged = self._confirmed(case, judged if known else _apart(judged), begin)
        except NotInstalled as error:  # nothing was put to the backend
            return Result(case.id, self.name, Outcome.RUNNER_ERROR, detail=str(error)).to_json()
        except Exception:  # the judge or the source failed, not the backend
            return self._ours(case.id).to_json()
        digests = (known.digests if known else None) or (case.digest, case.expectation_digest)
        result = self._result(case.id, case.clauses, judged.verdict, digests, time.perf_counter() - started)
        if not self.attach or isinstance(judged.answer, Refusal):
            return result.to_json()
        begin("prepare")  # the backend has done its part
        told = known.attached if known and judged.answer is known.answer else {}
        texts = {n: told.get(n) or _attached(m, case, judged) for n, m in self.attach.items()}
        return _record_of(result, {name: text for name, text in texts.items() if text != NOTHING})

    def _result(
        self, case: str, clauses: tuple[str, ...], verdict: Verdict, digests: tuple[str, str], seconds: float
    ) -> Result:
        return Result(
            case,
            self.name,
            verdict.outcome,
            verdict.behaviour,
            verdict.reason,
            verdict.detail,
            verdict.bound_ratio,
            verdict.level,
            clauses,
            *digests,
            round(seconds, 7),
        )

    def _verdict(self, case: Case | Lane, begin: Callable[[Phase], None], before: _Judged | None = None) -> _Judged:
        """Run a case and judge it; `before` is what came of it before, and holds for an answer of the same bits."""
        mended_ran = self._mended_ran(case, begin) if case.expectation.invalid else True
        begin("prepare")
        prepared = self._programs.prepared(case.program)
        begin("run")
        shared = prepared.runs > 0
        answer = self._programs.answer(prepared, case.inputs)
        if before is not None and _same(answer, before.answer):
            return before
        return self._judged(case, answer, shared=shared, mended_ran=mended_ran)

    def _judged(
        self,
        case: Case | Lane,
        answer: Answer,
        verdict: Verdict | None = None,
        *,
        shared: bool = True,
        mended_ran: bool = True,
    ) -> _Judged:
        if verdict is not None:
            pass
        elif isinstance(answer, Refusal):
            verdict = judge_refusal(case.expectation, answer, mended_ran=mended_ran, required=self.required)
        else:
            verdict = judge_answer(case.expectation, answer, self.required)
        return _Judged(verdict, answer, shared)

    def _confirmed(self, case: Case | Lane, judged: _Judged, begin: Callable[[Phase], None]) -> _Judged:
        """Run a failure again on a program of its own; what only a used program does wrong is a finding of its own.

        Where the first failures of a program were the same to the bit on fresh ones, one that has run nothing but
        failures is proof enough, unless it answers otherwise.
        """
        key, proof = case.program.key, self._proof
        proof = proof if proof is not None and proof.key == key else None
        if proof is not None and proof.shown >= _PROVEN:
            begin("run")
            if _same(self._programs.answer(proof.prepared, case.inputs), judged.answer):
                return judged
        used = self._programs.taken_out(key)
        fresh = self._verdict(case, begin, judged)
        if fresh is judged and used is not None and (prepared := self._programs.taken_out(key)):
            self._proof = _Proof(key, prepared, proof.shown + 1 if proof else 1)
            self._programs.put_back(key, used)
            return judged
        self._proof = None
        if fresh.verdict.outcome is Outcome.PASS:
            detail = f"only on a program that ran before, state leaks between runs: {judged.verdict.detail}"
            return replace(judged, verdict=replace(judged.verdict, detail=detail))
        return fresh

    def _mended_ran(self, case: Case | Lane, begin: Callable[[Phase], None]) -> bool:
        """Return whether the backend answers the valid case that `case` is a damaged copy of."""
        if case.mended is None:
            return False
        if case.mended not in self._ran:
            begin("sibling")
            sibling = self.source.case(case.mended)
            prepared = self._programs.prepared(sibling.program)
            self._ran[case.mended] = not isinstance(self._programs.answer(prepared, sibling.inputs), Refusal)
        return self._ran[case.mended]


def _record_of(result: Result, attached: Mapping[str, str]) -> bytes:
    """Return a result's record: its line and, if there are any, a TAB and its attachments, by name as JSON texts."""
    if not attached:
        return result.to_json()
    told = ",".join(f"{json.dumps(name)}:{text}" for name, text in attached.items())
    return b"%b\t{%b}" % (result.to_json(), told.encode())


def _attached(make: Attach, case: Case | Lane, judged: _Judged) -> str:
    answer = [] if isinstance(judged.answer, Refusal) else judged.answer
    return attachment(make, case if isinstance(case, Case) else case.case, judged.verdict, answer)


def _apart(judged: _Judged) -> _Judged:
    """Return the same with an answer of its own memory, which a program may use again."""
    if isinstance(judged.answer, Refusal):
        return judged
    return replace(judged, answer=[output.copy() for output in judged.answer])


def _same(answer: Answer, other: Answer) -> bool:
    """Return whether two answers are the same to the bit."""
    if isinstance(answer, Refusal) or isinstance(other, Refusal) or len(answer) != len(other):
        return False
    pairs = list(zip(answer, other, strict=True))
    if any(a.dtype != b.dtype or a.dtype.hasobject or a.shape != b.shape for a, b in pairs):
        return False
    return all(a.tobytes() == b.tobytes() for a, b in pairs)


def _later(begin: Callable[[int, Phase], None], places: int, place: int, phase: Phase) -> None:
    begin(places + place, phase)
