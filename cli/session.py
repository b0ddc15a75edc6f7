"""One run from options to verdict: reads and checks the options, then starts workers, results folder and summary."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import importlib.metadata
import locale
import os
import platform
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ..cases.errors import OpconformError
from ..cases.ids import Selection, Shard
from ..cases.results import Outcome
from ..cases.runner import BackendKind
from ..reports.arithmetic import ATTACHMENT
from ..reports.folder import INTERRUPTED, ResultsFolder, check_new, companions
from ..reports.junit import check_target, write_junit
from ..reports.progress import RunProgress
from ..reports.runs import UNKNOWN, RunRecord, Terms, distinct, terms_to_dict
from ..reports.tables import Tables, take_kept
from ..reports.tally import OUR_SIDE_FAILED
from ..reports.terminal import print_summary
from ..reports.text import counted, deaths_told, printable
from ..runners.execution.execute import Assignment, Attach, Death
from ..runners.execution.executors import Executor, check_executor, opened_executor
from ..runners.execution.host import About
from ..runners.execution.running import Judged, about, batched
from ..runners.judging.accuracy import attach_accuracy
from ..runners.judging.kept import KeepOutputs
from ..runners.judging.terms import (
    Demands,
    Suspensions,
    Waivers,
    claimed,
    load_declaration,
    load_errata,
    load_profile,
    load_waivers,
    required,
)
from ..runners.registry import OWN, BackendSpec, backend_spec
from .file_suites import open_suite
from .options import RunOptions, check_same, options_of, refuse_unnamed
from .planning import GrowingPlan
from .suite import Suite, suite_version


@dataclass(frozen=True, slots=True)
class Plan:
    """The cases for one backend: their selection, and their number or a plan that still grows."""

    selection: Selection
    shard: Shard | None
    cases: int | GrowingPlan

    @property
    def total(self) -> int | None:
        """Return the number of cases; None while it is unknown."""
        return self.cases if isinstance(self.cases, int) else self.cases.total

    def at_least(self, number: int | None) -> int:
        """Return the number of cases, or that there are at least so many; None waits for all."""
        return self.cases if isinstance(self.cases, int) else self.cases.at_least(number)

    def ids(self, suite: Suite) -> Iterator[str]:
        """Yield the ids of the cases."""
        return suite.selected(self.selection, self.shard) if isinstance(self.cases, int) else iter(self.cases)


@dataclass
class Session:
    """A run that is ready to begin or to resume, or in progress: what it is, and the results so far.

    `abouts` has the backends that describe themselves already. `done`, `certified` and `deaths` include those from
    before the run was resumed.
    """

    options: RunOptions
    executor: Executor
    backends: tuple[BackendSpec, ...]
    suite: Suite
    terms: Terms
    plans: Mapping[str, Plan]
    abouts: dict[str, About]
    command: Sequence[str]
    started: dt.datetime
    done: Mapping[str, Collection[str]] = field(default_factory=dict)
    certified: set[str] = field(default_factory=set)
    deaths: list[dict[str, Any]] = field(default_factory=list)
    more_deaths: int = 0

    @functools.cached_property
    def tables(self) -> Tables:
        """Return the results so far, counted."""
        return Tables.of(self.terms, [backend.name for backend in self.backends], self.started.date())

    def left(self, backend: str, number: int | None = None) -> int:
        """Return the number of cases that a backend has left, or that there are at least so many."""
        done = len(self.done.get(backend, ()))
        return self.plans[backend].at_least(None if number is None else number + done) - done

    @property
    def versions(self) -> dict[str, str]:
        """Return the versions of the backends, as far as known."""
        return {name: about.version for name, about in self.abouts.items()}

    @property
    def names(self) -> dict[str, str]:
        """Return what reports call the backends: --name, or the own name of a class, module or program."""
        names = {}
        for backend in self.backends:
            about = self.abouts.get(backend.name)
            own = about.name if about is not None and backend.scheme in OWN else ""
            names[backend.name] = self.options.name or own or backend.name
        return distinct(names)

    def description(self) -> dict[str, Any]:
        """Return everything that decides a run's results, for `run.json`, with the facts of this machine.

        It has no host, user or path. `options` are the options for resuming the run, `terms` everything that decided
        its verdicts, both complete; `deaths` are the deaths of workers that no case explains.
        """
        options, terms = self.options, self.terms
        selection, names = options.selection, self.names
        profile, declaration, suspensions = terms.demands.profile, terms.declaration, terms.suspensions
        suite = {"version": suite_version(), "digest": self.suite.digest}
        abouts = {b.name: self.abouts.get(b.name, About(UNKNOWN, ())) for b in self.backends}
        corpus = self.suite.to_dict()
        return {
            "command": list(self.command),
            "started": self.started.astimezone(dt.UTC).isoformat(timespec="seconds"),
            "suite": suite | ({"name": selection.suite} if selection.suite else {}),
            "backends": {
                name: {
                    "version": about.version,
                    "name": names[name],
                    "standards": list(self.plans[name].selection.standards),
                    "facts": dict(about.facts),
                }
                for name, about in abouts.items()
            },
            "corpus": corpus and dict(corpus),
            "selection": list(selection.globs),
            "strength": "full" if selection.strength is None else selection.strength,
            "draws": selection.draws,
            "seed": selection.seed,
            "shard": options.shard and str(options.shard),
            "planned": {name: plan.total for name, plan in self.plans.items() if plan.total is not None},
            "required": dict(terms.demands.required),
            "profile": profile and {"name": profile.name, "version": profile.version, "digest": profile.digest},
            "arithmetic": declaration and {"digest": declaration.digest},
            "waivers": terms.waivers.digest and {"digest": terms.waivers.digest},
            "errata": {"digest": suspensions.errata.digest, "ids": [e.id for e in suspensions.errata.entries]},
            "keep_outputs": options.keep_outputs,
            "executor": dict(self.executor.description()),
            "disputed": {clause: upstream or None for clause, upstream in suspensions.disputed.items()},
            "machine": _machine(),
            "options": options.to_dict(),
            "terms": terms_to_dict(terms),
            "deaths": [dict(death) for death in self.deaths],
            "more_deaths": self.more_deaths,
        }


def opened(
    options: RunOptions, executor: Executor, command: Sequence[str], started: dt.datetime | None = None
) -> Session:
    """Read and check what the options name; the run starts now unless it `started` before. Raises OpconformError."""
    backends = tuple(backend_spec(name, options.python) for name in dict.fromkeys(options.backends))
    suite = open_suite(options)
    terms = terms_of(options, suite)
    abouts = {
        b.name: about(Assignment(b, suite.source), options.limits, executor.run_cases)
        for b in backends
        if not b.standards
    }
    claims = {name: claimed(name, a.version, a.claims) for name, a in abouts.items() if a.claims is not None}
    terms = replace(terms, demands=replace(terms.demands, claims=claims))
    plans = _plans(options, {b.name: b.standards or abouts[b.name].standards for b in backends}, suite)
    for backend in backends:
        kind = abouts[backend.name].kind if backend.name in abouts else backend.kind
        if kind != "run":
            plans[backend.name] = _of_programs(plans[backend.name], suite, kind)
    started = started or dt.datetime.now(tz=dt.UTC)
    return Session(options, executor, backends, suite, terms, plans, abouts, command, started)


def terms_of(options: RunOptions, suite: Suite) -> Terms:
    """Read the files and options that decide verdicts; claims only a backend knows. Raises OpconformError."""
    demands = Demands(
        required(options.requires, suite.silences() if options.requires else {}),
        load_profile(options.profile) if options.profile else None,
    )
    waivers = load_waivers(options.waivers, suite.operator_versions) if options.waivers else Waivers()
    declaration = load_declaration(options.arithmetic) if options.arithmetic else None
    return Terms(
        demands, Suspensions(load_errata(options.errata), suite.disputed(options.selection)), waivers, declaration
    )


def _plans(options: RunOptions, implemented: Mapping[str, Sequence[str]], suite: Suite) -> dict[str, Plan]:
    """Return the plan of each backend: the selected cases of its standards. Raises OpconformError if there are none."""
    selections = {
        name: replace(options.selection, standards=tuple(standards)) for name, standards in implemented.items()
    }
    if options.shard is None and options.resume is None:
        growing = {selection: suite.growing(selection) for selection in dict.fromkeys(selections.values())}
        plans = {
            name: Plan(selection, None, plan)
            for name, selection in selections.items()
            if (plan := growing[selection]) is not None
        }
        if len(plans) == len(selections) and all(plan.at_least(1) for plan in plans.values()):
            return plans
    counts = suite.counts(options.selection)
    if not counts:
        raise OpconformError("; ".join([_selects_nothing(options), *suite.suggestions(options.selection)]))
    idle = {name: selection.standards for name, selection in selections.items() if not _cases_of(selection, counts)}
    if idle:
        raise _of_other_standards(options, idle)
    totals: dict[Selection, int] = {}
    plans = {}
    for name, selection in selections.items():
        if options.shard is not None and selection not in totals:
            totals[selection] = suite.share(selection, options.shard)
        plans[name] = Plan(selection, options.shard, totals.get(selection, _cases_of(selection, counts)))
    return plans


def _of_programs(plan: Plan, suite: Suite, kind: BackendKind) -> Plan:
    """Return the plan of a backend that does not run programs. Raises OpconformError if there is no case for it."""
    programs = Plan(plan.selection, plan.shard, GrowingPlan(suite.programs(plan.selection, plan.shard, kind)))
    if not programs.at_least(1):
        raise OpconformError(f"only invalid cases are selected that show nothing on a backend of kind {kind}")
    return programs


def _cases_of(selection: Selection, counts: Mapping[str, int]) -> int:
    """Return the number of selected cases of a selection's standards, or of all standards if it names none."""
    return sum(count for standard, count in counts.items() if standard in (selection.standards or counts))


