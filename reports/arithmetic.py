"""A backend's arithmetic: how accurate it is, what it behaves like, and whether this supports a declaration."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..cases.elements import Declaration, DeclaredType, element_type
from ..cases.ids import operator_version_of, split_version
from ..cases.results import Result
from ..runners.judging.accuracy import Accuracy, Grade, accuracy_from
from .tally import SilenceEvidence
from .text import NOTHING, percent, printable

Probe: TypeAlias = Literal["accumulator", "inputs", "rounding", "partial-sums"]
DIFFERS = "differently, by case"
IN_FULL = "in full"
SUBJECTS = {
    "probe-accumulator": "adds up like {}",
    "probe-inputs": "reads inputs like {}",
    "probe-rounding": "rounds {}",
    "probe-partial-sums": "partial sums {}",
}
"""The sentence for a probe's finding, with a placeholder."""

_FORMATS = {8: "bfloat16", 11: "tf32", 24: "float32", 53: "float64"}
_BITS = re.compile(r"(beside|upon)-2\^(\d+)")
_WIDTHS: Mapping[str, Probe] = {"beside": "accumulator", "upon": "inputs"}
_ELEMENTS = 32  # fewer may round like one arithmetic by chance
_FLUSHED = 3.0  # ulp: the least that a lost partial sum costs, in any type
_GRADED = frozenset(Grade) - {Grade.DECLARED, Grade.OUTSIDE}


class ProbeSite(NamedTuple):
    """The operator version and type that a finding is about."""

    backend: str
    operator_version: str
    type: str


@dataclass(frozen=True)
class Trait:
    """One property of a backend in one operator version and type, and the cases that show it.

    `subject` is a probe, or a silence; for a silence `behaviour` has the options taken.
    """

    site: ProbeSite
    subject: str
    behaviour: str
    cases: tuple[str, ...]


@dataclass(frozen=True)
class Widths:
    """A number of bits: more than each of `kept`, at most each of `lost`; both map bits to the first case."""

    kept: Mapping[int, str]
    lost: Mapping[int, str]

    @property
    def above(self) -> int:
        """Return the number of bits that it exceeds."""
        return max(self.kept, default=0)

    @property
    def most(self) -> int | None:
        """Return the largest possible number of bits; None if no case shows a limit."""
        return min(self.lost, default=None)

    @property
    def consistent(self) -> bool:
        """Return whether one number of bits agrees with every case."""
        return self.most is None or self.above < self.most

    def fits(self, bits: int) -> bool:
        """Return whether this number of bits would give the observed results."""
        return self.above < bits and (self.most is None or bits <= self.most)

    @property
    def cases(self) -> tuple[str, ...]:
        """Return the cases that determine the limits, the one that needs fewest bits first."""
        limits = [self.kept.get(self.above), None if self.most is None else self.lost[self.most]]
        return tuple(case for case in limits if case is not None)


@dataclass
class SiteEvidence:
    """The evidence of the probes in one place so far; it does not depend on the order in which results arrive."""

    shown: dict[tuple[Probe, int, bool], str] = field(default_factory=dict)
    silences: dict[str, SilenceEvidence] = field(default_factory=dict)

    def add(self, probe: Probe, bits: int, kept: bool, case: str) -> None:
        """Add what a case shows."""
        known = self.shown.get((probe, bits, kept), case)
        self.shown[probe, bits, kept] = min(known, case)

    def widths(self, probe: Probe) -> Widths:
        """Return the width of the accumulator, or of the inputs, according to the probes."""
        widths: dict[bool, dict[int, str]] = {True: {}, False: {}}
        for (of, bits, kept), case in self.shown.items():
            if of == probe:
                widths[kept][bits] = case
        return Widths(widths[True], widths[False])

    def either(self, probe: Probe) -> Mapping[bool, str]:
        """Return whether sums are rounded once, or subnormal partial sums are kept: each answer with a case."""
        return {kept: case for (of, _, kept), case in self.shown.items() if of == probe}

    def silence(self, silence: str) -> Mapping[str, str]:
        """Return the options of a silence that cases show, each with the first case.

        These are the options that some case shows alone, and the options of a case that excludes the most frequent one.
        """
        joined = self.silences.get(silence)
        if joined is None:
            return {}
        shown = {e.option: e.first for e in joined.established}
        broken = joined.broken
        return shown if broken is None or len(shown) > 1 else {**shown, "|".join(broken.options): broken.case}


