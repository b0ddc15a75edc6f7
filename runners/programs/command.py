"""Programs in any language as backends: lines of JSON over stdin and stdout, `cmd:./program args`.

docs/process-protocol.md defines what a program reads and writes; runners/schemas/process.schema.json is the schema.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, NoReturn, TypeAlias, TypeVar

import msgspec
import numpy as np

from ...cases.corpus.descriptor import constants, program_json, structure_from
from ...cases.elements import Array, content, element_types, from_content, type_of
from ...cases.errors import OpconformError
from ...cases.onnx_model import onnx_bytes
from ...cases.program import Program, element_names, nested_all, parse_type
from ...cases.runner import BackendKind, Claim, ClaimLimits, Claims, Executable, Reason, Unsupported
from ..pool.process import exit_words
from ..pool.wire import CHANNEL_LOST, ProcessLost

PROTOCOL = 1
"""The version of the protocol."""
LONGEST_LINE = 256 << 20
"""Maximum size of an answer's line, and of the file beside it, in bytes."""
SHARED_FROM = 1 << 16
"""Size in bytes from which a tensor's content goes into a file beside the question, if the program reads files."""

_CHUNK = 1 << 20
_SHOWN = 200
"""Number of characters that messages show of a wrong line."""
_LEAVE = 1.0
"""Seconds that a program has to end once its stdout or stdin is closed."""
_NO_PROTOCOL = 76
"""The exit code of a host whose program is lost: EX_PROTOCOL of sysexits.h."""


class Breach(Exception):  # noqa: N818 - what the program did, not a mistake of ours
    """The program violates the protocol; the text says how."""


