"""What a mean may err by that is updated addend by addend, and never adds up: Welford's algorithm, and Chan's merges.

The update m_k = m_(k-1) + (x_k - m_(k-1)) / k rounds at most three times in its second term (the difference, 1/k, the
product) and once at the end, so k·m_k, a partial sum, gains at most 3·u·|x_k - m_(k-1)| + u·|k·m_k|. Over all k, and
over n, that is the bound below: the second terms are at most Σ|x| each; the first ones together at most (1 + H)·Σ|x|,
H the harmonic number of n-1, and at most n·max(1, log2(n)/2) times the span of the addends. A merge of two partial
means (Chan, Golub and LeVeque, American Statistician 37, 1983) gains as much, its smaller part for 1, and there are
n-1 of either in all.
"""

from __future__ import annotations

import math

import numpy as np

from ...cases.elements import Array

SHORTEST = 3
"""How many addends it takes: the mean of two exact addends is exact by running means as well."""


def charge(terms: int, mean: Array, span: Array, unit: float, underflow: float) -> Array:
    """Return the largest error of a running mean of `terms` addends, in any order.

    `mean` is Σ|x|/n, `span` the largest addend less the smallest, `unit` the unit roundoff, `underflow` the absolute
    error of one rounding in the subnormal range. Infinite where n·u is no longer small. Equal addends are exact.
    """
    harmonic = _harmonic(terms - 1)
    grown = (terms + 3 * harmonic + 6) * unit  # what earlier errors are rounded by
    if grown >= 0.5:
        return np.where(span == 0, 0.0, np.inf)
    with np.errstate(all="ignore"):
        differences = np.minimum((1 + harmonic) * mean, max(1.0, math.log2(terms) / 2) * span)
        first_order = unit * (3 * differences + (terms - 1) * mean) + terms * underflow
        return np.where(span == 0, 0.0, first_order / (1 - grown))


def _harmonic(n: int) -> float:
    """Return an upper bound of 1 + 1/2 + … + 1/n."""
    return sum(1 / k for k in range(1, n + 1)) if n < 64 else math.log(n) + 0.5773 + 0.5 / n
