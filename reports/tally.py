"""Gathers results as they arrive: figures and the exit code, behaviour, and groups of failures."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from ..cases.ids import operator_version_of, split_version
from ..cases.results import Outcome, Result
from ..runners.judging.terms import Demands, is_about_invalid

CONFORMANT, NON_CONFORMANT, NOTHING_JUDGED, OUR_SIDE_FAILED = 0, 1, 2, 3

COUNTS = ("judged", "passed", "strict", "unsupported", "put", "refused", "failed", "suspended")
"""The counts of `Figures`, which add up."""


class Group(NamedTuple):
    """What figures are counted for: a backend, an operator version, and the data's element type."""

    backend: str
    operator_version: str
    types: str


def group_of(result: Result) -> Group:
    """Return the group of a result; an invalid case id makes a group of its own."""
    operator_version = operator_version_of(result.case)
    types = result.case[len(operator_version) + 1 :].partition("/")[0]
    return Group(result.backend, operator_version, types.partition(",")[0] or "-")


@dataclass(frozen=True)
class Figures:
    """Counts of cases, and the figures computed from them.

    `judged` counts all cases except unsupported ones, suspended ones, those where our side failed and those with an
    invalid input. `passed` counts passes, `strict` the passes that need no declared arithmetic. `unsupported` counts
    valid inputs. `put` counts invalid inputs that ran to an end, `refused` the refused ones. `failed` counts what makes
    the run non-conformant, `outcomes` every result.
    """

    judged: int = 0
    passed: int = 0
    strict: int = 0
    unsupported: int = 0
    put: int = 0
    refused: int = 0
    failed: int = 0
    suspended: int = 0
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)

    @property
    def cases(self) -> int:
        """Return the number of results."""
        return sum(self.outcomes.values())

    @property
    def correctness(self) -> Fraction | None:
        """Return strict passes as a share of judged cases; None if nothing was judged."""
        return _share(self.strict, self.judged)

    @property
    def declared_correctness(self) -> Fraction | None:
        """Return passes, also under declared arithmetic, as a share of judged cases."""
        return _share(self.passed, self.judged)

    @property
    def support(self) -> Fraction | None:
        """Return judged cases as a share of the cases that the backend was given."""
        return _share(self.judged, self.judged + self.unsupported)

    @property
    def refusal(self) -> Fraction | None:
        """Return refused invalid inputs as a share of those that were run."""
        return _share(self.refused, self.put)

    @property
    def exit_code(self) -> int:
        """Return the highest exit code that applies to these counts."""
        if self.outcomes.get(Outcome.RUNNER_ERROR):
            return OUR_SIDE_FAILED
        if not self.judged and not self.put:
            return NOTHING_JUDGED
        return NON_CONFORMANT if self.failed else CONFORMANT

    def __add__(self, other: Figures) -> Figures:
        counts = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        return Figures(**counts, outcomes=Counter(self.outcomes) + Counter(other.outcomes))

    def to_dict(self) -> dict[str, Any]:
        """Return counts and figures for JSON; a figure of nothing is None."""
        shares = ("correctness", "declared_correctness", "support", "refusal")
        return {
            "cases": self.cases,
            **{name: getattr(self, name) for name in COUNTS},
            **{name: None if (s := getattr(self, name)) is None else round(float(s), 6) for name in shares},
            "outcomes": {str(o): self.outcomes[o] for o in Outcome if self.outcomes.get(o)},
        }


