"""The formula itself as a list of primitives, for those who want to compute it again without this package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .tensors import Axes, broadcast_shape


@dataclass(frozen=True)
class Primitive:
    """One primitive of a formula: its name, the primitives that it is applied to by their places, and the rest."""

    name: str
    of: tuple[int, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rational(self) -> bool:
        """Whether fractions are enough to compute it."""
        return self.name not in ("exp", "log", "sqrt")


class Tape:
    """A tensor of which only the shape is known, and how it came about; no lane axis."""

    __slots__ = ("_made", "place", "shape")

    def __init__(self, made: list[Primitive], place: int, shape: tuple[int, ...]) -> None:
        self._made, self.place, self.shape = made, place, shape

    @classmethod
    def inputs(cls, shapes: Sequence[tuple[int, ...]]) -> list[Tape]:
        """Return a formula's inputs, which share one tape."""
        made: list[Primitive] = []
        found = []
        for index, shape in enumerate(shapes):
            made.append(Primitive("input", (), {"input": index}))
            found.append(cls(made, index, shape))
        return found

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        """All primitives up to the one that made this tensor."""
        return tuple(self._made[: self.place + 1])

    def _next(self, name: str, others: Sequence[Tape], shape: tuple[int, ...], **parameters: object) -> Tape:
        self._made.append(Primitive(name, (self.place, *(o.place for o in others)), parameters))
        return Tape(self._made, len(self._made) - 1, shape)

    def sum(self, axes: Axes, keepdims: bool) -> Tape:
        """Add up along `axes`."""
        shape = tuple(1 if i in axes else d for i, d in enumerate(self.shape) if keepdims or i not in axes)
        return self._next("sum", (), shape, axes=list(axes), keepdims=keepdims)

    def __truediv__(self, divisor: int | Tape) -> Tape:
        if isinstance(divisor, int):
            return self._next("divide", (), self.shape, by=divisor)
        return self._next("divide", (divisor,), broadcast_shape((self.shape, divisor.shape)))

    def stack(self, others: Sequence[Tape]) -> Tape:
        """Broadcast to one shape and stack along a new first axis."""
        shape = broadcast_shape((self.shape, *(o.shape for o in others)))
        return self._next("stack", others, (1 + len(others), *shape))

    def __neg__(self) -> Tape:
        return self._next("negate", (), self.shape)

    def __add__(self, other: Tape) -> Tape:
        return self._next("add", (other,), broadcast_shape((self.shape, other.shape)))

    def __sub__(self, other: Tape) -> Tape:
        return self._next("subtract", (other,), broadcast_shape((self.shape, other.shape)))

    def __mul__(self, other: Tape) -> Tape:
        return self._next("multiply", (other,), broadcast_shape((self.shape, other.shape)))

    def exp(self) -> Tape:
        """Return e to the power of every element."""
        return self._next("exp", (), self.shape)

    def log(self) -> Tape:
        """Return the natural logarithm of every element."""
        return self._next("log", (), self.shape)

    def sqrt(self) -> Tape:
        """Return the square root of every element."""
        return self._next("sqrt", (), self.shape)
