"""What the standard admits for a case: labelled options, each a bound for every element of every output."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .elements import Array, content
from .results import Level

Labels: TypeAlias = tuple[tuple[str, str], ...]


class Flag(enum.IntFlag):
    """What an element admits beside the values between its bounds."""

    POSITIVE_INFINITY = 1
    NEGATIVE_INFINITY = 2
    NAN = 4
    FREE = 8
    ZERO = 16
    NEGATIVE_ZERO = 32  # the zero between the bounds must carry a minus sign
    POSITIVE_ZERO = 64  # … a plus sign


EXCEPTIONAL = Flag.POSITIVE_INFINITY | Flag.NEGATIVE_INFINITY | Flag.NAN


@dataclass(frozen=True, slots=True)
class Spread:
    """A bound on the second moment of the errors over a whole tensor: mean of (error/sigma)² <= limit.

    `sigma` has the output's shape; it is the standard deviation that rounding errors reach in the worst usual order of
    summation, as TOSA's compliance mode DOT_PRODUCT bounds it.
    """

    sigma: Array
    limit: float = 4.0


@dataclass(frozen=True, slots=True)
class Residue:
    """What `Bounds.value` leaves of the exact result, which lies within `doubt` of value + `rest`; float64, one shape.

    A rest that is too small for float64 is zero.
    """

    rest: Array
    doubt: Array


@dataclass(frozen=True, slots=True)
class Bounds:
    """The admissible values of one output, element by element.

    All arrays have the output's shape. Floating-point outputs: `value` is the exact result rounded to float64, `lower`
    and `upper` are float64; NaN in `lower` admits no number. Integers and bool: all three have the output's own dtype.
    `flags` holds bits of Flag, or is None where none is set. `residue` decides no verdict: None if all that is known of
    the exact result is that it rounds to `value`.
    """

    type: str
    value: Array
    lower: Array
    upper: Array
    flags: Array | None = None
    spread: Spread | None = None
    residue: Residue | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that the output must have."""
        return self.value.shape


@dataclass(frozen=True, slots=True)
class Option:
    """One admissible answer, and which option of which silence it is.

    `kind`: `values` (within the bounds), `rejected` (a refusal), `anything` (whatever shape and value). `exceptional`:
    admits a tensor only if an infinity or NaN that the flags allow does show, so that it can be told from the option
    without. `level` is `declared` for what only a declared arithmetic admits.
    """

    labels: Labels
    outputs: tuple[Bounds, ...] = ()
    kind: Literal["values", "rejected", "anything"] = "values"
    exceptional: bool = False
    level: Level = "strict"


@dataclass(frozen=True, slots=True)
class Expectation:
    """The options that the standard admits, in order of preference; none if the input is invalid."""

    options: tuple[Option, ...]
    types: tuple[str, ...]

    @property
    def invalid(self) -> bool:
        """Whether the case's input is invalid: no answer is right, a refusal is welcome."""
        return not self.options

    @property
    def silences(self) -> dict[str, tuple[str, ...]]:
        """The silences that apply, each with its options in order."""
        found: dict[str, dict[str, None]] = {}
        for option in self.options:
            for silence, answer in option.labels:
                found.setdefault(silence, {})[answer] = None
        return {silence: tuple(answers) for silence, answers in found.items()}

    @property
    def digest(self) -> str:
        """sha256 over all that decides a verdict, to the bit."""
        told = head(self.types, [(option, [b.shape for b in option.outputs]) for option in self.options])
        arrays = [content(a) for option in self.options for bounds in option.outputs for a in decisive(bounds)]
        return hashlib.sha256(b"".join([told, *arrays])).hexdigest()


def head(types: tuple[str, ...], options: Sequence[tuple[Option, Sequence[tuple[int, ...]]]]) -> bytes:
    """Return what an expectation's digest is taken over beside arrays: of each option, and its outputs' shapes."""
    heads = [
        (o.labels, o.kind, o.exceptional, o.level, [(b.type, s) for b, s in zip(o.outputs, shapes, strict=True)])
        for o, shapes in options
    ]
    return repr((types, heads)).encode()


def decisive(bounds: Bounds) -> list[Array]:
    """Return the arrays that decide a verdict, in the order in which a digest is taken over them."""
    arrays = [bounds.lower, bounds.upper]
    if bounds.flags is not None:
        arrays.append(bounds.flags)
    if bounds.spread is not None:
        arrays += [bounds.value, bounds.spread.sigma]
    return arrays
