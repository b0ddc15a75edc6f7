"""Judges conversions: the new program runs on a backend that is right on the original, by the same expectation."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np

from ...cases.batch import Batch, Expectation
from ...cases.elements import Array
from ...cases.errors import OpconformError
from ...cases.ids import operator_version_of
from ...cases.program import ModelProgram, Program
from ...cases.results import Outcome
from ..judging.answers import Answer, Answered, Answers, Refusal
from ..judging.judge import WRONG, Requirements, Verdict, asks_again, judge
from ..judging.terms import ALWAYS_FAILING, silences
from ..pool import Loss
from .host import Hosts, OurFailure, Request

EVALUATORS = ("onnxruntime-noopt", "onnx-reference")
"""The backends that run conversions, in the order in which they are asked."""
JUDGED_ON = "judged-on"
"""What the behaviour of a conversion reports: the backend that ran both programs, or the text."""
TEXT = "text"
"""Judged by nothing else: only the opset changes, and the node means the same there."""

_ARITHMETIC = frozenset(silences())


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What one backend made of a program, in words, and whether the expectation admits it."""

    verdict: Verdict
    words: str
    answer: Answered | None = None

    @property
    def fails(self) -> bool:
        """Whether the expectation does not admit it."""
        return self.verdict.outcome in ALWAYS_FAILING


@runtime_checkable
class ReadsModels(Protocol):
    """A source that also knows what the text says of a model that a converter made."""

    def answered(self, texts: Sequence[str], /) -> Iterator[Batch]:
        """Yield cases one by one, with what their programs compute. Raises CaseIdError."""

    def unknown(self, program: ModelProgram, /) -> str:
        """Return what of a model the versions of its nodes do not have, in words; empty if there is nothing."""

    def admitted(self, program: ModelProgram, inputs: Sequence[Array], /) -> Expectation | None:
        """Return what the text of its own version admits of a model of one node.

        None if that is unknown, or if nothing is admitted.
        """

    def is_kept(self, case: Batch, converted: ModelProgram, /) -> bool:
        """Return whether the text alone says that a conversion means what a single case's program means."""


@dataclass
class _Conversion:
    """A conversion of a case's program, and what the text of the version that it is in now says of it."""

    case: Batch
    program: ModelProgram
    models: ReadsModels | None

    @functools.cached_property
    def admitted(self) -> Expectation | None:
        """Return what that text admits, None if that is unknown."""
        return None if self.models is None else self.models.admitted(self.program, self.case.tensors())

    def own_verdict(self, attempt: _Attempt) -> Verdict | None:
        """Return the verdict on an attempt by that text; None if it says nothing of it."""
        if self.admitted is None:
            return None
        if attempt.answer is None:
            return attempt.verdict
        answers = Answers.of([attempt.answer])
        batch = Batch.of_case(self.case.ids[0], self.program, self.case.tensors(), self.admitted)
        (verdict,) = judge(batch, answers, again=answers if asks_again(self.admitted) else None)
        return verdict

    def unless_own_fault(self, attempt: _Attempt) -> _Attempt:
        """Return an attempt, as one that shows nothing if the backend is wrong by that text."""
        own = self.own_verdict(attempt) if attempt.fails else None
        if own is None or own.outcome is Outcome.PASS:
            return attempt
        words = f"wrong by the text of the conversion's own version ({attempt.words})"
        return _Attempt(Verdict(Outcome.UNSUPPORTED), words)

    def verdict(self, name: str, right: Mapping[str, Verdict], attempt: _Attempt) -> Verdict:
        """Return the verdict of `same_reading`; what that text leaves open, too, may be answered anew."""
        verdict = same_reading(name, right, attempt.verdict, attempt.words)
        if attempt.verdict.outcome is not Outcome.PASS or verdict.outcome is Outcome.PASS:
            return verdict
        own = self.own_verdict(attempt)
        still_open = frozenset() if own is None else frozenset(own.behaviour)
        return same_reading(name, right, attempt.verdict, attempt.words, still_open)


