"""Binary floating-point formats by definition alone: numbers as whole multiples of 2^-1074, rounded exactly.

Made from IEEE 754-2019, clauses 3.3 and 4.3.1, and nothing of the package, so that it can be held against it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
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
