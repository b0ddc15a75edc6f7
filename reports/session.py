"""One run from options to verdict: plan, workers, results folder, progress, summary and exit code."""

from __future__ import annotations

import datetime as dt
import hashlib
import importlib.metadata
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from ..cases.declared import Declaration
from ..cases.errors import OpconformError
from ..cases.results import Result
from ..generators.plan import Selection
from ..generators.select import selected
from ..generators.source import GeneratedCases
from ..runners.accuracy import attach_accuracy
from ..runners.declaration import load_declaration
from ..runners.demands import Demands
from ..runners.execute import Assignment, Attach
from ..runners.executors import Executor, opened_executor
from ..runners.kept import Keep, KeepOutputs
from ..runners.pool import Limits
from ..runners.profile import load_profile
from ..runners.registry import BackendSpec, backend_spec
from ..runners.requirements import requirements
from ..runners.running import About, Judged, batched, standards_of
from ..runners.waivers import WaiverRun, Waivers, load_waivers
from ..specs.errata import Suspensions, disputed_clauses, load_errata
from ..specs.loader import Library
from .arithmetic import ArithmeticTables
from .behaviour import Behaviours
from .certificates import AttachCertificate
from .description import BackendDescription, RunDescription
from .failures import Failures
from .figures import Tally
from .folder import CERTIFICATES, OUTPUTS, ResultsFolder
from .grades import ACCURACY, ATTACHMENT, attached_accuracy
from .junit import check_target, write_junit
from .progress import RunProgress
from .terminal import Summary, print_summary

INTERRUPTED = 130
_PREPARE_FACTOR = 6


@dataclass(frozen=True)
class RunOptions:
    """The options of `opconform run`; see its help."""

    backends: Sequence[str]
    selection: Selection = field(default_factory=Selection)
    specs: Path | None = None
    jobs: int | None = None
    timeout: float = 10.0
    memory: int | None = None
    waivers: Path | None = None
    errata: Path | None = None
    profile: Path | None = None
    arithmetic: Path | None = None
    requires: Sequence[str] = ()
    out: Path | None = None
    junit: Path | None = None
    keep_outputs: Keep = "failures"
    quiet: bool = False
    executor: str = "local"
    resources: Sequence[str] = ()

    @property
    def limits(self) -> Limits:
        """The limits of a case."""
        memory = None if self.memory is None else self.memory << 20
        return Limits(run_seconds=self.timeout, prepare_seconds=_PREPARE_FACTOR * self.timeout, memory_bytes=memory)


@dataclass(frozen=True, slots=True)
class Plan:
    """The cases for one backend: what selects them, and how many they are."""

    selection: Selection
    total: int


@dataclass(frozen=True)
class _Session:
    """What the options name, read and checked: nothing has been run or written yet."""

    options: RunOptions
    executor: Executor
    backends: tuple[BackendSpec, ...]
    source: GeneratedCases
    demands: Demands
    suspensions: Suspensions
    waivers: Waivers
    plans: Mapping[str, Plan]
    started: dt.datetime


@dataclass
class _Tables:
    """What is gathered from the results as they arrive."""

    tally: Tally
    failures: Failures
    waivers: WaiverRun
    behaviours: Behaviours = field(default_factory=Behaviours)
    certified: set[str] = field(default_factory=set)
    abouts: dict[str, About] = field(default_factory=dict)
    arithmetic: ArithmeticTables = field(default_factory=ArithmeticTables)

    def add(self, result: Result, suspended: str | None, attachments: Mapping[str, object]) -> None:
        self.tally.add(result, suspended)
        self.failures.add(result, suspended)
        self.behaviours.add(result)
        self.arithmetic.add(result, attached_accuracy(attachments))


def run_session(options: RunOptions, command: Sequence[str], console: Console | None = None) -> int:
    """Run, report and return the exit code. Raises OpconformError before anything is touched if an option is wrong."""
    with opened_executor(options.executor, options.resources, jobs=options.jobs or _cores()) as executor:
        return _run_opened(_opened(options, executor), command, console or Console())


