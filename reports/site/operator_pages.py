"""The page of an operator version: what its spec says, and what backends make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...cases.results import Outcome
from ...generators.comparing.differences import Difference, differences
from ...generators.comparing.situations import Side
from ...specs.globs import split_version
from ...specs.model import AttributeSignature, Clause, Port, Silence
from ..difference import cause_text, default_text, rule_text, said_text, signature_rows, situation_text
from ..tally import ChosenOptions, Figures
from .examples import examples
from .gather import FAILING, INVALID, NOT_RUN, OUTCOMES, Column, Gathered
from .knowledge import Knowledge
from .writer import FAILED, FEW, Level, Mark, SiteWriter, cases_link, mark_of, operator_page_name

_PASS = OUTCOMES.index(Outcome.PASS)
_UNSUPPORTED = OUTCOMES.index(Outcome.UNSUPPORTED)


@dataclass(frozen=True)
class ClauseMark:
    """What a backend made of the cases that test a clause, and the address of their list.

    `passed` counts passes, refusals of invalid inputs among them; `failing` what fails the run; `cases` all that ran.
    """

    level: Level
    text: str
    title: str
    link: str


ByClause: TypeAlias = Mapping[str, Sequence[ClauseMark | None]]


def by_clause(gathered: Gathered, columns: Sequence[Column], operator_version: str, cases: range) -> ByClause:
    """Return for each clause that a case tests a mark a backend, None where no such case was run."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for case in cases:
        groups.setdefault(gathered.clauses[case], []).append(case)
    clauses = dict.fromkeys(clause for tested in groups for clause in tested)
    found: dict[str, list[ClauseMark | None]] = {clause: [] for clause in clauses}
    for column in columns:
        counts: dict[str, Counter[str]] = {clause: Counter() for clause in clauses}
        for tested, numbers in groups.items():
            counted = _counts(column, numbers)
            for clause in tested:
                counts[clause].update(counted)
        for clause, of_clause in counts.items():
            found[clause].append(_mark(operator_version, clause, column.name, of_clause))
    return found


