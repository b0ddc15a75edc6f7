"""OpenVINO's operations that move blocks, against the examples that their pages print, and against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from recorded import readings, values

F = np.float32
ROWS = np.arange(1, 13, dtype=F).reshape(3, 4)
TALL = np.arange(1, 13, dtype=F).reshape(4, 3)
IMAGE = np.arange(1, 101, dtype=F).reshape(1, 1, 10, 10)


def only(operator, given, type_="float32", **attributes):
    (found,) = values(f"openvino/{operator}", given, {"output": type_}, **attributes)
    return found


@pytest.mark.parametrize(
    ("shift", "axes", "expected"),
    [
        (1, 0, [[10, 11, 12], [1, 2, 3], [4, 5, 6], [7, 8, 9]]),
        ([-1, 2], [0, 1], [[5, 6, 4], [8, 9, 7], [11, 12, 10], [2, 3, 1]]),
        ([1, 2, 1], [0, 1, 0], [[8, 9, 7], [11, 12, 10], [2, 3, 1], [5, 6, 4]]),
    ],
)
def test_roll_of_its_page(shift, axes, expected) -> None:
    assert only("Roll-7", {"data": TALL, "shift": np.array(shift), "axes": np.array(axes)}).tolist() == expected


MIXED = {
    "constant": [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [2, 3, 4, 0, 0, 0], [6, 7, 8, 0, 0, 0]],
    "edge": [[2, 3, 4, 4, 4, 4], [2, 3, 4, 4, 4, 4], [2, 3, 4, 4, 4, 4], [6, 7, 8, 8, 8, 8]],
    "reflect": [[10, 11, 12, 11, 10, 9], [6, 7, 8, 7, 6, 5], [2, 3, 4, 3, 2, 1], [6, 7, 8, 7, 6, 5]],
    "symmetric": [[6, 7, 8, 8, 7, 6], [2, 3, 4, 4, 3, 2], [2, 3, 4, 4, 3, 2], [6, 7, 8, 8, 7, 6]],
}


@pytest.mark.parametrize(("mode", "expected"), MIXED.items())
def test_pad_of_its_page_adds_and_takes_away(mode, expected) -> None:
    given = {"data": ROWS, "pads_begin": np.array([2, -1]), "pads_end": np.array([-1, 3])}
    assert only("Pad-12", given, pad_mode=mode).tolist() == expected


@pytest.mark.parametrize("mode", MIXED)
@pytest.mark.parametrize("version", [1, 12])
def test_pad_is_numpy_s(version, mode) -> None:
    given = {"data": ROWS, "pads_begin": np.array([0, 1]), "pads_end": np.array([2, 3])}
    assert np.array_equal(only(f"Pad-{version}", given, pad_mode=mode), np.pad(ROWS, [(0, 2), (1, 3)], mode))


def patches(image, sizes, strides, rates, way):
    pairs = {"sizes": (sizes,) * 2, "strides": (strides,) * 2, "rates": (rates,) * 2}
    return only("ExtractImagePatches-3", {"data": image}, **pairs, auto_pad=way).reshape(-1, 4).tolist()


def test_image_patches_of_its_page() -> None:
    assert patches(IMAGE, 3, 5, 1, "valid")[:4] == [[1, 6, 51, 56], [2, 7, 52, 57], [3, 8, 53, 58], [11, 16, 61, 66]]
    assert patches(IMAGE, 3, 5, 2, "valid")[:4] == [[1, 6, 51, 56], [3, 8, 53, 58], [5, 10, 55, 60], [21, 26, 71, 76]]
    padded = patches(IMAGE, 4, 9, 1, "same_upper")
    assert padded[:6] == [[0, 0, 0, 89], [0, 0, 81, 90], [0, 0, 82, 0], [0, 0, 83, 0], [0, 9, 0, 99], [1, 10, 91, 100]]
    two = np.arange(1, 51, dtype=F).reshape(1, 2, 5, 5)
    assert patches(two, 2, 3, 1, "valid")[:3] == [[1, 4, 16, 19], [26, 29, 41, 44], [2, 5, 17, 20]]


@pytest.mark.parametrize(
    ("updates", "ends", "axes", "expected"),
    [
        ([[10, 20, 30, 40, 50]], ([0], [1], [1]), [0], [[10, 20, 30, 40, 50], [5, 6, 7, 8, 9]]),
        ([[10, 20, 30], [40, 50, 60]], ([-25], [25], [2]), [1], [[10, 1, 20, 3, 30], [40, 6, 50, 8, 60]]),
        (
            [[50, 60], [70, 80]],
            ([0, 1], [3, 5], [2, 2]),
            None,
            [[0, 50, 2, 60, 4], [5, 6, 7, 8, 9], [10, 70, 12, 80, 14]],
        ),
    ],
)
def test_slice_scatter_of_its_page(updates, ends, axes, expected) -> None:
    given = {"data": np.arange(np.size(expected), dtype=F).reshape(-1, 5), "updates": np.array(updates, F)}
    given |= {name: np.array(end) for name, end in zip(("start", "stop", "step"), ends, strict=True)}
    assert only("SliceScatter-15", given | ({} if axes is None else {"axes": np.array(axes)})).tolist() == expected


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(1, 8, 1), (-100, 100, 1), (9, -11, -1), (9, 0, -1), (9, -10, -1), (9, -11, -2), (99, -99, -1), (-99, -99, -1)],
)
def test_slice_follows_python(start, stop, step) -> None:
    line = np.arange(10, dtype=F)
    ends = {"start": np.array([start]), "stop": np.array([stop]), "step": np.array([step])}
    assert only("Slice-8", {"data": line} | ends).tolist() == line[start:stop:step].tolist()


@pytest.mark.parametrize("mode", ["blocks_first", "depth_first"])
@pytest.mark.parametrize("spatial", [(3,), (3, 2), (1, 2, 3)])
def test_space_to_depth_undoes_depth_to_space(mode, spatial) -> None:
    k = len(spatial)
    x = np.arange(2 * 3 * 2**k * math.prod(spatial), dtype=F).reshape(2, 3 * 2**k, *spatial)
    wide = only("DepthToSpace-1", {"data": x}, block_size=2, mode=mode)
    assert wide.shape == (2, 3, *(2 * extent for extent in spatial))
    stride = 3 if mode == "blocks_first" else 1  # the channel of the next place in a block
    assert wide[(0, 0, *(0,) * (k - 1), 1)] == x[(0, stride, *(0,) * k)]
    assert np.array_equal(only("SpaceToDepth-1", {"data": wide}, block_size=2, mode=mode), x)


def test_batch_to_space_undoes_space_to_batch() -> None:
    x = np.arange(2 * 6 * 10 * 3 * 3, dtype=F).reshape(2, 6, 10, 3, 3)
    block, sides = np.array([1, 2, 4, 3, 1]), np.array([0, 0, 1, 0, 0])
    batch = only("SpaceToBatch-2", {"data": x, "block_shape": block, "pads_begin": sides, "pads_end": sides})
    assert batch.shape == (48, 3, 3, 1, 3)  # of the page
    back = only("BatchToSpace-2", {"data": batch, "block_shape": block, "crops_begin": sides, "crops_end": sides})
    assert np.array_equal(back, x)


def test_eye_of_its_page_and_the_diagonals_that_it_contradicts_itself_about() -> None:
    def eye(rows, columns, diagonal):
        given = {"num_rows": np.array(rows), "num_columns": np.array(columns), "diagonal_index": np.array(diagonal)}
        return readings("openvino/Eye-9", given, {"output": "int32"})

    (up,), (down,) = eye(3, 4, 2), eye(3, 4, -1)
    assert up.values[0].tolist() == [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert down.values[0].tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    found = {one.taken["diagonal-beyond"]: one.values[0].sum() for one in eye(2, 5, 3)}
    assert found == {"by-formula": 2, "zeros": 0}


@pytest.mark.parametrize(
    ("numbers", "type_", "expected"),
    [
        ((2, 23, 3), "int32", [2, 5, 8, 11, 14, 17, 20]),
        ((23, 2, -3), "int32", [23, 20, 17, 14, 11, 8, 5]),
        ((1.0, 2.5, 0.5), "float32", [1.0, 1.5, 2.0]),
    ],
)
def test_range_of_its_page(numbers, type_, expected) -> None:
    given = dict(zip(("start", "stop", "step"), (np.array(n, F) for n in numbers), strict=True))
    for one in readings("openvino/Range-4", given, {"output": type_}):
        assert one.values[0].tolist() == expected


def test_range_casts_towards_zero() -> None:
    given = {"start": np.array(-1.9, F), "stop": np.array(2, F), "step": np.array(1, F)}
    made = readings("openvino/Range-4", given, {"output": "int32"})
    found = {one.taken["fractions"]: one.values[0].tolist() for one in made}
    assert found == {"cast-first": [-1, 0, 1], "as-given": [-1, 0, 1, 2]}


def test_reorg_yolo_leaves_the_order_open_and_keeps_every_element() -> None:
    x = np.arange(4 * 4 * 4, dtype=F).reshape(1, 4, 4, 4)
    found = readings("openvino/ReorgYolo-2", {"data": x}, {"output": "float32"}, stride=(2,))
    assert {one.taken["order"] for one in found} == {"darknet", "blocks-first", "depth-first"}
    for one in found:
        assert one.values[0].shape == (1, 16, 2, 2)
        assert sorted(one.values[0].reshape(-1).tolist()) == x.reshape(-1).tolist()
