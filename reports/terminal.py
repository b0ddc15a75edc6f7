"""A run in a terminal: progress, and the summary of figures, silences taken, and failures with what to do next."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import TracebackType
from typing import TypeAlias

from rich.console import Console, RenderableType
from rich.console import Group as Lines
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..cases.ids import operator_version_of, split_version
from ..cases.results import Outcome, Result
from .arithmetic import ArithmeticTables, print_arithmetic
from .tally import NOTHING_JUDGED, Behaviours, ChosenOptions, FailureGroup, Failures, Figures, Tally
from .text import NOTHING, counted, percent, printable, reproduce_line

ClauseText = Callable[[str, str], str | None]
"""Operator version and clause id to the clause's text."""

_DETAIL_LINES = 8
_DETAIL_LENGTH = 1000
_ENDINGS: Mapping[int, tuple[str, str]] = {
    0: ("conformant", "green"),
    1: ("non-conformant", "red"),
    2: ("nothing was judged{of}, which is no success", "red"),
    3: ("our side failed: see runner-error, and report it", "red"),
    130: ("interrupted; what was judged is kept", "yellow"),
}


@dataclass
class Summary:
    """What there is to tell of a run.

    `versions` has the version of each backend. `declared` says whether arithmetic was declared, which adds its figure.
    `problems` are those of waivers. `seconds` is the run's duration, `folder` where the results are.
    """

    tally: Tally
    behaviours: Behaviours
    failures: Failures
    exit_code: int
    versions: Mapping[str, str] = field(default_factory=dict)
    clause_text: ClauseText = lambda _operator_version, _clause: None
    declared: bool = False
    problems: Sequence[str] = ()
    seconds: float | None = None
    folder: str | None = None
    failures_shown: int = 10
    arithmetic: ArithmeticTables = field(default_factory=ArithmeticTables)

    def backend(self, name: str) -> str:
        """Return a backend's name with its version."""
        return printable(f"{name} {self.versions[name]}" if self.versions.get(name) else name)


def print_summary(console: Console, summary: Summary) -> None:
    """Print failures first and figures last, since a terminal shows the end."""
    print_failures(console, summary)
    for backend in summary.tally.backends:
        print_silences(console, summary, backend)
        print_arithmetic(console, summary.arithmetic, backend, summary.backend(backend))
    if len(summary.tally.backends) > 1:
        print_backends(console, summary.tally, summary.backend, declared=summary.declared)
        console.print()
    else:
        for backend in summary.tally.backends:
            print_figures(console, summary, backend)
    _print_ending(console, summary)


def print_failures(console: Console, summary: Summary) -> None:
    """Print the first failures, one of each kind."""
    shown = summary.failures.first(summary.failures_shown)
    for alike in shown:
        _print_failure(console, summary, alike)
        console.print()
    if hidden := summary.failures.kinds - len(shown):
        told = f"{counted(hidden, 'more kind')} of failures; results.jsonl has every one"
        console.print(Text(told, "dim"), soft_wrap=True)
        console.print()


def print_silences(console: Console, summary: Summary, backend: str) -> None:
    """Print what a backend does where the standard is silent, versions that do the same together."""
    found = [t for t in summary.behaviours.chosen(backend) if t.silence != "invalid"]  # that one is a figure: refusal
    if not found:
        return
    _heading(console, f"{summary.backend(backend)}, where the standard is silent")
    rows = _silence_rows(t for t in found if t.established or not t.consistent)
    if rows:
        table = _table("operator", "silence", "taken")
        for (operator, silence, told), taken in rows.items():
            versions = ", ".join(split_version(t.operator_version)[1] for t in taken)
            table.add_row(_cell(f"{operator} {versions}"), _cell(silence), _taken(taken[0], told))
        console.print(table)
    for taken in rows.values():
        _print_difference(console, taken[0])
    unknown = dict.fromkeys(printable(t.silence) for t in found if not t.established and t.consistent)
    if unknown:
        _line(console, Text(f"not told apart by these cases: {', '.join(unknown)}", "dim"))
    console.print()


