"""References of bodies, sequences, text, constants, comparisons, casts and what is random, against plain Python."""

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import LIBRARY, readings, values

from opconform.cases.elements import comparable, equal
from opconform.cases.program import SparseTensor, Tensor
from opconform.generators.operands import body_of
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases

F = np.float32
BODIES = {"carry": (lambda go, i: go, 1), "add": (lambda go, i: go, 2), "once": (lambda go, i: not go, 1),
          "stop": (lambda go, i: i < 2, 2)}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("most", [None, 0, 1, 5])
@pytest.mark.parametrize("condition", [None, True, False])
def test_a_loop_is_the_loop_that_its_page_writes_in_c(name, most, condition) -> None:
    more, factor = BODIES[name]
    if most is None and (condition is None or name in ("carry", "add")) and condition is not False:
        return  # it would never end
    version = LIBRARY.operator_version("onnx/Loop-13")[0].versions[13]
    x = np.array([1, 2, 3], F)
    given = {
        "M": None if most is None else np.array(most),
        "cond": None if condition is None else np.array(condition),
        "v_initial": [x],
    }
    outputs = {"v_final": "float32"} | ({} if name == "carry" else {"scanned": "float32"})
    found = values("onnx/Loop-13", given, outputs, body=body_of(version, ("float32",), name))
    v, scanned, go, i = x, [], condition is not False, 0
    while (most is None or i < most) and go:
        w = v * factor
        scanned.append(w if name == "add" else v)
        told = more(go, i)
        go, v, i = told if condition is not None else True, w, i + 1
    assert found[0].tolist() == v.tolist()
    if name != "carry":
        assert found[1].shape == (len(scanned), 3)
        assert found[1].tolist() == [one.tolist() for one in scanned]


def test_a_loop_in_a_loop_sees_the_values_around_both() -> None:
    version, x = LIBRARY.operator_version("onnx/Loop-16")[0].versions[16], np.array([1, 2, 3], F)
    given = {"M": np.array(5), "cond": np.array(True), "v_initial": [x]}
    body = body_of(version, ("float32",), "nested")
    found = values("onnx/Loop-16", given, {"v_final": "float32"}, body=body)
    assert found[0].tolist() == [3**5 * 1, 3**5 * 2, 3**5 * 3]


@pytest.mark.parametrize(
    "glob",
    [
        "onnx/Identity-16/optional.*/optional",
        "onnx/Identity-16/optional.seq.*/optional-sequence",
        "onnx/Loop-16/*/sequence",
        "onnx/Loop-16/*/optional-sequence-later",
        "onnx/Optional-28/seq.*/sequence",
    ],
)
def test_what_only_passes_is_what_it_was(glob) -> None:
    source = GeneratedCases()
    found = [source.case(text) for text in planned(source.library, Selection((glob,)))]
    assert found
    for case in found:
        (option,) = case.expectation.options
        inputs = case.inputs[-len(option.outputs) :]
        assert all(equal(b.value, comparable(x)).all() for b, x in zip(option.outputs, inputs, strict=True))


@given(st.integers(0, 4), st.data())
def test_a_tensor_is_inserted_as_python_inserts(count, data) -> None:
    place = data.draw(st.integers(-count, count) | st.none())
    items, tensor = [np.full(2, i, F) for i in range(count)], np.full(2, 9, F)
    given = {"input_sequence": items, "tensor": tensor, "position": None if place is None else np.array(place)}
    expected = [float(i) for i in range(count)]
    expected.insert(count if place is None else place, 9.0)
    found = values("onnx/SequenceInsert-11", given, {"output_sequence": "seq(float32)"})
    assert [one.tolist() for one in found] == [[v, v] for v in expected]


def test_texts_are_joined_with_numpy_s_broadcasting() -> None:
    x, y = np.array([["a"], ["é"]], object), np.array(["", "b"], object)
    (found,) = values("onnx/StringConcat-20", {"X": x, "Y": y}, {"Z": "string"})
    assert found.tolist() == [["a", "ab"], ["é", "éb"]]


