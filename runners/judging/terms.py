"""The terms of a run: profiles, `--require`, declared arithmetic, errata, and waivers.

A profile is a product's promise; inside it `unsupported` fails a run. A waived failure does not fail a run until a
date; a waiver that is no longer true does. Errata and disputed clauses suspend cases from correctness.
"""

from __future__ import annotations

import datetime as dt
import importlib.resources
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, get_args

import msgspec

from ... import specs
from ...cases.elements import Declaration, DeclaredType
from ...cases.errors import CaseIdError, OpconformError, did_you_mean
from ...cases.ids import CaseId, Glob, operator_version_of, parse_id, part_size
from ...cases.program import NO_VERSION
from ...cases.results import STATIC, Outcome, Result
from ...cases.runner import Claims
from ...cases.short import long_id
from ...specs.model import ShapeWord, Spec, expand
from ...specs.reading import Document, Problems, read, read_file
from .judge import WRONG


@dataclass(frozen=True, slots=True)
class Erratum:
    """A decision about a disputed verdict.

    `affects` is a clause id (`onnx/ReduceMean#mean`) or a glob of case ids. `since` is the suite version from which the
    decision applies.
    """

    id: str
    affects: str
    decision: str
    link: str
    since: str

    def covers(self, case_id: str, clauses: Iterable[str]) -> bool:
        """Return whether it suspends a case that tests these clauses."""
        if "#" in self.affects:
            return any(fnmatchcase(clause, self.affects) for clause in clauses)
        return Glob(self.affects).matches(case_id)


@dataclass(frozen=True)
class Errata:
    """The errata in one file."""

    entries: tuple[Erratum, ...] = ()
    digest: str | None = None

    def affecting(self, case_id: str, clauses: Iterable[str]) -> str | None:
        """Return the id of the first erratum that suspends a case."""
        return next((e.id for e in self.entries if e.covers(case_id, clauses)), None)


@dataclass(frozen=True)
class Suspensions:
    """Everything that suspends cases: errata, and disputed clauses by id, with the dispute's address or nothing."""

    errata: Errata = field(default_factory=Errata)
    disputed: Mapping[str, str] = field(default_factory=dict)

    def reason(self, case_id: str, clauses: Iterable[str]) -> str | None:
        """Return why a case does not count, None if it does."""
        if erratum := self.errata.affecting(case_id, clauses):
            return f"erratum {erratum}"
        for clause in clauses:
            if clause in self.disputed:
                upstream = self.disputed[clause]
                return f"clause {clause} is disputed" + (f": {upstream}" if upstream else "")
        return None


def load_errata(path: Path | str | None = None) -> Errata:
    """Read errata, by default the ones in this package.

    Raises SpecError or SpecErrors if the content is wrong, OpconformError if the file cannot be read.
    """
    document = _shipped() if path is None else read_file(path)
    if document.value == []:  # as shipped: every run would wait for pydantic
        return Errata((), document.digest)
    from ...specs.schema import ErrataText, parsed  # noqa: PLC0415 - pydantic, which few commands need

    text = parsed(ErrataText, document)
    problems = Problems(document)
    for index, erratum in enumerate(text.root):
        if "/" not in erratum.affects and "*" not in erratum.affects:
            message = "affects: expected a clause id such as onnx/ReduceMean#mean, or a GLOB"
            problems.add((index, "affects"), f"{message}; read {erratum.affects!r}")
        if erratum.id in {other.id for other in text.root[:index]}:
            problems.add((index, "id"), f"id: {erratum.id!r} appears twice")
    problems.raise_any()
    return Errata(tuple(Erratum(**erratum.model_dump()) for erratum in text.root), document.digest)


def disputed_clauses(specs: Iterable[Spec]) -> dict[str, str]:
    """Return the ids of all disputed clauses, each with the address of the dispute, empty if there is none yet."""
    return {
        f"{spec.operator}#{clause.id}": clause.upstream or ""
        for spec in specs
        for version in spec.versions.values()
        for clause in version.clauses.values()
        if clause.status == "disputed"
    }


