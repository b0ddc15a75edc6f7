"""Reductions and running reductions: axes as attribute or input, given, empty or missing, and standards' silences."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np

from ...cases.elements import Array, element_type
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw


def mean(c: Call, data: Value, axes: Value | None = None) -> Value:
    """Return the arithmetic mean over axes.

    data: any shape and numeric type; axes: a list, or one axis, of int32 or int64 (OpenVINO: of any integer type).
    Result: the type of data, and its shape without the axes, or with 1 there. The mean of no elements is undefined.
    Source: ONNX ReduceMean-1 to 18, OpenVINO ReduceMean-1, oneDNN Graph ReduceMean.
    """
    over, keep = reduced_axes(c, data, axes)
    y = data.mean(over, keep=keep)
    if y.size and not all(data.shape[a] for a in over):
        c.open("empty-set")
    return y


def sum_(c: Call, data: Value, axes: Value | None = None) -> Value:
    """The sum over axes; 0 for no elements.

    data: any shape, numbers; axes: a list of int64. Result: the type of data. Source: ONNX ReduceSum-1 to 13,
    OpenVINO ReduceSum-1, oneDNN Graph ReduceSum.
    """
    return _reduced(c, data, axes, lambda x, over, keep: x.sum(over, keep=keep))


def prod(c: Call, data: Value, axes: Value | None = None) -> Value:
    """The product over axes; 1 for no elements.

    Shapes and types as for `sum_`. Source: ONNX ReduceProd-1 to 18, OpenVINO ReduceProd-1, oneDNN Graph ReduceProd.
    """
    return _reduced(c, data, axes, lambda x, over, keep: x.prod(over, keep=keep))


def l1(c: Call, data: Value, axes: Value | None = None) -> Value:
    """The sum of magnitudes over axes; 0 for no elements.

    Shapes and types as for `sum_`. Source: ONNX ReduceL1-1 to 18, OpenVINO ReduceL1-4, oneDNN Graph ReduceL1.
    """
    if _is_identity(c) and c.silent("identity-or-norm") and c.open("identity-or-norm") == "identity":
        return data
    return _unless_identity(c, data, _reduced(c, data.abs(), axes, lambda x, over, keep: x.sum(over, keep=keep)))


def sum_square(c: Call, data: Value, axes: Value | None = None) -> Value:
    """The sum of squares over axes; 0 for no elements.

    Shapes and types as for `sum_`. Source: ONNX ReduceSumSquare-1 to 18.
    """
    return _reduced(c, data * data, axes, lambda x, over, keep: x.sum(over, keep=keep))


def l2(c: Call, data: Value, axes: Value | None = None) -> Value:
    """The root of the sum of squares over axes; 0 for no elements. The rounding of roots of whole numbers is open.

    Shapes and types as for `sum_`. The function body of version 18 computes the root in float32, whatever the type.
    Source: ONNX ReduceL2-1 to 18, OpenVINO ReduceL2-4, oneDNN Graph ReduceL2.
    """
    if _is_identity(c) and c.silent("identity-or-norm") and c.open("identity-or-norm") == "identity":
        return data
    if data.kind == "int" and c.answer("narrow-sum", "narrow") == "exact":
        wide, single = (l2(c, data.cast(type_), axes).cast("float64") for type_ in ("float64", "float32"))
        beyond = wide > float(element_type(data.type).largest)
        fitting = c.constant(0.0, "float64").where(beyond, wide.either(single))
        return _to_whole(c, fitting, data.type).undefined(beyond)
    total = _reduced(c, data * data, axes, lambda x, over, keep: x.sum(over, keep=keep))
    if data.type == "float64" and c.answer("root-in-float32", "float64") == "float32":
        return total.cast("float32").sqrt().cast("float64")
    return _unless_identity(c, data, _in_floats(c, total, lambda x: x.sqrt()))


def _unless_identity(c: Call, data: Value, y: Value) -> Value:
    """Return y, the result; or, where a text has no axes mean the identity, data itself, if that silence says so."""
    if not c.silent("magnitude") or not data.rank or c.ints("axes"):
        return y
    return data if c.open("magnitude", data < 0.0) == "as-it-is" else y


def log_sum(c: Call, data: Value, axes: Value | None = None) -> Value:
    """The logarithm of the sum over axes; for no elements, minus infinity, if the type has it.

    Shapes and types as for `sum_`. Source: ONNX ReduceLogSum-1 to 28.
    """
    total = _reduced(c, data, axes, lambda x, over, keep: x.sum(over, keep=keep))
    return _in_floats(c, total, lambda x: x.log())


def log_sum_exp(c: Call, data: Value, axes: Value | None = None) -> Value:
    """The logarithm of the sum of exponentials over axes; for no elements, minus infinity, if the type has it.

    Shapes and types as for `sum_`. It is open whether an exponential may overflow though the result does not.
    Source: ONNX ReduceLogSumExp-1 to 28.
    """
    stable = c.open("exponentials") == "stable"

    def formula(x: Value, over: tuple[int, ...], keep: bool) -> Value:
        if not stable or not x.size:
            far = x > c.constant(math.log(sys.float_info.max), "float64")  # beyond every type
            return c.constant(math.inf, x.type).where(far, x.exp()).sum(over, keep=keep).log()
        top = x.max(over)
        top = c.constant(0, x.type).where(top.isinf() | top.isnan(), top)
        result = (x - top).exp().sum(over).log() + top
        return result if keep else result.reshape(*(d for i, d in enumerate(result.shape) if i not in over))

    return _in_floats(c, data, lambda x: _reduced(c, x, axes, formula))


def maximum(c: Call, data: Value, axes: Value | None = None) -> Value:
    """The largest element over axes; for none, minus infinity, or the type's smallest number. False is less than true.

    Shapes and types as for `sum_`, and bool from version 20 on. NaN is open. Source: ONNX ReduceMax-1 to 20,
    OpenVINO ReduceMax-1 and ReduceLogicalOr-1, oneDNN Graph ReduceMax.
    """
    return _extreme(c, data, axes, largest=True)


def minimum(c: Call, data: Value, axes: Value | None = None) -> Value:
    """The smallest element over axes; for none, plus infinity, or the type's largest number. False is less than true.

    Shapes and types as for `maximum`. Source: ONNX ReduceMin-1 to 20, OpenVINO ReduceMin-1 and ReduceLogicalAnd-1,
    oneDNN Graph ReduceMin.
    """
    return _extreme(c, data, axes, largest=False)


Formula = Callable[[Value, tuple[int, ...], bool], Value]


def _reduced(c: Call, x: Value, axes: Value | None, formula: Formula) -> Value:
    """Reduce over the version's axes. If there is nothing to reduce, the version may be silent."""
    over, keep = reduced_axes(c, x, axes)
    y = formula(x, over, keep)
    nothing = y.size and not all(x.shape[a] for a in over)
    if nothing and c.silent("empty-set"):
        c.open("empty-set")
    if nothing and c.answer("nothing-unsaid", "identity") == "not-a-number" and y.kind == "real":
        return c.constant(math.nan, y.type).broadcast(*y.shape)
    return y


