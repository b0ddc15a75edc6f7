"""Mappings of small YAML files, such as waivers and profiles, read key by key, with every mistake at its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ..cases.errors import OpconformError, did_you_mean
from .problems import Problems
from .reading import Document, Key, Keys

_T = TypeVar("_T")


def entries(document: Document, problems: Problems, what: str) -> list[Keys]:
    """Return the paths of the entries of a file that is one list; `what` says what each is, as in "waivers"."""
    if not isinstance(document.value, list):
        problems.add((), f"expected a list of {what}, [] for none; read {shown(document.value)}")
        return []
    return [(index,) for index in range(len(document.value))]


class Fields:
    """One mapping of a file.

    A key that is unknown, missing or of the wrong kind is noted in `problems`, and reads as the default; so the caller
    builds what it wants and then raises, once, what was found.
    """

    def __init__(
        self, problems: Problems, path: Keys, *, required: Iterable[str] = (), optional: Iterable[str] = ()
    ) -> None:
        self.problems = problems
        self.path = path
        self.required = tuple(required)
        self.known = (*self.required, *optional)
        self.values = self._mapping()

    def _mapping(self) -> Mapping[Key, Any]:
        value = _at(self.problems.document, self.path)
        if not isinstance(value, dict):
            self.problems.add(self.path, f"expected a mapping of {', '.join(self.known)}; read {shown(value)}")
            return {}
        for key in value:
            if key not in self.known:
                hint = did_you_mean(str(key), self.known) or f"; known here: {', '.join(self.known)}"
                self.problems.add((*self.path, key), f"unknown key {key!r}{hint}", key=True)
        for key in self.required:
            if key not in value:
                self.problems.add(self.path, f"key {key!r} is missing; required: {', '.join(self.required)}")
        return value

    def has(self, key: str) -> bool:
        """Whether the file gives this key."""
        return key in self.values

    def fail(self, key: str, message: str) -> None:
        """Note a mistake in the value of `key`."""
        self.problems.add((*self.path, key), f"{key}: {message}")

    def text(self, key: str, default: str = "") -> str:
        """Return some text; a number is text only if it is quoted."""
        value = self.values.get(key, default)
        if key not in self.values or (isinstance(value, str) and value.strip()):
            return str(value)
        quote = ": quote it" if isinstance(value, int | float) and not isinstance(value, bool) else ""
        self.fail(key, f"expected some text; read {shown(value)}{quote}")
        return default

    def version(self, key: str) -> str:
        """Return a version: text, or a whole number."""
        value = self.values.get(key)
        return str(value) if type(value) is int else self.text(key)

    def whole(self, key: str, least: int) -> int | None:
        """Return a whole number from `least` on; None without the key."""
        value = self.values.get(key)
        if key not in self.values or (type(value) is int and value >= least):
            return value
        self.fail(key, f"expected a whole number, {least} or more; read {shown(value)}")
        return None

    def flag(self, key: str) -> bool | None:
        """Return true or false; None without the key."""
        value = self.values.get(key)
        if key in self.values and not isinstance(value, bool):
            self.fail(key, f"expected true or false; read {shown(value)}")
            return None
        return value

    def word(self, key: str, known: Iterable[str], default: _T) -> str | _T:
        """Return one of the words of `known`."""
        if key not in self.values:
            return default
        value, words = self.values[key], list(known)
        if value in words:
            return str(value)
        self.problems.add((*self.path, key), _unknown(key, value, words))
        return default

    def words(self, key: str, known: Iterable[str]) -> tuple[str, ...]:
        """Return a list of different words of `known`."""
        words = list(known)

        def word(value: object) -> str:
            if value not in words:
                raise OpconformError(_unknown(key, value, words))
            return str(value)

        return self.listed(key, word)

    def listed(self, key: str, read: Callable[[object], _T]) -> tuple[_T, ...]:
        """Return a list of different values, each as `read` makes it; what `read` raises is noted at its place."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or (key in self.values and not value):
            self.fail(key, f"expected a list; read {shown(value)}")
            return ()
        found: list[_T] = []
        for index, one in enumerate(value):
            if one in value[:index]:
                self.problems.add((*self.path, key, index), f"{key}: {one!r} appears twice")
                continue
            try:
                found.append(read(one))
            except OpconformError as error:
                self.problems.add((*self.path, key, index), str(error))
        return tuple(found)


def shown(value: object) -> str:
    """Return a value as a message names what was read."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return {"None": "nothing", "True": "true", "False": "false", "''": "an empty text"}.get(text, text)


def _at(document: Document, path: Keys) -> object:
    value = document.value
    for key in path:
        value = value[key]
    return value


def _unknown(key: str, value: object, words: list[str]) -> str:
    near = did_you_mean(value, words) if isinstance(value, str) else ""
    return f"{key}: expected {'' if len(words) == 1 else 'one of '}{', '.join(words)}; read {shown(value)}{near}"
