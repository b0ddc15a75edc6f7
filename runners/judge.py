"""The judge: what a backend answered, held against what the standard admits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from ..cases.elements import Array, type_of
from ..cases.expectation import Bounds, Expectation, Flag, Labels, Option
from ..cases.lanes import of_lanes
from ..cases.results import Level, Outcome
from ..cases.runner import Reason

Requirements = Mapping[str, str]
"""Silences that the user has answered: only that option passes."""

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

_NONE_REQUIRED: Requirements = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer is worth, in the terms of `Result`."""

    outcome: Outcome
    behaviour: Mapping[str, list[str]] = field(default_factory=dict)
    detail: str | None = None
    bound_ratio: float | None = None
    level: Level | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A backend that gave no answer: in its own words, whether these say "not implemented", and why."""

    words: str
    unsupported: bool
    reason: Reason


@dataclass(frozen=True, slots=True)
class _Match:
    """An option held against the answer: which elements lie within its bounds, and which it does not admit."""

    option: Option
    shape_fits: bool
    wrong: tuple[Array, ...] = ()
    within: tuple[Array, ...] = ()
    admits: bool = False

    @property
    def wrong_count(self) -> float:
        return sum(int(w.sum()) for w in self.wrong) if self.shape_fits else math.inf


def judge_answer(
    expectation: Expectation, outputs: Sequence[Array], required: Requirements = _NONE_REQUIRED
) -> Verdict:
    """Return the verdict on an answer; `outputs` in the program's order."""
    if expectation.invalid:
        detail = f"answered an invalid input with {', '.join(_describe(o) for o in outputs)}"
        return Verdict(Outcome.ACCEPTED_INVALID, {"invalid": ["answered"]}, detail)
    if len(outputs) != len(expectation.types):
        return Verdict(Outcome.WRONG_SHAPE, detail=f"{len(outputs)} outputs, want {len(expectation.types)}")
    for got, want in zip(outputs, expectation.types, strict=True):
        if type_of(got) != want:
            return Verdict(Outcome.WRONG_DTYPE, detail=f"got {type_of(got)}, want {want}")
    with np.errstate(all="ignore"):  # NaN and infinities are compared on purpose, signalling ones are cast
        numbers = [comparable(output) for output in outputs]
        matches = [_match(option, numbers) for option in expectation.options]
        return _verdict(matches, numbers, required)


def judge_refusal(
    expectation: Expectation, refusal: Refusal, *, mended_ran: bool, required: Requirements = _NONE_REQUIRED
) -> Verdict:
    """Return the verdict on a refusal; `mended_ran` says whether the valid sibling of an invalid case was answered."""
    if expectation.invalid:
        return _refusal_of_invalid(refusal, mended_ran, required)
    if refusal.unsupported:
        return Verdict(Outcome.UNSUPPORTED, detail=refusal.words, reason=refusal.reason)
    admitting = [o.labels for o in expectation.options if o.kind in ("rejected", "anything")]
    if not admitting:
        return Verdict(Outcome.ERROR, detail=refusal.words, reason=refusal.reason)
    behaviour = behaviour_of(admitting)
    if not [labels for labels in admitting if meets(labels, required)]:
        detail = f"refused ({refusal.words}), {_required_text(required, behaviour)}"
        return Verdict(Outcome.WRONG_VALUE, behaviour, detail, reason=refusal.reason)
    return Verdict(Outcome.PASS, behaviour, refusal.words, level="strict", reason=refusal.reason)


def _refusal_of_invalid(refusal: Refusal, mended_ran: bool, required: Requirements) -> Verdict:
    if not mended_ran:
        detail = f"refused, and so was the valid case it is a damaged copy of: {refusal.words}"
        return Verdict(Outcome.UNSUPPORTED, {"invalid": []}, detail, reason=refusal.reason)
    behaviour = {"invalid": ["rejected"]}
    if required.get("invalid", "rejected") != "rejected":
        detail = f"refused ({refusal.words}), {_required_text(required, behaviour)}"
        return Verdict(Outcome.WRONG_VALUE, behaviour, detail, reason=refusal.reason)
    return Verdict(Outcome.PASS, behaviour, refusal.words, level="strict", reason=refusal.reason)


def _verdict(matches: Sequence[_Match], outputs: Sequence[Array], required: Requirements) -> Verdict:
    admitting = [m for m in matches if m.admits]
    strict = [m for m in admitting if m.option.level == "strict"]
    behaviour = behaviour_of([m.option.labels for m in strict])
    # Strict options first: what they admit needs no declaration.
    for match in (*strict, *(m for m in admitting if m.option.level == "declared")):
        if meets(match.option.labels, required):
            return Verdict(Outcome.PASS, behaviour, bound_ratio=_ratio(match, outputs), level=match.option.level)
    if admitting:
        taken = behaviour or behaviour_of([m.option.labels for m in admitting])
        return Verdict(Outcome.WRONG_VALUE, behaviour, _required_text(required, taken), _ratio(admitting[0], outputs))
    nearest = min(matches, key=lambda m: m.wrong_count)
    if not nearest.shape_fits:
        return Verdict(Outcome.WRONG_SHAPE, detail=_shape_text(matches, outputs))
    return _wrong_value(nearest, outputs)


