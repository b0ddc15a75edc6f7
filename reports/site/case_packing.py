"""What the cases' pages load, packed: classic scripts that hand over deflated bytes, each loaded when it is needed."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...cases.elements import Array
from .writer import SiteWriter

CALL = "opconformData"
FOLDER = "data/cases"

CHUNK_CASES = 50
CHUNK_BYTES = 1 << 18  # before they are packed: what a browser unpacks and parses in a blink


def packed(content: bytes) -> str:
    """Return bytes as base64 of a raw deflate stream, which browsers inflate by themselves."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(deflate.compress(content) + deflate.flush()).decode()


def unpacked(text: str) -> bytes:
    """Return the bytes that `packed` was given."""
    return zlib.decompress(base64.b64decode(text), -zlib.MAX_WBITS)


def strict_json(told: object) -> bytes:
    """Return strict JSON in ASCII, as short as it can be."""
    return json.dumps(told, allow_nan=False, separators=(",", ":")).encode()


def write_packed(site: SiteWriter, name: str, content: bytes) -> None:
    """Write bytes that a page asks for by this name."""
    site.script(f"{FOLDER}/{name}.js", CALL, name, packed(content))


def smallest(values: Iterable[int] | Array) -> Array:
    """Return whole numbers from 0 on in the narrowest unsigned type, little-endian."""
    found = np.asarray(values if isinstance(values, np.ndarray) else list(values), np.int64)
    largest = int(found.max(initial=0))
    return found.astype("<u1" if largest < 1 << 8 else "<u2" if largest < 1 << 16 else "<u4")


def table_bytes(head: Mapping[str, Any], columns: Mapping[str, Array]) -> bytes:
    """Return a table: the length of its head in four bytes, the head as JSON, and the columns.

    The head says of each column its type and where it begins, counted from the end of the head. Each begins at a
    multiple of eight bytes, as typed arrays want it.
    """
    places, parts, offset = {}, [], 0
    for name, column in columns.items():
        content = np.ascontiguousarray(column).tobytes()
        places[name] = [column.dtype.str[1:], offset, len(column)]
        parts.append(content + bytes(-len(content) % 8))
        offset += len(parts[-1])
    told = strict_json({**head, "columns": places})
    told += b" " * (-(len(told) + 4) % 8)
    return b"".join([len(told).to_bytes(4, "little"), told, *parts])


@dataclass(frozen=True)
class Chunk:
    """Cases whose details are one file, by their numbers, and its bytes before they are packed."""

    cases: tuple[int, ...]
    content: bytes


def chunks(details: Iterable[tuple[int, Mapping[str, Any], str | None]]) -> Iterator[Chunk]:
    """Yield chunks of details: each case by its number, with its script, which stand beside one another.

    Scripts are alike for the most part: side by side they cost next to nothing.
    """
    cases: dict[int, Mapping[str, Any]] = {}
    scripts: dict[int, str | None] = {}
    size = 0
    for number, told, script in details:
        length = len(strict_json(told)) + len(script or "")
        if cases and (len(cases) == CHUNK_CASES or size + length > CHUNK_BYTES):
            yield _chunk(cases, scripts)
            cases, scripts, size = {}, {}, 0
        cases[number], scripts[number] = told, script
        size += length
    if cases:
        yield _chunk(cases, scripts)


def _chunk(cases: Mapping[int, Mapping[str, Any]], scripts: Mapping[int, str | None]) -> Chunk:
    told = {"cases": list(cases), "details": list(cases.values()), "scripts": list(scripts.values())}
    return Chunk(tuple(cases), strict_json(told))
