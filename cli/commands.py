"""Commands for files, spec files, results and history; each imports its dependencies when it is called."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import click

from .common import (
    CASE_ID,
    FOLDERS,
    JOBS,
    JSON,
    MEMORY,
    PARTIAL,
    PYTHON,
    QUIET,
    REQUIRE,
    SEED,
    SELECT,
    SPECS,
    STRENGTH,
    SUITE,
    Examples,
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


@command(
    "opconform export --format onnx --out corpus\nopconform export --format npz --pack corpus.zip --select 'openvino/*'"
)
@click.option(
    "--format", "form", type=click.Choice(["onnx", "npz"]), required=True, help="ONNX's test data, or NumPy arrays."
)
@path_option("--out", "DIR", "The corpus's folder, new or empty; as --pack if it ends in .zip.")
@path_option("--pack", "FILE", "The corpus as one zip file.")
@planned
@SPECS
@JSON
def export(**options: Any) -> int:
    """Write cases to files that any language can read, with a manifest: a corpus."""
    from .corpora import export as exported  # noqa: PLC0415

    return printed(exported(selection_of(options), **options))


@command("opconform verify corpus\nopconform verify corpus.zip\nopconform verify submission.zip --key public.pem")
@click.argument("path", metavar="DIR|FILE", type=click.Path(path_type=Path))
@path_option("--key", "PUB.pem", "Whose signature a submission must have.")
@number_option("--seed", "The seed that was announced for a submission.", least=0)
def verify(path: Path, key: Path | None, seed: int | None) -> int:
    """Check that a corpus is whole, or that a submission holds; exits 1 if not.

    Lists what is missing, added or changed. A submission is judged again by this version's suite. If nothing is wrong,
    but some answers are missing and cannot be judged, verify exits 3.
    """
    from .submission import is_submission  # noqa: PLC0415

    if is_submission(path):
        from .verification import verify_submission  # noqa: PLC0415

        return verify_submission(path, key, seed)
    for name, given in (("--key", key), ("--seed", seed)):
        if given is not None and path.exists():
            raise click.UsageError(f"{name}: {path} is no submission.")
    from .corpora import verify as verified  # noqa: PLC0415

    return printed(*verified(path))


@command("opconform corpus-diff corpus-0.1.0.zip corpus\nopconform corpus-diff old/cases/manifests cases/manifests")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@JSON
def corpus_diff(old: Path, new: Path, as_json: bool) -> int:
    """List added, removed and changed cases of two corpora or locks; exits 1 if there are any."""
    from .corpora import corpus_difference  # noqa: PLC0415

    return printed(*corpus_difference(old, new, as_json=as_json))


@command(
    "opconform audit-model model.onnx --on onnxruntime\n"
    "opconform audit-model model.onnx --on onnxruntime --inputs data.npz --out audit\n"
    "opconform audit-model model.onnx --on onnxruntime --dim batch=4 --seconds 60"
)
@click.argument("model", metavar="MODEL", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--on", "backend", metavar="BACKEND", required=True, help="A backend that runs ONNX models.")
@path_option(
    "--inputs",
    "FILE",
    "The model's inputs by name, as a NumPy archive (.npz).  [default: random, by the model's signature]",
    exists=True,
    dir_okay=False,
)
@click.option("--dim", "dims", metavar="NAME=N", multiple=True, help="A symbolic dimension of random inputs, else 1.")
@SEED
@path_option("--out", "DIR", "Write a page and scripts.", file_okay=False)
@click.option("--resume", is_flag=True, help="Go on with the audit in DIR.")
@number_option(
    "--work", "Elements of a node's computation above which a sample of its outputs is judged.", default=1 << 20
)
@number_option(
    "--values",
    "Values that one run of the model returns, in MiB; a larger model is run several times.",
    most=120,
    default=96,
    metavar="MIB",
)
@click.option("--seconds", metavar="S", type=float, help="Time limit; nodes after it are not judged.")
@seconds_option("--timeout", 600.0, "Time limit of one run of the model in seconds.")
@MEMORY
@PYTHON
@REQUIRE
@click.option("--arithmetic", metavar="NAME|FILE", help="Declared arithmetic: tf32, bfloat16-accumulation or a file.")
@QUIET
@JSON
def audit_model(**options: Any) -> int:
    """Judge each node of an ONNX model alone, on the tensors that a backend itself produced.

    Every intermediate value becomes an output. Names the first wrong node, the largest errors as shares of their
    bounds, and what could not be judged and why. Bodies of If and Loop are audited as models of their own. Exits 1 if a
    node is wrong, 2 if nothing could be judged.
    """
    from .models import audit_model  # noqa: PLC0415

    return audit_model(**options)


@command(
    "opconform can model.onnx --on onnxruntime\n"
    "opconform can model.onnx --on onnxruntime --try\n"
    "opconform can model.onnx --on onnxruntime==1.28 --results results\n"
    "opconform can model.onnx --on openvino-onnx --results results --strict"
)
@click.argument("model", metavar="MODEL", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--on", "backend", metavar="BACKEND", required=True, help="A backend, or one of its releases.")
@path_option(
    "--results",
    "DIR",
    "A results folder with results of the backend; the first that has some is used. Repeatable.",
    exists=True,
    file_okay=False,
    multiple=True,
)
@click.option("--try", "tries", is_flag=True, help="Run the cases of the model's operators now.")
@click.option("--strict", is_flag=True, help="Exit 1 also if nothing is known of some node.")
@SEED
@JOBS
@timeout_of("a case")
@MEMORY
@PYTHON
@QUIET
@JSON
def can(**options: Any) -> int:
    """Say which nodes of an ONNX model a backend computes rightly, as far as results show.

    Compares each node's operator version, types, rank and attributes with results of the suite: it passes, fails (with
    a case), is unsupported, or nothing is known. Lists of numbers, such as pads, need only be as long. Without --try
    and --results, the results that ship with this release are used. Exits 1 if a node fails or is unsupported, 2 if
    nothing is known of any.
    """
    from .models import can  # noqa: PLC0415

    return can(**options)


@command("opconform dev known-results opconform-results/2026-11-28")
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@path_option("--out", "DIR", "Another folder to write to.")
def known_results(folders: tuple[Path, ...], out: Path | None) -> int:
    """Write what backends made of each case, for `opconform can`: a file for each release of a backend.

    DIR is a results folder with the cases of the default plan. Cases whose digests are not the locked ones any more are
    ignored when the file is read, so that it needs to be made again only for a release.
    """
    from .models import write_known_results  # noqa: PLC0415

    return printed(write_known_results(folders, out))


@command("opconform dev lock --check\nopconform dev lock")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the lock does not match the suite.")
@path_option(
    "--results",
    "DIR",
    "With --check: a run of this suite by this code. Versions whose digests it has are not made again.",
    multiple=True,
)
@path_option("--folder", "DIR", "Another folder of locks.")
@path_option("--changes", "FILE", "Another list of changes.")
@SPECS
def lock(**options: Any) -> int:
    """Write the digests of the suite's cases to cases/manifests, so that a changed expectation shows in review.

    A changed expectation needs a line in docs/expectation-changes.md, and a matching version.
    """
    from .locking import lock as locked  # noqa: PLC0415

    return printed(*locked(**options))


@command("opconform dev audit onnx\nopconform dev audit --json\nopconform dev audit openvino")
@click.argument("standard", metavar="[STANDARD]", default="onnx")
@JSON
@path_option("--markdown", "FILE", "Write coverage as a page of the docs.")
@SPECS
def audit(standard: str, **options: Any) -> int:
    """Compare the spec files with the standard's schemas or library, and show coverage; a difference exits 1.

    STANDARD is onnx (the default), openvino or onednn. The last two query a library, which must be installed.
    """
    from .auditing import audited  # noqa: PLC0415

    return printed(*audited(standard, **options))


@command(
    "opconform diff onnx/ReduceMean-13 openvino/ReduceMean-1\n"
    "opconform diff onnx/TopK-24 openvino/TopK-11\n"
    "opconform diff onnx/ReduceMean-13 onnx/ReduceMean-18 --json"
)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@JSON
@SPECS
def diff(first: str, second: str, as_json: bool, specs: Path | None) -> None:
    """Compare two operator versions: signatures, and the smallest inputs that they answer differently.

    A and B belong to the same standard or to two, such as onnx/ReduceMean-13 and openvino/ReduceMean-1. If one is bound
    to the other's formula, or both to the same one, their names and values are translated by the binding.
    """
    from rich.console import Console  # noqa: PLC0415

    from ..generators.source import GeneratedCases  # noqa: PLC0415
    from ..reports.bindings import bond_json, bond_of, bond_report  # noqa: PLC0415
    from ..reports.difference import difference_json, difference_report  # noqa: PLC0415

    source = GeneratedCases(specs)
    bond = bond_of(source, first, second)
    if bond is not None:
        if as_json:
            click.echo(bond_json(source, bond))
        else:
            bond_report(Console(), source, bond)
    elif as_json:
        click.echo(difference_json(first, second, specs))
    else:
        difference_report(Console(), first, second, specs)


@command("opconform dev page onnx/ReduceMean openvino/ReduceMean onednn/ReduceMean --title 'The mean' > mean.md")
@click.argument("operators", metavar="OPERATOR...", nargs=-1, required=True)
@click.option("--title", metavar="TEXT", help="The page's title.  [default: the operators]")
@path_option("--out", "FILE", "Write the page to FILE instead of printing it.")
@SPECS
def page(operators: tuple[str, ...], title: str | None, out: Path | None, specs: Path | None) -> None:
    """Write a page of documentation (Markdown) about operators from their spec files.

    It has signatures, rules and silences of every version, and compares each version with the one before, and the
    newest versions of the operators with each other.
    """
    from ..reports.difference import page as page_of  # noqa: PLC0415

    _print_or_write(out, page_of(operators, title or ", ".join(operators), specs))


@command(
    "opconform dev bindings openvino\nopconform dev bindings onednn --markdown docs/generated/from-onnx-to-onednn.md"
)
@click.argument("standard", metavar="STANDARD")
@path_option("--markdown", "FILE", "Write the page to FILE instead.")
@SPECS
def bindings(standard: str, markdown: Path | None, specs: Path | None) -> None:
    """Compare each operation of a standard with the ONNX operator that has its formula, as a page of the docs.

    STANDARD is openvino or onednn. Each line has the binding, what only one side has, and the smallest input on which
    the two differ.
    """
    from ..reports.bindings import conversions  # noqa: PLC0415

    _print_or_write(markdown, conversions(standard, specs))


def _print_or_write(file: Path | None, text: str) -> None:
    from ..reports.text import write_text  # noqa: PLC0415

    if file is None:
        click.echo(text, nl=False)
    else:
        write_text(file, text)


@command("opconform check-runner cmd:./program\nopconform check-runner 'cmd:python3 client.py' --timeout 60")
@click.argument("backend", metavar="BACKEND")
@seconds_option("--timeout", 10.0, "Time limit of an answer in seconds.")
def check_runner(backend: str, timeout: float) -> int:
    """Report where a program breaks the process protocol, with a hint for each mistake.

    BACKEND is cmd:./program args. The program is asked what it is, and to run an easy operator in several ways.
    Exits 1 if something is wrong, 2 if the program can't be started.
    """
    from .checking import checked_lines  # noqa: PLC0415

    mistakes = printed_each(checked_lines(backend, timeout))
    click.echo(f"{mistakes or 'no'} mistake{'s' * (mistakes != 1)} found")
    return int(bool(mistakes))


@command(
    'eval "$(opconform completion bash)"    # in ~/.bashrc\n'
    'eval "$(opconform completion zsh)"     # in ~/.zshrc\n'
    "opconform completion fish > ~/.config/fish/completions/opconform.fish"
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Write what makes a shell complete commands, options and names of backends."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - only where it is asked for

    kind = get_completion_class(shell)
    if kind is None:  # an old click
        raise click.UsageError(f"click {click.__version__} completes nothing in {shell}.")
    click.echo(kind(context.find_root().command, {}, "opconform", "_OPCONFORM_COMPLETE").source())


@command("opconform dev scaffold onnx/Add > specs/onnx/Add.yaml")
@click.argument("operator", metavar="OP")
def scaffold(operator: str) -> None:
    """Write the signature part of a new spec file from the standard's schema."""
    from ..specs.scaffold import scaffold as scaffolded  # noqa: PLC0415

    click.echo(scaffolded(operator), nl=False)


