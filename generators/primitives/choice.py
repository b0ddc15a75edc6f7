"""Comparisons and choices by them. A condition's error is positive if its operands' errors leave it open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ...cases.elements import Array
from .arithmetic import whole_error
from .errors import (
    FREE,
    INFINITE,
    NAN,
    NEGATIVE,
    POSITIVE,
    Arithmetic,
    Error,
    Flags,
    Known,
    Size,
    each,
    unsigned,
)
from .movement import lanes_of, to_lanes
from .primitive import Primitive, lane_axes
from .sums import without


def is_nan(values: Array) -> Array:
    """Return a mask of NaN, for values in any carrier."""
    return np.asarray(values != values, bool)  # noqa: PLR0124 - NaN alone is not itself


def _open(c: Arithmetic, xs: Sequence[Known], es: Sequence[Error]) -> Error:
    """Return an error that is positive where two operands are closer than their errors, or may not be numbers."""
    if es[0].none and es[1].none:
        return Error()
    flags: Flags = 0
    for error in es:
        if not isinstance(error.flags, int):
            flags = flags | (error.flags & FREE)
    if xs[0].v.dtype.kind in "iubOU" and es[0].quiet and es[1].quiet:
        return Error(0.0, flags)
    reach = c.bound(es[0].e) + c.bound(es[1].e)
    vague = (np.abs(xs[0].f - xs[1].f) <= reach) & np.greater(reach, 0)
    for error in es:
        if not isinstance(error.flags, int):
            vague = vague | (error.flags & (INFINITE | NAN | FREE) > 0)
    return Error(vague.astype(float), flags)


class Comparison(Primitive):
    """A comparison of two operands; open if they are closer than their errors."""

    work, rational = "selects", True
    operation: ClassVar[Callable[..., Any]]

    @classmethod
    def type(cls, types: Sequence[str], **_: Any) -> str:
        return "bool"

    @classmethod
    def exact(cls, *xs: Array, **_: Any) -> Array:
        return np.asarray(cls.operation(*xs), bool)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return _open(c, xs, es)


class Less(Comparison):
    """Whether the first operand is smaller; false for NaN."""

    name, text, operation = "less", "{0} < {1}: open where they are closer than their errors", np.less


class LessEqual(Comparison):
    """Whether the first operand is smaller or equal; false for NaN."""

    name, text, operation = "less_equal", "{0} <= {1}: open where they are closer than their errors", np.less_equal


class Equal(Comparison):
    """Whether two operands are equal, of any type; false for NaN."""

    name, text, operation = "equal", "{0} = {1}: open where they are closer than their errors", np.equal


class Isnan(Primitive):
    """Whether an element is NaN."""

    name, work, text = "isnan", "moves", "{0} is NaN"

    @classmethod
    def type(cls, types: Sequence[str], **_: Any) -> str:
        return "bool"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return is_nan(xs[0])

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return _flagged(es[0], NAN)


class Isinf(Primitive):
    """Whether an element is infinite: of either sign, or of one."""

    name, work, text = "isinf", "moves", "{0} is infinite (positive: {positive}, negative: {negative})"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        return value.node("isinf", positive=bool(p.get("positive", True)), negative=bool(p.get("negative", True)))

    @classmethod
    def type(cls, types: Sequence[str], **_: Any) -> str:
        return "bool"

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        matches = np.zeros(xs[0].shape, bool)
        for wanted, number in ((p["positive"], np.inf), (p["negative"], -np.inf)):
            matches = matches | np.asarray(xs[0] == number, bool) if wanted else matches
        return matches

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        return _flagged(es[0], np.uint8(p["positive"] * POSITIVE | p["negative"] * NEGATIVE))


def _flagged(error: Error, bits: Flags) -> Error:
    if isinstance(error.flags, int):
        return Error()
    return Error((error.flags & bits > 0).astype(float), error.flags & FREE)


class Logic(Primitive):
    """An operation on truth values, or on the bits of whole numbers."""

    work, rational = "moves", True
    operation: ClassVar[Callable[..., Any]]

    @classmethod
    def exact(cls, *xs: Array, **_: Any) -> Array:
        return np.asarray(cls.operation(*xs))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        if all(e.none for e in es):
            return Error()
        if y.v.dtype != bool:
            return whole_error(y, xs, es)
        vague: Size = 0.0
        for error in es:
            vague = np.maximum(vague, error.e)
        return Error(vague, whole_error(y, (), [Error(0.0, e.flags) for e in es]).flags)


class And(Logic):
    """And."""

    name, text, operation = "and", "{0} and {1}", np.bitwise_and


class Or(Logic):
    """Or."""

    name, text, operation = "or", "{0} or {1}", np.bitwise_or


class Xor(Logic):
    """Exclusive or."""

    name, text, operation = "xor", "{0} xor {1}", np.bitwise_xor


class Not(Logic):
    """Not."""

    name, text, operation = "not", "not {0}", np.invert

    @classmethod
    def record(cls, value: Any, *others: Any, **_: Any) -> Any:
        inverted = value.node("not")
        return inverted.fit("wraps") if value.type.startswith("uint") else inverted


class Where(Primitive):
    """`x.where(mask, other)`: x where the mask is true, `other` elsewhere; either where the mask is open."""

    name, work, rational, keeps_zeros = "where", "moves", True, True
    text = "{0} where {2}, else {1}: both where {2} is open"

    @classmethod
    def record(cls, value: Any, *others: Any, **_: Any) -> Any:
        mask, other = others
        rank = max(value.rank, mask.rank, value.of(other).rank)
        return value.to_rank(rank).node("where", value.of(other).to_rank(rank), mask.to_rank(rank))

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return np.where(xs[2].astype(bool), xs[0], xs[1])

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        (a, b, m), (ea, eb, em) = xs, es
        if ea.none and eb.none and em.none:
            return Error()
        e: Size = 0.0 if ea.quiet and eb.quiet else np.where(m.v, ea.e, eb.e)
        flags: Flags = 0
        if not (isinstance(ea.flags, int) and isinstance(eb.flags, int)):
            flags = np.where(m.v, np.asarray(ea.flags), np.asarray(eb.flags)).astype(np.uint8)
        if em.none:
            substitutes = [np.nan if error.instead is None else error.instead for error in (ea, eb)]
            known = any(error.instead is not None for error in (ea, eb))
            return Error(e, flags, instead=np.where(m.v, *substitutes) if known else None)
        vague = np.greater(em.e, 0)
        if not (_is_real(a) or _is_real(b)):
            differ = vague & np.asarray(a.v != b.v, bool)
            free = differ.astype(np.uint8) * FREE | np.bitwise_and(em.flags, FREE)
            return Error(e, np.bitwise_or(flags, free).astype(np.uint8))
        far = np.maximum(_apart(y, a) + c.bound(ea.e), _apart(y, b) + c.bound(eb.e))
        e = np.where(vague, c.of_bound(far), e)
        either = np.bitwise_or(_outcomes(a, ea), _outcomes(b, eb))
        flags = np.where(vague, np.bitwise_or(flags, either), flags) | np.bitwise_and(em.flags, FREE)
        return Error(e, flags.astype(np.uint8))


def _is_real(x: Known) -> bool:
    """Return whether values are real numbers: object arrays may also hold whole numbers or text."""
    return x.v.dtype.kind == "f" or (x.v.dtype == object and x.v.size > 0 and not isinstance(x.v.flat[0], (int, str)))


def _apart(y: Known, other: Known) -> Array:
    """Return the distance of finite values; zero if one is not finite, as its flags cover this."""
    return np.where(y.finite & other.finite, np.abs(y.clean - other.clean), 0.0)


def _outcomes(x: Known, error: Error) -> Flags:
    """Return an operand's outcomes besides numbers: its flags, and its own infinity or NaN."""
    flags = np.bitwise_or(unsigned(error.flags), np.uint8(0))
    if x.all_finite:
        return flags
    flags = flags | (x.f == np.inf) * POSITIVE | (x.f == -np.inf) * NEGATIVE
    return flags | np.isnan(x.f) * NAN


