"""The site's data: cases by number, their results on each backend, the tables, and the suite's knowledge."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...cases.errors import OpconformError
from ...cases.ids import operator_version_of
from ...cases.results import Outcome, Result, result_from_json
from ...generators.comparing.situations import Side, side
from ...generators.source import GeneratedCases
from ...runners.judging.terms import is_about_invalid
from ...specs.loader import Library
from ...specs.model import STANDARDS
from ..runs import RESULTS, MergedRun, RunRecord, StoredResult, Terms, names_of
from ..tables import CountedRuns, count, terms_of
from ..tally import ChosenOptions, Figures

_DIGITS = re.compile("[0-9]+")


class ResultLocation(NamedTuple):
    """The outcome of a case on a backend, and the position of its result: the folder, and the byte offset.

    `failing`: the result makes the run non-conformant, or our side failed. `invalid`: the case's input is invalid.
    """

    outcome: Outcome
    failing: bool
    invalid: bool
    folder: Path
    offset: int


@dataclass(frozen=True)
class Column:
    """A backend, its results folders, and the outcome of each case, by the case's number; None if it was not run."""

    name: str
    version: str
    parts: Sequence[RunRecord]
    places: Sequence[ResultLocation | None]


@dataclass(frozen=True)
class Gathered(CountedRuns):
    """The data of a site; results themselves are read again when they are shown.

    `cases` are ids, grouped by operator version, with numbers in them sorted as numbers. `clauses` has each case's
    clauses (`onnx/ReduceMean-18#axes-given`). `names` has what the pages call each backend.
    """

    cases: Sequence[str]
    clauses: Sequence[tuple[str, ...]]
    columns: Sequence[Column]
    wholes: Sequence[MergedRun]
    names: Mapping[str, str]

    @property
    def terms(self) -> Terms:
        """Return what decided the verdicts."""
        return self.tables.terms

    def figures(self) -> dict[str, dict[str, dict[str, Figures]]]:
        """Return figures by operator version, type and backend."""
        by_version: dict[str, dict[str, dict[str, Figures]]] = {}
        for group, figures in self.tables.tally.groups():
            by_version.setdefault(group.operator_version, {}).setdefault(group.types, {})[group.backend] = figures
        return by_version

    def chosen(self) -> dict[str, dict[str, dict[str, ChosenOptions]]]:
        """Return what backends do where a standard is silent, by operator version, silence and backend."""
        by_version: dict[str, dict[str, dict[str, ChosenOptions]]] = {}
        for taken in self.tables.behaviours.chosen():
            if taken.silence != "invalid":  # invalid inputs have their own figure: refusal
                by_silence = by_version.setdefault(taken.operator_version, {})
                by_silence.setdefault(taken.silence, {})[taken.backend] = taken
        return by_version

    def column(self, backend: str) -> Column:
        """Return the column of a backend."""
        return next(column for column in self.columns if column.name == backend)

    def results(self, column: Column, cases: Sequence[int]) -> Iterator[tuple[int, Result]]:
        """Yield results of these cases from their folders, if they were run.

        Raises OpconformError if a folder was changed meanwhile.
        """
        files: dict[Path, Any] = {}
        try:
            for case in cases:
                location = column.places[case]
                if location is None:
                    continue
                if location.folder not in files:
                    files[location.folder] = (location.folder / RESULTS).open("rb")
                files[location.folder].seek(location.offset)
                yield case, self._sound(location, case, files[location.folder].readline())
        except OSError as error:
            raise OpconformError(f"{error.filename}: cannot be read again: {error.strerror}") from None
        finally:
            for file in files.values():
                file.close()

    def by_operator_version(self) -> dict[str, range]:
        """Return the numbers of the cases of each operator version."""
        starts: dict[str, int] = {}
        for number, case in enumerate(self.cases):
            starts.setdefault(operator_version_of(case), number)
        ends = [*list(starts.values())[1:], len(self.cases)]
        return {name: range(start, end) for (name, start), end in zip(starts.items(), ends, strict=True)}

    def _sound(self, location: ResultLocation, case: int, line: bytes) -> Result:
        try:
            result = result_from_json(line)
        except (ValueError, TypeError) as error:
            raise OpconformError(f"{location.folder / RESULTS}: was changed while it was read: {error}") from None
        if result.case != self.cases[case]:
            raise OpconformError(f"{location.folder / RESULTS}: was changed while it was read")
        return result


