"""Where cases come from: a source hands them out by id, generated or read from a corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from .model import Case


class CaseSource(Protocol):
    """Cases by id; picklable, since a worker process has its own."""

    def case(self, text: str, /) -> Case:
        """Return one case. Raises CaseIdError."""

    def cases(self, texts: Sequence[str], /) -> Iterator[Case]:
        """Yield the cases with these ids, in this order."""
