"""Effects: the ways in which an answer is wrong, everywhere or under a trigger, and state that persists across runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeAlias

import numpy as np

from ...cases.elements import Array, element_type, type_of
from ...specs.model import Spec, VersionSpec
from ..arithmetic.native import identical
from ..primitives.machine import Machine
from .corners import CORNER, CORNERS
from .implementation import Answer, Implementation, Invocation, Memory, Met, Trigger, usual_machine
from .nodes import NARROWER, largest_instead
from .shapes import broadcast_effects, broadcast_triggers, equal_effects, position_triggers, stretched
from .structures import structures
from .triggers import PLACES, RANKS, at_inputs, at_outputs, excluded, in_inputs, in_outputs, triggers, types_of

Effect: TypeAlias = Callable[[Array], Array]
"""A defect's change of one output, lanes first. It leaves elements unchanged that it cannot spoil."""

_BLOCK = 16
_LANES = 4
_TF32_LOST = 13  # bits of a float32's significand that TensorFloat-32 lacks


def _each(effect: Effect) -> Callable[[Invocation, Answer], Answer]:
    return lambda _i, outs: [effect(out) for out in outs]


def nothing_like(array: Array) -> Array:
    """Return zeros, false or empty text."""
    return np.full(array.shape, "", object) if array.dtype == object else np.zeros_like(array)


def _lost(elements: slice, least: int) -> Effect:
    """Return the effect that loses some elements of an output that has `least` or more."""

    def lost(array: Array) -> Array:
        flat = array.reshape(len(array), -1)
        if flat.shape[1] < least:
            return array
        kept = flat.copy()
        kept[:, elements] = nothing_like(kept[:, elements])
        return kept.reshape(array.shape)

    return lost


def _previous(array: Array) -> Array:
    flat = array.reshape(len(array), -1)
    if flat.shape[1] < 2:
        return array
    kept = flat.copy()
    kept[:, -1] = kept[:, -2]
    return kept.reshape(array.shape)


def _via(name: str) -> Effect:
    """Return the effect that converts to a type and back."""

    def narrowed(array: Array) -> Array:
        with np.errstate(all="ignore"):
            return array.astype(element_type(name).dtype).astype(array.dtype)

    return narrowed


def _of_types(types: Collection[str], effect: Effect) -> Effect:
    """Return an effect on outputs of some types alone."""
    return lambda array: effect(array) if type_of(array) in types else array


def _of_floats(change: Callable[[Array], Array]) -> Effect:
    def changed(array: Array) -> Array:
        if element_type(type_of(array)).format is None:
            return array
        with np.errstate(all="ignore"):
            return np.asarray(change(array)).astype(array.dtype)

    return changed


_nan_lost = _of_floats(lambda a: np.where(np.isnan(a), a.dtype.type(0), a))
_infinity_lost = _of_floats(largest_instead)
_sign_lost = _of_floats(lambda a: np.where(a == 0, a.dtype.type(0), a))
_ones = _of_floats(lambda a: a * a.dtype.type(1 + 16 * float(element_type(type_of(a)).float_format.roundoff)))


def _other_type(array: Array) -> Array:
    if array.dtype == object:
        return array
    other = np.float64 if array.dtype == np.float32 else np.float32
    with np.errstate(all="ignore"):
        return (array.real if array.dtype.kind == "c" else array).astype(other)


def _wrong(array: Array) -> Array:
    if array.dtype == object:
        return np.where(array == "", "a", "").astype(object)
    return np.where(array == 0, 1, 0).astype(array.dtype)


