"""The judge: compares a backend's answers to a batch with what the standard admits, and describes the differences."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from types import MappingProxyType
from typing import Any

import numpy as np

from ...cases.batch import EXCEPTIONAL, Batch, Bounds, Check, Expectation, Flag, Labels, Option, any_of_lane
from ...cases.elements import Array, comparable, element_type, lane_contents, type_of
from ...cases.program import Program
from ...cases.results import STATIC, Level, Outcome
from . import inference
from .answers import (
    ALARM,
    RANDOM,
    Answers,
    ComparedOutputs,
    Refusal,
    Stack,
    admitted,
    all_of_lane,
    arranged,
    finite,
    holds,
    is_one_of,
    same_answer,
    shares,
    spread_holds,
    ulp_exponent,
)

WRONG = frozenset({Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE})
"""The outcomes of answers that no option admits."""

SHOWN = 5
"""The number of elements that a text shows; it keeps the text short for every tensor."""

_LONGEST_TEXT = 100  # characters

# Plain numbers: arithmetic on enumeration members costs more than the arithmetic on arrays.
_EXCEPTIONAL, _NEGATIVE_ZERO, _POSITIVE_ZERO = (
    int(bits) for bits in (EXCEPTIONAL, Flag.NEGATIVE_ZERO, Flag.POSITIVE_ZERO)
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One output, lanes first: its bounds, the answers in the bounds' number type, and the wrong elements.

    `places`: if the output is a sample, the indices along each axis of the whole output.
    """

    name: str
    bounds: Bounds
    output: Array
    wrong: Array
    places: Sequence[Array] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of one lane's output."""
        return self.wrong.shape[1:]

    def shown(self, position: int) -> str:
        """Return an element's position as its index in the whole output."""
        indices: Iterable[Any] = np.unravel_index(position, self.shape)
        if self.places:
            indices = [axis[along] for axis, along in zip(self.places, indices, strict=True)]
        return f"[{', '.join(map(str, indices))}]"

    def flat(self, array: Array) -> Array:
        """Return an array of the output's shape, lanes first, as rows of elements."""
        return array.reshape(len(self.wrong), -1)


def mismatch_texts(compared: Sequence[Compared]) -> list[str]:
    """Return for each lane a line for each of the first wrong elements, and a line with the largest errors.

    The text is empty if no element is wrong.
    """
    lines: list[list[str]] = [[] for _ in compared[0].wrong]
    several = len(compared) > 1
    for compared_output in compared:
        of = f" of output {compared_output.name}" if several else ""
        for lane, shown, text in _elements(compared_output):
            if len(lines[lane]) < SHOWN:
                lines[lane].append(f"element {shown}{of}: {text}")
    wrong = sum(np.count_nonzero(compared_output.flat(compared_output.wrong), axis=1) for compared_output in compared)
    size = sum(math.prod(compared_output.shape) for compared_output in compared)
    for told_of, count in zip(lines, np.asarray(wrong).tolist(), strict=True):
        if count:
            told_of[0] += f" ({count} of {size} wrong)"
    for compared_output in compared:
        of = f" of output {compared_output.name}" if several else ""
        for lane, text in _largest_errors(compared_output):
            lines[lane].append(f"largest error{of}: {text}")
    return ["\n".join(told_of) for told_of in lines]


def _elements(compared: Compared) -> Iterator[tuple[int, str, str]]:
    """Yield the first wrong elements of each lane: lane, position, and the text of the actual and expected values."""
    lanes, places = np.nonzero(compared.flat(compared.wrong))
    first = np.searchsorted(lanes, np.arange(len(compared.wrong)))
    listed = np.arange(len(lanes)) - first[lanes] < SHOWN
    lanes, places, bounds = lanes[listed], places[listed], compared.bounds
    columns = [*map(comparable, (bounds.value, bounds.lower, bounds.upper)), compared.output]
    values, lowers, uppers, got = (compared.flat(column)[lanes, places].tolist() for column in columns)
    flags = [0] * len(lanes) if bounds.flags is None else compared.flat(bounds.flags)[lanes, places].tolist()
    shown = {position: compared.shown(position) for position in set(places.tolist())}
    rows = zip(lanes.tolist(), places.tolist(), values, lowers, uppers, flags, got, strict=True)
    for lane, position, value, lower, upper, flag, number in rows:
        yield lane, shown[position], f"got {_text(number)}, want {_wanted(value, lower, upper, flag)}"


