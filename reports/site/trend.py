"""The page of trends: figures by backend over time from a history, and changes between the last two runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..history.database import History, plan_words, reading
from ..history.show import Turn, by_series, changes_of, changes_words, turns
from .gather import Gathered
from .releases import GROUPS, Changed, changed_of
from .writer import SiteWriter, shown

_ASSETS = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "trend.js", "trend.css")


@dataclass(frozen=True)
class Trend:
    """A series of runs of one backend, latest first, and the latest changes."""

    name: str
    plan: str
    turns: Sequence[Turn]
    changed: Sequence[Changed]
    kinds: int

    @property
    def latest(self) -> Turn:
        """Return the last run."""
        return self.turns[0]


def write_trend(site: SiteWriter, gathered: Gathered, history: Path) -> None:
    """Write `trend.html`. Raises OpconformError if the history cannot be read."""
    with reading(history) as asked:
        trends = list(_trends(asked, frozenset(gathered.cases)))
    site.asset(*_ASSETS)
    site.script("data/trend.js", "opconform.takeTrend", [_points(trend) for trend in trends])
    site.page("trend.html", "trend.html.j2", trends=trends, changes_words=changes_words)


def _trends(history: History, cases: Collection[str]) -> Iterator[Trend]:
    for series in by_series(turns(history)):
        last = series[-1]
        groups = changes_of(history, last).worst_first() if last.before is not None else []
        changed = [changed_of(group, cases) for group in groups[:GROUPS]]
        plan = plan_words(last.plan)
        yield Trend(last.backend, "" if plan == "everything" else plan, series[::-1], changed, len(groups))


def _points(trend: Trend) -> list[dict[str, Any]]:
    """Return what the charts show of a series, first run first."""
    return [
        {
            "run": turn.run,
            "started": turn.started,
            "version": shown(turn.version, 60),
            "other": turn.other_version,
            "suite": shown(turn.suite, 40),
            "correctness": _percent(turn.figures.correctness),
            "support": _percent(turn.figures.support),
            "failures": turn.figures.failed,
        }
        for turn in trend.turns[::-1]
    ]


def _percent(share: Fraction | None) -> float | None:
    return None if share is None else round(float(share) * 100, 4)
