"""OpenVINO's operations that draw, sample and sort out, against the numbers of their pages, and loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from recorded import readings, values

F = np.float32
NUMBERS = np.random.default_rng(11)


@pytest.mark.parametrize(
    ("type_", "ends", "seeds", "extents", "page"),
    [
        ("float32", (0, 1), (150, 10), (3, 3), [0.7011236, 0.30539632, 0.93931055, 0.9456035, 0.11694777, 0.50770056]),
        ("float64", (2, 10), (80, 100), (2, 2), [5.65927959, 4.23122376, 2.67008206, 2.36423758]),
        ("int32", (50, 100), (80, 100), (2, 3), [65, 70, 56, 59, 82, 92]),
    ],
)
def test_random_numbers_are_those_of_the_page(type_, ends, seeds, extents, page) -> None:
    low, high = (np.array(end, type_) for end in ends)
    given = {"shape": np.array(extents), "minval": low, "maxval": high}
    known = {"global_seed": seeds[0], "op_seed": seeds[1], "alignment": "TENSORFLOW"}
    (found,) = values("openvino/RandomUniform-8", given, {"output": type_}, **known)
    assert found.shape == extents
    assert found.reshape(-1)[: len(page)] == pytest.approx(page, rel=1e-6)


def test_equal_slices_are_one_wherever_they_lie() -> None:
    given = {"data": np.array([[1, 2, 2, 1, 2], [3, 1, 3, 3, 3]], F), "axis": np.array(1)}
    types = {"output": "float32", "indices": "int64", "inverse": "int32", "counts": "int64"}
    found = values("openvino/Unique-10", given, types, sorted=True)
    assert [one.tolist() for one in found] == [[[1, 2, 2], [3, 1, 3]], [0, 1, 2], [0, 1, 2, 0, 2], [2, 1, 2]]
    assert readings("openvino/Unique-10", given | {"axis": np.array([0, 1])}, types, sorted=True) == "axis-one"


def test_rows_without_an_entry_get_one_as_on_the_page() -> None:
    places = np.array([[3, 1], [0, 1], [2, 0], [0, 3]])
    given = {"values": np.array([4, 1, 3, 2], F), "dense_shape": np.array([5, 6]), "indices": places}
    given["default_value"] = np.array(42, F)
    types = {"output_indices": "int64", "output_values": "float32", "empty_row_indicator": "bool"}
    found = values("openvino/SparseFillEmptyRows-16", given, types)
    assert found[0].tolist() == [[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]]
    assert found[1].tolist() == [1, 2, 42, 3, 4, 42]
    assert found[2].tolist() == [False, True, False, False, True]


@pytest.mark.parametrize("picture", ["NV12", "I420"])
def test_colours_are_those_of_the_formulas(picture) -> None:
    bright, u, v = (NUMBERS.integers(0, 256, shape).astype(F) for shape in ((2, 4, 6), (2, 2, 3), (2, 2, 3)))
    planes = {"uv": np.stack([u, v], 3)} if picture == "NV12" else {"u": u[..., None], "v": v[..., None]}
    (found,) = values(f"openvino/{picture}toRGB-8", {"y": bright[..., None], **planes}, {"output": "float32"})
    below = planes["uv"].reshape(2, 2, 6) if picture == "NV12" else np.concatenate([u, v], 1).reshape(2, 2, 6)
    alone = {"y": np.concatenate([bright, below], 1)[..., None]}
    for one in planes:
        alone[one] = None
    (single,) = values(f"openvino/{picture}toBGR-8", alone, {"output": "float32"})
    assert (single[..., ::-1] == found).all()
    for n, i, j in itertools.product(range(2), range(4), range(6)):
        c, d, e = 1.164 * (bright[n, i, j] - 16), u[n, i // 2, j // 2] - 128, v[n, i // 2, j // 2] - 128
        wanted = np.clip([c + 1.596 * e, c - 0.813 * e - 0.391 * d, c + 2.018 * d], 0, 255)
        assert found[n, i, j] == pytest.approx(wanted, abs=1e-3)


def _deformed(data, offsets, filters, **more):
    given = {"data": data, "offsets": offsets, "filters": filters, "mask": None}
    usual = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1], "auto_pad": "explicit"}
    usual |= {"group": 1, "deformable_group": 1, "bilinear_interpolation_pad": False}
    return readings("openvino/DeformableConvolution-8", given, {"output": "float32"}, **usual | more)


def test_places_beside_the_border_are_moved_to_it_or_lie_between_data_and_zeros() -> None:
    data, filters = np.array([4, 8, 16, 32], F).reshape(1, 1, 1, 4), np.ones((1, 1, 1, 1), F)
    offsets = np.array([[0, 0, 0, 0], [-0.5, -1.25, 1.5, 0.5]], F).reshape(1, 2, 1, 4)
    (moved,) = _deformed(data, offsets, filters)
    (framed,) = _deformed(data, offsets, filters, bilinear_interpolation_pad=True)
    assert moved.values[0].reshape(-1).tolist() == [4, 4, 32, 32]
    assert framed.values[0].reshape(-1).tolist() == [2, 3, 16, 16]


def test_parts_of_offsets_are_for_channels_of_the_input_or_of_the_output() -> None:
    data = np.array([[0, 1, 2, 3], [0, 10, 20, 30]], F).reshape(1, 2, 1, 4)
    offsets = np.zeros((1, 4, 1, 4), F)
    offsets[0, 1, 0, :3] = 1
    found = _deformed(data, offsets, np.ones((2, 2, 1, 1), F), deformable_group=2)
    by_option = {one.taken["parts"]: one.values[0].reshape(2, 4).tolist() for one in found}
    assert by_option["input-channels"] == [[1, 12, 23, 33]] * 2
    assert by_option["output-channels"] == [[11, 22, 33, 33], [0, 11, 22, 33]]


def test_classes_without_replacement_are_as_many_as_there_are() -> None:
    given = {"probs": np.array([[1, 5, 4]], F), "num_samples": np.array(4)}
    known = {"with_replacement": False, "log_probs": False, "global_seed": 1, "op_seed": 0}
    assert readings("openvino/Multinomial-13", given, {"output": "int32"}, **known) == "enough-classes"
    given["probs"] = np.array([[1, -5, 4]], F)
    assert readings("openvino/Multinomial-13", given, {"output": "int32"}, **known) == "distribution"
