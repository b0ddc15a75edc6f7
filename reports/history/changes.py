"""The stored form of a result, and the changes of cases between two runs, gathered in groups."""

from __future__ import annotations

import enum
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from ...cases.ids import operator_version_of, split_version
from ...cases.results import Outcome, Result
from ..runs import Terms
from ..tally import COUNTS, Figures, Tally, group_of

DETAIL = 500
"""Number of characters that are kept of a result's detail."""

Digests: TypeAlias = tuple[str | None, str | None]
"""The digest of a case and of its expectation, which identify the question."""


class State(NamedTuple):
    """The verdict on a case.

    `behaviour` is JSON with sorted keys and options. `suspended`: the case did not count. `failed`: the result failed
    its run, by that run's terms.
    """

    outcome: Outcome
    behaviour: str
    reason: str | None
    level: str | None
    suspended: bool
    failed: bool

    @property
    def silences(self) -> dict[str, list[str]]:
        """Return each silence with the options that admit the answer."""
        silences: dict[str, list[str]] = json.loads(self.behaviour)
        return silences

    @property
    def figures(self) -> Figures:
        """Return its contribution to the figures of a run."""
        tally = Tally()
        tally.add(self.result("-/-", "-"), "suspended" if self.suspended else None)
        return replace(tally.figures(), failed=int(self.failed))

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        fields = {"outcome": str(self.outcome), "behaviour": self.silences}
        return {**fields, "reason": self.reason, "level": self.level}

    def result(self, case: str, backend: str, detail: str | None = None) -> Result:
        """Return it as a result of this case."""
        level: Any = self.level
        return Result(case, backend, self.outcome, self.silences, self.reason, detail, level=level)


def figures_of(states: Mapping[State, int]) -> Figures:
    """Return the figures of so many results in each state."""
    counts: Counter[str] = Counter()
    outcomes: Counter[Outcome] = Counter()
    for state, number in states.items():
        outcomes[state.outcome] += number
        own = state.figures
        for name in COUNTS:
            counts[name] += number * getattr(own, name)
    return Figures(**{name: counts[name] for name in COUNTS}, outcomes=outcomes)


class CaseRecord(NamedTuple):
    """The stored data of a case on a backend; `detail` comes from the first of the runs with this state."""

    backend: str
    case: str
    state: State
    asked: Digests
    detail: str | None

    @property
    def result(self) -> Result:
        """Return it as a result."""
        return self.state.result(self.case, self.backend, self.detail)


def canonical(behaviour: Mapping[str, list[str]]) -> str:
    """Return a behaviour as text that does not depend on any order."""
    return json.dumps({name: sorted(options) for name, options in sorted(behaviour.items())}, separators=(",", ":"))


def record_of(result: Result, terms: Terms) -> CaseRecord:
    """Return the stored form of a result that was judged by these terms."""
    suspended = terms.suspensions.reason(result.case, result.clauses) is not None
    failed = terms.demands.fails(result, suspended=suspended)
    behaviour = canonical(result.behaviour) if result.behaviour else "{}"
    state = State(result.outcome, behaviour, result.reason, result.level, suspended, failed)
    asked = (result.case_digest, result.expectation_digest)
    detail = result.detail[:DETAIL] if result.detail and result.outcome is not Outcome.PASS else None
    return CaseRecord(result.backend, result.case, state, asked, detail)


EXAMPLES = 100
"""Number of cases that a group names."""


class ChangeKind(enum.StrEnum):
    """The kind of a case's change, worst first."""

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


def kind_of(old: State | None, new: State | None, *, same_question: bool) -> ChangeKind | None:
    """Return the kind of a case's change, None without one; a side is None if the case was absent.

    If the case or its expectation has changed, another verdict is not a change of the backend.
    """
    if old == new:
        return None
    if old is None or new is None:
        return ChangeKind.NEW if old is None else ChangeKind.GONE
    return _of_answers(old, new) if same_question else ChangeKind.EXPECTATION


def _of_answers(old: State, new: State) -> ChangeKind:
    if old.outcome is Outcome.PASS and new.failed:
        return ChangeKind.REGRESSION
    if old.failed and new.outcome is Outcome.PASS:
        return ChangeKind.FIX
    if old.outcome is not new.outcome:
        return _of_outcomes(old, new)
    return ChangeKind.SILENCE if old.behaviour != new.behaviour else ChangeKind.OTHER


