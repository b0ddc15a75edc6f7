"""Expectations for a single node of any ONNX model, for inputs that are stored with it."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..cases.batch import Expectation
from ..cases.elements import Array, content, from_tensor_proto, numbered, type_of
from ..cases.errors import OpconformError
from ..cases.foreign import StoredCase, StoredValue
from ..cases.program import Attribute, Body, Input, ModelProgram, Output, Program, Structure
from ..specs.loader import Library, UnknownOperator
from ..specs.model import Signature, Spec, VersionSpec
from .arithmetic.recording import Recording
from .arithmetic.tape import Asks, Facts, Port, Reference, record
from .families import reference_of
from .operands import attribute_from

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from onnx import GraphProto, ModelProto, NodeProto


Shapes: TypeAlias = Sequence[tuple[int, ...] | None]
"""The shapes of outputs, None for one that is not known."""


class NotCovered(OpconformError):  # noqa: N818 - named for what is not covered
    """A model that the suite does not cover: it has several nodes, or its operator version has no spec."""


@dataclass(frozen=True)
class Admitted:
    """The admissible answers of a node: an expectation, or the clause that makes its inputs invalid."""

    expectation: Expectation
    invalid: str = ""


def admitted(stored: StoredCase, library: Library) -> Admitted:
    """Return the admissible outputs of a model of one node, for its stored inputs.

    Raises NotCovered, and OpconformError if its reference cannot handle the model.
    """
    node, spec, version = _single(stored, library)
    given = _Given(node, version, _values(stored.model.graph, stored))
    recording = _recorded(reference_of(spec, version), given.facts(spec.operator, stored), given)
    arrays = [array[np.newaxis] for array in given.arrays()]
    clause = recording.invalid_clause or next(
        (name for name, broken in recording.invalid(arrays, 1).items() if broken.any()), ""
    )
    if clause:
        return Admitted(Expectation((), recording.types), clause)
    return Admitted(recording.expectation(arrays, lanes=1))


def unknown_to_own_version(program: ModelProgram, library: Library) -> str:
    """Return what of a model the version of its node does not have, in words, empty if there is nothing.

    That is the model itself, if its bytes are none; the node, if it is deprecated there and was not in the program's
    own version; an attribute; a word that an attribute has in other versions only; a number of inputs or outputs; or a
    type. Nodes in bodies are not read, and operators without a spec neither.
    """
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - as onnx

    try:
        model = _parsed(program)
    except DecodeError:
        return "its bytes are no ONNX model"
    opset = _opset(model)
    types = {i.name: i.type for i in program.feeds} | {o.name: o.type for o in program.answers}
    types |= {c.name: e.name for c in model.graph.initializer if (e := numbered(c.data_type)) is not None}
    for node in model.graph.node:
        with contextlib.suppress(UnknownOperator, ValueError):
            spec = library.spec(f"{program.operator.standard}/{node.op_type}")
            version = spec.versions[_version_in(spec, opset)]
            unknown = _unknown_attribute(node, spec, version)
            if version.operator != program.operator:
                unknown = unknown or _unknown_to_signature(node, version, types)
            if unknown and node.domain in ("", "ai.onnx"):
                return unknown
    return ""


def _parsed(program: ModelProgram) -> ModelProto:
    from onnx import ModelProto  # noqa: PLC0415 - it takes long

    model = ModelProto()
    model.ParseFromString(program.model)
    return model


def _opset(model: ModelProto) -> int:
    return max((opset.version for opset in model.opset_import if opset.domain in ("", "ai.onnx")), default=0)


def _version_in(spec: Spec, opset: int) -> int:
    """Return the version of an operator in an opset. Raises ValueError if it is newer."""
    return max(int(key) for key in spec.versions if int(key) <= opset)


def admitted_by_own_version(program: ModelProgram, inputs: Sequence[Array], library: Library) -> Expectation | None:
    """Return what the text of a node's version in its model's opset admits, for a model of one node on tensors.

    Constants may be nodes. None if the suite does not cover the model, or if the version does not allow it.
    """
    model = _parsed(program)
    graph = model.graph
    constants = [n for n in graph.node if n.op_type == "Constant" and [a.name for a in n.attribute] == ["value"]]
    if len(graph.node) > 1:  # a converter writes what was an attribute as a constant
        for node in constants:
            graph.initializer.add().CopyFrom(node.attribute[0].t)
            graph.initializer[-1].name = node.output[0]
            graph.node.remove(node)
    if len(graph.node) != 1 or not program.is_plain:
        return None
    try:
        spec = library.spec(f"{program.operator.standard}/{graph.node[0].op_type}")
        version = _version_in(spec, _opset(model))
        stored = StoredCase(
            "",
            replace(program, operator=spec.versions[version].operator),
            model,
            tuple(
                StoredValue(feed.name, feed.type, [array], Structure("tensor", array.shape))
                for feed, array in zip(program.feeds, inputs, strict=True)
            ),
            tuple(StoredValue(output.name, output.type, [], Structure("tensor", ())) for output in program.answers),
        )
        if not _is_allowed(stored, library):
            return None
        answers = admitted(stored, library)
    except Exception:  # an operator without a spec, an input or a shape that the formula does not know
        return None
    return None if answers.invalid else answers.expectation


def version_of_kept_node(
    program: Program, converted: ModelProgram, library: Library, shapes: Callable[[], Shapes]
) -> VersionSpec | None:
    """Return the version that a program's node has after a conversion that changes the opset and nothing else.

    None if the conversion changes more, if that version does not allow the node, or if another node, such as one in a
    body, has another version than before. It may declare the outputs' shapes if they are `shapes`.
    """
    from ..cases.onnx_model import onnx_model  # noqa: PLC0415 - it imports onnx

    before, after = onnx_model(program), _parsed(converted)
    if after.functions or before.ir_version != after.ir_version or not _is_same_graph(before.graph, after.graph):
        return None
    if before.graph.output != after.graph.output and not _declares(before.graph, after.graph, shapes()):
        return None
    own, opsets = program.operator, (_opset(before), _opset(after))
    nodes = list(_nodes(before.graph))
    try:
        specs = {node.op_type: library.spec(f"{own.standard}/{node.op_type}") for node in nodes}
        versions = {name: [spec.versions[_version_in(spec, n)] for n in opsets] for name, spec in specs.items()}
    except (UnknownOperator, ValueError):
        return None
    others_change = any(old is not new for name, (old, new) in versions.items() if name != own.name)
    if others_change or any(node.domain not in ("", "ai.onnx") for node in nodes):
        return None
    version = versions[own.name][1]
    types = {i.name: i.type for i in program.given} | {o.name: o.type for o in program.answers}
    alike = [node for node in nodes if node.op_type == own.name]
    allowed = version.operator == own or all(_allows(version.signature, node, types) for node in alike)
    return version if allowed and not version.signature.deprecated else None


def _is_same_graph(before: GraphProto, after: GraphProto) -> bool:
    """Return whether graphs have the same nodes, constants, inputs and declared values; nodes' names do not count."""

    def written(messages: Iterable[Message]) -> list[bytes]:
        return [message.SerializeToString(deterministic=True) for message in messages]

    def nodes(graph: GraphProto) -> Iterator[tuple[object, ...]]:
        for node in graph.node:
            attributes = sorted(written(node.attribute))
            yield node.op_type, node.domain, node.overload, [*node.input], [*node.output], attributes

    return (
        len(before.node) == len(after.node)
        and all(map(operator.eq, nodes(before), nodes(after)))
        and sorted(written(before.initializer)) == sorted(written(after.initializer))
        and written(before.input) == written(after.input)
        and written(before.value_info) == written(after.value_info)
        and not (before.sparse_initializer or after.sparse_initializer)
    )


