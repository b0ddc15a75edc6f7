"""The command line in a process that can be killed: forked from one that has imported and read all that takes long."""

from __future__ import annotations

import os
import sys

from fakes.here import library, pool_here, shipped

import opconform.cli.session  # noqa: F401 - takes long to import
from opconform.cases.ids import Selection
from opconform.cli import main
from opconform.generators import source
from opconform.generators.plan import selected
from opconform.generators.source import GeneratedCases
from opconform.runners import running

source.Library = library  # type: ignore[assignment, misc]
WARM = [shipped().spec(operator) for operator in shipped().operators()]
"""The spec files, which the processes that are forked have read."""
PLANNED = sum(1 for _ in selected(GeneratedCases(), Selection(("onnx/ReduceMean-13",))))
"""What is cached of plans is theirs, too."""


def run_command(arguments: list[str], own_workers: bool) -> None:
    """Run `opconform` with these arguments, and nothing to see of it; without workers the cases run here."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    sys.argv = ["opconform", *arguments]
    if not own_workers:
        running.pool_for = pool_here  # type: ignore[assignment]
    main(arguments)
