"""How many worker processes are worth having."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux alone tells
    return len(affinity(0)) if affinity else os.cpu_count() or 1
