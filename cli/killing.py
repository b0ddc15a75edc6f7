"""Runs the cases of one operator version against mutants and compliant variants, in this process, and judges them."""

from __future__ import annotations

import functools
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeAlias

import numpy as np

from ..cases.batch import Batch, Bounds, Expectation, any_of_lane
from ..cases.elements import Array
from ..cases.errors import OpconformError
from ..cases.lock import SHORT, CaseDigests, lock_of
from ..cases.program import Structure
from ..cases.results import Outcome
from ..generators.mutants.backends import mutants_of
from ..generators.mutants.corners import CORNER_GROUPS
from ..generators.mutants.effects import grid, nothing_like
from ..generators.mutants.formula import Answering, SameFormula, formula_mutant, invocations
from ..generators.mutants.implementation import Answer, Implementation, Memory, Met, Refused, Trigger, variants_of
from ..generators.mutants.probing import can_be_told, is_about, probes
from ..generators.mutants.shapes import broadcast_levels
from ..generators.mutants.triggers import excluded
from ..generators.source import GeneratedCases
from ..reports.matrix import NO_CASE, Fate, Status, VersionMatrix
from ..runners.judging.answers import Answers, Stack
from ..runners.judging.judge import Verdict, judge
from ..specs.loader import Library
from ..specs.model import Spec, VersionSpec
from .bounds import blindness, tightness

KILLS = frozenset({Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.ERROR})
"""The outcomes that expose a mutant; an answer to an invalid input does not."""

_TRIED = 8  # programs with a long formula on which a mutant is tried and makes a difference
_WEIGHTS = {"unmet": 0.0, "same": 0.05, "unseen": 0.05}  # the same for programs in which no difference is seen
_STEPS = 1 << 13  # maximum elements for variants that add up step by step
_SMOKE = 6  # cases of the smoke suite
_SMALL = 384  # maximum elements of the inputs and outputs of a smoke case, if there are cases that small
_CANDIDATES = 10  # groups from which the smoke suite is chosen, besides the smallest that kills each mutant
_CHOICES = 4  # how many of these that kill a mutant are looked for
_BOUND = "bound"
_ZERO = "sign of a zero"
_FACTORS = (100, 10, 2)  # as texts show it, the ratio of a bound to the change that it admits
_PROBED = 12  # calls with other data on which a mutant is tried
_PROBED_SIZE = 4096  # elements of these at most
_NOWHERE = np.zeros(1, bool)
_ORDER: tuple[Status, ...] = ("unmet", "same", "unseen", "admitted", "killed")


