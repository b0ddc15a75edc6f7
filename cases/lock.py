"""The lock: the digests of every case of the suite, kept in git, so that no expected value changes unnoticed."""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import OpconformError
from .ids import operator_version_of

SUFFIX = ".lock"
SHORT = 16
"""The number of characters that a lock keeps of each digest."""

_HEAD = re.compile(r"# opconform lock 1: (\S+), suite (\d+\.\d+\.\d+), (\d+) cases?, sha256 ([0-9a-f]{64})")
_LINE = re.compile(rf"([0-9a-f]{{{SHORT}}}) ([0-9a-f]{{{SHORT}}}) (\S+)")


class LockError(OpconformError):
    """A lock that cannot be read; the message begins with the file's name."""


@dataclass(frozen=True, slots=True)
class CaseDigests:
    """A case's id, and the first characters of its two digests."""

    id: str
    case: str
    expectation: str


@dataclass(frozen=True)
class Lock:
    """The cases of one operator version, sorted by id, with the version of the suite."""

    operator: str
    suite: str
    cases: tuple[CaseDigests, ...]

    @property
    def digest(self) -> str:
        """Return the sha256 of the lines of the cases."""
        return hashlib.sha256("".join(self._lines()).encode()).hexdigest()

    def _lines(self) -> Iterator[str]:
        return (f"{case.case} {case.expectation} {case.id}\n" for case in self.cases)

    def to_text(self) -> str:
        """Return the content of the lock's file."""
        number = f"{len(self.cases)} case" + "s" * (len(self.cases) != 1)
        return f"# opconform lock 1: {self.operator}, suite {self.suite}, {number}, sha256 {self.digest}\n" + "".join(
            self._lines()
        )

    @property
    def file_name(self) -> str:
        """Return the name of the lock's file: `onnx-ReduceMean-13.lock`."""
        return self.operator.replace("/", "-") + SUFFIX


def lock_of(operator: str, suite: str, cases: Iterable[CaseDigests]) -> Lock:
    """Return the lock of an operator version, with shortened digests."""
    short = (CaseDigests(case.id, case.case[:SHORT], case.expectation[:SHORT]) for case in cases)
    return Lock(operator, suite, tuple(sorted(short, key=lambda case: case.id)))


def _head(file: Path, line: str) -> tuple[str, int, str, str]:
    """Return the operator version, the number of cases, the suite's version and the digest in a lock's first line."""
    head = _HEAD.fullmatch(line)
    if head is None:
        raise LockError(f"{file}:1: expected '# opconform lock 1: OPERATOR, suite X.Y.Z, N cases, sha256 …'")
    return head[1], int(head[3]), head[2], head[4]


def read_lock(file: Path) -> Lock:
    """Read a lock. Raises LockError, which names the file, and the line if one is wrong."""
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LockError(f"{file}: cannot be read: {error}") from None
    operator, count, suite, digest = _head(file, lines[0] if lines else "")
    cases = []
    for number, line in enumerate(lines[1:], 2):
        match = _LINE.fullmatch(line)
        if match is None:
            raise LockError(f"{file}:{number}: expected two digests of {SHORT} characters and a case id; read {line!r}")
        cases.append(CaseDigests(match[3], match[1], match[2]))
    lock = Lock(operator, suite, tuple(cases))
    if lock.digest != digest or len(cases) != count:
        raise LockError(f"{file}: does not match its own digest; restore it from git, or run `opconform dev lock`")
    return lock


def locked_count(file: Path) -> tuple[str, int]:
    """Return a lock's operator version and number of cases, from its first line. Raises LockError."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        return _head(file, next(lines, "").rstrip("\n"))[:2]


def read_locks(folder: Path) -> dict[str, Lock]:
    """Return the locks of a folder by operator version, sorted. Raises LockError."""
    locks = [read_lock(file) for file in sorted(folder.glob(f"*{SUFFIX}"))]
    return {lock.operator: lock for lock in locks}


class Change(enum.IntEnum):
    """The effect of a difference on users of the suite, by the part of the version that it increases."""

    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3

    @property
    def label(self) -> str:
        """The word for it."""
        return self.name.lower()


@dataclass(frozen=True)
class Difference:
    """The difference between two sets of cases; ids in order.

    `changed` cases have another input or program, `expected` cases another expectation. `operators` are new operator
    versions.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()

    @property
    def change(self) -> Change:
        """Return the part of the suite's version to increase; a removed or changed case is a major change."""
        if self.removed or self.changed or self.expected:
            return Change.MAJOR
        if self.operators:
            return Change.MINOR
        return Change.PATCH if self.added else Change.NONE

    @property
    def broken(self) -> tuple[str, ...]:
        """Return the cases whose old results are no longer valid: all except added ones."""
        return (*self.expected, *self.changed, *self.removed)


def difference(old: Iterable[CaseDigests], new: Iterable[CaseDigests]) -> Difference:
    """Return the difference between two sets of cases; shortened digests are compared up to the shorter length."""
    before, after = ({digests.id: digests for digests in cases} for cases in (old, new))
    both = [(before[text], digests) for text, digests in after.items() if text in before]
    changed = tuple(b.id for a, b in both if not _same(a.case, b.case))
    expected = tuple(b.id for a, b in both if _same(a.case, b.case) and not _same(a.expectation, b.expectation))
    known = operators_of(before)
    return Difference(
        tuple(text for text in after if text not in before),
        tuple(text for text in before if text not in after),
        changed,
        expected,
        tuple(operator for operator in operators_of(after) if operator not in known),
    )


def _same(digest: str, other: str) -> bool:
    length = min(len(digest), len(other))
    return digest[:length] == other[:length]


def operators_of(ids: Iterable[str]) -> dict[str, None]:
    """Return the operator versions of cases, in order."""
    return dict.fromkeys(map(operator_version_of, ids))


def least_version(released: str, change: Change) -> str:
    """Return the lowest version that may follow a release with such a change, by Semantic Versioning.

    Before 1.0.0 a major change increases the middle number, any other change the last.
    """
    major, minor, patch = map(int, released.split("."))
    if change is Change.NONE:
        return released
    if change is Change.MAJOR:
        return f"{major + 1}.0.0" if major else f"0.{minor + 1}.0"
    return f"{major}.{minor + 1}.0" if change is Change.MINOR and major else f"{major}.{minor}.{patch + 1}"


def is_at_least(version: str, least: str) -> bool:
    """Return whether a version is the other one or a later one."""
    return [int(part) for part in version.split(".")] >= [int(part) for part in least.split(".")]


def latest_release(changes: str) -> str | None:
    """Return the newest version with a heading in a list of changes, or None if nothing was released."""
    match = re.search(r"(?m)^## \[?(\d+\.\d+\.\d+)\]?", changes)
    return match[1] if match else None


def unexplained(changes: str, suite: str, broken: Sequence[str]) -> list[str]:
    """Return the operator versions of `broken` cases that the list of changes of expectations does not explain.

    A line under *Unreleased*, or under the heading of the suite's version, must name the operator version or its
    operator.
    """
    words = {word for line in _section(changes, suite) for word in re.findall(r"[\w./-]*\w", line)}
    return [operator for operator in operators_of(broken) if not words & {operator, operator.rpartition("-")[0]}]


def _section(changes: str, suite: str) -> Iterator[str]:
    inside = False
    for line in changes.splitlines():
        if line.startswith("## "):
            name = line.removeprefix("## ").strip("[] ").partition("]")[0].partition(" ")[0].lower()
            inside = name in ("unreleased", suite)
        elif inside:
            yield line
