"""oneDNN Graph's operations on single elements and on pairs of them, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from recorded import readings, values

F, BF = np.float32, ml_dtypes.bfloat16
DRAW = np.random.default_rng(11)
DST = {"dst": "float32"}


def drawn(*shape: int) -> Any:
    return DRAW.integers(-8, 8, shape).astype(F)


def unary(operator: str, x: Any, **attributes: Any) -> Any:
    return values(f"onednn/{operator}", {"src": F(x)}, DST, **attributes)[0]


def test_a_comparison_with_nan_may_be_false_or_true() -> None:
    a, b = F([math.nan, 1, -0.0, 1, 2]), F([1, math.nan, 0.0, 2, 1])
    found = readings("onednn/GreaterEqual", {"src_0": a, "src_1": b}, {"dst": "bool"})
    assert isinstance(found, list)
    assert {one.taken["nan"]: one.values[0].tolist() for one in found} == {
        "false": [False, False, True, False, True],
        "true": [True, True, True, False, True],
    }


def test_clamp_is_the_maximum_last_where_its_bounds_are_crossed() -> None:
    np.testing.assert_array_equal(unary("Clamp", [0.0, 2.0, 9.0], min=3.0, max=1.0), F([1, 1, 1]))


@pytest.mark.parametrize("beta", [1.0, 2.0, -0.5])
def test_softplus_divides_by_beta(beta: float) -> None:
    x = np.linspace(-3, 3, 13)
    np.testing.assert_allclose(unary("SoftPlus", x, beta=beta), np.log1p(np.exp(beta * x)) / beta, rtol=1e-6)


@pytest.mark.parametrize("beta", [2.0, 0.5, -1.0, 1.7])
def test_pow_has_one_exponent(beta: float) -> None:
    x = F([0.5, 1.0, 2.25, 9.0])
    np.testing.assert_allclose(unary("Pow", x, beta=beta), x.astype(np.float64) ** beta, rtol=1e-6)


def test_a_negative_alpha_of_elu_is_invalid() -> None:
    assert readings("onednn/Elu", {"src": F([1.0])}, DST, alpha=-1.0) == "alpha-range"


def test_round_may_send_a_tie_to_either_neighbour_and_nothing_else_anywhere() -> None:
    found = readings("onednn/Round", {"src": F([0.5, -1.5, 2.25])}, DST)
    assert isinstance(found, list)
    by = {one.taken["ties"]: one.values[0].tolist() for one in found if "ties" in one.taken}
    assert by == {
        "even": [0, -2, 2],
        "away": [1, -2, 2],
        "towards-zero": [0, -1, 2],
        "up": [1, -1, 2],
        "down": [0, -2, 2],
    }


def test_the_reciprocal_of_a_negative_zero_has_either_sign() -> None:
    found = readings("onednn/Reciprocal", {"src": F([-0.0, 0.0, 4.0])}, DST)
    assert isinstance(found, list)
    assert {tuple(one.values[0].tolist()) for one in found} == {(-math.inf, math.inf, 0.25), (math.inf, math.inf, 0.25)}


@pytest.mark.parametrize(
    ("operator", "formula"), [("Add", np.add), ("Subtract", np.subtract), ("Multiply", np.multiply)]
)
def test_a_wide_and_a_narrow_operand_give_the_wide_type(operator: str, formula: Any) -> None:
    a, b = drawn(2, 1, 3), drawn(4, 1).astype(BF)
    for one, other in ((a, b), (b, a)):
        (y,) = values(f"onednn/{operator}", {"src_0": one, "src_1": other}, DST)
        np.testing.assert_array_equal(y, formula(one.astype(F), other.astype(F)))


def test_rows_of_types_that_are_not_on_the_page_are_invalid() -> None:
    wide, narrow, half = drawn(2), drawn(2).astype(BF), drawn(2).astype(np.float16)
    assert readings("onednn/Add", {"src_0": half, "src_1": narrow}, DST) == "types"
    assert readings("onednn/Add", {"src_0": narrow, "src_1": narrow}, DST) == "types"
    assert readings("onednn/Divide", {"src_0": wide, "src_1": narrow}, {"dst": "bfloat16"}) == "types"


def test_without_broadcasting_shapes_are_equal() -> None:
    given = {"src_0": drawn(2, 3), "src_1": drawn(3)}
    for operator in ("Add", "Maximum", "SquaredDifference", "GreaterEqual"):
        outputs = {"dst": "bool" if operator == "GreaterEqual" else "float32"}
        assert readings(f"onednn/{operator}", given, outputs, auto_broadcast="none") == "no-broadcast"


def test_the_condition_of_select_broadcasts_one_way() -> None:
    a, b = drawn(2, 3, 4, 5), drawn(4, 1)
    condition = DRAW.integers(0, 2, (3, 1, 5)).astype(bool)
    (y,) = values("onednn/Select", {"cond": condition, "src_0": a, "src_1": b}, DST)
    np.testing.assert_array_equal(y, np.where(condition, a, b))
    given = {"cond": condition[:, 0], "src_0": a, "src_1": a}
    assert readings("onednn/Select", given, DST) == "one-way"


@pytest.mark.parametrize(
    ("data_format", "per_channel", "extent"), [("NCX", True, 3), ("NXC", True, 4), ("NCX", False, 4)]
)
def test_a_slope_of_rank_1_belongs_to_channels_or_to_the_rightmost_dimension(
    data_format: str, per_channel: bool, extent: int
) -> None:
    x, slope = drawn(2, 3, 4), drawn(extent)
    spread = slope.reshape(3, 1) if extent == 3 else slope
    (y,) = values(
        "onednn/PReLU", {"src": x, "slope": slope}, DST, data_format=data_format, per_channel_broadcast=per_channel
    )
    np.testing.assert_array_equal(y, np.where(x < 0, spread * x, x))


@pytest.mark.parametrize("data_format", ["NCX", "NXC"])
def test_bias_is_added_to_channels(data_format: str) -> None:
    x, bias = drawn(2, 3, 3), drawn(3)
    (y,) = values("onednn/BiasAdd", {"src": x, "bias": bias}, DST, data_format=data_format)
    np.testing.assert_array_equal(y, x + (bias if data_format == "NXC" else bias[:, None]))


@pytest.mark.parametrize("operator", ["ReduceL1", "ReduceL2"])
def test_a_norm_over_no_axes_may_be_the_identity_that_the_page_names_or_the_magnitude(operator: str) -> None:
    found = readings(f"onednn/{operator}", {"src": F([-2.0, 3.0])}, DST, axes=())
    assert isinstance(found, list)
    assert {tuple(one.values[0].tolist()) for one in found} == {(-2.0, 3.0), (2.0, 3.0)}
