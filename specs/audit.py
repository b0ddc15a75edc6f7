"""Specs against the standard's own schemas: what differs, and how much of the standard the specs cover."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeAlias

from ..cases.errors import OpconformError, did_you_mean
from .exercise import Exercise, declared_exercise
from .loader import Library
from .model import AttributeSignature, Port, Signature, Spec, Version, VersionSpec
from .onnx_schema import DOMAINS, as_float32, newest_opset, onnx_signatures, onnx_version
from .reading import Keys, SpecError

AUDITED = ("onnx",)

_Schemas: TypeAlias = Mapping[str, Mapping[int, Signature]]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of `total` things have a case."""

    covered: int = 0
    total: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.covered + other.covered, self.total + other.total)


@dataclass(frozen=True, slots=True)
class Coverages:
    """Four ways to count: operator versions; (version, letter, type); (version, attribute); (version, clause)."""

    operator_versions: Coverage = Coverage()
    type_triples: Coverage = Coverage()
    attributes: Coverage = Coverage()
    clauses: Coverage = Coverage()

    def __add__(self, other: Coverages) -> Coverages:
        return Coverages(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Audit:
    """The result: `differences` from the schemas, coverage by domain, and what could not be checked or has no case.

    `gaps` names what the specs describe and no case exercises; `unchecked` the versions newer than the installed onnx.
    """

    standard: str
    onnx: str
    differences: tuple[SpecError, ...]
    unchecked: tuple[str, ...]
    domains: Mapping[str, Coverages]
    gaps: tuple[str, ...]

    @property
    def coverages(self) -> Coverages:
        """Coverage of all domains together."""
        return sum(self.domains.values(), Coverages())

    def to_json(self) -> str:
        """Return the audit as JSON: the four counts together and by domain, the differences, and onnx's version."""
        whole: dict[str, Any] = {"standard": self.standard, **asdict(self.coverages)}
        whole["domains"] = {domain: asdict(coverages) for domain, coverages in self.domains.items()}
        whole["differences"] = [_difference_json(error) for error in self.differences]
        whole["unchecked"], whole["gaps"], whole["onnx"] = list(self.unchecked), list(self.gaps), self.onnx
        return json.dumps(whole, indent=2)


def audit(library: Library, standard: str = "onnx", exercised: Mapping[str, Exercise] | None = None) -> Audit:
    """Compare all specs of a standard with its schemas, and count what they cover.

    `exercised` says by operator version (`onnx/ReduceMean-13`) what the generated cases touch; without it, what the
    specs declare counts. Totals are those of the schemas, over all operators, those without a spec too; clauses are
    those of the specs. Raises OpconformError for a standard without schemas, SpecErrors for a broken spec.
    """
    if standard not in AUDITED:
        hint = did_you_mean(standard, AUDITED) or f"; known: {', '.join(AUDITED)}"
        raise OpconformError(f"there is no schema to audit {standard!r} against{hint}")
    specs = [library.spec(name) for name in library.operators() if name.startswith(f"{standard}/")]
    schemas = {domain: onnx_signatures(domain) for domain in DOMAINS}
    touched = exercised if exercised is not None else declared_exercise(specs)
    differences, unchecked = [], []
    for spec in specs:
        found, newer = _compare(spec, schemas)
        differences += found
        unchecked += newer
    counted = {
        domain or "ai.onnx": _count(schemas[domain], [s for s in specs if s.domain == domain], touched)
        for domain in DOMAINS
    }
    gaps = tuple(gap for spec in specs for gap in _gaps(spec, touched))
    return Audit(standard, onnx_version(), tuple(differences), tuple(unchecked), counted, gaps)


def _difference_json(error: SpecError) -> dict[str, Any]:
    place = error.position
    return {"file": error.file, "line": place.line, "column": place.column, "message": error.message}


def _compare(spec: Spec, schemas: Mapping[str, _Schemas]) -> tuple[list[SpecError], list[str]]:
    """Return the differences of a spec, and what is newer than the schemas."""
    if spec.domain not in schemas:
        known = ", ".join(domain or "ai.onnx (leave it out)" for domain in schemas)
        return [spec.error(("domain",), f"no domain {spec.domain!r}; there is {known}")], []
    schema = schemas[spec.domain].get(spec.name)
    newest = newest_opset(spec.domain)
    newer = [v for v in spec.versions if isinstance(v, int) and v > newest]
    unchecked = [f"{spec.versions[v].operator} cannot be checked: onnx {onnx_version()} is older" for v in newer]
    if schema is None:
        if len(newer) == len(spec.versions):
            return [], unchecked
        hint = did_you_mean(spec.name, schemas[spec.domain])
        return [spec.error(("operator",), f"the schemas have no operator {spec.name!r}{hint}")], unchecked
    found = [
        spec.error(("versions",), f"version {version} is in the schemas, and missing here", key=True)
        for version in schema
        if version not in spec.versions
    ]
    told = _Told(spec)
    for version, one in spec.versions.items():
        if isinstance(version, int) and version in schema:
            told.compare(version, one.signature, schema[version])
        elif version not in newer:
            words = f"the schemas have no version {version}, but {', '.join(map(str, schema))}"
            found.append(spec.error(("versions", version), words, key=True))
    return [*found, *told.errors()], unchecked


class _Told:
    """Gathers differences by place and words, so that what versions inherit is told once."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.versions: dict[tuple[Keys, str], list[Version]] = {}

    def errors(self) -> list[SpecError]:
        return [
            self.spec.error(path, f"{words} (version {', '.join(map(str, versions))})", key=True)
            for (path, words), versions in self.versions.items()
        ]

    def add(self, version: Version, words: str, *place: str) -> None:
        path = self.spec.written_at(version, *place)
        self.versions.setdefault((path, words), []).append(version)

    def compare(self, version: Version, here: Signature, schema: Signature) -> None:
        if here.deprecated != schema.deprecated:
            words = "the schema says that it is deprecated" if schema.deprecated else "the schema has it not deprecated"
            self.versions[("versions", version), words] = [version]  # not inherited
        self.attributes(version, here, schema)
        self.ports(version, "inputs", here.inputs, schema.inputs)
        self.ports(version, "outputs", here.outputs, schema.outputs)
        self.types(version, here.types, schema.types)

    def attributes(self, version: Version, here: Signature, schema: Signature) -> None:
        for name in dict.fromkeys(a.name for a in (*here.attributes, *schema.attributes)):
            a, b = here.attribute(name), schema.attribute(name)
            if _rounded(a) != _rounded(b):
                words = f"attribute {name}: here {_attribute_text(a)}, the schema has {_attribute_text(b)}"
                self.add(version, words, "attributes", name)

    def ports(self, version: Version, section: str, here: tuple[Port, ...], schema: tuple[Port, ...]) -> None:
        for index in range(max(len(here), len(schema))):
            a = here[index] if index < len(here) else None
            b = schema[index] if index < len(schema) else None
            if a != b:
                words = f"{section[:-1]} {index + 1}: here {_port_text(a)}, the schema has {_port_text(b)}"
                self.add(version, words, section, a.name if a else "")
                return  # the others are shifted

    def types(
        self, version: Version, here: Mapping[str, tuple[str, ...]], schema: Mapping[str, tuple[str, ...]]
    ) -> None:
        for letter in dict.fromkeys((*here, *schema)):
            a, b = here.get(letter), schema.get(letter)
            if a is None or b is None:
                words = "is missing here" if a is None else "is not in the schema"
                self.add(version, f"type letter {letter} {words}", "types", letter)
            elif set(a) != set(b):
                parts = [("only here", set(a) - set(b)), ("only in the schema", set(b) - set(a))]
                told = "; ".join(f"{what}: {', '.join(sorted(types))}" for what, types in parts if types)
                self.add(version, f"types of {letter}: {told}", "types", letter)


def _rounded(attribute: AttributeSignature | None) -> object:
    """Return what must be equal: defaults of floats as the float32 that ONNX stores."""
    if attribute is None:
        return None
    default = attribute.default
    values = default if isinstance(default, tuple) else (default,)
    same = tuple(as_float32(v) if isinstance(v, float) else v for v in values)
    return (attribute.kind, attribute.required, default is None, isinstance(default, tuple), same)


def _attribute_text(attribute: AttributeSignature | None) -> str:
    if attribute is None:
        return "none"
    if attribute.default is not None:
        return f"{attribute.kind} = {attribute.default}"
    return attribute.kind if attribute.required else f"optional {attribute.kind}"


def _port_text(port: Port | None) -> str:
    if port is None:
        return "none"
    if port.is_variadic:
        suffix = {0: "*", 1: "+"}.get(port.minimum, f" (at least {port.minimum})")
        return f"{port.name}: {'each ' if port.option == 'each' else ''}{port.type}{suffix}"
    return f"{port.name}: {'optional ' if port.option == 'optional' else ''}{port.type}"


def _count(schemas: _Schemas, specs: Iterable[Spec], touched: Mapping[str, Exercise]) -> Coverages:
    versions, types, attributes = Coverage(), Coverage(), Coverage()
    for name, by_version in schemas.items():
        for version, schema in by_version.items():
            operator = f"onnx/{name}-{version}"
            did = touched.get(operator, Exercise())
            pairs = {(letter, t) for letter, allowed in schema.types.items() for t in allowed}
            named = {a.name for a in schema.attributes}
            versions += Coverage(int(operator in touched), 1)
            types += Coverage(len(pairs & did.types), len(pairs))
            attributes += Coverage(len(named & did.attributes), len(named))
    clauses = Coverage()
    for spec in specs:
        for one in spec.versions.values():
            ids = _judged_clauses(one)
            clauses += Coverage(len(ids & touched.get(str(one.operator), Exercise()).clauses), len(ids))
    return Coverages(versions, types, attributes, clauses)


def _judged_clauses(one: VersionSpec) -> set[str]:
    return {id_ for id_, clause in one.clauses.items() if clause.status != "withdrawn"}


def _gaps(spec: Spec, touched: Mapping[str, Exercise]) -> Iterator[str]:
    for one in spec.versions.values():
        name = str(one.operator)
        did = touched.get(name, Exercise())
        for letter, allowed in one.signature.types.items():
            yield from (f"{name}: no case with {letter} = {t}" for t in allowed if (letter, t) not in did.types)
        for attribute in one.signature.attributes:
            if attribute.name not in did.attributes:
                yield f"{name}: no case sets {attribute.name} to other than its default"
        for id_ in sorted(_judged_clauses(one) - did.clauses):
            yield f"{name}: no case tests clause {id_}"
