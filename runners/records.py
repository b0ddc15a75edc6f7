"""The records of results: lines of JSON, and beside them what is attached."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass

from ..cases.results import Outcome, Result
from .lanes import Passing

_CASE, _RATIO = '{"case":""', '"bound_ratio":null'
_END = '"case_digest":null,"expectation_digest":null,"seconds":null}'


@dataclass(frozen=True)
class PassLines:
    """Writes the results of cases that pass, of one program: byte for byte as `Result.to_json`, and faster."""

    backend: str
    clauses: tuple[str, ...]

    def line(self, case: str, taken: Passing, ratio: float | None, digests: tuple[str, str], seconds: float) -> str:
        """Return the line of one result; `digests` of the case and of its expectation."""
        before, after = self._parts[id(taken)] if id(taken) in self._parts else self._learn(taken)
        told = "null" if ratio is None else repr(ratio)
        return (
            f'{{"case":{json.dumps(case)}{before}"bound_ratio":{told}{after}'
            f'"case_digest":"{digests[0]}","expectation_digest":"{digests[1]}","seconds":{round(seconds, 7)!r}}}'
        )

    @functools.cached_property
    def _parts(self) -> dict[int, tuple[str, str]]:
        """What stands before and after the ratio, by the identity of how a case passes."""
        return {}

    @functools.cached_property
    def _known(self) -> list[Passing]:
        """Kept, so that their identities stay theirs."""
        return []

    def _learn(self, taken: Passing) -> tuple[str, str]:
        whole = Result("", self.backend, Outcome.PASS, taken.behaviour, level=taken.level, clauses=self.clauses)
        # quotes within a string are escaped: this one is the key
        before, _, after = whole.to_json().removeprefix(_CASE).removesuffix(_END).partition(_RATIO)
        self._known.append(taken)
        self._parts[id(taken)] = before, after
        return before, after


def record(line: str, attached: Sequence[tuple[str, str]]) -> bytes:
    """Return a result's record: its line and, if there are any, a TAB and its attachments, by name as JSON texts."""
    if not attached:
        return line.encode()
    beside = ",".join(f"{json.dumps(name)}:{text}" for name, text in attached)
    return f"{line}\t{{{beside}}}".encode()
