"""`opconform bisect`: finds the release of a library that changed a case; each release has its own environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import click
from rich.console import Console

from ..cases.errors import OpconformError, did_you_mean
from ..cases.results import Outcome, Result
from ..reports.text import counted, printable
from ..runners.execution.execute import Assignment
from ..runners.execution.running import Judged, run_cases
from ..runners.judging.terms import requirements
from ..runners.pool import Limits
from ..runners.programs.environments import release_of, releases
from ..runners.registry import PORTABLE, backend_spec
from .generated_suite import case_of
from .options import limits_of

NOTHING_CHANGED = 1
"""The exit code if both ends have the same verdict."""
_SHOWN = 300

Try: TypeAlias = Callable[[str], Result]
"""Judges the case on a release. Raises OpconformError if it has no environment, or our side fails."""


@dataclass
class Bisection:
    """A search among releases, oldest first; a release that cannot be judged is skipped and removed from the list.

    Releases between two with the same verdict are assumed to have it too.
    """

    releases: list[str]
    try_release: Try
    tell: Callable[[str], None]
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def outcome(self, version: str) -> Outcome | None:
        """Return the verdict on a release; None if it cannot be judged."""
        if version not in self.outcomes:
            try:
                result = self.try_release(version)
            except OpconformError as error:
                self.releases.remove(version)
                self.tell(f"{version:<12} skipped: {printable(str(error).replace(chr(10), ' '))[:_SHOWN]}")
                return None
            self.outcomes[version] = result.outcome
            words = (result.detail or "").partition("\n")[0]
            self.tell(f"{version:<12} {result.outcome}{f': {printable(words)[:_SHOWN]}' if words else ''}")
        return self.outcomes[version]

    def end(self, index: int) -> str:
        """Return the first release on which the case can be judged, or with an `index` of -1 the last."""
        while self.releases:
            version = self.releases[index]
            if self.outcome(version) is not None:
                return version
        raise OpconformError("the case can be judged on no release")

    def change(self, low: str, high: str) -> tuple[str, str]:
        """Return two neighbouring releases with different verdicts, the first with the verdict of `low`."""
        while True:
            between = self.releases[self.releases.index(low) + 1 : self.releases.index(high)]
            if not between:
                return low, high
            middle = between[len(between) // 2]
            outcome = self.outcome(middle)
            if outcome == self.outcomes[low]:
                low = middle
            elif outcome is not None:
                high = middle

    def changes(self, low: str, high: str) -> list[tuple[str, str]]:
        """Return changes that lead from the verdict on `low` to that on `high`, oldest first; there may be others."""
        changes = []
        while self.outcomes[low] != self.outcomes[high]:
            changes.append(self.change(low, high))
            low = changes[-1][1]
        return changes


def run_bisect(
    backend: str,
    case_id: str,
    *,
    good: str | None,
    bad: str | None,
    specs: Path | None,
    timeout: float,
    memory: int | None,
    requires: Sequence[str],
    quiet: bool,
) -> int:
    """Find the release, print each step, and return the exit code. Raises OpconformError."""
    if backend not in PORTABLE:
        near = did_you_mean(backend, list(PORTABLE))
        raise OpconformError(f"{backend}: its releases are not known{near}; expected one of {', '.join(PORTABLE)}")
    portable = PORTABLE[backend]
    source, case = case_of(case_id, specs)
    if case.program.operator.standard not in portable.standards:
        raise OpconformError(f"{case.id}: {backend} only runs cases of {', '.join(portable.standards)}")
    answered = requirements(requires, source.library)
    limits = limits_of(timeout, memory)
    with Console(stderr=True, quiet=quiet).status("listing releases") as status:
        among = _between(releases(portable.package), good, bad)

        def judged(version: str) -> Result:
            status.update(f"{version}, one of {counted(len(search.releases), 'release')}")
            assignment = Assignment(backend_spec(f"{backend}=={version}"), source, answered)
            return _judged(assignment, case.id, limits)

        search = Bisection(among, judged, click.echo)
        low, high = search.end(0), search.end(-1)
        _check_ends(good, bad, search.outcomes)
        changes = search.changes(low, high)
    lines = [
        f"{search.outcomes[earlier]} up to {earlier}, {search.outcomes[later]} from {later} on"
        for earlier, later in changes
    ]
    if not changes:
        lines = [f"{search.outcomes[low]} on {low} and on {high}; name releases that differ by --good and --bad"]
    for words in lines:
        click.echo(f"{case.id} on {backend}: {words}")
    return 0 if changes else NOTHING_CHANGED


def _between(known: Sequence[str], good: str | None, bad: str | None) -> list[str]:
    """Return the releases to search, oldest first. Raises OpconformError if there are fewer than two."""
    named = [version for version in (good, bad) if version is not None]
    candidates = sorted({*known, *named}, key=release_of)
    ends = sorted(map(candidates.index, named))
    if len(ends) == 2:
        candidates = candidates[ends[0] : ends[1] + 1]
    elif good is not None:
        candidates = candidates[ends[0] :]
    elif bad is not None:
        candidates = candidates[: ends[0] + 1]
    if len(candidates) < 2:
        raise OpconformError(f"there are fewer than two releases to search: {', '.join(candidates) or 'none'}")
    return candidates


def _check_ends(good: str | None, bad: str | None, outcomes: Mapping[str, Outcome]) -> None:
    """Raise OpconformError if a release does not have the verdict of its option, --good or --bad."""
    for option, version, passes in (("--good", good, True), ("--bad", bad, False)):
        if version is not None and version not in outcomes:
            raise OpconformError(f"{option} {version}: the case cannot be judged there")
        if version is not None and (outcomes[version] is Outcome.PASS) != passes:
            raise OpconformError(f"{option} {version}: the outcome of the case is {outcomes[version]} there")


def _judged(assignment: Assignment, case_id: str, limits: Limits) -> Result:
    for event in run_cases(assignment, [[case_id]], jobs=1, limits=limits):
        if isinstance(event, Judged) and event.result.outcome is not Outcome.RUNNER_ERROR:
            return event.result
        if isinstance(event, Judged):
            raise OpconformError(f"our side failed: {event.result.detail}")
    raise OpconformError("the case has no result")
