"""`opconform audit-model` and `opconform can`: a whole model on a backend."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec
from rich.console import Console

from ..api.call import library, source
from ..cases.errors import OpconformError
from ..cases.lock import read_locks
from ..cases.results import Result
from ..models.audit import AuditOptions, JudgedNode, audited, digest_of
from ..models.known import backend_of, known_results, known_text, shipped
from ..models.output import INDEX, AuditFolder, as_json, summary
from ..models.page import page
from ..models.reading import ReadModel, read_inputs, read_model
from ..models.support import cases_for, support_lines, supported
from ..reports.progress import tracked
from ..reports.runs import read_results, read_run
from ..reports.tally import NOTHING_JUDGED
from ..reports.text import printable, write_text
from ..runners.execution.execute import Assignment
from ..runners.execution.running import Judged, batched, run_cases
from ..runners.registry import backend_spec
from .locking import package_root
from .options import RunOptions, usable_cores


@dataclass(frozen=True)
class ModelOptions:
    """The options of `opconform audit-model`; see its help."""

    model: Path
    backend: str
    inputs: Path | None = None
    out: Path | None = None
    resume: bool = False
    seed: int = 0
    dims: Sequence[str] = ()
    work: int = 1 << 20
    values: int = 96
    seconds: float | None = None
    timeout: float = 600.0
    memory: int | None = None
    python: Path | None = None
    requires: Sequence[str] = ()
    arithmetic: str | None = None
    quiet: bool = False
    as_json: bool = False


def extents(texts: Sequence[str]) -> dict[str, int]:
    """Return the extents of symbolic dimensions, given as `batch=4`. Raises OpconformError."""
    made = {}
    for text in texts:
        name, equals, extent = text.partition("=")
        if not equals or not extent.isdigit():
            raise OpconformError(f"--dim {text}: expected NAME=EXTENT, as in batch=4")
        made[name] = int(extent)
    return made


def audit_model(options: ModelOptions) -> int:
    """Audit a model, print the summary, and return the exit code: 1 if a node is wrong."""
    model = read_model(options.model)
    arrays = (
        model.made_up(options.seed, extents(options.dims)) if options.inputs is None else read_inputs(options.inputs)
    )
    model.check(arrays)
    backend = backend_spec(options.backend, options.python)
    terms = AuditOptions(
        most_work=options.work,
        most_bytes=options.values << 20,
        seconds=options.seconds,
        run_seconds=options.timeout,
        memory_bytes=None if options.memory is None else options.memory << 20,
        require=tuple(options.requires),
        declared=options.arithmetic,
        seed=options.seed,
    )
    about = repr((options.backend, options.work, terms.require, terms.declared, terms.seed))
    folder = None
    if options.out is not None:
        folder = AuditFolder.open(options.out, digest_of(model, arrays, about), resume=options.resume)
    known = {} if folder is None else folder.known
    console = Console(stderr=True, quiet=options.quiet)
    with console.status("running the model") as status:

        def found(judged: JudgedNode) -> None:
            status.update(f"judging: {printable(judged.node.path)[:120]}")
            if folder is not None:
                folder.add(judged)

        audit = audited(model, arrays, backend, terms, known=known, found=found)
    lines = list(summary(audit))
    if folder is not None:
        folder.finish(page(audit, options.model.name, lines))
        lines += [f"script: {folder.path / name}" for name in folder.scripts]
        lines.append(f"page: {folder.path / INDEX}")
    click.echo(as_json(audit) if options.as_json else "\n".join(map(printable, lines)))
    if audit.of("wrong"):
        return 1
    return 0 if audit.of("right") else NOTHING_JUDGED


@dataclass(frozen=True)
class CanOptions:
    """The options of `opconform can`; see its help."""

    model: Path
    backend: str
    results: Sequence[Path] = ()
    tries: bool = False
    strict: bool = False
    seed: int = 0
    jobs: int | None = None
    timeout: float = 10.0
    memory: int | None = None
    python: Path | None = None
    quiet: bool = False
    as_json: bool = False


def can(options: CanOptions) -> int:
    """Say what a backend can do with a model, and return the exit code: 1 if a node fails or is unsupported."""
    model = read_model(options.model)
    if options.results and options.tries:
        raise OpconformError("expected one of --results DIR, with results of the backend, and --try, which runs it now")
    if options.tries:
        source_of_results, results = options.backend, _tried(model, options)
    elif options.results:
        source_of_results, results = options.backend, _results_of_folders(options)
    else:
        source_of_results, results = _shipped_results(model, options.backend)
    found = supported(model, results)
    if options.as_json:
        click.echo(json.dumps([msgspec.to_builtins(one) for one in found]))
    else:
        click.echo("\n".join(map(printable, support_lines(found, source_of_results))))
    answers = {one.answer for one in found}
    if answers & {"fails", "unsupported"} or (options.strict and "unknown" in answers):
        return 1
    return 0 if "passes" in answers else NOTHING_JUDGED


def _tried(model: ReadModel, options: CanOptions) -> Iterator[Result]:
    assignment = Assignment(backend_spec(options.backend, options.python), source())
    limits = RunOptions(timeout=options.timeout, memory=options.memory).limits
    ids = list(cases_for(model, options.seed))
    jobs = options.jobs or usable_cores()
    found = run_cases(assignment, batched(ids), jobs=jobs, limits=limits)
    judged = (one.result for one in found if isinstance(one, Judged))
    with tracked(judged, "running the operators' cases", len(ids), Console(stderr=True, quiet=options.quiet)) as shown:
        yield from shown


def _results_of_folders(options: CanOptions) -> Iterator[Result]:
    """Yield the results of the backend, in its release if its name has one. Raises OpconformError if there is none."""
    wanted, _, release = options.backend.partition("==")
    seen: list[str] = []
    for folder in options.results:
        names = set()
        for name, backend in read_run(folder).get("backends", {}).items():
            version = str(backend.get("version", ""))
            seen.append(f"{name} {version}")
            if name.partition("==")[0] == wanted and _is_release(version, release):
                names.add(name)
        if names:
            yield from (result for result in read_results(folder) if result.backend in names)
            return
    raise OpconformError(f"no result of {options.backend}; the folders have {', '.join(seen) or 'none'}")


def _is_release(version: str, wanted: str) -> bool:
    return not wanted or version == wanted or version.startswith(f"{wanted}.")


def _shipped_results(model: ReadModel, backend: str) -> tuple[str, Iterator[Result]]:
    """Return the backend, release and machine of results that ship with the suite, and these results.

    Raises OpconformError if there are none of this backend and release.
    """
    wanted, _, release = backend.partition("==")
    ships = []
    for file in shipped():
        name, version, machine = backend_of(file)
        if name == wanted and _is_release(version, release):
            operators = {node.operator for node in model.nodes(library()) if node.operator}
            locks = package_root() / "cases" / "manifests"
            return f"{name} {version} (known results, {machine})", known_results(file, operators, locks)
        ships.append(f"{name}=={version}")
    raise OpconformError(
        f"no results of {backend} ship with this release, which has {', '.join(ships) or 'none'}; expected --try, "
        "which runs it now, or --results DIR"
    )


def write_known_results(folders: Sequence[Path], out: Path | None) -> list[str]:
    """Write a file for each backend of these results folders; return a line for each. Raises OpconformError."""
    out = package_root() / "models" / "results" if out is None else out
    locks = read_locks(package_root() / "cases" / "manifests")
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for folder in folders:
        run = read_run(folder)
        machine = f"{run['machine']['platform'].partition('-')[0]} {run['machine']['machine']}"
        for backend, about in run["backends"].items():
            name, version = backend.partition("==")[0], str(about.get("version", ""))
            if not version:
                raise OpconformError(f"{folder}: the run has no version of {backend}; expected one that got so far")
            results = (result for result in read_results(folder) if result.backend == backend)
            file = out / f"{name}-{version}.txt"
            write_text(file, known_text(name, version, machine, results, locks.values()))
            lines.append(f"{file}: written")
    return lines
