"""Models of ai.onnx.ml that weight features or kernels: linear models, support vector machines, and their scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from types import MappingProxyType

import numpy as np

from ...cases.elements import Array
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw

_SQRT_2 = math.sqrt(2.0)


def linear_regressor(c: Call, x: Value) -> Value:
    """The weighted sums of each example's features, with a set of weights and an intercept per target.

    x: [N, C]; result: float32 [N, targets]. Source: ONNX ai.onnx.ml LinearRegressor-1.
    """
    line = x.rank == 1
    x = examples(c, x)
    targets = c.attr("targets")
    intercepts = np.array(c.attr("intercepts") or (0.0,) * targets, np.float32)
    c.require("intercepts", len(intercepts) == targets)
    weights = np.array(c.attr("coefficients") or (), np.float32)
    c.require("coefficients", weights.size == targets * x.shape[1])
    y = transformed(c, _weighed(x, weights.reshape(targets, -1), intercepts))
    return y.reshape(targets) if line and c.open("one-example") == "as-vector" else y


def linear_classifier(c: Call, x: Value) -> tuple[Value, Value]:
    """The label of each example's best score, and the scores: weighted sums of its features, one per class.

    x: [N, C] or [C]; results: [N] text or int64, [N, E] float32. With two labels there may be a single set of weights,
    for the score of the second label. Source: ONNX ai.onnx.ml LinearClassifier-1.
    """
    names = labels(c, "classlabels_ints")
    x = examples(c, x)
    weights = np.array(c.attr("coefficients"), np.float32)
    sets = weights.size // max(x.shape[1], 1)
    enough = sets == len(names) or (sets, len(names)) == (1, 2)
    c.require("coefficients", enough and weights.size == sets * x.shape[1])
    intercepts = np.array(c.attr("intercepts") or (0.0,) * sets, np.float32)
    c.require("intercepts", len(intercepts) == sets)
    scores = _weighed(x, weights.reshape(sets, -1), intercepts)
    if c.attr("multi_class") and c.open("multinomial") == "softmax":
        scores = _softmax(scores)
    return classified(c, scores, names)


def svm_regressor(c: Call, x: Value) -> Value:
    """The weighted sum of the kernels of each example and the support vectors; without these, of the features.

    x: [N, C] or [C]; result: float32 [N, 1]. Source: ONNX ai.onnx.ml SVMRegressor-1.
    """
    line, x = x.rank == 1, examples(c, x)
    count = c.attr("n_supports")
    weights = np.array(c.attr("coefficients") or (), np.float32)
    vectors = np.array(c.attr("support_vectors") or (), np.float32)
    c.require("lengths", vectors.size == count * x.shape[1] and weights.size == (count or x.shape[1]))
    c.require("kernel-known", c.attr("kernel_type") in _KERNELS)
    if not count:
        c.open("no-supports")
    rho = _offsets(c, 1)
    table = vectors.reshape(-1, x.shape[1])

    def formula(v: Value) -> Value:
        return _summed(_kernel(c, v, table) if count else v, weights[np.newaxis], rho)

    y = in_either(x, formula)
    if c.attr("one_class") and c.open("one-class") == "sign":
        y = y.of(1.0).where(y > 0.0, -1.0).undefined(y.equal(0.0))
    y = transformed(c, y)
    return y.reshape(1) if line and c.open("one-example") == "as-vector" else y


def svm_classifier(c: Call, x: Value) -> tuple[Value, Value]:
    """The label that wins most of the decisions between two classes, and scores or probabilities.

    x: [N, C] or [C]; results: [N] text or int64, [N, E] float32. Support vectors are ordered by class, with
    coefficients as in LIBSVM: a row for each other class. Source: ONNX ai.onnx.ml SVMClassifier-1.
    """
    names = labels(c, "classlabels_ints")
    x = examples(c, x)
    per_class = c.attr("vectors_per_class") or ()
    count, classes = sum(per_class), len(names)
    weights = np.array(c.attr("coefficients") or (), np.float32)
    vectors = np.array(c.attr("support_vectors") or (), np.float32)
    c.require("kernel-known", c.attr("kernel_type") in _KERNELS)
    c.require("probabilities-lengths", len(c.attr("prob_a") or ()) == len(c.attr("prob_b") or ()))
    if not count:
        c.require("lengths", weights.size == classes * x.shape[1])
        c.open("no-supports")
        rho = np.repeat(_offsets(c, 1), classes)
        scores = in_either(x, lambda v: _summed(v, weights.reshape(classes, -1), rho))
        return classified(c, scores, names)
    c.require("lengths", vectors.size == count * x.shape[1] and weights.size == (classes - 1) * count)
    pairs = list(combinations(range(classes), 2))
    rho = _offsets(c, len(pairs))
    ends = np.cumsum([0, *per_class])
    table = np.zeros((len(pairs), count), np.float32)
    rows = weights.reshape(classes - 1, count)
    for pair, (i, j) in enumerate(pairs):
        table[pair, ends[i] : ends[i + 1]] = rows[j - 1, ends[i] : ends[i + 1]]
        table[pair, ends[j] : ends[j + 1]] = rows[i, ends[j] : ends[j + 1]]
    decisions = in_either(x, lambda v: _summed(_kernel(c, v, vectors.reshape(count, -1)), table, rho))
    voted = _voted(c, decisions, pairs, names)
    free = decisions.of(0.0).equal(0.0)
    if c.attr("prob_a"):
        voted, half = _unless_probable(c, decisions, voted, names), decisions.of(0.5)
        return voted, half.either(half.of(1.0)).broadcast(x.shape[0], classes)
    if c.open("raw-scores") == "one-per-pair":
        return voted, transformed(c, decisions)
    return voted, decisions.of(0.0).broadcast(x.shape[0], classes).undefined(free)


def examples(c: Call, x: Value) -> Value:
    """The input with one example per row; an input of one dimension is one example."""
    c.require("rank", x.rank in (1, 2))
    return x.reshape(1, *x.shape) if x.rank == 1 else x


def labels(c: Call, attribute: str) -> Sequence[object]:
    """The classes' labels, text or whole numbers, from the one of two attributes that is given."""
    given = [c.attr(name) for name in (attribute, "classlabels_strings") if c.attr(name)]
    c.require("one-list", len(given) == 1)
    c.require("label-type", c.output_types["Y"] == ("string" if isinstance(given[0][0], str) else "int64"))
    return tuple(given[0])