def print_figures(console: Console, summary: Summary, backend: str) -> None:
    """Print a backend's three figures, and a table of them by operator version and types."""
    figures = summary.tally.figures(backend)
    _heading(console, f"{summary.backend(backend)}: {counted(figures.cases, 'result')}")
    if figures.cases:
        console.print(_overall(figures, summary.declared))
        console.print()
        console.print(_by_operator(summary, backend))
    console.print()


def _print_failure(console: Console, summary: Summary, alike: FailureGroup) -> None:
    result = alike.first
    title = Text().append(str(result.outcome), "bold red").append(f"  {printable(result.case)}", "bold")
    _line(console, title.append(f"  on {summary.backend(result.backend)}"), copied=True)
    if clause := _clause_line(result, summary.clause_text):
        _line(console, clause, indent=2)
    for line in _detail_lines(result.detail or ""):
        _line(console, Text(line), indent=2)
    _line(console, Text(f"  reproduce: {reproduce_line(result)}"), copied=True)
    if alike.count > 1:
        _line(console, Text(_more(alike), "dim"), indent=2)


def _more(alike: FailureGroup) -> str:
    """Return how many failures are alike, and in which versions of the operator."""
    versions = [printable(split_version(o)[1]) for o in alike.operator_versions]
    return f"and {alike.count - 1:,} more like it" + (f", in versions {', '.join(versions)}" if versions[1:] else "")


def _line(console: Console, text: Text, *, indent: int = 0, copied: bool = False) -> None:
    """Print a line, wrapped in a terminal with its indent; one that is copied or goes to a file is never broken."""
    if copied or not console.is_terminal:
        console.print(Text(" " * indent).append_text(text), soft_wrap=True)
    else:
        console.print(Padding(text, (0, 0, 0, indent), expand=False))


def _clause_line(result: Result, clause_text: ClauseText) -> Text | None:
    """Return the first clause that a case tests, which for an edge is what the edge is about, and the others' names."""
    if not result.clauses:
        return None
    names = [printable(clause.rpartition("#")[2]) for clause in result.clauses]
    text = clause_text(operator_version_of(result.case), result.clauses[0])
    line = Text(f"clause {names[0]}{f': {printable(text)}' if text else ''}")
    return line.append(f" (also {', '.join(names[1:])})", "dim") if names[1:] else line


def _detail_lines(detail: str) -> list[str]:
    """Return the beginning of a detail, each line fit to show."""
    cut = f"{detail[:_DETAIL_LENGTH]}…" if len(detail) > _DETAIL_LENGTH else detail
    lines = printable(cut).splitlines()
    if len(lines) > _DETAIL_LINES:
        return [*lines[:_DETAIL_LINES], f"… {counted(len(lines) - _DETAIL_LINES, 'more line')} in results.jsonl"]
    return lines


def _overall(figures: Figures, declared: bool) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    judged = counted(figures.judged, "valid case") + " judged"
    asked = counted(figures.judged + figures.unsupported, "valid case")
    table.add_row("  correctness", _share(figures.correctness), f"{figures.strict:,} of {judged}")
    if declared:
        told = f"{figures.passed:,} of {judged}, by the declared arithmetic"
        table.add_row("    as declared", _share(figures.declared_correctness), told)
    table.add_row("  support", _share(figures.support), f"{figures.judged:,} of {asked}")
    put = counted(figures.put, "invalid input")
    table.add_row("  refusal", _share(figures.refusal), f"{figures.refused:,} of {put} refused")
    table.add_row("  outcomes", "", _outcomes(figures))
    return table


def _outcomes(figures: Figures) -> str:
    found = [f"{count:,} {outcome}" for outcome, count in figures.outcomes.items()]
    return ", ".join([*found, f"{figures.suspended:,} of them suspended"] if figures.suspended else found)


