"""Operator versions; programs, which a backend compiles; and structured types such as `seq(float32)`.

A value of a structured type is a flat list of tensors, and is nested on request.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from .elements import Array, canonical, content, element_type, element_types, from_content, type_of

Dims: TypeAlias = tuple[int | str, ...]
StructureKind: TypeAlias = Literal["tensor", "sequence", "optional", "map", "sparse"]

UNRANKED: Dims = ("...",)
"""The dims of an input whose rank a program does not declare."""

_WORDS: dict[str, StructureKind] = {"seq": "sequence", "optional": "optional", "map": "map", "sparse": "sparse"}
_EXPRESSION = re.compile(r"(seq|optional|map|sparse)\((.+)\)")
_KEYS = ("string", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class TypeExpression:
    """A type.

    `element` is the element type of a tensor, a sparse tensor or a map's values; a map's keys have type `key`.
    """

    kind: StructureKind
    element: str = ""
    key: str = ""
    of: TypeExpression | None = None

    def __str__(self) -> str:
        match self.kind:
            case "tensor":
                return self.element
            case "map":
                return f"map({self.key},{self.element})"
            case "sparse":
                return f"sparse({self.element})"
        return f"{'seq' if self.kind == 'sequence' else 'optional'}({self.of})"


@functools.cache
def parse_type(text: str) -> TypeExpression:
    """Return the type written as `float32`, `seq(float32)`, `optional(seq(float32))`, `map(int64,float32)` and so on.

    Raises ValueError for anything else. Element types are the ones that cases can have.
    """
    return _parsed(text, _DEEPEST)


def _parsed(text: str, depth: int) -> TypeExpression:
    if text in element_types():
        return TypeExpression("tensor", text)
    match = _EXPRESSION.fullmatch(text)
    if match is None or not depth:
        raise ValueError(f"{text!r} is not a type; expected float32, seq(float32), optional(seq(int64)) or the like")
    kind, inner = _WORDS[match[1]], match[2]
    if kind in ("sequence", "optional"):
        return TypeExpression(kind, of=_parsed(inner, depth - 1))
    key, _, element = inner.rpartition(",")
    element = element.strip()
    if element not in element_types() or (key in _KEYS) != (kind == "map"):
        raise ValueError(
            f"{text!r} is not a type: a map has integer or text keys and number or text values, as map(int64,float32)"
        )
    return TypeExpression(kind, element, key)


def is_tensor(text: str) -> bool:
    """Return whether a type is a dense tensor."""
    return "(" not in text


def element_names(text: str) -> tuple[str, ...]:
    """Return the element types in a type: one, or a map's key type and value type."""
    expression = parse_type(text)
    while expression.of is not None:
        expression = expression.of
    return (expression.key, expression.element) if expression.key else (expression.element,)


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of a value.

    A tensor or sparse tensor has `dims`, which are None if only the nesting matters. A sequence has its items, an
    optional has one item or none. A map has `count` entries, a sparse tensor `count` stored elements.
    """

    kind: StructureKind
    dims: Dims | None = None
    items: tuple[Structure, ...] = ()
    count: int = 0

    @property
    def outline(self) -> Structure:
        """Return the structure without dimensions, which is compared before shapes are."""
        return replace(self, dims=None, items=tuple(item.outline for item in self.items))

    def __str__(self) -> str:
        match self.kind:
            case "sequence":
                return f"a sequence of {len(self.items)}" + (
                    f" ({', '.join(map(str, self.items))})" if self.items else ""
                )
            case "optional":
                return f"an optional with {self.items[0]}" if self.items else "an empty optional"
            case "map":
                return f"a map of {self.count}"
            case "sparse":
                return f"a sparse tensor with {self.count} elements"
        return "a tensor" if self.dims is None else "x".join(map(str, self.dims)) or "scalar"


def tensor(*dims: int | str) -> Structure:
    """Return the structure of a tensor."""
    return Structure("tensor", dims)


def sequence(*items: Structure) -> Structure:
    """Return the structure of a sequence."""
    return Structure("sequence", items=items)


def optional(*element: Structure) -> Structure:
    """Return the structure of an optional, empty without an element."""
    return Structure("optional", items=element)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor within a value: its element type and dimensions (None: any)."""

    type: str
    dims: Dims | None


