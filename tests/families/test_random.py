"""References of what is drawn at random: right draws of NumPy's pass their cases, wrong ones do not."""

from collections.abc import Callable

import numpy as np
import pytest

from opconform.cases.elements import Array, element_type
from opconform.cases.results import Outcome
from opconform.generators.source import GeneratedCases
from opconform.runners.judging.answers import Answers
from opconform.runners.judging.judge import judge

Draw = Callable[[np.random.Generator], Array]


def outcomes(text: str, draw: Draw, times: int = 3) -> set[str]:
    """What the case makes of some draws, each in the type that it asks for."""
    case = GeneratedCases().case(text)
    dtype = element_type(case.expectation.types[0]).dtype
    found = [judge(case, Answers.of_case(draw(np.random.default_rng(n)).astype(dtype)))[0] for n in range(times)]
    assert {one.outcome for one in found} <= {Outcome.PASS, Outcome.WRONG_VALUE}
    return {str(one.outcome) for one in found}


UNIFORM: dict[str, tuple[bool, Draw]] = {
    "right": (True, lambda rng: rng.uniform(-3, 5, (40, 50))),
    "of eight bits": (True, lambda rng: rng.integers(0, 256, (40, 50)) / 32 - 3),
    "with both ends": (True, lambda rng: np.where(np.arange(50) == 7, 5.0, rng.uniform(-3, 5, (40, 50)))),
    "some beyond": (
        False,
        lambda rng: np.where(np.eye(40, 50) == 1, 5.1, rng.uniform(-3, 5, (40, 50))),
    ),
    "high as a width": (False, lambda rng: rng.uniform(-3, 2, (40, 50))),
    "low ignored": (False, lambda rng: rng.uniform(0, 5, (40, 50))),
    "normal": (False, lambda rng: rng.normal(1, 64 / 12, (40, 50)).clip(-3, 5)),
    "the same row": (False, lambda rng: np.tile(rng.uniform(-3, 5, 50), (40, 1))),
    "the same column": (False, lambda rng: np.repeat(rng.uniform(-3, 5, (40, 1)), 50, 1)),
}


@pytest.mark.parametrize("name", UNIFORM)
@pytest.mark.parametrize("type_", ["float32", "bfloat16"])
def test_uniform_numbers_lie_between_low_and_high_and_evenly(name: str, type_: str) -> None:
    right, draw = UNIFORM[name]
    text = f"onnx/RandomUniform-22/{type_}/none/high=5;low=-3;shape=40,50/ramp"
    assert outcomes(text, draw) == {"pass" if right else "wrong-value"}


def test_uniform_numbers_between_the_same_ends_are_these() -> None:
    text = "onnx/RandomUniformLike-22/float32,float32/5/high=5;low=5/ramp/degenerate"
    assert outcomes(text, lambda _: np.full(5, 5.0)) == {"pass"}
    assert outcomes(text, lambda _: np.full(5, np.nextafter(np.float32(5), np.float32(4)))) == {"wrong-value"}


NORMAL: dict[str, tuple[bool, Draw]] = {
    "right": (True, lambda rng: rng.normal(0, 1, (64, 63))),
    "a mean of a tenth": (False, lambda rng: rng.normal(0.2, 1, (64, 63))),
    "another deviation": (False, lambda rng: rng.normal(0, 1.3, (64, 63))),
    "without a tail": (False, lambda rng: np.abs(rng.normal(0, 1, (64, 63))) - 0.5),
    "the same row": (False, lambda rng: np.tile(rng.normal(0, 1, 63), (64, 1))),
    "infinite": (False, lambda rng: np.where(np.arange(63) == 7, np.inf, rng.normal(0, 1, (64, 63)))),
}


@pytest.mark.parametrize("name", NORMAL)
def test_normal_numbers_have_the_shape_of_the_input(name: str) -> None:
    right, draw = NORMAL[name]
    text = "onnx/RandomNormalLike-1/float32,float32/64x63/-/ramp/widths-like"
    assert outcomes(text, draw) == {"pass" if right else "wrong-value"}


def test_uniform_numbers_of_the_right_deviation_are_not_normal() -> None:
    text = "onnx/RandomNormalLike-1/float32,float32/65537/-/ramp/longer-like"
    assert outcomes(text, lambda rng: rng.normal(0, 1, 65537)) == {"pass"}
    assert outcomes(text, lambda rng: rng.uniform(-(3**0.5), 3**0.5, 65537)) == {"wrong-value"}


