"""What a name in a spec's settings stands for in each version, and which versions a part of a file applies to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .model import COMMON_PARAMETERS, Signature, Version
from .schema import Spanned

Role: TypeAlias = Literal["attribute", "input", "type", "common", "own", "delivery", "symbol", "bundle"]

_TYPE_OF = re.compile(r"type\((.+)\)")


def port_of(name: str) -> str | None:
    """Return `X` of the parameter `type(X)`, None for another."""
    found = _TYPE_OF.fullmatch(name)
    return found[1] if found else None


def delivered(name: str) -> str:
    """Return `X` of the parameters `X-from` and `X-rank`, else nothing."""
    port, _, word = name.rpartition("-")
    return port if word in ("from", "rank") else ""


def signature_parts(signature: Signature) -> tuple[str, ...]:
    """Return what a signature is made of, each with its section: `attributes.axes`, `inputs.X`, `types.T`."""
    sections: Mapping[str, Iterable[str]] = {
        "attributes": [a.name for a in signature.attributes],
        "inputs": [p.name for p in signature.inputs],
        "outputs": [p.name for p in signature.outputs],
        "types": signature.types,
    }
    return tuple(f"{section}.{name}" for section, names in sections.items() for name in names)


@dataclass(frozen=True, slots=True)
class Span:
    """The versions from `since` on, up to but without `before`, whose signatures have `having` and lack `lacking`."""

    since: Version | None = None
    before: Version | None = None
    having: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: Spanned) -> Span:
        """Return the span of a part of a file."""
        return cls(text.since, text.before, tuple(text.having), tuple(text.lacking))

    @property
    def is_whole(self) -> bool:
        """Whether it says nothing, and so means every version."""
        return self.since is None and self.before is None and not self.having and not self.lacking

    def covers(self, version: Version, names: Names) -> bool:
        """Whether `version` is within."""
        if self.is_whole:
            return True
        order = names.order
        at = order[version]
        if self.since in order and at < order[self.since]:
            return False
        if self.before in order and at >= order[self.before]:
            return False
        return all(names.has(version, part) for part in self.having) and not any(
            names.has(version, part) for part in self.lacking
        )


class Names:
    """The names that a spec's settings may use.

    `own` are the family's parameters; None lets any name pass. `symbols` stand in shapes, and `bundles` are parameters
    whose levels are mappings.
    """

    def __init__(
        self,
        signatures: Mapping[Version, Signature],
        own: frozenset[str] | None = None,
        symbols: frozenset[str] = frozenset(),
        bundles: frozenset[str] = frozenset(),
    ) -> None:
        self.signatures, self.own, self.symbols, self.bundles = signatures, own, symbols, bundles
        self.order = {version: index for index, version in enumerate(signatures)}
        self._parts = {version: frozenset(signature_parts(s)) for version, s in signatures.items()}
        self.parts = tuple(dict.fromkeys(part for s in signatures.values() for part in signature_parts(s)))
        self._bare = {v: frozenset(part.partition(".")[2] for part in parts) for v, parts in self._parts.items()}
        self.inputs = tuple(sorted({p.name for s in signatures.values() for p in s.inputs}))
        self.outputs = tuple(sorted({p.name for s in signatures.values() for p in s.outputs}))
        self._kinds: dict[str, frozenset[str]] = {}
        self._roles: dict[str, frozenset[Role]] = {}
        self._applies: dict[tuple[str, Version], bool] = {}

    def has(self, version: Version, part: str) -> bool:
        """Whether a version's signature has an attribute, input, output or letter, `axes` or `inputs.axes`."""
        return part in self._bare[version] or part in self._parts[version]

    def has_anywhere(self, part: str) -> bool:
        """Whether any version's signature has an attribute, input, output or letter."""
        return any(self.has(version, part) for version in self.signatures)

    def roles(self, name: str) -> frozenset[Role]:
        """Return what `name` is, over all versions; empty if it is nothing."""
        if name not in self._roles:
            found = {role for s in self.signatures.values() if (role := _role(name, s))}
            self._roles[name] = frozenset(found or self._parameter_role(name))
        return self._roles[name]

    def _parameter_role(self, name: str) -> set[Role]:
        if name in COMMON_PARAMETERS:
            return {"common"}
        if self.own is not None and name in self.own:
            return {"own"}
        port = delivered(name)
        if port in self.inputs or (port in self.bundles and name.endswith("-from")):
            return {"delivery"}
        if name in self.symbols:
            return {"symbol"}
        if name in self.bundles:
            return {"bundle"}
        return {"own"} if self.own is None and port_of(name) is None else set()

    def is_type(self, name: str) -> bool:
        """Whether `name` is a type letter or `type(port)`."""
        return "type" in self.roles(name)

    def applies(self, name: str, version: Version) -> bool:
        """Whether a version's signature has `name`; other parameters apply to every version."""
        if (name, version) not in self._applies:
            roles = self.roles(name)
            if "delivery" in roles:
                found = delivered(name) in self.bundles or self.signatures[version].input(delivered(name)) is not None
            else:
                is_everywhere = not roles.isdisjoint(("common", "own", "symbol", "bundle"))
                found = is_everywhere or _role(name, self.signatures[version]) is not None
            self._applies[name, version] = found
        return self._applies[name, version]

    def canonical(self, name: str, version: Version) -> str:
        """Return the letter for `type(port)`, else the name."""
        port = port_of(name)
        return (self.signatures[version].letter(port) if port else None) or name

    def kinds(self, name: str) -> frozenset[str]:
        """Return the attribute's kinds over all versions, and `input` if it is one in some."""
        if name not in self._kinds:
            found = {a.kind for s in self.signatures.values() if (a := s.attribute(name))}
            self._kinds[name] = frozenset(found | ({"input"} if "input" in self.roles(name) else set()))
        return self._kinds[name]

    def holds_text(self, name: str) -> bool:
        """Whether the values of an attribute or input can be text rather than numbers, in any version."""
        if self.kinds(name) & {"string", "strings", "graph", "graphs"}:
            return True
        return any(
            "string" in t
            for s in self.signatures.values()
            if (port := s.input(name))
            for t in s.types.get(s.letter(name) or "", (port.type,))
        )

    def known(self) -> list[str]:
        """Return all names, for messages; `type(port)` aside."""
        found: dict[str, None] = {}
        for s in self.signatures.values():
            found |= dict.fromkeys([a.name for a in s.attributes] + [p.name for p in s.inputs] + list(s.types))
        return [*found, *sorted((self.own or frozenset()) | COMMON_PARAMETERS | self.symbols | self.bundles)]


def _role(name: str, signature: Signature) -> Role | None:
    if signature.attribute(name):
        return "attribute"
    if signature.input(name):
        return "input"
    port = port_of(name)
    if name in signature.types or (port and signature.letter(port)):
        return "type"
    return None
