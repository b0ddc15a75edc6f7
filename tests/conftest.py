"""What all tests share."""

import gc
import os
import sys
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

# A change is judged on the same examples each time it is, in the gate on more of them, `thorough`; a weekly workflow
# draws others, `random`. A property says how many it takes only where each example is expensive.
settings.register_profile("usual", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=100, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

# Or each of the many processes that tests start would compile every module, and build every spec, anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Have `-n auto` start three workers for two cores: many tests wait for a process, and others can run meanwhile."""
    cores = yield
    return cores if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else cores + (cores + 1) // 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker a run of neighbours, which share what they read and plan, and others what it has left."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


def pytest_collection_finish() -> None:
    """Leave what is imported and collected by now out of every later search for garbage: it all stays."""
    gc.collect()
    gc.freeze()