def _text(element: object) -> str:
    """Return an element as text; strings, which may be long or contain anything, are cut and quoted."""
    return str(element) if not isinstance(element, str) else repr(element[:_LONGEST_TEXT])


def _wanted(value: Any, lower: Any, upper: Any, flags: int) -> str:
    if isinstance(value, str | complex):
        return f"{_text(value)} exactly"
    if value != value:  # noqa: PLR0124 - NaN
        return "NaN" if lower != lower else f"NaN, or {lower}"  # noqa: PLR0124 - NaN
    text = f"{value} exactly" if lower == upper else f"{value} within [{lower}, {upper}]"
    if flags & (_NEGATIVE_ZERO | _POSITIVE_ZERO):
        text = "-0.0" if flags & _NEGATIVE_ZERO else "+0.0"
    return f"{text}, or an overflow" if flags & _EXCEPTIONAL else text


def _largest_errors(compared: Compared) -> Iterator[tuple[int, str]]:
    """Yield lanes with a text on the largest error of their wrong elements; none if no such error is a number."""
    if compared.output.dtype.kind not in "fiu" or not compared.wrong.any():
        return
    texts = _of_floats(compared) if compared.output.dtype.kind == "f" else _of_integers(compared)
    some: list[bool] = np.asarray(compared.flat(compared.wrong).any(axis=1)).tolist()
    for lane, (text, wrong) in enumerate(zip(texts, some, strict=True)):
        if wrong and text:
            yield lane, text


def _of_integers(compared: Compared) -> Iterator[str | None]:
    got, value = compared.output, comparable(compared.bounds.value)
    error = np.maximum(got, value).astype(np.uint64) - np.minimum(got, value).astype(np.uint64)  # modulo 2^64: exact
    error = compared.flat(np.where(compared.wrong, error, 0))
    places = error.argmax(axis=1)
    for position, largest in zip(places.tolist(), error[np.arange(len(error)), places].tolist(), strict=True):
        yield f"{largest:,} at {compared.shown(position)}"


def _of_floats(compared: Compared) -> Iterator[str | None]:
    """Yield the largest error in ulp and as a share of its bound, which may belong to different elements."""
    bounds = compared.bounds
    error = np.abs(compared.output - bounds.value)
    error = np.where(compared.wrong & np.isfinite(error), error, 0.0)
    ulps = compared.flat(np.ldexp(error, -ulp_exponent(bounds.value, element_type(bounds.type).float_format)))
    width = np.maximum(bounds.upper - bounds.value, bounds.value - bounds.lower)
    shares = compared.flat(
        np.nan_to_num(error / width, nan=0.0, posinf=math.inf)
    )  # 0 / 0, and bounds that admit no number
    error, lanes = compared.flat(error), np.arange(len(compared.wrong))
    at, at_share = ulps.argmax(axis=1), shares.argmax(axis=1)
    at = np.where(ulps[lanes, at_share] == ulps[lanes, at], at_share, at)
    columns = (at, at_share, ulps[lanes, at], error[lanes, at], shares[lanes, at], shares[lanes, at_share])
    some: list[bool] = np.asarray(error.any(axis=1)).tolist()
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for largest, row in zip(some, rows, strict=True):
        yield _float_text(compared, *row) if largest else None


def _float_text(compared: Compared, at: int, at_share: int, *numbers: float) -> str:
    """Return the text of a largest error, from the error in ulp, its share of the bound, and the largest share."""
    ulps, error, share_there, share = numbers
    where, other = compared.shown(at), compared.shown(at_share)
    text = f"{_short(ulps)} ulp ({error:.3g})"
    if not share:
        return f"{text} at {where}"
    if share == math.inf:
        return f"{text} at {where}" + (", where the bound is 0" if at == at_share else f"; at {other} the bound is 0")
    times = f"{_short(share)} times its bound"
    return f"{text}, {times}, at {where}" if share_there == share else f"{text} at {where}; {times} at {other}"


