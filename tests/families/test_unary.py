"""Unary operators agree with loops, with fractions, and with functions of another library's exact arithmetic."""

import math
from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import readings, values

from opconform.cases.batch import Flag
from opconform.cases.elements import element_type
from opconform.generators.fills import Blank, fill

F = np.float32
HARD = {
    "Exp": "thresholds",
    "Log": "unit-ends",
    "Sqrt": "inexact",
    "Erf": "mixed",
    "Sin": "quarter-turns",
    "Cos": "quarter-turns",
    "Tan": "quarter-turns",
    "Asin": "unit-ends",
    "Acos": "unit-ends",
    "Atan": "magnitudes",
    "Sinh": "thresholds",
    "Cosh": "thresholds",
    "Tanh": "thresholds",
    "Asinh": "magnitudes",
    "Acosh": "unit-ends",
    "Atanh": "unit-ends",
}
VERSIONS = {"Log": 13, "Exp": 13, "Sqrt": 13, "Tanh": 13, "Erf": 13}
BUDGETS = {"Erf": 16, "Exp": 3, "Log": 3, "Tan": 5, "Tanh": 5, "Atan": 5, "Atanh": 5}


def one(operator: str, x: np.ndarray, type_: str, **attributes):
    port, out = ("X", "Y") if operator.partition("-")[0] in PORTS else ("input", "output")
    return readings(f"onnx/{operator}", {port: x}, {out: type_}, **attributes)


PORTS = {"Abs", "Neg", "Ceil", "Floor", "Round", "Sqrt", "Reciprocal", "Relu", "Not", "BitwiseNot", "IsNaN", "IsInf"}


def exact(name: str, x: float):
    """The function of an element in 400 bits."""
    with gmpy2.context(precision=400, emin=-(1 << 30), emax=1 << 30):
        return getattr(gmpy2, name)(gmpy2.mpfr(x))


