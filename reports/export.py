"""`opconform export`: cases as files, for readers in any language; see docs/corpus.md."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..cases.corpus import CLAUSES, DESCRIPTOR
from ..cases.corpus_descriptor import CorpusCase, bounds_tensors, described, tables, tensors
from ..cases.corpus_files import ArchiveSink, FolderSink, Sink
from ..cases.corpus_json import CorpusError, compact_json, lined_json
from ..cases.corpus_manifest import MANIFEST, SIBLINGS, CaseEntry, FileEntry, Manifest, counted
from ..cases.corpus_names import program_folder
from ..cases.corpus_tensors import tensor_file, tensors_file, write_npz
from ..cases.errors import OpconformError
from ..cases.model import Case
from ..generators.plain_answers import RELATIVE, PlainAnswer, plain_answer
from ..generators.plan import Selection
from ..generators.select import selected
from ..generators.source import GeneratedCases
from ..specs.model import Clause
from .certificates import derivations_json
from .show import clauses_of

Format = Literal["onnx", "npz"]

_USUAL = 1e-7
"""The absolute tolerance that ONNX's readers have unless a `data.json` says otherwise."""


@dataclass(frozen=True)
class ExportOptions:
    """What to export, in which form and where to: a folder, an archive, or both."""

    selection: Selection
    format: Format
    out: Path | None = None
    pack: Path | None = None
    specs: Path | None = None


def export(options: ExportOptions) -> Manifest:
    """Write a corpus and return its manifest. Raises OpconformError if nothing is selected or the place is taken."""
    if options.out is None and options.pack is None:
        raise OpconformError("export: where to? Give --out DIR, --pack FILE.zip, or both")
    source = GeneratedCases(options.specs)
    ids = _ids(source, options)
    if options.pack is not None and options.pack.exists():
        raise CorpusError(f"{options.pack}: is there already; name another")
    sinks: list[Sink] = [] if options.out is None else [FolderSink(options.out)]
    if options.pack is None:
        return write_corpus(source, ids, options, sinks)
    partial = options.pack.with_name(options.pack.name + ".partial")
    archive = ArchiveSink(partial)
    manifest = write_corpus(source, ids, options, [*sinks, archive])
    archive.close()
    partial.replace(options.pack)
    return manifest


def _ids(source: GeneratedCases, options: ExportOptions) -> list[str]:
    ids = list(selected(source, options.selection))
    globs = ", ".join(options.selection.globs) or "the suite"
    if not ids:
        raise OpconformError(f"{globs} selects no case")
    if options.format == "onnx" and not (ids := [text for text in ids if text.startswith("onnx/")]):
        raise OpconformError(f"{globs} selects no case of ONNX: other standards have no models, use --format npz")
    return ids


def write_corpus(source: GeneratedCases, ids: Sequence[str], options: ExportOptions, sinks: Sequence[Sink]) -> Manifest:
    """Write cases and their manifest to every sink.

    What an invalid case is a damaged copy of is there too, since a refusal counts only if that one runs; the manifest's
    selection names those cases that are there for that alone.
    """
    writing, clauses = _Writing(options.format, sinks), dict[str, Clause]()
    mended: dict[str, None] = {}
    for case in source.cases(ids):
        writing.add(_corpus_case(source, case))
        clauses |= clauses_of(source, case)
        if case.mended is not None:
            mended[case.mended] = None
    siblings = [text for text in mended if text not in writing.cases]
    for case in source.cases(siblings):
        writing.add(_corpus_case(source, case))
        clauses |= clauses_of(source, case)
    writing.finish(clauses)
    manifest = Manifest(
        options.format,
        suite_version(),
        _selection(options.selection) | {SIBLINGS: siblings},
        counted([*ids, *siblings]),
        writing.cases,
        writing.files,
    ).sealed()
    for sink in sinks:
        sink.write(MANIFEST, manifest.to_bytes())
    return manifest


def suite_version() -> str:
    """Return the version of the suite, which is the package's."""
    return importlib.metadata.version("opconform")


def _selection(selection: Selection) -> dict[str, Any]:
    told = asdict(selection)
    strength = "full" if selection.strength is None else selection.strength
    return {name: told[name] for name in ("globs", "draws", "seed", "suite")} | {"strength": strength}


