"""What the tests attach to results."""

from __future__ import annotations

from collections.abc import Sequence

from opconform.cases.batch import Batch
from opconform.runners.judging.answers import Answer, Answers
from opconform.runners.judging.judge import Verdict


def told(batch: Batch, answers: Answers, verdicts: Sequence[Verdict]) -> Sequence[object]:
    """All that an attachment may be made of."""
    found: list[object] = []
    for lane, (text, verdict) in enumerate(zip(batch.ids, verdicts, strict=True)):
        answer = answers.answer(lane)
        outputs = [output.tolist() for output in answer.outputs] if isinstance(answer, Answer) else []
        found.append({"case": text, "outcome": str(verdict.outcome), "outputs": outputs})
    return found


def of_failures(batch: Batch, answers: Answers, verdicts: Sequence[Verdict]) -> Sequence[object]:
    """Nothing for a pass."""
    return [None if verdict.outcome == "pass" else "a text with a \t and a \n" for verdict in verdicts]


def no_json(batch: Batch, answers: Answers, verdicts: Sequence[Verdict]) -> Sequence[object]:
    """What strict JSON has no word for."""
    return [float("nan")] * len(verdicts)


def raises(batch: Batch, answers: Answers, verdicts: Sequence[Verdict]) -> Sequence[object]:
    raise ValueError("nothing comes of it")