def _shipped() -> Document:
    file = importlib.resources.files(specs) / "errata.yaml"
    return read(file.read_text(encoding="utf-8"), "specs/errata.yaml")


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise about one operator: versions as text and element types; None stands for all."""

    versions: frozenset[str] | None = None
    types: frozenset[str] | None = None


@dataclass(frozen=True)
class Profile:
    """Promises, by operator (`onnx/ReduceMean`).

    `rank` and `elements` limit each tensor whose shape a case id names, None for no limit. `opset` is the newest one in
    which models may use an operator version that is older. A program with symbolic dimensions is `dynamic`; `bounded`,
    dynamic up to a largest extent, is for programs that state one.
    """

    name: str
    version: str
    operators: Mapping[str, Promise]
    rank: int | None = None
    elements: int | None = None
    shapes: frozenset[ShapeWord] = frozenset(get_args(ShapeWord))
    digest: str | None = None
    opset: int | None = None

    def promises(self, case_id: str) -> bool:
        """Return whether a case is inside the profile; ids that cannot be parsed are not."""
        try:
            case = parse_id(case_id)
        except CaseIdError:
            return False
        shape: ShapeWord = "dynamic" if case.setting("dims") in ("symbolic", "unranked") else "static"
        return shape in self.shapes and self._promises_operator(case) and self._fits(case)

    def _promises_operator(self, case: CaseId) -> bool:
        for operator, promise in self.operators.items():
            version = _version(case.operator, operator)
            if version is not None:
                return (promise.versions is None or version in promise.versions) and (
                    promise.types is None or promise.types.issuperset(case.types)
                )
        return False

    def _fits(self, case: CaseId) -> bool:
        asked = case.setting("opset") or ""
        if self.opset is not None and asked.isdecimal() and int(asked) > self.opset:
            return False
        return all(
            (self.rank is None or not isinstance(part, tuple) or len(part) <= self.rank)
            and (self.elements is None or part_size(part) <= self.elements)
            for part in case.shapes
        )


def load_profile(path: Path | str) -> Profile:
    """Read a profile; its digest is the sha256 of the file's bytes.

    Raises SpecError or SpecErrors if the content is wrong, OpconformError if the file cannot be read.
    """
    from ...specs.schema import ProfileText, parsed  # noqa: PLC0415 - pydantic, which few runs need

    document = read_file(path)
    text = parsed(ProfileText, document)
    operators = {
        operator: Promise(
            None if claim.versions is None else frozenset(claim.versions),
            None if claim.types is None else frozenset(t for word in claim.types for t in expand(word)),
        )
        for operator, claim in text.operators.items()
    }
    shapes = frozenset(text.shapes)
    return Profile(text.name, text.version, operators, text.rank, text.elements, shapes, document.digest, text.opset)


def claimed(backend: str, version: str, claims: Claims) -> Profile:
    """Return a backend's claims as a profile."""
    operators = {
        operator: Promise(
            None if claim.versions == "all" else frozenset(map(str, claim.versions)),
            None if claim.types == "all" else frozenset(claim.types),
        )
        for operator, claim in claims.operators.items()
    }
    limits = claims.limits
    shapes = frozenset(limits.shapes or get_args(ShapeWord))
    return Profile(backend, version, operators, limits.rank, limits.elements, shapes, opset=limits.opset)


def _version(operator_version: str, operator: str) -> str | None:
    """Return which version of `operator` this is, None if it is another operator."""
    if operator_version == operator:
        return NO_VERSION
    version = operator_version.removeprefix(f"{operator}-")
    return version if version != operator_version else None


