"""`opconform dev audit`: the spec files against the standard's schemas or library, and the suite's coverage."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from pathlib import Path

from ..cases.ids import parse_id
from ..generators.contract import breaches
from ..generators.parameters import bound_type, free_letters, setting_name
from ..generators.plan import Selection, by_version, planned
from ..generators.rows import Row, clauses_of
from ..generators.source import GeneratedCases, shipped
from ..reports.progress import tracked
from ..reports.text import STANDARD_NAMES, markdown_table, write_text
from ..runners.backends.library_reading import LibraryLost, read_library
from ..specs.audit import Audit, audit, check_standard
from ..specs.audit.findings import Coverages, Exercise
from ..specs.loader import Library
from ..specs.model import Spec, Word

_FAILED = 3


def audited(standard: str, *, specs: Path | None, as_json: bool, markdown: Path | None) -> tuple[Iterator[str], int]:
    """Return the lines of an audit and its exit code; write coverage as a page to `markdown`.

    The code is 1 if a spec differs from the standard's schema or library, if a spec and its reference break their
    contract, or if the suite's own specs lack a version of ONNX; 3 if the library could not be queried.
    """
    check_standard(standard)
    source = GeneratedCases(specs)
    try:
        reading = None if standard == "onnx" else read_library(standard, _specs(source.library, standard))
    except LibraryLost as error:
        print(f"opconform: the library of {standard} was lost: {error}", file=sys.stderr)
        return iter(()), _FAILED
    touched, ids = exercised(source, standard)
    result = audit(source.library, standard, touched, reading)
    others = () if specs is None else shipped().specs()
    broken = breaches(source, _specs(source.library, standard), by_version(ids), others)
    result = replace(result, breaches=broken.errors, gaps=(*result.gaps, *broken.untouched))
    lacking = result.without_spec if standard == "onnx" and specs is None else ()
    if markdown is not None:
        write_text(markdown, _page(result, source, touched, by_version(ids), lacking))
    lines = iter([result.to_json()]) if as_json else chain(_lines(result), (f"no spec: {name}" for name in lacking))
    is_open = result.findings.differences or result.breaches or lacking
    return lines, _FAILED if result.findings.failures else int(bool(is_open))


def _specs(library: Library, standard: str) -> list[Spec]:
    return [library.spec(name) for name in library.operators() if name.startswith(f"{standard}/")]


def _lines(result: Audit) -> Iterator[str]:
    against = f"{result.authority.source} {result.authority.version}"
    yield from map(str, result.findings.differences)
    yield from map(str, result.breaches)
    yield from (f"disputed: {error}" for error in result.findings.disputed)
    yield from (f"unchecked: {words}" for words in result.findings.unchecked)
    yield from (f"not asked: {words}" for words in result.findings.failures)
    yield from (f"more than the spec: {words}" for words in result.findings.beyond)
    count = len(result.findings.differences)
    verdict = "no differences" if not count else f"{count} difference{'s' if count > 1 else ''}"
    yield f"{result.standard}: {verdict} from {against}"
    count = len(result.breaches)
    kept = "holds" if not count else f"is broken in {count} place{'s' if count > 1 else ''}"
    yield f"the contract between spec files and references {kept}"
    if result.authority.untold:
        yield f"not shown by {against}: {'; '.join(result.authority.untold)}"
    yield from _coverage(result)
    if uncounted := result.authority.uncounted:
        yield f"types of {len(uncounted)} operator versions are not counted, because no operation could be made"
    for gap in result.gaps:
        yield f"no case: {gap}"


def _coverage(result: Audit) -> Iterator[str]:
    domains = [*result.domains.items()]
    if len(domains) > 1:
        domains.append(("together", result.coverages))
    yield f"{'coverage':<20}" + "".join(f"{name:>28}" for name, _ in domains)
    for field in fields(Coverages):
        label = field.name.replace("_", " ")
        yield f"{label:<20}" + "".join(f"{_cell(coverages, field.name):>28}" for _, coverages in domains)


def _cell(coverages: Coverages, name: str) -> str:
    coverage = getattr(coverages, name)
    share = f"{100 * coverage.covered / coverage.total:5.1f} %" if coverage.total else " " * 7
    return f"{coverage.covered:>7} / {coverage.total:<5}{share}"


def _page(
    result: Audit,
    source: GeneratedCases,
    touched: Mapping[str, Exercise],
    ids: Mapping[str, Sequence[str]],
    lacking: Sequence[str],
) -> str:
    """Return coverage as a page of documentation."""
    domains = [*result.domains.items(), ("together", result.coverages)]
    counted = [
        [field.name.replace("_", " "), *(_cell(coverages, field.name).strip() for _, coverages in domains)]
        for field in fields(Coverages)
    ]
    operators = [_operator_row(spec, touched, ids) for spec in _specs(source.library, result.standard)]
    missing: dict[str, dict[str, None]] = {}  # coverage of all versions of an operator, in order
    for gap in result.gaps:
        operator, _, words = gap.removeprefix(f"{result.standard}/").partition(": ")
        what, equals, value = words.removeprefix("no case ").partition(" = ")
        name = operator.rpartition("-")[0] or operator  # an operation of oneDNN has no version
        missing.setdefault(f"{name} {what}{equals}", {})[value] = None
    against = f"{result.authority.source} {result.authority.version}"
    return "\n".join(
        [
            f"# Coverage of {STANDARD_NAMES[result.standard]}",
            "",
            f"Generated by `opconform dev audit {result.standard} --markdown`, compared with {against}. "
            "[Audit](../audit.md) explains the counts.",
            "",
            *markdown_table(["", *(name for name, _ in domains)], counted),
            "",
            "Types are pairs of a letter and a type of its constraint; values are what cases give to attributes; edges "
            "are single cases that always run. Each is counted in every version.",
            "",
            *markdown_table(["operator", "versions", "cases", "types", "values", "edges"], operators),
            "",
            *(("## Without a spec", "", *(f"- {name}" for name in lacking), "") if lacking else ()),
            "## Without a case",
            "",
            *([f"- {words}{', '.join(values)}" for words, values in missing.items()] or ["Nothing."]),
            "",
        ]
    )


def _operator_row(spec: Spec, touched: Mapping[str, Exercise], ids: Mapping[str, Sequence[str]]) -> list[str]:
    """Return an operator's line: versions, cases, types, values of attributes and edges, over all versions."""
    cases = types = allowed = values = edges = wanted = 0
    for version in spec.versions.values():
        name, signature = str(version.operator), version.signature
        own = [parse_id(text) for text in ids.get(name, ())]
        pairs = {(letter, type_) for letter in signature.free_letters for type_ in signature.types[letter]}
        names = {setting_name(version, attribute.name) for attribute in signature.attributes}
        cases += len(own)
        types += len(touched.get(name, Exercise()).types & pairs)
        allowed += len(pairs)
        values += len({setting for case in own for setting in case.settings if setting[0] in names})
        edges += len({case.edge for case in own if case.edge in version.edges})
        wanted += len(version.edges)
    versions = ", ".join(map(str, spec.versions))
    return [spec.name, versions, f"{cases:,}", f"{types} of {allowed}", f"{values}", f"{edges} of {wanted}"]


