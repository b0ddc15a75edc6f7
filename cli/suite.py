"""The source of a run's cases and what is known about them: files here, generators in a module of their own."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..cases.batch import CaseSource
from ..cases.corpus.cases import CorpusCases
from ..cases.corpus.files import open_files
from ..cases.corpus.manifest import MANIFEST, differences
from ..cases.errors import OpconformError
from ..cases.foreign import ABSOLUTE, RELATIVE, ForeignCases
from ..cases.ids import (
    Selection,
    Shard,
    of_shard,
    parse_id,
    share,
)
from ..reports.tables import clause_words
from ..reports.text import counted
from ..runners.execute import Attach
from ..runners.kept import KeepOutputs
from ..runners.terms import silences
from .options import RunOptions
from .planning import GrowingPlan

_OTHERS = ("strength", "draws", "seed", "suite", "specs", "arithmetic")
"""The options that affect what is generated, or how."""
_LEFT_OUT = 3


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

    @property
    def disputed(self) -> Mapping[str, str]:
        """Return the disputed clauses, each with the address of the dispute, or empty."""
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


def open_suite(options: RunOptions) -> Suite:
    """Return the suite that the options name; files do not import the generators. Raises OpconformError."""
    if options.corpus is None:
        from .generated_suite import generated_suite  # noqa: PLC0415 - see above

        return generated_suite(options)
    for name in _OTHERS:
        if name in options.given:
            raise OpconformError(f"--{name} with --corpus: the corpus's cases are fixed; leave --{name} out")
    path = options.corpus.resolve()  # the workers may run in another folder
    files = open_files(path)
    if MANIFEST not in files.sizes():
        return ForeignSuite(ForeignCases(path))
    source = CorpusCases(path)
    if wrong := next(differences(files, source.manifest, source.sums), None):
        raise OpconformError(f"{options.corpus}: not whole: {wrong}; `opconform verify` shows the rest")
    return CorpusSuite(source)


def _admitted(ids: Sequence[str], selection: Selection) -> Iterator[str]:
    for text in ids:
        if selection.standards and text.partition("/")[0] not in selection.standards:
            continue
        if not selection.globs or selection.admits(parse_id(text), text):
            yield text


@dataclass(frozen=True)
class CorpusSuite(Suite):
    """The cases of an undamaged corpus; waivers may also name other operators."""

    source: CorpusCases

    @property
    def digest(self) -> str:
        """The digest of the corpus."""
        return self.source.sums.digest

    @property
    def disputed(self) -> Mapping[str, str]:
        """Return the clauses that were disputed when the corpus was written."""
        return {name: told["source"] for name, told in self.source.clauses.items() if told["status"] == "disputed"}

    @property
    def notes(self) -> Sequence[str]:
        """Return which corpus it is."""
        return (f"cases from a corpus of suite {self.source.manifest.suite}, digest {self.digest}",)

    def silences(self) -> Mapping[str, tuple[str, ...]]:
        """Return the silences of all operators, and those that are open in a case."""
        found = silences()
        for text in self.source.ids():
            for name, answer in self.source.labels(text):
                if answer not in found.get(name, ()):
                    found[name] = (*found.get(name, ()), answer)
        return found

    def _selected(self, selection: Selection) -> Iterator[str]:
        """Yield the ids of the selected cases; cases that are included for others' sake only if they are named."""
        siblings = self.source.manifest.siblings - set(selection.globs)
        return _admitted([text for text in self.source.ids() if text not in siblings], selection)

    def clause_text(self, operator_version: str, clause: str) -> str | None:  # noqa: ARG002 - as above
        """Return a clause's text."""
        told = self.source.clauses.get(clause)
        return None if told is None else clause_words(told["text"], told["status"])

    def to_dict(self) -> dict[str, Any]:
        """Return what identifies the corpus."""
        manifest = self.source.manifest
        return {"kind": "corpus", "format": manifest.format, "suite": manifest.suite, "digest": self.digest}


@dataclass(frozen=True)
class ForeignSuite(Suite):
    """Directories without descriptors, judged by ONNX's tolerances; they have no clauses."""

    source: ForeignCases

    @property
    def digest(self) -> str:
        """The digest of the files."""
        return self.source.digest

    @property
    def notes(self) -> Sequence[str]:
        """Return how it is judged, and what was left out."""
        told = [
            f"expected values from files, within ONNX's own tolerances (rtol {RELATIVE:g}, atol {ABSOLUTE:g}), "
            "or those of a folder's data.json, not within derived bounds"
        ]
        if left := self.source.left_out:
            told.append(f"{counted(len(left), 'data set')} left out; run.json lists them:")
            told += [f"  {name}: {why}" for name, why in itertools.islice(left.items(), _LEFT_OUT)]
        return told

    def _selected(self, selection: Selection) -> Iterator[str]:
        return _admitted(self.source.ids(), selection)

    def to_dict(self) -> dict[str, Any]:
        """Return what identifies the files, and how they are judged."""
        return {
            "kind": "onnx-files",
            "digest": self.source.digest,
            "tolerances": {"rtol": RELATIVE, "atol": ABSOLUTE},
            "left_out": dict(self.source.left_out),
        }
