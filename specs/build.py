"""From a document to a spec: structure, signatures, checks, and what the file says about each version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from ..cases.model import OperatorVersion
from .checks import Parts, check, vocabulary_of
from .edges import Place, check_reach, resolve_edge
from .expressions import recipe
from .groups import expand
from .model import (
    Clause,
    Condition,
    Edge,
    Expect,
    Operand,
    Recipe,
    Silence,
    Spec,
    Value,
    Version,
    VersionSpec,
    Vocabulary,
    Word,
)
from .names import Names
from .parameters import levels_by_version, literal_of, parameters, settled, span_of, text_of
from .problems import Problems
from .reading import Document, SpecErrors
from .resolve import signatures
from .settings import conditions
from .structure import Spanned, structured

_Levels: TypeAlias = Mapping[str, Mapping[str, Value]]


def build(document: Document, vocabulary: Mapping[str, Vocabulary] | None) -> Spec:
    """Check and resolve a spec; see `loader.load_spec`. Raises SpecErrors."""
    text, errors = structured(document)
    if text is None:
        raise SpecErrors(errors)
    problems = Problems(document)
    if text.domain and not text.operator.startswith("onnx/"):
        problems.add(("domain",), "only ONNX has domains", key=True)
    found = signatures(text, problems)
    problems.raise_any()
    declared = parameters(text.parameters, problems)
    words = vocabulary_of(text, vocabulary)
    names = Names(found, words.parameters if words else None)
    parts = Parts(text, declared, levels_by_version(declared, names), names)
    check(parts, vocabulary, problems)
    problems.raise_any()
    spec = _Builder(parts).spec(document)
    check_reach(problems, text, {version: one.edges for version, one in spec.versions.items()})
    problems.raise_any()
    return spec


_WORDS: Mapping[str, Word] = {word.value: word for word in Word}


class _Builder:
    """Puts together what a checked file says about each version."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.text, self.names = parts, parts.text, parts.names
        self.signatures = parts.names.signatures
        self.standard, _, self.name = self.text.operator.partition("/")
        self.domain = self.text.domain or ""

    def spec(self, document: Document) -> Spec:
        family, _, function = self.text.family.partition(".")
        return Spec(
            self.standard,
            self.name,
            self.domain,
            family,
            function,
            {version: self.version(version) for version in self.signatures},
            self.text.graphs,
            {name: settled(table, words=False) for name, table in self.text.tables.items()},
            document,
        )

    def version(self, version: Version) -> VersionSpec:
        signature = self.signatures[version]
        levels = self.parameters(version)
        clauses, silences = self.clauses(version), self.silences(version)
        return VersionSpec(
            OperatorVersion(self.standard, self.name, version, self.domain),
            signature,
            self.text.versions[version].change,
            clauses,
            silences,
            levels,
            self.exclude(version, levels),
            self.expect(version, levels),
            self.edges(version, frozenset(clauses) | frozenset(silences)),
            {port.name: Operand(port.name, self.shape(port.name)) for port in signature.inputs},
            graphs=self.text.graphs,
            tables={name: settled(table, words=False) for name, table in self.text.tables.items()},
        )

    def shape(self, port: str) -> tuple[int | str, ...] | Recipe | None:
        found = self.text.shapes.get(port)
        return recipe(found) if isinstance(found, str) else None if found is None else tuple(found)

    def applies(self, one: Spanned, version: Version) -> bool:
        return span_of(one).covers(version, self.signatures)

    def source(self, own: str | None, version: Version) -> str:
        return (own or self.text.source).replace("{version}", str(version))

    def clauses(self, version: Version) -> dict[str, Clause]:
        found = {}
        for id_, text in self.text.clauses.items():
            if self.applies(text, version):
                when = None if text.when == "edges" else self.conditions(text.when or {}, version)
                source = self.source(text.source, version)
                found[id_] = Clause(id_, text.text, source, text.status, when, text.upstream, tuple(text.disputes))
        return found

    def silences(self, version: Version) -> dict[str, Silence]:
        return {
            id_: Silence(id_, text.when, tuple(text.options), self.source(text.source, version))
            for id_, text in self.text.silences.items()
            if self.applies(text, version)
        }

    def conditions(self, when: Any, version: Version) -> dict[str, Condition]:
        found = {}
        for name, raw in when.items():
            negated, values = conditions(raw)
            contents = tuple(value for one in values for value in self.contents(name, one))
            found[self.names.canonical(name, version)] = Condition(contents, negated)
        return found

    def contents(self, name: str, raw: Any) -> tuple[Value, ...]:
        if self.names.is_type(name):
            return expand(raw)
        wrapped, value = literal_of(raw)
        if not wrapped and isinstance(value, str) and value in _WORDS:
            return (_WORDS[value],)
        return (settled(value, words=False),)

    def parameters(self, version: Version) -> dict[str, Mapping[str, Value]]:
        found: dict[str, Mapping[str, Value]] = {}
        for name, levels in self.parts.levels[version].items():
            key = self.names.canonical(name, version)
            both = found.get(key, levels)  # two ports may share a letter in this version: what both list
            if levels and (kept := {level: value for level, value in both.items() if level in levels}):
                found[key] = kept
        return found

    def exclude(self, version: Version, levels: _Levels) -> tuple[Mapping[str, tuple[str, ...]], ...]:
        rows = (self.row(row, version, levels) for row in self.text.exclude)
        return tuple(row for row in rows if row)

    def expect(self, version: Version, levels: _Levels) -> tuple[Expect, ...]:
        found = []
        for text in self.text.expect:
            when = self.row(text.when, version, levels)
            if when or not text.when:
                order = {
                    what: id_ for what, id_ in text.order.items() if self.applies(self.text.silences[id_], version)
                }
                found.append(Expect(when or {}, text.values, tuple(map(recipe, text.check)), order, text.alarm))
        return tuple(found)

    def row(self, row: Mapping[str, Any], version: Version, levels: _Levels) -> dict[str, tuple[str, ...]] | None:
        """Return the levels that a row names, by parameter; None where it can never hold in the version."""
        found: dict[str, tuple[str, ...]] = {}
        for name, raw in row.items():
            key = self.names.canonical(name, version)
            if key not in levels:
                return None
            negated, values = conditions(raw)
            named = {level for value in values for level in self.level_names(name, value)}
            here = found.get(key, tuple(levels[key]))
            found[key] = tuple(level for level in here if (level in named) != negated)
            if not found[key]:
                return None
        return found

    def level_names(self, name: str, value: Any) -> tuple[str, ...]:
        return expand(value) if self.names.is_type(name) else (text_of(literal_of(value)[1]),)

    def edges(self, version: Version, known: frozenset[str]) -> dict[str, Edge]:
        place = Place(version, self.names, self.parts.parameters, self.parts.levels[version], known)
        resolved = {id_: resolve_edge(id_, text, place) for id_, text in self.text.edges.items()}
        return {id_: edge for id_, edge in resolved.items() if edge is not None}
