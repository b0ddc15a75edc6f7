"""Sines and cosines of fractions of a turn, and Fourier transforms by fast algorithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import gmpy2
import numpy as np

from ...cases.elements import Array
from ..arithmetic.errors import Arithmetic, Error, Known, charged, each
from . import elementary
from .primitive import Primitive

_ROUNDINGS: Final = 3
"""Those of the angle: 2·pi, the quotient, the product; in any order."""


class CosTurns(Primitive):
    """The cosine of so many n-ths of a turn, whole numbers. The angle may be computed as it is written, unreduced."""

    name = "cos_turns"
    text = "cos(2·pi·{0}/{n}): 3·u of the angle, and 4 ulp (half: 2)"
    ulp: ClassVar[tuple[float, float]] = (4, 2)
    quarters: ClassVar[int] = 0

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        return value.node(cls.name, n=int(others[0] if others else p["n"]))

    @classmethod
    def exact(cls, *xs: Array, **p: Any) -> Array:
        """Return the cosine: at whole quarters of a turn it is exact."""
        x, n = xs[0], p["n"]
        if x.dtype == object:
            return each(lambda v: _cosine(int(v), n, cls.quarters), x)
        rest = np.mod(4 * x - cls.quarters * n, 4.0 * n)  # in quarters of an n-th of a turn
        whole = np.isin(rest, (n, 3.0 * n))
        return np.where(whole, 0.0, elementary.cos(np.minimum(rest, 4.0 * n - rest) * (math.pi / 2 / n)))

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
    """The sine of so many n-ths of a turn."""

    name, quarters = "sin_turns", 1
    text = "sin(2·pi·{0}/{n}): 3·u of the angle, and 4 ulp (half: 2)"


def _cosine(count: int, n: int, quarters: int) -> Any:
    rest = (4 * count - quarters * n) % (4 * n)
    if rest in (n, 3 * n):
        return gmpy2.mpfr(0)
    return gmpy2.cos(gmpy2.const_pi() * rest / (2 * n))
