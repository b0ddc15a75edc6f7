"""`python -m benchmarks.table` from a checkout: the figures of long runs, each with its goal, as rows of Markdown.

Compared values are measured alternately in this one run, and medians of ratios count; see docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from opconform.generators.plan import Selection, counted, planned
from opconform.generators.source import GeneratedCases
from opconform.runners.execution.execute import Assignment
from opconform.runners.execution.running import Judged, batched, run_cases
from opconform.runners.judging.accuracy import attach_accuracy
from opconform.runners.pool import Limits
from opconform.runners.registry import backend_spec

from .faults import milliseconds
from .sessions import Timed, timed
from .theirs import bare_loop, own_tests

FAMILY = "onnx/*"
ALIKE = "onnx/ReduceMean-18/float32/*/uniform"
"""Draws of a few programs, so that ten times the cases are ten times the work."""
NARROW = tuple(f"*/{name}/*" for name in ("float16", "bfloat16", "float32", "int32", "uint32"))
BARE = 20  # the bare loop runs one batch in so many; all of them would take minutes

Row: TypeAlias = tuple[str, str, str]
"""A figure, its goal, and the measured value."""


@dataclass(frozen=True)
class Sizes:
    """The extent of the measurements: cases of a run, of the largest run, and repetitions."""

    cases: int
    largest: int
    rounds: int


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description=__doc__)
    parser.add_argument("--cases", type=int, default=200_000, help="cases of a run, about (default 200000)")
    parser.add_argument("--largest", type=int, default=1_000_000, help="cases of the largest run (default 1000000)")
    parser.add_argument("--rounds", type=int, default=3, help="number of measurements of each (default 3)")
    parser.add_argument("--only", choices=list(PARTS), action="append", help="one part; may be given several times")
    chosen = parser.parse_args()
    sizes = Sizes(chosen.cases, chosen.largest, chosen.rounds)
    print("| what | goal | measured |\n| --- | --- | --- |", flush=True)
    for name, part in PARTS.items():
        if not chosen.only or name in chosen.only:
            for row in part(sizes):
                print("| " + " | ".join(row) + " |", flush=True)


def draws_for(cases: int, *globs: str) -> int:
    """Return the number of draws that gives about so many cases of some globs."""
    library = GeneratedCases().library
    once, twice = (counted(library, Selection(globs, draws=draws)).total() for draws in (1, 2))
    return max(1, 1 + round((cases - once) / (twice - once)))


def end_to_end(sizes: Sizes) -> Iterator[Row]:
    """Measure whole runs and a bare loop over a part of the same cases, alternately; and ONNX's own tests."""
    draws, plain = draws_for(sizes.cases, FAMILY), GeneratedCases()
    batches = list(batched(planned(plain.library, Selection((FAMILY,), draws=draws))))
    kinds: dict[str, tuple[str, ...]] = {
        "answers not kept": ("--keep-outputs", "none"),
        "wrong answers and their certificates kept": (),
    }
    spent: dict[str, list[Timed]] = {kind: [] for kind in kinds}
    bare, own = list[float](), list[float]()
    for part in range(sizes.rounds):
        for kind, options in kinds.items():
            with _folder() as folder:
                spent[kind].append(timed(FAMILY, draws, folder, options))
            if kind == "answers not kept":
                sample = batches[part::BARE]
                bare.append(sum(bare_loop(plain, batch) for batch in sample) / sum(map(len, sample)))
                count, seconds = own_tests()
                own.append(seconds)
    cases = spent["answers not kept"][0].cases
    goals = {"answers not kept": "≥ 5"}
    for kind, runs in spent.items():
        told = f"{_ratio(bare, runs):.1f} ({_rate(runs)} cases/s)"
        yield f"end to end, {kind}, {cases:,} cases: times the bare loop", goals.get(kind, "-"), told
    told = f"{_ratio(own, spent['answers not kept']):,.0f} ({1000 * statistics.median(own):.1f} ms each, {count} tests)"
    yield "end to end, answers not kept: times ONNX's own tests under pytest", "≥ 100", told
    loop = f"{1e6 * statistics.median(bare):.0f} us a case"
    yield "the bare loop: one process, a session a case, cases made before", "-", loop
    yield "start-up, apart", "-", f"{statistics.median(run.start_up for run in spent['answers not kept']):.1f} s"


def _ratio(theirs: Sequence[float], ours: Sequence[Timed]) -> float:
    return statistics.median(t / o.each for t, o in zip(theirs, ours, strict=True))


def _rate(runs: Sequence[Timed]) -> str:
    return f"{1 / statistics.median(run.each for run in runs):,.0f}"


