"""Operators of two and more operands agree with Python's own arithmetic, element by element."""

import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import onnx.defs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import readings, values

from opconform.cases.elements import element_type
from opconform.generators.source import GeneratedCases

F = np.float32
ENDS = [-math.inf, -2.5, -0.0, 0.0, 1.0, 3.0, math.inf, math.nan]
INT32 = st.one_of(st.integers(-20, 20), st.integers(-(2**31), 2**31 - 1))


def wrapped(number, bits=32):
    return (number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def binary(name, a, b, type_="float32", out="C", **told):
    """Return the readings of an operator of the ports A and B."""
    return readings(f"onnx/{name}", {"A": np.asarray(a), "B": np.asarray(b)}, {out: type_}, **told)


@given(
    st.sampled_from([("Add-14", operator.add), ("Sub-14", operator.sub), ("Mul-14", operator.mul)]),
    st.lists(st.tuples(INT32, INT32), min_size=1, max_size=5),
)
def test_whole_numbers_wrap_or_saturate_at_the_ends_of_the_type(named, pairs) -> None:
    name, formula = named
    a, b = (np.array(part, np.int32) for part in zip(*pairs, strict=True))
    exact = [formula(p, q) for p, q in pairs]
    found = binary(name, a, b, "int32")
    assert found[0].values[0].tolist() == [wrapped(n) for n in exact]
    assert not any(found[0].open)
    saturated = [min(max(n, -(2**31)), 2**31 - 1) for n in exact]  # 3 * -2^31 is -2^31 in both ways: one reading
    assert found[-1].values[0].tolist() == saturated
    assert len(found) == 1 + (found[0].values[0].tolist() != saturated)


@given(st.lists(st.tuples(INT32, INT32), min_size=1, max_size=5))
def test_whole_quotients_are_rounded_towards_zero_and_open_by_zero(pairs) -> None:
    a, b = (np.array(part, np.int32) for part in zip(*pairs, strict=True))
    first = binary("Div-14", a, b, "int32")[0]
    assert first.open == [q == 0 for _, q in pairs]
    for found, (p, q) in zip(first.values[0].tolist(), pairs, strict=True):
        assert q == 0 or found == wrapped(math.trunc(Fraction(p, q)))


def test_the_smallest_number_by_minus_one_does_not_fit() -> None:
    found = binary("Div-14", np.array([-128], np.int8), np.array([-1], np.int8), "int8")
    assert [(one.taken.get("integer-overflow"), one.kind) for one in found] == [
        ("wraps", "values"),
        ("saturates", "values"),
        ("rejected", "rejected"),
    ]
    assert [one.values[0].tolist() for one in found[:2]] == [[-128], [127]]


@given(st.lists(st.tuples(INT32, INT32.filter(bool)), min_size=1, max_size=5), st.booleans())
def test_remainders_of_whole_numbers_have_the_sign_of_one_operand(pairs, fmod) -> None:
    a, b = (np.array(part, np.int32) for part in zip(*pairs, strict=True))
    found = binary("Mod-10", a, b, "int32", fmod=int(fmod))[0].values[0].tolist()
    assert found == [p - q * math.trunc(Fraction(p, q)) if fmod else p % q for p, q in pairs]


@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders_of_floats_are_as_their_list_of_special_cases_has_them(fmod) -> None:
    pairs = list(itertools.product(ENDS, ENDS))
    a, b = (np.array(part) for part in zip(*pairs, strict=True))
    exact = binary("Mod-28", a, b, "float64", fmod=fmod)[0].values[0].tolist()
    for found, (x, y) in zip(exact, pairs, strict=True):
        if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
            assert math.isnan(found)
        elif math.isinf(y):
            assert found == (x if fmod or x == 0 or (x < 0) == (y < 0) else y)
        else:
            assert found == (math.fmod(x, y) if fmod else x - y * math.floor(Fraction(x) / Fraction(y)))


def test_versions_of_mod_differ_in_what_they_take() -> None:
    x, n = np.array([5.0], F), np.array([5], np.int32)
    assert binary("Mod-10", x, x) == "fmod-float"
    assert binary("Mod-13", n, n, "int32", fmod=2) == "fmod-values"
    assert [one.kind for one in binary("Mod-13", n, n, "int32", fmod=1)] == ["values", "rejected"]
    assert len(binary("Mod-28", n, n, "int32", fmod=1)) == 1


def power(x, y, type_, version=15):
    return readings(f"onnx/Pow-{version}", {"X": np.asarray(x), "Y": np.asarray(y)}, {"Z": type_})


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-2, 25)), min_size=1, max_size=5))
def test_whole_powers_are_pythons(pairs) -> None:
    x, y = np.array([p for p, _ in pairs], np.int64), np.array([q for _, q in pairs], np.int8)
    first = power(x, y, "int64")[0]
    for found, free, (p, q) in zip(first.values[0].tolist(), first.open, pairs, strict=True):
        assert free == (q < 0 and abs(p) != 1)  # 1 and -1 have whole reciprocals
        assert free or found == wrapped(int(p**q), 64)


