"""`opconform mutants`: every wrong and every compliant implementation before all cases, on several processes."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from ..cases.batch import Batch
from ..cases.errors import OpconformError
from ..cases.ids import parse_id
from ..cases.results import Outcome, Result
from ..generators.mutants.catalogue import all_mutants, equivalent, mutants_of, versions
from ..generators.mutants.implementation import Implementation
from ..generators.mutants.variants import applies, variants
from ..generators.plan import Selection
from ..generators.select import selected
from ..generators.source import GeneratedCases
from ..generators.suite import suite_text
from ..reports.matrix import Evidence, Matrix, Tried, matrix_html, matrix_markdown, print_matrix
from ..runners.execute import Assignment
from ..runners.pool import Begin, Limits, Loss, Pool, Stray
from ..runners.registry import BackendSpec
from ..runners.running import Judged, run_cases
from ..specs.model import Spec, VersionSpec
from .killing import KILLS, judged
from .options import usable_cores
from .smoke import smoke_cases

_SLICES = 2  # parts of an operator version's implementations, so that the work can be shared out
_SLICE_LIMITS = Limits(run_seconds=3600.0, prepare_seconds=3600.0)
_PROCESS_LIMITS = Limits(run_seconds=1.0, memory_bytes=768 << 20, output_bytes=1 << 20)
_BACKENDS = "opconform.generators.mutants.backends:mutant"
_FAILED = KILLS | {Outcome.CRASH, Outcome.TIMEOUT}


@dataclass(frozen=True)
class MutationOptions:
    """The options of `opconform mutants`; see its help."""

    selection: Selection = field(default_factory=Selection)
    specs: Path | None = None
    jobs: int | None = None
    json: Path | None = None
    html: Path | None = None
    markdown: Path | None = None
    write_smoke: Path | None = None


def run_mutants(options: MutationOptions, console: Console | None = None) -> int:
    """Make the kill matrix, show and write it; return 1 if a mutant survives or a compliant variant is blamed.

    Raises OpconformError for a wrong option or file.
    """
    source = GeneratedCases(options.specs)
    for target in (options.json, options.html, options.markdown, options.write_smoke):
        if target is not None and not target.absolute().parent.is_dir():
            raise OpconformError(f"{target}: {target.parent} is no folder; make it first")
    matrix = kill_matrix(source, options.selection, options.jobs or usable_cores())
    smoke = smoke_cases(source, matrix)
    for target, page in (
        (options.json, json.dumps(matrix.to_dict(smoke), indent=1, allow_nan=False) + "\n"),
        (options.html, matrix_html(matrix, smoke)),
        (options.markdown, matrix_markdown(matrix, smoke)),
        (options.write_smoke, suite_text(smoke, _REMARK)),
    ):
        if target is not None:
            _write(target, page)
    print_matrix(console or Console(), matrix, smoke)
    return 1 if matrix.survivors() or matrix.false_alarms() else 0


_REMARK = (
    "The suite `smoke`: near the smallest set of cases that kills every mutant that the whole suite kills.\n"
    "Made by `opconform mutants --write-smoke FILE`."
)


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, "utf-8")
    except OSError as error:
        raise OpconformError(f"{target}: cannot be written: {error.strerror}") from None


def kill_matrix(source: GeneratedCases, selection: Selection, jobs: int) -> Matrix:
    """Return the matrix of the selected cases. Raises OpconformError if there are none."""
    ids = _by_version(source, selection)
    if not ids:
        raise OpconformError(f"{', '.join(selection.globs) or 'the suite'} selects no case")
    records = _records(source, selection, ids, jobs)
    tried = {name: _tried(found[0]) for name, found in records.items()}
    processes = dict(_processes(source, tried, jobs))
    evidence = {}
    for spec, version in versions(source.library):
        name = str(version.operator)
        if name in ids:
            compliant = _variants(source, version)
            failed = {n: cases for record in records[name] for n, cases in record["failed"].items()}
            failed.update(processes.get(name, {}))
            evidence[name] = _evidence(spec, version, tried[name], failed, compliant)
    known = {v.name: v for v in variants(source.library)}
    return Matrix(evidence, _present(source, evidence), known, selection.strength)


def _by_version(source: GeneratedCases, selection: Selection) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = {}
    for text in selected(source, selection):
        ids.setdefault(parse_id(text).operator, []).append(text)
    return ids


def _present(source: GeneratedCases, evidence: Mapping[str, Evidence]) -> dict[str, Implementation]:
    """Return the mutants of the operator versions that were tried."""
    tried = {name for one in evidence.values() for name in one.mutants}
    return {name: mutant for name, mutant in all_mutants(source.library).items() if name in tried}


def _variants(source: GeneratedCases, version: VersionSpec) -> list[Implementation]:
    return [v for v in variants(source.library) if applies(v, version)]


def _evidence(
    spec: Spec,
    version: VersionSpec,
    cases: Mapping[str, Tried],
    failed: Mapping[str, Mapping[str, str]],
    compliant: Sequence[Implementation],
) -> Evidence:
    mutants = mutants_of(spec, version)
    names = tuple(n for n, m in mutants.items() if m.kind != "process" or n in failed)
    excuses = {name: reason for name in names if (reason := equivalent(version, name))}
    return Evidence(cases, names, tuple(v.name for v in compliant), failed, excuses)


def _tried(record: Mapping[str, Any]) -> dict[str, Tried]:
    return {c[0]: Tried(c[0], c[1], tuple(c[2]), c[3], c[4]) for c in record["cases"]}


@dataclass(frozen=True)
class MatrixWork:
    """What a worker of the matrix is for; picklable. A key is an operator version and a slice, `onnx/Mean-13|0`."""

    source: GeneratedCases
    selection: Selection

    def __call__(self) -> _MatrixWorker:
        """Return the worker's task."""
        return _MatrixWorker(self.source, self.selection)


