"""`opconform history add` and `prune`: a run taken in, set by set, as changes to what was there; old runs forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from ...cases.errors import OpconformError
from ..reading import RESULTS, read_results
from ..runs import Part, Whole, runs_of, started
from ..text import counted, printable
from .changes import State, record_of
from .database import COUNTS, DEFAULT, OPEN, History, asked_of, plan_of, states, writing

_COLUMNS = ("whole", "backend", "of_case", "asked", "expected", "state", "detail")
_AT_ONCE = 100_000  # results that are handed to the database together

_Arrived: TypeAlias = tuple[int, str, str, str | None, str | None, int, str | None]


@dataclass(frozen=True)
class _Turn:
    """A backend's share of the run that is added: which run of which series it is."""

    whole: int
    backend: str
    part: Part
    started: str
    series: int
    turn: int


def add(db: Path, folders: Sequence[Path], label: str | None = None, *, partial: bool = False) -> list[str]:
    """Take a run into the history, and return what to say; all of it is taken in, or nothing.

    What is there already is left as it is. Raises OpconformError for folders that are not one run, that are unfinished
    (unless `partial`), damaged, or older than what is there.
    """
    wholes = runs_of(folders, partial=partial)
    with writing(db) as history:
        _arrive(history, wholes)
        run = 1 + (history.one("SELECT max(run) FROM run") or 0)
        lines = []
        added = False
        for turn in [_turn(history, *share) for share in _shares(wholes)]:
            line, is_new = _take(history, turn, run)
            lines.append(line)
            added |= is_new
        if added:
            _insert_run(history, run, label, wholes)
        return lines


def _arrive(history: History, wholes: Sequence[Whole]) -> None:
    """Make the table `named` of all results; a case, what it asks and how it was judged get a number if they have none.

    Raises OpconformError for a line that is no result, a case that is there twice, and results of a backend that
    `run.json` does not name; a torn last line is dropped.
    """
    history.run(
        'CREATE OR REPLACE TEMP TABLE arrived (whole INTEGER, backend VARCHAR, "case" VARCHAR, case_digest VARCHAR, '
        "expectation_digest VARCHAR, state INTEGER, detail VARCHAR)"
    )
    known = {state: number for number, state in states(history).items()}
    before = len(known)
    found = _arrived(wholes, known)
    while rows := list(islice(found, _AT_ONCE)):
        history.table("portion", **{name: [row[i] for row in rows] for i, name in enumerate(_COLUMNS)})
        history.run("INSERT INTO arrived SELECT * FROM portion")
    twice = history.rows('SELECT backend, "case" FROM arrived GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 1')
    if twice:
        raise OpconformError(f"{twice[0][1]} on {twice[0][0]} is there twice: the folders are not one run")
    for state, number in list(known.items())[before:]:
        counts = [getattr(state.figures, count) for count in COUNTS]
        history.run(f"INSERT INTO state VALUES ({', '.join('?' * (7 + len(counts)))})", [number, *state, *counts])  # noqa: S608 - question marks
    history.run(_CASES, [history.one('SELECT coalesce(max("case"), 0) FROM cases')])
    history.run(_QUESTIONS, [history.one("SELECT coalesce(max(question), 0) FROM question")])
    history.run(_NAMED)


def _arrived(wholes: Sequence[Whole], known: dict[State, int]) -> Iterator[_Arrived]:
    """Yield all results; a state that is not known is added there with the next number."""
    for index, whole in enumerate(wholes):
        for part in whole.parts:
            named, terms = part.told["backends"], whole.parts[0].terms
            for result in read_results(part.folder):
                if result.backend not in named:
                    told = f"has results of {result.backend!r}, which run.json does not name"
                    raise OpconformError(f"{part.folder / RESULTS}: {told}")
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


def _shares(wholes: Sequence[Whole]) -> list[tuple[int, str, Part, str]]:
    found = []
    for number, whole in enumerate(wholes):
        moment = started(whole)
        found += [(number, backend, whole.parts[0], moment) for backend in whole.versions]
    return found


def _turn(history: History, whole: int, backend: str, part: Part, started: str) -> _Turn:
    plan = json.dumps(plan_of(part.told))
    series = history.one("SELECT series FROM series WHERE backend = ? AND plan = ?", [backend, plan])
    if series is None:
        series = 1 + (history.one("SELECT max(series) FROM series") or 0)
        history.run("INSERT INTO series VALUES (?, ?, ?)", [series, backend, plan])
    last = history.one("SELECT max(turn) FROM turn WHERE series = ?", [series])
    return _Turn(whole, backend, part, started, series, 0 if last is None else last + 1)


