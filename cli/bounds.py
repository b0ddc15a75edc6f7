"""The power of cases' bounds: which elements they leave open, and how wide they are elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..cases.batch import Bounds, Expectation, Flag
from ..cases.elements import Array, element_type
from ..runners.judging.answers import ulp_exponent


def blindness(expectations: Iterable[Expectation]) -> dict[str, tuple[int, int]]:
    """Return the number of output elements by type, and of those in which no mistake would show.

    A mistake would not show if an option admits any value, or has a bound that exceeds the magnitude and no bound on
    the second moment.
    """
    counts: dict[str, tuple[int, int]] = {}
    for expectation in expectations:
        for type_, blind in _blind(expectation):
            count, seen = counts.get(type_, (0, 0))
            counts[type_] = count + blind.size, seen + int(np.count_nonzero(blind))
    return counts


def _blind(expectation: Expectation) -> Iterator[tuple[str, Array]]:
    """Yield the type of each output, and which of its elements some option leaves open."""
    usual = next((o for o in expectation.options if o.kind == "values"), None)
    strict = [o for o in expectation.options if o.level == "strict"]
    for position, bounds in enumerate(() if usual is None else usual.outputs):
        blind = np.zeros(bounds.value.shape, bool)
        for option in strict:
            applies = option.applies.reshape(-1, *(1,) * len(bounds.shape))
            if option.kind == "anything":
                blind |= applies
            elif len(option.outputs) > position and option.outputs[position].shape == bounds.shape:
                blind |= applies & _vacuous(option.outputs[position])
        yield bounds.type, blind


def tightness(expectations: Iterable[Expectation]) -> dict[str, tuple[float, float]]:
    """Return the median and the widest bound of floating-point outputs by type, in ulp of the exact value.

    This is for the usual reading, without elements whose exact value or bound is not finite. The median is the median
    of the cases' medians, because one large tensor has more elements than all others. The widest bound only covers
    elements in which a mistake can show.
    """
    by_type: dict[str, list[tuple[Array, float]]] = {}
    for expectation in expectations:
        usual = next((o for o in expectation.options if o.kind == "values"), None)
        if usual is None:
            continue
        for bounds in usual.outputs:
            if element_type(bounds.type).kind == "float" and bounds.value.size:
                by_type.setdefault(bounds.type, []).append(_ulps(bounds, usual.applies))
    ulps: dict[str, tuple[float, float]] = {}
    for type_, parts in by_type.items():
        medians = np.concatenate([of_cases for of_cases, _ in parts])
        if medians.size:
            ulps[type_] = float(np.median(medians)), max(widest for _, widest in parts)
    return ulps


def _ulps(bounds: Bounds, applies: Array) -> tuple[Array, float]:
    """Return the median bound of each case, and the widest bound of elements that are not left open."""
    with np.errstate(all="ignore"):
        reach = np.maximum(bounds.upper - bounds.value, bounds.value - bounds.lower)
        ulps = np.ldexp(reach, -ulp_exponent(bounds.value, element_type(bounds.type).float_format))
    known = np.isfinite(bounds.value) & np.isfinite(ulps)
    ulps, known, shown = (np.reshape(a, (len(a), -1))[applies] for a in (ulps, known, known & ~_vacuous(bounds)))
    medians = [np.median(case[seen]) for case, seen in zip(ulps, known, strict=True) if seen.any()]
    return np.array(medians), float(ulps[shown].max(initial=0))


def _vacuous(bounds: Bounds) -> Array:
    free = np.zeros(bounds.value.shape, bool) if bounds.flags is None else (bounds.flags & Flag.FREE) > 0
    if bounds.value.dtype != np.float64 or bounds.spread is not None:
        return np.asarray(free)
    with np.errstate(all="ignore"):
        reach = np.maximum(bounds.upper - bounds.value, bounds.value - bounds.lower)
        return np.asarray(free | (np.isfinite(bounds.value) & (reach > np.abs(bounds.value))))
