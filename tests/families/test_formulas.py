"""References agree with the same formulas written another way: loops over places, NumPy's functions, fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import readings, values

from opconform.cases.elements import element_type
from opconform.cases.program import Tensor
from opconform.generators.source import GeneratedCases

F = np.float32
FLOAT = {"output": "float32"}
PIECES = st.integers(-12, 12)


def drawn(*shape, seed=0, low=-1.0, high=1.0):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(F)


@given(st.integers(0, 6), PIECES, PIECES, st.integers(-4, 4).filter(bool))
def test_slice_is_the_slice_of_python(extent, start, end, step) -> None:
    data = np.arange(extent, dtype=F)
    window = {"starts": np.array([start]), "ends": np.array([end]), "axes": np.array([0]), "steps": np.array([step])}
    (found,) = values("onnx/Slice-13", {"data": data, **window}, FLOAT)
    assert found.tolist() == data[slice(start, end, step)].tolist()


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(st.integers(0, 6), min_size=4, max_size=4),
    st.sampled_from(["reflect", "edge", "wrap"]),
)
def test_pad_is_the_pad_of_numpy(rows, columns, pads, mode) -> None:
    data = np.arange(rows * columns, dtype=F).reshape(rows, columns)
    (found,) = values("onnx/Pad-19", {"data": data, "pads": np.array(pads)}, FLOAT, mode=mode)
    frame = [(pads[0], pads[2]), (pads[1], pads[3])]
    assert found.tolist() == np.pad(data, frame, mode=mode).tolist()


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0, math.inf]), min_size=1, max_size=9), st.booleans(), st.data())
def test_top_k_is_the_stable_sort_of_python(elements, largest, data) -> None:
    k = data.draw(st.integers(1, len(elements)))
    x, wanted = {"X": np.array(elements, F), "K": np.array([k])}, {"Values": "float32", "Indices": "int64"}
    found = values("onnx/TopK-11", x, wanted, largest=int(largest))
    order = sorted(range(len(elements)), key=lambda i: -elements[i] if largest else elements[i])[:k]
    assert [one.tolist() for one in found] == [[elements[i] for i in order], order]


@given(st.lists(st.integers(0, 3), min_size=0, max_size=9), st.booleans())
def test_unique_is_what_counting_gives(elements, ascending) -> None:
    outputs = {"Y": "int64", "indices": "int64", "inverse_indices": "int64", "counts": "int64"}
    y, first, inverse, counts = values(
        "onnx/Unique-11", {"X": np.array(elements, np.int64)}, outputs, sorted=int(ascending)
    )
    expected = sorted(set(elements)) if ascending else list(dict.fromkeys(elements))
    assert y.tolist() == expected
    assert first.tolist() == [elements.index(n) for n in expected]
    assert [expected[i] for i in inverse] == elements
    assert counts.tolist() == [elements.count(n) for n in expected]


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba", [(2, 3)]),
        ("aB", [(2, 3)]),
        ("ii", [(3, 3)]),
        ("ii->i", [(3, 3)]),
        ("iji->ji", [(3, 2, 3)]),
        ("iij->ij", [(3, 3, 2)]),
        ("ijj->ij", [(2, 3, 3)]),
        ("...ij,...jk->...ik", [(2, 1, 2, 3), (1, 5, 3, 2)]),
        ("...i,...i->...", [(2, 3), (1, 3)]),
        ("i...,i...", [(3, 2), (3, 2)]),
        ("bn,anm,bm->ba", [(2, 3), (4, 3, 5), (2, 5)]),
        (",->", [(), ()]),
        ("ij,jk->ik", [(2, 0), (0, 4)]),
    ],
)
def test_einsum_is_the_einsum_of_numpy(equation, shapes) -> None:
    arrays = [drawn(*shape, seed=i) for i, shape in enumerate(shapes)]
    (found,) = values("onnx/Einsum-12", {"Inputs": arrays}, {"Output": "float32"}, equation=equation)
    assert found == pytest.approx(np.einsum(equation, *(a.astype(float) for a in arrays)), abs=1e-12)


@pytest.mark.parametrize(
    ("groups", "strides", "dilations", "pads"),
    [(1, (1, 1), (1, 1), (0, 0, 0, 0)), (2, (2, 1), (1, 2), (1, 2, 0, 1)), (4, (1, 3), (2, 1), (2, 1, 2, 1))],
)
def test_convolution_is_the_sum_over_places(groups, strides, dilations, pads) -> None:
    x, w, b = drawn(2, 4, 6, 5), drawn(8, 4 // groups, 3, 2, seed=1), drawn(8, seed=2)
    told = {"group": groups, "strides": strides, "dilations": dilations, "pads": pads}
    (found,) = values("onnx/Conv-11", {"X": x, "W": w, "B": b}, {"Y": "float32"}, **told)
    framed = np.pad(x.astype(float), [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    for n, m, i, j in np.ndindex(*found.shape):
        total = float(b[m])
        for channel, p, q in np.ndindex(*w.shape[1:]):
            source = channel + m // (8 // groups) * (4 // groups)
            total += (
                w[m, channel, p, q]
                * framed[n, source, i * strides[0] + p * dilations[0], j * strides[1] + q * dilations[1]]
            )
        assert found[n, m, i, j] == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize(
    ("way", "extent", "kernel", "stride", "pads"),
    [
        ("SAME_UPPER", 5, 2, 1, (0, 1)),
        ("SAME_LOWER", 5, 2, 1, (1, 0)),
        ("SAME_UPPER", 8, 3, 2, (0, 1)),
        ("SAME_UPPER", 7, 1, 3, (0, 0)),
    ],
)
def test_automatic_padding_puts_the_odd_zero_where_its_name_says(way, extent, kernel, stride, pads) -> None:
    x, w = drawn(1, 1, extent), drawn(1, 1, kernel, seed=1)
    found = values("onnx/Conv-11", {"X": x, "W": w}, {"Y": "float32"}, auto_pad=way, strides=(stride,))
    padded = values("onnx/Conv-11", {"X": x, "W": w}, {"Y": "float32"}, pads=pads, strides=(stride,))
    assert found[0].tolist() == padded[0].tolist()
    assert found[0].shape[2] == -(-extent // stride)


def test_batch_normalization_trains_by_the_population_variance() -> None:
    x = np.arange(1, 13, dtype=F).reshape(2, 2, 3)
    given = {"X": x, "scale": np.array([2, 0.5], F), "B": np.array([1, -1], F)}
    given |= {"input_mean": np.array([4, 8], F), "input_var": np.array([2, 1], F)}
    outputs = {"Y": "float32", "running_mean": "float32", "running_var": "float32"}
    y, means, variances = values("onnx/BatchNormalization-15", given, outputs, training_mode=1, momentum=0.5)
    for channel in range(2):
        numbers = [Fraction(int(v)) for v in x[:, channel].flat]
        mean = sum(numbers) / len(numbers)
        variance = sum((n - mean) ** 2 for n in numbers) / len(numbers)
        assert means[channel] == pytest.approx(float(Fraction(float(given["input_mean"][channel])) / 2 + mean / 2))
        assert variances[channel] == pytest.approx(
            float(Fraction(float(given["input_var"][channel])) / 2 + variance / 2)
        )
        root = math.sqrt(variance + Fraction(float(F(1e-5))))
        expected = [
            float(n - mean) / root * float(given["scale"][channel]) + float(given["B"][channel]) for n in numbers
        ]
        assert y[:, channel].reshape(-1) == pytest.approx(expected, rel=1e-12)


def _sigmoid(v):
    return 1 / (1 + math.exp(-v))


@pytest.mark.parametrize("way", ["forward", "reverse", "bidirectional"])
def test_lstm_is_the_loop_over_its_equations(way) -> None:
    steps, batch, size, hidden, directions = 3, 2, 2, 2, 2 if way == "bidirectional" else 1
    x, lens = drawn(steps, batch, size), np.array([3, 2], np.int32)
    parts = {"W": (4 * hidden, size), "R": (4 * hidden, hidden), "B": (8 * hidden,), "P": (3 * hidden,)}
    weights = {name: drawn(directions, *shape, seed=i) for i, (name, shape) in enumerate(parts.items())}
    states = {name: drawn(directions, batch, hidden, seed=9 + i) for i, name in enumerate(("initial_h", "initial_c"))}
    outputs = {"Y": "float32", "Y_h": "float32", "Y_c": "float32"}
    y, y_h, y_c = values("onnx/LSTM-14", {"X": x, "sequence_lens": lens, **weights, **states}, outputs, direction=way)
    for d, n in itertools.product(range(directions), range(batch)):
        w, r, b, p = (weights[name][d].astype(float) for name in ("W", "R", "B", "P"))
        h, c = (states[name][d, n].astype(float) for name in ("initial_h", "initial_c"))
        places = range(lens[n])
        for t in reversed(places) if way == "reverse" or d else places:
            z = w @ x[t, n] + r @ h + b[: 4 * hidden] + b[4 * hidden :]
            i, o, f, g = (z[k * hidden : (k + 1) * hidden] for k in range(4))
            i, f = np.vectorize(_sigmoid)(i + p[:hidden] * c), np.vectorize(_sigmoid)(f + p[2 * hidden :] * c)
            c = f * c + i * np.tanh(g)
            h = np.vectorize(_sigmoid)(o + p[hidden : 2 * hidden] * c) * np.tanh(c)
            assert y[t, d, n] == pytest.approx(h, abs=1e-12)
        assert y_h[d, n] == pytest.approx(h, abs=1e-12)
        assert y_c[d, n] == pytest.approx(c, abs=1e-12)
        assert not y[lens[n] :, d, n].any()


def test_lstm_with_the_batch_first_is_the_same_transposed() -> None:
    given = {"X": drawn(3, 2, 2), "W": drawn(1, 8, 2, seed=1), "R": drawn(1, 8, 2, seed=2)}
    outputs = {"Y": "float32", "Y_h": "float32", "Y_c": "float32"}
    y, y_h, _ = values("onnx/LSTM-14", given, outputs)
    first, first_h, _ = values("onnx/LSTM-14", given | {"X": given["X"].transpose(1, 0, 2)}, outputs, layout=1)
    assert first.tolist() == y.transpose(2, 0, 1, 3).tolist()
    assert first_h.tolist() == y_h.transpose(1, 0, 2).tolist()


def _source(place, extent, size, scale, mode):
    """Where a place of the output lies, by the page's formulas."""
    half = Fraction(1, 2)
    return {
        "half_pixel": lambda: (place + half) / scale - half,
        "asymmetric": lambda: place / scale,
        "align_corners": lambda: Fraction(place * (extent - 1), size - 1),
        "pytorch_half_pixel": lambda: (place + half) / scale - half if size > 1 else Fraction(0),
    }[mode]()


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_crops_by_numbers_whose_fractions_have_more_than_64_bits(mode) -> None:
    x, roi = drawn(1, 1, 5), np.array([0, 0, 1e-30, 1, 1, 1], np.float32)
    given = {"X": x, "roi": roi, "sizes": np.array([1, 1, 5])}
    told = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize"}
    (found,) = values("onnx/Resize-13", given, {"Y": "float32"}, **told)
    np.testing.assert_allclose(found, x, atol=1e-6)


