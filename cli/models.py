"""`opconform audit-model` and `opconform can`: a whole model on a backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from ..cases.errors import OpconformError
from ..models.audit import AuditOptions, JudgedNode, audited, digest_of
from ..models.output import INDEX, AuditFolder, as_json, summary
from ..models.page import page
from ..models.reading import read_inputs, read_model
from ..reports.tally import NOTHING_JUDGED
from ..reports.text import printable
from ..runners.registry import backend_spec


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
    values: int = 256
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
