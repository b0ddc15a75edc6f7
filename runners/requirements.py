"""`--require SILENCE=OPTION`: answers that the standard leaves open and the user does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ..cases.errors import OpconformError, did_you_mean
from ..specs.loader import Library

_EVERYWHERE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "accumulator": ("wide", "stepwise", "narrow"),
        "flush": ("none", "output", "input-and-output"),
        "invalid": ("rejected", "answered"),
        "overflow": ("avoided", "infinite"),
        "summation": ("sums", "running-means"),
        "zero-sign": ("kept", "lost"),
    }
)


def silences(library: Library | None = None) -> dict[str, tuple[str, ...]]:
    """Return every silence with its options: those of all operators, and those of the spec files."""
    found = dict(_EVERYWHERE)
    specs = [] if library is None else library.specs()
    for spec in specs:
        for version in spec.versions.values():
            for silence in version.silences.values():
                found[silence.id] = tuple(dict.fromkeys((*found.get(silence.id, ()), *silence.options)))
    return found


def requirements(texts: Iterable[str], library: Library) -> Mapping[str, str]:
    """Return silence to option. Raises OpconformError for a silence or an option that there isn't."""
    return required(texts, silences(library)) if texts else {}


def required(texts: Iterable[str], known: Mapping[str, tuple[str, ...]]) -> Mapping[str, str]:
    """Return silence to option, of those that are known with their options. Raises OpconformError."""
    chosen: dict[str, str] = {}
    for text in texts:
        silence, equals, option = text.partition("=")
        if not equals:
            raise OpconformError(f"--require {text}: expected SILENCE=OPTION, as in accumulator=wide")
        if silence not in known:
            hint = did_you_mean(silence, known) or f"; there are {', '.join(sorted(known))}"
            raise OpconformError(f"--require {text}: no silence is called {silence!r}{hint}")
        if option not in known[silence]:
            raise OpconformError(f"--require {text}: {silence} has the options {', '.join(known[silence])}")
        if chosen.setdefault(silence, option) != option:
            raise OpconformError(f"--require {text}: {silence}={chosen[silence]} is required already")
    return chosen
