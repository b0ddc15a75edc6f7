"""The manifest of a corpus: what is in it, the sha256 of every file, and one digest of the whole."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .corpus_descriptor import SCHEMA
from .corpus_files import Files, check_path
from .corpus_json import LARGEST_JSON, CorpusError, lined_json, read_json

MANIFEST = "manifest.json"
FORMATS = ("onnx", "npz")
SIBLINGS = "siblings"
"""The key of a manifest's selection that names the cases which are there for the sake of invalid ones alone."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """What a manifest says of one file; `size` in bytes."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class CaseEntry:
    """What a manifest says of one case: the folder of its files, and its digests."""

    folder: str
    case_digest: str
    expectation_digest: str


@dataclass(frozen=True)
class Manifest:
    """The manifest of a corpus. `counts` are cases by operator version, `selection` what was asked for.

    `suite` is the suite's version. `digest` is the sha256 of the whole manifest without its digest.
    """

    format: str
    suite: str
    selection: Mapping[str, Any]
    counts: Mapping[str, int]
    cases: Mapping[str, CaseEntry]
    files: Mapping[str, FileEntry]
    digest: str = ""

    def sealed(self) -> Manifest:
        """Return the manifest with its digest."""
        return replace(self, digest=hashlib.sha256(lined_json(self._told())).hexdigest())

    def to_bytes(self) -> bytes:
        """Return the content of `manifest.json`."""
        return lined_json({"digest": self.digest, **self._told()})

    def _told(self) -> dict[str, Any]:
        cases = {
            name: {"folder": c.folder, "case_digest": c.case_digest, "expectation_digest": c.expectation_digest}
            for name, c in self.cases.items()
        }
        return {
            "schema": SCHEMA,
            "format": self.format,
            "suite": {"version": self.suite},
            "selection": dict(self.selection),
            "counts": dict(self.counts),
            "cases": cases,
            "files": {path: {"size": f.size, "sha256": f.sha256} for path, f in sorted(self.files.items())},
        }


def read_manifest(files: Files) -> Manifest:
    """Read the manifest of a corpus. Raises CorpusError that names the file if there is none of this schema."""
    name = f"{files.name}: {MANIFEST}"
    told = read_json(files.read(MANIFEST, LARGEST_JSON), name)
    if told.get("schema") != SCHEMA:
        read = told.get("schema")
        raise CorpusError(f"{name}: of schema {read!r}; this version of opconform reads schema {SCHEMA}")
    try:
        found = _manifest(told)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorpusError(f"{name}: no manifest of schema {SCHEMA}: {type(error).__name__}: {error}") from None
    for path in (*found.files, *(case.folder for case in found.cases.values())):
        check_path(path, name)
    return found


def _manifest(told: Mapping[str, Any]) -> Manifest:
    if told["format"] not in FORMATS:
        raise ValueError(f"format {told['format']!r}; expected one of {', '.join(FORMATS)}")
    cases = {
        name: CaseEntry(str(c["folder"]), str(c["case_digest"]), str(c["expectation_digest"]))
        for name, c in told["cases"].items()
    }
    files = {path: FileEntry(_size(f["size"]), str(f["sha256"])) for path, f in told["files"].items()}
    counts = {name: _size(number) for name, number in told["counts"].items()}
    suite, digest = str(told["suite"]["version"]), str(told["digest"])
    if not re.fullmatch(r"\d{1,9}\.\d{1,9}\.\d{1,9}", suite):
        raise ValueError(f"suite version {suite!r}; expected X.Y.Z")
    return Manifest(told["format"], suite, dict(told["selection"]), counts, cases, files, digest)


def _size(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"expected a size, read {number!r}")
    return number


def checked_read(files: Files, entry: FileEntry, path: str) -> bytes:
    """Return a file's content. Raises CorpusError if it is not the one that the manifest tells."""
    content = files.read(path, entry.size)
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise CorpusError(f"{files.name}: {path}: not the file that the manifest tells: its sha256 differs")
    return content


def differences(files: Files, manifest: Manifest) -> Iterator[str]:
    """Yield what is not as the manifest says: missing, added and changed files, and the manifest itself."""
    if files.read(MANIFEST, LARGEST_JSON) != manifest.sealed().to_bytes():
        yield f"changed: {MANIFEST} (its digest is not that of its content)"
    yield from files.flaws()
    there = files.sizes()
    yield from (f"missing: {path}" for path in manifest.files if path not in there)
    yield from (f"added: {path}" for path in there if path not in manifest.files and path != MANIFEST)
    for path, entry in manifest.files.items():
        if path in there:
            yield from _changes(files, path, entry, there[path])


def _changes(files: Files, path: str, entry: FileEntry, size: int) -> Iterator[str]:
    if size != entry.size:
        yield f"changed: {path} ({size:,} bytes; expected {entry.size:,})"
        return
    try:
        checked_read(files, entry, path)
    except CorpusError as error:
        told = str(error).removeprefix(f"{files.name}: {path}: ")
        yield f"changed: {path} ({told})"


def counted(ids: Sequence[str]) -> dict[str, int]:
    """Return the number of cases by operator version, in order."""
    found: dict[str, int] = {}
    for text in ids:
        operator = "/".join(text.split("/", 2)[:2])
        found[operator] = found.get(operator, 0) + 1
    return found
