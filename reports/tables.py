"""The tables of a report, gathered from results as they arrive or from results folders, and their summary."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from ..cases.elements import Declaration
from ..cases.errors import OpconformError
from ..cases.ids import operator_version_of
from ..cases.results import Result
from ..runners.judging.accuracy import Accuracy
from ..runners.judging.terms import WaiverRun, before_waiving
from ..specs.loader import Library
from ..specs.model import Clause
from .arithmetic import ATTACHMENT, ArithmeticTables, attached_accuracy
from .folder import INTERRUPTED
from .progress import tracked
from .runs import RESULTS, MergedRun, RunRecord, StoredResult, StoredResults, Terms, read_run, shards_told
from .tally import OUR_SIDE_FAILED, Behaviours, Failures, Tally
from .terminal import Summary
from .text import counted, deaths_told

_FIRST = 5
"""Maximum number of operator versions that a line names."""
_STATES: Mapping[str, str] = {"running": "still running, or killed"}
"""The words for a status of `run.json` that needs an explanation."""


@dataclass
class Tables:
    """Figures, failures, behaviours, grades; memory grows with the number of their kinds, not of cases."""

    terms: Terms
    tally: Tally
    failures: Failures
    behaviours: Behaviours
    arithmetic: ArithmeticTables
    waivers: WaiverRun
    unclaimed: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, terms: Terms, backends: Iterable[str], today: dt.date) -> Tables:
        """Return empty tables; `today` decides which waivers have expired."""
        demands = terms.demands
        return cls(
            terms,
            Tally(demands, backends),
            Failures(demands),
            Behaviours(),
            ArithmeticTables(terms.declaration or Declaration()),
            terms.waivers.for_run(today, demands),
        )

    def take(self, result: Result, attachments: Mapping[str, object]) -> Result:
        """Count a result that has arrived, and return it as it is reported: waived, if a waiver applies."""
        suspended = self.terms.suspensions.reason(result.case, result.clauses)
        reported = self.waivers.apply(result, suspended=suspended is not None)
        self._add(reported, suspended, attached_accuracy(attachments) if attachments else None)
        return reported

    def take_kept(self, kept: StoredResult) -> None:
        """Count a result in the form in which it was reported before.

        Raises ValueError, KeyError or TypeError if it is damaged.
        """
        result = kept.result
        suspended = self.terms.suspensions.reason(result.case, result.clauses)
        self.waivers.apply(before_waiving(result), suspended=suspended is not None)
        accuracy = None if kept.accuracy is None else attached_accuracy({ATTACHMENT: json.loads(kept.accuracy)})
        self._add(result, suspended, accuracy)

    def _add(self, result: Result, suspended: str | None, accuracy: Accuracy | None) -> None:
        if self.terms.demands.is_unclaimed(result):
            operator_version = operator_version_of(result.case)
            types = result.case[len(operator_version) + 1 :].partition("/")[0]
            self.unclaimed.setdefault(result.backend, Counter())[f"{operator_version} {types}"] += 1
        self.tally.add(result, suspended)
        self.failures.add(result, suspended)
        self.behaviours.add(result)
        self.arithmetic.add(result, accuracy)

    def to_dict(self, problems: Sequence[str]) -> dict[str, object]:
        """Return figures and the rest for JSON; `problems` are the waivers' problems."""
        fields = {"figures": self.tally.to_dict(), "waiver_problems": list(problems), **self.arithmetic.to_dict()}
        return {**fields, "unclaimed": {name: dict(names) for name, names in self.unclaimed.items()}}

    def unclaimed_lines(self) -> list[str]:
        """Return a line for each backend that passes cases outside its claims."""
        lines = []
        for backend, counts in self.unclaimed.items():
            first = ", ".join(list(counts)[:_FIRST]) + (", …" if len(counts) > _FIRST else "")
            lines.append(f"{backend} passes {counted(counts.total(), 'case')} that it does not claim: {first}")
        return lines

    def summary(self, exit_code: int) -> Summary:
        """Return a summary that lacks what only the caller knows: versions, problems, folders and others."""
        declared, counted_so = self.terms.declaration is not None, (self.tally, self.behaviours, self.failures)
        return Summary(*counted_so, exit_code, declared=declared, arithmetic=self.arithmetic)


def clause_of(library: Library, operator_version: str, clause: str) -> Clause | None:
    """Return a clause by its operator version and id; None if these specs lack it."""
    try:
        spec, version = library.operator_version(operator_version)
    except OpconformError:
        return None
    return spec.version(version).clauses.get(clause.partition("#")[2])


def clause_text_of(library: Library) -> Callable[[str, str], str | None]:
    """Return a function that returns a clause's words by operator version and id; None if these specs lack it."""

    def text(operator_version: str, clause: str) -> str | None:
        rule = clause_of(library, operator_version, clause)
        return clause_words(rule.text, rule.status) if rule else None

    return text