@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
@pytest.mark.parametrize("size", [3, 7, 10])
def test_resize_interpolates_between_the_neighbours_of_a_place(mode, size) -> None:
    x, extent = drawn(1, 1, 5), 5
    given, told = {"X": x, "sizes": np.array([1, 1, size])}, {"coordinate_transformation_mode": mode}
    (linear,) = values("onnx/Resize-13", given, {"Y": "float32"}, mode="linear", **told)
    (cubic,) = values("onnx/Resize-13", given, {"Y": "float32"}, mode="cubic", **told)
    row = [Fraction(float(v)) for v in x[0, 0]]
    inside = lambda place: row[min(max(place, 0), extent - 1)]  # noqa: E731
    a = Fraction(-3, 4)
    for place in range(size):
        at = _source(place, extent, size, Fraction(size, extent), mode)
        low = math.floor(at)
        near = at - low
        assert linear[0, 0, place] == pytest.approx(float(inside(low) * (1 - near) + inside(low + 1) * near), abs=1e-6)
        keys = [
            ((a * (near + 1) - 5 * a) * (near + 1) + 8 * a) * (near + 1) - 4 * a,
            ((a + 2) * near - (a + 3)) * near * near + 1,
            ((a + 2) * (1 - near) - (a + 3)) * (1 - near) ** 2 + 1,
            ((a * (2 - near) - 5 * a) * (2 - near) + 8 * a) * (2 - near) - 4 * a,
        ]
        total = sum(inside(low - 1 + k) * weight for k, weight in enumerate(keys))
        assert cubic[0, 0, place] == pytest.approx(float(total), abs=1e-6)


