"""Compares specs with the standards' own schemas and libraries: differences, and how much of a standard is covered.

If a page is the authority, its library is only a witness.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from ...cases.errors import OpconformError, did_you_mean
from ...cases.program import OperatorVersion
from ..loader import Library
from ..model import AttributeSignature, Port, Signature, Spec, Version, VersionSpec
from ..reading import SpecError
from .findings import (
    Authority,
    Coverage,
    Coverages,
    Differences,
    Exercise,
    Findings,
    attribute_text,
    coverages,
    different_types,
    gaps,
    onnx_authority,
    port_text,
    rounded_default,
    value_text,
    versions_held,
)


@dataclass(frozen=True, slots=True)
class Question:
    """An operator version to ask a library about; `signature` is from its spec, None if there is no spec.

    `words` has the values of text attributes that the spec's cases use, on which inputs and types can depend.
    """

    name: str
    version: Version
    signature: Signature | None = None
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LibraryAttribute:
    """An attribute: the kinds of value that the library accepts, its default, and whether it is required.

    None means that the library does not report it.
    """

    kinds: frozenset[str]
    default: bool | int | float | str | tuple[bool | int | float | str, ...] | None = None
    required: bool | None = None


@dataclass(frozen=True, slots=True)
class LibrarySchema:
    """A library's description of one operator version, found by creating operations.

    `attributes` is None if they could not be found. `inputs` and `outputs` are the numbers of tensors that it accepts
    and returns, up to `counted`; empty if no operation could be created. `types` has the accepted types of each letter
    of the question's signature; without a signature, of letters that the reading invents. A missing letter could not be
    found.
    """

    attributes: Mapping[str, LibraryAttribute] | None = None
    inputs: frozenset[int] = frozenset()
    outputs: frozenset[int] = frozenset()
    counted: int = 0
    types: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listing:
    """The operators of a library, by name, with their versions.

    `group` names the set of operators. `later` lists operators that only newer libraries have; versions above `newest`
    are also from newer libraries.
    """

    library: str
    version: str
    group: str
    versions: Mapping[str, tuple[Version, ...]]
    later: frozenset[str] = frozenset()
    newest: int | None = None

    @property
    def name(self) -> str:
        """The library and its version, `openvino 2026.4.1`."""
        return f"{self.library} {self.version}"

    def is_newer(self, operator: str, version: Version) -> bool:
        """Whether an operator version is from a newer library."""
        return operator in self.later or (
            self.newest is not None and isinstance(version, int) and version > self.newest
        )


@dataclass(frozen=True, slots=True)
class LibraryReading:
    """A library's listing and its answers; a text in place of an answer is the reason why it could not be asked.

    `exact`: the library accepts only what it specifies. Otherwise its acceptance proves nothing. `untold` describes
    what it cannot report.
    """

    standard: str
    listing: Listing
    schemas: Mapping[tuple[str, Version], LibrarySchema | str]
    exact: bool
    untold: tuple[str, ...] = ()


def library_authority(reading: LibraryReading) -> Authority:
    """Return a library as an authority to compare specs with, as far as it reports."""
    listing = reading.listing
    schemas = {
        (name, version): reading.schemas.get((name, version))
        for name in listing.versions
        for version in listing.versions[name]
    }
    names = {key: str(OperatorVersion(reading.standard, *key)) for key in schemas}
    return Authority(
        reading.standard,
        listing.library,
        listing.version,
        {listing.group: {names[key]: _extent(schema) for key, schema in schemas.items()}},
        lambda spec: _findings(spec, reading),
        lambda _: listing.group,
        reading.untold,
        tuple(
            names[key] for key, schema in schemas.items() if not isinstance(schema, LibrarySchema) or not schema.inputs
        ),
    )


def _extent(schema: LibrarySchema | str | None) -> Exercise:
    if not isinstance(schema, LibrarySchema):
        return Exercise()
    pairs = ((letter, t) for letter, taken in schema.types.items() for t in taken)
    return Exercise(frozenset(pairs), frozenset(schema.attributes or ()))


def _findings(spec: Spec, reading: LibraryReading) -> Findings:
    listing = reading.listing
    newer = [v for v in spec.versions if listing.is_newer(spec.name, v)]
    findings, both = versions_held(spec, listing.name, listing.versions, newer)
    compared = _LibraryComparison(spec, reading)
    for version in both:
        compared.compare(spec.versions[version], version)
    return findings + compared.findings()


class _LibraryComparison:
    """Compares the signatures of a spec with a library's."""

    def __init__(self, spec: Spec, reading: LibraryReading) -> None:
        self.reading, self.name = reading, reading.listing.name
        self.differences = Differences(spec)
        self.unchecked: list[str] = []
        self.beyond: list[str] = []
        self.failures: list[str] = []

    def findings(self) -> Findings:
        return Findings(
            tuple(self.differences.errors()),
            tuple(self.differences.disputed()),
            tuple(self.unchecked),
            tuple(self.beyond),
            tuple(self.failures),
        )

    def compare(self, spec: VersionSpec, version: Version) -> None:
        schema = self.reading.schemas[spec.operator.name, version]
        if isinstance(schema, str):
            self.failures.append(f"{spec.operator}: {self.name} could not be asked: {schema}")
            return
        if schema.attributes is None:
            self.unchecked.append(f"{spec.operator}: the attributes cannot be checked")
        else:
            self.attributes(version, spec.signature, schema.attributes)
        if not schema.inputs:
            words = f"inputs, outputs and types cannot be checked: {self.name} refuses every operation that was tried"
            self.unchecked.append(f"{spec.operator}: {words}")
            return
        here = spec.signature
        self.ports(version, _Counts("input", here.inputs, here.input_counts, schema.inputs, schema.counted), "takes")
        if here.outputs and here.outputs[-1].is_variadic and not self.reading.exact:
            self.unchecked.append(f"{spec.operator}: the number of outputs cannot be checked, as the inputs decide it")
        else:
            self.ports(
                version, _Counts("output", here.outputs, here.output_counts, schema.outputs, schema.counted), "gives"
            )
        self.types(spec, version, schema)

    def attributes(self, version: Version, here: Signature, theirs: Mapping[str, LibraryAttribute]) -> None:
        for name in dict.fromkeys([*(a.name for a in here.attributes), *theirs]):
            a, b = here.attribute(name), theirs.get(name)
            if a is None or b is None or not _agrees(a, b):
                words = f"attribute {name}: here {attribute_text(a)}, {self.name} has {_attribute_text(b)}"
                self.differences.add_unless_disputed(version, words, "attributes", name)

    def ports(self, version: Version, counts: _Counts, verb: str) -> None:
        index = counts.difference(exact=self.reading.exact)
        if index is not None:
            port = counts.ports[index] if index < len(counts.ports) else None
            words = f"{counts.what} {index + 1}: here {port_text(port)}, {self.name} {verb} {counts.span()}"
            where = (port.name,) if port else ()
            self.differences.add_unless_disputed(version, words, f"{counts.what}s", *where)

    def types(self, spec: VersionSpec, version: Version, schema: LibrarySchema) -> None:
        for letter, allowed in spec.signature.types.items():
            taken = schema.types.get(letter)
            if taken is None:
                self.unchecked.append(f"{spec.operator}: the types of {letter} cannot be checked")
                continue
            refused, beyond = sorted({*allowed} - taken), sorted(taken.difference(allowed))
            words = f"{self.name} refuses {', '.join(refused)}" if refused else ""
            if self.reading.exact:
                words = different_types(allowed, taken, self.name)
            elif beyond:
                self.beyond.append(f"{spec.operator}: {self.name} takes {letter} = {', '.join(beyond)} too")
            if words:
                self.differences.add_unless_disputed(version, f"types of {letter}: {words}", "types", letter)


