"""`opconform compare-data`: compares test data with the suite: what each covers, and which mutants each exposes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from ..cases.batch import Batch
from ..cases.errors import OpconformError
from ..cases.foreign import ForeignCases, StoredCase
from ..cases.ids import parse_id
from ..generators.nodes import Told, admitted, node_program, told_by
from ..generators.plan import Selection, by_version, planned
from ..generators.source import GeneratedCases
from ..reports.text import write_text
from ..specs.audit.findings import Exercise, coverages, onnx_authority
from .auditing import table, with_case
from .killing import Bench, Trial, bench_of, benches, exposed
from .planning import planned_ids


@dataclass(frozen=True)
class CompareDataOptions:
    """The options of `opconform compare-data`; see its help."""

    path: Path
    sample: int = 30
    markdown: Path | None = None
    title: str = ""
    specs: Path | None = None


@dataclass
class _Suite:
    """The suite's content, by operator version: cases, invalid calls, and what they cover."""

    cases: Counter[str] = field(default_factory=Counter)
    invalid: Counter[str] = field(default_factory=Counter)
    touched: dict[str, Exercise] = field(default_factory=dict)


@dataclass(frozen=True)
class _Exposure:
    """The mutants that a suite kills, by name, and the triggers under which it exposes every effect that shows."""

    killed: frozenset[str]
    levels: frozenset[str]

    @classmethod
    def of(cls, trial: Trial) -> _Exposure:
        levels = (name for name, why in trial.grid.levels().items() if not why)
        return cls(frozenset(trial.killed), frozenset(levels))

    def __or__(self, other: _Exposure) -> _Exposure:
        return _Exposure(self.killed | other.killed, self.levels | other.levels)


_Table = tuple[Sequence[str], list[Sequence[str]]]


def compare_data(options: CompareDataOptions) -> int:
    """Compare, print or write the result, and return the exit code. Raises OpconformError for unusable data."""
    source = GeneratedCases(options.specs)
    source.library.refuse_broken()
    theirs, put = _theirs(options.path, source)
    if not theirs.cases:
        raise OpconformError(f"{options.path}: has no model with a single node of an operator version that has a spec")
    ours = _ours(source)
    sample = _sample(put, options.sample)
    ids = by_version(planned_ids(source, Selection(tuple(f"{name}/*" for name in sample) or ("nothing",))))
    exposures = {name: _exposures(source, put[name], ids[name], name) for name in sample}
    parts = (
        ("What they exercise", _ABOUT_TOTALS, _totals(theirs, ours, source)),
        ("What they expose", _ABOUT_MUTANTS, _mutants(exposures)),
        ("What stored data exposes alone", _ABOUT_ALONE, _alone(exposures)),
        ("Operator versions", _ABOUT_VERSIONS, _versions(theirs, ours, source)),
    )
    if options.markdown is not None:
        made = "Made by `opconform compare-data`."
        pages = [line for title, about, found in parts for line in ("", f"## {title}", "", about, "", *table(*found))]
        write_text(options.markdown, "\n".join([f"# {options.title}", "", made, *pages, ""]))
    for _, _, (head, rows) in parts[:3]:
        for row in (head, *rows):
            click.echo(f"{row[0]:<30}" + "".join(f"{cell:>15}" for cell in row[1:]))
    return 0


# What they exercise


def _theirs(path: Path, source: GeneratedCases) -> tuple[_Suite, dict[str, list[Bench]]]:
    """Return what stored data covers, and its valid calls on which mutants can run, small ones first."""
    found, put = _Suite(), dict[str, list[Bench]]()
    cases = ForeignCases(path)
    for place, stored in cases.stored():
        if isinstance(stored, str):
            continue
        try:
            told = told_by(stored, source.library)
        except OpconformError:  # several nodes, or an operator version without a spec
            continue
        name = str(told.version.operator)
        found.cases[name] += 1
        found.touched[name] = _with(found.touched.get(name, Exercise()), told)
        try:
            if admitted(stored, source.library).invalid:
                found.invalid[name] += 1
            else:
                put.setdefault(name, []).extend(_benches(cases, place, stored, source))
        except OpconformError:  # not plain tensors, or inputs that a reference does not accept
            continue
    return found, {name: sorted(every, key=lambda one: one.size) for name, every in put.items() if every}


def _benches(cases: ForeignCases, place: str, stored: StoredCase, source: GeneratedCases) -> list[Bench]:
    program, arrays = node_program(stored, source.library)
    return bench_of(source.library, Batch.of_case(stored.id, program, arrays, cases.expectation(place, stored)))


def _with(known: Exercise, told: Told) -> Exercise:
    defaults = told.version.signature.defaults
    given = {one.name for one in told.attributes if defaults.get(one.name) != one.value}
    return Exercise(known.types | told.types, known.attributes | given)


def _ours(source: GeneratedCases) -> _Suite:
    found = _Suite()
    for text in planned(source.library, Selection(("onnx/*",))):
        row = source.row(parse_id(text))
        name = str(row.version.operator)
        found.cases[name] += 1
        found.invalid[name] += bool(row.rejected)
        found.touched[name] = with_case(found.touched.get(name, Exercise()), row)
    return found


