"""All mutants and variants of an operator version, and every implementation by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...cases.elements import element_types
from ...cases.errors import OpconformError, did_you_mean
from ...cases.program import element_names
from ...specs.loader import Library
from ...specs.model import Port, Spec, VersionSpec
from ..primitives import ROOMS
from .calls import call_mutants
from .effects import AXES_NAMES, answer_mutants
from .formula import formula_mutant
from .implementation import Implementation
from .process import process_mutants
from .state import state_mutants
from .variants import variants_of

_NODE = re.compile(r"(?P<primitive>[a-z_]+)-(?:\d+|all):[a-z0-9-]+")


def mutants_of(spec: Spec, version: VersionSpec) -> Iterator[Implementation]:
    """Yield the mutants that an operator version's signature gives; those of its formulas come with the cases."""
    signature = version.signature
    outputs = _element_types(version, signature.outputs)
    types = list(dict.fromkeys([*_element_types(version, signature.inputs), *outputs]))
    several = len(signature.outputs) > 1
    yield from call_mutants(spec, version)
    variadic = any(p.is_variadic for p in signature.inputs)
    names = {a.name for a in signature.attributes} | {p.name for p in signature.inputs}
    axes = bool(names & AXES_NAMES)
    yield from answer_mutants(types, outputs, several=several, variadic=variadic, axes=axes)
    if signature.inputs:
        yield from state_mutants()


def _element_types(version: VersionSpec, ports: Sequence[Port]) -> list[str]:
    """Return the element types that ports may have."""
    found: dict[str, None] = {}
    for port in ports:
        letter = version.signature.letter(port.name)
        found.update(dict.fromkeys(version.signature.types[letter] if letter else (port.type,)))
    return [name for text in found for name in element_names(text) if name in element_types()]


def implementation(library: Library, name: str) -> Implementation:
    """Return a mutant or a variant of whatever operator version by its name. Raises OpconformError."""
    node = _NODE.fullmatch(name)
    if node and (node["primitive"] in ROOMS or node["primitive"] == "literal"):
        return formula_mutant(name)
    known: dict[str, Implementation] = {one.name: one for one in process_mutants()}
    for operator in library.operators():
        spec = library.spec(operator)
        for version in spec.versions.values():
            for one in (*mutants_of(spec, version), *variants_of(version)):
                if one.name == name:
                    return one
                known.setdefault(one.name, one)
    if name not in known:
        hint = did_you_mean(name, known) or "; `opconform mutants --html FILE` has all"
        raise OpconformError(f"no mutant and no variant is called {name!r}{hint}")
    return known[name]
