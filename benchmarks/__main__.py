"""`python -m benchmarks` from a checkout: generation, end-to-end speed against a bare loop, memory, and start-up.

Everything is measured in one run, compared values alternately, and printed as ratios; see docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from opconform.cases.program import Input, OperatorVersion, Output, Program
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases
from opconform.runners.execution.execute import Assignment
from opconform.runners.execution.running import Judged, batched, run_cases
from opconform.runners.pool import Limits
from opconform.runners.registry import backend_spec, open_runner
from opconform.specs.loader import Library

from .sessions import peak_memory
from .theirs import bare_loop

NARROW = tuple(f"*/{name}/*" for name in ("float16", "bfloat16", "float32", "int32", "uint32"))
MEANS = ("onnx/ReduceMean*", "onnx/Mean-*")
BARE = 10  # the bare loop runs one batch in so many; all of them would take minutes


def main() -> None:
    """Print the whole table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="approximate number of cases (default 20000)")
    parser.add_argument("--rounds", type=int, default=3, help="number of measurements of each (default 3)")
    parser.add_argument(
        "--only",
        choices=["generation", "first-run", "end-to-end", "memory", "protocol", "start-up", "check"],
        action="append",
    )
    chosen = parser.parse_args()
    parts: dict[str, Callable[[int, int], None]] = {
        "generation": generation,
        "first-run": first_run,
        "end-to-end": end_to_end,
        "memory": memory,
        "protocol": protocol,
        "start-up": start_up,
        "check": check_time,
    }
    for name, part in parts.items():
        if not chosen.only or name in chosen.only:
            part(chosen.cases, chosen.rounds)


def ids_of(source: GeneratedCases, cases: int, globs: tuple[str, ...] = ()) -> tuple[list[str], int]:
    """Return ids of about as many cases as wanted, and the number of draws that gave them."""
    every = list(planned(source.library, Selection(globs), from_lock=True))
    if cases <= len(every):
        return every, 1
    twice = len(list(planned(source.library, Selection(globs, draws=2))))
    draws = 1 + round((cases - len(every)) / (twice - len(every)))
    return list(planned(source.library, Selection(globs, draws=draws))), draws


