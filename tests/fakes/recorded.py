"""Formulas recorded for tests, implementations of them, and whether these are admitted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from opconform.cases.batch import Bounds, Expectation, Flag
from opconform.cases.elements import Array, element_type, type_of
from opconform.generators.arithmetic.recording import Recording
from opconform.generators.arithmetic.tape import Facts, Port, record
from opconform.generators.primitives.machine import Machine

SMALL = ("float16", "bfloat16")


def recorded(
    reference: Callable[..., Any],
    arrays: Sequence[Array | None],
    outputs: Sequence[str],
    silences: Mapping[str, tuple[str, ...]] | None = None,
    **more: Any,
) -> Recording:
    """Record a reference for arrays, lanes first; None is a port left out."""
    ports = {f"p{i}": None if a is None else Port(type_of(a), a.shape[1:]) for i, a in enumerate(arrays)}
    named = {f"o{i}": type_ for i, type_ in enumerate(outputs)}
    known = more.pop("known", None)
    return record(reference, Facts("onnx/Tried", 1, ports, named, silences=silences or {}, **more), known)


def bare(bounds: Bounds) -> Bounds:
    """Return the bounds of a single case without lanes."""
    return bounds.mapped(lambda array: array[0, ...])


def admits(bounds: Bounds, answer: Array) -> Array:
    """Return which elements of an answer are admitted, lanes first."""
    flags = np.zeros(bounds.value.shape, np.uint8) if bounds.flags is None else bounds.flags
    free = flags & Flag.FREE > 0
    if element_type(bounds.type).kind != "float":
        inside = answer == bounds.value
        if element_type(bounds.type).is_integer:
            inside = inside | ((answer >= bounds.lower) & (answer <= bounds.upper))
        return np.asarray(inside) | free
    with np.errstate(all="ignore"):
        y = answer.astype(np.float64)
        inside = (y >= bounds.lower) & (y <= bounds.upper) & np.isfinite(y) | (y == bounds.value)
        inside |= np.isinf(y) & ((y == bounds.lower) | (y == bounds.upper))
    named = ((Flag.POSITIVE_INFINITY, y == np.inf), (Flag.NEGATIVE_INFINITY, y == -np.inf), (Flag.NAN, np.isnan(y)))
    for flag, outcome in (*named, (Flag.ZERO, y == 0)):
        inside |= (flags & flag > 0) & outcome
    return inside | free


def admitted(expectation: Expectation, answers: Sequence[Array], accumulator: str = "") -> Array:
    """Return in which lanes any option admits the answers, of those of an accumulator where they name one."""
    found = np.zeros(expectation.lanes, bool)
    for one in expectation.options:
        named = dict(one.labels).get("accumulator", accumulator)
        if one.kind == "values" and named in (accumulator, "own") and len(one.outputs) == len(answers):
            inside = [admits(b, a).reshape(len(found), -1).all(1) for b, a in zip(one.outputs, answers, strict=True)]
            found |= np.all(inside, axis=0) & one.applies
    return found


def machines(type_: str) -> Iterator[tuple[str, Machine]]:
    """Yield compliant implementations of a type's arithmetic, with the option of `accumulator` that they take."""
    own, single = element_type(type_).dtype, np.dtype(np.float32)
    pairs = {"own": (own, own)}
    if type_ in SMALL:
        pairs = {"wide": (single, single), "stepwise": (own, single), "narrow": (own, own)}
    for name, (stores, adds) in pairs.items():
        for order in ("forward", "reverse", "pairwise"):
            yield name, Machine(stores, adds, order)  # type: ignore[arg-type]  # one of the three


KINDS = ("uniform", "cancelling", "huge", "tiny", "whole", "specials", "positive")


def drawn(kind: str, shape: tuple[int, ...], type_: str, rng: np.random.Generator, lanes: int = 4) -> Array:
    """Return data of a kind that is hard on some arithmetic, lanes first."""
    element, x = element_type(type_), rng.uniform(-4, 4, (lanes, *shape))
    if element.is_integer:
        return rng.integers(element.smallest, element.largest, x.shape, element.dtype, endpoint=True)
    form = element.float_format
    if kind == "specials":
        x[rng.random(x.shape) < 0.08] = np.inf
        x[rng.random(x.shape) < 0.04] = -np.inf
        x[rng.random(x.shape) < 0.04] = np.nan
        x[rng.random(x.shape) < 0.04] = -0.0
    made = {
        "cancelling": lambda: 100 + x / 16,
        "huge": lambda: x * form.largest**0.5 / 8,
        "tiny": lambda: x * form.tiny * 4,
        "whole": lambda: np.rint(x),
        "positive": lambda: np.abs(x),
    }
    with np.errstate(all="ignore"):
        return np.asarray(made.get(kind, lambda: x)()).astype(element.dtype)


# Formulas of operators of many kinds, as references are written: what they are tried with, and on what shapes


