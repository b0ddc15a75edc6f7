"""Grades and errors in ulp: against exact fractions, and by hand at powers of two, subnormals and specials."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from fakes.judging import accuracy_of, single
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.batch import Bounds, Expectation, Flag, Option, Residue, Spread
from opconform.cases.elements import FloatFormat, element_type
from opconform.generators.source import GeneratedCases
from opconform.runners.judging.accuracy import Accuracy, Grade, accuracy_from, attach_accuracy, ulp_exponent
from opconform.runners.judging.answers import Answers

FLOATS = ("float16", "bfloat16", "float32", "float64")


def exact_bounds(type_: str, exact: Fraction, margin: float = math.inf) -> Bounds:
    """Bounds around an exact value, of which float64 holds what it can."""
    value = float(exact)
    rest = float(exact - Fraction(value))
    about = [np.array([v]) for v in (value, value - margin, value + margin)]
    residue = Residue(np.array([rest]), np.array([0.0]))
    if type_ != "float64":
        residue = Residue(np.array([0.0]), np.array([abs(rest) * 1.01]))
    return Bounds(type_, *about, residue=residue)


def expect(*options: Option, type_: str = "float32") -> Expectation:
    return single(*options, types=(type_,))


def graded(type_: str, exact: Fraction, answer: object) -> Accuracy:
    output = np.array([float(answer)]).astype(element_type(type_).dtype)  # type: ignore[arg-type]
    found = accuracy_of(expect(Option((), (exact_bounds(type_, exact),)), type_=type_), [output])
    assert found is not None
    return found


# Units in the last place


def unit(form: FloatFormat, value: Fraction) -> Fraction:
    """Goldberg's ulp of a real number, in whole numbers."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length() if value else form.emin
    while abs(value) < Fraction(2) ** exponent and exponent > form.emin:
        exponent -= 1
    return Fraction(2) ** (max(exponent, form.emin) - form.precision + 1)


@pytest.mark.parametrize(
    ("type_", "value", "exponent"),
    [
        ("float16", 1.0, -10),
        ("float16", 1.999, -10),
        ("float16", 2.0, -9),
        ("float16", math.nextafter(2.0, 0.0), -10),
        ("float16", math.nextafter(1.0, 0.0), -11),
        ("float16", -1.0, -10),
        ("float16", 2.0**-14, -24),
        ("float16", 2.0**-13, -23),
        ("float16", 2.0**-15, -24),
        ("float16", 2.0**-24, -24),
        ("float16", 2.0**-40, -24),
        ("float16", 0.0, -24),
        ("float16", 65504.0, 5),
        ("bfloat16", 1.0, -7),
        ("bfloat16", 2.0**-130, -133),
        ("float32", 1.0, -23),
        ("float32", 2.0**-149, -149),
        ("float64", 1.0, -52),
        ("float64", 5e-324, -1074),
        ("float64", 1.7e308, 971),
    ],
)
def test_the_unit_in_the_last_place_by_hand(type_: str, value: float, exponent: int) -> None:
    form = element_type(type_).float_format
    assert ulp_exponent(np.array([value]), form).tolist() == [exponent]
    assert unit(form, Fraction(value)) == Fraction(2) ** exponent


@pytest.mark.parametrize(
    ("type_", "exact", "answer", "ulp"),
    [
        ("float16", Fraction(1), 1 + 2**-10, 1.0),
        ("float16", Fraction(1), 1 - 2**-11, 0.5),  # numbers lie closer below a power of two
        ("float16", Fraction(3, 2), 1.5, 0.0),
        ("float16", 1 + Fraction(1, 4096), 1.0, 0.25),
        ("float16", Fraction(1, 2**25), 0.0, 0.5),
        ("float16", Fraction(0), 2.0**-24, 1.0),
        ("float16", Fraction(-3), 3.0, 6 * 2.0**9),
        ("bfloat16", Fraction(1, 3), 0.333984375, abs(1 / 3 - 0.333984375) * 2**9),
        ("float32", Fraction(2), 2 - 2**-23, 0.5),
        ("float64", Fraction(1, 3), 1 / 3, float((Fraction(1, 3) - Fraction(1 / 3)) * 2**54)),
        ("float64", 2 - Fraction(1, 2**53), 2.0, 0.5),  # which rounds to a power of two, and lies below it
        ("float64", 2 - Fraction(1, 2**53), 2 + 2.0**-51, 2.5),
        (
            "float64",
            Fraction(1, 3),
            math.nextafter(1 / 3, 1),
            float((Fraction(math.nextafter(1 / 3, 1)) - Fraction(1, 3)) * 2**54),
        ),
    ],
)
def test_errors_are_counted_in_the_ulp_of_the_exact_value(
    type_: str, exact: Fraction, answer: float, ulp: float
) -> None:
    assert graded(type_, exact, answer).ulp == pytest.approx(ulp, rel=1e-12, abs=0)


