"""Exact sums of float64 numbers: against fractions, over the whole range of exponents."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opconform.generators.primitives.errors import NO_BIT, lowest_bit, precise, rounded, summed, widened

finite = st.floats(allow_nan=False, allow_infinity=False)


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


@given(st.lists(finite, min_size=1, max_size=6))
def test_a_sum_that_is_nothing_is_minus_zero_where_all_addends_are(numbers: list[float]) -> None:
    with precise():
        (found,) = rounded(summed(np.array([numbers, np.zeros_like(numbers)]), (1,)))[:1, 0]
    if sum(map(Fraction, numbers)) == 0:
        assert found == 0
        assert np.signbit(found) == np.signbit(numbers).all()


@given(st.lists(st.floats(), min_size=1, max_size=6))
def test_infinities_and_nan_are_added_up_as_one_by_one(numbers: list[float]) -> None:
    array = np.array([numbers])
    with precise():
        at_once, one_by_one = (rounded(summed(values, (1,))) for values in (array, widened(array)))
    if not np.isfinite(array).all():
        np.testing.assert_array_equal(at_once, one_by_one)


@given(finite)
def test_the_lowest_bit_is_that_of_the_fraction(number: float) -> None:
    (found,) = lowest_bit(np.array([number]))
    if not number:
        assert found == NO_BIT
    else:
        exact = Fraction(number) / Fraction(2) ** int(found)
        assert exact.denominator == 1
        assert exact.numerator % 2
