"""Operators that compute each output element from the input elements at its position: Add, Max, Equal, Clip."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from ...cases.elements import Array, element_type
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw, Drawing


def aligned(c: Call, a: Value, b: Value) -> tuple[Value, Value]:
    """The operands of a binary operator, broadcast by the version's rule.

    a: shape D, b: shape E, of one type. Until ONNX's opset 6 `b` is broadcast to D if `broadcast` is 1: it has one
    element, or E is a contiguous part of D, at its end unless `axis` gives its start. From opset 7 on, NumPy's rule in
    both directions. Source: ONNX Add-1 to 14, Equal-1 to 19 and similar operators; ONNX's Broadcasting page.
    """
    legacy = c.attr("broadcast")
    if legacy is None:
        c.require("broadcast", meet(a.shape, b.shape))
        return a, b
    if not legacy:
        c.require("legacy-same-shape", a.shape == b.shape)
        return a, b
    if math.prod(b.shape) == 1 and b.rank <= a.rank and not c.given("axis"):
        return a, b.reshape(*(1,) * a.rank)
    start = c.attr("axis")
    if start is None:
        start = a.rank - b.rank
    elif start < 0:
        if c.open("legacy-axis-negative") != "from-the-end":
            return a, a
        start += a.rank
    fits = 0 <= start <= a.rank - b.rank and (math.prod(b.shape) == 1 or a.shape[start : start + b.rank] == b.shape)
    c.require("legacy-part", fits)
    return a, b.reshape(*(1,) * start, *b.shape, *(1,) * (a.rank - start - b.rank)) if fits else a


def meet(*shapes: tuple[int, ...]) -> bool:
    """Whether shapes broadcast by NumPy's rule."""
    rank = max(map(len, shapes), default=0)
    columns = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    return all(len({extent for extent in column if extent != 1}) <= 1 for column in columns)


def add(c: Call, a: Value, b: Value) -> Value:
    """The sum, element by element.

    Source: ONNX Add-1 to 14.
    """
    a, b = aligned(c, a, b)
    return a + b


def sub(c: Call, a: Value, b: Value) -> Value:
    """The difference, element by element.

    Source: ONNX Sub-1 to 14.
    """
    a, b = aligned(c, a, b)
    return a - b


def mul(c: Call, a: Value, b: Value) -> Value:
    """The product, element by element.

    Source: ONNX Mul-1 to 14.
    """
    a, b = aligned(c, a, b)
    return a * b


def div(c: Call, a: Value, b: Value) -> Value:
    """The quotient, element by element; for whole numbers it is rounded towards zero, and division by zero is open.

    Source: ONNX Div-1 to 14.
    """
    a, b = aligned(c, a, b)
    if a.kind == "real":
        return a.div(b)
    return a.quotient(b).undefined(b.equal(0), "zero-divisor")


def pow_(c: Call, x: Value, y: Value) -> Value:
    """The first operand to the power of the second, in the type of the first.

    x, y: numbers, of one type until version 7. Source: ONNX Pow-1 to 15.
    """
    x, y = aligned(c, x, y)
    if x.kind == "int":
        return _whole_power(c, x, y)
    if y.type != x.type and c.open("exponent-type") == "rounded":
        y = y.cast(x.type)
    elif y.kind == "real":
        y = y.cast("float64") if y.type != x.type else y
    z = x.pow(y)
    if y.kind == "int":
        return z
    z = z.undefined((x < 0.0) & ~(y.isinf() | y.isnan() | y.equal(y.trunc())), "no-real")
    lone = (x.equal(1.0) & y.isnan()) | (y.equal(0.0) & x.isnan())
    return z if c.open("one", lone) == "one" else c.constant(math.nan, x.type).where(lone, z)


def _whole_power(c: Call, x: Value, y: Value) -> Value:
    """A power in a type of whole numbers. Fractions, and numbers that do not fit, are open."""
    if y.kind == "real":
        z = x.cast("float64").pow(y.cast("float64"))
        return (z.rint() if c.open("rounding") == "nearest-even" else z.trunc()).cast(x.type)
    return x.pow(y).undefined((y < 0) & ~(x.equal(1) | x.equal(-1)), "fraction")


def mod(c: Call, a: Value, b: Value) -> Value:
    """The remainder, element by element: with the divisor's sign, or with `fmod` the dividend's; by zero it is open.

    Until version 27 floats need fmod. Source: ONNX Mod-10 to 28.
    """
    a, b = aligned(c, a, b)
    fmod = c.attr("fmod")
    c.require_if_stated("fmod-values", fmod in (0, 1))
    if a.kind == "int":
        if fmod:
            c.answer("fmod-integer", "dividend-sign")
        y = a.mod(b, sign="dividend" if fmod else "divisor")
        return y.undefined(b.equal(0), "zero-divisor")
    c.require_if_stated("fmod-float", fmod == 1)
    y = a.mod(b, sign="dividend" if fmod else "divisor")
    if c.answer("as-written", "exact") == "exact":
        return y
    quotient = (a / b).trunc() if fmod else (a / b).floor()
    return (a - quotient * b).where(~(b.isinf() | b.equal(0.0) | a.isinf()), y)


