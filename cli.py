"""The command line: words and options; what they do is in the packages below."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import click

P = ParamSpec("P")

_SELECT = click.option(
    "--select",
    "globs",
    metavar="GLOB",
    multiple=True,
    help="Case ids or operator versions, as in 'onnx/ReduceMean-13' or 'onnx/Mean-*/float16/*'. Repeatable.",
)
_STRENGTH = click.option(
    "--strength", metavar="T", default="2", show_default=True, help="Strength of the covering array, or full."
)
_DRAWS = click.option(
    "--draws", metavar="N", type=click.IntRange(1), default=1, show_default=True, help="Draws of each drawn fill."
)
_SEED = click.option(
    "--seed", metavar="N", type=click.IntRange(0), default=0, show_default=True, help="Varies all drawn inputs."
)
_SUITE = click.option(
    "--suite", metavar="NAME", help="A list of cases by name in place of the plan, as in smoke. --select narrows it."
)
_SPECS = click.option(
    "--specs",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Another folder of spec files than the package's.",
)


def _finite(_context: click.Context, _option: click.Parameter, value: float) -> float:
    """Return a number that is one: a range lets NaN and infinity pass."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number of seconds.")
    return value


def _clear_errors(command: Callable[P, int | None]) -> Callable[P, None]:
    """Print what a user can mend in one line and exit 2; exit with what the command returns."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        from .cases.errors import OpconformError  # noqa: PLC0415 - imports are late, so that --help is fast
        from .cases.runner import NotInstalled  # noqa: PLC0415

        try:
            code = command(*args, **kwargs)
        except (OpconformError, NotInstalled) as error:
            click.echo(f"opconform: {error}", err=True)
            code = 2
        except BrokenPipeError:  # `| head` has seen enough
            sys.stderr.close()
            code = 0
        sys.exit(code or 0)

    return guarded


class _Examples(click.Command):
    """A command whose help ends with examples, one a line."""

    def __init__(self, *args: Any, examples: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self._examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are."""
        if self._examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self._examples.splitlines()))
        super().format_epilog(ctx, formatter)


