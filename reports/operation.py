"""An operation as its standard's documents write it: an ONNX node, a layer of OpenVINO's IR, a oneDNN Graph op."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from xml.sax.saxutils import quoteattr

from ..cases.batch import Batch
from ..cases.elements import Array, to_json
from ..cases.program import (
    Attribute,
    Body,
    Dims,
    Input,
    Output,
    Program,
    SparseTensor,
    Tensor,
)
from ..runners.onednn_library import TYPES

_MARGIN = 13  # characters before a line's text
_SHOWN = 12  # elements of a constant
_UNKNOWN = "?"


def node_text(program: Program) -> str:
    """Return the operation in one line, whatever its standard: outputs, inputs, attributes and operation set."""
    inputs = ", ".join(i.name if i is not None else '""' for i in program.inputs)
    attributes = ", ".join(f"{a.name}={_value(a)}" for a in program.attributes)
    outputs = ", ".join(o.name if o is not None else '""' for o in program.outputs)
    opset = f"  ({_opset(program)})" if _opset(program) else ""
    return f"{outputs} = {program.operator.name}({inputs}{'; ' if attributes else ''}{attributes}){opset}"


def operation_lines(case: Batch) -> list[str]:
    """Return the operation as the standard's documents write it, laid out for `opconform show`."""
    return list(_WRITERS.get(case.program.operator.standard, _onnx_lines)(case))


def ir_opset(program: Program) -> str:
    """Return OpenVINO's name of the operation set that brought this version of the operation: `opset1`."""
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
    """Return a value of an attribute in a line: a tensor by its first elements, a body by its nodes."""
    match value:
        case Tensor():
            return f"{value.type} {'x'.join(map(str, value.dims)) or 'scalar'} {_elements(value.array())}"
        case SparseTensor():
            return f"sparse {'x'.join(map(str, value.dims))}: {_text(value.values)} at {_text(value.indices)}"
        case Body():
            nodes = (
                f"{', '.join(node.outputs)} = {node.operator.name}({', '.join(node.inputs)})" for node in value.nodes
            )
            given = ", ".join(i.name for i in value.inputs)
            return f"{value.name}({given}) {{ {'; '.join(nodes)} }} -> {', '.join(o.name for o in value.outputs)}"
    return str(value)


def _elements(array: Array) -> str:
    shown = ", ".join(map(str, to_json(array.reshape(-1)[:_SHOWN])))
    return f"[{shown}{', …' if array.size > _SHOWN else ''}]"


def _hanging(label: str, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{'' if number else label:<{_MARGIN}}{line}"


def _output_dims(case: Batch, number: int) -> Dims | None:
    """Return an output's shape where inputs of known shapes fix it, else its rank in unknown dimensions if known."""
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
    for one in (*case.program.inputs, *case.program.captured):
        if one is not None:
            constant = f" = {one.array().tolist()} (initializer)" if one.constant is not None else ""
            shape = f"[{', '.join(map(str, one.dims))}]" if one.structure is None else str(one.structure)
            yield f"input        {one.name}: {one.type} {shape}{constant}"


# OpenVINO


def _openvino_lines(case: Batch) -> Iterator[str]:
    yield from _hanging("operation", _layer(case))


def _layer(case: Batch) -> Iterator[str]:
    program = case.program
    name = program.operator.name
    yield f'<layer id="1" name="{name}" type="{name}" version="{ir_opset(program)}">'
    if program.attributes:
        yield f"    <data {' '.join(f'{a.name}={quoteattr(_ir_value(a))}' for a in program.attributes)} />"
    inputs = [i for i in program.inputs if i is not None]
    yield from _ports("input", 0, [(i.type, i.dims, _ir_comment(i)) for i in inputs])
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
        # two hyphens in a row would end a comment
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
        return given.name if given.dims else f"{given.name}, a scalar"
    array = given.array()
    if array.size > _SHOWN:
        return f"{given.name}: value is {_elements(array)}"
    return f"{given.name}: value is {array.tolist()}"


def _ir_output(output: Output, dims: Dims | None) -> tuple[Dims, str]:
    if dims is None:
        return (), f"{output.name}, of a rank that the standard leaves open"
    return dims, output.name if dims else f"{output.name}, a scalar"


# oneDNN


def _onednn_lines(case: Batch) -> Iterator[str]:
    yield from _hanging("operation", _op(case))


def _op(case: Batch) -> Iterator[str]:
    program = case.program
    yield program.operator.name
    attributes = [f"{a.name}: {_onednn_kind(a)} = {_value(a)}" for a in program.attributes]
    inputs = [
        f"{number}  {i.name}: {_logical_tensor(i.type, i.dims)}"
        for number, i in enumerate(program.inputs)
        if i is not None
    ]
    outputs = [
        f"{number}  {o.name}: {_logical_tensor(o.type, _output_dims(case, number))}"
        for number, o in enumerate(program.answers)
    ]
    for heading, lines in (("attributes", attributes), ("inputs", inputs), ("outputs", outputs)):
        yield f"  {heading}{'' if lines else ': none'}"
        yield from (f"    {line}" for line in lines)


def _onednn_kind(attribute: Attribute) -> str:
    kind = str(attribute.kind)
    return f"{kind[:-1]}[]" if kind.endswith("s") else kind


def _logical_tensor(type_: str, dims: Dims | None) -> str:
    shape = "unknown dimensions" if dims is None else f"[{', '.join(map(str, dims))}]"
    return f"{TYPES.get(type_, type_)} {shape}"


_WRITERS: dict[str, Callable[[Batch], Iterator[str]]] = {
    "onnx": _onnx_lines,
    "openvino": _openvino_lines,
    "onednn": _onednn_lines,
}
