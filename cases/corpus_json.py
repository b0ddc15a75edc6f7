"""JSON of a corpus: written in one way, and read with limits."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from .errors import OpconformError

LARGEST_JSON = 256 << 20
"""The bytes that a JSON file of a corpus may have."""


class CorpusError(OpconformError):
    """A corpus, or a file of one, that cannot be read; the message begins with the file's name."""


def compact_json(content: Any) -> bytes:
    """Return `content` as one line of strict JSON in ASCII, keys as they come; it ends its line."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def lined_json(content: Any) -> bytes:
    """Return `content` as strict JSON in ASCII over many lines, which can be compared line by line."""
    return json.dumps(content, allow_nan=False, indent=1).encode() + b"\n"


def read_json(content: bytes, file: str) -> dict[str, Any]:
    """Read a JSON object. Raises CorpusError that names `file`."""
    if len(content) > LARGEST_JSON:
        raise CorpusError(f"{file}: more than {LARGEST_JSON:,} bytes of JSON")
    try:
        read = json.loads(content, parse_constant=_refuse, object_pairs_hook=_unique)
    except RecursionError:
        raise CorpusError(f"{file}: nested too deeply") from None
    except ValueError as error:  # UnicodeDecodeError and numbers that are too long included
        raise CorpusError(f"{file}: no JSON: {error}") from None
    if not isinstance(read, dict):
        raise CorpusError(f"{file}: expected a JSON object; read {type(read).__name__}")
    return read


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found
