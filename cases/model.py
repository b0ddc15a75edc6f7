"""Operator versions, programs and cases: what a backend is given."""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from .elements import Array, element_type

if TYPE_CHECKING:
    from .expectation import Expectation

AttributeValue: TypeAlias = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]
AttributeKind: TypeAlias = Literal[
    "int", "float", "string", "ints", "floats", "strings", "boolean", "bool", "s64", "s64s", "f32", "f32s"
]
Dims: TypeAlias = tuple[int | str, ...]

NO_VERSION = "any"


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
class Attribute:
    """A node attribute with its type, which an empty list alone does not tell."""

    name: str
    kind: AttributeKind
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a program.

    `dims` holds numbers, and names for symbolic dimensions. A constant (an ONNX initializer) carries its content in
    `constant`, little-endian and in C order; its dims are numbers.
    """

    name: str
    type: str
    dims: Dims
    constant: bytes | None = None

    def array(self) -> Array:
        """Return a constant's content; TypeError for another input."""
        if self.constant is None:
            raise TypeError(f"input {self.name!r} is no constant")
        shape = tuple(int(d) for d in self.dims)
        return np.frombuffer(self.constant, element_type(self.type).dtype).reshape(shape)


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a program; `rank` is None where admissible answers differ in rank."""

    name: str
    type: str
    rank: int | None


@dataclass(frozen=True)
class Program:
    """What a backend compiles: one operator version with attributes, input types and shapes. Cases share programs.

    `inputs` are in the signature's order; None stands for an optional input left out by an empty name. `opset` is
    ONNX's, None elsewhere.
    """

    operator: OperatorVersion
    attributes: tuple[Attribute, ...]
    inputs: tuple[Input | None, ...]
    outputs: tuple[Output, ...]
    opset: int | None = None

    @property
    def feeds(self) -> tuple[Input, ...]:
        """The inputs that are given at each run: all but constants and omitted ones."""
        return tuple(i for i in self.inputs if i is not None and i.constant is None)

    @functools.cached_property
    def key(self) -> str:
        """A digest of the content: programs with equal keys are equal."""
        return hashlib.sha256(repr(self).encode()).hexdigest()

    def remember_key(self, key: str) -> None:
        """Take the key where it is known, which saves making it again."""
        self.__dict__["key"] = key


@dataclass(frozen=True)
class ModelProgram(Program):
    """A program that comes as a whole ONNX model, whose bytes are put to a backend as they are.

    `inputs` and `outputs` are those of its graph that are fed and answered; `operator` is that of its only node, or
    `model` with the opset.
    """

    model: bytes = b""


@dataclass(frozen=True, slots=True)
class Case:
    """A program with input tensors, what is expected of it, and the clauses that it tests.

    `inputs` are those of `program.feeds`. `mended` is the id of the valid case that an invalid one is a damaged copy
    of. `clauses` are ids as `onnx/ReduceMean#mean`.
    """

    id: str
    program: Program
    inputs: tuple[Array, ...]
    expectation: Expectation
    clauses: tuple[str, ...]
    mended: str | None = None

    @property
    def digest(self) -> str:
        """sha256 over the program and the bytes of the inputs."""
        shapes = repr([array.shape for array in self.inputs])  # the types are the program's
        parts = [self.program.key.encode(), shapes.encode(), *(array.tobytes() for array in self.inputs)]
        return hashlib.sha256(b"".join(parts)).hexdigest()

    @property
    def expectation_digest(self) -> str:
        """The digest of what is expected."""
        return self.expectation.digest


def count(shape: tuple[int, ...]) -> int:
    """Return how many elements a tensor of this shape has."""
    return math.prod(shape)
