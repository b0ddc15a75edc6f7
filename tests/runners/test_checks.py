"""Tests that options make on whole outputs: what may come in any order, what follows, what is random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes.judging import batch_of, judging_script, read_option
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.batch import Bounds, Check, CheckName, Expectation, Flag, Option
from opconform.cases.elements import Array, type_of
from opconform.cases.results import Outcome
from opconform.runners.judging.answers import Answer, Answers
from opconform.runners.judging.judge import Verdict, asks_again, judge


def check(name: CheckName, *outputs: int, arrays: Sequence[Array] = (), **settings: float) -> Check:
    return Check(name, outputs, tuple(settings.items()), tuple(arrays))


def expected(*outputs: Array, checks: Sequence[Check] = (), flags: Sequence[int] = ()) -> Expectation:
    """What admits these outputs exactly, lanes first; `flags` for all elements of each."""
    lanes, bounds = len(outputs[0]), []
    for place, output in enumerate(outputs):
        value = output.astype(np.float64) if output.dtype.kind == "f" else output
        marks = np.full(output.shape, flags[place], np.uint8) if flags and flags[place] else None
        bounds.append(Bounds(type_of(output), value, value, value, marks))
    option = Option((), tuple(bounds), applies=np.ones(lanes, bool), checks=tuple(checks))
    return Expectation((option,), tuple(map(type_of, outputs)), lanes)


def judged(expectation: Expectation, *outputs: Array, again: Sequence[Array] | None = None) -> list[Verdict]:
    """The verdicts on answers, lanes first."""

    def answers(arrays: Sequence[Array]) -> Answers:
        return Answers.of([Answer(tuple(a[lane] for a in arrays)) for lane in range(expectation.lanes)])

    return judge(batch_of(expectation), answers(outputs), again=None if again is None else answers(again))


def outcomes(expectation: Expectation, *outputs: Array) -> list[str]:
    """The outcomes of answers, lanes first, on which the scripts that reproduce cases agree."""
    found = [str(verdict.outcome) for verdict in judged(expectation, *outputs)]
    assert [admitted_by_script(expectation, lane, outputs) for lane in range(len(found))] == [
        o == "pass" for o in found
    ]
    return found


def admitted_by_script(expectation: Expectation, lane: int, outputs: Sequence[Array]) -> bool:
    option = read_option(batch_of(expectation).case(lane).expectation.options[0])
    answers = [("string" if array.dtype.hasobject else str(array.dtype), array[lane]) for array in outputs]
    with np.errstate(all="ignore"):
        return bool(judging_script()["admits"](option, ["*"] * len(outputs), answers))


# Any order


@given(st.data())
def test_what_comes_in_any_order_is_admitted_in_every_one(data: st.DataObject) -> None:
    """The largest of each line with their indices, as of TopK that need not sort."""
    shape = data.draw(st.sampled_from([(3,), (2, 3), (3, 2), (2, 3, 2)]))
    axis = data.draw(st.integers(0, len(shape) - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    values = rng.integers(0, 3, (2, *shape)).astype(np.float32)
    indices = rng.integers(0, 9, (2, *shape))
    expectation = expected(values, indices, checks=[check("order", 0, 1, axis=axis)])
    order = rng.random(values.shape).argsort(axis + 1)
    mixed = [np.take_along_axis(one, order, axis + 1) for one in (values, indices)]
    assert outcomes(expectation, *mixed) == ["pass", "pass"]
    mixed[1].flat[0] += 100
    assert outcomes(expectation, *mixed) == ["wrong-value", "pass"]


def test_pairs_stay_pairs_in_any_order() -> None:
    values, indices = np.float32([[1, 2]]), np.array([[5, 6]])
    expectation = expected(values, indices, checks=[check("order", 0, 1, axis=0)])
    assert outcomes(expectation, values[:, ::-1], indices[:, ::-1]) == ["pass"]
    assert outcomes(expectation, values[:, ::-1], indices) == ["wrong-value"]


def test_rows_come_in_any_order_and_stay_whole() -> None:
    rows = np.array([[[0, 1, 2], [0, 2, 1], [1, 0, 0]]])
    expectation = expected(rows, checks=[check("order", 0, axis=0, whole=1)])
    assert outcomes(expectation, rows[:, [2, 0, 1]]) == ["pass"]
    mixed = rows.copy()
    mixed[0, :2, 1] = rows[0, 1::-1, 1]
    assert outcomes(expectation, mixed) == ["wrong-value"]
    nothing = np.zeros((1, 0, 3), np.int64)
    assert outcomes(expected(nothing, checks=[check("order", 0, axis=0, whole=1)]), nothing) == ["pass"]


def test_texts_come_in_any_order() -> None:
    texts = np.array([["b", "a", "c"]], object)
    expectation = expected(texts, checks=[check("order", 0, axis=0)])
    assert outcomes(expectation, texts[:, ::-1]) == ["pass"]
    assert outcomes(expectation, np.array([["b", "a", "d"]], object)) == ["wrong-value"]


# What follows


def following(*arrays: Array, outputs: Sequence[int], **settings: float) -> Check:
    return check("follows", *outputs, arrays=arrays, **settings)


def test_an_index_may_be_any_of_those_with_the_value() -> None:
    data = np.float32([[[3, 1, 3], [2, 2, 0]]])
    largest, index = np.float32([[[3], [2]]]), np.array([[[0], [0]]])
    rule = following(data, outputs=(1, 0), axis=1)
    expectation = expected(largest, index, checks=[rule], flags=[0, Flag.FREE])
    for first in (0, 2):
        assert outcomes(expectation, largest, np.array([[[first], [1]]])) == ["pass"]
    for wrong in ([[1], [1]], [[0], [2]], [[3], [0]], [[-1], [0]]):
        (verdict,) = judged(expectation, largest, np.array([wrong]))
        assert verdict.outcome is Outcome.WRONG_VALUE
        assert verdict.detail == "each element is admitted, but not all together: follows"


def test_indices_alone_follow_what_is_wanted_without_their_axis_or_into_all_elements() -> None:
    data, wanted = np.array([[[3, 1, 3]]], np.int8), np.array([[3]], np.int8)
    index = np.array([[2]])
    rule = following(data, wanted, outputs=(0,), axis=1, squeezed=1)
    assert outcomes(expected(index, checks=[rule], flags=[Flag.FREE]), index) == ["pass"]
    assert outcomes(expected(index, checks=[rule], flags=[Flag.FREE]), index - 1) == ["wrong-value"]
    flat = following(data, wanted, outputs=(0,))
    assert outcomes(expected(index, checks=[flat], flags=[Flag.FREE]), index) == ["pass"]
    assert outcomes(expected(index, checks=[flat], flags=[Flag.FREE]), index + 1) == ["wrong-value"]


def test_an_index_comes_twice_only_where_it_may() -> None:
    data, two = np.float32([[np.nan, 3, 3]]), np.float32([[3, 3]])
    for distinct, outcome in ((0, "pass"), (1, "wrong-value")):
        rule = following(data, two, outputs=(0,), axis=0, distinct=distinct)
        expectation = expected(np.array([[1, 2]]), checks=[rule], flags=[Flag.FREE])
        assert outcomes(expectation, np.array([[2, 1]])) == ["pass"]
        assert outcomes(expectation, np.array([[2, 2]])) == [outcome]


def test_nothing_follows_from_no_element() -> None:
    nothing = np.zeros((1, 0), np.int64)
    rule = following(np.zeros((1, 0)), np.zeros((1, 0)), outputs=(0,), axis=0)
    assert outcomes(expected(nothing, checks=[rule], flags=[Flag.FREE]), nothing) == ["pass"]


# What is random


def of_moments(shape: tuple[int, ...], mean: Any, variance: Any, *fourth: Any, **settings: float) -> Expectation:
    arrays = [np.broadcast_to(np.asarray(one, np.float64), shape) for one in (mean, variance, *fourth)]
    rule = check("moments", 0, arrays=arrays, **settings)
    return expected(np.zeros(shape, np.float32), checks=[rule], flags=[Flag.FREE])


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 10, 1000])
def test_right_distributions_pass_and_others_do_not(size: int) -> None:
    rng = np.random.default_rng(0)
    lanes = (200, size)
    drawn = {
        "normal": (rng.normal(3, 2, lanes), of_moments(lanes, 3, 4)),
        "uniform": (rng.uniform(-1, 1, lanes), of_moments(lanes, 0, 1 / 3, 1 / 5, reach=1)),
        "few ones": (
            (rng.random(lanes) < 0.01).astype(float),
            of_moments(lanes, 0.01, 0.0099, 0.0099 * (1 - 3 * 0.0099), reach=0.99),
        ),
    }
    for name, (numbers, expectation) in drawn.items():
        assert set(outcomes(expectation, numbers.astype(np.float32))) == {"pass"}, name
    if size == 1000:
        normal = of_moments(lanes, 3, 4)
        for wrong in (rng.normal(4, 2, lanes), rng.normal(3, 3, lanes), rng.normal(3, 1, lanes), np.full(lanes, 3.0)):
            assert set(outcomes(normal, wrong.astype(np.float32))) == {"wrong-value"}
        spoilt = rng.normal(3, 2, lanes)
        spoilt[:, 0] = np.nan
        assert set(outcomes(normal, spoilt.astype(np.float32))) == {"wrong-value"}


def test_what_is_to_be_normal_needs_more_than_the_moments() -> None:
    rng = np.random.default_rng(0)
    lanes = (20, 2000)
    normal = of_moments(lanes, 3, 4, law="normal", unit=2.0**-8)
    right = rng.normal(3, 2, lanes)
    assert set(outcomes(normal, right.astype(np.float32))) == {"pass"}
    assert set(outcomes(normal, right.astype(np.float16).astype(np.float32))) == {"pass"}
    others = {
        "two points": rng.choice([1.0, 5.0], lanes),
        "one-sided": 1 + rng.exponential(2, lanes),
    }
    for name, wrong in others.items():
        assert set(outcomes(normal, wrong.astype(np.float32))) == {"wrong-value"}, name


def test_uniform_numbers_lie_evenly_and_a_grid_as_coarse_as_the_type_is_no_matter() -> None:
    rng = np.random.default_rng(0)
    lanes = (20, 2000)
    uniform = of_moments(lanes, 3, 1 / 3, 1 / 5, reach=1.0, law="uniform", unit=2.0**-6)
    right = rng.uniform(2, 4, lanes)
    assert set(outcomes(uniform, right.astype(np.float32))) == {"pass"}
    assert set(outcomes(uniform, (np.floor(right * 64) / 64).astype(np.float32))) == {"pass"}
    spread = np.sqrt(1 / 3)
    others = {
        "two points": rng.choice([3 - spread, 3 + spread], lanes),
        "three points": 3 + rng.choice([-1.0, 0.0, 1.0], lanes, p=[1 / 6, 2 / 3, 1 / 6]),
        "the lower half": rng.uniform(2, 3, lanes),
        "squared": 2 + 2 * rng.uniform(0, 1, lanes) ** 2,
    }
    for name, wrong in others.items():
        assert set(outcomes(uniform, wrong.astype(np.float32))) == {"wrong-value"}, name


@pytest.mark.parametrize("law", ["normal", "uniform", "coins"])
def test_what_is_drawn_is_independent_along_every_axis(law: str) -> None:
    rng, lanes = np.random.default_rng(0), (5, 6, 10, 50)
    settings: dict[str, Any] = {"reach": 1.0, **({"law": law} if law == "uniform" else {})}
    expectation = {
        "normal": of_moments(lanes, 0, 1, law="normal"),
        "uniform": of_moments(lanes, 0, 1 / 3, 1 / 5, **settings),
        "coins": of_moments(lanes, 0.5, 0.25, 0.0625, **settings),
    }[law]

    def drawn(shape: tuple[int, ...]) -> Any:
        if law == "coins":
            return rng.integers(0, 2, shape).astype(np.float32)
        return (rng.normal(size=shape) if law == "normal" else rng.uniform(-1, 1, shape)).astype(np.float32)

    assert set(outcomes(expectation, drawn(lanes))) == {"pass"}
    for axis in (1, 2, 3):
        once = drawn(tuple(extent // 2 if at == axis else extent for at, extent in enumerate(lanes)))
        assert set(outcomes(expectation, np.repeat(once, 2, axis))) == {"wrong-value"}, axis


def test_classes_come_as_often_as_they_should_in_each_row() -> None:
    rng = np.random.default_rng(0)
    chances = np.array([[0.5, 0.25, 0.25, 0.0], [0.1, 0.0, 0.0, 0.9]])
    rows = np.stack([[rng.choice(4, 500, p=row) for row in chances] for _ in range(20)]).astype(np.int32)
    rule = check("frequencies", 0, arrays=[np.broadcast_to(chances, (20, 2, 4))])
    option = expected(np.zeros(rows.shape, np.int32), checks=[rule], flags=[Flag.FREE])
    assert set(outcomes(option, rows)) == {"pass"}
    once = rows.copy()
    once[:, 1, 7] = 1
    far, below = np.where(np.arange(500) == 3, 4, rows), np.where(np.arange(500) == 3, -1, rows)
    for wrong in (once, far, below, rows[:, ::-1], rows // 2, np.zeros_like(rows)):
        assert set(outcomes(option, wrong.astype(np.int32))) == {"wrong-value"}


def test_a_tensor_of_no_element_has_no_moments_to_miss() -> None:
    assert outcomes(of_moments((1, 0), 0, 1), np.zeros((1, 0), np.float32)) == ["pass"]


def test_a_mask_agrees_with_what_is_dropped() -> None:
    kept = np.float32([[2, 4, 0, 6]])
    mask = np.array([[True, False, True, True]])
    expectation = expected(kept, mask, checks=[check("mask-agrees", 0, 1)], flags=[Flag.ZERO, Flag.FREE])
    assert outcomes(expectation, np.float32([[2, 0, 0, 6]]), mask) == ["pass"]
    assert outcomes(expectation, np.float32([[2, 0, 0, 6]]), np.array([[True, False, False, True]])) == ["pass"]
    assert outcomes(expectation, np.float32([[2, 4, 0, 6]]), mask) == ["wrong-value"]
    assert outcomes(expectation, np.float32([[0, 0, 0, 6]]), mask) == ["wrong-value"]


def test_bits_are_kept_those_of_a_nan_too() -> None:
    bits = np.array([[0x7FC00001, 0xFFC00123, 0x80000000]], np.uint32)
    wanted = bits[..., np.newaxis].view(np.uint8)
    expectation = expected(bits.view(np.float32), checks=[check("same-bits", 0, arrays=[wanted])], flags=[Flag.NAN])
    assert outcomes(expectation, bits.view(np.float32)) == ["pass"]
    assert outcomes(expectation, (bits & ~np.uint32(1)).view(np.float32)) == ["wrong-value"]


def test_an_element_is_one_of_two_and_nothing_between() -> None:
    one, other = np.float32([[1, 2, 3]]), np.float32([[1, 4, math.nan]])
    expectation = expected(one, checks=[check("one-of", 0, arrays=[one, other])], flags=[Flag.FREE])
    for right in (one, other, np.float32([[1, 4, 3]])):
        assert outcomes(expectation, right) == ["pass"]
    (verdict,) = judged(expectation, np.float32([[1, 3, 3]]))
    assert str(verdict.outcome) == "wrong-value"
    assert "element [1]: got 3.0" in str(verdict.detail)


@pytest.mark.parametrize(
    ("text", "value", "reads"),
    [
        ("0.1", 0.1, True),
        ("0.10000000149011612", np.float32(0.1), True),
        ("1.5e-7", 1.5e-7, True),
        ("-12", -12.9, True),
        ("340282350000000000000000000000000000000", np.finfo(np.float32).max, True),
        ("-INF", -math.inf, True),
        ("NaN", math.nan, True),
        ("77", 3.25, False),
        ("3.26", 3.25, False),
        ("inf", -math.inf, False),
        ("nan", 1.0, False),
        ("1,5", 1.5, False),
        ("", 0.0, False),
    ],
)
def test_text_reads_as_its_number(text: str, value: float, reads: bool) -> None:
    wanted = np.array([[float(value)]])
    texts = np.array([[text]], object)
    expectation = expected(texts, checks=[check("reads-as", 0, arrays=[wanted])], flags=[Flag.FREE])
    assert outcomes(expectation, texts) == ["pass" if reads else "wrong-value"]


def test_a_seed_gives_the_same_again() -> None:
    drawn = np.float32([[0.25, 0.5], [0.75, 0.125]])
    expectation = expected(drawn, checks=[check("same-seed")], flags=[Flag.FREE])
    assert asks_again(expectation)
    assert not asks_again(expected(drawn))
    other = drawn.copy()
    other[1, 1] = np.nextafter(other[1, 1], np.float32(1))
    found = judged(expectation, drawn, again=[other])
    assert [verdict.outcome for verdict in found] == [Outcome.PASS, Outcome.WRONG_VALUE]
    assert "same-seed" in (found[1].detail or "")
    differing = expected(drawn, checks=[check("same-seed", differs=1)], flags=[Flag.FREE])
    assert [one.outcome for one in judged(differing, drawn, again=[other])] == [Outcome.WRONG_VALUE, Outcome.PASS]


# Expectations


def test_checks_and_structures_are_part_of_the_digest_and_go_with_their_lanes() -> None:
    drawn = np.float32([[1, 2], [3, 4]])
    plain = expected(drawn)
    moments = of_moments((2, 2), np.array([[1, 1], [2, 2]]), 1)
    assert len({*plain.digests, *moments.digests}) == 4
    assert moments.case(1).digest == moments.digests[1]
    assert moments.case(1).options[0].checks[0].arrays[0].tolist() == [[2, 2]]
    (option,) = moments.options
    other = replace(option.checks[0], settings=(("alarm", 0.1),))
    assert Expectation((replace(option, checks=(other,)),), moments.types, 2).digests != moments.digests
