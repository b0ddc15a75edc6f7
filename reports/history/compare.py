"""Changes between two runs, case by case: for a terminal, as JSON, and as a page for a nightly job."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...cases.errors import OpconformError
from ...cases.ids import split_version
from ..progress import tracked
from ..runs import MergedRun, folders_in, read_results, runs_of, started
from ..runs import compared as asked_apart
from ..tally import NON_CONFORMANT, Figures
from ..text import (
    WIDE,
    counted,
    first_line,
    markdown_code,
    markdown_reproduction,
    markdown_text,
    percent,
    printable,
    reproduce_line,
)
from .changes import CaseRecord, Change, ChangeGroup, ChangeKind, Changes, State, change_of, figures_of, record_of
from .database import History, asked_of, reading
from .show import results as kept_results
from .show import turns

_OF_HISTORY = re.compile(r"(.+):(\d{1,9}|last(?:-\d{1,9})?)")
_IN_TERMINAL, _IN_PAGE = 12, 15  # number of groups of changes that are shown
_DETAIL_LINES = 3
_BAD = frozenset({ChangeKind.REGRESSION, ChangeKind.OTHER_FAILURE})

Records: TypeAlias = Callable[[Sequence[str]], Iterator[CaseRecord]]


@dataclass(frozen=True)
class Side:
    """A run: its name on the command line, its start (UTC), its backends with versions, its plan, and its results.

    `records` yields the records of some backends, sorted by backend and case; once, while the side is open.
    """

    name: str
    started: str
    versions: Mapping[str, str]
    asked: Mapping[str, Any]
    records: Records


@dataclass
class RunComparison:
    """The changes; `asked_otherwise` counts the cases on both sides whose inputs or expectation differ."""

    old: Side
    new: Side
    backends: tuple[str, ...]
    changes: Changes = field(default_factory=Changes)
    asked_otherwise: int = 0
    _states: tuple[dict[str, Counter[State]], dict[str, Counter[State]]] = field(default_factory=lambda: ({}, {}))

    def add(self, old: CaseRecord | None, new: CaseRecord | None) -> None:
        """Add a case of a backend, as it is on both sides."""
        for counts, record in zip(self._states, (old, new), strict=True):
            if record is not None:
                counts.setdefault(record.backend, Counter())[record.state] += 1
        if old and new and old.asked != new.asked:
            self.asked_otherwise += 1
        change = change_of(old, new)
        if change is not None:
            self.changes.add(change)

    def figures(self, backend: str) -> tuple[Figures, Figures]:
        """Return a backend's figures on both sides."""
        old, new = (figures_of(counts.get(backend, Counter())) for counts in self._states)
        return old, new

    def exit_code(self, fail_on: str | None) -> int:
        """Return 1 if there is a change that `fail_on` names: a `regression`, or any `change`."""
        counts = {None: 0, "regression": self.changes.of(ChangeKind.REGRESSION), "change": self.changes.total}
        return NON_CONFORMANT if counts[fail_on] else 0


def compared(old: Side, new: Side) -> RunComparison:
    """Return the changes between two sides. Raises OpconformError if they have no backend in common."""
    backends = tuple(name for name in new.versions if name in old.versions)
    if not backends:
        sides = [f"{side.name} has {', '.join(side.versions) or 'none'}" for side in (old, new)]
        raise OpconformError(f"no backend is on both sides, so there is nothing to compare: {'; '.join(sides)}")
    comparison = RunComparison(old, new, backends)
    for pair in _joined(old.records(backends), new.records(backends)):
        comparison.add(*pair)
    return comparison


def _joined(
    old: Iterator[CaseRecord], new: Iterator[CaseRecord]
) -> Iterator[tuple[CaseRecord | None, CaseRecord | None]]:
    """Yield the records of both sides for each backend and case; both sides are sorted by them."""
    a, b = next(old, None), next(new, None)
    while a is not None or b is not None:
        if b is None or (a is not None and a[:2] < b[:2]):
            yield a, None
            a = next(old, None)
        elif a is None or b[:2] < a[:2]:
            yield None, b
            b = next(new, None)
        else:
            yield a, b
            a, b = next(old, None), next(new, None)


