"""The database of a history: its tables; opens it, adds runs and removes them."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ...cases.errors import OpconformError
from ...cases.results import Outcome
from .. import tally
from ..progress import tracked
from ..runs import RESULTS, MergedRun, RunRecord, read_results, runs_of, started
from ..text import counted, printable
from .changes import State, record_of

if TYPE_CHECKING:
    import duckdb

DEFAULT = Path("opconform-history.duckdb")
SCHEMA = 1
"""Increases when the tables change."""

OPEN = 2**31 - 1
"""The end of a span that has not ended."""

COUNTS = ("cases", *tally.COUNTS)

_COUNT_COLUMNS = ", ".join(f"{name} INTEGER" for name in COUNTS)
_TABLES = f"""
CREATE TABLE opconform_history (schema INTEGER);
CREATE TABLE run (run INTEGER, label VARCHAR, suite VARCHAR, suite_digest VARCHAR, partial BOOLEAN);
CREATE TABLE series (series INTEGER, backend VARCHAR, plan VARCHAR);
CREATE TABLE turn (series INTEGER, turn INTEGER, run INTEGER, started VARCHAR, version VARCHAR, told VARCHAR,
  {_COUNT_COLUMNS});
CREATE TABLE cases ("case" INTEGER, name VARCHAR);
CREATE TABLE question (question INTEGER, "case" INTEGER, case_digest VARCHAR, expectation_digest VARCHAR);
CREATE TABLE state (state INTEGER, outcome VARCHAR, behaviour VARCHAR, reason VARCHAR, level VARCHAR,
  is_suspended BOOLEAN, is_failed BOOLEAN, {_COUNT_COLUMNS});
CREATE TABLE span (series INTEGER, "case" INTEGER, question INTEGER, state INTEGER, first INTEGER, until INTEGER,
  detail VARCHAR);
