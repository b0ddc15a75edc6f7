"""The smallest set of cases that still kills every mutant that all cases kill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..generators.mutants.implementation import Implementation
from ..generators.source import GeneratedCases
from ..reports.matrix import Evidence, Matrix, Tried
from .killing import kills

_PAIRS_TRIED = 500


def smoke_cases(source: GeneratedCases, matrix: Matrix) -> list[str]:
    """Return the ids, in the order of the plan. Deterministic, and near the smallest: a set cover, then pruned."""
    chosen: list[str] = []
    for evidence in matrix.evidence.values():
        chosen += _of_version(source, evidence, matrix.mutants)
    return chosen


def _of_version(source: GeneratedCases, evidence: Evidence, mutants: Mapping[str, Implementation]) -> list[str]:
    wanted = {name: set(evidence.failed[name]) for name in evidence.mutants if evidence.failed.get(name)}
    alone = {name: cases for name, cases in wanted.items() if mutants[name].kind not in ("state", "process")}
    cover = _shrunk(_pruned(_greedy(alone, evidence.cases), alone, evidence.cases), alone, evidence.cases)
    if not cover and evidence.cases:
        cover = [min(evidence.cases.values(), key=lambda case: case.size).id]
    for name, killers in wanted.items():
        if mutants[name].kind == "state":
            cover += _sequence(source, evidence, mutants[name], cover, killers)
    return [case for case in evidence.cases if case in cover]


def _greedy(wanted: Mapping[str, set[str]], cases: Mapping[str, Tried]) -> list[str]:
    """Take the case that kills most of what is left, the smallest of equals, until nothing is left."""
    left = dict(wanted)
    chosen = []
    while left:
        counts: dict[str, int] = {}
        for killers in left.values():
            for case in killers:
                counts[case] = counts.get(case, 0) + 1
        best = min(counts, key=lambda case: (-counts[case], cases[case].size))
        chosen.append(best)
        left = {name: killers for name, killers in left.items() if best not in killers}
    return chosen


def _pruned(chosen: Sequence[str], wanted: Mapping[str, set[str]], cases: Mapping[str, Tried]) -> list[str]:
    """Leave out what the others make needless, the largest first."""
    kept = set(chosen)
    for case in sorted(chosen, key=lambda case: cases[case].size, reverse=True):
        if all(killers & (kept - {case}) for killers in wanted.values()):
            kept.discard(case)
    return [case for case in chosen if case in kept]


def _shrunk(chosen: Sequence[str], wanted: Mapping[str, set[str]], cases: Mapping[str, Tried]) -> list[str]:
    """Take a smaller case for each that does what only it does, the largest first."""
    kept = list(chosen)
    for case in sorted(chosen, key=lambda case: cases[case].size, reverse=True):
        others = set(kept) - {case}
        needed = [killers for killers in wanted.values() if case in killers and not killers & others]
        smaller = min(set.intersection(*needed), key=lambda case: cases[case].size) if needed else case
        kept[kept.index(case)] = smaller
    return kept


def _sequence(
    source: GeneratedCases, evidence: Evidence, mutant: Implementation, cover: Sequence[str], killers: set[str]
) -> list[str]:
    """Return the cases that have to be added so that a mutant that keeps state is killed."""
    order = list(evidence.cases)
    if kills(source, [case for case in order if case in cover], [mutant])[mutant.name]:
        return []
    for pair in _pairs(order, killers, evidence.cases):
        if kills(source, pair, [mutant])[mutant.name]:
            return [case for case in pair if case not in cover]
    return [case for case in order if case not in cover]  # it takes them all, for all that is known


def _pairs(order: Sequence[str], killers: set[str], cases: Mapping[str, Tried]) -> Iterator[list[str]]:
    """Yield a killing case and one before it of the same program, the smallest first."""
    place = {case: i for i, case in enumerate(order)}
    pairs = [
        [first, second]
        for second in killers
        for first in order[: place[second]]
        if cases[first].program == cases[second].program
    ]
    pairs.sort(key=lambda pair: (sum(cases[case].elements for case in pair), pair))
    yield from pairs[:_PAIRS_TRIED]
