"""The findings of an audit for one spec, the coverage of a standard, and the schemas of the onnx package.

The schemas of the installed onnx package are ONNX's standard.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from ...cases.errors import did_you_mean
from ...cases.program import AttributeValue
from ..model import AttributeSignature, Port, Signature, Spec, Version, VersionSpec
from ..reading import Keys, SpecError


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of comparing a spec with its standard.

    `disputed`: differences covered by a disputed clause. `beyond`: what a library accepts beyond the spec, which proves
    nothing. `failures`: operator versions that the library could not be asked about.
    """

    differences: tuple[SpecError, ...] = ()
    disputed: tuple[SpecError, ...] = ()
    unchecked: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    def __add__(self, other: Findings) -> Findings:
        return Findings(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Authority:
    """The schemas or library that the specs of a standard are compared with; `source` and `version` are its names.

    `extents` has what there is to cover, by group and operator version; `group_of` returns a spec's group. `untold`:
    what cannot be found out; `uncounted`: operator versions whose types and attributes cannot be counted.
    """

    standard: str
    source: str
    version: str
    extents: Mapping[str, Mapping[str, Exercise]]
    compare: Callable[[Spec], Findings]
    group_of: Callable[[Spec], str]
    untold: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()


class Differences:
    """Collects differences by path and message, so that a difference that versions inherit is reported once."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._agreed: dict[tuple[Keys, str], list[Version]] = {}
        self._disputed: dict[tuple[Keys, str], list[Version]] = {}

    def add(self, version: Version, words: str, *part: str) -> None:
        """Add a difference in a part of the signature: a section and a name, or a section alone."""
        self._agreed.setdefault((self.spec.written_at(version, *part), words), []).append(version)

    def add_unless_disputed(self, version: Version, words: str, *part: str) -> None:
        """Add a difference between the standard's page and its library, as disputed if a disputed clause covers it."""
        clauses = self.spec.versions[version].clauses.values()
        clause = next((clause for clause in clauses if ".".join(part) in clause.disputes), None)
        if clause is None:
            self.add(version, words, *part)
        else:
            words = f"{words}; disputed by clause {clause.id}, {clause.upstream}"
            self._disputed.setdefault((self.spec.written_at(version, *part), words), []).append(version)

    def add_to_version(self, version: Version, words: str) -> None:
        """Add a difference in something that versions do not inherit."""
        self._agreed[("versions", version), words] = [version]

    def errors(self) -> list[SpecError]:
        """Return the differences."""
        return list(self._errors_of(self._agreed))

    def disputed(self) -> list[SpecError]:
        """Return the differences that a disputed clause covers."""
        return list(self._errors_of(self._disputed))

    def _errors_of(self, differences: Mapping[tuple[Keys, str], list[Version]]) -> Iterable[SpecError]:
        for (path, words), versions in differences.items():
            yield self.spec.error(path, f"{words} (version {', '.join(map(str, versions))})", key=True)


def versions_held(
    spec: Spec, source: str, operators: Mapping[str, Iterable[Version]], newer: Collection[Version]
) -> tuple[Findings, list[Version]]:
    """Return findings about versions that only one side has, and the versions that both have.

    `operators` are the operators of `source` with their versions; `newer` versions of the spec are newer than `source`,
    or were amended later.
    """
    unchecked = tuple(f"{spec.versions[v].operator} cannot be checked: {source} is older" for v in newer)
    there = tuple(operators.get(spec.name, ()))
    if not there:
        hint = did_you_mean(spec.name, operators)
        error = spec.error(("operator",), f"{source} has no operator {spec.name!r}{hint}")
        return Findings((error,) * (len(newer) < len(spec.versions)), unchecked=unchecked), []
    wrong = [
        spec.error(("versions",), f"version {version} is in {source}, and missing here", key=True)
        for version in there
        if version not in spec.versions
    ]
    for version in spec.versions:
        if version not in there and version not in newer:
            words = f"{source} has no version {version}, but {', '.join(map(str, there))}"
            wrong.append(spec.error(("versions", version), words, key=True))
    return Findings(tuple(wrong), unchecked=unchecked), [v for v in there if v in spec.versions and v not in newer]


def attribute_text(attribute: AttributeSignature | None) -> str:
    """Return an attribute in the syntax of specs."""
    if attribute is None:
        return "none"
    if attribute.default is not None:
        return f"{attribute.kind} = {value_text(attribute.default)}"
    return attribute.kind if attribute.required else f"optional {attribute.kind}"


def value_text(value: object) -> str:
    """Return a default in the syntax of specs."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def port_text(port: Port | None) -> str:
    """Return an input or output in the syntax of specs, with its name."""
    return "none" if port is None else f"{port.name}: {port_type_text(port)}"


def port_type_text(port: Port) -> str:
    """Return the type of an input or output in the syntax of specs."""
    if port.is_variadic:
        suffix = {0: "*", 1: "+"}.get(port.minimum, f" (at least {port.minimum})")
        return f"{'each ' if port.option == 'each' else ''}{port.type}{suffix}"
    return f"{'optional ' if port.option == 'optional' else ''}{port.type}"


@dataclass(frozen=True, slots=True)
class Exercise:
    """The parts of an operator version to cover, or the parts that its cases exercise.

    `types`: pairs of a type letter and a type; `attributes`: names, exercised if a case sets another value than the
    default; `clauses`: ids without the operator.
    """

    types: frozenset[tuple[str, str]] = frozenset()
    attributes: frozenset[str] = frozenset()
    clauses: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Coverage:
    """The number of things, out of `total`, that have a case."""

    covered: int = 0
    total: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.covered + other.covered, self.total + other.total)


@dataclass(frozen=True, slots=True)
class Coverages:
    """Four counts: operator versions; (version, letter, type); (version, attribute); (version, clause)."""

    operator_versions: Coverage = Coverage()
    type_triples: Coverage = Coverage()
    attributes: Coverage = Coverage()
    clauses: Coverage = Coverage()

    def __add__(self, other: Coverages) -> Coverages:
        return Coverages(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def coverages(extents: Mapping[str, Exercise], specs: Iterable[Spec], touched: Mapping[str, Exercise]) -> Coverages:
    """Count the parts of `extents`, and the clauses of `specs`, that cases exercise."""
    versions, types, attributes, clauses = Coverage(), Coverage(), Coverage(), Coverage()
    for operator, extent in extents.items():
        did = touched.get(operator, Exercise())
        versions += Coverage(int(operator in touched), 1)
        types += Coverage(len(extent.types & did.types), len(extent.types))
        attributes += Coverage(len(extent.attributes & did.attributes), len(extent.attributes))
    for spec in specs:
        for version_spec in spec.versions.values():
            ids = _judged_clauses(version_spec)
            clauses += Coverage(len(ids & touched.get(str(version_spec.operator), Exercise()).clauses), len(ids))
    return Coverages(versions, types, attributes, clauses)


def gaps(spec: Spec, touched: Mapping[str, Exercise]) -> Iterator[str]:
    """Yield the parts of a spec that no case exercises."""
    for version_spec in spec.versions.values():
        name = str(version_spec.operator)
        did = touched.get(name, Exercise())
        for letter, allowed in version_spec.signature.types.items():
            yield from (f"{name}: no case with {letter} = {t}" for t in allowed if (letter, t) not in did.types)
        for attribute in version_spec.signature.attributes:
            if attribute.name not in did.attributes:
                yield f"{name}: no case sets {attribute.name} to another value than its default"
        for id_ in sorted(_judged_clauses(version_spec) - did.clauses):
            yield f"{name}: no case tests clause {id_}"


def _judged_clauses(version_spec: VersionSpec) -> set[str]:
    return {id_ for id_, clause in version_spec.clauses.items() if clause.status != "withdrawn"}


if TYPE_CHECKING:
    from onnx.defs import OpSchema

DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
"""The domains of the standard's operators; preview domains are drafts."""

_RENAMED: Mapping[str, str] = {"float": "float32", "double": "float64"}
_TENSOR = re.compile(r"(?<!\w)tensor\((\w+)\)")


@functools.cache
def onnx_signatures(domain: str = "") -> Mapping[str, Mapping[int, Signature]]:
    """Return the signatures of all versions of all operators of a domain, by name and ascending version."""
    import onnx.defs  # noqa: PLC0415 - costs 190 ms

    by_name: dict[str, dict[int, Signature]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == domain:
            by_name.setdefault(schema.name, {})[schema.since_version] = _signature(schema)
    return {name: dict(sorted(by_name[name].items())) for name in sorted(by_name)}


def onnx_version() -> str:
    """Return the version of the installed onnx package."""
    import onnx  # noqa: PLC0415

    return str(onnx.__version__)


@functools.cache
def newest_opset(domain: str = "") -> int:
    """Return the newest version of a domain's operator set in the installed onnx package."""
    import onnx.defs  # noqa: PLC0415

    if not domain:
        return int(onnx.defs.onnx_opset_version())
    return max((version for versions in onnx_signatures(domain).values() for version in versions), default=0)


def as_float32(value: float) -> float:
    """Return the shortest decimal number that equals `value` in float32, which ONNX stores."""
    import numpy as np  # noqa: PLC0415

    with np.errstate(over="ignore"):
        return float(str(np.float32(value)))


def rounded_default(value: object) -> object:
    """Return a default for comparison: floats as the float32 that ONNX stores."""
    if isinstance(value, tuple):
        return tuple(map(rounded_default, value))
    return as_float32(value) if isinstance(value, float) else value


def _signature(schema: OpSchema) -> Signature:
    attributes = [_attribute(name, attribute) for name, attribute in sorted(schema.attributes.items())]
    return Signature(
        tuple(sorted(attributes, key=lambda a: (not a.required, a.name))),
        tuple(map(_port, schema.inputs)),
        tuple(map(_port, schema.outputs)),
        {t.type_param_str: tuple(map(_type, t.allowed_type_strs)) for t in schema.type_constraints},
        deprecated=schema.deprecated,
    )


def _attribute(name: str, attribute: OpSchema.Attribute) -> AttributeSignature:
    kind = str(attribute.type).rpartition(".")[2].lower()
    return AttributeSignature(name, kind, attribute.required, _default(attribute))


def _default(attribute: OpSchema.Attribute) -> AttributeValue | None:
    import onnx.helper  # noqa: PLC0415

    if not attribute.default_value.name:
        return None
    value = onnx.helper.get_attribute_value(attribute.default_value)
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return as_float32(value) if isinstance(value, float) else value


def _port(port: OpSchema.FormalParameter) -> Port:
    option = str(port.option).rpartition(".")[2]
    if option == "Variadic":
        return Port(port.name, _type(port.type_str), "variadic" if port.is_homogeneous else "each", port.min_arity)
    if option == "Optional":
        return Port(port.name, _type(port.type_str), "optional", 0)
    return Port(port.name, _type(port.type_str))


def _type(text: str) -> str:
    """Return ONNX's `seq(tensor(float))` as `seq(float32)`; a type letter unchanged."""
    text_ = _TENSOR.sub(
        lambda m: _RENAMED.get(m[1], m[1]), text.replace("sparse_tensor(", "sparse(").replace(", ", ",")
    )
    return re.sub(r"\b(float|double)\b", lambda m: _RENAMED[m[1]], text_)


_Schemas: TypeAlias = Mapping[str, Mapping[int, Signature]]


def onnx_authority() -> Authority:
    """Return the schemas that ONNX specs are compared with."""
    schemas = {domain: onnx_signatures(domain) for domain in DOMAINS}
    return Authority(
        "onnx",
        "the schemas of onnx",
        onnx_version(),
        {domain or "ai.onnx": _extents(schemas[domain]) for domain in DOMAINS},
        lambda spec: _findings(spec, schemas),
        lambda spec: spec.domain or "ai.onnx",
    )


def _extents(schemas: _Schemas) -> dict[str, Exercise]:
    return {
        f"onnx/{name}-{version}": Exercise(
            frozenset((letter, t) for letter, allowed in schema.types.items() for t in allowed),
            frozenset(a.name for a in schema.attributes),
        )
        for name, by_version in schemas.items()
        for version, schema in by_version.items()
    }


def _findings(spec: Spec, schemas: Mapping[str, _Schemas]) -> Findings:
    """Return the differences of a spec, and the versions that are newer than the schemas."""
    if spec.domain not in schemas:
        known = ", ".join(domain or "ai.onnx (leave it out)" for domain in schemas)
        return Findings((spec.error(("domain",), f"no domain {spec.domain!r}; there is {known}"),))
    newest = newest_opset(spec.domain)
    newer = [
        v
        for v, version in spec.versions.items()
        if isinstance(v, int) and (v > newest or _release(version.amended) > _release(onnx_version()))
    ]
    findings, both = versions_held(spec, f"onnx {onnx_version()}", schemas[spec.domain], newer)
    differences = Differences(spec)
    for version in both:
        here, schema = spec.versions[version].signature, schemas[spec.domain][spec.name][int(version)]
        if here.deprecated != schema.deprecated:
            words = "it is deprecated in the schema" if schema.deprecated else "it is not deprecated in the schema"
            differences.add_to_version(version, words)
        for words, *part in _different_parts(here, schema):
            differences.add(version, words, *part)
    return findings + Findings(tuple(differences.errors()))


def _different_parts(here: Signature, schema: Signature) -> Iterator[tuple[str, str, str]]:
    """Yield the differences of a spec's signature from the schema's, in words, each with its section and a name."""
    for name in dict.fromkeys(attribute.name for attribute in (*here.attributes, *schema.attributes)):
        own, theirs = here.attribute(name), schema.attribute(name)
        if _rounded(own) != _rounded(theirs):
            words = f"attribute {name}: here {attribute_text(own)}, the schema has {attribute_text(theirs)}"
            yield words, "attributes", name
    for section, ports, others in (("inputs", here.inputs, schema.inputs), ("outputs", here.outputs, schema.outputs)):
        for index, (port, other) in enumerate(itertools.zip_longest(ports, others), 1):
            if port != other:
                words = f"{section[:-1]} {index}: here {port_text(port)}, the schema has {port_text(other)}"
                yield words, section, port.name if port else ""
                break  # the others are only shifted
    for letter in dict.fromkeys((*here.types, *schema.types)):
        if letter not in here.types or letter not in schema.types:
            words = "is not in the schema" if letter in here.types else "is missing here"
            yield f"type letter {letter} {words}", "types", letter
        elif words := different_types(here.types[letter], schema.types[letter], "the schema"):
            yield f"types of {letter}: {words}", "types", letter


def different_types(here: Iterable[str], theirs: Iterable[str], source: str) -> str:
    """Return the types that only one side has, in words; empty if there are none."""
    parts = [("only here", {*here}.difference(theirs)), (f"only in {source}", {*theirs}.difference(here))]
    return "; ".join(f"{what}: {', '.join(sorted(types))}" for what, types in parts if types)


def _release(text: str | None) -> tuple[int, ...]:
    """Return the first numbers of a release: (1, 20) for `1.20.0rc1`, () for None."""
    return tuple(int(number) for number in (text or "").split(".")[:2] if number)


def _rounded(attribute: AttributeSignature | None) -> object:
    """Return an attribute's key for comparison."""
    return None if attribute is None else (attribute.kind, attribute.required, rounded_default(attribute.default))