def _short(number: float) -> str:
    if number == math.inf:
        return "over 1e+308"
    return f"{number:,.0f}" if 100 <= number < 1e12 else f"{number:.3g}"


Requirements = Mapping[str, str]
"""Silences for which the user requires one option; only that option passes."""

NONE_REQUIRED: Requirements = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on an answer, with the fields of `Result`."""

    outcome: Outcome
    behaviour: Mapping[str, list[str]] = field(default_factory=dict)
    detail: str | None = None
    bound_ratio: float | None = None
    level: Level | None = None
    reason: str | None = None


def judge(
    batch: Batch,
    answers: Answers,
    required: Requirements = NONE_REQUIRED,
    *,
    variant_ran: bool = True,
    again: Answers | None = None,
    places: Sequence[Sequence[Array]] = (),
) -> list[Verdict]:
    """Return the verdict on each case of a batch, all of which have an answer or a refusal.

    `variant_ran`: whether the valid sibling of invalid cases was answered. `again` are the answers of a fresh program,
    needed if an option compares them. `places`: if the outputs are samples, the indices that each keeps along its axes,
    for texts. Raises ValueError for a case without an answer.
    """
    verdicts: dict[int, Verdict] = {}
    refusals = _Refusals(batch.expectation, required, variant_ran)
    for lane, refusal in answers.refusals.items():
        verdicts[lane] = refusals.verdict(lane, refusal)
    for stack in answers.stacks:
        every_lane = len(stack.lanes) == len(batch)
        expectation = (
            batch.expectation if every_lane else batch.expectation.of_lanes(np.array(stack.lanes), len(stack.lanes))
        )
        same = None
        if again is not None:
            same = np.array([same_answer(answers.answer(lane), again.answer(lane)) for lane in stack.lanes])
        rows = _judged(batch.program, expectation, stack, required, same=same, places=places)
        verdicts.update(zip(stack.lanes, rows, strict=True))
    if len(verdicts) != len(batch):
        raise ValueError(f"{len(batch) - len(verdicts)} cases have no answer")
    return [verdicts[lane] for lane in range(len(batch))]


def asks_again(expectation: Expectation) -> bool:
    """Return whether an option needs the answer of a fresh program."""
    return any(check.name == "same-seed" for option in expectation.options for check in option.checks)


# Refusals


@dataclass
class _Refusals:
    """Judges refusals; lanes in which the same options apply share the verdict on the same refusal."""

    expectation: Expectation
    required: Requirements
    variant_ran: bool
    _known: dict[tuple[bytes, int], tuple[Refusal, Verdict]] = field(default_factory=dict)

    def verdict(self, lane: int, refusal: Refusal) -> Verdict:
        pattern = self.expectation.patterns[lane]
        key = pattern, id(refusal)
        if key not in self._known:  # the refusal is kept alive, so that its id stays unique
            self._known[key] = refusal, self._judged(pattern, refusal)
        return self._known[key][1]

    def _judged(self, pattern: bytes, refusal: Refusal) -> Verdict:
        expectation, required = self.expectation, self.required
        if any(pattern):
            if refusal.unsupported:
                return Verdict(Outcome.UNSUPPORTED, detail=refusal.words, reason=refusal.reason)
            options = compress(expectation.options, pattern)
            labelled = zip(options, expectation.labels(pattern), strict=True)
            admitting = [labels for option, labels in labelled if option.kind in ("rejected", "anything")]
            if not admitting:
                return Verdict(Outcome.ERROR, detail=refusal.words, reason=refusal.reason)
        elif self.variant_ran:
            admitting = [(("invalid", "rejected"),)]
        else:
            detail = f"refused, and so was the valid case that it was made from: {refusal.words}"
            return Verdict(Outcome.UNSUPPORTED, {"invalid": []}, detail, reason=refusal.reason)
        behaviour = behaviour_of(admitting)
        if not any(meets(labels, required) for labels in admitting):
            detail = f"refused ({refusal.words}), {_required_text(required, behaviour)}"
            return Verdict(Outcome.WRONG_VALUE, behaviour, detail, reason=refusal.reason)
        return Verdict(Outcome.PASS, behaviour, refusal.words, level="strict", reason=refusal.reason)


# Answers of one form


def _judged(
    program: Program,
    expectation: Expectation,
    stack: Stack,
    required: Requirements,
    *,
    same: Array | None,
    places: Sequence[Sequence[Array]],
) -> list[Verdict]:
    """Return the verdicts on answers of one form, by the expectation of their lanes; `same`: `again` agrees."""
    names = _names(program, stack)
    if not expectation.options:
        verdicts = [_accepted_invalid(expectation, stack)] * len(stack.lanes)
    elif (misfit := _misfit(expectation, stack, names)) is not None:
        verdicts = [misfit] * len(stack.lanes)
    else:
        with np.errstate(all="ignore"):  # comparing NaN and infinities is intended
            verdicts = list(_Judging(expectation, stack, required, names, same, places).verdicts())
    return [
        verdict if any(pattern) else _accepted_invalid(expectation, stack)
        for verdict, pattern in zip(verdicts, expectation.patterns, strict=True)
    ]


def _accepted_invalid(expectation: Expectation, stack: Stack) -> Verdict:
    if not expectation.types:  # the answer of a checker, which has to refuse what the program shows to be invalid
        detail = "accepted a program that is invalid whatever it is fed"
        return Verdict(Outcome.ACCEPTED_INVALID, {"invalid": ["answered"]}, detail, reason=STATIC)
    detail = f"answered an invalid input with {', '.join(map(_described, stack.answer(0).outputs))}"
    return Verdict(Outcome.ACCEPTED_INVALID, {"invalid": ["answered"]}, detail)


def _misfit(expectation: Expectation, stack: Stack, names: Sequence[str]) -> Verdict | None:
    """Return the verdict on answers whose structure, number or types no option has."""
    values = [option for option in expectation.options if option.kind == "values"]
    if stack.structure or any(option.structure for option in values):
        fitting = [option for option in values if option.structure == stack.structure]
        if values and not fitting and not any(option.kind == "anything" for option in expectation.options):
            wanted = " or ".join(dict.fromkeys(_structure_text(option.structure) for option in values))
            return Verdict(Outcome.WRONG_SHAPE, detail=f"got {_structure_text(stack.structure)}, want {wanted}")
        types = tuple(bounds.type for bounds in fitting[0].outputs) if fitting else stack.types
    else:
        types = expectation.types
        if len(stack.outputs) != len(types):
            return Verdict(Outcome.WRONG_SHAPE, detail=f"{len(stack.outputs)} outputs, want {len(types)}")
    for name, got, want in zip(names, stack.types, types, strict=True):
        if got != want:
            of = f"output {name}: " if len(types) > 1 else ""
            return Verdict(Outcome.WRONG_DTYPE, detail=f"{of}got {got}, want {want}")
    return None


@dataclass(frozen=True)
class _Held:
    """An option compared with the answers: the lanes that it admits, and the elements that it admits of each output.

    `bounds`, `numbers`, `inside` and `taken` are per output: what was compared, what lies within the bounds, and what
    is admitted. They are empty if the option has no values, or none in the answers' shapes. `failing` are the checks
    that do not hold, by lane.
    """

    option: Option
    admits: Array
    bounds: Sequence[Bounds] = ()
    numbers: Sequence[Array] = ()
    inside: Sequence[Array] = ()
    taken: Sequence[Array] = ()
    failing: Mapping[str, Array] = field(default_factory=dict)
    fits: bool = False

    @functools.cached_property
    def wrong(self) -> list[int]:
        """Return the number of elements of each lane that the option does not admit."""
        counts = np.zeros(len(self.admits), np.intp)
        for elements in self.taken:
            counts += np.count_nonzero(~elements.reshape(len(counts), -1), axis=1)
        wrong_counts: list[int] = counts.tolist()
        return wrong_counts

    @functools.cached_property
    def ratios(self) -> list[float | None]:
        """Return the largest error of each lane as a share of its bound, over the elements judged by their own bounds.

        None if there is no such element, or if there is an error where the bound is zero.
        """
        return self.ratios_of(slice(None), len(self.admits), self.inside)

    def ratios_of(self, lanes: slice | Array, count: int, judged: Sequence[Array]) -> list[float | None]:
        """Return the ratios of some lanes, `count` in all, over the elements `judged` of each output."""
        largest: list[float | None] = [None] * count
        for bounds, output, elements in zip(self.bounds, self.numbers, judged, strict=True):
            if output.dtype.kind == "f" and output.size:
                cut = bounds.mapped(lambda array: array[lanes])
                error = np.abs(output[lanes] - cut.value)
                for lane, ratio in enumerate(shares(cut, error, elements[lanes])):
                    if ratio is not None:
                        largest[lane] = max(ratio, largest[lane] or 0.0)
        return [finite(ratio) for ratio in largest]


@dataclass(frozen=True, slots=True)
class _Passing:
    """What lanes that pass in the same way share: the verdict, and the first option that admits the answer."""

    verdict: Verdict
    option: int


@dataclass
class _Judging:
    """Answers of one form, and the expectation of their lanes."""

    expectation: Expectation
    stack: Stack
    required: Requirements
    names: Sequence[str]
    same: Array | None
    places: Sequence[Sequence[Array]] = ()

    def verdicts(self) -> Iterator[Verdict]:
        """Yield the verdict on each lane."""
        held = [self._held(option, self.stack.comparison) for option in self.expectation.options]
        passing = self._passing(np.stack([candidate.admits for candidate in held], axis=1))
        failing = self._failing(held, [row for row, passes in enumerate(passing) if passes is None])
        for row, passes in enumerate(passing):
            if passes is None:
                yield failing[row]
            else:
                yield replace(passes.verdict, bound_ratio=held[passes.option].ratios[row])

    def _held(self, option: Option, comparison: ComparedOutputs) -> _Held:
        nowhere = np.zeros(len(option.applies), bool)
        if option.kind != "values":
            return _Held(option, option.applies if option.kind == "anything" else nowhere)
        if option.structure != self.stack.structure or not _fits(option, self.stack):
            return _Held(option, nowhere)
        bounds, numbers = list(option.outputs), list(comparison.numbers)
        if any(check.name == "order" for check in option.checks):
            bounds, numbers = arranged(option.checks, bounds, numbers)
            comparison = ComparedOutputs(numbers)
        inside = [comparison.within(bound, index) for index, bound in enumerate(bounds)]
        taken = _taken(option, bounds, numbers, inside)
        admits = functools.reduce(np.logical_and, map(all_of_lane, taken), option.applies)
        if option.exceptional:
            shows = [any_of_lane(a & ~w) for a, w in zip(taken, inside, strict=True)]
            admits = admits & functools.reduce(np.logical_or, shows)
        for bound, output in zip(bounds, numbers, strict=True):
            if bound.spread is not None:
                lanes = admits.nonzero()[0]
                admits = admits.copy()
                admits[lanes] = spread_holds(bound, output, lanes.tolist())
        failing: dict[str, Array] = {}
        for check in option.checks:
            if check.name != "same-seed" or self.same is None:
                agrees = holds(check, bounds, numbers, self.stack.outputs)
            else:
                agrees = ~self.same if dict(check.settings).get("differs") else self.same
            failing[check.name] = ~agrees
            admits = admits & agrees
        return _Held(option, admits, bounds, numbers, inside, taken, failing, fits=True)

    def _passing(self, admits: Array) -> list[_Passing | None]:
        """Return how each lane passes; lanes in which the same options apply and admit the answer share the result."""
        known: dict[tuple[bytes, bytes], _Passing | None] = {}
        keys = list(zip(self.expectation.patterns, lane_contents(admits), strict=True))
        for key in keys:
            if key not in known:
                known[key] = self._passes(*key)
        return [known[key] for key in keys]

    def _passes(self, pattern: bytes, admits: bytes) -> _Passing | None:
        admitting = self._admitting(pattern, admits)
        behaviour = self._behaviour(pattern, admitting)
        for wanted in ("strict", "declared"):  # an answer that strict options admit needs no declaration
            for index, labels in admitting:
                level = self.expectation.options[index].level
                if level == wanted and meets(labels, self.required):
                    return _Passing(Verdict(Outcome.PASS, behaviour, level=level), index)
        return None

    def _admitting(self, pattern: bytes, admits: bytes) -> list[tuple[int, Labels]]:
        """Return the options that apply and admit the answer, with their labels."""
        applying = [index for index, applies in enumerate(pattern) if applies]
        labels = zip(applying, self.expectation.labels(pattern), strict=True)
        return [(index, option_labels) for index, option_labels in labels if admits[index]]

    def _behaviour(self, pattern: bytes, admitting: Sequence[tuple[int, Labels]]) -> dict[str, list[str]]:
        """Return what the strict options show.

        A silence that declared arithmetic alone opens shows nothing if a declared option admits the answer, too.
        """
        options = self.expectation.options
        strictly = behaviour_of([labels for index, labels in admitting if options[index].level == "strict"])
        every = behaviour_of([labels for _, labels in admitting])
        if all(every[silence] == answers for silence, answers in strictly.items()):
            return strictly
        applying = zip(compress(options, pattern), self.expectation.labels(pattern), strict=True)
        strict = behaviour_of([labels for option, labels in applying if option.level == "strict"])
        return {
            silence: answers
            for silence, answers in strictly.items()
            if every[silence] == answers or len(strict[silence]) > 1
        }

    def _failing(self, held: Sequence[_Held], rows: Sequence[int]) -> dict[int, Verdict]:
        """Return the verdicts on lanes that fail, grouped by the closest option."""
        verdicts: dict[int, Verdict] = {}
        nearest: dict[int, list[int]] = {}
        for row in rows:
            pattern = self.expectation.patterns[row]
            admitting = self._admitting(pattern, bytes(bool(option.admits[row]) for option in held))
            if admitting:
                verdicts[row] = self._not_as_required(admitting, held, row)
                continue
            applying = [index for index, applies in enumerate(pattern) if applies]
            fitting = [index for index in applying if held[index].fits]
            if fitting:
                nearest.setdefault(min(fitting, key=lambda index: held[index].wrong[row]), []).append(row)
            else:
                options = [held[index].option for index in applying]
                verdicts[row] = Verdict(Outcome.WRONG_SHAPE, detail=_shape_text(options, self.stack))
        for index, alike in nearest.items():
            verdicts.update(zip(alike, self._wrong_values(held[index], np.array(alike)), strict=True))
        return verdicts

    def _not_as_required(self, admitting: Sequence[tuple[int, Labels]], held: Sequence[_Held], row: int) -> Verdict:
        behaviour = self._behaviour(self.expectation.patterns[row], admitting)
        taken = behaviour or behaviour_of([labels for _, labels in admitting])
        first = held[admitting[0][0]]
        ratio = first.ratios[row] if first.fits else None
        return Verdict(Outcome.WRONG_VALUE, behaviour, _required_text(self.required, taken), ratio)

    def _wrong_values(self, held: _Held, rows: Array) -> list[Verdict]:
        judged = [inside | ~taken for inside, taken in zip(held.inside, held.taken, strict=True)]
        ratios = held.ratios_of(rows, len(rows), judged)
        columns = zip(self.names, held.bounds, held.numbers, held.taken, strict=True)
        compared = [
            Compared(
                name,
                bounds.mapped(lambda array: array[rows]),
                output[rows],
                ~taken[rows],
                self.places[index] if self.places else (),
            )
            for index, (name, bounds, output, taken) in enumerate(columns)
        ]
        inferring = next((check for check in held.option.checks if check.name == "infers"), None)
        if inferring is not None:
            return list(_wrong_texts(inferring, compared))
        texts = mismatch_texts(compared) if compared else [""] * len(rows)
        details = (text or _as_a_whole(held, row) for text, row in zip(texts, rows.tolist(), strict=True))
        return [Verdict(Outcome.WRONG_VALUE, {}, detail, ratio) for detail, ratio in zip(details, ratios, strict=True)]


def _wrong_texts(check: Check, compared: Sequence[Compared]) -> Iterator[Verdict]:
    """Yield the verdict on each lane of inferred types and shapes that are wrong."""
    bounds, outputs = [output.bounds for output in compared], [output.output for output in compared]
    for lane in range(len(compared[0].wrong)):
        rows = [output for output in compared if output.wrong[lane]]
        got = [inference.read_text(output.output[lane])[:_LONGEST_TEXT] for output in rows]
        lines = [
            f"{output.name}: inferred {text}, want {output.bounds.lower[lane]}"
            for output, text in zip(rows, got, strict=True)
        ]
        yield Verdict(inference.outcome_of(check, bounds, outputs, lane), detail="\n".join(lines))


def _taken(option: Option, bounds: Sequence[Bounds], numbers: Sequence[Array], inside: Sequence[Array]) -> list[Array]:
    """Return the elements of each output that an option admits."""
    masks = [admitted(*three) for three in zip(bounds, numbers, inside, strict=True)]
    for check in option.checks:
        if check.name == "one-of":
            masks[check.outputs[0]] = masks[check.outputs[0]] & is_one_of(check, numbers)
        elif check.name == "infers":
            masks = [inference.admitted_texts(check, *pair) for pair in zip(bounds, numbers, strict=True)]
    return masks


def _as_a_whole(held: _Held, row: int) -> str:
    """Return why an option does not admit an answer although it admits each element."""
    failing = [name for name, lanes in held.failing.items() if lanes[row]]
    if failing:
        chance = f" (right answers fail with a probability of at most {ALARM:g})" if RANDOM & {*failing} else ""
        return f"each element is admitted, but not all together: {', '.join(failing)}{chance}"
    spreads = [bounds.spread for bounds in held.bounds if bounds.spread is not None]
    return (
        f"errors too large as a whole: mean (error/sigma)² > {spreads[0].limit}" if spreads else "no option admits it"
    )


def _fits(option: Option, stack: Stack) -> bool:
    """Return whether an option has as many outputs as the answer, with the same shapes."""
    return [bounds.shape for bounds in option.outputs] == [output.shape[1:] for output in stack.outputs]


def meets(labels: Labels, required: Requirements) -> bool:
    """Return whether the user's requirements allow an option with these labels."""
    return all(required.get(silence, answer) == answer for silence, answer in labels)


