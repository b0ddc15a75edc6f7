"""`opconform rejudge`: judges a run again by today's expectations and errata, from what was kept of it."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from rich.console import Console
from rich.text import Text

from ..cases.batch import Batch, CaseSource, cases_of
from ..cases.elements import Declaration
from ..cases.errors import CaseIdError, OpconformError, open_regular
from ..cases.program import is_tensor
from ..cases.results import Result
from ..cases.runner import BackendKind
from ..generators.meanings import CasesOfEveryKind
from ..reports.arithmetic import ATTACHMENT, attached_accuracy
from ..reports.certificates import certificate_json
from ..reports.folder import INTERRUPTED, ResultsFolder, companions, deflated
from ..reports.junit import check_target, write_junit
from ..reports.progress import tracked
from ..reports.runs import (
    OUTPUTS,
    RESULTS,
    RUN,
    RunRecord,
    StoredResult,
    StoredResults,
    Terms,
    distinct,
    read_run,
    terms_from,
    terms_to_dict,
)
from ..reports.tables import Tables, clause_text_of
from ..reports.terminal import Section, print_summary
from ..reports.text import counted, printable
from ..runners.execution.running import Judged
from ..runners.judging.accuracy import accuracies
from ..runners.judging.answers import Answer, Answers
from ..runners.judging.kept import CannotJudge, answer_from_json, judged_anew, same_verdict
from ..runners.judging.terms import (
    Demands,
    Suspensions,
    before_waiving,
    disputed_clauses,
    load_errata,
    load_profile,
    load_waivers,
    requirements,
)
from ..specs.loader import UnknownOperator
from .generated_suite import suite_digest
from .suite import suite_version

_SHOWN = 20
_LONGEST = 2000
"""Maximum number of characters of a message about a stranger's file."""


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """One result that has changed; `old` and `new` have the outcome, and whether the case is suspended."""

    case: str
    backend: str
    old: str
    new: str
    reason: str


@dataclass
class OutcomeChanges:
    """The changes of a whole run. `run_again` has the results that could not be judged again, each with the reason.

    `from_answers` counts the results that were judged from the bytes of an answer. Others are refusals, which are
    judged by their words, or are unchanged because nothing that decides them has changed.
    """

    changed: list[OutcomeChange] = field(default_factory=list)
    run_again: list[tuple[str, str, str]] = field(default_factory=list)
    unchanged: int = 0
    from_answers: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "unchanged": self.unchanged,
            "from_answers": self.from_answers,
            "changed": [asdict(change) for change in self.changed],
            "run_again": [{"case": c, "backend": b, "reason": why} for c, b, why in self.run_again],
        }


def print_changes(console: Console, changes: OutcomeChanges) -> None:
    """Print what changed, what must be run again, and the numbers of each."""
    kinds = Counter((change.old, change.new, change.reason) for change in changes.changed)
    for (old, new, reason), count in kinds.most_common():
        console.print(Text(f"{old} -> {new}: {counted(count, 'result')}, {printable(reason)}"), soft_wrap=True)
        alike = [c for c in changes.changed if (c.old, c.new, c.reason) == (old, new, reason)]
        _print_cases(console, [(c.case, c.backend) for c in alike])
    if changes.run_again:
        number = len(changes.run_again)
        console.print(Text(f"cannot be judged again, run them: {counted(number, 'result')}", "yellow"), soft_wrap=True)
        reasons: Mapping[str, int] = Counter(why for *_, why in changes.run_again)
        for why in reasons:
            console.print(Text(f"  {printable(why)}:"), soft_wrap=True)
            _print_cases(console, [(case, backend) for case, backend, cause in changes.run_again if cause == why])
    line = f"{len(changes.changed):,} changed, {changes.unchanged:,} unchanged, {len(changes.run_again):,} to run again"
    console.print(Text(line, "bold"), soft_wrap=True)
    console.print()


def _print_cases(console: Console, cases: list[tuple[str, str]]) -> None:
    for case, backend in cases[:_SHOWN]:
        console.print(Text(f"    {printable(case)}  on {printable(backend)}"), soft_wrap=True)
    if len(cases) > _SHOWN:
        rest = f"    and {len(cases) - _SHOWN:,} more; run.json lists all"
        console.print(Text(rest, "dim"), soft_wrap=True)


