"""Answers that are wrong under a trigger: what of a call sets a defect off, and what the defect does to the outputs.

A wrong implementation is rarely wrong everywhere. Triggers are the places where one hides: a rank, an extent beyond a
vector register, a place in a tensor, a number of outputs, an element type. Effects are what becomes of the answer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from ...cases.elements import Array, element_type, type_of
from .implementation import Answer, Implementation
from .invocation import Invocation

Effect: TypeAlias = Callable[[Array], Array]
"""What a defect makes of one output, lanes first. It keeps what it cannot spoil."""

When: TypeAlias = Callable[[Invocation, Answer], bool]
Place: TypeAlias = Callable[[int], int]
"""Which of so many elements."""

RANKS = range(7)
EXTENTS = (2, 4, 8, 16, 32, 64, 128, 256, 1000, 1024, 4096, 65536)
ELEMENTS = (64, 300, 1000, 4096)
INPUTS = (1, 2, 3, 4, 5, 8, 12, 16, 32, 64)
AXES_NAMES = frozenset({"axis", "axes", "dim", "dims", "perm"})
_BLOCK = 16
_NARROWER = {"float64": "float32", "float32": "float16", "float16": "bfloat16", "bfloat16": "float8e4m3fn"}


@dataclass(frozen=True)
class Trigger:
    """What sets a defect off: `when` says of which calls. `group` and `level` name it, `rank` and `4`."""

    group: str
    level: str
    text: str
    when: When

    @property
    def name(self) -> str:
        """The name, `rank=4`."""
        return f"{self.group}={self.level}"


def triggers(types: Sequence[str], variadic: bool, axes: bool) -> Iterator[Trigger]:
    """Yield the triggers of an operator whose inputs, or outputs where it has none, are of these types."""
    for rank in RANKS:
        yield Trigger("rank", str(rank), f"tensors of rank {rank}", _when(_rank, operator.eq, rank))
    for extent in EXTENTS:
        yield Trigger("extent", f"over-{extent}", f"an extent over {extent}", _when(_longest, operator.gt, extent))
    yield Trigger("extent", "odd", "an odd extent over 2", lambda i, _: any(n > 2 and n % 2 for n in _extents(i)))
    yield Trigger("extent", "1", "an extent of 1", lambda i, _: 1 in _extents(i))
    for number in ELEMENTS:
        text = f"more than {number} elements in the first output"
        yield Trigger("elements", f"over-{number}", text, _large(number))
    for name in types:
        yield Trigger("type", name, f"the type {name}", _when(lambda i: i.types, operator.contains, name))
    for level, (text, when) in AXES.items() if axes else ():
        yield Trigger("axes", level, text, _lying(when))
    for number in INPUTS if variadic else ():
        yield Trigger("inputs", str(number), f"{number} inputs", _when(lambda i: len(i.arrays), operator.eq, number))


def _when(of: Callable[[Invocation], Any], holds: Callable[[Any, Any], bool], level: object) -> When:
    return lambda i, _outs: holds(of(i), level)


def _large(number: int) -> When:
    return lambda _i, outs: _elements(outs) > number


def _lying(when: Callable[[tuple[int, ...], int], bool]) -> When:
    return lambda i, _outs: any(when(*each) for each in _axes(i))


def _whole(axes: tuple[int, ...], rank: int) -> list[int]:
    return [axis % rank for axis in axes]


AXES: Mapping[str, tuple[str, Callable[[tuple[int, ...], int], bool]]] = {
    "front": ("the first axis alone", lambda axes, rank: rank > 1 and _whole(axes, rank) == [0]),
    "middle": ("an axis in the middle alone", lambda axes, rank: len(axes) == 1 and 0 < axes[0] % rank < rank - 1),
    "end": ("the last axis alone", lambda axes, rank: rank > 1 and _whole(axes, rank) == [rank - 1]),
    "negative": ("an axis below zero", lambda axes, _: min(axes, default=0) < 0),
    "adjacent": ("axes side by side", lambda axes, rank: 1 < len(axes) < rank and _gaps(axes, rank) == {1}),
    "apart": ("axes with others between them", lambda axes, rank: max(_gaps(axes, rank), default=1) > 1),
    "all": ("all axes", lambda axes, rank: rank > 1 and len(set(_whole(axes, rank))) == rank),
    "unsorted": ("axes that do not ascend", lambda axes, rank: _whole(axes, rank) != sorted(_whole(axes, rank))),
    "none": ("an empty list of axes", lambda axes, _: not axes),
}


def _gaps(axes: tuple[int, ...], rank: int) -> set[int]:
    places = sorted(set(_whole(axes, rank)))
    return {b - a for a, b in pairwise(places)}


def _rank(i: Invocation) -> int:
    return max((a.ndim - 1 for a in i.arrays), default=-1)


def _axes(i: Invocation) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the axes that are named by an attribute or an input, with the rank of the first input."""
    rank = i.arrays[0].ndim - 1 if i.arrays else 0
    ports = {n: g[0].reshape(-1).tolist() for n in i.names if isinstance(g := i.port(n), np.ndarray) and len(g)}
    for name, value in (*i.attributes.items(), *ports.items()):
        if name in AXES_NAMES and rank and isinstance(value, int | tuple | list):
            yield (value,) if isinstance(value, int) else tuple(value), rank


