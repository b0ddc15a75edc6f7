"""One run on a cluster, from its client: workers enlisted, batches handed out and taken in, lost ones split."""

from __future__ import annotations

import contextlib
import hashlib
import json
import pickle
import queue
import time
import uuid
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from distributed import KilledWorker

from ..cases.errors import OpconformError
from .cluster_worker import Suite, Task, dismiss, enlist, installed_suite, packed, told, unpacked
from .execute import Assignment
from .pool import Limits, Loss, WorkerStartError
from .running import About, Death, Judged, about_of, lost

_AHEAD: Final = 3  # batches a slot of a worker: at work, waiting there, on the way
_SMALLEST, _LARGEST, _FIRST = 8, 1000, 16  # cases in a batch
_BATCH_SECONDS: Final = 2.0  # what a batch should take: what a lost worker costs, and how long the end drags on
_PIECES: Final = 32  # of a batch that kills workers; each level costs as many workers as dask allows to fail
_LOOK: Final = 1.0  # seconds between two looks at the cluster
_ASK_AGAIN: Final = 0.02
_FETCH: Final = 10.0  # seconds to fetch a result; where its worker has just died, it is computed again
_DESERTED: Final = 300.0  # seconds without any worker, after which there is nothing to wait for


def slots_of(client: Any, resources: Mapping[str, float]) -> dict[str, int]:
    """Return how many tasks each worker takes at once, by address; without those that lack a resource."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    slots = {address: _slots(worker, resources) for address, worker in workers.items()}
    return {address: count for address, count in slots.items() if count}


def _slots(worker: Mapping[str, Any], resources: Mapping[str, float]) -> int:
    has = worker["resources"]
    threads: int = worker["nthreads"]
    return min([threads, *(int(has.get(name, 0) // amount) for name, amount in resources.items())])


class Pace:
    """How many cases a batch has: as many as a worker does in a short time, which the answers tell."""

    def __init__(self) -> None:
        self.size = _FIRST

    def learn(self, cases: int, seconds: float) -> None:
        """Take in what a batch took; a step at a time, since batches differ."""
        wanted = int(_BATCH_SECONDS * cases / max(seconds, 1e-6))
        self.size = max(_SMALLEST, min(_LARGEST, wanted, 3 * self.size))


def gathered(batches: Iterable[Sequence[str]], size: Callable[[], int]) -> Iterator[list[str]]:
    """Yield batches put together until they have `size` ids, or cut where one has more.

    Yields what there is, be it nothing, where the source has nothing for now.
    """
    together: list[str] = []
    for batch in batches:
        together += batch
        while len(batch) > size() and len(together) > size():
            cut = size()
            yield together[:cut]
            together = together[cut:]
        if len(together) >= size() or not batch:
            yield together
            together = []
    if together:
        yield together


@dataclass(slots=True)
class _Sent:
    """A batch that is under way; `alone`, with no other beside it, where its fellows have killed workers."""

    ids: list[str]
    alone: bool
    future: Any


class ClusterRun:
    """One backend over `batches` of case ids on the workers of `client` that have `resources`."""

    def __init__(
        self,
        client: Any,
        assignment: Assignment,
        batches: Iterable[Sequence[str]],
        *,
        limits: Limits,
        resources: Mapping[str, float],
    ) -> None:
        self._client = client
        self._assignment = assignment
        self._resources = dict(resources)
        self._suite = installed_suite()
        self._crew = zlib.compress(pickle.dumps((assignment, limits)))
        self._digest = hashlib.sha256(self._crew + uuid.uuid4().bytes).hexdigest()
        self._slots: dict[str, int] = {}  # of the workers that are enlisted
        self._about: About | None = None
        self._enlisting: Future[Mapping[str, Any]] | None = None
        self._pace = Pace()
        self._source: Iterator[list[str]] | None = gathered(batches, lambda: self._pace.size)
        self._dry = False
        self._under_way: dict[str, _Sent] = {}
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._suspects: list[list[str]] = []
        self._looked = self._peopled = time.monotonic()
        self.workers = 0
        self.batches = self.sent_bytes = self.received_bytes = 0  # bytes of tasks and of their answers
        self.busy_seconds = 0.0  # of the workers, together

    @property
    def crew_bytes(self) -> int:
        """How many bytes each worker gets when it is enlisted."""
        return len(self._crew)

    def results(self) -> Generator[About | Judged | Death]:
        """Yield what the backend says of itself, then one result for each id. Closing the iterator ends the run.

        Raises OpconformError where a worker is unfit, and where the scheduler or all workers are lost.
        """
        with contextlib.ExitStack() as ending:
            beside = ThreadPoolExecutor(1)
            ending.callback(beside.shutdown, wait=False, cancel_futures=True)
            ending.callback(self._end)
            self._welcome(self._enlist(slots_of(self._client, self._resources)))
            if self._about is not None:
                yield self._about
            while self._hand_out():
                self._look(beside)
                yield from self._next_results()

    # Handing out

    def _hand_out(self) -> bool:
        """Send batches while there is room; False where nothing is left to do."""
        self._dry = False
        room = _AHEAD * max(1, sum(self._slots.values()))
        while len(self._under_way) < room and self._source is not None and not self._dry:
            ids = next(self._source, None)
            if ids is None:
                self._source = None
            elif ids:
                self._send(ids, alone=False)
            else:
                self._dry = True
        if self._source is None and not self._under_way and self._suspects:
            self._send(self._suspects.pop(), alone=True)
        return bool(self._under_way) or self._source is not None

    def _send(self, ids: list[str], *, alone: bool) -> None:
        # Only the standard library's names are in the task: the scheduler unpickles it, and need not have this package.
        task = pickle.dumps(Task(self._digest, packed([text.encode() for text in ids])))
        self.batches += 1
        self.sent_bytes += len(task)
        name = f"opconform-{uuid.uuid4().hex}"
        future = self._client.submit(pickle.loads, task, key=name, pure=False, resources=self._resources or None)
        self._under_way[name] = _Sent(ids, alone, future)
        future.add_done_callback(lambda future: self._done.put(future.key))

    # Taking in

    def _next_results(self) -> Iterator[Judged | Death]:
        """Wait for a batch, for a moment, and yield its results.

        A batch that ran twice, since its worker was lost, has one answer all the same.
        """
        try:
            key = self._done.get(timeout=_ASK_AGAIN if self._dry else _LOOK)
        except queue.Empty:
            return
        sent = self._under_way[key]
        try:
            kind, seconds, payload = sent.future.result(timeout=_FETCH)
        except TimeoutError:
            sent.future.add_done_callback(lambda future: self._done.put(future.key))
            return
        except KilledWorker as error:
            del self._under_way[key]
            yield from self._killed(sent, error)
            return
        except CancelledError as error:
            raise OpconformError(_LOST) from error
        except Exception as error:
            self._welcome(self._enlist(slots_of(self._client, self._resources)))  # says it better, if it can
            raise OpconformError(f"a worker failed: {type(error).__name__}: {error}") from error
        del self._under_way[key]
        if kind != "records":
            raise WorkerStartError(*json.loads(payload))
        self.received_bytes += len(payload)
        self.busy_seconds += seconds
        self._pace.learn(len(sent.ids), seconds)
        for line in unpacked(payload):
            yield from told(line, self._assignment.backend)

    def _killed(self, sent: _Sent, error: KilledWorker) -> Iterator[Judged]:
        """Try what killed workers again at the end, alone and in smaller pieces; a case that does so alone is it."""
        if not sent.alone or len(sent.ids) > 1:
            size = -(-len(sent.ids) // _PIECES)
            self._suspects += [sent.ids[start : start + size] for start in range(0, len(sent.ids), size)]
        else:
            words = f"KilledWorker: {error.allowed_failures + 1} workers of the cluster died, each with this case alone"
            loss = Loss(sent.ids[0], "crash", None, words, "", 0.0)
            yield Judged(lost(loss, self._assignment.backend))

    # The cluster

    def _look(self, beside: ThreadPoolExecutor) -> None:
        """Look, now and then, for workers that came and went; new ones are enlisted beside the run."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        if self._client.status not in ("running", "connecting") or any(
            sent.future.status in ("lost", "cancelled") for sent in self._under_way.values()
        ):
            raise OpconformError(_LOST)
        if self._client.status == "connecting":
            return
        there = slots_of(self._client, self._resources)
        self._slots = {address: count for address, count in there.items() if address in self._slots}
        if self._enlisting is not None and self._enlisting.done():
            self._welcome(self._enlisting.result())
            self._enlisting = None
        new = {address: count for address, count in there.items() if address not in self._slots}
        if new and self._enlisting is None:
            self._enlisting = beside.submit(self._enlist, new)
        if there:
            self._peopled = now
        elif now - self._peopled > _DESERTED:
            raise OpconformError(f"the cluster has had no worker for this run for {_DESERTED:g} s")

    def _enlist(self, slots: Mapping[str, int]) -> dict[str, tuple[int, Any]]:
        """Ask workers to take part; returns their slots and answers."""
        arguments = self._suite, self._digest, self._crew
        answers = self._client.run(enlist, *arguments, workers=list(slots), on_error="return") if slots else {}
        return {address: (slots[address], answer) for address, answer in answers.items()}

    def _welcome(self, enlisted: Mapping[str, tuple[int, Any]]) -> None:
        """Count the workers that take part from now on. OpconformError where one is unfit."""
        for address, (slots, answer) in enlisted.items():
            if isinstance(answer, OSError):  # it has gone
                continue
            about = about_of(_fit(address, answer, self._suite))
            known = self._about = self._about or about
            if about.version != known.version:
                backend = self._assignment.backend.name
                raise OpconformError(
                    f"worker {address} has {backend} {about.version}, others have {known.version}; one run, one version"
                )
            self._slots[address] = slots
        self.workers = max(self.workers, len(self._slots))

    def _end(self) -> None:
        """Take back what is under way, and let the workers end what they hold for this run."""
        with contextlib.suppress(Exception):  # a scheduler that is gone has nothing to take back
            if self._client.status == "running":
                self._client.cancel([sent.future for sent in self._under_way.values()], force=True)
                there = list(slots_of(self._client, self._resources))
                self._client.run(dismiss, self._digest, workers=there, wait=False, on_error="ignore")


_LOST: Final = "the connection to the dask scheduler was lost; what was judged until then is kept"


def _fit(address: str, answer: Any, suite: Suite) -> bytes:
    """Return what a worker's backend says of itself. OpconformError where the worker is unfit for the run."""
    if isinstance(answer, Exception) and "No module named 'opconform" in str(answer):  # dask may wrap it
        raise OpconformError(f"worker {address} has no opconform ({answer}); install {suite.version} there")
    if isinstance(answer, Exception):
        raise OpconformError(f"worker {address} cannot take part: {type(answer).__name__}: {answer}")
    if "failed" in answer:
        kind, message, tail = answer["failed"]
        raise WorkerStartError(kind, f"{message} (on worker {address})", tail)
    if "suite" in answer:
        other = Suite(*answer["suite"])
        what = f"opconform {other.version}" if other.version != suite.version else "other spec files"
        raise OpconformError(
            f"worker {address} has {what}, this machine has {suite.version} with specs {suite.specs[:12]}"
            f" (there: {other.specs[:12]}); install the same there"
        )
    about: bytes = answer["about"]
    return about