# The sides


@contextlib.contextmanager
def opened(text: str, *, partial: bool = False) -> Iterator[Side]:
    """Open a side by its name. Raises OpconformError if there is none, or it is incomplete (unless `partial`)."""
    path = Path(text)
    match = None if path.exists() else _OF_HISTORY.fullmatch(text)
    if match:
        with reading(Path(match[1])) as history:
            yield _remembered(history, text, match[2])
    else:
        yield side_of(text, runs_of(folders_in(path), partial=partial))


def _remembered(history: History, name: str, run: str) -> Side:
    known = [number for (number,) in history.rows("SELECT run FROM run ORDER BY run")]
    back = int(run.partition("-")[2] or 0) if run.startswith("last") else None
    number: int = int(run) if back is None else known[-1 - back] if back < len(known) else -1
    if number not in known:
        runs = f"it has {known[0]} to {known[-1]}" if known else "it has none"
        raise OpconformError(f"{history.path}: has no run {run}; {runs}: `opconform history show` lists them")
    run_turns = [turn for turn in turns(history) if turn.run == number]
    return Side(
        name,
        min(turn.started for turn in run_turns),
        {turn.backend: turn.version for turn in run_turns},
        run_turns[0].asked,
        lambda backends: kept_results(history, number, backends),
    )


def side_of(name: str, wholes: Sequence[MergedRun]) -> Side:
    """Return the side of runs in results folders."""
    return Side(
        name,
        min(map(started, wholes)),
        {backend: version for merged in wholes for backend, version in merged.versions.items()},
        asked_of(wholes[0].parts[0].run_json),
        lambda backends: _sorted(wholes, frozenset(backends)),
    )


def _sorted(wholes: Sequence[MergedRun], backends: frozenset[str]) -> Iterator[CaseRecord]:
    """Yield the results of some backends, sorted. Raises OpconformError for a case that appears twice."""
    states: dict[State, State] = {}
    records = []
    for merged in wholes:
        terms = merged.parts[0].terms
        for part in merged.parts:
            with tracked(read_results(part.folder), "reading results", part.planned) as results:
                for result in results:
                    if result.backend in backends:
                        record = record_of(result, terms)
                        records.append(record._replace(state=states.setdefault(record.state, record.state)))
    records.sort(key=lambda record: record[:2])
    for earlier, later in itertools.pairwise(records):
        if earlier[:2] == later[:2]:
            raise OpconformError(f"{earlier.case} on {earlier.backend} appears twice: the folders are not one run")
    yield from records


# In words


def notes(comparison: RunComparison) -> Iterator[str]:
    """Yield further differences between the sides, each as a line."""
    old, new = comparison.old, comparison.new
    for name, values in asked_apart(old.asked, new.asked).items():
        words = [_value(value) for value in values]
        yield f"{name}: others than before" if "digest" in name else f"{name}: {words[0]}, now {words[1]}"
    for side, other in ((old, new), (new, old)):
        alone = [printable(name) for name in side.versions if name not in other.versions]
        if alone:
            yield f"only in {printable(side.name)}: {', '.join(alone)}"
    if comparison.asked_otherwise:
        results = counted(comparison.asked_otherwise, "result")
        yield f"{results} to inputs or expectations that are others now: what changed there says nothing of the backend"


def summed_up(comparison: RunComparison) -> str:
    """Return the number of changes of each kind, in one line."""
    changes = comparison.changes
    counts = [counted(changes.of(kind), *nouns) for kind, nouns in _NOUNS.items() if changes.of(kind)]
    rest = changes.total - sum(changes.of(kind) for kind in _NOUNS)
    if rest:
        counts.append(counted(rest, "other change"))
    cases = sum(comparison.figures(backend)[1].cases for backend in comparison.backends)
    return f"{', '.join(counts) or 'nothing changed'} in {counted(cases, 'result')}"


