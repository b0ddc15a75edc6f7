"""`opconform minimise`: shrinks a failing case to the smallest one that fails in the same way, judged as in a run."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import click
from rich.console import Console
from rich.status import Status

from ..cases.batch import Batch
from ..cases.errors import OpconformError
from ..cases.ids import operator_version_of
from ..cases.results import Outcome, Result
from ..generators.meanings import CasesOfEveryKind
from ..generators.shrinking import Shrinker
from ..reports.folder import INTERRUPTED
from ..reports.script import script_text
from ..reports.show import content_lines
from ..reports.tally import NOTHING_JUDGED, OUR_SIDE_FAILED, symptom_of
from ..reports.text import TOOLS, counted, printable, reproduce_line
from ..reports.tool_script import tool_script
from ..runners.execution.execute import Assignment
from ..runners.execution.host import About
from ..runners.execution.running import Judged, run_cases
from ..runners.judging.terms import requirements
from ..runners.pool import Limits
from ..runners.registry import backend_spec
from .generated_suite import case_of
from .options import limits_of, usable_cores

_FIRST, _MOST = 2, 64
"""The number of candidates that are judged at once: few at first, because the next may well fail; more if all pass."""


class _Judge:
    """A backend in its own processes that judges cases as they come."""

    def __init__(self, assignment: Assignment, jobs: int, limits: Limits) -> None:
        self._waiting: deque[list[str]] = deque()
        self._closed = False
        self.jobs = jobs
        self._events = run_cases(assignment, self._batches(), jobs=jobs, limits=limits)
        self.about = About("unknown", ())

    def __enter__(self) -> _Judge:
        """Open the backend, which describes itself before its first case. Raises WorkerStartError."""
        self.about = next((event for event in self._events if isinstance(event, About)), self.about)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closed = True
        self._events.close()

    def _batches(self) -> Iterator[list[str]]:
        while not self._closed:
            yield self._waiting.popleft() if self._waiting else []

    def __call__(self, ids: Sequence[str]) -> dict[str, Result]:
        """Return the result of each case."""
        size = max(1, -(-len(ids) // self.jobs))
        self._waiting += [list(ids[start : start + size]) for start in range(0, len(ids), size)]
        results: dict[str, Result] = {}
        while len(results) < len(ids):
            event = next(self._events)
            if isinstance(event, Judged):
                results[event.result.case] = event.result
        return results


@dataclass
class _Search:
    """A search in progress: the smallest failing case so far, and the number of judged candidates."""

    judge: _Judge
    source: CasesOfEveryKind
    shrinker: Shrinker
    open: Set[str]
    result: Result
    limit: int
    ends: float
    status: Status
    tried: set[str] = field(default_factory=set)
    judged: int = 0
    taken: int = 0
    interrupted: bool = False

    @property
    def is_over(self) -> bool:
        """Return whether a limit of the search is reached."""
        return self.judged >= self.limit or time.monotonic() >= self.ends

    def run(self) -> None:
        """Take every step to a smaller case that fails in the same way, until there is none or a limit is reached."""
        before = None
        while before != self.result.case and not self.is_over:
            before = self.result.case
            for step in self.shrinker.steps:
                while (better := self._first(step(self.result.case))) is not None:
                    self.result = better
                    self.taken += 1

    def _first(self, candidates: Iterable[str]) -> Result | None:
        """Return the result of the first candidate that fails in the same way."""
        new = (text for text in candidates if text not in self.tried)
        number, size, symptom = _FIRST, self.shrinker.size(self.result.case), symptom_of(self.result)
        most = self.judge.jobs if self.result.outcome is Outcome.TIMEOUT else _MOST  # each may take the time limit
        while not self.is_over and (some := list(itertools.islice(new, number))):
            self.tried.update(some)
            drawn = {text: self.shrinker.draws(text) for text in some}
            results = self.judge(list(dict.fromkeys(text for texts in drawn.values() for text in texts)))
            self.judged += sum(result.outcome is not Outcome.RUNNER_ERROR for result in results.values())
            self._tell()
            for texts in drawn.values():
                for text in texts:
                    is_smaller = self.shrinker.size(text) < size
                    if is_smaller and symptom_of(results[text]) == symptom and self._asks_no_more(text):
                        return results[text]
            number = min(2 * number, most)
        return None

    def _asks_no_more(self, case_id: str) -> bool:
        """Return whether a case opens no new silence, which would make it another finding."""
        return self.source.case(case_id).expectation.silences.keys() <= self.open

    def _tell(self) -> None:
        counts = f"{counted(self.judged, 'candidate')}, {counted(self.taken, 'step')}"
        self.status.update(f"{counts}: {printable(self.result.case)[:160]}")


def run_minimise(
    case_id: str,
    backend: str,
    *,
    specs: Path | None,
    jobs: int | None,
    timeout: float,
    memory: int | None,
    python: Path | None,
    requires: Sequence[str],
    limit: int,
    seconds: float,
    quiet: bool,
) -> int:
    """Minimise, print the smallest case and its script, and return the exit code. Raises OpconformError."""
    progress = Console(stderr=True, quiet=quiet)
    source, case = case_of(case_id, specs)
    spec = backend_spec(backend, python)
    assignment = Assignment(spec, source, requirements(requires, source.library))
    began = time.monotonic()
    opened = _Judge(assignment, jobs or usable_cores(), limits_of(timeout, memory))
    with opened as judge, progress.status("judging the case") as status:
        first = judge([case.id])[case.id]
        standards, name = judge.about.standards, f"{spec.name} {judge.about.version}"
        if standards and case.program.operator.standard not in standards:
            raise OpconformError(f"{case.id}: {spec.name} only runs cases of {', '.join(standards)}")
        if first.outcome in (Outcome.PASS, Outcome.RUNNER_ERROR):
            passes = first.outcome is Outcome.PASS
            reason = "it passes, so there is nothing to minimise" if passes else f"our side failed\n{first.detail}"
            click.echo(f"opconform: {printable(f'{case.id} on {name}: {reason}')}", err=True)
            return NOTHING_JUDGED if passes else OUR_SIDE_FAILED
        shrinker = Shrinker(source, operator_version_of(case.id))
        open_ = case.expectation.silences.keys()
        search = _Search(judge, source, shrinker, open_, first, limit, began + seconds, status)
        try:
            if not case.expectation.invalid:
                search.run()
        except KeyboardInterrupt:  # the result so far is worth printing
            search.interrupted = True
    click.echo(_report(search, first, name, source.case(search.result.case)))
    return INTERRUPTED if search.interrupted else 0


def _report(search: _Search, first: Result, backend: str, case: Batch) -> str:
    """Return the result as comments, and the script that reproduces it, if there is one."""
    result = search.result
    counts = f"{counted(search.taken, 'step')}, {counted(search.judged, 'candidate')} judged"
    if search.interrupted:
        end = "interrupted"
    elif case.expectation.invalid:
        end = "an invalid case has one mistake and is left as it is"
    else:
        end = "a limit of the search was reached" if search.is_over else "no simpler case fails in the same way"
    lines = [f"{result.outcome} on {backend}", *(result.detail or "").splitlines(), ""]
    lines += [*content_lines(case), ""]
    lines += [f"minimised from {first.case}", f"{counts}: {end}", f"reproduce: {reproduce_line(result)}"]
    try:
        if result.backend in TOOLS:
            script = tool_script(search.source, case.id, result.backend)
        else:
            script = script_text(case, full=result.backend != "onnxruntime")
    except OpconformError as error:
        lines, script = [*lines, str(error)], ""
    return "\n".join([*(f"# {printable(line)}".rstrip() for line in lines), script.rstrip()]).rstrip()