def _declares(before: GraphProto, after: GraphProto, shapes: Shapes) -> bool:
    """Return whether a graph's outputs have the names and types of another's, all tensors, and these shapes."""
    if not len(before.output) == len(after.output) == len(shapes):
        return False
    for old, new, shape in zip(before.output, after.output, shapes, strict=True):
        was, is_ = old.type.tensor_type, new.type.tensor_type
        same = (old.name, was.elem_type) == (new.name, is_.elem_type) and new.type.HasField("tensor_type")
        dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in is_.shape.dim]
        fits = shape is not None and len(dims) == len(shape)
        fits = fits and all(dim in (None, size) for dim, size in zip(dims, shape or (), strict=True))
        if old != new and not (same and (fits or not is_.HasField("shape"))):
            return False
    return True


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield the nodes of a graph, and those in their bodies."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body)


def _unknown_attribute(node: NodeProto, spec: Spec, version: VersionSpec) -> str:
    """Return an attribute of a node, or a word of one, that its version does not have; empty if there is none."""
    for attribute in node.attribute:
        name, value = attribute.name, attribute.s.decode(errors="replace")
        if version.signature.attribute(name) is None:
            return f"{version.operator} has no attribute {name}"
        elsewhere = (value in other.parameters.get(name, {}).values() for other in spec.versions.values())
        if value and any(elsewhere) and value not in version.parameters.get(name, {}).values():
            return f"{version.operator} has no {name} {value}"
    return ""


