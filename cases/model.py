"""Cases; and programs by their older address."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .elements import Array, content
from .program import (
    NO_VERSION,
    Attribute,
    AttributeKind,
    AttributeValue,
    Input,
    ModelProgram,
    OperatorVersion,
    Output,
    Program,
    count,
)
from .structures import Dims

if TYPE_CHECKING:
    from .expectation import Expectation

__all__ = [
    "NO_VERSION",
    "Attribute",
    "AttributeKind",
    "AttributeValue",
    "Case",
    "Dims",
    "Input",
    "ModelProgram",
    "OperatorVersion",
    "Output",
    "Program",
    "count",
]


@dataclass(frozen=True, slots=True)
class Case:
    """A program with input tensors, what is expected of it, and the clauses that it tests.

    `inputs` are those of `program.leaves`. `mended` is the id of the valid case that an invalid one is a damaged copy
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
        parts = [self.program.key.encode(), shapes.encode(), *(content(array) for array in self.inputs)]
        return hashlib.sha256(b"".join(parts)).hexdigest()

    @property
    def expectation_digest(self) -> str:
        """The digest of what is expected."""
        return self.expectation.digest