class Fingerprints:
    """Combines the evidence of probes and silences as results arrive."""

    def __init__(self) -> None:
        self._seen: defaultdict[ProbeSite, SiteEvidence] = defaultdict(SiteEvidence)
        self._declared: dict[tuple[str, str], str] = {}

    def add(self, result: Result, accuracy: Accuracy | None) -> None:
        """Add a result and its accuracy."""
        if accuracy is None and not result.behaviour and result.level != "declared":
            return
        parts = result.case.split("/")
        type_ = parts[2].split(",")[0] if parts[2:] else ""
        probed = ProbeSite(result.backend, operator_version_of(result.case), type_)
        if result.level == "declared":
            key = probed.backend, probed.type
            self._declared[key] = min(self._declared.get(key, result.case), result.case)
        for silence, options in result.behaviour.items():
            if options and silence != "invalid":  # invalid inputs have their own figure: refusal
                self._seen[probed].silences.setdefault(silence, SilenceEvidence()).add(result.case, options)
        if accuracy is not None and parts[5:]:
            self._probe(probed, result, accuracy, parts[5])

    def _probe(self, probed: ProbeSite, result: Result, accuracy: Accuracy, fill: str) -> None:
        if match := _BITS.fullmatch(fill):
            lost_from = 2.0 ** (element_type(accuracy.type).float_format.precision - 2)  # a quarter of the value
            kept = accuracy.ulp is not None and accuracy.ulp < lost_from
            self._seen[probed].add(_WIDTHS[match[1]], int(match[2]), kept, result.case)
        elif fill == "underflow":
            kept = accuracy.ulp is not None and accuracy.ulp < _FLUSHED
            kept = kept and "none" in result.behaviour.get("flush", ("none",))
            self._seen[probed].add("partial-sums", 0, kept, result.case)
        elif fill == "inexact" and accuracy.graded >= _ELEMENTS and accuracy.grade in _GRADED:
            once = accuracy.grade is Grade.ROUNDED or "wide" in result.behaviour.get("accumulator", ())
            self._seen[probed].add("rounding", 0, once, result.case)

    def as_declared(self, backend: str, type_: str) -> str | None:
        """Return a case of a type that only declared arithmetic explains."""
        return self._declared.get((backend, type_))

    def sites(self, backend: str) -> list[tuple[ProbeSite, SiteEvidence]]:
        """Return the places of a backend with evidence, sorted."""
        sites = [site for site in self._seen.items() if site[0].backend == backend]
        return sorted(sites, key=lambda site: site[0])

    def traits(self, backend: str) -> Iterator[Trait]:
        """Yield what is known of a backend in each place."""
        for probed, seen in self.sites(backend):
            yield from _probed(probed, seen)
            for silence in sorted(seen.silences):
                shown = seen.silence(silence)
                if shown:
                    yield Trait(probed, silence, " or ".join(sorted(shown)), tuple(shown[o] for o in sorted(shown)))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON, by backend: for each subject the finding, its places, and cases that show it."""
        by_backend: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for backend in dict.fromkeys(probed.backend for probed in self._seen):
            by_backend[backend] = {}
            for alike in rolled_up(self.traits(backend)):
                by_backend[backend].setdefault(alike.subject, []).append(alike.to_dict())
        return by_backend


@dataclass(frozen=True)
class SharedTrait:
    """The places where a subject has the same finding, and the cases that show it in the first of them."""

    subject: str
    behaviour: str
    places: tuple[ProbeSite, ...]
    cases: tuple[str, ...]

    @property
    def words(self) -> str:
        """Return a probe's finding in words; empty for a silence, and for inputs that are read in full."""
        form = SUBJECTS.get(self.subject)
        if form is None or (self.subject, self.behaviour) == ("probe-inputs", IN_FULL):
            return ""
        return form.format(self.behaviour).replace(f"like {DIFFERS}", DIFFERS)

    @property
    def types(self) -> tuple[str, ...]:
        """Return the types, in order of first appearance."""
        return tuple(dict.fromkeys(probed.type for probed in self.places))

    @property
    def operator_versions(self) -> tuple[str, ...]:
        """Return the operator versions, in order of first appearance."""
        return tuple(dict.fromkeys(probed.operator_version for probed in self.places))

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON: the types by operator version."""
        where: dict[str, list[str]] = {}
        for probed in self.places:
            where.setdefault(probed.operator_version, []).append(probed.type)
        return {"behaves_like": self.behaviour, "where": where, "cases": list(self.cases)}


def rolled_up(traits: Iterator[Trait]) -> list[SharedTrait]:
    """Return one backend's traits in the order of subjects; those with the same finding are merged."""
    groups: dict[str, dict[str, list[Trait]]] = {}
    for trait in traits:
        groups.setdefault(trait.subject, {}).setdefault(trait.behaviour, []).append(trait)
    return [
        SharedTrait(subject, behaviour, tuple(trait.site for trait in alike), alike[0].cases)
        for subject, by_behaviour in groups.items()
        for behaviour, alike in by_behaviour.items()
    ]


