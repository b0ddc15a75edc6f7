"""What a history is asked: its runs with their figures and changes, what became of a case, all results of a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ...cases.errors import OpconformError, did_you_mean
from ...cases.results import Outcome
from ...specs.globs import Glob
from ..figures import Figures
from .database import COUNTS, OPEN, History
from .kinds import Changes, Kind, change_of, kind_of
from .state import Row, State


@dataclass(frozen=True)
class Turn:
    """What a backend answered in one run.

    `plan` and `told` say what was asked (see plan.py), `started` is a moment in UTC, `cases` counts its results.
    `changes` counts what changed since the turn before, which `before` is; None for the first.
    """

    run: int
    label: str | None
    suite: str
    partial: bool
    series: int
    turn: int
    backend: str
    version: str
    started: str
    plan: Mapping[str, Any]
    told: Mapping[str, Any]
    cases: int
    figures: Figures
    changes: Mapping[Kind, int]
    before: Turn | None = None

    @property
    def other_version(self) -> bool:
        """Whether the backend's version is another one than in the turn before."""
        return self.before is not None and self.before.version != self.version


@dataclass(frozen=True)
class Stay:
    """How long a case was judged so: from the run `first` to the run `last`, which is still so if `lasts`."""

    backend: str
    plan: Mapping[str, Any]
    state: State
    detail: str | None
    question: int
    first: Turn
    last: Turn
    lasts: bool


def turns(history: History, *, backend: str = "*", globs: Sequence[str] = (), last: int | None = None) -> list[Turn]:
    """Return the turns of all series, each series in the order of its runs; figures and changes of these cases alone.

    Raises OpconformError if no backend or no case is named so.
    """
    selected = _select(history, globs)
    figures = _figures(history, selected=selected)
    changes = _changes(history, selected=selected)
    found: list[Turn] = []
    for row in history.rows(_TURNS):
        series, number, name = row[4:7]
        if fnmatchcase(name, backend):
            before = found[-1] if found and found[-1].series == series else None
            kinds: Mapping[Kind, int] = changes.get((series, number), {}) if before else {}
            figured = figures.get((series, number), (0, Figures()))
            found.append(Turn(*(*row[:9], *map(json.loads, row[9:]), *figured, kinds, before)))
    if not found:
        _refuse_backend(history, backend)
    return _last(found, last)


def _last(found: list[Turn], last: int | None) -> list[Turn]:
    left = Counter(turn.series for turn in found)
    kept = []
    for turn in found:
        if last is None or left[turn.series] <= last:
            kept.append(turn)
        left[turn.series] -= 1
    return kept


_TURNS = """
SELECT r.run, r.label, r.suite, r.partial, t.series, t.turn, s.backend, t.version, t.started, s.plan, t.told
FROM turn t JOIN run r USING (run) JOIN series s USING (series) ORDER BY s.backend, t.series, t.turn
"""


def _select(history: History, globs: Sequence[str]) -> bool:
    """Make the table `selected` of cases, and return whether there is one. Raises OpconformError if it is empty."""
    if not globs:
        return False
    wanted = [Glob(text) for text in globs]
    names = history.rows('SELECT "case", name FROM cases')
    chosen = [number for number, name in names if any(glob.matches(name) for glob in wanted)]
    if not chosen:
        raise OpconformError(f"no case of this history is named so: {', '.join(globs)}")
    history.table("selected_text", number=chosen)
    history.run('CREATE OR REPLACE TEMP TABLE selected AS SELECT number::INTEGER AS "case" FROM selected_text')
    return True


def _figures(history: History, *, selected: bool) -> dict[tuple[int, int], tuple[int, Figures]]:
    """Return how many cases and which figures each turn has; where all are selected, as they were counted at first."""
    columns = ", ".join(COUNTS)
    if not selected:
        rows = history.rows(f"SELECT series, turn, {columns} FROM turn")  # noqa: S608 - names of ours
    else:
        rows = history.rows(_COUNTED_BY_STEPS, [OPEN])
    return {
        (series, turn): (cases, Figures(**dict(zip(COUNTS[1:], counts, strict=True))))
        for series, turn, cases, *counts in rows
    }


