"""Mutants of the arithmetic: how many addends, which of them, in what width, and what special numbers become."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...cases.elements import Array, element_type, element_types, type_of
from ...specs.model import VersionSpec
from ..strategy.rows import data_port
from .call import Call
from .implementation import Implementation, finishing
from .native import Working
from .orders import sequential

_WIDE: Mapping[str, str] = MappingProxyType({"accumulator": "wide"})
_FLOATS = "floating-point data"
_INTEGERS = "integer data"


def arithmetic_mutants(version: VersionSpec) -> Iterator[Implementation]:
    """Yield the mutants of a version's arithmetic."""
    letter = version.signature.letter(data_port(version).name)
    types = [element_types()[t] for t in (version.signature.types[letter] if letter else ())]
    yield from _counts()
    yield from _addends()
    if not data_port(version).is_variadic:
        yield from _long()
    yield from _other_means()
    if any(t.format for t in types):
        yield from _specials()
        yield from _rounded()
    if any(t.format and t.bits == 16 for t in types):
        yield from _narrow()
    if any(t.is_integer for t in types):
        yield from _whole()


def _mutant(name: str, text: str, needs: str = "addends", **working: Any) -> Implementation:
    return Implementation(name, "arithmetic", text, needs, Working(**working))


def _counts() -> Iterator[Implementation]:
    """Yield other numbers to divide by."""
    counts: dict[str, tuple[str, Callable[[int], int]]] = {
        "count-plus-one": ("divides by n+1", lambda n: n + 1),
        "count-minus-one": ("divides by n-1, or by 1 where n is 1", lambda n: max(n - 1, 1)),
        "count-squared": ("divides twice by n", lambda n: n * n),
        "not-divided": ("does not divide", lambda _n: 1),
        "count-in-8-bits": ("counts in 8 bits", lambda n: n & 0xFF),
        "count-to-a-power-of-two": ("divides by the next power of two", lambda n: 1 << (n - 1).bit_length()),
        "count-at-most-64": ("divides by at most 64", lambda n: min(n, 64)),
    }
    for name, (text, change) in counts.items():
        yield _mutant(name, text, count=lambda n, _extents, change=change: change(n))


