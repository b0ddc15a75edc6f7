"""Frozen names for sets of element types: a group never grows, so that a spec means the same for ever."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ..cases.errors import OpconformError, did_you_mean

_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_SIGNED = ("int8", "int16", "int32", "int64")
_IEEE = ("float16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")
_FLOAT8 = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
_BITS4 = ("uint4", "int4")
_TENSORS_5 = (*_UNSIGNED, *_SIGNED, *_IEEE, "string", "bool", *_COMPLEX)
_TENSORS_13 = (*_TENSORS_5, "bfloat16")
_TENSORS_19 = (*_TENSORS_13, *_FLOAT8)
_TENSORS_21 = (*_TENSORS_19, *_BITS4)

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "unsigned": _UNSIGNED,
        "signed": _SIGNED,
        "integers": (*_UNSIGNED, *_SIGNED),
        "wide-integers": ("uint32", "uint64", "int32", "int64"),
        "ieee": _IEEE,
        "floats": ("bfloat16", *_IEEE),
        "complex": _COMPLEX,
        "float8": _FLOAT8,
        "bits4": _BITS4,
        "bits2": ("uint2", "int2"),
        "tensors-5": _TENSORS_5,
        "tensors-13": _TENSORS_13,
        "tensors-19": _TENSORS_19,
        "tensors-21": _TENSORS_21,
        "tensors-23": (*_TENSORS_21, "float4e2m1"),
    }
)
"""Group to element types. `tensors-N` are all that ONNX knew from opset N on."""

ELEMENT_TYPES: frozenset[str] = frozenset(
    (*GROUPS["tensors-23"], *GROUPS["bits2"], "float8e8m0", "float6e2m3", "float6e3m2")
)

WRAPPERS = ("seq", "optional", "sparse")
_WRAPPED = re.compile(rf"({'|'.join(WRAPPERS)})\((.+)\)")
_MAP = re.compile(r"map\((\w+), ?(\w+)\)")


def unwrap(word: str) -> tuple[str, str] | None:
    """Return `seq` and `T` of `seq(T)`, or None where nothing is wrapped."""
    found = _WRAPPED.fullmatch(word)
    return (found[1], found[2]) if found else None


def expand(word: str) -> tuple[str, ...]:
    """Return the types that a type or a group means: `ieee`, `seq(ieee)`, `float32`, `map(string,float32)`.

    Raises OpconformError if it is none.
    """
    found = _types(word)
    if found:
        return found
    if "map(" in word:
        raise OpconformError(f'{word!r} is no map: write "map(string,float32)", quoted since it holds a comma')
    inner = word
    while wrapped := unwrap(inner):
        inner = wrapped[1]
    raise OpconformError(f"{inner!r} is no element type and no group of them{did_you_mean(inner, known_words())}")


@functools.lru_cache(maxsize=4096)
def _types(word: str) -> tuple[str, ...]:
    """Return the types that a word means, none if it is no type and no group."""
    if wrapped := unwrap(word):
        return tuple(f"{wrapped[0]}({inner})" for inner in _types(wrapped[1]))
    if word in GROUPS:
        return GROUPS[word]
    entries = _MAP.fullmatch(word)
    if entries and {entries[1], entries[2]} <= ELEMENT_TYPES:
        return (f"map({entries[1]},{entries[2]})",)
    return (word,) if word in ELEMENT_TYPES else ()


def known_words() -> tuple[str, ...]:
    """Return all element types and groups, sorted."""
    return tuple(sorted({*ELEMENT_TYPES, *GROUPS}))


def is_type_word(word: str) -> bool:
    """Whether `expand` knows the word."""
    return bool(_types(word))


def compress(types: Iterable[str]) -> tuple[str, ...]:
    """Return the shortest list of groups and types that means exactly these types: groups first, largest first."""
    left = dict.fromkeys(types)
    found: list[str] = []
    for wrap in ("{}", "seq({})", "optional({})", "optional(seq({}))"):
        for group in sorted(GROUPS, key=lambda name: -len(GROUPS[name])):
            members = [wrap.format(member) for member in GROUPS[group]]
            if len(members) > 1 and left.keys() >= set(members):
                found.append(wrap.format(group))
                left = {kept: None for kept in left if kept not in members}
    return (*found, *left)