def bit_shift(c: Call, x: Value, y: Value) -> Value:
    """The bits shifted to the left or right; by the width or more, only fill bits are left (open in version 11).

    x, y: whole numbers of one type. Source: ONNX BitShift-11 and 28.
    """
    x, y = aligned(c, x, y)
    direction = c.attr("direction")
    c.require("direction", direction in ("LEFT", "RIGHT"))
    far = (y < 0) | (y >= element_type(x.type).bits)
    moved = x.shift(c.constant(0, y.type).where(far, y), direction=direction.lower())
    fill = c.constant(0, x.type)
    if "beyond" in c.clauses and direction == "RIGHT" and element_type(x.type).smallest < 0:
        fill = c.constant(-1, x.type).where(x < 0, fill)
    z = fill.where(far, moved)
    return z if "beyond" in c.clauses else z.undefined(far, "too-far")


def and_(c: Call, a: Value, b: Value) -> Value:
    """And, of truth values or of the bits of whole numbers.

    Source: ONNX And-1 and 7, BitwiseAnd-18.
    """
    a, b = aligned(c, a, b)
    return a & b


def or_(c: Call, a: Value, b: Value) -> Value:
    """Or, of truth values or of the bits of whole numbers.

    Source: ONNX Or-1 and 7, BitwiseOr-18.
    """
    a, b = aligned(c, a, b)
    return a | b


def xor_(c: Call, a: Value, b: Value) -> Value:
    """Exclusive or, of truth values or of the bits of whole numbers.

    Source: ONNX Xor-1 and 7, BitwiseXor-18.
    """
    a, b = aligned(c, a, b)
    return a ^ b


def equal(c: Call, a: Value, b: Value) -> Value:
    """Whether two elements are equal: IEEE 754's comparison for floats, so that NaN equals nothing.

    a, b: numbers, bool or text; result: bool. Source: ONNX Equal-1 to 19.
    """
    a, b = aligned(c, a, b)
    return a.equal(b)


def greater(c: Call, a: Value, b: Value) -> Value:
    """Whether an element is larger than the other; false for NaN.

    a, b: numbers; result: bool. Source: ONNX Greater-1 to 13.
    """
    a, b = aligned(c, a, b)
    return a > b


def less(c: Call, a: Value, b: Value) -> Value:
    """Whether an element is smaller than the other; false for NaN.

    a, b: numbers; result: bool. Source: ONNX Less-1 to 13.
    """
    a, b = aligned(c, a, b)
    return a < b


def greater_or_equal(c: Call, a: Value, b: Value) -> Value:
    """Whether an element is larger than the other or equal to it; false for NaN.

    a, b: numbers; result: bool. Source: ONNX GreaterOrEqual-12 and 16.
    """
    a, b = aligned(c, a, b)
    return a >= b


def less_or_equal(c: Call, a: Value, b: Value) -> Value:
    """Whether an element is smaller than the other or equal to it; false for NaN.

    a, b: numbers; result: bool. Source: ONNX LessOrEqual-12 and 16.
    """
    a, b = aligned(c, a, b)
    return a <= b


def where(c: Call, condition: Value, x: Value, y: Value) -> Value:
    """One of two elements, selected by the condition.

    condition: bool; x, y: any type, the same for both; the three shapes broadcast. Source: ONNX Where-9 and 16.
    """
    c.require("broadcast", meet(condition.shape, x.shape, y.shape))
    return x.where(condition, y)


def prelu(c: Call, x: Value, slope: Value) -> Value:
    """Elements below 0 times the slope, others unchanged.

    slope: one number, or until version 6 one for each channel, later a shape that broadcasts to x's.
    Source: ONNX PRelu-1 to 16.
    """
    if "channels" in c.clauses:
        shared = slope.size == 1
        c.require("channels", shared or (slope.rank == 1 and x.rank > 1 and slope.shape == x.shape[1:2]))
        slope = slope.reshape(*(1,) * x.rank) if shared else slope.reshape(-1, *(1,) * (x.rank - 2))
    else:
        fits = slope.rank <= x.rank and meet(x.shape, slope.shape)
        stretched = any(e not in (1, d) for d, e in zip(x.shape[::-1], slope.shape[::-1], strict=False))
        c.require("broadcast", fits and not stretched)
    return (slope * x).where(x < 0, x)


def maximum(c: Call, xs: list[Value]) -> Value:
    """The largest of the inputs' elements. The standard does not define NaN.

    xs: one input or more, of one type. Source: ONNX Max-1 to 13.
    """
    return _extreme(c, xs, "maximum")


def minimum(c: Call, xs: list[Value]) -> Value:
    """The smallest of the inputs' elements. The standard does not define NaN.

    xs: one input or more, of one type. Source: ONNX Min-1 to 13.
    """
    return _extreme(c, xs, "minimum")


