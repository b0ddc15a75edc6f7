"""One case in full, for people: the operation, inputs, what is expected and why, and the clauses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..cases.batch import Batch
from ..cases.elements import Array, to_json, type_of
from ..cases.expectation import EXCEPTIONAL, Bounds, Flag, Option
from ..generators.certificate import certificate
from ..generators.source import GeneratedCases
from ..specs.model import Clause
from .derivation import certificate_lines
from .operation import operation_lines

_SHOWN = 12  # elements


def case_text(source: GeneratedCases, case: Batch) -> str:
    """Return the whole text of `opconform show`."""
    clauses = clauses_of(source, case)
    parts = [
        [f"case         {case.id}"],
        operation_lines(case),
        [_tensor_line(name, array) for (name, _), array in zip(case.program.named_leaves, case.tensors(), strict=True)],
        list(_expectation_lines(case)),
        list(certificate_lines(certificate(source, case))),
        [line for clause in clauses.values() for line in _clause_lines(clause)],
        [f"digests      case {case.digest[:16]}…, expectation {case.expectation.digest[:16]}…"],
    ]
    return "\n".join(line for part in parts for line in part)


def clauses_of(source: GeneratedCases, case: Batch) -> Mapping[str, Clause]:
    """Return the clauses that a case tests, by their full id."""
    spec, number = source.library.operator_version(str(case.program.operator))
    known = spec.version(number).clauses
    return {clause: known[clause.partition("#")[2]] for clause in case.clauses}


def _tensor_line(name: str, array: Array) -> str:
    shape = "x".join(map(str, array.shape)) or "scalar"
    flat = array.reshape(-1)
    values = ", ".join(map(str, to_json(flat[:_SHOWN])))
    more = f", … {flat.size - _SHOWN} more" if flat.size > _SHOWN else ""
    return f"tensor       {name}: {type_of(array)} {shape}: [{values}{more}]"


def _expectation_lines(case: Batch) -> Iterator[str]:
    if case.expectation.invalid:
        yield "expectation  invalid input: no answer is right, a refusal is welcome"
        yield f"mended       {case.mended}"
    for silence, answers in case.expectation.silences.items():
        yield f"silence      {silence}: {', '.join(answers)}"
    for number, option in enumerate(case.expectation.options, 1):
        yield f"option {number:<6}{_labels(option)}"
        for structure in option.structure:
            yield f"    {structure}"
        for bounds in option.outputs:
            yield from _bounds_lines(bounds)


def _labels(option: Option) -> str:
    labels = ", ".join(f"{silence}={answer}" for silence, answer in option.labels) or "the one answer"
    kind = {"values": "", "rejected": ": a refusal", "anything": ": whatever it answers"}[option.kind]
    declared = " (only as declared arithmetic)" if option.level == "declared" else ""
    return f"{labels}{kind}{declared}"


def _bounds_lines(bounds: Bounds) -> Iterator[str]:
    yield f"    {bounds.type} {'x'.join(map(str, bounds.shape)) or 'scalar'}"
    indices = list(np.ndindex(bounds.shape))
    for index in indices[:_SHOWN]:
        yield f"    [{', '.join(map(str, index))}] {_element(bounds, (0, *index))}"
    if len(indices) > _SHOWN:
        yield f"    … {len(indices) - _SHOWN} more"
    if bounds.spread is not None:
        yield f"    and the mean of (error/sigma)² over the tensor is at most {bounds.spread.limit}"


def _element(bounds: Bounds, index: tuple[int, ...]) -> str:
    flags = Flag(int(bounds.flags[index])) if bounds.flags is not None else Flag(0)
    if flags & Flag.FREE:
        return "any value"
    value, lower, upper = (a[index].item() for a in (bounds.value, bounds.lower, bounds.upper))
    if lower != lower:  # noqa: PLR0124 - NaN
        return "NaN"
    # the exact value may be no number of the type; where the ends round to one, that one is meant
    text = f"{lower}" if lower == upper else f"{value} in [{lower}, {upper}]"
    names = [f.name.lower().replace("_", " ") for f in Flag if f in flags and f.name]
    extra = [n for n in names if n not in ("negative zero", "positive zero")]
    signed = [n for n in names if n in ("negative zero", "positive zero")]
    tail = f", or {' or '.join(extra)}" if extra else ""
    return (signed[0] if signed else text) + tail if not flags & EXCEPTIONAL or extra else text


def _clause_lines(clause: Clause) -> list[str]:
    status = (
        "" if clause.status == "required" else f" ({clause.status}{', ' + clause.upstream if clause.upstream else ''})"
    )
    return [f"clause       {clause.id}: {clause.text}{status}", f"             {clause.source}"]