def _counts(column: Column, cases: Sequence[int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for case in cases:
        outcome = column.outcomes[case]
        if outcome == NOT_RUN:
            continue
        counts["cases"] += 1
        if outcome == _PASS:
            counts["passed"] += 1
        elif column.marks[case] & FAILING:
            counts["failing"] += 1
        elif outcome == _UNSUPPORTED:
            counts["unsupported"] += 1
        elif column.marks[case] & INVALID:
            counts["answered"] += 1
        else:
            counts["apart"] += 1
    return counts


def _mark(operator_version: str, clause: str, backend: str, counts: Counter[str]) -> ClauseMark | None:
    if not counts["cases"]:
        return None
    passed, failing = counts["passed"], counts["failing"]
    judged = passed + failing + counts["apart"]
    outcome = FAILED if failing else None
    short = clause.rpartition("#")[2]
    link = cases_link(operator=operator_version, backend=backend, outcome=outcome, clause=short)
    words = {
        "passed": "passed",
        "failing": "failed",
        "unsupported": "not supported",
        "answered": "invalid and answered",
        "apart": "waived or not counted",
    }
    title = ", ".join(f"{counts[name]:,} {told}" for name, told in words.items() if counts[name])
    if not judged:
        return ClauseMark("none", f"{counts['cases']:,} not judged", title, link)
    return ClauseMark(_level(passed, judged), f"{passed:,}/{judged:,}", title, link)


def _level(passed: int, judged: int) -> Level:
    if passed == judged:
        return "full"
    return "few" if passed >= FEW * judged else "some" if passed else "all"


COMPARED_AT_MOST = 24
"""Operator versions up to which a page shows which inputs tell it from the version before; that takes seconds each."""


@dataclass(frozen=True)
class RuleChange:
    """A clause or silence that is new in a version, gone, or says something else; None where a version has none."""

    id: str
    before: str | None
    now: str | None


@dataclass(frozen=True)
class VersionChange:
    """What a version changed: in the spec file's words, in its signature, its rules, and its answers.

    `answers` is None where they were not compared.
    """

    before: str
    words: str | None
    signature: Sequence[Any]
    clauses: Sequence[RuleChange]
    silences: Sequence[RuleChange]
    answers: Sequence[Mapping[str, Any]] | None


def write_operator_pages(site: SiteWriter, gathered: Gathered, known: Knowledge) -> None:
    """Write a page for each operator version that occurs."""
    found = gathered.by_operator_version()
    compares = len(found) <= COMPARED_AT_MOST
    siblings: dict[str, list[str]] = {}
    for operator_version in found:
        siblings.setdefault(split_version(operator_version)[0], []).append(operator_version)
    taken = _taken(gathered)
    figures = gathered.figures()
    for operator_version, cases in found.items():
        one = known.side(operator_version)
        columns = [column for column in gathered.columns if _runs(column, cases)]
        tested = by_clause(gathered, columns, operator_version, cases)
        site.page(
            operator_page_name(operator_version),
            "operator.html.j2",
            operator_version=operator_version,
            operator=split_version(operator_version)[0].partition("/")[2] or operator_version,
            version=split_version(operator_version)[1],
            standard=operator_version.partition("/")[0],
            siblings=siblings[split_version(operator_version)[0]],
            side=one,
            facts=None if one is None else _facts(known, one),
            change=None if one is None else _change(known, one, compares=compares),
            clauses=_clauses(one, tested),
            silences=_silences(one, taken.get(operator_version, {})),
            examples=[] if one is None else examples(known, gathered.cases[cases.start : cases.stop]),
            results=_results([column.name for column in columns], figures[operator_version]),
            backends=[{"name": column.name, "version": column.version} for column in columns],
            cases=len(cases),
        )


def _facts(known: Knowledge, one: Side) -> dict[str, Any]:
    """Return what the head of the page says: a summary in the words of the first clause, source, and opsets."""
    clauses = list(one.version.clauses.values())
    first = next((c for c in clauses if c.when == {} and c.status == "required"), clauses[0] if clauses else None)
    signature = one.version.signature
    return {
        "summary": first.text if first else None,
        "source": first.source if first else None,
        "opset": _opset(known, one),
        "attributes": [(a.name, a.kind, _default(a)) for a in signature.attributes],
        "inputs": [_port(port) for port in signature.inputs],
        "outputs": [_port(port) for port in signature.outputs],
        "types": list(signature.types.items()),
        "deprecated": signature.deprecated,
    }


def _default(attribute: AttributeSignature) -> str:
    if attribute.default is not None:
        return default_text(attribute.default)
    return "required" if attribute.required else "optional"


def _port(port: Port) -> tuple[str, str, str]:
    words = {"single": "required", "optional": "optional", "variadic": "any number", "each": "any number, of any types"}
    many = f", at least {port.minimum}" if port.is_variadic and port.minimum else ""
    return port.name, port.type, words[port.option] + many


def _opset(known: Knowledge, one: Side) -> str | None:
    """Return in which operation sets a version is in force."""
    standard, version = one.spec.standard, one.version.operator.version
    if standard == "openvino":
        return f"brought by opset{version}"
    if standard != "onnx":
        return None
    versions = [side.version.operator.version for side in known.versions(one)]
    later = versions[versions.index(version) + 1 :]
    domain = one.spec.domain or "ai.onnx"
    if not later:
        return f"opset {version} of {domain} and later; carried by opset {version} here"
    last = int(later[0]) - 1
    span = f"opset {version}" if last == version else f"opsets {version} to {last}"
    return f"{span} of {domain}; carried by opset {last} here, except where a case names another"


def _change(known: Knowledge, one: Side, *, compares: bool) -> VersionChange | None:
    versions = known.versions(one)
    place = [side.name for side in versions].index(one.name)
    if not place:
        return None
    before = versions[place - 1]
    return VersionChange(
        before.name,
        one.version.change,
        [row for row in signature_rows(before, one) if row.one != row.other],
        _rule_changes(before.version.clauses, one.version.clauses),
        _rule_changes(before.version.silences, one.version.silences),
        _answers(before, one) if compares else None,
    )


def _rule_changes(
    before: Mapping[str, Clause] | Mapping[str, Silence], now: Mapping[str, Clause] | Mapping[str, Silence]
) -> list[RuleChange]:
    told = [{id_: _rule(rule) for id_, rule in rules.items()} for rules in (before, now)]
    ids = dict.fromkeys([*told[0], *told[1]])
    return [RuleChange(id_, told[0].get(id_), told[1].get(id_)) for id_ in ids if told[0].get(id_) != told[1].get(id_)]


def _rule(rule: Clause | Silence) -> str:
    return rule.text if isinstance(rule, Clause) else f"{rule.when}: {', '.join(rule.options)}"


def _answers(before: Side, one: Side) -> list[dict[str, Any]]:
    """Return which inputs tell two versions of one spec file apart."""
    return [_answer(row) for row in differences(before, one)]


def _answer(row: Difference) -> dict[str, Any]:
    sides = [
        {"said": said_text(said), "rules": [rule_text(rule) for rule in rules], "case": said.case}
        for said, rules in zip(row.said, row.rules, strict=True)
    ]
    return {"cause": cause_text(row), "input": situation_text(row.situation), "sides": sides}


def _clauses(one: Side | None, tested: ByClause) -> list[dict[str, Any]]:
    """Return the clauses of the spec file, and those of cases that it lacks, each with a mark a backend."""
    own = {} if one is None else {f"{one.spec.operator}#{clause.id}": clause for clause in one.version.clauses.values()}
    return [
        {"id": id_.rpartition("#")[2], "clause": own.get(id_), "marks": tested.get(id_)}
        for id_ in dict.fromkeys([*own, *tested])
    ]


def _taken(gathered: Gathered) -> dict[str, dict[str, dict[str, ChosenOptions]]]:
    """Return what backends do, by operator version, silence and backend."""
    found: dict[str, dict[str, dict[str, ChosenOptions]]] = {}
    for taken in gathered.tables.behaviours.chosen():
        if taken.silence != "invalid":
            found.setdefault(taken.operator_version, {}).setdefault(taken.silence, {})[taken.backend] = taken
    return found


def _silences(one: Side | None, taken: Mapping[str, Mapping[str, ChosenOptions]]) -> list[dict[str, Any]]:
    own = {} if one is None else one.version.silences
    return [{"id": id_, "silence": own.get(id_), "taken": taken.get(id_, {})} for id_ in dict.fromkeys([*own, *taken])]


def _results(backends: Sequence[str], by_type: Mapping[str, Mapping[str, Figures]]) -> dict[str, list[Mark | None]]:
    """Return a mark a backend for each type; the first row is of all together."""
    together = {b: sum((f[b] for f in by_type.values() if b in f), Figures()) for b in backends}
    rows = {"": {b: f for b, f in together.items() if f.cases}, **by_type}
    return {name: [mark_of(row[b]) if b in row else None for b in backends] for name, row in rows.items()}


def _runs(column: Column, cases: range) -> bool:
    """Whether a backend was put to any of these cases."""
    return any(outcome != NOT_RUN for outcome in column.outcomes[cases.start : cases.stop])
