"""Steps of training against the pseudo code of ONNX's text in exact fractions, and its examples."""

from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import readings, values

F = np.float32


def stepped(operator: str, rate: float, count: int, tensors: list[Any], outputs: int, **attributes: Any) -> list[Any]:
    ports = {"R": np.array(rate, F), "T": np.array(count, np.int64), "inputs": [np.array(one, F) for one in tensors]}
    names = {f"outputs_{i}": "float32" for i in range(outputs)}
    return [one.tolist() for one in values(f"onnx/{operator}-1", ports, names, **attributes)]


def near(value: Any) -> Any:
    return pytest.approx(value, rel=1e-6, abs=1e-9)


def test_adam_is_onnx_s_example() -> None:
    settings_ = {"norm_coefficient": 0.001, "alpha": 0.95, "beta": 0.1, "epsilon": 1e-7}
    x, g, v, h = (np.array(one) for one in ([1.2, 2.8], [-0.94, -2.5], [1.7, 3.6], [0.1, 0.1]))
    found = stepped("Adam", 0.1, 0, [x, g, v, h], 3, **settings_)
    g = 0.001 * x + g
    v, h = 0.95 * v + 0.05 * g, 0.1 * h + 0.9 * g * g
    wanted = [x - 0.1 * v / (np.sqrt(h) + 1e-7), v, h]
    assert found == [near(one.tolist()) for one in wanted]


numbers = st.integers(-8, 8).map(lambda n: n / 4)
positive = st.integers(1, 12).map(lambda n: n / 4)


@given(
    st.tuples(numbers, numbers, numbers, positive, st.integers(-1, 4)),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([0.0, 0.25]),
)
def test_adam_is_its_pseudo_code(drawn: tuple[Any, ...], norm: float, post: float) -> None:
    x, g, v, h, t = drawn
    alpha, beta, epsilon, rate = 0.5, 0.75, 0.125, 0.5
    found = stepped(
        *("Adam", rate, t, [[x], [g], [v], [h]], 3),
        alpha=alpha,
        beta=beta,
        epsilon=epsilon,
        norm_coefficient=norm,
        norm_coefficient_post=post,
    )
    regularized = Fraction(norm) * Fraction(x) + Fraction(g)
    v_new = Fraction(alpha) * Fraction(v) + (1 - Fraction(alpha)) * regularized
    h_new = Fraction(beta) * Fraction(h) + (1 - Fraction(beta)) * regularized**2
    adjusted = rate * sqrt(1 - Fraction(beta) ** t) / (1 - Fraction(alpha) ** t) if t > 0 else rate
    x_new = x - adjusted * float(v_new) / (sqrt(h_new) + epsilon)
    assert found == [near([(1 - post) * x_new]), [float(v_new)], [float(h_new)]]


@given(
    st.tuples(numbers, numbers, positive, st.integers(0, 5), st.sampled_from([0.0, 0.5]), st.sampled_from([0.0, 0.5]))
)
def test_adagrad_is_its_pseudo_code(drawn: tuple[Any, ...]) -> None:
    x, g, h, t, norm, decay = drawn
    found = stepped(*("Adagrad", 0.5, t, [[x], [g], [h]], 2), epsilon=0.125, norm_coefficient=norm, decay_factor=decay)
    regularized = Fraction(norm) * Fraction(x) + Fraction(g)
    h_new = Fraction(h) + regularized**2
    x_new = x - 0.5 / (1 + t * decay) * float(regularized) / (sqrt(h_new) + 0.125)
    assert found == [near([x_new]), [float(h_new)]]


@given(st.tuples(numbers, numbers, numbers, st.integers(-1, 2), st.sampled_from([0.0, 0.5]), st.booleans()))
def test_momentum_is_its_pseudo_code(drawn: tuple[Any, ...]) -> None:
    x, g, v, t, norm, nesterov = drawn
    alpha, beta, rate = Fraction(3, 4), Fraction(1, 4), Fraction(1, 2)
    found = stepped(
        *("Momentum", 0.5, t, [[x], [g], [v]], 2),
        alpha=0.75,
        beta=0.25,
        norm_coefficient=norm,
        mode="nesterov" if nesterov else "standard",
    )
    regularized = Fraction(norm) * Fraction(x) + Fraction(g)
    v_new = alpha * Fraction(v) + (beta if t > 0 else 1) * regularized
    x_new = Fraction(x) - rate * (regularized + alpha * v_new if nesterov else v_new)
    assert found == [[float(x_new)], [float(v_new)]]


def test_tensors_of_several_shapes_are_trained_each_for_itself() -> None:
    tensors = [[1.0], [2.0, 4.0], [0.5], [1.0, 2.0], [8.0], [16.0, 32.0]]  # two, then their gradients, then momenta
    attributes = {"alpha": 0.5, "beta": 1.0, "norm_coefficient": 0.0, "mode": "standard"}
    found = stepped("Momentum", 2.0, 1, tensors, 4, **attributes)
    assert found == [[1 - 2 * 4.5], [2 - 2 * 9.0, 4 - 2 * 18.0], [4.5], [9.0, 18.0]]


def test_what_belongs_to_a_tensor_is_there_and_of_its_shape() -> None:
    ports = {"R": np.array(1, F), "T": np.array(0), "inputs": [np.zeros(2, F)] * 4}
    assert readings("onnx/Adagrad-1", ports, {"outputs_0": "float32", "outputs_1": "float32"}) == "groups"
    ports["inputs"] = [np.zeros(2, F), np.zeros(3, F), np.zeros(2, F)]
    assert readings("onnx/Adagrad-1", ports, {"outputs_0": "float32", "outputs_1": "float32"}) == "shapes"


def test_zero_times_an_infinite_tensor_is_open() -> None:
    ports = {"R": np.array(1, F), "T": np.array(0), "inputs": [np.array([np.inf], F), np.ones(1, F), np.ones(1, F)]}
    found = readings("onnx/Adagrad-1", ports, {"outputs_0": "float32", "outputs_1": "float32"})
    assert not isinstance(found, str)
    squares = {one.taken["zero-coefficient"]: one.values[1].tolist() for one in found}
    assert np.isnan(squares["multiplied"][0])
    assert squares["left-out"] == [2.0]