def _selects_nothing(options: RunOptions) -> str:
    globs = ", ".join(options.selection.globs) or ("the suite" if options.corpus is None else str(options.corpus))
    return f"{globs} selects no case"


def _of_other_standards(options: RunOptions, idle: Mapping[str, Sequence[str]]) -> OpconformError:
    """Return the error for backends without a selected case, if other standards have some."""
    runs = [
        f"{name} runs {' and '.join(f'{standard}/*' for standard in standards)} only"
        for name, standards in idle.items()
    ]
    standards = dict.fromkeys(standard for standards in idle.values() for standard in standards)
    select = "" if options.corpus else ", or add " + " ".join(f"--select '{standard}/*'" for standard in standards)
    problem = f"{_selects_nothing(options)} for {' and '.join(idle)}: {', '.join(runs)}"
    return OpconformError(f"{problem}; leave {'it' if len(idle) == 1 else 'them'} out{select}")


_LIBRARIES = ("numpy", "onnx", "ml_dtypes")
LOCALE = "C.UTF-8"
"""The locale in which backends run, so that the user's own does not change what they do with text."""
_DEATHS = 1_000
"""Number of deaths that run.json lists."""


def run_session(
    options: RunOptions, command: Sequence[str], console: Console | None = None, *, temporary: bool = False
) -> int:
    """Run, report and return the exit code. Raises OpconformError before anything is touched if an option is wrong.

    A `temporary` results folder is not named in the summary.
    """
    console = console or Console()
    os.environ["LC_ALL"] = LOCALE  # workers, and programs that they start, inherit it
    if options.resume is not None:
        return _resumed(options, options.resume, console)
    check_targets(options)
    with opened_executor(options.executor, options.resources, jobs=options.workers) as executor:
        session = opened(options, executor, command)
        out = options.out or Path("opconform-results") / session.started.strftime("%Y-%m-%dT%H-%M-%S")
        with ResultsFolder.create(out) as folder:
            return _run(session, folder, console, temporary=temporary)