def _probed(probed: ProbeSite, seen: SiteEvidence) -> Iterator[Trait]:
    of_bits: tuple[Probe, ...] = ("accumulator", "inputs")
    for probe in of_bits:
        widths = seen.widths(probe)
        if widths.kept or widths.lost:
            trait_words = IN_FULL if probe == "inputs" and not widths.lost else format_told(widths, probed.type)
            yield Trait(probed, f"probe-{probe}", trait_words, widths.cases)
    words: Mapping[Probe, tuple[str, str]] = {
        "rounding": ("once, at the end", "after each step"),
        "partial-sums": ("kept where subnormal", "flushed to zero where subnormal"),
    }
    for either, (so, not_so) in words.items():
        shown = seen.either(either)
        if shown:
            trait_words = DIFFERS if len(shown) > 1 else so if True in shown else not_so
            yield Trait(
                probed, f"probe-{either}", trait_words, tuple(shown[is_so] for is_so in sorted(shown, reverse=True))
            )


def format_told(widths: Widths, type_name: str) -> str:
    """Return the formats with so many bits: `float32`, `float64 or wider`, `wider than float64`."""
    if not widths.consistent:
        return DIFFERS
    names = {**_FORMATS, 11: "float16" if type_name == "float16" else _FORMATS[11]}
    fits = [name for bits, name in names.items() if widths.fits(bits)]
    if widths.most is None:
        return f"{fits[0]} or wider" if fits else f"wider than {_FORMATS[53]}"
    return " or ".join(fits) or f"{widths.above + 1} to {widths.most} bits"


Bearing: TypeAlias = Literal["supported", "contradicted", "not shown"]

_PRECISIONS = {"float16": 11, "bfloat16": 8, "tf32": 11, "float32": 24, "float64": 53}


@dataclass(frozen=True)
class DeclarationEvidence:
    """The evidence of a backend's answers on one declared field, with a case that supports or contradicts it."""

    backend: str
    type: str
    field: str
    declared: str
    bearing: Bearing
    case: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        fields = {"type": self.type, "field": self.field, "declared": self.declared}
        return {**fields, "evidence": self.bearing, "case": self.case}


def evidence_on(declaration: Declaration, seen: Fingerprints, backend: str) -> list[DeclarationEvidence]:
    """Return the evidence on every declared field; one contradiction in one operator version contradicts it."""
    evidence = []
    for name, declared in declaration.types.items():
        fields = _fields(name, declared, [evidence for site, evidence in seen.sites(backend) if site.type == name])
        if declared.compute and element_type(name).is_integer:  # no probe shows it
            case = seen.as_declared(backend, name)
            fields = iter([("compute", declared.compute, [("supported", case)] if case else [])])
        for field_name, value, views in fields:
            bearing, case = _joined(views)
            evidence.append(DeclarationEvidence(backend, name, field_name, value, bearing, case))
    return evidence


