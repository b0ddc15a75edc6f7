"""Mistakes at numbers that are easily rounded or added up in the wrong way, and triggers of shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opconform.cases.elements import element_type, type_of
from opconform.cases.program import Attribute, Input, Output, Program
from opconform.generators.families.cast import corners
from opconform.generators.fills import Blank, Draw, fill
from opconform.generators.mutants.backends import Interpreter, implementation
from opconform.generators.mutants.corners import CORNERS
from opconform.generators.mutants.effects import grid
from opconform.generators.mutants.implementation import Invocation, Met
from opconform.generators.mutants.shapes import broadcast_levels
from opconform.generators.plan import Selection
from opconform.generators.primitives.conversions import rounded_to
from opconform.generators.selection import selected
from opconform.generators.source import GeneratedCases, shipped
from opconform.specs.model import Spec, VersionSpec


def version(name: str) -> tuple[Spec, VersionSpec]:
    spec, key = shipped().operator_version(name)
    return spec, spec.version(key)


def program(name: str, *arrays: np.ndarray, to: str = "", **attributes: Any) -> Program:
    _, own = version(name)
    whole = np.broadcast_shapes(*(a.shape for a in arrays))
    given = tuple(Input(port.name, type_of(a), a.shape) for port, a in zip(own.signature.inputs, arrays, strict=False))
    named = tuple(
        Attribute(key, "int" if isinstance(value, int) else "float", value) for key, value in attributes.items()
    )
    output = Output(own.signature.outputs[0].name, to or type_of(arrays[0]), whole)
    return Program(own.operator, named, given, (output,), int(own.operator.version))


def answer(mutant: str, name: str, *arrays: np.ndarray, to: str = "", **attributes: Any) -> list[float]:
    library = shipped()
    backend = Interpreter(f"mutant:{mutant}", implementation(library, mutant), library)
    return backend.prepare(program(name, *arrays, to=to, **attributes)).run(arrays)[0].tolist()


def single(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


BELOW_HALF = float(np.nextafter(np.float32(0.5), np.float32(0)))


@pytest.mark.parametrize(
    ("mutant", "numbers", "wrong"),
    [
        ("number=tie:away", (0.5, 1.5, 2.5, -2.5, 2.75), [1, 2, 3, -3, 3]),
        ("number=tie:up", (0.5, 1.5, 2.5, -2.5, 2.75), [1, 2, 3, -2, 3]),
        ("number=below-half:added", (BELOW_HALF, 0.5, 8388609.0, 1.25), [1, 0, 8388610, 1]),
        ("number=beyond-int32:overflows", (2.0**31, -3.0e9, 2.0**30, 2.5), [-(2.0**31), -(2.0**31), 2.0**30, 2]),
    ],
)
def test_numbers_are_rounded_the_wrong_way_at_their_corner_alone(mutant, numbers, wrong):
    assert answer(mutant, "onnx/Round-22", single(*numbers)) == wrong


def test_numbers_beside_whole_ones_are_taken_for_them():
    beside = float(np.nextafter(np.float32(3), np.float32(0)))
    assert answer("number=near-whole:taken", "onnx/Floor-13", single(beside, 2.5, -0.75)) == [3, 2, -1]


FLOAT16 = 10
"""ONNX's number for float16."""
HALF = 65520.0
"""Half-way between the largest float16 and the next power of two."""


@pytest.mark.parametrize(
    ("mutant", "type_", "numbers", "wrong"),
    [
        ("number=type-tie:away", np.float32, (1 + 2.0**-11, 1 + 3 * 2.0**-12), [1 + 2.0**-10, 1 + 2.0**-10]),
        ("number=type-tie:to-zero", np.float32, (1 + 3 * 2.0**-11, 1.0), [1 + 2.0**-10, 1.0]),
        ("number=twice:rounded", np.float64, (1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-10), [1.0, 1 + 2.0**-10]),
        ("number=largest:overflows", np.float32, (65519.0, 65504.0), [np.inf, 65504.0]),
        ("number=overflow-tie:kept", np.float32, (HALF, 1e6), [65504.0, np.inf]),
        ("number=subnormal:flushed", np.float32, (2.0**-20, 2.0**-14), [0.0, 2.0**-14]),
    ],
)
def test_casts_are_wrong_at_their_corner_alone(mutant, type_, numbers, wrong):
    assert cast_to_half(mutant, np.array(numbers, type_)).tolist() == wrong


