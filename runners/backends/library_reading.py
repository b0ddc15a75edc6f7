"""Facts that a standard's library reveals about its operators, read in separate processes, which some questions crash.

The library reveals what an operation takes by making operations: numbers of inputs and outputs, and element types.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeAlias

import msgspec

from ...cases.errors import OpconformError
from ...cases.runner import NotInstalled
from ...specs.audit import LibraryReading, LibrarySchema, Listing, Question
from ...specs.model import Port, Signature, Spec, Version, VersionSpec
from ..loading import make
from ..pool import Begin, Limits, Loss, Pool, PoolEvent, Stray, Task, WorkerStartError

COUNTED: Final = 8
"""The number of inputs and outputs that are tried if a spec does not have more."""

_MOST_TRIALS: Final = 1000  # of types for the other letters, for one letter and type
_MORE = "+"  # the letter of inputs after a spec's last

TypeOrAny: TypeAlias = str | None
"""An element type by our name; None leaves it open, if a library supports that."""


class Make(Protocol):
    """Makes an operation with inputs and outputs of these types."""

    def __call__(self, inputs: Sequence[TypeOrAny], outputs: Sequence[TypeOrAny], /) -> int | None:
        """Return the number of outputs of the operation; None if the library refuses it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What to try: the letter or the type of each input and output, and their minimum numbers.

    `types` are all types that a letter can stand for; `usual` are tried for a letter while another one is being
    examined.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    least_inputs: int
    least_outputs: int
    types: tuple[str, ...]
    usual: tuple[TypeOrAny, ...]

    def letters(self, inputs: int, outputs: int) -> tuple[str, ...]:
        """Return the letters of so many inputs and outputs, without fixed types and the letter for further ones."""
        used = dict.fromkeys((*self.inputs[:inputs], *self.outputs[:outputs]))
        return tuple(word for word in used if word not in self.types and word != _MORE)


@dataclass(frozen=True, slots=True)
class Operation:
    """The types of an operation's inputs and outputs, and the number of outputs that the library gave it."""

    inputs: tuple[TypeOrAny, ...]
    outputs: tuple[TypeOrAny, ...]
    given: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """Numbers of inputs and outputs, and types by letter, that a library takes; `least` is its smallest operation."""

    least: Operation
    inputs: frozenset[int]
    outputs: frozenset[int]
    types: Mapping[str, frozenset[str]]


def layout_of(signature: Signature, types: Sequence[str], usual: Sequence[TypeOrAny]) -> Layout:
    """Return what to try for a spec's signature, with some more inputs and outputs."""
    return Layout(
        _lengthened(signature.inputs),
        _lengthened(signature.outputs),
        signature.input_counts[0],
        signature.output_counts[0],
        tuple(types),
        tuple(usual),
    )


def _lengthened(ports: Sequence[Port]) -> tuple[str, ...]:
    words = [port.type for port in ports]
    rest = words[-1] if ports and ports[-1].is_variadic else _MORE
    return tuple(words + [rest] * max(1, COUNTED - len(words)))


def taken(layout: Layout, make: Make, *, optional: bool = True) -> Accepted | None:
    """Return what a library takes of a layout; None if it refuses every operation.

    `optional`: whether to find the types of letters that its smallest operation lacks.
    """
    counts = sorted(range(len(layout.inputs) + 1), key=lambda n: (n < layout.least_inputs, n))
    outputs = sorted(range(len(layout.outputs) + 1), key=lambda n: (n < layout.least_outputs, n))
    tried = (_made(layout, make, n, m) for m in outputs for n in counts)
    least = next((operation for operation in tried if operation), None)
    if least is None:
        return None
    n, m = len(least.inputs), len(least.outputs)
    inputs = frozenset(k for k in counts if _made(layout, make, k, m))
    given = [operation.given for k in outputs if (operation := _made(layout, make, n, k))]
    letters = layout.letters(len(layout.inputs) if optional else n, m)
    types = {letter: _types(layout, make, letter, sorted(inputs), m) for letter in letters}
    return Accepted(least, inputs, frozenset(given), {letter: names for letter, names in types.items() if names})


def _types(layout: Layout, make: Make, letter: str, counts: Sequence[int], m: int) -> frozenset[str] | None:
    """Return the types that a letter can stand for; None if no operation that was made has the letter."""
    n = next((n for n in counts if letter in (*layout.inputs[:n], *layout.outputs[:m])), None)
    if n is None:
        return None
    return frozenset(t for t in layout.types if _made(layout, make, n, m, {letter: t}))


def _made(layout: Layout, make: Make, n: int, m: int, fixed: Mapping[str, str] | None = None) -> Operation | None:
    """Return an operation of n inputs and m outputs, with some types for the letters that are not fixed."""
    for types in _assignments(layout, (*layout.inputs[:n], *layout.outputs[:m]), fixed or {}):
        inputs = tuple(types.get(word, word) for word in layout.inputs[:n])
        outputs = tuple(types.get(word, word) for word in layout.outputs[:m])
        if (given := make(inputs, outputs)) is not None:
            return Operation(inputs, outputs, given)
    return None


def _assignments(layout: Layout, words: Sequence[str], fixed: Mapping[str, str]) -> Iterator[Mapping[str, TypeOrAny]]:
    """Yield types for the letters among `words`: the fixed ones, and each of the usual types for the others."""
    free = [word for word in dict.fromkeys(words) if word not in layout.types and word not in fixed]
    choices = itertools.islice(itertools.product(layout.usual, repeat=len(free)), _MOST_TRIALS)
    for choice in choices:
        yield {**fixed, **dict(zip(free, choice, strict=True))}


