"""oneDNN Graph's Interpolate and its gradient: images resized along their spatial axes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce

import numpy as np
from gmpy2 import mpq

from ...cases.elements import Array
from ..arithmetic.gradients import gradients
from ..arithmetic.tape import Call, Value
from . import Shaping
from .onednn import as_told, channels_second, pooled_sources
from .resize import ROUNDINGS, Axis, Curve, interpolated, nearest, ways

_ROUNDINGS = {"up": "round_prefer_ceil", "down": "round_prefer_floor", "even": "round_even"}
_MODES = {"linear": None, "bilinear": 2, "trilinear": 3}
"""The modes that interpolate, and the number of spatial axes that they are named after."""


def interpolate(c: Call, src: Value, *_: Value | None) -> Value:
    """The image sampled at the coordinates of dst's elements, along its spatial axes.

    src, dst: [N, spatial..., C], or [N, C, spatial...] for NCX; sizes, also as an attribute: an extent for each spatial
    axis. Source: oneDNN Graph Interpolate.
    """
    c.require("types", src.kind == "real")
    x = channels_second(c, src)
    places = _coordinates(c, x)
    axes = [axis for axis in _axes(c, x) if not axis.stays(places)]
    if c.attr("mode") == "nearest":
        forms, vague = nearest(c, x, axes, places, _rounding(c, axes, places))
        vague = vague.reshape((1,) * (x.rank - vague.ndim) + vague.shape)
        vague = vague if c.attr("data_format") == "NCX" else np.moveaxis(vague, 1, -1)
        return c.one_of([as_told(c, form) for form in forms], vague)
    y = interpolated(c, x, axes, Curve(), places)
    if x.type != "float32":  # weights need not be rounded to the type of src
        y = y.either(interpolated(c, x.cast("float32"), axes, Curve(), places).store(x.type))
    return as_told(c, y)


def interpolate_backward(c: Call, src: Value, diff_dst: Value, *_: Value | None) -> Value:
    """The gradient of Interpolate: each element of diff_dst is shared out among those that it is interpolated from.

    src, diff_src: as in Interpolate; diff_dst: the shape of its result. Source: oneDNN Graph InterpolateBackward.
    """
    c.require("types", src.kind == "real")
    own = _gradient(c, src, diff_dst)
    if src.type == "float32":
        return own
    return own.either(_gradient(c, src.cast("float32"), diff_dst.cast("float32")).store(src.type))


def _gradient(c: Call, src: Value, diff_dst: Value) -> Value:
    x = channels_second(c, src)
    places = _coordinates(c, x)
    axes = [axis for axis in _axes(c, x) if not axis.stays(places)]
    if c.attr("mode") == "nearest":
        rounding = ROUNDINGS[_rounding(c, axes, places)]
        picks = [[rounding(*axis.computed(places, sign)) for sign in (0, -1, 1)] for axis in axes]
        if any((near != other).any() for near, *others in picks for other in others):
            c.open("coordinate-rounding")
        forms = [_gathered(x, axes, [[(near.astype(np.int64), None)] for near, *_ in picks])]
    else:
        chosen = itertools.product(*(ways(c, x, axis, Curve(), places) for axis in axes))
        forms = [_gathered(x, axes, taps) for taps in chosen]
    c.require("resized", as_told(c, forms[0]).shape == diff_dst.shape)
    candidates = [gradients(c, as_told(c, y), diff_dst, [src])[0] for y in forms]
    return reduce(lambda a, b: a.either(b), candidates)


def _gathered(x: Value, axes: Sequence[Axis], taps: Sequence[Sequence[tuple[Array, Value | None]]]) -> Value:
    """The sum of weighted neighbours, taken from the image in one step, so that gradients are sums in any order.

    x: [N, C, spatial...]; taps: for each axis its neighbours, with their weights unless there is one alone.
    """
    spatial = x.shape[2:]
    sizes = [
        next((axis.size for axis in axes if axis.dimension == dimension), x.shape[dimension])
        for dimension in range(2, x.rank)
    ]
    places, weights = [], []
    for chosen in itertools.product(*taps):
        at = [np.arange(extent) for extent in spatial]
        for axis, (tap, _) in zip(axes, chosen, strict=True):
            at[axis.dimension - 2] = tap.clip(0, axis.extent - 1)
        places.append(np.ravel_multi_index(np.ix_(*at), spatial).reshape(-1))
        known = [(axis, weight) for axis, (_, weight) in zip(axes, chosen, strict=True) if weight is not None]
        along = [axis.along(weight, x.rank) for axis, weight in known]
        if along:
            product = reduce(lambda a, b: a * b, along)
            weights.append(
                product.reshape(*(1,) * (len(sizes) - product.rank), *product.shape).broadcast(*sizes).reshape(-1)
            )
    taken = x.reshape(*x.shape[:2], -1).take(np.concatenate(places), 2)
    if weights:
        taken = taken * weights[0].concat(weights[1:], 0)
    return taken.reshape(*x.shape[:2], len(places), -1).sum(2, keep=False).reshape(*x.shape[:2], *sizes)


def _axes(c: Call, x: Value) -> list[Axis]:
    """The spatial axes with their new extents, by sizes, or else by scales."""
    sizes, scales = c.ints("sizes") or (), [mpq(float(np.float32(scale))) for scale in c.attr("scales") or ()]
    c.require("one-of", bool(sizes or scales))
    extents = x.shape[2:]
    c.require("per-axis", len(sizes or scales) == len(extents) and len(scales or sizes) == len(extents))
    c.require("positive", all(size > 0 for size in sizes))
    c.require("scales-positive", all(scale > 0 for scale in scales))
    axes = []
    for dimension, extent in enumerate(extents, 2):
        if sizes:
            size = sizes[dimension - 2]
        else:
            product = extent * scales[dimension - 2]
            size = int(product // 1)
            if size < product:
                near = int((product + mpq(1, 2)) // 1)
                size = {"down": size, "nearest": near, "up": size + 1}[c.open("extent")]
        if not extent or not size:
            c.open("nothing")
        axes.append(Axis(dimension, extent, size, mpq(size), mpq(size, extent)))
    return axes


def _coordinates(c: Call, x: Value) -> str:
    """The way of transforming coordinates; what the modes' names may mean is open."""
    mode, places = c.attr("mode"), c.attr("coordinate_transformation_mode")
    c.require("mode-known", mode == "nearest" or mode in _MODES)
    c.require("coordinates-known", places in ("half_pixel", "align_corners"))
    if _MODES.get(mode) not in (None, x.rank - 2):
        c.open("mode-rank")
    return str(places)


