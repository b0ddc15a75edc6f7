"""`opconform audit-model` and `opconform can`: a whole model on a backend."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
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
from ..models.output import INDEX, AuditFolder, audit_json, summary
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
from .options import limits_of, usable_cores


def extents(texts: Sequence[str]) -> dict[str, int]:
    """Return the extents of symbolic dimensions, given as `batch=4`. Raises OpconformError."""
    made = {}
    for text in texts:
        name, equals, extent = text.partition("=")
        if not equals or not extent.isdigit():
            raise OpconformError(f"--dim {text}: expected NAME=EXTENT, as in batch=4")
        made[name] = int(extent)
    return made


def audit_model(
    model: Path,
    backend: str,
    *,
    inputs: Path | None,
    dims: Sequence[str],
    seed: int,
    out: Path | None,
    resume: bool,
    work: int,
    values: int,
    seconds: float | None,
    timeout: float,
    memory: int | None,
    python: Path | None,
    requires: Sequence[str],
    arithmetic: str | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Audit a model, print the summary, and return the exit code: 1 if a node is wrong."""
    read = read_model(model)
    arrays = read.made_up(seed, extents(dims)) if inputs is None else read_inputs(inputs)
    read.check(arrays)
    spec = backend_spec(backend, python)
    terms = AuditOptions(
        most_work=work,
        most_bytes=values << 20,
        seconds=seconds,
        run_seconds=timeout,
        memory_bytes=None if memory is None else memory << 20,
        require=tuple(requires),
        declared=arithmetic,
        seed=seed,
    )
    about = repr((backend, work, terms.require, terms.declared, terms.seed))
    folder = None if out is None else AuditFolder.open(out, digest_of(read, arrays, about), resume=resume)
    known = {} if folder is None else folder.known
    with Console(stderr=True, quiet=quiet).status("running the model") as status:

        def show_and_keep(judged: JudgedNode) -> None:
            status.update(f"judging: {printable(judged.node.path)[:120]}")
            if folder is not None:
                folder.add(judged)

        audit = audited(read, arrays, spec, terms, known=known, on_judged=show_and_keep)
    lines = list(summary(audit))
    if folder is not None:
        folder.finish(page(audit, model.name, lines))
        lines += [f"script: {folder.path / name}" for name in folder.scripts]
        lines.append(f"page: {folder.path / INDEX}")
    click.echo(audit_json(audit) if as_json else "\n".join(map(printable, lines)))
    if audit.of("wrong"):
        return 1
    return 0 if audit.of("right") else NOTHING_JUDGED


def can(
    model: Path,
    backend: str,
    *,
    results: Sequence[Path],
    tries: bool,
    strict: bool,
    seed: int,
    jobs: int | None,
    timeout: float,
    memory: int | None,
    python: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Say what a backend can do with a model, and return the exit code: 1 if a node fails or is unsupported."""
    read = read_model(model)
    if results and tries:
        raise OpconformError("expected one of --results DIR, with results of the backend, and --try, which runs it now")
    source_of_results = backend
    if tries:
        assignment = Assignment(backend_spec(backend, python), source())
        ids = list(cases_for(read, seed))
        ran = run_cases(assignment, batched(ids), jobs=jobs or usable_cores(), limits=limits_of(timeout, memory))
        known = _results_of_run(ran, len(ids), Console(stderr=True, quiet=quiet))
    elif results:
        known = _results_of_folders(backend, results)
    else:
        source_of_results, known = _shipped_results(read, backend)
    nodes = supported(read, known)
    if as_json:
        click.echo(json.dumps([msgspec.to_builtins(node) for node in nodes]))
    else:
        click.echo("\n".join(map(printable, support_lines(nodes, source_of_results))))
    answers = {node.answer for node in nodes}
    if answers & {"fails", "unsupported"} or (strict and "unknown" in answers):
        return 1
    return 0 if "passes" in answers else NOTHING_JUDGED


def _results_of_run(ran: Iterable[object], count: int, console: Console) -> Iterator[Result]:
    judged = (event.result for event in ran if isinstance(event, Judged))
    with tracked(judged, "running the operators' cases", count, console) as shown:
        yield from shown


def _results_of_folders(name: str, folders: Sequence[Path]) -> Iterator[Result]:
    """Yield the results of the backend, in its release if its name has one. Raises OpconformError if there is none."""
    wanted, _, release = name.partition("==")
    seen: list[str] = []
    for folder in folders:
        names = set()
        for backend, about in read_run(folder).get("backends", {}).items():
            version = str(about.get("version", ""))
            seen.append(f"{backend} {version}")
            if backend.partition("==")[0] == wanted and _is_release(version, release):
                names.add(backend)
        if names:
            yield from (result for result in read_results(folder) if result.backend in names)
            return
    raise OpconformError(f"no result of {name}; the folders have {', '.join(seen) or 'none'}")


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