def _of_outcomes(old: State, new: State) -> ChangeKind:
    if Outcome.RUNNER_ERROR in (old.outcome, new.outcome):
        return ChangeKind.OTHER
    if new.outcome is Outcome.UNSUPPORTED:
        return ChangeKind.SUPPORT_LOST
    if new.failed:
        return ChangeKind.OTHER_FAILURE
    return ChangeKind.SUPPORT_GAINED if old.outcome is Outcome.UNSUPPORTED else ChangeKind.OTHER


@dataclass(frozen=True, slots=True)
class Change:
    """A case's change on a backend; one side may be missing."""

    kind: ChangeKind
    old: CaseRecord | None
    new: CaseRecord | None

    @property
    def record(self) -> CaseRecord:
        """Return the newer side."""
        record = self.new or self.old
        if record is None:
            raise ValueError("a change of nothing")
        return record

    @property
    def fails(self) -> bool:
        """Return whether the case fails now."""
        return self.new is not None and self.new.state.failed

    @property
    def words(self) -> str:
        """Return the old and new outcome, or the options taken where the standard is silent."""
        if self.kind is ChangeKind.SILENCE and self.old and self.new:
            return _silences(self.old.state, self.new.state)
        outcomes = [_outcome(side.state) if side else "" for side in (self.old, self.new)]
        if outcomes[0] == outcomes[1] and self.old and self.new:
            return f"{outcomes[0]}, {_rest(self.old.state, self.new.state)}"
        return " to ".join(word for word in outcomes if word)


def change_of(old: CaseRecord | None, new: CaseRecord | None) -> Change | None:
    """Return a case's change, None without one."""
    asked: list[Digests | None] = [side.asked if side else None for side in (old, new)]
    same = asked[0] == asked[1]
    kind = kind_of(old.state if old else None, new.state if new else None, same_question=same)
    return None if kind is None else Change(kind, old, new)


@dataclass
class ChangeGroup:
    """Changes with the same kind, backend, operator and words; most kinds also share types, fill or edge.

    `first` is the one that came first; `cases` names the first ones; `operator_versions` counts all.
    """

    first: Change
    operator_versions: Counter[str] = field(default_factory=Counter)
    cases: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Return the number of changes."""
        return self.operator_versions.total()


@dataclass
class Changes:
    """Gathers changes as they arrive; memory grows with the number of kinds, not of cases."""

    counts: Counter[tuple[str, ChangeKind]] = field(default_factory=Counter)
    new_failures: Counter[str] = field(default_factory=Counter)
    _groups: dict[tuple[str, ...], ChangeGroup] = field(default_factory=dict)

    def add(self, change: Change) -> None:
        """Add a change."""
        record = change.record
        self.counts[record.backend, change.kind] += 1
        if change.kind is ChangeKind.NEW and change.fails:
            self.new_failures[record.backend] += 1
        group = self._groups.setdefault(_key(change), ChangeGroup(change))
        group.operator_versions[operator_version_of(record.case)] += 1
        if len(group.cases) < EXAMPLES:
            group.cases.append(record.case)

    def of(self, kind: ChangeKind, backend: str | None = None) -> int:
        """Return the number of changes of a kind, on one backend or all."""
        return sum(n for (name, changed), n in self.counts.items() if changed is kind and backend in (None, name))

    @property
    def total(self) -> int:
        """Return the number of changes."""
        return self.counts.total()

    def worst_first(self) -> list[ChangeGroup]:
        """Return the groups: regressions, then new cases that fail, then by kind; largest first."""
        return sorted(self._groups.values(), key=_badness)


def _badness(group: ChangeGroup) -> tuple[int, int, int, str]:
    first = group.first
    kind = ChangeKind.OTHER_FAILURE if first.kind is ChangeKind.NEW and first.fails else first.kind
    return list(ChangeKind).index(kind), not first.fails, -group.count, first.record.case


def _key(change: Change) -> tuple[str, ...]:
    record = change.record
    _, operator_version, types = group_of(record.result)
    common = (change.kind, record.backend, split_version(operator_version)[0], change.words)
    coarse = change.kind is ChangeKind.SILENCE or (
        change.kind in (ChangeKind.NEW, ChangeKind.GONE) and not change.fails
    )
    return common if coarse else (*common, types, *record.case.split("/")[5:])


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
    """Return what differs between two states with the same outcome."""
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