@dataclass(frozen=True)
class _MatrixWorker:
    source: GeneratedCases
    selection: Selection

    def run(self, keys: Sequence[str], begin: Begin) -> Iterator[bytes]:
        """Yield a line of JSON for each key: the cases, and which implementations do not pass them."""
        for index, key in enumerate(keys):
            begin(index, "run")
            name, _, part = key.partition("|")
            yield json.dumps(self._record(name, int(part))).encode()

    @functools.cached_property
    def _ids(self) -> dict[str, list[str]]:
        return _by_version(self.source, self.selection)

    def _record(self, name: str, part: int) -> dict[str, Any]:
        ids = self._ids[name]
        tried = list(value_implementations(self.source, name))[part::_SLICES]
        cases: list[Any] = []
        failed: dict[str, dict[str, str]] = {i.name: {} for i in tried}
        for case, verdicts in judged(self.source, ids, tried):
            cases.append((case.id, _elements(case), case.clauses, case.expectation.invalid, case.program.key))
            for implementation, verdict in zip(tried, verdicts, strict=True):
                if verdict.outcome in KILLS:
                    failed[implementation.name][case.id] = str(verdict.outcome)
        return {"cases": cases if part == 0 else [], "failed": failed}


def value_implementations(source: GeneratedCases, operator_version: str) -> Iterator[Implementation]:
    """Yield the mutants and the compliant variants of an operator version that need no process of their own."""
    spec, key = source.library.operator_version(operator_version)
    version = spec.version(key)
    yield from (m for m in mutants_of(spec, version).values() if m.kind != "process")
    yield from _variants(source, version)


def _elements(case: Batch) -> int:
    return sum(array.size for array in case.tensors())


def _records(
    source: GeneratedCases, selection: Selection, ids: Mapping[str, Sequence[str]], jobs: int
) -> dict[str, list[Mapping[str, Any]]]:
    largest = sorted(ids, key=lambda name: -len(ids[name]))
    keys = [f"{name}|{part}" for name in largest for part in range(_SLICES)]
    pool = Pool(MatrixWork(source, selection), jobs=min(jobs, len(keys)), limits=_SLICE_LIMITS)
    found: dict[str, Mapping[str, Any]] = {}
    for answer in pool.run([key] for key in keys):
        if isinstance(answer, Stray):
            continue  # a worker's end from outside; its key has been run again
        if isinstance(answer, Loss):
            raise RuntimeError(f"the matrix of {answer.key} is lost: {answer.kind}, {answer.exit}\n{answer.tail}")
        found[answer[0]] = json.loads(answer[1])
    return {name: [found[f"{name}|{part}"] for part in range(_SLICES)] for name in ids}


def _processes(
    source: GeneratedCases, tried: Mapping[str, Mapping[str, Tried]], jobs: int
) -> Iterator[tuple[str, dict[str, dict[str, str]]]]:
    """Put the mutants that end or stall their process to the smallest case of each operator's last version."""
    last = {spec.operator: str(list(spec.versions.values())[-1].operator) for spec, _ in versions(source.library)}
    smallest = {name: _smallest(tried[name]) for name in last.values() if name in tried}
    failed: dict[str, dict[str, dict[str, str]]] = {name: {} for name in smallest}
    mutants = [m for m in all_mutants(source.library).values() if m.kind == "process"]
    for mutant in mutants if smallest else ():
        for name in smallest:
            failed[name][mutant.name] = {}
        for result in _run_in_processes(source, mutant, list(smallest.values()), jobs):
            if result.outcome in _FAILED:
                failed[parse_id(result.case).operator][mutant.name][result.case] = str(result.outcome)
    yield from failed.items()


def _smallest(cases: Mapping[str, Tried]) -> str:
    """Return a case for which an implementation has to compute something, if there is one."""
    return min(cases.values(), key=lambda case: (case.invalid, not case.elements, case.size)).id


def _run_in_processes(
    source: GeneratedCases, mutant: Implementation, ids: Sequence[str], jobs: int
) -> Iterator[Result]:
    scheme: Literal["plug-in"] = "plug-in"
    backend = BackendSpec(f"mutant:{mutant.name}", scheme, _BACKENDS, argument=mutant.name)
    batches = [[text] for text in ids]
    for found in run_cases(Assignment(backend, source), batches, jobs=min(jobs, len(ids)), limits=_PROCESS_LIMITS):
        if isinstance(found, Judged):
            yield found.result
