"""Makes OpenVINO's operations with bodies: If, TensorIterator and Loop, also in bodies of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...cases.errors import ProgramError
from ...cases.program import Attribute, Body, Input, Node, OperatorVersion
from ...cases.runner import Unsupported

_NEEDED: Mapping[str, frozenset[str]] = {
    "If": frozenset({"then_body", "else_body"}),
    "Loop": frozenset({"body", "port_map"}),
    "TensorIterator": frozenset({"body", "port_map"}),
}
"""The operations with bodies, and the attributes that they need: without these, compiling one ends the process."""
_SLICES: Mapping[str, int] = {"start": 0, "end": -1, "stride": 1}
"""The attributes of a rule of a port map that has an axis, with their defaults."""


def has_bodies(operator: OperatorVersion) -> bool:
    """Return whether an operation is made of bodies."""
    return operator.name in _NEEDED


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

        Raises Unsupported if it lacks a body, ProgramError for a value that nothing makes, or another attribute.
        """
        if ignored := [one.name for one in attributes if not isinstance(one.value, Body)]:
            raise ProgramError(f"OpenVINO's {operator.name} ignores {', '.join(ignored)}: it has bodies only")
        told = {one.name: one.value for one in attributes if isinstance(one.value, Body)}
        if not _NEEDED[operator.name] <= told.keys():
            words = ", ".join(told) or "none"
            raise Unsupported(f"this runner does not support these bodies of {operator.name}: {words}", "attribute")
        named = dict(zip(names, ports, strict=True))
        match operator.name:
            case "If":
                return self._if(named, told)
            case "Loop":
                return self._loop(named, told)
        return self._iterated(self.part("opset1").tensor_iterator(), named, told)

    def _if(self, ports: Mapping[str, Any], told: Mapping[str, Body]) -> Any:
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

    def _loop(self, ports: Mapping[str, Any], told: Mapping[str, Body]) -> Any:
        trips, condition, *_ = ports.values()
        node, body = self.part("opset5").loop(trips, condition), told["body"]
        special = {rule_.get("purpose"): names for names, rule_ in map(_rule, told["port_map"].nodes)}
        _, number = special.get("current_iteration", ("", ""))
        again, _ = special["execution_condition"]
        fed = [one.name for one in body.inputs if one.constant is None]
        places = fed.index(number) if number else -1, [one.name for one in body.outputs].index(again)
        return self._iterated(node, ports, told, places)

    def _iterated(
        self, node: Any, ports: Mapping[str, Any], told: Mapping[str, Body], special: tuple[int, int] | None = None
    ) -> Any:
        """Return a TensorIterator or a Loop with its body, connected as its port map and its back edges say.

        `special`: the places of a Loop's parameter for the number of the iteration (-1: none) and of the result that
        says whether to go on.
        """
        body, parameters = self._model(told["body"])
        results = {one.name: made.output(0) for one, made in zip(told["body"].outputs, body.results, strict=True)}
        node.set_function(body)
        if special is not None:
            node.set_special_body_ports(list(special))
        edges = told["back_edges"].nodes if "back_edges" in told else ()
        back = {to: results[source] for (source, to), _ in map(_rule, edges)}
        for one in told["port_map"].nodes:
            (source, to), rule_ = _rule(one)
            start, end, stride = (rule_.get(name, usual) for name, usual in _SLICES.items())
            if "purpose" in rule_:
                continue
            if one.operator.name == "output" and "axis" in rule_:
                node.get_concatenated_slices(results[source], start, stride, abs(stride), end, rule_["axis"])
            elif one.operator.name == "output":
                node.get_iter_value(results[source], -1)
            elif "axis" in rule_:
                node.set_sliced_input(parameters[to], ports[source], start, stride, abs(stride), end, rule_["axis"])
            elif to in back:
                node.set_merged_input(parameters[to], ports[source], back[to])
            else:
                node.set_invariant_input(parameters[to], ports[source])
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


def _rule(one: Node) -> tuple[tuple[str, str], dict[str, Any]]:
    """Return where a rule of a port map, or a back edge, takes a value from and where it goes, and its attributes."""
    return (one.inputs[0] if one.inputs else "", one.outputs[0]), {told.name: told.value for told in one.attributes}
