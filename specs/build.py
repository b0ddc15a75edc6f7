"""Builds a spec from a document: structure, signatures, checks, and the content for each version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from ..cases.errors import OpconformError
from ..cases.program import OperatorVersion
from .binding import Ours, bound
from .checks import alternative, check, letter_of, shape_symbols, vocabulary_of
from .expressions import recipe
from .families import Families, fitting, merged
from .model import (
    Binding,
    Clause,
    Condition,
    Edge,
    Operand,
    Recipe,
    Signature,
    Silence,
    Spec,
    TypeSource,
    Value,
    Version,
    VersionSpec,
    Vocabulary,
    Word,
    expand,
)
from .parameters import Misfit, Names, Span, drawn, levels_by_version, literal_of, parameters, settled, text_of, typed
from .reading import Document, Problems
from .resolve import signatures
from .schema import OperandText, Spanned, SpecText, parsed
from .settings import Context, aliases, check_edges, check_reach, conditions, named_level, resolve_edge

_T = TypeVar("_T")
_Levels: TypeAlias = Mapping[str, Mapping[str, Value]]


def build(
    document: Document,
    vocabulary: Mapping[str, Vocabulary] | None,
    families: Families,
    formula: Callable[[str], tuple[Spec, Version]] | None = None,
) -> Spec:
    """Check and resolve a spec; see `loader.spec_of`. Raises SpecErrors."""
    document = merged(document, families)
    text = parsed(SpecText, document)
    problems = Problems(document)
    if text.domain and not text.operator.startswith("onnx/"):
        problems.add(("domain",), "only ONNX has domains", key=True)
    by_version = signatures(text, problems)
    problems.raise_any()
    words = vocabulary_of(text, vocabulary)
    bare = Names(by_version)
    document = fitting(document, text, bare, words)
    if document.origins:
        text, problems = parsed(SpecText, document), Problems(document)
    context = _context(text, bare, words, problems)
    check(context, vocabulary)
    check_edges(context)
    problems.raise_any()
    spec = _Builder(context, formula).spec(document)
    problems.raise_any()
    check_reach(context, {version: version_spec.edges for version, version_spec in spec.versions.items()})
    problems.raise_any()
    return spec


def fitted(document: Document, families: Families) -> Document:
    """Return a spec file merged with the fitting entries of the families that it uses. Raises SpecErrors."""
    document = merged(document, families)
    text, problems = parsed(SpecText, document), Problems(document)
    by_version = signatures(text, problems)
    problems.raise_any()
    return fitting(document, text, Names(by_version), None)


def _context(text: SpecText, bare: Names, words: Vocabulary | None, problems: Problems) -> Context:
    declared = dict(parameters(text.parameters, problems))
    for port, alternatives in text.operands.items():
        if any(operand.draw for operand in alternatives):
            paths = ((("operands", port, *at), operand) for at, operand in alternative(alternatives))
            declared.setdefault(port, drawn(port, paths, problems))
    bound, used = shape_symbols(text, bare.inputs)
    bundles = frozenset(name for name, parameter in declared.items() if parameter.is_bundle)
    levels = [level.value for name in bundles for level in declared[name].levels]
    set_in_bundles = {key for value in levels if isinstance(value, dict) for key in value}
    symbols = bound | (used & (declared.keys() | set_in_bundles))
    names = Names(bare.signatures, words.parameters if words else None, symbols, bundles)
    return Context(text, names, declared, levels_by_version(declared, names), bound, words, problems)


_NOTHING = OperandText.model_validate({})
_SHARED = ("clauses", "silences", "parameters", "edges", "operands")
"""The parts of versions that are often equal to those of the version before."""
_WORDS: Mapping[str, Word] = {word.value: word for word in Word}


class _Builder:
    """Collects the content of a checked file for each version."""

    def __init__(self, context: Context, formula: Callable[[str], tuple[Spec, Version]] | None) -> None:
        self.formula = formula
        self.context, self.text, self.names = context, context.text, context.names
        self.signatures = context.names.signatures
        self.standard, _, self.name = self.text.operator.partition("/")
        self.domain = self.text.domain or ""

    def spec(self, document: Document) -> Spec:
        family, _, function = self.text.family.partition(".")
        graphs = self.text.graphs
        return Spec(self.standard, self.name, self.domain, family, function, self.versions(), graphs, document)

    def versions(self) -> dict[Version, VersionSpec]:
        """Return the file's content for each version; equal parts of versions share one object."""
        specs: dict[Version, VersionSpec] = {}
        for version in self.signatures:
            spec, before = self.version(version), next(reversed(specs.values()), None)
            if before is not None:
                shared: Any = {name: _shared(getattr(spec, name), getattr(before, name)) for name in _SHARED}
                spec = replace(spec, **shared)
            specs[version] = spec
        return specs

    def version(self, version: Version) -> VersionSpec:
        signature = self.signatures[version]
        levels = self.parameters(version)
        clauses, silences = self.clauses(version), self.silences(version)
        edges = self.edges(version, frozenset(clauses) | frozenset(silences))
        types_from = self.types_from(version)
        return VersionSpec(
            OperatorVersion(self.standard, self.name, version, self.domain),
            signature,
            self.text.versions[version].change,
            clauses,
            silences,
            levels,
            (*self.exclude(version, levels), *_without_attribute(types_from, levels, signature)),
            edges,
            {port.name: self.operand(port.name, version) for port in signature.inputs},
            types_from,
            tuple(g for group in self.text.same if len(g := tuple(x for x in group if x in signature.types)) > 1),
            self.precision(),
            self.strength(version, levels),
            self.text.graphs,
            aliases(self.text, edges, signature),
            self.text.versions[version].amended,
            self.unused(version),
            self.binding(version, frozenset(clauses), silences),
        )

    def applies(self, part: Spanned, version: Version) -> bool:
        return Span.of(part).covers(version, self.names)

    def operand(self, port: str, version: Version) -> Operand:
        shape, domain = self.text.shapes.get(port), self.text.domains.get(port)
        applicable = [operand for operand in self.text.operands.get(port, ()) if self.applies(operand, version)]
        if len(applicable) > 1:
            self.context.problems.add(("operands", port), f"two operands {port!r} apply to version {version}", key=True)
        operand = applicable[0] if applicable else _NOTHING
        shape, domain = operand.shape if operand.shape is not None else shape, operand.domain or domain
        return Operand(
            port,
            None if shape is None else self.shape(shape),
            tuple(v for v in self.context.levels[version].get(port, {}).values() if isinstance(v, Recipe)),
            recipe(domain) if domain else None,
            recipe(operand.fill) if operand.fill else None,
            {key: settled(value, words=False) for key, value in (operand.model_extra or {}).items()},
        )

    def shape(self, shape: Any) -> tuple[int | str, ...] | Recipe:
        if isinstance(shape, list):
            return tuple(shape)
        return (f"{shape}...",) if shape == "d" or shape in self.context.bound else recipe(shape)

    def types_from(self, version: Version) -> dict[str, TypeSource]:
        sources = {}
        for name, alternatives in self.text.types_from.items():
            letter = letter_of(self.names, name, version)
            for source in alternatives:
                if letter and self.applies(source, version) and self.signatures[version].attribute(source.attribute):
                    sources[letter] = TypeSource(source.attribute, source.absent, source.names)
        return sources

    def precision(self) -> dict[str, Mapping[str, float]]:
        budgets = {name: b if isinstance(b, dict) else {"": b} for name, b in self.text.precision.items()}
        return {
            name: {t: float(ulp) for word, ulp in by_type.items() for t in (expand(word) if word else ("",))}
            for name, by_type in budgets.items()
        }

    def unused(self, version: Version) -> dict[str, str]:
        signature = self.signatures[version]
        entries = ((name, entry) for name, entry in self.text.unused.items() if self.applies(entry, version))
        return {name: entry.reason for name, entry in entries if signature.attribute(name) or signature.input(name)}

    def binding(self, version: Version, clauses: frozenset[str], silences: Mapping[str, Silence]) -> Binding | None:
        places = [(("as", *at), entry) for at, entry in alternative(self.text.bindings) if self.applies(entry, version)]
        if len(places) > 1:
            self.context.problems.add(("as",), f"two bindings apply to version {version}", key=True)
        if not places or self.formula is None:
            return None
        path, text = places[0]
        problems = self.context.problems
        try:
            theirs, number = self.formula(text.formula)
        except OpconformError as error:
            problems.add((*path, "formula"), str(error))
            return None
        if (family := f"{theirs.family}.{theirs.function}") != self.text.family:
            problems.add(("family",), f"expected {family}, the family of {text.formula}; read {self.text.family!r}")
        signature, target = self.signatures[version], theirs.versions[number]
        return bound(Ours(signature, clauses, silences), text, path, target, problems)

    def strength(self, version: Version, levels: _Levels) -> dict[int, tuple[tuple[str, ...], ...]]:
        strengths = {}
        for number, groups in self.text.strength.items():
            here = (dict.fromkeys(self.names.canonical(name, version) for name in group) for group in groups)
            kept = tuple(tuple(name for name in group if name in levels) for group in here)
            if large := tuple(group for group in kept if len(group) >= number):
                strengths[number] = large
        return strengths

    def source(self, own: str | None, version: Version) -> str:
        return (own or self.text.source).replace("{version}", str(version))

    def clauses(self, version: Version) -> dict[str, Clause]:
        clauses_by_id = {}
        for id_, text in self.text.clauses.items():
            if self.applies(text, version):
                when = None if text.when == "edges" else self.conditions(text.when or {}, version)
                source = self.source(text.source, version)
                clauses_by_id[id_] = Clause(
                    id_, text.text, source, text.status, when, text.upstream, tuple(text.disputes), tuple(text.excludes)
                )
        return clauses_by_id

    def silences(self, version: Version) -> dict[str, Silence]:
        return {
            id_: Silence(id_, text.when, tuple(text.options), self.source(text.source, version))
            for id_, text in self.text.silences.items()
            if self.applies(text, version)
        }

    def conditions(self, when: Any, version: Version) -> dict[str, Condition]:
        by_name: dict[str, Condition] = {}
        for name, raw in when.items():
            negated, values = conditions(raw)
            contents = tuple(value for entry in values for value in self.contents(name, entry))
            if len(contents) == 1 and isinstance(contents[0], Mapping):  # a bundle's settings
                by_name |= {inner: Condition((value,)) for inner, value in contents[0].items()}
            else:
                by_name[self.names.canonical(name, version)] = Condition(contents, negated)
        return by_name

    def contents(self, name: str, raw: Any) -> tuple[Value, ...]:
        if self.names.is_type(name):
            return expand(raw)
        if isinstance(raw, str) and raw in _WORDS:
            return (_WORDS[raw],)
        level = named_level(self.context, name, raw)
        if level is not None:
            return (level.value,)
        return (settled(literal_of(raw)[1], words=False),)

    def parameters(self, version: Version) -> dict[str, Mapping[str, Value]]:
        parameters: dict[str, Mapping[str, Value]] = {}
        for name, levels in self.context.levels[version].items():
            key = self.names.canonical(name, version)
            both = parameters.get(key, levels)  # two ports may share a letter here: take the types that both list
            if levels and (kept := {level: value for level, value in both.items() if level in levels}):
                parameters[key] = kept
                if not self.names.roles(name).isdisjoint(("attribute", "bundle", "own")):
                    parameters[key] = {level: self.typed(name, level, value, version) for level, value in kept.items()}
        return parameters

    def typed(self, name: str, level: str, value: Value, version: Version) -> Value:
        try:
            return typed(name, value, self.signatures[version])
        except Misfit as error:
            path = next((x.path for x in self.context.parameters[name].levels if x.name == level), ("parameters", name))
            self.context.problems.add((*path, *error.at), str(error))
            return value

    def exclude(self, version: Version, levels: _Levels) -> tuple[Mapping[str, tuple[str, ...]], ...]:
        rows = (self.row(row, version, levels) for row in self.text.exclude)
        return tuple(row for row in rows if row)

    def row(self, row: Mapping[str, Any], version: Version, levels: _Levels) -> dict[str, tuple[str, ...]] | None:
        """Return the levels that a row names, by parameter; None if it can never hold in the version."""
        chosen: dict[str, tuple[str, ...]] = {}
        for name, raw in row.items():
            key = self.names.canonical(name, version)
            if key not in levels:
                return None
            negated, values = conditions(raw)
            named = {level for value in values for level in self.level_names(name, value)}
            here = chosen.get(key, tuple(levels[key]))
            chosen[key] = tuple(level for level in here if (level in named) != negated)
            if not chosen[key]:
                return None
        return chosen

    def level_names(self, name: str, value: Any) -> tuple[str, ...]:
        return expand(value) if self.names.is_type(name) else (text_of(literal_of(value)[1]),)

    def edges(self, version: Version, known: frozenset[str]) -> dict[str, Edge]:
        resolved = {id_: resolve_edge(id_, self.context, version, known) for id_ in self.text.edges}
        return {
            id_: edge
            for id_, edge in resolved.items()
            if edge is not None and (edge.tests or not self.context.is_shared("edges", id_))
        }