class Ended(Breach):
    """The program has ended; `code` is its exit code, or the negated number of the signal that ended it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Refused(Exception):  # noqa: N818 - an answer
    """The program answered with a failure of its own, in its own words, instead of outputs; `answer` is its kind."""

    answer = "error"

    def __init__(self, words: str, reason: Reason) -> None:
        super().__init__(words)
        self.reason: Reason = reason


class Rejected(Refused):
    """The program says that the program or the inputs that it was given are invalid."""

    answer = "rejected"


# Answers


class _Message(msgspec.Struct, frozen=True, tag_field="answer", forbid_unknown_fields=True):
    id: int


class Hello(_Message, frozen=True, tag="hello"):
    """What a program says about itself.

    `operators` is what it claims to support, by `onnx/ReduceMean` and so on, None if it does not say; `limits` apply to
    all claims. `files`: it reads and writes contents in files. `kind`: what it does with programs.
    """

    protocol: int
    name: str
    version: str
    standards: tuple[Literal["onnx", "openvino", "onednn"], ...]
    operators: dict[str, Claim] | None = None
    facts: Mapping[str, str] = {}
    limits: ClaimLimits = ClaimLimits()
    files: bool = False
    kind: BackendKind = "run"


class Prepared(_Message, frozen=True, tag="prepared"):
    """The program of this question is ready to run."""


class _FileRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    offset: Annotated[int, msgspec.Meta(ge=0, le=LONGEST_LINE)]
    length: Annotated[int, msgspec.Meta(ge=0, le=LONGEST_LINE)]


class _WireTensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: str
    shape: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)], ...], msgspec.Meta(max_length=64)]
    content: bytes | list[str] | _FileRange


class Outputs(_Message, frozen=True, tag="outputs"):
    """All tensors of an answer, and the structure of each output if one is not a tensor."""

    outputs: tuple[_WireTensor, ...]
    structure: tuple[dict[str, Any], ...] | None = None


class _Refusal(_Message, frozen=True):
    words: str
    reason: Reason = "other"


class _Unsupported(_Refusal, frozen=True, tag="unsupported"):
    pass


class _Rejected(_Refusal, frozen=True, tag="rejected"):
    pass


class _Error(_Refusal, frozen=True, tag="error"):
    pass


_AnyAnswer: TypeAlias = Hello | Prepared | Outputs | _Unsupported | _Rejected | _Error
_ANSWERS = msgspec.json.Decoder(_AnyAnswer)
_M = TypeVar("_M", Hello, Prepared, Outputs)
_T = TypeVar("_T")


class Conversation:
    """A child process that answers questions: each is a line of JSON, and so is its answer.

    `apart`: it runs in a session of its own; otherwise it is killed with the process group that started it. It shares
    our stderr. Raises OSError if it cannot be started.
    """

    def __init__(self, command: Sequence[str], *, apart: bool = False) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - the user's program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=apart
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._apart = apart
        self.asked = -1  # the id of the last question

    def ask(self, kind: type[_M], question: Mapping[str, Any], seconds: float | None = None) -> _M:
        """Send a question with a new `id`, and return the answer, which must be of this kind.

        Raises Breach; Unsupported, Rejected or Refused if that is the answer; TimeoutError after `seconds`.
        """
        self.asked += 1
        line = json.dumps({"id": self.asked, **question}, allow_nan=False, separators=(",", ":")) + "\n"
        answer = _read(self._exchanged(line.encode(), seconds))
        if answer.id != self.asked:
            raise Breach(f"it answered question {answer.id} but question {self.asked} was asked")
        if isinstance(answer, _Refusal) and kind is not Hello:
            reason: Reason = "invalid" if isinstance(answer, _Rejected) and answer.reason == "other" else answer.reason
            if isinstance(answer, _Unsupported):
                raise Unsupported(answer.words, reason)
            raise (Rejected if isinstance(answer, _Rejected) else Refused)(answer.words, reason)
        if not isinstance(answer, kind):
            words = f": {answer.words[:_SHOWN]}" if isinstance(answer, _Refusal) else ""
            raise Breach(f"it answered {_tag(type(answer))!r} to {question['ask']!r}; expected {_tag(kind)!r}{words}")
        return answer

    def stray(self, seconds: float = 0.0) -> bytes:
        """Return whatever arrives on stdout within some seconds although nothing was asked; nothing if stdout ends."""
        poller = select.poll()
        poller.register(self._out, select.POLLIN)
        return os.read(self._out, _CHUNK) if poller.poll(1000 * seconds) else b""

    def _exchanged(self, line: bytes, seconds: float | None) -> bytes:
        if before := self.stray():
            raise Breach(f"it wrote to stdout before it was asked: {_excerpt(before)}")
        until = None if seconds is None else time.monotonic() + seconds
        unsent, held = memoryview(line), bytearray()
        poller = select.poll()
        poller.register(self._in, select.POLLOUT)
        poller.register(self._out, select.POLLIN)
        while True:
            left = None if until is None else max(0.0, 1000 * (until - time.monotonic()))
            ready = poller.poll(left)
            if not ready:
                raise TimeoutError(f"no answer within {seconds:g} s")
            for descriptor, _ in ready:
                if descriptor == self._in:
                    unsent = unsent[self._sent(unsent) :]
                    if not unsent:
                        poller.unregister(self._in)
                elif self._received(held):
                    if unsent:
                        raise Breach("it answered before it had read the whole question")
                    return bytes(held)

    def _received(self, held: bytearray) -> bool:
        """Append what has arrived to the current line, without its end; return whether the end has arrived too."""
        chunk = os.read(self._out, _CHUNK)
        if not chunk:
            raise self._ended(bytes(held))
        end = chunk.find(b"\n")
        held += chunk if end < 0 else chunk[:end]
        if len(held) > LONGEST_LINE:
            raise Breach(f"a line of more than {LONGEST_LINE:,} bytes: {_excerpt(held)}")
        if end >= 0 and (more := chunk[end + 1 :] or self.stray()):
            raise Breach(f"it wrote more than one line to stdout: {_excerpt(held)}, then {_excerpt(more)}")
        return end >= 0

    def _sent(self, unsent: memoryview) -> int:
        """Return how much of this was sent; all of it if nobody reads, because stdout then shows the program's end."""
        try:
            return os.write(self._in, unsent[:_CHUNK])
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            return len(unsent)

    def _ended(self, unfinished: bytes) -> Breach:
        rest = f" in the middle of a line: {_excerpt(unfinished)}" if unfinished else ""
        try:
            code = self._process.wait(_LEAVE)
        except subprocess.TimeoutExpired:
            return Breach(f"it closed its stdout{rest}")
        return Ended(f"it ended with {exit_words(code)}{rest}", code)

    def close(self) -> int | None:
        """Close its stdin; return its exit code, or None if it did not end in time and was killed."""
        self._process.stdin.close()  # type: ignore[union-attr]
        code: int | None = None
        try:
            code = self._process.wait(_LEAVE)
        except subprocess.TimeoutExpired:
            if self._apart:
                os.killpg(self._process.pid, signal.SIGKILL)  # not reaped yet: the id is still its own
            else:
                self._process.kill()
            self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]
        return code


