"""How accurate an answer is, whatever the verdict: its grade, its largest error in ulp, and its share of the bounds."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cases.elements import Array, FloatFormat, element_type, type_of
from ..cases.expectation import EXCEPTIONAL, Bounds, Expectation, Flag, Labels, Option
from ..cases.model import Case
from .judge import Verdict

_FREE, _ZERO, _EXCEPTIONAL = np.uint8(Flag.FREE), np.uint8(Flag.ZERO), np.uint8(EXCEPTIONAL)
_ARITHMETICAL = frozenset({"accumulator", "flush", "overflow", "summation", "zero-sign"})
"""Silences about how a result is computed; the others are about what is computed."""
_DOUBLE = 53  # bits: outputs whose exact values do not fit the carrier
_DOUBTFUL = 0.25  # ulp: the exact value is not known well enough to tell how it rounds
_DIGITS = 7  # significant ones in JSON: float32's


class Grade(enum.StrEnum):
    """How close an answer is, the best first; of a tensor, that of its worst element."""

    ROUNDED = "correctly-rounded"
    FAITHFUL = "faithful"
    WIDE = "wide"
    STEPWISE = "stepwise"
    NARROW = "narrow"
    BOUND = "bound"
    DECLARED = "declared"
    OUTSIDE = "outside"

    @property
    def rank(self) -> int:
        """The place in the order, 0 for the best."""
        return _RANKS[self]


_RANKS = {grade: rank for rank, grade in enumerate(Grade)}
_BY_LABEL = {str(grade): grade for grade in (Grade.WIDE, Grade.STEPWISE, Grade.NARROW, Grade.BOUND)}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How accurate the floating-point elements of an answer are.

    `type` is the output's. `graded` counts the elements with a grade, `apart` the others: specials, overflows, flushed
    zeros, elements whose value is free. `ulp` is the largest error in units in the last place of the exact value, at
    the element `at`; None if it is infinite. `share` is the largest error as a share of the widest admissible bound,
    `tightest` of the tightest; None where an error meets a bound of zero.
    """

    grade: Grade
    type: str
    graded: int
    apart: int
    ulp: float | None
    at: tuple[int, ...]
    share: float | None
    tightest: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "grade": str(self.grade),
            "type": self.type,
            "graded": self.graded,
            "apart": self.apart,
            "ulp": _short(self.ulp),
            "at": list(self.at),
            "share": _short(self.share),
            "tightest": _short(self.tightest),
        }


def accuracy_from(read: Mapping[str, Any]) -> Accuracy:
    """Read what `Accuracy.to_dict` returned; ValueError, KeyError or TypeError if it is none."""
    numbers = [None if read[name] is None else float(read[name]) for name in ("ulp", "share", "tightest")]
    return Accuracy(
        Grade(read["grade"]),
        str(read["type"]),
        int(read["graded"]),
        int(read["apart"]),
        numbers[0],
        tuple(int(i) for i in read["at"]),
        *numbers[1:],
    )


def attach_accuracy(case: Case, _verdict: Verdict, outputs: Sequence[Array]) -> dict[str, Any] | None:
    """Return an answer's accuracy as an attachment of its result."""
    found = accuracy_of(case.expectation, outputs)
    return None if found is None else found.to_dict()


def accuracy_of(expectation: Expectation, outputs: Sequence[Array]) -> Accuracy | None:
    """Return how accurate an answer to a valid case is; None if nothing in it is graded.

    Outputs of another number, shape or type than expected are not graded. Of several readings of a case, and that the
    standard admits, the one counts that the answer is closest to; of several outputs the worst.
    """
    if [type_of(output) for output in outputs] != list(expectation.types):
        return None
    with np.errstate(all="ignore"):  # NaN and infinities are set apart
        found = [_worst(options, outputs) for options in _readings(expectation, outputs)]
    return min((a for a in found if a is not None), key=_badness, default=None)


def _badness(accuracy: Accuracy) -> tuple[int, float]:
    return accuracy.grade.rank, math.inf if accuracy.ulp is None else accuracy.ulp


def _readings(expectation: Expectation, outputs: Sequence[Array]) -> Iterator[list[Option]]:
    """Yield the options that compute the same, differently; those of declared arithmetic with each."""
    found: dict[Labels, list[Option]] = {}
    for option in expectation.options:
        fits = option.kind == "values" and all(b.shape == y.shape for b, y in zip(option.outputs, outputs, strict=True))
        if fits:
            key = tuple(label for label in option.labels if label[0] not in _ARITHMETICAL)
            found.setdefault(key, []).append(option)
    for options in found.values():
        if any(o.level == "strict" for o in options):
            yield options