class Formula(NamedTuple):
    """A reference, the shapes of its ports (None: left out), and its outputs' types, T for the one that is tried."""

    reference: Callable[..., Any]
    shapes: tuple[tuple[int, ...] | None, ...]
    outputs: tuple[str, ...] = ("T",)


def softmax(c: Any, x: Any) -> Any:
    e = (x - x.max(-1)).exp()
    return (e / e.sum(-1)).within(0.0, 1.0)


def layer_normalization(c: Any, x: Any, scale: Any, bias: Any) -> Any:
    d = x - x.mean(-1)
    inverse = ((d * d).mean(-1) + float(np.float32(1e-5))).sqrt().reciprocal()
    y = d * inverse * scale
    return (y if bias is None else y + bias), x.mean(-1), inverse


def conv(c: Any, x: Any, w: Any, b: Any) -> Any:
    kernel, m, n = w.shape[2:], w.shape[0], x.shape[0]
    seen = x.pad([(1, 1)] * len(kernel)).windows(kernel)
    out = seen.shape[2 : 2 + len(kernel)]
    cols = seen.transpose(0, 2, 3, 1, 4, 5).reshape(n, math.prod(out), -1)
    y = cols.matmul(w.reshape(1, m, -1).mT).transpose(0, 2, 1).reshape(n, m, *out)
    return y if b is None else y + b.reshape(1, m, 1, 1)


def attention(c: Any, q: Any, k: Any, v: Any) -> Any:
    root = math.sqrt(1 / math.sqrt(q.shape[-1]))
    return softmax(c, (q * root).matmul((k * root).mT)).matmul(v)


def log_sum_exp(c: Any, x: Any) -> Any:
    most = x.max(-1)
    return (x - most).exp().sum(-1).log() + most


def recurrent(c: Any, x: Any, w: Any, r: Any) -> Any:
    h = x.of(0.0).broadcast(x.shape[1], r.shape[-1])
    s = h
    for t in range(x.shape[0]):
        z = x[t].matmul(w) + h.matmul(r)
        s = z.sigmoid() * s + (-z).sigmoid() * z.tanh()
        h = z.sigmoid() * s.tanh()
    return h, s


def batch_normalization(c: Any, x: Any, scale: Any, bias: Any) -> Any:
    mean = x.mean((0, 2))
    d = x - mean
    variance = (d * d).mean((0, 2))
    y = d / (variance + 1e-5).sqrt() * scale.reshape(1, -1, 1) + bias.reshape(1, -1, 1)
    return y, mean * 0.9 + scale.reshape(1, -1, 1) * 0.1


def hard_swish(c: Any, x: Any) -> Any:
    return x * (x * (1 / 6) + 0.5).clip(0.0, 1.0)


def gelu(c: Any, x: Any) -> Any:
    return 0.5 * x * (1.0 + (x * math.sqrt(0.5)).erf())


def mish(c: Any, x: Any) -> Any:
    return x * x.exp().log1p().tanh()


def polynomial(c: Any, a: Any, b: Any) -> Any:
    return a * a * b - a / b + (a - b) * 3.0, (a < b), (a - b).abs().maximum(b).minimum(a)


def quantize(c: Any, x: Any, scale: Any) -> Any:
    return (x / scale).rint().clip(-128.0, 127.0)


def norms(c: Any, x: Any) -> Any:
    return (x * x).sum(-1).sqrt(), x.abs().sum(-1), x.sum(-1), (x * x).sum(-1).log()


def chosen(c: Any, x: Any, y: Any) -> Any:
    return x.where(x < y, y), x.max(-1), x.min(0), (x * y).max(-1), (x + y).minimum(0.5)


def running(c: Any, x: Any) -> Any:
    return x.cumsum(1), x.cumsum(0, exclusive=True, reverse=True), (x * x).cumsum(1) - 1.0


def products(c: Any, x: Any) -> Any:
    return x.prod(1), (x * 0.7).prod((0, 1)), (x + 0.5).prod(0) * 3.0


def decisions(c: Any, x: Any, y: Any) -> Any:
    z = x * y * 0.3
    order = z.order(-1, largest=True)
    return z.argmax(-1), order, z > 0.5, (z - 1.0).sign(), z.rint(), z.cast("int8"), z.along(order, -1), z.floor() + 0.1


def powers(c: Any, x: Any, y: Any) -> Any:
    return x.abs() ** y, x**2.0, (x * x + 1.0) ** (y * 0.5), x.mod(y, sign="dividend"), (x * 1.1).mod(y)


def products_of_batches(c: Any, x: Any, y: Any) -> Any:
    z = x.matmul(y)
    return z, (z * 0.5).matmul(y.mT), z.cast("float32").exp().cast(x.type)


def scattered(c: Any, x: Any, y: Any) -> Any:
    flat = (x * 1.1).reshape(-1)
    places = y.of(0).cast("int64").broadcast(2) + c.constant(np.array([3, 1]), "int64")
    return (
        flat.scatter(places, y[0, :2] / 3.0),
        flat.pad([(1, 2)], 0.5)[::2],
        flat.isnan().where(flat < 0.0, flat.isinf()),
    )


