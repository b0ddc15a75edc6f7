"""Tensors and the difference between an answer and what is admitted, as the case page draws them."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...cases.batch import Bounds, Expectation, Option
from ...cases.elements import (
    Array,
    comparable,
    content,
    element_type,
    element_types,
    to_json,
    type_of,
)
from ...runners.comparison import admitted, ulp_exponent, within
from ..certificates import flag_names

SHOWN = 128
"""Elements of a tensor that are written out; its summary covers all."""

CELLS = 2048
"""Elements of a difference that are drawn one by one; of larger tensors each cell stands for a run of elements."""

MISMATCHES = 24

_IN_BROWSERS = frozenset({"float16", "bfloat16", "float32", "float64", "bool"}) | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_NO_NUMBERS = frozenset({"nan", "inf", "-inf"})


def tensor_told(array: Array, shown: int = SHOWN) -> dict[str, Any]:
    """Return type, shape, the first elements and, of more, what all are like.

    The elements are their bytes (little-endian, base64) where a browser has numbers for them, else a list of texts.
    """
    told = {"type": type_of(array), "shape": list(array.shape), "bits": _bits(array.reshape(-1)[:shown])}
    return told if array.size <= shown else {**told, "summary": _summary(array)}


def _bits(flat: Array) -> str | list[str] | None:
    if type_of(flat) in _IN_BROWSERS:
        return base64.b64encode(content(flat)).decode()
    return [_text(one) for one in to_json(flat)] if type_of(flat) in element_types() else None


def _text(one: object) -> str:
    if isinstance(one, list):
        return f"{one[0]} + {one[1]}i"
    return json.dumps(one, ensure_ascii=False) if isinstance(one, str) and one not in _NO_NUMBERS else str(one)


def _summary(array: Array) -> dict[str, Any]:
    if array.dtype.kind == "c" or array.dtype.hasobject:
        return {"elements": array.size}
    with np.errstate(all="ignore"):
        numbers = comparable(array)
        finite = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers.reshape(-1)
        told: dict[str, Any] = {"zeros": int((numbers == 0).sum()), "elements": array.size}
        if finite.size:
            told |= {"least": str(finite.min()), "greatest": str(finite.max())}
        if numbers.dtype.kind == "f":
            told |= {"nan": int(np.isnan(numbers).sum()), "infinite": int(np.isinf(numbers).sum())}
    return told


def bounds_told(bounds: Bounds, name: str = "") -> dict[str, Any]:
    """Return what an output must be: the first elements' value and bounds, in which type, and the flags they have."""
    told: dict[str, Any] = {"name": name, "type": bounds.type, "shape": list(bounds.shape)}
    told |= {"in": type_of(bounds.value), "size": bounds.value.size}
    parts = {"value": bounds.value, "lower": bounds.lower, "upper": bounds.upper}
    told |= {name: _bits(array.reshape(-1)[:SHOWN]) for name, array in parts.items()}
    if bounds.flags is not None:
        told["flags"] = [flag_names(bits) for bits in bounds.flags.reshape(-1)[:SHOWN].tolist()]
    if bounds.spread is not None:
        told["limit"] = bounds.spread.limit
    return told


@dataclass(frozen=True)
class _Held:
    """An answer held against an option: which elements it does not admit."""

    place: int
    option: Option
    wrong: tuple[Array, ...]

    @property
    def count(self) -> int:
        return sum(int(w.sum()) for w in self.wrong)


def difference_told(
    expectation: Expectation, outputs: Sequence[Array], names: Sequence[str] = ()
) -> dict[str, Any] | None:
    """Return how an answer to a single case differs from the option that it comes nearest to.

    `outputs` are without lanes, `names` those of the outputs. None where no option has their shapes.
    """
    with np.errstate(all="ignore"):
        fitting = [_held(place, option, outputs) for place, option in enumerate(expectation.options)]
        held = min((one for one in fitting if one is not None), key=lambda one: one.count, default=None)
        if held is None:
            return None
        pairs = zip(held.option.outputs, outputs, held.wrong, strict=True)
        named = itertools.chain(names, itertools.repeat(""))
        outputs_told = [{"name": name, **_difference(*pair)} for name, pair in zip(named, pairs, strict=False)]
        return {"option": held.place, "outputs": outputs_told}


def _held(place: int, option: Option, outputs: Sequence[Array]) -> _Held | None:
    fits = (
        option.kind == "values"
        and len(option.outputs) == len(outputs)
        and all(b.shape == o.shape and b.type == type_of(o) for b, o in zip(option.outputs, outputs, strict=True))
    )
    if not fits:
        return None
    numbers = [comparable(output[np.newaxis]) for output in outputs]
    pairs = list(zip(option.outputs, numbers, strict=True))
    return _Held(place, option, tuple(~admitted(b, n, within(b, n)) for b, n in pairs))


