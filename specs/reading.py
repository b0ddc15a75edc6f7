"""Reads YAML 1.2 core strictly, with the position of every key and value; refuses forms in which typos go unnoticed."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

import yaml

from ..cases.errors import OpconformError, did_you_mean, open_regular

Key: TypeAlias = int | str
Keys: TypeAlias = tuple[Key, ...]

LARGEST_FILE = 1 << 20
DEEPEST = 32
LONGEST_NUMBER = 64
ELLIPSIS = "..."


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A position in a file; lines and columns count from 1."""

    line: int
    column: int


class SpecError(OpconformError):
    """A mistake in a file; its text is `file:line:column: message`."""

    def __init__(self, file: str, position: Position, message: str) -> None:
        self.file, self.position, self.message = file, position, message
        super().__init__(file, position, message)

    def __str__(self) -> str:
        return f"{self.file}:{self.position.line}:{self.position.column}: {self.message}"


class SpecErrors(OpconformError):  # noqa: N818 - it holds several
    """Several mistakes, in the order of their positions; its text has one per line."""

    def __init__(self, errors: Iterable[SpecError]) -> None:
        self.errors = tuple(sorted(errors, key=lambda error: (error.file, error.position)))
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


@dataclass(frozen=True)
class Document:
    """A file's content and positions: `value` consists of dict, list, str, int, float, bool and None.

    Positions are computed on first use. `origins` maps the path of an included entry to the file that it comes from,
    and its path there.
    """

    file: str
    value: Any
    digest: str
    text: str = field(repr=False)
    origins: Mapping[Keys, tuple[Document, Keys]] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def marks(self) -> Mapping[Keys, tuple[Position, Position]]:
        """The positions of every key and its value, by path: keys and list indices."""
        reader = _Reader(self.file, marking=True)
        reader.document(self.text)
        return reader.marks

    def origin(self, path: Iterable[Key]) -> tuple[Document, Keys]:
        """Return the file that contains the entry at `path`, and its path there."""
        keys = tuple(path)
        for length in range(1, len(keys) + 1):
            if keys[:length] in self.origins:
                document, inner = self.origins[keys[:length]]
                return document, (*inner, *keys[length:])
        return self, keys

    def has(self, path: Iterable[Key]) -> bool:
        """Whether there is a value at `path`, which consists of keys and list indices."""
        value = self.value
        for key in path:
            inside = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
            if key not in inside:
                return False
            value = value[key]
        return True

    def position(self, path: Iterable[Key], key: bool = False) -> Position:
        """Return the position of the value at `path`, or of its key; if there is none, of its nearest parent."""
        document, keys = self.origin(path)
        while keys not in document.marks:
            keys = keys[:-1]
        return document.marks[keys][0 if key else 1]

    def error(self, path: Iterable[Key], message: str, key: bool = False) -> SpecError:
        """Return an error that points at the value at `path`, or at its key."""
        document = self.origin(path)[0]
        words = message if document is self else f"{message} (used by {self.file})"
        return SpecError(document.file, self.position(path, key), words)


