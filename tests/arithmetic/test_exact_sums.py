"""Sums of float64 numbers in pieces of 32 bits: against fractions, over the whole range of exponents."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from opconform.generators.arithmetic.errors import NO_BIT, lowest_bit, precise, rounded, summed, whole_sums, widened

finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def neighbours(draw: st.DrawFn) -> list[list[float]]:
    """Rows of numbers whose exponents lie as near to each other as sums in pieces need."""
    low, count = draw(st.integers(-1074, 900)), draw(st.integers(1, 12))
    number = st.builds(
        lambda whole, up: math.ldexp(whole, min(low + up, 970)), st.integers(-(2**53), 2**53), st.integers(0, 300)
    )
    return draw(st.lists(st.lists(number, min_size=count, max_size=count), min_size=1, max_size=3))


@settings(deadline=None)
@given(neighbours())
def test_sums_are_those_of_fractions(rows: list[list[float]]) -> None:
    found = whole_sums(np.array(rows), (1,))
    assert found is not None
    total, unit = found
    assert total.shape == (len(rows), 1)
    assert [Fraction(int(t)) * Fraction(2) ** unit for t in total[:, 0]] == [sum(map(Fraction, row)) for row in rows]


def test_sums_over_several_axes_keep_them() -> None:
    numbers = np.arange(24.0).reshape(2, 3, 4) - 7.5
    found = whole_sums(numbers, (0, 2))
    assert found is not None
    assert (found[0].astype(np.float64) * 2.0 ** found[1] == numbers.sum(axis=(0, 2), keepdims=True)).all()


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
