"""Runs cases on a dask.distributed cluster: a task is a batch of cases in this package's own pool."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import logging
import pickle
import queue
import time
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import KW_ONLY, dataclass, field
from types import TracebackType
from typing import Any, Final, NamedTuple

from distributed import Client, KilledWorker, LocalCluster, get_worker

from ...cases.errors import OpconformError
from ...cases.results import Outcome, Result
from ...specs.loader import default_root
from ..pool import Limits, WorkerStartError
from .execute import Assignment, Death
from .host import About
from .running import Judged, batched, refuse_unasked, run_cases

_REACH: Final = 10.0  # seconds for a scheduler to answer
_WORKERS: Final = 30.0  # seconds for a suitable worker to appear
_LOOK_AGAIN: Final = 0.2
_AHEAD: Final = 2  # batches per slot of a worker: one running, the others waiting there
_SMALLEST, _LARGEST, _FIRST = 8, 5000, 16  # cases in a batch
_BATCH_SECONDS, _STARTS = 10.0, 10  # target seconds of a batch; minimum, in start times of its pool
_PIECES: Final = 32  # splits of a batch that kills workers; each costs as many as may fail
_LOOK: Final = 1.0  # seconds between two checks of the cluster
_ASK_AGAIN: Final = 0.02
_FETCH: Final = 10.0  # seconds to fetch a result; if its worker has just died, it is computed again
_DESERTED: Final = 300.0  # seconds without any worker, after which the run gives up
_LOST: Final = "the connection to the dask scheduler was lost; the results so far are kept"


@dataclass
class DaskExecutor:
    """Runs cases on a cluster; a context that is entered once.

    `address` is a scheduler's address; None starts a cluster of `jobs` workers on this machine, which ends with the
    context. `resources` are what a worker needs for one task. `patience` is the time in seconds in which a scheduler
    and workers must appear. Entering raises OpconformError if no scheduler answers or no worker has the resources.
    """

    address: str | None
    _: KW_ONLY
    resources: Mapping[str, float]
    jobs: int = 1
    patience: float = _WORKERS
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _client: Any = None
    _workers: int = 0

    def __enter__(self) -> DaskExecutor:
        with contextlib.ExitStack() as opening:
            opening.enter_context(_silence())
            address = self.address or opening.enter_context(self._own_cluster()).scheduler_address
            self._client = opening.enter_context(contextlib.closing(_client(address, min(_REACH, self.patience))))
            self._await_workers(address)
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    def run_cases(
        self,
        assignment: Assignment,
        batches: Iterable[Sequence[str]],
        /,
        *,
        jobs: int,  # noqa: ARG002 - the cluster has as many as it has
        limits: Limits,
    ) -> Generator[About | Judged | Death]:
        """Yield the backend's description of itself, and one result for each case id, in any order.

        Raises OpconformError if a worker cannot take part (it lacks this suite or the backend, or has another version),
        or if the scheduler or all workers are lost.
        """
        run = _ClusterRun(self._client, assignment, limits, batches, self.resources)
        yield from run.results()
        self._workers = max(self._workers, len(run.workers))

    def description(self) -> Mapping[str, object]:
        """Return what `run.json` says about the executor."""
        return {"kind": "dask", "workers": self._workers, "resources": dict(self.resources)}

    def _own_cluster(self) -> Any:
        make: Any = LocalCluster  # dask has no type annotations
        return make(
            n_workers=self.jobs,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,  # results report what happens to workers
        )

    def _await_workers(self, address: str) -> None:
        end = time.monotonic() + self.patience
        while not _slots(self._client, self.resources):
            if time.monotonic() > end:
                raise OpconformError(f"after {self.patience:g} s, {self._what_is_missing(address)}")
            time.sleep(_LOOK_AGAIN)

    def _what_is_missing(self, address: str) -> str:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        needed = _words(self.resources)
        if not workers:
            return f"the scheduler at {address} still has no workers; start one with `dask worker {address}`"
        there = Counter(_words(worker["resources"]) or "no resources" for worker in workers)
        lacks = "; ".join(f"{count} with {words}" for words, count in there.most_common())
        return f"no worker of the scheduler at {address} has {needed} (its workers: {lacks})"


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep dask's tracebacks off the terminal; our messages report the same events."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _words(resources: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={amount:g}" for name, amount in sorted(resources.items()))


def _client(address: str, seconds: float) -> Any:
    make: Any = Client  # dask has no type annotations
    try:
        return make(address, timeout=seconds, set_as_default=False, name="opconform")
    except (OSError, TimeoutError) as error:
        start = "start one with `dask scheduler`, or use --executor dask, which needs none"
        raise OpconformError(
            f"no dask scheduler answers at {address} within {seconds:g} s ({error}); {start}"
        ) from error
    except ValueError as error:
        raise OpconformError(f"{address} is not the address of a dask scheduler: {error}") from error


def _slots(client: Any, resources: Mapping[str, float]) -> dict[str, int]:
    """Return the number of slots of each worker, by address, without workers that lack a resource."""
    slots = {}
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        has = worker["resources"]
        count = min([worker["nthreads"], *(int(has.get(name, 0) // amount) for name, amount in resources.items())])
        if count:
            slots[address] = count
    return slots


# On a worker


class InstalledSuite(NamedTuple):
    """An installed suite: its version, and a digest of its spec files."""

    version: str
    specs: str


def installed_suite() -> InstalledSuite:
    """Return the suite that is installed here."""
    digest = hashlib.sha256()
    root = default_root()
    for file in sorted(root.glob("*/*.yaml")):
        digest.update(f"{file.relative_to(root).as_posix()} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return InstalledSuite(importlib.metadata.version("opconform"), digest.hexdigest())


@dataclass(frozen=True)
class _Reply:
    """A worker's reply to a batch: records, seconds and the pool's start seconds; or why it cannot take part."""

    worker: str
    events: Sequence[About | Judged | Death] = ()
    start: float = 0.0
    seconds: float = 0.0
    unfit: str | None = None


@dataclass(frozen=True)
class _Task:
    """A batch on its way: unpickling it on a worker runs it, and returns a packed reply.

    A dask task is a call of `pickle.loads`, so the scheduler, which unpickles calls, does not need this package.
    """

    suite: InstalledSuite
    assignment: Assignment
    limits: Limits
    ids: Sequence[str]

    def __reduce__(self) -> tuple[Any, ...]:
        return _performed, (self.suite, _packed((self.assignment, self.limits, self.ids)))


def _packed(content: object) -> bytes:
    """Return the bytes to send to another machine; ids and results repeat, so compression shrinks them to a tenth."""
    return zlib.compress(pickle.dumps(content), 1)


def _unpacked(pack: bytes) -> Any:
    """Return what was packed. Unpickling adds no risk: whoever reaches a scheduler can run code anyway."""
    return pickle.loads(zlib.decompress(pack))  # noqa: S301


def _performed(suite: InstalledSuite, pack: bytes) -> bytes:
    """Run a batch in a dask task, with one judge; it stops when the client no longer wants it."""
    worker = get_worker()
    here = installed_suite()
    if here != suite:
        return _packed(_Reply(worker.address, unfit=_other_suite(here, suite)))
    assignment, limits, ids = _unpacked(pack)
    task, tasks = worker.get_current_task(), worker.state.tasks
    begun = time.perf_counter()
    started, results_so_far = begun, []
    try:
        with contextlib.closing(run_cases(assignment, batched(ids), jobs=1, limits=limits)) as results:
            for result in results:
                started = time.perf_counter() if isinstance(result, About) else started
                results_so_far.append(result)
                if task not in tasks or tasks[task].state == "cancelled":
                    break
    except WorkerStartError as error:
        return _packed(_Reply(worker.address, unfit=f"cannot take part: {error}\n{error.tail}".rstrip()))
    return _packed(_Reply(worker.address, results_so_far, started - begun, time.perf_counter() - started))


def _other_suite(there: InstalledSuite, here: InstalledSuite) -> str:
    what = f"opconform {there.version}" if there.version != here.version else "other spec files"
    return (
        f"has {what}, this machine has {here.version} with specs {here.specs[:12]} (there: {there.specs[:12]}); "
        "install the same there"
    )


# The client's side


class Pace:
    """The size of batches: as many cases as a worker runs in a short time, learned from the replies."""

    def __init__(self) -> None:
        self.size = _FIRST

    def learn(self, cases: int, seconds: float, start: float = 0.0) -> None:
        """Learn from the duration of a batch and its pool's start time, in small steps, because batches differ."""
        wanted = int(max(_BATCH_SECONDS, _STARTS * start) * cases / max(seconds, 1e-6))
        self.size = max(_SMALLEST, min(_LARGEST, wanted, 3 * self.size))


