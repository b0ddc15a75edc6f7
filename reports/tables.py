"""What is gathered of results, as they arrive or as they are read again, and the summary made of it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..cases.declared import Declaration
from ..cases.errors import OpconformError
from ..cases.results import Result
from ..runners.accuracy import Accuracy
from ..runners.demands import Demands
from ..runners.waivers import WaiverRun, Waivers, before_waiving
from ..specs.errata import Suspensions
from ..specs.loader import Library
from .arithmetic import ArithmeticTables
from .behaviour import Behaviours
from .failures import Failures
from .figures import Tally
from .grades import ATTACHMENT, attached_accuracy
from .reading import Kept
from .terminal import Summary


@dataclass(frozen=True)
class Terms:
    """What decides verdicts beside the cases: what fails, what is suspended, what is waived, what was declared."""

    demands: Demands = field(default_factory=Demands)
    suspensions: Suspensions = field(default_factory=Suspensions)
    waivers: Waivers = field(default_factory=Waivers)
    declaration: Declaration | None = None


@dataclass
class Tables:
    """Figures, failures, behaviours, grades; memory grows with their kinds, not with the cases."""

    terms: Terms
    tally: Tally
    failures: Failures
    behaviours: Behaviours
    arithmetic: ArithmeticTables
    waivers: WaiverRun

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
        """Count a result that has arrived, and return it as it is reported: waived, if a waiver says so."""
        suspended = self.terms.suspensions.reason(result.case, result.clauses)
        reported = self.waivers.apply(result, suspended=suspended is not None)
        self._add(reported, suspended, attached_accuracy(attachments) if attachments else None)
        return reported

    def take_kept(self, kept: Kept) -> None:
        """Count a result as it was reported before.

        Raises ValueError, KeyError or TypeError if it is damaged.
        """
        result = kept.result
        suspended = self.terms.suspensions.reason(result.case, result.clauses)
        self.waivers.apply(before_waiving(result), suspended=suspended is not None)
        accuracy = None if kept.accuracy is None else attached_accuracy({ATTACHMENT: json.loads(kept.accuracy)})
        self._add(result, suspended, accuracy)

    def _add(self, result: Result, suspended: str | None, accuracy: Accuracy | None) -> None:
        self.tally.add(result, suspended)
        self.failures.add(result, suspended)
        self.behaviours.add(result)
        self.arithmetic.add(result, accuracy)

    def to_dict(self, problems: Sequence[str]) -> dict[str, object]:
        """Return figures and the rest for JSON; `problems` are those of waivers."""
        return {"figures": self.tally.to_dict(), "waiver_problems": list(problems), **self.arithmetic.to_dict()}

    def summary(
        self,
        exit_code: int,
        *,
        versions: Mapping[str, str],
        clause_text: Callable[[str, str], str | None],
        problems: Sequence[str],
        seconds: float | None,
        folder: str,
    ) -> Summary:
        """Return what there is to tell."""
        return Summary(
            self.tally,
            self.behaviours,
            self.failures,
            exit_code,
            versions,
            clause_text,
            self.terms.declaration is not None,
            problems,
            seconds,
            folder,
            arithmetic=self.arithmetic,
        )


def clause_text_of(library: Library) -> Callable[[str, str], str | None]:
    """Return what finds a clause's text, by operator version and id; None where these specs have none."""

    def text(operator_version: str, clause: str) -> str | None:
        try:
            spec, version = library.operator_version(operator_version)
        except OpconformError:
            return None
        found = spec.version(version).clauses.get(clause.partition("#")[2])
        return found.text if found else None

    return text
