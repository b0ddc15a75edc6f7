"""A pool of worker processes over string keys, which survives whatever native code in a worker does."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from ..cases.errors import OpconformError
from .pool_process import WorkerProcess
from .pool_run import Found, Limits, Run, WorkerStartError
from .pool_verdict import Loss, LossKind
from .pool_wire import Begin, Phase, Task

__all__ = ["Begin", "Found", "Limits", "Loss", "LossKind", "Phase", "Pool", "Task", "WorkerStartError"]

_USUAL_LIMITS: Final = Limits()


class Pool:
    """Worker processes that turn keys into records.

    `factory` is pickled by reference and makes the task in each worker: it lives in a module that the worker can
    import, not in `__main__`. `python` is another interpreter to run the workers with, in which this package is
    installed. Raises OpconformError where this system has no such workers.
    """

    def __init__(
        self,
        factory: Callable[[], Task],
        *,
        jobs: int,
        limits: Limits = _USUAL_LIMITS,
        python: str | None = None,
    ) -> None:
        if sys.platform == "win32":
            raise OpconformError("workers need Linux or macOS; on Windows, run it in the Windows Subsystem for Linux")
        if jobs < 1:
            raise OpconformError(f"jobs is {jobs}; at least one worker is needed")
        if limits.memory_bytes is not None and not Path("/proc/self/statm").exists():
            raise OpconformError("a memory limit needs Linux's /proc, which this system lacks; leave the limit out")
        self._jobs = jobs
        self._limits = limits
        self._start = partial(WorkerProcess, pickle.dumps(factory), python)

    def run(self, batches: Iterable[Sequence[str]]) -> Iterator[Found]:
        """Yield each key once, with its record or as a Loss; in any order.

        Takes batches as workers need them. An empty batch says that there is nothing for now: it is asked for again
        soon, and at the latest when the caller comes back for the next key; only the end of `batches` ends the run.
        Raises WorkerStartError. Closing the iterator kills the workers.
        """
        return Run(self._start, self._jobs, self._limits, batches).results()