@dataclass(frozen=True, slots=True)
class Kill:
    """A case that an implementation fails, and the outcome."""

    id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of an effect on a case: the kill, None if it is admitted or makes no difference.

    `differs`: whether it makes a difference other than the sign of a zero that may have either sign. `by`: what admits
    it, options of silences or the bound.
    """

    differs: Array
    kills: tuple[Kill | None, ...]
    by: tuple[str, ...]


Pardon: TypeAlias = Mapping[str, float]
"""What admits a wrong answer: options of silences, or the bound with its ratio to the change."""


def _merged(first: Pardon, second: Pardon) -> Pardon:
    return {why: min(first.get(why, np.inf), second.get(why, np.inf)) for why in sorted({*first, *second})}


def _pardon_text(pardon: Pardon) -> str:
    """Return a pardon in words, rounded, so that many have the same text."""
    words = []
    for why, times in pardon.items():
        factor = next((n for n in _FACTORS if n <= times < np.inf), None)
        words.append(why if factor is None else f"{why}, over {factor} times the change")
    return "; ".join(words)


@dataclass(eq=False)
class Bench:
    """Valid cases of one program that share what decides shapes, as one batch, to run against many implementations.

    `runs` and `resized` say which run of the program each case is, as described in `Met`.
    """

    batch: Batch
    answering: Answering
    runs: Sequence[int]
    resized: Sequence[bool]
    _verdicts: dict[bytes, tuple[tuple[Kill, ...], Pardon]] = field(default_factory=dict)

    @property
    def size(self) -> tuple[int, int, str]:
        """Return the sort key of small cases: few elements, then short ids."""
        elements = sum(array[0, ...].size for array in self.batch.inputs)
        return elements, len(self.batch.ids[0]), self.batch.ids[0]

    @property
    def is_small(self) -> bool:
        """Return whether a case has few elements, including outputs."""
        return self.size[0] + sum(output[0, ...].size for output in self.answering.right) <= _SMALL

    def put(
        self, implementation: Implementation, memory: Memory | None = None
    ) -> tuple[Status, tuple[Kill, ...], Pardon]:
        """Return the result of an implementation here: the cases that it fails, or what admits its answer."""
        if implementation.overwrites:
            kills = self.overwritten()
            return ("admitted" if kills else "unmet"), kills, {}
        try:
            answer = self.answering.answer(implementation, memory)
        except SameFormula:
            return "same", (), {}
        except Exception:  # a refusal, or a defect that raises, which looks like one
            return "admitted", self._refused, {"a refusal": np.inf}
        right = self.answering.right
        if len(answer) == len(right) and all(map(operator.is_, answer, right)):
            return "unmet", (), {}
        content = _content(answer)
        if content == self._right:  # an effect on the answer that leaves it unchanged does nothing
            return "unmet" if implementation.kind == "answer" else "unseen", (), {}
        if content not in self._verdicts:
            self._verdicts[content] = self.judged(answer)
        return "admitted", *self._verdicts[content]

    def judged(self, answer: Answer) -> tuple[tuple[Kill, ...], Pardon]:
        """Return the cases that an answer fails; if there are none, what admits it where it differs."""
        verdicts = self._judged(answer)
        kills = tuple(filter(None, map(self._kill, self.batch.ids, verdicts)))
        pardon: Pardon = {}
        if not kills:
            for lane in np.flatnonzero(_lanes_that_differ(answer, self.answering.right)).tolist():
                pardon = _merged(pardon, self._pardon(answer, lane, verdicts[lane]))
        return kills, pardon

    def overwritten(self) -> tuple[Kill, ...]:
        """Return the cases whose inputs differ from zero, and so would be changed by overwriting."""
        changed = np.zeros(len(self.batch), bool)
        for array in self.batch.inputs:
            changed |= any_of_lane(array != nothing_like(array))
        ids = (id_ for id_, is_changed in zip(self.batch.ids, changed, strict=True) if is_changed)
        return tuple(Kill(id_, Outcome.WRONG_VALUE) for id_ in ids)

    @functools.cached_property
    def probes(self) -> tuple[Answering, ...]:
        """Return the call on data of every kind."""
        return tuple(probes(self.answering))

    @functools.cached_property
    def met(self) -> Met:
        """Return what triggers depend on."""
        return Met(self.answering.invocation, self.answering.right, self.runs, self.resized)

    def shown(self, effect: Implementation) -> Shown | None:
        """Return the result of an effect without a trigger; None if it makes no difference."""
        right = self.answering.right
        try:
            answer = self.answering.answer(effect)
        except Exception:  # as above
            refused = {kill.id: kill for kill in self._refused}
            kills = tuple(map(refused.get, self.batch.ids))
            return Shown(np.ones(len(kills), bool), kills, ("a refusal",) * len(kills))
        differs = _lanes_that_differ(answer, right)
        if not differs.any():
            return None
        verdicts = self._judged(answer)
        kills = tuple(map(self._kill, self.batch.ids, verdicts))
        by = [""] * len(kills)
        for lane in np.flatnonzero(differs).tolist():
            pardon = {} if kills[lane] else self._pardon(answer, lane, verdicts[lane])
            differs[lane] = pardon.keys() != {_ZERO}
            by[lane] = _pardon_text(pardon)
        return Shown(differs, kills, tuple(by)) if differs.any() else None

    def _pardon(self, answer: Answer, lane: int, verdict: Verdict) -> Pardon:
        """Return what admits an answer in one lane that differs from the right one and passes."""
        silences = _admitting(verdict, self._usual[lane])
        if silences:
            return {silences: np.inf}
        options = [o for o in self.batch.expectation.options if o.kind == "values" and o.applies[lane % len(o.applies)]]
        pardon: Pardon = {"a test of whole outputs": np.inf} if any(o.checks for o in options) else {}
        for index, (output, right) in enumerate(zip(answer, self.answering.right, strict=False)):
            bounds = next((o.outputs[index] for o in options if len(o.outputs) > index), None)
            if bounds is not None and output.shape == right.shape and output.shape[1:] == bounds.shape:
                pardon = _merged(pardon, _admitted(output[lane, ...], right[lane, ...], bounds, lane))
        return pardon or {_BOUND: np.inf}

    @functools.cached_property
    def _usual(self) -> list[Verdict]:
        return self._judged(self.answering.right)

    @functools.cached_property
    def _right(self) -> bytes:
        return _content(self.answering.right)

    @staticmethod
    def _kill(id_: str, verdict: Verdict) -> Kill | None:
        return Kill(id_, verdict.outcome) if verdict.outcome in KILLS else None

    def _judged(self, answer: Answer) -> list[Verdict]:
        lanes = range(len(self.batch))
        if any(len(out) != len(lanes) for out in answer):
            raise ValueError("an answer has not as many lanes as there are cases")
        values = (option for option in self.batch.expectation.options if option.kind == "values")
        structure = next((option.structure for option in values), ())
        if sum(map(_size, structure)) != len(answer):  # a sequence of another length: nothing fits it
            structure = ()
        return judge(self.batch, Answers(len(lanes), (Stack(lanes, tuple(answer), structure),)))

    @functools.cached_property
    def _refused(self) -> tuple[Kill, ...]:
        admitted = [o.applies for o in self.batch.expectation.options if o.kind in ("rejected", "anything")]
        free = np.any(admitted, axis=0) if admitted else np.zeros(len(self.batch.ids), bool)
        return tuple(Kill(id_, Outcome.ERROR) for id_, ok in zip(self.batch.ids, free, strict=True) if not ok)


def _size(structure: Structure) -> int:
    """Return the number of tensors in a value."""
    if structure.kind in ("sequence", "optional"):
        return sum(map(_size, structure.items))
    return 1 if structure.kind == "tensor" else len(("keys", "values"))


def _content(answer: Answer) -> bytes:
    parts = (a.tobytes() if a.dtype != object else repr(a.tolist()).encode() for a in answer)
    return repr([(a.dtype.name, a.shape) for a in answer]).encode() + b"".join(parts)


def _lanes_that_differ(answer: Answer, right: Answer) -> Array:
    lanes = len(right[0]) if right else 0
    if len(answer) != len(right) or any(
        a.dtype != b.dtype or a.shape != b.shape for a, b in zip(answer, right, strict=True)
    ):
        return np.ones(lanes, bool)
    differing = np.zeros(lanes, bool)
    for a, b in zip(answer, right, strict=True):
        if a is b or not a.size:
            continue
        if a.dtype == object:
            pairs = zip(a.reshape(lanes, -1).tolist(), b.reshape(lanes, -1).tolist(), strict=True)
            differing |= np.array([first != second for first, second in pairs])
        else:
            first, second = (np.ascontiguousarray(x).reshape(lanes, -1).view(np.uint8) for x in (a, b))
            here = (first != second).any(axis=1)
            if a.dtype.kind == "f" and here.any():  # all NaNs are equal
                same = ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
                here &= ~same.reshape(lanes, -1).all(axis=1)
            differing |= here
    return differing


def _admitted(answer: Array, right: Array, bounds: Bounds, lane: int) -> Pardon:
    """Return what admits the wrong elements of one output: its bounds, or the flags beside them."""
    if answer.dtype.hasobject or answer.dtype.kind in "bc" or bounds.value.dtype.hasobject:
        return {} if np.array_equal(answer, right) else {_BOUND: np.inf}
    with np.errstate(all="ignore"):
        given, wanted = answer.astype(np.float64), right.astype(np.float64)
        zero = (given == 0) & (wanted == 0) & (np.signbit(given) != np.signbit(wanted))
        odd = ~(np.isfinite(given) & np.isfinite(wanted))
        value, lower, upper = (
            a[lane % len(a), ...].astype(np.float64) for a in (bounds.value, bounds.lower, bounds.upper)
        )
        differs = (given != wanted) & ~odd
        times = np.where(given > value, upper - value, value - lower) / np.abs(given - value)
        least = float(np.min(np.where(differs & ~np.isnan(times), times, np.inf), initial=np.inf))
    strange = odd & (given != wanted) & ~(np.isnan(given) & np.isnan(wanted))
    kinds = ((_BOUND, differs, max(least, 1.0)), (_ZERO, zero, np.inf), ("infinities and NaN", strange, np.inf))
    return {why: times for why, there, times in kinds if there.any()}


def _admitting(verdict: Verdict, usual: Verdict) -> str:
    """Return what admits an answer: for each silence the options left, if the right answer has more; empty if none."""
    other = [
        f"{silence}={'|'.join(verdict.behaviour[silence])}"
        for silence, options in usual.behaviour.items()
        if silence in verdict.behaviour and set(options) - set(verdict.behaviour[silence])
    ]
    return " ".join(other)


def benches(source: GeneratedCases, ids: Sequence[str]) -> tuple[list[Bench], str]:
    """Return the valid cases with these ids of one operator version, small ones first, and the digest of all cases."""
    valid: list[Bench] = []
    digests: list[CaseDigests] = []
    runs: dict[str, list[tuple[tuple[int, ...], ...]]] = {}
    for batch in source.batches(ids):
        digests += map(CaseDigests, batch.ids, batch.digests, batch.expectation_digests)
        before = runs.setdefault(batch.program.key, [])
        first, shapes = len(before), tuple(array.shape[1:] for array in batch.inputs)
        resized = bool(before) and before[-1] != shapes
        before += [shapes] * len(batch)
        if not batch.expectation.invalid:
            for lanes, part, answering in _parts(source.library, batch):
                numbers = [first + lane for lane in lanes]
                valid.append(Bench(part, answering, numbers, [resized and lane == 0 for lane in lanes]))
    valid.sort(key=lambda bench: bench.size)
    return valid, lock_of("", "", digests).digest[:SHORT]


def bench_of(library: Library, batch: Batch) -> list[Bench]:
    """Return cases as implementations run them, none a run after another; None if they are refused."""
    parts = _parts(library, batch)
    return [Bench(part, answering, [0] * len(lanes), [False] * len(lanes)) for lanes, part, answering in parts]


def _parts(library: Library, batch: Batch) -> Iterator[tuple[Sequence[int], Batch, Answering]]:
    """Yield a batch in parts that share what decides shapes."""
    for lanes, invocation in invocations(library, batch.program, batch.inputs):
        try:
            answering = Answering(invocation)
        except Refused:
            continue  # no option has values: every answer is refused or admitted alike
        if len(lanes) == len(batch):
            yield lanes, batch, answering
        else:
            expectation = batch.expectation.of_lanes(np.array(lanes), len(lanes))
            yield lanes, part_of(batch, lanes, expectation), answering


def part_of(batch: Batch, lanes: Sequence[int], expectation: Expectation) -> Batch:
    """Return the cases in these lanes, which have this expectation."""
    inputs = tuple(array[np.array(lanes)] for array in batch.inputs)
    return replace(batch, ids=[batch.ids[lane] for lane in lanes], inputs=inputs, expectation=expectation)


def exposed(spec: Spec, version: VersionSpec, every: Sequence[Bench]) -> Trial:
    """Return the mutants of a version and its triggers, run against cases until one exposes each.

    Raises OpconformError if a case has a trigger that a clause excludes.
    """
    known = {name for bench in every for name in bench.answering.corners}
    known |= broadcast_levels(bench.answering.invocation for bench in every)
    wanted = [(trigger, effects, excluded(version, trigger)) for trigger, effects in grid(spec, version, known)]
    for trigger, _, clause in wanted:
        if clause is not None and (met := next((b for b in every if trigger.lanes(b.met).any()), None)):
            problem = f"clause {clause} excludes {trigger.name}, which {met.batch.ids[0]} has"
            raise OpconformError(f"{version.operator}: {problem}")
    triggers = _Grid(
        [(trigger, effects) for trigger, effects, clause in wanted if clause is None],
        {trigger.name: clause for trigger, _, clause in wanted if clause is not None},
    )
    trial = Trial(every, {mutant.name: mutant for mutant in mutants_of(spec, version)}, triggers)
    trial.run()
    trial.drop_corners_without_data()
    return trial


def tested(source: GeneratedCases, name: str, ids: Sequence[str]) -> VersionMatrix:
    """Return the kill matrix of the cases with these ids, all of one operator version."""
    spec, key = source.library.operator_version(name)
    version = spec.version(key)
    every, digest = benches(source, ids)
    trial = exposed(spec, version, every)
    variants = list(variants_of(version))
    fates = trial.fates()
    levels, smoke = trial.grid.levels(), trial.smoke()
    free = {level: by for level, why in levels.items() if (by := trial.grid.free(level))}
    return VersionMatrix(
        name,
        digest,
        len(ids),
        tried_by_kind(fates),
        tuple(f for f in fates if f.status != "killed" and f.kind != "trigger"),
        len(variants),
        tuple(fate for variant in variants for fate in _blamed(variant, every)),
        dict(Counter(level.partition("=")[0] for level in levels if level not in free)),
        {level: why for level, why in levels.items() if why and level not in free},
        tuple(case for case in ids if case in smoke),
        blindness(bench.batch.expectation for bench in every),
        tuple(f for f in fates if f.status == "killed"),
        excluded={**trial.grid.excluded, **free},
        tight=tightness(bench.batch.expectation for bench in every),
    )


def tried_by_kind(fates: Sequence[Fate]) -> dict[str, tuple[int, int]]:
    """Return the number of mutants of each kind, and of those that are killed."""
    tried = Counter(fate.kind for fate in fates)
    killed = Counter(fate.kind for fate in fates if fate.status == "killed")
    return {kind: (count, killed[kind]) for kind, count in tried.items()}


@dataclass
class _Grid:
    """Triggers and effects: an effect runs once against cases, and shows under each trigger that they meet."""

    wanted: list[tuple[Trigger, Sequence[Implementation]]]
    excluded: Mapping[str, str]
    killed: dict[tuple[str, str], Kill] = field(default_factory=dict)
    admitted: dict[tuple[str, str], str] = field(default_factory=dict)
    cases: dict[str, set[str]] = field(default_factory=dict)

    def run(self, bench: Bench) -> None:
        """Run the effects that are not yet exposed under a trigger that these cases meet."""
        shown: dict[int, Shown | None] = {}
        for trigger, effects in self.wanted:
            left = [effect for effect in effects if (trigger.name, effect.name) not in self.killed]
            lanes = trigger.lanes(bench.met) if left else _NOWHERE
            for effect in left if lanes.any() else ():
                if id(effect) not in shown:
                    shown[id(effect)] = bench.shown(effect)
                self._note(trigger, effect, shown[id(effect)], lanes)

    def _note(self, trigger: Trigger, effect: Implementation, shown: Shown | None, lanes: Array) -> None:
        pair = trigger.name, effect.name
        if shown is None:
            return
        for lane in np.flatnonzero(shown.differs & lanes).tolist():
            kill = shown.kills[lane]
            if kill is not None:
                self.killed[pair] = kill
                self.admitted.pop(pair, None)
                self.cases.setdefault(trigger.name, set()).add(kill.id)
                return
            if self.admitted.get(pair, _BOUND).startswith(_BOUND):
                self.admitted[pair] = shown.by[lane]

    def smoke(self, candidates: Iterable[Bench]) -> Mapping[str, set[str]]:
        """Return cases that expose each trigger: the first ones that did, and more candidates."""
        exposing = {level: set(ids) for level, ids in self.cases.items()}
        for bench in candidates:
            shown: dict[int, Shown | None] = {}
            for trigger, (effect, *_) in self.wanted:
                if trigger.name in exposing and trigger.lanes(bench.met).any():
                    if id(effect) not in shown:
                        shown[id(effect)] = bench.shown(effect)
                    result = shown[id(effect)]
                    met = zip(trigger.lanes(bench.met), () if result is None else result.kills, strict=False)
                    exposing[trigger.name].update(kill.id for there, kill in met if there and kill is not None)
        return exposing

    def levels(self) -> Mapping[str, str]:
        """Return for each trigger why it is hidden: nothing shows under it, or effects that show are not exposed."""
        reasons_by_trigger: dict[str, str] = {}
        for trigger, effects in self.wanted:
            pairs = [(trigger.name, effect.name) for effect in effects]
            reasons: dict[str, list[str]] = {}
            for pair in pairs:
                if pair in self.admitted:
                    reasons.setdefault(self.admitted[pair], []).append(pair[1])
            exposed = any(pair in self.killed for pair in pairs)
            if exposed:  # an answer that another option of a silence also gives is not a defect
                reasons = {by: some for by, some in reasons.items() if by.startswith(_BOUND)}
            words = "; ".join(f"{', '.join(some)} ({by})" for by, some in sorted(reasons.items()))
            if not exposed and len(reasons) == 1:
                words = f"every effect ({next(iter(reasons))})"
            reasons_by_trigger[trigger.name] = words if exposed or words else NO_CASE
        return reasons_by_trigger

    def free(self, level: str) -> str:
        """Return the options of silences that admit all effects under a trigger; empty if not all are admitted."""
        reasons = {why for (trigger, _), why in self.admitted.items() if trigger == level}
        exposed = any(trigger == level for trigger, _ in self.killed)
        return "" if exposed or any(why.startswith(_BOUND) for why in reasons) else "; ".join(sorted(reasons))

    def fates(self) -> Iterator[Fate]:
        """Yield the fate of each effect under each trigger where it shows."""
        for trigger, effects in self.wanted:
            for effect in effects:
                pair = trigger.name, effect.name
                text = f"with {trigger.text}: {effect.text}"
                if pair in self.killed:
                    kill = self.killed[pair]
                    yield Fate(":".join(pair), "trigger", text, "killed", kill.id, str(kill.outcome))
                elif pair in self.admitted:
                    yield Fate(":".join(pair), "trigger", text, "admitted")


@dataclass
class Trial:
    """The mutants of a version and its cases, small ones first: each mutant is tried until a case kills it.

    `killed` has the cases that kill each killed mutant, `grid` the triggers.
    """

    benches: Sequence[Bench]
    mutants: dict[str, Implementation]
    grid: _Grid
    killed: dict[str, tuple[Kill, ...]] = field(default_factory=dict)
    _best: dict[str, Status] = field(default_factory=dict)
    _pardons: dict[str, Pardon] = field(default_factory=dict)
    _before: dict[str, str] = field(default_factory=dict)
    _memories: dict[tuple[str, str], Memory] = field(default_factory=dict)
    _tried: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def run(self) -> None:
        """Run them all."""
        for bench in self.benches:
            for name in bench.answering.deviations:
                if name not in self.mutants:
                    self.mutants[name] = formula_mutant(name)
            for mutant in self.mutants.values():
                if mutant.name not in self.killed and not mutant.shares and not self._is_done(mutant, bench):
                    self._put(mutant, bench)
            self.grid.run(bench)
        for mutant in self.mutants.values():
            if mutant.shares:
                self._put_shared(mutant)

    def _is_done(self, mutant: Implementation, bench: Bench) -> bool:
        """Return whether enough programs with a long formula have shown that they do not expose this mutant."""
        return bench.answering.is_long and mutant.kind != "state" and self._tried[mutant.name] >= _TRIED

    def _put(self, mutant: Implementation, bench: Bench) -> None:
        key = bench.batch.program.key
        memory = self._memories.setdefault((mutant.name, key), {}) if mutant.kind == "state" else None
        status, kills, pardon = bench.put(mutant, memory)
        self._tried[mutant.name] += _WEIGHTS.get(status, 1)
        self._pardons[mutant.name] = _merged(self._pardons.get(mutant.name, {}), pardon)
        if _ORDER.index(status) > _ORDER.index(self._best.get(mutant.name, "unmet")):
            self._best[mutant.name] = status
        if kills:
            self.killed[mutant.name] = kills
            if mutant.recall is not None:  # it needs an earlier run
                same = (bench for bench in self.benches if bench.batch.program.key == key)
                self._before[mutant.name] = next(same).batch.ids[0]

    def _put_shared(self, mutant: Implementation) -> None:
        """Judge answers that share one buffer for all runs of a program, as the last run of their shapes left it."""
        last: dict[tuple[object, ...], tuple[int, str, Answer]] = {}
        for bench in self.benches:
            key, right = _buffer(bench), bench.answering.right
            lane = int(np.argmax(bench.runs))
            if key not in last or last[key][0] < bench.runs[lane]:
                last[key] = bench.runs[lane], bench.batch.ids[lane], [out[lane : lane + 1] for out in right]
        for bench in self.benches:
            number, id_, outs = last[_buffer(bench)]
            if all(run == number for run in bench.runs):
                continue
            kills, pardon = bench.judged([np.repeat(out, len(bench.runs), 0) for out in outs])
            self._pardons[mutant.name] = _merged(self._pardons.get(mutant.name, {}), pardon)
            self._best[mutant.name] = "admitted" if self._pardons[mutant.name] else "unseen"
            if kills:
                self.killed[mutant.name], self._before[mutant.name] = kills, id_
                return

    def fates(self) -> list[Fate]:
        """Return the fates of the mutants, without equivalent ones."""
        every = map(self._fate, self.mutants.values())
        none = {True: ("same", "unseen", "unmet"), False: ("same",)}
        own = [fate for fate in every if fate.status not in none[self.mutants[fate.name].incidental]]
        right = self._right([fate.name for fate in own if fate.status in ("unseen", "unmet")])
        return [*(fate for fate in own if fate.name not in right), *self.grid.fates()]

    def _right(self, names: Sequence[str]) -> set[str]:
        """Return which of the unexposed mutants are right: on any data, or because their attribute has no effect."""
        right = set()
        for name in names:
            mutant = self.mutants[name]
            inert = bool(mutant.about) and self._best.get(f"{mutant.about}-ignored") == "same"
            if inert or (can_be_told(mutant) and self._is_wrong(mutant) is False):
                right.add(name)
        return right

    def drop_corners_without_data(self) -> None:
        """Drop the triggers of numbers that neither the cases nor data of every kind set off."""
        set_off = self.grid.killed.keys() | self.grid.admitted.keys()
        self.grid.wanted = [
            (trigger, effects)
            for trigger, effects in self.grid.wanted
            if trigger.group not in CORNER_GROUPS
            or any((trigger.name, effect.name) in set_off or self._is_wrong(effect) for effect in effects)
        ]

    def _is_wrong(self, mutant: Implementation) -> bool | None:
        """Return whether a mutant answers a call on data of every kind wrongly; None if there is no such call."""
        tried = 0
        for bench in self.benches:
            if bench.size[0] > _PROBED_SIZE or not is_about(mutant, bench.answering):
                continue
            for probe in bench.probes:
                try:
                    answer = probe.answer(mutant)
                except Exception:  # as above
                    return True
                if _lanes_that_differ(answer, probe.right).any():
                    return True
            tried += 1
            if tried == _PROBED:
                break
        return False if tried else None

    def _fate(self, mutant: Implementation) -> Fate:
        if mutant.name in self.killed:
            kill = self.killed[mutant.name][0]
            return Fate(mutant.name, mutant.kind, mutant.text, "killed", kill.id, str(kill.outcome))
        status = self._best.get(mutant.name, "unmet")
        why = _pardon_text(self._pardons.get(mutant.name, {})) if status == "admitted" else ""
        return Fate(mutant.name, mutant.kind, mutant.text, status, why=why)

    def smoke(self) -> set[str]:
        """Return few small cases that kill most mutants, and expose triggers while there is room."""
        firsts = Counter(kills[0].id for kills in self.killed.values())
        small = [bench for bench in self.benches if bench.is_small] or list(self.benches[:1])
        few = {id_ for bench in small for id_ in bench.batch.ids}
        weights = {id(bench): sum(firsts[id_] for id_ in bench.batch.ids) for bench in small}
        candidates = sorted(small, key=lambda bench: -weights[id(bench)])[:_CANDIDATES]
        mutants: dict[str, set[str]] = {}
        for name, kills in self.killed.items():
            mutants[name] = {kill.id for kill in kills}
            if self.mutants[name].kind != "state":
                kills_of_benches = filter(None, (self._kills(name, bench) for bench in candidates))
                mutants[name].update(kill.id for kills in islice(kills_of_benches, _CHOICES) for kill in kills)
        chosen: set[str] = set()
        for wanted in (mutants, self.grid.smoke(candidates)):
            chosen = _covering([ids & few for ids in wanted.values() if ids & few], chosen, most=_SMOKE)
        for name, before in self._before.items():  # defects that only show after another run
            if mutants[name] & chosen and before in few:
                chosen.add(before)
        return chosen or {small[0].batch.ids[0]}

    def _kills(self, name: str, bench: Bench) -> tuple[Kill, ...]:
        if self.killed[name][0].id in bench.batch.ids:
            return self.killed[name]
        if self.mutants[name].kind == "call" and bench.answering.is_long:  # its formula would have to be recorded
            return ()
        return bench.put(self.mutants[name])[1]


def _buffer(bench: Bench) -> tuple[object, ...]:
    """Return what answers that share a buffer have in common: the program, shapes and types."""
    return bench.batch.program.key, *((out.shape[1:], out.dtype.str) for out in bench.answering.right)


def _covering(wanted: Iterable[set[str]], chosen: set[str], most: int) -> set[str]:
    """Return `chosen` and a few more cases, at most `most` in all, to cover as many sets as possible."""
    left, covering = [ids for ids in wanted if not ids & chosen], set(chosen)
    while left and len(covering) < most:
        counted = Counter(id_ for ids in left for id_ in ids)
        case = min(counted, key=lambda id_: (-counted[id_], len(id_), id_))
        covering.add(case)
        left = [ids for ids in left if case not in ids]
    return covering


def _blamed(variant: Implementation, every: Iterable[Bench]) -> Iterator[Fate]:
    """Yield the first case that a variant fails; one that adds up step by step runs on small cases only."""
    for bench in every:
        if bench.size[0] > _STEPS and variant.machine is not None:
            machine = variant.machine(bench.answering.invocation)
            if machine.order in ("compensated", "fused") or machine.division == "running":
                continue
        for kill in bench.put(variant)[1]:
            yield Fate(variant.name, variant.kind, variant.text, "blamed", kill.id, str(kill.outcome))
            return