def in_either(x: Value, formula: Callable[[Value], Value]) -> Value:
    """A float32 result, computed from the input as float32, or in float64 and then rounded."""
    y = formula(x.cast("float32"))
    return y if x.type == "float32" else y.either(formula(x.cast("float64")).cast("float32"))


def _weighed(x: Value, weights: Array, offsets: Array) -> Value:
    """Sums of products as float32, with one more addend, which may come first."""
    return in_either(x, lambda v: _summed(v, weights, offsets))


def _summed(x: Value, weights: Array, offsets: Array) -> Value:
    table = np.concatenate([weights, offsets[:, np.newaxis]], axis=1).T.astype(np.float64)
    return x.concat([x.of(1.0).broadcast(x.shape[0], 1)], 1) @ x.of(table)


def classified(c: Call, scores: Value, names: Sequence[object], voted: Value | None = None) -> tuple[Value, Value]:
    """The label of each example's best score, and all its transformed scores.

    scores: [N, E], or [N, 1], for the second of two labels; voted: a mask of the classes with votes, if that may
    matter; results: [N], [N, E].
    """
    if scores.shape[1] == 1 and len(names) == 2:
        return _of_one(c, scores, names)
    y = transformed(c, scores)
    return _best(c, scores, y, names, voted), y


def _best(c: Call, scores: Value, y: Value, names: Sequence[object], voted: Value | None) -> Value:
    """The labels of the best scores, before or after a transform: one that is not monotone changes the best score.

    A score of NaN leaves the label open.
    """
    if not scores.size:
        return label(c, scores.of(0.0).broadcast(scores.shape[0]).cast("int64"), names)
    if c.attr("post_transform") in _UNEVEN:
        changed = ~y.argmax(1, keep=False).equal(scores.argmax(1, keep=False))
        y = scores if c.open("top-class", changed) == "before" else y
    if voted is not None:
        alone = y.where(voted, -math.inf)
        if c.open("unvoted", ~alone.argmax(1, keep=False).equal(y.argmax(1, keep=False))) == "left-out":
            y = alone
    tied = y.equal(y.max(1)).cast("int64").sum(1, keep=False) > 1
    lost = y.isnan().cast("int64").sum(1, keep=False) > 0
    best = label(c, y.argmax(1, keep=False, late=c.open("ties", tied) == "last"), names)
    return _any_label(c, best, names, lost) if c.attr("post_transform") == "PROBIT" else best.undefined(lost)


