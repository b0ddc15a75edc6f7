"""Means as implementations compute them: orders of summation and places of division, in a given NumPy dtype."""

import ml_dtypes
import numpy as np


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


DIVISIONS = (divided, reciprocal)


def means(x, accumulator, output):
    """All means of a vector: every order and division in `accumulator`, rounded to `output` at the end."""
    one = np.dtype(accumulator).type
    wide = [one(v) for v in x]
    with np.errstate(all="ignore"):
        for order in ORDERS:
            for division in DIVISIONS:
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
