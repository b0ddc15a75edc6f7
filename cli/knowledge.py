"""Commands about what the spec files say: `audit`, `diff`, `page`, `scaffold`, and `mutants` about the suite itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .common import SELECT, SPECS, STRENGTH, SUITE, Examples, clear_errors, selection_of


@click.command(cls=Examples, examples="opconform audit onnx\nopconform audit --json\nopconform audit openvino")
@click.argument("standard", metavar="[STANDARD]", default="onnx")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option(
    "--markdown", metavar="FILE", type=click.Path(path_type=Path), help="Write coverage as a page of the docs."
)
@SPECS
@clear_errors
def audit(standard: str, as_json: bool, markdown: Path | None, specs: Path | None) -> int:
    """Hold the spec files against the standard's own schemas or library; a difference exits 1. Then coverage.

    STANDARD is onnx (the default), openvino or onednn; the last two ask a library, which has to be installed.
    """
    from .auditing import audited  # noqa: PLC0415

    lines, code = audited(standard, specs, as_json=as_json, markdown=markdown)
    for line in lines:
        click.echo(line)
    return code


@click.command(
    cls=Examples,
    examples="opconform diff onnx/ReduceMean-13 openvino/ReduceMean-1\n"
    "opconform diff onnx/ReduceMean-13 onnx/ReduceMean-18 --json",
)
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@SPECS
@clear_errors
def diff(one: str, other: str, as_json: bool, specs: Path | None) -> None:
    """Show how two operator versions differ: signatures, and the smallest inputs that they answer differently.

    A and B are versions of one standard or of two, as in onnx/ReduceMean-13 and openvino/ReduceMean-1.
    """
    from rich.console import Console  # noqa: PLC0415

    from ..reports.difference import difference_json, difference_report  # noqa: PLC0415

    if as_json:
        click.echo(difference_json(one, other, specs))
    else:
        difference_report(Console(), one, other, specs)


@click.command(
    cls=Examples,
    examples="opconform page onnx/ReduceMean openvino/ReduceMean onednn/ReduceMean --title 'The mean' > mean.md",
)
@click.argument("operators", metavar="OPERATOR...", nargs=-1, required=True)
@click.option("--title", metavar="TEXT", help="The page's title.  [default: the operators]")
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Write it there instead of printing it.")
@SPECS
@clear_errors
def page(operators: tuple[str, ...], title: str | None, out: Path | None, specs: Path | None) -> None:
    """Write a page of documentation (Markdown) about operators, made from their spec files.

    Signatures, rules and silences of every version, and where each version differs from the one before and the newest
    versions of the operators from each other.
    """
    from ..reports.difference import page as page_of  # noqa: PLC0415
    from ..reports.text import write_text  # noqa: PLC0415

    text = page_of(operators, title or ", ".join(operators), specs)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_text(out, text)


@click.command(cls=Examples, examples="opconform scaffold onnx/Add > specs/onnx/Add.yaml")
@click.argument("operator", metavar="OP")
@clear_errors
def scaffold(operator: str) -> None:
    """Write the signature part of a new spec file from the standard's schema."""
    from ..specs.scaffold import scaffold as scaffolded  # noqa: PLC0415

    click.echo(scaffolded(operator), nl=False)


@click.command(
    cls=Examples,
    examples="opconform mutants\n"
    "opconform mutants --select 'onnx/ReduceMean-18' --html matrix.html --json matrix.json\n"
    "opconform mutants --suite smoke",
)
@SELECT
@STRENGTH
@SUITE
@SPECS
@click.option("--jobs", metavar="N", type=click.IntRange(1), help="Worker processes.  [default: number of cores]")
@click.option(
    "--record",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Make the matrix of what has changed since FILE was written, and write it anew.",
)
@click.option("--json", metavar="FILE", type=click.Path(path_type=Path), help="Write the matrix as JSON.")
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="Write the matrix as one HTML page.")
@click.option("--markdown", metavar="FILE", type=click.Path(path_type=Path), help="Write it as a page of the docs.")
@click.option(
    "--write-smoke",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a small set of cases that kills all.",
)
@clear_errors
def mutants(**options: Any) -> int:
    """Test the suite itself: wrong implementations that it must expose, right ones that it must not blame.

    Exits 1 if a right one is blamed, or a wrong one survives that is not in the record as such.
    """
    from .mutation import MutationOptions, run_mutants  # noqa: PLC0415

    return run_mutants(MutationOptions(selection_of(options), **options))
