"""Operator versions by backends: a table of marks, whose rows by element type are loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...cases.results import Outcome
from ...specs.globs import split_version
from ..tally import Figures
from .gather import Gathered
from .marks import LEGEND, Mark, mark_of
from .words import FAILED, shown
from .writer import SiteWriter

Cells: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Figures]]]
"""Figures by operator version, element type and backend."""


@dataclass(frozen=True)
class MatrixRow:
    """An operator version: a mark a backend, None where nothing was run; `outcomes` has those that occur."""

    operator_version: str
    name: str
    version: str
    marks: Sequence[Mark | None]
    outcomes: str


def write_matrix(site: SiteWriter, gathered: Gathered) -> None:
    """Write `matrix.html` and the data of its types."""
    backends = [column.name for column in gathered.columns]
    cells = _cells(gathered)
    rows = [_row(operator_version, by_type, backends) for operator_version, by_type in cells.items()]
    standards: dict[str, dict[str, list[MatrixRow]]] = {}
    for row in rows:
        standard, operator = row.operator_version.partition("/")[0], split_version(row.operator_version)[0]
        standards.setdefault(standard, {}).setdefault(operator, []).append(row)
    types = dict.fromkeys(t for by_type in cells.values() for t in by_type)
    outcomes = [o for o in Outcome if any(f.outcomes.get(o) for f in _all(cells))]
    site.page(
        "matrix.html",
        "matrix.html.j2",
        standards=standards,
        types=sorted(types),
        outcomes=[*([FAILED] if any(f.failed for f in _all(cells)) else []), *outcomes],
        legend=LEGEND,
        rows=len(rows),
        widths=_widths(rows),
    )
    site.asset("matrix.js")
    site.script("data/matrix.js", "opconform.takeMatrix", _by_type(cells, backends))


def _widths(rows: Sequence[MatrixRow]) -> Mapping[str, float]:
    """Return how wide the columns are, in rem, so that the longest name and mark find room: set before it is drawn."""
    names = max((len(row.name) + len(row.version) for row in rows), default=0)
    marks = max((len(mark.share) + len(mark.counts) for row in rows for mark in row.marks if mark), default=0)
    return {"first": round(min(5 + 0.58 * names, 20), 1), "each": round(min(max(3 + 0.53 * marks, 8), 14), 1)}


def _cells(gathered: Gathered) -> Cells:
    found: dict[str, dict[str, dict[str, Figures]]] = {}
    for group, figures in gathered.tables.tally.groups():
        found.setdefault(group.operator_version, {}).setdefault(group.types, {})[group.backend] = figures
    return {operator_version: found[operator_version] for operator_version in gathered.by_operator_version()}


def _all(cells: Cells) -> list[Figures]:
    return [figures for by_type in cells.values() for by_backend in by_type.values() for figures in by_backend.values()]


def _row(operator_version: str, by_type: Mapping[str, Mapping[str, Figures]], backends: Sequence[str]) -> MatrixRow:
    by_backend: dict[str, Figures] = {}
    for of_type in by_type.values():
        for backend, figures in of_type.items():
            by_backend[backend] = by_backend.get(backend, Figures()) + figures
    operator, version = split_version(operator_version)
    marks = [mark_of(by_backend[b]) if b in by_backend else None for b in backends]
    return MatrixRow(operator_version, operator.partition("/")[2], version, marks, _outcomes(by_backend.values()))


def _outcomes(figures: Collection[Figures]) -> str:
    """Return what occurs, as a list of words for the filter."""
    found = dict.fromkeys(str(outcome) for one in figures for outcome in one.outcomes)
    return " ".join([*found, *([FAILED] if any(one.failed for one in figures) else [])])


def _by_type(cells: Cells, backends: Sequence[str]) -> dict[str, Any]:
    """Return for JSON: by operator version and type a list of cells; 0 where nothing was run."""
    return {
        operator_version: {
            shown(name, 60): [_cell(by_backend.get(b)) for b in backends] for name, by_backend in by_type.items()
        }
        for operator_version, by_type in cells.items()
    }


def _cell(figures: Figures | None) -> list[Any] | int:
    """Return level, share, counts, title, and whether anything fails."""
    if figures is None:
        return 0
    mark = mark_of(figures)
    return [mark.level, mark.share, mark.counts, mark.title, 1 if mark.outcome else 0]
