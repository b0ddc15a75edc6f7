"""JUnit XML of a run: a suite for each backend and operator version, a test case for each case."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from ..cases.errors import OpconformError
from ..runners.demands import Demands
from ..specs.errata import Suspensions
from .folder import read_run
from .junit_cases import TAGS, Suite, TestCases, Verdict, attributes_text
from .reading import read_results


def write_junit(
    folders: Sequence[Path] | Path,
    target: Path,
    *more: Path,
    demands: Demands | None = None,
    suspensions: Suspensions | None = None,
    versions: Mapping[str, str] | None = None,
) -> None:
    """Write the results of a folder, or of several, as JUnit XML to the file `target`, and to `more`.

    `demands` says what fails, `suspensions` what does not count, `versions` the version of each backend. Memory does
    not grow with the cases. Raises OpconformError if the results cannot be read or a file cannot be written.
    """
    for one in (target, *more):
        check_target(one)
    with gathering(target.parent, demands or Demands(), suspensions or Suspensions()) as cases:
        for folder in [folders] if isinstance(folders, Path) else folders:
            gather(folder, cases)
        write_cases(cases, [target, *more], versions or {})


@contextlib.contextmanager
def gathering(folder: Path, demands: Demands, suspensions: Suspensions) -> Iterator[TestCases]:
    """Open what gathers test cases: in a file in this folder that has no name, and so is gone in any event.

    Raises OpconformError if there can be none.
    """
    try:
        aside = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed below
    except OSError as error:
        raise OpconformError(f"{folder}: cannot be written to: {error.strerror}") from None
    with aside:
        yield TestCases(aside, demands, suspensions)


def check_target(target: Path) -> None:
    """Raise OpconformError if a file cannot be written there; to be asked before a long run."""
    if target.is_dir():
        raise OpconformError(f"{target}: cannot be written: it is a folder; name a file")
    if not target.parent.is_dir():
        raise OpconformError(f"{target}: cannot be written: there is no folder {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise OpconformError(f"{target}: cannot be written: no permission in {target.parent}")


def gather(folder: Path, cases: TestCases) -> None:
    """Take in the results of a folder. Raises OpconformError if they cannot be read."""
    cases.started = started_of(folder)
    for result in read_results(folder):
        cases.add(result)


def write_cases(cases: TestCases, targets: Iterable[Path], versions: Mapping[str, str]) -> None:
    """Write what was gathered as JUnit XML. Raises OpconformError if a file cannot be written.

    Writes aside and moves, so that a reader never meets half a file.
    """
    for target in targets:
        aside = target.with_name(f".{target.name}.part")
        try:
            with aside.open("wb") as file:
                _write(file, cases, versions)
            os.replace(aside, target)  # noqa: PTH105 - as in the results folder
        except OSError as error:
            aside.unlink(missing_ok=True)
            raise OpconformError(f"{target}: cannot be written: {error.strerror}") from None


def _write(file: BinaryIO, cases: TestCases, versions: Mapping[str, str]) -> None:
    suites = cases.suites()
    whole = _head(suites)
    del whole["skipped"]  # Jenkins' schema has it in suites alone
    opening = f"<testsuites{attributes_text({'name': 'opconform', **whole})}>"
    file.write(f'<?xml version="1.0" encoding="utf-8"?>\n{opening}\n'.encode())
    for suite in suites:
        head = {"name": f"{suite.backend} {suite.operator_version}", **_head([suite])}
        head |= {"timestamp": suite.started} if suite.started else {}
        file.write(f"<testsuite{attributes_text(head)}>\n".encode())
        if suite.backend in versions:
            told = attributes_text({"name": "backend-version", "value": versions[suite.backend]})
            file.write(f"<properties>\n<property{told}/>\n</properties>\n".encode())
        for text in cases.texts(suite):
            file.write(text)
        file.write(b"</testsuite>\n")
    file.write(b"</testsuites>\n")


def started_of(folder: Path) -> str | None:
    """Return when a run began, in UTC and as viewers read it: without a zone; None if `run.json` does not tell."""
    try:
        started = read_run(folder)["started"]
        return dt.datetime.fromisoformat(started).astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (OpconformError, KeyError, TypeError, ValueError):
        return None


def _head(suites: Iterable[Suite]) -> dict[str, str]:
    verdicts: Counter[Verdict] = Counter()
    for suite in suites:
        verdicts.update(suite.verdicts)
    counts = {str(name): str(verdicts[name]) for name in TAGS}
    return {"tests": str(verdicts.total()), **counts, "time": f"{sum(s.seconds for s in suites):.6f}"}
