"""Exact values against Python's integers and fractions, gmpy2, and NumPy where it only moves elements."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import gmpy2
import ml_dtypes
import numpy as np
import pytest
from fakes.recorded import FUNCTIONS, bare, recorded
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.batch import Bounds, Flag
from opconform.cases.elements import Array, element_type
from opconform.generators.primitives import elementary
from opconform.generators.primitives.products import Matmul

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
singles = st.floats(width=32, allow_nan=False, allow_infinity=False)


def bounds(reference: Any, *arrays: Array, type_: str, **more: Any) -> Bounds:
    laned = [a[np.newaxis] for a in arrays]
    found = recorded(lambda c, *xs: reference(*xs), laned, [type_], **more).expectation(laned)
    return bare(found.case(0).options[0].outputs[0])


def fits(type_: str, number: int) -> int:
    low, size = element_type(type_).smallest, 1 << element_type(type_).bits
    return (number - low) % size + low


@st.composite
def whole_numbers(draw: st.DrawFn) -> tuple[str, list[int], list[int]]:
    type_ = draw(st.sampled_from(INTEGERS))
    element = element_type(type_)
    number = st.one_of(st.integers(element.smallest, element.largest), st.integers(0, 7))
    n = draw(st.integers(1, 6))
    return type_, draw(st.lists(number, min_size=n, max_size=n)), draw(st.lists(number, min_size=n, max_size=n))


def test_whole_numbers_may_lie_between_two_others_and_leave_open_what_is_made_of_them() -> None:
    given_ = [np.array(each, np.uint8) for each in ([5, 7, 0], [4, 7, 0], [255, 7, 1])]
    one = bounds(lambda x, low, high: x.between(low, high), *given_, type_="uint8")
    assert [one.value.tolist(), one.lower.tolist(), one.upper.tolist(), one.flags] == [
        *(g.tolist() for g in given_),
        None,
    ]
    masked = bounds(lambda x, low, high: x.between(low, high).undefined(high > 9), *given_, type_="uint8")
    assert [masked.lower.tolist(), masked.upper.tolist()] == [one.lower.tolist(), one.upper.tolist()]
    assert (masked.flags == [Flag.FREE, 0, 0]).all()
    further = bounds(lambda x, low, high: x.between(low, high).maximum(0), *given_, type_="uint8")
    assert (further.flags == [Flag.FREE, 0, Flag.FREE]).all()


WRAPS = {"integer-overflow": ("wraps",)}


@given(whole_numbers())
def test_whole_arithmetic_is_that_of_pythons_integers(case: tuple[str, list[int], list[int]]) -> None:
    type_, a, b = case
    x, y = (np.array(v, type_) for v in (a, b))
    for reference, of in (
        (lambda p, q: p + q, lambda p, q: p + q),
        (lambda p, q: p - q, lambda p, q: p - q),
        (lambda p, q: p * q, lambda p, q: p * q),
        (lambda p, q: p & q, lambda p, q: p & q),
        (lambda p, q: p | q, lambda p, q: p | q),
        (lambda p, q: p ^ q, lambda p, q: p ^ q),
        (lambda p, q: ~p, lambda p, q: ~p),
        (lambda p, q: -p, lambda p, q: -p),
        (lambda p, q: p.maximum(q), max),
        (lambda p, q: p.abs(), lambda p, q: abs(p)),
    ):
        found = bounds(reference, x, y, type_=type_, silences=WRAPS)
        assert found.value.tolist() == [fits(type_, of(p, q)) for p, q in zip(a, b, strict=True)]
    assert bounds(lambda p, q: p.sum(0), x, y, type_=type_, silences=WRAPS).value == fits(type_, sum(a))
    assert bounds(lambda p, q: p.prod(0), x, y, type_=type_, silences=WRAPS).value == fits(type_, math.prod(a))
    sums = bounds(lambda p, q: p.cumsum(0, reverse=True), x, y, type_=type_, silences=WRAPS).value.tolist()
    assert sums == [fits(type_, sum(a[place:])) for place in range(len(a))]
    dot = bounds(lambda p, q: p.reshape(1, -1).matmul(q.reshape(-1, 1)), x, y, type_=type_, silences=WRAPS)
    assert dot.value == fits(type_, sum(p * q for p, q in zip(a, b, strict=True)))


@given(whole_numbers(), st.sampled_from(["truncate", "floor", "nearest-even", "nearest-away"]))
def test_quotients_and_remainders_of_whole_numbers(case: tuple[str, list[int], list[int]], rounding: str) -> None:
    type_, a, b = case
    x, y = (np.array(v, type_) for v in (a, b))
    exact = {
        "truncate": math.trunc,
        "floor": math.floor,
        "nearest-even": round,
        "nearest-away": lambda f: math.floor(abs(f) + Fraction(1, 2)) * (-1 if f < 0 else 1),
    }
    found = bounds(lambda p, q: p.quotient(q, rounding=rounding), x, y, type_=type_, silences=WRAPS)
    rest = bounds(lambda p, q: p.mod(q), x, y, type_=type_)
    signed = bounds(lambda p, q: p.mod(q, sign="dividend"), x, y, type_=type_)
    for place, (p, q) in enumerate(zip(a, b, strict=True)):
        free = found.flags is not None and bool(found.flags[place])
        assert free == (q == 0)
        if q:
            assert found.value[place] == fits(type_, exact[rounding](Fraction(p, q)))
            assert rest.value[place] == p % q
            assert signed.value[place] == p - q * math.trunc(Fraction(p, q))


@given(whole_numbers())
def test_shifts_lose_bits_and_are_free_beyond_the_width(case: tuple[str, list[int], list[int]]) -> None:
    type_, a, b = case
    x, y = (np.array(v, type_) for v in (a, b))
    bits = element_type(type_).bits
    for direction, of in (("left", lambda p, q: p << q), ("right", lambda p, q: p >> q)):
        found = bounds(lambda p, q: p.shift(q, direction=direction), x, y, type_=type_)  # noqa: B023
        for place, (p, q) in enumerate(zip(a, b, strict=True)):
            free = found.flags is not None and bool(found.flags[place])
            assert free == (not 0 <= q < bits)
            if not free:
                assert found.value[place] == fits(type_, of(p, q))


@given(st.lists(st.tuples(singles, singles), min_size=1, max_size=5))
def test_bounds_of_single_precision_hold_the_rounded_exact_result(pairs: list[tuple[float, float]]) -> None:
    x, y = (np.array(v, np.float32) for v in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        for reference, right, exact in (
            (lambda p, q: p + q, x + y, lambda p, q: p + q),
            (lambda p, q: p - q, x - y, lambda p, q: p - q),
            (lambda p, q: p * q, x * y, lambda p, q: p * q),
            (lambda p, q: p / q, x / y, lambda p, q: p / q if q else None),
        ):
            laned = [x[np.newaxis], y[np.newaxis]]
            found = recorded(lambda c, p, q: reference(p, q), laned, ["float32"]).expectation(laned)  # noqa: B023
            options = [bare(o.outputs[0]) for o in found.case(0).options]
            for place, (p, q) in enumerate(pairs):
                fraction = exact(Fraction(p), Fraction(q))
                if fraction is None or not math.isfinite(right[place]):
                    continue
                low, high = options[0].lower[place], options[0].upper[place]
                assert low <= right[place] <= high
                assert Fraction(low) <= fraction <= Fraction(high) or low == high == right[place]


@given(st.lists(singles, min_size=1, max_size=24), st.sampled_from(["float16", "float32", "bfloat16"]))
def test_bounds_of_sums_and_means_hold_the_exact_ones(numbers: list[float], type_: str) -> None:
    with np.errstate(over="ignore"):
        x = np.array(numbers, np.float32).astype(element_type(type_).dtype)
    fractions = [Fraction(float(v)) for v in x if np.isfinite(v)]
    if len(fractions) < len(x) or abs(sum(fractions)) > 2**14:
        return
    for reference, exact in ((lambda v: v.sum(0), sum(fractions)), (lambda v: v.mean(0), sum(fractions) / len(x))):
        found = bounds(reference, x, type_=type_)
        if found.flags is None or not found.flags.any():
            slack = Fraction(2) ** -8 * abs(exact) + Fraction(2) ** -24  # of a wide sum, rounded to 16 bits
            assert Fraction(found.lower.item()) - slack <= exact <= Fraction(found.upper.item()) + slack


CASTS = ("float16", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float4e2m1")


@pytest.mark.parametrize("to", CASTS)
def test_casts_to_smaller_floats_round_to_the_nearest(to: str) -> None:
    dtype = element_type(to).dtype
    bits = element_type(to).bits
    held = np.arange(1 << bits, dtype=np.uint16).astype(f"uint{max(bits, 8)}").view(dtype).astype(np.float32)
    numbers = np.unique(held[np.isfinite(held)])
    halves = (numbers[1:].astype(np.float64) + numbers[:-1]) / 2
    near = [numbers, halves, np.nextafter(halves, np.inf), np.nextafter(halves, -np.inf)]
    x = np.concatenate(near).astype(np.float32)
    found = bounds(lambda v: v.cast(to), x, type_=to).value
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, x.astype(dtype).astype(np.float64))


def test_casts_to_8_bit_floats_beyond_their_range() -> None:
    """By the tables of ONNX's Cast: of x > largest, inf, -inf and NaN, with saturate and without."""
    x = np.array([1e9, -1e9, np.inf, -np.inf, np.nan], np.float32)
    nan, inf = np.nan, np.inf
    tables = {
        ("float8e4m3fn", True): [448, -448, 448, -448, nan],
        ("float8e4m3fn", False): [nan, nan, nan, nan, nan],
        ("float8e4m3fnuz", True): [240, -240, 240, -240, nan],
        ("float8e4m3fnuz", False): [nan, nan, nan, nan, nan],
        ("float8e5m2", True): [57344, -57344, 57344, -57344, nan],
        ("float8e5m2", False): [inf, -inf, inf, -inf, nan],
        ("float8e5m2fnuz", True): [57344, -57344, 57344, -57344, nan],
        ("float8e5m2fnuz", False): [nan, nan, nan, nan, nan],
    }
    for (to, saturate), wanted in tables.items():
        found = bounds(lambda v: v.cast(to, saturate=saturate), x, type_=to).value  # noqa: B023
        np.testing.assert_array_equal(found, wanted, f"{to} {saturate}")


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_large_whole_numbers_are_rounded_once(numbers: list[int]) -> None:
    x = np.array(numbers, np.int64)
    assert bounds(lambda v: v.cast("float64"), x, type_="float64").value.tolist() == [float(n) for n in numbers]
    found = bounds(lambda v: v.cast("float32"), x, type_="float32").value.tolist()
    assert found == [float(gmpy2.mpfr(n, 24)) for n in numbers]


