"""The families there are. A new one is a module here, and a line below."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ...cases.errors import OpconformError
from ...cases.ids import CaseId
from ...cases.program import count
from ...specs.model import Spec, VersionSpec, Vocabulary
from ..fills import FIRST
from .elementwise import Elementwise
from .families import Family, vocabulary
from .reduction import Reduction
from .rows import without_settings


@functools.cache
def families() -> Mapping[str, Family]:
    """Return the families by the name that stands before the dot of a spec's `family`."""
    return MappingProxyType({"elementwise": Elementwise(), "reduction": Reduction()})


def family_of(spec: Spec) -> Family:
    """Return a spec's family."""
    found = families().get(spec.family)
    if found is None:
        raise OpconformError(f"{spec.file}: no family is called {spec.family!r}; there are {', '.join(families())}")
    return found


def settle(spec: Spec, version: VersionSpec, case: CaseId) -> CaseId:
    """Return the id without what means nothing, so that equal content has one id.

    That is what the family says, a recipe that fills nothing, and symbolic dimensions where there are no dimensions.
    """
    settled = family_of(spec).settle(version, case)
    if not any(settled.shapes):
        settled = without_settings(settled, "dims")
    if not any(map(count, settled.shapes)):
        settled = replace(without_settings(settled, "draw", "seed"), fill=FIRST)
    return settled


def vocabularies() -> dict[str, Vocabulary]:
    """Return what each family adds to the words of a spec file, for its loader."""
    return {name: vocabulary(family) for name, family in families().items()}
