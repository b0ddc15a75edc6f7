"""What specs are held against, and what is found out of one spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from .coverage import Extent
from .model import Spec
from .reading import SpecError


@dataclass(frozen=True, slots=True)
class Findings:
    """What holding a spec against its standard brought.

    `disputed`: differences that a disputed clause is about. `beyond`: what a library takes beyond the spec, which
    proves nothing. `failures`: operator versions that could not be asked about.
    """

    differences: tuple[SpecError, ...] = ()
    disputed: tuple[SpecError, ...] = ()
    unchecked: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    def __add__(self, other: Findings) -> Findings:
        return Findings(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Authority:
    """What the specs of a standard are held against, `source` and `version` by name.

    `extents` says what there is to cover, by group and operator version, and `group_of` to which group a spec belongs.
    `untold`: what cannot be found out; `uncounted`: operator versions whose types and attributes cannot be counted.
    """

    standard: str
    source: str
    version: str
    extents: Mapping[str, Mapping[str, Extent]]
    compare: Callable[[Spec], Findings]
    group_of: Callable[[Spec], str]
    untold: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
