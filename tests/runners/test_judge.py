"""The judge: every outcome, silences and what a user requires of them, declared arithmetic, and how far off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fakes.judging import judge_answer, judge_refusal, single
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.batch import Bounds, Expectation, Flag, Option, Spread
from opconform.cases.elements import Array, element_type
from opconform.cases.results import Outcome
from opconform.generators.source import GeneratedCases
from opconform.runners.judging.answers import Refusal

FLOAT = np.float32
PLAIN = Refusal("NOT_IMPLEMENTED: no kernel", unsupported=True, reason="type")
ERROR = Refusal("RuntimeError: axes out of range", unsupported=False, reason="invalid")


def bounds(
    value: object, margin: float = 0.0, flags: Sequence[int] | None = None, type_: str = "float32", **more: object
) -> Bounds:
    exact = np.asarray(value, np.float64 if "float" in type_ else type_)
    marks = None if flags is None else np.asarray(flags, np.uint8).reshape(exact.shape)
    return Bounds(type_, exact, exact - margin, exact + margin, marks, **more)  # type: ignore[arg-type]


def option(*outputs: Bounds, **more: object) -> Option:
    labels = more.pop("labels", {})
    assert isinstance(labels, dict)
    return Option(tuple(labels.items()), outputs, **more)  # type: ignore[arg-type]


def expect(*options: Option, types: Sequence[str] = ("float32",)) -> Expectation:
    return single(*options, types=types)


def outcome(expectation: Expectation, *outputs: object, **required: str) -> Outcome:
    arrays = [np.asarray(o) if isinstance(o, np.ndarray | np.generic) else np.asarray(o, FLOAT) for o in outputs]
    return judge_answer(expectation, arrays, required).outcome


NEAR_TWO = expect(option(bounds([2.0, 4.0], 0.5)))
INVALID = expect()
REFUSABLE = expect(
    option(bounds(1.0), labels={"empty": "identity"}), option(kind="rejected", labels={"empty": "rejected"})
)


# Answers


@pytest.mark.parametrize("answer", [[2, 4], [1.5, 4.5], [2.5, 3.5]])
def test_an_answer_within_its_bounds_passes(answer: list[float]) -> None:
    verdict = judge_answer(NEAR_TWO, [np.array(answer, FLOAT)])
    assert (verdict.outcome, verdict.level, verdict.detail, verdict.behaviour) == (Outcome.PASS, "strict", None, {})


@pytest.mark.parametrize("answer", [[2, 4.6], [1.4, 4], [np.nan, 4], [np.inf, 4], [2, -np.inf]])
def test_an_answer_outside_its_bounds_is_a_wrong_value(answer: list[float]) -> None:
    assert outcome(NEAR_TWO, answer) is Outcome.WRONG_VALUE


def test_a_wrong_value_says_where_what_and_how_many() -> None:
    verdict = judge_answer(NEAR_TWO, [np.array([3, 9], FLOAT)])
    assert verdict.detail is not None
    assert verdict.detail.startswith("element [0]: got 3.0, want 2.0 within [1.5, 2.5] (2 of 2 wrong)\n")
    assert verdict.bound_ratio == 10


def test_another_shape_is_a_wrong_shape_even_if_it_holds_the_values() -> None:
    for answer in ([[2, 4]], [2], 2, [2, 4, 4]):
        assert outcome(NEAR_TWO, answer) is Outcome.WRONG_SHAPE
    assert judge_answer(NEAR_TWO, [FLOAT([[2, 4]])]).detail == "got shape [1, 2], want [2]"


def test_another_type_is_a_wrong_dtype_even_if_it_holds_the_values() -> None:
    for dtype in (np.float64, np.float16, element_type("bfloat16").dtype, np.int32, np.uint8, bool, object, "S3"):
        verdict = judge_answer(NEAR_TWO, [np.array([2, 4]).astype(dtype)])
        assert verdict.outcome is Outcome.WRONG_DTYPE
        assert verdict.detail is not None
        assert verdict.detail.endswith(", want float32")


def test_too_many_or_too_few_outputs_are_a_wrong_shape() -> None:
    right = np.array([2, 4], FLOAT)
    for outputs in ([], [right, right]):
        verdict = judge_answer(NEAR_TWO, outputs)
        assert (verdict.outcome, verdict.detail) == (Outcome.WRONG_SHAPE, f"{len(outputs)} outputs, want 1")


def test_every_output_is_judged() -> None:
    two = expect(option(bounds(1.0), bounds(2, type_="int64")), types=("float32", "int64"))
    assert outcome(two, 1.0, np.int64(2)) is Outcome.PASS
    assert outcome(two, 1.0, np.int64(3)) is Outcome.WRONG_VALUE
    assert outcome(two, 1.5, np.int64(2)) is Outcome.WRONG_VALUE
    assert outcome(two, 1.0, np.int32(2)) is Outcome.WRONG_DTYPE


@pytest.mark.parametrize("name", ["int64", "uint64"])
def test_integers_are_compared_exactly_beyond_what_floats_hold(name: str) -> None:
    large = np.array(2**53 + 1, name)
    expectation = expect(option(Bounds(name, large, large, large)), types=(name,))
    assert outcome(expectation, large) is Outcome.PASS
    assert outcome(expectation, large - 1) is Outcome.WRONG_VALUE
    assert judge_answer(expectation, [large]).bound_ratio is None


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64"])
def test_floats_of_every_width_are_compared_in_their_own_type(name: str) -> None:
    dtype = element_type(name).dtype
    expectation = expect(option(bounds([0.5, 1.0], type_=name)), types=(name,))
    assert outcome(expectation, np.array([0.5, 1.0]).astype(dtype)) is Outcome.PASS
    assert outcome(expectation, np.array([0.5, 1.5]).astype(dtype)) is Outcome.WRONG_VALUE


FLAGGED = [
    (Flag.POSITIVE_INFINITY, np.inf, True),
    (Flag.POSITIVE_INFINITY, -np.inf, False),
    (Flag.NEGATIVE_INFINITY, -np.inf, True),
    (Flag.NEGATIVE_INFINITY, np.nan, False),
    (Flag.NAN, np.nan, True),
    (Flag.NAN, np.inf, False),
    (Flag.ZERO, 0.0, True),
    (Flag.ZERO, -0.0, True),
    (Flag.ZERO, 1e-30, False),
    (Flag.FREE, np.nan, True),
    (Flag.FREE, -1e30, True),
]


@pytest.mark.parametrize(("flag", "answer", "admitted"), FLAGGED)
def test_a_flag_admits_its_own_value_beside_the_bounds(flag: Flag, answer: float, admitted: bool) -> None:
    expectation = expect(option(bounds([5.0, 5.0], 0.1, [flag, 0])))
    assert outcome(expectation, [answer, 5.05]) is (Outcome.PASS if admitted else Outcome.WRONG_VALUE)
    assert outcome(expectation, [5.05, answer]) is Outcome.WRONG_VALUE, "the other element has no flag"
    assert outcome(expectation, [5.05, 5.05]) is Outcome.PASS


@pytest.mark.parametrize(("flag", "right"), [(Flag.NEGATIVE_ZERO, -0.0), (Flag.POSITIVE_ZERO, 0.0)])
def test_a_zero_must_carry_the_sign_that_its_flag_says(flag: Flag, right: float) -> None:
    expectation = expect(option(bounds([0.0], flags=[flag])))
    assert outcome(expectation, [right]) is Outcome.PASS
    assert outcome(expectation, [-right]) is Outcome.WRONG_VALUE
    detail = judge_answer(expectation, [FLOAT([-right])]).detail
    assert detail is not None
    assert f"want {'-' if flag is Flag.NEGATIVE_ZERO else '+'}0.0" in detail
    assert outcome(expect(option(bounds([0.0]))), [-0.0]) is Outcome.PASS, "without a flag the sign is free"


def test_a_tensor_without_elements_is_judged_by_its_shape() -> None:
    expectation = expect(option(bounds(np.zeros((2, 0)))))
    assert outcome(expectation, np.zeros((2, 0), FLOAT)) is Outcome.PASS
    assert outcome(expectation, np.zeros((0, 2), FLOAT)) is Outcome.WRONG_SHAPE


def test_errors_that_are_too_large_as_a_whole_are_a_wrong_value() -> None:
    vacuous = bounds(np.zeros(64), 100.0, spread=Spread(np.ones(64)))
    assert outcome(expect(option(vacuous)), np.full(64, 1.9, FLOAT)) is Outcome.PASS
    verdict = judge_answer(expect(option(vacuous)), [np.full(64, 2.1, FLOAT)])
    assert verdict.outcome is Outcome.WRONG_VALUE
    assert verdict.detail == "errors too large as a whole: mean (error/sigma)² > 4.0"
    assert outcome(expect(option(vacuous)), np.full(64, np.nan, FLOAT)) is Outcome.WRONG_VALUE


@given(st.floats(width=32), st.floats(width=32, allow_nan=False, allow_infinity=False), st.floats(0, 1e30))
def test_an_answer_passes_exactly_if_it_lies_within(answer: float, value: float, margin: float) -> None:
    within = value - margin <= answer <= value + margin
    assert outcome(expect(option(bounds([value], margin))), [answer]) is (
        Outcome.PASS if within else Outcome.WRONG_VALUE
    )


# How far off


def test_the_ratio_is_the_largest_error_as_a_share_of_its_bound() -> None:
    assert judge_answer(NEAR_TWO, [FLOAT([2.25, 4.125])]).bound_ratio == 0.5
    assert judge_answer(NEAR_TWO, [FLOAT([2, 4])]).bound_ratio == 0
    assert judge_answer(NEAR_TWO, [FLOAT([2, 5])]).bound_ratio == 2


def test_there_is_no_ratio_to_a_bound_of_zero_or_to_what_is_no_number() -> None:
    exact = expect(option(bounds([2.0])))
    assert judge_answer(exact, [FLOAT([3])]).bound_ratio is None
    assert judge_answer(exact, [FLOAT([2])]).bound_ratio == 0
    assert judge_answer(NEAR_TWO, [FLOAT([np.inf, np.nan])]).bound_ratio is None
    assert judge_answer(NEAR_TWO, [FLOAT([[2, 4]])]).bound_ratio is None


def test_what_a_flag_admits_does_not_count_as_an_error() -> None:
    flushed = expect(option(bounds([1e-39, 1.0], 1e-45, [Flag.ZERO, 0])))
    assert judge_answer(flushed, [FLOAT([0, 1])]).bound_ratio == 0
    free = expect(option(bounds([0.0, 1.0], 0.5, [Flag.FREE, 0])))
    assert judge_answer(free, [FLOAT([9e9, 1.25])]).bound_ratio == 0.5


# Silences

ROUNDED = expect(
    option(bounds(2, type_="int32"), labels={"rounding": "truncate", "overflow": "exact"}),
    option(bounds(3, type_="int32"), labels={"rounding": "away", "overflow": "exact"}),
    option(bounds(2, type_="int32"), labels={"rounding": "even", "overflow": "exact"}),
    option(bounds(-1, type_="int32"), labels={"rounding": "truncate", "overflow": "wraps"}),
    types=("int32",),
)


def integer(value: int) -> list[Array]:
    return [np.array(value, np.int32)]


def test_behaviour_names_every_option_that_admits_the_answer() -> None:
    assert judge_answer(ROUNDED, integer(2)).behaviour == {"rounding": ["truncate", "even"], "overflow": ["exact"]}
    assert judge_answer(ROUNDED, integer(3)).behaviour == {"rounding": ["away"], "overflow": ["exact"]}
    assert judge_answer(ROUNDED, integer(-1)).behaviour == {"rounding": ["truncate"], "overflow": ["wraps"]}
    wrong = judge_answer(ROUNDED, integer(7))
    assert (wrong.outcome, wrong.behaviour) == (Outcome.WRONG_VALUE, {})


def test_an_option_that_is_exceptional_admits_only_a_tensor_that_shows_it() -> None:
    quiet = option(bounds([1.0, 1.0], 0.1), labels={"overflow": "avoided"})
    loud = option(
        bounds([1.0, 1.0], 0.1, [Flag.POSITIVE_INFINITY] * 2), labels={"overflow": "infinite"}, exceptional=True
    )
    expectation = expect(quiet, loud)
    assert judge_answer(expectation, [FLOAT([1, 1])]).behaviour == {"overflow": ["avoided"]}
    assert judge_answer(expectation, [FLOAT([1, np.inf])]).behaviour == {"overflow": ["infinite"]}


def test_a_required_option_is_the_only_one_that_passes() -> None:
    assert outcome(ROUNDED, *integer(2), rounding="truncate") is Outcome.PASS
    assert outcome(ROUNDED, *integer(2), rounding="even") is Outcome.PASS
    assert outcome(ROUNDED, *integer(2), unrelated="x") is Outcome.PASS
    verdict = judge_answer(ROUNDED, integer(2), {"rounding": "away"})
    assert verdict.outcome is Outcome.WRONG_VALUE
    assert verdict.detail == "required: rounding=away; the answer is admitted as rounding=truncate|even"
    assert verdict.behaviour["rounding"] == ["truncate", "even"], "what it did is told all the same"


def test_required_options_must_hold_at_once() -> None:
    expectation = expect(
        option(bounds([1.0]), labels={"a": "x", "b": "y"}), option(bounds([1.0]), labels={"a": "z", "b": "w"})
    )
    assert outcome(expectation, [1.0], a="x", b="y") is Outcome.PASS
    verdict = judge_answer(expectation, [FLOAT([1])], {"a": "x", "b": "w"})
    assert verdict.outcome is Outcome.WRONG_VALUE
    assert verdict.detail == "required: a=x, b=w; the answer meets each of these alone, but not all at once"


def test_options_may_differ_in_shape() -> None:
    expectation = expect(option(bounds([[1.0]]), labels={"keep": "yes"}), option(bounds([1.0]), labels={"keep": "no"}))
    assert judge_answer(expectation, [FLOAT([[1]])]).behaviour == {"keep": ["yes"]}
    assert judge_answer(expectation, [FLOAT([1])]).behaviour == {"keep": ["no"]}
    assert judge_answer(expectation, [FLOAT([2])]).outcome is Outcome.WRONG_VALUE
    assert judge_answer(expectation, [FLOAT([[[1]]])]).detail == "got shape [1, 1, 1], want [1, 1] or [1]"


# Declared arithmetic


def test_what_only_a_declaration_admits_passes_at_the_level_declared() -> None:
    expectation = expect(option(bounds([1.0])), option(bounds([1.0], 0.25), level="declared"))
    strict, declared = judge_answer(expectation, [FLOAT([1])]), judge_answer(expectation, [FLOAT([1.125])])
    assert (strict.outcome, strict.level) == (Outcome.PASS, "strict")
    assert (declared.outcome, declared.level, declared.bound_ratio) == (Outcome.PASS, "declared", 0.5)
    assert outcome(expectation, [2.0]) is Outcome.WRONG_VALUE


def test_a_declaration_does_not_overrule_what_is_required() -> None:
    expectation = expect(
        option(bounds([1.0]), labels={"flush": "none"}),
        option(bounds([0.0]), labels={"flush": "output"}),
        option(bounds([0.0]), labels={"flush": "output"}, level="declared"),
    )
    assert judge_answer(expectation, [FLOAT([0])]).level == "strict"
    verdict = judge_answer(expectation, [FLOAT([0])], {"flush": "none"})
    assert verdict.outcome is Outcome.WRONG_VALUE
    assert verdict.detail == "required: flush=none; the answer is admitted as flush=output"


def test_a_requirement_against_what_only_a_declaration_admits_is_told() -> None:
    expectation = expect(
        option(bounds([1.0]), labels={"flush": "none"}),
        option(bounds([0.0]), labels={"flush": "output"}, level="declared"),
    )
    verdict = judge_answer(expectation, [FLOAT([0])], {"flush": "none"})
    assert (verdict.outcome, verdict.level) == (Outcome.WRONG_VALUE, None)
    assert verdict.detail == "required: flush=none; the answer is admitted as flush=output"


# Refusals


def test_a_valid_program_refused_is_an_error_unless_it_says_not_implemented() -> None:
    error = judge_refusal(NEAR_TWO, ERROR, variant_ran=True)
    assert (error.outcome, error.reason, error.detail) == (Outcome.ERROR, "invalid", ERROR.words)
    plain = judge_refusal(NEAR_TWO, PLAIN, variant_ran=True)
    assert (plain.outcome, plain.reason, plain.detail) == (Outcome.UNSUPPORTED, "type", PLAIN.words)


def test_a_refusal_where_a_silence_admits_it_passes() -> None:
    verdict = judge_refusal(REFUSABLE, ERROR, variant_ran=True)
    assert (verdict.outcome, verdict.behaviour, verdict.level) == (Outcome.PASS, {"empty": ["rejected"]}, "strict")
    assert verdict.detail == ERROR.words
    assert judge_refusal(REFUSABLE, PLAIN, variant_ran=True).outcome is Outcome.UNSUPPORTED


def test_a_refusal_is_judged_by_what_is_required() -> None:
    assert judge_refusal(REFUSABLE, ERROR, variant_ran=True, required={"empty": "rejected"}).outcome is Outcome.PASS
    verdict = judge_refusal(REFUSABLE, ERROR, variant_ran=True, required={"empty": "identity"})
    assert verdict.outcome is Outcome.WRONG_VALUE
    assert verdict.detail is not None
    assert verdict.detail.endswith("required: empty=identity; the answer is admitted as empty=rejected")
    assert outcome(REFUSABLE, 1.0, empty="rejected") is Outcome.WRONG_VALUE


def test_where_anything_is_admitted_answers_and_refusals_pass() -> None:
    expectation = expect(
        option(kind="rejected", labels={"range": "rejected"}), option(kind="anything", labels={"range": "anything"})
    )
    assert judge_answer(expectation, [FLOAT([[[7]]])]).behaviour == {"range": ["anything"]}
    assert judge_refusal(expectation, ERROR, variant_ran=True).behaviour == {"range": ["rejected", "anything"]}
    assert outcome(expectation, [7.0], range="rejected") is Outcome.WRONG_VALUE
    assert outcome(expectation, np.float64([7.0])) is Outcome.WRONG_DTYPE


def test_only_refusing_is_admitted_where_a_silence_says_no_more() -> None:
    expectation = expect(option(kind="rejected"))
    assert judge_answer(expectation, [FLOAT([1])]).detail == "got shape [1], want a refusal"


# Invalid inputs


def test_an_answer_to_an_invalid_input_is_accepted_invalid() -> None:
    verdict = judge_answer(INVALID, [np.ones((2, 3), np.int8), FLOAT(1)])
    assert (verdict.outcome, verdict.behaviour) == (Outcome.ACCEPTED_INVALID, {"invalid": ["answered"]})
    assert verdict.detail == "answered an invalid input with int8 2x3, float32 scalar"
    assert outcome(INVALID, 1.0, invalid="answered") is Outcome.ACCEPTED_INVALID


@pytest.mark.parametrize("refusal", [PLAIN, ERROR])
def test_a_refusal_of_an_invalid_input_counts_if_its_valid_sibling_ran(refusal: Refusal) -> None:
    refused = judge_refusal(INVALID, refusal, variant_ran=True)
    assert (refused.outcome, refused.behaviour, refused.level) == (Outcome.PASS, {"invalid": ["rejected"]}, "strict")
    alone = judge_refusal(INVALID, refusal, variant_ran=False)
    assert (alone.outcome, alone.behaviour) == (Outcome.UNSUPPORTED, {"invalid": []})
    assert alone.detail is not None
    assert "so was the valid case" in alone.detail


def test_a_refusal_fails_where_an_answer_to_invalid_inputs_is_required() -> None:
    verdict = judge_refusal(INVALID, ERROR, variant_ran=True, required={"invalid": "answered"})
    assert verdict.outcome is Outcome.WRONG_VALUE
    assert verdict.detail is not None
    assert verdict.detail.endswith("required: invalid=answered; the answer is admitted as invalid=rejected")
    assert judge_refusal(INVALID, ERROR, variant_ran=True, required={"invalid": "rejected"}).outcome is Outcome.PASS


# Judging changes nothing


def test_judging_leaves_inputs_and_outputs_as_they_were() -> None:
    case = GeneratedCases().case("onnx/ReduceMean-13/float32/3x2x2/axes=1/special")
    digests = (case.digest, case.expectation.digest)
    answer = np.full((3, 1, 2), np.nan, FLOAT)
    answer.flags.writeable = False
    judge_answer(case.expectation, [answer])
    assert (case.digest, case.expectation.digest) == digests
