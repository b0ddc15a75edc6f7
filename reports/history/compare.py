"""`opconform compare`: what changed between two runs, case by case, told apart by what it means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from ...cases.errors import OpconformError
from ...cases.results import Outcome
from ..figures import NON_CONFORMANT, Figures
from ..junit import check_target
from .kinds import Changes, Kind, change_of
from .sides import Side, opened
from .state import Row, State


@dataclass(frozen=True)
class CompareOptions:
    """The options of `opconform compare`; see its help."""

    old: str
    new: str
    json: Path | None = None
    markdown: Path | None = None
    fail_on: str | None = None
    partial: bool = False


@dataclass
class Comparison:
    """What changed; `asked_otherwise` counts the cases of both sides whose inputs or expectation differ."""

    old: Side
    new: Side
    backends: tuple[str, ...]
    changes: Changes = field(default_factory=Changes)
    asked_otherwise: int = 0
    _states: tuple[dict[str, Counter[State]], dict[str, Counter[State]]] = field(default_factory=lambda: ({}, {}))

    def add(self, old: Row | None, new: Row | None) -> None:
        """Take in a case of a backend, as it is on both sides."""
        for counts, row in zip(self._states, (old, new), strict=True):
            if row is not None:
                counts.setdefault(row.backend, Counter())[row.state] += 1
        if old and new and old.asked != new.asked:
            self.asked_otherwise += 1
        change = change_of(old, new)
        if change is not None:
            self.changes.add(change)

    def figures(self, backend: str) -> tuple[Figures, Figures]:
        """Return a backend's figures on both sides."""
        old, new = (_total(counts.get(backend, Counter())) for counts in self._states)
        return old, new

    def exit_code(self, fail_on: str | None) -> int:
        """Return 1 if there is what `fail_on` names: a `regression`, or any `change`."""
        found = {None: 0, "regression": self.changes.of(Kind.REGRESSION), "change": self.changes.total}
        return NON_CONFORMANT if found[fail_on] else 0


def run_compare(options: CompareOptions, console: Console | None = None) -> int:
    """Show and write what changed, and return the exit code.

    Raises OpconformError if a side cannot be read, they have no backend in common, or a file cannot be written.
    """
    from .compared_files import write_comparison  # noqa: PLC0415 - what shows it knows what it is
    from .compared_text import print_comparison  # noqa: PLC0415

    for target in (options.json, options.markdown):
        if target is not None:
            check_target(target)
    with (
        opened(options.old, partial=options.partial) as old,
        opened(options.new, partial=options.partial) as new,
    ):
        comparison = compared(old, new)
    write_comparison(comparison, options.json, options.markdown)
    print_comparison(console or Console(), comparison)
    return comparison.exit_code(options.fail_on)


def compared(old: Side, new: Side) -> Comparison:
    """Return what changed between two sides. Raises OpconformError if they have no backend in common."""
    backends = tuple(name for name in new.versions if name in old.versions)
    if not backends:
        told = [f"{side.name} has {', '.join(side.versions) or 'none'}" for side in (old, new)]
        raise OpconformError(f"no backend is on both sides, so there is nothing to compare: {'; '.join(told)}")
    comparison = Comparison(old, new, backends)
    for pair in joined(old.rows(backends), new.rows(backends)):
        comparison.add(*pair)
    return comparison


def joined(old: Iterator[Row], new: Iterator[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Yield what both sides have of each backend and case; both are sorted by them."""
    a, b = next(old, None), next(new, None)
    while a is not None or b is not None:
        if b is None or (a is not None and a[:2] < b[:2]):
            yield a, None
            a = next(old, None)
        elif a is None or b[:2] < a[:2]:
            yield None, b
            b = next(new, None)
        else:
            yield a, b
            a, b = next(old, None), next(new, None)


_SUMMED = ("judged", "passed", "strict", "unsupported", "put", "refused", "failed", "suspended")


def _total(states: Mapping[State, int]) -> Figures:
    counts: Counter[str] = Counter()
    outcomes: Counter[Outcome] = Counter()
    for state, number in states.items():
        outcomes[state.outcome] += number
        for name in _SUMMED:
            counts[name] += number * getattr(state.figures, name)
    return Figures(**{name: counts[name] for name in _SUMMED}, outcomes=outcomes)
