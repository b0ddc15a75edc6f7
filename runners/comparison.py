"""Answers held against bounds, element by element and for all lanes at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..cases.elements import Array, FloatFormat, comparable, equal
from ..cases.expectation import Bounds, Flag, any_of_lane

# Plain numbers: arithmetic with an enumeration's members costs more than that with arrays.
_FREE, _ZERO, _NAN = np.uint8(Flag.FREE), np.uint8(Flag.ZERO), np.uint8(Flag.NAN)
_POSITIVE_INFINITY, _NEGATIVE_INFINITY = np.uint8(Flag.POSITIVE_INFINITY), np.uint8(Flag.NEGATIVE_INFINITY)
_POSITIVE_ZERO, _NEGATIVE_ZERO = np.uint8(Flag.POSITIVE_ZERO), np.uint8(Flag.NEGATIVE_ZERO)

_ADMITS: tuple[tuple[np.uint8, Callable[[Array], Array]], ...] = (
    (_FREE, lambda output: np.ones(output.shape, bool)),
    (_POSITIVE_INFINITY, lambda output: output == np.inf),
    (_NEGATIVE_INFINITY, lambda output: output == -np.inf),
    (_NAN, np.isnan),
    (_ZERO, lambda output: output == 0),
)


class Comparison:
    """The outputs of all lanes in the number types that they are compared in; what is found of them is kept."""

    def __init__(self, outputs: Sequence[Array]) -> None:
        with np.errstate(all="ignore"):  # signalling NaN
            self.numbers = tuple(comparable(output) for output in outputs)
        self.outputs = tuple(outputs)
        self._within: dict[tuple[int, int, int], tuple[Bounds, Array]] = {}
        self._errors: dict[tuple[int, int], tuple[Bounds, Array]] = {}

    def within(self, bounds: Bounds, index: int) -> Array:
        """Return which elements of an output lie between the bounds; it has the bounds' shape."""
        key = id(bounds.lower), id(bounds.upper), index
        if key not in self._within:  # the bounds are kept, so that their ids stay theirs
            self._within[key] = bounds, within(bounds, self.numbers[index])
        return self._within[key][1]

    def errors(self, bounds: Bounds, index: int) -> Array:
        """Return how far the elements of a floating-point output are from the exact value."""
        key = id(bounds.value), index
        if key not in self._errors:
            self._errors[key] = bounds, np.abs(self.numbers[index] - bounds.value)
        return self._errors[key][1]


def within(bounds: Bounds, output: Array) -> Array:
    """Return which elements lie between the bounds; of complex numbers and text which are the value."""
    lower, upper = comparable(bounds.lower), comparable(bounds.upper)
    if output.dtype.kind == "c" or output.dtype.hasobject:
        return equal(output, lower)
    return np.asarray((output >= lower) & (output <= upper))


def admitted(bounds: Bounds, output: Array, inside: Array) -> Array:
    """Add to the elements within bounds those that the flags admit, and take off zeros of the wrong sign."""
    flags = bounds.flags
    present = 0 if flags is None else int(np.bitwise_or.reduce(flags, axis=None))
    if flags is None or not present:
        return inside
    taken = inside.copy()
    for bit, shows in _ADMITS:
        if present & bit:
            taken |= ((flags & bit) > 0) & shows(output)
    for bit, minus in ((_NEGATIVE_ZERO, True), (_POSITIVE_ZERO, False)):
        if present & bit:
            taken &= ((flags & bit) == 0) | (np.signbit(output) == minus)
    return taken


def spread_holds(bounds: Bounds, output: Array, lanes: Sequence[int]) -> list[bool]:
    """Return for some lanes whether the errors of the tensor, as a whole, are no larger than its spread says."""
    if bounds.spread is None:
        return [True] * len(lanes)
    found = []
    for lane in lanes:
        scaled = (output[lane, ...] - bounds.value[lane, ...]) / bounds.spread.sigma[lane, ...]
        found.append(float(np.mean(scaled**2)) <= bounds.spread.limit)
    return found


def shares(bounds: Bounds, error: Array, judged: Array) -> list[float | None]:
    """Return each lane's largest error as a share of its bound, over the finite elements that are `judged` by theirs.

    None where there is no such element; infinity where an error meets a bound of zero.
    """
    exact = ~any_of_lane(error)
    if exact.all():
        return [0.0] * len(exact)
    judged = judged & np.isfinite(error)
    bound = np.maximum(bounds.upper - bounds.value, bounds.value - bounds.lower)
    ratios = np.where(judged & (error > 0), error / bound, 0.0).reshape(len(exact), -1).max(axis=1)
    known = exact | any_of_lane(judged)
    return [ratio if there else None for ratio, there in zip(ratios.tolist(), known.tolist(), strict=True)]


def all_of_lane(elements: Array) -> Array:
    """Return in which lanes all elements are true."""
    return np.asarray(elements.reshape(len(elements), -1).all(axis=1))


def finite(number: float | None) -> float | None:
    """Return a number, None for one that is not finite."""
    return number if number is not None and math.isfinite(number) else None


def ulp_exponent(values: Array, form: FloatFormat) -> Array:
    """Return the exponent of the unit in the last place of real numbers, as Goldberg's definition extends to them.

    ulp(x) = 2^(max(e, emin)-p+1) where 2^e <= |x| < 2^(e+1); the smallest subnormal number for zero (Muller, On the
    definition of ulp(x), INRIA RR-5504, 2005). `values` are float64; those that are not finite give no meaning.
    """
    lowest = form.emin - form.precision + 1
    grid = np.maximum(np.frexp(values)[1] - form.precision, lowest)
    return np.where(values == 0, lowest, grid)