def _by_operator(summary: Summary, backend: str) -> Table:
    declared = ["declared"] if summary.declared else []
    table = _table("operator version", "types", "passed", "correct", *declared, "support", "refusal", right_from=2)
    last = None
    for operator_version, types, figures in _type_rows(summary.tally, backend):
        shares = [figures.correctness, *([figures.declared_correctness] if declared else [])]
        cells = [_share(share) for share in (*shares, figures.support, figures.refusal)]
        name = _cell(operator_version if operator_version != last else "")
        passed = f"{figures.strict:,}/{figures.judged:,}" if figures.judged else NOTHING
        table.add_row(name, _cell(" ".join(types)), passed, *cells)
        last = operator_version
    return table


def _type_rows(tally: Tally, backend: str) -> list[tuple[str, list[str], Figures]]:
    """Return a row for each operator version and the types of it that have the same figures."""
    alike: dict[tuple[object, ...], list[str]] = {}
    found: dict[tuple[object, ...], Figures] = {}
    for group, figures in tally.groups(backend):
        shares = (figures.correctness, figures.declared_correctness, figures.support, figures.refusal)
        key = (group.operator_version, *map(percent, shares))
        alike.setdefault(key, []).append(group.types)
        found[key] = found[key] + figures if key in found else figures
    order = list(tally.operator_versions(backend))
    rows = [(str(key[0]), types, found[key]) for key, types in alike.items()]
    return sorted(rows, key=lambda row: order.index(row[0]))


def _silence_rows(found: Iterable[ChosenOptions]) -> dict[tuple[str, str, str], list[ChosenOptions]]:
    """Return operator, silence and what is taken, with the operator versions of which that is so."""
    rows: dict[tuple[str, str, str], list[ChosenOptions]] = {}
    for taken in found:
        told = " or ".join(printable(e.option) for e in taken.established)
        rows.setdefault((split_version(taken.operator_version)[0], taken.silence, told), []).append(taken)
    return rows


def _taken(taken: ChosenOptions, told: str) -> Text:
    if taken.consistent:
        return Text(told)
    return Text(f"{told}: differs by case" if told else "differs by case", "yellow")


def _print_difference(console: Console, taken: ChosenOptions) -> None:
    """Print a case for each option that is taken where several are, or the one that contradicts the others."""
    if taken.broken is None:
        return
    _line(
        console, Text(f"{printable(taken.operator_version)} {printable(taken.silence)} differs by case:"), copied=True
    )
    for found in taken.established:
        told = f"  {printable(found.option)} ({counted(found.cases, 'case')}), first {printable(found.first)}"
        _line(console, Text(told), copied=True)
    if len(taken.established) < 2:
        told = f"  {printable(' or '.join(taken.broken.options))} in {printable(taken.broken.case)}"
        _line(console, Text(told), copied=True)


def _print_ending(console: Console, summary: Summary) -> None:
    for problem in summary.problems:
        console.print(Text(printable(problem), "red"), soft_wrap=True)
    for reason, count in summary.tally.suspensions.items():
        console.print(Text(f"suspended: {counted(count, 'result')}, {printable(reason)}"), soft_wrap=True)
    words, style = ending(summary)
    failures = f"{counted(summary.failures.count, 'failure')} of {counted(summary.failures.kinds, 'kind')} in "
    told = (failures if summary.failures.count else "") + counted(summary.tally.figures().cases, "result")
    versions = {name for backend in summary.tally.backends for name in summary.tally.operator_versions(backend)}
    told += f" of {counted(len(versions), 'operator version')}" if versions else ""
    took = f" in {summary.seconds:,.1f} s" if summary.seconds is not None else ""
    console.print(Text().append(words, f"bold {style}").append(f": {told}{took}"), soft_wrap=True)
    if summary.folder:
        console.print(Text(f"results: {printable(summary.folder)}"), soft_wrap=True)


