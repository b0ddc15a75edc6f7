"""A few small cases of an operator version, with what is put and what comes out by the standard."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...cases.batch import Batch
from ...cases.elements import Array, equal, type_of
from ...cases.errors import OpconformError
from ...cases.expectation import Bounds, Flag, Option
from ..operation import node_text
from ..show import element_text, output_names
from .knowledge import Knowledge

SHOWN = 4
_ELEMENTS = 24
_FILLS = ("ramp", "lattice", "uniform")


@dataclass(frozen=True)
class Example:
    """A case: the operation in a line, the tensors that go in, and what is admitted."""

    case: str
    operation: str
    inputs: Sequence[tuple[str, str]]
    outputs: Sequence[tuple[str, str]]


def examples(known: Knowledge, cases: Sequence[str]) -> list[Example]:
    """Return examples from these cases: small ones, of different settings."""
    found: list[Example] = []
    for id_ in _candidates(cases):
        try:
            case = known.source.case(id_)
        except OpconformError:  # of another suite
            continue
        if 0 < len(case.expectation.options) <= 3 and all(_is_plain(o) for o in case.expectation.options):
            found.append(_example(case))
        if len(found) == SHOWN:
            break
    return found


def _candidates(cases: Sequence[str]) -> Iterator[str]:
    """Yield the ids of small cases, the first ones each with other settings."""
    small = sorted((key, id_) for id_ in cases if (key := _key(id_)) is not None)
    seen: set[str] = set()
    for _, id_ in small:
        settings = id_.split("/")[4]
        if settings not in seen:
            seen.add(settings)
            yield id_


def _key(id_: str) -> tuple[int, ...] | None:
    """Return what small and plain cases have less of; None for a case that is neither."""
    parts = id_.split("/")
    if len(parts) != 6 or parts[5] not in _FILLS or "dims=" in parts[4] or "opset=" in parts[4]:
        return None
    shapes = [math.prod(map(int, dims)) for one in parts[3].split(",") if all(map(str.isdigit, dims := _dims(one)))]
    elements = max(shapes, default=0)
    if not 1 < elements <= _ELEMENTS:
        return None
    ranks = [len(_dims(one)) for one in parts[3].split(",")]
    flat = not 2 <= max(ranks) <= 3
    return _FILLS.index(parts[5]), flat, not parts[2].startswith("float32"), elements, len(parts[4])


def _dims(shape: str) -> list[str]:
    return shape.rpartition("*")[2].split("x")


def _is_plain(option: Option) -> bool:
    free = any(bounds.flags is not None and (bounds.flags & Flag.FREE).any() for bounds in option.outputs)
    return option.kind != "values" or (bool(option.outputs) and not free)


def _example(case: Batch) -> Example:
    inputs = [(name, a) for (name, _), a in zip(case.program.named_leaves, case.tensors(), strict=True)]
    constants = [(i.name, i.array()) for i in case.program.inputs if i is not None and i.constant is not None]
    return Example(
        case.id,
        node_text(case.program),
        [(f"{name}: {_kind(array)}", _values(array)) for name, array in [*inputs, *constants]],
        _outputs(case),
    )


def _outputs(case: Batch) -> list[tuple[str, str]]:
    """Return what is admitted, with the options of silences where they differ in it."""
    labels: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for option in case.expectation.options:
        told = ", ".join(f"{silence}={answer}" for silence, answer in option.labels)
        labels.setdefault(tuple(_option(case, option)), []).append(told)
    return [
        (head + (f" ({' or '.join(told)})" if len(labels) > 1 and any(told) else ""), values)
        for answer, told in labels.items()
        for head, values in answer
    ]


def _option(case: Batch, option: Option) -> Iterator[tuple[str, str]]:
    if option.kind != "values":
        yield "a refusal" if option.kind == "rejected" else "any answer", ""
        return
    for name, bounds in zip(output_names(case.program, option), option.outputs, strict=True):
        shape = "x".join(map(str, bounds.shape)) or "scalar"
        yield f"{name}: {bounds.type} {shape}{_width(bounds)}", _values(bounds.value[0, ...])


def _width(bounds: Bounds) -> str:
    if equal(bounds.lower, bounds.upper).all():
        return ", exactly"
    return ", within its bound"


def _kind(array: Array) -> str:
    return f"{type_of(array)} {'x'.join(map(str, array.shape)) or 'scalar'}"


def _values(array: Array) -> str:
    plain = array if array.dtype.kind in "biufc" else np.vectorize(element_text, otypes=[object])(array)
    text = np.array2string(
        plain, separator=", ", max_line_width=60, threshold=4 * _ELEMENTS, edgeitems=3, formatter={"object": str}
    )
    return re.sub(r"\n\n+", "\n", text)