@dataclass
class Conversions:
    """Opens the evaluators when they are needed; one that cannot be opened is right on nothing.

    Without `models` only the expectations of the original programs are known.
    """

    open_hosts: Callable[[str], Hosts]
    models: ReadsModels | None = None
    _opened: dict[str, Hosts | None] = field(default_factory=dict)
    _ids: Sequence[str] = ()
    _answered: dict[str, Batch] = field(default_factory=dict)

    def begin(self, ids: Sequence[str]) -> None:
        """Learn which cases come next: expectations are made together, as far as any is needed."""
        self._ids, self._answered = ids, {}

    def verdict(self, case: Batch, answer: Answered, required: Requirements) -> Verdict:
        """Return the verdict on a conversion of a single case's program: the model's bytes, or a refusal."""
        if case.expectation.invalid:
            why = "not judged: no conversion of an invalid program is right"
            return Verdict(Outcome.UNSUPPORTED, {"invalid": []}, why, reason="other")
        if isinstance(answer, Refusal):
            outcome = Outcome.UNSUPPORTED if answer.unsupported else Outcome.ERROR
            return Verdict(outcome, detail=f"refused: {answer.words}", reason=answer.reason)
        converted = converted_program(case.program, answer)
        if converted is None:
            return Verdict(Outcome.WRONG_DTYPE, detail="a conversion is one tensor of uint8, the bytes of the model")
        if self.models is not None:
            if unknown := self.models.unknown(converted):  # backends may be lax
                return Verdict(Outcome.ERROR, detail=f"the conversion is invalid: {unknown}", reason="invalid")
            if self.models.is_kept(case, converted):
                return Verdict(Outcome.PASS, {JUDGED_ON: [TEXT]}, level="strict")
            case = self._with_answers(self.models, case)
        return self._evaluated(case, converted, required)

    def _with_answers(self, models: ReadsModels, case: Batch) -> Batch:
        """Return a case with what its program computes, made together with the next cases of its operator version."""
        if case.id not in self._answered:
            later = itertools.dropwhile(lambda text: text != case.id, self._ids)
            alike = itertools.takewhile(lambda text: operator_version_of(text) == operator_version_of(case.id), later)
            self._answered = {}
            with contextlib.suppress(OpconformError):  # of another case: it is reported when its turn comes
                for answered in models.answered(list(alike) or [case.id]):
                    self._answered[answered.id] = answered
        return self._answered.get(case.id) or next(models.answered([case.id]))

    def _evaluated(self, case: Batch, converted: ModelProgram, required: Requirements) -> Verdict:
        """Return the verdict on a conversion by what it computes."""
        right: dict[str, Verdict] = {}
        after: dict[str, _Attempt] = {}
        attempts: list[str] = []
        conversion = _Conversion(case, converted, self.models)
        for name in EVALUATORS:
            original = self._attempt(name, case, case.program, required)
            if original.verdict.outcome is not Outcome.PASS:
                attempts.append(f"{name}: {original.words}")
                continue
            right[name] = original.verdict
            attempt = self._attempt(name, case, converted, required)
            after[name] = conversion.unless_own_fault(attempt)
            for judge_ in right:  # one may answer an open question after the conversion as another did before it
                verdict = conversion.verdict(judge_, right, after[judge_])
                if verdict.outcome is Outcome.PASS:
                    return verdict
        attempts += [f"{name}: right on the original; on the conversion {a.words}" for name, a in after.items()]
        verdicts = [conversion.verdict(name, right, after[name]) for name in right]
        failures = [verdict for verdict in verdicts if verdict.outcome is not Outcome.UNSUPPORTED]
        why = f"not judged: no backend is right on the original and runs the conversion ({'; '.join(attempts)})"
        return failures[0] if failures else Verdict(Outcome.UNSUPPORTED, detail=why, reason="other")

    def _attempt(self, name: str, case: Batch, program: Program, required: Requirements) -> _Attempt:
        if name not in self._opened:
            try:
                self._opened[name] = self.open_hosts(name)
            except Exception as error:  # a library that is missing, or does not fit
                self._opened[name] = None
                return _Attempt(Verdict(Outcome.UNSUPPORTED), f"cannot be opened: {error}")
        hosts = self._opened[name]
        if hosts is None:
            return _Attempt(Verdict(Outcome.UNSUPPORTED), "cannot be opened")
        (number,) = hosts.ask([Request(0, program, case.tensors(), "own")])
        answer = hosts.reply(number).answer
        hosts.strays()
        if isinstance(answer, Loss):
            return _Attempt(Verdict(Outcome.CRASH), f"the process ended ({answer.exit or answer.kind})")
        if isinstance(answer, OurFailure):
            return _Attempt(Verdict(Outcome.UNSUPPORTED), answer.words)
        (verdict,) = judge(case, Answers.of([answer]), required)
        if isinstance(answer, Refusal):
            admitted = verdict.outcome is Outcome.PASS  # the text lets it refuse: that shows nothing about a conversion
            outcome = Outcome.UNSUPPORTED if answer.unsupported or admitted else Outcome.ERROR
            said = f"{'refuses, as it may' if admitted else outcome} ({answer.words})"
            return _Attempt(Verdict(outcome, detail=answer.words, reason=answer.reason), said, answer)
        said = f"{verdict.outcome}" + (f" ({verdict.detail})" if verdict.detail else "")
        return _Attempt(verdict, said, answer)


