"""Cases by id: parsed, filled and given an expectation; cases with one program and the same shapes form a batch."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ..cases.batch import Batch, Expectation
from ..cases.elements import Array, Declaration
from ..cases.errors import CaseIdError, OpconformError
from ..cases.ids import CaseId, parse_id
from ..cases.program import Body, Input, Output, Program, Structure, count, is_tensor, tensor
from ..specs.loader import Library
from ..specs.model import Edge, VersionSpec
from .arithmetic.formula import Rules
from .arithmetic.recording import Recording
from .arithmetic.tape import Asks, Facts, Port, Recorder
from .edges import edge_cases
from .families import reference_of, vocabularies
from .fills import FIRST
from .operands import (
    Argument,
    Arrays,
    Filling,
    Given,
    arguments,
    around_of,
    attributes_of,
    captured_of,
    inputs_of,
    opset,
    output_ports,
)
from .rows import LARGEST, Row, clauses_of, draws, read_row, valid_variant_row, without_settings

_LANE_ELEMENTS = 1 << 18  # elements evaluated at once: limits memory, and still amortises NumPy's overhead
_MOST_LANES = 1024
_MOST_PARTS = 256  # their expectations are computed together
_MOST_PROGRAMS = 64
_DRAWN = re.compile(r"(.*[/;]draw=)[1-9][0-9]{0,17}([;/].*)")
_RANDOM = frozenset({"uniform"})


@dataclass(frozen=True)
class Reasoning:
    """The source of an expectation: the recorded formula, its arrays and its rules.

    `arrays` are the formula's arguments, lanes first. `places` has the index of each among the cases' inputs; None if
    it is a constant of the program.
    """

    recording: Recording
    arrays: tuple[Array, ...]
    places: tuple[int | None, ...]
    rules: Rules


class Prepared:
    """Everything that the cases of one program share, whatever their data and clauses."""

    def __init__(self, row: Row, record: Recorder) -> None:
        self.row = row
        self.given: Given = arguments(row)
        self.attributes = attributes_of(row)
        self.outputs = output_ports(row, self.attributes)
        self.captured = captured_of(row)
        self.around = around_of(row)
        self.asks: set[str] = set()
        self.record = record
        self._programs: dict[tuple[bytes | None, ...], Program] = {}

    @functools.cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The operator's arguments, in order."""
        return (*(argument for several in self.given.values() for argument in several or ()), *self.captured)

    @functools.cached_property
    def facts(self) -> Facts:
        """The facts that the operator's formula depends on, apart from data."""
        return self._facts(self.row.version)

    def _facts(self, version: VersionSpec) -> Facts:
        """Return the facts, for the row's version or one whose inputs and outputs have the same names."""
        given = {a.name: a.value for a in self.attributes}
        variadic = {port.name for port in version.signature.inputs if port.is_variadic}
        ports = {
            name: argument if argument is None else facts_of(argument, name in variadic)
            for name, argument in self.given.items()
        }
        floats = [leaf.type for argument in self.arguments for leaf in argument.leaves]
        return Facts(
            operator=f"{self.row.spec.standard}/{self.row.spec.name}",
            version=version.operator.version,
            ports=ports,
            outputs=dict(self.outputs),
            attributes={**version.signature.defaults, **given},
            given=frozenset(given),
            silences=version.options,
            clauses=version.clause_ids,
            captured={argument.name: facts_of((argument,), variadic=False) for argument in self.captured},
            around=self.around,
            structures=dict(_structures(self.given, version, self.captured)),
            precision=version.budgets(floats),
        )

    @functools.cached_property
    def terms(self) -> int:
        """The most elements that are summed into one of the result."""
        sizes = [sum(map(count, argument.shapes)) for argument in self.arguments if argument.how == "filled"]
        if self.row.rejected:
            return sum(sizes)
        first = self.first
        return max(sizes, default=1) if first is None else first.terms

    @functools.cached_property
    def first(self) -> Recording | None:
        """The formula if it is the same for all data; else None, and `asks` names the ports that decide it."""
        return self.recording({})

    def recording(self, known: Mapping[str, Array]) -> Recording | None:
        """Return the formula for written values and the `known` values of other ports; None if it asks for more."""
        try:
            return self.record(reference_of(self.row.spec, self.row.version), self.facts, {**self._written, **known})
        except Asks as asked:
            self.asks.add(asked.port)
            return None

    def is_same_in(self, version: VersionSpec, tensors: Mapping[str, Arrays]) -> bool:
        """Return whether another version has the same formula for one lane, with the same names around it.

        False also if that is unknown.
        """
        own, other = self.row.version.signature, version.signature
        named = all(
            [(port.name, port.is_variadic) for port in before] == [(port.name, port.is_variadic) for port in after]
            for before, after in ((own.inputs, other.inputs), (own.outputs, other.outputs))
        )
        if not named:
            return False
        known = {name: tensors[name][0][0, ...] for name in self.asks}
        try:
            made = self.record(reference_of(self.row.spec, version), self._facts(version), {**self._written, **known})
        except (Asks, OpconformError):
            return False
        own_formula = formula_of(self, tensors)
        return made is own_formula or made.content == own_formula.content

    @functools.cached_property
    def _written(self) -> dict[str, Array]:
        return {argument.port.name: argument.value for argument in self.arguments if argument.value is not None}

    def program(self, tensors: Mapping[str, Arrays], lane: int, ranks: Sequence[int | None]) -> Program:
        """Return the program that a backend compiles, with the constants of one lane."""
        fixed = {
            argument.name: tuple(array[lane, ...] for array in tensors[argument.name])
            for argument in self.arguments
            if argument.constant
        }
        inputs = inputs_of(self.row, self.given, fixed)
        key = (*(i.constant for i in inputs if i is not None), repr(ranks).encode())
        if key not in self._programs:
            taken = {i.name for i in inputs if isinstance(i, Input)}
            names = [name if name not in taken else f"{name}_out" for name, _ in self.outputs]
            asked = itertools.zip_longest(ranks, self._fixed_shapes(fixed))
            free = self.row.get("memory") == "any"
            outputs = tuple(
                None if type_ is None else Output(name, type_, *next(asked, (None, None)), free=free)
                for name, (_, type_) in zip(names, self.outputs, strict=True)
            )
            captured = tuple(argument.input("static", "plain", constant=None) for argument in self.captured)
            self._programs[key] = Program(
                self.row.version.operator,
                self.attributes,
                inputs,
                self._of_branches(outputs),
                opset(self.row),
                captured,
                self.around,
            )
        return self._programs[key]

    def _of_branches(self, outputs: tuple[Output | None, ...]) -> tuple[Output | None, ...]:
        """Return outputs without a rank or shape that only some bodies have, if whichever body runs gives them.

        That is where the signature leaves their number to the bodies, as the one of If does.
        """
        if not any(port.is_variadic for port in self.row.version.signature.outputs):
            return outputs
        branches = [a.value.outputs for a in self.attributes if isinstance(a.value, Body)]
        if len(branches) < 2 or any(len(output) != len(outputs) for output in branches):
            return outputs
        return tuple(
            output
            and replace(
                output,
                rank=output.rank if all(other.rank == output.rank for other in others) else None,
                shape=output.shape if all(other.shape == output.shape for other in others) else None,
            )
            for output, *others in zip(outputs, *branches, strict=True)
        )

    def _fixed_shapes(self, constants: Mapping[str, Arrays]) -> tuple[tuple[int, ...] | None, ...]:
        """Return the shape of each output that constants and the inputs' shapes determine, whatever the feeds."""
        plain = all(isinstance(argument.part, tuple) for argument in self.arguments)
        plain = plain and all(type_ is None or is_tensor(type_) for _, type_ in self.outputs)
        if self.row.rejected or self.row.get("dims") in ("symbolic", "unranked") or not plain:
            return ()
        known = {name: arrays[0] for name, arrays in constants.items()}
        try:
            recording = self.record(reference_of(self.row.spec, self.row.version), self.facts, known)
        except Asks:
            return ()
        shapes = {tuple(recording.graph.nodes[at].shape for at in f.outputs) for f in recording.forks if f.outputs}
        return shapes.pop() if len(shapes) == 1 else ()

    @functools.cached_property
    def filling(self) -> Filling:
        """The maker of the arguments' elements."""
        return Filling(self.row, self.given, self.terms, self.captured)

    @functools.cached_property
    def weight(self) -> int:
        """The number of elements of one lane in the whole computation."""
        first = None if self.row.rejected else self.first
        return max(
            1,
            first.weight
            if first is not None
            else sum(count(s) for argument in self.arguments for s in argument.shapes),
        )

    @property
    def is_ragged(self) -> bool:
        """Whether each lane has its own program, because a constant is filled or drawn."""
        return any(argument.constant and argument.value is None for argument in self.arguments)


