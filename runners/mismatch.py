"""What wrong answers are told as: the first elements that are not admitted, how many there are, and how far off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cases.elements import Array, comparable, element_type
from ..cases.expectation import EXCEPTIONAL, Bounds, Flag
from .comparison import ulp_exponent

SHOWN = 5
"""How many elements are told; with them a text has a length that does not grow with the tensor."""

_LONGEST_TEXT = 100  # characters

# Plain numbers: arithmetic with an enumeration's members costs more than that with arrays.
_EXCEPTIONAL, _NEGATIVE_ZERO, _POSITIVE_ZERO = (
    int(bits) for bits in (EXCEPTIONAL, Flag.NEGATIVE_ZERO, Flag.POSITIVE_ZERO)
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One output, lanes first: its bounds, the answers in the bounds' number type, and which elements are wrong."""

    name: str
    bounds: Bounds
    output: Array
    wrong: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one lane's output."""
        return self.wrong.shape[1:]

    def flat(self, array: Array) -> Array:
        """Return an array of the output's shape, lanes first, as rows of elements."""
        return array.reshape(len(self.wrong), -1)


def mismatch_texts(compared: Sequence[Compared]) -> list[str]:
    """Return for each lane a line for each of the first wrong elements, and one that tells the largest errors.

    Empty where no element is wrong.
    """
    lines: list[list[str]] = [[] for _ in compared[0].wrong]
    several = len(compared) > 1
    for one in compared:
        of = f" of output {one.name}" if several else ""
        for lane, shown, told in _elements(one):
            if len(lines[lane]) < SHOWN:
                lines[lane].append(f"element {shown}{of}: {told}")
    wrong = sum(np.count_nonzero(one.flat(one.wrong), axis=1) for one in compared)
    size = sum(math.prod(one.shape) for one in compared)
    for told_of, count in zip(lines, np.asarray(wrong).tolist(), strict=True):
        if count:
            told_of[0] += f" ({count} of {size} wrong)"
    for one in compared:
        of = f" of output {one.name}" if several else ""
        for lane, told in _largest_errors(one):
            lines[lane].append(f"largest error{of}: {told}")
    return ["\n".join(told_of) for told_of in lines]


def _elements(one: Compared) -> Iterator[tuple[int, str, str]]:
    """Yield the lanes and places of the first wrong elements of each lane, and what they are and should be."""
    lanes, places = np.nonzero(one.flat(one.wrong))
    first = np.searchsorted(lanes, np.arange(len(one.wrong)))
    told = np.arange(len(lanes)) - first[lanes] < SHOWN
    lanes, places, bounds = lanes[told], places[told], one.bounds
    columns = [*map(comparable, (bounds.value, bounds.lower, bounds.upper)), one.output]
    values, lowers, uppers, got = (one.flat(column)[lanes, places].tolist() for column in columns)
    flags = [0] * len(lanes) if bounds.flags is None else one.flat(bounds.flags)[lanes, places].tolist()
    shown = {place: _shown(place, one.shape) for place in set(places.tolist())}
    rows = zip(lanes.tolist(), places.tolist(), values, lowers, uppers, flags, got, strict=True)
    for lane, place, value, lower, upper, flag, number in rows:
        yield lane, shown[place], f"got {_text(number)}, want {_wanted(value, lower, upper, flag)}"


def _text(element: object) -> str:
    """Return an element; text, which may be long or hold anything, cut and quoted."""
    return str(element) if not isinstance(element, str) else repr(element[:_LONGEST_TEXT])


def _wanted(value: Any, lower: Any, upper: Any, flags: int) -> str:
    if isinstance(value, str | complex):
        return f"{_text(value)} exactly"
    if value != value:  # noqa: PLR0124 - NaN
        return "NaN"
    text = f"{value} exactly" if lower == upper else f"{value} within [{lower}, {upper}]"
    if flags & (_NEGATIVE_ZERO | _POSITIVE_ZERO):
        text = "-0.0" if flags & _NEGATIVE_ZERO else "+0.0"
    return f"{text}, or an overflow" if flags & _EXCEPTIONAL else text


def _largest_errors(one: Compared) -> Iterator[tuple[int, str]]:
    """Yield lanes and what tells the largest error of their wrong elements; none where no such error is a number."""
    if one.output.dtype.kind not in "fiu" or not one.wrong.any():
        return
    told = _of_floats(one) if one.output.dtype.kind == "f" else _of_integers(one)
    some: list[bool] = np.asarray(one.flat(one.wrong).any(axis=1)).tolist()
    for lane, (text, wrong) in enumerate(zip(told, some, strict=True)):
        if wrong and text:
            yield lane, text


def _of_integers(one: Compared) -> Iterator[str | None]:
    got, value = one.output, comparable(one.bounds.value)
    error = np.maximum(got, value).astype(np.uint64) - np.minimum(got, value).astype(np.uint64)  # modulo 2^64: exact
    error = one.flat(np.where(one.wrong, error, 0))
    places = error.argmax(axis=1)
    for place, largest in zip(places.tolist(), error[np.arange(len(error)), places].tolist(), strict=True):
        yield f"{largest:,} at {_shown(place, one.shape)}"


def _of_floats(one: Compared) -> Iterator[str | None]:
    """Yield the largest error in ulp and as a share of its bound, which need not be those of one element."""
    bounds = one.bounds
    error = np.abs(one.output - bounds.value)
    error = np.where(one.wrong & np.isfinite(error), error, 0.0)
    ulps = one.flat(np.ldexp(error, -ulp_exponent(bounds.value, element_type(bounds.type).float_format)))
    width = np.maximum(bounds.upper - bounds.value, bounds.value - bounds.lower)
    shares = one.flat(np.nan_to_num(error / width, nan=0.0, posinf=math.inf))  # 0 / 0, and bounds that admit no number
    error, lanes = one.flat(error), np.arange(len(one.wrong))
    at, at_share = ulps.argmax(axis=1), shares.argmax(axis=1)
    at = np.where(ulps[lanes, at_share] == ulps[lanes, at], at_share, at)
    columns = (at, at_share, ulps[lanes, at], error[lanes, at], shares[lanes, at], shares[lanes, at_share])
    some: list[bool] = np.asarray(error.any(axis=1)).tolist()
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for largest, row in zip(some, rows, strict=True):
        yield _float_text(one.shape, *row) if largest else None


def _float_text(shape: tuple[int, ...], at: int, at_share: int, *numbers: float) -> str:
    """Return the text of a largest error; the error in ulp, by itself, its share, and the largest share are numbers."""
    ulps, error, share_there, share = numbers
    place, other = _shown(at, shape), _shown(at_share, shape)
    told = f"{_short(ulps)} ulp ({error:.3g})"
    if not share:
        return f"{told} at {place}"
    if share == math.inf:
        return f"{told} at {place}" + (", where the bound is 0" if at == at_share else f"; at {other} the bound is 0")
    times = f"{_short(share)} times its bound"
    return f"{told}, {times}, at {place}" if share_there == share else f"{told} at {place}; {times} at {other}"


def _short(number: float) -> str:
    if number == math.inf:
        return "over 1e+308"
    return f"{number:,.0f}" if 100 <= number < 1e12 else f"{number:.3g}"


def _shown(place: int, shape: tuple[int, ...]) -> str:
    """Return a place in a tensor as its index."""
    found = []
    for extent in reversed(shape):
        place, along = divmod(place, extent)
        found.append(along)
    return f"[{', '.join(map(str, reversed(found)))}]"
