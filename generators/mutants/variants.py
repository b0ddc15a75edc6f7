"""Right implementations that differ in what the standards leave open. None of them may be blamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ...specs.loader import Library
from ...specs.model import VersionSpec
from ..arithmetic.integral import OVERFLOWS, ROUNDINGS
from .implementation import Implementation
from .native import Division, Width, Working
from .orders import ORDERS

_TYPES_IN_FLOAT64: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("int8", "uint8", "int16", "uint16", "int32", "uint32"), "float64")
)


def variants(library: Library) -> tuple[Implementation, ...]:
    """Return the compliant variants: all of the arithmetic, and one for each option of each silence of the specs."""
    return (*_arithmetics(), *_integers(), *_options(library))


_WIDTHS: tuple[tuple[Width, str], ...] = (
    ("own", "the type itself"),
    ("wide", "at least float32"),
    ("widest", "a wider format"),
)
_DIVISIONS: tuple[Division, ...] = ("reciprocal", "before", "before-reciprocal", "fused")


def _variant(name: str, text: str, working: Working, choices: Mapping[str, str] | None = None) -> Implementation:
    return Implementation(name, "variant", text, working=working, choices=choices or MappingProxyType({}))


def _arithmetics() -> Iterator[Implementation]:
    yield _variant("right", "adds up in a wider format, one after the other, and rounds once", Working())
    for width, told in _WIDTHS:
        for order in ORDERS:
            yield _variant(f"{order}-{width}", f"adds up in {told}, {order}", Working(width, order))
        for division in _DIVISIONS:
            text = f"divides in {told}: {division}"
            yield _variant(f"{division}-{width}", text, Working(width, "sequential", division))
        yield _variant(
            f"pairwise-before-{width}",
            f"divides, then adds up by pairs, in {told}",
            Working(width, "pairwise", "before"),
        )
    for width, told in _WIDTHS[1:]:
        yield _variant(f"running-means-{width}", f"updates the mean in {told}", Working(width, "running-means"))
    for order in ("sequential", "pairwise", "8-lanes"):
        yield _variant(
            f"stepwise-{order}", "rounds to the type after each primitive", Working("wide", order, stepwise=True)
        )
    for flush in (("output",), ("input", "output")):
        for width, _ in _WIDTHS:
            name = f"flushing-{'-and-'.join(flush)}-{width}"
            yield _variant(
                name, f"flushes subnormal {' and '.join(flush)} to zero", Working(width, flush=frozenset(flush))
            )


def _integers() -> Iterator[Implementation]:
    for rounding in ROUNDINGS:
        for overflow in OVERFLOWS:
            working = Working(rounding=rounding, overflow=overflow)
            yield _variant(f"integers-{rounding}-{overflow}", f"integers: {rounding}, {overflow}", working)
    text = "computes integers of 32 bits and less in float64, which holds their sums"
    yield _variant("integers-in-float64", text, Working(through=_TYPES_IN_FLOAT64))


def _options(library: Library) -> Iterator[Implementation]:
    """Yield an implementation for each option of each silence that is more than arithmetic."""
    found: dict[tuple[str, str], None] = {}
    for operator in library.operators():
        for version in library.spec(operator).versions.values():
            for silence in version.silences.values():
                found.update(dict.fromkeys((silence.id, option) for option in silence.options))
    for silence_id, option in found:
        if silence_id not in ("integer-rounding", "integer-overflow"):
            text = f"answers {silence_id} by {option}"
            yield _variant(f"{silence_id}-{option}", text, Working(), MappingProxyType({silence_id: option}))


def applies(variant: Implementation, version: VersionSpec) -> bool:
    """Return whether a version can tell a variant from the right implementation by the silences that it chooses."""
    return all(
        silence in version.silences and option in version.silences[silence].options
        for silence, option in variant.choices.items()
    )
