"""References hold the exact mean of any bits in any shape, and admit what rounds it as a right implementation may.

The oracle is whole numbers: fakes/exact.py, which uses nothing of the package.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from fakes.exact import (
    DOUBLE,
    DTYPES,
    FORMATS,
    PATTERNS,
    Mean,
    Number,
    Shape,
    broadcast,
    in_units,
    kept,
    means_of,
    means_over,
    reduced,
    tensor,
    value,
)
from fakes.judging import judge_answer, over_axes, together
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.batch import Bounds, Expectation
from opconform.cases.results import Outcome

LIMIT = 240  # elements of an input
each_type = pytest.mark.parametrize("name", FORMATS)


# What is drawn


@st.composite
def shapes(draw: Any) -> Shape:
    """Rank 0 to 5, extents 0 to 5, as many elements as fractions are quick for."""
    shape: list[int] = []
    for _ in range(draw(st.integers(0, 5))):
        shape.append(draw(st.integers(0, min(5, LIMIT // max(1, math.prod(shape))))))
    return tuple(shape)


@st.composite
def tensors(draw: Any, name: str, shape: Shape) -> Any:
    """Elements of any bits: a few patterns, scattered; with them neighbours of each other, or zeros, or specials."""
    bits, dtype = PATTERNS[name], DTYPES[name]
    width = np.dtype(bits).itemsize * 8
    some = draw(st.lists(st.integers(0, (1 << width) - 1), min_size=1, max_size=6))
    if draw(st.booleans()):
        some += [(s + d) % (1 << width) for s in some for d in (1, -1)]
    if draw(st.booleans()):  # of a size, so that sums matter
        some = [s % (1 << width - 6) | some[0] >> width - 6 << width - 6 for s in some]
    if draw(st.booleans()):
        some += np.array([0.0, -0.0, 1.0, np.inf, -np.inf], dtype).view(bits).tolist()[: draw(st.integers(1, 5))]
    chosen = random.Random(draw(st.integers(0, 1 << 32))).choices(some, k=math.prod(shape))
    return np.array(chosen, bits).view(dtype).reshape(shape)


@st.composite
def reductions(draw: Any, name: str) -> tuple[Any, tuple[int, ...], bool]:
    shape = draw(shapes())
    axes = draw(st.sets(st.sampled_from(range(len(shape))))) if shape else set()
    x = draw(tensors(name, shape))
    if 0 in (shape[a] for a in axes) and 0 not in reduced(shape, axes):
        axes = {a for a in axes if shape[a]}  # the mean of nothing has no value
    return x, tuple(sorted(axes)), draw(st.booleans())


@st.composite
def several(draw: Any, name: str) -> list[Any]:
    whole = draw(shapes())
    found = []
    for _ in range(draw(st.integers(1, 6))):
        shape = tuple(1 if draw(st.integers(0, 3)) == 0 else extent for extent in whole)
        found.append(draw(tensors(name, shape[draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0 :])))
    return found


# What must hold of an expectation


def check_values(expectation: Expectation, means: list[Mean], shape: Shape) -> None:
    """Each option's value is the exact one, as far as its carrier goes, and lies between its bounds."""
    for option in expectation.options:
        (bounds,) = option.outputs
        assert bounds.shape == shape
        check_residue(bounds, means)
        if dict(option.labels).get("flush") == "input-and-output":
            continue
        triples = zip(*(a.reshape(-1).tolist() for a in (bounds.lower, bounds.value, bounds.upper)), strict=True)
        for (lower, middle, upper), mean in zip(triples, means, strict=True):
            if not mean.finite:
                assert math.isnan(middle) if math.isnan(mean.special) else middle == mean.special
                continue
            assert in_units(lower) <= in_units(middle) <= in_units(upper) or lower == upper
            check_value(bounds.type, in_units(middle), mean)


def check_value(name: str, got: Number, mean: Mean) -> None:
    nearest = DOUBLE.nearest(mean.exact.numerator, mean.exact.denominator)
    if name == "float64":  # carried in 160 bits
        assert abs(got - nearest) <= Fraction(mean.magnitudes, 1 << 150) + abs(nearest) // (1 << 52)
    elif mean.magnitudes < (min((a & -a for a in mean.addends if a), default=1)) << 53:
        assert got == nearest
    else:  # carried in float64: thirty bits below the bound of a sum in float32
        assert abs(got - nearest) <= Fraction(mean.magnitudes, 1 << 53)


def check_residue(bounds: Bounds, means: list[Mean]) -> None:
    """What a value leaves of the exact mean is what is said of it."""
    if bounds.residue is None:
        return
    columns = (a.reshape(-1).tolist() for a in (bounds.value, bounds.residue.rest, bounds.residue.doubt))
    for middle, rest, doubt, mean in zip(*columns, means, strict=True):
        if not mean.finite:
            continue
        left = mean.exact - in_units(middle) - in_units(rest)
        rounding = Fraction(mean.magnitudes, 1 << 150) + Fraction(abs(in_units(rest)), 1 << 52) + 1
        assert abs(left) <= in_units(doubt) + (rounding if bounds.type == "float64" else 0)


