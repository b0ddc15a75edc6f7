"""The lists of cases that a browser filters: columns, packed so that a hundred thousand cases stay small."""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...cases.elements import Array
from ...cases.results import Outcome, Result
from ..tally import kind_of
from ..text import reproduce_line
from .gather import Column, Gathered
from .writer import SiteWriter, operator_page_name, shown

CALL = "opconformData"
FOLDER = "data/cases"

CHUNK_CASES = 50
CHUNK_BYTES = 1 << 18  # before packing: a size that a browser unpacks and parses in a blink


def packed(content: bytes) -> str:
    """Return bytes as base64 of a raw deflate stream, which browsers can inflate."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(deflate.compress(content) + deflate.flush()).decode()


def unpacked(text: str) -> bytes:
    """Return the bytes that `packed` was given."""
    return zlib.decompress(base64.b64decode(text), -zlib.MAX_WBITS)


def strict_json(content: object) -> bytes:
    """Return strict JSON in ASCII without any spaces."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def write_packed(site: SiteWriter, name: str, content: bytes) -> None:
    """Write bytes that a page requests by this name."""
    site.script(f"{FOLDER}/{name}.js", CALL, name, packed(content))


def smallest(values: Iterable[int] | Array) -> Array:
    """Return whole numbers from 0 on in the narrowest unsigned type, little-endian."""
    numbers = np.asarray(values if isinstance(values, np.ndarray) else list(values), np.int64)
    largest = int(numbers.max(initial=0))
    return numbers.astype("<u1" if largest < 1 << 8 else "<u2" if largest < 1 << 16 else "<u4")


def table_bytes(head: Mapping[str, Any], columns: Mapping[str, Array]) -> bytes:
    """Return a table: the length of its head in four bytes, the head as JSON, and the columns.

    The head has for each column its type and its start, counted from the end of the head. Starts are multiples of eight
    bytes, as typed arrays require.
    """
    places, parts, offset = {}, [], 0
    for name, column in columns.items():
        content = np.ascontiguousarray(column).tobytes()
        places[name] = [column.dtype.str[1:], offset, len(column)]
        parts.append(content + bytes(-len(content) % 8))
        offset += len(parts[-1])
    header = strict_json({**head, "columns": places})
    header += b" " * (-(len(header) + 4) % 8)
    return b"".join([len(header).to_bytes(4, "little"), header, *parts])


def chunks(details: Iterable[tuple[int, Mapping[str, Any], str | None]]) -> Iterator[tuple[Sequence[int], bytes]]:
    """Yield chunks of details, which are one file each: the numbers of their cases, and their bytes before packing.

    All scripts of a chunk are next to each other: they are mostly equal, so they compress to almost nothing.
    """
    chunk: list[tuple[int, Mapping[str, Any], str | None]] = []
    size = 0
    for number, fields, script in details:
        length = len(strict_json(fields)) + len(script or "")
        if chunk and (len(chunk) == CHUNK_CASES or size + length > CHUNK_BYTES):
            yield _chunk(chunk)
            chunk, size = [], 0
        chunk.append((number, fields, script))
        size += length
    if chunk:
        yield _chunk(chunk)


def _chunk(chunk: Sequence[tuple[int, Mapping[str, Any], str | None]]) -> tuple[Sequence[int], bytes]:
    cases, details, scripts = zip(*chunk, strict=True)
    return cases, strict_json({"cases": cases, "details": details, "scripts": scripts})


PARTS = ("operator", "types", "shapes", "settings", "fill", "edge")
"""The parts of an id, separated by slashes; a case without an edge has an empty last part."""

NONE = 255
"""In place of an outcome: the case was not run."""

_WORDS = 4 << 20  # maximum characters of results' messages that are searched
_LONGEST = 240  # maximum of one result

Parts = tuple[str, str, str, str, str, str]


def parts_of(case: str) -> Parts:
    """Return the parts of an id; the nonempty ones joined by slashes give the id."""
    parts = case.split("/")
    if len(parts) not in (6, 7) or not all(parts):
        return (case, "", "", "", "", "")
    operator, rest = "/".join(parts[:2]), parts[2:]
    return (operator, rest[0], rest[1], rest[2], rest[3], rest[4] if len(rest) == 5 else "")