def ending(summary: Summary) -> tuple[str, str]:
    """Return what the exit code means, and its style."""
    words, style = _ENDINGS.get(summary.exit_code, (f"exit code {summary.exit_code}", "red"))
    if summary.exit_code == NOTHING_JUDGED and summary.tally.exit_code() < NOTHING_JUDGED:
        words = "operators are left out, which is no success"
    idle = [b for b in summary.tally.backends if summary.tally.figures(b).exit_code == summary.exit_code]
    of = f" of {' and '.join(map(summary.backend, idle))}" if summary.exit_code == NOTHING_JUDGED and idle else ""
    return words.format(of=of), style


def _heading(console: Console, text: str) -> None:
    console.print(Text(text, "bold"))


def _table(*columns: str, right_from: int | None = None) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index, column in enumerate(columns):
        right = right_from is not None and index >= right_from
        wraps = not right and index > 0
        table.add_column(
            Text(column),
            justify="right" if right else "left",
            overflow="fold" if wraps else "ellipsis",
            no_wrap=not wraps,
        )
    return table


def _cell(text: str) -> Text:
    return Text(printable(text))


def _share(share: Fraction | None) -> Text:
    style = "dim" if share is None else "green" if share == 1 else "yellow"
    return Text(percent(share), style)


_LABEL = 32
_GAPS = (2, 1)  # between columns: wide where all fit so


@dataclass(frozen=True)
class _ShareRow:
    """A label and a share for each backend; None stands for a backend that was not asked, NOTHING to tell otherwise."""

    label: str
    cells: tuple[str | None, ...]
    heading: bool = False


_ByType: TypeAlias = dict[str, dict[str, Figures]]
"""Figures of an operator version by element type and backend."""


def print_backends(console: Console, tally: Tally, title: Callable[[str], str], *, declared: bool) -> None:
    """Print what several backends came to; `title` tells a backend's name with its version."""
    backends = tally.backends
    rows = list(_rows(tally, declared=declared))
    names = [printable(name) for name in backends]
    headers, gap = _layout(console.width, names, rows)
    console.print(Text(f"{len(backends)} backends: {counted(tally.figures().cases, 'result')}", "bold"), soft_wrap=True)
    for header, backend in zip(headers, backends, strict=True):
        number = f"{header:>{len(headers[-1])}}  " if headers != names else ""
        told = Text(f"  {number}{title(backend)}: ").append(_outcomes(tally.figures(backend)) or "no results", "dim")
        console.print(told, soft_wrap=True)
    for columns in _blocks(console.width, headers, rows, gap):
        console.print()
        console.print(_backends_table(headers, rows, columns, gap))


def _rows(tally: Tally, *, declared: bool) -> Iterator[_ShareRow]:
    backends = tally.backends
    whole = [tally.figures(backend) for backend in backends]
    yield _ShareRow("correctness", tuple(percent(figures.correctness) for figures in whole))
    if declared:
        yield _ShareRow("  as declared", tuple(percent(figures.declared_correctness) for figures in whole))
    yield _ShareRow("support", tuple(percent(figures.support) for figures in whole))
    yield _ShareRow("refusal", tuple(percent(figures.refusal) for figures in whole))
    yield _ShareRow("correct in", (), heading=True)
    by_version = [tally.operator_versions(backend) for backend in backends]
    types: dict[str, _ByType] = {}
    for group, figures in (found for backend in backends for found in tally.groups(backend)):
        types.setdefault(group.operator_version, {}).setdefault(group.types, {})[group.backend] = figures
    for operator_version in tally.operator_versions():
        yield _ShareRow(
            printable(operator_version), tuple(_share_of(found.get(operator_version)) for found in by_version)
        )
        yield from _by_type(types[operator_version], backends)


def _by_type(found: _ByType, backends: Sequence[str]) -> Iterator[_ShareRow]:
    """Yield a row for types in which some backend is not all correct; types that tell the same share one."""
    alike: dict[tuple[str | None, ...], list[str]] = {}
    for name, by_backend in found.items():
        figures = [by_backend.get(backend) for backend in backends]
        if any(one is not None and one.correctness not in (None, 1) for one in figures):
            alike.setdefault(tuple(map(_share_of, figures)), []).append(printable(name))
    if alike and [len(types) for types in alike.values()] != [len(found)]:  # else the row above has told it
        yield from (_ShareRow(f"  {' '.join(types)}", cells) for cells, types in alike.items())


