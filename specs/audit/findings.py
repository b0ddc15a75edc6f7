"""What specs are held against, what is found out of one spec, and how much of a standard has cases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from ...cases.errors import did_you_mean
from ...cases.program import AttributeValue
from ..model import AttributeSignature, Clause, Port, Spec, Version, VersionSpec
from ..reading import Keys, SpecError


@dataclass(frozen=True, slots=True)
class Findings:
    """What holding a spec against its standard brought.

    `disputed`: differences that a disputed clause is about. `beyond`: what a library takes beyond the spec, which
    proves nothing. `failures`: operator versions that could not be asked about.
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
    """What the specs of a standard are held against, `source` and `version` by name.

    `extents` says what there is to cover, by group and operator version, and `group_of` to which group a spec belongs.
    `untold`: what cannot be found out; `uncounted`: operator versions whose types and attributes cannot be counted.
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
    """Gathers differences by place and words, so that what versions inherit is told once."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._agreed: dict[tuple[Keys, str], list[Version]] = {}
        self._disputed: dict[tuple[Keys, str], list[Version]] = {}

    def add(self, version: Version, words: str, *place: str) -> None:
        """Note a difference in a part of the signature: a section and a name, or a section alone."""
        self._agreed.setdefault((self.spec.written_at(version, *place), words), []).append(version)

    def add_unless_disputed(self, version: Version, words: str, *place: str) -> None:
        """Note a difference between the standard's page and its library, which a disputed clause may be about."""
        clause = disputing(self.spec.versions[version].clauses, ".".join(place))
        if clause is None:
            self.add(version, words, *place)
        else:
            words = f"{words}; disputed by clause {clause.id}, {clause.upstream}"
            self._disputed.setdefault((self.spec.written_at(version, *place), words), []).append(version)

    def add_to_version(self, version: Version, words: str) -> None:
        """Note a difference in what versions do not inherit."""
        self._agreed[("versions", version), words] = [version]

    def errors(self) -> list[SpecError]:
        """Return the differences."""
        return list(self._told(self._agreed))

    def disputed(self) -> list[SpecError]:
        """Return the differences that a disputed clause is about."""
        return list(self._told(self._disputed))

    def _told(self, found: Mapping[tuple[Keys, str], list[Version]]) -> Iterable[SpecError]:
        for (path, words), versions in found.items():
            yield self.spec.error(path, f"{words} (version {', '.join(map(str, versions))})", key=True)


def versions_held(
    spec: Spec, source: str, operators: Mapping[str, Iterable[Version]], newer: Collection[Version]
) -> tuple[Findings, list[Version]]:
    """Return what is said of versions that one side alone has, and the versions that both have.

    `operators` are those of `source` with their versions; `newer` versions of the spec are beyond it.
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
    return Findings(tuple(wrong), unchecked=unchecked), [v for v in there if v in spec.versions]


def disputing(clauses: Mapping[str, Clause], part: str) -> Clause | None:
    """Return the clause that disputes a part of the signature, `inputs.axes`."""
    return next((clause for clause in clauses.values() if part in clause.disputes), None)


def attribute_text(attribute: AttributeSignature | None) -> str:
    """Return an attribute as a spec writes it."""
    if attribute is None:
        return "none"
    if attribute.default is not None:
        return f"{attribute.kind} = {value_text(attribute.default)}"
    return attribute.kind if attribute.required else f"optional {attribute.kind}"


def value_text(value: AttributeValue | bool) -> str:
    """Return a default as a spec writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def port_text(port: Port | None) -> str:
    """Return an input or output as a spec writes it, its name before it."""
    return "none" if port is None else f"{port.name}: {port_type_text(port)}"


def port_type_text(port: Port) -> str:
    """Return what a spec writes for an input or output."""
    if port.is_variadic:
        suffix = {0: "*", 1: "+"}.get(port.minimum, f" (at least {port.minimum})")
        return f"{'each ' if port.option == 'each' else ''}{port.type}{suffix}"
    return f"{'optional ' if port.option == 'optional' else ''}{port.type}"


@dataclass(frozen=True, slots=True)
class Exercise:
    """What there is to cover of an operator version, or what its cases touch.

    `types`: pairs of a type letter and a type; `attributes`: names, touched where they are given a value other than the
    default; `clauses`: ids without the operator.
    """

    types: frozenset[tuple[str, str]] = frozenset()
    attributes: frozenset[str] = frozenset()
    clauses: frozenset[str] = frozenset()


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


def coverages(extents: Mapping[str, Exercise], specs: Iterable[Spec], touched: Mapping[str, Exercise]) -> Coverages:
    """Count what cases touch of the operator versions of `extents`, and of the clauses of `specs`."""
    versions, types, attributes, clauses = Coverage(), Coverage(), Coverage(), Coverage()
    for operator, extent in extents.items():
        did = touched.get(operator, Exercise())
        versions += Coverage(int(operator in touched), 1)
        types += Coverage(len(extent.types & did.types), len(extent.types))
        attributes += Coverage(len(extent.attributes & did.attributes), len(extent.attributes))
    for spec in specs:
        for one in spec.versions.values():
            ids = _judged_clauses(one)
            clauses += Coverage(len(ids & touched.get(str(one.operator), Exercise()).clauses), len(ids))
    return Coverages(versions, types, attributes, clauses)


def gaps(spec: Spec, touched: Mapping[str, Exercise]) -> Iterator[str]:
    """Yield what a spec describes and no case exercises."""
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


def _judged_clauses(one: VersionSpec) -> set[str]:
    return {id_ for id_, clause in one.clauses.items() if clause.status != "withdrawn"}