def _resumed(options: RunOptions, path: Path, console: Console) -> int:
    """Resume the run with the results folder `path`; the folder is checked before anything is touched."""
    with ResultsFolder.resume(path) as folder:
        begun = RunRecord(path, folder.run_json)
        options = options_of(begun, options)
        if begun.finished:
            from .report import ReportOptions, run_report  # noqa: PLC0415 - it imports the generators

            return run_report(ReportOptions((path,), junit=options.junit, sections=options.sections), console)
        refuse_unnamed(options, path)
        check_targets(options)
        with opened_executor(options.executor, options.resources, jobs=options.workers) as executor:
            session = opened(options, executor, begun.command, begun.started)
            kept = take_kept(path, session.tables)
            session.done, session.certified = kept.done, kept.certified
            session.deaths += begun.deaths
            session.more_deaths = begun.more_deaths
            _open_backends(session, begun)
            check_same(begun, session.description())
            folder.mend(kept)
            return _run(session, folder, console)


def check_targets(options: RunOptions) -> None:
    """Check, before anything is read or planned, where a run is executed and what it writes. Raises OpconformError."""
    check_executor(options.executor, options.resources)
    if options.junit is not None:
        check_target(options.junit)
    if options.out is not None and options.resume is None:
        check_new(options.out)


