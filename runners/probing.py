"""What an operation takes, found out by making operations: numbers of inputs and outputs, and element types."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from ..specs.model import Port, Signature

COUNTED: Final = 8
"""Up to how many inputs and outputs are tried where a spec does not have more."""

_MOST_TRIALS: Final = 1000  # of the types of other letters, for one letter and type
_MORE = "+"  # the letter of what comes after a spec's last input

TypeOrAny: TypeAlias = str | None
"""An element type by our name; None leaves it open, where a library can do that."""


class Make(Protocol):
    """Makes an operation with inputs and outputs of these types."""

    def __call__(self, inputs: Sequence[TypeOrAny], outputs: Sequence[TypeOrAny], /) -> int | None:
        """Return how many outputs the operation has; None if the library refuses it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What to try: the letter, or the type, of each input and output, and how many of them there are at least.

    `types` are all that a letter can stand for; `usual` are tried for a letter while another one is asked about.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    least_inputs: int
    least_outputs: int
    types: tuple[str, ...]
    usual: tuple[TypeOrAny, ...]

    def letters(self, inputs: int, outputs: int) -> tuple[str, ...]:
        """Return the letters of so many, without types and without what stands for further inputs and outputs."""
        used = dict.fromkeys((*self.inputs[:inputs], *self.outputs[:outputs]))
        return tuple(word for word in used if word not in self.types and word != _MORE)


@dataclass(frozen=True, slots=True)
class Operation:
    """The types of an operation's inputs and outputs, and how many outputs the library gave it."""

    inputs: tuple[TypeOrAny, ...]
    outputs: tuple[TypeOrAny, ...]
    given: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """Numbers of inputs and outputs, and types by letter, that a library takes; `least` is its least operation."""

    least: Operation
    inputs: frozenset[int]
    outputs: frozenset[int]
    types: Mapping[str, frozenset[str]]


def layout_of(signature: Signature, types: Sequence[str], usual: Sequence[TypeOrAny]) -> Layout:
    """Return what to try of a spec's signature, and some inputs and outputs more."""
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

    `optional`: whether to find out the types of letters that its least operation does not have.
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
    return Accepted(least, inputs, frozenset(given), {letter: found for letter, found in types.items() if found})


def _types(layout: Layout, make: Make, letter: str, counts: Sequence[int], m: int) -> frozenset[str] | None:
    """Return the types that a letter can stand for; None where no operation that was made has the letter."""
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
    """Yield types for the letters among `words`, those fixed and every one of the usual types for the others."""
    free = [word for word in dict.fromkeys(words) if word not in layout.types and word not in fixed]
    choices = itertools.islice(itertools.product(layout.usual, repeat=len(free)), _MOST_TRIALS)
    for choice in choices:
        yield {**fixed, **dict(zip(free, choice, strict=True))}
