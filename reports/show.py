"""One case in full, for people: the operation as its standard writes it, inputs, expectation, derivation, clauses."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from ..cases.batch import EXCEPTIONAL, Batch, Bounds, Flag, Option
from ..cases.elements import Array, element_types, to_json, type_of
from ..cases.program import UNRANKED, Attribute, Body, Dims, Input, Node, Output, Program, SparseTensor, Tensor
from ..generators.certificate import Certificate, Derivation, Number, Step, certificate
from ..generators.source import GeneratedCases
from ..runners.backends.onednn_companions import ALONE, company
from ..runners.backends.onednn_library import TYPES
from ..specs.model import Clause

_MARGIN = 13  # characters before a line's text
_LONGEST_SHOWN = 12  # elements of a constant
_UNKNOWN = "?"


def node_text(program: Program) -> str:
    """Return the operation in one line for any standard: outputs, inputs, attributes and operation set."""
    inputs = ", ".join(i.name if i is not None else '""' for i in program.inputs)
    attributes = ", ".join(f"{a.name}={_value(a)}" for a in program.attributes)
    outputs = ", ".join(o.name if o is not None else '""' for o in program.outputs)
    opset = f"  ({_opset(program)})" if _opset(program) else ""
    return f"{outputs} = {program.operator.name}({inputs}{'; ' if attributes else ''}{attributes}){opset}"


def operation_lines(case: Batch) -> list[str]:
    """Return the operation as the standard's documents write it, formatted for `opconform show`."""
    write = {"openvino": _layer, "onednn": _op}.get(case.program.operator.standard)
    if write is None:
        return list(_onnx_lines(case))
    return [f"{'' if number else 'operation':<{_MARGIN}}{line}" for number, line in enumerate(write(case))]


def ir_opset(program: Program) -> str:
    """Return OpenVINO's name of the operation set that introduced this version of the operation: `opset1`."""
    return f"opset{program.operator.version}"


def _opset(program: Program) -> str:
    if program.operator.standard == "openvino":
        return ir_opset(program)
    return f"opset {program.opset}" if program.opset is not None else ""


def _value(attribute: Attribute) -> str:
    if isinstance(attribute.value, tuple):
        return "[" + ", ".join(map(_text, attribute.value)) + "]"
    if attribute.kind in ("boolean", "bool"):
        return "true" if attribute.value else "false"
    return _text(attribute.value)


def _text(value: object) -> str:
    """Return a value of an attribute in one line: a tensor by its first elements, a body by its nodes."""
    match value:
        case Tensor():
            return f"{value.type} {'x'.join(map(str, value.dims)) or 'scalar'} {_elements(value.array())}"
        case SparseTensor():
            return f"sparse {'x'.join(map(str, value.dims))}: {_text(value.values)} at {_text(value.indices)}"
        case Body():
            nodes = map(_body_node, value.nodes)
            given = ", ".join(i.name for i in value.inputs)
            return f"{value.name}({given}) {{ {'; '.join(nodes)} }} -> {', '.join(o.name for o in value.outputs)}"
    return str(value)


def _body_node(node: Node) -> str:
    attributes = ", ".join(f"{a.name}={_value(a)}" for a in node.attributes)
    given = f"{', '.join(node.inputs)}{'; ' if attributes else ''}{attributes}"
    return f"{', '.join(node.outputs)} = {node.operator.name}({given})"


def _elements(array: Array) -> str:
    shown = ", ".join(map(str, to_json(array.reshape(-1)[:_LONGEST_SHOWN])))
    return f"[{shown}{', …' if array.size > _LONGEST_SHOWN else ''}]"


def _output_dims(case: Batch, number: int) -> Dims | None:
    """Return an output's shape if inputs of known shapes fix it, otherwise its rank in unknown dimensions if known."""
    program, options = case.program, case.expectation.options
    output = program.answers[number]
    if not program.is_plain:  # the outputs of options are then the tensors of all answers
        return None
    shapes = {option.outputs[number].shape for option in options if option.kind == "values"}
    known = not any(isinstance(d, str) for i in program.inputs if i is not None for d in i.dims)
    if known and len(shapes) == 1:
        return next(iter(shapes))
    return None if output.rank is None else (_UNKNOWN,) * output.rank


# ONNX


def _onnx_lines(case: Batch) -> Iterator[str]:
    yield f"operation    {node_text(case.program)}"
    for input_ in case.program.given:
        constant = f" = {input_.array().tolist()} (initializer)" if input_.constant is not None else ""
        shape = f"[{', '.join(map(str, input_.dims))}]" if input_.structure is None else str(input_.structure)
        yield f"input        {input_.name}: {input_.type} {shape}{constant}"


# OpenVINO


