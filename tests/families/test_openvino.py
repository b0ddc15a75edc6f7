"""OpenVINO's operations against the examples of its pages, and the rules in which they differ from ONNX's operators."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.judging import judge_answer
from recorded import readings, values

from opconform.cases.ids import parse_id
from opconform.cases.results import Outcome
from opconform.generators.families import vocabularies
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases
from opconform.specs.loader import Library

F = np.float32
PLANE = np.array([[[[-1, 2, 3], [4, 5, -6], [-7, 8, 9]]]], F)
COUNT = np.arange(1, 10, dtype=F).reshape(1, 1, 3, 3)
POOLED = {"output": "float32", "indices": "int64"}


def taken(found, silence):
    return {one.taken.get(silence): one.values[0].tolist() for one in found}


@pytest.mark.parametrize(
    ("x", "to", "expected"),
    [
        (np.array([-1], np.int32), "uint32", [4294967295]),
        (np.array([-1, 127], np.int8), "uint64", [2**64 - 1, 127]),
        (np.array([True, False]), "float32", [1.0, 0.0]),
        (np.array([0.0, -3.0], F), "bool", [False, True]),
    ],
)
def test_convert_of_its_page(x, to, expected) -> None:
    (found,) = values("openvino/Convert-1", {"input": x}, {"output": to})
    assert found.tolist() == expected


def test_convert_leaves_open_what_its_page_does_not_say() -> None:
    def convert(silence, x, to):
        return taken(readings("openvino/Convert-1", {"input": x}, {"output": to}), silence)

    assert convert("integer-range", np.array([300], np.int32), "uint8") == {"wraps": [44], "saturates": [255]}
    assert convert("float-range", np.array([1e6], F), "float16") == {"special": [np.inf], "largest": [65504]}
    assert convert("small-to-bool", np.array([0.5], F), "bool") == {"true": [True], "false": [False]}
    assert convert("nan-to-bool", np.array([np.nan], F), "bool") == {"true": [True], "false": [False]}
    negative = convert("integer-range", np.array([-1], np.int32), "uint8")
    assert all(found == [255] for found in negative.values())


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_matmul_transposes_matrices_and_no_vectors(turned) -> None:
    a, b = np.arange(24, dtype=F).reshape(2, 3, 4), np.arange(20, dtype=F).reshape(4, 5)
    given = {"A": a.mT if turned[0] else a, "B": b.T if turned[1] else b}
    attributes = dict(zip(("transpose_a", "transpose_b"), turned, strict=True))
    (found,) = values("openvino/MatMul-1", given, {"C": "float32"}, **attributes)
    assert np.array_equal(found, a @ b)
    (found,) = values("openvino/MatMul-1", {"A": b[:, 0], "B": b[:, 1]}, {"C": "float32"}, **attributes)
    assert found == b[:, 0] @ b[:, 1]


TOP = {"axis": 0, "mode": "min", "sort": "index"}
UNSTABLE = (
    "openvino/TopK-11/float32,int32,int32/none/axis=0;data=5,3,1,2,5,5;k=4;mode=min;sort=index/ramp/page-unstable"
)
LINE = {"data": np.array([5, 3, 1, 2, 5, 5], F), "k": np.array(4)}


def test_top_k_of_its_page_takes_the_first_of_equal_elements_if_stable() -> None:
    y, places = values("openvino/TopK-11", LINE, {"values": "float32", "indices": "int32"}, stable=True, **TOP)
    assert (y.tolist(), places.tolist()) == ([5, 3, 1, 2], [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("y", "places", "admitted"),
    [
        ([5, 3, 1, 2], [0, 1, 2, 3], True),
        ([3, 1, 2, 5], [1, 2, 3, 4], True),
        ([3, 1, 2, 5], [1, 2, 3, 5], True),
        ([3, 1, 2, 5], [1, 2, 3, 3], False),
        ([3, 1, 2, 4], [1, 2, 3, 5], False),
    ],
)
def test_top_k_of_its_page_admits_three_answers_unless_stable(y, places, admitted) -> None:
    made = GeneratedCases().case(UNSTABLE)
    verdict = judge_answer(made.expectation, [np.array(y, F), np.array(places, np.int32)])
    assert (verdict.outcome is Outcome.PASS) == admitted


def test_top_k_without_an_order_takes_the_same_elements() -> None:
    given = {"data": np.array([4, 1, 3, 2], F), "k": np.array(2)}
    y, places = values("openvino/TopK-3", given, {"values": "float32", "indices": "int32"}, **TOP | {"sort": "none"})
    assert sorted(zip(y.tolist(), places.tolist(), strict=True)) == [(1, 1), (2, 3)]


def sliced(shape, begin, end, stride=None, **masks):
    data = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    given = {"data": data, "begin": np.array(begin), "end": np.array(end)}
    given |= {} if stride is None else {"stride": np.array(stride)}
    zeros = {"begin_mask": (0,) * len(begin), "end_mask": (0,) * len(begin)}
    return data, readings("openvino/StridedSlice-1", given, {"output": "int64"}, **zeros | masks)


@pytest.mark.parametrize(
    ("call", "key"),
    [
        ({"shape": (2, 3, 4), "begin": [0, 0, 0], "end": [2, 2, -1]}, np.s_[0:2, 0:2, 0:-1]),
        (
            {
                "shape": (2, 4),
                "begin": [99, 0, -1, 0],
                "end": [99, 2, 98, 4],
                "stride": [9, 1, 7, 1],
                "new_axis_mask": (1, 0, 1, 0),
            },
            np.s_[None, 0:2, None],
        ),
        ({"shape": (1, 2, 3), "begin": [0, 0, 0], "end": [1, 0, 3], "shrink_axis_mask": (0, 1, 0)}, np.s_[0:1, 0]),
        (
            {
                "shape": (5, 2, 3, 6),
                "begin": [0, 0, 0],
                "end": [4, 0, 5],
                "stride": [1, -1, 1],
                "ellipsis_mask": (0, 1, 0),
            },
            np.s_[0:4, ..., 0:5],
        ),
        (
            {
                "shape": (9, 2, 9),
                "begin": [2, 1, 9, 9],
                "end": [99, 1, 9, 5],
                "stride": [1, -1, 1, 1],
                "begin_mask": (0, 0, 1, 1),
                "end_mask": (1, 1, 0, 0),
                "new_axis_mask": (0, 0, 1),
                "shrink_axis_mask": (0,),
                "ellipsis_mask": (0, 1),
            },
            np.s_[2:, ..., None, :5],
        ),
        ({"shape": (4, 5), "begin": [3, -1], "end": [-9, 0], "stride": [-2, -1]}, np.s_[3::-2, -1:0:-1]),
    ],
)
def test_strided_slice_takes_what_its_page_writes_in_numpy(call, key) -> None:
    data, (found,) = sliced(**call)
    assert np.array_equal(found.values[0], data[key])


def test_strided_slice_leaves_open_where_its_page_contradicts_itself() -> None:
    _, found = sliced((5,), [1], [1])
    assert taken(found, "nothing") == {"one": [1], "empty": []}
    _, found = sliced((4,), [3], [0], [-1], end_mask=(1,))
    assert taken(found, "end-mask-reverse") == {"before-first": [3, 2, 1], "whole": [3, 2, 1, 0]}


@pytest.mark.parametrize(
    ("x", "attributes", "expected", "places"),
    [
        (
            PLANE,
            {"strides": (1, 1), "auto_pad": "same_lower"},
            [[-1, 2, 3], [4, 5, 5], [4, 8, 9]],
            [[0, 1, 2], [3, 4, 4], [3, 7, 8]],
        ),
        (
            COUNT,
            {"strides": (2, 2), "pads_begin": (1, 1), "pads_end": (1, 1), "rounding_type": "ceil_torch"},
            [[1, 3], [7, 9]],
            [[0, 2], [6, 8]],
        ),
        (
            COUNT,
            {"strides": (1, 1), "dilations": (2, 2), "pads_begin": (1, 1), "pads_end": (1, 1)},
            [[5, 6, 5], [8, 9, 8], [5, 6, 5]],
            [[4, 5, 4], [7, 8, 7], [4, 5, 4]],
        ),
    ],
)
def test_max_pool_of_its_page(x, attributes, expected, places) -> None:
    usual = {"pads_begin": (0, 0), "pads_end": (0, 0), "kernel": (2, 2)}
    y, index = values("openvino/MaxPool-14", {"data": x}, POOLED, **usual | attributes)
    assert y[0, 0].tolist() == expected
    assert index[0, 0].tolist() == places


def test_max_pool_counts_indices_from_its_axis() -> None:
    x = np.arange(1, 19, dtype=F).reshape(1, 2, 3, 3)
    window = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "kernel": (2, 2)}
    _, places = values("openvino/MaxPool-8", {"data": x}, POOLED, axis=2, **window)
    assert places[0].tolist() == [[[4, 5], [7, 8]]] * 2


@pytest.mark.parametrize(("rounding", "count"), [("floor", 2), ("ceil", 3), ("ceil_torch", 2)])
def test_max_pool_rounds_the_number_of_windows_as_it_is_told(rounding, count) -> None:
    window = {"strides": (3,), "pads_begin": (1,), "pads_end": (1,), "kernel": (2,), "rounding_type": rounding}
    found = readings("openvino/MaxPool-14", {"data": np.zeros((1, 1, 5), F)}, POOLED, **window)
    assert {one.values[0].shape for one in found if one.values} == {(1, 1, count)}


@pytest.mark.parametrize("linear", [False, True])
def test_gru_cell_is_its_equations(linear) -> None:
    rng = np.random.default_rng(5)
    n, i, h = 2, 3, 4
    x, s, w, r = (rng.standard_normal(shape) for shape in ((n, i), (n, h), (3 * h, i), (3 * h, h)))
    b = rng.standard_normal((3 + linear) * h)

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    (wz, wr, wh), (rz, rr, rh), (bz, br, bh, *rest) = (np.split(v, len(v) // h) for v in (w, r, b))
    z, reset = sigmoid(x @ wz.T + s @ rz.T + bz), sigmoid(x @ wr.T + s @ rr.T + br)
    hidden = np.tanh(x @ wh.T + (reset * (s @ rh.T + rest[0]) if linear else (reset * s) @ rh.T) + bh)
    given = {"X": x, "initial_hidden_state": s, "W": w, "R": r, "B": b}
    (found, *_) = readings("openvino/GRUCell-3", given, {"Ho": "float64"}, hidden_size=h, linear_before_reset=linear)
    np.testing.assert_allclose(found.values[0], (1 - z) * hidden + z * s, rtol=1e-12)


def test_convolution_ignores_its_pads_if_it_pads_by_itself() -> None:
    given = {"data": np.ones((1, 1, 5), F), "filters": np.ones((1, 1, 3), F)}
    window = {"strides": (1,), "dilations": (1,), "pads_begin": (9,), "pads_end": (9,)}
    for way, expected in (("valid", [3, 3, 3]), ("same_upper", [2, 3, 3, 3, 2])):
        (found,) = values("openvino/Convolution-1", given, {"output": "float32"}, auto_pad=way, **window)
        assert found.reshape(-1).tolist() == expected


def test_a_bound_version_has_the_silence_of_an_integer_sum_that_its_formula_s_version_lacks() -> None:
    given = {"data": np.full((1, 1, 2), 100, np.int8), "filters": np.ones((1, 1, 2), np.int8)}
    window = {"strides": (1,), "dilations": (1,), "pads_begin": (0,), "pads_end": (0,)}
    found = readings("openvino/Convolution-1", given, {"output": "int8"}, **window)
    assert taken(found, "integer-overflow") == {"wraps": [[[-56]]], "saturates": [[[127]]]}


def test_a_boolean_attribute_is_0_or_1_in_the_expressions_of_shapes() -> None:
    cases = planned(Library(vocabulary=vocabularies()), Selection(("openvino/MatMul-1/*transpose_b=true*",)))
    shapes = {parse_id(case).shapes for case in cases}
    assert ((3, 4), (5, 4)) in shapes or ((2, 257), (3, 257)) in shapes
