"""A backend's page: its figures, changes, failures by kind, accuracy, and the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ...cases.inferred import INFERENCE
from ...cases.results import Outcome
from ...runners.judging.accuracy import Grade
from ..arithmetic import Graded, rolled_up
from ..runs import MergedRun
from ..text import NOTHING, counted, percent
from .gather import Column, Gathered, Knowledge
from .overview import Ranked, told_worst, worst_of
from .writer import Level, SiteWriter

KINDS_SHOWN = 24

GRADES: Mapping[Grade, tuple[Level, str]] = {
    Grade.ROUNDED: ("full", "the exact value, rounded to nearest"),
    Grade.FAITHFUL: ("full", "one of the two numbers next to the exact value"),
    Grade.WIDE: ("full", "within the bound of a wide accumulator"),
    Grade.STEPWISE: ("few", "within the bound of rounding after each step"),
    Grade.NARROW: ("few", "within the bound of a narrow accumulator"),
    Grade.BOUND: ("full", "within the bound of its type"),
    Grade.DECLARED: ("few", "only within the bound of declared arithmetic"),
    Grade.OUTSIDE: ("all", "not admitted"),
}
"""The level and the meaning of each grade of accuracy, as in docs/accuracy.md."""


def write_backend_pages(site: SiteWriter, gathered: Gathered, known: Knowledge, ranked: Sequence[Ranked]) -> None:
    """Write `backends/….html`, one page per backend."""
    kinds = worst_of(gathered)
    for row in ranked:
        column = gathered.column(row.name)
        own = kinds[row.name]
        accuracy = list(_accuracy(gathered, column))
        site.page(
            row.page,
            "backend.html.j2",
            row=row,
            counts=[(o, row.figures.outcomes[o]) for o in Outcome if row.figures.outcomes.get(o)],
            worst=list(told_worst(known, own[:KINDS_SHOWN])),
            kinds=len(own),
            failures=sum(alike.count for alike in own),
            without=_without(gathered, column),
            accuracy=accuracy,
            grades=[(grade, *GRADES[grade]) for grade in Grade],
            behaves=list(_behaves_like(gathered, column)),
            run=next(_run(merged) for merged in gathered.wholes if column.name in merged.versions),
            declared=gathered.terms.declaration is not None,
            inferred=gathered.tables.behaviours.total(column.name, INFERENCE),
        )


def _without(gathered: Gathered, column: Column) -> list[str]:
    """Return the operator versions without a judged case."""
    versions = gathered.tables.tally.operator_versions(column.name)
    return [name for name in gathered.by_operator_version() if name in versions and not versions[name].judged]


def _accuracy(gathered: Gathered, column: Column) -> Iterator[dict[str, Any]]:
    """Yield for each element type the worst grade, a case that shows it, and the largest share of a bound."""
    by_type: dict[str, list[Graded]] = {}
    for graded in gathered.tables.arithmetic.grades.graded(column.name):
        by_type.setdefault(graded.type, []).append(graded)
    for name in sorted(by_type, key=_by_kind):
        worst = max(by_type[name], key=lambda graded: graded.grade.rank)
        grade, level = worst.grade, GRADES[worst.grade][0]
        largest = max((graded.share.number for graded in by_type[name] if graded.share), default=0.0)
        share = percent(Fraction(largest)) if grade is not Grade.OUTSIDE else NOTHING
        yield {"type": name, "grade": grade, "level": level, "share": share, "case": worst.worst}


def _by_kind(name: str) -> tuple[str, int]:
    digits = "".join(filter(str.isdigit, name))
    return name.rstrip("0123456789"), int(digits or 0)


def _behaves_like(gathered: Gathered, column: Column) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the probes' findings on a backend: in words, with the types and the cases that show them."""
    for alike in rolled_up(gathered.tables.arithmetic.fingerprints.traits(column.name)):
        if alike.words:
            yield alike.words, ", ".join(alike.types), alike.cases


def _run(merged: MergedRun) -> Mapping[str, Any]:
    """Return what was run, where and when, according to `run.json`."""
    run_record, parts = merged.parts[0].run_json, merged.parts
    machine = run_record.get("machine") or {}
    where = [machine.get("platform"), machine.get("processor"), counted(int(machine.get("cores") or 0), "core")]
    if isinstance(machine.get("locales"), list):
        where.append(f"locales {', '.join(map(str, machine['locales'])) or 'none'}")
    libraries = [f"{name} {version}" for name, version in (machine.get("libraries") or {}).items()]
    return {
        "backends": [f"{name} {version}" for name, version in merged.versions.items()],
        "suite": " ".join(filter(None, (str(run_record["suite"].get("version")), run_record["suite"].get("name")))),
        "digest": str(run_record["suite"].get("digest")),
        "selection": [str(glob) for glob in run_record.get("selection") or []],
        "options": ", ".join(f"{name} {run_record.get(name)}" for name in ("strength", "draws", "seed")),
        "started": min(str(part.run_json.get("started")) for part in parts),
        "shards": len(parts) + len(merged.missing) if parts[0].shard else None,
        "machine": ", ".join(str(word) for word in where if word),
        "libraries": ", ".join([f"Python {machine.get('python')}", *libraries]),
        "command": " ".join(merged.parts[0].command),
        "status": dict(Counter(str(part.run_json.get("status")) for part in parts)),
    }
