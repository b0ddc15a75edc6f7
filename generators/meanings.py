"""What a program says without being run: the types and shapes of its outputs, for backends that infer these.

They come from the recorded formula. Symbolic dimensions are found by substitution: the formula is recorded again with
other sizes, and a name or number is right if it is right in every valid one.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..cases.batch import Batch, Bounds, CaseSource, Check, Expectation, Labels, Option
from ..cases.elements import Array
from ..cases.errors import OpconformError
from ..cases.ids import CaseId, parse_id
from ..cases.inferred import COMPUTED, INFERENCE, UNKNOWN, inferred
from ..cases.program import ModelProgram, Program, Structure, is_tensor
from ..cases.runner import BackendKind
from ..specs.model import Word
from .arithmetic.formula import Fork
from .arithmetic.recording import Recording
from .arithmetic.tape import Asks
from .families import reference_of
from .fills import FIRST
from .nodes import admitted_by_own_version, unknown_to_own_version, version_of_kept_node
from .operands import Argument, Arrays
from .parameters import free_letters
from .rows import without_settings
from .source import GeneratedCases, Part, Prepared, facts_of, missing

INVALID = "invalid-program"
"""What the behaviour on an invalid program is reported under if nothing is demanded: `refused` or `accepted`."""

_MOST_SUBSTITUTIONS = 48

Shape = tuple[int, ...]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class CasesOfEveryKind(GeneratedCases):
    """Generated cases, also as they are for backends that do not run programs."""

    def meaning(self, kind: BackendKind) -> CaseSource:
        """Return the cases for backends of a kind."""
        return Originals(self) if kind == "convert" else Meanings(self, kind)


@dataclass(frozen=True)
class Originals(CaseSource):
    """The cases of a source for converters, and what the text says of models that these make; picklable.

    A converter may answer anything: what the model that it makes has to compute, `answered` says.
    """

    source: GeneratedCases

    def batches(self, texts: Sequence[str], /) -> Iterator[Batch]:
        """Yield the cases with these ids, in this order. Raises CaseIdError."""
        for part in self.source.parts(texts):
            plain, lanes = self.source.question(part), len(part.ids)
            options = () if part.recording is None else (_plain((), "anything", lanes),)
            yield replace(plain, expectation=Expectation(options, part.types, lanes))

    def answered(self, texts: Sequence[str], /) -> Iterator[Batch]:
        """Yield the cases one by one, with what their programs compute. Raises CaseIdError."""
        return self.source.cases(texts)

    def unknown(self, program: ModelProgram, /) -> str:
        """Return what of a model its own version does not have, as `unknown_to_own_version` does."""
        return unknown_to_own_version(program, self.source.library)

    def admitted(self, program: ModelProgram, inputs: Sequence[Array], /) -> Expectation | None:
        """Return what the text of its own version admits of a model of one node, as `admitted_by_own_version` does."""
        return admitted_by_own_version(program, inputs, self.source.library)

    def is_kept(self, case: Batch, converted: ModelProgram, /) -> bool:
        """Return whether a conversion of a single case's program is right by the text alone.

        It is if it only changes the opset, and the node has the same formula there; False if that is unknown.
        """
        part = functools.cache(lambda: next(self.source.parts(case.ids)))

        def shapes() -> Sequence[Shape | None]:
            recording = part().recording
            return () if recording is None else recording.shapes

        version = version_of_kept_node(case.program, converted, self.source.library, shapes)
        if version is None or version.operator == case.program.operator:
            return version is not None
        return part().recording is not None and part().lane.prepared.is_same_in(version, part().tensors)


@dataclass(frozen=True)
class Meanings(CaseSource):
    """The cases of a source, each with what its program says; picklable.

    Only the program counts, so cases that differ in their data have equal expectations.
    """

    source: GeneratedCases
    kind: BackendKind

    def batches(self, texts: Sequence[str], /) -> Iterator[Batch]:
        """Yield the cases with these ids, in this order. Raises CaseIdError."""
        for part in self.source.parts(texts):
            # ONNX's IR wants the rank of each output of a model, even where the operator's page has two readings
            plain = self.source.question(part, first_reading=self.kind == "check")
            made = inference_of(part, plain.program) if self.kind == "infer" else validity_of(part, plain.program)
            yield replace(plain, expectation=made)


def one_of_each_program(
    source: GeneratedCases, ids: Iterator[str], named: Sequence[str], kind: BackendKind = "infer"
) -> Iterator[str]:
    """Yield the first valid case of each program, the invalid ones of which a kind demands something, and `named` ids.

    A checker has to refuse what the program alone shows to be invalid; nothing else has to refuse anything.
    """
    seen = set[CaseId]()
    for text in ids:
        case = parse_id(text)
        bare = without_settings(case, "draw", "seed")
        if _is_rejected(source, case):
            chosen = kind == "check" and bare not in seen and all(map(is_static, source.parts([text])))
        else:
            bare = replace(bare, fill=FIRST, edge=None)
            chosen = bare not in seen
        if chosen or text in named:
            seen.add(bare)
            yield text


def _is_rejected(source: GeneratedCases, case: CaseId) -> bool:
    if case.edge is None:
        return False
    spec, key = source.library.operator_version(case.operator)
    edge = spec.version(key).edge(case.edge)
    return source.row(case).rejected if edge is None else edge.rejected  # the row says what is wrong with the id


def validity_of(part: Part, program: Program) -> Expectation:
    """Return what a checker may say of cases of one program: that it is valid or not, or either."""
    lanes = len(part.ids)
    either = _either(lanes)
    if part.recording is None:
        return Expectation(() if is_static(part) else either, (), lanes)
    ranks = [output.rank for output in program.answers if is_tensor(output.type)]
    settled = all(fork.kind in ("values", "any") for fork in _open_to_programs(part, part.recording))
    if not any(fork.structure for fork in part.recording.forks):
        settled &= None not in part.recording.ranks  # the checker may infer what another reading says
    # ONNX's IR wants the rank of each output, which branches may leave open; and it calls deprecated versions invalid
    if not settled or None in ranks or part.lane.row.version.signature.deprecated:
        return Expectation(either, (), lanes)
    return Expectation((Option((), applies=np.ones(lanes, bool)),), (), lanes)


def inference_of(part: Part, program: Program) -> Expectation:
    """Return the texts that inference may answer for cases of one program, each exact or with something left open."""
    lanes, outputs = len(part.ids), program.answers
    types = ("string",) * len(outputs)
    if part.recording is None:
        return Expectation(_either(lanes), types, lanes)
    names = ",".join(sorted({str(dim) for given in program.given for dim in given.dims if isinstance(dim, str)}))
    symbolic = symbolic_dims(part.lane.prepared, part.tensors) if names else None
    variants: dict[tuple[str, ...], list[Labels]] = {}
    made: list[Option] = []
    for fork in _open_to_programs(part, part.recording):
        if fork.kind in ("values", "any"):
            shapes = _shapes(part.recording, fork, len(outputs))
            named_dims: Sequence[Sequence[str] | None] = symbolic or [None] * len(outputs)
            rows = zip(outputs, shapes, named_dims, strict=True)
            dims = [_words(output.shape, shape, named, output.rank is None) for output, shape, named in rows]
            texts = tuple(inferred(output.type, some) for output, some in zip(outputs, dims, strict=True))
            variants.setdefault(texts, []).append(fork.labels)
        else:
            made.append(_plain(fork.labels, "anything" if fork.kind == "anything" else "rejected", lanes))
    for texts, several in variants.items():
        shared = tuple(label for label in several[0] if all(label in labels for labels in several))
        labels = shared if len(variants) > 1 or made else ()
        made += [_texts(texts, labels, names, lanes, exact=exact) for exact in (True, False)]
    return Expectation(tuple(made), types, lanes)


def _open_to_programs(part: Part, recording: Recording) -> list[Fork]:
    """Return the readings of a program: a refusal is one only if no data that may be fed settle the question."""
    answering = ("values", "any")
    if all(fork.kind in answering for fork in recording.forks):
        return list(recording.forks)
    arguments = [argument for argument in part.lane.prepared.arguments for _ in part.tensors[argument.name]]
    fixed = [argument.constant for argument in arguments]
    held = recording.premises([array[:1] for array in part.arrays], 1)

    def is_open(at: int) -> bool:
        used = (recording.graph.nodes[n] for n in recording.graph.live([at]))
        ports = [node.parameters["port"] for node in used if node.name == "port"]
        return bool(held[at].any()) and all(fixed[port] for port in ports)

    def is_settled(fork: Fork) -> bool:
        """Return whether another answer to a question that only data raise makes more of a program than this fork."""
        by_data = {silence for silence, at in fork.conditions if not is_open(at)}
        own = [label for label in fork.labels if label[0] not in by_data]
        same = (o for o in recording.forks if [label for label in o.labels if label[0] not in by_data] == own)
        return bool(by_data) and any(other.kind != fork.kind for other in same)

    forks = [f for f in recording.forks if f.kind in answering or not is_settled(f)]
    return forks if any(fork.kind in answering for fork in forks) else list(recording.forks)


def _either(lanes: int) -> tuple[Option, Option]:
    """Return the options where a refusal is right, and anything else, too."""
    return _plain(((INVALID, "refused"),), "rejected", lanes), _plain(((INVALID, "accepted"),), "anything", lanes)


def _plain(labels: Labels, kind: str, lanes: int) -> Option:
    return Option(labels, kind="rejected" if kind == "rejected" else "anything", applies=np.ones(lanes, bool))


def _texts(texts: Sequence[str], labels: Labels, names: str, lanes: int, *, exact: bool) -> Option:
    columns = [np.full(lanes, text, object) for text in texts]
    return Option(
        (*labels, (INFERENCE, "exact" if exact else "open")),
        tuple(Bounds("string", column, column, column) for column in columns),
        applies=np.ones(lanes, bool),
        checks=(Check("infers", tuple(range(len(texts))), (("names", names), ("exact", int(exact)))),),
    )


def _words(
    fixed: Shape | None, shape: Shape | None, symbolic: Sequence[str] | None, of_any_rank: bool
) -> Sequence[int | str] | None:
    """Return the dimensions of an output: fixed ones, those found by substitution, or only what this case shows."""
    if fixed is not None:
        return fixed
    if symbolic is not None and shape is not None and len(symbolic) == len(shape):
        return symbolic
    return None if shape is None or of_any_rank else [f"{size}{UNKNOWN}" for size in shape]


def _shapes(recording: Recording, fork: Fork, count: int) -> list[Shape | None]:
    """Return the shape of each output of a reading; None for one that is not a tensor."""
    shapes = [recording.graph.nodes[at].shape for at in fork.outputs]
    if not fork.structure:
        return [*shapes] if len(shapes) == count else [None] * count
    by_output: list[Shape | None] = []
    rest = iter(shapes)
    for structure in fork.structure:
        own = [next(rest) for _ in range(_tensors(structure))]
        by_output.append(own[0] if structure.kind == "tensor" else None)
    return by_output


def _tensors(structure: Structure) -> int:
    if structure.kind in ("map", "sparse"):
        return 2
    return 1 if structure.kind == "tensor" else sum(map(_tensors, structure.items))


# Invalid programs


def is_static(part: Part) -> bool:
    """Return whether the program of an invalid case shows that it is invalid, whatever is fed to it.

    The formula is recorded with constants alone. False if it asks for fed values before it finds a mistake.
    """
    prepared, row = part.lane.prepared, part.lane.row
    version = row.version
    types = zip(free_letters(version), row.id.types, strict=False)
    if row.get("unknown") is not Word.ABSENT or next(missing(prepared), None) is not None:
        return True
    if any(name not in version.signature.types[letter] for letter, name in types):
        return True
    if not all(isinstance(argument.part, tuple) for argument in prepared.arguments):
        return False  # the type of a sequence or map says neither its length nor the shapes in it
    constants = {argument.name for argument in prepared.arguments if argument.constant}
    known = _constants(prepared, part.tensors)
    sizes = _sizes(prepared) if row.get("dims") == "symbolic" else {}
    arrays = [array for argument in prepared.arguments for array in part.tensors[argument.name]]
    fixed = [argument.name in constants for argument in prepared.arguments for _ in part.tensors[argument.name]]
    for some in (sizes, *(_substitutions(sizes) if sizes else ())):
        try:
            recording = _recording(prepared, some, known)
        except Asks:
            return False
        except _UNFORESEEN:
            continue
        broken = bool(recording.invalid_clause) or (some is sizes and _breaks(recording, arrays, fixed))
        if not broken:
            return False
    return True


def _breaks(recording: Recording, arrays: Sequence[Array], fixed: Sequence[bool]) -> bool:
    """Return whether the values of constants alone break a clause."""
    of_constants = {
        clause
        for fork in recording.forks
        for clause, at in fork.requirements
        if all(
            fixed[recording.graph.nodes[used].parameters["port"]]
            for used in recording.graph.live([at])
            if recording.graph.nodes[used].name == "port"
        )
    }
    return any(clause in of_constants and broken.any() for clause, broken in recording.invalid(arrays, 1).items())


# Symbolic dimensions


def symbolic_dims(prepared: Prepared, tensors: Mapping[str, Arrays]) -> list[list[str]] | None:
    """Return the words of each output's dimensions, as `cases/inferred.py` has them; None if data decide the shapes."""
    if prepared.row.version.graphs or prepared.around is not None:  # the formula lacks what bodies declare of shapes
        return None
    sizes, known = _sizes(prepared), _constants(prepared, tensors)
    base = _recorded(prepared, sizes, known)
    if base is None:
        return None
    recorded: list[tuple[Sizes, list[Shape]]] = [(sizes, base)]
    for other in _substitutions(sizes):
        shapes = _recorded(prepared, other, known)
        if shapes is not None:
            recorded.append((other, shapes))
    varied = {name for name in sizes if any(some[name] != sizes[name] for some, _ in recorded)}
    words = []
    for output, shape in enumerate(base):
        if any(len(shapes[output]) != len(shape) for _, shapes in recorded):
            return None
        words.append([_word(output, axis, recorded, varied) for axis in range(len(shape))])
    return words


