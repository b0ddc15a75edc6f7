"""oneDNN Graph's operations that move elements, and its conversions between element types."""

from __future__ import annotations

import math

import numpy as np

from ...cases.elements import Array, element_type
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from . import Shaping


def reshape(c: Call, src: Value) -> Value:
    """The elements in another shape: a -1 is what is left; with special_zero, a 0 is the extent of src in its place.

    Source: oneDNN Graph StaticReshape.
    """
    wanted, copies = c.ints("shape") or (), bool(c.attr("special_zero"))
    if not wanted:
        c.open("to-scalar")
    c.require("zero-place", not copies or 0 not in wanted[src.rank :])
    c.require("extents", min(wanted, default=0) >= -1)
    c.require("infer-once", wanted.count(-1) <= 1)
    extents = [src.shape[position] if extent == 0 and copies else extent for position, extent in enumerate(wanted)]
    if -1 in extents:
        others = math.prod(extent for extent in extents if extent != -1)
        c.require("infer-some", others > 0)
        extents[extents.index(-1)] = src.size // others
    c.require("volume", math.prod(extents) == src.size)
    return src.reshape(*extents)


def transpose(c: Call, src: Value) -> Value:
    """The dimensions in the order of `order`, of which a negative one counts from the end.

    Source: oneDNN Graph StaticTranspose.
    """
    order = c.ints("order") or ()
    c.require("order-range", all(-src.rank <= axis < src.rank for axis in order))
    order = tuple(axis % src.rank for axis in order)
    c.require("permutation", sorted(order) == list(range(src.rank)))
    return src.transpose(*order)


def type_cast(c: Call, src: Value) -> Value:
    """Each element in the type of dst, rounded to nearest, ties to even. Source: oneDNN Graph TypeCast."""
    to = str(c.output_types["dst"])
    c.require("types", sorted((src.type, to)) in (["bfloat16", "float32"], ["float16", "float32"]))
    return src.cast(to)


def gen_index(c: Call, src: Value) -> Value:
    """The index of every element along axis, as s32. Source: oneDNN Graph GenIndex."""
    axis = c.attr("axis")
    c.require("axis-range", -src.rank <= axis < src.rank)
    return c.constant(np.indices(src.shape)[axis], "int32")


def quantize(c: Call, src: Value) -> Value:
    """round(src / scale + zp), in 8 bits; which number a fraction, or one out of range, becomes is open.

    src: float32; result: its shape, of type s8, u8, or of 8-bit floats, without zp. Source: oneDNN Graph Quantize.
    """
    return _coded(c, src, *_parameters(c, src))


def _coded(c: Call, src: Value, scales: Value, zeros: Value) -> Value:
    """round(src / scale + zp) in the type of dst; scales and zeros are of type float32 and broadcast to src."""
    to = element_type(str(c.output_types["dst"]))
    quotient = (src / scales).either(src * scales.reciprocal())
    if not to.is_integer:
        saturate = c.open("range", quotient.abs() > to.float_format.largest) == "saturates"
        # the page leaves the rounding to the library: also first to 16 bits
        twice = quotient.cast("float16").cast(to.name, saturate=saturate)
        return quotient.cast(to.name, saturate=saturate).either(twice)
    y = quotient + zeros
    taken = c.open("rounding", ~y.equal(y.trunc()))
    ways = {"nearest-away": y.rint_away, "truncate": y.trunc, "floor": y.floor, "ceiling": y.ceil}
    rounded = ways.get(taken, y.rint)()
    code = rounded.clip(float(to.smallest), float(to.largest)).cast(to.name)
    inside = (rounded >= float(to.smallest)) & (rounded <= float(to.largest))
    if c.open("range", ~inside) == "any":
        code = code.undefined(~inside)
    return code.undefined(y.isnan(), "nan")


def dequantize(c: Call, src: Value) -> Value:
    """(src - zp) * scale.

    src: s8, u8, or of 8-bit floats, without zp; result: its shape, of type float32. Source: oneDNN Graph Dequantize.
    """
    scales, zeros = _parameters(c, src)
    return (src.cast("float32") - zeros) * scales


