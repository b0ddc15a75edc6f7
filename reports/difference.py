"""Differences between operator versions, in signature and in outcome; and a page of documentation about operators."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..cases.ids import print_shapes
from ..generators.comparing.differences import (
    Answer,
    Difference,
    Element,
    OutputAnswer,
    VersionAnswers,
    differences,
)
from ..generators.comparing.situations import FILL, SHAPES, TYPE, Side, Situation, side
from ..generators.parameters import plain_text
from ..generators.source import GeneratedCases
from ..specs.model import AttributeSignature, Clause, Port, Signature, Silence
from .text import markdown_table

_SHOWN = 8  # elements of an answer


@dataclass(frozen=True, slots=True)
class SignatureRow:
    """One part of two signatures, as a spec file writes it; None if a version lacks the part."""

    part: str
    old: str | None
    new: str | None


def difference_report(console: Console, first: str, second: str, specs: Path | None = None) -> None:
    """Print how two operator versions differ. Raises OpconformError for wrong names, or if they cannot be compared."""
    here, there = _sides(first, second, specs)
    behaviour = differences(here, there)
    print_rows(console, "signature", here.name, there.name, signature_rows(here, there), marks=True)
    console.print(Text("behaviour", "bold"))
    for line in _lines(here, there, behaviour):
        console.print(Text(line), soft_wrap=True)


def print_rows(
    console: Console, title: str, old: str, new: str, rows: Iterable[SignatureRow], *, marks: bool = False
) -> None:
    """Print two versions side by side under their names; `marks`: what differs is bold."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in ("", old, new):
        table.add_column(heading, overflow="fold")
    for row in rows:
        style = "bold" if marks and row.old != row.new else ""
        table.add_row(row.part, *(Text(part or "-", style) for part in (row.old, row.new)))
    console.print(table)


def difference_json(first: str, second: str, specs: Path | None = None) -> str:
    """Return the same differences as JSON."""
    here, there = _sides(first, second, specs)
    behaviour = [_difference_json(here, there, difference) for difference in differences(here, there)]
    rows = [{"part": r.part, "one": r.old, "other": r.new, "same": r.old == r.new} for r in signature_rows(here, there)]
    return json.dumps({"one": here.name, "other": there.name, "signature": rows, "behaviour": behaviour}, indent=2)


def _sides(first: str, second: str, specs: Path | None) -> tuple[Side, Side]:
    source = GeneratedCases(specs)
    return side(source, first), side(source, second)


def signature_rows(first: Side, second: Side) -> list[SignatureRow]:
    """Return the signatures side by side: attributes by role, inputs and outputs by position, types."""
    here, there = first.version.signature, second.version.signature
    roles = {
        role: None for s in (first, second) for role, name in s.roles.items() if s.version.signature.attribute(name)
    }
    rows = [SignatureRow("attribute", *(_attribute(s, role) for s in (first, second))) for role in roles]
    rows += _ports("input", here.inputs, there.inputs)
    rows += _ports("output", here.outputs, there.outputs)
    letters = dict.fromkeys([*here.types, *there.types])
    rows += [SignatureRow("types", _types(here, letter), _types(there, letter)) for letter in letters]
    return rows


def _attribute(version_side: Side, role: str) -> str | None:
    name = version_side.roles.get(role)
    attribute = version_side.version.signature.attribute(name) if name else None
    return attribute_text(attribute) if attribute else None


def attribute_text(attribute: AttributeSignature) -> str:
    """Return an attribute as a spec file writes it: `keepdims: int = 1`."""
    if attribute.default is None:
        return f"{attribute.name}: {'' if attribute.required else 'optional '}{attribute.kind}"
    return f"{attribute.name}: {attribute.kind} = {default_text(attribute.default)}"


