"""Runs of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fakes.here import run_here
from fakes.results import Ran

from opconform.cli import main


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Run the command line in this process; workers are processes all the same."""

    def started(*arguments: object, out: str = "out") -> Ran:
        folder = tmp_path / out
        words = ["run", *(f"python:fakes.backends:{a[1:]}" if str(a).startswith("@") else str(a) for a in arguments)]
        jobs = [] if "--jobs" in words else ["--jobs", "1"]  # a worker takes longer to start than to run these cases
        done = CliRunner().invoke(main, [*words, *jobs, "--out", str(folder)], catch_exceptions=False)
        assert "Traceback" not in done.output
        return Ran(done.exit_code, done.output, folder)

    return started


@pytest.fixture
def judge(run: Any) -> Any:
    """The same where the processes are not the point: the cases run in this one."""

    def started(*arguments: object, out: str = "out") -> Ran:
        with run_here():
            ran: Ran = run(*arguments, out=out)
        return ran

    return started
