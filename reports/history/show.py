"""Queries on a history and their output: runs with figures and changes, a case over time, a run's results."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...cases.errors import OpconformError, did_you_mean
from ...cases.ids import Glob
from ..tally import Figures
from ..text import NOTHING, WIDE, counted, percent, printable
from .changes import CaseRecord, ChangeKind, Changes, State, change_of, figures_of, kind_of
from .database import COUNTS, DEFAULT, OPEN, History, plan_words, reading, states


@dataclass(frozen=True)
class Turn:
    """One backend's answers in one run.

    `plan` and `asked` describe the plan, `started` is a time in UTC, `cases` counts its results. `changes` counts the
    changes since the previous turn, which is `before`; None for the first.
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
    asked: Mapping[str, Any]
    cases: int
    figures: Figures
    changes: Mapping[ChangeKind, int]
    before: Turn | None = None

    @property
    def other_version(self) -> bool:
        """Return whether the backend's version differs from the previous turn's."""
        return self.before is not None and self.before.version != self.version


@dataclass(frozen=True)
class Stay:
    """A period in which a case had one verdict: from the run `first` to the run `last`; `lasts`: it has not ended."""

    state: State
    detail: str | None
    question: int
    first: Turn
    last: Turn
    lasts: bool


def turns(history: History, *, backend: str = "*", globs: Sequence[str] = (), last: int | None = None) -> list[Turn]:
    """Return the turns of all series, each in the order of its runs, or only the last ones of each.

    Figures and changes cover only these cases. Raises OpconformError if no backend or no case matches.
    """
    selected = _select(history, globs)
    figures = _figures(history, selected=selected)
    changes = _changes(history, selected=selected)
    kept: list[Turn] = []
    for row in history.rows(_TURNS):
        series, number, name = row[4:7]
        if fnmatchcase(name, backend):
            before = kept[-1] if kept and kept[-1].series == series else None
            kinds: Mapping[ChangeKind, int] = changes.get((series, number), {}) if before else {}
            figured = figures.get((series, number), (0, Figures()))
            kept.append(Turn(*(*row[:9], *map(json.loads, row[9:]), *figured, kinds, before)))
    if not kept:
        _refuse_backend(history, backend)
    return kept if last is None else [turn for series in by_series(kept) for turn in series[-last:]]


_TURNS = """
SELECT r.run, r.label, r.suite, r.partial, t.series, t.turn, s.backend, t.version, t.started, s.plan, t.told
FROM turn t JOIN run r USING (run) JOIN series s USING (series) ORDER BY s.backend, t.series, t.turn
"""


def _select(history: History, globs: Sequence[str]) -> bool:
    """Make the table `selected` of cases, and return whether cases are selected.

    Raises OpconformError if it is empty.
    """
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
    """Return the number of cases and the figures of each turn; without a selection, the stored ones."""
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


def _changes(history: History, *, selected: bool) -> dict[tuple[int, int], Counter[ChangeKind]]:
    known = states(history)
    counts_of: dict[tuple[int, int], Counter[ChangeKind]] = {}
    of = 'JOIN selected USING ("case")' if selected else ""
    for series, turn, old, new, same, count in history.rows(_CHANGED.format(of=of), [OPEN]):
        kind = kind_of(known.get(old), known.get(new), same_question=same)
        if kind is not None:
            counts_of.setdefault((series, turn), Counter())[kind] += count
    return counts_of


def _refuse_backend(history: History, backend: str) -> None:
    names = [name for (name,) in history.rows("SELECT DISTINCT backend FROM series ORDER BY backend")]
    if not names:
        raise OpconformError(f"{history.path}: holds no runs yet; `opconform history add DIR` takes one in")
    known = ", ".join(names[:10])
    raise OpconformError(f"{history.path}: has no backend {backend!r}{did_you_mean(backend, names)}; it has {known}")


def changes_of(history: History, turn: Turn) -> Changes:
    """Return the changes between a turn and the previous one."""
    known = states(history)
    changes = Changes()
    for name, *sides in history.stream(_CHANGES_OF, [turn.series, turn.turn, turn.series, turn.turn]):
        old, new = (
            None if number is None else CaseRecord(turn.backend, name, known[number], (str(question), None), detail)
            for number, question, detail in (sides[:3], sides[3:])
        )
        change = change_of(old, new)
        if change is not None:
            changes.add(change)
    return changes