class Problems:
    """Collects the mistakes in one file, so that one run reports all of them."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.errors: list[SpecError] = []

    def add(self, path: Iterable[Key], message: str, key: bool = False) -> None:
        """Add a mistake in the value at `path`, or in its key; the same mistake at the same position is added once."""
        error = self.document.error(path, message, key)
        if not any((e.position, e.message) == (error.position, message) for e in self.errors):
            self.errors.append(error)

    def check(self, path: Iterable[Key], attempt: Callable[[], object]) -> bool:
        """Add the OpconformError that `attempt` raises as a mistake at `path`; return whether it raised none."""
        try:
            attempt()
        except OpconformError as error:
            self.add(path, str(error))
            return False
        return True

    def unknown(self, path: Iterable[Key], what: str, word: object, known: Iterable[object], key: bool = False) -> None:
        """Add the mistake that `word` is unknown, with the nearest known word, or all of them."""
        words = [str(k) for k in known]
        near = did_you_mean(str(word), words)
        listed = f"; known: {', '.join(words[:16])}{', ...' if len(words) > 16 else ''}" if words else "; there is none"
        self.add(path, f"{what}{near or listed}", key)

    def raise_any(self) -> None:
        """Raise SpecErrors if there are mistakes."""
        if self.errors:
            raise SpecErrors(self.errors)


def read_file(path: Path | str) -> Document:
    """Read a file.

    Raises SpecError if its content is not YAML of the accepted kind, OpconformError if it cannot be read at all.
    """
    path = Path(path)
    try:
        with open_regular(path) as opened:
            content = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise OpconformError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_FILE:
        raise SpecError(str(path), _START, f"the file is larger than {LARGEST_FILE >> 20} MiB")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        at = Position(content.count(b"\n", 0, error.start) + 1, error.start - content.rfind(b"\n", 0, error.start))
        raise SpecError(str(path), at, "not UTF-8: save the file as UTF-8") from None
    return read(text, str(path), hashlib.sha256(content).hexdigest())


def read(text: str, file: str = "<text>", digest: str | None = None) -> Document:
    """Read one document of YAML 1.2 core; anchors, aliases, tags, merge keys, duplicate keys and tabs are refused.

    `digest` is the sha256 of the file's bytes, by default that of `text` in UTF-8. Raises SpecError.
    """
    content = text.encode(errors="surrogatepass")
    if len(content) > LARGEST_FILE:
        raise SpecError(file, _START, f"the text is larger than {LARGEST_FILE >> 20} MiB")
    _refuse_tabs(text, file)
    reader = _Reader(file)
    try:
        value = reader.document(text)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, file) from None
    except yaml.YAMLError as error:
        raise SpecError(file, _unreadable(error, text), "not YAML: a control character") from None
    return Document(file, value, digest or hashlib.sha256(content).hexdigest(), text)


_START = Position(1, 1)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NUMBER_LIKE = re.compile(r"[-+]?(0[xXoObB][0-9a-fA-F_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?)")
_INFINITIES = {f"{sign}.{w}": float(f"{sign}inf") for sign in ("", "+", "-") for w in ("inf", "Inf", "INF")}
_NANS = {f".{w}": float("nan") for w in ("nan", "NaN", "NAN")}
_WORDS: Mapping[str, Any] = MappingProxyType(
    {"true": True, "false": False, "null": None, "~": None, "": None, **_INFINITIES, **_NANS}
)
_OLD_BOOLEANS = frozenset(case(w) for w in ("yes", "no", "on", "off") for case in (str.lower, str.upper, str.title))
_MISSPELT = {
    **dict.fromkeys(_OLD_BOOLEANS, "a boolean to some YAML readers: write true or false"),
    **dict.fromkeys(("True", "TRUE", "False", "FALSE"), "spelled true or false here: write that"),
    **dict.fromkeys(("Null", "NULL"), "spelled null here: write that"),
}
_UNCLOSED = " (an unclosed bracket, or a colon in unquoted text)"
_MISPLACED = " (wrong indentation, or text after a closing quote or bracket)"
# libyaml and PyYAML's own parser report the same mistake in different words.
_HINTS = MappingProxyType(
    {
        "mapping values are not allowed": " (a colon and a space in unquoted text, or wrong indentation)",
        "did not find expected ',' or": _UNCLOSED,
        "expected ',' or": _UNCLOSED,
        "did not find expected key": _MISPLACED,
        "expected <block end>": _MISPLACED,
        "cannot start any token": " (text that begins with @, ` or % is quoted)",
        "expected alphabetic or numeric": " (text that begins with * or & is quoted)",
        "nesting depth": f" (nested more than {DEEPEST} deep)",
    }
)


def _refuse_tabs(text: str, file: str) -> None:
    if (at := text.find("\t")) >= 0:
        words = 'a tab: indent with spaces, and write \\t inside "quotes" for text'
        raise SpecError(file, _position(text, at), words)


def _position(text: str, at: int) -> Position:
    """Return the position of a character, by its index."""
    return Position(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def _syntax_error(error: yaml.MarkedYAMLError, text: str, file: str) -> SpecError:
    mark = error.problem_mark or error.context_mark
    problem = str(error.problem or error.context)
    hint = next((hint for words, hint in _HINTS.items() if words in problem), "")
    at = Position(mark.line + 1, mark.column + 1) if mark else Position(text.count("\n") + 1, 1)
    return SpecError(file, at, f"not YAML: {problem}{hint}")


def _unreadable(error: yaml.YAMLError, text: str) -> Position:
    at = getattr(error, "position", None)
    return _position(text, at) if isinstance(at, int) and at <= len(text) else _START


class _Reader:
    """Builds values from events: only these show anchors, aliases and tags."""

    def __init__(self, file: str, *, marking: bool = False) -> None:
        self.file, self.marking = file, marking
        self.marks: dict[Keys, tuple[Position, Position]] = {}

    def document(self, text: str) -> Any:
        loader = _LOADER(text)
        self.next: Callable[[], Any] = loader.get_event
        try:
            return self.whole_document()
        finally:
            loader.dispose()

    def whole_document(self) -> Any:
        self.next()  # the stream's start
        start = self.next()
        if not isinstance(start, yaml.DocumentStartEvent):
            self.fail(start, "the file is empty")
        if start.version or start.tags:
            self.fail(start, "directives (%) are not used here")
        first = self.next()
        if isinstance(first, yaml.ScalarEvent) and not first.value and not first.style:
            self.fail(first, "the file is empty")
        self.marks[()] = (_at(first), _at(first))
        value = self.build(first, ())
        self.next()  # the document's end
        last = self.next()
        if not isinstance(last, yaml.StreamEndEvent):
            self.fail(last, "a second document: one file holds one")
        return value

    def fail(self, event: yaml.Event, message: str) -> NoReturn:
        raise SpecError(self.file, _at(event), message)

    def guard(self, event: Any) -> None:
        if type(event) is yaml.AliasEvent:
            self.fail(event, f"*{event.anchor} is an alias: write the value out, and quote text that begins with *")
        if event.anchor is not None:
            self.fail(event, f"&{event.anchor} is an anchor: write the value out, and quote text that begins with &")
        if event.tag is not None:
            self.fail(event, f"{event.tag} is a tag: tags are not used here; quote text that begins with !")

    def build(self, event: Any, path: Keys) -> Any:
        if type(event) is yaml.AliasEvent or event.anchor is not None or event.tag is not None:
            self.guard(event)
        if type(event) is yaml.ScalarEvent:
            return self.scalar(event)
        if len(path) > DEEPEST:
            self.fail(event, f"nested more than {DEEPEST} deep")
        if type(event) is yaml.SequenceStartEvent:
            return self.sequence(path)
        return self.mapping(path, bool(getattr(event, "flow_style", False)))

    def sequence(self, path: Keys) -> list[Any]:
        items: list[Any] = []
        inner = (*path, 0)  # its length is the depth, also if positions are not wanted
        while type(event := self.next()) is not yaml.SequenceEndEvent:
            if self.marking:
                inner = (*path, len(items))
                self.marks[inner] = (_at(event), _at(event))
            items.append(self.build(event, inner))
        return items

    def mapping(self, path: Keys, flow: bool) -> dict[Key, Any]:
        entries: dict[Key, Any] = {}
        spelled: dict[str, int] = {}
        inner = (*path, "")
        while type(event := self.next()) is not yaml.MappingEndEvent:
            key = self.key(event)
            word = str(key)
            if word in spelled:
                self.fail(event, f"{key!r} appears twice, first at line {spelled[word]}")
            spelled[word] = event.start_mark.line + 1
            value = self.next()
            if type(value) is yaml.ScalarEvent and not value.value and not value.style:
                self.refuse_empty(key, event, value, flow)
            if self.marking:
                inner = (*path, key)
                self.marks[inner] = (_at(event), _at(value))
            entries[key] = self.build(value, inner)
        return entries

    def key(self, event: Any) -> Key:
        self.guard(event)
        if not isinstance(event, yaml.ScalarEvent):
            self.fail(event, "a key is a word or a whole number; read a list or a mapping")
        key = self.scalar(event)
        if isinstance(key, float):
            self.fail(event, f"key {event.value} is the number {key!r}: quote it")
        if isinstance(key, bool) or key is None:
            self.fail(event, f"key {event.value or '(nothing)'} is no word: quote it")
        if key == "<<":
            self.fail(event, "<< is a merge key: write the values out")
        return key  # type: ignore[no-any-return]

    def refuse_empty(self, key: Key, event: yaml.Event, value: yaml.Event, flow: bool) -> None:
        self.guard(value)
        if key != ELLIPSIS:
            hint = "; text that holds a comma is quoted inside {}" if flow else ""
            self.fail(event, f"{key!r} has no value{hint}")

    def scalar(self, event: yaml.ScalarEvent) -> Any:
        text = event.value
        if event.style:  # quoted, or a block
            return text
        if text in _WORDS:
            return _WORDS[text]
        if text in _MISSPELT:
            self.fail(event, f"{text} is {_MISSPELT[text]}, or quote it if it is text")
        if text[0] in "+-.0123456789":
            return self.number(event, text)
        return text

    def number(self, event: yaml.ScalarEvent, text: str) -> Any:
        integer, fraction = _INTEGER.fullmatch(text), _FLOAT.fullmatch(text)
        if (integer or fraction) and len(text) > LONGEST_NUMBER:
            self.fail(event, f"a number of {len(text)} digits: quote it if it is text")
        if integer:
            return int(text)
        if fraction:
            value = float(text)
            if value in (float("inf"), -float("inf")):
                self.fail(event, f"{text} is too large for a float64: write .inf for infinity")
            return value
        if _NUMBER_LIKE.fullmatch(text):
            self.fail(
                event,
                f"{text}: numbers are decimal, without leading zeros (octal to some YAML readers) and underscores; "
                "quote it if it is text",
            )
        return text


def _at(event: yaml.Event) -> Position:
    mark: Any = event.start_mark
    return Position(mark.line + 1, mark.column + 1)
