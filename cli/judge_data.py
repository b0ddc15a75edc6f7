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
        verdict = {"path": self.path, "operator": self.operator, "outcome": self.outcome, "detail": self.detail}
        return json.dumps({**verdict, "explained": why}, ensure_ascii=False)


def _judgements(path: Path, library: Library, explanations: Sequence[ExplanationText]) -> Iterator[Judgement]:
    """Yield the verdict on each data set of a folder or an archive, in the order of paths. Raises CorpusError.

    An explanation is of the data sets in the folders of its glob that differ in the way that contains its detail.
    """
    for data_set, stored in ForeignCases(path).stored():
        if isinstance(stored, str):
            yield Judgement(data_set, "", "unreadable", stored)
            continue
        outcome, detail = _judged(stored, library)
        folder = data_set.rpartition("/")[0]
        fitting = (
            explanation
            for explanation in explanations
            if fnmatchcase(folder, explanation.test) and explanation.detail in detail
        )
        why = next(fitting, None) if outcome == "differs" else None
        yield Judgement(data_set, str(stored.program.operator), outcome, detail, why)


def _judged(stored: StoredCase, library: Library) -> tuple[Outcome, str]:
    try:
        admission = admitted(stored, library)
    except OpconformError as why:  # NotCovered, or a body or an attribute without a formula
        return "not-covered", str(why)
    except Exception as error:  # a defect in what we say about one model only affects that model
        return "failed", f"{type(error).__name__}: {error}"
    if admission.invalid:
        return "differs", f"its inputs are invalid by the clause {admission.invalid}"
    inputs, outputs = (
        [array for value in values for array in value.arrays] for values in (stored.inputs, stored.outputs)
    )
    plain = all(output.structure.kind == "tensor" for output in stored.outputs)
    structure = () if plain else tuple(output.structure.outline for output in stored.outputs)
    answers = Answers.of([Answer(tuple(outputs), structure)])
    batch = Batch.of_case(stored.id, stored.program, inputs, admission.expectation)
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
    judgements = list(_judgements(path, GeneratedCases(specs).library, explanations))
    used = {judgement.explanation for judgement in judgements}
    stale = [explanation for explanation in explanations if explanation not in used]
    if markdown is not None:
        write_text(markdown, _page(judgements, title))
    for line in (judgement.to_json() for judgement in judgements) if as_json else _lines(judgements):
        click.echo(line)
    for explanation in stale:
        click.echo(f"opconform: explained, but there is no such difference: {explanation.test}", err=True)
    return 1 if stale or any(_is_open(judgement) for judgement in judgements) else 0


def _is_open(judgement: Judgement) -> bool:
    return judgement.outcome == "failed" or (judgement.outcome == "differs" and judgement.explanation is None)


def _lines(judgements: Sequence[Judgement]) -> Iterator[str]:
    yield f"{'operator':<28}{'data sets':>10}{'admitted':>10}{'not':>6}{'not judged':>12}"
    for operator, numbers in _by_operator(judgements):
        counts = numbers["differs"] or "", numbers["not-covered"] or ""
        yield f"{printable(operator):<28}{numbers.total():>10}{numbers['agrees']:>10}{counts[0]:>6}{counts[1]:>12}"
    for verdict in judgements:
        if verdict.outcome in ("differs", "failed"):
            why = f"  ({verdict.explanation.verdict}: {verdict.explanation.reason})" if verdict.explanation else ""
            yield printable(f"{verdict.outcome}  {verdict.path}  {verdict.operator}: {first_line(verdict.detail)}{why}")
    yield from (printable(f"{number:>6}  {what}") for what, number in _totals(judgements).items())


def _totals(judgements: Iterable[Judgement]) -> Mapping[str, int]:
    words = {"agrees": "admitted", "differs": "not admitted", "failed": "failed on our side"}
    counts = Counter(words.get(judgement.outcome) or f"not judged: {judgement.detail}" for judgement in judgements)
    return dict(sorted(counts.items()))


def _by_operator(judgements: Iterable[Judgement]) -> Iterator[tuple[str, Counter[Outcome]]]:
    """Yield the operators with a judged data set, with their versions, and the number of data sets by verdict."""
    numbers: dict[str, Counter[Outcome]] = {}
    versions: dict[str, dict[str, None]] = {}
    for judgement in sorted(judgements, key=lambda judgement: judgement.operator):
        name, _, version = judgement.operator.rpartition("-")
        numbers.setdefault(name, Counter())[judgement.outcome] += 1
        if judgement.outcome != "not-covered":
            versions.setdefault(name, {})[version] = None
    for name, known in versions.items():
        yield f"{name} {', '.join(sorted(known, key=_number))}", numbers[name]


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0


def _page(judgements: Sequence[Judgement], title: str) -> str:
    """Return the totals, the differences with their explanations, and the operators as a page of documentation."""
    differences = [
        [
            markdown_code(verdict.path),
            markdown_text(verdict.operator),
            markdown_text(first_line(verdict.detail)),
            *_explained(verdict),
        ]
        for verdict in judgements
        if verdict.outcome in ("differs", "failed")
    ]
    operators = [
        [markdown_text(name.removeprefix("onnx/")), *(str(numbers[outcome]) for outcome in _COLUMNS)]
        for name, numbers in _by_operator(judgements)
        if numbers.keys() - {"agrees"}
    ]
    totals = [[markdown_text(what), f"{number:,}"] for what, number in _totals(judgements).items()]
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


def _explained(verdict: Judgement) -> tuple[str, str]:
    return (verdict.explanation.verdict, verdict.explanation.reason) if verdict.explanation else ("not explained", "")
