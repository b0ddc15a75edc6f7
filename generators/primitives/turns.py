"""Sines and cosines of fractions of a turn, and Fourier transforms by fast algorithms."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import gmpy2
import numpy as np

from ...cases.elements import Array
from . import elementary
from .errors import Arithmetic, Error, Known, charged, each
from .primitive import Primitive

_ROUNDINGS: Final = 3
"""The roundings of the angle: 2·pi, the quotient, the product; in any order."""


class CosTurns(Primitive):
    """The cosine of whole multiples of 1/n of a turn. Implementations may compute the angle as written, unreduced."""

    name = "cos_turns"
    text = "cos(2·pi·{0}/{n}): 3·u of the angle, and 4 ulp (half: 2)"
    ulp: ClassVar[tuple[float, float]] = (4, 2)
    quarters: ClassVar[int] = 0

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        return value.node(cls.name, n=int(others[0] if others else p["n"]))

    @classmethod
    def exact(cls, *xs: Array, **p: Any) -> Array:
        """Return the cosine; it is exact at whole quarters of a turn."""
        x, n = xs[0], p["n"]
        if x.dtype == object:
            return each(lambda v: _cosine((4 * int(v) - cls.quarters * n) % (4 * n), n), x)
        rest = np.mod(4 * x - cls.quarters * n, 4.0 * n)  # in quarters of 1/n of a turn
        zero = np.isin(rest, (n, 3.0 * n))
        return np.where(zero, 0.0, elementary.cos(np.minimum(rest, 4.0 * n - rest) * (math.pi / 2 / n)))

    @classmethod
    def bound(cls, c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        x, off = xs[0], c.bound(es[0].e)
        turned = 2 * math.pi / abs(p["n"])
        angle = turned * (_ROUNDINGS * c.storage.roundoff * x.size + off * (1 + _ROUNDINGS * c.storage.roundoff))
        slope = np.sqrt(np.maximum((1 - y.f) * (1 + y.f), 0.0))
        e = c.of_bound(angle * np.minimum(slope + angle, 1.0))
        roundings = np.where(x.f == 0, 0.0, 2.0 * cls.ulp[c.storage.precision < 24])
        return charged(c, y, e, 0, roundings, rule=cls.name, exact=False)

    @classmethod
    def native(cls, m: Any, *xs: Array, **p: Any) -> Array:
        angle = m.rounded(m.rounded(np.asarray(2 * math.pi / p["n"])) * m.rounded(xs[0]))
        return np.asarray(m.rounded((np.sin if cls.quarters else np.cos)(angle.astype(np.float64))))


class SinTurns(CosTurns):
    """The sine of whole multiples of 1/n of a turn."""

    name, quarters = "sin_turns", 1
    text = "sin(2·pi·{0}/{n}): 3·u of the angle, and 4 ulp (half: 2)"


@functools.lru_cache(maxsize=1 << 14)
def _cosine(rest: int, n: int) -> Any:
    """Return the cosine of `rest` quarters of 1/n of a turn."""
    if rest in (n, 3 * n):
        return gmpy2.mpfr(0)
    return gmpy2.cos(gmpy2.const_pi() * rest / (2 * n))


class FastFourier(Primitive):
    """The first operand, [..., K, 2], as a Fourier transform of the second, [..., N, 1 or 2], by a fast algorithm.

    An algorithm of factors multiplies by sparse matrices whose moduli have the product 1 in every place, so that
    element by element its error is at most (prod(1 + h) - 1) times the sum of |x|, where h is what one matrix adds to
    the moduli it multiplies: 2 (m + 3u) + (p + 1)u for the factor p of N, of two complex products (an error of at most
    2.9u each) and a sum. m is the error of a weight that is computed by itself: 3u of an angle below 2 pi, and the
    budget of cosine and sine. The proof is that of theorem 24.2 of Higham, Accuracy and Stability of Numerical
    Algorithms (2nd ed., 2002), before norms are taken. `chirp`: by Bluestein's convolution, three transforms of a power
    of two M >= 2N - 1; by that theorem in the 2-norm, and Cauchy and Schwarz, its error is at most
    (3h + 2m + 7u) sqrt(2N - 1) times the 2-norm of x, and what its last weights add. Their angles may be pi n^2 / N.
    """

    name = "fast_fourier"
    text = "{0}, a transform of {1} by a fast algorithm (chirp: {chirp})"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return xs[0]

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        x, u, n = xs[1], c.storage.roundoff, xs[1].v.shape[-2]
        off = np.broadcast_to(c.bound(es[1].e), x.v.shape)
        modulus = np.sqrt((np.square(x.size + off)).sum(-1))
        total = modulus.sum(-1)[..., None, None]
        weight = (2 * math.pi * _ROUNDINGS + 2 * CosTurns.ulp[c.storage.precision < 24]) * u
        if p["chirp"]:
            levels = (2 * n - 2).bit_length()
            chirp = (math.pi * n * _ROUNDINGS + 2 * CosTurns.ulp[c.storage.precision < 24]) * u
            norm = math.sqrt(2 * n - 1) * np.sqrt(np.square(modulus).sum(-1))[..., None, None]
            e = norm * math.expm1(3 * levels * (2 * weight + 9 * u) + 2 * chirp + 7 * u) + total * (chirp + 3 * u)
        else:
            e = total * math.expm1(sum(2 * (weight + 3 * u) + (factor + 1) * u for factor in _factors(n)))
        e = e + off.sum((-2, -1))[..., None, None] + 4 * n * c.underflow(c.storage)
        return charged(c, y, c.of_bound(e), es[0].flags, rule="fast_fourier", exact=False)

    @classmethod
    def native(cls, m: Any, *xs: Array, **_: Any) -> Array:
        return xs[0]


def _factors(n: int) -> list[int]:
    """Return the prime factors of a number."""
    factors, factor = [], 2
    while n > 1:
        while n % factor == 0:
            factors.append(factor)
            n //= factor
        factor += 1
    return factors