@dataclass(frozen=True, slots=True)
class _Counts:
    """The numbers of inputs or outputs that a signature allows, and those up to `counted` that a library accepts."""

    what: str
    ports: tuple[Port, ...]
    allowed: tuple[int, int | None]
    taken: frozenset[int]
    counted: int

    def difference(self, *, exact: bool) -> int | None:
        """Return the index of the first port for which the library differs; None if there is no difference."""
        least, most = self.allowed
        for n in range(self.counted + 1):
            is_allowed = least <= n and (most is None or n <= most)
            if n in self.taken and n < least:
                return min(n, len(self.ports) - 1)
            by_attribute = most is None and n > least and not exact  # the number of a variadic port may follow from one
            together = not exact and any(least <= k < n for k in self.taken) and self._takes_more(n)
            if is_allowed and n not in self.taken and not by_attribute and not together:
                return n if n == least else min(n, len(self.ports)) - 1
            if n in self.taken and not is_allowed and exact:
                return len(self.ports)
        return None

    def _takes_more(self, n: int) -> bool:
        """Whether the library takes a larger number, too, that the signature allows: ports may come together."""
        most = self.allowed[1]
        return any(n < k and (most is None or k <= most) for k in self.taken)

    def span(self) -> str:
        """Return the numbers that a library accepts, in words."""
        first, last = min(self.taken), max(self.taken)
        if last == self.counted and first < last:
            text = f"{first} or more"
        elif len(self.taken) > 2 and len(self.taken) == last - first + 1:
            text = f"{first} to {last}"
        else:
            text = " or ".join(map(str, sorted(self.taken)))
        return f"{text} {self.what}{'' if text == '1' else 's'}"


