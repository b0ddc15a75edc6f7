"""Exact values beyond float64: object arrays of 160-bit gmpy2.mpfr, whose exponents do not run out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np

from ...cases.elements import Array
from .exact_sums import whole_sums

PRECISION = 160
"""Bits: three times float64's, so that the carrier's own error is below 2**-100 of any bound."""


def precise() -> Any:
    """Return a context of 160 bits for this thread."""
    return gmpy2.context(precision=PRECISION)


def each(function: Callable[..., Any], *values: Array) -> Array:
    """Apply a function of numbers to every element (or elements of one place); object array of their shape."""
    with np.errstate(all="ignore"):  # infinities and NaN pass through
        mapped = np.asarray(np.frompyfunc(function, len(values), 1)(*values), object)
    return mapped.reshape(np.broadcast_shapes(*(v.shape for v in values)))


def widened(values: Array) -> Array:
    """Return values ready to be computed with."""
    return values if values.dtype == object else each(gmpy2.mpfr, values.astype(object))


def rounded(values: Array) -> Array:
    """Return values rounded to nearest float64."""
    return each(float, values).astype(np.float64) if values.dtype == object else values


def is_float(values: Array) -> Array:
    """Return which values float64 holds exactly; NaN is held."""
    if values.dtype != object:
        return np.ones(values.shape, bool)
    return each(lambda v: bool(v == float(v) or v != v), values).astype(bool)  # noqa: PLR0124 - NaN


def summed(values: Array, axes: tuple[int, ...]) -> Array:
    """Add up along `axes`, which stay with extent 1: float64 numbers exactly, others one after the other."""
    if values.dtype != object and values.size:
        total = _sum_of_floats(values, axes)
        if total is not None:
            return total
    values = widened(values)
    for axis in axes:
        values = np.add.reduce(values, axis=axis, keepdims=True, initial=gmpy2.mpfr(0) if not values.size else None)
    return values


def _sum_of_floats(floats: Array, axes: tuple[int, ...]) -> Array | None:
    finite = np.isfinite(floats)
    found = whole_sums(floats if finite.all() else np.where(finite, floats, 0.0), axes)
    if found is None:
        return None
    whole, unit = found
    scaled = gmpy2.mul_2exp if unit >= 0 else gmpy2.div_2exp
    total = each(lambda number: scaled(gmpy2.mpfr(number), abs(unit)), whole)
    special = ~finite.all(axis=axes, keepdims=True)
    if special.any():  # infinities of both signs make NaN
        alone = np.where(finite, 0.0, floats).sum(axis=axes, keepdims=True)
        total = np.where(special, each(gmpy2.mpfr, alone.astype(object)), total)
    minus = ((floats == 0) & np.signbit(floats)).all(axis=axes, keepdims=True)
    return np.where(minus, gmpy2.mpfr("-0.0"), total) if minus.any() else total
