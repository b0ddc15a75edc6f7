"""The difference between an answer and what is admitted: it says what the judge says."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from fakes.judging import judge_answer, single
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opconform.cases.batch import Bounds, Expectation, Flag, Option
from opconform.cases.elements import element_type
from opconform.cases.results import Outcome
from opconform.reports.site.case_lists import strict_json
from opconform.reports.site.case_pages import CELLS, MISMATCHES, SHOWN, difference_told, tensor_told

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
ANSWERS = SHAPES.flatmap(lambda shape: hnp.arrays(np.float32, shape, elements=st.floats(width=32)))


def expecting(*bounds: Bounds) -> Expectation:
    return single(*(Option((), (one,)) for one in bounds), types=(bounds[0].type,))


def around(value: np.ndarray, bound: float, flags: np.ndarray | None = None) -> Bounds:
    return Bounds("float32", value, value - bound, value + bound, flags)


@given(ANSWERS, st.floats(0, 8), st.sampled_from([0, int(Flag.NAN), int(Flag.FREE)]))
def test_as_many_elements_are_wrong_as_the_judge_finds(answer: np.ndarray, bound: float, flag: int) -> None:
    zeros = np.zeros(answer.shape)
    expected = expecting(around(zeros, bound, np.full(answer.shape, flag, np.uint8)))
    told = difference_told(expected, [answer])
    verdict = judge_answer(expected, [answer])
    assert (told["outputs"][0]["wrong"] == 0) == (verdict.outcome is Outcome.PASS)
    if told["outputs"][0]["wrong"]:
        assert f"({told['outputs'][0]['wrong']} of {answer.size} wrong)" in verdict.detail
    strict_json(told)


@given(ANSWERS)
def test_every_element_is_in_one_cell_and_one_range_of_ulps(answer: np.ndarray) -> None:
    told = difference_told(expecting(around(np.zeros(answer.shape), 1.0)), [answer])["outputs"][0]
    assert len(told["cells"]["errors"]) == len(told["cells"]["wrong"]) == answer.size
    assert told["cells"]["wrong"].count("1") == told["wrong"]
    assert sum(told["histogram"]["counts"]) + told["histogram"]["apart"] == answer.size


def test_the_nearest_option_is_the_one_that_is_told() -> None:
    zeros, ones = np.zeros(3), np.ones(3)
    told = difference_told(expecting(around(zeros, 0.1), around(ones, 0.1)), [np.array([1, 1, 5], np.float32)])
    assert told["option"] == 1
    assert told["outputs"][0]["mismatches"]["places"] == [2]


def test_an_answer_of_another_shape_has_no_difference() -> None:
    assert difference_told(expecting(around(np.zeros(3), 1.0)), [np.zeros(2, np.float32)]) is None


def test_errors_are_told_in_ulps_and_as_shares_of_the_bound() -> None:
    value, unit = np.ones(4), 2.0**-23
    answer = np.array([1, 1 + unit, 1 + 4 * unit, 1 - unit / 2], np.float32)
    told = difference_told(expecting(around(value, 2 * unit)), [answer])["outputs"][0]
    assert told["cells"]["errors"] == [0, 0.5, 2, -0.25]
    assert told["cells"]["wrong"] == "0010"
    assert (told["ulp"], told["share"]) == (4, 2)
    assert told["mismatches"]["ulps"] == [4]
    assert dict(zip(told["histogram"]["steps"], told["histogram"]["counts"], strict=True)) == {0: 2, 1: 1, 3: 1}


def test_an_infinity_that_is_wanted_is_drawn_as_right_and_one_that_is_missed_with_its_sign() -> None:
    value = np.array([np.inf, np.inf, -np.inf])
    answer = np.array([np.inf, 3e38, 3e38], np.float32)
    told = difference_told(expecting(Bounds("float32", value, value, value)), [answer])["outputs"][0]
    assert told["cells"]["wrong"] == "011"
    assert told["cells"]["errors"] == [0.0, "-inf", "inf"]


def test_whole_numbers_are_told_to_the_last_digit() -> None:
    value = np.array([2**63 - 1, -(2**63)])
    told = difference_told(expecting(Bounds("int64", value, value, value)), [value[::-1].copy()])["outputs"][0]
    assert np.frombuffer(base64.b64decode(told["mismatches"]["got"]), "<i8").tolist() == [-(2**63), 2**63 - 1]
    assert told["wrong"] == 2


@pytest.mark.parametrize(
    ("name", "value"), [("complex64", np.array([1 + 2j, 3j], "c8")), ("string", np.array(["a", "b"], object))]
)
def test_what_has_no_distance_is_right_or_wrong(name, value) -> None:
    told = difference_told(expecting(Bounds(name, value, value, value)), [value[[0, 0]]])["outputs"][0]
    assert (told["wrong"], told["share"], told["cells"]["errors"]) == (1, None, [0.0, 1.0])
    json.dumps(told, allow_nan=False)


def test_a_large_tensor_is_drawn_by_the_worst_of_each_run_of_elements() -> None:
    value = np.zeros(10 * CELLS)
    answer = value.astype(np.float32)
    answer[::CELLS] = 3
    told = difference_told(expecting(around(value, 1.0)), [answer])["outputs"][0]
    assert (told["cells"]["run"], len(told["cells"]["errors"])) == (10, CELLS)
    assert told["cells"]["wrong"].count("1") == told["wrong"] == 10
    large = difference_told(expecting(around(value, 1.0)), [np.full(value.shape, 9, np.float32)])["outputs"][0]
    assert len(large["mismatches"]["places"]) == MISMATCHES


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "int8", "uint64", "bool"])
def test_a_tensor_is_told_by_its_bytes(name: str) -> None:
    array = np.array([[0, 1, 1]]).astype(element_type(name).dtype)
    told = tensor_told(array)
    assert (told["type"], told["shape"]) == (name, [1, 3])
    assert base64.b64decode(told["bits"]) == array.tobytes()


def test_of_a_large_tensor_the_first_elements_and_what_all_are_like_are_told() -> None:
    array = np.arange(1000, dtype=np.float32) - 500
    array[0] = np.nan
    told = tensor_told(array)
    assert len(base64.b64decode(told["bits"])) == 4 * SHOWN
    assert told["summary"] == {
        "zeros": 1,
        "elements": 1000,
        "least": "-499.0",
        "greatest": "499.0",
        "nan": 1,
        "infinite": 0,
    }