class _Interruptible(click.Group):
    """A group whose commands end with 130 when interrupted, where click's own code would say non-conformant."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("opconform: interrupted", err=True)
            sys.exit(130)


@click.group(cls=_Interruptible, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="opconform")
def main() -> None:
    """Check implementations of tensor operators against the standards, version by version."""


@main.command(
    cls=_Examples,
    examples="opconform run onnxruntime\n"
    "opconform run onnxruntime onnx-reference --select 'onnx/ReduceMean-*' --out results\n"
    "opconform run python:my_backend:Backend --require accumulator=wide\n"
    "opconform run onnxruntime --shard 2/8 --out shard-2\n"
    "opconform run onnxruntime --corpus corpus.zip\n"
    "opconform run --resume shard-2",
)
@click.argument("backends", metavar="BACKEND...", nargs=-1)
@_SELECT
@_STRENGTH
@_DRAWS
@_SEED
@_SUITE
@_SPECS
@click.option("--jobs", metavar="N", type=click.IntRange(1), help="Worker processes.  [default: number of cores]")
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(0.001),
    default=10.0,
    show_default=True,
    callback=_finite,
    help="Seconds that a case may run; preparing its program has six times as long.",
)
@click.option("--memory", metavar="MIB", type=click.IntRange(64), help="Memory limit of a worker process, in MiB.")
@click.option(
    "--isolation",
    type=click.Choice(["program", "case"]),
    default="program",
    show_default=True,
    help="What shares a process: programs with all their cases, or nothing: each case has its own.",
)
@click.option("--waivers", metavar="FILE", type=click.Path(path_type=Path), help="Known failures (YAML).")
@click.option("--errata", metavar="FILE", type=click.Path(path_type=Path), help="Other errata than the suite's.")
@click.option("--profile", metavar="FILE", type=click.Path(path_type=Path), help="What the product promises (YAML).")
@click.option("--arithmetic", metavar="FILE", type=click.Path(path_type=Path), help="Declared arithmetic (YAML).")
@click.option(
    "--require", "requires", metavar="SILENCE=OPTION", multiple=True, help="Fail any other answer to a silence."
)
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Results folder: new or empty.")
@click.option(
    "--corpus",
    metavar="DIR|FILE.zip",
    type=click.Path(path_type=Path, exists=True),
    help="Judge from files alone: a corpus, or folders in the layout of ONNX's backend tests.",
)
@click.option("--shard", metavar="I/N", help="The I-th of N parts alone; `opconform report` puts them together.")
@click.option(
    "--resume",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Go on with the run whose results folder this is: BACKEND and other options may be left out.",
)
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit XML there too.")
@click.option(
    "--keep-outputs",
    type=click.Choice(["none", "digest", "failures", "all"]),
    default="failures",
    show_default=True,
    help="Which answers stay in the results folder, with their cases' certificates; digest: sha256 alone, of all.",
)
@click.option(
    "--executor",
    metavar="WHERE",
    default="local",
    show_default=True,
    help="Where cases run: local, dask (a cluster on this machine), or dask:tcp://host:8786.",
)
@click.option(
    "--resource",
    "resources",
    metavar="NAME=NUMBER",
    multiple=True,
    help="What a worker of the cluster must have for a task, as in npu=1. Repeatable.",
)
@click.option("--quiet", "-q", is_flag=True, help="No live progress.")
@_clear_errors
def run(**options: Any) -> int:
    """Run the suite against backends, show what fails, and write a results folder.

    Exits 0 if all backends conform, 1 if one does not or a waiver is stale, 2 for wrong usage or if nothing was judged,
    3 if our own side failed, 130 if interrupted (what was judged is kept).
    """
    from .cases.selection import shard_of  # noqa: PLC0415
    from .reports.options import RunOptions  # noqa: PLC0415
    from .reports.session import run_session  # noqa: PLC0415

    if not options["backends"] and options["resume"] is None:
        raise click.UsageError("Missing argument 'BACKEND...'.")
    given = _given()
    selection = _selection(options)
    shard = None if options["shard"] is None else shard_of(options["shard"])
    made = RunOptions(selection=selection, given=given, **{**options, "shard": shard})
    return run_session(made, ["opconform", *sys.argv[1:]])


def _given() -> frozenset[str]:
    """Return the names of the options that stand on the command line."""
    context = click.get_current_context()
    told = click.core.ParameterSource.COMMANDLINE
    return frozenset(name for name in context.params if context.get_parameter_source(name) is told)


def _selection(options: dict[str, Any]) -> Any:
    """Take the options that select cases out of `options`."""
    from .cases.selection import Selection, strength_of  # noqa: PLC0415

    strength = strength_of(options.pop("strength"))
    drawn = options.pop("draws", 1), options.pop("seed", 0)
    return Selection(tuple(options.pop("globs")), strength, *drawn, suite=options.pop("suite", None))


@main.command(
    "list",
    cls=_Examples,
    examples="opconform list operators\nopconform list cases --select 'onnx/Mean-13' --json\nopconform list backends",
)
@click.argument("what", type=click.Choice(["operators", "cases", "backends"]), default="operators")
@_SELECT
@_STRENGTH
@_DRAWS
@_SEED
@_SUITE
@_SPECS
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@_clear_errors
def list_(what: str, specs: Path | None, as_json: bool, **options: Any) -> None:
    """List operator versions, cases or backends."""
    from .reports.listing import listed  # noqa: PLC0415

    for line in listed(what, specs, _selection(options), as_json=as_json):
        click.echo(line)


@main.command(
    cls=_Examples,
    examples="opconform show onnx/ReduceMean-18/int64/1/axes=0/beyond-2^53\n"
    "opconform show --script onnx/ReduceMean-18/int64/1/axes=0/beyond-2^53 | python\n"
    "opconform show --script openvino/ReduceMean-1/float32,int64/3x2x2/axes=2,0/ramp/axes-unsorted > reproduce.py",
)
@click.argument("case_id", metavar="CASE_ID")
@click.option(
    "--script", is_flag=True, help="A script that reproduces the case with the standard's own library and NumPy alone."
)
@click.option("--arithmetic", metavar="FILE", type=click.Path(path_type=Path), help="Declared arithmetic (YAML).")
@click.option("--certificate", "as_certificate", is_flag=True, help="What is expected and why, as JSON to check it by.")
@_SPECS
@_clear_errors
def show(case_id: str, script: bool, arithmetic: Path | None, as_certificate: bool, specs: Path | None) -> None:
    """Show one case in full: inputs, what is expected and why, clauses."""
    from .reports.certificates import certificate_text  # noqa: PLC0415
    from .reports.lookup import case_of  # noqa: PLC0415
    from .reports.script import reproduction  # noqa: PLC0415
    from .reports.show import case_text  # noqa: PLC0415

    source, case = case_of(case_id, specs, arithmetic)
    if script and as_certificate:
        raise click.UsageError("--script and --certificate: one at a time.")
    if as_certificate:
        click.echo(certificate_text(source, case))
    else:
        click.echo(reproduction(case) if script else case_text(source, case))


@main.command(cls=_Examples, examples="opconform audit onnx\nopconform audit --json\nopconform audit openvino")
@click.argument("standard", metavar="[STANDARD]", default="onnx")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@_SPECS
@_clear_errors
def audit(standard: str, as_json: bool, specs: Path | None) -> int:
    """Hold the spec files against the standard's own schemas or library; a difference exits 1. Then coverage.

    STANDARD is onnx (the default), openvino or onednn; the last two ask a library, which has to be installed.
    """
    from .reports.auditing import audited  # noqa: PLC0415

    lines, code = audited(standard, specs, as_json=as_json)
    for line in lines:
        click.echo(line)
    return code


@main.command(
    cls=_Examples,
    examples="opconform diff onnx/ReduceMean-13 openvino/ReduceMean-1\n"
    "opconform diff onnx/ReduceMean-13 onnx/ReduceMean-18 --json",
)
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@_SPECS
@_clear_errors
def diff(one: str, other: str, as_json: bool, specs: Path | None) -> None:
    """Show how two operator versions differ: signatures, and the smallest inputs that they answer differently.

    A and B are versions of one standard or of two, as in onnx/ReduceMean-13 and openvino/ReduceMean-1.
    """
    from rich.console import Console  # noqa: PLC0415

    from .reports.difference import difference_json, difference_report  # noqa: PLC0415

    if as_json:
        click.echo(difference_json(one, other, specs))
    else:
        difference_report(Console(), one, other, specs)


@main.command(
    cls=_Examples,
    examples="opconform page onnx/ReduceMean openvino/ReduceMean onednn/ReduceMean --title 'The mean' > mean.md",
)
@click.argument("operators", metavar="OPERATOR...", nargs=-1, required=True)
@click.option("--title", metavar="TEXT", help="The page's title.  [default: the operators]")
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Write it there instead of printing it.")
@_SPECS
@_clear_errors
def page(operators: tuple[str, ...], title: str | None, out: Path | None, specs: Path | None) -> None:
    """Write a page of documentation (Markdown) about operators, made from their spec files.

    Signatures, rules and silences of every version, and where each version differs from the one before and the newest
    versions of the operators from each other.
    """
    from .reports.page import page as page_of  # noqa: PLC0415
    from .reports.page import write_page  # noqa: PLC0415

    text = page_of(operators, title or ", ".join(operators), specs)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_page(text, out)


@main.command(
    cls=_Examples,
    examples="opconform report results\n"
    "opconform report shard-1 shard-2 shard-3 --junit junit.xml --markdown summary.md\n"
    "opconform report of-onnxruntime of-my-backend --json report.json",
)
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit XML there.")
@click.option("--markdown", metavar="FILE", type=click.Path(path_type=Path), help="Write a short page there.")
@click.option("--json", metavar="FILE", type=click.Path(path_type=Path), help="Write all of it there as JSON.")
@click.option("--partial", is_flag=True, help="Go on where shards are missing or unfinished.")
@_clear_errors
def report(**options: Any) -> int:
    """Show what runs have found: those of several backends side by side, and the shards of a run put together.

    DIR is a results folder. Exits as the run would have: 2 if shards are missing or do not belong together, 130 if a
    run was interrupted.
    """
    from .reports.report import ReportOptions, run_report  # noqa: PLC0415

    return run_report(ReportOptions(**options))


@main.command(
    cls=_Examples,
    examples="opconform rejudge results --out rejudged\n"
    "opconform rejudge results --errata errata.yaml --require accumulator=wide",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Results folder: new or empty.")
@_SPECS
@click.option("--waivers", metavar="FILE", type=click.Path(path_type=Path), help="Other known failures (YAML).")
@click.option("--errata", metavar="FILE", type=click.Path(path_type=Path), help="Other errata than the suite's.")
@click.option("--profile", metavar="FILE", type=click.Path(path_type=Path), help="Another profile (YAML).")
@click.option(
    "--require", "requires", metavar="SILENCE=OPTION", multiple=True, help="Fail any other answer to a silence."
)
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit XML there too.")
@_clear_errors
def rejudge(**options: Any) -> int:
    """Judge a run again by this version's expectations and errata, without the device.

    DIR is a results folder; the answers that it keeps (`run --keep-outputs all`) and refusals are judged, the others
    stay as they are where nothing that decides them has changed, and are listed as to be run again where it has.
    Requirements, profile and waivers are those of the run unless others are given. Exits as the run would.
    """
    from .reports.rejudge import RejudgeOptions, run_rejudge  # noqa: PLC0415

    return run_rejudge(RejudgeOptions(**options), ["opconform", *sys.argv[1:]])


@main.command(
    cls=_Examples,
    examples="opconform export --format onnx --out corpus\n"
    "opconform export --format npz --pack corpus.zip --select 'openvino/*'",
)
@click.option("--format", type=click.Choice(["onnx", "npz"]), required=True, help="ONNX's test data, or NumPy arrays.")
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="The corpus's folder: new or empty.")
@click.option("--pack", metavar="FILE", type=click.Path(path_type=Path), help="The corpus as one zip file.")
@_SELECT
@_STRENGTH
@_DRAWS
@_SEED
@_SUITE
@_SPECS
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@_clear_errors
def export(as_json: bool, **options: Any) -> None:
    """Write cases to files that any language reads, with a manifest: a corpus."""
    from .reports.export import ExportOptions, export_lines  # noqa: PLC0415
    from .reports.export import export as write  # noqa: PLC0415

    manifest = write(ExportOptions(_selection(options), **options))
    for line in export_lines(manifest, as_json=as_json):
        click.echo(line)


@main.command(
    cls=_Examples,
    examples="opconform submit results --out submission.zip\n"
    "opconform submit results --out submission.zip --sign key.pem",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), required=True, help="The archive: a new file.")
@click.option("--sign", "key", metavar="KEY.pem", type=click.Path(path_type=Path), help="A private key (Ed25519).")
@_clear_errors
def submit(folder: Path, out: Path, key: Path | None) -> None:
    """Pack a results folder into one archive with its digest, which others judge again with `opconform verify`."""
    from .reports.submission import submit as submitted  # noqa: PLC0415

    for line in submitted(folder, out, key):
        click.echo(line)


@main.command(
    cls=_Examples,
    examples="opconform verify corpus\nopconform verify corpus.zip\nopconform verify submission.zip --key public.pem",
)
@click.argument("path", metavar="DIR|FILE", type=click.Path(path_type=Path))
@click.option(
    "--key", metavar="PUB.pem", type=click.Path(path_type=Path), help="Whose signature a submission must have."
)
@_clear_errors
def verify(path: Path, key: Path | None) -> int:
    """Check that a corpus is whole, or that the figures of a submission hold; exits 1 if not.

    What is missing, added or changed is named. A submission is judged again, by this version's suite.
    """
    from .reports.submission import is_submission, verify_submission  # noqa: PLC0415

    if is_submission(path):
        return verify_submission(path, key)
    if key is not None:
        raise click.UsageError(f"--key: {path} is no submission; only these are signed.")
    from .reports.corpora import verify as verified  # noqa: PLC0415

    return _told(*verified(path))


def _told(lines: list[str], code: int) -> int:
    """Print lines, and return the exit code."""
    for line in lines:
        click.echo(line)
    return code


@main.command(
    "corpus-diff",
    cls=_Examples,
    examples="opconform corpus-diff corpus-0.1.0.zip corpus\nopconform corpus-diff old/cases/manifests cases/manifests",
)
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@_clear_errors
def corpus_diff(old: Path, new: Path, as_json: bool) -> int:
    """List added, removed and changed cases of two corpora or locks; a difference exits 1."""
    from .reports.corpora import corpus_difference  # noqa: PLC0415

    return _told(*corpus_difference(old, new, as_json=as_json))


@main.command(cls=_Examples, examples="opconform lock --check\nopconform lock")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the lock is not that of the suite.")
@click.option("--folder", metavar="DIR", type=click.Path(path_type=Path), help="Another folder of locks.")
@click.option("--changelog", metavar="FILE", type=click.Path(path_type=Path), help="Another changelog.")
@_SPECS
@_clear_errors
def lock(**options: Any) -> int:
    """Write the digests of the suite's cases to cases/manifests, where a changed expectation shows in review.

    A changed expectation needs a line in the changelog, and a version that says so.
    """
    from .reports.locking import LockOptions  # noqa: PLC0415
    from .reports.locking import lock as locked  # noqa: PLC0415

    return _told(*locked(LockOptions(**options)))


@main.command(cls=_Examples, examples="opconform scaffold onnx/Add > specs/onnx/Add.yaml")
@click.argument("operator", metavar="OP")
@_clear_errors
def scaffold(operator: str) -> None:
    """Write the signature part of a new spec file from the standard's schema."""
    from .specs.scaffold import scaffold as scaffolded  # noqa: PLC0415

    click.echo(scaffolded(operator), nl=False)


@main.command(
    cls=_Examples,
    examples="opconform mutants\n"
    "opconform mutants --select 'onnx/ReduceMean-18' --html matrix.html --json matrix.json\n"
    "opconform mutants --suite smoke",
)
@_SELECT
@_STRENGTH
@_SUITE
@_SPECS
@click.option("--jobs", metavar="N", type=click.IntRange(1), help="Worker processes.  [default: number of cores]")
@click.option("--json", metavar="FILE", type=click.Path(path_type=Path), help="Write the matrix as JSON.")
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="Write the matrix as one HTML page.")
@click.option("--markdown", metavar="FILE", type=click.Path(path_type=Path), help="Write it as a page of the docs.")
@click.option(
    "--write-smoke",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the smallest set of cases that kills all.",
)
@_clear_errors
def mutants(**options: Any) -> int:
    """Put the suite to the test: wrong implementations that it must expose, right ones that it must not blame.

    Exits 1 if a wrong one survives or a right one is blamed.
    """
    from .reports.mutation import MutationOptions, run_mutants  # noqa: PLC0415

    return run_mutants(MutationOptions(_selection(options), **options))
