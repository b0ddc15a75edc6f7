"""Arranging elements anew: the examples of the standard's pages, and NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import readings, values

SHAPES = st.lists(st.integers(0, 4), max_size=5).map(tuple)


def ramp(*shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def one(operator, inputs, type_="float32", output="output", **attributes):
    return np.asarray(values(f"onnx/{operator}", inputs, {output: type_}, **attributes)[0])


def ints(*numbers):
    return np.array(numbers, np.int64)


@pytest.mark.parametrize(("perm", "shape"), [((1, 0, 2), (2, 1, 3)), ((1, 2, 0), (2, 3, 1)), (None, (3, 2, 1))])
def test_transpose_as_its_page_does(perm, shape) -> None:
    attributes = {} if perm is None else {"perm": perm}
    assert one("Transpose-25", {"data": ramp(1, 2, 3)}, output="transposed", **attributes).shape == shape


@given(SHAPES, st.randoms(use_true_random=False))
def test_dimensions_change_places_as_in_numpy(shape, random) -> None:
    perm = random.sample(range(len(shape)), len(shape))
    found = one("Transpose-13", {"data": ramp(*shape)}, output="transposed", perm=tuple(perm))
    assert found.tolist() == ramp(*shape).transpose(perm).tolist()
    assert (
        readings("onnx/Transpose-13", {"data": ramp(*shape)}, {"transposed": "float32"}, perm=(*perm, 0))
        == "permutation"
    )


@pytest.mark.parametrize(
    ("shape", "wanted", "allow", "expected"),
    [
        ((2, 3, 4), (4, 0, -1), 0, (4, 3, 2)),
        ((2, 0, 3), (0, 0, 5), 0, (2, 0, 5)),
        ((2, 0, 3), (3, 0), 1, (3, 0)),
        ((0, 3), (-1, 2), 1, (0, 2)),
        ((1, 1), (), 0, ()),
        ((0, 3), (0, -1), 1, "zero-or-infer"),
        ((3, 4), (0, 4), 1, "elements"),
        ((3, 4), (3, 4, 0), 0, "zero-place"),
        ((3, 4), (-1, -1), 0, "infer-once"),
        ((3, 4), (5, -1), 0, "elements"),
        ((0,), (1 << 32, 1 << 32), 0, "elements"),
        ((3, 4), (-3, -4), 0, "extents"),
    ],
)
def test_extents_of_reshape_and_what_rules_them_out(shape, wanted, allow, expected) -> None:
    inputs, outputs = {"data": ramp(*shape), "shape": ints(*wanted)}, {"reshaped": "float32"}
    if isinstance(expected, str):
        assert readings("onnx/Reshape-14", inputs, outputs, allowzero=allow) == expected
    else:
        found = one("Reshape-14", inputs, output="reshaped", allowzero=allow)
        assert found.shape == expected
        assert found.ravel().tolist() == ramp(*shape).ravel().tolist()


@pytest.mark.parametrize(("axis", "shape"), [(0, (1, 120)), (2, (6, 20)), (4, (120, 1)), (-1, (24, 5)), (-4, (1, 120))])
def test_flatten_makes_rows_of_the_dimensions_before_the_axis(axis, shape) -> None:
    assert one("Flatten-11", {"input": ramp(2, 3, 4, 5)}, axis=axis).tolist() == ramp(*shape).tolist()
    if axis < 0:
        assert (
            readings("onnx/Flatten-9", {"input": ramp(2, 3, 4, 5)}, {"output": "float32"}, axis=axis)
            == "axis-from-front"
        )


@given(st.lists(st.integers(1, 2), max_size=4).map(tuple), st.data())
def test_what_is_unsqueezed_in_any_order_is_numpy_s_and_squeezed_again(shape, data) -> None:
    count = data.draw(st.integers(0, 3))
    rank = len(shape) + count
    axes = data.draw(st.permutations(range(rank)))[:count]
    axes = [axis - data.draw(st.sampled_from([0, rank])) for axis in axes]
    wide = one("Unsqueeze-13", {"data": ramp(*shape), "axes": ints(*axes)}, output="expanded")
    assert wide.shape == np.expand_dims(ramp(*shape), tuple(axes)).shape
    if axes:
        assert one("Squeeze-13", {"data": wide, "axes": ints(*axes)}, output="squeezed").shape == shape
    assert one("Squeeze-13", {"data": wide, "axes": None}, output="squeezed").shape == np.squeeze(wide).shape


@pytest.mark.parametrize(("axes", "clause"), [((3, -1), "axes-distinct"), ((4,), "axes-range")])
def test_axes_that_unsqueeze_does_not_take(axes, clause) -> None:
    inputs = {"data": ramp(3, 4, 5)[0], "axes": ints(*axes)}
    assert readings("onnx/Unsqueeze-13", inputs, {"expanded": "float32"}) == clause


def test_squeeze_takes_extents_of_one_alone() -> None:
    inputs = {"data": ramp(1, 3, 1), "axes": ints(0, 1)}
    assert readings("onnx/Squeeze-13", inputs, {"squeezed": "float32"}) == "extent-one"
    none = readings("onnx/Squeeze-13", {"data": ramp(1, 3, 1), "axes": ints()}, {"squeezed": "float32"})
    assert {one.taken["axes-none"]: one.values[0].shape for one in none} == {"none": (1, 3, 1), "all": (3,)}


@given(st.lists(st.sampled_from([0, 1, 3]), max_size=4), st.lists(st.sampled_from([0, 1, 3]), max_size=4))
def test_expand_multiplies_by_ones_of_the_shape(shape, wanted) -> None:
    inputs = {"input": ramp(*shape), "shape": ints(*wanted)}
    try:
        expected = ramp(*shape) * np.ones(wanted, np.float32)
    except ValueError:
        assert readings("onnx/Expand-13", inputs, {"output": "float32"}) == "compatible"
    else:
        assert one("Expand-13", inputs).shape == expected.shape
        assert one("Expand-13", inputs).tolist() == expected.tolist()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4))
def test_tile_is_numpy_s(pairs) -> None:
    shape, repeats = [a for a, _ in pairs], [b for _, b in pairs]
    found = one("Tile-13", {"input": ramp(*shape), "repeats": ints(*repeats)})
    assert found.shape == np.tile(ramp(*shape), repeats).shape
    assert found.tolist() == np.tile(ramp(*shape), repeats).tolist()


def test_tile_along_one_axis_repeats_the_whole_or_each_element() -> None:
    number = {"tiles": np.array(2, np.float32), "axis": np.array(1, np.float32)}
    found = readings("onnx/Tile-1", {"input": ramp(1, 2), **number}, {"output": "float32"})
    assert {each.taken["repeated"]: each.values[0].tolist() for each in found} == {
        "copies": [[0, 1, 0, 1]],
        "elements": [[0, 0, 1, 1]],
    }


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [2, 3, 4]),
        ({"start": -1}, [4]),
        ({"end": -1}, [2, 3]),
        ({"start": 1, "end": 2}, [3]),
        ({"start": -4, "end": 9}, [2, 3, 4]),
        ({"end": -4}, []),
        ({"start": 2, "end": 1}, []),
        ({"start": 1 << 62, "end": -(1 << 62)}, []),
    ],
)
def test_shape_as_its_page_does(attributes, expected) -> None:
    assert one("Shape-15", {"data": ramp(2, 3, 4)}, "int64", "shape", **attributes).tolist() == expected


@pytest.mark.parametrize(("shape", "count"), [((), 1), ((2, 3), 6), ((2, 0, 3), 0)])
def test_size_counts_elements(shape, count) -> None:
    found = one("Size-13", {"data": ramp(*shape)}, "int64", "size")
    assert (found.shape, found) == ((), count)
