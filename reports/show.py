"""One case in full, for people: the operation, inputs, what is expected and why, and the clauses."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..cases.batch import Batch
from ..cases.elements import Array, type_of
from ..cases.expectation import EXCEPTIONAL, Bounds, Flag, Option
from ..cases.program import Program
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
    values = ", ".join(map(element_text, flat[:_SHOWN]))
    more = f", … {flat.size - _SHOWN} more" if flat.size > _SHOWN else ""
    return f"tensor       {name}: {type_of(array)} {shape}: [{values}{more}]"


def element_text(element: Any) -> str:
    """Return an element of any type, as an array of ours holds it, as people read it; text in quotes."""
    found = element.item() if isinstance(element, np.generic) and element.dtype.kind in "biufc" else element
    return json.dumps(found, ensure_ascii=False) if isinstance(found, str) else str(found)


def output_names(program: Program, option: Option) -> list[str]:
    """Return the names of an option's tensors; those of a structure are numbered."""
    names = [output.name for output in program.answers]
    if len(names) == len(option.outputs):
        return names
    return [f"{names[0] if len(names) == 1 else ''}/{place}" for place in range(len(option.outputs))]


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
        names = output_names(case.program, option)
        for name, bounds in zip(names, option.outputs, strict=True):
            yield from _bounds_lines(bounds, name if len(names) > 1 else "")
        for check in option.checks:
            about = ", ".join(names[place] for place in check.outputs)
            settings = "".join(f", {key} {value}" for key, value in check.settings)
            yield f"    and the check {check.name} of {about}{settings}"


def _labels(option: Option) -> str:
    labels = ", ".join(f"{silence}={answer}" for silence, answer in option.labels) or "the one answer"
    kind = {"values": "", "rejected": ": a refusal", "anything": ": whatever it answers"}[option.kind]
    declared = " (only as declared arithmetic)" if option.level == "declared" else ""
    return f"{labels}{kind}{declared}"


def _bounds_lines(bounds: Bounds, name: str = "") -> Iterator[str]:
    yield f"    {f'{name}: ' if name else ''}{bounds.type} {'x'.join(map(str, bounds.shape)) or 'scalar'}"
    for index in itertools.islice(np.ndindex(bounds.shape), _SHOWN):
        yield f"    [{', '.join(map(str, index))}] {_element(bounds, (0, *index))}"
    if bounds.value.size > _SHOWN:
        yield f"    … {bounds.value.size - _SHOWN} more"
    if bounds.spread is not None:
        yield f"    and the mean of (error/sigma)² over the tensor is at most {bounds.spread.limit}"


def _element(bounds: Bounds, index: tuple[int, ...]) -> str:
    flags = Flag(int(bounds.flags[index])) if bounds.flags is not None else Flag(0)
    if flags & Flag.FREE:
        return "any value"
    ends = bounds.lower[index], bounds.upper[index]
    if isinstance(ends[0], float | np.floating) and np.isnan(ends[0]):
        return "NaN"
    value, lower, upper = map(element_text, (bounds.value[index], *ends))
    # the exact value may be no number of the type; where the ends round to one, that one is meant
    text = lower if lower == upper else f"{value} in [{lower}, {upper}]"
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
