"""One case in full, for people: the operation, inputs, what is expected, how its bounds come about, and the clauses."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from ..cases.batch import (
    EXCEPTIONAL,
    Batch,
    Bounds,
    Flag,
    Option,
)
from ..cases.elements import Array, element_types, type_of
from ..cases.program import Program
from ..generators.certificate import Certificate, Derivation, Number, Step, certificate
from ..generators.source import GeneratedCases
from ..specs.model import Clause
from .operation import operation_lines

_SHOWN = 12  # elements
_NODES = 40
_UNCHARGED = re.compile(r": [^:]*u·.*?(?=  \()")
"""What a line says that is charged, where nothing computes in floating point."""
_LARGEST_DENOMINATOR = 1 << 20


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


# How the bounds come about


def certificate_lines(found: Certificate) -> Iterator[str]:
    """Yield formulas, exact results, the rules with what they charge, and the bounds to the last bit."""
    shown = set[str]()
    for derivation in found.derivations:
        for line in (*_formula(derivation), *_exact(derivation)):
            if line not in shown:
                shown.add(line)
                yield line
    for derivation in found.derivations:
        yield from _steps(derivation)
    yield from _roundings(found)
    for number, option in enumerate(found.case.expectation.options, 1):
        for bounds in option.outputs:
            if bounds.value.dtype.kind == "f" and bounds.value.size:
                yield f"bits {number:<8}{_bits(bounds)}"


def _formula(derivation: Derivation) -> Iterator[str]:
    for node, line in list(zip(derivation.formula.values(), derivation.text, strict=True))[:_NODES]:
        yield f"formula      {line if node.computes else _UNCHARGED.sub('', line)}"
    if len(derivation.text) > _NODES:
        yield f"             … {len(derivation.text) - _NODES} more"
    results = ", ".join(f"%{at}" for at in derivation.outputs)
    yield f"result       {results}{_in_brackets(_beside(derivation))}"


def _steps(derivation: Derivation) -> Iterator[str]:
    for step in derivation.steps[:_NODES]:
        yield f"rule         {_name(derivation)}: {_step_text(step)}"
    if len(derivation.steps) > _NODES:
        yield f"             … {len(derivation.steps) - _NODES} more; the certificate has all"


def _exact(derivation: Derivation) -> Iterator[str]:
    """Yield the exact results that fractions express."""
    for at in derivation.outputs:
        numbers = derivation.results[at].exact
        if numbers is not None:
            shown = ", ".join(map(_number, numbers[:_SHOWN]))
            more = ", …" if len(numbers) > _SHOWN else ""
            yield f"exact        [{shown}{more}]{_in_brackets(_beside(derivation))}"


def _roundings(found: Certificate) -> Iterator[str]:
    for name in dict.fromkeys(found.case.expectation.types if found.derivations else ()):
        form = element_types()[name].format if name in element_types() else None
        if form is not None:
            yield f"rounding     to {name}: u_o = {form.roundoff.hex()}, eta = {form.eta.hex()}"


def _beside(derivation: Derivation) -> list[str]:
    beside = [f"{silence}={answer}" for silence, answer in derivation.labels]
    return beside + (["subnormal inputs read as zero"] if derivation.flushed else [])


def _name(derivation: Derivation) -> str:
    beside = _beside(derivation)
    summations = {arithmetic.summation for arithmetic in derivation.context.types.values()} - {"sums"}
    return derivation.context.name + _in_brackets([*beside, *sorted(summations)])


def _in_brackets(words: list[str]) -> str:
    return f" ({', '.join(words)})" if words else ""


def _step_text(step: Step) -> str:
    parts = [f"%{step.node} {step.rule}, u = {step.unit.hex()}"]
    if not step.error.size:
        return "; ".join(parts)
    place = int(np.argmax(step.error))  # the first element that it charges most
    if step.terms is not None and step.magnitude is not None:
        mean = np.broadcast_to(step.magnitude, step.error.shape).reshape(-1)[place]
        parts.append(f"n = {step.terms}, M = Σ|x|/n = {float(mean)!r}")
    parts.append(f"at most {float(step.error.reshape(-1)[place])!r}")
    return "; ".join(parts)


def _number(value: Number) -> str:
    """Return a fraction; a hexadecimal float where that is shorter and exact."""
    if not isinstance(value, Fraction):
        return str(value)
    denominator = value.denominator
    if denominator & (denominator - 1) or denominator <= _LARGEST_DENOMINATOR:
        return str(value)
    try:
        nearest = float(value)
    except OverflowError:
        nearest = 0.0
    return nearest.hex() if Fraction(nearest) == value else f"{value.numerator}/2^{denominator.bit_length() - 1}"


def _bits(bounds: Bounds) -> str:
    ends = zip(bounds.lower.reshape(-1)[:_SHOWN].tolist(), bounds.upper.reshape(-1)[:_SHOWN].tolist(), strict=True)
    texts = [lower.hex() if lower == upper else f"[{lower.hex()}, {upper.hex()}]" for lower, upper in ends]
    size = bounds.value.size
    more = f", … {size - _SHOWN} more" if size > _SHOWN else ""
    sigma = ""
    if bounds.spread is not None:
        sigma = f"; sigma {', '.join(s.hex() for s in bounds.spread.sigma.reshape(-1)[:_SHOWN].tolist())}{more}"
    return ", ".join(texts) + more + sigma