def leaves(type_: str, structure: Structure) -> tuple[Leaf, ...]:
    """Return the tensors of a value, in order: a map's keys and values, a sparse tensor's values and linear indices.

    Raises ValueError if the structure does not match the type.
    """
    return tuple(_leaves(parse_type(type_), structure))


def _leaves(expression: TypeExpression, structure: Structure) -> Iterator[Leaf]:
    if structure.kind != expression.kind or (structure.kind == "optional" and len(structure.items) > 1):
        raise ValueError(f"{structure} is not a value of type {expression}")
    match structure.kind:
        case "tensor":
            yield Leaf(expression.element, structure.dims)
        case "map":
            yield from (Leaf(expression.key, (structure.count,)), Leaf(expression.element, (structure.count,)))
        case "sparse":
            yield from (Leaf(expression.element, (structure.count,)), Leaf("int64", (structure.count,)))
        case _:
            for item in structure.items:
                yield from _leaves(held_by(expression), item)


def held_by(expression: TypeExpression) -> TypeExpression:
    """Return the type that a sequence or an optional holds; TypeError for another type."""
    if expression.of is None:
        raise TypeError(f"{expression} holds nothing")
    return expression.of


def nest(structure: Structure, arrays: Iterator[Any]) -> Any:
    """Return a value built from the next of `arrays`: an array, a list, None for an empty optional, a dict for a map.

    A sparse tensor is a tuple of values, linear indices and dimensions. In a formula's values, a map is a pair.
    """
    match structure.kind:
        case "sequence":
            return [nest(item, arrays) for item in structure.items]
        case "optional":
            return nest(structure.items[0], arrays) if structure.items else None
        case "map":
            keys, values = next(arrays), next(arrays)
            if not isinstance(keys, np.ndarray):
                return keys, values
            return dict(zip(keys.tolist(), values.tolist(), strict=True))
        case "sparse":
            return next(arrays), next(arrays), structure.dims
    return next(arrays)


def flatten(type_: str, value: Any) -> tuple[list[Array], Structure]:
    """Return the tensors of a value of a type, and its structure without dimensions; map entries are sorted by key.

    If the value's structure is not the type's, it is inferred from the value, so that the two can be compared: a list
    is a sequence, None an empty optional, a dict a map. Raises TypeError or ValueError for other objects.
    """
    arrays: list[Array] = []
    return arrays, _flatten(parse_type(type_), value, arrays, _DEEPEST)


def _flatten(expression: TypeExpression | None, value: Any, arrays: list[Array], depth: int) -> Structure:
    if not depth:
        raise ValueError("nested too deeply")
    held = expression.of if expression else None
    if value is None:
        return Structure("optional")
    if expression is not None and expression.kind == "optional":
        return Structure("optional", items=(_flatten(held, value, arrays, depth - 1),))
    if isinstance(value, dict):
        keys = sorted(value)
        names = (expression.key, expression.element) if expression is not None and expression.key else ("", "")
        arrays += [_column(n, entry) for n, entry in zip(names, (keys, [value[k] for k in keys]), strict=True)]
        return Structure("map", count=len(keys))
    if isinstance(value, (list, tuple)) and not (expression is not None and expression.kind == "tensor"):
        inner = held if expression is not None and expression.kind == "sequence" else None
        return Structure("sequence", items=tuple(_flatten(inner, entry, arrays, depth - 1) for entry in value))
    arrays.append(canonical(value))
    return Structure("tensor")


def _column(name: str, entries: Sequence[Any]) -> Array:
    """Return a map's keys or values: numbers and strings get the type's dtype, an array keeps its own."""
    if any(isinstance(entry, np.ndarray | np.generic) for entry in entries) or not name:
        return canonical(np.asarray(entries))
    if element_type(name).kind == "string":
        return canonical(np.array([*entries, ""], object)[:-1])
    return np.asarray(entries, element_type(name).dtype)


