"""The work of a worker: it takes cases from a source, asks a host to run them, and judges the answers.

The backend runs in the host's process, never in this one, which knows the expected values.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

from ...cases.batch import Batch, CaseSource
from ...cases.elements import Array
from ...cases.errors import OpconformError
from ...cases.results import Outcome, Result
from ...cases.runner import BackendKind
from ..judging.answers import Answer, Answered, Answers, GatheredAnswers, Refusal, same_answer
from ..judging.judge import WRONG, Verdict, asks_again, judge
from ..pool import Limits, Loss, LossKind, Phase, Stray, WorkerStartError
from ..registry import BackendSpec, backend_spec
from .converting import Conversions, ReadsModels
from .host import (
    WORDS_KEPT,
    Freshness,
    Hosts,
    Isolation,
    OurFailure,
    Reply,
    Request,
    SideEffect,
    Unfit,
    collect_less,
    import_early,
)

__all__ = ["ABOUT", "Assignment", "Attach", "Isolation", "Worker"]

ABOUT = "@about"
"""The key that asks a worker to describe its backend, instead of a case."""

UNFIT = b"@unfit "
"""Begins a record that ends the run: the backend's runner does not fit its library. The rest is the message."""

Begin: TypeAlias = Callable[[int, Phase], None]

_OUTPUTS = "outputs"
_SECONDS = 0.05
"""Seconds after which the answers so far are judged, so that a slow backend's results keep coming."""
_AHEAD = 2
"""Number of blocks that a host is asked for before the first of them is judged."""
_BLOCK, _BLOCK_BYTES = 24, 1 << 20
"""Number of cases, and bytes of inputs, at which a message to the host (a block of batches) is full."""
_PROVEN = 3
"""Number of failures of a batch that each run again on a fresh program; the others then share one fresh program."""
_CONFIRMED = WRONG | {Outcome.ERROR}
_NOTED = 8
"""Number of deaths of a worker's hosts that no case explains, after which each further one is charged to its case."""
_NONE = Refusal("", unsupported=False, reason="other")
"""Stands for a missing answer, in a lane whose verdict is set elsewhere."""
_OUTCOME_OF_LOSS = {"timeout": Outcome.TIMEOUT, "raised": Outcome.RUNNER_ERROR}


@runtime_checkable
class HasMeanings(Protocol):
    """A source that also knows what programs say without being run."""

    def meaning(self, kind: BackendKind, /) -> CaseSource:
        """Return the same cases as they are for backends of this kind."""


@runtime_checkable
class HasQuestions(Protocol):
    """A source that can make a case without its expectation, which takes a fraction of the time."""

    def unanswered(self, text: str, /) -> Batch:
        """Return a case with an expectation without options. Raises CaseIdError."""


class Attach(Protocol):
    """Makes attachments of results, each strict JSON, in the worker; picklable."""

    def __call__(self, batch: Batch, answers: Answers, verdicts: Sequence[Verdict], /) -> Sequence[object]:
        """Return an attachment for each case: a value that strict JSON can hold, or None.

        Only some of the cases may have been answered; what is returned for the others is dropped. If it raises, the
        error becomes the attachment.
        """


@dataclass(frozen=True)
class Assignment:
    """The task of a worker; picklable.

    `required`: silences for which the user requires an option. `attach`: the functions that make a result's
    attachments, by name. `limits` apply to the backend's process.
    """

    backend: BackendSpec
    source: CaseSource
    required: Mapping[str, str] = field(default_factory=dict)
    attach: Mapping[str, Attach] = field(default_factory=dict)
    isolation: Isolation = "program"
    limits: Limits = field(default_factory=Limits)

    def warm(self) -> None:
        """Import what workers need, in the process that they are forked from; nothing of the backend."""
        import_early(getattr(self.source, "preload", ()))

    def __call__(self) -> Worker:
        """Open the backend in a host of the worker. Raises WorkerStartError."""
        try:
            hosts = Hosts(self.backend, self.limits, self.isolation)
        except WorkerStartError as error:
            sys.stderr.write(error.tail)  # this process's last lines are reported
            raise
        collect_less()
        kind, source, attach = hosts.about.kind, self.source, self.attach
        if kind != "run":  # what other attachments say is about values
            attach = {name: made for name, made in attach.items() if name == _OUTPUTS}
            source = source.meaning(kind) if isinstance(source, HasMeanings) else source
        models = source if isinstance(source, ReadsModels) else None
        conversions = Conversions(self._evaluator, models) if kind == "convert" else None
        return Worker(hosts, self.backend.name, source, self.required, attach, conversions)

    def _evaluator(self, name: str) -> Hosts:
        """Open a backend that runs conversions. Raises WorkerStartError, NotInstalled."""
        return Hosts(backend_spec(name), self.limits, self.isolation)