"""
_PATIENCE, _POLL = 10.0, 0.05
"""Seconds to wait for another process that writes, and between two attempts."""
_IN_USE = "is in use by another process; try again when it has ended"
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


class History:
    """An open history; a context manager.

    A *series* has one backend's answers to one plan (selection, strength, draws, seed, requirements); its runs are its
    turns, from 0 on. A *span* says that a case had this verdict from turn `first` up to, but not including, turn
    `until`.
    """

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        """Wrap a connection; use `reading` or `writing`."""
        self.path = path
        self._connection = connection

    def run(self, statement: str, parameters: Sequence[object] = ()) -> None:
        """Execute a statement."""
        self._connection.execute(statement, list(parameters))

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self._connection.execute(query, list(parameters)).fetchall()

    def stream(self, query: str, parameters: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query; run no other query meanwhile."""
        cursor = self._connection.execute(query, list(parameters))
        while rows := cursor.fetchmany(4096):
            yield from rows

    def value(self, query: str, parameters: Sequence[object] = ()) -> Any:
        """Return the first column of the first row, None if there is no row."""
        rows = self.rows(query, parameters)
        return rows[0][0] if rows else None

    def table(self, name: str, /, **columns: Sequence[object]) -> None:
        """Make a temporary table with these text columns."""
        unnested = ", ".join(f"unnest(?::VARCHAR[]) AS {column}" for column in columns)
        self.run(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {unnested}", [list(c) for c in columns.values()])


@contextlib.contextmanager
def reading(path: Path) -> Iterator[History]:
    """Open a history for reading. Raises OpconformError if there is none, or it cannot be read."""
    if not path.exists():
        raise OpconformError(f"{path}: there is no history; `opconform history add DIR --db {path}` creates one")
    with _opened(path, write=False) as history:
        _check(history)
        yield history


@contextlib.contextmanager
def writing(path: Path) -> Iterator[History]:
    """Open a history for writing, a new one if there is none; either all changes are kept or none.

    Raises OpconformError if it is in use, not a history, or of a newer version.
    """
    with _locked(path):
        fresh, made = not path.exists(), False
        try:
            with _opened(path, write=True) as history, _together(history):
                made = fresh
                if not _tables(history):
                    for statement in _TABLES.split(";")[:-1]:
                        history.run(statement)
                    history.run("INSERT INTO opconform_history VALUES (?)", [SCHEMA])
                _check(history)
                yield history
        except BaseException:
            if made:  # by us: nobody else writes while we have the lock
                path.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes from writing to histories in the same folder meanwhile; wait for one that does.

    Raises OpconformError if that takes too long.
    """
    try:
        import fcntl  # noqa: PLC0415 - not on Windows

        folder = os.open(path.parent, os.O_RDONLY)
    except (ImportError, OSError):  # opening the history tells what is wrong with the folder
        yield
        return
    until = time.monotonic() + _PATIENCE
    try:
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise OpconformError(f"{path}: {_IN_USE}") from None
                time.sleep(_POLL)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        os.close(folder)


@contextlib.contextmanager
def _together(history: History) -> Iterator[None]:
    """Run a block as one transaction."""
    history.run("BEGIN")
    try:
        yield
    except BaseException:
        history.run("ROLLBACK")
        raise
    history.run("COMMIT")
    history.run("CHECKPOINT")


@contextlib.contextmanager
def _opened(path: Path, *, write: bool) -> Iterator[History]:
    try:
        import duckdb  # noqa: PLC0415 - an extra, and heavy
    except ImportError:
        message = "a history needs the package duckdb: pip install duckdb"
        raise OpconformError(message) from None
    try:
        with duckdb.connect(str(path), read_only=not write, config=_CONFIG) as connection:
            yield History(path, connection)
    except duckdb.Error as error:
        raise OpconformError(f"{path}: {_reason(str(error))}") from None


def _reason(message: str) -> str:
    """Return the database's message in words that help a user."""
    if "lock" in message:
        return _IN_USE
    if "not a valid DuckDB" in message:
        return "is not a history of opconform (not a DuckDB file); choose another file with --db"
    return message.splitlines()[0]


def _tables(history: History) -> set[str]:
    return {name for (name,) in history.rows("SELECT table_name FROM duckdb_tables() WHERE NOT temporary")}


def _check(history: History) -> None:
    """Raise OpconformError unless the tables have this version."""
    path = history.path
    if "opconform_history" not in _tables(history):
        raise OpconformError(f"{path}: is not a history of opconform; choose another file with --db")
    schema = history.value("SELECT schema FROM opconform_history")
    if schema != SCHEMA:
        mend = "use that version, or a newer one" if (schema or 0) > SCHEMA else "begin a new one"
        problem = f"its tables have version {schema}, this opconform knows {SCHEMA}: another version wrote it; {mend}"
        raise OpconformError(f"{path}: {problem}")


_USUAL = {"strength": 2, "draws": 1, "seed": 0}
_ASKED = (
    *("suite", "selection", "strength", "draws", "seed", "required", "profile", "arithmetic", "waivers", "errata"),
    *("disputed", "corpus"),
)


def asked_of(run_record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a run's `run.json` that decide verdicts, except the backends."""
    return {name: run_record.get(name) for name in _ASKED}


def plan_of(run_record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what identifies runs of the same kind: selection, drawing, requirements; not versions or files."""
    plan = {
        "suite": run_record.get("suite", {}).get("name"),
        "selection": sorted(map(str, run_record.get("selection") or [])),
        "strength": run_record.get("strength"),
        "draws": run_record.get("draws"),
        "seed": run_record.get("seed"),
        "required": run_record.get("required") or {},
        "corpus": bool(run_record.get("corpus")),
    }
    return dict(sorted(plan.items()))


def plan_words(plan: Mapping[str, Any]) -> str:
    """Return a plan in words, `everything` for a run without options."""
    words = [f"suite {plan['suite']}"] if plan.get("suite") else []
    words += [str(glob) for glob in plan.get("selection") or ()]
    words += [f"{name} {plan[name]}" for name, usual in _USUAL.items() if plan.get(name) not in (None, usual)]
    required = plan.get("required")
    if isinstance(required, dict):
        words += [f"{silence}={option}" for silence, option in sorted(required.items())]
    return ", ".join([*words, "from a corpus"] if plan.get("corpus") else words) or "everything"


def states(history: History) -> dict[int, State]:
    """Return every state by its number."""
    rows = history.rows("SELECT state, outcome, behaviour, reason, level, is_suspended, is_failed FROM state")
    return {number: State(Outcome(outcome), *rest) for number, outcome, *rest in rows}


_COLUMNS = ("whole", "backend", "of_case", "asked", "expected", "state", "detail")
_AT_ONCE = 100_000  # number of results that are passed to the database together

_Arrived: TypeAlias = tuple[int, str, str, str | None, str | None, int, str | None]


@dataclass(frozen=True)
class _BackendShare:
    """A backend's share of the added run: the series, and the run's position in it."""

    index: int
    backend: str
    part: RunRecord
    started: str
    series: int
    turn: int


def add(db: Path, folders: Sequence[Path], label: str | None = None, *, partial: bool = False) -> list[str]:
    """Add a run to the history completely or not at all, and return messages.

    A run that is already there is skipped. Raises OpconformError for folders that are not one run, are unfinished
    (unless `partial`), damaged, or older than the last run.
    """
    wholes = runs_of(folders, partial=partial)
    with writing(db) as history:
        _arrive(history, wholes)
        run = 1 + (history.value("SELECT max(run) FROM run") or 0)
        lines = []
        added = False
        for turn in _shares(history, wholes):
            line, is_new = _take(history, turn, run)
            lines.append(line)
            added |= is_new
        if added:
            _insert_run(history, run, label, wholes)
        return lines


def _arrive(history: History, wholes: Sequence[MergedRun]) -> None:
    """Make the table `named` of all results; new cases, questions and states get numbers.

    Raises OpconformError for a line that is not a result, a case that appears twice, and results of a backend that
    `run.json` does not name; a torn last line is dropped.
    """
    history.run(
        'CREATE OR REPLACE TEMP TABLE arrived (whole INTEGER, backend VARCHAR, "case" VARCHAR, case_digest VARCHAR, '
        "expectation_digest VARCHAR, state INTEGER, detail VARCHAR)"
    )
    known = {state: number for number, state in states(history).items()}
    before = len(known)
    arriving = _arrived(wholes, known)
    while rows := list(islice(arriving, _AT_ONCE)):
        history.table("portion", **{name: [row[i] for row in rows] for i, name in enumerate(_COLUMNS)})
        history.run("INSERT INTO arrived SELECT * FROM portion")
    twice = history.rows('SELECT backend, "case" FROM arrived GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 1')
    if twice:
        raise OpconformError(f"{twice[0][1]} on {twice[0][0]} appears twice: the folders are not one run")
    for state, number in list(known.items())[before:]:
        counts = [getattr(state.figures, count) for count in COUNTS]
        history.run(f"INSERT INTO state VALUES ({', '.join('?' * (7 + len(counts)))})", [number, *state, *counts])  # noqa: S608 - question marks
    history.run(_CASES, [history.value('SELECT coalesce(max("case"), 0) FROM cases')])
    history.run(_QUESTIONS, [history.value("SELECT coalesce(max(question), 0) FROM question")])
    history.run(_NAMED)


def _arrived(wholes: Sequence[MergedRun], known: dict[State, int]) -> Iterator[_Arrived]:
    """Yield all results; an unknown state is added with the next number."""
    for index, merged in enumerate(wholes):
        for part in merged.parts:
            named, terms = part.run_json["backends"], merged.parts[0].terms
            with tracked(read_results(part.folder), "reading results", part.planned) as results:
                for result in results:
                    if result.backend not in named:
                        problem = f"has results of {result.backend!r}, which run.json does not name"
                        raise OpconformError(f"{part.folder / RESULTS}: {problem}")
                    record = record_of(result, terms)
                    number = known.setdefault(record.state, len(known) + 1)
                    yield index, record.backend, record.case, *record.asked, number, record.detail


_CASES = """
INSERT INTO cases SELECT ? + row_number() OVER (ORDER BY name), name
FROM (SELECT DISTINCT "case" AS name FROM arrived) ANTI JOIN cases USING (name)
"""
_QUESTIONS = """
INSERT INTO question SELECT ? + row_number() OVER (ORDER BY "case", case_digest, expectation_digest), *
FROM (SELECT DISTINCT c."case", a.case_digest, a.expectation_digest FROM arrived a JOIN cases c ON a."case" = c.name) a
WHERE NOT EXISTS (SELECT 1 FROM question q WHERE q."case" = a."case"
  AND q.case_digest IS NOT DISTINCT FROM a.case_digest
  AND q.expectation_digest IS NOT DISTINCT FROM a.expectation_digest)
"""
_NAMED = """
CREATE OR REPLACE TEMP TABLE named AS
SELECT a.whole, a.backend, c."case", q.question, a.state, a.detail
FROM arrived a JOIN cases c ON a."case" = c.name
JOIN question q ON q."case" = c."case" AND q.case_digest IS NOT DISTINCT FROM a.case_digest
  AND q.expectation_digest IS NOT DISTINCT FROM a.expectation_digest
"""


def _shares(history: History, wholes: Sequence[MergedRun]) -> list[_BackendShare]:
    """Return the share of each backend, in its series or in a new one."""
    shares = []
    for index, merged in enumerate(wholes):
        part, moment = merged.parts[0], started(merged)
        plan = json.dumps(plan_of(part.run_json))
        for backend in merged.versions:
            series = history.value("SELECT series FROM series WHERE backend = ? AND plan = ?", [backend, plan])
            if series is None:
                series = 1 + (history.value("SELECT max(series) FROM series") or 0)
                history.run("INSERT INTO series VALUES (?, ?, ?)", [series, backend, plan])
            turn = history.value("SELECT coalesce(max(turn) + 1, 0) FROM turn WHERE series = ?", [series])
            shares.append(_BackendShare(index, backend, part, moment, series, turn))
    return shares


def _take(history: History, turn: _BackendShare, run: int) -> tuple[str, bool]:
    """Add a backend's share, unless it is there; return the message, and whether it was added."""
    backend = printable(f"{turn.backend} {turn.part.versions[turn.backend]}")
    history.run(_SHARE, [turn.series, turn.index, turn.backend])
    count = history.value("SELECT count(*) FROM share")
    if not count:
        return f"{backend}: no results, so nothing to take in", False
    known = _same(history, turn)
    if known is not None:
        return f"{backend}: the run of {turn.started} is there already, as run {known}", False
    _refuse_older(history, turn)
    opened, closed = _insert_spans(history, turn)
    counts = history.rows(_COUNTED)[0]
    asked = json.dumps(asked_of(turn.part.run_json))
    row = [turn.series, turn.turn, run, turn.started, turn.part.versions[turn.backend], asked, *counts]
    history.run(f"INSERT INTO turn VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - question marks
    changes = "the first of its kind" if not turn.turn else counted(max(opened, closed), "case") + " changed"
    return f"{backend}: {counted(count, 'result')} added as run {run}, {changes}", True


_SHARE = """
CREATE OR REPLACE TEMP TABLE share AS
SELECT ?::INTEGER AS series, "case", question, state, detail FROM named WHERE whole = ? AND backend = ?
"""
_COUNTED = f"SELECT {', '.join(f'sum(s.{name})::INTEGER' for name in COUNTS)} FROM share JOIN state s USING (state)"  # noqa: S608 - names of ours
_AS_OF = "SELECT question, state FROM span WHERE series = ? AND first <= ? AND until > ?"


def _same(history: History, turn: _BackendShare) -> int | None:
    """Return the run that equals this one: it began at the same time, and had the same results."""
    asked = "SELECT turn, run FROM turn WHERE series = ? AND started = ? AND version = ? ORDER BY turn"
    for number, run in history.rows(asked, [turn.series, turn.started, turn.part.versions[turn.backend]]):
        position = [turn.series, number, number]
        differ = history.value(
            f"SELECT (SELECT count(*) FROM ({_AS_OF} EXCEPT SELECT question, state FROM share)) + "  # noqa: S608 - constants
            f"(SELECT count(*) FROM (SELECT question, state FROM share EXCEPT {_AS_OF}))",
            [*position, *position],
        )
        if not differ:
            return int(run)
    return None


def _refuse_older(history: History, turn: _BackendShare) -> None:
    last = history.rows("SELECT started, run FROM turn WHERE series = ? ORDER BY turn DESC LIMIT 1", [turn.series])
    if last and last[0][0] > turn.started:
        raise OpconformError(
            f"{turn.part.folder}: the run of {printable(turn.backend)} began {turn.started}, before the last one in "
            f"{history.path} (run {last[0][1]}, {last[0][0]}): runs are added in the order in which they began"
        )


def _insert_spans(history: History, turn: _BackendShare) -> tuple[int, int]:
    """End the spans that are over and begin new ones; return how many began and ended."""
    history.run(_BEFORE, [turn.series, OPEN])
    history.run(_OVER)
    history.run("UPDATE span SET until = ? WHERE rowid IN (SELECT place FROM over)", [turn.turn])
    history.run(_NEW)
    history.run(_BEGIN, [turn.series, turn.turn, OPEN])
    return history.value("SELECT count(*) FROM begun"), history.value("SELECT count(*) FROM over")


_BEFORE = """
CREATE OR REPLACE TEMP TABLE before AS
SELECT rowid AS place, question, state FROM span WHERE series = ? AND until = ?
"""
_OVER = "CREATE OR REPLACE TEMP TABLE over AS SELECT place FROM before ANTI JOIN share USING (question, state)"
_NEW = "CREATE OR REPLACE TEMP TABLE begun AS SELECT * FROM share ANTI JOIN before USING (question, state)"
_BEGIN = 'INSERT INTO span SELECT ?, "case", question, state, ?, ?, detail FROM begun ORDER BY "case"'


def _insert_run(history: History, run: int, label: str | None, wholes: Sequence[MergedRun]) -> None:
    suite = wholes[0].parts[0].run_json.get("suite", {})
    partial = any(merged.missing or merged.unfinished for merged in wholes)
    row = [run, label, str(suite.get("version", "unknown")), str(suite.get("digest", "")), partial]
    history.run("INSERT INTO run VALUES (?, ?, ?, ?, ?)", row)


def prune(db: Path = DEFAULT, *, keep: int | None = None, before: str | None = None) -> str:
    """Remove the runs of each series except the last `keep`, or runs that began before a day; return messages.

    The last run of a series always stays. Raises OpconformError if there is no history.
    """
    if not db.exists():
        raise OpconformError(f"{db}: there is no history")
    with writing(db) as history:
        history.run(_DOOMED, [keep, keep, before, before])
        runs = history.value("SELECT count(*) FROM doomed")
        if runs:
            for statement in _FORGET:
                history.run(statement)
    size = db.stat().st_size / (1 << 20)
    return f"{db}: {counted(runs, 'run')} removed (each backend of a run counts as one); {size:,.1f} MiB now"


_DOOMED = """
CREATE OR REPLACE TEMP TABLE doomed AS
SELECT series, turn
FROM (SELECT *, row_number() OVER (PARTITION BY series ORDER BY turn DESC) AS age FROM turn)
WHERE age > 1 AND (?::INTEGER IS NULL OR age > ?) AND (?::VARCHAR IS NULL OR started < ?)
"""
_FORGET = (
    "DELETE FROM turn WHERE (series, turn) IN (SELECT series, turn FROM doomed)",
    "DELETE FROM run WHERE run NOT IN (SELECT run FROM turn)",
    "CREATE TEMP TABLE origin AS SELECT series, min(turn) AS origin FROM turn GROUP BY series",
    # rewritten, in the order of queries, to free the space
    'CREATE TEMP TABLE kept AS SELECT series, "case", question, state, greatest(first, origin) AS first, until, detail '
    'FROM span JOIN origin USING (series) WHERE until > origin ORDER BY series, "case", first',
    "TRUNCATE span",
    "INSERT INTO span SELECT * FROM kept",
    "DELETE FROM question WHERE question NOT IN (SELECT question FROM span)",
    'DELETE FROM cases WHERE "case" NOT IN (SELECT "case" FROM span)',
)
