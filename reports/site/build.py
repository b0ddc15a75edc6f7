"""The site of a report: all its pages, including those of silences and of waivers."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ...cases.ids import split_version
from ...cases.results import Outcome
from ...runners.judging.terms import Met, Waiver
from ..progress import tracked
from ..runs import MergedRun
from ..tally import ChosenOptions
from ..text import counted
from .backend_pages import write_backend_pages
from .case_pages import source_of, write_cases
from .gather import Gathered, Knowledge, gather
from .matrix_page import write_matrix
from .operator_pages import write_operator_pages
from .overview import backend_page_name, ranking, write_overview
from .releases import Past, past_of, write_timeline
from .writer import LEGEND, Level, SiteWriter, case_link, cases_link, check_folder, operator_page_name, shown, written

EVERYWHERE: Mapping[str, str] = {
    "accumulator": "the precision in which a sum is accumulated",
    "flush": "whether subnormal numbers are treated as zero",
    "integer-overflow": "what happens if a sum exceeds its integer type although the result fits",
    "overflow": "whether a sum beyond the largest number becomes infinite although the result fits",
    "summation": "whether the mean is a divided sum, or is updated with each element",
    "zero-sign": "whether a zero keeps its sign",
}
"""Silences about how results are computed, which are in no spec file."""


@dataclass(frozen=True)
class SilenceRow:
    """A silence of an operator, with the versions of it in which every backend does the same."""

    silence: str
    when: str | None
    options: Sequence[str]
    operator_versions: Sequence[str]
    taken: Mapping[str, ChosenOptions]

    @property
    def shows(self) -> bool:
        """Return whether some backend shows an option."""
        return any(taken.established or not taken.consistent for taken in self.taken.values())

    @property
    def differs(self) -> bool:
        """Return whether backends take different options, or one of them several."""
        option_sets = {tuple(e.option for e in taken.established) for taken in self.taken.values() if taken.established}
        return len(option_sets) > 1 or not all(taken.consistent for taken in self.taken.values())

    @property
    def text(self) -> str:
        """Return the text that a search covers."""
        options = [e.option for taken in self.taken.values() for e in taken.established]
        return " ".join([self.silence, self.when or "", *self.operator_versions, *options, *self.taken])


def write_silences(site: SiteWriter, gathered: Gathered, known: Knowledge) -> None:
    """Write `silences.html`."""
    chosen = gathered.chosen()
    operators: dict[str, list[str]] = {}
    for operator_version in gathered.by_operator_version():
        if operator_version in chosen:
            operators.setdefault(split_version(operator_version)[0], []).append(operator_version)
    made = {operator: _rows(known, {v: chosen[v] for v in versions}) for operator, versions in operators.items()}
    shown_by = {taken.backend for by_silence in chosen.values() for of in by_silence.values() for taken in of.values()}
    columns = [column.name for column in gathered.columns if column.name in shown_by]
    # what differs first, what no case shows last
    order = sorted(made, key=lambda o: (not any(r.differs for r in made[o]), not any(r.shows for r in made[o])))
    rows = {operator: made[operator] for operator in order}
    site.page("silences.html", "silences.html.j2", operators=rows, columns=columns)


def _rows(known: Knowledge, chosen: Mapping[str, Mapping[str, Mapping[str, ChosenOptions]]]) -> list[SilenceRow]:
    """Return rows; versions in which every backend does the same are one row."""
    alike: dict[tuple[str, tuple[object, ...]], list[tuple[str, Mapping[str, ChosenOptions]]]] = {}
    for operator_version, by_silence in chosen.items():
        for silence, by_backend in by_silence.items():
            options = tuple(
                (backend, *sorted(evidence.option for evidence in taken.established), taken.consistent)
                for backend, taken in sorted(by_backend.items())
            )
            alike.setdefault((silence, options), []).append((operator_version, by_backend))
    rows = []
    for (silence, _), versions in alike.items():
        names = [operator_version for operator_version, _ in versions]
        side = known.side(names[-1])
        own = side.version.silences.get(silence) if side else None
        when = own.when if own else EVERYWHERE.get(silence)
        rows.append(SilenceRow(silence, when, own.options if own else (), names, versions[0][1]))
    order = list(dict.fromkeys(row.silence for row in rows))
    return sorted(rows, key=lambda row: (not row.differs, not row.shows, order.index(row.silence)))


SHOWN = 5


@dataclass(frozen=True)
class WaiverRow:
    """A waiver and its effect in a run.

    `age` is its age on the day of the run, if its file says since when it exists; `left` how long it is still valid
    from that day on, `level` and `state` whether it is. `cases` are the first cases that it covers, each with its
    backend; `covered` is their number.
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
        _row(gathered, merged, met)
        for merged, run in zip(gathered.wholes, gathered.waivers, strict=True)
        for met in run.met
    ]
    site.page("waivers.html", "waivers.html.j2", rows=rows, problems=gathered.problems)


