"""Pooling against the examples of its pages, and against plain loops over fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import readings, values

F = np.float32
COUNT = np.arange(1, 26, dtype=F).reshape(1, 1, 5, 5)
SQUARE = np.arange(1, 17, dtype=F).reshape(1, 1, 4, 4)
SAME = {"strides": (2, 2), "auto_pad": "SAME_UPPER"}
PADDED = {"kernel_shape": (2, 2), "pads": (1, 1, 0, 0), "count_include_pad": 1}
Y = {"Y": "float32"}
BOTH = {"Y": "float32", "Indices": "int64"}


def test_max_pool_gives_the_places_of_its_page() -> None:
    y, places = values("onnx/MaxPool-12", {"X": COUNT}, BOTH, kernel_shape=(5, 5), pads=(2, 2, 2, 2))
    rows = [[13, 14, 15, 15, 15], [18, 19, 20, 20, 20], *[[23, 24, 25, 25, 25]] * 3]
    assert y[0, 0].tolist() == rows
    assert places[0, 0].tolist() == [[n - 1 for n in row] for row in rows]
    y, places = values("onnx/MaxPool-12", {"X": COUNT}, BOTH, kernel_shape=(2, 2), strides=(2, 2), storage_order=1)
    assert y[0, 0].tolist() == [[7, 9], [17, 19]]
    assert places[0, 0].tolist() == [[6, 16], [8, 18]]


@pytest.mark.parametrize(
    ("operator", "x", "attributes", "expected"),
    [
        ("MaxPool-12", COUNT, {"kernel_shape": (3, 3), **SAME}, [[7, 9, 10], [17, 19, 20], [22, 24, 25]]),
        ("MaxPool-12", SQUARE, {"kernel_shape": (2, 2), "dilations": (2, 2)}, [[11, 12], [15, 16]]),
        ("MaxPool-12", SQUARE, {"kernel_shape": (3, 3), "strides": (2, 2), "ceil_mode": 1}, [[11, 12], [15, 16]]),
        ("AveragePool-19", COUNT, {"kernel_shape": (3, 3), **SAME}, [[4, 5.5, 7], [11.5, 13, 14.5], [19, 20.5, 22]]),
        ("AveragePool-19", COUNT, {"kernel_shape": (2, 2), "strides": (2, 2)}, [[4, 6], [14, 16]]),
        ("AveragePool-19", SQUARE, {"kernel_shape": (3, 3), "strides": (2, 2), "ceil_mode": 1}, [[6, 7.5], [12, 13.5]]),
        ("AveragePool-19", SQUARE, {"kernel_shape": (2, 2), "dilations": (2, 2)}, [[6, 7], [10, 11]]),
        ("AveragePool-19", COUNT[:, :, :2, :2], PADDED, [[0.25, 0.75], [1.75, 4.0]]),
        ("GlobalAveragePool-22", COUNT, {}, [[13]]),
        ("GlobalMaxPool-22", COUNT, {}, [[25]]),
        ("LpPool-18", SQUARE, {"kernel_shape": (2, 2), "p": 1, "strides": (2, 2)}, [[14, 22], [46, 54]]),
    ],
)  # fmt: skip
def test_pooling_gives_the_numbers_of_its_page(operator, x, attributes, expected) -> None:
    outputs = BOTH if operator.startswith("MaxPool") else Y
    found = values(
        f"onnx/{operator}", {"X": x}, outputs | ({"Indices": None} if len(outputs) > 1 else {}), **attributes
    )
    assert found[0][0, 0].tolist() == expected


def test_a_last_window_in_the_padding_is_ignored_by_the_text_from_22_on_alone() -> None:
    x, window = np.array([[[2.0, -1.0]]], F), {"kernel_shape": (1,), "strides": (2,), "pads": (0, 1), "ceil_mode": 1}
    (only,) = readings("onnx/AveragePool-22", {"X": x}, Y, **window)
    assert only.values[0].tolist() == [[[2.0]]]
    found = readings("onnx/AveragePool-19", {"X": x}, Y, **window)
    assert [one.open for one in found if one.kind == "values"] == [[False], [False, True]]
    assert [one.kind for one in found].count("rejected") == 1


@pytest.mark.parametrize("operator", ["MaxPool-10", "MaxPool-11", "AveragePool-10", "AveragePool-11", "LpPool-18"])
def test_a_last_window_in_the_padding_counts_where_the_text_has_only_the_formula(operator) -> None:
    x, window = np.array([[[2.0, -1.0]]], F), {"kernel_shape": (1,), "strides": (2,), "pads": (0, 1), "ceil_mode": 1}
    outputs = BOTH | {"Indices": None} if operator.startswith("MaxPool") else Y
    found = readings(f"onnx/{operator}", {"X": x}, outputs, **window)
    assert {one.values[0].shape for one in found if one.kind == "values"} == {(1, 1, 2)}
    assert not any("last-window-early" in one.taken for one in found)


def test_the_floor_of_version_11_is_one_of_two_readings() -> None:
    x, window = np.zeros((1, 1, 7), F), {"kernel_shape": (3,), "strides": (2,), "auto_pad": "SAME_UPPER"}
    assert [one.values[0].shape[-1] for one in readings("onnx/AveragePool-11", {"X": x}, Y, **window)] == [4, 3]
    assert [one.values[0].shape[-1] for one in readings("onnx/AveragePool-19", {"X": x}, Y, **window)] == [4]


def test_nothing_but_minus_infinity_and_padding_is_minus_infinity() -> None:
    x = np.full((1, 1, 3), -np.inf, F)
    y, places = values("onnx/MaxPool-12", {"X": x}, BOTH, kernel_shape=(2,), pads=(1, 1))
    assert y.tolist() == [[[-math.inf] * 4]]
    assert places.tolist() == [[[0, 0, 1, 2]]]


def test_columns_of_several_images_are_counted_in_each_or_in_all() -> None:
    x = np.arange(8, dtype=F).reshape(2, 1, 2, 2)
    found = readings("onnx/MaxPool-12", {"X": x}, BOTH, kernel_shape=(1, 1), storage_order=1)
    assert {tuple(one.values[1].reshape(-1).tolist()) for one in found} == {
        (0, 2, 1, 3, 4, 6, 5, 7),
        (0, 4, 2, 6, 1, 5, 3, 7),
    }


def windows(x, kernel, strides, dilations, pads):
    """Yield each window's place, and its elements of x as fractions."""
    k, extents = len(kernel), x.shape[2:]
    counts = [
        (extents[i] + pads[i] + pads[k + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(k)
    ]
    for image in itertools.product(range(x.shape[0]), range(x.shape[1]), *map(range, counts)):
        at = [
            [image[2 + i] * strides[i] - pads[i] + tap * dilations[i] for i, tap in enumerate(taps)]
            for taps in itertools.product(*map(range, kernel))
        ]
        inside = [place for place in at if all(0 <= p < d for p, d in zip(place, extents, strict=True))]
        yield image, [(Fraction(float(x[(*image[:2], *place)])), place) for place in inside]


@given(st.integers(1, 3), st.data())
def test_pooling_is_that_of_plain_loops(k, data) -> None:
    def each(low, high):
        return tuple(data.draw(st.lists(st.integers(low, high), min_size=k, max_size=k)))

    kernel, strides, dilations = each(1, 3), each(1, 3), each(1, 2)
    pads = tuple(min(p, size - 1) for p, size in zip(each(0, 2) + each(0, 2), kernel * 2, strict=True))
    extents = tuple((size - 1) * 2 + 1 + more for size, more in zip(kernel, each(0, 2), strict=True))
    shape = (data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2)), *extents)
    x = np.random.default_rng(math.prod(shape)).permutation(math.prod(shape)).reshape(shape).astype(F)
    window = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}
    y, places = values("onnx/MaxPool-12", {"X": x}, BOTH, **window)
    mean = values("onnx/AveragePool-19", {"X": x}, Y, **window)[0]
    whole = values("onnx/AveragePool-19", {"X": x}, Y, count_include_pad=1, **window)[0]
    norm = values("onnx/LpPool-18", {"X": x}, Y, p=3, **window)[0]
    for at, seen in windows(x, kernel, strides, dilations, pads):
        number, place = max(seen)
        assert y[at] == number
        assert places[at] == np.ravel_multi_index((*at[:2], *place), shape)
        total = sum(n for n, _ in seen)
        assert mean[at] == pytest.approx(float(total / len(seen)), rel=1e-15)
        assert whole[at] == pytest.approx(float(total / math.prod(kernel)), rel=1e-15)
        assert norm[at] == pytest.approx(float(sum(n**3 for n, _ in seen)) ** (1 / 3), rel=1e-14)


