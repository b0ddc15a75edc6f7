"""The suite that is generated from the spec files."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..cases.elements import Declaration
from ..cases.ids import Selection
from ..generators.plan import selected, selected_counts
from ..generators.source import GeneratedCases
from ..reports.certificates import AttachCertificate
from ..reports.tables import clause_text_of
from ..runners.execute import Attach
from ..runners.kept import KeepOutputs
from ..runners.terms import load_declaration, silences
from ..specs.errata import disputed_clauses
from ..specs.loader import Library
from ..specs.model import Spec
from .options import RunOptions
from .suite import Suite

_MOST_KEPT = 50_000


@dataclass(frozen=True)
class GeneratedSuite(Suite):
    """The cases that are generated from the spec files."""

    source: GeneratedCases

    @property
    def digest(self) -> str:
        """The digest of version and spec files."""
        return suite_digest(self.source.library)

    @functools.cached_property
    def _specs(self) -> list[Spec]:
        return self.source.library.specs()

    @property
    def operator_versions(self) -> Sequence[str]:
        """All of them."""
        return [str(version.operator) for spec in self._specs for version in spec.versions.values()]

    @property
    def disputed(self) -> Mapping[str, str]:
        """The clauses in dispute."""
        return disputed_clauses(self._specs)

    @property
    def broken(self) -> Sequence[str]:
        """The mistakes in spec files of operators that were asked for."""
        return [f"{name} is left out: {error}" for name, error in self.source.library.broken.items()]

    def silences(self) -> Mapping[str, tuple[str, ...]]:
        """Return those of all operators and of the spec files."""
        return silences(self.source.library)

    @functools.cached_property
    def _planned(self) -> dict[Selection, list[str]]:
        """The ids that were counted, of whatever standard, if they are few: planning takes as long as judging."""
        return {}

    def _selected(self, selection: Selection) -> Iterator[str]:
        known = self._planned.get(replace(selection, standards=()))
        if known is None:
            return selected(self.source, selection)
        return (text for text in known if not selection.standards or text.partition("/")[0] in selection.standards)

    def counts(self, selection: Selection) -> Counter[str]:
        """Return how many cases are selected, by standard."""
        if selection.draws == 1 and not selection.standards:
            ids = list(itertools.islice(selected(self.source, selection), _MOST_KEPT + 1))
            if len(ids) <= _MOST_KEPT:
                self._planned[selection] = ids
                return Counter(text.partition("/")[0] for text in ids)
        return selected_counts(self.source, selection)

    def clause_text(self, operator_version: str, clause: str) -> str | None:
        """Return a clause's text."""
        return clause_text_of(self.source.library)(operator_version, clause)

    def attach(self, kept: KeepOutputs) -> Mapping[str, Attach]:
        """Return what makes certificates."""
        return {"certificate": AttachCertificate(self.source, kept)}


def generated_suite(options: RunOptions) -> GeneratedSuite:
    """Return the suite of the spec files that the options name. Raises OpconformError."""
    declaration = load_declaration(options.arithmetic) if options.arithmetic else None
    suite = GeneratedSuite(GeneratedCases(options.specs, declaration or Declaration()))
    suite.source.library  # noqa: B018 - reads it, so that mistakes show now
    return suite


def suite_digest(library: Library) -> str:
    """Return the sha256 over the suite's version and the digests of all its spec files."""
    whole = hashlib.sha256(importlib.metadata.version("opconform").encode())
    for operator in library.operators():
        whole.update(f"{operator} {library.digest(operator)}\n".encode())
    return whole.hexdigest()