def behaviour_of(admitting: Sequence[Labels]) -> dict[str, list[str]]:
    """Return the options taken of each silence, in the order of the expectation's options."""
    taken: dict[str, list[str]] = {}
    for labels in admitting:
        for silence, answer in labels:
            answers = taken.setdefault(silence, [])
            if answer not in answers:
                answers.append(answer)
    return taken


# Words


def _names(program: Program, stack: Stack) -> list[str]:
    """Return a name for each tensor of an answer: its output's name, numbered if the output has several tensors."""
    outputs = [output.name for output in program.answers]
    if not stack.structure and len(outputs) == len(stack.outputs):
        return outputs
    return [str(number) for number in range(1, len(stack.outputs) + 1)]


def _required_text(required: Requirements, behaviour: Mapping[str, Sequence[str]]) -> str:
    wanted = [f"{s}={a}" for s, a in required.items() if s in behaviour and a not in behaviour[s]]
    taken = [f"{s}={'|'.join(a)}" for s, a in behaviour.items() if s in required and required[s] not in a]
    if not wanted:  # each requirement alone would be met
        together = ", ".join(f"{s}={a}" for s, a in required.items() if s in behaviour)
        return f"required: {together}; the answer meets each of these alone, but not all at once"
    return f"required: {', '.join(wanted)}; the answer is admitted as {', '.join(taken)}"


def _described(output: Array) -> str:
    return f"{type_of(output)} {'x'.join(map(str, output.shape)) or 'scalar'}"


def _structure_text(structure: Sequence[object]) -> str:
    return ", ".join(map(str, structure)) or "tensors"


def _shape_text(options: Sequence[Option], stack: Stack) -> str:
    shapes = {tuple(b.shape for b in option.outputs): None for option in options if option.kind == "values"}
    wanted = " or ".join(", ".join(str(list(s)) for s in shape) for shape in shapes) or "a refusal"
    return f"got shape {', '.join(str(list(o.shape)) for o in stack.answer(0).outputs)}, want {wanted}"
