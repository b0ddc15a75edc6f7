"""What a second judgement changed: old outcome to new, with the reason, and what has to be run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.text import Text

from ..cases.results import Result
from .text import counted, printable

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Change:
    """One result that is another now; `old` and `new` are outcomes, and tell whether the case is suspended."""

    case: str
    backend: str
    old: str
    new: str
    reason: str

    def to_dict(self) -> dict[str, str]:
        """Return it for JSON."""
        return {"case": self.case, "backend": self.backend, "old": self.old, "new": self.new, "reason": self.reason}


@dataclass
class Changes:
    """The changes of a whole run. `run_again` has the results that could not be judged again, each with the reason.

    `from_answers` counts those that were judged from the bytes of an answer; others are refusals, which are judged by
    their words, or are as they were since nothing that decides them has changed.
    """

    changed: list[Change] = field(default_factory=list)
    run_again: list[tuple[str, str, str]] = field(default_factory=list)
    unchanged: int = 0
    from_answers: int = 0

    def add(self, old: Result, new: Result, suspended: tuple[str | None, str | None]) -> None:
        """Compare a result with what is reported in its place; `suspended`: why its case did not and does not count."""
        before, now = suspended
        told = _outcome(old, before), _outcome(new, now)
        if told[0] == told[1]:
            self.unchanged += 1
        else:
            self.changed.append(Change(old.case, old.backend, *told, _reason(old, new, before, now)))

    def cannot(self, result: Result, why: str) -> None:
        """Take in a result that keeps its outcome since it cannot be judged again."""
        self.run_again.append((result.case, result.backend, why))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "unchanged": self.unchanged,
            "from_answers": self.from_answers,
            "changed": [change.to_dict() for change in self.changed],
            "run_again": [{"case": c, "backend": b, "reason": why} for c, b, why in self.run_again],
        }


def print_changes(console: Console, changes: Changes) -> None:
    """Print what changed, what has to be run again, and how much of each."""
    kinds = Counter((change.old, change.new, change.reason) for change in changes.changed)
    for (old, new, reason), count in kinds.most_common():
        console.print(Text(f"{old} -> {new}: {counted(count, 'result')}, {printable(reason)}"), soft_wrap=True)
        alike = [c for c in changes.changed if (c.old, c.new, c.reason) == (old, new, reason)]
        _print_cases(console, [(c.case, c.backend) for c in alike])
    if changes.run_again:
        number = len(changes.run_again)
        console.print(Text(f"cannot be judged again, run them: {counted(number, 'result')}", "yellow"), soft_wrap=True)
        reasons: Mapping[str, int] = Counter(why for *_, why in changes.run_again)
        for why in reasons:
            console.print(Text(f"  {printable(why)}:"), soft_wrap=True)
            _print_cases(console, [(case, backend) for case, backend, told in changes.run_again if told == why])
    told = (
        f"{len(changes.changed):,} changed, {changes.unchanged:,} as before, {len(changes.run_again):,} to be run again"
    )
    console.print(Text(told, "bold"), soft_wrap=True)
    console.print()


def _print_cases(console: Console, cases: list[tuple[str, str]]) -> None:
    for case, backend in cases[:_SHOWN]:
        console.print(Text(f"    {printable(case)}  on {printable(backend)}"), soft_wrap=True)
    if len(cases) > _SHOWN:
        told = f"    and {len(cases) - _SHOWN:,} more; run.json has every one"
        console.print(Text(told, "dim"), soft_wrap=True)


def _outcome(result: Result, suspended: str | None) -> str:
    return f"{result.outcome} (suspended)" if suspended else str(result.outcome)


def _reason(old: Result, new: Result, before: str | None, now: str | None) -> str:
    if before != now:
        return now if now is not None else f"no longer suspended: {before}"
    if old.expectation_digest != new.expectation_digest:
        return "changed expectation"
    if "waived" in (old.outcome, new.outcome):
        return "waivers"
    return "other options are required, or the judge has changed"
