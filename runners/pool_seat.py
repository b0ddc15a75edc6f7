"""What a run of the pool knows of each worker: the limits that hold for it, where it was, and what it has to do."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

from .pool_process import WorkerProcess
from .pool_verdict import KEYS_BEFORE, Batch, Verdict
from .pool_wire import Key, Place

_QUEUED: Final = 2  # batches a worker holds, so that it never waits for the parent


@dataclass(frozen=True, slots=True)
class Limits:
    """What a key may use; times in seconds, sizes in bytes, `memory_bytes` None for no limit.

    `run_seconds` and `prepare_seconds` are those of the task's phases (between keys the latter holds), `start_seconds`
    that of making the task. `memory_bytes` is resident memory of the worker process, `output_bytes` what one key may
    write to stdout and stderr, give or take what a pipe holds.
    """

    run_seconds: float = 10.0
    prepare_seconds: float = 60.0
    start_seconds: float = 120.0
    memory_bytes: int | None = None
    output_bytes: int = 64 << 20


class Seen(NamedTuple):
    """Where a worker was at a look, since when by our account, and how long we had been away until then."""

    place: Place
    since: float
    away: float


class Seat:
    """One worker at a time, the batches it holds, and those that wait for it."""

    def __init__(self, *, reuse: bool) -> None:
        self.waiting: deque[Batch] = deque()
        self._reuse = reuse
        self.vacate()

    def vacate(self) -> None:
        """Forget the worker and what it held."""
        self.worker: WorkerProcess | None = None
        self.sent: deque[Batch] = deque()
        self.ready = False
        self.verdict: Verdict | None = None
        self.first_batch = 0
        self.recent: deque[Key] = deque(maxlen=KEYS_BEFORE)  # the last keys that it ran
        self.head_since = 0.0  # when the first of `sent` became the first
        self.closed: float | None = None  # when the channel ended
        self.seen: Seen | None = None

    @property
    def able(self) -> bool:
        """Whether the worker, or one that is still to be started, may be given a batch more."""
        if self.worker is None:
            return True
        well = self.ready and self.verdict is None and self.closed is None
        return well and len(self.sent) < _QUEUED and (self._reuse or not self.first_batch)

    def takes(self, batch: Batch) -> bool:
        """Whether the worker may have this batch now: two at most, and none beside one that runs alone."""
        return not self.sent or (not batch.alone and not self.sent[-1].alone)

    @property
    def used_up(self) -> bool:
        """Whether the worker has done the one batch that it is for."""
        return not self._reuse and bool(self.first_batch) and not self.sent
