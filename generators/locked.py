"""The cases of the default plan as the lock has them, where everything that a plan follows from is unchanged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..cases.lock import SHORT, SUFFIX, locked_count, read_lock
from ..specs.loader import Library

PLAN = "plan.txt"
"""The file beside the locks with a digest for each operator: of its spec file, and of the code that plans."""

_ROOT = Path(__file__).parents[1]
_LOCKS = _ROOT / "cases" / "manifests"
_CODE = ("generators/*.py", "generators/families/*.py", "specs/*.py", "cases/*.py")


def plan_text(library: Library) -> str:
    """Return the content of PLAN for a lock that is written now."""
    return "".join(f"{digest} {operator}\n" for operator, digest in _digests(library))


def is_locked(library: Library, folder: Path) -> bool:
    """Return whether the file PLAN of a folder is the one that would be written now."""
    file = folder / PLAN
    return file.is_file() and file.read_text("utf-8") == plan_text(library)


def locked_counts(library: Library) -> dict[str, dict[str, int]]:
    """Return the number of cases in the default plan, by operator and version, of operators that the lock knows."""
    return {operator: dict(map(locked_count, files)) for operator, files in locked_files(library).items()}


def locked_ids(files: Iterable[Path]) -> Iterator[tuple[str, list[str]]]:
    """Yield the operator version and the ids of each of these locks. Raises LockError."""
    for lock in map(read_lock, files):
        yield lock.operator, [case.id for case in lock.cases]


def locked_files(library: Library) -> dict[str, list[Path]]:
    """Return the lock's files of each operator whose spec file and code are those of the lock."""
    file = _LOCKS / PLAN
    known = set(file.read_text("utf-8").splitlines()) if file.is_file() else set[str]()
    fresh = {operator for operator, digest in _digests(library) if f"{digest} {operator}" in known} if known else set()
    locks: dict[str, list[Path]] = {operator: [] for operator in fresh}
    for lock in sorted(_LOCKS.glob(f"*{SUFFIX}")) if fresh else ():
        name = lock.name.removesuffix(SUFFIX).replace("-", "/", 1)
        operator = name if name in fresh else name.rpartition("-")[0]
        if operator in fresh:
            locks[operator].append(lock)
    return locks


def _digests(library: Library) -> Iterator[tuple[str, str]]:
    common = hashlib.sha256()
    files = [file for pattern in _CODE for file in sorted(_ROOT.glob(pattern))]
    for file in (*files, *sorted((library.root / "families").glob("*.yaml"))):
        common.update(file.read_bytes())
    for operator in library.operators():
        digest = common.copy()
        digest.update(library.content(operator))
        yield operator, digest.hexdigest()[:SHORT]
