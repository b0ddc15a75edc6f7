"""oneDNN Graph's operations against NumPy, and against ONNX's operators on tensors in the other layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import readings, values

from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases

F = np.float32
DRAW = np.random.default_rng(7)


def drawn(*shape: int) -> Any:
    return DRAW.integers(-8, 8, shape).astype(F)


@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
def test_matmul_transposes_what_it_is_told_to_and_adds_the_bias(turn_a: bool, turn_b: bool) -> None:
    a, b, bias = drawn(2, 3, 4), drawn(4, 5), drawn(5)
    given_ = {"src": a.swapaxes(1, 2) if turn_a else a, "weights": b.T if turn_b else b, "bias": bias}
    given_ = {name: np.ascontiguousarray(one) for name, one in given_.items()}
    (y,) = values("onednn/MatMul", given_, {"dst": "float32"}, transpose_a=turn_a, transpose_b=turn_b)
    np.testing.assert_array_equal(y, a @ b + bias)


def test_a_vector_is_not_transposed() -> None:
    a, b = drawn(4), drawn(4, 3)
    (y,) = values("onednn/MatMul", {"src": a, "weights": b}, {"dst": "float32"}, transpose_a=True)
    np.testing.assert_array_equal(y, a @ b)


def test_a_wide_type_does_not_become_a_narrow_one() -> None:
    given_ = {"src": drawn(2, 2), "weights": drawn(2, 2)}
    assert readings("onednn/MatMul", given_, {"dst": "bfloat16"}) == "types"
    ids = [str(one) for one in planned(GeneratedCases().library, Selection(("onednn/MatMul/*/narrower",)))]
    assert len(ids) == 1


@pytest.mark.parametrize("data", ["NXC", "NCX"])
@pytest.mark.parametrize("filters", ["XIO", "OIX"])
@given(bias=st.booleans(), groups=st.sampled_from([1, 2]))
def test_convolution_is_onnx_s_in_the_layout_it_is_told(data: str, filters: str, bias: bool, groups: int) -> None:
    x, w, b = drawn(2, 4, 6, 5), drawn(6, 4 // groups, 3, 2), drawn(6)
    settings = {"strides": (2, 1), "dilations": (1, 2)}
    onnx = {"X": x, "W": w, "B": b if bias else None}
    (want,) = values("onnx/Conv-22", onnx, {"Y": "float32"}, group=groups, pads=(1, 0, 2, 1), **settings)
    own = {
        "src": x.transpose(0, 2, 3, 1) if data == "NXC" else x,
        "weights": w.transpose(2, 3, 1, 0) if filters == "XIO" else w,
        "bias": b if bias else None,
    }
    pads = {"pads_begin": (1, 0), "pads_end": (2, 1)}
    formats = {"data_format": data, "weights_format": filters}
    (y,) = values("onednn/Convolution", own, {"dst": "float32"}, groups=groups, **pads, **formats, **settings)
    np.testing.assert_array_equal(y.transpose(0, 3, 1, 2) if data == "NXC" else y, want)


@pytest.mark.parametrize("axis", [-1, -2, 1])
def test_layer_norm_normalizes_from_its_axis_on(axis: int) -> None:
    x, gamma, beta = drawn(3, 4, 5), drawn(5), drawn(5)
    outputs = {"dst": "float32", "mean": "float32", "variance": "float32"}
    found = values("onednn/LayerNorm", {"src": x, "gamma": gamma, "beta": beta}, outputs, begin_norm_axis=axis)
    axes = tuple(range(axis % 3, 3))
    mean, variance = x.mean(axes, np.float64, keepdims=True), x.var(axes, np.float64, keepdims=True)
    want = ((x - mean) / np.sqrt(variance + F(1e-5)) * gamma + beta, mean, variance)
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one.reshape(-1), other.reshape(-1), rtol=1e-6, atol=1e-6)
    assert found[1].shape == x.shape[: axis % 3]


def test_gelu_divides_its_operand_and_not_the_error_function() -> None:
    (y,) = values("onednn/GELU", {"src": F([1.0])}, {"dst": "float32"})
    assert y[0] == pytest.approx(0.8413447460685429)
