"""Cases side by side: judged, graded, digested and recorded as each one is by itself."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from fakes import backends, results
from fakes.backends import Right
from fakes.here import HostsHere
from fakes.sampled import slow
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.batch import Batch, CaseSource
from opconform.cases.elements import Array, Declaration, DeclaredType, element_type
from opconform.cases.program import Program
from opconform.cases.results import Outcome, Result, result_from_json
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases
from opconform.reports.certificates import AttachCertificate
from opconform.runners.execution.execute import Worker
from opconform.runners.judging.accuracy import accuracies, attach_accuracy
from opconform.runners.judging.answers import Answer, Answers, Refusal, Stack
from opconform.runners.judging.judge import judge
from opconform.runners.judging.kept import KeepOutputs

SOURCE = GeneratedCases()
FLUSHING = DeclaredType(accumulator="float16", flush=frozenset({"input", "output"}))
DECLARED = GeneratedCases(declaration=Declaration(dict.fromkeys(("float16", "bfloat16", "float32"), FLUSHING)))
GLOBS = ("onnx/ReduceMean-13", "onnx/ReduceMean-18", "onnx/Mean-13", "openvino/ReduceMean-1", "onednn/ReduceMean")


@cache
def drawn() -> tuple[tuple[str, ...], ...]:
    """The ids of the cases, up to four draws each."""
    ids = planned(SOURCE.library, Selection(GLOBS, draws=4))
    return tuple(
        tuple(draws) for _, draws in itertools.groupby(ids, key=lambda text: re.sub("draw=[0-9]+;?", "", text))
    )


@dataclass(frozen=True)
class Answered:
    group: Batch
    outputs: tuple[Array, ...]
    required: Mapping[str, str]


PERTURBED = ("value", "lower", "upper", "beyond", "nan", "inf", "-inf", "zero", "-zero", "tiny", "wrong")


@np.errstate(all="ignore")
def perturbed(how: str, bounds: Mapping[str, Array], dtype: np.dtype[Any]) -> Array:
    """A tensor of answers that all go wrong, or right, in one way."""
    value = bounds["value"]
    if dtype.kind in "iub":
        wrong = {"wrong": value + value.dtype.type(1), "zero": np.zeros_like(value)}
        return wrong.get(how, value).astype(dtype)
    special = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "zero": 0.0, "-zero": -0.0, "tiny": 1e-40, "wrong": 1e30}
    if how in special:
        return np.full(value.shape, special[how]).astype(dtype)
    found = (bounds["upper"] if how == "beyond" else bounds[how]).astype(dtype)
    return np.nextafter(found, dtype.type(np.inf)) if how == "beyond" and dtype.kind == "f" else found


@st.composite
def answered(draw: st.DrawFn) -> Answered:
    declared = draw(st.booleans())
    source = DECLARED if declared else SOURCE
    group = next(source.batches(draw(st.sampled_from(drawn()))))
    options = [one for one in group.expectation.options if one.kind == "values"]
    outputs = []
    for index, name in enumerate(group.expectation.types):
        dtype = element_type(name).dtype
        bounds = draw(st.sampled_from(options)).outputs[index] if options else None
        shape = bounds.value.shape if bounds else (len(group), 2)
        output = np.zeros(shape, dtype)
        for lane in range(len(group)):
            about = {n: getattr(bounds, n)[lane, ...] if bounds else np.zeros(2) for n in ("value", "lower", "upper")}
            ways = draw(st.lists(st.sampled_from(PERTURBED), min_size=1, max_size=3))
            whole = perturbed("value" if draw(st.booleans()) else ways[0], about, dtype)
            flat = whole.reshape(-1).copy()
            for how in ways if flat.size and draw(st.booleans()) else ():
                place = draw(st.integers(0, flat.size - 1))
                flat[place] = perturbed(how, about, dtype).reshape(-1)[place]
            output[lane, ...] = flat.reshape(whole.shape)
        outputs.append(output)
    labels = [label for option in options for label in option.labels]
    required = dict(draw(st.lists(st.sampled_from(labels), max_size=2))) if labels and draw(st.booleans()) else {}
    return Answered(group, tuple(outputs), required)


@pytest.mark.slow
@given(answered())
@np.errstate(all="ignore")
def test_lanes_are_judged_and_graded_as_each_is_by_itself(answered: Answered) -> None:
    group, outputs = answered.group, answered.outputs
    if not group.expectation.options:
        return
    answers = Answers(len(group), (Stack(range(len(group)), outputs),))
    verdicts = judge(group, answers, answered.required)
    grades = accuracies(group.expectation, answers)
    for lane, case in enumerate(group.cases()):
        alone = Answers.of_case(*(output[lane, ...] for output in outputs))
        (verdict,) = judge(case, alone, answered.required)
        assert verdicts[lane] == verdict
        assert json.dumps(verdicts[lane].behaviour) == json.dumps(verdict.behaviour), "the order too"
        assert [grades[lane]] == accuracies(case.expectation, alone)


@given(st.data())
def test_digests_and_parts_are_those_of_each_lane(data: st.DataObject) -> None:
    declared = data.draw(st.booleans())
    whole = next((DECLARED if declared else SOURCE).batches(data.draw(st.sampled_from(drawn()))))
    start = data.draw(st.integers(0, len(whole) - 1))
    stop = data.draw(st.integers(start + 1, len(whole)))
    part = whole.part(start, stop)
    cases = [whole.case(lane) for lane in range(start, stop)]
    assert part.ids == whole.ids[start:stop]
    assert part.digests == [case.digest for case in cases]
    assert part.expectation.digests == [case.expectation.digest for case in cases]
    assert [part.case(lane).expectation.digest for lane in range(len(part))] == part.expectation.digests


def test_answers_of_several_forms_and_refusals_are_each_judged() -> None:
    ids = [f"onnx/ReduceMean-13/float32/3x2x2/axes=1;draw={n}/uniform" for n in range(1, 6)]
    (batch,) = SOURCE.batches(ids)
    right = [bounds.astype(np.float32) for bounds in batch.expectation.options[0].outputs[0].value]
    forms = [right[0], right[1][..., np.newaxis], right[2].astype(np.float64), right[3]]
    answers = Answers.of([*(Answer((one,)) for one in forms), Refusal("no", unsupported=True, reason="type")])
    assert [list(stack.lanes) for stack in answers.stacks] == [[0, 3], [1], [2]]
    wanted = [Outcome.PASS, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.PASS, Outcome.UNSUPPORTED]
    assert [verdict.outcome for verdict in judge(batch, answers)] == wanted
    changed = answers.replaced({1: Answer((right[1],)), 4: Answer((right[3],))})
    assert [v.outcome for v in judge(batch, changed)] == [*wanted[:1], Outcome.PASS, *wanted[2:4], Outcome.WRONG_VALUE]


def test_a_case_without_an_answer_is_our_mistake() -> None:
    case = SOURCE.case("onnx/ReduceMean-13/float32/3x2x2/axes=1/uniform")
    with pytest.raises(ValueError, match="1 cases have no answer"):
        judge(case, Answers(1))


# The worker


class OneByOne:
    """The same cases, one by one."""

    def case(self, text: str) -> Batch:
        return SOURCE.case(text)

    def batches(self, texts: Sequence[str]) -> Iterator[Batch]:
        return map(SOURCE.case, texts)


def draws(case: str, count: int) -> list[str]:
    operator, types, shapes, settings_, fill = case.split("/")
    kept = [] if settings_ == "-" else settings_.split(";")
    numbered = [[*kept, *([f"draw={k}"] if k else [])] for k in range(count)]
    told = (";".join(sorted(one, key=lambda s: s.partition("=")[0])) or "-" for one in numbered)
    return [f"onnx/{operator}/{types}/{shapes}/{one}/{fill}" for one in told]


KEYS = [
    *draws("ReduceMean-13/float32/3x2x2/axes=1/uniform", 5),
    *draws("ReduceMean-13/uint32/3x2x2/axes=1/uniform", 4),
    *draws("ReduceMean-13/float16/3x2x2/axes=1/mixed", 3),
    "onnx/ReduceMean-13/int32/3x2x2/axes=3/ramp/axis-too-large",
    *draws("Mean-13/float64/2*3x2/-/special", 3),
    *draws("ReduceMean-13/float32/7/-/overflow", 3),
]


def records(runner: Right, source: CaseSource, keys: Sequence[str], **more: Any) -> list[tuple[Result, Any]]:
    worker = Worker(HostsHere(runner), "right", source, more.get("required", {}), more.get("attach", {}))
    found = []
    for record in worker.run(keys, lambda _index, _phase: None):
        line, _, attached = record.partition(b"\t")
        result = result_from_json(line)
        assert result.to_json() == line
        found.append((result, json.loads(attached) if attached else None))
    return found


def without_seconds(found: Sequence[tuple[Result, Any]]) -> list[tuple[str, Any]]:
    return [(json.dumps({**json.loads(r.to_json()), "seconds": 0}), attached) for r, attached in found]


def fake(name: str) -> Right:
    made: Right = getattr(backends, name)()
    return made


ATTACH = {
    "accuracy": attach_accuracy,
    "told": results.told,
    "outputs": KeepOutputs("failures"),
    "certificate": AttachCertificate(SOURCE, KeepOutputs("failures")),
}
ALL = {"outputs": KeepOutputs("all"), "certificate": AttachCertificate(SOURCE, KeepOutputs("all"))}


BACKENDS = [
    *("Right", "WrongOnUint32", "WrongShape", "WrongType", "Flushes", "Raises", "RefusesTypes", "RefusesEverything"),
    *("LosesItsLibrary", "LeaksState", "LeaksIntoOneBuffer", "ReturnsNothing"),
]


@pytest.mark.parametrize(
    "attach", [slow({}), slow(ATTACH), ALL, slow({"outputs": KeepOutputs("digest")}), {"no": results.raises}]
)
@pytest.mark.parametrize("name", BACKENDS)
def test_a_worker_records_a_group_as_it_does_its_cases(name: str, attach: Mapping[str, Any]) -> None:
    together = records(fake(name), SOURCE, KEYS, attach=attach)
    alone = records(fake(name), OneByOne(), KEYS, attach=attach)
    if "no" in attach:
        together, alone = ([(r, a and "failed" in a["no"]) for r, a in found] for found in (together, alone))
    assert without_seconds(together) == without_seconds(alone)


def test_what_a_user_requires_holds_side_by_side() -> None:
    required = {"zero-sign": "lost", "overflow": "infinite"}
    assert without_seconds(records(Right(), SOURCE, KEYS, required=required)) == without_seconds(
        records(Right(), OneByOne(), KEYS, required=required)
    )


class OneBuffer(Right):
    """All answers lie in the same memory."""

    def prepare(self, program: Program) -> Any:
        inner, memory = super().prepare(program), bytearray(1 << 12)

        class Buffered:
            def run(self, inputs: Sequence[Array]) -> list[Array]:
                (output,) = inner.run(inputs)
                view = np.frombuffer(memory, output.dtype, output.size).reshape(output.shape)
                view[...] = output
                return [view]

        return Buffered()


def test_answers_in_memory_that_is_used_again_are_each_judged() -> None:
    found = [result for result, _ in records(OneBuffer(), SOURCE, KEYS[:9])]
    wanted = [result for result, _ in records(Right(), SOURCE, KEYS[:9])]
    assert [result.bound_ratio for result in found] == [result.bound_ratio for result in wanted]
    assert {result.reason for result in found if result.outcome is not Outcome.PASS} == {"answer-changed"}


def test_the_pool_is_told_each_case_before_it_runs() -> None:
    begun: list[tuple[int, str]] = []
    worker = Worker(HostsHere(Right()), "right", SOURCE, {})
    assert len(list(worker.run(KEYS[:9], lambda index, phase: begun.append((index, phase))))) == 9
    assert [index for index, phase in begun if phase == "run"] == list(range(9))


class BrokenGroups(GeneratedCases):
    """Cannot make the case `draw=1`."""

    def batches(self, texts: Sequence[str]) -> Iterator[Batch]:
        for text in texts:
            if "draw=1" in text:
                raise RuntimeError("no such case today")
            yield from super().batches([text])


def test_a_source_that_fails_costs_only_the_case() -> None:
    found = [result for result, _ in records(Right(), BrokenGroups(), KEYS[:5])]
    assert [r.outcome for r in found] == [Outcome.PASS, Outcome.RUNNER_ERROR, *[Outcome.PASS] * 3]
    assert [r.case for r in found] == KEYS[:5]
    assert "no such case today" in (found[1].detail or "")
