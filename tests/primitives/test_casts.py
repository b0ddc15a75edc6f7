"""Casts between floating-point types: an implementation's machine rounds once, and a type's zeros are its own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from fakes.recorded import bare, recorded

from opconform.cases.batch import Flag
from opconform.cases.elements import Array, FloatFormat, element_type, element_types
from opconform.generators.primitives.errors import lowest_of
from opconform.generators.primitives.machine import Machine

FLOATS = tuple(n for n, t in element_types().items() if t.kind == "float" and n != "float8e8m0")
NARROWER = [(a, b) for a in FLOATS for b in FLOATS if element_type(a).bits > element_type(b).bits]


def nearest(form: FloatFormat, number: float) -> Fraction:
    """Return the number of a format without limits above that is nearest, of two the even one."""
    exact = Fraction(number)
    exponent = max(int(np.frexp(number)[1]) - form.precision, lowest_of(form))
    return round(exact / Fraction(2) ** exponent) * Fraction(2) ** exponent


def around_ties(source: str, to: str) -> Array:
    """Return ties between neighbours of a type, and the numbers next to them in a wider type and in float32."""
    form, own = element_type(to).float_format, element_type(source)
    ends = [np.ldexp(2 * k + 1, e - form.precision) for k in (1 << (form.precision - 1), (1 << form.precision) - 2)
            for e in (0, 1, form.emin + 1)]  # fmt: skip
    ties = np.array([*ends, *(np.ldexp(2 * k + 1, lowest_of(form) - 1) for k in (0, 1, 2))])
    ties = ties[ties < form.largest]
    beside = [ties, *(np.nextafter(ties, end) for end in (0.0, 4.0)), *(ties * (1 + s * 2.0**-30) for s in (-1, 1))]
    beside += [np.nextafter(ties.astype(np.float32), np.float32(end)).astype(np.float64) for end in (0.0, 4.0)]
    with np.errstate(all="ignore"):
        found = np.concatenate([*beside, -np.concatenate(beside)]).astype(own.dtype)
    return found[np.isfinite(found.astype(np.float64))]


@pytest.mark.parametrize("stores", ["float32", "own"])
@pytest.mark.parametrize(("source", "to"), NARROWER)
def test_a_machine_rounds_a_cast_once(source: str, to: str, stores: str) -> None:
    x = around_ties(source, to)[np.newaxis]
    small = next((n for n in (source, to) if n in ("float16", "bfloat16")), "float32")
    dtype = np.dtype(np.float32) if stores == "float32" else element_type(small).dtype
    recording = recorded(lambda c, v: v.cast(to), [x], [to])
    (found,), _ = recording.native([x], Machine(dtype, dtype))
    wanted = [nearest(element_type(to).float_format, float(n)) for n in x[0]]
    assert [Fraction(float(n)) for n in found[0]] == wanted
    exact = bare(recording.expectation([x]).case(0).options[0].outputs[0])
    assert [Fraction(float(n)) for n in exact.value] == wanted


@pytest.mark.parametrize("to", ["float16", "bfloat16", "float32", "float64"])
def test_a_machine_rounds_a_whole_number_once(to: str) -> None:
    precision, top = element_type(to).float_format.precision, 15 if to == "float16" else 60
    numbers = np.array([[(1 << top) + (1 << top - precision) + k for k in (-1, 0, 1)]])
    recording = recorded(lambda c, v: v.cast(to), [numbers], [to])
    single = np.dtype(np.float32)
    (found,), _ = recording.native([numbers], Machine(single, single))
    exact = bare(recording.expectation([numbers]).case(0).options[0].outputs[0])
    assert found[0].astype(np.float64).tolist() == exact.value.tolist()


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64", "float8e5m2"])
@pytest.mark.parametrize("to", ["float8e4m3fnuz", "float8e5m2fnuz", "float8e4m3fn", "float8e5m2", "float4e2m1"])
def test_no_option_asks_for_a_zero_that_a_type_lacks(source: str, to: str) -> None:
    x = np.array([[-0.0, 0.0, 1.0]]).astype(element_type(source).dtype)
    for option in recorded(lambda c, v: v.cast(to), [x], [to]).expectation([x]).case(0).options:
        bounds = bare(option.outputs[0])
        flags = np.zeros(3, np.uint8) if bounds.flags is None else bounds.flags
        minus = bool(flags[0] & Flag.NEGATIVE_ZERO)
        assert not minus or element_type(to).float_format.negative_zero
        assert not np.signbit(bounds.value[0]) or element_type(to).float_format.negative_zero
