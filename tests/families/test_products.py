"""Products of matrices and convolutions come out as loops over fractions have them."""

from fractions import Fraction

import numpy as np
import pytest
from recorded import readings, values

F = np.float32


def of_eighths(*shape, seed=0):
    """Numbers with few bits, so that every sum of their products is exact."""
    return np.asarray(np.random.default_rng(seed).integers(-16, 17, shape) / 8, F)


def test_a_vector_is_a_row_on_the_left_and_a_column_on_the_right() -> None:
    a, b = of_eighths(4), of_eighths(2, 4, 3, seed=1)
    for x, y in ((a, b), (b.transpose(0, 2, 1).copy(), a), (a, a), (b[:1], b[0].T.copy()[None])):
        (found,) = values("onnx/MatMul-13", {"A": x, "B": y}, {"Y": "float32"})
        assert np.array_equal(found, np.matmul(x, y))
        assert found.shape == np.matmul(x, y).shape


@pytest.mark.parametrize(
    ("a", "b", "clause"),
    [((), (1, 2), "scalar"), ((2, 3), (2, 3), "inner"), ((2, 2, 3), (3, 3, 2), "batches")],
)
def test_what_numpy_refuses_to_multiply_is_invalid(a, b, clause) -> None:
    given = {"A": np.zeros(a, F), "B": np.zeros(b, F)}
    assert readings("onnx/MatMul-1", given, {"Y": "float32"}) == clause
    with pytest.raises(ValueError, match="operand"):
        np.matmul(given["A"], given["B"])


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 1), (2, 3), None])
def test_gemm_is_its_formula_in_fractions(shape) -> None:
    a, b, addend = of_eighths(4, 2), of_eighths(3, 4, seed=1), None if shape is None else of_eighths(*shape, seed=2)
    factors = {"alpha": -1.5, "beta": 0.25, "transA": 1, "transB": 1}
    (found,) = values("onnx/Gemm-11", {"A": a, "B": b, "C": addend}, {"Y": "float32"}, **factors)
    more = np.broadcast_to(0.0 if addend is None else addend, (2, 3))
    for i in range(2):
        for j in range(3):
            total = sum(Fraction(float(a[k, i])) * Fraction(float(b[j, k])) for k in range(4))
            assert Fraction(float(found[i, j])) == Fraction(-3, 2) * total + Fraction(float(more[i, j])) / 4


def test_sums_that_begin_with_the_third_matrix_are_within_the_bound_of_gemm() -> None:
    rng = np.random.default_rng(5)
    a, b, c = (rng.uniform(-1, 1, shape).astype(F) for shape in ((3, 9), (9, 4), (3, 4)))
    c *= F(1000)
    total = c.copy()
    for k in range(9):
        total = total + a[:, k : k + 1] * b[k]
    (reading,) = readings("onnx/Gemm-13", {"A": a, "B": b, "C": c}, {"Y": "float32"})
    assert (reading.lower[0] <= total).all()
    assert (total <= reading.upper[0]).all()
    late = a @ b + c
    assert (reading.lower[0] <= late).all()
    assert (late <= reading.upper[0]).all()
    assert not ((reading.lower[0] <= (late - c) + c * F(1.0001)) & (late <= reading.upper[0])).all()


def test_a_factor_of_zero_leaves_open_whether_infinities_are_read() -> None:
    a = np.array([[np.inf, 1.0]], F)
    given = {"A": a, "B": np.ones((2, 1), F), "C": np.ones((1, 1), F)}
    found = readings("onnx/Gemm-7", given, {"Y": "float32"}, alpha=0.0)
    assert [float(one.values[0][0, 0]) for one in found if one.taken["scaled-by-zero"] == "zero"] == [1.0]
    assert any(np.isnan(one.values[0][0, 0]) for one in found)