def test_a_box_whose_overlap_is_the_threshold_is_kept() -> None:
    boxes = np.array([[[0, 0, 4, 4], [0, 2, 4, 4], [0, 1, 4, 4]]], F)  # overlaps of 1/2 and 3/4 with the first
    scores = np.array([[[0.875, 0.75, 0.5]]], F)
    given = {
        "boxes": boxes,
        "scores": scores,
        "max_output_boxes_per_class": np.array(9),
        "iou_threshold": np.array(0.5, F),
    }
    (found,) = values("onnx/NonMaxSuppression-11", given, {"selected_indices": "int64"})
    assert found.tolist() == [[0, 0, 0], [0, 0, 1]]


def test_nothing_is_selected_without_a_maximum() -> None:
    given = {"boxes": np.array([[[0, 0, 4, 4]]], F), "scores": np.array([[[0.5]]], F)}
    (found,) = values("onnx/NonMaxSuppression-11", given, {"selected_indices": "int64"})
    assert found.shape == (0, 3)


def test_blocks_have_a_scale_each_the_last_one_shorter() -> None:
    x, scale = np.arange(10, dtype=F).reshape(2, 5), np.array([[1, 2, 4], [8, 16, 32]], F)
    (found,) = values("onnx/QuantizeLinear-21", {"x": x, "y_scale": scale}, {"y": "uint8"}, axis=1, block_size=2)
    whole = np.repeat(scale, 2, axis=1)[:, :5]
    assert found.tolist() == np.rint(x / whole).tolist()