def gathered(batches: Iterable[Sequence[str]], pace: Pace) -> Iterator[list[str]]:
    """Yield batches merged until they have the current size, and at the end the rest.

    An empty batch, which means that the source has nothing for now, also ends the merging.
    """
    together: list[str] = []
    for batch in batches:
        together += batch
        if len(together) >= pace.size or not batch:
            yield together
            together = []
    if together:
        yield together


@dataclass(slots=True)
class _Sent:
    """A batch under way; if `alone`, no other runs beside it, because a batch with its cases killed workers."""

    ids: Sequence[str]
    future: Any
    alone: bool


class _ClusterRun:
    """One backend over `batches` of case ids, on the workers of `client` that have `resources`."""

    def __init__(
        self,
        client: Any,
        assignment: Assignment,
        limits: Limits,
        batches: Iterable[Sequence[str]],
        resources: Mapping[str, float],
    ) -> None:
        self._client, self._assignment, self._limits = client, assignment, limits
        self._resources = dict(resources)
        self._suite = installed_suite()
        self._about: About | None = None
        self._pace = Pace()
        self._source: Iterator[list[str]] | None = gathered(batches, self._pace)
        self._dry = False  # the source has nothing for now
        self._under_way: dict[str, _Sent] = {}
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._suspects: list[Sequence[str]] = []
        self._slots: dict[str, int] = {}
        self._looked, self._peopled = 0.0, time.monotonic()
        self.workers: set[str] = set()  # the workers that took part

    def results(self) -> Generator[About | Judged | Death]:
        """Yield the backend's description of itself, then one result for each id. Closing the iterator ends the run.

        Raises OpconformError if a worker cannot take part, or if the scheduler or all workers are lost.
        """
        try:
            self._look()
            self._check_suites()
            self._send([])  # asks the backend to describe itself
            while self._hand_out():
                yield from self._next_results()
                self._look()
        finally:
            with contextlib.suppress(Exception):  # a lost scheduler has nothing to cancel
                if self._client.status == "running":
                    self._client.cancel([sent.future for sent in self._under_way.values()], force=True)

    def _hand_out(self) -> bool:
        """Send batches while there is room; return False if nothing is left to do."""
        self._dry = False
        room = _AHEAD * max(1, sum(self._slots.values()))
        while len(self._under_way) < room and self._source is not None and not self._dry:
            ids = next(self._source, None)
            if ids is None:
                self._source = None
            elif ids:
                self._send(ids)
            else:
                self._dry = True
        if self._source is None and not self._under_way and self._suspects:
            self._send(self._suspects.pop(), alone=True)
        return bool(self._under_way) or self._source is not None

    def _send(self, ids: Sequence[str], *, alone: bool = False) -> None:
        task = pickle.dumps(_Task(self._suite, self._assignment, self._limits, ids))
        future = self._client.submit(pickle.loads, task, pure=False, resources=self._resources or None)
        self._under_way[future.key] = _Sent(ids, future, alone)
        future.add_done_callback(lambda future: self._done.put(future.key))

    def _next_results(self) -> Iterator[About | Judged | Death]:
        """Wait briefly for a batch, and yield its results.

        A batch that ran twice, because its worker was lost, still has one reply.
        """
        try:
            key = self._done.get(timeout=_ASK_AGAIN if self._dry else _LOOK)
        except queue.Empty:
            return
        sent = self._under_way.pop(key)
        try:
            pack = sent.future.result(timeout=_FETCH)
        except TimeoutError:
            self._under_way[key] = sent
            sent.future.add_done_callback(lambda future: self._done.put(future.key))
        except KilledWorker as error:
            yield from self._killed(sent, error)
        except CancelledError as error:
            raise OpconformError(_LOST) from error
        except Exception as error:
            self._check_suites()  # raises a better error if it can
            raise OpconformError(f"a worker failed: {type(error).__name__}: {error}") from error
        else:
            yield from self._replied(sent, _unpacked(pack))

    def _replied(self, sent: _Sent, reply: _Reply) -> Iterator[About | Judged | Death]:
        """Yield the results in a reply. Raises OpconformError unless it has one result for each case that was sent."""
        if reply.unfit is not None:
            raise OpconformError(f"worker {reply.worker} {reply.unfit}")
        self.workers.add(reply.worker)
        if sent.ids:
            self._pace.learn(len(sent.ids), reply.seconds, reply.start)
        self._refuse_unasked(sent, reply)
        for event in reply.events:
            if not isinstance(event, About):
                yield event
            elif self._about is None:
                self._about = event
                yield event
            elif event.version != self._about.version:
                name, versions = self._assignment.backend.name, (event.version, self._about.version)
                difference = f"worker {reply.worker} has {name} {versions[0]}, others have {versions[1]}"
                raise OpconformError(f"{difference}; one run, one version")

    def _refuse_unasked(self, sent: _Sent, reply: _Reply) -> None:
        """Raise OpconformError unless a reply has one valid result for each case that was sent."""
        results = [event.result for event in reply.events if isinstance(event, Judged)]
        try:
            if Counter(result.case for result in results) != Counter(sent.ids):
                raise ValueError(f"it has {len(results)} results, not one for each of {len(sent.ids)} cases")
            for result in results:
                refuse_unasked(result, result.case, self._assignment.backend)
        except ValueError as error:
            raise OpconformError(f"worker {reply.worker}: its answer does not match the request: {error}") from None

    def _killed(self, sent: _Sent, error: KilledWorker) -> Iterator[Judged]:
        """Retry a batch that killed workers at the end, alone and in smaller pieces, until single cases remain."""
        if not sent.alone or len(sent.ids) > 1:
            size = max(1, -(-len(sent.ids) // _PIECES))
            self._suspects += [sent.ids[start : start + size] for start in range(0, len(sent.ids), size)]
        else:
            words = f"KilledWorker: {error.allowed_failures + 1} workers of the cluster died, each with only this case"
            yield Judged(Result(sent.ids[0], self._assignment.backend.name, Outcome.CRASH, detail=words))

    def _look(self) -> None:
        """Check from time to time for workers that came and went.

        Raises OpconformError if the scheduler or all are lost.
        """
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        lost = any(sent.future.status in ("lost", "cancelled") for sent in self._under_way.values())
        if lost or self._client.status not in ("running", "connecting"):
            raise OpconformError(_LOST)
        if self._client.status == "running":
            self._slots = _slots(self._client, self._resources)
            self._peopled = now if self._slots else self._peopled
        if now - self._peopled > _DESERTED:
            raise OpconformError(f"the cluster has had no worker for this run for {_DESERTED:g} s")

    def _check_suites(self) -> None:
        """Raise OpconformError if a worker lacks this suite; a worker that comes later is checked by its first task."""
        answers = self._client.run(installed_suite, workers=list(self._slots), on_error="return") if self._slots else {}
        for address, answer in answers.items():
            if isinstance(answer, OSError):  # the worker has gone
                continue
            if isinstance(answer, Exception) and "No module named 'opconform" in str(answer):  # dask may wrap it
                install = f"install {self._suite.version} there"
                raise OpconformError(f"worker {address} has no opconform ({answer}); {install}")
            if isinstance(answer, Exception):
                raise OpconformError(f"worker {address} cannot take part: {type(answer).__name__}: {answer}")
            if InstalledSuite(*answer) != self._suite:
                raise OpconformError(f"worker {address} {_other_suite(InstalledSuite(*answer), self._suite)}")
