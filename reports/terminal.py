"""The summary of a run in a terminal: figures, silences, and failures with the next steps; one screen, or all of it."""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..cases.ids import operator_version_of, split_version
from ..cases.inferred import INFERENCE
from ..cases.results import Outcome, Result
from ..cases.short import known_short_id
from .arithmetic import ArithmeticTables, print_arithmetic
from .tally import NOTHING_JUDGED, Behaviours, ChosenOptions, FailureGroup, Failures, Figures, Tally
from .text import NOTHING, WIDE, counted, cut, first_line, percent, printable, reproduce_line

ClauseText = Callable[[str, str], str | None]
"""Returns a clause's text by operator version and clause id."""

Section: TypeAlias = Literal["kinds", "operators", "statistics"]
"""A long part of a summary: every kind of failure, figures by operator version, or silences and accuracy."""
SECTIONS: frozenset[Section] = frozenset({"kinds", "operators", "statistics"})

_Shared: TypeAlias = Sequence[FailureGroup]
"""Failures of one kind: a group for each backend that shares it."""

Detail: TypeAlias = Literal["figures", "brief"] | frozenset[Section]
"""How much of a summary is printed: no failures, one screen, or these sections in full."""

_DETAIL_LINES = 8
_DETAIL_LENGTH = 1000
_BRIEF_LENGTH = 240
_SCREEN = 40
_MORE_FIGURES = 3  # lines
_WORST = 3
_OPERATORS = 10
_FORMS = (
    *((_OPERATORS, _WORST, 2, True), (_OPERATORS, _WORST, 1, True), (_OPERATORS, _WORST, 1, False)),
    *((5, _WORST, 1, False), (3, _WORST, 1, False), (3, 2, 1, False), (3, 1, 1, False)),
)
"""Forms of the brief summary, the first that fits is used: operators, kinds, lines of a message, whether clauses."""
_PROBLEMS = 5
_RESUME = ("opconform", "run", "--resume")
_ENDINGS: Mapping[int, tuple[str, str]] = {
    0: ("conformant", "green"),
    1: ("non-conformant", "red"),
    2: ("nothing was judged{of}, so this is not a success", "red"),
    3: ("our side failed: see runner-error, and report it", "red"),
    130: ("interrupted; the results so far are kept", "yellow"),
}


@dataclass
class Summary:
    """The content of a run's summary.

    `versions` has the version of each backend. `declared`: arithmetic was declared, which adds its figure. `problems`
    are the waivers' problems. `seconds` is the run's duration, `folders` are the results folders. `partial`: `report`
    needs --partial for them. `unfinished` lists the folders that `run --resume` finishes. `names` has what reports call
    a backend, if not as the command line does.
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
    folders: Sequence[Path | str] = ()
    arithmetic: ArithmeticTables = field(default_factory=ArithmeticTables)
    partial: bool = False
    unfinished: Sequence[Path | str] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def name(self, backend: str) -> str:
        """Return what reports call a backend."""
        return printable(self.names.get(backend, backend))

    def backend(self, backend: str) -> str:
        """Return a backend's name with its version."""
        return " ".join(filter(None, (self.name(backend), printable(self.versions.get(backend, "")))))


def print_summary(console: Console, summary: Summary, detail: Detail = "brief") -> None:
    """Print the verdict, the operators that fail, and the worst kinds of failures, on one screen.

    That are at most 40 lines for one backend, and as many more as the figures of several backends need. With sections,
    print these in full, and the verdict last, because a terminal shows the end.
    """
    shared = _shared(summary.failures.worst())
    if isinstance(detail, frozenset):
        if "kinds" in detail:
            _print_failures(console, summary, shared, _Look(_DETAIL_LINES))
        if "statistics" in detail:
            _print_sections(console, summary)
    if detail != "brief":
        _print_figures(console, summary, by_operator="operators" in detail)
        _print_verdict(console, summary)
        _print_ending(console, summary, detail)
        return
    backends = len(summary.tally.backends)
    room = _SCREEN + (backends + _MORE_FIGURES if backends > 1 else 0)
    forms = (partial(_print_screen, summary=summary, shared=shared, form=form) for form in _FORMS)
    fitting = (draw for draw in forms if _height(console, draw) <= room)
    next(fitting, partial(_print_screen, summary=summary, shared=shared, form=_FORMS[-1]))(console)


