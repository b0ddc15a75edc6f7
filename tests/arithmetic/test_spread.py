"""Where a bound on each element says nothing, compliant sums keep to the second moment, and wrong ones do not (T2)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from fakes.exact import DTYPES
from fakes.judging import judge_answer, over_axes

from opconform.cases.results import Outcome

OUTPUTS = 32  # the fewest that are judged so: the most scattered
LANES = 12
LENGTHS = {"float16": 2048, "bfloat16": 256}
NARROW = {"accumulator": "narrow"}
each_type = pytest.mark.parametrize("name", LENGTHS)


@functools.cache
def drawn(name: str) -> Any:
    """Random numbers with mean zero, (lanes, addends, outputs)."""
    size = (LANES, LENGTHS[name], OUTPUTS)
    return np.random.Generator(np.random.Philox(7)).uniform(-1, 1, size).astype(DTYPES[name])


@functools.cache
def expected(name: str) -> Any:
    found = over_axes(list(drawn(name)), name, (0,), False, random=True)
    assert all(any(b.spread for o in e.options for b in o.outputs) for e in found)
    return found


def verdicts(name: str, answers: Any) -> list[Outcome]:
    pairs = zip(expected(name), answers.astype(DTYPES[name]), strict=True)
    return [judge_answer(e, [answer], NARROW).outcome for e, answer in pairs]


# Sums in the type itself, along axis 1


def in_order(x: Any) -> Any:
    total = x[:, 0]
    for i in range(1, x.shape[1]):
        total = total + x[:, i]
    return total


def pairwise(x: Any) -> Any:
    while x.shape[1] > 1:
        x = x[:, 0::2] + x[:, 1::2]
    return x[:, 0]


def eight_lanes(x: Any) -> Any:
    return in_order(np.stack([in_order(x[:, i::8]) for i in range(8)], axis=1))


def blocks(x: Any) -> Any:
    return in_order(np.stack([in_order(x[:, i : i + 32]) for i in range(0, x.shape[1], 32)], axis=1))


def of_magnitudes(x: Any) -> Any:
    """Adds small numbers first, each column in an order of its own."""
    order = np.argsort(np.abs(x.astype(np.float32)), axis=1)
    return in_order(np.take_along_axis(x, order, axis=1))


def backwards(x: Any) -> Any:
    return in_order(x[:, ::-1])


@each_type
@pytest.mark.parametrize("order", [in_order, backwards, pairwise, eight_lanes, blocks, of_magnitudes])
def test_no_narrow_order_is_blamed_for_the_second_moment_of_its_errors(name, order):
    x = drawn(name)
    count = DTYPES[name].type(x.shape[1])
    for answers in (order(x) / count, order(x / count)):
        assert set(verdicts(name, answers)) == {Outcome.PASS}


def wrong_ones(x: Any) -> dict[str, Any]:
    """Means as mistakes make them, exact otherwise."""
    wide, n = x.astype(np.float64), x.shape[1]
    exact = wide.mean(axis=1)
    return {
        "the last eighth is dropped": wide[:, : n - n // 8].sum(axis=1) / n,
        "the last eighth is counted twice": (wide.sum(axis=1) + wide[:, n - n // 8 :].sum(axis=1)) / n,
        "the neighbour's column": np.roll(exact, 1, axis=1),
        "no mean but a sum": wide.sum(axis=1),
        "half of it": exact / 2,
        "nothing": np.zeros_like(exact),
        "magnitudes": np.abs(wide).mean(axis=1),
        "of float8 numbers": (np.rint(wide * 8) / 8 + 1 / 16).mean(axis=1),
    }


@each_type
def test_errors_that_rounding_does_not_explain_are_refused(name):
    for mistake, answers in wrong_ones(drawn(name)).items():
        assert set(verdicts(name, answers)) == {Outcome.WRONG_VALUE}, mistake


@each_type
def test_a_bias_of_three_deviations_is_refused_and_one_of_one_is_not(name):
    for bias, outcome in ((3, Outcome.WRONG_VALUE), (1, Outcome.PASS)):
        found = []
        for expectation, x in zip(expected(name), drawn(name), strict=True):
            sigma = next(b.spread.sigma[0] for o in expectation.options for b in o.outputs if b.spread)
            answer = (x.astype(np.float64).mean(axis=0) + bias * sigma).astype(DTYPES[name])
            found.append(judge_answer(expectation, [answer], NARROW).outcome)
        assert set(found) == {outcome}