def _is_identity(c: Call) -> bool:
    """Whether axes is an empty list, and the version says that the input itself is then the result."""
    return "axes-empty-identity" in c.clauses and c.ints("axes") == ()


def _in_floats(c: Call, x: Value, formula: Callable[[Value], Value]) -> Value:
    """Apply a formula for real numbers; whole numbers in float64 or float32, with an open rounding."""
    if x.kind != "int":
        return formula(x)
    y = formula(x.cast("float64")).either(formula(x.cast("float32")).cast("float64"))
    return _to_whole(c, y, x.type)


def _to_whole(c: Call, y: Value, type_: str) -> Value:
    """Return whole numbers of a type for a formula's numbers, rounded as a silence says."""
    return (y.rint() if c.open("integer-rounding") == "nearest-even" else y.trunc()).cast(type_)


def _extreme(c: Call, data: Value, axes: Value | None, *, largest: bool) -> Value:
    if _is_identity(c):
        return data
    x = data.cast("uint8") if data.kind == "bool" else data

    def formula(x: Value, over: tuple[int, ...], keep: bool) -> Value:
        reduce = x.max if largest else x.min
        extreme: Value = reduce(over, keep=keep)
        if not all(x.shape[a] for a in over):
            finite = extreme.size > 0 and c.answer("nothing-unsaid", "identity") == "last-finite"
            return c.constant(_end(data.type, largest=largest, finite=finite), x.type).broadcast(*extreme.shape)
        if x.kind != "real":
            return extreme
        skipped: Value = reduce(over, keep=keep, nan="ignore")
        if c.silent("empty-set"):  # nothing is left of NaN alone
            skipped = skipped.undefined(skipped.isnan())
        taken = c.open("nan")
        free = skipped.undefined(extreme.isnan())
        # "resets": the elements beyond a NaN are compared anew
        ways = {"propagates": extreme, "ignored": skipped, "unspecified": free, "resets": free}
        return ways.get(taken) or extreme.either(skipped)

    return _reduced(c, x, axes, formula).cast(data.type)


