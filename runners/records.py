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
    its expectation. `seconds` are rounded as results tell them. `attached`: by name.
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

    @functools.cached_property
    def _parts(self) -> dict[int, tuple[Verdict, str, str]]:
        """What stands before and after the ratio, by the identity of a verdict, which is kept so that it stays its."""
        return {}

    def lines(self, told: Told) -> list[str]:
        """Return the lines of cases, all of which have a verdict."""
        found: list[str] = [""] * len(told.ids)
        cases = escaped(told.ids)
        for verdict, places in by_identity(told.verdicts):
            _, before, after = self._parts.get(id(verdict)) or self._learn(verdict)
            before, after = f'"{before}"bound_ratio":', f'{after}"case_digest":"'
            every = cases, told.ratios, told.digests, told.seconds
            columns = every if len(places) == len(cases) else [[one[place] for place in places] for one in every]
            lines = [
                f'{{"case":"{case}{before}{"null" if ratio is None else repr(ratio)}{after}{digest}",'
                f'"expectation_digest":"{expectation}","seconds":{seconds!r}}}'
                for case, ratio, (digest, expectation), seconds in zip(*columns, strict=True)
            ]
            if len(lines) == len(found):
                return lines
            for place, line in zip(places, lines, strict=True):
                found[place] = line
        return found

    def records(self, told: Told) -> Iterator[bytes]:
        """Yield the record of each case, all of which have a verdict: its line, and what is attached to it."""
        beside = [(_key(name), every) for name, every in told.attached.items()]
        for place, line in enumerate(self.lines(told)):
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


def by_identity(verdicts: Sequence[Verdict | None]) -> list[tuple[Verdict, Sequence[int]]]:
    """Return verdicts, those that are one object once, with their places. Raises ValueError where one is missing."""
    found = {id(verdict): verdict for verdict in verdicts}
    if None in found.values():
        raise ValueError("a case without a verdict")
    if len(found) == 1:
        return [(verdict, range(len(verdicts))) for verdict in found.values() if verdict is not None]
    places: dict[int, list[int]] = {key: [] for key in found}
    for place, verdict in enumerate(verdicts):
        places[id(verdict)].append(place)
    return [(verdict, places[key]) for key, verdict in found.items() if verdict is not None]


def escaped(texts: Sequence[str]) -> Sequence[str]:
    """Return texts as they stand between a JSON string's quotes."""
    whole = "".join(texts)
    if len(encode_basestring_ascii(whole)) == len(whole) + 2:  # nothing in there is escaped
        return texts
    return [encode_basestring_ascii(text)[1:-1] for text in texts]


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
