"""The number of cases of each operator version in the lock, where everything that a plan follows from is unchanged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ..cases.lock import SHORT, SUFFIX, locked_count
from ..specs.loader import Library

PLAN = "plan.txt"
"""The file beside the locks with a digest for each operator: of its spec file, and of the code that plans."""

_ROOT = Path(__file__).parents[1]
_LOCKS = _ROOT / "cases" / "manifests"
_CODE = ("generators/*.py", "generators/families/*.py", "specs/*.py", "cases/*.py")


def plan_text(library: Library) -> str:
    """Return the content of PLAN for a lock that is written now."""
    return "".join(f"{digest} {operator}\n" for operator, digest in _digests(library))


def locked_counts(library: Library) -> dict[str, dict[str, int]]:
    """Return the number of cases in the default plan, by operator and version, of operators that the lock knows."""
    file = _LOCKS / PLAN
    known = set(file.read_text("utf-8").splitlines()) if file.is_file() else set[str]()
    fresh = {operator for operator, digest in _digests(library) if f"{digest} {operator}" in known} if known else set()
    counts: dict[str, dict[str, int]] = {operator: {} for operator in fresh}
    for name, count in map(locked_count, _LOCKS.glob(f"*{SUFFIX}") if fresh else ()):
        operator = name if name in fresh else name.rpartition("-")[0]
        if operator in fresh:
            counts[operator][name] = count
    return counts


def _digests(library: Library) -> Iterator[tuple[str, str]]:
    common = hashlib.sha256()
    files = [file for pattern in _CODE for file in sorted(_ROOT.glob(pattern))]
    for file in (*files, *sorted((library.root / "families").glob("*.yaml"))):
        common.update(file.read_bytes())
    for operator in library.operators():
        digest = common.copy()
        digest.update(library.content(operator))
        yield operator, digest.hexdigest()[:SHORT]
