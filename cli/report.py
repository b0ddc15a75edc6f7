"""`opconform report`: reports on runs from their results folders, and merges the shards of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ..generators.source import GeneratedCases
from ..reports.badge import badges_of, check_badge_target, write_badges
from ..reports.junit import check_target, write_junit
from ..reports.markdown import markdown_summary
from ..reports.runs import MergedRun, names_of, put_together
from ..reports.tables import CountedRuns, Tables, clause_text_of, count
from ..reports.terminal import Section, Summary, print_summary
from ..reports.text import printable, write_text
from ..specs.loader import Library

if TYPE_CHECKING:
    from ..reports.site.gather import Gathered


@dataclass(frozen=True)
class ReportOptions:
    """The options of `opconform report`; see its help."""

    folders: Sequence[Path]
    junit: Path | None = None
    markdown: Path | None = None
    json: Path | None = None
    partial: bool = False
    html: Path | None = None
    history: Path | None = None
    before: Sequence[Path] = ()
    badge: Path | None = None
    sections: frozenset[Section] = frozenset()


def run_report(options: ReportOptions, console: Console | None = None) -> int:
    """Show and write the folders' results, and return the exit code that the run would have had.

    Raises OpconformError if the folders do not belong together, or a file cannot be read or written.
    """
    for target in (options.junit, options.markdown, options.json):
        if target is not None:
            check_target(target)
    if options.badge is not None:
        check_badge_target(options.badge)
    wholes = put_together(options.folders, partial=options.partial)
    counted = _counted(options, wholes)
    tables = counted.tables
    library = GeneratedCases().library
    summary = replace(
        tables.summary(counted.exit_code),
        versions={name: version for merged in wholes for name, version in merged.versions.items()},
        clause_text=clause_text_of(library),
        problems=counted.problems,
        folders=options.folders,
        partial=options.partial,
        unfinished=[part.folder for merged in wholes for part in merged.unfinished],
        names=names_of(wholes),
    )
    _write(options, wholes, tables, summary, library)
    console = console or Console()
    written = any((options.html, options.junit, options.markdown, options.badge, options.json))
    print_summary(console, summary, options.sections or ("figures" if written else "brief"))
    if options.html is not None:
        console.print(Text(f"site: {printable(str(options.html / 'index.html'))}"), soft_wrap=True)
    return counted.exit_code


def _counted(options: ReportOptions, wholes: Sequence[MergedRun]) -> CountedRuns | Gathered:
    """Return all results counted; write the site if requested."""
    if options.html is None:
        return count(wholes)
    from ..reports.site.build import write_site  # noqa: PLC0415 - templates take time to import

    return write_site(wholes, options.html, options.history, options.before)


def _write(
    options: ReportOptions, wholes: Sequence[MergedRun], tables: Tables, summary: Summary, library: Library
) -> None:
    terms = tables.terms
    if options.junit is not None:
        folders = [part.folder for merged in wholes for part in merged.parts]
        write_junit(
            folders,
            options.junit,
            demands=terms.demands,
            suspensions=terms.suspensions,
            versions=summary.versions,
            clause_text=summary.clause_text,
            names=summary.names,
        )
    if options.markdown is not None:
        write_text(options.markdown, markdown_summary(summary))
    if options.badge is not None:
        badges = badges_of(tables.tally, summary.versions, library.version_counts(), summary.names)
        write_badges(badges, options.badge)
    if options.json is not None:
        content = _content(wholes, tables, summary)
        write_text(options.json, json.dumps(content, allow_nan=False, indent=2) + "\n")


def _content(wholes: Sequence[MergedRun], tables: Tables, summary: Summary) -> dict[str, Any]:
    first = wholes[0].parts[0].run_json
    kept = (
        "suite",
        "selection",
        "strength",
        "draws",
        "seed",
        "required",
        "profile",
        "arithmetic",
        "errata",
        "disputed",
    )
    return {
        "exit_code": summary.exit_code,
        "backends": dict(summary.versions),
        **{name: first.get(name) for name in kept},
        "runs": [_run(merged) for merged in wholes],
        **tables.to_dict(summary.problems),
        "behaviours": tables.behaviours.to_dict(),
        "failures": [
            {
                "outcome": str(alike.first.outcome),
                "backend": alike.first.backend,
                "first": alike.first.case,
                "detail": alike.first.detail,
                "count": alike.count,
                "operator_versions": list(alike.operator_versions),
            }
            for alike in tables.failures.worst()
        ],
    }


def _run(merged: MergedRun) -> dict[str, Any]:
    return {
        "backends": list(merged.versions),
        "shards": len(merged.parts) + len(merged.missing) if merged.parts[0].shard else None,
        "missing": [str(shard) for shard in merged.missing],
        "unfinished": len(merged.unfinished),
        "started": min(str(part.run_json.get("started")) for part in merged.parts),
    }
