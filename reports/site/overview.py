"""The overview and the matrix of the site: figures of each backend, and of each operator version by type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from ...cases.ids import operator_version_of, split_version
from ...cases.results import Outcome
from ...runners.accuracy import Grade
from ..arithmetic import IN_FULL, SUBJECTS, Graded, rolled_up
from ..badge import Badge, badges_of
from ..runs import Whole
from ..tables import clause_text_of
from ..tally import FailureGroup, Figures
from ..text import NOTHING, counted, percent
from .gather import Column, Gathered, Knowledge
from .writer import FAILED, LEGEND, Level, Mark, SiteWriter, cases_link, mark_of, mark_of_grade, shown, verdict_told

KINDS_SHOWN = 24
_WORST = (
    Outcome.RUNNER_ERROR, Outcome.CRASH, Outcome.TIMEOUT, Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE,
    Outcome.ERROR, Outcome.ACCEPTED_INVALID, Outcome.UNSUPPORTED,
)  # fmt: skip


@dataclass(frozen=True)
class BackendRow:
    """A backend as the overview shows it."""

    name: str
    version: str
    level: Level
    verdict: str
    sentence: str
    figures: Figures
    badges: Sequence[Badge]


@dataclass(frozen=True)
class Worst:
    """A kind of failures: the first of its cases, how many there are, and the clause that it is about."""

    backend: str
    outcome: str
    case: str
    detail: str
    clause: str
    clause_text: str | None
    count: int
    where: str
    operator_version: str
    like: str


def write_overview(site: SiteWriter, gathered: Gathered, knowledge: Knowledge) -> None:
    """Write `index.html` and the badges."""
    badges = badges_of(gathered.tables.tally, {column.name: column.version for column in gathered.columns})
    for badge in badges:
        site.write(f"badges/{badge.name}.svg", badge.svg())
        site.write(f"badges/{badge.name}.json", badge.endpoint())
    types, accuracy = _accuracy(gathered)
    rows = _rows(gathered, badges)
    site.page(
        "index.html",
        "overview.html.j2",
        rows=rows,
        outcomes=[o for o in Outcome if any(row.figures.outcomes.get(o) for row in rows)],
        worst=list(_worst(gathered, knowledge)),
        kinds=gathered.tables.failures.kinds,
        failures=gathered.tables.failures.count,
        accuracy_types=types,
        accuracy=accuracy,
        behaves={c.name: list(_behaves_like(gathered, c)) for c in gathered.columns},
        runs=[_run(whole) for whole in gathered.wholes],
        problems=gathered.problems,
        suspended=gathered.tables.tally.suspensions,
        cases=len(gathered.cases),
        operator_versions=len(gathered.by_operator_version()),
        required=gathered.terms.demands.required,
        profile=gathered.terms.demands.profile,
        declared=gathered.terms.declaration is not None,
    )


def _rows(gathered: Gathered, badges: Sequence[Badge]) -> list[BackendRow]:
    failures = gathered.tables.failures
    kinds = Counter(alike.first.backend for alike in failures.first(failures.kinds))
    return [_row(gathered, column, kinds[column.name], badges) for column in gathered.columns]


def _row(gathered: Gathered, column: Column, kinds: int, badges: Sequence[Badge]) -> BackendRow:
    figures = gathered.tables.tally.figures(column.name)
    own = [badge for badge in badges if badge.backend == column.name]
    return BackendRow(column.name, column.version, *verdict_told(figures, kinds), figures, own)


def _worst(gathered: Gathered, knowledge: Knowledge) -> Iterator[Worst]:
    """Yield kinds of failures, of as many backends and operators as possible, crashes first, then the most frequent."""
    text = clause_text_of(knowledge.library)
    found = gathered.tables.failures.first(KINDS_SHOWN)
    for alike in sorted(found, key=lambda one: (_WORST.index(one.first.outcome), -one.count)):
        result = alike.first
        operator_version = operator_version_of(result.case)
        clause = result.clauses[0] if result.clauses else ""
        yield Worst(
            result.backend,
            str(result.outcome),
            result.case,
            " ".join((result.detail or "")[:600].split()),
            clause.rpartition("#")[2],
            text(operator_version, clause) if clause else None,
            alike.count,
            alike.where,
            operator_version,
            _like(alike),
        )


def _like(alike: FailureGroup) -> str:
    """Return the address of the cases that fail alike, and of others of the operator with the same outcome."""
    operator_version = operator_version_of(alike.first.case)
    operators = {split_version(o)[0] for o in alike.operator_versions}
    if len(alike.operator_versions) == 1:
        where = {"operator": operator_version}
    else:
        where = {"q": f"{split_version(operator_version)[0]}-"} if len(operators) == 1 else {}
    return cases_link(**where, backend=alike.first.backend, outcome=alike.first.outcome)


def _accuracy(gathered: Gathered) -> tuple[list[str], list[dict[str, Any]]]:
    """Return element types, and for each backend its worst grade in each of them, with the case that shows it."""
    found: dict[str, dict[str, Graded]] = {}
    shares: dict[tuple[str, str], float] = {}
    for graded in gathered.tables.arithmetic.grades.graded():
        by_type = found.setdefault(graded.backend, {})
        worse = by_type.get(graded.type)
        if worse is None or graded.grade.rank > worse.grade.rank:
            by_type[graded.type] = graded
        key = (graded.backend, graded.type)
        shares[key] = max(shares.get(key, 0.0), graded.share.number if graded.share else 0.0)
    types = list(dict.fromkeys(sorted((t for by_type in found.values() for t in by_type), key=_by_kind)))
    rows = []
    for column in gathered.columns:
        by_type = found.get(column.name, {})
        cells = [_grade(by_type[t], shares[column.name, t]) if t in by_type else None for t in types]
        rows.append({"backend": column.name, "cells": cells})
    return types, rows if types else []


def _grade(graded: Graded, share: float) -> dict[str, Any]:
    told = percent(Fraction(share)) if graded.grade is not Grade.OUTSIDE else NOTHING
    return {"grade": str(graded.grade), "level": mark_of_grade(graded.grade), "share": told, "case": graded.worst}


def _by_kind(name: str) -> tuple[str, int]:
    digits = "".join(filter(str.isdigit, name))
    return name.rstrip("0123456789"), int(digits or 0)


def _behaves_like(gathered: Gathered, column: Column) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield what probes tell of a backend: in words, in which types, shown by which cases."""
    for alike in rolled_up(gathered.tables.arithmetic.fingerprints.traits(column.name)):
        form = SUBJECTS.get(alike.subject)
        if form is None or (alike.subject, alike.told) == ("probe-inputs", IN_FULL):
            continue
        told = form.format(alike.told)
        yield told.replace("like differently", "differently"), ", ".join(alike.types), alike.cases


