"""Kinds of changes between two runs, and changes gathered so that those which are alike are one."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...cases.results import Outcome
from ...specs.globs import operator_version_of, split_version
from ..figures import group_of
from .state import Digests, Row, State

EXAMPLES = 100
"""How many cases of a group are named."""


class Kind(enum.StrEnum):
    """What became of a case, the worst first."""

    REGRESSION = "regression"
    OTHER_FAILURE = "other failure"
    SUPPORT_LOST = "support lost"
    EXPECTATION = "expectation changed"
    OTHER = "other"
    SILENCE = "silence"
    GONE = "gone"
    NEW = "new"
    SUPPORT_GAINED = "support gained"
    FIX = "fix"


def kind_of(old: State | None, new: State | None, *, same_question: bool) -> Kind | None:
    """Return what became of a case, None if nothing did; a side is None where the case was not there.

    Where case or expectation are others than they were, another verdict is no change of the backend.
    """
    if old == new:
        return None
    if old is None or new is None:
        return Kind.NEW if old is None else Kind.GONE
    return _of_answers(old, new) if same_question else Kind.EXPECTATION


def _of_answers(old: State, new: State) -> Kind:
    if old.outcome is Outcome.PASS and new.failed:
        return Kind.REGRESSION
    if old.failed and new.outcome is Outcome.PASS:
        return Kind.FIX
    if old.outcome is not new.outcome:
        return _of_outcomes(old, new)
    return Kind.SILENCE if old.behaviour != new.behaviour else Kind.OTHER


def _of_outcomes(old: State, new: State) -> Kind:
    if Outcome.RUNNER_ERROR in (old.outcome, new.outcome):
        return Kind.OTHER
    if new.outcome is Outcome.UNSUPPORTED:
        return Kind.SUPPORT_LOST
    if new.failed:
        return Kind.OTHER_FAILURE
    return Kind.SUPPORT_GAINED if old.outcome is Outcome.UNSUPPORTED else Kind.OTHER


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a case on a backend; one side may be missing."""

    kind: Kind
    old: Row | None
    new: Row | None

    @property
    def row(self) -> Row:
        """The newer side."""
        row = self.new or self.old
        if row is None:
            raise ValueError("a change of nothing")
        return row

    @property
    def fails(self) -> bool:
        """Whether the case fails now."""
        return self.new is not None and self.new.state.failed

    @property
    def words(self) -> str:
        """From what to what: outcomes, or what was taken where the standard is silent."""
        if self.kind is Kind.SILENCE and self.old and self.new:
            return _silences(self.old.state, self.new.state)
        told = [_outcome(side.state) if side else "" for side in (self.old, self.new)]
        if told[0] == told[1] and self.old and self.new:
            return f"{told[0]}, {_rest(self.old.state, self.new.state)}"
        return " to ".join(word for word in told if word)


def change_of(old: Row | None, new: Row | None) -> Change | None:
    """Return what became of a case, None if nothing did."""
    asked: list[Digests | None] = [side.asked if side else None for side in (old, new)]
    same = asked[0] == asked[1]
    kind = kind_of(old.state if old else None, new.state if new else None, same_question=same)
    return None if kind is None else Change(kind, old, new)


@dataclass
class Alike:
    """Changes that have kind, backend, operator and what became of them in common; most kinds types, fill or edge too.

    `first` is the one that came first; `cases` names the first ones; `operator_versions` counts all.
    """

    first: Change
    operator_versions: Counter[str] = field(default_factory=Counter)
    cases: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many there are."""
        return self.operator_versions.total()


@dataclass
class Changes:
    """Changes as they arrive; memory grows with their kinds, not with the cases."""

    counts: Counter[tuple[str, Kind]] = field(default_factory=Counter)
    new_failures: Counter[str] = field(default_factory=Counter)
    _alike: dict[tuple[str, ...], Alike] = field(default_factory=dict)

    def add(self, change: Change) -> None:
        """Take in a change."""
        row = change.row
        self.counts[row.backend, change.kind] += 1
        if change.kind is Kind.NEW and change.fails:
            self.new_failures[row.backend] += 1
        alike = self._alike.setdefault(_key(change), Alike(change))
        alike.operator_versions[operator_version_of(row.case)] += 1
        if len(alike.cases) < EXAMPLES:
            alike.cases.append(row.case)

    def of(self, kind: Kind, backend: str | None = None) -> int:
        """Return how many changes there are of a kind, on one backend or all."""
        return sum(n for (name, found), n in self.counts.items() if found is kind and backend in (None, name))

    @property
    def total(self) -> int:
        """How many changes there are."""
        return self.counts.total()

    def worst_first(self) -> list[Alike]:
        """Return the groups: regressions, then new cases that fail, then by kind; the largest first."""
        return sorted(self._alike.values(), key=_badness)


def _badness(alike: Alike) -> tuple[int, int, int, str]:
    first = alike.first
    kind = Kind.OTHER_FAILURE if first.kind is Kind.NEW and first.fails else first.kind
    return list(Kind).index(kind), not first.fails, -alike.count, first.row.case


def _key(change: Change) -> tuple[str, ...]:
    row = change.row
    _, operator_version, types = group_of(row.result)
    common = (change.kind, row.backend, split_version(operator_version)[0], change.words)
    coarse = change.kind is Kind.SILENCE or (change.kind in (Kind.NEW, Kind.GONE) and not change.fails)
    return common if coarse else (*common, types, *row.case.split("/")[5:])


def _outcome(state: State) -> str:
    if state.outcome is Outcome.PASS and state.level == "declared":
        return "pass as declared"
    return str(state.outcome)


def _silences(old: State, new: State) -> str:
    before, after = old.silences, new.silences
    return "; ".join(
        f"{name}: {_options(before.get(name))} to {_options(after.get(name))}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )


def _options(options: list[str] | None) -> str:
    return " or ".join(options) if options else "none"


def _rest(old: State, new: State) -> str:
    """Return what differs between two states of the same outcome."""
    return ", ".join(_differences(old, new)) or "the same"


def _differences(old: State, new: State) -> Iterator[str]:
    if old.reason != new.reason:
        yield f"reason {old.reason} to {new.reason}"
    if old.behaviour != new.behaviour:
        yield _silences(old, new)
    if old.suspended != new.suspended:
        yield "suspended" if new.suspended else "no longer suspended"
    if old.failed != new.failed:
        yield "fails now" if new.failed else "no longer fails"
