"""Whatever order an implementation adds up in, and wherever it divides, its answer is within the bound of its kind.

The machines of fakes/machines.py compute in whole numbers; orders are drawn and sorted, data searched for.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.exact import DTYPES, FORMATS, PATTERNS, Number, numbers, tensor, value
from fakes.judging import judge_answer, of_vectors
from fakes.machines import ADVERSE, DIVISIONS, MACHINES, RUNNING, WIDER, Machine, Tree, drawn, reached
from fakes.sampled import slow
from hypothesis import given, settings
from hypothesis import strategies as st

from opconform.cases.results import Outcome

each_machine = pytest.mark.parametrize("machine", MACHINES, ids=lambda m: f"{m.type}-{m.label}")
REACHED = {  # at least this share of the bound, whatever the place of the division; docs/judging.md
    ("float32", "own"): 0.96,
    ("float64", "own"): 0.96,
    ("float16", "wide"): 0.96,
    ("float16", "stepwise"): 0.46,
    ("float16", "narrow"): 0.9,
    ("bfloat16", "wide"): 0.96,
    ("bfloat16", "stepwise"): 0.46,
    ("bfloat16", "narrow"): 0.8,
}
any_machine = pytest.mark.parametrize(
    "machine",
    [one if place % 3 == 0 else slow(one) for place, one in enumerate([*MACHINES, *WIDER])],
    ids=lambda m: f"{m.type}-{m.label}-{m.accumulator.precision}-{m.storage.precision}",
)


def admitted(machine: Machine, vectors: list[Any], trees: list[Tree], divisions: tuple[str, ...]) -> None:
    """Assert that all means of vectors of one length pass as what the machine is."""
    required = {"accumulator": machine.label, "flush": "none", "summation": "sums"}
    for vector, expectation in zip(vectors, of_vectors(vectors, machine.type), strict=True):
        elements = numbers(vector)
        for division in divisions:
            answers = {machine.answer(machine.mean(elements, tree, division)) for tree in trees}
            for answer in answers:
                verdict = judge_answer(expectation, [tensor([answer], machine.type, ())], required)
                assert verdict.outcome is Outcome.PASS, (vector, division, value(answer), verdict.detail)


# What is drawn


def scattered(name: str, n: int, draw: random.Random) -> Any:
    """Any bits."""
    width = np.dtype(PATTERNS[name]).itemsize * 8
    return np.array([draw.getrandbits(width) for _ in range(n)], PATTERNS[name]).view(DTYPES[name])


def close(name: str, n: int, draw: random.Random) -> Any:
    """Full significands of one size and both signs, at any scale."""
    form = FORMATS[name]
    bits = max(form.lowest, draw.choice((form.lowest, 1074 - form.precision, 1073 + form.emax - form.precision - 6)))
    tops = [draw.getrandbits(form.precision) << bits for _ in range(n)]
    return tensor([t if draw.random() < 0.7 else -t for t in tops], name, (n,))


def cancelling(name: str, n: int, draw: random.Random) -> Any:
    """Pairs that cancel but for their last places, and a remainder."""
    form = FORMATS[name]
    grid = draw.randint(form.lowest, 1074 + 4)
    tops = [draw.getrandbits(form.precision - 1) | 1 << form.precision - 1 for _ in range((n + 1) // 2)]
    both = [*tops, *(-t + draw.randint(0, 2) for t in tops)]
    draw.shuffle(both)
    return tensor([b << grid for b in both[:n]], name, (n,))


def at_the_edge(name: str, n: int, draw: random.Random) -> Any:
    """Whole numbers whose sum of magnitudes is about what any of the formats holds exactly."""
    form = FORMATS[name]
    room = 1 << draw.choice([p for p in (8, 11, 24, 53) if p <= max(24, form.precision)])
    cuts = sorted(draw.randint(0, room) for _ in range(n - 1))
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, room + draw.randint(-2, 2)], strict=True)]
    grid = draw.choice((1074 - 9, 1074 - 20, form.lowest))
    return tensor([form.nearest(draw.choice((1, 1, -1)) * p << grid) for p in parts], name, (n,))


def subnormal(name: str, n: int, draw: random.Random) -> Any:
    """Numbers about the smallest normal one and below."""
    form = FORMATS[name]
    return tensor(
        [draw.randint(-3, 3) * draw.getrandbits(draw.randint(1, form.precision)) << form.lowest for _ in range(n)],
        name,
        (n,),
    )


def uneven(name: str, n: int, draw: random.Random) -> Any:
    """A few numbers of one size among ones that are lost beside them, or nearly, and zeros."""
    form = FORMATS[name]
    grid = draw.randint(form.lowest + form.precision + 4, max(form.lowest + form.precision + 4, 1074 + 4))
    small = grid - form.precision - draw.randint(-2, 4)
    tops = [draw.getrandbits(form.precision) for _ in range(n)]
    sizes = [t << (grid if draw.random() < 0.3 else small) if draw.random() < 0.8 else 0 for t in tops]
    return tensor([s if draw.random() < 0.7 else -s for s in sizes], name, (n,))


def huge(name: str, n: int, draw: random.Random) -> Any:
    """Numbers as large as there are, of one sign or both, whose partial sums overflow; perhaps an infinity too."""
    form, both = FORMATS[name], draw.random() < 0.6
    sizes = [form.nearest(form.largest >> draw.choice((0, 0, 1, 2, 9))) for _ in range(n)]
    parts: list[Number] = [-s if both and draw.random() < 0.5 else s for s in sizes]
    if draw.random() < 0.3:
        parts[draw.randrange(n)] = math.inf
    return tensor(parts, name, (n,))


DATA = (huge, scattered, close, cancelling, uneven, at_the_edge, subnormal)


@any_machine
@given(
    seed=st.integers(0, 1 << 32), n=st.integers(2, 12), kind=st.sampled_from(DATA), division=st.sampled_from(DIVISIONS)
)
def test_any_tree_of_additions_is_admitted_as_what_it_is(machine, seed, n, kind, division):
    draw = random.Random(seed)
    vectors = [kind(machine.type, n, draw) for _ in range(3)]
    admitted(machine, vectors, [*map(drawn, range(3)), *ADVERSE], (division,))


@any_machine
@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 1 << 32), n=st.sampled_from((64, 129, 255, 256, 257, 300)), kind=st.sampled_from(DATA[2:]))
def test_any_tree_of_many_additions_is_admitted_as_what_it_is(machine, seed, n, kind):
    vectors = [kind(machine.type, n, random.Random(seed))]
    admitted(machine, vectors, [drawn(seed), ADVERSE[0], *ADVERSE[3:]], DIVISIONS)


@each_machine
@pytest.mark.parametrize("n", [3, 7, 11])
def test_shares_that_all_err_alike_are_admitted_though_their_sum_is_exact(machine, n):
    tops = range(1 << 7, 1 << 8, 2)
    vectors = [tensor([top << 1074] * n, machine.type, (n,)) for top in tops]
    admitted(machine, vectors, [ADVERSE[0]], ("before", "before by reciprocal"))


def whole(name: str, n: int, draw: random.Random) -> Any:
    """Small whole numbers, one of them larger: sums are exact, running means are not."""
    scale = 1 << draw.randint(0, 8)
    return tensor([draw.randint(-9, 9) * (scale if i == 0 else 1) << 1074 for i in range(n)], name, (n,))


@pytest.mark.parametrize("machine", [m for m in MACHINES if m.label in ("own", "wide")], ids=lambda m: m.type)
@given(
    seed=st.integers(0, 1 << 32), n=st.sampled_from((3, 5, 6, 7, 12)), kind=st.sampled_from((whole, whole, *DATA[2:]))
)
def test_a_running_mean_is_admitted_in_any_order(machine, seed, n, kind):
    """Lengths of 4 and 8 are left out: there a vector can be contrived whose sum's bound has no room for it."""
    vector = kind(machine.type, n, random.Random(seed))
    elements = numbers(vector)
    random.Random(seed).shuffle(elements)
    (expectation,) = of_vectors([vector], machine.type)
    for division in RUNNING:
        answer = tensor([machine.answer(machine.mean(elements, ADVERSE[0], division))], machine.type, ())
        verdict = judge_answer(expectation, [answer], {"accumulator": machine.label, "flush": "none"})
        assert verdict.outcome is Outcome.PASS, (elements, division, verdict.detail)


