"""The accuracy of an answer, whatever its verdict: its grade, its largest error in ulp, and its share of the bounds."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from ...cases.batch import EXCEPTIONAL, Batch, Bounds, Expectation, Flag, Labels, Option
from ...cases.elements import Array, FloatFormat, element_type, type_of
from .answers import Answers, ComparedOutputs, all_of_lane, spread_holds, ulp_exponent
from .judge import Verdict

_FREE, _ZERO, _EXCEPTIONAL = np.uint8(Flag.FREE), np.uint8(Flag.ZERO), np.uint8(EXCEPTIONAL)
_ARITHMETICAL = frozenset({"accumulator", "flush", "overflow", "summation", "zero-sign"})
"""Silences about how a result is computed; the other silences are about what is computed."""
_DOUBLE = 53  # bits: outputs whose exact values do not fit the carrier
_DOUBTFUL = 0.25  # ulp: the exact value is not known well enough to know how it rounds
_DIGITS = 7  # significant digits in JSON: those of float32


class Grade(enum.StrEnum):
    """How close an answer is, best first; a tensor has the grade of its worst element."""

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
        """Return the position in the order, 0 for the best."""
        return _GRADES.index(self)


_GRADES = tuple(Grade)
_BY_LABEL = {str(grade): grade for grade in (Grade.WIDE, Grade.STEPWISE, Grade.NARROW, Grade.BOUND)}


class Accuracy(msgspec.Struct, frozen=True):
    """The accuracy of the floating-point elements of an answer.

    `type` is the output's. `graded` counts the elements with a grade, `apart` the others: specials, overflows, flushed
    zeros, elements whose value is free. `ulp` is the largest error in units in the last place of the exact value, at
    the element `at`; None if it is infinite. `share` is the largest error as a share of the widest admissible bound,
    `tightest` of the tightest; None if there is an error where the bound is zero.
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
        """Return the accuracy for JSON, numbers with their significant digits."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields | {name: _short(fields[name]) for name in ("ulp", "share", "tightest")}


def accuracy_from(read: Mapping[str, Any]) -> Accuracy:
    """Return the accuracy that `Accuracy.to_dict` wrote; ValueError if it is invalid."""
    return msgspec.convert(read, Accuracy)


def attach_accuracy(
    batch: Batch,
    answers: Answers,
    verdicts: Sequence[Verdict],  # noqa: ARG001 - the protocol of Attach
) -> list[dict[str, Any] | None]:
    """Return the accuracy of each case's answer, to attach it to its result."""
    return [None if accuracy is None else accuracy.to_dict() for accuracy in accuracies(batch.expectation, answers)]


def accuracies(expectation: Expectation, answers: Answers) -> list[Accuracy | None]:
    """Return the accuracy of the answers to valid cases, lane by lane; None for an answer without graded elements.

    Outputs of another number, shape or type than expected are not graded. If a case has several readings that the
    standard admits, the one closest to the answer counts; of several outputs, the worst.
    """
    by_lane: list[Accuracy | None] = [None] * expectation.lanes
    for stack in answers.stacks:
        if stack.types != expectation.types or stack.structure:
            continue
        every_lane = len(stack.lanes) == expectation.lanes
        here = expectation if every_lane else expectation.of_lanes(np.array(stack.lanes), len(stack.lanes))
        for rows, alike in here.by_pattern():
            all_alike = len(rows) == len(stack.lanes)
            compared = stack.comparison if all_alike else ComparedOutputs([output[rows] for output in stack.outputs])
            for row, accuracy in zip(rows.tolist(), _accuracies(alike.options, compared), strict=True):
                by_lane[stack.lanes[row]] = accuracy
    return by_lane


def _accuracies(options: Sequence[Option], answers: ComparedOutputs) -> list[Accuracy | None]:
    """Return the accuracy of each lane by the options that apply in all of them."""
    with np.errstate(all="ignore"):  # NaN and infinities are not graded
        by_reading = [_worst(reading, answers) for reading in _readings(options, answers.outputs)]
    return _chosen(min, by_reading, len(answers.outputs[0]) if answers.outputs else 1)


def _chosen(choose: Any, several: Sequence[list[Accuracy | None]], lanes: int) -> list[Accuracy | None]:
    """Return for each lane the best of several accuracies (`choose`: min), or the worst (max); None without any."""
    if len(several) == 1:
        return several[0]
    return [
        choose(filter(None, (accuracies[lane] for accuracies in several)), key=_badness, default=None)
        for lane in range(lanes)
    ]


def _badness(accuracy: Accuracy) -> tuple[int, float]:
    return accuracy.grade.rank, math.inf if accuracy.ulp is None else accuracy.ulp