@dataclass
class PendingBatch:
    """Cases for a host to run, from position `index` among the keys on, with their requests and ids.

    `sibling`: the valid sibling of invalid cases, if the first request is for it. `places` identify the replies once
    the requests are sent.
    """

    batch: Batch
    index: int
    requests: Sequence[Request]
    ids: Sequence[str]
    sibling: str | None = None
    places: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Death:
    """The end of a worker process that no case is charged with: `case` was in progress, but passes in its own worker.

    `case` is None if it is unknown. `exit` says how the process ended, `tail` is its last output, `before` has the last
    cases that it ran before.
    """

    backend: str
    case: str | None
    kind: LossKind
    exit: str
    tail: str
    before: tuple[str, ...]


@dataclass(frozen=True)
class _Ours:
    """A case that our side could not make, with the error message."""

    key: str
    words: str


@dataclass
class _Taken:
    """The answers to the first cases of a turn, with their seconds.

    `lost` and `ours`: the cases without an answer, by lane, because the host was lost, or because our side failed.
    `first`: the lanes that ran on a program that had not run before. `together`: those that ran together with other
    programs. `effects`: side effects of runs.
    """

    answers: GatheredAnswers
    seconds: list[float] = field(default_factory=list)
    lost: dict[int, Loss] = field(default_factory=dict)
    ours: dict[int, str] = field(default_factory=dict)
    first: set[int] = field(default_factory=set)
    together: set[int] = field(default_factory=set)
    effects: dict[int, tuple[SideEffect, ...]] = field(default_factory=dict)

    def clear(self) -> None:
        """Remove the answers to all cases."""
        self.answers = GatheredAnswers(len(self.seconds))
        for recorded in (self.seconds, self.lost, self.ours, self.first, self.together, self.effects):
            recorded.clear()

    def add(self, reply: Reply) -> None:
        """Add the reply to the next case."""
        lane, answer = len(self.seconds), reply.answer
        self.seconds.append(reply.seconds)
        if isinstance(answer, Loss):
            self.lost[lane] = answer
        elif isinstance(answer, OurFailure):
            self.ours[lane] = answer.words
        if reply.first:
            self.first.add(lane)
        if reply.together:
            self.together.add(lane)
        if reply.effects:
            self.effects[lane] = reply.effects
        self.answers.add(lane, answer if isinstance(answer, Answer | Refusal) else _NONE)


