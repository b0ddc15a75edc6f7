"""Makes OpenVINO's operations with bodies: If, TensorIterator and Loop, also in bodies of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...cases.errors import ProgramError
from ...cases.program import Attribute, Body, Input, Node, OperatorVersion
from ...cases.runner import Unsupported

_BODIES: Mapping[str, frozenset[str]] = {"If": frozenset({"then_body", "else_body"})}
"""The operations with bodies, and the attributes that they need: without these, compiling one ends the process."""


def has_bodies(operator: OperatorVersion) -> bool:
    """Return whether an operation is made of bodies."""
    return operator.name in _MADE


@dataclass(frozen=True)
class BodyMaker:
    """Makes nodes with bodies, given the library and the functions that make other nodes.

    `part`: returns a module of the library. `node`: makes an operation from its version, its inputs and attributes.
    `value`: makes a parameter or a constant.
    """

    library: Any
    part: Callable[[str], Any]
    node: Callable[[OperatorVersion, Sequence[Any], Sequence[Attribute]], Any]
    value: Callable[[Any, Input], Any]

    def made(
        self, operator: OperatorVersion, names: Sequence[str], ports: Sequence[Any], attributes: Sequence[Attribute]
    ) -> Any:
        """Return a node that is made of bodies; `ports` are its inputs, and `names` what the port maps call them.

        Raises Unsupported if it lacks a body, ProgramError for a value that nothing makes.
        """
        told = {one.name: one.value for one in attributes if isinstance(one.value, Body)}
        needed = _BODIES.get(operator.name, frozenset())
        if not needed or not needed <= told.keys():
            words = ", ".join(told) or "none"
            raise Unsupported(f"this runner does not support these bodies of {operator.name}: {words}", "attribute")
        return _MADE[operator.name](self, dict(zip(names, ports, strict=True)), told)

    def if_(self, ports: Mapping[str, Any], told: Mapping[str, Body]) -> Any:
        """Return an If; a parameter of a body has the name of the input that it gets."""
        condition, *others = ports
        node = self.part("opset8").if_op(ports[condition])
        (then, of_then), (other, of_other) = (self._model(told[name]) for name in ("then_body", "else_body"))
        node.set_then_body(then)
        node.set_else_body(other)
        for name in others:
            node.set_input(ports[name], of_then.get(name), of_other.get(name))
        for pair in zip(then.results, other.results, strict=False):  # a result too many stays without an output
            node.set_output(*pair)
        return node

    def _model(self, body: Body) -> tuple[Any, Mapping[str, Any]]:
        """Return a body as a model, and its parameters by name."""
        made = {one.name: self.value(self.library, one) for one in body.inputs}
        values = {name: node.output(0) for name, node in made.items()}
        for one in body.nodes:
            if unknown := [name for name in one.inputs if name not in values]:
                raise ProgramError(f"the body {body.name} has no {', '.join(unknown)} before {one.operator}")
            values |= zip(one.outputs, self._inner(one, [values[name] for name in one.inputs]).outputs(), strict=False)
        parameters = {one.name: made[one.name] for one in body.inputs if one.constant is None}
        results = [self.part("op").Result(values[one.name]) for one in body.outputs]
        return self.library.Model(results, list(parameters.values()), body.name), parameters

    def _inner(self, one: Node, ports: Sequence[Any]) -> Any:
        if has_bodies(one.operator):
            return self.made(one.operator, one.inputs, ports, one.attributes)
        return self.node(one.operator, ports, one.attributes)


_MADE: Mapping[str, Callable[[BodyMaker, Mapping[str, Any], Mapping[str, Body]], Any]] = {
    "If": BodyMaker.if_,
    "Loop": BodyMaker.if_,
    "TensorIterator": BodyMaker.if_,
}
