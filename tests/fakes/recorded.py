"""Formulas recorded for tests, implementations that compute them as they are, and whether these are admitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from opconform.cases.batch import Bounds, Expectation, Flag
from opconform.cases.elements import Array, element_type, type_of
from opconform.generators.arithmetic.recording import Recording
from opconform.generators.arithmetic.tape import Facts, Port, record
from opconform.generators.primitives.machine import Machine

SMALL = ("float16", "bfloat16")


def recorded(
    reference: Callable[..., Any],
    arrays: Sequence[Array | None],
    outputs: Sequence[str],
    silences: Mapping[str, tuple[str, ...]] | None = None,
    **more: Any,
) -> Recording:
    """Record a reference for arrays, lanes first; None is a port left out."""
    ports = {f"p{i}": None if a is None else Port(type_of(a), a.shape[1:]) for i, a in enumerate(arrays)}
    named = {f"o{i}": type_ for i, type_ in enumerate(outputs)}
    known = more.pop("known", None)
    return record(reference, Facts("onnx/Tried", 1, ports, named, silences=silences or {}, **more), known)


def bare(bounds: Bounds) -> Bounds:
    """Return the bounds of a single case without lanes."""
    return bounds.mapped(lambda array: array[0, ...])


def admits(bounds: Bounds, answer: Array) -> Array:
    """Return which elements of an answer are admitted, lanes first."""
    flags = np.zeros(bounds.value.shape, np.uint8) if bounds.flags is None else bounds.flags
    free = flags & Flag.FREE > 0
    if element_type(bounds.type).kind != "float":
        inside = answer == bounds.value
        if element_type(bounds.type).is_integer:
            inside = inside | ((answer >= bounds.lower) & (answer <= bounds.upper))
        return np.asarray(inside) | free
    with np.errstate(all="ignore"):
        y = answer.astype(np.float64)
        inside = (y >= bounds.lower) & (y <= bounds.upper) & np.isfinite(y) | (y == bounds.value)
        inside |= np.isinf(y) & ((y == bounds.lower) | (y == bounds.upper))
    named = ((Flag.POSITIVE_INFINITY, y == np.inf), (Flag.NEGATIVE_INFINITY, y == -np.inf), (Flag.NAN, np.isnan(y)))
    for flag, outcome in (*named, (Flag.ZERO, y == 0)):
        inside |= (flags & flag > 0) & outcome
    return inside | free


def admitted(expectation: Expectation, answers: Sequence[Array], accumulator: str = "") -> Array:
    """Return in which lanes any option admits the answers, of those of an accumulator where they name one."""
    found = np.zeros(expectation.lanes, bool)
    for one in expectation.options:
        named = dict(one.labels).get("accumulator", accumulator)
        if one.kind == "values" and named in (accumulator, "own") and len(one.outputs) == len(answers):
            inside = [admits(b, a).reshape(len(found), -1).all(1) for b, a in zip(one.outputs, answers, strict=True)]
            found |= np.all(inside, axis=0) & one.applies
    return found


def machines(type_: str) -> Iterator[tuple[str, Machine]]:
    """Yield compliant implementations of a type's arithmetic, with the option of `accumulator` that they take."""
    own, single = element_type(type_).dtype, np.dtype(np.float32)
    pairs = {"own": (own, own)}
    if type_ in SMALL:
        pairs = {"wide": (single, single), "stepwise": (own, single), "narrow": (own, own)}
    for name, (stores, adds) in pairs.items():
        for order in ("forward", "reverse", "pairwise"):
            yield name, Machine(stores, adds, order)  # type: ignore[arg-type]  # one of the three


KINDS = ("uniform", "cancelling", "huge", "tiny", "whole", "specials", "positive")


def drawn(kind: str, shape: tuple[int, ...], type_: str, rng: np.random.Generator, lanes: int = 4) -> Array:
    """Return data of a kind that is hard on some arithmetic, lanes first."""
    element, x = element_type(type_), rng.uniform(-4, 4, (lanes, *shape))
    if element.is_integer:
        return rng.integers(element.smallest, element.largest, x.shape, element.dtype, endpoint=True)
    form = element.float_format
    if kind == "specials":
        x[rng.random(x.shape) < 0.08] = np.inf
        x[rng.random(x.shape) < 0.04] = -np.inf
        x[rng.random(x.shape) < 0.04] = np.nan
        x[rng.random(x.shape) < 0.04] = -0.0
    made = {
        "cancelling": lambda: 100 + x / 16,
        "huge": lambda: x * form.largest**0.5 / 8,
        "tiny": lambda: x * form.tiny * 4,
        "whole": lambda: np.rint(x),
        "positive": lambda: np.abs(x),
    }
    with np.errstate(all="ignore"):
        return np.asarray(made.get(kind, lambda: x)()).astype(element.dtype)
