"""Makes OpenVINO's nodes and tensors; also the operations with bodies, If, TensorIterator and Loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...cases.elements import Array, content, element_type, type_of
from ...cases.errors import ProgramError
from ...cases.program import UNRANKED, Attribute, Body, Input, Node, OperatorVersion, Program
from ...cases.runner import Unsupported
from ..clients.python_client import OPENVINO_TYPES, openvino_factory, openvino_part

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
class NodeMaker:
    """Makes the library's nodes, also those with bodies."""

    library: Any

    def parts(self, program: Program, prefix: str = "") -> tuple[list[Any], list[Any]]:
        """Return the outputs of one node, of exactly the version that `program` names, and its fed inputs, in order.

        `prefix` begins the inputs' names, which differ in a model.
        """
        operator = program.operator
        given = [i for i in program.inputs if i is not None]  # only the last inputs can be omitted
        by_name = {i.name: self.value(i, prefix) for i in given}
        ports = [by_name[i.name].output(0) for i in given]
        node = self.made(operator, [i.name for i in given], ports, program.attributes)
        node.set_friendly_name(f"{prefix}{operator.name}")
        # the requested outputs
        asked = [port for port, output in zip(node.outputs(), program.outputs, strict=False) if output is not None]
        return asked or node.outputs(), [by_name[i.name] for i in program.feeds]

    def value(self, given: Input, prefix: str = "") -> Any:
        """Return a parameter or a constant."""
        operations, library = openvino_part("op"), self.library
        if given.constant is not None:
            node = operations.Constant(tensor_of(library, given.array()))
        else:
            dims = [-1 if isinstance(size, str) else size for size in given.dims]
            shape = library.PartialShape.dynamic() if given.dims == UNRANKED else library.PartialShape(dims)
            node = operations.Parameter(_element_type(library, given.type), shape)
            node.output(0).get_tensor().set_names({prefix + given.name})
        node.set_friendly_name(prefix + given.name)
        return node

    def made(
        self, operator: OperatorVersion, names: Sequence[str], ports: Sequence[Any], attributes: Sequence[Attribute]
    ) -> Any:
        """Return a node; `ports` are its inputs, and `names` what the port maps of bodies call them.

        Raises Unsupported if the library lacks its version or it lacks a body, ProgramError for a value that nothing
        makes, or an attribute that it ignores.
        """
        if has_bodies(operator):
            return self._of_bodies(operator, dict(zip(names, ports, strict=True)), attributes)
        factory, fault = openvino_factory(operator.name, operator.version)
        if fault:
            raise Unsupported(fault, "operator-version")
        node = factory.create(operator.name, ports, {a.name: _setting(a) for a in attributes})
        known = node.get_attributes()
        if ignored := [a.name for a in attributes if a.name not in known]:
            have = ", ".join(known) or "none"
            raise ProgramError(f"OpenVINO's {operator.name} ignores {', '.join(ignored)}: it has the attributes {have}")
        return node

    def _of_bodies(self, operator: OperatorVersion, ports: Mapping[str, Any], attributes: Sequence[Attribute]) -> Any:
        if ignored := [attribute.name for attribute in attributes if not isinstance(attribute.value, Body)]:
            raise ProgramError(f"OpenVINO's {operator.name} ignores {', '.join(ignored)}: it has bodies only")
        bodies = {attribute.name: attribute.value for attribute in attributes if isinstance(attribute.value, Body)}
        if not _NEEDED[operator.name] <= bodies.keys():
            words = ", ".join(bodies) or "none"
            raise Unsupported(f"this runner does not support these bodies of {operator.name}: {words}", "attribute")
        match operator.name:
            case "If":
                return self._if(ports, bodies)
            case "Loop":
                return self._loop(ports, bodies)
        return self._iterated(openvino_part("opset1").tensor_iterator(), ports, bodies)

    def _if(self, ports: Mapping[str, Any], bodies: Mapping[str, Body]) -> Any:
        """Return an If; a parameter of a body has the name of the input that it gets."""
        condition, *others = ports
        node = openvino_part("opset8").if_op(ports[condition])
        (then, of_then), (other, of_other) = (self._model(bodies[name]) for name in ("then_body", "else_body"))
        node.set_then_body(then)
        node.set_else_body(other)
        for name in others:
            node.set_input(ports[name], of_then.get(name), of_other.get(name))
        for pair in zip(then.results, other.results, strict=False):  # a result too many stays without an output
            node.set_output(*pair)
        return node

    def _loop(self, ports: Mapping[str, Any], bodies: Mapping[str, Body]) -> Any:
        trips, condition, *_ = ports.values()
        node, body = openvino_part("opset5").loop(trips, condition), bodies["body"]
        special = {rule_.get("purpose"): names for names, rule_ in map(_rule, bodies["port_map"].nodes)}
        _, number = special.get("current_iteration", ("", ""))
        again, _ = special["execution_condition"]
        fed = [given.name for given in body.inputs if given.constant is None]
        places = fed.index(number) if number else -1, [output.name for output in body.outputs].index(again)
        return self._iterated(node, ports, bodies, places)

    def _iterated(
        self, node: Any, ports: Mapping[str, Any], bodies: Mapping[str, Body], special: tuple[int, int] | None = None
    ) -> Any:
        """Return a TensorIterator or a Loop with its body, connected as its port map and its back edges say.

        `special`: the places of a Loop's parameter for the number of the iteration (-1: none) and of the result that
        says whether to go on.
        """
        body, parameters = self._model(bodies["body"])
        results = {port.name: made.output(0) for port, made in zip(bodies["body"].outputs, body.results, strict=True)}
        node.set_function(body)
        if special is not None:
            node.set_special_body_ports(list(special))
        edges = bodies["back_edges"].nodes if "back_edges" in bodies else ()
        back = {to: results[source] for (source, to), _ in map(_rule, edges)}
        for entry in bodies["port_map"].nodes:
            (source, to), rule_ = _rule(entry)
            start, end, stride = (rule_.get(name, usual) for name, usual in _SLICES.items())
            if "purpose" in rule_:
                continue
            if entry.operator.name == "output" and "axis" in rule_:
                node.get_concatenated_slices(results[source], start, stride, abs(stride), end, rule_["axis"])
            elif entry.operator.name == "output":
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
        made = {given.name: self.value(given) for given in body.inputs}
        values = {name: node.output(0) for name, node in made.items()}
        for step in body.nodes:
            if unknown := [name for name in step.inputs if name not in values]:
                raise ProgramError(f"the body {body.name} has no {', '.join(unknown)} before {step.operator}")
            node = self.made(step.operator, step.inputs, [values[name] for name in step.inputs], step.attributes)
            values |= zip(step.outputs, node.outputs(), strict=False)
        parameters = {given.name: made[given.name] for given in body.inputs if given.constant is None}
        results = [openvino_part("op").Result(values[output.name]) for output in body.outputs]
        return self.library.Model(results, list(parameters.values()), body.name), parameters


