"""Cases by id: parsed, built, filled and given their expectation, a program's cases together."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ..cases.declared import Declaration
from ..cases.elements import Array, element_type
from ..cases.errors import CaseIdError
from ..cases.expectation import Expectation
from ..cases.ids import CaseId, parse_id
from ..cases.model import Case
from ..specs.loader import Library
from ..specs.model import Clause, Condition, Value, Word
from .expect import Reading, Rules, expectations
from .fills import Blank, fill
from .random import Draw
from .strategy.families import Build
from .strategy.registry import family_of, vocabularies
from .strategy.rows import Row, mended_row, read_row, without_settings

_LANE_ELEMENTS = 1 << 18  # elements evaluated at once: bounds memory, and still amortises NumPy's overhead
_RANDOM = frozenset({"uniform"})


@dataclass(frozen=True)
class _Prepared:
    """All of a case but what its draw changes."""

    row: Row
    build: Build
    clauses: tuple[str, ...]
    mended: str | None


@dataclass(frozen=True)
class GeneratedCases:
    """The cases that the spec files under `root` describe (None: those of the package); picklable."""

    root: Path | None = None
    declaration: Declaration = field(default_factory=Declaration)

    @functools.cached_property
    def library(self) -> Library:
        """The spec files."""
        return Library(self.root, vocabularies())

    def __getstate__(self) -> dict[str, object]:
        return {"root": self.root, "declaration": self.declaration}

    def case(self, text: str) -> Case:
        """Return one case by its id. Raises CaseIdError."""
        return next(self.cases([text]))

    def cases(self, texts: Sequence[str]) -> Iterator[Case]:
        """Yield the cases with these ids, in this order; neighbours that differ in their draw alone cost little."""
        for case, members in itertools.groupby(texts, key=lambda t: without_settings(parse_id(t), "draw")):
            prepared = self._recent(case)
            together = max(1, _LANE_ELEMENTS // max(1, sum(b.size for b in prepared.build.blanks)))
            for lanes in _chunks(list(members), together):
                yield from self._filled(prepared, lanes)

    def readings(self, case: Case) -> tuple[tuple[Reading, ...], tuple[Array, ...]]:
        """Return a case's admissible readings, and the data tensors that their formulas take."""
        prepared = self._recent(without_settings(parse_id(case.id), "draw"))
        blanks = prepared.build.blanks
        return prepared.build.readings, tuple(_tensor(prepared.row, b, i, case.id) for i, b in enumerate(blanks))

    @functools.cached_property
    def _recent(self) -> Callable[[CaseId], _Prepared]:
        return functools.lru_cache(maxsize=256)(self._prepare)

    def row(self, case: CaseId) -> Row:
        """Return what a case id says, typed. Raises CaseIdError."""
        spec, number = self.library.operator_version(case.operator)
        family = family_of(spec)
        version = spec.version(number)
        row = read_row(spec, version, case, family.defaults)
        if family.settle(version, case) != case:
            raise CaseIdError(f"{case}: is written {family.settle(version, case)}")
        return row

    def _prepare(self, case: CaseId) -> _Prepared:
        row = self.row(case)
        family = family_of(row.spec)
        mended = mended_row(row)
        build = family.build(row)
        if mended is not None:
            outputs = family.build(mended).program.outputs
            types = zip(build.program.outputs, outputs, strict=True)
            build = replace(
                build, program=replace(build.program, outputs=tuple(replace(o, rank=m.rank) for o, m in types))
            )
        return _Prepared(row, build, clauses_of(row), None if mended is None else str(mended.id))

    def _filled(self, prepared: _Prepared, texts: Sequence[str]) -> Iterator[Case]:
        row, build = prepared.row, prepared.build
        tensors = [[_tensor(row, blank, i, text) for text in texts] for i, blank in enumerate(build.blanks)]
        expected = self._expected(row, build, tensors, len(texts))
        for lane, text in enumerate(texts):
            inputs = tuple(tensors[f][lane] if isinstance(f, int) else f for f in build.feeds)
            yield Case(text, build.program, inputs, expected[lane], prepared.clauses, prepared.mended)

    def _expected(self, row: Row, build: Build, tensors: list[list[Array]], lanes: int) -> list[Expectation]:
        types = tuple(output.type for output in build.program.outputs)
        if is_invalid(row):
            return [Expectation((), types)] * lanes
        rules = Rules(
            element_type(types[0]),
            {silence.id: silence.options for silence in row.version.silences.values()},
            row.id.fill in _RANDOM,
            self.declaration.types.get(types[0]),
        )
        return expectations(build.readings, [np.stack(lane) for lane in tensors], rules)


def is_invalid(row: Row) -> bool:
    """Return whether a row is an edge whose input is invalid."""
    return row.edge is not None and row.edge.rejected


def _tensor(row: Row, blank: Blank, index: int, text: str) -> Array:
    """Fill one input; keyed by the id, so that every case has data of its own, and by the input's place."""
    return fill(row.id.fill, blank, Draw(f"{text}#{index}"))


def _chunks(texts: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def clauses_of(row: Row) -> tuple[str, ...]:
    """Return the clauses that a case tests: those whose conditions hold, and those that its edge names."""
    edge = row.edge
    named = [i for i in edge.tests if i in row.version.clauses] if edge else []
    held = [] if is_invalid(row) else [c.id for c in row.version.clauses.values() if _holds(c, row)]
    operator = f"{row.spec.standard}/{row.spec.name}"
    return tuple(f"{operator}#{clause}" for clause in dict.fromkeys([*named, *held]))


def _holds(clause: Clause, row: Row) -> bool:
    return clause.when is not None and all(_meets(condition, name, row) for name, condition in clause.when.items())


def _meets(condition: Condition, name: str, row: Row) -> bool:
    content = _content(row, name)
    return any(_matches(content, value) for value in condition.values) != condition.negated


def _content(row: Row, name: str) -> Value:
    """Return what a case has by the name of a parameter."""
    signature = row.version.signature
    if name in signature.types:
        return row.id.types[list(signature.types).index(name)]
    if name == "shapes":
        return tuple("scalar" if not shape else "x".join(map(str, shape)) for shape in row.id.shapes)
    if name == signature.inputs[0].name and signature.inputs[0].is_variadic:
        return len(row.id.shapes)
    return row.id.fill if name == "fill" else row.get(name)


def _matches(content: Value, wanted: Value) -> bool:
    if wanted is Word.NONE:
        return content == ()
    if wanted is Word.NEGATIVE:
        values = content if isinstance(content, tuple) else (content,)
        return any(isinstance(v, int) and v < 0 for v in values)
    if isinstance(wanted, Word) and wanted is not Word.SYMBOLIC:
        return content is wanted
    if wanted is Word.SYMBOLIC:
        return content == wanted.value
    return bool(content == wanted) or (isinstance(wanted, str) and isinstance(content, tuple) and wanted in content)
