"""Runs programs of one operator version against wrong and compliant tools, in this process, and judges what they say.

A conversion is judged as `runners/execution/converting.py` does, by a backend that is right on everything: the recorded
formula of the version that the call was converted to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..cases.batch import Batch, Expectation
from ..cases.ids import parse_id
from ..cases.inferred import INFERENCE
from ..cases.lock import SHORT, CaseDigests, lock_of
from ..cases.results import Outcome
from ..generators.meanings import inference_of, is_static, validity_of
from ..generators.mutants.formula import Answering, SameFormula, invocations
from ..generators.mutants.implementation import Implementation, Refused
from ..generators.mutants.tools import (
    Seen,
    Tool,
    misreadings_of_shapes,
    right_checkers,
    right_converters,
    right_inferencers,
    wrong_checkers,
    wrong_converters,
    wrong_inferencers,
)
from ..generators.source import GeneratedCases
from ..reports.matrix import Fate, VersionMatrix
from ..runners.execution.converting import same_reading
from ..runners.judging.answers import Answer, Answered, Answers, Refusal, same_array
from ..runners.judging.judge import Verdict, judge
from ..specs.model import VersionSpec
from .killing import KILLS, tried_by_kind

_FAILING = KILLS | {Outcome.ACCEPTED_INVALID}
_TRIED = 4  # programs on which a misread call with the same shapes is tried


@dataclass
class _Trial:
    """What tools of one kind make of cases, until one exposes each."""

    tools: dict[str, Tool]
    killed: dict[str, tuple[str, Outcome]] = field(default_factory=dict)
    admitted: dict[str, str] = field(default_factory=dict)
    deciding: set[str] = field(default_factory=set)
    same: dict[str, int] = field(default_factory=dict)
    _known: dict[tuple[int, object], Verdict] = field(default_factory=dict)

    def show(self, tool: Tool, case: Batch, answer: Answered, key: object, *, ran: bool = True) -> None:
        """Judge an answer that differs from the right one."""
        at = id(case), key
        if at not in self._known:
            (self._known[at],) = judge(case, Answers.of([answer]), variant_ran=ran)
        self.note(tool, case, self._known[at])

    def note(self, tool: Tool, case: Batch, verdict: Verdict) -> None:
        """Keep the verdict on a tool."""
        if verdict.outcome in (Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE):
            self.deciding.add(tool.about)
        if verdict.outcome in _FAILING:
            self.killed.setdefault(tool.name, (case.ids[0], verdict.outcome))
        elif verdict.behaviour.get(INFERENCE) == ["exact"]:  # it is right
            self.same[tool.name] = self.same.get(tool.name, 0) + 1
        else:
            options = "; ".join(f"{name}={'|'.join(some)}" for name, some in verdict.behaviour.items())
            self.admitted.setdefault(tool.name, options or str(verdict.outcome))

    def left(self, tool: Tool) -> bool:
        """Return whether it is worth to try a tool on another case."""
        return tool.name not in self.killed and not (
            tool.about and tool.about not in self.deciding and self.same.get(tool.name, 0) >= _TRIED
        )

    def fates(self, kind: str) -> Iterator[Fate]:
        """Yield what becomes of each mutant; one that says the same everywhere is none."""
        for name, tool in self.tools.items():
            head = f"{kind}:{name}", kind, tool.text
            if name in self.killed:
                yield Fate(*head, "killed", self.killed[name][0], str(self.killed[name][1]))
            elif name in self.admitted:
                yield Fate(*head, "admitted", why=self.admitted[name])
            elif not tool.incidental and tool.about in self.deciding:
                yield Fate(*head, "unmet")

    def blamed(self, kind: str) -> Iterator[Fate]:
        """Yield the compliant variants that a case blames."""
        for name, (case, outcome) in self.killed.items():
            yield Fate(f"{kind}:{name}", "variant", self.tools[name].text, "blamed", case, str(outcome))


def tools_tested(
    source: GeneratedCases, name: str, ids: Sequence[str], smoke: Mapping[str, Sequence[str]]
) -> VersionMatrix:
    """Return the matrix of tools of one operator version; conversions are tried on its cases of `smoke`."""
    spec, key = source.library.operator_version(name)
    version = spec.version(key)
    seen = list(_seen(source, chosen_programs(version, ids)))
    misread = list(misreadings_of_shapes(spec, version))
    broken = sorted({clause for infer, check in seen if check.is_static for clause in check.batch.clauses})
    trials = {
        "infer": _trial([*wrong_inferencers(), *(infers for _, infers, _ in misread)]),
        "check": _trial([*wrong_checkers(version, broken), *(checks for _, _, checks in misread)]),
        "convert": _trial(wrong_converters(spec, version) if spec.standard == "onnx" else ()),
    }
    variants = {
        "infer": _trial(right_inferencers()),
        "check": _trial(right_checkers()),
        "convert": _trial(right_converters(version) if spec.standard == "onnx" else ()),
    }
    for infer, check in seen:
        for several in (trials, variants):
            _inferred(several["infer"], infer)
            _checked(several["check"], check)
    valid = [check.batch.ids[0] for _, check in seen if not check.is_invalid]
    converting = [trials["convert"], variants["convert"]]
    converted: list[Batch] = []
    for text in (*smoke.get(name, ()), *valid):
        if any(map(trials["convert"].left, trials["convert"].tools.values())):
            converted.append(source.case(text))
            _converted(converting, source, converted[-1])
    fates = [fate for kind, trial in trials.items() for fate in trial.fates(kind)]
    digests = [CaseDigests(i.batch.ids[0], i.batch.digests[0], i.batch.expectation_digests[0]) for i, _ in seen] + [
        CaseDigests(*row) for b in converted for row in zip(b.ids, b.digests, b.expectation_digests, strict=True)
    ]
    return VersionMatrix(
        name,
        lock_of("", "", digests).digest[:SHORT],
        len(digests),
        tried_by_kind(fates),
        tuple(fate for fate in fates if fate.status != "killed"),
        sum(len(trial.tools) for trial in variants.values()),
        tuple(fate for kind, trial in variants.items() for fate in trial.blamed(kind)),
        {},
        {},
        (),
        killed=tuple(fate for fate in fates if fate.status == "killed"),
    )


def chosen_programs(version: VersionSpec, ids: Sequence[str]) -> list[str]:
    """Return cases that together have each combination of types, each setting, and each clause that edges test."""
    chosen: list[str] = []
    met: set[object] = set()
    for text in ids:
        case = parse_id(text)
        edge = version.edge(case.edge) if case.edge else None
        if edge is None:
            ranks = tuple(len(shape) if isinstance(shape, tuple) else str(shape) for shape in case.shapes)
            settings = {(name, value) for name, value in case.settings if name not in ("draw", "seed")}
            has: set[object] = {("types", case.types), ("ranks", ranks), *settings}
        else:
            has = {(edge.tests, edge.rejected)}
        if has - met:
            met |= has
            chosen.append(text)
    return chosen


def _trial(tools: Iterable[Tool]) -> _Trial:
    return _Trial({tool.name: tool for tool in tools})


def _seen(source: GeneratedCases, ids: Sequence[str]) -> Iterator[tuple[Seen, Seen]]:
    """Yield each case as an inferencer and as a checker gets it."""
    for part in source.parts(ids):
        plain = source.batch(part, Expectation((), part.types, len(part.ids)))
        invalid = part.recording is None
        static = invalid and is_static(part)
        infer = replace(plain, expectation=inference_of(part, plain.program)).case(0)
        check = replace(plain, expectation=validity_of(part, plain.program)).case(0)
        yield Seen(infer, source.library, invalid, static), Seen(check, source.library, invalid, static)


def _inferred(trial: _Trial, seen: Seen) -> None:
    if not seen.wanted:
        return
    for tool in filter(trial.left, trial.tools.values()):
        assert tool.infers is not None
        try:
            texts = tuple(tool.infers(seen))
        except Refused:
            trial.show(tool, seen.batch, _REFUSED, None)
            continue
        if texts != seen.right or tool.is_variant:
            outputs = tuple(np.array(text, object) for text in texts)
            trial.show(tool, seen.batch, Answer(outputs), texts)
        else:
            trial.same[tool.name] = trial.same.get(tool.name, 0) + 1


def _checked(trial: _Trial, seen: Seen) -> None:
    for tool in filter(trial.left, trial.tools.values()):
        assert tool.refuses is not None
        refuses = tool.refuses(seen)
        if refuses != seen.is_static or tool.is_variant:
            trial.show(tool, seen.batch, _REFUSED if refuses else Answer(()), refuses)
        elif not seen.is_invalid:
            trial.same[tool.name] = trial.same.get(tool.name, 0) + 1


_REFUSED = Refusal("not valid", unsupported=False, reason="other")


def _converted(trials: Sequence[_Trial], source: GeneratedCases, case: Batch) -> None:
    ((_, invocation),) = invocations(source.library, case.program, case.inputs)
    try:
        answering = Answering(invocation)
    except Refused:
        return
    before = _verdict(case, answering.right)
    for trial in trials:
        for tool in filter(trial.left, trial.tools.values()):
            tried = Implementation(tool.name, "variant" if tool.is_variant else "call", tool.text, reading=tool.reads)
            try:
                answer = answering.answer(tried)
            except SameFormula:
                continue
            except Exception:  # the new version has no such call
                trial.note(tool, case, Verdict(Outcome.ERROR, detail="the conversion no longer runs"))
                continue
            if any(a is not b and not same_array(a, b) for a, b in zip(answer, answering.right, strict=True)):
                trial.note(tool, case, same_reading("formula", {"formula": before}, _verdict(case, answer)))


def _verdict(case: Batch, outputs: Sequence[np.ndarray]) -> Verdict:
    (verdict,) = judge(case, Answers.of([Answer(tuple(output[0, ...] for output in outputs))]))
    return verdict
