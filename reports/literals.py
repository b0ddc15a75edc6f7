"""Python literals that people can read: what is short stays in a line, what is long has an entry a line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

_INDENT = "    "
_NUMBERS = frozenset({int, float, bool, type(None)})  # whose lists Python writes as they are written here


def literal(value: object, width: int = 120, used: int = 0) -> str:
    """Return `value` as Python source of at most `width` characters a line where its parts allow.

    Dicts, lists and tuples of strings, numbers, booleans and None; infinity and NaN are written `inf` and `nan`.
    `used`: characters that stand before it in its line.
    """
    return _Written().literal(value, width, used)


class _Written:
    """What parts of one value are in a line: each is asked for at every level above it."""

    def __init__(self) -> None:
        self._lines: dict[int, str] = {}  # by identity: the value lives as long as this does

    def literal(self, value: object, width: int, used: int) -> str:
        short = self._in_a_line(value)
        if len(short) + used < width or not isinstance(value, Mapping | list | tuple) or not value:
            return short
        opening, closing = ("{", "}") if isinstance(value, Mapping) else ("[", "]") if isinstance(value, list) else "()"
        if isinstance(value, Mapping):
            entries = [self._entry(f"{self._in_a_line(key)}: ", content, width) for key, content in value.items()]
        elif any(isinstance(content, Mapping | list | tuple | str) for content in value):
            entries = [self._entry("", content, width) for content in value]
        else:
            entries = _filled([f"{content!r}," for content in value], width - len(_INDENT))
        return "\n".join([opening, *(_indented(entry) for entry in entries), closing])

    def _entry(self, start: str, value: object, width: int) -> str:
        return f"{start}{self.literal(value, width - len(_INDENT), len(start))},"

    def _in_a_line(self, value: object) -> str:
        if isinstance(value, str):  # what JSON escapes in ASCII, Python reads alike
            return json.dumps(value) if value.isascii() else ascii(value)
        if not isinstance(value, Mapping | list | tuple):
            return repr(value)
        found = self._lines.get(id(value))
        if found is None:
            found = self._lines[id(value)] = self._joined(value)
        return found

    def _joined(self, value: Mapping[object, object] | Sequence[object]) -> str:
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{self._in_a_line(k)}: {self._in_a_line(v)}" for k, v in value.items()) + "}"
        if _NUMBERS.issuperset(map(type, value)):
            return repr(value)
        told = ", ".join(map(self._in_a_line, value))
        if isinstance(value, tuple):
            return f"({told},)" if len(value) == 1 else f"({told})"
        return f"[{told}]"


def _filled(words: Sequence[str], width: int) -> list[str]:
    """Return lines with as many words each as there is room for."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _indented(entry: str) -> str:
    return _INDENT + entry.replace("\n", f"\n{_INDENT}")