def _rule(entry: Node) -> tuple[tuple[str, str], dict[str, Any]]:
    """Return where a rule of a port map, or a back edge, takes a value from and where it goes, and its attributes."""
    return (entry.inputs[0] if entry.inputs else "", entry.outputs[0]), {
        attribute.name: attribute.value for attribute in entry.attributes
    }


def _setting(attribute: Attribute) -> object:
    if attribute.kind == "boolean":
        return bool(attribute.value)
    return list(attribute.value) if isinstance(attribute.value, tuple) else attribute.value


def tensor_of(library: Any, array: Array) -> Any:
    """Return an array as a tensor. Raises Unsupported for a type that the library lacks."""
    # Wrapping an array would avoid a copy, but 2024.0 wraps neither rank 0 nor an array without elements.
    name = type_of(array)
    tensor = library.Tensor(_element_type(library, name), library.Shape(list(array.shape)))
    if name == "string":
        if array.size:  # an empty list crashes the library
            words = [text.encode("utf-8", "surrogateescape") for text in array.reshape(-1).tolist()]
            tensor.bytes_data = np.array(words).reshape(array.shape)
    elif is_whole(name):
        memory_of(tensor)[...] = array
    else:
        tensor.data.reshape(-1).view(np.uint8)[:] = np.frombuffer(content(array), np.uint8)
    return tensor


def is_whole(name: str) -> bool:
    """Return whether the library shows tensors of this type as arrays of their shape, one element each."""
    return name == "bfloat16" or (name != "string" and element_type(name).dtype.isbuiltin == 1)


def memory_of(tensor: Any) -> Array:
    """Return the memory of a tensor as an array; for bfloat16, which NumPy lacks, the library says float16."""
    shown: Array = tensor.data
    is_bfloat16 = tensor.get_element_type().get_type_name() == "bf16"
    return shown.view(element_type("bfloat16").dtype) if is_bfloat16 else shown


def _element_type(library: Any, name: str) -> Any:
    element = getattr(library.Type, OPENVINO_TYPES.get(name, ""), None)
    if element is None:
        raise Unsupported(f"OpenVINO has no element type {name}", "type")
    return element
