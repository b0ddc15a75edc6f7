"""What runs on a worker of a cluster: batches of cases, in this package's own pool, which stays warm between them.

The scheduler knows nothing of this package: tasks are calls of `pickle.loads` on what only a worker takes apart.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import pickle
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from distributed import Reschedule, get_worker

from ..specs.loader import default_root
from .execute import ABOUT, Assignment
from .pool import Found, Limits, Stray, WorkerStartError
from .running import batched, pool_for

_ASK_AGAIN: Final = 0.05  # seconds until a batch looks for its crew again


class Suite(NamedTuple):
    """Which suite is installed: its version, and a digest of its spec files."""

    version: str
    specs: str


def installed_suite() -> Suite:
    """Return the suite that is installed here."""
    whole = hashlib.sha256()
    root = default_root()
    for file in sorted(root.glob("*/*.yaml")):
        whole.update(f"{file.relative_to(root).as_posix()} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return Suite(importlib.metadata.version("opconform"), whole.hexdigest())


@dataclass(frozen=True)
class Reply:
    """What a batch came to on a worker, `failed` where the backend cannot be opened there: the kind, why, last words.

    `about`: what the backend says of itself there. `found`: what the pool found. `seconds` it took.
    """

    worker: str
    about: Found | None = None
    found: Sequence[Found] = ()
    seconds: float = 0.0
    failed: tuple[str, str, str] | None = None


def packed(told: object) -> bytes:
    """Return what goes from machine to machine; ids and results repeat themselves, so that a tenth of it is left."""
    return zlib.compress(pickle.dumps(told), 1)


def unpacked(pack: bytes) -> Any:
    """Return what was packed; whoever reaches a scheduler runs code anyway."""
    return pickle.loads(zlib.decompress(pack))  # noqa: S301


def crew_key(run: str, worker: str) -> str:
    """Return the name by which dask knows the crew of a run on a worker."""
    return f"{run}-crew-{worker}"


@dataclass(frozen=True, slots=True)
class Task:
    """A batch on its way, its ids packed: unpickling it on a worker runs it, and gives a packed Reply."""

    run: str
    ids: bytes

    def __reduce__(self) -> tuple[Callable[[str, bytes], bytes], tuple[str, bytes]]:
        return perform, (self.run, self.ids)


def perform(run: str, ids: bytes) -> bytes:
    """Run a batch on the crew that this worker has for a run, in a task of dask's."""
    worker = get_worker()
    crew: Any = worker.data.get(crew_key(run, worker.address))
    if crew is None:  # it is on its way, and may need this thread
        time.sleep(_ASK_AGAIN)
        raise Reschedule
    started = time.perf_counter()
    try:
        about, found = crew.found(unpacked(ids), _wanted(worker))
    except WorkerStartError as error:
        return packed(Reply(worker.address, failed=(error.kind, error.message, error.tail)))
    return packed(Reply(worker.address, about, found, time.perf_counter() - started))


def _wanted(worker: Any) -> Callable[[], bool]:
    """Return what tells whether the client still wants the task that runs in this thread."""
    task, tasks = worker.get_current_task(), worker.state.tasks
    return lambda: task in tasks and tasks[task].state != "cancelled"


@dataclass
class Crew:
    """The judges of one run on one worker, each with its backend: as many as tasks run there at once.

    It is a result of dask's, which drops it when the client no longer wants it or is gone: that ends the processes. A
    copy, as dask makes when it moves results, starts with none.
    """

    assignment: Assignment
    limits: Limits
    _free: list[_Station] = field(default_factory=list)

    def __reduce__(self) -> tuple[type[Crew], tuple[Assignment, Limits]]:
        return Crew, (self.assignment, self.limits)

    def found(self, ids: Sequence[str], wanted: Callable[[], bool]) -> tuple[Found, list[Found]]:
        """Return what the backend says of itself and what was found of the ids. Raises WorkerStartError."""
        try:
            station = self._free.pop()  # atomic: several threads of a worker may come here
        except IndexError:
            station = _Station(self.assignment, self.limits)
        found = station.found(ids, wanted)
        self._free.append(station)  # not where it failed: then it ends here
        return station.about, found


class _Station:
    """One judge with its backend. What refers to the pool's iterator is this object alone, so it ends with it."""

    def __init__(self, assignment: Assignment, limits: Limits) -> None:
        self._waiting: deque[Sequence[str]] = deque([[ABOUT]])
        self._found = pool_for(assignment, jobs=1, limits=limits).run(_handed(self._waiting))
        self.about = next(one for one in self._found if not isinstance(one, Stray))

    def found(self, ids: Sequence[str], wanted: Callable[[], bool]) -> list[Found]:
        self._waiting.extend(batched(ids))
        found: list[Found] = []
        left = len(ids)
        while left:
            found.append(next(self._found))
            left -= not isinstance(found[-1], Stray)
            if not wanted():
                raise WorkerStartError("dismissed", "the run has ended")
        return found


def _handed(waiting: deque[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yield batches as they come, and an empty one where there is none: the pool lives on between tasks."""
    while True:
        yield waiting.popleft() if waiting else ()