@dataclass
class Worker:
    """The judge of one backend, with a host that runs it. Consecutive cases share programs."""

    hosts: Hosts
    name: str
    source: CaseSource
    required: Mapping[str, str]
    attach: Mapping[str, Attach] = field(default_factory=dict)
    conversions: Conversions | None = None
    _siblings: dict[str, Answered | Loss | OurFailure | None] = field(default_factory=dict)
    _ids: dict[int, str] = field(default_factory=dict)
    _pending: list[Stray] = field(default_factory=list)
    _untold: list[Stray] = field(default_factory=list)
    _mortal: set[str] = field(default_factory=set)
    _noted: int = 0
    _last: int = -1
    """The last place whose case has been judged, or is being judged."""
    _alone: Sequence[int] = ()
    """The later places at which the cases that are being judged run again, on a program of their own."""

    def run(self, keys: Sequence[str], begin: Begin) -> Iterator[bytes]:
        """Yield a record for each case id, in the form of `record_of`. `begin` tells the pool what is in progress."""
        begin(0, "prepare")
        if list(keys) == [ABOUT]:
            yield msgspec.json.encode(self.hosts.about)
            return
        try:
            yield from self._judged(keys, begin)
        except Unfit as error:
            yield UNFIT + str(error).encode()

    def _judged(self, keys: Sequence[str], begin: Begin) -> Iterator[bytes]:
        turns, blocks = self._turns(keys), deque[list[PendingBatch | _Ours]]()
        if self.conversions is not None:
            self.conversions.begin(keys)
        while True:
            while len(blocks) < _AHEAD and (block := self._block(turns)):
                blocks.append(block)
            if not blocks:
                return
            for turn in blocks.popleft():
                if isinstance(turn, _Ours):
                    yield self._record(Result(turn.key, self.name, Outcome.RUNNER_ERROR, detail=turn.words))
                else:
                    yield from self._judged_turn(turn, begin)

    # Asking

    def _block(self, turns: Iterator[PendingBatch | _Ours]) -> list[PendingBatch | _Ours]:
        """Ask the host for enough batches to fill a message."""
        block: list[PendingBatch | _Ours] = []
        requests: list[Request] = []
        ids: list[str] = []
        size = 0
        while len(requests) < _BLOCK and size < _BLOCK_BYTES and (turn := next(turns, None)) is not None:
            block.append(turn)
            if isinstance(turn, PendingBatch):
                requests += turn.requests
                ids += turn.ids
                size += sum(array.nbytes for array in turn.batch.inputs)
        places = self._ask(requests, ids)
        start = 0
        for turn in block:
            if isinstance(turn, PendingBatch):
                turn.places = places[start : start + len(turn.requests)]
                turn.requests = ()
                start += len(turn.places)
        return block

    def _turns(self, keys: Sequence[str]) -> Iterator[PendingBatch | _Ours]:
        """Yield batch after batch with its requests; the valid sibling of an invalid case comes first."""
        index, batches = 0, self.source.batches(keys)
        while index < len(keys):
            try:
                batch = next(batches)
                turn = self._turn(batch, index)
            except Exception as error:  # report it as our failure, and continue with the other cases
                yield _Ours(keys[index], _words(error))
                index += 1
                batches = self.source.batches(keys[index:])
            else:
                yield turn
                index += len(batch)

    def _turn(self, batch: Batch, index: int) -> PendingBatch:
        requests, ids = [], list(batch.ids)
        sibling = None if batch.valid_variant in self._siblings else batch.valid_variant
        if sibling is not None:
            make = self.source.unanswered if isinstance(self.source, HasQuestions) else self.source.case
            valid = make(sibling)  # whether it is refused matters, not what it answers
            requests.append(Request(0, valid.program, valid.tensors(), phase="sibling", together=True))
            ids.insert(0, batch.ids[0])
        fresh: Freshness = "own" if asks_again(batch.expectation) else "shared"
        together = fresh == "shared" and batch.valid_variant is None and not batch.expectation.invalid
        requests += [Request(0, batch.program, inputs, fresh, together=together) for inputs in _rows(batch)]
        for request in requests[:1] + requests[-1:]:
            _ = request.program.key  # sent with the program, so that the host need not compute the digest
        if sibling is not None:
            self._siblings[sibling] = None  # on its way
        return PendingBatch(batch, index, requests, ids, sibling)

    def _reply(self, number: int) -> Reply:
        """Return the reply to a request. Raises Unfit, after which nothing that the backend answers means anything."""
        reply = self.hosts.reply(number)
        if isinstance(reply.answer, OurFailure) and reply.answer.unfit:
            raise Unfit(reply.answer.words)
        return reply

    def _ask(self, requests: Sequence[Request], ids: Sequence[str]) -> Sequence[int]:
        places = self.hosts.ask(requests)
        self._ids |= dict(zip(places, ids, strict=True))
        for number in list(itertools.islice(self._ids, max(0, len(self._ids) - 4096))):
            del self._ids[number]
        return places

    # Judging

    def _judged_turn(self, turn: PendingBatch, begin: Begin) -> Iterator[bytes]:
        """Yield the records of a turn's cases, in groups that were answered quickly."""
        start, places = 0, turn.places
        if turn.sibling is not None:
            begin(turn.index, "sibling")
            self._siblings[turn.sibling] = self._reply(places[0]).answer
            places = places[1:]
        while start < len(turn.batch):
            later = _from(begin, turn.index + start)
            taken = self._taken(places[start:], later)
            stop = start + len(taken.seconds)
            self._last = places[stop - 1]
            yield from self._records(turn.batch.part(start, stop), taken, later)
            start = stop

    def _taken(self, places: Sequence[int], begin: Begin) -> _Taken:
        started, taken = time.perf_counter(), _Taken(GatheredAnswers(len(places)))
        for lane, number in enumerate(places):
            begin(lane, "run")
            taken.add(self._reply(number))
            if time.perf_counter() - started > _SECONDS:
                break
        return taken

    def _records(self, batch: Batch, taken: _Taken, begin: Begin) -> Iterator[bytes]:
        """Yield the records of cases that have been run; failures are confirmed on fresh programs."""
        lanes = range(len(batch))
        begin(lanes[-1], "prepare")
        attached: list[dict[str, str]] = [{} for _ in lanes]
        verdicts: list[Verdict] = []
        try:
            judged = self._verdicts if self.conversions is None else self._of_conversions
            verdicts, answers = judged(batch, taken, begin)
            begin(lanes[-1], "prepare")  # the backend's part is done
            self._charge_deaths(batch, verdicts, begin)
            begin(lanes[-1], "prepare")
            for lane, effects in taken.effects.items():
                verdicts[lane] = with_effects(verdicts[lane], effects, self._ids)
            attached = _attachments(self.attach, batch, answers, verdicts)
            for lane in (n for n, v in enumerate(verdicts) if v.outcome is Outcome.CRASH):
                attached[lane] = {}  # its answer came in a process of its own
            digests = list(zip(batch.digests, batch.expectation_digests, strict=True))
        except Unfit:
            raise
        except Exception as error:  # the judge or the source failed, not the backend
            taken.ours = dict.fromkeys(lanes, _words(error))
        for lane, text in enumerate(batch.ids):
            if lane in taken.ours:
                yield self._record(Result(text, self.name, Outcome.RUNNER_ERROR, detail=taken.ours[lane]))
                continue
            v = verdicts[lane]
            fields = (v.outcome, v.behaviour, v.reason, v.detail, v.bound_ratio, v.level)
            result = Result(text, self.name, *fields, batch.clauses, *digests[lane], round(taken.seconds[lane], 7))
            yield self._record(result, attached[lane])

    def _verdicts(self, batch: Batch, taken: _Taken, begin: Begin) -> tuple[list[Verdict], Answers]:
        """Return the answers and their verdicts; the verdict on a fresh program's answer replaces a failure's.

        A failure of a program that ran together with others may be theirs: only what it answers alone counts. One that
        runs more than once runs all cases again, so that what a run leaves behind in it is found.
        """
        lanes, answers = len(batch), taken.answers.answers(len(batch))
        again = self._again(batch, begin) if asks_again(batch.expectation) else None
        valid_variant = self._siblings.get(batch.valid_variant or "")
        verdicts = judge(batch, answers, self.required, variant_ran=self._variant_ran(batch), again=again)
        if isinstance(valid_variant, Loss):  # neither these cases' fault, nor a confirmation
            for lane in answers.refusals:
                verdicts[lane] = replace(verdicts[lane], detail=_lost_words(valid_variant), reason="other")
        if len(batch) > 1 and any(verdicts[lane].outcome in _CONFIRMED for lane in taken.together):
            self._run_alone(batch, taken, begin)
            return self._verdicts(batch, taken, begin)
        for lane, loss in taken.lost.items():
            verdicts[lane] = _lost(loss, batch)
        used = [n for n in range(lanes) if n not in taken.first and n not in taken.lost and n not in taken.ours]
        failing = [n for n in used if verdicts[n].outcome in _CONFIRMED]
        if failing and again is None:
            return self._confirmed(batch, taken, verdicts, failing, begin)
        return verdicts, answers

    def _confirmed(
        self, batch: Batch, taken: _Taken, verdicts: list[Verdict], failing: Sequence[int], begin: Begin
    ) -> tuple[list[Verdict], Answers]:
        """Return the answers and their verdicts, those that are failing as fresh programs answer."""
        answers, others = taken.answers.answers(len(batch)), dict[int, Answered]()
        for lane, reply in self._confirmations(batch, failing, answers, begin):
            taken.seconds[lane] += reply.seconds
            answer, before = reply.answer, answers.answer(lane)
            if isinstance(answer, OurFailure):
                taken.ours[lane] = answer.words
            elif isinstance(answer, Loss):
                verdicts[lane] = _lost(answer, batch)
            elif not same_answer(answer, before):
                ran = self._variant_ran(batch)
                (verdict,) = judge(batch.case(lane), Answers.of([answer]), self.required, variant_ran=ran)
                if verdict.outcome is Outcome.PASS and lane not in taken.together:
                    detail = f"only on a program that ran before, state leaks between runs: {verdicts[lane].detail}"
                    verdicts[lane] = replace(verdicts[lane], detail=detail)
                else:
                    verdicts[lane], others[lane] = verdict, answer
        return verdicts, answers.replaced(others)

    def _variant_ran(self, batch: Batch) -> bool:
        """Return whether the valid sibling of invalid cases was answered; other cases have none."""
        return batch.valid_variant is None or isinstance(self._siblings.get(batch.valid_variant), Answer)

    def _run_alone(self, batch: Batch, taken: _Taken, begin: Begin) -> None:
        """Replace the answers of a program that ran together with others."""
        taken.clear()
        self._alone = self._ask([Request(0, batch.program, inputs) for inputs in _rows(batch)], batch.ids)
        for lane, number in enumerate(self._alone):
            begin(lane, "run")
            taken.add(self._reply(number))

    def _of_conversions(self, batch: Batch, taken: _Taken, begin: Begin) -> tuple[list[Verdict], Answers]:
        """Return the answers of a converter and their verdicts: other backends run each new program.

        Of a program that was converted together with others only a pass counts. Else it is converted alone.
        """
        answers, verdicts = taken.answers.answers(len(batch)), []
        others: dict[int, Answered] = {}
        assert self.conversions is not None
        for lane in range(len(batch)):
            begin(lane, "run")
            case, lost = batch.case(lane), taken.lost.get(lane)
            answer = answers.answer(lane) or _NONE
            verdict = _lost(lost, case) if lost else self.conversions.verdict(case, answer, self.required)
            if verdict.outcome is not Outcome.PASS and lane in taken.together:
                (number,) = self._ask([Request(0, case.program, case.tensors(), "own")], case.ids)
                begin(lane, "run")
                alone = self._reply(number).answer
                if isinstance(alone, OurFailure):
                    taken.ours[lane] = alone.words
                elif isinstance(alone, Loss):
                    verdict = _lost(alone, case)
                elif not same_answer(alone, answer):
                    others[lane] = alone
                    verdict = self.conversions.verdict(case, alone, self.required)
            verdicts.append(verdict)
        return verdicts, answers.replaced(others)

    def _charge_deaths(self, batch: Batch, verdicts: list[Verdict], begin: Begin) -> None:
        """Fail cases whose program dies whenever it is used again, although each of them passes in a new process.

        A death that does not repeat is no case's: an earlier one may have broken the process.
        """
        lanes = {text: lane for lane, text in enumerate(batch.ids)}
        known, self._pending = [*self._pending, *self.hosts.strays()], []
        for stray in known:
            text = None if stray.key is None else self._ids.get(stray.key.number)
            lane = None if text is None else lanes.get(text)
            if self._is_early(stray):
                self._pending.append(stray)
            elif lane is None or not self._is_charged(batch, lane, stray, verdicts[lane], begin):
                self._untold.append(stray)
            else:
                lost = _lost(Loss(stray.key, stray.kind, stray.phase, stray.exit, stray.tail, 0.0), batch)
                again = f"state: dies when used again: {_stray_words(stray)}"
                verdicts[lane] = lost if stray.blamed else replace(lost, detail=again)

    def _is_early(self, stray: Stray) -> bool:
        """Return whether a death belongs to a batch to come; a confirmation belongs to the present one."""
        key = stray.key
        return key is not None and key.number > self._last and key.number not in self._alone and _is_of_a_case(key)

    def _is_charged(self, batch: Batch, lane: int, stray: Stray, verdict: Verdict, begin: Begin) -> bool:
        """Return whether a death is to be charged to the case that was running although it passes in a new process.

        It is if the death repeats, or if the host knows that the case is to blame.
        """
        ends = verdict.outcome in (Outcome.CRASH, Outcome.TIMEOUT)
        own = stray.key is not None and _is_of_a_case(stray.key)
        return not ends and (stray.blamed or (own and self._dies_again(batch, lane, stray, begin)))

    def _dies_again(self, batch: Batch, lane: int, stray: Stray, begin: Begin) -> bool:
        """Return whether a death repeats in another process: at the same program, after runs of it."""
        key = batch.program.key
        self._noted += 1
        often = self._noted > _NOTED and stray.exit != "signal SIGKILL"  # that may come from the system
        if often or key in self._mortal:
            return True
        self._mortal.add(key)  # a second death at this program needs no further proof
        row = list(_rows(batch))[lane]
        fresh: Freshness = "own" if stray.phase == "prepare" else "shared"
        asked = [Request(0, batch.program, row, fresh)] * (1 + len(stray.before))
        places = self.hosts.ask(asked, in_new_host=True)
        self._ids |= dict.fromkeys(places, batch.ids[lane])
        lost = False
        for number in places:
            begin(lane, "run")
            lost |= isinstance(self.hosts.reply(number).answer, Loss)
        strays = self.hosts.strays()
        mine = [stray_ for stray_ in strays if stray_.key is not None and stray_.key.number in places]
        self._pending += [stray_ for stray_ in strays if stray_.key is None or stray_.key.number not in places]
        return lost or bool(mine)

    def _again(self, batch: Batch, begin: Begin) -> Answers:
        """Return the answers of fresh programs to each case; a lane may have none."""
        gathered = GatheredAnswers(len(batch))
        requests = [Request(0, batch.program, inputs, "own") for inputs in _rows(batch)]
        for lane, number in enumerate(self._ask(requests, batch.ids)):
            begin(lane, "run")
            answer = self._reply(number).answer
            if isinstance(answer, Answer | Refusal):
                gathered.add(lane, answer)
        return gathered.answers(len(batch))

    def _confirmations(
        self, batch: Batch, failing: Sequence[int], answers: Answers, begin: Begin
    ) -> Iterator[tuple[int, Reply]]:
        """Yield the replies of fresh programs to failures.

        If the first few are the same to the bit there, one program that only runs failures is enough for the others,
        until it answers differently.
        """
        rows = list(_rows(batch))

        def asked(lanes: Sequence[int], fresh: Freshness) -> Iterator[tuple[int, Reply, bool]]:
            requests = [Request(0, batch.program, rows[lane], fresh) for lane in lanes]
            for lane, number in zip(lanes, self._ask(requests, [batch.ids[lane] for lane in lanes]), strict=True):
                begin(lane, "run")
                reply, before = self._reply(number), answers.answer(lane)
                yield lane, reply, same_answer(reply.answer, before)

        proven, left = True, deque(failing)
        for lane, reply, same in asked(failing[:_PROVEN], "own"):
            left.popleft()
            proven = proven and same
            yield lane, reply
        if proven and left:
            for lane, reply, same in asked(list(left), "failures"):
                if not same:
                    break
                left.popleft()
                yield lane, reply
        for lane, reply, _ in asked(list(left), "own"):
            yield lane, reply

    def _record(self, result: Result, attached: Mapping[str, str] = MappingProxyType({})) -> bytes:
        known = [*self._pending, *self.hosts.strays()]
        self._pending = [stray for stray in known if self._is_early(stray)]
        reported = [*self._untold, *(stray for stray in known if not self._is_early(stray))]
        self._untold = []
        return record_of(result, attached, [self._death(stray) for stray in reported])

    def _death(self, stray: Stray) -> Death:
        """Return a death that no case is charged with, its keys as case ids."""
        case = None if stray.key is None else self._ids.get(stray.key.number)
        ran = dict.fromkeys(self._ids[r.number] for r in stray.before if r is not None and r.number in self._ids)
        before = tuple(text for text in ran if text != case)  # a valid sibling ran on behalf of the case itself
        return Death(self.name, case, stray.kind, stray.exit, stray.tail, before)


