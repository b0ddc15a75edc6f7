"""pytest plugin: `pytest --opconform-backend=NAME` collects each case as an item; without it nothing happens."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .cases.results import Result
    from .generators.source import GeneratedCases
    from .runners.registry import BackendSpec
    from .runners.waivers import WaiverRun

_CONFTEST = "conftest:"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; each may also stand in the configuration file, by its name with underscores."""
    group = parser.getgroup("opconform", "conformance of tensor operators")
    group.addoption(
        "--opconform-backend",
        metavar="NAME",
        help="run the conformance suite against this backend: a name of `opconform list backends`, "
        "python:package.module:Class, onnx-backend:package.module, or conftest:Class for a class of a conftest.py",
    )
    group.addoption("--opconform-select", metavar="GLOB", action="append", default=[], help="case ids, or versions")
    group.addoption("--opconform-strength", metavar="T", type=int, default=2, help="strength of the covering array")
    group.addoption("--opconform-seed", metavar="N", type=int, default=0, help="varies all drawn inputs")
    group.addoption("--opconform-jobs", metavar="N", type=int, default=1, help="worker processes (a pytest process)")
    group.addoption("--opconform-timeout", metavar="S", type=float, default=10.0, help="seconds a case")
    group.addoption("--opconform-waivers", metavar="FILE", help="known failures, reported as xfail")
    group.addoption(
        "--opconform-require", metavar="SILENCE=OPTION", action="append", default=[], help="fail any other answer"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register what does the work, if a backend is named."""
    if config.getoption("--opconform-backend"):
        config.pluginmanager.register(_Suite(config), "opconform-suite")


class _Suite:
    """The cases of one pytest process, and the workers that run them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._results: dict[str, Result] = {}
        self._asked: deque[str] = deque()
        self._stream: Generator[Any] | None = None
        self._on_demand = hasattr(config, "workerinput")  # under xdist a process learns one item at a time

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add one item a case."""
        from .cases.errors import OpconformError  # noqa: PLC0415 - only where the option is given
        from .cases.runner import NotInstalled  # noqa: PLC0415
        from .generators.plan import Selection  # noqa: PLC0415
        from .generators.select import selected  # noqa: PLC0415

        option = self._config.getoption
        selection = Selection(
            tuple(option("--opconform-select")), option("--opconform-strength"), 1, option("--opconform-seed")
        )
        try:
            self._prepare()
            ids = list(selected(self._source, selection))
        except (OpconformError, NotInstalled) as error:
            raise pytest.UsageError(f"opconform: {error}") from None
        if not ids:
            raise pytest.UsageError(f"opconform: {', '.join(selection.globs) or 'the suite'} selects no case")
        parent = _Cases.from_parent(session, name="opconform", nodeid="opconform")
        items.extend(_Case.from_parent(parent, name=case, suite=self) for case in ids)

    def _prepare(self) -> None:
        from .generators.source import GeneratedCases  # noqa: PLC0415
        from .runners.demands import Demands  # noqa: PLC0415
        from .runners.requirements import requirements  # noqa: PLC0415
        from .runners.waivers import Waivers, load_waivers  # noqa: PLC0415

        today = datetime.now(tz=UTC).date()
        option = self._config.getoption
        self._source: GeneratedCases = GeneratedCases()
        self._backend: BackendSpec = _backend(self._config, option("--opconform-backend"))
        self._required = requirements(option("--opconform-require"), self._source.library)
        waivers = option("--opconform-waivers")
        demands = Demands(self._required)
        self._demands = demands
        self._waivers: WaiverRun = (load_waivers(waivers) if waivers else Waivers()).for_run(today, demands)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Hand all cases that stayed selected to the workers at once, where they are known."""
        if not self._on_demand:
            self._asked.extend(item.name for item in session.items if isinstance(item, _Case))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """End the workers; a waiver that no longer tells the truth fails the session."""
        if self._stream is not None:
            self._stream.close()
        if self._problems() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show what is wrong with the waivers."""
        for problem in self._problems():
            terminalreporter.write_line(f"opconform: {problem}", red=True)

    def _problems(self) -> list[str]:
        """Return what is wrong with the waivers, as far as this process saw; under xdist each sees a part."""
        return self._waivers.problems(partial=True) if self._stream is not None else []

    def result(self, case: str) -> Result:
        """Return a case's result; runs it now if it has not run."""
        if self._on_demand:
            self._asked.append(case)
        if self._stream is None:
            self._stream = self._run()
        while case not in self._results:
            found = next(self._stream)
            if hasattr(found, "case"):
                self._results[found.case] = self._waivers.apply(found)
        return self._results.pop(case)

    def fails(self, result: Result) -> bool:
        """Return whether a result fails its item."""
        return self._demands.fails(result) or result.outcome == "runner-error"

    def _run(self) -> Generator[Any]:
        from .runners.execute import Assignment  # noqa: PLC0415
        from .runners.pool import Limits  # noqa: PLC0415
        from .runners.running import run_cases  # noqa: PLC0415

        assignment = Assignment(self._backend, self._source, self._required)
        limits = Limits(run_seconds=self._config.getoption("--opconform-timeout"))
        jobs = 1 if self._on_demand else self._config.getoption("--opconform-jobs")
        return run_cases(assignment, self._batches(), jobs=jobs, limits=limits)

    def _batches(self) -> Iterator[list[str]]:
        """Yield what is asked for; an empty batch where there is nothing for now."""
        while self._asked or self._on_demand:
            size = min(len(self._asked), 32)
            yield [self._asked.popleft() for _ in range(size)]


class _Cases(pytest.Collector):
    """The node that the cases belong to."""

    def collect(self) -> list[pytest.Item]:
        """Return nothing: the cases are added after collection."""
        return []


class _Case(pytest.Item):
    """One case."""

    def __init__(self, *, suite: _Suite, **more: Any) -> None:
        super().__init__(**more)
        self._suite = suite

    def runtest(self) -> None:
        """Report the case's outcome in pytest's terms."""
        result = self._suite.result(self.name)
        outcome, detail = result.outcome.value, result.detail or ""
        if outcome == "unsupported":
            pytest.skip(f"unsupported ({result.reason}): {detail}")
        if outcome == "waived":
            pytest.xfail(detail)
        if self._suite.fails(result):
            raise _Failure(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:  # noqa: ARG002
        """Return a failure in its own words, and anything else as pytest does."""
        if isinstance(excinfo.value, _Failure):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[str, None, str]:
        """Return where the item comes from, for JUnit and the terminal."""
        return "opconform", None, self.name


class _Failure(Exception):  # noqa: N818 - pytest shows its text, not its name
    """A case that failed."""

    def __init__(self, result: Result) -> None:
        from .reports.text import reproduce_line  # noqa: PLC0415

        lines = [f"{result.outcome}  {result.case}  on {result.backend}", f"  {result.detail or ''}"]
        lines += [f"  clause {clause}" for clause in result.clauses]
        lines.append(f"  reproduce: {reproduce_line(result)}")
        super().__init__("\n".join(lines))


def _backend(config: pytest.Config, name: str) -> BackendSpec:
    """Return the backend of that name; a class of a conftest.py is found among those that pytest has loaded."""
    from .cases.errors import OpconformError  # noqa: PLC0415
    from .runners.registry import BackendSpec, backend_spec  # noqa: PLC0415

    if not name.startswith(_CONFTEST):
        return backend_spec(name)
    wanted = name.removeprefix(_CONFTEST)
    for plugin in config.pluginmanager.get_plugins():
        file = getattr(plugin, "__file__", None)
        if file and Path(file).name == "conftest.py" and hasattr(plugin, wanted):
            return BackendSpec(name, "python", name, (str(Path(file).parent),))
    raise OpconformError(f"no conftest.py has a class {wanted!r}")
