"""What fails a run: the outcomes that always do, and those that `--require` and `--profile` make failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..cases.errors import OpconformError, did_you_mean
from ..cases.results import Outcome, Result
from .profile import Profile

if TYPE_CHECKING:
    from ..specs.loader import Library

ALWAYS_FAILING = frozenset(
    {
        Outcome.WRONG_VALUE,
        Outcome.WRONG_SHAPE,
        Outcome.WRONG_DTYPE,
        Outcome.ERROR,
        Outcome.CRASH,
        Outcome.TIMEOUT,
    }
)


def is_about_invalid(result: Result) -> bool:
    """Whether a result is about an invalid input."""
    return "invalid" in result.behaviour


@dataclass(frozen=True)
class Demands:
    """What a run asks for beside correctness: answers to silences (`--require`), and a profile (`--profile`)."""

    required: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    profile: Profile | None = None

    def fails(self, result: Result, *, suspended: bool = False) -> bool:
        """Whether a result makes the run non-conformant; of suspended cases only a crash does."""
        if result.outcome is Outcome.PASS:  # most are
            return False
        if result.outcome is Outcome.CRASH:
            return True
        if suspended:
            return False
        if result.outcome is Outcome.ACCEPTED_INVALID:
            return self.required.get("invalid") == "rejected"
        if result.outcome is Outcome.UNSUPPORTED:
            return self._breaks_promise(result)
        return result.outcome in ALWAYS_FAILING

    def _breaks_promise(self, result: Result) -> bool:
        return self.profile is not None and not is_about_invalid(result) and self.profile.promises(result.case)


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
