"""Earlier runs: the releases of each backend with their figures, and the changes since the previous run.

Earlier runs come from results folders, from a history, or are several releases in the site itself.
"""

from __future__ import annotations

import functools
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from ...cases.ids import operator_version_of, split_version
from ..history.changes import CaseRecord, ChangeGroup, ChangeKind, State, figures_of
from ..history.compare import Side, compared, heading, is_bad, side_of
from ..history.database import plan_of, reading
from ..history.show import by_series, changes_of, figures_at, turns
from ..runs import folders_in, runs_of, started
from ..tally import Figures, natural
from ..text import counted
from .gather import Gathered
from .writer import Level, Mark, SiteWriter, cases_link, mark_of, shown

GROUPS = 12
"""Number of groups of changes that a page shows."""


@dataclass(frozen=True)
class Changed:
    """Changes of one kind: the first case, `linked` if it is in the site, and its old and new outcome."""

    kind: str
    level: Level
    words: str
    case: str
    linked: bool
    detail: str
    count: int
    versions: str


def changed_of(group: ChangeGroup, cases: Collection[str]) -> Changed:
    """Return a group of changes as a page shows it; `cases` are the site's."""
    first = group.first
    versions = ", ".join(filter(None, (split_version(name)[1] for name in group.operator_versions)))
    detail = " ".join((first.record.detail or "").split()) if first.kind is not ChangeKind.SILENCE else ""
    linked = first.record.case in cases
    return Changed(heading(group), _level(group), first.words, first.record.case, linked, detail, group.count, versions)


def _level(group: ChangeGroup) -> Level:
    kind = group.first.kind
    if is_bad(group.first):
        return "all" if kind is ChangeKind.REGRESSION else "some"
    return "full" if kind in (ChangeKind.FIX, ChangeKind.SUPPORT_GAINED) else "none"


_CHANGES: Mapping[ChangeKind, tuple[str, str]] = {
    ChangeKind.REGRESSION: ("regression", "regressions"),
    ChangeKind.FIX: ("fix", "fixes"),
    ChangeKind.OTHER_FAILURE: ("failure of another kind", "failures of another kind"),
    ChangeKind.SUPPORT_LOST: ("no longer supported", "no longer supported"),
    ChangeKind.SUPPORT_GAINED: ("newly supported", "newly supported"),
    ChangeKind.NEW: ("new case", "new cases"),
    ChangeKind.GONE: ("case gone", "cases gone"),
}


@dataclass(frozen=True)
class Since:
    """A backend's changes since an earlier run: their number, and the first groups of `kinds`, worst first."""

    version: str
    day: str
    counts: Mapping[ChangeKind, int]
    changed: Sequence[Changed]
    kinds: int

    @property
    def words(self) -> str:
        """Return the number of changes: `3 regressions, 2 fixes`; those without effect on a verdict are one number."""
        counts = [counted(n, *words) for kind, words in _CHANGES.items() if (n := self.counts.get(kind, 0))]
        rest = sum(number for kind, number in self.counts.items() if kind not in _CHANGES)
        return ", ".join([*counts, *([counted(rest, "other change")] if rest else [])]) or "nothing changed"


@dataclass(frozen=True)
class Release:
    """A run of one version of a backend, with figures by operator version; `here`: its cases are in the site."""

    backend: str
    version: str
    started: str
    figures: Mapping[str, Figures]
    here: bool = False


@dataclass(frozen=True)
class Past:
    """The releases of each backend that has several, oldest first, and the changes since the previous run."""

    releases: Mapping[str, Sequence[Release]] = field(default_factory=dict)
    since: Mapping[str, Since] = field(default_factory=dict)


def past_of(gathered: Gathered, before: Sequence[Path] = (), history: Path | None = None) -> Past:
    """Return what came before the runs of a site. Raises OpconformError if it cannot be read.

    `before` are results folders of earlier runs, or folders of such; changes are relative to the latest release among
    them. `history` adds the last run of each version, of series with the same plan as the site's runs.
    """
    past = _Releases(gathered)
    if history is not None:
        past.take_history(history)
    past.take_runs([side_of(str(path), runs_of(folders_in(path), partial=False)) for path in before])
    return Past(past.by_product(), past.since)


