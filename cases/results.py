"""Outcomes and results: what happened when a backend was put to a case, and its line in `results.jsonl`."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["strict", "declared"]


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


@dataclass(frozen=True, slots=True)
class Result:
    """One line of `results.jsonl`; the keys are fixed, what does not apply is None.

    `behaviour` maps each silence that applies to the options that admit the answer. `bound_ratio` is the largest error
    as a share of the bound. `level` is `declared` where only declared arithmetic admits the answer. `seconds` is the
    backend's own time for the case, preparing included where this case paid for it.
    """

    case: str
    backend: str
    outcome: Outcome
    behaviour: Mapping[str, list[str]] = field(default_factory=dict)
    reason: str | None = None
    detail: str | None = None
    bound_ratio: float | None = None
    level: Level | None = None
    clauses: tuple[str, ...] = ()
    case_digest: str | None = None
    expectation_digest: str | None = None
    seconds: float | None = None

    def to_json(self) -> str:
        """Return the result as one line of strict JSON, without the line's end."""
        shown = {name: getattr(self, name) for name in _KEYS}
        shown["behaviour"] = dict(self.behaviour)
        return _ENCODER.encode(shown)


_KEYS = tuple(f.name for f in fields(Result))
_KEY_SET = frozenset(_KEYS)


_DECODER = json.JSONDecoder()
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))  # json.dumps would make one at each line


def result_from_json(line: str | bytes) -> Result:
    """Read one line of `results.jsonl`; ValueError if it is none."""
    text = line if isinstance(line, str) else line.decode()
    read, end = _DECODER.raw_decode(text)  # json.loads looks for spaces and encodings, at every line
    if text[end:].strip():
        raise ValueError("not a result: more than one value in a line")
    if not isinstance(read, dict) or read.keys() != _KEY_SET:
        raise ValueError("not a result: its keys are not those of results.jsonl")
    read["outcome"], read["clauses"] = Outcome(read["outcome"]), tuple(read["clauses"])
    return Result(**read)