def check_right_answers(expectation: Expectation, means: list[Mean], name: str, shape: Shape) -> None:
    """The correctly rounded answer passes under every accumulator; its neighbours, where nothing makes it exact."""
    right = tensor([m.rounded(name) for m in means], name, shape)
    for accumulator in expectation.silences.get("accumulator", ("own",)):
        verdict = judge_answer(expectation, [right], {"accumulator": accumulator})
        assert verdict.outcome is Outcome.PASS, verdict.detail
    for side in (0, 1):
        beside = [_faithful(m, name, side) for m in means]
        verdict = judge_answer(expectation, [tensor(beside, name, shape)])
        assert verdict.outcome is Outcome.PASS, (side, verdict.detail)


def _faithful(mean: Mean, name: str, side: int) -> Number:
    if not mean.finite:
        return mean.special
    return FORMATS[name].around(mean.exact.numerator, mean.exact.denominator)[side]


def check_wrong_classes(expectation: Expectation, means: list[Mean], name: str, shape: Shape) -> None:
    """No number stands for NaN or an infinity, and none of these for a number whose sum cannot overflow."""
    right = [m.rounded(name) for m in means]
    for place, mean in enumerate(means):
        wrong: list[Number] = []
        if not mean.finite:
            wrong = [0, FORMATS[name].largest, -mean.special if mean.special == mean.special else math.inf]
        elif mean.magnitudes < FORMATS[name].largest // 2:
            wrong = [math.nan, math.inf, -math.inf]
        for number in wrong:
            answer = tensor([*right[:place], number, *right[place + 1 :]], name, shape)
            assert judge_answer(expectation, [answer]).outcome is Outcome.WRONG_VALUE, (place, number)
        if place > 3:
            return


def check_exactness(expectation: Expectation, means: list[Mean], name: str) -> None:
    """One answer alone is admitted only where every order of summation gives it."""
    for option in expectation.options:
        if dict(option.labels).get("accumulator", "narrow") != "narrow" or dict(option.labels).get("flush"):
            continue
        (bounds,) = option.outputs
        for lower, upper, mean in zip(bounds.lower.flat, bounds.upper.flat, means, strict=True):
            if lower == upper and mean.finite:
                assert mean.exact_in_every_order(name), mean


@each_type
@given(choice=st.data())
def test_a_reduction_of_any_bits_holds_the_exact_mean_and_admits_the_right_answers(name, choice):
    x, axes, keepdims = choice.draw(reductions(name))
    (expectation,) = over_axes([x], name, axes, keepdims)
    shape = kept(x.shape, axes) if keepdims else reduced(x.shape, axes)
    means = means_over(x, axes)
    check_values(expectation, means, shape)
    if axes:
        check_right_answers(expectation, means, name, shape)
    else:
        assert judge_answer(expectation, [x]).outcome is Outcome.PASS
    check_wrong_classes(expectation, means, name, shape)
    check_exactness(expectation, means, name)


@each_type
@given(choice=st.data())
def test_a_mean_of_tensors_of_any_bits_holds_the_exact_mean_and_admits_the_right_answers(name, choice):
    xs = choice.draw(several(name))
    expectation = together(xs, name)
    shape, means = broadcast([x.shape for x in xs]), means_of(xs)
    check_values(expectation, means, shape)
    check_right_answers(expectation, means, name, shape)
    check_wrong_classes(expectation, means, name, shape)
    check_exactness(expectation, means, name)


@each_type
def test_a_copy_keeps_the_sign_of_each_zero(name):
    x = tensor([0, 1, 0], name, (3,))
    x[2] = -x[2]
    (expectation,) = over_axes([x], name, (), True)
    assert judge_answer(expectation, [x]).outcome is Outcome.PASS
    for place in (0, 2):
        wrong = x.copy()
        wrong[place] = -wrong[place]
        assert judge_answer(expectation, [wrong]).outcome is Outcome.WRONG_VALUE


@each_type
@pytest.mark.filterwarnings("error")
def test_a_signalling_nan_is_a_nan_and_warns_nobody(name):
    form, bits = FORMATS[name], PATTERNS[name]
    signalling = (2 * form.emax + 1 << form.precision - 1) + 1  # all exponent bits, and the lowest of the significand
    x = np.array([signalling, 1, 0], bits).view(DTYPES[name])
    (expectation,) = over_axes([x], name, (0,), False)
    assert judge_answer(expectation, [tensor([math.nan], name, ())]).outcome is Outcome.PASS
    assert judge_answer(expectation, [x[0:1].reshape(())]).outcome is Outcome.PASS
    assert judge_answer(expectation, [tensor([0], name, ())]).outcome is Outcome.WRONG_VALUE


def test_the_oracle_rounds_as_the_hardware_does():
    draw = random.Random(5)
    for _ in range(3_000):
        double = np.array([draw.getrandbits(64)], np.uint64).view(np.float64)[0]
        if not np.isfinite(double):
            continue
        for name in ("float16", "float32"):
            with np.errstate(all="ignore"):
                assert value(FORMATS[name].nearest(in_units(float(double)))) == float(double.astype(DTYPES[name]))
        below, above = FORMATS["float16"].around(in_units(float(double)))
        assert below <= in_units(float(double)) <= above
