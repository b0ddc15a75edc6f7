"""Operators that interpolate between the elements of an image: AffineGrid, GridSample, DeformConv."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from gmpy2 import mpq

from ...cases.elements import Array, element_type
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from ..primitives.errors import each
from . import Shaping
from .resize import keys

_HALF = mpq(1, 2)


def affine_grid(c: Call, theta: Value, _size: Value) -> Value:
    """Evenly spaced positions from -1 to 1, each transformed by an affine map.

    theta: [N, 2, 3], whose rows give x and y, or [N, 3, 4], x, y and z; size: N, C, H, W or N, C, D, H, W; result:
    [N, H, W, 2] or [N, D, H, W, 3]. The last axis of the image is x. -1 and 1 are the outer edges of the corner pixels,
    or, with align_corners, their centers. Source: ONNX AffineGrid-20.
    """
    sizes = c.ints("size") or ()
    extents = sizes[2:]
    r = len(extents)
    c.require("shapes", r in (2, 3) and theta.shape == (sizes[0], r, r + 1))
    lines = [_evenly(c, n, theta.type).reshape(-1, *(1,) * (r - 1 - axis)) for axis, n in enumerate(extents)]
    x, *others = (v.broadcast(*extents) for v in (*lines[::-1], c.constant(1.0, theta.type)))
    places = x.stack(*others).reshape(r + 1, -1)
    return theta.matmul(places).transpose(0, 2, 1).reshape(sizes[0], *extents, r)


def _evenly(c: Call, n: int, type_: str) -> Value:
    """The positions along an axis: by steps from the start, or as pixel centers scaled in from the edges."""
    places, two = c.constant(np.arange(n), type_), c.constant(2.0, type_)
    spread = places * (two / max(n - 1, 1)) - 1.0
    if c.attr("align_corners") == 1:
        if n == 1:
            corner = {"start": -1.0, "center": 0.0, "end": 1.0}.get(c.open("one-corner"), math.nan)
            return c.constant(corner, type_).reshape(1)
        return spread
    step = two / max(n, 1)
    inward = spread * (c.constant(n - 1, type_) / max(n, 1)) if n > 1 else places
    return (places * step + (step / 2.0 - 1.0)).either(inward)


def grid_sample(c: Call, x: Value, grid: Value) -> Value:
    """The image interpolated at the grid's points.

    x: [N, C, D1 ... Dr]; grid: [N, out..., r], points with the last axis of the image first, from -1 to 1 along each;
    result: [N, C, out...]. Neighbours outside the image are zeros, the border's, or mirrored. Source: ONNX
    GridSample-16 to 22.
    """
    r, early = x.rank - 2, "rank-4" in c.clauses
    c.require("shapes", grid.rank == x.rank and grid.shape[0] == x.shape[0] and grid.shape[-1] == r > 0)
    c.require_if_stated("rank-4", r == 2)
    mode, padding = c.attr("mode"), c.attr("padding_mode")
    c.require("mode", mode in (("bilinear", "nearest", "bicubic") if early else ("linear", "nearest", "cubic")))
    c.require("padding", padding in ("zeros", "border", "reflection"))
    given = c.known(grid).astype(np.float64)
    finite = np.isfinite(given)
    numbers = each(mpq, np.where(finite, given, 0.0))
    lines = [_line(c, n, grid[..., r - 1 - i], numbers[..., r - 1 - i], x) for i, n in enumerate(x.shape[2:])]
    if mode == "nearest":
        forms, tie = _nearest(c, x, lines, padding)
    else:
        cubic, real = mode.endswith("cubic"), x if x.kind == "real" else x.cast("float32")
        curve = (-0.75 if c.open("cubic-coefficient") == "three-quarters" else -0.5) if cubic else 0.0
        ways = _ways(c, lines, padding, cubic=cubic)
        images = [real, *([real.cast("float32")] if x.type in ("bfloat16", "float16") else [])]  # weights may be wider
        seen = [
            _interpolated(c, image, [_settled(line, padding, way) for line in lines], padding, curve).store(real.type)
            for image in images
            for way in ways
        ]
        y = reduce(lambda a, b: a.either(b), seen).transpose(1, 0, *range(2, x.rank))
        if x.kind == "int":
            rounding = c.open("integer-rounding")
            y = {"truncate": y, "nearest-even": y.rint(), "nearest-away": y.rint_away()}[rounding]
        forms, tie = [y.cast(x.type)], np.zeros((), bool)
    beyond, vague = (np.any(mask, axis=-1)[:, np.newaxis] for mask in (np.abs(given) > 1, ~finite))
    if padding == "zeros" and beyond.any() and c.open("zeros-where") == "places":
        forms = [_zeroed(c, y, beyond) for y in forms]
    if not vague.any():
        return c.one_of(forms, tie)
    return forms[0].undefined(c.constant(vague, "bool"), "not-finite").undefined(c.constant(tie & ~vague, "bool"))


@dataclass(frozen=True)
class _Line:
    """Coordinates along one axis of an image, [N, out...].

    `at`: the exact ones, as fractions; `reach`: their largest rounding error; `value`: the computed ones. `low` and
    `high`: the ends at which they are mirrored. `beyond`: a mask of the points beyond -1 and 1.
    """

    extent: int
    at: Array
    reach: Array
    value: Value
    low: mpq
    high: mpq
    beyond: Array

    @property
    def outside(self) -> Array:
        """A mask of the points beyond the centers of the first and last elements."""
        return ((self.at < 0) | (self.at > self.extent - 1)).astype(bool)

    def mirrored(self, at: Array) -> tuple[Array, Array]:
        """Coordinates mirrored at both ends as often as needed, and -1 if they then run backwards, else 1."""
        span = self.high - self.low
        if not span:
            return at * 0 + self.low, np.ones(at.shape, int)
        turn = (at - self.low) % (2 * span)
        back = (turn > span).astype(bool)
        return self.low + np.where(back, 2 * span - turn, turn), np.where(back, -1, 1)

    def elements(self, places: Array, padding: str) -> Array:
        """The elements at whole coordinates, -1 for zeros."""
        if padding == "zeros":
            return np.where((places >= 0) & (places < self.extent), places, -1).astype(np.int64)
        if padding == "reflection":
            places = each(round, self.mirrored(each(mpq, places))[0])
        return places.clip(0, self.extent - 1).astype(np.int64)

    def chosen(self, choose: Callable[[mpq], int], padding: str) -> tuple[Array, Array]:
        """The elements that a rule chooses, and others that it may choose after rounding."""
        near, low, high = (self.elements(each(choose, self.at + s * self.reach), padding) for s in (0, -1, 1))
        return near, np.where(low != near, low, high)


def _line(c: Call, extent: int, g: Value, numbers: Array, x: Value) -> _Line:
    """The coordinates on an axis of an image for the grid's numbers, by either form of the conversion."""
    corners = c.attr("align_corners") == 1
    length, shift = (extent - 1, 0) if corners else (extent, 1)

    def along(g: Value) -> Value:
        coordinate = ((g + 1.0) * float(length) - float(shift)) / 2.0
        return coordinate.either(g * (length / 2) + (extent - 1) / 2)

    if g.type == "float64" and x.type != "float64":  # an implementation may use one type for both
        value, type_ = along(g).cast("float32").either(along(g.cast("float32"))), "float32"
    else:
        value, type_ = along(g), g.type
    precision = element_type(type_).float_format.precision

    def reach(n: mpq) -> mpq:
        steady = (abs(n.numerator) + n.denominator) * 2 * extent < 1 << precision  # for either form
        return mpq(0) if steady else (abs(n) + 1) * extent * mpq(8, 1 << precision)

    low, high = -_HALF, extent - _HALF
    if corners or (c.attr("padding_mode") == "reflection" and c.open("mirror") == "centers"):
        low, high = mpq(0), mpq(extent - 1)
    at = ((numbers + 1) * length - shift) / 2
    return _Line(extent, at, each(reach, numbers), value, low, high, (abs(numbers) > 1).astype(bool))


