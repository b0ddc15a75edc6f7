"""Whether what probes show bears out a declaration of arithmetic, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..cases.declared import Declaration, DeclaredType
from ..cases.elements import element_type
from .fingerprint import Fingerprints, Place, Probe, Widths

Bearing: TypeAlias = Literal["supported", "contradicted", "not shown"]

_PRECISIONS = {"float16": 11, "bfloat16": 8, "tf32": 11, "float32": 24, "float64": 53}


@dataclass(frozen=True)
class Evidence:
    """What a backend's answers say of one declared field: with a case where they support or contradict it."""

    backend: str
    type: str
    field: str
    declared: str
    bearing: Bearing
    case: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        told = {"type": self.type, "field": self.field, "declared": self.declared}
        return {**told, "evidence": self.bearing, "case": self.case}


def evidence_on(declaration: Declaration, seen: Fingerprints, backend: str) -> list[Evidence]:
    """Return what is known of every declared field; a contradiction in one operator version is one."""
    found = []
    for name, declared in declaration.types.items():
        places = [place for place in seen.places(backend) if place.type == name]
        for field, value, views in _fields(name, declared, seen, places):
            bearing, case = _joined(views)
            found.append(Evidence(backend, name, field, value, bearing, case))
    return found


_View: TypeAlias = tuple[Bearing, str | None]


def _joined(views: Sequence[_View]) -> _View:
    for wanted in ("contradicted", "supported"):
        cases = [case or "" for bearing, case in views if bearing == wanted]
        if cases:
            return ("contradicted" if wanted == "contradicted" else "supported"), min(cases) or None
    return "not shown", None


def _fields(
    name: str, declared: DeclaredType, seen: Fingerprints, places: Sequence[Place]
) -> Iterator[tuple[str, str, list[_View]]]:
    if declared.compute:
        yield "compute", declared.compute, [_compute(name, declared.compute, seen, place) for place in places]
    if declared.accumulator:
        bits = _PRECISIONS[declared.accumulator]
        yield "accumulator", declared.accumulator, [_wide(seen.widths(p, "accumulator"), bits) for p in places]
    if "input" in declared.flush:
        views = [_flush(seen, p, ("input-and-output",), ("none", "output")) for p in places]
        yield "flush", "input", views
    if "output" in declared.flush:
        views = [_flush(seen, p, ("output", "input-and-output"), ("none",)) for p in places]
        yield "flush", "output", [*views, *[_flushed_sums(seen, p) for p in places]]


def _wide(widths: Widths, bits: int) -> _View:
    """Hold a number of bits against those that probes kept and lost."""
    against = [case for kept, case in widths.kept.items() if kept >= bits]
    against += [case for lost, case in widths.lost.items() if lost < bits]
    if against:
        return "contradicted", min(against)
    if widths.cases and {p for p in _PRECISIONS.values() if widths.fits(p)} == {bits}:
        return "supported", widths.cases[-1]
    return "not shown", None


def _compute(name: str, declared: str, seen: Fingerprints, place: Place) -> _View:
    """Hold a format against how inputs are read, and one that holds the type against how results are rounded."""
    widths, once = seen.widths(place, "inputs"), seen.either(place, "rounding")
    bits, own = _PRECISIONS[declared], element_type(name).float_format.precision
    if bits < own:
        return _wide(widths, bits)
    if widths.lost:
        return "contradicted", min(widths.lost.values())
    wider = bits > own
    if (not wider) in once:
        return "contradicted", once[not wider]
    return ("supported", once[wider]) if wider in once else ("not shown", None)


def _flush(seen: Fingerprints, place: Place, so: Sequence[str], not_so: Sequence[str]) -> _View:
    shown = seen.silence(place, "flush")
    against, for_it = ([shown[option] for option in options if option in shown] for options in (not_so, so))
    if against:
        return "contradicted", min(against)
    return ("supported", min(for_it)) if for_it else ("not shown", None)


def _flushed_sums(seen: Fingerprints, place: Place) -> _View:
    probe: Probe = "partial-sums"
    lost = seen.either(place, probe).get(False)  # kept sums say little: a wider accumulator has none that are subnormal
    return ("supported", lost) if lost else ("not shown", None)