OPERATIONS: Mapping[str, str] = {
    "openvino": f"{__package__}.openvino_operations:OpenVinoOperations",
    "onednn": f"{__package__}.onednn_operations:OneDnnOperations",
}
"""The class that queries the library of each standard."""

_LISTING = "listing"
_LIMITS = Limits(run_seconds=30.0)
_ENCODER = msgspec.msgpack.Encoder()
_LISTINGS = msgspec.msgpack.Decoder(tuple[Listing, bool, tuple[str, ...]])
_SCHEMAS = msgspec.msgpack.Decoder(LibrarySchema)


class Operations(Protocol):
    """A library that can be queried about its operations."""

    exact: bool
    untold: tuple[str, ...]

    def listing(self) -> Listing:
        """Return its operators."""

    def schema(self, question: Question, /) -> LibrarySchema:
        """Return the facts about one of them."""


class LibraryLost(Exception):  # noqa: N818 - what happened to it
    """A library's process ended before the library listed its operators."""


def read_library(standard: str, specs: Iterable[Spec], target: str | None = None) -> LibraryReading:
    """Return the facts about all operator versions that a standard's library reveals, using the specs' signatures.

    `target` names a class other than the standard's. Raises NotInstalled without the library, OpconformError if it
    cannot be used, LibraryLost.
    """
    known = {
        f"{spec.name}-{v}": (version.signature, _words_of(version))
        for spec in specs
        for v, version in spec.versions.items()
    }
    answers = _Answers(partial(_Asking, target or OPERATIONS[standard], known))
    answers.read()
    if answers.listing is None:
        raise LibraryLost("it did not list its operators")
    return LibraryReading(standard, answers.listing, answers.schemas, answers.exact, answers.untold)


def _words_of(version: VersionSpec) -> dict[str, tuple[str, ...]]:
    """Return the values of text attributes among the levels of a version's parameters, also in bundles."""
    names = {attribute.name for attribute in version.signature.attributes if attribute.kind == "string"}
    texts: dict[str, dict[str, None]] = {}
    for parameter, levels in version.parameters.items():
        for level in levels.values():
            for name, value in level.items() if isinstance(level, Mapping) else [(parameter, level)]:
                if name in names and type(value) is str:
                    texts.setdefault(name, {})[value] = None
    return {name: tuple(values) for name, values in texts.items()}


class _Answers:
    """The library's answers so far; further questions depend on its list of operators."""

    def __init__(self, factory: Callable[[], Task]) -> None:
        self._pool = Pool(factory, jobs=1, limits=_LIMITS)
        self._keys: dict[str, tuple[str, Version]] = {}
        self.listing: Listing | None = None
        self.exact = False
        self.untold: tuple[str, ...] = ()
        self.schemas: dict[tuple[str, Version], LibrarySchema | str] = {}

    def read(self) -> None:
        """Ask all questions. Raises LibraryLost, NotInstalled, OpconformError."""
        try:
            for answer in self._pool.run(self._batches()):
                self._take(answer)
        except WorkerStartError as error:
            if error.kind == NotInstalled.__name__:
                raise NotInstalled(error.message) from None
            if error.kind == OpconformError.__name__:
                raise OpconformError(error.message) from None
            raise LibraryLost(f"{error}\n{error.tail}" if error.tail else str(error)) from None

    def _batches(self) -> Iterator[Sequence[str]]:
        yield [_LISTING]
        while self.listing is None:
            yield []
        yield list(self._keys)

    def _take(self, answer: PoolEvent) -> None:
        if isinstance(answer, Stray):  # the questions of that time have been answered since
            return
        key = answer.key if isinstance(answer, Loss) else answer[0]
        if key != _LISTING:
            schema = _words(answer) if isinstance(answer, Loss) else _SCHEMAS.decode(answer[1])
            self.schemas[self._keys[key]] = schema
        elif isinstance(answer, Loss):
            raise LibraryLost(f"asked for its operators, {_words(answer)}")
        else:
            self.listing, self.exact, self.untold = _LISTINGS.decode(answer[1])
            versions = self.listing.versions
            self._keys = {f"{name}-{version}": (name, version) for name in versions for version in versions[name]}


class _Asking:
    """The task of a library's process: answers questions by their keys, in messages."""

    def __init__(self, target: str, known: Mapping[str, tuple[Signature, Mapping[str, tuple[str, ...]]]]) -> None:
        self._operations: Operations = make("the library", target)
        self._known = known

    def run(self, keys: Sequence[str], begin: Begin, /) -> Iterator[bytes]:
        """Yield the answers."""
        for index, key in enumerate(keys):
            begin(index, "run")
            yield self._described() if key == _LISTING else self._schema(key)

    def _schema(self, key: str) -> bytes:
        name, _, text = key.rpartition("-")
        version = int(text) if text.isdecimal() else text
        signature, words = self._known.get(key, (None, {}))
        return _ENCODER.encode(self._operations.schema(Question(name, version, signature, words)))

    def _described(self) -> bytes:
        operations = self._operations
        return _ENCODER.encode((operations.listing(), operations.exact, operations.untold))


def _words(loss: Loss) -> str:
    if loss.kind == "raised":
        return f"it failed: {loss.tail.splitlines()[-1] if loss.tail else loss.exit}"
    return f"its process ended ({loss.exit})" + (f"; last it wrote:\n{loss.tail}" if loss.tail else "")
