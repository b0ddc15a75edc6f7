"""What the package expects of means of arrays that tests make, with no case id around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opconform.cases.elements import element_type
from opconform.cases.expectation import Expectation
from opconform.generators.expect import Reading, Rules, expectations
from opconform.generators.reference import elementwise, reduction

from .shapes import kept, reduced


def over_axes(
    arrays: Sequence[Any], name: str, axes: tuple[int, ...], keepdims: bool, **rules: Any
) -> list[Expectation]:
    """Expectations of the means over `axes` of arrays of one shape, evaluated together."""
    shape = arrays[0].shape
    reading = Reading(
        shape=kept(shape, axes) if keepdims else reduced(shape, axes),
        formula=lambda xs: reduction.mean(xs[0], axes, keepdims),
        copies=not axes,
        terms=int(np.prod([shape[a] for a in axes], dtype=int)),
    )
    return expectations([reading], [np.stack(arrays)], Rules(element_type(name), **rules))


def of_vectors(vectors: Sequence[Any], name: str, **rules: Any) -> list[Expectation]:
    """Expectations of the means of whole vectors of one length."""
    return over_axes(vectors, name, (0,), False, **rules)


def together(arrays: Sequence[Any], name: str, **rules: Any) -> Expectation:
    """The expectation of the mean of several arrays, element by element."""
    reading = Reading(formula=elementwise.mean, terms=len(arrays))
    return expectations([reading], [np.asarray(a)[np.newaxis] for a in arrays], Rules(element_type(name), **rules))[0]
