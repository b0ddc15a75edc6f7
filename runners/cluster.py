"""A dask.distributed cluster as the place where cases run: reaching it, handing batches out, taking replies in."""

from __future__ import annotations

import contextlib
import logging
import pickle
import queue
import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from distributed import Client, KilledWorker, LocalCluster

from ..cases.errors import OpconformError
from ..cases.results import Outcome, Result
from .cluster_worker import Crew, Reply, Suite, Task, crew_key, installed_suite, packed, unpacked
from .execute import Assignment
from .pool import Limits, WorkerStartError
from .running import About, Death, Judged, RunCases, told

_REACH: Final = 10.0  # seconds for a scheduler to answer
_WORKERS: Final = 30.0  # seconds for a worker to be there that has what is needed
_LOOK_AGAIN: Final = 0.2
_AHEAD: Final = 3  # batches a slot of a worker: at work, waiting there, on the way
_SMALLEST, _LARGEST, _FIRST = 8, 1000, 16  # cases in a batch
_BATCH_SECONDS: Final = 2.0  # what a batch should take: what a lost worker costs, and how long the end drags on
_PIECES: Final = 32  # of a batch that kills workers; each level costs as many workers as dask allows to fail
_LOOK: Final = 1.0  # seconds between two looks at the cluster
_ASK_AGAIN: Final = 0.02
_FETCH: Final = 10.0  # seconds to fetch a result; where its worker has just died, it is computed again
_DESERTED: Final = 300.0  # seconds without any worker, after which there is nothing to wait for
_LOST: Final = "the connection to the dask scheduler was lost; what was judged until then is kept"


class DaskExecutor:
    """Runs cases on a cluster; a context, entered once.

    `address` is that of a scheduler; None for a cluster of `jobs` workers on this machine, which ends with the context.
    `resources` are what a worker needs for one task. `patience` is how many seconds a scheduler and workers have to
    appear. Entering raises OpconformError where no scheduler answers or no worker has what is needed.
    """

    def __init__(
        self,
        address: str | None,
        *,
        resources: Mapping[str, float],
        jobs: int = 1,
        patience: float = _WORKERS,
    ) -> None:
        self._address = address
        self._resources = resources
        self._jobs = jobs
        self._patience = patience
        self._open = contextlib.ExitStack()
        self._client: Any = None
        self._workers = 0

    def __enter__(self) -> DaskExecutor:
        with contextlib.ExitStack() as opening:
            opening.enter_context(_silence())
            address = self._address or opening.enter_context(self._own_cluster()).scheduler_address
            self._client = opening.enter_context(contextlib.closing(_client(address, min(_REACH, self._patience))))
            self._workers = len(self._await_workers(address))
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def run_cases(self) -> RunCases:
        """Yield what the backend says of itself, and one result for each case id; in any order.

        Raises OpconformError where a worker is unfit: without this suite or the backend, or with another version of
        them; and where the scheduler or all workers are lost.
        """
        return self._run_cases

    def _run_cases(
        self, assignment: Assignment, batches: Iterable[Sequence[str]], /, *, jobs: int, limits: Limits
    ) -> Generator[About | Judged | Death]:
        del jobs  # the cluster has as many as it has
        run = ClusterRun(self._client, assignment, batches, limits=limits, resources=self._resources)
        yield from run.results()
        self._workers = max(self._workers, run.workers)

    def description(self) -> Mapping[str, object]:
        """Return what of this belongs into `run.json`."""
        return {"kind": "dask", "workers": self._workers, "resources": dict(self._resources)}

    def _own_cluster(self) -> Any:
        make: Any = LocalCluster  # which has no types
        return make(
            n_workers=self._jobs,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,  # what befalls a worker is told by results
        )

    def _await_workers(self, address: str) -> Mapping[str, int]:
        end = time.monotonic() + self._patience
        while not (found := _slots(self._client, self._resources)):
            if time.monotonic() > end:
                raise OpconformError(f"{self._what_is_missing(address)}, also after {self._patience:g} s")
            time.sleep(_LOOK_AGAIN)
        return found

    def _what_is_missing(self, address: str) -> str:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        needed = _words(self._resources)
        if not workers:
            return f"the scheduler at {address} has no workers; `dask worker {address}` starts one"
        there = Counter(_words(worker["resources"]) or "no resources" for worker in workers)
        told = "; ".join(f"{count} with {words}" for words, count in there.most_common())
        return f"no worker of the scheduler at {address} has {needed} (there are {told})"


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep dask's tracebacks off the terminal; what they are about is told in our words."""
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
    make: Any = Client  # which has no types
    try:
        return make(address, timeout=seconds, set_as_default=False, name="opconform")
    except (OSError, TimeoutError) as error:
        start = "`dask scheduler` starts one, and --executor dask needs none"
        raise OpconformError(
            f"no dask scheduler answers at {address} within {seconds:g} s ({error}); {start}"
        ) from error
    except ValueError as error:
        raise OpconformError(f"{address} is no address of a dask scheduler: {error}") from error


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
    """A batch under way; `alone`, no other beside it, where its fellows have killed workers; `to` greets a worker."""

    ids: list[str]
    future: Any
    alone: bool = False
    to: str | None = None