def _worst(options: Sequence[Option], outputs: Sequence[Array]) -> Accuracy | None:
    found = []
    for index, output in enumerate(outputs):
        element = element_type(type_of(output))
        if element.format is not None and output.size:
            admissible = _Admissible.of(options, index)
            found.append(_graded(admissible, output.astype(np.float64), element.format, element.name))
    return max((a for a in found if a is not None), key=_badness, default=None)


@dataclass(frozen=True, slots=True)
class _Admissible:
    """One output's bounds: by the grade that they stand for, tightest first; then what is admitted beside them."""

    strict: Mapping[Grade, Sequence[Bounds]]
    declared: Sequence[Bounds]
    flushed: Sequence[Bounds]
    overflowing: Sequence[Bounds]

    @classmethod
    def of(cls, options: Sequence[Option], index: int) -> _Admissible:
        strict: dict[Grade, list[Bounds]] = {}
        declared, flushed, overflowing = [], [], []
        for option in options:
            bounds, grade, flushes = option.outputs[index], "bound", False
            for silence, answer in option.labels:
                if silence == "accumulator":
                    grade = answer
                elif silence == "flush":
                    flushes = answer != "none"
            if option.exceptional:
                overflowing.append(bounds)
            elif option.level == "declared":
                declared.append(bounds)
            elif flushes:
                flushed.append(bounds)
            else:
                strict.setdefault(_BY_LABEL[grade], []).append(bounds)
        return cls(strict, declared, flushed, overflowing)

    @property
    def first(self) -> Bounds:
        return next(iter(self.strict.values()))[0]

    @property
    def tightest(self) -> Sequence[Bounds]:
        return next(iter(self.strict.values()))

    @property
    def widest(self) -> Sequence[Bounds]:
        return next(reversed(self.strict.values()))  # type: ignore[call-overload]  # a dict's are ordered

    def graded(self, output: Array) -> Array:
        """Return which elements have a grade; one that is infinite and must not be is graded, and outside."""
        first = self.first
        graded = np.isfinite(first.value)
        if first.flags is not None:
            graded &= (first.flags & _FREE) == 0
        for bounds in self.overflowing:
            if bounds.flags is not None:
                graded &= np.isfinite(output) | ((bounds.flags & _EXCEPTIONAL) == 0)
        return np.asarray(graded)

    def admits(self, output: Array) -> Array:
        """Return which elements some arithmetic admits without flushing."""
        return _any_within([bounds for group in self.strict.values() for bounds in group], output)


def _graded(admissible: _Admissible, output: Array, form: FloatFormat, type_name: str) -> Accuracy | None:
    graded = admissible.graded(output)
    error = _error(admissible.first, output, form)
    grade = Grade.ROUNDED
    if not (error.rounded | ~graded).all():  # correct rounding is always admitted
        admitted = admissible.admits(output)
        if admissible.flushed and not admitted.all():
            graded &= admitted | ~_any_within(admissible.flushed, output)
        grade = _grade(admissible, output, error, ~graded, admitted)
    count = int(np.count_nonzero(graded))
    if not count:
        return None
    ulps = error.ulps if count == output.size else np.where(graded, error.ulps, 0.0)
    place = int(ulps.argmax())
    largest = float(ulps.reshape(-1)[place])
    share, tightest = _shares(admissible, output, graded) if largest else (0.0, 0.0)
    at = tuple(int(i) for i in np.unravel_index(place, output.shape))
    whole = largest if math.isfinite(largest) else None
    return Accuracy(grade, type_name, count, output.size - count, whole, at, share, tightest)


def _any_within(every: Sequence[Bounds], output: Array) -> Array:
    """Return which elements lie within any of the bounds, or are zeros that the flags admit."""
    found = np.zeros(output.shape, bool)
    for bounds in every:
        found |= (output >= bounds.lower) & (output <= bounds.upper)
        if bounds.flags is not None and (bounds.flags & _ZERO).any():
            found |= ((bounds.flags & _ZERO) > 0) & (output == 0)
    return found


@dataclass(frozen=True, slots=True)
class _Error:
    """The errors in ulp, as far as the exact value is known; which elements are surely its nearest, or next to it."""

    ulps: Array
    rounded: Array
    faithful: Array


