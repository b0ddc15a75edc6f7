"""Several backends in a terminal as one table: the figures, then correctness by operator version and type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .figures import Figures, Group, Tally
from .text import NOTHING, counted, percent, printable

_LABEL = 32
_GAPS = (2, 1)  # between columns: wide where all fit so


@dataclass(frozen=True)
class _Row:
    """A label and a share for each backend; None stands for a backend that was not asked, NOTHING to tell otherwise."""

    label: str
    cells: tuple[str | None, ...]
    heading: bool = False


def print_backends(console: Console, tally: Tally, title: Callable[[str], str], *, declared: bool) -> None:
    """Print what several backends came to; `title` tells a backend's name with its version."""
    backends = tally.backends
    rows = list(_rows(tally, declared=declared))
    names = [printable(name) for name in backends]
    headers, gap = _layout(console.width, names, rows)
    console.print(Text(f"{len(backends)} backends: {counted(tally.figures().cases, 'result')}", "bold"), soft_wrap=True)
    for header, backend in zip(headers, backends, strict=True):
        number = f"{header:>{len(headers[-1])}}  " if headers != names else ""
        told = Text(f"  {number}{title(backend)}: ").append(_outcomes(tally.figures(backend)), "dim")
        console.print(told, soft_wrap=True)
    for columns in _blocks(console.width, headers, rows, gap):
        console.print()
        console.print(_table(headers, rows, columns, gap))


def _rows(tally: Tally, *, declared: bool) -> Iterator[_Row]:
    backends = tally.backends
    whole = [tally.figures(backend) for backend in backends]
    yield _Row("correctness", tuple(percent(figures.correctness) for figures in whole))
    if declared:
        yield _Row("  as declared", tuple(percent(figures.declared_correctness) for figures in whole))
    yield _Row("support", tuple(percent(figures.support) for figures in whole))
    yield _Row("refusal", tuple(percent(figures.refusal) for figures in whole))
    yield _Row("correct in", (), heading=True)
    by_version = [tally.operator_versions(backend) for backend in backends]
    types = [dict(tally.groups(backend)) for backend in backends]
    for operator_version in tally.operator_versions():
        yield _Row(printable(operator_version), tuple(_cell(found.get(operator_version)) for found in by_version))
        yield from _by_type(operator_version, types)


def _by_type(operator_version: str, found: Sequence[dict[Group, Figures]]) -> Iterator[_Row]:
    """Yield a row for types in which some backend is not all correct; types that tell the same share one."""
    alike: dict[tuple[str | None, ...], list[str]] = {}
    names = dict.fromkeys(g.types for groups in found for g in groups if g.operator_version == operator_version)
    for name in names:
        figures = [next((f for g, f in groups.items() if g[1:] == (operator_version, name)), None) for groups in found]
        if any(one is not None and one.correctness not in (None, 1) for one in figures):
            alike.setdefault(tuple(map(_cell, figures)), []).append(printable(name))
    if alike and [len(types) for types in alike.values()] != [len(names)]:  # else the row above has told it
        yield from (_Row(f"  {' '.join(types)}", cells) for cells, types in alike.items())


def _cell(figures: Figures | None) -> str | None:
    return None if figures is None else percent(figures.correctness)


def _outcomes(figures: Figures) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in figures.outcomes.items()) or "no results"


def _layout(width: int, names: Sequence[str], rows: Sequence[_Row]) -> tuple[Sequence[str], int]:
    """Return the columns' headers, names or numbers, and the gap between columns: the first that fit."""
    numbers = [str(number) for number in range(1, len(names) + 1)]
    for headers, gap in ((names, _GAPS[0]), *((numbers, gap) for gap in _GAPS)):
        if len(list(_blocks(width, headers, rows, gap))) == 1:
            return headers, gap
    return numbers, _GAPS[-1]


def _blocks(width: int, headers: Sequence[str], rows: Sequence[_Row], gap: int) -> Iterator[range]:
    """Yield which columns stand in one table, so that none is wider than the terminal; one at least."""
    label = min(_LABEL, max(len(row.label) for row in rows))
    start = 0
    while start < len(headers):
        used, end = label, start
        while end < len(headers):
            used += gap + max(len(headers[end]), *(len(row.cells[end] or "") for row in rows if row.cells))
            if used > width and end > start:
                break
            end += 1
        yield range(start, end)
        start = end


def _table(headers: Sequence[str], rows: Sequence[_Row], columns: range, gap: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    table.add_column("", overflow="fold", max_width=_LABEL)
    for index in columns:
        table.add_column(Text(headers[index]), justify="right", no_wrap=True, overflow="ellipsis")
    for row in rows:
        cells = row.cells[columns.start : columns.stop]
        if row.heading:
            table.add_row()
            table.add_row(Text(row.label, "dim"))
        elif any(cell is not None for cell in cells):
            table.add_row(Text(row.label), *map(_styled, cells))
    return table


def _styled(cell: str | None) -> Text:
    if cell is None:
        return Text("")
    return Text(cell, "dim" if cell == NOTHING else "green" if cell == "100%" else "yellow")
