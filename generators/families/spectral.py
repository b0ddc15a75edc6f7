"""Operators on signals and their spectra: BlackmanWindow, HammingWindow, HannWindow, MelWeightMatrix, DFT, STFT."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gmpy2
import numpy as np

from ...cases.elements import Array
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from ..primitives import elementary
from ..primitives.errors import format_of, kind_of

_NEAR = 2.0**-20
"""How close to 1 a window's float32 elements below 1 may be: a cast may then give 1."""


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
    """A sum of cosines for each i below `size`: of i / size turns, or, if it is not periodic, of i / (size - 1).

    size: rank 0; result: rank 1, of the type output_datatype.
    """
    count = _number(c, "size", size)
    if count < 0:
        c.open("negative")
    if not count:
        c.open("none")
    type_, count = str(c.output_types["output"]), max(count, 0)
    turn = count if c.attr("periodic") else count - 1
    if count == 1 and not turn:
        taken = c.open("symmetric-one")
        if taken != "start":
            window = c.constant(1, type_).reshape(1)
            lost = c.constant(math.nan, type_) if window.kind == "real" else window.undefined(window.equal(1))
            return window if taken == "one" else lost.reshape(1)
        turn = 1
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
    """The window rounded towards zero: 1 at its peak, unless rounding misses it, and 0 elsewhere."""
    peak = 2 * places == turn
    waves = (elementary.cos(2 * np.pi / turn * i * places) for i in range(len(parts)))
    exact = sum(sign * part * wave for sign, part, wave in zip((1, -1, 1), parts, waves, strict=False))
    top = 1 if not peak.any() or c.open("peak") == "one" else 0
    return c.constant(top * peak, "int64").undefined(c.constant(~peak & (exact > 1 - _NEAR), "bool"))


def mel_weight_matrix(c: Call, bands: Value, length: Value, rate: Value, low: Value, high: Value) -> Value:
    """A triangle for each band of the mel scale, 0 outside, over the bins of half a spectrum.

    All inputs: rank 0; result: [length // 2 + 1, bands], of the type output_datatype. Open are the edges of bands
    between the lowest and the highest, whether they are moved to bins, and on which scale a triangle is straight.
    Source: ONNX MelWeightMatrix-17.
    """
    ports = {"num_mel_bins": bands, "dft_length": length, "sample_rate": rate}
    edges = {"lower_edge_hertz": low, "upper_edge_hertz": high}
    count, n, hertz = (_number(c, name, value) for name, value in ports.items())
    bottom, top = (float(_scalar(c, name, value)) for name, value in edges.items())
    c.require("range", min(count, n, hertz) > 0 and 0 <= bottom < top <= hertz / 2)
    way, type_ = c.open("triangles"), str(c.output_types["output"])
    with gmpy2.context(precision=200):
        first, last = (gmpy2.log10(1 + gmpy2.mpfr(f) / 700) for f in (bottom, top))
        step = (last - first) / (count + (2 if way == "bins" else 1))
        exponents = [first + i * step for i in range(count + 2)]
        places = [700 * (gmpy2.exp10(t) - 1) for t in exponents]
        bins = [(n + 1) * f / hertz for f in places]
    # 10 roundings of an exponent, a power of 16 ulp and 4 roundings of the frequency, in float32 at best
    unit = max(format_of(low.type).roundoff, 2.0**-24)
    errors = [
        unit * (math.log(10) * 10 * float(t) + 36) * (700 + float(f)) if t else 0.0
        for t, f in zip(exponents, places, strict=True)
    ]
    single = kind_of(type_) == "int" or (type_ == "float64" and c.open("double-precision") == "float32")
    own = "float32" if single else type_
    rows = n // 2 + 1
    if way in ("bins", "bins-to-the-top"):
        if (n + 1) * top > format_of(low.type).largest:
            c.open("overflow-inside")
        reach = [(n + 1) * e / hertz + 3 * unit * float(b) for e, b in zip(errors, bins, strict=True)]
        least, most = (
            np.array([math.floor(b + sign * e) for b, e in zip(bins, reach, strict=True)]) for sign in (-1, 1)
        )
        y = _binned(c, np.array([math.floor(b) for b in bins]), least, most, np.arange(rows)[:, None], own)
    else:
        y = _straight(c, way, places, errors, np.arange(rows) * (hertz / n), own)
    return y.trunc().cast(type_) if kind_of(type_) == "int" else y.cast(type_)


def _scalar(c: Call, port: str, value: Value) -> Array:
    """The number of a scalar input of any type."""
    c.require("scalar", value.size == 1)
    if value.rank:
        c.open("rank-1")
    return c.known(port).reshape(())


