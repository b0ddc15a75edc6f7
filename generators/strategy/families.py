"""What a family of operators brings: its own parameters, and how it builds a case from a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from ...cases.elements import Array
from ...cases.ids import CaseId
from ...cases.program import Attribute, AttributeKind, Input, Output, Program
from ...specs.model import VersionSpec, Vocabulary, Word
from ..envelope import kindest_opset
from ..expect import Reading
from ..fills import RECIPES
from .rows import Own, Row

Fed: TypeAlias = int | Array
"""Where the tensor of a feed comes from: the index of a data tensor, or the tensor itself."""


class DataTensor(NamedTuple):
    """A tensor that a recipe fills."""

    type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Build:
    """A case but for its data: the program, the tensors to fill, where each feed comes from, and the readings.

    `terms`: how many elements are added up into one of the result, at most.
    """

    program: Program
    tensors: tuple[DataTensor, ...]
    feeds: tuple[Fed, ...]
    readings: tuple[Reading, ...]
    terms: int


class Family(Protocol):
    """The strategy of one family, `generators/strategy/<family>.py`."""

    @property
    def own(self) -> Own:
        """The family's own parameters: the words that each may hold, the one first that an id leaves out."""

    @property
    def references(self) -> frozenset[str]:
        """The functions of `generators/reference/<family>.py` that a spec may name."""

    @property
    def synonyms(self) -> Mapping[str, str]:
        """What one standard calls as another one does not: the name, and the one that stands for all of them."""

    def settle(self, version: VersionSpec, case: CaseId) -> CaseId:
        """Return the id without settings that mean nothing beside the others."""

    def build(self, row: Row) -> Build:
        """Return the program and readings of a row; for an invalid case the readings are those of no one."""


def vocabulary(family: Family) -> Vocabulary:
    """Return the words that a family gives to spec files."""
    return Vocabulary(frozenset(family.own), frozenset(RECIPES), family.references)


def node_attributes(row: Row) -> tuple[Attribute, ...]:
    """Return the attributes that a row sets, in the signature's order, and last the one that no version has."""
    attributes = []
    for signature in row.version.signature.attributes:
        value = row.get(signature.name)
        if not isinstance(value, (Word, Mapping)):
            kind: AttributeKind = signature.kind  # type: ignore[assignment]  # audited names
            attributes.append(Attribute(signature.name, kind, value))  # type: ignore[arg-type]  # typed when read
    unknown = row.get("unknown")
    if isinstance(unknown, str):
        attributes.append(Attribute(unknown, "int", 1))
    return tuple(attributes)


def data_input(row: Row, name: str, element: str, shape: tuple[int, ...]) -> Input:
    """Return an input of this shape, its dimensions symbolic where the row asks for it."""
    if row.get("dims") == "symbolic":
        return Input(name, element, tuple(f"{name}_{i}" for i in range(len(shape))))
    return Input(name, element, shape)


def opset(row: Row) -> int | None:
    """Return the opset that carries a row."""
    chosen = row.get("opset")
    return chosen if isinstance(chosen, int) else kindest_opset(row.spec, row.version)


def output(row: Row, element: str, readings: tuple[Reading, ...]) -> Output:
    """Return the one output, with its rank where all readings agree on it."""
    ranks = {len(reading.shape) for reading in readings if reading.kind in ("values", "any")}
    anything = any(reading.kind == "anything" for reading in readings)
    rank = ranks.pop() if len(ranks) == 1 and not anything else None
    return Output(row.version.signature.outputs[0].name, element, rank)