def test_powers_that_nobody_could_write_out_wrap_as_they_would() -> None:
    pairs = [(3, 10**15), (-3, 10**15 + 1), (2**63 - 1, 2**62 + 1), (6, 2**62), (-1, 2**62 + 1), (0, 2**62), (1, 2**62)]
    x, y = (np.array(part, np.int64) for part in zip(*pairs, strict=True))
    found = power(x, y, "int64")[0].values[0].tolist()
    assert found == [wrapped(pow(p, q, 1 << 64), 64) for p, q in pairs]


def test_powers_have_the_values_of_their_own_at_zeros_ones_and_infinities() -> None:
    pairs = list(itertools.product([*ENDS, -1.0, 0.5], [*ENDS, -1.0, -3.0, 0.5]))
    x, y = (np.array(part) for part in zip(*pairs, strict=True))
    found = power(x, y, "float64")[0].values[0]
    with np.errstate(all="ignore"):
        assert found == pytest.approx(np.power(x, y), rel=1e-15, nan_ok=True)


def test_an_exponent_beyond_what_a_float_holds_may_be_rounded_first() -> None:
    found = power(np.array([-1.0, -2.0], F), np.array([2**53 + 1, 2**53 + 1]), "float32")
    by_option = {one.taken["exponent-type"]: one.values[0].tolist() for one in reversed(found)}
    assert by_option == {"exact": [-1.0, -math.inf], "rounded": [1.0, math.inf]}


def test_a_root_in_a_type_of_whole_numbers_is_rounded_in_a_way_that_is_open() -> None:
    found = power(np.array([2, 10], np.int32), np.array([1.5, 0.25], F), "int32")
    assert {one.taken["rounding"]: one.values[0].tolist() for one in found} == {
        "truncate": [2, 1],
        "nearest-even": [3, 2],
    }


@given(
    st.lists(st.tuples(st.integers(-128, 127), st.integers(-128, 127)), min_size=1, max_size=6),
    st.sampled_from(["LEFT", "RIGHT"]),
)
def test_shifts_are_pythons_and_beyond_the_width_what_the_sign_leaves(pairs, direction) -> None:
    x, y = (np.array(part, np.int8) for part in zip(*pairs, strict=True))
    (found,) = values("onnx/BitShift-28", {"X": x, "Y": y}, {"Z": "int8"}, direction=direction)
    for one, (p, q) in zip(found.tolist(), pairs, strict=True):
        far = not 0 <= q < 8
        if direction == "LEFT":
            assert one == (0 if far else wrapped(p << q, 8))
        else:
            assert one == (-(p < 0) if far else p >> q)


def test_a_shift_by_the_width_was_open_at_first() -> None:
    x, y = np.array([255, 1], np.uint8), np.array([8, 7], np.uint8)
    found = readings("onnx/BitShift-11", {"X": x, "Y": y}, {"Z": "uint8"}, direction="LEFT")
    assert [(one.taken["too-far"], one.open) for one in found] == [("zero", [False, False]), ("any", [True, False])]
    assert found[0].values[0].tolist() == [0, 128]
    assert readings("onnx/BitShift-11", {"X": x, "Y": y}, {"Z": "uint8"}, direction="UP") == "direction"