def _tag(kind: type[msgspec.Struct]) -> object:
    return kind.__struct_config__.tag


def _excerpt(line: bytes | bytearray) -> str:
    return repr(line[:_SHOWN].decode("utf-8", "replace")) + ("…" if len(line) > _SHOWN else "")


def _read(line: bytes) -> _AnyAnswer:
    try:
        answer: _AnyAnswer = _ANSWERS.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        words = str(error)[:_SHOWN]
        raise Breach(f"its line is not an answer of protocol {PROTOCOL}: {words}; it begins {_excerpt(line)}") from None
    return answer


def hello(conversation: Conversation, seconds: float | None = None) -> Hello:
    """Ask a program to describe itself. Raises Breach, also for another version of the protocol; TimeoutError."""
    description = conversation.ask(Hello, {"ask": "hello", "protocol": PROTOCOL}, seconds)
    if description.protocol != PROTOCOL:
        raise Breach(f"it speaks protocol {description.protocol}; expected {PROTOCOL}")
    if not description.standards:
        raise Breach("it names no standard; expected one of onnx, openvino, onednn")
    for operator, claim in (description.operators or {}).items():
        for type_ in () if claim.types == "all" else claim.types:
            try:
                parse_type(type_)
            except ValueError as error:
                raise Breach(f"it claims {operator[:_SHOWN]} for {str(error)[:_SHOWN]}") from None
    return description


class SharedFiles:
    """Two files for the contents of large tensors: one for the question, one for the answer.

    They are in this process's memory and have no name except `/proc/PID/fd/N`, so nothing stays behind however it ends.
    This side never opens a path, so a program cannot substitute a link or a device for a file.
    """

    def __init__(self) -> None:
        self._read, self._write = (os.memfd_create(f"opconform-{name}") for name in ("question", "answer"))
        self.paths: Mapping[str, str] = {
            "read": f"/proc/{os.getpid()}/fd/{self._read}",
            "write": f"/proc/{os.getpid()}/fd/{self._write}",
        }
        self._length = 0

    def __del__(self) -> None:
        os.close(self._read)
        os.close(self._write)

    def clear(self) -> None:
        """Remove the contents of the previous question and its answer."""
        self._length = 0
        os.ftruncate(self._read, 0)
        os.ftruncate(self._write, 0)

    def put(self, held: bytes) -> dict[str, int]:
        """Append a content to the question's file; return its location."""
        offset, left = self._length, memoryview(held)
        while left:
            written = os.pwrite(self._read, left, self._length)
            self._length += written
            left = left[written:]
        return {"offset": offset, "length": len(held)}

    def check(self, ranges: Sequence[_FileRange]) -> None:
        """Raise Breach if an answer refers to more than its file holds; each byte may belong to only one tensor."""
        size = os.fstat(self._write).st_size
        if size > LONGEST_LINE:
            raise Breach(f"its file has {size:,} bytes, more than {LONGEST_LINE:,}")
        for part in ranges:
            if part.offset + part.length > size:
                raise Breach(
                    f"its file ends after {size:,} bytes; an output is {part.length:,} from {part.offset:,} on"
                )
        if (total := sum(part.length for part in ranges)) > size:
            raise Breach(f"its file has {size:,} bytes, and its outputs take {total:,}: they overlap")

    def take(self, part: _FileRange) -> bytes:
        """Return a copy of a content of the answer, so that later changes to the file have no effect."""
        held = bytearray()
        while chunk := os.pread(self._write, part.length - len(held), part.offset + len(held)):
            held += chunk
        return bytes(held)


