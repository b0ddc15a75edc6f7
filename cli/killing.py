"""Puts mutants and compliant variants before the cases of one operator version, in this process, and judges them."""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..cases.batch import Batch
from ..cases.lock import CaseDigests, lock_of
from ..cases.results import Outcome
from ..generators.mutants.catalogue import mutants_of
from ..generators.mutants.formula import Answering, SameFormula, invocations
from ..generators.mutants.implementation import Answer, Implementation, Memory
from ..generators.mutants.invocation import Refused
from ..generators.mutants.variants import variants_of
from ..generators.source import GeneratedCases
from ..reports.matrix import Fate, Status, VersionMatrix
from ..runners.answers import Answers, Stack
from ..runners.judge import judge

KILLS = frozenset({Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.ERROR})
"""What tells a mutant from a right implementation; an answer to an invalid input does not."""

_TRIED = 12  # programs with a long formula that a mutant of it is put to
_ORDER: tuple[Status, ...] = ("unmet", "same", "unseen", "admitted", "killed")


@dataclass(frozen=True, slots=True)
class Kill:
    """A case that an implementation does not pass, and the outcome."""

    id: str
    outcome: Outcome


@dataclass(eq=False)
class Bench:
    """Valid cases of one program that share what decides shapes, side by side, before many implementations."""

    batch: Batch
    answering: Answering
    _verdicts: dict[bytes, tuple[Kill, ...]] = field(default_factory=dict)

    @property
    def size(self) -> tuple[int, int, str]:
        """What makes the cases small: few elements, then short ids."""
        elements = sum(array[0, ...].size for array in self.batch.inputs)
        return elements, len(self.batch.ids[0]), self.batch.ids[0]

    def put(self, implementation: Implementation, memory: Memory | None = None) -> tuple[Status, tuple[Kill, ...]]:
        """Return what becomes of an implementation here, and the cases that it does not pass."""
        try:
            answer = self.answering.answer(implementation, memory)
        except SameFormula:
            return "same", ()
        except Exception:  # a refusal, or a defect that raises, which looks like one
            return "admitted", self._refused
        right = self.answering.right
        if len(answer) == len(right) and all(map(operator.is_, answer, right)):
            return "unmet", ()
        content = _content(answer)
        if content == self._right:
            return "unseen", ()
        if content not in self._verdicts:
            self._verdicts[content] = tuple(self._judged(answer))
        return "admitted", self._verdicts[content]

    @functools.cached_property
    def _right(self) -> bytes:
        return _content(self.answering.right)

    def _judged(self, answer: Answer) -> Iterator[Kill]:
        lanes = range(len(self.batch))
        if any(len(out) != len(lanes) for out in answer):
            raise ValueError("an answer has not as many lanes as there are cases")
        values = (option for option in self.batch.expectation.options if option.kind == "values")
        structure = next((option.structure for option in values), ())
        answers = Answers(len(lanes), (Stack(lanes, tuple(answer), structure),))
        for id_, verdict in zip(self.batch.ids, judge(self.batch, answers), strict=True):
            if verdict.outcome in KILLS:
                yield Kill(id_, verdict.outcome)

    @functools.cached_property
    def _refused(self) -> tuple[Kill, ...]:
        admitted = [o.applies for o in self.batch.expectation.options if o.kind in ("rejected", "anything")]
        free = np.any(admitted, axis=0) if admitted else np.zeros(len(self.batch.ids), bool)
        return tuple(Kill(id_, Outcome.ERROR) for id_, ok in zip(self.batch.ids, free, strict=True) if not ok)


def _content(answer: Answer) -> bytes:
    parts = (a.tobytes() if a.dtype != object else repr(a.tolist()).encode() for a in answer)
    return repr([(a.dtype.name, a.shape) for a in answer]).encode() + b"".join(parts)


def benches(source: GeneratedCases, ids: Sequence[str]) -> tuple[list[Bench], str]:
    """Return the valid cases with these ids of one operator version, small ones first, and the digest of all cases."""
    found: list[Bench] = []
    digests: list[CaseDigests] = []
    for batch in source.batches(ids):
        digests += map(CaseDigests, batch.ids, batch.digests, batch.expectation_digests)
        if not batch.expectation.invalid:
            found += (Bench(part, answering) for part, answering in _parts(source, batch))
    found.sort(key=lambda bench: bench.size)
    return found, lock_of("", "", digests).digest


def _parts(source: GeneratedCases, batch: Batch) -> Iterator[tuple[Batch, Answering]]:
    """Yield a batch in parts that share what decides shapes."""
    for lanes, invocation in invocations(source.library, batch.program, batch.inputs):
        try:
            answering = Answering(invocation)
        except Refused:
            continue  # no option has values: whatever is answered is refused or admitted alike
        yield (batch if len(lanes) == len(batch) else _some(batch, lanes)), answering


def _some(batch: Batch, lanes: Sequence[int]) -> Batch:
    which = np.array(lanes)
    return replace(
        batch,
        ids=[batch.ids[lane] for lane in lanes],
        inputs=tuple(array[which] for array in batch.inputs),
        expectation=batch.expectation.of_lanes(which, len(lanes)),
    )


