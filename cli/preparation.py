"""What comes before a run: all that its options name is read and checked, and nothing is run or written yet."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..cases.errors import OpconformError
from ..cases.selection import Selection, Shard
from ..cases.source import CaseSource
from ..reports.runs import Terms
from ..runners.declaration import load_declaration
from ..runners.demands import Demands
from ..runners.execute import Assignment
from ..runners.executors import Executor
from ..runners.profile import load_profile
from ..runners.registry import BackendSpec, backend_spec
from ..runners.requirements import required
from ..runners.running import About, about
from ..runners.waivers import Waivers, load_waivers
from ..specs.errata import Suspensions, load_errata
from .options import RunOptions
from .suite import Suite, counts_of, open_suite


@dataclass(frozen=True, slots=True)
class Plan:
    """The cases for one backend: what selects them, and how many they are."""

    selection: Selection
    shard: Shard | None
    total: int

    def ids(self, suite: Suite) -> Iterator[str]:
        """Yield the ids of the cases."""
        return suite.selected(self.selection, self.shard)


@dataclass(frozen=True)
class Session:
    """A run that is ready to begin, or to go on. `abouts` has the backends that were opened for it already."""

    options: RunOptions
    executor: Executor
    backends: tuple[BackendSpec, ...]
    suite: Suite
    terms: Terms
    plans: Mapping[str, Plan]
    abouts: Mapping[str, About]
    started: dt.datetime

    @property
    def source(self) -> CaseSource:
        """Where the workers take the cases from."""
        return self.suite.source


def opened(options: RunOptions, executor: Executor) -> Session:
    """Read and check what the options name. Raises OpconformError."""
    backends = tuple(backend_spec(name) for name in dict.fromkeys(options.backends))
    suite = open_suite(options)
    declaration = load_declaration(options.arithmetic) if options.arithmetic else None
    demands = Demands(
        required(options.requires, suite.silences() if options.requires else {}),
        load_profile(options.profile) if options.profile else None,
    )
    waivers = load_waivers(options.waivers, suite.operator_versions) if options.waivers else Waivers()
    terms = Terms(demands, Suspensions(load_errata(options.errata), suite.disputed), waivers, declaration)
    abouts = {
        b.name: about(Assignment(b, suite.source), options.limits, executor.run_cases)
        for b in backends
        if not b.standards
    }
    plans = _plans(options, {b.name: b.standards or abouts[b.name].standards for b in backends}, suite)
    return Session(options, executor, backends, suite, terms, plans, abouts, dt.datetime.now(tz=dt.UTC))


def _plans(options: RunOptions, implemented: Mapping[str, Sequence[str]], suite: Suite) -> dict[str, Plan]:
    """Return what each backend is put to: the selected cases of its standards. OpconformError where there is none."""
    counts = counts_of(suite, options.selection)
    globs = ", ".join(options.selection.globs) or ("the suite" if options.corpus is None else str(options.corpus))
    plans: dict[str, Plan] = {}
    totals: dict[Selection, int] = {}
    for name, standards in implemented.items():
        total = sum(count for standard, count in counts.items() if standard in (standards or counts))
        if not total:
            alone = f"; {name} runs those of {', '.join(standards)} alone" if standards and counts else ""
            raise OpconformError(f"{globs} selects no case{alone}")
        selection = replace(options.selection, standards=tuple(standards))
        if options.shard is not None and selection not in totals:
            totals[selection] = suite.share(selection, options.shard)
        plans[name] = Plan(selection, options.shard, totals.get(selection, total))
    return plans