def _outcome(result: Result, suspended: str | None) -> str:
    return f"{result.outcome} (suspended)" if suspended else str(result.outcome)


def _reason(old: Result, new: Result, before: str | None, now: str | None) -> str:
    if before != now:
        return now if now is not None else f"no longer suspended: {before}"
    if old.expectation_digest != new.expectation_digest:
        return "changed expectation"
    if "waived" in (old.outcome, new.outcome):
        return "waivers"
    return "other options are required, or the judge has changed"


@dataclass(frozen=True, slots=True)
class Rejudgement:
    """A result as it was, and as it is now before waivers; `why` says why it cannot be judged again.

    `case` is today's, None if there is none with this id; `answer` is None if it was not kept whole. `anew` is the
    result with every field that follows from case and answer, while `judged` keeps the words of an unchanged verdict.
    """

    kept: StoredResult
    judged: Judged
    why: str | None
    case: Batch | None
    answer: Answer | None
    anew: Result

    def accuracy(self) -> dict[str, Any] | None:
        """Return the accuracy of the answer by today's expectation; None if it has none, or was not kept."""
        if self.case is None or self.answer is None:
            return None
        (graded,) = accuracies(self.case.expectation, Answers.of([self.answer]))
        return None if graded is None else graded.to_dict()


_TOGETHER = 64
_HEAD = frozenset({"case", "backend", "case_digest"})


@dataclass(frozen=True)
class RejudgeOptions:
    """The options of `opconform rejudge`; see its help. None or empty means the run's own."""

    folder: Path
    out: Path | None = None
    specs: Path | None = None
    waivers: Path | None = None
    errata: Path | None = None
    profile: Path | None = None
    requires: Sequence[str] = ()
    junit: Path | None = None
    sections: frozenset[Section] = frozenset()


@dataclass(frozen=True)
class Rejudged:
    """A run that is judged again: its data, and what judges it now, on which day."""

    begun: RunRecord
    source: CasesOfEveryKind
    old: Terms
    new: Terms
    day: dt.date

    def judged(self, walk: StoredResults | None = None) -> Iterator[Rejudgement]:
        """Judge every result again, on a `walk` of the caller's or a new one.

        Raises OpconformError if the folder is damaged.
        """
        kept = iter(walk or StoredResults(self.begun.folder))
        while together := list(itertools.islice(kept, _TOGETHER)):
            by_backend = itertools.groupby(together, key=lambda stored: stored.result.backend)
            cases = itertools.chain.from_iterable(
                _of_today(self._source(backend), [stored.result.case for stored in some])
                for backend, some in by_backend
            )
            for stored, case in zip(together, cases, strict=True):
                try:
                    judged = self._judged(stored, case)
                    attached_accuracy(judged.judged.attachments)
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                    where = f"{self.begun.folder}: {stored.result.case} on {stored.result.backend}"
                    raise OpconformError(f"{where}: not in the form that a run writes: {error!r}"[:_LONGEST]) from None
                yield judged

    def _source(self, backend: str) -> CaseSource:
        """Return the cases as they are for a backend, which its facts say the kind of."""
        kind = self._kind(backend)
        return self.source if kind == "run" else self.source.meaning(kind)

    def _kind(self, backend: str) -> BackendKind:
        kind = self.begun.about(backend).facts.get("kind", "run")
        return kind if kind in get_args(BackendKind) else "run"  # type: ignore[return-value]  # checked

    def _judged(self, kept: StoredResult, case: Batch | None) -> Rejudgement:
        if self._kind(kept.result.backend) == "convert":
            why = "other backends have to run the conversion"
            return Rejudgement(kept, Judged(kept.result, _as_kept(kept)), why, case, None, kept.result)
        answer = self._answer(kept, case)
        required, before = self.new.demands.required, self.old.demands.required
        try:
            old = before_waiving(kept.result)
        except ValueError as error:
            raise OpconformError(f"{self.begun.folder / RESULTS}: {kept.result.case}: {error}") from None
        try:
            anew = judged_anew(old, case, answer, required=required, before=before)
        except CannotJudge as why:
            return Rejudgement(kept, Judged(old, _as_kept(kept)), str(why), case, None, old)
        new = old if same_verdict(old, anew) else anew
        rejudgement = Rejudgement(kept, Judged(new, _as_kept(kept)), None, case, answer, anew)
        if case is None or answer is None or new is old or self._kind(old.backend) != "run":
            return rejudgement
        graded = rejudgement.accuracy()
        attachments = {"certificate": deflated(certificate_json(self.source, case))}
        attachments |= {} if graded is None else {ATTACHMENT: graded}
        return replace(rejudgement, judged=Judged(new, {**_as_kept(kept), **attachments}))

    def compare(self, rejudgement: Rejudgement, reported: Result, changes: OutcomeChanges) -> None:
        """Add to `changes` a result that is now `reported` in this form."""
        kept = rejudgement.kept.result
        if rejudgement.why is not None:
            changes.run_again.append((kept.case, kept.backend, rejudgement.why))
            return
        before, now = (t.suspensions.reason(reported.case, reported.clauses) for t in (self.old, self.new))
        old, new = _outcome(kept, before), _outcome(reported, now)
        if old == new:
            changes.unchanged += 1
        else:
            reason = _reason(kept, reported, before, now)
            changes.changed.append(OutcomeChange(kept.case, kept.backend, old, new, reason))
        changes.from_answers += rejudgement.answer is not None

    def _answer(self, kept: StoredResult, case: Batch | None) -> Answer | None:
        """Return the answer, None if it was not kept. Raises OpconformError if it is damaged."""
        where = f"{self.begun.folder / OUTPUTS}: {kept.result.case} on {kept.result.backend}"
        try:
            return answer_of(kept, case)
        except MemoryError:
            raise
        except Exception as error:  # lines of a stranger: numbers without bounds, types of any name
            raise OpconformError(f"{where}: not in the form that a run writes: {error!r}"[:_LONGEST]) from None