_ABOUT_TOTALS = (
    "Models of one node count, with each of their data sets. An attribute counts if its value differs from its "
    "default; a type triple is an operator version, a type letter and a type. Totals come from the schemas."
)


def _totals(theirs: _Suite, ours: _Suite, source: GeneratedCases) -> _Table:
    extents = {name: one for group in onnx_authority().extents.values() for name, one in group.items()}
    specs = [source.library.spec(name) for name in source.library.operators() if name.startswith("onnx/")]
    both = [coverages(extents, specs, suite.touched) for suite in (theirs, ours)]
    newest = {name.rpartition("-")[0]: name for name in sorted(extents, key=_number)}
    superseded = extents.keys() - newest.values()
    old = [sum(name in suite.touched for name in superseded) for suite in (theirs, ours)]

    def told(name: str) -> list[str]:
        return [f"{(one := getattr(found, name)).covered:,} of {one.total:,}" for found in both]

    return ("", "theirs", "ours"), [
        ("operator versions", *told("operator_versions")),
        ("of these superseded", *(f"{count:,} of {len(superseded):,}" for count in old)),
        ("type triples", *told("type_triples")),
        ("attributes", *told("attributes")),
        ("cases", *(f"{suite.cases.total():,}" for suite in (theirs, ours))),
        ("invalid calls among them", *(f"{suite.invalid.total():,}" for suite in (theirs, ours))),
    ]


_ABOUT_VERSIONS = (
    "Cases, then how many types there are cases with, attributes that are set, and clauses that are tested by name: "
    "stored data names none."
)


def _versions(theirs: _Suite, ours: _Suite, source: GeneratedCases) -> _Table:
    rows: list[Sequence[str]] = []
    for operator in source.library.operators():
        for version in source.library.spec(operator).versions.values() if operator.startswith("onnx/") else ():
            name, cells = str(version.operator), [""] * 7
            for suite, at in ((theirs, 0), (ours, 3)):
                one = suite.touched.get(name)
                if one is not None:
                    cells[at : at + 3] = str(suite.cases[name]), str(len(one.types)), str(len(one.attributes))
                    cells[6] = str(len(one.clauses))
            rows.append((name.removeprefix("onnx/"), *cells))
    head = ("operator version", "theirs: cases", "types", "attributes", "ours: cases", "types", "attributes", "clauses")
    return head, rows


# What they expose


def _sample(put: Mapping[str, Sequence[Bench]], size: int) -> list[str]:
    """Return the newest versions of some operators with stored data, evenly spread over their names."""
    newest = {name.rpartition("-")[0]: name for name in sorted(put, key=_number)}
    every = [newest[name] for name in sorted(newest)]
    return [every[place * len(every) // size] for place in range(size)] if size < len(every) else every


def _number(version: str) -> int:
    return int(version.rpartition("-")[2])


def _exposures(
    source: GeneratedCases, theirs: Sequence[Bench], ids: Sequence[str], name: str
) -> tuple[_Exposure, _Exposure]:
    spec, key = source.library.operator_version(name)
    version = spec.version(key)
    one, other = (exposed(spec, version, every) for every in (theirs, benches(source, ids)[0]))
    return _Exposure.of(one), _Exposure.of(other)


_ABOUT_MUTANTS = (
    "Wrong implementations of the newest versions of operators that both have, evenly spread over the alphabet, before "
    "the valid calls of both: theirs are judged by their own tolerances (1e-3 relative, 1e-7 absolute, or what "
    "`data.json` says), ours by our bounds. Mutants that either kills are counted, and triggers (a rank, an extent, a "
    "place …) under which either exposes every effect that shows."
)


def _mutants(found: Mapping[str, tuple[_Exposure, _Exposure]]) -> _Table:
    rows: list[Sequence[str]] = []
    totals: Counter[str] = Counter()
    head = ("operator version", "mutants", "theirs kill", "ours kill", "triggers", "theirs expose", "ours expose")
    for name, (theirs, ours) in found.items():
        both = theirs | ours
        numbers = [len(part) for part in (both.killed, theirs.killed, ours.killed)]
        numbers += [len(part) for part in (both.levels, theirs.levels, ours.levels)]
        totals.update(dict(zip(head[1:], numbers, strict=True)))
        rows.append((name.removeprefix("onnx/"), *map(str, numbers)))
    rows.append(("together", *(f"{totals[column]:,}" for column in head[1:])))
    return head, rows


_ABOUT_ALONE = (
    "Mutants of the sample that stored data kills and the suite does not: a gap, or an answer that the standard admits."
)


def _alone(found: Mapping[str, tuple[_Exposure, _Exposure]]) -> _Table:
    rows: list[Sequence[str]] = [
        (name.removeprefix("onnx/"), ", ".join(f"`{mutant}`" for mutant in sorted(theirs.killed - ours.killed)))
        for name, (theirs, ours) in found.items()
        if theirs.killed - ours.killed
    ]
    return ("operator version", "mutants"), rows
