"""Exact means exact: what overflows float64 on the way has its value, and an error that the roundings explain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np
import pytest
from fakes.recorded import recorded
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.batch import Flag

large = st.lists(st.floats(1e300, 5e307), min_size=2, max_size=9)
ONE = gmpy2.mpfr(1)


def total(x: Any) -> Any:
    return sum(x, gmpy2.mpfr(0))


WAYS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "log of a sum": (lambda x: x.sum().log(), lambda x: gmpy2.log(total(x))),
    "root of squares": (lambda x: (x * x).sum().sqrt(), lambda x: gmpy2.sqrt(total(n * n for n in x))),
    "quotient": (lambda x: x[:1] / x.sum(), lambda x: x[0] / total(x)),
    "mean of squares": (
        lambda x: (x * x).mean().sqrt() * 0.5,
        lambda x: gmpy2.sqrt(total(n * n for n in x) / len(x)) / 2,
    ),
    "power of squares": (lambda x: (x**2.0).sum() ** 0.25, lambda x: total(n * n for n in x) ** (ONE / 4)),
    "log of a product": (lambda x: x.prod().log(), lambda x: total(gmpy2.log(n) for n in x)),
    "product of matrices": (
        lambda x: x.reshape(1, -1).matmul(x.reshape(-1, 1)).reshape(1).sqrt(),
        lambda x: gmpy2.sqrt(total(n * n for n in x)),
    ),
    "log of an exponential": (
        lambda x: ((x * 1e-305).exp() + 1.0).log(),
        lambda x: [gmpy2.log1p(gmpy2.exp(n * 1e-305)) for n in x],
    ),
    "running sums": (lambda x: x.cumsum(0).log(), lambda x: [gmpy2.log(total(x[: i + 1])) for i in range(len(x))]),
    "differences": (lambda x: (x + x) / 4.0 - x / 2.0, lambda x: [n * 0 for n in x]),
    "small reciprocal": (lambda x: (x * x).reciprocal() * x, lambda x: [1 / n for n in x]),
}


@pytest.mark.parametrize("way", WAYS)
@given(x=large)
def test_a_formula_that_overflows_float64_on_the_way_has_its_exact_value(way: str, x: list[float]) -> None:
    formula, exact = WAYS[way]
    array = np.array([x])
    options = recorded(lambda c, v: formula(v), [array], ["float64"]).expectation([array]).case(0).options
    with gmpy2.context(precision=400, emin=-(1 << 30), emax=1 << 30):
        found = exact([gmpy2.mpfr(n) for n in x])
    wanted = np.array([float(n) for n in (found if isinstance(found, list) else [found])])
    avoided = [one for one in options if dict(one.labels).get("overflow", "avoided") == "avoided"]
    assert avoided
    for one in avoided:
        bounds = one.outputs[0]
        low, high = bounds.lower.reshape(-1), bounds.upper.reshape(-1)
        assert np.allclose(bounds.value.reshape(-1), wanted, rtol=2.0**-50, atol=0.0) or way == "differences"
        assert ((low <= wanted) & (wanted <= high)).all()
        scale = np.array(x) if way == "differences" else np.maximum(abs(wanted), 1e-300)
        assert (high - low <= 2.0**-40 * (1 + abs(scale) if way.startswith("log") else scale)).all() or way in (
            "quotient",
            "small reciprocal",
        )


def test_a_result_beyond_float64_is_infinite_for_certain() -> None:
    array = np.array([[1e300, 1e308]])
    options = recorded(lambda c, v: v * v, [array], ["float64"]).expectation([array]).case(0).options
    (bounds,) = options[0].outputs
    assert len(options) == 1
    assert np.isposinf([bounds.value, bounds.lower, bounds.upper]).all()
    assert bounds.flags is None or not (bounds.flags & Flag.FREE).any()


@given(x=st.lists(st.floats(2.0**120, 2.0**127, width=32), min_size=2, max_size=5))
def test_so_has_a_formula_of_float32_numbers_that_overflows_float64_on_the_way(x: list[float]) -> None:
    array = np.array([x], np.float32)
    recording = recorded(lambda c, v: (v**12.0).sum() ** (1 / 12), [array], ["float32"])
    option = recording.expectation([array]).case(0).options[0]
    with gmpy2.context(precision=400, emin=-(1 << 30), emax=1 << 30):
        wanted = float(total(gmpy2.mpfr(n) ** 12 for n in x) ** gmpy2.mpfr(1 / 12))
    assert dict(option.labels).get("overflow", "avoided") == "avoided"
    (bounds,) = option.outputs
    assert bounds.lower.item() <= wanted <= bounds.upper.item()
    assert bounds.upper.item() - bounds.lower.item() <= 2.0**-12 * wanted
