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
    Cause,
    Difference,
    Element,
    OutputAnswer,
    VersionAnswers,
    differences,
)
from ..generators.comparing.situations import FILL, SHAPES, TYPE, Side, Situation, side
from ..generators.parameters import plain_text
from ..generators.source import GeneratedCases
from ..specs.model import (
    AttributeSignature,
    Clause,
    Port,
    Signature,
    Silence,
    Spec,
)

_SHOWN = 8  # elements of an answer


@dataclass(frozen=True, slots=True)
class SignatureRow:
    """One part of two signatures, as a spec file writes it; None if a version lacks the part."""

    part: str
    one: str | None
    other: str | None


def difference_report(console: Console, one: str, other: str, specs: Path | None = None) -> None:
    """Print how two operator versions differ. Raises OpconformError for wrong names, or if they cannot be compared."""
    here, there = _sides(one, other, specs)
    found = differences(here, there)
    table = Table(title="signature", title_justify="left", title_style="bold")
    for heading in ("", here.name, there.name):
        table.add_column(heading, overflow="fold")
    for row in signature_rows(here, there):
        style = "" if row.one == row.other else "bold"
        table.add_row(row.part, *(Text(cell or "-", style) for cell in (row.one, row.other)))
    console.print(table)
    console.print(Text("behaviour", "bold"))
    for line in _lines(here, there, found):
        console.print(Text(line), soft_wrap=True)


def difference_json(one: str, other: str, specs: Path | None = None) -> str:
    """Return the same differences as JSON."""
    here, there = _sides(one, other, specs)
    found = [_told(here, there, difference) for difference in differences(here, there)]
    rows = [
        {"part": r.part, "one": r.one, "other": r.other, "same": r.one == r.other} for r in signature_rows(here, there)
    ]
    return json.dumps({"one": here.name, "other": there.name, "signature": rows, "behaviour": found}, indent=2)


def _sides(one: str, other: str, specs: Path | None) -> tuple[Side, Side]:
    source = GeneratedCases(specs)
    return side(source, one), side(source, other)


def signature_rows(one: Side, other: Side) -> list[SignatureRow]:
    """Return the signatures side by side: attributes by role, inputs and outputs by position, types."""
    here, there = one.version.signature, other.version.signature
    roles = {role: None for s in (one, other) for role, name in s.roles.items() if s.version.signature.attribute(name)}
    rows = [SignatureRow("attribute", *(_attribute(s, role) for s in (one, other))) for role in roles]
    rows += _ports("input", here.inputs, there.inputs)
    rows += _ports("output", here.outputs, there.outputs)
    letters = dict.fromkeys([*here.types, *there.types])
    rows += [SignatureRow("types", _types(here, letter), _types(there, letter)) for letter in letters]
    return rows


def _attribute(one: Side, role: str) -> str | None:
    name = one.roles.get(role)
    found = one.version.signature.attribute(name) if name else None
    return attribute_text(found) if found else None


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
    for place, (one, other) in enumerate(itertools.zip_longest(*texts), 1):
        yield SignatureRow(f"{what} {place}", one, other)


def port_text(port: Port) -> str:
    """Return an input or output as a spec file writes it: `axes: optional int64`, `data_0: T+`."""
    prefix = {"optional": "optional ", "each": "each "}.get(port.option, "")
    suffix = ("+" if port.minimum else "*") if port.is_variadic else ""
    return f"{port.name}: {prefix}{port.type}{suffix}"


def _types(signature: Signature, letter: str) -> str | None:
    return f"{letter}: {', '.join(signature.types[letter])}" if letter in signature.types else None


def _lines(one: Side, other: Side, found: list[Difference]) -> Iterator[str]:
    if not found:
        yield "the same answers to every input that the two spec files cover"
    for number, difference in enumerate(found, 1):
        yield ""
        yield f"{number}. {cause_text(difference)}: {situation_text(difference.situation)}"
        for here, told, rules in zip((one, other), difference.said, difference.rules, strict=True):
            yield f"   {here.name:<24} {said_text(told)}"
            for rule in rules:
                yield f"   {'':<24}   {rule_text(rule)}"
            if told.answers or not told.why:
                yield f"   {'':<24}   {told.case}"


def cause_text(difference: Difference) -> str:
    """Return the cause of a difference, in words."""
    return _cause_text(difference.cause, difference.types) or "several things at once"


def _cause_text(cause: Cause, types: tuple[str, ...]) -> str:
    parts = []
    for role, kind in cause:
        if role == TYPE:
            parts.append(f"type {', '.join(types)}")
        elif role in (SHAPES, FILL):
            parts.append({"scalar": "rank 0"}.get(kind, kind))
        else:
            parts.append(f"{role} {kind}" if kind not in ("0", "1", "2") else f"{role}={kind}")
    return " and ".join(parts)


def situation_text(situation: Situation) -> str:
    """Return an input in one line: type, shapes and settings by role."""
    settings = [f"{role}={plain_text(value)}" for role, value in situation.settings]
    data = "" if situation.fill == "ramp" else f", data {situation.fill}"
    return f"{situation.type} {print_shapes(situation.shapes)}{data}{', ' if settings else ''}{', '.join(settings)}"


def said_text(told: VersionAnswers) -> str:
    """Return what an operator version prescribes, in one line."""
    if not told.answers:
        return "invalid"
    return " | ".join(_answer_text(answer) for answer in told.answers)


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