COMPARISONS = {
    "Greater-13": operator.gt,
    "Less-13": operator.lt,
    "GreaterOrEqual-16": operator.ge,
    "LessOrEqual-16": operator.le,
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_are_pythons(name) -> None:
    a, b = np.array(ENDS, F), np.array(ENDS, F)[:, np.newaxis]
    found = binary(name, a, b, "bool")[0].values[0]
    assert found.tolist() == [[COMPARISONS[name](float(p), float(q)) for p in ENDS] for q in ENDS]
    large = np.array([2**63, 2**53 + 1, 5], np.uint64)
    found = binary(name, large, large[:, np.newaxis], "bool")[0].values[0]
    assert found.tolist() == [[COMPARISONS[name](int(p), int(q)) for p in large] for q in large]


@pytest.mark.parametrize("name", ["GreaterOrEqual", "LessOrEqual"])
def test_a_comparison_is_what_its_function_body_gives(name) -> None:
    steps = {"Greater": operator.gt, "Less": operator.lt, "Equal": operator.eq, "Or": operator.or_}
    a, b = (np.array(part, F) for part in zip(*itertools.product(ENDS, ENDS), strict=True))
    got = {"A": a, "B": b}
    for node in onnx.defs.get_schema(name, 16, "").function_body.node:
        got[node.output[0]] = steps[node.op_type](*(got[i] for i in node.input))
    assert binary(f"{name}-16", a, b, "bool")[0].values[0].tolist() == got["C"].tolist()


@pytest.mark.parametrize(("name", "formula"), [("And", operator.and_), ("Or", operator.or_), ("Xor", operator.xor)])
def test_logic_is_pythons_of_truth_values_and_of_bits(name, formula) -> None:
    truth = [False, True]
    found = binary(f"{name}-7", np.array([truth]), np.array([truth]).T, "bool")[0].values[0]
    assert found.tolist() == [[formula(p, q) for p in truth] for q in truth]
    numbers = [-(2**63), -1, 0, 5, 2**62 + 1]
    whole = np.array([numbers], np.int64)
    found = binary(f"Bitwise{name}-18", whole, whole.T, "int64")[0].values[0]
    assert found.tolist() == [[formula(p, q) for p in numbers] for q in numbers]


def test_where_takes_an_element_to_the_bit() -> None:
    k, x, y = (
        np.array([True, False, True, False]),
        np.array([-0.0, math.nan, 1.0, 2.0], F),
        np.array([[-0.0], [3.0]], F),
    )
    (found,) = values("onnx/Where-16", {"condition": k, "X": x, "Y": y}, {"output": "float32"})
    assert [[str(v) for v in row] for row in found.tolist()] == [
        ["-0.0", "-0.0", "1.0", "-0.0"],
        ["-0.0", "3.0", "1.0", "3.0"],
    ]
    text = {"condition": k[:2], "X": np.array(["a", "b"], object), "Y": np.array("c", object)}
    assert values("onnx/Where-9", text, {"output": "string"})[0].tolist() == ["a", "c"]


def prelu(version, x, slope):
    return readings(f"onnx/PRelu-{version}", {"X": np.asarray(x, F), "slope": np.asarray(slope, F)}, {"Y": "float32"})


def test_a_slope_is_for_channels_at_first_and_broadcasts_later() -> None:
    x = -np.arange(1.0, 10.0).reshape(3, 3)
    assert prelu(6, x, [1, 10, 100])[0].values[0].tolist() == (x * [1, 10, 100]).tolist()
    deep = -np.arange(1.0, 9.0).reshape(2, 2, 2)
    assert prelu(6, deep, [1, 10])[0].values[0].tolist() == (deep * np.array([[1], [10]])).tolist()
    assert prelu(7, deep, [1, 10])[0].values[0].tolist() == (deep * [1, 10]).tolist()
    assert prelu(6, deep, [1, 10, 100]) == "channels"
    assert [prelu(7, *one) for one in (([[1.0]], [1.0, 2.0]), ([1.0], [[1.0]]))] == ["broadcast", "broadcast"]


def test_numbers_that_are_not_below_zero_stay() -> None:
    found = prelu(16, [-0.0, 0.0, math.nan, math.inf, -math.inf, -2.0], [math.inf])[0].values[0]
    assert [str(v) for v in found.tolist()] == ["-0.0", "0.0", "nan", "inf", "-inf", "-inf"]


@given(st.lists(st.sampled_from([(), (1,), (3,), (2, 1), (2, 3)]), min_size=1, max_size=4), st.integers(0, 99))
def test_sums_and_extremes_of_any_number_of_inputs_broadcast(shapes, seed) -> None:
    arrays = [np.random.default_rng(seed + i).integers(-9, 9, s).astype(F) for i, s in enumerate(shapes)]
    spread = np.broadcast_arrays(*arrays)
    for name, out, formula in (("Sum-13", "sum", np.sum), ("Min-13", "min", np.min), ("Max-13", "max", np.max)):
        (found,) = values(f"onnx/{name}", {"data_0": arrays}, {out: "float32"})
        assert found.tolist() == formula(np.stack(spread), axis=0).tolist()


@pytest.mark.parametrize(("type_", "ulps"), [("float32", 2.5), ("float64", 1.0)])
def test_a_quotient_may_be_off_as_much_as_its_type_may(type_, ulps) -> None:
    (batch,) = GeneratedCases().batches([f"onnx/Div-14/{type_}/2*33x31/-/inexact/rounds-once"])
    (bounds,) = batch.expectation.options[0].outputs
    value, form = np.asarray(bounds.value, float), element_type(type_).format
    ulp = np.ldexp(1.0, np.frexp(value)[1] - form.precision)
    reach = np.maximum(bounds.upper - value, value - bounds.lower) / ulp
    assert ulps * 0.99 < reach.min()  # of the unit roundoffs of the value, two of which are at least an ulp
    assert reach.max() < ulps * 2.01


def test_a_power_is_exact_at_zeros_and_ones_alone() -> None:
    one = power(np.array([0.3, 0.3, 1.0, 0.0], F), np.array([1.0, 0.0, 0.7, 2.0], F), "float32")[0]
    exact = [lower == upper for lower, upper in zip(one.lower[0].tolist(), one.upper[0].tolist(), strict=True)]
    assert exact == [False, True, True, True]