def tensor_json(array: Array, files: SharedFiles | None = None) -> dict[str, Any]:
    """Return a tensor in the protocol's form, a large one in a file if there is one.

    Raises Unsupported for text that is not UTF-8.
    """
    name = type_of(array)
    if not array.dtype.hasobject:
        held = content(array)
        where = held if files is None or len(held) < SHARED_FROM else files.put(held)
        encoded = base64.b64encode(where).decode() if isinstance(where, bytes) else where
        return {"type": name, "shape": array.shape, "content": encoded}
    texts = array.reshape(-1).tolist()
    if any("\ud800" <= letter <= "\udfff" for text in texts for letter in text):
        raise Unsupported("the process protocol carries no text that is not UTF-8", "type")
    return {"type": name, "shape": array.shape, "content": texts}


def tensor_from(tensor: _WireTensor, index: int, files: SharedFiles | None = None) -> Array:
    """Return a tensor of an answer. Raises Breach if it is invalid."""
    known = element_types().get(tensor.type)
    if known is None:
        raise Breach(f"outputs[{index}]: {tensor.type[:_SHOWN]!r} is not an element type")
    held = tensor.content
    if isinstance(held, _FileRange):
        if files is None:
            raise Breach(f"outputs[{index}]: its content is in a file, though `hello` did not say `files`")
        held = files.take(held)
    try:
        if isinstance(held, bytes):
            if known.kind == "string":
                raise Breach(f"outputs[{index}]: the content of text is a list of strings")
            array = from_content(tensor.type, tensor.shape, held)
        elif known.kind != "string":
            raise Breach(f"outputs[{index}]: the content of {tensor.type} is base64, not a list")
        else:
            array = np.empty(len(held), object)
            array[:] = held
            array = array.reshape(tensor.shape)
    except (ValueError, OverflowError, MemoryError) as error:
        raise Breach(f"outputs[{index}] of type {tensor.type} and shape {list(tensor.shape)[:8]}: {error}") from None
    return array


def prepare_question(program: Program, drop: Sequence[int] = (), files: SharedFiles | None = None) -> dict[str, Any]:
    """Return the `prepare` question.

    Raises ProgramError if ONNX cannot express the program, and what `tensor_json` raises.
    """
    question: dict[str, Any] = {
        "ask": "prepare",
        "program": program_json(program),
        **_cleared(files),
        "constants": {name: tensor_json(array, files) for name, array in constants(program).items()},
    }
    if program.operator.standard == "onnx":
        question["model"] = base64.b64encode(onnx_bytes(program)).decode()
    return {**question, "drop": list(drop)} if drop else question


def run_question(program: int, inputs: Sequence[Array], files: SharedFiles | None = None) -> dict[str, Any]:
    """Return the `run` question for the program that the question with the id `program` prepared."""
    asked = {"ask": "run", "program": program, **_cleared(files)}
    return {**asked, "inputs": [tensor_json(array, files) for array in inputs]}


def _cleared(files: SharedFiles | None) -> dict[str, Any]:
    """Return a question's `files` entry; the files are emptied first."""
    if files is None:
        return {}
    files.clear()
    return {"files": files.paths}


def values_of(answer: Outputs, files: SharedFiles | None = None) -> list[Any]:
    """Return the outputs of an answer, as `Executable.run` does. Raises Breach."""
    if files is not None:
        files.check([output.content for output in answer.outputs if isinstance(output.content, _FileRange)])
    arrays = [tensor_from(output, index, files) for index, output in enumerate(answer.outputs)]
    if answer.structure is None:
        return list(arrays)
    try:
        return nested_all(map(structure_from, answer.structure), arrays)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise Breach(f"its structure does not match its tensors: {str(error)[:_SHOWN]}") from None


