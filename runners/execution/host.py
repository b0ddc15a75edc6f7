"""The host: opens one backend, prepares and runs programs, in a process that does not know the expected values.

Its requests are trusted, its answers are not: requests are pickled by the judge's process, answers are messages that
are checked before use.

On the judge's side, `Hosts` queues requests, collects answers, and replaces a host that dies.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import math
import os
import time
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Literal, TypeAlias, TypeVar, cast, get_args

import msgspec
import numpy as np

from ...cases.elements import Array, canonical, content, element_types, from_content, type_of
from ...cases.errors import ProgramError
from ...cases.program import Program
from ...cases.results import EffectReason
from ...cases.runner import (
    BackendKind,
    Claims,
    Classifies,
    Describes,
    Executable,
    NotInstalled,
    Promises,
    Reason,
    Runner,
    RunsTogether,
    Unsupported,
    Words,
    kind_of,
)
from ..fitting import misfit
from ..judging.answers import MOST_DIMENSIONS, Answer, Answered, Nesting, Refusal, answer_of, same_array
from ..pool import Begin, InNewWorker, Limits, Loss, Phase, Pool, PoolEvent, Stray, WorkerStartError
from ..registry import BackendSpec, open_runner, package_of

T = TypeVar("T")

Freshness: TypeAlias = Literal["shared", "own", "failures"]
"""Which preparation of a program to run: the one that cases share; one made for this case; one for failures only."""

WORDS_KEPT = 2000
"""Number of characters that a result keeps of a message."""

_KEPT = 16
_OBJECTS_BETWEEN_COLLECTIONS = 50_000
_LONGEST_SHOWN = 80
"""Number of characters that are shown of an element."""
_MOST_FOREIGN = 1 << 20
"""Number of elements that an answer may have if its type is not one of ours; their content is not sent."""
_RECORD_LATE = 1.0
"""Seconds that a record may take in addition to the limits of its case."""
_REASONS = frozenset(get_args(Reason))
_PACKAGE = __package__.partition(".")[0]
_FOREIGN = frozenset({"float128", "complex256", "object", "datetime64", "timedelta64"})


@dataclass(frozen=True, slots=True)
class Request:
    """A run of a program. `program` is pickled once for all requests that are sent together; `inputs` are flat.

    `number` belongs to the caller; the host ignores it. `phase` is the phase whose limit applies. `together`: whether
    it may run together with other programs.
    """

    number: int
    program: Program
    inputs: tuple[Array, ...]
    fresh: Freshness = "shared"
    phase: Phase = "run"
    together: bool = False


class About(msgspec.Struct, frozen=True, tag="about"):
    """A backend's description of itself after it is opened.

    `claims` is what it promises to support, if anything; `name` is its own name, empty if it could not be asked.
    `kind` is what it does with a program.
    """

    version: str
    standards: tuple[str, ...] = ()
    facts: Mapping[str, str] = {}
    claims: Claims | None = None
    name: str = ""
    kind: BackendKind = "run"


class _Tensor(msgspec.Struct, frozen=True, array_like=True):
    type: str
    shape: tuple[int, ...]
    content: bytes


class SideEffect(msgspec.Struct, frozen=True, array_like=True):
    """A side effect of a run, in words: it changed its inputs, or the answer to the request `before`."""

    reason: EffectReason
    words: str
    before: int | None = None


class _Answer(msgspec.Struct, frozen=True, tag="answer"):
    outputs: tuple[_Tensor, ...]
    structure: tuple[Nesting, ...]
    first: bool
    seconds: float
    effects: tuple[SideEffect, ...] = ()
    together: bool = False


class _Refused(msgspec.Struct, frozen=True, tag="refused"):
    words: str
    unsupported: bool
    reason: Reason
    seconds: float


class OurFailure(msgspec.Struct, frozen=True, tag="failed"):
    """A request failed on our side, or because the backend's library is missing; the backend ran nothing.

    `unfit`: because the runner does not fit the library's release, so that other requests would fail, too.
    """

    words: str
    unfit: bool = False


class Unreadable(Exception):  # noqa: N818 - what the backend's process wrote, not a mistake of ours
    """A host's record is not a valid answer; the text says why."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a request; a Loss if the host was lost on it.

    `seconds` is the host's own measurement. `first`: the program had not run before. `together`: it ran together with
    others. Only answers have `effects`.
    """

    answer: Answered | OurFailure | Loss
    seconds: float = 0.0
    first: bool = False
    effects: tuple[SideEffect, ...] = ()
    together: bool = False


def import_early(modules: Iterable[str]) -> None:
    """Import modules, as far as possible: a process that needs one will report what is wrong with it."""
    for module in ("numpy.random", *modules):  # NumPy imports the former on first use
        with contextlib.suppress(Exception):
            importlib.import_module(module)


def collect_less() -> None:
    """Spare the garbage collector the imported modules, which stay, and most of its visits."""
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)


@dataclass(frozen=True)
class HostFactory:
    """Makes a host for a backend, in its process; picklable."""

    backend: BackendSpec

    def warm(self) -> None:
        """Import the fork-safe modules that a host of the backend needs, in the process that hosts are forked from."""
        import_early(self.backend.preload)

    def __call__(self) -> Host:
        """Open the backend. Raises NotInstalled, and whatever importing a user's module raises."""
        runner = open_runner(self.backend)
        collect_less()
        return Host(runner, self.backend.name)


