"""A comparison in a terminal: the worst first, figures before and after last, since a terminal shows the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...specs.globs import split_version
from ..begun import compared
from ..text import counted, percent, printable, reproduce_line
from .compare import Comparison
from .kinds import Alike, Change, Kind

WIDE = 180
"""How many columns a table may have where it is no terminal that has a width."""

_SHOWN = 12
_DETAIL_LINES = 3
_BAD = frozenset({Kind.REGRESSION, Kind.OTHER_FAILURE})
_TOGETHER = (Kind.REGRESSION, Kind.FIX, Kind.NEW, Kind.GONE, Kind.SILENCE, Kind.EXPECTATION)


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print what changed."""
    groups = comparison.changes.worst_first()
    for alike in groups[:_SHOWN]:
        _print_alike(console, comparison, alike)
    if groups[_SHOWN:]:
        told = f"{counted(len(groups) - _SHOWN, 'more kind')} of changes; --json FILE has every one"
        _line(console, Text(told, "dim"))
        console.print()
    for note in notes(comparison):
        _line(console, Text(note))
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    console.print(_figures(comparison))
    _line(console, _ending(comparison))


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what else differs between the sides, each as a line."""
    old, new = comparison.old, comparison.new
    for name, values in compared(old.told, new.told).items():
        told = [_value(value) for value in values]
        yield f"{name}: others than before" if "digest" in name else f"{name}: {told[0]}, now {told[1]}"
    for side, other in ((old, new), (new, old)):
        alone = [printable(name) for name in side.versions if name not in other.versions]
        if alone:
            yield f"only in {printable(side.name)}: {', '.join(alone)}"
    if comparison.asked_otherwise:
        found = counted(comparison.asked_otherwise, "result")
        yield f"{found} to inputs or expectations that are others now: what changed there says nothing of the backend"


def versions(comparison: Comparison, backend: str) -> str:
    """Return a backend with its version, or with both."""
    old, new = comparison.old.versions[backend], comparison.new.versions[backend]
    return printable(f"{backend} {new}" if old == new else f"{backend} {old} to {new}")


def summed_up(comparison: Comparison) -> str:
    """Return how many changes there are of each kind, in a line."""
    changes = comparison.changes
    found = [counted(changes.of(kind), *_NOUNS[kind]) for kind in _TOGETHER if changes.of(kind)]
    rest = changes.total - sum(changes.of(kind) for kind in _TOGETHER)
    if rest:
        found.append(counted(rest, "other change"))
    cases = sum(comparison.figures(backend)[1].cases for backend in comparison.backends)
    return f"{', '.join(found) or 'nothing changed'} in {counted(cases, 'result')}"


_NOUNS: Mapping[Kind, tuple[str, ...]] = {
    Kind.REGRESSION: ("regression",),
    Kind.FIX: ("fix", "fixes"),
    Kind.NEW: ("new case",),
    Kind.GONE: ("case gone", "cases gone"),
    Kind.SILENCE: ("other answer to a silence", "other answers to silences"),
    Kind.EXPECTATION: ("other outcome of a changed expectation", "other outcomes of changed expectations"),
}


def heading(alike: Alike) -> str:
    """Return what a group of changes is called: new cases that fail are told from others."""
    first = alike.first
    return "new, failing" if first.kind is Kind.NEW and first.fails else str(first.kind)


def is_bad(change: Change) -> bool:
    """Whether a backend is worse for it."""
    return change.kind in _BAD or (change.kind in (Kind.NEW, Kind.EXPECTATION) and change.fails)


def _print_alike(console: Console, comparison: Comparison, alike: Alike) -> None:
    row = alike.first.row
    title = Text().append(heading(alike), "bold red" if is_bad(alike.first) else "bold")
    _line(console, title.append(f"  {printable(row.case)}", "bold").append(f"  on {_now(comparison, row.backend)}"))
    _line(console, Text(f"  {printable(alike.first.words)}"))
    for line in printable(row.detail or "").splitlines()[:_DETAIL_LINES]:
        _line(console, Text(f"  {line}"))
    if alike.first.fails:
        _line(console, Text(f"  reproduce: {reproduce_line(row.result)}"))
    if alike.count > 1:
        names = [printable(split_version(name)[1]) for name in alike.operator_versions]
        of = f", in versions {', '.join(names)}" if names[1:] else ""
        _line(console, Text(f"  and {alike.count - 1:,} more like it{of}", "dim"))
    console.print()


def _now(comparison: Comparison, backend: str) -> str:
    return printable(f"{backend} {comparison.new.versions[backend]}")


def _figures(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("backend", overflow="fold")
    for column in ("correct", "support", "refusal", "failures", "regressions", "fixes", "other"):
        table.add_column(column, justify="right", no_wrap=True)
    for backend in comparison.backends:
        table.add_row(Text(versions(comparison, backend)), *map(Text, cells(comparison, backend)))
    return table


def cells(comparison: Comparison, backend: str) -> list[str]:
    """Return a backend's row: correctness, support, refusal, failures, and how many changes there are."""
    old, new = comparison.figures(backend)
    changes = comparison.changes
    regressions, fixes = changes.of(Kind.REGRESSION, backend), changes.of(Kind.FIX, backend)
    total = sum(count for (name, _), count in changes.counts.items() if name == backend)
    return [
        *(_share(getattr(old, name), getattr(new, name)) for name in ("correctness", "support", "refusal")),
        f"{new.failed:,}" if old.failed == new.failed else f"{old.failed:,} to {new.failed:,}",
        *(f"{number:,}" for number in (regressions, fixes, total - regressions - fixes)),
    ]


def _share(old: Fraction | None, new: Fraction | None) -> str:
    told = [percent(share) for share in (old, new)]
    return told[1] if told[0] == told[1] else f"{told[0]} to {told[1]}"


def _ending(comparison: Comparison) -> Text:
    words = summed_up(comparison)
    style = "bold red" if comparison.changes.of(Kind.REGRESSION) else "bold"
    return Text(words, style if comparison.changes.total else "bold green")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={one}" for name, one in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return printable("none" if value is None else str(value))


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)
