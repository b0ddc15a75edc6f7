"""Commands about cases as files: `export`, `verify`, `corpus-diff`, `lock`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .common import DRAWS, SEED, SELECT, SPECS, STRENGTH, SUITE, Examples, clear_errors, selection_of, told


@click.command(
    cls=Examples,
    examples="opconform export --format onnx --out corpus\n"
    "opconform export --format npz --pack corpus.zip --select 'openvino/*'",
)
@click.option("--format", type=click.Choice(["onnx", "npz"]), required=True, help="ONNX's test data, or NumPy arrays.")
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="The corpus's folder: new or empty.")
@click.option("--pack", metavar="FILE", type=click.Path(path_type=Path), help="The corpus as one zip file.")
@SELECT
@STRENGTH
@DRAWS
@SEED
@SUITE
@SPECS
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@clear_errors
def export(as_json: bool, **options: Any) -> None:
    """Write cases to files that any language reads, with a manifest: a corpus."""
    from .export import ExportOptions, export_lines  # noqa: PLC0415
    from .export import export as write  # noqa: PLC0415

    written = write(ExportOptions(selection_of(options), **options))
    for line in export_lines(written, as_json=as_json):
        click.echo(line)


@click.command(
    cls=Examples,
    examples="opconform verify corpus\nopconform verify corpus.zip\nopconform verify submission.zip --key public.pem",
)
@click.argument("path", metavar="DIR|FILE", type=click.Path(path_type=Path))
@click.option(
    "--key", metavar="PUB.pem", type=click.Path(path_type=Path), help="Whose signature a submission must have."
)
@clear_errors
def verify(path: Path, key: Path | None) -> int:
    """Check that a corpus is whole, or that the figures of a submission hold; exits 1 if not.

    What is missing, added or changed is named. A submission is judged again, by this version's suite.
    """
    from .submission import is_submission, verify_submission  # noqa: PLC0415

    if is_submission(path):
        return verify_submission(path, key)
    if key is not None:
        raise click.UsageError(f"--key: {path} is no submission; only these are signed.")
    from .corpora import verify as verified  # noqa: PLC0415

    return told(*verified(path))


@click.command(
    "corpus-diff",
    cls=Examples,
    examples="opconform corpus-diff corpus-0.1.0.zip corpus\nopconform corpus-diff old/cases/manifests cases/manifests",
)
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@clear_errors
def corpus_diff(old: Path, new: Path, as_json: bool) -> int:
    """List added, removed and changed cases of two corpora or locks; a difference exits 1."""
    from .corpora import corpus_difference  # noqa: PLC0415

    return told(*corpus_difference(old, new, as_json=as_json))


@click.command(cls=Examples, examples="opconform lock --check\nopconform lock")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the lock is not that of the suite.")
@click.option("--folder", metavar="DIR", type=click.Path(path_type=Path), help="Another folder of locks.")
@click.option("--changelog", metavar="FILE", type=click.Path(path_type=Path), help="Another changelog.")
@SPECS
@clear_errors
def lock(**options: Any) -> int:
    """Write the digests of the suite's cases to cases/manifests, where a changed expectation shows in review.

    A changed expectation needs a line in the changelog, and a version that says so.
    """
    from .locking import LockOptions  # noqa: PLC0415
    from .locking import lock as locked  # noqa: PLC0415

    return told(*locked(LockOptions(**options)))