_CHANGES_OF = """
WITH old AS (SELECT * FROM span WHERE series = ? AND until = ?),
new AS (SELECT * FROM span WHERE series = ? AND first = ?)
SELECT c.name, old.state, old.question, old.detail, new.state, new.question, new.detail
FROM old FULL JOIN new USING ("case") JOIN cases c ON c."case" = coalesce(old."case", new."case") ORDER BY c.name
"""


def figures_at(history: History, turn: Turn) -> dict[str, Figures]:
    """Return the figures of each operator version at a turn."""
    known = states(history)
    counts: dict[str, Counter[State]] = {}
    for operator_version, state, number in history.rows(_AT_TURN, [turn.series, turn.turn, turn.turn]):
        counts.setdefault(operator_version, Counter())[known[state]] += number
    return {operator_version: figures_of(counts_by_type) for operator_version, counts_by_type in counts.items()}


_AT_TURN = """
SELECT split_part(c.name, '/', 1) || '/' || split_part(c.name, '/', 2) AS operator_version, s.state, count(*)
FROM span s JOIN cases c USING ("case") WHERE s.series = ? AND s.first <= ? AND s.until > ? GROUP BY ALL
ORDER BY operator_version, s.state
"""


def stays(history: History, case: str, *, backend: str = "*") -> list[Stay]:
    """Return the verdicts on a case, by backend and in order of time. Raises OpconformError if there are none."""
    number = history.value('SELECT "case" FROM cases WHERE name = ?', [case])
    if number is None:
        raise OpconformError(f"{history.path}: has no case {case}; `opconform history show` lists the runs")
    by_place = {(turn.series, turn.turn): turn for turn in turns(history, backend=backend)}
    ends = {turn.series: turn.turn for turn in by_place.values()}
    known, found_stays = states(history), []
    asked = 'SELECT series, first, until, state, question, detail FROM span WHERE "case" = ? ORDER BY series, first'
    for series, first, until, state, question, detail in history.rows(asked, [number]):
        if series in ends:
            lasts = until == OPEN
            begin, end = by_place[series, first], by_place[series, ends[series] if lasts else until - 1]
            found_stays.append(Stay(known[state], detail, question, begin, end, lasts))
    return found_stays


def results(history: History, run: int, backends: Sequence[str]) -> Iterator[CaseRecord]:
    """Yield the stored data of a run's results, sorted by backend and case."""
    known = states(history)
    for backend, case, state, *asked, detail in history.stream(_RESULTS, [run, list(backends)]):
        yield CaseRecord(backend, case, known[state], (asked[0], asked[1]), detail)


_RESULTS = """
SELECT s.backend, c.name, sp.state, q.case_digest, q.expectation_digest, sp.detail
FROM turn t JOIN series s USING (series)
JOIN span sp ON sp.series = t.series AND sp.first <= t.turn AND sp.until > t.turn
JOIN cases c USING ("case") JOIN question q USING (question)
WHERE t.run = ? AND list_contains(?, s.backend) ORDER BY s.backend, c.name
"""


_LEFT = frozenset({"date", "version", "label"})


def show(
    db: Path = DEFAULT,
    *,
    backend: str = "*",
    globs: Sequence[str] = (),
    last: int | None = None,
    as_json: bool = False,
    console: Console | None = None,
) -> None:
    """Print the runs of a history, by backend and in order of time. Raises OpconformError if there is none."""
    with reading(db) as history:
        shown = turns(history, backend=backend, globs=globs, last=last)
    console = console or Console()
    if as_json:
        console.print(Text(json.dumps([turn_json(turn) for turn in shown], indent=2)), soft_wrap=True)
        return
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    for number, series in enumerate(by_series(shown)):
        if number:
            console.print()
        title = f"{_series_words(series[-1])}, suite {printable(series[-1].suite)}"
        console.print(Text(title, "bold"), soft_wrap=True)
        console.print(_runs(series))


def show_case(
    case: str, db: Path = DEFAULT, *, backend: str = "*", as_json: bool = False, console: Console | None = None
) -> None:
    """Print how a case was judged over time. Raises OpconformError if the history does not have it."""
    with reading(db) as history:
        shown = stays(history, case, backend=backend)
    console = console or Console()
    if as_json:
        console.print(Text(json.dumps([_stay_json(stay) for stay in shown], indent=2)), soft_wrap=True)
        return
    console.print(Text(printable(case), "bold"), soft_wrap=True)
    before: Stay | None = None
    for stay in shown:
        if before is None or before.first.series != stay.first.series:
            console.print(Text(f"  {_series_words(stay.first)}"), soft_wrap=True)
            before = None
        for line in _stay_lines(stay, before):
            console.print(Text(f"    {line}"), soft_wrap=True)
        before = stay


