"""Implementations of our own: right ones that agree with exact fractions, wrong ones that are wrong in one way."""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np
import pytest
from fakes.judging import judge_answer
from fakes.programs import feed, mean, reduce_mean
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opconform.cases.elements import element_type
from opconform.cases.errors import OpconformError
from opconform.cases.program import Program
from opconform.cases.results import Outcome
from opconform.cases.runner import Runner
from opconform.generators.expect import Reading, Rules, expectations
from opconform.generators.mutants.backends import mutant
from opconform.generators.mutants.call import Refused, call_of
from opconform.generators.mutants.catalogue import all_mutants, mutants_of, versions
from opconform.generators.mutants.implementation import compute
from opconform.generators.mutants.native import Working
from opconform.generators.mutants.orders import ORDERS
from opconform.generators.mutants.variants import variants
from opconform.generators.reference import reduction
from opconform.generators.source import GeneratedCases

LIBRARY = GeneratedCases().library
CUBE = np.arange(12, dtype=np.float32).reshape(3, 2, 2)


def run(name: str, program: Program, *inputs: np.ndarray) -> np.ndarray:
    (output,) = backend(name).prepare(program).run(inputs)
    return output


@functools.cache
def backend(name: str) -> Runner:
    return mutant(name)


@pytest.mark.parametrize("name", ["int32", "int64", "uint64"])
@settings(deadline=None)
@given(choice=st.data())
def test_the_right_implementation_truncates_the_exact_fraction(name, choice):
    element = element_type(name)
    x = choice.draw(hnp.arrays(element.dtype, st.integers(1, 9)))
    got = run("right", reduce_mean(13, x.shape, type_=name, keepdims=0), x)
    exact = Fraction(sum(map(int, x)), len(x))
    assert int(got) == (exact.__floor__() if exact >= 0 else exact.__ceil__())


@pytest.mark.parametrize("accumulator", ["own", "wide", "widest"])
@settings(deadline=None, max_examples=300)
@given(choice=st.data())
def test_no_order_and_no_division_is_blamed_on_any_numbers(accumulator, choice):
    order = choice.draw(st.sampled_from([*ORDERS, "running-means"]))
    division = choice.draw(st.sampled_from(["after", "reciprocal", "before", "before-reciprocal", "fused"]))
    if order == "running-means" and accumulator == "own":
        order = "pairwise"  # running means in 16 bits are not admitted
    name = choice.draw(st.sampled_from(["float16", "bfloat16", "float32", "float64"]))
    limit = 100.0 if name == "float16" else 1e6
    x = np.array(choice.draw(st.lists(st.floats(-limit, limit), min_size=1, max_size=30)))
    x = x.astype(element_type(name).dtype)
    working = Working(accumulator, order, division)
    reading = Reading(formula=lambda xs: reduction.mean(xs[0], (0,), False), terms=len(x))
    (expectation,) = expectations([reading], [x[np.newaxis]], Rules(element_type(name)))
    got = working.lower(reading.formula([working.lift(x)]), element_type(name))
    verdict = judge_answer(expectation, [got])
    assert verdict.outcome is Outcome.PASS, verdict.detail


@pytest.mark.parametrize("order", ORDERS)
@settings(deadline=None)
@given(x=hnp.arrays(np.int16, st.tuples(st.integers(0, 70), st.integers(0, 3))))
def test_every_order_adds_up_every_addend_once(order, x):
    assert ORDERS[order](x.astype(np.float64)).tolist() == x.astype(np.int64).sum(axis=0).tolist()


def test_axes_come_from_attributes_constants_and_run_time_inputs():
    want = CUBE.mean(axis=(0, 2), keepdims=True)
    axes = np.array([0, -1], np.int64)
    fed = feed("axes", "int64", 2)
    assert (run("right", reduce_mean(13, (3, 2, 2), axes=(0, -1)), CUBE) == want).all()
    assert (run("right", reduce_mean(18, (3, 2, 2), fed), CUBE, axes) == want).all()
    assert (run("right", reduce_mean(18, ("a", "b", "c"), fed), CUBE, axes) == want).all()
    assert run("right", reduce_mean(18, (3, 2, 2), None), CUBE).item() == 5.5


