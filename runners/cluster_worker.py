"""What runs on a worker of a cluster: a warm backend process for each task at a time, and batches put to it.

The scheduler knows nothing of this package: tasks are calls of `pickle.loads` on what only a worker takes apart.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import json
import pickle
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from ..specs.loader import default_root
from .execute import ABOUT, Assignment
from .pool import Found, Limits, Loss, Stray, WorkerStartError
from .registry import BackendSpec
from .running import Death, Judged, batched, lost, pool_for, read_record

_IDLE: Final = 60.0  # seconds without a batch, after which the backend's process ends; the next batch starts another
_PATIENCE: Final = 300.0  # seconds that a batch waits for the crew, which a client hands to workers as they join
_CREWS_KEPT: Final = 8
_CREWS: Final = "opconform_crews"
_DEATH = b"!"  # begins no JSON
_SIZE: Final = 4  # bytes of a number in a pack

Answer: TypeAlias = tuple[str, float, bytes]
"""What a task returns: `records`, the seconds that they took, and a pack of parts for `told`; or `failed`, and why.

Bytes and numbers alone, so that what passes through the scheduler is nobody's class.
"""


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


def packed(parts: Sequence[bytes]) -> bytes:
    """Return parts for the way; ids and results repeat themselves, so that a tenth of their size is left."""
    return zlib.compress(b"".join([_sized(part) for part in parts]), 1)


def unpacked(pack: bytes) -> list[bytes]:
    """Return the parts of a pack."""
    whole, place, found = zlib.decompress(pack), 0, []
    while place < len(whole):
        part = _first(whole, place)
        place += _SIZE + len(part)
        found.append(part)
    return found


def _sized(part: bytes) -> bytes:
    return len(part).to_bytes(_SIZE, "little") + part


def _first(whole: bytes, place: int) -> bytes:
    """Return the part whose size stands at a place."""
    start = place + _SIZE
    return whole[start : start + int.from_bytes(whole[place:start], "little")]


def told(line: bytes, backend: BackendSpec) -> Iterator[Judged | Death]:
    """Yield what a part of an answer says."""
    if not line.startswith(_DEATH):
        yield from read_record(line, backend)
        return
    death = json.loads(line.removeprefix(_DEATH))
    yield Death(**{**death, "before": tuple(death["before"])})


@dataclass(frozen=True, slots=True)
class Task:
    """A batch on its way: unpickling it on a worker runs it, and gives the Answer."""

    crew: str
    ids: bytes

    def __reduce__(self) -> tuple[Callable[[str, bytes], Answer], tuple[str, bytes]]:
        return perform, (self.crew, self.ids)


def perform(crew: str, ids: bytes) -> Answer:
    """Put a batch of packed ids to this worker's crew, in a task of dask's."""
    from distributed import get_worker  # noqa: PLC0415 - an extra, which other users of this package lack

    found = crews_of(get_worker()).wait(crew)
    if found is None:
        return _failed("unknown", "the worker was told nothing of this run")
    started = time.perf_counter()
    try:
        records = found.records([line.decode() for line in unpacked(ids)])
    except WorkerStartError as error:
        return _failed(error.kind, error.message, error.tail)
    return "records", time.perf_counter() - started, packed(records)


def _failed(*words: str) -> Answer:
    return "failed", 0.0, json.dumps(words).encode()


async def enlist(suite: Suite, digest: str, crew: bytes, dask_worker: Any) -> dict[str, Any]:
    """Make a worker part of a run, once it has shown that it has the suite and can open the backend.

    Returns `about`, what the backend says of itself; or `suite`, that of the worker where it is another; or `failed`,
    why the backend cannot be opened. No exception of ours travels: another version may not have its class.
    """
    return await asyncio.to_thread(_enlisted, suite, digest, crew, crews_of(dask_worker))


def _enlisted(suite: Suite, digest: str, crew: bytes, crews: Crews) -> dict[str, Any]:
    here = installed_suite()
    if tuple(here) != tuple(suite):
        return {"suite": tuple(here)}
    assignment, limits = pickle.loads(zlib.decompress(crew))  # noqa: S301 - whoever reaches a scheduler runs code anyway
    found = crews.get(digest) or Crew(assignment, limits)
    try:
        *_, about = found.records([ABOUT])
    except WorkerStartError as error:
        found.close()
        return {"failed": (error.kind, error.message, error.tail)}
    crews.add(digest, found)
    return {"about": about}


async def dismiss(digest: str, dask_worker: Any) -> None:
    """End what a worker holds for a run."""
    await asyncio.to_thread(crews_of(dask_worker).drop, digest)


def crews_of(dask_worker: Any) -> Crews:
    """Return the crews of a worker, which live as long as it does."""
    found: Crews = vars(dask_worker).setdefault(_CREWS, Crews())
    return found


class Crews:
    """The crews of one worker, by digest."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._found: dict[str, Crew] = {}
        self._dismissed: deque[str] = deque(maxlen=_CREWS_KEPT)

    def get(self, digest: str) -> Crew | None:
        """Return a crew, if it is here."""
        return self._found.get(digest)

    def wait(self, digest: str) -> Crew | None:
        """Return a crew, once it is here; None after a time."""
        with self._changed:
            self._changed.wait_for(lambda: digest in self._found, _PATIENCE)
            return self._found.get(digest)

    def add(self, digest: str, crew: Crew) -> None:
        """Keep a crew, unless its run has ended; the oldest of many goes, whose client died without dismissing it."""
        with self._changed:
            self._found[digest] = crew
            gone = [self._found.pop(old) for old in list(self._found)[:-_CREWS_KEPT]]
            gone += [self._found.pop(digest)] if digest in self._dismissed else []
            self._changed.notify_all()
        for old in gone:
            old.close()

    def drop(self, digest: str) -> None:
        """End a crew, if it is here, or when it comes."""
        with self._changed:
            self._dismissed.append(digest)
            crew = self._found.pop(digest, None)
        if crew is not None:
            crew.close()


