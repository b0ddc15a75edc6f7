"""What all tests share."""

import gc
import os
import sys
from collections.abc import Generator

import pytest
from fakes.here import library
from hypothesis import settings

from opconform.generators import source

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


# Or each command that a test runs in this process would read the spec files anew.
source.Library = library  # type: ignore[assignment,misc]


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Have `-n auto` start three workers for two cores: many tests wait for a process, and others can run meanwhile."""
    cores = yield
    return cores if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else cores + (cores + 1) // 2


def pytest_collection_finish() -> None:
    """Leave what is imported and collected by now out of every later search for garbage: it all stays."""
    gc.collect()
    gc.freeze()