_View: TypeAlias = tuple[Bearing, str | None]
_WEIGHT: Sequence[Bearing] = ("contradicted", "supported", "not shown")


def _joined(views: Sequence[_View]) -> _View:
    """Return the weightiest view, with the first case by id."""
    return min(views, key=lambda view: (_WEIGHT.index(view[0]), view[1] or ""), default=("not shown", None))


def _fields(name: str, declared: DeclaredType, sites: Sequence[SiteEvidence]) -> Iterator[tuple[str, str, list[_View]]]:
    if declared.compute:
        yield "compute", declared.compute, [_compute(name, declared.compute, seen) for seen in sites]
    if declared.accumulator:
        bits = _PRECISIONS[declared.accumulator]
        yield "accumulator", declared.accumulator, [_wide(seen.widths("accumulator"), bits) for seen in sites]
    if "input" in declared.flush:
        yield "flush", "input", [_flush(seen, ("input-and-output",), ("none", "output")) for seen in sites]
    if "output" in declared.flush:
        views = [_flush(seen, ("output", "input-and-output"), ("none",)) for seen in sites]
        yield "flush", "output", [*views, *map(_flushed_sums, sites)]


def _wide(widths: Widths, bits: int) -> _View:
    """Compare a declared number of bits with the numbers that probes kept and lost."""
    against = [case for kept, case in widths.kept.items() if kept >= bits]
    against += [case for lost, case in widths.lost.items() if lost < bits]
    if against:
        return "contradicted", min(against)
    if widths.cases and {p for p in _PRECISIONS.values() if widths.fits(p)} == {bits}:
        return "supported", widths.cases[-1]
    return "not shown", None


def _compute(name: str, declared: str, seen: SiteEvidence) -> _View:
    """Compare a declared format with how inputs are read, and the format of the type with how results are rounded."""
    widths, once = seen.widths("inputs"), seen.either("rounding")
    bits, own = _PRECISIONS[declared], element_type(name).float_format.precision
    if bits < own:
        return _wide(widths, bits)
    if widths.lost:
        return "contradicted", min(widths.lost.values())
    wider = bits > own
    if (not wider) in once:
        return "contradicted", once[not wider]
    return ("supported", once[wider]) if wider in once else ("not shown", None)


def _flush(seen: SiteEvidence, so: Sequence[str], not_so: Sequence[str]) -> _View:
    shown = seen.silence("flush")
    against, for_it = ([shown[option] for option in options if option in shown] for options in (not_so, so))
    if against:
        return "contradicted", min(against)
    return ("supported", min(for_it)) if for_it else ("not shown", None)


def _flushed_sums(seen: SiteEvidence) -> _View:
    lost = seen.either("partial-sums").get(False)  # kept sums say little: a wider accumulator has no subnormal ones
    return ("supported", lost) if lost else ("not shown", None)


ATTACHMENT = "accuracy"
"""The name of the attachment with a result's accuracy."""


class Peak(NamedTuple):
    """The largest number of all cases, and its case: the first by id if several reach it."""

    number: float
    case: str


