"""The suite generated from the spec files, and lists of operators, cases and backends."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..cases.batch import Batch
from ..cases.elements import Declaration
from ..cases.errors import CaseIdError
from ..cases.ids import Selection, Shard, of_shard, operator_version_of, parse_id, print_shape, split_version
from ..cases.program import Structure
from ..cases.runner import BackendKind
from ..generators.locked import locked_counts
from ..generators.meanings import CasesOfEveryKind, one_of_each_program
from ..generators.plan import may_select
from ..generators.selection import is_id, selected, selected_counts
from ..generators.source import GeneratedCases
from ..generators.suggestions import selects_nothing, suggestion, with_nearest
from ..reports.certificates import AttachCertificate
from ..reports.progress import tracked
from ..reports.tables import clause_text_of
from ..runners.execution.execute import Attach
from ..runners.judging.kept import KeepOutputs
from ..runners.judging.terms import disputed_clauses, load_declaration, silences
from ..specs.loader import Library, UnknownOperator
from ..specs.reading import SpecError, SpecErrors
from .options import RunOptions, usable_cores
from .planning import GrowingPlan, made_of_each
from .suite import Suite, suite_version

_MOST_KEPT = 200_000


@dataclass(frozen=True)
class GeneratedSuite(Suite):
    """The cases that are generated from the spec files."""

    source: GeneratedCases

    @property
    def digest(self) -> str:
        """The digest of version and spec files."""
        return suite_digest(self.source.library)

    @functools.cached_property
    def _planners(self) -> list[GeneratedCases]:
        """The spec libraries of planning threads, one each: one that grows cannot be pickled with `source`."""
        return []

    @property
    def operator_versions(self) -> Sequence[str]:
        """All of them."""
        specs = self.source.library.specs()
        return [str(version.operator) for spec in specs for version in spec.versions.values()]

    def disputed(self, selection: Selection) -> Mapping[str, str]:
        """Return the disputed clauses."""
        library = self.source.library
        return disputed_clauses(library.specs(name for name in library.operators() if may_select(selection, name)))

    @property
    def broken(self) -> Sequence[str]:
        """Return the mistakes in spec files of selected operators."""
        broken = {k: v for source in (self.source, *self._planners) for k, v in source.library.broken.items()}
        return [f"{name} is left out: {error}" for name, error in broken.items()]

    def silences(self) -> Mapping[str, tuple[str, ...]]:
        """Return the silences of all operators and of the spec files."""
        return silences(self.source.library)

    @functools.cached_property
    def _planned(self) -> dict[Selection, list[str]]:
        """Return the counted ids of any standard, if they are few; planning takes as long as judging."""
        return {}

    def _selected(self, selection: Selection) -> Iterator[str]:
        known = self._planned.get(replace(selection, standards=()))
        if known is None:
            return selected(self.source, selection)
        return (text for text in known if not selection.standards or text.partition("/")[0] in selection.standards)

    def counts(self, selection: Selection) -> Counter[str]:
        """Return the number of selected cases, by standard."""
        if selection.draws == 1 and not selection.standards:
            with tracked(itertools.islice(selected(self.source, selection), _MOST_KEPT + 1), "planning") as shown:
                ids = list(shown)
            if len(ids) <= _MOST_KEPT:
                self._planned[selection] = ids
                return Counter(text.partition("/")[0] for text in ids)
        return selected_counts(self.source, selection)

    def growing(self, selection: Selection) -> GrowingPlan | None:
        """Return the ids while they are planned, unless a wrong id among them would stop a run that has begun."""
        if selection.draws > 1 or selection.suite is not None or any(is_id(glob) for glob in selection.globs):
            return None
        self._planners.append(self.source.unread)
        return GrowingPlan(selected(self._planners[-1], selection))

    def programs(self, selection: Selection, shard: Shard | None, kind: BackendKind) -> Iterator[str]:
        """Yield the ids of a case for each selected program that a kind of backend is judged by."""
        self._planners.append(self.source.unread)  # this may be planned in a thread of its own
        source = self._planners[-1]
        return one_of_each_program(source, of_shard(selected(source, selection), shard), selection.globs, kind)

    def suggestions(self, selection: Selection) -> Sequence[str]:
        """Return suggestions for a selection without a case."""
        return [hint for glob in selection.globs if (hint := suggestion(self.source.library, glob))]

    def clause_text(self, operator_version: str, clause: str) -> str | None:
        """Return a clause's text."""
        return clause_text_of(self.source.library)(operator_version, clause)

    def attach(self, kept: KeepOutputs) -> Mapping[str, Attach]:
        """Return the function that makes certificates."""
        return {"certificate": AttachCertificate(self.source, kept)}


