"""Reads cases from a corpus, a folder or an archive, without the generators."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..batch import Batch
from ..elements import Array
from ..errors import CaseIdError, did_you_mean
from .descriptor import SCHEMA, case_from, read_values
from .files import CorpusError, Files, open_files, read_json
from .manifest import MANIFEST, CaseEntry, Manifest, Sums, checked_read, read_manifest, read_sums
from .tensors import read_npz, read_tensors_file

DESCRIPTOR = "case.json"
CLAUSES = "clauses.json"
_OF_CLAUSE = ("text", "status", "source")


@dataclass(frozen=True)
class CorpusCases:
    """The cases of a corpus, by id; picklable. `path` is a folder or an archive that `opconform export` wrote.

    Every file is checked against its sha256 when it is read, and every case against its digests. Raises CorpusError,
    which names the file, if something is wrong.
    """

    path: Path

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path}

    @functools.cached_property
    def files(self) -> Files:
        """The files."""
        return open_files(self.path)

    @functools.cached_property
    def manifest(self) -> Manifest:
        """The manifest."""
        return read_manifest(self.files)

    @functools.cached_property
    def sums(self) -> Sums:
        """The sha256 of every file."""
        return read_sums(self.files)

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all cases, in the order of the suite."""
        return tuple(self.manifest.cases)

    def case(self, text: str, /) -> Batch:
        """Return one case by its id. Raises CaseIdError if there is no such case, CorpusError if it is damaged."""
        entry = self._entry(text)
        content = {path: self.read(path) for path in self._by_folder.get(entry.folder, [])}
        file = f"{self.files.name}: {entry.folder}/{DESCRIPTOR}"
        descriptor = self._descriptor(text, entry)
        return case_from(
            descriptor, self._tensors(content, descriptor, file), (entry.case_digest, entry.expectation_digest), file
        )

    def batches(self, texts: Sequence[str], /) -> Iterator[Batch]:
        """Yield the cases with these ids, in this order, one at a time."""
        return map(self.case, texts)

    def descriptor(self, text: str, /) -> dict[str, Any]:
        """Return a case's descriptor, as docs/corpus.md defines it, with the texts of its clauses added."""
        descriptor = self._descriptor(text, self._entry(text))
        try:
            return {**descriptor, "clauses": [{"id": name, **self.clauses[name]} for name in descriptor["clauses"]]}
        except (KeyError, TypeError) as error:
            raise CorpusError(f"{self.files.name}: {CLAUSES}: has no clause {error}, which {text} tests") from None

    def labels(self, text: str, /) -> tuple[tuple[str, str], ...]:
        """Return the silences that are open in a case, with their options, without reading its tensors."""
        entry = self._entry(text)
        options: Any = self._descriptor(text, entry).get("options")
        try:
            return tuple((str(name), str(answer)) for option in options for name, answer in option["labels"].items())
        except (KeyError, TypeError, AttributeError):
            file = f"{self.files.name}: {entry.folder}/{DESCRIPTOR}"
            raise CorpusError(f"{file}: not a descriptor of schema {SCHEMA}: its options have no labels") from None

    @functools.cached_property
    def clauses(self) -> Mapping[str, Mapping[str, str]]:
        """Return the clauses by id: `text`, `status` and `source` of each."""
        name = f"{self.files.name}: {CLAUSES}"
        clauses = read_json(self.read(CLAUSES), name)
        for clause, clause_fields in clauses.items():
            known = isinstance(clause_fields, dict) and all(
                isinstance(clause_fields.get(key), str) for key in _OF_CLAUSE
            )
            if not known:
                raise CorpusError(f"{name}: {clause}: expected {', '.join(_OF_CLAUSE)}, each a string")
        return clauses

    def _entry(self, text: str) -> CaseEntry:
        entry = self.manifest.cases.get(text)
        if entry is None:
            raise CaseIdError(f"{self.path}: has no case {text!r}{did_you_mean(text, self.manifest.cases)}")
        return entry

    def _descriptor(self, text: str, entry: CaseEntry) -> dict[str, Any]:
        path = f"{entry.folder}/{DESCRIPTOR}"
        descriptor = read_json(self.read(path), f"{self.files.name}: {path}")
        if descriptor.get("id") != text:
            raise CorpusError(f"{self.files.name}: {path}: id {descriptor.get('id')!r}; {MANIFEST} has {text!r}")
        return descriptor

    @functools.cached_property
    def _by_folder(self) -> dict[str, list[str]]:
        """The tensor files, by folder."""
        paths: dict[str, list[str]] = {}
        for path in self.sums.files:
            folder, _, name = path.rpartition("/")
            if name.endswith((".pb", ".npz")):
                paths.setdefault(folder, []).append(path)
        return paths

    def read(self, path: str) -> bytes:
        """Return a file's content. Raises CorpusError if it does not match its sha256."""
        return checked_read(self.files, self.sums, path, self.manifest.size)

    def _tensors(self, content: Mapping[str, bytes], described: Mapping[str, Any], descriptor: str) -> dict[str, Array]:
        tensors: dict[str, Array] = {}
        values: dict[str, bytes] = {}
        for path, read in content.items():
            name, file = path.rpartition("/")[2], f"{self.files.name}: {path}"
            if name == "case.npz":
                tensors |= read_npz(read, file)
            elif name == "bounds.pb":
                tensors |= read_tensors_file(read, file)
            elif name.endswith(".pb"):
                values[name] = read
        return tensors | read_values(described, values, descriptor) if values else tensors
