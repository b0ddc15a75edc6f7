"""The site's matrix: the share of passes of each operator version, by backend, family and element type."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...cases.ids import split_version
from ...cases.results import Outcome
from ..tally import Figures
from .gather import OTHER, Gathered, Knowledge, together
from .writer import FAILED, Mark, SiteWriter, mark_of, shown

_TITLES: Mapping[str, str] = {
    "activation": "Activations",
    "blocks": "Depth and space",
    "building": "Making tensors",
    "cast": "Casts",
    "constant": "Constants",
    "contraction": "Matrix products",
    "control": "Control flow",
    "convolution": "Convolutions",
    "decoding": "Image decoding",
    "detection": "Object detection",
    "elementwise": "Elementwise",
    "features": "Features (machine learning)",
    "gradient": "Gradients",
    "indexing": "Indexing",
    "joining": "Concatenation",
    "labels": "Labels (machine learning)",
    "layout": "Layout and shape",
    "losses": "Losses",
    "maps": "Maps (machine learning)",
    "normalization": "Normalizations",
    "pointwise": "Elementwise, several inputs",
    "random": "Random numbers",
    "recurrent": "Recurrent networks",
    "reduction": "Reductions",
    "resize": "Resizing",
    "sampling": "Grid sampling",
    "scores": "Scores (machine learning)",
    "sequence": "Sequences and optionals",
    "spectral": "Signal processing",
    "training": "Optimizers",
    "trees": "Trees (machine learning)",
    "unary": "Elementwise, one input",
}
"""The families of the spec files in words; others are shown by their own names."""

Cells: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Figures]]]
"""Figures by operator version, element type and backend."""


@dataclass(frozen=True)
class MatrixRow:
    """An operator version: a mark per backend, None if nothing was run; `outcomes` are those that occur."""

    operator_version: str
    name: str
    version: str
    marks: Sequence[Mark | None]
    outcomes: str


@dataclass(frozen=True)
class Family:
    """Operators of one kind, each with its versions, and their marks together."""

    name: str
    operators: Mapping[str, Sequence[MatrixRow]]
    marks: Sequence[Mark | None]

    @property
    def title(self) -> str:
        """Return its name for people: `Elementwise, one input` for `unary`."""
        return _TITLES.get(self.name, self.name.replace("_", " ").capitalize())

    @property
    def versions(self) -> int:
        """Return the number of operator versions."""
        return sum(map(len, self.operators.values()))


def write_matrix(site: SiteWriter, gathered: Gathered, known: Knowledge) -> None:
    """Write `matrix.html` and the data of its types."""
    backends = [column.name for column in gathered.columns]
    figures = gathered.figures()
    cells = {operator_version: figures[operator_version] for operator_version in gathered.by_operator_version()}
    sums = {operator_version: together(by_type.values()) for operator_version, by_type in cells.items()}
    families: dict[tuple[str, str], list[str]] = {}
    for operator_version in cells:
        operator = split_version(operator_version)[0]
        families.setdefault((operator.partition("/")[0], known.family(operator)), []).append(operator_version)
    standards: dict[str, list[Family]] = {}
    for (standard, name), versions in families.items():
        standards.setdefault(standard, []).append(_family(name, {v: sums[v] for v in versions}, backends))
    for families_of in standards.values():
        families_of.sort(key=lambda family: (family.name == OTHER, family.title))
    types = dict.fromkeys(t for by_type in cells.values() for t in by_type)
    outcomes = [o for o in Outcome if any(f.outcomes.get(o) for f in _all(cells))]
    site.page(
        "matrix.html",
        "matrix.html.j2",
        standards=standards,
        types=sorted(types),
        outcomes=[*([FAILED] if any(f.failed for f in _all(cells)) else []), *outcomes],
        rows=len(cells),
        widths=_widths(list(cells), backends),
    )
    site.asset("matrix.js")
    site.script("data/matrix.js", "opconform.takeMatrix", _by_type(cells, backends))


def _family(name: str, versions: Mapping[str, Mapping[str, Figures]], backends: Sequence[str]) -> Family:
    operators: dict[str, list[MatrixRow]] = {}
    for operator_version, by_backend in versions.items():
        operator, version = split_version(operator_version)
        row = MatrixRow(
            operator_version,
            operator.partition("/")[2],
            version,
            _marks(by_backend, backends),
            _outcomes(by_backend.values()),
        )
        operators.setdefault(operator, []).append(row)
    return Family(name, operators, _marks(together(versions.values()), backends))


def _marks(by_backend: Mapping[str, Figures], backends: Sequence[str]) -> list[Mark | None]:
    return [mark_of(by_backend[b]) if b in by_backend else None for b in backends]


def _widths(names: Sequence[str], backends: Sequence[str]) -> Mapping[str, float]:
    """Return the minimum widths of the columns in rem, set before the table is drawn, so that it does not move.

    A backend's name breaks after a hyphen, and not within a word of up to 15 letters.
    """
    longest = max((len(split_version(name)[0].partition("/")[2]) for name in names), default=0)
    word = max((len(word) for backend in backends for word in re.split(r"[-= ]", backend)), default=0)
    return {"first": round(min(5.5 + 0.5 * longest, 14), 1), "each": round(min(max(5.6, 1.1 + 0.52 * word), 9), 1)}


def _all(cells: Cells) -> list[Figures]:
    return [figures for by_type in cells.values() for by_backend in by_type.values() for figures in by_backend.values()]


def _outcomes(figures: Collection[Figures]) -> str:
    """Return the outcomes that occur, as a list of words for the filter."""
    outcomes = dict.fromkeys(str(outcome) for figure in figures for outcome in figure.outcomes)
    return " ".join([*outcomes, *([FAILED] if any(figure.failed for figure in figures) else [])])


def _by_type(cells: Cells, backends: Sequence[str]) -> dict[str, Any]:
    """Return for JSON, by operator version and type, a list of cells; 0 if nothing was run."""
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
