"""Programs by their older address."""

from __future__ import annotations

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

__all__ = [
    "NO_VERSION",
    "Attribute",
    "AttributeKind",
    "AttributeValue",
    "Dims",
    "Input",
    "ModelProgram",
    "OperatorVersion",
    "Output",
    "Program",
    "count",
]