@pytest.mark.parametrize(
    ("program", "inputs", "words"),
    [
        (reduce_mean(13, (3, 2, 2), axes=(3,)), [CUBE], "invalid"),
        (reduce_mean(13, (3, 2, 2), type_="int8"), [CUBE.astype(np.int8)], "type int8"),
        (reduce_mean(13, (3, 2, 2), noop=1), [CUBE], "no attribute noop"),
        (mean(13), [], "needs input"),
        (mean(13, (3,), (2,)), [np.ones(3, np.float32), np.ones(2, np.float32)], "do not broadcast"),
        (mean(6, (3,), (1,)), [np.ones(3, np.float32), np.ones(1, np.float32)], "different shapes"),
        (mean(13, (3,), (3,)), [np.ones(3, np.float32), np.ones(3)], "one type"),
    ],
)
def test_what_is_invalid_is_refused(program, inputs, words):
    with pytest.raises(Refused, match=words):
        compute(call_of(LIBRARY, program, inputs))


@pytest.mark.parametrize(
    ("name", "program", "inputs", "want"),
    [
        ("count-plus-one", reduce_mean(13, (2, 2), axes=(1,)), [[[3, 3], [6, 6]]], [[2], [4]]),
        ("default-keepdims-0", reduce_mean(13, (2, 2), axes=(1,)), [[[1, 3], [5, 7]]], [2, 6]),
        ("ignored-axes", reduce_mean(13, (2, 2), axes=(1,), keepdims=0), [[[1, 3], [5, 7]]], 4),
        ("first-axis-only", reduce_mean(13, (2, 2), axes=(1, 0)), [[[1, 3], [5, 7]]], [[2], [6]]),
        ("negative-axes-off-by-one", reduce_mean(13, (2, 2), axes=(-1,)), [[[1, 3], [5, 7]]], [[3, 5]]),
        ("last-dropped", reduce_mean(13, (3,)), [[3, 3, 9]], [2]),
        ("nan-skipped", reduce_mean(13, (3,)), [[1, np.nan, 5]], [3]),
        ("first-1-inputs", mean(13, (2,), (2,)), [[1, 3], [5, 7]], [1, 3]),
        ("broadcast-left", mean(13, (2, 2), (2,)), [[[0, 0], [0, 0]], [2, 4]], [[1, 1], [2, 2]]),
        ("output-transposed", mean(13, (2, 2)), [[[1, 2], [3, 4]]], [[1, 3], [2, 4]]),
        ("rank-0-as-vector", reduce_mean(13, (2,), keepdims=0), [[1, 3]], [2]),
        ("noop-wins-over-axes", reduce_mean(18, (2,), feed("axes", "int64", 1), noop=1), [[1, 3], [0]], [1, 3]),
    ],
)
def test_a_mutant_is_wrong_as_its_name_says(name, program, inputs, want):
    arrays = [np.array(x, element_type(i.type).dtype) for x, i in zip(inputs, program.feeds, strict=True)]
    assert run(name, program, *arrays).tolist() == want


def test_a_mutant_that_keeps_state_is_right_at_first():
    program = reduce_mean(13, ("a", "b"), axes=(0,))
    prepared = mutant("first-strides-kept").prepare(program)
    first, second = CUBE[0, :, :].reshape(1, 4), CUBE.reshape(4, 3)
    assert prepared.run([first])[0].tolist() == first.mean(axis=0, keepdims=True).tolist()
    assert prepared.run([second])[0].tolist() != second.mean(axis=0, keepdims=True).tolist()
    fresh = mutant("first-strides-kept").prepare(program)
    assert fresh.run([second])[0].tolist() == second.mean(axis=0, keepdims=True).tolist()


def test_a_mutant_does_no_harm_where_it_does_not_apply():
    for name in ("ignored-axes", "first-axis-only", "default-keepdims-0", "broadcast-left", "int64-through-int32"):
        assert run(name, mean(13, (2,)), np.array([1, 3], np.float32)).tolist() == [1, 3]


def test_every_version_has_mutants_of_each_kind_that_it_can_have():
    for spec, version in versions(LIBRARY):
        kinds = {m.kind for m in mutants_of(spec, version).values()}
        assert kinds >= {"signature", "arithmetic", "shape", "state", "process"}, version.operator
        assert ("axes" in kinds) == ("Reduce" in spec.name)


def test_names_are_those_of_one_implementation_and_fit_a_command_line():
    names = [*all_mutants(LIBRARY), *(v.name for v in variants(LIBRARY))]
    assert len(set(names)) == len(names)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_") for name in names)


@pytest.mark.parametrize(("name", "words"), [("count-plus-on", "did you mean 'count-plus-one'"), ("", "mutant:NAME")])
def test_an_unknown_mutant_is_named_with_the_nearest(name, words):
    with pytest.raises(OpconformError, match=words):
        mutant(name)
