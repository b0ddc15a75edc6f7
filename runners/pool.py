"""A pool of worker processes that turn keys into records, and survives whatever native code in a worker does."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from ..cases.errors import OpconformError
from .pool_run import Found, Run
from .pool_seat import Limits
from .pool_starter import Starter, WorkerStartError
from .pool_verdict import Loss, LossKind, Stray
from .pool_wire import Begin, Key, Phase, Task

__all__ = [
    "Begin",
    "Found",
    "Key",
    "Limits",
    "Loss",
    "LossKind",
    "Phase",
    "Pool",
    "Stray",
    "Task",
    "WorkerStartError",
]

_USUAL_LIMITS: Final = Limits()


class Pool:
    """Worker processes that turn keys into records.

    `factory` is pickled by reference and makes the task in each worker: it lives in a module that the worker can
    import, not in `__main__`. `python` is another interpreter to run the workers with, in which this package is
    installed. Raises OpconformError where this system has no such workers.

    With `fork`, on Linux, the factory is unpickled once, in a process that workers are forked from; if it has a method
    `warm`, that is called there, and imports and reads what every worker needs. Neither may start a thread or use a
    library that cannot be forked after use. Otherwise each worker is an interpreter of its own. Without `reuse`, a
    worker gets one key only.
    """

    def __init__(
        self,
        factory: Callable[[], Task],
        *,
        jobs: int,
        limits: Limits = _USUAL_LIMITS,
        python: str | None = None,
        fork: bool = False,
        reuse: bool = True,
    ) -> None:
        if sys.platform == "win32":
            raise OpconformError("workers need Linux or macOS; on Windows, run it in the Windows Subsystem for Linux")
        if jobs < 1:
            raise OpconformError(f"jobs is {jobs}; at least one worker is needed")
        if limits.memory_bytes is not None and not Path("/proc/self/statm").exists():
            raise OpconformError("a memory limit needs Linux's /proc, which this system lacks; leave the limit out")
        self._jobs = jobs
        self._limits = limits
        self._reuse = reuse
        self._starter = partial(
            Starter, pickle.dumps(factory), python, limits.start_seconds, fork=fork and sys.platform == "linux"
        )

    def run(self, batches: Iterable[Sequence[Key]]) -> Iterator[Found]:
        """Yield each key once, with its record or as a Loss; in any order. In between, deaths that no key explains.

        Takes batches as workers need them. An empty batch says that there is nothing for now: it is asked for again
        soon, and at the latest when the caller comes back for the next key; only the end of `batches` ends the run.
        Raises WorkerStartError. Closing the iterator kills the workers.
        """
        return Run(self._starter(), self._jobs, self._limits, batches, reuse=self._reuse).results()
