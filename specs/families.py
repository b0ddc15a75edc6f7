"""Shared parts of spec files: `uses:` includes the entries of `specs/families/*.yaml`; the file's own entries win."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ..cases.errors import OpconformError, did_you_mean
from .checks import levels_written, shape_symbols
from .model import COMMON_PARAMETERS, Vocabulary
from .parameters import Names, text_of
from .reading import ELLIPSIS, Document, Key, Keys, Problems, SpecError, SpecErrors, read_file
from .schema import ClauseText, ParameterText, SpecText, TypesFromText
from .settings import conditions

REMOVED = "removed"
REQUIRED = "required"
SECTIONS = (
    *("shapes", "domains", "operands", "types-from", "same", "precision", "strength", "graphs", "unused"),
    *("clauses", "silences", "parameters", "exclude", "edges"),
)
"""The sections that a family can have besides `arguments`, in the order of a spec file."""
_LISTS = frozenset({"same", "exclude"})
_READ = frozenset({"attribute", "input"})
_ARGUMENT = re.compile(r"\$([a-z][a-z0-9-]*)")
_PART = re.compile(r"\$\{([a-z][a-z0-9-]*)\}")

_T = TypeVar("_T")


class Families:
    """The families of a folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, Document] = {}

    def __call__(self, name: str) -> Document:
        """Return the file of a family. Raises OpconformError if there is none, SpecError if it cannot be read."""
        if name not in self._read:
            path = self.folder / f"{name}.yaml"
            if not path.is_file():
                known = sorted(path.stem for path in self.folder.glob("*.yaml"))
                hint = did_you_mean(name, known) or f"; there are {', '.join(known) or 'none'}"
                raise OpconformError(f"no family file is called {name!r}{hint}")
            self._read[name] = read_file(path)
        return self._read[name]


def merged(document: Document, families: Families) -> Document:
    """Return a spec file merged with the entries of its families.

    If both have an entry, the file's own wins; `removed` removes an entry of a family. Raises SpecErrors.
    """
    if not isinstance(document.value, dict) or "uses" not in document.value:
        return document
    problems = Problems(document)
    value = {
        key: dict(section_value) if isinstance(section_value, dict) else section_value
        for key, section_value in document.value.items()
    }
    origins: dict[Keys, tuple[Document, Keys]] = {}
    givers: dict[Keys, str] = {}
    digest = hashlib.sha256(document.digest.encode())
    for name, path, given in _used(document, problems):
        try:
            family = families(name)
        except SpecError as error:
            raise SpecErrors([error]) from None
        except OpconformError as error:
            problems.add(path, str(error))
            continue
        digest.update(family.digest.encode())
        arguments = _arguments(family, given, path, problems)
        for section, key, entry in _entries(family, arguments):
            if section in _LISTS:
                own = value.get(section, [])
                value[section] = own = [own] if section == "same" and own and isinstance(own[0], str) else [*own]
                own.append(entry)
                origins[section, len(own) - 1] = (family, (section, key))
                continue
            written = _substituted(key, arguments, family, (section, key))
            path_given: Keys = (section, written)
            if path_given in givers:
                both = f"{givers[path_given]} and {name} both define {section}.{written}"
                problems.add(path, f"{both}: write the entry here, or `{written}: {REMOVED}`")
            elif written not in value.setdefault(section, {}):
                value[section][written] = entry
                origins[path_given] = (family, (section, key))
                givers[path_given] = name
            elif value[section][written] == REMOVED:
                givers[path_given] = name
    _remove(value, givers, problems)
    problems.raise_any()
    return Document(document.file, value, digest.hexdigest(), document.text, origins)


def _used(document: Document, problems: Problems) -> Iterator[tuple[str, Keys, Mapping[str, Any]]]:
    """Yield the families that a file uses: name, path in the file, arguments."""
    uses = document.value["uses"]
    listed: list[tuple[Any, Keys, Any]] = [(uses, ("uses",), None)]
    if isinstance(uses, dict):
        listed = [(name, ("uses", name), given) for name, given in uses.items()]
    elif isinstance(uses, list):
        listed = [(name, ("uses", index), None) for index, name in enumerate(uses)]
    for name, path, given in listed:
        if isinstance(name, str) and (given is None or isinstance(given, dict)):
            yield name, path, given or {}
        else:
            problems.add(path, f"uses names families: a name, a list, or a mapping to arguments; read {name!r}")


def _arguments(family: Document, given: Mapping[str, Any], path: Keys, problems: Problems) -> Mapping[str, Any]:
    declared = family.value.get("arguments", {}) if isinstance(family.value, dict) else {}
    if not isinstance(declared, dict):
        raise SpecErrors([family.error(("arguments",), "arguments are a mapping of names to defaults, or `required`")])
    for name in given:
        if name not in declared:
            problems.unknown((*path, name), f"the family has no argument {name!r}", name, declared, key=True)
    for name, default in declared.items():
        if default == REQUIRED and name not in given:
            problems.add(path, f"argument {name!r} is missing: write {{{name}: ...}}")
    return {**declared, **given}


