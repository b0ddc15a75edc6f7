"""A plan that grows: it can be walked through while it is made, and says what goes wrong to whoever waits."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opconform.cases.errors import OpconformError
from opconform.cli.planning import GrowingPlan


def test_the_first_ids_can_be_had_before_the_last_are_planned() -> None:
    goes_on = threading.Event()

    def ids() -> Iterator[str]:
        yield from map(str, range(1000))
        goes_on.wait(30)
        yield from map(str, range(1000, 2000))

    plan = GrowingPlan(ids())
    assert plan.at_least(1) >= 1
    walk = iter(plan)
    assert [next(walk) for _ in range(500)] == [str(n) for n in range(500)]
    assert plan.total is None
    goes_on.set()
    assert plan.at_least(None) == plan.total == 2000
    assert list(plan) == [str(n) for n in range(2000)]
    assert list(walk) == [str(n) for n in range(500, 2000)]


def test_a_plan_of_nothing_is_whole_at_once() -> None:
    plan = GrowingPlan(iter(()))
    assert plan.at_least(5) == 0
    assert list(plan) == []


def test_what_goes_wrong_is_raised_to_whoever_waits() -> None:
    def ids() -> Iterator[str]:
        yield "onnx/Mean-13/float32/2/-/ones"
        raise OpconformError("the rest is wrong")

    plan = GrowingPlan(ids())
    with pytest.raises(OpconformError, match="the rest is wrong"):
        plan.at_least(None)
    with pytest.raises(OpconformError, match="the rest is wrong"):
        list(plan)


SLOW_WORK = """
import os, sys, time
from pathlib import Path

from opconform.cli.planning import made_of_each
from opconform.generators.source import GeneratedCases


def make(source, name, ids):
    Path(name).write_text(str(os.getpid()))
    time.sleep(600)


if __name__ == "__main__":
    made_of_each(GeneratedCases(), {"one": ["1"], "another": ["2"]}, 2, make)
"""


@pytest.mark.slow
def test_workers_end_with_the_process_that_gave_them_work_even_if_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "slow_work.py").write_text(SLOW_WORK)
    files = [tmp_path / "one", tmp_path / "another"]
    with subprocess.Popen([sys.executable, "slow_work.py"], cwd=tmp_path) as command:
        eventually(lambda: all(file.exists() and file.read_text() for file in files))
        command.kill()
    workers = [int(file.read_text()) for file in files]
    eventually(lambda: not any(map(alive, workers)))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
