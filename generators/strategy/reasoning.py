"""What certificates of the mean are made of, until they are made of recorded formulas."""

from __future__ import annotations

from dataclasses import dataclass

from ...cases.declared import Declaration
from ...cases.elements import Array, element_type
from ...cases.ids import parse_id
from ...cases.program import count
from ...specs.loader import Library
from ..expect import Reading, Rules
from ..fills import Blank, fill
from .reading import read_row
from .registry import family_of


@dataclass(frozen=True)
class Reasoning:
    """Readings of a case, the data tensors that their formulas take, and where each stands among its inputs."""

    readings: tuple[Reading, ...]
    tensors: tuple[Array, ...]
    places: tuple[int, ...]
    rules: Rules


def reasoning(library: Library, declaration: Declaration, text: str) -> Reasoning:
    """Return what a case's expectation is made of."""
    case = parse_id(text)
    spec, key = library.operator_version(case.operator)
    row = read_row(spec, spec.version(key), case, family_of(spec).own)
    build = family_of(spec).build(row)
    feeds = [feed if isinstance(feed, int) else None for feed in build.feeds]
    tensors = []
    for element in {t.type: None for t in build.tensors}:
        size = sum(count(t.shape) for t in build.tensors if t.type == element)
        whole, used = fill(case.fill, Blank(element_type(element), size, build.terms), [text])[0], 0
        for tensor in build.tensors:
            tensors.append(whole[used : used + count(tensor.shape)].reshape(tensor.shape))
            used += count(tensor.shape)
    element = build.program.outputs[0].type  # type: ignore[union-attr]  # the mean has one
    silences = {silence.id: silence.options for silence in row.version.silences.values()}
    rules = Rules(element_type(element), silences, case.fill == "uniform", declaration.types.get(element))
    return Reasoning(build.readings, tuple(tensors), tuple(feeds.index(i) for i in range(len(tensors))), rules)
