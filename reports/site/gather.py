"""All that the site is made of: cases by number, outcomes by backend, the tables, and what the suite knows."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from ...cases.errors import OpconformError
from ...cases.results import Outcome, Result, result_from_json
from ...generators.comparing.situations import Side, side
from ...generators.source import GeneratedCases
from ...runners.demands import is_about_invalid
from ...runners.waivers import WaiverRun
from ...specs.globs import operator_version_of
from ...specs.loader import Library
from ...specs.model import STANDARDS
from ..reading import RESULTS, StoredResult
from ..runs import Part, Terms, Whole
from ..tables import Tables, count
from ..tally import Figures

OUTCOMES = tuple(Outcome)
NOT_RUN = -1

FAILING, SUSPENDED, DECLARED, INVALID = 1, 2, 4, 8
"""Bits of `Column.marks`: the result makes the run non-conformant, or our side failed; its case does not count, by
errata or a disputed clause; it passed by declared arithmetic alone; its input is invalid."""

_DIGITS = re.compile("[0-9]+")

T = TypeVar("T")

Behaviour: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Silences, each with the options that admit an answer."""


@dataclass(frozen=True)
class Column:
    """A backend, and what came of each case, by the case's number.

    `outcomes` has numbers of `OUTCOMES`, or `NOT_RUN`. `marks` has the bits above. `ratios` is the largest error as a
    share of its bound, NaN where there is none. `behaviours` and `reasons` are numbers in `Gathered.behaviours` and
    `Gathered.reasons`. `sources` is the number of the results folder in `folders`, `offsets` that of the result's line
    in its `results.jsonl`. `told` are the `run.json` of the folders, in the same order.
    """

    name: str
    version: str
    facts: Mapping[str, str]
    folders: tuple[Path, ...]
    told: tuple[Mapping[str, Any], ...]
    outcomes: array[int]
    marks: array[int]
    ratios: array[float]
    behaviours: array[int]
    reasons: array[int]
    sources: array[int]
    offsets: array[int]


@dataclass(frozen=True)
class Gathered:
    """What a site is made of; nothing in it grows with cases times backends but numbers.

    `cases` are ids, those of an operator version together, numbers in them as numbers. `clauses` has those of each case
    (`onnx/ReduceMean-18#axes-given`). `behaviours` are the behaviours that occur, each as pairs of a silence and its
    options; the first is empty. `reasons` are those of results; the first is None. `waivers` has what the waivers of
    each run met. `problems` are lines that tell what is wrong beside the cases.
    """

    cases: Sequence[str]
    clauses: Sequence[tuple[str, ...]]
    columns: Sequence[Column]
    behaviours: Sequence[Behaviour]
    reasons: Sequence[str | None]
    tables: Tables
    wholes: Sequence[Whole]
    waivers: Sequence[WaiverRun]
    problems: Sequence[str]
    exit_code: int

    @property
    def terms(self) -> Terms:
        """What decided the verdicts."""
        return self.tables.terms

    def figures(self) -> dict[str, dict[str, dict[str, Figures]]]:
        """Return figures by operator version, type and backend."""
        found: dict[str, dict[str, dict[str, Figures]]] = {}
        for group, figures in self.tables.tally.groups():
            found.setdefault(group.operator_version, {}).setdefault(group.types, {})[group.backend] = figures
        return found

    def column(self, backend: str) -> Column:
        """Return the column of a backend."""
        return next(column for column in self.columns if column.name == backend)

    def results(self, column: Column, cases: Sequence[int] | None = None) -> Iterator[tuple[int, Result]]:
        """Yield results as they stand in their folders, of these cases or of all, in the order of the cases.

        Raises OpconformError if a folder was changed meanwhile.
        """
        wanted = range(len(self.cases)) if cases is None else cases
        files: dict[int, Any] = {}
        try:
            for case in wanted:
                if column.outcomes[case] == NOT_RUN:
                    continue
                source = column.sources[case]
                if source not in files:
                    files[source] = (column.folders[source] / RESULTS).open("rb")
                files[source].seek(column.offsets[case])
                yield case, self._sound(column, case, files[source].readline())
        except OSError as error:
            raise OpconformError(f"{error.filename}: cannot be read again: {error.strerror}") from None
        finally:
            for file in files.values():
                file.close()

    def result(self, column: Column, case: int) -> Result | None:
        """Return one result, None where the case was not run."""
        return next((result for _, result in self.results(column, (case,))), None)

    def by_operator_version(self) -> dict[str, range]:
        """Return the numbers of the cases of each operator version."""
        starts: dict[str, int] = {}
        for number, case in enumerate(self.cases):
            starts.setdefault(operator_version_of(case), number)
        ends = [*list(starts.values())[1:], len(self.cases)]
        return {name: range(start, end) for (name, start), end in zip(starts.items(), ends, strict=True)}

    def _sound(self, column: Column, case: int, line: bytes) -> Result:
        place = column.folders[column.sources[case]] / RESULTS
        try:
            result = result_from_json(line)
        except (ValueError, TypeError) as error:
            raise OpconformError(f"{place}: was changed while it was read: {error}") from None
        if result.case != self.cases[case]:
            raise OpconformError(f"{place}: was changed while it was read")
        return result


