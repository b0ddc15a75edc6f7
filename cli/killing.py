"""Puts mutants and compliant variants to the cases of one operator version, in this process, before the real judge."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..cases.batch import Batch
from ..cases.elements import type_of
from ..cases.results import Outcome
from ..cases.source import cases_of
from ..generators.mutants.call import Call, Refused, call_of
from ..generators.mutants.implementation import Implementation, Known, Memory, answer
from ..generators.source import GeneratedCases
from ..runners.answers import Answers, Refusal
from ..runners.judge import Verdict, judge

KILLS = frozenset({Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.ERROR})
"""What tells a mutant from a right implementation; an answer to an invalid input does not."""

_PROGRAMS_KEPT = 16  # as a worker keeps them


@dataclass
class _Memories:
    """What the programs of one implementation keep between runs; the last few programs."""

    programs: OrderedDict[str, Memory] = field(default_factory=OrderedDict)

    def of(self, key: str) -> Memory:
        memory = self.programs.setdefault(key, {})
        self.programs.move_to_end(key)
        if len(self.programs) > _PROGRAMS_KEPT:
            self.programs.popitem(last=False)
        return memory


def judged(
    source: GeneratedCases, ids: Sequence[str], implementations: Sequence[Implementation]
) -> Iterator[tuple[Batch, list[Verdict]]]:
    """Yield each case with a verdict for each implementation; what state leaks is kept from case to case."""
    memories = [_Memories() for _ in implementations]
    for case in cases_of(source, ids):
        bench = _Bench(case, call_of(source.library, case.program, case.tensors()))
        verdicts = []
        for implementation, kept in zip(implementations, memories, strict=True):
            memory = kept.of(case.program.key) if implementation.kind == "state" else {}
            verdicts.append(bench.verdict(implementation, memory))
        yield case, verdicts


class _Bench:
    """One case, and what is known of answers to it: mutants mostly answer alike."""

    def __init__(self, case: Batch, call: Call) -> None:
        self._case, self._call = case, call
        self._answers: Known = {}
        self._verdicts: dict[tuple[object, ...], Verdict] = {}

    def verdict(self, implementation: Implementation, memory: Memory) -> Verdict:
        required = implementation.required
        try:
            out = answer(implementation, self._call, memory, self._answers)
        except Exception as error:  # a refusal, or a defect that raises
            words = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
            refusal = Refusal(words, unsupported=False, reason="other")
            return judge(self._case, Answers.of([refusal]), required)[0]
        key = (type_of(out), out.shape, out.tobytes(), tuple(required.items()))
        if key not in self._verdicts:
            self._verdicts[key] = judge(self._case, Answers.of_case(out), required)[0]
        return self._verdicts[key]


def kills(
    source: GeneratedCases, ids: Sequence[str], implementations: Sequence[Implementation]
) -> Mapping[str, dict[str, Verdict]]:
    """Return for each implementation the cases that tell it from a right one, with their verdicts."""
    found: dict[str, dict[str, Verdict]] = {i.name: {} for i in implementations}
    for case, verdicts in judged(source, ids, implementations):
        for implementation, verdict in zip(implementations, verdicts, strict=True):
            if verdict.outcome in KILLS:
                found[implementation.name][case.id] = verdict
    return found
