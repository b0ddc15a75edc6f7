"""What a wrong value is told as: which elements, what was wanted there, how many, and how far off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fakes.judging import judge_answer, single
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.batch import Bounds, Flag, Option


def bounds(value: object, margin: object = 0.0, type_: str = "float32", flags: object = None) -> Bounds:
    exact = np.asarray(value, np.float64 if "float" in type_ else type_)
    away = np.asarray(margin, exact.dtype)
    marks = None if flags is None else np.asarray(flags, np.uint8)
    return Bounds(type_, exact, exact - away, exact + away, marks)


def told(outputs: Sequence[object], *wanted: Bounds) -> list[str]:
    """The lines that tell what is wrong with an answer."""
    expectation = single(Option((), wanted), types=[one.type for one in wanted])
    arrays = [np.asarray(got, one.type) for got, one in zip(outputs, wanted, strict=True)]
    detail = judge_answer(expectation, arrays).detail
    assert detail is not None
    return detail.splitlines()


def test_the_first_mismatches_are_told_each_with_its_bound_and_how_far_off_the_worst_is() -> None:
    got = [[1.0, 2.5, 3.0], [4.25, 5.0, 6.0]]
    assert told([got], bounds([[1, 2, 3], [4, 5, 7]], 0.125)) == [
        "element [0, 1]: got 2.5, want 2.0 within [1.875, 2.125] (3 of 6 wrong)",
        "element [1, 0]: got 4.25, want 4.0 within [3.875, 4.125]",
        "element [1, 2]: got 6.0, want 7.0 within [6.875, 7.125]",
        "largest error: 2,097,152 ulp (1), 8 times its bound, at [1, 2]",
    ]


def test_the_largest_error_in_ulp_and_the_largest_of_its_bound_may_be_in_two_places() -> None:
    got, wanted = [1.0 + 2.0**-10, 1024.5], bounds([1.0, 1024.0], [2.0**-11, 0.0625])
    assert told([got], wanted)[-1] == "largest error: 8,192 ulp (0.000977) at [0]; 8 times its bound at [1]"


def test_a_scalar_has_the_place_of_a_scalar() -> None:
    assert told([3.0], bounds(2.0, 0.5)) == [
        "element []: got 3.0, want 2.0 within [1.5, 2.5] (1 of 1 wrong)",
        "largest error: 4,194,304 ulp (1), 2 times its bound, at []",
    ]


@pytest.mark.parametrize(
    ("type_", "value", "got", "error"),
    [
        ("int64", -(2**63), 2**63 - 1, "18,446,744,073,709,551,615"),
        ("int64", 543873071444496904, 543873071444496896, "8"),
        ("uint64", 2**64 - 1, 0, "18,446,744,073,709,551,615"),
        ("int8", -128, 127, "255"),
        ("uint8", 0, 255, "255"),
    ],
)
def test_the_error_of_integers_is_exact(type_, value, got, error) -> None:
    lines = told([[got]], bounds([value], 0, type_))
    assert lines == [f"element [0]: got {got}, want {value} exactly (1 of 1 wrong)", f"largest error: {error} at [0]"]


def test_only_wrong_elements_count_as_errors() -> None:
    wanted = bounds([0.0, 1.0], [100.0, 0.25])
    assert told([[64.0, 2.0]], wanted)[-1] == "largest error: 8,388,608 ulp (1), 4 times its bound, at [1]"


def test_what_is_no_number_has_no_size_of_error() -> None:
    assert told([[np.nan, np.inf]], bounds([1.0, 2.0], 0.5)) == [
        "element [0]: got nan, want 1.0 within [0.5, 1.5] (2 of 2 wrong)",
        "element [1]: got inf, want 2.0 within [1.5, 2.5]",
    ]


def test_an_error_where_nothing_is_admitted_but_the_exact_value_is_told_so() -> None:
    wanted = bounds([1.0, 1.0], [0.0, 0.25])
    assert told([[1.5, 2.0]], wanted)[-1] == "largest error: 8,388,608 ulp (1) at [1]; at [0] the bound is 0"


def test_zeros_of_the_wrong_sign_are_told_without_an_error() -> None:
    wanted = bounds([0.0], flags=[Flag.NEGATIVE_ZERO])
    assert told([[0.0]], wanted) == ["element [0]: got 0.0, want -0.0 (1 of 1 wrong)"]


def test_a_boolean_is_right_or_wrong() -> None:
    value = np.array([True, False])
    wanted = Bounds("bool", value, value, value)
    assert told([[True, True]], wanted) == ["element [1]: got True, want False exactly (1 of 2 wrong)"]


def test_of_several_outputs_each_line_says_which() -> None:
    lines = told([[1.0], [[2.0, 9]]], bounds([1.0]), bounds([[2, 8]], 0, "int32"))
    assert lines == [
        "element [0, 1] of output 2: got 9, want 8 exactly (1 of 3 wrong)",
        "largest error of output 2: 1 at [0, 1]",
    ]


def test_float16_and_bfloat16_are_counted_in_their_own_ulp() -> None:
    assert (
        told([[1.5]], bounds([1.0], 0.25, "float16"))[-1] == "largest error: 512 ulp (0.5), 2 times its bound, at [0]"
    )
    wanted = bounds([1e-7], 0, "float16")
    assert told([[3e-7]], wanted)[-1].startswith("largest error: 3.32 ulp (1.98e-07) at [0], where the bound")


@given(st.integers(1, 60), st.integers(1, 3), st.sampled_from(["float64", "float32", "int64", "uint8"]))
def test_a_text_stays_short_however_much_is_wrong(count: int, rank: int, type_: str) -> None:
    shape = (count, *[1] * (rank - 1))
    wanted = bounds(np.zeros(shape), np.zeros(shape), type_)
    lines = told([np.full(shape, 77)], wanted)
    assert f"({count} of {count} wrong)" in lines[0]
    assert len(lines) == min(count, 5) + 1
    assert len("\n".join(lines)) < 1000


def test_the_largest_numbers_of_float64_overflow_nothing() -> None:
    lines = told([[1.7e308, -1.7e308]], bounds([0.0, 1.7e308], 0, "float64"))
    assert lines[-1] == "largest error: over 1e+308 ulp (1.7e+308) at [0], where the bound is 0"