def load_declaration(path: Path | str) -> Declaration:
    """Read a declaration, from a file or, by a backend's name, from those of the package; its digest is of the bytes.

    Raises SpecError or SpecErrors if the content is wrong, OpconformError if the file cannot be read.
    """
    from ...specs.schema import DeclaredText, DeclaredWholeText, declaration_text, parsed  # noqa: PLC0415 - pydantic, which few runs need

    shipped = Path(__file__).parents[1] / "backends" / f"{path}.yaml"
    document = read_file(shipped if not Path(path).exists() and shipped.is_file() else path)
    text, types = dict(parsed(declaration_text(), document)), dict[str, DeclaredType]()
    for name, declared in text.items():
        if isinstance(declared, DeclaredText):
            types[name] = DeclaredType(declared.compute, declared.accumulator, frozenset(declared.flush))
        elif isinstance(declared, DeclaredWholeText):
            types[name] = DeclaredType(declared.compute)
    return Declaration(types, text["threads"], text["deterministic"], document.digest)


if TYPE_CHECKING:
    from ...specs.loader import Library

ALWAYS_FAILING = WRONG | {Outcome.ERROR, Outcome.CRASH, Outcome.TIMEOUT}


def is_about_invalid(result: Result) -> bool:
    """Return whether a result is about an invalid input."""
    return "invalid" in result.behaviour


@dataclass(frozen=True)
class Demands:
    """The demands of a run in addition to correctness: answers to silences (`--require`), and a profile (`--profile`).

    `claims` are the profiles that backends themselves declare, by the backend's name.
    """

    required: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    profile: Profile | None = None
    claims: Mapping[str, Profile] = field(default_factory=lambda: MappingProxyType({}))

    def fails(self, result: Result, *, suspended: bool = False) -> bool:
        """Return whether a result makes the run non-conformant; a suspended case only does so if it crashes."""
        if result.outcome is Outcome.PASS:  # the usual case
            return False
        if result.outcome is Outcome.CRASH:
            return True
        if suspended:
            return False
        if result.outcome is Outcome.ACCEPTED_INVALID:
            return result.reason == STATIC or self.required.get("invalid") == "rejected"
        if result.outcome is Outcome.UNSUPPORTED:
            return self._breaks_promise(result)
        return result.outcome in ALWAYS_FAILING

    def _breaks_promise(self, result: Result) -> bool:
        promises = (self.profile, self.claims.get(result.backend))
        return not is_about_invalid(result) and any(
            profile is not None and profile.promises(result.case) for profile in promises
        )

    def is_unclaimed(self, result: Result) -> bool:
        """Return whether a result is a pass of a valid case outside its backend's claims, if the backend has any."""
        claim = self.claims.get(result.backend)
        passes = result.outcome is Outcome.PASS and not is_about_invalid(result)
        return claim is not None and passes and not claim.promises(result.case)


_EVERYWHERE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "accumulator": ("wide", "stepwise", "narrow"),
        "flush": ("none", "output", "input-and-output"),
        "inference": ("exact", "open"),
        "invalid": ("rejected", "answered"),
        "overflow": ("avoided", "infinite"),
        "summation": ("sums", "running-means"),
        "zero-sign": ("kept", "lost"),
    }
)


def silences(library: Library | None = None) -> dict[str, tuple[str, ...]]:
    """Return every silence with its options: the silences of all operators, and those in spec files."""
    answers = dict(_EVERYWHERE)
    specs = [] if library is None else library.specs()
    for spec in specs:
        for version in spec.versions.values():
            for silence in version.silences.values():
                answers[silence.id] = tuple(dict.fromkeys((*answers.get(silence.id, ()), *silence.options)))
    return answers


def requirements(texts: Iterable[str], library: Library) -> Mapping[str, str]:
    """Return the required option of each silence. Raises OpconformError for an unknown silence or option."""
    return required(texts, silences(library)) if texts else {}


def required(texts: Iterable[str], known: Mapping[str, tuple[str, ...]]) -> Mapping[str, str]:
    """Return the required option of each silence, given the known silences with their options.

    Raises OpconformError.
    """
    chosen: dict[str, str] = {}
    for text in texts:
        silence, equals, option = text.partition("=")
        if not equals:
            raise OpconformError(f"--require {text}: expected SILENCE=OPTION, as in accumulator=wide")
        if silence not in known:
            hint = did_you_mean(silence, known) or f"; known silences: {', '.join(sorted(known))}"
            raise OpconformError(f"--require {text}: no silence is called {silence!r}{hint}")
        if option not in known[silence]:
            raise OpconformError(f"--require {text}: {silence} has the options {', '.join(known[silence])}")
        if chosen.setdefault(silence, option) != option:
            raise OpconformError(f"--require {text}: {silence}={chosen[silence]} is already required")
    return chosen


