"""What fails a run: the outcomes that always do, and those that the user's demands make failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..cases.results import Outcome, Result
from .profile import Profile

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
