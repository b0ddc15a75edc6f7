"""Where one answer alone is admitted, every order of summation gives it, to the last unit of the format's room."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.exact import DTYPES, FORMATS
from fakes.judging import judge_answer, over_axes
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.results import Outcome
from opconform.generators.source import GeneratedCases


def in_order(rows, name):
    """Add rows up from the first to the last in the type itself, then divide."""
    dtype, total = DTYPES[name], rows[0]
    for row in rows[1:]:
        total = (total + row).astype(dtype)
    return (total / dtype.type(len(rows))).astype(dtype)


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
@given(
    power=st.integers(1, 4),
    steps=st.lists(st.sampled_from([1, 0, 2, 3]), min_size=1, max_size=15).map(lambda s: (s * 15)[:15]),
    beside=st.integers(-3, 3),
    columns=st.integers(1, 3),  # NumPy adds up one column pairwise, several row by row
)
def test_a_sum_at_the_edge_of_what_is_exact_admits_what_adding_in_order_gives(name, power, steps, beside, columns):
    edge = float((1 << FORMATS[name].precision) + beside)
    x = np.array([edge, *map(float, steps[: (1 << power) - 1])]).astype(DTYPES[name])
    rows = np.repeat(x[:, np.newaxis], columns, axis=1)
    (expectation,) = over_axes([rows], name, (0,), False)
    verdict = judge_answer(expectation, [in_order(rows, name)], {"accumulator": "narrow"})
    assert verdict.outcome is Outcome.PASS, verdict.detail


def test_a_float64_sum_that_its_magnitudes_rounded_to_the_edge_is_not_taken_for_exact():
    rows = np.repeat(np.array([2.0**53, *[1.0] * 7])[:, np.newaxis], 3, axis=1)
    (expectation,) = over_axes([rows], "float64", (0,), False)
    assert judge_answer(expectation, [in_order(rows, "float64")]).outcome is Outcome.PASS


def test_a_sum_just_inside_the_edge_is_exact():
    rows = np.array([2.0**53 - 8, *[1.0] * 7])[:, np.newaxis]
    (expectation,) = over_axes([rows], "float64", (0,), False)
    (bounds,) = expectation.options[0].outputs
    assert bounds.lower == bounds.upper == (2.0**53 - 1) / 8


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_a_result_of_no_element_has_a_case_even_where_nothing_is_added_up(name):
    version = 13 if name == "bfloat16" else 18
    case = GeneratedCases().case(f"onnx/ReduceMean-{version}/{name}/0x3x0/axes=0/ramp")
    empty = np.zeros((1, 3, 0), DTYPES.get(name, np.dtype(np.int32)))
    assert judge_answer(case.expectation, [empty]).outcome is Outcome.PASS
    assert judge_answer(case.expectation, [empty.reshape(3, 0)]).outcome is Outcome.WRONG_SHAPE
