"""Resolves the signatures of all versions of an operator from the differences in a spec file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from ..cases.errors import OpconformError
from ..cases.program import NO_VERSION, AttributeValue
from .model import (
    ELEMENT_TYPES,
    AttributeSignature,
    Port,
    Signature,
    Version,
    expand,
    held,
    holder,
    is_type_word,
    unwrap,
)
from .reading import ELLIPSIS, Keys, Problems
from .schema import SpecText, VersionText

REMOVED = "removed"
PORT_EXAMPLES = "'T', 'optional T', 'T+' (1 or more), 'T*' or 'each V*'"
ATTRIBUTE_EXAMPLES = "'int', 'optional ints', 'int = 1' or 'string = constant'"

ATTRIBUTE_KINDS: Mapping[str, type] = MappingProxyType(
    {
        "int": int,
        "float": float,
        "string": str,
        "boolean": bool,
        "bool": bool,
        "s64": int,
        "f32": float,
    }
)
"""The kinds that can have a default, with the type of a single value; a final s makes it a list."""
OPAQUE_KINDS = ("graph", "graphs", "tensor", "tensors", "sparse_tensor", "type_proto")

_ATTRIBUTE = re.compile(r"(optional )?(\w+)(?: = (.*))?", re.DOTALL)
_PORT = re.compile(r"(optional |each )?([\w(), ]+?)([+*])?")

_Types: TypeAlias = tuple[str, ...] | str  # a list, or a tie such as seq(T)
_Sections: TypeAlias = Mapping[str, Mapping[str, Any]]
"""A version's signature under construction: section to name to attribute, port or types, ordered as written."""


def signatures(text: SpecText, problems: Problems) -> dict[Version, Signature]:
    """Return the full signature of each version; mistakes are added to `problems`."""
    _check_order(text, problems)
    by_version: dict[Version, Signature] = {}
    before: _Sections = {}
    for version, written in text.versions.items():
        if problems.errors:  # later versions build on it, and would repeat the mistake
            break
        sections = _resolved(version, written, before, problems)
        signature = _signature(version, sections, written, problems)
        previous = next(reversed(by_version.values()), None)
        if previous is not None and _same(signature, previous) and not written.change and not problems.errors:
            message = "nothing differs from the previous version: add `change` to say what does"
            problems.add(("versions", version), message, key=True)
        if written.change == "TODO":
            problems.add(("versions", version, "change"), "replace TODO: say what changed, in one line")
        by_version[version] = signature
        before = sections
    return by_version


def attribute_from(name: str, text: str) -> AttributeSignature:
    """Parse an attribute in the syntax of spec files, `int = 1`. Raises OpconformError."""
    parts = _ATTRIBUTE.fullmatch(text)
    if not parts:
        raise OpconformError(f"{text!r} is no attribute type; write {ATTRIBUTE_EXAMPLES}")
    optional, kind, default = parts.groups()
    if kind not in OPAQUE_KINDS and scalar_kind(kind) is None:
        known = sorted({*ATTRIBUTE_KINDS, *(k + "s" for k in ATTRIBUTE_KINDS), *OPAQUE_KINDS})
        raise OpconformError(f"{kind!r} is no kind of attribute; known: {', '.join(known)}")
    if default is None:
        return AttributeSignature(name, kind, required=not optional)
    if optional:
        raise OpconformError(f"{text!r}: an attribute with a default is optional anyway; leave `optional` out")
    return AttributeSignature(name, kind, required=False, default=_default(kind, default))


def port_from(name: str, text: str) -> Port:
    """Parse an input or output in the syntax of spec files, `optional T`. Raises OpconformError."""
    parts = _PORT.fullmatch(text)
    if not parts:
        raise OpconformError(f"{text!r} is no input or output type; write {PORT_EXAMPLES}")
    prefix, kind, suffix = (parts[1] or "").strip(), parts[2].replace(", ", ","), parts[3]
    if (prefix == "optional" and suffix) or (prefix == "each" and not suffix):
        raise OpconformError(f"{text!r} is no input or output type; write {PORT_EXAMPLES}")
    if suffix:
        return Port(name, kind, "each" if prefix else "variadic", int(suffix == "+"))
    return Port(name, kind, "optional", 0) if prefix else Port(name, kind)