def _unknown_to_signature(node: NodeProto, version: VersionSpec, types: Mapping[str, str]) -> str:
    """Return what a version does not have of a node, its inputs, outputs and types, in words; empty if nothing.

    Fewer inputs are right: ONNX's IR lets optional ones at the end be left out, whatever a page says of their number.
    """
    signature = version.signature
    if signature.deprecated:
        return f"{version.operator} is deprecated"
    for names, (_, most), what in (
        (node.input, signature.input_counts, "inputs"),
        (node.output, signature.output_counts, "outputs"),
    ):
        if most is not None and len(names) > most:
            return f"{version.operator} does not have {len(names)} {what}"
    for letter, type_ in sorted(_typed_ports(node, signature, types)):
        if letter in signature.types and type_ not in signature.types[letter]:
            return f"{version.operator} has no {type_} for {letter}"
    return ""


def _is_allowed(stored: StoredCase, library: Library) -> bool:
    """Return whether a version's signature has a model's attributes, inputs, outputs and their types."""
    node, _, version = _single(stored, library)
    return _allows(version.signature, node, _types_around(stored))


def _allows(signature: Signature, node: NodeProto, types: Mapping[str, str]) -> bool:
    """Return whether a signature has a node's attributes, inputs, outputs and their types, by name of the value.

    False for a node with bodies: nobody has checked what they declare.
    """
    attributes = {attribute.name: attribute.kind for attribute in map(attribute_from, node.attribute)}
    if {"graph", "graphs"} & {*attributes.values()}:
        return False
    counts = ((node.input, signature.input_counts), (node.output, signature.output_counts))
    given = {port.name for port, name in zip(signature.inputs, node.input, strict=False) if name}
    pairs = _typed_ports(node, signature, types)
    letters = [(letter, type_) for letter, type_ in pairs if letter in signature.types]
    return (
        all((known := signature.attribute(name)) and known.kind == kind for name, kind in attributes.items())
        and all(known.name in attributes for known in signature.attributes if known.required)
        and all(least <= len(names) and (most is None or len(names) <= most) for names, (least, most) in counts)
        and all(port.name in given for port in signature.inputs if port.option == "single")
        and len(letters) == len(dict(letters))
        and all(type_ in signature.types.get(letter, (letter,)) for letter, type_ in pairs)
    )