class ClusterRun:
    """One backend over `batches` of case ids on the workers of `client` that have `resources`.

    A worker takes part once it has been greeted: it gets the crew, which dask keeps there until the run drops it, and
    an empty batch, whose reply says what the backend is there.
    """

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
        self._backend = assignment.backend
        self._resources = dict(resources)
        self._name = f"opconform-{uuid.uuid4().hex}"
        self._suite = installed_suite()
        self._crew = pickle.dumps(Crew(assignment, limits))
        self._crews: dict[str, Any] = {}  # by the worker's address
        self._slots: dict[str, int] = {}  # of the workers that take part
        self._about: About | None = None
        self._pace = Pace()
        self._source: Iterator[list[str]] | None = gathered(batches, lambda: self._pace.size)
        self._dry = False
        self._under_way: dict[str, _Sent] = {}
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._suspects: list[list[str]] = []
        self._looked, self._peopled = 0.0, time.monotonic()
        self.batches = self.sent_bytes = self.received_bytes = 0  # bytes of tasks and of their replies
        self.busy_seconds = 0.0  # of the workers, together

    @property
    def crew_bytes(self) -> int:
        """How many bytes each worker gets when it is greeted."""
        return len(self._crew)

    @property
    def workers(self) -> int:
        """How many workers have been greeted."""
        return len(self._crews)

    def results(self) -> Generator[About | Judged | Death]:
        """Yield what the backend says of itself, then one result for each id. Closing the iterator ends the run.

        Raises OpconformError where a worker is unfit, and where the scheduler or all workers are lost.
        """
        try:
            self._look()
            while self._greeting:
                yield from self._next_results()
                self._look()
            while self._hand_out():
                yield from self._next_results()
                self._look()
        finally:
            with contextlib.suppress(Exception):  # a scheduler that is gone has nothing to take back
                if self._client.status == "running":
                    futures = [*(sent.future for sent in self._under_way.values()), *self._crews.values()]
                    self._client.cancel(futures, force=True)

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
                self._send(ids)
            else:
                self._dry = True
        left = [sent for sent in self._under_way.values() if sent.ids]
        if self._source is None and not left and self._suspects:
            self._send(self._suspects.pop(), alone=True)
            return True
        return bool(left) or self._source is not None

    def _send(self, ids: list[str], *, alone: bool = False, to: str | None = None) -> None:
        # Only the standard library's names are in the task: the scheduler unpickles it, and need not have this package.
        task = pickle.dumps(Task(self._name, packed(ids)))
        self.batches += bool(ids)
        self.sent_bytes += len(task)
        future = self._submit(task, f"{self._name}-{uuid.uuid4().hex}", to)
        self._under_way[future.key] = _Sent(ids, future, alone, to)
        future.add_done_callback(lambda future: self._done.put(future.key))

    def _submit(self, pickled: bytes, key: str, to: str | None) -> Any:
        where = {"resources": self._resources or None, "workers": None if to is None else [to]}
        return self._client.submit(pickle.loads, pickled, key=key, pure=False, **where)

    # Taking in

    def _next_results(self) -> Iterator[About | Judged | Death]:
        """Wait for a batch, for a moment, and yield its results.

        A batch that ran twice, since its worker was lost, has one reply all the same.
        """
        try:
            key = self._done.get(timeout=_ASK_AGAIN if self._dry else _LOOK)
        except queue.Empty:
            return
        sent = self._under_way.pop(key, None)
        if sent is None:  # a greeting to a worker that has gone
            return
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
            self._check_suites([sent.to] if sent.to else list(self._slots))  # says it better, if it can
            raise OpconformError(f"a worker failed: {type(error).__name__}: {error}") from error
        else:
            self.received_bytes += len(pack)
            yield from self._taken(sent, unpacked(pack))

    def _taken(self, sent: _Sent, reply: Reply) -> Iterator[About | Judged | Death]:
        if reply.failed is not None:
            kind, message, tail = reply.failed
            raise WorkerStartError(kind, f"{message} (on worker {reply.worker})", tail)
        if sent.to is not None and reply.about is not None:
            yield from self._welcome(sent.to, next(told(reply.about, self._backend)))
            return
        self.busy_seconds += reply.seconds
        self._pace.learn(len(sent.ids), reply.seconds)
        for found in reply.found:
            yield from told(found, self._backend)

    def _killed(self, sent: _Sent, error: KilledWorker) -> Iterator[Judged]:
        """Try what killed workers again at the end, alone and in smaller pieces; a case that does so alone is it."""
        if not sent.alone or len(sent.ids) > 1:
            size = max(1, -(-len(sent.ids) // _PIECES))
            self._suspects += [sent.ids[start : start + size] for start in range(0, len(sent.ids), size)]
        else:
            words = f"KilledWorker: {error.allowed_failures + 1} workers of the cluster died, each with this case alone"
            yield Judged(Result(sent.ids[0], self._backend.name, Outcome.CRASH, detail=words))

    # The cluster

    @property
    def _greeting(self) -> bool:
        return any(sent.to is not None for sent in self._under_way.values())

    def _look(self) -> None:
        """Look, now and then, for workers that came and went; new ones are greeted."""
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
        there = _slots(self._client, self._resources)
        for key, sent in list(self._under_way.items()):
            if sent.to is not None and sent.to not in there:
                del self._under_way[key]
        self._slots = {address: count for address, count in there.items() if address in self._slots}
        self._greet([address for address in there if address not in self._crews])
        if there:
            self._peopled = now
        elif now - self._peopled > _DESERTED:
            raise OpconformError(f"the cluster has had no worker for this run for {_DESERTED:g} s")

    def _greet(self, workers: Sequence[str]) -> None:
        """Hand the crew to workers and ask what the backend is there. OpconformError where a suite is another."""
        self._check_suites(workers)
        for address in workers:
            self._crews[address] = self._submit(self._crew, crew_key(self._name, address), address)
            self._send([], to=address)

    def _welcome(self, address: str, about: About | Judged | Death) -> Iterator[About]:
        """Let a worker take part from now on. OpconformError where its backend has another version."""
        if not isinstance(about, About):
            raise OpconformError(f"worker {address} does not say what its backend is")
        if self._about is None:
            self._about = about
            yield about
        if about.version != self._about.version:
            raise OpconformError(
                f"worker {address} has {self._backend.name} {about.version}, others have {self._about.version}; "
                "one run, one version"
            )
        self._slots[address] = _slots(self._client, self._resources).get(address, 1)

    def _check_suites(self, workers: Sequence[str]) -> None:
        """Raise OpconformError where a worker has not this suite."""
        here = self._suite
        answers = self._client.run(installed_suite, workers=list(workers), on_error="return") if workers else {}
        for address, answer in answers.items():
            if isinstance(answer, OSError):  # it has gone
                continue
            if isinstance(answer, Exception) and "No module named 'opconform" in str(answer):  # dask may wrap it
                raise OpconformError(f"worker {address} has no opconform ({answer}); install {here.version} there")
            if isinstance(answer, Exception):
                raise OpconformError(f"worker {address} cannot take part: {type(answer).__name__}: {answer}")
            there = Suite(*answer)
            if there != here:
                what = f"opconform {there.version}" if there.version != here.version else "other spec files"
                raise OpconformError(
                    f"worker {address} has {what}, this machine has {here.version} with specs {here.specs[:12]}"
                    f" (there: {there.specs[:12]}); install the same there"
                )


def _slots(client: Any, resources: Mapping[str, float]) -> dict[str, int]:
    """Return how many tasks each worker takes at once, by address; without those that lack a resource."""
    found = {}
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        has = worker["resources"]
        count = min([worker["nthreads"], *(int(has.get(name, 0) // amount) for name, amount in resources.items())])
        if count:
            found[address] = count
    return found
