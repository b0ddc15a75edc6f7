"""References recorded: silences become options where they matter, clauses invalid lanes, known values programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes.recorded import admitted, recorded

from opconform.cases.batch import Expectation, Flag, Labels
from opconform.cases.errors import OpconformError
from opconform.generators.arithmetic.tape import Asks, Call, Facts, Port, Recorder, Value, record
from opconform.generators.primitives.machine import Machine


def labels(expectation: Expectation, lane: int = 0) -> list[Labels]:
    return [option.labels for option in expectation.case(lane).options]


def test_options_of_a_silence_apply_in_lanes_where_they_differ() -> None:
    def reference(c: Call, x: Value) -> Value:
        return x.order(0, largest=True, late=c.open("ties") == "higher")

    x = np.array([[1, 2, 3], [3, 1, 3]], np.int64)
    found = recorded(reference, [x], ["int64"], {"ties": ("lower", "higher")}).expectation([x])
    assert labels(found, 0) == [()]
    assert labels(found, 1) == [(("ties", "lower"),), (("ties", "higher"),)]


def test_options_come_in_the_order_of_the_spec_the_last_silence_first() -> None:
    def reference(c: Call, x: Value) -> Value:
        a = {"one": 1, "two": 2}[c.open("a")]
        return x + a if a == 1 else x + {"x": 5, "y": 6}[c.open("b")]

    x = np.zeros((1, 2), np.int32)
    found = recorded(reference, [x], ["int32"], {"a": ("one", "two"), "b": ("x", "y")}).expectation([x])
    assert labels(found) == [(("a", "one"),), (("a", "two"), ("b", "x")), (("a", "two"), ("b", "y"))]


def test_rejected_and_anything_end_a_reading_and_any_keeps_its_shape() -> None:
    def reference(c: Call, x: Value) -> Value:
        c.open("odd")
        return x[:2]

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    options = ("as-is", "rejected", "anything", "any")
    found = recorded(reference, [x], ["float32"], {"odd": options}).expectation([x]).case(0).options
    assert [option.kind for option in found] == ["values", "rejected", "anything", "values"]
    free = found[3].outputs[0]
    assert free.shape == (2,)
    assert free.flags is not None
    assert (free.flags == Flag.FREE).all()


def test_elements_are_freed_where_a_condition_holds_and_only_there_a_refusal_is_admitted() -> None:
    def reference(c: Call, x: Value, y: Value) -> Value:
        return x.quotient(y.where((y < 0) | ~(y < 1), 1)).undefined(y.equal(0), "by-zero")

    x, y = np.array([[6, 7], [6, 7]], np.int32), np.array([[3, 1], [0, 7]], np.int32)
    found = recorded(reference, [x, y], ["int32"], {"by-zero": ("any", "rejected")}).expectation([x, y])
    assert labels(found, 0) == [()]
    assert labels(found, 1) == [(("by-zero", "any"),), (("by-zero", "rejected"),)]
    flags = found.case(1).options[0].outputs[0].flags
    assert flags is not None
    assert flags.tolist() == [[Flag.FREE, 0]]


def test_clauses_make_programs_or_lanes_invalid() -> None:
    def reference(c: Call, x: Value, i: Value) -> Value:
        c.require("rank", x.rank == 1)
        c.require("range", (i < x.shape[0]) & (i >= 0))
        return x.gather(i, 0)

    x, i = np.ones((3, 4), np.float32), np.array([[0], [4], [-1]], np.int64)
    recording = recorded(reference, [x, i], ["float32"])
    assert {clause: broken.tolist() for clause, broken in recording.invalid([x, i]).items()} == {
        "range": [False, True, True]
    }
    found = recording.expectation([x, i])
    assert [found.case(lane).invalid for lane in range(3)] == [False, True, True]
    flat = recorded(reference, [x[:, :, None], i], ["float32"])
    assert flat.invalid_clause == "rank"
    assert flat.expectation([x[:, :, None], i]).case(0).invalid


def test_values_that_decide_shapes_are_asked_for() -> None:
    def reference(c: Call, x: Value, k: Value) -> Value:
        return x[: int(c.known(k)[0])]

    facts = Facts("onnx/First", 1, {"x": Port("float32", (5,)), "k": Port("int64", (1,))}, {"y": "float32"})
    with pytest.raises(Asks) as asks:
        record(reference, facts)
    assert asks.value.port == "k"
    assert record(reference, facts, {"k": np.array([3])}).shapes == ((3,),)


def test_a_call_says_what_the_program_has() -> None:
    seen: dict[str, Any] = {}

    def reference(c: Call, xs: list[Value], axes: Value | None) -> tuple[Value | None, ...]:
        seen.update(types=dict(c.types), given=c.given("axis"), axis=c.attr("axis"), other=c.attr("other", 7))
        seen.update(wants=c.wants("b"), ints=c.ints("axes"), version=c.version, missing=axes)
        seen.update(count=len(xs), eps=c.float32("eps"))
        return xs[0], None, xs[1]

    ports = {"xs": (Port("float32", (2,)), Port("float32", (3,))), "axes": None}
    outputs = {"a": "float32", "b": None, "c": "float32"}
    facts = Facts("openvino/Tried", 13, ports, outputs, attributes={"axis": -1, "eps": 1e-5}, given=frozenset({"axis"}))
    assert record(reference, facts).shapes == ((2,), (3,))
    assert seen == {
        "types": {"xs": "float32"}, "given": True, "axis": -1, "other": 7, "wants": False, "ints": None,
        "version": 13, "missing": None, "count": 2, "eps": float(np.float32(1e-5)),
    }  # fmt: skip


def test_a_silence_that_the_version_does_not_have_is_a_mistake_of_the_reference() -> None:
    with pytest.raises(OpconformError, match="has no silence 'odd'"):
        recorded(lambda c, x: c.open("odd") and x, [np.ones((1, 2), np.float32)], ["float32"])


def test_two_forms_of_a_formula_are_admitted_element_by_element() -> None:
    x = np.array([[1.0, 2.0]], np.float32)
    recording = recorded(lambda c, v: (v + 1.0).either(v * 3.0), [x], ["float32"])
    bounds = recording.expectation([x]).case(0).options[0].outputs[0]
    assert bounds.lower.tolist() == [[1.0, 0.0]]
    assert bounds.upper.tolist() == [[3.0, 6.0]]


def test_of_two_forms_one_of_which_is_not_a_number_either_is_admitted() -> None:
    a, b = np.array([[np.nan, np.nan, np.inf, 1.0]], np.float32), np.array([[np.inf, 1.0, 1.0, np.nan]], np.float32)
    recording = recorded(lambda c, x, y: x.maximum(y).either(x.maximum(y, nan="ignore")), [a, b], ["float32"])
    found = recording.expectation([a, b]).case(0)
    for answer, right in (
        ([np.nan, np.nan, np.inf, np.nan], True),
        ([np.inf, 1.0, np.inf, 1.0], True),
        ([np.nan, 2.0, np.inf, 1.0], False),
        ([np.nan, np.inf, np.inf, 1.0], False),
        ([np.inf, 1.0, 1.0, 1.0], False),
        ([1.0, 1.0, np.inf, 1.0], False),
    ):
        assert admitted(found, [np.array([answer], np.float32)]).all() == right, answer


def test_an_infinity_that_one_of_two_forms_gives_stays_one_when_elements_are_chosen() -> None:
    a, b = np.array([[np.nan, 1.0]], np.float32), np.array([[np.inf, 2.0]], np.float32)

    def reference(_: Call, x: Value, y: Value) -> Value:
        return x.maximum(y).either(x.maximum(y, nan="ignore")).take(np.array([1, 0]), 0)

    expected = recorded(reference, [a, b], ["float32"]).expectation([a, b]).case(0)
    for answer, right in (([2.0, np.nan], True), ([2.0, np.inf], True), ([2.0, np.finfo(np.float32).max], False)):
        assert admitted(expected, [np.array([answer], np.float32)]).all() == right, answer


def test_what_is_computed_of_one_of_two_forms_is_free_where_one_is_not_a_number() -> None:
    a, b = np.array([[np.nan, 1.0]], np.float32), np.array([[1.0, 2.0]], np.float32)
    recording = recorded(lambda c, x, y: x.maximum(y).either(x.maximum(y, nan="ignore")) * 3.0, [a, b], ["float32"])
    found = recording.expectation([a, b]).case(0)
    assert admitted(found, [np.array([[7.0, 6.0]], np.float32)]).all()
    assert not admitted(found, [np.array([[7.0, 7.0]], np.float32)]).any()


def test_what_is_written_twice_is_one_node() -> None:
    x = np.ones((1, 3), np.float32)
    recording = recorded(lambda c, v: (v + 1.0) * (v + 1.0), [x], ["float32"])
    assert [node.name for node in recording.graph.nodes] == ["port", "literal", "reshape", "add", "mul"]


def test_programs_share_a_recording_if_they_answer_alike_what_is_asked_of_them() -> None:
    def reference(c: Call, x: Value) -> Value:
        return x + c.attr("a") if c.attr("kind") == "plus" else x * c.attr("b")

    def made(**attributes: object) -> object:
        return recorder(reference, Facts("a/B", 1, {"x": Port("float32", (2,))}, {"y": "float32"}, attributes), {})

    recorder = Recorder()
    assert made(kind="plus", a=1, b=2) is made(kind="plus", a=1, b=3)  # nobody asks for b
    assert made(kind="times", a=1, b=2) is made(kind="times", a=9, b=2)
    assert made(kind="plus", a=0.0, b=2) is not made(kind="plus", a=-0.0, b=2)  # equal, but not to the bit
    assert made(kind="plus", a=1, b=2) is not made(kind="plus", a=1.0, b=2)
    assert made(kind="times", a=1, b=2) is not made(kind="plus", a=1, b=2)


def test_a_derivation_has_a_line_for_every_node() -> None:
    x = np.ones((1, 2, 3), np.float32)
    lines = recorded(lambda c, v: v.mean(1) / 3.0, [x], ["float32"]).derivation()
    assert lines[0] == "%0 = port 0  (float32 2x3)"
    assert lines[1].startswith("%1 = mean of %0 over (1,): ")
    assert lines[-1].endswith("(float32 2x1)")


def test_mutants_deviate_at_one_node_and_keep_what_it_does_not_reach() -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 6)
    recording = recorded(lambda c, v: (v.sum(0), v * 2.0), [x], ["float32", "float32"])
    machine = Machine(np.dtype(np.float32), np.dtype(np.float32))
    right, base = recording.native([x], machine)
    at = next(i for i, node in enumerate(recording.graph.nodes) if node.name == "sum")
    short = {at: lambda m, room, xs, p: room.native(m, xs[0][:, :-1], **p)}
    wrong, _ = recording.native([x], Machine(machine.type, machine.acc, deviate=short), base=base)
    assert (right[0].item(), wrong[0].item()) == (15, 10)
    assert np.array_equal(right[1], wrong[1])


def test_copied_zeros_keep_their_signs() -> None:
    x = np.array([[0.0, -0.0, 1.0]], np.float32)
    flags = recorded(lambda c, v: v[::-1], [x], ["float32"]).expectation([x]).case(0).options[0].outputs[0].flags
    assert flags is not None
    assert flags.tolist() == [[0, Flag.NEGATIVE_ZERO, Flag.POSITIVE_ZERO]]


def test_contexts_are_those_of_the_types_that_are_computed_in() -> None:
    x = np.array([[1.1, 2.7]], np.float16)
    accumulators = {
        name: [
            dict(o.labels).get("accumulator") for o in recorded(f, [x], ["float16"]).expectation([x]).case(0).options
        ]
        for name, f in {
            "computes": lambda c, v: v * v,
            "moves": lambda c, v: v[::-1],
            "selects": lambda c, v: v.maximum(-v),
            "elsewhere": lambda c, v: (v.cast("float32") * 1.5).cast("float16"),
        }.items()
    }
    assert accumulators == {
        "computes": ["wide", "stepwise", "narrow"], "moves": [None], "selects": [None], "elsewhere": [None],
    }  # fmt: skip


def test_an_operator_without_ports_has_as_many_lanes_as_are_asked_for() -> None:
    recording = recorded(lambda c: c.constant(np.arange(3), "int64"), [], ["int64"])
    assert recording.expectation([], lanes=2).case(1).options[0].outputs[0].value.tolist() == [[0, 1, 2]]


def test_outputs_with_structure_are_flat_and_say_what_they_are() -> None:
    def reference(c: Call, xs: list[Value]) -> tuple[Any, ...]:
        return xs[::-1], None, xs[0]

    ports = {"xs": (Port("float32", (2,)), Port("float32", (3,)))}
    outputs = {"s": "seq(float32)", "o": "optional(float32)", "t": "float32"}
    recording = record(reference, Facts("onnx/Tried", 1, ports, outputs))
    arrays = [np.ones((1, 2), np.float32), np.ones((1, 3), np.float32)]
    option = recording.expectation(arrays).options[0]
    assert [bounds.shape for bounds in option.outputs] == [(3,), (2,), (2,)]
    assert [str(one) for one in option.structure] == [
        "a sequence of 2 (a tensor, a tensor)",
        "an empty optional",
        "a tensor",
    ]


def test_tests_of_whole_outputs_know_their_places_and_what_they_are_held_against() -> None:
    def reference(c: Call, x: Value) -> tuple[Value, Value]:
        order = x.order(0, largest=True)
        c.check("follows", outputs=("places", "values"), arrays=(x,), axis=0)
        return x.along(order, 0), order

    x = np.array([[1.0, 3.0, 2.0]], np.float32)
    facts = Facts("onnx/Tried", 1, {"x": Port("float32", (3,))}, {"values": "float32", "places": "int64"})
    check = record(reference, facts).expectation([x]).options[0].checks[0]
    assert (check.name, check.outputs, check.settings) == ("follows", (1, 0), (("axis", 0),))
    assert check.arrays[0].tolist() == [[1, 3, 2]]


def test_a_reading_has_clauses_of_its_own() -> None:
    def reference(c: Call, x: Value, i: Value) -> Value:
        if c.open("negative") == "from-the-end":
            return x.gather(i.where(i >= 0, i + 3), 0)
        c.require("range", i >= 0)
        return x.gather(i, 0)

    x, i = np.array([[1, 2, 3]] * 2, np.int32), np.array([[1], [-1]])
    found = recorded(reference, [x, i], ["int32"], {"negative": ("from-the-end", "invalid")}).expectation([x, i])
    assert [[o.kind for o in found.case(lane).options] for lane in (0, 1)] == [["values"], ["values", "rejected"]]
