"""A run of the worker pool: one thread hands out work, waits, and never trusts what a worker writes."""

from __future__ import annotations

import math
import pickle
import selectors
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from ...cases.errors import OpconformError
from .process import Starter, WorkerProcess, WorkerStartError, exit_words
from .wire import (
    BATCH,
    CHANNEL_LOST,
    FAILED,
    KEYS_BEFORE,
    LOST,
    RAISED,
    RAISED_HEAD,
    READY,
    RECORDS,
    Corrupt,
    Frame,
    InNewWorker,
    Key,
    KeyBatch,
    Loss,
    LossKind,
    Stray,
    Task,
    WorkerEnd,
    phase_of,
    readable,
    settle,
    unpack_records,
)

_QUEUED: Final = 2  # batches that a worker holds, so that it never waits for the parent


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a key; times in seconds, sizes in bytes. `memory_bytes` is None for no limit.

    `stopped_seconds` is the longest time that a worker may be stopped by a signal, None not to look. A worker that was
    stopped is not to blame: its keys run again, in a worker that shares nothing with others.

    `run_seconds` and `prepare_seconds` limit the task's phases (the latter also the time between keys), `start_seconds`
    making the task. `record_seconds` is the longest time between two records of a busy worker, whatever phase it
    reports; None to trust workers. `memory_bytes` limits the resident memory of the worker process, `output_bytes` what
    one key may write to stdout and stderr, with a tolerance of a pipe's size.
    """

    run_seconds: float = 10.0
    prepare_seconds: float = 30.0
    start_seconds: float = 120.0
    record_seconds: float | None = None
    stopped_seconds: float | None = None
    memory_bytes: int | None = None
    output_bytes: int = 64 << 20

    @classmethod
    def of_runs(cls, seconds: float, memory_bytes: int | None = None) -> Limits:
        """Return the limits of cases that may run for so long; preparing a program may take three times as long."""
        return cls(run_seconds=seconds, prepare_seconds=3 * seconds, memory_bytes=memory_bytes)


class Seen(NamedTuple):
    """What a worker was doing, since when by our clock, and how long we had been away until then."""

    at: object
    since: float
    away: float


class Seat:
    """A slot for one worker at a time, with the batches it holds and the ones that wait for it."""

    def __init__(self, *, reuse: bool) -> None:
        self.waiting: deque[KeyBatch] = deque()
        self._reuse = reuse
        self.vacate()

    def vacate(self) -> None:
        """Forget the worker and what it held."""
        self.worker: WorkerProcess | None = None
        self.sent: deque[KeyBatch] = deque()
        self.ready = False
        self.verdict: WorkerEnd | None = None
        self.first_batch = 0
        self.recent: deque[Key] = deque(maxlen=KEYS_BEFORE)  # the last keys that it ran
        self.head_since = 0.0  # when the first of `sent` became the first
        self.heard: Seen | None = None  # the last record of the first of `sent`
        self.closed: float | None = None  # when the channel ended
        self.blames_key = False  # the worker says that it ends because of the key in progress
        self.stopped: Seen | None = None  # since when something has stopped the process
        self.seen: Seen | None = None

    @property
    def able(self) -> bool:
        """Return whether the worker, or one that is yet to start, may get another batch."""
        if self.worker is None:
            return True
        well = self.ready and self.verdict is None and self.closed is None
        return well and len(self.sent) < _QUEUED and (self._reuse or not self.first_batch)

    def takes(self, batch: KeyBatch) -> bool:
        """Return whether the worker may get this batch now: two at most, and none beside one that runs alone."""
        return not self.sent or (not batch.alone and not self.sent[-1].alone)

    @property
    def used_up(self) -> bool:
        """Return whether the worker has finished the single batch that it is for."""
        return not self._reuse and bool(self.first_batch) and not self.sent


PoolEvent: TypeAlias = tuple[Key, bytes] | Loss | Stray

_FALSE_STARTS: Final = 3
_MEMORY_TICK: Final = 0.02  # seconds between two checks of a worker's memory; keeps 1 GiB to about 6 %
_CLOSED_GRACE: Final = 0.25  # seconds between the channel's end and the process's, for a process that is dying
_AWAY: Final = 1.0  # if we did not look at the workers for so many seconds, they may have waited for us
_ASK_AGAIN: Final = 0.01  # seconds until an idle source is asked again, if nothing happens before


class Run:
    """One run over `batches`, on at most `jobs` workers that `starter` starts; without `reuse` each gets one key."""

    def __init__(
        self, starter: Starter, jobs: int, limits: Limits, batches: Iterable[Sequence[Key]], *, reuse: bool
    ) -> None:
        self._starter = starter
        self._reuse = reuse
        self._limits = limits
        self._seats = [Seat(reuse=reuse) for _ in range(jobs)]
        self._source: Iterator[Sequence[Key]] | None = iter(batches)
        self._dry = False  # the source has nothing for now
        self._again: deque[KeyBatch] = deque()
        self._events: list[PoolEvent] = []
        self._selector = selectors.DefaultSelector()
        self._numbers = 0
        self._false_starts = 0
        shortest = min(limits.run_seconds, limits.prepare_seconds) / 10
        self._tick = _MEMORY_TICK if limits.memory_bytes is not None else max(0.01, min(0.25, shortest))
        self._looked = time.monotonic()
        self._away = 0.0

    def results(self) -> Iterator[PoolEvent]:
        """Yield each key once. Closing the iterator, or an exception, kills the workers."""
        try:
            while self._hand_out():
                for ready, mask in self._selector.select(_ASK_AGAIN if self._dry else self._tick):
                    ready.data(mask)
                self._look()
                events, self._events = self._events, []
                yield from events
        finally:
            for seat in self._seats:
                if seat.worker is not None:
                    self._dismiss(seat, seat.worker)
            self._starter.close()
            self._selector.close()

    # Handing out work

    def _hand_out(self) -> bool:
        """Start workers for work and give them batches; return False if nothing is left to do."""
        self._dry = False
        for seat in self._seats:
            if seat.worker is not None and seat.used_up:
                self._dismiss(seat, seat.worker)
            while (batch := self._next_for(seat)) is not None:
                if seat.worker is None:
                    seat.waiting.appendleft(batch)
                    self._employ(seat, apart=batch.apart)
                else:
                    self._give(seat, seat.worker, batch)
        left = any(seat.sent or seat.waiting for seat in self._seats)
        return left or bool(self._again) or self._source is not None

    def _next_for(self, seat: Seat) -> KeyBatch | None:
        if not seat.able:
            return None
        queue = seat.waiting or self._again
        if not queue:
            self._pull()
        if not queue or not seat.takes(queue[0]):
            return None
        if queue[0].new and seat.worker is not None and seat.first_batch:
            self._dismiss(seat, seat.worker)
        return queue.popleft()

    def _pull(self) -> None:
        """Take one more batch from the source, if it has one; ask an idle source once per round."""
        if self._source is None or self._dry:
            return
        keys = next(self._source, None)
        if keys is None:
            self._source = None
        elif isinstance(keys, InNewWorker):
            self._again.append(KeyBatch(keys, alone=True, new=True))
        elif keys:
            self._again.extend([KeyBatch(keys)] if self._reuse else (KeyBatch([key]) for key in keys))
        else:
            self._dry = True

    def _give(self, seat: Seat, worker: WorkerProcess, batch: KeyBatch) -> None:
        self._numbers += 1
        batch.number = self._numbers
        seat.first_batch = seat.first_batch or batch.number
        if not seat.sent:
            seat.head_since = time.monotonic()
        seat.sent.append(batch)
        worker.send(Frame(BATCH, batch.number, amount=len(batch.keys), payload=pickle.dumps(list(batch.keys))))
        self._await_channel(worker)

    # Workers coming and going

    def _employ(self, seat: Seat, *, apart: bool) -> None:
        worker = seat.worker = self._starter.worker(apart=apart)
        self._selector.register(worker.output, selectors.EVENT_READ, partial(self._on_output, seat, worker))
        self._selector.register(worker.channel, selectors.EVENT_READ, partial(self._on_channel, seat, worker))
        if worker.pidfd is not None:
            self._selector.register(worker.pidfd, selectors.EVENT_READ, partial(self._on_death, seat, worker))
        self._await_channel(worker)

    def _await_channel(self, worker: WorkerProcess) -> None:
        """Wait for messages and, if some of ours are unsent, also for room to send them."""
        key = self._selector.get_map().get(worker.channel)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.unsent else 0)
        if key is not None and key.events != events:
            self._selector.modify(worker.channel, events, key.data)

    def _forget(self, fd: int | None) -> None:
        if fd is not None and fd in self._selector.get_map():
            self._selector.unregister(fd)

    def _dismiss(self, seat: Seat, worker: WorkerProcess) -> int | None:
        """End a worker, whatever it is doing; return its exit code, as WorkerProcess.reap does."""
        for fd in (worker.output, worker.channel, worker.pidfd):
            self._forget(fd)
        seat.vacate()
        return worker.reap()

    def _condemn(
        self, seat: Seat, worker: WorkerProcess, kind: LossKind, why: str, seconds: float | None = None
    ) -> None:
        """Kill a worker; its keys are settled when it is dead."""
        if seat.verdict is None:
            verdict = self._verdict(seat, worker, kind, f"killed {why}")
            verdict = replace(verdict, orphaned=verdict.orphaned or kind == "stopped")
            seat.verdict = verdict if seconds is None else replace(verdict, seconds=seconds)
            worker.kill()

    def _verdict(self, seat: Seat, worker: WorkerProcess, kind: LossKind, end: str) -> WorkerEnd:
        note = worker.board.read()
        fresh = note.batch == seat.first_batch and note.position <= 0
        lasted, before = self._lasted(seat, note.since), tuple(seat.recent)
        return WorkerEnd(kind, end, note, fresh, lasted, before, blamed=seat.blames_key)

    def _lasted(self, seat: Seat, since: float) -> float:
        """Return the seconds since a time that a worker reports, but no more than since it got its work."""
        return max(0.0, time.monotonic() - max(since, seat.head_since))

    # What workers do

    def _on_channel(self, seat: Seat, worker: WorkerProcess, mask: int) -> None:
        if seat.worker is not worker:
            return
        if mask & selectors.EVENT_WRITE:
            worker.flush()
            self._await_channel(worker)
        try:
            for frame in worker.receive():
                self._accept(seat, worker, frame)
        except EOFError:
            self._forget(worker.channel)
            seat.closed = time.monotonic()
        except Corrupt as error:
            self._forget(worker.channel)
            self._condemn(seat, worker, "corrupt", f"for {error} on its message channel")

    def _on_output(self, seat: Seat, worker: WorkerProcess, _mask: int) -> None:
        if seat.worker is not worker:
            return
        if not worker.drain():
            self._forget(worker.output)  # closed: a backend may do that
        elif worker.flood > self._limits.output_bytes:
            self._condemn(seat, worker, "flood", f"after {worker.flood} bytes of output")

    def _accept(self, seat: Seat, worker: WorkerProcess, frame: Frame) -> None:
        """Handle a message; raises Corrupt if it is not valid at this point."""
        head = seat.sent[0] if seat.sent and seat.sent[0].number == frame.batch else None
        if frame.kind == READY and not seat.ready:
            seat.ready = True
        elif frame.kind == FAILED and not seat.ready:
            kind, _, message = frame.payload.decode(errors="replace").partition("\n")
            raise WorkerStartError(kind, message, worker.last_words())
        elif frame.kind == RECORDS and head is not None and frame.first == head.received:
            self._accept_records(seat, head, frame)
        elif frame.kind == RAISED and head is not None and head.received <= frame.first < len(head.keys):
            self._accept_exception(seat, head, frame)
        elif frame.kind == LOST and head is not None and frame.first == head.received:
            seat.blames_key = True
        else:
            raise Corrupt("an unexpected message")
        if head is not None and head.finished:
            self._add_stray(head.cleared())
            seat.sent.popleft()
            seat.head_since = time.monotonic()
            self._false_starts = 0

    def _add_stray(self, stray: Stray | None) -> None:
        if stray is not None:
            self._events.insert(0, stray)  # whoever waits for the record that clears the suspect has got it

    def _accept_records(self, seat: Seat, batch: KeyBatch, frame: Frame) -> None:
        end = frame.first + frame.amount
        if not frame.amount or end > len(batch.keys):
            raise Corrupt("a message with a wrong count")
        records = unpack_records(frame.payload, frame.amount)
        keys = batch.keys[frame.first : end]
        self._events += zip(keys, records, strict=True)
        seat.recent.extend(keys)
        batch.received = end

    def _accept_exception(self, seat: Seat, batch: KeyBatch, frame: Frame) -> None:
        if len(frame.payload) < RAISED_HEAD.size:
            raise Corrupt("a message with a wrong length")
        (claim,) = RAISED_HEAD.unpack_from(frame.payload)
        seconds = self._lasted(seat, time.monotonic() - claim if claim >= 0 else math.inf)
        text = readable(frame.payload[RAISED_HEAD.size :])
        self._events.append(Loss(batch.keys[frame.first], "raised", phase_of(frame.amount), "", text, seconds))
        seat.recent.append(batch.keys[frame.first])
        rest = batch.without(frame.first)
        if rest.keys:
            self._again.append(rest)
        batch.received = len(batch.keys)

    # What workers do not do

    def _look(self) -> None:
        """Check, once per tick, what sends no event: time, memory."""
        now = time.monotonic()
        gap = now - self._looked
        if gap < self._tick:
            return
        self._looked = now
        self._away += gap if gap > _AWAY else 0.0
        for seat in self._seats:
            if seat.worker is not None:
                self._look_at(seat, seat.worker, now)

    def _look_at(self, seat: Seat, worker: WorkerProcess, now: float) -> None:
        if worker.pidfd is None and not worker.alive:
            self._on_death(seat, worker, 0)
        elif seat.verdict is not None:
            pass
        elif seat.closed is not None:
            if now - seat.closed > _CLOSED_GRACE:
                self._condemn(seat, worker, "corrupt", "for closing its message channel")
        elif self._limits.stopped_seconds is not None and self._is_stopped(seat, worker, now):
            self._condemn(seat, worker, "stopped", f"after {self._limits.stopped_seconds:g} s in which it was stopped")
        elif not seat.ready:
            if now - worker.started > self._limits.start_seconds:
                words = f"it was not ready after {self._limits.start_seconds:g} s"
                raise WorkerStartError("timeout", words, worker.last_words())
        elif seat.sent:
            self._look_at_time(seat, worker, now)
            self._look_at_memory(seat, worker)

    def _look_at_time(self, seat: Seat, worker: WorkerProcess, now: float) -> None:
        """Kill a worker that has been in one place, or without a record, for too long; only our clock counts."""
        note, records = worker.board.read(), (seat.sent[0].number, seat.sent[0].received)
        if seat.heard is None or seat.heard.at != records:
            seat.heard = Seen(records, now, self._away)
        silence = self._limits.record_seconds
        if silence is not None and now - seat.heard.since - (self._away - seat.heard.away) > silence:
            self._condemn(seat, worker, "timeout", f"after {silence:g} s without an answer", now - seat.heard.since)
            return
        at = note.key, note.phase
        if seat.seen is None or seat.seen.at != at:
            seat.seen = Seen(at, now, self._away)
            return
        limit = self._limits.run_seconds if note.phase == "run" else self._limits.prepare_seconds
        lasted = now - max(seat.seen.since, seat.head_since)
        if lasted - (self._away - seat.seen.away) > limit:
            self._condemn(seat, worker, "timeout", f"after {limit:g} s", lasted)

    def _is_stopped(self, seat: Seat, worker: WorkerProcess, now: float) -> bool:
        """Return whether a signal has stopped the worker for too long; our clock counts, while we were here."""
        if not worker.stopped:
            seat.stopped = None
            return False
        seat.stopped = seat.stopped or Seen(None, now, self._away)
        return now - seat.stopped.since - (self._away - seat.stopped.away) > (self._limits.stopped_seconds or 0.0)

    def _look_at_memory(self, seat: Seat, worker: WorkerProcess) -> None:
        limit = self._limits.memory_bytes
        if limit is not None and (resident := worker.resident(limit)) > limit:
            self._condemn(seat, worker, "memory", f"at {resident >> 20} MiB of memory")

    # Death

    def _on_death(self, seat: Seat, worker: WorkerProcess, _mask: int) -> None:
        if seat.worker is not worker:
            return
        worker.kill()  # the processes that it started
        try:
            for frame in worker.rest() if seat.verdict is None or seat.verdict.kind != "corrupt" else ():
                self._accept(seat, worker, frame)
        except Corrupt as error:
            self._condemn(seat, worker, "corrupt", f"for {error} on its message channel")
        last_words = worker.last_words()
        verdict = seat.verdict or self._verdict(seat, worker, "crash", "")
        tail = worker.tail(verdict.note.key)
        sent, was_given = list(seat.sent), bool(seat.first_batch)
        verdict = _ended(verdict, self._dismiss(seat, worker))
        if not was_given or not verdict.note.batch:  # its board may contain anything, what it was given is known
            self._count_false_start(verdict, last_words)
        settled = settle(sent, verdict, tail)
        self._events += settled.losses
        self._events += settled.strays
        self._again.extend(settled.again)
        seat.waiting.extendleft(reversed(settled.first))

    def _count_false_start(self, verdict: WorkerEnd, last_words: str) -> None:
        self._false_starts += 1
        if self._false_starts == _FALSE_STARTS:
            words = f"{_FALSE_STARTS} workers in a row ended before their first key, the last by {verdict.exit}"
            raise WorkerStartError("died", words, last_words)


def _ended(verdict: WorkerEnd, code: int | None) -> WorkerEnd:
    """Return the verdict with how the process ended, unless it was killed for a reason."""
    if verdict.exit:
        return verdict
    if code is None:
        return replace(verdict, exit="killed together with the process that started it", orphaned=True)
    if code == CHANNEL_LOST:
        return replace(verdict, kind="corrupt", exit="ended because its message channel was gone")
    return replace(verdict, exit=exit_words(code))


_USUAL_LIMITS: Final = Limits()


class Pool:
    """Worker processes that turn keys into records.

    `factory` is pickled by reference and makes the task in each worker, so it must be in a module that the worker can
    import, not in `__main__`. A key is anything that can be pickled: a case id, or a request with its arrays. Raises
    OpconformError if this system does not support such workers.

    With `fork`, on Linux, the factory is unpickled once, in a process that workers are forked from. If it has a method
    `warm`, that is called there, to import and read what every worker needs. Neither may start a thread or use a
    library that cannot be forked after use. Otherwise each worker is an interpreter of its own. Without `reuse`, a
    worker gets only one key.
    """

    def __init__(
        self,
        factory: Callable[[], Task],
        *,
        jobs: int,
        limits: Limits = _USUAL_LIMITS,
        fork: bool = False,
        reuse: bool = True,
    ) -> None:
        if sys.platform == "win32":
            raise OpconformError("workers need Linux or macOS; on Windows, use the Windows Subsystem for Linux")
        if jobs < 1:
            raise OpconformError(f"jobs is {jobs}; at least one worker is needed")
        if limits.memory_bytes is not None and not Path("/proc/self/statm").exists():
            raise OpconformError("a memory limit needs Linux's /proc, which this system lacks; leave the limit out")
        self._jobs = jobs
        self._limits = limits
        self._reuse = reuse
        self._starter = partial(
            Starter, pickle.dumps(factory), limits.start_seconds, fork=fork and sys.platform == "linux"
        )

    def run(self, batches: Iterable[Sequence[Key]]) -> Iterator[PoolEvent]:
        """Yield each key once, with its record or a Loss, in any order, and in between deaths that no key explains.

        Takes batches as workers need them. An empty batch means that there is nothing for now: the source is asked
        again soon, at the latest when the caller asks for the next key. Only the end of `batches` ends the run. Raises
        WorkerStartError. Closing the iterator kills the workers.
        """
        return Run(self._starter(), self._jobs, self._limits, batches, reuse=self._reuse).results()
