"""The examples that the standard's pages print come out as they print them."""

import numpy as np
import pytest
from recorded import readings, values

F = np.float32
DATA = np.array([[1.0, 1.2], [2.3, 3.4], [4.5, 5.7]], F)


def text(*words):
    return np.array(words, object)


def test_gather_along_the_first_axis() -> None:
    (found,) = values("onnx/Gather-13", {"data": DATA, "indices": np.array([[0, 1], [1, 2]])}, {"output": "float32"})
    assert found.tolist() == [DATA[:2].tolist(), DATA[1:].tolist()]


def test_gather_along_the_second_axis() -> None:
    data = np.array([[1.0, 1.2, 1.9], [2.3, 3.4, 3.9], [4.5, 5.7, 5.9]], F)
    (found,) = values("onnx/Gather-13", {"data": data, "indices": np.array([[0, 2]])}, {"output": "float32"}, axis=1)
    assert found.tolist() == data[:, [0, 2]].reshape(3, 1, 2).tolist()


@pytest.mark.parametrize("version", [1, 10, 11, 13])
def test_slice_without_axes(version) -> None:
    data = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], F)
    window = {"starts": (0, 1), "ends": (-1, 1000)}
    inputs = {} if version == 1 else {name: np.array(numbers) for name, numbers in window.items()}
    attributes = window if version == 1 else {}
    (found,) = values(f"onnx/Slice-{version}", {"data": data, **inputs}, {"output": "float32"}, **attributes)
    assert found.tolist() == [[2, 3, 4]]


def test_slice_with_steps() -> None:
    data = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], F)
    window = {"starts": np.array([1, 0]), "ends": np.array([2, 3]), "axes": np.array([0, 1]), "steps": np.array([1, 2])}
    (found,) = values("onnx/Slice-13", {"data": data, **window}, {"output": "float32"})
    assert found.tolist() == [[5, 7]]


@pytest.mark.parametrize(
    ("mode", "pads", "expected"),
    [
        ("constant", (0, 2, 0, 0), [[0, 0, 1.0, 1.2], [0, 0, 2.3, 3.4], [0, 0, 4.5, 5.7]]),
        ("reflect", (0, 1, 0, 0), [[1.2, 1.0, 1.2], [3.4, 2.3, 3.4], [5.7, 4.5, 5.7]]),
        ("reflect", (0, 2, 0, 0), [[1.0, 1.2, 1.0, 1.2], [2.3, 3.4, 2.3, 3.4], [4.5, 5.7, 4.5, 5.7]]),
        ("edge", (0, 2, 0, 0), [[1.0, 1.0, 1.0, 1.2], [2.3, 2.3, 2.3, 3.4], [4.5, 4.5, 4.5, 5.7]]),
        (
            "wrap",
            (2, 1, 1, 1),
            [
                [3.4, 2.3, 3.4, 2.3],
                [5.7, 4.5, 5.7, 4.5],
                [1.2, 1.0, 1.2, 1.0],
                [3.4, 2.3, 3.4, 2.3],
                [5.7, 4.5, 5.7, 4.5],
                [1.2, 1.0, 1.2, 1.0],
            ],
        ),
    ],
)
def test_pad_in_every_mode(mode, pads, expected) -> None:
    (found,) = values("onnx/Pad-19", {"data": DATA, "pads": np.array(pads)}, {"output": "float32"}, mode=mode)
    assert found.tolist() == np.array(expected, F).tolist()


UNIQUE = {"Y": "float32", "indices": "int64", "inverse_indices": "int64", "counts": "int64"}


@pytest.mark.parametrize(
    ("x", "attributes", "expected"),
    [
        ([2, 1, 1, 3, 4, 3], {"sorted": 0}, ([2, 1, 3, 4], [0, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1])),
        ([[1, 3], [2, 3]], {"sorted": 1}, ([1, 2, 3], [0, 2, 1], [0, 2, 1, 2], [1, 1, 2])),
        ([[1, 0, 0], [1, 0, 0], [2, 3, 4]], {"axis": 0}, ([[1, 0, 0], [2, 3, 4]], [0, 2], [0, 0, 1], [2, 1])),
        (
            [[[1, 1], [0, 1], [2, 1], [0, 1]]] * 2,
            {"axis": 1},
            ([[[0, 1], [1, 1], [2, 1]]] * 2, [1, 0, 2], [1, 0, 2, 0], [2, 1, 1]),
        ),
    ],
)
def test_unique(x, attributes, expected) -> None:
    found = values("onnx/Unique-11", {"X": np.array(x, F)}, UNIQUE, **attributes)
    assert [one.tolist() for one in found] == [np.array(one).tolist() for one in expected]


def test_the_lower_index_comes_first_of_equal_elements() -> None:
    given = {"X": np.array([[3, 1, 3, 3, 2]], F), "K": np.array([3])}
    found = values("onnx/TopK-11", given, {"Values": "float32", "Indices": "int64"})
    assert [one.tolist() for one in found] == [[[3, 3, 3]], [[0, 2, 3]]]


