"""Cases that run in this process, for tests of what becomes of results: a worker takes longer to start than to run."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from opconform.cases.runner import Runner
from opconform.cli import main
from opconform.runners.execution import execute, running
from opconform.runners.execution.execute import Assignment
from opconform.runners.execution.host import Host, Isolation, Reply, Request, read_about, read_answer
from opconform.runners.pool import Limits, PoolEvent, Stray, Task, WorkerStartError
from opconform.runners.registry import BackendSpec, open_runner


@dataclass(frozen=True)
class PoolHere:
    """What a Pool does with keys that do no harm to their process; another is a mistake of the test."""

    factory: Callable[[], Task]

    def run(self, batches: Iterable[Sequence[str]]) -> Iterator[PoolEvent]:
        """Yield each key with its record. Raises WorkerStartError."""
        try:
            task = self.factory()
        except Exception as error:
            raise WorkerStartError(type(error).__name__, str(error), traceback.format_exc()) from error
        for keys in batches:
            yield from zip(keys, task.run(keys, lambda _index, _phase: None), strict=True)


class HostsHere:
    """What `Hosts` does, with a backend in this process that does it no harm."""

    def __init__(self, runner: Runner, name: str = "here") -> None:
        self._host, self._replies = Host(runner, name), dict[int, Reply]()
        self.about = read_about(next(self._host.run([None], lambda _index, _phase: None)))

    @classmethod
    def opened(cls, backend: BackendSpec, _limits: Limits, _isolation: Isolation) -> HostsHere:
        """Take the place of `execute.Hosts`. Raises WorkerStartError."""
        try:
            return cls(open_runner(backend), backend.name)
        except Exception as error:
            raise WorkerStartError(type(error).__name__, str(error), traceback.format_exc()) from error

    def ask(self, requests: Sequence[Request]) -> range:
        places = range(len(self._replies), len(self._replies) + len(requests))
        own = [  # the arrays of a host are its own
            replace(request, number=place, inputs=tuple(array.copy() for array in request.inputs))
            for place, request in zip(places, requests, strict=True)
        ]
        records = self._host.run(own, lambda _index, _phase: None)
        self._replies |= dict(zip(places, map(read_answer, records), strict=True))
        return places

    def reply(self, place: int) -> Reply:
        return self._replies[place]

    def strays(self) -> list[Stray]:
        return []


def pool_here(assignment: Assignment, *, jobs: int, limits: Limits) -> PoolHere:
    """Take the place of `running.pool_for`."""
    return PoolHere(assignment)


@contextmanager
def run_here() -> Iterator[None]:
    """Have cases run in this process meanwhile, which is as it was afterwards."""
    threshold = gc.get_threshold()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "pool_for", pool_here)
        patch.setattr(execute, "Hosts", HostsHere.opened)
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(gc, "freeze", lambda: None)  # this process goes on: what is garbage later has to go
        try:
            yield
        finally:
            gc.set_threshold(*threshold)


# The command line in a process that can be killed: forked from one that has `fakes.warmed`


def run_command(arguments: list[str], own_workers: bool) -> None:
    """Run `opconform` with these arguments, and nothing to see of it; without workers the cases run here."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    sys.argv = ["opconform", *arguments]
    if not own_workers:
        running.pool_for = pool_here  # type: ignore[assignment]
    main(arguments)
