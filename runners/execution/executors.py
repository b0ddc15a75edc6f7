"""Executors: where cases run, on this machine or on a cluster."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from ...cases.errors import OpconformError
from .running import RunCases, run_cases

_FORMS = "expected local, dask (a cluster on this machine), or dask:ADDRESS, as in dask:tcp://host:8786"


class Executor(Protocol):
    """Runs cases against backends, somewhere."""

    @property
    def run_cases(self) -> RunCases:
        """Yield the backend's description of itself, and one result for each case id; see `running.run_cases`."""

    def description(self) -> Mapping[str, object]:
        """Return what `run.json` says about the executor: strict JSON, without host names."""


class LocalExecutor:
    """Worker processes on this machine."""

    run_cases = staticmethod(run_cases)

    def description(self) -> Mapping[str, object]:
        """Return what `run.json` says about the executor."""
        return {"kind": "local"}


def check_executor(name: str, resources: Sequence[str]) -> dict[str, float]:
    """Return the resources that a worker must have. Raises OpconformError for a wrong name or resource."""
    kind, colon, address = name.partition(":")
    needed = _resources(resources)
    if kind not in ("local", "dask") or (colon and (kind == "local" or not address)):
        raise OpconformError(f"--executor {name}: {_FORMS}")
    if needed and not address:
        raise OpconformError(f"--resource names resources of cluster workers; with --executor {name} they have none")
    return needed


@contextmanager
def opened_executor(name: str, resources: Sequence[str] = (), *, jobs: int) -> Iterator[Executor]:
    """Open the executor called `name`: `local`, `dask` or `dask:ADDRESS`.

    `resources` are `NAME=NUMBER`, which a worker of the cluster must have for a task. `jobs` is the number of workers
    of a cluster on this machine. Raises OpconformError for a wrong name, or if there is no such cluster.
    """
    needed = check_executor(name, resources)
    kind, _, address = name.partition(":")
    if kind == "local":
        yield LocalExecutor()
        return
    if importlib.util.find_spec("distributed") is None:
        install = "pip install distributed"
        raise OpconformError(f"--executor {name} needs dask.distributed, which is not installed: {install}")
    from .cluster import DaskExecutor  # noqa: PLC0415 - it imports distributed, which takes a second

    with DaskExecutor(address or None, resources=needed, jobs=jobs) as executor:
        yield executor


def _resources(words: Sequence[str]) -> dict[str, float]:
    amounts: dict[str, float] = {}
    for word in words:
        name, _, number = word.partition("=")
        try:
            amount = float(number)
        except ValueError:
            amount = math.nan
        if not name or not (0 < amount < math.inf):
            raise OpconformError(f"--resource {word}: expected NAME=NUMBER with a number above 0, as in npu=1")
        if name in amounts:
            raise OpconformError(f"--resource {name} is given twice")
        amounts[name] = amount
    return amounts