def _open_backends(session: Session, begun: RunRecord) -> None:
    """Open the backends that have cases left, which describe themselves; for the others, use their old description."""
    for backend in session.backends:
        if not session.left(backend.name, 1):
            session.abouts[backend.name] = begun.about(backend.name)
        elif backend.name not in session.abouts:
            assignment = Assignment(backend, session.suite.source)
            session.abouts[backend.name] = about(assignment, session.options.limits, session.executor.run_cases)


def _run(session: Session, folder: ResultsFolder, console: Console, *, temporary: bool = False) -> int:
    started = None if any(session.done.values()) else time.monotonic()
    tables, options = session.tables, session.options
    folder.start(session.description())
    interrupted = _run_backends(session, folder, console)
    targets = [folder.path / "junit.xml", *([options.junit] if options.junit else [])]
    write_junit(
        folder.path,
        *targets,
        demands=session.terms.demands,
        suspensions=session.terms.suspensions,
        versions=session.versions,
        clause_text=session.suite.clause_text,
        names=session.names,
    )
    problems = tables.waivers.problems(partial=interrupted or options.partial)
    lost = [] if interrupted else _lost(session)
    broken = session.suite.broken
    code = max(tables.tally.exit_code(len(problems)), 2 if broken else 0, OUR_SIDE_FAILED if lost else 0)
    code = max(code, INTERRUPTED if interrupted else 0)
    status = "interrupted" if interrupted else "finished"
    # Last, when everything else is written.
    folder.finish(status, code, {**session.description(), **tables.to_dict(problems)})
    summary = replace(
        tables.summary(code),
        versions=session.versions,
        clause_text=session.suite.clause_text,
        problems=[*problems, *broken, *lost, *deaths_told(session.deaths, session.more_deaths)],
        seconds=None if started is None else time.monotonic() - started,
        folders=[] if temporary else [folder.path],
        partial=options.shard is not None and options.shard.count > 1,
        unfinished=[folder.path] if interrupted and not temporary else [],
        names=session.names,
    )
    print_summary(console, summary, options.sections or "brief")
    for note in [*tables.unclaimed_lines(), *session.suite.notes]:
        console.print(Text(printable(note)), soft_wrap=True)
    return code