@dataclass
class _Prepared:
    """A program that the backend has prepared, and whether it ran."""

    executable: Executable
    ran: bool = False


@dataclass(frozen=True, slots=True)
class _Given:
    """An answer as the backend returned it; `by` keeps the memory alive that its arrays may be views of."""

    number: int
    by: Executable
    outputs: tuple[Array, ...]
    copies: tuple[Array, ...]


class Unfit(Exception):  # noqa: N818 - says of our side what NotInstalled says of the user's
    """The backend's runner does not fit its library's release; the text is for the user."""


@dataclass
class Host:
    """One backend in one process; a task of the pool. Programs are prepared once, and the last few are kept."""

    runner: Runner
    name: str
    _kept: OrderedDict[tuple[Freshness, str], _Prepared | _Refused] = field(default_factory=OrderedDict)
    _given: _Given | None = None
    _has_run: bool = False

    def run(self, requests: Sequence[Request | None], begin: Begin) -> Iterator[bytes]:
        """Yield a message for each request: outputs or a refusal; for None the backend's description of itself."""
        encoder = msgspec.msgpack.Encoder()
        answered = self._together(requests)  # before any request begins: if this process dies, none is charged
        for index, request in enumerate(requests):
            begin(index, "sibling" if request is not None and request.phase == "sibling" else "prepare")
            try:
                if request is None:
                    yield encoder.encode(self._about())
                else:
                    yield encoder.encode(answered.get(index) or self._answer(request, index, begin))
            except (NotInstalled, ProgramError) as error:
                yield encoder.encode(OurFailure(str(error)[:WORDS_KEPT]))
            except Unfit as error:
                yield encoder.encode(OurFailure(str(error)[:WORDS_KEPT], unfit=True))
            except Exception:
                if self._has_run:  # the backend may have corrupted this process; a new one shows whose fault it is
                    traceback.print_exc()
                    os._exit(os.EX_SOFTWARE)
                raise
            finally:
                self._has_run = self._has_run or request is not None

    def _about(self) -> About:
        facts = self.runner.describe() if isinstance(self.runner, Describes) else {}
        printable_facts = {_utf8(str(name)): _utf8(str(fact)) for name, fact in facts.items()}
        claims = self.runner.claims() if isinstance(self.runner, Promises) else None
        standards = tuple(map(_utf8, self.runner.standards))
        name = _utf8(str(getattr(self.runner, "own_name", self.runner.name)))
        kind = kind_of(self.runner)
        if kind != "run":
            printable_facts = {"kind": kind, **printable_facts}
        return About(_utf8(str(self.runner.version())), standards, printable_facts, claims, name, kind)

    def _together(self, requests: Sequence[Request | None]) -> Mapping[int, _Answer]:
        """Return the answers to requests whose programs ran together, by index."""
        runner = self.runner
        able = {
            index: request
            for index, request in enumerate(requests)
            if request is not None and request.together and (request.fresh, request.program.key) not in self._kept
        }
        if (
            len({request.program.key for request in able.values()}) < 2
            or not isinstance(runner, RunsTogether)
            or kind_of(runner) in ("infer", "check")
        ):
            return {}
        self._has_run, self._given = True, None
        copies = [[array.copy() for array in request.inputs] for request in able.values()]
        answers = {}
        started = time.perf_counter()
        try:
            outputs_of = runner.run_together([(request.program, request.inputs) for request in able.values()])
            seconds = (time.perf_counter() - started) / len(able)
            for (index, request), were, outputs in zip(able.items(), copies, outputs_of, strict=True):
                if outputs is not None and not any(_overwritten(request, were)):
                    answer = self._answer_of(request.program, outputs)
                    tensors, structure = map(_tensor, answer.outputs), map(Nesting.of, answer.structure)
                    answers[index] = _Answer(tuple(tensors), tuple(structure), False, seconds, together=True)
        except Exception:  # each error is seen where its program runs alone
            traceback.print_exc()
        return answers

    def _answer(self, request: Request, index: int, begin: Begin) -> _Answer | _Refused:
        given, self._given = self._given, None
        copies = [array.copy() for array in request.inputs]
        started = time.perf_counter()
        prepared = self._prepared(request.program, request.fresh)
        if isinstance(prepared, _Refused):
            return prepared
        first, prepared.ran = not prepared.ran, True
        begin(index, request.phase)
        try:
            outputs_given = prepared.executable.run(request.inputs)
            answer = self._answer_of(request.program, outputs_given)
            seconds = time.perf_counter() - started
            outputs = tuple(map(_tensor, answer.outputs))
            effects = list(_overwritten(request, copies))
            if request.fresh == "shared" and request.phase == "run":  # other tasks run between two cases
                effects += [] if given is None else _changed(given)
                kept = tuple(output.copy() for output in answer.outputs)
                self._given = _Given(request.number, prepared.executable, answer.outputs, kept)
        except Exception as error:
            return self._refused(error, time.perf_counter() - started)
        return _Answer(outputs, tuple(map(Nesting.of, answer.structure)), first, seconds, tuple(effects))

    def _answer_of(self, program: Program, outputs: Sequence[object]) -> Answer:
        if kind_of(self.runner) == "run":
            return answer_of(program, outputs)
        return Answer(tuple(map(canonical, outputs)))  # texts or bytes, whatever the types of the program's outputs

    def _prepared(self, program: Program, fresh: Freshness) -> _Prepared | _Refused:
        if fresh == "own":
            return self._prepare(program)
        key = fresh, program.key
        prepared = self._kept.get(key)
        if prepared is None:
            prepared = self._kept[key] = self._prepare(program)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return prepared

    def _prepare(self, program: Program) -> _Prepared | _Refused:
        started = time.perf_counter()
        try:
            standards = self.runner.standards
            if program.operator.standard in standards:
                return _Prepared(self.runner.prepare(program))
        except Exception as error:
            return self._refused(error, time.perf_counter() - started)
        words = f"{self.name} implements {', '.join(standards)}, not {program.operator.standard}"
        return _Refused(words, unsupported=True, reason="other", seconds=0.0)

    def _refused(self, error: Exception, seconds: float) -> _Refused:
        """Return the refusal that a backend's exception means.

        Raises NotInstalled and ProgramError that are our own: a backend may raise any class, with any attributes.
        """
        kind, words = type(error), _words(error)
        if issubclass(kind, NotInstalled | ProgramError) and _is_raised_here(error):
            raise error
        if issubclass(kind, Unsupported):
            return _Refused(words[:WORDS_KEPT], unsupported=True, reason=_reason(lambda: error.reason), seconds=seconds)  # type: ignore[attr-defined]
        package = package_of(self.name)
        if package is not None and (unfit := misfit(self.name, package, error, self.runner)):
            raise Unfit(unfit)
        runner = self.runner  # looking for its methods runs its code, if it has properties
        classifies = _asked(lambda: runner if isinstance(runner, Classifies) else None, None)
        known = None if classifies is not None else _words_of_onnxruntime(words)
        if known is not None and known.plain:
            return _Refused(words[:WORDS_KEPT], unsupported=True, reason=known.reason, seconds=seconds)
        reason: Reason = "memory" if issubclass(kind, MemoryError) else "other"
        if reason == "other" and classifies is not None:
            reason = _reason(lambda: classifies.reason(error))
        elif reason == "other" and known is not None:
            reason = known.reason
        return _Refused(f"{_class_name(kind)}: {words}"[:WORDS_KEPT], unsupported=False, reason=reason, seconds=seconds)