@dataclass
class Crew:
    """The backend processes of one run on one worker: as many as tasks run at once."""

    assignment: Assignment
    limits: Limits
    _free: list[Station] = field(default_factory=list)
    _closed: threading.Event = field(default_factory=threading.Event)

    def records(self, ids: Sequence[str]) -> list[bytes]:
        """Return parts about each id, in any order, and for deaths between them. Raises WorkerStartError."""
        try:
            station = self._free.pop()  # atomic: several threads of a worker may come here
        except IndexError:
            station = Station(self.assignment, self.limits, self._closed)
        try:
            return station.records(ids)
        finally:
            self._free.append(station)

    def close(self) -> None:
        """End the processes, also those at work."""
        self._closed.set()
        while self._free:
            self._free.pop().wake()


@dataclass
class Station:
    """One backend process. A thread of its own drives it, since the process dies with the thread that started it."""

    assignment: Assignment
    limits: Limits
    closed: threading.Event
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _asked: deque[tuple[Sequence[str], Future[list[bytes]]]] = field(default_factory=deque)
    _at_work: bool = False

    def records(self, ids: Sequence[str]) -> list[bytes]:
        """Return parts about each id, in any order, and for deaths between them. Raises WorkerStartError."""
        reply: Future[list[bytes]] = Future()
        with self._changed:
            self._asked.append((ids, reply))
            self._changed.notify()
            if not self._at_work:
                self._at_work = True
                threading.Thread(target=self._work, name="opconform-station", daemon=True).start()
        return reply.result()

    def wake(self) -> None:
        """Let the thread see that the crew is closed."""
        with self._changed:
            self._changed.notify()

    def _work(self) -> None:
        waiting: deque[Sequence[str]] = deque()
        found: Iterator[Found] | None = None
        while (asked := self._next()) is not None:
            ids, reply = asked
            try:
                waiting.extend(batched(ids))
                pool = pool_for(self.assignment, jobs=1, limits=self.limits)
                found = found or pool.run(_handed(waiting))
                reply.set_result(list(self._lines(found, len(ids))))
            except BaseException as error:  # told where it was asked for; the next batch begins anew
                waiting.clear()
                found = None
                reply.set_exception(error)
        del found  # ends its process

    def _next(self) -> tuple[Sequence[str], Future[list[bytes]]] | None:
        """Return what is asked for next; None where nothing is for long, or the crew is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._asked or self.closed.is_set(), _IDLE)
            if self._asked:
                return self._asked.popleft()
            self._at_work = False
            return None

    def _lines(self, found: Iterator[Found], count: int) -> Iterator[bytes]:
        """Yield what is told of `count` keys, and of deaths in between."""
        while count:
            one = next(found)
            if self.closed.is_set():
                raise WorkerStartError("dismissed", "the run has ended")
            count -= not isinstance(one, Stray)
            yield self._line(one)

    def _line(self, found: Found) -> bytes:
        if isinstance(found, Stray):
            before = tuple(text for text in found.before if text != ABOUT)
            under_way = None if found.key == ABOUT else found.key
            death = Death(self.assignment.backend.name, under_way, found.kind, found.exit, found.tail, before)
            return _DEATH + json.dumps(asdict(death)).encode()
        if not isinstance(found, Loss):
            return found[1]
        if found.key == ABOUT:
            return json.dumps({"version": f"unknown ({found.exit})", "standards": [], "facts": {}}).encode()
        return lost(found, self.assignment.backend).to_json()


def _handed(waiting: deque[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yield batches as they come, and an empty one where there is none: the pool lives on between tasks."""
    while True:
        yield waiting.popleft() if waiting else ()