def _row(gathered: Gathered, merged: MergedRun, met: Met) -> WaiverRow:
    day = merged.parts[0].started.date()
    covered = list(_covered(gathered, merged, met.waiver))
    level, state = _state(met, (met.waiver.expires - day).days)
    outcomes = ", ".join(f"{met.outcomes[o]:,} {o}" for o in Outcome if met.outcomes.get(o))
    days = met.waiver.age(day)
    age = None if days is None else counted(days, "day")
    left = _left(met.waiver.expires, day)
    return WaiverRow(
        met.waiver, ", ".join(merged.names.values()), level, state, age, left, outcomes, len(covered), covered[:SHOWN]
    )


def _covered(gathered: Gathered, merged: MergedRun, waiver: Waiver) -> Iterator[tuple[str, str]]:
    """Yield the waived cases that a waiver matches, each with its backend."""
    for name in merged.versions:
        if fnmatchcase(name, waiver.backend):
            for case, location in zip(gathered.cases, gathered.column(name).places, strict=True):
                if location is not None and location.outcome is Outcome.WAIVED and waiver.case.matches(case):
                    yield case, name


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


ASSETS = ("site.css", "site.js")


def write_site(
    wholes: Sequence[MergedRun], out: Path, history: Path | None = None, before: Sequence[Path] = ()
) -> Gathered:
    """Write the site of these runs to a folder, and return its data.

    `history` and `before`, folders of earlier runs, provide changes, and other releases of the backends. Raises
    OpconformError if the folder is neither new nor empty nor a site, or if what is read is damaged.
    """
    check_folder(out)  # before reading the results, which may take a minute
    gathered = gather(wholes)
    past = past_of(gathered, before, history)
    with written(out, _given(gathered, history, past)) as site:
        site.asset(*ASSETS)
        _pages(site, gathered, past)
        if history is not None:
            from .trend import write_trend  # noqa: PLC0415 - needs an extra

            write_trend(site, gathered, history)
    return gathered


def _pages(site: SiteWriter, gathered: Gathered, past: Past) -> None:
    known = Knowledge(source_of(gathered))
    ranked = ranking(gathered, known, past)
    steps: Sequence[Callable[[], None]] = (
        lambda: write_overview(site, gathered, known, ranked, past),
        lambda: write_backend_pages(site, gathered, known, ranked),
        lambda: write_matrix(site, gathered, known),
        lambda: write_timeline(site, gathered, past),
        lambda: write_operator_pages(site, gathered, known, past),
        lambda: write_silences(site, gathered, known),
        lambda: write_waivers(site, gathered),
        lambda: write_cases(site, gathered),
        lambda: _write_search(site, gathered),
    )
    with tracked(steps, "writing pages", len(steps)) as progress:
        for step in progress:
            step()


def _write_search(site: SiteWriter, gathered: Gathered) -> None:
    """Write the index of the search on every page: backends and operator versions, each with its page."""
    backends = [
        [f"{shown(gathered.names[c.name], 120)} {shown(c.version, 60)}", backend_page_name(c.name)]
        for c in gathered.columns
    ]
    operators = [[shown(name, 200), operator_page_name(name)] for name in gathered.by_operator_version()]
    site.script("data/search.js", "opconform.takeSearch", backends, operators)


def _given(gathered: Gathered, history: Path | None, past: Past) -> dict[str, Any]:
    """Return the variables of every template: links, navigation, and what the site covers."""
    return {
        "navigation": _navigation(history, past),
        "legend": LEGEND,
        "backends": [{"name": c.name, "version": c.version} for c in gathered.columns],
        "made_by": f"opconform {importlib.metadata.version('opconform')}",
        "shown": shown,
        "case_link": case_link,
        "cases_link": cases_link,
        "operator_page_name": operator_page_name,
        "backend_page_name": backend_page_name,
        "called": lambda backend: gathered.names.get(backend, backend),
    }


def _navigation(history: Path | None, past: Past) -> list[tuple[str, str]]:
    links = [("index.html", "Overview"), ("matrix.html", "Matrix")]
    links += [("timeline.html", "Timeline")] if past.releases else []
    links += [("cases.html", "Cases"), ("silences.html", "Silences"), ("waivers.html", "Waivers")]
    return [*links, ("trend.html", "Trend")] if history is not None else links
