"""Where cases come from: a source hands them out by id, generated or read from a corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from .lanes import CaseGroup
from .model import Case


class CaseSource(Protocol):
    """Cases by id; picklable, since a worker process has its own."""

    def case(self, text: str, /) -> Case:
        """Return one case. Raises CaseIdError."""

    def cases(self, texts: Sequence[str], /) -> Iterator[Case]:
        """Yield the cases with these ids, in this order."""


@runtime_checkable
class GroupSource(Protocol):
    """A source that also hands out cases side by side."""

    def groups(self, texts: Sequence[str], /) -> Iterator[CaseGroup]:
        """Yield the cases with these ids, in this order, those that differ in their data alone side by side."""
