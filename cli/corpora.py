"""`opconform verify` and `opconform corpus-diff`: is a corpus whole, and how two differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ..cases.corpus.cases import DESCRIPTOR, CorpusCases
from ..cases.corpus.files import CorpusError, open_files
from ..cases.corpus.manifest import (
    INDEX,
    MANIFEST,
    SUMS,
    differences,
    index_entry,
    index_head,
    read_manifest,
)
from ..cases.errors import OpconformError
from ..cases.ids import operator_version_of
from ..cases.lock import SUFFIX, CaseDigests, Difference, difference, least_version, read_lock, read_locks
from ..reports.text import counted

Lines = tuple[list[str], int]


def verify(path: Path) -> Lines:
    """Return what is wrong with a corpus, the first thing first, and the exit code.

    Raises OpconformError if there is no corpus, or one of another schema.
    """
    corpus = CorpusCases(path)
    manifest, sums = corpus.manifest, corpus.sums
    if not manifest.cases:
        raise OpconformError(f"{path}: {MANIFEST}: has no case")
    # what the files say is looked at only if they are those of the sums
    wrong = [*differences(corpus.files, manifest, sums)] or [*chain(_inside(corpus), _contradictions(corpus))]
    if not wrong:
        told = f"{counted(len(manifest.cases), 'case')}, {counted(len(sums.files) + 1, 'file')}"
        return [f"whole: {told}", f"digest {sums.digest}"], 0
    more = [f"and {len(wrong) - 1:,} more"] if len(wrong) > 1 else []
    return [f"{path}: not whole: {counted(len(wrong), 'difference')}", wrong[0], *more], 1


def _inside(corpus: CorpusCases) -> Iterator[str]:
    """Yield where a manifest is not that of the files, however well it is sealed."""
    manifest, sums = corpus.manifest, corpus.sums.files
    for name, entry in manifest.cases.items():
        if f"{entry.folder}/{DESCRIPTOR}" not in sums:
            yield f"missing: {entry.folder}/{DESCRIPTOR}, the descriptor of {name}"
    if manifest.counts != Counter(map(operator_version_of, manifest.cases)):
        yield f"changed: {MANIFEST} (its counts are not those of its cases)"
    there = [size for path, size in corpus.files.sizes().items() if path not in (MANIFEST, SUMS)]
    if (len(there), sum(there)) != (manifest.files, manifest.size):
        told = f"{manifest.files:,} files of {manifest.size:,} bytes; there are {len(there):,} of {sum(there):,}"
        yield f"changed: {MANIFEST} (it tells {told})"


def _contradictions(corpus: CorpusCases) -> Iterator[str]:
    """Yield the first thing that tensors, descriptors and index tell differently, each by its file."""
    index = [index_head(corpus.manifest.format)]
    try:
        for name, entry in corpus.manifest.cases.items():
            index.append(index_entry(corpus.case(name), entry.folder))
            corpus.descriptor(name)  # its clauses are told
        if corpus.read(INDEX) != "".join(index).encode():
            yield f"changed: {INDEX} (it is not what the cases are)"
    except (CorpusError, TypeError, ValueError) as error:  # attributes that no text can tell
        yield f"changed: {str(error).removeprefix(f'{corpus.files.name}: ')}"


def corpus_difference(old: Path, new: Path, *, as_json: bool) -> Lines:
    """Return how two corpora or locks differ, and the exit code: 1 if they do. Raises OpconformError."""
    before, after = _side(old), _side(new)
    found = difference(_compared(before, after), _compared(after, before))
    code = 1 if found.change else 0
    if as_json:
        return [json.dumps(_json(found, before.suite, after.suite))], code
    return [*_lines(found), _summary(found, before.suite, after.suite)], code


@dataclass(frozen=True)
class _Side:
    """The suite's version and the cases of a corpus or of a lock; `siblings` is None for a lock."""

    suite: str
    cases: tuple[CaseDigests, ...]
    siblings: frozenset[str] | None = None


def _side(path: Path) -> _Side:
    """Return what a corpus, a lock, or a folder of locks has."""
    if path.suffix == SUFFIX and path.is_file():
        lock = read_lock(path)
        return _Side(lock.suite, lock.cases)
    if path.is_dir() and not (path / MANIFEST).exists() and (locks := read_locks(path)):
        newest = max((lock.suite for lock in locks.values()), key=lambda v: [int(part) for part in v.split(".")])
        return _Side(newest, tuple(one for lock in locks.values() for one in lock.cases))
    manifest = read_manifest(open_files(path))
    cases = tuple(CaseDigests(name, c.case_digest, c.expectation_digest) for name, c in manifest.cases.items())
    return _Side(manifest.suite, cases, manifest.siblings)


def _compared(one: _Side, other: _Side) -> list[CaseDigests]:
    """Return the cases of a side; less the siblings that a lock does not have, since it has the suite alone."""
    if one.siblings is None or other.siblings is not None:
        return list(one.cases)
    known = {case.id for case in other.cases}
    return [case for case in one.cases if case.id in known or case.id not in one.siblings]


def _lines(found: Difference) -> Iterator[str]:
    yield from (f"added    {text}" for text in found.added)
    yield from (f"removed  {text}" for text in found.removed)
    yield from (f"changed  {text} (input or program)" for text in found.changed)
    yield from (f"changed  {text} (expectation)" for text in found.expected)


def _summary(found: Difference, suite: str, newer: str) -> str:
    if not found.change:
        return "no difference"
    numbers = (
        f"{len(found.added):,} added, {len(found.removed):,} removed, "
        f"{len(found.changed) + len(found.expected):,} changed"
    )
    return f"{numbers}: a {found.change.label} change, {least_version(suite, found.change)} or later; read {newer}"


def _json(found: Difference, suite: str, newer: str) -> dict[str, object]:
    return {
        "old": suite,
        "new": newer,
        "change": found.change.label,
        "least": least_version(suite, found.change),
        "added": list(found.added),
        "removed": list(found.removed),
        "changed": list(found.changed),
        "expectations": list(found.expected),
    }
