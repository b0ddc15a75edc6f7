"""One case in full, for people: the operation, inputs, what is expected and why, and the clauses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from ..cases.elements import Array, type_of
from ..cases.expectation import EXCEPTIONAL, Bounds, Flag, Option
from ..cases.model import Case, Program
from ..generators.certificate import Certificate, Step, certificate
from ..generators.source import GeneratedCases
from ..specs.model import Clause

_SHOWN = 12  # elements


def case_text(source: GeneratedCases, case: Case) -> str:
    """Return the whole text of `opconform show`."""
    clauses = clauses_of(source, case)
    parts = [
        [f"case         {case.id}", f"operation    {node_text(case.program)}"],
        _program_lines(case.program),
        [_tensor_line(i.name, array) for i, array in zip(case.program.feeds, case.inputs, strict=True)],
        list(_expectation_lines(case)),
        list(_certificate_lines(certificate(source, case))),
        [line for clause in clauses.values() for line in _clause_lines(clause)],
        [f"digests      case {case.digest[:16]}…, expectation {case.expectation.digest[:16]}…"],
    ]
    return "\n".join(line for part in parts for line in part)


def clauses_of(source: GeneratedCases, case: Case) -> Mapping[str, Clause]:
    """Return the clauses that a case tests, by their full id."""
    spec, number = source.library.operator_version(str(case.program.operator))
    known = spec.version(number).clauses
    return {clause: known[clause.partition("#")[2]] for clause in case.clauses}


def node_text(program: Program) -> str:
    """Return the operation as the standard's documents write a node."""
    inputs = ", ".join(i.name if i is not None else '""' for i in program.inputs)
    attributes = ", ".join(f"{a.name}={_value(a.value)}" for a in program.attributes)
    outputs = ", ".join(o.name for o in program.outputs)
    opset = f"  (opset {program.opset})" if program.opset is not None else ""
    return f"{outputs} = {program.operator.name}({inputs}{'; ' if attributes else ''}{attributes}){opset}"


def _value(value: object) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, tuple) else str(value)


def _program_lines(program: Program) -> list[str]:
    lines = []
    for one in program.inputs:
        if one is not None:
            constant = f" = {one.array().tolist()} (initializer)" if one.constant is not None else ""
            lines.append(f"input        {one.name}: {one.type} [{', '.join(map(str, one.dims))}]{constant}")
    return lines


def _tensor_line(name: str, array: Array) -> str:
    shape = "x".join(map(str, array.shape)) or "scalar"
    flat = array.reshape(-1)
    values = ", ".join(str(v) for v in flat[:_SHOWN].tolist())
    more = f", … {flat.size - _SHOWN} more" if flat.size > _SHOWN else ""
    return f"tensor       {name}: {type_of(array)} {shape}: [{values}{more}]"


def _expectation_lines(case: Case) -> Iterator[str]:
    if case.expectation.invalid:
        yield "expectation  invalid input: no answer is right, a refusal is welcome"
        yield f"mended       {case.mended}"
    for silence, answers in case.expectation.silences.items():
        yield f"silence      {silence}: {', '.join(answers)}"
    for number, option in enumerate(case.expectation.options, 1):
        yield f"option {number:<6}{_labels(option)}"
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
        yield f"    [{', '.join(map(str, index))}] {_element(bounds, index)}"
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


def _certificate_lines(found: Certificate | None) -> Iterator[str]:
    if found is None:
        return
    if found.exact is not None:
        shown = ", ".join(map(_fraction, found.exact[:_SHOWN]))
        yield f"exact        [{shown}{', …' if len(found.exact) > _SHOWN else ''}]"
    for step in found.steps:
        yield f"rule         {step.arithmetic}: {_step_text(step)}"
    if found.roundoff is not None and found.eta is not None:
        yield f"rounding     to the output: u_o = {found.roundoff.hex()}, eta = {found.eta.hex()}"


def _step_text(step: Step) -> str:
    parts = [f"{step.rule}, u = {step.unit.hex()}"]
    if step.terms is not None and step.magnitude is not None:
        parts.append(f"n = {step.terms}, M = Σ|x|/n = {step.magnitude!r}")
    parts.append(f"at most {step.error!r}")
    return "; ".join(parts)


def _fraction(value: Fraction) -> str:
    denominator = value.denominator
    if denominator & (denominator - 1) == 0 and denominator > 1 << 20:
        return (
            float(value).hex()
            if Fraction(float(value)) == value
            else f"{value.numerator}/2^{denominator.bit_length() - 1}"
        )
    return str(value)


def _clause_lines(clause: Clause) -> list[str]:
    status = (
        "" if clause.status == "required" else f" ({clause.status}{', ' + clause.upstream if clause.upstream else ''})"
    )
    return [f"clause       {clause.id}: {clause.text}{status}", f"             {clause.source}"]
