"""Operator versions and programs: what a backend compiles."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from .elements import Array, content, from_content, type_of
from .structures import Dims, Leaf, Structure, flatten, is_tensor, leaves, nested_all

NO_VERSION = "any"

AttributeKind: TypeAlias = Literal[
    "int",
    "float",
    "string",
    "ints",
    "floats",
    "strings",
    "tensor",
    "tensors",
    "sparse_tensor",
    "sparse_tensors",
    "type_proto",
    "type_protos",
    "graph",
    "graphs",
    "boolean",
    "bool",
    "s64",
    "s64s",
    "f32",
    "f32s",
]

_LATER: Mapping[str, Any] = MappingProxyType({"later": True})
"""Marks a field that was added when programs had keys already: at its default it is no part of the key."""


@dataclass(frozen=True, slots=True)
class OperatorVersion:
    """One version of one operator of one standard, such as `onnx/ReduceMean-13`.

    `version` is `any` where the standard's page carries none (oneDNN Graph). `domain` is ONNX's, empty for ai.onnx.
    """

    standard: str
    name: str
    version: int | str
    domain: str = ""

    def __str__(self) -> str:
        operator = f"{self.standard}/{self.name}"
        return operator if self.version == NO_VERSION else f"{operator}-{self.version}"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor as an attribute; `content` is as `elements.content` writes it."""

    type: str
    dims: tuple[int, ...]
    content: bytes

    @classmethod
    def of(cls, array: Array) -> Tensor:
        """Return the tensor that holds what an array holds."""
        return cls(type_of(array), array.shape, content(array))

    def array(self) -> Array:
        """Return the elements."""
        return from_content(self.type, self.dims, self.content)


@dataclass(frozen=True, slots=True)
class SparseTensor:
    """A sparse tensor as an attribute, as ONNX's SparseTensorProto: `indices` are linear, or one row an element."""

    values: Tensor
    indices: Tensor
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a body: an operator version with names of values, empty where an input or output is left out."""

    operator: OperatorVersion
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[Attribute, ...] = ()


@dataclass(frozen=True, slots=True)
class Body:
    """A graph as an attribute. Its nodes may use names of the program around it, as those of `Program.captured`.

    Inputs with a constant are initializers.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    nodes: tuple[Node, ...]