def _sizes(prepared: Prepared) -> dict[str, int]:
    """Return the size of each symbolic dimension of a case's inputs."""
    return {
        f"{argument.name}_{axis}": size
        for argument in prepared.arguments
        if _is_symbolic(argument) and isinstance(argument.part, tuple)
        for axis, size in enumerate(argument.part)
    }


def _constants(prepared: Prepared, tensors: Mapping[str, Arrays]) -> dict[str, Array]:
    return {
        argument.port.name: tensors[argument.name][0][0, ...] for argument in prepared.arguments if argument.constant
    }


def _is_symbolic(argument: Argument) -> bool:
    return argument.how != "written" and not argument.constant


def _word(output: int, axis: int, recorded: Sequence[tuple[Sizes, list[Shape]]], varied: set[str]) -> str:
    values = [shapes[output][axis] for _, shapes in recorded]
    sizes = recorded[0][0]
    names = [name for name in sizes if all(some[name] == v for (some, _), v in zip(recorded, values, strict=True))]
    if len(set(values)) > 1:
        return "|".join(names) or COMPUTED
    if varied == {*sizes}:
        return str(values[0])
    return "|".join([str(values[0]), *names]) + UNKNOWN  # some name has no other valid size: it may be either


def _substitutions(sizes: Sizes) -> Iterator[Sizes]:
    """Yield other sizes for the names: those of one size together, all, of one axis, each alone, two exchanged."""
    made: list[Sizes] = []
    for size in sorted({*sizes.values()}):
        made += [
            {**sizes, **{name: other for name, own in sizes.items() if own == size}} for other in (size + 1, 2 * size)
        ]
    made += [{name: factor * size for name, size in sizes.items()} for factor in (2, 3)]
    for axis in sorted({name.rpartition("_")[2] for name in sizes}, key=int):
        made += [{name: size + name.endswith(f"_{axis}") for name, size in sizes.items()}]
    for other in (1, 0):  # 0: the next size; before the exchanges, of which many names have too many
        made += [{**sizes, name: other or size + 1} for name, size in sizes.items()]
    pairs = itertools.combinations(sizes, 2)
    made += [{**sizes, a: sizes[b], b: sizes[a]} for a, b in pairs if sizes[a] != sizes[b]]
    for other in sorted({*sizes.values()}):
        made += [{**sizes, name: other} for name in sizes]
    unique = {tuple(some.items()): some for some in made if dict(some) != dict(sizes)}
    yield from list(unique.values())[:_MOST_SUBSTITUTIONS]