def _take(history: History, turn: _Turn, run: int) -> tuple[str, bool]:
    """Take in a backend's share, unless it is there; return what to say, and whether it was taken in."""
    backend = printable(f"{turn.backend} {turn.part.versions[turn.backend]}")
    history.run(_SHARE, [turn.series, turn.whole, turn.backend])
    count = history.one("SELECT count(*) FROM share")
    if not count:
        return f"{backend}: no results, so nothing to take in", False
    known = _same(history, turn)
    if known is not None:
        return f"{backend}: the run of {turn.started} is there already, as run {known}", False
    _refuse_older(history, turn)
    opened, closed = _insert_spans(history, turn)
    counts = history.rows(_COUNTED)[0]
    told = json.dumps(asked_of(turn.part.told))
    row = [turn.series, turn.turn, run, turn.started, turn.part.versions[turn.backend], told, *counts]
    history.run(f"INSERT INTO turn VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - question marks
    changes = "the first of its kind" if not turn.turn else counted(max(opened, closed), "case") + " changed"
    return f"{backend}: {counted(count, 'result')} taken in as run {run}, {changes}", True


_SHARE = """
CREATE OR REPLACE TEMP TABLE share AS
SELECT ?::INTEGER AS series, "case", question, state, detail FROM named WHERE whole = ? AND backend = ?
"""
_COUNTED = f"SELECT {', '.join(f'sum(s.{name})::INTEGER' for name in COUNTS)} FROM share JOIN state s USING (state)"  # noqa: S608 - names of ours
_AS_OF = "SELECT question, state FROM span WHERE series = ? AND first <= ? AND until > ?"


def _same(history: History, turn: _Turn) -> int | None:
    """Return the run that is this one: it began then, and had the same results."""
    asked = "SELECT turn, run FROM turn WHERE series = ? AND started = ? AND version = ? ORDER BY turn"
    for number, run in history.rows(asked, [turn.series, turn.started, turn.part.versions[turn.backend]]):
        place = [turn.series, number, number]
        differ = history.one(
            f"SELECT (SELECT count(*) FROM ({_AS_OF} EXCEPT SELECT question, state FROM share)) + "  # noqa: S608 - constants
            f"(SELECT count(*) FROM (SELECT question, state FROM share EXCEPT {_AS_OF}))",
            [*place, *place],
        )
        if not differ:
            return int(run)
    return None


def _refuse_older(history: History, turn: _Turn) -> None:
    last = history.rows("SELECT started, run FROM turn WHERE series = ? ORDER BY turn DESC LIMIT 1", [turn.series])
    if last and last[0][0] > turn.started:
        raise OpconformError(
            f"{turn.part.folder}: the run of {printable(turn.backend)} began {turn.started}, before the last one in "
            f"{history.path} (run {last[0][1]}, {last[0][0]}): runs are taken in in the order in which they began"
        )


def _insert_spans(history: History, turn: _Turn) -> tuple[int, int]:
    """End the spans that are over and begin new ones; return how many began and ended."""
    history.run(_BEFORE, [turn.series, OPEN])
    history.run(_OVER)
    history.run("UPDATE span SET until = ? WHERE rowid IN (SELECT place FROM over)", [turn.turn])
    history.run(_NEW)
    history.run(_BEGIN, [turn.series, turn.turn, OPEN])
    return history.one("SELECT count(*) FROM begun"), history.one("SELECT count(*) FROM over")


_BEFORE = """
CREATE OR REPLACE TEMP TABLE before AS
SELECT rowid AS place, question, state FROM span WHERE series = ? AND until = ?
"""
_OVER = "CREATE OR REPLACE TEMP TABLE over AS SELECT place FROM before ANTI JOIN share USING (question, state)"
_NEW = "CREATE OR REPLACE TEMP TABLE begun AS SELECT * FROM share ANTI JOIN before USING (question, state)"
_BEGIN = 'INSERT INTO span SELECT ?, "case", question, state, ?, ?, detail FROM begun ORDER BY "case"'


def _insert_run(history: History, run: int, label: str | None, wholes: Sequence[Whole]) -> None:
    suite = wholes[0].parts[0].told.get("suite")
    told = suite if isinstance(suite, dict) else {}
    partial = any(whole.missing or whole.unfinished for whole in wholes)
    row = [run, label, str(told.get("version", "unknown")), str(told.get("digest", "")), partial]
    history.run("INSERT INTO run VALUES (?, ?, ?, ?, ?)", row)


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
            for statement in _FORGET:
                history.run(statement)
    size = db.stat().st_size / (1 << 20)
    return f"{db}: {counted(runs, 'run')} forgotten, counted by backend; {size:,.1f} MiB now"


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
    # written anew, in the order in which it is asked, so that the space is free
    'CREATE TEMP TABLE kept AS SELECT series, "case", question, state, greatest(first, origin) AS first, until, detail '
    'FROM span JOIN origin USING (series) WHERE until > origin ORDER BY series, "case", first',
    "TRUNCATE span",
    "INSERT INTO span SELECT * FROM kept",
    "DELETE FROM question WHERE question NOT IN (SELECT question FROM span)",
    'DELETE FROM cases WHERE "case" NOT IN (SELECT "case" FROM span)',
)