def _is_of_a_case(request: Request) -> bool:
    """Return whether a request is a case's own run: neither a sibling's nor a confirmation."""
    return request.phase == "run" and request.fresh == "shared"


def _stray_words(stray: Stray) -> str:
    what = f"the process ended ({stray.exit})" + (" while preparing the program" if stray.phase == "prepare" else "")
    tail = f"; last it wrote:\n{stray.tail}" if stray.tail else ""
    return f"{what} after {len(stray.before)} other runs, and so did another one; a new process passes{tail}"


def record_of(result: Result, attached: Mapping[str, str], deaths: Sequence[Death] = ()) -> bytes:
    """Return a record: a result's line of JSON and, if there are any, its attachments and deaths, each after a TAB.

    Attachments are JSON texts by name. JSON contains no raw TAB.
    """
    if not attached and not deaths:
        return result.to_json()
    attachments = ",".join(f"{json.dumps(name)}:{text}" for name, text in attached.items())
    of_deaths = msgspec.json.encode(deaths) if deaths else b""
    return b"%b\t{%b}\t%b" % (result.to_json(), attachments.encode(), of_deaths)


def with_effects(verdict: Verdict, effects: Sequence[SideEffect], ids: Mapping[int, str]) -> Verdict:
    """Return the verdict on an answer whose run had side effects, which fails it; `ids` are cases by request."""
    lines = [verdict.detail] if verdict.detail and verdict.outcome is not Outcome.PASS else []
    for effect in effects:
        case = None if effect.before is None else ids.get(effect.before)
        lines.append(effect.words + (f"; it is that to {case}" if case else ""))
    detail = "\n".join(lines)
    if verdict.outcome is not Outcome.PASS:
        return replace(verdict, detail=detail)
    return replace(verdict, outcome=Outcome.WRONG_VALUE, detail=detail, level=None, reason=effects[0].reason)


