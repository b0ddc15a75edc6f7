"""Gradients from the tape are the differences of the formula in high precision; its open points are silences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gmpy2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import readings

from opconform.cases.errors import OpconformError
from opconform.generators.arithmetic.gradients import gradients
from opconform.generators.arithmetic.graph import exact
from opconform.generators.arithmetic.tape import Call, Facts, Port, record
from opconform.generators.families import activation
from opconform.generators.primitives.errors import precise

_SILENCES = {
    "zero-times-infinite": ("not-a-number", "zero"),
    "tie": ("written", "other"),
    "cancellation": ("avoided", "lossy"),
    "minus-infinity": ("not-a-number", "limit"),
}
_STEP = 2.0**-40


def evaluated(function: Callable[..., Any], arrays: Sequence[Any], outputs: int) -> list[Any]:
    """Return a formula's outputs in gmpy2's numbers, by the first option of each silence."""
    ports = {f"x{i}": Port("float64", a.shape) for i, a in enumerate(arrays)}
    results = {f"y{i}": "float64" for i in range(outputs)}
    attributes = {"approximate": "none"}
    facts = Facts("test/Formula", 1, ports, results, attributes, silences=_SILENCES)
    recording = record(function, facts)
    places = recording.forks[0].outputs
    known = exact(recording.graph, recording.graph.live(places), [a[None] for a in arrays], wide=True)
    return [known[at].v[0] for at in places]


def softmax(_: Call, x: Any) -> Any:
    e = (x - x.max(1)).exp()
    return e / e.sum(1)


def layer_norm(_: Call, x: Any, scale: Any, bias: Any) -> Any:
    off = x - x.mean(1)
    return off / ((off * off).mean(1) + 0.125).sqrt() * scale + bias


def convolved(_: Call, x: Any, w: Any) -> Any:
    seen = x.pad([(1, 0)]).windows((3,), (2,), (1,))
    return (seen * w.reshape(1, 1, 3)).sum(2, keep=False)


FORMULAS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "product": (lambda _, a, b: a * b - a, ((2, 3), (3,))),
    "quotient": (lambda _, a, b: a / (b * b + 1.0), ((2, 3), (2, 1))),
    "reciprocal": (lambda _, a: (a * a + 1.0).reciprocal() - (-a), ((4,),)),
    "exponentials": (lambda _, a: a.exp() * a.expm1() + (a * a + 0.5).log() + (a * a).log1p(), ((4,),)),
    "roots": (lambda _, a: (a * a + 1.0).sqrt() + (a * a + 1.0) ** 1.5, ((4,),)),
    "sigmoid": (lambda _, a: a.sigmoid() * a.tanh(), ((4,),)),
    "errors": (lambda _, a: a.erf() - (2.0 * a).erfc(), ((4,),)),
    "sizes": (lambda _, a, b: a.abs() + a.maximum(b) * b.minimum(0.3), ((5,), (5,))),
    "chosen": (lambda _, a: (a * a).where(a > 0.25, a.exp() * 3.0) + a.clip(-0.5, 0.5), ((6,),)),
    "largest": (lambda _, a: a.max(1) * a.min(0), ((3, 4),)),
    "matrices": (lambda _, a, b: a @ b, ((2, 1, 3, 4), (3, 4, 2))),
    "moved": (
        lambda _, a, b: (
            a.concat([b], 0).take(np.array([0, 2, 2, 1]), 0).transpose(1, 0).flip(0)[1:, ::2].pad([(1, -1)], 2.0)
        ),
        ((2, 3), (1, 3)),
    ),
    "GELU": (activation.gelu, ((6,),)),
    "SoftMax": (softmax, ((2, 5),)),
    "LayerNorm": (layer_norm, ((2, 5), (5,), (5,))),
    "convolution": (convolved, ((2, 9), (3,))),
}
numbers = st.integers(-(1 << 20), 1 << 20).map(lambda n: (2 * n + 1) / (1 << 20))  # never where branches meet


@pytest.mark.parametrize("name", FORMULAS)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_a_gradient_is_the_difference_of_the_formula_in_high_precision(name: str, data: Any) -> None:
    formula, shapes = FORMULAS[name]
    size = sum(int(np.prod(shape)) for shape in shapes)
    line = np.array(data.draw(st.lists(numbers, min_size=size, max_size=size, unique=True)))
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    xs = [part.reshape(shape) for part, shape in zip(np.split(line, ends), shapes, strict=True)]
    (y,) = evaluated(formula, xs, 1)
    seed = np.array(data.draw(st.lists(numbers, min_size=y.size, max_size=y.size))).reshape(y.shape)

    def backward(c: Call, *ports: Any) -> Any:
        return gradients(c, formula(c, *ports[:-1]), ports[-1], ports[:-1])

    found = evaluated(backward, [*xs, seed], len(xs))
    with precise():
        for at, x in enumerate(xs):
            place = data.draw(st.integers(0, x.size - 1))
            sides = []
            for step in (_STEP, -_STEP):
                moved = x.copy()
                moved.reshape(-1)[place] += step
                (side,) = evaluated(formula, [*xs[:at], moved, *xs[at + 1 :]], 1)
                sides.append(side)
            wanted = sum(((sides[0] - sides[1]) * seed).reshape(-1)) / (2 * gmpy2.mpfr(_STEP))
            assert float(found[at].reshape(-1)[place]) == pytest.approx(float(wanted), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("axis", [0, 1])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_softmax_s_gradient_from_the_result_is_the_one_from_the_tape(axis: int, data: Any) -> None:
    x, g = (np.array(data.draw(st.lists(numbers, min_size=6, max_size=6)), np.float32).reshape(2, 3) for _ in range(2))

    def forward(_: Call, x: Any) -> Any:
        e = x.exp()
        return e / e.sum(axis)

    wide = [one.astype(np.float64) for one in (x, g)]
    (wanted,) = evaluated(lambda c, x, g: gradients(c, forward(c, x), g, [x]), wide, 1)
    (dst,) = evaluated(forward, wide[:1], 1)
    found = readings(
        "onednn/SoftMaxBackward", {"diff_dst": g, "dst": dst.astype(np.float32)}, {"diff_src": "float32"}, axis=axis
    )
    assert found[0].values[0] == pytest.approx(wanted.astype(float), abs=1e-6)


@pytest.mark.parametrize("operator", ["Sigmoid", "ReLU"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_a_gradient_from_the_result_is_the_one_from_the_operand(operator: str, data: Any) -> None:
    x, g = (np.array(data.draw(st.lists(numbers, min_size=6, max_size=6))) for _ in range(2))
    formula = {"Sigmoid": lambda _, x: x.sigmoid(), "ReLU": lambda _, x: x.maximum(0.0)}[operator]
    (dst,) = evaluated(formula, [x], 1)
    (wanted,) = evaluated(lambda c, x, g: gradients(c, formula(c, x), g, [x], pointwise=True), [x, g], 1)
    for source, use_dst in ((x, False), (dst, True)):
        given_ = {"src": source.astype(np.float32), "diff_dst": g.astype(np.float32)}
        found = readings(f"onednn/{operator}Backward", given_, {"diff_src": "float32"}, use_dst=use_dst)
        assert found[0].values[0] == pytest.approx(wanted.astype(float), rel=1e-5, abs=1e-6)


def test_what_a_derivative_leaves_open_is_a_silence() -> None:
    given_ = {"src": np.float32([0.0, -1.0]), "diff_dst": np.float32([2.0, np.inf])}
    found = readings("onednn/ReLUBackward", given_, {"diff_src": "float32"}, use_dst=False)
    answers = [one.values[0].tolist() for one in found]
    assert [0.0, 0.0] in answers
    assert [2.0, 0.0] in answers
    assert any(a == 2.0 and np.isnan(b) for a, b in answers)
    assert {silence for one in found for silence in one.taken} >= {"tie", "zero-times-infinite"}


def test_a_branch_that_is_not_taken_adds_nothing_even_where_its_derivative_is_infinite() -> None:
    def backward(c: Call, x: Any, g: Any) -> Any:
        return gradients(c, x.sqrt().where(x > 1.0, 2.0 * x), g, [x])

    assert evaluated(backward, [np.array([0.0, 4.0]), np.array([1.0, 1.0])], 1)[0].astype(float).tolist() == [2.0, 0.25]


def test_a_primitive_without_a_derivative_is_named() -> None:
    with pytest.raises(OpconformError, match="no derivative of mod is known"):
        evaluated(lambda c, x, g: gradients(c, x.mod(3.0), g, [x]), [np.ones(2), np.ones(2)], 1)
