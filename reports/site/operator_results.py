"""What each backend made of an operator version, clause by clause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...cases.results import Outcome
from .gather import FAILING, INVALID, NOT_RUN, OUTCOMES, Column, Gathered
from .marks import FEW, Level
from .words import FAILED, cases_link

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
