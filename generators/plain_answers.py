"""One admissible answer to a case, with a tolerance, for readers that cannot judge by bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..cases.batch import EXCEPTIONAL, Bounds, Expectation, Flag, Option
from ..cases.elements import Array, element_type
from .primitives.errors import nearest

_SIGNS = Flag.NEGATIVE_ZERO | Flag.POSITIVE_ZERO
_SLACK = 1 + 2.0**-6
"""Widens tolerances: their readers compute differences in the output's own type."""


@dataclass(frozen=True)
class PlainAnswer:
    """An admissible value of each output, of the output's type.

    `tolerance` is the absolute error that, together with `RELATIVE` of the value, admits every answer that the standard
    admits. None if no tolerance can: if an infinity, a refusal, another shape, anything or another integer is admitted.
    """

    outputs: tuple[Array, ...]
    tolerance: float | None


RELATIVE = 1e-3
"""The relative tolerance of ONNX's own readers for floats."""


def plain_answer(expectation: Expectation) -> PlainAnswer | None:
    """Return the answer to a single case by the first option with values; None if no option has any."""
    strict = [option for option in expectation.options if option.level == "strict"]
    chosen = next((option for option in strict if option.kind == "values"), None)
    if chosen is None:
        return None
    laned = [_value(bounds) for bounds in chosen.outputs]
    errors = [_tolerance(strict, index, output) for index, output in enumerate(laned)]
    known = [error for error in errors if error is not None]
    return PlainAnswer(
        tuple(output[0, ...] for output in laned), max(known, default=0.0) if len(known) == len(errors) else None
    )


def _value(bounds: Bounds) -> Array:
    """Return the value, rounded to the output's type, if the bounds admit it; else a value that the flags name."""
    kind = element_type(bounds.type)
    if kind.kind != "float":
        return bounds.value
    rounded = nearest(kind.float_format, bounds.value)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN, and numbers that the type rounds to infinity
        numbers = np.where((rounded < bounds.lower) | (rounded > bounds.upper), bounds.value, rounded)
        if bounds.flags is not None:
            numbers = _flagged(numbers, bounds.lower, bounds.flags)
        return numbers.astype(kind.dtype)


def _flagged(numbers: Array, lower: Array, flags: Array) -> Array:
    """Return the numbers, or a value that the flags name if no number is admitted, with the required sign of zeros."""
    none, names = np.isnan(lower), ((Flag.NAN, np.nan), (Flag.POSITIVE_INFINITY, np.inf), (Flag.ZERO, 0.0))
    answers = numbers.copy()
    for flag, word in (*names, (Flag.NEGATIVE_INFINITY, -np.inf)):
        agrees = np.isnan(numbers) if flag is Flag.NAN else numbers == word
        # if several are named, the exact result decides
        other = none & ((flags & flag) != 0) & ~_named(numbers, flags)
        answers = np.where(other | (none & agrees & ((flags & flag) != 0)), word, answers)
    answers = np.where((answers == 0) & ((flags & Flag.NEGATIVE_ZERO) != 0), -0.0, answers)
    return np.where((answers == 0) & ((flags & Flag.POSITIVE_ZERO) != 0), 0.0, answers)


def _named(numbers: Array, flags: Array) -> Array:
    """Return a mask of the elements whose flags name the exact result, an infinity or NaN."""
    return np.asarray(
        (np.isnan(numbers) & ((flags & Flag.NAN) != 0))
        | ((numbers == np.inf) & ((flags & Flag.POSITIVE_INFINITY) != 0))
        | ((numbers == -np.inf) & ((flags & Flag.NEGATIVE_INFINITY) != 0))
    )


def _tolerance(options: Sequence[Option], index: int, value: Array) -> float | None:
    """Return the absolute error around one value that covers all options; None if none does."""
    if any(option.kind != "values" or option.exceptional or option.checks for option in options):
        return None
    every = [option.outputs[index] for option in options]
    if any(bounds.value.shape != value.shape for bounds in every):
        return None
    if element_type(every[0].type).kind != "float":
        same = all(np.array_equal(b.lower, value) and np.array_equal(b.upper, value) for b in every)
        return 0.0 if same and all(b.flags is None for b in every) else None
    wide = value.astype(np.float64)
    errors = [_error(bounds, wide) for bounds in every]
    return None if any(error is None for error in errors) else max(e for e in errors if e is not None)


def _error(bounds: Bounds, value: Array) -> float | None:
    flags = np.zeros(value.shape, np.uint8) if bounds.flags is None else bounds.flags
    beside = flags & ~np.uint8(_SIGNS)
    numbers = ~np.isnan(bounds.lower)
    alone = np.isin(beside, [int(flag) for flag in EXCEPTIONAL]) & _named(value, flags)
    if not np.where(numbers, (beside & ~np.uint8(Flag.ZERO)) == 0, alone).all() or not value.size:
        return None if value.size else 0.0
    if not np.isfinite(value[numbers]).all():
        return None
    with np.errstate(invalid="ignore"):
        away = np.maximum(np.abs(bounds.upper - value), np.abs(value - bounds.lower))
        away = np.where((beside & Flag.ZERO) != 0, np.maximum(away, np.abs(value)), away)
        over = np.where(numbers, away - RELATIVE * np.abs(value), 0.0)
    largest = float(np.max(over, initial=0.0)) * _SLACK
    return largest if np.isfinite(largest) else None
