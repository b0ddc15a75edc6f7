"""Python literals that people can read: what is short stays in a line, what is long has an entry a line."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping

_INDENT = "    "


def literal(value: object, width: int = 120, used: int = 0) -> str:
    """Return `value` as Python source of at most `width` characters a line where its parts allow.

    Dicts, lists and tuples of strings, numbers, booleans and None; infinity and NaN are written `inf` and `nan`.
    `used`: characters that stand before it in its line.
    """
    short = _in_a_line(value)
    if len(short) + used < width or not isinstance(value, Mapping | list | tuple) or not value:
        return short
    opening, closing = ("{", "}") if isinstance(value, Mapping) else ("[", "]") if isinstance(value, list) else "()"
    if isinstance(value, Mapping):
        entries = [_entry(f"{_in_a_line(key)}: ", content, width) for key, content in value.items()]
    elif any(isinstance(content, Mapping | list | tuple | str) for content in value):
        entries = [_entry("", content, width) for content in value]
    else:
        flowing = ", ".join(map(_in_a_line, value)) + ","
        entries = textwrap.wrap(flowing, width - len(_INDENT), break_long_words=False, break_on_hyphens=False)
    return "\n".join([opening, *(textwrap.indent(entry, _INDENT) for entry in entries), closing])


def _entry(start: str, value: object, width: int) -> str:
    return f"{start}{literal(value, width - len(_INDENT), len(start))},"


def _in_a_line(value: object) -> str:
    if isinstance(value, str):  # what JSON escapes in ASCII, Python reads alike
        return json.dumps(value) if value.isascii() else ascii(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_in_a_line(k)}: {_in_a_line(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_in_a_line, value)) + ("," if len(value) == 1 else "") + ")"
    return "[" + ", ".join(map(_in_a_line, value)) + "]" if isinstance(value, list) else repr(value)
