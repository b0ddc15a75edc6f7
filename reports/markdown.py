"""The summary of a run as a short Markdown page, for a job's page on a CI server, worst first."""

from __future__ import annotations

from collections.abc import Iterator

from .tally import badness
from .terminal import Summary, ending
from .text import counted, first_line, markdown_code, markdown_reproduction, markdown_text, percent

_FAILURES = 15
_OPERATORS = 20


def markdown_summary(summary: Summary) -> str:
    """Return the page."""
    words, _ = ending(summary)
    cases = counted(summary.tally.figures().cases, "result")
    lines = [f"## opconform: {markdown_text(words)}", "", *_backends(summary), "", *_problems(summary)]
    lines += [*_failures(summary), *_operators(summary), f"{cases}.", ""]
    return "\n".join(lines)


def _backends(summary: Summary) -> Iterator[str]:
    yield "| backend | correctness | support | refusal | failures |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    tally = summary.tally
    worst = sorted(tally.backends, key=lambda b: (tally.figures(b).correctness or 0, b))
    for backend in worst:
        figures = tally.figures(backend)
        shares = " | ".join(percent(share) for share in (figures.correctness, figures.support, figures.refusal))
        yield f"| {markdown_text(summary.backend(backend))} | {shares} | {figures.failed:,} |"


def _problems(summary: Summary) -> Iterator[str]:
    yield from (f"- {markdown_text(problem)}" for problem in summary.problems)
    yield from (
        f"- suspended: {counted(count, 'result')}, {markdown_text(reason)}"
        for reason, count in summary.tally.suspensions.items()
    )
    if summary.problems or summary.tally.suspensions:
        yield ""


def _failures(summary: Summary) -> Iterator[str]:
    groups = sorted(summary.failures.worst(), key=lambda alike: (badness(alike.first), -alike.count, alike.first.case))
    if not groups:
        return
    yield "| failure | times | first case | what |"
    yield "| --- | ---: | --- | --- |"
    several = len(summary.tally.backends) > 1
    for alike in groups[:_FAILURES]:
        first = alike.first
        on = f" on {markdown_text(summary.name(first.backend))}" if several else ""
        detail = markdown_text(first_line(first.detail))
        yield f"| {first.outcome}{on} | {alike.count:,} | {markdown_code(first.case)} | {detail} |"
    yield ""
    if len(groups) > _FAILURES:
        yield f"And {counted(len(groups) - _FAILURES, 'more kind')} of failures."
        yield ""
    yield from markdown_reproduction(groups[0].first)


def _operators(summary: Summary) -> Iterator[str]:
    """Yield a table of the operator versions that are not completely right."""
    tally = summary.tally
    rows = [
        (figures.correctness, operator_version, backend, figures)
        for backend in tally.backends
        for operator_version, figures in tally.operator_versions(backend).items()
        if figures.correctness is not None and figures.correctness < 1
    ]
    if not rows:
        return
    yield "| operator version | backend | correctness | support |"
    yield "| --- | --- | ---: | ---: |"
    for share, operator_version, backend, figures in sorted(rows, key=lambda row: row[:3])[:_OPERATORS]:
        shares = f"{percent(share)} | {percent(figures.support)}"
        yield f"| {markdown_text(operator_version)} | {markdown_text(summary.name(backend))} | {shares} |"
    yield ""
    if len(rows) > _OPERATORS:
        yield f"And {len(rows) - _OPERATORS:,} more."
        yield ""