def _run(whole: Whole) -> Mapping[str, Any]:
    """Return what was run, where and when, as `run.json` tells it."""
    told, parts = whole.parts[0].told, whole.parts
    machine = told.get("machine") or {}
    where = [machine.get("platform"), machine.get("processor"), counted(int(machine.get("cores") or 0), "core")]
    libraries = [f"{name} {version}" for name, version in (machine.get("libraries") or {}).items()]
    return {
        "backends": [f"{name} {version}" for name, version in whole.versions.items()],
        "suite": " ".join(filter(None, (str(told["suite"].get("version")), told["suite"].get("name")))),
        "digest": str(told["suite"].get("digest")),
        "selection": [str(glob) for glob in told.get("selection") or []],
        "options": f"strength {told.get('strength')}, draws {told.get('draws')}, seed {told.get('seed')}",
        "started": min(str(part.told.get("started")) for part in parts),
        "shards": len(parts) + len(whole.missing) if parts[0].shard else None,
        "machine": ", ".join(str(one) for one in where if one),
        "libraries": ", ".join([f"Python {machine.get('python')}", *libraries]),
        "command": " ".join(whole.parts[0].begun.command),
        "status": dict(Counter(str(part.told.get("status")) for part in parts)),
    }


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
    figures = gathered.figures()
    cells = {operator_version: figures[operator_version] for operator_version in gathered.by_operator_version()}
    rows = [_matrix_row(operator_version, by_type, backends) for operator_version, by_type in cells.items()]
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


def _all(cells: Cells) -> list[Figures]:
    return [figures for by_type in cells.values() for by_backend in by_type.values() for figures in by_backend.values()]


def _matrix_row(
    operator_version: str, by_type: Mapping[str, Mapping[str, Figures]], backends: Sequence[str]
) -> MatrixRow:
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
