"""Families of operators, a module each, found by its name: references, recipes of inputs, and functions of shapes.

What a function is, its first parameter says: a `Call` makes it a reference if it returns values, a `Drawing` a recipe
that draws an input, a `Blank` one that fills it, a `Shaping` one that says its shape. A name that Python keeps for
itself ends in `_`, as does `if_`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from ...cases.errors import OpconformError, did_you_mean
from ...specs.model import (
    Spec,
    Value,
    VersionSpec,
    Vocabulary,
    Word,
)
from ..fills import DOMAINS, DRAWS, RECIPES

Function: TypeAlias = Callable[..., Any]

_KINDS: Mapping[str, str] = MappingProxyType(
    {"Call": "references", "Drawing": "draws", "Shaping": "shapes", "Blank": "fills"}
)


@dataclass(frozen=True)
class Shaping:
    """What a function of shapes may ask: the symbols that levels bind, and attributes."""

    version: VersionSpec
    levels: Mapping[str, Value]
    symbols: Mapping[str, int | tuple[int, ...]]

    def extent(self, symbol: str) -> int:
        """Return a whole number that a symbol stands for. Raises OpconformError where nothing binds it."""
        found = self.symbols.get(symbol)
        if not isinstance(found, int):
            raise OpconformError(f"{self.version.operator}: nothing says what the extent {symbol} is")
        return found

    def attr(self, name: str) -> Value:
        """Return an attribute's level, its default where it is not given, else Word.ABSENT."""
        value, signature = self.levels.get(name, Word.ABSENT), self.version.signature.attribute(name)
        usual: Any = None if signature is None else signature.default
        return value if value is not Word.ABSENT or usual is None else usual


@dataclass(frozen=True)
class Family:
    """One family: its functions by the names that spec files have for them."""

    name: str
    references: Mapping[str, Function]
    draws: Mapping[str, Function]
    shapes: Mapping[str, Function]
    own_fills: Mapping[str, Function]

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that the family gives to spec files."""
        return Vocabulary(
            fills=frozenset(RECIPES) | frozenset(self.own_fills),
            references=frozenset(self.references),
            shapes=frozenset(self.shapes),
            draws=frozenset(self.draws),
            domains=frozenset(DOMAINS),
        )


@functools.cache
def families() -> Mapping[str, Family]:
    """Return all families by name; a module that cannot be imported is none."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    return MappingProxyType({name: _family(name) for name in names})


def family_of(spec: Spec) -> Family:
    """Return a spec's family. Raises OpconformError where there is none such."""
    found = families().get(spec.family)
    if found is None:
        hint = did_you_mean(spec.family, families()) or f"; there are {', '.join(families())}"
        raise OpconformError(f"{spec.file}: no family is called {spec.family!r}{hint}")
    return found


def reference_of(spec: Spec) -> Function:
    """Return what says the outputs of a spec's operator."""
    return family_of(spec).references[spec.function]


def vocabularies() -> dict[str, Vocabulary]:
    """Return what each family adds to the words of a spec file, for its loader."""
    return {name: family.vocabulary for name, family in families().items()}


def _family(name: str) -> Family:
    module = importlib.import_module(f".{name}", __name__)
    found: dict[str, dict[str, Function]] = {kind: {} for kind in _KINDS.values()}
    for word, function in vars(module).items():
        if word.startswith("_") or not inspect.isfunction(function) or function.__module__ != module.__name__:
            continue
        signature = inspect.signature(function)
        first = next(iter(signature.parameters.values()), None)
        kind = _KINDS.get(str(first.annotation)) if first else None
        if kind and (kind != "references" or "Value" in str(signature.return_annotation)):
            spoken = word.rstrip("_")
            found[kind][spoken if kind == "references" else spoken.replace("_", "-")] = function
    draws = {**DRAWS, **found["draws"]}
    return Family(name, found["references"], draws, found["shapes"], found["fills"])
