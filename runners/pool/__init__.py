"""A pool of worker processes that turn keys into records, and survives whatever native code in a worker does."""

from .process import WorkerStartError
from .run import Found, Limits, Pool
from .verdict import Loss, LossKind, Stray
from .wire import Begin, Key, Phase, Task

__all__ = ["Begin", "Found", "Key", "Limits", "Loss", "LossKind", "Phase", "Pool", "Stray", "Task", "WorkerStartError"]
