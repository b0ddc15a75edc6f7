"""The carriers of exact values: float64 for results of 32 bits and less, multiprecision for float64 results."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import gmpy2
import numpy as np

from ...cases.elements import Array
from .exact_sums import whole_sums
from .tensors import Axes

_PRECISION = 160  # bits: three times float64's, so that the carrier's own error is below 2**-100 of any bound


class Numbers(Protocol):
    """How exact values are carried and computed with; +, -, * and / are those of the arrays."""

    name: str

    def context(self) -> AbstractContextManager[object]:
        """Return the context in which the carrier's precision holds."""

    def lift(self, array: Array) -> Array:
        """Return a float array's values; float64 numbers that nothing is computed of may stay such."""

    def widen(self, values: Array) -> Array:
        """Return values ready to be computed with."""

    def floats(self, values: Array) -> Array:
        """Return values rounded to float64."""

    def sum(self, values: Array, axes: Axes) -> Array:
        """Add up along `axes`, which stay with extent 1."""

    def apply(self, function: str, values: Array) -> Array:
        """Return `exp`, `log` or `sqrt` of every value."""

    def is_float(self, values: Array) -> Array:
        """Return which values are float64 numbers exactly."""


class Float64:
    """Values in float64; for results of 32 bits and less its own error is below 2**-28 of the bound."""

    name = "float64"

    def context(self) -> AbstractContextManager[object]:
        """Need none."""
        return nullcontext()

    def lift(self, array: Array) -> Array:
        """Widen, which is exact."""
        return array.astype(np.float64)

    def widen(self, values: Array) -> Array:
        """Return the values themselves."""
        return values

    def floats(self, values: Array) -> Array:
        """Return the values themselves."""
        return values

    def sum(self, values: Array, axes: Axes) -> Array:
        """Add up along `axes`, which stay with extent 1."""
        return np.asarray(values.sum(axis=axes, keepdims=True))

    def apply(self, function: str, values: Array) -> Array:
        """Return `exp`, `log` or `sqrt`, correctly rounded: NumPy's differ between processors in the last bit."""
        return self.floats_of(Multiprecision().apply(function, values))

    @staticmethod
    def floats_of(values: Array) -> Array:
        """Round multiprecision values to float64."""
        return Multiprecision().floats(values)

    def is_float(self, values: Array) -> Array:
        """Return True for all."""
        return np.ones(values.shape, bool)


class Multiprecision:
    """Values in object arrays of 160-bit gmpy2.mpfr, whose exponents do not run out, and inputs as float64 arrays."""

    name = "mpfr160"

    def context(self) -> AbstractContextManager[object]:
        """Return a context of 160 bits for this thread."""
        local: AbstractContextManager[object] = gmpy2.context(precision=_PRECISION)
        return local

    def lift(self, array: Array) -> Array:
        """Widen to float64, which is exact: making numbers of many bits costs microseconds each."""
        return array.astype(np.float64)

    def widen(self, values: Array) -> Array:
        """Return multiprecision numbers."""
        return values if values.dtype == object else self._map(gmpy2.mpfr, values.astype(object))

    def floats(self, values: Array) -> Array:
        """Round to nearest float64."""
        return self._map(float, values).astype(np.float64) if values.dtype == object else values

    def sum(self, values: Array, axes: Axes) -> Array:
        """Add up along `axes`: float64 numbers exactly, and the sum is rounded; others one after the other."""
        if values.dtype != object and values.size:
            total = self._sum_of_floats(values, axes)
            if total is not None:
                return total
        values = self.widen(values)
        for axis in axes:
            values = np.add.reduce(values, axis=axis, keepdims=True, initial=gmpy2.mpfr(0) if not values.size else None)
        return values

    def _sum_of_floats(self, floats: Array, axes: Axes) -> Array | None:
        finite = np.isfinite(floats)
        found = whole_sums(floats if finite.all() else np.where(finite, floats, 0.0), axes)
        if found is None:
            return None
        whole, unit = found
        scaled = gmpy2.mul_2exp if unit >= 0 else gmpy2.div_2exp
        total = self._map(lambda number: scaled(gmpy2.mpfr(number), abs(unit)), whole)
        special = ~finite.all(axis=axes, keepdims=True)
        if special.any():
            with np.errstate(all="ignore"):  # infinities of both signs make NaN
                alone = np.where(finite, 0.0, floats).sum(axis=axes, keepdims=True)
            total = np.where(special, self._map(gmpy2.mpfr, alone.astype(object)), total)
        minus = ((floats == 0) & np.signbit(floats)).all(axis=axes, keepdims=True)
        return np.where(minus, gmpy2.mpfr("-0.0"), total) if minus.any() else total

    def apply(self, function: str, values: Array) -> Array:
        """Return `exp`, `log` or `sqrt` of every value, correctly rounded to 160 bits."""
        with self.context():
            return self._map(getattr(gmpy2, function), self.widen(values))

    def is_float(self, values: Array) -> Array:
        """Return which values float64 holds exactly; NaN is held."""
        if values.dtype != object:
            return np.ones(values.shape, bool)
        return self._map(lambda v: bool(v == float(v) or v != v), values).astype(bool)  # noqa: PLR0124 - NaN

    @staticmethod
    def _map(function: object, values: Array) -> Array:
        with np.errstate(all="ignore"):  # NumPy reports what is meant: infinities and NaN pass through
            mapped = np.frompyfunc(function, 1, 1)(values)  # type: ignore[call-overload]
        return np.asarray(mapped, object).reshape(values.shape)