def _told(one: Side, other: Side, difference: Difference) -> Mapping[str, Any]:
    sides = zip((one, other), difference.said, difference.rules, strict=True)
    return {
        "cause": dict(difference.cause),
        "types": list(difference.types),
        "input": situation_text(difference.situation),
        **{
            here.name: {
                "case": told.case,
                "valid": bool(told.answers),
                "answers": [_answer_json(answer) for answer in told.answers],
                "rules": [rule.id for rule in rules],
            }
            for here, told, rules in sides
        },
    }


def _answer_json(answer: Answer) -> dict[str, Any]:
    """Return an answer; `shape` and `values` are the first output's, `outputs` has all if there are several."""
    outputs = [_output_json(output) for output in answer.outputs]
    first = outputs[0] if outputs else {"shape": None, "values": []}
    told = {"kind": answer.kind, "shape": first["shape"], "values": first["values"], "options": dict(answer.labels)}
    return {**told, "outputs": outputs} if outputs[1:] else told


def _output_json(output: OutputAnswer) -> dict[str, Any]:
    values = output.values
    told = None if values is None else [v if isinstance(v, int | str) else repr(v) for v in values]  # JSON has no NaN
    return {"name": output.name, "shape": list(output.shape), "values": told}


R = TypeVar("R", Clause, Silence)


def page(operators: Sequence[str], title: str, specs: Path | None = None) -> str:
    """Return the page as Markdown. Raises OpconformError for names that are not operators."""
    source = GeneratedCases(specs)
    named = [_spec(source, name) for name in dict.fromkeys(operators)]
    sides = [[side(source, str(v.operator)) for v in spec.versions.values()] for spec in named]
    command = f"opconform dev page {' '.join(operators)} --title '{title}'"
    lines = [f"# {title}", "", f"Generated from the spec files by `{command}`. A test checks that it is current.", ""]
    lines += ["## Signatures", "", *_signatures([s for versions in sides for s in versions]), ""]
    for spec, versions in zip(named, sides, strict=True):
        lines += [f"## Clauses of {spec.operator}", "", *_rules(versions), ""]
        lines += [f"## Silences of {spec.operator}", "", *_silences(versions), ""]
    lines += ["## Differences", "", *_differing(sides)]
    return "\n".join(lines).rstrip() + "\n"


def _spec(source: GeneratedCases, name: str) -> Spec:
    return source.library.spec(name)


def _signatures(sides: Sequence[Side]) -> Iterator[str]:
    yield "| operator version | attributes | inputs | outputs | types |"
    yield "| --- | --- | --- | --- | --- |"
    for one in sides:
        signature = one.version.signature
        cells = [
            [attribute_text(a) for a in signature.attributes],
            [port_text(p) for p in signature.inputs],
            [port_text(p) for p in signature.outputs],
            [f"{letter}: {', '.join(types)}" for letter, types in signature.types.items()],
        ]
        yield f"| {one.name} | {' | '.join('<br>'.join(map(_code, cell)) or 'none' for cell in cells)} |"


def _rules(versions: Sequence[Side]) -> Iterator[str]:
    yield "| clause | rule | versions | status |"
    yield "| --- | --- | --- | --- |"
    for clause, where in _merged(versions, {one.name: one.version.clauses for one in versions}):
        yield f"| {_code(clause.id)} | {_cell(clause.text)} | {where} | {clause.status} |"


def _silences(versions: Sequence[Side]) -> Iterator[str]:
    if not any(one.version.silences for one in versions):
        yield "None, apart from the accumulator and the flushing of subnormal numbers, which are open everywhere."
        return
    yield "| silence | when | admissible answers | versions |"
    yield "| --- | --- | --- | --- |"
    for silence, where in _merged(versions, {one.name: one.version.silences for one in versions}):
        yield f"| {_code(silence.id)} | {_cell(silence.when)} | {', '.join(silence.options)} | {where} |"


def _merged(versions: Sequence[Side], parts: Mapping[str, Mapping[str, R]]) -> Iterator[tuple[R, str]]:
    """Yield each rule once, with the versions that have it."""
    for id_ in dict.fromkeys(id_ for found in parts.values() for id_ in found):
        having = [one for one in versions if id_ in parts[one.name]]
        where = (
            "every version"
            if len(having) == len(versions)
            else ", ".join(str(one.version.operator.version) for one in having)
        )
        yield parts[having[0].name][id_], where


def _differing(sides: Sequence[Sequence[Side]]) -> Iterator[str]:
    """Yield the differences of each version from the previous one, and of the newest versions from each other."""
    pairs = [pair for versions in sides for pair in itertools.pairwise(versions)]
    newest = [versions[-1] for versions in sides]
    pairs += [pair for pair in itertools.combinations(newest, 2) if _comparable(*pair)]
    for one, other in pairs:
        yield f"### {one.name} and {other.name}"
        yield ""
        if other.version.change and one.spec is other.spec:
            yield f"Change: {other.version.change}."
            yield ""
        yield from _pair(one, other, differences(one, other))
        yield ""


def _comparable(one: Side, other: Side) -> bool:
    return (one.spec.family, one.spec.function) == (other.spec.family, other.spec.function)


def _pair(one: Side, other: Side, found: Iterable[Difference]) -> Iterator[str]:
    rows = list(found)
    if not rows:
        yield "The same answers to every input that both accept."
        return
    yield f"| cause of the difference | smallest input | {one.name} | {other.name} |"
    yield "| --- | --- | --- | --- |"
    for row in rows:
        told = [
            "<br>".join([_cell(said_text(said)), *(_cell(rule_text(rule)) for rule in rules)])
            for said, rules in zip(row.said, row.rules, strict=True)
        ]
        yield f"| {_cell(cause_text(row))} | {_cell(situation_text(row.situation))} | {' | '.join(told)} |"


def _cell(text: str) -> str:
    return text.replace(" | ", "; or ").replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`"