def _layer(case: Batch) -> Iterator[str]:
    program = case.program
    name = program.operator.name
    yield f'<layer id="1" name="{name}" type="{name}" version="{ir_opset(program)}">'
    if program.attributes:
        yield f"    <data {' '.join(f'{a.name}={quoteattr(_ir_value(a))}' for a in program.attributes)} />"
    inputs = [i for i in program.inputs if i is not None]
    yield from _ports("input", 0, [(i.type, () if i.dims == UNRANKED else i.dims, _ir_comment(i)) for i in inputs])
    outputs = [(o.type, *_ir_output(o, _output_dims(case, n))) for n, o in enumerate(program.answers)]
    yield from _ports("output", len(inputs), outputs)
    yield "</layer>"


def _ir_value(attribute: Attribute) -> str:
    return ", ".join(map(str, attribute.value)) if isinstance(attribute.value, tuple) else _value(attribute)


def _ports(tag: str, first: int, ports: list[tuple[str, Dims, str]]) -> Iterator[str]:
    if not ports:
        return
    yield f"    <{tag}>"
    for number, (type_, dims, comment) in enumerate(ports, first):
        opening = f'        <port id="{number}" precision="{_precision(type_)}"'
        # a comment must not contain two hyphens in a row
        said = f"  <!-- {comment.replace('--', '- -')} -->"
        yield f"{opening}{'>' if dims else ' />'}{said}"
        yield from (f"            <dim>{-1 if isinstance(d, str) else d}</dim>" for d in dims)
        if dims:
            yield "        </port>"
    yield f"    </{tag}>"


def _precision(type_: str) -> str:
    if type_ in ("float16", "float32", "float64"):
        return f"FP{type_.removeprefix('float')}"
    if type_.startswith("float"):
        return f"F{type_.removeprefix('float').removesuffix('fn')}".upper()
    return {"bfloat16": "BF16", "bool": "BOOL", "string": "STRING"}.get(
        type_, type_.replace("int", "i").replace("ui", "u").upper()
    )


def _ir_comment(given: Input) -> str:
    if given.constant is None:
        about = {(): ", a scalar", UNRANKED: ", of any rank"}
        return f"{given.name}{about.get(given.dims, '')}"
    array = given.array()
    if array.size > _LONGEST_SHOWN:
        return f"{given.name}: value is {_elements(array)}"
    return f"{given.name}: value is {array.tolist()}"


def _ir_output(output: Output, dims: Dims | None) -> tuple[Dims, str]:
    if dims is None:
        return (), f"{output.name}, whose rank the standard leaves open"
    return dims, output.name if dims else f"{output.name}, a scalar"


# oneDNN


def _op(case: Batch) -> Iterator[str]:
    program = case.program
    yield program.operator.name
    attributes = [f"{a.name}: {re.sub('s$', '[]', str(a.kind))} = {_value(a)}" for a in program.attributes]
    inputs = [
        f"{_logical_tensor(n, i.name, i.type, i.dims)}{_strided(i)}"
        for n, i in enumerate(program.inputs)
        if i is not None
    ]
    outputs = [
        f"{_logical_tensor(n, o.name, o.type, _output_dims(case, n))}{', layout any' if o.free else ''}"
        for n, o in enumerate(program.answers)
    ]
    for heading, lines in (("attributes", attributes), ("inputs", inputs), ("outputs", outputs)):
        yield f"  {heading}{'' if lines else ': none'}"
        yield from (f"    {line}" for line in lines)
    beside = company(program)
    if beside != ALONE:
        yield f"  alone, or, where oneDNN does not support that, {beside}"


def _logical_tensor(number: int, name: str, type_: str, dims: Dims | None) -> str:
    shape = "unknown dimensions" if dims is None else f"[{', '.join(map(str, dims))}]"
    return f"{number}  {name}: {TYPES[type_][0] if type_ in TYPES else type_} {shape}"


def _strided(given: Input) -> str:
    return "" if given.strides is None else f", strides [{', '.join(map(str, given.strides))}]"


_SHOWN = 12  # elements
_NODES = 40
_UNCHARGED = re.compile(r": [^:]*u·.*?(?=  \()")
"""The part of a line that says what is charged, if nothing computes in floating point."""
_MOST_BITS = 2048
_LARGEST_DENOMINATOR = 1 << 20


def case_text(source: GeneratedCases, case: Batch) -> str:
    """Return the whole text of `opconform show`."""
    clauses = clauses_of(source, case)
    parts = [
        content_lines(case),
        list(certificate_lines(certificate(source, case))),
        [line for clause in clauses.values() for line in _clause_lines(clause)],
        [f"digests      case {case.digest[:16]}…, expectation {case.expectation.digest[:16]}…"],
    ]
    return "\n".join(line for part in parts for line in part)


