"""What Scatter and its kin write, and what OneHot, EyeLike, Range and ConstantOfShape make, held against the text."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import readings, values

F = np.float32
FLOAT = {"output": "float32"}
UPDATES = np.array([[1.0, 1.1, 1.2], [2.0, 2.1, 2.2]], F)


@pytest.mark.parametrize("operator", ["Scatter-9", "Scatter-11", "ScatterElements-11", "ScatterElements-18"])
def test_scatter_along_the_first_axis(operator) -> None:
    inputs = {"data": np.zeros((3, 3), F), "indices": np.array([[1, 0, 2], [0, 2, 1]]), "updates": UPDATES}
    found = values(f"onnx/{operator}", inputs, FLOAT)[0]
    assert np.array_equal(found, np.array([[2.0, 1.1, 0.0], [1.0, 0.0, 2.2], [0.0, 2.1, 1.2]], F))


def test_scatter_along_the_second_axis() -> None:
    data = np.array([[1.0, 2.0, 3.0, 4.0, 5.0]], F)
    inputs = {"data": data, "indices": np.array([[1, -2]]), "updates": np.array([[1.1, 2.1]], F)}
    (found,) = values("onnx/ScatterElements-18", inputs, FLOAT, axis=1)
    assert np.array_equal(found, np.array([[1.0, 1.1, 3.0, 2.1, 5.0]], F))


def test_scatter_nd_of_elements() -> None:
    inputs = {"data": np.arange(1, 9, dtype=F), "indices": np.array([[4], [3], [1], [7]]),
              "updates": np.array([9, 10, 11, 12], F)}  # fmt: skip
    assert values("onnx/ScatterND-18", inputs, FLOAT)[0].tolist() == [1, 11, 3, 10, 9, 6, 7, 12]


@given(st.data())
def test_scatter_nd_is_the_loop_of_the_text(data) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    depth, count = data.draw(st.integers(1, len(shape))), data.draw(st.integers(0, 6))
    how = data.draw(st.sampled_from(["add", "mul", "max", "min"]))
    tuples = np.array([[data.draw(st.integers(-n, n - 1)) for n in shape[:depth]] for _ in range(count)], np.int64)
    updates = np.arange(count * math.prod(shape[depth:])).reshape(count, *shape[depth:]).astype(F) - 3
    wanted = np.arange(math.prod(shape)).reshape(shape) - 5  # whole numbers, since products grow beyond 2^24
    inputs = {"data": wanted.astype(F), "indices": tuples.reshape(count, depth), "updates": updates}
    step = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[how]
    for at, update in zip(tuples.tolist(), updates, strict=True):
        wanted[tuple(at)] = step(wanted[tuple(at)], update.astype(np.int64))
    assert np.array_equal(values("onnx/ScatterND-18", inputs, FLOAT, reduction=how)[0], wanted)


def test_a_place_that_is_named_twice_is_open() -> None:
    inputs = {"data": np.zeros(3, F), "indices": np.array([1, 1]), "updates": np.array([5, 7], F)}
    found = {one.taken["repeated"]: one for one in readings("onnx/ScatterElements-11", inputs, FLOAT)}
    assert (found["last"].values[0].tolist(), found["first"].values[0].tolist()) == ([0, 7, 0], [0, 5, 0])
    assert found["unspecified"].open == [False, True, False]


@pytest.mark.parametrize(("indices", "clause"), [([3], "index-range"), ([-4], "index-range"), ([-3], "")])
def test_indices_reach_from_minus_s_to_s_less_one(indices, clause) -> None:
    inputs = {"data": np.zeros(3, F), "indices": np.array(indices), "updates": np.ones(1, F)}
    found = readings("onnx/ScatterElements-18", inputs, FLOAT)
    assert found == clause if clause else not isinstance(found, str)


@given(st.data())
def test_a_circular_update_is_the_loop_of_the_text(data) -> None:
    batch, length, extent = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 4)), data.draw(st.integers(4, 6))
    starts = np.array(data.draw(st.lists(st.integers(0, 20), min_size=batch, max_size=batch)))
    wanted = -np.arange(batch * 2 * extent, dtype=F).reshape(batch, 2, extent)
    update = np.arange(batch * 2 * length, dtype=F).reshape(batch, 2, length) + 100
    inputs = {"past_cache": wanted.copy(), "update": update, "write_indices": starts}
    for b, p, s in np.ndindex(update.shape):
        wanted[b, p, (starts[b] + s) % extent] = update[b, p, s]
    found = values("onnx/TensorScatter-24", inputs, {"present_cache": "float32"}, axis=-1, mode="circular")[0]
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_one_hot_is_one_where_the_index_is(axis) -> None:
    indices = np.array([[0, -1, 4], [3, 2, -6]])
    inputs = {"indices": indices, "depth": np.array(5), "values": np.array([2, 9], F)}
    found = np.moveaxis(values("onnx/OneHot-11", inputs, FLOAT, axis=axis)[0], axis, -1)
    for place in np.ndindex(2, 3):
        row = [2.0] * 5
        if indices[place] >= -5:
            row[indices[place]] = 9.0
        assert found[place].tolist() == row


def test_indices_and_depth_are_cut_to_whole_numbers() -> None:
    inputs = {"indices": np.array([-0.5, 1.75, np.nan], F), "depth": np.array([2.75], F), "values": np.array([0, 1], F)}
    found = values("onnx/OneHot-11", inputs, FLOAT)[0]
    assert found[:2].tolist() == [[1, 0], [0, 1]]


@given(st.integers(0, 5), st.integers(0, 5), st.integers(-7, 7))
def test_the_diagonal_is_that_of_numpy(rows, columns, k) -> None:
    (found,) = values("onnx/EyeLike-22", {"input": np.zeros((rows, columns), F)}, FLOAT, k=k)
    assert np.array_equal(found, np.eye(rows, columns, k))


@pytest.mark.parametrize(("course", "wanted"), [((3, 9, 3), [3, 6]), ((10, 4, -2), [10, 8, 6]), ((1, 5, -1), [])])
@pytest.mark.parametrize("version", [11, 27])
def test_ranges_of_the_text(version, course, wanted) -> None:
    inputs = {name: np.array(n, F) for name, n in zip(("start", "limit", "delta"), course, strict=True)}
    assert values(f"onnx/Range-{version}", inputs, FLOAT)[0].tolist() == wanted


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9).filter(bool))
def test_a_range_of_quarters_is_exact(start, limit, delta) -> None:
    inputs = {"start": np.array(start / 4), "limit": np.array(limit / 4), "delta": np.array(delta / 4)}
    count = max(math.ceil(Fraction(limit - start, delta)), 0)
    (found,) = values("onnx/Range-11", inputs, {"output": "float64"})
    assert found.tolist() == [(start + i * delta) / 4 for i in range(count)]


def test_how_many_numbers_there_are_may_hang_on_rounding() -> None:
    inputs = {"start": np.array(0), "limit": np.array(2**26 + 1), "delta": np.array(2**25)}
    found = {one.taken["count"]: len(one.values[0]) for one in readings("onnx/Range-11", inputs, {"output": "int64"})}
    assert (found["exact"], found["in-float32"]) == (3, 2)


def test_a_constant_of_an_empty_shape_is_a_scalar() -> None:
    (found,) = values("onnx/ConstantOfShape-25", {"input": np.zeros(0, np.int64)}, FLOAT)
    assert (found.shape, found.tolist()) == ((), 0.0)


@pytest.mark.parametrize(("how", "wanted"), [("add", 3 + 1j), ("mul", -1 + 3j)])
def test_complex_numbers_are_added_and_multiplied(how, wanted) -> None:
    inputs = {"data": np.array([1 + 1j], "c8"), "indices": np.array([0, 0]), "updates": np.array([1j, 2 - 1j], "c8")}
    (found,) = values("onnx/ScatterElements-16", inputs, {"output": "complex64"}, reduction=how)
    assert found.tolist() == [wanted]