@command(
    "opconform dev judge-data site-packages/onnx/backend/test/data/node\n"
    "opconform dev judge-data data/node --explained explained.yaml --markdown page.md"
)
@click.argument("path", metavar="DIR|FILE", type=click.Path(path_type=Path, exists=True))
@path_option("--explained", "FILE", "Known differences and their reasons (YAML).")
@path_option("--markdown", "FILE", "Write it as a page of the docs.")
@click.option("--title", metavar="TEXT", default="Stored test data", help="The page's title.", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one line per data set.")
@SPECS
def judge_data(path: Path, **options: Any) -> int:
    """Judge the expected outputs of test data in ONNX's layout, as if they were a backend's answers.

    DIR has folders with model.onnx and test_data_set_0, as in ONNX's releases up to 1.22. Models of one node are judged
    if their operator version has a spec. Exits 1 if an answer is not admitted and FILE does not explain it, or if FILE
    explains an admitted answer.
    """
    from .judge_data import judge_data  # noqa: PLC0415

    return judge_data(path, **options)


@command(
    "opconform dev compare-data site-packages/onnx/backend/test/data\n"
    "opconform dev compare-data data/node --sample 10 --markdown page.md"
)
@click.argument("path", metavar="DIR|FILE", type=click.Path(path_type=Path, exists=True))
@number_option("--sample", "Number of operators to make mutants of.", least=0, default=30)
@path_option("--markdown", "FILE", "Write it as a page of the docs.")
@click.option("--title", metavar="TEXT", default="Stored test data and the suite", help="The page's title.")
@SPECS
def compare_data(path: Path, **options: Any) -> None:
    """Compare test data in ONNX's layout with the suite: what each exercises, and which mutants each exposes.

    DIR is a folder as for `opconform dev judge-data`. Models of one node count if their operator version has a spec.
    """
    from .compare_data import compare_data  # noqa: PLC0415

    compare_data(path, **options)


@command(
    "opconform dev meaningless --select 'onnx/Pow-*'\n"
    "opconform dev meaningless --record docs/meaningless.jsonl --markdown docs/generated/meaningless.md"
)
@SELECT
@STRENGTH
@SUITE
@SPECS
@JOBS
@path_option("--record", "FILE", "Update the list in FILE for the operators that have changed.")
@path_option("--markdown", "FILE", "Write it as a page of the docs.")
def meaningless(**options: Any) -> int:
    """List the cases that admit an answer that means nothing, such as a constant or a wrong shape.

    Exits 1 if specs/meaningless.yaml has no reason for one, or has a reason that no case needs, or if they are more
    than 2.5 % of the valid cases.
    """
    from .meaningless import run_meaningless  # noqa: PLC0415

    return run_meaningless(selection_of(options), **options)


@command(
    "opconform dev mutants\n"
    "opconform dev mutants --select 'onnx/ReduceMean-18' --html matrix.html --json matrix.json\n"
    "opconform dev mutants --suite smoke\n"
    "opconform dev mutants --tools --select 'onnx/Concat-13'"
)
@SELECT
@STRENGTH
@SUITE
@SPECS
@JOBS
@path_option("--record", "FILE", "Update the matrix in FILE for the operators that have changed.")
@path_option("--json", "FILE", "Write the matrix as JSON.")
@path_option("--html", "FILE", "Write the matrix as one HTML page.")
@path_option("--markdown", "FILE", "Write it as a page of the docs.")
@path_option(
    "--write-smoke",
    "FILE",
    "Write about six small cases of each operator version that kill most mutants: the suite smoke.",
)
@click.option(
    "--tools",
    is_flag=True,
    help="Wrong inferencers, checkers and converters in place of kernels; unless selected, of two formulas a family.",
)
def mutants(**options: Any) -> int:
    """Test the suite itself: it must detect wrong implementations and must pass correct ones.

    Exits 1 if a correct one fails, or if a wrong one survives that is not among the survivors in the --record.
    """
    from .mutation import MutationOptions, run_mutants  # noqa: PLC0415

    return run_mutants(MutationOptions(selection_of(options), **options))


@command(
    "opconform report results\n"
    "opconform report shard-1 shard-2 shard-3 --junit junit.xml --markdown summary.md\n"
    "opconform report of-onnxruntime of-my-backend --json report.json\n"
    "opconform report of-onnxruntime of-my-backend --html site\n"
    "opconform report results --html site --before results-of-1.31 --before results-of-1.30"
)
@FOLDERS
@path_option("--junit", "FILE", "Write JUnit XML to FILE.")
@path_option("--markdown", "FILE", "Write a short Markdown page to FILE.")
@path_option("--json", "FILE", "Write everything to FILE as JSON.")
@path_option(
    "--badge",
    "FILE|DIR",
    "Write a badge: .svg, or .json for shields.io. FILE may have {backend} and {standard}; a folder gets all.",
)
@path_option("--html", "DIR", "Write a site that opens from a file. DIR is new, empty, or an earlier site.")
@path_option("--history", "DB", "Show the trend of this history in the site.", exists=True, dir_okay=False)
@path_option(
    "--before",
    "DIR",
    "An earlier run, such as one of another release, for changes and a timeline in the site. Repeatable.",
    exists=True,
    file_okay=False,
    multiple=True,
)
@PARTIAL
@sections
def report(**options: Any) -> int:
    """Report the results of runs: several backends side by side, the shards of a run merged.

    DIR is a results folder. Exits as the run would have; 2 if shards are missing or do not belong together, 130 if a
    run was interrupted.
    """
    from .report import ReportOptions, run_report  # noqa: PLC0415

    if options["history"] is not None and options["html"] is None:
        raise click.UsageError("--history: shown in the site of --html.")
    if options["before"] and options["html"] is None:
        raise click.UsageError("--before: shown in the site of --html; `opconform compare` compares two runs.")
    return run_report(ReportOptions(sections=pop_sections(options), **options))


@command("opconform finding results --out findings\nopconform finding results --out one --limit 1")
@FOLDERS
@path_option("--out", "DIR", "The folder of the texts.", required=True)
@number_option("--limit", "Only the N worst kinds of failures.")
@PARTIAL
def finding(folders: tuple[Path, ...], out: Path, limit: int | None, partial: bool) -> None:
    """Write texts to file with the maintainers of backends: one for each kind of failures of runs.

    Each text has the backend and its release, the day and the machine, the message, the sentence of the standard, and
    the script of the shortest case. `index.md` lists them, with trackers where they are known.
    """
    from itertools import islice  # noqa: PLC0415

    from ..generators.meanings import CasesOfEveryKind  # noqa: PLC0415
    from ..reports.findings import findings_of, write_findings  # noqa: PLC0415
    from ..reports.runs import put_together  # noqa: PLC0415
    from ..reports.tables import count  # noqa: PLC0415

    wholes = put_together(folders, partial=partial)
    findings = list(islice(findings_of(wholes, count(wholes), CasesOfEveryKind()), limit))
    write_findings(findings, out)
    click.echo(f"{len(findings):,} finding{'s' * (len(findings) != 1)}: {out / 'index.md'}")


@command(
    "opconform rejudge results --out rejudged\n"
    "opconform rejudge results --errata errata.yaml --require accumulator=wide"
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@path_option("--out", "DIR", "Results folder: new or empty.")
@SPECS
@path_option("--waivers", "FILE", "Other known failures (YAML).")
@path_option("--errata", "FILE", "Other errata than the suite's.")
@path_option("--profile", "FILE", "Another profile (YAML).")
@REQUIRE
@path_option("--junit", "FILE", "Also write JUnit XML to FILE.")
@sections
def rejudge(**options: Any) -> int:
    """Judge a run again by this version's expectations and errata, without the device.

    DIR is a results folder. Its kept answers (`run --keep-outputs all`) and refusals are judged. Other results stay if
    nothing that decides them has changed; otherwise they are listed as cases to run again. Requirements, profile and
    waivers come from the run, unless you give others. Exits as the run would.
    """
    from .rejudge import RejudgeOptions, run_rejudge  # noqa: PLC0415

    return run_rejudge(RejudgeOptions(sections=pop_sections(options), **options), ["opconform", *sys.argv[1:]])


@command("opconform submit results --out submission.zip\nopconform submit results --out submission.zip --sign key.pem")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@path_option("--out", "FILE", "The archive: a new file.", required=True)
@path_option("--sign", "KEY.pem", "A private key (Ed25519).")
@path_option(
    "--frozen",
    "FILE",
    "A file of the backend that was there before the run's seed was announced. Repeatable.",
    multiple=True,
)
def submit(folder: Path, out: Path, sign: Path | None, frozen: tuple[Path, ...]) -> int:
    """Pack a results folder into one archive with its digest, which others judge again with `opconform verify`."""
    from .submission import submit as submitted  # noqa: PLC0415

    return printed(submitted(folder, out, sign, frozen))


_DB = path_option(
    "--db",
    "FILE",
    "The history's database.",
    dir_okay=False,
    default=Path("opconform-history.duckdb"),
    show_default=True,
)
_BACKEND = click.option("--backend", metavar="GLOB", default="*", help="Only these backends.")


@command(
    "opconform compare results-of-yesterday results\n"
    "opconform compare opconform-history.duckdb:last results --markdown changes.md --fail-on regression\n"
    "opconform compare opconform-history.duckdb:12 opconform-history.duckdb:last --json changes.json"
)
@click.argument("old")
@click.argument("new")
@path_option("--json", "FILE", "Write everything to FILE as JSON.")
@path_option("--markdown", "FILE", "Write a short Markdown page to FILE.")
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "change"]),
    help="Exit 1 if a case that passed now fails, or if anything changed.",
)
@PARTIAL
def compare(old: str, new: str, *, json: Path | None, markdown: Path | None, fail_on: str | None, partial: bool) -> int:
    """Show the changes between two runs: regressions, fixes, new and removed cases, other answers to silences.

    OLD and NEW are each a results folder, a folder of results folders (the shards of a run, runs of several backends),
    or a run of a history: FILE:RUN, FILE:last, FILE:last-1. Each backend is compared with itself, by name. Cases with
    changed inputs or expectations are listed separately. Exits 0 unless --fail-on says otherwise.
    """
    from json import dumps  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415

    from ..reports.history import compare as comparing  # noqa: PLC0415
    from ..reports.junit import check_target  # noqa: PLC0415
    from ..reports.text import write_text  # noqa: PLC0415

    for target in filter(None, (json, markdown)):
        check_target(target)
    with comparing.opened(old, partial=partial) as before, comparing.opened(new, partial=partial) as after:
        comparison = comparing.compared(before, after)
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
    """Keep the results of many runs in a database."""