AttributeScalar: TypeAlias = int | float | str | Tensor | SparseTensor | Body
AttributeValue: TypeAlias = (
    AttributeScalar
    | tuple[int, ...]
    | tuple[float, ...]
    | tuple[str, ...]
    | tuple[Tensor, ...]
    | tuple[SparseTensor, ...]
    | tuple[Body, ...]
)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A node attribute with its kind, which an empty list alone does not tell. A type is written as an expression."""

    name: str
    kind: AttributeKind
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a program.

    `dims` holds numbers, and names for symbolic dimensions. A constant (an ONNX initializer) carries its content in
    `constant`, as `elements.content` writes it; its dims are numbers. An input whose `type` is no tensor's, such as
    `seq(float32)`, has a `structure` and no dims.
    """

    name: str
    type: str
    dims: Dims
    constant: bytes | None = None
    structure: Structure | None = field(default=None, metadata=_LATER)

    @property
    def layout(self) -> Structure:
        """The structure, of a tensor too."""
        return Structure("tensor", self.dims) if self.structure is None else self.structure

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The tensors that it consists of."""
        return leaves(self.type, self.layout)

    def array(self) -> Array:
        """Return a constant's content; TypeError for another input."""
        if self.constant is None:
            raise TypeError(f"input {self.name!r} is no constant")
        return from_content(self.type, tuple(int(d) for d in self.dims), self.constant)


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a program; `rank` is None where admissible answers differ in rank, or are no tensors."""

    name: str
    type: str
    rank: int | None


@dataclass(frozen=True)
class Program:
    """What a backend compiles: one operator version with attributes, input types and shapes. Cases share programs.

    `inputs` and `outputs` are in the signature's order; None stands for one left out by an empty name. `opset` is
    ONNX's, None elsewhere. `captured` are inputs of the graph that only bodies use.
    """

    operator: OperatorVersion
    attributes: tuple[Attribute, ...]
    inputs: tuple[Input | None, ...]
    outputs: tuple[Output | None, ...]
    opset: int | None = None
    captured: tuple[Input, ...] = field(default=(), metadata=_LATER)

    @functools.cached_property
    def feeds(self) -> tuple[Input, ...]:
        """The inputs that are given at each run: all but constants and omitted ones; captured ones last."""
        return tuple(i for i in (*self.inputs, *self.captured) if i is not None and i.constant is None)

    @functools.cached_property
    def answers(self) -> tuple[Output, ...]:
        """The outputs that are asked for: all but those left out."""
        return tuple(o for o in self.outputs if o is not None)

    @functools.cached_property
    def named_leaves(self) -> tuple[tuple[str, Leaf], ...]:
        """The tensors that are given at each run, in order, with names: `x`, or `s/0` of an input with structure."""
        return tuple(
            (feed.name if feed.structure is None else f"{feed.name}/{place}", leaf)
            for feed in self.feeds
            for place, leaf in enumerate(feed.leaves)
        )

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The tensors that are given at each run, in order: those of the feeds."""
        return tuple(leaf for _, leaf in self.named_leaves)

    @functools.cached_property
    def is_plain(self) -> bool:
        """Whether all that goes in and out are tensors, one a feed and one an answer."""
        types = [i.type for i in self.feeds] + [o.type for o in self.answers]
        return all(map(is_tensor, types))

    @functools.cached_property
    def key(self) -> str:
        """A digest of the content: programs with equal keys are equal."""
        return hashlib.sha256(_canonical(self).encode()).hexdigest()

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class ModelProgram(Program):
    """A program that comes as a whole ONNX model, whose bytes are put to a backend as they are.

    `inputs` and `outputs` are those of its graph that are fed and answered; `operator` is that of its only node, or
    `model` with the opset.
    """

    model: bytes = b""


def _canonical(value: Any) -> str:
    """Return a value as text: a dataclass with its fields but those added later that are at their defaults."""
    if type(value) is tuple:
        return f"({', '.join(map(_canonical, value))}{',' if len(value) == 1 else ''})"
    kind: Any = type(value)
    fields = _told_fields(kind)
    if fields is None:
        return repr(value)
    told = [
        f"{name}={_canonical(getattr(value, name))}"
        for name, later, default in fields
        if not later or getattr(value, name) != default
    ]
    return f"{type(value).__name__}({', '.join(told)})"


@functools.cache
def _told_fields(kind: type) -> tuple[tuple[str, bool, object], ...] | None:
    """Return the fields of a dataclass: name, whether it was added later, default; None for another type."""
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple((one.name, "later" in one.metadata, one.default) for one in dataclasses.fields(kind))


def nested(program: Program, arrays: Sequence[Array]) -> list[Any]:
    """Return one value for each of `program.feeds`: an array, a list, None, a dict (see `structures.nest`).

    ValueError if there are too few or too many arrays.
    """
    return nested_all((feed.layout for feed in program.feeds), arrays)


def flat(program: Program, values: Sequence[Any]) -> tuple[list[Array], tuple[Structure, ...]]:
    """Return the tensors of what a backend answered, and the structure of each answer without dimensions.

    Values beyond `program.answers` count as tensors. TypeError or ValueError for what is no value.
    """
    arrays: list[Array] = []
    structures: list[Structure] = []
    types = [o.type for o in program.answers]
    for place, value in enumerate(values):
        found, structure = flatten(types[place] if place < len(types) else "float32", value)
        arrays += found
        structures.append(structure)
    return arrays, tuple(structures)


def count(shape: tuple[int, ...]) -> int:
    """Return how many elements a tensor of this shape has."""
    return math.prod(shape)
