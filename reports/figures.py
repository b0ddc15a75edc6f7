"""The figures of a run, tallied as results arrive: correctness, support, refusal; and the exit code they amount to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from ..cases.results import Outcome, Result
from ..runners.demands import Demands, is_about_invalid
from ..specs.globs import operator_version_of

CONFORMANT, NON_CONFORMANT, NOTHING_JUDGED, OUR_SIDE_FAILED = 0, 1, 2, 3

_COUNTS = ("judged", "passed", "strict", "unsupported", "put", "refused", "failed", "suspended")


class Group(NamedTuple):
    """What figures are counted for: a backend, an operator version, and the data's element type."""

    backend: str
    operator_version: str
    types: str


def group_of(result: Result) -> Group:
    """Return the group of a result; a case id that is none makes a group of its own."""
    operator_version = operator_version_of(result.case)
    types = result.case[len(operator_version) + 1 :].partition("/")[0]
    return Group(result.backend, operator_version, types.partition(",")[0] or "-")


@dataclass(frozen=True)
class Figures:
    """Counts of cases, and the figures made of them.

    `judged` is all cases but those without support, suspended ones, those where our side failed and those with an
    invalid input. `passed` counts passes, `strict` those that need no declared arithmetic. `unsupported` has valid
    inputs. `put` counts invalid inputs that came to an end, `refused` those that were refused. `failed` counts what
    makes the run non-conformant, `outcomes` every result.
    """

    judged: int = 0
    passed: int = 0
    strict: int = 0
    unsupported: int = 0
    put: int = 0
    refused: int = 0
    failed: int = 0
    suspended: int = 0
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)

    @property
    def cases(self) -> int:
        """How many results there are."""
        return sum(self.outcomes.values())

    @property
    def correctness(self) -> Fraction | None:
        """Strict passes as a share of what was judged; None if nothing was."""
        return _share(self.strict, self.judged)

    @property
    def declared_correctness(self) -> Fraction | None:
        """The same, with passes under declared arithmetic."""
        return _share(self.passed, self.judged)

    @property
    def support(self) -> Fraction | None:
        """What was judged as a share of what the backend was asked."""
        return _share(self.judged, self.judged + self.unsupported)

    @property
    def refusal(self) -> Fraction | None:
        """Invalid inputs refused as a share of those put."""
        return _share(self.refused, self.put)

    @property
    def exit_code(self) -> int:
        """The exit code that these counts amount to, the highest that applies."""
        if self.outcomes.get(Outcome.RUNNER_ERROR):
            return OUR_SIDE_FAILED
        if not self.judged and not self.put:
            return NOTHING_JUDGED
        return NON_CONFORMANT if self.failed else CONFORMANT

    def __add__(self, other: Figures) -> Figures:
        counts = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        return Figures(**counts, outcomes=Counter(self.outcomes) + Counter(other.outcomes))

    def to_dict(self) -> dict[str, Any]:
        """Return counts and figures for JSON; a figure of nothing is None."""
        shares = ("correctness", "declared_correctness", "support", "refusal")
        return {
            "cases": self.cases,
            **{name: getattr(self, name) for name in _COUNTS},
            **{name: None if (s := getattr(self, name)) is None else round(float(s), 6) for name in shares},
            "outcomes": {str(o): self.outcomes[o] for o in Outcome if self.outcomes.get(o)},
        }


