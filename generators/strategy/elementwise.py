"""Operators that combine tensors element by element: how many inputs, and how their shapes broadcast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ...cases.errors import CaseIdError
from ...cases.ids import CaseId
from ...cases.program import Program
from ...specs.model import VersionSpec
from ..arithmetic.tensors import broadcast_shape
from ..expect import Reading
from ..reference import elementwise as reference
from .families import Build, DataTensor, data_input, node_attributes, opset, output
from .rows import Own, Row


@dataclass(frozen=True)
class Elementwise:
    """The family `elementwise`."""

    own: Own = field(default_factory=lambda: MappingProxyType({"dims": ("static", "symbolic")}))
    references: frozenset[str] = frozenset({"mean"})
    synonyms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def settle(self, version: VersionSpec, case: CaseId) -> CaseId:  # noqa: ARG002 - the family's protocol
        """Keep all: every setting means something beside every other."""
        return case

    def build(self, row: Row) -> Build:
        """Return the program and readings of an elementwise operator over a variadic input."""
        shapes, types = row.id.shapes, row.id.types
        valid = not (row.edge and row.edge.rejected)
        readings = (_reading(row),) if valid else ()
        elements = tuple(types[i % len(types)] for i in range(len(shapes)))
        inputs = tuple(
            data_input(row, f"data_{i}", element, shape)
            for i, (element, shape) in enumerate(zip(elements, shapes, strict=True))
        )
        outputs = (output(row, types[0], readings),)
        program = Program(row.version.operator, node_attributes(row), inputs, outputs, opset(row))
        tensors = tuple(map(DataTensor, elements, shapes))
        return Build(program, tensors, tuple(range(len(tensors))), readings, len(shapes))


def _reading(row: Row) -> Reading:
    shapes, function = row.id.shapes, row.spec.function
    if not shapes:
        raise CaseIdError(f"{row.id}: no input at all is invalid, and no edge")
    if len(set(shapes)) > 1 and "same-shape" in row.version.clauses:
        raise CaseIdError(f"{row.id}: different shapes are invalid in {row.version.operator}, and no edge")
    try:
        shape = broadcast_shape(shapes)
    except ValueError:
        raise CaseIdError(f"{row.id}: the shapes do not broadcast, and it is no edge") from None
    return Reading((), "values", shape, getattr(reference, function), terms=len(shapes))