def place_of_largest(c: Call, data: Value) -> Value:
    """The index of the largest element along `axis`. Which of several, and NaN, are partly open.

    data: rank 1 or more, numbers; result: int64. Source: ONNX ArgMax-1 to 13.
    """
    return _place_of_extreme(c, data, largest=True)


def place_of_smallest(c: Call, data: Value) -> Value:
    """The index of the smallest element along `axis`; like `place_of_largest`.

    Source: ONNX ArgMin-1 to 13.
    """
    return _place_of_extreme(c, data, largest=False)


def _place_of_extreme(c: Call, data: Value, *, largest: bool) -> Value:
    axis, keep, late = c.attr("axis"), _keeps(c), c.attr("select_last_index", 0)
    if not -data.rank <= axis < data.rank:
        c.require("axis-range" if "axis-range" in c.clauses else "axis-exists", False)
    elif axis < 0:
        c.answer("axis-negative-early", "from-the-end")
    c.require_if_stated("not-empty", data.size > 0)
    axis %= data.rank
    late = bool(late) if late in (0, 1) else c.open("last-other") == "as-one"
    kept = [d for a, d in enumerate(data.shape) if a != axis]
    c.require("some-place", data.shape[axis] > 0 or not all(kept))
    indices = _indices(c, data, axis, largest=largest, late=late, keep=keep)
    return indices if keep else indices.reshape(*kept)


def _indices(c: Call, x: Value, axis: int, *, largest: bool, late: bool, keep: bool) -> Value:
    """Return the indices along an axis, which stays with extent 1."""
    nan, taken = x.isnan() if x.kind == "real" else None, ""
    if nan is not None:
        lost = nan.cast("uint8").max(axis).cast("bool")
        taken = c.open("nan", lost)
        x = c.constant(-math.inf if largest else math.inf, x.type).where(nan, x) if taken == "ignored" else x
    first, last = ((x.argmax if largest else x.argmin)(axis, late=way) for way in (late, True))
    if c.silent("ties-early"):
        several = ~first.equal(last)
        tie = c.open("ties-early", several)
        if tie == "any" and taken != "any" and x.shape[axis]:
            kept = x.shape[:axis] + x.shape[axis + 1 :]
            extreme = x.along(first, axis)
            arrays = [x, extreme if keep else extreme.reshape(*kept)]
            c.check("follows", arrays=arrays, axis=axis, squeezed=int(not keep))
        first = {"first": first, "last": last}.get(tie) or first.undefined(several)
    if taken != "any":
        return first
    low, high = (c.constant(index, "int64").where(lost, first) for index in (0, x.shape[axis] - 1))
    return first.between(low, high)


def running_sum(c: Call, x: Value, axis: Value) -> Value:
    """The running sums along an axis.

    x: rank 1 or more, numbers; axis: rank 0. Result: the shape and type of x. Source: ONNX CumSum-11 and 14.
    """
    along, exclusive, reverse = _course(c, x, axis)
    return x.cumsum(along, exclusive=exclusive, reverse=reverse)


def running_product(c: Call, x: Value, axis: Value) -> Value:
    """The running products along an axis; like `running_sum`.

    Source: ONNX CumProd-26.
    """
    along, exclusive, reverse = _course(c, x, axis)
    n = x.shape[along]
    if not x.size:
        return x
    order = (*(a for a in range(x.rank) if a != along), along)
    line = (x.flip(along) if reverse else x).transpose(*order)
    ones = line.pad([(n, -1) if exclusive else (n - 1, 0)], 1)
    y = ones.windows((n,)).prod((-1,), keep=False).transpose(*np.argsort(order).tolist())
    return y.flip(along) if reverse else y


def _course(c: Call, x: Value, axis: Value) -> tuple[int, bool, bool]:
    """Return the axis from the front, whether sums exclude the element itself, and whether they run backward."""
    c.require("axis-scalar", axis.rank == 0)
    along = int(c.known(axis))
    c.require("axis-range", -x.rank <= along < x.rank)
    exclusive, reverse = (
        bool(flag) if flag in (0, 1) else c.open("flag-other") == "as-one"
        for flag in (c.attr("exclusive"), c.attr("reverse"))
    )
    return along % x.rank, exclusive, reverse


def _end(type_: str, *, largest: bool, finite: bool = False) -> float:
    """Return the largest of no elements: the lower end of a type; or the smallest: its upper end."""
    own = element_type(type_)
    if own.kind == "bool":
        return 0 if largest else 1
    if own.is_integer:
        return own.smallest if largest else own.largest
    end = own.float_format.largest if finite else math.inf
    return -end if largest else end


