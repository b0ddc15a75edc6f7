"""Operator versions and programs, what a backend compiles, and types with structure such as `seq(float32)`.

Values of such types are flat lists of tensors, nested for those who ask.
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

from .elements import (
    Array,
    canonical,
    content,
    element_type,
    element_types,
    from_content,
    type_of,
)

Dims: TypeAlias = tuple[int | str, ...]
StructureKind: TypeAlias = Literal["tensor", "sequence", "optional", "map", "sparse"]

_WORDS: dict[str, StructureKind] = {"seq": "sequence", "optional": "optional", "map": "map", "sparse": "sparse"}
_EXPRESSION = re.compile(r"(seq|optional|map|sparse)\((.+)\)")
_KEYS = ("string", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class TypeExpression:
    """A type: `element` is that of a tensor, of a sparse tensor, or of a map's values, whose keys have type `key`.

    `of` is what a sequence or an optional holds.
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
    """Return the type that `float32`, `seq(float32)`, `optional(seq(float32))`, `map(int64,float32)` or so writes.

    ValueError for anything else; element types are those of cases.
    """
    return _parsed(text, _DEEPEST)


def _parsed(text: str, depth: int) -> TypeExpression:
    if text in element_types():
        return TypeExpression("tensor", text)
    match = _EXPRESSION.fullmatch(text)
    if match is None or not depth:
        raise ValueError(f"{text!r} is no type; expected float32, seq(float32), optional(seq(int64)) or the like")
    kind, inner = _WORDS[match[1]], match[2]
    if kind in ("sequence", "optional"):
        return TypeExpression(kind, of=_parsed(inner, depth - 1))
    key, _, element = inner.rpartition(",")
    element = element.strip()
    if element not in element_types() or (key in _KEYS) != (kind == "map"):
        raise ValueError(
            f"{text!r} is no type: a map is from integers or text to numbers or text, as map(int64,float32)"
        )
    return TypeExpression(kind, element, key)


def is_tensor(text: str) -> bool:
    """Return whether a type is that of a dense tensor."""
    return "(" not in text


def element_names(text: str) -> tuple[str, ...]:
    """Return the element types that a type is made of: one, and a map's keys before its values."""
    expression = parse_type(text)
    while expression.of is not None:
        expression = expression.of
    return (expression.key, expression.element) if expression.key else (expression.element,)


@dataclass(frozen=True, slots=True)
class Structure:
    """What a value consists of.

    A tensor or a sparse one has `dims`, None where only the nesting matters. A sequence has its items, an optional one
    or none. A map has `count` entries, a sparse tensor `count` elements that are given.
    """

    kind: StructureKind
    dims: Dims | None = None
    items: tuple[Structure, ...] = ()
    count: int = 0

    @property
    def outline(self) -> Structure:
        """The same without dimensions, by which answers are compared before their shapes."""
        return replace(self, dims=None, items=tuple(one.outline for one in self.items))

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
    """A tensor of a value: its element type and dimensions (None: any)."""

    type: str
    dims: Dims | None


def leaves(type_: str, structure: Structure) -> tuple[Leaf, ...]:
    """Return the tensors of a value, in order: a map's keys and values, a sparse tensor's values and linear indices.

    ValueError if the structure is none of the type.
    """
    return tuple(_leaves(parse_type(type_), structure))


def _leaves(expression: TypeExpression, structure: Structure) -> Iterator[Leaf]:
    if structure.kind != expression.kind or (structure.kind == "optional" and len(structure.items) > 1):
        raise ValueError(f"{structure} is no value of type {expression}")
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
    """Return what a sequence or an optional holds; TypeError for another type."""
    if expression.of is None:
        raise TypeError(f"{expression} holds nothing")
    return expression.of