_WAIVED_BY = ", waived by "


@dataclass(frozen=True, slots=True)
class Waiver:
    """A known failure: which cases of which backends fail how, why that is accepted, who is responsible, until when.

    `place` is `file:line`. It is valid up to and including the day `expires`. `detail` is text that the result's detail
    must contain. `since` is the day on which it was written down, None if the file does not say.
    """

    place: str
    case: Glob
    backend: str
    outcome: Outcome
    reason: str
    link: str
    owner: str
    expires: dt.date
    detail: str | None = None
    since: dt.date | None = None

    def age(self, day: dt.date) -> int | None:
        """Return its age in days on a day, None if the file does not say."""
        return None if self.since is None else max(0, (day - self.since).days)

    def names(self, result: Result) -> bool:
        """Return whether it is about this case on this backend."""
        return self.case.matches(result.case) and fnmatchcase(result.backend, self.backend)

    def describes(self, result: Result) -> bool:
        """Return whether a result is the failure that it describes."""
        return result.outcome is self.outcome and (self.detail is None or self.detail in (result.detail or ""))

    def waive(self, result: Result) -> Result:
        """Return the result as a waived one; its detail says by which waiver, and what the outcome was."""
        reason = " ".join(self.reason.split())  # one line, so that `before_waiving` finds its end
        words = f"{result.outcome}{_WAIVED_BY}{self.place} until {self.expires} ({self.link}): {reason}"
        detail = f"{words}\n{result.detail}" if result.detail else words
        return msgspec.structs.replace(result, outcome=Outcome.WAIVED, detail=detail)


def before_waiving(result: Result) -> Result:
    """Return a result as it was before it was waived. Raises ValueError if its detail does not say."""
    if result.outcome is not Outcome.WAIVED:
        return result
    head, _, detail = (result.detail or "").partition("\n")
    return msgspec.structs.replace(result, outcome=Outcome(head.partition(_WAIVED_BY)[0]), detail=detail or None)


@dataclass(frozen=True)
class Waivers:
    """The waivers in one file."""

    entries: tuple[Waiver, ...] = ()
    digest: str | None = None

    def for_run(self, today: dt.date, demands: Demands | None = None) -> WaiverRun:
        """Return an object that applies them to one run, and remembers which of them matched."""
        return WaiverRun(today, demands or Demands(), tuple(Met(w, w.expires < today) for w in self.entries))


@dataclass
class WaiverRun:
    """The waivers applied to one run."""

    today: dt.date
    demands: Demands
    met: tuple[Met, ...]
    """What each waiver matched so far, in the order of the file."""
    _backends: set[str] = field(default_factory=set)
    _operator_versions: set[str] = field(default_factory=set)

    @property
    def any(self) -> bool:
        """Return whether there are waivers at all."""
        return bool(self.met)

    def apply(self, result: Result, *, suspended: bool = False) -> Result:
        """Return the result, `waived` if it is a failure that an unexpired waiver describes.

        `suspended`: the case does not count, so that its failure, unless it is a crash, needs no waiver.
        """
        self._backends.add(result.backend)
        self._operator_versions.add(operator_version_of(result.case))
        if not self.met:
            return result
        named = [record for record in self.met if record.waiver.names(result)]
        described = [record for record in named if record.waiver.describes(result)]
        fails = self.demands.fails(result, suspended=suspended)
        for record in named:
            record.outcomes[result.outcome] += 1
            record.described += record in described
            if fails and not described:
                record.differing = record.differing or result
        valid = next((record for record in described if fails and not record.expired), None)
        return valid.waiver.waive(result) if valid else result

    def problems(self, *, partial: bool = False) -> list[str]:
        """Return the problems of the waivers in this run, each as `file:line: message`; any of them fails the run.

        `partial`: the run left out cases of its operator versions (a selection, a shard, an interruption). A glob is
        then not reported as stale, because its cases may be among them.
        """
        return [problem for record in self.met for problem in self._of(record, partial)]

    def _of(self, record: Met, partial: bool) -> Iterator[str]:
        waiver = record.waiver
        here = any(fnmatchcase(backend, waiver.backend) for backend in self._backends)
        if not here or not any(waiver.case.concerns(o) for o in self._operator_versions):
            return
        if record.expired:
            mend = f"{waiver.owner} renews it with a reason, or removes it"
            yield f"{waiver.place}: expired on {waiver.expires}{self._aged(waiver)} ({record.text()}): {mend}"
            return
        if record.differing:
            yield f"{waiver.place}: {_difference(waiver, record.differing)}"
        elif stale := record.stale(partial):
            yield f"{waiver.place}: stale{self._aged(waiver)}: {stale}: remove it"

    def _aged(self, waiver: Waiver) -> str:
        age = waiver.age(self.today)
        return "" if age is None else f", {age:,} day{'' if age == 1 else 's'} old"


