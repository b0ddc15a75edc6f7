"""Mutants that keep something from run to run of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...cases.elements import Array
from .implementation import Answer, Implementation, Memory


def state_mutants() -> Iterator[Implementation]:
    """Yield what is right in the first run of a program, and wrong in others."""
    for name, text, change in (
        ("first-answer-again", "answers every run of a program as the first one", lambda first, _before, _now: first),
        ("last-answer-again", "answers a run as the one before it", lambda _first, before, _now: before),
        ("answers-added", "adds the answer of the run before", lambda _first, before, now: _sum(before, now)),
    ):
        yield Implementation(name, "state", text, recall=_recalling(change))


def _sum(before: Array, now: Array) -> Array:
    if now.dtype.kind in "bO" or before.shape != now.shape:
        return before
    with np.errstate(all="ignore"):
        return np.asarray(before + now).astype(now.dtype)


def _recalling(change: Callable[[Array, Array, Array], Array]) -> Callable[[Memory, Answer], Answer]:
    """Return what passes through the runs of a program, lane after lane."""

    def recall(memory: Memory, answer: Answer) -> Answer:
        told = []
        for lane in range(len(answer[0]) if answer else 0):
            run = [out[lane, ...] for out in answer]
            first, before = memory.setdefault("first", run), memory.get("before", run)
            changed = [change(*each) for each in zip(first, before, run, strict=True)]
            alike = all(one.shape == now.shape for one, now in zip((*first, *before), (*run, *run), strict=True))
            told.append(changed if alike and "before" in memory else run)
            memory["before"] = run
        return [np.stack(outs) for outs in zip(*told, strict=True)]

    return recall