@dataclass
class _Counts:
    """The counts of one group; separate, because an outcome and a count may have the same name."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)


class Tally:
    """Counts results as they arrive; memory grows with the number of groups, not of cases."""

    def __init__(self, demands: Demands | None = None, backends: Iterable[str] = ()) -> None:
        """Count by these demands; `backends` are the run's, whether they answer or not."""
        self.demands = demands or Demands()
        self.suspensions: Counter[str] = Counter()
        self.refusals: dict[str, str] = {}
        """The words of each backend's first `unsupported`, of a valid case if there is one."""
        self._refused_valid: set[str] = set()
        self._named = dict.fromkeys(backends)
        self._counts: dict[Group, _Counts] = {}

    def add(self, result: Result, suspended: str | None = None) -> None:
        """Count a result; `suspended` says why its case does not count, if it does not."""
        key = group_of(result)
        group = self._counts.get(key) or self._counts.setdefault(key, _Counts())
        group.outcomes[result.outcome] += 1
        counts = group.counts
        if result.outcome is Outcome.UNSUPPORTED:
            self._keep_refusal(result)
        if self.demands.fails(result, suspended=suspended is not None):
            counts["failed"] += 1
        if suspended is not None:
            self.suspensions[suspended] += 1
            counts["suspended"] += 1
        elif result.outcome is not Outcome.RUNNER_ERROR:
            for name in _counts_of(result):
                counts[name] += 1

    def _keep_refusal(self, result: Result) -> None:
        valid = not is_about_invalid(result)
        if result.backend not in self.refusals or (valid and result.backend not in self._refused_valid):
            self.refusals[result.backend] = result.detail or ""
        if valid:
            self._refused_valid.add(result.backend)

    @property
    def backends(self) -> list[str]:
        """Return the backends of the run, in order of first appearance."""
        return list(self._named | dict.fromkeys(group.backend for group in self._counts))

    def groups(self, backend: str | None = None) -> Iterator[tuple[Group, Figures]]:
        """Yield the groups of one backend or all, with their figures: by operator version, then by type."""
        for group, counts in self._of(backend):
            yield group, _figures([counts])

    def operator_versions(self, backend: str | None = None) -> dict[str, Figures]:
        """Return the figures of each operator version, in ascending order."""
        groups: dict[str, list[_Counts]] = {}
        for group, counts in self._of(backend):
            groups.setdefault(group.operator_version, []).append(counts)
        return {operator_version: _figures(counts) for operator_version, counts in groups.items()}

    def _of(self, backend: str | None) -> list[tuple[Group, _Counts]]:
        """Return the groups of one backend or all, in order: in versions numbers count as such, so 8 is before 13."""
        groups = [(group, counts) for group, counts in self._counts.items() if backend in (None, group.backend)]
        return sorted(groups, key=lambda pair: (natural(pair[0].operator_version), pair[0].types))

    def figures(self, backend: str | None = None) -> Figures:
        """Return the figures of one backend, or of the whole run."""
        return _figures(counts for group, counts in self._counts.items() if backend in (None, group.backend))

    def exit_code(self, waiver_problems: int = 0) -> int:
        """Return the exit code of the run; a backend without any judged case does not conform."""
        codes = [self.figures(backend).exit_code for backend in self.backends] or [NOTHING_JUDGED]
        return max(*codes, NON_CONFORMANT if waiver_problems else CONFORMANT)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures for JSON: overall, by backend, operator version and types; suspensions by reason."""
        backends: dict[str, Any] = {b: {**self.figures(b).to_dict(), "operator_versions": {}} for b in self.backends}
        for backend, fields in backends.items():
            for operator_version, figures in self.operator_versions(backend).items():
                fields["operator_versions"][operator_version] = {**figures.to_dict(), "types": {}}
        for group, figures in self.groups():
            types = backends[group.backend]["operator_versions"][group.operator_version]["types"]
            types[group.types] = figures.to_dict()
        overall = self.figures().to_dict()
        return {"overall": overall, "backends": backends, "suspended": dict(self.suspensions)}


def natural(text: str) -> list[tuple[int, str]]:
    """Return the sort key of a text in which numbers count as numbers."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBERS.split(text)]


_NUMBERS = re.compile("([0-9]{1,18})")


def _counts_of(result: Result) -> tuple[str, ...]:
    """Return the counts that a result increases."""
    is_valid, passes = not is_about_invalid(result), result.outcome is Outcome.PASS
    if result.outcome is Outcome.UNSUPPORTED:  # the valid sibling of an invalid input did not run either
        return ("unsupported",) if is_valid else ()
    if not is_valid:
        return ("put", "refused") if passes else ("put",)
    if not passes:
        return ("judged",)
    return ("judged", "passed", "strict") if result.level == "strict" else ("judged", "passed")


def _figures(parts: Iterable[_Counts]) -> Figures:
    outcomes: Counter[Outcome] = Counter()
    counts: Counter[str] = Counter()
    for part in parts:
        outcomes.update(part.outcomes)
        counts.update(part.counts)
    return Figures(**{name: counts[name] for name in COUNTS}, outcomes={o: outcomes[o] for o in Outcome if outcomes[o]})


def _share(part: int, total: int) -> Fraction | None:
    return Fraction(part, total) if total else None


@dataclass(frozen=True)
class OptionEvidence:
    """Evidence that a backend takes an option: the number of cases that admit nothing else, and the first of them."""

    option: str
    cases: int
    first: str


@dataclass(frozen=True)
class Contradiction:
    """A case whose options exclude the one that most cases show, or that another case needs."""

    case: str
    options: tuple[str, ...]