def tested(source: GeneratedCases, name: str, ids: Sequence[str]) -> VersionMatrix:
    """Put the cases with these ids, all of one operator version, to the test."""
    spec, key = source.library.operator_version(name)
    version = spec.version(key)
    every, digest = benches(source, ids)
    trial = _Trial(every, {mutant.name: mutant for mutant in mutants_of(spec, version)})
    trial.run()
    variants = list(variants_of(version))
    fates = trial.fates()
    tried: dict[str, tuple[int, int]] = {}
    for fate in fates:
        total, killed = tried.get(fate.kind, (0, 0))
        tried[fate.kind] = total + 1, killed + (fate.status == "killed")
    levels, smoke = _levels(fates), trial.smoke()
    return VersionMatrix(
        name,
        digest,
        len(ids),
        tried,
        tuple(f for f in fates if f.status != "killed" and f.kind != "trigger"),
        len(variants),
        tuple(fate for variant in variants for fate in _blamed(variant, every)),
        len(levels),
        tuple(f"{level} ({why})" for level, why in levels.items() if why),
        tuple(case for case in ids if case in smoke),
        tuple(f for f in fates if f.status == "killed"),
    )


@dataclass
class _Trial:
    """The mutants of a version before its cases, small ones first: each until some case kills it."""

    benches: Sequence[Bench]
    mutants: dict[str, Implementation]
    killed: dict[str, tuple[Kill, ...]] = field(default_factory=dict)
    _best: dict[str, Status] = field(default_factory=dict)
    _before: dict[str, str] = field(default_factory=dict)
    _memories: dict[tuple[str, str], Memory] = field(default_factory=dict)
    _tried: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        for bench in self.benches:
            for name, mutant in bench.answering.formula_mutants(self.killed.keys()).items():
                self.mutants.setdefault(name, mutant)
            for mutant in self.mutants.values():
                if mutant.name not in self.killed and not self._is_done(mutant, bench):
                    self._put(mutant, bench)

    def _is_done(self, mutant: Implementation, bench: Bench) -> bool:
        """Whether enough programs with a long formula have shown that they do not tell this mutant."""
        return mutant.kind == "formula" and bench.answering.is_long and self._tried[mutant.name] >= _TRIED

    def _put(self, mutant: Implementation, bench: Bench) -> None:
        key = bench.batch.program.key
        memory = self._memories.setdefault((mutant.name, key), {}) if mutant.kind == "state" else None
        status, kills = bench.put(mutant, memory)
        self._tried[mutant.name] += status != "unmet"
        if _ORDER.index(status) > _ORDER.index(self._best.get(mutant.name, "unmet")):
            self._best[mutant.name] = status
        if kills:
            self.killed[mutant.name] = kills
            if mutant.kind == "state":  # it takes a run before
                self._before[mutant.name] = self._first_of(key)

    def _first_of(self, key: str) -> str:
        return next(bench.batch.ids[0] for bench in self.benches if bench.batch.program.key == key)

    def fates(self) -> list[Fate]:
        """Return what became of the mutants, without those that are none: what they misread says the same."""
        every = map(self._fate, self.mutants.values())
        return [fate for fate in every if fate.status != "same"]

    def _fate(self, mutant: Implementation) -> Fate:
        if mutant.name in self.killed:
            kill = self.killed[mutant.name][0]
            return Fate(mutant.name, mutant.kind, mutant.text, "killed", kill.id, str(kill.outcome))
        return Fate(mutant.name, mutant.kind, mutant.text, self._best.get(mutant.name, "unmet"))

    def smoke(self) -> set[str]:
        """Return few cases that kill all that is killed: those of programs that kill most come first."""
        chosen = set(self._before.values())
        left = {name for name, kills in self.killed.items() if not {kill.id for kill in kills} & chosen}
        firsts = Counter(kills[0].id for kills in self.killed.values())
        for bench in sorted(self.benches, key=lambda bench: -sum(firsts[id_] for id_ in bench.batch.ids)):
            if not left:
                break
            bench.answering.formula_mutants(self.mutants.keys() - left)
            found = {name: {kill.id for kill in self._kills(name, bench)} for name in sorted(left)}
            found = {name: ids for name, ids in found.items() if ids}
            while found:
                case = min(Counter(id_ for ids in found.values() for id_ in ids).most_common(), key=_most_then_small)[0]
                chosen.add(case)
                left -= {name for name, ids in found.items() if case in ids}
                found = {name: ids for name, ids in found.items() if case not in ids}
        return chosen or {bench.batch.ids[0] for bench in self.benches[:1]}

    def _kills(self, name: str, bench: Bench) -> tuple[Kill, ...]:
        if self.killed[name][0].id in bench.batch.ids:
            return self.killed[name]
        return () if self.mutants[name].kind == "state" else bench.put(self.mutants[name])[1]


def _most_then_small(counted: tuple[str, int]) -> tuple[int, int, str]:
    case, kills = counted
    return -kills, len(case), case


def _blamed(variant: Implementation, every: Iterable[Bench]) -> Iterator[Fate]:
    for bench in every:
        for kill in bench.put(variant)[1]:
            yield Fate(variant.name, variant.kind, variant.text, "blamed", kill.id, str(kill.outcome))
            return


def _levels(fates: Iterable[Fate]) -> Mapping[str, str]:
    """Return of each trigger why it is hidden: nothing shows under it, or effects that do are not exposed."""
    found: dict[str, list[Fate]] = {}
    for fate in fates:
        if fate.kind == "trigger":
            found.setdefault(fate.name.partition(":")[0], []).append(fate)
    return {level: _hidden(each) for level, each in found.items()}


def _hidden(effects: Sequence[Fate]) -> str:
    shown = [fate for fate in effects if fate.status in ("killed", "admitted")]
    if not shown:
        return "no case"
    return ", ".join(fate.name.partition(":")[2] for fate in shown if fate.status == "admitted")