def _elements(outs: Answer) -> int:
    return outs[0][0, ...].size if outs and len(outs[0]) else 0


def _extents(i: Invocation) -> set[int]:
    return {extent for array in i.arrays for extent in array.shape[1:]}


def _longest(i: Invocation) -> int:
    return max(_extents(i), default=0)


def _each(effect: Effect) -> Callable[[Invocation, Answer], Answer]:
    return lambda _i, outs: [effect(out) for out in outs]


def _under(trigger: Trigger, effect: Effect) -> Callable[[Invocation, Answer], Answer]:
    return lambda i, outs: [effect(out) for out in outs] if trigger.when(i, outs) else outs


def _rotated(_i: Invocation, outs: Answer) -> Answer:
    return [*outs[1:], outs[0]]


def nothing_like(array: Array) -> Array:
    """Return zeros, false or empty text."""
    return np.full(array.shape, "", object) if array.dtype == object else np.zeros_like(array)


def _tail(number: int) -> Effect:
    """Return what loses the last elements, not all of them."""

    def lost(array: Array) -> Array:
        flat = array.reshape(len(array), -1)
        if flat.shape[1] <= number:
            return array
        kept = flat.copy()
        kept[:, -number:] = nothing_like(kept[:, -number:])
        return kept.reshape(array.shape)

    return lost


def _previous(array: Array) -> Array:
    flat = array.reshape(len(array), -1)
    if flat.shape[1] < 2:
        return array
    kept = flat.copy()
    kept[:, -1] = kept[:, -2]
    return kept.reshape(array.shape)


def _through(name: str) -> Effect:
    def narrowed(array: Array) -> Array:
        if type_of(array) != name:
            return array
        with np.errstate(all="ignore"):
            return array.astype(element_type(_NARROWER[name]).dtype).astype(array.dtype)

    return narrowed


def _is_float(array: Array) -> bool:
    return element_type(type_of(array)).format is not None


def _of_floats(change: Callable[[Array], Array]) -> Effect:
    def changed(array: Array) -> Array:
        if not _is_float(array):
            return array
        with np.errstate(all="ignore"):
            return np.asarray(change(array)).astype(array.dtype)

    return changed


def _largest(array: Array) -> Array:
    most = array.dtype.type(element_type(type_of(array)).float_format.largest)
    infinite = np.isinf(array)
    return np.where(infinite, np.where(array > 0, most, -most), array)


_nan_lost = _of_floats(lambda a: np.where(np.isnan(a), a.dtype.type(0), a))
_infinity_lost = _of_floats(_largest)
_sign_lost = _of_floats(lambda a: np.where(a == 0, a.dtype.type(0), a))
_ones = _of_floats(lambda a: a * a.dtype.type(1 + 16 * float(element_type(type_of(a)).float_format.roundoff)))


def _flushed(array: Array) -> Array:
    tiny = element_type(type_of(array)).float_format.tiny
    with np.errstate(all="ignore"):
        return np.where(np.abs(array.astype(np.float64)) < tiny, array.dtype.type(0), array)


def _transposed(array: Array) -> Array:
    return array.swapaxes(-1, -2) if array.ndim > 2 else array


def _off_by_one(array: Array) -> Array:
    return np.roll(array, 1, -1) if array.ndim > 1 else array


def _squeezed(array: Array) -> Array:
    return array.reshape(len(array), *(n for n in array.shape[1:] if n != 1))


def _other_type(array: Array) -> Array:
    if array.dtype == object:
        return array
    other = np.float64 if array.dtype == np.float32 else np.float32
    with np.errstate(all="ignore"):
        return (array.real if array.dtype.kind == "c" else array).astype(other)


def _negated(array: Array) -> Array:
    return -array if array.dtype.kind not in "ubO" else array