def _difference(bounds: Bounds, output: Array, wrong: Array) -> dict[str, Any]:
    numbers = comparable(output[np.newaxis])
    flat_wrong = wrong.reshape(-1)
    form = None if numbers.dtype.kind == "c" else element_type(bounds.type).format
    told: dict[str, Any] = {"wrong": int(flat_wrong.sum()), "size": int(output.size), "float": form is not None}
    told["in"] = type_of(bounds.value)
    if form is not None:
        errors = (numbers - bounds.value).reshape(-1)
    elif numbers.dtype.kind in "iu":
        errors = _whole_errors(numbers, comparable(bounds.value)).reshape(-1)
    else:  # truth values, complex numbers, text: there is no distance to draw
        errors = flat_wrong.astype(np.float64)
    shares = _shares(bounds, errors) if form else errors
    told["cells"] = _cells(shares, flat_wrong)
    if form is not None:
        ulps = errors / np.ldexp(1.0, ulp_exponent(bounds.value.reshape(-1), form))
        told["histogram"] = _histogram(ulps)
        told["ulp"] = _number(np.abs(ulps[np.isfinite(ulps)]).max(initial=0.0))
    else:
        ulps = errors
    told["share"] = _number(np.abs(shares[np.isfinite(shares)]).max(initial=0.0)) if form else None
    told["mismatches"] = _mismatches(bounds, output, flat_wrong, ulps, shares)
    return told


def _whole_errors(got: Array, want: Array) -> Array:
    """Return differences of whole numbers as float64, near enough to draw them."""
    apart = got.astype(object) - want.astype(object)
    return np.asarray(apart, np.float64)


def _shares(bounds: Bounds, errors: Array) -> Array:
    """Return errors as shares of the bound, which is the judge's; infinite where it is zero, or no number is wanted."""
    room = np.maximum(bounds.upper - bounds.value, bounds.value - bounds.lower).reshape(-1)
    return np.where(errors == 0, 0.0, np.where(np.isnan(room), errors, errors / room))


def _cells(shares: Array, wrong: Array) -> dict[str, Any]:
    """Return what is drawn: of each cell the error of the element that is furthest off, and whether any is wrong."""
    run = -(-shares.size // CELLS) if shares.size else 1
    starts = np.arange(0, shares.size, run)
    if not len(starts):
        return {"run": 1, "errors": [], "wrong": ""}
    shares = np.where(~wrong & ~np.isfinite(shares), 0.0, shares)  # infinity or NaN, as it is wanted
    size = np.where(np.isnan(shares), np.inf, np.abs(shares))
    padded = np.full(len(starts) * run, -1.0)
    padded[: shares.size] = size
    worst = starts + padded.reshape(-1, run).argmax(axis=1)
    any_wrong = np.logical_or.reduceat(wrong, starts)
    return {
        "run": int(run),
        "errors": [_number(share) for share in shares[worst].tolist()],
        "wrong": "".join("1" if w else "0" for w in any_wrong.tolist()),
    }


def _histogram(ulps: Array) -> dict[str, Any]:
    """Return how many errors lie in each range of ulps, doubling from half an ulp on, signs apart."""
    finite = ulps[np.isfinite(ulps)]
    size = np.abs(finite)
    steps = np.where(size <= 0.5, 0, np.ceil(np.log2(np.maximum(size, 0.5))) + 1).astype(int)
    steps = np.minimum(steps, 65) * np.where(finite < 0, -1, 1)
    found, counts = np.unique(steps, return_counts=True)
    return {"steps": found.tolist(), "counts": counts.tolist(), "apart": int(ulps.size - finite.size)}


def _mismatches(bounds: Bounds, output: Array, wrong: Array, ulps: Array, shares: Array) -> dict[str, Any]:
    places = np.flatnonzero(wrong)[:MISMATCHES]
    flags = None if bounds.flags is None else bounds.flags.reshape(-1)[places].tolist()
    parts = {"got": output, "value": bounds.value, "lower": bounds.lower, "upper": bounds.upper}
    return {
        "places": places.tolist(),
        **{name: _bits(array.reshape(-1)[places]) for name, array in parts.items()},
        "flags": None if flags is None else [flag_names(bits) for bits in flags],
        "ulps": [_number(u) for u in ulps[places].tolist()],
        "shares": [_number(s) for s in shares[places].tolist()],
    }


def _number(value: float) -> float | str:
    """Return a number that strict JSON holds, with six digits, or the name of one that it does not."""
    found = float(value)
    return float(f"{found:.6g}") if np.isfinite(found) else str(found)
