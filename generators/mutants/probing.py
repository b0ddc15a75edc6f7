"""Checks whether a mutant that no case exposes can be exposed at all: repeats the cases' calls on data of every kind.

A sine is never infinite, an exponential never -0, and a sum of products is the same without a check for zeros: such
mutants are right for every input. Attributes, and inputs that decide shapes, stay unchanged.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ...cases.elements import Array, content, element_type, type_of
from .effects import OF_DATA
from .formula import Answering, alike, decisive, part
from .implementation import Implementation, Invocation, Refused, tensors_of

_LANES = 16
_Kind = Callable[[np.random.Generator, tuple[int, ...]], Array]
_KINDS: tuple[_Kind, ...] = (
    lambda rng, shape: rng.uniform(-4, 4, shape),
    lambda rng, shape: rng.uniform(0, 1, shape),
    lambda rng, shape: rng.standard_normal(shape) * np.exp2(rng.uniform(-20, 20, shape)),
    lambda rng, shape: rng.choice([1, -1], shape) * np.exp2(rng.uniform(-140, 130, shape)),
    lambda rng, shape: rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5], shape),
    lambda rng, shape: rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, -0.5], shape),
    lambda rng, shape: rng.integers(-5, 6, shape) / 2,
    lambda rng, shape: np.where(rng.random(shape) < 0.2, np.inf, rng.uniform(-100, 100, shape)),
)  # fmt: skip


def can_be_told(mutant: Implementation) -> bool:
    """Return whether only data decide if a mutant is exposed."""
    return mutant.kind == "formula" or (mutant.kind == "answer" and mutant.name in OF_DATA)


def is_about(mutant: Implementation, answering: Answering) -> bool:
    """Return whether a mutant may affect a call through data that do not decide shapes."""
    if mutant.nodes:
        return answering.depends(mutant.nodes, _free(answering.invocation))
    types = {type_of(out) for out in answering.right}
    narrowed = mutant.name.partition("-as-")[0]
    return narrowed in types or (narrowed == mutant.name and any(element_type(t).format is not None for t in types))


def probes(answering: Answering) -> Iterator[Answering]:
    """Yield the call on other data: numbers of all magnitudes, special values, and the inputs' other elements."""
    invocation = answering.invocation
    free = _free(invocation)
    repeated = invocation.mapped(lambda array: np.repeat(array[:1], _LANES, 0))
    arrays = [_other(array, index) if index in free else array for index, array in enumerate(repeated.arrays)]
    probe = _replaced(repeated, arrays)
    for lanes in alike(probe, _LANES):
        try:
            yield Answering(probe if len(lanes) == _LANES else part(probe, lanes))
        except (Refused, OverflowError):  # whole numbers beyond their type, which the standard leaves open
            continue


def _free(invocation: Invocation) -> frozenset[int]:
    """Return the indices of tensors that do not decide shapes."""
    asked = decisive(invocation)
    places: list[bool] = []
    for name, given in zip(invocation.names, invocation.ports, strict=False):
        places += [name not in asked] * len(tensors_of(given))
    places += [True] * len(invocation.captured)
    return frozenset(index for index, there in enumerate(places) if there)


def _replaced(invocation: Invocation, arrays: list[Array]) -> Invocation:
    left: Mapping[int, Array] = {id(a): b for a, b in zip(invocation.arrays, arrays, strict=True)}
    return invocation.mapped(lambda array: left[id(array)])


def _other(array: Array, index: int) -> Array:
    """Return other elements of the type, another kind in each lane: any for floats, else some of the same array."""
    rng = np.random.default_rng(zlib.crc32(content(array)) + index)
    shape = array.shape[1:]
    if not array.size:
        return array
    if element_type(type_of(array)).format is not None:
        with np.errstate(all="ignore"):
            lanes = [_KINDS[lane % len(_KINDS)](rng, shape) for lane in range(len(array))]
            return np.stack(lanes).astype(array.dtype)
    if array.dtype.kind == "b":
        return rng.random(array.shape) < 0.5
    flat = array.reshape(len(array), -1)
    picked = rng.integers(0, flat.shape[1], flat.shape)
    elements = np.take_along_axis(flat, picked, 1).reshape(array.shape)
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        elements = elements.copy()
        for lane in range(1, len(array), 2):  # every other lane also has numbers from the whole type
            wild = rng.integers(limits.min, limits.max, shape, array.dtype, endpoint=True)
            elements[lane] = np.where(rng.random(shape) < 0.5, wild, elements[lane])
    return elements