def pool(sizes: Sizes) -> Iterator[Row]:
    """Compare a worker of the pool with the same worker without a pool, alternately."""
    source = GeneratedCases()
    attach = {"accuracy": attach_accuracy}  # as in a run
    assignment = Assignment(backend_spec("onnxruntime"), source, attach=attach)
    draws = draws_for(sizes.cases, FAMILY)
    batches = list(batched(planned(source.library, Selection((FAMILY,), draws=draws))))
    in_process(assignment, batches)
    alone = [in_process(assignment, batches)]
    shares = []
    for _ in range(sizes.rounds + 2):  # each between two of the other, because a machine's speed varies
        pooled = in_pool(assignment, batches)
        alone.append(in_process(assignment, batches))
        shares.append(2 * pooled / sum(alone[-2:]))
    cases = sum(map(len, batches))
    told = f"{statistics.median(shares):.2f} ({1e6 * statistics.median(alone) / cases:.0f} us a case)"
    yield f"one worker of the pool over the same work in one process, {cases:,} cases", "≤ 1.15", told


def in_pool(assignment: Assignment, batches: Sequence[list[str]]) -> float:
    """Return the duration of a run on one worker in seconds, from the opened backend to the last result."""
    results = run_cases(assignment, iter(batches), jobs=1, limits=Limits())
    next(results)
    started = time.perf_counter()
    found = sum(isinstance(one, Judged) for one in results)
    if found != sum(map(len, batches)):
        raise RuntimeError(f"{found} results")
    return time.perf_counter() - started


def in_process(assignment: Assignment, batches: Sequence[list[str]]) -> float:
    """Return the seconds for inputs, runs, and judging in this process."""
    assignment.warm()
    worker = assignment()
    started = time.perf_counter()
    for batch in batches:
        for _ in worker.run(batch, lambda _place, _phase: None):
            pass
    return time.perf_counter() - started


def generation(sizes: Sizes) -> Iterator[Row]:
    """Measure the generation of cases of 32 bits and less, in this process without keeping them: processor time."""
    source = GeneratedCases()
    draws = draws_for(sizes.cases // 2, *NARROW)
    batches = list(batched(planned(source.library, Selection(NARROW, draws=draws))))
    cases = sum(map(len, batches))
    whole = statistics.median(made(source, batches) for _ in range(sizes.rounds)) / cases
    told = f"{1 / whole:,.0f} ({1e6 * whole:.0f} us a case)"
    yield f"generation, float32 and narrower, {cases:,} cases: cases/s a core", "≥ 10,000", told


def made(source: GeneratedCases, batches: Sequence[list[str]]) -> float:
    """Return the processor seconds of making cases."""
    started = time.process_time()
    for batch in batches:
        for _ in source.batches(batch):
            pass
    return time.process_time() - started


def growth(sizes: Sizes) -> Iterator[Row]:
    """Measure whole runs of more and more cases: the cost of each, and the peak memory of the parent."""
    wanted = [1_000, sizes.largest // 100, sizes.largest // 10, sizes.largest]
    found: dict[int, list[Timed]] = {cases: [] for cases in wanted}
    for _ in range(sizes.rounds):  # alternately, because a machine's speed varies
        for cases in wanted:
            with _folder() as folder:
                found[cases].append(timed(ALIKE, draws_for(cases, ALIKE), folder, ("--keep-outputs", "none")))
    runs = [sorted(some, key=lambda run: run.each)[len(some) // 2] for some in found.values()]
    told = ", ".join(f"{run.parent:.0f} MiB" for run in runs)
    names = ", ".join(f"{run.cases:,}" for run in runs)
    yield f"peak memory of the parent at {names} cases", "flat, < 100 MB", told
    first, *more = runs  # its time is almost only starting and ending
    each = [(run.seconds - first.seconds) / (run.cases - first.cases) for run in more]
    told = ", ".join(f"{1e6 * seconds:.1f} us" for seconds in each)
    spread = max(each) / min(each) - 1
    names = ", ".join(f"{run.cases:,}" for run in more)
    what = f"a case at {names} cases, beside a run of {first.cases:,} (which takes {first.seconds:.1f} s)"
    yield what, "within 10 %", f"{told} (within {spread:.0%})"


def crash(sizes: Sizes) -> Iterator[Row]:
    """Measure a segmentation fault as a worker's first case: what it adds to a run."""
    for fork, start, goal in ((True, "a warm forkserver", "≤ 25 ms"), (False, "spawn", "≤ 100 ms")):
        found = [milliseconds(fork, False, "segv", 10) for _ in range(sizes.rounds + 1)]
        yield f"a crash, {start}", goal, f"{statistics.median(found):.0f} ms"


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


PARTS: dict[str, Callable[[Sizes], Iterator[Row]]] = {
    "end-to-end": end_to_end,
    "pool": pool,
    "generation": generation,
    "growth": growth,
    "crash": crash,
}

if __name__ == "__main__":
    main()
