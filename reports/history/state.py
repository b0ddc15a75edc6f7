"""What is remembered of a result: how it was judged and whether it failed, without what differs from run to run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from ...cases.results import Outcome, Result
from ..figures import Figures, Tally
from ..tables import Terms

DETAIL = 500
"""How many characters of a result's detail are kept."""

Digests: TypeAlias = tuple[str | None, str | None]
"""A case's digest and that of its expectation: what was asked."""


class State(NamedTuple):
    """How a case was judged.

    `behaviour` is JSON with sorted keys and options. `suspended` is whether the case did not count, `failed` whether
    the result failed its run, by the terms of that run.
    """

    outcome: Outcome
    behaviour: str
    reason: str | None
    level: str | None
    suspended: bool
    failed: bool

    @property
    def silences(self) -> dict[str, list[str]]:
        """Each silence with the options that admit the answer."""
        found: dict[str, list[str]] = json.loads(self.behaviour)
        return found

    @property
    def figures(self) -> Figures:
        """What it adds to the figures of a run."""
        tally = Tally()
        tally.add(self.result("-/-", "-"), "suspended" if self.suspended else None)
        return replace(tally.figures(), failed=int(self.failed))

    def result(self, case: str, backend: str, detail: str | None = None) -> Result:
        """Return it as a result of this case."""
        level: Any = self.level
        return Result(case, backend, self.outcome, self.silences, self.reason, detail, level=level)


class Row(NamedTuple):
    """What is remembered of a case on a backend: `detail` is that of the first of the runs in which it was so."""

    backend: str
    case: str
    state: State
    asked: Digests
    detail: str | None

    @property
    def result(self) -> Result:
        """It as a result."""
        return self.state.result(self.case, self.backend, self.detail)


def canonical(behaviour: Mapping[str, list[str]]) -> str:
    """Return a behaviour as text that does not depend on any order."""
    return json.dumps({name: sorted(options) for name, options in sorted(behaviour.items())}, separators=(",", ":"))


def row_of(result: Result, terms: Terms) -> Row:
    """Return what is remembered of a result that was judged by these terms."""
    suspended = terms.suspensions.reason(result.case, result.clauses) is not None
    failed = terms.demands.fails(result, suspended=suspended)
    behaviour = canonical(result.behaviour) if result.behaviour else "{}"
    state = State(result.outcome, behaviour, result.reason, result.level, suspended, failed)
    asked = (result.case_digest, result.expectation_digest)
    return Row(result.backend, result.case, state, asked, result.detail and result.detail[:DETAIL])