def _run_opened(session: _Session, command: Sequence[str], console: Console) -> int:
    options = session.options
    if options.junit is not None:
        check_target(options.junit)
    out = options.out or Path("opconform-results") / session.started.strftime("%Y-%m-%dT%H-%M-%S")
    demands = session.demands
    tables = _Tables(
        Tally(demands, [b.name for b in session.backends]),
        Failures(demands),
        session.waivers.for_run(session.started.date(), demands),
        arithmetic=ArithmeticTables(session.source.declaration),
    )
    with ResultsFolder.create(out) as folder:
        folder.start(_description(session, tables, command))
        interrupted = _run_all(session, tables, folder, console)
        problems = tables.waivers.problems(partial=interrupted or bool(options.selection.globs))
        code = max(tables.tally.exit_code(len(problems)), INTERRUPTED if interrupted else 0)
        figures = {"figures": tables.tally.to_dict(), "waiver_problems": problems, **tables.arithmetic.to_dict()}
        folder.finish(
            "interrupted" if interrupted else "finished", code, {**_description(session, tables, command), **figures}
        )
    _write_reports(session, tables, out)
    seconds = (dt.datetime.now(tz=dt.UTC) - session.started).total_seconds()
    print_summary(
        console,
        Summary(
            tables.tally,
            tables.behaviours,
            tables.failures,
            code,
            {name: about.version for name, about in tables.abouts.items()},
            _clause_text(session.source.library),
            options.arithmetic is not None,
            problems,
            seconds,
            str(out),
            arithmetic=tables.arithmetic,
        ),
    )
    return code


def _opened(options: RunOptions, executor: Executor) -> _Session:
    backends = tuple(backend_spec(name) for name in dict.fromkeys(options.backends))
    declaration = load_declaration(options.arithmetic) if options.arithmetic else Declaration()
    source = GeneratedCases(options.specs, declaration)
    library = source.library
    demands = Demands(
        requirements(options.requires, library), load_profile(options.profile) if options.profile else None
    )
    specs = [library.spec(operator) for operator in library.operators()]
    versions = [str(version.operator) for spec in specs for version in spec.versions.values()]
    waivers = load_waivers(options.waivers, versions) if options.waivers else Waivers()
    suspensions = Suspensions(load_errata(options.errata), disputed_clauses(specs))
    plans = _plans(options, executor, backends, source)
    started = dt.datetime.now(tz=dt.UTC)
    return _Session(options, executor, backends, source, demands, suspensions, waivers, plans, started)


def _plans(
    options: RunOptions, executor: Executor, backends: Sequence[BackendSpec], source: GeneratedCases
) -> dict[str, Plan]:
    """Return what each backend is put to: the selected cases of its standards. OpconformError where there is none."""
    implemented = {b.name: standards_of(Assignment(b, source), options.limits, executor.run_cases) for b in backends}
    counts = Counter(text.partition("/")[0] for text in selected(source, options.selection))
    globs = ", ".join(options.selection.globs) or "the suite"
    plans = {}
    for name, standards in implemented.items():
        total = sum(count for standard, count in counts.items() if standard in (standards or counts))
        if not total:
            alone = f"; {name} runs those of {', '.join(standards)} alone" if standards and counts else ""
            raise OpconformError(f"{globs} selects no case{alone}")
        plans[name] = Plan(replace(options.selection, standards=standards), total)
    return plans


def _run_all(session: _Session, tables: _Tables, folder: ResultsFolder, console: Console) -> bool:
    """Run every backend; returns whether the user interrupted, which keeps what was judged."""
    quiet = Console(quiet=True) if session.options.quiet else console
    try:
        with RunProgress(quiet, sum(plan.total for plan in session.plans.values())) as progress:
            for backend in session.backends:
                for judged in _results(session, backend, tables):
                    suspended = session.suspensions.reason(judged.result.case, judged.result.clauses)
                    result = tables.waivers.apply(judged.result, suspended=suspended is not None)
                    _keep(judged, tables, folder)
                    folder.add(result)
                    tables.add(result, suspended, judged.attachments)
                    progress.add(result)
    except KeyboardInterrupt:
        return True
    return False


