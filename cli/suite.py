"""Where the cases of a run come from, and what is known of them: the suite that is generated, or files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..cases.selection import Selection, Shard
from ..cases.source import CaseSource
from ..runners.execute import Attach
from ..runners.kept import KeepOutputs

if TYPE_CHECKING:
    from .options import RunOptions


class Suite(Protocol):
    """The cases that a run may have."""

    @property
    def source(self) -> CaseSource:
        """Hands out the cases, in the workers too."""

    @property
    def digest(self) -> str:
        """What decides all cases and expectations."""

    @property
    def operator_versions(self) -> Sequence[str]:
        """The operator versions that it has cases of; empty if it does not know others."""

    @property
    def disputed(self) -> Mapping[str, str]:
        """The clauses in dispute, each with the address of the dispute or nothing."""

    @property
    def notes(self) -> Sequence[str]:
        """What has to be said with every figure."""

    def silences(self) -> Mapping[str, tuple[str, ...]]:
        """Return the silences with their options."""

    def selected(self, selection: Selection, shard: Shard | None = None) -> Iterator[str]:
        """Yield the ids of the selected cases, in a shard."""

    def share(self, selection: Selection, shard: Shard) -> int:
        """Return how many cases a shard has. Raises OpconformError where some shard has none."""

    def clause_text(self, operator_version: str, clause: str) -> str | None:
        """Return a clause's text, None if it is not known."""

    def attach(self, kept: KeepOutputs) -> Mapping[str, Attach]:
        """Return what makes attachments that only this suite can make, by their names."""

    def to_dict(self) -> dict[str, Any] | None:
        """Return for `run.json` which files the cases come from; None if they are generated."""


@runtime_checkable
class CountedSuite(Protocol):
    """A suite that tells how many cases are selected without naming each."""

    def counts(self, selection: Selection) -> Counter[str]:
        """Return how many cases are selected, by standard."""


def counts_of(suite: Suite, selection: Selection) -> Counter[str]:
    """Return how many cases of a suite are selected, by standard."""
    if isinstance(suite, CountedSuite):
        return suite.counts(selection)
    return Counter(text.partition("/")[0] for text in suite.selected(selection))


def open_suite(options: RunOptions) -> Suite:
    """Return the suite that the options name; with files the generators are not imported. Raises OpconformError."""
    if options.corpus is None:
        from .generated_suite import generated_suite  # noqa: PLC0415 - see above

        return generated_suite(options)
    from .file_suite import file_suite  # noqa: PLC0415

    return file_suite(options)
