"""AffineGrid, GridSample and DeformConv against ONNX's own function body, against exact fractions and against loops."""

import itertools
import math
from fractions import Fraction

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
    assert [one.taken["one-corner"] for one in found] == ["start", "center", "end", "not-a-number"]
    assert [one.values[0][0, 0, 0, 1] for one in found[:3]] == [-1.0, 0.0, 1.0]
    assert np.isnan(found[3].values[0]).all()
    found = readings("onnx/AffineGrid-20", same, {"grid": "float64"})
    assert len(found) == 1
    assert found[0].values[0][0, 0].tolist() == [[-0.5, 0.0], [0.5, 0.0]]


def sampled(x, grid, **attributes):
    """Return the first reading, with the options that ONNX's reference implementation takes, of one channel."""
    given = {"X": x[None, None], "grid": grid[None]}
    return values("onnx/GridSample-20", given, {"Y": str(x.dtype)}, **attributes)[0][0, 0]


def beyond(i, n, padding, low, high):
    """Return the element that stands for one outside, by walking to and fro; None for zero."""
    if padding == "zeros":
        return i if 0 <= i < n else None
    if padding == "border":
        return min(max(i, 0), n - 1)
    at = Fraction(i)
    while not low <= at <= high:
        at = 2 * (low if at < low else high) - at
    return int(at)


def weight(mode, d):
    """Return the weight of an element at a distance."""
    if mode == "linear":
        return max(0, 1 - d)
    a = Fraction(-3, 4)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0


@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 3, 4)])
@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_places_are_sampled_as_loops_over_fractions_do(mode, padding, corners, shape) -> None:
    random = np.random.default_rng(len(shape))
    x, places = random.integers(-9, 9, shape).astype(D), random.integers(-9, 10, (7, len(shape))) / 8
    places = places.reshape(7, *(1,) * (len(shape) - 1), -1)
    found = sampled(x, places, mode=mode, padding_mode=padding, align_corners=corners)
    for place, one in zip(places.reshape(7, -1), found.reshape(-1), strict=True):
        total = Fraction(0)
        lines = []
        for g, n in zip(place[::-1], shape, strict=True):
            low, high = (0, n - 1) if corners else (Fraction(-1, 2), n - Fraction(1, 2))
            at = low + (Fraction(g) + 1) / 2 * (high - low)
            if mode == "nearest":
                if padding == "reflection":
                    while not low <= at <= high:
                        at = 2 * (low if at < low else high) - at
                taps = {round(at): 1}
            else:
                taps = {i: weight(mode, abs(at - i)) for i in range(math.floor(at) - 1, math.floor(at) + 3)}
            lines.append([(beyond(i, n, padding, low, high), w) for i, w in taps.items()])
        for taps in itertools.product(*lines):
            if None not in (i for i, _ in taps):
                total += math.prod(w for _, w in taps) * int(
                    x[tuple(min(i, n - 1) for (i, _), n in zip(taps, shape, strict=True))]
                )
        assert one == float(total)


def test_the_places_of_the_texts_example_are_mirrored() -> None:
    x = np.array([[1.0, 2.0, 3.0, 4.0, 5.0]])
    place = np.array([[[-3.5, 0.0], [0.5, 0.0]]])  # -3.5 becomes 1.5, and that 0.5
    assert sampled(x, place, padding_mode="reflection", align_corners=1).tolist() == [[4.0, 4.0]]
    assert sampled(x, place, padding_mode="reflection").tolist() == [[4.25, 4.25]]


def test_halves_are_even_from_version_20_on() -> None:
    given = {"X": np.arange(4, dtype=D).reshape(1, 1, 1, 4), "grid": np.array([[[[-0.5, 0.0], [0.0, 0.0]]]])}
    late = readings("onnx/GridSample-20", given, {"Y": "float64"}, mode="nearest")
    assert [one.values[0].reshape(-1).tolist() for one in late] == [[0, 2]]
    early = readings("onnx/GridSample-16", given, {"Y": "float64"}, mode="nearest")
    assert [(one.taken["ties-early"], one.values[0].reshape(-1).tolist()) for one in early] == [
        ("even", [0, 2]),
        ("up", [1, 2]),
        ("away", [1, 2]),
        ("down", [0, 1]),
    ]


