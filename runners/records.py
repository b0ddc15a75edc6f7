"""The records of results: lines of JSON, and beside them what is attached."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii

from ..cases.results import Result
from .judge import Verdict

_CASE, _RATIO = '{"case":""', '"bound_ratio":null'
_END = '"case_digest":null,"expectation_digest":null,"seconds":null}'


@dataclass(frozen=True)
class Passes:
    """What is told of cases side by side, in columns; only those with a verdict, which all pass, have a record.

    `passing` without their ratios, `digests` of a case and of its expectation. `attached`: by name, as JSON texts.
    """

    ids: Sequence[str]
    passing: Sequence[Verdict | None]
    ratios: Sequence[float | None]
    digests: Sequence[tuple[str, str]]
    seconds: Sequence[float]
    attached: Mapping[str, Sequence[str | None]]


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

    def passes(self, answered: Passes) -> Iterator[bytes | None]:
        """Yield the record of each case that passes, None for another: what `line` and `record` make of it."""
        beside = [
            (_key(name), texts)
            for name, texts in answered.attached.items()
            if any(text is not None and verdict for text, verdict in zip(texts, answered.passing, strict=True))
        ]
        alone = beside[0] if len(beside) == 1 else None
        told = zip(answered.ids, answered.passing, answered.ratios, answered.digests, answered.seconds, strict=True)
        for place, (case, verdict, ratio, digests, seconds) in enumerate(told):
            if verdict is None:
                yield None
                continue
            line = self.line(case, verdict, ratio, digests, seconds)
            if not beside:
                yield line.encode()
            elif alone is not None:
                text = alone[1][place]
                yield (line if text is None else f"{line}\t{{{alone[0]}{text}}}").encode()
            else:
                found = [(key, text) for key, texts in beside if (text := texts[place]) is not None]
                yield _with(line, found)

    def _learn(self, verdict: Verdict) -> tuple[Verdict, str, str]:
        v = verdict
        whole = Result("", self.backend, v.outcome, v.behaviour, v.reason, v.detail, None, v.level, self.clauses)
        # quotes within a string are escaped: this one is the key
        before, _, after = whole.to_json().removeprefix(_CASE).removesuffix(_END).partition(_RATIO)
        found = self._parts[id(verdict)] = verdict, before, after
        return found


def record(line: str, attached: Sequence[tuple[str, str]]) -> bytes:
    """Return a result's record: its line and, if there are any, a TAB and its attachments, by name as JSON texts."""
    return _with(line, [(_key(name), text) for name, text in attached])


def _with(line: str, attached: Sequence[tuple[str, str]]) -> bytes:
    if not attached:
        return line.encode()
    return f"{line}\t{{{','.join([key + text for key, text in attached])}}}".encode()


def _key(name: str) -> str:
    return f"{json.dumps(name)}:"
