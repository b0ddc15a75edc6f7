"""Integer means of any type and shape are the exact quotient, under each rounding and each answer to overflow."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from fakes.exact import kept, reduced, reduction_groups
from fakes.judging import judge_answer, over_axes
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.results import Outcome

TYPES = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
ROUNDINGS = {
    "truncate": math.trunc,
    "floor": math.floor,
    "nearest-even": round,
    "nearest-away": lambda q: (1 if q > 0 else -1) * math.floor(abs(q) + Fraction(1, 2)),
}
SILENCES = {
    "integer-rounding": tuple(ROUNDINGS),
    "integer-overflow": ("exact", "wraps", "saturates"),
}


def span(name: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer type, from its name."""
    bits = int(name.lstrip("uint"))
    return (0, (1 << bits) - 1) if name.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


def fitted(total: int, name: str, overflow: str) -> int:
    low, high = span(name)
    if overflow == "wraps":
        return (total - low) % (high - low + 1) + low
    return min(max(total, low), high) if overflow == "saturates" else total


def mean(addends: list[int], name: str, rounding: str, overflow: str) -> int:
    return int(ROUNDINGS[rounding](Fraction(fitted(sum(addends), name, overflow), len(addends))))


@st.composite
def reductions(draw: Any, name: str) -> tuple[Any, tuple[int, ...], bool]:
    shape: list[int] = []
    for _ in range(draw(st.integers(0, 5))):
        shape.append(draw(st.integers(0, min(5, 240 // max(1, math.prod(shape))))))
    axes = draw(st.sets(st.sampled_from(range(len(shape))))) if shape else set()
    if 0 in (shape[a] for a in axes) and 0 not in reduced(tuple(shape), axes):
        axes = {a for a in axes if shape[a]}
    low, high = span(name)
    ends = st.sampled_from([low, high, high - 1, high // 2, high // 3, low // 2])
    few = st.integers(max(low, -1), 1)  # so that halves are frequent
    some = draw(
        st.lists(few, min_size=1, max_size=3)
        | st.lists(ends | st.integers(low, high) | st.integers(max(low, -9), 9), min_size=1, max_size=6)
    )
    chosen = draw(st.randoms(use_true_random=False)).choices(some, k=math.prod(shape))
    return np.array(chosen, name).reshape(shape), tuple(sorted(axes)), draw(st.booleans())


@pytest.mark.parametrize("name", TYPES)
@given(choice=st.data())
def test_an_integer_mean_is_the_exact_quotient_under_each_rounding_and_overflow(name, choice):
    x, axes, keepdims = choice.draw(reductions(name))
    (expectation,) = over_axes([x], name, axes, keepdims, silences=SILENCES)
    elements = [int(v) for v in x.reshape(-1)]
    groups = [[elements[i] for i in group] for group in reduction_groups(x.shape, axes)]
    shape = kept(x.shape, axes) if keepdims else reduced(x.shape, axes)
    admissible = {}
    for rounding, overflow in itertools.product(*SILENCES.values()):
        answer = np.array([mean(g, name, rounding, overflow) for g in groups], object).astype(name).reshape(shape)
        admissible[answer.tobytes()] = answer
        verdict = judge_answer(expectation, [answer], {"integer-rounding": rounding, "integer-overflow": overflow})
        assert verdict.outcome is Outcome.PASS, (rounding, overflow, verdict.detail)
    assert {option.outputs[0].value.tobytes() for option in expectation.options} == set(admissible)
    if len(admissible) == 1:
        assert not expectation.silences


def test_halves_about_zero_go_where_their_rounding_says():
    rows = np.array([[0, 1], [0, -1], [1, 2], [-1, -2]], np.int32)
    (expectation,) = over_axes([rows], "int32", (1,), False, silences=SILENCES)
    halves = {
        "truncate": [0, 0, 1, -1],
        "floor": [0, -1, 1, -2],
        "nearest-even": [0, 0, 2, -2],
        "nearest-away": [1, -1, 2, -2],
    }
    for rounding, answer in halves.items():
        verdict = judge_answer(expectation, [np.array(answer, np.int32)])
        assert verdict.behaviour == {"integer-rounding": [rounding]}


@pytest.mark.parametrize("name", TYPES)
@given(choice=st.data())
def test_what_no_rounding_and_no_overflow_gives_is_refused(name, choice):
    low, high = span(name)
    addends = choice.draw(st.lists(st.integers(low, high), min_size=1, max_size=9))
    (expectation,) = over_axes([np.array(addends, name)], name, (0,), False, silences=SILENCES)
    right = {mean(addends, name, *choices) for choices in itertools.product(*SILENCES.values())}
    for wrong in {r + d for r in right for d in (-1, 1)} - right:
        if low <= wrong <= high:
            assert judge_answer(expectation, [np.array(wrong, name)]).outcome is Outcome.WRONG_VALUE
