"""Answers that are wrong under a trigger: where each sets off, and what it leaves as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opconform.cases.elements import type_of
from opconform.cases.program import Input, Program
from opconform.generators.mutants.backends import Interpreter, implementation
from opconform.generators.mutants.effects import ALWAYS, grid, state_mutants, triggered
from opconform.generators.mutants.implementation import Implementation, Invocation, Met
from opconform.generators.mutants.triggers import AXES, triggers
from opconform.generators.source import GeneratedCases, shipped
from opconform.specs.model import Spec, VersionSpec


def version(name: str, **changes: Any) -> tuple[Spec, VersionSpec]:
    spec, key = shipped().operator_version(name)
    return spec, replace(spec.version(key), **changes)


def invocation(name: str, *arrays: np.ndarray, program: Program | None = None, **attributes: Any) -> Invocation:
    spec, own = version(name)
    ports: tuple[Any, ...] = (tuple(arrays),) if own.signature.inputs[0].is_variadic else arrays
    types = [Input(f"x{n}", type_of(a), a.shape[1:]) for n, a in enumerate(arrays)]
    usual = Program(own.operator, (), tuple(types), (), int(own.operator.version))
    return Invocation(spec, own, program or usual, attributes, ports, frozenset(i.name for i in types))


def set_off(name: str, *arrays: np.ndarray, outs: Sequence[np.ndarray] = (), met: Any = None, **more: Any) -> set[str]:
    one = Met(invocation(name, *arrays, **more), list(outs), **(met or {}))
    return {t.name for t in triggers(*version(name)) if t.lanes(one).any()}


def mutant(name: str, wanted: str) -> Implementation:
    return next(triggered(t, e) for t, some in grid(*version(name)) for e in some if f"{t.name}:{e.name}" == wanted)


def tensor(*shape: int, type_: Any = np.float32) -> np.ndarray:
    return np.arange(np.prod((1, *shape)), dtype=type_).reshape(1, *shape)


def test_triggers_are_what_a_call_has():
    found = set_off("onnx/Mean-13", tensor(2, 65))
    assert found >= {"rank=2", "extent=over-64", "extent=odd", "type=float32", "inputs=1", "extent=64-one-more"}
    assert not found & {"rank=1", "rank=3", "extent=over-128", "extent=1", "inputs=2", "extent=64-whole"}
    assert "elements=over-300" in set_off("onnx/Mean-13", tensor(2), outs=[tensor(301)])
    assert "elements=over-300" not in set_off("onnx/Mean-13", tensor(301), outs=[tensor(2)])
    assert "extent=1" in set_off("onnx/Mean-13", tensor(2, 1), tensor(3))


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
    assert {f"axes={name}" for name in names} <= set_off("onnx/ReduceMean-13", tensor(2, 3, 4), axes=axes)


def test_the_parts_that_axes_make_are_told_apart():
    found = set_off("onnx/ReduceMean-13", tensor(17, 2, 33), axes=(1,))
    assert {"outer=over-16", "inner=over-32"} <= found
    assert not found & {"reduced=over-16", "outer=over-32", "inner=1", "inner=over-64"}
    whole = set_off("onnx/ReduceMean-13", tensor(17, 60), axes=())
    assert {"reduced=over-1000", "inner=1", "outer=1"} <= whole


def test_one_axis_is_no_list_of_axes():
    names = {t.name for t in triggers(*version("onnx/Softmax-13")) if t.group == "axes"}
    assert names == {"axes=front", "axes=middle", "axes=end", "axes=negative"}


def test_what_is_fixed_with_a_program_and_what_is_given_twice_set_off():
    fed, fixed = Input("A", "float32", (2,)), Input("B", "float32", (2,), np.ones(2, np.float32).tobytes())
    operator, two = version("onnx/Add-14")[1].operator, (tensor(2), tensor(2))
    found = set_off("onnx/Add-14", *two, program=Program(operator, (), (fed, fixed), (), 14))
    assert {"from=A-fed", "from=B-constant", "opset=first"} <= found
    assert not found & {"from=A-constant", "from=B-fed", "twice=input", "opset=last"}
    found = set_off("onnx/Add-14", *two, program=Program(operator, (), (fed, fed), (), 28))
    assert {"twice=input", "from=B-fed", "opset=last"} <= found


def test_runs_of_a_program_set_off_by_number_and_by_the_shapes_before():
    runs = {name: set_off("onnx/Add-14", tensor(2), tensor(2), met={"runs": [n]}) for n, name in enumerate("abcd")}
    assert [name for name in runs if "run=first" in runs[name]] == ["a"]
    assert [name for name in runs if "run=second" in runs[name]] == ["b"]
    assert [name for name in runs if "run=later" in runs[name]] == ["c", "d"]
    assert "run=resized" in set_off("onnx/Add-14", tensor(2), tensor(2), met={"runs": [1], "resized": [True]})


def test_triples_of_interacting_parameters_are_triggers():
    spec, own = version("onnx/ReduceMean-13", strength={3: (("T", "axes", "keepdims"),)})
    names = {t.name for t in triggers(spec, own) if t.group == "triple"}
    assert "triple=type=float16,axes=front,keepdims=0" in names
    found = [t for t in triggers(spec, own) if t.name == "triple=type=float32,axes=front,keepdims=1"]
    assert found[0].lanes(Met(invocation("onnx/ReduceMean-13", tensor(2, 3), axes=(0,)), [])).all(), "keepdims is 1"


def test_a_triggered_mutant_is_right_elsewhere():
    wrong, out = mutant("onnx/Mean-13", "rank=2:zeros"), [tensor(4) + 1]
    assert wrong.under is not None
    assert wrong.under.lanes(Met(invocation("onnx/Mean-13", tensor(2, 2)), out)).all()
    assert not wrong.under.lanes(Met(invocation("onnx/Mean-13", tensor(4)), out)).any()
    assert not wrong.finish(invocation("onnx/Mean-13", tensor(4)), out)[0].any()


@pytest.mark.parametrize(
    ("effect", "type_", "number", "read"),
    [
        ("inputs-in-tf32", np.float32, 1 + 2.0**-11, 1.0),
        ("inputs-in-tf32", np.float32, 1 + 2.0**-10, 1 + 2.0**-10),
        ("inputs-in-bfloat16", np.float32, 1 + 2.0**-9, 1.0),
        ("inputs-in-float32", np.float64, 1 + 2.0**-40, 1.0),
        ("inputs-in-float", np.int32, 2**24 + 1, 2**24),
        ("inputs-in-float", np.int64, 2**53 + 1, 2**53),
        ("inputs-in-float", np.int32, 2**24 - 1, 2**24 - 1),
    ],
)
def test_inputs_are_read_in_narrower_types(effect, type_, number, read):
    wrong, call = mutant("onnx/ReduceMean-13", f"rank=1:{effect}"), np.array([[number]], type_)
    told = wrong.reading(invocation("onnx/ReduceMean-13", call))
    assert told.arrays[0].dtype == type_
    assert told.arrays[0].item() == read


@pytest.mark.parametrize("name", sorted(ALWAYS))
@pytest.mark.parametrize("type_", [np.float32, np.float16, np.int32, np.uint8, np.bool_, object])
def test_effects_take_every_type(name, type_):
    array = np.array([["a", "b"]], object) if type_ is object else tensor(3, 20).astype(type_)
    told = ALWAYS[name][1](array)
    assert len(told) == len(array)


def test_a_place_beyond_the_tensor_is_left_alone():
    wrong, call = mutant("onnx/Mean-13", "place=beyond-64:wrong"), invocation("onnx/Mean-13", tensor(3))
    small = [tensor(3)]
    assert wrong.finish(call, small)[0] is small[0]
    large = wrong.finish(call, [tensor(70)])[0]
    assert np.flatnonzero(large != tensor(70)).tolist() == [64]


def test_a_place_of_an_input_is_misread_alone():
    wrong, call = mutant("onnx/Add-14", "input-place=last:wrong"), invocation("onnx/Add-14", tensor(3), tensor(3))
    told = wrong.reading(call)
    assert told.arrays[0].tolist() == [[0, 1, 0]]
    assert told.arrays[1] is call.arrays[1], "it is the first input"
    assert mutant("onnx/Add-14", "input-place=beyond-64:wrong").reading(call) is call


def test_what_is_remembered_comes_back_in_later_runs_alone():
    first, last, added, shared, _ = state_mutants()
    runs = [np.array([[1.0], [2.0], [4.0]], np.float32)]
    assert first.recall({}, runs)[0].reshape(-1).tolist() == [1, 1, 1]
    assert last.recall({}, runs)[0].reshape(-1).tolist() == [1, 1, 2]
    assert added.recall({}, runs)[0].reshape(-1).tolist() == [1, 3, 6]
    assert shared.recall({}, runs)[0].reshape(-1).tolist() == [4, 4, 4], "as they are after the last run"
    memory = {}
    assert first.recall(memory, [runs[0][:1]])[0].item() == 1
    assert first.recall(memory, [runs[0][1:2]])[0].item() == 1
    (kept,) = shared.recall(memory, [runs[0][:1]])
    shared.recall(memory, [runs[0][1:2]])
    assert kept.item() == 2, "the answer of the run before has changed"


def test_inputs_are_overwritten_after_they_were_read():
    library = shipped()
    backend = Interpreter("mutant:inputs-overwritten", implementation(library, "inputs-overwritten"), library)
    program = next(iter(GeneratedCases().batches(["onnx/Add-14/float32/2*3x2/-/ramp"]))).program
    x, y = np.ones((3, 2), np.float32), np.ones((3, 2), np.float32)
    assert backend.prepare(program).run([x, y])[0].tolist() == [[2, 2]] * 3
    assert not x.any()
    assert not y.any()