def _wrong(array: Array) -> Array:
    if array.dtype == object:
        return np.where(array == "", "a", "").astype(object)
    return np.where(array == 0, 1, 0).astype(array.dtype)


def _at(place: Place, effect: Effect) -> Effect:
    def changed(array: Array) -> Array:
        flat = array.reshape(len(array), -1)
        index = place(flat.shape[1])
        if not 0 <= index < flat.shape[1]:
            return array
        kept = flat.copy()
        kept[:, index] = effect(flat[:, [index]])[:, 0]
        return kept.reshape(array.shape)

    return changed


ALWAYS: Mapping[str, tuple[str, Effect]] = {
    "zeros": ("answers zeros", nothing_like),
    "type-other": ("answers in float32, or in float64 where that is right", _other_type),
    "rank-more": ("answers with one axis more", lambda a: a[:, np.newaxis]),
    "rank-less": ("leaves out axes of extent 1", _squeezed),
    "flat": ("answers with one axis alone", lambda a: a.reshape(len(a), -1)),
    "last-missing": ("answers without the last entry of the last axis", lambda a: a[..., :-1] if a.ndim > 1 else a),
    "transposed": ("exchanges the last two axes", _transposed),
    "off-by-one": ("shifts the last axis by one", _off_by_one),
    "last-lost": ("answers 0 for the last element", _tail(1)),
    "last-repeated": ("answers the last element but one twice", _previous),
    "block-lost": ("answers 0 for the last 16 elements", _tail(_BLOCK)),
    "nan-lost": ("answers 0 for NaN", _nan_lost),
    "infinity-lost": ("answers the largest finite number for an infinity", _infinity_lost),
    "sign-of-zero-lost": ("answers +0 for -0", _sign_lost),
    "negated": ("answers with the other sign", _negated),
    "ones": ("errs by eight units in the last place", _ones),
}
_OF_FLOATS = frozenset({"nan-lost", "infinity-lost", "sign-of-zero-lost", "ones"})
WHOLE: Mapping[str, tuple[str, Effect]] = {name: told for name, told in ALWAYS.items() if name not in _OF_FLOATS}
"""What may happen to outputs that are no floats."""
TRIGGERED: Mapping[str, tuple[str, Effect]] = {
    name: ALWAYS[name] for name in ("zeros", "rank-more", "last-lost", "block-lost")
}
SPECIALS: Mapping[str, tuple[str, Effect]] = {
    "nan-lost": ("answers 0 for NaN", _nan_lost),
    "infinity-lost": ("answers the largest finite number for an infinity", _infinity_lost),
    "wrong": ("answers 0, or 1 for 0,", _wrong),
}
WRONG: Mapping[str, tuple[str, Effect]] = {"wrong": SPECIALS["wrong"]}
PLACES: Mapping[str, tuple[str, Place]] = {
    "first": ("the first element", lambda _: 0),
    "middle": ("the element in the middle", lambda n: n // 2),
    "last": ("the last element", lambda n: n - 1),
    "beyond-64": ("the 65th element", lambda _: 64),
    "beyond-256": ("the 257th element", lambda _: 256),
    "beyond-4096": ("the 4,097th element", lambda _: 4096),
}


def answer_mutants(
    types: Sequence[str], outputs: Sequence[str], *, several: bool, variadic: bool, axes: bool
) -> Iterator[Implementation]:
    """Yield what answers wrongly: always in the ways of `ALWAYS`, and under each trigger in those of `TRIGGERED`."""
    floats = [t for t in outputs if element_type(t).format is not None]
    for name, (text, effect) in ALWAYS.items() if floats else WHOLE.items():
        yield Implementation(name, "answer", text, finish=_each(effect))
    for name in floats:
        if name in _NARROWER:
            text = f"answers {name} as {_NARROWER[name]} would"
            yield Implementation(f"{name}-as-{_NARROWER[name]}", "answer", text, finish=_each(_through(name)))
    if several:
        yield Implementation("outputs-swapped", "answer", "the outputs in another order", finish=_rotated)
        yield Implementation("output-missing", "answer", "one output too few", finish=lambda _i, outs: outs[:-1])
    for trigger in triggers(types, variadic, axes):
        for name, (text, effect) in TRIGGERED.items():
            yield Implementation(
                f"{trigger.name}:{name}",
                "trigger",
                f"with {trigger.text}: {text}",
                finish=_under(trigger, effect),
            )
    for place, (text, index) in PLACES.items():
        for name, (words, special) in SPECIALS.items() if floats else WRONG.items():
            yield Implementation(
                f"place={place}:{name}", "trigger", f"{words} at {text}", finish=_each(_at(index, special))
            )