@pytest.mark.parametrize(
    ("given", "type_", "expected"),
    [
        ({"value": Tensor.of(np.array([[1, 2]], np.int8))}, "int8", [[1, 2]]),
        ({"value_float": 1.5}, "float32", 1.5),
        ({"value_ints": (1, -(1 << 62))}, "int64", [1, -(1 << 62)]),
        ({"value_strings": ("", "ü")}, "string", ["", "ü"]),
        (
            {"sparse_value": SparseTensor(Tensor.of(np.array([7.0], F)), Tensor.of(np.array([[1, 0]])), (2, 2))},
            "float32",
            [[0, 0], [7, 0]],
        ),
    ],
)
def test_a_constant_is_what_its_one_attribute_says(given, type_, expected) -> None:
    (found,) = values("onnx/Constant-13", {}, {"output": type_}, **given)
    assert found.tolist() == expected
    assert readings("onnx/Constant-13", {}, {"output": type_}, **given, value_int=1) == "exactly-one"


@given(st.lists(st.lists(st.integers(-9, 9), min_size=3, max_size=3), min_size=1, max_size=4))
def test_the_largest_and_the_equal_are_those_of_numpy(rows) -> None:
    arrays = [np.array(row, np.int32) for row in rows]
    (largest,) = values("onnx/Max-13", {"data_0": arrays}, {"max": "int32"})
    assert largest.tolist() == reduce(np.maximum, arrays).tolist()
    (equal,) = values("onnx/Equal-13", {"A": arrays[0], "B": arrays[-1][:, None]}, {"C": "bool"})
    assert equal.tolist() == (arrays[0] == arrays[-1][:, None]).tolist()


def test_nothing_is_equal_to_nan_and_zeros_are_equal() -> None:
    a, b = np.array([np.nan, 0.0, np.inf], F), np.array([np.nan, -0.0, np.inf], F)
    (found,) = values("onnx/Equal-13", {"A": a, "B": b}, {"C": "bool"})
    assert found.tolist() == [False, True, True]


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from([("int8", 8), ("uint16", 16), ("int32", 32)]))
def test_an_integer_keeps_its_lower_bits(number, target) -> None:
    name, bits = target
    (found,) = values("onnx/Cast-13", {"input": np.array([number])}, {"output": name}, to=1)
    kept = number % (1 << bits)
    assert int(found[0]) == (kept - (1 << bits) if name.startswith("i") and kept >> (bits - 1) else kept)


@given(st.floats(-70000, 70000, width=32))
def test_a_float_becomes_the_nearest_of_a_narrower_type(number) -> None:
    (found,) = values("onnx/Cast-13", {"input": np.array([number], F)}, {"output": "float16"}, to=10)
    with np.errstate(over="ignore"):
        exact, half = Fraction(number), np.array([number], F).astype(np.float16)
    if np.isfinite(half[0]):
        others = [Fraction(float(np.nextafter(half[0], way))) for way in (np.float16(-6e4), np.float16(6e4))]
        assert all(abs(Fraction(float(found[0])) - exact) <= abs(one - exact) for one in others)
    assert float(found[0]) == float(half[0])


def test_in_training_an_element_is_scaled_or_dropped() -> None:
    x, ratio = np.array([1.0, -3.0], F), np.array(0.25, F)
    given = {"data": x, "ratio": ratio, "training_mode": np.array(True)}
    (one,) = readings("onnx/Dropout-13", given, {"output": "float32", "mask": None})
    assert one.values[0] == pytest.approx(x / 0.75)
    rest = {"data": x, "ratio": None, "training_mode": np.array(True)}
    found = readings("onnx/Dropout-13", rest, {"output": "float32", "mask": None})
    assert {one.taken["ratio-missing"]: one.values[0].tolist() for one in found} == {"half": [2, -6], "copy": [1, -3]}