def test_what_rounding_may_decide_is_open_and_nothing_else() -> None:
    place = np.array([[[[1 / 7, 0.0], [0.3, 0.0]]]], np.float32)  # 3.5 of seven elements, but for rounding
    given = {"X": np.arange(7, dtype=np.float32).reshape(1, 1, 1, 7), "grid": place}
    found = readings("onnx/GridSample-20", given, {"Y": "float32"}, mode="nearest")
    assert [one.open for one in found] == [[True, False]]


WINDOWS = {"strides": (2, 1), "pads": (1, 0, 2, 1), "dilations": (1, 2)}


@pytest.mark.parametrize("groups", [1, 2])
def test_without_offsets_a_deformable_convolution_is_one(groups) -> None:
    random = np.random.default_rng(5)
    given = {
        "X": random.integers(-9, 9, (2, 4, 5, 5)).astype(D),
        "W": random.integers(-9, 9, (6, 4 // groups, 2, 2)).astype(D),
    }
    given["B"] = np.arange(6, dtype=D)
    wanted = values("onnx/Conv-22", given, {"Y": "float64"}, group=groups, **WINDOWS)[0]
    given |= {"offset": np.zeros((2, 2 * 8, *wanted.shape[2:])), "mask": np.ones((2, 2 * 4, *wanted.shape[2:]))}
    found = values("onnx/DeformConv-22", given, {"Y": "float64"}, group=groups, offset_group=2, **WINDOWS)[0]
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("shared", [1, 2])
def test_places_are_moved_by_their_offsets_as_loops_do(shared, masked) -> None:
    random = np.random.default_rng(6)
    x, w = random.integers(-9, 9, (1, 4, 5, 5)).astype(D), random.integers(-9, 9, (2, 2, 2, 2)).astype(D)
    height, width = 7 - 1, 5 + 1 - 2
    out = (height // 2 + 1, width)
    offset = random.integers(-12, 13, (1, shared * 8, *out)) / 4
    mask = random.integers(0, 9, (1, shared * 4, *out)) / 8
    given = {"X": x, "W": w, "offset": offset, "mask": mask if masked else None}
    found = values("onnx/DeformConv-22", given, {"Y": "float64"}, group=2, offset_group=shared, **WINDOWS)[0]
    assert found.shape == (1, 2, *out)
    for m, i, j in np.ndindex(2, *out):
        total = 0.0
        for channel, p, q in np.ndindex(2, 2, 2):
            part = 2 * m + channel  # of the input's channels
            tap = (part // (4 // shared) * 2 + p) * 2 + q
            y = 2 * i - 1 + p + offset[0, 2 * tap, i, j]
            z = j + 2 * q + offset[0, 2 * tap + 1, i, j]
            for row, column in np.ndindex(5, 5):
                tent = max(0.0, 1 - abs(y - row)) * max(0.0, 1 - abs(z - column))
                total += tent * x[0, part, row, column] * w[m, channel, p, q] * (mask[0, tap, i, j] if masked else 1.0)
        assert found[0, m, i, j] == total


def test_a_place_beside_the_image_is_a_silence_but_not_in_the_frame() -> None:
    given = {"X": np.array([[[[4.0, 8.0]]]]), "W": np.ones((1, 1, 1, 1)), "offset": np.zeros((1, 2, 1, 2))}
    given["offset"][0, 1, 0, 0] = -0.5
    found = readings("onnx/DeformConv-19", given, {"Y": "float64"})
    assert [one.values[0].reshape(-1).tolist() for one in found] == [[2.0, 8.0], [0.0, 8.0]]
    given["offset"] = np.zeros((1, 2, 1, 4))
    given["offset"][0, 1, 0, 0] = 0.5
    found = readings("onnx/DeformConv-19", given, {"Y": "float64"}, pads=(0, 1, 0, 1))
    assert [one.values[0].reshape(-1).tolist() for one in found] == [[2.0, 4.0, 8.0, 0.0]]