def _addends() -> Iterator[Implementation]:
    """Yield other choices of what is added up."""
    chosen: dict[str, tuple[str, Callable[[Array], Array]]] = {
        "last-dropped": ("leaves out the last addend", lambda x: x[:-1]),
        "first-dropped": ("leaves out the first addend", lambda x: x[1:]),
        "first-doubled": ("adds the first addend twice", lambda x: np.concatenate([x[:1], x])),
        "last-doubled": ("adds the last addend twice", lambda x: np.concatenate([x, x[-1:]])),
        "first-for-last": (
            "takes the first addend again for the last",
            lambda x: np.concatenate([x[:-1], x[: min(1, len(x))]]),
        ),
        "every-second": ("adds every second addend", lambda x: x[::2]),
        "tail-of-4-dropped": ("leaves out what does not fill 4 lanes", lambda x: x[: len(x) // 4 * 4]),
        "tail-of-8-dropped": ("leaves out what does not fill 8 lanes", lambda x: x[: len(x) // 8 * 8]),
        "tail-of-4-doubled": (
            "adds twice what does not fill 4 lanes",
            lambda x: np.concatenate([x, x[len(x) // 4 * 4 :]]),
        ),
        "at-most-128": ("adds up at most 128 addends", lambda x: x[:128]),
        "initial-one": ("starts from one", lambda x: np.concatenate([np.ones_like(x[:1]), x])),
    }
    for name, (text, change) in chosen.items():
        yield _mutant(name, text, addends=change)


def _long() -> Iterator[Implementation]:
    """Yield what shows in long reductions alone; a node of so many inputs is beyond this suite."""
    needs = "more addends than a node has inputs"
    yield _mutant("count-in-16-bits", "counts in 16 bits", needs, count=lambda n, _extents: n & 0xFFFF)
    yield _mutant(
        "count-in-signed-16-bits",
        "counts in 16 bits with a sign",
        needs,
        count=lambda n, _extents: (n + 0x8000 & 0xFFFF) - 0x8000,
    )
    yield _mutant("at-most-1024", "adds up at most 1,024 addends", needs, addends=lambda x: x[:1024])
    yield _mutant("index-in-16-bits", "adds up the first 65,536 addends alone", needs, addends=lambda x: x[:65536])


def _other_means() -> Iterator[Implementation]:
    """Yield other functions than the mean."""
    yield _mutant("maximum", "takes the maximum", mean=lambda x: x.max(axis=0))
    yield _mutant("minimum", "takes the minimum", mean=lambda x: x.min(axis=0))
    yield _mutant("first-of-all", "takes the first addend", mean=lambda x: x[0])
    yield _mutant("median", "takes the middle addend by size", mean=lambda x: np.sort(x, axis=0)[len(x) // 2])
    yield _mutant("magnitudes", "takes the mean of the magnitudes", addends=np.abs, needs="data of both signs")
    yield _mutant(
        "middle-of-extremes", "takes the middle of the extremes", mean=lambda x: _middle(x.min(axis=0), x.max(axis=0))
    )


def _middle(low: Array, high: Array) -> Array:
    return (low + high) // 2 if low.dtype.kind in "iuO" else (low + high) / 2


def _specials() -> Iterator[Implementation]:
    """Yield what NaN, infinities, zeros and numbers at the ends of the range become."""
    replaced: dict[str, tuple[str, Callable[[Array], Array]]] = {
        "nan-as-zero": ("takes NaN as 0", lambda x: np.where(np.isnan(x), x.dtype.type(0), x)),
        "nan-as-infinity": ("takes NaN as an infinity", lambda x: np.where(np.isnan(x), x.dtype.type(np.inf), x)),
        "infinity-as-zero": ("takes infinities as 0", lambda x: np.where(np.isinf(x), x.dtype.type(0), x)),
        "infinity-as-nan": ("takes infinities as NaN", lambda x: np.where(np.isinf(x), x.dtype.type(np.nan), x)),
        "infinity-unsigned": ("loses the sign of infinities", lambda x: np.where(np.isinf(x), np.abs(x), x)),
        "small-as-zero": (
            "takes what is below 2^-10 as 0",
            lambda x: np.where(np.abs(x) < 2.0**-10, x.dtype.type(0), x),
        ),
    }
    for name, (text, change) in replaced.items():
        yield _mutant(name, text, _FLOATS, addends=change)
    yield _mutant("nan-skipped", "takes the mean of what is not NaN", _FLOATS, mean=_skipping)
    yield _mutant("opposed-infinities-cancel", "makes 0 of infinities of both signs", _FLOATS, mean=_cancelling)
    finished: dict[str, tuple[str, Callable[[Array], Array]]] = {
        "infinity-clipped": ("clips infinities to the largest finite number", _clipped),
        "nan-answered-as-zero": ("answers 0 for NaN", lambda x: np.where(np.isnan(x), x.dtype.type(0), x)),
        "absolute": ("answers the magnitude", np.abs),
        "huge-as-infinity": ("answers an infinity from a quarter of the largest number on", _too_huge),
        "half-of-subnormals": ("answers half of a subnormal number", _halved),
    }
    for name, (text, finish) in finished.items():
        yield Implementation(name, "arithmetic", text, _FLOATS, around=finishing(_of_floats(finish)))


def _of_floats(change: Callable[[Array], Array]) -> Callable[[Call, Array], Array]:
    def changed(_call: Call, out: Array) -> Array:
        if out.dtype.kind in "iu":
            return out
        with np.errstate(all="ignore"):
            return np.asarray(change(out)).astype(out.dtype)

    return changed


def _skipping(x: Array) -> Array:
    present = ~np.isnan(x)
    total = sequential(np.where(present, x, x.dtype.type(0)))
    return np.asarray(total / np.maximum(present.sum(axis=0), 1).astype(x.dtype))


def _cancelling(x: Array) -> Array:
    both = (x == np.inf).any(axis=0) & (x == -np.inf).any(axis=0)
    finite = np.where(np.isinf(x), x.dtype.type(0), x)
    mean = sequential(np.where(both, finite, x)) / x.dtype.type(len(x))
    return np.asarray(mean)


def _clipped(x: Array) -> Array:
    largest = element_type(type_of(x)).float_format.largest
    return np.where(np.isinf(x), np.copysign(x.dtype.type(largest), x), x)


def _too_huge(x: Array) -> Array:
    form = element_type(type_of(x)).float_format
    return np.where(np.abs(x.astype(np.float64)) >= 2.0 ** (form.emax - 2), np.copysign(x.dtype.type(np.inf), x), x)


def _halved(x: Array) -> Array:
    small = np.abs(x.astype(np.float64)) < element_type(type_of(x)).float_format.tiny
    return np.where(small, x / x.dtype.type(2), x)


def _rounded() -> Iterator[Implementation]:
    """Yield what is rounded too much, and what loses subnormal numbers."""
    yield _mutant("reciprocal-of-11-bits", "divides by way of a reciprocal of 11 bits", _FLOATS, mean=_rough)
    yield Implementation(
        "flushing",
        "arithmetic",
        "reads subnormal numbers as 0, and answers 0 for them, though told not to",
        _FLOATS,
        Working(flush=frozenset({"input", "output"})),
        required=MappingProxyType({"flush": "none"}),
    )


def _rough(x: Array) -> Array:
    inverse = np.float64(1) / len(x)
    mantissa, exponent = np.frexp(inverse)
    rough = np.ldexp(np.floor(mantissa * 2048) + 0.5, exponent - 11)  # never a power of two: half a step too large
    return np.asarray(sequential(x) * x.dtype.type(rough))


def _narrow() -> Iterator[Implementation]:
    """Yield claims to be wide that are none: found out where the accumulator is asked for."""
    needs = "data of a 16-bit floating-point type"
    for name, text, working in (
        ("narrow-accumulator", "adds up 16-bit numbers in 16 bits", Working("own")),
        ("narrow-pairwise", "adds up 16-bit numbers in 16 bits, by pairs", Working("own", "pairwise")),
        ("rounded-before-dividing", "rounds the sum to 16 bits before dividing", Working("wide", stepwise=True)),
        ("divided-in-16-bits", "divides every addend in 16 bits, and adds up", Working("own", division="before")),
    ):
        yield Implementation(name, "arithmetic", f"{text}, though told to be wide", needs, working, required=_WIDE)
    yield Implementation(
        "truncated-to-16-bits",
        "arithmetic",
        "cuts 16-bit results off instead of rounding them, though told to be wide",
        needs,
        Working("wide"),
        around=finishing(_truncated),
        required=_WIDE,
    )


def _truncated(call: Call, out: Array) -> Array:
    if out.dtype.kind in "iu" or out.itemsize != 2:
        return out
    exact = _exact(call)
    if exact is None or exact.shape != out.shape:
        return out
    towards = np.where(np.abs(out.astype(np.float64)) > np.abs(exact), np.uint16(1), np.uint16(0))
    return (out.view(np.uint16) - towards).view(out.dtype) if out.ndim else out


def _exact(call: Call) -> Array | None:
    """Return the result in float64, for a 16-bit operator."""
    reading = call.readings[0]
    if reading.formula is None:
        return None
    with np.errstate(all="ignore"):
        result = reading.formula([Working().lift(a) for a in call.data])
        return np.asarray(result.value[0], np.float64)


def _whole() -> Iterator[Implementation]:
    """Yield other roundings of integers, and other places for them."""
    whole: dict[str, tuple[str, Callable[[Array], Array]]] = {
        "rounded-up": ("rounds integer means up", lambda x: -(-x.sum(axis=0) // len(x))),
        "rounded-away": ("rounds integer means away from zero, however small the rest", _away),
        "shares-rounded": ("divides every integer before adding up", lambda x: (x // len(x)).sum(axis=0)),
        "sum-saturates-early": ("clips integer sums to half of the largest", _early),
    }
    for name, (text, mean) in whole.items():
        yield _mutant(name, text, _INTEGERS, mean=lambda x, mean=mean: mean(x) if x.dtype.kind in "iuO" else _own(x))
    yield _mutant(
        "shifted-for-powers-of-two",
        "divides integers by shifting, as if n were a power of two",
        _INTEGERS,
        mean=lambda x: x.sum(axis=0) // (1 << (len(x).bit_length() - 1)) if x.dtype.kind in "iuO" else _own(x),
    )


def _own(x: Array) -> Array:
    return np.asarray(sequential(x) / x.dtype.type(len(x)))


def _away(x: Array) -> Array:
    total = x.sum(axis=0)
    up = -(-np.abs(total) // len(x))
    return np.asarray(np.where(total < 0, -up, up))


def _early(x: Array) -> Array:
    limit = 1 << 10
    return np.asarray(np.clip(x.sum(axis=0), -limit, limit) // len(x))
