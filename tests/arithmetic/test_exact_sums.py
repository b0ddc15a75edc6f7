"""Exact sums of float64 numbers: against fractions, over the whole range of exponents."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from opconform.generators.arithmetic.errors import NO_BIT, lowest_bit, precise, rounded, summed, widened

finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(st.lists(st.lists(finite, min_size=3, max_size=3), min_size=1, max_size=3))
def test_sums_are_those_of_fractions(rows: list[list[float]]) -> None:
    with precise():
        found = summed(np.array(rows), (1,))
    assert found.shape == (len(rows), 1)
    for total, row in zip(found[:, 0], rows, strict=True):
        exact = sum(map(Fraction, row))
        assert abs(Fraction(*total.as_integer_ratio()) - exact) <= abs(exact) * Fraction(1, 2**160)


def test_sums_over_several_axes_keep_them() -> None:
    numbers = np.arange(24.0).reshape(2, 3, 4) - 7.5
    with precise():
        found = summed(numbers, (0, 2))
    assert (rounded(found) == numbers.sum(axis=(0, 2), keepdims=True)).all()


@settings(deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=6))
def test_a_sum_of_any_floats_is_that_of_numbers_of_many_bits_one_by_one(numbers: list[float]) -> None:
    array = np.array([numbers])
    with precise():
        at_once, one_by_one = (rounded(summed(values, (1,))) for values in (array, widened(array)))
    exact = sum(map(Fraction, numbers)) if all(map(math.isfinite, numbers)) else None
    if not exact or at_once != float_of(exact):  # one by one, small ones beside large ones are lost
        np.testing.assert_array_equal(at_once, one_by_one)
        assert np.signbit(at_once) == np.signbit(one_by_one) or np.isnan(at_once).all()


def float_of(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


@given(finite)
def test_the_lowest_bit_is_that_of_the_fraction(number: float) -> None:
    (found,) = lowest_bit(np.array([number]))
    if not number:
        assert found == NO_BIT
    else:
        exact = Fraction(number) / Fraction(2) ** int(found)
        assert exact.denominator == 1
        assert exact.numerator % 2
