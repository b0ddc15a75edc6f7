"""Text: one after the other, parts of it, lengths. Equality is that of all types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...cases.elements import Array
from ..arithmetic.errors import Arithmetic, Error, Known
from ..arithmetic.multiprecision import each
from .primitive import Primitive


class Join(Primitive):
    """Two texts, one after the other."""

    name, work, text = "join", "moves", "{0} and then {1}"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return each(lambda a, b: str(a) + str(b), *xs)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return Error()


class Mapped(Primitive):
    """What a function of texts makes of each: `value.mapped(function)`; the function has a name of its own."""

    name, work, text = "mapped", "moves", "{function.__name__} of {0}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        return value.node("mapped", function=others[0], to=str(p.get("to", value.type)))

    @classmethod
    def type(cls, types: Sequence[str], **p: Any) -> str:
        return str(p["to"])

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        found = each(p["function"], xs[0])
        kinds = {"bool": bool, "string": object}
        return found.astype(kinds.get(p["to"], "int64"))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return Error()