def _ways(c: Call, lines: Sequence[_Line], padding: str, *, cubic: bool) -> tuple[str, ...]:
    """The ways to clamp points to the border: none, as neighbours are clamped anyway, those beyond -1 and 1, or all."""
    if padding != "border" or not any(line.outside.any() for line in lines):
        return ("centers",)
    return (c.open("cubic-border"),) if cubic else ("centers", "places")


def _settled(line: _Line, padding: str, way: str) -> _Line:
    """The line with coordinates moved into the image, if the padding requires it."""
    if padding == "zeros" or not line.outside.any():
        return line
    if padding == "reflection":
        at, sign = line.mirrored(line.at)
    else:
        moved = line.outside & {"pixels": np.False_, "places": line.beyond, "centers": np.True_}[way]
        at = np.where(moved, each(lambda n: mpq(min(max(n, 0), line.extent - 1)), line.at), line.at)
        sign = np.where(moved, 0, 1)
    value = line.value * sign + (at - line.at * sign).astype(np.float64)
    return replace(line, at=at, value=value, reach=line.reach * abs(sign))


def _nearest(c: Call, x: Value, lines: Sequence[_Line], padding: str) -> tuple[list[Value], Array]:
    """The nearest elements, then those on the other side of each tie; and a mask of where rounding decides."""
    rules: dict[str, Callable[[mpq], int]] = {
        "even": round,
        "up": lambda at: math.floor(at + _HALF),
        "away": lambda at: math.floor(abs(at) + _HALF) * (1 if at > 0 else -1),
        "down": lambda at: math.ceil(at - _HALF),
    }
    rule = rules["even" if "ties" in c.clauses else c.open("ties-early")]
    if padding == "reflection":
        tie = any(bool((abs(line.at % 1 - _HALF) <= line.reach).any()) for line in lines)
        if tie and c.open("mirrored-ties") == "mirrored-first":
            lines = [_settled(line, padding, "centers") for line in lines]
    choices = [line.chosen(rule, padding) for line in lines]
    vague = reduce(np.logical_or, (near != other for near, other in choices))
    if vague.any():
        c.open("coordinate-rounding")
    ways = itertools.product(*((near, other) if (near != other).any() else (near,) for near, other in choices))
    return [_read(c, x, way).transpose(1, 0, *range(2, x.rank)) for way in ways], vague[:, np.newaxis]


