"""The source of a run's cases and what is known about them."""

from __future__ import annotations

import importlib.metadata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..cases.batch import CaseSource
from ..cases.errors import OpconformError
from ..cases.ids import Selection, Shard, of_shard, share
from ..cases.runner import BackendKind
from ..runners.execution.execute import Attach
from ..runners.judging.kept import KeepOutputs
from ..runners.judging.terms import silences
from .planning import GrowingPlan


def suite_version() -> str:
    """Return the version of the suite, which is the package's."""
    return importlib.metadata.version("opconform")


class Suite(ABC):
    """The cases that a run may have; `source` provides them, also in the workers."""

    source: CaseSource

    @property
    @abstractmethod
    def digest(self) -> str:
        """Return the digest of everything that decides cases and expectations."""

    @abstractmethod
    def _selected(self, selection: Selection) -> Iterator[str]:
        """Yield the ids of the selected cases."""

    @property
    def operator_versions(self) -> Sequence[str]:
        """Return the operator versions that have cases; empty if others are allowed too."""
        return ()

    def disputed(self, selection: Selection) -> Mapping[str, str]:  # noqa: ARG002 - for suites with many specs
        """Return the disputed clauses of what may be selected, each with the address of the dispute, or empty."""
        return {}

    @property
    def broken(self) -> Sequence[str]:
        """Return the mistakes in files of selected operators, which are left out; the run exits with 2."""
        return ()

    @property
    def notes(self) -> Sequence[str]:
        """Return notes that must accompany every figure."""
        return ()

    def silences(self) -> Mapping[str, tuple[str, ...]]:
        """Return the silences of all operators, with their options."""
        return silences()

    def selected(self, selection: Selection, shard: Shard | None = None) -> Iterator[str]:
        """Yield the ids of the selected cases in a shard."""
        return of_shard(self._selected(selection), shard)

    def programs(self, selection: Selection, shard: Shard | None, kind: BackendKind) -> Iterator[str]:  # noqa: ARG002
        """Yield the ids of a case for each selected program. Raises OpconformError if the suite has no formulas."""
        raise OpconformError("this backend does not run programs: it needs the generated suite, without --corpus")

    def counts(self, selection: Selection) -> Counter[str]:
        """Return the number of selected cases, by standard."""
        return Counter(text.partition("/")[0] for text in self._selected(selection))

    def growing(self, selection: Selection) -> GrowingPlan | None:  # noqa: ARG002 - for suites that plan
        """Return the ids of the selected cases while they are planned; None if they should be counted first."""
        return None

    def share(self, selection: Selection, shard: Shard) -> int:
        """Return the number of cases in a shard. Raises OpconformError if some shard has none."""
        return share(self._selected(selection), shard)

    def suggestions(self, selection: Selection) -> Sequence[str]:  # noqa: ARG002 - for suites that know
        """Return suggestions for a selection without a case."""
        return ()

    def clause_text(self, operator_version: str, clause: str) -> str | None:  # noqa: ARG002 - for suites that know
        """Return a clause's text, None if it is unknown."""
        return None

    def attach(self, kept: KeepOutputs) -> Mapping[str, Attach]:  # noqa: ARG002 - for suites that can
        """Return the functions that make attachments which only this suite can make, by name."""
        return {}

    def to_dict(self) -> dict[str, Any] | None:
        """Return the files of the cases for `run.json`; None if they are generated."""
        return None