def _entries(family: Document, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Key, Any]]:
    """Yield the section, key or index, and value of each entry of a family, with its arguments substituted."""
    if not isinstance(family.value, dict):
        raise SpecErrors([family.error((), "a family is a mapping of sections")])
    for section, entries in family.value.items():
        if section == "arguments":
            continue
        if section not in SECTIONS:
            hint = did_you_mean(str(section), SECTIONS) or f"; known here: {', '.join(SECTIONS)}"
            raise SpecErrors([family.error((section,), f"unknown section {section!r}{hint}", key=True)])
        if not isinstance(entries, list if section in _LISTS else dict):
            what = "list" if section in _LISTS else "mapping"
            raise SpecErrors([family.error((section,), f"expected a {what}")])
        listed = enumerate(entries) if isinstance(entries, list) else entries.items()
        for key, entry in listed:
            yield section, key, _substituted(entry, arguments, family, (section, key))


def _substituted(value: Any, arguments: Mapping[str, Any], family: Document, path: Keys) -> Any:
    if isinstance(value, str):
        if "$" not in value:
            return value
        match = _ARGUMENT.fullmatch(value)
        names = [match[1]] if match else _PART.findall(value)
        if unknown := [name for name in names if name not in arguments]:
            hint = did_you_mean(unknown[0], arguments) or f"; there are {', '.join(arguments) or 'none'}"
            raise SpecErrors([family.error(path, f"no argument is called {unknown[0]!r}{hint}")])
        return arguments[match[1]] if match else _PART.sub(lambda m: str(arguments[m[1]]), value)
    if isinstance(value, list):
        return [_substituted(part, arguments, family, (*path, index)) for index, part in enumerate(value)]
    if isinstance(value, dict):
        entries = ((key, part, (*path, key)) for key, part in value.items())
        return {_substituted(k, arguments, family, at): _substituted(v, arguments, family, at) for k, v, at in entries}
    return value


def _remove(value: dict[str, Any], givers: Mapping[Keys, str], problems: Problems) -> None:
    for section in SECTIONS:
        entries = value.get(section)
        if not isinstance(entries, dict):
            continue
        for key in [key for key, entry in entries.items() if entry == REMOVED]:
            if (section, key) not in givers:
                problems.add((section, key), f"{key!r} is removed, but no family that is used has it", key=True)
            del entries[key]


def resolved(document: Document) -> str:
    """Return a file merged with its families, as one text without `uses`, with the origin after each line."""
    lines: list[tuple[str, Keys]] = []
    for section, content in document.value.items():
        if section == "uses":
            continue
        if isinstance(content, dict) and section == "versions":
            lines.append((f"{section}:", (section,)))
            for version, parts in content.items():
                lines.append((f"  {flow(version)}:", (section, version)))
                lines += [(f"    {flow(k)}: {flow(part)}", (section, version, k)) for k, part in parts.items()]
        elif isinstance(content, dict) and content:
            lines.append((f"{section}:", (section,)))
            lines += [(f"  {flow(key)}: {flow(entry)}", (section, key)) for key, entry in content.items()]
        elif isinstance(content, list) and content:
            lines.append((f"{section}:", (section,)))
            lines += [(f"  - {flow(entry)}", (section, index)) for index, entry in enumerate(content)]
        elif not isinstance(content, (dict, list)):
            lines.append((f"{section}: {flow(content)}", (section,)))
    width = min(100, max(len(text) for text, _ in lines))
    return "".join(f"{text:<{width}}  # {_origin(document, path)}".rstrip("# ") + "\n" for text, path in lines)


def _origin(document: Document, path: Keys) -> str:
    written, keys = document.origin(path)
    return f"{written.file}:{document.position(path, key=True).line}" if keys in written.marks else ""


_PLAIN = re.compile(r"[A-Za-z][\w.()+*/ -]*(?: = -?[\w.][\w.+-]*)?|\.\.\.")
_RESERVED = re.compile(r"true|false|null|yes|no|on|off|~", re.IGNORECASE)


def flow(value: Any) -> str:
    """Return a value as one line of YAML that reads back as the same value."""
    if isinstance(value, dict):
        parts = [ELLIPSIS if k == ELLIPSIS else f"{flow(k)}: {flow(v)}" for k, v in value.items()]
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.strip() == value and not _RESERVED.fullmatch(value)
        return value if plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return repr(value).replace("inf", ".inf").replace("nan", ".nan")
    return json.dumps(value)