def _interpolated(c: Call, x: Value, lines: Sequence[_Line], padding: str, curve: float) -> Value:
    """The weighted sums of neighbours, [C, N, out...]: two along each axis, or four with Keys' curve."""
    forms = []
    for floors in itertools.product(*map(_floors, lines)):
        elements, weights = [], c.constant(1.0, lines[0].value.type)
        for i, (line, floor) in enumerate(zip(lines, floors, strict=True)):
            distance = line.value - floor
            steps = np.arange(-1, 3) if curve else np.arange(2)
            if curve:
                sides = [(keys(d, curve)[0], keys(d + 1.0, curve)[1]) for d in (distance, 1.0 - distance)]
                parts = [sides[0][1], sides[0][0], *sides[1]]
            else:
                parts = [1.0 - distance, distance]
            indices = line.elements(floor[..., None] + steps, padding)
            elements.append(indices.reshape(*floor.shape, *(1,) * i, len(steps), *(1,) * (len(lines) - 1 - i)))
            weight = parts[0].stack(*parts[1:]).transpose(*range(1, floor.ndim + 1), 0)
            weights = weights * weight.reshape(*elements[-1].shape) if i else weight.reshape(*elements[-1].shape)
        terms = _read(c, x, elements) * weights.cast(x.type)
        forms.append(terms.sum(tuple(range(-len(lines), 0)), keep=False))
    return reduce(lambda first, second: first.either(second), forms)


def _floors(line: _Line) -> list[Array]:
    """The floors of coordinates, and other floors if rounding decides."""
    near, low, high = (each(math.floor, line.at + s * line.reach).astype(np.int64) for s in (0, -1, 1))
    other = np.where(low != near, low, high)
    return [near] if (other == near).all() else [near, other]


def _read(c: Call, x: Value, elements: Sequence[Array]) -> Value:
    """The elements of images x, [N, C, D...], at indices along each axis, -1 for zeros.

    elements: [N, ...] each, broadcast together; result: [C, N, ...].
    """
    places = np.broadcast_arrays(*elements)
    index = np.arange(x.shape[0]).reshape(-1, *(1,) * (places[0].ndim - 1))
    for extent, coordinate in zip(x.shape[2:], places, strict=True):
        index = index * extent + coordinate.clip(0)
    seen = x.transpose(1, 0, *range(2, x.rank)).reshape(x.shape[1], -1).take(index, 1)
    outside = reduce(np.logical_or, (coordinate < 0 for coordinate in places))
    return _zeroed(c, seen, outside) if outside.any() else seen


def _zeroed(c: Call, seen: Value, outside: Array) -> Value:
    """The elements, with zero under a mask; the zero of text is open."""
    text = seen.kind == "text"
    zero = c.constant("" if text else False if seen.kind == "bool" else 0, seen.type)
    y = seen.where(c.constant(~outside, "bool"), zero)
    return y.undefined(c.constant(outside, "bool")) if text and c.open("zero-text") != "empty" else y


