"""The families there are. A new one is a module here, and a line below."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

from ...cases.errors import OpconformError
from ...specs.model import Spec, Vocabulary
from .elementwise import Elementwise
from .families import Family, vocabulary
from .reduction import Reduction


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


def vocabularies() -> dict[str, Vocabulary]:
    """Return what each family adds to the words of a spec file, for its loader."""
    return {name: vocabulary(family) for name, family in families().items()}