@dataclass(frozen=True)
class _Lane:
    """The content and clauses of cases that differ only in their draw."""

    prepared: Prepared
    row: Row
    clauses: tuple[str, ...]
    valid_variant: Row | None

    @functools.cached_property
    def alike(self) -> tuple[object, ...]:
        """The key by which neighbours form a batch."""
        valid_variant = None if self.valid_variant is None else self.valid_variant.id
        return id(self.prepared), self.clauses, valid_variant, self.row.id.fill in _RANDOM


@dataclass(frozen=True)
class Part:
    """Neighbours that share formula, program and shapes; invalid cases have no formula."""

    lane: _Lane
    ids: list[str]
    recording: Recording | None
    tensors: Mapping[str, Arrays]

    @property
    def arrays(self) -> list[Array]:
        """The formula's arguments."""
        return [array for argument in self.lane.prepared.arguments for array in self.tensors[argument.name]]

    @property
    def types(self) -> tuple[str, ...]:
        """The element types of the outputs."""
        return tuple(type_ for _, type_ in self.lane.prepared.outputs if type_ is not None)

    @property
    def weight(self) -> int:
        """The number of elements in all, a measure of the memory."""
        return len(self.ids) * self.lane.prepared.weight


@functools.cache
def shipped() -> Library:
    """Return the spec files of this package; a process reads each once, however many commands it runs."""
    return Library(None, vocabularies())