def content_lines(case: Batch) -> list[str]:
    """Return a case's id, the operation, the inputs and the expectation."""
    return [
        f"case         {case.id}",
        *operation_lines(case),
        *(
            _tensor_line(name, array)
            for (name, _), array in zip(case.program.named_leaves, case.tensors(), strict=True)
        ),
        *_expectation_lines(case),
    ]


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
    """Return an element of any type, from one of our arrays, for people; text in quotes."""
    plain = element.item() if isinstance(element, np.generic) and element.dtype.kind in "biufc" else element
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, str) else str(plain)


def output_names(program: Program, option: Option) -> list[str]:
    """Return the names of an option's tensors; tensors of a structure are numbered."""
    names = [output.name for output in program.answers]
    if len(names) == len(option.outputs):
        return names
    return [f"{names[0] if len(names) == 1 else ''}/{number}" for number in range(len(option.outputs))]


def _expectation_lines(case: Batch) -> Iterator[str]:
    if case.expectation.invalid:
        yield "expectation  invalid input: no answer is right, a refusal is welcome"
        yield f"mended       {case.valid_variant}"
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
            about = ", ".join(names[output] for output in check.outputs)
            settings = "".join(f", {key} {value}" for key, value in check.settings)
            yield f"    and the check {check.name} of {about}{settings}"


def _labels(option: Option) -> str:
    labels = ", ".join(f"{silence}={answer}" for silence, answer in option.labels) or "the one answer"
    kind = {"values": "", "rejected": ": a refusal", "anything": ": any answer"}[option.kind]
    declared = " (only under declared arithmetic)" if option.level == "declared" else ""
    return f"{labels}{kind}{declared}"


def _bounds_lines(bounds: Bounds, name: str) -> Iterator[str]:
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
    # the exact value may not be a number of the type; if the ends round to one, that one is meant
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


def certificate_lines(issued: Certificate) -> Iterator[str]:
    """Yield formulas, exact results, the rules with what they charge, and the bounds to the last bit."""
    shown = set[str]()
    for derivation in issued.derivations:
        for line in (*_formula(derivation), *_exact(derivation)):
            if line not in shown:
                shown.add(line)
                yield line
    for derivation in issued.derivations:
        yield from _steps(derivation)
    yield from _roundings(issued)
    for number, option in enumerate(issued.case.expectation.options, 1):
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
    """Yield the exact results that can be written as fractions."""
    for at in derivation.outputs:
        numbers = derivation.results[at].exact
        if numbers is not None:
            shown = ", ".join(map(_number, numbers[:_SHOWN]))
            more = ", …" if len(numbers) > _SHOWN else ""
            yield f"exact        [{shown}{more}]{_in_brackets(_beside(derivation))}"


def _roundings(issued: Certificate) -> Iterator[str]:
    for name in dict.fromkeys(issued.case.expectation.types if issued.derivations else ()):
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
    position = int(np.argmax(step.error))  # the first of the elements with the largest charge
    if step.terms is not None and step.magnitude is not None:
        mean = np.broadcast_to(step.magnitude, step.error.shape).reshape(-1)[position]
        parts.append(f"n = {step.terms}, M = Σ|x|/n = {float(mean)!r}")
    parts.append(f"at most {float(step.error.reshape(-1)[position])!r}")
    return "; ".join(parts)


def _number(value: Number) -> str:
    """Return a fraction, or a hexadecimal float if that is shorter and exact, or if there are too many digits."""
    if not isinstance(value, Fraction):
        return str(value)
    denominator = value.denominator
    if denominator & (denominator - 1) or denominator <= _LARGEST_DENOMINATOR:
        return str(value)
    try:
        nearest = float(value)
    except OverflowError:
        nearest = 0.0
    if Fraction(nearest) == value:
        return nearest.hex()
    if value.numerator.bit_length() > _MOST_BITS:
        return f"about {nearest.hex()}"
    return f"{value.numerator}/2^{denominator.bit_length() - 1}"


def _bits(bounds: Bounds) -> str:
    ends = zip(bounds.lower.reshape(-1)[:_SHOWN].tolist(), bounds.upper.reshape(-1)[:_SHOWN].tolist(), strict=True)
    texts = [lower.hex() if lower == upper else f"[{lower.hex()}, {upper.hex()}]" for lower, upper in ends]
    size = bounds.value.size
    more = f", … {size - _SHOWN} more" if size > _SHOWN else ""
    sigma = ""
    if bounds.spread is not None:
        sigma = f"; sigma {', '.join(s.hex() for s in bounds.spread.sigma.reshape(-1)[:_SHOWN].tolist())}{more}"
    return ", ".join(texts) + more + sigma