def _shared(now: Mapping[str, _T], before: Mapping[str, _T]) -> dict[str, _T]:
    """Return entries that reuse equal objects of `before`; compared by text, since 1 == 1.0."""
    return {k: before[k] if k in before and repr(before[k]) == repr(entry) else entry for k, entry in now.items()}


def _without_attribute(
    sources: Mapping[str, TypeSource], levels: _Levels, signature: Signature
) -> Iterator[Mapping[str, tuple[str, ...]]]:
    """Yield rows that exclude types for which an attribute is required but absent."""
    for letter, source in sources.items():
        absent = [level for level, value in levels.get(source.attribute, {}).items() if value is Word.ABSENT]
        if not absent or source.absent is None:
            continue
        givers = [port for port in signature.inputs if signature.letter(port.name) == letter]
        row = {source.attribute: tuple(absent)}
        for port in givers:
            row[port.name] = tuple(
                level for level, value in levels.get(port.name, {}).items() if value in (Word.ABSENT, Word.OMITTED)
            )
        for usual in levels.get(source.absent, {source.absent: None}):
            more = {source.absent: (usual,)} if source.absent in levels else {}
            types = {**row, **more, letter: tuple(t for t in levels.get(letter, {}) if t != usual)}
            if all(types.values()):
                yield types
