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