def _lost(session: Session) -> list[str]:
    """Return lines about cases that have no result because our side has lost them."""
    tally = session.tables.tally
    missing = {name: plan.at_least(None) - tally.figures(name).cases for name, plan in session.plans.items()}
    return [f"{name}: {counted(count, 'case')} without a result" for name, count in missing.items() if count]


def _run_backends(session: Session, folder: ResultsFolder, console: Console) -> bool:
    """Run every backend; return whether the user interrupted. Results so far are kept."""
    quiet = Console(quiet=True) if session.options.quiet else console
    try:
        with RunProgress(quiet, _total(session), known=session.tables.tally.figures().outcomes) as shown:
            for backend in session.backends:
                for judged in _results(session, backend, folder):
                    if shown.total is None and (total := _total(session)) is not None:
                        shown.expect(total)
                        folder.start(session.description())
                    shown.count(_taken(session, judged, folder))
    except KeyboardInterrupt:
        return True
    return False


def _total(session: Session) -> int | None:
    """Return the number of results of the whole run; None while a plan grows."""
    totals = [plan.total for plan in session.plans.values()]
    return None if None in totals else sum(filter(None, totals))


def _taken(session: Session, judged: Judged, folder: ResultsFolder) -> Outcome:
    """Count and write a result, and return its outcome as it is reported."""
    result = session.tables.take(judged.result, judged.attachments)
    line = result.to_json()
    folder.add(line, companions(judged, line, session.certified))
    return result.outcome


def _results(session: Session, backend: BackendSpec, folder: ResultsFolder) -> Iterator[Judged]:
    """Yield the results that a backend still owes; write its version down before the first one."""
    name = backend.name
    jobs = min(session.options.workers, session.left(name, session.options.workers))
    if jobs <= 0:
        return
    required, isolation = session.terms.demands.required, session.options.isolation
    assignment = Assignment(backend, session.suite.source, required, _attach(session), isolation)
    done = session.done.get(name, ())
    ids = session.plans[name].ids(session.suite)
    owed = (text for text in ids if text not in done) if done else ids
    early: list[Judged] | None = []
    for event in session.executor.run_cases(assignment, batched(owed), jobs=jobs, limits=session.options.limits):
        if early is None and isinstance(event, Judged):
            yield event
        elif isinstance(event, About):
            session.abouts[name] = event
            folder.start(session.description())
            yield from early or ()
            early = None
        elif isinstance(event, Death):
            _note(session, event, folder)
        elif early is not None:
            early.append(event)
    yield from early or ()


def _note(session: Session, death: Death, folder: ResultsFolder) -> None:
    """Write down a death of a worker; beyond the first ones only their number, when the run is over."""
    if len(session.deaths) < _DEATHS:
        session.deaths.append(asdict(death))
        folder.start(session.description())
    else:
        session.more_deaths += 1


def _attach(session: Session) -> dict[str, Attach]:
    keep = session.options.keep_outputs
    kept = KeepOutputs(keep, dict(session.terms.demands.required))
    attach: dict[str, Attach] = {ATTACHMENT: attach_accuracy}
    if keep != "none":
        attach["outputs"] = kept
    if keep not in ("none", "digest"):
        attach.update(session.suite.attach(kept))
    return attach


def _machine() -> dict[str, Any]:
    """Return facts about this machine that may affect results; no host, user or path."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processor": platform.processor() or None,
        "cores": os.cpu_count(),
        "locale": LOCALE,
        "locales": _locales(),
        "libraries": {name: version for name in _LIBRARIES if (version := _version(name))},
    }


def _locales() -> list[str]:
    """Return those of the locales that libraries ask for by name that this machine has."""
    before, available = locale.setlocale(locale.LC_CTYPE), []
    for name in (LOCALE, "en_US.UTF-8"):
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_CTYPE, name)
            available.append(name)
    locale.setlocale(locale.LC_CTYPE, before)
    return available


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