def test_an_early_gemm_stretches_its_third_matrix_only_where_broadcast_says_so() -> None:
    given = {"A": np.ones((2, 3), F), "B": np.ones((3, 4), F), "C": np.ones(4, F)}
    assert readings("onnx/Gemm-6", given, {"Y": "float32"}) == "same-shape"
    assert values("onnx/Gemm-6", given, {"Y": "float32"}, broadcast=1)[0].tolist() == [[4.0] * 4] * 2
    column = given | {"C": np.ones((2, 1), F)}
    found = readings("onnx/Gemm-6", column, {"Y": "float32"}, broadcast=1)
    assert {one.taken["stretched-otherwise"] for one in found} == {"as-numpy", "rejected"}


SCALES = {"a_scale": np.array(0.5, F), "b_scale": np.array([0.25, 0.5], F), "y_scale": np.array(2.0, F)}


def rounded(number: Fraction) -> int:
    return round(number)  # ties to even, as Python has it


def test_a_product_of_codes_is_rounded_to_even_before_its_zero_point_is_added() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 256, (3, 5)).astype(np.uint8), rng.integers(-128, 128, (5, 2)).astype(np.int8)
    zeros = {"a_zero_point": np.array(100, np.uint8), "b_zero_point": np.array([3, -7], np.int8)}
    for shift in (-3, 101):  # an odd one: rounding after it is added would take other ties
        given = {"a": a, "b": b, **zeros, **SCALES, "y_zero_point": np.array(shift, np.int8)}
        (found,) = values("onnx/QLinearMatMul-10", given, {"y": "int8"})
        for i in range(3):
            for j in range(2):
                total = sum((int(a[i, k]) - 100) * (int(b[k, j]) - (3, -7)[j]) for k in range(5))
                quotient = Fraction(total) * Fraction(1, 2) * Fraction(1, 4 - 2 * j) / 2
                assert found[i, j] == min(127, max(-128, rounded(quotient) + shift))


def test_zero_points_of_rows_and_columns_are_subtracted_before_codes_are_multiplied() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 256, (3, 7)).astype(np.uint8), rng.integers(0, 256, (7, 3)).astype(np.uint8)
    rows, columns = np.array([0, 128, 255], np.uint8), np.array([7, 0, 200], np.uint8)
    wanted = (a.astype(int) - rows[:, None].astype(int)) @ (b.astype(int) - columns.astype(int))
    for shape in ((3,), (3, 1)):
        given = {"A": a, "B": b, "a_zero_point": rows.reshape(shape), "b_zero_point": columns}
        (found,) = values("onnx/MatMulInteger-10", given, {"Y": "int32"})
        assert np.array_equal(found, wanted)


def test_what_frames_codes_is_their_zero_point() -> None:
    x = np.arange(2, 11, dtype=np.uint8).reshape(1, 1, 3, 3)  # ONNX's own test, test_convinteger_with_padding
    given = {"x": x, "w": np.ones((1, 1, 2, 2), np.uint8), "x_zero_point": np.array(1, np.uint8)}
    (found,) = values("onnx/ConvInteger-10", given, {"y": "int32"}, pads=(1, 1, 1, 1))
    assert found[0, 0].tolist() == [[1, 3, 5, 3], [5, 12, 16, 9], [11, 24, 28, 15], [7, 15, 17, 9]]


def test_a_bias_of_codes_has_the_scale_of_the_products() -> None:
    x, w = np.array([[[1, 2, 3, 250]]], np.uint8), np.array([[[1, -2]], [[3, 4]]], np.int8)
    scalars = {"x_scale": 0.5, "y_scale": 0.25}
    given = {name: np.array(number, F) for name, number in scalars.items()} | {"w_scale": np.array([0.5, 0.125], F)}
    given |= {"x": x, "w": w, "x_zero_point": np.array(2, np.uint8), "w_zero_point": np.array([0, 1], np.int8)}
    given |= {"y_zero_point": np.array(9, np.uint8), "B": np.array([5, -40], np.int32)}
    (found,) = values("onnx/QLinearConv-10", given, {"y": "uint8"})
    for m in range(2):
        for i in range(3):
            total = sum((int(x[0, 0, i + k]) - 2) * (int(w[m, 0, k]) - m) for k in range(2)) + (5, -40)[m]
            quotient = Fraction(total) * Fraction(1, 2) * (Fraction(1, 2), Fraction(1, 8))[m] * 4
            assert found[0, m, i] == min(255, max(0, rounded(quotient) + 9))