def _lost(loss: Loss, batch: Batch) -> Verdict:
    """Return the verdict on a case whose host was lost."""
    behaviour: dict[str, list[str]] = {"invalid": []} if batch.expectation.invalid else {}
    outcome = _OUTCOME_OF_LOSS.get(loss.kind, Outcome.CRASH)
    reason = "memory" if loss.kind == "memory" else None
    return Verdict(outcome, behaviour, _lost_words(loss), reason=reason)


def _lost_words(loss: Loss) -> str:
    what = {
        "crash": f"the process died ({loss.exit})",
        "timeout": f"no answer after {loss.seconds:.1f} s",
        "memory": "more memory than the limit",
        "flood": "more output than the limit",
        "stopped": "was stopped",
        "corrupt": f"wrote to descriptors that are not its own ({loss.exit})",
        "raised": "the worker failed",
    }[loss.kind]
    during = {
        "prepare": " while preparing the program",
        "run": " while running it",
        "sibling": " on the valid case that this one was made from",
    }.get(loss.phase or "", "")
    return f"{what}{during}" + (f"; last it wrote:\n{loss.tail}" if loss.tail else "")


def _words(error: Exception) -> str:
    """Return the text on a failure of our side, which is being handled."""
    return str(error) if isinstance(error, OpconformError) else _last_lines(traceback.format_exc())


