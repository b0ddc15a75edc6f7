"""What the package expects of means of arrays that tests make, with no case id around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opconform.cases.batch import Expectation
from opconform.cases.elements import DeclaredType
from opconform.generators.arithmetic.formula import Rules

from .recorded import recorded


def over_axes(
    arrays: Sequence[Any],
    name: str,
    axes: tuple[int, ...],
    keepdims: bool,
    *,
    silences: dict[str, tuple[str, ...]] | None = None,
    random: bool = False,
    declared: DeclaredType | None = None,
) -> list[Expectation]:
    """Expectations of the means over `axes` of arrays of one shape, evaluated together."""
    stacked = [np.stack(arrays)]
    recording = recorded(lambda c, x: x.mean(axes, keep=keepdims), stacked, [name], silences)
    found = recording.expectation(stacked, Rules(random, {} if declared is None else {name: declared}))
    return [found.case(lane) for lane in range(len(arrays))]


def of_vectors(vectors: Sequence[Any], name: str, **rules: Any) -> list[Expectation]:
    """Expectations of the means of whole vectors of one length."""
    return over_axes(vectors, name, (0,), False, **rules)


def of_one(vector: Any, name: str, **rules: Any) -> Expectation:
    """The expectation of the mean over the first axis of one array."""
    return over_axes([np.asarray(vector)], name, (0,), False, **rules)[0]


def together(arrays: Sequence[Any], name: str) -> Expectation:
    """The expectation of the mean of several arrays, element by element."""
    laned = [np.asarray(array)[np.newaxis] for array in arrays]
    recording = recorded(lambda c, x, *xs: x.stack(*xs).mean((0,), keep=False), laned, [name])
    return recording.expectation(laned).case(0)
