"""`python -m benchmarks.faults` from a checkout: the cost of a fault in a run in milliseconds, by how workers start.

Everything is measured in one run, compared values alternately; see docs/isolation.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import TypeAlias

from opconform.runners.pool import Limits, Loss, Pool

from .faulty import FAULTS, Faulty

Cell: TypeAlias = tuple[bool, bool, str]
"""Whether workers are forked, whether the worker ran other keys before the fault, and the fault."""

ROUNDS = 3
LIMITS = Limits(run_seconds=1.0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=10, help="number of faults of each kind in a run (default 10)")
    chosen = parser.parse_args()
    for line in table(chosen.faults):
        print(line, flush=True)


def table(count: int) -> Iterator[str]:
    """Yield the lines of the table: medians over the rounds."""
    cells = [(fork, used, name) for fork in (True, False) for used in (False, True) for name in FAULTS]
    spent: dict[Cell, list[float]] = {cell: [] for cell in cells}
    for _ in range(ROUNDS):
        for cell in cells:
            spent[cell].append(milliseconds(*cell, 2 if cell[2] == "hang" else count))
    yield "| ms a fault | " + " | ".join(HEADS[name] for name in FAULTS) + " |"
    yield "| --- |" + " --- |" * len(FAULTS)
    for fork in (True, False):
        for used in (False, True):
            row = [f"{statistics.median(spent[fork, used, name]):,.0f}" for name in FAULTS]
            start, where = "forked" if fork else "spawned", "in a used worker" if used else "as a worker's first key"
            yield f"| {start}, {where} | " + " | ".join(row) + " |"


def milliseconds(fork: bool, used: bool, name: str, count: int) -> float:
    """Return the time that a fault adds to a run on one worker, without the start of the first worker."""
    between = ["ok"] if used else []
    keys = [f"{one}-{i}" for i in range(count) for one in (*between, name)]
    batches = [["ok-first"], *([key] for key in keys)]
    found = Pool(Faulty, jobs=1, limits=LIMITS, fork=fork).run(batches)
    next(found)  # the first worker is ready
    started = time.perf_counter()
    losses = sum(isinstance(one, Loss) for one in found)
    spent = time.perf_counter() - started
    if losses != count:
        raise RuntimeError(f"{losses} losses of {count} faults")
    return 1000 * spent / count


HEADS = {
    "segv": "SIGSEGV",
    "hang": "hang (limit 1 s)",
    "flood": "100 MB on stdout",
    "garbage": "stray bytes on the pipe",
}

if __name__ == "__main__":
    main()
