"""Floating-point formats over float64 arrays: rounding to them, and which numbers they hold."""

from __future__ import annotations

import numpy as np

from ...cases.elements import Array, FloatFormat, element_type

NO_BIT = 5000
"""A lowest set bit above every real one, for zeros."""


def formats() -> dict[str, FloatFormat]:
    """Return the formats that arithmetic may be done in: the element types', and TensorFloat-32."""
    named = {name: element_type(name).float_format for name in ("float16", "bfloat16", "float32", "float64")}
    return {**named, "tf32": FloatFormat(11, -126, 127)}


def contains(form: FloatFormat, other: FloatFormat) -> bool:
    """Return whether a format holds every number of another."""
    return form.precision >= other.precision and form.emax >= other.emax and _lowest(form) <= _lowest(other)


def _lowest(form: FloatFormat) -> int:
    return form.emin - form.precision + 1


def lowest_bit(values: Array) -> Array:
    """Return the exponent of the lowest set bit of each finite float64; a large number for zeros."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.asarray(np.where(whole == 0, NO_BIT, exponent - 53 + lowest))


def holds(form: FloatFormat, values: Array) -> Array:
    """Return which float64 values the format represents exactly; infinities and NaN are held by all."""
    if form.precision >= 53:
        return np.ones(values.shape, bool)
    finite = np.isfinite(values)
    numbers = np.where(finite, values, 0.0)
    exponent = np.frexp(numbers)[1]
    grid = np.maximum(exponent - form.precision, _lowest(form))
    return np.asarray(~finite | ((lowest_bit(numbers) >= grid) & (np.abs(numbers) <= form.largest)))


def nearest(form: FloatFormat, values: Array) -> Array:
    """Round float64 values to the format, to nearest and ties to even, overflow to infinity (IEEE 754, clause 4.3.1).

    Through integers and not through a cast: casts of float64 to bfloat16 round twice in some libraries.
    """
    if form.precision >= 53:
        return values
    finite = np.isfinite(values)
    numbers = np.where(finite, values, 0.0)
    exponent = np.frexp(numbers)[1]
    grid = np.maximum(exponent - form.precision, _lowest(form))
    rounded = np.copysign(np.ldexp(np.rint(np.ldexp(numbers, -grid)), grid), values)
    rounded = np.where(np.abs(rounded) > form.largest, np.copysign(np.inf, values), rounded)
    return np.where(finite, rounded, values)