def _typed_ports(node: NodeProto, signature: Signature, types: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return the type of each port, a letter or a type, with the types of the values there, as far as known."""
    return frozenset(
        (ports[min(index, len(ports) - 1)].type, types[name])
        for names, ports in ((node.input, signature.inputs), (node.output, signature.outputs))
        for index, name in enumerate(names)
        if ports and name in types
    )


@dataclass(frozen=True)
class NodeFacts:
    """The operator version of a model of one node, the types of its type letters, and its attributes as given."""

    version: VersionSpec
    types: frozenset[tuple[str, str]]
    attributes: tuple[Attribute, ...]


def node_facts(stored: StoredCase, library: Library) -> NodeFacts:
    """Return what identifies a model of one node. Raises NotCovered, OpconformError for an unknown attribute kind."""
    node, _, version = _single(stored, library)
    typed_ports = _typed_ports(node, version.signature, _types_around(stored))
    letters = frozenset(pair for pair in typed_ports if pair[0] in version.signature.types)
    return NodeFacts(version, letters, tuple(map(attribute_from, node.attribute)))


def node_program(stored: StoredCase, library: Library) -> tuple[Program, list[Array]]:
    """Return a model of one node as a Program, and the arrays of its feeds.

    Raises NotCovered in the cases of `admitted`, and if an input or output is not a tensor.
    """
    node, _, version = _single(stored, library)
    values, fed = _values(stored.model.graph, stored), {value.name: value for value in stored.inputs}
    outputs = {value.name: value for value in stored.outputs}
    given = _Given(node, version, values)
    if given.captured or any(v.structure.kind != "tensor" for v in (*values.values(), *stored.outputs)):
        raise NotCovered("tensors are not all that goes in and out")
    if [name for name in node.output if name in outputs] != [*outputs]:
        raise NotCovered("the model's outputs are not in the order of the node's")
    program = Program(
        version.operator,
        tuple(map(attribute_from, node.attribute)),
        tuple(_input(values[name], constant=name not in fed) if name else None for name in node.input),
        tuple(
            Output(name, outputs[name].type, outputs[name].arrays[0].ndim) if name in outputs else None
            for name in node.output
        ),
        stored.program.opset,
    )
    return program, [fed[value.name].arrays[0] for value in program.feeds]


def _input(value: StoredValue, *, constant: bool) -> Input:
    (array,) = value.arrays
    return Input(value.name, value.type, array.shape, content(array) if constant else None)


def _single(stored: StoredCase, library: Library) -> tuple[NodeProto, Spec, VersionSpec]:
    """Return the node of a model of one node, its spec and its version. Raises NotCovered."""
    graph = stored.model.graph
    if len(graph.node) != 1:
        raise NotCovered("a graph of several nodes")
    (node,), operator = graph.node, stored.program.operator
    try:
        spec, key = library.operator_version(str(operator))
    except UnknownOperator:
        raise NotCovered("an operator version without a spec") from None
    if node.domain not in ("", "ai.onnx") and node.domain != spec.domain:
        raise NotCovered(f"an operator of {node.domain}")
    return node, spec, spec.version(key)


def _recorded(function: Reference, facts: Facts, given: _Given) -> Recording:
    known: dict[str, Array] = {}
    while True:
        try:
            return record(function, facts, known)
        except Asks as asks:
            if asks.port in known:
                raise OpconformError(f"its reference asks for {asks.port} again") from None
            known[asks.port] = given.array(asks.port)


def _types_around(stored: StoredCase) -> dict[str, str]:
    """Return the types of the values around a model's node, by name."""
    values = (*_values(stored.model.graph, stored).values(), *stored.outputs)
    return {value.name: value.type for value in values}


def _values(graph: GraphProto, stored: StoredCase) -> dict[str, StoredValue]:
    """Return the values around a model's node, by name."""
    constants = (StoredValue.of_tensor(value.name, from_tensor_proto(value)) for value in graph.initializer)
    return {value.name: value for value in (*constants, *stored.inputs)}


class _Given:
    """The values that a node gets, by port, and the values around it."""

    def __init__(self, node: NodeProto, version: VersionSpec, values: Mapping[str, StoredValue]) -> None:
        self._version, self._node = version, node
        self.ports: dict[str, list[StoredValue] | None] = {}
        names = list(node.input)
        for port in version.signature.inputs:
            own, names = (names, []) if port.is_variadic else (names[:1], names[1:])
            self.ports[port.name] = [values[name] for name in own if name] or ([] if port.is_variadic else None)
        if any(names):
            raise OpconformError(f"{version.operator} has {len(self.ports)} inputs")
        self.attributes = {attribute.name: attribute.value for attribute in map(attribute_from, node.attribute)}
        self.captured = [values[name] for name in dict.fromkeys(self._free()) if name in values]

    def _free(self) -> Iterator[str]:
        """Yield the names that bodies use but do not define."""
        for body in self.attributes.values():
            if isinstance(body, Body):
                made = {input_.name for input_ in body.inputs} | {name for node in body.nodes for name in node.outputs}
                yield from (name for node in body.nodes for name in node.inputs if name not in made)

    def array(self, port: str) -> Array:
        """Return the first tensor that a port has."""
        several = self.ports[port] or []
        return several[0].arrays[0]

    def arrays(self) -> Iterator[Array]:
        """Yield all tensors, in port order."""
        for value in (*(stored for several in self.ports.values() for stored in several or ()), *self.captured):
            yield from value.arrays

    def facts(self, operator: str, stored: StoredCase) -> Facts:
        """Return the facts that the formula depends on, apart from data."""
        version = self._version
        floats = [type_of(array) for array in self.arrays()]
        return Facts(
            operator=operator,
            version=version.operator.version,
            ports={
                port.name: None if several is None else _port(several, port.is_variadic)
                for port, several in zip(version.signature.inputs, self.ports.values(), strict=True)
            },
            outputs=dict(self._outputs(stored)),
            attributes={**version.signature.defaults, **self.attributes},
            given=frozenset(self.attributes),
            silences=version.options,
            clauses=version.clause_ids,
            precision=version.budgets(floats),
            captured={value.name: _port([value], variadic=False) for value in self.captured},
            structures=dict(self._structures()),
        )

    def _structures(self) -> Iterator[tuple[str, Structure | tuple[Structure, ...]]]:
        variadic = {port.name for port in self._version.signature.inputs if port.is_variadic}
        for name, several in (*self.ports.items(), *((value.name, [value]) for value in self.captured)):
            if several and any(value.structure.kind != "tensor" for value in several):
                made = tuple(value.structure for value in several)
                yield name, made if name in variadic else made[0]

    def _outputs(self, stored: StoredCase) -> Iterator[tuple[str, str | None]]:
        """Yield the requested outputs with their stored types, None for one that is left out."""
        types, ports = {output.name: output.type for output in stored.outputs}, self._version.signature.outputs
        for index, name in enumerate(self._node.output):
            port = ports[min(index, len(ports) - 1)]
            own = f"{port.name}_{index - len(ports) + 1}" if port.is_variadic else port.name
            yield own, types.get(name)


def _port(several: list[StoredValue], variadic: bool) -> Port | tuple[Port, ...]:
    tensors = tuple(Port(type_of(array), array.shape) for value in several for array in value.arrays)
    return tensors[0] if not variadic and several[0].structure.kind == "tensor" else tensors