FORMULAS = {
    "decisions": Formula(decisions, ((3, 7), (7,)), ("int64", "int64", "bool", "T", "T", "int8", "T", "T")),
    "powers": Formula(powers, ((3, 5), (5,)), ("T",) * 5),
    "products of batches": Formula(products_of_batches, ((2, 3, 4), (4, 5)), ("T",) * 3),
    "scattered": Formula(scattered, ((3, 4), (2, 3)), ("T", "T", "bool")),
    "running": Formula(running, ((3, 9),), ("T",) * 3),
    "products": Formula(products, ((4, 5),), ("T",) * 3),
    "softmax": Formula(softmax, ((3, 7),)),
    "layer-normalization": Formula(layer_normalization, ((3, 8), (8,), (8,)), ("T",) * 3),
    "layer-normalization without bias": Formula(layer_normalization, ((3, 7), (7,), None), ("T",) * 3),
    "conv": Formula(conv, ((1, 2, 5, 5), (3, 2, 3, 3), (3,))),
    "attention": Formula(attention, ((2, 3, 4), (2, 5, 4), (2, 5, 4))),
    "log-sum-exp": Formula(log_sum_exp, ((4, 9),)),
    "recurrent": Formula(recurrent, ((3, 2, 3), (3, 4), (4, 4)), ("T",) * 2),
    "batch-normalization": Formula(batch_normalization, ((3, 2, 4), (2,), (2,)), ("T",) * 2),
    "hard-swish": Formula(hard_swish, ((17,),)),
    "gelu": Formula(gelu, ((17,),)),
    "mish": Formula(mish, ((17,),)),
    "polynomial": Formula(polynomial, ((3, 5), (5,)), ("T", "bool", "T")),
    "quantize": Formula(quantize, ((4, 5), (5,))),
    "norms": Formula(norms, ((3, 11),), ("T",) * 4),
    "chosen": Formula(chosen, ((4, 5), (4, 5)), ("T",) * 5),
}
FUNCTIONS = (
    *("exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "erf", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "reciprocal", "erfc"),
)


# Means as implementations compute them: orders of summation and places of division, in a given NumPy dtype


def forward(x, one):
    total = x[0]
    for value in x[1:]:
        total = one(total + value)
    return total


def backward(x, one):
    return forward(x[::-1], one)


def pairwise(x, one):
    if len(x) == 1:
        return x[0]
    half = len(x) // 2
    return one(pairwise(x[:half], one) + pairwise(x[half:], one))


def lanes(x, one):
    parts = [forward(x[i::4], one) for i in range(4) if len(x[i::4])]
    return forward(parts, one)


def from_zero(x, one):
    return forward([one(0.0), *x], one)


ORDERS = (forward, backward, pairwise, lanes, from_zero)


def divided(total, n, one):
    return one(total / one(n))


def reciprocal(total, n, one):
    return one(total * one(one(1.0) / one(n)))


def means(x, accumulator, output):
    """All means of a vector: every order and division in `accumulator`, rounded to `output` at the end."""
    one = np.dtype(accumulator).type
    wide = [one(v) for v in x]
    with np.errstate(all="ignore"):
        for order in ORDERS:
            for division in (divided, reciprocal):
                yield np.dtype(output).type(division(order(wide, one), len(x), one))
        shares = [one(v / one(len(x))) for v in wide]
        inverse = one(one(1.0) / one(len(x)))
        rescaled = [one(v * inverse) for v in wide]
        for order in (forward, pairwise):
            yield np.dtype(output).type(order(shares, one))
            yield np.dtype(output).type(order(rescaled, one))


def updated(x, one):
    """Welford's update, one addend after the other."""
    mean = x[0]
    for k, value in enumerate(x[1:], 2):
        mean = one(mean + one(one(value - mean) / one(k)))
    return mean


def updated_by_reciprocals(x, one):
    mean = x[0]
    for k, value in enumerate(x[1:], 2):
        mean = one(mean + one(one(value - mean) * one(one(1.0) / one(k))))
    return mean


def merged(x, one):
    """Halves, merged by the weight of the second."""
    if len(x) == 1:
        return x[0]
    half = len(x) // 2
    a, b = merged(x[:half], one), merged(x[half:], one)
    return one(a + one(one(b - a) * one(one(len(x) - half) / one(len(x)))))


def running_means(x, accumulator, output):
    """Means that are never a sum: updated and merged, in `accumulator`, rounded to `output` at the end."""
    one = np.dtype(accumulator).type
    with np.errstate(all="ignore"):
        for order in ([one(v) for v in x], [one(v) for v in x[::-1]], sorted(one(v) for v in x)):
            for mean in (updated, updated_by_reciprocals, merged):
                yield np.dtype(output).type(mean(order, one))


BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
