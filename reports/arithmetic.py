"""How accurate a backend is, joined by operator version and type; grades, fingerprint and declaration in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..cases.elements import Declaration
from ..cases.ids import operator_version_of, split_version
from ..cases.results import Result
from ..runners.accuracy import Accuracy, Grade, accuracy_from
from .fingerprint import DIFFERS, IN_FULL, DeclarationEvidence, Fingerprints, SharedTrait, evidence_on, rolled_up
from .text import NOTHING, percent, printable

ATTACHMENT = "accuracy"
"""The name of the attachment that has a result's accuracy."""


class Peak(NamedTuple):
    """The largest of a number over cases, and the case that reaches it: the first by its id where several do."""

    number: float
    case: str


@dataclass
class Graded:
    """The accuracy of one operator version in one output type; it does not depend on the order in which results arrive.

    `cases` counts cases by grade, `first` has the first of each grade by its id. `ulp` is the largest error in units in
    the last place, `share` the largest as a share of the widest admissible bound; None where no case has one.
    """

    backend: str
    operator_version: str
    type: str
    cases: Counter[Grade] = field(default_factory=Counter)
    first: dict[Grade, str] = field(default_factory=dict)
    ulp: Peak | None = None
    share: Peak | None = None

    @property
    def grade(self) -> Grade:
        """The worst grade."""
        return max(self.cases, key=lambda grade: grade.rank)

    @property
    def worst(self) -> str:
        """The case of the worst grade, the first by its id."""
        return self.first[self.grade]

    def add(self, accuracy: Accuracy, case: str) -> None:
        """Take in how accurate the answer to a case is."""
        self.cases[accuracy.grade] += 1
        self.first[accuracy.grade] = min(self.first.get(accuracy.grade, case), case)
        self.ulp = _higher(self.ulp, accuracy.ulp, case)
        self.share = _higher(self.share, accuracy.share, case)

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON, without what it is about."""
        return {
            "grade": str(self.grade),
            "worst": self.worst,
            "cases": {str(grade): self.cases[grade] for grade in Grade if grade in self.cases},
            "ulp": self.ulp and self.ulp._asdict(),
            "share": self.share and self.share._asdict(),
        }


def _higher(peak: Peak | None, number: float | None, case: str) -> Peak | None:
    found = [one for one in (peak, None if number is None else Peak(number, case)) if one is not None]
    return min(found, key=lambda one: (-one.number, one.case), default=None)


class Grades:
    """Joins the accuracy of results as they arrive."""

    def __init__(self) -> None:
        self._graded: dict[tuple[str, str, str], Graded] = {}

    def add(self, result: Result, accuracy: Accuracy | None) -> None:
        """Take in how accurate an answer is; None says nothing."""
        if accuracy is None:
            return
        key = (result.backend, operator_version_of(result.case), accuracy.type)
        self._graded.setdefault(key, Graded(*key)).add(accuracy, result.case)

    def graded(self, backend: str | None = None) -> Iterator[Graded]:
        """Yield what is known, of one backend or all, in the order in which it came."""
        return (graded for graded in self._graded.values() if backend in (None, graded.backend))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON, by backend, operator version and type."""
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for graded in self.graded():
            versions = found.setdefault(graded.backend, {})
            versions.setdefault(graded.operator_version, {})[graded.type] = graded.to_dict()
        return found


def attached_accuracy(attachments: Mapping[str, Any]) -> Accuracy | None:
    """Return the accuracy attached to a result; None if there is none, or if it could not be told."""
    read = attachments.get(ATTACHMENT)
    return accuracy_from(read) if isinstance(read, dict) and "grade" in read else None


_WORDS = {Grade.ROUNDED: "rounded"}
_STYLES = {Grade.OUTSIDE: "red", Grade.NARROW: "yellow", Grade.STEPWISE: "yellow", Grade.DECLARED: "yellow"}
_LEGEND = "the worst case's grade, and the largest error as a share of the widest bound"
SUBJECTS = {
    "probe-accumulator": "adds up like {}",
    "probe-inputs": "reads inputs like {}",
    "probe-rounding": "rounds {}",
    "probe-partial-sums": "partial sums {}",
}
"""What a probe tells of, with a place for what it told."""


@dataclass
class ArithmeticTables:
    """What is gathered of a run's arithmetic, as results arrive; `declaration` is what the user declared."""

    declaration: Declaration = field(default_factory=Declaration)
    grades: Grades = field(default_factory=Grades)
    fingerprints: Fingerprints = field(default_factory=Fingerprints)

    def add(self, result: Result, accuracy: Accuracy | None) -> None:
        """Take in a result, and how accurate it is."""
        self.grades.add(result, accuracy)
        self.fingerprints.add(result, accuracy)

    def evidence(self, backend: str) -> list[DeclarationEvidence]:
        """Return what is known of each declared field."""
        return evidence_on(self.declaration, self.fingerprints, backend)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        behaves = self.fingerprints.to_dict()
        told: dict[str, Any] = {"accuracy": self.grades.to_dict(), "behaves_like": behaves}
        if self.declaration.types:
            told["declared_arithmetic"] = {b: [e.to_dict() for e in self.evidence(b)] for b in behaves}
        return told