def _is_raised_here(error: BaseException) -> bool:
    """Return whether an exception comes from a module of this package, and not from a backend's own code."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return bool(frames) and str(frames[-1][0].f_globals.get("__name__", "")).startswith(f"{_PACKAGE}.")


def _asked(ask: Callable[[], T], otherwise: T) -> T:
    """Return what `ask` returns; `otherwise` if it raises, as a backend's code may."""
    try:
        return ask()
    except Exception:
        return otherwise


def _reason(ask: Callable[[], object]) -> Reason:
    """Return the reason that a backend gives, `other` if it is none that there is."""
    reason = _asked(ask, None)
    return cast(Reason, reason) if type(reason) is str and reason in _REASONS else "other"


def _class_name(kind: type) -> str:
    return _asked(lambda: _utf8(kind.__name__), "Exception")  # a metaclass can make a property of it


def _overwritten(request: Request, copies: Sequence[Array]) -> Iterator[SideEffect]:
    """Yield the first input that the run has changed."""
    for number, (now, was) in enumerate(zip(request.inputs, copies, strict=True)):
        if not same_array(was, now):
            name, _ = request.program.named_leaves[number]
            yield SideEffect("input-overwritten", f"this run wrote to its input {name}: {_difference(was, now)}")
            return


def _changed(given: _Given) -> Iterator[SideEffect]:
    """Yield the first output of the previous answer that has changed since."""
    for number, (was, now) in enumerate(zip(given.copies, given.outputs, strict=True)):
        if not same_array(was, now):
            words = f"this run changed the previous answer: output {number}, {_difference(was, now)}"
            yield SideEffect("answer-changed", words, given.number)
            return


