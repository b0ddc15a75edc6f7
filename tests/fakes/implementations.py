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


BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