@dataclass(frozen=True)
class _Told:
    one: CorpusCase
    plain: PlainAnswer | None

    @property
    def folder(self) -> str:
        """The first folder of the case's path, by what a reader that knows tolerances alone can do with it."""
        if self.plain is None:
            return "refused"
        return "open" if self.plain.tolerance is None else "values"


def _corpus_case(source: GeneratedCases, case: Case) -> _Told:
    plain = plain_answer(case.expectation)
    certificate = None if case.expectation.invalid else derivations_json(source, case)
    return _Told(CorpusCase(case, None if plain is None else plain.outputs, certificate), plain)


@dataclass
class _Writing:
    """Writes cases one after the other; `models` counts the data sets of each program's folder."""

    format: Format
    sinks: Sequence[Sink]
    cases: dict[str, CaseEntry] = field(default_factory=dict)
    files: dict[str, FileEntry] = field(default_factory=dict)
    models: dict[str, int] = field(default_factory=dict)
    tolerances: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, told: _Told) -> None:
        case = told.one.case
        model = f"{told.folder}/{program_folder(case.program)}"
        number = self.models.setdefault(model, 0)
        self.models[model] += 1
        if self.format == "onnx" and not number:
            self._model(model, case)
        folder = f"{model}/test_data_set_{number}"
        descriptor = described(told.one)
        self._write(f"{folder}/{DESCRIPTOR}", compact_json(descriptor))
        for name, content in _content(told.one, self.format):
            self._write(f"{folder}/{name}", content)
        self.cases[case.id] = CaseEntry(folder, descriptor["case_digest"], descriptor["expectation_digest"])
        self._tolerate(model, told)

    def finish(self, clauses: Mapping[str, Clause]) -> None:
        """Write the clauses, and the tolerances that differ from what readers take."""
        told = {i: {"text": c.text, "status": c.status, "source": c.source} for i, c in sorted(clauses.items())}
        self._write(CLAUSES, lined_json(told))
        if self.format == "onnx":
            for model, (relative, absolute) in self.tolerances.items():
                if (relative, absolute) != (RELATIVE, _USUAL):
                    self._write(f"{model}/data.json", compact_json({"rtol": relative, "atol": absolute}))

    def _model(self, model: str, case: Case) -> None:
        from ..cases.onnx_model import onnx_bytes  # noqa: PLC0415 - the npz form does without onnx

        self._write(f"{model}/model.onnx", onnx_bytes(case.program))

    def _tolerate(self, model: str, told: _Told) -> None:
        if told.plain is None or told.plain.tolerance is None:
            return
        exact = not any(output.dtype.kind in "fV" for output in told.plain.outputs)
        relative, absolute = self.tolerances.get(model, (0.0, 0.0) if exact else (RELATIVE, _USUAL))
        self.tolerances[model] = relative, max(absolute, told.plain.tolerance)

    def _write(self, path: str, content: bytes) -> None:
        self.files[path] = FileEntry(len(content), hashlib.sha256(content).hexdigest())
        for sink in self.sinks:
            sink.write(path, content)


def _content(one: CorpusCase, form: Format) -> Iterator[tuple[str, bytes]]:
    """Yield the files with a case's tensors, by name."""
    if form == "npz":
        yield "case.npz", write_npz(tables(one.case) | tensors(one))
        return
    for place, (given, array) in enumerate(zip(one.case.program.feeds, one.case.inputs, strict=True)):
        yield f"input_{place}.pb", tensor_file(given.name, array)
    for place, array in enumerate(one.answer or ()):
        yield f"output_{place}.pb", tensor_file(one.case.program.outputs[place].name, array)
    if bounds := bounds_tensors(one.case.expectation):
        yield "bounds.pb", tensors_file(bounds)


def export_lines(manifest: Manifest, *, as_json: bool) -> Iterator[str]:
    """Yield what is told of a corpus that was written."""
    facts: Mapping[str, Any] = {
        "cases": len(manifest.cases),
        "files": len(manifest.files) + 1,
        "bytes": sum(entry.size for entry in manifest.files.values()),
        "digest": manifest.digest,
    }
    if as_json:
        yield json.dumps(facts)
        return
    yield f"{facts['cases']:,} cases in {facts['files']:,} files, {facts['bytes']:,} bytes"
    yield f"digest {manifest.digest}"
