"""The command line in a process that can be killed: forked from one that has `fakes.warmed`."""

from __future__ import annotations

import os
import sys

from fakes.here import pool_here

from opconform.cli import main
from opconform.runners.execution import running


def run_command(arguments: list[str], own_workers: bool) -> None:
    """Run `opconform` with these arguments, and nothing to see of it; without workers the cases run here."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    sys.argv = ["opconform", *arguments]
    if not own_workers:
        running.pool_for = pool_here  # type: ignore[assignment]
    main(arguments)