def _parameters(c: Call, src: Value) -> tuple[Value, Value]:
    """The scales and zero points of qtype, of rank 0, or in a shape that broadcasts to that of src."""
    scales, zeros = tuple(c.attr("scales")), c.ints("zps")
    c.require("qtype-known", c.attr("qtype") in ("per_tensor", "per_channel"))
    codes = {src.type, str(c.output_types["dst"])} - {"float32"}
    c.require("float8-zps", zeros is None or codes <= {"int8", "uint8"})
    zeros = (0,) * len(scales) if zeros is None else zeros
    shape: tuple[int, ...] = ()
    if c.attr("qtype") == "per_tensor":
        c.require("one-scale", len(scales) == 1 and len(zeros) == 1)
    else:
        axis = c.attr("axis")
        c.require("axis-range", -src.rank <= axis < src.rank)
        c.require("scales-length", len(scales) == len(zeros) == src.shape[axis])
        shape = tuple(len(scales) if dimension == axis % src.rank else 1 for dimension in range(src.rank))
    numbers = np.array(scales, np.float32).astype(np.float64).reshape(shape)
    offsets = np.array(zeros, np.float64).reshape(shape)
    return c.constant(numbers, "float32"), c.constant(offsets, "float32")


def dynamic_quantize(c: Call, src: Value, scales: Value, zps: Value | None = None) -> Value:
    """Quantize with scales and zero points that are inputs.

    src: float32; scales, zps: [1], or [extent of axis]. Source: oneDNN Graph DynamicQuantize.
    """
    return _coded(c, src, *_fed(c, src, scales, zps))


def dynamic_dequantize(c: Call, src: Value, scales: Value, zps: Value | None = None) -> Value:
    """(src - zp) * scale, in the type of scales, which are inputs like zps.

    src: whole numbers of 8 or 4 bits; scales, zps: [1], or [extent of axis], or, for groups, the extents of src over
    those of group_shape. Source: oneDNN Graph DynamicDequantize.
    """
    if c.attr("qtype") == "per_group":
        return _by_groups(c, src, scales, zps)
    factors, zeros = _fed(c, src, scales, zps)
    return ((src.cast("float32") - zeros) * factors).cast(scales.type)


def _by_groups(c: Call, src: Value, scales: Value, zps: Value | None) -> Value:
    """(src - zp) * scale, with a scale and a zero point for each block of the shape group_shape."""
    c.open("per-group")
    shape = c.ints("group_shape") or ()
    c.require("group-shape", len(shape) == src.rank)
    c.require("group-shape", all(n > 0 and extent % n == 0 for n, extent in zip(shape, src.shape, strict=True)))
    blocks = tuple(extent // n for n, extent in zip(shape, src.shape, strict=True))
    c.require(
        "scales-length", all(parameters.shape == blocks for parameters in (scales, zps) if parameters is not None)
    )
    grouped = src.cast("float32").reshape(*(part for pair in zip(blocks, shape, strict=True) for part in pair))
    spread = [part for extent in blocks for part in (extent, 1)]
    if zps is not None:
        grouped = grouped - zps.cast("float32").reshape(*spread)
    return (grouped * scales.cast("float32").reshape(*spread)).cast(scales.type).reshape(*src.shape)


def _fed(c: Call, src: Value, scales: Value, zps: Value | None) -> tuple[Value, Value]:
    """Scales and zero points in float32, in shapes that broadcast to that of src."""
    c.require("qtype-known", c.attr("qtype") in ("per_tensor", "per_channel"))
    given = [parameters for parameters in (scales, zps) if parameters is not None]
    shape: tuple[int, ...] = ()
    if c.attr("qtype") == "per_tensor":
        c.require("one-scale", all(parameters.shape == (1,) for parameters in given))
    else:
        axis = c.attr("axis")
        c.require("axis-range", -src.rank <= axis < src.rank)
        c.require("scales-length", all(parameters.shape == (src.shape[axis],) for parameters in given))
        shape = tuple(-1 if dimension == axis % src.rank else 1 for dimension in range(src.rank))
    zeros = c.constant(0.0, "float32") if zps is None else zps.cast("float32").reshape(*shape)
    return scales.cast("float32").reshape(*shape), zeros


def by_qtype(shaping: Shaping) -> tuple[int, ...]:
    """The shape of scales: one number, or one for each place along axis."""
    extents, axis = shaping.symbols["d"], shaping.attr("axis")
    assert isinstance(extents, tuple)
    assert isinstance(axis, int)
    return (extents[axis],) if shaping.attr("qtype") == "per_channel" else (1,)


def offsets(drawing: Drawing) -> Array:
    """Whole numbers from -7 to 7, or for an unsigned type from 0 to 14."""
    return drawing.draw.between(-7, 7, drawing.size) + (7 if drawing.type.kind == "unsigned" else 0)