ALWAYS: Mapping[str, tuple[str, Effect]] = {
    "zeros": ("answers zeros", nothing_like),
    "type-other": ("answers in float32, or in float64 if float32 is right", _other_type),
    "rank-more": ("answers with one axis more", lambda a: a[:, np.newaxis]),
    "rank-less": ("leaves out axes of extent 1", lambda a: a.reshape(len(a), *(n for n in a.shape[1:] if n != 1))),
    "flat": ("answers with a single axis", lambda a: a.reshape(len(a), -1)),
    "last-missing": ("answers without the last entry of the last axis", lambda a: a[..., :-1] if a.ndim > 1 else a),
    "transposed": ("exchanges the last two axes", lambda a: a.swapaxes(-1, -2) if a.ndim > 2 else a),
    "off-by-one": ("shifts the last axis by one", lambda a: np.roll(a, 1, -1) if a.ndim > 1 else a),
    "last-lost": ("answers 0 for the last element", _lost(slice(-1, None), 2)),
    "last-repeated": ("answers the last but one element twice", _previous),
    "block-lost": ("answers 0 for the last 16 elements", _lost(slice(-_BLOCK, None), _BLOCK + 1)),
    "nan-lost": ("answers 0 for NaN", _nan_lost),
    "infinity-lost": ("answers the largest finite number for an infinity", _infinity_lost),
    "sign-of-zero-lost": ("answers +0 for -0", _sign_lost),
    "negated": ("answers with the opposite sign", lambda a: a if a.dtype.kind in "ubO" else -a),
    "ones": ("errs by eight units in the last place", _ones),
}
_OF_FLOATS = frozenset({"nan-lost", "infinity-lost", "sign-of-zero-lost", "ones"})
INTEGER_EFFECTS: Mapping[str, tuple[str, Effect]] = {
    name: entry for name, entry in ALWAYS.items() if name not in _OF_FLOATS
}
"""Effects on outputs that are not floats."""
WRONG: Mapping[str, tuple[str, Effect]] = {"wrong": ("answers 0, or 1 for 0,", _wrong)}
SPECIALS: Mapping[str, tuple[str, Effect]] = {**{name: ALWAYS[name] for name in ("nan-lost", "infinity-lost")}, **WRONG}

OF_DATA = frozenset({*_OF_FLOATS, "negated", *(f"{wide}-as-{narrow}" for wide, narrow in NARROWER.items())})
"""The names of effects that only show in the elements of outputs, whatever their shapes."""


def answer_mutants(version: VersionSpec) -> Iterator[Implementation]:
    """Yield mutants whose answers are always wrong, with the effects that are possible for the version's types."""
    signature = version.signature
    types = types_of(version, signature.outputs)
    floats = [t for t in types if element_type(t).format is not None]
    dtypes = {element_type(t).dtype.kind for t in types}
    cannot = {"type-other": dtypes <= {"O"}, "negated": dtypes <= set("ubO")}
    for name, (text, effect) in ALWAYS.items() if floats else INTEGER_EFFECTS.items():
        if cannot.get(name):
            continue
        yield Implementation(name, "answer", text, finish=_each(effect))
    for name in floats:
        if narrower := NARROWER.get(name):
            text, effect = f"answers {name} with the precision of {narrower}", _of_types({name}, _via(narrower))
            yield Implementation(f"{name}-as-{narrower}", "answer", text, finish=_each(effect))
    if len(signature.outputs) > 1:
        text = "answers the outputs in another order"
        yield Implementation("outputs-swapped", "answer", text, finish=lambda _i, outs: [*outs[1:], outs[0]])
        text = "answers one output too few"
        yield Implementation("output-missing", "answer", text, finish=lambda _i, outs: outs[:-1])


# Under triggers


def grid(
    spec: Spec, version: VersionSpec, known: Collection[str] | None = None
) -> Iterator[tuple[Trigger, Sequence[Implementation]]]:
    """Yield each trigger of an operator version with its possible defects; positions of elements come last.

    `known`: the names of what the formulas of its cases allow, corners and ways of broadcasting; None for all.
    """
    every = tuple(effects(version))
    others = tuple(effect for effect in every if effect.name != "other-operand")
    for trigger in triggers(spec, version):
        yield trigger, others if trigger.group == "twice" else every
    for trigger, own in structures(spec, version):
        yield trigger, (*(others if trigger.group == "twice" else every), *own)
    signature = version.signature
    ranks = [rank for rank in RANKS if excluded(version, Trigger("rank", str(rank), "", _always)) is None]
    for trigger in position_triggers(ranks):
        yield trigger, (*every, *equal_effects(trigger.level)) if trigger.group == "equal" else every
    spread = (*every, *broadcast_effects())
    for trigger in broadcast_triggers(types_of(version, signature.inputs), known):
        yield trigger, spread
    yield from _of_corners(version, known)
    for level, (where, index) in PLACES.items():
        specials = _specials(types_of(version, signature.outputs)).items()
        wrong = [(name, f"{text} there", at_outputs(index, special)) for name, (text, special) in specials]
        answers = [Implementation(name, "answer", text, finish=finish) for name, text, finish in wrong]
        yield Trigger("place", level, where, in_outputs(index)), answers
    for level, (where, index) in PLACES.items() if signature.inputs else ():
        specials = _specials(types_of(version, signature.inputs[:1])).items()
        misread = [
            (name, text.replace("answers", "reads"), at_inputs(index, special)) for name, (text, special) in specials
        ]
        readings = [Implementation(name, "answer", f"{text} there", reading=reading) for name, text, reading in misread]
        yield Trigger("input-place", level, f"{where} of the first input", in_inputs(index)), readings


