"""oneDNN Graph's movements, conversions, pooling and normalizations, against NumPy and ONNX in the other layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recorded import readings, values

F = np.float32
DRAW = np.random.default_rng(3)
DST = {"dst": "float32"}


def drawn(*shape: int) -> Any:
    return DRAW.integers(-8, 8, shape).astype(F)


def test_a_zero_in_a_shape_copies_only_if_special_zero_says_so() -> None:
    x = drawn(2, 3, 4)
    (y,) = values("onednn/StaticReshape", {"src": x}, DST, shape=(4, 0, -1), special_zero=True)
    np.testing.assert_array_equal(y, x.reshape(4, 3, 2))
    assert readings("onednn/StaticReshape", {"src": x}, DST, shape=(0, 3), special_zero=False) == "volume"
    assert readings("onednn/StaticReshape", {"src": drawn(6)}, DST, shape=(6, 0), special_zero=True) == "zero-place"


def test_an_order_counts_from_the_end_and_lists_each_axis_once() -> None:
    x = drawn(2, 3, 4)
    (y,) = values("onednn/StaticTranspose", {"src": x}, DST, order=(-1, 0, -2))
    np.testing.assert_array_equal(y, x.transpose(2, 0, 1))
    assert readings("onednn/StaticTranspose", {"src": x}, DST, order=(-1, 0, 2)) == "permutation"
    assert readings("onednn/StaticTranspose", {"src": x}, DST, order=(3, 0, 1)) == "order-range"


def test_a_cast_between_alike_or_narrow_types_is_invalid() -> None:
    assert readings("onednn/TypeCast", {"src": drawn(2)}, DST) == "types"
    assert readings("onednn/TypeCast", {"src": drawn(2).astype(np.float16)}, {"dst": "bfloat16"}) == "types"


def test_every_element_of_gen_index_is_its_own_index() -> None:
    (y,) = values("onednn/GenIndex", {"src": drawn(2, 3, 4)}, {"dst": "int32"}, axis=-2)
    np.testing.assert_array_equal(y, np.indices((2, 3, 4))[1])


def test_quantization_takes_the_scale_and_zero_point_of_each_channel() -> None:
    x, scales, zeros = drawn(2, 3, 4), F([0.5, 2.0, 4.0]), np.array([1, -2, 3])
    settings = {"qtype": "per_channel", "scales": tuple(scales.tolist()), "zps": tuple(zeros.tolist())}
    (codes,) = values("onednn/Quantize", {"src": x}, {"dst": "int8"}, axis=1, **settings)
    want = np.rint(x / scales[:, None] + zeros[:, None])
    np.testing.assert_array_equal(codes, want)
    (back,) = values("onednn/Dequantize", {"src": codes}, DST, axis=-2, **settings)
    np.testing.assert_array_equal(back, (want - zeros[:, None]) * scales[:, None])
    fed = {"src": x, "scales": scales, "zps": zeros.astype(np.int32)}
    (again,) = values("onednn/DynamicQuantize", fed, {"dst": "int8"}, qtype="per_channel")
    np.testing.assert_array_equal(again, codes)


def test_a_fraction_that_is_quantized_may_be_rounded_in_five_ways() -> None:
    found = readings("onednn/Quantize", {"src": F([0.25])}, {"dst": "int8"}, scales=(0.5,), zps=(0,))
    assert isinstance(found, list)
    assert {int(one.values[0][0]) for one in found} == {0, 1}


def test_an_eight_bit_float_may_be_rounded_by_way_of_sixteen_bits() -> None:
    between = F([1.6871132])  # below 1.6875, halfway between two of them, to which 16 bits round it
    found = readings("onednn/Quantize", {"src": between}, {"dst": "float8e4m3fn"}, scales=(1.0,))
    assert isinstance(found, list)
    for one in found:
        assert float(one.lower[0][0]) <= 1.625 < float(one.upper[0][0]) == 1.75


def test_one_scale_is_for_a_whole_tensor_and_eight_bit_floats_have_no_zero_point() -> None:
    given, two = {"src": drawn(2, 2)}, {"scales": (1.0, 2.0), "zps": (0, 0)}
    assert readings("onednn/Quantize", given, {"dst": "int8"}, **two) == "one-scale"
    assert readings("onednn/Quantize", given, {"dst": "float8e5m2"}, scales=(1.0,), zps=(0,)) == "float8-zps"


def test_a_group_of_places_shares_a_scale_and_a_zero_point() -> None:
    src, scales = DRAW.integers(-8, 8, (4, 6)).astype(np.int8), F([[0.5, 2], [1, 4]])
    zps = DRAW.integers(-3, 3, (2, 2)).astype(np.int32)
    given = {"src": src, "scales": scales, "zps": zps}
    found = readings("onednn/DynamicDequantize", given, DST, qtype="per_group", group_shape=(2, 3))
    (y,) = (one.values[0] for one in found if one.values)
    spread = [np.repeat(np.repeat(one, 2, 0), 3, 1) for one in (scales, zps)]
    np.testing.assert_array_equal(y, (src - spread[1]) * spread[0])
    uneven = readings("onednn/DynamicDequantize", given, DST, qtype="per_group", group_shape=(3, 3))
    assert uneven == "group-shape"


@pytest.mark.parametrize("data", ["NXC", "NCX"])
@pytest.mark.parametrize(("exclude", "rounding"), [(True, "floor"), (True, "ceil"), (False, "floor")])
def test_average_pooling_is_onnx_s_in_the_layout_it_is_told(exclude: bool, data: str, rounding: str) -> None:
    x = drawn(2, 3, 6, 5)
    frame = {"strides": (2, 1), "kernel_shape": (3, 2), "pads": (1, 0, 1, 1), "ceil_mode": int(rounding == "ceil")}
    (want,) = values("onnx/AveragePool-22", {"X": x}, {"Y": "float32"}, count_include_pad=int(not exclude), **frame)
    own = {"strides": (2, 1), "kernel": (3, 2), "pads_begin": (1, 0), "pads_end": (1, 1), "exclude_pad": exclude}
    src = x.transpose(0, 2, 3, 1) if data == "NXC" else x
    (y,) = values("onednn/AvgPool", {"src": src}, DST, data_format=data, rounding_type=rounding, **own)
    np.testing.assert_array_equal(y.transpose(0, 3, 1, 2) if data == "NXC" else y, want)


def test_a_window_beyond_its_padding_is_divided_by_all_places_of_the_kernel_as_on_the_page() -> None:
    own = {"strides": (2,), "kernel": (2,), "pads_begin": (0,), "pads_end": (0,), "rounding_type": "ceil"}
    x = F([2.0, 4.0, 6.0]).reshape(1, 3, 1)
    for exclude, last in ((False, 3.0), (True, 6.0)):
        (y,) = values("onednn/AvgPool", {"src": x}, DST, exclude_pad=exclude, **own)
        assert y.reshape(-1).tolist() == [3.0, last]


def test_zeros_of_padding_may_compete_for_the_largest_element() -> None:
    x = F([-1.0, -2.0, -3.0]).reshape(1, 3, 1)
    own = {"strides": (1,), "kernel": (2,), "pads_begin": (1,), "pads_end": (0,)}
    found = readings("onednn/MaxPool", {"src": x}, DST, **own)
    assert isinstance(found, list)
    assert {tuple(one.values[0].reshape(-1).tolist()) for one in found} == {(-1, -1, -2), (0, -1, -2)}


@pytest.mark.parametrize("data", ["NXC", "NCX"])
def test_group_norm_normalizes_groups_of_channels(data: str) -> None:
    x, gamma, beta = drawn(2, 4, 5), drawn(4), drawn(4)
    whole = x.astype(np.float64).reshape(2, 2, 2, 5)
    mean, variance = whole.mean((2, 3)), whole.var((2, 3))
    want = (whole - mean[..., None, None]) / np.sqrt(variance + 0.5)[..., None, None]
    want = want.reshape(2, 4, 5) * gamma[:, None] + beta[:, None]
    given = {"src": x.swapaxes(1, 2) if data == "NXC" else x, "gamma": gamma, "beta": beta}
    outputs = {"dst": "float32", "mean": "float32", "variance": "float32"}
    y, *statistics = values("onednn/GroupNorm", given, outputs, groups=2, epsilon=0.5, data_format=data)
    np.testing.assert_allclose(y.swapaxes(1, 2) if data == "NXC" else y, want, rtol=1e-5, atol=1e-5)
    for one, other in zip(statistics, (mean, variance), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert readings("onednn/GroupNorm", given, outputs, groups=3, data_format=data) == "groups"


def test_rms_norm_has_the_root_of_its_name_or_that_of_its_formula() -> None:
    found = readings("onednn/RMSNorm", {"src": F([[3.0, 4.0]])}, DST, epsilon=0.5)
    assert isinstance(found, list)
    by = {one.taken["root"]: float(one.values[0][0, 0]) for one in found}
    assert by["of-mean-square"] == pytest.approx(3.0 / np.sqrt(12.5 + 0.5))
    assert by["of-rms"] == pytest.approx(3.0 / np.sqrt(np.sqrt(12.5) + 0.5))


def test_training_normalizes_by_the_batch_and_mixes_statistics_either_way() -> None:
    x, mean, variance = drawn(4, 3, 2), drawn(2), F([1.0, 2.0])
    names = ("dst", "running_mean", "running_variance", "batch_mean", "batch_variance")
    given = {"src": x, "mean": mean, "variance": variance}
    found = readings(
        "onednn/BatchNormForwardTraining", given, dict.fromkeys(names, "float32"), epsilon=0.5, momentum=0.25
    )
    assert isinstance(found, list)
    own, spread = x.mean((0, 1)), x.var((0, 1))
    for one in found:
        np.testing.assert_allclose(one.values[0], (x - own) / np.sqrt(spread + 0.5), rtol=1e-5, atol=1e-5)
        share = 0.25 if one.taken["momentum"] == "of-the-old" else 0.75
        np.testing.assert_allclose(one.values[1], mean * share + own * (1 - share), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(one.values[4], spread, rtol=1e-5)
