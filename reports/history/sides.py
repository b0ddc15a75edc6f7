"""The two sides of a comparison: a run by its results folders, or out of a history; sorted, with bounded memory."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ...cases.errors import OpconformError
from ...cases.results import Outcome, Result
from ..merge import Whole
from ..reading import read_results
from ..tables import Terms
from .asking import results, turns
from .database import History, reading
from .plan import told_of
from .runs import folders_in, runs_of, started
from .state import Row, State, row_of

Rows: TypeAlias = Callable[[Sequence[str]], Iterator[Row]]

_OF_HISTORY = re.compile(r"(.+):(\d{1,9}|last(?:-\d{1,9})?)")


@dataclass(frozen=True)
class Side:
    """A run: how it was named, when it began (UTC), its backends with versions, what was asked, and its results.

    `rows` yields those of some backends, sorted by backend and case; once, while the side is open.
    """

    name: str
    started: str
    versions: Mapping[str, str]
    told: Mapping[str, Any]
    rows: Rows


@contextlib.contextmanager
def opened(text: str, *, partial: bool = False) -> Iterator[Side]:
    """Open a side by its name. Raises OpconformError if it is none, or not whole (unless `partial`)."""
    path = Path(text)
    found = None if path.exists() else _OF_HISTORY.fullmatch(text)
    if found:
        with reading(Path(found[1])) as history:
            yield _remembered(history, text, found[2])
    else:
        with tempfile.TemporaryDirectory(prefix="opconform-") as aside:
            yield _read(text, runs_of(folders_in(path), partial=partial), Path(aside))


def _remembered(history: History, name: str, run: str) -> Side:
    known = [number for (number,) in history.rows("SELECT run FROM run ORDER BY run")]
    back = int(run.partition("-")[2] or 0) if run.startswith("last") else None
    number: int = int(run) if back is None else known[-1 - back] if back < len(known) else -1
    if number not in known:
        told = f"it has {known[0]} to {known[-1]}" if known else "it has none"
        raise OpconformError(f"{history.path}: has no run {run}; {told}: `opconform history show` lists them")
    found = [turn for turn in turns(history) if turn.run == number]
    return Side(
        name,
        min(turn.started for turn in found),
        {turn.backend: turn.version for turn in found},
        found[0].told,
        lambda backends: results(history, number, backends),
    )


def _read(name: str, wholes: Sequence[Whole], aside: Path) -> Side:
    return Side(
        name,
        min(map(started, wholes)),
        {backend: version for whole in wholes for backend, version in whole.versions.items()},
        told_of(wholes[0].parts[0].told),
        lambda backends: _sorted(wholes, backends, aside / "sorted"),
    )


def _sorted(wholes: Sequence[Whole], backends: Sequence[str], file: Path) -> Iterator[Row]:
    """Yield the results of some backends, sorted by a database on disk: there may be more than memory holds."""
    numbers: dict[State, int] = {}
    wanted = frozenset(backends)
    with contextlib.closing(sqlite3.connect(file)) as sorter:
        sorter.execute("PRAGMA journal_mode = OFF")
        sorter.execute("PRAGMA synchronous = OFF")
        sorter.execute('CREATE TABLE row (backend BLOB, "case" BLOB, state INTEGER, rest TEXT)')
        sorter.executemany("INSERT INTO row VALUES (?, ?, ?, ?)", _packed(wholes, wanted, numbers))
        states = {number: state for state, number in numbers.items()}
        last: tuple[str, str] | None = None
        for backend, case, number, rest in sorter.execute('SELECT * FROM row ORDER BY backend, "case"'):
            row = Row(_text(backend), _text(case), states[number], *_rest(rest))
            if (row.backend, row.case) == last:
                raise OpconformError(f"{row.case} on {row.backend} is there twice: the folders are not one run")
            last = (row.backend, row.case)
            yield row


_Packed: TypeAlias = tuple[bytes, bytes, int, str]


def _packed(wholes: Sequence[Whole], backends: frozenset[str], numbers: dict[State, int]) -> Iterator[_Packed]:
    for whole in wholes:
        packer = _Packer(whole.parts[0].terms, numbers)
        for part in whole.parts:
            for result in read_results(part.folder):
                if result.backend in backends:
                    yield packer.of(result)


@dataclass
class _Packer:
    """Makes results of a run fit for sorting; `numbers` stand for states."""

    terms: Terms
    numbers: dict[State, int]

    def of(self, result: Result) -> _Packed:
        row = row_of(result, self.terms)
        number = self.numbers.setdefault(row.state, len(self.numbers))
        detail = None if row.state.outcome is Outcome.PASS else row.detail
        return _bytes(row.backend), _bytes(row.case), number, json.dumps([row.asked, detail])


def _rest(packed: str) -> tuple[tuple[str | None, str | None], str | None]:
    asked, detail = json.loads(packed)
    return (asked[0], asked[1]), detail


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(packed: bytes) -> str:
    return packed.decode("utf-8", "surrogatepass")
