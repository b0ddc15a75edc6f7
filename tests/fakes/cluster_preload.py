"""What workers of the tests run first: `--preload fakes.cluster_preload`."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from typing import Any

from msgspec import structs


class Without:
    """Finds no opconform, as if it were not installed."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "opconform":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def lying(lie: str) -> None:
    """Let this worker answer otherwise than it is asked: for another backend, or not for all cases."""
    from opconform.runners.execution import cluster
    from opconform.runners.execution.running import Judged

    honest = cluster.run_cases

    def told(*arguments: Any, **options: Any) -> Iterator[Any]:
        for found in honest(*arguments, **options):
            if not isinstance(found, Judged):
                yield found
            elif lie == "alias":
                yield Judged(structs.replace(found.result, backend="onnxruntime"), found.attachments)

    cluster.run_cases = told  # type: ignore[assignment]


async def dask_setup(worker: Any) -> None:
    os.environ["FAKE_DASK_WORKER"] = str(os.getpid())
    version = importlib.metadata.version
    if "old" in worker.state.total_resources:
        importlib.metadata.version = lambda name: "0.0.1" if name == "opconform" else version(name)
    if "bare" in worker.state.total_resources:
        sys.meta_path.insert(0, Without())
    for lie in ("alias", "omit"):
        if lie in worker.state.total_resources:
            lying(lie)
