"""Corpora of cases in files: `opconform export`, `verify` and `corpus-diff`; see docs/corpus.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal

from ..cases.batch import Batch, cases_of
from ..cases.corpus.cases import CLAUSES, DESCRIPTOR, CorpusCases
from ..cases.corpus.descriptor import CorpusCase, described, other_tensors, tensors, value_files
from ..cases.corpus.files import ArchiveSink, CorpusError, FolderSink, Sink, compact_json, lined_json, open_files
from ..cases.corpus.manifest import (
    INDEX,
    MANIFEST,
    SIBLINGS,
    SUMS,
    CaseEntry,
    Manifest,
    Sums,
    differences,
    index_entry,
    index_head,
    program_folder,
    read_manifest,
    sha256,
)
from ..cases.corpus.tensors import tensors_file, write_npz
from ..cases.errors import OpconformError
from ..cases.ids import operator_version_of
from ..cases.lock import SUFFIX, CaseDigests, Difference, difference, least_version, read_lock, read_locks
from ..cases.program import Program
from ..generators.plain_answers import RELATIVE, plain_answer
from ..generators.plan import Selection
from ..generators.source import GeneratedCases
from ..generators.suggestions import selects_nothing
from ..reports.certificates import derivations_json
from ..reports.progress import tracked
from ..reports.runs import RUN
from ..reports.show import clauses_of
from ..reports.text import counted
from ..specs.model import Clause
from .planning import planned_ids
from .suite import suite_version

Lines = tuple[list[str], int]


def verify(path: Path) -> Lines:
    """Return what is wrong with a corpus, the first mistake first, and the exit code.

    Raises OpconformError if there is no corpus, or it has another schema.
    """
    if (path / RUN).is_file() and not (path / MANIFEST).exists():
        raise OpconformError(
            f"{path}: a results folder; verify checks a corpus or a submission: `opconform submit {path} --out FILE` "
            "packs one"
        )
    corpus = CorpusCases(path)
    manifest, sums = corpus.manifest, corpus.sums
    if not manifest.cases:
        raise OpconformError(f"{path}: {MANIFEST}: has no cases")
    # the files' content is only read if it matches the sums
    wrong = [*differences(corpus.files, manifest, sums)] or [*chain(_inside(corpus), _contradictions(corpus))]
    if not wrong:
        counts = f"{counted(len(manifest.cases), 'case')}, {counted(len(sums.files) + 1, 'file')}"
        return [f"whole: {counts}", f"digest {sums.digest}"], 0
    more = [f"and {len(wrong) - 1:,} more"] if len(wrong) > 1 else []
    return [f"{path}: not whole: {counted(len(wrong), 'difference')}", wrong[0], *more], 1


def _inside(corpus: CorpusCases) -> Iterator[str]:
    """Yield where a manifest contradicts the files, although all digests match."""
    manifest, sums = corpus.manifest, corpus.sums.files
    for name, entry in manifest.cases.items():
        if f"{entry.folder}/{DESCRIPTOR}" not in sums:
            yield f"missing: {entry.folder}/{DESCRIPTOR}, the descriptor of {name}"
    if manifest.counts != Counter(map(operator_version_of, manifest.cases)):
        yield f"changed: {MANIFEST} (its counts do not match its cases)"
    there = [size for path, size in corpus.files.sizes().items() if path not in (MANIFEST, SUMS)]
    if (len(there), sum(there)) != (manifest.files, manifest.size):
        words = f"{manifest.files:,} files of {manifest.size:,} bytes; there are {len(there):,} of {sum(there):,}"
        yield f"changed: {MANIFEST} (it says {words})"


def _contradictions(corpus: CorpusCases) -> Iterator[str]:
    """Yield the first contradiction between tensors, descriptors and index, with its file."""
    index = [index_head(corpus.manifest.format)]
    try:
        with tracked(corpus.manifest.cases.items(), "verifying", len(corpus.manifest.cases)) as cases:
            for name, entry in cases:
                index.append(index_entry(corpus.case(name), entry.folder))
                corpus.descriptor(name)  # its clauses are described
        if corpus.read(INDEX) != "".join(index).encode():
            yield f"changed: {INDEX} (it does not match the cases)"
    except (CorpusError, TypeError, ValueError) as error:  # attributes that cannot be written as text
        yield f"changed: {str(error).removeprefix(f'{corpus.files.name}: ')}"


def corpus_difference(old: Path, new: Path, *, as_json: bool) -> Lines:
    """Return the differences of two corpora or locks, and the exit code: 1 if there are any. Raises OpconformError."""
    before, after = _side(old), _side(new)
    delta = difference(_compared(before, after), _compared(after, before))
    code = 1 if delta.change else 0
    if as_json:
        return [json.dumps(_json(delta, before.suite, after.suite))], code
    return [*_lines(delta), _summary(delta, before.suite, after.suite)], code


@dataclass(frozen=True)
class _Side:
    """The suite's version and the cases of a corpus or of a lock; `siblings` is None for a lock."""

    suite: str
    cases: tuple[CaseDigests, ...]
    siblings: frozenset[str] | None = None


