"""Operators that multiply and sum over shared dimensions: Einsum."""

from __future__ import annotations

import re
from functools import reduce

import numpy as np

from ..arithmetic.tape import Call, Value


def einsum(c: Call, xs: list[Value]) -> Value:
    """Products of the operands' elements, summed over the labels that the output lacks.

    xs: one operand a term of `equation`, numbers of one type. Without an arrow the output has the dimensions of the
    ellipsis, then the labels that occur once, upper case before lower. Source: ONNX Einsum-12 and 28.
    """
    left, arrow, right = c.attr("equation").replace(" ", "").partition("->")
    terms = left.split(",")
    c.require("characters", all(re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", t) for t in (*terms, right)))
    c.require("terms", len(terms) == len(xs))
    pairs = list(zip(xs, terms, strict=True))
    spare = {x.rank - len(t.replace("...", "")) for x, t in pairs if "..." in t}
    c.require("ellipsis-fixed", len(spare) <= 1 and min(spare, default=0) >= 0 and (bool(spare) or "..." not in right))
    c.require("ranks", all("..." in t or x.rank == len(t) for x, t in pairs))
    dots = tuple(range(max(spare, default=0)))
    names = [_labels(t, dots) for t in terms]
    extents: dict[object, int] = {}
    for x, labels in zip(xs, names, strict=True):
        for label, extent in zip(labels, x.shape, strict=True):
            known = extents.get(label, 1)
            stretched = 1 in (known, extent) and isinstance(label, int)
            c.require("sizes", label not in extents or known == extent or stretched)
            extents[label] = extent if known == 1 else known
    if arrow:
        output = _labels(right, dots)
        c.require("output-labels", len(set(output)) == len(output) and set(output) <= set(extents))
        if dots and not set(dots) <= set(output):
            c.open("ellipsis-dropped")
    else:
        letters = left.replace(".", "").replace(",", "")
        output = [*dots, *sorted(label for label in set(letters) if letters.count(label) == 1)]
    order = [*output, *(label for label in extents if label not in output)]
    spread = [_arranged(x, labels, order) for x, labels in zip(xs, names, strict=True)]
    whole = reduce(lambda a, b: a * b, spread).broadcast(*(extents[label] for label in order))
    return whole.sum(range(len(output), len(order)), keep=False) if len(order) > len(output) else whole


def _labels(term: str, dots: tuple[int, ...]) -> list[object]:
    """The labels of a term's dimensions: letters, and numbers for those of the ellipsis."""
    before, ellipsis, after = term.partition("...")
    return [*before, *(dots if ellipsis else ()), *after]


def _arranged(x: Value, labels: list[object], order: list[object]) -> Value:
    """The operand with one dimension for each label of `order`, 1 where it has none; a label twice is a diagonal."""
    kept = list(dict.fromkeys(labels))
    for label in kept:
        places = [i for i, one in enumerate(labels) if one == label]
        while len(places) > 1:
            x, labels = _diagonal(x, places[0], places[1]), [one for i, one in enumerate(labels) if i != places[1]]
            places = [i for i, one in enumerate(labels) if one == label]
    x = x.transpose(*(labels.index(label) for label in order if label in labels))
    extents = iter(x.shape)
    return x.reshape(*(next(extents) if label in labels else 1 for label in order))


def _diagonal(x: Value, first: int, second: int) -> Value:
    """The elements whose places along two dimensions of one extent agree, along the first of them."""
    rest = [i for i in range(x.rank) if i not in (first, second)]
    n = x.shape[first]
    flat = x.transpose(*rest, first, second).reshape(*(x.shape[i] for i in rest), n * n)
    line = flat.take(np.arange(n) * (n + 1), len(rest))
    return line.transpose(*range(first), len(rest), *range(first, len(rest)))
