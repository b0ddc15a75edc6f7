"""A pool of worker processes that turn keys into records, and survives whatever native code in a worker does."""

from .process import WorkerStartError
from .run import Found, Limits, Pool
from .wire import Begin, InNewWorker, Key, Loss, LossKind, Phase, ProcessLost, Stray, Task

__all__ = [
    "Begin",
    "Found",
    "InNewWorker",
    "Key",
    "Limits",
    "Loss",
    "LossKind",
    "Phase",
    "Pool",
    "ProcessLost",
    "Stray",
    "Task",
    "WorkerStartError",
]
