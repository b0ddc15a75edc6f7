"""Families of operators, one module each, found by name: references, recipes for inputs, and functions of shapes.

The type of a function's first parameter decides its role: with a `Call` it is a reference (or, with a `Formula` beside
it, a function that prepares the inputs of another operator's formula), with a `Drawing` a recipe that draws an input,
with a `Blank` a recipe that fills one, with a `Shaping` a function that returns its shape. A name that Python reserves
gets a final `_`, such as `if_`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from ...cases.errors import OpconformError, did_you_mean
from ...specs.model import (
    Binding,
    Spec,
    Value,
    VersionSpec,
    Vocabulary,
    Word,
)
from ..arithmetic.binding import through
from ..fills import DOMAINS, DRAWS, RECIPES

Function: TypeAlias = Callable[..., Any]

_KINDS: Mapping[str, str] = MappingProxyType(
    {"Call": "references", "Drawing": "draws", "Shaping": "shapes", "Blank": "fills"}
)


@dataclass(frozen=True)
class Shaping:
    """The context of a function of shapes: the symbols that levels bind, and attributes."""

    version: VersionSpec
    levels: Mapping[str, Value]
    symbols: Mapping[str, int | tuple[int, ...]]

    def extent(self, symbol: str) -> int:
        """Return the whole number of a symbol. Raises OpconformError if nothing binds it."""
        extent = self.symbols.get(symbol)
        if not isinstance(extent, int):
            raise OpconformError(f"{self.version.operator}: nothing binds the extent {symbol}")
        return extent

    def attr(self, name: str) -> Value:
        """Return an attribute's level, else its default, else Word.ABSENT."""
        value, signature = self.levels.get(name, Word.ABSENT), self.version.signature.attribute(name)
        usual: Any = None if signature is None else signature.default
        return value if value is not Word.ABSENT or usual is None else usual


@dataclass(frozen=True)
class Family:
    """One family: its functions by their names in spec files."""

    name: str
    references: Mapping[str, Function]
    draws: Mapping[str, Function]
    shapes: Mapping[str, Function]
    own_fills: Mapping[str, Function]
    prepares: Mapping[str, Function]

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that the family defines for spec files."""
        return Vocabulary(
            fills=frozenset(RECIPES) | frozenset(self.own_fills),
            references=frozenset(self.references),
            shapes=frozenset(self.shapes),
            draws=frozenset(self.draws),
            domains=frozenset(DOMAINS),
        )


@functools.cache
def families() -> Mapping[str, Family]:
    """Return all families by name, without modules that cannot be imported."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    return MappingProxyType({name: _family(name) for name in names})


def family_of(spec: Spec) -> Family:
    """Return a spec's family, with the recipes and shapes of the functions that prepare its inputs.

    Raises OpconformError if there is no such family.
    """
    family = families().get(spec.family)
    if family is None:
        hint = did_you_mean(spec.family, families()) or f"; there are {', '.join(families())}"
        raise OpconformError(f"{spec.file}: no family is called {spec.family!r}{hint}")
    for other in (families()[name] for name in modules_of_bindings(spec)):
        family = replace(
            family,
            draws={**other.draws, **family.draws},
            shapes={**other.shapes, **family.shapes},
            own_fills={**other.own_fills, **family.own_fills},
        )
    return family


def modules_of_bindings(spec: Spec) -> tuple[str, ...]:
    """Return the modules of the functions that call the formulas a spec is bound to, sorted, unknown ones left out."""
    bindings = (version.binding for version in spec.versions.values())
    return tuple(sorted({b.by.partition(".")[0] for b in bindings if b is not None and b.by} & families().keys()))


def reference_of(spec: Spec, version: VersionSpec) -> Function:
    """Return the reference that computes a version's outputs, its own or the one that it is bound to."""
    own = family_of(spec).references[spec.function]
    return own if version.binding is None else _bound(own, version.binding)


@functools.cache  # the same function for the same version: recordings are kept by function
def _bound(reference: Function, binding: Binding) -> Function:
    if binding.by is None:
        return through(reference, binding)
    module, _, function = binding.by.partition(".")
    prepares = families()[module].prepares if module in families() else {}
    if function not in prepares:
        hint = did_you_mean(binding.by, [f"{m}.{name}" for m, family in families().items() for name in family.prepares])
        raise OpconformError(f"no function that calls a formula is named {binding.by!r}{hint}")
    return through(reference, binding, prepares[function])


def vocabularies() -> dict[str, Vocabulary]:
    """Return each family's words for spec files, for the loader."""
    return {name: family.vocabulary for name, family in families().items()}


def _family(name: str) -> Family:
    module = importlib.import_module(f".{name}", __name__)
    functions: dict[str, dict[str, Function]] = {kind: {} for kind in (*_KINDS.values(), "prepares")}
    for word, function in vars(module).items():
        if word.startswith("_") or not inspect.isfunction(function) or function.__module__ != module.__name__:
            continue
        signature = inspect.signature(function)
        first = next(iter(signature.parameters.values()), None)
        kind = _KINDS.get(str(first.annotation)) if first else None
        if kind == "references" and any(str(p.annotation) == "Formula" for p in signature.parameters.values()):
            functions["prepares"][word.rstrip("_")] = function
        elif kind and (kind != "references" or "Value" in str(signature.return_annotation)):
            spoken = word.rstrip("_")
            functions[kind][spoken if kind == "references" else spoken.replace("_", "-")] = function
    draws = {**DRAWS, **functions["draws"]}
    return Family(name, functions["references"], draws, functions["shapes"], functions["fills"], functions["prepares"])
