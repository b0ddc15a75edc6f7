"""Matrix products and products over axes: in any order, in the accumulator's format."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from ...cases.elements import Array, FloatFormat
from . import elementary
from .arithmetic import largest, whole_error
from .errors import (
    INFINITE,
    NAN,
    NO_BIT,
    SLACK,
    Arithmetic,
    Error,
    Flags,
    Known,
    Size,
    each,
    exceeds,
    opposed,
    ordered_sum,
    unsigned,
    widened,
    without_nan,
)
from .primitive import Primitive, lane_axes
from .sums import (
    Sum,
    count_along,
    every_order_is_exact,
    gathered,
    gathered_whole,
    of_common_denominator,
    stored,
)

_ROOM: Final = 1 << 62


class Matmul(Primitive):
    """The product of matrices in the last two axes; leading axes broadcast."""

    name, rational, overflows, accumulates = "matmul", True, True, True
    text = "{0} @ {1}: n·u·Σ|xy|, nothing where every order is exact"
    _CHUNK: ClassVar[int] = 1 << 20

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        a, b = xs
        if a.dtype.kind in "iu" and b.dtype.kind in "iu":
            return _whole_product(a, b)
        if object in (a.dtype, b.dtype):
            a, b = (widened(x) if x.dtype == np.float64 else x for x in xs)
            return np.asarray(np.matmul(a, b))
        return product(a, b)

    @classmethod
    def fractions(cls, *xs: Array, **_: Any) -> Array:
        (a, p), (b, q) = map(of_common_denominator, xs)
        return each(lambda number: Fraction(number, p * q), np.asarray(np.matmul(a, b), object))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        (a, b), (ea, eb), n, form = xs, es, xs[0].v.shape[-1], c.accumulator
        if a.is_integer:
            return Error(
                0.0, _flags_of_product(a, b, *(whole_error(x, (x,), (e,)) for x, e in zip(xs, es, strict=True)))
            )
        magnitude = y.fact("Σ|xy|", lambda: product(a.size, b.size))
        carried = 0.0 if ea.quiet and eb.quiet else _carried(c, a, b, ea, eb)
        if c.norm == 2:
            square, mean = (product(p, q) / max(n, 1) for p, q in ((a.clean**2, b.clean**2), (a.clean, b.clean)))
            moments = n * square + n**2 / 2 * np.maximum(square - mean**2, 0) + n**3 / 3 * mean**2
            return stored(c, y, Error(carried + form.roundoff**2 * moments))
        low = y.fact("low", lambda: _lowest_of_products(a, b))
        exact = np.equal(carried, 0) & every_order_is_exact(form, magnitude, low, flush=c.flush)
        terms: Size = n
        if c.narrow:  # a product with a zero adds no error
            terms = product(
                *((np.broadcast_to(x.size + e.e, x.v.shape) > 0) * 1.0 for x, e in zip(xs, es, strict=True))
            )
        charge = terms * (form.roundoff * (magnitude + carried) + c.underflow(form))
        charge = np.where(exact, 0.0, charge)
        e = (carried + charge) * SLACK
        flags = _flags_of_product(a, b, ea, eb)
        if exceeds(form, (magnitude + e).max(initial=0.0)):
            over = exceeds(form, magnitude + e)
            signs = _signs_of_products(a, b, ea, eb)
            flags = flags | np.where(over, signs, np.uint8(0)).astype(np.uint8)
        flags = opposed(flags)
        if not y.all_finite:
            e = np.where(y.finite, e, 0.0)
        c.note("sum of products in any order: n·u·Σ|xy|", form.roundoff, charge, n, magnitude / max(n, 1))
        return stored(c, y, Error(e, flags))

    @staticmethod
    def underflows(c: Arithmetic, y: Known, xs: Sequence[Known], **_: Any) -> Array | None:
        return np.asarray(_lowest_of_products(*xs) < c.accumulator.emin)

    @classmethod
    def native(cls, m: Any, *xs: Array, **_: Any) -> Array:
        x, y = xs
        if x.dtype.kind in "iub":
            return np.asarray(np.matmul(x, y))
        products = m.product(x[..., :, :, None], y[..., None, :, :])
        return np.asarray(m.rounded(m.summed(products, (products.ndim - 2,))[..., 0, :]))

    @classmethod
    def terms(cls, shapes: Sequence[tuple[int, ...]], **_: Any) -> int:
        return shapes[0][-1]


def product(a: Array, b: Array) -> Array:
    """Return the product of float64 matrices in a fixed order: a library's order differs between processors."""
    k = a.shape[-1]
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, n = a.shape[-2], b.shape[-1]
    total = np.zeros((*shape, m, n))
    per = max(1, total.size)
    chunk = max(1, min(k, Matmul._CHUNK // per))
    for start in range(0, k, chunk):
        parts = a[..., :, start : start + chunk, None] * b[..., None, start : start + chunk, :]
        while (left := parts.shape[-2]) > 1:
            half = left // 2
            added = parts[..., :half, :] + parts[..., half : 2 * half, :]
            parts = np.concatenate([added, parts[..., -1:, :]], axis=-2) if left % 2 else added
        total = total + parts[..., 0, :]
    return total


def _whole_product(a: Array, b: Array) -> Array:
    if largest(a) * largest(b) * max(a.shape[-1], 1) >= _ROOM:
        a, b = a.astype(object), b.astype(object)
    if not a.shape[-1]:
        shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return np.zeros((*shape, a.shape[-2], b.shape[-1]), np.int64)
    return np.asarray(np.matmul(a, b))


def _carried(c: Arithmetic, a: Known, b: Known, ea: Error, eb: Error) -> Array:
    x, y = (np.broadcast_to(e.e, k.v.shape) for e, k in ((ea, a), (eb, b)))
    p, q = (s if c.norm == 1 else s * s for s in (a.size, b.size))
    parts = [product(p, y) if not eb.quiet else 0.0, product(x, q) if not ea.quiet else 0.0]
    both = product(x, y) if not (ea.quiet or eb.quiet) else 0.0
    return np.asarray(without_nan(parts[0] + parts[1] + both))


def _lowest_of_products(a: Known, b: Known) -> Array:
    rows = a.bit.min(-1, initial=NO_BIT)[..., :, None]
    return np.asarray(rows + b.bit.min(-2, initial=NO_BIT)[..., None, :])


def _flags_of_product(a: Known, b: Known, ea: Error, eb: Error) -> Flags:
    if isinstance(ea.flags, int) and isinstance(eb.flags, int):
        return 0
    rows = np.bitwise_or.reduce(np.broadcast_to(ea.flags, a.v.shape).astype(np.uint8), axis=-1)[..., :, None]
    columns = np.bitwise_or.reduce(np.broadcast_to(eb.flags, b.v.shape).astype(np.uint8), axis=-2)[..., None, :]
    union = unsigned(rows | columns)
    return np.where(union & 7, union | 7, union).astype(np.uint8)  # an infinity times a number of either sign


def _signs_of_products(a: Known, b: Known, ea: Error, eb: Error) -> Array:
    """Return flags for the infinities to which partial sums may overflow: only one sign if all products have it."""
    vague = not (ea.quiet and eb.quiet)
    positive, negative = (np.maximum(s * a.clean, 0.0) for s in (1, -1))
    up = product(positive, np.maximum(b.clean, 0.0)) + product(negative, np.maximum(-b.clean, 0.0))
    down = product(positive, np.maximum(-b.clean, 0.0)) + product(negative, np.maximum(b.clean, 0.0))
    return np.where(vague | (up > 0), 1, 0).astype(np.uint8) | np.where(vague | (down > 0), 2, 0).astype(np.uint8)


class Prod(Sum):
    """The product over axes, which stay with extent 1."""

    name = "prod"
    text = "product of {0} over {axes}: (n-1)·u·|y|, n without powers of two; nothing where every order is exact"
    widens = False

    @staticmethod
    def exact(*xs: Array, **parameters: Any) -> Array:
        x, lanes = xs[0], lane_axes(parameters["axes"])
        if x.dtype.kind in "iu" and max(largest(x), 1).bit_length() * count_along(x.shape, lanes) > 62:
            x = x.astype(object)
        return multiplied(x, lanes)

    @classmethod
    def fractions(cls, *xs: Array, **parameters: Any) -> Array:
        return multiplied(xs[0], lane_axes(parameters["axes"]))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **parameters: Any) -> Error:
        x, error, lanes, form = xs[0], es[0], lane_axes(parameters["axes"]), c.accumulator
        if x.is_integer:
            return gathered_whole(x, error, lanes)
        n = count_along(x.v.shape, lanes)
        if n == 1:
            return Error(error.e, error.flags)
        flags = unsigned(gathered(error.flags, x.v.shape, lanes))
        if not isinstance(flags, int):  # times a zero, or a number of the opposite sign
            flags = np.where(flags & (INFINITE | NAN), flags | INFINITE | NAN, flags).astype(np.uint8)
        reach = np.broadcast_to(c.bound(error.e), x.v.shape)
        grown = multiplied(np.maximum(x.size + reach, 1.0), lanes)  # the possible partial products
        relative = np.zeros(1)
        if not error.quiet:
            zero = (x.size <= reach) & (reach > 0)
            shares = np.where(zero, np.inf, reach / np.where(x.size > 0, x.size, 1.0))
            relative = ordered_sum(shares, lanes, keepdims=True)
        rounds = _roundings(x, reach > 0, lanes) * form.roundoff * (1 + n * form.roundoff)
        e = y.size * elementary.expm1(relative + rounds)
        e = np.where(np.isinf(relative), multiplied(x.size + reach, lanes), e)
        e = e + (n - 1) * c.underflow(form) * grown * (1 + rounds)
        exact = x.fact(("exact product", form, lanes), lambda: _exact_product(form, x, lanes))
        e = np.where(y.finite & ~(exact & np.equal(relative, 0)), e * SLACK, 0.0)
        over = exceeds(form, grown * (1 + rounds)) & ~exact
        if over.any():
            flags = flags | np.where(over, INFINITE | NAN, np.uint8(0))
        c.note("product in any order: (n-1)·u·|y|, n without powers of two", form.roundoff, e, n)
        return stored(c, y, Error(c.of_bound(e), flags))

    @staticmethod
    def underflows(c: Arithmetic, y: Known, xs: Sequence[Known], **parameters: Any) -> Array | None:
        x = xs[0]
        least = multiplied(np.where(x.size > 0, np.minimum(x.size, 1.0), 1.0), lane_axes(parameters["axes"]))
        return np.asarray((least < c.accumulator.tiny) & (y.size >= c.accumulator.tiny))

    @classmethod
    def native(cls, m: Any, *xs: Array, **parameters: Any) -> Array:
        return np.asarray(m.rounded(m.combined(np.multiply, xs[0], lane_axes(parameters["axes"]))))

    @classmethod
    def roundings(cls, c: Arithmetic, shapes: Sequence[tuple[int, ...]], **parameters: Any) -> float:
        return 2.0 + count_along(shapes[0], parameters["axes"])

    @classmethod
    def terms(cls, shapes: Sequence[tuple[int, ...]], **_: Any) -> int:
        return 1


def multiplied(x: Array, lanes: tuple[int, ...]) -> Array:
    """Return the product along axes of the array, which stay with extent 1, in a fixed order."""
    kept = [1 if i in lanes else d for i, d in enumerate(x.shape)]
    rest = [d for i, d in enumerate(x.shape) if i not in lanes]
    parts = np.moveaxis(x, lanes, range(-len(lanes), 0)).reshape(*rest, count_along(x.shape, lanes))
    if not parts.shape[-1]:
        return np.ones(kept, x.dtype)
    while (left := parts.shape[-1]) > 1:
        half = left // 2
        pairs = parts[..., :half] * parts[..., half : 2 * half]
        parts = np.concatenate([pairs, parts[..., -1:]], axis=-1) if left % 2 else pairs
    return np.asarray(parts.reshape(kept))


def _widths(x: Known) -> Array:
    """Return the number of bits of every factor; zero for powers of two, whose products are exact, and for zeros."""
    width = np.where(x.clean != 0, np.frexp(x.clean)[1] - x.bit, 0)
    return np.where(width == 1, 0, width)


def _roundings(x: Known, wrong: Array, lanes: tuple[int, ...]) -> Array:
    """Return the number of products that round: one less than factors that are no powers of two, or may be `wrong`."""
    many = ((_widths(x) > 0) | wrong).sum(axis=lanes, keepdims=True)
    return np.asarray(np.maximum(many - 1, 0))


def _exact_product(form: FloatFormat, x: Known, lanes: tuple[int, ...]) -> Array:
    """Return a mask: whether all partial products fit the format, by the factors' bits and its smallest number."""
    there, width = x.clean != 0, _widths(x)
    high = np.frexp(x.clean)[1] - (width == 0)
    below = np.where(there, np.minimum(x.bit, 0), 0).sum(axis=lanes, keepdims=True)
    above = np.where(there, np.maximum(high, 0), 0).sum(axis=lanes, keepdims=True)
    fits = (width.sum(axis=lanes, keepdims=True) <= form.precision) & (below >= form.emin) & (above <= form.emax)
    return np.asarray(fits & x.finite.all(axis=lanes, keepdims=True))