# The largest errors that there are


@each_machine
@pytest.mark.parametrize("division", DIVISIONS)
def test_a_search_for_the_largest_error_comes_near_the_bound_and_not_beyond(machine, division):
    found = reached(machine, division)
    assert found.ratio <= 1
    assert found.ratio >= REACHED[machine.type, machine.label], found
    answer = tensor([machine.answer(found.stored)], machine.type, ())
    (expectation,) = of_vectors([found.vector], machine.type)
    required = {"accumulator": machine.label, "flush": "none", "summation": "sums"}
    assert judge_answer(expectation, [answer], required).outcome is Outcome.PASS


def test_the_page_on_judging_has_these_shares():
    page = (Path(__file__).parents[2] / "docs" / "judging.md").read_text(encoding="utf-8")
    for (name, label), share in REACHED.items():
        assert f"| {name} | {label} | {share} |" in page


# The bound is no wider than it says


def width(machine: Machine, elements: list[Number]) -> Fraction:
    """The bound on a mean's error, in units, in full: additions, divisions by two roundings, underflow."""
    n, inside, stored = len(elements), machine.accumulator, machine.storage
    u_a, u_s = Fraction(1, 1 << inside.precision), Fraction(1, 1 << stored.precision)
    magnitude = Fraction(sum(map(abs, elements)), n)
    summed = (n - 1) * u_a * magnitude
    roundings = (4 if inside != stored else 2) * u_s * (magnitude + summed)
    halves = 2 if stored.precision < 53 else 4  # half of float64's smallest number is no float64 number
    underflow = (n + 1) * (halves << stored.lowest) // 2
    return (summed + roundings + underflow) * (1 + Fraction(1, 1 << 16))


@each_machine
@given(seed=st.integers(0, 1 << 32), n=st.integers(2, 12), kind=st.sampled_from((close, cancelling, at_the_edge)))
def test_the_next_number_beyond_the_bound_is_refused(machine, seed, n, kind):
    vector = kind(machine.type, n, random.Random(seed))
    elements, form = numbers(vector), FORMATS[machine.type]
    (expectation,) = of_vectors([vector], machine.type)
    required = {"accumulator": machine.label, "flush": "none", "summation": "sums"}
    exact, wide = Fraction(sum(elements), n), width(machine, elements)
    for side in (1, -1):
        limit = exact + side * wide
        outside = form.around(limit.numerator, limit.denominator)[side == 1]
        beyond = form.around(outside + side)[side == 1]  # a last rounding may reach the one, not the other
        verdict = judge_answer(expectation, [tensor([beyond], machine.type, ())], required)
        assert verdict.outcome is Outcome.WRONG_VALUE, (vector, value(beyond))