def _agrees(here: AttributeSignature, theirs: LibraryAttribute) -> bool:
    """Whether a spec's attribute agrees with the library, as far as it reports."""
    if here.kind not in theirs.kinds or (theirs.required is not None and here.required != theirs.required):
        return False
    if here.default is None or theirs.default is None:
        return True
    return rounded_default(here.default) == rounded_default(theirs.default)


def _attribute_text(attribute: LibraryAttribute | None) -> str:
    if attribute is None:
        return "none"
    kinds = " or ".join(sorted(attribute.kinds))
    if attribute.default is not None:
        return f"{kinds} = {value_text(attribute.default)}"
    return {True: "{}, required", False: "optional {}", None: "{}"}[attribute.required].format(kinds)


__all__ = ["AUDITED", "Audit", "Coverage", "Coverages", "Exercise", "audit", "check_standard"]

AUDITED = ("onnx", "openvino", "onednn")
"""The standards that can be audited: ONNX against its schemas, the others against their library."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The result: findings, coverage by domain, and gaps.

    `gaps` lists parts of specs that no case exercises, `without_spec` operator versions without a spec, `breaches`
    where a spec and its reference break their contract. The specs were compared with `authority`.
    """

    authority: Authority
    findings: Findings
    domains: Mapping[str, Coverages]
    gaps: tuple[str, ...]
    without_spec: tuple[str, ...] = ()
    breaches: tuple[SpecError, ...] = ()

    @property
    def standard(self) -> str:
        """The standard."""
        return self.authority.standard

    @property
    def coverages(self) -> Coverages:
        """The coverage of all domains together."""
        return sum(self.domains.values(), Coverages())

    def to_json(self) -> str:
        """Return the audit as JSON: the four counts, in total and by domain, the differences, and versions."""
        fields: dict[str, Any] = {"standard": self.standard, **asdict(self.coverages)}
        fields["domains"] = {domain: asdict(counted) for domain, counted in self.domains.items()}
        fields["differences"] = [_difference_json(error) for error in self.findings.differences]
        fields["breaches"] = [_difference_json(error) for error in self.breaches]
        fields["unchecked"], fields["gaps"] = list(self.findings.unchecked), list(self.gaps)
        fields["without_spec"] = list(self.without_spec)
        fields[self.standard] = self.authority.version
        if self.standard != "onnx":
            fields["disputed"] = [_difference_json(error) for error in self.findings.disputed]
            fields["beyond"], fields["failures"] = list(self.findings.beyond), list(self.findings.failures)
            fields["untold"], fields["uncounted"] = list(self.authority.untold), list(self.authority.uncounted)
        return json.dumps(fields, indent=2)


def check_standard(standard: str) -> None:
    """Raise OpconformError for a standard that cannot be audited."""
    if standard not in AUDITED:
        hint = did_you_mean(standard, AUDITED) or f"; known: {', '.join(AUDITED)}"
        raise OpconformError(f"{standard!r} cannot be audited: it has no schema{hint}")


def audit(
    library: Library,
    standard: str = "onnx",
    touched: Mapping[str, Exercise] = MappingProxyType({}),
    reading: LibraryReading | None = None,
) -> Audit:
    """Compare all specs of a standard with its schemas or library, and count what the cases cover.

    `touched` has what the generated cases exercise, by operator version (`onnx/ReduceMean-13`). `reading` has the
    library's answers, for all standards but ONNX. Totals come from the schemas or the library and include operators
    without a spec; clauses come from the specs. Raises OpconformError for a standard that cannot be audited, SpecErrors
    for a broken spec.
    """
    check_standard(standard)
    specs = [library.spec(name) for name in library.operators() if name.startswith(f"{standard}/")]
    authority = onnx_authority() if reading is None else library_authority(reading)
    if authority.standard != standard:
        raise OpconformError(f"{standard} is audited against its library: a reading of the library is needed")
    findings = sum((authority.compare(spec) for spec in specs), Findings())
    counted = {
        group: coverages(extents, [s for s in specs if authority.group_of(s) == group], touched)
        for group, extents in authority.extents.items()
    }
    known = {str(version.operator) for spec in specs for version in spec.versions.values()}
    lacking = tuple(name for extents in authority.extents.values() for name in extents if name not in known)
    return Audit(authority, findings, counted, tuple(gap for spec in specs for gap in gaps(spec, touched)), lacking)


def _difference_json(error: SpecError) -> dict[str, Any]:
    position = error.position
    return {"file": error.file, "line": position.line, "column": position.column, "message": error.message}
