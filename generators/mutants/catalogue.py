"""All mutants by operator version, what is known to be no mutant there, and every implementation by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NamedTuple

from ...cases.errors import OpconformError, did_you_mean
from ...specs.loader import Library
from ...specs.model import Spec, VersionSpec
from .arithmetic import arithmetic_mutants
from .axes import axes_mutants
from .implementation import Implementation
from .process import process_mutants
from .shapes import shape_mutants
from .signature import signature_mutants
from .variants import variants


class Equivalent(NamedTuple):
    """Mutants that answer as a right implementation does, for a reason that holds for every input."""

    versions: str
    mutants: str
    reason: str


_EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent("onnx/Mean-1", "ignored-consumed_inputs", "clause consumed-inputs: it has no effect on the result"),
)


def mutants_of(spec: Spec, version: VersionSpec) -> Mapping[str, Implementation]:
    """Return the mutants that an operator version's signature and family give, by name."""
    found = [
        *signature_mutants(spec, version),
        *axes_mutants(spec, version),
        *arithmetic_mutants(version),
        *shape_mutants(version),
        *process_mutants(),
    ]
    return MappingProxyType({mutant.name: mutant for mutant in found})


def equivalent(version: VersionSpec, mutant: str) -> str | None:
    """Return why a mutant is right in a version; None if it is not."""
    name = str(version.operator)
    known = (e.reason for e in _EQUIVALENT if fnmatchcase(name, e.versions) and fnmatchcase(mutant, e.mutants))
    return next(known, None)


def all_mutants(library: Library) -> Mapping[str, Implementation]:
    """Return every mutant of every operator version, by name, in the order of the kinds."""
    found: dict[str, Implementation] = {}
    for spec, version in versions(library):
        for name, mutant in mutants_of(spec, version).items():
            found.setdefault(name, mutant)
    kinds = list(dict.fromkeys(m.kind for m in found.values()))
    return MappingProxyType(dict(sorted(found.items(), key=lambda item: kinds.index(item[1].kind))))


def versions(library: Library) -> Iterator[tuple[Spec, VersionSpec]]:
    """Yield every operator version."""
    for operator in library.operators():
        spec = library.spec(operator)
        for version in spec.versions.values():
            yield spec, version


def implementation(library: Library, name: str) -> Implementation:
    """Return a mutant or a variant by its name. Raises OpconformError."""
    known = {**all_mutants(library), **{v.name: v for v in variants(library)}}
    if name not in known:
        hint = did_you_mean(name, known) or "; `opconform mutants` shows them"
        raise OpconformError(f"no mutant and no variant is called {name!r}{hint}")
    return known[name]
