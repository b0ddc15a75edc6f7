"""Operators on signals and their spectra: BlackmanWindow, HammingWindow, HannWindow, MelWeightMatrix, DFT, STFT."""

from __future__ import annotations

import numpy as np

from ...cases.elements import Array
from ..arithmetic.errors import kind_of
from ..arithmetic.tape import Call, Value
from ..primitives import elementary

_NEAR = 2.0**-20
"""How near 1 a window may come in float32 where it is less: it may be cast to 1."""


def blackman_window(c: Call, size: Value) -> Value:
    """0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n), as in `_window`.

    Source: ONNX BlackmanWindow-17.
    """
    return _window(c, size, (0.42, 0.5, 0.08))


def hamming_window(c: Call, size: Value) -> Value:
    """A - (1 - a) cos(2 pi i / n), as in `_window`; a is 25/46 or 0.54.

    Source: ONNX HammingWindow-17.
    """
    first = 25 / 46 if c.open("coefficient") == "25-of-46" else 0.54
    return _window(c, size, (first, 1 - first))


def hann_window(c: Call, size: Value) -> Value:
    """The sine of pi i / n, squared, as in `_window`.

    Source: ONNX HannWindow-17.
    """
    return _window(c, size, (0.5, 0.5))


def _window(c: Call, size: Value, parts: tuple[float, ...]) -> Value:
    """A sum of cosines for each i less than `size`: of i in size turns, or if it is not periodic in size - 1.

    size: rank 0; result: rank 1, of the type that output_datatype names.
    """
    c.require("scalar", size.size == 1)
    if size.rank:
        c.open("rank-1")
    count = int(c.known(size).reshape(()))
    if count < 0:
        c.open("negative")
    if not count:
        c.open("none")
    type_, count = str(c.output_types["output"]), max(count, 0)
    turn = count if c.attr("periodic") else count - 1
    if count == 1 and not turn:
        c.open("symmetric-one")
        return c.constant(1, type_).reshape(1)
    if not count:
        return c.constant(np.zeros(0), type_)
    if kind_of(type_) == "int":
        return _whole_window(c, np.arange(count), turn, parts).cast(type_)
    own = "float32" if type_ == "float64" and c.open("double-precision") == "float32" else type_
    places = c.constant(np.arange(count), own)
    y = parts[0] - parts[1] * places.cos_turns(turn)
    if len(parts) > 2:
        y = y + parts[2] * c.constant(2 * np.arange(count), own).cos_turns(turn)
    elif parts[0] == parts[1]:
        half = places.sin_turns(2 * turn)
        y = y.either(half * half)
    return y.cast(type_)


def _whole_window(c: Call, places: Array, turn: int, parts: tuple[float, ...]) -> Value:
    """The window towards zero: 1 at its peak, if the peak is not missed by rounding, and 0 elsewhere."""
    peak = 2 * places == turn
    waves = (elementary.cos(2 * np.pi / turn * i * places) for i in range(len(parts)))
    exact = sum(sign * part * wave for sign, part, wave in zip((1, -1, 1), parts, waves, strict=False))
    top = 1 if not peak.any() or c.open("peak") == "one" else 0
    return c.constant(top * peak, "int64").undefined(c.constant(~peak & (exact > 1 - _NEAR), "bool"))
