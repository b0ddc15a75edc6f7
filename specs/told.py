"""What a standard's library tells of its operators, in words that a spec can be held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..cases.model import AttributeValue
from .model import Signature, Version


@dataclass(frozen=True, slots=True)
class Question:
    """An operator version to ask a library about; `signature` is that of its spec, None where it has none."""

    name: str
    version: Version
    signature: Signature | None = None


@dataclass(frozen=True, slots=True)
class ToldAttribute:
    """An attribute: the kinds of value that the library takes, and, where it tells them, default and whether required.

    None stands for what the library does not tell.
    """

    kinds: frozenset[str]
    default: AttributeValue | bool | None = None
    required: bool | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What a library tells of one operator version, found out by making operations of it.

    `attributes` is None where they could not be found out. `inputs` and `outputs` are the numbers of tensors that it
    takes and gives, of those up to `counted`; empty if no operation could be made. `types` holds what it takes for each
    letter of the question's signature, and without one for letters of the reading's own. A letter that is not there was
    not found out.
    """

    attributes: Mapping[str, ToldAttribute] | None = None
    inputs: frozenset[int] = frozenset()
    outputs: frozenset[int] = frozenset()
    counted: int = 0
    types: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listing:
    """The operators of a library, by name, with their versions.

    `group` says what operators these are. `later` names operators of newer libraries alone, and a version above
    `newest` is of a newer library too.
    """

    library: str
    version: str
    group: str
    versions: Mapping[str, tuple[Version, ...]]
    later: frozenset[str] = frozenset()
    newest: int | None = None

    @property
    def name(self) -> str:
        """The library and its version, `openvino 2026.4.1`."""
        return f"{self.library} {self.version}"

    def is_newer(self, operator: str, version: Version) -> bool:
        """Whether an operator version is of a newer library."""
        return operator in self.later or (
            self.newest is not None and isinstance(version, int) and version > self.newest
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """A library's listing, and what it told: a text in place of an answer says how asking failed.

    `exact`: the library takes nothing but what it specifies. Where it is not, that it takes something proves nothing.
    `untold` says what cannot be found out from it.
    """

    standard: str
    listing: Listing
    told: Mapping[tuple[str, Version], Told | str]
    exact: bool
    untold: tuple[str, ...] = ()