def generated_suite(options: RunOptions) -> GeneratedSuite:
    """Return the suite of the spec files that the options name. Raises OpconformError."""
    declaration = load_declaration(options.arithmetic) if options.arithmetic else None
    suite = GeneratedSuite(CasesOfEveryKind(options.specs, declaration or Declaration()))
    suite.source.library  # noqa: B018 - reads it, so that mistakes show now
    return suite


def suite_digest(library: Library) -> str:
    """Return the sha256 over the suite's version and its spec files."""
    return hashlib.sha256(f"{suite_version()}\n{library.digest}".encode()).hexdigest()


def listed(what: str, specs: Path | None, selection: Selection, *, as_json: bool) -> Iterator[str]:
    """Yield the lines of a list of `operators` or `cases`.

    Raises OpconformError if a glob selects nothing; after the list, if spec files are wrong.
    """
    source = CasesOfEveryKind(specs)
    yield from (_cases if what == "cases" else _operators)(source, selection, as_json)
    source.library.refuse_broken()


def _cases(source: GeneratedCases, selection: Selection, as_json: bool) -> Iterator[str]:
    empty = True
    for text in selected(source, selection):
        empty = False
        yield json.dumps(_parts(text)) if as_json else text
    if empty:
        raise selects_nothing(source.library, selection)


def _parts(text: str) -> dict[str, object]:
    case = parse_id(text)
    shapes = [print_shape(shape) if isinstance(shape, Structure) else shape and list(shape) for shape in case.shapes]
    return {
        "case": text,
        "operator": case.operator,
        "types": list(case.types),
        "shapes": shapes,
        "settings": dict(case.settings),
        "fill": case.fill,
        "edge": case.edge,
    }


def _operators(source: GeneratedCases, selection: Selection, as_json: bool) -> Iterator[str]:
    counts = _counts(source, selection)
    if not counts:
        raise selects_nothing(source.library, selection)
    for name in sorted(counts, key=_by_number):
        if as_json:
            spec, version = source.library.operator_version(name)
            facts = {"operator": name, "cases": counts[name], "clauses": len(spec.versions[version].clauses)}
            yield json.dumps(facts)
        else:
            yield f"{name:<28} {counts[name]:>7} cases"


def _by_number(operator_version: str) -> tuple[str, int]:
    name, version = split_version(operator_version)
    return name, int(version or 0)


def _counts(source: GeneratedCases, selection: Selection) -> Counter[str]:
    """Return the number of cases by operator version: from the lock, or planned, the whole suite on all cores."""
    library = source.library
    usual = replace(selection, globs=(), standards=()) == Selection()
    operators = [operator for operator in library.operators() if may_select(selection, operator)]
    locked = {name: counts for name, counts in locked_counts(library).items() if name in operators} if usual else {}
    versions = [list(counts) for counts in locked.values()]
    with contextlib.suppress(SpecError, SpecErrors) if locked else contextlib.nullcontext():  # reported after the list
        others = library.usable(operator for operator in operators if operator not in locked)
        versions += [[str(version.operator) for version in spec.versions.values()] for spec in others]
    wanted = [name for some in versions for name in some if selection.may_admit(name)]
    known = {name: count for counts in locked.values() for name, count in counts.items()}
    from_lock = {name: known[name] for name in wanted if name in known and selection.admits(name, "")}
    if len(from_lock) == len(wanted):
        return Counter(from_lock)
    if selection.globs or selection.suite:
        with tracked(selected(source, selection), "planning") as ids:
            return Counter(map(operator_version_of, ids))
    left = {names[0]: names for some in versions if (names := [name for name in some if name not in from_lock])}
    planned = made_of_each(source, left, usable_cores(), functools.partial(_planned_counts, selection))
    return sum(planned.values(), Counter(from_lock))


def _planned_counts(selection: Selection, source: GeneratedCases, _name: str, names: Sequence[str]) -> Counter[str]:
    return Counter(map(operator_version_of, selected(source, replace(selection, globs=tuple(names)))))


def case_of(text: str, specs: Path | None = None, arithmetic: Path | None = None) -> tuple[CasesOfEveryKind, Batch]:
    """Return a case and its source. Raises CaseIdError, which suggests the closest case of the suite."""
    declaration = load_declaration(arithmetic) if arithmetic else Declaration()
    source = CasesOfEveryKind(specs, declaration)
    try:
        return source, source.case(text)
    except (CaseIdError, UnknownOperator) as error:
        raise with_nearest(source.library, text, error) from None
