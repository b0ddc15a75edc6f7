"""Codes and the numbers that they stand for come out as fractions have them."""

from fractions import Fraction

import numpy as np
import pytest
from recorded import readings, values

F = np.float32
Y = {"y": "float32"}


def test_each_index_of_an_axis_has_its_own_scale_and_zero_point() -> None:
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    given = {"x": x, "x_scale": np.array([0.5, 2.0, -1.0], F), "x_zero_point": np.array([3, 0, 200], np.uint8)}
    (found,) = values("onnx/DequantizeLinear-13", given, Y)
    for i, j, k in np.ndindex(*x.shape):
        assert found[i, j, k] == (int(x[i, j, k]) - (3, 0, 200)[j]) * (0.5, 2.0, -1.0)[j]


def test_each_block_of_an_axis_has_its_own_scale() -> None:
    x = np.arange(-5, 5, dtype=np.int16).reshape(2, 5)
    given = {"x": x, "x_scale": np.array([[1, 2, 4], [8, 16, 32]], F)}
    (found,) = values("onnx/DequantizeLinear-21", given, Y, axis=1, block_size=2)
    assert found.tolist() == [[-5, -4, -6, -4, -4], [0, 8, 32, 48, 128]]
    assert readings("onnx/DequantizeLinear-21", given, Y, axis=1, block_size=3) == "blocked"
    assert readings("onnx/DequantizeLinear-21", given, Y, axis=1) == "blocked-length"


def test_int32_codes_may_be_rounded_before_they_are_multiplied_or_afterwards() -> None:
    x, scale = (1 << 24) + 1, F(1.7)
    given = {"x": np.array([x], np.int32), "x_scale": np.array(scale)}
    found = readings("onnx/DequantizeLinear-19", given, Y)
    for number in (F(x) * scale, F(np.float64(x) * np.float64(scale))):
        assert any(one.lower[0][0] <= number <= one.upper[0][0] for one in found)
    assert not any(one.lower[0][0] <= F(x - 9) * scale <= one.upper[0][0] for one in found)


@pytest.mark.parametrize(
    ("x", "scale", "zero", "y"),
    [
        (
            [0, 2, -3, -2.5, 1.34, 0.5],
            F(5) / F(255),
            153,
            [153, 255, 0, 25, 221, 179],
        ),  # of ONNX's tests
        ([-1.0, -2.1, -1.3, -2.5, -3.34, -4.0], F(4) / F(255), 255, [191, 121, 172, 96, 42, 0]),
        ([1, 2.1, 1.3, 2.5, 3.34, 4.0, 1.5, 2.6, 3.9, 4.0, 3.0, 2.345], F(4) / F(255), 0, None),
        ([-0.5, 254.5, 1.0, 3.5], F(1), 0, [0, 254, 1, 4]),
        ([-1.5, 253.5, 2.5, 0.5], F(1), 2, [0, 255, 4, 2]),
    ],
)
def test_a_range_says_scale_and_zero_point(x, scale, zero, y) -> None:
    outputs = {"y": "uint8", "y_scale": "float32", "y_zero_point": "uint8"}
    found = values("onnx/DynamicQuantizeLinear-11", {"x": np.array(x, F)}, outputs)
    width = Fraction(max(0.0, *map(float, map(F, x)))) - Fraction(min(0.0, *map(float, map(F, x))))
    assert abs(Fraction(float(found[1])) - width / 255) <= Fraction(float(np.spacing(scale)))
    assert found[2] == zero
    wanted = [min(255, max(0, round(Fraction(float(F(n))) * 255 / width) + zero)) for n in x] if y is None else y
    assert found[0].tolist() == wanted