def _of_one(c: Call, scores: Value, names: Sequence[object]) -> tuple[Value, Value]:
    """Two scores from one, the second label's: with its opposite, or with 1 less the score."""
    way = c.open("one-score")
    y = transformed(c, (-scores).concat([scores], 1) if way == "negated" else (1.0 - scores).concat([scores], 1))
    s = scores.reshape(scores.shape[0])
    predicted = label(c, (s > 0.0).cast("int64"), names)
    unclear = s.equal(0.0) if way == "negated" else (s >= 0.0) & (s <= 0.5)
    return predicted.undefined(unclear | s.isnan()), y


def label(c: Call, places: Value, names: Sequence[object]) -> Value:
    """The labels at indices of the list, text or int64."""
    type_ = str(c.output_types["Y"])
    dtype = object if type_ == "string" else np.int64
    chosen = c.constant(np.array(names[0], dtype), type_).broadcast(*places.shape)
    for position, name in enumerate(names[1:], 1):
        chosen = c.constant(np.array(name, dtype), type_).where(places.equal(position), chosen)
    return chosen


def _any_label(c: Call, chosen: Value, names: Sequence[object], where: Value) -> Value:
    """The labels; under a mask any label of the list."""
    dtype = object if chosen.type == "string" else np.int64
    forms = [c.constant(np.array(name, dtype), chosen.type).broadcast(*chosen.shape) for name in names]
    c.check("one-of", ["Y"], forms)
    return chosen.undefined(where)


def transformed(c: Call, x: Value) -> Value:
    """The scores transformed by `post_transform`, a number or its name; an example's scores are along the last axis."""
    way = c.attr("post_transform")
    way = _WAYS[way] if isinstance(way, int) and 0 <= way < len(_WAYS) else way
    c.require("transform-known", way in _WAYS)
    return x if way == "NONE" or not x.size else _TRANSFORMS[way](c, x)


def _softmax(x: Value) -> Value:
    e = (x - x.max(-1)).exp(shifted=True)
    return e / e.sum(-1)


def _softmax_zero(c: Call, x: Value) -> Value:
    """A softmax that leaves scores of zero unchanged, or only if another score is zero too."""
    if c.open("softmax-zero") == "zero-class":
        return _softmax(x.concat([x.of(0.0).broadcast(*x.shape[:-1], 1)], -1))[:, : x.shape[-1]]
    e = x.of(0.0).where(x.equal(0.0), (x - x.max(-1)).exp(shifted=True))
    total = e.sum(-1)
    return (e / total).undefined(total.equal(0.0))


def _probit(c: Call, x: Value) -> Value:
    """The normal distribution's quantile of scores in (0, 1); or its probability."""
    if c.open("probit") == "probability":
        return 0.5 * (1.0 + (x / _SQRT_2).erf())
    return x.probit().undefined((x <= 0.0) | (x >= 1.0))


_TRANSFORMS = MappingProxyType(
    {
        "SOFTMAX": lambda _, x: _softmax(x),
        "LOGISTIC": lambda _, x: x.sigmoid(),
        "SOFTMAX_ZERO": _softmax_zero,
        "PROBIT": _probit,
    }
)
_WAYS = ("NONE", *_TRANSFORMS)
_UNEVEN = frozenset({"SOFTMAX_ZERO", "PROBIT"})


