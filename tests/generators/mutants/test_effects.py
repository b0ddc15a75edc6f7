"""Answers that are wrong under a trigger: where each sets off, and what it leaves as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from opconform.generators.mutants.effects import ALWAYS, AXES, answer_mutants, triggers
from opconform.generators.mutants.invocation import Invocation
from opconform.generators.mutants.state import state_mutants


class _Version:
    class signature:  # noqa: N801 - stands for an attribute
        inputs = ()


def invocation(*arrays: np.ndarray, **attributes: Any) -> Invocation:
    class _Program:
        outputs = ()

    return Invocation(cast(Any, None), cast(Any, _Version), cast(Any, _Program), attributes, tuple(arrays), frozenset())


def set_off(*arrays: np.ndarray, outs: Sequence[np.ndarray] = (), types=("float32",), **attributes: Any) -> set[str]:
    call = invocation(*arrays, **attributes)
    return {t.name for t in triggers(types, True, True) if t.when(call, list(outs))}


def tensor(*shape: int, type_: Any = np.float32) -> np.ndarray:
    return np.arange(np.prod((1, *shape)), dtype=type_).reshape(1, *shape)


def test_triggers_are_what_a_call_has():
    assert set_off(tensor(2, 65)) >= {"rank=2", "extent=over-64", "extent=odd", "type=float32", "inputs=1"}
    assert not set_off(tensor(2, 65)) & {"rank=1", "rank=3", "extent=over-128", "extent=1", "inputs=2"}
    assert "elements=over-300" in set_off(tensor(2), outs=[tensor(301)])
    assert "elements=over-300" not in set_off(tensor(301), outs=[tensor(2)])
    assert "extent=1" in set_off(tensor(2, 1), tensor(3))


@pytest.mark.parametrize(
    ("axes", "names"),
    [
        ((0,), {"front"}),
        ((-1,), {"end", "negative"}),
        ((1,), {"middle"}),
        ((0, 1), {"adjacent"}),
        ((2, 0), {"apart", "unsorted"}),
        ((0, 1, 2), {"all"}),
        ((), {"none"}),
    ],
)
def test_axes_are_told_by_where_they_lie(axes, names):
    assert {name for name, (_, when) in AXES.items() if when(axes, 3)} == names
    assert {f"axes={name}" for name in names} <= set_off(tensor(2, 3, 4), axes=axes)


def test_a_triggered_mutant_is_right_elsewhere():
    mutants = {m.name: m for m in answer_mutants(["float32"], ["float32"], several=False, variadic=False, axes=False)}
    wrong, out = mutants["rank=2:zeros"], [tensor(4) + 1]
    assert wrong.finish(invocation(tensor(2, 2)), out)[0].any() == np.False_
    assert wrong.finish(invocation(tensor(4)), out) is out


@pytest.mark.parametrize("name", sorted(ALWAYS))
@pytest.mark.parametrize("type_", [np.float32, np.float16, np.int32, np.uint8, np.bool_, object])
def test_effects_take_every_type(name, type_):
    array = np.array([["a", "b"]], object) if type_ is object else tensor(3, 20).astype(type_)
    told = ALWAYS[name][1](array)
    assert len(told) == len(array)


def test_a_place_beyond_the_tensor_is_left_alone():
    mutants = {m.name: m for m in answer_mutants(["float32"], ["float32"], several=False, variadic=False, axes=False)}
    small = [tensor(3)]
    assert mutants["place=beyond-64:wrong"].finish(invocation(), small)[0] is small[0]
    large = mutants["place=beyond-64:wrong"].finish(invocation(), [tensor(70)])[0]
    assert np.flatnonzero(large != tensor(70)).tolist() == [64]


def test_what_is_remembered_comes_back_in_later_runs_alone():
    first, last, added = state_mutants()
    runs = [np.array([[1.0], [2.0], [4.0]], np.float32)]
    assert first.recall({}, runs)[0].reshape(-1).tolist() == [1, 1, 1]
    assert last.recall({}, runs)[0].reshape(-1).tolist() == [1, 1, 2]
    assert added.recall({}, runs)[0].reshape(-1).tolist() == [1, 3, 6]
    memory = {}
    assert first.recall(memory, [runs[0][:1]])[0].item() == 1
    assert first.recall(memory, [runs[0][1:2]])[0].item() == 1