def _wrong_value(nearest: _Match, outputs: Sequence[Array]) -> Verdict:
    with np.errstate(all="ignore"):
        return Verdict(Outcome.WRONG_VALUE, detail=_value_text(nearest, outputs), bound_ratio=_ratio(nearest, outputs))


def meets(labels: Labels, required: Requirements) -> bool:
    """Return whether an option with these labels is none that the user has excluded."""
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


def comparable(output: Array) -> Array:
    """Return floats of any width as float64, which holds them exactly, and integers as they are."""
    known = output.dtype.kind in "iub"
    return output if known else output.astype(np.float64)


def _match(option: Option, outputs: Sequence[Array]) -> _Match:
    if option.kind != "values":
        return _Match(option, option.kind == "anything", admits=option.kind == "anything")
    pairs = list(zip(option.outputs, outputs, strict=True))
    if any(output.shape != bounds.shape for bounds, output in pairs):
        return _Match(option, shape_fits=False)
    inside = [within(*pair) for pair in pairs]
    taken = [admitted(*pair, elements) for pair, elements in zip(pairs, inside, strict=True)]
    admits = all(bool(a.all()) for a in taken)
    if admits and option.exceptional:
        admits = any(bool((a & ~w).any()) for a, w in zip(taken, inside, strict=True))
    if admits:
        admits = all(spread_holds(*pair) for pair in pairs)
    return _Match(option, True, tuple(~a for a in taken), tuple(inside), admits)


def within(bounds: Bounds, output: Array) -> Array:
    """Return which elements lie between the bounds."""
    return np.asarray((output >= bounds.lower) & (output <= bounds.upper))


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


def spread_holds(bounds: Bounds, output: Array) -> bool:
    """Return whether the errors of one tensor, as a whole, are no larger than its spread says."""
    if bounds.spread is None:
        return True
    scaled = (output - bounds.value) / bounds.spread.sigma
    return float(np.mean(scaled**2)) <= bounds.spread.limit


def _ratio(match: _Match, outputs: Sequence[Array]) -> float | None:
    """Return the largest error as a share of its bound, over the finite elements that are judged by their bounds.

    None where there is no such element, and where an error meets a bound of zero.
    """
    largest = None
    for bounds, output, inside, wrong in zip(match.option.outputs, outputs, match.within, match.wrong, strict=False):
        if output.dtype.kind != "f" or not output.size:
            continue
        error = np.abs(output - bounds.value)
        if error.any():
            judged = (inside | wrong) & np.isfinite(error)
            if not judged.any():
                continue
            bound = np.maximum(bounds.upper - bounds.value, bounds.value - bounds.lower)
            ratios = np.where(judged & (error > 0), error / bound, 0.0)
            largest = max(float(np.max(ratios)), largest or 0.0)
        else:
            largest = largest or 0.0
    return largest if largest is not None and math.isfinite(largest) else None


def _required_text(required: Requirements, behaviour: Mapping[str, Sequence[str]]) -> str:
    wanted = [f"{s}={a}" for s, a in required.items() if s in behaviour and a not in behaviour[s]]
    taken = [f"{s}={'|'.join(a)}" for s, a in behaviour.items() if s in required and required[s] not in a]
    if not wanted:  # each on its own would do
        together = ", ".join(f"{s}={a}" for s, a in required.items() if s in behaviour)
        return f"required: {together}; the answer is admitted as each of these, but not as all at once"
    return f"required: {', '.join(wanted)}; the answer is admitted as {', '.join(taken)}"


def _describe(output: Array) -> str:
    return f"{type_of(output)} {'x'.join(map(str, output.shape)) or 'scalar'}"


def _shape_text(matches: Sequence[_Match], outputs: Sequence[Array]) -> str:
    shapes = {tuple(b.shape for b in m.option.outputs): None for m in matches if m.option.kind == "values"}
    wanted = " or ".join(", ".join(str(list(s)) for s in shape) for shape in shapes) or "a refusal"
    return f"got shape {', '.join(str(list(o.shape)) for o in outputs)}, want {wanted}"


def _value_text(match: _Match, outputs: Sequence[Array]) -> str:
    if match.wrong_count:
        from .mismatch import Compared, mismatch_texts  # noqa: PLC0415 - only what fails pays for it

        triples = zip(match.option.outputs, outputs, match.wrong, strict=True)
        one = np.newaxis
        return mismatch_texts([Compared(of_lanes(b, one), output[one], wrong[one]) for b, output, wrong in triples])[0]
    spreads = [b.spread for b in match.option.outputs if b.spread is not None]
    return (
        f"errors too large as a whole: mean (error/sigma)² > {spreads[0].limit}" if spreads else "no option admits it"
    )
