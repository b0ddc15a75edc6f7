"""oneDNN Graph's backward operations against differences of the forward functions, and on the edges of their pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from recorded import readings, values

F = np.float32
DRAW = np.random.default_rng(5)
Function = Callable[[Any], Any]

FORWARD: list[tuple[str, Function, dict[str, Any]]] = [
    ("Abs", np.abs, {}),
    ("Clamp", lambda x: np.clip(x, -1.0, 2.0), {"min": -1.0, "max": 2.0, "use_dst": False}),
    ("Elu", lambda x: np.where(x > 0, x, 0.75 * np.expm1(x)), {"alpha": 0.75, "use_dst": False}),
    ("HardSigmoid", lambda x: np.clip(0.25 * x + 0.5, 0, 1), {"alpha": 0.25, "beta": 0.5}),
    ("HardSwish", lambda x: x * np.clip(x + 3, 0, 6) / 6, {}),
    ("Mish", lambda x: x * np.tanh(np.log1p(np.exp(x))), {}),
    ("SoftPlus", lambda x: np.log1p(np.exp(2.0 * x)) / 2.0, {"beta": 2.0}),
    ("Sqrt", np.sqrt, {"use_dst": False}),
    ("Tanh", np.tanh, {"use_dst": False}),
]


@pytest.mark.parametrize(("operator", "function", "attributes"), FORWARD, ids=[name for name, _, _ in FORWARD])
def test_the_gradient_is_the_limit_of_differences(
    operator: str, function: Function, attributes: dict[str, Any]
) -> None:
    x = np.linspace(0.11, 4.4, 23) if operator == "Sqrt" else np.linspace(-4.4, 4.5, 31)
    g, step = DRAW.normal(size=x.shape).astype(F), 1e-6
    given = {"src": x.astype(F), "diff_dst": g}
    wide = given["src"].astype(np.float64)
    (y,) = values(f"onednn/{operator}Backward", given, {"diff_src": "float32"}, **attributes)
    want = g * (function(wide + step) - function(wide - step)) / (2 * step)
    np.testing.assert_allclose(y, want, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("operator", "function", "attributes"),
    [
        ("Elu", FORWARD[2][1], {"alpha": 0.75}),
        ("Sqrt", np.sqrt, {}),
        ("Tanh", np.tanh, {}),
        ("Clamp", FORWARD[1][1], {"min": -1.0, "max": 2.0}),
    ],
)
def test_the_gradient_from_the_result_is_that_from_the_operand(
    operator: str, function: Function, attributes: dict[str, Any]
) -> None:
    x = np.linspace(0.11, 1.9, 20) if operator in ("Sqrt", "Clamp") else np.linspace(-1.45, 1.55, 21)
    g = DRAW.normal(size=x.shape).astype(F)
    found = [
        values(
            f"onednn/{operator}Backward",
            {"src": src.astype(F), "diff_dst": g},
            {"diff_src": "float32"},
            use_dst=use_dst,
            **attributes,
        )[0]
        for src, use_dst in ((x, False), (function(x), True))
    ]
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-6)


def test_the_page_of_abs_says_zero_whatever_the_gradient_is() -> None:
    given = {"src": F([0.0, -0.0, -1.0]), "diff_dst": F([np.inf, np.nan, 2.0])}
    (y,) = values("onednn/AbsBackward", given, {"diff_src": "float32"})
    np.testing.assert_array_equal(y, F([0, 0, -2]))


def test_hard_sigmoid_s_ends_are_outside() -> None:
    given = {"src": F([-1.0, 1.0, 0.5]), "diff_dst": F([3.0, 3.0, 3.0])}
    (y,) = values("onednn/HardSigmoidBackward", given, {"diff_src": "float32"}, alpha=0.5, beta=0.5)
    np.testing.assert_array_equal(y, F([0, 0, 1.5]))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_gradient_of_log_softmax_is_taken_from_its_result(axis: int) -> None:
    x, g = DRAW.normal(size=(3, 5)), DRAW.normal(size=(3, 5)).astype(F)
    y = x - np.log(np.exp(x).sum(axis, keepdims=True))
    given = {"diff_dst": g, "dst": y.astype(F)}
    (found,) = values("onednn/LogSoftmaxBackward", given, {"diff_src": "float32"}, axis=axis)
    np.testing.assert_allclose(found, g - np.exp(y) * g.sum(axis, keepdims=True), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("data_format", "axes"), [("NCX", (0, 2)), ("NXC", (0, 1))])
def test_the_gradient_of_a_bias_is_summed_over_all_but_channels(data_format: str, axes: tuple[int, ...]) -> None:
    g = DRAW.integers(-4, 4, (2, 3, 3)).astype(F)
    (y,) = values("onednn/BiasAddBackward", {"diff_dst": g}, {"diff_bias": "float32"}, data_format=data_format)
    np.testing.assert_array_equal(y, g.sum(axes))


def test_the_gradients_of_prelu_are_those_of_operand_and_slope() -> None:
    x, g = DRAW.integers(1, 9, (2, 3, 4)) * DRAW.choice([-1.0, 1.0], (2, 3, 4)), DRAW.integers(-4, 4, (2, 3, 4))
    slope = F([0.5, -2.0, 3.0])
    given = {"src": x.astype(F), "slope": slope, "diff_dst": g.astype(F)}
    outputs = {"diff_src": "float32", "diff_slope": "float32"}
    of_src, of_slope = values("onednn/PReLUBackward", given, outputs, data_format="NCX")
    np.testing.assert_array_equal(of_src, np.where(x > 0, g, slope[:, None] * g))
    np.testing.assert_array_equal(of_slope, np.where(x < 0, g * x, 0).sum((0, 2)))
    short = given | {"slope": F([1.0, 2.0])}
    assert readings("onednn/PReLUBackward", short, outputs, data_format="NCX") == "slope-shape"


@pytest.mark.parametrize("data_format", ["NXC", "NCX"])
@pytest.mark.parametrize("affine", [True, False])
def test_the_gradients_of_a_batch_norm_are_the_limits_of_differences(data_format: str, affine: bool) -> None:
    shape, epsilon, step = ((3, 4, 2) if data_format == "NXC" else (3, 2, 4)), 0.125, 1e-5
    axes, spread = ((0, 1), (1, 1, 2)) if data_format == "NXC" else ((0, 2), (1, 2, 1))
    x, g, gamma, beta = (DRAW.normal(size=one) for one in (shape, shape, (2,), (2,)))
    gamma = gamma if affine else np.ones(2)

    def total(x: Any, gamma: Any, beta: Any) -> float:
        mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
        y = (x - mean) / np.sqrt(variance + epsilon) * gamma.reshape(spread) + beta.reshape(spread)
        return float((y * g).sum())

    given = {"src": x, "diff_dst": g, "mean": x.mean(axes), "variance": x.var(axes)}
    given = {name: one.astype(F) for name, one in (given | ({"gamma": gamma} if affine else {})).items()}
    outputs = {"diff_src": "float32", "diff_gamma": "float32", "diff_beta": "float32"}
    found = values("onednn/BatchNormTrainingBackward", given, outputs, epsilon=epsilon, data_format=data_format)
    operands = [x, gamma, beta]
    for at, one in enumerate(operands):
        want = np.empty(one.shape)
        for place in np.ndindex(one.shape):
            sides = []
            for moved in (step, -step):
                other = [operand.copy() for operand in operands]
                other[at][place] += moved
                sides.append(total(*other))
            want[place] = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(found[at], want, rtol=1e-4, atol=1e-5)


def test_gamma_is_ignored_if_no_gradient_of_it_is_asked_for() -> None:
    x, g = (DRAW.normal(size=(2, 3, 2)).astype(F) for _ in range(2))
    given = {"src": x, "diff_dst": g, "mean": F([0.5, 0]), "variance": F([1, 2]), "gamma": F([3, -4])}
    outputs = {"diff_src": "float32", "diff_gamma": None, "diff_beta": None}
    (ignored,) = values("onednn/BatchNormTrainingBackward", given, outputs, epsilon=0.5)
    (plain,) = values("onednn/BatchNormTrainingBackward", given | {"gamma": F([1, 1])}, outputs, epsilon=0.5)
    np.testing.assert_array_equal(ignored, plain)


def test_dropout_keeps_all_with_probability_0_and_scales_what_it_keeps() -> None:
    src, whole = F([0.5, -0.25, 0.0]), np.uint64(3)

    def found(probability: float) -> Any:
        given = {"src": src, "generator_seed": whole, "offset": whole, "probability": F(probability)}
        return readings("onednn/Dropout", {name: np.asarray(one) for name, one in given.items()}, {"dst": "float32"})

    assert [one.values[0].tolist() for one in found(0.0)] == [src.tolist()]
    (half,) = found(0.5)
    assert half.values[0].tolist() == [1.0, -0.5, 0.0]
    assert {one.taken["all-dropped"] for one in found(1.0)} == {"zeros", "not-a-number"}
    assert found(1.5) == found(-0.5) == "probability-range"


def resized(x: np.ndarray, sizes: tuple[int, ...], *, corners: bool) -> np.ndarray:
    """Interpolate along the axes after the first, which keeps its extent, and before the last, one by one."""
    for axis, size in enumerate(sizes, 1):
        n, index = x.shape[axis], np.arange(size)
        at = index * ((n - 1) / max(size - 1, 1)) if corners else (index + 0.5) * (n / size) - 0.5
        at = np.clip(at, 0, n - 1)
        low = np.minimum(np.floor(at).astype(int), n - 1)
        high = np.minimum(low + 1, n - 1)
        share = (at - low).reshape(-1, *(1,) * (x.ndim - axis - 1))
        x = x.take(low, axis) * (1 - share) + x.take(high, axis) * share
    return x


@pytest.mark.parametrize("corners", [False, True], ids=["half-pixel", "corners"])
@pytest.mark.parametrize("sizes", [(7,), (2, 9), (4, 3, 2)], ids=str)
def test_the_gradient_of_interpolate_is_the_limit_of_differences(sizes: tuple[int, ...], *, corners: bool) -> None:
    x = DRAW.normal(size=(2, *(5, 3, 4)[: len(sizes)], 2)).astype(F)
    g, mode = DRAW.normal(size=(2, *sizes, 2)).astype(F), {1: "linear", 2: "bilinear", 3: "trilinear"}[len(sizes)]
    way = "align_corners" if corners else "half_pixel"
    given = {"src": x, "diff_dst": g}
    (y,) = values(
        "onednn/InterpolateBackward",
        given,
        {"diff_src": "float32"},
        mode=mode,
        sizes=list(sizes),
        coordinate_transformation_mode=way,
    )
    (forward,) = values(
        "onednn/Interpolate",
        {"src": x},
        {"dst": "float32"},
        mode=mode,
        sizes=list(sizes),
        coordinate_transformation_mode=way,
    )
    wide, want = x.astype(np.float64), np.zeros(x.shape)
    np.testing.assert_allclose(forward, resized(wide, sizes, corners=corners), rtol=1e-5, atol=1e-6)
    for place in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[place] = 0.5  # the function is linear
        difference = resized(wide + step, sizes, corners=corners) - resized(wide - step, sizes, corners=corners)
        want[place] = (g * difference).sum()
    np.testing.assert_allclose(y, want, rtol=2e-5, atol=1e-6)


def test_the_gradient_of_the_nearest_is_the_sum_of_what_took_an_element() -> None:
    x, g = np.zeros((1, 5, 1), F), np.arange(1, 8, dtype=F).reshape(1, 7, 1)
    (y,) = values(
        "onednn/InterpolateBackward", {"src": x, "diff_dst": g}, {"diff_src": "float32"}, mode="nearest", sizes=[7]
    )
    taken = np.rint((np.arange(7) + 0.5) * (5 / 7) - 0.5).astype(int)  # no place is half-way
    np.testing.assert_array_equal(y[0, :, 0], np.bincount(taken, weights=g[0, :, 0]))


@pytest.mark.parametrize("moved", [0.0, 0.5])
def test_a_mean_that_is_not_that_of_the_batch_may_move_the_variance(moved: float) -> None:
    x, g = (DRAW.integers(-8, 8, (4, 2)).astype(F) for _ in range(2))
    mean, variance = x.mean(0, dtype=F) + F(moved), x.var(0, dtype=F)
    given = {"src": x, "diff_dst": g, "mean": mean, "variance": variance}
    found = readings("onednn/BatchNormTrainingBackward", given, {"diff_src": "float32"}, epsilon=0.5)
    assert not isinstance(found, str)
    off, inverse = x.astype(np.float64) - mean, 1 / np.sqrt(variance + 0.5)
    of_variance = (g * off).sum(0) * inverse**3 / -2
    of_mean = -inverse * g.sum(0)
    shares = [of_mean, of_mean - of_variance * 2 * off.mean(0)]  # by the variance as a number, and as a function of it
    want = [g * inverse + of_variance * off / 2 + share / 4 for share in shares]
    for reading in found:
        answer = want[reading.taken.get("other-mean") == "the-variance-s-too"]
        np.testing.assert_allclose(reading.values[0], answer, rtol=1e-6, atol=1e-7)
    assert {"other-mean" in reading.taken for reading in found} == {True}
    assert np.allclose(*want, atol=1e-6) == (moved == 0)
