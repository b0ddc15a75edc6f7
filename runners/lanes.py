"""The judge for answers side by side: what `judge_answer` says of each, found for all lanes at once."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ..cases.elements import Array
from ..cases.expectation import Bounds, Option
from ..cases.lanes import LanedExpectation, LanedOption, of_lanes, one_lane, rows_of_bytes
from ..cases.results import Outcome
from .judge import (
    Requirements,
    Verdict,
    admitted,
    behaviour_of,
    comparable,
    meets,
    spread_holds,
    within,
)

_NONE_REQUIRED: Requirements = MappingProxyType({})


class Answers:
    """The answers of all lanes, each output with a leading lane axis; what is compared of them is kept."""

    def __init__(self, outputs: Sequence[Array]) -> None:
        self.outputs = tuple(outputs)
        with np.errstate(all="ignore"):  # signalling NaN
            self.numbers = tuple(comparable(output) for output in outputs)
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


@dataclass(frozen=True)
class _Held:
    """An option held against the answers: the lanes that it admits, and of each output which elements.

    `taken` is None where it has no values, or none in the answers' shapes.
    """

    one: LanedOption
    admits: Array
    taken: Sequence[Array] | None = None

    @functools.cached_property
    def applying(self) -> list[bool]:
        """Whether it applies in each lane."""
        found: list[bool] = self.one.applies.tolist()
        return found

    @functools.cached_property
    def admitting(self) -> list[bool]:
        """Whether it applies and admits the answer in each lane."""
        found: list[bool] = (self.one.applies & self.admits).tolist()
        return found

    @functools.cached_property
    def wrong(self) -> list[int]:
        """How many elements of each lane it does not admit."""
        counts = np.zeros(len(self.admits), np.intp)
        for elements in self.taken or ():
            counts += np.count_nonzero(~elements.reshape(len(counts), -1), axis=1)
        found: list[int] = counts.tolist()
        return found


@dataclass(frozen=True)
class LaneVerdicts:
    """The verdicts on all lanes: how each passes, None for one that does not, and apart its `bound_ratio`."""

    answers: Answers
    passing: Sequence[Verdict | None]
    ratios: Sequence[float | None]
    _held: Sequence[_Held] = ()

    def failing(self, lane: int) -> Verdict | None:
        """Return the verdict on a lane that fails; None where `judge_answer` has to be asked, with all its options."""
        return self._failing.get(lane)

    @functools.cached_property
    def _failing(self) -> dict[int, Verdict]:
        """The verdicts on lanes that fail, those together to which the same option comes nearest."""
        nearest: dict[int, list[int]] = {}
        for lane, passes in enumerate(self.passing):
            if passes is None and (place := self._nearest(lane)) is not None:
                nearest.setdefault(place, []).append(lane)
        return {
            lane: verdict
            for place, lanes in nearest.items()
            for lane, verdict in zip(lanes, self._wrong_values(self._held[place], np.array(lanes)), strict=True)
        }

    def _nearest(self, lane: int) -> int | None:
        """Return the place of the option that admits most elements; None where none is wrong by single elements."""
        if any(held.admitting[lane] for held in self._held):
            return None
        fitting = [place for place, held in enumerate(self._held) if held.applying[lane] and held.taken]
        found = min(fitting, key=lambda place: self._held[place].wrong[lane], default=None)
        return None if found is None or not self._held[found].wrong[lane] else found

    def _wrong_values(self, held: _Held, lanes: Array) -> list[Verdict]:
        from .mismatch import Compared, mismatch_texts  # noqa: PLC0415 - only what fails pays for it

        compared, inside = [], []
        with np.errstate(all="ignore"):
            for index, (bounds, taken) in enumerate(zip(held.one.option.outputs, held.taken or (), strict=True)):
                output, wrong = self.answers.numbers[index][lanes], ~taken[lanes]
                compared.append(Compared(of_lanes(bounds, lanes), output, wrong))
                inside.append(self.answers.within(bounds, index)[lanes])
            largest: list[float | None] = [None] * len(lanes)
            for one, elements in zip(compared, inside, strict=True):
                if one.output.dtype.kind == "f" and one.output.size:
                    error = np.abs(one.output - one.bounds.value)
                    _raise_to(largest, _shares(one.bounds, error, elements | one.wrong))
            texts = mismatch_texts(compared)
        told = zip(texts, _finite(largest), strict=True)
        return [Verdict(Outcome.WRONG_VALUE, detail=text, bound_ratio=ratio) for text, ratio in told]

    def verdict(self, lane: int) -> Verdict:
        """Return the verdict on a lane that passes; ValueError for another."""
        found = self.passing[lane]
        if found is None:
            raise ValueError(f"lane {lane} does not pass: judge_answer tells why")
        return replace(found, bound_ratio=self.ratios[lane])


@dataclass(frozen=True, slots=True)
class _Taken:
    """What lanes that pass alike have in common: the verdict, and the first option that admits the answer."""

    verdict: Verdict
    option: int


def judge_lanes(
    expectation: LanedExpectation, outputs: Sequence[Array], required: Requirements = _NONE_REQUIRED
) -> LaneVerdicts:
    """Return the verdicts on the answers to valid cases; `outputs` in the program's order, lanes first.

    The outputs are as many as the expectation has, and of its types.
    """
    answers = Answers(outputs)
    with np.errstate(all="ignore"):  # NaN and infinities are compared on purpose
        held = [_held(one, answers) for one in expectation.options]
        admits = np.stack([one.admits for one in held], axis=1)
        taken = list(_passing(expectation, admits, required))
        ratios = _chosen_ratios(expectation, taken, answers)
    return LaneVerdicts(answers, [None if one is None else one.verdict for one in taken], ratios, held)


def every(elements: Array) -> Array:
    """Return in which lanes all elements are true."""
    return np.asarray(elements.reshape(len(elements), -1).all(axis=1))


def some(elements: Array) -> Array:
    """Return in which lanes some element is true."""
    return np.asarray(elements.reshape(len(elements), -1).any(axis=1))


def fits(option: Option, outputs: Sequence[Array]) -> bool:
    """Return whether an option has values, in the outputs' shapes."""
    return option.kind == "values" and all(b.shape == y.shape for b, y in zip(option.outputs, outputs, strict=True))