@pytest.mark.parametrize("type_", ["float32", "bool"])
def test_bernoulli_is_one_as_often_as_the_input_says(type_: str) -> None:
    text = f"onnx/Bernoulli-22/float32,{type_}/40x50/{'-' if type_ == 'float32' else 'dims=symbolic'}/uniform"
    p = GeneratedCases().case(text).inputs[0][0]
    assert ((p > 0.1) & (p < 0.9)).any()
    assert outcomes(text, lambda rng: rng.random(p.shape) < p) == {"pass"}
    assert outcomes(text, lambda rng: rng.random(p.shape) > p) == {"wrong-value"}
    assert outcomes(text, lambda rng: rng.random(p.shape) < 0.5) == {"wrong-value"}
    assert outcomes(text, lambda _: p > 0.5) == {"wrong-value"}


def test_bernoulli_is_certain_at_both_ends() -> None:
    text = "onnx/Bernoulli-15/float32,float64/none/input=0,1,-0.0,1,1,0/ramp/ends"
    assert outcomes(text, lambda _: np.array([0, 1, 0, 1, 1, 0])) == {"pass"}
    for place in range(6):
        wrong = np.array([0, 1, 0, 1, 1, 0])
        wrong[place] ^= 1
        assert outcomes(text, lambda _, wrong=wrong: wrong, times=1) == {"wrong-value"}


SKEWED = (
    "onnx/Multinomial-7/float32,int32/none/attribute-seed=3;input=2x4:0,-3,2,-1,1,1,-8,0;sample_size=5000/ramp/skewed"
)
LOGITS = np.array([[0.0, -3.0, 2.0, -1.0], [1.0, 1.0, -8.0, 0.0]])


def classes(rng: np.random.Generator, weights: Array) -> Array:
    """5,000 draws for each row of weights."""
    return np.stack([rng.choice(4, 5000, p=row / row.sum()) for row in weights])


MULTINOMIAL: dict[str, tuple[bool, Draw]] = {
    "right": (True, lambda rng: classes(rng, np.exp(LOGITS))),
    "powers of two": (False, lambda rng: classes(rng, np.exp2(LOGITS))),
    "normalized over all": (False, lambda rng: classes(rng, np.exp(LOGITS).sum(0, keepdims=True).repeat(2, 0))),
    "the last row for all": (False, lambda rng: classes(rng, np.exp(LOGITS)[[1, 1]])),
    "counted from one": (False, lambda rng: classes(rng, np.exp(LOGITS)) + 1),
    "the likeliest": (False, lambda _: np.repeat([[2], [0]], 5000, 1)),
    "in order": (False, lambda rng: np.sort(classes(rng, np.exp(LOGITS)))),
}


@pytest.mark.parametrize("name", MULTINOMIAL)
def test_classes_are_drawn_with_unnormalized_log_probabilities(name: str) -> None:
    right, draw = MULTINOMIAL[name]
    assert outcomes(SKEWED, draw) == {"pass" if right else "wrong-value"}


def test_rows_of_classes_are_drawn_independently() -> None:
    text = "onnx/Multinomial-7/float32,int32/64x4/sample_size=63/zeros/alike"
    assert outcomes(text, lambda rng: rng.integers(0, 4, (64, 63))) == {"pass"}
    assert outcomes(text, lambda rng: np.tile(rng.integers(0, 4, 63), (64, 1))) == {"wrong-value"}
    assert outcomes(text, lambda rng: np.repeat(rng.integers(0, 4, (64, 1)), 63, 1)) == {"wrong-value"}


def test_what_is_minus_infinity_is_never_drawn() -> None:
    text = "onnx/Multinomial-22/float16,int32/none/input=2x4:0,-inf,1,-inf,-inf,-inf,-inf,2;sample_size=500/ramp/never"

    def right(rng: np.random.Generator) -> Array:
        return np.stack([2 * (rng.random(500) < np.e / (1 + np.e)), np.full(500, 3)])

    def once(rng: np.random.Generator) -> Array:
        found = right(rng)
        found[0, 17] = 1
        return found

    assert outcomes(text, right) == {"pass"}
    assert outcomes(text, once) == {"wrong-value"}
