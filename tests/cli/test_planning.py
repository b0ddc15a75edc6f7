"""A plan that grows: it can be walked through while it is made, and says what goes wrong to whoever waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from opconform.cases.errors import OpconformError
from opconform.cli.planning import GrowingPlan


def test_the_first_ids_can_be_had_before_the_last_are_planned() -> None:
    goes_on = threading.Event()

    def ids() -> Iterator[str]:
        yield from map(str, range(1000))
        goes_on.wait(30)
        yield from map(str, range(1000, 2000))

    plan = GrowingPlan(ids())
    assert plan.at_least(1) >= 1
    walk = iter(plan)
    assert [next(walk) for _ in range(500)] == [str(n) for n in range(500)]
    assert plan.total is None
    goes_on.set()
    assert plan.at_least(None) == plan.total == 2000
    assert list(plan) == [str(n) for n in range(2000)]
    assert list(walk) == [str(n) for n in range(500, 2000)]


def test_a_plan_of_nothing_is_whole_at_once() -> None:
    plan = GrowingPlan(iter(()))
    assert plan.at_least(5) == 0
    assert list(plan) == []


def test_what_goes_wrong_is_raised_to_whoever_waits() -> None:
    def ids() -> Iterator[str]:
        yield "onnx/Mean-13/float32/2/-/ones"
        raise OpconformError("the rest is wrong")

    plan = GrowingPlan(ids())
    with pytest.raises(OpconformError, match="the rest is wrong"):
        plan.at_least(None)
    with pytest.raises(OpconformError, match="the rest is wrong"):
        list(plan)
