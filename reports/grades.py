"""How accurate a backend is: the accuracy of single cases, joined by operator version and type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..cases.results import Result
from ..runners.accuracy import Accuracy, Grade, accuracy_from
from ..specs.globs import operator_version_of

ATTACHMENT = "accuracy"
"""The name of the attachment that has a result's accuracy."""


class Peak(NamedTuple):
    """The largest of a number over cases, and the case that reaches it: the first by its id where several do."""

    number: float
    case: str


@dataclass(frozen=True)
class Graded:
    """The accuracy of one operator version in one output type.

    `cases` counts cases by grade. `worst` is the case of the worst grade, the first by its id. `ulp` is the largest
    error in units in the last place, `share` the largest as a share of the widest admissible bound; None where no case
    has one.
    """

    backend: str
    operator_version: str
    type: str
    cases: Mapping[Grade, int]
    worst: str
    ulp: Peak | None
    share: Peak | None

    @property
    def grade(self) -> Grade:
        """The worst grade."""
        return max(self.cases, key=lambda grade: grade.rank)

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON, without what it is about."""
        return {
            "grade": str(self.grade),
            "worst": self.worst,
            "cases": {str(grade): self.cases[grade] for grade in Grade if grade in self.cases},
            "ulp": self.ulp and self.ulp._asdict(),
            "share": self.share and self.share._asdict(),
        }


@dataclass
class _Joined:
    """Accuracy so far; it does not depend on the order in which results arrive."""

    cases: Counter[Grade] = field(default_factory=Counter)
    worst: dict[Grade, str] = field(default_factory=dict)
    ulp: Peak | None = None
    share: Peak | None = None

    def add(self, grade: Grade, count: int, case: str) -> None:
        self.cases[grade] += count
        self.worst[grade] = min(self.worst.get(grade, case), case)

    def reach(self, ulp: Peak | None, share: Peak | None) -> None:
        self.ulp, self.share = _higher(self.ulp, ulp), _higher(self.share, share)


def _higher(a: Peak | None, b: Peak | None) -> Peak | None:
    found = [peak for peak in (a, b) if peak is not None]
    return min(found, key=lambda peak: (-peak.number, peak.case), default=None)


class Grades:
    """Joins the accuracy of results as they arrive."""

    def __init__(self) -> None:
        self._joined: dict[tuple[str, str, str], _Joined] = {}

    def add(self, result: Result, accuracy: Accuracy | None) -> None:
        """Take in how accurate an answer is; None says nothing."""
        if accuracy is None:
            return
        joined = self._of(result.backend, operator_version_of(result.case), accuracy.type)
        joined.add(accuracy.grade, 1, result.case)
        ulp = None if accuracy.ulp is None else Peak(accuracy.ulp, result.case)
        joined.reach(ulp, None if accuracy.share is None else Peak(accuracy.share, result.case))

    def merge(self, told: Mapping[str, Any]) -> None:
        """Take in what `to_dict` returned of other results. Raises ValueError, KeyError or TypeError if it is none."""
        for backend, versions in told.items():
            for operator_version, types in versions.items():
                for type_name, graded in types.items():
                    joined = self._of(backend, operator_version, type_name)
                    for grade, count in graded["cases"].items():
                        joined.cases[Grade(grade)] += int(count)
                    worst = Grade(graded["grade"])
                    joined.worst[worst] = min(joined.worst.get(worst, graded["worst"]), str(graded["worst"]))
                    joined.reach(*(graded[name] and Peak(**graded[name]) for name in ("ulp", "share")))

    def graded(self, backend: str | None = None) -> Iterator[Graded]:
        """Yield what is known, of one backend or all, in the order in which it came."""
        for key, joined in self._joined.items():
            if backend in (None, key[0]):
                worst = joined.worst[max(joined.cases, key=lambda grade: grade.rank)]
                yield Graded(*key, dict(joined.cases), worst, joined.ulp, joined.share)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON, by backend, operator version and type."""
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for graded in self.graded():
            versions = found.setdefault(graded.backend, {})
            versions.setdefault(graded.operator_version, {})[graded.type] = graded.to_dict()
        return found

    def _of(self, backend: str, operator_version: str, type_name: str) -> _Joined:
        return self._joined.setdefault((backend, operator_version, type_name), _Joined())


def attached_accuracy(attachments: Mapping[str, Any]) -> Accuracy | None:
    """Return the accuracy attached to a result; None if there is none, or if it could not be told."""
    read = attachments.get(ATTACHMENT)
    return accuracy_from(read) if isinstance(read, dict) and "grade" in read else None
