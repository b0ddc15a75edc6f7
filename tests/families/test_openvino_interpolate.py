"""OpenVINO's Interpolate against loops over elements, and the questions that its page leaves open."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from recorded import readings, values

F = np.float32
NUMBERS = np.random.default_rng(11)
PLACES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")


def coordinate(place: str, index: int, old: int, new: int) -> float:
    if place == "align_corners":
        return 0.0 if new == 1 else index * (old - 1) / (new - 1)
    if place == "pytorch_half_pixel" and new == 1:
        return 0.0
    at = (index + (0.0 if place == "asymmetric" else 0.5)) * old / new
    return at - 0.5 if place.endswith("half_pixel") else at


def tent(distance: float) -> float:
    return max(0.0, 1.0 - abs(distance))


def keys(distance: float, a: float) -> float:
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0


def averaged(x: np.ndarray, sizes: tuple[int, int], place: str, narrow: tuple[float, float], curve) -> np.ndarray:
    """The weighted mean of all elements of a matrix, for each element of the result; 0 where none weighs anything."""
    result = np.zeros(sizes)
    for index in np.ndindex(sizes):
        total = weight = 0.0
        for source in np.ndindex(x.shape):
            own = 1.0
            for axis in (0, 1):
                at = coordinate(place, index[axis], x.shape[axis], sizes[axis])
                own *= curve((at - source[axis]) * narrow[axis])
            total, weight = total + own * x[source], weight + own
        result[index] = total / weight if weight else 0.0
    return result


def resized(x: np.ndarray, sizes: tuple[int, ...], mode: str, *, axes=(2, 3), version: int = 4, **attributes):
    """Return the first reading's output for an image."""
    given = {"axes": np.array(axes), "sizes": np.array(sizes), "scales": np.ones(len(sizes), F)}
    if version == 11:
        given = {"scales_or_sizes": given["sizes"], "axes": given["axes"]}
    given = {("data" if version == 4 else "image"): x, **given}
    attributes |= {"mode": mode, "shape_calculation_mode": "sizes"}
    return values(f"openvino/Interpolate-{version}", given, {"output": str(x.dtype)}, **attributes)[0]


@pytest.mark.parametrize(("place", "antialias"), list(itertools.product(PLACES, (False, True))))
def test_linear_is_the_mean_under_a_tent_whose_width_antialias_changes(place: str, *, antialias: bool) -> None:
    x, sizes = NUMBERS.normal(size=(1, 1, 7, 4)).astype(F), (3, 8)
    y = resized(x, sizes, "linear", coordinate_transformation_mode=place, antialias=antialias)
    narrow = (3 / 7, 2.0) if antialias else (1.0, 1.0)
    np.testing.assert_allclose(y[0, 0], averaged(x[0, 0].astype(float), sizes, place, narrow, tent), atol=2e-5)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mode", ["cubic", "linear_onnx"])
def test_neighbours_outside_are_those_at_the_edge(mode: str, place: str) -> None:
    x, sizes = NUMBERS.normal(size=(1, 1, 5, 4)).astype(F), (3, 9)
    y = resized(x, sizes, mode, coordinate_transformation_mode=place, cube_coeff=-0.6)
    want = np.zeros(sizes)
    for index in np.ndindex(sizes):
        at = [coordinate(place, i, n, m) for i, n, m in zip(index, x.shape[2:], sizes, strict=True)]
        for step in itertools.product(range(-1, 3), repeat=2):
            source = [math.floor(a) + s for a, s in zip(at, step, strict=True)]
            weigh = (lambda d: keys(d, -0.6)) if mode == "cubic" else tent
            weight = weigh(at[0] - source[0]) * weigh(at[1] - source[1])
            inside = tuple(min(max(s, 0), n - 1) for s, n in zip(source, x.shape[2:], strict=True))
            want[index] += weight * x[0, 0][inside]
    np.testing.assert_allclose(y[0, 0], want, atol=2e-5)


@pytest.mark.parametrize("mode", ["bilinear_pillow", "bicubic_pillow"])
def test_the_modes_of_pillow_average_over_the_elements_that_an_axis_loses(mode: str) -> None:
    x, sizes = NUMBERS.normal(size=(1, 1, 9, 4)).astype(F), (4, 7)
    curve = tent if mode == "bilinear_pillow" else lambda d: keys(d, -0.5)
    ignored = {"coordinate_transformation_mode": "align_corners", "antialias": True}
    y = resized(x, sizes, mode, version=11, cube_coeff=-0.5, **ignored)
    want = averaged(x[0, 0].astype(float), sizes, "half_pixel", (4 / 9, 1.0), curve)
    np.testing.assert_allclose(y[0, 0], want, atol=2e-5)
    image = pytest.importorskip("PIL.Image")
    way = {"bilinear_pillow": image.Resampling.BILINEAR, "bicubic_pillow": image.Resampling.BICUBIC}[mode]
    np.testing.assert_allclose(y[0, 0], np.asarray(image.fromarray(x[0, 0]).resize(sizes[::-1], way)), atol=1e-5)


