"""`opconform history add`: the results of a run taken into a history, set by set, as changes to what was there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...cases.errors import OpconformError
from ..merge import Part, Whole
from ..text import counted, printable
from .arriving import arrive
from .database import COUNTS, OPEN, History, writing
from .naming import name
from .plan import plan_of, told_of
from .runs import runs_of, started


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
        arrive(history, wholes)
        name(history, wholes[0].parts[0].terms)
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
    told = json.dumps(told_of(turn.part.told))
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
