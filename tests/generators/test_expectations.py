"""Expectations admit every right implementation, hold the exact result, and are as narrow as the rule says."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from fakes.judging import judge_answer, over_axes
from fakes.judging import of_one as expected
from fakes.recorded import BFLOAT16, means, running_means
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opconform.cases.elements import DeclaredType, element_type
from opconform.cases.results import Outcome
from opconform.generators.arithmetic.options import bounds_of
from opconform.generators.primitives.errors import Error, Known, precise, strict, widened

WIDTHS = {"float16": np.uint16, "bfloat16": np.uint16, "float32": np.uint32, "float64": np.uint64}
ROUNDINGS = ("truncate", "floor", "nearest-even", "nearest-away")


def vectors(name):
    """Every bit pattern of a type, NaN, infinities and subnormals among them."""
    bits = WIDTHS[name]
    return hnp.arrays(bits, st.integers(1, 12)).map(lambda a: a.view(element_type(name).dtype))


ARITHMETICS = [
    ("float32", np.float32),
    ("float64", np.float64),
    ("float16", np.float32),
    ("float16", np.float16),
    ("bfloat16", np.float32),
    ("bfloat16", BFLOAT16),
]


@pytest.mark.parametrize(("name", "accumulator"), ARITHMETICS)
@given(choice=st.data())
def test_every_order_of_summation_on_any_bits_is_admitted(name, accumulator, choice):
    x = choice.draw(vectors(name))
    expectation = expected(x, name)
    for answer in means(x, accumulator, element_type(name).dtype):
        verdict = judge_answer(expectation, [np.asarray(answer)])
        assert verdict.outcome is Outcome.PASS, (answer, verdict.detail)


@pytest.mark.parametrize(("name", "accumulator"), ARITHMETICS)
@given(choice=st.data())
def test_every_order_of_summation_on_close_numbers_is_admitted(name, accumulator, choice):
    dtype = element_type(name).dtype
    x = np.array(choice.draw(st.lists(st.floats(-2, 2), min_size=2, max_size=40))).astype(dtype)
    expectation = expected(x, name)
    for answer in means(x, accumulator, dtype):
        assert judge_answer(expectation, [np.asarray(answer)]).outcome is Outcome.PASS


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@given(choice=st.data())
def test_the_exact_fraction_lies_within_every_option(name, choice):
    dtype = element_type(name).dtype
    x = np.array(choice.draw(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20))).astype(dtype)
    exact = sum(map(Fraction, x.astype(np.float64).tolist())) / len(x)
    for option in expected(x, name).options:
        bounds = option.outputs[0]
        slack = Fraction(2) ** -50 * abs(exact) + Fraction(2) ** -1074
        if dict(option.labels).get("flush", "none") != "input-and-output":
            assert (
                Fraction(bounds.lower.item()) - slack <= _nearest(name, exact) <= Fraction(bounds.upper.item()) + slack
            )


def _nearest(name, exact):
    with np.errstate(all="ignore"):
        return Fraction(np.asarray(float(exact)).astype(element_type(name).dtype).astype(np.float64).item())


@given(x=st.lists(st.integers(-2000, 2000), min_size=3, max_size=13), scale=st.integers(-149, 100))
def test_dividing_before_adding_up_is_admitted_where_the_sum_cancels(x, scale):
    x = np.ldexp(np.array(x, np.float64), scale).astype(np.float32)
    expectation = expected(x, "float32")
    for answer in means(x, np.float32, np.float32):
        assert judge_answer(expectation, [np.asarray(answer)]).outcome is Outcome.PASS


@given(x=hnp.arrays(np.int16, st.integers(1, 16)), shift=st.integers(0, 6))
def test_a_lattice_admits_one_answer_alone_where_it_is_added_up(x, shift):
    x = np.resize(x, 1 << max(len(x) - 1, 1).bit_length()).astype(np.float32) / np.float32(1 << shift)
    sums, *running = expected(x, "float32").options
    (bounds,) = sums.outputs
    exact = Fraction(int((x * (1 << shift)).sum()), len(x) << shift)
    assert bounds.lower == bounds.upper
    assert Fraction(bounds.value.item()) == exact
    assert [o.labels for o in (sums, *running)] in (
        [()],
        [(("summation", "sums"),), (("summation", "running-means"),)],
    )
    assert bool(running) == (len(x) > 2 and bool(np.ptp(x)))


@given(
    x=st.lists(st.integers(-2000, 2000), min_size=2, max_size=40),
    scale=st.integers(-140, 100),
    name=st.sampled_from(["float32", "float64", "float16", "bfloat16"]),
)
def test_running_means_in_any_order_are_admitted_on_exact_sums(x, scale, name):
    element = element_type(name)
    form = element.float_format
    x = np.ldexp(np.array(x, np.float64), max(scale, form.emin - form.precision + 1) if form.emin > -126 else scale)
    x = np.clip(x, -form.largest / 128, form.largest / 128).astype(element.dtype)
    expectation = expected(x, name)
    for answer in running_means(x, np.float64 if name == "float64" else np.float32, element.dtype):
        verdict = judge_answer(expectation, [np.asarray(answer)])
        assert verdict.outcome is Outcome.PASS, (answer, verdict.detail)


def test_a_running_mean_shows_and_may_be_refused():
    x = np.array([3, 1, 5, 2], np.float32)
    judged = partial(judge_answer, expected(x, "float32"))
    drifted = [np.nextafter(np.float32(2.75), np.float32(3))]
    assert judged([np.float32(2.75)]).behaviour == {"summation": ["sums", "running-means"]}
    assert judged(drifted).behaviour == {"summation": ["running-means"]}
    assert judged(drifted, {"summation": "sums"}).outcome is Outcome.WRONG_VALUE
    for wrong in (2.0, 11 / 5, 11 / 3, 2.75 * (1 + 2**-20)):
        assert judged([np.float32(wrong)]).outcome is Outcome.WRONG_VALUE


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_a_running_mean_is_no_excuse_beside_an_element_that_is_no_number(special):
    inexact = np.array([0.1, 0.7, 0.3, 0.9, 0.2], np.float32)
    (alone,) = over_axes([inexact[np.newaxis]], "float32", (1,), False)
    assert {label for option in alone.options for label in option.labels} == set()
    beside = np.stack([inexact, np.array([special, 1, 2, 3, 4], np.float32)])
    (found,) = over_axes([beside], "float32", (1,), False)
    assert "summation" not in dict(label for option in found.options for label in option.labels)


def test_a_running_mean_widens_means_of_exact_sums_alone():
    exact, inexact = np.arange(5, dtype=np.float32), np.array([0.1, 0.7, 0.3, 0.9, 0.2], np.float32)
    (alone,) = over_axes([inexact[np.newaxis]], "float32", (1,), False)
    (found,) = over_axes([np.stack([exact, inexact])], "float32", (1,), False)
    sums, running = (dict(option.labels)["summation"] for option in found.options)
    assert (sums, running) == ("sums", "running-means")
    of_sums, of_running = (option.outputs[0].upper.reshape(-1) for option in found.options)
    assert of_running[0] > of_sums[0]
    assert of_sums[1] == alone.options[0].outputs[0].upper.item()
    assert of_running[1] - 0.44 < (of_sums[1] - 0.44) * 1.00001


@given(st.lists(st.floats(1.0, 2.0), min_size=3, max_size=3), st.floats(2.0**-60, 2.0**-40))
def test_the_ends_of_float64_intervals_lie_within_the_bound(numbers, error):
    exact = sum(map(Fraction, numbers)) / 3
    with precise():
        known = Known(widened(np.array([numbers])).sum(axis=1) / 3)
        bounds = bounds_of(known, Error(np.array([error])), "float64", strict(frozenset({"float64"}), frozenset())[0])
    (lower,), (upper,) = bounds.lower.tolist(), bounds.upper.tolist()
    slack = Fraction(1, 2**150)
    assert exact - Fraction(error) - slack <= Fraction(lower)
    assert Fraction(np.nextafter(lower, 0.0)) < exact - Fraction(error) + slack
    assert Fraction(upper) <= exact + Fraction(error) + slack
    assert Fraction(np.nextafter(upper, 9.0)) > exact + Fraction(error) - slack


def test_no_running_mean_is_kept_in_16_bits():
    x = np.arange(300).astype(BFLOAT16) % BFLOAT16.type(7)
    for option in expected(x, "bfloat16").options:
        labels = dict(option.labels)
        assert labels["summation"] == "sums" or labels["accumulator"] == "wide"


@pytest.mark.parametrize("name", ["int32", "int64", "uint32", "uint64"])
@given(choice=st.data())
def test_integers_round_as_exact_fractions_do(name, choice):
    element = element_type(name)
    values = st.integers(element.smallest // 20, element.largest // 20)
    x = np.array(choice.draw(st.lists(values, min_size=1, max_size=20)), element.dtype)
    expectation = expected(x, name, silences={"integer-rounding": ROUNDINGS})
    exact = Fraction(sum(map(int, x)), len(x))
    away = int(abs(exact) + Fraction(1, 2)) * (1 if exact >= 0 else -1)
    want = {"truncate": int(exact), "floor": exact.__floor__(), "nearest-even": round(exact), "nearest-away": away}
    if exact.denominator == 1:
        assert [o.labels for o in expectation.options] == [()]
    for option in expectation.options:
        rounding = dict(option.labels).get("integer-rounding", "floor")
        assert int(option.outputs[0].value[0]) == want[rounding]


def test_a_sum_that_does_not_fit_has_three_answers():
    x = np.full(4, 2**31 - 1, np.int32)
    rules = {"integer-overflow": ("exact", "wraps", "saturates"), "integer-rounding": ("truncate",)}
    options = {o.labels[0][1]: int(o.outputs[0].value[0]) for o in expected(x, "int32", silences=rules).options}
    assert options == {"exact": 2147483647, "wraps": -1, "saturates": 536870911}


def test_float16_ones_show_the_accumulator():
    x = np.ones(70_000, np.float16)
    judged = partial(judge_answer, expected(x, "float16"))
    wide = judged([np.float16(1)])
    narrow = judged([np.float16(np.inf)])
    assert (wide.outcome, narrow.outcome) == (Outcome.PASS, Outcome.PASS)
    assert "wide" in wide.behaviour["accumulator"]
    assert "wide" not in narrow.behaviour["accumulator"]
    assert narrow.behaviour["overflow"] == ["infinite"]
    assert judged([np.float16(np.inf)], {"accumulator": "wide"}).outcome is Outcome.WRONG_VALUE
    assert judged([np.float16(-np.inf)]).outcome is Outcome.WRONG_VALUE


def test_a_float32_sum_that_overflows_is_a_silence_and_a_nan_is_not():
    x = np.full(4, 2e38, np.float32)
    judged = partial(judge_answer, expected(x, "float32"))
    assert judged([np.float32(2e38)]).behaviour == {"overflow": ["avoided"]}
    assert judged([np.float32(np.inf)]).behaviour == {"overflow": ["infinite"]}
    assert judged([np.float32(np.nan)]).outcome is Outcome.WRONG_VALUE


def test_a_float64_sum_that_overflows_leaves_the_bound_as_narrow_as_elsewhere():
    x = np.array([1.5e308, 1.25e308, 1.75e308, 1.125e308])
    judged = partial(judge_answer, expected(x, "float64"))
    mean = float(sum(map(Fraction, x)) / 4)
    assert judged([np.float64(mean)]).behaviour == {"overflow": ["avoided"]}
    assert judged([(x / 4).sum()]).behaviour == {"overflow": ["avoided"]}
    assert judged([np.float64(np.inf)]).behaviour == {"overflow": ["infinite"]}
    assert judged([np.float64(mean * (1 + 2**-48))]).outcome is Outcome.WRONG_VALUE


def test_subnormal_inputs_may_be_flushed_and_that_shows():
    x = np.full(4, 2.0**-140, np.float32)
    judged = partial(judge_answer, expected(x, "float32"))
    assert "none" in judged([np.float32(2.0**-140)]).behaviour["flush"]
    assert judged([np.float32(0)]).behaviour["flush"] == ["output", "input-and-output"]
    assert judged([np.float32(2.0**-130)]).outcome is Outcome.WRONG_VALUE


def test_the_mean_of_minus_zeros_may_lose_its_sign_but_a_copy_may_not():
    x = np.full((1, 2), -0.0, np.float32)
    summed = expected(x[0], "float32")
    assert judge_answer(summed, [np.float32(0.0)]).behaviour == {"zero-sign": ["lost"]}
    assert judge_answer(summed, [np.float32(-0.0)]).behaviour == {"zero-sign": ["kept"]}
    (copied,) = over_axes(x, "float32", (), True)
    assert judge_answer(copied, [x[0]]).outcome is Outcome.PASS
    assert judge_answer(copied, [-x[0]]).outcome is Outcome.WRONG_VALUE
    (alone,) = over_axes(np.full((1,), -0.0, np.float32), "float32", (), True)  # of rank 0: added to zero, perhaps
    assert judge_answer(alone, [np.float32(0.0)]).behaviour == {"zero-sign": ["lost"]}
    assert judge_answer(alone, [np.float32(-0.0)]).behaviour == {"zero-sign": ["kept"]}


def flushed(number, tiny):
    return type(number)(0) if abs(number) < tiny else number


@given(
    units=st.lists(st.integers(-64, 64), min_size=2, max_size=9),
    name=st.sampled_from(["float32", "float64"]),
    pairwise=st.booleans(),
    inputs=st.booleans(),
)
def test_partial_sums_below_the_normal_range_may_be_flushed(units, name, pairwise, inputs):
    dtype = np.dtype(name)
    tiny = np.finfo(dtype).tiny
    x = np.ldexp(np.array(units, dtype), int(np.log2(tiny)) - 4)
    sums = [flushed(number, tiny) for number in x] if inputs else list(x)
    while len(sums) > 1:
        first = flushed(sums[0] + sums[1], tiny)
        sums = [*sums[2:], first] if pairwise else [first, *sums[2:]]
    answer = flushed(dtype.type(sums[0] / dtype.type(len(units))), tiny)
    verdict = judge_answer(expected(x, name), [answer])
    assert verdict.outcome is Outcome.PASS, (x, answer, verdict.detail)


def test_flushed_partial_sums_show_and_may_be_refused():
    tiny = float(np.finfo(np.float32).tiny)
    x = np.array([-1.0, 1.25, 16.0, -1.5], np.float32) * np.float32(tiny)
    judged = partial(judge_answer, expected(x, "float32"))
    lost = [np.float32(14.5 / 4 * tiny)]  # -1 and 1.25 cancel first, and what is left is flushed
    assert "none" not in judged(lost).behaviour["flush"]
    assert judged(lost, {"flush": "none"}).outcome is Outcome.WRONG_VALUE
    assert judged([np.float32(14.75 / 4 * tiny)]).behaviour["flush"] == ["none", "output", "input-and-output"]
    for wrong in (0.0, 16 / 2 * tiny, 14.75 * tiny, -14.75 / 4 * tiny):
        assert judged([np.float32(wrong)]).outcome is Outcome.WRONG_VALUE
    of_one_sign = expected(np.full(4, 1.5 * tiny, np.float32), "float32")
    assert "flush" not in dict(label for option in of_one_sign.options for label in option.labels)


def test_declared_flushing_inside_admits_what_no_silence_does():
    x = np.full(4, 1.5 * 2.0**-126, np.float32)  # dividing first makes every share subnormal
    flushing = DeclaredType(flush=frozenset({"input", "output"}))
    zero = [np.float32(0)]
    assert judge_answer(expected(x, "float32"), zero).outcome is Outcome.WRONG_VALUE
    verdict = judge_answer(expected(x, "float32", declared=flushing), zero)
    assert (verdict.outcome, verdict.level) == (Outcome.PASS, "declared")
    exact = judge_answer(expected(x, "float32", declared=flushing), [np.float32(1.5 * 2.0**-126)])
    assert (exact.outcome, exact.level) == (Outcome.PASS, "strict")


def test_float64_declared_as_float32_passes_as_declared_alone():
    x = np.array([0.1, 0.2, 0.4])
    answer = [np.float64(np.float32(0.7 / 3))]
    assert judge_answer(expected(x, "float64"), answer).outcome is Outcome.WRONG_VALUE
    verdict = judge_answer(expected(x, "float64", declared=DeclaredType(compute="float32")), answer)
    assert (verdict.outcome, verdict.level) == (Outcome.PASS, "declared")


def test_integers_declared_narrower_wrap_around():
    x = np.array([2**40 + 5, 2**33 - 11, 7], np.int64)
    assert judge_answer(expected(x, "int64"), [np.int64(0)]).outcome is Outcome.WRONG_VALUE
    verdict = judge_answer(expected(x, "int64", declared=DeclaredType(compute="int32")), [np.int64(0)])
    assert (verdict.outcome, verdict.level) == (Outcome.PASS, "declared")


def test_the_spread_does_not_hold_for_declared_arithmetic():
    x = np.random.Generator(np.random.Philox(2)).uniform(-1, 1, (2048, 64)).astype(np.float16)
    flushing = DeclaredType(flush=frozenset({"input", "output"}))
    expectation = expected(x, "float16", random=True, declared=flushing)
    declared = [o for o in expectation.options if o.level == "declared"]
    assert declared
    assert all(bounds.spread is None for option in declared for bounds in option.outputs)
    assert any(bounds.spread for option in expectation.options for bounds in option.outputs)


def test_where_a_bound_says_nothing_the_spread_of_errors_does():
    """Tier T2: a narrow float16 mean over 2,048 random numbers, and the mean over the wrong axis."""
    x = np.random.Generator(np.random.Philox(1)).uniform(-1, 1, (2048, 64)).astype(np.float16)
    expectation = expected(x, "float16", random=True)
    total = np.zeros(64, np.float16)
    for row in x:
        total = total + row
    assert judge_answer(expectation, [total / np.float16(2048)]).outcome is Outcome.PASS
    wrong = x.reshape(64, 2048).astype(np.float64).mean(axis=1).astype(np.float16)
    assert judge_answer(expectation, [wrong]).outcome is Outcome.WRONG_VALUE


@given(
    x=hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=4, max_side=4), elements=st.floats(-1e6, 1e6)),
    choice=st.data(),
)
def test_lanes_do_not_mix_and_axes_are_those_of_a_lane(x, choice):
    axes = tuple(sorted(choice.draw(st.sets(st.integers(0, x.ndim - 1)))))
    keepdims = choice.draw(st.booleans())
    lanes = np.stack([x, 2 * x, -x]).astype(np.float32)
    found = over_axes(lanes, "float32", axes, keepdims)
    for lane, expectation in zip(lanes, found, strict=True):
        bounds = expectation.options[0].outputs[0]
        exact = lane.astype(np.float64).mean(axis=axes, keepdims=keepdims)
        assert bounds.shape == exact.shape
        np.testing.assert_allclose(bounds.value[0], exact, rtol=1e-12, atol=1e-9)