class Either(Primitive):
    """Two algorithms, element by element; the value is the first one's, and the results of both are admitted."""

    name, work, elementwise, text = "either", "rounds", True, "{0}, or {1}: what either admits"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        lanes = lanes_of(*xs)
        return np.asarray(np.broadcast_to(xs[0], np.broadcast_shapes(xs[0].shape, (lanes, *xs[1].shape[1:]))))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        e = np.maximum(c.bound(es[0].e), c.bound(es[1].e) + _apart(y, xs[1]))
        other = _outcomes(xs[1], es[1])
        same = (y.f == xs[1].f) | (np.isnan(y.f) & np.isnan(xs[1].f))
        flags = np.bitwise_or(unsigned(es[0].flags), np.where(same, np.bitwise_and(other, es[1].flags), other))
        # a number or an infinity next to NaN; a number next to an infinity
        number = ~y.finite & ~np.isnan(xs[1].f) & (xs[1].finite | np.isnan(y.f))
        if not number.any():
            return Error(c.of_bound(e), flags.astype(np.uint8))
        instead = np.where(number, xs[1].f, np.nan)
        return Error(c.of_bound(e), np.where(number, flags | FREE, flags).astype(np.uint8), instead=instead)


class Between(Primitive):
    """A whole number, with every other one from a smallest to a largest admitted too; all of the same shape."""

    name, work, text = "between", "selects", "{0}, or another from {1} to {2}"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return np.asarray(np.broadcast_to(xs[0], (lanes_of(*xs), *xs[0].shape[1:])))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        far = np.maximum(_apart(y, xs[1]), _apart(y, xs[2]))
        return replace(whole_error(y, xs, es), e=c.of_bound(far), ends=(xs[1].v, xs[2].v))