@pytest.mark.parametrize("type_", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", HARD)
def test_elementary_functions_at_their_hard_places(name, type_) -> None:
    element = element_type(type_)
    (x,) = fill(HARD[name], Blank(element, 60, 1), ["0"])
    reading, *_ = one(f"{name}-{VERSIONS.get(name, 22)}", x, type_)
    form = element.float_format
    for at, number in enumerate(x.tolist()):
        want, got = exact(name.lower(), number), float(reading.values[0][at])
        if gmpy2.is_nan(want):
            assert math.isnan(got)
        elif abs(want) < form.overflow if math.isfinite(form.overflow) else abs(want) <= form.largest:
            assert abs(got - want) <= abs(want) * gmpy2.mpfr(2) ** -46 + gmpy2.mpfr(2) ** -1074
            ulp = gmpy2.exp2(
                max(gmpy2.get_exp(want) - form.precision if want else form.emin, form.emin - form.precision + 1)
            )
            for bound in (reading.lower[0][at], reading.upper[0][at]):
                if math.isfinite(bound):
                    assert abs(bound - want) <= (3 * BUDGETS.get(name, 4) + 1) * ulp, f"{name} of {number!r}"


@pytest.mark.parametrize("type_", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", ["thresholds", "quarter-turns", "unit-ends", "near-ties", "magnitudes"])
def test_fills_for_functions_are_finite_numbers_of_the_type(name, type_) -> None:
    element = element_type(type_)
    rows = fill(name, Blank(element, 400, 1), ["0", "1"]).astype(np.float64)
    assert np.isfinite(rows).all()
    assert (rows.min(axis=1) < 0).all()
    assert (rows.max(axis=1) > 0).all()
    assert (rows[0] != rows[1]).any()


def test_quarter_turns_lie_next_to_multiples_of_half_of_pi() -> None:
    (x,) = fill("quarter-turns", Blank(element_type("float64"), 200, 1), ["0"])
    with gmpy2.context(precision=300):
        for number in x.tolist():
            quarter = gmpy2.mpfr(number) / (gmpy2.const_pi() / 2)
            assert abs(quarter - gmpy2.rint(quarter)) * gmpy2.const_pi() <= 6 * math.ulp(number)


NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_rounding_is_that_of_fractions(numbers) -> None:
    x = np.array(numbers, F)
    for operator, whole in (("Ceil-13", math.ceil), ("Floor-13", math.floor), ("Round-22", round)):
        (found,) = one(operator, x, "float32")[0].values
        assert found.tolist() == [float(whole(Fraction(float(n)))) for n in x]


@pytest.mark.parametrize("operator", ["Ceil-13", "Floor-13", "Round-11"])
def test_what_is_whole_stays_itself(operator) -> None:
    x = np.array([-0.0, 0.0, 3.0, -np.inf, np.nan], F)
    (found,) = one(operator, x, "float32")[0].values
    assert np.array_equal(found, x, equal_nan=True)
    assert np.signbit(found[:2]).tolist() == [True, False]


def admits_zero(operator: str, x: np.ndarray, zero: np.ndarray) -> bool:
    """Return whether a reading admits a zero of this sign."""
    wrong = Flag.POSITIVE_ZERO if np.signbit(zero[0]) else Flag.NEGATIVE_ZERO
    found = one(operator, x, "float32")
    return any(r.lower[0][0] <= 0 <= r.upper[0][0] and not r.flags[0][0] & wrong for r in found)


@pytest.mark.parametrize(("operator", "free"), [("Ceil-6", True), ("Ceil-13", False), ("Round-22", False)])
def test_a_zero_keeps_its_sign_where_the_version_says_so(operator, free) -> None:
    minus, plus = np.array([-0.0], F), np.array([0.0], F)
    for x, other in ((minus, plus), (plus, minus)):
        assert admits_zero(operator, x, x)
        assert admits_zero(operator, x, other) == free
    half = np.array([-0.25], F)  # of what is rounded to zero nothing is said
    assert admits_zero(operator, half, minus)
    assert admits_zero(operator, half, plus)


@given(st.lists(st.integers(-128, 127), min_size=1, max_size=6))
def test_signs_of_whole_numbers(numbers) -> None:
    x = np.array(numbers, np.int8)
    wrapped = {n: (abs(n) + 128) % 256 - 128 for n in numbers}
    assert one("Abs-13", x, "int8")[0].values[0].tolist() == [wrapped[n] for n in numbers]
    assert one("Neg-13", x, "int8")[0].values[0].tolist() == [(-n + 128) % 256 - 128 for n in numbers]
    assert one("Sign-13", x, "int8")[0].values[0].tolist() == [(n > 0) - (n < 0) for n in numbers]
    assert one("Relu-14", x, "int8")[0].values[0].tolist() == [max(0, n) for n in numbers]
    assert one("BitwiseNot-18", x, "int8")[0].values[0].tolist() == [~n for n in numbers]


def test_the_smallest_number_has_no_opposite_that_fits() -> None:
    for operator in ("Abs-6", "Neg-6"):
        found = {
            r.taken["integer-overflow"]: int(r.values[0][0]) for r in one(operator, np.array([-128], np.int8), "int8")
        }
        assert found == {"wraps": -128, "saturates": 127}


def test_nan_has_no_sign_that_is_told_and_may_pass_a_rectifier() -> None:
    for operator in ("Sign-13", "Relu-14"):
        found = {r.taken["nan"]: float(r.values[0][0]) for r in one(operator, np.array([np.nan], F), "float32")}
        assert found["zero"] == 0.0
        assert math.isnan(found["propagates"])


def test_integers_may_be_truncated_or_rounded_by_the_error_function() -> None:
    found = {
        r.taken["integer-rounding"]: r.values[0].tolist() for r in one("Erf-9", np.array([-2, 0, 1], np.int8), "int8")
    }
    assert found == {"truncate": [0, 0, 0], "nearest-even": [-1, 0, 1]}


@pytest.mark.parametrize(("positive", "negative"), [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_infinities_of_the_signs_that_are_looked_for(positive, negative) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1e38], F)
    (found,) = values("onnx/IsInf-20", {"X": x}, {"Y": "bool"}, detect_positive=positive, detect_negative=negative)
    assert found.tolist() == [bool(positive), bool(negative), False, False]


def test_types_without_infinities_have_none() -> None:
    x = np.array([np.inf, 448.0, np.nan]).astype(element_type("float8e4m3fn").dtype)
    assert values("onnx/IsInf-20", {"X": x}, {"Y": "bool"})[0].tolist() == [False, False, False]
    assert values("onnx/IsNaN-20", {"X": x}, {"Y": "bool"})[0].tolist() == [True, False, True]


def test_identity_gives_out_sequences_and_optionals_as_they_are() -> None:
    items = [np.array([1, 2], F), np.array([-0.0], F), np.array(3, F)]
    found = values("onnx/Identity-14", {"input": items}, {"output": "seq(float32)"})
    assert [one.tolist() for one in found] == [[1, 2], [-0.0], 3]
    assert np.signbit(found[1][0])
    present = values("onnx/Identity-16", {"input": items[0]}, {"output": "optional(float32)"})
    assert [one.tolist() for one in present] == [[1, 2]]
    assert not values("onnx/Identity-16", {"input": None}, {"output": "optional(float32)"})


@pytest.mark.parametrize(
    ("source", "to"), [("float32", "int8"), ("int32", "bool"), ("float64", "float16"), ("float32", "float8e5m2")]
)
def test_cast_like_casts_as_cast_does_and_ignores_the_values_of_its_target(source, to) -> None:
    x = np.array([-3.0, 0.0, 1.0, 2.5, 100.0]).astype(source)
    like = {"input": x, "target_type": np.ones((2, 0), element_type(to).dtype)}
    first = values("onnx/CastLike-24", like, {"output": to})
    second = values("onnx/Cast-24", {"input": x}, {"output": to}, to=to)
    assert first[0].shape == x.shape
    assert np.array_equal(first[0].astype(float), second[0].astype(float), equal_nan=True)


@pytest.mark.parametrize("operator", ["HardSwish-22", "Gelu-20", "Mish-22", "Swish-24"])
def test_at_minus_infinity_the_formula_is_no_number_and_the_limit_zero(operator) -> None:
    found = {
        r.taken["minus-infinity"]: float(r.values[0][0])
        for r in readings(f"onnx/{operator}", {"X": np.array([-np.inf], F)}, {"Y": "float32"})
    }
    assert found["limit"] == 0
    assert math.isnan(found["not-a-number"])


@pytest.mark.parametrize(
    ("alpha", "limits", "formula"),
    [
        (1.0, [0, np.inf], [np.nan, np.inf]),
        (-1.0, [-np.inf, 0], [-np.inf, np.nan]),
        (0.0, [-np.inf, np.inf], [np.nan] * 2),
    ],
)
def test_swish_multiplies_infinity_by_zero_where_the_sign_of_alpha_says(alpha, limits, formula) -> None:
    x = np.array([-np.inf, np.inf], F)
    found = readings("onnx/Swish-24", {"X": x}, {"Y": "float32"}, alpha=alpha)
    shown = {r.taken["minus-infinity"]: r.values[0].astype(float) for r in found}
    assert np.array_equal(shown["limit"], limits)
    assert np.array_equal(shown["not-a-number"], formula, equal_nan=True)


def test_a_softplus_of_large_numbers_may_overflow_as_it_is_written() -> None:
    found = readings("onnx/Softplus-22", {"X": np.array([200.0], F)}, {"Y": "float32"})
    assert {r.taken["overflow"] for r in found} == {"avoided", "infinite"}
    assert all(float(r.values[0][0]) == 200 for r in found)


def test_a_default_in_decimals_is_open_in_float64_alone() -> None:
    for type_, number in (("float32", 1), ("float64", 2)):
        found = readings("onnx/LeakyRelu-16", {"X": np.array([-1.0], type_)}, {"Y": type_})
        assert len({float(r.values[0][0]) for r in found}) == number
    given = readings("onnx/LeakyRelu-16", {"X": np.array([-1.0])}, {"Y": "float64"}, alpha=0.01)
    assert {float(r.values[0][0]) for r in given} == {-float(F(0.01))}
