"""OpenVINO's Interpolate: an image padded with zeros and sampled at the coordinates of the output's elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
from gmpy2 import mpq

from ...cases.elements import Array, element_type
from ..arithmetic.tape import Call, Value
from .resize import ROUNDINGS, Axis, Curve, Taps, interpolated, nearest, summed, weigh

_COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
_PILLOW = ("bilinear_pillow", "bicubic_pillow")
_LINEAR_ONNX = {2: {0, 1}, 3: {0, 1, 2}, 4: {2, 3}, 5: {2, 3, 4}}
"""The axes that linear_onnx resizes, by the rank."""
_ROUNDED = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")


def interpolate(c: Call, data: Value, *_: Value | None) -> Value:
    """The image, padded with zeros and sampled at the coordinates of the output's elements.

    data: any rank; version 1 has a vector of sizes, version 4 two of sizes and of scales, version 11 one of either;
    axes: a vector that names an axis for each of their elements. Source: OpenVINO Interpolate-1, Interpolate-4, with
    its code, and Interpolate-11.
    """
    if "early-shape" in c.clauses:
        return _early(c, data)
    mode, places = c.attr("mode"), c.attr("coordinate_transformation_mode")
    pillow = mode in _PILLOW and "pillow-bilinear" in c.clauses
    c.require("mode-known", mode in ("nearest", "linear", "linear_onnx", "cubic") or pillow)
    c.require("coordinates-known", places in _COORDINATES)
    c.require("nearest-known", c.attr("nearest_mode") in _ROUNDED)
    x = _padded(c, data)
    axes = _axes(c, x)
    chosen = {axis.dimension for axis in axes}
    if mode == "linear_onnx" and _LINEAR_ONNX.get(x.rank) != chosen:
        c.open("linear-onnx-axes")
    elif mode == "linear_onnx":
        axes = _in_turn(c, axes, places)
    c.require_if_stated("pillow-axes", not pillow or len(axes) <= 2)
    if any(axis.size and not axis.extent for axis in axes):
        c.open("nothing")
    if mode == "nearest":
        return _nearest(c, x, axes, places)
    candidates = [_smooth(c, x if x.kind == "real" else x.cast("float32"), axes, mode, places)]
    if x.type in ("bfloat16", "float16"):  # weights need not be rounded to the type of data
        candidates.append(_smooth(c, x.cast("float32"), axes, mode, places).store(x.type))
    if x.kind == "real":
        return reduce(lambda a, b: a.either(b), candidates)
    return _integers(c, candidates[0], x.type)


def _early(c: Call, x: Value) -> Value:
    """The image resized, by version 1, whose page has no formula: where it names no usual one, any number will do."""
    mode, chosen, sizes = c.attr("mode"), c.ints("axes") or (), c.ints("target_spatial_shape") or ()
    c.require("early-mode", mode in ("nearest", "linear", "cubic", "area"))
    c.require("early-lengths", len(chosen) == len(sizes))
    c.require("early-axes-range", all(0 <= dimension < x.rank for dimension in chosen))
    if any((*(c.ints("pads_begin") or ()), *(c.ints("pads_end") or ()))):
        c.open("early-pads")
    places = "align_corners" if c.attr("align_corners") else c.open("early-places")
    axes = []
    for dimension, size in zip(chosen, sizes, strict=True):
        extent = x.shape[dimension]
        if size and not extent:
            c.open("nothing")
        axes.append(Axis(dimension, extent, size, mpq(size), mpq(size, max(extent, 1)) or mpq(1)))
    axes = [axis for axis in axes if not axis.stays(places)]
    if mode in ("cubic", "area") or c.attr("antialias"):
        c.open("early-formula")
    if mode != "linear":
        way = c.open("early-rounding") if axes else "floor"
        return c.one_of(*nearest(c, x, axes, places, way))
    result = interpolated(c, x, axes, Curve(), places)
    return result if x.type in ("float32", "float64") else result.either(_narrowed(c, x, axes, places))


def _narrowed(c: Call, x: Value, axes: Sequence[Axis], places: str) -> Value:
    return interpolated(c, x.cast("float32"), axes, Curve(), places).store(x.type)


def _integers(c: Call, y: Value, type_: str) -> Value:
    """The numbers as whole numbers of a type."""
    own = element_type(type_)
    low, high = own.smallest, own.largest
    way = c.open("integer-rounding", ~y.equal(y.trunc()))
    ways = {"truncate": y.trunc, "floor": y.floor, "nearest-even": y.rint, "nearest-away": y.rint_away}
    y = ways[way]()
    beyond = (y < float(low)) | (y > float(high))
    return y.clip(float(low), float(high)).cast(type_).undefined(beyond, "integer-range")


def _padded(c: Call, x: Value) -> Value:
    """The image with zeros before and after; lists that are too short have no padding for the last axes."""
    sides = []
    for name in ("pads_begin", "pads_end"):
        pads = c.ints(name) or ()
        c.require("pads-range", min(pads, default=0) >= 0)
        if len(pads) > x.rank:
            c.open("pads-long")
        sides.append((*pads, *(0,) * x.rank)[: x.rank])
    return x.pad(tuple(zip(*sides, strict=True)), 0) if any(map(any, sides)) else x


def _axes(c: Call, x: Value) -> list[Axis]:
    """The axes to resize, with their new extents, in the order in which they are named."""
    way = c.attr("shape_calculation_mode")
    c.require("shape-mode-known", way in ("sizes", "scales"))
    combined = "scales_or_sizes" in c.types
    if combined:
        c.require("target-type", element_type(c.types["scales_or_sizes"]).is_integer == (way == "sizes"))
    for name in ("scales_or_sizes", "sizes", "scales", "axes"):
        c.require("vectors", name not in c.types or c.known(name).ndim == 1)
    target = c.known("scales_or_sizes" if combined else way).reshape(-1)
    places = c.ints("axes")
    places = tuple(range(x.rank)) if places is None else places
    c.require("axes-range", all(0 <= dimension < x.rank for dimension in places))
    c.require("axes-differ", len(set(places)) == len(places))
    lists = ("scales_or_sizes",) if combined else ("sizes", "scales")
    c.require("lengths", all(c.known(name).size == len(places) for name in lists))
    axes = []
    for dimension, number in zip(places, target.tolist(), strict=True):
        extent = x.shape[dimension]
        exact = mpq(float(number)) if way == "scales" else mpq(int(number), max(extent, 1))
        c.require("target-range", exact >= 0)
        size = int(number) if way == "sizes" else _scaled(c, extent, exact)
        if extent and size and mpq(size, extent) != exact and c.open("scale") == "from-extents":
            exact = mpq(size, extent)
        axes.append(Axis(dimension, extent, size, mpq(size), exact or mpq(1)))
    return axes


def _in_turn(c: Call, axes: list[Axis], places: str) -> list[Axis]:
    """The axes, whose coordinates may divide by the scales in the order of the list, whatever axes they are for."""
    ordered = sorted(axes, key=lambda axis: axis.dimension)
    turned = [replace(axis, scale=named.scale) for axis, named in zip(ordered, axes, strict=True)]
    if places == "align_corners" or turned == ordered or c.open("scales-in-turn") == "by-axes":
        return axes
    return turned


def _scaled(c: Call, extent: int, scale: mpq) -> int:
    """The new extent: the product, rounded down; if it is just below a whole number, that is open."""
    product = extent * scale
    margin = product * mpq(1, 1 << 22) + mpq(1, 1 << 16)
    size, above = int(product // 1), int((product + margin) // 1)
    return above if above > size and c.open("extent-rounding") == "up" else size


def _nearest(c: Call, x: Value, axes: Sequence[Axis], places: str) -> Value:
    way, chosen = c.attr("nearest_mode"), [axis.dimension for axis in axes]
    others = [Axis(i, n, n, mpq(n), mpq(1)) for i, n in enumerate(x.shape) if i not in chosen]
    up = places == "tf_half_pixel_for_nn" and way in ("round_prefer_ceil", "ceil")
    shifted = up and any(axis.extent > 1 for axis in others) and c.open("other-axes") == "shifted"
    named = (*axes, *(others if shifted else ()))
    if way == "round_prefer_ceil" and any(_halfway(axis, places) for axis in named) and c.open("half-up") == "even":
        way = "round_even"
    resized = [axis for axis in named if not axis.stays(places)]
    return c.one_of(*nearest(c, x, resized, places, way))


def _halfway(axis: Axis, places: str) -> bool:
    """Whether a coordinate inside the image lies half-way between two elements of which the first is even."""
    numerators, denominator = axis.coordinates(places)
    ends = ROUNDINGS["round_prefer_ceil"](numerators, denominator), ROUNDINGS["round_even"](numerators, denominator)
    up, even = (end.clip(0, max(axis.extent - 1, 0)) for end in ends)
    return bool((up != even).any())


def _smooth(c: Call, x: Value, axes: Sequence[Axis], mode: str, places: str) -> Value:
    """Real numbers, interpolated from several neighbours on each axis."""
    coefficient = c.float32("cube_coeff") if mode in ("cubic", "bicubic_pillow") else 0.0
    if mode in ("cubic", "linear_onnx"):
        curve = Curve(mode == "cubic", coefficient)
        return interpolated(c, x, [axis for axis in axes if not axis.stays(places)], curve, places)
    if mode in _PILLOW:
        widths = [min(axis.scale, mpq(1)) for axis in axes]
        return _averaged(c, x, axes, widths, Curve(mode == "bicubic_pillow", coefficient), "half_pixel")
    shrinks = bool(c.attr("antialias")) and any(axis.scale < 1 for axis in axes)
    widths = [axis.scale if shrinks else mpq(1) for axis in axes]
    return _averaged(c, x, axes, widths, Curve(), places)


def _averaged(c: Call, x: Value, axes: Sequence[Axis], narrow: Sequence[mpq], curve: Curve, places: str) -> Value:
    """The weighted mean of the neighbours inside, whose weights are a curve of their distance times `narrow`.

    Where all weigh nothing, the result is zero; where rounding decides that, any number.
    """
    taps, totals = [], []
    for axis, factor in zip(axes, narrow, strict=True):
        if axis.stays(places) and factor == 1:
            continue
        own, weightless = _near(c, x, axis, factor, curve, places)
        total = reduce(lambda a, b: a + b, (weight for _, weight in own))
        taps.append((axis, own))
        totals.append((axis.along(total, x.rank), weightless.reshape(-1, *(1,) * (x.rank - axis.dimension - 1))))
    if not taps:
        return x
    lost = c.constant(reduce(np.logical_or, (mask for _, mask in totals)), "bool")
    steady = all(axis.steady(places) for axis, _ in taps)
    divisor = reduce(lambda a, b: a * b, (total for total, _ in totals))
    divisor = c.constant(1.0, x.type).where(lost, divisor)
    named = [axis for axis, _ in taps]
    once = summed(x, named, [own for _, own in taps]) / divisor
    shares: list[Taps] = []
    for (_, own), (_, mask) in zip(taps, totals, strict=True):
        total = reduce(lambda a, b: a + b, (weight for _, weight in own))
        total = c.constant(1.0, x.type).where(c.constant(mask.reshape(-1), "bool"), total)
        shares.append([(tap, weight / total) for tap, weight in own])
    y = once.either(summed(x, named, shares))
    if not any(mask.any() for _, mask in totals):
        return y
    return c.constant(0.0, x.type).where(lost, y) if steady else y.undefined(lost)


def _near(c: Call, x: Value, axis: Axis, narrow: mpq, curve: Curve, places: str) -> tuple[Taps, Array]:
    """The neighbours along an axis with their weights, and a mask of the outputs that have none of any weight."""
    type_ = "float32" if x.type == "float64" else x.type  # scales are float32, and so are coordinates
    at = axis.coordinate(c.constant(np.arange(axis.size), type_), places)
    if not axis.steady(places):
        at = at.either(at * (1 + 2.0**-22))
    exact, denominator = axis.coordinates(places)
    floors = (exact // denominator).astype(np.int64)
    reach = -int((-2 if curve.cubic else -1) / narrow // 1)
    edge = 0 if axis.steady(places) else 1  # rounding may find one more
    taps: Taps = []
    weightless = np.ones(axis.size, bool)
    for step in range(1 - reach - edge, reach + 1 + edge):
        tap = floors + step
        inside = (tap >= 0) & (tap < axis.extent)
        off = abs(tap.astype(object) * denominator - exact) * narrow.numerator
        limit = denominator * narrow.denominator
        reached = inside & np.array(off < limit * (2 if curve.cubic else 1), bool)
        if not inside.any():
            continue
        distance = (at - tap).abs()
        distance = distance * float(narrow) if narrow != 1 else distance
        weight = weigh(c, curve, distance, (off / limit).astype(np.float64))
        if not inside.all():
            weight = weight.where(c.constant(inside, "bool"), 0.0)
        taps.append((tap, weight.cast(x.type)))
        weightless &= ~reached
    return taps, weightless
