"""Checks a program against the process protocol: a script of exchanges, and a hint for each mistake."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ...cases.elements import Array, element_type, type_of
from ...cases.errors import OpconformError, did_you_mean
from ...cases.program import NO_VERSION, Input, OperatorVersion, Output, Program
from ...cases.runner import Claim, Unsupported
from .command import (
    Breach,
    Conversation,
    Ended,
    Hello,
    Outputs,
    Prepared,
    Refused,
    SharedFiles,
    claim_fault,
    hello,
    prepare_question,
    run_question,
    values_of,
)

_QUIET = 0.1
"""Seconds after an answer in which nothing more may arrive."""
_LARGE = (1000, 1000)


@dataclass(frozen=True, slots=True)
class Checked:
    """A step of the script: its subject; what was wrong, with a hint; `skipped` says why it was not done."""

    step: str
    problem: str | None = None
    hint: str = ""
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class _Easy:
    """An operator whose answer to small integers is exact: inputs of one type and shape, no attributes.

    `opset` is the version's opset, None outside ONNX.
    """

    standard: str
    name: str
    versions: tuple[int | str, ...]
    arity: int
    formula: Callable[..., Array]

    def operator(self, version: int | str) -> OperatorVersion:
        return OperatorVersion(self.standard, self.name, version)


def _mean(x: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.divide(x.sum(keepdims=True), x.size))


def _easy() -> Iterator[_Easy]:
    """Yield the easy operators in the order in which they are tried."""
    plain: Sequence[tuple[str, int, Callable[..., Array]]] = (
        ("Abs", 1, np.abs),
        ("Add", 2, np.add),
        ("Multiply", 2, np.multiply),
    )
    onnx: Sequence[tuple[str, tuple[int | str, ...], int, Callable[..., Array]]] = (
        ("Abs", (13, 6), 1, np.abs),
        ("Neg", (13, 6), 1, np.negative),
        ("Relu", (14, 13, 6), 1, lambda x: np.maximum(x, 0)),
        ("Identity", (13, 14, 16, 1), 1, lambda x: x),
        ("Add", (14, 13, 7), 2, np.add),
        ("Sub", (14, 13, 7), 2, np.subtract),
        ("Mul", (14, 13, 7), 2, np.multiply),
        ("Sum", (13, 8), 2, np.add),
        ("Max", (13, 12, 8), 2, np.maximum),
        ("Mean", (13, 8), 2, lambda x, y: (x + y) / 2),
        ("ReduceMean", (18, 13, 11, 1), 1, _mean),
    )
    yield from (_Easy("onnx", *row) for row in onnx)
    yield from (_Easy("openvino", name, (1,), arity, formula) for name, arity, formula in plain)
    yield from (_Easy("onednn", name, (NO_VERSION,), arity, formula) for name, arity, formula in plain)


_TYPES: Mapping[str, Sequence[str]] = MappingProxyType(
    {"onnx": ("float64", "float16"), "openvino": ("float64", "float16"), "onednn": ("float16",)}
)
"""The types that every easy operator has in its standard, besides float32."""

_Shape: TypeAlias = tuple[int, ...]


def _program(operator: OperatorVersion, inputs: Sequence[_Shape], rank: int, type_: str = "float32") -> Program:
    return Program(
        operator,
        (),
        tuple(Input(f"x{index}", type_, shape) for index, shape in enumerate(inputs)),
        (Output("y", type_, rank),),
        int(operator.version) if operator.standard == "onnx" else None,
    )


def _numbers(shape: _Shape, step: int) -> Array:
    """Return small whole numbers, some negative, whose sum is exact for up to a million of them."""
    count = int(np.prod(shape, dtype=np.int64))
    return ((np.arange(count) * step) % 5 - 2).astype(np.float32).reshape(shape)


_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "died": "what it wrote to stderr says why; answer `error` to a question that fails, and read the next one",
        "time": "answer each line at once: flush stdout after it, and read stdin line by line, not to its end",
        "line": "a question has one answer, in one line of JSON; text for people goes to stderr",
        "id": "copy the question's `id` into the answer, and answer questions in order",
        "schema": "docs/process-protocol.md and runners/schemas/process.schema.json define the answers",
        "claims": "name operators as `onnx/Abs`; `versions` has the numbers of their own changes, not the opset",
        "file": "write to the file before the answer, and close or flush it; `offset` and `length` are in bytes",
        "element-type": "`type` is a name of docs/process-protocol.md, in lower case: float32, bool, string, …",
        "tensor": "`content` is base64 of all elements in C order, little-endian, with nothing around them",
        "unsupported": "answer `unsupported` to what is not implemented: `error` is a failure, `unsupported` is not",
        "rejected": "answer `rejected` to programs that the standard does not allow; check shapes and counts",
        "outputs": "an answer has the outputs that the program names, in their order, and no others",
        "type": "return the type and the shape that the operator defines: `program.outputs` has the type",
        "value": "the bytes are little-endian and in C order, in questions and answers",
        "again": "each run has its own inputs: keep nothing of the previous run",
        "leave": "end when stdin ends, so that nothing stays behind",
    }
)


_SIGNS = (
    ("answered question", "id"),
    ("stdout", "line"),
    ("JSON is malformed", "line"),
    ("is not an element type", "element-type"),
    ("is not a type", "element-type"),
    ("in a file", "file"),
    ("its file", "file"),
    (".content.", "file"),
    ("].content", "tensor"),
    ("`id`", "id"),
    ("`$.id`", "id"),
)
"""Words in the messages of breaches, and the hints that they select."""


def _hint(error: BaseException) -> str:
    words = str(error)
    if isinstance(error, TimeoutError):
        return _HINTS["time"]
    if isinstance(error, Ended) or "closed its stdout" in words:
        return _HINTS["died"]
    key = next((hint for sign, hint in _SIGNS if sign in words), None)
    return _HINTS[key or ("tensor" if words.startswith("outputs[") else "schema")]


class _Wrong(Exception):  # noqa: N818 - what the program did
    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = _HINTS[hint]


class CommandCheck:
    """Runs the script against one program. `seconds` is the time limit of an answer. Close it to end the program."""

    def __init__(self, backend: str, command: str, seconds: float) -> None:
        """Start the program. Raises OpconformError if it cannot be started, or ends before it describes itself."""
        self._command, self._seconds = shlex.split(command), seconds
        self._conversation: Conversation | None = None
        self.hello: Hello | None = None  # what the program says about itself, unless that is wrong
        self._opening: Breach | TimeoutError | None = None
        self._files: SharedFiles | None = None
        try:
            self.hello = hello(self._open(), seconds)
            self._files = SharedFiles() if self.hello.files else None
        except (OSError, Ended) as error:
            self.close()
            if isinstance(error, TimeoutError):
                self._opening = error
            else:
                raise OpconformError(f"{backend}: cannot be started: {error}") from error
        except Breach as error:
            self._opening = error

    def close(self) -> int | None:
        """End the program; return its exit code, or None if it had to be killed."""
        conversation, self._conversation = self._conversation, None
        return 0 if conversation is None else conversation.close()

    def _open(self) -> Conversation:
        if self._conversation is None:
            self._conversation = Conversation(self._command, apart=True)
            if self.hello is not None:
                hello(self._conversation, self._seconds)
        return self._conversation

    def steps(self) -> Iterator[Checked]:
        """Yield the result of each step."""
        yield self._step("hello", self._hello)
        if self.hello is None:
            return
        yield self._step("an operator that does not exist", self._no_such_operator)
        supported: list[tuple[_Easy, int | str]] = []
        yield self._step("an easy operator", lambda: supported.append(self._supported()))
        if not supported:
            return
        easy, version = supported[0]
        name = str(easy.operator(version))
        shapes: Mapping[str, _Shape] = {
            "2x3": (2, 3),
            "a scalar": (),
            "no elements": (0, 3),
            "1000x1000": _LARGE,
        }
        for what, shape in shapes.items():
            yield self._step(f"{name} of {what}", lambda shape=shape: self._runs(easy, version, [shape], [1]))  # type: ignore[misc]
        for type_ in _TYPES[easy.standard]:
            yield self._step(f"{name} of {type_}", lambda type_=type_: self._of_type(easy, version, type_))  # type: ignore[misc]
        yield self._step("one program run three times", lambda: self._runs(easy, version, [(2, 3)], [1, 2, 1]))
        yield self._step("two programs alternately", lambda: self._runs(easy, version, [(2, 3), (4,)], [1, 2, 3]))
        yield self._step("an invalid program", lambda: self._invalid(easy, version))
        if easy.standard == "onnx":
            yield self._step("text", self._text)
        yield self._step("the end of stdin", self._end)

    def _step(self, step: str, act: Callable[[], object]) -> Checked:
        try:
            act()
            if self._conversation is not None and (more := self._conversation.stray(_QUIET)):
                raise Breach(f"it wrote more than one line to stdout: {more[:200]!r}")
        except _Wrong as wrong:
            return Checked(step, str(wrong), wrong.hint)
        except Unsupported as words:
            return Checked(step, skipped=f"unsupported: {words}")
        except Refused as error:
            return Checked(step, f"it answered {error.answer!r} to a valid question: {error}", _HINTS["unsupported"])
        except (Breach, OSError) as error:  # a TimeoutError is an OSError
            self.close()
            return Checked(step, str(error), _hint(error))
        return Checked(step)

    def _hello(self) -> None:
        if self._opening is not None:
            raise self._opening
        description = self._hello_told()
        for operator, claim in (description.operators or {}).items():
            if problem := _claim_problem(description.standards, operator, claim):
                raise _Wrong(problem, "claims")

    def _hello_told(self) -> Hello:
        if self.hello is None:
            raise TypeError("the program has not said what it is")
        return self.hello

    def _refuse_unclaimed(self, program: Program) -> None:
        """Raise Unsupported for a program that is not claimed."""
        if fault := claim_fault(self._hello_told(), program):
            raise Unsupported(*fault)

    def _prepared(self, program: Program) -> int:
        conversation = self._open()
        conversation.ask(Prepared, prepare_question(program, (), self._files), self._seconds)
        return conversation.asked

    def _answer(self, prepared: int, inputs: Sequence[Array]) -> list[Any]:
        question = run_question(prepared, inputs, self._files)
        return values_of(self._open().ask(Outputs, question, self._seconds), self._files)

    def _no_such_operator(self) -> None:
        standard = self._hello_told().standards[0]
        version = {"onnx": 13, "openvino": 1}.get(standard, NO_VERSION)
        program = _program(OperatorVersion(standard, "NoSuchOperator", version), [(2,)], 1)
        try:
            self._answer(self._prepared(program), [_numbers((2,), 1)])
        except Unsupported:
            return
        except Refused as error:
            raise _Wrong(
                f"it answered {error.answer!r} to NoSuchOperator; expected 'unsupported'", "unsupported"
            ) from None
        raise _Wrong("it ran NoSuchOperator; expected 'unsupported'", "unsupported")

    def _supported(self) -> tuple[_Easy, int | str]:
        """Return the first easy operator that it prepares, and does not call unsupported when it runs.

        Raises Unsupported, or the first refusal of another kind.
        """
        refusal: Refused | None = None
        for easy in _easy():
            if easy.standard not in self._hello_told().standards:
                continue
            for version in easy.versions:
                program = _program(easy.operator(version), [(2, 3)] * easy.arity, 2)
                try:
                    self._refuse_unclaimed(program)
                    number = self._prepared(program)
                except Unsupported:
                    continue
                except Refused as error:
                    refusal = refusal or error
                    continue
                try:
                    self._answer(number, [_numbers((2, 3), 1)] * easy.arity)
                except Unsupported:
                    continue
                except (Refused, Breach, OSError):  # the next step asks again, and reports it
                    self.close()
                return easy, version
        if refusal is not None:
            raise refusal
        raise Unsupported("no easy operator such as Abs, Add or ReduceMean for float32; the rest needs one")

    def _runs(
        self,
        easy: _Easy,
        version: int | str,
        shapes: Sequence[_Shape],
        steps: Sequence[int],
        type_: str = "float32",
    ) -> None:
        """Prepare a program for each shape, run all with the inputs of each step, and compare the answers."""
        programs = [_program(easy.operator(version), [shape] * easy.arity, len(shape), type_) for shape in shapes]
        prepared = [self._prepared(program) for program in programs]
        for step in steps:
            for shape, number in zip(shapes, prepared, strict=True):
                inputs = [_numbers(shape, step + index).astype(type_) for index in range(easy.arity)]
                answer = self._answer(number, inputs)
                wanted = np.asarray(easy.formula(*inputs)).astype(type_)
                _compare(answer, wanted, "again" if len(steps) > 1 else "value")

    def _of_type(self, easy: _Easy, version: int | str, type_: str) -> None:
        """Run the operator in another type that its standard has; `unsupported` is a valid answer too."""
        self._refuse_unclaimed(_program(easy.operator(version), [(2, 3)] * easy.arity, 2, type_))
        try:
            self._runs(easy, version, [(2, 3)], [1], type_)
        except Refused as error:
            words = f"it answered {error.answer!r} to {type_}; expected 'unsupported' or the outputs"
            raise _Wrong(f"{words}: {error}", "unsupported") from None

    def _invalid(self, easy: _Easy, version: int | str) -> None:
        """Give an operator too few inputs: none if it takes one or any number, only the first if it takes two."""
        count = 1 if easy.arity == 2 and easy.name not in ("Sum", "Max", "Mean") else 0
        program = _program(easy.operator(version), [(2, 3)] * count, 2)
        try:
            number = self._prepared(program)
            self._answer(number, [_numbers((2, 3), 1)] * count)
        except (Unsupported, Refused):
            return
        raise _Wrong(f"it answered {easy.name} of {count} inputs, as if it were valid", "rejected")

    def _text(self) -> None:
        program = _program(OperatorVersion("onnx", "Identity", 13), [(2, 2)], 2, "string")
        self._refuse_unclaimed(program)
        texts = np.array([["", "a"], ['"\\\n', "β😀"]], object)
        try:
            number = self._prepared(program)
        except Refused as error:
            raise _Wrong(f"it refuses text, but not as 'unsupported': {error}", "unsupported") from None
        _compare(self._answer(number, [texts]), texts, "value")

    def _end(self) -> None:
        self._open()
        if self.close() is None:
            raise _Wrong("it still ran one second after its stdin had ended", "leave")


def _claim_problem(standards: Sequence[str], operator: str, claim: Claim) -> str | None:
    """Return what is wrong with a claim: an unknown operator, or for ONNX an unknown version."""
    standard, _, name = operator.partition("/")
    if standard not in standards:
        return f"it claims {operator[:80]!r}; expected a name such as {standards[0]}/Abs"
    if standard != "onnx":
        return None
    import onnx.defs  # noqa: PLC0415 - costs 190 ms

    schemas = onnx.defs.get_all_schemas_with_history()
    versions = sorted({schema.since_version for schema in schemas if schema.name == name})
    ours = f"onnx {onnx.__version__}"
    if not versions:
        near = did_you_mean(name, {schema.name for schema in schemas})
        return f"it claims {operator[:80]!r}, which {ours} does not have{near}"
    wrong = [version for version in claim.versions if version not in versions] if claim.versions != "all" else []
    known = ", ".join(map(str, versions))
    return f"it claims version {wrong[0]!r} of {operator}, which has {known} in {ours}" if wrong else None


def _compare(answer: Sequence[Any], wanted: Array, hint: str) -> None:
    if len(answer) != 1:
        raise _Wrong(f"it answered {len(answer)} outputs; expected 1", "outputs")
    array: Array = answer[0]
    if not isinstance(array, np.ndarray):
        raise _Wrong("its output has a structure; expected a tensor, without `structure`", "outputs")
    if (type_of(array), array.shape) != (type_of(wanted), wanted.shape):
        answered, expected = (f"{type_of(tensor)} {list(tensor.shape)}" for tensor in (array, wanted))
        raise _Wrong(f"it answered {answered}; expected {expected}", "type")
    text = element_type(type_of(wanted)).kind == "string"
    same = array == wanted if text else np.isclose(array, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)
    if not np.all(same):
        index = tuple(int(coordinate) for coordinate in np.argwhere(~same)[0])
        raise _Wrong(f"element {list(index)} is {str(array[index])[:80]!r}; expected {str(wanted[index])!r}", hint)
