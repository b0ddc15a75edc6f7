"""`opconform audit`: the spec files against the standard's schemas, and what the suite covers of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from ..generators.exercised import exercised
from ..generators.source import GeneratedCases
from ..specs.audit import Audit, Coverages
from ..specs.audit import audit as audit_specs


def audited(standard: str, specs: Path | None, *, as_json: bool) -> tuple[Iterator[str], int]:
    """Return the lines of an audit and its exit code: 1 if a spec differs from the standard's schema."""
    source = GeneratedCases(specs)
    found = audit_specs(source.library, standard, exercised(source))
    lines = iter([found.to_json()]) if as_json else _lines(found)
    return lines, 1 if found.differences else 0


def _lines(found: Audit) -> Iterator[str]:
    yield from map(str, found.differences)
    for version in found.unchecked:
        yield f"cannot be checked: {version}: the installed onnx {found.onnx} is older"
    count = len(found.differences)
    verdict = "no differences" if not count else f"{count} difference{'s' if count > 1 else ''}"
    yield f"{found.standard}: {verdict} from the schemas of onnx {found.onnx}"
    domains = [*found.domains.items()]
    if len(domains) > 1:
        domains.append(("together", found.coverages))
    yield f"{'coverage':<20}" + "".join(f"{name:>22}" for name, _ in domains)
    for field in fields(Coverages):
        label = field.name.replace("_", " ")
        yield f"{label:<20}" + "".join(_cell(coverages, field.name) for _, coverages in domains)
    for gap in found.gaps:
        yield f"no case: {gap}"


def _cell(coverages: Coverages, name: str) -> str:
    one = getattr(coverages, name)
    share = f"{100 * one.covered / one.total:5.1f} %" if one.total else ""
    return f"{one.covered:>7} / {one.total:<5}{share:>7}"