def _extreme(c: Call, xs: list[Value], name: str) -> Value:
    require_alike(c, xs)
    if len(xs) < 3 or xs[0].kind != "real":
        return reduce(lambda a, b: _picked(c, a, b, name), xs)
    taken = c.open("nan")
    largest = reduce(lambda a, b: getattr(a, name)(b, nan="ignore" if taken == "ignored" else "propagate"), xs)
    # Depending on its position, NaN stays, is ignored, or resets the result so far.
    return largest.undefined(largest.isnan()) if taken == "by-position" else largest


def require_alike(c: Call, xs: list[Value]) -> None:
    """Require one input or more of one type, with shapes that are equal or broadcast, by the version's rule."""
    c.require("at-least-one", bool(xs))
    c.require("same-type", len({x.type for x in xs}) == 1)
    if "same-shape" in c.clauses:
        c.require("same-shape", len({x.shape for x in xs}) == 1)
    else:
        c.require("broadcast", meet(*(x.shape for x in xs)))


def _picked(c: Call, a: Value, b: Value, name: str) -> Value:
    pick: Callable[..., Value] = getattr(a, name)
    if a.kind != "real":
        return pick(b)
    passed, skipped = pick(b), pick(b, nan="ignore")
    taken = c.open("nan")
    return {"propagates": passed, "ignored": skipped}.get(taken) or passed.either(skipped)


def clip(c: Call, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    """Elements below `min` become min, elements above `max` become max.

    x: any shape; min, max: attributes until version 6, inputs of rank 0 from 11 on; partly open are the meaning of a
    missing one, and which counts if min is above max. Source: ONNX Clip-1 to 13.
    """
    for bound in (low, high):
        c.require_if_stated("scalar-bound", bound is None or bound.rank == 0)
    lower, upper = _bound(c, x, "min", low), _bound(c, x, "max", high)
    below, above = x < lower, x > upper
    way = "max" if "crossed-max" in c.clauses else c.open("crossed", lower > upper)
    low_then, high_then = lower.where(below, x), upper.where(above, x)
    y = {
        "max": lambda: upper.where(low_then > upper, low_then),
        "min": lambda: lower.where(high_then < lower, high_then),
        "below-first": lambda: lower.where(below, high_then),
        "above-first": lambda: upper.where(above, low_then),
    }[way]()
    if x.kind != "real":
        return y
    y = y.maximum(y).where(y.equal(lower) | y.equal(upper), y)  # which of two equal zeros is returned is open
    nan = {"propagates": x, "min": lower, "max": upper}[c.open("nan", x.isnan())]
    return nan.where(x.isnan(), y)


def _bound(c: Call, x: Value, name: str, given: Value | None) -> Value:
    """One end of the interval. The type's largest number as a limit excludes infinities."""
    if given is not None:
        return given
    own = element_type(x.type)
    sign = -1 if name == "min" else 1
    if own.is_integer:
        return c.constant(own.smallest if name == "min" else own.largest, x.type)
    if c.given(name):
        return c.constant(c.float32(name), x.type)
    limits = {
        "type-limit": own.float_format.largest,
        "float32-limit": element_type("float32").float_format.largest,
        "unbounded": math.inf,
    }
    taken = c.open("bound-default" if c.attr(name) is not None else "bound-missing")
    return c.constant(sign * limits[taken], x.type)


def bases(blank: Blank, draw: Draw) -> Array:
    """Full significands in [1/4, 4), whose third powers do not overflow 16-bit floats."""
    p = blank.type.float_format.precision
    significand = draw.between(1 << (p - 1), (1 << p) - 1, blank.size)
    return np.asarray(np.ldexp(significand.astype(np.float64), draw.between(-1, 2, blank.size) - p))


def exponents(drawing: Drawing) -> Array:
    """Whole numbers from -3 to 3; from 0 if they are unsigned or the base is a whole number."""
    low = 0 if drawing.type.kind == "unsigned" or _is_whole(drawing) else -3
    return drawing.draw.between(low, 3, drawing.size)


def quarters(drawing: Drawing) -> Array:
    """Multiples of 1/4 from -3 to 3, or only their numerators for whole numbers; from 0 like `exponents`."""
    low = 0 if drawing.type.kind == "unsigned" or _is_whole(drawing) else -12
    numbers = drawing.draw.between(low, 12, drawing.size)
    return np.asarray(numbers / 4 if drawing.type.format else numbers // 4)


def _is_whole(drawing: Drawing) -> bool:
    return drawing.values["X"].dtype.kind in "iu"


def specials(drawing: Drawing) -> Array:
    """Numbers for which powers have special values."""
    pool = [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -2.0, -3.0, 0.5, -0.5, math.inf, -math.inf, math.nan, 2.5, -1.5, 10.0]
    return np.resize(pool, drawing.size)


def amounts(drawing: Drawing) -> Array:
    """Numbers of bits to shift by, less than the type's width."""
    return drawing.draw.below(drawing.type.bits, drawing.size)
