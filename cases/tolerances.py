"""ONNX's tolerances as bounds: what its own runner of backend tests admits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .elements import Array, comparable, element_type, type_of
from .expectation import Bounds, Flag

RELATIVE, ABSOLUTE = 1e-3, 1e-7
"""The tolerances of ONNX's own runner of backend tests, unless a folder has others."""


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far from an expected value an answer may be. Raises ValueError for what are no tolerances."""

    relative: float = RELATIVE
    absolute: float = ABSOLUTE

    def __post_init__(self) -> None:
        for one, below in ((self.relative, 1.0), (self.absolute, math.inf)):
            if type(one) not in (int, float) or not 0 <= one < below:
                raise ValueError(f"expected 0 <= rtol < 1 and 0 <= atol; read {self.relative!r} and {self.absolute!r}")

    def bounds(self, array: Array) -> Bounds:
        """Return what is admitted: |expected - answer| <= atol + rtol * |answer|, NaN and infinities in place.

        Text and truth values must be equal. ValueError for complex numbers, which bounds do not join.
        """
        name = type_of(array)
        kind = element_type(name)
        if kind.kind == "complex":
            raise ValueError(f"tolerances of {name} are no bounds")
        if kind.kind in ("bool", "string"):
            return Bounds(name, array, array, array)
        if kind.is_integer:
            return Bounds(name, array, self._integers(array, -1), self._integers(array, 1))
        value = comparable(array)
        finite = np.isfinite(value)
        number = np.where(finite, value, 0.0)
        lower, upper = -self._farthest(-number), self._farthest(number)
        flags = np.zeros(value.shape, np.uint8)
        for flag, where in (
            (Flag.NAN, np.isnan(value)),
            (Flag.POSITIVE_INFINITY, value == np.inf),
            (Flag.NEGATIVE_INFINITY, value == -np.inf),
        ):
            flags[where] = flag
        lower, upper = (np.where(finite, end, np.nan) for end in (lower, upper))
        return Bounds(name, value, lower, upper, flags if flags.any() else None)

    def _farthest(self, number: Array) -> Array:
        """Return the largest answer that is admitted for each expected number."""
        reach = number + self.absolute
        with np.errstate(over="ignore"):
            return np.where(reach >= 0, reach / (1 - self.relative), reach / (1 + self.relative))

    def _integers(self, array: Array, sign: int) -> Array:
        kind, relative, absolute = element_type(type_of(array)), Fraction(self.relative), Fraction(self.absolute)
        ends = []
        for number in array.reshape(-1).tolist():
            reach = sign * number + absolute
            end = math.floor(reach / (1 - relative) if reach >= 0 else reach / (1 + relative))
            ends.append(min(max(sign * end, kind.smallest), kind.largest))
        return np.array(ends, array.dtype).reshape(array.shape)