def _readings(options: Sequence[Option], outputs: Sequence[Array]) -> Iterator[list[Option]]:
    """Yield groups of options that compute the same thing in different ways, each with those of declared arithmetic."""
    by_labels: dict[Labels, list[Option]] = {}
    for option in options:
        if option.kind == "values" and [b.shape for b in option.outputs] == [o.shape[1:] for o in outputs]:
            key = tuple(label for label in option.labels if label[0] not in _ARITHMETICAL)
            by_labels.setdefault(key, []).append(option)
    for same in by_labels.values():
        if any(o.level == "strict" for o in same):
            yield same


def _worst(options: Sequence[Option], answers: ComparedOutputs) -> list[Accuracy | None]:
    by_output = []
    for index, output in enumerate(answers.outputs):
        element = element_type(type_of(output))
        if element.kind == "float" and output.size:
            by_output.append(_graded(_Admissible.of(options, index, answers), element.float_format, element.name))
    return _chosen(max, by_output, len(answers.outputs[0]))


@dataclass(frozen=True, slots=True)
class _Admissible:
    """One output's bounds by the grade that they stand for, tightest first, and what is admitted outside them."""

    answers: ComparedOutputs
    index: int
    strict: Mapping[Grade, Sequence[Bounds]]
    declared: Sequence[Bounds]
    flushed: Sequence[Bounds]
    overflowing: Sequence[Bounds]

    @classmethod
    def of(cls, options: Sequence[Option], index: int, answers: ComparedOutputs) -> _Admissible:
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
        return cls(answers, index, strict, declared, flushed, overflowing)

    @property
    def output(self) -> Array:
        return self.answers.numbers[self.index]

    @property
    def first(self) -> Bounds:
        return next(iter(self.strict.values()))[0]

    @property
    def tightest(self) -> Sequence[Bounds]:
        return next(iter(self.strict.values()))

    @property
    def widest(self) -> Sequence[Bounds]:
        return next(reversed(self.strict.values()))  # type: ignore[call-overload]  # a dict's are ordered

    def graded(self) -> Array:
        """Return the elements that have a grade; an infinite element that should be finite is graded as outside."""
        first = self.first
        graded = np.isfinite(first.value)
        if first.flags is not None:
            graded &= (first.flags & _FREE) == 0
            graded &= ((first.flags & _ZERO) == 0) | (self.output != 0) | (first.value == 0)  # dropped, or flushed
        for bounds in self.overflowing:
            if bounds.flags is not None:
                graded &= np.isfinite(self.output) | ((bounds.flags & _EXCEPTIONAL) == 0)
        return np.asarray(graded)

    def admits(self) -> Array:
        """Return the elements that some arithmetic admits without flushing."""
        return self.within([bounds for group in self.strict.values() for bounds in group])

    def within(self, group: Sequence[Bounds]) -> Array:
        """Return the elements that lie within any of the bounds, or are zeros that the flags admit."""
        inside = np.zeros(self.output.shape, bool)
        for bounds in group:
            inside |= self.answers.within(bounds, self.index)
            if bounds.flags is not None and (bounds.flags & _ZERO).any():
                inside |= ((bounds.flags & _ZERO) > 0) & (self.output == 0)
        return inside

    def within_as_a_whole(self, group: Sequence[Bounds]) -> Array:
        """Return the same, but only for bounds whose spread holds."""
        inside = np.zeros(self.output.shape, bool)
        for bounds in group:
            elements = self.within([bounds])
            if bounds.spread is not None:
                holds = spread_holds(bounds, self.output, range(len(elements)))
                elements = elements & np.reshape(holds, (-1, *[1] * (elements.ndim - 1)))
            inside |= elements
        return inside


def _graded(admissible: _Admissible, form: FloatFormat, type_name: str) -> list[Accuracy | None]:
    output, graded = admissible.output, admissible.graded()
    error = _error(admissible.first, output, form)
    lanes, ranks = len(output), np.zeros(len(output), np.intp)
    rounded = all_of_lane(error.rounded | ~graded)  # correct rounding is always admitted
    if not rounded.all():
        admitted = admissible.admits()
        if admissible.flushed and not admitted.all():
            kept = rounded.reshape(-1, *[1] * (output.ndim - 1)) | admitted
            graded &= kept | ~admissible.within(admissible.flushed)
        ranks = np.where(rounded, 0, _ranks(admissible, error, ~graded, admitted))
    counts, size = np.count_nonzero(graded.reshape(lanes, -1), axis=1).tolist(), output[0, ...].size
    ulps = np.where(graded, error.ulps, 0.0).reshape(lanes, -1)
    places = ulps.argmax(axis=1)
    largest = ulps[np.arange(lanes), places].tolist()
    wide, tight = _shares(admissible, graded) if any(largest) else ([0.0] * lanes, [0.0] * lanes)
    at = (
        zip(*(i.tolist() for i in np.unravel_index(places, output.shape[1:])), strict=True) if output.ndim > 1 else None
    )
    rows = zip(ranks.tolist(), counts, largest, wide, tight, at or [()] * lanes, strict=True)
    return [
        Accuracy(_GRADES[r], type_name, n, size - n, u if math.isfinite(u) else None, i, *((w, t) if u else (0.0, 0.0)))
        if n
        else None
        for r, n, u, w, t, i in rows
    ]