@pytest.mark.parametrize("shape", [(), (2, 3), (0,)])
def test_normal_numbers_have_the_shape_and_type_that_is_asked_for(shape) -> None:
    (found,) = values("onnx/RandomNormal-1", {}, {"output": "float16"}, shape=shape, dtype=10)
    assert found.shape == shape


def test_more_boxes_than_a_vector_register_holds_have_scores_of_their_own() -> None:
    case = GeneratedCases().case(
        "onnx/NonMaxSuppression-11/-/1x129x4,1x2x129/iou_threshold=0.5;max_output_boxes_per_class=1000/ramp"
    )
    scores = case.inputs[1][0, 0]
    assert [len(set(one)) for one in scores.tolist()] == [129, 129]


@given(st.integers(1, 4), st.data())
def test_a_place_in_a_sequence_is_python_s(count, data) -> None:
    place = data.draw(st.integers(-count, count - 1))
    items = [np.full(i + 1, i, F) for i in range(count)]
    given = {"input_sequence": items, "position": np.array(place, np.int32)}
    (found,) = values("onnx/SequenceAt-11", given, {"tensor": "float32"})
    assert found.tolist() == items[place].tolist()
    rest = values("onnx/SequenceErase-11", given, {"output_sequence": "seq(float32)"})
    del items[place]
    assert [one.tolist() for one in rest] == [one.tolist() for one in items]


def test_without_a_position_the_last_tensor_goes() -> None:
    given = {"input_sequence": [np.full(2, i, F) for i in range(3)], "position": None}
    found = values("onnx/SequenceErase-11", given, {"output_sequence": "seq(float32)"})
    assert [one.tolist() for one in found] == [[0, 0], [1, 1]]


X = np.arange(10, dtype=F).reshape(5, 2)


@pytest.mark.parametrize(
    ("length", "attributes", "expected"),
    [
        (None, {}, [X[i : i + 1] for i in range(5)]),
        (None, {"keepdims": 0}, list(X)),
        (None, {"axis": -1, "keepdims": 0}, [X[:, 0], X[:, 1]]),
        (2, {}, [X[:2], X[2:4], X[4:]]),  # "the last chunk alone may be smaller"
        (7, {}, [X]),
        (2, {"keepdims": 0}, [X[:2], X[2:4], X[4:]]),  # "if input split is specified, this attribute is ignored"
        ([4, 1], {"keepdims": 0}, [X[:4], X[4:]]),
        ([1, 1], {"axis": 1}, [X[:, :1], X[:, 1:]]),
    ],
)
def test_a_tensor_is_split_into_a_sequence_as_the_page_says(length, attributes, expected) -> None:
    given = {"input": X, "split": None if length is None else np.array(length, np.int64)}
    found = values("onnx/SplitToSequence-24", given, {"output_sequence": "seq(float32)"}, **attributes)
    assert [one.tolist() for one in found] == [one.tolist() for one in expected]


@pytest.mark.parametrize(("axis", "new_axis"), [(0, 0), (1, 0), (-1, 0), (0, 1), (1, 1), (2, 1), (-3, 1)])
def test_a_sequence_is_concatenated_or_stacked_as_numpy_does_it(axis, new_axis) -> None:
    given = {"input_sequence": [X, X + 10]}
    (found,) = values("onnx/ConcatFromSequence-11", given, {"concat_result": "float32"}, axis=axis, new_axis=new_axis)
    expected = (np.stack if new_axis else np.concatenate)([X, X + 10], axis)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("glob", "truth"),
    [
        ("18/*/empty", False),
        ("18/*/left-out", False),
        ("18/*/omitted", False),
        ("18/*/no-items", True),
        ("18/*/plain-no-items", True),
    ],
)
def test_an_optional_holds_something_even_if_that_is_empty(glob, truth) -> None:
    source = GeneratedCases()
    found = [source.case(text) for text in planned(source.library, Selection((f"onnx/OptionalHasElement-{glob}",)))]
    assert found
    for case in found:
        (option,) = case.expectation.options
        assert [bounds.value.tolist() for bounds in option.outputs] == [[truth]]
