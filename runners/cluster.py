"""A dask.distributed cluster as the place where cases run: reaching it, and what there is on it."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final

from distributed import Client, LocalCluster

from ..cases.errors import OpconformError
from .cluster_run import ClusterRun, slots_of
from .execute import Assignment
from .pool import Limits
from .running import About, Death, Judged, RunCases

_REACH: Final = 10.0  # seconds for a scheduler to answer
_WORKERS: Final = 30.0  # seconds for a worker to be there that has what is needed
_LOOK_AGAIN: Final = 0.2


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
        while not (found := slots_of(self._client, self._resources)):
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