def gather(wholes: Sequence[MergedRun]) -> Gathered:
    """Read all results of these runs once. Raises OpconformError if they cannot be read or do not belong together."""
    terms = terms_of(wholes)
    places: dict[str, dict[str, ResultLocation]] = {backend: {} for merged in wholes for backend in merged.versions}
    clauses: dict[str, tuple[str, ...]] = {}
    same: dict[tuple[str, ...], tuple[str, ...]] = {}

    def seen(part: RunRecord, kept: StoredResult) -> None:
        result = kept.result
        if result.backend not in places:
            raise OpconformError(f"{part.folder}: has results of {result.backend[:200]!r}, which its run.json lacks")
        clauses.setdefault(result.case, same.setdefault(result.clauses, result.clauses))
        suspended = terms.suspensions.reason(result.case, result.clauses) is not None
        failing = result.outcome is Outcome.RUNNER_ERROR or terms.demands.fails(result, suspended=suspended)
        location = ResultLocation(result.outcome, failing, is_about_invalid(result), part.folder, kept.offset)
        places[result.backend][result.case] = location

    counted = count(wholes, seen)
    cases = sorted(clauses, key=_natural)
    columns = [
        Column(name, version, merged.parts, [places[name].get(case) for case in cases])
        for merged in wholes
        for name, version in merged.versions.items()
    ]
    clauses_by_number = [clauses[case] for case in cases]
    return Gathered(
        **vars(counted), cases=cases, clauses=clauses_by_number, columns=columns, wholes=wholes, names=names_of(wholes)
    )


def together(rows: Iterable[Mapping[str, Figures]]) -> dict[str, Figures]:
    """Return the sums of figures by backend."""
    sums: dict[str, Figures] = {}
    for by_backend in rows:
        for backend, figures in by_backend.items():
            sums[backend] = sums.get(backend, Figures()) + figures
    return sums


def _natural(case: str) -> str:
    """Return text that sorts like the id with numbers compared as numbers: each number has its length before it.

    Standards keep their own order.
    """
    operator_version = operator_version_of(case)
    standard = operator_version.partition("/")[0]
    rank = STANDARDS.index(standard) if standard in STANDARDS else len(STANDARDS)
    parts = (chr(rank + 1), operator_version, case[len(operator_version) :])
    return "\0".join(_DIGITS.sub(lambda match: f"0{chr(len(match[0]))}{match[0]}", part) for part in parts)


OTHER = "other"
"""The family of operators without a spec file in the suite."""


@dataclass(frozen=True)
class Knowledge:
    """The suite's cases and spec files."""

    source: GeneratedCases

    @property
    def library(self) -> Library:
        """Return the spec files."""
        return self.source.library

    @functools.cached_property
    def in_suite(self) -> Mapping[str, int]:
        """Return the number of operator versions in the suite, by standard."""
        return self.library.version_counts()

    def family(self, operator: str) -> str:
        """Return the family of an operator, such as `reduction`; OTHER without a spec file."""
        try:
            return self.library.spec(operator).family
        except OpconformError:
            return OTHER

    def side(self, operator_version: str) -> Side | None:
        """Return the suite's knowledge of an operator version; None if it has no spec file."""
        try:
            return side(self.source, operator_version)
        except OpconformError:
            return None

    def versions(self, of: Side) -> list[Side]:
        """Return all versions of an operator, oldest first."""
        return [side(self.source, str(version.operator)) for version in of.spec.versions.values()]