@dataclass(frozen=True)
class GeneratedCases:
    """The cases of the spec files under `root` (None: of the package, `shipped`); picklable."""

    root: Path | None = None
    declaration: Declaration = field(default_factory=Declaration)

    @functools.cached_property
    def library(self) -> Library:
        """The spec files. Raises OpconformError if there are none."""
        library = shipped() if self.root is None else Library(self.root, vocabularies())
        if not library.operators():
            raise OpconformError(f"{library.root}: no spec file there; expected <standard>/<Operator>.yaml")
        return library

    @property
    def unread(self) -> GeneratedCases:
        """A copy without the specs already read: for threads, and processes that get many copies and need few specs."""
        copy = GeneratedCases(self.root, self.declaration)
        vars(copy)["library"] = Library(self.root, vocabularies())
        return copy

    def __getstate__(self) -> dict[str, object]:
        # includes the specs that are already read: reading them again costs a worker a quarter of a second
        return {"root": self.root, "declaration": self.declaration, "library": self.library}

    def case(self, text: str) -> Batch:
        """Return one case by its id. Raises CaseIdError."""
        return next(self.batches([text])).case(0)

    def unanswered(self, text: str) -> Batch:
        """Return one case with an expectation without options, which is not computed. Raises CaseIdError."""
        return self.question(next(self.parts([text])))

    def question(self, part: Part, *, first_reading: bool = False) -> Batch:
        """Return the cases of a part with an expectation without options, which is not computed; see `batch`."""
        return self.batch(part, Expectation((), part.types, len(part.ids)), first_reading=first_reading)

    def cases(self, texts: Sequence[str]) -> Iterator[Batch]:
        """Yield the cases with these ids, in this order, one by one; neighbours with the same program are cheap."""
        for batch in self.batches(texts):
            yield from batch.cases()

    def batches(self, texts: Sequence[str]) -> Iterator[Batch]:
        """Yield the cases with these ids, in this order; neighbours with one program and the same shapes form a batch.

        The expectations of a few hundred cases are computed at once, grouped by formula.
        """
        parts, left = self.parts(texts), True
        while left:
            window: list[Part] = []
            weight, wrong = 0, None
            try:
                while left and weight < _LANE_ELEMENTS and len(window) < _MOST_PARTS:
                    part = next(parts, None)
                    if part is None:
                        left = False
                    else:
                        window.append(part)
                        weight += part.weight
            except Exception as error:  # cases before a wrong id are still returned
                wrong, left = error, False
            for part, expected in zip(window, self._expectations(window), strict=True):
                yield self.batch(part, expected)
            if wrong is not None:
                raise wrong

    def reasoning(self, case: Batch) -> Reasoning | None:
        """Return the source of a batch's expectation; None if its inputs are invalid."""
        part = next(self.parts(case.ids))
        if part.recording is None:
            return None
        places: list[int | None] = []
        first: dict[str, int] = {}
        index = 0
        for argument in part.lane.prepared.arguments:
            count_of = len(part.tensors[argument.name])
            start = first.setdefault(argument.name, index)
            places += [None if argument.constant else start + i for i in range(count_of)]
            index += 0 if argument.constant or argument.again else count_of
        return Reasoning(part.recording, tuple(part.arrays), tuple(places), self._rules(part.lane))

    def row(self, case: CaseId) -> Row:
        """Return a case id's content, typed. Raises CaseIdError."""
        spec, key = self.library.operator_version(case.operator)
        row = read_row(spec, spec.version(key), case)
        if row.edge is not None:
            _check_edge(row, row.edge)
        return row

    def prepared(self, row: Row) -> Prepared:
        """Return everything of a case but its data. Raises CaseIdError if it is invalid and its id names no edge."""
        content = _content(row)
        prepared = self._programs.get(content)
        if prepared is None:
            settings = {name: value for name, value in row.settings.items() if name not in ("draw", "seed")}
            prepared = Prepared(Row(row.spec, row.version, content, settings), self._record)
            if not row.rejected:
                for name in missing(prepared):
                    raise CaseIdError(
                        f"{row.id}: invalid in {row.version.operator}, and the id names no edge: it needs {name}"
                    )
                if prepared.first is not None:
                    _check_valid(row, prepared.first)
            if len(self._programs) >= _MOST_PROGRAMS:
                self._programs.clear()
            self._programs[content] = prepared
        return prepared

    def broken(self, row: Row) -> tuple[str, ...]:
        """Return the clauses that a case's input breaks, as its operator's formula checks them; an edge may break some.

        Raises OpconformError if the formula cannot be recorded at all.
        """
        prepared = Prepared(row, self._record)
        tensors = prepared.filling.tensors([row.id.fill], [str(row.id)])
        absent = tuple(missing(prepared))
        if absent:
            return absent
        recording = formula_of(prepared, tensors)
        if recording.invalid_clause:
            return (recording.invalid_clause,)
        arrays = [array for argument in prepared.arguments for array in tensors[argument.name]]
        return tuple(clause for clause, where in recording.invalid(arrays, 1).items() if where.any())

    @functools.cached_property
    def _programs(self) -> dict[CaseId, Prepared]:
        return {}

    @functools.cached_property
    def _record(self) -> Recorder:
        return Recorder()

    @functools.cached_property
    def _recent(self) -> Callable[[str], _Lane]:
        return functools.lru_cache(maxsize=256)(self._lane)

    def _lane(self, text: str) -> _Lane:
        row = self.row(parse_id(text))
        valid_variant = valid_variant_row(row) if row.rejected else None
        prepared = self.prepared(row)
        prepared.filling.check(row.id.fill)
        return _Lane(prepared, row, clauses_of(row), valid_variant)

    def _runs(self, texts: Sequence[str]) -> Iterator[tuple[_Lane, list[str], list[str]]]:
        """Yield runs of neighbours that share program and clauses, with their fills and ids."""
        lane: _Lane | None = None
        fills: list[str] = []
        ids: list[str] = []
        before = ""
        for text in texts:
            bare = _undrawn(text)
            if lane is None or bare != before:
                try:
                    here = self._recent(bare)
                except OpconformError:
                    if lane is not None:  # a wrong id affects no other case
                        yield lane, fills, ids
                    raise
                if lane is not None and here.alike != lane.alike:
                    yield lane, fills, ids
                    fills, ids = [], []
                lane, before = here, bare
            if text != bare and not draws(lane.row.version, lane.row.id):
                if ids:
                    yield lane, fills, ids
                raise CaseIdError(f"{text}: fill {lane.row.id.fill!r} draws nothing: leave draw out")
            fills.append(lane.row.id.fill)
            ids.append(text)
        if lane is not None:
            yield lane, fills, ids

    def parts(self, texts: Sequence[str]) -> Iterator[Part]:
        """Yield neighbours that share formula, program and shapes, with their tensors."""
        for lane, fills, ids in self._runs(texts):
            yield from _made(lane, fills, ids)

    def _expectations(self, parts: Sequence[Part]) -> list[Expectation | Exception]:
        """Return the expectation of each part; parts that share formula and rules are computed at once."""
        expectations: list[Expectation | Exception] = [Expectation((), part.types, len(part.ids)) for part in parts]
        groups: dict[tuple[int, bool], list[int]] = {}
        for index, part in enumerate(parts):
            if part.recording is not None:
                groups.setdefault((id(part.recording), self._rules(part.lane).random), []).append(index)
        for group in groups.values():
            some = [parts[index] for index in group]
            try:
                made: Sequence[Expectation | Exception] = self._together(some)
            except Exception:  # one by one, so that only the failing part is lost
                made = [self._alone(part) for part in some]
            for index, expectation in zip(group, made, strict=True):
                expectations[index] = expectation
        return expectations

    def _alone(self, part: Part) -> Expectation | Exception:
        try:
            return self._together([part])[0]
        except Exception as error:
            return error

    def _together(self, parts: Sequence[Part]) -> list[Expectation]:
        """Return the expectations of parts that share a formula. Raises CaseIdError if values are invalid."""
        recording, ids = parts[0].recording, [text for part in parts for text in part.ids]
        assert recording is not None
        columns = zip(*(part.arrays for part in parts), strict=True)
        arrays = [np.concatenate(some) if len(some) > 1 else some[0] for some in columns]
        for clause, broken in recording.invalid(arrays, len(ids)).items():
            if broken.any():
                where = ids[int(np.flatnonzero(np.broadcast_to(broken, len(ids)))[0])]
                raise CaseIdError(f"{where}: {_invalid(parts[0].lane.prepared.row, clause)}")
        expectation = recording.expectation(arrays, self._rules(parts[0].lane), len(ids))
        if len(parts) == 1:
            return [expectation]
        ends = np.cumsum([len(part.ids) for part in parts]).tolist()
        return [expectation.part(end - len(part.ids), end) for part, end in zip(parts, ends, strict=True)]

    def batch(self, part: Part, expected: Expectation | Exception, *, first_reading: bool = False) -> Batch:
        """Return the cases of a part with an expectation; an error in its place is raised.

        With `first_reading`, outputs whose rank readings disagree on have that of the first one.
        """
        if isinstance(expected, Exception):
            raise expected
        lane, prepared = part.lane, part.lane.prepared
        valid_variant = None if lane.valid_variant is None else str(lane.valid_variant.id)
        program = prepared.program(part.tensors, 0, self._ranks(lane, part.recording, first_reading))
        fed = (argument for argument in prepared.arguments if not (argument.constant or argument.again))
        inputs = tuple(array for argument in fed for array in part.tensors[argument.name])
        return Batch(part.ids, program, inputs, expected, lane.clauses, valid_variant)

    def _ranks(self, lane: _Lane, recording: Recording | None, first_reading: bool) -> tuple[int | None, ...]:
        """Return the rank of each output; for an invalid case, the ranks of the valid case that it is derived from."""
        prepared = lane.prepared
        if recording is None and lane.valid_variant is not None:
            valid = self.prepared(lane.valid_variant)
            recording = valid.first
            if recording is None:
                tensors = valid.filling.tensors([lane.valid_variant.id.fill], [str(lane.valid_variant.id)])
                recording = recording_of(valid, tensors)
        if recording is None:
            return ()
        if not first_reading:
            return recording.ranks
        # an output more than the valid case has is like its neighbour, so that nothing else of the model is wrong
        more = sum(type_ is not None for _, type_ in prepared.outputs) - len(recording.first_ranks)
        return (*recording.first_ranks, *recording.first_ranks[-1:] * more)

    def _rules(self, lane: _Lane) -> Rules:
        return Rules(lane.row.id.fill in _RANDOM, self.declaration.types)


