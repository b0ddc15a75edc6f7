"""`opconform history prune`: old runs forgotten; what is as it was since then is still known."""

from __future__ import annotations

from pathlib import Path

from ...cases.errors import OpconformError
from ..text import counted
from .database import DEFAULT, History, writing


def prune(db: Path = DEFAULT, *, keep: int | None = None, before: str | None = None) -> str:
    """Forget the runs of each series but the last `keep`, or those that began before a day; return what to say.

    The last run of a series is always kept. Raises OpconformError if there is no history.
    """
    if not db.exists():
        raise OpconformError(f"{db}: there is no history")
    with writing(db) as history:
        history.run(_DOOMED, [keep, keep, before, before])
        runs = history.one("SELECT count(*) FROM doomed")
        if runs:
            _forget(history)
    size = db.stat().st_size / (1 << 20)
    return f"{db}: {counted(runs, 'run')} forgotten, counted by backend; {size:,.1f} MiB now"


_DOOMED = """
CREATE OR REPLACE TEMP TABLE doomed AS
SELECT series, turn
FROM (SELECT *, row_number() OVER (PARTITION BY series ORDER BY turn DESC) AS age FROM turn)
WHERE age > 1 AND (?::INTEGER IS NULL OR age > ?) AND (?::VARCHAR IS NULL OR started < ?)
"""
_STATEMENTS = (
    "DELETE FROM turn WHERE (series, turn) IN (SELECT series, turn FROM doomed)",
    "DELETE FROM run WHERE run NOT IN (SELECT run FROM turn)",
    "CREATE TEMP TABLE origin AS SELECT series, min(turn) AS origin FROM turn GROUP BY series",
    # written anew, in the order in which it is asked, so that the space is free
    'CREATE TEMP TABLE kept AS SELECT series, "case", question, state, greatest(first, origin) AS first, until, detail '
    'FROM span JOIN origin USING (series) WHERE until > origin ORDER BY series, "case", first',
    "TRUNCATE span",
    "INSERT INTO span SELECT * FROM kept",
    "DELETE FROM question WHERE question NOT IN (SELECT question FROM span)",
    'DELETE FROM cases WHERE "case" NOT IN (SELECT "case" FROM span)',
)


def _forget(history: History) -> None:
    for statement in _STATEMENTS:
        history.run(statement)
