"""What is exact costs nothing; errors are charged where they arise; infinities and zeros do not confuse the bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fakes.recorded import admits, bare, recorded
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.batch import Bounds, Flag
from opconform.cases.elements import Array, DeclaredType
from opconform.generators.arithmetic.formula import Rules

U = 2.0**-24


def bounds(reference: Any, *arrays: Array, type_: str = "float32", option: int = 0, **more: Any) -> Bounds:
    """The bounds of one output by one option; a lane axis of 1 is added to the arrays and removed from the bounds."""
    laned = [a[np.newaxis] for a in arrays]
    found = recorded(lambda c, *xs: reference(*xs), laned, [type_], **more).expectation(laned)
    return bare(found.case(0).options[option].outputs[0])


def width(b: Bounds) -> Array:
    return np.asarray(b.upper - b.lower)


def floats(*numbers: float) -> Array:
    return np.array(numbers, np.float32)


def every(reference: Any, *arrays: Array, type_: str = "float32") -> list[Bounds]:
    laned = [a[np.newaxis] for a in arrays]
    found = recorded(lambda c, *xs: reference(*xs), laned, [type_]).expectation(laned)
    return [bare(option.outputs[0]) for option in found.case(0).options]


@pytest.mark.parametrize(
    ("reference", "numbers", "result"),
    [
        (lambda x: x / 3.0, [6, -9, 0], [2, -3, 0]),
        (lambda x: 6.0 / x, [3, 2, -1.5], [2, 3, -4]),
        (lambda x: x / 8.0, [1, 3, 5], [0.125, 0.375, 0.625]),
        (lambda x: x.sqrt(), [4, 9, 0.25], [2, 3, 0.5]),
        (lambda x: x.exp(), [0], [1]),
        (lambda x: x.log(), [1], [0]),
        (lambda x: x.reciprocal(), [4, -0.5], [0.25, -2]),
        (lambda x: x * 3.0 + 1.0, [1, 2, 3], [4, 7, 10]),
        (lambda x: (x - 0.5) * (x + 0.5), [1.5, 2], [2, 3.75]),
        (lambda x: x.sum((0,)), [1, 2, 3], [6]),
        (lambda x: x.matmul(x.reshape(3, 1)), [[1, 2, 3]], [14]),
    ],
)
def test_exact_results_of_exact_operands_cost_nothing(
    reference: Any, numbers: list[float], result: list[float]
) -> None:
    x = floats(*numbers).reshape(1, -1) if len(result) == 1 and len(numbers) == 3 else floats(*numbers)
    if x.ndim == 2 and reference.__code__.co_names == ("sum",):
        x = x.reshape(-1)
    found = bounds(reference, x)
    assert found.value.reshape(-1).tolist() == result
    assert not width(found).any()


def test_inexact_quotients_are_charged_two_roundings() -> None:
    found = bounds(lambda x: x / 3.0, floats(1, 10))
    assert np.allclose(width(found) / 2 / found.value, 2 * U, rtol=1e-4)


def test_a_sum_is_charged_on_its_result() -> None:
    found = bounds(lambda x, y: x * 1.1 - y, floats(1.0), floats(1.0999999))
    size = abs(found.value[0])
    assert size < 1e-6
    assert width(found)[0] / 2 < 3 * U * 1.1  # the product's rounding, and hardly anything of the difference


def test_a_rest_that_float64_lost_is_charged() -> None:
    found = bounds(lambda x, y: x + y, floats(1.0), floats(2.0**-60))
    assert width(found)[0] > 0


def test_operands_of_other_ranks_meet_lane_by_lane() -> None:
    x, y = np.arange(1, 13, dtype=np.float32).reshape(2, 2, 3), np.array([[1, 2, 4], [2, 4, 8]], np.float32)
    for operation in ("__truediv__", "__mul__", "__add__", "__sub__"):
        recording = recorded(lambda c, a, b: getattr(a, operation)(b), [x, y], ["float32"])  # noqa: B023
        value = recording.expectation([x, y]).options[0].outputs[0].value
        expected = [getattr(a.astype(np.float64), operation)(b.astype(np.float64)) for a, b in zip(x, y, strict=True)]
        np.testing.assert_allclose(value, expected, rtol=1e-15)


def test_inputs_that_the_declared_format_does_not_hold_are_charged_when_they_are_read() -> None:
    x = floats(1 + 2.0**-20, 1.5)[np.newaxis]
    recording = recorded(lambda c, a: a * 1.0, [x], ["float32"])
    declared = recording.expectation([x], Rules(declared={"float32": DeclaredType(compute="tf32")}))
    found = next(o.outputs[0] for o in declared.options if o.level == "declared")
    assert width(found)[0, 0] > 2.0**-12
    assert width(found)[0, 1] == 0


def test_zero_times_a_number_of_any_error_is_zero() -> None:
    def reference(x: Any, y: Any) -> Any:
        return (1.0 / (x * 1.1 - 1.0999999)).abs() * y

    found = bounds(reference, floats(1.0, 3.0), floats(0.0, 0.0))
    assert found.lower.tolist() == found.upper.tolist() == [0, 0]
    assert admits(found, floats(0.0, 0.0)).all()


def test_what_a_divisor_of_no_certain_sign_leads_to_is_free() -> None:
    found = bounds(lambda x: 1.0 / (x * 1.1 - 1.1), floats(1.0))
    assert admits(found, floats(5e6)).all()
    assert bounds(lambda x: (1.0 / (x * 1.1 - 1.1)) < 0.0, floats(1.0), type_="bool").flags is not None


def test_exponentials_that_overflow_are_no_exact_infinities() -> None:
    x = np.array([1000.0])
    quotients = every(lambda a: (a * 1.0).exp() / (a * 0.5).exp(), x, type_="float64")
    assert [admits(one, np.array([np.inf])).all() for one in quotients] == [False, True]
    assert all(admits(one, np.array([math.exp(500)])).all() for one in quotients)
    zero = every(lambda a, b: a.exp() * b, x, np.array([0.0]), type_="float64")
    assert any(admits(b, np.array([np.nan])).all() for b in zero)
    near = every(lambda a: (a * a).exp(), np.array([26.641]), type_="float64")  # its square is close to the limit
    assert any(admits(b, np.array([math.exp(26.641**2)])).all() for b in near)
    beyond = every(lambda a: (a / 3.0 * 3.0).exp(), np.array([709.7827128933840]), type_="float64")
    assert any(admits(b, np.array([np.inf])).all() for b in beyond)
    assert any(admits(b, np.array([1.797693134862e308])).all() for b in beyond)


def test_exponentials_of_sums_in_narrow_formats_overflow_where_wide_ones_do_not() -> None:
    x = np.full(4, 12.0, np.float16)
    found = every(lambda a: a.exp() / a.exp().sum(0), x, type_="float16")
    assert any(admits(b, np.zeros(4, np.float16)).all() for b in found)
    assert any(admits(b, np.full(4, 0.25, np.float16)).all() for b in found)


def test_saturating_functions_do_not_leave_their_range() -> None:
    x, huge = floats(0.5, 20.0, -30.0), floats(1e30, 1e38, 3e38)
    for name, low, high in (("tanh", -1, 1), ("erf", -1, 1), ("sigmoid", 0, 1)):
        found = bounds(lambda a, b: getattr((a * b) * 1e-37, name)(), x, huge)  # noqa: B023
        assert (found.lower >= low - 33 * U).all()
        assert (found.upper <= high + 33 * U).all()


def test_infinite_operands_have_limits() -> None:
    x = floats(np.inf, -np.inf)
    assert bounds(lambda a: a.tanh(), x).value.tolist() == [1, -1]
    assert bounds(lambda a: a.exp(), x).value.tolist() == [np.inf, 0]
    assert bounds(lambda a: 1.0 / a, x).value.tolist() == [0, 0]
    assert bounds(lambda a: a.sqrt(), floats(np.inf)).value.tolist() == [np.inf]
    assert np.isnan(bounds(lambda a: a - a, x).value).all()


def test_sums_that_overflow_on_the_way_may_be_infinite_and_stay_so_when_divided() -> None:
    largest = float(np.finfo(np.float32).max)
    found = every(lambda a: a.sum(0) * 0.5, floats(largest, largest))
    assert any(admits(b, floats(np.inf)[0]).all() for b in found)
    mean = every(lambda a: a.mean(0), floats(largest, largest, -largest, -largest))
    assert [bool(b.flags is not None and (b.flags & Flag.NAN).any()) for b in mean] == [False, True]


def test_whole_sums_that_do_not_fit_are_free_unless_a_silence_says_more() -> None:
    x = np.array([[2**31 - 1, 5]], np.int32)
    recording = recorded(lambda c, a: a.sum(0), [x], ["int32"])
    found = recording.expectation([x]).case(0)
    assert found.options[0].outputs[0].flags is not None
    recording = recorded(lambda c, a: a.sum(0), [x], ["int32"], {"integer-overflow": ("exact", "wraps", "saturates")})
    values = [bare(option.outputs[0]).value.tolist() for option in recording.expectation([x]).case(0).options]
    assert values[1:] == [[-(2**31) + 4], [2**31 - 1]]


def test_mixed_types_are_charged_in_their_own_formats() -> None:
    x = np.array([1.1], ml_dtypes.bfloat16)

    def reference(a: Any) -> Any:
        return (a.cast("float32") / 3.0).cast("bfloat16")

    found = bounds(reference, x, type_="bfloat16")
    assert width(found)[0] <= 2.0**-8  # one rounding to bfloat16: float32 inside, whatever the accumulator


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=9), st.integers(0, 2**32 - 1))
def test_bounds_of_a_lane_are_the_same_alone_and_among_others(numbers: list[float], seed: int) -> None:
    def reference(c: Any, a: Any) -> Any:
        e = (a - a.max(0)).exp()
        return e / e.sum(0)

    rng = np.random.default_rng(seed)
    alone = np.array([numbers], np.float32)
    several = np.concatenate([rng.uniform(-9, 9, (3, len(numbers))).astype(np.float32), alone])
    recording = recorded(reference, [alone], ["float32"])
    one = recording.expectation([alone]).digests[0]
    assert recording.expectation([several]).digests[3] == one


def test_results_and_partial_sums_inside_a_formula_may_be_flushed() -> None:
    tiny = float(np.finfo(np.float32).tiny)
    x = floats(1.5 * tiny, -1.25 * tiny, 1.0)

    def labelled(reference: Any) -> dict[str, Bounds]:
        expectation = recorded(lambda c, a: reference(a), [x[np.newaxis]], ["float32"]).expectation([x[np.newaxis]])
        return {dict(o.labels).get("flush", "none"): o.outputs[0] for o in expectation.case(0).options}

    inside = labelled(lambda a: (a[:1] + a[1:2]) * 2.0**100)  # the sum is a quarter of the smallest normal number
    assert not admits(inside["none"], floats(0.0)).any()
    assert admits(inside["output"], floats(0.0)).all()
    partial = labelled(lambda a: a.sum(0))
    assert admits(partial["none"], floats(1.0)).all()
    assert admits(labelled(lambda a: a[:2].sum(0) * 2.0**100)["output"], floats(0.0)).all()
    assert set(labelled(lambda a: a[2:] * 3.0)) == {"none"}


def test_what_surely_overflows_is_infinite_and_no_silence() -> None:
    x = floats(3e38, -3e38, 1.0)[np.newaxis]
    expectation = recorded(lambda c, a: a * 2.0, [x], ["float32"]).expectation([x])
    assert len(expectation.options) == 1
    assert expectation.options[0].outputs[0].lower.tolist() == [[np.inf, -np.inf, 2.0]]


@given(st.lists(st.floats(2.0**-30, 2.0**30, width=32), min_size=3, max_size=3), st.integers(3, 24))
def test_the_doubt_covers_what_float64_loses_and_is_nothing_where_it_loses_nothing(
    numbers: list[float], count: int
) -> None:
    a, b, c = map(Fraction, numbers)
    for reference, exact in (
        (lambda x: x[:1] * x[1:2] * x[2:], a * b * c),
        (lambda x: x.mean((0,)) * float(count), (a + b + c) / 3 * count),
        (lambda x: (x[:1] * x[1:2] + x[2:]) / float(count), (a * b + c) / count),
    ):
        found = bounds(reference, floats(*numbers))
        assert found.residue is not None
        value, doubt = Fraction(found.value.item()), Fraction(found.residue.doubt.item())
        assert abs(exact - value) <= doubt <= 16 * (a * b * c + a * b + a + b + c) * count / 2**53
    short = bounds(lambda x: x[:1] * x[1:2] * x[2:], floats(1.5, 2.5, 1 + 2**-23)).residue
    assert short is not None
    assert not short.doubt.any()
