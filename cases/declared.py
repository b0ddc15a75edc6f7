"""Arithmetic that a vendor declares: formats and flushing that a device uses on purpose (`--arithmetic FILE`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Flushed: TypeAlias = Literal["input", "output"]
Format: TypeAlias = Literal["float16", "bfloat16", "tf32", "float32", "float64"]


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """How a device computes with one element type; None for the usual format.

    `flush`: subnormal inputs are read as zero, subnormal results (intermediate ones too) become zero.
    """

    compute: str | None = None
    accumulator: str | None = None
    flush: frozenset[Flushed] = frozenset()


@dataclass(frozen=True, slots=True)
class Declaration:
    """A whole declaration: by element type, and what else it states; `digest` identifies it in `run.json`."""

    types: Mapping[str, DeclaredType] = field(default_factory=dict)
    threads: int | None = None
    deterministic: bool | None = None
    digest: str | None = None