def _difference(was: Array, now: Array) -> str:
    """Return the first element that has changed, and the number of changes."""
    if was.dtype.hasobject:
        pairs = list(zip(was.reshape(-1).tolist(), now.reshape(-1).tolist(), strict=True))
        places = np.array(
            [position for position, (was_element, now_element) in enumerate(pairs) if was_element != now_element]
        )
    else:
        rows = [np.frombuffer(array.tobytes(), np.uint8).reshape(was.size, -1) for array in (was, now)]
        places = np.flatnonzero((rows[0] != rows[1]).any(axis=1))
    index = [int(was_element) for was_element in np.unravel_index(places[0], was.shape)]
    was_element, now_element = (str(array.reshape(-1)[places[0]])[:_LONGEST_SHOWN] for array in (was, now))
    return f"element {index} was {was_element}, then {now_element} ({len(places)} of {was.size} changed)"


def _utf8(text: str) -> str:
    """Return a text with everything escaped that UTF-8 cannot encode; TypeError for what is no text."""
    return bytes.decode(str.encode(text, "utf-8", "backslashreplace"))


def _words(error: Exception) -> str:
    try:
        return _utf8(str(error))
    except Exception as worse:
        return f"its message cannot be read: {_class_name(type(worse))}"


def _words_of_onnxruntime(message: str) -> Words | None:
    """Return the meaning of a message, if it is onnxruntime's: many classes of users call it."""
    from ..backends.onnxruntime import words_of  # noqa: PLC0415 - it imports onnx, which most backends' errors do not need

    return words_of(message)


def _tensor(array: Array) -> _Tensor:
    name = type_of(array)
    return _Tensor(name[:100], array.shape, content(array) if name in element_types() else b"")


_DECODER = msgspec.msgpack.Decoder(About | _Answer | _Refused | OurFailure)


def read_about(record: bytes) -> About:
    """Return a backend's description of itself. Raises Unreadable."""
    about = _decoded(record)
    if not isinstance(about, About):
        raise Unreadable("not a description of the backend")
    return about


def read_answer(record: bytes) -> Reply:
    """Return the answer in a host's record. Raises Unreadable."""
    reply = _decoded(record)
    if isinstance(reply, About):
        raise Unreadable("a description instead of an answer")
    if isinstance(reply, OurFailure):
        return Reply(msgspec.structs.replace(reply, words=reply.words[:WORDS_KEPT]))
    seconds = reply.seconds if math.isfinite(reply.seconds) and reply.seconds >= 0 else 0.0
    if isinstance(reply, _Refused):
        return Reply(Refusal(reply.words[:WORDS_KEPT], reply.unsupported, reply.reason), seconds)
    answer = Answer(tuple(map(_array, reply.outputs)), tuple(map(Nesting.structure, reply.structure)))
    effects = tuple(msgspec.structs.replace(effect, words=effect.words[:WORDS_KEPT]) for effect in reply.effects[:2])
    return Reply(answer, seconds, reply.first, effects, reply.together)


def _decoded(record: bytes) -> About | _Answer | _Refused | OurFailure:
    try:
        message: About | _Answer | _Refused | OurFailure = _DECODER.decode(record)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unreadable(f"not an answer: {error}") from None
    return message


