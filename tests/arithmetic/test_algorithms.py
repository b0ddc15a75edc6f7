"""Sums and means by algorithms that are as right as any: each does as it says, and none is blamed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from fakes.judging import judge_answer
from fakes.recorded import recorded
from fakes.sampled import slow
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opconform.cases.elements import Array
from opconform.cases.results import Outcome
from opconform.generators.mutants.implementation import variants_of
from opconform.generators.primitives.machine import Division, Machine, Order
from opconform.generators.source import GeneratedCases

SINGLE = np.dtype(np.float32)
ALGORITHMS: list[tuple[Any, Any]] = [(order, "after") for order in get_args(Order)]
ALGORITHMS += [("forward", division) for division in get_args(Division)[1:]]
CORRECTED: tuple[Division, ...] = ("after", "corrected")
NUMBERS = st.floats(-1e6, 1e6, width=32) | st.floats(width=32) | st.integers(-9, 9).map(float)


def answered(x: Array, order: Order, division: Division, function: str = "mean") -> Array:
    found = recorded(lambda c, v: getattr(v, function)((0, 1), keep=False), [x], [x.dtype.name])
    ((answer,), _) = found.native([x], Machine(SINGLE, SINGLE, order, division=division))
    return np.asarray(answer)


@pytest.mark.parametrize(
    ("order", "division"), [one if place % 2 == 0 else slow(*one) for place, one in enumerate(ALGORITHMS)]
)
@given(x=hnp.arrays(SINGLE, st.tuples(st.just(1), st.integers(1, 9), st.integers(1, 40)), elements=NUMBERS))
def test_a_mean_by_any_algorithm_is_admitted(order: Order, division: Division, x: Array) -> None:
    recording = recorded(lambda c, v: v.mean((0, 1), keep=False), [x], ["float32"])
    (answer,) = answered(x, order, division)
    verdict = judge_answer(recording.expectation([x]), [answer])
    assert verdict.outcome is Outcome.PASS, verdict.detail


def test_algorithms_differ_as_they_should() -> None:
    x = np.random.default_rng(1).uniform(0, 1, (1, 50, 400)).astype(SINGLE)
    exact = sum(map(Fraction, x.ravel().tolist()))
    off = {order: abs(Fraction(float(answered(x, order, "after", "sum")[0])) - exact) for order in get_args(Order)}
    assert len(set(off.values())) > 4
    better: tuple[Order, ...] = ("pairwise", "lanes", "blocks", "compensated", "by-axis")
    assert all(off[order] < off["forward"] for order in better)
    assert off["compensated"] <= np.spacing(np.float32(exact))
    means = [abs(Fraction(float(answered(x, "forward", division)[0])) - exact / 20_000) for division in CORRECTED]
    assert means[1] < means[0]


def test_fused_products_are_rounded_with_the_sum_alone() -> None:
    small = 2.0**-12
    a, b = np.float32([[[-1, 1 + small]]]), np.float32([[[1], [1 + small]]])
    found = recorded(lambda c, x, y: x.matmul(y), [a, b], ["float32"])
    orders: tuple[Order, ...] = ("forward", "reverse", "fused")
    answers = [found.native([a, b], Machine(SINGLE, SINGLE, order))[0][0].item() for order in orders]
    assert answers == [2 * small, 2 * small, 2 * small + small**2]


def test_over_no_axis_nothing_is_added_up() -> None:
    x = np.full((1, 2, 3), -0.0, SINGLE)
    for order in get_args(Order):
        ((answer,), _) = recorded(lambda c, v: v.sum((), keep=True), [x], ["float32"]).native(
            [x], Machine(SINGLE, SINGLE, order)
        )
        assert np.signbit(answer).all()


def test_infinities_and_far_numbers_have_a_mean_by_every_algorithm() -> None:
    most = np.finfo(SINGLE).max
    rows = np.array([[np.inf, 1, np.inf], [most, -most, 0], [-np.inf, 1, 2]], SINGLE)
    for order, division in ALGORITHMS:
        found = [answered(row.reshape(1, 1, 3), order, division)[0] for row in rows]
        assert found == [np.inf, 0, -np.inf], (order, division)


@pytest.mark.parametrize("name", ["onnx/ReduceSum-13", "onnx/Mean-13"])
def test_every_algorithm_is_a_variant(name: str) -> None:
    spec, key = GeneratedCases().library.operator_version(name)
    names = {one.name for one in variants_of(spec.version(key))}
    assert {f"{order}-wide" for order in get_args(Order)} <= names
    assert {f"{division}-wide" for division in get_args(Division)[1:]} <= names


def test_a_convolution_may_begin_with_its_bias() -> None:
    settings_ = "auto_pad=SAME_UPPER;dilations=2;group=4;kernel_shape=3"
    case = GeneratedCases().case(f"onnx/Conv-22/float32/2x4x17,4x1x3,4/{settings_}/uniform")
    x, w, b = (array[0, ...] for array in case.inputs)
    padded = np.pad(x, ((0, 0), (0, 0), (2, 2)))
    total = np.broadcast_to(b[None, :, None], x.shape)
    for tap in range(3):
        total = total + padded[:, :, 2 * tap : 2 * tap + 17] * w[None, :, 0, tap, None]
    assert judge_answer(case.expectation, [total]).outcome is Outcome.PASS