def answer_of(kept: StoredResult, case: Batch | None) -> Answer | None:
    """Return the answer that was kept of a result, None if it was not. Raises ValueError, KeyError or TypeError."""
    entry = None if kept.outputs is None else json.loads(kept.outputs)
    if entry is None or "outputs" not in entry or entry["case_digest"] != kept.result.case_digest:
        return None
    answer = answer_from_json(entry)
    if case is None or answer is None or answer.structure:
        return answer
    infers = any(check.name == "infers" for option in case.expectation.options for check in option.checks)
    return answer if infers or all(is_tensor(port.type) for port in case.program.answers) else None


def run_rejudge(options: RejudgeOptions, command: Sequence[str]) -> int:
    """Judge again, report, and return the exit code that the run would have.

    Raises OpconformError before anything is written if an option or the folder is wrong.
    """
    if options.junit is not None:
        check_target(options.junit)
    rejudged = opened(options)
    now = dt.datetime.now(tz=dt.UTC)
    out = options.out or Path("opconform-results") / now.strftime("%Y-%m-%dT%H-%M-%S")
    with ResultsFolder.create(out) as folder:
        return _run(rejudged, options, command, folder)


def opened(options: RejudgeOptions) -> Rejudged:
    """Read everything that is needed to judge a run again. Raises OpconformError."""
    begun = RunRecord(options.folder, read_run(options.folder))
    file = options.folder / RUN
    old = terms_from(begun.run_json.get("terms") or {}, file)
    source = CasesOfEveryKind(options.specs, old.declaration or Declaration())
    library = source.library
    specs = library.specs()
    versions = [str(version.operator) for spec in specs for version in spec.versions.values()]
    demands = Demands(
        requirements(options.requires, library) if options.requires else old.demands.required,
        load_profile(options.profile) if options.profile else old.demands.profile,
        old.demands.claims,
    )
    waivers = load_waivers(options.waivers, versions) if options.waivers else old.waivers
    day = dt.datetime.now(tz=dt.UTC).date() if options.waivers else begun.started.date()
    suspensions = Suspensions(load_errata(options.errata), disputed_clauses(specs))
    return Rejudged(begun, source, old, Terms(demands, suspensions, waivers, old.declaration), day)


