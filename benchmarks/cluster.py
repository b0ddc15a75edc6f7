"""`python -m benchmarks.cluster` from a checkout: what a case costs on a cluster, in seconds, bytes and memory.

A scheduler and its workers are started on this machine, each in a process of its own; see docs/cluster.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from distributed import Client

from opconform.cases.program import Program
from opconform.cases.runner import Executable, Unsupported
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases
from opconform.reports.arithmetic import ATTACHMENT
from opconform.runners.accuracy import attach_accuracy
from opconform.runners.cluster import ClusterRun
from opconform.runners.execute import Assignment
from opconform.runners.pool import Limits
from opconform.runners.registry import backend_spec
from opconform.runners.running import Judged, batched

CASES, DEVICES = 10_000_000, 100
REFUSING = "python:benchmarks.cluster:Refusing"


class Refusing:
    """Refuses every program at once, so that what is left is the way of a case there and back."""

    name = "refusing"
    standards = ("onnx",)

    def version(self) -> str:
        """Return none to speak of."""
        return "0"

    def prepare(self, program: Program) -> Executable:
        """Refuse."""
        raise Unsupported(f"{program.operator}", "other")


@dataclass(frozen=True)
class Figures:
    """What a run took; seconds after start-up, processor seconds of single processes, bytes on the way."""

    cases: int
    batches: int
    seconds: float
    scheduler: float
    client: float
    sent: int
    received: int
    crew: int
    scheduler_growth: float
    client_peak: float
    work: float
    busy: float


def main() -> None:
    """Print the figures, and what they make of a large run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="how many cases, about (default 20000)")
    parser.add_argument("--workers", type=int, default=2, help="workers of one thread each (default 2)")
    chosen = parser.parse_args()
    with cluster(chosen.workers) as (address, scheduler):
        for backend in (REFUSING, "onnxruntime"):
            for cases in (chosen.cases // 10, chosen.cases):
                found = measured(address, scheduler, backend, cases)
                tell(backend, found)
    extrapolate(found)


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[tuple[str, psutil.Process]]:
    """Start a scheduler and its workers; yields its address and its process."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        file = Path(folder) / "scheduler.json"
        common = ["--no-dashboard", f"--scheduler-file={file}"]
        scheduler = start(stack, folder, "scheduler", *common, "--port=0")
        for _ in range(workers):
            start(stack, folder, "worker", *common, "--nthreads=1")
        while not file.exists():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers)
        yield address, psutil.Process(scheduler.pid)


def start(stack: contextlib.ExitStack, folder: str, what: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a process of dask's, which ends with the stack."""
    command = [sys.executable, "-P", "-m", f"distributed.cli.dask_{what}", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.enter_context(process)
    stack.callback(process.terminate)
    return process


def measured(address: str, scheduler: psutil.Process, backend: str, cases: int) -> Figures:
    """Run about so many cases and measure from the moment that the workers are ready."""
    source = GeneratedCases()
    selection = Selection(("onnx/*",))
    once = sum(1 for _ in planned(source.library, selection))
    twice = sum(1 for _ in planned(source.library, Selection(selection.globs, draws=2)))
    draws = max(1, 1 + round((cases - once) / (twice - once)))
    ids = planned(source.library, Selection(selection.globs, draws=draws))
    attach = {ATTACHMENT: attach_accuracy}  # as a run has them
    assignment = Assignment(backend_spec(backend), source, attach=attach)
    with Client(address, set_as_default=False) as client:
        run = ClusterRun(client, assignment, batched(ids), limits=Limits(), resources={})
        return _measured(run, scheduler)


def _measured(run: ClusterRun, scheduler: psutil.Process) -> Figures:
    results = run.results()
    next(results)  # what the backend says of itself: the workers are ready
    memory = scheduler.memory_info().rss
    started, own, theirs = time.perf_counter(), time.process_time(), _processor(scheduler)
    count = sum(isinstance(found, Judged) for found in results)
    seconds = time.perf_counter() - started
    return Figures(
        cases=count,
        batches=run.batches,
        seconds=seconds,
        scheduler=_processor(scheduler) - theirs,
        client=time.process_time() - own,
        sent=run.sent_bytes,
        received=run.received_bytes,
        crew=run.crew_bytes,
        scheduler_growth=(scheduler.memory_info().rss - memory) / 2**20,
        client_peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        work=run.busy_seconds,
        busy=run.busy_seconds / run.workers / seconds,
    )


def _processor(process: psutil.Process) -> float:
    times: Any = process.cpu_times()
    return float(times.user + times.system)


def tell(backend: str, found: Figures) -> None:
    """Print the figures of one run."""
    n = found.cases
    client, scheduler = found.client / n * 1e6, found.scheduler / n * 1e6
    batch = found.scheduler / found.batches * 1e3
    print(f"{backend}: {n:,} cases in {found.batches} batches, {n / found.seconds:,.0f} cases/s;", end="")
    print(f" {found.work / n * 1e3:.2f} ms a case on its worker, busy {found.busy:.0%} of the time")
    print(f"  processor  client {client:.0f} us a case, scheduler {scheduler:.0f} us a case ({batch:.1f} ms a batch)")
    print(
        f"  bytes      {found.sent / n:.0f} out and {found.received / n:.0f} back a case, {found.crew:,} once a worker"
    )
    print(f"  memory     client {found.client_peak:.0f} MiB at its peak, scheduler {found.scheduler_growth:+.1f} MiB")


def extrapolate(found: Figures) -> None:
    """Print what a large run takes: the slower of workers, client and scheduler."""
    n = found.cases
    central = max(found.client, found.scheduler) / n * CASES
    traffic = (found.sent + found.received) / n * CASES + found.crew * DEVICES
    print(f"{CASES:,} cases, {DEVICES} devices: {traffic / 1e6:,.0f} MB through the scheduler")
    for milliseconds in (0.1, 1, 10, 100):
        devices = CASES * milliseconds / 1e3 / DEVICES
        slower = "workers" if devices > central else "client and scheduler"
        print(f"  {milliseconds:>5} ms a case on its worker: {max(devices, central) / 3600:.2f} h ({slower})")


if __name__ == "__main__":
    main()
