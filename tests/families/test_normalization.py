"""Normalizations come out as their function bodies have them, put together in exact arithmetic."""

import gmpy2
import numpy as np
import pytest
from recorded import readings, values

F = np.float32
LAYER = {"Y": "float32", "Mean": "float32", "InvStdDev": "float32"}


def exactly(x):
    """The numbers of an array, exact."""
    return np.array([gmpy2.mpfr(float(n), 300) for n in np.ravel(x)], object).reshape(np.shape(x))


def within(reading, place, wanted):
    """Whether every exact number lies in an output's bounds."""
    low, high = (exactly(one[place]) for one in (reading.lower, reading.upper))
    slack = exactly(np.spacing(np.abs(reading.values[place])))  # bounds are of results, which are rounded
    return bool(((low - slack <= wanted) & (wanted <= high + slack)).all())


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(1, 2, shape).astype(F)


def test_layer_normalization_is_its_body_with_raw_moments() -> None:
    x, scale, b = numbers(2, 3, 4), numbers(3, 4, seed=1), numbers(3, 4, seed=2)
    found = readings("onnx/LayerNormalization-17", {"X": x, "Scale": scale, "B": b}, LAYER, axis=1, epsilon=0.25)
    with gmpy2.context(precision=300):
        flat = exactly(x).reshape(2, 12)
        mean = flat.sum(1, keepdims=True) / 12
        variance = (flat * flat).sum(1, keepdims=True) / 12 - mean * mean
        deviation = np.array([[gmpy2.sqrt(v + gmpy2.mpfr(0.25))] for v in variance[:, 0]], object)
        y = ((flat - mean) / deviation).reshape(2, 3, 4) * exactly(scale) + exactly(b)
        for one in found:
            assert within(one, 0, y)
            assert within(one, 1, mean.reshape(2, 1, 1))
            assert within(one, 2, (1 / deviation).reshape(2, 1, 1))
    direct = next(one for one in found if one.taken["algorithm"] == "centered")
    off = y + 1e-5 * abs(y)
    assert not within(direct, 0, off)


def test_the_first_stage_has_the_type_of_stash_type_even_if_x_is_float64() -> None:
    x = np.array([[1, 1 + 2.0**-30, 1, 1 - 2.0**-30]])  # four ones in float32
    one = np.ones(4)
    outputs = {"Y": "float64", "Mean": "float32", "InvStdDev": "float32"}
    for reading in readings("onnx/LayerNormalization-17", {"X": x, "Scale": one, "B": one}, outputs, epsilon=1e-30):
        assert reading.values[0].tolist() == [[1, 1, 1, 1]]
    (found,) = readings("onnx/RMSNormalization-23", {"X": x, "scale": one}, {"Y": "float64"})
    assert "stage-one-wider" not in found.taken


@pytest.mark.parametrize(("epsilon", "holds"), [(0.25, True), (0.2525, False)])
def test_rms_normalization_is_its_body_and_not_that_of_another_epsilon(epsilon, holds) -> None:
    x, scale = numbers(3, 5) / 4, numbers(5, seed=1)
    (found,) = readings("onnx/RMSNormalization-23", {"X": x, "scale": scale}, {"Y": "float32"}, epsilon=0.25)
    with gmpy2.context(precision=300):
        squares = (exactly(x) * exactly(x)).sum(1) / 5
        root = np.array([[gmpy2.sqrt(s + gmpy2.mpfr(epsilon))] for s in squares], object)
        assert within(found, 0, exactly(x) / root * exactly(scale)) == holds


@pytest.mark.parametrize("version", [1, 13])
def test_log_softmax_is_its_body_over_one_axis_or_over_all_from_it_on(version) -> None:
    x = numbers(2, 3, 4)
    found = readings(f"onnx/LogSoftmax-{version}", {"input": x}, {"output": "float32"}, axis=1)
    with gmpy2.context(precision=300):
        powers = np.array([gmpy2.exp(n) for n in exactly(x).ravel()], object).reshape(x.shape)
        total = powers.sum(1, keepdims=True) if version == 13 else powers.sum((1, 2), keepdims=True)
        logs = np.array([gmpy2.log(n) for n in total.ravel()], object).reshape(total.shape)
        for one in found:
            assert within(one, 0, exactly(x) - logs)


def test_the_first_of_equal_elements_is_the_largest() -> None:
    x = np.array([[1, 3, 3, 2], [0, 0, 0, 0], [-3, -4, -3, -3]], F)
    (found,) = values("onnx/Hardmax-13", {"input": x}, {"output": "float32"})
    assert found.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    (flat,) = values("onnx/Hardmax-11", {"input": x.reshape(1, 3, 2, 2)}, {"output": "float32"})
    assert flat.ravel().tolist() == [0, 1] + [0] * 10


def test_instances_have_their_own_statistics_in_each_channel() -> None:
    x, scale, b = numbers(2, 3, 4, 5), numbers(3, seed=1), numbers(3, seed=2)
    found = readings("onnx/InstanceNormalization-6", {"input": x, "scale": scale, "B": b}, {"output": "float32"})
    with gmpy2.context(precision=300):
        flat = exactly(x).reshape(2, 3, 20)
        off = flat - flat.sum(2, keepdims=True) / 20
        for count, holds in ((20, True), (19, False)):
            variance = (off * off).sum(2) / count
            factor = [gmpy2.sqrt(v + gmpy2.mpfr(float(F(1e-5)))) for v in variance.ravel()]
            y = off / np.array(factor, object).reshape(2, 3, 1) * exactly(scale)[:, None] + exactly(b)[:, None]
            assert all(within(one, 0, y.reshape(x.shape)) for one in found) == holds
