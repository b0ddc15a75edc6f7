"""The results folder of a run, written as results arrive: see docs/results-folder.md."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from ..cases.errors import OpconformError
from ..cases.results import Result, result_from_json

RESULTS = "results.jsonl"
RUN = "run.json"
OUTPUTS = "outputs.jsonl"
CERTIFICATES = "certificates.jsonl"
INTERRUPTED = 130


class ResultsFolder:
    """A results folder being written; a context manager, which always leaves whole lines behind."""

    def __init__(self, path: Path, results: BinaryIO) -> None:
        """Write to a folder whose results file is open; use `create`."""
        self.path = path
        self._results = results
        self._beside: dict[str, BinaryIO] = {}
        self._told: dict[str, Any] = {}

    @classmethod
    def create(cls, path: Path | str) -> ResultsFolder:
        """Make the folder, or take an empty one.

        Raises OpconformError if it is not empty, no folder, or cannot be written to; nothing is touched then.
        """
        path = Path(path)
        try:
            _refuse_used(path)
            path.mkdir(parents=True, exist_ok=True)
            # Unbuffered: a write is cheap beside a case, and no result waits in memory for the next one.
            return cls(path, (path / RESULTS).open("xb", buffering=0))
        except (OSError, ValueError) as error:  # ValueError: a null character in the path
            reason = error.strerror if isinstance(error, OSError) else error
            raise OpconformError(f"{path}: cannot write results there: {reason}; choose another folder") from None

    def start(self, description: Mapping[str, Any]) -> None:
        """Write `run.json` with status `running`; `description` is JSON."""
        self._told = {**description, "status": "running"}
        self._write_run()

    def add(self, result: Result) -> None:
        """Append a result, at once and whole. Raises OpconformError if the disk does not take it."""
        self._append(RESULTS, self._results, result.to_json())

    def add_beside(self, name: str, line: Mapping[str, Any]) -> None:
        """Append a line to another file of the folder, before its result: where a run is killed, no result lacks it.

        Raises OpconformError if the disk does not take it.
        """
        try:
            file = self._beside.get(name) or self._beside.setdefault(name, (self.path / name).open("ab", buffering=0))
        except OSError as error:
            raise self._failed(name, error) from None
        self._append(name, file, json.dumps(line, allow_nan=False, separators=(",", ":")))

    def _append(self, name: str, file: BinaryIO, text: str) -> None:
        line = memoryview(text.encode() + b"\n")
        try:
            while line:
                line = line[file.write(line) :]
        except OSError as error:
            raise self._failed(name, error) from None

    def finish(self, status: str, exit_code: int, more: Mapping[str, Any] | None = None) -> None:
        """Rewrite `run.json` as that of a run which is over, with `more` JSON such as its figures."""
        self._told = {**self._told, **(more or {}), "status": status, "exit_code": exit_code}
        self._write_run()

    def close(self) -> None:
        """Close the files."""
        for file in (self._results, *self._beside.values()):
            file.close()

    def __enter__(self) -> ResultsFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if kind is not None and self._told.get("status") == "running":
            if issubclass(kind, KeyboardInterrupt):
                self.finish("interrupted", INTERRUPTED)
            else:
                self._told["status"] = "failed"
                self._write_run_quietly()

    def _write_run(self) -> None:
        """Write aside and move, so that a reader never meets half a file."""
        text = json.dumps(self._told, allow_nan=False, indent=2) + "\n"
        aside = self.path / f".{RUN}.part"
        try:
            aside.write_text(text, encoding="utf-8")
            os.replace(aside, self.path / RUN)  # noqa: PTH105 - Path.replace is the same, os says what it does
        except OSError as error:
            raise self._failed(RUN, error) from None

    def _write_run_quietly(self) -> None:
        try:
            self._write_run()
        except OpconformError:
            return  # the error under way matters more

    def _failed(self, file: str, error: OSError) -> OpconformError:
        return OpconformError(f"{self.path / file}: cannot be written: {error.strerror}; what was judged is kept")


def read_run(path: Path | str) -> dict[str, Any]:
    """Return what `run.json` of a results folder says. Raises OpconformError if there is none that is whole."""
    file = Path(path) / RUN
    try:
        read = json.loads(file.read_bytes())
    except OSError as error:
        raise OpconformError(f"{file}: cannot be read: {error.strerror}; expected a results folder") from None
    except ValueError as error:
        raise OpconformError(f"{file}: no JSON: {error}") from None
    if not isinstance(read, dict):
        raise OpconformError(f"{file}: expected an object")
    return read


def read_results(path: Path | str) -> Iterator[Result]:
    """Yield the results of a folder, or of a file of results; a torn last line, as a killed run leaves it, is dropped.

    Raises OpconformError if there is none, or a line is no result.
    """
    return (result for _, result in read_places(path))


def read_places(path: Path | str) -> Iterator[tuple[int, Result]]:
    """Yield each result with the offset of its line in bytes; see `read_results`."""
    file = _results_file(Path(path))
    offset = 0
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if (result := _read(line, file, number)) is not None:
                    yield offset, result
                offset += len(line)
    except OSError as error:
        raise OpconformError(f"{file}: cannot be read: {error.strerror}; expected a results folder") from None


def _results_file(path: Path) -> Path:
    return path if path.is_file() else path / RESULTS


def _read(line: bytes, file: Path, number: int) -> Result | None:
    try:
        return _sound(result_from_json(line))
    except (ValueError, TypeError, RecursionError) as error:
        if not line.endswith(b"\n"):
            return None
        raise OpconformError(f"{file}:{number}: no result: {error}") from None


def _sound(result: Result) -> Result:
    """Return the result if its values are of their kinds, which a file from elsewhere may get wrong."""
    texts = (result.case, result.backend, result.detail or "", result.reason or "", *result.clauses)
    if not all(isinstance(text, str) for text in texts) or not isinstance(result.seconds, int | float | None):
        raise ValueError("a value is of the wrong kind")
    behaviour = result.behaviour
    if not isinstance(behaviour, dict) or not all(isinstance(options, list) for options in behaviour.values()):
        raise ValueError("behaviour: expected an object of lists")
    return result


def _refuse_used(path: Path) -> None:
    if path.is_dir():
        if any(path.iterdir()):
            raise OpconformError(f"{path}: the folder is not empty; choose a new or an empty one for the results")
    elif path.exists():
        raise OpconformError(f"{path}: is a file; choose a new or an empty folder for the results")