def clause_words(text: str, status: str) -> str:
    """Return what a failure says of a clause: its text, and that it is inferred if the standard does not state it."""
    return f"inferred from the text: {text}" if status == "inferred" else text


def take_kept(folder: Path, tables: Tables, seen: Callable[[StoredResult], None] | None = None) -> StoredResults:
    """Count all results of a folder, and return the walk over them. Raises OpconformError if something is wrong there.

    `seen` is called with each of them.
    """
    kept = StoredResults(folder)
    try:
        with tracked(kept, "reading results", RunRecord(folder, read_run(folder)).planned) as results:
            for stored in results:
                tables.take_kept(stored)
                if seen is not None:
                    seen(stored)
    except (ValueError, KeyError, TypeError) as error:
        raise OpconformError(f"{folder / RESULTS}: cannot be counted: {error!r}") from None
    return kept


Seen: TypeAlias = Callable[[RunRecord, StoredResult], None]


@dataclass(frozen=True)
class CountedRuns:
    """All results, counted.

    `waivers` has what the waivers of each run matched, in the order of the runs. `problems` are lines about what is
    wrong apart from the cases; `exit_code` is the one that the runs would have had.
    """

    tables: Tables
    waivers: Sequence[WaiverRun]
    problems: Sequence[str]
    exit_code: int


def terms_of(wholes: Sequence[MergedRun]) -> Terms:
    """Return what decided the verdicts of these runs: the first run's terms, and the claims of all backends."""
    every = [part.terms for merged in wholes for part in merged.parts]
    claims = {name: claim for terms in every for name, claim in terms.demands.claims.items()}
    return replace(every[0], demands=replace(every[0].demands, claims=claims))


def count(wholes: Sequence[MergedRun], seen: Seen | None = None) -> CountedRuns:
    """Count the results of these runs; `seen` is called with each of them.

    Raises OpconformError if one cannot be read.
    """
    terms = terms_of(wholes)
    tables = Tables.of(terms, [name for merged in wholes for name in merged.versions], dt.date.min)
    waivers, problems, left_out = [], [], list[str]()
    for merged in wholes:
        part = merged.parts[0]
        own = Terms(terms.demands, terms.suspensions, part.terms.waivers, terms.declaration)
        tables.waivers = own.waivers.for_run(part.started.date(), terms.demands)
        left_out += _left_out(merged, _count(merged, tables, seen))
        waivers.append(tables.waivers)
        problems += tables.waivers.problems(partial=merged.partial)
    lost = [line for merged in wholes for line in _lost(merged, tables)]
    unfinished = any(merged.unfinished for merged in wholes)
    code = max(tables.tally.exit_code(len(problems)), OUR_SIDE_FAILED if lost else 0, INTERRUPTED if unfinished else 0)
    return CountedRuns(tables, waivers, [*problems, *lost, *_deaths(wholes), *left_out], code)


def _count(merged: MergedRun, tables: Tables, seen: Seen | None) -> list[int]:
    """Count the results of a run, and return the number of each part."""
    done: dict[str, set[str]] = {}
    counts = []
    for part in merged.parts:
        results = take_kept(part.folder, tables, partial(seen, part) if seen else None).done
        counts.append(sum(map(len, results.values())))
        for backend, cases in results.items():
            if not done.setdefault(backend, set()).isdisjoint(cases):
                folders = ", ".join(str(part.folder) for part in merged.parts)
                raise OpconformError(f"{folders}: have results of the same cases, so they are not shards of one run")
            done[backend] |= cases
    return counts


def _lost(merged: MergedRun, tables: Tables) -> list[str]:
    """Return a line on cases that have no result although every shard is finished: our side has lost them."""
    planned = sum(int(number) for part in merged.parts for number in part.run_json.get("planned", {}).values())
    missing = planned - sum(tables.tally.figures(name).cases for name in merged.versions)
    if merged.unfinished or not missing:
        return []
    return [f"{' and '.join(merged.versions)}: {counted(missing, 'case')} without a result"]


def _deaths(wholes: Sequence[MergedRun]) -> list[str]:
    parts = [part for merged in wholes for part in merged.parts]
    return deaths_told([death for part in parts for death in part.deaths], sum(part.more_deaths for part in parts))


def _left_out(merged: MergedRun, counts: Sequence[int]) -> Iterator[str]:
    """Yield the unfinished parts, each with its progress, and the missing shards."""
    for part, count in zip(merged.parts, counts, strict=True):
        if not part.finished:
            planned = part.planned
            of = f" of {planned:,} results" if planned else " results, and planning had not ended"
            status = part.run_json["status"]
            yield f"unfinished: {part.folder} ({_STATES.get(status, status)}): {count:,}{of}"
    if merged.missing:
        yield f"{counted(len(merged.missing), 'shard')} missing: {shards_told(merged.missing)}"