def _other_readings(before: Verdict, after: Verdict, still_open: frozenset[str]) -> str:
    """Return the questions that the text leaves open and a backend answers in another way after a conversion.

    Then the program means something else there, although the text of its version admits both. How a backend computes,
    such as the width of an accumulator, may differ, and so may what is `still_open` in the text of the new version.
    """
    pairs = [
        (silence, options, after.behaviour[silence])
        for silence, options in before.behaviour.items()
        if silence in after.behaviour and silence not in _ARITHMETIC | still_open
    ]
    return "; ".join(f"{s} was {'|'.join(a)}, is {'|'.join(b)}" for s, a, b in pairs if not {*a} & {*b})


def same_reading(
    name: str,
    right: Mapping[str, Verdict],
    verdict: Verdict,
    words: str = "",
    still_open: frozenset[str] = frozenset(),
) -> Verdict:
    """Return the verdict on a conversion, by one of the backends in `right`, which has their verdicts on the original.

    `verdict` is on what it answers for the conversion, by the original's expectation; `words` describe it. Where the
    text leaves a question open, a conversion may settle it as any of them does. `still_open`: the questions that the
    text of the new version leaves open, too.
    """
    detail = verdict.detail or words
    if verdict.outcome is Outcome.PASS:
        if not all(_other_readings(before, verdict, still_open) for before in right.values()):
            return replace(verdict, behaviour={**verdict.behaviour, JUDGED_ON: [name]})
        changed = _other_readings(right[name], verdict, still_open)
        detail = f"the conversion makes {name} read the standard in another way: {changed}"
        return replace(verdict, outcome=Outcome.WRONG_VALUE, detail=detail, level=None)
    if verdict.outcome is Outcome.UNSUPPORTED:
        return verdict
    if verdict.outcome in WRONG:
        return replace(verdict, detail=f"the conversion means something else, on {name}: {detail}")
    return Verdict(Outcome.ERROR, detail=f"the conversion no longer runs on {name}: {detail}", reason=verdict.reason)


def converted_program(program: Program, answer: Answer) -> ModelProgram | None:
    """Return the program of a converter's answer, with the inputs and outputs of the original; None if it is none."""
    outputs: Sequence[Array] = answer.outputs
    if len(outputs) != 1 or outputs[0].dtype != np.uint8 or outputs[0].ndim != 1:
        return None
    answers = tuple(replace(output, shape=None) for output in program.answers)
    return ModelProgram(program.operator, (), program.feeds, answers, program.opset, model=outputs[0].tobytes())