def cast_to_half(mutant: str, held: np.ndarray) -> np.ndarray:
    library = shipped()
    backend = Interpreter(f"mutant:{mutant}", implementation(library, mutant), library)
    cast = replace(program("onnx/Cast-13", held, to="float16"), attributes=(Attribute("to", "int", FLOAT16),))
    return backend.prepare(cast).run([held])[0]


def test_a_nan_whose_bits_are_cut_off_becomes_an_infinity():
    held = np.array([0x7F800001, 0x7FC00000, 0xFF800001], np.uint32).view(np.float32)
    told = cast_to_half("number=nan-bits:cut", held)
    assert np.isposinf(told[0])
    assert np.isnan(told[1])
    assert np.isneginf(told[2])


@pytest.mark.parametrize(
    ("mutant", "numbers", "wrong"),
    [
        ("whole=over-2^31:wrapped", (2**31 - 1, 3), [-(2**31), 4]),
        ("whole=over-2^31:saturated", (2**31 - 1, 2**31), [2**31 - 1, 2**31 + 1]),
        ("whole=over-2^32:wrapped", (2**32 - 1, 2**31), [0, 2**31 + 1]),
        ("whole=over-2^53:rounded", (2**53 - 1, 2**53), [2**53, 2**53 + 1]),
        ("whole=over-2^24:rounded", (2**24 - 1, 5), [2**24, 6]),
    ],
)
def test_sums_beyond_a_narrower_type_are_wrong_if_their_terms_are_within_it(mutant, numbers, wrong):
    ones = np.ones(2, np.int64)
    assert answer(mutant, "onnx/Add-14", np.array(numbers), ones) == wrong


def test_numbers_just_beyond_a_bound_are_not_clamped():
    told = answer("number=bound:kept", "onnx/HardSigmoid-22", single(3.0, 100.0, 0.0))
    assert told == [pytest.approx(1.1), 1.0, 0.5]


def test_the_names_of_corners_differ():
    names = [corner.name for corner in CORNERS if corner.name != "number=beyond-int32:overflows"]
    assert len(names) == len({*names})


# Data for them


def drawn(recipe: str, type_: str, size: int = 48, terms: int = 1) -> np.ndarray:
    return fill(recipe, Blank(element_type(type_), size, terms), ["a"])[0]


