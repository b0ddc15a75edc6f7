"""The judge on all that is no plain float: exact types, low-bit floats, several outputs, structures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from fakes.judging import batch_of

from opconform.cases.batch import Batch, Bounds, Expectation, Flag, Option
from opconform.cases.elements import Array, element_type, type_of
from opconform.cases.program import OperatorVersion, Output, Program, Structure, optional, sequence
from opconform.runners.judging.accuracy import accuracies
from opconform.runners.judging.answers import Answer, Answers, answer_of, same_answer
from opconform.runners.judging.judge import Verdict, judge

FLOATS = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float4e2m1", "bfloat16", "float16")
INTEGERS = ("int2", "uint2", "int4", "uint4", "int8", "uint64")


def exactly(array: Array, flags: Sequence[int] | None = None) -> Bounds:
    value = array.astype(np.float64) if element_type(type_of(array)).kind == "float" else array
    marks = None if flags is None else np.array([flags], np.uint8)
    return Bounds(type_of(array), value[np.newaxis], value[np.newaxis], value[np.newaxis], marks)


def judged(wanted: Sequence[Bounds], *outputs: Array) -> Verdict:
    expectation = Expectation((Option((), tuple(wanted)),), tuple(one.type for one in wanted))
    return judge(batch_of(expectation), Answers.of_case(*outputs))[0]


@pytest.mark.parametrize("name", INTEGERS)
def test_whole_numbers_of_every_width_are_compared_in_their_own_type(name: str) -> None:
    kind = element_type(name)
    right = np.array([kind.smallest, kind.largest, 1], object).astype(np.int64 if kind.smallest else np.uint64)
    array = right.astype(kind.dtype)
    assert judged([exactly(array)], array).outcome == "pass"
    wrong = array.copy()
    wrong[1] = np.array(0).astype(kind.dtype)
    found = judged([exactly(array)], wrong)
    assert found.outcome == "wrong-value"
    assert (found.detail or "").splitlines()[0] == f"element [1]: got 0, want {kind.largest} exactly (1 of 3 wrong)"
    assert f"largest error: {kind.largest:,} at [1]" in (found.detail or "")


@pytest.mark.parametrize("name", FLOATS)
def test_floats_of_every_width_are_compared_as_the_numbers_that_they_are(name: str) -> None:
    form = element_type(name).float_format
    right = np.array([0.5, form.largest, -1.0]).astype(element_type(name).dtype)
    assert judged([exactly(right)], right).outcome == "pass"
    wrong = np.array([0.5, 1.0, -1.0]).astype(right.dtype)
    found = judged([exactly(right)], wrong)
    assert found.outcome == "wrong-value"
    assert f"got 1.0, want {form.largest} exactly (1 of 3 wrong)" in (found.detail or "")
    expectation = Expectation((Option((), (exactly(right),)),), (name,))
    (graded,) = accuracies(expectation, Answers.of_case(right))
    assert graded is not None
    assert (graded.grade, graded.ulp) == ("correctly-rounded", 0.0)


def test_a_nan_and_the_sign_of_zero_count_in_narrow_floats_too() -> None:
    dtype = element_type("float8e5m2").dtype
    nan = Bounds("float8e5m2", *[np.array([[np.nan]])] * 3, np.array([[Flag.NAN]], np.uint8))
    assert judged([nan], np.array([np.nan], dtype)).outcome == "pass"
    assert judged([nan], np.array([1.0], dtype)).detail == "element [0]: got 1.0, want NaN (1 of 1 wrong)"
    minus = exactly(np.array([-0.0], dtype), [Flag.NEGATIVE_ZERO])
    assert judged([minus], np.array([-0.0], dtype)).outcome == "pass"
    assert judged([minus], np.array([0.0], dtype)).outcome == "wrong-value"


def test_both_parts_of_a_complex_number_count() -> None:
    right = np.array([1 + 2j, complex(np.nan, 3), complex(np.inf, 0)], np.complex64)
    assert judged([exactly(right)], right).outcome == "pass"
    for place, other in ((0, 1 + 3j), (0, 2 + 2j), (1, complex(np.nan, 4)), (1, complex(3, np.nan)), (2, 0j)):
        wrong = right.copy()
        wrong[place] = other
        found = judged([exactly(right)], wrong)
        assert found.outcome == "wrong-value"
        assert (found.detail or "").startswith(f"element [{place}]: got ")
        assert found.bound_ratio is None


def test_texts_are_the_same_or_not() -> None:
    right = np.array([["a", "ü", ""]], object)
    assert judged([exactly(right)], right.copy()).outcome == "pass"
    found = judged([exactly(right)], np.array([["a", "\n" * 500, ""]], object))
    assert found.outcome == "wrong-value"
    assert found.detail == f"element [0, 1]: got {chr(10) * 100!r}, want 'ü' exactly (1 of 3 wrong)"
    free = exactly(right, [[Flag.FREE] * 3])  # type: ignore[list-item]
    assert judged([free], np.array([["x", "y", "z"]], object)).outcome == "pass"


# Several outputs


NAMED = Program(
    OperatorVersion("onnx", "Any", 1),
    (),
    (),
    (Output("Y", "float32", 1), None, Output("Indices", "int64", 1)),
)


def of_named(option: Option, answer: Answer, types: Sequence[str] = ("float32", "int64")) -> Verdict:
    batch = Batch(("case",), NAMED, (), Expectation((option,), tuple(types)))
    return judge(batch, Answers.of([answer]))[0]


def test_of_several_outputs_the_wrong_one_is_named_and_one_left_out_is_not_counted() -> None:
    values, indices = np.float32([1, 2]), np.array([0, 1])
    option = Option((), (exactly(values), exactly(indices)))
    assert of_named(option, Answer((values, indices))).outcome == "pass"
    wrong = of_named(option, Answer((values, indices + 1)))
    assert (wrong.detail or "").splitlines() == [
        "element [0] of output Indices: got 1, want 0 exactly (2 of 4 wrong)",
        "element [1] of output Indices: got 2, want 1 exactly",
        "largest error of output Indices: 1 at [0]",
    ]
    other = of_named(option, Answer((values, indices.astype(np.int32))))
    assert (other.outcome, other.detail) == ("wrong-dtype", "output Indices: got int32, want int64")
    assert of_named(option, Answer((values,))).detail == "1 outputs, want 2"
    assert of_named(option, Answer((values, indices[:1]))).detail == "got shape [2], [1], want [2], [2]"


# Structures


def structured(type_: str) -> Program:
    return Program(OperatorVersion("onnx", "Any", 1), (), (), (Output("S", type_, None),))


def verdict_on(program: Program, values: Sequence[Any], *options: Option) -> Verdict:
    batch = Batch(("case",), program, (), Expectation(options, ("float32",)))
    return judge(batch, Answers.of([answer_of(program, values)]))[0]


def test_a_structure_is_judged_before_shapes() -> None:
    one, two = np.float32([1]), np.float32([[2, 3]])
    program = structured("seq(float32)")
    outline = (sequence(*[Structure("tensor")] * 2),)
    option = Option((), (exactly(one), exactly(two)), structure=outline)
    assert verdict_on(program, [[one, two]], option).outcome == "pass"
    fewer = verdict_on(program, [[one]], option)
    assert (fewer.outcome, (fewer.detail or "")[:35]) == ("wrong-shape", "got a sequence of 1 (a tensor), wan")
    assert verdict_on(program, [one], option).outcome == "wrong-shape"
    assert verdict_on(program, [[one, two.T]], option).detail == "got shape [1], [2, 1], want [1], [1, 2]"
    assert verdict_on(program, [[one, two.astype(np.float64)]], option).outcome == "wrong-dtype"
    assert verdict_on(program, [[one, two + 1]], option).outcome == "wrong-value"
    longer = Option((("length", "longer"),), (exactly(one),) * 3, structure=(sequence(*[Structure("tensor")] * 3),))
    either = Option((("length", "own"),), option.outputs, structure=outline)
    assert verdict_on(program, [[one] * 3], either, longer).behaviour == {"length": ["longer"]}


def test_an_absent_optional_is_no_tensor() -> None:
    program = structured("optional(float32)")
    absent = Option((), (), structure=(optional(),))
    present = Option((), (exactly(np.float32([1])),), structure=(optional(Structure("tensor")),))
    assert verdict_on(program, [None], absent).outcome == "pass"
    assert verdict_on(program, [np.float32([1])], present).outcome == "pass"
    assert verdict_on(program, [np.float32([1])], absent).outcome == "wrong-shape"
    assert verdict_on(program, [None], present).outcome == "wrong-shape"


def test_a_sequence_in_place_of_a_tensor_is_told() -> None:
    program = structured("float32")
    option = Option((), (exactly(np.float32([1, 2])),))
    found = verdict_on(program, [[np.float32([1]), np.float32([2])]], option)
    assert (found.outcome, found.detail) == ("wrong-shape", "got shape [2, 1], want [2]")


def test_answers_are_the_same_to_the_bit_or_not() -> None:
    pairs = [(np.float32([0.0]), np.float32([-0.0])), (np.array(["a"], object), np.array(["b"], object))]
    for one, other in [*pairs, (np.zeros(2), np.zeros((2, 1))), (np.zeros(2), np.zeros(2, np.float32))]:
        assert same_answer(Answer((one,)), Answer((one.copy(),)))
        assert not same_answer(Answer((one,)), Answer((other,)))
    nan = np.float32([np.nan])
    assert same_answer(Answer((nan,)), Answer((nan.copy(),)))