def _run(rejudged: Rejudged, options: RejudgeOptions, command: Sequence[str], folder: ResultsFolder) -> int:
    console, begun, terms = Console(), rejudged.begun, rejudged.new
    backends = [str(name) for name in begun.run_json.get("backends", {})]
    tables, changes = Tables.of(terms, backends, rejudged.day), OutcomeChanges()
    folder.start(_description(rejudged, options, command))
    certified: set[str] = set()
    with tracked(rejudged.judged(), "judging", begun.planned) as rejudgements:
        for rejudgement in rejudgements:
            reported = tables.take(rejudgement.judged.result, rejudgement.judged.attachments)
            rejudged.compare(rejudgement, reported, changes)
            line = reported.to_json()
            folder.add(line, companions(Judged(reported, rejudgement.judged.attachments), line, certified))
    partial = bool(begun.run_json.get("selection") or begun.run_json.get("shard") or not begun.finished)
    problems = tables.waivers.problems(partial=partial)
    code = max(tables.tally.exit_code(len(problems)), 0 if begun.finished else INTERRUPTED)
    record = {**folder.run_json["rejudged"], **changes.to_dict()}
    folder.finish(
        "finished" if begun.finished else "interrupted", code, {**tables.to_dict(problems), "rejudged": record}
    )
    versions = {name: begun.about(name).version for name in backends}
    words = clause_text_of(rejudged.source.library)
    names = distinct({name: begun.about(name).name or name for name in versions})
    targets = [folder.path / "junit.xml", *([options.junit] if options.junit else [])]
    write_junit(
        folder.path,
        *targets,
        demands=terms.demands,
        suspensions=terms.suspensions,
        versions=versions,
        clause_text=words,
        names=names,
    )
    print_changes(console, changes)
    summary = replace(
        tables.summary(code),
        versions=versions,
        clause_text=words,
        problems=problems,
        folders=[folder.path],
        partial=begun.run_json.get("shard") not in (None, "1/1"),
        names=names,
    )
    print_summary(console, summary, options.sections or "figures")
    return code


def _description(rejudged: Rejudged, options: RejudgeOptions, command: Sequence[str]) -> dict[str, Any]:
    """Return `run.json`: what the backends did is unchanged, what judges it is today's."""
    run_json, terms = rejudged.begun.run_json, rejudged.new
    profile, errata = terms.demands.profile, terms.suspensions.errata
    suite = {"version": suite_version(), "digest": suite_digest(rejudged.source.library)}
    return {
        **run_json,
        "command": list(command),
        "suite": {**run_json.get("suite", {}), **suite},
        "required": dict(terms.demands.required),
        "profile": profile and {"name": profile.name, "version": profile.version, "digest": profile.digest},
        "waivers": {"digest": terms.waivers.digest} if options.waivers else run_json.get("waivers"),
        "errata": {"digest": errata.digest, "ids": [erratum.id for erratum in errata.entries]},
        "disputed": {clause: upstream or None for clause, upstream in terms.suspensions.disputed.items()},
        "terms": terms_to_dict(terms),
        "rejudged": {
            "on": dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds"),
            "from": {
                "results": _digest(rejudged.begun.folder / RESULTS),
                "outputs": _digest(rejudged.begun.folder / OUTPUTS),
                "suite": run_json.get("suite"),
                "command": rejudged.begun.command,
            },
        },
    }


def _digest(file: Path) -> str | None:
    """Return a file's sha256, None if there is none. Raises OpconformError if it cannot be read."""
    try:
        with open_regular(file) as opened_file:
            return hashlib.file_digest(opened_file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OpconformError(f"{file}: cannot be read: {error.strerror}") from None


def _of_today(source: CaseSource, texts: Sequence[str]) -> Iterator[Batch | None]:
    """Yield the cases with these ids, None for an id that no longer exists."""
    start = 0
    while start < len(texts):
        try:
            for case in cases_of(source, texts[start:]):
                start += 1
                yield case
        except (CaseIdError, UnknownOperator):
            start += 1
            yield None


def _as_kept(kept: StoredResult) -> dict[str, Any]:
    """Return the lines that accompany a result, as attachments."""
    attachments: dict[str, Any] = {}
    for name, line in (("outputs", kept.outputs), (ATTACHMENT, kept.accuracy)):
        if line is not None:
            attachments[name] = {key: value for key, value in json.loads(line).items() if key not in _HEAD}
    if kept.certificate is not None:
        attachments["certificate"] = json.loads(kept.certificate)
    return attachments