def nested_all(structures: Iterable[Structure], arrays: Iterable[Any]) -> list[Any]:
    """Return the values with these structures; ValueError if there are too few or too many arrays."""
    rest = iter(arrays)
    try:
        values = [nest(structure, rest) for structure in structures]
    except (StopIteration, RuntimeError):
        raise ValueError("fewer tensors than the program takes") from None
    if next(rest, None) is not None:
        raise ValueError("more tensors than the program takes")
    return values


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
"""Marks a field that is newer than existing keys: while it has its default, it is not part of the key."""
_FOLLOWS: Mapping[str, Any] = MappingProxyType({"follows": True})
"""Marks a field that follows from the rest of the program: it is not part of the key."""


@dataclass(frozen=True, slots=True)
class OperatorVersion:
    """One version of one operator of one standard, such as `onnx/ReduceMean-13`.

    `version` is `any` if the standard's page has no version (oneDNN Graph). `domain` is ONNX's, empty for ai.onnx.
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
    """A tensor as an attribute; `content` is in the form of `elements.content`."""

    type: str
    dims: tuple[int, ...]
    content: bytes

    @classmethod
    def of(cls, array: Array) -> Tensor:
        """Return the tensor with an array's content."""
        return cls(type_of(array), array.shape, content(array))

    def array(self) -> Array:
        """Return the elements."""
        return from_content(self.type, self.dims, self.content)


@dataclass(frozen=True, slots=True)
class SparseTensor:
    """A sparse tensor as an attribute, like ONNX's SparseTensorProto: `indices` are linear, or one row per element."""

    values: Tensor
    indices: Tensor
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a body: an operator version with names of values; an empty name is an omitted input or output."""

    operator: OperatorVersion
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[Attribute, ...] = ()


@dataclass(frozen=True, slots=True)
class Body:
    """A graph as an attribute. Its nodes may use names of the surrounding program, as `Program.captured` does.

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
    """A node attribute with its kind, which an empty list does not show. A type is written as an expression."""

    name: str
    kind: AttributeKind
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a program.

    `dims` holds numbers, and names of symbolic dimensions, or is UNRANKED. A constant (an ONNX initializer) has its
    content in `constant`, in the form of `elements.content`, and only numbers in `dims`. If `type` is not a tensor
    type, such as `seq(float32)`, the input has a `structure` and no dims. `strides` are the elements between neighbours
    along each axis, in memory; None is C order.
    """

    name: str
    type: str
    dims: Dims
    constant: bytes | None = None
    structure: Structure | None = field(default=None, metadata=_LATER)
    strides: tuple[int, ...] | None = field(default=None, metadata=_LATER)

    @property
    def layout(self) -> Structure:
        """Return the structure, also for a tensor."""
        return Structure("tensor", self.dims) if self.structure is None else self.structure

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Return the tensors of the input."""
        return leaves(self.type, self.layout)

    def array(self) -> Array:
        """Return a constant's content; TypeError for other inputs."""
        if self.constant is None:
            raise TypeError(f"input {self.name!r} is not a constant")
        return from_content(self.type, tuple(int(d) for d in self.dims), self.constant)


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a program; `rank` is None if admissible answers differ in rank or are not tensors.

    `shape` is what a model declares: the answer's shape for any input. It is None if the shape depends on the input, or
    if readings of the standard disagree on it. `free`: the backend may choose the order of its elements in memory.
    """

    name: str
    type: str
    rank: int | None
    shape: tuple[int, ...] | None = field(default=None, compare=False, metadata=_FOLLOWS)
    free: bool = field(default=False, metadata=_LATER)


@dataclass(frozen=True)
class Program:
    """A program for a backend: one operator version with attributes, input types and shapes. Cases share programs.

    `inputs` and `outputs` follow the signature; None is an omitted one (an empty name). Inputs with the same name are
    one tensor. `opset` is ONNX's, or None. `captured` are inputs of the graph that only bodies use. `around` has the
    nodes of the graph that come before the operator and read its inputs by name.
    """

    operator: OperatorVersion
    attributes: tuple[Attribute, ...]
    inputs: tuple[Input | None, ...]
    outputs: tuple[Output | None, ...]
    opset: int | None = None
    captured: tuple[Input, ...] = field(default=(), metadata=_LATER)
    around: Body | None = field(default=None, metadata=_LATER)

    @functools.cached_property
    def given(self) -> tuple[Input, ...]:
        """Return the inputs that are not omitted, each name once, captured ones last."""
        return tuple({i.name: i for i in (*self.inputs, *self.captured) if i is not None}.values())

    @functools.cached_property
    def feeds(self) -> tuple[Input, ...]:
        """Return the inputs that each run is given: all except constants and omitted ones, captured ones last."""
        return tuple(i for i in self.given if i.constant is None)

    @functools.cached_property
    def answers(self) -> tuple[Output, ...]:
        """Return the outputs that a run returns: all that are not omitted."""
        return tuple(o for o in self.outputs if o is not None)

    @functools.cached_property
    def named_leaves(self) -> tuple[tuple[str, Leaf], ...]:
        """Return the tensors that each run is given, in order, with names: `x`, or `s/0` inside a structured input."""
        return tuple(
            (feed.name if feed.structure is None else f"{feed.name}/{number}", leaf)
            for feed in self.feeds
            for number, leaf in enumerate(feed.leaves)
        )

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Return the tensors that each run is given, in order."""
        return tuple(leaf for _, leaf in self.named_leaves)

    def operands(self, arrays: Sequence[Array]) -> list[Array | None]:
        """Return the array of each of `inputs`, constants included, given the arrays of `leaves`.

        No input has structure.
        """
        fed = dict(zip((i.name for i in self.feeds), arrays, strict=True))
        return [None if i is None else fed[i.name] if i.constant is None else i.array() for i in self.inputs]

    @functools.cached_property
    def is_plain(self) -> bool:
        """Return whether all inputs and outputs are plain tensors."""
        types = [i.type for i in self.feeds] + [o.type for o in self.answers]
        return all(map(is_tensor, types))

    @functools.cached_property
    def key(self) -> str:
        """Return a digest of the content: programs with equal keys are equal."""
        return hashlib.sha256(_canonical(self).encode()).hexdigest()

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class ModelProgram(Program):
    """A program that is a whole ONNX model, which the backend gets as unchanged bytes.

    `inputs` are the graph inputs that a run is given, `outputs` the graph's outputs; `operator` is the operator of its
    only node, or `model` with the opset.
    """

    model: bytes = b""