# Grades against fractions


def neighbours(form: FloatFormat, exact: Fraction) -> tuple[Fraction, Fraction]:
    """The numbers of a format next to a real number, itself if it is one."""
    grid = unit(form, exact)
    below = exact // grid * grid
    if below == exact:
        return exact, exact
    if exact < 0:  # the grid towards minus infinity may be coarser
        upper, lower = neighbours(form, -exact)
        return -lower, -upper
    return below, below + grid


def nearest(form: FloatFormat, exact: Fraction) -> Fraction:
    below, above = neighbours(form, exact)
    if exact - below != above - exact:
        return below if exact - below < above - exact else above
    if below == above:
        return below
    grid = above - below
    return below if (below / grid) % 2 == 0 else above


@st.composite
def reals(draw: st.DrawFn, form: FloatFormat) -> Fraction:
    """Real numbers near those of a format, its mid-points, powers of two and subnormals."""
    exponent = draw(st.one_of(st.integers(form.emin - 3, form.emin + 3), st.integers(-3, 3)))
    significand = draw(st.one_of(st.just(1 << (form.precision - 1)), st.integers(0, (1 << form.precision) - 1)))
    grid = Fraction(2) ** (max(exponent, form.emin) - form.precision + 1)
    offset = draw(
        st.sampled_from(
            [Fraction(0), Fraction(1, 2), Fraction(1, 4), Fraction(1, 3), Fraction(3, 4), Fraction(1, 2**20)]
        )
        | st.fractions(0, 1, max_denominator=10**6)
    )
    return draw(st.sampled_from([1, -1])) * (significand + offset) * grid


@pytest.mark.parametrize("type_", FLOATS)
@given(data=st.data())
def test_grades_are_those_of_exact_fractions(type_: str, data: st.DataObject) -> None:
    form = element_type(type_).float_format
    exact = data.draw(reals(form))
    steps = data.draw(st.integers(-2, 2))
    answer = Fraction(nearest(form, exact))
    for _ in range(abs(steps)):  # walk to the next numbers of the format
        nudge = Fraction(1, 3) * Fraction(2) ** (form.emin - form.precision + 1) * (1 if steps > 0 else -1)
        answer = neighbours(form, answer + nudge)[1 if steps > 0 else 0]
    found = graded(type_, exact, answer)
    truth = (
        Grade.ROUNDED
        if answer == nearest(form, exact)
        else Grade.FAITHFUL
        if answer in neighbours(form, exact)
        else Grade.BOUND
    )
    assert found.grade.rank >= truth.rank, "a grade is never better than it should be"
    value = Fraction(float(exact))
    if type_ == "float64" and value != exact and abs(exact - value) < Fraction(2) ** -1060:
        return  # what float64 leaves of the exact value is too small for float64
    middle = abs(2 * exact - sum(neighbours(form, exact))) < abs(exact) * Fraction(1, 2**40)
    if type_ == "float64" or value == exact or not middle:
        assert found.grade is truth
    assert found.ulp == pytest.approx(float(abs(answer - exact) / unit(form, exact)), rel=1e-9, abs=1e-8)


def test_a_tie_that_float64_holds_is_decided_to_even() -> None:
    tie = 1 + Fraction(1, 2**11)
    assert graded("float16", tie, 1.0).grade is Grade.ROUNDED
    assert graded("float16", tie, 1 + 2**-10).grade is Grade.FAITHFUL


def test_a_tie_that_is_not_known_to_be_one_is_called_faithful_at_most() -> None:
    value = np.array([1 + 2.0**-11])
    doubtful = Residue(np.zeros(1), np.array([2.0**-50]))
    bounds = Bounds("float16", value, value - 1, value + 1, residue=doubtful)
    for answer in (1.0, 1 + 2**-10):
        found = accuracy_of(expect(Option((), (bounds,)), type_="float16"), [np.array([answer], np.float16)])
        assert found is not None
        assert found.grade is Grade.FAITHFUL


def test_float64_of_which_nothing_more_is_known_is_correctly_rounded_or_within_the_bound() -> None:
    value = np.array([1 / 3])
    bounds = Bounds("float64", value, value - 1, value + 1)
    grades = []
    for answer in (1 / 3, math.nextafter(1 / 3, 1), math.nextafter(1 / 3, 0)):
        found = accuracy_of(expect(Option((), (bounds,)), type_="float64"), [np.array([answer])])
        assert found is not None
        grades.append(found.grade)
    assert grades == [Grade.ROUNDED, Grade.BOUND, Grade.BOUND]


