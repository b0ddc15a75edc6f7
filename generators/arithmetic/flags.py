"""What an outcome may be beside its value, in bits of Flag: exchanged, and set where a format overflows."""

from __future__ import annotations

import numpy as np

from ...cases.elements import Array, FloatFormat
from ...cases.expectation import EXCEPTIONAL as _EXCEPTIONAL
from ...cases.expectation import Flag

# Plain numbers: arithmetic with an enumeration's members costs more than that with arrays.
INFINITE = np.uint8(Flag.POSITIVE_INFINITY | Flag.NEGATIVE_INFINITY)
NEGATIVE_ZERO = np.uint8(Flag.NEGATIVE_ZERO)
SIGNED_ZERO = np.uint8(Flag.NEGATIVE_ZERO | Flag.POSITIVE_ZERO)
NAN = np.uint8(Flag.NAN)
ZERO = np.uint8(Flag.ZERO)
EXCEPTIONAL = np.uint8(_EXCEPTIONAL)


def flip(flags: Array, negative: Array | np.bool_) -> Array:
    """Exchange what the flags say of plus and minus where `negative`."""
    kept = flags & ~(INFINITE | SIGNED_ZERO)
    swapped = kept | ((flags & 1) << 1) | ((flags & 2) >> 1) | ((flags & 32) << 1) | ((flags & 64) >> 1)
    return np.where(negative, swapped, flags).astype(np.uint8)


def exceeds(form: FloatFormat, magnitude: Array) -> Array:
    """Return where a magnitude may round to infinity."""
    return magnitude >= form.overflow if np.isfinite(form.overflow) else magnitude > form.largest


def overflows(form: FloatFormat, floats: Array, error: Array, where: Array) -> Array:
    """Return the infinities that numbers with an error may round to, where `where`."""
    up = where & exceeds(form, floats + error)
    down = where & exceeds(form, error - floats)
    return np.where(up, np.uint8(1), np.uint8(0)) | np.where(down, np.uint8(2), np.uint8(0))
