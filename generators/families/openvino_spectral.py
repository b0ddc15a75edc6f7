"""OpenVINO's operations on signals and their spectra: transforms over several axes, whole or of half a spectrum."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

from ...cases.elements import Array
from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value


def dft(c: Call, formula: Formula, data: Value, axes: Value, signal_size: Value | None = None) -> Value:
    """The sums over all of axes of data times exp(-2 pi j (m_1 k_1 / S_1 + ...)).

    data: [D..., 2], complex numbers as pairs; axes: different ones of D; signal_size: their extents S; result: as data,
    with the extents S. Source: OpenVINO DFT-7.
    """
    return _complex(c, formula, data, axes, signal_size, inverse=0)


def idft(c: Call, formula: Formula, data: Value, axes: Value, signal_size: Value | None = None) -> Value:
    """The sums of `dft` with the opposite sign, divided by the number of their terms.

    data, axes, signal_size and result: as for `dft`. Source: OpenVINO IDFT-7.
    """
    return _complex(c, formula, data, axes, signal_size, inverse=1)


def _complex(c: Call, formula: Formula, data: Value, axes: Value, signal_size: Value | None, *, inverse: int) -> Value:
    c.require("parts", data.rank > 1 and data.shape[-1] == 2)
    places, sizes = _places(c, data.rank - 1, axes, signal_size)
    return _in_any_order(formula, _resized(data, places, sizes), places, inverse=inverse)


def rdft(c: Call, formula: Formula, data: Value, axes: Value, signal_size: Value | None = None) -> Value:
    """The transform of real numbers; of the last axis that axes list only the first S // 2 + 1 elements.

    data: D; axes, signal_size: as for `dft`; result: [D..., 2] with the extents S. An S of 0 has an element, too, by
    S // 2 + 1: a sum of nothing, which is 0. Source: OpenVINO RDFT-9.
    """
    places, sizes = _places(c, data.rank, axes, signal_size)
    x = _resized(data, places, sizes).reshape(*_extents(data.shape, places, sizes), 1)
    if not places:
        return x.pad([*[(0, 0)] * data.rank, (0, 1)])
    y = _in_any_order(formula, x, places[::-1], inverse=0)
    last = places[-1]
    extents = [y.shape[axis] for axis in places]
    if 0 in extents and c.open("no-length") == "zero" and not extents[-1]:
        return y.sum((last,), keep=True)
    return y[_first(last, extents[-1] // 2 + 1)]


def irdft(c: Call, formula: Formula, data: Value, axes: Value, signal_size: Value | None = None) -> Value:
    """The real numbers whose `rdft` data is: the last axis that axes list has half a spectrum, from 0 on.

    data: [D..., 2]; axes, signal_size: as for `dft`; result: D with the extents S, of the last axis 2 (D - 1) if no
    size is given. Where data is no spectrum of real numbers, or is cut off or filled up, the text has two meanings.
    Source: OpenVINO IRDFT-9.
    """
    c.require("parts", data.rank > 1 and data.shape[-1] == 2)
    places, sizes = _places(c, data.rank - 1, axes, signal_size)
    if not places:
        return data.take(0, -1)
    *others, last = places
    length = 2 * (data.shape[last] - 1)
    extent = length if sizes[-1] == -1 else sizes[-1]
    usual = len(places) == 1 and extent == length
    if not usual and c.open("half") == "mirrored-first":
        x = _resized(_mirrored(data, last, max(length, 0), ()), places, [*sizes[:-1], extent])
    else:
        x = _resized(data, places, [*sizes[:-1], max(extent, 0) // 2 + 1])
        x = _mirrored(x, last, max(extent, 0), others)
    return _in_any_order(formula, x, places, inverse=1).take(0, -1)


def stft(c: Call, formula: Formula, signal: Value, window: Value, frame_size: Value, frame_step: Value) -> Value:
    """Half the transforms of frames of a real signal, frame_step apart and each multiplied by the window.

    signal: [L] or [batch, L]; window: [W], W at most frame_size, filled up with zeros where the text does not say;
    result: [..., frames, frame_size // 2 + 1, 2], or with these two in turn for transpose_frames. Source: OpenVINO
    STFT-15.
    """
    c.require("signal-rank", signal.rank in (1, 2))
    c.require("window-rank", window.rank == 1)
    c.require("scalars", frame_size.rank == frame_step.rank == 0)
    count = int(c.known(frame_size).reshape(()))
    c.require("frame-positive", count > 0)
    missing = count - window.shape[0]
    c.require("window-fits", missing >= 0)
    if missing:
        before = missing // 2 if c.open("window-place") == "middle" else 0
        window = window.pad([(before, missing - before)])
    lines = signal.reshape(math.prod(signal.shape[:-1]), signal.shape[-1], 1)
    y: Value = formula(lines, frame_step, window, frame_size)
    if c.attr("transpose_frames"):
        y = y.transpose(0, 2, 1, 3)
    return y.reshape(*signal.shape[:-1], *y.shape[1:])


def istft(
    c: Call,
    formula: Formula,
    data: Value,
    window: Value,
    frame_size: Value,
    frame_step: Value,
    signal_length: Value | None = None,
) -> Value:
    """The signal whose frames, frame_step apart and multiplied by the window, have data as halves of their spectra.

    data: [..., frame_size // 2 + 1, frames, 2]; window: [W], with zeros on both sides as long as a frame; result:
    [..., length]. Data that is of no signal has no inverse: open is what is divided by what. Source: OpenVINO ISTFT-16.
    """
    c.require("data-rank", data.rank in (3, 4) and data.shape[-1] == 2)
    c.require("window-rank", window.rank == 1)
    c.require("scalars", frame_size.rank == frame_step.rank == 0)
    count, by = (int(c.known(value).reshape(())) for value in (frame_size, frame_step))
    c.require("positive", count > 0 and by > 0)
    bins, frames = data.shape[-3:-1]
    c.require("bins", bins == count // 2 + 1)
    missing = count - window.shape[0]
    c.require("window-fits", missing >= 0)
    weights = window.pad([(missing // 2, missing - missing // 2)])
    start = count // 2 if c.attr("center") else 0
    length = (frames - 1) * by + (0 if c.attr("center") else count)
    if signal_length is not None:
        c.require("scalars", signal_length.size == 1)
        length = int(c.known(signal_length).reshape(()))
        c.require("length-range", length >= 0)
    halves = data.reshape(math.prod(data.shape[:-3]), bins, frames, 2).transpose(0, 2, 1, 3)
    c.open("not-symmetric", ~halves.take([0, *([count // 2] if count % 2 == 0 else [])], 2)[..., 1].equal(0.0))
    x = formula(_mirrored(halves, 2, count, ()), axis=2, inverse=1).take(0, -1)
    if c.attr("normalized"):
        x = x * c.constant(count, data.type).sqrt()
    squares = c.open("overlap") == "squares"
    places = _overlaps(np.arange(start, start + length), frames, count, by)
    own = (weights * weights if squares else weights).broadcast(frames, count).reshape(1, frames * count)
    added = (x * weights if squares else x).reshape(x.shape[0], frames * count)
    above, below = (v.pad([(0, 0), (0, 1)]).take(places, 1).sum((2,), keep=False) for v in (added, own))
    bare = below.equal(0.0)
    y = (above / below.where(~bare, 1.0)).undefined(bare.broadcast(*above.shape))
    return y.reshape(*data.shape[:-3], length)


def _overlaps(places: Array, frames: int, count: int, by: int) -> Array:
    """For each place of a signal its elements in frames, [places, n]; the end of all frames where there are fewer."""
    last = places[:, None] // by - np.arange(-(-count // by))
    inside = places[:, None] - last * by
    held = (last >= 0) & (last < frames) & (inside < count)
    return np.where(held, last * count + inside, frames * count)


def _places(c: Call, rank: int, axes: Value, signal_size: Value | None) -> tuple[list[int], list[int]]:
    """The axes, from the front, of `rank` dimensions; and their sizes, -1 where the extent stays."""
    c.require("axes-vector", axes.rank == 1)
    listed = c.ints("axes") or ()
    c.require("axes-range", all(-rank <= axis < rank for axis in listed))
    if -1 in listed and c.silent("last-axis"):
        c.open("last-axis")
    places = [axis % rank for axis in listed]
    c.require("axes-differ", len(set(places)) == len(places))
    if signal_size is None:
        return places, [-1] * len(places)
    c.require("sizes-as-axes", signal_size.shape == axes.shape)
    sizes = c.ints("signal_size") or ()
    c.require("sizes-range", min(sizes, default=0) >= -1)
    return places, list(sizes)


def _extents(shape: Sequence[int], places: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """The shape with the sizes that are given."""
    wanted = dict(zip(places, sizes, strict=True))
    return [extent if wanted.get(axis, -1) == -1 else wanted[axis] for axis, extent in enumerate(shape)]


def _resized(x: Value, places: Sequence[int], sizes: Sequence[int]) -> Value:
    """X with each axis cut off at its size, or filled up with zeros; -1 leaves an axis as it is."""
    wanted = _extents(x.shape, places, sizes)
    return x.pad([(0, size - own) for own, size in zip(x.shape, wanted, strict=True)])


def _first(axis: int, count: int) -> tuple[slice, ...]:
    """The key of the first elements along an axis."""
    return (*[slice(None)] * axis, slice(0, count))


def _mirrored(x: Value, last: int, extent: int, others: Sequence[int]) -> Value:
    """The whole spectrum of `extent` elements along the axis `last`, whose first half x is; x: [..., 2].

    The rest is conjugate to the first half, from its end, and from the end of the axes `others`, too.
    """
    own = min(extent, extent // 2 + 1)
    rest = x.take(np.arange(extent - own, 0, -1), last) * np.array([1.0, -1.0])
    for axis in others:
        rest = rest.take(-np.arange(x.shape[axis]) % max(x.shape[axis], 1), axis)
    return x[_first(last, own)].concat([rest], last)


def _in_any_order(formula: Formula, x: Value, places: Sequence[int], *, inverse: int) -> Value:
    """The transforms along axes, one after another, in the order of `places` or in any other; x: [..., 1 or 2].

    Orders round at other places, so that the results of all are admitted.
    """
    transforms = [
        functools.reduce(lambda y, axis: formula(y, axis=axis, inverse=inverse), order, x)
        for order in itertools.permutations(places)
    ]
    return functools.reduce(lambda y, other: y.either(other), transforms)