def _side(path: Path) -> _Side:
    """Return the content of a corpus, a lock, or a folder of locks."""
    if path.suffix == SUFFIX and path.is_file():
        lock = read_lock(path)
        return _Side(lock.suite, lock.cases)
    if path.is_dir() and not (path / MANIFEST).exists() and (locks := read_locks(path)):
        newest = max((lock.suite for lock in locks.values()), key=lambda v: [int(part) for part in v.split(".")])
        return _Side(newest, tuple(case for lock in locks.values() for case in lock.cases))
    manifest = read_manifest(open_files(path))
    cases = tuple(CaseDigests(name, c.case_digest, c.expectation_digest) for name, c in manifest.cases.items())
    return _Side(manifest.suite, cases, manifest.siblings)


def _compared(side: _Side, other: _Side) -> list[CaseDigests]:
    """Return the cases of a side, without the siblings, which a lock does not have."""
    if side.siblings is None or other.siblings is not None:
        return list(side.cases)
    known = {case.id for case in other.cases}
    return [case for case in side.cases if case.id in known or case.id not in side.siblings]


def _lines(delta: Difference) -> Iterator[str]:
    yield from (f"added    {text}" for text in delta.added)
    yield from (f"removed  {text}" for text in delta.removed)
    yield from (f"changed  {text} (input or program)" for text in delta.changed)
    yield from (f"changed  {text} (expectation)" for text in delta.expected)


def _summary(delta: Difference, suite: str, newer: str) -> str:
    if not delta.change:
        return "no difference"
    numbers = (
        f"{len(delta.added):,} added, {len(delta.removed):,} removed, "
        f"{len(delta.changed) + len(delta.expected):,} changed"
    )
    least = least_version(suite, delta.change)
    return f"{numbers}: a {delta.change.label} change, which needs version {least} or later; this is {newer}"


def _json(delta: Difference, suite: str, newer: str) -> dict[str, object]:
    return {
        "old": suite,
        "new": newer,
        "change": delta.change.label,
        "least": least_version(suite, delta.change),
        "added": list(delta.added),
        "removed": list(delta.removed),
        "changed": list(delta.changed),
        "expectations": list(delta.expected),
    }


Format = Literal["onnx", "npz"]

_USUAL = 1e-7
"""The absolute tolerance of ONNX's readers, unless a `data.json` has another."""


def export(
    selection: Selection, form: Format, out: Path | None, pack: Path | None, specs: Path | None, *, as_json: bool
) -> list[str]:
    """Write a corpus to a folder, an archive, or both, and return the lines that describe it.

    Raises OpconformError if nothing is selected or the target exists.
    """
    if out is None and pack is None:
        raise OpconformError("export: where to? Give --out DIR, --pack FILE.zip, or both")
    if out is not None and out.suffix.lower() == ".zip" and not out.is_dir():
        if pack is not None:
            raise OpconformError(f"export: two archives, {out} and {pack}: give one, and maybe a folder")
        out, pack = None, out
    source = GeneratedCases(specs)
    ids = _ids(source, selection, form)
    if pack is not None and pack.exists():
        raise CorpusError(f"{pack}: already exists; choose another")
    sinks: list[Sink] = [] if out is None else [FolderSink(out)]
    if pack is None:
        return _facts(*_written(source, ids, selection, form, sinks), as_json=as_json)
    partial = pack.with_name(pack.name + ".partial")
    archive = ArchiveSink(partial)
    written = _written(source, ids, selection, form, [*sinks, archive])
    archive.close()
    partial.replace(pack)
    return _facts(*written, as_json=as_json)


def _ids(source: GeneratedCases, selection: Selection, form: Format) -> list[str]:
    ids = planned_ids(source, selection)
    source.library.refuse_broken()
    globs = ", ".join(selection.globs) or "the suite"
    if not ids:
        raise selects_nothing(source.library, selection)
    if form == "onnx" and not (ids := [text for text in ids if text.startswith("onnx/")]):
        raise OpconformError(f"{globs} selects no ONNX case; other standards have no models, so use --format npz")
    return ids


def _written(
    source: GeneratedCases, ids: Sequence[str], selection: Selection, form: Format, sinks: Sequence[Sink]
) -> tuple[Manifest, Sums]:
    """Write cases, their manifest and the sums to every sink.

    The valid case that an invalid one was made from is written too, because a refusal only counts if that case runs.
    The manifest's selection lists the cases that are included only for this reason.
    """
    writing = _Writing(source, form, sinks)
    with tracked(cases_of(source, ids), "writing", len(ids)) as cases:
        for case in cases:
            writing.add(case)
    siblings = [text for text in writing.valid_variants if text not in writing.cases]
    for case in cases_of(source, siblings):
        writing.add(case)
    writing.finish()
    values, strength = asdict(selection), "full" if selection.strength is None else selection.strength
    kept = {name: values[name] for name in ("globs", "draws", "seed", "suite")}
    manifest = Manifest(
        form,
        suite_version(),
        {**kept, "strength": strength, SIBLINGS: siblings},
        Counter(map(operator_version_of, [*ids, *siblings])),
        writing.cases,
        len(writing.files),
        writing.size,
    )
    writing.write(MANIFEST, manifest.to_bytes())
    sums = Sums(dict(writing.files))
    writing.write(SUMS, sums.to_bytes())
    return manifest, sums