def index_of(gathered: Gathered, chunk_of: Sequence[int]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return head and columns of the list of cases.

    `chunk_of` has for each case the number of the chunk with its details, from 1 on; 0 for a case without.
    """
    columns: dict[str, Array] = {}
    words: dict[str, list[str]] = {}
    split = [parts_of(case) for case in gathered.cases]
    for position, name in enumerate(PARTS):
        words[name], columns[name] = _numbered(parts[position] for parts in split)
    sets, columns["clauses"] = _numbered(gathered.clauses)
    clauses = list(dict.fromkeys(clause for tested in sets for clause in tested))
    places = {clause: number for number, clause in enumerate(clauses)}
    columns["chunk"] = smallest(chunk_of)
    for number, column in enumerate(gathered.columns):
        columns[f"outcome-{number}"] = outcome_codes(column)
        columns[f"failing-{number}"] = np.packbits(_failing(column), bitorder="little")
    head = {
        "count": len(gathered.cases),
        "outcomes": list(map(str, Outcome)),
        "words": words,
        "pages": [operator_page_name(operator) for operator in words["operator"]],
        "clauses": clauses,
        "tested": [[places[clause] for clause in tested] for tested in sets],
        "backends": [
            {"name": shown(gathered.names[c.name], 100), "key": c.name[:500], "version": shown(c.version, 100)}
            for c in gathered.columns
        ],
    }
    return head, columns


def _numbered(values: Iterable[Any]) -> tuple[list[Any], Array]:
    """Return the distinct values in order of first appearance, and for each value its number."""
    numbers: dict[Any, int] = {}
    column = [numbers.setdefault(value, len(numbers)) for value in values]
    return list(numbers), smallest(column)


def outcome_codes(column: Column) -> Array:
    """Return for each case the number of its outcome, NONE if it was not run."""
    numbers = {outcome: number for number, outcome in enumerate(Outcome)}
    return np.array([NONE if location is None else numbers[location.outcome] for location in column.places], "<u1")


def _failing(column: Column) -> Array:
    return np.array([location is not None and location.failing for location in column.places], bool)


def failing_cases(gathered: Gathered) -> list[int]:
    """Return the cases that any backend fails, one of each kind first: operator, types, fill, edge and outcomes.

    Among cases of equal rank, one of each operator version and outcome comes first, so that a part of the list is fair.
    """
    failing = np.zeros(len(gathered.cases), bool)
    for column in gathered.columns:
        failing |= _failing(column)
    numbers = np.flatnonzero(failing).tolist()
    turns: Counter[tuple[Any, ...]] = Counter()
    ranks = []
    for number in numbers:
        parts = parts_of(gathered.cases[number])
        outcomes = tuple(
            location and location.outcome for location in (column.places[number] for column in gathered.columns)
        )
        kind = (parts[0], parts[1], *parts[4:], outcomes)
        turns[kind] += 1
        wider = (parts[0], outcomes, turns[kind])
        turns[wider] += 1
        ranks.append((turns[kind], turns[wider]))
    return [number for _, number in sorted(zip(ranks, numbers, strict=True))]


def words_of(gathered: Gathered) -> dict[str, Any]:
    """Return the backends' messages for the search, and the kind of each failure.

    `texts` are distinct; a backend's `cases` (each less the one before) have their texts and kinds at the same
    positions, -1 for none. Messages of passes are omitted, and so is what exceeds the search's limit; `left_out` counts
    the latter.
    """
    texts, kinds = _Texts(), dict[tuple[str, ...], int]()  # kinds as the terminal groups them
    backends = []
    for column in gathered.columns:
        failing = _failing(column)
        rows = [
            (case, texts.number(r.detail), kinds.setdefault(kind_of(r), len(kinds)) if failing[case] else -1)
            for case, r in _said(gathered, column)
        ]
        cases, said, alike = zip(*rows, strict=True) if rows else ((), (), ())
        backends.append({"cases": np.diff(cases, prepend=0).tolist() if rows else [], "texts": said, "kinds": alike})
    return {"texts": list(texts.numbers), "backends": backends, "left_out": texts.left_out}


@dataclass
class _Texts:
    """Numbered texts, cut to the length that is searched, with a limit on their total size."""

    numbers: dict[str, int] = field(default_factory=dict)
    size: int = 0
    left_out: int = 0

    def number(self, words: str | None) -> int:
        if not words:
            return -1
        text = shown(words, _LONGEST)
        if text not in self.numbers:
            if self.size + len(text) > _WORDS:
                self.left_out += 1
                return -1
            self.size += len(text)
            self.numbers[text] = len(self.numbers)
        return self.numbers[text]


_SAID = 200_000
"""The number of a backend's results whose messages are read: failures first, then others that do not pass."""


def _said(gathered: Gathered, column: Column) -> Iterator[tuple[int, Result]]:
    """Yield the results of a backend that do not pass, failures first."""
    said = [
        n for n, location in enumerate(column.places) if location is not None and location.outcome is not Outcome.PASS
    ]
    failing = _failing(column)
    yield from gathered.results(column, sorted(sorted(said, key=lambda number: not failing[number])[:_SAID]))


def reproduce_lines(gathered: Gathered) -> list[str]:
    """Return for each backend the command that runs a case again, with `{case}` in place of its id."""
    marker = "CASE"
    lines = [reproduce_line(Result(marker, column.name[:500], Outcome.PASS)) for column in gathered.columns]
    return [line.replace(f"'{marker}'", "{case}") for line in lines]
