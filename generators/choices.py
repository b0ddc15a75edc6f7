"""The types for which a plan has cases: the usual ones, and one of each other arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ..cases.elements import element_type
from ..cases.program import element_names
from ..specs.model import VersionSpec

Choice: TypeAlias = "dict[str, str]"
"""Type letters, each with its chosen type."""

_USUAL = ("float32", "float16", "int32", "int64", "seq(float32)", "optional(float32)")
"""The types for which everything is crossed: the first of these, or any."""
_OWN_BITS = 16  # floating-point types with at least so many bits have their own arithmetic; smaller ones are converted


def type_choices(version: VersionSpec, letters: Mapping[str, Sequence[str]]) -> Iterator[Choice]:
    """Yield the usual types, then each other type of one letter at a time; the letters of a group change together."""
    usual = {letter: usual_type(types) for letter, types in letters.items()}
    for group in version.same:
        usual |= {letter: usual[group[0]] for letter in group if letter in usual and group[0] in usual}
    yield usual
    seen = {tuple(usual.values())}
    for letter, types in letters.items():
        together = next((group for group in version.same if letter in group), (letter,))
        for level in types:
            changed = {**usual, **{choice: level for choice in together if choice in usual}}
            followers = [x for x, source in version.types_from.items() if source.absent == letter and x in usual]
            for choice in (changed, {**changed, **dict.fromkeys(followers, level)}):
                if tuple(choice.values()) not in seen and all(choice[x] in letters[x] for x in followers):
                    seen.add(tuple(choice.values()))
                    yield choice


def usual_type(levels: Sequence[str]) -> str:
    """Return the type for which everything is crossed."""
    return next((type_ for type_ in _USUAL if type_ in levels), levels[0])


def _arithmetic(type_: str) -> str:
    """Return a key for the arithmetic of a type: every large float type has its own."""
    element = element_type(element_names(type_)[-1])
    if is_wide(type_):
        return type_
    nested = type_.partition("(")[0] if "(" in type_ else ""
    return f"{nested}{'packed' if element.is_packed else element.kind}"


def is_wide(type_: str) -> bool:
    """Return whether backends compute in this type itself, and not in a larger float type."""
    return "(" not in type_ and element_type(type_).kind == "float" and element_type(type_).bits >= _OWN_BITS


def typical_types(types: Sequence[str]) -> list[str]:
    """Return one type of each arithmetic, the most usual one."""
    by_arithmetic: dict[str, str] = {}
    for type_ in sorted(types, key=lambda name: _USUAL.index(name) if name in _USUAL else len(_USUAL)):
        by_arithmetic.setdefault(_arithmetic(type_), type_)
    return list(by_arithmetic.values())
