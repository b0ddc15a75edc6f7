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
from .options import RunOptions

NOTHING_CHANGED = 1
"""The exit code if both ends have the same verdict."""
_SHOWN = 300

Try: TypeAlias = Callable[[str], Result]
"""Judges the case on a release. Raises OpconformError if it has no environment, or our side fails."""


@dataclass(frozen=True)
class BisectOptions:
    """The user's options: the runner, the case, the releases to search, and how a case runs."""

    backend: str
    case_id: str
    good: str | None = None
    bad: str | None = None
    specs: Path | None = None
    timeout: float = 10.0
    memory: int | None = None
    requires: Sequence[str] = ()
    quiet: bool = False

    @property
    def limits(self) -> Limits:
        """The limits of the case."""
        return RunOptions(timeout=self.timeout, memory=self.memory).limits


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

    def end(self, place: int) -> str:
        """Return the first release on which the case can be judged, or with a `place` of -1 the last."""
        while self.releases:
            version = self.releases[place]
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
            found = self.outcome(middle)
            if found == self.outcomes[low]:
                low = middle
            elif found is not None:
                high = middle

    def changes(self, low: str, high: str) -> list[tuple[str, str]]:
        """Return changes that lead from the verdict on `low` to that on `high`, oldest first; there may be others."""
        found = []
        while self.outcomes[low] != self.outcomes[high]:
            found.append(self.change(low, high))
            low = found[-1][1]
        return found


def run_bisect(options: BisectOptions) -> int:
    """Find the release, print each step, and return the exit code. Raises OpconformError."""
    name = options.backend
    if name not in PORTABLE:
        near = did_you_mean(name, list(PORTABLE))
        raise OpconformError(f"{name}: its releases are not known{near}; expected one of {', '.join(PORTABLE)}")
    portable = PORTABLE[name]
    source, case = case_of(options.case_id, options.specs)
    if case.program.operator.standard not in portable.standards:
        raise OpconformError(f"{case.id}: {name} only runs cases of {', '.join(portable.standards)}")
    answered = requirements(options.requires, source.library)
    progress = Console(stderr=True, quiet=options.quiet)
    with progress.status("listing releases") as status:
        among = _between(releases(portable.package), options)

        def judged(version: str) -> Result:
            status.update(f"{version}, one of {counted(len(search.releases), 'release')}")
            assignment = Assignment(backend_spec(f"{name}=={version}"), source, answered)
            return _judged(assignment, case.id, options.limits)

        search = Bisection(among, judged, click.echo)
        low, high = search.end(0), search.end(-1)
        _check_ends(options, search.outcomes)
        changes = search.changes(low, high)
    for before, after in changes:
        told = f"{search.outcomes[before]} up to {before}, {search.outcomes[after]} from {after} on"
        click.echo(f"{case.id} on {name}: {told}")
    if not changes:
        told = f"{search.outcomes[low]} on {low} and on {high}; name releases that differ by --good and --bad"
        click.echo(f"{case.id} on {name}: {told}")
    return 0 if changes else NOTHING_CHANGED


def _between(known: Sequence[str], options: BisectOptions) -> list[str]:
    """Return the releases to search, oldest first. Raises OpconformError if there are fewer than two."""
    named = [version for version in (options.good, options.bad) if version is not None]
    found = sorted({*known, *named}, key=release_of)
    if len(named) == 2:
        named.sort(key=release_of)
        found = found[found.index(named[0]) : found.index(named[1]) + 1]
    elif options.good is not None:
        found = found[found.index(options.good) :]
    elif options.bad is not None:
        found = found[: found.index(options.bad) + 1]
    if len(found) < 2:
        raise OpconformError(f"there are fewer than two releases to search: {', '.join(found) or 'none'}")
    return found


def _check_ends(options: BisectOptions, outcomes: Mapping[str, Outcome]) -> None:
    """Raise OpconformError if a release does not have the verdict of its option, --good or --bad."""
    for option, version, passes in (("--good", options.good, True), ("--bad", options.bad, False)):
        if version is not None and version not in outcomes:
            raise OpconformError(f"{option} {version}: the case cannot be judged there")
        if version is not None and (outcomes[version] is Outcome.PASS) != passes:
            raise OpconformError(f"{option} {version}: the outcome of the case is {outcomes[version]} there")


def _judged(assignment: Assignment, case_id: str, limits: Limits) -> Result:
    for found in run_cases(assignment, [[case_id]], jobs=1, limits=limits):
        if isinstance(found, Judged) and found.result.outcome is not Outcome.RUNNER_ERROR:
            return found.result
        if isinstance(found, Judged):
            raise OpconformError(f"our side failed: {found.result.detail}")
    raise OpconformError("the case has no result")
