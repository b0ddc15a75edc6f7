"""Rounding to a format is the correct one, and what a format holds is what it holds."""

import math
import struct
from fractions import Fraction

import gmpy2
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opconform.generators.primitives.conversions import rounded_to
from opconform.generators.primitives.errors import (
    PRECISION,
    format_of,
    holds,
    lowest_bit,
    nearest,
    precise,
    rounded,
    widened,
)

DOUBLES = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
NAMES = ("float16", "bfloat16", "tf32", "float32")


def correctly_rounded(form, value):
    """Round a finite number to nearest even by exact fractions."""
    if value == 0:
        return float(value)
    exact = abs(Fraction(value))
    exponent = max(exact.numerator.bit_length() - exact.denominator.bit_length() - 1, form.emin)
    while Fraction(2) ** (exponent + 1) <= exact:
        exponent += 1
    grid = Fraction(2) ** (exponent - form.precision + 1)
    near = round(exact / grid) * grid
    return math.copysign(math.inf if near > Fraction(form.largest) else float(near), value)


@pytest.mark.parametrize("name", NAMES)
@given(value=DOUBLES)
def test_nearest_is_the_correctly_rounded_number(name, value):
    form = format_of(name)
    got = nearest(form, np.array([value]))[0]
    want = correctly_rounded(form, value) if np.isfinite(value) else value
    np.testing.assert_array_equal(got, want)
    assert np.signbit(got) == np.signbit(want) or np.isnan(want)


@pytest.mark.parametrize("name", [*NAMES, "float8e4m3fn", "float8e5m2", "float8e8m0"])
@given(high=st.floats(allow_nan=False, allow_infinity=False), low=st.floats(-1, 1), whole=st.integers())
def test_wide_and_whole_numbers_are_rounded_once(name, high, low, whole):
    form = format_of(name)
    with precise():
        wide = gmpy2.mpfr(high) + gmpy2.mpfr(low) * abs(high) / 2**60
        found = rounded_to(form, np.array([wide, whole], object))
    for got, value in zip(found, (Fraction(*map(int, wide.as_integer_ratio())), Fraction(whole)), strict=True):
        want = correctly_rounded(form, value)
        if math.isfinite(want) and (form.signed or (value > 0 and form.tiny < want)):
            assert got == want


@given(st.lists(st.floats(), max_size=4))
def test_widened_numbers_are_the_same(numbers):
    floats = np.array(numbers, float)
    with precise():
        wide = widened(floats)
    assert all(one.precision == PRECISION or not gmpy2.is_finite(one) for one in wide)
    np.testing.assert_array_equal(rounded(wide), floats)
    assert (np.signbit(rounded(wide)) == np.signbit(floats))[~np.isnan(floats)].all()


@pytest.mark.parametrize(("name", "dtype"), [("float16", np.float16), ("float32", np.float32)])
@given(value=DOUBLES)
def test_nearest_agrees_with_the_hardware(name, dtype, value):
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(nearest(format_of(name), np.array([value])), np.array([value]).astype(dtype))


@given(value=st.integers(0, 2**16 - 1))
def test_all_bfloat16_numbers_are_held(value):
    number = np.array([value], np.uint16).view(ml_dtypes.bfloat16).astype(np.float64)
    assert holds(format_of("bfloat16"), number).all()


@pytest.mark.parametrize("name", NAMES)
@given(value=DOUBLES)
def test_a_format_holds_what_rounding_leaves_alone(name, value):
    form = format_of(name)
    same = nearest(form, np.array([value]))[0] == value or np.isnan(value)
    assert holds(form, np.array([value]))[0] == same


@given(significand=st.integers(0, 2**53 - 1), exponent=st.integers(-1074, 900))
def test_the_lowest_bit_is_that_of_the_fraction(significand, exponent):
    value = float(np.ldexp(float(significand), exponent))
    if value == 0:
        assert lowest_bit(np.array([value]))[0] > 1023
        return
    lowest = int(lowest_bit(np.array([value]))[0])
    multiple = Fraction(value) / Fraction(2) ** lowest
    assert multiple.denominator == 1
    assert multiple.numerator % 2 == 1