@pytest.mark.parametrize("type_", ["float16", "bfloat16"])
def test_a_narrow_scale_rounds_the_quotient_and_no_zero_point(type_: str) -> None:
    dtype = element_type(type_).dtype
    x, scale = np.arange(-60, 61, 3).astype(dtype), np.array(0.5, dtype)
    given = {"x": x, "y_scale": scale, "y_zero_point": np.array(32767, np.uint16)}
    for found in readings("onnx/QuantizeLinear-21", given, {"y": "uint16"}):
        assert found.values[0].reshape(-1).tolist() == [32767 + 2 * n for n in range(-60, 61, 3)]
        assert not any(found.open)


@pytest.mark.parametrize(("version", "known"), [(1, 2), (6, 2), (7, 0)])
def test_broadcasting_of_old_needs_an_attribute(version, known) -> None:
    given = {"A": drawn(2, 3), "B": drawn(3)}
    found = readings(f"onnx/Add-{version}", given, {"C": "float32"})
    assert (found == "legacy-same-shape") is bool(known)


def test_clip_keeps_infinities_or_not_where_a_bound_is_missing() -> None:
    given = {"input": np.array([-math.inf, 5.0], F), "max": np.array(1, F)}
    found = readings("onnx/Clip-13", given, FLOAT)
    limits = {one.taken["bound-missing"]: one.values[0][0] for one in found}
    assert limits == {"type-limit": -np.finfo(F).max, "unbounded": -math.inf}