def exercised(source: GeneratedCases, standard: str) -> tuple[dict[str, Exercise], list[str]]:
    """Return what is covered, by operator version, and the planned ids.

    An invalid case only covers the clauses that it tests.
    """
    exercises: dict[str, Exercise] = {}
    planned_ids: list[str] = []
    plan = planned(source.library, Selection((f"{standard}/*",)), from_lock=True)
    with tracked(plan, "planning") as ids:
        for text in ids:
            planned_ids.append(text)
            row = source.row(parse_id(text))
            name = str(row.version.operator)
            exercises[name] = with_case(exercises.get(name, Exercise()), row)
    return exercises, planned_ids


def with_case(known: Exercise, row: Row) -> Exercise:
    """Return what is covered when the suite also has this case."""
    clauses = known.clauses | {clause.partition("#")[2] for clause in clauses_of(row)}
    if row.rejected:
        return Exercise(known.types, known.attributes, clauses)
    version, types = row.version, row.id.types
    letters = free_letters(version)
    varied = [*zip(letters, types, strict=False), *((letters[-1], type_) for type_ in types[len(letters) :])]
    tied = ((letter, bound_type(version, types, text)) for letter, text in version.signature.ties.items())
    return Exercise(known.types | {*varied, *tied}, known.attributes | _set(row), clauses)


def _set(row: Row) -> set[str]:
    """Return the attributes that a case sets to a value other than their default, or to the type's only value."""
    made = {source.attribute for source in row.version.types_from.values()}
    return {
        attribute.name
        for attribute in row.version.signature.attributes
        if attribute.name in made or row.get(attribute.name) not in (Word.ABSENT, attribute.default)
    }