@pytest.mark.parametrize("place", PLACES[:-1])  # align_corners has no halves here
@pytest.mark.parametrize(
    ("rounding", "rounded"),
    [
        ("round_prefer_floor", lambda at: math.ceil(at - 0.5)),
        ("floor", math.floor),
        ("ceil", math.ceil),
    ],
)
def test_nearest_rounds_coordinates(rounding: str, rounded, place: str) -> None:
    x = np.arange(8, dtype=F).reshape(1, 1, 1, 8)
    y = resized(x, (1, 4), "nearest", coordinate_transformation_mode=place, nearest_mode=rounding)
    assert y[0, 0, 0].tolist() == [min(max(rounded(coordinate(place, i, 8, 4)), 0), 7) for i in range(4)]


def test_simple_rounds_up_where_an_axis_shrinks_and_down_where_it_grows() -> None:
    x = np.arange(6, dtype=F).reshape(1, 1, 1, 6)
    place = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "simple"}
    assert resized(x, (1, 4), "nearest", **place)[0, 0, 0].tolist() == [0, 2, 3, 5]
    assert resized(x, (1, 9), "nearest", **place)[0, 0, 0].tolist() == [0, 0, 1, 2, 2, 3, 4, 4, 5]


def test_half_way_the_text_rounds_up_and_the_code_to_even_numbers() -> None:
    x = np.arange(8, dtype=F).reshape(1, 1, 1, 8)
    given = {"data": x, "sizes": np.array([1, 4]), "scales": F([1, 1]), "axes": np.array([2, 3])}
    words = {"mode": "nearest", "shape_calculation_mode": "sizes", "nearest_mode": "round_prefer_ceil"}
    found = readings("openvino/Interpolate-4", given, {"output": "float32"}, **words)
    taken = {one.taken.get("half-up"): one.values[0].reshape(-1).tolist() for one in found}
    assert taken == {"up": [1, 3, 5, 7], "even": [0, 2, 4, 6]}


def test_the_code_rounds_half_way_coordinates_of_other_axes_to_even_numbers_too() -> None:
    x = np.arange(3, dtype=F).reshape(1, 3, 1, 1)
    given = {"data": x, "sizes": np.array([1, 1]), "scales": F([1, 1]), "axes": np.array([2, 3])}
    words = {"mode": "nearest", "shape_calculation_mode": "sizes", "nearest_mode": "round_prefer_ceil"}
    words["coordinate_transformation_mode"] = "tf_half_pixel_for_nn"
    found = readings("openvino/Interpolate-4", given, {"output": "float32"}, **words)
    assert {tuple(one.values[0].reshape(-1).tolist()) for one in found} == {(0, 1, 2), (1, 2, 2), (0, 2, 2)}


@pytest.mark.parametrize("version", [4, 11])
def test_with_linear_onnx_the_text_turns_scales_with_the_axes_and_the_code_does_not(version: int) -> None:
    x = np.arange(8, dtype=F).reshape(1, 1, 2, 4)
    given = {"axes": np.array([3, 2]), "sizes": np.array([2, 2]), "scales": F([1, 1])}
    if version == 11:
        given = {"axes": given["axes"], "scales_or_sizes": given["sizes"]}
    given = {("data" if version == 4 else "image"): x, **given}
    words = {"mode": "linear_onnx", "shape_calculation_mode": "sizes", "coordinate_transformation_mode": "asymmetric"}
    found = readings(f"openvino/Interpolate-{version}", given, {"output": "float32"}, **words)
    taken = {one.taken.get("scales-in-turn"): one.values[0].reshape(-1).tolist() for one in found}
    assert taken == {"by-axes": [0, 2, 4, 6], "in-turn": [0, 1, 4, 5]}


def test_the_i_th_size_is_for_the_i_th_axis_and_padding_counts() -> None:
    x = NUMBERS.normal(size=(1, 2, 3, 4)).astype(F)
    pads = {"pads_begin": [0, 0, 1, 0], "pads_end": [0, 0, 0, 2]}
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 2)))
    turned = resized(x, (9, 2), "linear", axes=(3, 2), **pads)
    np.testing.assert_allclose(turned, resized(padded, (2, 9), "linear"), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("changed", "clause"),
    [
        ({"axes": np.array([2, 2])}, "axes-differ"),
        ({"axes": np.array([2, 4])}, "axes-range"),
        ({"axes": np.array([3])}, "lengths"),
        ({"axes": np.array([[2, 3]])}, "vectors"),
        ({"scales_or_sizes": F([2, 2])}, "target-type"),
        ({"scales_or_sizes": np.array([-2, 2])}, "target-range"),
    ],
)
def test_what_does_not_fit_breaks_a_clause(changed: dict[str, np.ndarray], clause: str) -> None:
    given = {"image": np.zeros((1, 1, 3, 4), F), "scales_or_sizes": np.array([2, 2]), "axes": np.array([2, 3])}
    words = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    assert readings("openvino/Interpolate-11", given | changed, {"output": "float32"}, **words) == clause
