"""Outcomes and results: what happened when a backend ran a case, and its line in `results.jsonl`."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

Level: TypeAlias = Literal["strict", "declared"]
EffectReason: TypeAlias = Literal["input-overwritten", "answer-changed"]
"""Reasons for a wrong value outside the answer's elements: the run changed an input or the previous answer."""

SIDE_EFFECTS: Final[Mapping[str, str]] = {
    "input-overwritten": "the run wrote to an input",
    "answer-changed": "the run changed the answer that the run before gave",
}


STATIC: Final = "static"
"""The reason of an accepted invalid program that a checker has to refuse: a failure, unlike other accepted inputs."""


class Outcome(enum.StrEnum):
    """What happened; the names are fixed."""

    PASS = "pass"  # noqa: S105 - no password
    WRONG_VALUE = "wrong-value"
    WRONG_SHAPE = "wrong-shape"
    WRONG_DTYPE = "wrong-dtype"
    ACCEPTED_INVALID = "accepted-invalid"
    ERROR = "error"
    UNSUPPORTED = "unsupported"
    CRASH = "crash"
    TIMEOUT = "timeout"
    WAIVED = "waived"
    RUNNER_ERROR = "runner-error"


class Result(msgspec.Struct, frozen=True):
    """One line of `results.jsonl`; the keys are fixed, and a field that does not apply is None.

    `behaviour` maps each silence that applies to the options that admit the answer. `bound_ratio` is the largest error
    divided by the bound. `level` is `declared` if only declared arithmetic admits the answer. `seconds` is the
    backend's own time for the case, including preparation if this case caused it.
    """

    case: str
    backend: str
    outcome: Outcome
    behaviour: Mapping[str, list[str]] = msgspec.field(default_factory=dict)
    reason: str | None = None
    detail: str | None = None
    bound_ratio: float | None = None
    level: Level | None = None
    clauses: tuple[str, ...] = ()
    case_digest: str | None = None
    expectation_digest: str | None = None
    seconds: float | None = None

    def to_json(self) -> bytes:
        """Return the result as one line of strict JSON in ASCII, without a line end.

        Raises ValueError for NaN and infinities.
        """
        for number in (self.bound_ratio, self.seconds):
            if number is not None and not math.isfinite(number):
                raise ValueError(f"a result has {number} for a number")
        try:
            line = msgspec.json.encode(self)
        except UnicodeEncodeError:  # a backend's name and messages may contain invalid Unicode
            fields = {name: getattr(self, name) for name in ("case", "backend", "reason", "detail")}
            texts = {name: text and text.encode(errors="backslashreplace").decode() for name, text in fields.items()}
            line = msgspec.json.encode(msgspec.structs.replace(self, **texts))
        # beyond ASCII there are characters that end a line for some readers, and that some terminals obey
        return line if line.isascii() else json.dumps(json.loads(line), separators=(",", ":")).encode()


# A result in memory may omit fields, a line may not.
_LINE: Final = msgspec.json.Decoder(
    msgspec.defstruct("Line", [(f.name, f.type) for f in msgspec.structs.fields(Result)], forbid_unknown_fields=True)
)


def result_from_json(line: str | bytes) -> Result:
    """Parse one line of `results.jsonl`; ValueError if it is invalid."""
    return Result(*msgspec.structs.astuple(_LINE.decode(line)))