@dataclass
class SilenceEvidence:
    """The evidence of what a backend does about a silence; it does not depend on the order in which results arrive.

    `undecided` counts the cases that admit several options.
    """

    cases: dict[str, int] = field(default_factory=dict)
    first: dict[tuple[str, ...], str] = field(default_factory=dict)
    undecided: int = 0

    def add(self, case: str, options: list[str]) -> None:
        """Add the options that admit a case's answer."""
        admitted = tuple(options)
        self.first[admitted] = min(self.first.get(admitted, case), case)
        if len(options) > 1:
            self.undecided += 1
        else:
            self.cases[options[0]] = self.cases.get(options[0], 0) + 1

    @property
    def established(self) -> tuple[OptionEvidence, ...]:
        """Return the options that some case shows alone, the most frequent first."""
        evidence_of = [OptionEvidence(option, count, self.first[option,]) for option, count in self.cases.items()]
        return tuple(sorted(evidence_of, key=lambda evidence: (-evidence.cases, evidence.option)))

    @property
    def broken(self) -> Contradiction | None:
        """Return a case that excludes the most frequent option; None if one option agrees with every case."""
        if frozenset.intersection(*map(frozenset, self.first)):
            return None
        wanted = self.established[0].option if self.cases else max(self.first, key=len)[0]
        case, options = min((case, options) for options, case in self.first.items() if wanted not in options)
        return Contradiction(case, options)

    @property
    def consistent(self) -> bool:
        """Return whether one option agrees with every case."""
        return self.broken is None


@dataclass(kw_only=True)
class ChosenOptions(SilenceEvidence):
    """What a backend does about one silence of one operator version."""

    backend: str
    operator_version: str
    silence: str


