"""Where cases come from: a source hands them out by id, generated or read from a corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from .batch import Batch


class CaseSource(Protocol):
    """Cases by id; picklable, since a worker process has its own."""

    def case(self, text: str, /) -> Batch:
        """Return one case, a batch of one. Raises CaseIdError."""

    def batches(self, texts: Sequence[str], /) -> Iterator[Batch]:
        """Yield the cases with these ids, in this order, neighbours that differ in their data alone side by side."""


def cases_of(source: CaseSource, texts: Sequence[str]) -> Iterator[Batch]:
    """Yield the cases with these ids, in this order, one by one. Raises CaseIdError."""
    return (case for batch in source.batches(texts) for case in batch.cases())
