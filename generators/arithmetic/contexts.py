"""The arithmetics that standards leave open (the silence `accumulator`), and those that a vendor declares."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from ...cases.declared import DeclaredType
from .errors import Arithmetic, Charge
from .formats import format_of


@dataclass(frozen=True)
class Context:
    """How an implementation computes with numbers of each floating-point type. `name` is the silence's option.

    `variant` tells what was changed in the arithmetic of every type.
    """

    name: str
    types: Mapping[str, Arithmetic] = field(default_factory=lambda: MappingProxyType({}))
    level: Literal["strict", "declared"] = "strict"
    variant: str = ""

    def at(self, type_: str) -> Arithmetic:
        """Return the arithmetic of a type; float32's for what is no floating-point type."""
        return self.types.get(type_) or _native("float32")

    def using(self, variant: str, **changes: Any) -> Context:
        """Return this context with something changed in the arithmetic of every type."""
        return replace(self, types={t: replace(a, **changes) for t, a in self.types.items()}, variant=variant)

    def charging(self, charges: list[Charge]) -> Context:
        """Return this context, writing down what every primitive charges."""
        return self.using("charging", charges=charges)


@functools.cache
def _native(type_: str) -> Arithmetic:
    return Arithmetic(format_of(type_), format_of(type_))


@functools.cache
def carrier(types: frozenset[str]) -> Context:
    """Return the context of float64 that carries exact values: for every type, each step as the formula is written."""
    double = format_of("float64")
    return Context("carrier", dict.fromkeys(types, Arithmetic(double, double, summation="as-written")))


@functools.cache
def strict(types: frozenset[str], rounding: frozenset[str]) -> tuple[Context, ...]:
    """Return the contexts for a formula with numbers of some types, of which it computes with some.

    Three where it computes with one of 16 bits or less: wide (float32 inside, one rounding at the end), stepwise
    (rounded after each primitive), narrow (the type itself, inside sums too). One otherwise.
    """
    single = format_of("float32")
    narrow = {t: _native(t) for t in types}
    if all(format_of(t).precision >= single.precision for t in rounding):
        return (Context("own", narrow),)
    small = {t: form for t in types if (form := format_of(t)).precision < single.precision}
    return (
        Context("wide", narrow | {t: Arithmetic(single, single) for t in small}),
        Context("stepwise", narrow | {t: Arithmetic(single, form) for t, form in small.items()}),
        Context("narrow", narrow),
    )


def declared(types: frozenset[str], declarations: Mapping[str, DeclaredType]) -> Context:
    """Return the context that a device declares; a type of which it says nothing computes in itself."""
    return Context("declared", {t: _declared(t, declarations.get(t)) for t in types}, "declared")


def _declared(type_: str, declaration: DeclaredType | None) -> Arithmetic:
    if declaration is None:
        return _native(type_)
    storage = format_of(declaration.compute or type_)
    accumulator = format_of(declaration.accumulator) if declaration.accumulator else storage
    return Arithmetic(accumulator, storage, flush="output" in declaration.flush)
