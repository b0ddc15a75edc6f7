"""Operators that resample their input: Resize, Upsample; axes, neighbours and curves for others that do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from gmpy2 import mpq

from ...cases.elements import Array
from ..arithmetic.tape import Call, Value

_ZERO, _HALF, _UNITY = mpq(0), mpq(1, 2), mpq(1)
_UNITS = 1 << 20
"""An implementation's coordinate may be off by so small a part of itself and of one element."""
_EXACT_BELOW = 1 << 23
"""Whole numbers below this and a half between them are numbers of float32."""
_ONE_QUOTIENT = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn")
"""The modes whose formula has one step that rounds, the division by a scale or an extent."""
_COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                "tf_half_pixel_for_nn", "tf_crop_and_resize")  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """One resized axis. `length`: the output's extent before rounding; `scale`: the divisor of coordinates."""

    dimension: int
    extent: int
    size: int
    length: mpq
    scale: mpq
    start: mpq = _ZERO
    end: mpq = _UNITY

    def coordinate(self, x: Any, mode: str) -> Any:  # fractions, or a value
        """The input coordinates of the output indices x, by the standard's formulas; x has any kind of numbers."""
        if mode == "asymmetric":
            return x / self.scale
        if mode == "tf_half_pixel_for_nn":
            return (x + _HALF) / self.scale
        if mode == "align_corners":
            return x * (self.extent - 1) / max(self.size - 1, 1)
        if mode == "tf_crop_and_resize":
            if self.size == 1:
                return x * 0 + _HALF * (self.start + self.end) * (self.extent - 1)
            return x * (self.end - self.start) * (self.extent - 1) / (self.size - 1) + self.start * (self.extent - 1)
        if mode == "pytorch_half_pixel" and self.size == 1:
            return x * 0
        if mode == "half_pixel_symmetric":
            offset = mpq(self.extent, 2) * (1 - self.size / self.length)
            return (x + _HALF) / self.scale - _HALF + offset
        return (x + _HALF) / self.scale - _HALF

    def coordinates(self, mode: str) -> tuple[Array, int]:
        """The exact input coordinates of all output indices: whole numerators, and the denominator."""
        if not self.size:  # the formulas may divide by it
            return np.zeros(0, object), 1
        first, second = (self.coordinate(mpq(index), mode) for index in (0, 1))
        step = second - first  # every formula is linear
        denominator = math.lcm(first.denominator, step.denominator)
        start, stride = (number.numerator * (denominator // number.denominator) for number in (first, step))
        return start + stride * np.arange(self.size).astype(object), denominator

    def computed(self, mode: str, sign: int) -> tuple[Array, int]:
        """The largest coordinates that an implementation may compute (sign 1), the smallest (-1), or the exact ones."""
        exact, denominator = self.coordinates(mode)
        if sign == 0 or self.steady(mode):
            return exact, denominator
        off = np.where(self._settled(mode, exact, denominator), 0, sign * (abs(exact) + denominator))
        return exact * _UNITS + off, denominator * _UNITS

    def _settled(self, mode: str, exact: Array, denominator: int) -> Array:
        """A mask of the coordinates that float32 computes without an error, by the formula as it is written."""
        divisor = mpq(self.size - 1) if mode == "align_corners" else self.scale
        if mode not in _ONE_QUOTIENT or mpq(float(np.float32(float(divisor)))) != divisor:
            return np.zeros(len(exact), bool)
        fractions = [mpq(at, denominator) for at in exact]
        return np.array([_is_power(at.denominator) and abs(at.numerator) < _EXACT_BELOW for at in fractions], bool)

    def stays(self, mode: str) -> bool:
        """Whether the axis stays unchanged."""
        if self.size != self.extent:
            return False
        numerators, denominator = self.coordinates(mode)
        return all(at == denominator * index for index, at in enumerate(numerators))

    def steady(self, mode: str) -> bool:
        """Whether all coordinates are exact: all divisions are by powers of two."""
        divisor = mpq(max(self.size - 1, 1)) if mode in ("align_corners", "tf_crop_and_resize") else self.scale
        return _is_power(divisor.numerator) and _is_power(divisor.denominator)

    def along(self, v: Value, rank: int) -> Value:
        """A value for each output index, in a shape that broadcasts with the output."""
        return v.reshape(-1, *(1,) * (rank - self.dimension - 1))


@dataclass(frozen=True)
class Curve:
    """How neighbours weigh by their distance.

    cubic: by Keys' curve with `coefficient`, else linearly; excluded: only elements inside weigh, and the weights sum
    up to 1 again; antialias: the curve is stretched where an axis shrinks.
    """

    cubic: bool = False
    coefficient: float = 0.0
    excluded: bool = False
    antialias: bool = False


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


def resize(c: Call, x: Value, *_: Value | None) -> Value:
    """The input sampled at the coordinates of the output's elements, axis by axis.

    x: rank r; scales: float32, or sizes: int64, one for each axis (of `axes`, from version 18 on); roi: two for each.
    Numbers are interpolated from two or four neighbours on each axis, or the nearest is used. Version 10 does not
    define the coordinates. Source: ONNX Resize-10 to 19.
    """
    mode = c.attr("mode")
    c.require("mode", mode in ("nearest", "linear", "cubic") and (mode != "cubic" or "cubic" in c.clauses))
    places = c.attr("coordinate_transformation_mode") or c.open("coordinates-early")
    c.require_if_stated("coordinates", places in _COORDINATES)
    axes = [axis for axis in _axes(c, x, places) if not axis.stays(places)]
    if any(axis.size == 1 < axis.extent for axis in axes) and places == "align_corners":
        c.open("one-corner")
    if mode == "nearest":
        way = c.attr("nearest_mode") or c.open("nearest-early")
        c.require_if_stated("nearest-mode", way in ROUNDINGS)
        forms, vague = nearest(c, x, axes, places, way)
        return c.one_of([_cropped(c, y, axes, places) for y in forms], vague)
    cubic = mode == "cubic"
    coefficient = c.float32("cubic_coeff_a", -0.75) if cubic else 0.0
    curve = Curve(cubic, coefficient, c.attr("exclude_outside", 0) == 1, c.attr("antialias", 0) == 1)
    return _cropped(c, interpolated(c, x, axes, curve, places), axes, places)


def _cropped(c: Call, y: Value, axes: Sequence[Axis], places: str) -> Value:
    """The output with the extrapolation value outside the input, if the region of interest may reach there."""
    if places != "tf_crop_and_resize":
        return y
    value = c.constant(c.float32("extrapolation_value"), y.type)
    for axis in axes:
        at, denominator = axis.coordinates(places)
        outside = ((at < 0) | (at > (axis.extent - 1) * denominator)).astype(bool)
        y = value.where(axis.along(c.constant(outside, "bool"), y.rank), y) if outside.any() else y
    return y


def upsample(c: Call, x: Value, _scales: Value | None = None) -> Value:
    """The input upsampled by scales of 1 or more, one for each axis.

    x: rank 4 in version 1, whose height and width have a scale each; any rank later. The standard defines neither the
    coordinates nor the nearest element; version 1 has an example. Source: ONNX Upsample-1 to 10.
    """
    if c.silent("deprecated"):
        c.open("deprecated")
    scales = c.known("scales").reshape(-1).tolist() if c.version in (9, 10) else c.attr("scales", ())
    if "rank-4" in c.clauses:
        c.require("rank-4", x.rank == 4)
        scales = (1.0, 1.0, c.attr("height_scale"), c.attr("width_scale"))
    exact = [mpq(float(np.float32(scale))) for scale in scales]
    c.require_if_stated("lengths", len(exact) == x.rank)
    c.require("scale-range", all(scale >= 1 for scale in exact))
    mode = c.attr("mode")
    c.require("mode", mode in ("nearest", "bilinear" if "rank-4" in c.clauses else "linear"))
    if "example" in c.clauses and mode == "nearest" and all(scale.denominator == 1 for scale in exact):
        for axis, scale in enumerate(exact):
            x = x.take(np.arange(x.shape[axis] * int(scale)) // int(scale), axis)
        return x
    places = c.open("coordinates-early")
    axes = []
    for axis, (extent, scale) in enumerate(zip(x.shape, exact, strict=True)):
        length = extent * scale
        size = int(length // 1)
        if extent and mpq(size, extent) != scale and c.open("scale") == "from-extents":
            scale = mpq(size, extent)  # noqa: PLW2901 - what coordinates divide by from here on
        axes.append(Axis(axis, extent, size, length, scale, mpq(0), mpq(1)))
    axes = [axis for axis in axes if not axis.stays(places)]
    if mode == "nearest":
        return c.one_of(*nearest(c, x, axes, places, c.open("nearest-early")))
    return interpolated(c, x, axes, Curve(), places)


def _axes(c: Call, x: Value, places: str) -> list[Axis]:
    """The axes, with their old and new extents."""
    chosen = c.ints("axes")
    axes = tuple(range(x.rank)) if chosen is None else chosen
    c.require_if_stated("axes-range", all(-x.rank <= a < x.rank for a in axes))
    if len({a % x.rank for a in axes}) < len(axes):
        c.open("axes-repeated")
    scales = tuple(mpq(float(v)) for v in c.known("scales")) if c.given("scales") else ()
    sizes = c.ints("sizes") or ()
    c.require_if_stated("one-of", bool(scales) != bool(sizes) or not axes)
    c.require_if_stated("empty-list", not (c.given("scales") and c.given("sizes")))
    c.require("lengths", len(scales or sizes) == len(axes))
    c.require("positive-scale", all(scale > 0 for scale in scales))
    crop = [mpq(float(v)) for v in c.known("roi")] if places == "tf_crop_and_resize" else []
    c.require_if_stated("roi-length", not crop or len(crop) == 2 * len(axes))
    starts, ends = (crop[: len(axes)], crop[len(axes) :]) if crop else ([mpq(0)] * len(axes), [mpq(1)] * len(axes))
    shared = _one_scale(c, sizes, [x.shape[a] for a in axes]) if sizes else None
    scaled = []
    for i, a in enumerate(axes):
        extent = x.shape[a]
        if shared is not None:
            scale, length = shared, shared * extent
            size = int((length + _HALF) // 1)
        else:
            length = mpq(sizes[i]) if sizes else extent * (ends[i] - starts[i]) * scales[i]
            size = int(length // 1)
            scale = scales[i] if scales else mpq(size, extent) if extent else mpq(1)
        if size and not extent:
            raise ValueError(f"axis {a} has no elements, and would get {size}")
        if extent and size and mpq(size, extent) != scale and c.open("scale") == "from-extents":
            scale, length = mpq(size, extent), length if shared is None else mpq(size)
        scaled.append(Axis(a % x.rank, extent, size, length, scale, starts[i], ends[i]))
    return scaled


def _one_scale(c: Call, sizes: tuple[int, ...], extents: Sequence[int]) -> mpq | None:
    """The common scale that keep_aspect_ratio_policy derives from the sizes, None if each axis has its own."""
    policy = c.attr("keep_aspect_ratio_policy", "stretch")
    c.require_if_stated("policy", policy in ("stretch", "not_larger", "not_smaller"))
    if policy == "stretch":
        return None
    scales = [mpq(size, extent) for size, extent in zip(sizes, extents, strict=True)]
    return min(scales) if policy == "not_larger" else max(scales)


ROUNDINGS: Mapping[str, Callable[[Array, int], Array]] = MappingProxyType(
    {
        "round_prefer_floor": lambda n, d: -((d - 2 * n) // (2 * d)),
        "round_prefer_ceil": lambda n, d: (2 * n + d) // (2 * d),
        "round_even": lambda n, d: (2 * n + d) // (2 * d) - ((2 * n + d) % (4 * d) == 2 * d),
        "floor": lambda n, d: n // d,
        "ceil": lambda n, d: -(-n // d),
    }
)
"""The element that a coordinate n / d is rounded to, by the name of the rounding."""


def nearest(c: Call, x: Value, axes: Sequence[Axis], places: str, way: str) -> tuple[list[Value], Array]:
    """The nearest elements, then those on the other side of each tie; and a mask of where rounding decides.

    way: one of ROUNDINGS, or simple, which is ceil where an axis shrinks, else floor. The mask broadcasts with the
    output. Opens the silence coordinate-rounding.
    """
    forms, vague = [x], np.zeros((), bool)
    for axis in axes:
        rounding = ROUNDINGS[("ceil" if axis.scale < 1 else "floor") if way == "simple" else way]
        picks = (rounding(*axis.computed(places, sign)) for sign in (0, -1, 1))
        near, low, high = (pick.clip(0, max(axis.extent - 1, 0)).astype(np.int64) for pick in picks)
        other = np.where(low != near, low, high)
        open_ = other != near
        if open_.any():
            c.open("coordinate-rounding")
        vague = vague | open_.reshape(-1, *(1,) * (x.rank - axis.dimension - 1))
        forms = [
            form.take(pick, axis.dimension) for pick in ((near, other) if open_.any() else (near,)) for form in forms
        ]
    return forms, vague


def interpolated(c: Call, x: Value, axes: Sequence[Axis], curve: Curve, places: str) -> Value:
    """The neighbours' weighted sum, in any order; from either floor if a coordinate's rounding decides it.

    x: real numbers; the elements outside are those at the edge. Opens the silence antialias-outside if the curve is
    stretched beyond the input.
    """
    forms = [summed(x, axes, taps) for taps in itertools.product(*(ways(c, x, axis, curve, places) for axis in axes))]
    return reduce(lambda first, second: first.either(second), forms)


Taps: TypeAlias = list[tuple[Array, "Value"]]
"""The neighbours of every output index along an axis, and their weights."""


def summed(x: Value, axes: Sequence[Axis], taps: Sequence[Taps]) -> Value:
    """The weighted sum of the neighbours along all axes, in any order."""
    terms = []
    for chosen in itertools.product(*taps):
        term = x
        for axis, (places, _) in zip(axes, chosen, strict=True):
            term = term.take(places.clip(0, axis.extent - 1), axis.dimension)
        weights = [axis.along(weight, x.rank) for axis, (_, weight) in zip(axes, chosen, strict=True)]
        terms.append(term * reduce(lambda a, b: a * b, weights) if weights else term)
    return terms[0].stack(terms[1:]).sum(0, keep=False) if len(terms) > 1 else terms[0]


def ways(c: Call, x: Value, axis: Axis, curve: Curve, places: str) -> list[Taps]:
    """The neighbours and weights along an axis; twice if a coordinate may fall on either side of an element."""
    computed = (axis.computed(places, sign) for sign in (-1, 0, 1))
    low, floors, high = ((numerators // denominator).astype(np.int64) for numerators, denominator in computed)
    others = np.where(low != floors, low, high)
    roundings = [floors] if (others == floors).all() else [floors, others]
    taken = [_weighted(c, x, axis, curve, places, rounding) for rounding in roundings]
    return taken if curve.cubic else taken + [even for taps in taken if (even := _evened(c, x, axis, curve, taps))]


def _evened(c: Call, x: Value, axis: Axis, curve: Curve, taps: Taps) -> Taps | None:
    """The same neighbours, with half the weight each if both are the same edge element, as some implementations do."""
    if len(taps) != 2 or curve.excluded:
        return None
    low, high = (places.clip(0, axis.extent - 1) for places, _ in taps)
    if not (low == high).any():
        return None
    half, exact = c.constant(np.full(axis.size, 0.5), x.type), c.constant(low == high, "bool")
    return [(places, half.where(exact, weight)) for places, weight in taps]


def _weighted(c: Call, x: Value, axis: Axis, curve: Curve, places: str, floors: Array) -> Taps:
    type_ = "float32" if x.type == "float64" else x.type  # scales are float32, and so are coordinates
    at = axis.coordinate(c.constant(np.arange(axis.size), type_), places)
    if not axis.steady(places):  # however an implementation computes it
        at = at.either(at * (1 + 2.0**-22))
    stretch = curve.antialias and axis.scale < 1
    narrow = axis.scale if stretch else mpq(1)
    reach = -int((-2 if curve.cubic else -1) / narrow // 1)
    excluded = curve.excluded or (stretch and c.open("antialias-outside") == "excluded")
    taps: Taps = []
    exact, denominator = axis.coordinates(places)
    for step in range(1 - reach, reach + 1):
        tap = floors + step
        off = abs(tap.astype(object) * denominator - exact) * narrow.numerator
        far = (off / (denominator * narrow.denominator)).astype(np.float64)
        distance = (at - tap).abs() * float(narrow) if stretch else (at - tap).abs()
        weight = weigh(c, curve, distance, far)
        inside = (tap >= 0) & (tap < axis.extent)
        if excluded and not inside.all():
            weight = weight.where(c.constant(inside, "bool"), 0.0)
        taps.append((tap, weight.cast(x.type)))
    if not (excluded or stretch):
        return taps
    total = reduce(lambda a, b: a + b, (weight for _, weight in taps))
    return [(tap, (weight / total).either(weight * (1.0 / total))) for tap, weight in taps]


def weigh(c: Call, curve: Curve, distance: Value, far: Array) -> Value:
    """The weight of an element by its distance: a tent, or Keys' cubic. `far`: the exact distances."""
    if not curve.cubic:
        return (1.0 - distance).clip(0.0, 1.0)
    near, beyond = keys(distance, curve.coefficient)
    picked = near.where(c.constant(far <= 1, "bool"), beyond)
    return picked.where(c.constant(far < 2, "bool"), 0.0)


def keys(distance: Value, a: float) -> tuple[Value, Value]:
    """The weights of cubic interpolation: for distances up to 1, and from 1 to 2. Source: R. Keys, 1981."""
    near = ((a + 2.0) * distance - (a + 3.0)) * distance * distance + 1.0
    return near, ((distance - 5.0) * distance + 8.0) * distance * a - 4.0 * a