_NOUNS: Mapping[ChangeKind, tuple[str, ...]] = {
    ChangeKind.REGRESSION: ("regression",),
    ChangeKind.FIX: ("fix", "fixes"),
    ChangeKind.NEW: ("new case",),
    ChangeKind.GONE: ("case gone", "cases gone"),
    ChangeKind.SILENCE: ("other answer to a silence", "other answers to silences"),
    ChangeKind.EXPECTATION: ("other outcome of a changed expectation", "other outcomes of changed expectations"),
}


def heading(group: ChangeGroup) -> str:
    """Return the heading of a group of changes, which marks new cases that fail."""
    first = group.first
    return "new, failing" if first.kind is ChangeKind.NEW and first.fails else str(first.kind)


def is_bad(change: Change) -> bool:
    """Return whether a backend is worse because of the change."""
    return change.kind in _BAD or (change.kind in (ChangeKind.NEW, ChangeKind.EXPECTATION) and change.fails)


def _versions(comparison: RunComparison, backend: str) -> str:
    """Return a backend with its version, or with both."""
    old, new = comparison.old.versions[backend], comparison.new.versions[backend]
    return printable(f"{backend} {new}" if old == new else f"{backend} {old} to {new}")


def _cells(comparison: RunComparison, backend: str) -> list[str]:
    """Return a backend's row: correctness, support, refusal, failures, and how many changes there are."""
    old, new = comparison.figures(backend)
    changes = comparison.changes
    regressions, fixes = changes.of(ChangeKind.REGRESSION, backend), changes.of(ChangeKind.FIX, backend)
    total = sum(count for (name, _), count in changes.counts.items() if name == backend)
    return [
        *(_share(getattr(old, name), getattr(new, name)) for name in ("correctness", "support", "refusal")),
        f"{new.failed:,}" if old.failed == new.failed else f"{old.failed:,} to {new.failed:,}",
        *(f"{number:,}" for number in (regressions, fixes, total - regressions - fixes)),
    ]


def _share(old: Fraction | None, new: Fraction | None) -> str:
    shares = [percent(share) for share in (old, new)]
    return shares[1] if shares[0] == shares[1] else f"{shares[0]} to {shares[1]}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={entry}" for name, entry in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return printable("none" if value is None else str(value))


# In a terminal


def print_comparison(console: Console, comparison: RunComparison) -> None:
    """Print the worst changes first, and figures before and after last, because a terminal shows the end."""
    groups = comparison.changes.worst_first()
    for group in groups[:_IN_TERMINAL]:
        _print_group(console, comparison, group)
    if groups[_IN_TERMINAL:]:
        more = f"{counted(len(groups) - _IN_TERMINAL, 'more kind')} of changes; --json FILE has every one"
        _line(console, Text(more, "dim"))
        console.print()
    for note in notes(comparison):
        _line(console, Text(note))
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("backend", overflow="fold")
    for column in ("correct", "support", "refusal", "failures", "regressions", "fixes", "other"):
        table.add_column(column, justify="right", no_wrap=True)
    for backend in comparison.backends:
        table.add_row(Text(_versions(comparison, backend)), *map(Text, _cells(comparison, backend)))
    console.print(table)
    style = "bold red" if comparison.changes.of(ChangeKind.REGRESSION) else "bold"
    _line(console, Text(summed_up(comparison), style if comparison.changes.total else "bold green"))