def _check_order(text: SpecText, problems: Problems) -> None:
    versions = list(text.versions)
    if NO_VERSION in versions and len(versions) > 1:
        problems.add(("versions", NO_VERSION), f"`{NO_VERSION}` must be the only version", key=True)
        return
    last: list[int] = []
    for version in versions:
        if version == NO_VERSION:
            continue
        if not re.fullmatch(r"[1-9]\d*(\.\d+)*", str(version)):
            message = f"{version!r} is no version: a number from 1, dotted text such as '3.10', or {NO_VERSION}"
            problems.add(("versions", version), message, key=True)
            return
        number = [int(n) for n in str(version).split(".")]
        if number <= last:
            problems.add(("versions", version), "versions must ascend", key=True)
        last = number


def _same(a: Signature, b: Signature) -> bool:
    def unordered(s: Signature) -> object:
        return replace(s, attributes=tuple(sorted(s.attributes, key=lambda x: x.name)))

    return unordered(a) == unordered(b)


def _resolved(version: Version, written: VersionText, before: _Sections, problems: Problems) -> _Sections:
    delta = _Delta(version, not before, problems)
    readers = {"attributes": attribute_from, "inputs": port_from, "outputs": port_from, "types": delta.type_list}
    return {
        section: delta.apply(section, getattr(written, section), before.get(section, {}), read)
        for section, read in readers.items()
    }


class _Delta:
    """Applies the rule that a written section is complete unless it starts with `...`."""

    def __init__(self, version: Version, first: bool, problems: Problems) -> None:
        self.version, self.first, self.problems = version, first, problems

    def apply(self, section: str, written: Mapping[str, Any] | None, old: Mapping[str, Any], read: Any) -> Any:
        if written is None:
            return old
        path: Keys = ("versions", self.version, section)
        added = ELLIPSIS in written
        if added and next(iter(written)) != ELLIPSIS:
            self.problems.add((*path, ELLIPSIS), "... comes first", key=True)
        if added and self.first:
            self.problems.add((*path, ELLIPSIS), "... in the first version: there is nothing before it", key=True)
        self.old, entries = old, dict(old) if added else {}
        for name, text in written.items():
            if name == ELLIPSIS:
                continue
            if text == REMOVED:
                self.remove(entries, name, (*path, name), added)
            else:
                self.put(entries, name, text, (*path, name), read)
        return entries

    def remove(self, entries: dict[str, Any], name: str, path: Keys, added: bool) -> None:
        if name not in entries:
            why = "the version before has none" if added else "without ... first nothing is there to remove"
            self.problems.add(path, f"{name!r} is removed, but {why}", key=True)
        entries.pop(name, None)

    def put(self, entries: dict[str, Any], name: str, text: Any, path: Keys, read: Any) -> None:
        if text is None:
            self.problems.add(path, f"{name!r} has no type", key=True)
            return
        try:
            value = read(name, text)
        except OpconformError as error:
            self.problems.add(path, str(error))
            if path[2] == "types":  # declared nevertheless
                entries[name] = ()
            return
        if entries.get(name) == value and name in self.old:
            self.problems.add(path, f"{name!r} is the same as in the previous version: leave it out", key=True)
        entries[name] = value

    def type_list(self, name: str, text: list[str] | str) -> _Types:
        """Read the types of a letter; a list that starts with `...` adds to the previous version's."""
        if isinstance(text, str):
            return _tie(text)
        words = [word for word in text if word != ELLIPSIS]
        types = [element for index, word in enumerate(text) for element in self.elements(name, index, word)]
        if len(words) < len(text):
            if text[0] != ELLIPSIS or text.count(ELLIPSIS) > 1:
                raise OpconformError("... comes first, and once")
            old = self.old.get(name)
            if not isinstance(old, tuple):
                why = f"was {old}: write the list out" if old else "does not exist in the version before"
                raise OpconformError(f"{name} {why}")
            types = [*old, *types]
        twice = sorted({element for element in types if types.count(element) > 1})
        if twice:
            raise OpconformError(f"{name} lists {', '.join(twice)} twice")
        return tuple(types)

    def elements(self, letter: str, index: int, word: str) -> tuple[str, ...]:
        """Return the types of one word in a letter's list; reports a mistake and returns none if it is not a type."""
        if word == ELLIPSIS:
            return ()
        path = ("versions", self.version, "types", letter, index)
        return expand(word) if self.problems.check(path, lambda: expand(word)) else ()


