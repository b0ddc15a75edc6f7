"""The ports of an operator version: which types they have, and how they come where nothing is said."""

from __future__ import annotations

import functools
import re

from ..specs.model import COMMON_PARAMETERS, Port, Recipe, VersionSpec, Word

FROM, RANK, CONSTANT, FED = "-from", "-rank", "constant", "graph-input"
"""How parameters end that say how an input comes and which rank it has, and two ways in which it comes."""
NUMBERS_OF_DRAWS = frozenset({"draw", "seed"})
_OF_SIGNATURE = "attribute-"


def has_values(version: VersionSpec, port: Port) -> bool:
    """Return whether levels write an input's elements, so that it is neither filled nor drawn where nothing is said."""
    levels = version.parameters.get(port.name, {}).values()
    return not port.is_variadic and any(not isinstance(level, (Word, Recipe)) for level in levels)


def usual_delivery(version: VersionSpec, port: Port) -> str:
    """Return how an input comes where an id does not say: written ones are constants, filled ones are fed."""
    return CONSTANT if has_values(version, port) else FED


def free_letters(version: VersionSpec) -> tuple[str, ...]:
    """Return the type letters that cases vary, in the signature's order."""
    return version.signature.free_letters


def resolve_type(version: VersionSpec, types: tuple[str, ...], port: Port, place: int = 0) -> str:
    """Return the type of an input or output, by its letter; `place` is that among a variadic port's tensors."""
    letters = free_letters(version)
    if port.is_variadic and len(letters) == 1 < len(types):
        return types[place % len(types)]
    return bound_type(version, types, version.signature.ties.get(port.type, port.type))


def bound_type(version: VersionSpec, types: tuple[str, ...], text: str) -> str:
    """Return a type with the letters in it replaced by the types that a case has for them."""
    return _bound(text, tuple(zip(free_letters(version), types, strict=False)))


@functools.lru_cache(maxsize=4096)
def _bound(text: str, types: tuple[tuple[str, str], ...]) -> str:
    bound = dict(types)
    return re.sub(r"[A-Za-z_]\w*", lambda word: bound.get(word[0], word[0]), text)


def usual_rank(version: VersionSpec, port: str) -> int:
    """Return the rank of a written tensor where an id says no dimensions: what its operand says, else 1."""
    operand = version.operands.get(port)
    return 0 if operand is not None and operand.shape == () else 1


def usual_outputs(version: VersionSpec) -> tuple[str, ...]:
    """Return the outputs that are asked for where nothing is said: those that are always there, else the first."""
    single = tuple(port.name for port in version.signature.outputs if port.option == "single")
    return single or tuple(port.name for port in version.signature.outputs[:1])


def setting_name(version: VersionSpec, name: str) -> str:
    """Return what an id calls a parameter: an attribute that is called as a number of a draw has another name there."""
    taken = name in NUMBERS_OF_DRAWS and version.signature.attribute(name) is not None
    return f"{_OF_SIGNATURE}{name}" if taken else name


def attribute_name(name: str) -> str:
    """Return the attribute that an id's setting is about, if it is about one."""
    bare = name.removeprefix(_OF_SIGNATURE)
    return bare if bare in NUMBERS_OF_DRAWS else name


def is_symbol(version: VersionSpec, name: str) -> bool:
    """Return whether a level's name is a symbol that a bundle binds: no part of the signature, and no parameter."""
    signature = version.signature
    part = signature.attribute(name) or signature.input(name) or name in signature.types
    return name.isidentifier() and not part and name not in COMMON_PARAMETERS and name not in NUMBERS_OF_DRAWS


def parameter_of(version: VersionSpec, name: str) -> tuple[Port, str] | None:
    """Return the input that a parameter is about, and `-from` or `-rank`; None for other parameters."""
    base, _, last = name.rpartition("-")
    port = version.signature.input(base)
    return (port, f"-{last}") if port is not None and f"-{last}" in (FROM, RANK) else None