def _rows(batch: Batch) -> Iterator[tuple[Array, ...]]:
    """Yield the inputs of each case, without lanes."""
    lanes = range(len(batch))
    columns = (array if array.ndim > 1 else [array[lane, ...] for lane in lanes] for array in batch.inputs)
    return zip(*columns, strict=True) if batch.inputs else iter([()] * len(lanes))


def _from(begin: Begin, start: int) -> Begin:
    """Return `begin` for keys that are counted from `start` on."""
    return lambda number, phase: begin(start + number, phase)


# Attachments of a result


def _attachments(
    attach: Mapping[str, Attach], batch: Batch, answers: Answers, verdicts: Sequence[Verdict]
) -> list[dict[str, str]]:
    """Return the attachments of each answered case, by name, as JSON texts."""
    by_lane: list[dict[str, str]] = [{} for _ in verdicts]
    answered = [lane for stack in answers.stacks for lane in stack.lanes]
    if answered:
        for name, make in attach.items():
            texts = _texts(make, batch, answers, verdicts)
            for lane in answered:
                if (text := texts[lane]) is not None:
                    by_lane[lane][name] = text
    return by_lane


def _texts(make: Attach, batch: Batch, answers: Answers, verdicts: Sequence[Verdict]) -> list[str | None]:
    """Return the attachments as JSON texts; if making them fails, each case is tried alone."""
    try:
        return [_text(attachment) for attachment in make(batch, answers, verdicts)]
    except Exception:
        if len(batch) == 1:
            return [json.dumps({"failed": _last_lines(traceback.format_exc())})]
    texts: list[str | None] = []
    for lane, case in enumerate(batch.cases()):
        answer = answers.answer(lane)
        texts += [None] if answer is None else _texts(make, case, Answers.of([answer]), [verdicts[lane]])
    return texts


def _text(attached: object) -> str | None:
    return None if attached is None else json.dumps(attached, allow_nan=False, separators=(",", ":"))


def _last_lines(text: str) -> str:
    """Return the end of a traceback."""
    return "\n".join(text.strip().splitlines()[-6:])[:WORDS_KEPT]