def default_text(value: object) -> str:
    """Return an attribute's default in the form of an id."""
    if isinstance(value, tuple):
        return ",".join(map(default_text, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ports(what: str, here: tuple[Port, ...], there: tuple[Port, ...]) -> Iterator[SignatureRow]:
    texts = (map(port_text, here), map(port_text, there))
    for number, (here_text, there_text) in enumerate(itertools.zip_longest(*texts), 1):
        yield SignatureRow(f"{what} {number}", here_text, there_text)


def port_text(port: Port) -> str:
    """Return an input or output as a spec file writes it: `axes: optional int64`, `data_0: T+`."""
    prefix = {"optional": "optional ", "each": "each "}.get(port.option, "")
    suffix = ("+" if port.minimum else "*") if port.is_variadic else ""
    return f"{port.name}: {prefix}{port.type}{suffix}"


def _types(signature: Signature, letter: str) -> str | None:
    return f"{letter}: {', '.join(signature.types[letter])}" if letter in signature.types else None


def _lines(first: Side, second: Side, behaviour: list[Difference]) -> Iterator[str]:
    if not behaviour:
        yield "the same answers to every input that the two spec files cover"
    for number, difference in enumerate(behaviour, 1):
        yield ""
        yield f"{number}. {cause_text(difference)}: {situation_text(difference.situation)}"
        for here, answers, rules in zip((first, second), difference.said, difference.rules, strict=True):
            yield f"   {here.name:<24} {said_text(answers)}"
            for rule in rules:
                yield f"   {'':<24}   {rule_text(rule)}"
            if answers.answers or not answers.why:
                yield f"   {'':<24}   {answers.case}"


def cause_text(difference: Difference) -> str:
    """Return the cause of a difference, in words."""
    parts = []
    for role, kind in difference.cause:
        if role == TYPE:
            parts.append(f"type {', '.join(difference.types)}")
        elif role in (SHAPES, FILL):
            parts.append({"scalar": "rank 0"}.get(kind, kind))
        else:
            parts.append(f"{role} {kind}" if kind not in ("0", "1", "2") else f"{role}={kind}")
    return " and ".join(parts) or "several things at once"


def situation_text(situation: Situation) -> str:
    """Return an input in one line: type, shapes and settings by role."""
    settings = [f"{role}={plain_text(value)}" for role, value in situation.settings]
    data = "" if situation.fill == "ramp" else f", data {situation.fill}"
    return f"{situation.type} {print_shapes(situation.shapes)}{data}{', ' if settings else ''}{', '.join(settings)}"


def said_text(answers: VersionAnswers) -> str:
    """Return what an operator version prescribes, in one line."""
    if not answers.answers:
        return "invalid"
    return " | ".join(_answer_text(answer) for answer in answers.answers)


def _answer_text(answer: Answer) -> str:
    options = ", ".join(f"{silence}={option}" for silence, option in answer.labels)
    if answer.kind in ("rejected", "anything"):
        text = {"rejected": "a refusal", "anything": "any answer"}[answer.kind]
    else:
        several = len(answer.outputs) > 1
        text = "; ".join(f"{o.name}: {_output_text(o)}" if several else _output_text(o) for o in answer.outputs)
    return f"{text} ({options})" if options else text


def _output_text(output: OutputAnswer) -> str:
    shape = "x".join(map(str, output.shape)) or "scalar"
    if output.values is None:
        return f"shape {shape}: any value"
    values = ", ".join(_element(v) for v in output.values[:_SHOWN])
    return f"shape {shape}: [{values}{', …' if len(output.values) > _SHOWN else ''}]"


def _element(value: Element) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(int(value)) if isinstance(value, float) and value.is_integer() and str(value) != "-0.0" else str(value)


def rule_text(rule: Clause | Silence) -> str:
    """Return a clause, or a silence with its condition."""
    if isinstance(rule, Silence):
        return f"silence {rule.id}: {rule.when}"
    return f"clause {rule.id}: {rule.text}"


def _difference_json(first: Side, second: Side, difference: Difference) -> Mapping[str, Any]:
    sides = zip((first, second), difference.said, difference.rules, strict=True)
    return {
        "cause": dict(difference.cause),
        "types": list(difference.types),
        "input": situation_text(difference.situation),
        **{
            here.name: {
                "case": answers.case,
                "valid": bool(answers.answers),
                "answers": [_answer_json(answer) for answer in answers.answers],
                "rules": [rule.id for rule in rules],
            }
            for here, answers, rules in sides
        },
    }


def _answer_json(answer: Answer) -> dict[str, Any]:
    """Return an answer; `shape` and `values` are the first output's, `outputs` has all if there are several."""
    outputs = [_output_json(output) for output in answer.outputs]
    first = outputs[0] if outputs else {"shape": None, "values": []}
    fields = {"kind": answer.kind, "shape": first["shape"], "values": first["values"], "options": dict(answer.labels)}
    return {**fields, "outputs": outputs} if outputs[1:] else fields


def _output_json(output: OutputAnswer) -> dict[str, Any]:
    values = output.values
    values_json = (
        None if values is None else [v if isinstance(v, int | str) else repr(v) for v in values]
    )  # JSON has no NaN
    return {"name": output.name, "shape": list(output.shape), "values": values_json}


R = TypeVar("R", Clause, Silence)


def page(operators: Sequence[str], title: str, specs: Path | None = None) -> str:
    """Return the page as Markdown. Raises OpconformError for names that are not operators."""
    source = GeneratedCases(specs)
    named = [source.library.spec(name) for name in dict.fromkeys(operators)]
    sides = [[side(source, str(v.operator)) for v in spec.versions.values()] for spec in named]
    command = f"opconform dev page {' '.join(operators)} --title '{title}'"
    lines = [f"# {title}", "", f"Generated from the spec files by `{command}`. A test checks that it is current.", ""]
    lines += ["## Signatures", "", *_signatures([s for versions in sides for s in versions]), ""]
    for spec, versions in zip(named, sides, strict=True):
        lines += [f"## Clauses of {spec.operator}", "", *_rules(versions), ""]
        lines += [f"## Silences of {spec.operator}", "", *_silences(versions), ""]
    lines += ["## Differences", "", *_differing(sides)]
    return "\n".join(lines).rstrip() + "\n"


def _signatures(sides: Sequence[Side]) -> Iterator[str]:
    rows = []
    for side_ in sides:
        signature = side_.version.signature
        cells = [
            [attribute_text(a) for a in signature.attributes],
            [port_text(p) for p in signature.inputs],
            [port_text(p) for p in signature.outputs],
            [f"{letter}: {', '.join(types)}" for letter, types in signature.types.items()],
        ]
        rows.append([side_.name, *("<br>".join(map(code, texts)) or "none" for texts in cells)])
    return markdown_table(("operator version", "attributes", "inputs", "outputs", "types"), rows)


def _rules(versions: Sequence[Side]) -> Iterator[str]:
    merged = _merged(versions, {side_.name: side_.version.clauses for side_ in versions})
    rows = ([code(clause.id), cell(clause.text), where, clause.status] for clause, where in merged)
    return markdown_table(("clause", "rule", "versions", "status"), rows)


def _silences(versions: Sequence[Side]) -> Iterable[str]:
    if not any(side_.version.silences for side_ in versions):
        return ["None, apart from the accumulator and the flushing of subnormal numbers, which are open everywhere."]
    merged = _merged(versions, {side_.name: side_.version.silences for side_ in versions})
    rows = ([code(silence.id), cell(silence.when), ", ".join(silence.options), where] for silence, where in merged)
    return markdown_table(("silence", "when", "admissible answers", "versions"), rows)


def _merged(versions: Sequence[Side], parts: Mapping[str, Mapping[str, R]]) -> Iterator[tuple[R, str]]:
    """Yield each rule once, with the versions that have it."""
    for id_ in dict.fromkeys(id_ for by_id in parts.values() for id_ in by_id):
        having = [side_ for side_ in versions if id_ in parts[side_.name]]
        where = (
            "every version"
            if len(having) == len(versions)
            else ", ".join(str(side_.version.operator.version) for side_ in having)
        )
        yield parts[having[0].name][id_], where


def _differing(sides: Sequence[Sequence[Side]]) -> Iterator[str]:
    """Yield the differences of each version from the previous one, and of the newest versions from each other."""
    pairs = [pair for versions in sides for pair in itertools.pairwise(versions)]
    newest = itertools.combinations((versions[-1] for versions in sides), 2)
    pairs += [(a, b) for a, b in newest if (a.spec.family, a.spec.function) == (b.spec.family, b.spec.function)]
    for first, second in pairs:
        yield f"### {first.name} and {second.name}"
        yield ""
        if second.version.change and first.spec is second.spec:
            yield f"Change: {second.version.change}."
            yield ""
        yield from _pair(first, second, differences(first, second))
        yield ""


def _pair(first: Side, second: Side, behaviour: Sequence[Difference]) -> Iterable[str]:
    if not behaviour:
        return ["The same answers to every input that both accept."]
    rows = []
    for difference in behaviour:
        answers = [
            "<br>".join([cell(said_text(said)), *(cell(rule_text(rule)) for rule in rules)])
            for said, rules in zip(difference.said, difference.rules, strict=True)
        ]
        rows.append([cell(cause_text(difference)), cell(situation_text(difference.situation)), *answers])
    return markdown_table(("cause of the difference", "smallest input", first.name, second.name), rows)


def cell(text: str) -> str:
    """Return a text for a cell of a table in Markdown."""
    return text.replace(" | ", "; or ").replace("|", "\\|")


def code(text: str) -> str:
    """Return a text as code in Markdown."""
    return f"`{text}`"
