"""pytest plugin: `pytest --opconform-backend=NAME` collects each case as an item; without it nothing happens."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .api import Checked, OperatorCase
    from .cases.results import Result
    from .generators.plan import Selection
    from .generators.source import GeneratedCases
    from .runners.judging.terms import Demands, WaiverRun, Waivers
    from .runners.registry import BackendSpec

_CONFTEST = "conftest:"
_BATCH = 32
_IN_FIXTURES = ("_fixture_function", "__pytest_wrapped__.obj")
"""The attribute in which pytest, from 8.4 on and before, keeps a fixture's function."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("opconform", "conformance of tensor operators")
    group.addoption(
        "--opconform-backend",
        metavar="NAME",
        help="run the conformance suite against this backend: a name of `opconform list backends`, "
        "python:package.module:Class, onnx-backend:package.module, or conftest:Name for a class, function or fixture "
        "without arguments of a conftest.py",
    )
    group.addoption("--opconform-select", metavar="GLOB", action="append", default=[], help="case ids, or versions")
    group.addoption("--opconform-strength", metavar="T", default="2", help="strength of the covering array, or full")
    group.addoption("--opconform-seed", metavar="N", type=int, default=0, help="varies all drawn inputs")
    group.addoption("--opconform-jobs", metavar="N", type=int, default=1, help="worker processes (a pytest process)")
    group.addoption("--opconform-timeout", metavar="S", type=float, default=10.0, help="seconds per case")
    group.addoption("--opconform-waivers", metavar="FILE", help="known failures, reported as xfail")
    group.addoption(
        "--opconform-require", metavar="SILENCE=OPTION", action="append", default=[], help="fail any other answer"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the suite if a backend is named. Raises UsageError for wrong options."""
    if config.getoption("--opconform-backend"):
        suite = _PytestSuite(config)
        with _usage():
            suite.check()
        config.pluginmanager.register(suite, "opconform-suite")


@pytest.fixture
def opconform_check() -> Callable[[OperatorCase, Callable[[Any, Any], Any]], Checked | None]:
    """Check a function on one of the suite's cases: `opconform_check(case, function)`.

    The function gets the inputs and the attributes, both by name, and returns a tensor, or a list of the outputs. Of an
    invalid case it must raise an exception. Returns the verdict, None for an invalid case that is refused.
    """

    def checked(case: OperatorCase, function: Callable[[Any, Any], Any]) -> Checked | None:
        if case.valid:
            return case.check(function(dict(case.inputs), dict(case.attributes)))
        try:
            got = function(dict(case.inputs), dict(case.attributes))
        except Exception:  # any refusal is one
            return None
        return case.check(got)

    return checked


@contextmanager
def _usage() -> Iterator[None]:
    """Turn a user error into pytest's UsageError, which has no traceback."""
    from .cases.errors import OpconformError  # noqa: PLC0415 - only where the option is given
    from .cases.runner import NotInstalled  # noqa: PLC0415

    try:
        yield
    except (OpconformError, NotInstalled) as error:
        raise pytest.UsageError(f"opconform: {error}") from None


class _PytestSuite:
    """The cases of one pytest process, and the workers that run them.

    With xdist, each of its workers has one, which runs cases, and the controller has one, which receives reports.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._results: dict[str, Result] = {}
        self._asked: deque[str] = deque()
        self._stream: Generator[Any] | None = None
        self._broken: Exception | None = None
        self._on_demand = hasattr(config, "workerinput")  # with xdist a process gets one item at a time
        self._heard = 0

    # What the options name

    def check(self) -> None:
        """Read what the options name. Raises OpconformError, NotInstalled."""
        seconds, jobs = self._option("timeout"), self._option("jobs")
        if not (0 < seconds < float("inf")) or jobs < 1 or self._option("seed") < 0:
            raise pytest.UsageError("opconform: expected a positive timeout, at least one job and no negative seed")
        _ = self._selection, self.demands, self._waivers
        if not self._option("backend").startswith(_CONFTEST):  # a conftest.py may be loaded during collection
            _ = self.backend
        if next(self._selected(()), None) is None:
            from .generators.suggestions import selects_nothing  # noqa: PLC0415

            raise selects_nothing(self.source.library, self._selection)

    @cached_property
    def source(self) -> GeneratedCases:
        """Return the cases of the package's spec files."""
        from .generators.meanings import CasesOfEveryKind  # noqa: PLC0415

        return CasesOfEveryKind()

    @cached_property
    def backend(self) -> BackendSpec:
        """Return the backend that the option names."""
        return _backend(self._config, self._option("backend"))

    @cached_property
    def _selection(self) -> Selection:
        from .cases.short import long_id  # noqa: PLC0415
        from .generators.plan import Selection, strength_of  # noqa: PLC0415

        globs = tuple(map(long_id, self._option("select")))
        return Selection(globs, strength_of(self._option("strength")), 1, self._option("seed"))

    @cached_property
    def demands(self) -> Demands:
        """Return what fails a result."""
        from .runners.judging.terms import Demands, requirements  # noqa: PLC0415

        return Demands(requirements(self._option("require"), self.source.library))

    @cached_property
    def _waivers(self) -> Waivers:
        from .runners.judging.terms import Waivers, load_waivers  # noqa: PLC0415

        file = self._option("waivers")
        return load_waivers(file) if file else Waivers()

    @cached_property
    def verdicts(self) -> WaiverRun:
        """Return the waivers as they apply to the cases that this process runs."""
        return self._waivers.for_run(datetime.now(tz=UTC).date(), self.demands)

    @cached_property
    def _record(self) -> WaiverRun:
        """Return the waivers as they apply to all results, including other processes'."""
        return self._waivers.for_run(datetime.now(tz=UTC).date(), self.demands)

    def _option(self, name: str) -> Any:
        return self._config.getoption(f"--opconform-{name}")

    # Collection

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add one item per case."""
        with _usage():
            _ = self.backend
            ids = list(self._selected(self._standards))
        parent = _Cases.from_parent(session, name="opconform", nodeid="opconform")
        items.extend(_Case.from_parent(parent, name=case, suite=self) for case in ids)

    def _selected(self, standards: tuple[str, ...]) -> Iterator[str]:
        from .generators.selection import selected  # noqa: PLC0415

        return selected(self.source, replace(self._selection, standards=standards))

    @cached_property
    def _standards(self) -> tuple[str, ...]:
        """Return the standards that the backend implements; empty, which means all, if it cannot be asked."""
        from .cases.errors import OpconformError  # noqa: PLC0415
        from .runners.execution.execute import Assignment  # noqa: PLC0415
        from .runners.execution.running import standards_of  # noqa: PLC0415
        from .runners.pool import Limits  # noqa: PLC0415

        try:
            return standards_of(Assignment(self.backend, self.source), Limits())
        except OpconformError:  # the first item will report it
            return ()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Give all selected cases to the workers at once, if they are known."""
        if not self._on_demand:
            self._asked.extend(item.name for item in session.items if isinstance(item, _Case))

    # Running

    def result(self, case: str) -> Result:
        """Return a case's result; run it now if it has not run.

        Raises OpconformError if the backend cannot be opened; the cases after that one are skipped.
        """
        from .cases.errors import OpconformError  # noqa: PLC0415

        if self._broken is not None:
            pytest.skip(f"the backend cannot be opened: {self._broken}")
        if self._on_demand:
            self._asked.append(case)
        self._stream = self._stream or self._run()
        try:
            while case not in self._results:
                event = next(self._stream)
                if hasattr(event, "result"):
                    self._results[event.result.case] = event.result
        except OpconformError as error:
            self._broken = error
            raise
        return self._results.pop(case)

    def _run(self) -> Generator[Any]:
        from .runners.execution.execute import Assignment  # noqa: PLC0415
        from .runners.execution.running import run_cases  # noqa: PLC0415
        from .runners.pool import Limits  # noqa: PLC0415

        assignment = Assignment(self.backend, self.source, self.demands.required)
        limits = Limits.of_runs(self._option("timeout"))
        jobs = 1 if self._on_demand else self._option("jobs")
        return run_cases(assignment, self._batches(), jobs=jobs, limits=limits)

    def _batches(self) -> Iterator[list[str]]:
        """Yield the requested cases; an empty batch if there is nothing for now."""
        while self._asked or self._on_demand:
            yield [self._asked.popleft() for _ in range(min(len(self._asked), _BATCH))]

    # Reports

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Send a case's result with its report, for the process that receives all reports."""
        report = yield
        if isinstance(item, _Case) and call.when == "call" and item.result is not None:
            vars(report)["opconform"] = item.result.to_json()  # xdist transfers a report's attributes
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Check a result, of this process or of one of xdist's, against the waivers."""
        stored = getattr(report, "opconform", None)
        if stored is not None and not self._on_demand:
            from .cases.results import result_from_json  # noqa: PLC0415

            self._heard += 1
            self._record.apply(result_from_json(stored))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """End the workers; a waiver that is no longer true fails the session."""
        if self._stream is not None:
            self._stream.close()
        if self._problems and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show what is wrong with the waivers."""
        for problem in self._problems:
            terminalreporter.write_line(f"opconform: {problem}", red=True)

    @cached_property
    def _problems(self) -> list[str]:
        """Return the waivers' problems, once the session is over."""
        if not self._heard or not self._waivers.entries:
            return []
        partial = bool(self._selection.globs) or self._heard < sum(1 for _ in self._selected(self._standards))
        return self._record.problems(partial=partial)


class _Cases(pytest.Collector):
    """The node that the cases belong to."""

    def collect(self) -> list[pytest.Item]:
        """Return nothing: the cases are added after collection."""
        return []


class _Case(pytest.Item):
    """One case."""

    def __init__(self, *, suite: _PytestSuite, **more: Any) -> None:
        super().__init__(**more)
        self._suite = suite
        self.result: Result | None = None

    def runtest(self) -> None:
        """Report the case's outcome in pytest's terms."""
        from .reports.text import printable  # noqa: PLC0415

        self.result = self._suite.result(self.name)
        result = self._suite.verdicts.apply(self.result)
        detail = printable(result.detail or "")
        if result.outcome == "waived":
            pytest.xfail(detail)
        if self._suite.demands.fails(result) or result.outcome == "runner-error":
            raise _Failure(result)
        if result.outcome == "unsupported":
            pytest.skip(f"unsupported ({result.reason}): {detail}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:  # noqa: ARG002
        """Return a failure or a user error in its own words, and anything else as pytest does."""
        from .cases.errors import OpconformError  # noqa: PLC0415

        if isinstance(excinfo.value, _Failure | OpconformError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[str, None, str]:
        """Return the item's location, for JUnit and the terminal."""
        return "opconform", None, self.name


class _Failure(Exception):  # noqa: N818 - pytest shows its text, not its name
    """A case that failed."""

    def __init__(self, result: Result) -> None:
        from .reports.text import printable, reproduce_line  # noqa: PLC0415

        lines = [f"{result.outcome}  {result.case}  on {result.backend}", f"  {printable(result.detail or '')}"]
        lines += [f"  clause {clause}" for clause in result.clauses]
        lines.append(f"  reproduce: {reproduce_line(result)}")
        super().__init__("\n".join(lines))


def _backend(config: pytest.Config, name: str) -> BackendSpec:
    """Return the backend of that name; one in a conftest.py is found among those that pytest has loaded."""
    from .cases.errors import OpconformError  # noqa: PLC0415
    from .runners.registry import BackendSpec, backend_spec  # noqa: PLC0415

    if not name.startswith(_CONFTEST):
        return backend_spec(name)
    wanted = name.removeprefix(_CONFTEST)
    for plugin in config.pluginmanager.get_plugins():
        file = getattr(plugin, "__file__", None)
        if file and Path(file).name == "conftest.py" and hasattr(plugin, wanted):
            target = name + _inside(getattr(plugin, wanted))
            return BackendSpec(name, "python", target, (str(Path(file).parent),))
    raise OpconformError(f"no conftest.py that pytest has loaded has a class, function or fixture called {wanted!r}")


def _inside(fixture: object) -> str:
    """Return the path from a fixture to its function; empty if it is not a fixture."""
    for path in _IN_FIXTURES:
        try:
            attrgetter(path)(fixture)
        except AttributeError:
            continue
        return f".{path}"
    return ""
