"""The arithmetics that standards leave open (the silence `accumulator`), and those that a vendor declares."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from ...cases.declared import DeclaredType
from .errors import Arithmetic, Charge
from .formats import format_of


@dataclass(frozen=True)
class Context:
    """How an implementation computes with numbers of each floating-point type. `name` is the silence's option."""

    name: str
    types: Mapping[str, Arithmetic] = field(default_factory=lambda: MappingProxyType({}))
    level: Literal["strict", "declared"] = "strict"

    def at(self, type_: str) -> Arithmetic:
        """Return the arithmetic of a type; float32's for what is no floating-point type."""
        return self.types.get(type_) or _native("float32")

    def using(self, **changes: object) -> Context:
        """Return this context with something changed in the arithmetic of every type."""
        return replace(self, types={t: replace(a, **changes) for t, a in self.types.items()})  # type: ignore[arg-type]

    def charging(self, charges: list[Charge]) -> Context:
        """Return this context, writing down what every primitive charges."""
        return self.using(charges=charges)


@functools.cache
def _native(type_: str) -> Arithmetic:
    return Arithmetic(format_of(type_), format_of(type_))


@functools.cache
def strict(types: frozenset[str]) -> tuple[Context, ...]:
    """Return the contexts for a formula with numbers of these types.

    Three where one has 16 bits or less: wide (float32 inside, one rounding at the end), stepwise (rounded after each
    primitive), narrow (the type itself, inside sums too). One otherwise.
    """
    single = format_of("float32")
    own = {t: format_of(t) for t in types}
    if all(form.precision >= single.precision for form in own.values()):
        return (Context("own", {t: Arithmetic(form, form) for t, form in own.items()}),)

    def of(accumulates: bool, stores: bool) -> dict[str, Arithmetic]:
        small = {t for t, form in own.items() if form.precision < single.precision}
        return {
            t: Arithmetic(single if accumulates and t in small else f, single if stores and t in small else f)
            for t, f in own.items()
        }

    return (
        Context("wide", of(True, True)),
        Context("stepwise", of(True, False)),
        Context("narrow", of(False, False)),
    )


@functools.cache
def carried(types: frozenset[str]) -> Context:
    """Return the context of float64 as the carrier of exact values itself."""
    double = format_of("float64")
    return Context("double", {t: Arithmetic(double, double, summation="as-written") for t in types})


def declared(types: frozenset[str], declarations: Mapping[str, DeclaredType]) -> Context:
    """Return the context that a device declares; a type of which it says nothing computes in itself."""
    return Context("declared", {t: _declared(t, declarations.get(t)) for t in types}, "declared")


def _declared(type_: str, declaration: DeclaredType | None) -> Arithmetic:
    if declaration is None:
        return _native(type_)
    storage = format_of(declaration.compute or type_)
    accumulator = format_of(declaration.accumulator) if declaration.accumulator else storage
    return Arithmetic(accumulator, storage, flush="output" in declaration.flush)