class Larger(Primitive):
    """The larger of two operands. `nan`: for a number and NaN, NaN (`propagate`) or the number (`ignore`)."""

    name, work, rational, text = "maximum", "selects", True, "the larger of {0} and {1} (NaN: {nan})"
    sign: ClassVar[int] = 1

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        first, second = value.aligned(others[0])
        return first.node(cls.name, second, nan=p.get("nan", "propagate"))

    @classmethod
    def exact(cls, *xs: Array, **p: Any) -> Array:
        a, b = xs
        first = np.asarray(a >= b if cls.sign > 0 else a <= b, bool)
        chosen = np.where(first, a, b)
        if a.dtype.kind in "iub" and b.dtype.kind in "iub":
            return chosen
        lost_a, lost_b = is_nan(a), is_nan(b)
        if not (lost_a.any() or lost_b.any()):
            return chosen
        if p["nan"] == "ignore":
            return np.where(lost_a, b, np.where(lost_b, a, chosen))
        return np.where(lost_a, a, np.where(lost_b, b, chosen))

    @classmethod
    def bound(cls, c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        if es[0].none and es[1].none:
            return Error()
        if y.is_integer:
            return whole_error(y, xs, es)
        e = np.maximum(*(_beyond(c, y, x, error) for x, error in zip(xs, es, strict=True)))
        flags = unsigned(np.bitwise_or(es[0].flags, es[1].flags))
        gone = (
            NEGATIVE if cls.sign > 0 else POSITIVE
        )  # one that may be infinite on the other side leaves the other operand
        for index, other in ((0, 1), (1, 0)):
            maybe = np.bitwise_and(es[index].flags, gone) > 0
            if np.any(maybe):
                left = _apart(y, xs[other]) + c.bound(es[other].e)
                e = np.where(maybe, np.maximum(e, c.of_bound(left)), e)
        both = np.bitwise_and(np.bitwise_and(es[0].flags, es[1].flags), gone)
        return Error(e, ((flags & ~gone) | both).astype(np.uint8))


def _beyond(c: Arithmetic, y: Known, x: Known, error: Error) -> Size:
    """Return how far an operand's error reaches beyond the chosen one: zero if it is far from it."""
    if c.norm != 1 or error.quiet:
        return error.e
    off = np.abs(y.f - x.f)
    left = error.e - np.where(np.isnan(off), 0.0, off)
    return np.where(np.isnan(left), error.e, np.maximum(left, 0.0))


class Smaller(Larger):
    """The smaller of two operands; see `maximum`."""

    name, text, sign = "minimum", "the smaller of {0} and {1} (NaN: {nan})", -1


class Max(Primitive):
    """The largest over axes, which stay with extent 1; for no elements, minus infinity or the type's lowest number."""

    name, work, rational, text = "max", "selects", True, "the largest of {0} over {axes} (NaN: {nan})"
    sign: ClassVar[int] = 1

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        axes = value.axes(others[0] if others else p.get("axes"))
        reduced = value.node(cls.name, axes=axes, nan=p.get("nan", "propagate"))
        return reduced if p.get("keep", True) else without(reduced, axes)

    @classmethod
    def exact(cls, *xs: Array, **p: Any) -> Array:
        x, axes = xs[0], lane_axes(p["axes"])
        if not all(x.shape[a] for a in axes):
            shape = [1 if i in axes else d for i, d in enumerate(x.shape)]
            return np.full(shape, 0 if x.dtype.kind in "iub" else -cls.sign * np.inf, x.dtype)
        reduce = np.maximum.reduce if cls.sign > 0 else np.minimum.reduce
        lost = np.zeros(1, bool) if x.dtype.kind in "iub" else is_nan(x)
        if not lost.any():
            return np.asarray(reduce(x, axis=axes, keepdims=True) if axes else x)
        alone = np.where(lost, -cls.sign * np.inf, x)
        extreme = reduce(alone, axis=axes, keepdims=True) if axes else alone
        gone = lost.all(axes, keepdims=True) if p["nan"] == "ignore" else lost.any(axes, keepdims=True)
        return np.where(gone, np.nan, extreme)

    @classmethod
    def bound(cls, c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        x, error, axes = xs[0], es[0], lane_axes(p["axes"])
        if error.none or not axes:
            return error
        flags: Flags = 0
        e: Size = 0.0 if error.quiet else np.broadcast_to(error.e, x.v.shape).max(axes, keepdims=True)
        if not isinstance(error.flags, int):
            spread = np.broadcast_to(error.flags, x.v.shape)
            flags = unsigned(np.bitwise_or.reduce(spread, axis=axes, keepdims=True))
            gone = NEGATIVE if cls.sign > 0 else POSITIVE
            maybe = flags & gone > 0
            if maybe.any() and not x.is_integer:  # one of the remaining elements may be the largest
                reduce = np.maximum.reduce if cls.sign > 0 else np.minimum.reduce
                sure = np.where(spread & gone > 0, -cls.sign * np.inf, x.f - cls.sign * c.bound(error.e))
                least = reduce(sure, axis=axes, keepdims=True)
                e = np.where(maybe & np.isfinite(least), np.maximum(e, c.of_bound(np.abs(y.clean - least))), e)
                flags = np.where(np.isfinite(least), flags & ~gone, flags).astype(np.uint8)
        return Error(e, flags)

    @classmethod
    def native(cls, m: Any, *xs: Array, **p: Any) -> Array:
        return np.asarray(cls.exact(*xs, **p)).astype(xs[0].dtype)


class Min(Max):
    """The smallest over axes; see `max`."""

    name, text, sign = "min", "the smallest of {0} over {axes} (NaN: {nan})", -1


class Clip(Primitive):
    """The operand clamped to limits: the smaller of the upper limit and the larger of it and the lower limit."""

    name, text = "clip", "{0} clamped to limits"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        low, high = (others[i] if len(others) > i else p.get(n) for i, n in enumerate(("low", "high")))
        limited = value if low is None else value.maximum(low)
        return limited if high is None else limited.minimum(high)


def _sortable(x: Array, *, nan_first: bool = False) -> Array:
    """Return values that sort like NumPy's floats, even if gmpy2 carries them: NaN at one end."""
    if x.dtype != object or not is_nan(x).any():
        return x
    return each(lambda v: ((v != v) != nan_first, v), x)  # noqa: PLR0124 - NaN


class Order(Primitive):
    """The indices that sort an axis; among equal elements the first comes first, or (`late`) the last."""

    name, work, text = "order", "selects", "order of {0} along {axis} (largest first: {largest})"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        axis = int(others[0] if others else p.get("axis", -1)) % max(value.rank, 1)
        return value.node("order", axis=axis, largest=bool(p.get("largest")), late=bool(p.get("late")))

    @classmethod
    def type(cls, types: Sequence[str], **_: Any) -> str:
        return "int64"

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        x, axis = _sortable(xs[0]), p["axis"] + 1
        n, back = x.shape[axis], p["largest"] != p["late"]
        order = np.argsort(np.flip(x, axis) if back else x, axis=axis, kind="stable")
        order = n - 1 - order if back else order
        return np.asarray(np.flip(order, axis) if p["largest"] else order)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        x, error, axis = xs[0], es[0], p["axis"] + 1
        if error.none:
            return Error()
        if not isinstance(error.flags, int) and (error.flags & (INFINITE | NAN | FREE)).any():
            wild = (np.broadcast_to(error.flags, x.v.shape) & (INFINITE | NAN | FREE) > 0).any(axis, keepdims=True)
            return Error(np.broadcast_to(wild, y.v.shape).astype(float))
        reach = np.take_along_axis(np.broadcast_to(c.bound(error.e), x.v.shape), y.v, axis)
        sorted_ = np.take_along_axis(x.f, y.v, axis)
        # indices are open where neighbours are closer than their errors
        sides = [np.take(a, range(k, x.v.shape[axis] - 1 + k), axis) for a in (sorted_, reach) for k in (0, 1)]
        near = (np.abs(sides[0] - sides[1]) <= sides[2] + sides[3]) & (sides[2] + sides[3] > 0)
        none = np.zeros_like(np.take(near, [0], axis) if near.shape[axis] else np.take(y.v, [0], axis), bool)
        vague = np.concatenate([none, near], axis) | np.concatenate([near, none], axis)
        return Error(vague.astype(float))

    @classmethod
    def native(cls, m: Any, *xs: Array, **p: Any) -> Array:
        return cls.exact(xs[0].astype(np.float64) if xs[0].dtype.name == "bfloat16" else xs[0], **p)


class Argmax(Primitive):
    """The index of the largest along an axis, the first of equal ones, or (`late`) the last; the axis stays."""

    name, work, text = "argmax", "selects", "where the largest of {0} along {axis} lies (last: {late})"
    smallest: ClassVar[bool] = False

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        axis = int(others[0] if others else p.get("axis", -1)) % max(value.rank, 1)
        position = value.node(cls.name, axis=axis, late=bool(p.get("late")))
        return position if p.get("keep", True) else without(position, (axis,))

    @classmethod
    def type(cls, types: Sequence[str], **_: Any) -> str:
        return "int64"

    @classmethod
    def exact(cls, *xs: Array, **p: Any) -> Array:
        x, axis = _sortable(xs[0], nan_first=cls.smallest), p["axis"] + 1
        n = x.shape[axis]
        if not n or not x.size:
            return np.zeros([1 if i == axis else d for i, d in enumerate(x.shape)], np.int64)
        line = np.flip(x, axis) if p["late"] else x
        position = (np.argmin if cls.smallest else np.argmax)(line, axis=axis)
        return np.expand_dims(n - 1 - position if p["late"] else position, axis)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        x, error, axis = xs[0], es[0], p["axis"] + 1
        if error.none or not x.v.size:
            return Error()
        reach = np.broadcast_to(c.bound(error.e), x.v.shape)
        lanes = to_lanes(y.v, len(x.v))
        best, its = np.take_along_axis(x.f, lanes, axis), np.take_along_axis(reach, lanes, axis)
        near = (np.abs(best - x.f) <= reach + its) & (reach + its > 0)
        several = near.sum(axis, keepdims=True) > 1
        if not isinstance(error.flags, int):
            wild = np.broadcast_to(error.flags, x.v.shape) & (INFINITE | NAN | FREE) > 0
            several = several | wild.any(axis, keepdims=True)
        return Error(several.astype(float))

    @classmethod
    def native(cls, m: Any, *xs: Array, **p: Any) -> Array:
        return cls.exact(xs[0].astype(np.float64) if xs[0].dtype.name == "bfloat16" else xs[0], **p)


class Argmin(Argmax):
    """The index of the smallest along an axis; see `argmax`."""

    name, smallest, text = "argmin", True, "where the smallest of {0} along {axis} lies (last: {late})"
