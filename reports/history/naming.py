"""Arrived results in the words of the database: numbers for cases, for what they ask, and for how they were judged."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ...cases.results import Outcome
from ..figures import Figures
from ..tables import Terms
from .database import COUNTS, History
from .state import State, canonical

_JUDGED = """
CREATE OR REPLACE TEMP TABLE judged AS
SELECT a.* EXCLUDE (behaviour), coalesce(b.canonical, '{}') AS behaviour,
  s.of_case IS NOT NULL AS is_suspended, p.of_case IS NOT NULL AS is_promised
FROM arrived a
LEFT JOIN written b ON a.behaviour = b.behaviour
LEFT JOIN suspended s ON a."case" = s.of_case AND a.clauses = s.of_clauses
LEFT JOIN promised p ON a."case" = p.of_case
"""
_CASES = """
INSERT INTO cases SELECT ? + row_number() OVER (ORDER BY name), name
FROM (SELECT DISTINCT "case" AS name FROM judged) ANTI JOIN cases USING (name)
"""
_QUESTIONS = """
INSERT INTO question SELECT ? + row_number() OVER (ORDER BY "case", case_digest, expectation_digest), *
FROM (SELECT DISTINCT c."case", j.case_digest, j.expectation_digest FROM judged j JOIN cases c ON j."case" = c.name) j
WHERE NOT EXISTS (SELECT 1 FROM question q WHERE q."case" = j."case"
  AND q.case_digest IS NOT DISTINCT FROM j.case_digest
  AND q.expectation_digest IS NOT DISTINCT FROM j.expectation_digest)
"""
_NAMED = """
CREATE OR REPLACE TEMP TABLE named AS
SELECT j.whole, j.backend, c."case", q.question, s.state, CASE WHEN j.outcome <> 'pass' THEN j.detail END AS detail
FROM judged j
JOIN cases c ON j."case" = c.name
JOIN question q ON q."case" = c."case" AND q.case_digest IS NOT DISTINCT FROM j.case_digest
  AND q.expectation_digest IS NOT DISTINCT FROM j.expectation_digest
JOIN judged_as s ON s.outcome = j.outcome AND s.behaviour = j.behaviour AND s.reason IS NOT DISTINCT FROM j.reason
  AND s.level IS NOT DISTINCT FROM j.level AND s.is_suspended = j.is_suspended AND s.is_promised = j.is_promised
"""


def name(history: History, terms: Terms) -> None:
    """Make the table `named` of `arrived`, judged by these terms; what has no number yet gets one."""
    _tell_behaviours(history)
    _tell_suspended(history, terms)
    _tell_promised(history, terms)
    history.run(_JUDGED)
    history.run(_CASES, [history.one('SELECT coalesce(max("case"), 0) FROM cases')])
    history.run(_QUESTIONS, [history.one("SELECT coalesce(max(question), 0) FROM question")])
    _number_states(history, terms)
    history.run(_NAMED)


def _tell_behaviours(history: History) -> None:
    written = [text for (text,) in history.rows("SELECT DISTINCT behaviour FROM arrived")]
    history.table("written", behaviour=written, canonical=[canonical(json.loads(text)) for text in written])


def _tell_suspended(history: History, terms: Terms) -> None:
    found: list[tuple[str, str]] = []
    if terms.suspensions.errata.entries or terms.suspensions.disputed:
        found = [
            (case, clauses)
            for case, clauses in history.rows('SELECT DISTINCT "case", clauses FROM arrived')
            if terms.suspensions.reason(case, json.loads(clauses)) is not None
        ]
    history.table("suspended", of_case=[c for c, _ in found], of_clauses=[c for _, c in found])


def _tell_promised(history: History, terms: Terms) -> None:
    found: list[str] = []
    profile = terms.demands.profile
    if profile is not None:
        asked = history.rows("SELECT DISTINCT \"case\" FROM arrived WHERE outcome = 'unsupported'")
        found = [case for (case,) in asked if profile.promises(case)]
    history.table("promised", of_case=found)


def _number_states(history: History, terms: Terms) -> None:
    """Make the table `judged_as`: how results were judged, with the numbers of these states."""
    known = {State(Outcome(row[0]), *row[1:-1]): row[-1] for row in history.rows(_STATES)}
    free = max(known.values(), default=0)
    rows, new = [], []
    for *judged, promised, case in history.rows(_JUDGED_AS):
        state = _state(terms, judged, case)
        if state not in known:
            free += 1
            known[state] = free
            new.append(state)
        rows.append((*judged, promised, known[state]))
    names = ("outcome", "behaviour", "reason", "level", "is_suspended", "is_promised", "state")
    history.table("judged_text", **{n: [row[i] for row in rows] for i, n in enumerate(names)})
    history.run(
        "CREATE OR REPLACE TEMP TABLE judged_as AS SELECT * REPLACE (is_suspended::BOOLEAN AS is_suspended, "
        "is_promised::BOOLEAN AS is_promised, state::INTEGER AS state) FROM judged_text"
    )
    _insert_states(history, [(known[state], state) for state in new])


_STATES = "SELECT outcome, behaviour, reason, level, is_suspended, is_failed, state FROM state"
_JUDGED_AS = """
SELECT outcome, behaviour, reason, level, is_suspended, is_promised, min("case") FROM judged GROUP BY ALL
"""


def _state(terms: Terms, judged: list[object], case: str) -> State:
    """Return a state by one of its cases: what fails depends on nothing else of it than the promise."""
    outcome, behaviour, reason, level, suspended = judged
    state = State(Outcome(str(outcome)), str(behaviour), reason, level, bool(suspended), failed=False)  # type: ignore[arg-type]
    return state._replace(failed=terms.demands.fails(state.result(case, "-"), suspended=state.suspended))


def _insert_states(history: History, new: list[tuple[int, State]]) -> None:
    if not new:
        return
    rows = [(number, *state, *counts_of(state.figures)) for number, state in new]
    names = ("state", "outcome", "behaviour", "reason", "level", "is_suspended", "is_failed", *COUNTS)
    history.table("new_states", **{n: [row[i] for row in rows] for i, n in enumerate(names)})
    history.run("INSERT INTO state SELECT * FROM new_states")


def counts_of(figures: Figures) -> Iterator[int]:
    """Yield what `COUNTS` names."""
    for count in COUNTS:
        yield getattr(figures, count)
