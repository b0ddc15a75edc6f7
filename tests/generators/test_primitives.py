"""Primitives beside sums: the right float32 answer lies within the error, and one that is far off does not."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opconform.generators.arithmetic.bounded import Arithmetic
from opconform.generators.arithmetic.rounding import formats

SINGLE = formats()["float32"]
ARITHMETIC = Arithmetic(SINGLE, SINGLE, SINGLE)
NUMBERS = st.floats(2.0**-20, 2.0**20, width=32) | st.floats(-(2.0**20), -(2.0**-20), width=32)
POSITIVE = st.floats(2.0**-20, 60, width=32)


def lifted(*values):
    return [ARITHMETIC.lift(np.array([[value]], np.float32)) for value in values]


def contains(result, answer):
    return abs(float(answer) - float(result.value[0, 0])) <= float(result.error[0, 0])


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul, operator.truediv])
@settings(deadline=None)
@given(x=NUMBERS, y=NUMBERS)
def test_the_rounded_result_is_within_and_a_distant_one_is_not(operation, x, y):
    result = operation(*lifted(x, y))
    answer = operation(np.float32(x), np.float32(y))
    assert contains(result, answer)
    assert not contains(result, float(answer) + 64 * SINGLE.roundoff * max(abs(x), abs(y), abs(float(answer))))


@pytest.mark.parametrize("name", ["exp", "log", "sqrt"])
@settings(deadline=None)
@given(x=POSITIVE)
def test_functions_keep_their_budget(name, x):
    (value,) = lifted(x)
    result = getattr(value, name)()
    exact = float(getattr(np, name)(np.float64(np.float32(x))))
    assert contains(result, np.float32(exact))
    assert exact == 0 or not contains(result, exact * (1 + 16 * SINGLE.roundoff))


@settings(deadline=None)
@given(x=POSITIVE, y=POSITIVE)
def test_errors_are_carried_through_a_formula(x, y):
    a, b = lifted(x, y)
    result = ((a * b + a).sqrt() / b) - a
    f, g = np.float32(x), np.float32(y)
    assert contains(result, np.float32(np.sqrt(f * g + f) / g) - f)
