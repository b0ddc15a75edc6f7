"""Runs one backend over many cases, here or on a cluster: workers get batches, and lost cases become outcomes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec

from ...cases.batch import Batch
from ...cases.errors import CaseIdError, OpconformError
from ...cases.results import Outcome, Result, result_from_json
from ..pool import Limits, Loss, Pool, PoolEvent, Stray, WorkerStartError
from ..registry import BackendSpec
from .execute import ABOUT, UNFIT, Assignment, Death
from .host import About

_BATCH, _LARGEST_BATCH = 48, 512
_PATIENCE = 600.0
"""Seconds that a judge may spend on its own work, in addition to its host's time."""
_STOPPED = 5.0
"""Seconds that a judge may be stopped by a signal, as a backend can stop it, before another one takes its place."""
_RUNS = 10
"""Maximum number of runs of one case in a judge: its sibling, itself, again, to confirm, and each in a fresh host."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A result, with its attachments by name; an attachment that failed is `{"failed": text}`."""

    result: Result
    attachments: Mapping[str, Any] = field(default_factory=dict)


def pool_for(assignment: Assignment, *, jobs: int, limits: Limits) -> Pool:
    """Return a pool of judges for an assignment; `limits` apply to the backend's processes, one beside each judge."""
    patient = _PATIENCE + _RUNS * (limits.run_seconds + limits.prepare_seconds)
    own = Limits(patient, patient, limits.start_seconds + _PATIENCE, stopped_seconds=_STOPPED)
    return Pool(replace(assignment, limits=limits), jobs=jobs, limits=own, fork=True)


def run_cases(
    assignment: Assignment, batches: Iterable[Sequence[str]], *, jobs: int, limits: Limits
) -> Generator[About | Judged | Death]:
    """Yield the backend's description of itself, and one result for each case id, in the order in which they arrive.

    A batch of `batches` goes to a worker whole; an empty one means that there is nothing for now. In between come
    deaths of workers that no case explains. Raises WorkerStartError if the backend cannot be opened, or if its runner
    does not fit its library. Closing the iterator ends the workers.
    """
    pool = pool_for(assignment, jobs=jobs, limits=limits)
    for event in pool.run(itertools.chain([[ABOUT]], batches)):
        yield from events_of(event, assignment.backend)


def events_of(event: PoolEvent, backend: BackendSpec) -> Iterator[About | Judged | Death]:
    """Yield the results that a pool of judges has for a key, or for a worker that died.

    Raises WorkerStartError if the backend's runner does not fit its library.
    """
    if type(event) is tuple:  # the usual case
        key, record = event
        if record.startswith(UNFIT):
            raise WorkerStartError(OpconformError.__name__, record.removeprefix(UNFIT).decode(errors="replace"))
        try:
            yield from [msgspec.json.decode(record, type=About)] if key == ABOUT else _recorded(key, record, backend)
        except (ValueError, RecursionError) as error:
            words = f"its record does not match the request: {error}"
            yield from events_of(Loss(key, "corrupt", None, words, "", 0.0), backend)
    elif isinstance(event, Stray):
        under_way = None if event.key == ABOUT else event.key
        before = tuple(text for text in event.before if text != ABOUT)
        yield Death(backend.name, under_way, event.kind, event.exit, event.tail, before)
    elif isinstance(event, Loss):
        yield About(f"unknown ({event.exit})", ()) if event.key == ABOUT else Judged(_lost(event, backend))


class RunCases(Protocol):
    """A function like `run_cases`, which runs cases here or elsewhere."""

    def __call__(
        self, assignment: Assignment, batches: Iterable[Sequence[str]], /, *, jobs: int, limits: Limits
    ) -> Generator[About | Judged | Death]:
        """Yield the backend's description of itself, and one result for each case id."""


def standards_of(assignment: Assignment, limits: Limits, run: RunCases = run_cases) -> tuple[str, ...]:
    """Return the standards that a backend implements; if its name does not show them, the backend is opened.

    Empty if it dies before it reports them. Raises WorkerStartError.
    """
    return assignment.backend.standards or about(assignment, limits, run).standards


def about(assignment: Assignment, limits: Limits, run: RunCases = run_cases) -> About:
    """Open a backend and return its description of itself. Raises WorkerStartError."""
    alone = replace(assignment, source=_NoCases())  # a worker that judges nothing needs no spec files
    about_ = next(run(alone, [], jobs=1, limits=limits), None)
    return about_ if isinstance(about_, About) else About("unknown", ())


class _NoCases:
    """A source of no case; picklable."""

    def case(self, text: str, /) -> Batch:
        """Raise CaseIdError."""
        raise CaseIdError(f"there is no case {text!r}")

    def batches(self, _texts: Sequence[str], /) -> Iterator[Batch]:
        """Yield nothing."""
        return iter(())


_DEATHS = msgspec.json.Decoder(tuple[Death, ...])
_ATTACHED = msgspec.json.Decoder(dict[str, Any])
_DIGEST = re.compile(r"[0-9a-f]{64}")


def _recorded(case: str, record: bytes, backend: BackendSpec) -> list[Judged | Death]:
    """Return the content of a worker's record on a case: its result, and the deaths before it.

    Raises ValueError, RecursionError if it is invalid, or about another case or backend.
    """
    line, attached, deaths = (*record.split(b"\t", 2), b"", b"")[:3]  # JSON contains no raw TAB
    result = result_from_json(line)
    refuse_unasked(result, case, backend)
    died = _DEATHS.decode(deaths) if deaths else ()
    if other := next((death.backend for death in died if death.backend != backend.name), None):
        raise ValueError(f"it has a death of {other[:200]!r}")
    return [*died, Judged(result, _ATTACHED.decode(attached) if attached else {})]


def refuse_unasked(result: Result, case: str, backend: BackendSpec) -> None:
    """Raise ValueError unless a result is one that a judge may report for this case on this backend."""
    if (result.case, result.backend) != (case, backend.name):
        raise ValueError(f"it is about {result.case[:200]!r} on {result.backend[:200]!r}")
    if result.outcome is Outcome.WAIVED:
        raise ValueError("it says that the case is waived, which a judge never does")
    digests = result.case_digest, result.expectation_digest
    if result.outcome is not Outcome.RUNNER_ERROR and not all(
        digest and _DIGEST.fullmatch(digest) for digest in digests
    ):
        raise ValueError("it lacks the digests of the case")


def _around_draw(text: str) -> tuple[str, str]:
    before, _, after = text.partition("draw=")
    return before, after.lstrip("0123456789")


def batched(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield ids in batches: large enough to share programs, small enough to distribute, and split between programs.

    The draws of a case stay together if possible, because they cost little beside each other.
    """
    batch: list[str] = []
    for _, draws in itertools.groupby(ids, key=_around_draw):
        for text in draws:
            batch.append(text)
            if len(batch) >= _LARGEST_BATCH:
                yield batch
                batch = []
        if len(batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _lost(loss: Loss, backend: BackendSpec) -> Result:
    """Return the result of a case whose judge was lost, which is our side's fault."""
    what = f"the process that judges was lost ({loss.exit or loss.kind})"
    words = f"{what}; last it wrote:\n{loss.tail}" if loss.tail else what
    return Result(loss.key, backend.name, Outcome.RUNNER_ERROR, detail=words, seconds=round(loss.seconds, 7))