def _tie(text: str) -> str:
    if holder(text):
        return text
    wrapped = unwrap(text)
    if not wrapped or not re.fullmatch(r"\w+", wrapped[1]) or is_type_word(text):
        raise OpconformError(
            f"{text!r}: write a list of types, [float32, float64], or tie the letter to another one: seq(T), held(T)"
        )
    return text


def _signature(version: Version, sections: _Sections, written: VersionText, problems: Problems) -> Signature:
    types: dict[str, tuple[str, ...]] = {}
    ties: dict[str, str] = {}
    for letter, listed in sections["types"].items():
        if isinstance(listed, tuple):
            types[letter] = listed
            continue
        ties[letter] = listed
        wrap, other = unwrap(listed) or ("", holder(listed) or "")
        base = sections["types"].get(other)
        if isinstance(base, tuple):
            types[letter] = tuple(
                dict.fromkeys(f"{wrap}({base_type})" if wrap else held(base_type) for base_type in base)
            )
        else:
            at = ("versions", version, "types", letter)
            problems.add(at, f"{listed!r}: {other!r} is no letter with a list of types in version {version}")
            types[letter] = ()
    for section in ("inputs", "outputs"):
        for port in sections[section].values():
            _check_port(("versions", version, section, port.name), port, types, problems)
    return Signature(
        tuple(sections["attributes"].values()),
        tuple(sections["inputs"].values()),
        tuple(sections["outputs"].values()),
        types,
        ties,
        written.deprecated,
    )


def _check_port(path: Keys, port: Port, types: Mapping[str, tuple[str, ...]], problems: Problems) -> None:
    inner = port.type
    while wrapped := unwrap(inner):
        inner = wrapped[1]
    if inner not in types and not (is_type_word(port.type) and inner in ELEMENT_TYPES):
        problems.unknown(path, f"type {inner!r} is neither an element type nor a letter of `types`", inner, types)


def scalar_kind(kind: str) -> type | None:
    """Return the type of one value of an attribute or of its list; None for graphs, tensors and types."""
    return ATTRIBUTE_KINDS.get(kind) or (ATTRIBUTE_KINDS.get(kind[:-1]) if kind.endswith("s") else None)


def _default(kind: str, text: str) -> AttributeValue | bool:
    if kind in OPAQUE_KINDS:
        raise OpconformError(f"an attribute of kind {kind} has no default that can be written here")
    scalar = scalar_kind(kind)
    if kind in ATTRIBUTE_KINDS:
        return _default_scalar(scalar, text, kind)
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        raise OpconformError(f"the default of kind {kind} is a list, as in '{kind} = [...]'; read {text!r}")
    parts = [part.strip() for part in inner[1:-1].split(",")] if inner[1:-1].strip() else []
    return tuple(_default_scalar(scalar, part, kind) for part in parts)  # type: ignore[return-value]


def _default_scalar(scalar: type | None, text: str, kind: str) -> int | float | str | bool:
    try:
        if scalar is bool:
            return {"true": True, "false": False}[text]
        if scalar is str:
            return str(json.loads(text)) if text.startswith('"') else text
        return int(text) if scalar is int else float(text)
    except (ValueError, KeyError):
        raise OpconformError(f"{text!r} is no value of kind {kind}") from None