def _of_corners(version: VersionSpec, names: Collection[str] | None) -> Iterator[tuple[Trigger, list[Implementation]]]:
    """Yield triggers that data set off: the mistakes at corners of a formula, and the largest finite results."""
    for (group, level, text), some in groupby(CORNERS, lambda corner: (corner.group, corner.level, corner.trigger)):
        effects = [
            Implementation(corner.effect, "answer", corner.text, nodes=f"{CORNER}:{corner.name}")
            for corner in some
            if names is None or corner.name in names
        ]
        if effects:
            yield Trigger(group, level, text, _always), effects
    if any(element_type(name).format is not None for name in types_of(version, version.signature.outputs)):
        infinite = Implementation("infinite", "answer", "answers an infinity there", finish=_each(_of_floats(_top)))
        yield Trigger("number", "largest-half", "a result over half the largest number", _always), [infinite]


def _always(_: Met) -> bool:
    return True


def _top(array: Array) -> Array:
    if array.dtype.kind == "c":
        return array
    numbers = array.astype(np.float64)
    top = np.abs(numbers) >= 2.0 ** element_type(type_of(array)).float_format.emax
    return np.where(top & np.isfinite(numbers), np.copysign(np.inf, numbers), numbers)


def _specials(types: Sequence[str]) -> Mapping[str, tuple[str, Effect]]:
    return SPECIALS if any(element_type(t).format is not None for t in types) else WRONG


def triggered(trigger: Trigger, effect: Implementation) -> Implementation:
    """Return the mutant that is wrong only under a trigger."""
    text = f"with {trigger.text}: {effect.text}"
    return replace(effect, name=f"{trigger.name}:{effect.name}", kind="trigger", text=text, under=trigger)


def effects(version: VersionSpec) -> Iterator[Implementation]:
    """Yield the possible defects under a trigger, at any position of elements."""
    for name in ("zeros", "rank-more", "last-lost", "block-lost"):
        yield Implementation(name, "answer", ALWAYS[name][0], finish=_each(ALWAYS[name][1]))
    lane_lost = _lost(slice(_LANES - 1, None, _LANES), _LANES)
    yield Implementation("lane-lost", "answer", f"answers 0 for every {_LANES}th element", finish=_each(lane_lost))
    yield Implementation("other-operand", "answer", "answers the last input that fits", finish=_operand)
    types = set(types_of(version, version.signature.inputs))
    for name, (of, text, narrowed) in _INPUTS.items():
        if types & of:
            yield Implementation(name, "answer", text, reading=_narrowed(_of_types(of, narrowed)))
    for of_type, narrower in (("float32", "float16"), ("float32", "bfloat16"), ("float64", "float32")):
        if of_type in types:
            text = f"sums {of_type} in {narrower}"
            yield Implementation(f"added-in-{narrower}", "answer", text, machine=_added(of_type, narrower))
    for name, text in (
        ("count-plus-one", "divides by a count that is one too large"),
        ("last-term-lost", "leaves the last term out"),
    ):
        yield Implementation(name, "answer", text, nodes=f"every:{name}")


def _operand(i: Invocation, outs: Answer) -> Answer:
    operands = []
    for out in outs:
        fitting = [a for a in i.arrays if a.dtype == out.dtype and stretched(a.shape[1:], out.shape[1:]) is not None]
        operand = fitting[-1] if len(fitting) > 1 else out
        spread = operand.reshape(len(operand), *(1,) * (out.ndim - operand.ndim), *operand.shape[1:])
        operands.append(np.broadcast_to(spread, out.shape))
    return outs if all(map(identical, operands, outs)) else operands


def _tf32(array: Array) -> Array:
    """Return float32 numbers truncated to the bits of TensorFloat-32."""
    bits = array.view(np.uint32)
    cut = bits & np.uint32(~((1 << _TF32_LOST) - 1) & 0xFFFFFFFF)
    return np.where(np.isfinite(array), cut, bits).view(np.float32)


