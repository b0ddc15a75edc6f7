"""What comes before a run: all that its options name is read and checked, and nothing is run or written yet."""

from __future__ import annotations

import datetime as dt
import hashlib
import importlib.metadata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..cases.declared import Declaration
from ..cases.errors import OpconformError
from ..cases.selection import Selection
from ..generators.select import selected
from ..generators.shards import Shard, of_shard, shared_out
from ..generators.source import GeneratedCases
from ..runners.declaration import load_declaration
from ..runners.demands import Demands
from ..runners.execute import Assignment
from ..runners.executors import Executor
from ..runners.profile import load_profile
from ..runners.registry import BackendSpec, backend_spec
from ..runners.requirements import requirements
from ..runners.running import About, about
from ..runners.waivers import Waivers, load_waivers
from ..specs.errata import Suspensions, disputed_clauses, load_errata
from ..specs.loader import Library
from .options import RunOptions
from .tables import Terms


@dataclass(frozen=True, slots=True)
class Plan:
    """The cases for one backend: what selects them, and how many they are."""

    selection: Selection
    shard: Shard | None
    total: int

    def ids(self, source: GeneratedCases) -> Iterator[str]:
        """Yield the ids of the cases."""
        return of_shard(selected(source, self.selection), self.shard)


@dataclass(frozen=True)
class Session:
    """A run that is ready to begin, or to go on. `abouts` has the backends that were opened for it already."""

    options: RunOptions
    executor: Executor
    backends: tuple[BackendSpec, ...]
    source: GeneratedCases
    terms: Terms
    plans: Mapping[str, Plan]
    abouts: Mapping[str, About]
    started: dt.datetime


def opened(options: RunOptions, executor: Executor) -> Session:
    """Read and check what the options name. Raises OpconformError."""
    backends = tuple(backend_spec(name) for name in dict.fromkeys(options.backends))
    declaration = load_declaration(options.arithmetic) if options.arithmetic else None
    source = GeneratedCases(options.specs, declaration or Declaration())
    library = source.library
    demands = Demands(
        requirements(options.requires, library), load_profile(options.profile) if options.profile else None
    )
    specs = [library.spec(operator) for operator in library.operators()]
    versions = [str(version.operator) for spec in specs for version in spec.versions.values()]
    waivers = load_waivers(options.waivers, versions) if options.waivers else Waivers()
    terms = Terms(demands, Suspensions(load_errata(options.errata), disputed_clauses(specs)), waivers, declaration)
    abouts = {
        b.name: about(Assignment(b, source), options.limits, executor.run_cases) for b in backends if not b.standards
    }
    plans = _plans(options, {b.name: b.standards or abouts[b.name].standards for b in backends}, source)
    return Session(options, executor, backends, source, terms, plans, abouts, dt.datetime.now(tz=dt.UTC))


def _plans(options: RunOptions, implemented: Mapping[str, Sequence[str]], source: GeneratedCases) -> dict[str, Plan]:
    """Return what each backend is put to: the selected cases of its standards. OpconformError where there is none."""
    counts = Counter(text.partition("/")[0] for text in selected(source, options.selection))
    globs = ", ".join(options.selection.globs) or "the suite"
    plans: dict[str, Plan] = {}
    totals: dict[Selection, int] = {}
    for name, standards in implemented.items():
        total = sum(count for standard, count in counts.items() if standard in (standards or counts))
        if not total:
            alone = f"; {name} runs those of {', '.join(standards)} alone" if standards and counts else ""
            raise OpconformError(f"{globs} selects no case{alone}")
        selection = replace(options.selection, standards=tuple(standards))
        if options.shard is not None and selection not in totals:
            totals[selection] = _share(source, selection, options.shard)
        plans[name] = Plan(selection, options.shard, totals.get(selection, total))
    return plans


def _share(source: GeneratedCases, selection: Selection, shard: Shard) -> int:
    """Return how many cases a shard has. Raises OpconformError where some shard has none."""
    parts: Counter[int] = Counter()
    cases = 0
    for index, part in shared_out(selected(source, selection), shard.count):
        parts[index] += 1
        cases += len(part) if index == shard.index else 0
    if len(parts) < shard.count:
        raise OpconformError(
            f"--shard {shard}: the cases come in {parts.total()} parts, one a program: choose at most so many shards"
        )
    return cases


def suite_digest(library: Library) -> str:
    """Return the sha256 over the suite's version and the digests of all its spec files."""
    whole = hashlib.sha256(importlib.metadata.version("opconform").encode())
    for operator in library.operators():
        whole.update(f"{operator} {library.spec(operator).digest}\n".encode())
    return whole.hexdigest()
