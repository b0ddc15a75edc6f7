"""What tests look at: few of many cases alike, but for `pytest -m slow`, and values drawn at random."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from opconform.cases.elements import Array, element_type, element_types, from_content
from opconform.cases.program import Structure, leaves, optional, sequence, tensor
from opconform.specs.model import Spec


def newest_of_each_family(specs: Iterable[Spec]) -> list[str]:
    """The newest version of the first operator of each family."""
    first: dict[str, Spec] = {}
    for spec in specs:
        first.setdefault(spec.family, spec)
    return [str(list(spec.versions.values())[-1].operator) for spec in first.values()]


def slow(*values: Any, **more: Any) -> Any:
    """Parameters with which a test is slow: others by default show the same rule."""
    return pytest.param(*values, marks=pytest.mark.slow, **more)


def each(names: Sequence[str], usual: Iterable[str]) -> pytest.MarkDecorator:
    """Parametrize `name`: all but the `usual` ones are slow."""
    chosen = set(usual)
    params = [name if name in chosen else slow(name) for name in names]
    return pytest.mark.parametrize("name", params)


# Arrays of every element type, and values of every structure, for properties


NAMES = sorted(element_types())
SHAPES = st.lists(st.integers(0, 5), max_size=3).map(tuple)
WORDS = st.one_of(st.text(max_size=6), st.sampled_from(["", "\x00", "é", "🂡", "a\x00b", "\udc80"]))


@st.composite
def arrays(draw: st.DrawFn, name: str | None = None, shape: tuple[int, ...] | None = None) -> Array:
    """Arrays of an element type, or of any, with all bit patterns that it has."""
    element = element_type(name or draw(st.sampled_from(NAMES)))
    shape = draw(SHAPES) if shape is None else shape
    size = math.prod(shape)
    if element.kind == "string":
        found = np.empty(size, object)
        found[:] = [draw(WORDS) for _ in range(size)]
        return found.reshape(shape)
    if element.kind == "bool":
        return np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool).reshape(shape)
    width = element.size(size)
    return from_content(element.name, shape, draw(st.binary(min_size=width, max_size=width)))


@st.composite
def structures(draw: st.DrawFn, depth: int = 3) -> tuple[str, Structure]:
    """Types with structures of them."""
    kind = draw(st.sampled_from(["tensor", "tensor", "map", "seq", "optional"] if depth else ["tensor", "map"]))
    if kind == "tensor":
        return draw(st.sampled_from(NAMES)), tensor(*draw(st.lists(st.integers(0, 3), max_size=2)))
    if kind == "map":
        types = draw(st.sampled_from(["map(int64,float32)", "map(string,int64)", "map(int32,string)"]))
        return types, Structure("map", count=draw(st.integers(0, 3)))
    type_, first = draw(structures(depth - 1).filter(lambda one: kind != "optional" or "optional" not in one[0]))
    if kind == "optional":
        return f"optional({type_})", optional(*[first] * draw(st.booleans()))
    return f"seq({type_})", sequence(*[first] * draw(st.integers(0, 3)))


@st.composite
def values(draw: st.DrawFn) -> tuple[str, Structure, list[Array]]:
    """Types with structures and the tensors of a value; keys of maps are sorted and differ."""
    type_, structure = draw(structures())
    found = [draw(arrays(leaf.type, tuple(int(d) for d in leaf.dims or ()))) for leaf in leaves(type_, structure)]
    if "map" in type_:
        for place in range(0, len(found), 2):
            keys = np.arange(len(found[place]))
            is_text = found[place].dtype.hasobject
            found[place] = keys.astype(str).astype(object) if is_text else keys.astype(found[place].dtype)
    return type_, structure, found
