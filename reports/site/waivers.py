"""Known failures that a run was told to waive: what they cover, and how long they still hold."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ...cases.results import Outcome
from ...runners.waivers import Met, Waiver
from ..runs import Whole
from ..text import counted
from .gather import OUTCOMES, Column, Gathered
from .marks import Level
from .writer import SiteWriter

SHOWN = 5
_WAIVED = OUTCOMES.index(Outcome.WAIVED)


@dataclass(frozen=True)
class WaiverRow:
    """A waiver as a run met it.

    `age` says how long it had been there on the day of the run, where its file tells since when; `left` how long it
    holds from that day on, `level` and `state` whether it does. `cases` are the first
    that it covers, each with its backend; `covered` says how many there are.
    """

    waiver: Waiver
    backends: str
    level: Level
    state: str
    age: str | None
    left: str
    outcomes: str
    covered: int
    cases: Sequence[tuple[str, str]]


def write_waivers(site: SiteWriter, gathered: Gathered) -> None:
    """Write `waivers.html`."""
    rows = [
        _row(gathered, whole, met)
        for whole, run in zip(gathered.wholes, gathered.waivers, strict=True)
        for met in run.met
    ]
    site.page("waivers.html", "waivers.html.j2", rows=rows, problems=gathered.problems)


def _row(gathered: Gathered, whole: Whole, met: Met) -> WaiverRow:
    day = whole.parts[0].begun.started.date()
    covered = list(_covered(gathered, whole, met.waiver))
    level, state = _state(met, (met.waiver.expires - day).days)
    outcomes = ", ".join(f"{met.outcomes[o]:,} {o}" for o in Outcome if met.outcomes.get(o))
    days = met.waiver.age(day)
    age = None if days is None else counted(days, "day")
    left = _left(met.waiver.expires, day)
    return WaiverRow(
        met.waiver, ", ".join(whole.versions), level, state, age, left, outcomes, len(covered), covered[:SHOWN]
    )


def _covered(gathered: Gathered, whole: Whole, waiver: Waiver) -> Iterator[tuple[str, str]]:
    """Yield the waived cases that a waiver names, each with its backend."""
    for name in whole.versions:
        if fnmatchcase(name, waiver.backend):
            column = gathered.column(name)
            yield from ((case, name) for case in _waived(gathered, column) if waiver.case.matches(case))


def _waived(gathered: Gathered, column: Column) -> Iterator[str]:
    return (gathered.cases[case] for case, outcome in enumerate(column.outcomes) if outcome == _WAIVED)


def _state(met: Met, days: int) -> tuple[Level, str]:
    if met.expired:
        return "all", "expired"
    if not met.described:
        return "some", "waives nothing"
    return ("few", "expires soon") if days <= 30 else ("full", "holds")


def _left(expires: dt.date, day: dt.date) -> str:
    days = (expires - day).days
    if days < 0:
        return f"{counted(-days, 'day')} before the run"
    return f"{counted(days, 'day')} after the run" if days < 3650 else "in more than ten years"
