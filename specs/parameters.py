"""Parameters and their levels as a spec file declares them, and which of them a version has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from .groups import expand, is_type_word
from .model import Value, Version, Word
from .names import Names
from .problems import Problems
from .reading import Key, Keys
from .structure import Spanned

Levels: TypeAlias = Mapping[Version, Mapping[str, Mapping[str, Value]]]
"""Version to parameter to level to value."""

SETTING_WORDS: Mapping[str, Word] = {w.value: w for w in (Word.ABSENT, Word.OMITTED, Word.GIVEN)}
NOT_BUNDLES = frozenset({"shapes", "dims"})
"""Parameters whose mappings name inputs or symbols rather than settings."""

_LEVEL_NAME = re.compile(r"[^\s,;=/]+")


@dataclass(frozen=True, slots=True)
class Span:
    """The versions from `since` on, up to but without `before`."""

    since: Version | None = None
    before: Version | None = None

    def covers(self, version: Version, versions: Iterable[Version]) -> bool:
        """Whether `version`, one of `versions` in ascending order, is within."""
        if self.since is None and self.before is None:
            return True
        order = list(versions)
        at = order.index(version)
        return not (
            (self.since in order and at < order.index(self.since))
            or (self.before in order and at >= order.index(self.before))
        )


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a parameter."""

    name: str
    value: Value
    span: Span
    path: Keys


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter with its levels; none where `everything` stands for all types of a letter."""

    name: str
    levels: tuple[Level, ...]
    everything: bool
    span: Span

    @property
    def path(self) -> Keys:
        """Where it is declared."""
        return ("parameters", self.name)

    def at(self, version: Version, names: Names) -> dict[str, Value]:
        """Return the levels that apply to a version, by name; empty if the parameter does not apply to it."""
        order = names.signatures
        if not names.applies(self.name, version) or not self.span.covers(version, order):
            return {}
        levels = [level for level in self.levels if level.span.covers(version, order)]
        if not names.is_type(self.name):
            return {
                level.name: level.value for level in levels if bundle_applies(self.name, level.value, version, names)
            }
        allowed = names.signatures[version].types.get(names.canonical(self.name, version), ())
        wanted = allowed if self.everything else [t for x in levels if is_type_word(x.name) for t in expand(x.name)]
        return {t: t for t in wanted if t in allowed}


def parameters(declared: Mapping[str, Any], problems: Problems) -> dict[str, Parameter]:
    """Read the section `parameters`; mistakes go to `problems`."""
    return {name: _parameter(name, raw, problems) for name, raw in declared.items()}


def levels_by_version(declared: Mapping[str, Parameter], names: Names) -> Levels:
    """Return the levels of every parameter, by its name as declared, in every version."""
    return {
        version: {name: parameter.at(version, names) for name, parameter in declared.items()}
        for version in names.signatures
    }


def bundle_applies(name: str, value: Value, version: Version, names: Names) -> bool:
    """Whether a version has all attributes and inputs that a bundle sets; other values apply everywhere."""
    if not isinstance(value, dict) or name in NOT_BUNDLES:
        return True
    return all(names.applies(inner, version) for inner in value)


def text_of(value: object) -> str:
    """Return a plain value as the name of the level that it is."""
    if isinstance(value, Word):
        return value.value
    return str(value).lower() if isinstance(value, bool) else str(value)


def literal_of(raw: Any) -> tuple[bool, Any]:
    """Return whether `raw` is `{value: x, ...}`, with x, or `raw` itself."""
    return (True, raw["value"]) if isinstance(raw, dict) and "value" in raw else (False, raw)


def settled(raw: Any, words: bool = True, name: str = "") -> Value:
    """Return a value as read, with `absent`, `omitted` and `given` as words, lists as tuples.

    Words are read at the top, in a bundle's entries and in lists of outputs, since other lists may hold text.
    """
    if isinstance(raw, str):
        return SETTING_WORDS.get(raw, raw) if words else raw
    if isinstance(raw, list):
        return tuple(settled(part, words and name == "outputs") for part in raw)
    if isinstance(raw, dict):
        return {str(key): settled(part, words, str(key)) for key, part in raw.items()}
    return raw  # type: ignore[no-any-return]


def span_of(text: Spanned) -> Span:
    """Return the span of a part of a file that has since and before."""
    return Span(text.since, text.before)


def _parameter(name: str, raw: Any, problems: Problems) -> Parameter:
    path: Keys = ("parameters", name)
    span, declared = Span(), raw
    if isinstance(raw, dict) and "levels" in raw:
        _only(raw, "levels", path, problems)
        span, declared, path = Span(raw.get("since"), raw.get("before")), raw["levels"], (*path, "levels")
    if declared == "all":
        return Parameter(name, (), True, span)
    if isinstance(declared, dict):
        entries: list[tuple[Key, Any]] = list(declared.items())
    elif isinstance(declared, list):
        entries = list(enumerate(declared))
    else:
        message = f"levels are a list, a mapping of names to values, or `all` (for a type); read {declared!r}"
        problems.add(path, message)
        return Parameter(name, (), False, span)
    named = isinstance(declared, dict)
    levels = [level for key, x in entries if (level := _level((*path, key), key if named else None, x, name, problems))]
    _check_names(levels, path, problems)
    return Parameter(name, tuple(levels), False, span)


def _level(path: Keys, key: Key | None, raw: Any, parameter: str, problems: Problems) -> Level | None:
    wrapped, value = literal_of(raw)
    span = Span()
    if wrapped:
        _only(raw, "value", path, problems)
        span = Span(raw.get("since"), raw.get("before"))
    if value is None:
        problems.add(path, "null is no value; write absent where nothing is given")
        return None
    if key is None and isinstance(value, (list, dict)):
        problems.add(path, "a level that is a list or a mapping needs a name: write {name: value}")
        return None
    where = (*path, "value") if wrapped else path
    literal = wrapped and isinstance(value, str)
    return Level(text_of(value if key is None else key), settled(value, words=not literal, name=parameter), span, where)


def _only(raw: Mapping[Any, Any], main: str, path: Keys, problems: Problems) -> None:
    for key in raw:
        if key not in (main, "since", "before"):
            problems.unknown((*path, key), f"unknown key {key!r} beside {main}", key, ("since", "before"), key=True)


def _check_names(levels: Iterable[Level], path: Keys, problems: Problems) -> None:
    seen: set[str] = set()
    for level in levels:
        if level.name in seen:
            problems.add(level.path, f"level {level.name!r} appears twice")
        seen.add(level.name)
        plain = isinstance(level.value, (str, int, float, Word)) or is_type_word(level.name)
        if not plain and not _LEVEL_NAME.fullmatch(level.name):
            problems.add(level.path, f"{level.name!r}: a level's name has no spaces and none of , ; = /", key=True)
    if not seen:
        problems.add(path, "a parameter has at least one level")