def gather(wholes: Sequence[Whole]) -> Gathered:
    """Read all results of these runs once. Raises OpconformError for what cannot be read or does not fit together."""
    collected = _Collected(wholes)
    counted = count(wholes, collected.add)
    order = _order(collected.cases)
    return Gathered(
        [collected.cases[number] for number in order],
        [collected.clauses[number] for number in order],
        [collected.column(backend, order) for backend in counted.tables.tally.backends],
        collected.behaviours,
        collected.reasons,
        counted.tables,
        wholes,
        counted.waivers,
        counted.problems,
        counted.exit_code,
    )


def _order(cases: Sequence[str]) -> list[int]:
    """Return the numbers of cases, standard by standard, in the order of their ids with numbers as numbers."""
    keys = [_natural(case) for case in cases]
    return sorted(range(len(cases)), key=keys.__getitem__)


def _natural(case: str) -> str:
    """Return text that sorts as the id does where numbers count as numbers: each has its length before it."""
    operator_version = operator_version_of(case)
    standard = operator_version.partition("/")[0]
    rank = STANDARDS.index(standard) if standard in STANDARDS else len(STANDARDS)
    parts = (chr(rank + 1), operator_version, case[len(operator_version) :])
    return "\0".join(_DIGITS.sub(lambda found: f"0{chr(len(found[0]))}{found[0]}", part) for part in parts)


class _Numbered(Generic[T]):
    """Values by number, each once."""

    def __init__(self, *first: T) -> None:
        self.values: list[T] = list(first)
        self._numbers = {value: number for number, value in enumerate(first)}

    def number(self, value: T) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


@dataclass
class _Rows:
    """The results of a backend as they arrive, in arrays that belong together."""

    versions: Mapping[str, str]
    parts: Sequence[Part]
    cases: array[int] = field(default_factory=lambda: array("i"))
    outcomes: array[int] = field(default_factory=lambda: array("b"))
    marks: array[int] = field(default_factory=lambda: array("b"))
    ratios: array[float] = field(default_factory=lambda: array("d"))
    behaviours: array[int] = field(default_factory=lambda: array("i"))
    reasons: array[int] = field(default_factory=lambda: array("h"))
    sources: array[int] = field(default_factory=lambda: array("h"))
    offsets: array[int] = field(default_factory=lambda: array("q"))

    def placed(self, name: str, order: Sequence[int], missing: float) -> array[Any]:
        """Return one of the arrays by the cases' numbers in `order`, with `missing` where a case was not run."""
        values: array[Any] = getattr(self, name)
        found = np.full(len(order), missing, values.typecode)
        found[np.frombuffer(self.cases, np.int32)] = np.frombuffer(values, values.typecode)
        return array(values.typecode, found[np.asarray(order, np.int64)].tobytes())


