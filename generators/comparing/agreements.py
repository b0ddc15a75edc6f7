"""Whether two bonded operator versions give the same answers, on the small inputs of both plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...cases.batch import EXCEPTIONAL, Bounds, Flag
from ...cases.errors import OpconformError
from ...cases.ids import parse_id
from ...cases.program import Body
from ...specs.model import Clause, Silence, VersionSpec, Word
from ..arithmetic.tape import Call, Facts, Recording, Reference
from ..families import reference_of
from ..locked import locked_files, locked_ids
from ..parameters import plain_text
from ..plan import Selection, planned
from ..source import GeneratedCases, missing
from .bonds import Bond
from .differences import Answer, VersionAnswers, answer_of
from .our_calls import OurCall, as_ours, check_same_formula
from .situations import LARGEST, Inexpressible
from .their_calls import THEIRS, Lenient, TheirCall, by_their_rules, facts_for_theirs, recorded, their_call


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The smallest call for which the answers differ in one way, as ours and as theirs.

    `left_out`: a call whose attributes are left out on both sides, by name; else both calls mean the same. `disjoint`:
    no answer is right for both; else one of the two standards admits more. `count`: the calls that differ so.
    """

    ours: OurCall
    theirs: TheirCall
    said: tuple[VersionAnswers, VersionAnswers]
    rules: tuple[tuple[Clause | Silence, ...], tuple[Clause | Silence, ...]]
    disjoint: bool
    left_out: tuple[str, ...] = ()
    count: int = 1


@dataclass(frozen=True)
class Agreement:
    """The comparison of a bond: how many calls both have, how many only one has (by the reason), what differs.

    `prepared`: the values that the function under `by` gave attributes of theirs.
    """

    bond: Bond
    shared: int
    ours_alone: Mapping[str, int]
    theirs_alone: Mapping[str, int]
    disagreements: tuple[Disagreement, ...]
    prepared: Mapping[str, tuple[str, ...]]


def plans(source: GeneratedCases, versions: Iterable[VersionSpec]) -> dict[str, list[str]]:
    """Return the ids of the planned cases of operator versions; of the lock, if it is fresh."""
    locked, result = locked_files(source.library), dict[str, list[str]]()
    for version in versions:
        name, operator = str(version.operator), f"{version.operator.standard}/{version.operator.name}"
        if name not in result:
            files = [file for file in locked.get(operator, ()) if file.stem.replace("-", "/", 1) == name]
            selection = Selection((f"{name}/*",))
            result[name] = [id_ for _, ids in locked_ids(files) for id_ in ids] or [*planned(source.library, selection)]
    return result


def agreement(
    source: GeneratedCases, bond: Bond, planned_ids: Mapping[str, Sequence[str]] | None = None, most: int | None = None
) -> Agreement:
    """Compare the answers of a bond's versions to the inputs of both plans with at most LARGEST elements.

    planned_ids: the plans, if they are known. most: how many cases of each plan are taken, spread over it; None: all.
    """
    known = plans(source, (bond.ours, bond.theirs)) if planned_ids is None else planned_ids
    return _Comparison(source, bond, known, most).result()


@dataclass(frozen=True, slots=True)
class _SideAnswers:
    """The answers of one side, and the kind and bounds of each option; `clauses` of an invalid call."""

    answers: VersionAnswers
    options: tuple[tuple[str, tuple[Bounds, ...]], ...] = ()


