"""The probes of arithmetic: that they tell what they are to tell, whatever the order of summation."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from opconform.cases.batch import cases_of
from opconform.cases.elements import FloatFormat, element_type
from opconform.cases.errors import CaseIdError
from opconform.generators.fills import BESIDE, RECIPES, UNDRAWN, UPON, Blank, fill, suits
from opconform.generators.plan import Selection, planned
from opconform.generators.primitives.errors import format_of, nearest
from opconform.generators.source import GeneratedCases

FLOATS = ("float16", "bfloat16", "float32", "float64")
Tree = int | tuple["Tree", "Tree"]


@functools.cache
def trees(leaves: frozenset[int]) -> tuple[Tree, ...]:
    """Every order in which these places may be added up: all binary trees over them."""
    if len(leaves) == 1:
        return tuple(leaves)
    first, *others = sorted(leaves)
    found: list[Tree] = []
    for size in range(len(others)):
        for beside in itertools.combinations(others, size):
            left = frozenset({first, *beside})
            found += itertools.product(trees(left), trees(leaves - left))
    return tuple(found)


def added(tree: Tree, row: np.ndarray, rounded: Callable[[float], float]) -> float:
    if isinstance(tree, int):
        return float(row[tree])
    return rounded(added(tree[0], row, rounded) + added(tree[1], row, rounded))


def in_format(form: FloatFormat) -> Callable[[float], float]:
    return lambda value: float(nearest(form, np.array([value]))[0])


def square(name: str, type_: str, width: int = 4) -> np.ndarray:
    return fill(name, Blank(element_type(type_), width * width, width), ["key"])[0].reshape(width, width).astype(float)


ORDERS = trees(frozenset(range(4)))


def test_four_addends_have_fifteen_orders() -> None:
    assert len(ORDERS) == 15


def accumulators() -> Iterator[tuple[str, int, str]]:
    for type_, bits, name in itertools.product(FLOATS, BESIDE, ("bfloat16", "float16", "tf32", "float32", "float64")):
        room = format_of(name).emax >= format_of(type_).emax or name == type_
        if suits(f"beside-2^{bits}", element_type(type_)) and room:
            yield type_, bits, name


@pytest.mark.parametrize(("type_", "bits", "name"), list(accumulators()))
def test_an_accumulator_of_fewer_bits_loses_the_small_number_in_every_order(type_: str, bits: int, name: str) -> None:
    form, rows = format_of(name), square(f"beside-2^{bits}", type_)
    small = np.abs(rows[rows != 0]).min()
    for tree in ORDERS:
        sums = [added(tree, row, in_format(form)) for row in rows]
        if form.precision > bits:
            assert sums == [small] * 4
        else:
            assert 0.0 in sums
            assert set(sums) <= {0.0, small}


@pytest.mark.parametrize("type_", FLOATS)
def test_partial_sums_are_subnormal_in_every_order(type_: str) -> None:
    form, rows = element_type(type_).float_format, square("underflow", type_)
    assert (np.abs(rows) >= form.tiny).all()

    def flushing(value: float) -> float:
        return 0.0 if abs(value) < form.tiny else value

    for tree in ORDERS:
        exact = [added(tree, row, lambda value: value) for row in rows]
        assert len(set(exact)) == 1
        assert exact[0] / 4 >= 2 * form.tiny
        worst = max(abs(added(tree, row, flushing) - exact[0]) for row in rows) / 4
        assert worst >= 3 * np.spacing(1.0) * 2.0 ** (53 - form.precision) * form.tiny * 2


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("name", [n for n in RECIPES if n.startswith(("beside", "upon")) or n in ("underflow",)])
def test_probes_are_the_same_in_rows_and_columns(type_: str, name: str) -> None:
    """So that they tell the same of inputs that are stacked as of rows that are reduced."""
    if suits(name, element_type(type_)):
        rows = square(name, type_, 8)
        assert {tuple(sorted(row)) for row in rows} == {tuple(sorted(column)) for column in rows.T}
        width = 8 if name == "underflow" else 7
        shifted = [np.roll(rows[0, :width], k) for k in range(width)]
        assert {row.tobytes() for row in rows[:width, :width]} == {row.tobytes() for row in shifted}


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("name", [n for n in RECIPES if n.startswith(("beside", "upon"))])
def test_the_last_row_of_a_probe_has_nothing_to_lose(type_: str, name: str) -> None:
    if suits(name, element_type(type_)):
        rows = square(name, type_, 8)
        assert np.count_nonzero(rows[-1]) == 1
        assert [math.fsum(row) for row in rows] == [rows[-1, -1]] * 8


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("bits", UPON)
def test_inputs_read_in_fewer_bits_cancel(type_: str, bits: int) -> None:
    name = f"upon-2^{bits}"
    form = element_type(type_).float_format
    assert suits(name, element_type(type_)) == (bits < form.precision)
    if suits(name, element_type(type_)):
        for read in map(format_of, (*FLOATS, "tf32")):
            rows = nearest(read, square(name, type_))
            expected = 2.0**-bits if read.precision > bits else 0.0
            assert rows.sum(axis=1).tolist() == [expected] * 3 + [float(nearest(read, np.array(2.0**-bits)))]


@pytest.mark.parametrize("type_", FLOATS)
def test_inputs_that_are_flushed_change_a_normal_mean(type_: str) -> None:
    form, rows = element_type(type_).float_format, square("subnormal-among", type_)
    flushed = np.where(np.abs(rows) < form.tiny, 0.0, rows)
    assert (rows.mean(axis=1) == 2.25 * form.tiny).all()
    assert (flushed.mean(axis=1) == 2.0 * form.tiny).all()


@pytest.mark.parametrize("type_", ["float16", "bfloat16", "float32"])
def test_inexact_sums_tell_rounding_once_from_rounding_twice(type_: str) -> None:
    rounded = functools.partial(nearest, element_type(type_).float_format)
    third = rounded(np.array(1 / 3))
    source = GeneratedCases()
    ids = planned(
        source.library, Selection(tuple(f"onnx/{name}-*/{type_}/*/inexact/*" for name in ("ReduceMean", "Mean")))
    )
    for case in cases_of(source, list(ids)):
        if case.expectation.invalid:
            continue
        terms = [t.astype(np.float64).reshape(64, -1) for t in case.tensors()]
        a, b, c = terms[0].T if len(terms) == 1 else [t[:, 0] for t in terms]
        right = rounded((a + b + c) / 3)
        stored, stepped = rounded(a + b + c), rounded(rounded(a + b) + c)
        shares = [rounded(x / 3) for x in (a, b, c)]
        once_added, added = rounded(sum(shares)), rounded(rounded(shares[0] + shares[1]) + shares[2])
        ways = [rounded(stored / 3), rounded(stored * third), rounded(stepped / 3), rounded(stepped * third)]
        differ = [int((way != right).sum()) for way in (*ways, once_added, added)]
        assert min(differ) >= 3, (case.id, differ)


def test_probes_whose_exact_value_is_not_carried_are_refused() -> None:
    for type_ in ("float16", "bfloat16", "float32"):
        with pytest.raises(CaseIdError, match="makes no sense"):
            square("beside-2^60", type_)


def test_every_floating_point_type_of_every_version_has_probes() -> None:
    source = GeneratedCases()
    seen: dict[str, set[str]] = {}
    for text in planned(source.library, Selection(("onnx/ReduceMean-*", "onnx/Mean-*"))):
        operator, types, fill_ = "/".join(text.split("/")[:2]), text.split("/")[2], text.split("/")[5]
        if types in FLOATS:
            seen.setdefault(f"{operator}/{types}", set()).add(fill_)
    for place, fills in seen.items():
        if place.endswith("bfloat16") and int(place.split("/")[1].split("-")[1]) < 13:
            continue  # a case whose type is invalid
        assert {"inexact", "underflow", "subnormal-among", "beside-2^26"} <= fills, place
        assert place.endswith("float64") or "beside-2^16" in fills, place


def test_drawing_again_changes_no_probe_but_the_inexact_ones() -> None:
    assert {n for n in RECIPES if n.startswith(("beside", "upon"))} < UNDRAWN
    assert {"underflow", "subnormal-among"} < UNDRAWN
    assert "inexact" not in UNDRAWN