def turn_json(turn: Turn) -> dict[str, Any]:
    """Return a turn for JSON."""
    figures = {name: value for name, value in turn.figures.to_dict().items() if name not in ("cases", "outcomes")}
    return {
        "run": turn.run,
        "label": turn.label,
        "started": turn.started,
        "backend": turn.backend,
        "version": turn.version,
        "suite": turn.suite,
        "partial": turn.partial,
        "plan": dict(turn.plan),
        "cases": turn.cases,
        **figures,
        "changes": None if turn.before is None else {str(kind): turn.changes.get(kind, 0) for kind in ChangeKind},
    }


def changes_words(turn: Turn) -> str:
    """Return the changes since the previous run, in a few words."""
    if turn.before is None:
        return "first run"
    suite = [f"suite {printable(turn.suite)}"] if turn.before.suite != turn.suite else []
    words_of = [counted(turn.changes[kind], *words) for kind, words in _CHANGES.items() if turn.changes.get(kind)]
    return ", ".join([*suite, *words_of]) or NOTHING


_CHANGES: Mapping[ChangeKind, tuple[str, str]] = {
    ChangeKind.REGRESSION: ("regression", "regressions"),
    ChangeKind.FIX: ("fix", "fixes"),
    ChangeKind.OTHER_FAILURE: ("other failure", "other failures"),
    ChangeKind.SUPPORT_LOST: ("support lost", "support lost"),
    ChangeKind.SUPPORT_GAINED: ("support gained", "support gained"),
    ChangeKind.SILENCE: ("silence", "silences"),
    ChangeKind.EXPECTATION: ("expectation changed", "expectations changed"),
    ChangeKind.NEW: ("new", "new"),
    ChangeKind.GONE: ("gone", "gone"),
    ChangeKind.OTHER: ("other", "other"),
}


def by_series(all_turns: Sequence[Turn]) -> list[list[Turn]]:
    """Return turns by their series."""
    return [list(alike) for _, alike in itertools.groupby(all_turns, key=lambda turn: turn.series)]


def _series_words(turn: Turn) -> str:
    words = plan_words(turn.plan)
    return printable(turn.backend if words == "everything" else f"{turn.backend}, {words}")


def _runs(series: Sequence[Turn]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    labels = ["label"] if any(turn.label for turn in series) else []
    for column in ("run", "date", "version", *labels, "cases", "correct", "support", "refusal", "failures"):
        left = column in _LEFT
        table.add_column(column, justify="left" if left else "right", no_wrap=not left, overflow="fold")
    table.add_column("since the run before", overflow="fold")
    for turn in series:
        table.add_row(*map(Text, _cells(turn, bool(labels))))
    return table


def _cells(turn: Turn, labels: bool) -> list[str]:
    figures = turn.figures
    shares = [percent(share) for share in (figures.correctness, figures.support, figures.refusal)]
    version = printable(turn.version) + (" *" if turn.other_version else "")
    cases = f"{turn.cases:,}" + (" (part)" if turn.partial else "")
    columns = [str(turn.run), _moment(turn.started), version]
    columns += [printable(turn.label or "")] if labels else []
    return [*columns, cases, *shares, f"{figures.failed:,}", changes_words(turn)]


def _moment(started: str) -> str:
    return started[:16].replace("T", " ")


def _stay_lines(stay: Stay, before: Stay | None) -> Iterator[str]:
    until = "until now" if stay.lasts else f"to run {stay.last.run} ({_moment(stay.last.started)})"
    level = " as declared" if stay.state.level == "declared" else ""
    asked = ", another expectation" if before is not None and before.question != stay.question else ""
    yield (
        f"{stay.state.outcome}{level} from run {stay.first.run} ({_moment(stay.first.started)}, "
        f"version {printable(stay.first.version)}) {until}{asked}"
    )
    taken = [f"{name}: {' or '.join(options)}" for name, options in stay.state.silences.items() if options]
    if taken:
        yield f"  {printable('; '.join(taken))}"
    if stay.detail:
        yield f"  {printable(stay.detail.splitlines()[0])}"


def _stay_json(stay: Stay) -> dict[str, Any]:
    return {
        "backend": stay.first.backend,
        "plan": dict(stay.first.plan),
        **stay.state.to_dict(),
        "detail": stay.detail,
        "first": _run_json(stay.first),
        "last": _run_json(stay.last),
        "lasts": stay.lasts,
    }


def _run_json(turn: Turn) -> dict[str, Any]:
    return {"run": turn.run, "started": turn.started, "version": turn.version}