def _binned(c: Call, bins: Array, least: Array, most: Array, rows: Array, type_: str) -> Value:
    """Triangles whose corners are bins, each from `least` to `most` if rounding decides.

    bins, least, most: [bands + 2]; rows: [rows, 1]; result: [rows, bands].
    """
    y = _triangles(c, bins[:-2], bins[1:-1], bins[2:], rows, type_)
    if (least == most).all():
        return y
    wide = _triangles(c, least[:-2], np.clip(rows, least[1:-1], most[1:-1]), most[2:], rows, type_)
    early, late = (_triangles(c, most[:-2], peak, least[2:], rows, type_) for peak in (least[1:-1], most[1:-1]))
    return y.either(wide).either(early).either(late)


def _triangles(c: Call, left: Array, middle: Array, right: Array, rows: Array, type_: str) -> Value:
    """Triangles from `left` to `right`, 1 in the middle and 0 outside."""
    above = np.where(rows == middle, 1, np.where(rows < middle, rows - left, right - rows))
    below = np.where(rows == middle, 1, np.where(rows < middle, middle - left, right - middle))
    return c.constant(np.maximum(above, 0), type_) / c.constant(np.maximum(below, 1), type_)


def _straight(c: Call, way: str, places: Sequence[Any], errors: Sequence[float], rows: Array, type_: str) -> Value:
    """Triangles with any corners, straight in hertz or in mel, at the frequencies of rows."""
    corners, slope = np.array(places, float), np.ones(len(places))
    if way == "straight-over-mel":
        slope = 1 / (700 + corners)
        corners, rows = elementary.log1p(corners / 700), elementary.log1p(rows / 700)
    widths = np.diff(corners)
    rise = (rows[:, None] - corners[:-2]) / widths[:-1]
    fall = (corners[2:] - rows[:, None]) / widths[1:]
    weights, off = np.minimum(rise, fall), np.array(errors) * slope
    off = 4 * np.maximum.reduce([off[:-2], off[1:-1], off[2:]]) / np.minimum(widths[:-1], widths[1:])
    y, least, most = (c.constant(np.maximum(w, 0), type_) for w in (weights, weights - off, weights + off))
    return y.either(least).either(most)