def _made(lane: _Lane, fills: list[str], ids: list[str]) -> Iterator[Part]:
    """Yield parts of a run that share formula, program and shapes."""
    prepared = lane.prepared
    rejected, first = prepared.row.rejected, None if prepared.row.rejected else prepared.first
    together = max(1, min(_MOST_LANES, _LANE_ELEMENTS // prepared.weight))
    for start in range(0, len(ids), together):
        some = ids[start : start + together]
        tensors = prepared.filling.tensors(fills[start : start + together], some)
        if not prepared.is_ragged and (rejected or first is not None):
            yield Part(lane, some, first, tensors)
            continue
        for index, text in enumerate(some):  # each has its own values, or its own program
            own = {name: tuple(array[index : index + 1] for array in arrays) for name, arrays in tensors.items()}
            yield Part(lane, [text], None if rejected else recording_of(prepared, own), own)


def facts_of(several: tuple[Argument, ...], variadic: bool) -> Port | tuple[Port, ...]:
    """Return what a formula may ask of an input: the types and shapes of its tensors."""
    tensors = [
        Port(leaf.type, shape)
        for argument in several
        for leaf, shape in zip(argument.leaves, argument.shapes, strict=True)
    ]
    return tensors[0] if not variadic and isinstance(several[0].part, tuple) else tuple(tensors)


def _structures(
    given: Given, version: VersionSpec, captured: tuple[Argument, ...]
) -> Iterator[tuple[str, Structure | tuple[Structure, ...]]]:
    """Yield the structures of ports and of the outer values of bodies, unless all their values are plain tensors."""
    for name, several in (*given.items(), *((argument.name, (argument,)) for argument in captured)):
        if several and any(isinstance(argument.part, Structure) for argument in several):
            made = tuple(
                argument.part if isinstance(argument.part, Structure) else tensor(*argument.part)
                for argument in several
            )
            port = version.signature.input(name)
            yield name, tuple(made) if port is not None and port.is_variadic else made[0]


def recording_of(prepared: Prepared, tensors: Mapping[str, Arrays]) -> Recording:
    """Return the formula for one lane, whose values it may ask for. Raises CaseIdError if they are invalid."""
    recording = formula_of(prepared, tensors)
    _check_valid(prepared.row, recording)
    return recording


def formula_of(prepared: Prepared, tensors: Mapping[str, Arrays]) -> Recording:
    """Return the formula for one lane, whose values it may ask for, valid or not."""
    recording = prepared.first
    while recording is None:
        asked = frozenset(prepared.asks)
        recording = prepared.recording({name: tensors[name][0][0, ...] for name in asked})
        if recording is None and prepared.asks == asked:
            raise OpconformError(f"{prepared.row.id}: its formula asks for {', '.join(sorted(asked))} again")
    return recording


def _content(row: Row) -> CaseId:
    """Return a case id reduced to what its program depends on; an invalid case keeps its edge."""
    bare = without_settings(row.id, "draw", "seed")
    return bare if row.rejected else replace(bare, fill=FIRST, edge=None)


def missing(prepared: Prepared) -> Iterator[str]:
    """Yield the required inputs and attributes that are left out."""
    version = prepared.row.version
    attributes = {attribute.name for attribute in prepared.attributes}
    for attribute in version.signature.attributes:
        if attribute.required and attribute.name not in attributes and prepared.given.get(attribute.name) is None:
            yield attribute.name
    for name, given in prepared.given.items():
        port = version.signature.input(name)
        if given is None and port is not None and port.option == "single" and version.signature.attribute(name) is None:
            yield name


def _check_valid(row: Row, recording: Recording) -> None:
    if recording.invalid_clause:
        raise CaseIdError(f"{row.id}: {_invalid(row, recording.invalid_clause)}")
    for shape in recording.shapes:
        if shape is not None and count(shape) > LARGEST:
            raise CaseIdError(f"{row.id}: the result has more than {LARGEST:,} elements")


def _invalid(row: Row, clause: str) -> str:
    known = row.version.clauses.get(clause)
    return f"invalid in {row.version.operator}, and the id names no edge: {known.text if known else clause}"


def _check_edge(row: Row, edge: Edge) -> None:
    """Raise CaseIdError for an id that names an edge but has other content: the expectation depends on the edge."""
    if without_settings(row.id, "draw", "seed") not in edge_cases(row.spec, row.version, edge, row.id.types):
        wanted = list(edge_cases(row.spec, row.version, edge))
        near = next((case for case in wanted if case.types == row.id.types), wanted[0])
        raise CaseIdError(f"{row.id}: edge {row.id.edge!r} has another content: {near}")


def _undrawn(text: str) -> str:
    """Return a case id without its draw, the part that it shares with its neighbours."""
    drawn = _DRAWN.fullmatch(text)
    return text if drawn is None else _around_draw(drawn[1], drawn[2]) or text


@functools.lru_cache(maxsize=1024)
def _around_draw(before: str, after: str) -> str | None:
    try:
        return str(without_settings(parse_id(f"{before}1{after}"), "draw"))
    except CaseIdError:  # lets the parser report the id as it was given
        return None