@dataclass(eq=False)
class Met:
    """The results that one waiver matched in a run: by outcome, how many it describes, the first that failed otherwise.

    `expired`: its last day has passed.
    """

    waiver: Waiver
    expired: bool
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    described: int = 0
    differing: Result | None = None

    def text(self) -> str:
        """Return the outcomes of its cases, in words."""
        counts = [f"{self.outcomes[o]} {o}" for o in Outcome if self.outcomes[o]]
        return f"its cases here: {', '.join(counts)}" if counts else "it matches no case here"

    def stale(self, partial: bool) -> str | None:
        """Return why the waiver is no longer needed, None if it is, or if a `partial` run cannot show it."""
        if self.described or self.outcomes[Outcome.RUNNER_ERROR] or (partial and not self.waiver.case.is_case):
            return None
        if self.outcomes:
            return f"nothing that it matches failed ({self.text()})"
        return None if partial else f"{self.waiver.case} matches no case of this run"


def load_waivers(path: Path | str, operator_versions: Collection[str] = ()) -> Waivers:
    """Read a file of waivers.

    `operator_versions` are the suite's: a waiver for another one is a mistake. Raises SpecError or SpecErrors if the
    content is wrong, OpconformError if the file cannot be read.
    """
    from ...specs.schema import WaiversText, parsed  # noqa: PLC0415 - pydantic, which few runs need

    document = read_file(path)
    problems = Problems(document)
    waivers = []
    for index, text in enumerate(parsed(WaiversText, document).root):
        try:
            glob = Glob(long_id(text.case))
        except CaseIdError as error:
            problems.add((index, "case"), str(error))
            continue
        named = glob.operator_version
        if named and operator_versions and named not in operator_versions:
            message = f"no operator version is called {named!r}{did_you_mean(named, operator_versions)}"
            problems.add((index, "case"), message)
        if text.since is not None and text.since > text.expires:
            problems.add((index, "since"), f"{text.since} is after it expires, on {text.expires}")
        position, outcome = f"{document.file}:{document.position((index,)).line}", Outcome(text.outcome)
        terms = (text.reason, text.link, text.owner, text.expires, text.detail, text.since)
        waivers.append(Waiver(position, glob, text.backend, outcome, *terms))
    problems.raise_any()
    return Waivers(tuple(waivers), document.digest)


def _difference(waiver: Waiver, result: Result) -> str:
    first = f"{result.case} on {result.backend}"
    if result.outcome is not waiver.outcome:
        return f"waives {waiver.outcome}, but {first} failed with {result.outcome}"
    return f"waives {waiver.outcome} with {waiver.detail!r} in its detail, but {first} has {_short(result.detail)}"


def _short(detail: str | None) -> str:
    text = repr(detail) if detail else "nothing"
    return text if len(text) <= 60 else f"{text[:57]}..."
