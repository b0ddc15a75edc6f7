"""The command line in a process that can be killed: forked from one that has imported and read all that takes long."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Generator, Iterable, Sequence

import opconform.reports.session  # noqa: F401 - takes long to import
from opconform.cases.selection import Selection
from opconform.cli import main
from opconform.generators.select import selected
from opconform.generators.source import GeneratedCases
from opconform.runners import executors
from opconform.runners.execute import ABOUT, Assignment
from opconform.runners.pool import Limits
from opconform.runners.running import About, Judged, about_of, judged_of

WARM = sum(1 for _ in selected(GeneratedCases(), Selection(("onnx/ReduceMean-13",))))
"""What is cached of plans is shared by the processes that are forked."""


def run_command(arguments: list[str], own_workers: bool) -> None:
    """Run `opconform` with these arguments, and nothing to see of it; without workers the cases run here."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    sys.argv = ["opconform", *arguments]
    if not own_workers:
        executors.run_cases = _run_here  # type: ignore[assignment]
    main(arguments)


def _run_here(
    assignment: Assignment, batches: Iterable[Sequence[str]], *, jobs: int, limits: Limits
) -> Generator[About | Judged]:
    worker = assignment()
    for keys in itertools.chain([[ABOUT]], batches):
        for record in worker.run(keys, lambda _index, _phase: None):
            yield about_of(record) if keys == [ABOUT] else judged_of(record)