def generation(cases: int, rounds: int) -> None:
    """Measure the generation of cases with expectations: processor time of one process."""
    source = GeneratedCases()
    ids, draws = ids_of(source, cases, NARROW)
    whole = list(batched(ids))
    batches = whole[:: max(1, len(ids) // cases)]  # one in so many, if there are more
    ids = [id_ for batch in batches for id_ in batch]
    spent = []
    for _ in range(rounds):
        started = time.process_time()
        for batch in batches:
            for _group in source.batches(batch):
                pass
        spent.append((time.process_time() - started) / len(ids))
    rate = 1 / statistics.median(spent)
    print(f"generation      {len(ids)} cases of 32 bits and less, --draws {draws}: {rate:,.0f} cases/s and core")


def first_run(_cases: int, rounds: int) -> None:
    """Measure a default run of the means: processor time of all processes, without their start."""
    source = GeneratedCases()
    ids = list(planned(source.library, Selection(MEANS)))
    ours, bare = [], []
    for _ in range(rounds):
        start = _processor_seconds(ids[:1])
        ours.append((_processor_seconds(MEANS) - start) / (len(ids) - 1))
        bare.append(bare_loop(source, ids, time.process_time) / len(ids))
    print(f"first run       {len(ids)} cases of means, one worker: {statistics.median(ours) * 1e6:,.0f} us a case")
    ratio = statistics.median(a / b for a, b in zip(ours, bare, strict=True))
    print(f"  bare loop     {statistics.median(bare) * 1e6:,.0f} us a case; the suite takes {ratio:.1f} times that")


def _processor_seconds(globs: Sequence[str]) -> float:
    """Return the processor time of an `opconform run` and all its processes, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "opconform", "run", "onnxruntime", "-q", "--jobs", "1", "--out", "out"]
        command += [word for glob in globs for word in ("--select", glob)]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, cwd=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def end_to_end(cases: int, rounds: int) -> None:
    """Measure the suite with two workers and a bare loop with a session per case, alternately.

    The bare loop runs every batch of a part.
    """
    plain = GeneratedCases()
    ids, draws = ids_of(plain, cases, ("onnx/*Mean-*",))  # others can crash the process, which here is this one
    ours, bare = [], []
    for part in range(rounds):
        sample = list(batched(ids))[part::BARE]
        ours.append(timed_run(GeneratedCases(), ids) / len(ids))
        bare.append(sum(bare_loop(plain, batch) for batch in sample) / sum(map(len, sample)))
    print(f"end to end      {len(ids)} cases, --draws {draws}, onnxruntime, inputs, isolation and judging included")
    print(
        f"  bare loop     {1 / statistics.median(bare):,.0f} cases/s (one process, a session a case, cases made before)"
    )
    ratio = statistics.median(b / o for b, o in zip(bare, ours, strict=True))
    rate = 1 / statistics.median(ours)
    print(f"  opconform     {rate:,.0f} cases/s with two workers, {ratio:.1f} times the bare loop")


def timed_run(source: GeneratedCases, ids: list[str]) -> float:
    """Return the duration of a whole run with two workers in seconds, from the first result to the last."""
    assignment = Assignment(backend_spec("onnxruntime"), source)
    results = run_cases(assignment, batched(ids), jobs=2, limits=Limits())
    next(results)  # the backend's description, once it has started
    started = time.perf_counter()
    found = sum(isinstance(one, Judged) for one in results)
    if found != len(ids):
        raise RuntimeError(f"{found} results of {len(ids)} cases")
    return time.perf_counter() - started


def memory(cases: int, _rounds: int) -> None:
    """Print the peak memory of the parent and of its largest worker, at 1,000 cases and at many."""
    for wanted in sorted({1_000, cases}):
        peaks = dict(_peaks(wanted))
        print(f"memory          {wanted:>6} cases: parent {peaks['parent']:.0f} MiB, worker {peaks['worker']:.0f} MiB")


def _peaks(cases: int) -> Iterator[tuple[str, float]]:
    """Yield the peak resident memory of an `opconform run` and of its workers, in MiB."""
    globs = ("onnx/ReduceMean-*/float32/*", "onnx/Mean-*/float32/*")  # planned alone, as their operators are named
    _, draws = ids_of(GeneratedCases(), cases, globs)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "opconform", "run", "onnxruntime", "-q", "--jobs", "2"]
        command += [*(word for glob in globs for word in ("--select", glob))]
        command += ["--draws", str(draws), "--out", str(Path(folder) / "out")]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder)
        parent = worker = 0.0
        while process.poll() is None:
            parent = max(parent, peak_memory(process.pid))
            worker = max([worker, *map(peak_memory, _descendants(process.pid))])
            time.sleep(0.02)
    yield "parent", parent
    yield "worker", worker


def _descendants(pid: int) -> Iterator[int]:
    """Yield the descendants of a process."""
    for child in _read(Path(f"/proc/{pid}/task/{pid}/children")).split():
        yield int(child)
        yield from _descendants(int(child))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended
        return ""


def protocol(_cases: int, rounds: int) -> None:
    """Measure an Identity run over the process protocol, with contents in the line and in files, alternately."""
    for count in (1 << 8, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22):
        sent = np.arange(count, dtype=np.float32)
        program = Program(
            OperatorVersion("onnx", "Identity", 14),
            (),
            (Input("x", "float32", sent.shape),),
            (Output("y", "float32", 1),),
            14,
        )
        echo = f"cmd:{sys.executable} -S {Path(__file__).with_name('echo_program.py')}"
        prepared = [open_runner(echo + more).prepare(program) for more in ("", " files")]
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(5 * rounds):
            for one, found in zip(prepared, seconds, strict=True):
                started = time.perf_counter()
                one.run([sent])
                found.append(time.perf_counter() - started)
        line, files = (1e3 * min(found) for found in seconds)
        print(f"protocol        {count:9,} elements: {line:.2f} ms in the line, {files:.2f} ms in files")


def start_up(_cases: int, _rounds: int) -> None:
    """Measure `opconform --help` and a Python that does nothing, alternately."""
    ours, bare = [], []
    for _ in range(7):
        bare.append(_seconds([sys.executable, "-c", "pass"]))
        ours.append(_seconds([sys.executable, "-m", "opconform", "--help"]))
    a, b = statistics.median(ours), statistics.median(bare)
    print(f"start-up        opconform --help {a:.3f} s, {a / b:.1f} times a Python that does nothing")
    loads = []
    for _ in range(3):
        started = time.process_time()
        count = len(Library().specs())
        loads.append(time.process_time() - started)
    print(f"spec files      {min(loads) / count * 200e3:.0f} ms of processor time for 200")


_CHECK = """
import resource, time
import numpy as np
from opconform import check
x = np.random.default_rng(0).standard_normal(({n}, {n})).astype(np.float32)
e = np.exp(x - x.max(-1, keepdims=True))
y = e / e.sum(-1, keepdims=True)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
result = check("onnx/Softmax-13", {{"input": x}}, {{"axis": -1}}, y)
seconds = time.perf_counter() - started
more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / x.nbytes
print(f"check           Softmax of {n} x {n} float32: {{seconds:.2f}} s, {{result.judged:,}} of {{result.elements:,}} "
      f"elements, memory {{more:.1f}} times the input")
"""


def check_time(_cases: int, _rounds: int) -> None:
    """Measure `opconform.check` of large tensors in a process of its own, and the import of the package alone."""
    for extent in (1000, 4000):
        code = _CHECK.format(n=extent)
        print(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout, end="")
    print(f"check           import opconform: {_seconds([sys.executable, '-c', 'import opconform']):.3f} s")


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
