"""AffineGrid, GridSample and DeformConv against ONNX's own function body, against exact fractions and against loops."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from recorded import readings, values

D = np.float64


def grid(theta, size, **attributes):
    outputs = {"grid": str(theta.dtype)}
    return values("onnx/AffineGrid-20", {"theta": theta, "size": np.array(size, np.int64)}, outputs, **attributes)[0]


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (3, 1, 7, 2), (2, 1, 3, 4, 6), (1, 2, 9, 5, 2)])
def test_affine_grid_is_what_its_function_body_gives(size, corners) -> None:
    r = len(size) - 2
    theta = np.random.default_rng(3).uniform(-2, 2, (size[0], r, r + 1))
    body = onnx.defs.get_schema("AffineGrid", 20, "").function_body
    given = {"theta": theta, "size": np.array(size, np.int64)}
    wanted = ReferenceEvaluator(body).run(None, given, attributes={"align_corners": corners})[0]
    assert np.allclose(grid(theta, size, align_corners=corners), wanted, rtol=1e-14, atol=1e-14)


def test_positions_are_those_of_pixels_centers_x_first() -> None:
    same = np.array([[[1, 0, 0], [0, 1, 0]]], D)
    x, y = [-0.75, -0.25, 0.25, 0.75], [-0.5, 0.5]
    assert grid(same, (1, 1, 2, 4)).tolist() == [[[[a, b] for a in x] for b in y]]
    x, y = [-1.0, 0.0, 1.0], [-1.0, 1.0]
    assert grid(same, (1, 1, 2, 3), align_corners=1).tolist() == [[[[a, b] for a in x] for b in y]]


def test_one_pixel_between_two_corners_is_open() -> None:
    same = {"theta": np.array([[[1, 0, 0], [0, 1, 0]]], D), "size": np.array([1, 1, 1, 2])}
    found = readings("onnx/AffineGrid-20", same, {"grid": "float64"}, align_corners=1)
    assert [one.taken["one-corner"] for one in found] == ["start", "center", "any"]
    assert [one.values[0][0, 0, 0, 1] for one in found[:2]] == [-1.0, 0.0]
    found = readings("onnx/AffineGrid-20", same, {"grid": "float64"})
    assert len(found) == 1
    assert found[0].values[0][0, 0].tolist() == [[-0.5, 0.0], [0.5, 0.0]]
