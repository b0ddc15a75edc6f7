"""`opconform run`, `list`, `show` and `minimise`: lists and shows cases, and runs them against backends."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common import (
    CASE_ID,
    JOBS,
    JSON,
    MEMORY,
    PYTHON,
    QUIET,
    REQUIRE,
    RESULTS,
    SPECS,
    command,
    number_option,
    path_option,
    planned,
    pop_sections,
    printed,
    printed_each,
    seconds_option,
    sections,
    selection_of,
    timeout_of,
)

if TYPE_CHECKING:
    from .options import RunOptions


def _backends(_context: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
    """Return the backends whose names begin so, for shell completion."""
    from ..runners.registry import known_backends  # noqa: PLC0415

    return [backend.name for backend in known_backends() if backend.name.startswith(begun)]


@command(
    "opconform run onnxruntime\n"
    "opconform run onnxruntime onnx-reference --select 'onnx/ReduceMean-*' --out results\n"
    "opconform run python:my_backend:Backend --require accumulator=wide\n"
    "opconform run 'cmd:./program args'\n"
    "opconform run onnxruntime==1.20.1 onnxruntime==1.23.2 onnxruntime\n"
    "opconform run onnxruntime --python old/bin/python\n"
    "opconform run onnxruntime --shard 2/8 --out shard-2\n"
    "opconform run onnxruntime --corpus corpus.zip\n"
    "opconform run --resume shard-2"
)
@click.argument("backends", metavar="BACKEND...", nargs=-1, shell_complete=_backends)
@planned
@SPECS
@JOBS
@timeout_of("a case")
@MEMORY
@PYTHON
@click.option(
    "--isolation",
    type=click.Choice(["program", "case"]),
    default="program",
    show_default=True,
    help="What shares a process: all cases of a worker, or nothing (a process per case).",
)
@path_option("--waivers", "FILE", "Known failures (YAML).")
@path_option("--errata", "FILE", "Other errata than the suite's.")
@path_option("--profile", "FILE", "What the product supports (YAML).")
@path_option("--arithmetic", "FILE", "Declared arithmetic (YAML), or openvino.")
@REQUIRE
@click.option("--name", metavar="NAME", help="What reports call the backend, in place of its own name.")
@path_option("--out", "DIR", "Results folder: new or empty.")
@path_option(
    "--corpus",
    "DIR|FILE.zip",
    "Judge from files alone: a corpus, or folders in the layout of ONNX's backend tests.",
    exists=True,
)
@click.option("--shard", metavar="I/N", help="Run only part I of N; `opconform report` merges the results.")
@path_option(
    "--resume",
    "DIR",
    "Resume the run with this results folder. Name files, and a BACKEND of your own, again; other "
    "options may be left out.",
)
@path_option("--junit", "FILE", "Also write JUnit XML to FILE.")
@click.option(
    "--keep-outputs",
    type=click.Choice(["none", "digest", "failures", "all"]),
    default="failures",
    show_default=True,
    help="The answers to keep in the results folder, with their certificates; digest: only the sha256 of all.",
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
    help="A resource that a cluster worker needs for a task, such as npu=1. Repeatable.",
)
@QUIET
@click.option(
    "--dry-run", is_flag=True, help="Show the number of cases and programs and an estimate of the time; run nothing."
)
@sections
def run(**options: Any) -> int:
    """Run the suite against backends, show what fails, and write a results folder.

    Exits 0 if all backends conform; 1 if one does not, or a waiver is stale; 2 for wrong usage, if nothing was judged,
    or if a selected spec file is wrong; 3 if opconform itself failed; 130 if interrupted (results so far are kept).
    """
    from ..cases.ids import shard_of  # noqa: PLC0415
    from .options import RunOptions  # noqa: PLC0415
    from .session import run_session  # noqa: PLC0415

    if not options["backends"] and options["resume"] is None:
        raise click.UsageError("Missing argument 'BACKEND...'.")
    if options["name"] is not None and len(options["backends"]) != 1:
        raise click.UsageError("--name: names one backend; run the others on their own.")
    given = given_options() - {"dry_run", "verbose", "kinds", "operators", "statistics"}
    selection = selection_of(options)
    dry = options.pop("dry_run")
    shard = None if options["shard"] is None else shard_of(options["shard"])
    shown = pop_sections(options)
    made = RunOptions(selection=selection, given=given, sections=shown, **{**options, "shard": shard})
    if dry:
        return _tell_size(made)
    return run_session(made, ["opconform", *sys.argv[1:]])


def _tell_size(options: RunOptions) -> int:
    """Print the size of a run without running it, after the checks that a run makes before it begins."""
    from ..generators.selection import selected_size  # noqa: PLC0415
    from ..generators.suggestions import selects_nothing  # noqa: PLC0415
    from ..reports.progress import tracked  # noqa: PLC0415
    from ..runners.registry import standards_of_name  # noqa: PLC0415
    from .generated_suite import generated_suite  # noqa: PLC0415
    from .session import check_targets, terms_of  # noqa: PLC0415

    if options.corpus is not None:
        raise click.UsageError("--dry-run only counts generated cases; `opconform verify` counts the cases of a corpus")
    if options.resume is not None:
        raise click.UsageError("--dry-run estimates a new run: leave --resume out")
    check_targets(options)
    # empty for a plug-in that has not been asked yet
    known = [standards_of_name(name, options.python) for name in options.backends]
    wanted = {standard for standards in known for standard in standards} if all(known) else set()
    suite, selection = generated_suite(options), options.selection
    terms_of(options, suite)
    source = suite.source
    with contextlib.ExitStack() as stack:
        sizes = selected_size(source, selection, lambda items: stack.enter_context(tracked(items, "planning")))
    sizes = {standard: size for standard, size in sizes.items() if not wanted or standard in wanted}
    for standard, size in sizes.items():
        click.echo(f"{standard}: {size.cases:,} cases of {size.programs:,} programs, {_duration(size.seconds)}")
    if not sizes:
        raise selects_nothing(source.library, selection)
    return 0


def _duration(seconds: float) -> str:
    """Return a duration of processor time in words."""
    hours, minutes = seconds / 3600, seconds / 60
    duration = f"{hours:.1f} h" if hours >= 1 else f"{minutes:.0f} min" if minutes >= 2 else f"{max(seconds, 1):.0f} s"
    return f"about {duration} of one processor for each backend, without the backend's own time"


def given_options() -> frozenset[str]:
    """Return the names of the options on the command line."""
    context = click.get_current_context()
    command_line = click.core.ParameterSource.COMMANDLINE
    return frozenset(name for name in context.params if context.get_parameter_source(name) is command_line)


@command(
    "opconform claims opconform-results/2026-05-01T10-00-00 > profile.yaml\n"
    "opconform claims cmd:./program --select 'onnx/Reduce*' --json"
)
@click.argument("source", metavar="BACKEND|DIR")
@planned
@SPECS
@JOBS
@timeout_of("a case")
@MEMORY
@click.option("--backend", metavar="NAME", help="The backend, if the results folder has several.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, in the form of `operators` in the process protocol's hello."
)
@click.option("--quiet", "-q", is_flag=True, help="No live progress.")
def claims(*, source: str, backend: str | None, as_json: bool, **options: Any) -> None:
    """Write what a backend supports as a profile, from a results folder or a run of its own.

    The profile covers no valid case that was unsupported, so a later run with it fails if support is lost. An operator
    version or type is left out if one of its cases is unsupported; a comment names the case.
    """
    from .claims import claims_of_folder, claims_of_run  # noqa: PLC0415
    from .options import RunOptions  # noqa: PLC0415

    if Path(source).is_dir():
        if given_options() - {"source", "backend", "as_json"}:
            raise click.UsageError("options of a run need a BACKEND; a results folder is only read.")
        click.echo(claims_of_folder(Path(source), backend, as_json=as_json), nl=False)
        return
    if backend is not None:
        raise click.UsageError("--backend needs a results folder.")
    made = RunOptions(backends=(source,), selection=selection_of(options), keep_outputs="none", **options)
    click.echo(claims_of_run(made, as_json=as_json), nl=False)


@command(
    "opconform list operators\nopconform list cases --select 'onnx/Mean-13' --json\nopconform list backends --check",
    name="list",
)
@click.argument("what", type=click.Choice(["operators", "cases", "backends"]), default="operators")
@planned
@SPECS
@JSON
@click.option("--check", is_flag=True, help="With backends: run one case on each, and print its outcome first.")
def list_(*, what: str, specs: Path | None, as_json: bool, check: bool, **options: Any) -> int:
    """List operator versions, cases or backends.

    For a backend the list has its version, its standards, and how it was found: built-in, by an extra of this package,
    by another package's entry point, or as an environment for a release. Exits 1 if --check finds an installed backend
    that cannot be opened or fails its case.
    """
    if what == "backends":
        from .backends import backend_lines  # noqa: PLC0415

        return int(printed_each(backend_lines(as_json=as_json, check=check)) > 0)
    if check:
        raise click.UsageError("--check only works with backends: opconform list backends --check")
    from .generated_suite import listed  # noqa: PLC0415

    return printed(listed(what, specs, selection_of(options), as_json=as_json))


@command(
    "opconform show onnx/ReduceMean-18/int64/1/axes=0/beyond-2^53\n"
    "opconform show onnx/Relu-14\n"
    "opconform show --script onnx/ReduceMean-18/int64/1/axes=0/beyond-2^53 | python\n"
    "opconform show --script openvino/ReduceMean-1/float32,int64/3x2x2/axes=2,0/ramp/axes-unsorted > reproduce.py"
)
@CASE_ID
@RESULTS
@click.option("--resolved", is_flag=True, help="CASE_ID is an operator; show its spec file with all entries it uses.")
@click.option(
    "--script", is_flag=True, help="Print a script that reproduces the case with the standard's library and NumPy."
)
@click.option(
    "--full",
    is_flag=True,
    help="With --script: the long form, which judges any answer as a run does, and says how far off it is.",
)
@click.option("--on", metavar="BACKEND", help="With --script: a script for a backend that does not run programs.")
@path_option("--arithmetic", "FILE", "Declared arithmetic (YAML), or openvino.")
@click.option("--certificate", "as_certificate", is_flag=True, help="Print the expectation and its derivation as JSON.")
@SPECS
def show(
    *,
    case_id: str,
    resolved: bool,
    script: bool,
    full: bool,
    on: str | None,
    arithmetic: Path | None,
    as_certificate: bool,
    specs: Path | None,
) -> None:
    """Show one case in full, or an operator version.

    Of a case: inputs, expected outputs with their derivation, clauses. Of an operator version, such as onnx/Relu-14, or
    of the newest one of onnx/Relu: signature, clauses, silences, and how many cases it has.

    A script for ONNX has 25 to 50 lines: the model, its inputs, what is admitted, and an assertion. If a case needs
    more, and for other standards, it is the long form of --full. It exits 0 if the answer is admitted, and 1 if not.
    """
    if resolved:
        from ..specs.loader import Library  # noqa: PLC0415

        click.echo(Library(specs).resolved(case_id), nl=False)
        return
    if case_id.count("/") == 1 and not (script or as_certificate):
        from ..generators.source import GeneratedCases  # noqa: PLC0415
        from ..reports.describe import is_operator, operator_text  # noqa: PLC0415

        known = GeneratedCases(specs)
        if is_operator(known.library, case_id):
            click.echo(operator_text(known, case_id))
            return
    from ..reports.certificates import certificate_text  # noqa: PLC0415
    from ..reports.script import script_text  # noqa: PLC0415
    from ..reports.show import case_text  # noqa: PLC0415
    from .generated_suite import case_of  # noqa: PLC0415

    source, case = case_of(case_id, specs, arithmetic)
    if script and as_certificate:
        raise click.UsageError("--script and --certificate: one at a time.")
    if on is not None and (full or not script):
        raise click.UsageError("--on: only with --script, and without --full.")
    if on is not None:
        from ..reports.tool_script import tool_script  # noqa: PLC0415

        click.echo(tool_script(source, case.id, on))
        return
    if full and not script:
        raise click.UsageError("--full: only with --script.")
    if as_certificate:
        click.echo(certificate_text(source, case))
    else:
        click.echo(script_text(case, full=full) if script else case_text(source, case))


@command(
    "opconform minimise 'onnx/ReduceMean-18/int64/33x17/axes=0/large/quotient' onnxruntime\n"
    "opconform minimise 'onnx/ReduceMean-18/int64/33x17/axes=0/large/quotient' onnxruntime > smallest.py\n"
    "opconform minimise CASE_ID python:my_backend:Backend --limit 500 --timeout 2"
)
@CASE_ID
@click.argument("backend", metavar="BACKEND", shell_complete=_backends)
@RESULTS
@SPECS
@JOBS
@timeout_of("a candidate")
@MEMORY
@PYTHON
@REQUIRE
@number_option("--limit", "Maximum number of candidates.", default=5000)
@seconds_option("--seconds", 120.0, "Time limit of the search in seconds; then the smallest case so far is printed.")
@QUIET
def minimise(**options: Any) -> int:
    """Shrink a failing case to the smallest that fails in the same way, and print it as a script.

    Removes or simplifies optional inputs, settings, dimensions, extents and values one at a time, and judges each
    candidate like a case of a run. Comments in the script show the inputs, the expected answer and the backend's.
    Exits 2 if the case passes.
    """
    from .minimise import run_minimise  # noqa: PLC0415

    return run_minimise(**options)


@command(
    "opconform bisect onnxruntime 'onnx/ReduceMean-18/float16/2x0x3/axes=-1/ramp'\n"
    "opconform bisect onnxruntime CASE_ID --good 1.17.3 --bad 1.20.1"
)
@click.argument("backend", metavar="BACKEND")
@CASE_ID
@RESULTS
@click.option("--good", metavar="VERSION", help="A release on which the case passes.  [default: oldest or newest]")
@click.option("--bad", metavar="VERSION", help="A release on which it fails.  [default: oldest or newest]")
@SPECS
@timeout_of("the case")
@MEMORY
@REQUIRE
@click.option("--quiet", "-q", is_flag=True, help="No live progress.")
def bisect(**options: Any) -> int:
    """Find the release of a library that changed the outcome of a case; prints each release that was tried.

    BACKEND is a built-in runner whose releases pip lists, such as onnxruntime. Each release is installed into its own
    environment, which is kept. Without --good and --bad the search covers all releases that can be installed. With
    --good alone it covers that release and later ones, with --bad alone that release and earlier ones. With both,
    either may be the older.

    Exits 0 if a change was found, 1 if both ends have the same outcome, 2 for wrong usage or if nothing can be judged.
    """
    from .bisecting import run_bisect  # noqa: PLC0415

    return run_bisect(**options)