def _offsets(c: Call, count: int) -> Array:
    """The offset of each sum: rho, or its opposite."""
    listed = c.attr("rho")
    if listed is None:
        c.open("rho-missing")
        return np.zeros(count, np.float32)
    c.require("rho-length", len(listed) == count)
    rho = np.array(listed, np.float32)
    return rho if not rho.any() or c.open("rho") == "added" else -rho


def _kernel(c: Call, x: Value, vectors: Array) -> Value:
    """The kernel of each example and each vector, [N, S]."""
    gamma, shift, degree = np.array(c.attr("kernel_params") or (0.0, 0.0, 0.0), np.float32).tolist()
    table = x.of(vectors.astype(np.float64))
    return _KERNELS[c.attr("kernel_type")](x, table, gamma, shift, degree)


def _polynomial(x: Value, table: Value, gamma: float, shift: float, degree: float) -> Value:
    inner = (x @ table.mT) * gamma + shift
    return reduce(lambda a, b: a * b, [inner] * int(degree), inner.of(1.0))


def _radial(x: Value, table: Value, gamma: float, _shift: float, _degree: float) -> Value:
    """The RBF kernel, from differences, or from squares and products."""
    off = x.reshape(x.shape[0], 1, x.shape[1]) - table.reshape(1, *table.shape)
    apart = (off * off).sum(2, keep=False)
    squares = (x * x).sum(1) + (table * table).sum(1).mT
    return (apart.either(squares - 2.0 * (x @ table.mT)) * -gamma).exp()


_KERNELS: Mapping[str, Callable[[Value, Value, float, float, float], Value]] = MappingProxyType(
    {
        "LINEAR": lambda x, table, _gamma, _shift, _degree: x @ table.mT,
        "POLY": _polynomial,
        "RBF": _radial,
        "SIGMOID": lambda x, table, gamma, shift, _degree: ((x @ table.mT) * gamma + shift).tanh(),
    }
)


def _voted(c: Call, decisions: Value, pairs: list[tuple[int, int]], names: Sequence[object]) -> Value:
    """The label with the most votes; open if two have as many, or a decision is 0."""
    first, second = (np.zeros((len(pairs), len(names)), np.int64) for _ in range(2))
    for pair, (i, j) in enumerate(pairs):
        first[pair, i], second[pair, j] = 1, 1
    won = (decisions > 0.0).cast("int64")
    votes = won @ won.of(first) + (1 - won) @ won.of(second)
    tied = votes.equal(votes.max(1)).cast("int64").sum(1, keep=False) > 1
    even = decisions.equal(0.0).cast("int64").sum(1, keep=False) > 0
    return label(c, votes.argmax(1, keep=False), names).undefined(tied | even)


def _unless_probable(c: Call, decisions: Value, voted: Value, names: Sequence[object]) -> Value:
    """The label; open if probabilities may give another one: with two classes, Platt's; with more, always."""
    if decisions.shape[1] > 1:
        return _any_label(c, voted, names, voted.equal(voted))
    a, b = (np.float32(c.attr(name)[0]).item() for name in ("prob_a", "prob_b"))
    share = (decisions * a + b).reshape(decisions.shape[0])  # below zero, the first class is the more likely one
    decided = decisions.reshape(decisions.shape[0]) > 0.0
    return _any_label(c, voted, names, decided ^ (share < 0.0))


def probabilities(blank: Blank, draw: Draw) -> Array:
    """Multiples of 1/64 strictly between 0 and 1."""
    return draw.between(1, 63, blank.size) / 64.0


def quarters(blank: Blank, draw: Draw) -> Array:
    """Multiples of 1/4 from -1 to 1, zero first."""
    numbers = draw.between(-4, 4, blank.size) / 4.0
    numbers[:, :1] = 0.0
    return np.asarray(numbers)


def beyond_2_24(blank: Blank, draw: Draw) -> Array:
    """Odd whole numbers just beyond 2**24, which float32 cannot represent, with alternating signs."""
    odd = (1 << 24) + 1 + 2 * draw.below(64, blank.size)
    return np.where(np.arange(blank.size) % 2 == 0, odd, -odd)