@dataclass
class Graded:
    """The accuracy of one operator version in one output type; it does not depend on the order of results.

    `cases` counts cases by grade, `first` has the first case of each grade by id. `ulp` is the largest error in units
    in the last place, `share` the largest as a share of the widest admissible bound; None if no case has one.
    """

    backend: str
    operator_version: str
    type: str
    cases: Counter[Grade] = field(default_factory=Counter)
    first: dict[Grade, str] = field(default_factory=dict)
    ulp: Peak | None = None
    share: Peak | None = None

    @property
    def grade(self) -> Grade:
        """Return the worst grade."""
        return max(self.cases, key=lambda grade: grade.rank)

    @property
    def worst(self) -> str:
        """Return the case with the worst grade, the first by id."""
        return self.first[self.grade]

    def add(self, accuracy: Accuracy, case: str) -> None:
        """Add the accuracy of the answer to a case."""
        self.cases[accuracy.grade] += 1
        self.first[accuracy.grade] = min(self.first.get(accuracy.grade, case), case)
        self.ulp = _higher(self.ulp, accuracy.ulp, case)
        self.share = _higher(self.share, accuracy.share, case)

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON, without operator version and type."""
        return {
            "grade": str(self.grade),
            "worst": self.worst,
            "cases": {str(grade): self.cases[grade] for grade in Grade if grade in self.cases},
            "ulp": self.ulp and self.ulp._asdict(),
            "share": self.share and self.share._asdict(),
        }


def _higher(peak: Peak | None, number: float | None, case: str) -> Peak | None:
    peaks = [candidate for candidate in (peak, None if number is None else Peak(number, case)) if candidate is not None]
    return min(peaks, key=lambda candidate: (-candidate.number, candidate.case), default=None)


class Grades:
    """Combines the accuracy of results as they arrive."""

    def __init__(self) -> None:
        self._graded: dict[tuple[str, str, str], Graded] = {}

    def add(self, result: Result, accuracy: Accuracy | None) -> None:
        """Add the accuracy of an answer; None adds nothing."""
        if accuracy is None:
            return
        key = (result.backend, operator_version_of(result.case), accuracy.type)
        self._graded.setdefault(key, Graded(*key)).add(accuracy, result.case)

    def graded(self, backend: str | None = None) -> Iterator[Graded]:
        """Yield what is known, of one backend or all, sorted."""
        return (self._graded[key] for key in sorted(self._graded) if backend in (None, key[0]))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON, by backend, operator version and type."""
        by_backend: dict[str, dict[str, dict[str, Any]]] = {}
        for graded in self.graded():
            versions = by_backend.setdefault(graded.backend, {})
            versions.setdefault(graded.operator_version, {})[graded.type] = graded.to_dict()
        return by_backend


def attached_accuracy(attachments: Mapping[str, Any]) -> Accuracy | None:
    """Return the accuracy attached to a result; None if there is none, or if it could not be determined."""
    read = attachments.get(ATTACHMENT)
    return accuracy_from(read) if isinstance(read, dict) and "grade" in read else None


_WORDS = {Grade.ROUNDED: "rounded"}
_STYLES = {Grade.OUTSIDE: "red", Grade.NARROW: "yellow", Grade.STEPWISE: "yellow", Grade.DECLARED: "yellow"}
_LEGEND = "the worst case's grade, and the largest error as a share of the widest bound"


@dataclass
class ArithmeticTables:
    """A run's arithmetic, gathered as results arrive; `declaration` is what the user declared."""

    declaration: Declaration = field(default_factory=Declaration)
    grades: Grades = field(default_factory=Grades)
    fingerprints: Fingerprints = field(default_factory=Fingerprints)

    def add(self, result: Result, accuracy: Accuracy | None) -> None:
        """Add a result with its accuracy."""
        self.grades.add(result, accuracy)
        self.fingerprints.add(result, accuracy)

    def evidence(self, backend: str) -> list[DeclarationEvidence]:
        """Return the evidence on each declared field."""
        return evidence_on(self.declaration, self.fingerprints, backend)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        behaves = self.fingerprints.to_dict()
        tables: dict[str, Any] = {"accuracy": self.grades.to_dict(), "behaves_like": behaves}
        if self.declaration.types:
            tables["declared_arithmetic"] = {b: [e.to_dict() for e in self.evidence(b)] for b in behaves}
        return tables


def print_arithmetic(console: Console, tables: ArithmeticTables, backend: str, title: str) -> None:
    """Print a backend's grades and fingerprint; prints nothing if nothing is known."""
    graded = list(tables.grades.graded(backend))
    if graded:
        console.print(Text(f"{title}, accuracy", "bold"))
        console.print(_matrix(graded))
        console.print(Text(_LEGEND, "dim"))
        console.print()
    lines = [*_behaves_like(tables.fingerprints, backend), *_declared(tables.evidence(backend))]
    if lines:
        console.print(Text(f"{title}, behaves like", "bold"))
        for line in lines:
            console.print(line, soft_wrap=True)
        console.print()


