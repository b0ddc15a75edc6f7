"""`opconform mutants`: wrong and compliant implementations before the cases, an operator version a process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console

from ..cases.errors import OpconformError
from ..cases.ids import parse_id
from ..cases.lock import read_locks
from ..generators.plan import Selection
from ..generators.select import selected, suite_text
from ..generators.source import GeneratedCases
from ..reports.matrix import Matrix, VersionMatrix, matrix_html, matrix_markdown, print_matrix, read_record
from .killing import tested
from .locking import package_root
from .options import usable_cores

_REMARK = (
    "The suite `smoke`: near the smallest set of cases that kills every mutant that the whole suite kills.\n"
    "Made by `opconform mutants --write-smoke FILE`."
)


@dataclass(frozen=True)
class MutationOptions:
    """The options of `opconform mutants`; see its help."""

    selection: Selection = field(default_factory=Selection)
    specs: Path | None = None
    jobs: int | None = None
    record: Path | None = None
    json: Path | None = None
    html: Path | None = None
    markdown: Path | None = None
    write_smoke: Path | None = None


def run_mutants(options: MutationOptions, console: Console | None = None) -> int:
    """Make the kill matrix, show and write it.

    Returns 1 if a compliant variant is blamed, or if a mutant survives that did not in the record, where there is one.
    Raises OpconformError for a wrong option or file.
    """
    source = GeneratedCases(options.specs)
    for target in (options.record, options.json, options.html, options.markdown, options.write_smoke):
        if target is not None and not target.absolute().parent.is_dir():
            raise OpconformError(f"{target}: {target.parent} is no folder; make it first")
    known = read_record(options.record) if options.record is not None and options.record.exists() else Matrix({})
    ids = _by_version(source, options.selection)
    if not ids:
        raise OpconformError(f"{', '.join(options.selection.globs) or 'the suite'} selects no case")
    changed = {name: cases for name, cases in ids.items() if not _is_known(name, cases, known)}
    made = kill_matrix(source, changed, options.jobs or usable_cores())
    matrix = Matrix({name: made.tested.get(name) or known.tested[name] for name in ids})
    for target, page in (
        (options.record, matrix.to_record()),
        (options.json, json.dumps(matrix.to_dict(), indent=1, allow_nan=False) + "\n"),
        (options.html, matrix_html(matrix)),
        (options.markdown, matrix_markdown(matrix)),
        (options.write_smoke, suite_text(matrix.smoke, _REMARK)),
    ):
        if target is not None:
            _write(target, page)
    new = made.beyond(known)
    print_matrix(console or Console(), new if options.record is not None else matrix)
    return 1 if matrix.blamed or new.survivors else 0


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, "utf-8")
    except OSError as error:
        raise OpconformError(f"{target}: cannot be written: {error.strerror}") from None


def _is_known(name: str, ids: Sequence[str], known: Matrix) -> bool:
    """Whether the record is about the cases that the lock of the suite holds now."""
    one, locks = known.tested.get(name), _locked()
    return one is not None and one.cases == len(ids) and locks.get(name) == one.digest


def _locked() -> Mapping[str, str]:
    """Return the digest of each operator version's cases, as locked."""
    return {lock.operator: lock.digest for lock in read_locks(package_root() / "cases" / "manifests").values()}


def kill_matrix(source: GeneratedCases, ids: Mapping[str, Sequence[str]], jobs: int) -> Matrix:
    """Return the matrix of cases, by operator version."""
    largest = sorted(ids, key=lambda name: -len(ids[name]))
    if min(jobs, len(ids)) < 2:
        return Matrix({name: tested(source, name, ids[name]) for name in ids})
    with ProcessPoolExecutor(min(jobs, len(ids)), get_context("forkserver")) as pool:
        asked = {name: pool.submit(_tested, source, name, ids[name]) for name in largest}
        return Matrix({name: asked[name].result() for name in ids})


def _tested(source: GeneratedCases, name: str, ids: Sequence[str]) -> VersionMatrix:
    return tested(source, name, ids)


def _by_version(source: GeneratedCases, selection: Selection) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = {}
    for text in selected(source, selection):
        ids.setdefault(parse_id(text).operator, []).append(text)
    return ids
