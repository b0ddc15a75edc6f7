"""The examples of the standards' own pages: literal where a page prints numbers, by formula where it prints shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes.judging import judge_answer

from opconform.cases.results import Outcome
from opconform.generators.source import GeneratedCases

SOURCE = GeneratedCases()


def outcome(text: str, data: list[Any], answer: Any) -> Outcome:
    """The verdict on an answer, with other data in the tensors of the case with this id."""
    reasoning = SOURCE.reasoning(SOURCE.case(text))
    assert reasoning is not None
    tensors, rest = reasoning.arrays[: len(data)], reasoning.arrays[len(data) :]
    assert [t.shape[1:] for t in tensors] == [np.shape(d) for d in data]
    lanes = [np.asarray(d, t.dtype)[np.newaxis] for d, t in zip(data, tensors, strict=True)]
    expectation = reasoning.recording.expectation([*lanes, *rest]).case(0)
    return judge_answer(expectation, [np.asarray(answer, tensors[0].dtype)]).outcome


# ONNX ReduceMean: https://onnx.ai/onnx/operators/onnx__ReduceMean.html, "Examples"

PRINTED = [[[5, 1], [20, 2]], [[30, 1], [40, 2]], [[55, 1], [60, 2]]]
REDUCED = {  # settings of the case: what the page prints
    "axes=1;keepdims=0": [[12.5, 1.5], [35.0, 1.5], [57.5, 1.5]],
    "axes=1;keepdims=1": [[[12.5, 1.5]], [[35.0, 1.5]], [[57.5, 1.5]]],
    "keepdims=1": [[[18.25]]],
    "axes=-2;keepdims=1": [[[12.5, 1.5]], [[35.0, 1.5]], [[57.5, 1.5]]],
}
NUMPY = {
    "axes=1;keepdims=0": {"axis": (1,), "keepdims": False},
    "axes=1;keepdims=1": {"axis": (1,), "keepdims": True},
    "keepdims=1": {"axis": None, "keepdims": True},
    "axes=-2;keepdims=1": {"axis": (-2,), "keepdims": True},
}
each_onnx_version = pytest.mark.parametrize("version", [1, 11, 13, 18])
each_example = pytest.mark.parametrize("settings", REDUCED)


@each_onnx_version
@each_example
def test_the_numbers_of_the_reduce_mean_page_pass_and_no_others(version, settings):
    text = f"onnx/ReduceMean-{version}/float32/3x2x2/{settings}/ramp"
    wanted = np.array(REDUCED[settings], np.float32)
    assert outcome(text, [PRINTED], wanted) is Outcome.PASS
    assert outcome(text, [PRINTED], wanted + 1) is Outcome.WRONG_VALUE
    assert outcome(text, [PRINTED], wanted[np.newaxis]) is Outcome.WRONG_SHAPE


@each_onnx_version
@each_example
def test_the_random_examples_of_the_reduce_mean_page_pass(version, settings):
    drawn = np.random.RandomState(0).uniform(-10, 10, (3, 2, 2)).astype(np.float32)
    text = f"onnx/ReduceMean-{version}/float32/3x2x2/{settings}/ramp"
    assert outcome(text, [drawn], np.mean(drawn, **NUMPY[settings])) is Outcome.PASS


# ONNX Mean: https://onnx.ai/onnx/operators/onnx__Mean.html, "Examples"

THREE = [[3, 0, 2], [1, 3, 4], [2, 6, 6]]
MEANS = {3: [2, 3, 4], 1: [3, 0, 2], 2: [2, 1.5, 3]}  # by the number of inputs


@pytest.mark.parametrize("version", [1, 6, 8, 13])
@pytest.mark.parametrize("count", MEANS)
def test_the_numbers_of_the_mean_page_pass_and_no_others(version, count):
    shapes = "3" if count == 1 else f"{count}*3"
    text = f"onnx/Mean-{version}/float32/{shapes}/-/ramp"
    assert outcome(text, THREE[:count], MEANS[count]) is Outcome.PASS
    assert outcome(text, THREE[:count], MEANS[count][::-1]) is Outcome.WRONG_VALUE


# OpenVINO ReduceMean-1, "Examples": four layers with the shapes of their ports


def positions(*shape: int) -> tuple[Any, ...]:
    """Each axis's index, broadcast to the whole shape."""
    return tuple(np.indices(shape).astype(np.float64))


N, C, H, W = positions(6, 12, 10, 24)
LAYERS = {  # settings of the case: axes of the page, the output port's shape, the mean of linear indices over them
    "axes=2,3;keep_dims=true": ((2, 3), (6, 12, 1, 1), ((N * 12 + C) * 240 + 119.5)[:, :, :1, :1]),
    "axes=2,3;keep_dims=false": ((2, 3), (6, 12), ((N * 12 + C) * 240 + 119.5)[:, :, 0, 0]),
    "axes=1;keep_dims=false": ((1,), (6, 10, 24), ((N * 12 + 5.5) * 240 + H * 24 + W)[:, 0]),
    "axes=-2;keep_dims=false": ((-2,), (6, 12, 24), ((N * 12 + C) * 240 + 4.5 * 24 + W)[:, :, 0]),
}


@pytest.mark.parametrize("settings", LAYERS)
def test_the_layers_of_the_openvino_page_have_the_printed_shapes_and_the_means_of_a_ramp(settings):
    axes, shape, mean = LAYERS[settings]
    case = SOURCE.case(f"openvino/ReduceMean-1/float32,int64/6x12x10x24/{settings}/ramp")
    (ramp,) = case.tensors()
    np.testing.assert_array_equal(ramp, ((N * 12 + C) * 10 + H) * 24 + W + ramp.flat[0])
    (_, given) = case.program.inputs
    assert given is not None
    np.testing.assert_array_equal(given.array(), axes)
    wanted = (mean + ramp.flat[0]).astype(np.float32)
    assert wanted.shape == shape
    assert judge_answer(case.expectation, [wanted]).outcome is Outcome.PASS
    for option in case.expectation.options:
        np.testing.assert_array_equal(option.outputs[0].value[0], wanted)
    assert judge_answer(case.expectation, [wanted.reshape(*shape, 1)]).outcome is Outcome.WRONG_SHAPE
    assert judge_answer(case.expectation, [wanted + 1]).outcome is Outcome.WRONG_VALUE


def test_no_keep_dims_is_that_of_the_openvino_page_s_default():
    case = SOURCE.case("openvino/ReduceMean-1/float32,int64/6x12x10x24/axes=1/ramp")
    assert {o.outputs[0].shape for o in case.expectation.options} == {(6, 10, 24)}


# oneDNN Graph ReduceMean: dst[0, ...] = sum over i of src[i, ...] / channelNum, channel axis 0, keep_dims = True


def test_the_formula_of_the_onednn_page_is_what_its_example_s_case_holds():
    case = SOURCE.case("onednn/ReduceMean/float32/3x4x5/axes=0;keep_dims=true/ramp")
    (src,) = case.tensors()
    i, j, k = positions(3, 4, 5)
    np.testing.assert_array_equal(src, i * 20 + j * 5 + k + src[0, 0, 0])
    wanted = (20 + j * 5 + k)[:1].astype(np.float32) + src[0, 0, 0]
    assert wanted.shape == (1, 4, 5)
    assert judge_answer(case.expectation, [wanted]).outcome is Outcome.PASS
    assert judge_answer(case.expectation, [wanted[0]]).outcome is Outcome.WRONG_SHAPE
    assert judge_answer(case.expectation, [wanted + 1]).outcome is Outcome.WRONG_VALUE