def fitting(document: Document, text: SpecText, names: Names, words: Vocabulary | None) -> Document:
    """Return a file without the family entries that use names which no version of the operator has.

    The file's own entries always stay: there, such a name is a mistake.
    """
    return _Fit(document, text, names, words).fitted() if document.origins else document


def _is_bundle(parameter: ParameterText) -> bool:
    levels = parameter.levels
    return isinstance(levels, dict) and all(isinstance(level.value, dict) for level in levels.values())


class _Fit:
    """The entries of a file that fit the names of its versions."""

    def __init__(self, document: Document, text: SpecText, names: Names, words: Vocabulary | None) -> None:
        self.text, self.document, self.names = text, document, names
        bound, used = shape_symbols(text, names.inputs)
        self.known = COMMON_PARAMETERS | bound | used | (words.parameters if words else frozenset())

    def fitted(self) -> Document:
        text, inputs = self.text, frozenset(self.names.inputs)
        kept: dict[str, Mapping[Any, Any]] = {
            section: self.kept(section, getattr(text, section), lambda n, _: n in inputs)
            for section in ("shapes", "domains", "operands")
        }
        kept["parameters"] = self.kept("parameters", text.parameters, lambda n, p: self.has(n) or _is_bundle(p))
        drawn = {n for n, entry in kept["operands"].items() if any(o.draw for o in entry)}
        self.known |= kept["parameters"].keys() | drawn
        self.levels = {name: levels_written(raw) for name, raw in kept["parameters"].items()}
        edges = self.kept("edges", text.edges, lambda _, e: all(map(self.has, (*e.settings, *(e.mended or ())))))
        tested = {id_ for edge in edges.values() for id_ in edge.tests}
        kept["clauses"] = self.kept("clauses", text.clauses, lambda id_, c: self.applies(c, id_ in tested))
        ids = kept["clauses"].keys() | text.silences.keys()
        kept["edges"] = self.kept("edges", edges, lambda _, e: any(id_ in ids for id_ in e.tests))
        kept["types-from"] = self.kept("types-from", text.types_from, self.derives)
        kept["unused"] = self.kept("unused", text.unused, lambda n, _: not self.names.roles(n).isdisjoint(_READ))
        value = dict(self.document.value)
        origins = {path: origin for path, origin in self.document.origins.items() if path[0] not in _LISTS}
        for section, entries in kept.items():
            if section in value:
                value[section] = {key: entry for key, entry in value[section].items() if key in entries}
        for id_, edge in kept["edges"].items():
            if self.is_shared("edges", id_):
                value["edges"][id_] = {**value["edges"][id_], "tests": [t for t in edge.tests if t in ids]}
        for number, groups in value.get("strength", {}).items():
            if self.is_shared("strength", number):
                named = groups if groups and isinstance(groups[0], list) else [groups]
                value["strength"] = {**value["strength"], number: [[x for x in g if x in self.known] for g in named]}
        for section in _LISTS & value.keys():
            rows = [(i, row) for i, entry in enumerate(value[section]) if (row := self.row((section, i), entry))]
            value[section] = [row for _, row in rows]
            origins |= {
                (section, new): self.document.origins.get((section, old), (self.document, (section, old)))
                for new, (old, _) in enumerate(rows)
            }
        return replace(self.document, value=value, origins=origins)

    def is_shared(self, *path: Key) -> bool:
        return path in self.document.origins

    def has(self, name: str) -> bool:
        return name in self.known or bool(self.names.roles(name) - {"own"})

    def kept(self, section: str, entries: Mapping[str, _T], fits: Callable[[str, _T], bool]) -> dict[str, _T]:
        return {
            name: entry for name, entry in entries.items() if not self.is_shared(section, name) or fits(name, entry)
        }

    def applies(self, clause: ClauseText, tested: bool) -> bool:
        return tested if clause.when == "edges" else all(map(self.has, clause.when or ()))

    def derives(self, name: str, sources: Iterable[TypesFromText]) -> bool:
        return any(
            (name in s.types or s.letter(name)) and any(s.attribute(source.attribute) for source in sources)
            for s in self.names.signatures.values()
        )

    def row(self, path: Keys, row: Any) -> Any:
        """Return a list's entry, empty if it does not fit; a family's entry loses the levels that parameters lack."""
        if not self.is_shared(*path):
            return row
        if path[0] == "same":
            return row if all(self.names.is_type(letter) for letter in row) else None
        return self.levelled(row)

    def levelled(self, row: Mapping[str, Any]) -> dict[str, Any]:
        fitting_levels: dict[str, Any] = {}
        for name, raw in row.items():
            negated, values = conditions(raw)
            levels = self.levels.get(name)
            named = [v for v in values if levels is None or self.names.is_type(name) or text_of(v) in levels]
            if name not in self.known or not (named or negated):
                return {}
            if named:
                fitting_levels[name] = {"not": named} if negated else named
        return fitting_levels