@pytest.mark.parametrize("version", [9, 11, 22])
def test_max_unpool_gives_the_numbers_of_its_page(version) -> None:
    given = {"X": np.array([[[[1, 2], [3, 4]]]], F), "I": np.array([[[[5, 7], [13, 15]]]])}
    window, output = {"kernel_shape": (2, 2), "strides": (2, 2)}, {"output": "float32"}
    rows = [[0, 0, 0, 0], [0, 1, 0, 2], [0, 0, 0, 0], [0, 3, 0, 4]]
    found = values(f"onnx/MaxUnpool-{version}", given | {"output_shape": None}, output, **window)[0]
    assert found[0, 0].tolist() == rows
    told = readings(f"onnx/MaxUnpool-{version}", given | {"output_shape": np.array([1, 1, 5, 5])}, output, **window)
    page = [[*row, 0] for row in rows] + [[0] * 5]
    assert page in [one.values[0][0, 0].tolist() for one in told]
    beyond = given | {"I": np.array([[[[5, 7], [13, 16]]]]), "output_shape": None}
    assert readings(f"onnx/MaxUnpool-{version}", beyond, output, **window) == "indices-range"


def test_which_of_several_elements_for_one_place_counts_is_open() -> None:
    given = {"X": np.array([[[1, 2, 5]]], F), "I": np.array([[[0, 0, 3]]]), "output_shape": None}
    found = readings("onnx/MaxUnpool-11", given, {"output": "float32"}, kernel_shape=(2,), strides=(2,))
    assert [one.values[0][0, 0, 0] for one in found if not one.open[0]] == [2, 1]
    assert all(one.open[1:] == [False] * 5 for one in found)