def _matrix(graded: Sequence[Graded]) -> Table:
    """Return a table of types by operator versions; versions of one operator with the same grades share a row."""
    types = list(dict.fromkeys(g.type for g in graded))
    rows: dict[str, dict[str, Graded]] = {}
    for grade in graded:
        rows.setdefault(grade.operator_version, {})[grade.type] = grade
    alike: dict[tuple[str, ...], list[str]] = {}
    for operator_version, by_type in rows.items():
        grades = [str(by_type[t].grade) if t in by_type else "" for t in types]
        alike.setdefault((split_version(operator_version)[0], *grades), []).append(operator_version)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("operator", overflow="fold")
    for name in types:
        table.add_column(Text(printable(name)), overflow="fold")
    for versions in alike.values():
        cells = [_cell([rows[v][t] for v in versions if t in rows[v]]) for t in types]
        table.add_row(Text(printable(_named(versions))), *cells)
    return table


def _cell(graded: Sequence[Graded]) -> Text:
    if not graded:
        return Text(NOTHING, "dim")
    grade = graded[0].grade
    shares = [g.share.number for g in graded if g.share is not None]
    share = f" {percent(Fraction(max(shares)))}" if shares and grade is not Grade.OUTSIDE else ""
    return Text(_WORDS.get(grade, str(grade)) + share, _STYLES.get(grade, ""))


def _behaves_like(fingerprints: Fingerprints, backend: str) -> Iterable[Text]:
    alike = rolled_up(fingerprints.traits(backend))
    for trait in alike:
        if trait.words:
            yield Text(f"  {trait.words}: {', '.join(map(printable, trait.types))}{_where(trait, alike)}")
            yield from (Text(f"    shown by {printable(case)}", "dim") for case in trait.cases)
    # a probe's finding on the accumulator says more than the options that single cases admit
    yield from _silences([trait for trait in alike if trait.subject not in SUBJECTS and trait.subject != "accumulator"])


def _where(trait: SharedTrait, alike: Sequence[SharedTrait]) -> str:
    """Return the operator versions, if the finding differs elsewhere for the same types."""
    others = [a for a in alike if a.subject == trait.subject and a is not trait]
    if not any(set(a.types) & set(trait.types) for a in others):
        return ""
    return f" in {_operators(trait.operator_versions)}"


def _silences(alike: Sequence[SharedTrait]) -> Iterable[Text]:
    """Return the options taken in all types and versions, and where they differ."""
    by_silence: dict[str, list[SharedTrait]] = {}
    for trait in alike:
        by_silence.setdefault(trait.subject, []).append(trait)
    same = [f"{printable(s)} {printable(traits[0].behaviour)}" for s, traits in by_silence.items() if len(traits) == 1]
    if same:
        yield Text(f"  in all types and versions: {', '.join(same)}")
    for silence, traits in by_silence.items():
        if len(traits) > 1:
            yield Text(f"  {printable(silence)} differs:", "yellow")
            for trait in traits:
                where = f"{', '.join(map(printable, trait.types))} in {_operators(trait.operator_versions)}"
                yield Text(f"    {printable(trait.behaviour)}: {where}")
                yield Text(f"      shown by {printable(trait.cases[0])}", "dim")


def _declared(evidence: Sequence[DeclarationEvidence]) -> Iterable[Text]:
    for item in evidence:
        style = "yellow" if item.bearing == "contradicted" else ""
        line = f"  declared {item.type} {item.field} {item.declared}: {item.bearing}"
        yield Text(line, style).append(f" by {printable(item.case)}" if item.case else "")


def _operators(operator_versions: Sequence[str]) -> str:
    by_operator: dict[str, list[str]] = {}
    for operator_version in operator_versions:
        by_operator.setdefault(split_version(operator_version)[0], []).append(operator_version)
    return "; ".join(printable(_named(versions)) for versions in by_operator.values())


def _named(operator_versions: Sequence[str]) -> str:
    """Return `onnx/Mean 1, 6` for several versions of one operator."""
    split = [split_version(o) for o in operator_versions]
    return f"{split[0][0]} {', '.join(version for _, version in split if version)}".rstrip()
