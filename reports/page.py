"""A page of documentation about operators, made from their spec files: signatures, rules, silences, differences."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from ..cases.errors import OpconformError
from ..generators.comparing.differences import Difference, differences
from ..generators.comparing.situations import Side, side
from ..generators.source import GeneratedCases
from ..specs.model import Clause, Silence, Spec
from .difference import attribute_text, cause_text, port_text, rule_text, said_text, situation_text

R = TypeVar("R", Clause, Silence)


def page(operators: Sequence[str], title: str, specs: Path | None = None) -> str:
    """Return the page as Markdown. Raises OpconformError for what is no operator."""
    source = GeneratedCases(specs)
    named = [_spec(source, name) for name in dict.fromkeys(operators)]
    sides = [[side(source, str(v.operator)) for v in spec.versions.values()] for spec in named]
    command = f"opconform page {' '.join(operators)} --title '{title}'"
    lines = [f"# {title}", "", f"Made by `{command}` from the spec files; a test compares the two.", ""]
    lines += ["## Signatures", "", *_signatures([s for versions in sides for s in versions]), ""]
    for spec, versions in zip(named, sides, strict=True):
        lines += [f"## What {spec.operator} says", "", *_rules(versions), ""]
        lines += [f"## What {spec.operator} leaves open", "", *_silences(versions), ""]
    lines += ["## Where they differ", "", *_differing(sides)]
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
    yield "| clause | says | in | status |"
    yield "| --- | --- | --- | --- |"
    for clause, where in _merged(versions, {one.name: one.version.clauses for one in versions}):
        yield f"| {_code(clause.id)} | {_cell(clause.text)} | {where} | {clause.status} |"


def _silences(versions: Sequence[Side]) -> Iterator[str]:
    if not any(one.version.silences for one in versions):
        yield "Nothing beside the accumulator and the flushing of subnormal numbers, which are open everywhere."
        return
    yield "| silence | when | admissible answers | in |"
    yield "| --- | --- | --- | --- |"
    for silence, where in _merged(versions, {one.name: one.version.silences for one in versions}):
        yield f"| {_code(silence.id)} | {_cell(silence.when)} | {', '.join(silence.options)} | {where} |"


def _merged(versions: Sequence[Side], parts: Mapping[str, Mapping[str, R]]) -> Iterator[tuple[R, str]]:
    """Yield each rule once, with the versions that have it."""
    for id_ in dict.fromkeys(id_ for found in parts.values() for id_ in found):
        having = [one for one in versions if id_ in parts[one.name]]
        where = "every version" if len(having) == len(versions) else ", ".join(_number(one) for one in having)
        yield parts[having[0].name][id_], where


def _number(one: Side) -> str:
    return str(one.version.operator.version)


def _differing(sides: Sequence[Sequence[Side]]) -> Iterator[str]:
    """Yield the differences of each version from the one before, and of the newest ones of each two operators."""
    pairs = [pair for versions in sides for pair in itertools.pairwise(versions)]
    newest = [versions[-1] for versions in sides]
    pairs += [pair for pair in itertools.combinations(newest, 2) if _comparable(*pair)]
    for one, other in pairs:
        yield f"### {one.name} and {other.name}"
        yield ""
        if other.version.change and one.spec is other.spec:
            yield f"What changed: {other.version.change}."
            yield ""
        yield from _pair(one, other, differences(one, other))
        yield ""


def _comparable(one: Side, other: Side) -> bool:
    return (one.spec.family, one.spec.function) == (other.spec.family, other.spec.function)


def _pair(one: Side, other: Side, found: Iterable[Difference]) -> Iterator[str]:
    rows = list(found)
    if not rows:
        yield "The same answers to every input that both can be asked."
        return
    yield f"| what makes the difference | smallest input | {one.name} | {other.name} |"
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


def write_page(text: str, target: Path) -> None:
    """Write a page. Raises OpconformError where that is not possible."""
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OpconformError(f"{target}: cannot be written: {error.strerror}") from error