@pytest.mark.parametrize("type_", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("terms", [1, 2, 5])
def test_middling_numbers_are_large_and_their_sums_fit(type_, terms):
    limits = np.iinfo(type_)
    numbers = drawn("middling", type_, 40, terms).astype(object).reshape(-1, terms)
    assert max(abs(row.sum()) for row in numbers) <= limits.max
    squares = drawn("middling-factors", type_, 40, terms).astype(object).reshape(-1, terms)
    assert max((row * row).sum() for row in squares) <= limits.max
    assert max(abs(n) for n in numbers.flat) > (8 if limits.bits == 8 else 2**14)


@pytest.mark.parametrize(("own", "to"), [("float32", "float16"), ("float64", "bfloat16"), ("float64", "float8e5m2")])
def test_corners_of_a_type_have_ties_and_what_rounds_another_way_in_between(own, to):
    with np.errstate(invalid="ignore"):
        numbers = corners(Blank(element_type(own), 400, 1), Draw(["a"]), to)[0].astype(np.float64)
    form = element_type(to).float_format
    finite = numbers[np.isfinite(numbers)]
    steps = np.abs(finite) / np.ldexp(1.0, np.maximum(np.frexp(finite)[1], form.emin + 1) - form.precision)
    assert np.any(steps - np.floor(steps) == 0.5)
    assert {form.largest, form.overflow} <= {*np.abs(finite).tolist()}
    between = element_type("float16" if to == "float8e5m2" else "float32").float_format
    twice = rounded_to(form, rounded_to(between, finite))
    assert own == "float32" or np.any(rounded_to(form, finite) != twice)


# Shapes


def test_long_and_equal_extents_set_off_where_they_lie():
    def names(*shape: int) -> set[str]:
        spec, own = version("onnx/Relu-14")
        array = np.zeros((1, *shape), np.float32)
        call = Invocation(spec, own, program("onnx/Relu-14", array[0]), {}, (array,), frozenset({"X"}))
        groups = ("batch", "channels", "middle", "last", "equal")
        met = Met(call, [array])
        return {t.name for t, _ in grid(spec, own) if t.group in groups and t.lanes(met).any()}

    assert names(65, 3, 2) == {"batch=over-16", "batch=over-64", "equal=none"}
    assert names(2, 17, 64) == {"channels=over-16", "middle=over-16", "equal=none"}
    assert names(5, 5, 1) == {"equal=neighbours"}
    assert names(5, 1, 5) == {"equal=apart"}
    assert names(2, 9, 67) == {"last=over-16", "last=over-64", "equal=none"}


@pytest.mark.parametrize(
    ("shapes", "names"),
    [
        ([(1, 4), (3, 4)], {"broadcast=first"}),
        ([(3, 5, 4), (3, 1, 4)], {"broadcast=second", "broadcast=middle"}),
        ([(3, 1), (1, 4)], {"broadcast=both"}),
        ([(4,), (3, 4)], {"broadcast=first", "broadcast=left-rank"}),
        ([(3, 4), (4,)], {"broadcast=second", "broadcast=right-rank"}),
        ([(3, 4), ()], {"broadcast=second", "scalar=float32"}),
        ([(3, 4), (3, 4)], set()),
    ],
)
def test_ways_of_broadcasting_set_off(shapes, names):
    spec, own = version("onnx/Add-14")
    arrays = tuple(np.zeros((1, *shape), np.float32) for shape in shapes)
    whole = np.broadcast_shapes(*shapes)
    call = Invocation(spec, own, program("onnx/Add-14", *(a[0] for a in arrays)), {}, arrays, frozenset("AB"))
    met = Met(call, [np.zeros((1, *whole), np.float32)])
    assert {t.name for t, _ in grid(spec, own) if t.group in ("broadcast", "scalar") and t.lanes(met).any()} == names


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("onnx/Add-14", {"broadcast=both", "broadcast=middle", "scalar=float32"}, {"broadcast=third"}),
        ("onnx/Where-16", {"broadcast=third", "broadcast=first"}, set()),
        ("onnx/Clip-13", {"scalar=float32"}, {"broadcast=both", "broadcast=first"}),
        ("onnx/Add-6", set(), {"broadcast=both", "broadcast=first"}),
    ],
)
def test_an_operator_has_the_ways_of_broadcasting_that_its_formula_accepts(name, has, lacks):
    spec, own = version(name)
    types = {"onnx/Where-16": (np.bool_, np.float32, np.float32), "onnx/Clip-13": (np.float32,) * 3}
    shapes = ((2,), (), ()) if name == "onnx/Clip-13" else ((2,),) * 3
    kinds = types.get(name, (np.float32, np.float32))
    arrays = tuple(np.zeros((1, *shape), kind) for shape, kind in zip(shapes, kinds, strict=False))
    names = frozenset(port.name for port in own.signature.inputs)
    call = Invocation(spec, own, program(name, *(a[0] for a in arrays), to="float32"), {}, arrays, names)
    found = broadcast_levels([call])
    assert has <= found
    assert not lacks & found


def test_a_smaller_operand_that_is_read_around_is_right_only_if_its_last_axes_are_whole():
    a = np.zeros((2, 2), np.float32)
    assert answer("broadcast=second:around", "onnx/Add-14", a, single(1, 2).reshape(2, 1)) == [[1, 2], [1, 2]]
    assert answer("broadcast=second:around", "onnx/Add-14", a, single(1, 2)) == [[1, 2], [1, 2]]


def test_equal_dimensions_are_exchanged():
    a = np.arange(4, dtype=np.float32).reshape(2, 2)
    assert answer("equal=neighbours:exchanged", "onnx/Relu-14", a) == a.T.tolist()


@pytest.mark.parametrize(("types", "between"), [("float64,float16", "float32"), ("int64,bfloat16", "float32")])
def test_the_plan_has_casts_that_round_another_way_by_a_type_in_between(types, between):
    ids = list(selected(GeneratedCases(), Selection((f"onnx/Cast-13/{types}/*corners",))))
    (batch,) = GeneratedCases().batches(ids)
    form = element_type(types.partition(",")[2]).float_format
    x = batch.inputs[0][0].astype(object)
    x = x[np.array([n == n for n in x])]  # noqa: PLR0124 - NaN
    twice = rounded_to(form, rounded_to(element_type(between).float_format, x))
    assert np.any(twice != rounded_to(form, x))
