"""A comparison as files: JSON for machines, and a short page of Markdown for a nightly job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...cases.errors import OpconformError
from ..text import counted, markdown_code, markdown_text, reproduce_line
from .compare import Comparison
from .compared_text import cells, heading, notes, summed_up, versions
from .kinds import Alike, Kind
from .sides import Side
from .state import Row

_SHOWN = 15
_DETAIL = 160


def write_comparison(comparison: Comparison, as_json: Path | None, as_markdown: Path | None) -> None:
    """Write the files that are wanted. Raises OpconformError where one cannot be written."""
    if as_json is not None:
        _write(as_json, json.dumps(comparison_json(comparison), allow_nan=False, indent=2) + "\n")
    if as_markdown is not None:
        _write(as_markdown, comparison_markdown(comparison))


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return all of it for JSON; of each group the first cases are named."""
    changes = comparison.changes
    return {
        "old": _side(comparison.old),
        "new": _side(comparison.new),
        "notes": list(notes(comparison)),
        "asked_otherwise": comparison.asked_otherwise,
        "changes": {str(kind): changes.of(kind) for kind in Kind},
        "backends": {backend: _backend(comparison, backend) for backend in comparison.backends},
        "groups": [_group(alike) for alike in changes.worst_first()],
    }


def comparison_markdown(comparison: Comparison) -> str:
    """Return a page: what changed, the worst first, and nothing of what is as it was."""
    lines = [f"## opconform: {summed_up(comparison)}", ""]
    told = list(notes(comparison))
    if comparison.changes.total or told:
        lines += [*_backends(comparison), "", *(f"- {markdown_text(note)}" for note in told), *[""][: len(told)]]
        lines += _groups(comparison)
    sides = [markdown_code(side.name) + f" ({side.started})" for side in (comparison.old, comparison.new)]
    return "\n".join([*lines, f"From {sides[0]} to {sides[1]}.", ""])


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OpconformError(f"{target}: cannot be written: {error.strerror}") from None


def _side(side: Side) -> dict[str, Any]:
    return {"name": side.name, "started": side.started, "backends": dict(side.versions)}


def _backend(comparison: Comparison, backend: str) -> dict[str, Any]:
    old, new = comparison.figures(backend)
    changes = comparison.changes
    return {
        "versions": [comparison.old.versions[backend], comparison.new.versions[backend]],
        "figures": [old.to_dict(), new.to_dict()],
        "changes": {str(kind): changes.of(kind, backend) for kind in Kind},
        "new_failures": changes.new_failures[backend],
    }


def _group(alike: Alike) -> dict[str, Any]:
    first = alike.first
    return {
        "kind": str(first.kind),
        "backend": first.row.backend,
        "what": first.words,
        "fails": first.fails,
        "count": alike.count,
        "operator_versions": dict(alike.operator_versions),
        "old": _row(first.old),
        "new": _row(first.new),
        "cases": alike.cases,
    }


def _row(row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    state = row.state
    return {
        "case": row.case,
        "outcome": str(state.outcome),
        "behaviour": state.silences,
        "reason": state.reason,
        "level": state.level,
        "detail": row.detail,
    }


def _backends(comparison: Comparison) -> Iterator[str]:
    yield "| backend | correctness | support | refusal | failures | regressions | fixes | other |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for backend in comparison.backends:
        yield f"| {markdown_text(versions(comparison, backend))} | {' | '.join(cells(comparison, backend))} |"


def _groups(comparison: Comparison) -> Iterator[str]:
    found = comparison.changes.worst_first()
    if not found:
        return
    yield "| change | times | first case | what |"
    yield "| --- | ---: | --- | --- |"
    several = len(comparison.backends) > 1
    for alike in found[:_SHOWN]:
        row = alike.first.row
        on = f" on {markdown_text(row.backend)}" if several else ""
        detail = (row.detail or "").partition("\n")[0]
        cut = detail if len(detail) <= _DETAIL else f"{detail[:_DETAIL]}…"
        what = markdown_text(f"{alike.first.words}: {cut}" if cut else alike.first.words)
        yield f"| {heading(alike)}{on} | {alike.count:,} | {markdown_code(row.case)} | {what} |"
    yield ""
    if len(found) > _SHOWN:
        yield f"And {counted(len(found) - _SHOWN, 'more kind')} of changes."
        yield ""
    first = found[0].first
    if first.fails:
        yield from ("Reproduce the first:", "", "```console", f"$ {reproduce_line(first.row.result)}", "```", "")