def _array(tensor: _Tensor) -> Array:
    if len(tensor.shape) > MOST_DIMENSIONS:
        raise Unreadable(f"a tensor of {len(tensor.shape)} dimensions, more than {MOST_DIMENSIONS}")
    if any(not 0 <= size < 1 << 40 for size in tensor.shape):
        raise Unreadable(f"a tensor of shape {tensor.shape[:8]}")
    if tensor.type in element_types():
        try:
            return from_content(tensor.type, tensor.shape, tensor.content)
        except (ValueError, TypeError, OverflowError) as error:
            raise Unreadable(f"an invalid tensor: {error}") from None
    if math.prod(tensor.shape) > _MOST_FOREIGN:  # none of its elements came; the judge would allocate all
        raise Unreadable(f"a tensor of shape {tensor.shape[:8]} of a type that no standard has")
    known = tensor.type if tensor.type in _FOREIGN and tensor.type in np.sctypeDict else "void"
    return np.broadcast_to(np.zeros((), known), tensor.shape)


Isolation: TypeAlias = Literal["program", "case"]
"""Which cases share a host: those of one program, or none, so that each case has its own."""


class Hosts:
    """One host at a time, with requests in flight. Use it as a context manager: leaving it ends the host."""

    def __init__(self, backend: BackendSpec, limits: Limits, isolation: Isolation = "program") -> None:
        """Start a host. Raises WorkerStartError if the backend cannot be opened."""
        self._places = itertools.count()
        self._queue: deque[Sequence[Request | None]] = deque()
        self._asked: dict[int, Request] = {}
        self._replies: dict[int, Reply] = {}
        self._strays: list[Stray] = []
        own = replace(limits, record_seconds=limits.prepare_seconds + limits.run_seconds + _RECORD_LATE)
        self._pool = Pool(HostFactory(backend), jobs=1, limits=own, fork=True, reuse=isolation == "program")
        self._events = self._pool.run(self._work())
        self.about = self._described()

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._events.close()  # type: ignore[attr-defined]  # a generator

    def _work(self) -> Iterator[Sequence[Request | None]]:
        while True:
            yield self._queue.popleft() if self._queue else ()

    def _described(self) -> About:
        self._queue.append([None])
        for event in self._events:
            if isinstance(event, Loss):
                return About(f"unknown ({event.exit})")
            if isinstance(event, tuple):
                try:
                    return read_about(event[1])
                except Unreadable as why:
                    return About(f"unknown ({why})")
        raise WorkerStartError("died", "the backend's process never described itself")

    def ask(self, requests: Sequence[Request], *, in_new_host: bool = False) -> range:
        """Queue requests that share a host, or a new one; return the places by which `reply` returns their replies."""
        numbered = [replace(request, number=next(self._places)) for request in requests]
        if not numbered:
            return range(0)
        self._queue.append(InNewWorker(numbered) if in_new_host else numbered)
        self._asked |= {request.number: request for request in numbered}
        return range(numbered[0].number, numbered[-1].number + 1)

    def reply(self, number: int) -> Reply:
        """Wait for the reply to a request; each can be taken once."""
        while number not in self._replies:
            try:
                self._take(next(self._events))
            except WorkerStartError as error:
                self._give_up(error)
        return self._replies.pop(number)

    def _take(self, event: PoolEvent) -> None:
        if isinstance(event, Stray):
            self._strays.append(event)
            return
        request: Request = event.key if isinstance(event, Loss) else event[0]
        del self._asked[request.number]
        reply = Reply(event, event.seconds) if isinstance(event, Loss) else _read(request, event[1])
        self._replies[request.number] = reply

    def _give_up(self, error: WorkerStartError) -> None:
        """Lose the requests in flight if a backend can no longer be opened; the next request tries again."""
        exit_ = f"its backend cannot be opened any more: {error.kind}: {error.message}"[:WORDS_KEPT]
        for number, request in self._asked.items():
            self._replies[number] = Reply(Loss(request, "crash", None, exit_, error.tail, 0.0))
        self._asked.clear()
        self._queue.clear()
        self._events = self._pool.run(self._work())

    def strays(self) -> list[Stray]:
        """Return the deaths since the last call that no request is charged with; their keys are requests."""
        strays, self._strays = self._strays, []
        return strays


def _read(request: Request, record: bytes) -> Reply:
    try:
        return read_answer(record)
    except Unreadable as why:
        return Reply(Loss(request, "corrupt", request.phase, f"its answer held {why}", "", 0.0))
