"""Exact arithmetic by definition alone: formats, means, and which elements meet in which result.

Made from IEEE 754-2019, clauses 3.3 and 4.3.1, and the standards' pages, and nothing of the package, so that it can be
held against it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

UNIT = 1 << 1074
"""How many units make one: the unit is the smallest positive number of the widest format."""

Number: TypeAlias = int | float
"""A finite number in units, or a float that is an infinity or NaN."""


@dataclass(frozen=True)
class Binary:
    """A format of `precision` significant bits whose largest exponent is `emax`; its smallest is 1 - emax."""

    precision: int
    emax: int

    @property
    def lowest(self) -> int:
        """The exponent, in units, of the smallest positive number."""
        return 1074 + (1 - self.emax) - (self.precision - 1)

    @property
    def largest(self) -> int:
        """The largest finite number, in units."""
        return ((1 << self.precision) - 1) << (1074 + self.emax - self.precision + 1)

    def nearest(self, numerator: int, denominator: int = 1) -> Number:
        """Round a fraction of units to nearest, ties to even."""
        magnitude = abs(numerator)
        grid = self._grid(magnitude // denominator)
        whole, rest = divmod(magnitude, denominator << grid)
        twice = 2 * rest - (denominator << grid)
        rounded = (whole + (twice > 0 or (twice == 0 and whole % 2 == 1))) << grid
        if rounded > self.largest:
            return math.inf if numerator > 0 else -math.inf
        return rounded if numerator >= 0 else -rounded

    def around(self, numerator: int, denominator: int = 1) -> tuple[int, int]:
        """Return the largest number not above a fraction of units, and the smallest not below it."""
        grid = self._grid(abs(numerator) // denominator)
        step = denominator << grid
        return (numerator // step) << grid, -(-numerator // step << grid)

    def holds(self, number: int) -> bool:
        """Return whether a finite number is one of the format's."""
        return self.nearest(number) == number

    def _grid(self, whole: int) -> int:
        return max(whole.bit_length() - self.precision, self.lowest)


HALF, BRAIN, SINGLE, DOUBLE = Binary(11, 15), Binary(8, 127), Binary(24, 127), Binary(53, 1023)
FORMATS = {"float16": HALF, "bfloat16": BRAIN, "float32": SINGLE, "float64": DOUBLE}
DTYPES = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}
PATTERNS = {"float16": np.uint16, "bfloat16": np.uint16, "float32": np.uint32, "float64": np.uint64}


def numbers(array: Any) -> list[Number]:
    """Return a tensor's elements in C order."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return [in_units(v) for v in np.asarray(array).astype(np.float64).reshape(-1).tolist()]


def in_units(value: float) -> Number:
    """Return a Python float as a number in units; infinities and NaN as they are."""
    if not math.isfinite(value):
        return value
    numerator, denominator = value.as_integer_ratio()
    return numerator * (UNIT // denominator)


def value(number: Number) -> float:
    """Return the float64 nearest to a number."""
    return number / UNIT if isinstance(number, int) else number


def tensor(elements: Iterable[Number], name: str, shape: tuple[int, ...]) -> Any:
    """Return a tensor of numbers that the type holds."""
    return np.array([value(e) for e in elements], np.float64).astype(DTYPES[name]).reshape(shape)


# Which elements meet in which result, index by index, as the standards' pages put it


Shape: TypeAlias = tuple[int, ...]


def kept(shape: Shape, axes: Sequence[int]) -> Shape:
    """The shape of a reduction that keeps its axes, each with extent 1."""
    return tuple(1 if i in axes else extent for i, extent in enumerate(shape))


def reduced(shape: Shape, axes: Sequence[int]) -> Shape:
    """The shape of a reduction that removes its axes."""
    return tuple(extent for i, extent in enumerate(shape) if i not in axes)


def indices(shape: Shape) -> Iterator[Shape]:
    """All indices of a tensor in C order."""
    return itertools.product(*map(range, shape))


def reduction_groups(shape: Shape, axes: Sequence[int]) -> list[list[int]]:
    """For each result in C order, the positions of the inputs that it is the mean of."""
    groups: dict[Shape, list[int]] = {index: [] for index in indices(reduced(shape, axes))}
    for position, index in enumerate(indices(shape)):
        groups[reduced(index, axes)].append(position)
    return list(groups.values())


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Shapes aligned at the right: where they differ one of them has 1, or nothing."""
    rank = max(map(len, shapes))
    whole = []
    for axis in range(-rank, 0):
        extents = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        assert len(extents) <= 1, shapes
        whole.append(extents.pop() if extents else 1)
    return tuple(whole)


def broadcast_groups(shapes: Sequence[Shape]) -> list[list[int]]:
    """For each result in C order, the position in each input of the element that enters it."""
    return [[_position(index, shape) for shape in shapes] for index in indices(broadcast(shapes))]


def _position(index: Shape, shape: Shape) -> int:
    position = 0
    for i, extent in zip(index[len(index) - len(shape) :], shape, strict=True):
        position = position * extent + (i if extent > 1 else 0)
    return position


# Exact means, element by element, from whole numbers and the standards' definitions of what is reduced into what


@dataclass(frozen=True)
class Mean:
    """The addends of one element of a result, and their exact mean: a fraction of units, or an infinity or NaN."""

    addends: list[Number]

    @property
    def finite(self) -> bool:
        return all(isinstance(a, int) for a in self.addends)

    @property
    def exact(self) -> Fraction:
        return Fraction(sum(self.addends), len(self.addends))

    @property
    def magnitudes(self) -> int:
        return sum(abs(a) for a in self.addends)

    @property
    def special(self) -> float:
        """What infinities and NaN leave: NaN beside NaN, or where both infinities meet."""
        seen = {a for a in self.addends if not isinstance(a, int)}
        return seen.pop() if len(seen) == 1 else math.nan

    def rounded(self, name: str) -> Number:
        if self.finite:
            return FORMATS[name].nearest(self.exact.numerator, self.exact.denominator)
        return self.special

    def exact_in_every_order(self, name: str) -> bool:
        """Whether all partial sums are numbers of the type, and so is the mean, its share of each addend included."""
        form, n = FORMATS[name], len(self.addends)
        if n == 1 or not any(self.addends):
            return True
        lowest = min(a & -a for a in self.addends if a)
        fits = self.magnitudes <= lowest << form.precision and self.magnitudes <= form.largest
        return fits and n & (n - 1) == 0 and lowest // n >= 1 << form.lowest


def means_over(x: Any, axes: tuple[int, ...]) -> list[Mean]:
    elements = numbers(x)
    return [Mean([elements[i] for i in group]) for group in reduction_groups(x.shape, axes)]


def means_of(xs: list[Any]) -> list[Mean]:
    elements = [numbers(x) for x in xs]
    groups = broadcast_groups([x.shape for x in xs])
    return [Mean([e[i] for e, i in zip(elements, group, strict=True)]) for group in groups]
