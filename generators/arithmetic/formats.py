"""Formats that arithmetic is done in: rounding to them, which numbers they hold; what integer types hold."""

from __future__ import annotations

import functools

import numpy as np

from ...cases.elements import Array, FloatFormat, element_type

NO_BIT = 5000
"""A lowest set bit above every real one, for zeros."""


@functools.cache
def format_of(name: str) -> FloatFormat:
    """Return the format of a floating-point element type, or `tf32`; KeyError or TypeError for another name."""
    return FloatFormat(11, -126, 127) if name == "tf32" else element_type(name).float_format


@functools.cache
def kind_of(name: str) -> str:
    """Return how an element type computes: `real`, `int`, `bool`, `text` or `complex`."""
    if name in ("bool", "string"):
        return "bool" if name == "bool" else "text"
    if "complex" in name:
        return "complex"
    return "int" if name.lstrip("u").startswith("int") else "real"


@functools.cache
def limits(name: str) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer type, from its name."""
    bits = int(name.removeprefix("u").removeprefix("int"))
    return (0, (1 << bits) - 1) if name.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


@functools.cache
def contains(form: FloatFormat, other: FloatFormat) -> bool:
    """Return whether a format holds every number of another."""
    return form.precision >= other.precision and form.emax >= other.emax and lowest_of(form) <= lowest_of(other)


def lowest_of(form: FloatFormat) -> int:
    """Return the exponent of a format's smallest subnormal number."""
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
    grid = np.maximum(exponent - form.precision, lowest_of(form))
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
    grid = np.maximum(exponent - form.precision, lowest_of(form))
    rounded = np.copysign(np.ldexp(np.rint(np.ldexp(numbers, -grid)), grid), values)
    rounded = np.where(np.abs(rounded) > form.largest, np.copysign(np.inf, values), rounded)
    return np.where(finite, rounded, values)
