"""A result judged once more, by today's expectation, from what was kept of it; no backend is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast, get_args

import msgspec

from ..cases.batch import Batch
from ..cases.elements import Array
from ..cases.expectation import Expectation
from ..cases.results import Outcome, Result
from ..cases.runner import Reason
from .answers import Answer, Answers, Refusal
from .judge import Requirements, Verdict, judge

_ENDED = frozenset({Outcome.CRASH, Outcome.TIMEOUT})
_REFUSED_ALTHOUGH = re.compile(r"refused \((.*)\), required: ", re.DOTALL)
_REASONS = frozenset(get_args(Reason))


class CannotJudge(Exception):  # noqa: N818 - it is an answer, and says why
    """What was kept does not decide the verdict; the message says what is missing."""


def judged_again(
    result: Result,
    case: Batch | None,
    outputs: Sequence[Array] | None,
    *,
    required: Requirements,
    before: Requirements,
) -> Result:
    """Return a result, as it was before it was waived, by the expectation that the case has today; itself if the same.

    `case` is None where there is none of that id any more, `outputs` None where they were not kept. `required` are the
    silences answered now, `before` those that were when the backend ran. Raises CannotJudge.
    """
    if result.outcome is Outcome.RUNNER_ERROR:
        return result
    if case is None:
        raise CannotJudge("there is no such case any more")
    if case.digest != result.case_digest:
        raise CannotJudge("its program or its inputs are others now")
    verdict = _verdict(result, case, outputs, required, before)
    if verdict is None:
        return result
    told = msgspec.structs.replace(
        result,
        outcome=verdict.outcome,
        behaviour=verdict.behaviour,
        reason=verdict.reason,
        detail=verdict.detail,
        bound_ratio=verdict.bound_ratio,
        level=verdict.level,
        clauses=case.clauses,
        expectation_digest=case.expectation.digest,
    )
    return result if _deciding(told) == _deciding(result) else told


def _deciding(result: Result) -> tuple[object, ...]:
    return result.outcome, dict(result.behaviour), result.level, result.clauses, result.expectation_digest


def _verdict(
    result: Result,
    case: Batch,
    outputs: Sequence[Array] | None,
    required: Requirements,
    before: Requirements,
) -> Verdict | None:
    """Return today's verdict, None where nothing that it depends on has changed. Raises CannotJudge."""
    expectation = case.expectation
    if outputs is not None:
        return judge(case, Answers.of([Answer(tuple(outputs))]), required)[0]
    same = expectation.digest == result.expectation_digest
    if result.outcome in _ENDED:
        behaviour: Mapping[str, list[str]] = {"invalid": []} if expectation.invalid else {}
        return None if same else Verdict(result.outcome, behaviour, result.detail, reason=result.reason)
    if result.reason in _REASONS or result.outcome is Outcome.UNSUPPORTED:
        return _of_refusal(result, case, required, same=same)
    if same and not _asked_anew(expectation, required, before):
        return None
    why = "other options are required" if same else "the expectation has changed"
    raise CannotJudge(f"{why}, and the answer was not kept")


def _of_refusal(result: Result, case: Batch, required: Requirements, *, same: bool) -> Verdict | None:
    expectation = case.expectation
    was_invalid = "invalid" in result.behaviour
    if was_invalid and expectation.invalid and result.outcome is Outcome.UNSUPPORTED:
        return None if same else Verdict(result.outcome, result.behaviour, result.detail, reason=result.reason)
    if was_invalid != expectation.invalid:
        raise CannotJudge("the input has become valid" if was_invalid else "the input has become invalid")
    return judge(case, Answers.of([_refusal(result)]), required)[0]


def _refusal(result: Result) -> Refusal:
    """Return the refusal that a result tells of; whether the words say "not implemented" matters for valid input."""
    words = result.detail or ""
    if result.outcome is Outcome.WRONG_VALUE and (told := _REFUSED_ALTHOUGH.match(words)):
        words = told[1]
    reason = cast(Reason, result.reason) if result.reason in _REASONS else "other"
    return Refusal(words, result.outcome is Outcome.UNSUPPORTED, reason)


def _asked_anew(expectation: Expectation, required: Requirements, before: Requirements) -> bool:
    """Return whether a silence that applies is required to be answered in another way than it was."""
    return any(required.get(silence) != before.get(silence) for silence in expectation.silences)
