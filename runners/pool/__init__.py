"""A pool of worker processes that turn keys into records, and survives whatever native code in a worker does."""

from .process import WorkerStartError
from .run import Found, Limits, Pool
from .wire import (
    Begin,
    Key,
    Loss,
    LossKind,
    Phase,
    Stray,
    Task,
)

__all__ = ["Begin", "Found", "Key", "Limits", "Loss", "LossKind", "Phase", "Pool", "Stray", "Task", "WorkerStartError"]