def nest(structure: Structure, arrays: Iterator[Any]) -> Any:
    """Return a value made of the next of `arrays`: an array, a list, None for an empty optional, a dict for a map.

    A sparse tensor is a tuple of values, linear indices and dimensions. Of a formula's values, a map is a pair.
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
    """Return the tensors of a value of a type, and its structure without dimensions; a map's entries sorted by keys.

    A value of another structure than the type's is taken as it looks, so that it can be compared: a list is a
    sequence, None an empty optional, a dict a map. TypeError or ValueError for what is none of these.
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
        arrays += [_column(n, one) for n, one in zip(names, (keys, [value[k] for k in keys]), strict=True)]
        return Structure("map", count=len(keys))
    if isinstance(value, (list, tuple)) and not (expression is not None and expression.kind == "tensor"):
        inner = held if expression is not None and expression.kind == "sequence" else None
        return Structure("sequence", items=tuple(_flatten(inner, one, arrays, depth - 1) for one in value))
    arrays.append(canonical(value))
    return Structure("tensor")


def _column(name: str, entries: Sequence[Any]) -> Array:
    """Return a map's keys or values: what is a number or a text takes the type's dtype, an array keeps its own."""
    if any(isinstance(one, np.ndarray | np.generic) for one in entries) or not name:
        return canonical(np.asarray(entries))
    if element_type(name).kind == "string":
        return canonical(np.array([*entries, ""], object)[:-1])
    return np.asarray(entries, element_type(name).dtype)


def nested_all(structures: Iterable[Structure], arrays: Iterable[Any]) -> list[Any]:
    """Return the values with these structures; ValueError if there are too few or too many arrays for them."""
    rest = iter(arrays)
    try:
        found = [nest(one, rest) for one in structures]
    except (StopIteration, RuntimeError):
        raise ValueError("fewer tensors than the program is given") from None
    if next(rest, None) is not None:
        raise ValueError("more tensors than the program is given")
    return found


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
_FOLLOWS: Mapping[str, Any] = MappingProxyType({"follows": True})
"""Marks a field that follows from the rest of the program: it is no part of the key."""


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
    """A node attribute with its kind, which an empty list does not show. A type is written as an expression."""

    name: str
    kind: AttributeKind
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a program.

    `dims` holds numbers, and names of symbolic dimensions. A constant (an ONNX initializer) has its content in
    `constant`, as `elements.content` writes it, and its dims are numbers. If `type` is not a tensor type, such as
    `seq(float32)`, the input has a `structure` and no dims.
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
    """An output of a program; `rank` is None where admissible answers differ in rank, or are no tensors.

    `shape` is what a model declares: that of the answer whatever the program is fed; None where it hangs on that, or
    readings of the standard differ in it.
    """

    name: str
    type: str
    rank: int | None
    shape: tuple[int, ...] | None = field(default=None, compare=False, metadata=_FOLLOWS)


@dataclass(frozen=True)
class Program:
    """A program for a backend: one operator version with attributes, input types and shapes. Cases share programs.

    `inputs` and `outputs` follow the signature; None is one left out by an empty name. Inputs with the same name are
    one tensor. `opset` is ONNX's, or None. `captured` are inputs of the graph that only bodies use. `around` has the
    nodes of the graph that come before the operator and take its inputs by name.
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
        """The inputs that are not omitted, each name once; captured ones last."""
        return tuple({i.name: i for i in (*self.inputs, *self.captured) if i is not None}.values())

    @functools.cached_property
    def feeds(self) -> tuple[Input, ...]:
        """The inputs that are given at each run: all but constants and omitted ones; captured ones last."""
        return tuple(i for i in self.given if i.constant is None)

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

    def operands(self, arrays: Sequence[Array]) -> list[Array | None]:
        """Return the array of each of `inputs`, with constants, for the arrays of `leaves`. No input has structure."""
        fed = dict(zip((i.name for i in self.feeds), arrays, strict=True))
        return [None if i is None else fed[i.name] if i.constant is None else i.array() for i in self.inputs]

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
    """A program that is a whole ONNX model, which a backend gets as unchanged bytes.

    `inputs` and `outputs` are the fed inputs and the outputs of its graph; `operator` is the operator of its only
    node, or `model` with the opset.
    """

    model: bytes = b""


def _canonical(value: Any) -> str:
    """Return a value as text: a dataclass without fields that follow, and later ones at their defaults."""
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
    told = (one for one in dataclasses.fields(kind) if "follows" not in one.metadata)
    return tuple((one.name, "later" in one.metadata, one.default) for one in told)


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
