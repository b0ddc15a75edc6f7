"""Results that ship with a release: what a release of a backend made of each valid case, one letter a case."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ..cases.errors import OpconformError
from ..cases.lock import SHORT, SUFFIX, Lock, read_lock
from ..cases.results import Outcome, Result
from ..runners.judging.terms import is_about_invalid

_LETTERS: Final[Mapping[Outcome, str]] = {
    Outcome.PASS: "p",
    Outcome.WRONG_VALUE: "v",
    Outcome.WRONG_SHAPE: "s",
    Outcome.WRONG_DTYPE: "d",
    Outcome.ERROR: "e",
    Outcome.UNSUPPORTED: "u",
    Outcome.CRASH: "c",
    Outcome.TIMEOUT: "t",
}
_OUTCOMES: Final = {letter: outcome for outcome, letter in _LETTERS.items()}
_NONE: Final = "-"  # no result, or one about an invalid input
_HEAD: Final = re.compile(r"# opconform known results 1: (\S+) (\S+), on (.+)")
_LINE: Final = re.compile(rf"(\S+) ([0-9a-f]{{{SHORT}}}) ((?:\d{{0,9}}[a-z-])+)")


def shipped() -> list[Path]:
    """Return the files of results in this release, newest backend first."""
    folder = Path(str(importlib.resources.files(__package__ or ""))) / "results"
    return sorted(folder.glob("*.txt"), key=lambda file: [int(n) for n in re.findall(r"\d+", file.stem)], reverse=True)


def known_text(backend: str, version: str, machine: str, results: Iterable[Result], locks: Iterable[Lock]) -> str:
    """Return the content of a file of results: a line for each locked operator version that has some.

    A line has the operator version, the digest of its locked cases, and a letter for each case in their order; a number
    before a letter repeats it.
    """
    letters = {result.case: _LETTERS.get(result.outcome, _NONE) for result in results if not is_about_invalid(result)}
    lines = [f"# opconform known results 1: {backend} {version}, on {machine}"]
    for lock in locks:
        text = "".join(letters.get(case.id, _NONE) for case in lock.cases)
        if text.strip(_NONE):
            runs = re.sub(r"(.)\1+", lambda match: f"{len(match[0])}{match[1]}", text)
            lines.append(f"{lock.operator} {lock.digest[:SHORT]} {runs}")
    return "\n".join(lines) + "\n"


def backend_of(file: Path) -> tuple[str, str, str]:
    """Return the backend, its release and the machine of a file of results. Raises OpconformError."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        first = next(lines, "").rstrip("\n")
    head = _HEAD.fullmatch(first)
    if head is None:
        raise OpconformError(
            f"{file}:1: read {first[:80]!r}; expected '# opconform known results 1: BACKEND X.Y.Z, on MACHINE'"
        )
    return head[1], head[2], head[3]


def known_results(file: Path, operators: Iterable[str], locks: Path) -> Iterator[Result]:
    """Yield the results of these operator versions; those of other cases than the lock has are left out.

    `locks` is the folder of the locks. Raises OpconformError if the file cannot be read.
    """
    backend = backend_of(file)[0]
    wanted = set(operators)
    for number, line in enumerate(file.read_text("utf-8").splitlines()[1:], 2):
        match = _LINE.fullmatch(line)
        if match is None:
            raise OpconformError(f"{file}:{number}: expected OPERATOR, a digest and letters; read {line[:80]!r}")
        lock_file = locks / (match[1].replace("/", "-") + SUFFIX)
        if match[1] not in wanted or not lock_file.is_file():
            continue
        lock = read_lock(lock_file)
        runs = [(int(times or 1), letter) for times, letter in re.findall(r"(\d*)([a-z-])", match[3])]
        if lock.digest[:SHORT] != match[2] or sum(times for times, _ in runs) != len(lock.cases):
            continue
        letters = "".join(letter * times for times, letter in runs)
        for case, letter in zip(lock.cases, letters, strict=True):
            if letter in _OUTCOMES:
                yield Result(case.id, backend, _OUTCOMES[letter])