def _canonical(value: Any) -> str:
    """Return a value as text: a dataclass without derived fields, and without newer fields at their defaults."""
    if type(value) is tuple:
        return f"({', '.join(map(_canonical, value))}{',' if len(value) == 1 else ''})"
    kind: Any = type(value)
    fields = _printed_fields(kind)
    if fields is None:
        return repr(value)
    texts = [
        f"{name}={_canonical(getattr(value, name))}"
        for name, later, default in fields
        if not later or getattr(value, name) != default
    ]
    return f"{type(value).__name__}({', '.join(texts)})"


@functools.cache
def _printed_fields(kind: type) -> tuple[tuple[str, bool, object], ...] | None:
    """Return the fields of a dataclass: name, whether it was added later, default; None for another type."""
    if not dataclasses.is_dataclass(kind):
        return None
    fields = (field for field in dataclasses.fields(kind) if "follows" not in field.metadata)
    return tuple((field.name, "later" in field.metadata, field.default) for field in fields)


def nested(program: Program, arrays: Sequence[Array]) -> list[Any]:
    """Return one value for each of `program.feeds`: an array, a list, None, a dict (see `nest`).

    Raises ValueError if there are too few or too many arrays.
    """
    return nested_all((feed.layout for feed in program.feeds), arrays)


def flat(program: Program, values: Sequence[Any]) -> tuple[list[Array], tuple[Structure, ...]]:
    """Return the tensors of a backend's answer, and the structure of each output without dimensions.

    Values beyond `program.answers` count as tensors. Raises TypeError or ValueError for other objects.
    """
    arrays: list[Array] = []
    structures: list[Structure] = []
    types = [o.type for o in program.answers]
    for number, value in enumerate(values):
        leaves, structure = flatten(types[number] if number < len(types) else "float32", value)
        arrays += leaves
        structures.append(structure)
    return arrays, tuple(structures)


def count(shape: tuple[int, ...]) -> int:
    """Return the number of elements of a tensor of this shape."""
    return math.prod(shape)
