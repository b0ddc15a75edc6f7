"""`opconform dev lock`: writes or checks the digests of the suite's cases that are kept in git."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..cases.errors import OpconformError
from ..cases.ids import operator_version_of
from ..cases.lock import (
    SHORT,
    SUFFIX,
    CaseDigests,
    Difference,
    Lock,
    difference,
    is_at_least,
    latest_release,
    least_version,
    lock_of,
    read_lock,
    read_locks,
    unexplained,
)
from ..generators.locked import PLAN, is_locked, plan_text
from ..generators.plan import Selection, by_version, planned
from ..generators.source import GeneratedCases
from ..reports.progress import tracked
from ..reports.runs import read_results, read_run
from ..reports.text import counted
from .generated_suite import suite_digest
from .options import usable_cores
from .planning import made_of_each
from .suite import suite_version

CHANGES = Path("docs", "expectation-changes.md")
Lines = tuple[list[str], int]


def package_root() -> Path:
    """Return the folder of this package, which in a checkout is the repository."""
    return Path(str(importlib.resources.files((__package__ or "opconform.reports").rpartition(".")[0])))


def locked_digest(name: str) -> str | None:
    """Return the digest of the locked cases of an operator version, None if they are not locked."""
    file = package_root() / "cases" / "manifests" / Lock(name, "", ()).file_name
    return read_lock(file).digest[:SHORT] if file.exists() else None


def lock(
    *, check: bool, results: Sequence[Path], folder: Path | None, changes: Path | None, specs: Path | None
) -> Lines:
    """Write or check the lock; return messages and the exit code. Raises OpconformError if a file cannot be read.

    `folder` and `changes` (of expectations) default to this checkout's. `results`: folders of runs of this suite;
    versions of which they have the locked digests are not made again.
    """
    root = package_root()
    if not check and not folder and not (root / CHANGES).is_file():
        raise OpconformError(
            f"lock: {root} is an installed package, and the lock is kept in a checkout: run it there, or name a "
            "--folder and a --changes; `opconform dev lock --check` works here too"
        )
    folder = folder or root / "cases" / "manifests"
    old = read_locks(folder) if folder.is_dir() else {}
    source = GeneratedCases(specs)
    if results and not check:
        raise OpconformError("lock: --results goes with --check: what is locked is computed")
    new = suite_locks(source, digests_of_runs(results, source, {case.id: case for case in _every(old)}))
    delta = difference(_every(old), _every(new))
    if check:
        lines, code = _checked(folder, new, delta)
        if code == 0 and not is_locked(source.library, folder):
            return [f"{folder / PLAN}: not of these spec files and this code; run `opconform dev lock`"], 1
        return lines, code
    lines, code = _written(folder, changes or root / CHANGES, old, new, delta)
    if code == 0:
        (folder / PLAN).write_text(plan_text(source.library))
    return lines, code


def digests_of_runs(
    folders: Sequence[Path], source: GeneratedCases, locked: Mapping[str, CaseDigests]
) -> dict[str, CaseDigests]:
    """Return the digests in results folders that are those of the lock, by the ids of the cases.

    A run makes expectations in other groups than the lock, and the last bit of a bound may depend on that; so another
    digest proves nothing. Raises OpconformError if a folder cannot be read, or if its run was of other spec files or
    another version.
    """
    digests: dict[str, CaseDigests] = {}
    for folder in folders:
        suite = read_run(folder)["suite"]["digest"]
        if suite != suite_digest(source.library):
            raise OpconformError(f"{folder}: a run of another suite, {suite[:SHORT]}; run this one again")
        for result in read_results(folder):
            own = CaseDigests(
                result.case, (result.case_digest or "")[:SHORT], (result.expectation_digest or "")[:SHORT]
            )
            if locked.get(result.case) == own:
                digests[result.case] = own
    return digests


def suite_locks(source: GeneratedCases, known: Mapping[str, CaseDigests]) -> dict[str, Lock]:
    """Return the locks of the default suite, sorted; a version of which all digests are known is not made."""
    with tracked(planned(source.library, Selection()), "planning") as ids:
        versions = by_version(ids)
    source.library.refuse_broken()
    if not versions:
        raise OpconformError("the suite has no cases")
    unknown = {name: ids for name, ids in versions.items() if not all(id_ in known for id_ in ids)}
    made = made_of_each(source, unknown, usable_cores(), _digests)
    locked = {name: made.get(name) or [known[id_] for id_ in ids] for name, ids in sorted(versions.items())}
    return {name: lock_of(name, suite_version(), digests) for name, digests in locked.items()}


def _digests(source: GeneratedCases, _name: str, ids: Sequence[str]) -> list[CaseDigests]:
    digests = ((batch.ids, batch.digests, batch.expectation_digests) for batch in source.batches(ids))
    return [CaseDigests(*row) for those in digests for row in zip(*those, strict=True)]


def _every(locks: Mapping[str, Lock]) -> list[CaseDigests]:
    return [case for lock in locks.values() for case in lock.cases]


def difference_lines(delta: Difference) -> Iterator[str]:
    """Yield a line for each operator version that differs, with its first case."""
    kinds = (
        ("expectation changed", "expectations changed", delta.expected),
        ("case changed", "cases changed", delta.changed),
        ("case removed", "cases removed", delta.removed),
        ("case added", "cases added", delta.added),
    )
    for singular, plural, ids in kinds:
        by_version: dict[str, list[str]] = {}
        for text in ids:
            by_version.setdefault(operator_version_of(text), []).append(text)
        for operator, those in by_version.items():
            yield f"{operator}: {counted(len(those), singular, plural)}, the first: {those[0]}"


def _checked(folder: Path, new: Mapping[str, Lock], delta: Difference) -> Lines:
    lines = list(difference_lines(delta))
    if not lines:
        return [f"the lock matches the suite: {counted(len(_every(new)), 'case')}"], 0
    problem = f"{folder}: does not match this suite; run `opconform dev lock`, and review its changes"
    return [*lines, problem], 1


def _written(folder: Path, changes: Path, old: Mapping[str, Lock], new: Mapping[str, Lock], delta: Difference) -> Lines:
    if old and (missing := _missing(changes, suite_version(), delta)):
        return [*difference_lines(delta), *missing, "nothing was written"], 1
    folder.mkdir(parents=True, exist_ok=True)
    for stale in old.keys() - new.keys():
        (folder / old[stale].file_name).unlink()
    written = 0
    for operator, lock_ in new.items():
        # a lock keeps the version under which its cases last changed
        if operator not in old or old[operator].cases != lock_.cases:
            (folder / lock_.file_name).write_text(lock_.to_text())
            written += 1
    return [*difference_lines(delta), f"{folder}: {counted(written, f'*{SUFFIX} file')} written"], 0


def _missing(changes: Path, suite: str, delta: Difference) -> list[str]:
    """Return what must be done before a change can be locked."""
    try:
        text = changes.read_text()
    except OSError as error:
        raise OpconformError(f"{changes}: cannot be read: {error.strerror}") from None
    lines = [
        f"{changes}: expected a line under Unreleased or {suite} that names {operator} and says which expectation "
        "changed and why"
        for operator in unexplained(text, suite, delta.broken)
    ]
    released = latest_release(text)
    if released is not None:
        least = least_version(released, delta.change)
        if not is_at_least(suite, least):
            lines.append(
                f"__init__.py: __version__ is {suite}; expected {least} or later, since this is a {delta.change.label} "
                f"change after {released}"
            )
    return lines
