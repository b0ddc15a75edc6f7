"""What workers of the tests run first: `--preload fakes.cluster_preload`."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from typing import Any


class Without:
    """Finds no opconform, as if it were not installed."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "opconform":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


async def dask_setup(worker: Any) -> None:
    os.environ["FAKE_DASK_WORKER"] = str(os.getpid())
    version = importlib.metadata.version
    if "old" in worker.state.total_resources:
        importlib.metadata.version = lambda name: "0.0.1" if name == "opconform" else version(name)
    if "bare" in worker.state.total_resources:
        sys.meta_path.insert(0, Without())