@dataclass
class _Comparison:
    source: GeneratedCases
    bond: Bond
    plans: Mapping[str, Sequence[str]]
    most: int | None

    def result(self) -> Agreement:
        ours_alone: Counter[str] = Counter()
        theirs_alone: Counter[str] = Counter()
        result: dict[tuple[object, ...], list[Disagreement]] = {}
        prepared: dict[str, dict[str, None]] = {}
        shared, met = 0, set[tuple[object, ...]]()
        for call in self._calls(theirs_alone):
            key = _key(call)
            if key in met or self._is_of_ours_alone(call):
                continue
            met.add(key)
            try:
                theirs = their_call(self.bond, call.facts, call.arrays)
                check_same_formula(self.bond, call, theirs)
                both_answers = self._side_answers(call, defaults=False)
            except Inexpressible as error:
                ours_alone[str(error)] += 1
                continue
            except (OpconformError, RecursionError):  # a formula that is no word for such a call
                continue
            shared += 1
            for name in sorted(theirs.prepared):
                prepared.setdefault(name, {})[plain_text(theirs.attributes[name])] = None
            difference = self._difference(call, theirs, both_answers)
            if difference is None and (left_out := self._left_out(call)):
                try:
                    difference = self._difference(call, theirs, self._side_answers(call, defaults=True), left_out)
                except (Inexpressible, OpconformError, RecursionError):
                    difference = None
            if difference is not None:
                result.setdefault(_cause(difference), []).append(difference)
        smallest = [_smallest(some) for some in result.values()]
        smallest.sort(key=lambda d: (bool(d.left_out), not d.disjoint, d.ours.elements, d.ours.case))
        given = {name: tuple(sorted(values)) for name, values in prepared.items()}
        return Agreement(self.bond, shared, ours_alone, theirs_alone, tuple(smallest), given)

    def _calls(self, theirs_alone: Counter[str]) -> Iterator[OurCall]:
        yield from self._planned(self.bond.ours)
        for call in self._planned(self.bond.theirs):
            try:
                yield as_ours(self.bond, call.case, call.facts, call.arrays)
            except Inexpressible as error:
                theirs_alone[str(error)] += 1
            except OpconformError:
                continue

    def _planned(self, version: VersionSpec) -> Iterator[OurCall]:
        ids = [text for text in self.plans.get(str(version.operator), ()) if parse_id(text).size <= LARGEST]
        some = ids if self.most is None or len(ids) <= self.most else ids[:: -(-len(ids) // self.most)]
        for text in some:
            call = planned_call(self.source, text)
            if call is not None:
                yield call

    def _is_of_ours_alone(self, call: OurCall) -> bool:
        """Return whether a call is invalid for its types, or for what theirs have no name for, or no shape."""
        signature = self.bond.ours.signature
        shapeless = {
            each.source for each in self.bond.attributes.values() if each.source and signature.input(each.source)
        }
        return bool({*call.mended} & {*self.bond.only_ours, *signature.types, *shapeless})

    def _side_answers(self, call: OurCall, *, defaults: bool) -> tuple[_SideAnswers, _SideAnswers]:
        bond, wanted = self.bond, tuple(self.bond.outputs.values())
        own = _answers(call, call.facts, reference_of(bond.our_spec, bond.ours), wanted, Call)
        rules = by_their_rules(bond, defaults=defaults)
        return own, _answers(call, facts_for_theirs(bond, call.facts), rules, wanted, Lenient)

    def _left_out(self, call: OurCall) -> tuple[str, ...]:
        """Return the attributes of ours that a call leaves out, if theirs have another default for them."""
        names = []
        for name, bound in self.bond.attributes.items():
            if bound.source is not None and bound.source not in call.facts.given:
                usual, own = self.bond.theirs.signature.defaults.get(name), call.facts.attributes.get(bound.source)
                if usual is not None and own is not None and bound.words.get(plain_text(own), own) != usual:
                    names.append(bound.source)
        return tuple(names)

    def _difference(
        self,
        call: OurCall,
        theirs: TheirCall,
        both_answers: tuple[_SideAnswers, _SideAnswers],
        left_out: tuple[str, ...] = (),
    ) -> Disagreement | None:
        ours, other = both_answers
        both = [[_is_compatible(a, b) for b in other.options] for a in ours.options]
        lonely = [not any(row) for row in both] + [not any(column) for column in zip(*both, strict=True)]
        lonely.append(len({"anything" in {kind for kind, _ in each.options} for each in both_answers}) > 1)
        disjoint = not any(map(any, both))
        if not (ours.options or other.options) or not (disjoint or any(lonely)):
            return None
        said = (ours.answers, other.answers)
        return Disagreement(call, theirs, said, self._rules(call, said, left_out), disjoint, left_out)

    def _rules(
        self, call: OurCall, said: tuple[VersionAnswers, VersionAnswers], left_out: tuple[str, ...]
    ) -> tuple[tuple[Clause | Silence, ...], tuple[Clause | Silence, ...]]:
        (ours, theirs), bond = said, self.bond
        labels = [silence for answers in said for silence in _open(answers)]
        mine = [*ours.clauses, *(name for name in labels if not name.startswith(THEIRS))]
        names = [*theirs.clauses, *(name.removeprefix(THEIRS) for name in labels if name.startswith(THEIRS))]
        mine += _of_default(bond.ours, left_out)
        names += _of_default(bond.theirs, [name for name, bound in bond.attributes.items() if bound.source in left_out])
        if ours.answers and not mine:
            mine += [clause.partition("#")[2] for clause in call.clauses]
            mine = [name for name in mine if name in bond.ours.clauses and bond.ours.clauses[name].when != {}]
        return _known(bond.ours, mine), _known(bond.theirs, names)


def _open(answers: VersionAnswers) -> list[str]:
    """Return the silences whose options differ among answers."""
    pairs = dict.fromkeys(label for answer in answers.answers for label in answer.labels)
    counts = Counter(silence for silence, _ in pairs)
    return [silence for silence, count in counts.items() if count > 1]


def _of_default(version: VersionSpec, names: Sequence[str]) -> list[str]:
    """Return the clauses about attributes that are left out."""
    return [
        clause.id
        for clause in version.clauses.values()
        for name, condition in (clause.when or {}).items()
        if name in names and Word.ABSENT in condition.values and not condition.negated
    ]


def _is_compatible(each: tuple[str, tuple[Bounds, ...]], other: tuple[str, tuple[Bounds, ...]]) -> bool:
    """Return whether one answer is right by both options."""
    (kind, outputs), (other_kind, others) = each, other
    if "rejected" in (kind, other_kind) or "anything" in (kind, other_kind):
        return kind == other_kind or "anything" in (kind, other_kind)
    return len(outputs) == len(others) and all(map(_overlap, outputs, others))


def _overlap(each: Bounds, other: Bounds) -> bool:
    if each.shape != other.shape:
        return False
    nothing = np.zeros(each.value.shape, np.uint8)
    flags, other_flags = (nothing if bounds.flags is None else bounds.flags for bounds in (each, other))
    free = ((flags | other_flags) & Flag.FREE) > 0
    special = (flags & other_flags & EXCEPTIONAL) > 0
    with np.errstate(invalid="ignore"):
        if each.lower.dtype.kind in "OcUS" or other.lower.dtype.kind in "OcUS":
            meet = np.asarray(each.value == other.value)
        else:
            meet = (each.lower <= other.upper) & (other.lower <= each.upper)
    return bool(np.all(meet | free | special))


def _known(version: VersionSpec, names: Sequence[str]) -> tuple[Clause | Silence, ...]:
    rules = (version.clauses.get(name) or version.silences.get(name) for name in dict.fromkeys(names))
    return tuple(rule for rule in rules if rule is not None)


def _key(call: OurCall) -> tuple[object, ...]:
    facts = call.facts
    attributes = tuple(sorted((name, repr(facts.attributes.get(name))) for name in facts.given))
    return (
        attributes,
        tuple(facts.ports.items()),
        tuple(facts.outputs.items()),
        tuple((a.shape, str(a.dtype), a.tobytes() if a.dtype != object else tuple(a.reshape(-1))) for a in call.arrays),
    )


def _cause(difference: Disagreement) -> tuple[object, ...]:
    ours, theirs = difference.said
    open_ = tuple(tuple(_open(said)) for said in difference.said)
    return bool(ours.answers), bool(theirs.answers), ours.why, theirs.why, open_, difference.left_out


def _smallest(some: Sequence[Disagreement]) -> Disagreement:
    def size(each: Disagreement) -> tuple[object, ...]:
        # a single element or none shows least
        elements = each.ours.elements
        shown = elements if elements > 1 and all(a.size for a in each.ours.arrays) else LARGEST + (not elements)
        return not each.disjoint, shown, len(each.ours.facts.given), len(each.ours.case), each.ours.case

    first = min(some, key=size)
    return replace(first, count=len(some))


def planned_call(source: GeneratedCases, text: str) -> OurCall | None:
    """Return a planned case as a call; None if it is large, or more than an operator with tensors."""
    row = source.row(parse_id(text))
    if row.get("unknown") is not Word.ABSENT or row.get("dims") in ("symbolic", "unranked"):
        return None
    part = next(source.parts([text]))
    prepared = part.lane.prepared
    facts = prepared.facts
    if facts.captured or facts.structures or facts.around is not None or tuple(missing(prepared)):
        return None
    if any(isinstance(value, Body) for value in facts.attributes.values()):
        return None
    arrays = tuple(part.arrays)
    elements = sum(array.size for array in arrays)
    mended = tuple(row.edge.mended) if row.edge is not None and row.edge.mended else ()
    return OurCall(text, facts, arrays, elements, part.lane.clauses, mended) if elements <= LARGEST else None


def _answers(
    call: OurCall, facts: Facts, reference: Reference, wanted: Sequence[str], call_type: type[Call]
) -> _SideAnswers:
    """Return the admissible answers of a call. Raises Inexpressible, OpconformError if its formula has none."""
    try:
        return _told_by(call, facts, recorded(reference, facts, call.arrays, call_type), wanted)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # an invalid call
        raise OpconformError(f"{facts.operator}: its formula has no answer: {error!r}") from error


def _told_by(call: OurCall, facts: Facts, recording: Recording, wanted: Sequence[str]) -> _SideAnswers:
    broken = recording.invalid_clause
    if not broken:
        masks = recording.invalid(list(call.arrays), 1)
        broken = next((clause for clause, where in masks.items() if where.any()), "")
    if broken:
        clause = broken.removeprefix(THEIRS)
        return _SideAnswers(VersionAnswers(call.case, (), (clause,), clause))
    expectation = recording.expectation(list(call.arrays), lanes=1)
    given = [name for name, type_ in facts.outputs.items() if type_ is not None]
    places = [given.index(name) for name in wanted if name in given]
    answers: dict[tuple[object, ...], Answer] = {}
    options: list[tuple[str, tuple[Bounds, ...]]] = []
    for option in expectation.options:
        if bool(option.applies.any()):
            options.append((option.kind, tuple(option.outputs[at] for at in places) if option.outputs else ()))
            if not option.exceptional:
                labels = tuple(label for label in option.labels if label[0] in facts.silences)
                answer = answer_of(option, given, places, labels)
                answers.setdefault(answer.content, answer)
    said = VersionAnswers(call.case, tuple(answers.values()), ())
    open_ = {*_open(said)}
    shown = tuple(replace(a, labels=tuple(la for la in a.labels if la[0] in open_)) for a in said.answers)
    return _SideAnswers(replace(said, answers=shown), tuple(options))