def _keep(judged: Judged, tables: _Tables, folder: ResultsFolder) -> None:
    """Write what travelled beside a result; the certificate of a case once, whatever the number of backends."""
    result, attached = judged.result, judged.attachments
    if "outputs" in attached:
        told = {"case": result.case, "backend": result.backend, "case_digest": result.case_digest}
        outputs = attached["outputs"]
        folder.add_beside(OUTPUTS, {**told, **(outputs if "failed" in outputs else {"outputs": outputs})})
    if ATTACHMENT in attached:
        folder.add_beside(ACCURACY, {"case": result.case, "backend": result.backend, **attached[ATTACHMENT]})
    if "certificate" in attached and result.case not in tables.certified:
        tables.certified.add(result.case)
        folder.add_beside(CERTIFICATES, {"case": result.case, **attached["certificate"]})


def _results(session: _Session, backend: BackendSpec, tables: _Tables) -> Iterator[Judged]:
    assignment = Assignment(backend, session.source, session.demands.required, _attach(session))
    plan = session.plans[backend.name]
    ids = selected(session.source, plan.selection)
    jobs = session.options.jobs or _cores()
    run_cases, limits = session.executor.run_cases, session.options.limits
    for found in run_cases(assignment, batched(ids), jobs=min(jobs, plan.total), limits=limits):
        if isinstance(found, About):
            tables.abouts[backend.name] = found
        else:
            yield found


def _attach(session: _Session) -> dict[str, Attach]:
    keep = session.options.keep_outputs
    kept = KeepOutputs(keep, dict(session.demands.required))
    attach: dict[str, Attach] = {ATTACHMENT: attach_accuracy}
    if keep != "none":
        attach["outputs"] = kept
    if keep not in ("none", "digest"):
        attach["certificate"] = AttachCertificate(session.source, kept)
    return attach


def _cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux alone tells
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _description(session: _Session, tables: _Tables, command: Sequence[str]) -> Mapping[str, object]:
    options, selection = session.options, session.options.selection
    told = [(b.name, tables.abouts.get(b.name, About("unknown", ()))) for b in session.backends]
    return RunDescription(
        command,
        importlib.metadata.version("opconform"),
        suite_digest(session.source.library),
        [BackendDescription(name, about.version, about.facts) for name, about in told],
        session.started,
        selection.globs,
        selection.strength,
        selection.draws,
        selection.seed,
        session.demands.required,
        session.demands.profile,
        session.source.declaration if options.arithmetic else None,
        session.waivers.digest,
        session.suspensions,
        options.keep_outputs,
        session.executor.description(),
    ).to_dict()


def suite_digest(library: Library) -> str:
    """Return the sha256 over the suite's version and the digests of all its spec files."""
    whole = hashlib.sha256(importlib.metadata.version("opconform").encode())
    for operator in library.operators():
        whole.update(f"{operator} {library.spec(operator).digest}\n".encode())
    return whole.hexdigest()


def _write_reports(session: _Session, tables: _Tables, out: Path) -> None:
    versions = {name: about.version for name, about in tables.abouts.items()}
    for target in (out / "junit.xml", session.options.junit):
        if target is not None:
            write_junit(out, target, demands=session.demands, suspensions=session.suspensions, versions=versions)


def _clause_text(library: Library) -> Callable[[str, str], str | None]:
    def text(operator_version: str, clause: str) -> str | None:
        spec, version = library.operator_version(operator_version)
        found = spec.version(version).clauses.get(clause.partition("#")[2])
        return found.text if found else None

    return text