def dft(c: Call, x: Value, length: Value | None = None, axis: Value | None = None) -> Value:
    """The sums over an axis of x[n] exp(-2 pi j k n / N); the inverse has the opposite sign, and is divided by N.

    x: [..., 1 or 2], real numbers, or complex ones as pairs; result: [..., 2], or [..., 1] for the inverse of half a
    spectrum; the axis has the extent `length`, or for `onesided` spectra half of it plus one. Source: ONNX DFT-17 and
    20.
    """
    inverse, onesided = bool(c.attr("inverse")), c.attr("onesided")
    c.require("onesided-range", onesided in (0, 1))
    c.require("parts", x.rank > 1 and x.shape[-1] in (1, 2))
    dimension = c.attr("axis")
    if dimension is None:
        dimension = -2 if axis is None else _number(c, "axis", axis)
    c.require("axis-range", -x.rank <= dimension <= -2 or 0 <= dimension <= x.rank - 2)
    c.require("onesided-real", not onesided or inverse or x.shape[-1] == 1)
    c.require("onesided-complex", not (onesided and inverse) or x.shape[-1] == 2)
    dimension %= x.rank
    half = bool(onesided) and inverse
    extent = x.shape[dimension]
    count = _number(c, "dft_length", length) if length is not None else 2 * (extent - 1) if half else extent
    c.require("length-range", count >= 0 or length is None)
    if count <= 0:
        c.open("no-length")
    count = max(count, 0)
    order = [i for i in range(x.rank) if i != dimension]
    x = x.transpose(*order[:-1], dimension, order[-1])
    lines = x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])
    lines = _resized(lines, count // 2 + 1 if half else count)
    y = _of_half(c, lines, count) if half else _transformed(c, lines, count, inverse=inverse)
    if onesided and not inverse:
        y = y[:, : count // 2 + 1]
    y = y.reshape(*x.shape[:-2], *y.shape[1:])
    back = [*range(dimension), x.rank - 2, *range(dimension, x.rank - 2), x.rank - 1]
    return y.transpose(*back)


def stft(c: Call, signal: Value, step: Value, window: Value | None = None, frame_length: Value | None = None) -> Value:
    """The transforms of frames of a signal, `step` apart and each multiplied by a window; half of each if onesided.

    signal: [batch, length, 1 or 2]; window: [frame]; result: [batch, frames, frame or frame // 2 + 1, 2], with all
    frames that are completely in the signal. Source: ONNX STFT-17.
    """
    onesided = c.attr("onesided")
    c.require("onesided-range", onesided in (0, 1))
    c.require("parts", signal.rank == 3 and signal.shape[-1] in (1, 2))
    c.require("onesided-real", not onesided or signal.shape[-1] == 1)
    c.require("window-rank", window is None or window.rank == 1)
    by, extent = _number(c, "frame_step", step), signal.shape[1]
    c.require("step-positive", by > 0)
    own = extent if window is None else window.shape[0]
    count = own if frame_length is None else _number(c, "frame_length", frame_length)
    c.require("window-length", window is None or window.shape[0] == count)
    c.require("frame-positive", count > 0)
    if count > extent:
        c.open("short")
    frames = max((extent - count) // by + 1, 0)
    x = signal.take(np.arange(frames)[:, None] * by + np.arange(count), 1)
    x = x if window is None else x * window.reshape(count, 1)
    y = _transformed(c, x.reshape(signal.shape[0] * frames, *x.shape[2:]), count, inverse=False)
    y = y[:, : count // 2 + 1] if onesided else y
    return y.reshape(signal.shape[0], frames, *y.shape[1:])


def _number(c: Call, port: str, value: Value) -> int:
    """The whole number of a scalar input."""
    return int(_scalar(c, port, value))


def _resized(x: Value, count: int) -> Value:
    """Each line truncated, or padded with zeros at its end: [R, N, parts] to [R, count, parts]."""
    return x[:, :count].pad([(0, 0), (0, max(count - x.shape[1], 0)), (0, 0)])


def _transformed(c: Call, x: Value, n: int, *, inverse: bool) -> Value:
    """The transform of each line of x [R, n, 1 or 2], as [R, n, 2]."""
    if not n or not x.size:
        return c.constant(0.0, x.type).broadcast(x.shape[0], n, 2)
    counts = np.outer(np.arange(n), np.arange(n))
    # in 16 bits an angle of many turns is useless; in other types it may be used as written
    counts = counts % n if x.type in ("float16", "bfloat16") else counts
    turns = c.constant(counts, x.type)
    cosine, sine = turns.cos_turns(n), turns.sin_turns(n)
    re = x[:, :, 0]
    re_cosine, re_sine = re @ cosine, re @ sine
    if x.shape[2] == 1:
        parts = re_cosine, re_sine if inverse else -re_sine
    else:
        im = x[:, :, 1]
        im_cosine, im_sine = im @ cosine, im @ sine
        parts = (re_cosine - im_sine, im_cosine + re_sine) if inverse else (re_cosine + im_sine, im_cosine - re_sine)
    y = parts[0].stack(parts[1]).transpose(1, 2, 0)
    fast = y.node("fast_fourier", x, chirp=False)
    if x.shape[2] == 1:  # products and sums of missing imaginary parts, with weights of 1
        nothing = np.zeros((n, 2), bool)
        nothing[0, 1] = True
        fast = y.where(c.constant(nothing, "bool"), fast)
    if n & (n - 1) and c.open("algorithm") == "chirp":
        fast = y.node("fast_fourier", x, chirp=True)
    y = y.either(fast)
    return (y / float(n)).either(y * (1 / n)) if inverse else y


def _of_half(c: Call, x: Value, n: int) -> Value:
    """The real signals [R, n, 1] with x [R, n // 2 + 1, 2] as the first halves of their spectra."""
    own = [0, *([n // 2] if n % 2 == 0 else [])]
    c.open("not-symmetric", ~x.take(own, 1)[:, :, 1].equal(0.0))
    places = np.arange(n)
    mirrored = places > n // 2
    signs = np.stack([np.ones(n), np.where(mirrored, -1.0, 1.0)], 1)
    spectrum = x.take(np.where(mirrored, n - places, places), 1) * signs[None]
    return _transformed(c, spectrum, n, inverse=True)[:, :, :1]


def symmetric(drawing: Drawing) -> Array:
    """Halves of spectra of real signals: without imaginary parts at the axis' ends and at every fourth index.

    For the lengths in cases, one of these is the frequency of half the length.
    """
    numbers = drawing.draw.between(-99, 99, drawing.size).astype(np.float64) / 64
    numbers = numbers.reshape(len(numbers), *drawing.shape)
    axis = int(drawing.attributes.get("axis", drawing.arguments.get("axis", -2)))
    if len(drawing.shape) > 1 and drawing.shape[-1] == 2 and drawing.size:
        extent = drawing.shape[axis]
        places = np.moveaxis(numbers[..., 1], axis + 1, -1)
        places[..., [i for i in range(extent) if i % 4 == 0 or i == extent - 1]] = 0
    return numbers.reshape(len(numbers), drawing.size)


def impulses(drawing: Drawing) -> Array:
    """One complex number in every four, with two parts of similar magnitude and full significands.

    Nothing cancels in its transform: in 16 bits, bounds are otherwise larger than the results.
    """
    unit = 1 << drawing.type.float_format.precision
    numbers = drawing.draw.between(unit * 13 // 16, unit * 63 // 64, drawing.size).astype(np.float64) / unit
    numbers = numbers.reshape(-1, drawing.size // 8, 4, 2)
    groups, places = np.indices(numbers.shape[1:3])
    numbers[:, places != groups % 4] = 0
    return numbers.reshape(len(numbers), drawing.size)
