"""`opconform dev judge-data`: judges the expected outputs of test data as if they were a backend's answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from ..cases.batch import Batch
from ..cases.errors import OpconformError
from ..cases.foreign import ForeignCases, StoredCase
from ..generators.nodes import admitted
from ..generators.source import GeneratedCases
from ..reports.text import first_line, markdown_code, markdown_table, markdown_text, printable, write_text
from ..runners.judging.answers import Answer, Answers
from ..runners.judging.judge import judge
from ..specs.loader import Library
from ..specs.reading import read_file

if TYPE_CHECKING:
    from ..specs.schema import ExplanationText

Outcome: TypeAlias = Literal["agrees", "differs", "not-covered", "unreadable", "failed"]

_COLUMNS: tuple[Outcome, ...] = ("agrees", "differs", "not-covered")


@dataclass(frozen=True)
class Judgement:
    """The verdict on a data set's expected outputs. `operator` includes its version, and is empty if it is unknown."""

    path: str
    operator: str
    outcome: Outcome
    detail: str = ""
    explanation: ExplanationText | None = None

    def to_json(self) -> str:
        """Return it as a line of JSON."""
        why = self.explanation and {"verdict": self.explanation.verdict, "reason": self.explanation.reason}
        told = {"path": self.path, "operator": self.operator, "outcome": self.outcome, "detail": self.detail}
        return json.dumps({**told, "explained": why}, ensure_ascii=False)


def _judgements(path: Path, library: Library, explanations: Sequence[ExplanationText]) -> Iterator[Judgement]:
    """Yield the verdict on each data set of a folder or an archive, in the order of paths. Raises CorpusError.

    An explanation is of the data sets in the folders of its glob that differ in the way that contains its detail.
    """
    for place, stored in ForeignCases(path).stored():
        if isinstance(stored, str):
            yield Judgement(place, "", "unreadable", stored)
            continue
        outcome, detail = _judged(stored, library)
        folder = place.rpartition("/")[0]
        fitting = (one for one in explanations if fnmatchcase(folder, one.test) and one.detail in detail)
        why = next(fitting, None) if outcome == "differs" else None
        yield Judgement(place, str(stored.program.operator), outcome, detail, why)


def _judged(stored: StoredCase, library: Library) -> tuple[Outcome, str]:
    try:
        found = admitted(stored, library)
    except OpconformError as why:  # NotCovered, or a body or an attribute without a formula
        return "not-covered", str(why)
    except Exception as error:  # a defect in what we say about one model only affects that model
        return "failed", f"{type(error).__name__}: {error}"
    if found.invalid:
        return "differs", f"its inputs are invalid by the clause {found.invalid}"
    inputs, outputs = (
        [array for value in values for array in value.arrays] for values in (stored.inputs, stored.outputs)
    )
    plain = all(one.structure.kind == "tensor" for one in stored.outputs)
    structure = () if plain else tuple(one.structure.outline for one in stored.outputs)
    answers = Answers.of([Answer(tuple(outputs), structure)])
    batch = Batch.of_case(stored.id, stored.program, inputs, found.expectation)
    (verdict,) = judge(batch, answers, again=answers)
    if verdict.outcome == "pass":
        taken = (f"{silence}={'|'.join(options)}" for silence, options in verdict.behaviour.items())
        return "agrees", ", ".join(taken)
    return "differs", f"{verdict.outcome}: {verdict.detail}"


def judge_data(
    path: Path, *, explained: Path | None, markdown: Path | None, title: str, as_json: bool, specs: Path | None
) -> int:
    """Judge data, print or write the result, and return the exit code.

    Raises SpecErrors for wrong explanations, OpconformError if they cannot be read.
    """
    explanations: list[ExplanationText] = []
    if explained is not None:
        from ..specs.schema import ExplanationsText, parsed  # noqa: PLC0415 - pydantic, which few commands need

        explanations = parsed(ExplanationsText, read_file(explained)).root
    found = list(_judgements(path, GeneratedCases(specs).library, explanations))
    used = {one.explanation for one in found}
    stale = [one for one in explanations if one not in used]
    if markdown is not None:
        write_text(markdown, _page(found, title))
    for line in (one.to_json() for one in found) if as_json else _lines(found):
        click.echo(line)
    for one in stale:
        click.echo(f"opconform: explained, but there is no such difference: {one.test}", err=True)
    return 1 if stale or any(_is_open(one) for one in found) else 0