@given(st.data())
def test_an_image_is_put_together_as_its_blocks_were_taken(data) -> None:
    def each(low, high):
        return tuple(data.draw(st.lists(st.integers(low, high), min_size=2, max_size=2)))

    block, strides, dilations, pads = each(1, 3), each(1, 3), each(1, 2), each(0, 1) + each(0, 1)
    image = tuple((size - 1) * 2 + 1 + more for size, more in zip(block, each(0, 3), strict=True))
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(block, dilations, strict=True)]
    starts = [range(-pads[i], image[i] + pads[2 + i] - spans[i] + 1, strides[i]) for i in range(2)]
    x = np.arange(1, 1 + math.prod(block) * len(starts[0]) * len(starts[1]), dtype=F).reshape(1, math.prod(block), -1)
    wanted = np.zeros(image)
    for column, start in enumerate(itertools.product(*starts)):
        for row, tap in enumerate(itertools.product(*map(range, block))):
            place = [s + t * d for s, t, d in zip(start, tap, dilations, strict=True)]
            if all(0 <= p < extent for p, extent in zip(place, image, strict=True)):
                wanted[tuple(place)] += x[0, row, column]
    given = {"input": x, "image_shape": np.array(image), "block_shape": np.array(block)}
    blocks = {"strides": strides, "dilations": dilations, "pads": pads}
    assert values("onnx/Col2Im-18", given, {"output": "float32"}, **blocks)[0][0, 0].tolist() == wanted.tolist()


def test_a_region_is_the_mean_of_samples_between_its_neighbours() -> None:
    plane = (np.arange(8)[:, None] * 10.0 + np.arange(8)).astype(F)[None, None]  # linear: a sample is its place
    given = {"X": plane, "rois": np.array([[2, 3, 3, 7]], F), "batch_indices": np.array([0])}
    window = {"output_height": 2, "output_width": 1, "sampling_ratio": 2}
    found = values("onnx/RoiAlign-16", given, Y, **window)[0]
    assert found[0, 0].tolist() == [[37], [57]]
    found = values("onnx/RoiAlign-16", given, Y, coordinate_transformation_mode="output_half_pixel", **window)[0]
    assert found[0, 0].tolist() == [[42.5], [62.5]]
    of_samples, of_parts = readings("onnx/RoiAlign-16", given, Y, mode="max", **window)
    assert of_samples.values[0][0, 0].tolist() == [[42.25], [62.25]]
    assert of_parts.values[0][0, 0, 0, 0] < 42
    assert len(readings("onnx/RoiAlign-10", given, Y, **window)) == 2