def _rounding(c: Call, axes: Sequence[Axis], places: str) -> str:
    """The rounding of places that are half-way between two elements, if there are any."""
    for axis in axes:
        up, down = (ROUNDINGS[_ROUNDINGS[way]](*axis.coordinates(places)).clip(0) for way in ("up", "down"))
        if (up != down).any():
            return _ROUNDINGS[c.open("half-way")]
    return _ROUNDINGS["up"]


def images(shaping: Shaping) -> tuple[int, ...]:
    """[N, S..., C], or [N, C, S...] for NCX."""
    return pooled_sources(shaping)


def resized(shaping: Shaping) -> tuple[int, ...]:
    """The shape of an image that is resized by sizes, or by scales, whose products are rounded down."""
    n, channels, spatial = shaping.extent("N"), shaping.extent("C"), shaping.symbols["S"]
    assert isinstance(spatial, tuple)
    sizes, scales = (_numbers(shaping.levels.get(name), len(spatial)) for name in ("sizes", "scales"))
    extents = [int(size) for size in sizes] or [int((e * s) // 1) for e, s in zip(spatial, scales, strict=True)]
    return (n, channels, *extents) if shaping.attr("data_format") == "NCX" else (n, *extents, channels)


def _numbers(level: object, count: int) -> list[mpq]:
    """Numbers of a level: as they are, or one number for each axis, `2 x r-2`; none if there is no list."""
    if not isinstance(level, tuple):
        return []
    return [
        mpq(str(number))
        for entry in level
        for number in ([entry] if isinstance(entry, (int, float)) else [str(entry).split()[0]] * count)
    ]
