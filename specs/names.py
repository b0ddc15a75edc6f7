"""What a name in a spec's settings stands for in each version: attribute, input, type letter, family parameter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from .model import COMMON_PARAMETERS, Signature, Version

Role: TypeAlias = Literal["attribute", "input", "type", "common", "own"]

_TYPE_OF = re.compile(r"type\((.+)\)")


def port_of(name: str) -> str | None:
    """Return `X` of the parameter `type(X)`, None for another."""
    found = _TYPE_OF.fullmatch(name)
    return found[1] if found else None


def signature_parts(signature: Signature) -> tuple[str, ...]:
    """Return what a signature is made of, each with its section: `attributes.axes`, `inputs.X`, `types.T`."""
    sections: Mapping[str, Iterable[str]] = {
        "attributes": [a.name for a in signature.attributes],
        "inputs": [p.name for p in signature.inputs],
        "outputs": [p.name for p in signature.outputs],
        "types": signature.types,
    }
    return tuple(f"{section}.{name}" for section, names in sections.items() for name in names)


class Names:
    """The names that a spec's settings may use. `own` are the family's parameters; None lets any name pass."""

    def __init__(self, signatures: Mapping[Version, Signature], own: frozenset[str] | None) -> None:
        self.signatures = signatures
        self.own = own
        self._roles: dict[str, frozenset[Role]] = {}
        self._applies: dict[tuple[str, Version], bool] = {}

    def roles(self, name: str) -> frozenset[Role]:
        """Return what `name` is, over all versions; empty if it is nothing."""
        if name not in self._roles:
            found = {role for s in self.signatures.values() if (role := _role(name, s))}
            self._roles[name] = frozenset(found or self._parameter_role(name))
        return self._roles[name]

    def _parameter_role(self, name: str) -> set[Role]:
        if name in COMMON_PARAMETERS:
            return {"common"}
        if (self.own is None and port_of(name) is None) or (self.own is not None and name in self.own):
            return {"own"}
        return set()

    def is_type(self, name: str) -> bool:
        """Whether `name` is a type letter or `type(port)`."""
        return "type" in self.roles(name)

    def applies(self, name: str, version: Version) -> bool:
        """Whether a version's signature has `name`; a family's parameters apply to every version."""
        if (name, version) not in self._applies:
            is_everywhere = not self.roles(name).isdisjoint(("common", "own"))
            self._applies[name, version] = is_everywhere or _role(name, self.signatures[version]) is not None
        return self._applies[name, version]

    def canonical(self, name: str, version: Version) -> str:
        """Return the letter for `type(port)`, else the name."""
        port = port_of(name)
        return (self.signatures[version].letter(port) if port else None) or name

    def kinds(self, name: str) -> frozenset[str]:
        """Return the attribute's kinds over all versions, and `input` if it is one in some."""
        found = {a.kind for s in self.signatures.values() if (a := s.attribute(name))}
        return frozenset(found | ({"input"} if "input" in self.roles(name) else set()))

    def holds_text(self, name: str) -> bool:
        """Whether the values of an attribute or input can be text rather than numbers, in any version."""
        if self.kinds(name) & {"string", "strings", "graph", "graphs"}:
            return True
        types = {t for s in self.signatures.values() if (port := s.input(name)) for t in s.types.get(port.type, ())}
        return "string" in types or any(
            port.type == "string" for s in self.signatures.values() if (port := s.input(name))
        )

    def known(self) -> list[str]:
        """Return all names, for messages; `type(port)` aside."""
        found: dict[str, None] = {}
        for s in self.signatures.values():
            found |= dict.fromkeys([a.name for a in s.attributes] + [p.name for p in s.inputs] + list(s.types))
        return [*found, *sorted((self.own or frozenset()) | COMMON_PARAMETERS)]


def _role(name: str, signature: Signature) -> Role | None:
    if signature.attribute(name):
        return "attribute"
    if signature.input(name):
        return "input"
    port = port_of(name)
    if name in signature.types or (port and signature.letter(port)):
        return "type"
    return None