@given(
    st.floats(2.0**-130, 2.0**127, width=32).filter(bool),
    st.sampled_from([("up", True), ("down", True), ("nearest", False), ("nearest", True)]),
)
def test_a_number_becomes_the_power_of_two_that_the_mode_says(number, way) -> None:
    mode, saturate = way
    x, smallest = np.array([number], np.float32), Fraction(2) ** -127
    powers = [Fraction(2) ** e for e in range(-127, 128)]
    exact = Fraction(float(x[0]))
    below = max((p for p in powers if p <= exact), default=None)
    above = min((p for p in powers if p >= exact), default=None)
    (found,) = values("onnx/Cast-24", {"input": x}, {"output": "float8e8m0"}, to=24, round_mode=mode, saturate=saturate)
    if below is None and way == ("nearest", False):
        assert np.isnan(found).all()
    elif below is not None and above is not None:
        nearer = above if exact - below >= above - exact else below
        assert float(found[0]) == float({"up": above, "down": below, "nearest": nearer}[mode])
    elif way == ("up", True):
        assert float(found[0]) == float(smallest)


def test_an_infinity_is_the_largest_number_of_every_float8_type() -> None:
    x = np.array([math.inf, -math.inf, 1e9], np.float32)
    for name, largest in (
        ("float8e4m3fn", 448),
        ("float8e4m3fnuz", 240),
        ("float8e5m2", 57344),
        ("float8e5m2fnuz", 57344),
    ):
        (found,) = values("onnx/Cast-24", {"input": x}, {"output": name}, to=17)
        assert found.astype(float).tolist() == [largest, -largest, largest]


ELEMENTS = st.integers(-8, 8).map(lambda n: n / 2)


@given(st.lists(ELEMENTS, min_size=1, max_size=6), ELEMENTS, ELEMENTS)
def test_clip_is_the_middle_of_three(elements, low, high) -> None:
    given = {"input": np.array(elements, F), "min": np.array(low, F), "max": np.array(high, F)}
    (found,) = values("onnx/Clip-13", given, FLOAT)
    assert found.tolist() == [min(max(x, low), high) for x in elements]


def test_a_zero_may_become_the_other_zero_that_is_a_bound() -> None:
    given = {"input": np.array([-0.0, 1.0], F), "min": np.array(0, F)}
    (one,) = [r for r in readings("onnx/Clip-13", given, FLOAT) if r.taken.get("bound-missing") != "unbounded"]
    assert one.values[0].tolist() == [0, 1]


@given(
    st.lists(st.integers(-(1 << 12), 1 << 12), min_size=1, max_size=6),
    st.sampled_from([0.25, 0.5, 2.0, 8.0]),
    st.sampled_from([("int8", -128, 127), ("uint8", 0, 255), ("int4", -8, 7), ("uint2", 0, 3), ("uint16", 0, 65535)]),
    st.data(),
)
def test_a_quotient_is_rounded_to_even_then_moved_then_saturated(elements, scale, target, data) -> None:
    name, smallest, largest = target
    zero = data.draw(st.integers(smallest, largest))
    given = {
        "x": np.array(elements, F) / 4,
        "y_scale": np.array(scale, F),
        "y_zero_point": np.array(zero).astype(element_type(name).dtype),
    }
    (found,) = values("onnx/QuantizeLinear-25", given, {"y": name})
    quotients = [Fraction(n, 4) / Fraction(scale) for n in elements]
    assert found.astype(int).tolist() == [min(max(round(q) + zero, smallest), largest) for q in quotients]


@given(st.text("ab ,\t\n", max_size=8), st.sampled_from([None, ",", "ab", " "]), st.integers(0, 3) | st.none())
def test_text_is_split_as_python_splits_it(text, delimiter, most) -> None:
    told = {name: v for name, v in (("delimiter", delimiter), ("maxsplit", most)) if v is not None}
    found = readings("onnx/StringSplit-20", {"X": np.array([text], object)}, {"Y": "string", "Z": "int64"}, **told)
    pieces = text.split(delimiter, -1 if most is None else most)
    assert pieces in [one.values[0][0].tolist() for one in found]
    assert len(pieces) in [int(one.values[1][0]) for one in found]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_is_the_take_of_numpy(axis) -> None:
    data, indices = drawn(3, 4, 2), np.array([[0, -1, 1], [1, 1, -2]])
    (found,) = values("onnx/Gather-13", {"data": data, "indices": indices}, FLOAT, axis=axis)
    assert found.tolist() == np.take(data, indices, axis=axis).tolist()


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 0)])
def test_non_zero_lists_places_row_by_row(shape) -> None:
    x = np.random.default_rng(0).integers(0, 2, shape).astype(F)
    (found,) = values("onnx/NonZero-13", {"X": x}, {"Y": "int64"})
    places = [place for place in np.ndindex(*shape) if x[place]]
    assert found.shape == (len(shape), len(places))
    assert found.T.tolist() == [list(place) for place in places]