def test_an_exact_value_that_is_vague_gives_no_error_that_may_not_be_one() -> None:
    value = np.array([1.0])
    vague = Bounds("float32", value, value - 1, value + 1, residue=Residue(np.zeros(1), np.array([2.0**-20])))
    found = accuracy_of(expect(Option((), (vague,))), [np.array([1 + 2**-21], np.float32)])
    assert found is not None
    assert (found.grade, found.ulp) == (Grade.BOUND, 0.0)


# Grades by bounds


def option(value: Sequence[float], margin: float, flags: Sequence[int] | None = None, **more: object) -> Option:
    exact = np.array(value)
    marks = None if flags is None else np.array(flags, np.uint8)
    labels = more.pop("labels", {})
    assert isinstance(labels, dict)
    spread = more.pop("spread", None)
    bounds = Bounds("float16", exact, exact - margin, exact + margin, marks, spread)  # type: ignore[arg-type]
    return Option(tuple(labels.items()), (bounds,), **more)  # type: ignore[arg-type]


def arithmetics(value: Sequence[float], *margins: float) -> list[Option]:
    names = ("wide", "stepwise", "narrow")
    return [option(value, m, labels={"accumulator": n}) for n, m in zip(names, margins, strict=True)]


def of(options: Sequence[Option], answer: object) -> Accuracy | None:
    return accuracy_of(expect(*options, type_="float16"), [np.asarray(answer, np.float16)])


@pytest.mark.parametrize(
    ("answer", "grade", "share", "tightest"),
    [
        ([1.0, 1.0], Grade.ROUNDED, 0.0, 0.0),
        ([1.0, 1 + 2**-9], Grade.WIDE, 2**-9 / 0.5, 2**-9 / 2**-8),
        ([1 + 2**-9, 1.0625], Grade.STEPWISE, 0.125, 16.0),
        ([1.5, 1.0], Grade.NARROW, 1.0, 128.0),
        ([1.0, 1.75], Grade.OUTSIDE, 1.5, 192.0),
        ([1.0, np.inf], Grade.OUTSIDE, None, None),
        ([np.nan, 1.0], Grade.OUTSIDE, None, None),
    ],
)
def test_the_worst_element_grades_the_answer_by_the_first_arithmetic_that_admits_it(
    answer: list[float], grade: Grade, share: float | None, tightest: float | None
) -> None:
    found = of(arithmetics([1.0, 1.0], 2**-8, 0.125, 0.5), answer)
    assert found is not None
    assert (found.grade, found.share, found.tightest) == (grade, share, tightest)


def test_the_element_with_the_largest_error_is_named() -> None:
    found = of(arithmetics([1.0, 1.0, 1.0], 1, 1, 1), [1.0, 1.5, 1.25])
    assert found is not None
    assert (found.at, found.ulp) == ((1,), pytest.approx(512.0))


def test_what_only_declared_arithmetic_admits_is_graded_so() -> None:
    options = [option([1.0], 2**-8), option([1.0], 0.5, level="declared")]
    for answer, grade in ((1 + 2**-9, Grade.BOUND), (1.25, Grade.DECLARED), (2.0, Grade.OUTSIDE)):
        found = of(options, [answer])
        assert found is not None
        assert found.grade is grade


def test_errors_too_large_as_a_whole_are_not_within_a_bound() -> None:
    spread = Spread(np.full(2, 2.0**-8))
    wide = option([1.0, 1.0], 0.0, labels={"accumulator": "wide"})
    options = [wide, option([1.0, 1.0], 1.0, spread=spread, labels={"accumulator": "narrow"})]
    for answer, grade in (([1.0078125, 1.0], Grade.NARROW), ([1.5, 1.5], Grade.OUTSIDE)):
        found = of(options, answer)
        assert found is not None
        assert found.grade is grade


def test_a_flushed_zero_stands_apart() -> None:
    small = [2.0**-20, 1.0]
    options = [
        option(small, 0.0, labels={"flush": "none"}),
        option(small, 0.0, [Flag.ZERO, 0], labels={"flush": "output"}),
    ]
    found = of(options, [0.0, 1.0])
    assert found is not None
    assert (found.grade, found.graded, found.apart) == (Grade.ROUNDED, 1, 1)
    found = of(options[:1], [0.0, 1.0])
    assert found is not None
    assert found.grade is Grade.OUTSIDE


def test_an_element_that_may_be_dropped_and_is_stands_apart() -> None:
    dropping = [option([2.0, 2.0, 0.0], 0.0, [Flag.ZERO] * 3)]
    found = of(dropping, [0.0, 2.0, 0.0])
    assert found is not None
    assert (found.grade, found.graded, found.apart) == (Grade.ROUNDED, 2, 1)