def deform_conv(c: Call, x: Value, w: Value, offset: Value, b: Value | None = None, mask: Value | None = None) -> Value:
    """The cross-correlation of w with x, where each element is read at an offset and weighted by a mask.

    x: [N, C, spatial...]; w: [M, C / group, kernel...]; offset: [N, offset_group * kernel * axes, out...], axes last;
    b: [M]; mask: [N, offset_group * kernel, out...]; result: [N, M, out...]. Source: ONNX DeformConv-19 and 22.
    """
    n, kernel, groups, shared = x.shape[0], w.shape[2:], c.attr("group"), c.attr("offset_group")
    r, m, taps = len(kernel), w.shape[0], math.prod(w.shape[2:])
    c.require("groups", x.rank == w.rank == r + 2 > 2 and x.shape[1] == w.shape[1] * groups and m % groups == 0)
    c.require("offset-groups", shared > 0 and x.shape[1] % shared == 0)
    c.require("kernel-shape", c.ints("kernel_shape") in (None, kernel))
    strides, dilations = c.ints("strides") or (1,) * r, c.ints("dilations") or (1,) * r
    pads = c.ints("pads") or (0,) * (2 * r)
    c.require("per-axis", len(strides) == len(dilations) == r and len(pads) == 2 * r)
    c.require("pads-range", min(pads) >= 0)
    c.require("bias-shape", b is None or b.shape == (m,))
    spans = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    room = [x.shape[2 + i] + pads[i] + pads[r + i] - spans[i] for i in range(r)]
    out = tuple(spare // step + 1 for spare, step in zip(room, strides, strict=True))
    c.require("offset-shape", offset.shape == (n, shared * taps * r, *out))
    if mask is not None:
        c.require("mask-shape", mask.shape in ((n, shared * taps, *out), (n, shared * taps * r, *out)))
        if r > 2 or mask.shape[1] != shared * taps:
            c.open("mask-volume")
    given = c.known(offset).astype(np.float64)
    form = Deformation(groups, shared, strides, dilations, pads)
    seen, beyond = deformed(c, x, offset, given, kernel, form)
    if beyond.any() and c.open("outside") == "places":
        seen = seen.where(c.constant(~beyond, "bool"), 0.0)
    y = weighed(c, seen, w, form, b, mask)
    vague = np.any((~np.isfinite(given)).reshape(n, shared * taps * r, *out), axis=1)[:, np.newaxis]
    return y.undefined(c.constant(vague, "bool"), "not-finite") if vague.any() else y


@dataclass(frozen=True)
class Deformation:
    """Groups of channels, groups of offsets, and per spatial axis strides, dilations and the padding, starts first."""

    groups: int
    parts: int
    strides: Sequence[int]
    dilations: Sequence[int]
    pads: Sequence[int]


def deformed(
    c: Call, x: Value, offset: Value, given: Array, kernel: Sequence[int], form: Deformation
) -> tuple[Value, Array]:
    """The numbers that each element of a kernel meets, and where these lie outside the padded input.

    x: [N, C, spatial...]; offset: [N, parts * kernel * axes, out...]; given: its values; results: both
    [C / parts, N * parts, kernel, out...], the second with a leading 1.
    """
    r, taps, (n, _, *out) = len(kernel), math.prod(kernel), offset.shape
    moves, given = offset.reshape(n * form.parts, taps, r, *out), given.reshape(n * form.parts, taps, r, *out)
    finite = np.isfinite(given)
    lines, beyond = [], np.zeros(1, bool)
    for i, extent in enumerate(x.shape[2:]):
        tap = np.indices(tuple(kernel))[i].reshape(taps, *(1,) * r) * form.dilations[i]
        places = np.indices(tuple(out))[i] * form.strides[i] - form.pads[i] + tap
        line = _moved(extent, places, moves[:, :, i], np.where(finite, given, 0.0)[:, :, i])
        lines.append(line)
        beyond = beyond | ((line.at < -form.pads[i]) | (line.at > extent - 1 + form.pads[r + i])).astype(bool)
    images = x.reshape(n * form.parts, x.shape[1] // form.parts, *x.shape[2:])
    return _interpolated(c, images, lines, "zeros", 0.0), beyond


def weighed(c: Call, seen: Value, w: Value, form: Deformation, b: Value | None, mask: Value | None) -> Value:
    """The sums of the filters' inputs times weights and mask, plus b: [N, M, out...].

    seen: [C / parts, N * parts, kernel, out...], from `deformed`; mask: [N, parts * kernel, out...].
    """
    r, groups, m = seen.rank - 3, form.groups, w.shape[0]
    part, images, taps, *out = seen.shape
    shared, n = form.parts, images // form.parts
    seen = seen.reshape(part, n, shared, taps, *out).transpose(1, 2, 0, *range(3, 4 + r))
    mask = None if mask is None else mask.reshape(n, shared, 1, taps, *out)
    terms, area = w.shape[1] * taps, math.prod(out)

    def columns(v: Value) -> Value:
        return v.reshape(n, groups, terms, area).transpose(0, 1, 3, 2)

    weights = w.reshape(1, groups, m // groups, terms).transpose(0, 1, 3, 2)
    first = columns(seen if mask is None else seen * mask)
    last = [] if b is None else [b.reshape(1, groups, 1, m // groups)]
    if last:  # one more addend, in any order
        first = first.concat([c.constant(1.0, seen.type).broadcast(n, groups, area, 1)], 3)
    y = first.matmul(weights.concat(last, 2))
    if mask is not None:  # or the mask is the last factor
        factors = columns(mask.broadcast(n, shared, part, taps, *out)).reshape(n, groups, area, terms, 1)
        second = columns(seen).reshape(*factors.shape) * weights.reshape(1, groups, 1, terms, m // groups) * factors
        addends = [
            addend.reshape(1, groups, 1, 1, m // groups).broadcast(n, groups, area, 1, m // groups) for addend in last
        ]
        y = y.either(second.concat(addends, 3).sum(3, keep=False))
    return y.transpose(0, 1, 3, 2).reshape(n, m, *out)


def _moved(extent: int, places: Array, move: Value, given: Array) -> _Line:
    """Whole coordinates along an axis of an image, each shifted by an offset."""
    numbers = each(mpq, given)
    starts = np.broadcast_to(places, given.shape)
    precision = element_type(move.type).float_format.precision

    most = extent + int(abs(places).max(initial=0))

    def reach(n: mpq) -> mpq:
        steady = (abs(n.numerator) + n.denominator) * most < 1 << precision
        return mpq(0) if steady else (abs(n) + most) * mpq(4, 1 << precision)

    return _Line(extent, starts + numbers, each(reach, numbers), move + starts, mpq(0), mpq(0), starts < 0)


def quarters(drawing: Drawing) -> Array:
    """Points at multiples of 1/4, from -1.5 to 1.5: at elements, halfway between them, and beyond the border."""
    return drawing.draw.between(-6, 6, drawing.size) / 4


def inside(drawing: Drawing) -> Array:
    """Points at multiples of 1/4 from -0.5 to 0.5: all of them inside the image."""
    return drawing.draw.between(-2, 2, drawing.size) / 4


def far(drawing: Drawing) -> Array:
    """Points at multiples of 1/2 from -12 to 12: most are mirrored several times."""
    return drawing.draw.between(-24, 24, drawing.size) / 2


def anywhere(drawing: Drawing) -> Array:
    """Points from -1.25 to 1.25."""
    return drawing.draw.between(-5 << 20, 5 << 20, drawing.size) / (1 << 22)


def steps(drawing: Drawing) -> Array:
    """Whole numbers from -3 to 3."""
    return drawing.draw.between(-3, 3, drawing.size)


def still(drawing: Drawing) -> Array:
    """All zeros."""
    return np.zeros(drawing.size)


def offsets(shaping: Shaping) -> tuple[int, ...]:
    """A number for each image, offset group, kernel element, axis, and output element."""
    images, places, out = _windows(shaping)
    return (images, places * len(out), *out)


def masks(shaping: Shaping) -> tuple[int, ...]:
    """A number for each image, offset group, kernel element, and output element."""
    images, places, out = _windows(shaping)
    return (images, places, *out)


def _windows(shaping: Shaping) -> tuple[int, int, tuple[int, ...]]:
    extents, kernel = shaping.symbols["S"], shaping.symbols["K"]
    assert isinstance(extents, tuple)
    assert isinstance(kernel, tuple)
    r = len(extents)
    pads, strides, dilations = (
        [*(n for n in (numbers if isinstance(numbers, tuple) else ()) if isinstance(n, int)), *[usual] * 2 * r]
        for name, usual in (("pads", 0), ("strides", 1), ("dilations", 1))
        for numbers in [shaping.attr(name)]
    )
    spans = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=False)]
    out = tuple((n + pads[i] + pads[r + i] - spans[i]) // strides[i] + 1 for i, n in enumerate(extents))
    return shaping.extent("N"), shaping.extent("h") * math.prod(kernel), out