@command(
    "opconform history add results\n"
    "opconform history add shard-1 shard-2 shard-3 --label nightly\n"
    "opconform history add of-onnxruntime of-my-backend --db history.duckdb",
    group=history,
)
@FOLDERS
@_DB
@click.option("--label", metavar="TEXT", help="A name for the run.")
@PARTIAL
def add(folders: tuple[Path, ...], db: Path, label: str | None, partial: bool) -> int:
    """Add a run: a results folder, its shards, or the folders of several backends.

    The run is added completely or not at all. A run that is already in the history is skipped.
    """
    from ..reports.history.database import add as take_in  # noqa: PLC0415

    return printed(take_in(db, folders, label, partial=partial))


@command(
    "opconform history show --last 14\n"
    "opconform history show --backend 'onnxruntime*' --select 'onnx/ReduceMean-*'\n"
    "opconform history show --json --db history.duckdb",
    group=history,
)
@_DB
@_BACKEND
@SELECT
@number_option("--last", "The last N runs of each backend.")
@JSON
def show(db: Path, **options: Any) -> None:
    """Show the runs by backend: date, versions, figures, and changes since the run before.

    With --select, figures and changes cover only the selected cases. A star marks a changed version.
    """
    from ..reports.history.show import show as shown  # noqa: PLC0415

    shown(db, **options)


@command(
    "opconform history case onnx/ReduceMean-18/int64/33x17/axes=0/large/quotient\n"
    "opconform history case onnx/ReduceMean-18/int64/33x17/axes=0/large/quotient --backend onnxruntime",
    group=history,
)
@CASE_ID
@_DB
@_BACKEND
@JSON
def case(case_id: str, db: Path, **options: Any) -> None:
    """Show the verdicts on one case over time: since when it fails, and on which version."""
    from ..reports.history.show import show_case  # noqa: PLC0415

    show_case(case_id, db, **options)


@command("opconform history prune --keep 90\nopconform history prune --before 2026-01-01", group=history)
@_DB
@number_option("--keep", "Keep the last N runs of each backend.")
@click.option("--before", metavar="DATE", type=click.DateTime(["%Y-%m-%d"]), help="Keep the runs from that day on.")
def prune(db: Path, keep: int | None, before: dt.datetime | None) -> None:
    """Remove old runs; the last run of each backend stays."""
    from ..reports.history.database import prune as forget  # noqa: PLC0415

    if keep is None and before is None:
        raise click.UsageError("Choose what to keep: --keep N, or --before DATE.")
    click.echo(forget(db, keep=keep, before=f"{before:%Y-%m-%d}" if before else None))