class Behaviours:
    """Combines the behaviour of results as they arrive."""

    def __init__(self) -> None:
        self._chosen: dict[tuple[str, str, str], ChosenOptions] = {}

    def add(self, result: Result) -> None:
        """Add what a result shows; no options add nothing."""
        for silence, options in result.behaviour.items():
            if options:
                key = backend, operator_version, _ = result.backend, operator_version_of(result.case), silence
                made = ChosenOptions(backend=backend, operator_version=operator_version, silence=silence)
                self._chosen.setdefault(key, made).add(result.case, options)

    def total(self, backend: str, silence: str) -> Counter[str]:
        """Return the number of a backend's cases that show each option alone, in all operator versions."""
        counts: Counter[str] = Counter()
        for taken in self.chosen(backend):
            if taken.silence == silence:
                counts.update(taken.cases)
        return counts

    def chosen(self, backend: str | None = None) -> Iterator[ChosenOptions]:
        """Return what is known of each silence, of one backend or all, in order of first appearance."""
        return (taken for taken in self._chosen.values() if backend in (None, taken.backend))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON, by backend, operator version and silence."""
        by_backend: dict[str, dict[str, dict[str, Any]]] = {}
        for taken in self.chosen():
            by_backend.setdefault(taken.backend, {}).setdefault(taken.operator_version, {})[taken.silence] = {
                "options": {e.option: {"cases": e.cases, "first": e.first} for e in taken.established},
                "undecided": taken.undecided,
                "consistent": taken.consistent,
                "broken": taken.broken and {"case": taken.broken.case, "options": list(taken.broken.options)},
            }
        return by_backend


@dataclass(frozen=True)
class FailureGroup:
    """Failures of one backend that seem to have one cause: they share the outcome and its symptom.

    Errors share a cause if their messages are equal apart from numbers and names of values, whatever the operator.
    Other failures belong to one operator: crashes and timeouts with such messages; wrong values of one type that
    violate one clause, grouped by what is given and wanted (a NaN, an infinity, a zero or another number); others that
    violate one clause. `first` is the failure with the shortest id, `count` the number of failures, `operator_versions`
    the versions that fail so.
    """

    first: Result
    count: int
    operator_versions: tuple[str, ...]

    @property
    def where(self) -> str:
        """Return the operators, or the versions of a single one: `in versions 13, 18`; empty for a single version."""
        if len(self.operator_versions) == 1:
            return ""
        split = [split_version(o) for o in self.operator_versions]
        operators = dict.fromkeys(operator.partition("/")[2] for operator, _ in split)
        if len(operators) == 1:
            return f"in versions {', '.join(version for _, version in split)}"
        return f"in {len(operators):,} operators: {', '.join(operators)}"


@dataclass(frozen=True)
class FailingOperator:
    """An operator (`onnx/Div`) with failures: their number, the worst outcome, versions, and the number by backend."""

    operator: str
    count: int
    worst: Outcome
    versions: tuple[str, ...]
    backends: Mapping[str, int]


_Kind: TypeAlias = tuple[str, ...]
_KINDS = 200
WORST: Sequence[Outcome] = (
    *(Outcome.CRASH, Outcome.TIMEOUT, Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.ERROR),
    *(Outcome.ACCEPTED_INVALID, Outcome.RUNNER_ERROR),
)
"""The outcomes that fail, worst first."""


class Failures:
    """Collects failures as they arrive; memory grows with the number of kinds, which is small.

    If a backend's messages always differ, those beyond the first `_KINDS` of an operator and outcome count as one kind.
    """

    def __init__(self, demands: Demands | None = None) -> None:
        self.demands = demands or Demands()
        self._first: dict[_Kind, Result] = {}
        self._counts: dict[_Kind, Counter[str]] = {}  # by operator version
        self._widths: Counter[_Kind] = Counter()  # kinds by backend, operator and outcome

    def add(self, result: Result, suspended: str | None = None) -> None:
        """Add a result if it fails, or our side failed."""
        if result.outcome is Outcome.RUNNER_ERROR or self.demands.fails(result, suspended=suspended is not None):
            kind = self._known(kind_of(result), _place_of(result))
            known = self._first.setdefault(kind, result)
            if (len(result.case), result.case) < (len(known.case), known.case):  # the easiest to read
                self._first[kind] = result
            self._counts.setdefault(kind, Counter())[operator_version_of(result.case)] += 1

    def _known(self, kind: _Kind, parent: _Kind) -> _Kind:
        """Return the kind, or the collective kind if its backend, operator and outcome have too many."""
        if kind in self._first:
            return kind
        if self._widths[parent] < _KINDS:
            self._widths[parent] += 1
            return kind
        return parent

    @property
    def count(self) -> int:
        """Return the number of failures."""
        return sum(counts.total() for counts in self._counts.values())

    @property
    def kinds(self) -> int:
        """Return the number of kinds of failures."""
        return len(self._counts)

    def groups(self) -> list[FailureGroup]:
        """Return all kinds, in order of first appearance."""
        return [self._group(kind) for kind in self._first]

    def worst(self) -> list[FailureGroup]:
        """Return all kinds, worst outcomes first: of each backend and outcome the most frequent, then the next."""
        ranked = sorted(self._first, key=lambda kind: (badness(self._first[kind]), -self._counts[kind].total()))
        return [self._group(kind) for kind in _in_turn(ranked)]

    def operators(self) -> list[FailingOperator]:
        """Return the operators that fail, worst outcomes first, then by the number of failures."""
        counts: dict[str, Counter[tuple[str, str]]] = {}  # by version and backend
        worst: dict[str, Result] = {}
        for kind, by_version in self._counts.items():
            first = self._first[kind]
            for operator_version, count in by_version.items():
                operator, version = split_version(operator_version)
                counts.setdefault(operator, Counter())[version, first.backend] += count
                worst[operator] = min(worst.get(operator, first), first, key=badness)
        operators = [
            FailingOperator(
                operator,
                outcomes.total(),
                worst[operator].outcome,
                tuple(sorted({version for version, _ in outcomes}, key=natural)),
                {backend: sum(n for (_, b), n in outcomes.items() if b == backend) for _, backend in sorted(outcomes)},
            )
            for operator, outcomes in counts.items()
        ]
        return sorted(
            operators, key=lambda operator_: (badness(worst[operator_.operator]), -operator_.count, operator_.operator)
        )

    def _group(self, kind: _Kind) -> FailureGroup:
        return FailureGroup(self._first[kind], self._counts[kind].total(), tuple(self._counts[kind]))


def badness(result: Result) -> int:
    """Return the rank of a failure by its outcome, 0 for the worst."""
    return WORST.index(result.outcome) if result.outcome in WORST else len(WORST)


def _in_turn(kinds: Iterable[_Kind]) -> Iterator[_Kind]:
    """Yield the first kind of each backend and outcome, then the second ones, and so on."""
    queues: dict[_Kind, list[_Kind]] = {}
    for kind in kinds:
        queues.setdefault(kind[:2], []).append(kind)
    for turn in range(max(map(len, queues.values()), default=0)):
        yield from (queue[turn] for queue in queues.values() if turn < len(queue))


def _place_of(result: Result) -> _Kind:
    """Return backend, outcome and operator of a failure."""
    return (result.backend, str(result.outcome), split_version(operator_version_of(result.case))[0])


def kind_of(result: Result) -> tuple[str, ...]:
    """Return what failures that seem to have one cause share; it begins with backend and outcome."""
    types = group_of(result).types
    backend, outcome, operator = _place_of(result)
    clause = result.clauses[0] if result.clauses else ""
    detail = (result.detail or "")[:_READ]
    if result.outcome is Outcome.WRONG_VALUE:
        match = _MISMATCH.search(detail)
        shown: tuple[str, ...] = (types, clause, result.reason or "", *(map(_sort_of, match.groups()) if match else ()))
    elif result.outcome in (Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.ACCEPTED_INVALID):
        shown = (clause,)
    else:
        shown = (_without_numbers(detail),)
        if result.outcome is Outcome.ERROR and detail:  # refusals in the same words have one cause
            operator = ""
    return (backend, outcome, operator, *shown)


def symptom_of(result: Result) -> tuple[str, ...]:
    """Return the part of a failure that stays the same while its case is made smaller: the outcome and its symptom.

    For wrong values, that is whether a NaN, an infinity or a number is given in place of another, or a zero of the
    wrong sign. For wrong shapes, it is how they differ; for errors, crashes and timeouts, the message without numbers
    and without the process's last output.
    """
    detail = (result.detail or "")[:_READ]
    shown: tuple[str, ...] = (str(result.outcome), result.reason or "")
    if result.outcome is Outcome.WRONG_VALUE:
        match = _MISMATCH.search(detail)
        sorts = tuple(map(_sort_of, match.groups())) if match else ()
        return (*shown, *(sorts if set(sorts) == {"zero"} else (sort.replace("zero", "number") for sort in sorts)))
    if result.outcome is Outcome.WRONG_SHAPE:
        return (*shown, *_shapes_differ(detail))
    if result.outcome in (Outcome.WRONG_DTYPE, Outcome.ACCEPTED_INVALID):
        return shown
    return (*shown, _without_numbers(detail.partition("; last it wrote:")[0]))


def _shapes_differ(detail: str) -> list[str]:
    """Return how wrong shapes differ from right ones: in rank, or in extents that are larger, smaller, or both."""
    got, _, want = detail.partition("\n")[0].partition("want ")
    differences = set()
    for pair in zip(*([s.split(",") if s else [] for s in _SHAPE.findall(text)] for text in (got, want)), strict=False):
        actual, expected = ([int(extent) for extent in shape] for shape in pair)
        if len(actual) != len(expected):
            differences.add("more dimensions" if len(actual) > len(expected) else "fewer dimensions")
        else:
            differences |= {"larger" if a > b else "smaller" for a, b in zip(actual, expected, strict=True) if a != b}
    return sorted(differences)


_READ = 2_000  # characters of a message that identify its kind
_MISMATCH = re.compile(r"got (\S+?),? want (\S+)")
_SHAPE = re.compile(r"\[((?:\d+(?:, )?)*)\]")
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE)
_REPEATED = re.compile(r"([^,;()\[\]]+)(?:,\s*\1)+,?")  # as in a list of shapes or types, of any length
_TYPED = re.compile(r"\(((?:\"[^\"]*\"(?:: ?[\w.()]+)?,? ?)+)\)")  # a list of values, each with its type
_NAME = re.compile(r"\"([^\"]+)\":")
_MESSAGE = 300


@functools.lru_cache(maxsize=1024)  # the draws of a case often fail with the same message
def _without_numbers(message: str) -> str:
    """Return a message without shapes, addresses, numbers, and names of inputs.

    Names are those that the message gives types to, as in `("X": tensor(float))`.
    """
    line = " ".join(message.split())
    names = {re.escape(name) for listed in _TYPED.findall(line) for name in _NAME.findall(listed)}
    line = _TYPED.sub("(…)", line)
    if names:
        line = re.sub(rf"(?<!\w)(?:{'|'.join(names)})(?!\w)", "…", line)
    bare = _NUMBER.sub("#", line)
    return _REPEATED.sub(r"\1", bare).replace("(#,)", "(#)").replace("()", "(#)")[:_MESSAGE]


def _sort_of(number: str) -> str:
    """Return `nan`, `inf`, `zero` or `number` for a value in a mismatch."""
    bare = number.strip("-+,").lower()
    if bare in ("nan", "inf"):
        return bare
    return "number" if bare.strip("0.") else "zero"
