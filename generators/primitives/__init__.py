"""The primitives of formulas, one module ("room") per group; everything about a primitive is in its class."""

from __future__ import annotations

from types import MappingProxyType, ModuleType
from typing import Final

from . import arithmetic, choice, conversions, functions, movement, products, sums, turns
from .primitive import Primitive


def _named(*rooms: ModuleType) -> dict[str, type[Primitive]]:
    members = [member for room in rooms for member in vars(room).values() if isinstance(member, type)]
    return {member.name: member for member in members if issubclass(member, Primitive) and member.name}


ROOMS: Final = MappingProxyType(_named(arithmetic, choice, conversions, functions, movement, products, sums, turns))
"""All primitives by name."""
