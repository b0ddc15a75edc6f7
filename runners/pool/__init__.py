"""A pool of worker processes that turn keys into records, and survives whatever native code in a worker does."""

from .process import WorkerStartError
from .run import Limits, Pool, PoolEvent
from .wire import Begin, InNewWorker, Key, Loss, LossKind, Phase, ProcessLost, Stray, Task

__all__ = [
    "Begin",
    "InNewWorker",
    "Key",
    "Limits",
    "Loss",
    "LossKind",
    "Phase",
    "Pool",
    "PoolEvent",
    "ProcessLost",
    "Stray",
    "Task",
    "WorkerStartError",
]
