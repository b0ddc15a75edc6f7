"""What a wrong answer is told as: the first elements that are not admitted, how many there are, and how far off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..cases.elements import Array, element_type
from ..cases.expectation import EXCEPTIONAL, Bounds, Flag
from .accuracy import ulp_exponent

SHOWN = 5
"""How many elements are told; with them a text has a length that does not grow with the tensor."""

# Plain numbers: arithmetic with an enumeration's members costs more than that with arrays.
_EXCEPTIONAL, _NEGATIVE_ZERO, _POSITIVE_ZERO = (
    int(bits) for bits in (EXCEPTIONAL, Flag.NEGATIVE_ZERO, Flag.POSITIVE_ZERO)
)

Index: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """One output: its bounds, the answer in the bounds' number type, and which of its elements are not admitted."""

    bounds: Bounds
    output: Array
    wrong: Array


def mismatches_text(compared: Sequence[Compared]) -> str:
    """Return a line for each of the first wrong elements, and one that tells the largest errors; some must be wrong."""
    lines: list[str] = []
    for number, one in enumerate(compared, start=1):
        of = f" of output {number}" if len(compared) > 1 else ""
        lines += (f"{line}{of}: {told}" for line, told in _elements(one, SHOWN - len(lines)))
    wrong, size = (sum(int(count) for count in counts) for counts in zip(*map(_counts, compared), strict=True))
    lines[0] += f" ({wrong} of {size} wrong)"
    return "\n".join([*lines, *_largest_error(compared)])


def _counts(one: Compared) -> tuple[int, int]:
    return int(np.count_nonzero(one.wrong)), one.wrong.size


def _elements(one: Compared, limit: int) -> Iterator[tuple[str, str]]:
    for place in np.flatnonzero(one.wrong)[:limit]:
        index = _index(int(place), one.wrong.shape)
        yield f"element {_shown(index)}", f"got {_number(one.output[index])}, want {_wanted(one.bounds, index)}"


def _wanted(bounds: Bounds, index: Index) -> str:
    value, lower, upper = (a[index] for a in (bounds.value, bounds.lower, bounds.upper))
    flags = int(bounds.flags[index]) if bounds.flags is not None else 0
    if value != value:  # noqa: PLR0124 - NaN
        return "NaN"
    text = (
        f"{_number(value)} exactly"
        if lower == upper
        else f"{_number(value)} within [{_number(lower)}, {_number(upper)}]"
    )
    if flags & (_NEGATIVE_ZERO | _POSITIVE_ZERO):
        text = "-0.0" if flags & _NEGATIVE_ZERO else "+0.0"
    return f"{text}, or an overflow" if flags & _EXCEPTIONAL else text


def _largest_error(compared: Sequence[Compared]) -> Iterator[str]:
    """Yield what tells the largest error of the wrong elements; nothing where none is a number."""
    several = len(compared) > 1
    for number, one in enumerate(compared, start=1):
        if one.bounds.type == "bool" or not one.wrong.any():
            continue
        told = _of_floats(one) if one.output.dtype.kind == "f" else _of_integers(one)
        if told:
            yield f"largest error{f' of output {number}' if several else ''}: {told}"


def _of_integers(one: Compared) -> str:
    got, value = one.output, one.bounds.value
    error = np.maximum(got, value).astype(np.uint64) - np.minimum(got, value).astype(np.uint64)  # modulo 2^64: exact
    error = np.where(one.wrong, error, 0)
    place = int(error.argmax())
    return f"{int(error.flat[place]):,} at {_shown(_index(place, error.shape))}"


def _of_floats(one: Compared) -> str | None:
    """Return the largest error in ulp and as a share of its bound, which need not be those of one element."""
    bounds = one.bounds
    error = np.abs(one.output - bounds.value)
    error = np.where(one.wrong & np.isfinite(error), error, 0.0)
    if not error.any():
        return None
    ulps = np.ldexp(error, -ulp_exponent(bounds.value, element_type(bounds.type).float_format))
    width = np.maximum(bounds.upper - bounds.value, bounds.value - bounds.lower)
    shares = np.nan_to_num(error / width, nan=0.0, posinf=math.inf)  # 0 / 0, and bounds that admit no number
    at, at_share = int(ulps.argmax()), int(shares.argmax())
    at = at_share if ulps.flat[at_share] == ulps.flat[at] else at
    place, other = (_shown(_index(i, error.shape)) for i in (at, at_share))
    told, share = f"{_short(ulps.flat[at])} ulp ({error.flat[at]:.3g})", shares.flat[at_share]
    if not share:
        return f"{told} at {place}"
    if share == math.inf:
        return f"{told} at {place}" + (", where the bound is 0" if at == at_share else f"; at {other} the bound is 0")
    times = f"{_short(share)} times its bound"
    return f"{told}, {times}, at {place}" if shares.flat[at] == share else f"{told} at {place}; {times} at {other}"


def _short(number: float) -> str:
    if number == math.inf:
        return "over 1e+308"
    return f"{number:,.0f}" if 100 <= number < 1e12 else f"{number:.3g}"


def _index(place: int, shape: tuple[int, ...]) -> Index:
    found = []
    for extent in reversed(shape):
        place, along = divmod(place, extent)
        found.append(along)
    return tuple(reversed(found))


def _shown(index: Index) -> str:
    return f"[{', '.join(map(str, index))}]"


def _number(value: object) -> str:
    return str(value.item()) if isinstance(value, np.generic) else str(value)