@pytest.mark.parametrize("group", [1, 2])
def test_a_transposed_convolution_adds_filters_where_they_meet(group) -> None:
    x, w, b = of_eighths(2, 4, 3, 4), of_eighths(4, 3, 2, 3, seed=1), of_eighths(3 * group, seed=2)
    strides, dilations, pads, more = (2, 3), (2, 1), (1, 0, 0, 2), (1, 2)
    found = np.zeros((2, 3 * group, 2 * 2 + 2 + 1 + 1, 3 * 3 + 2 + 1 + 2), F) + b[None, :, None, None]
    for n, ch, i, j, m, p, q in np.ndindex(2, 4, 3, 4, 3, 2, 3):
        out = m + 3 * (ch // (4 // group))
        found[n, out, 2 * i + 2 * p, 3 * j + q] += x[n, ch, i, j] * w[ch, m, p, q]
    settings = {"strides": strides, "dilations": dilations, "pads": pads, "output_padding": more, "group": group}
    (y,) = values("onnx/ConvTranspose-11", {"X": x, "W": w, "B": b}, {"Y": "float32"}, **settings)
    assert np.array_equal(y, found[:, :, 1:, : found.shape[3] - 2])


@pytest.mark.parametrize(("way", "start"), [("NOTSET", 1), ("SAME_LOWER", 1), ("SAME_UPPER", 0)])
def test_an_odd_padding_that_a_wanted_shape_leaves_crops_the_start_more_but_for_same_upper(way, start) -> None:
    given = {"X": of_eighths(1, 1, 3), "W": of_eighths(1, 1, 3, seed=1)}
    (whole,) = values("onnx/ConvTranspose-22", given, {"Y": "float32"}, strides=(2,))
    (some,) = values("onnx/ConvTranspose-22", given, {"Y": "float32"}, strides=(2,), output_shape=(6,), auto_pad=way)
    assert np.array_equal(some, whole[..., start : start + 6])
    early = readings("onnx/ConvTranspose-1", given, {"Y": "float32"}, strides=(2,), dilations=(1,), output_shape=(6,))
    found = {one.taken["odd-padding-early"]: one.values[0].tolist() for one in early}
    assert found == {"as-written": whole[..., :6].tolist(), "as-later": whole[..., 1:].tolist()}


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_determinants_by_elimination_are_within_the_bound_and_others_are_not(m) -> None:
    rng = np.random.default_rng(m)
    x = (rng.normal(size=(400, m, m)) * np.exp2(rng.integers(-9, 9, (400, m, 1)))).astype(F)
    (one,) = readings("onnx/Det-11", {"X": x}, {"Y": "float32"})
    by_elimination = np.linalg.det(x)
    assert ((one.lower[0] <= by_elimination) & (by_elimination <= one.upper[0])).all()
    exact = np.array([float(determinant([[Fraction(float(n)) for n in row] for row in a])) for a in x])
    assert np.allclose(one.values[0], exact, rtol=1e-9)
    off = by_elimination * F(1.001)
    assert ((off < one.lower[0]) | (off > one.upper[0])).mean() > 0.8


def determinant(rows):
    """The determinant by its definition, row after row."""
    if not rows:
        return Fraction(1)
    first, *rest = rows
    return sum((-1) ** j * n * determinant([row[:j] + row[j + 1 :] for row in rest]) for j, n in enumerate(first))
