"""The page of an operator version: the content of its spec, small examples, and the backends' results."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from ...cases.batch import Batch, Flag, Option
from ...cases.elements import Array, equal, type_of
from ...cases.errors import OpconformError
from ...cases.ids import split_version
from ...cases.results import Outcome
from ...generators.comparing.differences import Difference, differences
from ...generators.comparing.situations import Side
from ...generators.parameters import kindest_opset
from ...specs.model import AttributeSignature, Clause, Port, Silence
from ..difference import SignatureRow, cause_text, default_text, rule_text, said_text, signature_rows, situation_text
from ..show import element_text, node_text, output_names
from ..tally import ChosenOptions, Figures
from .gather import Column, Gathered, Knowledge, together
from .releases import Past, timeline
from .writer import FAILED, Mark, SiteWriter, level_of, mark_of, operator_page_name

SHOWN = 4
_ELEMENTS = 24
_FILLS = ("ramp", "lattice", "uniform")


@dataclass(frozen=True)
class Example:
    """A case: the operation in one line, the input tensors, and what is admitted."""

    case: str
    operation: str
    inputs: Sequence[tuple[str, str]]
    outputs: Sequence[tuple[str, str]]


def examples(known: Knowledge, cases: Sequence[str]) -> list[Example]:
    """Return examples from these cases: small ones, with different settings."""
    chosen: list[Example] = []
    for id_ in _candidates(cases):
        try:
            case = known.source.case(id_)
        except OpconformError:  # from another suite
            continue
        if 0 < len(case.expectation.options) <= 3 and all(_is_plain(o) for o in case.expectation.options):
            chosen.append(_example(case))
        if len(chosen) == SHOWN:
            break
    return chosen


def _candidates(cases: Sequence[str]) -> Iterator[str]:
    """Yield the ids of small cases; the first ones have different settings."""
    small = sorted((key, id_) for id_ in cases if (key := _key(id_)) is not None)
    seen: set[str] = set()
    for _, id_ in small:
        settings = id_.split("/")[4]
        if settings not in seen:
            seen.add(settings)
            yield id_


def _key(id_: str) -> tuple[int, ...] | None:
    """Return a sort key that is lower for smaller and plainer cases; None for a case that is neither."""
    parts = id_.split("/")
    if len(parts) != 6 or parts[5] not in _FILLS or "dims=" in parts[4] or "opset=" in parts[4]:
        return None
    shapes = [math.prod(map(int, dims)) for word in parts[3].split(",") if all(map(str.isdigit, dims := _dims(word)))]
    elements = max(shapes, default=0)
    if not 1 < elements <= _ELEMENTS:
        return None
    ranks = [len(_dims(word)) for word in parts[3].split(",")]
    flat = not 2 <= max(ranks) <= 3
    return _FILLS.index(parts[5]), flat, not parts[2].startswith("float32"), elements, len(parts[4])


def _dims(shape: str) -> list[str]:
    return shape.rpartition("*")[2].split("x")


def _is_plain(option: Option) -> bool:
    free = any(bounds.flags is not None and (bounds.flags & Flag.FREE).any() for bounds in option.outputs)
    return option.kind != "values" or (bool(option.outputs) and not free)


def _example(case: Batch) -> Example:
    inputs = [(name, a) for (name, _), a in zip(case.program.named_leaves, case.tensors(), strict=True)]
    constants = [(i.name, i.array()) for i in case.program.inputs if i is not None and i.constant is not None]
    return Example(
        case.id,
        node_text(case.program),
        [(f"{name}: {_kind(array)}", _values(array)) for name, array in [*inputs, *constants]],
        _outputs(case),
    )


def _outputs(case: Batch) -> list[tuple[str, str]]:
    """Return what is admitted, with the options of silences if they differ."""
    labels: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for option in case.expectation.options:
        labels_of = ", ".join(f"{silence}={answer}" for silence, answer in option.labels)
        labels.setdefault(tuple(_option(case, option)), []).append(labels_of)
    return [
        (head + (f" ({' or '.join(labels_of)})" if len(labels) > 1 and any(labels_of) else ""), values)
        for answer, labels_of in labels.items()
        for head, values in answer
    ]


def _option(case: Batch, option: Option) -> Iterator[tuple[str, str]]:
    if option.kind != "values":
        yield "a refusal" if option.kind == "rejected" else "any answer", ""
        return
    for name, bounds in zip(output_names(case.program, option), option.outputs, strict=True):
        shape = "x".join(map(str, bounds.shape)) or "scalar"
        width = "exactly" if equal(bounds.lower, bounds.upper).all() else "within its bound"
        yield f"{name}: {bounds.type} {shape}, {width}", _values(bounds.value[0, ...])


def _kind(array: Array) -> str:
    return f"{type_of(array)} {'x'.join(map(str, array.shape)) or 'scalar'}"


def _values(array: Array) -> str:
    plain = array if array.dtype.kind in "biufc" else np.vectorize(element_text, otypes=[object])(array)
    text = np.array2string(
        plain, separator=", ", max_line_width=60, threshold=4 * _ELEMENTS, edgeitems=3, formatter={"object": str}
    )
    return re.sub(r"\n\n+", "\n", text)


ByClause: TypeAlias = Mapping[str, Sequence[Mark | None]]


def by_clause(gathered: Gathered, columns: Sequence[Column], cases: range) -> ByClause:
    """Return for each tested clause a mark per backend, None if no such case was run."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for case in cases:
        groups.setdefault(gathered.clauses[case], []).append(case)
    clauses = dict.fromkeys(clause for tested in groups for clause in tested)
    marks: dict[str, list[Mark | None]] = {clause: [] for clause in clauses}
    for column in columns:
        counts: dict[str, Counter[str]] = {clause: Counter() for clause in clauses}
        for tested, numbers in groups.items():
            counted = _counts(column, numbers)
            for clause in tested:
                counts[clause].update(counted)
        for clause, of_clause in counts.items():
            marks[clause].append(_mark(of_clause))
    return marks


