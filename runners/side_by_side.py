"""Answers gathered side by side: the cases of a group are run one after the other, and judged together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from ..cases.elements import Array, canonical, type_of
from ..cases.lanes import CaseGroup
from .judge import Refusal
from .pool_wire import Phase

Answer: TypeAlias = list[Array] | Refusal

_SECONDS: Final = 0.05
"""After which what has been answered is judged, so that results keep coming from a slow backend."""


def arrays_of(answer: Sequence[Array]) -> list[Array]:
    """Return what a backend answered as arrays."""
    return [canonical(output) for output in answer]


@dataclass
class Block:
    """What a backend answered to neighbours in a group, from the case `start` on.

    `outputs` has the answers that are as expected in type and shape, lanes first, copied: a backend may use its memory
    again. `odd` has the others, by their place in the block. `seconds` is the backend's time for each.
    """

    start: int
    outputs: list[Array] = field(default_factory=list)
    odd: dict[int, Answer] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.seconds)

    def answer(self, place: int) -> Answer:
        """Return one case's answer."""
        return self.odd[place] if place in self.odd else [output[place, ...] for output in self.outputs]


def run_block(
    group: CaseGroup,
    start: int,
    run: Callable[[Sequence[Array]], Sequence[Array]],
    refused: Callable[[Exception], Refusal],
    begin: Callable[[int, Phase], None],
) -> Block:
    """Run the cases of a group from `start` on, until the last or until the time for a block is over.

    `begin` is told each case's place in the group before it runs. What `run` raises is a refusal, as `refused` says; if
    that raises too, there is no answer, and the block ends before that case.
    """
    block = Block(start)
    stacks: list[tuple[Array, tuple[int, ...], np.dtype[Any]]] = []
    clock, seconds = time.perf_counter, block.seconds
    began = now = clock()
    for place, inputs in enumerate(_inputs(group, start)):
        begin(start + place, "run")
        found: Answer
        try:
            answer = run(inputs)
            alone = type(answer) is list and len(answer) == 1 and type(answer[0]) is np.ndarray
            alone = alone and answer[0].dtype.kind not in "OUST"
            found = answer if alone else arrays_of(answer)  # type: ignore[assignment]  # as most are
        except Exception as error:
            try:
                found = refused(error)
            except Exception:  # the caller runs it alone, and tells what went wrong
                break
        if not stacks and _as_expected(group, found):
            block.outputs = [np.zeros((len(group) - start, *o.shape), o.dtype) for o in found]  # type: ignore[union-attr]
            stacks = [(output, output.shape[1:], output.dtype) for output in block.outputs]
        if not _kept(found, stacks, place):
            block.odd[place] = found if isinstance(found, Refusal) else [output.copy() for output in found]
        before, now = now, clock()
        seconds.append(now - before)
        if now - began > _SECONDS:
            break
    block.outputs = [output[: len(block)] for output in block.outputs]
    return block


def _inputs(group: CaseGroup, start: int) -> Iterator[Sequence[Array]]:
    """Yield the inputs of the cases from `start` on."""
    lanes = range(start, len(group))
    columns = (array[start:] if array.ndim > 1 else [array[lane, ...] for lane in lanes] for array in group.inputs)
    return zip(*columns, strict=True) if group.inputs else iter([()] * len(lanes))


def _as_expected(group: CaseGroup, answer: Answer) -> bool:
    """Return whether an answer has types and shapes that an option expects."""
    expected = group.expectation
    if isinstance(answer, Refusal) or tuple(map(type_of, answer)) != expected.types:
        return False
    shapes = [output.shape for output in answer]
    values = [one.option for one in expected.options if one.option.kind == "values"]
    return any([bounds.shape[1:] for bounds in option.outputs] == shapes for option in values)


def _kept(answer: Answer, stacks: Sequence[tuple[Array, tuple[int, ...], np.dtype[Any]]], place: int) -> bool:
    """Copy an answer to its place, if it is like the others."""
    if not stacks or isinstance(answer, Refusal) or len(answer) != len(stacks):
        return False
    for output, (stack, shape, dtype) in zip(answer, stacks, strict=True):
        if output.shape != shape or (output.dtype is not dtype and output.dtype != dtype):
            return False
        stack[place] = output
    return True