def test_an_overflow_that_is_admitted_stands_apart() -> None:
    options = [
        option([1.0, 1.0], 0.0, labels={"overflow": "avoided"}),
        option([1.0, 1.0], 0.0, [Flag.POSITIVE_INFINITY, 0], labels={"overflow": "infinite"}, exceptional=True),
    ]
    found = of(options, [np.inf, 1.0])
    assert found is not None
    assert (found.grade, found.apart) == (Grade.ROUNDED, 1)
    found = of(options, [1.0, np.inf])
    assert found is not None
    assert found.grade is Grade.OUTSIDE


def test_specials_and_free_elements_have_no_grade() -> None:
    assert of([option([np.nan, np.inf], 0.0)], [np.nan, np.inf]) is None
    assert of([option([0.0], 0.0, [Flag.FREE])], [7.0]) is None
    found = of([option([np.nan, 1.0], 0.0)], [1.0, 1.0])
    assert found is not None
    assert (found.graded, found.apart) == (1, 1)


def test_of_several_readings_the_closest_counts() -> None:
    readings = [option([1.0], 0.0, labels={"axes": "all"}), option([3.0], 0.0, labels={"axes": "none"})]
    for answer in (1.0, 3.0):
        found = of(readings, [answer])
        assert found is not None
        assert (found.grade, found.ulp) == (Grade.ROUNDED, 0.0)


def test_other_shapes_types_and_numbers_of_outputs_are_not_graded() -> None:
    one = expect(option([1.0], 1.0), type_="float16")
    right = np.array([1.0], np.float16)
    assert accuracy_of(one, [right]) is not None
    for outputs in (
        [],
        [right, right],
        [right.astype(np.float32)],
        [right.reshape(1, 1)],
        [np.array([1.0, 1.0], np.float16)],
    ):
        assert accuracy_of(one, outputs) is None
    assert accuracy_of(Expectation((), ("float16",)), [right]) is None
    assert accuracy_of(expect(Option((), kind="rejected"), type_="float16"), [right]) is None


def test_integers_are_not_graded() -> None:
    exact = np.array([1])
    bounds = Bounds("int64", exact, exact, exact)
    assert accuracy_of(single(Option((), (bounds,)), types=("int64",)), [exact]) is None


def test_a_scalar_is_graded() -> None:
    found = of([option(np.array(1.0), 1.0)], np.float16(1.5))  # type: ignore[arg-type]
    assert found is not None
    assert (found.at, found.graded) == ((), 1)


def test_an_accuracy_survives_json() -> None:
    for answer in ([1.0, 1.25], [1.0, np.inf]):
        found = of(arithmetics([1.0, 1.0], 2**-8, 0.125, 0.5), answer)
        assert found is not None
        told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        read = accuracy_from(told)
        assert json.loads(json.dumps(read.to_dict())) == told
        assert (read.grade, read.at, read.share, read.graded) == (found.grade, found.at, found.share, found.graded)


def test_a_tie_among_means_of_six_is_known_to_be_one() -> None:
    case = GeneratedCases().case("onnx/ReduceMean-13/float16/3x2x2/axes=0,2/overflow")
    (data,) = case.tensors()
    exact = [sum(map(Fraction, data[:, i].astype(np.float64).reshape(-1).tolist()), Fraction(0)) / 6 for i in (0, 1)]
    form = element_type("float16").float_format
    assert exact[1] * 2 == sum(neighbours(form, exact[1]))
    right = np.array([float(nearest(form, value)) for value in exact], np.float16).reshape(1, 2, 1)
    found = accuracy_of(case.expectation, [right])
    assert found is not None
    assert (found.grade, found.ulp) == (Grade.ROUNDED, 0.5)


@pytest.mark.parametrize("type_", FLOATS)
def test_the_nearest_number_to_a_generated_mean_is_correctly_rounded(type_: str) -> None:
    """The suite's own exact values are known well enough to say so."""
    source = GeneratedCases()
    for shape in ("7", "3x2x2", "2x300"):
        for fill in ("uniform", "lattice"):
            case = source.case(f"onnx/ReduceMean-13/{type_}/{shape}/-/{fill}")
            (data,) = case.tensors()
            exact = sum(map(Fraction, data.astype(np.float64).reshape(-1).tolist()), Fraction(0)) / data.size
            right = nearest(element_type(type_).float_format, exact)
            output = np.full([1] * data.ndim, float(right)).astype(data.dtype)
            (attached,) = attach_accuracy(case, Answers.of_case(output), [])
            assert attached is not None
            assert attached["grade"] == "correctly-rounded", case.id
            assert attached["ulp"] <= 0.5
