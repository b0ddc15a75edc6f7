"""Whole runs of `opconform run`, measured from outside: seconds from the opened backend to the end, and peak memory."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LOOK = 0.004  # seconds between two checks of a run that is starting
_LOOK_AGAIN = 0.05  # and of one in progress
_CODES = (0, 1)


@dataclass(frozen=True)
class Timed:
    """A run: cases, seconds until its backend was open, and from then to its end; peak memory in MiB."""

    cases: int
    start_up: float
    seconds: float
    parent: float

    @property
    def each(self) -> float:
        """Return the seconds per case, without start-up."""
        return self.seconds / self.cases


def timed(glob: str, draws: int, folder: Path, more: Sequence[str] = ()) -> Timed:
    """Run the cases of a glob with two workers. Raises RuntimeError if the run fails."""
    command = [sys.executable, "-m", "opconform", "run", "onnxruntime", "-q", "--jobs", "2", "--select", glob]
    command += ["--draws", str(draws), "--out", str(folder / "out"), *more]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder)
    opened, seen = None, set[int]()
    while opened is None and process.poll() is None:
        # run.json is written when the run begins, and again once the backend is open
        seen |= _inode(folder / "out" / "run.json")
        opened = time.perf_counter() if len(seen) > 1 else None
        time.sleep(_LOOK)
    peak = _peak_until_end(process)
    ended = time.perf_counter()
    process.wait()
    if process.returncode not in _CODES or opened is None:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
    cases = json.loads((folder / "out" / "run.json").read_bytes())["figures"]["overall"]["cases"]
    return Timed(cases, opened - began, ended - opened, peak)


def _peak_until_end(process: subprocess.Popen[bytes]) -> float:
    """Wait until a process has ended, and return its peak memory; it is checked rarely, because that costs time."""
    peak, end = 0.0, os.pidfd_open(process.pid)
    try:
        while True:
            peak = max(peak, peak_memory(process.pid))
            if select.select([end], [], [], _LOOK_AGAIN)[0]:
                return peak
    finally:
        os.close(end)


def _inode(file: Path) -> set[int]:
    try:
        return {file.stat().st_ino}
    except OSError:
        return set()


def peak_memory(pid: int) -> float:
    """Return the peak resident memory of a process in MiB, 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    found = [line for line in lines if line.startswith("VmHWM")]
    return int(found[0].split()[1]) / 1024 if found else 0.0
