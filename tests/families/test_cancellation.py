"""Activations whose formulas lose digits: the accurate answer has an option of its own, and the formula is admitted."""

import gmpy2
import numpy as np
import pytest
from recorded import readings

F = np.float32


def softplus(x):
    return gmpy2.log1p(gmpy2.exp(x))


def tanh_gelu(x):
    return x / 2 * (1 + gmpy2.tanh(gmpy2.sqrt(2 / gmpy2.const_pi()) * (x + gmpy2.mpfr(0.044715) * x**3)))


def gelu(x):
    return x / 2 * gmpy2.erfc(-x / gmpy2.sqrt(gmpy2.mpfr(2)))


ALPHA, GAMMA = (gmpy2.mpfr(float(F(n))) for n in (1.6732632423543772, 1.0507009873554805))
OPERATORS = {
    "Softplus-1": (softplus, -20, {}),
    "Softplus-22": (softplus, -20, {}),
    "Mish-22": (lambda x: x * gmpy2.tanh(softplus(x)), -20, {}),
    "Gelu-20": (gelu, -6, {}),
    "Gelu-20 tanh": (tanh_gelu, -6, {"approximate": "tanh"}),
    "Elu-22": (gmpy2.expm1, -1e-9, {}),
    "Selu-22": (lambda x: GAMMA * ALPHA * gmpy2.expm1(x), -1e-9, {}),
    "Celu-28": (gmpy2.expm1, -1e-9, {}),
    "Sigmoid-13": (lambda x: 1 / (1 + gmpy2.exp(-x)), -20, {}),
    "Swish-24": (lambda x: x / (1 + gmpy2.exp(-x)), -20, {}),
}


@pytest.mark.parametrize("type_", ["float32", "float64"])
@pytest.mark.parametrize("name", OPERATORS)
def test_all_digits_may_be_lost_only_by_an_option_that_says_so(name, type_) -> None:
    exact, far, attributes = OPERATORS[name]
    scale = 1 if type_ == "float32" else 1e-8 if far > -1 else 2 if far > -10 else 3
    x = np.array([far * scale, far * scale / 2, 0.0], type_)
    with gmpy2.context(precision=300):
        wanted = np.array([float(exact(gmpy2.mpfr(float(n)))) for n in x])
    operator, outputs = f"onnx/{name.split()[0]}", {"y" if name.startswith("Swish") else "Y": type_}
    found = readings(operator, {"X": x}, outputs, **attributes)
    found = [one for one in found if one.taken.get("constants") != "float32"]
    taken = {one.taken["cancellation"] for one in found}
    assert taken == {"avoided", "lossy"}
    for one in found:
        low, high = one.lower[0], one.upper[0]
        assert ((low <= wanted) & (wanted <= high)).all()
        if one.taken["cancellation"] == "avoided":
            assert (high - low <= 2.0**-12 * abs(wanted)).all()
        else:
            assert low[0] <= 0 <= high[0]


def test_numbers_that_lose_no_digit_open_nothing() -> None:
    for operator in ("onnx/Softplus-22", "onnx/Elu-22", "onnx/Sigmoid-13"):
        found = readings(operator, {"X": np.array([0.0, 1.0, 30.0], F)}, {"Y": "float32"})
        assert [one.taken["cancellation"] for one in found] == ["avoided"]
