"""OpenVINO's FakeConvert against ml_dtypes, and its GRN against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from recorded import readings, values

RANDOM = np.random.default_rng(11)
NARROW = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}


@pytest.mark.parametrize(("destination", "type_"), NARROW.items())
@pytest.mark.parametrize("shifted", [False, True])
def test_fake_convert_rounds_between_a_shift_and_its_reverse(destination, type_, shifted) -> None:
    data = (RANDOM.integers(-64, 65, (3, 4)) / 8).astype(np.float32)
    scale, shift = np.array([1, 2, 0.5, 4], np.float32), np.array([0.25, 0, 1, -2], np.float32)
    given = {"data": data, "scale": scale, **({"shift": shift} if shifted else {})}
    moved = shift if shifted else np.zeros_like(shift)
    wanted = ((data * scale - moved).astype(type_).astype(np.float32) + moved) / scale
    found = readings("openvino/FakeConvert-13", given, {"output": "float32"}, destination_type=destination)
    assert all(np.array_equal(one.values[0], wanted) for one in found)


def test_a_response_is_divided_by_the_norm_of_its_channels() -> None:
    data = RANDOM.uniform(-1, 1, (2, 3, 4)).astype(np.float32)
    (found,) = values("openvino/GRN-1", {"data": data}, {"output": "float32"}, bias=0.5)
    wide = data.astype(np.float64)
    assert found == pytest.approx(wide / np.sqrt((wide**2).sum(1, keepdims=True) + 0.5), rel=1e-12)
