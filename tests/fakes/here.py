"""Cases that run in this process, for tests of what becomes of results: a worker takes longer to start than to run."""

from __future__ import annotations

import functools
import gc
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from opconform.generators import source
from opconform.generators.families import vocabularies
from opconform.runners import running
from opconform.runners.execute import Assignment
from opconform.runners.pool import Found, Limits, Task, WorkerStartError
from opconform.specs.loader import Library
from opconform.specs.model import Vocabulary


@dataclass(frozen=True)
class PoolHere:
    """What a Pool does with keys that do no harm to their process; another is a mistake of the test."""

    factory: Callable[[], Task]

    def run(self, batches: Iterable[Sequence[str]]) -> Iterator[Found]:
        """Yield each key with its record. Raises WorkerStartError."""
        try:
            task = self.factory()
        except Exception as error:
            raise WorkerStartError(type(error).__name__, str(error), traceback.format_exc()) from error
        for keys in batches:
            yield from zip(keys, task.run(keys, lambda _index, _phase: None), strict=True)


def pool_here(assignment: Assignment, *, jobs: int, limits: Limits) -> PoolHere:
    """Take the place of `running.pool_for`."""
    return PoolHere(assignment)


@functools.cache
def shipped() -> Library:
    """Return the spec files of the package; each is read once."""
    return Library(None, vocabularies())


def library(root: Path | None, vocabulary: Mapping[str, Vocabulary]) -> Library:
    """Take the place of `source.Library`."""
    return shipped() if root is None else Library(root, vocabulary)


@contextmanager
def run_here() -> Iterator[None]:
    """Have cases run in this process meanwhile, which is as it was afterwards."""
    threshold = gc.get_threshold()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "pool_for", pool_here)
        patch.setattr(source, "Library", library)
        patch.setattr(sys, "path", [*sys.path])
        try:
            yield
        finally:
            gc.set_threshold(*threshold)
            gc.unfreeze()