def _print_screen(
    console: Console, summary: Summary, shared: Sequence[_Shared], form: tuple[int, int, int, bool]
) -> None:
    operators, kinds, lines, clauses = form
    _print_verdict(console, summary)
    _print_figures(console, summary, by_operator=False)
    if shared:
        _print_operators(console, summary, operators)
        console.print()
        _print_failures(console, summary, shared[:kinds], _Look(lines, brief=True, clauses=clauses))
    _print_ending(console, summary, "brief")


def _print_operators(console: Console, summary: Summary, most: int) -> None:
    """Print the operators that fail, the worst outcome first, each in a line."""
    operators = summary.failures.operators()
    several = len(summary.tally.backends) > 1
    rows = [("operator", "failures", "worst", *(["backends"] if several else []), "versions")]
    for failing in operators[:most]:
        backends = (
            ", ".join(f"{summary.name(name)} {count:,}" for name, count in failing.backends.items()) if several else ""
        )
        columns = (printable(failing.operator), f"{failing.count:,}", str(failing.worst))
        rows.append((*columns, *([backends] if several else []), ", ".join(failing.versions)))
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, (operator, count, *others) in enumerate(rows):
        cells = [f"{operator:<{wide[0]}}", f"{count:>{wide[1]}}", *map(str.ljust, others, wide[2:])]
        line = "  ".join(cells).rstrip()
        line = cut(line, console.width - 1) if console.is_terminal else line
        console.print(Text(line, "" if number else "dim"), soft_wrap=True)
    if len(operators) > most:
        rest = operators[most:]
        more = f"and {counted(len(rest), 'more operator')} with {counted(sum(r.count for r in rest), 'failure')}"
        console.print(Text(more, "dim"))