@dataclass
class _Releases:
    """The releases and changes so far."""

    gathered: Gathered
    releases: list[Release] = field(default_factory=list)
    since: dict[str, Since] = field(default_factory=dict)

    @functools.cached_property
    def cases(self) -> frozenset[str]:
        return frozenset(self.gathered.cases)

    @functools.cached_property
    def versions(self) -> dict[str, str]:
        return {name: version for merged in self.gathered.wholes for name, version in merged.versions.items()}

    def take_history(self, history: Path) -> None:
        wholes = self.gathered.wholes
        plans = [plan_of(merged.parts[0].run_json) for merged in wholes]
        own = {(name, started(merged)) for merged in wholes for name in merged.versions}
        with reading(history) as asked:
            for series in by_series(turns(asked)):
                if series[-1].plan not in plans:
                    continue
                last = {turn.version: turn for turn in series}
                if last.keys() - {self.versions.get(series[-1].backend)}:  # otherwise the site's own figures are enough
                    self.releases += [
                        Release(t.backend, t.version, t.started, figures_at(asked, t)) for t in last.values()
                    ]
                for turn in series:
                    if turn.before is not None and (turn.backend, turn.started) in own:
                        groups = changes_of(asked, turn).worst_first()
                        self._take_changes(turn.backend, turn.before.version, turn.before.started, turn.changes, groups)

    def take_runs(self, sides: Sequence[Side]) -> None:
        latest = {name: _latest(name, sides) for name in self.versions}
        site = side_of("the site", self.gathered.wholes)
        products = set(map(product_of, self.versions))
        for side in sides:
            counts: dict[tuple[str, str], Counter[State]] = {}
            counting = replace(side, records=functools.partial(_counted, side, counts))
            own = {name: version for name, version in self.versions.items() if latest[name] is side}
            others = [name for name in side.versions if name not in own and product_of(name) in products]
            if others:
                deque(counting.records(others), maxlen=0)  # also counts them
            if own:
                changes = compared(counting, replace(site, versions=own)).changes
                groups = changes.worst_first()
                for name in own:
                    of = {kind: number for (backend, kind), number in changes.counts.items() if backend == name}
                    mine = [group for group in groups if group.first.record.backend == name]
                    self._take_changes(name, side.versions[name], side.started, of, mine)
            for backend, version in side.versions.items():
                figures = {o: figures_of(states) for (name, o), states in counts.items() if name == backend}
                self.releases.append(Release(backend, version, side.started, figures))

    def _take_changes(
        self, backend: str, version: str, day: str, counts: Mapping[ChangeKind, int], groups: Sequence[ChangeGroup]
    ) -> None:
        telling = sorted(groups, key=lambda group: group.first.kind not in _CHANGES)
        changed = [changed_of(group, self.cases) for group in telling[:GROUPS]]
        self.since[backend] = Since(version, day[:10], counts, changed, len(groups))

    def by_product(self) -> dict[str, list[Release]]:
        """Return the releases of the site's backends that have several, each version once."""
        own = [
            (name, version, started(merged))
            for merged in self.gathered.wholes
            for name, version in merged.versions.items()
        ]
        by_version: dict[str, dict[str, Release]] = {product_of(name): {} for name, _, _ in own}
        for release in sorted(self.releases, key=lambda release: release.started):
            by_version.get(product_of(release.backend), {})[release.version] = release
        for name, version, day in own:
            figures = self.gathered.tables.tally.operator_versions(name)
            by_version[product_of(name)][version] = Release(name, version, day, figures, here=True)
        ordered = {
            p: sorted(by.values(), key=lambda r: (natural(r.version), r.started)) for p, by in by_version.items()
        }
        return {product: releases for product, releases in ordered.items() if len(releases) > 1}


def product_of(backend: str) -> str:
    """Return the product of a backend: `onnxruntime` of `onnxruntime==1.15.0`, otherwise its name."""
    return backend.partition("==")[0]


def _latest(backend: str, sides: Sequence[Side]) -> Side | None:
    """Return the run of a backend's latest release."""
    having = [side for side in sides if backend in side.versions]
    return max(having, key=lambda side: (natural(side.versions[backend]), side.started), default=None)


def _counted(
    side: Side, counts: dict[tuple[str, str], Counter[State]], backends: Sequence[str]
) -> Iterator[CaseRecord]:
    """Yield a side's records, and count each by backend and operator version."""
    for record in side.records(backends):
        counts.setdefault((record.backend, operator_version_of(record.case)), Counter())[record.state] += 1
        yield record


Step: TypeAlias = Literal["better", "worse", ""]


@dataclass(frozen=True)
class Cell:
    """An operator version in a release: its mark, its link, and how it compares with the previous release."""

    mark: Mark
    link: str | None
    step: Step
    title: str


@dataclass(frozen=True)
class TimelineRow:
    """An operator version: by product a cell per release, None if it was not run; `changed`: releases differ."""

    operator_version: str
    cells: Sequence[Sequence[Cell | None]]
    changed: bool


def timeline(past: Past, operator_versions: Sequence[str]) -> list[TimelineRow]:
    """Return a row for each operator version, with the releases of all backends side by side."""
    rows = []
    for name in operator_versions:
        cells = [list(_cells(name, releases)) for releases in past.releases.values()]
        rows.append(TimelineRow(name, cells, any(cell is not None and cell.step for own in cells for cell in own)))
    return rows


def _cells(operator_version: str, releases: Sequence[Release]) -> Iterator[Cell | None]:
    last: tuple[Release, Figures] | None = None
    for release in releases:
        figures = release.figures.get(operator_version)
        if figures is None:
            yield None
            continue
        mark = mark_of(figures)
        step: Step = "" if last is None else _step(last[1], figures)
        title = f"{shown(release.backend, 120)} {shown(release.version, 60)}: {mark.title}"
        if last is not None and step:
            title += f"; {step} than {shown(last[0].version, 60)}"
        link = cases_link(operator=operator_version, backend=release.backend, outcome=mark.outcome)
        yield Cell(mark, link if release.here else None, step, title)
        last = release, figures


def _step(old: Figures, new: Figures) -> Step:
    """Return whether a release is better: in its share of right answers, otherwise in its support."""
    before, after = ((f.correctness if f.correctness is not None else -1, f.judged) for f in (old, new))
    return "" if before == after else "better" if after > before else "worse"


def write_timeline(site: SiteWriter, gathered: Gathered, past: Past) -> None:
    """Write `timeline.html`, if a backend has several releases."""
    if not past.releases:
        return
    own = list(gathered.by_operator_version())
    others = sorted({o for releases in past.releases.values() for r in releases for o in r.figures} - set(own))
    operators: dict[str, list[TimelineRow]] = {}
    for row in timeline(past, [*own, *others]):
        operators.setdefault(split_version(row.operator_version)[0], []).append(row)
    site.page(
        "timeline.html",
        "timeline.html.j2",
        operators=operators,
        own=frozenset(own),
        releases=past.releases,
        rows=len(own) + len(others),
        changed=sum(row.changed for rows in operators.values() for row in rows),
    )
    site.asset("timeline.js")
