"""Elementary functions of float64, computed only with +, -, *, /, sqrt, rint and ldexp: the same on every processor.

NumPy's functions differ between processors in the last bit, and an expectation must not. Results are within 2**-49 of
the value; if float64 is not enough for that (sines of large numbers), gmpy2 computes the element. All functions are
total: NaN outside the domain, limits at infinities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import gmpy2
import numpy as np

from ...cases.elements import Array
from .errors import each

_LN2: Final = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
_LOG2E: Final = 1.4426950408889634
_EXP: Final = tuple(1 / math.factorial(i) for i in range(14))
_EXPM1: Final = tuple(1 / math.factorial(i) for i in range(1, 17))
_ODD: Final = tuple(1 / (2 * i + 1) for i in range(14))
_ATAN: Final = tuple((-1) ** i / (2 * i + 1) for i in range(13))
_SIN: Final = tuple((-1) ** i / math.factorial(2 * i + 1) for i in range(10))
_COS: Final = tuple((-1) ** i / math.factorial(2 * i) for i in range(10))
_HALF_PI: Final = tuple(map(float.fromhex, ("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2e037073p-69")))
_PI_2: Final = math.pi / 2
_TURNS: Final = float(1 << 20)
_ROOT_PI: Final = 1.1283791670955126  # 2 / sqrt(pi)


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    value = np.full(x.shape, coefficients[-1])
    for c in coefficients[-2::-1]:
        value = value * x + c
    return value


def exp(x: Array) -> Array:
    """Return e to the power of every element."""
    inside = np.clip(x, -800, 800)
    k = np.rint(np.where(np.isnan(x), 0.0, inside) * _LOG2E)
    p = _polynomial(_EXP, (inside - k * _LN2[0]) - k * _LN2[1])
    return np.where(np.isnan(x), x, np.ldexp(p, k.astype(int)))


def expm1(x: Array) -> Array:
    """Return e to the power of every element, less one."""
    small = np.abs(x) < 0.5
    series = np.where(small, x, 0.0)
    return np.where(small, series * _polynomial(_EXPM1, series), exp(x) - 1.0)


def log(x: Array) -> Array:
    """Return the natural logarithm of every element."""
    good = (x > 0) & (x < np.inf)
    mantissa, exponent = np.frexp(np.where(good, x, 1.0))
    low = mantissa < math.sqrt(0.5)
    mantissa, exponent = np.where(low, 2 * mantissa, mantissa), exponent - low
    logarithm = exponent * _LN2[0] + (exponent * _LN2[1] + _log_near_one((mantissa - 1) / (mantissa + 1)))
    return np.where(good, logarithm, np.where(x == 0, -np.inf, np.where(x == np.inf, np.inf, np.nan)))


def _log_near_one(f: Array) -> Array:
    return 2 * f * _polynomial(_ODD, f * f)


def log1p(x: Array) -> Array:
    """Return the natural logarithm of one more than every element."""
    small = np.abs(x) < 0.25
    series = np.where(small, x, 0.0)
    return np.where(small, _log_near_one(series / (2 + series)), log(1 + x))


def sinh(x: Array) -> Array:
    """Return the hyperbolic sine of every element."""
    small = np.abs(x) < 1
    part = expm1(np.where(small, x, 0.0))
    return np.where(
        small, (part + part / (part + 1)) / 2, exp(np.abs(x)) * np.sign(x) / 2 - exp(-np.abs(x)) * np.sign(x) / 2
    )


def cosh(x: Array) -> Array:
    """Return the hyperbolic cosine of every element."""
    return exp(x) / 2 + exp(-x) / 2


def tanh(x: Array) -> Array:
    """Return the hyperbolic tangent of every element."""
    part = expm1(2 * np.minimum(np.abs(x), 30.0))
    return np.where(np.isnan(x), x, np.copysign(part / (part + 2), x))


def asinh(x: Array) -> Array:
    """Return the inverse hyperbolic sine of every element."""
    a = np.abs(x)
    near = np.minimum(a, 2.0**60)
    result = np.where(a < 2.0**60, log1p(near + near * near / (1 + np.sqrt(1 + near * near))), log(a) + math.log(2))
    return np.copysign(result, x)


def acosh(x: Array) -> Array:
    """Return the inverse hyperbolic cosine of every element, NaN below one."""
    over = np.clip(x, 1.0, 2.0**60) - 1
    result = np.where(x < 2.0**60, log1p(over + np.sqrt(2 * over + over * over)), log(x) + math.log(2))
    return np.where(x >= 1, result, np.nan)


def atanh(x: Array) -> Array:
    """Return the inverse hyperbolic tangent of every element, NaN beyond one."""
    a = np.abs(x)
    inside = np.where(a < 1, a, 0.0)
    result = np.where(a == 1, np.inf, log1p(2 * inside / (1 - inside)) / 2)
    return np.where(a <= 1, np.copysign(result, x), np.nan)


def atan(x: Array) -> Array:
    """Return the inverse tangent of every element."""
    a = np.abs(x)
    small = a <= 1
    z = np.where(small, a, 1 / np.where(small, 1.0, a))
    for _ in range(2):  # halving the angle twice: at most 1/32 of a turn
        z = z / (1 + np.sqrt(1 + z * z))
    angle = 4 * z * _polynomial(_ATAN, z * z)
    return np.where(np.isnan(x), x, np.copysign(np.where(small, angle, _PI_2 - angle), x))


def asin(x: Array) -> Array:
    """Return the inverse sine of every element, NaN beyond one."""
    return np.where(np.abs(x) <= 1, atan(x / np.sqrt((1 - x) * (1 + x))), np.nan)


def acos(x: Array) -> Array:
    """Return the inverse cosine of every element, NaN beyond one."""
    return np.where(np.abs(x) <= 1, 2 * atan(np.sqrt((1 - x) / (1 + x))), np.nan)


def _turned(x: Array) -> tuple[Array, Array]:
    """Return the remainders of angles after whole quarters of a turn, and the numbers of their quarters, 0 to 3."""
    inside = np.where(np.abs(x) < _TURNS, x, 0.0)
    n = np.rint(inside / _PI_2)
    return ((inside - n * _HALF_PI[0]) - n * _HALF_PI[1]) - n * _HALF_PI[2], n.astype(np.int64) & 3


def _sine(x: Array, name: str, quarters: int) -> Array:
    rest, turn = _turned(x)
    square, turn = rest * rest, (turn + quarters) & 3
    sine = np.where(turn & 1, _polynomial(_COS, square), rest * _polynomial(_SIN, square))
    return _far(x, name, np.where(turn & 2, -sine, sine))


def _far(x: Array, name: str, results: Array) -> Array:
    """Replace the results of large angles, whose reduction needs more bits of pi than float64 has."""
    far = np.abs(x) >= _TURNS
    if far.any():
        results = np.array(results)
        with gmpy2.context(precision=80):
            results[far] = each(getattr(gmpy2, name), x[far].astype(object)).astype(np.float64)
    return np.where(np.isfinite(x), results, np.nan)


def sin(x: Array) -> Array:
    """Return the sine of every element."""
    return np.where(x == 0, x, _sine(x, "sin", 0))


def cos(x: Array) -> Array:
    """Return the cosine of every element."""
    return _sine(x, "cos", 1)


def tan(x: Array) -> Array:
    """Return the tangent of every element."""
    rest, turn = _turned(x)
    square = rest * rest
    s, c = rest * _polynomial(_SIN, square), _polynomial(_COS, square)
    return np.where(x == 0, x, _far(x, "tan", np.where(turn & 1, -c / np.where(s == 0, 1.0, s), s / c)))


def erf(x: Array) -> Array:
    """Return the error function of every element."""
    a = np.abs(np.where(np.isnan(x), 0.0, x))
    near, far = np.minimum(a, 2.5), np.clip(a, 2.5, 6.0)
    square, term = 2 * near * near, near.copy()  # e**-x² · Σ (2x²)**n · x / (1·3·…·(2n+1)), all of one sign
    total = term.copy()
    for n in range(1, 61):
        term = term * square / (2 * n + 1)
        total = total + term
    inner = _ROOT_PI * exp(-near * near) * total
    outer = 1 - exp(-far * far) * (_ROOT_PI / 2) / _tail(far)
    return np.where(np.isnan(x), x, np.copysign(np.where(a < 2.5, inner, np.where(a < 6, outer, 1.0)), x))


def _tail(far: Array, terms: int = 80) -> Array:
    """Return the continued fraction of the error function's complement, e**-x² / (√π · erfc(x)), from x = 2.5 on.

    400 terms are enough from x = 0.75 on.
    """
    rest = far.copy()
    for n in range(terms, 0, -1):
        rest = far + n / 2 / rest
    return rest


def erfc(x: Array) -> Array:
    """Return the complement of the error function, 1 - erf."""
    far = np.clip(np.where(np.isnan(x), 1.0, x), 0.75, 28.0)
    high = far.astype(np.float32).astype(np.float64)  # its square is exact
    tail = exp(-high * high) * (exp((high - far) * (high + far)) * (_ROOT_PI / 2) / _tail(far, 400))
    return np.where(x < 0.75, 1 - erf(x), np.where(np.isnan(x), x, tail))


def sqrt(x: Array) -> Array:
    """Return the square root of every element, correctly rounded (IEEE 754, clause 5.4.1)."""
    return np.sqrt(x)
