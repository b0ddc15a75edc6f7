"""The gradient of a tensor of the graph around the operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...cases.errors import OpconformError
from ...cases.program import Body, Node, Tensor
from ..arithmetic.tape import Call, Value

Rule: TypeAlias = Callable[..., Sequence["Value | None"]]
"""The gradients of a node's operands, from the gradient of its result and the operands."""


def gradient(c: Call, given: list[Value]) -> tuple[Value, ...]:
    """The gradient of `y` with respect to each tensor in `xs`, at the inputs as values of `xs` and `zs`.

    given: floats for xs, then zs of any type; results: of the shapes and types of xs. Source: ONNX Gradient-1 of
    ai.onnx.preview.training.
    """
    xs, names, around = c.attr("xs"), (*c.attr("xs"), *c.attr("zs", ())), c.around
    if not isinstance(around, Body):
        raise OpconformError("a gradient needs a graph around it")
    known = {name for node in around.nodes for name in (*node.inputs, *node.outputs)}
    c.require("inputs", len(given) == len(names))
    c.require("names", known.issuperset((*names, c.attr("y"))))
    values: dict[str, Value] = dict(zip(names, given, strict=True))
    run = [node for node in around.nodes if node.outputs[0] not in values]
    for node in run:
        if all(name in values for name in node.inputs):
            values[node.outputs[0]] = _made(c, node, values)
    c.require("names", c.attr("y") in values)
    y = values[c.attr("y")]
    if y.rank:
        c.open("tensor")
    parts = {c.attr("y"): c.constant(1.0, y.type).broadcast(*y.shape)}
    for node in reversed(run):
        if node.outputs[0] in parts and node.inputs:
            operands = [values[name] for name in node.inputs]
            for name, operand, part in zip(
                node.inputs, operands, _rule(node)(parts[node.outputs[0]], *operands), strict=True
            ):
                if part is not None:
                    own = _summed_to(part, operand.shape)
                    parts[name] = parts[name] + own if name in parts else own
    return tuple(parts[name] for name in xs)


def _made(c: Call, node: Node, values: Mapping[str, Value]) -> Value:
    attributes = {attribute.name: attribute.value for attribute in node.attributes}
    operands = [values[name] for name in node.inputs]
    match node.operator.name:
        case "Constant" if isinstance(tensor := attributes["value"], Tensor):
            return c.constant(tensor.array(), tensor.type)
        case "Cast":
            return operands[0].cast("float32")
        case "Size":
            return c.constant(operands[0].size, "int64")
        case "ReduceSum":
            return operands[0].sum(None, keep=False)
    plain: dict[str, Callable[..., Any]] = {
        "Add": lambda a, b: a + b,
        "Sub": lambda a, b: a - b,
        "Mul": lambda a, b: a * b,
        "Neg": lambda a: -a,
        "Identity": lambda a: a,
        "MatMul": lambda a, b: a @ b,
    }
    return plain[node.operator.name](*operands)  # type: ignore[no-any-return]  # a value


def _rule(node: Node) -> Rule:
    rules: dict[str, Rule] = {
        "Add": lambda g, _a, _b: (g, g),
        "Sub": lambda g, _a, _b: (g, -g),
        "Mul": lambda g, a, b: (g * b, g * a if b.kind == "real" else None),
        "Neg": lambda g, _a: (-g,),
        "Identity": lambda g, _a: (g,),
        "MatMul": lambda g, a, b: (g @ b.transpose(1, 0), a.transpose(1, 0) @ g),
        "ReduceSum": lambda g, a: (g.broadcast(*a.shape),),
        "Cast": lambda _g, _a: (None,),
        "Size": lambda _g, _a: (None,),
    }
    return rules[node.operator.name]


def _summed_to(part: Value, shape: tuple[int, ...]) -> Value:
    """A gradient, summed over the axes along which its operand was broadcast."""
    lead = part.rank - len(shape)
    axes = (*range(lead), *(lead + i for i, n in enumerate(shape) if n == 1 != part.shape[lead + i]))
    return part.sum(axes, keep=True).reshape(*shape) if axes else part
