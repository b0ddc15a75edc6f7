"""Reading results folders, also of runs that were killed: whole lines only, each result with what belongs to it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..cases.errors import OpconformError
from ..cases.results import Result, result_from_json

RESULTS = "results.jsonl"
RUN = "run.json"
OUTPUTS = "outputs.jsonl"
CERTIFICATES = "certificates.jsonl"
ACCURACY = "accuracy.jsonl"

_BUFFER = 1 << 18
_END = ord("\n")

_BACKEND, _OUTCOME = b',"backend":', b',"outcome":'  # a quote inside a text is escaped: they stand there once


def read_run(path: Path | str) -> dict[str, Any]:
    """Return what `run.json` of a results folder says. Raises OpconformError if there is none that is whole."""
    file = Path(path) / RUN
    try:
        read = json.loads(file.read_bytes())
    except OSError as error:
        raise OpconformError(f"{file}: cannot be read: {error.strerror}; expected a results folder") from None
    except (ValueError, RecursionError) as error:
        raise OpconformError(f"{file}: no JSON: {error}") from None
    if not isinstance(read, dict):
        raise OpconformError(f"{file}: expected an object")
    return read


def read_results(path: Path | str) -> Iterator[Result]:
    """Yield the results of a folder, or of a file of results; a torn last line, as a killed run leaves it, is dropped.

    Raises OpconformError if there is none, or a line is no result.
    """
    path = Path(path)
    file = path if path.is_file() else path / RESULTS
    return (_result(line, file, number) for number, _, line in _whole_lines(file))


def _whole_lines(file: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield each line that has its end: its number, its offset, and the line with its end."""
    offset = 0
    try:
        with file.open("rb", buffering=_BUFFER) as lines:
            for number, line in enumerate(lines, 1):
                if line[-1] == _END:
                    yield number, offset, line
                offset += len(line)
    except OSError as error:
        raise OpconformError(f"{file}: cannot be read: {error.strerror}; expected a results folder") from None


def _result(line: bytes, file: Path, number: int) -> Result:
    try:
        return result_from_json(line)
    except (ValueError, RecursionError) as error:
        raise OpconformError(f"{file}:{number}: no result: {error}") from None


def head_of(line: bytes) -> bytes:
    """Return the beginning of a result's line that tells case and backend, as lines beside it have it too."""
    return line[: line.index(_OUTCOME)]


def case_head_of(line: bytes) -> bytes:
    """Return the beginning of a result's line that tells the case."""
    return line[: line.index(_BACKEND)]


@dataclass(slots=True)
class StoredResult:
    """A result as it stands in a folder, and the lines that belong to it, where there are any.

    `line` is the result's, and `offset` its place in bytes. `certificate` stands with the first of a case's results
    alone.
    """

    line: bytes
    offset: int
    result: Result
    accuracy: bytes | None
    outputs: bytes | None
    certificate: bytes | None


@dataclass
class StoredResults:
    """A walk over the results of a folder and the lines that belong to them.

    What stands beside a result was written before it, in the same order: so lines that belong to no result stand at
    the end of their file, where a run was killed. After the walk `ends` says where each file would have to end for
    all of it to belong together, `done` which cases are there, by backend, and `certified` which have a certificate.
    """

    folder: Path
    done: dict[str, set[str]] = field(default_factory=dict)
    certified: set[str] = field(default_factory=set)
    ends: dict[str, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[StoredResult]:
        """Walk, once. Raises OpconformError for a line that is wrong, or a case that is there twice."""
        file = self.folder / RESULTS
        beside = {name: _Companions(self.folder / name) for name in (OUTPUTS, CERTIFICATES, ACCURACY)}
        self.ends[RESULTS] = 0
        for number, offset, line in _whole_lines(file):
            result = _result(line, file, number)
            done = self.done.setdefault(result.backend, set())
            if result.case in done:
                raise OpconformError(f"{file}:{number}: {result.case} on {result.backend} is there twice")
            done.add(result.case)
            head = _head(line, file, number)
            outputs, accuracy = beside[OUTPUTS].take(head), beside[ACCURACY].take(head)
            certificate = beside[CERTIFICATES].take(case_head_of(line))
            if certificate:
                self.certified.add(result.case)
            self.ends[RESULTS] = offset + len(line)
            yield StoredResult(line, offset, result, accuracy, outputs, certificate)
        for name, companions in beside.items():
            companions.check_rest(self.done)
            if companions.exists:
                self.ends[name] = companions.end


def _head(line: bytes, file: Path, number: int) -> bytes:
    if not line.startswith(b'{"case":') or _OUTCOME not in line:
        raise OpconformError(f"{file}:{number}: no result: expected its keys in the order in which a run writes them")
    return head_of(line)


class _Companions:
    """A file of lines that belong to results, read in step with them."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.exists = file.exists()
        self._lines = _whole_lines(file) if self.exists else iter(())
        self._head = next(self._lines, None)
        self.end = 0

    def take(self, head: bytes) -> bytes | None:
        """Return the next line if it begins so, and go on to the one after it."""
        if self._head is None or not self._head[2].startswith(head + b","):
            return None
        _, offset, line = self._head
        self.end = offset + len(line)
        self._head = next(self._lines, None)
        return line

    def check_rest(self, done: Mapping[str, Collection[str]]) -> None:
        """Raise OpconformError unless the lines that are left belong to cases without a result."""
        while self._head is not None:
            number, _, line = self._head
            place = f"{self._file}:{number}"
            try:
                told = json.loads(line)
                case, backend = str(told["case"]), str(told.get("backend"))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise OpconformError(f"{place}: no line of a case: {error}") from None
            if case in done.get(backend, ()):
                raise OpconformError(f"{place}: not in the order of {RESULTS}: {case} on {backend}")
            self._head = next(self._lines, None)
