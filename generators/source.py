"""Cases by id: parsed, built, filled and given their expectation, a program's cases together."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ..cases.batch import Batch
from ..cases.declared import Declaration
from ..cases.elements import Array, element_type
from ..cases.errors import CaseIdError, OpconformError
from ..cases.expectation import Expectation
from ..cases.ids import CaseId, parse_id
from ..cases.model import count
from ..specs.loader import Library
from ..specs.model import Clause, Condition, Edge, Value, Word
from .expect import Reading, Rules, expectation
from .fills import UNDRAWN, Blank, fill
from .plan import edge_cases
from .strategy.families import Build
from .strategy.reading import LARGEST, mended_row, read_row
from .strategy.registry import family_of, settle, vocabularies
from .strategy.rows import Row, without_settings

_LANE_ELEMENTS = 1 << 18  # elements evaluated at once: bounds memory, and still amortises NumPy's overhead
_DRAW = re.compile(r"draw=[1-9][0-9]{0,17}")
_NUMBER = re.compile(r"[1-9][0-9]{0,17}(?=[;/])")
_DIGITS = re.compile(r"[1-9][0-9]{0,17}")
_RANDOM = frozenset({"uniform"})


@dataclass(frozen=True)
class _Prepared:
    """All of a case but what its draw changes."""

    row: Row
    build: Build
    clauses: tuple[str, ...]
    mended: str | None


@dataclass(frozen=True)
class Reasoning:
    """What a case's expectation is made of.

    `tensors` are what the readings' formulas take, and `places` where each stands among the case's inputs.
    """

    readings: tuple[Reading, ...]
    tensors: tuple[Array, ...]
    places: tuple[int, ...]
    rules: Rules


@dataclass(frozen=True)
class GeneratedCases:
    """The cases that the spec files under `root` describe (None: those of the package); picklable."""

    root: Path | None = None
    declaration: Declaration = field(default_factory=Declaration)

    @functools.cached_property
    def library(self) -> Library:
        """The spec files. Raises OpconformError where there is none."""
        found = Library(self.root, vocabularies())
        if not found.operators():
            raise OpconformError(f"{found.root}: no spec file there; expected <standard>/<Operator>.yaml")
        return found

    def __getstate__(self) -> dict[str, object]:
        # with the specs that are read already: reading them again costs a worker a quarter of a second
        kept = {"root": self.root, "declaration": self.declaration}
        return {**kept, "library": self.library}

    def case(self, text: str) -> Batch:
        """Return one case by its id. Raises CaseIdError."""
        return next(self.batches([text])).case(0)

    def batches(self, texts: Sequence[str]) -> Iterator[Batch]:
        """Yield the cases with these ids, in this order, those that differ in their draw alone side by side."""
        for text, alike in itertools.groupby(texts, key=_Undrawn()):
            members = list(alike)
            prepared = self._recent(text)
            together = max(1, _LANE_ELEMENTS // max(1, sum(count(t.shape) for t in prepared.build.tensors)))
            for lanes in _chunks(_drawn(prepared, text, members), together):
                yield self._batch(prepared, lanes)

    def readings(self, case: Batch) -> tuple[tuple[Reading, ...], tuple[Array, ...]]:
        """Return a case's admissible readings, and the data tensors that their formulas take."""
        prepared = self._recent(_without_draw(case.id))
        tensors = filled_tensors(prepared.row.id.fill, prepared.build, [case.id])
        return prepared.build.readings, tuple(t[0, ...] for t in tensors)

    def reasoning(self, case: Batch) -> Reasoning:
        """Return what a case's expectation is made of."""
        build = self._recent(_without_draw(case.id)).build
        row = self._recent(_without_draw(case.id)).row
        feeds = [feed if isinstance(feed, int) else None for feed in build.feeds]
        places = tuple(feeds.index(index) for index in range(len(build.tensors)))
        readings, tensors = self.readings(case)
        return Reasoning(readings if case.expectation.options else (), tensors, places, self._rules(row, build))

    @functools.cached_property
    def _recent(self) -> Callable[[str], _Prepared]:
        return functools.lru_cache(maxsize=256)(self._prepare)

    def row(self, case: CaseId) -> Row:
        """Return what a case id says, typed. Raises CaseIdError."""
        spec, key = self.library.operator_version(case.operator)
        version = spec.version(key)
        row = read_row(spec, version, case, family_of(spec).own)
        if (settled := settle(spec, version, case)) != case:
            raise CaseIdError(f"{case}: is written {settled}")
        if row.edge is not None:
            place = str(row.version.operator), row.edge.id
            if place not in self._edges:
                self._edges[place] = tuple(edge_cases(row.spec, row.version, row.edge))
            _check_edge(row, row.edge, self._edges[place])
        return row

    @functools.cached_property
    def _edges(self) -> dict[tuple[str, str], tuple[CaseId, ...]]:
        """The cases of the edges that were asked for: by operator version and edge."""
        return {}

    def _prepare(self, text: str) -> _Prepared:
        row = self.row(parse_id(text))
        family = family_of(row.spec)
        mended = mended_row(row)
        build = family.build(row)
        if any(count(reading.shape) > LARGEST for reading in build.readings):
            raise CaseIdError(f"{text}: the result has more than {LARGEST:,} elements")
        if mended is not None:
            outputs = family.build(mended).program.outputs
            types = zip(build.program.outputs, outputs, strict=True)
            build = replace(
                build, program=replace(build.program, outputs=tuple(replace(o, rank=m.rank) for o, m in types))
            )
        return _Prepared(row, build, clauses_of(row), None if mended is None else str(mended.id))

    def _batch(self, prepared: _Prepared, texts: Sequence[str]) -> Batch:
        build, lanes = prepared.build, len(texts)
        tensors = filled_tensors(prepared.row.id.fill, build, texts)
        expected = self._expected(prepared.row, build, tensors, texts)
        inputs = (tensors[f] if isinstance(f, int) else np.broadcast_to(f, (lanes, *f.shape)) for f in build.feeds)
        return Batch(texts, build.program, tuple(inputs), expected, prepared.clauses, prepared.mended)

    def _expected(self, row: Row, build: Build, tensors: Sequence[Array], texts: Sequence[str]) -> Expectation:
        if is_invalid(row):
            return Expectation((), tuple(output.type for output in build.program.outputs), len(texts))
        found = expectation(build.readings, tensors, self._rules(row, build))
        return found if found.lanes == len(texts) else Expectation(found.options, found.types, len(texts))

    def _rules(self, row: Row, build: Build) -> Rules:
        element = build.program.outputs[0].type
        silences = {silence.id: silence.options for silence in row.version.silences.values()}
        return Rules(element_type(element), silences, row.id.fill in _RANDOM, self.declaration.types.get(element))