@pytest.mark.parametrize(("axis", "version", "joined"), [(1, 13, (1,)), (-1, 13, (2,)), (1, 11, (1, 2)), (2, 1, (2,))])
def test_softmax_is_the_share_of_an_exponential(axis, version, joined) -> None:
    x = drawn(2, 3, 4, low=-5, high=5)
    (found,) = values(f"onnx/Softmax-{version}", {"input": x}, FLOAT, axis=axis)
    powers = np.vectorize(lambda v: math.exp(float(v)))(x)
    assert found == pytest.approx(powers / powers.sum(joined, keepdims=True), rel=1e-12)


def test_batch_normalization_uses_the_statistics_that_are_given() -> None:
    x, names = drawn(2, 3, 4), ("scale", "B", "mean", "var")
    given = {name: drawn(3, seed=i, low=0.5, high=2) for i, name in enumerate(names)}
    (y,) = values("onnx/BatchNormalization-9", {"X": x, **given}, {"Y": "float32"}, epsilon=0.25)[:1]
    for n, c, i in np.ndindex(*x.shape):
        scale, bias, mean, variance = (float(given[name][c]) for name in names)
        expected = (float(x[n, c, i]) - mean) / math.sqrt(variance + 0.25) * scale + bias
        assert y[n, c, i] == pytest.approx(expected, rel=1e-12)


def test_an_output_without_a_window_is_empty_or_refused() -> None:
    x, w = drawn(1, 1, 2), drawn(1, 1, 3)
    found = readings("onnx/Conv-11", {"X": x, "W": w}, {"Y": "float32"})
    assert {one.kind for one in found} == {"values", "rejected"}
    assert [one.values[0].shape for one in found if one.values] == [(1, 1, 0)]
    assert readings("onnx/Conv-11", {"X": x, "W": drawn(1, 1, 5)}, {"Y": "float32"}) == "window-fits"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {-1.0}),
        ({"default_int64": 9}, {9, -1}),
        ({"default_tensor": Tensor.of(np.array([5], np.int64))}, {5}),
    ],
)
def test_a_default_that_has_the_type_but_another_name_may_count_or_not(given, expected) -> None:
    tables = {"keys_int64s": (1,), "values_tensor": Tensor.of(np.array([7], np.int64))}
    found = readings("onnx/LabelEncoder-4", {"X": np.array([1, 2])}, {"Y": "int64"}, **tables, **given)
    assert {int(one.values[0][1]) for one in found} == expected
    assert all(one.values[0][0] == 7 for one in found)


def test_a_value_to_pad_with_may_have_rank_1() -> None:
    given = {"data": np.ones(2, F), "pads": np.array([1, 0])}
    found = readings("onnx/Pad-13", given | {"constant_value": np.array([7], F)}, FLOAT)
    assert {one.taken["value-rank"] for one in found} == {"taken", "rejected"}
    assert [one.values[0].tolist() for one in found if one.values] == [[7, 1, 1]]
    assert readings("onnx/Pad-13", given | {"constant_value": np.array([7, 8], F)}, FLOAT) == "value-scalar"


def test_a_state_may_round_away_from_one_a_little_at_each_step() -> None:
    case = "onnx/GRU-7/float32,int32/3x2x4,1x9x4,1x9x3/hidden_size=3;outputs=Y,Y_h/large"
    outputs = next(GeneratedCases().batches([case])).expectation.options[0].outputs
    lowest = min(float(bounds.lower[bounds.value == 0].min()) for bounds in outputs[:1])  # a gate that is open
    assert -1.0001 < lowest < -1 - 3 * 2**-23