_ADDED = ", ".join(f"sum(s.{name}) AS {name}" for name in COUNTS)
_TAKEN = ", ".join(f"-sum(s.{name}) AS {name}" for name in COUNTS)
_JOINED = 'FROM span JOIN selected USING ("case") JOIN state s USING (state)'
_COUNTED_BY_STEPS = f"""
WITH steps AS (
  SELECT series, first AS turn, {_ADDED} {_JOINED} GROUP BY series, first
  UNION ALL SELECT series, until AS turn, {_TAKEN} {_JOINED} WHERE until < ? GROUP BY series, until
), step AS (SELECT series, turn, {", ".join(f"sum({name}) AS {name}" for name in COUNTS)} FROM steps GROUP BY ALL)
SELECT t.series, t.turn, {", ".join(f"coalesce(sum(step.{name}) OVER together, 0)::INTEGER" for name in COUNTS)}
FROM turn t LEFT JOIN step USING (series, turn)
WINDOW together AS (PARTITION BY t.series ORDER BY t.turn)
"""  # noqa: S608 - names of ours
_CHANGED = """
WITH ended AS (SELECT * FROM span {of} WHERE until < ?),
begun AS (SELECT * FROM span {of} JOIN (SELECT series, min(turn) AS origin FROM turn GROUP BY series) USING (series)
  WHERE first > origin)
SELECT coalesce(a.series, b.series) AS series, coalesce(a.until, b.first) AS turn, a.state, b.state,
  a.question IS NOT DISTINCT FROM b.question AS same, count(*)
FROM ended a FULL JOIN begun b ON a.series = b.series AND a."case" = b."case" AND a.until = b.first
GROUP BY ALL
"""


def _changes(history: History, *, selected: bool) -> dict[tuple[int, int], Counter[Kind]]:
    known = states(history)
    found: dict[tuple[int, int], Counter[Kind]] = {}
    of = 'JOIN selected USING ("case")' if selected else ""
    for series, turn, old, new, same, count in history.rows(_CHANGED.format(of=of), [OPEN]):
        kind = kind_of(known.get(old), known.get(new), same_question=same)
        if kind is not None:
            found.setdefault((series, turn), Counter())[kind] += count
    return found


def states(history: History) -> dict[int | None, State]:
    """Return every state by its number."""
    rows = history.rows("SELECT state, outcome, behaviour, reason, level, is_suspended, is_failed FROM state")
    return {number: State(Outcome(outcome), *rest) for number, outcome, *rest in rows}


def _refuse_backend(history: History, backend: str) -> None:
    names = [name for (name,) in history.rows("SELECT DISTINCT backend FROM series ORDER BY backend")]
    if not names:
        raise OpconformError(f"{history.path}: holds no runs yet; `opconform history add DIR` takes one in")
    known = ", ".join(names[:10])
    raise OpconformError(f"{history.path}: has no backend {backend!r}{did_you_mean(backend, names)}; it has {known}")


def changes_of(history: History, turn: Turn) -> Changes:
    """Return what changed between a turn and the one before."""
    known = states(history)
    found = Changes()
    for name, *sides in history.stream(_CHANGES_OF, [turn.series, turn.turn, turn.series, turn.turn]):
        old, new = (
            None if number is None else Row(turn.backend, name, known[number], (str(question), None), detail)
            for number, question, detail in (sides[:3], sides[3:])
        )
        change = change_of(old, new)
        if change is not None:
            found.add(change)
    return found


_CHANGES_OF = """
WITH old AS (SELECT * FROM span WHERE series = ? AND until = ?),
new AS (SELECT * FROM span WHERE series = ? AND first = ?)
SELECT c.name, old.state, old.question, old.detail, new.state, new.question, new.detail
FROM old FULL JOIN new USING ("case") JOIN cases c ON c."case" = coalesce(old."case", new."case") ORDER BY c.name
"""


def stays(history: History, case: str, *, backend: str = "*") -> list[Stay]:
    """Return how a case was judged, by backend and in the order of time. Raises OpconformError if there is none."""
    number = history.one('SELECT "case" FROM cases WHERE name = ?', [case])
    if number is None:
        raise OpconformError(f"{history.path}: has no case {case}; `opconform history show` has the runs")
    by_place = {(turn.series, turn.turn): turn for turn in turns(history, backend=backend)}
    ends = {turn.series: turn.turn for turn in by_place.values()}
    known, found = states(history), []
    asked = 'SELECT series, first, until, state, question, detail FROM span WHERE "case" = ? ORDER BY series, first'
    for series, first, until, state, question, detail in history.rows(asked, [number]):
        if series in ends:
            lasts = until == OPEN
            begin, end = by_place[series, first], by_place[series, ends[series] if lasts else until - 1]
            found.append(Stay(begin.backend, begin.plan, known[state], detail, question, begin, end, lasts))
    return found


def results(history: History, run: int, backends: Sequence[str]) -> Iterator[Row]:
    """Yield all that is remembered of a run's results, sorted by backend and case."""
    known = states(history)
    for backend, case, state, *asked, detail in history.stream(_RESULTS, [run, list(backends)]):
        yield Row(backend, case, known[state], (asked[0], asked[1]), detail)


_RESULTS = """
SELECT s.backend, c.name, sp.state, q.case_digest, q.expectation_digest, sp.detail
FROM turn t JOIN series s USING (series)
JOIN span sp ON sp.series = t.series AND sp.first <= t.turn AND sp.until > t.turn
JOIN cases c USING ("case") JOIN question q USING (question)
WHERE t.run = ? AND list_contains(?, s.backend) ORDER BY s.backend, c.name
"""
