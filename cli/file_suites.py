"""The suites in files, a corpus or directories of ONNX, and the choice of a run's suite."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..cases.corpus.cases import CorpusCases
from ..cases.corpus.files import open_files
from ..cases.corpus.manifest import MANIFEST, differences
from ..cases.errors import OpconformError
from ..cases.foreign import ABSOLUTE, RELATIVE, ForeignCases
from ..cases.ids import Selection, parse_id
from ..reports.tables import clause_words
from ..reports.text import counted
from ..runners.judging.terms import silences
from .options import RunOptions
from .suite import Suite

_OTHERS = ("strength", "draws", "seed", "suite", "specs", "arithmetic")
"""The options that affect what is generated, or how."""
_LEFT_OUT = 3


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
        if not selection.globs or selection.admits(parse_id(text).operator, text):
            yield text


@dataclass(frozen=True)
class CorpusSuite(Suite):
    """The cases of an undamaged corpus; waivers may also name other operators."""

    source: CorpusCases

    @property
    def digest(self) -> str:
        """The digest of the corpus."""
        return self.source.sums.digest

    def disputed(self, selection: Selection) -> Mapping[str, str]:  # noqa: ARG002 - they are few
        """Return the clauses that were disputed when the corpus was written."""
        return {name: entry["source"] for name, entry in self.source.clauses.items() if entry["status"] == "disputed"}

    @property
    def notes(self) -> Sequence[str]:
        """Return which corpus it is."""
        return (f"cases from a corpus of suite {self.source.manifest.suite}, digest {self.digest}",)

    def silences(self) -> Mapping[str, tuple[str, ...]]:
        """Return the silences of all operators, and those that are open in a case."""
        answers = silences()
        for text in self.source.ids():
            for name, answer in self.source.labels(text):
                if answer not in answers.get(name, ()):
                    answers[name] = (*answers.get(name, ()), answer)
        return answers

    def _selected(self, selection: Selection) -> Iterator[str]:
        """Yield the ids of the selected cases; cases that are included for others' sake only if they are named."""
        siblings = self.source.manifest.siblings - set(selection.globs)
        return _admitted([text for text in self.source.ids() if text not in siblings], selection)

    def clause_text(self, operator_version: str, clause: str) -> str | None:  # noqa: ARG002 - as above
        """Return a clause's text."""
        entry = self.source.clauses.get(clause)
        return None if entry is None else clause_words(entry["text"], entry["status"])

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
        lines = [
            f"expected values from files, within ONNX's own tolerances (rtol {RELATIVE:g}, atol {ABSOLUTE:g}), "
            "or those of a folder's data.json, not within derived bounds"
        ]
        if left := self.source.left_out:
            lines.append(f"{counted(len(left), 'data set')} left out; run.json lists them:")
            lines += [f"  {name}: {why}" for name, why in itertools.islice(left.items(), _LEFT_OUT)]
        return lines

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
