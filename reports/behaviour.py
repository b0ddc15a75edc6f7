"""What backends do where the standard is silent: the evidence of single cases, joined by operator version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..cases.results import Result
from ..specs.globs import operator_version_of


@dataclass(frozen=True)
class Evidence:
    """That a backend takes an option: how many cases admit nothing else, and the first of them."""

    option: str
    cases: int
    first: str


@dataclass(frozen=True)
class Break:
    """A case whose options leave out the one that most cases show, or that another case needs."""

    case: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Taken:
    """What a backend does about one silence of one operator version.

    `established` has the options that some case shows on its own; `undecided` counts the cases that admit several.
    `broken` is None if one option would do for every case.
    """

    backend: str
    operator_version: str
    silence: str
    established: tuple[Evidence, ...]
    undecided: int
    broken: Break | None = None

    @property
    def consistent(self) -> bool:
        """Whether one option would do for every case."""
        return self.broken is None


@dataclass
class Joined:
    """Evidence so far; it does not depend on the order in which results arrive."""

    cases: dict[str, int] = field(default_factory=dict)
    first: dict[tuple[str, ...], str] = field(default_factory=dict)
    undecided: int = 0

    def add(self, case: str, options: list[str]) -> None:
        """Take in the options that admit a case's answer, or the answers of so many, of which `case` is the first."""
        admitted = tuple(options)
        self.first[admitted] = min(self.first.get(admitted, case), case)
        if len(options) > 1:
            self.undecided += 1
        else:
            self.cases[options[0]] = self.cases.get(options[0], 0) + 1

    @property
    def established(self) -> tuple[Evidence, ...]:
        """The options that some case shows on its own, the one of most cases first."""
        found = [Evidence(option, count, self.first[option,]) for option, count in self.cases.items()]
        return tuple(sorted(found, key=lambda evidence: (-evidence.cases, evidence.option)))

    @property
    def broken(self) -> Break | None:
        """A case that leaves out the option shown most, if no one option would do for all."""
        if frozenset.intersection(*map(frozenset, self.first)):
            return None
        wanted = self.established[0].option if self.cases else max(self.first, key=len)[0]
        case, options = min((case, options) for options, case in self.first.items() if wanted not in options)
        return Break(case, options)


class Behaviours:
    """Joins the behaviour of results as they arrive."""

    def __init__(self) -> None:
        self._joined: dict[tuple[str, str, str], Joined] = {}

    def add(self, result: Result) -> None:
        """Take in what a result shows, or so many of which it is the first; an empty list of options shows nothing."""
        for silence, options in result.behaviour.items():
            if options:
                key = (result.backend, operator_version_of(result.case), silence)
                self._joined.setdefault(key, Joined()).add(result.case, options)

    def taken(self, backend: str | None = None) -> Iterator[Taken]:
        """Yield what is known of each silence, of one backend or all, in the order in which they came."""
        for key, joined in self._joined.items():
            if backend in (None, key[0]):
                yield Taken(*key, joined.established, joined.undecided, joined.broken)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON, by backend, operator version and silence."""
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for taken in self.taken():
            found.setdefault(taken.backend, {}).setdefault(taken.operator_version, {})[taken.silence] = {
                "options": {e.option: {"cases": e.cases, "first": e.first} for e in taken.established},
                "undecided": taken.undecided,
                "consistent": taken.consistent,
                "broken": taken.broken and {"case": taken.broken.case, "options": list(taken.broken.options)},
            }
        return found
