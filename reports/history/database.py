"""The database of a history: its tables, how it is opened, refused and written in one piece, and a run's plan."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...cases.errors import OpconformError
from ...cases.results import Outcome
from .. import tally
from .changes import State

if TYPE_CHECKING:
    import duckdb

DEFAULT = Path("opconform-history.duckdb")
SCHEMA = 1
"""Goes up when the tables change."""

OPEN = 2**31 - 1
"""The end of a span that has none yet."""

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
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


class History:
    """An open history; a context manager.

    A *series* is what one backend answered to one plan (selection, strength, draws, seed, requirements); its runs are
    its turns, from 0 on. A *span* says that from turn `first` to before turn `until` a case was judged so.
    """

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        """Wrap a connection; use `reading` or `writing`."""
        self.path = path
        self._connection = connection

    def run(self, statement: str, parameters: Sequence[object] = ()) -> None:
        """Carry out a statement."""
        self._connection.execute(statement, list(parameters))

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self._connection.execute(query, list(parameters)).fetchall()

    def stream(self, query: str, parameters: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query; no other one may be asked meanwhile."""
        found = self._connection.execute(query, list(parameters))
        while rows := found.fetchmany(4096):
            yield from rows

    def one(self, query: str, parameters: Sequence[object] = ()) -> Any:
        """Return the first column of the first row, None if there is no row."""
        rows = self.rows(query, parameters)
        return rows[0][0] if rows else None

    def table(self, name: str, /, **columns: Sequence[object]) -> None:
        """Make a temporary table of these columns of text."""
        unnested = ", ".join(f"unnest(?::VARCHAR[]) AS {column}" for column in columns)
        self.run(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {unnested}", [list(c) for c in columns.values()])


@contextlib.contextmanager
def reading(path: Path) -> Iterator[History]:
    """Open a history to be asked. Raises OpconformError if there is none, or it cannot be read."""
    if not path.exists():
        raise OpconformError(f"{path}: there is no history; `opconform history add DIR --db {path}` begins one")
    with _opened(path, write=False) as history:
        _check(history)
        yield history


@contextlib.contextmanager
def writing(path: Path) -> Iterator[History]:
    """Open a history to be changed, a new one if there is none: all that is done is done together, or not at all.

    Raises OpconformError if it is in use, no history, or of a newer version.
    """
    fresh = not path.exists()
    try:
        with _opened(path, write=True) as history, _together(history):
            if not _tables(history):
                for statement in _TABLES.split(";")[:-1]:
                    history.run(statement)
                history.run("INSERT INTO opconform_history VALUES (?)", [SCHEMA])
            _check(history)
            yield history
    except BaseException:
        if fresh:
            path.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _together(history: History) -> Iterator[None]:
    """Do all or nothing."""
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
        message = "a history needs the package duckdb: pip install 'opconform[history]'"
        raise OpconformError(message) from None
    try:
        with duckdb.connect(str(path), read_only=not write, config=_CONFIG) as connection:
            yield History(path, connection)
    except duckdb.Error as error:
        raise OpconformError(f"{path}: {_reason(str(error))}") from None


def _reason(message: str) -> str:
    """Return what a user can make of the database's words."""
    if "lock" in message:
        return "is in use by another process; try again when it has ended"
    if "not a valid DuckDB" in message:
        return "is no history of opconform (no DuckDB file); choose another file with --db"
    return message.splitlines()[0]


def _tables(history: History) -> set[str]:
    return {name for (name,) in history.rows("SELECT table_name FROM duckdb_tables() WHERE NOT temporary")}


def _check(history: History) -> None:
    """Raise OpconformError unless the tables are those of this version."""
    path = history.path
    if "opconform_history" not in _tables(history):
        raise OpconformError(f"{path}: is no history of opconform; choose another file with --db")
    schema = history.one("SELECT schema FROM opconform_history")
    if schema != SCHEMA:
        mend = "use that version, or a newer one" if (schema or 0) > SCHEMA else "begin a new one"
        told = f"its tables have version {schema}, this opconform knows {SCHEMA}: another version wrote it; {mend}"
        raise OpconformError(f"{path}: {told}")


_USUAL = {"strength": 2, "draws": 1, "seed": 0}
_ASKED = (
    *("suite", "selection", "strength", "draws", "seed", "required", "profile", "arithmetic", "waivers", "errata"),
    *("disputed", "corpus"),
)


def asked_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a run's `run.json` decides verdicts, the backends apart."""
    return {name: told.get(name) for name in _ASKED}


def plan_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what makes runs ones of the same kind: selection, drawing, requirements; not versions, not files."""
    suite = told.get("suite")
    found = {
        "suite": suite.get("name") if isinstance(suite, dict) else None,
        "selection": sorted(map(str, told.get("selection") or [])),
        "strength": told.get("strength"),
        "draws": told.get("draws"),
        "seed": told.get("seed"),
        "required": told.get("required") or {},
        "corpus": bool(told.get("corpus")),
    }
    return dict(sorted(found.items()))


def plan_words(plan: Mapping[str, Any]) -> str:
    """Return a plan in words, `everything` for that of a run without options."""
    found = [f"suite {plan['suite']}"] if plan.get("suite") else []
    found += [str(glob) for glob in plan.get("selection") or ()]
    found += [f"{name} {plan[name]}" for name, usual in _USUAL.items() if plan.get(name) not in (None, usual)]
    required = plan.get("required")
    if isinstance(required, dict):
        found += [f"{silence}={option}" for silence, option in sorted(required.items())]
    return ", ".join([*found, "from a corpus"] if plan.get("corpus") else found) or "everything"


def states(history: History) -> dict[int, State]:
    """Return every state by its number."""
    rows = history.rows("SELECT state, outcome, behaviour, reason, level, is_suspended, is_failed FROM state")
    return {number: State(Outcome(outcome), *rest) for number, outcome, *rest in rows}
