"""A user's ONNX model: its nodes in order, made-up inputs by its signature, and the same model with more outputs."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases.elements import Array, element_type, from_tensor_proto, numbered, type_of
from ..cases.errors import OpconformError
from ..cases.program import Attribute, Input, ModelProgram, OperatorVersion, Output
from ..generators.operands import attribute_from
from ..specs.loader import Library

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

_LARGEST = (1 << 31) - (1 << 20)  # a message of protobuf has at most 2 GiB


@dataclass(frozen=True)
class ModelNode:
    """One node: its place in the model, its name, operator version (empty if no spec has it) and attributes.

    `where` is the path of the If or Loop that it is in, empty for the model's own nodes. `outer` has the names that its
    bodies take from around it. `unread`: why its attributes cannot be read, or empty.
    """

    index: int
    name: str
    op_type: str
    domain: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    outer: tuple[str, ...] = ()
    where: str = ""
    unread: str = ""

    @property
    def path(self) -> str:
        """The name with the path to it."""
        return f"{self.where}/{self.name}" if self.where else self.name

    @property
    def version(self) -> str:
        """The operator version, or the operator's own name if no spec has it."""
        return self.operator or (f"{self.domain}.{self.op_type}" if self.domain else self.op_type)


@dataclass(frozen=True)
class ReadModel:
    """A model as read: local functions inlined, weights of other files included."""

    proto: ModelProto
    where: str = ""

    @functools.cached_property
    def opsets(self) -> Mapping[str, int]:
        """The opset of each domain."""
        return {_domain(entry.domain): int(entry.version) for entry in self.proto.opset_import}

    @functools.cached_property
    def constants(self) -> dict[str, Array]:
        """The initializers, by name."""
        return {tensor.name: from_tensor_proto(tensor) for tensor in self.proto.graph.initializer}

    @functools.cached_property
    def fed(self) -> tuple[Any, ...]:
        """The graph's inputs that a run is given."""
        known = {tensor.name for tensor in self.proto.graph.initializer}
        return tuple(value for value in self.proto.graph.input if value.name not in known)

    def nodes(self, library: Library) -> list[ModelNode]:
        """Return the nodes in the model's order, which is one in which they can be computed."""
        made = [_node(index, node, self, library) for index, node in enumerate(self.proto.graph.node)]
        names = Counter(node.name for node in made)
        return [node if names[node.name] == 1 else replace(node, name=f"{node.name}_{node.index}") for node in made]

    def made_up(self, seed: int, dims: Mapping[str, int]) -> dict[str, Array]:
        """Return inputs by the model's own signature: normal numbers, whole numbers 0 and 1, by `seed`.

        `dims` has the extent of symbolic dimensions; others are 1. Raises OpconformError for inputs without a shape.
        """
        draw = np.random.default_rng(seed)
        return {value.name: _drawn(value, draw, dims) for value in self.fed}

    def check(self, arrays: Mapping[str, Array]) -> None:
        """Raise OpconformError unless arrays have the names and types of the inputs."""
        names = [value.name for value in self.fed]
        for name in arrays:
            if name not in names:
                raise OpconformError(f"the model has no input {name!r}; it has {', '.join(names) or 'none'}")
        for value in self.fed:
            if value.name not in arrays:
                raise OpconformError(f"the input {value.name!r} is missing; the model has {', '.join(names)}")

    @functools.cached_property
    def types(self) -> Mapping[str, str]:
        """The type expressions of values, as far as shape inference knows them."""
        return {value.name: type_ for value in self._inferred if (type_ := _type(value.type)) is not None}

    def sizes(self, arrays: Mapping[str, Array]) -> dict[str, int]:
        """Return the bytes of values for inputs of these shapes, as far as shape inference knows them."""
        from onnx import ModelProto, TensorShapeProto  # noqa: PLC0415 - it takes long

        made = ModelProto()
        made.CopyFrom(self.proto)
        for value in made.graph.input:
            if value.name in arrays and value.type.HasField("tensor_type"):
                fixed = [TensorShapeProto.Dimension(dim_value=extent) for extent in arrays[value.name].shape]
                value.type.tensor_type.shape.CopyFrom(TensorShapeProto(dim=fixed))
        sizes = {}
        for value in _inferred(made):
            dims = value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ()
            known = numbered(value.type.tensor_type.elem_type)
            if known is not None and all(dim.HasField("dim_value") for dim in dims):
                sizes[value.name] = math.prod(dim.dim_value for dim in dims) * max(1, known.bits // 8)
        return sizes

    @functools.cached_property
    def ranks(self) -> Mapping[str, int]:
        """The ranks of values, as far as shape inference knows them."""
        own = {name: array.ndim for name, array in self.constants.items()}
        return own | {
            value.name: len(value.type.tensor_type.shape.dim)
            for value in self._inferred
            if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape")
        }

    @functools.cached_property
    def _inferred(self) -> tuple[Any, ...]:
        return _inferred(self.proto)

    def with_outputs(self, names: Sequence[str], arrays: Mapping[str, Array]) -> tuple[ModelProgram, tuple[Array, ...]]:
        """Return a program of the model with these outputs, and its feeds. Raises OpconformError for a huge model."""
        from onnx import ModelProto, ValueInfoProto  # noqa: PLC0415 - as above

        made = ModelProto()
        made.CopyFrom(self.proto)
        del made.graph.output[:]
        declared = {value.name: value for value in self._inferred}
        for name in names:
            output = ValueInfoProto(name=name)
            if name in declared:
                output.type.CopyFrom(declared[name].type)
                if output.type.HasField("tensor_type"):
                    output.type.tensor_type.ClearField("shape")  # what inference says of it may be wrong
            made.graph.output.append(output)
        if made.ByteSize() > _LARGEST:
            raise OpconformError("the model with its weights exceeds 2 GiB, the most that one message can have")
        inputs = tuple(
            Input(value.name, _type(value.type) or "float32", arrays[value.name].shape) for value in self.fed
        )
        outputs = tuple(Output(name, self.types.get(name, "float32"), None) for name in names)
        opset = self.opsets.get("", 0)
        operator = OperatorVersion("onnx", "model", opset)
        program = ModelProgram(operator, (), inputs, outputs, opset, model=made.SerializeToString())
        return program, tuple(arrays[value.name] for value in self.fed)

    def body(
        self, node: ModelNode, attribute: str, values: Mapping[str, Any], inputs: Sequence[Any]
    ) -> tuple[ReadModel, dict[str, Array]] | None:
        """Return a body of a node as a model, whose outer values are inputs, and its inputs.

        None if some are no tensors.
        """
        from onnx import ModelProto, helper  # noqa: PLC0415 - as above

        proto = self.proto.graph.node[node.index]
        graph = next((stored.g for stored in proto.attribute if stored.name == attribute), None)
        if graph is None:
            return None
        made = ModelProto()
        made.CopyFrom(self.proto)
        made.graph.CopyFrom(graph)
        fed = dict(zip((value.name for value in graph.input), inputs, strict=False))
        outer = {name: values[name] for name in _free(graph) if name in values}
        if not all(isinstance(value, np.ndarray) for value in (*fed.values(), *outer.values())):
            return None
        del made.graph.input[:]
        arrays = fed | outer
        for name, array in arrays.items():
            made.graph.input.append(helper.make_tensor_value_info(name, element_type(type_of(array)).onnx, array.shape))
        where = f"{node.path}/{attribute.removesuffix('_branch')}"
        return ReadModel(made, where), arrays


def read_model(path: Path) -> ReadModel:
    """Return the model of a file, with weights that are in other files. Raises OpconformError if it cannot be read."""
    import onnx  # noqa: PLC0415 - it takes long
    import onnx.inliner  # noqa: PLC0415

    try:
        proto = onnx.load(str(path))
    except Exception as error:  # protobuf's, onnx's and the system's errors
        raise OpconformError(f"{path}: cannot be read as an ONNX model: {error}") from None
    if not proto.graph.node:
        raise OpconformError(f"{path}: has no nodes; expected an ONNX model")
    if proto.functions:
        proto = onnx.inliner.inline_local_functions(proto)
    return ReadModel(proto)


def _inferred(proto: ModelProto) -> tuple[Any, ...]:
    """Return the values of a model's graph with the types and shapes that inference finds."""
    from onnx import shape_inference  # noqa: PLC0415 - as above

    try:
        graph = shape_inference.infer_shapes(proto, data_prop=True).graph
    except Exception:  # it refuses some valid models, and what it knows is only of help
        graph = proto.graph
    return (*graph.value_info, *graph.input, *graph.output)


def read_inputs(path: Path) -> dict[str, Array]:
    """Return the arrays of a NumPy archive. Raises OpconformError if it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise OpconformError(
            f"{path}: expected a NumPy archive (.npz) of the model's inputs by name: {error}"
        ) from None


def operator_name(op_type: str, domain: str, opset: int, library: Library) -> str:
    """Return the version of an operator that an opset means, as `onnx/Conv-11`; empty if no spec has it."""
    name = f"onnx/{op_type}"
    if name not in library.operators():
        return ""
    spec = library.spec(name)
    if spec.domain != domain:
        return ""
    versions = [key for key in spec.versions if isinstance(key, int) and key <= opset]
    return f"{name}-{max(versions)}" if versions else ""


def _node(index: int, node: NodeProto, model: ReadModel, library: Library) -> ModelNode:
    domain = _domain(node.domain)
    attributes: tuple[Attribute, ...] = ()
    unread = ""
    try:
        attributes = tuple(map(attribute_from, node.attribute))
    except (OpconformError, ValueError) as error:
        unread = str(error)
    outer = dict.fromkeys(name for attribute in node.attribute for graph in _graphs(attribute) for name in _free(graph))
    return ModelNode(
        index,
        node.name or f"{node.op_type}_{index}",
        node.op_type,
        domain,
        operator_name(node.op_type, domain, model.opsets.get(domain, 0), library),
        tuple(node.input),
        tuple(node.output),
        attributes,
        tuple(outer),
        model.where,
        unread,
    )


def _graphs(attribute: Any) -> Iterator[GraphProto]:
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def _free(graph: GraphProto) -> Iterator[str]:
    """Yield the names that a graph uses and does not define."""
    made = {value.name for value in (*graph.input, *graph.initializer)}
    made.update(name for node in graph.node for name in node.output)
    used: dict[str, None] = {}
    for node in graph.node:
        used.update(dict.fromkeys(node.input))
        for attribute in node.attribute:
            for inner in _graphs(attribute):
                used.update(dict.fromkeys(_free(inner)))
    used.update(dict.fromkeys(value.name for value in graph.output))
    yield from (name for name in used if name and name not in made)


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _type(type_proto: Any) -> str | None:
    """Return a type as an expression, None if it is unknown."""
    match type_proto.WhichOneof("value"):
        case "tensor_type":
            known = numbered(type_proto.tensor_type.elem_type)
            return known.name if known else None
        case "sequence_type":
            inner = _type(type_proto.sequence_type.elem_type)
            return inner and f"seq({inner})"
        case "optional_type":
            inner = _type(type_proto.optional_type.elem_type)
            return inner and f"optional({inner})"
    return None


def _drawn(value: Any, draw: np.random.Generator, dims: Mapping[str, int]) -> Array:
    type_ = _type(value.type)
    if type_ is None or "(" in type_:
        raise OpconformError(f"the input {value.name!r} is no tensor: give the inputs in a file")
    shape = tuple(_extent(dim, dims) for dim in value.type.tensor_type.shape.dim)
    element = element_type(type_)
    if element.kind == "string":
        return np.full(shape, "a", object)
    if element.kind == "float":
        return draw.standard_normal(shape).astype(element.dtype)
    if element.kind == "complex":
        return (draw.standard_normal(shape) + 1j * draw.standard_normal(shape)).astype(element.dtype)
    return draw.integers(0, 2, shape).astype(element.dtype)


def _extent(dim: Any, dims: Mapping[str, int]) -> int:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return dims.get(dim.dim_param, 1)


def chunks(nodes: Iterable[ModelNode], sizes: Mapping[str, int], most: int) -> Iterator[list[ModelNode]]:
    """Yield the nodes in groups whose inputs and outputs take at most about `most` bytes together."""
    group: list[ModelNode] = []
    held: set[str] = set()
    for node in nodes:
        own = {*node.inputs, *node.outputs, *node.outer}
        if group and sum(sizes.get(name, 0) for name in held | own) > most:
            yield group
            group, held = [], set()
        group.append(node)
        held |= own
    if group:
        yield group