def _via_float(array: Array) -> Array:
    """Return integers converted to a float type and back: float64 for 64 bits, else float32."""
    limits = np.iinfo(array.dtype)
    with np.errstate(all="ignore"):
        number = array.astype(np.float32 if limits.bits < 64 else np.float64)
        largest = np.nextafter(number.dtype.type(limits.max), number.dtype.type(0))
        inside = np.logical_and(np.greater_equal(number, limits.min), np.less_equal(number, largest))
        return np.where(inside, np.where(inside, number, 0).astype(array.dtype), array)


_INPUTS: Mapping[str, tuple[frozenset[str], str, Effect]] = {
    "inputs-in-tf32": (frozenset({"float32"}), "reads float32 in TensorFloat-32", _tf32),
    "inputs-in-bfloat16": (frozenset({"float32"}), "reads float32 in bfloat16", _via("bfloat16")),
    "inputs-in-float16": (frozenset({"float32"}), "reads float32 in float16", _via("float16")),
    "inputs-in-float32": (frozenset({"float64"}), "reads float64 in float32", _via("float32")),
    "inputs-in-float": (
        frozenset({"int32", "uint32", "int64", "uint64"}),
        "reads integers in float32, or 64-bit ones in float64",
        _via_float,
    ),
}


def _narrowed(effect: Effect) -> Callable[[Invocation], Invocation]:
    def change(array: Array) -> Array:
        wrong = effect(array)
        return array if identical(wrong, array) else wrong

    def reading(i: Invocation) -> Invocation:
        changed = i.mapped(change)
        return i if all(a is b for a, b in zip(changed.arrays, i.arrays, strict=True)) else changed

    return reading


def _added(type_: str, narrower: str) -> Callable[[Invocation], Machine]:
    """Return the machine that sums numbers of a type in a narrower one."""

    def machine(i: Invocation) -> Machine:
        usual = usual_machine(i)
        if type_ not in i.types:
            return usual
        return Machine(element_type(type_).dtype, element_type(narrower).dtype, usual.order)

    return machine


# From run to run


def state_mutants() -> Iterator[Implementation]:
    """Yield mutants that are right in the first run of a program, and wrong in others."""
    for name, text, change in (
        ("first-answer-again", "repeats the answer of a program's first run", lambda first, _before, _now: first),
        ("last-answer-again", "repeats the answer of the previous run", lambda _first, before, _now: before),
        ("answers-added", "adds the answer of the previous run", lambda _first, before, now: _sum(before, now)),
    ):
        yield Implementation(name, "state", text, recall=_recalling(change))
    text = "uses one buffer for the answers of all runs"
    yield Implementation("buffer-shared", "state", text, recall=_shared, shares=True)
    text = "overwrites its inputs after reading them"
    yield Implementation("inputs-overwritten", "state", text, overwrites=True)


def _shared(memory: Memory, answer: Answer) -> Answer:
    """Return answers as they are after the last of these runs: all share one buffer."""
    last = memory.get("buffer", [])
    buffers = []
    for index, out in enumerate(answer):
        kept = last[index] if index < len(last) else None
        if kept is not None and kept.shape == out[-1, ...].shape and kept.dtype == out.dtype:
            kept[...] = out[-1, ...]  # callers of earlier runs hold this array
        else:
            kept = out[-1, ...].copy()
        buffers.append(kept)
    memory["buffer"] = buffers
    return [np.broadcast_to(kept, (len(out), *kept.shape)) for kept, out in zip(buffers, answer, strict=True)]


def _sum(before: Array, now: Array) -> Array:
    if now.dtype.kind in "bO" or before.shape != now.shape:
        return before
    with np.errstate(all="ignore"):
        return np.asarray(before + now).astype(now.dtype)


def _recalling(change: Callable[[Array, Array, Array], Array]) -> Callable[[Memory, Answer], Answer]:
    """Return a function that applies `change` to the runs of a program, lane by lane."""

    def recall(memory: Memory, answer: Answer) -> Answer:
        runs = []
        for lane in range(len(answer[0]) if answer else 0):
            run = [out[lane, ...] for out in answer]
            first, before = memory.setdefault("first", run), memory.get("before", run)
            changed = [change(*each) for each in zip(first, before, run, strict=True)]
            alike = all(
                earlier.shape == now.shape for earlier, now in zip((*first, *before), (*run, *run), strict=True)
            )
            runs.append(changed if alike and "before" in memory else run)
            memory["before"] = run
        return [np.stack(outs) for outs in zip(*runs, strict=True)]

    return recall