@given(st.lists(st.floats(width=32), min_size=1, max_size=6), st.sampled_from(INTEGERS))
def test_floats_become_whole_towards_zero_or_are_free(numbers: list[float], to: str) -> None:
    found = bounds(lambda v: v.cast(to), np.array(numbers, np.float32), type_=to)
    wide = bounds(lambda v: (v * 1.0).cast(to), np.array(numbers, np.float64), type_=to)
    np.testing.assert_array_equal(found.value, wide.value)
    for place, number in enumerate(numbers):
        inside = math.isfinite(number) and element_type(to).smallest <= math.trunc(number) <= element_type(to).largest
        free = found.flags is not None and bool(found.flags[place])
        assert free != inside
        assert free or found.value[place] == math.trunc(number)


def test_text_is_joined_compared_and_parsed() -> None:
    a, b = (np.array(v, object) for v in (["x", "", "ü"], ["y", "", "ü"]))
    assert bounds(lambda p, q: p.join(q), a, b, type_="string").value.tolist() == ["xy", "", "üü"]
    assert bounds(lambda p, q: p.equal(q), a, b, type_="bool").value.tolist() == [False, True, True]
    numbers = np.array(["1.5", "-inf", "1e-46", "16777217", "NaN"], object)
    found = bounds(lambda p: p.cast("float32"), numbers, type_="float32").value
    np.testing.assert_array_equal(found, [1.5, -np.inf, 0.0, 16777216.0, np.nan])


