"""Models of ai.onnx.ml against exact fractions, and by hand where the standard's pages have numbers."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import readings, values

F = np.float32
WHOLE = st.integers(-50, 50)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.data())
def test_a_regression_is_the_exact_sum_of_products(features, targets, examples, data) -> None:
    size = features * (targets + examples) + targets
    numbers = data.draw(st.lists(WHOLE, min_size=size, max_size=size))
    x = [numbers[i * features : (i + 1) * features] for i in range(examples)]
    rest = [Fraction(n, 8) for n in numbers[examples * features :]]
    weights, added = rest[: targets * features], rest[targets * features : targets * features + targets]
    (found,) = values(
        "onnx/LinearRegressor-1",
        {"X": np.array(x, F).reshape(examples, features)},
        {"Y": "float32"},
        coefficients=tuple(map(float, weights)),
        intercepts=tuple(map(float, added)),
        targets=targets,
    )
    expected = [
        [sum(a * w for a, w in zip(row, weights[t * features :], strict=False)) + added[t] for t in range(targets)]
        for row in x
    ]
    assert found.tolist() == expected


def scores(x, way, option=None):
    """Return what a transform makes of one example's scores, by an option of its silence."""
    found = readings(
        "onnx/LinearRegressor-1",
        {"X": np.ones((1, 1), F)},
        {"Y": "float32"},
        coefficients=tuple(x),
        targets=len(x),
        post_transform=way,
    )
    (one,) = [r for r in found if option in (None, *r.taken.values())]
    return one.values[0][0].tolist(), one.open


def test_transforms_are_what_their_names_say() -> None:
    x = [1.0, 0.0, -2.0]
    total = sum(map(math.exp, x))
    assert scores(x, "NONE")[0] == x
    assert scores(x, "SOFTMAX")[0] == pytest.approx([math.exp(v) / total for v in x])
    assert scores(x, "LOGISTIC")[0] == pytest.approx([1 / (1 + math.exp(-v)) for v in x])
    left = math.exp(1) + math.exp(-2)
    assert scores(x, "SOFTMAX_ZERO", "zeros-stay")[0] == pytest.approx([math.exp(1) / left, 0, math.exp(-2) / left])
    assert scores(x, "SOFTMAX_ZERO", "zero-class")[0] == pytest.approx([math.exp(v) / (total + 1) for v in x])


def test_probit_is_a_quantile_of_scores_between_zero_and_one_or_a_probability() -> None:
    x = [0.25, 0.9, 1e-6, 1.0, -0.5]
    found, free = scores(x, "PROBIT", "quantile")
    assert found[:3] == pytest.approx([NormalDist().inv_cdf(float(F(v))) for v in x[:3]])
    assert free == [False, False, False, True, True]
    assert scores(x, "PROBIT", "probability")[0] == pytest.approx([NormalDist().cdf(float(F(v))) for v in x])


def classified(x, names, **attributes):
    return readings(
        "onnx/LinearClassifier-1",
        {"X": np.array(x, F)},
        {"Y": "int64", "Z": "float32"},
        classlabels_ints=names,
        **attributes,
    )


def test_the_label_is_that_of_the_best_score_and_either_of_two_equal_ones() -> None:
    identity = (1.0, 0.0, 0.0, 1.0)
    found = classified([[3, 1], [-5, -4], [2, 2]], (7, -3), coefficients=identity)
    assert {tuple(one.values[0].tolist()) for one in found} == {(7, -3, 7), (7, -3, -3)}
    assert found[0].values[1].tolist() == [[3, 1], [-5, -4], [2, 2]]


def test_a_label_within_the_bound_of_another_is_open() -> None:
    (found,) = classified([[0.1, 0.2, 0.3], [1, 1, 1]], (1, 2), coefficients=(1.0, 1.0, 1.0, 1.0, 1.0, 1.0000001))
    assert found.open == [True, True]
    (found,) = classified([[0.1, 0.2, 0.3], [1, 1, 1]], (1, 2), coefficients=(1.0, 1.0, 1.0, 1.0, 1.0, 1.001))
    assert found.open == [False, False]


def test_one_set_of_weights_for_two_labels_scores_the_second() -> None:
    found = classified([[2.0], [-1.0], [0.25]], (7, -3), coefficients=(1.0,))
    one, other, refusal = sorted(found, key=lambda reading: reading.kind != "values")
    assert one.taken["one-score"] == "negated"
    assert one.values[0].tolist() == [-3, 7, -3]
    assert one.values[1].tolist() == [[-2, 2], [1, -1], [-0.25, 0.25]]
    assert other.values[1].tolist() == [[-1, 2], [2, -1], [0.75, 0.25]]
    assert other.open == [False, False, True]
    assert refusal.kind == "rejected"


def test_labels_are_one_list() -> None:
    both = {"classlabels_strings": ("a", "b"), "coefficients": (1.0, 2.0)}
    assert classified([[2.0]], (7, -3), **both) == "one-list"
    assert classified([[2.0]], (), coefficients=(1.0, 2.0)) == "one-list"