def _share_of(figures: Figures | None) -> str | None:
    return None if figures is None else percent(figures.correctness)


def _layout(width: int, names: Sequence[str], rows: Sequence[_ShareRow]) -> tuple[Sequence[str], int]:
    """Return the columns' headers, names or numbers, and the gap between columns: the first that fit."""
    numbers = [str(number) for number in range(1, len(names) + 1)]
    for headers, gap in ((names, _GAPS[0]), *((numbers, gap) for gap in _GAPS)):
        if len(list(_blocks(width, headers, rows, gap))) == 1:
            return headers, gap
    return numbers, _GAPS[-1]


def _blocks(width: int, headers: Sequence[str], rows: Sequence[_ShareRow], gap: int) -> Iterator[range]:
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


def _backends_table(headers: Sequence[str], rows: Sequence[_ShareRow], columns: range, gap: int) -> Table:
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


_PLAIN_EVERY = 30.0  # seconds
_PLAIN_LINES = 4  # beside those: so many if the number of cases is known
_BAR_WIDTH = 30
_GOOD = frozenset({Outcome.PASS})
_NEUTRAL = frozenset({Outcome.UNSUPPORTED, Outcome.WAIVED, Outcome.ACCEPTED_INVALID})


class RunProgress:
    """Shows results as they are added; a context manager."""

    def __init__(
        self,
        console: Console,
        total: int | None,
        clock: Callable[[], float] = time.monotonic,
        known: Mapping[Outcome, int] | None = None,
    ) -> None:
        """Expect `total` results, None if it is not known, of which some are `known`; `clock` tells seconds."""
        self.console = console
        self.total = total
        self.outcomes: Counter[Outcome] = Counter(known or {})
        self.done = self._before = self.outcomes.total()
        self._plain = not console.is_terminal
        self._clock = clock
        self._started = self._told = clock()
        self._line_at = self._next_line()
        self._live = Live(get_renderable=self._shown, console=console, refresh_per_second=8, transient=True)

    def add(self, result: Result) -> None:
        """Count a result; the terminal is drawn from time to time, not here."""
        self.count(result.outcome)

    def count(self, outcome: Outcome) -> None:
        """Count a result."""
        self.outcomes[outcome] += 1
        self.done += 1
        if self._plain and (self.done >= self._line_at or self._clock() - self._told >= _PLAIN_EVERY):
            self._told, self._line_at = self._clock(), self._next_line()
            self.console.print(Text(f"{self._count()}: {self._outcomes().plain}"), soft_wrap=True)

    def __enter__(self) -> RunProgress:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def _next_line(self) -> float:
        """Return how many results there are at the next of the lines that tell a part of them."""
        if not self.total:
            return math.inf
        part = self.done * _PLAIN_LINES // self.total + 1
        return -(-part * self.total // _PLAIN_LINES)  # rounded up

    def _count(self) -> str:
        seconds = self._clock() - self._started
        of = f" of {self.total:,}" if self.total else ""
        rate = f", {(self.done - self._before) / seconds:,.0f}/s" if seconds > 0 else ""
        return f"{self.done:,}{of} cases{rate}"

    def _outcomes(self) -> Text:
        found = Text()
        for outcome in Outcome:
            if self.outcomes[outcome]:
                style = "green" if outcome in _GOOD else "" if outcome in _NEUTRAL else "red"
                found.append(", " if found else "").append(f"{self.outcomes[outcome]:,} {outcome}", style)
        return found

    def _shown(self) -> RenderableType:
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(self.total, self.done, width=_BAR_WIDTH, pulse=not self.total, animation_time=self._clock()),
            Text(self._count(), no_wrap=True, overflow="ellipsis"),
        )
        return Lines(bar, self._outcomes())
