"""OpenVINO's operations of one tensor: what their pages say beyond ONNX's formulas, by examples and arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fakes.judging import judge_answer
from recorded import readings, values

from opconform.cases.results import Outcome
from opconform.generators.source import GeneratedCases

F = np.float32
OUTPUT = {"output": "float32"}


def by_option(found, silence):
    return {one.taken.get(silence): one.values[0].tolist() for one in found}


def one(operator, x, type_="float32", /, **more):
    (found,) = values(operator, x if isinstance(x, dict) else {"input": x}, {"output": type_}, **more)
    return found.tolist()


def test_a_real_function_of_integers_leaves_its_rounding_open_unless_the_page_says_nearest() -> None:
    x = np.array([0, 1, 2, 3], np.int32)
    cosines = [math.cos(n) for n in range(4)]
    found = by_option(readings("openvino/Cos-1", {"input": x}, {"output": "int32"}), "integer-rounding")
    assert found == {
        "truncate": [int(y) for y in cosines],
        "floor": [math.floor(y) for y in cosines],
        "nearest": [round(y) for y in cosines],
    }
    assert one("openvino/Tan-1", np.array([-2, -1, 0, 1, 2], np.int32), "int32") == [2, -2, 0, 2, -2]  # of the page
    assert one("openvino/Sqrt-1", np.array([4, 7, 9, 10], np.int32), "int32") == [2, 3, 3, 3]  # of the page
    assert one("openvino/Tanh-1", np.array([-1, 0, 1, 5], np.int8), "int8") == [-1, 0, 1, 1]


def test_atanh_of_integers_is_an_end_of_the_type() -> None:
    assert one("openvino/Atanh-4", np.array([-3, -1, 0, 1], np.int8), "int8") == [-128, -128, 0, 127]
    assert one("openvino/Atanh-4", np.array([0, 1, 9], np.uint16), "uint16") == [0, 65535, 65535]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("half_to_even", [-4.0, -2.0, -2.0, 0.0, 1.0, 2.0, 2.0, 2.0]),
        ("half_away_from_zero", [-5.0, -2.0, -2.0, 1.0, 1.0, 2.0, 2.0, 3.0]),
    ],
)
def test_round_of_its_page(mode, expected) -> None:
    x = np.array([-4.5, -1.9, -1.5, 0.5, 0.9, 1.5, 2.3, 2.5], F)
    assert one("openvino/Round-5", x, mode=mode) == expected


def test_is_finite_of_its_page() -> None:
    assert one("openvino/IsFinite-10", np.array([np.nan, 2.1, 3.7, np.inf], F), "bool") == [False, True, True, False]


def test_bounds_of_clamp_become_integers_inside_them() -> None:
    x = np.array([-3, -2, -1, 0, 1, 2, 3], np.int32)
    assert one("openvino/Clamp-1", x, "int32", min=-1.5, max=2.75) == [-1, -1, -1, 0, 1, 2, 2]
    crossed = readings("openvino/Clamp-1", {"input": x}, {"output": "int32"}, min=2.0, max=1.0)
    assert {one.taken["crossed"] for one in crossed} == {"max", "rejected"}


def test_a_slope_with_one_number_for_each_channel_is_no_slope_of_the_last_dimension() -> None:
    data, slope = -np.ones((2, 3, 3), F), np.array([1, 2, 3], F)
    assert one("openvino/PRelu-1", {"data": data, "slope": slope}) == (-np.ones((2, 3, 3)) * [[1], [2], [3]]).tolist()
    wide = -np.ones((2, 3, 4), F)
    last = np.array([1, 2, 3, 4], F)
    assert one("openvino/PRelu-1", {"data": wide, "slope": last}) == (wide * last).tolist()


def test_the_activations_whose_numbers_are_inputs() -> None:
    x = np.array([-2.0, 0.0, 3.0], F)
    numbers = {"alpha": np.array([2], F), "lambda": np.array([0.5], F)}
    selu = readings("openvino/Selu-1", {"data": x, **numbers}, OUTPUT)[0].values[0]
    assert selu == pytest.approx([0.5 * 2 * math.expm1(-2), 0, 1.5], rel=1e-6)
    hard = {"alpha": np.array(0.25, F), "beta": np.array(0.5, F)}
    assert readings("openvino/HardSigmoid-1", {"data": x, **hard}, OUTPUT)[0].values[0].tolist() == [0, 0.5, 1]
    swish = readings("openvino/Swish-4", {"data": x, "beta": np.array(2, F)}, OUTPUT)[0].values[0]
    assert swish == pytest.approx([-2 / (1 + math.exp(4)), 0, 3 / (1 + math.exp(-6))], rel=1e-6)
    without = readings("openvino/Swish-4", {"data": x, "beta": None}, OUTPUT)[0].values[0]
    assert without == pytest.approx([-2 / (1 + math.exp(2)), 0, 3 / (1 + math.exp(-3))], rel=1e-6)


def test_soft_plus_of_float64_may_be_linear_from_where_it_makes_no_difference_of_a_millionth() -> None:
    x = np.array([5.0, 14.0, 21.0])
    exact = [y + math.log1p(math.exp(-y)) for y in x]
    found = by_option(readings("openvino/SoftPlus-4", {"input": x}, {"output": "float64"}), "threshold")
    assert found["none"] == pytest.approx(exact, rel=1e-15)
    assert found["at-20"] == pytest.approx([*exact[:2], 21.0], rel=1e-15)
    assert found["lowest"] == pytest.approx([exact[0], 14.0, 21.0], rel=1e-15)


@pytest.mark.parametrize(("first", "second", "admitted"), [(255, 7, True), (0, 7, True), (255, 8, False)])
def test_convert_like_leaves_a_negative_number_as_an_unsigned_one_open(first, second, admitted) -> None:
    made = GeneratedCases().case("openvino/ConvertLike-1/int32,uint8/3/data=-1,0,7,100/ramp/negative")
    verdict = judge_answer(made.expectation, [np.array([first, 0, second, 100], np.uint8)])
    assert (verdict.outcome is Outcome.PASS) == admitted


def test_shape_of_has_the_type_that_it_is_asked_for() -> None:
    data = {"data": np.zeros((2, 0, 3), F)}
    (found,) = values("openvino/ShapeOf-3", data, {"output": "int32"}, output_type="i32")
    assert (found.dtype, found.tolist()) == (np.int32, [2, 0, 3])


@pytest.mark.parametrize(
    ("exclusive", "reverse", "expected"),
    [
        (False, False, [1, 3, 6, 10, 15]),
        (True, False, [0, 1, 3, 6, 10]),
        (False, True, [15, 14, 12, 9, 5]),
        (True, True, [14, 12, 9, 5, 0]),
    ],
)
def test_cum_sum_of_its_page(exclusive, reverse, expected) -> None:
    for axis in (np.array(0), np.array(-1), None):
        given = {"data": np.arange(1, 6, dtype=F), "axis": axis}
        assert one("openvino/CumSum-3", given, exclusive=exclusive, reverse=reverse) == expected


@pytest.mark.parametrize(
    ("operator", "row", "expected"),
    [
        ("ReduceSum-1", [1, -2, 4], 3),
        ("ReduceProd-1", [1, -2, 4], -8),
        ("ReduceMax-1", [1, -2, 4], 4),
        ("ReduceMin-1", [1, -2, 4], -2),
        ("ReduceL1-4", [1, -2, 4], 7),
        ("ReduceL2-4", [2, -3, 6], 7),
    ],
)
@pytest.mark.parametrize("keep_dims", [True, False])
def test_reductions_over_the_axes_of_an_input(operator, row, expected, keep_dims) -> None:
    given = {"data": np.array([row, row], F), "axes": np.array([-1])}
    found = one(f"openvino/{operator}", given, keep_dims=keep_dims)
    assert found == ([[expected], [expected]] if keep_dims else [expected, expected])


def test_logical_reductions() -> None:
    given = {"data": np.array([[True, False], [True, True], [False, False]]), "axes": np.array([1])}
    assert one("openvino/ReduceLogicalAnd-1", given, "bool") == [False, True, False]
    assert one("openvino/ReduceLogicalOr-1", given, "bool") == [True, True, False]


def test_a_norm_over_no_axis_is_the_identity_or_the_magnitude() -> None:
    given = {"data": np.array([-3, 2], F), "axes": np.array([], np.int64)}
    for operator in ("ReduceL1-4", "ReduceL2-4"):
        found = by_option(readings(f"openvino/{operator}", given, OUTPUT), "identity-or-norm")
        assert found == {"identity": [-3, 2], "norm": [3, 2]}


def test_a_root_that_fits_is_admitted_even_if_the_squares_do_not() -> None:
    given = {"data": np.array([100, 75], np.int8), "axes": np.array([0])}
    found = readings("openvino/ReduceL2-4", given, {"output": "int8"})
    assert {one.values[0].tolist() for one in found if one.taken.get("narrow-sum") == "exact"} == {125}


def test_an_extreme_of_a_line_with_nan_is_open_and_that_of_another_line_is_not() -> None:
    given = {"data": np.array([[np.nan, 1], [2, 3]], F), "axes": np.array([1])}
    found = by_option(readings("openvino/ReduceMin-1", given, OUTPUT), "nan")
    assert {option: answer[1] for option, answer in found.items()} == dict.fromkeys(found, 2)
    assert np.isnan(found["propagates"][0])
    assert found["ignored"][0] == 1
    assert "unspecified" in found


def test_the_extremes_of_nothing_are_undefined() -> None:
    given = {"data": np.zeros((2, 0), F), "axes": np.array([1])}
    for operator in ("ReduceMax-1", "ReduceMin-1"):
        found = readings(f"openvino/{operator}", given, OUTPUT)
        assert {one.taken["empty-set"] for one in found} == {"any", "rejected"}
