"""The records of results: lines of JSON, and beside them what is attached."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii
from typing import Protocol

from ..cases.results import Result
from .attaching import Attached, text_of
from .judge import Verdict

_CASE, _RATIO = '{"case":""', '"bound_ratio":null'
_END = '"case_digest":null,"expectation_digest":null,"seconds":null}'


@dataclass(frozen=True)
class Told:
    """What is told of cases side by side, in columns.

    `verdicts` are without their ratios, None where a case is told of by itself. `digests` are those of a case and of
    its expectation. `attached`: by name.
    """

    ids: Sequence[str]
    verdicts: Sequence[Verdict | None]
    ratios: Sequence[float | None]
    digests: Sequence[tuple[str, str]]
    seconds: Sequence[float]
    attached: Mapping[str, Sequence[Attached | None]] = field(default_factory=dict)

    def part(self, start: int, stop: int) -> Told:
        """Return what is told of the cases from `start` on and before `stop`."""
        if (start, stop) == (0, len(self.ids)):
            return self
        here = slice(start, stop)
        attached = {name: every[here] for name, every in self.attached.items()}
        columns = self.ids[here], self.verdicts[here], self.ratios[here], self.digests[here], self.seconds[here]
        return Told(*columns, attached)

    def spans(self) -> Iterator[tuple[int, int, bool]]:
        """Yield where neighbours begin and end that have verdicts, or have none, and whether they do."""
        start = 0
        for known, places in itertools.groupby(verdict is not None for verdict in self.verdicts):
            stop = start + sum(1 for _ in places)
            yield start, stop, known
            start = stop


@dataclass(frozen=True)
class ResultLines:
    """Writes the results of a program's cases: byte for byte as `Result.to_json`, faster where verdicts are shared."""

    backend: str
    clauses: tuple[str, ...]

    def line(self, case: str, verdict: Verdict, ratio: float | None, digests: tuple[str, str], seconds: float) -> str:
        """Return the line of one result; `verdict` without its ratio, `digests` of the case and of its expectation."""
        _, before, after = self._parts.get(id(verdict)) or self._learn(verdict)
        told = "null" if ratio is None else repr(ratio)
        return (
            f'{{"case":{encode_basestring_ascii(case)}{before}"bound_ratio":{told}{after}'
            f'"case_digest":"{digests[0]}","expectation_digest":"{digests[1]}","seconds":{round(seconds, 7)!r}}}'
        )

    @functools.cached_property
    def _parts(self) -> dict[int, tuple[Verdict, str, str]]:
        """What stands before and after the ratio, by the identity of a verdict, which is kept so that it stays its."""
        return {}

    def records(self, told: Told) -> Iterator[bytes]:
        """Yield the record of each case, all of which have a verdict: what `line` and `record` make of it."""
        beside = [(_key(name), every) for name, every in told.attached.items()]
        columns = zip(told.ids, told.verdicts, told.ratios, told.digests, told.seconds, strict=True)
        for place, (case, verdict, ratio, digests, seconds) in enumerate(columns):
            if verdict is None:
                raise ValueError(f"{case}: no verdict")
            line = self.line(case, verdict, ratio, digests, seconds)
            found = [(key, text_of(one)) for key, every in beside if (one := every[place]) is not None]
            yield _with(line, found)

    def result(self, verdict: Verdict) -> Result:
        """Return what results with this verdict have in common, without a case."""
        v = verdict
        return Result("", self.backend, v.outcome, v.behaviour, v.reason, v.detail, None, v.level, self.clauses)

    def _learn(self, verdict: Verdict) -> tuple[Verdict, str, str]:
        # quotes within a string are escaped: this one is the key
        before, _, after = self.result(verdict).to_json().removeprefix(_CASE).removesuffix(_END).partition(_RATIO)
        found = self._parts[id(verdict)] = verdict, before, after
        return found


class Blocks(Protocol):
    """Makes one record of what is told of several cases of a program, in the worker; picklable."""

    def __call__(self, lines: ResultLines, told: Told, /) -> bytes | None:
        """Return the record: any bytes. None where each case needs its own."""


def record(line: str, attached: Sequence[tuple[str, str]]) -> bytes:
    """Return a result's record: its line and, if there are any, a TAB and its attachments, by name as JSON texts."""
    return _with(line, [(_key(name), text) for name, text in attached])


def _with(line: str, attached: Sequence[tuple[str, str]]) -> bytes:
    if not attached:
        return line.encode()
    return f"{line}\t{{{','.join([key + text for key, text in attached])}}}".encode()


def _key(name: str) -> str:
    return f"{json.dumps(name)}:"
