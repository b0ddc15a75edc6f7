"""What came of a group of cases as a mark: a level with its colour and symbol, a share, and counts in words."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from ...cases.results import Outcome
from ...runners.accuracy import Grade
from ..tally import Figures
from ..text import counted, percent
from .words import FAILED

Level: TypeAlias = Literal["full", "few", "some", "all", "none"]

FEW = Fraction(9, 10)
LEGEND: tuple[tuple[Level, str], ...] = (
    ("full", "every judged case passes"),
    ("few", "at least 90% pass"),
    ("some", "some pass"),
    ("all", "none passes"),
    ("none", "nothing judged: not supported, or only invalid inputs"),
)

_OF_GRADE: dict[Grade, Level] = {
    Grade.STEPWISE: "few",
    Grade.NARROW: "few",
    Grade.DECLARED: "few",
    Grade.OUTSIDE: "all",
}


@dataclass(frozen=True)
class Mark:
    """What a cell shows: its level, a share or a word, the counts behind it, and all of it in a sentence.

    `outcome` is what a list of cases is narrowed to: that which fails, if anything does.
    """

    level: Level
    share: str
    counts: str
    title: str
    outcome: str | None


def mark_of(figures: Figures) -> Mark:
    """Return the mark of these figures."""
    share = figures.correctness
    outcome = FAILED if figures.failed else None
    if share is None:
        level: Level = "all" if figures.failed else "none"
        return Mark(level, _unjudged(figures), "", outcomes_told(figures), outcome)
    level = "full" if share == 1 else "few" if share >= FEW else "some" if share else "all"
    if level == "full" and figures.failed:  # of what is no part of correctness
        level = "few"
    return Mark(level, percent(share), f"{figures.strict:,}/{figures.judged:,}", outcomes_told(figures), outcome)


def mark_of_grade(grade: Grade) -> Level:
    """Return the level of an accuracy grade."""
    return _OF_GRADE.get(grade, "full")


def outcomes_told(figures: Figures) -> str:
    """Return how often each outcome occurred: `103 pass, 4 wrong-value`."""
    return ", ".join(f"{count:,} {outcome}" for outcome, count in figures.outcomes.items())


def verdict_told(figures: Figures, kinds: int) -> tuple[Level, str, str]:
    """Return a backend's verdict: its level, in a word, and as a sentence."""
    if figures.outcomes.get(Outcome.RUNNER_ERROR):
        broken = counted(figures.outcomes[Outcome.RUNNER_ERROR], "case")
        return "all", "No verdict", f"our own side failed at {broken}, which is to be reported."
    if not figures.judged and not figures.put:
        return "none", "Nothing judged", "which is no success: no case ran to an end that could be judged."
    if figures.failed:
        of = f"{figures.failed:,} of {counted(figures.cases, 'case')} {'fails' if figures.failed == 1 else 'fail'}"
        return "some", "Non-conformant", f"{of}, in {counted(kinds, 'kind')} of failures."
    waived = figures.outcomes.get(Outcome.WAIVED, 0)
    told = f"no failure among {counted(figures.judged, 'judged case')}"
    return "full", "Conformant", f"{told}, {waived:,} of them waived." if waived else f"{told}."


def _unjudged(figures: Figures) -> str:
    if figures.unsupported:
        return "unsupported"
    if figures.put:
        return f"{figures.refused:,}/{figures.put:,} refused"
    return "not judged"
