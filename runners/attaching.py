"""What travels beside a result: attachments, made in the worker, each strict JSON."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping, Sequence
from typing import Protocol

from ..cases.batch import Batch
from .answers import Answers
from .judge import Verdict

WORDS_KEPT = 2000
"""The characters of a message that a result holds."""


class Attach(Protocol):
    """Makes what travels beside results, in the worker; picklable."""

    def __call__(self, batch: Batch, answers: Answers, verdicts: Sequence[Verdict], /) -> Sequence[object]:
        """Return an attachment for each case: what strict JSON can hold, or None for none.

        Asked for cases of which some were answered; what is returned for the others is left out. What it raises becomes
        the attachment.
        """


def attachments(
    attach: Mapping[str, Attach], batch: Batch, answers: Answers, verdicts: Sequence[Verdict]
) -> list[dict[str, str]]:
    """Return what is attached to each case that was answered, by name, as JSON texts."""
    found: list[dict[str, str]] = [{} for _ in verdicts]
    answered = [lane for stack in answers.stacks for lane in stack.lanes]
    if answered:
        for name, make in attach.items():
            texts = _texts(make, batch, answers, verdicts)
            for lane in answered:
                if (text := texts[lane]) is not None:
                    found[lane][name] = text
    return found


def _texts(make: Attach, batch: Batch, answers: Answers, verdicts: Sequence[Verdict]) -> list[str | None]:
    """Return the attachments as JSON texts; where making them fails, each case is asked for by itself."""
    try:
        return [_text(one) for one in make(batch, answers, verdicts)]
    except Exception:
        if len(batch) == 1:
            return [json.dumps({"failed": last_lines(traceback.format_exc())})]
    found: list[str | None] = []
    for lane, case in enumerate(batch.cases()):
        answer = answers.answer(lane)
        found += [None] if answer is None else _texts(make, case, Answers.of([answer]), [verdicts[lane]])
    return found


def _text(attached: object) -> str | None:
    return None if attached is None else json.dumps(attached, allow_nan=False, separators=(",", ":"))


def last_lines(text: str) -> str:
    """Return the end of a traceback."""
    return "\n".join(text.strip().splitlines()[-6:])[:WORDS_KEPT]