class Command:
    """A user's program behind the process protocol; if it is lost, the process that runs it ends too."""

    def __init__(self, backend: str, command: str) -> None:
        """Start the program and ask it to describe itself. Raises OpconformError if either fails."""
        self.name = backend
        try:
            self._conversation = Conversation(shlex.split(command))
            self._hello = hello(self._conversation)
        except (OSError, Breach) as error:
            shown = "`opconform check-runner` shows what it writes to stderr"
            raise OpconformError(f"{backend}: cannot be started: {error}; {shown}") from error
        self.own_name = self._hello.name
        self.standards: tuple[str, ...] = self._hello.standards
        self.kind: BackendKind = self._hello.kind
        self._files = SharedFiles() if self._hello.files else None
        self._drop: list[int] = []

    def version(self) -> str:
        """Return the program's own name, and the facts that it reports."""
        return self._hello.version

    def describe(self) -> dict[str, str]:
        """Return the program's own name, and the facts that it tells."""
        return {**self._hello.facts, "program": self._hello.name}

    def claims(self) -> Claims | None:
        """Return what the program claims."""
        description = self._hello
        return None if description.operators is None else Claims(description.operators, description.limits)

    def reason(self, error: BaseException, /) -> Reason:
        """Return the reason in an answer."""
        return error.reason if isinstance(error, Refused) else "other"

    def prepare(self, program: Program, /) -> Executable:
        """Ask the program to prepare. Raises Unsupported, Rejected or Refused."""
        question = prepare_question(program, self._drop, self._files)
        self._drop.clear()
        with self._beyond_claims(program):
            self._answered(lambda: self._conversation.ask(Prepared, question))
        return _Program(self, program, self._conversation.asked, self._drop.append)

    def run(self, program: Program, prepared: int, inputs: Sequence[Array]) -> list[Any]:
        """Ask it to run the program that it prepared in question `prepared`. Raises what `prepare` raises."""
        question = run_question(prepared, inputs, self._files)
        with self._beyond_claims(program):
            return self._answered(lambda: values_of(self._conversation.ask(Outputs, question), self._files))

    @contextmanager
    def _beyond_claims(self, program: Program) -> Iterator[None]:
        """Raise Unsupported in place of a refusal, if the program was not claimed."""
        try:
            yield
        except Refused as error:
            if (fault := claim_fault(self._hello, program)) is None:
                raise
            raise Unsupported(f"{fault[0]}: {error}", fault[1]) from error

    def _answered(self, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except Breach as breach:
            self._lost(breach)

    def _lost(self, breach: Breach) -> NoReturn:
        """End this process as a crashing backend would: later answers could not be matched to questions.

        This is not an exception of the backend, which would count as a refusal. The breach is this question's, so the
        case is charged with it, even if it passes in another process. If the program died of a signal or
        failed with an exit code, this process ends in the same way, so that the result names it.
        """
        print(f"{self.name}: {breach}", file=sys.stderr, flush=True)
        if isinstance(breach, Ended) and breach.code < 0:
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        code = breach.code if isinstance(breach, Ended) else 0
        raise ProcessLost(_NO_PROTOCOL if code in (0, CHANNEL_LOST) else code) from breach


class _Program:
    """A prepared program; `drop` gets its id when it is no longer needed."""

    def __init__(self, runner: Command, program: Program, prepared: int, drop: Callable[[int], None]) -> None:
        self._runner, self._program, self._prepared, self._drop = runner, program, prepared, drop

    def run(self, inputs: Sequence[Array], /) -> Sequence[Any]:
        """Return the outputs. Raises Unsupported, Rejected or Refused."""
        return self._runner.run(self._program, self._prepared, inputs)

    def __del__(self) -> None:
        self._drop(self._prepared)


def _elements(types: Iterable[str]) -> set[str]:
    return {name for type_ in types for name in element_names(type_)}


def claim_fault(description: Hello, program: Program) -> tuple[str, Reason] | None:
    """Return why `hello` does not cover a program: its operator version, or its types; None if it does."""
    if description.operators is None:
        return None
    operator = program.operator
    claim = description.operators.get(f"{operator.standard}/{operator.name}")
    if claim is None or (claim.versions != "all" and operator.version not in claim.versions):
        return f"it does not claim {operator}", "operator-version"
    types = [*(port.type for port in program.given), *(port.type for port in program.answers)]
    if claim.types != "all" and not _elements(types) & _elements(claim.types):
        return f"it claims {operator} for {', '.join(claim.types)}", "type"
    return None