@pytest.mark.parametrize("name", [f for f in FUNCTIONS if hasattr(gmpy2, f) and hasattr(elementary, f)])
def test_elementary_functions_are_those_of_gmpy2(name: str) -> None:
    rng = np.random.default_rng(7)
    spans = [1e-30, 1e-6, 0.3, 1.0, 3.0, 30.0, 87.0, 1e5, 1e9, 1e30]
    x = np.concatenate([rng.uniform(-s, s, 60) for s in spans] + [1 + rng.uniform(-1e-6, 1e-6, 60)]).astype(np.float32)
    x = np.concatenate([x.astype(np.float64), [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]])
    with np.errstate(all="ignore"), gmpy2.context(precision=120):
        found = getattr(elementary, name)(x)
        wanted = [getattr(gmpy2, name)(gmpy2.mpfr(float(v))) for v in x]
    for at, (y, w) in enumerate(zip(found.tolist(), wanted, strict=True)):
        if gmpy2.is_nan(w):
            assert math.isnan(y), x[at]
        elif not gmpy2.is_finite(w) or w == 0:
            assert y == float(w), x[at]
        elif 1e-300 < abs(w) < 1e300:
            assert abs(y - w) <= abs(w) * 2.0**-49, (x[at], y, w)


def test_powers_are_those_of_ieee_754() -> None:
    pairs = [(2, 3), (-2, 3), (0, 0), (np.nan, 0), (1, np.nan), (-1, np.inf), (0, -1), (-0.0, -1), (-0.0, -2), (4, 0.5)]
    pairs.append((-8, 1 / 3))
    x, y = (np.array(v, np.float32) for v in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(bounds(lambda a, b: a**b, x, y, type_="float32").value, wanted, rtol=1e-15)


@pytest.mark.parametrize("type_", ["float32", "float64"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "real"])
@pytest.mark.parametrize("power", [1, 2, 3, 4, -1, -2, -3])
def test_powers_of_zeros_have_the_sign_of_ieee_754(type_: str, whole: bool, power: int) -> None:
    x = np.array([0.0, -0.0, -2.0], type_)
    wanted = [math.pow(-2.0, power), *([0.0, -0.0 if power % 2 else 0.0] if power > 0 else [])]
    for mixed in (False, True):  # one power for all, or several
        powers = np.array([power, power, power, 5] if mixed else [power], np.int32 if whole else type_)
        base = np.array([*x, 1.0], type_) if mixed else x
        found = bounds(lambda a, b: a**b, base, powers, type_=type_).value
        assert found[2] == wanted[0]
        if power > 0:
            assert [(n, np.signbit(n)) for n in found[:2]] == [(n, np.signbit(n)) for n in wanted[1:]]


def test_movement_is_that_of_numpy() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    index = np.array([[2, 0], [1, 1]], np.int64)
    rows = x[:, :, :2].reshape(6, 2)[:2]
    framed = np.pad(x[..., 1:], [(0, 0), (1, 2), (0, 3)], constant_values=7)
    moves: list[tuple[Any, Array]] = [
        (lambda v, i: v.reshape(4, -1), x.reshape(4, 6)),
        (lambda v, i: v.transpose(2, 0, 1), x.transpose(2, 0, 1)),
        (lambda v, i: v[0].broadcast(5, 3, 4), np.broadcast_to(x[0], (5, 3, 4))),
        (lambda v, i: v[..., ::-2], x[..., ::-2]),
        (lambda v, i: v[:, None, 1], x[:, None, 1]),
        (lambda v, i: v.flip((0, 2)), np.flip(x, (0, 2))),
        (lambda v, i: v.pad([(0, 0), (1, 2), (-1, 3)], 7.0), framed),
        (lambda v, i: v.concat([v[:, :1]], 1), np.concatenate([x, x[:, :1]], 1)),
        (lambda v, i: v[0].stack(v[1]), x),
        (lambda v, i: v.take([2, 2, 0], 1), x.take([2, 2, 0], 1)),
        (lambda v, i: v.gather(i, 1), np.take(x, index, 1)),
        (lambda v, i: v[:, :, :2].reshape(6, 2)[:2].along(i, 0), np.take_along_axis(rows, index % 2, 0)),
        (lambda v, i: v.windows((2,), (2,)), np.lib.stride_tricks.sliding_window_view(x, 2, 2)[:, :, ::2]),
        (lambda v, i: v.max((0, 2), keep=False), x.max((0, 2))),
        (lambda v, i: v.min(1), x.min(1, keepdims=True)),
        (lambda v, i: v.cumsum(1), x.cumsum(1)),
        (lambda v, i: v.cumsum(2, exclusive=True), x.cumsum(2) - x),
        (lambda v, i: v[..., 1:].prod(2, keep=False), x[..., 1:].prod(2)),
    ]
    for reference, wanted in moves:
        found = bounds(reference, x, index, type_="float32")
        np.testing.assert_array_equal(found.lower, wanted)
        np.testing.assert_array_equal(found.upper, wanted)


def test_scattered_elements_replace_others() -> None:
    x, index, updates = np.zeros(6, np.float32), np.array([4, 1, 4], np.int64), np.array([1, 2, 3], np.float32)
    found = bounds(lambda a, i, u: a.scatter(i, u), x, index, updates, type_="float32")
    assert found.value.tolist() == [0, 2, 0, 0, 3, 0]


def test_order_places_equal_elements_by_their_place() -> None:
    x = np.array([3, 1, 3, 2, 1], np.float32)
    for largest, late, wanted in (
        (False, False, [1, 4, 3, 0, 2]),
        (False, True, [4, 1, 3, 2, 0]),
        (True, False, [0, 2, 3, 1, 4]),
        (True, True, [2, 0, 3, 4, 1]),
    ):
        found = bounds(lambda v: v.order(0, largest=largest, late=late), x, type_="int64")  # noqa: B023
        assert found.value.tolist() == wanted
    assert bounds(lambda v: v.argmax(0), x, type_="int64").value.tolist() == [0]
    assert bounds(lambda v: v.argmin(0, late=True), x, type_="int64").value.tolist() == [4]


def test_not_a_number_among_the_largest() -> None:
    x = np.array([[1, np.nan], [np.nan, np.nan]], np.float32)
    assert np.isnan(bounds(lambda v: v.max(1), x, type_="float32").value).all()
    assert bounds(lambda v: v.max(1, nan="ignore"), x, type_="float32").value[0].tolist() == [1]
    pairs = bounds(lambda v: v[0].maximum(v[1], nan="ignore"), x, type_="float32").value
    np.testing.assert_array_equal(pairs, [1, np.nan])


def test_low_precision_types_are_computed_with() -> None:
    x = np.array([1.5, -6, 0.5], ml_dtypes.float4_e2m1fn)
    found = bounds(lambda v: v.cast("float32") * 2.0, x, type_="float32")
    assert found.value.tolist() == [3, -12, 1]
    whole = np.array([-8, 7, 3], ml_dtypes.int4)
    assert bounds(lambda v: v.cast("int32") - 1, whole, type_="int32").value.tolist() == [-9, 6, 2]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=12, max_size=12))
def test_a_product_of_matrices_of_fractions_is_the_sum_of_products_of_each(numbers: list[float]) -> None:
    a = np.array([*map(Fraction, numbers[:6])], object).reshape(2, 3)
    b = np.array([*map(Fraction, numbers[6:])], object).reshape(3, 2)
    a[0, 1] = Fraction(0)
    wanted = [[sum(x * y for x, y in zip(row, column, strict=True)) for column in b.T] for row in a]
    a[0, 1] = np.int64(0)  # as padding leaves it
    assert Matmul.fractions(a, b).tolist() == wanted
