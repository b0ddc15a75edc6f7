"""OpenVINO's elementwise operations, recurrent layers and others, against loops and their pages' formulas."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from recorded import readings, values

F = np.float32
NUMBERS = np.random.default_rng(7)


def drawn(*shape):
    return NUMBERS.integers(-8, 9, shape).astype(F) / 4


def taken(found, silence):
    return {one.taken.get(silence): one.values[0].tolist() for one in found}


@pytest.mark.parametrize(
    ("operator", "rule", "a", "b", "clause"),
    [
        ("Add-1", "numpy", (2, 3), (3, 2), "broadcast"),
        ("Add-1", "none", (2, 3), (1, 3), "no-broadcast"),
        ("Add-1", "pdpd", (1, 3), (2, 3), "pdpd"),
        ("Add-1", "other", (2, 3), (2, 3), "rule-known"),
        ("Maximum-1", "pdpd", (2, 3), (2, 3), "rule-known"),
        ("SquaredDifference-1", "numpy", (2, 3), (4,), "broadcast"),
    ],
)
def test_shapes_that_do_not_broadcast_by_the_rule_break_its_clause(operator, rule, a, b, clause) -> None:
    given = {"A": np.ones(a, F), "B": np.ones(b, F)}
    assert readings(f"openvino/{operator}", given, {"C": "float32"}, auto_broadcast=rule) == clause


def test_cond_of_select_stretches_to_the_others_and_not_they_to_it() -> None:
    then, else_ = np.array([[1, 2, 3]], F), np.array([[4], [5]], F)
    given = {"cond": np.array([True, False, True]), "then": then, "else": else_}
    (found,) = values("openvino/Select-1", given, {"output": "float32"})
    assert found.tolist() == [[1, 4, 3], [1, 5, 3]]
    given |= {"then": then[0], "else": then[0], "cond": np.array([[True] * 3] * 2)}
    assert readings("openvino/Select-1", given, {"output": "float32"}) == "condition"


def test_divide_rounds_whole_numbers_down_unless_told_otherwise() -> None:
    given = {"A": np.array([-7, 7, -8, 5], np.int32), "B": np.array([2, -2, 4, 2], np.int32)}
    (found,) = values("openvino/Divide-1", given, {"C": "int32"})
    assert found.tolist() == [-4, -4, -2, 2]
    regular = readings("openvino/Divide-1", given, {"C": "int32"}, m_pythondiv=False)
    assert taken(regular, "regular") == {"toward-zero": [-3, -3, -2, 2], "nearest-even": [-4, -4, -2, 2]}


def test_the_remainder_has_the_sign_that_its_page_says() -> None:
    given = {"A": np.array([-7, 7, -7, 7], np.int32), "B": np.array([3, -3, -3, 3], np.int32)}
    assert values("openvino/Mod-1", given, {"C": "int32"})[0].tolist() == [-1, 1, -1, 1]
    assert values("openvino/FloorMod-1", given, {"C": "int32"})[0].tolist() == [2, -2, -1, 1]


def test_a_signed_shift_to_the_left_that_loses_bits_is_open_and_an_unsigned_one_is_not() -> None:
    given = {"X": np.array([1, 64, -64, -65, 3], np.int8), "Y": np.array([6, 1, 1, 1, 8], np.int8)}
    (found,) = readings("openvino/BitwiseLeftShift-15", given, {"Z": "int8"})
    assert found.open == [False, True, False, True, True]
    given = {"X": np.array([255, 129], np.uint8), "Y": np.array([4, 1], np.uint8)}
    (found,) = readings("openvino/BitwiseLeftShift-15", given, {"Z": "uint8"})
    assert (found.open, found.values[0].tolist()) == ([False, False], [240, 2])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, h, s, weights, order):
    """The states of one sequence, step by step: x: [L, I]; w: [4 H, I] with gates in this order."""
    (w, r, b), size, states = weights, len(h), []
    for step in x:
        z = w @ step + r @ h + b
        gates = {gate: z[n * size : (n + 1) * size] for n, gate in enumerate(order)}
        s = sigmoid(gates["f"]) * s + sigmoid(gates["i"]) * np.tanh(gates["c"])
        h = sigmoid(gates["o"]) * np.tanh(s)
        states.append(h)
    return np.array(states), h, s


@pytest.mark.parametrize("order", [None, "icof", "ifco", "iofc"])
def test_lstm_cell_has_the_gates_of_its_page_or_of_weights_format(order) -> None:
    x, h, s, w, r, b = drawn(1, 3), drawn(1, 2), drawn(1, 2), drawn(8, 3), drawn(8, 2), drawn(8)
    given = {"X": x, "initial_hidden_state": h, "initial_cell_state": s, "W": w, "R": r, "B": b}
    operator, named = ("openvino/LSTMCell-1", {"weights_format": order}) if order else ("openvino/LSTMCell-4", {})
    found = values(operator, given, {"Ho": "float32", "Co": "float32"}, hidden_size=2, **named)
    _, state, cell = lstm(x, h[0], s[0], (w, r, b), order or "fico")
    assert np.allclose(found[0], state)
    assert np.allclose(found[1], cell)


def test_each_direction_of_lstm_sequence_walks_over_the_length_of_the_sequence() -> None:
    x, w, r, b = drawn(2, 3, 2), drawn(2, 8, 2), drawn(2, 8, 2), drawn(2, 8)
    h, s, lengths = drawn(2, 2, 2), drawn(2, 2, 2), np.array([2, 3])
    given = {"X": x, "initial_hidden_state": h, "initial_cell_state": s, "sequence_lengths": lengths}
    given |= {"W": w, "R": r, "B": b}
    wanted = {"Y": "float32", "Ho": "float32", "Co": "float32"}
    y, last, cell = values("openvino/LSTMSequence-5", given, wanted, hidden_size=2, direction="bidirectional")
    for n, d in itertools.product(range(2), range(2)):
        line = x[n, : lengths[n]]
        states, state, end = lstm(line[::-1] if d else line, h[n, d], s[n, d], (w[d], r[d], b[d]), "fico")
        assert np.allclose(last[n, d], state)
        assert np.allclose(cell[n, d], end)
        assert np.allclose(y[n, d, : lengths[n]], states[::-1] if d else states)


def test_a_sequence_knows_three_activations_and_a_positive_clip() -> None:
    given = {"X": drawn(1, 2, 3), "initial_hidden_state": drawn(1, 1, 2), "sequence_lengths": np.array([2])}
    given |= {"W": drawn(1, 2, 3), "R": drawn(1, 2, 2), "B": drawn(1, 2)}
    usual = {"hidden_size": 2, "direction": "forward"}

    def clause(**attributes):
        return readings("openvino/RNNSequence-5", given, {"Y": "float32", "Ho": "float32"}, **usual | attributes)

    assert clause(activations=("sinh",)) == "activations-known"
    assert clause(activations=("tanh", "tanh")) == "activations-known"
    assert clause(clip=-1.0) == "clip-positive"
    assert not isinstance(clause(activations=("relu",), clip=1.0), str)


@pytest.mark.parametrize(("axes", "size"), [((1,), 3), ((2, 0), 3), ((0, 1, 2), 5)])
def test_lrn_sums_the_squares_around_each_element(axes, size) -> None:
    x, half = drawn(3, 4, 5), size // 2
    total = np.zeros(x.shape)
    for place in np.ndindex(*x.shape):
        region = tuple(
            slice(max(0, at - half), at + half + 1) if axis in axes else slice(at, at + 1)
            for axis, at in enumerate(place)
        )
        total[place] = (x[region] ** 2).sum()
    numbers = {"alpha": 0.5, "beta": 0.75, "bias": 2.0}
    given = {"data": x, "axes": np.array(axes)}
    (found,) = values("openvino/LRN-1", given, {"output": "float32"}, size=size, **numbers)
    assert np.allclose(found, x / (2.0 + 0.5 / size ** len(axes) * total) ** 0.75)


def test_the_variance_of_mvn_is_a_mean_or_the_sum_of_its_formula() -> None:
    given = {"data": np.array([[1, 3, 5]], F), "axes": np.array([1])}
    numbers = {"normalize_variance": True, "eps": 1.0, "eps_mode": "outside_sqrt"}
    found = taken(readings("openvino/MVN-6", given, {"output": "float32"}, **numbers), "variance")
    assert np.allclose(found["sum"], [[-2 / (8**0.5 + 1), 0, 2 / (8**0.5 + 1)]])
    assert np.allclose(found["mean"], [[-2 / ((8 / 3) ** 0.5 + 1), 0, 2 / ((8 / 3) ** 0.5 + 1)]])


def test_normalize_l2_without_axes_has_two_meanings_on_its_page() -> None:
    given = {"data": np.array([-2, 0, 3], F), "axes": np.array([], np.int64)}
    found = taken(readings("openvino/NormalizeL2-1", given, {"output": "float32"}, eps=1.0, eps_mode="max"), "no-axes")
    assert found == {"formula": [-1, 0, 1], "one": [1, 0, 1]}


def test_fake_quantize_of_its_page() -> None:
    x = np.array([-2, -1, -0.9, -0.2, 0.3, 1, 1.1], F)
    ends = {"input_low": -1, "input_high": 1, "output_low": 0, "output_high": 6}
    given = {"X": x} | {name: np.array(end, F) for name, end in ends.items()}
    (found,) = values("openvino/FakeQuantize-1", given, {"output": "float32"}, levels=4)
    assert found.tolist() == [0, 0, 0, 2, 4, 6, 6]
    given |= {"input_low": np.array([0.3] * 7, F), "input_high": np.array(0.3, F)}
    (found,) = values("openvino/FakeQuantize-1", given, {"output": "float32"}, levels=2)
    assert found.tolist() == [0, 0, 0, 0, 0, 6, 6]


def test_avg_pool_counts_the_padding_unless_it_is_excluded() -> None:
    given = {"data": np.array([[[2, 4, 6]]], F)}
    windows = {"kernel": (2,), "strides": (1,), "pads_begin": (1,), "pads_end": (0,)}
    wanted = {"output": "float32"}
    assert values("openvino/AvgPool-14", given, wanted, **windows | {"exclude-pad": True})[0].tolist() == [[[2, 3, 5]]]
    assert values("openvino/AvgPool-14", given, wanted, **windows | {"exclude-pad": False})[0].tolist() == [[[1, 3, 5]]]


def test_each_group_of_filters_sees_its_channels() -> None:
    data, filters = drawn(1, 4, 5), drawn(2, 3, 2, 2)
    windows = {"strides": (1,), "dilations": (1,), "pads_begin": (0,), "pads_end": (0,)}
    given = {"data": data, "filters": filters}
    (found,) = values("openvino/GroupConvolution-1", given, {"output": "float32"}, **windows)
    for g, m, at in itertools.product(range(2), range(3), range(4)):
        assert found[0, 3 * g + m, at] == (data[0, 2 * g : 2 * g + 2, at : at + 2] * filters[g, m]).sum()


@pytest.mark.parametrize(
    ("shape", "way", "expected"),
    [
        (None, "explicit", [1, 10, 102, 20, 203, 30, 300]),
        (5, "valid", [10, 102, 20, 203, 30]),
        (9, "explicit", [0, 1, 10, 102, 20, 203, 30, 300, 0]),
        (6, "explicit", [1, 10, 102, 20, 203, 30]),
    ],
)
def test_output_shape_cuts_or_frames_the_transposed_convolution(shape, way, expected) -> None:
    given = {"data": np.array([[[1, 2, 3]]], F), "filters": np.array([[[1, 10, 100]]], F)}
    given |= {"output_shape": None if shape is None else np.array([shape])}
    windows = {"strides": (2,), "dilations": (1,), "pads_begin": (0,), "pads_end": (0,), "auto_pad": way}
    (found,) = values("openvino/ConvolutionBackpropData-1", given, {"output": "float32"}, **windows)
    assert found.tolist() == [[expected]]


def test_an_odd_padding_is_cut_off_by_the_formula_or_by_the_words() -> None:
    given = {"data": np.array([[[1, 2]]], F), "filters": np.array([[[1, 10]]], F), "output_shape": np.array([2])}
    windows = {"strides": (1,), "dilations": (1,), "pads_begin": (0,), "pads_end": (0,), "auto_pad": "same_upper"}
    found = readings("openvino/ConvolutionBackpropData-1", given, {"output": "float32"}, **windows)
    assert taken(found, "odd-padding") == {"formula": [[[12, 20]]], "words": [[[1, 12]]]}