@dataclass(frozen=True, slots=True)
class _Error:
    """The errors in ulp, as far as the exact value is known, and which elements are its nearest or next number."""

    ulps: Array
    rounded: Array
    faithful: Array


def _error(bounds: Bounds, output: Array, form: FloatFormat) -> _Error:
    """Measure errors in ulp of the exact value, away from zero, on a scale where the type's numbers are whole."""
    value, residue = bounds.value, bounds.residue
    grid = ulp_exponent(value, form)
    sign = np.copysign(1.0, value)
    if form.precision >= _DOUBLE and residue is not None:  # the exact value may be below the power of two it rounds to
        power = np.abs(np.frexp(value)[0]) == 0.5
        grid = grid - (power & (residue.rest * sign < 0) & (grid > form.emin - form.precision + 1))
    exact, answer = np.ldexp(np.abs(value), -grid), np.ldexp(output * sign, -grid)
    if form.precision >= _DOUBLE:
        rest = None if residue is None else np.ldexp(residue.rest * sign, -grid)
        return _of_double(exact, answer, rest)
    doubt = np.ldexp(exact, -_DOUBLE) if residue is None else np.ldexp(residue.doubt, -grid)
    if not doubt.any():
        near = np.rint(exact) == answer
        return _Error(np.abs(answer - exact), near, (np.floor(exact) <= answer) & (answer <= np.ceil(exact)))
    known = np.maximum(np.abs(answer - exact) - doubt, 0.0)
    low = np.where(doubt > 0, np.nextafter(exact - doubt, -np.inf), exact)
    high = np.where(doubt > 0, np.nextafter(exact + doubt, np.inf), exact)
    rounded = (np.rint(low) == answer) & (np.rint(high) == answer) & (doubt < _DOUBTFUL)
    return _Error(known, rounded, (np.floor(high) <= answer) & (answer <= np.ceil(low)))


def _of_double(exact: Array, answer: Array, rest: Array | None) -> _Error:
    """Grade float64; `exact` is the exact value rounded to the type, and `rest` is the remainder."""
    rounded = answer == exact
    if rest is None:
        return _Error(np.abs(answer - exact), rounded, rounded)
    other = np.where(rest > 0, exact + 1, exact - 1)
    return _Error(np.abs((answer - exact) - rest), rounded, rounded | ((rest != 0) & (answer == other)))


def _ranks(admissible: _Admissible, error: _Error, apart: Array, admitted: Array) -> Array:
    """Return, for each lane, the rank of the worst grade among the graded elements."""
    ranks = np.full(len(apart), Grade.OUTSIDE.rank)
    left = all_of_lane(admitted | apart)
    if admissible.declared and not left.all():
        ranks[~left & all_of_lane(admitted | admissible.within(admissible.declared) | apart)] = Grade.DECLARED.rank
    for grade, elements in _closer(admissible, error):
        if not left.any():
            break
        graded = left & all_of_lane(elements | apart)
        ranks[graded] = grade.rank
        left &= ~graded
    return ranks  # the rest: each element is admitted, but not all by one arithmetic, or not all of them together


def _closer(admissible: _Admissible, error: _Error) -> Iterator[tuple[Grade, Array]]:
    """Yield the grades from the best one on, with the elements that earn each."""
    yield Grade.ROUNDED, error.rounded
    close = error.faithful | error.rounded
    yield Grade.FAITHFUL, close
    for grade, group in admissible.strict.items():
        yield grade, close | admissible.within_as_a_whole(group)


def _shares(admissible: _Admissible, graded: Array) -> tuple[list[float | None], list[float | None]]:
    """Return the largest error of each lane as a share of the widest bound, and of the tightest."""
    errors = np.where(graded, admissible.answers.errors(admissible.first, admissible.index), 0.0)
    wide = _share(errors, admissible.widest, np.maximum)
    if len(admissible.strict) == 1 and len(admissible.widest) == 1:
        return wide, wide
    return wide, _share(errors, admissible.tightest, np.minimum)


def _share(errors: Array, group: Sequence[Bounds], choose: Callable[[Array, Array], Array]) -> list[float | None]:
    distinct = {(id(b.lower), id(b.upper)): b for b in group}.values()
    width = functools.reduce(choose, [np.maximum(b.upper - b.value, b.value - b.lower) for b in distinct])
    largest = np.where(errors == 0, 0.0, errors / width).reshape(len(errors), -1).max(axis=1).tolist()
    return [share if math.isfinite(share) else None for share in largest]


def _short(number: float | None) -> float | None:
    """Return a number with its significant digits; a nonzero number stays nonzero."""
    return None if number is None else float(f"{number:.{_DIGITS}g}")