@dataclass
class _Counts:
    """What was counted of one group; apart, since an outcome and a count may have one name."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)


class Tally:
    """Counts results as they arrive; memory grows with the groups, not with the cases."""

    def __init__(self, demands: Demands | None = None, backends: Iterable[str] = ()) -> None:
        """Count by these demands; `backends` are those of the run, whether or not they answer."""
        self.demands = demands or Demands()
        self.suspensions: Counter[str] = Counter()
        self._named = dict.fromkeys(backends)
        self._counts: dict[Group, _Counts] = {}

    def add(self, result: Result, suspended: str | None = None) -> None:
        """Count a result; `suspended` says why its case does not count, if it does not."""
        key = group_of(result)
        group = self._counts.get(key) or self._counts.setdefault(key, _Counts())
        group.outcomes[result.outcome] += 1
        counts = group.counts
        if self.demands.fails(result, suspended=suspended is not None):
            counts["failed"] += 1
        if suspended is not None:
            self.suspensions[suspended] += 1
            counts["suspended"] += 1
        elif result.outcome is not Outcome.RUNNER_ERROR:
            for name in _invalid(result) if is_about_invalid(result) else _valid(result):
                counts[name] += 1

    @property
    def backends(self) -> list[str]:
        """The backends of the run, in the order in which they came."""
        return list(self._named | dict.fromkeys(group.backend for group in self._counts))

    def groups(self, backend: str | None = None) -> Iterator[tuple[Group, Figures]]:
        """Yield the groups, of one backend or all, with their figures: by operator version, then by type."""
        for group, counts in self._of(backend):
            yield group, _figures([counts])

    def operator_versions(self, backend: str | None = None) -> dict[str, Figures]:
        """Return the figures of each operator version, in ascending order."""
        found: dict[str, list[_Counts]] = {}
        for group, counts in self._of(backend):
            found.setdefault(group.operator_version, []).append(counts)
        return {operator_version: _figures(counts) for operator_version, counts in found.items()}

    def _of(self, backend: str | None) -> list[tuple[Group, _Counts]]:
        """Return the groups of one backend or all, in order."""
        found = [(group, counts) for group, counts in self._counts.items() if backend in (None, group.backend)]
        return sorted(found, key=lambda one: _order(one[0]))

    def figures(self, backend: str | None = None) -> Figures:
        """Return the figures of one backend, or of the whole run."""
        return _figures(counts for group, counts in self._counts.items() if backend in (None, group.backend))

    def exit_code(self, waiver_problems: int = 0) -> int:
        """Return the exit code of the run; a backend of which nothing was judged has not conformed."""
        codes = [self.figures(backend).exit_code for backend in self.backends] or [NOTHING_JUDGED]
        return max(*codes, NON_CONFORMANT if waiver_problems else CONFORMANT)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures for JSON: overall, by backend, operator version and types; suspensions by their reason."""
        backends: dict[str, Any] = {b: {**self.figures(b).to_dict(), "operator_versions": {}} for b in self.backends}
        for backend, told in backends.items():
            for operator_version, figures in self.operator_versions(backend).items():
                told["operator_versions"][operator_version] = {**figures.to_dict(), "types": {}}
        for group, figures in self.groups():
            types = backends[group.backend]["operator_versions"][group.operator_version]["types"]
            types[group.types] = figures.to_dict()
        overall = self.figures().to_dict()
        return {"overall": overall, "backends": backends, "suspended": dict(self.suspensions)}


def _order(group: Group) -> tuple[list[tuple[int, str]], str]:
    """Return what groups are sorted by: the numbers in an operator version as numbers, so that 8 comes before 13."""
    parts = re.split(r"(\d+)", group.operator_version)
    return [(int(p), "") if p.isdigit() else (-1, p) for p in parts], group.types


def _invalid(result: Result) -> tuple[str, ...]:
    """Return which counts a result about an invalid input adds to."""
    if result.outcome is Outcome.UNSUPPORTED:  # its valid sibling did not run either
        return ()
    return ("put", "refused") if result.outcome is Outcome.PASS else ("put",)


def _valid(result: Result) -> tuple[str, ...]:
    """Return which counts a result about a valid input adds to."""
    if result.outcome is Outcome.UNSUPPORTED:
        return ("unsupported",)
    if result.outcome is not Outcome.PASS:
        return ("judged",)
    return ("judged", "passed", "strict") if result.level == "strict" else ("judged", "passed")


def _figures(parts: Iterable[_Counts]) -> Figures:
    outcomes: Counter[Outcome] = Counter()
    counts: Counter[str] = Counter()
    for part in parts:
        outcomes.update(part.outcomes)
        counts.update(part.counts)
    return Figures(
        **{name: counts[name] for name in _COUNTS}, outcomes={o: outcomes[o] for o in Outcome if outcomes[o]}
    )


def _share(part: int, whole: int) -> Fraction | None:
    return Fraction(part, whole) if whole else None
