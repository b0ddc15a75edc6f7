"""The judge's side of a host: questions are queued, answers collected, and a host that dies is replaced."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Literal, TypeAlias

from .host import About, HostFactory, Reply, Request, Unreadable, read_about, read_answer
from .pool import Limits, Loss, Pool, Stray, WorkerStartError
from .registry import BackendSpec

Isolation: TypeAlias = Literal["program", "case"]
"""What shares a host: the cases that come to it, a program's together; or nothing, a case has its own."""


class Hosts:
    """One host at a time, with requests in flight. Use it as a context manager: leaving it ends the host."""

    def __init__(self, backend: BackendSpec, limits: Limits, isolation: Isolation = "program") -> None:
        """Start a host. Raises WorkerStartError where the backend cannot be opened."""
        self._places = itertools.count()
        self._queue: deque[Sequence[Request | None]] = deque()
        self._replies: dict[int, Reply] = {}
        self._strays: list[Stray] = []
        pool = Pool(HostFactory(backend), jobs=1, limits=limits, fork=True, reuse=isolation == "program")
        self._found = pool.run(self._work())
        self.about = self._described()

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._found.close()  # type: ignore[attr-defined]  # a generator

    def _work(self) -> Iterator[Sequence[Request | None]]:
        while True:
            yield self._queue.popleft() if self._queue else ()

    def _described(self) -> About:
        self._queue.append([None])
        for found in self._found:
            if isinstance(found, Loss):
                return About(f"unknown ({found.exit})")
            if isinstance(found, tuple):
                try:
                    return read_about(found[1])
                except Unreadable as why:
                    return About(f"unknown ({why})")
        raise WorkerStartError("died", "the backend's process never described itself")

    def ask(self, requests: Sequence[Request]) -> range:
        """Queue requests that share a host; returns the places by which `reply` returns what came of them."""
        numbered = [replace(request, place=next(self._places)) for request in requests]
        if not numbered:
            return range(0)
        self._queue.append(numbered)
        return range(numbered[0].place, numbered[-1].place + 1)

    def reply(self, place: int) -> Reply:
        """Wait for what came of a request; each can be taken once. Raises WorkerStartError."""
        while place not in self._replies:
            found = next(self._found)
            if isinstance(found, Stray):
                self._strays.append(found)
            elif isinstance(found, Loss):
                self._replies[found.key.place] = Reply(found, found.seconds)
            else:
                request, record = found
                self._replies[request.place] = _read(request, record)
        return self._replies.pop(place)

    def strays(self) -> list[Stray]:
        """Return the deaths since the last call that no request is charged with; their keys are requests."""
        found, self._strays = self._strays, []
        return found


def _read(request: Request, record: bytes) -> Reply:
    try:
        return read_answer(record)
    except Unreadable as why:
        return Reply(Loss(request, "corrupt", request.phase, f"its answer held {why}", "", 0.0))
