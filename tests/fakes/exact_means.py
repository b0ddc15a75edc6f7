"""Exact means, element by element, from whole numbers and the standards' definitions of what is reduced into what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .formats import FORMATS, Number, numbers
from .shapes import broadcast_groups, reduction_groups


@dataclass(frozen=True)
class Mean:
    """The addends of one element of a result, and their exact mean: a fraction of units, or an infinity or NaN."""

    addends: list[Number]

    @property
    def finite(self) -> bool:
        return all(isinstance(a, int) for a in self.addends)

    @property
    def exact(self) -> Fraction:
        return Fraction(sum(self.addends), len(self.addends))

    @property
    def magnitudes(self) -> int:
        return sum(abs(a) for a in self.addends)

    @property
    def special(self) -> float:
        """What infinities and NaN leave: NaN beside NaN, or where both infinities meet."""
        seen = {a for a in self.addends if not isinstance(a, int)}
        return seen.pop() if len(seen) == 1 else math.nan

    def rounded(self, name: str) -> Number:
        if self.finite:
            return FORMATS[name].nearest(self.exact.numerator, self.exact.denominator)
        return self.special

    def exact_in_every_order(self, name: str) -> bool:
        """Whether all partial sums are numbers of the type, and so is the mean, its share of each addend included."""
        form, n = FORMATS[name], len(self.addends)
        if n == 1 or not any(self.addends):
            return True
        lowest = min(a & -a for a in self.addends if a)
        fits = self.magnitudes <= lowest << form.precision and self.magnitudes <= form.largest
        return fits and n & (n - 1) == 0 and lowest // n >= 1 << form.lowest


def means_over(x: Any, axes: tuple[int, ...]) -> list[Mean]:
    elements = numbers(x)
    return [Mean([elements[i] for i in group]) for group in reduction_groups(x.shape, axes)]


def means_of(xs: list[Any]) -> list[Mean]:
    elements = [numbers(x) for x in xs]
    groups = broadcast_groups([x.shape for x in xs])
    return [Mean([e[i] for e, i in zip(elements, group, strict=True)]) for group in groups]