_UNFORESEEN = (OpconformError, ValueError, TypeError, IndexError, KeyError, ZeroDivisionError)
"""What a formula may raise for sizes that no case has."""


def _recording(prepared: Prepared, sizes: Sizes, known: Mapping[str, Array]) -> Recording:
    """Return the formula for some sizes of symbolic dimensions. Raises Asks, and what is unforeseen."""

    def resized(argument: Argument) -> Argument:
        if not sizes or not _is_symbolic(argument) or not isinstance(argument.part, tuple):
            return argument
        return replace(argument, part=tuple(sizes[f"{argument.name}_{i}"] for i in range(len(argument.part))))

    version = prepared.row.version
    variadic = {port.name for port in version.signature.inputs if port.is_variadic}
    ports = {
        name: several if several is None else facts_of(tuple(map(resized, several)), name in variadic)
        for name, several in prepared.given.items()
    }
    facts = replace(prepared.facts, ports=ports)
    return prepared.record(reference_of(prepared.row.spec, version), facts, known)


def _recorded(prepared: Prepared, sizes: Sizes, known: Mapping[str, Array]) -> list[Shape] | None:
    """Return the shape of each output for some sizes; None if they are invalid, or not the same for all data."""
    try:
        recording = _recording(prepared, sizes, known)
    except (Asks, *_UNFORESEEN):
        return None
    if recording.invalid_clause:
        return None
    types = [type_ for _, type_ in prepared.outputs if type_ is not None]
    if not all(map(is_tensor, types)):
        return None
    shapes = {tuple(_shapes(recording, fork, len(types))) for fork in recording.forks if fork.kind in ("values", "any")}
    if len(shapes) != 1:
        return None
    (only,) = shapes
    return [shape for shape in only if shape is not None] if None not in only else None
