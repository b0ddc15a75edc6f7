"""`opconform report`: what runs have found, read from their results folders, with the shards of a run put together."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from ..cases.errors import OpconformError
from ..generators.source import GeneratedCases
from .figures import OUR_SIDE_FAILED
from .folder import INTERRUPTED
from .junit import check_target, write_junit
from .markdown import markdown_summary
from .merge import Whole, put_together
from .reading import Done
from .resume import take_kept
from .tables import Tables, Terms, clause_text_of
from .terminal import Summary, print_summary
from .text import counted, deaths_told


@dataclass(frozen=True)
class ReportOptions:
    """The options of `opconform report`; see its help."""

    folders: Sequence[Path]
    junit: Path | None = None
    markdown: Path | None = None
    json: Path | None = None
    partial: bool = False


def run_report(options: ReportOptions, console: Console | None = None) -> int:
    """Show and write what the folders hold, and return the exit code that the run would have had.

    Raises OpconformError if the folders do not belong together, or a file cannot be read or written.
    """
    for target in (options.junit, options.markdown, options.json):
        if target is not None:
            check_target(target)
    wholes = put_together(options.folders, partial=options.partial)
    tables, problems = _gathered(wholes)
    lost = [line for whole in wholes for line in _lost(whole, tables)]
    unfinished = any(whole.unfinished for whole in wholes)
    code = max(tables.tally.exit_code(len(problems)), OUR_SIDE_FAILED if lost else 0, INTERRUPTED if unfinished else 0)
    summary = tables.summary(
        code,
        versions={name: version for whole in wholes for name, version in whole.versions.items()},
        clause_text=clause_text_of(GeneratedCases().library),
        problems=[*problems, *lost, *deaths_told(_deaths(wholes)), *_left_out(wholes)],
        seconds=None,
        folder=", ".join(map(str, options.folders)),
    )
    _write(options, wholes, tables, summary)
    print_summary(console or Console(), summary)
    return code


def _gathered(wholes: Sequence[Whole]) -> tuple[Tables, list[str]]:
    """Return all results counted, and the problems of the waivers of each run."""
    terms = wholes[0].parts[0].terms
    tables = Tables.of(terms, [name for whole in wholes for name in whole.versions], dt.date.min)
    problems = []
    for whole in wholes:
        part = whole.parts[0]
        own = Terms(terms.demands, terms.suspensions, part.terms.waivers, terms.declaration)
        tables.waivers = own.waivers.for_run(part.begun.started.date(), terms.demands)
        _count(whole, tables)
        problems += tables.waivers.problems(partial=whole.partial)
    return tables, problems


def _count(whole: Whole, tables: Tables) -> None:
    done = Done()
    for part in whole.parts:
        done.update(take_kept(part.folder, tables).done)
    if not done.settle():
        folders = ", ".join(str(part.folder) for part in whole.parts)
        raise OpconformError(f"{folders}: have results of the same cases, so they are not shards of one run")


def _lost(whole: Whole, tables: Tables) -> list[str]:
    """Return what tells of cases that have no result though every shard is finished: our side has lost them."""
    count = sum(part.planned for part in whole.parts)
    missing = count - sum(tables.tally.figures(name).cases for name in whole.versions)
    if whole.unfinished or not missing:
        return []
    return [f"{' and '.join(whole.versions)}: {counted(missing, 'case')} without a result"]


def _deaths(wholes: Sequence[Whole]) -> list[dict[str, Any]]:
    return [told for whole in wholes for part in whole.parts for told in part.begun.deaths]


def _left_out(wholes: Sequence[Whole]) -> list[str]:
    return [
        *(f"unfinished: {part.folder} ({part.told.get('status')})" for whole in wholes for part in whole.unfinished),
        *(f"missing: {', '.join(f'shard {shard}' for shard in w.missing)}" for w in wholes if w.missing),
    ]


def _write(options: ReportOptions, wholes: Sequence[Whole], tables: Tables, summary: Summary) -> None:
    terms = tables.terms
    if options.junit is not None:
        folders = [part.folder for whole in wholes for part in whole.parts]
        write_junit(
            folders,
            options.junit,
            demands=terms.demands,
            suspensions=terms.suspensions,
            versions=summary.versions,
        )
    if options.markdown is not None:
        _write_text(options.markdown, markdown_summary(summary))
    if options.json is not None:
        told = _told(wholes, tables, summary)
        _write_text(options.json, json.dumps(told, allow_nan=False, indent=2) + "\n")


def _write_text(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OpconformError(f"{target}: cannot be written: {error.strerror}") from None


def _told(wholes: Sequence[Whole], tables: Tables, summary: Summary) -> dict[str, Any]:
    first = wholes[0].parts[0].told
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
        "runs": [_run(whole) for whole in wholes],
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
            for alike in tables.failures.first(tables.failures.kinds)
        ],
    }


def _run(whole: Whole) -> dict[str, Any]:
    return {
        "backends": list(whole.versions),
        "shards": len(whole.parts) + len(whole.missing) if whole.parts[0].shard else None,
        "missing": [str(shard) for shard in whole.missing],
        "unfinished": len(whole.unfinished),
        "started": min(str(part.told.get("started")) for part in whole.parts),
    }