def print_arithmetic(console: Console, tables: ArithmeticTables, backend: str, title: str) -> None:
    """Print a backend's grades and fingerprint; nothing where nothing is known."""
    graded = list(tables.grades.graded(backend))
    if graded:
        console.print(Text(f"{title}, accuracy", "bold"))
        console.print(_matrix(graded))
        console.print(Text(_LEGEND, "dim"))
        console.print()
    lines = [*_behaves_like(tables.fingerprints, backend), *_declared(tables.evidence(backend))]
    if lines:
        console.print(Text(f"{title}, behaves like", "bold"))
        for line in lines:
            console.print(line, soft_wrap=True)
        console.print()


def _matrix(graded: Sequence[Graded]) -> Table:
    """Return a table of types by operator versions, those of one operator with the same grades in one row."""
    types = list(dict.fromkeys(g.type for g in graded))
    rows: dict[str, dict[str, Graded]] = {}
    for one in graded:
        rows.setdefault(one.operator_version, {})[one.type] = one
    alike: dict[tuple[str, ...], list[str]] = {}
    for operator_version, by_type in rows.items():
        grades = [str(by_type[t].grade) if t in by_type else "" for t in types]
        alike.setdefault((split_version(operator_version)[0], *grades), []).append(operator_version)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("operator", overflow="fold")
    for name in types:
        table.add_column(Text(printable(name)), overflow="fold")
    for versions in alike.values():
        cells = [_cell([rows[v][t] for v in versions if t in rows[v]]) for t in types]
        table.add_row(Text(printable(_named(versions))), *cells)
    return table


def _cell(graded: Sequence[Graded]) -> Text:
    if not graded:
        return Text(NOTHING, "dim")
    grade = graded[0].grade
    shares = [g.share.number for g in graded if g.share is not None]
    told = f" {percent(Fraction(max(shares)))}" if shares and grade is not Grade.OUTSIDE else ""
    return Text(_WORDS.get(grade, str(grade)) + told, _STYLES.get(grade, ""))


def _behaves_like(fingerprints: Fingerprints, backend: str) -> Iterable[Text]:
    alike = rolled_up(fingerprints.traits(backend))
    for one in alike:
        form = SUBJECTS.get(one.subject)
        if form is None or (one.subject, one.told) == ("probe-inputs", IN_FULL):
            continue
        told = form.replace("like {}", "{}").format(DIFFERS) if one.told == DIFFERS else form.format(one.told)
        yield Text(f"  {told}: {', '.join(map(printable, one.types))}{_where(one, alike)}")
        yield from (Text(f"    shown by {printable(case)}", "dim") for case in one.cases)
    # what a probe infers of the accumulator says more than which options single cases admit
    yield from _silences([one for one in alike if one.subject not in SUBJECTS and one.subject != "accumulator"])


def _where(one: SharedTrait, alike: Sequence[SharedTrait]) -> str:
    """Return the operator versions, where another thing is told of the same types elsewhere."""
    others = [a for a in alike if a.subject == one.subject and a is not one]
    if not any(set(a.types) & set(one.types) for a in others):
        return ""
    return f" in {_operators(one.operator_versions)}"


def _silences(alike: Sequence[SharedTrait]) -> Iterable[Text]:
    """Return which options are taken in all types and versions, and where they differ."""
    by_silence: dict[str, list[SharedTrait]] = {}
    for one in alike:
        by_silence.setdefault(one.subject, []).append(one)
    same = [f"{printable(s)} {printable(found[0].told)}" for s, found in by_silence.items() if len(found) == 1]
    if same:
        yield Text(f"  in all types and versions: {', '.join(same)}")
    for silence, found in by_silence.items():
        if len(found) > 1:
            yield Text(f"  {printable(silence)} differs:", "yellow")
            for one in found:
                where = f"{', '.join(map(printable, one.types))} in {_operators(one.operator_versions)}"
                yield Text(f"    {printable(one.told)}: {where}")
                yield Text(f"      shown by {printable(one.cases[0])}", "dim")


def _declared(evidence: Sequence[DeclarationEvidence]) -> Iterable[Text]:
    for one in evidence:
        style = "yellow" if one.bearing == "contradicted" else ""
        told = f"  declared {one.type} {one.field} {one.declared}: {one.bearing}"
        yield Text(told, style).append(f" by {printable(one.case)}" if one.case else "")


def _operators(operator_versions: Sequence[str]) -> str:
    by_operator: dict[str, list[str]] = {}
    for operator_version in operator_versions:
        by_operator.setdefault(split_version(operator_version)[0], []).append(operator_version)
    return "; ".join(printable(_named(versions)) for versions in by_operator.values())


def _named(operator_versions: Sequence[str]) -> str:
    """Return `onnx/Mean 1, 6` for versions of one operator."""
    split = [split_version(o) for o in operator_versions]
    return f"{split[0][0]} {', '.join(version for _, version in split if version)}".rstrip()