def reduced_axes(c: Call, data: Value, axes: Value | None) -> tuple[tuple[int, ...], bool]:
    """Return the reduced axes, sorted and counted from the front, and whether they stay with extent 1."""
    c.require_if_stated("axes-once", axes is None or not c.sets("axes"))
    listed = c.ints("axes")
    if data.rank == 0 and c.silent("rank-0-silent"):
        c.require("axes-range", not listed)
        c.open("rank-0-silent")
        return (), False
    over = _listed(c, data.rank, listed, axes) if listed else _unlisted(c, data.rank, listed)
    return over, _keeps(c)


def _listed(c: Call, rank: int, listed: tuple[int, ...], axes: Value | None) -> tuple[int, ...]:
    """Return the axes of a list; at most one of its silences is open."""
    c.require_if_stated("axes-rank", axes is None or axes.rank < 2)
    if not all(-rank <= a < rank for a in listed):
        c.require("axes-range" if "axes-range" in c.clauses else "axes-exist", False)
    over = tuple(sorted({a % rank for a in listed}))
    scalar = axes is not None and axes.rank == 0
    if len(over) < len(listed):
        fed_twice = axes is not None and "axes-input-unique" in c.clauses
        _settle(c, "axes-input-unique" if fed_twice else "axes-unique", "" if fed_twice else "axes-duplicate")
    elif min(listed) < 0:
        c.answer("axes-negative-early", "from-the-end")
    elif scalar and "axes-one" not in c.clauses:
        _settle(c, "axes-input-rank", "axes-scalar")
    return over


def _unlisted(c: Call, rank: int, listed: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the axes of an empty or a missing list."""
    every_axis = tuple(range(rank))
    noop = c.attr("noop_with_empty_axes")
    if noop is not None:
        meant = c.open("noop-other") if noop not in (0, 1) else "as-one" if noop else "as-zero"
        return () if meant == "as-one" else every_axis
    if listed is not None:
        identity = "axes-empty-identity" in c.clauses or c.open("empty-axes") == "identity"
        return () if identity else every_axis
    c.require_if_stated("axes-required", False)
    return every_axis if "axes-absent" in c.clauses or c.open("axes-nowhere") == "reduce-all" else ()


def _settle(c: Call, clause: str, silence: str) -> None:
    """Continue with the chosen option if the version has this silence; otherwise the clause makes it invalid."""
    if c.answer(silence, "invalid") == "invalid":
        c.require(clause, False)


def _keeps(c: Call) -> bool:
    keep = c.attr("keepdims", c.attr("keep_dims"))
    return bool(keep) if keep in (0, 1) else c.open("keepdims-other") == "as-one"


def lattice_of_squares(blank: Blank, draw: Draw) -> Array:
    """Whole numbers small enough for every sum of their squares to be exact in the type itself."""
    room = 1 << blank.type.format.precision if blank.type.format else min(blank.type.largest, 1 << 20)
    most = max(1, math.isqrt(room // max(blank.terms, 1)))
    return draw.between(-most if blank.type.kind != "unsigned" else 0, most, blank.size)


def factors(blank: Blank, draw: Draw) -> Array:
    """Ones, and a dozen small numbers whose product usually fits the type."""
    small = [2, 3, 1] if blank.type.kind == "unsigned" else [2, -2, 3, -1]
    pool = np.array([2.0, -2.0, 0.5, -0.5, 1.5, -1.0] if blank.type.format else small)
    drawn = pool[draw.below(len(pool), blank.size)]
    return np.where(draw.below(max(blank.size, 1), blank.size) < 12, drawn, 1)


def near_one(blank: Blank, draw: Draw) -> Array:
    """Full significands around 1, so that long products stay in range."""
    p = blank.type.float_format.precision
    return np.ldexp(draw.between(3 << (p - 2), (5 << (p - 2)) - 1, blank.size).astype(np.float64), -p)


def small_squares(blank: Blank, draw: Draw) -> Array:
    """Full significands whose squares are just below the normal range; a sum of few is within it."""
    form = blank.type.float_format
    low, high = (math.isqrt(1 << (2 * form.precision - 2 - power)) for power in (1, 0))
    significand = draw.between(low + 1, high - 1, blank.size)
    return np.ldexp(significand.astype(np.float64), form.emin // 2 - form.precision + 1)


def tens(blank: Blank, draw: Draw) -> Array:
    """Full significands in [-8, 8): exponentials far apart that overflow no type."""
    p = blank.type.float_format.precision
    return np.ldexp(draw.between(-(1 << p), (1 << p) - 1, blank.size).astype(np.float64), 3 - p)