def _check_edge(row: Row, edge: Edge, wanted: Sequence[CaseId]) -> None:
    """Raise CaseIdError for an id that names an edge and has another content, since the edge says what is expected."""
    if without_settings(row.id, "draw", "seed") not in wanted:
        near = next((case for case in wanted if case.types == row.id.types), wanted[0])
        raise CaseIdError(f"{row.id}: edge {edge.id!r} has another content: {near}")


class _Undrawn:
    """Returns case ids without their draws; one that differs in its draw alone from that before costs little."""

    def __init__(self) -> None:
        self._around: tuple[str, str] | None = None
        self._found = ""

    def __call__(self, text: str) -> str:
        around = self._around
        if around is not None and text.startswith(around[0]) and text.endswith(around[1]):
            before, after = around
            if _DIGITS.fullmatch(text, len(before), len(text) - len(after)):
                return self._found
        before, draw, after = text.partition("draw=")
        self._found = _without_draw(text)
        self._around = (before + draw, after.lstrip("0123456789")) if draw and self._found != text else None
        return self._found


def _without_draw(text: str) -> str:
    """Return a case id without its draw, the part that neighbours share; as text, since parsing costs more."""
    before, _, after = text.partition("draw=")
    number = _NUMBER.match(after)
    found = _around_draw(before, after[number.end() :]) if number else text
    return _settings_without_draw(text) if "draw=" in found else found


@functools.lru_cache(maxsize=1024)
def _around_draw(before: str, after: str) -> str:
    return _settings_without_draw(f"{before}draw=1{after}")


def _settings_without_draw(text: str) -> str:
    parts = text.split("/")
    if len(parts) < 5 or "draw=" not in parts[4]:
        return text
    settings = parts[4].split(";")
    names = [setting.partition("=")[0] for setting in settings]
    if names != sorted(set(names)):  # for the parser to complain about
        return text
    parts[4] = ";".join(s for s in settings if not _DRAW.fullmatch(s)) or "-"
    return "/".join(parts)


def _drawn(prepared: _Prepared, text: str, members: list[str]) -> list[str]:
    """Return the ids of one case's draws; CaseIdError where its recipe draws nothing."""
    if prepared.row.id.fill in UNDRAWN and (draw := next((m for m in members if m != text), None)):
        raise CaseIdError(f"{draw}: fill {prepared.row.id.fill!r} draws nothing: leave draw out")
    return members


def is_invalid(row: Row) -> bool:
    """Return whether a row is an edge whose input is invalid."""
    return row.edge is not None and row.edge.rejected


def filled_tensors(name: str, build: Build, texts: Sequence[str]) -> list[Array]:
    """Return the data tensors, lanes first: all of one type are one run of elements, so that a NaN stands in one."""
    filled: dict[str, Array] = {}
    for element in {t.type: None for t in build.tensors}:
        size = sum(count(t.shape) for t in build.tensors if t.type == element)
        filled[element] = fill(name, Blank(element_type(element), size, build.terms), texts)
    tensors, used = [], dict.fromkeys(filled, 0)
    for tensor in build.tensors:
        start, size = used[tensor.type], count(tensor.shape)
        used[tensor.type] += size
        tensors.append(filled[tensor.type][:, start : start + size].reshape(len(texts), *tensor.shape))
    return tensors


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
        return bool(content == wanted.value)
    return bool(content == wanted) or (isinstance(wanted, str) and isinstance(content, tuple) and wanted in content)