def _is_open(one: Judgement) -> bool:
    return one.outcome == "failed" or (one.outcome == "differs" and one.explanation is None)


def _lines(found: Sequence[Judgement]) -> Iterator[str]:
    yield f"{'operator':<28}{'data sets':>10}{'admitted':>10}{'not':>6}{'not judged':>12}"
    for operator, numbers in _by_operator(found):
        told = numbers["differs"] or "", numbers["not-covered"] or ""
        yield f"{printable(operator):<28}{numbers.total():>10}{numbers['agrees']:>10}{told[0]:>6}{told[1]:>12}"
    for one in found:
        if one.outcome in ("differs", "failed"):
            why = f"  ({one.explanation.verdict}: {one.explanation.reason})" if one.explanation else ""
            yield printable(f"{one.outcome}  {one.path}  {one.operator}: {first_line(one.detail)}{why}")
    yield from (printable(f"{number:>6}  {what}") for what, number in _totals(found).items())


def _totals(found: Iterable[Judgement]) -> Mapping[str, int]:
    words = {"agrees": "admitted", "differs": "not admitted", "failed": "failed on our side"}
    told = Counter(words.get(one.outcome) or f"not judged: {one.detail}" for one in found)
    return dict(sorted(told.items()))


def _by_operator(found: Iterable[Judgement]) -> Iterator[tuple[str, Counter[Outcome]]]:
    """Yield the operators with a judged data set, with their versions, and the number of data sets by verdict."""
    numbers: dict[str, Counter[Outcome]] = {}
    versions: dict[str, dict[str, None]] = {}
    for one in sorted(found, key=lambda one: one.operator):
        name, _, version = one.operator.rpartition("-")
        numbers.setdefault(name, Counter())[one.outcome] += 1
        if one.outcome != "not-covered":
            versions.setdefault(name, {})[version] = None
    for name, known in versions.items():
        yield f"{name} {', '.join(sorted(known, key=_number))}", numbers[name]


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0


def _page(found: Sequence[Judgement], title: str) -> str:
    """Return the totals, the differences with their explanations, and the operators as a page of documentation."""
    differences = [
        [markdown_code(one.path), markdown_text(one.operator), markdown_text(first_line(one.detail)), *_explained(one)]
        for one in found
        if one.outcome in ("differs", "failed")
    ]
    operators = [
        [markdown_text(name.removeprefix("onnx/")), *(str(numbers[outcome]) for outcome in _COLUMNS)]
        for name, numbers in _by_operator(found)
        if numbers.keys() - {"agrees"}
    ]
    totals = [[markdown_text(what), f"{number:,}"] for what, number in _totals(found).items()]
    return "\n".join(
        [
            f"# {markdown_text(title)}",
            "",
            "The expected outputs in the files, judged like a backend's answers. Generated by "
            "`opconform dev judge-data`, which fails if a difference has no explanation.",
            "",
            *markdown_table(["data sets", ""], totals),
            "",
            "## Not admitted",
            "",
            *markdown_table(["data set", "operator", "what differs", "whose mistake", "why"], differences),
            "",
            "## Operators",
            "",
            "All data sets of operators that are not named here are admitted.",
            "",
            *markdown_table(["operator", "admitted", "not admitted", "not judged"], operators),
            "",
        ]
    )


def _explained(one: Judgement) -> tuple[str, str]:
    return (one.explanation.verdict, one.explanation.reason) if one.explanation else ("not explained", "")
