"""Cases side by side: one program, and arrays whose leading axis counts the cases. A case is a batch of one."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from .elements import Array, lane_contents
from .expectation import Expectation
from .program import Program


@dataclass(frozen=True)
class Batch:
    """Cases of one program that differ in their data alone, and what is expected of each.

    `inputs` are those of `program.leaves`, each of shape (lanes, *input). `clauses` are ids of those that the cases
    test, as `onnx/ReduceMean#mean`. `mended` is the id of the valid case that an invalid one is a damaged copy of.
    """

    ids: Sequence[str]
    program: Program
    inputs: tuple[Array, ...]
    expectation: Expectation
    clauses: tuple[str, ...] = ()
    mended: str | None = None

    @classmethod
    def of_case(
        cls,
        text: str,
        program: Program,
        inputs: Sequence[Array],
        expectation: Expectation,
        *,
        clauses: tuple[str, ...] = (),
        mended: str | None = None,
    ) -> Batch:
        """Return a single case; its `inputs` without lanes."""
        return cls((text,), program, tuple(i[np.newaxis] for i in inputs), expectation, clauses, mended)

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, stop: int) -> Batch:
        """Return the cases from `start` on and before `stop`."""
        if (start, stop) == (0, len(self)):
            return self
        inputs = tuple(array[start:stop] for array in self.inputs)
        found = replace(self, ids=self.ids[start:stop], inputs=inputs, expectation=self.expectation.part(start, stop))
        if "digests" in self.__dict__:
            found.__dict__["digests"] = self.digests[start:stop]
        return found

    def case(self, lane: int) -> Batch:
        """Return one of the cases: of its expectation what applies to it."""
        inputs = tuple(array[lane : lane + 1] for array in self.inputs)
        found = replace(self, ids=(self.ids[lane],), inputs=inputs, expectation=self.expectation.case(lane))
        if "digests" in self.__dict__:
            found.__dict__["digests"] = [self.digests[lane]]
        return found

    def cases(self) -> Iterator[Batch]:
        """Yield the cases one by one."""
        return map(self.case, range(len(self)))

    def tensors(self, lane: int = 0) -> tuple[Array, ...]:
        """Return the inputs of one of the cases, without lanes."""
        return tuple(array[lane, ...] for array in self.inputs)

    @property
    def id(self) -> str:
        """The id of a single case; ValueError where there are more."""
        (found,) = self.ids
        return found

    @property
    def digest(self) -> str:
        """The digest of a single case; ValueError where there are more."""
        (found,) = self.digests
        return found

    @property
    def expectation_digest(self) -> str:
        """The digest of what is expected of a single case; ValueError where there are more."""
        return self.expectation.digest

    @functools.cached_property
    def digests(self) -> list[str]:
        """The digest of each case: sha256 over the program and the bytes of the inputs."""
        begun = hashlib.sha256(self.program.key.encode())
        begun.update(repr([array.shape[1:] for array in self.inputs]).encode())  # the types are the program's
        contents = [lane_contents(array) for array in self.inputs]
        found = []
        for lane in range(len(self)):
            digest = begun.copy()
            for rows in contents:
                digest.update(rows[lane])
            found.append(digest.hexdigest())
        return found

    @property
    def expectation_digests(self) -> list[str]:
        """The digest of what is expected of each case."""
        return self.expectation.digests


class CaseSource(Protocol):
    """Cases by id; picklable, since a worker process has its own."""

    def case(self, text: str, /) -> Batch:
        """Return one case, a batch of one. Raises CaseIdError."""

    def batches(self, texts: Sequence[str], /) -> Iterator[Batch]:
        """Yield the cases with these ids, in this order, neighbours that differ in their data alone side by side."""


def cases_of(source: CaseSource, texts: Sequence[str]) -> Iterator[Batch]:
    """Yield the cases with these ids, in this order, one by one. Raises CaseIdError."""
    return (case for batch in source.batches(texts) for case in batch.cases())