class _Collected:
    """What is told of results as they arrive, cases by number in the order in which they came."""

    def __init__(self, wholes: Sequence[Whole]) -> None:
        self._terms = wholes[0].parts[0].terms
        self._cases: _Numbered[str] = _Numbered()
        self._same: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._behaviours: _Numbered[Behaviour] = _Numbered(())
        self._reasons: _Numbered[str | None] = _Numbered(None)
        self._rows = {backend: _Rows(whole.versions, whole.parts) for whole in wholes for backend in whole.versions}
        self._sources = {part.folder: number for whole in wholes for number, part in enumerate(whole.parts)}
        self.clauses: list[tuple[str, ...]] = []

    @property
    def cases(self) -> list[str]:
        return self._cases.values

    @property
    def behaviours(self) -> list[Behaviour]:
        return self._behaviours.values

    @property
    def reasons(self) -> list[str | None]:
        return self._reasons.values

    def add(self, part: Part, kept: StoredResult) -> None:
        """Take in a result."""
        result = kept.result
        rows = self._rows.get(result.backend)
        if rows is None:
            raise OpconformError(f"{part.folder}: has results of {result.backend[:200]!r}, which its run.json lacks")
        rows.cases.append(self._case(result))
        rows.outcomes.append(_NUMBERS[result.outcome])
        rows.marks.append(self._marks(result))
        rows.ratios.append(math.nan if result.bound_ratio is None else result.bound_ratio)
        rows.behaviours.append(self._behaviour(result))
        rows.reasons.append(self._reasons.number(result.reason))
        rows.sources.append(self._sources[part.folder])
        rows.offsets.append(kept.offset)

    def column(self, backend: str, order: Sequence[int]) -> Column:
        """Return what came of a backend, cases in this order of their numbers."""
        rows = self._rows[backend]
        return Column(
            backend,
            rows.versions[backend],
            rows.parts[0].begun.about(backend).facts,
            tuple(part.folder for part in rows.parts),
            tuple(part.told for part in rows.parts),
            rows.placed("outcomes", order, NOT_RUN),
            rows.placed("marks", order, 0),
            rows.placed("ratios", order, math.nan),
            rows.placed("behaviours", order, 0),
            rows.placed("reasons", order, 0),
            rows.placed("sources", order, 0),
            rows.placed("offsets", order, 0),
        )

    def _case(self, result: Result) -> int:
        number = self._cases.number(result.case)
        if number == len(self.clauses):
            self.clauses.append(self._same.setdefault(result.clauses, result.clauses))
        return number

    def _behaviour(self, result: Result) -> int:
        if not result.behaviour:
            return 0
        return self._behaviours.number(tuple((s, tuple(map(str, options))) for s, options in result.behaviour.items()))

    def _marks(self, result: Result) -> int:
        suspended = self._terms.suspensions.reason(result.case, result.clauses) is not None
        return (
            FAILING * (result.outcome is Outcome.RUNNER_ERROR or self._terms.demands.fails(result, suspended=suspended))
            | SUSPENDED * suspended
            | DECLARED * (result.level == "declared")
            | INVALID * is_about_invalid(result)
        )


_NUMBERS = {outcome: number for number, outcome in enumerate(OUTCOMES)}


@dataclass(frozen=True)
class Knowledge:
    """The suite's cases and spec files."""

    source: GeneratedCases

    @property
    def library(self) -> Library:
        """The spec files."""
        return self.source.library

    def side(self, operator_version: str) -> Side | None:
        """Return what the suite knows of an operator version; None if it has no spec file of it."""
        try:
            return side(self.source, operator_version)
        except OpconformError:
            return None

    def versions(self, of: Side) -> list[Side]:
        """Return all versions of an operator, the first one first."""
        return [side(self.source, str(version.operator)) for version in of.spec.versions.values()]