def _counts(column: Column, cases: Sequence[int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for case in cases:
        location = column.places[case]
        if location is None:
            continue
        counts["cases"] += 1
        if location.outcome is Outcome.PASS:
            counts["passed"] += 1
        elif location.outcome in (Outcome.CRASH, Outcome.TIMEOUT):  # says nothing about any clause
            counts["died"] += 1
        elif location.failing:
            counts["failing"] += 1
        elif location.outcome is Outcome.UNSUPPORTED:
            counts["unsupported"] += 1
        elif location.invalid:
            counts["answered"] += 1
        else:
            counts["apart"] += 1
    return counts


def _mark(counts: Counter[str]) -> Mark | None:
    """Return the mark of a backend's results for the cases that test a clause; `title` has what the share lacks."""
    if not counts["cases"]:
        return None
    passed, failing = counts["passed"], counts["failing"]
    judged = passed + failing + counts["apart"]
    outcome = FAILED if failing or counts["died"] else None
    words = {
        "passed": "passed",
        "failing": "failed",
        "died": "crashed or hung",
        "unsupported": "not supported",
        "answered": "invalid and answered",
        "apart": "waived or not counted",
    }
    title = ", ".join(f"{counts[name]:,} {word}" for name, word in words.items() if counts[name])
    if not judged:
        return Mark("none", f"{counts['cases']:,} not judged", "", title, outcome)
    more = title if passed < counts["cases"] else ""
    return Mark(level_of(Fraction(passed, judged)), f"{passed:,}/{judged:,}", "", more, outcome)


COMPARED_AT_MOST = 24
"""Maximum number of operator versions whose pages show inputs with another answer than before; each takes seconds."""


def write_operator_pages(site: SiteWriter, gathered: Gathered, known: Knowledge, past: Past) -> None:
    """Write a page for each operator version that occurs."""
    by_version = gathered.by_operator_version()
    compares = len(by_version) <= COMPARED_AT_MOST
    siblings: dict[str, list[str]] = {}
    for operator_version in by_version:
        siblings.setdefault(split_version(operator_version)[0], []).append(operator_version)
    taken = gathered.chosen()
    figures = gathered.figures()
    for operator_version, cases in by_version.items():
        side_ = known.side(operator_version)
        columns = [column for column in gathered.columns if any(column.places[cases.start : cases.stop])]
        tested = by_clause(gathered, columns, cases)
        site.page(
            operator_page_name(operator_version),
            "operator.html.j2",
            operator_version=operator_version,
            operator=split_version(operator_version)[0].partition("/")[2] or operator_version,
            version=split_version(operator_version)[1],
            standard=operator_version.partition("/")[0],
            siblings=siblings[split_version(operator_version)[0]],
            side=side_,
            facts=None if side_ is None else _facts(known, side_),
            change=None if side_ is None else _change(known, side_, compares=compares),
            clauses=_clauses(side_, tested),
            silences=_silences(side_, taken.get(operator_version, {})),
            examples=[] if side_ is None else examples(known, gathered.cases[cases.start : cases.stop]),
            results=_results([column.name for column in columns], figures[operator_version]),
            backends=[{"name": column.name, "version": column.version} for column in columns],
            cases=len(cases),
            releases=past.releases,
            timeline=timeline(past, siblings[split_version(operator_version)[0]]),
        )


def _facts(known: Knowledge, side_: Side) -> dict[str, Any]:
    """Return the head of the page: a summary from the first clause, source, and opsets."""
    clauses = list(side_.version.clauses.values())
    first = next((c for c in clauses if c.when == {} and c.status == "required"), clauses[0] if clauses else None)
    signature = side_.version.signature
    return {
        "summary": first.text if first else None,
        "source": first.source if first else None,
        "opset": _opset(known, side_),
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


def _opset(known: Knowledge, side_: Side) -> str | None:
    """Return the operation sets in which a version is valid."""
    standard, version = side_.spec.standard, side_.version.operator.version
    if standard == "openvino":
        return f"introduced by opset{version}"
    if standard != "onnx":
        return None
    versions = [side.version.operator.version for side in known.versions(side_)]
    later = versions[versions.index(version) + 1 :]
    domain = side_.spec.domain or "ai.onnx"
    here = f"carried by opset {kindest_opset(side_.spec, side_.version)} here, except where a case names another"
    if not later:
        return f"opset {version} of {domain} and later; {here}"
    last = int(later[0]) - 1
    span = f"opset {version}" if last == version else f"opsets {version} to {last}"
    return f"{span} of {domain}; {here}"


def _change(known: Knowledge, side_: Side, *, compares: bool) -> dict[str, Any] | None:
    """Return what a version changed: in the spec file's words, in its signature, its rules, and its answers.

    `answers`, the inputs on which the two versions differ, is None if they were not compared.
    """
    versions = known.versions(side_)
    position = [side.name for side in versions].index(side_.name)
    if not position:
        return None
    before = versions[position - 1]
    return {
        "before": before.name,
        "words": side_.version.change,
        "signature": [row for row in signature_rows(before, side_) if row.old != row.new],
        "clauses": _rule_changes(before.version.clauses, side_.version.clauses),
        "silences": _rule_changes(before.version.silences, side_.version.silences),
        "answers": [_answer(row) for row in differences(before, side_)] if compares else None,
    }


def _rule_changes(
    before: Mapping[str, Clause] | Mapping[str, Silence], now: Mapping[str, Clause] | Mapping[str, Silence]
) -> list[SignatureRow]:
    """Return the clauses or silences that a version adds, removes or changes."""
    old, new = ({id_: _rule(rule) for id_, rule in rules.items()} for rules in (before, now))
    rows = [SignatureRow(id_, old.get(id_), new.get(id_)) for id_ in dict.fromkeys([*old, *new])]
    return [row for row in rows if row.old != row.new]


def _rule(rule: Clause | Silence) -> str:
    return rule.text if isinstance(rule, Clause) else f"{rule.when}: {', '.join(rule.options)}"


def _answer(row: Difference) -> dict[str, Any]:
    sides = [
        {"said": said_text(said), "rules": [rule_text(rule) for rule in rules], "case": said.case}
        for said, rules in zip(row.said, row.rules, strict=True)
    ]
    return {"cause": cause_text(row), "input": situation_text(row.situation), "sides": sides}


def _clauses(side_: Side | None, tested: ByClause) -> list[dict[str, Any]]:
    """Return the clauses of the spec file, and those of cases that it lacks, each with a mark per backend."""
    own = (
        {}
        if side_ is None
        else {f"{side_.spec.operator}#{clause.id}": clause for clause in side_.version.clauses.values()}
    )
    return [
        {"id": id_.rpartition("#")[2], "clause": own.get(id_), "marks": tested.get(id_)}
        for id_ in dict.fromkeys([*own, *tested])
    ]


def _silences(side_: Side | None, taken: Mapping[str, Mapping[str, ChosenOptions]]) -> list[dict[str, Any]]:
    own = {} if side_ is None else side_.version.silences
    return [{"id": id_, "silence": own.get(id_), "taken": taken.get(id_, {})} for id_ in dict.fromkeys([*own, *taken])]


def _results(backends: Sequence[str], by_type: Mapping[str, Mapping[str, Figures]]) -> dict[str, list[Mark | None]]:
    """Return a mark per backend for each type; the first row covers all types."""
    rows = {"": together(by_type.values()), **by_type}
    return {name: [mark_of(row[b]) if b in row else None for b in backends] for name, row in rows.items()}
