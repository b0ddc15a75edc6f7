"""Commands about results folders: `report`, `rejudge`, `submit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .common import SPECS, Examples, clear_errors


@click.command(
    cls=Examples,
    examples="opconform report results\n"
    "opconform report shard-1 shard-2 shard-3 --junit junit.xml --markdown summary.md\n"
    "opconform report of-onnxruntime of-my-backend --json report.json\n"
    "opconform report of-onnxruntime of-my-backend --html site",
)
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit XML there.")
@click.option("--markdown", metavar="FILE", type=click.Path(path_type=Path), help="Write a short page there.")
@click.option("--json", metavar="FILE", type=click.Path(path_type=Path), help="Write all of it there as JSON.")
@click.option(
    "--badge",
    metavar="FILE|DIR",
    type=click.Path(path_type=Path),
    help="Write a badge: .svg, or .json for shields.io; FILE may hold {backend} and {standard}, a folder gets all.",
)
@click.option(
    "--html",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write a site there, which opens from a file: a new or an empty folder, or an earlier site.",
)
@click.option(
    "--history",
    metavar="DB",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Show the trend of this history in the site.",
)
@click.option("--partial", is_flag=True, help="Go on where shards are missing or unfinished.")
@clear_errors
def report(**options: Any) -> int:
    """Show what runs have found: those of several backends side by side, and the shards of a run put together.

    DIR is a results folder. Exits as the run would have: 2 if shards are missing or do not belong together, 130 if a
    run was interrupted.
    """
    from .report import ReportOptions, run_report  # noqa: PLC0415

    if options["history"] is not None and options["html"] is None:
        raise click.UsageError("--history: shown in the site of --html.")
    return run_report(ReportOptions(**options))


@click.command(
    cls=Examples,
    examples="opconform rejudge results --out rejudged\n"
    "opconform rejudge results --errata errata.yaml --require accumulator=wide",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Results folder: new or empty.")
@SPECS
@click.option("--waivers", metavar="FILE", type=click.Path(path_type=Path), help="Other known failures (YAML).")
@click.option("--errata", metavar="FILE", type=click.Path(path_type=Path), help="Other errata than the suite's.")
@click.option("--profile", metavar="FILE", type=click.Path(path_type=Path), help="Another profile (YAML).")
@click.option(
    "--require", "requires", metavar="SILENCE=OPTION", multiple=True, help="Fail any other answer to a silence."
)
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit XML there too.")
@clear_errors
def rejudge(**options: Any) -> int:
    """Judge a run again by this version's expectations and errata, without the device.

    DIR is a results folder; the answers that it keeps (`run --keep-outputs all`) and refusals are judged, the others
    stay as they are where nothing that decides them has changed, and are listed as to be run again where it has.
    Requirements, profile and waivers are those of the run unless others are given. Exits as the run would.
    """
    from .rejudge import RejudgeOptions, run_rejudge  # noqa: PLC0415

    return run_rejudge(RejudgeOptions(**options), ["opconform", *sys.argv[1:]])


@click.command(
    cls=Examples,
    examples="opconform submit results --out submission.zip\n"
    "opconform submit results --out submission.zip --sign key.pem",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), required=True, help="The archive: a new file.")
@click.option("--sign", "key", metavar="KEY.pem", type=click.Path(path_type=Path), help="A private key (Ed25519).")
@clear_errors
def submit(folder: Path, out: Path, key: Path | None) -> None:
    """Pack a results folder into one archive with its digest, which others judge again with `opconform verify`."""
    from .submission import submit as submitted  # noqa: PLC0415

    for line in submitted(folder, out, key):
        click.echo(line)
