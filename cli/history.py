"""Commands about change: `compare` two runs, and the `history` of many."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import click

from .common import SELECT, Examples, clear_errors

_DB = click.option(
    "--db",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("opconform-history.duckdb"),
    show_default=True,
    help="The history's database.",
)
_BACKEND = click.option("--backend", metavar="GLOB", default="*", help="These backends alone.")
_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.command(
    cls=Examples,
    examples="opconform compare results-of-yesterday results\n"
    "opconform compare opconform-history.duckdb:last results --markdown changes.md --fail-on regression\n"
    "opconform compare opconform-history.duckdb:12 opconform-history.duckdb:last --json changes.json",
)
@click.argument("old")
@click.argument("new")
@click.option("--json", metavar="FILE", type=click.Path(path_type=Path), help="Write all of it there as JSON.")
@click.option("--markdown", metavar="FILE", type=click.Path(path_type=Path), help="Write a short page there.")
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "change"]),
    help="Exit 1 if a case that passed fails now, or if anything changed.",
)
@click.option("--partial", is_flag=True, help="Go on where shards are missing or unfinished.")
@clear_errors
def compare(old: str, new: str, *, json: Path | None, markdown: Path | None, fail_on: str | None, partial: bool) -> int:
    """Show what changed between two runs: regressions, fixes, new cases and gone ones, other answers to silences.

    OLD and NEW are each a results folder, a folder of results folders (the shards of a run, runs of several backends),
    or a run of a history: FILE:RUN, FILE:last, FILE:last-1. Backends are compared with themselves, by name. Where
    inputs or expectation of a case changed, its new outcome is told apart. Exits 0 unless --fail-on says otherwise.
    """
    from json import dumps  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415

    from ..reports.history import compare as comparing  # noqa: PLC0415
    from ..reports.junit import check_target  # noqa: PLC0415
    from ..reports.text import write_text  # noqa: PLC0415

    for target in filter(None, (json, markdown)):
        check_target(target)
    with comparing.opened(old, partial=partial) as one, comparing.opened(new, partial=partial) as other:
        comparison = comparing.compared(one, other)
    if json is not None:
        write_text(json, dumps(comparing.comparison_json(comparison), allow_nan=False, indent=2) + "\n")
    if markdown is not None:
        write_text(markdown, comparing.comparison_markdown(comparison))
    comparing.print_comparison(Console(), comparison)
    return comparison.exit_code(fail_on)


class _ExamplesOfGroup(Examples, click.Group):
    """A group of commands whose help ends with examples."""


@click.group(
    cls=_ExamplesOfGroup,
    examples="opconform history add results\nopconform history show --last 14\nopconform history case CASE_ID",
)
def history() -> None:
    """Keep what runs found over time, in a database of its own."""


@history.command(
    cls=Examples,
    examples="opconform history add results\n"
    "opconform history add shard-1 shard-2 shard-3 --label nightly\n"
    "opconform history add of-onnxruntime of-my-backend --db history.duckdb",
)
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@_DB
@click.option("--label", metavar="TEXT", help="What to call the run.")
@click.option("--partial", is_flag=True, help="Go on where shards are missing or unfinished.")
@clear_errors
def add(folders: tuple[Path, ...], db: Path, label: str | None, partial: bool) -> None:
    """Take in a run: a results folder, its shards, or those of several backends.

    All of it is taken in, or nothing. A run that is there already is left as it is.
    """
    from ..reports.history.adding import add as take_in  # noqa: PLC0415

    for line in take_in(db, folders, label, partial=partial):
        click.echo(line)


@history.command(
    cls=Examples,
    examples="opconform history show --last 14\n"
    "opconform history show --backend 'onnxruntime*' --select 'onnx/ReduceMean-*'\n"
    "opconform history show --json --db history.duckdb",
)
@_DB
@_BACKEND
@SELECT
@click.option("--last", metavar="N", type=click.IntRange(1), help="The last N runs of each backend.")
@_JSON
@clear_errors
def show(db: Path, **options: Any) -> None:
    """Show the runs by backend: date, versions, figures, and what changed since the run before.

    With --select the figures and changes are those of the selected cases. A version with a star is another than before.
    """
    from ..reports.history.show import show as shown  # noqa: PLC0415

    shown(db, **options)


@history.command(
    cls=Examples,
    examples="opconform history case onnx/ReduceMean-18/int64/7/axes=0/large\n"
    "opconform history case onnx/ReduceMean-18/int64/7/axes=0/large --backend onnxruntime",
)
@click.argument("case_id", metavar="CASE_ID")
@_DB
@_BACKEND
@_JSON
@clear_errors
def case(case_id: str, db: Path, **options: Any) -> None:
    """Show how one case was judged over time: since when it fails, on which version."""
    from ..reports.history.show import show_case  # noqa: PLC0415

    show_case(case_id, db, **options)


@history.command(
    cls=Examples, examples="opconform history prune --keep 90\nopconform history prune --before 2026-01-01"
)
@_DB
@click.option("--keep", metavar="N", type=click.IntRange(1), help="The last N runs of each backend stay.")
@click.option("--before", metavar="DATE", type=click.DateTime(["%Y-%m-%d"]), help="Runs from that day on stay.")
@clear_errors
def prune(db: Path, keep: int | None, before: dt.datetime | None) -> None:
    """Forget old runs; the last one of each backend stays."""
    from ..reports.history.adding import prune as forget  # noqa: PLC0415

    if keep is None and before is None:
        raise click.UsageError("Say what stays: --keep N, or --before DATE.")
    click.echo(forget(db, keep=keep, before=f"{before:%Y-%m-%d}" if before else None))