def _print_group(console: Console, comparison: RunComparison, group: ChangeGroup) -> None:
    record = group.first.record
    on = printable(f"{record.backend} {comparison.new.versions[record.backend]}")
    title = Text().append(heading(group), "bold red" if is_bad(group.first) else "bold")
    _line(console, title.append(f"  {printable(record.case)}", "bold").append(f"  on {on}"))
    _line(console, Text(f"  {printable(group.first.words)}"))
    for line in printable(record.detail or "").splitlines()[:_DETAIL_LINES]:
        _line(console, Text(f"  {line}"))
    if group.first.fails:
        _line(console, Text(f"  reproduce: {reproduce_line(record.result)}"))
    if group.count > 1:
        names = [printable(split_version(name)[1]) for name in group.operator_versions]
        of = f", in versions {', '.join(names)}" if names[1:] else ""
        _line(console, Text(f"  and {group.count - 1:,} more like it{of}", "dim"))
    console.print()


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)


# As JSON


def comparison_json(comparison: RunComparison) -> dict[str, Any]:
    """Return all of it for JSON; each group names its first cases."""
    old, new, changes = comparison.old, comparison.new, comparison.changes
    backends = {}
    for name in comparison.backends:
        backends[name] = {
            "versions": [old.versions[name], new.versions[name]],
            "figures": [figures.to_dict() for figures in comparison.figures(name)],
            "changes": {str(kind): changes.of(kind, name) for kind in ChangeKind},
            "new_failures": changes.new_failures[name],
        }
    sides = [{"name": s.name, "started": s.started, "backends": dict(s.versions)} for s in (old, new)]
    return {
        "old": sides[0],
        "new": sides[1],
        "notes": list(notes(comparison)),
        "asked_otherwise": comparison.asked_otherwise,
        "changes": {str(kind): changes.of(kind) for kind in ChangeKind},
        "backends": backends,
        "groups": [_group_json(group) for group in changes.worst_first()],
    }


def _group_json(group: ChangeGroup) -> dict[str, Any]:
    first = group.first
    return {
        "kind": str(first.kind),
        "backend": first.record.backend,
        "what": first.words,
        "fails": first.fails,
        "count": group.count,
        "operator_versions": dict(group.operator_versions),
        "old": first.old and {"case": first.old.case, **first.old.state.to_dict(), "detail": first.old.detail},
        "new": first.new and {"case": first.new.case, **first.new.state.to_dict(), "detail": first.new.detail},
        "cases": group.cases,
    }


# As a page


def comparison_markdown(comparison: RunComparison) -> str:
    """Return a page with the changes, worst first, and nothing else."""
    lines = [f"## opconform: {summed_up(comparison)}", ""]
    lines_of_notes = list(notes(comparison))
    if comparison.changes.total or lines_of_notes:
        lines.append("| backend | correctness | support | refusal | failures | regressions | fixes | other |")
        lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for backend in comparison.backends:
            cells = " | ".join(_cells(comparison, backend))
            lines.append(f"| {markdown_text(_versions(comparison, backend))} | {cells} |")
        lines += [
            "",
            *(f"- {markdown_text(note)}" for note in lines_of_notes),
            *[""][: len(lines_of_notes)],
            *_groups(comparison),
        ]
    sides = [markdown_code(side.name) + f" ({side.started})" for side in (comparison.old, comparison.new)]
    return "\n".join([*lines, f"From {sides[0]} to {sides[1]}.", ""])


def _groups(comparison: RunComparison) -> Iterator[str]:
    groups = comparison.changes.worst_first()
    if not groups:
        return
    yield "| change | times | first case | what |"
    yield "| --- | ---: | --- | --- |"
    several = len(comparison.backends) > 1
    for group in groups[:_IN_PAGE]:
        record = group.first.record
        on = f" on {markdown_text(record.backend)}" if several else ""
        words = ": ".join(filter(None, (group.first.words, first_line(record.detail))))
        yield f"| {heading(group)}{on} | {group.count:,} | {markdown_code(record.case)} | {markdown_text(words)} |"
    yield ""
    if len(groups) > _IN_PAGE:
        yield f"And {counted(len(groups) - _IN_PAGE, 'more kind')} of changes."
        yield ""
    if groups[0].first.fails:
        yield from markdown_reproduction(groups[0].first.record.result)
