"""What all tests share."""

import gc
import os
import sys

from fakes.here import library
from hypothesis import settings

from opconform.generators import source

pytest_plugins = ["pytester"]

# A change is judged on the same examples each time it is; a weekly workflow draws others, `random`.
settings.register_profile("usual", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=200, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

# Or each of the many processes that tests start would compile every module, and build every spec, anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# Or each command that a test runs in this process would read the spec files anew.
source.Library = library  # type: ignore[assignment,misc]


def pytest_collection_finish() -> None:
    """Leave what is imported and collected by now out of every later search for garbage: it all stays."""
    gc.collect()
    gc.freeze()