def test_a_label_encoder_maps_texts_to_numbers() -> None:
    x = text("Dori", "Amy", "Amy", "Sally", "Sally")
    lists = {"keys_strings": ("Amy", "Sally"), "values_int64s": (5, 6), "default_int64": -1}
    for version in (2, 4):
        (found,) = values(f"onnx/LabelEncoder-{version}", {"X": x}, {"Y": "int64"}, **lists)
        assert found.tolist() == [-1, 5, 5, 6, 6]


def test_a_quotient_is_rounded_to_even_before_the_zero_point_is_added() -> None:
    x, outputs = np.array([0, 2, 3, 1000, -254, -1000], F), {"y": "uint8"}
    given = {"x": x, "y_scale": np.array(2, F), "y_zero_point": np.array(128, np.uint8)}
    (found,) = values("onnx/QuantizeLinear-10", given, outputs)
    assert found.tolist() == [128, 129, 130, 255, 1, 0]


def test_text_is_split_at_a_delimiter_and_filled_up() -> None:
    outputs = {"Y": "string", "Z": "int64"}
    y, z = values("onnx/StringSplit-20", {"X": text("a,b,,c", "x")}, outputs, delimiter=",")
    assert y.tolist() == [["a", "b", "", "c"], ["x", "", "", ""]]
    assert z.tolist() == [4, 1]


def test_text_is_split_at_runs_of_whitespace_without_a_delimiter() -> None:
    y, z = values("onnx/StringSplit-20", {"X": text(" hello  world ", "")}, {"Y": "string", "Z": "int64"})
    assert y.tolist() == [["hello", "world"], ["", ""]]
    assert z.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("version", "number", "type_", "expected"),
    [
        (19, 17, "float8e4m3fn", [448, 448, 448, -448, np.nan]),
        (19, 18, "float8e4m3fnuz", [240, 240, np.nan, -240, np.nan]),
        (24, 18, "float8e4m3fnuz", [240, 240, 240, -240, np.nan]),
        (19, 20, "float8e5m2fnuz", [448, 448, np.nan, -57344, np.nan]),
    ],
)
def test_what_float8_saturates_to_depends_on_the_version(version, number, type_, expected) -> None:
    x = np.array([464, 465, np.inf, -1e9, np.nan], F)
    (found,) = values(f"onnx/Cast-{version}", {"input": x}, {"output": type_}, to=number)
    assert np.array_equal(found, np.array(expected), equal_nan=True)


def test_a_missing_index_is_invalid_and_says_by_which_clause() -> None:
    given = {"data": DATA, "indices": np.array([3])}
    assert readings("onnx/Gather-13", given, {"output": "float32"}) == "index-range"


def test_softmax_of_version_1_sums_over_all_dimensions_from_the_axis_on() -> None:
    x = np.arange(8, dtype=F).reshape(2, 2, 2)
    early, late = (values(f"onnx/Softmax-{v}", {"input": x}, {"output": "float32"}, axis=1)[0] for v in (1, 13))
    assert early.sum((1, 2)) == pytest.approx([1, 1])
    assert late.sum(1) == pytest.approx(np.ones((2, 2)))


def test_the_first_lstm_page_leaves_open_how_the_state_is_multiplied() -> None:
    rng = np.random.default_rng(3)
    given = {"X": rng.random((2, 1, 2), F), "W": rng.random((1, 8, 2), F), "R": rng.random((1, 8, 2), F)}
    outputs = {"Y": "float32", "Y_h": None, "Y_c": None}
    early = readings("onnx/LSTM-1", given, outputs, output_sequence=1, hidden_size=2)
    later = readings("onnx/LSTM-7", given, outputs, hidden_size=2)
    assert {one.taken["recurrence-early"] for one in early} == {"transposed", "as-written"}
    assert all("recurrence-early" not in one.taken for one in later)
    assert np.array_equal(early[0].values[0], later[0].values[0])


@pytest.mark.parametrize(
    ("operator", "ports", "output", "kept", "flushed"),
    [
        ("onnx/NonZero-13", {"X": [0.0, 1e-40, np.nan]}, "Y", [[1, 2]], [[2]]),
        ("onnx/Unique-11", {"X": [0.0, 1e-40, 1.0]}, "Y", [0.0, F(1e-40), 1.0], [0.0, 1.0]),
        ("onnx/Equal-19", {"A": [1e-40], "B": [0.0]}, "C", [False], [True]),
    ],
)
def test_a_subnormal_element_is_zero_where_the_machine_flushes(operator, ports, output, kept, flushed) -> None:
    outputs = {"Y": "float32" if "Unique" in operator else "int64", "C": "bool"}
    extra = dict.fromkeys(("indices", "inverse_indices", "counts")) if "Unique" in operator else {}
    inputs = {name: np.array(numbers, F) for name, numbers in ports.items()}
    found = {
        one.taken["flush"]: one.values[0].tolist()
        for one in readings(operator, inputs, {output: outputs[output], **extra})
    }
    assert found == {"none": kept, "input-and-output": flushed}