def _error(bounds: Bounds, output: Array, form: FloatFormat) -> _Error:
    """Count in units of the exact value's ulp and away from zero, where the type's numbers are the whole ones."""
    value, residue = bounds.value, bounds.residue
    grid = ulp_exponent(value, form)
    sign = np.copysign(1.0, value)
    exact, answer = np.ldexp(np.abs(value), -grid), np.ldexp(output * sign, -grid)
    if form.precision >= _DOUBLE:
        rest = None if residue is None else np.ldexp(residue.rest * sign, -grid)
        return _of_double(exact, answer, rest, grid, form)
    doubt = np.ldexp(exact, -_DOUBLE) if residue is None else np.ldexp(residue.doubt, -grid)
    if not doubt.any():
        near = np.rint(exact) == answer
        return _Error(np.abs(answer - exact), near, (np.floor(exact) <= answer) & (answer <= np.ceil(exact)))
    known = np.maximum(np.abs(answer - exact) - doubt, 0.0)
    low = np.where(doubt > 0, np.nextafter(exact - doubt, -np.inf), exact)
    high = np.where(doubt > 0, np.nextafter(exact + doubt, np.inf), exact)
    rounded = (np.rint(low) == answer) & (np.rint(high) == answer) & (doubt < _DOUBTFUL)
    return _Error(known, rounded, (np.floor(high) <= answer) & (answer <= np.ceil(low)))


def _of_double(exact: Array, answer: Array, rest: Array | None, grid: Array, form: FloatFormat) -> _Error:
    """Grade float64, where `exact` is the exact value rounded to the type, and `rest` what that leaves of it."""
    rounded = answer == exact
    if rest is None:
        return _Error(np.abs(answer - exact), rounded, rounded)
    # below a power of two numbers lie twice as dense
    power = (exact == math.ldexp(1.0, form.precision - 1)) & (grid > form.emin - form.precision + 1)
    other = np.where(rest > 0, exact + 1, exact - np.where(power, 0.5, 1.0))
    return _Error(np.abs((answer - exact) - rest), rounded, rounded | ((rest != 0) & (answer == other)))


def ulp_exponent(values: Array, form: FloatFormat) -> Array:
    """Return the exponent of the unit in the last place of real numbers, as Goldberg's definition extends to them.

    ulp(x) = 2^(max(e, emin)-p+1) where 2^e <= |x| < 2^(e+1); the smallest subnormal number for zero (Muller, On the
    definition of ulp(x), INRIA RR-5504, 2005). `values` are float64; those that are not finite give no meaning.
    """
    lowest = form.emin - form.precision + 1
    grid = np.maximum(np.frexp(values)[1] - form.precision, lowest)
    return np.where(values == 0, lowest, grid)


def _grade(admissible: _Admissible, output: Array, error: _Error, apart: Array, admitted: Array) -> Grade:
    """Return the worst element's grade, of those that are not apart."""

    def all_of(elements: Array) -> bool:
        return bool((elements | apart).all())

    if not all_of(admitted):
        declared = admissible.declared and all_of(admitted | _any_within(admissible.declared, output))
        return Grade.DECLARED if declared else Grade.OUTSIDE
    if all_of(error.rounded):
        return Grade.ROUNDED
    close = error.faithful | error.rounded
    if all_of(close):
        return Grade.FAITHFUL
    for grade, group in admissible.strict.items():
        if all_of(close | _any_within([b for b in group if _spread_holds(b, output)], output)):
            return grade
    return Grade.OUTSIDE  # each element is admitted, but not all by one arithmetic, or not all of them together


def _spread_holds(bounds: Bounds, output: Array) -> bool:
    if bounds.spread is None:
        return True
    return float(np.mean(((output - bounds.value) / bounds.spread.sigma) ** 2)) <= bounds.spread.limit


def _shares(admissible: _Admissible, output: Array, graded: Array) -> tuple[float | None, float | None]:
    """Return the largest error as a share of the widest bound, and of the tightest."""
    errors = np.where(graded, np.abs(output - admissible.first.value), 0.0)
    wide = _share(errors, admissible.widest, np.maximum)
    if len(admissible.strict) == 1 and len(admissible.widest) == 1:
        return wide, wide
    return wide, _share(errors, admissible.tightest, np.minimum)


def _share(errors: Array, group: Sequence[Bounds], choose: Callable[[Array, Array], Array]) -> float | None:
    width = functools.reduce(choose, [np.maximum(b.upper - b.value, b.value - b.lower) for b in group])
    largest = float(np.where(errors == 0, 0.0, errors / width).max())
    return largest if math.isfinite(largest) else None


def _short(number: float | None) -> float | None:
    """Return a number with the digits that matter; what is not zero stays so."""
    return None if number is None else float(f"{number:.{_DIGITS}g}")