def _facts(manifest: Manifest, sums: Sums, *, as_json: bool) -> list[str]:
    """Return the lines that describe a corpus that was written."""
    cases, files = len(manifest.cases), len(sums.files) + 1
    if as_json:
        return [json.dumps({"cases": cases, "files": files, "bytes": manifest.size, "digest": sums.digest})]
    return [f"{cases:,} cases in {files:,} files, {manifest.size:,} bytes", f"digest {sums.digest}"]


@dataclass
class _Writing:
    """Writes cases one after the other.

    Data sets share a folder per program: `models` counts the data sets, `shapes` has the possible shapes of each
    output. `valid_variants` has the valid cases that invalid ones were made from, as keys.
    """

    source: GeneratedCases
    format: Format
    sinks: Sequence[Sink]
    cases: dict[str, CaseEntry] = field(default_factory=dict)
    valid_variants: dict[str, None] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    size: int = 0
    index: list[str] = field(default_factory=list)
    clauses: dict[str, Clause] = field(default_factory=dict)
    models: Counter[str] = field(default_factory=Counter)
    shapes: dict[str, tuple[Program, list[set[tuple[int, ...]]]]] = field(default_factory=dict)
    tolerances: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, case: Batch) -> None:
        plain = plain_answer(case.expectation)
        # what a reader that only knows tolerances can do with the case
        use = "refused" if plain is None else "open" if plain.tolerance is None else "values"
        model = f"{use}/{program_folder(case.program)}"
        folder = f"{model}/test_data_set_{self.models[model]}"
        self.models[model] += 1
        _, shapes = self.shapes.setdefault(model, (case.program, [set() for _ in case.program.answers]))
        for option in case.expectation.options:
            for shapes_of_output, bounds in zip(shapes, option.outputs, strict=False):  # a refusal has no outputs
                shapes_of_output.add(bounds.shape)
        certificate = None if case.expectation.invalid else derivations_json(self.source, case)
        corpus_case = CorpusCase(case, None if plain is None else plain.outputs, certificate)
        self.write(f"{folder}/{DESCRIPTOR}", compact_json(described(corpus_case)))
        for name, content in _content(corpus_case, self.format):
            self.write(f"{folder}/{name}", content)
        self.cases[case.id] = CaseEntry(folder, case.digest, case.expectation.digest)
        self.index.append(index_entry(case, folder))
        self.clauses |= clauses_of(self.source, case)
        if case.valid_variant is not None:
            self.valid_variants[case.valid_variant] = None
        if plain is not None and plain.tolerance is not None:
            exact = not any(output.dtype.kind in "fV" for output in plain.outputs)
            relative, absolute = self.tolerances.get(model, (0.0, 0.0) if exact else (RELATIVE, _USUAL))
            self.tolerances[model] = relative, max(absolute, plain.tolerance)

    def finish(self) -> None:
        """Write the index, the clauses, and the tolerances that differ from the readers' defaults."""
        self.write(INDEX, "".join([index_head(self.format), *self.index]).encode())
        clauses = {i: {"text": c.text, "status": c.status, "source": c.source} for i, c in sorted(self.clauses.items())}
        self.write(CLAUSES, lined_json(clauses))
        if self.format == "onnx":
            self._models()
            for model, (relative, absolute) in self.tolerances.items():
                if (relative, absolute) != (RELATIVE, _USUAL):
                    self.write(f"{model}/data.json", compact_json({"rtol": relative, "atol": absolute}))

    def _models(self) -> None:
        """Write the models. An output declares its shape if all cases agree, because code generators need it."""
        from ..cases.onnx_model import onnx_bytes  # noqa: PLC0415 - the npz form does without onnx

        for model, (program, shapes) in self.shapes.items():
            static = all(isinstance(extent, int) for feed in program.feeds for extent in feed.dims)
            known = tuple(next(iter(possible)) if static and len(possible) == 1 else None for possible in shapes)
            self.write(f"{model}/model.onnx", onnx_bytes(program, known))

    def write(self, path: str, content: bytes) -> None:
        """Write one file to every sink."""
        self.files[path] = sha256(content)
        self.size += len(content)
        for sink in self.sinks:
            sink.write(path, content)


def _content(case: CorpusCase, form: Format) -> Iterator[tuple[str, bytes]]:
    """Yield the files with a case's tensors, by name."""
    if form == "npz":
        yield "case.npz", write_npz(tensors(case))
        return
    yield from value_files(case)
    if others := other_tensors(case.case):
        yield "bounds.pb", tensors_file(others)