def _held(one: LanedOption, answers: Answers) -> _Held:
    """Hold an option against the answers."""
    option, lanes = one.option, len(one.applies)
    if option.kind != "values":
        return _Held(one, one.applies if option.kind == "anything" else np.zeros(lanes, bool))
    if not fits(option, answers.outputs):
        return _Held(one, np.zeros(lanes, bool))
    pairs = list(zip(option.outputs, answers.numbers, strict=True))
    inside = [answers.within(bounds, index) for index, bounds in enumerate(option.outputs)]
    taken = [admitted(*pair, elements) for pair, elements in zip(pairs, inside, strict=True)]
    admits = functools.reduce(np.logical_and, [every(elements) for elements in taken], one.applies)
    if option.exceptional:
        shows = [some(a & ~w) for a, w in zip(taken, inside, strict=True)]
        admits = admits & functools.reduce(np.logical_or, shows)
    for bounds, output in pairs:
        if bounds.spread is not None:
            for lane in admits.nonzero()[0].tolist():
                admits[lane] = spread_holds(one_lane(bounds, lane), output[lane, ...])
    return _Held(one, admits, taken)


def _passing(expectation: LanedExpectation, admits: Array, required: Requirements) -> Iterator[_Taken | None]:
    """Yield how each lane passes; lanes in which the same options apply and admit the answer pass alike."""
    known: dict[bytes, _Taken | None] = {}
    options = len(expectation.options)
    for key in rows_of_bytes(np.concatenate([expectation.patterns, admits], axis=1)):
        if key not in known:
            known[key] = _taken(expectation, key[:options], key[options:], required)
        yield known[key]


def _taken(expectation: LanedExpectation, pattern: bytes, admits: bytes, required: Requirements) -> _Taken | None:
    applying = [i for i, applies in enumerate(pattern) if applies]
    told = list(zip(applying, expectation.labels(pattern), strict=True))
    admitting = [(i, expectation.options[i].option.level, labels) for i, labels in told if admits[i]]
    behaviour = behaviour_of([labels for _, level, labels in admitting if level == "strict"])
    for wanted in ("strict", "declared"):  # what strict options admit needs no declaration
        for index, level, labels in admitting:
            if level == wanted and meets(labels, required):
                return _Taken(Verdict(Outcome.PASS, behaviour, level=level), index)
    return None


def _chosen_ratios(
    expectation: LanedExpectation, passing: Sequence[_Taken | None], answers: Answers
) -> list[float | None]:
    """Return each lane's largest error as a share of its bound, by the option that it passes by."""
    known: dict[int, list[float | None]] = {}
    found: list[float | None] = [None] * len(passing)
    for lane, taken in enumerate(passing):
        if taken is not None:
            if taken.option not in known:
                known[taken.option] = _ratios(expectation.options[taken.option], answers)
            found[lane] = known[taken.option][lane]
    return found


def _ratios(one: LanedOption, answers: Answers) -> list[float | None]:
    """Return what the judge says of each lane, all of whose elements the option admits."""
    largest: list[float | None] = [None] * len(one.applies)
    for index, bounds in enumerate(one.option.outputs):
        output = answers.numbers[index]
        if output.dtype.kind == "f" and output.size:
            _raise_to(largest, _shares(bounds, answers.errors(bounds, index), answers.within(bounds, index)))
    return _finite(largest)


def _shares(bounds: Bounds, error: Array, judged: Array) -> list[float | None]:
    """Return each lane's largest error as a share of its bound, None where no element is judged by one."""
    exact = ~some(error)
    if exact.all():
        return [0.0] * len(exact)
    judged = judged & np.isfinite(error)
    bound = np.maximum(bounds.upper - bounds.value, bounds.value - bounds.lower)
    ratios = np.where(judged & (error > 0), error / bound, 0.0).reshape(len(exact), -1).max(axis=1)
    known = exact | some(judged)
    return [ratio if there else None for ratio, there in zip(ratios.tolist(), known.tolist(), strict=True)]


def _raise_to(largest: list[float | None], ratios: Sequence[float | None]) -> None:
    for lane, ratio in enumerate(ratios):
        if ratio is not None:
            largest[lane] = max(ratio, largest[lane] or 0.0)


def _finite(ratios: Sequence[float | None]) -> list[float | None]:
    return [ratio if ratio is not None and math.isfinite(ratio) else None for ratio in ratios]