def _height(console: Console, draw: Callable[[Console], None]) -> int:
    """Return the number of terminal rows that something takes, with wrapped lines; or the number of lines in a file."""
    lines = _drawn(console, draw).splitlines()
    return sum(max(1, -(-cell_len(line) // console.width)) for line in lines) if console.is_terminal else len(lines)


def _drawn(console: Console, draw: Callable[[Console], None]) -> str:
    """Return the text that would be printed, without styles."""
    out = io.StringIO()
    draw(Console(file=out, width=console.width, force_terminal=console.is_terminal, color_system=None))
    return out.getvalue()


def _shared(groups: Iterable[FailureGroup]) -> list[_Shared]:
    """Return the kinds of failures, each with the groups of the backends that share it."""
    alike: dict[tuple[object, ...], list[FailureGroup]] = {}
    for group in groups:
        first = group.first
        key = (first.case, first.outcome, first.reason, first.detail, group.count, group.operator_versions)
        alike.setdefault(key, []).append(group)
    return list(alike.values())


@dataclass(frozen=True)
class _Look:
    """How a failure is printed: number of lines of its message, whether text is cut, and whether it has the clause."""

    lines: int
    brief: bool = False
    clauses: bool = True


def _print_failures(console: Console, summary: Summary, shared: Sequence[_Shared], look: _Look) -> None:
    for failure in shared:
        _print_failure(console, summary, failure, look)
        console.print()


def _print_sections(console: Console, summary: Summary) -> None:
    """Print silences and arithmetic; what several backends have in common appears once."""
    alike: dict[str, list[str]] = {}
    for backend in summary.tally.backends:
        alike.setdefault(_drawn(console, partial(_section, summary=summary, backend=backend)), []).append(backend)
    for backends in alike.values():
        _section(console, summary, backends[0], " and ".join(map(summary.backend, backends)))


def _section(console: Console, summary: Summary, backend: str, title: str = "") -> None:
    print_silences(console, summary, backend, title)
    print_arithmetic(console, summary.arithmetic, backend, title)


def _print_figures(console: Console, summary: Summary, *, by_operator: bool) -> None:
    if len(summary.tally.backends) > 1:
        print_backends(console, summary, by_operator=by_operator)
        console.print()
    else:
        for backend in summary.tally.backends:
            print_figures(console, summary, backend, by_operator=by_operator)


def print_silences(console: Console, summary: Summary, backend: str, title: str) -> None:
    """Print what a backend does where the standard is silent; versions that do the same share a line."""
    # Invalid inputs have a figure of their own, refusal.
    chosen = [t for t in summary.behaviours.chosen(backend) if t.silence != "invalid"]
    if not chosen:
        return
    _heading(console, f"{title}, where the standard is silent")
    rows = _silence_rows(t for t in chosen if t.established or not t.consistent)
    if rows:
        table = _table("operator", "silence", "taken")
        for (operator, silence, options), taken in rows.items():
            versions = ", ".join(split_version(t.operator_version)[1] for t in taken)
            table.add_row(_cell(f"{operator} {versions}"), _cell(silence), _taken(taken[0], options))
        console.print(table)
    for taken in rows.values():
        _print_difference(console, taken[0])
    unknown = dict.fromkeys(printable(t.silence) for t in chosen if not t.established and t.consistent)
    if unknown:
        _line(console, Text(f"these cases cannot tell: {', '.join(unknown)}", "dim"))
    console.print()


def print_figures(console: Console, summary: Summary, backend: str, *, by_operator: bool) -> None:
    """Print a backend's three figures, and optionally a table of them by operator version and types."""
    figures = summary.tally.figures(backend)
    _heading(console, f"{summary.backend(backend)}: {counted(figures.cases, 'result')}")
    if figures.cases:
        console.print(_overall(figures, summary.declared, summary.behaviours.total(backend, INFERENCE)))
        if by_operator:
            console.print()
            console.print(_by_operator(summary, backend))
    console.print()


def _print_failure(console: Console, summary: Summary, shared: _Shared, look: _Look) -> None:
    """Print a kind of failures: its first case, the message, the clause, and how to reproduce it."""
    alike, result = shared[0], shared[0].first
    on = f"  on {' and '.join(summary.backend(group.first.backend) for group in shared)}"
    case = printable(result.case)
    if not _fits(console, f"{result.outcome}  {case}{on}"):
        case = printable(known_short_id(result.case))
    title = Text().append(str(result.outcome), "bold red").append(f"  {case}", "bold")
    _line(console, title.append(on), copied=True)
    message = [Text(line) for line in _detail_lines(result.detail or "", look)]
    clause = _clause_line(result, summary.clause_text, look) if look.clauses else None
    for line in filter(None, [*message, clause] if look.brief else [clause, *message]):
        _line(console, line, indent=2)
    reproduce = f"  reproduce: {reproduce_line(result)}"
    if not _fits(console, reproduce):
        reproduce = f"  reproduce: {reproduce_line(result, known_short_id)}"
    _line(console, Text(reproduce), copied=True)
    if alike.count > 1:
        where = cut(printable(alike.where), _BRIEF_LENGTH // 2) if look.brief else printable(alike.where)
        _line(console, Text(", ".join(filter(None, (f"and {alike.count - 1:,} more like it", where))), "dim"), indent=2)


def _fits(console: Console, line: str) -> bool:
    """Return whether a line needs no second row; in a file, whether it is of a bearable length."""
    return cell_len(line) <= (console.width if console.is_terminal else WIDE)


def _line(console: Console, text: Text, *, indent: int = 0, copied: bool = False) -> None:
    """Print a line with its indent, wrapped in a terminal.

    Lines to copy, and lines in a file, are never broken.
    """
    if copied or not console.is_terminal:
        console.print(Text(" " * indent).append_text(text), soft_wrap=True)
    else:
        console.print(Padding(text, (0, 0, 0, indent), expand=False))


def _clause_line(result: Result, clause_text: ClauseText, look: _Look) -> Text | None:
    """Return the first clause that a case tests (an edge case's subject), and the names of the others."""
    if not result.clauses or result.outcome in (Outcome.CRASH, Outcome.TIMEOUT):  # which break no clause
        return None
    names = [printable(clause.rpartition("#")[2]) for clause in result.clauses]
    text = printable(clause_text(operator_version_of(result.case), result.clauses[0]) or "")
    text = cut(text, _BRIEF_LENGTH // 2) if look.brief else text
    line = Text(f"clause {names[0]}{f': {text}' if text else ''}")
    return line.append(f" (also {', '.join(names[1:])})", "dim") if names[1:] and not look.brief else line


def _detail_lines(detail: str, look: _Look) -> list[str]:
    """Return the beginning of a detail, each line safe to show."""
    lines = printable(cut(detail, _DETAIL_LENGTH)).splitlines()
    if look.brief:
        return [cut(line, _BRIEF_LENGTH) for line in lines[: look.lines]]
    more = len(lines) - look.lines
    return lines[: look.lines] + ([f"… {counted(more, 'more line')} in results.jsonl"] if more > 0 else [])


def _overall(figures: Figures, declared: bool, inferred: Mapping[str, int]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    judged = counted(figures.judged, "valid case") + " judged"
    asked = counted(figures.judged + figures.unsupported, "valid case")
    table.add_row("  correctness", _share(figures.correctness), f"{figures.strict:,} of {judged}")
    if declared:
        line = f"{figures.passed:,} of {judged}, under declared arithmetic"
        table.add_row("    as declared", _share(figures.declared_correctness), line)
    if inferred:
        line = f"{inferred.get('exact', 0):,} of {judged}, {inferred.get('open', 0):,} open"
        table.add_row("    exact", _share(_exact(inferred, figures)), line)
    table.add_row("  support", _share(figures.support), f"{figures.judged:,} of {asked}")
    put = counted(figures.put, "invalid input")
    table.add_row("  refusal", _share(figures.refusal), f"{figures.refused:,} of {put} refused")
    table.add_row("  outcomes", "", _outcomes(figures))
    return table


def _exact(inferred: Mapping[str, int], figures: Figures) -> Fraction | None:
    return Fraction(inferred.get("exact", 0), figures.judged) if figures.judged else None


def _outcomes(figures: Figures) -> str:
    counts = [f"{count:,} {outcome}" for outcome, count in figures.outcomes.items()]
    return ", ".join([*counts, f"{figures.suspended:,} of them suspended"] if figures.suspended else counts)


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
    """Return a row for each operator version and group of its types with equal figures."""
    alike: dict[tuple[object, ...], list[str]] = {}
    figures_of: dict[tuple[object, ...], Figures] = {}
    for group, figures in tally.groups(backend):
        shares = (figures.correctness, figures.declared_correctness, figures.support, figures.refusal)
        key = (group.operator_version, *map(percent, shares))
        alike.setdefault(key, []).append(group.types)
        figures_of[key] = figures_of.get(key, Figures()) + figures
    return [(str(key[0]), types, figures_of[key]) for key, types in alike.items()]


def _silence_rows(chosen: Iterable[ChosenOptions]) -> dict[tuple[str, str, str], list[ChosenOptions]]:
    """Return operator, silence and options taken, with the operator versions that share them."""
    rows: dict[tuple[str, str, str], list[ChosenOptions]] = {}
    for taken in chosen:
        options = " or ".join(printable(e.option) for e in taken.established)
        rows.setdefault((split_version(taken.operator_version)[0], taken.silence, options), []).append(taken)
    return rows


def _taken(taken: ChosenOptions, options: str) -> Text:
    if taken.consistent:
        return Text(options)
    return Text(f"{options}: differs by case" if options else "differs by case", "yellow")


def _print_difference(console: Console, taken: ChosenOptions) -> None:
    """Print a case for each option that is taken if there are several, or the case that contradicts the others."""
    if taken.broken is None:
        return
    _line(
        console, Text(f"{printable(taken.operator_version)} {printable(taken.silence)} differs by case:"), copied=True
    )
    for evidence in taken.established:
        line = f"  {printable(evidence.option)} ({counted(evidence.cases, 'case')}), first {printable(evidence.first)}"
        _line(console, Text(line), copied=True)
    if len(taken.established) < 2:
        line = f"  {printable(' or '.join(taken.broken.options))} in {printable(taken.broken.case)}"
        _line(console, Text(line), copied=True)


def _print_verdict(console: Console, summary: Summary) -> None:
    words, style = ending(summary)
    failures = f"{counted(summary.failures.count, 'failure')} of {counted(summary.failures.kinds, 'kind')} in "
    line = (failures if summary.failures.count else "") + counted(summary.tally.figures().cases, "result")
    versions = {name for backend in summary.tally.backends for name in summary.tally.operator_versions(backend)}
    line += f" of {counted(len(versions), 'operator version')}" if versions else ""
    took = f" in {summary.seconds:,.1f} s" if summary.seconds is not None else ""
    console.print(Text().append(words, f"bold {style}").append(f": {line}{took}"), soft_wrap=True)


def _print_problems(console: Console, summary: Summary, *, brief: bool) -> None:
    """Print what is wrong apart from the cases, what is suspended, and why nothing could be judged."""
    problems, suspensions = summary.problems[: _PROBLEMS if brief else None], summary.tally.suspensions
    for problem in map(printable, problems):
        _line(console, Text(cut(problem, _BRIEF_LENGTH) if brief else problem, "red"))
    if len(problems) < len(summary.problems):
        console.print(Text(f"and {counted(len(summary.problems) - len(problems), 'more problem')}", "red"))
    if brief and len(suspensions) > 1:
        line = f"suspended: {counted(suspensions.total(), 'result')}, for {len(suspensions)} reasons"
        console.print(Text(line), soft_wrap=True)
    else:
        for reason, count in suspensions.items():
            _line(console, Text(f"suspended: {counted(count, 'result')}, {printable(reason)}"))
    for backend, refusal in summary.tally.refusals.items():
        if not summary.tally.figures(backend).judged and refusal:
            line = f"{summary.backend(backend)} supports none of its cases; its message for the first one: "
            _line(console, Text(line + printable(first_line(refusal)), "red"))


def _print_ending(console: Console, summary: Summary, detail: Detail) -> None:
    """Print problems and suspensions, then where the results are and the commands that show more."""
    _print_problems(console, summary, brief=not isinstance(detail, frozenset))
    if not summary.folders:
        return
    console.print(Text(f"results: {printable(', '.join(map(str, summary.folders)))}"), soft_wrap=True)
    for folder in summary.unfinished[:_WORST]:
        console.print(Text(f"finish it: {printable(shlex.join([*_RESUME, str(folder)]))}"), soft_wrap=True)
    if detail == "brief":
        report = ["opconform", "report", *map(str, summary.folders), *(["--partial"] if summary.partial else [])]
        more = {"kinds": ["--kinds"] if summary.failures.count else [], "site": ["--html", "site"]}
        for name, options in more.items():
            if options:
                again = f"{f'{name}:':<8} {printable(shlex.join([*report, *options]))}"
                console.print(Text(again), soft_wrap=True)


def ending(summary: Summary) -> tuple[str, str]:
    """Return the meaning of the exit code, and its style."""
    words, style = _ENDINGS.get(summary.exit_code, (f"exit code {summary.exit_code}", "red"))
    if summary.exit_code == NOTHING_JUDGED and summary.tally.exit_code() < NOTHING_JUDGED:
        words = "operators were left out, so this is not a success"
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
_GAPS = (2, 1)  # between columns: wide if all fit


@dataclass(frozen=True)
class _ShareRow:
    """A label and a share for each backend; None: the backend was not run, NOTHING: there is nothing to show."""

    label: str
    cells: tuple[str | None, ...]
    heading: bool = False


def print_backends(console: Console, summary: Summary, *, by_operator: bool) -> None:
    """Print the results of several backends, optionally by operator version; repeated figures appear once."""
    tally = summary.tally
    figures = {b: {(g.operator_version, g.types): f for g, f in tally.groups(b)} for b in tally.backends}
    twins: dict[str, str] = {}
    for backend, by_operator_version in figures.items():
        twin = next((b for b in figures if by_operator_version and figures[b] == by_operator_version), backend)
        if twin != backend:
            twins[backend] = twin
    backends = [backend for backend in tally.backends if backend not in twins]
    rows = [*_figure_rows(summary, backends)]
    if by_operator:
        rows += _operator_rows(tally, {backend: figures[backend] for backend in backends})
    names = [summary.name(backend) for backend in backends]
    headers, gap = _layout(console.width, names, rows)
    heading = f"{len(tally.backends)} backends: {counted(tally.figures().cases, 'result')}"
    console.print(Text(heading, "bold"), soft_wrap=True)
    numbers = dict(zip(backends, headers, strict=True)) if headers != names else {}
    for backend in tally.backends:
        number = f"{numbers.get(backend, ''):>{len(headers[-1])}}  " if numbers else ""
        same = f"as {summary.name(twins[backend])}" if backend in twins else _outcomes(tally.figures(backend))
        line = Text(f"  {number}{summary.backend(backend)}: ").append(same or "no results", "dim")
        console.print(line, soft_wrap=True)
    for columns in _blocks(console.width, headers, rows, gap):
        console.print()
        console.print(_backends_table(headers, rows, columns, gap))


def _figure_rows(summary: Summary, backends: Sequence[str]) -> Iterator[_ShareRow]:
    every = [summary.tally.figures(backend) for backend in backends]
    yield _ShareRow("correctness", tuple(percent(figures.correctness) for figures in every))
    if summary.declared:
        yield _ShareRow("  as declared", tuple(percent(figures.declared_correctness) for figures in every))
    inferred = [summary.behaviours.total(backend, INFERENCE) for backend in backends]
    if any(inferred):
        shares = (_exact(counts, figures) if counts else None for counts, figures in zip(inferred, every, strict=True))
        yield _ShareRow("  exact", tuple(map(percent, shares)))
    yield _ShareRow("support", tuple(percent(figures.support) for figures in every))
    yield _ShareRow("refusal", tuple(percent(figures.refusal) for figures in every))


def _operator_rows(tally: Tally, by_backend: Mapping[str, Mapping[tuple[str, str], Figures]]) -> Iterator[_ShareRow]:
    yield _ShareRow("correct in", (), heading=True)
    by_version = [tally.operator_versions(backend) for backend in by_backend]
    types: dict[str, dict[str, None]] = {}
    for operator_version, name in (key for groups in by_backend.values() for key in groups):
        types.setdefault(operator_version, {})[name] = None
    for operator_version in tally.operator_versions():
        cells = tuple(_share_of(versions.get(operator_version)) for versions in by_version)
        yield _ShareRow(printable(operator_version), cells)
        yield from _by_type(operator_version, list(types[operator_version]), list(by_backend.values()))


def _by_type(
    operator_version: str, names: Sequence[str], by_backend: Sequence[Mapping[tuple[str, str], Figures]]
) -> Iterator[_ShareRow]:
    """Yield a row for types in which some backend is not completely right; types with the same share are one row."""
    alike: dict[tuple[str | None, ...], list[str]] = {}
    for name in names:
        figures = [groups.get((operator_version, name)) for groups in by_backend]
        if any(figure is not None and figure.correctness not in (None, 1) for figure in figures):
            alike.setdefault(tuple(map(_share_of, figures)), []).append(printable(name))
    if alike and [len(types) for types in alike.values()] != [len(names)]:  # otherwise the row above shows it
        yield from (_ShareRow(f"  {' '.join(types)}", cells) for cells, types in alike.items())


def _share_of(figures: Figures | None) -> str | None:
    return None if figures is None else percent(figures.correctness)


def _layout(width: int, names: Sequence[str], rows: Sequence[_ShareRow]) -> tuple[Sequence[str], int]:
    """Return the columns' headers, names or numbers, and the gap between columns: the first combination that fits."""
    numbers = [str(number) for number in range(1, len(names) + 1)]
    for headers, gap in ((names, _GAPS[0]), *((numbers, gap) for gap in _GAPS)):
        if len(list(_blocks(width, headers, rows, gap))) == 1:
            return headers, gap
    return numbers, _GAPS[-1]


def _blocks(width: int, headers: Sequence[str], rows: Sequence[_ShareRow], gap: int) -> Iterator[range]:
    """Yield the columns of each table, so that none is wider than the terminal; at least one column each."""
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
