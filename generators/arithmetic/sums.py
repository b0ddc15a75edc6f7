"""Sums in any order: what is known of their addends, where all orders are exact, and where one may overflow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...cases.elements import Array, FloatFormat
from .flags import INFINITE, NAN, exceeds
from .tensors import Axes


class Addends(NamedTuple):
    """What a sum remembers of what it added up: how many, Σ|x|/n, the exponent of their lowest set bit, and themselves.

    `floats` and `axes` are the addends before the sum was taken.
    """

    terms: int
    mean: Array
    lowest: Array
    floats: Array
    axes: Axes

    def span(self) -> Array:
        """Return the largest addend less the smallest."""
        with np.errstate(all="ignore"):
            whole: Array = self.floats.max(axis=self.axes) - self.floats.min(axis=self.axes)
        return whole.reshape(self.mean.shape)


class Parts(NamedTuple):
    """What a sum needs to know of its addends whatever the arithmetic.

    `carried` is the sum of their errors; `mean` that of their magnitudes, which stays finite where the sum does not.
    """

    total: Array
    carried: Array
    positive: Array
    negative: Array
    mean: Array
    lowest: Array
    flags: Array
    finite: Array


def every_order_is_exact(form: FloatFormat, magnitude: Array, lowest: Array, *, flush: bool) -> Array:
    """Return where all partial sums are multiples of the lowest bit that fit the accumulator's format."""
    grid = np.ldexp(1.0, np.minimum(lowest, 1023))
    limit = np.ldexp(1.0, np.clip(lowest + form.precision, -1074, 1023))
    # a sum of float64 magnitudes that is beyond the limit may have been rounded to it
    fits = (magnitude == 0) | (magnitude < limit) | ((magnitude == limit) & (form.precision < 53))
    floor = form.tiny if flush else form.eta
    return np.asarray(fits & (magnitude <= form.largest) & (grid >= floor))


def flags_of_sum(form: FloatFormat, parts: Parts, error: Array) -> Array:
    """Return what a sum in the accumulator's format may be beside its value, which has this error."""
    # without negative terms no partial sum is negative, however large its error
    up = ((parts.positive > 0) | (parts.carried > 0)) & exceeds(form, parts.positive + error)
    down = ((parts.negative > 0) | (parts.carried > 0)) & exceeds(form, parts.negative + error)
    flags = parts.flags | (parts.finite & up).astype(np.uint8) | ((parts.finite & down).astype(np.uint8) << 1)
    both = (flags & INFINITE) == INFINITE
    # beside an infinity, an overflow to the other side would make NaN
    opposed = ~parts.finite & ((up & (parts.negative == np.inf)) | (down & (parts.positive == np.inf)))
    return np.where(both | opposed, flags | NAN, flags).astype(np.uint8)
