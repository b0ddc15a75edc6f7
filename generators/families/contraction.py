"""Operators that multiply and sum over shared dimensions: Einsum, Gemm, MatMul, quantized MatMul, Det."""

from __future__ import annotations

import math
import re
from functools import reduce
from itertools import combinations

import numpy as np

from ...cases.elements import Array, element_type
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw
from .pointwise import meet
from .quantization import coded, number


def einsum(c: Call, xs: list[Value]) -> Value:
    """Products of the operands' elements, summed over the labels that the output lacks.

    xs: one operand per term of `equation`, numbers of one type. Without an arrow the output has the dimensions of the
    ellipsis, then the labels that occur once, upper case before lower case. Source: ONNX Einsum-12 and 28.
    """
    left, arrow, right = c.attr("equation").replace(" ", "").partition("->")
    terms = left.split(",")
    c.require("characters", all(re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", t) for t in (*terms, right)))
    c.require("terms", len(terms) == len(xs))
    pairs = list(zip(xs, terms, strict=True))
    spare = {x.rank - len(t.replace("...", "")) for x, t in pairs if "..." in t}
    c.require("ellipsis-fixed", len(spare) <= 1 and min(spare, default=0) >= 0 and (bool(spare) or "..." not in right))
    c.require("ranks", all("..." in t or x.rank == len(t) for x, t in pairs))
    dots = tuple(range(max(spare, default=0)))
    names = [_labels(t, dots) for t in terms]
    extents: dict[object, int] = {}
    for x, labels in zip(xs, names, strict=True):
        for label, extent in zip(labels, x.shape, strict=True):
            known = extents.get(label, 1)
            stretched = 1 in (known, extent) and isinstance(label, int)
            c.require("sizes", label not in extents or known == extent or stretched)
            extents[label] = extent if known == 1 else known
    if arrow:
        output = _labels(right, dots)
        c.require("output-labels", len(set(output)) == len(output) and set(output) <= set(extents))
        if dots and not set(dots) <= set(output):
            c.open("ellipsis-dropped")
    else:
        letters = left.replace(".", "").replace(",", "")
        output = [*dots, *sorted(label for label in set(letters) if letters.count(label) == 1)]
    order = [*output, *(label for label in extents if label not in output)]
    spread = [_arranged(x, labels, order) for x, labels in zip(xs, names, strict=True)]
    products = reduce(lambda a, b: a * b, spread).broadcast(*(extents[label] for label in order))
    return products.sum(range(len(output), len(order)), keep=False) if len(order) > len(output) else products


def matmul(c: Call, a: Value, b: Value) -> Value:
    """The product of the matrices in the last two dimensions; a vector is a row as `a` and a column as `b`.

    a: [batch..., M, K]; b: [batch..., K, N]; result: [batch..., M, N], batches broadcast. Source: ONNX MatMul-1 to 13.
    """
    return _multiplied(c, a, b)


def matmul_integer(c: Call, a: Value, b: Value, a_zero: Value | None = None, b_zero: Value | None = None) -> Value:
    """The int32 product of two matrices of codes, less their zero points: one in all, or one per row or column.

    a: [batch..., M, K]; b: [batch..., K, N]; a_zero: rank 0, [M], or [batch..., M, 1]; b_zero: rank 0, [N], or
    [batch..., 1, N]. Source: ONNX MatMulInteger-10.
    """
    a, b = (
        v.cast("int32") if zero is None else v.cast("int32") - _spread(c, zero, v, axis).cast("int32")
        for v, zero, axis in ((a, a_zero, -2), (b, b_zero, -1))
    )
    return _multiplied(c, a, b)


def qlinear_matmul(
    c: Call,
    a: Value,
    a_scale: Value,
    a_zero: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value,
    y_scale: Value,
    y_zero: Value,
) -> Value:
    """The product of two matrices of codes, dequantized, as a code.

    Shapes as in `matmul_integer`, also for scales; y_scale, y_zero: one number. Source: ONNX QLinearMatMul-10, 21.
    """
    pairs = ((a_scale, a_zero), (b_scale, b_zero), (y_scale, y_zero))
    c.require("zero-point-shape", all(scale.shape == zero.shape for scale, zero in pairs))
    c.require("output-scale", y_scale.size == 1)
    if y_scale.rank:
        c.open("one-element")
        y_scale, y_zero = y_scale.reshape(), y_zero.reshape()
    x = number(a, _spread(c, a_zero, a, -2), _spread(c, a_scale, a, -2))
    y = number(b, _spread(c, b_zero, b, -1), _spread(c, b_scale, b, -1))
    to = element_type(str(c.output_types["y"]))
    quotient = _multiplied(c, x, y) / y_scale
    if not to.is_integer and c.open("float8") == "nearest-whole":
        quotient = quotient.rint()
    return coded(quotient, y_zero, to)


def _spread(c: Call, v: Value, x: Value, axis: int) -> Value:
    """A scale or zero point for each row (`axis` -2) or column (-1) of x, or for all, that broadcasts to x."""
    if v.rank == 0:
        return v
    own = tuple(extent if at - x.rank != (-3 - axis) else 1 for at, extent in enumerate(x.shape))
    if x.rank == 2 and v.shape == (x.shape[axis],):
        return v.reshape(*own)
    if v.size == 1 and v.shape != own:
        c.open("one-element")
        return v.reshape()
    c.require("granularity", x.rank > 1 and v.shape == own)
    return v


def _multiplied(c: Call, a: Value, b: Value) -> Value:
    c.require("scalar", a.rank > 0 and b.rank > 0)
    rows, columns = a.rank > 1, b.rank > 1
    a = a if rows else a.reshape(1, *a.shape)
    b = b if columns else b.reshape(*b.shape, 1)
    c.require("inner", a.shape[-1] == b.shape[-2])
    c.require("batches", meet(a.shape[:-2], b.shape[:-2]))
    y = a @ b
    return y.reshape(*y.shape[:-2], *(y.shape[-2:-1] if rows else ()), *(y.shape[-1:] if columns else ()))


def gemm(c: Call, a: Value, b: Value, addend: Value | None = None) -> Value:
    """Alpha times the product of two matrices, each of which may be transposed, plus beta times a third.

    a: [M, K] or [K, M]; b: [K, N] or [N, K]; addend: broadcast to the result's [M, N]. Source: ONNX Gemm-1 to 13.
    """
    c.require("matrices", a.rank == b.rank == 2)
    a, b = a.mT if c.attr("transA") else a, b.mT if c.attr("transB") else b
    c.require("inner", a.shape[1] == b.shape[0])
    if addend is not None:
        _stretches(c, addend.shape, (a.shape[0], b.shape[1]))
    alpha, beta = c.float32("alpha"), c.float32("beta")
    if a.kind == "int":
        return _scaled_whole(c, a @ b, addend, alpha, beta)
    unread = [x for x, factor in ((a, alpha), (b, alpha), (addend, beta)) if x is not None and not factor and x.size]
    wild = [(x.isnan() | x.isinf()).cast("uint8").max(keep=False).cast("bool") for x in unread]
    if wild and c.open("scaled-by-zero", reduce(lambda p, q: p | q, wild)) == "zero":
        a, b = (x if alpha else c.constant(0.0, x.type).broadcast(*x.shape) for x in (a, b))
        addend = addend if beta else None
    product = a @ b if alpha == 1 else (a @ b) * alpha
    if alpha == 1 and addend is None:
        return product
    a = a if alpha == 1 else a * alpha
    if addend is None:
        return product.either(a @ b)
    addend = addend if beta == 1 else addend * beta
    return (product + addend).either(_accumulated(c, a, b, addend))


def _stretches(c: Call, shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    """Require that a shape broadcasts to another, by the version's rule."""
    fits = len(shape) <= len(target) and all(e in (1, d) for e, d in zip(shape[::-1], target[::-1], strict=False))
    if "broadcast" in c.clauses:
        c.require("broadcast", fits)
    elif not c.attr("broadcast"):
        c.require("same-shape", shape == target)
    else:
        c.require("broadcast-early", fits)
        if math.prod(shape) != 1 and shape != target[len(target) - len(shape) :]:
            c.open("stretched-otherwise")


def _scaled_whole(c: Call, product: Value, addend: Value | None, alpha: float, beta: float) -> Value:
    """Gemm of whole numbers: exact, or with whole factors. The rounding of a result that is not whole is open."""
    if not (alpha % 1 or (addend is not None and beta % 1)):
        y = product * int(alpha)
        return y if addend is None else y + addend * int(beta)
    taken = c.open("integer-scaling")
    if taken != "exact":
        way = math.trunc if taken == "factors-truncated" else _away
        alpha, beta = way(alpha), way(beta)
    wide = product.cast("float64") * alpha
    wide = wide if addend is None else wide + addend.cast("float64") * beta
    truncated = wide.trunc()
    return truncated.cast(product.type).undefined(~truncated.equal(wide))


def _away(number: float) -> int:
    """The nearest whole number, ties away from zero."""
    return math.trunc(number + math.copysign(0.5, number))


def _accumulated(c: Call, a: Value, b: Value, addend: Value) -> Value:
    """The product with one more addend in each sum, in any order: implementations may start with it."""
    ones = c.constant(1.0, a.type)
    if addend.rank < 2 or addend.shape[0] == 1:
        row = addend.broadcast(1, b.shape[1])
        return a.concat([ones.broadcast(a.shape[0], 1)], 1) @ b.concat([row], 0)
    lines = a.concat([ones.broadcast(a.shape[0], 1)], 1).reshape(a.shape[0], 1, a.shape[1] + 1)
    stack = b.reshape(1, *b.shape).broadcast(a.shape[0], *b.shape)
    stack = stack.concat([addend.broadcast(a.shape[0], b.shape[1]).reshape(a.shape[0], 1, b.shape[1])], 1)
    return (lines @ stack).reshape(a.shape[0], b.shape[1])


def det(c: Call, x: Value) -> Value:
    """The determinants of the matrices in the last two dimensions.

    x: [batch..., M, M]; result: [batch...]. Source: ONNX Det-11 and 22.
    """
    c.require("square", x.rank > 1 and x.shape[-1] == x.shape[-2])
    batch, m = x.shape[:-2], x.shape[-1]
    if not m:
        return c.constant(1.0 if c.open("empty") == "one" else 0.0, x.type).broadcast(*batch)
    rows = x.reshape(math.prod(batch), m, m)
    minors = rows[:, 0, :].reshape(-1, m) if math.prod(batch) else rows.reshape(0, m)
    for r in range(1, m):  # of the first r + 1 rows, for each choice of r + 1 columns
        sets = list(combinations(range(m), r + 1))
        before = {chosen: index for index, chosen in enumerate(combinations(range(m), r))}
        columns = np.array([j for chosen in sets for j in chosen])
        places = np.array([before[tuple(k for k in chosen if k != j)] for chosen in sets for j in chosen])
        signs = np.array([[(-1.0) ** (r + i) for _ in sets for i in range(r + 1)]])
        row = rows[:, r, :].reshape(rows.shape[0], m)
        terms = row.take(columns, 1) * minors.take(places, 1) * c.constant(signs, x.type)
        minors = terms.reshape(rows.shape[0], len(sets), r + 1).sum((2,), keep=False)
    y = minors.reshape(*batch)
    return y if m == 1 else _eliminated(y, rows, m)


def _eliminated(y: Value, rows: Value, m: int) -> Value:
    """The determinants with the error of Gaussian elimination, which is large relative to small determinants.

    With pivoting, so that no multiplier exceeds 1, elimination gives the determinant of a matrix whose rows differ from
    the given ones by some m units in the last place. By Hadamard's inequality, this changes the determinant by m^2
    units of the product of their norms. Adding and subtracting m / 2 such products, each with an error of more than m
    units, charges that much in any arithmetic.
    """
    norms = (rows * rows).sum((2,)).sqrt().prod((1,))
    reach = norms.reshape(*y.shape) * (0.55 * m)
    return (y + reach) - reach


def _labels(term: str, dots: tuple[int, ...]) -> list[object]:
    """The labels of a term's dimensions: letters, and numbers for the ellipsis."""
    before, ellipsis, after = term.partition("...")
    return [*before, *(dots if ellipsis else ()), *after]


def _arranged(x: Value, labels: list[object], order: list[object]) -> Value:
    """The operand with a dimension per label of `order`, 1 if it lacks the label; repeated labels select diagonals."""
    kept = list(dict.fromkeys(labels))
    for label in kept:
        places = [i for i, other in enumerate(labels) if other == label]
        while len(places) > 1:
            x, labels = _diagonal(x, places[0], places[1]), [other for i, other in enumerate(labels) if i != places[1]]
            places = [i for i, other in enumerate(labels) if other == label]
    x = x.transpose(*(labels.index(label) for label in order if label in labels))
    extents = iter(x.shape)
    return x.reshape(*(next(extents) if label in labels else 1 for label in order))


def _diagonal(x: Value, first: int, second: int) -> Value:
    """The diagonal of two dimensions of equal extent, along the first of them."""
    rest = [i for i in range(x.rank) if i not in (first, second)]
    n = x.shape[first]
    flat = x.transpose(*rest, first, second).reshape(*(x.shape[i] for i in rest), n * n)
    line = flat.take(np.arange(n) * (n + 1), len(rest))
    return line.transpose(*range(first), len(rest), *range(first, len(rest)))


def evens(blank: Blank, draw: Draw) -> Array:
    """Small even numbers, whose halves are whole."""
    return 2 * (draw.below(6, blank.size) if blank.type.kind == "unsigned" else draw.between(-5, 5, blank.size))
